import argparse
import dataclasses
import json
import re
import sys
from pathlib import Path

import experiment
import pytest
import torch
from benchmarks.measuring import RunError
from experiments import ledger, opennmt, runs, tables
from experiments.ledger import Result, Score, read_results, settings_of, write_result
from experiments.plan import read_experiment

from nmt.config import load_config
from nmt.system.errors import ConfigError, DataError

SCRIPTS = Path(experiment.__file__).parent
EXPERIMENTS = sorted((SCRIPTS / "experiments").glob("*.toml"))

RESULT = Result(
    experiment="trial",
    cell="plain",
    seed=1,
    system="nmt 0.1.0",
    config="sample",
    settings=[],
    finished="2026-11-22",
    threads=2,
    precision="float32",
    gflops=200,
    parameters=1_240_000,
    epochs=2.0,
    updates=10,
    tokens=2_000_000,
    minutes=1.5,
    total_minutes=2.0,
    peak_mib=700,
    beam_size=5,
    scores={"valid": {"bleu": Score(30.0, "tok:none")}},
)


def variant(cell: str, seed: int, valid: float, test: float | None = None) -> Result:
    scores = {"valid": {"bleu": Score(valid, "tok:none")}}
    if test is not None:
        scores["test"] = {"bleu": Score(test, "tok:none")}
    return dataclasses.replace(RESULT, cell=cell, seed=seed, scores=scores)


def test_an_experiment_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "trial.toml"
    path.write_text(
        """\
config = "sample"
seeds = [1, 2]
settings = ["train.epochs=2"]
[[cells]]
name = "Plain"
[[cells]]
name = "BPE 4,000 + smoothing"
seeds = [3]
settings = ["text.subword.vocabulary_size=4000", "train.label_smoothing=0.1"]
"""
    )
    found = read_experiment(path)
    assert (found.name, found.config, found.source) == ("trial", "sample", ())
    assert [cell.key for cell in found.cells] == ["plain-1", "plain-2", "bpe-4-000-smoothing-3"]
    assert found.cells[0].settings == ("train.epochs=2",)
    assert found.cells[2].settings == (
        "train.epochs=2",
        "text.subword.vocabulary_size=4000",
        "train.label_smoothing=0.1",
    )
    assert found.cells[2].data_settings == ("text.subword.vocabulary_size=4000",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("config =", "is not an experiment (TOMLDecodeError: Invalid value (at end of document))"),
        ("config = 'a'", "cells: field required"),
        ("config = 'a'\ncells = []", "cells: should have at least 1 item after validation, not 0, found []"),
        ("config = 'a'\nsetting = []\n[[cells]]\nname = 'b'", "setting: unknown key; did you mean settings?"),
        ("config = 'a'\n[[cells]]\nname = '!'", "cells.0.name: should match pattern '[A-Za-z0-9]', found '!'"),
        (
            "config = 'a'\n[[cells]]\nname = 'B 4'\n[[cells]]\nname = 'b-4'",
            "several cells have the key b-4-1; give them names or seeds that differ",
        ),
    ],
)
def test_what_is_not_an_experiment_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "trial.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as raised:
        read_experiment(path)
    assert str(raised.value) == f"{path}: {expected}"
    with pytest.raises(ConfigError, match=r"none\.toml: is not an experiment"):
        read_experiment(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["run", "--cell", "none"], "--cell none: trial has no such cell; it has plain, other"),
        (["test", "--cell", "plain", "--seed", "3"], "--seed 3: not planned for these cells; their seeds are 1, 2"),
        (["run", "--cell", "plain", "--output", "FILE/runs"], "FILE/runs/trial: Not a directory"),
        (
            ["opennmt", "--python", "FILE", "--minutes", "nan"],
            "argument --minutes: must be an integer of at least 1, found 'nan'",
        ),
    ],
)
def test_bad_arguments_get_one_line(
    tmp_path: Path,
    options: list[str],
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(ledger, "LEDGER", tmp_path / "results")
    path = tmp_path / "trial.toml"
    path.write_text("config = 'sample'\n[[cells]]\nname = 'plain'\nseeds = [1, 2]\n[[cells]]\nname = 'other'\n")
    options = [option.replace("FILE", str(path)) for option in options]
    monkeypatch.setattr(sys, "argv", ["experiment.py", options[0], str(path), *options[1:]])
    with pytest.raises(SystemExit) as raised:
        experiment.main()
    said = capsys.readouterr().err if raised.value.code == 2 else f"{raised.value.code}"
    assert said.endswith(expected.replace("FILE", str(path)) + "\n" * (raised.value.code == 2))


def test_a_named_cell_that_has_a_result_is_not_passed_over_in_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ledger, "LEDGER", tmp_path)
    result = write_result(RESULT, "plain-1")
    path = tmp_path / "trial.toml"
    path.write_text("config = 'sample'\n[[cells]]\nname = 'plain'\n")
    advice = "to repeat the cell, move this file away and give another --output"
    for named, expected in ((["--cell", "plain"], f"{result}: has the result already; {advice}\n"), ([], "")):
        monkeypatch.setattr(sys, "argv", ["experiment.py", "run", str(path), *named])
        experiment.main()
        assert capsys.readouterr().out == expected


@pytest.mark.parametrize("path", EXPERIMENTS, ids=[path.stem for path in EXPERIMENTS])
def test_the_ledger_has_results_of_the_experiments_as_they_are(path: Path) -> None:
    experiment = read_experiment(path)
    cells = {(cell.name, cell.seed): cell for cell in experiment.cells}
    settings = {key: settings_of(load_config(experiment.config, list(cell.settings))) for key, cell in cells.items()}
    for result in read_results(path.stem):
        if result.config:
            cell = cells[result.cell, result.seed]
            assert result.settings == settings[result.cell, result.seed]
            assert (result.models, result.teachers) == (list(cell.models), list(cell.teachers))
            assert result.parent == cell.parent
        for scores in result.scores.values():
            assert all(0 <= score.value <= 100 and score.signature for score in scores.values())


@pytest.mark.parametrize("name", ["tatoeba_small", "sample"])
def test_the_settings_of_a_result_are_its_whole_config(name: str, tmp_path: Path) -> None:
    config = load_config(
        name, ["train.seed=3", "train.threads=1", "model.attention={score: additive, options: {size: 64}}"]
    )
    (tmp_path / "empty.yaml").write_text("name: empty\n", encoding="utf-8")
    settings = settings_of(config)
    again = load_config(str(tmp_path / "empty.yaml"), settings)
    assert (again.text, again.model, again.decode) == (config.text, config.model, config.decode)
    assert (again.data.split, again.data.augment) == (config.data.split, config.data.augment)
    assert again.train == config.train.model_copy(update={"seed": 1, "threads": None})
    assert not any(each.startswith(("data.source", "name")) for each in settings)


def test_the_tables_show_the_ledger() -> None:
    for path in (tables.EXPERIMENTS, tables.LEADERBOARD):
        text = path.read_text(encoding="utf-8")
        assert tables.with_tables(text) == text


def test_the_log_begins_with_the_newest_attempt() -> None:
    text = (tables.MEASUREMENTS / "log.md").read_text(encoding="utf-8")
    dates = re.findall(r"^\| (\d{4}-\d\d-\d\d) \|", text, re.MULTILINE)
    assert dates == sorted(dates, reverse=True) != []


def test_results_are_stored_and_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "LEDGER", tmp_path)
    write_result(RESULT, "plain-1")
    write_result(variant("other", 2, 31.0, 30.5), "other-2")
    assert sorted(path.name for path in (tmp_path / "trial").iterdir()) == ["other-2.json", "plain-1.json"]
    other, plain = read_results("trial")
    assert plain == RESULT
    assert (other.bleu("valid"), other.bleu("test"), plain.bleu("test")) == (31.0, 30.5, None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"x": 1}', r"plain-1\.json: is not a result of the ledger \(experiment: Field required\)"),
        ("{", r"plain-1\.json: not valid JSON"),
        ('"seed": "one"', r"\(seed: Input should be a valid integer"),
    ],
)
def test_a_damaged_result_is_named(tmp_path: Path, text: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "LEDGER", tmp_path)
    path = write_result(RESULT, "plain-1")
    values = json.loads(path.read_text())
    if text.startswith('"'):
        text = json.dumps(values | json.loads(f"{{{text}}}"))
    path.write_text(text)
    with pytest.raises((ConfigError, DataError), match=expected):
        read_results("trial")


def test_cells_share_data_only_if_it_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "trial.toml"
    path.write_text(
        "config = 'sample'\nsource = ['a.tsv']\n[[cells]]\nname = 'plain'\n[[cells]]\nname = 'same'\n"
        "settings = ['train.epochs=1']\n[[cells]]\nname = 'other'\nsettings = ['data.split.seed=2']\n"
    )
    trial = read_experiment(path)
    monkeypatch.setattr(runs, "run", lambda *_: None)

    def data(cell: int, corpora: str) -> str:
        arguments = argparse.Namespace(corpora=tmp_path / corpora, threads=1)
        return runs.prepare_data(trial, trial.cells[cell], tmp_path, arguments).name

    assert data(0, "one") == data(1, "one")
    assert len({data(0, "one"), data(2, "one"), data(0, "two")}) == 3


def test_a_table_by_hand() -> None:
    results = [variant("plain", 1, 30.0), variant("better", 1, 31.0, 29.0), variant("better", 2, 33.0, 31.0)]
    header, _, first, second = tables.table_of(results).splitlines()
    assert header.startswith("| cell | seeds |")
    assert first == "| better | 2 | float32 | 1.2 | 2.0 | 2.0 | 2 | 2 | 200 | 32.00 ± 1.41 | 30.00 ± 1.41 |"
    assert second.endswith("| 30.00 | – |")
    results[1] = dataclasses.replace(results[1], threads=1, minutes=3.0, gflops=100)
    assert "| 2 | float32 | 1.2 | 2.0 | 2.0 | 1 / 2 | 3 / 2 | 100 / 200 | 32.00" in tables.table_of(results)
    results[1] = dataclasses.replace(results[1], threads=2, precision="bfloat16")
    assert "| 2 | bfloat16 / float32 | 1.2 | 2.0 | 2.0 | 2 / 2 | 3 / 2 | 100 / 200 | 32.00" in tables.table_of(results)


def test_a_table_of_alignments_by_hand() -> None:
    worse, second, first = variant("worse", 1, 1.0), variant("better", 2, 1.0), variant("better", 1, 1.0)
    worse = dataclasses.replace(worse, equal=889, alignment_error_rate=0.7, reading="sie: ⟨eos⟩ 0.62")
    first = dataclasses.replace(first, equal=920, alignment_error_rate=0.125, reading="sie: she 0.99", updates=1570)
    second = dataclasses.replace(second, equal=931, alignment_error_rate=0.2, reading="sie: she 0.98", updates=1570)
    _, _, *rows = tables.table_of_alignments([worse, second, first]).splitlines()
    assert rows == [
        "| better | 1, 2 | 1.2 | 1,570 | 920, 931 | 0.12, 0.20 | sie: she 0.99 |",
        "| worse | 1 | 1.2 | 10 | 889 | 0.70 | sie: ⟨eos⟩ 0.62 |",
    ]


def test_the_aligned_pairs_of_an_experiment_fit_their_links() -> None:
    rows = [line.split("\t") for line in (SCRIPTS / "experiments/tutorial_links.tsv").read_text().splitlines()]
    for src, tgt, links in rows:
        read = [tuple(map(int, re.split("[-?]", link))) for link in links.split()]
        assert {j for _, j in read} == set(range(len(tgt.split())))  # each word of the target has a link
        assert {i for i, _ in read} <= set(range(len(src.split())))


def test_a_leaderboard_by_hand() -> None:
    early, late = variant("old", 2, 40.25), variant("new", 1, 40.0)
    early = dataclasses.replace(early, finished="2026-01-31", revision="abc1234", total_minutes=2.5, gflops=400)
    late = dataclasses.replace(late, finished="2026-02-01", revision="def5678", total_minutes=3.25, gflops=1000)
    _, _, *rows = tables.leaderboard_of([early, late]).splitlines()
    assert rows == [
        "| new | 1 | 2026-02-01 | def5678 | 2 | 3.2 | 1000 | 3,250 | 40.00 |",
        "| old | 2 | 2026-01-31 | abc1234 | 2 | 2.5 | 400 | 1,000 | 40.25 |",
    ]


def test_reports_of_opennmt_are_read() -> None:
    line = "Step {}/200; acc: 24.1; sents: 3200; bsz: 920/ 983/64; 1325/1415 tok/s;    {} sec;\n"
    assert opennmt.read_seconds(line.format(50, 52) + line.format(100, 102)) == [52.0, 102.0]
    with pytest.raises(RunError, match="no progress"):
        opennmt.read_seconds(line.format(50, 52))


@pytest.mark.soak
def test_cells_are_trained_scored_and_not_trained_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ledger, "LEDGER", tmp_path / "results")
    words = ["one", "two", "three", "four", "five"]
    sentences = [
        " ".join(words[i % 5] for i in range(start, start + length)) for start in range(5) for length in (2, 3)
    ]
    for name, part in (("train", sentences), ("valid", sentences[:3]), ("test", sentences[3:5])):
        (tmp_path / f"{name}.src").write_text("".join(f"{line}\n" for line in part))
        (tmp_path / f"{name}.tgt").write_text("".join(f"{line.upper()}\n" for line in part))
    (tmp_path / "links.tsv").write_text("one two\tONE TWO\t0-0 1-1\nthree\tTHREE\t0-0\n")
    config = tmp_path / "tiny.yaml"
    config.write_text(
        "text: {tokenizer: whitespace}\ntrain: {max_updates: 3, precision: auto}\n"
        "model: {embedding_size: 8, encoder: {hidden_size: 8}, decoder: {hidden_size: 8}}\n"
    )
    path = tmp_path / "trial.toml"
    path.write_text(
        f"""\
config = "{config}"
source = ["train.src", "train.tgt", "valid.src", "valid.tgt", "test.src", "test.tgt"]
links = "links.tsv"
[[cells]]
name = "plain"
seeds = [1, 2]
[[cells]]
name = "both"
models = ["plain-1", "plain-2"]
[[cells]]
name = "student"
teachers = ["plain-1", "plain-2"]
[[cells]]
name = "continued"
parent = "trial/plain-1"
"""
    )
    command = ["run", str(path), "--threads", "1", "--output", str(tmp_path / "runs"), "--corpora", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["experiment.py", *command])
    experiment.main()
    assert capsys.readouterr().out.count("valid BLEU") == 5
    both, continued, first, second, student = read_results("trial")
    assert (first.updates, first.tokens, first.seed, second.seed) == (3, 3 * (25 + 10), 1, 2)
    assert first.alignment_error_rate in (0.0, 0.333, 0.667)  # "three" has one link, which is right
    assert all(re.fullmatch(r"\S+: \S+ [01]\.\d\d", part) for part in first.reading.split(", ") if part)
    assert (both.alignment_error_rate, first.equal) == (None, None)
    assert first.precision in ("float32", "bfloat16")
    assert (both.parameters, both.updates) == (2 * first.parameters, 6)
    assert student.updates == 3
    assert (continued.updates, continued.settings) == (3, first.settings)
    assert (both.models, student.teachers) == (["plain-1", "plain-2"], ["plain-1", "plain-2"])
    assert (continued.parent, continued.torch) == ("trial/plain-1", torch.__version__)
    run = load_config(str(tmp_path / "runs/trial/continued-1/config.yaml"))
    assert run.parent.run == str(tmp_path / "runs/trial/plain-1")
    (distilled,) = (tmp_path / "runs/trial").glob("*.distilled")
    assert (distilled / "train.src").read_text().splitlines() == 2 * sentences
    assert (distilled / "train.tgt").read_text().splitlines()[:10] == [line.upper() for line in sentences]
    experiment.main()
    assert capsys.readouterr().out == ""
    tested = ["test", *command[1:], "--cell", "plain", "--cell", "both"]
    monkeypatch.setattr(sys, "argv", ["experiment.py", *tested])
    experiment.main()
    assert capsys.readouterr().out.count("test BLEU") == 3
    both_splits = ["test", "valid"]
    scored = [sorted(result.scores) for result in read_results("trial")]
    assert scored == [both_splits, ["valid"], both_splits, both_splits, ["valid"]]
    experiment.main()
    assert capsys.readouterr().out == ""
