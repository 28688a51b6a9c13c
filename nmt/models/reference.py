"""The equations of the model for one sentence: without batches and padding, with autograd's gradients.

The tests, the walkthrough and the exercises call them. The tests check that the rest of the package, which computes the
same for whole batches and many steps at a time, agrees in values and gradients. The heads of recurrent decoders,
sparsemax and entmax15, temperature, hard attention, the fixed context, deep and residual recurrent layers and dropout
are not here; the docstrings of their modules describe them.

One notation serves all papers: x is an input, h an encoder state (in a cell, its hidden state), s a decoder state (h_t
in Luong's order), y an embedded word, e a score, a an alignment weight, c a context (in an LSTM, the cell state). W, U,
V and C are matrices, v is a vector, b and d are biases; [x; y] concatenates. Sizes: S source and T target positions, K
units of an input, H of a state, D of an encoder state. Source positions and local-m's t count from 0; state s_0
precedes the first word, y_0 is BOS.
"""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

Step = Callable[[Tensor, tuple[Tensor, ...]], tuple[Tensor, ...]]
"""One step of a recurrent layer: x and the old state give the new state: (h, c) of an LSTM, (h,) of other cells.

`rnn_step`, `gru_step` and `lstm_step` become a Step by fixing their weights.
"""


def rnn_step(x: Tensor, h: Tensor, W: Tensor, U: Tensor, b: Tensor, d: Tensor) -> Tensor:
    """The plain cell (Elman, 1990): tanh(W x + b + U h + d).

    x [K]; h [H]; W [H, K], U [H, H], b and d [H].
    """
    return torch.tanh(W @ x + b + U @ h + d)


def lstm_step(x: Tensor, h: Tensor, c: Tensor, W: Tensor, U: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """LSTM (Hochreiter & Schmidhuber, 1997) with forget gates (Gers et al., 2000), without peepholes.

    x [K]; h and c [H]; W [4H, K], U [4H, H] and b [4H]: input gate, forget gate, candidate and output gate, in order.
    """
    i, f, g, o = (W @ x + U @ h + b).chunk(4)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    h = torch.sigmoid(o) * torch.tanh(c)
    return h, c


def gru_step(x: Tensor, h: Tensor, W: Tensor, U: Tensor, b: Tensor, d: Tensor) -> Tensor:
    """GRU of Cho et al. (2014), but as in torch the reset gate multiplies U h + d, not h.

    x [K]; h [H]; W [3H, K], U [3H, H], b and d [3H]: reset gate, update gate and candidate, in order.
    """
    x_r, x_z, x_n = (W @ x + b).chunk(3)
    h_r, h_z, h_n = (U @ h + d).chunk(3)
    r = torch.sigmoid(x_r + h_r)
    z = torch.sigmoid(x_z + h_z)
    n = torch.tanh(x_n + r * h_n)
    return (1 - z) * n + z * h


def run(step: Step, inputs: Sequence[Tensor], state: tuple[Tensor, ...]) -> list[Tensor]:
    """The outputs of a layer over a sequence."""
    outputs = []
    for x in inputs:
        state = step(x, state)
        outputs.append(state[0])
    return outputs


def encode(inputs: Sequence[Tensor], forward: Step, backward: Step, zeros: tuple[Tensor, ...]) -> list[Tensor]:
    """A bidirectional layer (Bahdanau et al., 2015, section 3.2): h_j joins the states of both directions at word j."""
    forward_states = run(forward, inputs, zeros)
    backward_states = run(backward, inputs[::-1], zeros)[::-1]
    return [torch.cat(states) for states in zip(forward_states, backward_states, strict=True)]


def initial_state(h: Tensor, W: Tensor, b: Tensor) -> Tensor:
    """s_0 = tanh(W h + b) (Bahdanau et al., 2015, A.2.2), where h is the backward state at the first word."""
    return torch.tanh(W @ h + b)


def additive(s: Tensor, h: Tensor, W: Tensor, U: Tensor, v: Tensor, Vf: Tensor | float = 0.0) -> Tensor:
    """Additive score (Bahdanau et al., 2015, A.1.2): v^T tanh(W s + U h), or v^T tanh(W s + U h + V f).

    f, if any, is the coverage of h's position (See et al., 2017, eq. 11) or its location features (Chorowski et al.,
    2015, eq. 9). Luong's `concat`, v^T tanh(W [s; h]), is the first form with [W U] for W.
    """
    return v @ torch.tanh(W @ s + U @ h + Vf)


def dot(s: Tensor, h: Tensor) -> Tensor:
    """Dot product (Luong et al., 2015, section 3.1): s^T h."""
    return torch.dot(s, h)


def general(s: Tensor, h: Tensor, W: Tensor) -> Tensor:
    """General score (Luong et al., 2015, section 3.1): s^T W h."""
    return torch.dot(s, W @ h)


def scaled_dot(s: Tensor, h: Tensor) -> Tensor:
    """Scaled dot product (Vaswani et al., 2017, eq. 1): s^T h / sqrt(d), where d = len(s)."""
    return torch.dot(s, h) / math.sqrt(len(s))


def cosine(s: Tensor, h: Tensor, sharpness: Tensor) -> Tensor:
    """Cosine (Graves et al., 2014, eq. 6) times a sharpness (their key strength beta); 0 for a zero vector."""
    return sharpness * torch.dot(s / s.norm().clamp(min=1e-12), h / h.norm().clamp(min=1e-12))


def location(s: Tensor, W: Tensor) -> Tensor:
    """Location-based scores of the first positions (Luong et al., 2015, eq. 8): W s; does not depend on the source."""
    return W @ s


def attend(e: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """Softmax attention (Bahdanau et al., 2015, eq. 5-6), from scores e [S] and encoder states [S, D].

    Returns the context c = sum_j a_j h_j [D] and the alignment a = softmax(e) [S].
    """
    a = torch.exp(e) / torch.exp(e).sum()
    return a @ h, a


Attend = Callable[[Tensor], tuple[Tensor, Tensor]]
"""From a query to context and alignment: scores every encoder state, then calls `attend`."""


def bahdanau_step(
    y: Tensor, state: tuple[Tensor, ...], attention: Attend, recurrent: Step
) -> tuple[Tensor, Tensor, Tensor, tuple[Tensor, ...]]:
    """Attend with the last state, then update (Bahdanau et al., 2015, section 3.1).

    c_i = attend(s_{i-1});  s_i = f(s_{i-1}, [y_{i-1}; c_i]), where f is `recurrent`. Returns s_i, c_i, the alignment
    and the new state, whose first part is s_i.
    """
    c, a = attention(state[0])
    state = recurrent(torch.cat([y, c]), state)
    return state[0], c, a, state


def bahdanau_readout(s: Tensor, c: Tensor, y: Tensor, W: Tensor, b: Tensor) -> Tensor:
    """tanh(W [s_i; c_i; y_{i-1}] + b): the plain form of g in Bahdanau et al. (2015, eq. 4).

    With the readout `state` the output layer reads s_i instead, with `linear` [s_i; c_i; y_{i-1}].
    """
    return torch.tanh(W @ torch.cat([s, c, y]) + b)


def maxout_readout(s: Tensor, c: Tensor, y: Tensor, W: Tensor, b: Tensor) -> Tensor:
    """t~ = U s_i + C c_i + V y_{i-1} + b (Bahdanau et al., 2015, A.2.2), and the maximum of each pair of its units.

    W = [U C V]. The appendix has s_{i-1}, eq. 4 has s_i; here it is s_i.
    """
    return (W @ torch.cat([s, c, y]) + b).view(-1, 2).amax(dim=1)


def luong_step(
    y: Tensor,
    state: tuple[Tensor, ...],
    attention: Attend,
    recurrent: Step,
    W_c: Tensor | None,
    feedback: Tensor | None = None,
) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
    """Update, then attend with the new state (Luong et al., 2015, section 3).

    h_t = f(h_{t-1}, y_{t-1});  c_t = attend(h_t);  h~_t = tanh(W_c [c_t; h_t]), where f is `recurrent` and W_c the
    matrix of eq. 5. With input feeding (section 3.3) f reads [y_{t-1}; h~_{t-1}]: `feedback` is h~_{t-1}, zeros at the
    first word. Without W_c, h~_t is [c_t; h_t]: the output layer is then the only layer above (readout `linear`).
    Returns h~_t, which is the readout, the alignment and the new state, whose first part is h_t.
    """
    state = recurrent(y if feedback is None else torch.cat([y, feedback]), state)
    c, a = attention(state[0])
    joint = torch.cat([c, state[0]])
    return joint if W_c is None else torch.tanh(W_c @ joint), a, state


def fixed_norm(x: Tensor, r: float) -> Tensor:
    """r x / |x|: with fixed norms, of the readout and of every row of W in the output layer (Nguyen & Chiang, 2018)."""
    return r * x / x.square().sum().sqrt()


def cross_entropy(readout: Tensor, word: int, W: Tensor, b: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """-log p(word) of softmax(W readout + b), with label smoothing (Szegedy et al., 2016, section 7)."""
    logits = W @ readout + b
    log_p = logits - torch.log(torch.exp(logits).sum())
    return -(1 - label_smoothing) * log_p[word] - label_smoothing * log_p.mean()


def divergence(readout: Tensor, cut_readout: Tensor, W: Tensor, b: Tensor) -> Tensor:
    """KL(f(x, y) || f(x_cut, y_cut)) of SimCut at one position (Gao et al., 2022): sum_v p_v (log p_v - log q_v)."""
    logits = W @ readout + b
    cut_logits = W @ cut_readout + b
    log_p = logits - torch.log(torch.exp(logits).sum())
    log_q = cut_logits - torch.log(torch.exp(cut_logits).sum())
    return (torch.exp(log_p) * (log_p - log_q)).sum()


def monotonic_centre(t: int, length: int) -> float:
    """Local-m (Luong et al., 2015, section 3.2): p_t = t, but never past the last source position."""
    return min(t, length - 1)


def predicted_centre(s: Tensor, length: int, W: Tensor, v: Tensor) -> Tensor:
    """Local-p (Luong et al., 2015, eq. 9): p_t = S sigmoid(v^T tanh(W s))."""
    return length * torch.sigmoid(v @ torch.tanh(W @ s))


def window(length: int, centre: float, radius: int) -> list[int]:
    """Positions j of a local window (Luong et al., 2015, section 3.2): those with |j - p_t| <= radius (their D)."""
    return [j for j in range(length) if abs(j - centre) <= radius]


def gaussian(a: Tensor, positions: Tensor, centre: Tensor, radius: int) -> Tensor:
    """Alignment of local-p (Luong et al., 2015, eq. 10): a_j exp(-(j - p_t)^2 / (2 sigma^2)), sigma = radius / 2."""
    sigma = radius / 2
    return a * torch.exp(-((positions - centre) ** 2) / (2 * sigma**2))


def location_features(a: Tensor, F: Tensor) -> Tensor:
    """Features of each position, [S, filters] (Chorowski et al., 2015, eq. 8): the last alignment [S], convolved.

    Each row of F [filters, 2 * radius + 1] weights the alignment at a position and its neighbours.
    """
    radius = F.size(1) // 2
    padded = torch.nn.functional.pad(a, (radius, radius))
    return torch.stack([F @ padded[j : j + F.size(1)] for j in range(len(a))])


def coverage_loss(alignments: Tensor) -> Tensor:
    """Coverage loss (See et al., 2017, eq. 10 and 12): sum_t sum_j min(a_tj, sum_{t' < t} a_t'j), [T, S] -> scalar."""
    coverage = torch.zeros_like(alignments[0])
    loss = torch.zeros_like(coverage.sum())
    for a in alignments:
        loss = loss + torch.minimum(a, coverage).sum()
        coverage = coverage + a
    return loss


def layer_norm(x: Tensor, g: Tensor, b: Tensor) -> Tensor:
    """Layer normalisation (Ba et al., 2016, eq. 3-4) with gain g and bias b; torch adds 1e-5 to the variance."""
    variance = ((x - x.mean()) ** 2).mean()
    return (x - x.mean()) / torch.sqrt(variance + 1e-5) * g + b


Norm = Callable[[Tensor], Tensor]
"""`layer_norm` with a given gain and bias."""


def normalized_lstm_step(
    x: Tensor, h: Tensor, c: Tensor, W: Tensor, U: Tensor, norm_x: Norm, norm_h: Norm, norm_c: Norm
) -> tuple[Tensor, Tensor]:
    """`lstm_step` with layer normalisation (Ba et al., 2016, eq. 20-22); the norms' biases replace b."""
    i, f, g, o = (norm_h(U @ h) + norm_x(W @ x)).chunk(4)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    h = torch.sigmoid(o) * torch.tanh(norm_c(c))
    return h, c


def normalized_gru_step(
    x: Tensor, h: Tensor, W: Tensor, U: Tensor, norm_x: tuple[Norm, Norm], norm_h: tuple[Norm, Norm]
) -> Tensor:
    """`gru_step` with layer normalisation (Ba et al., 2016, supplement, where z and 1 - z are exchanged).

    Reset and update gate are normalised together, the candidate separately. The norms' biases replace b and d.
    """
    size = 2 * len(h)
    r, z = torch.sigmoid(norm_h[0](U[:size] @ h) + norm_x[0](W[:size] @ x)).chunk(2)
    n = torch.tanh(norm_x[1](W[size:] @ x) + r * norm_h[1](U[size:] @ h))
    return (1 - z) * n + z * h


def normalized_rnn_step(x: Tensor, h: Tensor, W: Tensor, U: Tensor, norm_x: Norm, norm_h: Norm) -> Tensor:
    """`rnn_step` with layer normalisation as in eq. 20 of Ba et al. (2016); their eq. 4 normalises the sum."""
    return torch.tanh(norm_h(U @ h) + norm_x(W @ x))


def position(p: int, size: int) -> Tensor:
    """Sinusoids of position p (Vaswani et al., 2017, section 3.5), [size]: sin(p / 10000^(2i / size)), then its cosine.

    They are added to sqrt(size) times the embedding of the word there (section 3.4).
    """
    angles = [p / 10_000 ** (2 * i / size) for i in range(size // 2)]
    return torch.tensor(
        [value for angle in angles for value in (math.sin(angle), math.cos(angle))], dtype=torch.float64
    )


def multi_head(
    x: Tensor, h: Sequence[Tensor], W_q: Tensor, W_k: Tensor, W_v: Tensor, W_o: Tensor, num_heads: int
) -> tuple[Tensor, list[Tensor]]:
    """Multi-head attention (Vaswani et al., 2017, section 3.2) of the query W_q x to the keys W_k h and values W_v h.

    Each head has a part of the projected units, and is softmax(q^T k / sqrt(d)) (eq. 1) of them. Self-attention is this
    with the vectors of the same layer as h: all of them in an encoder, those up to x in a decoder.

    Args:
        x: Vector that asks, [K].
        h: Vectors that it may read, each [D].
        W_q: [heads * d, K]; W_k and W_v: [heads * d, D].
        W_o: [K, heads * d].
        num_heads: Heads.

    Returns:
        The output W_o [c_1; ...; c_heads], [K], and the alignment of each head, [len(h)].
    """
    queries = (W_q @ x).chunk(num_heads)
    keys = [(W_k @ state).chunk(num_heads) for state in h]
    values = [(W_v @ state).chunk(num_heads) for state in h]
    contexts = []
    alignments = []
    for n in range(num_heads):
        e = torch.stack([scaled_dot(queries[n], key[n]) for key in keys])
        c, a = attend(e, torch.stack([value[n] for value in values]))
        contexts.append(c)
        alignments.append(a)
    return W_o @ torch.cat(contexts), alignments


def feed_forward(x: Tensor, W_1: Tensor, b_1: Tensor, W_2: Tensor, b_2: Tensor) -> Tensor:
    """Feed-forward sublayer (Vaswani et al., 2017, eq. 2): W_2 max(0, W_1 x + b_1) + b_2."""
    return W_2 @ (W_1 @ x + b_1).clamp(min=0) + b_2


def pre_norm(f: Callable[[Tensor], Tensor], x: Tensor, norm: Norm) -> Tensor:
    """A sublayer f with pre-norm (Nguyen & Salazar, 2019, eq. 3): x + f(norm(x)).

    The vectors that self-attention and attention to the source read besides x are normalised (or an encoder state) too.
    """
    return x + f(norm(x))


def post_norm(f: Callable[[Tensor], Tensor], x: Tensor, norm: Norm) -> Tensor:
    """A sublayer f with post-norm (Vaswani et al., 2017, section 3.1): norm(x + f(x))."""
    return norm(x + f(x))


def ssru_step(x: Tensor, c: Tensor, W: Tensor, W_f: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """SSRU (Kim et al., 2019, section 3.2): f = sigmoid(W_f x + b), c_t = f c_{t-1} + (1 - f) W x, h = ReLU(c_t).

    Returns h and c_t. Nothing multiplies c but f, which depends only on x.
    """
    f = torch.sigmoid(W_f @ x + b)
    c = f * c + (1 - f) * (W @ x)
    return c.clamp(min=0), c
