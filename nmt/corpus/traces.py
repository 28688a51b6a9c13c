"""Traces of other tools in the text of a corpus: pieces of subwords, markup, escapes, spoilt characters, shifted lines.

A model learns such text as it is, and scores of it mean little. A sample of the raw pairs of each split is searched for
every trace of a table, and each that is found is a warning, or a refusal if lines are certainly no sentences.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmt.config import Config
from nmt.corpus import Pair
from nmt.corpus.identifiers import find_identifiers
from nmt.corpus.mojibake import find_mojibake, find_wrong_encoding, name_encoding
from nmt.corpus.sources import Source, read_pairs
from nmt.system.errors import DataError, printable
from nmt.text.normalization import INVISIBLE

RUN = 128
"""Consecutive pairs that are sampled together: a shift by a line shows only in neighbours."""
MOST_RUNS_OF_CHUNK = 32
"""Maximum number of runs of a chunk."""
MOST_RUNS = 80
"""Maximum number of runs of a split."""
LONGEST = 1000
"""Characters of a line that are searched."""
MOST_SPOILT = 100
"""Lines with mojibake by which its encoding is told."""
EXCERPT = 50
"""Maximum number of characters to show of a line."""
REACHES = (10, 3)
"""Maximum numbers of lines by which one side may be shifted: the second in texts that are too short for the first."""
MIN_PAIRS = 30
"""Minimum number of pairs to look for a shift."""
MIN_CORRELATION = 0.3
"""Minimum correlation of the lengths of translations."""
MIN_PAIRS_UNRELATED = 200
"""Minimum number of pairs to tell that they are no translations."""
MIN_VARIATION = 0.2
"""Minimum standard deviation of the logarithms of lengths whose correlation tells something."""
CONFIDENCE = 2.0
"""Standard errors from a correlation to its upper confidence bound."""
SURE = 5.0
"""Standard errors by which a correlation must exceed another: neither chance nor the order of lines gives so many."""


class Run(NamedTuple):
    """Consecutive raw pairs.

    Attributes:
        first_line: Number of the line of the first pair, from 1.
        pairs: The pairs; long lines are cut.
    """

    first_line: int
    pairs: list[Pair]


def take_runs(pairs: Sequence[Pair], first_line: int = 1, most: int = MOST_RUNS_OF_CHUNK) -> list[Run]:
    """Evenly spaced runs of some pairs, all of them if there are few."""
    starts = list(range(0, len(pairs), RUN))
    if len(starts) > most:
        starts = [starts[number * len(starts) // most] for number in range(most)]
    runs = []
    for start in starts:
        cut = [Pair(src[:LONGEST], tgt[:LONGEST]) for src, tgt in pairs[start : start + RUN]]
        runs.append(Run(first_line + start, cut))
    return runs


@dataclass
class Sample:
    """Evenly spaced runs of a corpus that is read chunk by chunk, in bounded memory.

    Attributes:
        runs: The runs, in order.
    """

    runs: list[Run] = field(default_factory=list)
    _read: int = 0
    _step: int = 1

    def add(self, runs: Iterable[Run]) -> None:
        """Add runs of the next chunk; if there are too many, every other run is left out, from the first chunk on."""
        for run in runs:
            if self._read % self._step == 0:
                self.runs.append(run)
            self._read += 1
            if len(self.runs) > MOST_RUNS:
                self.runs = self.runs[::2]
                self._step *= 2


@dataclass(frozen=True)
class TraceReport:
    """A trace that was found.

    Attributes:
        split: Name of the split.
        name: Name of the trace.
        src: Source lines that have it.
        tgt: Target lines that have it.
        pairs: Pairs that were searched.
        sign: How the trace looks, in words.
        example: A line that has it, perhaps an excerpt.
        advice: How to remove it.
        refused: True if lines are certainly no sentences.
    """

    split: str
    name: str
    src: int
    tgt: int
    pairs: int
    sign: str
    example: str
    advice: str
    refused: bool = False

    def __str__(self) -> str:
        counts = []
        if self.src:
            counts.append(f"{self.src:,} of {self.pairs:,} source")
        if self.tgt:
            counts.append(f"{self.tgt:,} of {self.pairs:,} target")
        lines = f"{' and '.join(counts)} lines " if counts else ""
        example = f" ({self.example})" if self.example else ""
        return f"{self.split}: {lines}{self.sign}{example}: {self.advice}"


Find = Callable[[str], int | None]
"""Where in a line a trace is; None where it is not."""


@dataclass(frozen=True)
class Trace:
    """A trace that another tool leaves in lines of text.

    Attributes:
        name: Its name.
        find: Recognises it.
        sign: How it looks, after "3 of 10 lines".
        advice: How to remove it; {encoding} is that of the lines that were found.
        marks: Texts of which a line with the trace has one at least; without any, every line is searched.
        count: Minimum number of lines of a side, in which chance does not write it.
        share: Minimum share of the lines of a side.
        many: Number of lines that is enough whatever their share is; None if none is.
        is_for_raw_text: True if text that is declared to be tokenised may have it.
        instead_of: Name of a later trace that is not reported beside it; None if there is none.
        refused_from: Share from which lines are certainly no sentences; None if they may always be some.
    """

    name: str
    find: Find
    sign: str
    advice: str
    marks: tuple[str, ...] = ()
    count: int = 3
    share: float = 0.01
    many: int | None = None
    is_for_raw_text: bool = False
    instead_of: str | None = None
    refused_from: float | None = None

    def locate(self, text: str) -> int | None:
        """Where in a line the trace is; None where it is not."""
        if self.marks and not any(mark in text for mark in self.marks):
            return None
        return self.find(text)

    def is_found(self, number: int, lines: int) -> bool:
        """True if so many lines are a trace and not chance."""
        is_many = self.many is not None and number >= self.many
        return number >= self.count and (number >= self.share * lines or is_many)


def _matching(pattern: str) -> Find:
    search = re.compile(pattern).search

    def find(text: str) -> int | None:
        match = search(text)
        return match.start() if match else None

    return find


_HAN = "[\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff]"
_HAN_APART = re.compile(rf"{_HAN} (?={_HAN})")


def find_end_apart(text: str) -> int | None:
    """A full stop with a space before it, as sacreBLEU recognises tokenised text, or Chinese words with spaces between.

    Other marks do not count: French has spaces before them, Hindi before its full stop.
    """
    if text.endswith((" .", " 。")):
        return len(text) - 1
    places = [match.start() for match in _HAN_APART.finditer(text)]
    return places[0] if len(places) > 2 and 3 * len(places) > len(text.split()) else None


_JOINER = re.compile(r"[￭￨]|(?<=\S )##(?=\w)|(?<!\S)@[-/.,:]@(?!\S)|</w>(?!\S)|<0x[0-9A-F]{2}>")


def find_joiner(text: str) -> int | None:
    """A mark of OpenNMT, WordPiece, Moses or byte pairs, or that of GPT-2 before most words: Maltese has its letter.

    WordPiece's `##` is within a line; at its start it is a heading of Markdown.
    """
    joiner = _JOINER.search(text)
    if joiner:
        return joiner.start()
    words = text.split()
    marked = sum(word.startswith("Ġ") for word in words)
    return text.index("Ġ") if marked > 1 and 2 * marked >= len(words) else None


def find_html(text: str) -> int | None:
    """A tag of HTML, or another pair of tags around the line."""
    match = _TAG.search(text) or _TAGS_AROUND.fullmatch(text)
    return match.start() if match else None


_TAG = re.compile(
    r"</?(?:p|div|span|br|hr|b|i|u|em|strong|small|big|sub|sup|font|a|img|ul|ol|li|td|tr|th|table|tbody|center|cite|code"
    r"|pre|q|blockquote|body|html|head|h[1-6]|label|input|option|select|button|section|article)(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
_TAGS_AROUND = re.compile(r"\s*<(?!s>)([A-Za-z][\w:-]*)(?:\s[^<>]*)?>.*</\1\s*>\s*")
_BOUNDARY = (
    r"^\s*(?:<(?:s|bos|sos)>|\[CLS\]|<\|startoftext\|>)|(?:</s>|<eos>|\[SEP\]|<\|endoftext\|>)\s*$|(?:<pad>|\[PAD\])"
)
_BACKSLASH = (
    r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|u\{[0-9A-Fa-f]+\}|U[0-9A-Fa-f]{8}|[0-3][0-7]{2}|[\"'])"
    r"|(?<=[\w.!?,;:\"')])\\[nrt](?![a-z])|(?<=[.!?])\\[nrt]"  # \new may be part of a path, and \nu a letter of LaTeX
)


_DOCUMENT = (
    r"^\s*(?:<\?xml\b|<!DOCTYPE\b|</?(?:srcset|refset|tstset|doc|seg|hl|dataset|collection)\b[^<>]*>"
    r"|<(?:src|ref|hyp) lang=|</?p>\s*$)"
)
_TALK = r"^\s*</?(?:url|speaker|talkid|title|description|keywords|reviewer|translator|transcript)\b[^<>]*>"

TRACES = (
    Trace(
        "sgml",
        _matching(_DOCUMENT),
        "are markup of a test set, not sentences",
        "extract the text of <seg>, such as with sacrebleu --echo, and give one sentence per line",
        share=0.001,
        refused_from=0.1,
        marks=("<",),
    ),
    Trace(
        "iwslt",
        _matching(_TALK),
        "have a tag of IWSLT, such as <title> or <url>, and are no sentences",
        "delete these lines from both files",
        count=2,
        share=0.0,
        marks=("<",),
    ),
    Trace(
        "subword_nmt",
        _matching(r"\w@@(?= |$)|(?:^| )@@(?=\w)"),
        "have the mark @@ of subword-nmt, and scores would be of pieces of words",
        "join the pieces (sed -E 's/@@( |$)//g'), or give the raw text",
        marks=("@@",),
    ),
    Trace(
        "sentencepiece",
        _matching(r"(?:^| )▁"),
        "have the mark ▁ of SentencePiece, and scores would be of pieces of words",
        "join the pieces (spm_decode), or give the raw text",
        marks=("▁",),
    ),
    Trace(
        "joiners",
        find_joiner,
        "have a mark of another tokenizer, such as ￭, ##, @-@, Ġ or </w>",
        "detokenise them with the tool that made them, or give the raw text",
        share=0.002,
        marks=("￭", "￨", "##", "@", "Ġ", "</w>", "<0x"),
    ),
    Trace(
        "moses_escapes",
        _matching(r"(?<!\S)&(?:quot|#124|#91|#93);(?!\S)|(?<!\S)&apos;|&apos;(?!\S)"),
        "have escapes of Moses' tokenizer, such as &apos; or &#124;",
        "undo them in every file (deescape-special-chars.perl, or sacremoses detokenize), or give the raw text",
        marks=("&",),
        is_for_raw_text=True,
    ),
    Trace(
        "tokenized",
        find_end_apart,
        "look tokenised, with a space before the final stop or between words, and the config is for raw text",
        "detokenise them, or set text.tokenized=true",
        count=10,
        share=0.05,
        is_for_raw_text=True,
    ),
    Trace(
        "sentence_marks",
        _matching(_BOUNDARY),
        "have marks of the beginning, the end or padding of a sentence, such as <s> or </s>",
        "delete the marks, as every model adds its own",
        marks=("<", "["),
    ),
    Trace(
        "html",
        find_html,
        "have tags of HTML or XML",
        "extract the text between the tags, or delete the tags on both sides",
        share=0.05,
        marks=("<",),
    ),
    Trace(
        "backslash_escapes",
        _matching(_BACKSLASH),
        r"have escapes of a programming language, such as \u00fc, \xfc or \n",
        "decode them where the text was written, such as with Python's json.loads or ast.literal_eval",
        marks=("\\",),
    ),
    Trace(
        "quoted",
        _matching(r"""^\s*(?:"(?:[^"]|"")*"|'[^']*(?:''[^']*)*')\s*$"""),
        "are quoted as in CSV, nearly all of them",
        "name a table .csv, or write the files again without quoting",
        share=0.8,
        instead_of="csv_quotes",
        marks=('"', "'"),
    ),
    Trace(
        "csv_quotes",
        _matching(r'^"(?=[^"]*"")(?:[^"]|"")*"$'),
        "are quoted as in CSV, with doubled quotation marks",
        "name a table .csv, or write the files again without quoting",
        share=0.001,
        marks=('""',),
    ),
    Trace(
        "unknown_word",
        _matching(r"<unk>|<UNK>|\[UNK\]|⁇|(?<![\w<\[])UNK(?![\w>\]])"),
        "have a mark of an unknown word, which would count as right in translations",
        "give the text from which it was made, or delete these lines from both sides",
        count=1,
        share=0.0,
        marks=("unk", "UNK", "⁇"),
    ),
    Trace(
        "mojibake",
        find_mojibake,
        "are UTF-8 that was read in another encoding",
        "reverse it (iconv -f UTF-8 -t {encoding}), or download the text again",
        count=2,
        share=0.001,
        many=100,
    ),
    Trace(
        "wrong_encoding",
        find_wrong_encoding,
        "are text of one encoding that was read in another, such as Windows-1251 or Shift-JIS as Latin-1",
        "convert the original file from its own encoding, such as iconv -f WINDOWS-1251 -t UTF-8 for Russian, "
        "WINDOWS-1250 for Czech, SHIFT_JIS or EUC-JP for Japanese",
    ),
    Trace(
        "lost_characters",
        _matching("\ufffd"),
        "have U+FFFD in place of characters that were lost",
        "convert the text again from its own encoding",
        share=0.001,
        marks=("\ufffd",),
    ),
)
"""The traces that are looked for in lines."""
_ORDINARY = re.compile(r"[A-Za-z0-9,;:'()?!]+(?: [A-Za-z0-9,;:'()?!]+)*\.?").fullmatch
"""Matches most lines of English, in which no trace can be but `UNK` and single quotes around the line."""


def settled_traces(*, html_entities: bool, repaired: bool) -> tuple[str, ...]:
    """Names of the traces about which a user has decided, and which are not to be reported.

    Args:
        html_entities: True if training text has no escapes, as its normalizer replaces them.
        repaired: True if references are repaired as training text is.
    """
    is_settled = repaired or not html_entities
    return ("moses_escapes",) if is_settled else ()


def search_runs(
    split: str, runs: Sequence[Run], *, tokenized: bool, settled: Collection[str] = ()
) -> Iterator[TraceReport]:
    """Find traces in a split.

    Args:
        split: Its name.
        runs: Raw pairs of it.
        tokenized: True if the config declares the text to be tokenised.
        settled: Names of traces that are not looked for.
    """
    pairs = [pair for run in runs for pair in run.pairs]
    wanted = [trace for trace in TRACES if trace.name not in settled and not (trace.is_for_raw_text and tokenized)]
    counts = {trace.name: [0, 0] for trace in wanted}
    examples: dict[str, str] = {}
    spoilt: list[str] = []
    for pair in pairs:
        for side, text in enumerate(pair):
            if _ORDINARY(text) and "UNK" not in text and text[0] != "'":
                continue
            for trace in wanted:
                place = trace.locate(text)
                if place is None:
                    continue
                counts[trace.name][side] += 1
                examples.setdefault(trace.name, _excerpt(text, place))
                if trace.name == "mojibake" and len(spoilt) < MOST_SPOILT:
                    spoilt.append(text)

    encoding = name_encoding(spoilt)
    covered: set[str | None] = set()
    for trace in wanted:
        src, tgt = counts[trace.name]
        # The trace is reported if it is no chance on either side.
        telling = [number for number in (src, tgt) if trace.is_found(number, len(pairs))]
        if not any(telling) or trace.name in covered:
            continue
        covered.add(trace.instead_of)
        is_refused = trace.refused_from is not None and max(telling) >= trace.refused_from * len(pairs)
        yield TraceReport(
            split=split,
            name=trace.name,
            src=src,
            tgt=tgt,
            pairs=len(pairs),
            sign=trace.sign,
            example=examples[trace.name],
            advice=trace.advice.format(encoding=encoding),
            refused=is_refused,
        )
    yield from _search_identifiers(split, pairs)
    yield from _search_shift(split, runs)


def _excerpt(text: str, place: int) -> str:
    """A line around a place, on one line and without characters that could control a terminal."""
    start = max(0, place - EXCERPT // 2) if len(text) > EXCERPT else 0
    end = start + EXCERPT
    before = "..." if start else ""
    after = "..." if end < len(text) else ""
    return f"{before}{printable(text[start:end])}{after}"


def _search_identifiers(split: str, pairs: Sequence[Pair]) -> Iterator[TraceReport]:
    """Sides of URLs, ids and the like, as of a wrong column or file."""
    sources = [pair.src for pair in pairs]
    targets = [pair.tgt for pair in pairs]
    advice = "set data.columns to the columns of the sentences, or give the file of the sentences"
    for is_source in (True, False):
        lines = sources if is_source else targets
        counterparts = targets if is_source else sources
        identifiers = find_identifiers(lines, counterparts)
        if not identifiers:
            continue
        kind, number, example = identifiers
        src = number if is_source else 0
        tgt = 0 if is_source else number
        sign = f"are {kind}, not sentences"
        yield TraceReport(split, "identifiers", src, tgt, len(pairs), sign, _excerpt(example, 0), advice)


def _search_shift(split: str, runs: Sequence[Run]) -> Iterator[TraceReport]:
    """A side that is shifted by some lines against the other, everywhere or from some line on.

    Long sentences have long translations: the lengths of both sides correlate. If they correlate more with those some
    lines below or above, the sides are shifted. Correlations are compared by Fisher's z, whose standard error depends
    only on the number of pairs. All shifts are measured on the same source lines, so that an order of lines, such as
    by length, helps all of them alike. First all runs are taken together; then each by itself, as a line may be
    missing in the middle of a file.
    """
    lengths = [np.log1p([[len(src), len(tgt)] for src, tgt in run.pairs]) for run in runs]
    pairs = sum(map(len, lengths))
    advice = "a line is missing or surplus in one side: align the sides again"

    shift = find_shift(lengths)
    if shift is not None:
        sign = (
            f"the target looks shifted by {_count_lines(shift.lines)} against the source (their lengths correlate by "
            f"{shift.correlation:.2f} so, by {shift.unshifted:.2f} as they are)"
        )
        yield TraceReport(split, "shifted", 0, 0, pairs, sign, "", advice)
        return

    shifts = [find_shift([of_run]) for of_run in lengths]
    shifted = [(run, shift) for run, shift in zip(runs, shifts, strict=True) if shift is not None]
    if shifted:
        run, shift = shifted[0]
        sign = (
            f"the target looks shifted by {_count_lines(shift.lines)} against the source in {len(shifted):,} of "
            f"{len(runs):,} places, first near line {run.first_line:,}"
        )
        yield TraceReport(split, "shifted", 0, 0, pairs, sign, "", advice)
        return

    unrelated = find_unrelated(lengths)
    if unrelated is not None:
        sign = (
            "source and target lines do not look like translations of one another (their lengths correlate by "
            f"{unrelated:.2f})"
        )
        advice = "align the sides again, or give the files or columns (data.columns) that belong together"
        yield TraceReport(split, "unrelated", 0, 0, pairs, sign, "", advice)


def find_unrelated(parts: Sequence[NDArray[np.float64]]) -> float | None:
    """Find sides that have nothing to do with each other.

    The upper bound of the correlation of lengths is then less than that of any translations. Lengths that hardly vary
    tell nothing.

    Args:
        parts: Logarithms of the lengths of both sides of pairs, [pairs, 2] each.

    Returns:
        The correlation of their lengths; None if they may be translations.
    """
    lengths = np.concatenate([np.empty((0, 2)), *parts])
    if len(lengths) < MIN_PAIRS_UNRELATED or lengths.std(axis=0).min() < MIN_VARIATION:
        return None
    correlation = float(np.corrcoef(lengths.T)[0, 1])
    # Fisher's z of the correlation has the standard error 1 / sqrt(n - 3).
    z = np.arctanh(np.clip(correlation, -0.999, 0.999))
    bound = np.tanh(z + CONFIDENCE / np.sqrt(len(lengths) - 3))
    return correlation if bound < MIN_CORRELATION else None


def _count_lines(lines: int) -> str:
    """A shift in words: `2 lines down`."""
    number = abs(lines)
    plural = "s" if number > 1 else ""
    direction = "down" if lines > 0 else "up"
    return f"{number} line{plural} {direction}"


class Shift(NamedTuple):
    """How the target is shifted against the source.

    Attributes:
        lines: Lines by which it is shifted down; negative if it is shifted up.
        correlation: Correlation of the lengths of both sides with this shift.
        unshifted: Their correlation without a shift.
    """

    lines: int
    correlation: float
    unshifted: float


def find_shift(parts: Sequence[NDArray[np.float64]]) -> Shift | None:
    """Find by how many lines the target is shifted against the source.

    Args:
        parts: Logarithms of the lengths of both sides of consecutive pairs, [pairs, 2] each.

    Returns:
        The shift; None if the target is not shifted.
    """
    # The longest reach that leaves enough pairs: a part loses so many lines at either end.
    for reach in REACHES:
        number = sum(max(0, len(part) - 2 * reach) for part in parts)
        if number >= MIN_PAIRS:
            break
    else:
        return None
    parts = [part for part in parts if len(part) > 2 * reach]
    source = np.concatenate([part[reach : len(part) - reach, 0] for part in parts])

    def correlate(shift: int) -> float:
        target = np.concatenate([part[reach + shift : len(part) - reach + shift, 1] for part in parts])
        if source.std() == 0 or target.std() == 0:
            return 0.0
        return float(np.corrcoef(source, target)[0, 1])

    unshifted = correlate(0)
    shifts = [shift for shift in range(-reach, reach + 1) if shift != 0]
    best, lines = max((correlate(shift), shift) for shift in shifts)
    # The difference of two values of Fisher's z has the standard error sqrt(2 / (n - 3)).
    z_best, z_unshifted = np.arctanh(np.clip([best, max(unshifted, 0.0)], -0.999, 0.999))
    if best < MIN_CORRELATION or z_best - z_unshifted < SURE * np.sqrt(2 / (number - 3)):
        return None
    return Shift(lines, best, unshifted)


def _count_empty(split: str, pairs: Sequence[Pair]) -> Iterator[TraceReport]:
    """Pairs of a ready-made split without a reference, where no translation is right, or without a source."""
    without_reference = sum(is_blank(tgt) for _, tgt in pairs)
    only_reference = sum(is_blank(src) and not is_blank(tgt) for src, tgt in pairs)
    if without_reference:
        advice = "these pairs are left out"
        yield TraceReport(split, "empty", 0, without_reference, len(pairs), "are empty", "", advice)
    if only_reference:
        advice = "delete these pairs"
        sign = "are empty, and their targets are not"
        yield TraceReport(split, "empty_source", only_reference, 0, len(pairs), sign, "", advice)


def is_blank(text: str) -> bool:
    """True if a line has nothing but spaces and invisible characters."""
    return not INVISIBLE.sub("", text).strip()


def search_splits(
    config: Config, samples: Mapping[str, Sample], evaluation_sources: Mapping[str, Source]
) -> list[TraceReport]:
    """Search the training pairs and ready-made splits.

    Args:
        config: The whole config, which may declare the text to be tokenised.
        samples: Raw training pairs of each corpus.
        evaluation_sources: Ready-made validation and test splits, by name.

    Raises:
        DataError: Lines of a split are certainly no sentences.
    """
    tokenized = config.text.tokenized or config.text.tokenizer == "whitespace"
    runs = {name: sample.runs for name, sample in samples.items()}
    reports: list[TraceReport] = []
    for name, source in evaluation_sources.items():
        try:
            pairs = read_pairs(source)
        except DataError:  # whoever reads the split for use says why it cannot be read
            continue
        runs[name] = take_runs(pairs, most=MOST_RUNS)
        reports += _count_empty(name, pairs)
    settled = settled_traces(html_entities=config.data.cleaning.html_entities, repaired=config.data.repair_references)
    for name, of_split in runs.items():
        reports += search_runs(name, of_split, tokenized=tokenized, settled=settled)
    for report in reports:
        if report.refused:
            raise DataError(str(report))
    return reports
