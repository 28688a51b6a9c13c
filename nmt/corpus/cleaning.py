"""Cleaning sentences and dropping pairs that cannot be used."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from nmt.corpus import Pair


@dataclass(frozen=True)
class CleaningReport:
    """What cleaning did, in pairs: read = empty + too_short + too_long + duplicate + kept.

    Attributes:
        read: Pairs looked at.
        normalised: Pairs whose text changed by Unicode normalisation (NFC).
        whitespace: Pairs whose text changed by the whitespace rule.
        empty: Pairs dropped because a side is empty.
        too_short: Pairs dropped because a side has too few words.
        too_long: Pairs dropped because a side has too many words.
        duplicate: Pairs dropped because the same pair came before.
        kept: Pairs left.
    """

    read: int
    normalised: int
    whitespace: int
    empty: int
    too_short: int
    too_long: int
    duplicate: int
    kept: int


def clean_line(text: str) -> str:
    """Bring one sentence to Unicode form NFC with single spaces between words and none around them."""
    return _single_spaces(_composed(text))


def clean(pairs: Iterable[Pair], *, min_length: int = 1, max_length: int = 100) -> tuple[list[Pair], CleaningReport]:
    """Clean both sides of every pair as `clean_line` does, and drop unusable and repeated pairs.

    Args:
        pairs: Raw pairs.
        min_length: Fewest words that a side may have; a word is what whitespace separates.
        max_length: Most words that a side may have.

    Returns:
        The pairs kept, in order, and the counts. A pair dropped is counted once, under the first
        reason that holds: empty, too short, too long, duplicate.
    """
    read = normalised = whitespace = empty = too_short = too_long = duplicate = 0
    kept: dict[Pair, None] = {}
    for raw in pairs:
        read += 1
        composed = Pair(_composed(raw.src), _composed(raw.tgt))
        pair = Pair(_single_spaces(composed.src), _single_spaces(composed.tgt))
        normalised += composed != raw
        whitespace += pair != composed
        if not pair.src or not pair.tgt:
            empty += 1
            continue
        lengths = pair.src.count(" ") + 1, pair.tgt.count(" ") + 1
        if min(lengths) < min_length:
            too_short += 1
        elif max(lengths) > max_length:
            too_long += 1
        elif pair in kept:
            duplicate += 1
        else:
            kept[pair] = None
    report = CleaningReport(read, normalised, whitespace, empty, too_short, too_long, duplicate, kept=len(kept))
    return list(kept), report


def _composed(text: str) -> str:
    """Unicode form NFC; most text has it already."""
    if text.isascii() or unicodedata.is_normalized("NFC", text):
        return text
    return unicodedata.normalize("NFC", text)


def _single_spaces(text: str) -> str:
    """Replace every run of Unicode whitespace by one space, and strip."""
    return " ".join(text.split())
