"""The report of preprocessing for people: a few lines, sections, and Markdown with a picture."""

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from nmt.corpus.cleaning import RuleCount
from nmt.corpus.marker_schema import check_is_data
from nmt.corpus.report_schema import DataReport
from nmt.drawing.charts import draw_lengths
from nmt.system.errors import DataError, printable
from nmt.system.files import write_json, write_text
from nmt.system.tables import ReportSection, Table
from nmt.text.settings import read_settings
from nmt.text.tokenizers import PIECES
from nmt.text.vocabulary import LARGER

REPORT = "report.json"
MARKDOWN = "report.md"
PICTURE = "lengths.png"
SIDES = {"src": "source", "tgt": "target"}
EXCERPT = 72
"""Maximum number of characters to show of a sentence."""
MANY_UNKNOWN = 0.2
"""Share of unknown tokens in training above which there is a warning."""
UNTRAINED = 0.01
"""Share of unknown words in validation or test above which there is a warning if training has none."""
MANY_UNKNOWN_PIECES = 0.02
"""Share of unknown subwords in validation above which there is a warning: fewer pieces would spell the same words."""
OVERLOOKED = re.compile(r"^ |(?<= ) | \Z")
"""Spaces that are easily overlooked: leading, trailing and repeated ones."""

DROP = "data.drop_overlap=true would drop these training pairs"

Blocks = Iterator[str | Table]


def summarise(report: DataReport) -> Iterator[str]:
    """Summarise a report in a few lines."""
    lines = report.lines
    cleaning = report.cleaning
    yield f"{printable(report.corpus)}: {lines.read:,} lines"
    yield from (f"skipped: {kind}: {printable(places)}" for kind, places in lines.locate())
    yield from (f"doubtful: {kind}: {printable(places)}" for kind, places in lines.locate_doubtful())
    changes = _counts("; dropped", cleaning.dropped) + _counts("; repaired", cleaning.changed)
    yield f"cleaning: {cleaning.read:,} pairs read, {cleaning.kept:,} kept{changes}"
    evaluation = [
        f", {report.sources[name]:,} {name} sources with {report.pairs[name]:,} references"
        for name in ("valid", "test")
        if report.sources.get(name)
    ]
    yield f"splits: {report.pairs['train']:,} training pairs{''.join(evaluation)}"
    yield from (f"{name}: {files}" for name, files in (report.split_files or {}).items())
    for name, overlap in report.overlap.items():
        yield (
            f"overlap: of {overlap.examples:,} {name} sources {overlap.sources:,} are in training on the source side, "
            f"{overlap.targets:,} have a reference there"
        )
    if _could_drop(report):
        yield f"overlap: {DROP}"
    yield from (f"overlap: {line}" for line in _compare_splits(report))
    if report.augmented:
        yield f"augmentation: {_describe_copies(report.augmented)}"
    for name, extra in (report.extra or {}).items():
        yield f"{name}: {extra}"
    if report.names:
        yield f"names: {report.names}"
    yield f"vocabularies: {report.vocabulary['src']:,} source, {report.vocabulary['tgt']:,} target"
    for name, (src, tgt) in report.tokens.items():
        src_unknown, tgt_unknown = report.unknown_share[name]
        if src or tgt:
            unknown = f"{src_unknown:.2%} and {tgt_unknown:.2%} unknown"
            yield f"{name}: {src:,} source and {tgt:,} target tokens, {unknown}"
    if report.too_many_tokens:
        yield f"{report.too_many_tokens:,} training pairs dropped: longer than text.max_length tokens"


def find_warnings(report: DataReport) -> list[str]:
    """Faults that make scores of a model meaningless, or the text other than intended: one line each."""
    shared = _describe_valid_in_test(report)
    traces = map(str, report.traces or [])
    return [*traces, *report.warnings, *([f"overlap: {shared}"] if shared else []), *_find_unknown(report)]


def _find_unknown(report: DataReport) -> list[str]:
    """A warning for each side with too many unknown tokens in training, or unknown subwords in validation."""
    warnings = []
    for side, share in enumerate(report.unknown_share["train"]):
        advice = "the vocabulary is that of other text; set parent.pieces=own" if report.reused else LARGER
        if share > MANY_UNKNOWN:
            warnings.append(_warn_of_share(share, side, "training", advice))
    if report.tokenizer != "subword" and not report.reused:
        warnings += filter(None, (_find_untrained(report, side) for side in (0, 1)))
    if report.tokenizer == "subword" and not report.reused:
        for side, share in enumerate(report.unknown_share["valid"]):
            if share > MANY_UNKNOWN_PIECES:
                warnings.append(_warn_of_share(share, side, "validation", _advise_on_pieces(report, side)))
    return warnings


def _find_untrained(report: DataReport, side: int) -> str:
    """A warning if validation or test has unknown words, and training has none, so that nothing trains their vector."""
    names = {"valid": "validation", "test": "test"}
    shares = [
        (report.unknown_share[name][side], where) for name, where in names.items() if name in report.unknown_share
    ]
    share, where = max(shares, default=(0.0, ""))
    if report.unknown_share["train"][side] > 0 or share <= UNTRAINED:
        return ""
    advice = "training has none, so nothing trains the vector of unknown words; "
    advice += "set text.tokenizer=subword, or text.vocabulary.min_count=2"
    return _warn_of_share(share, side, where, advice)


def _warn_of_share(share: float, side: int, where: str, advice: str) -> str:
    return f"{share:.1%} of the {[*SIDES.values()][side]} tokens in {where} are unknown: {advice}"


def _advise_on_pieces(report: DataReport, side: int) -> str:
    """The remedy for unknown subwords in validation: fewer pieces spell the same words, but need all characters."""
    unseen = report.unseen_characters[side] if report.unseen_characters else 0.0
    if 2 * unseen > report.unknown_share["valid"][side]:
        return "training text lacks characters of theirs, and fewer pieces do not help; give more training text"
    size = max(report.vocabulary.values())
    fewer = max(min(size // 2, max(500, report.pairs["train"] // 2)), report.character_pieces or 0)
    if fewer >= size:
        return "training text lacks these pieces; give more training text"
    return f"training text lacks these pieces; use fewer: set {PIECES}={fewer}"


def _describe_copies(counts: Mapping[str, int]) -> str:
    parts = ", ".join(f"{count:,} {_plain(form)}" for form, count in counts.items())
    return f"{sum(counts.values()):,} copies of training pairs in other forms ({parts})"


def _counts(label: str, counts_of_rules: Mapping[str, RuleCount]) -> str:
    counts = ", ".join(f"{rule_count.pairs:,} {_plain(name)}" for name, rule_count in counts_of_rules.items())
    return f"{label} {counts}" if counts else ""


def read_report(directory: Path) -> list[ReportSection]:
    """Read the report of a data directory.

    Raises:
        DataError: It is not a data directory, or its report is missing, damaged or of another version.
    """
    check_is_data(directory, "give the folder that nmt preprocess wrote")
    report = read_settings(directory / REPORT, DataReport)
    try:
        return data_sections(report)
    except (LookupError, ArithmeticError):
        raise DataError(f"{directory / REPORT}: damaged, or written by another version; preprocess again") from None


def write_report(directory: Path, report: DataReport) -> None:
    """Write a report as JSON and as Markdown, with a picture if matplotlib is installed, into an existing folder."""
    write_json(directory / REPORT, report.as_json())
    draw_lengths(report.lengths, directory / PICTURE)
    write_text(directory / MARKDOWN, format_markdown("Data report", data_sections(report), directory))


def data_sections(report: DataReport) -> list[ReportSection]:
    """The sections of a report, in reading order."""
    warnings = (f"WARNING: {make_visible(warning)}" for warning in find_warnings(report))
    sections = {
        "Warnings": warnings,
        "Corpus": _describe_corpus(report),
        "Cleaning": _describe_cleaning(report),
        "Splits": _describe_splits(report),
        "Sentence lengths": _describe_lengths(report),
        "Overlap with training": _describe_overlap(report),
        "Vocabulary": _describe_vocabulary(report),
        "Most frequent training sentences": _describe_frequent(report),
    }
    pictures = {"Sentence lengths": PICTURE}
    written = {title: list(blocks) for title, blocks in sections.items()}
    return [ReportSection(title, blocks, pictures.get(title, "")) for title, blocks in written.items() if blocks]


def _describe_corpus(report: DataReport) -> Blocks:
    lines = report.lines
    rows = [
        ("read from", make_visible(report.corpus)),
        ("languages", " to ".join(report.languages)),
        ("lines", f"{lines.read:,}"),
        ("blank", f"{lines.blank:,}"),
        ("malformed", f"{sum(lines.malformed.values()):,}"),
    ]
    rows += [("", f"{kind}: {make_visible(locations)}") for kind, locations in lines.locate()]
    if lines.doubtful:
        rows.append(("doubtful, but used", f"{sum(lines.doubtful.values()):,}"))
        rows += [("", f"{kind}: {make_visible(locations)}") for kind, locations in lines.locate_doubtful()]
    yield Table(("", ""), rows, "ll")


def _describe_cleaning(report: DataReport) -> Blocks:
    cleaning = report.cleaning
    yield f"{cleaning.read:,} pairs were read and {cleaning.kept:,} kept."
    rules = [("repaired", *item) for item in cleaning.changed.items()]
    rules += [("dropped", *item) for item in cleaning.dropped.items()]
    if not rules:
        yield "No pair was repaired or dropped."
        return
    counts = [(_plain(rule), outcome, f"{rule_count.pairs:,}") for outcome, rule, rule_count in rules]
    yield Table(("rule", "pairs were", "pairs"), counts, "llr")
    if cleaning.changed:
        yield "A pair counts under every rule that repaired it, and under the first that dropped it."
    for outcome, rule, rule_count in rules:
        rows: list[tuple[str, str]] = []
        for sample in rule_count.samples:
            for side, raw, *clean in zip(SIDES.values(), *sample, strict=True):
                if not clean:
                    rows.append((side, excerpt(raw)))
                elif raw != clean[0]:
                    rows += zip((side, "becomes"), show_change(raw, clean[0]), strict=True)
        yield Table(("", ""), rows, "ll", f"{outcome.capitalize()}: {_plain(rule)}, the first examples")


def _describe_splits(report: DataReport) -> Blocks:
    pairs = report.pairs
    if report.ready_made_splits:
        yield (
            "The corpus has ready-made splits, which were used as they are; the sections above are about the training "
            "split only."
        )
    else:
        # A test set that data.test names is not of the corpus: no random split has an overlap to compare with.
        split = [number for name, number in pairs.items() if name != "test" or report.naive_overlap is not None]
        yield (
            f"{sum(split):,} of the {report.cleaning.kept:,} clean pairs are in a split. Pairs that "
            "share a sentence, directly or through other pairs, are a group, and each group is in one split: "
            f"{report.components:,} groups of at most {report.largest_component:,} pairs."
        )
    rows = []
    for name in filter(pairs.get, pairs):
        counts = [*report.references[name], 0, 0, 0]
        rows.append((name, *(f"{n:,}" for n in (pairs[name], report.sources[name], *counts[:3], sum(counts[3:])))))
    yield Table(("split", "pairs", "sources", "with 1 reference", "2", "3", "4+"), rows, "lrrrrrr")
    yield from (f"Of the files of {name}: {files}." for name, files in (report.split_files or {}).items())
    if report.augmented:
        yield f"To the training pairs come {_describe_copies(report.augmented)}."
    yield from (f"Of `data.extra.{name}`: {extra}." for name, extra in (report.extra or {}).items())
    yield from (f"There is no {name} split." for name, number in pairs.items() if not number)


def _describe_lengths(report: DataReport) -> Blocks:
    rows = []
    for name in filter(report.pairs.get, report.pairs):
        figures = report.lengths[name], report.tokens[name], report.unknown_share[name]
        for side, histogram, tokens, unknown in zip(SIDES.values(), *figures, strict=True):
            mean, median = mean_and_median(histogram)
            longest = len(histogram) - 1
            rows.append((name, side, f"{tokens:,}", f"{mean:.1f}", f"{median:g}", f"{longest:,}", f"{unknown:.2%}"))
    yield Table(("split", "side", "tokens", "mean", "median", "longest", "unknown"), rows, "llrrrrr")
    yield "In tokens; a source counts once per reference."
    if report.too_many_tokens:
        reason = "a side has no token, or more than text.max_length"
        yield f"{report.too_many_tokens:,} training pairs were dropped: {reason}."


def _describe_overlap(report: DataReport) -> Blocks:
    if not report.overlap:
        yield "There is neither a valid nor a test split that could overlap."
        return
    rows = []
    for name, overlap in report.overlap.items():
        shares = (f"{part:,} ({part / overlap.examples:.1%})" for part in (overlap.sources, overlap.targets))
        rows.append((name, f"{overlap.examples:,}", *shares))
    yield Table(("split", "sources", "source is in training", "a reference is in training"), rows, "lrrr")
    yield "Sentences count as the same if their letters, with their marks, and digits agree, ignoring case."
    if _could_drop(report):
        yield f"{DROP}."
    if shared := _describe_valid_in_test(report):
        yield f"{shared[0].upper()}{shared[1:]}."
    yield from (f"{line[0].upper()}{line[1:]}." for line in _compare_splits(report))


def _could_drop(report: DataReport) -> bool:
    """True if there are training pairs that `data.drop_overlap` would drop."""
    has_overlap = any(overlap.sources or overlap.targets for overlap in report.overlap.values())
    return has_overlap and report.ready_made_splits and report.dropped_overlap is None


def _describe_valid_in_test(report: DataReport) -> str:
    """The overlap of ready-made validation and test splits; empty if they share nothing."""
    shared = report.valid_in_test
    if shared is None or not (shared.sources or shared.targets):
        return ""
    return (
        f"of {shared.examples:,} valid sources {shared.sources:,} are in test, and {shared.targets:,} have a reference "
        "there, so the best model is chosen on sentences that it is tested with: give other sentences for valid"
    )


def _compare_splits(report: DataReport) -> Iterator[str]:
    """Pairs dropped because of an overlap, and the leak of other splits, without a capital and a stop."""
    if report.dropped_overlap is not None:
        yield f"{report.dropped_overlap:,} training pairs were dropped because valid or test share them"
    if naive := report.naive_overlap:
        yield (
            f"a random split of the same size would have leaked {naive.sources / naive.examples:.1%} "
            f"of its sources and {naive.targets / naive.examples:.1%} of its targets"
        )


def _describe_vocabulary(report: DataReport) -> Blocks:
    """Sizes of the vocabularies, and their coverage of the training text."""
    rows: list[tuple[str, ...]] = []
    for side, name in SIDES.items():
        rows.append((name, f"{report.vocabulary[side]:,}", f"{report.distinct_tokens[side]:,}"))
    yield Table(("side", "vocabulary", "distinct tokens in training"), rows, "lrr")

    # The largest number of tokens of a side, with which all text is covered, is no news.
    coverage = [report.coverage[side] for side in SIDES]
    shown: set[int] = set()
    for shares in coverage:
        shown.update(size for size in shares if size < max(shares))
    if not shown:
        return
    rows = []
    for size in sorted(shown):
        rows.append((f"{size:,}", *(f"{shares.get(size, 1):.1%}" for shares in coverage)))
    caption = "Share of the training text covered by the most frequent tokens"
    yield Table(("most frequent tokens", *SIDES.values()), rows, "rrr", caption)


def _describe_frequent(report: DataReport) -> Blocks:
    for side, name in SIDES.items():
        rows = [(f"{count:,}", excerpt(text)) for text, count in report.frequent[side] if count > 1]
        yield Table(("times", name), rows, "rl") if rows else f"No {name} sentence occurs twice."


def _plain(name: str) -> str:
    return "spaces" if name == "blanks" else name.replace("_", " ")


def mean_and_median(histogram: Sequence[int]) -> tuple[float, float]:
    """Mean and median, from a histogram with the number of zeros, ones, twos and so on."""
    values = np.repeat(np.arange(len(histogram)), histogram)
    return float(values.mean()), float(np.median(values))


def make_visible(text: str) -> str:
    r"""Escape invisible characters, and spaces that are easily overlooked, as in \u200b."""
    text = OVERLOOKED.sub(lambda space: _escape(space[0]), text)
    return "".join(character if character.isprintable() else _escape(character) for character in text)


def excerpt(text: str) -> str:
    """The beginning of a sentence, with `make_visible`."""
    return make_visible(text if len(text) <= EXCERPT else f"{text[: EXCERPT - 1]}…") or "(nothing)"


def show_change(before: str, after: str) -> tuple[str, str]:
    """Two different texts around their first difference, with `make_visible`.

    Characters removed from the first are escaped unless they are ASCII: one and two code points for ü look the same.
    """
    letter_pairs = enumerate(zip(before, after, strict=False))
    first = next((index for index, (old, new) in letter_pairs if old != new), min(len(before), len(after)))
    start = first - EXCERPT // 2 if first > EXCERPT * 3 // 4 else 0
    old = before[start : start + EXCERPT]
    new = after[start : start + 2 * EXCERPT]
    old = "".join(letter if letter.isascii() or letter in new else _escape(letter) for letter in old)
    old, new = (
        ("…" if start else "") + shown + ("…" if start + EXCERPT < len(whole) else "")
        for shown, whole in ((old, before), (new[:EXCERPT], after))
    )
    return make_visible(old) or "(nothing)", make_visible(new) or "(nothing)"


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def format_markdown(title: str, sections: Sequence[ReportSection], directory: Path) -> str:
    """Format sections as Markdown under a title, with the pictures that exist in `directory`."""
    blocks = [f"# {title}"]
    for section in sections:
        blocks.append(f"## {section.title}")
        for block in section.blocks:
            if isinstance(block, str):
                blocks.append(escape_markdown(block))
                continue
            if block.caption:
                blocks.append(escape_markdown(f"{block.caption}:"))
            lines = [[escape_markdown(cell) for cell in row] for row in (block.header, *block.rows)]
            lines.insert(1, ["--:" if side == "r" else ":--" for side in block.alignment])
            blocks.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
        if section.picture and (directory / section.picture).is_file():
            blocks.append(f"![{section.title}]({section.picture})")
    return "\n\n".join(blocks) + "\n"


def escape_markdown(text: str) -> str:
    """Escape text for Markdown, including table cells."""
    return re.sub(r"([\\`*_\[\]|~$])", r"\\\1", html.escape(text, quote=False))
