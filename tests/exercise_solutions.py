"""A solution of each exercise, as a reader writes it."""

import math

import torch
from torch import Tensor


def attend(query: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
    alignment = (states @ query.unsqueeze(2)).squeeze(2).softmax(dim=1)
    return (alignment.unsqueeze(1) @ states).squeeze(1), alignment


def real(lengths: Tensor, size: int) -> Tensor:
    return torch.arange(size) < lengths.unsqueeze(1)


def normalize(scores: Tensor, allowed: Tensor) -> Tensor:
    return scores.masked_fill(~allowed, -torch.inf).softmax(dim=-1)


def masked_attend(query: Tensor, states: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    alignment = normalize((states @ query.unsqueeze(2)).squeeze(2), real(lengths, states.size(1)))
    return (alignment.unsqueeze(1) @ states).squeeze(1), alignment


def additive_scores(query: Tensor, states: Tensor, W: Tensor, U: Tensor, v: Tensor) -> Tensor:
    return torch.tanh((query @ W.T).unsqueeze(1) + states @ U.T) @ v


def luong_step(
    y: Tensor, s: Tensor, feedback: Tensor, states: Tensor, lengths: Tensor, cell: torch.nn.GRUCell, W_c: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    new = cell(torch.cat([y, feedback], dim=1), s)
    context, alignment = masked_attend(new, states, lengths)
    return torch.tanh(torch.cat([context, new], dim=1) @ W_c.T), alignment, new


def bahdanau_step(
    y: Tensor, s: Tensor, states: Tensor, lengths: Tensor, cell: torch.nn.GRUCell, W: Tensor, b: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    context, alignment = masked_attend(s, states, lengths)
    new = cell(torch.cat([y, context], dim=1), s)
    return torch.tanh(torch.cat([new, context, y], dim=1) @ W.T + b), alignment, new


def local_p(query: Tensor, scores: Tensor, lengths: Tensor, W_p: Tensor, v_p: Tensor, radius: int) -> Tensor:
    centre = lengths * torch.sigmoid(torch.tanh(query @ W_p.T) @ v_p)
    distance = torch.arange(scores.size(1)) - centre.unsqueeze(1)
    inside = distance.abs() <= radius
    alignment = normalize(scores, inside & real(lengths, scores.size(1)))
    return alignment * torch.exp(-(distance**2) / (2 * (radius / 2) ** 2))


def coverage_step(
    query: Tensor, states: Tensor, lengths: Tensor, coverage: Tensor, W: Tensor, U: Tensor, v: Tensor, V: Tensor
) -> tuple[Tensor, Tensor]:
    scores = torch.tanh((query @ W.T).unsqueeze(1) + states @ U.T + coverage.unsqueeze(2) * V) @ v
    alignment = normalize(scores, real(lengths, states.size(1)))
    return alignment, coverage + alignment


def multi_head(
    query: Tensor, states: Tensor, lengths: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor, W_o: Tensor, heads: int
) -> tuple[Tensor, Tensor]:
    q = (query @ W_q.T).unflatten(-1, (heads, -1)).unsqueeze(2)
    k, v = ((states @ W.T).unflatten(-1, (heads, -1)).transpose(1, 2) for W in (W_k, W_v))
    alignments = normalize(q @ k.mT / math.sqrt(q.size(-1)), real(lengths, states.size(1))[:, None, None])
    return (alignments @ v).flatten(1) @ W_o.T, alignments.squeeze(2)


def self_attention(
    x: Tensor, lengths: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor, W_o: Tensor, heads: int, causal: bool
) -> Tensor:
    q, k, v = ((x @ W.T).unflatten(-1, (heads, -1)).transpose(1, 2) for W in (W_q, W_k, W_v))
    words = real(lengths, x.size(1))
    allowed = words[:, None, None]
    if causal:
        allowed = allowed & torch.ones(x.size(1), x.size(1), dtype=torch.bool).tril()
    alignments = normalize(q @ k.mT / math.sqrt(q.size(-1)), allowed)
    return (alignments @ v).transpose(1, 2).flatten(2) @ W_o.T * words.unsqueeze(2)


def cached_step(
    x: Tensor, keys: Tensor, values: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor, W_o: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    q, k, v = ((x @ W.T).unflatten(-1, (keys.size(1), 1, -1)) for W in (W_q, W_k, W_v))
    keys, values = torch.cat([keys, k], dim=2), torch.cat([values, v], dim=2)
    alignments = (q @ keys.mT / math.sqrt(q.size(-1))).softmax(dim=-1)
    return (alignments @ values).flatten(1) @ W_o.T, keys, values
