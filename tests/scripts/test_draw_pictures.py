"""Pictures say what run they show, and which of them are out of date."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Outcome, Project
from draw_pictures import describe_run, main, scores_of, stamp
from PIL import Image

import nmt
from nmt.config import choose_by_amount, dump_config, load_config, resolve_auto
from nmt.system.files import read_json


def picture(path: Path, **metadata: str) -> Path:
    Image.new("RGB", (3, 2), "red").save(path)
    stamp(path, metadata)
    return path


@pytest.fixture
def draw(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Runs the script."""

    def run(*arguments: str | Path) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["draw_pictures.py", *map(str, arguments)])
        with pytest.raises(SystemExit) as leaving:
            main()
        return Outcome(int(leaving.value.code or 0), *capsys.readouterr())

    return run


def test_pictures_of_another_config_are_listed(tmp_path: Path, draw: Callable[..., Outcome]) -> None:
    shipped = load_config("sample")
    machine = ["data.source=[elsewhere.tsv]", "data.licence=none", "train.precision=bfloat16"]
    picture(tmp_path / "same.png", config=dump_config(load_config(shipped, machine)))
    numbers = resolve_auto(load_config("tatoeba_small"), choose_by_amount(20_000))  # what a run stores in place of auto
    picture(tmp_path / "automatic.png", config=dump_config(numbers))
    assert draw("--check", "--output", tmp_path) == Outcome(0, "", "")
    text = dump_config(load_config(shipped, ["train.epochs=3", "model.dropout=0.25"]))
    other = picture(tmp_path / "other.png", config=text)
    older = picture(tmp_path / "older.png", config=text + "forgotten: 1\n")
    (tmp_path / "torn.png").write_bytes(other.read_bytes()[:20])
    unknown = picture(tmp_path / "unknown.png")
    found = draw("--check", "--output", tmp_path)
    assert (found.code, found.err) == (1, "")
    lines = found.out.splitlines()
    assert lines[1] == f"{other}: model.dropout (0.25 there, 0.2 here), train.epochs (3 there, 16 here)"
    assert lines[0].startswith(f"{older}: ")
    assert "forgotten" in lines[0]
    assert lines[2].startswith(f"{tmp_path}/torn.png: ")
    assert lines[3].startswith(f"{unknown}: ")
    assert len(lines) == 4


def test_a_picture_holds_what_its_run_says(here: Project, tmp_path: Path) -> None:
    metadata = describe_run(here.run)
    path = picture(tmp_path / "a.png", commit="c", **metadata)
    with Image.open(path) as image:
        assert image.convert("RGB").getpixel((2, 1)) == (255, 0, 0)
        assert image.text == {"commit": "c", **metadata}
    assert metadata["valid"] == f"bleu {read_json(here.run / 'run.json')['best']:.2f}"
    assert metadata["test"] == f"BLEU {nmt.evaluate(here.run).bleu:.2f}"
    assert "name: reversal" in metadata["config"]
    assert str(tmp_path.parent) not in metadata["config"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--commit"),
        (["--check", "--output", "nowhere"], "nowhere: no such folder"),
        (["--commit", "abc", "--real", "nowhere"], "nowhere"),
        (["--commit", "abc", "--chromium", "no-such-program"], "no-such-program: no such program"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], message: str, tmp_path: Path, draw: Callable[..., Outcome]
) -> None:
    browser = ["--chromium", sys.executable] if "--chromium" not in arguments else []
    found = draw("--output", tmp_path, *browser, *arguments)
    assert found.code == 1
    assert found.err.startswith("error: ")
    assert found.err.count("\n") == 1
    assert message in found.err


def test_amounts_of_text_are_read_from_the_ledger() -> None:
    """Two seeds; of OpenNMT-py the dropout that is better on valid."""
    ours, theirs = scores_of("multi30k_amounts", "3,000 pairs, constant rate", "3,000 pairs")
    assert (ours, theirs) == (pytest.approx((24.00 + 23.54) / 2), 19.85)
