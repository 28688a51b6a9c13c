"""Small and capital letters by language: Turkish and Azerbaijani have two letters i, with and without a dot."""

from typing import Literal

from nmt.text.languages import base_language

Casing = Literal["", "tr"]
"""The rules of a language: those of Unicode for all languages, or of Turkish."""
_DOTTED = ("tr", "az", "crh", "gag")


def casing_of(language: str) -> Casing:
    """The rules of a language, by its code."""
    return "tr" if base_language(language) in _DOTTED else ""


def lower(text: str, casing: Casing = "") -> str:
    """A text in small letters: of `I` an `ı` in Turkish, and of `İ` an `i`."""
    if casing:
        text = text.replace("I\u0307", "i").replace("İ", "i").replace("I", "ı")
    return text.lower()


def upper(text: str, casing: Casing = "") -> str:
    """A text in capitals: of `i` an `İ` in Turkish."""
    return (text.replace("i", "İ") if casing else text).upper()


def capitalize(text: str, casing: Casing = "") -> str:
    """A text in small letters but for its first one."""
    if not casing:
        return text.capitalize()
    return upper(text[:1], casing) + lower(text[1:], casing)
