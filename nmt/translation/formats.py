"""Output formats for the translations of a line; a new format is one class in `FORMATS`."""

from __future__ import annotations

import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from nmt.system.errors import ConfigError
from nmt.system.messages import Parameter
from nmt.translation.words import align_words

if TYPE_CHECKING:
    from nmt.text.processor import TextProcessor
    from nmt.translation.translation import Translation

_NOT_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that the json module does not escape, but some readers take for a line end or a control sequence."""
DIGITS = 6
"""Digits after the decimal point of a number in JSON."""


@dataclass
class Format(ABC):
    """A way to write the translations of one line of text.

    Attributes:
        processor: The text processor of the model.
        n_best: Translations of a line.
        with_attention: Write the attention weights too.
    """

    name: ClassVar[str]
    several: ClassVar[bool] = False
    """True if it shows more than the best translation."""
    needs_alignment: ClassVar[bool] = False
    """True if it needs attention weights."""
    processor: TextProcessor
    n_best: int = 1
    with_attention: bool = False

    @abstractmethod
    def render(self, number: int, source: str, translations: Sequence[Translation], end: str = "\n") -> str:
        """Text of complete lines.

        Args:
            number: Number of the line, from 1.
            source: The line.
            translations: At least one, best first, with alignments if `needs_alignment`.
            end: The line end of the line. A format with lines of another kind ends each with a line feed.
        """


class TextFormat(Format):
    """The best translation: one line per input line."""

    name = "text"

    def render(self, number: int, source: str, translations: Sequence[Translation], end: str = "\n") -> str:
        """Only the text, and the line end of the line."""
        return f"{translations[0].text}{end}"


class NBestFormat(Format):
    """All translations of a line, one per line: `number ||| text ||| score`."""

    name = "nbest"
    several = True

    def render(self, number: int, source: str, translations: Sequence[Translation], end: str = "\n") -> str:
        """A line for each translation, best first."""
        return "".join(f"{number} ||| {ranked.text} ||| {ranked.score:z.4f}\n" for ranked in translations)


class PharaohFormat(Format):
    """Links between words, `i-j` for word i of the line and word j of its translation, each counted from 0."""

    name = "pharaoh"
    needs_alignment = True

    def render(self, number: int, source: str, translations: Sequence[Translation], end: str = "\n") -> str:
        """The links of the best translation; see `align_words`."""
        links = align_words(source, translations[0], self.processor)
        return " ".join(f"{i}-{j}" for i, j in links) + "\n"


class JsonLinesFormat(Format):
    """One JSON object per input line: the source, its tokens, translations with scores and word links.

    `copied` is true if the translation is the source, as the model could not read it or it has no letters.
    """

    name = "jsonl"
    several = True
    needs_alignment = True

    def render(self, number: int, source: str, translations: Sequence[Translation], end: str = "\n") -> str:
        """One line of JSON, in which numbers that are not finite are null."""
        best = translations[0]
        value: dict[str, Any] = {"source": source, "source_tokens": best.src_tokens, "truncated": best.truncated}
        value |= {"copied": best.is_copied, "unread_tokens": best.unread}
        value["translations"] = [self._describe(source, translation) for translation in translations]
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        return _NOT_ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"

    def _describe(self, source: str, translation: Translation) -> dict[str, Any]:
        value: dict[str, Any] = {
            "text": translation.text,
            "tokens": translation.tokens,
            "score": _rounded(translation.score),
            "log_prob": _rounded(translation.log_prob),
            "token_log_probs": _rounded(translation.token_log_probs),
            "links": align_words(source, translation, self.processor),
        }
        if self.with_attention:
            weights = translation.alignment
            value["attention"] = None if weights is None else _rounded(weights.tolist())
        return value


def _rounded(value: Any) -> Any:
    """A number, or numbers in nested lists, rounded; None for those that are not finite."""
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return round(value, DIGITS) if math.isfinite(value) else None


FORMATS: dict[str, type[Format]] = {
    kind.name: kind for kind in (TextFormat, NBestFormat, JsonLinesFormat, PharaohFormat)
}
"""Every format by its name."""


def choose_format(
    name: str | None, processor: TextProcessor, *, n_best: int = 1, with_attention: bool = False
) -> Format:
    """The format that a user has chosen.

    Args:
        name: One of `FORMATS`; None selects text for one translation per line and nbest for several.
        processor: The text processor of the model.
        n_best: Translations per line.
        with_attention: True if attention weights are written.

    Raises:
        ConfigError: There is no such format, or it cannot show what was requested.
    """
    name = name or (NBestFormat.name if n_best > 1 else TextFormat.name)
    if name not in FORMATS:
        raise ConfigError("{format}: there are {known}", format=Parameter("format", name), known=", ".join(FORMATS))
    if n_best > 1 and not FORMATS[name].several:
        names = " or ".join(name for name, kind in FORMATS.items() if kind.several)
        raise ConfigError(
            "{n_best}: {name} shows one translation per line; use {names} as {format}",
            n_best=Parameter("n_best", n_best),
            name=name,
            names=names,
            format=Parameter("format"),
        )
    if with_attention and name != JsonLinesFormat.name:
        raise ConfigError(
            "{attention}: {name} has no place for attention weights; use {format}",
            attention=Parameter("with_attention", True),
            name=name,
            format=Parameter("format", JsonLinesFormat.name),
        )
    return FORMATS[name](processor, n_best, with_attention)
