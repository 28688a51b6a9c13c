"""The language of a text, of those that a server translates: py3langid's model, and the tokens that models know."""

import copy
import functools
import threading
from collections.abc import Iterable
from dataclasses import dataclass

from py3langid.langid import MODEL_FILE, LanguageIdentifier
from pydantic import ConfigDict

from nmt.text.languages import base_language
from nmt.text.vocabulary import UNK_ID
from nmt.translation.reader import Reader


@dataclass(frozen=True)
class Detection:
    """A language that a text may be in."""

    __pydantic_config__ = ConfigDict(use_attribute_docstrings=True)
    language: str
    """Code of the language."""
    confidence: float
    """The probability of the language, times the share of known words, in percent."""


_lock = threading.Lock()
"""Held while the library's model is read, which takes a second, and used: it is not made for threads."""


@functools.cache
def _whole_identifier() -> LanguageIdentifier:
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


@functools.cache
def _identifier(languages: tuple[str, ...]) -> LanguageIdentifier:
    identifier = copy.copy(_whole_identifier())  # both share the arrays of all languages
    identifier.set_languages(languages)
    return identifier


def rank_languages(text: str, languages: Iterable[str]) -> dict[str, float]:
    """The probability of each of some languages, given that the text is in one of them.

    A language that the library does not know is as probable as the mean of the others.

    Args:
        text: The text.
        languages: Codes of the languages.
    """
    bases = {language: base_language(language) for language in languages}
    probabilities: dict[str, float] = {}
    with _lock:
        known = tuple(sorted(set(bases.values()) & set(_whole_identifier().labels)))
        if known:
            probabilities = dict(_identifier(known).rank(text))
    mean = sum(probabilities.values()) / len(probabilities) if probabilities else 1.0
    weights = {language: float(probabilities.get(base, mean)) for language, base in bases.items()}
    total = sum(weights.values())
    return {language: weight / total for language, weight in weights.items()}


def share_known(reader: Reader, text: str) -> float:
    """The share of the tokens of a text that a model knows, 0 if there are none."""
    (tokens,) = reader.tokenize([" ".join(text.split())])
    words = [token for token in tokens if any(map(str.isalnum, token))]
    ids = reader.processor.src_vocabulary.encode(words)
    return sum(index != UNK_ID for index in ids) / len(ids) if ids else 0.0
