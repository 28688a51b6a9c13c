"""Reading corpora: tab-separated text, parallel files and Tatoeba's exports, plain or compressed, chunk by chunk."""

from __future__ import annotations

import itertools
import logging
from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from nmt.config import DataSection
from nmt.corpus import Pair
from nmt.corpus.lines import TOO_LONG, Lines, in_blocks, read_lines
from nmt.system.errors import DataError, list_names, shorten
from nmt.system.limits import OVERLONG
from nmt.text.languages import language_name

log = logging.getLogger(__name__)

SPLIT_NAMES = ("train", "valid", "test")
HEADER_WORDS = ("source", "src", "target", "tgt")
PLACES = 5
"""How many malformed lines are located in the report, per kind."""


@dataclass(frozen=True)
class Chunk:
    """Consecutive raw lines of a corpus, each ending in a line feed.

    Attributes:
        files: The file, or the two parallel files.
        first_line: Number of the first line, from 1.
        blocks: Lines of each file.
        columns: Which columns, from 1, hold source and target; None for parallel files.
    """

    files: tuple[str, ...]
    first_line: int
    blocks: tuple[bytes, ...]
    columns: tuple[int, int] | None = None


@dataclass
class LineReport:
    """What lines a corpus has.

    Attributes:
        read: Lines, or pairs of parallel lines.
        blank: Blank lines of a table, which are skipped.
        malformed: Number of malformed lines, which are skipped, by kind.
        places: FILE:LINE of the first of them, by kind.
    """

    read: int
    blank: int = 0
    malformed: dict[str, int] = field(default_factory=dict)
    places: dict[str, list[str]] = field(default_factory=dict)

    def skip(self, kind: str, *places: str, count: int = 1) -> None:
        """Count malformed lines, and locate the first of them."""
        self.malformed[kind] = self.malformed.get(kind, 0) + count
        self.places[kind] = [*self.places.get(kind, []), *places][:PLACES]

    def add(self, other: LineReport) -> None:
        """Add the report of a later part of the corpus."""
        self.read += other.read
        self.blank += other.blank
        for kind, count in other.malformed.items():
            self.skip(kind, *other.places[kind], count=count)

    def check(self, max_share: float | None) -> None:
        """Reject a corpus with too many malformed lines.

        Args:
            max_share: Maximum share of malformed lines; None allows none.

        Raises:
            DataError: More lines are malformed.
        """
        count = sum(self.malformed.values())
        if count <= (max_share or 0.0) * self.read:
            return
        kinds = []
        for kind, number in self.malformed.items():
            more = ["..."] if number > len(self.places[kind]) else []
            kinds.append(f"{number:,} {KINDS[kind]} ({', '.join([*self.places[kind], *more])})")
        advice = next((advice for kind, advice in ADVICE.items() if kind in self.malformed), "correct the file")
        if max_share is not None:
            advice += f", or raise data.max_malformed ({max_share:g}) above {count / self.read:.3g} to skip them"
        raise DataError(f"{count:,} of {self.read:,} lines are malformed: {'; '.join(kinds)}; {advice}")


KINDS = {
    "too_few_columns": "with too few columns",
    "not_utf8": "not UTF-8",
    "too_long": OVERLONG,
    "not_a_number": "without a sentence number",
}
"""Kinds of malformed lines, in words."""
ADVICE = {"not_utf8": "convert the file to UTF-8", "too_long": "write one sentence per line"}


class Source(ABC):
    """A corpus, or one split of it, that has not been read yet."""

    description: str

    @abstractmethod
    def chunks(self, report: LineReport) -> Iterator[Chunk]:
        """Raw lines, in order; lines skipped at this stage are counted in `report`."""

    @abstractmethod
    def reject_empty(self, report: LineReport) -> None:
        """Report that this corpus has no pair at all.

        Raises:
            DataError: Always.
        """


@dataclass(frozen=True)
class TabSeparated(Source):
    """One file of tab-separated columns.

    Attributes:
        path: The file.
        columns: Columns of source and target, from 1.
        first_lines: Lines to read; None reads all.
        languages: Codes and names of the languages: a first line of nothing else is a header.
    """

    path: Path
    columns: tuple[int, int]
    first_lines: int | None = None
    languages: tuple[str, ...] = ()

    @property
    def description(self) -> str:  # type: ignore[override]
        """The file and its columns."""
        return f"{self.path}: source in column {self.columns[0]}, target in column {self.columns[1]}"

    def chunks(self, report: LineReport) -> Iterator[Chunk]:
        """About a megabyte of lines at a time."""
        number = 1
        for lines in in_blocks(read_lines(self.path, self.first_lines), len):
            if number == 1 and self._is_header(header := _columns(lines[0])):
                log.warning(
                    f"{self.path}:1: {shorten(' | '.join(header))} is a header, not a sentence pair: skipped; if it is "
                    "a pair, move it to another line"
                )
                del lines[0]
                number += 1
            yield Chunk((str(self.path),), number, (b"".join(lines),), self.columns)
            number += len(lines)

    def _is_header(self, line: Sequence[str]) -> bool:
        """Whether the two columns of a line are different ones of a few words that name languages or sides."""
        names = {name.casefold() for name in (*self.languages, *HEADER_WORDS)}
        titles = {line[column - 1].casefold() for column in self.columns if column <= len(line)}
        return len(titles) == 2 and titles <= names

    def reject_empty(self, report: LineReport) -> None:
        """See `Source`."""
        if report.read == report.blank:
            raise DataError(f"{self.path}: empty; give a file with lines of source<TAB>target")
        if "too_few_columns" not in report.malformed:
            report.check(None)  # not a line of it is UTF-8
        src, tgt = self.columns
        widest = max(line.count(b"\t") for line in read_lines(self.path, self.first_lines)) + 1
        columns = "only one column" if widest == 1 else f"at most {widest} columns"
        raise DataError(
            f"{self.path}: no line has columns {src} and {tgt} ({columns} in {report.read:,} lines); write lines of "
            "source<TAB>target, set data.columns, or give two files of parallel text"
        )


@dataclass(frozen=True)
class Parallel(Source):
    """Two files, line by line translations of each other.

    Attributes:
        src: Source sentences.
        tgt: Target sentences.
        first_lines: Lines to read; None reads all.
    """

    src: Path
    tgt: Path
    first_lines: int | None = None

    @property
    def description(self) -> str:  # type: ignore[override]
        """Both files."""
        return f"{self.src} and {self.tgt}: parallel lines"

    def chunks(self, report: LineReport) -> Iterator[Chunk]:
        """About a megabyte of both files at a time, the same number of lines of each."""
        files = str(self.src), str(self.tgt)
        number = 1
        for rows in in_blocks(self._rows(), lambda row: len(row[0]) + len(row[1])):
            yield Chunk(files, number, tuple(map(b"".join, zip(*rows, strict=True))))
            number += len(rows)

    def _rows(self) -> Iterator[tuple[bytes, bytes]]:
        """Lines of both files side by side.

        Raises:
            DataError: One has more than the other.
        """
        files = [read_lines(path, self.first_lines) for path in (self.src, self.tgt)]
        for number, (src, tgt) in enumerate(itertools.zip_longest(*files)):
            if src is None or tgt is None:
                more = number + 1 + sum(1 for file in files for _ in file)
                totals = (number, more) if src is None else (more, number)
                raise DataError(
                    f"{self.src} and {self.tgt}: {totals[0]:,} and {totals[1]:,} lines; "
                    "parallel files need one sentence per line and the same number of lines"
                )
            yield src, tgt

    def reject_empty(self, report: LineReport) -> None:
        """See `Source`."""
        report.check(None)
        raise DataError(f"{self.src} and {self.tgt}: empty; give files with one sentence per line")


@dataclass(frozen=True)
class Export(Source):
    """Tatoeba's own export: sentences of two languages and the links between them.

    Sentences are lines of number, language, text (further columns are ignored); links are lines of two numbers.
    Links to other sentences are ignored, so a file with the links of all languages can be used.

    Attributes:
        src: Source sentences.
        tgt: Target sentences.
        links: Numbers of sentences that translate each other, in either order.
        first_lines: Links to read; None reads all.
    """

    src: Path
    tgt: Path
    links: Path
    first_lines: int | None = None

    @property
    def description(self) -> str:  # type: ignore[override]
        """All three files."""
        return f"{self.src} and {self.tgt}: sentences, linked by {self.links}"

    def chunks(self, report: LineReport) -> Iterator[Chunk]:
        """Linked sentences as parallel lines; all lines of all three files are counted."""
        src, tgt = (_NumberedSentences(path, report) for path in (self.src, self.tgt))
        number = 1
        for lines in in_blocks(read_lines(self.links, self.first_lines), len):
            numbers = _numbers(lines, self.links, number, report)
            given = np.concatenate([numbers, numbers[:, ::-1]], axis=1).reshape(-1, 2)
            src_rows, tgt_rows = src.find(given[:, 0]), tgt.find(given[:, 1])
            both = (src_rows >= 0) & (tgt_rows >= 0)
            blocks = src.lines.raw(src_rows[both]), tgt.lines.raw(tgt_rows[both])
            report.read += len(lines) - int(both.sum())  # `parse_chunk` counts those of the chunk
            yield Chunk((str(self.links), str(self.links)), number, blocks)
            number += len(lines)

    def reject_empty(self, report: LineReport) -> None:
        """See `Source`."""
        raise DataError(
            f"{self.links}: links no sentence of {self.src} to one of {self.tgt}; give the sentences of the source, "
            "those of the target (number<TAB>language<TAB>text) and the links (number<TAB>number), in this order"
        )


class _NumberedSentences:
    """Numbered sentences of one language.

    Args:
        path: A file of lines of number, language and text.
        report: Counts its lines.

    Raises:
        DataError: Its sentences are of several languages.
    """

    def __init__(self, path: Path, report: LineReport) -> None:
        text = bytearray()
        numbers, lengths = array("q"), array("q")
        languages: set[bytes] = set()
        for place, line in enumerate(read_lines(path, None), start=1):
            report.read += 1
            cells = line.rstrip(b"\r\n").split(b"\t")
            if line.isspace():
                report.blank += 1
            elif fault := _sentence_fault(line, cells):
                report.skip(fault, f"{path}:{place}")
            else:
                numbers.append(int(cells[0]))
                languages.add(cells[1])
                text += cells[2] + b"\n"
                lengths.append(len(cells[2]) + 1)
        if len(languages) > 1:
            names = list_names(sorted(language.decode("utf-8", "replace") for language in languages))
            raise DataError(f"{path}: sentences of {len(languages):,} languages ({names}); give those of one language")
        self.lines = Lines(text, np.array(lengths, dtype=np.int64))
        self._order = np.argsort(np.array(numbers, dtype=np.int64), kind="stable")
        self._numbers = np.array(numbers, dtype=np.int64)[self._order]

    def find(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rows of sentences by number; -1 for unknown numbers."""
        if not len(self._numbers):
            return np.full(len(numbers), -1)
        places = np.minimum(np.searchsorted(self._numbers, numbers), len(self._numbers) - 1)
        return np.where(self._numbers[places] == numbers, self._order[places], -1)


def _sentence_fault(line: bytes, cells: Sequence[bytes]) -> str | None:
    """What is wrong with a line of number, language and text, as one of `KINDS`; None if nothing is."""
    if line == TOO_LONG:
        return "too_long"
    if len(cells) < 3:
        return "too_few_columns"
    if not _is_number(cells[0]):
        return "not_a_number"
    return None if isinstance(_decode_line(cells[2]), str) else "not_utf8"


def _numbers(lines: Sequence[bytes], path: Path, first_line: int, report: LineReport) -> NDArray[np.int64]:
    """The two numbers of each line, [lines, 2]; malformed lines are counted."""
    links: list[tuple[int, int]] = []
    for number, line in enumerate(lines, start=first_line):
        cells = line.split()
        if len(cells) >= 2 and _is_number(cells[0]) and _is_number(cells[1]):
            links.append((int(cells[0]), int(cells[1])))
        elif cells:
            report.skip("too_long" if line == TOO_LONG else "not_a_number", f"{path}:{number}")
        else:
            report.blank += 1
    return np.array(links, dtype=np.int64).reshape(-1, 2)


def _is_number(cell: bytes) -> bool:
    return cell.isdigit() and len(cell) <= 18  # so that it fits into 64 bits


@dataclass(frozen=True)
class Corpus:
    """A corpus that is yet to be split, or one with ready-made splits.

    Attributes:
        train: All of an unsplit corpus, or the training split.
        given: Ready-made validation and test splits, by name.
    """

    train: Source
    given: dict[str, Source]


def open_corpus(paths: Sequence[Path], data: DataSection | None = None) -> Corpus:
    """Recognise the format of a corpus by its number of files.

    Every file is UTF-8, with or without a byte order mark, lines ending in LF or CRLF; it may be plain, compressed
    (.gz, .bz2, .xz) or a zip archive (.zip) of one file, not counting those whose names start with `_`.

    Args:
        paths: One tab-separated file; two parallel files (source, target); three files of a Tatoeba export (source
            sentences, target sentences, links); or four or six parallel files (source and target of train, valid
            and, with six, test).
        data: Columns and languages of a tab-separated file, whether to swap source and target, and how many lines to
            read of an unsplit corpus or of the training split; None is the default.

    Raises:
        DataError: There is no format with so many files.
    """
    data = data or DataSection()
    swap = -1 if data.reverse else 1
    if len(paths) == 1:
        languages = (*data.languages, *map(language_name, data.languages))
        src_column, tgt_column = data.columns[::swap]
        return Corpus(TabSeparated(paths[0], (src_column, tgt_column), data.first_lines, languages), {})
    if len(paths) == 3:
        src, tgt = paths[:2][::swap]
        return Corpus(Export(src, tgt, paths[2], data.first_lines), {})
    if len(paths) not in (2, 4, 6):
        raise DataError(
            f"sources: {len(paths)} files given; give 1 (tab-separated text), 2 (source, target), 3 (Tatoeba's "
            "sentences, sentences, links), 4 (source and target of train, then of valid) or 6 (the same and test)"
        )
    train, *given = (paths[place : place + 2][::swap] for place in range(0, len(paths), 2))
    ready = {name: Parallel(src, tgt) for name, (src, tgt) in zip(SPLIT_NAMES[1:], given, strict=False)}
    return Corpus(Parallel(train[0], train[1], data.first_lines), dict(ready))


def parse_chunk(chunk: Chunk) -> tuple[list[Pair], LineReport]:
    """Decode the lines of a chunk and take source and target from them: the one place where a pair's file is decoded.

    Returns:
        The pairs, and a report. If a line of one parallel file is malformed, the pair is skipped.
    """
    sides = [_decode(block) for block in chunk.blocks]
    report = LineReport(read=len(sides[0]))
    pairs = []
    for number, line in enumerate(zip(*sides, strict=True), start=chunk.first_line):
        malformed = next((place for place, text in enumerate(line) if isinstance(text, bytes)), None)
        if malformed is not None:
            kind = "too_long" if line[malformed] == TOO_LONG[:-1] else "not_utf8"
            report.skip(kind, f"{chunk.files[malformed]}:{number}")
            continue
        texts = cast(tuple[str, ...], line)
        if chunk.columns is None:
            pairs.append(Pair(texts[0], texts[1]))
            continue
        cells = texts[0].split("\t")
        if len(cells) >= max(chunk.columns):
            pairs.append(Pair(cells[chunk.columns[0] - 1], cells[chunk.columns[1] - 1]))
        elif texts[0].strip():
            report.skip("too_few_columns", f"{chunk.files[0]}:{number}")
        else:
            report.blank += 1
    return pairs, report


def read_pairs(source: Source) -> list[Pair]:
    """All pairs of a source that must not have malformed lines.

    Raises:
        DataError: A line is malformed, or there is none.
    """
    report = LineReport(0)
    pairs = []
    for chunk in source.chunks(report):
        parsed, lines = parse_chunk(chunk)
        pairs += parsed
        report.add(lines)
    if not pairs:
        source.reject_empty(report)
    report.check(None)
    return pairs


def _decode(block: bytes) -> list[str | bytes]:
    """Lines of UTF-8 without their line ends; one that is not UTF-8 stays bytes.

    Only LF ends a line, as in every other tool that counts lines: U+2028, U+0085 and form feeds do not.
    """
    try:
        lines: list[str | bytes] = [*block.decode("utf-8").split("\n")]
    except UnicodeDecodeError:
        lines = [_decode_line(line) for line in block.split(b"\n")]
    lines.pop()
    if b"\r" in block:
        lines = [line.removesuffix("\r") if isinstance(line, str) else line for line in lines]
    return lines


def _decode_line(line: bytes) -> str | bytes:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return line


def _columns(line: bytes) -> list[str]:
    """The columns of a line without spaces and quotes around them."""
    return [cell.strip(' "\r\n') for cell in line.decode("utf-8", "replace").split("\t")]
