"""Normalisers, which map scores to non-negative weights that sum to 1, and hard attention, which picks one position."""

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn

from nmt.config.attention_checks import SPARSE_LIBRARY

Normalizer = Callable[[Tensor], Tensor]

_SPARSEMAX = "Martins and Astudillo, 2016, algorithm 1"
_ENTMAX = "Peters et al., 2019, algorithm 2 (alpha = 1.5)"
SUMMARIES = {
    "softmax": ("Weights above 0, exp(s) / sum exp(s)", "Bahdanau et al., 2015, eq. 6"),
    "sparsemax": ("The distribution closest to the scores, with weights of exactly 0", _SPARSEMAX),
    "entmax15": ("Between softmax and sparsemax, with weights of exactly 0", _ENTMAX),
}
"""For each a summary, and its source."""


def make_normalizer(name: str, temperature: float = 1.0) -> Normalizer:
    """Build a function over the last dimension; scores are divided by the temperature first.

    Args:
        name: `softmax`; or `sparsemax` or `entmax15`, with weights of exactly 0 (package `entmax`).
        temperature: Above 1 weights are more uniform, below 1 more peaked.
    """
    # Partial functions of the module, as a model with functions inside functions cannot be pickled.
    if name == "softmax":
        return partial(_softmax, temperature)
    library = importlib.import_module(SPARSE_LIBRARY)
    return partial(_sparse, getattr(library, name), temperature)


def _softmax(temperature: float, scores: Tensor) -> Tensor:
    return (scores / temperature).softmax(dim=-1)


def _sparse(function: Callable[..., Any], temperature: float, scores: Tensor) -> Tensor:
    exact = torch.promote_types(scores.dtype, torch.float32)  # in half precision entmax15 is wrong by 1%
    return cast(Tensor, function(scores.to(exact) / temperature, dim=-1))


class HardChoice(nn.Module):
    """Hard attention (Xu et al., 2015, section 4.1): one position, drawn in training, the most likely in evaluation.

    Its gradient is the straight-through estimate (Bengio et al., 2013): the gradient of the weights it was drawn from.

    Args:
        normalize: Maps scores to the weights to draw from.
    """

    paper: ClassVar[str] = "Xu et al., 2015, section 4.1; Bengio et al., 2013"

    def __init__(self, normalize: Normalizer) -> None:
        super().__init__()
        self.normalize = normalize

    def forward(self, scores: Tensor) -> Tensor:
        """[..., S] -> weight 1 at one position, 0 elsewhere."""
        weights = self.normalize(scores)
        if self.training:
            flat = weights.detach().float().flatten(0, -2)
            chosen = torch.multinomial(flat, 1).view(*weights.shape[:-1], 1)
        else:
            chosen = weights.argmax(dim=-1, keepdim=True)
        hard = torch.zeros_like(weights).scatter(-1, chosen, 1.0)
        if not self.training:
            return hard
        return hard + (weights - weights.detach())  # the value of `hard` with the gradient of the weights
