"""The models that a server has, by the languages they translate, and which of these a text is in."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from nmt.decoding.translator import Translator
from nmt.errors import ConfigError, printable
from nmt.text.vocabulary import UNK_ID

READ_TO_DETECT = 1000
"""Characters of a text that its language is told by."""
CHARACTERS = 200
"""An unknown token is as probable as a string of letters drawn from so many."""


@dataclass(frozen=True)
class Direction:
    """A model and what it translates.

    Attributes:
        source: Code of the language translated from.
        target: Code of the language translated to.
        translator: The model, ready to translate.
        path: Where it was read from.
    """

    source: str
    target: str
    translator: Translator
    path: Path

    def __str__(self) -> str:
        return printable(f"{self.source}-{self.target}")


@dataclass(frozen=True)
class Detection:
    """A language that a text may be in; the confidence is a percentage."""

    language: str
    confidence: float


class Directions:
    """What a server can translate.

    Args:
        directions: At least one.

    Raises:
        ConfigError: Two models translate the same.
    """

    def __init__(self, directions: Iterable[Direction]) -> None:
        self._of: dict[tuple[str, str], Direction] = {}
        for direction in directions:
            key = direction.source.lower(), direction.target.lower()
            if key in self._of:
                paths = f"{self._of[key].path} and {direction.path}"
                raise ConfigError(f"--model: {paths} both translate {direction}; give one model for each direction")
            if "auto" in key:
                raise ConfigError(f"{direction.path}: no language may be called auto, which asks the server to tell")
            self._of[key] = direction

    def __iter__(self) -> Iterator[Direction]:
        return iter(self._of.values())

    def find(self, source: str, target: str) -> Direction | None:
        """The model from one language into another, whatever the case of their codes; None where there is none."""
        return self._of.get((source.lower(), target.lower()))

    @property
    def targets(self) -> dict[str, list[str]]:
        """For each language translated from, those it is translated to."""
        found: dict[str, list[str]] = {}
        for direction in self._of.values():
            found.setdefault(direction.source, []).append(direction.target)
        return found

    @property
    def languages(self) -> list[str]:
        """All languages, those that are translated from first."""
        return list(dict.fromkeys([*self.targets, *(direction.target for direction in self._of.values())]))

    def detect(self, text: str, target: str | None = None) -> list[Detection]:
        """Which language translated from a text is in: naive Bayes over what the models' vocabularies say.

        The confidence is the posterior probability of the language times the share of the text's tokens that it
        knows. Models that share one vocabulary for both languages cannot be told apart.

        Args:
            text: Any text, of which `READ_TO_DETECT` characters are read.
            target: Only languages that are translated to this one take part; None takes all.

        Returns:
            Languages, the most probable first; none if nothing is translated to the target.
        """
        found: dict[str, tuple[float, float]] = {}
        for direction in self._of.values():
            if target is None or direction.target.lower() == target.lower():
                judged = judge(direction.translator, text[:READ_TO_DETECT])
                found[direction.source] = max(judged, found.get(direction.source, judged))
        return _detections(found)


def judge(translator: Translator, text: str) -> tuple[float, float]:
    """How well a text fits the source vocabulary of a model.

    A token's probability is taken to follow Zipf's law: in proportion to 1 / its rank by frequency, which is its place
    in the vocabulary.

    Returns:
        Log-probability of the text's tokens, and the share of them that are known, 0 where there are none.
    """
    (tokens,) = translator.tokenize([" ".join(text.split())])
    vocabulary = translator.processor.src_vocabulary
    ids = vocabulary.encode(tokens)
    scale = math.log(sum(1 / rank for rank in range(1, len(vocabulary) + 1)))
    surprise = [
        scale + (math.log(len(vocabulary)) + len(token) * math.log(CHARACTERS) if index == UNK_ID else math.log(index))
        for token, index in zip(tokens, ids, strict=True)
    ]
    known = sum(index != UNK_ID for index in ids)
    return -sum(surprise), known / len(ids) if ids else 0.0


def _detections(found: Mapping[str, tuple[float, float]]) -> list[Detection]:
    """Posterior probabilities from log-probabilities, all languages being as frequent as one another."""
    best = max((log_prob for log_prob, _ in found.values()), default=0.0)
    weights = {language: math.exp(log_prob - best) for language, (log_prob, _) in found.items()}
    total = sum(weights.values())
    detections = [
        Detection(language, round(100 * weight / total * found[language][1], 1)) for language, weight in weights.items()
    ]
    return sorted(detections, key=lambda each: -weights[each.language])
