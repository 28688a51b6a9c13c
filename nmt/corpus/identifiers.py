"""Lines that name something and are no sentences: addresses, names of files, ids, codes of languages, a constant."""

import re
from collections import Counter
from collections.abc import Callable, Sequence

from nmt.text.languages import NAMES, base_language

MOST = 0.5
"""Share of the lines from which a side is none of sentences."""
FEWEST = 10
"""Minimum number of lines to judge a side by."""
LONGEST = 60
"""Maximum number of characters of a line that is repeated as a mark of something."""

_ADDRESS = re.compile(r"(?:[a-z][a-z0-9+.-]*://|www\.)\S+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_FILE = re.compile(
    r"(?:[\w.~+%@()-]*[/\\])*[\w~+%@()-][\w.~+%@()-]*\.[A-Za-z][A-Za-z0-9]{1,4}"
    r"|(?:[A-Za-z]:)?[/\\]\S{2,}"
    r"|.+\.(?:jpe?g|png|gif|svg|wav|mp[34]|ogg|flac|pdf|txt|html?|xml|docx?|json|[ct]sv)",
    re.IGNORECASE,
)
_ID = re.compile(r"(?=[^\d]{0,40}\d)[\w.:;/#+-]+", re.ASCII)
_CODE = re.compile(r"[a-z]{2,3}(?:[-_][A-Za-z]{2,4})?")


def _is_language(text: str) -> bool:
    return _CODE.fullmatch(text) is not None and base_language(text) in NAMES


_KINDS: tuple[tuple[str, Callable[[str], object]], ...] = (
    ("addresses, such as URLs", _ADDRESS.fullmatch),
    ("names of files", _FILE.fullmatch),
    ("ids or numbers", _ID.fullmatch),
    ("codes of languages", _is_language),
)


def find_identifiers(lines: Sequence[str], others: Sequence[str]) -> tuple[str, int, str] | None:
    """Find out whether most lines of a side are no sentences.

    Args:
        lines: Lines of the side; blank ones do not count.
        others: Lines of the other side. Where they are the same line, too, the same translation is right.

    Returns:
        The kind of the lines in words, their number, and an example; None if they may be sentences.
    """
    texts = [text for text in map(str.strip, lines) if text]
    if len(texts) < FEWEST:
        return None
    for kind, is_of_kind in _KINDS:
        fitting = [text for text in texts if is_of_kind(text)]
        if len(fitting) >= MOST * len(texts):
            return kind, len(fitting), fitting[0]
    [(text, count)] = Counter(texts).most_common(1)
    [(_, count_of_others)] = Counter(others).most_common(1)
    if count >= MOST * len(texts) and len(text) <= LONGEST and 2 * count_of_others < count:
        return "one and the same text", count, text
    return None
