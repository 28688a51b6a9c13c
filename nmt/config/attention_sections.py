"""The sections of `model.attention`: where a model looks."""

from typing import Annotated, Any, Literal

from pydantic import Field

from nmt.config.fields import Heads, Kinds, Number, Positions, Probability, Section, Units, key


class GlobalWindowSection(Section):
    """All positions."""

    name: Literal["global"] = "global"


class LocalWindowSection(Section):
    """Positions around one of them."""

    name: str
    radius: Positions = key(10, unit="tokens")
    """D, positions on each side."""


class MonotonicWindowSection(LocalWindowSection):
    """Positions around the current one."""

    name: Literal["local_m"] = "local_m"


class PredictiveWindowSection(LocalWindowSection):
    """Positions around a predicted one."""

    name: Literal["local_p"] = "local_p"


class HardWindowSection(Section):
    """One position, drawn in training."""

    name: Literal["hard"] = "hard"


WindowSection = Annotated[
    GlobalWindowSection | MonotonicWindowSection | PredictiveWindowSection | HardWindowSection,
    Kinds("name", "Which source positions a step may attend to (Luong et al., 2015, section 3)."),
]


class NormalizerSection(Section):
    """From scores to weights."""

    name: Literal["softmax", "sparsemax", "entmax15"] = "softmax"
    """sparsemax and entmax15 give weights of exactly 0 (package entmax)."""
    temperature: Annotated[Number, Field(ge=0.001, le=1000)] = key(1.0, unit="1")
    """Divides the scores: above 1 weights are more uniform."""


class NoPastSection(Section):
    """No memory."""

    name: Literal["none"] = "none"


class CoverageSection(Section):
    """The sum of all alignments so far."""

    name: Literal["coverage"] = "coverage"
    loss_weight: Annotated[Number, Field(ge=0, le=1000)] = key(0.0, unit="1")
    """Weight of the coverage loss (See et al., 2017)."""


class LocationSection(Section):
    """The last alignment, convolved."""

    name: Literal["location"] = "location"
    filters: Units = key(10, unit="features")
    """Features per position."""
    radius: Units = key(5, unit="tokens")
    """Positions on each side that a feature depends on."""


PastSection = Annotated[
    NoPastSection | CoverageSection | LocationSection,
    Kinds("name", "Memory of earlier alignments in the score; additive scores only."),
]


class AttentionSection(Section):
    """How the decoder reads the source; `nmt attentions` lists the mechanisms."""

    score: Annotated[str, Field(min_length=1, max_length=200)] = "general"
    """Additive (= concat), dot, general, location, scaled_dot, cosine, none (fixed context) or the dotted path of a
    class."""
    options: dict[str, Any] = Field({})
    """Arguments of the score's class."""
    heads: Heads = key(1, unit="heads")
    """If several, each has projections of its own."""
    head_size: Units | None = key(None, unit="units")
    """Size of a head; null divides the encoder states among them."""
    window: WindowSection = GlobalWindowSection()
    normalizer: NormalizerSection = NormalizerSection()
    past: PastSection = NoPastSection()
    dropout: Probability = key(0.0, unit="probability")
    """Probability of dropping an attention weight, in training."""
