"""Word alignments made by people, and the error rate of others by their measure."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from nmt.system.errors import DataError
from nmt.translation.alignment import Links
from nmt.translation.input import read_text

_LINK = re.compile(r"([0-9]{1,9})([-?])([0-9]{1,9})")


class GoldLinks(NamedTuple):
    """Word alignment of a pair made by people (Och & Ney, 2003, section 6).

    Attributes:
        sure: Links that are unambiguous.
        possible: Those and the ambiguous ones.
    """

    sure: Links
    possible: Links


def read_alignments(path: Path) -> list[GoldLinks]:
    """Read links in Pharaoh format: one line per pair, with `i-j` for source token i and target token j, and spaces.

    Links that are only possible are `i?j`.

    Raises:
        DataError: The file cannot be read, is not UTF-8, or has another format.
    """
    alignments: list[GoldLinks] = []
    for number, line in enumerate(read_text(path), 1):
        links = GoldLinks(set(), set())
        for item in line.split():
            match = _LINK.fullmatch(item)
            if match is None:
                raise DataError(f"{path}, line {number}: {item!r} is not a link; write i-j, counted from 0, as in 0-0")
            link = int(match[1]), int(match[3])
            links.possible.add(link)
            if match[2] == "-":
                links.sure.add(link)
        alignments.append(links)
    return alignments


def alignment_error_rate(predicted: Sequence[Links], gold: Sequence[GoldLinks]) -> float:
    """Alignment error rate of a corpus (Och & Ney, 2003, section 6): 1 - (|A & S| + |A & P|) / (|A| + |S|).

    Args:
        predicted: A: links of each pair.
        gold: S and P: sure and possible links of each pair, in the same order.

    Returns:
        0 if all links agree, 1 if none does; 0 if there are none at all.
    """
    common = sum(len(a & s) + len(a & p) for a, (s, p) in zip(predicted, gold, strict=True))
    total = sum(map(len, predicted)) + sum(len(links.sure) for links in gold)
    return 1 - common / total if total else 0.0
