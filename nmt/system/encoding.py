"""Weights as text."""

import base64
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor


def as_bytes(weights: Sequence[Tensor] | Tensor) -> str:
    """Weights in steps of 1/255 as base64, one byte each."""
    flat = b"".join((tensor * 255).round().byte().flatten().numpy().tobytes() for tensor in weights)
    return base64.b64encode(flat).decode()


def as_hundredths(values: Tensor) -> str:
    """Numbers up to 327 in steps of 1/100 as base64, two bytes each, the lower one first."""
    scaled = (values.double() * 100).round().clamp(-32767, 32767).to(torch.int16)
    return base64.b64encode(scaled.flatten().numpy().astype("<i2").tobytes()).decode()


def from_bytes(text: str, shape: Sequence[int]) -> Tensor:
    """The weights of `as_bytes`."""
    flat = np.frombuffer(base64.b64decode(text), dtype=np.uint8)
    return torch.from_numpy(flat.copy()).view(*shape) / 255
