"""The earlier home of `nmt.Score`."""

import warnings

from nmt.layers.attention.score import Score

__all__ = ["Score"]

warnings.warn("nmt.model.attention.Score is nmt.Score now", DeprecationWarning, stacklevel=2)
