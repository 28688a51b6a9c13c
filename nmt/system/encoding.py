"""Weights as text."""

import base64
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor


def as_bytes(weights: Sequence[Tensor] | Tensor) -> str:
    """Weights in steps of 1/255 as base64, one byte each."""
    parts = []
    for tensor in weights:
        steps = (tensor * 255).round().byte()
        parts.append(steps.flatten().numpy().tobytes())
    return base64.b64encode(b"".join(parts)).decode()


def as_hundredths(values: Tensor) -> str:
    """Numbers from -327 to 327 in steps of 1/100 as base64, two bytes each, the lower one first."""
    hundredths = (values.double() * 100).round().clamp(-32767, 32767).to(torch.int16)
    little_endian = hundredths.flatten().numpy().astype("<i2")
    return base64.b64encode(little_endian.tobytes()).decode()


def from_bytes(text: str, shape: Sequence[int]) -> Tensor:
    """The weights of `as_bytes`."""
    flat = np.frombuffer(base64.b64decode(text), dtype=np.uint8)
    return torch.from_numpy(flat.copy()).view(*shape) / 255
