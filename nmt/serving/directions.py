"""The models of a server by language pair, and language detection."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import ConfigDict

from nmt.config import Config
from nmt.serving.detection import Detection, rank_languages, share_known
from nmt.system.errors import printable
from nmt.text.direction import Direction
from nmt.text.languages import base_language
from nmt.translation.protection import Protection
from nmt.translation.translator import Translator

READ_TO_DETECT = 1000
"""Characters of a text that are read to detect its language."""


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
    """First 12 digits of the SHA-256 checksum of its file model.safetensors, or of the weights of an export."""

    def __str__(self) -> str:
        update = "" if self.update is None else f", update {self.update:,}"
        return f"{self.direction} is {self.path}{update}, identity {self.identity}"


@dataclass(frozen=True, eq=False)
class ServedDirection:
    """The translator of a direction: a model, or several that translate together.

    Attributes:
        direction: The languages.
        translator: All models together.
        models: Each model alone by a name, with the config it was trained with.
        served: Where each model is from.
        glossaries: The spans and terms of each glossary that a request may name, by that name.
    """

    direction: Direction
    translator: Translator
    models: Mapping[str, tuple[Config, Translator]]
    served: tuple[ServedModel, ...] = ()
    glossaries: Mapping[str, Protection] = field(default_factory=dict)

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

    @property
    def is_explorable(self) -> bool:
        """True if the server can show the inside of its models, which another program does not."""
        return bool(self.translator.searcher.models)


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
        targets: dict[str, list[str]] = {}
        for direction in self:
            targets.setdefault(direction.source, []).append(direction.target)
        for direction in self:  # languages that are only translated into
            targets.setdefault(direction.target, [])
        return targets

    def detect(self, text: str, target: str | None = None) -> list[Detection]:
        """Detect which source language a text is in.

        The confidence is the probability of the language among those that are served, times the share of the text's
        tokens that its model knows.

        Args:
            text: Any text, of which the first `READ_TO_DETECT` characters are read.
            target: Consider only languages that are translated into this one; None considers all.

        Returns:
            Languages, the most probable first; none if nothing is translated into the target.
        """
        begin = text[:READ_TO_DETECT]
        # The share of known tokens by source language; of several models the one that knows most counts.
        known: dict[str, float] = {}
        for direction in self:
            if target is None or base_language(direction.target) == base_language(target):
                share = share_known(direction.translator.reader, begin)
                known[direction.source] = max(share, known.get(direction.source, 0.0))
        if not known:
            return []
        probabilities = rank_languages(begin, known)
        detections = []
        for language, probability in probabilities.items():
            confidence = round(100 * probability * known[language], 1)
            detections.append(Detection(language, confidence))
        # Equal confidences, which are rounded, are ranked by probability.
        return sorted(detections, key=lambda detection: (-detection.confidence, -probabilities[detection.language]))
