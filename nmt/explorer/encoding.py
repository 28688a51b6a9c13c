"""Weights as text."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor


def as_bytes(weights: Sequence[Tensor] | Tensor) -> str:
    """Weights in steps of 1/255 as base64, one byte each."""
    flat = b"".join((each * 255).round().byte().flatten().numpy().tobytes() for each in weights)
    return base64.b64encode(flat).decode()


def from_bytes(text: str, shape: Sequence[int]) -> Tensor:
    """The weights of `as_bytes`."""
    flat = np.frombuffer(base64.b64decode(text), dtype=np.uint8)
    return torch.from_numpy(flat.copy()).view(*shape) / 255
