"""The report of preprocessing for people: a few lines, sections, and Markdown with a picture."""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import accumulate
from pathlib import Path
from typing import Any

from nmt.corpus.dataset import MARKER
from nmt.corpus.sources import KINDS
from nmt.drawing.charts import draw_lengths
from nmt.system.errors import DataError, printable
from nmt.system.files import read_json, write_json, write_text
from nmt.system.tables import Section, Table
from nmt.text.tokenizers import PIECES
from nmt.text.vocabulary import LARGER

REPORT = "report.json"
MARKDOWN = "report.md"
PICTURE = "lengths.png"
SPLITS = ("train", "valid", "test")
SIDES = {"src": "source", "tgt": "target"}
IN_WORDS = {"train": "training", "valid": "validation"}
EXCERPT = 72
"""Maximum number of characters to show of a sentence."""
MANY_UNKNOWN = 0.2
"""Share of unknown tokens in training above which there is a warning."""
MANY_UNKNOWN_PIECES = 0.02
"""Share of unknown subwords in validation above which there is a warning: fewer pieces would spell the same words."""
OVERLOOKED = re.compile(r"^ |(?<= ) | \Z")
"""Spaces that are easily overlooked: leading, trailing and repeated ones."""


def describe(report: dict[str, Any]) -> list[str]:
    """Summarise the report in a few lines."""
    cleaning = report["cleaning"]
    malformed = sum(report["lines"]["malformed"].values())
    lines = [
        f"{printable(report['corpus'])}: {report['lines']['read']:,} lines"
        + (f", {malformed:,} malformed" if malformed else ""),
        f"cleaning: {cleaning['read']:,} pairs read, {cleaning['kept']:,} kept"
        + _counts("; dropped", cleaning["dropped"])
        + _counts("; repaired", cleaning["changed"]),
        f"splits: {report['pairs']['train']:,} training pairs"
        + "".join(
            f", {report['sources'][name]:,} {name} sources with {report['pairs'][name]:,} references"
            for name in ("valid", "test")
            if report["sources"].get(name)
        ),
    ]
    lines += [
        f"overlap: of {found['examples']:,} {name} sources {found['sources']:,} are in training on the source side, "
        f"{found['targets']:,} have a reference there"
        for name, found in report["overlap"].items()
    ]
    if "dropped_overlap" in report:
        lines.append(
            f"overlap: {report['dropped_overlap']:,} training pairs were dropped because valid or test share them"
        )
    if "naive_overlap" in report:
        naive = report["naive_overlap"]
        lines.append(
            f"overlap: a random split of the same size would have leaked {naive['sources'] / naive['examples']:.1%} "
            f"of its sources and {naive['targets'] / naive['examples']:.1%} of its targets"
        )
    if "augmented" in report:
        lines.append(f"augmentation: {_describe_copies(report)}")
    sizes, tokens, unknown = report["vocabulary"], report["tokens"], report["unknown_share"]
    lines.append(f"vocabularies: {sizes['src']:,} source, {sizes['tgt']:,} target")
    lines += [
        f"{name}: {tokens[name][0]:,} source and {tokens[name][1]:,} target tokens, "
        f"{unknown[name][0]:.2%} and {unknown[name][1]:.2%} unknown"
        for name in tokens
        if any(tokens[name])
    ]
    if report["too_many_tokens"]:
        lines.append(f"{report['too_many_tokens']:,} training pairs dropped: longer than text.max_length tokens")
    return lines


def warn_of_unknown(report: dict[str, Any]) -> list[str]:
    """A warning for each side with too many unknown tokens in training, or unknown subwords in validation."""
    advice = "the vocabulary is that of other text; remove text.reuse" if report.get("reused") else LARGER
    limits = {"train": (MANY_UNKNOWN, advice)}
    if report.get("tokenizer") == "subword" and not report["reused"]:
        fewer = min(max(report["vocabulary"].values()) // 2, max(500, report["pairs"]["train"] // 2))
        limits["valid"] = (MANY_UNKNOWN_PIECES, f"training text lacks these pieces; use fewer: --set {PIECES}={fewer}")
    return [
        f"WARNING: {share:.1%} of the {side} tokens in {IN_WORDS[name]} are unknown: {remedy}"
        for name, (limit, remedy) in limits.items()
        for side, share in zip(SIDES.values(), report["unknown_share"][name], strict=True)
        if share > limit
    ]


def _describe_copies(report: dict[str, Any]) -> str:
    counts = report["augmented"]
    parts = ", ".join(f"{count:,} {_plain(form)}" for form, count in counts.items())
    return f"{sum(counts.values()):,} copies of training pairs in other forms ({parts})"


def _counts(what: str, findings: dict[str, Any]) -> str:
    counts = ", ".join(f"{finding['pairs']:,} {_plain(name)}" for name, finding in findings.items())
    return f"{what} {counts}" if counts else ""


def read_report(directory: Path) -> list[Section]:
    """Read the report of a data directory.

    Raises:
        DataError: It is not a data directory, or its report is missing, damaged or of another version.
    """
    if not (directory / MARKER).is_file():
        what = "is not a data directory" if directory.exists() else "does not exist"
        raise DataError(f"{directory}: {what} (no {MARKER}); give the folder that nmt preprocess wrote")
    report = read_json(directory / REPORT)
    try:
        return make_sections(report)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
        raise DataError(f"{directory / REPORT}: damaged, or written by another version; preprocess again") from None


def write_report(directory: Path, report: dict[str, Any]) -> None:
    """Write a report as JSON and as Markdown, with a picture if matplotlib is installed, into an existing folder."""
    write_json(directory / REPORT, report)
    draw_lengths(report["lengths"], directory / PICTURE)
    write_text(directory / MARKDOWN, format_markdown("Data report", make_sections(report), directory))


def make_sections(report: dict[str, Any]) -> list[Section]:
    """The sections of a report, in reading order."""
    makers = {
        "Corpus": _describe_corpus,
        "Cleaning": _describe_cleaning,
        "Splits": _describe_splits,
        "Sentence lengths": _describe_lengths,
        "Overlap with training": _describe_overlap,
        "Vocabulary": _describe_vocabulary,
        "Most frequent training sentences": _describe_frequent,
    }
    pictures = {"Sentence lengths": PICTURE}
    return [Section(title, list(make(report)), pictures.get(title, "")) for title, make in makers.items()]


def _describe_corpus(report: dict[str, Any]) -> Iterator[str | Table]:
    lines, (src, tgt) = report["lines"], report["languages"]
    rows = [
        ("read from", make_visible(report["corpus"])),
        ("languages", f"{src} to {tgt}"),
        ("lines", f"{lines['read']:,}"),
        ("blank", f"{lines['blank']:,}"),
        ("malformed", f"{sum(lines['malformed'].values()):,}"),
    ]
    for kind, count in lines["malformed"].items():
        places = lines["places"][kind]
        more = ", ..." if count > len(places) else ""
        rows.append(("", f"{count:,} {KINDS.get(kind, kind)}: {make_visible(', '.join(places))}{more}"))
    yield Table(("", ""), rows, "ll")


def _describe_cleaning(report: dict[str, Any]) -> Iterator[str | Table]:
    cleaning = report["cleaning"]
    yield f"{cleaning['read']:,} pairs were read and {cleaning['kept']:,} kept."
    found = [("repaired", *item) for item in cleaning["changed"].items()]
    found += [("dropped", *item) for item in cleaning["dropped"].items()]
    if not found:
        yield "No pair was repaired or dropped."
        return
    counts = [(_plain(rule), what, f"{finding['pairs']:,}") for what, rule, finding in found]
    yield Table(("rule", "pairs were", "pairs"), counts, "llr")
    if cleaning["changed"]:
        yield "A pair counts under every rule that repaired it, and under the first that dropped it."
    for what, rule, finding in found:
        rows: list[tuple[str, str]] = []
        for sample in finding["samples"]:
            sides = zip(SIDES.values(), *sample, strict=True)
            if what == "repaired":
                changed = [(side, show_change(raw, clean)) for side, raw, clean in sides if raw != clean]
                rows += [row for side, texts in changed for row in zip((side, "becomes"), texts, strict=True)]
            else:
                rows += [(side, excerpt(text)) for side, text in sides]
        yield Table(("", ""), rows, "ll", f"{what.capitalize()}: {_plain(rule)}, the first examples")


def _describe_splits(report: dict[str, Any]) -> Iterator[str | Table]:
    pairs = report["pairs"]
    if report["given_splits"]:
        yield (
            "The corpus has ready-made splits, which were used as they are; the sections above are about the training "
            "split alone."
        )
    else:
        yield (
            f"{sum(pairs.values()):,} of the {report['cleaning']['kept']:,} clean pairs are in a split. Pairs that "
            "share a sentence, directly or through other pairs, are a group, and each group is in one split: "
            f"{report['components']:,} groups of at most {report['largest_component']:,} pairs."
        )
    rows = []
    for name in _present(report):
        counts = report["references"][name]
        several = [*counts[:3], *[0] * (3 - len(counts)), sum(counts[3:])]
        rows.append((name, f"{pairs[name]:,}", f"{report['sources'][name]:,}", *(f"{count:,}" for count in several)))
    yield Table(("split", "pairs", "sources", "with 1 reference", "2", "3", "4+"), rows, "lrrrrrr")
    if "augmented" in report:
        yield f"To the training pairs come {_describe_copies(report)}."
    for name in SPLITS:
        if name not in _present(report):
            yield f"There is no {name} split."


def _describe_lengths(report: dict[str, Any]) -> Iterator[str | Table]:
    rows = []
    for name in _present(report):
        sides = zip(
            SIDES.values(), report["lengths"][name], report["tokens"][name], report["unknown_share"][name], strict=True
        )
        for side, histogram, tokens, unknown in sides:
            mean, median = mean_and_median(histogram)
            figures = f"{tokens:,}", f"{mean:.1f}", f"{median:g}", f"{len(histogram) - 1:,}", f"{unknown:.2%}"
            rows.append((name, side, *figures))
    yield Table(("split", "side", "tokens", "mean", "median", "longest", "unknown"), rows, "llrrrrr")
    yield "In tokens; a source counts once per reference."
    if report["too_many_tokens"]:
        yield (
            f"{report['too_many_tokens']:,} training pairs were dropped: a side has no token, or more than "
            "text.max_length."
        )


def _describe_overlap(report: dict[str, Any]) -> Iterator[str | Table]:
    rows = [
        (name, f"{found['examples']:,}", *(_share(found[side], found["examples"]) for side in ("sources", "targets")))
        for name, found in report["overlap"].items()
    ]
    if not rows:
        yield "There is neither a valid nor a test split that could overlap."
        return
    yield Table(("split", "sources", "source is in training", "a reference is in training"), rows, "lrrr")
    yield "Sentences count as the same if their letters and digits agree, ignoring case."
    if "dropped_overlap" in report:
        yield (
            f"data.drop_overlap dropped {report['dropped_overlap']:,} training pairs because valid or test share "
            "a sentence with them."
        )
    elif report["given_splits"] and any(found["sources"] or found["targets"] for found in report["overlap"].values()):
        yield "data.drop_overlap would drop these training pairs."
    if "naive_overlap" in report:
        naive = report["naive_overlap"]
        sources, targets = (_share(naive[side], naive["examples"]) for side in ("sources", "targets"))
        yield (
            f"With a plain random split, {naive['examples']:,} pairs for testing and all others for training, "
            f"{sources} sources and {targets} targets would have been in training too."
        )


def _describe_vocabulary(report: dict[str, Any]) -> Iterator[str | Table]:
    rows = [
        (name, f"{report['vocabulary'][side]:,}", f"{report['distinct_tokens'][side]:,}")
        for side, name in SIDES.items()
    ]
    yield Table(("side", "vocabulary", "distinct tokens in training"), rows, "lrr")
    yield from warn_of_unknown(report)
    sides = [{int(size): share for size, share in report["coverage"][side].items()} for side in SIDES]
    sizes = {size for shares in sides for size in shares if size < max(shares)}
    if sizes:
        yield Table(
            ("most frequent tokens", *SIDES.values()),
            [(f"{size:,}", *(f"{shares.get(size, 1):.1%}" for shares in sides)) for size in sorted(sizes)],
            "rrr",
            "Share of the training text covered by the most frequent tokens",
        )


def _describe_frequent(report: dict[str, Any]) -> Iterator[str | Table]:
    for side, name in SIDES.items():
        rows = [(f"{count:,}", excerpt(text)) for text, count in report["frequent"][side] if count > 1]
        yield Table(("times", name), rows, "rl") if rows else f"No {name} sentence occurs twice."


def _present(report: dict[str, Any]) -> list[str]:
    return [name for name in SPLITS if report["pairs"][name]]


def _plain(name: str) -> str:
    return "spaces" if name == "blanks" else name.replace("_", " ")


def _share(part: int, whole: int) -> str:
    return f"{part:,} ({part / whole:.1%})"


def mean_and_median(histogram: Sequence[int]) -> tuple[float, float]:
    """Mean and median, from a histogram with the number of zeros, ones, twos and so on."""
    ends = list(accumulate(histogram))
    middle = [bisect_right(ends, place) for place in ((ends[-1] - 1) // 2, ends[-1] // 2)]
    return sum(value * count for value, count in enumerate(histogram)) / ends[-1], sum(middle) / 2


def make_visible(text: str) -> str:
    r"""Escape invisible characters, and spaces that are easily overlooked, as in \u200b."""
    text = OVERLOOKED.sub(lambda found: _escape(found[0]), text)
    return "".join(character if character.isprintable() else _escape(character) for character in text)


def excerpt(text: str) -> str:
    """The beginning of a sentence, with `make_visible`."""
    return make_visible(text if len(text) <= EXCERPT else f"{text[: EXCERPT - 1]}…") or "(nothing)"


def show_change(before: str, after: str) -> tuple[str, str]:
    """Two different texts around their first difference, with `make_visible`.

    What was removed from the first is escaped unless it is ASCII: one and two code points for ü look the same.
    """
    places = enumerate(zip(before, after, strict=False))
    first = next((place for place, (old, new) in places if old != new), min(len(before), len(after)))
    start = first - EXCERPT // 2 if first > EXCERPT * 3 // 4 else 0
    old, new = before[start : start + EXCERPT], after[start : start + 2 * EXCERPT]
    steps = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    old = "".join(
        character if step == "equal" or character.isascii() else _escape(character)
        for step, begin, end, _, _ in steps
        for character in old[begin:end]
    )
    old, new = (
        ("…" if start else "") + shown + ("…" if start + EXCERPT < len(whole) else "")
        for shown, whole in ((old, before), (new[:EXCERPT], after))
    )
    return make_visible(old) or "(nothing)", make_visible(new) or "(nothing)"


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def format_markdown(title: str, sections: Sequence[Section], directory: Path) -> str:
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
