"""`nmt export`: what is refused, and what stays when it fails."""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import Cli, Project, Refusal, errors, tree
from training_runs import train

from nmt.exporting import ctranslate2
from nmt.models.storage import SavedModel

FORMAT = pytest.importorskip("ctranslate2")
SETTINGS = (
    "model.encoder={kind: self_attention, hidden_size: 32, num_layers: 1}",
    "model.attention={score: general}",
    "model.decoder={kind: transformer, hidden_size: 32, num_layers: 1}",
    "decode={length_norm: average, max_length: 30}",
)


@pytest.fixture(scope="module")
def run(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Transformer after a few updates."""
    run = tmp_path_factory.mktemp("export") / "run"
    train(project, run, *SETTINGS, "train.max_updates=20")
    return run


def arguments(model: Path, output: Path, *more: object) -> tuple[object, ...]:
    return "export", "--model", model, "--to", "ctranslate2", "--output", output, *more


def test_an_export_lists_its_files_and_is_replaced_on_demand(run: Path, cli: Cli, tmp_path: Path) -> None:
    output = tmp_path / "out"
    assert cli(*arguments(run, output)).code == 0
    files = sorted(tree(output))
    assert json.loads((output / "export.json").read_text()) == {
        "format": "ctranslate2",
        "files": [name for name in files if name != "export.json"],
    }
    assert {"model.bin", "config.json", "README.md"} < set(files)
    assert "whitespace" in (output / "README.md").read_text(encoding="utf-8")  # how the text is split into words
    before = tree(output)
    again = cli(*arguments(run, output, "--quantization", "int8"))
    assert again.code == 1
    assert errors(again.err) == [
        f"nmt: error: {output}: contains an earlier result; add --overwrite or choose another --output"
    ]
    assert tree(output) == before
    assert cli(*arguments(run, output, "--quantization", "int8", "--overwrite")).code == 0
    assert (output / "model.bin").stat().st_size < len(before["model.bin"])
    (output / "notes.txt").write_text("mine")
    refused = cli(*arguments(run, output, "--overwrite"))
    assert "contains notes.txt, which is not part of an export; choose another --output" in refused.err
    assert (output / "notes.txt").read_text() == "mine"


def test_a_failure_leaves_nothing_new(run: Path, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = tmp_path / "out"
    assert cli(*arguments(run, output)).code == 0
    before = tree(tmp_path)

    def fill_the_disk(model: SavedModel, path: Path, quantization: str) -> Iterator[str]:
        (path / "model.bin").write_bytes(b"half")
        raise OSError(28, "No space left on device")
        yield ""

    monkeypatch.setattr(ctranslate2, "FORMAT", replace(ctranslate2.FORMAT, write=fill_the_disk))
    for more in ((), ("--overwrite",)):
        failed = cli(*arguments(run, output if more else tmp_path / "new", *more))
        assert failed.code == 1
        assert len(errors(failed.err)) == 1
        assert {path: data for path, data in tree(tmp_path).items() if not path.endswith(".lock")} == before


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (("--to", "onxx"), "known: ctranslate2, onnx, argos, hub, html; did you mean onnx?"),
        (("--quantization", "int4"), "--quantization int4: ctranslate2 has none, int8, float16"),
        (("--against", "run"), "--against: ctranslate2 holds one model; leave it out"),
        (("--output", "file"), "file: is a file; give a folder as --output"),
        (("--output", "full"), "full: contains other files (no export.json); choose another --output"),
        (("--output", "run/best/out"), "is inside the"),
        (("--model", "nowhere"), "nowhere: does not exist"),
        (("--model", "nowhere", "--to", "html", "--output", "a.txt"), "a.txt: give a file that ends in .html"),
        (("--model", "nowhere", "--output", "file"), "file: is a file; give a folder as --output"),
    ],
)
def test_what_cannot_be_written_is_said_in_one_line(
    given: tuple[str, str], expected: str, run: Path, refusal: Refusal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("text")
    Path("full").mkdir()
    Path("full/notes.txt").write_text("mine")
    Path("run").symlink_to(run)
    before = tree()
    assert expected in refusal(*arguments(run, tmp_path / "out", *given))
    assert tree() == before


def test_an_unknown_format_is_named_before_what_is_missing(cli: Cli) -> None:
    known = "known: ctranslate2, onnx, argos, hub, html; did you mean onnx?"
    assert cli("export", "--to", "onnxx").err == f"nmt: error: onnxx: no such export format; {known}\n"
    assert "Missing option '--output'" in cli("export", "--to", "onnx").err


@pytest.mark.parametrize("name", ["ctranslate2", "onnx"])
def test_a_missing_package_is_named_with_its_command(
    name: str, run: Path, refusal: Refusal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    said = refusal(*arguments(run, tmp_path / "out", "--to", name))
    assert said.endswith(f"{name} needs {name}: pip install {name}")


def test_a_model_of_another_family_is_told_what_keeps_it_and_what_to_do(
    project: Project, cli: Cli, tmp_path: Path
) -> None:
    refused = cli(*arguments(project.run, tmp_path / "out"))
    assert refused.code == 1
    lines = [line.removeprefix("nmt: error: ") for line in errors(refused.err)]
    keys = "model.encoder.kind", "model.decoder.kind", "decode.length_norm"
    assert [line.split(": ")[1] for line in lines[:-1]] == list(keys)
    assert lines[-1].startswith("a config for one: guide to exporting, Argos Translate and LibreTranslate; ")
    assert not (tmp_path / "out").exists()
