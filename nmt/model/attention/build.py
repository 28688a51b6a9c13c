"""From names to an attention: the five choices, and which of them do not go together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from nmt.errors import ConfigError
from nmt.model.attention.attention import Attention, FixedContext, ScoreAttention
from nmt.model.attention.heads import MultiHead, SingleHead
from nmt.model.attention.normalizer import HardChoice, NormalizerName, check_normalizer, make_normalizer
from nmt.model.attention.past import Coverage, LocationFeatures, NoPast, Past
from nmt.model.attention.registry import Score, check_score
from nmt.model.attention.window import GlobalWindow, MonotonicWindow, PredictiveWindow, Window

WindowName = Literal["global", "local_m", "local_p", "hard"]
PastName = Literal["none", "coverage", "location"]
WINDOWS: dict[WindowName, type[Window] | type[HardChoice]] = {
    "global": GlobalWindow,
    "local_m": MonotonicWindow,
    "local_p": PredictiveWindow,
    "hard": HardChoice,
}
PASTS: dict[PastName, type[Past]] = {"none": NoPast, "coverage": Coverage, "location": LocationFeatures}


def build_attention(
    score: str | type[Score],
    query_size: int,
    key_size: int,
    options: Mapping[str, Any] | None = None,
    *,
    heads: int = 1,
    head_size: int | None = None,
    window: WindowName = "global",
    radius: int = 10,
    normalizer: NormalizerName = "softmax",
    temperature: float = 1.0,
    past: PastName = "none",
    loss_weight: float = 0.0,
    filters: int = 10,
    past_radius: int = 5,
    dropout: float = 0.0,
) -> Attention:
    """Make the attention that a config names.

    Args:
        score: A registered score, `none`, or a `Score` class or its dotted path.
        query_size: Size of a decoder state.
        key_size: Size of an encoder state.
        options: Keyword arguments of the score's own.
        heads: Heads; more than one have projections of their own.
        head_size: Units a head; None shares out `key_size`.
        window: Which positions count.
        radius: D of the local windows, in tokens.
        normalizer: From scores to weights.
        temperature: Divides the scores.
        past: What the score sees of earlier steps.
        loss_weight: Weight of the coverage loss.
        filters: Location features of a position.
        past_radius: Positions on each side that a location feature sees.
        dropout: Of attention weights.

    Raises:
        ConfigError: No such score, or it cannot combine the sizes, or a library is missing.
    """
    many = heads > 1
    split = (
        MultiHead(query_size, key_size, number=heads, head_size=head_size) if many else SingleHead(query_size, key_size)
    )
    kind = check_score(score, split.query_size, split.key_size)
    if kind is None:
        return FixedContext(key_size)
    windows: dict[WindowName, Callable[[], Window]] = {
        "global": GlobalWindow,
        "local_m": lambda: MonotonicWindow(radius),
        "local_p": lambda: PredictiveWindow(query_size, radius),
        "hard": GlobalWindow,
    }
    pasts: dict[PastName, Callable[[], Past]] = {
        "none": NoPast,
        "coverage": lambda: Coverage(loss_weight),
        "location": lambda: LocationFeatures(filters, past_radius),
    }
    normalize = make_normalizer(normalizer, temperature)
    return ScoreAttention(
        kind(split.query_size, split.key_size, **(options or {})),
        key_size,
        heads=split,
        window=windows[window](),
        normalize=HardChoice(normalize) if window == "hard" else normalize,
        past=pasts[past](),
        dropout=dropout,
    )


def check_attention(
    score: type[Score] | None,
    name: str,
    *,
    key_size: int,
    heads: int,
    head_size: int | None,
    window: WindowName,
    normalizer: NormalizerName,
    temperature: float,
    past: PastName,
    loss_weight: float,
    dropout: float,
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Find choices that do not go together; the arguments are those of `build_attention`.

    Args:
        score: The class that `name` stands for.
        name: What the config calls it.

    Yields:
        The key to change, from the attention's section on, and why.
    """
    if score is None:
        chosen = {
            ("heads",): heads > 1,
            ("head_size",): head_size is not None,
            ("window", "name"): window != "global",
            ("normalizer", "name"): normalizer != "softmax",
            ("normalizer", "temperature"): temperature != 1.0,
            ("past", "name"): past != "none",
            ("past", "loss_weight"): loss_weight > 0,
            ("dropout",): dropout > 0,
        }
        yield from ((key, "has nothing to act on: the score is none") for key, given in chosen.items() if given)
        return
    if heads > 1 and not score.multi_head:
        yield ("heads",), f"the score {name} takes one head; additive, dot, general and scaled_dot take several"
    if heads > 1 and head_size is None and key_size % heads:
        yield ("heads",), f"{heads} do not divide the encoder states' {key_size} units; change it or set head_size"
    if heads == 1 and head_size is not None:
        yield ("head_size",), "needs heads above 1"
    if WINDOWS[window].local and not score.local:
        yield ("window", "name"), f"{window} could lie where the score {name} does not reach; take global or hard"
    if past != "none" and not score.takes_features:
        yield ("past", "name"), f"the score {name} cannot take in {past}; additive (concat) can"
    if past != "none" and heads > 1:
        yield ("past", "name"), f"{past} follows one alignment, found {heads} heads"
    if loss_weight and past != "coverage":
        yield ("past", "loss_weight"), "is that of the coverage loss: needs past.name: coverage"
    try:
        check_normalizer(normalizer)
    except ConfigError as error:
        yield ("normalizer", "name"), str(error)
