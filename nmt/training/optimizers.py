"""Optimisers, and one update of the weights from the gradients of a sum over tokens."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from nmt.config import OptimizerSection
from nmt.layers.output import OutputLayer

FUSED = ("adam", "adamw", "sgd")
"""Optimisers with fused kernels, which divide the gradient and skip an update without waiting for the host."""


class Muon(Optimizer):
    """Muon (Jordan et al., 2024) for matrices; AdamW for embeddings, the output layer and vectors.

    Args:
        model: All of its weights are optimised.
        muon: Arguments of torch.optim.Muon.
        adamw: Arguments of torch.optim.AdamW.
    """

    def __init__(self, model: nn.Module, muon: dict[str, Any], adamw: dict[str, Any]) -> None:
        of_words = {
            parameter
            for module in model.modules()
            if isinstance(module, nn.Embedding | OutputLayer)
            for parameter in module.parameters(recurse=False)
        }
        matrices = [weight for weight in model.parameters() if weight.ndim == 2 and weight not in of_words]
        others = [weight for weight in model.parameters() if weight.ndim != 2 or weight in of_words]
        self.parts = torch.optim.Muon(matrices, **muon), AdamW(others, **adamw)
        super().__init__([group for part in self.parts for group in part.param_groups], {})

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Update all weights."""
        for part, group in zip(self.parts, self.param_groups, strict=True):
            part.param_groups = [group]
            part.state = self.state  # loading a checkpoint replaces it
            part.step()


def make_optimizer(config: OptimizerSection, model: nn.Module) -> Optimizer:
    """The optimiser over all weights.

    Args:
        config: Its kind, and its arguments by torch's names, but for `learning_rate` and `epsilon`.
        model: On its device.
    """
    options: dict[str, Any] = config.model_dump(exclude={"name", "clip_norm"})
    options["lr"] = options.pop("learning_rate")
    if config.name != "sgd":
        options["eps"] = options.pop("epsilon")
    if config.name == "muon":
        shared = {key: options.pop(key) for key in ("lr", "weight_decay")}
        adamw = {key: options.pop(key) for key in ("betas", "eps")}
        return Muon(model, shared | options, shared | adamw)
    if config.name in FUSED:
        options["fused"] = True
    kind: type[Optimizer] = getattr(torch.optim, type(config).__name__.removesuffix("Section"))
    optimizer = kind(model.parameters(), **options)
    if config.name == "sgd" and config.momentum:
        for parameter in model.parameters():  # torch would leave it uninitialised if the first update is skipped
            optimizer.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
    return optimizer


def update_weights(
    optimizer: Optimizer, divisor: Tensor, clip_norm: float | None, bad_losses: Tensor
) -> tuple[Tensor, Tensor]:
    """Update the weights by the gradient of the mean over tokens, clipped; skip the update if it is not finite.

    A fused optimiser does the division and the skipping itself, as arguments of its kernel, with the same result.

    Args:
        optimizer: Its parameters have the gradients of a sum over tokens, which are deleted.
        divisor: Divisor that makes a mean of the sum: the number of tokens, a scalar on the device.
        clip_norm: Maximum norm of the mean's gradient; None is off.
        bad_losses: Number of processes whose loss is not finite.

    Returns:
        The norm of the mean's gradient before clipping, and 1 if the update was skipped, otherwise 0.
    """
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    norm = nn.utils.get_total_norm(gradients).float() / divisor
    divisor = divisor * (norm / (clip_norm or math.inf)).clamp(min=1)
    skipped = (bad_losses + (~norm.isfinite()).float()).clamp(max=1)
    if optimizer.defaults.get("fused"):
        optimizer.grad_scale = divisor  # type: ignore[attr-defined]
        optimizer.found_inf = skipped  # type: ignore[attr-defined]
        optimizer.step()
        optimizer.grad_scale = optimizer.found_inf = None  # type: ignore[attr-defined]
    elif not skipped:  # the host waits for the device
        torch._foreach_div_(gradients, divisor)
        optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return norm, skipped
