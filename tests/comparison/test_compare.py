"""Comparisons run by the real command: cells in processes of their own, tables, stops and failures."""

import contextlib
import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sacrebleu
from conftest import Cli, Project, Refusal, call, names, signal_at, wait_until
from processes import PIPE, Running, start

import nmt
from nmt.comparison import runner
from nmt.comparison.plan import make_trials
from nmt.comparison.runner import Job, describe_jobs
from nmt.comparison.trial import run_trial, write_trial
from nmt.config import read_config
from nmt.config.comparison import ComparisonSection
from nmt.drawing import charts
from nmt.system.errors import DataError, RunInterrupted
from nmt.system.files import shipped

SMALL = ["--set", "train.max_updates=12", "--set", "train.validation.every=6"]
MEASURED = ("training_seconds", "total_seconds", "tokens_per_second", "peak_mib", "sentences_per_second", "seconds")


def look_often() -> None:
    """Let this process look at its cells every 0.1 seconds."""
    runner.SECONDS = 0.1


@pytest.fixture(scope="module", autouse=True)
def _look_often() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(runner, "SECONDS", 0.1)
        yield


def draw_no_curve() -> None:
    charts.draw_learning_curve = lambda run: None


def start_forked(command: list[str], **options: Any) -> Running:
    """The process of a cell, forked from a server that has imported the libraries."""
    program, words = command[:3], command[3:]
    assert program == [sys.executable, "-m", "nmt"]
    assert (options["shell"], options["start_new_session"]) == (False, True)
    streams = {name: options[name] for name in ("stdin", "stdout")} | {"stderr": options["stdout"]}
    return start(*words, **streams, environment=options["env"], new_session=True, prepare=draw_no_curve)


@contextlib.contextmanager
def forked_cells() -> Iterator[None]:
    """Imports take most of the time of a cell. The tests of stops and of launchers start cells as users do."""
    with pytest.MonkeyPatch.context() as patched:
        forking = SimpleNamespace(Popen=start_forked, DEVNULL=subprocess.DEVNULL, STDOUT=subprocess.STDOUT)
        patched.setattr(runner, "subprocess", forking)
        yield


@pytest.fixture(scope="module")
def compared(random_project: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A comparison of two scores, two cells at a time."""
    output = tmp_path_factory.mktemp("comparison") / "out"
    with forked_cells():
        assert call(*compare_command(random_project, output)) == 0
    return output


def compare_command(project: Project, output: Path) -> list[str]:
    vary = ["--vary", "model.attention.score=general,none", *SMALL]
    return ["compare", "--config", str(project.config), *vary, "--output", str(output), "--jobs", "2"]


def read_table(output: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((output / "table.json").read_text(encoding="utf-8"))
    return rows


def without_measurements(value: Any) -> Any:
    """The part of a table that does not depend on the clock or the memory of the machine."""
    if isinstance(value, dict):
        return {key: without_measurements(each) for key, each in value.items() if key not in MEASURED}
    return [without_measurements(each) for each in value] if isinstance(value, list) else value


def test_scores_are_those_of_the_written_files(compared: Path) -> None:
    rows = read_table(compared)
    assert [row["name"] for row in rows] == ["attention.score=general", "attention.score=none"]
    for row, name in zip(rows, ("general", "none"), strict=True):
        cell = compared / f"cells/attention.score-{name}-1"
        hypotheses, references = (
            (cell / f"{kind}.txt").read_text(encoding="utf-8").splitlines() for kind in ("hypotheses", "references")
        )
        (result,) = row["results"]
        streams = [list(stream) for stream in zip(*(line.split("\t") for line in references), strict=True)]
        expected = sacrebleu.BLEU(tokenize="none", force=True).corpus_score(hypotheses, streams).score
        assert result["scores"]["bleu"]["value"] == pytest.approx(expected, abs=1e-9)
        assert result["updates"] == 12
        assert [entry["update"] for entry in result["curve"]] == [6, 12]
        assert result["peak_mib"] > 100
        assert result["sentences_per_second"] > 0
        assert bool(result["attention"]) == (name == "general")
        assert sum(group["sentences"] for group in result["lengths"] if not group["joined"]) == len(hypotheses)


def test_what_is_finished_is_not_repeated(compared: Path, random_project: Project, cli: Cli) -> None:
    """The tables and pictures are written again, by the command and by the Python interface."""
    table, text = read_table(compared), (compared / "table.md").read_text(encoding="utf-8")
    assert text.startswith("# Comparison\n")
    assert all(f"![{title}]" in text for title in ("Scores", "Cost", "By source length"))
    assert "attention.score=general & 1 & " in (compared / "table.tex").read_text(encoding="utf-8")
    assert len((compared / "table.csv").read_text(encoding="utf-8").splitlines()) == 3
    for name in ("bleu.png", "curves.png", "lengths.png"):
        assert (compared / name).read_bytes().startswith(b"\x89PNG")
        (compared / name).unlink()
    before = {path: path.stat().st_mtime_ns for path in (compared / "cells").rglob("*") if path.is_file()}
    outcome = cli(*compare_command(random_project, compared))
    assert outcome.code == 0
    assert "config\tseeds\tBLEU" in outcome.out
    assert "training" not in outcome.err
    result = nmt.compare(
        config=random_project.config,
        vary={"model.attention.score": ["general", "none"]},
        overrides={"train.max_updates": 12, "train.validation.every": 6},
        output=compared,
    )
    assert not result.failed
    assert repr(result) == f"<ComparisonResult {compared}: configs 2, failed trials 0>"
    assert [row.name for row in result.rows] == ["attention.score=general", "attention.score=none"]
    assert result.rows[0].values("scores", "bleu", "value") == [table[0]["results"][0]["scores"]["bleu"]["value"]]
    assert {path: path.stat().st_mtime_ns for path in (compared / "cells").rglob("*") if path.is_file()} == before
    assert read_table(compared) == table
    assert all((compared / name).is_file() for name in ("bleu.png", "curves.png", "lengths.png"))


def test_the_runs_of_cells_are_listed(compared: Path, cli: Cli) -> None:
    runs = [f"cells/attention.score-{name}-1/run" for name in ("general", "none")]
    for folder, above in ((compared, ""), (compared.parent, "out/")):
        rows = [line.split("\t") for line in cli("runs", folder).out.splitlines()[1:]]
        assert sorted(row[0] for row in rows) == [above + run for run in runs]
        assert {(row[2], row[3]) for row in rows} == {("finished", "12/12")}
    assert cli("translate", "a b", "--model", compared / runs[0]).code == 0


def test_the_state_of_cells_is_shown(compared: Path, random_project: Project, tmp_path: Path) -> None:
    (trial,) = make_trials(ComparisonSection.model_validate({"config": str(random_project.config)}))
    cell, (result,) = compared / "cells/attention.score-general-1", read_table(compared)[0]["results"]
    jobs = [Job(trial, cell, state="finished"), Job(trial, cell, state="evaluating"), Job(trial, tmp_path)]
    valid, minutes = result["curve"][-1], f"{result['total_seconds'] / 60:.1f}"
    assert describe_jobs(jobs).rows == [
        ["random, seed 1", "finished", "12", minutes, f"{result['scores']['bleu']['value']:.2f}"],
        ["random, seed 1", "evaluating", "12 of 12", f"{valid['seconds'] / 60:.1f}", f"valid {valid['bleu']:.2f}"],
        ["random, seed 1", "waiting", "", "", ""],
    ]


def test_other_settings_for_the_same_cell_are_refused(
    compared: Path, random_project: Project, refusal: Refusal
) -> None:
    message = refusal(*compare_command(random_project, compared), "--set", "model.dropout=0.45")
    assert "model.dropout (0.3 there, 0.45 here)" in message


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGKILL, marks=pytest.mark.soak)])
def test_a_stopped_comparison_ends_with_the_same_table(
    number: signal.Signals, compared: Path, random_project: Project, tmp_path: Path, cli: Cli
) -> None:
    command = compare_command(random_project, shutil.copytree(compared, tmp_path / "out"))
    cell = tmp_path / "out/cells/attention.score-none-1"
    shutil.rmtree(cell)
    with start(*command, stdout=PIPE, stderr=PIPE, prepare=look_often) as process:
        wait_until(lambda: process.poll() is not None or (cell / "log.txt").exists(), 120)
        process.send_signal(number)
        _, messages = process.communicate(timeout=120)
    if number == signal.SIGTERM:
        assert process.returncode == 75
        assert "run the same command again to continue" in messages
    assert cli(*command).code == 0
    assert without_measurements(read_table(tmp_path / "out")) == without_measurements(read_table(compared))


def is_training(cell: Path) -> bool:
    metrics = cell / "run/metrics.jsonl"
    return metrics.exists() and metrics.stat().st_size > 0


def test_a_launcher_gets_the_command_of_a_cell(random_project: Project, tmp_path: Path, cli: Cli) -> None:
    """One that hands it over and ends at once, as the submission to a cluster does; the next one waits for its end.

    The second cell fails and leaves the first.
    """
    launched, finished = tmp_path / "launched.txt", f"find {tmp_path / 'out'} -name result.json | wc -l"
    outcome = cli(
        *("compare", "--config", random_project.config, "--data", random_project.data, "--output", tmp_path / "out"),
        *("--vary", "train.device=cpu,cuda:99", "--set", "train.max_updates=4", "--jobs", "1", "--launcher"),
        f"echo {{name}} $({finished}) >> {launched}; (sleep 0.3; exec nohup {{command}}) >/dev/null 2>&1 &",
    )
    assert outcome.code == 1
    assert launched.read_text(encoding="utf-8") == "device-cpu-1 0\ndevice-cuda-99-1 1\n"
    assert "device='cuda:99', seed 1: device cuda:99 is not" in outcome.err.splitlines()[-1]
    assert [row["name"] for row in read_table(tmp_path / "out")] == ["device=cpu"]
    tables = [(tmp_path / "out" / name).read_text(encoding="utf-8") for name in ("table.tex", "table.md")]
    for text in (*tables, " ".join(outcome.out.split())):
        assert "Without a result: device='cuda:99', seed 1." in text


def test_a_cell_that_failed_is_waited_for_when_it_is_handed_over_again(
    compared: Path, random_project: Project, tmp_path: Path, cli: Cli
) -> None:
    """The failure that the earlier command left is not that of the process that has yet to begin."""
    output = shutil.copytree(compared, tmp_path / "out")
    cell, result = output / "cells/attention.score-none-1", tmp_path / "result.json"
    (cell / "result.json").rename(result)
    (cell / "failure.txt").write_text("earlier", encoding="utf-8")
    launcher = f"echo {{command}}; (sleep 0.3; mv {result} {cell}) >/dev/null 2>&1 &"
    outcome = cli(*compare_command(random_project, output), "--launcher", launcher)
    assert outcome.code == 0, outcome.err
    assert read_table(output) == read_table(compared)


@pytest.mark.soak
def test_stopping_reaches_what_a_launcher_runs(random_project: Project, tmp_path: Path) -> None:
    cell = tmp_path / "out/cells/random-1"
    command = [
        "compare",
        "--config",
        random_project.config,
        "--data",
        random_project.data,
        "--output",
        tmp_path / "out",
    ]
    launcher = ["--set", "train.epochs=5000", "--launcher", "true && nice {command}; true"]
    with start(*command, *launcher, stdout=PIPE, stderr=PIPE) as process:
        wait_until(lambda: process.poll() is not None or is_training(cell), 120)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
    assert process.returncode == 75
    assert json.loads((cell / "run/run.json").read_text(encoding="utf-8"))["state"] == "stopped"


def test_a_budget_decides_the_number_of_updates_once(random_project: Project, tmp_path: Path) -> None:
    wanted = {"config": str(random_project.config), "settings": {"train.validation.every": None}}
    (cell,) = make_trials(ComparisonSection.model_validate({**wanted, "budget_minutes": 0.005}))
    write_trial(tmp_path / "cell", cell, data=str(random_project.data), data_checksum="", split="test")
    first = run_trial(tmp_path / "cell")
    budget = json.loads((tmp_path / "cell/budget.json").read_text(encoding="utf-8"))
    assert first["updates"] == budget["updates"] == round(60 * 0.005 / budget["seconds"])
    for name in ("result.json", "training.json"):
        (tmp_path / "cell" / name).unlink()
    shutil.rmtree(tmp_path / "cell/run")
    assert without_measurements(run_trial(tmp_path / "cell")) == without_measurements(first)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give a comparison file, the name of a shipped one, or configs with --config"),
        (["nowhere"], "nowhere: no such comparison file"),
        (["luong", "nowhere"], "cell nowhere: nowhere: no such config file"),
        (["luong", "sample", "--data", "."], "--data .: the cells differ in data or text settings"),
        (["--config", "sample", "--seeds", "1,x"], "--seeds 1,x: expected whole numbers"),
        (["--config", "sample", "--seeds", "-1"], "seeds.0: should be greater than or equal to 0"),
        (["--config", "sample", "--split", "train"], "--split train: must be test or valid"),
        (["--config", "sample", "--vary", "model.dropout"], "--vary model.dropout: expected"),
        (["--config", "sample", "--launcher", "srun"], "has no {command}"),
        (["--config", "sample", "--data", "."], ".: is not a data directory"),
        (["--config", "sample", "--vary", "text.lowercase=true,false", "--data", "."], "--data .: the cells differ"),
        (["--cell", "."], ".: is not the folder of a cell"),
        (["--cell", ".", "--split", "valid"], "leave the other options out"),
        (["--config", "sample", "--source", "nowhere.tsv"], "nowhere.tsv"),
    ],
)
def test_wrong_arguments_get_one_line(
    arguments: list[str], message: str, refusal: Refusal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in refusal("compare", *arguments)
    assert not list(tmp_path.rglob("*"))


def test_a_folder_with_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious", encoding="utf-8")
    with pytest.raises(DataError, match=r"contains other files \(no comparison.json\)"):
        nmt.compare(config="sample", output=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not valid JSON"),
        ("[]", "damaged"),
        ('{"format_version": 9}', "another"),
    ],
)
@pytest.mark.parametrize("name", ["cell.json", "training.json", "result.json"])
def test_a_damaged_record_is_one_line(compared: Path, tmp_path: Path, name: str, text: str, message: str) -> None:
    cell = shutil.copytree(compared / "cells/attention.score-general-1", tmp_path / "cell")
    if name != "result.json":
        (cell / "result.json").unlink()
    (cell / name).write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=f"{name}: .*{message}"):
        run_trial(cell)


def test_an_interrupted_cell_has_not_failed(
    random_project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cell,) = make_trials(ComparisonSection.model_validate({"config": str(random_project.config)}))
    write_trial(tmp_path / "cell", cell, data=str(random_project.data), data_checksum="", split="test")
    signal_at(monkeypatch, 3)
    with pytest.raises(RunInterrupted, match="nmt compare continues it"):
        run_trial(tmp_path / "cell")
    assert not (tmp_path / "cell/failure.txt").exists()


def test_data_that_does_not_fit_is_refused_before_training(
    random_project: Project, tmp_path: Path, refusal: Refusal
) -> None:
    data, given = random_project.data, ["compare", "--config", random_project.config, "--output"]
    message = refusal(*given, tmp_path / "out", "--data", data, "--set", "text.lowercase=true")
    assert "was preprocessed with other settings" in message
    message = refusal(*given, tmp_path / "out", "--set", "data.split.test_size=0")
    assert "has no test split; choose another --split" in message
    assert not (tmp_path / "out/cells").exists()
    assert "is inside the data directory" in refusal(*given, data / "inner", "--data", data)
    assert not (data / "inner").exists()


def test_cells_share_data_whose_settings_follow_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = shipped("data/sample/deu.txt").read_text(encoding="utf-8").splitlines()[:600]
    Path("mine.yaml").write_text(
        "extends: base\ndata: {source: pairs.tsv, src_language: en, tgt_language: de}\n"
        "model: {embedding_size: 8, encoder: {hidden_size: 8}, decoder: {hidden_size: 8}}\n"
    )
    for score in ("dot", "general"):
        Path(f"{score}.yaml").write_text(f"extends: mine.yaml\nmodel: {{attention: {{score: {score}}}}}\n")
    command = ("compare", "dot.yaml", "general", "--output", "out")  # as with --config
    command += ("--set", "model.decoder.hidden_size=16", "--launcher", "false {command}")  # to train takes long
    assert "pairs.tsv" in cli(*command).err  # there is none yet
    Path("pairs.tsv").write_text("".join("\t".join(row.split("\t")[:2]) + "\n" for row in rows), encoding="utf-8")
    assert cli(*command).err.count("its process ended without a result; see out/cells/") == 4  # at once and in the end
    (data,) = Path("out/data").iterdir()
    pieces = read_config(data / "config.yaml").text.subword.vocabulary_size
    for cell in Path("out/cells").iterdir():
        config = read_config(cell / "config.yaml")
        assert (config.text.subword.vocabulary_size, config.model.dropout) == (pieces, 0.5)


@pytest.mark.parametrize("asked", [("--vary", "model.attention.score=general,none"), ("--seeds", "1,2")])
def test_one_config_to_vary_is_as_with_config(
    asked: tuple[str, str], random_project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.chdir(tmp_path)
    options = (*asked, "--data", random_project.data, "--launcher", "false {command}")  # to train takes long
    found = []
    for given in ((random_project.config,), ("--config", random_project.config)):
        assert "its process ended without a result" in cli("compare", *given, *options).err
        found.append({path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*.json")})
        shutil.rmtree("runs")
    assert found[0] == found[1]
    assert len([path for path in found[0] if "cells" in path.parts]) >= 2


def test_translations_and_old_cells_join_a_comparison(
    compared: Path, random_project: Project, tmp_path: Path, cli: Cli, refusal: Refusal
) -> None:
    output = shutil.copytree(compared, tmp_path / "out", ignore=shutil.ignore_patterns("checkpoints"))
    cell = output / "cells/attention.score-general-1"
    references = (cell / "references.txt").read_text(encoding="utf-8").splitlines()
    mine = tmp_path / "mine.txt"
    mine.write_text("".join(line.split("\t")[0] + "\n" for line in references), encoding="utf-8")
    old = compared / "cells/attention.score-none-1"
    command = [*compare_command(random_project, output), "--data", compared / "data" / names(compared / "data")[0]]
    outcome = cli(*command, "--against", f"perfect={mine}", "--against", f"old={old}")
    assert outcome.code == 0
    *_, perfect, earlier = read_table(output)
    assert (perfect["name"], earlier["name"]) == ("perfect", "old")
    assert perfect["results"][0]["scores"]["bleu"]["value"] == pytest.approx(100)
    assert perfect["p_values"][0] < 0.05
    none = read_table(output)[1]
    assert earlier["results"][0]["scores"] == none["results"][0]["scores"]
    assert earlier["p_values"] == none["p_values"]
    for name in ("table.md", "table.tex", "table.csv"):
        assert "perfect" in (output / name).read_text(encoding="utf-8")
    short = tmp_path / "short.txt"
    short.write_text("a\n", encoding="utf-8")
    for given, message in (
        (
            f"short={short}",
            f"{short}: has 1 lines, and the test set {len(references)} sentences; give one line for each",
        ),
        ("nothing", "--against nothing: expected NAME=FILE or NAME=CELL"),
        ("x=gone.txt", "--against x=gone.txt: gone.txt does not exist; check the path"),
        (f"x={tmp_path}", f"{tmp_path} is not a finished cell (no result.json)"),
        (f"attention.score=none={mine}", "--against attention.score=none="),
    ):
        assert message in refusal(*command, "--against", given)


def test_two_seeds_have_a_statement_over_both(
    compared: Path, random_project: Project, tmp_path: Path, cli: Cli
) -> None:
    """The mean of the differences that stand beside it, with one p, in all tables; the first seed is there already."""
    output = shutil.copytree(compared, tmp_path / "out")
    with forked_cells():
        assert cli(*compare_command(random_project, output), "--seeds", "2").code == 0
    references = (output / "cells/attention.score-general-1/references.txt").read_text(encoding="utf-8").splitlines()
    mine = tmp_path / "mine.txt"
    mine.write_text("".join(line.split("\t")[0] + "\n" for line in references), encoding="utf-8")
    assert cli(*compare_command(random_project, output), "--seeds", "2", "--against", f"perfect={mine}").code == 0
    first, second, perfect = read_table(output)
    assert [result["seed"] for result in perfect["results"]] == [1, 2]
    assert perfect["over_seeds"]["difference"] == pytest.approx(sum(perfect["differences"]) / 2)
    assert perfect["differences"] == pytest.approx(
        [100 - result["scores"]["bleu"]["value"] for result in first["results"]]
    )
    (row,) = [line for line in (output / "table.md").read_text(encoding="utf-8").splitlines() if "perfect" in line][:1]
    assert "0.00" not in map(str.strip, row.split("|"))  # the deviation of a single translation
    assert [result["seed"] for result in second["results"]] == [1, 2]
    assert first["over_seeds"] is None
    found = second["over_seeds"]
    assert found["difference"] == pytest.approx(sum(second["differences"]) / 2)
    assert 0 < found["p_value"] <= 1
    written = f"{found['difference']:+z.2f} ({found['p_value']:.3f}"
    assert written in (output / "table.md").read_text(encoding="utf-8")
    latex = (output / "table.tex").read_text(encoding="utf-8")
    assert r"Mean $\Delta$ ($p$)" in latex
    assert written.replace("-", "$-$") in latex
    assert "approximate randomisation of 10,000 trials" in latex


def test_prepared_data_is_used(
    random_project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    """It went for a download, though `nmt preprocess` had prepared the data of both configs."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(random_project.data, "data/prepared/random")
    text = random_project.config.read_text(encoding="utf-8")
    corpus = str(random_project.root / "corpus.tsv")
    assert corpus in text
    for name in ("one", "two"):
        gone = text.replace(corpus, "https://example.invalid/gone.tsv").replace("name: random", f"name: {name}")
        Path(f"{name}.yaml").write_text(gone, encoding="utf-8")
        shutil.copytree(random_project.data, f"data/prepared/{name}")
    with forked_cells():
        outcome = cli("compare", "one.yaml", "two.yaml", *SMALL, "--output", "out", "--jobs", "2")
    assert outcome.code == 0, outcome.err
    assert "uses the data in data/prepared/" in outcome.err
    assert not Path("out/data").exists()
    outcome = cli("compare", "one.yaml", "two.yaml", *SMALL, "--set", "text.max_length=7", "--output", "more")
    assert outcome.code == 1  # no corpus is at the address
    assert re.search(
        r"new data, as those in data/prepared/\w+ have other settings: text.max_length \(100 there, 7", outcome.err
    )


def test_data_of_earlier_content_is_a_warning(
    random_project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(random_project.root / "corpus.tsv", "corpus.tsv")
    text = random_project.config.read_text(encoding="utf-8")
    text = text.replace(str(random_project.root / "corpus.tsv"), "corpus.tsv")
    Path("mine.yaml").write_text(text.replace("name: random", "name: mine"), encoding="utf-8")
    command = ("compare", "mine.yaml", *SMALL, "--seeds", "1,")
    with forked_cells():
        assert "earlier content" not in cli(*command, "--output", "out").err
    with Path("corpus.tsv").open("a", encoding="utf-8") as file:
        file.write("a b\tB A\n")
    outcome = cli(*command, "--output", "out")
    assert outcome.code == 0
    assert re.search(
        r"WARNING: out/data/\w+: was prepared from earlier content of corpus\.tsv \(([\d,]+) bytes then, [\d,]+ now\); "
        r"choose another --output to use the new content\n",
        outcome.err,
    )
    (data,) = Path("out/data").iterdir()
    shutil.copytree(data, "data/prepared/mine")
    with forked_cells():
        outcome = cli(*command, "--output", "more")
    assert re.search(
        r"data/prepared/mine: was prepared from .* now\); preprocess again with --overwrite\n", outcome.err
    )
