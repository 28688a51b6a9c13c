"""Reading corpora, plain or compressed, chunk by chunk: tables, parallel files, Tatoeba's exports, TMX."""

from __future__ import annotations

import itertools
import logging
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nmt.config import DataSection
from nmt.corpus import Pair
from nmt.corpus.endings import check_endings
from nmt.corpus.lines import CSV, LONG_CELL, TOO_LONG, UNPACK, encode_pairs, in_blocks, read_file_lines, read_rows
from nmt.corpus.tmx import Unit, read_units
from nmt.system.errors import DataError, list_names, shorten
from nmt.system.limits import OVERLONG
from nmt.system.messages import Message, Parameter
from nmt.text.direction import Direction
from nmt.text.languages import base_language, is_language, language_name

log = logging.getLogger(__name__)

TMX = ".tmx"
"""A part of the name of each translation memory, plain or compressed."""
MIN_PAIR = 100
"""Bytes that a pair takes in memory, even if it is short."""
MAX_LOCATIONS = 5
"""How many malformed lines are located in the report, per kind."""
SAMPLE = 200
"""Lines that are looked at to tell a header of unknown words."""
FEWEST_LINES = 5
"""How many of them there must be."""
SENTENCES = 0.9
"""The share of them that must be sentences."""
TITLE = re.compile(r"\w+(?:[ _-]\w+){0,2}")
"""A title: up to three words, without a punctuation mark."""
SENTENCE = re.compile(r"[.!?\u2026\u3002\uff01\uff1f]|(?:\S+\s+){3}\S")
"""The signs of a sentence: a mark at which one ends, or at least four words."""
NUMBER = re.compile("[0-9]{1,18}")
"""A sentence number, which fits into 64 bits."""
NOT_UTF8 = re.compile("[\udc80-\udcff]")
"""The character that `_decode` makes of a byte that is not UTF-8."""
_FIGURES = re.compile(r"(?:[\W\d_]|(?<=\d)[eE](?=[-+]?\d))*")
"""Numbers, scores and dates, or nothing at all."""
HEAD = 1 << 20
"""Bytes of the beginning of a table by which its columns are judged."""
HEAD_ROWS = 10_000
"""Rows of it."""
FEW_ROWS = 0.2
"""Share of the first rows up to which rows with more columns than the others are slips, such as a tab in a sentence."""
MOST_ROWS = 0.9
"""Share of the first cells of a column that are no text, from which the column is none of sentences."""
SOME_ROWS = 5
"""Minimum number of rows to judge a column by."""
MANY_ROWS = 20
"""Minimum number of rows to warn of columns that only some of them have."""


@dataclass(frozen=True)
class Chunk:
    """Consecutive raw lines of a corpus, each ending in a line feed.

    Attributes:
        files: The file, or the two parallel files.
        first_line: Number of the first line, from 1.
        blocks: Lines of each file.
        columns: Wanted columns, from 1; None for parallel files.
        width: Number of columns of the table; rows with more are malformed. None allows any number.
        usual: Number of columns that most rows of the table have; rows with fewer are counted. None counts none.
    """

    files: tuple[str, ...]
    first_line: int
    blocks: tuple[bytes, ...]
    columns: tuple[int, ...] | None = None
    width: int | None = None
    usual: int | None = None


@dataclass
class LineReport:
    """Counts of the lines of a corpus.

    Attributes:
        read: Lines, or pairs of parallel lines.
        blank: Blank lines of a table, which are skipped.
        malformed: Number of malformed lines, which are skipped, by kind.
        doubtful: Number of lines that are used although they may be malformed, by kind.
        places: FILE:LINE of the first of both, by kind.
    """

    read: int
    blank: int = 0
    malformed: dict[str, int] = field(default_factory=dict)
    places: dict[str, list[str]] = field(default_factory=dict)
    doubtful: dict[str, int] = field(default_factory=dict)

    def skip(self, kind: str, *locations: str, count: int = 1) -> None:
        """Count malformed lines, and locate the first of them."""
        self._count(self.malformed, kind, locations, count)

    def doubt(self, kind: str, *locations: str, count: int = 1) -> None:
        """Count lines that may be malformed, and locate the first of them."""
        self._count(self.doubtful, kind, locations, count)

    def _count(self, counts: dict[str, int], kind: str, locations: Sequence[str], count: int) -> None:
        counts[kind] = counts.get(kind, 0) + count
        self.places[kind] = [*self.places.get(kind, []), *locations][:MAX_LOCATIONS]

    def add(self, other: LineReport) -> None:
        """Add the report of a later part of the corpus."""
        self.read += other.read
        self.blank += other.blank
        for kind, count in other.malformed.items():
            self.skip(kind, *other.places[kind], count=count)
        for kind, count in other.doubtful.items():
            self.doubt(kind, *other.places[kind], count=count)

    def locate(self) -> Iterator[tuple[str, str]]:
        """For each kind of malformed lines, their number in words, and where the first of them are."""
        return self._locate(self.malformed)

    def locate_doubtful(self) -> Iterator[tuple[str, str]]:
        """The same for lines that are used although they may be malformed."""
        return self._locate(self.doubtful)

    def _locate(self, counts: Mapping[str, int]) -> Iterator[tuple[str, str]]:
        for kind, number in counts.items():
            more = ["..."] if number > len(self.places[kind]) else []
            yield f"{number:,} {KINDS.get(kind, kind)}", ", ".join([*self.places[kind], *more])

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
        kinds = "; ".join(f"{kind} ({locations})" for kind, locations in self.locate())
        advice = next((advice for kind, advice in ADVICE.items() if kind in self.malformed), "correct the file")
        if max_share is not None:
            advice += f", or raise data.max_malformed ({max_share:g}) above {count / self.read:.3g} to skip them"
        raise DataError(f"{count:,} of {self.read:,} lines are malformed: {kinds}; {advice}")


KINDS = {
    "too_few_columns": "with too few columns",
    "more_columns": "with more columns than most",
    "fewer_columns": "with fewer columns than most",
    "long_cell": f"with a cell of more than {LONG_CELL} lines",
    "not_utf8": "not UTF-8",
    "too_long": OVERLONG,
    "not_a_number": "without a sentence number",
}
"""Kinds of malformed lines, in words."""
MORE_COLUMNS = "remove separators within sentences, or name every column in a first line, such as en, de, note"
ADVICE = {
    "not_utf8": "convert it: iconv -f WINDOWS-1252 -t UTF-8",
    "too_long": "write one sentence per line",
    "more_columns": MORE_COLUMNS,
}
"""The remedy for a kind of malformed lines."""


class Source(ABC):
    """A corpus, or one split of it, that has not been read yet; as a string, its description."""

    @abstractmethod
    def chunks(self, report: LineReport) -> Iterator[Chunk]:
        """Raw lines, in order; lines skipped at this stage are counted in `report`."""

    @abstractmethod
    def explain_empty(self, report: LineReport) -> str:
        """Say why this corpus, which has been read, has no pair at all, and what to do."""

    def check(self, report: LineReport, num_pairs: int, max_share: float | None = None) -> None:
        """Reject a corpus that has no pair, or too many malformed lines.

        Args:
            report: Report on the lines that were read.
            num_pairs: Pairs that were read.
            max_share: Maximum share of malformed lines; None allows none.

        Raises:
            DataError: Always for a corpus without pairs.
        """
        if not num_pairs and report.malformed.keys().isdisjoint(("not_utf8", "too_long")):
            raise DataError(self.explain_empty(report))
        report.check(max_share if num_pairs else None)


@dataclass(frozen=True)
class TabSeparated(Source):
    """One file of columns, separated by tabs, or as CSV.

    Attributes:
        path: The file.
        columns: Wanted columns, from 1: source and target, or those of an export.
        first_lines: Lines to read; None reads all.
        data: Languages and columns that a header may name.
        numbers: How many of the columns, from the first, are numbers.
    """

    path: Path
    columns: tuple[int, ...]
    first_lines: int | None = None
    data: DataSection = field(default_factory=DataSection)
    numbers: int = 0

    def __str__(self) -> str:
        return f"{self.path}: source in column {self.columns[0]}, target in column {self.columns[1]}"

    def chunks(self, report: LineReport) -> Iterator[Chunk]:
        """About a megabyte of lines at a time."""
        long_cells: list[tuple[int, int]] = []
        rows = read_rows(self.path, self.first_lines, long_cells)
        head = next(in_blocks(rows, len, HEAD, most=HEAD_ROWS), [])
        number = 1
        named = 0
        if head and self._begins_with_header(head):
            named = count_columns(head[0])
            del head[0]
            number = 2
        self._check_columns(head)
        width, usual = self._find_width(head, named)
        for lines in in_blocks(itertools.chain(head, rows), len):
            yield Chunk((str(self.path),), number, (b"".join(lines),), self.columns, width, usual)
            number += len(lines)
        self._report_long_cells(long_cells, report)

    def _find_width(self, lines: Sequence[bytes], named: int) -> tuple[int, int]:
        """The numbers of columns that rows may have, and that most rows have, judged by the first rows.

        A sentence with a tab makes two columns of one, and half a source the target: rows with more columns than the
        others are malformed if they are few. If they are many, a further column is optional, such as a note. Empty
        cells at the end of a row do not count. A header that names more columns allows them.

        Args:
            lines: The first rows.
            named: Number of columns of the header; 0 without one.
        """
        counts = Counter(filter(None, map(count_columns, lines)))
        needed = max(*self.columns, named)
        if not counts:
            return needed, needed
        total = counts.total()
        wider = 0
        widths = sorted(counts, reverse=True)
        width = next(width for width in widths if (wider := wider + counts[width]) > FEW_ROWS * total)
        usual = max(counts, key=lambda columns: (counts[columns], columns))
        if needed < width != usual and total >= MANY_ROWS:
            more = sum(number for columns, number in counts.items() if columns > usual)
            shares = f"{more:,} of the first {total:,} rows have more columns than the others ({usual})"
            first_row = 2 if named else 1
            row, line = next(row for row in enumerate(lines, first_row) if count_columns(row[1]) > usual)
            example = f"such as line {row} ({shorten(' | '.join(_cells(line)))})"
            log.warning(f"{self.path}: {shares}, {example}, whose further columns are not read: {MORE_COLUMNS}")
        return max(width, needed), usual

    def _check_columns(self, lines: Sequence[bytes]) -> None:
        """Refuse a wanted column of numbers, scores or dates, whose pairs cleaning would drop for their few letters.

        Raises:
            DataError: There is one.
        """
        rows = [cells for cells in map(_cells, lines) if len(cells) >= max(self.columns)]
        if self.numbers or self.data.cleaning.min_letters == 0 or len(rows) < SOME_ROWS:
            return
        texts = [
            number for number, cells in enumerate(itertools.zip_longest(*rows, fillvalue=""), 1) if _is_text(cells)
        ]
        for column in self.columns:
            if column not in texts:
                examples = list_names([cells[column - 1] for cells in rows[:2]])
                advice = Message("set data.columns to the columns of the sentences")
                if len(texts) == 2:
                    advice = Message("{columns}", columns=Parameter("overrides", {"data.columns": texts}))
                raise DataError(
                    "{path}: column {column} has numbers in place of sentences ({examples}): {advice}",
                    path=self.path,
                    column=column,
                    examples=examples,
                    advice=advice,
                )

    def _report_long_cells(self, cells: Sequence[tuple[int, int]], report: LineReport) -> None:
        """Name the rows of CSV with a cell of many lines: a quotation mark without its partner swallows lines."""
        for first, last in cells[:MAX_LOCATIONS]:
            spans = f"{self.path}:{first}: one row spans {last - first + 1:,} lines, up to line {last}"
            log.warning(f"{spans}: check that each quotation mark around a cell has its partner")
        if cells:
            places = (f"{self.path}:{first} ({last - first + 1:,} lines)" for first, last in cells[:MAX_LOCATIONS])
            report.doubt("long_cell", *places, count=len(cells))

    def _begins_with_header(self, lines: Sequence[bytes]) -> bool:
        """True if cells of a line, but not of the next, name the source and the target, or their languages: as a whole,
        as a word of a title without spaces (`text_en`), or as the first word; this is logged.

        Raises:
            DataError: They do, in other columns than `data` has.
        """
        line = _cells(lines[0])
        following = _cells(b"".join(lines[1:2]))
        is_csv = CSV in self.path.name.lower()
        if is_csv:
            log.info(f"{self.path}: columns {list_names([f'{n} {title}' for n, title in enumerate(line, 1)])}")
        src, tgt = self.data.file_languages
        sides = (src, "source", "src"), (tgt, "target", "tgt")
        below = set().union(*map(_titles, following))
        named = []
        for code, *words in sides:
            names = {name.casefold() for name in (code, base_language(code), *words, language_name(code))} - below
            named.append([n for n, cell in enumerate(line, 1) if names & _titles(cell)])
        if all(named) and not all(map(list.__contains__, named, self.data.columns)):
            columns = [numbers[0] for numbers in named]
            raise DataError(
                "{path}:1: source and target are columns {columns}: {advice}",
                path=self.path,
                columns=columns,
                advice=Parameter("overrides", {"data.columns": columns}),
            )
        titled = is_csv and not all(named) and self._has_titles(lines)
        if titled:
            message = f"{shorten(' | '.join(line))} looks like a header, as the lines below have sentences: skipped"
            log.warning(f"{self.path}:1: {message}; if it is a pair, move it to another line")
        elif all(named):
            message = f"{shorten(' | '.join(line))} is a header, not a sentence pair: skipped"
            log.warning(f"{self.path}:1: {message}; if it is a pair, move it to another line")
        elif is_csv:
            log.info(f"{self.path}:1: names no languages: read like the lines below; if it is a header, delete it")
        return titled or all(named)

    def _has_titles(self, lines: Sequence[bytes]) -> bool:
        """True if the first line has a few words in each wanted column, and most lines below have sentences there."""
        rows = []
        for line in lines[: 1 + SAMPLE]:
            cells = _cells(line)
            rows.append([cells[column - 1] if column <= len(cells) else "" for column in self.columns])
        titles, *below = rows
        sentences = sum(all(map(SENTENCE.search, cells)) for cells in below)
        are_titles = all(map(TITLE.fullmatch, titles))
        return are_titles and len(below) >= FEWEST_LINES and sentences >= SENTENCES * len(below)

    def explain_empty(self, report: LineReport) -> str:
        """See `Source`."""
        if report.read == report.blank:
            return f"{self.path}: empty; give a file with lines of source<TAB>target"
        src, tgt = self.columns
        widest = max(line.count(b"\t") for line in read_rows(self.path, self.first_lines)) + 1
        columns = "only one column" if widest == 1 else f"at most {widest} columns"
        return (
            f"{self.path}: no line has columns {src} and {tgt} ({columns} in {report.read:,} lines); write lines of "
            "source<TAB>target, set data.columns, name a file with other separators .csv, or give two parallel files"
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

    def __str__(self) -> str:
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
        files = [read_file_lines(path, self.first_lines) for path in (self.src, self.tgt)]
        for number, (src, tgt) in enumerate(itertools.zip_longest(*files)):
            if src is None or tgt is None:
                more = number + 1 + sum(1 for file in files for _ in file)
                totals = (number, more) if src is None else (more, number)
                raise DataError(
                    f"{self.src} and {self.tgt}: {totals[0]:,} and {totals[1]:,} lines; "
                    "parallel files need one sentence per line and the same number of lines"
                )
            yield src, tgt

    def explain_empty(self, report: LineReport) -> str:
        """See `Source`."""
        return f"{self.src} and {self.tgt}: empty; give files with one sentence per line"


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

    def __str__(self) -> str:
        return f"{self.src} and {self.tgt}: sentences, linked by {self.links}"

    def chunks(self, report: LineReport) -> Iterator[Chunk]:
        """Linked sentences as parallel lines; all lines of all three files are counted."""
        src, tgt = (_numbered_sentences(path, report) for path in (self.src, self.tgt))
        for chunk in TabSeparated(self.links, (1, 2), self.first_lines, numbers=2).chunks(report):
            links = [(int(first), int(second)) for first, second in _rows(chunk, report, numbers=2)]
            both_orders = itertools.chain.from_iterable((link, link[::-1]) for link in links)
            pairs = [(src[first], tgt[second]) for first, second in both_orders if first in src and second in tgt]
            report.read -= len(pairs)  # `parse_chunk` counts them again
            yield Chunk(chunk.files * 2, chunk.first_line, encode_pairs(pairs))

    def explain_empty(self, report: LineReport) -> str:
        """See `Source`."""
        return (
            f"{self.links}: links no sentence of {self.src} to one of {self.tgt}; give the sentences of the source, "
            "those of the target (number<TAB>language<TAB>text) and the links (number<TAB>number), in this order"
        )


def _numbered_sentences(path: Path, report: LineReport) -> dict[int, str]:
    """Sentences of one language by number, from lines of number, language and text, which are counted.

    Raises:
        DataError: They are of several languages.
    """
    sentences: dict[int, str] = {}
    languages: set[str] = set()
    for chunk in TabSeparated(path, (1, 2, 3), numbers=1).chunks(report):
        for number, language, sentence in _rows(chunk, report, numbers=1):
            sentences.setdefault(int(number), sentence)
            languages.add(language)
    if len(languages) > 1:
        names = list_names(sorted(languages))
        raise DataError(f"{path}: sentences of {len(languages):,} languages ({names}); give those of one language")
    return sentences


@dataclass(frozen=True)
class TranslationMemory(Source):
    """A TMX file; units without text in both languages are counted as blank lines.

    Several texts of a language, such as two translations of one source, are a pair each with every text of the other.

    Attributes:
        path: The file, plain or compressed.
        direction: Languages of source and target; `en` is also `en-GB` and `eng`.
        first_units: Units to read; None reads all.
    """

    path: Path
    direction: Direction
    first_units: int | None = None

    def __str__(self) -> str:
        return f"{self.path}: translation memory, {self.direction.source} to {self.direction.target}"

    def chunks(self, report: LineReport) -> Iterator[Chunk]:
        """About a megabyte of pairs at a time, as parallel lines that are numbered by unit."""
        for block in in_blocks(self._pairs(report), lambda row: MIN_PAIR + len(row[1]) + len(row[2])):
            number, *_ = block[0]
            yield Chunk((str(self.path),) * 2, number, encode_pairs([row[1:] for row in block]))

    def _pairs(self, report: LineReport) -> Iterator[tuple[int, str, str]]:
        """Number of the unit, source and target of each pair; units without one are counted in `report`."""
        for number, unit in enumerate(itertools.islice(read_units(self.path), self.first_units), 1):
            src = _in_language(unit, self.direction.source)
            tgt = _in_language(unit, self.direction.target)
            if not (src and tgt):
                report.read += 1
                report.blank += 1
            yield from ((number, *pair) for pair in itertools.product(src, tgt))

    def explain_empty(self, report: LineReport) -> str:
        """See `Source`."""
        there = sorted({language for unit in read_units(self.path) for language in unit})
        wanted = f"{self.direction.source} and {self.direction.target}"
        return (
            f"{self.path}: no translation unit has {wanted}; its languages are {list_names(there) or 'none'}: "
            "set data.src_language and data.tgt_language"
        )


def _in_language(unit: Unit, code: str) -> list[str]:
    """The different texts of a unit in a language, of whatever region, that are not empty."""
    texts = (text for name in unit if is_language(name, code) for text in unit[name] if text)
    return list(dict.fromkeys(texts))


def open_corpus(paths: Sequence[Path], data: DataSection = DataSection()) -> dict[str, Source]:
    """Recognise the format of a corpus by its number of files.

    Every file is UTF-8, with or without a byte order mark, lines ending in LF or CRLF; it may be plain, compressed
    (.gz, .bz2, .xz) or a zip archive (.zip) of one file, not counting those whose names start with `_`.

    Args:
        paths: One file with columns, tab-separated or CSV; a translation memory (TMX); two parallel files (source,
            target), or what their names have before `.en` and `.de`; three files of a Tatoeba export (source sentences,
            target sentences, links); or four or six parallel files (source and target of train, valid and, with six,
            test).
        data: Columns and languages of one file, whether to swap source and target, and how many lines to
            read of an unsplit corpus or of the training split.

    Returns:
        `train`, which is all of an unsplit corpus, and ready-made splits, by name.

    Raises:
        DataError: There is no format with so many files, one is missing, or its ending names another language.
    """
    swap = -1 if data.reverse else 1
    paths = [file for path in paths for file in find_files(path, data)]
    if len(paths) not in (1, 2, 3, 4, 6):
        raise DataError(
            f"sources: {len(paths)} files given; give 1 (tab-separated text), 2 (source, target), 3 (Tatoeba's "
            "sentences, sentences, links), 4 (source and target of train, then of valid) or 6 (the same and test)"
        )
    for path in paths:
        if path.is_dir():
            raise DataError(_describe_folder(path))
        if not path.exists():  # also for a name that no file can have, such as one with a NUL character
            either = f", with or without .{data.src_language} and .{data.tgt_language}"
            raise DataError(f"{path}: no such file{'; check the path' if path.suffix or len(paths) > 1 else either}")
    if len(paths) == 1 and TMX in paths[0].name.lower():
        return {"train": TranslationMemory(paths[0], Direction.of(data), data.first_lines)}
    if len(paths) == 1:
        return {"train": TabSeparated(paths[0], data.columns[::swap], data.first_lines, data)}
    if len(paths) == 3:
        src, tgt = paths[:2][::swap]
        return {"train": Export(src, tgt, paths[2], data.first_lines)}
    check_endings(paths, data)
    pairs = (paths[first : first + 2][::swap] for first in range(0, len(paths), 2))
    first_lines = {"train": data.first_lines, "valid": None, "test": None}
    return {name: Parallel(src, tgt, first_lines[name]) for name, (src, tgt) in zip(first_lines, pairs, strict=False)}


def _describe_folder(path: Path) -> str:
    """Say which files a folder has, as it is no corpus itself."""
    files = sorted(str(file) for file in path.iterdir() if file.is_file() and not file.name.startswith((".", "_")))
    if not files:
        return f"{path}: is a folder and has no file; give a file"
    if len(files) == 2:
        return f"{path}: is a folder; give its two files, source and target: {list_names(files)}"
    return f"{path}: is a folder; give one of its files, or two, source and target: {list_names(files)}"


def find_files(path: Path, data: DataSection) -> list[Path]:
    """The file itself; or, if only PATH.en and PATH.de exist, for its languages, plain or compressed, these two."""
    for suffix in ("", *UNPACK):
        sides = [Path(f"{path}.{language}{suffix}") for language in data.file_languages]
        if not path.is_file() and all(map(Path.is_file, sides)):
            return sides
    return [path]


def parse_chunk(chunk: Chunk) -> tuple[list[Pair], LineReport]:
    """Decode the lines of a chunk and take source and target from them: the one place where a pair's file is decoded.

    Returns:
        The pairs, and a report. If a line of one parallel file is malformed, the pair is skipped.
    """
    report = LineReport(0)
    return [Pair(src, tgt) for src, tgt in _rows(chunk, report)], report


def _rows(chunk: Chunk, report: LineReport, numbers: int = 0) -> Iterator[list[str]]:
    """The columns of each line, or the lines of both files; malformed lines are counted.

    Args:
        chunk: Raw lines.
        report: Counts the lines.
        numbers: How many of the columns, from the first, are numbers.
    """
    decoded = [*map(_decode, chunk.blocks)]
    all_utf8 = not any(map(NOT_UTF8.search, decoded))
    sides = [[line.removesuffix("\r") for line in text.split("\n")[:-1]] for text in decoded]
    columns = chunk.columns or range(1, 1 + len(sides))
    report.read += len(sides[0])
    for number, texts in enumerate(zip(*sides, strict=True), start=chunk.first_line):
        side = None if all_utf8 else next((side for side, text in enumerate(texts) if NOT_UTF8.search(text)), None)
        cells = texts[0].split("\t") if chunk.columns else texts
        if side is not None:
            kind = "too_long" if texts[side] == _decode(TOO_LONG[:-1]) else "not_utf8"
            report.skip(kind, f"{chunk.files[side]}:{number}")
        elif len(cells) < max(columns):
            if texts[0].strip():
                report.skip("too_few_columns", f"{chunk.files[0]}:{number}")
            else:
                report.blank += 1
        elif chunk.width and len(cells) > chunk.width and count_columns(texts[0].encode()) > chunk.width:
            report.skip("more_columns", f"{chunk.files[0]}:{number}")
        elif not all(map(NUMBER.fullmatch, cells[:numbers])):
            report.skip("not_a_number", f"{chunk.files[0]}:{number}")
        else:
            if chunk.usual and len(cells) < chunk.usual:
                report.doubt("fewer_columns", f"{chunk.files[0]}:{number}")
            yield [cells[column - 1] for column in columns]


def read_sentences(path: Path, report: LineReport) -> Iterator[str]:
    """Lines of a file of one language, plain or compressed; malformed ones are skipped and counted in `report`.

    Raises:
        DataError: The file cannot be read, or is in another encoding.
    """
    number = 1
    for lines in in_blocks(read_file_lines(path, None), len):
        chunk = Chunk((str(path),), number, (b"".join(lines),))
        yield from (sentence for (sentence,) in _rows(chunk, report))
        number += len(lines)


def count_columns(line: bytes) -> int:
    """Number of columns of a row, without empty ones at its end; 0 for a blank line."""
    text = line.rstrip()
    return text.count(b"\t") + 1 if text else 0


def _is_text(cells: Sequence[str]) -> bool:
    """True if enough cells of a column have letters; the e of a number such as 1.5e-03 is none.

    Empty cells say nothing, and neither do a few others.
    """
    filled = [cell for cell in cells if cell]
    without = sum(bool(_FIGURES.fullmatch(cell)) for cell in filled)
    return len(filled) < SOME_ROWS or without < MOST_ROWS * len(filled)


def _cells(line: bytes) -> list[str]:
    return [cell.strip(' "\r\n') for cell in line.decode("utf-8", "replace").split("\t")]


def read_pairs(source: Source) -> list[Pair]:
    """All pairs of a source that must not have malformed lines.

    Raises:
        DataError: A line is malformed, or there is none.
    """
    report = LineReport(0)
    pairs = [Pair(src, tgt) for chunk in source.chunks(report) for src, tgt in _rows(chunk, report)]
    source.check(report, len(pairs))
    return pairs


def _decode(block: bytes) -> str:
    """UTF-8 as text, in which bytes that are not UTF-8 become lone surrogates."""
    return block.decode("utf-8", "surrogateescape")


def _titles(cell: str) -> set[str]:
    """A cell, its first word and, if it has no space and does not end a sentence, all its words."""
    cell = cell.casefold()
    words = cell.split()[:1] if re.search(r"\s|[.!?…。]$", cell) else re.split(r"[\W\d_]+", cell)
    return {cell, *words}
