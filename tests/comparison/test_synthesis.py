"""Back-translation and distillation by the real command: text in, models and a table out, stopped and continued."""

import os
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from conftest import (
    GOLDEN_MODEL,
    Cli,
    Project,
    Refusal,
    assert_same_tensors,
    call,
    names,
    tree,
    wait_until,
    without_pictures,
)
from processes import PIPE, kill_at, start
from sacrebleu.metrics import CHRF
from safetensors.torch import load_file

import nmt
from nmt.config import read_config
from nmt.corpus.dataset import open_data
from nmt.corpus.example import read_examples
from nmt.corpus.training_pairs import read_training_pairs
from nmt.system.files import read_json, write_json

NEW = [" ".join(letters).upper() for letters in ("hgf", "aabb", "hhgg", "cdcd", "fefe", "ggaa")]


def read(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def command(project: Project, output: Path, *more: object) -> list[str]:
    values = {
        "train.epochs": 6,
        "train.batch.size": 32,
        "train.validation.every": 12,
        "train.optimizer.learning_rate": 0.03,
        "model.dropout": 0,
    }
    settings = [word for key, value in values.items() for word in ("--set", f"{key}={value}")]
    return [*map(str, ("backtranslate", project.config, "--output", output, *settings, *more))]


def training_pairs(data: Path) -> list[tuple[str, str]]:
    return [tuple(pair) for pair in read_training_pairs(data, open_data(data).load_processor())]


@pytest.fixture(scope="module", autouse=True)
def _without_pictures() -> Iterator[None]:
    with without_pictures():
        yield


@pytest.fixture(scope="module")
def text(random_project: Project) -> Path:
    """Sentences, one of them twice, a blank line, and a test sentence in other case."""
    path = random_project.root / "more.txt"
    leak = read_examples(random_project.data / "test.jsonl")[0].references[0].lower()
    path.write_text("\n".join([*NEW, "", NEW[0], leak]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def finished(random_project: Project, text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("synthesis") / "out"
    assert call(*command(random_project, output, "--text", text, "--tag", "<bt>", "--weight", "2")) == 0
    return output


def test_the_final_model_learns_from_both_and_from_nothing_else(finished: Path) -> None:
    assert read(finished / "original.txt") == NEW
    sources = read(finished / "translated.txt")
    greedy = nmt.load(finished / "reverse/run", beam_size=1, split_sentences=False)
    assert [one.text for one in greedy.translate(NEW)] == sources
    assert read(finished / "synthetic.en") == sources
    assert read(finished / "synthetic.de") == NEW
    alone, complete, reverse = (finished / name / "data" for name in ("alone", "complete", "reverse"))
    assert [(tgt, src) for src, tgt in training_pairs(alone)] == training_pairs(reverse)
    updates = [read_json(finished / name / "run/run.json")["updates"] for name in ("alone", "reverse", "complete")]
    assert updates == [24, 12, 24]
    report = read_json(complete / "report.json")
    kept = training_pairs(complete)[len(training_pairs(alone)) :]
    assert {(f"<bt> {src}".strip(), tgt) for src, tgt in zip(sources, NEW, strict=True)} >= set(kept)
    assert report["extra"]["synthetic"]["pairs"] == report["extra"]["synthetic"]["repetitions"] == len(kept) > 0
    for split in ("valid", "test"):
        assert (complete / f"{split}.jsonl").read_bytes() == (alone / f"{split}.jsonl").read_bytes()
        assert report["overlap"][split] == {"sources": 0, "targets": 0, "examples": 20}


def test_real_and_synthetic_pairs_are_equally_frequent_and_training_goes_on_from_the_first_model(
    random_project: Project, text: Path, tmp_path: Path, cli: Cli
) -> None:
    """6 synthetic pairs 60 times beside 120 real ones 3 times as often as before; the reverse model has no others."""
    output = tmp_path / "out"
    automatic = [word for key in ("train.batch.size", "model.output_norm") for word in ("--set", f"{key}=auto")]
    fewer = ["--set", "data.weight=2", "--set", "train.epochs=3"]
    options = ["--text", text, "--weight", "60", *fewer, *automatic]
    outcome = cli(*command(random_project, output, *options))
    assert (outcome.code, outcome.err.count("auto: with ")) == (0, 2)  # of the pairs alone, and in reverse
    folders = [output / name / "run" for name in ("alone", "reverse", "complete")]
    assert [read_json(folder / "run.json")["updates"] for folder in folders] == [24, 12, 24]
    configs = [read_config(folder / "config.yaml") for folder in folders]
    assert [config.parent.run for config in configs] == [None, *[str(folders[0])] * 2]
    assert [config.data.weight for config in configs] == [2, 1, 6]
    assert [(config.train.batch.size, config.model.output_norm) for config in configs] == [(32, 5.0)] * 3
    assert read_json(output / "complete/data/report.json")["copies"] == 6 * 59 + 120 * 5


def test_the_table_has_scores_of_both_and_words_by_frequency(finished: Path) -> None:
    text = (finished / "table.md").read_text(encoding="utf-8")
    for name in ("alone", "complete"):
        scores = read_json(finished / f"{name}.json")["scores"]
        row = next(
            line for line in text.splitlines() if line.startswith("| pairs alone" if name == "alone" else "| with")
        )
        assert f"| {scores['bleu']['value']:.2f} | {scores['chrf']['value']:.2f} |" in row
    assert "F1 of words by their frequency in training" in text


def test_the_final_model_can_be_fine_tuned(finished: Path, random_project: Project, tmp_path: Path) -> None:
    data, run = tmp_path / "data", tmp_path / "run"
    setting = f"parent={finished / 'complete/run'}"
    assert call("preprocess", random_project.config, "--set", setting, "--output", data) == 0
    still = ("--set", "train.optimizer={name: sgd, learning_rate: 1.0e-30}", "--set", "train.epochs=1")
    arguments = ("--set", setting, *still, "--data", data, "--output", run)
    assert call("train", random_project.config, *arguments) == 0
    assert read_config(run / "best/config.yaml").data.extra == {}
    assert_same_tensors(
        load_file(run / "best/model.safetensors"), load_file(finished / "complete/run/best/model.safetensors")
    )


def test_further_corpora_of_the_config_are_read_once_and_without_their_tag(
    random_project: Project, text: Path, tmp_path: Path
) -> None:
    further = tmp_path / "further.tsv"
    further.write_text("a b h\tH B A\nh a b\tB A H\n", encoding="utf-8")
    extra = f"data.extra={{web: {{source: {further}, tag: <web>}}}}"
    output = tmp_path / "out"
    assert call(*command(random_project, output, "--text", text, "--set", extra, "--set", "train.epochs=4")) == 0
    pairs = {name: training_pairs(output / name / "data") for name in ("alone", "reverse")}
    tagged = [(src, tgt) for src, tgt in pairs["alone"] if src.startswith("<web> ")]
    assert len(tagged) == 2
    untagged = [(src.removeprefix("<web> "), tgt) for src, tgt in pairs["alone"]]
    assert Counter(pairs["reverse"]) == Counter((tgt, src) for src, tgt in untagged)


def test_what_is_finished_is_not_repeated_and_other_settings_are_refused(
    finished: Path, random_project: Project, text: Path, tmp_path: Path, cli: Cli, refusal: Refusal
) -> None:
    output = shutil.copytree(finished, tmp_path / "out")
    before = tree(output)
    again = [*command(random_project, output, "--text", text, "--tag", "<bt>", "--weight", "2")]
    text.rename(tmp_path / "kept")  # what was collected from it stays
    assert "pairs alone" in cli(*again).out
    (tmp_path / "kept").rename(text)
    assert {name for name, content in tree(output).items() if content != before[name]} <= {
        "alone.json",
        "complete.json",
    }
    assert "sample (False there, True here); choose another --output" in refusal(*again, "--sample")
    assert "train.seed (1 there, 2 here)" in refusal(*again, "--set", "train.seed=2")


STEPS = [
    *("alone/run", "reverse/run", "translated.txt", "synthetic.en", "synthetic.de", "complete/data", "complete/run"),
    *("alone.json", "alone.txt", "complete.json", "complete.txt", "table.md"),
]
"""What the command leaves once both corpora are read, in this order."""


@pytest.mark.parametrize("stage", ["alone/run", "reverse/run", "complete/run"])
def test_a_killed_command_goes_on_to_the_same_model(
    stage: str, finished: Path, random_project: Project, text: Path, tmp_path: Path, cli: Cli
) -> None:
    output = shutil.copytree(finished, tmp_path / "out")
    for path in (output / step for step in STEPS[STEPS.index(stage) :]):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    whole = command(random_project, output, "--text", text, "--tag", "<bt>", "--weight", "2")
    with start(*whole, stdout=PIPE, stderr=PIPE) as process:
        wait_until(lambda: process.poll() is not None or (output / stage / "metrics.jsonl").exists(), 120)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=120)
    assert not (output / "table.md").exists()
    assert cli(*whole).code == 0
    for name in ("translated.txt", "complete/run/best/model.safetensors", "complete.txt"):
        assert (output / name).read_bytes() == (finished / name).read_bytes()


@pytest.mark.parametrize("name", ["config.yaml", "train.en", "original.txt", "synthetic.en", "synthetic.de"])
def test_a_command_killed_before_the_rename_of_a_file_goes_on(
    name: str, finished: Path, random_project: Project, text: Path, tmp_path: Path, cli: Cli
) -> None:
    """Of two parallel files only one was there, and was taken for a finished step for ever."""
    output = shutil.copytree(finished, tmp_path / "out")
    for path in (*output.glob("*.txt"), *output.glob("synthetic.*"), *output.glob("reverse/*.*"), output / name):
        path.unlink(missing_ok=True)
    if name == "train.en":
        shutil.rmtree(output / "reverse")
    whole = command(random_project, output, "--text", text, "--tag", "<bt>", "--weight", "2")
    with start(*whole, stdout=PIPE, stderr=PIPE, prepare=partial(kill_at, "os.replace", 1, name)) as process:
        process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    assert cli(*whole).code == 0
    for made in ("original.txt", "synthetic.en", "synthetic.de", "complete.txt"):
        assert (output / made).read_bytes() == (finished / made).read_bytes()


def test_a_command_killed_before_its_first_rename_can_begin_again(
    random_project: Project, text: Path, tmp_path: Path, cli: Cli
) -> None:
    """A hidden file was left, and the folder was taken for that of somebody else."""
    whole = command(random_project, tmp_path / "out", "--text", text, "--set", "train.epochs=4")
    with start(*whole, stdout=PIPE, stderr=PIPE, prepare=partial(kill_at, "os.replace", 1)) as process:
        process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    assert names(tmp_path / "out") == [".backtranslation.json.partial-0"]
    assert cli(*whole).code == 0


@pytest.mark.parametrize("kind", ["text", "corpus"])
def test_a_changed_file_of_the_same_name_is_noticed(
    kind: str, finished: Path, random_project: Project, text: Path, tmp_path: Path, refusal: Refusal
) -> None:
    output = shutil.copytree(finished, tmp_path / "out")
    path = text if kind == "text" else random_project.root / "corpus.tsv"
    before = path.read_bytes()
    path.write_bytes(before + b"H H\tH H\n")
    message = refusal(*command(random_project, output, "--text", text, "--tag", "<bt>", "--weight", "2"))
    path.write_bytes(before)
    assert message == f"{path}: has changed since {output} was made from it; choose another --output"


def test_a_changed_file_that_the_config_names_otherwise_is_noticed(
    random_project: Project, text: Path, tmp_path: Path, refusal: Refusal
) -> None:
    """Files of `data.extra` and `data.test`, and a corpus without the endings of its two files."""
    given = {name: tmp_path / f"{name}.tsv" for name in ("more", "test")}
    for path in given.values():
        path.write_text("A B\tA B\n", encoding="utf-8")
    sides = [tmp_path / "pairs.xx", tmp_path / "pairs.yy"]
    for path in sides:
        path.write_text("A B\n", encoding="utf-8")
    config = tmp_path / "synthesis.yaml"
    config.write_text(
        f"extends: {random_project.config}\ndata:\n  src_language: xx\n  tgt_language: yy\n"
        f"  source: {tmp_path / 'pairs'}\n  split: {{test_size: 0}}\n"
        f"  test: {given['test']}\n  extra: {{more: {{source: {given['more']}}}}}\n",
        encoding="utf-8",
    )
    whole = ["backtranslate", config, "--output", tmp_path / "out", "--text", text, "--set", "train.max_updates=1"]
    with start(*map(str, whole), stdout=PIPE, stderr=PIPE, prepare=partial(kill_at, "os.replace", 4)) as process:
        process.communicate(timeout=120)
    for path in (*sides, *given.values()):
        before = path.read_bytes()
        path.write_bytes(before.replace(b"A B", b"A C"))
        assert refusal(*whole).startswith(f"{path}: has changed since {tmp_path / 'out'} was made from it")
        path.write_bytes(before)


def test_a_folder_of_an_earlier_version_has_no_checksums_and_goes_on(
    finished: Path, random_project: Project, text: Path, tmp_path: Path, cli: Cli
) -> None:
    output = shutil.copytree(finished, tmp_path / "out")
    marker = read_json(output / "backtranslation.json")
    del marker["sha256"]
    write_json(output / "backtranslation.json", marker)
    assert cli(*command(random_project, output, "--text", text, "--tag", "<bt>", "--weight", "2")).code == 0


LONG, LATIN = b"x" * 2_000_000, "Gr\u00f6\u00dfe".encode("latin-1")


def test_lines_that_are_no_text_are_counted_and_not_learnt(
    random_project: Project, tmp_path: Path, cli: Cli, refusal: Refusal
) -> None:
    """ "a line longer than a megabyte" and U+FFFD were sentences to learn from."""
    path = tmp_path / "mixed.txt"
    path.write_bytes(b"\n".join([*(line.encode() for line in NEW), LONG, LATIN, b""]))
    arguments = command(random_project, tmp_path / "out", "--text", path, "--set", "train.epochs=4")
    message = refusal(*arguments)
    assert f"2 of 8 lines are malformed: 1 longer than 1 MB ({path}:7); 1 not UTF-8 ({path}:8)" in message
    assert "raise data.max_malformed (0.01) above 0.25 to skip them" in message
    assert not (tmp_path / "out").exists()
    outcome = cli(*arguments, "--set", "data.max_malformed=0.3")
    assert outcome.code == 0
    assert f"left out are 1 longer than 1 MB ({path}:7)" in outcome.err
    assert f"left out are 1 not UTF-8 ({path}:8)" in outcome.err
    assert read(tmp_path / "out/original.txt") == NEW


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (LATIN, "1 of 1 lines are malformed: 1 not UTF-8"),
        (LONG, "1 of 1 lines are malformed: 1 longer than 1 MB"),
        ("Hallo".encode("utf-16"), "looks like UTF-16; convert it"),
        (None, "is not a regular file"),
    ],
)
def test_text_without_a_sentence_is_refused(
    content: bytes | None, message: str, random_project: Project, tmp_path: Path, refusal: Refusal
) -> None:
    path = tmp_path / "text"
    os.mkfifo(path) if content is None else path.write_bytes(content)
    assert message in refusal(*command(random_project, tmp_path / "out", "--text", path))
    assert not (tmp_path / "out").exists()


def test_a_round_trip_that_does_not_come_back_is_left_out(
    finished: Path, random_project: Project, text: Path, tmp_path: Path, cli: Cli
) -> None:
    output = tmp_path / "out"
    options = ["--text", text, "--round-trip", "5", "--sample", "--set", "train.epochs=8"]
    assert cli(*command(random_project, output, *options)).code == 0
    assert (output / "translated.txt").read_bytes() != (finished / "translated.txt").read_bytes()  # drawn
    both = zip(read(output / "round_trip.txt"), NEW, strict=True)
    kept = [line for back, line in both if CHRF().sentence_score(back, [line]).score >= 5]
    assert 0 < len(kept) < len(NEW)
    assert read(output / "synthetic.de") == kept


def test_teachers_translate_the_training_sources(
    finished: Path, random_project: Project, tmp_path: Path, cli: Cli
) -> None:
    run = finished / "alone/run"
    slower = ["--set", "train.optimizer.learning_rate=0.01"]
    whole = command(random_project, tmp_path / "out", "--teacher", run, "--teacher", run, *slower)
    assert cli(*whole).code == 0
    sources = read(tmp_path / "out/original.txt")
    assert set(sources) == {src for src, _ in training_pairs(random_project.data)}
    (tmp_path / "in").write_text("\n".join(sources) + "\n", encoding="utf-8")
    translated = cli("translate", "--model", run, "--model", run, "--input", tmp_path / "in").out
    assert read(tmp_path / "out/synthetic.en") == sources
    assert read(tmp_path / "out/synthetic.de") == translated.splitlines()
    assert "reverse" not in names(tmp_path / "out")
    student = read_config(tmp_path / "out/complete/run/config.yaml")
    assert (student.parent.run, student.data.weight, student.train.max_updates) == (None, 1, None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "text: is empty; give a file with sentences of the target language, one per line"),
        (["--text", "gone.txt"], "gone.txt: cannot be read (No such file or directory); check the path"),
        (["--text", "empty.txt"], "empty.txt: is empty; give a file with sentences, one per line"),
        (["--text", "seen.txt"], "seen.txt: no sentence that is not in valid or test"),
        (["--teacher", "gone"], "gone"),
        (
            ["--teacher", str(GOLDEN_MODEL), "--set", "data.tgt_language=fr"],
            "golden/model: translates en-de, not en-fr",
        ),
        (["--teacher", "gone", "--round-trip", "3"], "--round-trip: is for back-translations"),
        (["--text", "empty.txt", "--tag", "bt"], "data.extra.synthetic.tag"),
        (["--text", "empty.txt", "--weight", "0"], "data.extra.synthetic.weight"),
        (["--text", "empty.txt", "--split", "train"], "--split train: must be test or valid"),
    ],
)
def test_what_cannot_work_is_said_in_one_line_before_anything_is_trained(
    arguments: list[str],
    message: str,
    random_project: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    refusal: Refusal,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.txt").write_text("\n\n")
    Path("seen.txt").write_text(read_examples(random_project.data / "valid.jsonl")[0].references[0])
    assert message in refusal(*command(random_project, Path("out"), *arguments))
    assert not Path("out/alone/run").exists()
    assert Path("out").exists() == ("no sentence" in message)  # else nothing is written, and the corrected command runs


def test_a_folder_with_something_else_is_refused(
    random_project: Project, text: Path, tmp_path: Path, refusal: Refusal
) -> None:
    (tmp_path / "mine.txt").touch()
    assert "contains other files (no backtranslation.json); choose another --output" in refusal(
        *command(random_project, tmp_path, "--text", text)
    )
    assert names(tmp_path) == ["mine.txt"]
