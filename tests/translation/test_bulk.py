"""A file translated into a file: in windows, in order, and the same after a kill."""

import _thread
import itertools
import json
import os
import re
from pathlib import Path

import pytest
from conftest import GOLDEN_MODEL, Cli
from hypothesis import given
from hypothesis import strategies as st
from test_kills import run_killed

import nmt
from nmt.corpus.lines import in_blocks

NUMBER = 50
OPTIONS = ("--model", str(GOLDEN_MODEL), "--beam-size", "2", "--batch-size", "1")  # 16 lines a window


@pytest.fixture
def given_file(tmp_path: Path) -> Path:
    words = ["I", "you", "he", "rain", "old", "is", "the", "a", "works", "sleeps"]
    path = tmp_path / "in.txt"
    lines = (" ".join(words[(n * k) % 10] for k in range(n % 7)) for n in range(NUMBER))
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@given(st.lists(st.text("ab", max_size=3)), st.integers(1, 5))
def test_windows_have_a_number_of_lines(lines: list[str], size: int) -> None:
    windows = list(in_blocks(lines, len, most=size))
    assert windows == [lines[start : start + size] for start in range(0, len(lines), size)]


def test_a_window_of_long_lines_is_short() -> None:
    lines = ["a" * 4, "b" * 6, "c", "d" * 50, "e"]
    assert list(in_blocks(lines, len, 10, 99)) == [["aaaa", "bbbbbb"], ["c", "d" * 50], ["e"]]


@pytest.mark.parametrize("options", [("--format", "jsonl"), pytest.param(("--n-best", "2"), marks=pytest.mark.soak)])
def test_a_killed_translation_is_gone_on_with_byte_for_byte(
    cli: Cli, tmp_path: Path, given_file: Path, options: tuple[str, ...]
) -> None:
    whole, output = tmp_path / "whole.txt", tmp_path / "out.txt"
    command = ["translate", *OPTIONS, *options, "--input", str(given_file)]
    done = cli(*command, "--output", whole)
    assert (done.code, done.out) == (0, "")
    assert re.fullmatch(r"50 lines in \d+\.\d\d s \([\d,]+ per second\)\n", done.err)
    command += ["--output", str(output)]
    assert run_killed("os.fsync", 3, command)
    with (tmp_path / ".out.txt.partial").open("ab") as file:
        file.write(b"half a li")
    refused = cli(*command, "--resume", "--beam-size", 3)
    assert refused.code == 1
    assert refused.err.startswith(f"nmt: error: {output}: ")
    assert "beam_size (2 there, 3 here)" in refused.err
    resumed = cli(*command, "--resume")
    assert resumed.code == 0, resumed.err
    begin, end = resumed.err.splitlines()
    assert begin == f"{output}: resuming after 32 lines"
    assert end.startswith("18 lines in ")
    assert output.read_bytes() == whole.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "out.txt", "whole.txt"]


def test_an_interrupted_one_is_kept_where_it_is_to_be_resumed(
    cli: Cli, tmp_path: Path, given_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["translate", *OPTIONS, "--input", str(given_file), "--output", str(tmp_path / "out.txt")]

    def interrupted(*options: str) -> list[str]:
        """What is left of a command that Ctrl-C met in its second window."""
        with monkeypatch.context() as patched:
            calls = itertools.count()
            synchronise = os.fsync
            patched.setattr(
                os, "fsync", lambda file: synchronise(file) if next(calls) < 1 else _thread.interrupt_main()
            )
            assert cli(*command, *options).code == 130
        return sorted(path.name for path in tmp_path.iterdir() if path.name != "in.txt")

    assert interrupted() == []
    assert interrupted("--resume") == [".out.txt.partial", ".out.txt.partial.json"]
    with given_file.open("a", encoding="utf-8") as file:
        file.write("one more\n")
    refused = cli(*command, "--resume")
    assert refused.code == 1
    assert "input (" in refused.err
    assert "beam_size" not in refused.err
    begun = cli(*command)
    assert begun.code == 0
    assert begun.err.startswith(f"WARNING: {tmp_path / 'out.txt'}: ")
    assert " unfinished lines are deleted" in begun.err
    assert (tmp_path / "out.txt").read_text(encoding="utf-8").count("\n") == NUMBER + 1


@pytest.mark.parametrize("options", [("a b",), ("--input", "in.txt"), ("--input", "in.txt", "--output", "/dev/null")])
def test_only_a_file_can_be_gone_on_with(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given_file: Path, options: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    found = cli("translate", *OPTIONS, *options, "--resume")
    assert found.code == 1
    assert found.err.startswith("nmt: error: --resume ")


def test_python_translates_files_too(tmp_path: Path, given_file: Path) -> None:
    translator = nmt.load(GOLDEN_MODEL, device="cpu", beam_size=1)
    nmt.translate_file(translator, given_file, tmp_path / "out.jsonl", format="jsonl")
    found = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    sources = given_file.read_text(encoding="utf-8").splitlines()
    assert [each["source"] for each in found] == sources
    expected = [translation.text for translation in translator.translate(sources)]
    assert [each["translations"][0]["text"] for each in found] == expected
    with pytest.raises(nmt.DataError, match="target"):
        nmt.translate_file(translator, given_file, given_file)
