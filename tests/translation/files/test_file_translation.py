"""Files with markup through the real command: formats, options that do not fit, interruption, and bad files."""

import json
from pathlib import Path

import pytest
from conftest import GOLDEN_MODEL, Cli, Refusal, names
from file_samples import SAMPLES, format_of, read, same, texts, write

import nmt
from nmt.system.errors import ConfigError
from nmt.translation import file_translation
from nmt.translation.files.file_format import MAX_FILE
from nmt.translation.files.registry import FILE_FORMATS


@pytest.fixture(scope="module")
def translator() -> nmt.Translator:
    return nmt.load(GOLDEN_MODEL, device="cpu", beam_size=1)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """The samples as files."""
    paths = {}
    for sample, content in SAMPLES.items():
        paths[sample] = tmp_path / f"{sample.replace(' ', '')}{format_of(sample).suffixes[0]}"
        paths[sample].write_bytes(content)
    return paths


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_file_whose_texts_do_not_change_comes_back(sample: str) -> None:
    if format_of(sample).name in ("po", "xliff"):
        done = write(read(sample), same)
        assert write(read(sample, done), str.upper) == done
    else:
        assert write(read(sample), same) == SAMPLES[sample]


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_command_translates_each_text(sample: str, files: dict[str, Path], cli: Cli, tmp_path: Path) -> None:
    command = ("translate", "--model", GOLDEN_MODEL, "--beam-size", 1, "-i", files[sample])
    done = cli(*command, "--output", tmp_path / "out")
    assert done.code == 0
    number = len(texts(read(sample)))
    assert done.err.startswith(f"{number} text")
    content = (tmp_path / "out").read_bytes()
    assert content != SAMPLES[sample]
    if not content.startswith(b"PK"):
        piped = cli(*command)
        assert (piped.code, piped.out.encode()) == (0, content)
    assert sorted(names(tmp_path)) == sorted([*(path.name for path in files.values()), "out"])


def test_the_name_of_a_format_takes_the_place_of_the_suffix(cli: Cli, tmp_path: Path) -> None:
    given = tmp_path / "messages.txt"
    given.write_text('msgid "I am old."\nmsgstr ""\n', encoding="utf-8")
    command = ("translate", "--model", GOLDEN_MODEL, "-i", given)
    assert cli(*command).out.count("msgstr") == 0  # plain text
    assert cli(*command, "--format", "po").out.startswith('#, fuzzy\nmsgid "I am old."\nmsgstr "Ich')
    (tmp_path / "a.po").write_bytes(given.read_bytes())
    assert (
        cli("translate", "--model", GOLDEN_MODEL, "-i", tmp_path / "a.po", "--format", "text").out.count("msgstr") == 0
    )


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tmx", "x"),
        ("a.RTF", "x"),
        ("a", "<?xml version='1.0'?>\n<a/>"),
        ("a.en", "\ufeff\n<!DOCTYPE html>"),
        ("a.sub", "1\n00:00:01,000 --> 00:00:02,000\nI am\n"),
        ("a.lang", '# x\n\nmsgid "a"\nmsgstr ""\n'),
    ],
)
def test_markup_that_no_format_reads_is_refused(refusal: Refusal, tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    expected = "has markup that would be translated; files are read as " + ", ".join(FILE_FORMATS)
    assert refusal("translate", "--model", GOLDEN_MODEL, "-i", tmp_path / name).startswith(
        f"{tmp_path / name}: {expected}"
    )


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.xlsx", b"PK\x03\x04\x14\x00"),
        ("a.PPTX", b""),
        ("a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1"),
        ("a.bak", b"%PDF-1.7"),
        ("a", b"PK\x03\x04\x14\x00"),
        ("a.en", b"\xd0\xcf\x11\xe0\xa1\xb1"),
    ],
)
def test_a_binary_file_that_no_format_reads_is_not_advised_to_be_text(
    refusal: Refusal, tmp_path: Path, name: str, content: bytes
) -> None:
    (tmp_path / name).write_bytes(content)
    message = refusal("translate", "--model", GOLDEN_MODEL, "-i", tmp_path / name)
    read_as = f"files are read as {', '.join(FILE_FORMATS)}: name one by --format"
    ways = "or save it as docx or odt, or its texts as a text file with one on each line"
    assert message == f"{tmp_path / name}: is not text; {read_as}, {ways}"


def test_plain_text_is_what_it_was(cli: Cli, tmp_path: Path) -> None:
    for name in ("a.txt", "a.en", "a"):
        (tmp_path / name).write_text("I am old.\n", encoding="utf-8")
        assert cli("translate", "--model", GOLDEN_MODEL, "-i", tmp_path / name).out == "Ich bin jung.\n"


def test_options_for_lines_are_refused(files: dict[str, Path], refusal: Refusal, tmp_path: Path) -> None:
    command = ("translate", "--model", GOLDEN_MODEL, "-i", files["po"])
    shown = "a PO file has one translation of each text; leave it out, or take the file as lines with --format jsonl"
    assert refusal(*command, "--n-best", 2) == f"--n-best 2: {shown}"
    assert refusal(*command, "--with-attention") == f"--with-attention: {shown}"
    (tmp_path / "a.txt").write_text("I am old.\n", encoding="utf-8")
    text = ("translate", "--model", GOLDEN_MODEL, "-i", tmp_path / "a.txt")
    assert refusal(*text, "--retranslate") == "--retranslate is for files with markup: give one as --input"


def test_an_interrupted_translation_is_continued_by_its_texts(
    files: dict[str, Path], translator: nmt.Translator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_translation, "WINDOW_CHARACTERS", 1)  # a text each
    whole, parts = tmp_path / "whole.po", tmp_path / "parts.po"
    nmt.translate_file(translator, files["po"], whole)
    translate = file_translation.translate_segments
    done: list[str] = []

    def stop_after_two(translator: nmt.Translator, segments: list[object], *rest: object) -> list[str]:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.extend(map(str, segments))
        return translate(translator, segments, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(file_translation, "translate_segments", stop_after_two)
    with pytest.raises(KeyboardInterrupt):
        nmt.translate_file(translator, files["po"], parts, resume=True)
    assert not parts.exists()
    stored = (tmp_path / ".parts.po.partial").read_text(encoding="utf-8").splitlines()
    assert [type(json.loads(line)) for line in stored] == [str, str]
    monkeypatch.setattr(file_translation, "translate_segments", translate)
    nmt.translate_file(translator, files["po"], parts, resume=True)
    assert parts.read_bytes() == whole.read_bytes()
    assert not [name for name in names(tmp_path) if "partial" in name]


def test_a_large_file_and_one_that_cannot_be_written_are_refused(
    files: dict[str, Path], refusal: Refusal, tmp_path: Path
) -> None:
    large = tmp_path / "large.srt"
    with large.open("wb") as file:
        file.truncate(200_000_000)
    command = ("translate", "--model", GOLDEN_MODEL, "-i")
    assert refusal(*command, large) == f"{large}: has 200,000,000 bytes, more than the limit of {MAX_FILE:,}"
    files["srt"].rename(tmp_path / "a.vtt")
    assert refusal(*command, tmp_path / "a.vtt", "-o", tmp_path / "out").endswith("it is no WebVTT file")
    assert "out" not in " ".join(names(tmp_path))


def test_from_python_more_than_the_best_translation_is_refused(
    files: dict[str, Path], translator: nmt.Translator
) -> None:
    with pytest.raises(ConfigError, match="`with_attention=True`: an HTML file has one translation of each text"):
        nmt.translate_file(translator, files["html"], "out", with_attention=True)
