"""The models of a server by language pair, and language detection."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import ConfigDict

from nmt.config import Config
from nmt.system.errors import printable
from nmt.text.direction import Direction
from nmt.text.languages import base_language
from nmt.text.vocabulary import UNK_ID
from nmt.translation.translator import Translator

READ_TO_DETECT = 1000
"""Characters of a text that are read to detect its language."""
ALPHABET = 200
"""The characters of an unknown token are assumed to be drawn uniformly from an alphabet of this size."""


@dataclass(frozen=True)
class ServedModel:
    """A model that answers."""

    __pydantic_config__ = ConfigDict(use_attribute_docstrings=True)
    direction: str
    """Codes of the languages that it translates from and into."""
    path: str
    """Its folder, as the server was told."""
    update: int | None
    """Update of its training; null if it does not say."""
    identity: str
    """First 12 digits of the SHA-256 checksum of its file model.safetensors."""

    def __str__(self) -> str:
        update = "" if self.update is None else f", update {self.update:,}"
        return f"{self.direction} is {self.path}{update}, identity {self.identity}"


@dataclass(frozen=True, eq=False)
class ServedDirection:
    """What translates one language into another: a model, or several that translate together.

    Attributes:
        direction: The languages.
        translator: All models together.
        models: Each model alone by a name, with the config it was trained with.
        served: Where each model is from.
    """

    direction: Direction
    translator: Translator
    models: Mapping[str, tuple[Config, Translator]]
    served: tuple[ServedModel, ...] = ()

    def __str__(self) -> str:
        return printable(str(self.direction))

    @property
    def source(self) -> str:
        """Code of the language translated from."""
        return self.direction.source

    @property
    def target(self) -> str:
        """Code of the language translated into."""
        return self.direction.target


@dataclass(frozen=True)
class Detection:
    """A language that a text may be in."""

    __pydantic_config__ = ConfigDict(use_attribute_docstrings=True)
    language: str
    """Code of the language."""
    confidence: float
    """The probability of the language, times the share of known words, in percent."""


class Directions(tuple[ServedDirection, ...]):
    """The translation directions of a server: at least one, and no two of the same languages."""

    def find(self, source: str, target: str) -> ServedDirection | None:
        """The model from one language into another; None if there is none.

        Codes are compared ignoring case; only if no model has these codes, those of the same languages count: `deu` is
        `de`, and `zh-CN` is `zh`.
        """
        asked = source.lower(), target.lower()
        for served in self:
            if (served.source.lower(), served.target.lower()) == asked:
                return served
        bases = base_language(source), base_language(target)
        for served in self:
            if (base_language(served.source), base_language(served.target)) == bases:
                return served
        return None

    @property
    def served(self) -> list[ServedModel]:
        """Where the models are from."""
        return [model for direction in self for model in direction.served]

    @property
    def targets(self) -> dict[str, list[str]]:
        """All languages, source languages first, with those that each is translated into."""
        targets: dict[str, list[str]] = {direction.source: [] for direction in self}
        for direction in self:
            targets[direction.source].append(direction.target)
        return targets | {direction.target: [] for direction in self if direction.target not in targets}

    def detect(self, text: str, target: str | None = None) -> list[Detection]:
        """Detect which source language a text is in, by naive Bayes over the vocabularies of the models.

        The confidence is the posterior probability of the language times the share of the text's tokens that are in
        its vocabulary. Languages that share a joint vocabulary cannot be distinguished.

        Args:
            text: Any text, of which the first `READ_TO_DETECT` characters are read.
            target: Consider only languages that are translated into this one; None considers all.

        Returns:
            Languages, the most probable first; none if nothing is translated into the target.
        """
        fits: dict[str, tuple[float, float]] = {}
        for direction in self:
            if target is None or base_language(direction.target) == base_language(target):
                fit = judge(direction.translator, text[:READ_TO_DETECT])
                fits[direction.source] = max(fit, fits.get(direction.source, fit))
        best = max(fits.values(), default=(0.0, 0.0))[0]
        weights = {language: math.exp(log_prob - best) for language, (log_prob, _) in fits.items()}
        total = sum(weights.values())
        return [
            Detection(language, round(100 * weights[language] / total * fits[language][1], 1))
            for language in sorted(weights, key=lambda language: -weights[language])
        ]


def judge(translator: Translator, text: str) -> tuple[float, float]:
    """How well a text fits the source vocabulary of a model.

    Token probabilities are assumed to follow Zipf's law: proportional to 1 / rank by frequency, which is the token's
    position in the vocabulary.

    Returns:
        Log-probability of the text's tokens, and the share of them that are known, 0 if there are none.
    """
    (tokens,) = translator.reader.tokenize([" ".join(text.split())])
    vocabulary = translator.processor.src_vocabulary
    ids = vocabulary.encode(tokens)
    scale = math.log(sum(1 / rank for rank in range(1, len(vocabulary) + 1)))
    surprise = [
        scale + (math.log(len(vocabulary)) + len(token) * math.log(ALPHABET) if index == UNK_ID else math.log(index))
        for token, index in zip(tokens, ids, strict=True)
    ]
    known = sum(index != UNK_ID for index in ids)
    return -sum(surprise), known / len(ids) if ids else 0.0
