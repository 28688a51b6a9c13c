"""A translation direction: from one language into another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from nmt.text.casing import Casing, casing_of
from nmt.text.languages import UNSPACED_SENTENCES, base_language, language_name, split_code

if TYPE_CHECKING:
    from nmt.config import DataSection

Writing = Literal["ltr", "rtl"]
"""Left to right, or right to left; the values of `dir` in HTML."""
_RIGHT_TO_LEFT = ("ar", "arc", "ckb", "dv", "fa", "he", "nqo", "ps", "sd", "syr", "ug", "ur", "yi")
"""Languages written from right to left, by `base_language`."""
_SCRIPTS_RIGHT_TO_LEFT = ("adlm", "arab", "aran", "hebr", "nkoo", "rohg", "samr", "syrc", "thaa")
"""Scripts written from right to left, by their codes of ISO 15924 in lower case."""
_SCRIPT_LENGTH = 4
"""Letters of a script's code."""


@dataclass(frozen=True)
class Direction:
    """From one language into another.

    Attributes:
        source: Code of the language translated from.
        target: Code of the language translated into.
        tag: First token of each source in a model of several directions, by which it knows this one; None in a model
            of one.
    """

    source: str
    target: str
    tag: str | None = None

    @classmethod
    def of(cls, data: DataSection) -> Direction:
        """The direction of a config.

        Raises:
            ConfigError: It does not say which languages its text is in.
        """
        source, target = data.languages
        return cls(source, target)

    def __str__(self) -> str:
        return f"{self.source}-{self.target}"

    @property
    def name(self) -> str:
        """The English names of the languages: English to German."""
        return f"{self.source_name} to {self.target_name}"

    @property
    def source_name(self) -> str:
        """The English name of the source language, or its code if it has none here."""
        return language_name(self.source)

    @property
    def target_name(self) -> str:
        """The English name of the target language, or its code if it has none here."""
        return language_name(self.target)

    @property
    def casings(self) -> tuple[Casing, Casing]:
        """Rules of small and capital letters of the source and of the target."""
        return casing_of(self.source), casing_of(self.target)

    @property
    def writing(self) -> tuple[Writing, Writing]:
        """How the source and the target are written."""
        return writing_of(self.source), writing_of(self.target)

    @property
    def separator(self) -> str:
        """The text between two sentences of the target: a space, or nothing."""
        return "" if base_language(self.target) in UNSPACED_SENTENCES else " "

    def is_same(self, other: Direction) -> bool:
        """True if both translate between the same languages, scripts and regions included: `deu` is `de`."""
        return self.key == other.key

    @property
    def key(self) -> tuple[tuple[str, str], tuple[str, str], str | None]:
        """A value that is equal for the same direction, however its languages are named."""
        return split_code(self.source), split_code(self.target), self.tag


def writing_of(language: str) -> Writing:
    """How a language is written; a script in its code decides: `az` is ltr, `az-Arab` rtl, `ks-Deva` ltr."""
    base, variant = split_code(language)
    scripts = [part for part in variant.split("-") if len(part) == _SCRIPT_LENGTH and part.isalpha()]
    is_reversed = scripts[0] in _SCRIPTS_RIGHT_TO_LEFT if scripts else base in _RIGHT_TO_LEFT
    return "rtl" if is_reversed else "ltr"
