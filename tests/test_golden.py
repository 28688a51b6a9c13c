"""A data directory and a model of an earlier day (scripts/make_golden.py) mean today what they meant then."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli

from nmt.corpus.dataset import open_data
from nmt.system.files import read_json, write_json

GOLDEN = Path(__file__).parent / "golden"
EXPECTED: dict[str, Any] = read_json(GOLDEN / "expected.json")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a copy of the golden directories."""
    shutil.copytree(GOLDEN, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_data_directory_has_the_ids_it_had(here: Path) -> None:
    data = open_data(here / "data")
    splits = {"train": data.train, "valid": data.valid}
    assert {name: len(pairs) for name, pairs in splits.items()} == EXPECTED["pairs"]
    found = {
        name: [[pairs.src[index].tolist(), pairs.tgt[index].tolist()] for index in range(len(EXPECTED["ids"][name]))]
        for name, pairs in splits.items()
    }
    assert found == EXPECTED["ids"]
    assert [data.src_vocabulary.tokens, data.tgt_vocabulary.tokens] == EXPECTED["vocabularies"]


@pytest.mark.parametrize("form", ["model", "onnx"])
@pytest.mark.parametrize(
    ("beam_size", "batch_size"), [("1", 64), ("4", 1), ("4", 64), pytest.param("1", 1, marks=pytest.mark.soak)]
)
def test_the_model_and_its_export_give_the_translations_it_gave(
    here: Path, cli: Cli, form: str, beam_size: str, batch_size: int
) -> None:
    if form != "model":
        pytest.importorskip("onnxruntime")
        assert cli("export", "--model", "model", "--to", form, "--output", form).code == 0
    Path("in.txt").write_text("".join(f"{line}\n" for line in EXPECTED["sources"]), encoding="utf-8")
    options = ["--beam-size", beam_size, "--batch-size", batch_size, "--no-split-sentences"]
    assert cli("translate", "--model", form, "--input", "in.txt", "--output", "out.txt", *options).code == 0
    assert Path("out.txt").read_text(encoding="utf-8").split("\n")[:-1] == EXPECTED["translations"][beam_size]


def test_the_model_has_the_scores_it_had(here: Path, cli: Cli) -> None:
    assert cli("evaluate", "--model", "model", "--data", "data", "--json", "scores.json").code == 0
    scores = json.loads(Path("scores.json").read_text(encoding="utf-8"))["scores"]
    for name, expected in EXPECTED["scores"].items():
        assert scores[name]["value"] == pytest.approx(expected, abs=1e-6)


@pytest.mark.usefixtures("no_pictures")
def test_training_starts_from_the_data_and_from_the_model(here: Path, cli: Cli) -> None:
    fresh = ("train", "--config", "golden.yaml", "--data", "data", "--set", "train.max_updates=2")
    assert cli(*fresh, "--output", "fresh").code == 0
    assert cli(*fresh, "--output", "further", "--set", "parent=model").code == 0
    losses = [read_json(Path(run) / "best/model.json")["scores"]["loss"] for run in ("fresh", "further")]
    assert losses[1] < losses[0] - 1


def test_the_report_is_shown(here: Path, cli: Cli) -> None:
    outcome = cli("data", "data")
    assert outcome.code == 0
    assert f"{EXPECTED['pairs']['train']:,}" in outcome.out


@pytest.mark.parametrize(
    ("marker", "command", "message"),
    [
        ("data/data.json", "train --config golden.yaml --data data", "data: data format 99{}; preprocess again"),
        ("model/model.json", "translate --model model I", "model: model format 99{}; use the nmt that wrote it"),
    ],
)
def test_another_format_version_is_refused(here: Path, cli: Cli, marker: str, command: str, message: str) -> None:
    write_json(here / marker, {**read_json(here / marker), "format_version": 99})
    outcome, error = cli(*command.split()), message.format(", this version reads 1")
    assert (outcome.code, outcome.out, outcome.err) == (1, "", f"nmt: error: {error}\n")


def test_the_golden_files_are_small_and_have_no_absolute_path() -> None:
    files = [path for path in GOLDEN.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 300_000
    texts = {path: path.read_text(encoding="utf-8") for path in files if path.suffix in (".json", ".jsonl", ".yaml")}
    assert [path for path, text in texts.items() if '"/' in text or ": /" in text] == []
