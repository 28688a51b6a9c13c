"""LSTM layers in one call, on any processor."""

from __future__ import annotations

import functools

import torch
from torch import Tensor, nn


def run_lstm(layers: nn.LSTM, inputs: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """All steps of all layers; under autocast in float32 if the CPU has no LSTM in bfloat16.

    Args:
        layers: The layers, with `batch_first`.
        inputs: [B, T, K].
        state: h and c, [L, B, H] each.

    Returns:
        Outputs of the last layer, [B, T, H], and the new state.
    """
    h, c = state
    autocast = inputs.device.type == "cpu" and torch.is_autocast_enabled("cpu")
    if autocast and not cpu_has_bfloat16_lstm():
        exact = layers.all_weights[0][0].dtype
        with torch.autocast("cpu", enabled=False):
            outputs, last = layers(inputs.to(exact), (h.to(exact), c.to(exact)))
    else:
        outputs, last = layers(inputs, (h, c))
    return outputs, last


@functools.cache
def cpu_has_bfloat16_lstm() -> bool:
    """Whether the CPU has the instructions that oneDNN needs for an LSTM in bfloat16 (x86: AVX-512)."""
    layers = nn.LSTM(1, 1, device="meta").to_empty(device="cpu")  # draws no random numbers
    try:
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
            layers(torch.zeros(1, 1, 1))
    except RuntimeError:
        return False
    return True
