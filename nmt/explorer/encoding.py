"""Weights as text."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor


def as_bytes(weights: Sequence[Tensor] | Tensor) -> str:
    """Weights in steps of 1/255 as base64, one byte each."""
    flat = b"".join((each * 255).round().byte().flatten().numpy().tobytes() for each in weights)
    return base64.b64encode(flat).decode()


def from_bytes(text: str) -> NDArray[np.float64]:
    """The weights of `as_bytes`, flat."""
    return np.frombuffer(base64.b64decode(text), dtype=np.uint8) / 255
