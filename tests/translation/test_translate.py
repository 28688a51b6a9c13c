import io
import tracemalloc
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from conftest import GOLDEN_MODEL, Cli, Project

from nmt.system.errors import DataError
from nmt.system.limits import MAX_LINE
from nmt.translation.input import stream_lines

LONGEST = b"a " * (MAX_LINE // 2)


class Chunks(io.BufferedIOBase):
    """A stream that gives one chunk after another."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self.chunks = iter(chunks)

    def read1(self, size: int = -1, /) -> bytes:
        return next(self.chunks, b"")


def read(content: bytes) -> tuple[list[str], list[str]]:
    """Lines, and what is said about them."""
    said: list[str] = []
    lines = [line.text for lines in stream_lines(io.BytesIO(content), "in.txt", said.append) for line in lines]
    return lines, said


@pytest.mark.parametrize(
    ("line", "cut"),
    [
        (LONGEST, False),
        (LONGEST[:-2] + "ä".encode(), False),
        (LONGEST[:-1] + b"\r", False),
        (LONGEST + b"b", True),
        (LONGEST * 3, True),
        (LONGEST + b"\xff", True),
    ],
)
@pytest.mark.parametrize("end", [b"\n", b""])
def test_one_megabyte_of_a_line_is_read(line: bytes, cut: bool, end: bytes) -> None:
    lines, said = read(b"first\n" + line + b"\nthird\n" + LONGEST + b"more" + end)
    assert lines == ["first", line[:MAX_LINE].decode().removesuffix("\r"), "third", LONGEST.decode()]
    number = 2 if cut else 4
    assert said == [
        f"line {number}: longer than 1 MB; the rest was ignored",
        *["2 lines in all: longer than 1 MB"] * cut,
    ]


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize(("last", "end"), [("e", ""), ("e\r", "\r"), ("e\r\n", "\r\n"), ("\n", "\n")])
def test_each_line_has_its_own_end(size: int, last: str, end: str) -> None:
    content = f"a\n\r\nb\r\r\nc\rd\r\n{last}".encode()
    chunks = Chunks(content[begin : begin + size] for begin in range(0, len(content), size))
    lines = [line for lines in stream_lines(chunks, "in.txt", None) for line in lines]
    expected = [("a", "\n"), ("", "\r\n"), ("b\r", "\r\n"), ("c\rd", "\r\n"), (last.strip(), end)]
    assert lines == expected


def test_a_line_that_is_cut_has_its_own_end() -> None:
    chunks = Chunks([LONGEST, b"b\nc", LONGEST, b"more\r", b"\n", LONGEST * 2, b"\r"])
    lines = [line for lines in stream_lines(chunks, "in.txt", lambda text: None) for line in lines]
    assert [len(line.text) for line in lines] == [MAX_LINE] * 3
    assert [line.end for line in lines] == ["\n", "\r\n", "\r"]


@pytest.mark.parametrize("character", ["é", "日", "🙂"])
@pytest.mark.parametrize("kept", [0, 1, 2, 3, 4])
def test_a_character_is_not_cut_in_two(character: str, kept: int) -> None:
    begin = "x" * (MAX_LINE - kept)
    lines, said = read(f"{begin}{character * 9}\n".encode())
    whole, half = divmod(kept, len(character.encode()))
    assert lines == [begin + character * whole]
    assert len(lines[0].encode()) == MAX_LINE - half
    assert said == ["line 1: longer than 1 MB; the rest was ignored"]


def test_each_problem_is_reported_once_and_counted() -> None:
    lines, said = read(b"a\nb\xff\0\nc\xfe\0\n" + LONGEST + b"\xff" * 100 + b"\n" + LONGEST * 2)
    assert lines == ["a", "b\ufffd\0", "c\ufffd\0", LONGEST.decode(), LONGEST.decode()]
    assert said == [
        "line 2: not UTF-8; invalid bytes became U+FFFD",
        "line 2: has NUL characters, as UTF-16 does; convert it to UTF-8 first",
        "line 4: longer than 1 MB; the rest was ignored",
        "2 lines in all: not UTF-8",
        "2 lines in all: has NUL characters, as UTF-16 does",
        "2 lines in all: longer than 1 MB",
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"\xff", "not UTF-8; convert it to UTF-8 first"),
        (b"\0", "has NUL characters, as UTF-16 does; convert it to UTF-8 first"),
        (LONGEST + b"b", "longer than 1 MB; write one sentence per line"),
    ],
)
def test_problems_of_lines_can_be_errors(line: bytes, reason: str) -> None:
    with pytest.raises(DataError) as caught:
        list(stream_lines(io.BytesIO(b"a\n" + line + b"\n"), "in.txt", None))
    assert str(caught.value) == f"in.txt: line 2: {reason}"


def test_a_line_that_is_refused_is_not_read_to_its_end() -> None:
    def endless() -> Iterator[bytes]:
        yield from [b"a" * 65_536] * 32
        pytest.fail("the line is read on")

    with pytest.raises(DataError, match=r"in\.txt: line 1: longer than 1 MB"):
        list(stream_lines(Chunks(endless()), "in.txt", None))


def test_a_long_line_has_one_translation(cli: Cli, tmp_path: Path) -> None:
    given = tmp_path / "in.txt"
    given.write_bytes(b"Hello.\n" + b"So far " * MAX_LINE + b"\nGood night.\n")
    found = cli("translate", "--model", GOLDEN_MODEL, "-i", given, "--beam-size", 1, "--no-split-sentences")
    assert found.code == 0
    first, _, third, end = found.out.split("\n")
    given.write_bytes(b"Hello.\nGood night.\n")
    assert cli("translate", "--model", GOLDEN_MODEL, "-i", given, "--beam-size", 1).out == f"{first}\n{third}\n"
    assert end == ""
    assert found.err.splitlines() == [
        "WARNING: line 2: longer than 1 MB; the rest was ignored",
        "WARNING: line 2: longer than 1000 tokens; the rest was ignored",
    ]


def test_an_empty_file_is_named(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "in.txt").touch()
    found = cli("translate", "--model", GOLDEN_MODEL, "--input", tmp_path / "in.txt")
    assert (found.code, found.out) == (0, "")
    assert found.err == f"{tmp_path / 'in.txt'}: is empty; nothing is translated\n"


def test_sentences_of_a_line_are_translated_one_by_one(cli: Cli, tmp_path: Path) -> None:
    def translate(text: str, *options: str) -> list[str]:
        (tmp_path / "in.txt").write_text(text, encoding="utf-8")
        found = cli("translate", "--model", GOLDEN_MODEL, "-i", tmp_path / "in.txt", "--beam-size", 2, *options)
        assert (found.code, found.err) == (0, "")
        return found.out.split("\n")[:-1]

    apart = translate("He is old.\nShe was happy!\nIs it?\n")
    assert translate("He is old. She was happy! Is it?\n\n") == [" ".join(apart), ""]
    assert translate("  He is old.   She was happy!\tIs it? \n") == ["  {}   {}\t{} ".format(*apart)]
    (whole,) = translate("He is old. She was happy! Is it?\n", "--no-split-sentences")
    assert whole != " ".join(apart)
    first, second = translate("He is old.\nShe was happy!\n", "--format", "pharaoh")
    shifted = [tuple(map(int, link.split("-"))) for link in second.split()]
    words = len(apart[0].split())
    expected = [first, *(f"{i + 3}-{j + words}" for i, j in shifted)]
    assert translate("He is old. She was happy!\n", "--format", "pharaoh") == [" ".join(expected)]


def test_scores_do_not_depend_on_sentences(cli: Cli, tmp_path: Path) -> None:
    src, hypotheses = tmp_path / "src", tmp_path / "hypotheses"
    src.write_text("He is old. She was happy!\n", encoding="utf-8")
    command = ("--model", GOLDEN_MODEL, "--beam-size", 2)
    assert cli("evaluate", *command, "--src", src, "--ref", src, "--hypotheses", hypotheses).code == 0
    whole = cli("translate", *command, "--input", src, "--no-split-sentences")
    assert hypotheses.read_text(encoding="utf-8") == whole.out


@pytest.mark.parametrize("option", ["--src", "--ref"])
def test_a_long_line_is_not_evaluated(cli: Cli, tmp_path: Path, option: str) -> None:
    good, bad = tmp_path / "good.txt", tmp_path / "bad.txt"
    good.write_bytes(b"a b\nc d\n")
    bad.write_bytes(b"a b\n" + LONGEST + b"c\n")
    files = {"--src": good, "--ref": good, option: bad}
    found = cli("evaluate", "--model", GOLDEN_MODEL, *[part for pair in files.items() for part in pair])
    assert found.code == 1
    assert found.err == f"nmt: error: {bad}: line 2: longer than 1 MB; write one sentence per line\n"


def test_no_more_of_a_line_is_held_than_is_read() -> None:
    peaks = []
    for number in (32, 640):
        line = [b" " * 65_536] * number
        tracemalloc.start()
        chunks = Chunks([*line, b"\n", *line])
        lines = [line.text for lines in stream_lines(chunks, "in.txt", print) for line in lines]
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert list(map(len, lines)) == [MAX_LINE] * 2
    assert peaks[1] < peaks[0] + MAX_LINE


def test_an_input_that_cannot_be_read_is_named(project: Project, cli: Cli) -> None:
    for command in (
        ["translate", "--input", "/proc/self/mem"],
        ["evaluate", "--src", "/proc/self/mem", "--ref", "/proc/self/mem"],
    ):
        found = cli(*command, "--model", project.run)
        assert found.code == 1
        assert found.err == "nmt: error: /proc/self/mem: cannot be read (Input/output error)\n"
