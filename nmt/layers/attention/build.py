"""Building attention from a config's `model.attention`."""

from __future__ import annotations

from nmt.config import (
    AttentionSection,
    CoverageSection,
    LocationSection,
    MonotonicWindowSection,
    PredictiveWindowSection,
)
from nmt.config.attention_checks import check_sizes
from nmt.config.attention_scores import properties_of
from nmt.layers.attention.attention import Attention, FixedContext, ScoreAttention
from nmt.layers.attention.heads import MultiHead, SingleHead
from nmt.layers.attention.normalizer import HardChoice, Normalizer, make_normalizer
from nmt.layers.attention.past import Coverage, LocationFeatures, NoPast, Past
from nmt.layers.attention.score import Score, find_score
from nmt.layers.attention.window import GlobalWindow, MonotonicWindow, PredictiveWindow, Window


def build_attention(
    section: AttentionSection, query_size: int, key_size: int, score: type[Score] | None = None
) -> Attention:
    """Build the attention that a config describes.

    Args:
        section: The choices.
        query_size: Size of a decoder state.
        key_size: Size of an encoder state.
        score: A class to use instead of the one that the section names.

    Raises:
        ConfigError: The score does not exist or cannot combine the sizes, or a library is missing.
    """
    if score is None and section.score == "none":
        return FixedContext(key_size)
    heads = SingleHead(query_size, key_size)
    if section.heads > 1:
        heads = MultiHead(query_size, key_size, section.heads, section.head_size)
    score = score or find_score(section.score)
    check_sizes(properties_of(score, section.score), heads.query_size, heads.key_size)
    return ScoreAttention(
        score(heads.query_size, heads.key_size, **section.options),
        key_size,
        heads=heads,
        window=_build_window(section, query_size),
        normalize=_build_normalizer(section),
        past=_build_past(section),
        dropout=section.dropout,
    )


def _build_window(section: AttentionSection, query_size: int) -> Window:
    match section.window:
        case MonotonicWindowSection(radius=radius):
            return MonotonicWindow(radius)
        case PredictiveWindowSection(radius=radius):
            return PredictiveWindow(query_size, radius)
        case _:  # hard attention draws one of all positions
            return GlobalWindow()


def _build_normalizer(section: AttentionSection) -> Normalizer:
    normalize = make_normalizer(section.normalizer.name, section.normalizer.temperature)
    return HardChoice(normalize) if section.window.name == "hard" else normalize


def _build_past(section: AttentionSection) -> Past:
    match section.past:
        case CoverageSection(loss_weight=weight):
            return Coverage(weight)
        case LocationSection(filters=filters, radius=radius):
            return LocationFeatures(filters, radius)
        case _:
            return NoPast()
