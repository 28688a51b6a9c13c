"""The equations of the model, each once, in the papers' order and symbols.

Every function is for one sentence and one step, without batches, padding or masks, in plain torch with autograd's
gradients. Only the tests use this module: they check that the rest of `nmt.model`, which computes the same for whole
batches and many steps at a time, agrees with it in values and gradients.

Symbols: x is an input, h an encoder state, s a decoder state, y an embedded word. W, U, V and C are matrices that
multiply from the left, v is a vector, b a bias. S source and T target positions are counted from 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

Step = Callable[[Tensor, tuple[Tensor, ...]], tuple[Tensor, ...]]
"""A recurrent layer: maps an input and a state to the next state, whose first part is the output."""


# Recurrent layers


def lstm_step(x: Tensor, h: Tensor, c: Tensor, W: Tensor, U: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """One step of an LSTM (Hochreiter & Schmidhuber, 1997) with forget gates (Gers et al., 2000), without peepholes.

    Args:
        x: Input, [K].
        h: Hidden state, [H].
        c: Cell state, [H].
        W: Rows of the input gate, the forget gate, the candidate and the output gate, [4 * H, K].
        U: The same, [4 * H, H].
        b: The same, [4 * H].
    """
    i, f, g, o = (W @ x + U @ h + b).chunk(4)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    h = torch.sigmoid(o) * torch.tanh(c)
    return h, c


def gru_step(x: Tensor, h: Tensor, W: Tensor, U: Tensor, b: Tensor, d: Tensor) -> Tensor:
    """One step of torch's GRU: that of Cho et al. (2014), but the reset gate multiplies U h + d, not h.

    Args:
        x: Input, [K].
        h: Hidden state, [H].
        W: Rows of the reset gate, the update gate and the candidate, [3 * H, K].
        U: The same, [3 * H, H].
        b: Bias of W x, [3 * H].
        d: Bias of U h, [3 * H].
    """
    W_r, W_z, W_n = (W @ x + b).chunk(3)
    U_r, U_z, U_n = (U @ h + d).chunk(3)
    r = torch.sigmoid(W_r + U_r)
    z = torch.sigmoid(W_z + U_z)
    n = torch.tanh(W_n + r * U_n)
    return (1 - z) * n + z * h


def layer_norm(a: Tensor, g: Tensor, b: Tensor) -> Tensor:
    """Layer normalisation (Ba et al., 2016, eq. 3-4) with gain g and bias b; torch adds 1e-5 to the variance."""
    variance = ((a - a.mean()) ** 2).mean()
    return (a - a.mean()) / torch.sqrt(variance + 1e-5) * g + b


Norm = Callable[[Tensor], Tensor]
"""`layer_norm` with a given gain and bias."""


def normalized_lstm_step(
    x: Tensor, h: Tensor, c: Tensor, W: Tensor, U: Tensor, norm_x: Norm, norm_h: Norm, norm_c: Norm
) -> tuple[Tensor, Tensor]:
    """`lstm_step` with layer normalisation (Ba et al., 2016, eq. 20-22)."""
    i, f, g, o = (norm_h(U @ h) + norm_x(W @ x)).chunk(4)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    h = torch.sigmoid(o) * torch.tanh(norm_c(c))
    return h, c


def normalized_gru_step(
    x: Tensor, h: Tensor, W: Tensor, U: Tensor, norm_x: tuple[Norm, Norm], norm_h: tuple[Norm, Norm]
) -> Tensor:
    """`gru_step` with layer normalisation (Ba et al., 2016, supplementary material).

    Reset and update gate are normalised together, the candidate separately.
    """
    size = 2 * len(h)
    r, z = torch.sigmoid(norm_h[0](U[:size] @ h) + norm_x[0](W[:size] @ x)).chunk(2)
    n = torch.tanh(norm_x[1](W[size:] @ x) + r * norm_h[1](U[size:] @ h))
    return (1 - z) * n + z * h


def run(step: Step, inputs: Sequence[Tensor], state: tuple[Tensor, ...]) -> list[Tensor]:
    """The outputs of a layer over a sequence."""
    outputs = []
    for x in inputs:
        state = step(x, state)
        outputs.append(state[0])
    return outputs


def encode(inputs: Sequence[Tensor], forward: Step, backward: Step, zeros: tuple[Tensor, ...]) -> list[Tensor]:
    """A bidirectional layer (Bahdanau et al., 2015, section 3.2): h_j concatenates the states of both directions."""
    forward_states = run(forward, inputs, zeros)
    backward_states = run(backward, inputs[::-1], zeros)[::-1]
    return [torch.cat(both) for both in zip(forward_states, backward_states, strict=True)]


def initial_state(h: Tensor, W: Tensor, b: Tensor) -> Tensor:
    """s_0 = tanh(W h + b) (Bahdanau et al., 2015, A.2.2), where h is the backward state at the first word."""
    return torch.tanh(W @ h + b)


# Scores of a decoder state s and an encoder state h


def additive(s: Tensor, h: Tensor, W: Tensor, U: Tensor, v: Tensor) -> Tensor:
    """Additive score (Bahdanau et al., 2015, A.1.2): v^T tanh(W s + U h).

    Luong's `concat`, v^T tanh(W [s; h]), is the same function with [W U] for W.
    """
    return v @ torch.tanh(W @ s + U @ h)


def additive_with_features(s: Tensor, h: Tensor, f: Tensor, W: Tensor, U: Tensor, V: Tensor, v: Tensor) -> Tensor:
    """Additive score of a position with features f of past alignments: v^T tanh(W s + U h + V f).

    f is its coverage (See et al., 2017, eq. 11) or its location features (Chorowski et al., 2015, eq. 9).
    """
    return v @ torch.tanh(W @ s + U @ h + V @ f)


def dot(s: Tensor, h: Tensor) -> Tensor:
    """Dot product (Luong et al., 2015, section 3.1): s^T h."""
    return s @ h


def general(s: Tensor, h: Tensor, W: Tensor) -> Tensor:
    """General score (Luong et al., 2015, section 3.1): s^T W h."""
    score: Tensor = s @ W @ h
    return score


def scaled_dot(s: Tensor, h: Tensor) -> Tensor:
    """Scaled dot product (Vaswani et al., 2017, eq. 1): s^T h / sqrt(d)."""
    score: Tensor = s @ h / math.sqrt(len(s))
    return score


def cosine(s: Tensor, h: Tensor, sharpness: Tensor) -> Tensor:
    """Cosine (Graves et al., 2014, eq. 6), times a key strength (eq. 5); 0 if either vector is 0."""
    score: Tensor = sharpness * (s @ h) / (s.norm().clamp(min=1e-12) * h.norm().clamp(min=1e-12))
    return score


def location(s: Tensor, W: Tensor) -> Tensor:
    """Location-based scores of the first positions (Luong et al., 2015, eq. 8): W s; does not depend on the source."""
    return W @ s


def location_features(alignment: Tensor, F: Tensor) -> Tensor:
    """Features of each position (Chorowski et al., 2015, eq. 8): the last alignment [S] convolved, [S, filters].

    Args:
        alignment: a_{t-1}, [S].
        F: Filters over a position and its neighbours, [filters, 2 * radius + 1].
    """
    radius = F.size(1) // 2
    padded = torch.nn.functional.pad(alignment, (radius, radius))
    return torch.stack([F @ padded[j : j + F.size(1)] for j in range(len(alignment))])


# Attention


def attend(scores: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """Softmax attention (Bahdanau et al., 2015, eq. 5-6): alignment a = softmax(e) and context c = sum_j a_j h_j.

    Args:
        scores: e, [S].
        h: Encoder states, [S, D].

    Returns:
        c [D] and a [S].
    """
    a = torch.exp(scores) / torch.exp(scores).sum()
    return a @ h, a


def monotonic_centre(t: int, length: int) -> float:
    """Local-m (Luong et al., 2015, section 3.2): p_t = t, or the last position if the source is shorter."""
    return min(t, length - 1)


def predicted_centre(s: Tensor, length: int, W: Tensor, v: Tensor) -> Tensor:
    """Local-p (Luong et al., 2015, eq. 9): p_t = S sigmoid(v^T tanh(W s))."""
    return length * torch.sigmoid(v @ torch.tanh(W @ s))


def window(length: int, centre: float, radius: int) -> list[int]:
    """Positions j of a local window (Luong et al., 2015, section 3.2): those with |j - p_t| <= D."""
    return [j for j in range(length) if abs(j - centre) <= radius]


def gaussian(a: Tensor, positions: Tensor, centre: Tensor, radius: int) -> Tensor:
    """Alignment of local-p (Luong et al., 2015, eq. 10): a_j exp(-(j - p_t)^2 / (2 sigma^2)), sigma = D / 2."""
    sigma = radius / 2
    return a * torch.exp(-((positions - centre) ** 2) / (2 * sigma**2))


def coverage_loss(alignments: Tensor) -> Tensor:
    """Coverage loss (See et al., 2017, eq. 10 and 12): sum_t sum_j min(a_tj, sum_{t' < t} a_t'j), [T, S] -> scalar."""
    coverage = torch.zeros_like(alignments[0])
    loss = torch.zeros_like(coverage.sum())
    for a in alignments:
        loss = loss + torch.minimum(a, coverage).sum()
        coverage = coverage + a
    return loss


# Decoders


Attend = Callable[[Tensor], tuple[Tensor, Tensor]]
"""Scores a query against all encoder states and calls `attend`; returns context and alignment."""


def bahdanau_step(
    y: Tensor, state: tuple[Tensor, ...], attention: Attend, recurrent: Step
) -> tuple[Tensor, Tensor, Tensor, tuple[Tensor, ...]]:
    """Attend with the last state, then update (Bahdanau et al., 2015, section 3.1).

    c_i = attend(s_{i-1});  s_i = f(s_{i-1}, y_{i-1}, c_i).

    Returns:
        s_i, c_i, the alignment and the new state, whose first part is s_i.
    """
    c, a = attention(state[0])
    state = recurrent(torch.cat([y, c]), state)
    return state[0], c, a, state


def bahdanau_readout(s: Tensor, c: Tensor, y: Tensor, W: Tensor, b: Tensor) -> Tensor:
    """tanh(W [s_i; c_i; y_{i-1}] + b): the plain form of g in Bahdanau et al. (2015, eq. 4)."""
    return torch.tanh(W @ torch.cat([s, c, y]) + b)


def maxout_readout(s: Tensor, c: Tensor, y: Tensor, W: Tensor, b: Tensor) -> Tensor:
    """Bahdanau et al. (2015, A.2.2): t~ = U s_i + V y_{i-1} + C c_i, and the maximum of each pair of its units.

    W concatenates U, C and V. The appendix has s_{i-1}, eq. 4 has s_i; here it is s_i.
    """
    return (W @ torch.cat([s, c, y]) + b).view(-1, 2).amax(dim=1)


def luong_step(
    y: Tensor, state: tuple[Tensor, ...], attention: Attend, recurrent: Step, W_c: Tensor, h_tilde: Tensor | None = None
) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
    """Update, then attend with the new state (Luong et al., 2015, section 3).

    h_t = f(h_{t-1}, y_{t-1});  c_t = attend(h_t);  h~_t = tanh(W_c [c_t; h_t]) (eq. 5).

    Args:
        y: Embedded last word.
        state: State of the recurrent layer.
        attention: Attends to the source.
        recurrent: f.
        W_c: Weight of eq. 5.
        h_tilde: h~_{t-1}, which input feeding (section 3.3) concatenates to y; None without input feeding.

    Returns:
        h~_t, which is the readout, the alignment and the new state, whose first part is h_t.
    """
    state = recurrent(y if h_tilde is None else torch.cat([y, h_tilde]), state)
    c, a = attention(state[0])
    return torch.tanh(W_c @ torch.cat([c, state[0]])), a, state


def cross_entropy(readout: Tensor, word: int, W: Tensor, b: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """-log p(word) of softmax(W t + b), with label smoothing (Szegedy et al., 2016, section 7)."""
    logits = W @ readout + b
    log_p = logits - torch.log(torch.exp(logits).sum())
    return -(1 - label_smoothing) * log_p[word] - label_smoothing * log_p.mean()
