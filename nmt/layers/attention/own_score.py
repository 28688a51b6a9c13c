"""A reader's own attention class as a score, with which a model trains."""

from typing import Any

import torch
from torch import Tensor, nn

from nmt.layers.attention.score import Score
from nmt.layers.attention.signature import count_inputs, count_sizes


def as_score(attention: type[nn.Module], *sizes: int, **options: Any) -> type[Score]:
    """Make a score of an attention class, so that a config can name it.

    The weights of the class become scores by their logarithm: the softmax over them, with the padding masked as for all
    scores, gives the same weights. `python -m nmt.testing FILE` says whether the class is sound.

    Args:
        attention: Its `forward(query, states)` or `forward(query, states, mask)` takes [B, D], [B, S, D] and [B, S],
            True at words, and returns the weights [B, S], or the context and the weights.
        sizes: Arguments of its `__init__`; none for the size of the query, once or, for a class that needs two, and
            that of a state.
        options: Keyword arguments of its `__init__`.

    Returns:
        A class for `model.attention.score`, by the dotted path of the name that it is given.
    """

    class OwnScore(Score):
        """The logarithm of the weights of an attention class."""

        needs_equal_sizes = True
        local = False

        def __init__(self, query_size: int, key_size: int) -> None:
            super().__init__()
            self.attention = build_own(attention, sizes, query_size, key_size, options)
            self.takes_mask = count_inputs(attention) > 2

        def forward(self, query: Tensor, keys: Tensor) -> Tensor:
            """See `Score.forward`: each query by itself, as the class takes one."""
            steps = [self._weigh(step, keys) for step in query.unbind(dim=1)]
            return torch.stack(steps, dim=1).clamp(min=torch.finfo(query.dtype).tiny).log()

        def _weigh(self, query: Tensor, keys: Tensor) -> Tensor:
            whole = torch.ones(keys.shape[:2], dtype=torch.bool, device=keys.device)
            result = self.attention(query, keys, whole) if self.takes_mask else self.attention(query, keys)
            parts = result if isinstance(result, tuple | list) else (result,)
            weights: list[Tensor] = [part for part in parts if part.shape == keys.shape[:2]]
            if not weights:
                shapes = ", ".join(str(list(part.shape)) for part in parts)
                raise ValueError(f"no result has the shape of weights, [B, S] = {list(keys.shape[:2])}; found {shapes}")
            return weights[-1]  # where S is D, the context stands before the weights

    return OwnScore


def build_own(
    attention: type[nn.Module], sizes: tuple[int, ...], query_size: int, key_size: int, options: dict[str, Any]
) -> nn.Module:
    """Build a class with its sizes, or with as many as it needs."""
    if not sizes:
        sizes = (query_size, key_size)[: count_sizes(attention)]
    return attention(*sizes, **options)
