"""The sections of `decode`: the search."""

from typing import Annotated, Literal

from pydantic import Field

from nmt.config.fields import (
    MAX_DECODE_BATCH,
    AtMost,
    Count,
    Flag,
    Hypotheses,
    NonNegative,
    Number,
    Positions,
    Section,
    Seed,
    Tokens,
    key,
)


class SamplingSection(Section):
    """Words are drawn from the model's distribution instead of searched for."""

    temperature: Annotated[Number, Field(ge=0.01, le=100)] | None = key(None, unit="1")
    """Draw words, with log-probabilities divided by this: below 1 prefers probable words; null searches."""
    top_k: Tokens | None = key(None, unit="words")
    """Draw from so many of the most probable words; null from all."""
    top_p: Annotated[Number, Field(gt=0, le=1)] = key(1.0, unit="1")
    """Draw from the fewest most probable words that have this probability together."""
    seed: Seed = key(1, unit="1")
    """With the words of a sentence it decides which words are drawn for it."""


class DecodeSection(Section):
    """Search for a translation; the defaults of `nmt translate` and `nmt evaluate`."""

    beam_size: Hypotheses = key(5, unit="hypotheses")
    """Hypotheses kept at each step; 1 is greedy."""
    length_penalty: Annotated[Number, Field(ge=0, le=100)] = key(1.0, unit="1")
    """Alpha of Wu et al. (2016)."""
    length_norm: Literal["wu", "average"] = "wu"
    """Scores are divided by ((5 + length) / 6) ** length_penalty, or by length ** length_penalty."""
    coverage_penalty: Annotated[Number, Field(ge=0, le=100)] = key(0.0, unit="1")
    """Beta of Wu et al. (2016): lowers the score of translations that leave source words out."""
    batch_size: Annotated[Count, AtMost(MAX_DECODE_BATCH, "they are in memory together")] = key(128, unit="sentences")
    """Sentences translated at once; fewer if they are long."""
    max_length: Positions = key(200, unit="tokens")
    """Maximum length of a translation."""
    max_length_ratio: Annotated[Number, Field(gt=0, le=1000)] = key(3.0, unit="tokens per token")
    """Maximum length per source token, on top of 10 tokens."""
    min_length: Annotated[NonNegative, AtMost(1_000_000, "no line is longer")] = key(1, unit="tokens")
    """Minimum length of a translation; with 0 it may be empty."""
    min_length_ratio: Annotated[Number, Field(ge=0, le=1000)] = key(0.0, unit="tokens per token")
    """Minimum length per source token."""
    no_repeat_ngram_size: Positions | None = key(None, unit="tokens")
    """No sequence of so many tokens twice in a translation; null allows them."""
    sampling: SamplingSection = SamplingSection()
    precision: Literal["float32", "bfloat16"] = "float32"
    """Number format of the products; bfloat16 is faster."""
    replace_unknown: Flag = True
    """Replace an unknown word by the source word attended most."""
