"""Attention: one file a score, one place for masking, normalisation and the context."""

from nmt.model.attention.attention import Attention, AttentionState, FixedContext, Memory, ScoreAttention
from nmt.model.attention.build import build_attention, check_attention
from nmt.model.attention.registry import Score, check_score, register_score, score_names

__all__ = [
    "Attention",
    "AttentionState",
    "FixedContext",
    "Memory",
    "Score",
    "ScoreAttention",
    "build_attention",
    "check_attention",
    "check_score",
    "register_score",
    "score_names",
]
