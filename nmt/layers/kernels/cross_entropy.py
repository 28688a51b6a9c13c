"""Losses of the output layer, which never store the logits of more than `chunk_rows` target positions.

Cross-entropy, and that of one reading of the words with its divergence from another reading.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nmt.layers.kernels.products import pad_rows

CHUNK_ROWS = 1024
"""Rows of logits in memory at once, on the CPU and at least."""
CHUNK_LOGITS = 1 << 26
"""Logits in memory at once on other devices, whose products of few rows are slow: 256 MiB in float32."""
Measure = Callable[[Tensor, Tensor, bool], tuple[Tensor, Tensor]]
"""From the logits of some positions, reading after reading, padding last [rows, V], which it overwrites, the words to
predict [positions, 1], and whether the gradient is needed: the loss, and its gradient with respect to the logits, which
is 0 on padding."""


def output_cross_entropy(
    readouts: Tensor,
    weight: Tensor,
    bias: Tensor,
    targets: Tensor,
    label_smoothing: float = 0.0,
    ignored: int | None = None,
) -> Tensor:
    """Summed cross-entropy in nats of an output layer, with label smoothing e (Szegedy et al., 2016, section 7).

    sum_p logsumexp(z_p) - (1 - e) z_p[y_p] - e mean(z_p), where z = x W^T + b. Its gradient with respect to z_p,
    softmax(z_p) - (1 - e) onehot(y_p) - e / V, replaces each chunk of z in place, and those of x, W and b follow at
    once. Under autocast the products are in its precision; the rest is in float32.

    Args:
        readouts: x, [P, K].
        weight: W, [V, K].
        bias: b, [V].
        targets: y, word ids [P].
        label_smoothing: e.
        ignored: Id whose positions have neither a loss nor a gradient; None if there are none.

    Returns:
        A scalar, in float32 or better.
    """
    return _output_loss((readouts, weight, bias), targets, 1, partial(_cross_entropy, label_smoothing, ignored))


def consistent_cross_entropy(
    readouts: Tensor,
    weight: Tensor,
    bias: Tensor,
    targets: Tensor,
    label_smoothing: float,
    consistency: float,
    *,
    stop_gradient: bool = False,
) -> Tensor:
    """Summed cross-entropy of a first reading, see `output_cross_entropy`, and its divergence from a second one.

    sum_p CE(z_p) + a KL(p || q), KL(p || q) = sum_v p_v (log p_v - log q_v), with p = softmax(z_p) of the first reading
    and q = softmax(z'_p) of the second. The gradient of KL is p (log p - log q - KL) with respect to z_p and q - p with
    respect to z'_p.

    Args:
        readouts: x of the first reading, then of the second, [2 * P, K].
        weight: W, [V, K].
        bias: b, [V].
        targets: y, word ids [P].
        label_smoothing: e.
        consistency: a.
        stop_gradient: True if p is a constant in KL.

    Returns:
        A scalar, in float32 or better.
    """
    measure = partial(_consistent_cross_entropy, label_smoothing, consistency, stop_gradient)
    return _output_loss((readouts, weight, bias), targets, 2, measure)


def _output_loss(parts: tuple[Tensor, Tensor, Tensor], targets: Tensor, readings: int, measure: Measure) -> Tensor:
    """A loss of the output layer.

    Args:
        parts: x, W and b; x of all readings, one after the other.
        targets: y, word ids [P].
        readings: How many readings there are.
        measure: The loss of a chunk.
    """
    device = parts[0].device.type
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else parts[0].dtype
    if dtype == torch.float16:  # the gradients of this layer are made before the loss is scaled: they need the range
        dtype = torch.float32
    needed = torch.is_grad_enabled() and any(part.requires_grad for part in parts)
    with torch.autocast(device, enabled=False):
        total: Tensor = _OutputLoss.apply(*parts, targets, readings, measure, dtype, needed)  # type: ignore[no-untyped-call]
    return total


def chunk_rows(device: str, words: int) -> int:
    """Rows of logits in memory at once.

    Args:
        device: Type of the device.
        words: Words of the vocabulary.
    """
    return CHUNK_ROWS if device == "cpu" else max(CHUNK_ROWS, CHUNK_LOGITS // words)


def _cross_entropy(
    smoothing: float, ignored: int | None, logits: Tensor, words: Tensor, needed: bool
) -> tuple[Tensor, Tensor]:
    """The loss of some positions and, if needed, its gradient; see `Measure`.

    Args:
        smoothing: e of `output_cross_entropy`.
        ignored: See `output_cross_entropy`.
        logits: See `Measure`.
        words: See `Measure`.
        needed: See `Measure`.
    """
    rows = len(words)
    # The logits that count as right, [rows, 1]: that of the word and, smoothed, the mean of all.
    target = (1 - smoothing) * logits[:rows].gather(1, words)
    if smoothing:
        target += smoothing * logits[:rows].mean(dim=1, keepdim=True)
    highest = logits[:rows].amax(dim=1, keepdim=True)
    probabilities = torch.softmax(logits, dim=1, out=logits)
    # The largest probability is exp(highest - logsumexp), and at least 1 / V.
    losses = highest - probabilities[:rows].amax(dim=1, keepdim=True).log() - target  # [rows, 1]
    d_logits = probabilities
    if needed:  # softmax(z) - (1 - e) onehot(y) - e / V, in place
        d_logits[rows:] = 0
        d_logits[:rows].scatter_add_(1, words, d_logits.new_full((rows, 1), smoothing - 1))
        if smoothing:
            d_logits[:rows] -= smoothing / logits.size(1)
    if ignored is not None:
        uncounted = words == ignored
        losses = losses.masked_fill(uncounted, 0)
        d_logits[:rows].masked_fill_(uncounted, 0)
    return losses.sum(), d_logits


def _consistent_cross_entropy(
    smoothing: float, consistency: float, stop_gradient: bool, logits: Tensor, words: Tensor, needed: bool
) -> tuple[Tensor, Tensor]:
    """The loss of some positions and, if needed, its gradient; see `Measure`.

    Args:
        smoothing: e of `consistent_cross_entropy`.
        consistency: a.
        stop_gradient: True if p is a constant in KL.
        logits: See `Measure`.
        words: See `Measure`.
        needed: See `Measure`.
    """
    positions = len(words)
    log_probs = torch.log_softmax(logits[: 2 * positions], dim=1)
    # The probabilities take the memory of the logits, so that p and q are views of `logits`.
    probabilities = torch.exp(log_probs, out=logits[: 2 * positions])
    p = probabilities[:positions]
    q = probabilities[positions:]
    log_p = log_probs[:positions]
    log_q = log_probs[positions:]
    target = (1 - smoothing) * log_p.gather(1, words)
    if smoothing:
        target += smoothing * log_p.mean(dim=1, keepdim=True)
    log_ratio = log_p.sub_(log_q)  # in place: log_p is no longer needed
    divergence = torch.linalg.vecdot(p, log_ratio).unsqueeze(1)  # KL, [positions, 1]
    loss = consistency * divergence.sum() - target.sum()
    if needed:  # each gradient takes the place of its probabilities, and so becomes a part of `logits`
        logits[2 * positions :] = 0  # padding
        # a (q - p), of the second reading: first, as it needs p
        q.sub_(p).mul_(consistency)
        # p + a p (log p - log q - KL) - (1 - e) onehot(y) - e / V, of the first reading
        if not stop_gradient:
            log_ratio.sub_(divergence).mul_(consistency).add_(1).mul_(p)
            p.copy_(log_ratio)
        p.scatter_add_(1, words, p.new_full((positions, 1), smoothing - 1))
        if smoothing:
            p -= smoothing / logits.size(1)
    return loss, logits


class _OutputLoss(torch.autograd.Function):
    """A loss whose forward pass already saves the gradients of readouts, weight and bias, its first three inputs."""

    @staticmethod
    def forward(ctx: Any, readouts: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, *options: Any) -> Tensor:
        readings, measure, dtype, needed = options
        exact = torch.promote_types(dtype, torch.float32)
        kernel = weight.to(dtype)
        total = torch.zeros((), dtype=exact, device=readouts.device)
        # The loop fills them; without targets it does not run, and they are 0.
        make = torch.empty_like if len(targets) else torch.zeros_like
        gradients = [make(part, dtype=exact) for part in (readouts, weight, bias)] if needed else []
        shape = readings, len(targets), readouts.size(1)
        step = chunk_rows(readouts.device.type, len(weight)) // readings
        for first in range(0, len(targets), step):
            part = slice(first, first + step)
            words = targets[part].unsqueeze(1)
            chunk = readouts.view(shape)[:, part]  # [readings, positions, K]
            rows = pad_rows(chunk.flatten(0, 1).to(dtype))  # -> [rows, K]
            logits = (rows @ kernel.t()).to(exact).add_(bias)  # [rows, V]; addmm is slower
            loss, d_logits = measure(logits, words, needed)
            total += loss
            if not needed:
                continue

            # z = x W^T + b, so dx = dz W, dW = dz^T x and db = sum(dz).
            rounded = d_logits.to(dtype)
            d_chunk = (rounded @ kernel)[: readings * len(words)]  # without padding
            gradients[0].view(shape)[:, part] = d_chunk.view(chunk.shape)
            d_weight = (rounded.t() @ rows).to(exact)
            d_bias = d_logits.sum(dim=0)
            if first == 0:
                gradients[1:] = [d_weight, d_bias]
            else:
                gradients[1].add_(d_weight)
                gradients[2].add_(d_bias)
        ctx.save_for_backward(*gradients)
        ctx.dtypes = readouts.dtype, weight.dtype, bias.dtype
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_total: Tensor) -> tuple[Tensor | None, ...]:
        """Scale the saved gradients."""
        gradients = ctx.saved_tensors
        if d_total.device.type != "cpu" or d_total != 1:  # on another device the comparison would wait for it
            gradients = tuple(gradient * d_total for gradient in gradients)
        cast = [gradient.to(dtype) for gradient, dtype in zip(gradients, ctx.dtypes, strict=True)]
        without_gradient = [None] * (len(ctx.needs_input_grad) - len(cast))  # of targets and options
        return *cast, *without_gradient
