"""Plain text that is translated line by line."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nmt.text.processor import TextProcessor
from nmt.translation.translation import Translation

_END = re.compile(r"(\r\n|\n|\r)")


class Lines:
    """A text whose lines are translated one by one; empty lines are kept.

    Args:
        source: Any text.
    """

    needs_alignment = False

    def __init__(self, source: str) -> None:
        self._parts = _END.split(source)  # a line, its end, a line, ...
        self._places = [n for n in range(0, len(self._parts), 2) if self._parts[n].strip()]
        self.texts = [self._parts[place] for place in self._places]

    def render(self, translations: Sequence[Translation], processor: TextProcessor | None = None) -> str:
        """The text with its lines translated.

        Args:
            translations: One for each of `texts`.
            processor: Not needed for plain text.
        """
        parts = list(self._parts)
        for place, translation in zip(self._places, translations, strict=True):
            parts[place] = translation.text
        return "".join(parts)
