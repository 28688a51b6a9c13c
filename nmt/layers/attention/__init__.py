"""Attention: one file per score; masking, normalisation and the context are implemented once.

These names are imported on first use, so that `checks` can be used without torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nmt.layers.attention.attention import Attention, FixedContext, ScoreAttention
    from nmt.layers.attention.build import build_attention
    from nmt.layers.attention.memory import AttentionState, Memory
    from nmt.layers.attention.score import Score, find_score

_MODULES = {
    "attention": ("Attention", "FixedContext", "ScoreAttention"),
    "memory": ("AttentionState", "Memory"),
    "build": ("build_attention",),
    "score": ("Score", "find_score"),
}

__all__ = [
    "Attention",
    "AttentionState",
    "FixedContext",
    "Memory",
    "Score",
    "ScoreAttention",
    "build_attention",
    "find_score",
]


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
