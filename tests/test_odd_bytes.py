"""Bytes that are no UTF-8, lone surrogates and control characters: in corpora, sentences and file names."""

import os
import warnings
import zipfile
from pathlib import Path

import pytest
from conftest import GOLDEN_MODEL, Cli, Outcome

SURROGATE = b"\xed\xa0\x80"  # how U+D800 would look if UTF-8 had it
NAMES = [os.fsdecode(name) for name in (b"a\xff", b"a" + SURROGATE, b"a\x1b[2J", b"a\nb", "ä\u202eb\u2028".encode())]
LINES = [f"I have {n} .\tich habe {n} .".encode() for n in range(30)]
CONFIG = """
name: odd
data: {max_malformed: 0.5, split: {valid_size: 2, test_size: 3}}
text: {tokenizer: whitespace}
"""

each_name = pytest.mark.parametrize("name", NAMES, ids=ascii)


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_pictures: None) -> None:
    monkeypatch.chdir(tmp_path)
    Path("config.yaml").write_text(CONFIG, encoding="utf-8")


def preprocess(cli: Cli, *sources: object, output: object = "out") -> Outcome:
    options = [part for source in sources for part in ("--source", source)]
    return cli("preprocess", "--config", "config.yaml", "--output", output, *options)


def assert_taken_or_refused(outcome: Outcome, new: str) -> None:
    """Done, or an error and nothing left behind."""
    assert "Traceback" not in outcome.err
    assert outcome.code in (0, 1)
    assert outcome.code == 0 or "nmt: error: " in outcome.err
    assert Path(new).exists() == (outcome.code == 0)
    assert not [path for path in Path().iterdir() if path.name.startswith(".")]


def test_entities_make_no_surrogates(cli: Cli) -> None:
    odd = [b"a %s .\tb &#x%x; ." % (b"&#55296;&#xDFFF;", 0xD800 + n) for n in range(5)]
    Path("a.tsv").write_bytes(b"\n".join([*LINES, *odd]))
    assert preprocess(cli, "a.tsv").code == 0
    for path in Path("out").rglob("*.json*"):
        path.read_text(encoding="utf-8")


@each_name
def test_a_corpus_and_an_output_of_an_odd_name(cli: Cli, name: str) -> None:
    for source, output in ((name, "out"), ("a.tsv", f"data {name}")):
        Path(source).write_bytes(b"\n".join(LINES))
        outcome = preprocess(cli, source, output=output)
        assert_taken_or_refused(outcome, output)
        if outcome.code == 0:
            assert cli("data", output).code == 0


@each_name
def test_an_archive_whose_member_has_an_odd_name(cli: Cli, name: str) -> None:
    with warnings.catch_warnings(action="ignore"), zipfile.ZipFile("a.zip", "w") as archive:
        try:
            archive.writestr(name, b"\n".join(LINES))
        except UnicodeError:
            pytest.skip("no zip holds such a name")
    assert preprocess(cli, "a.zip").code == 0


@each_name
@pytest.mark.parametrize("option", ["--input", "--output", "--attention"])
def test_a_translation_of_an_odd_name(cli: Cli, name: str, option: str) -> None:
    new = name if option != "--input" else "out.txt"
    if option == "--attention":
        outcome = cli(
            "translate", os.fsdecode(b"Hello \xff."), "--model", GOLDEN_MODEL, option, name, "--output", "out.txt"
        )
    else:
        files = {"--input": "in.txt", "--output": "out.txt", option: name}
        Path(files["--input"]).write_bytes(b"Hello.\n")
        outcome = cli("translate", "--model", GOLDEN_MODEL, *[part for pair in files.items() for part in pair])
        assert outcome.code == 0
    assert_taken_or_refused(outcome, new)


@each_name
@pytest.mark.parametrize("command", [["preprocess", "-s"], ["translate", "-i"], ["data"], ["preprocess", "-c"]])
def test_a_missing_file_of_an_odd_name_is_an_error(cli: Cli, name: str, command: list[str]) -> None:
    outcome = cli(*command, f"{name}.tsv", *["--output", "out"] * (command[0] == "preprocess"))
    assert_taken_or_refused(outcome, "out")
    assert outcome.code == 1


SENTENCES = [b"\xff", b"a \xff", b"Hi" + SURROGATE, b"\xed\xb3\xbf", b"\xf4\x90\x80\x80", b"\xc3", b"\x1b[2J", b"\ra"]


@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_sentence_of_odd_bytes_has_one_translation(cli: Cli, sentence: bytes) -> None:
    outcome = cli("translate", os.fsdecode(sentence), "--model", GOLDEN_MODEL)
    assert outcome.code == 0
    assert outcome.out.count("\n") == 1
    assert outcome.out[:-1].isprintable()
    odd = b"\x1b" not in sentence and b"\r" not in sentence
    assert outcome.err.splitlines() == ["WARNING: line 1: not UTF-8; invalid bytes became U+FFFD"] * odd
