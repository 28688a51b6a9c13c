"""Greedy and beam search over batches; a finished sentence leaves the batch."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from nmt.model.seq2seq import Seq2Seq
from nmt.text.vocabulary import BOS_ID, EOS_ID, PAD_ID


@dataclass(frozen=True)
class Hypothesis:
    """One translation in ids.

    Attributes:
        ids: Target ids without EOS.
        log_prob: Natural logarithm of the probability of `ids` and, if it was reached, EOS.
        score: `log_prob` after length normalisation; what hypotheses are ranked by.
        attended: For each target token (EOS last, if reached) the source position attended most; a position past
            the end where nothing was attended to.
        alignment: Attention averaged over heads, [target tokens with EOS, source tokens with EOS]; None unless
            asked for.
    """

    ids: list[int]
    log_prob: float
    score: float
    attended: list[int]
    alignment: Tensor | None = field(default=None, repr=False)


def length_norm(length: int | Tensor, alpha: float) -> float | Tensor:
    """((5 + length) / 6) ** alpha (Wu et al., 2016, eq. 14); `length` counts EOS."""
    return ((5 + length) / 6) ** alpha


def length_limits(src_lengths: Tensor, max_length: int) -> Tensor:
    """Most target tokens, EOS included, that each source may give: 3 S + 10, and never above `max_length`."""
    return (3 * src_lengths + 10).clamp(max=max_length)


def _log_probs(logits: Tensor) -> Tensor:
    """Log-probabilities of words; PAD and BOS can never be a translation."""
    log_probs = logits.float().log_softmax(dim=-1) if logits.dtype != torch.float64 else logits.log_softmax(dim=-1)
    log_probs[..., [PAD_ID, BOS_ID]] = -torch.inf
    return log_probs


def _attended(alignment: Tensor) -> Tensor:
    """Source position attended most, or S where nothing is attended to: [R, S] -> [R]."""
    weight, position = alignment.max(dim=-1)
    return position.masked_fill(weight == 0, alignment.size(-1))


@torch.inference_mode()
def greedy_search(
    model: Seq2Seq, src: Tensor, src_lengths: Tensor, *, max_length: int, with_alignment: bool = False
) -> list[Hypothesis]:
    """Take the most probable word at each step.

    Args:
        model: In evaluation mode.
        src: Padded source ids that end in EOS, [B, S].
        src_lengths: Their true lengths, [B].
        max_length: Most target tokens, EOS included; see `length_limits`.
        with_alignment: Keep alignments.

    Returns:
        B hypotheses; their score is their log-probability.
    """
    number, device = src.size(0), src.device
    limits = length_limits(src_lengths, max_length).to(device)
    memory, state = model.decoder.start(model.encode(src, src_lengths))
    rows = torch.arange(number, device=device)
    words = torch.full((number,), BOS_ID, device=device)
    log_prob = torch.zeros(number, dtype=torch.float64, device=device)
    steps: list[tuple[Tensor, Tensor, Tensor]] = []  # rows, words and attended positions of each step
    alignments: list[Tensor] = []
    while len(rows):
        logits, alignment, state = model.decoder.step(words, memory, state)
        best, words = _log_probs(logits).max(dim=-1)
        log_prob[rows] += best.double()
        mean = alignment.mean(dim=1)  # [R, heads, S] -> [R, S]
        steps.append((rows, words, _attended(mean)))
        if with_alignment:
            alignments.append(mean)
        going = ((words != EOS_ID) & (limits[rows] > len(steps))).nonzero().squeeze(1)
        if len(going) < len(rows):
            rows, words = rows[going], words[going]
            memory, state = memory.select(going), state.select(going, len(going))
    ids: list[list[int]] = [[] for _ in range(number)]
    attended: list[list[int]] = [[] for _ in range(number)]
    weights: list[list[Tensor]] = [[] for _ in range(number)]
    for step, (owners, chosen, positions) in enumerate(steps):
        for place, row in enumerate(owners.tolist()):
            ids[row].append(int(chosen[place]))
            attended[row].append(min(int(positions[place]), int(src_lengths[row])))
            if with_alignment:
                weights[row].append(alignments[step][place, : int(src_lengths[row])].cpu())
    return [
        Hypothesis(
            ids[row][:-1] if ids[row][-1] == EOS_ID else ids[row],
            float(log_prob[row]),
            float(log_prob[row]),
            attended[row],
            torch.stack(weights[row]) if with_alignment else None,
        )
        for row in range(number)
    ]


@torch.inference_mode()
def beam_search(
    model: Seq2Seq,
    src: Tensor,
    src_lengths: Tensor,
    *,
    beam_size: int,
    length_penalty: float,
    max_length: int,
    n_best: int = 1,
    with_alignment: bool = False,
) -> list[list[Hypothesis]]:
    """Keep the most probable beginnings of each sentence.

    A finished hypothesis takes its place out of the beam. A sentence is done when its beam is used up, or when no
    beginning left can still score above its `n_best` best finished hypotheses; then it leaves the batch.

    Args:
        model: In evaluation mode.
        src: Padded source ids that end in EOS, [B, S].
        src_lengths: Their true lengths, [B].
        beam_size: Beginnings kept, K.
        length_penalty: Exponent alpha of `length_norm`; 0 ranks by log-probability.
        max_length: Most target tokens, EOS included; see `length_limits`.
        n_best: Hypotheses to return, at most K.
        with_alignment: Keep alignments.

    Returns:
        For each source its hypotheses, best first; at least one.
    """
    number, device = src.size(0), src.device
    limits = length_limits(src_lengths, max_length)
    memory, state = model.decoder.start(model.encode(src, src_lengths))
    finished: list[list[Hypothesis]] = [[] for _ in range(number)]
    if number == 0:
        return finished
    spread = torch.arange(number, device=device).repeat_interleave(beam_size)
    state = state.select(spread, number)
    owners = list(range(number))  # which source each sentence of the shrinking batch is
    free = torch.full((number,), beam_size, device=device)  # places left in each beam
    words = torch.full((number * beam_size,), BOS_ID, device=device)
    totals = torch.full((number, beam_size), -torch.inf, dtype=torch.float64, device=device)
    totals[:, 0] = 0.0  # all hypotheses are equal at first: begin with one
    history = torch.empty(number, beam_size, 0, 2, dtype=torch.long, device=device)  # words, attended positions
    weights = src.new_empty(number, beam_size, 0, src.size(1), dtype=memory.values.dtype)
    length = 0
    while owners:
        length += 1
        logits, alignment, state = model.decoder.step(words, memory, state)
        log_probs = _log_probs(logits).view(len(owners), beam_size, -1)  # [R, V] -> [B, K, V]
        candidates = (totals.unsqueeze(2) + log_probs).flatten(1)
        totals, chosen = candidates.topk(min(beam_size, candidates.size(1)), dim=1)
        parents, next_words = chosen // log_probs.size(2), chosen % log_probs.size(2)
        rows = (parents + torch.arange(len(owners), device=device).unsqueeze(1) * beam_size).flatten()
        mean = alignment.mean(dim=1).index_select(0, rows)  # [R, heads, S] -> [R, S]
        new = torch.stack([next_words.flatten(), _attended(mean)], dim=1)
        history = _extend(history, rows, new)
        if with_alignment:
            weights = _extend(weights, rows, mean)
        state = state.select(rows, len(owners))
        inside = torch.arange(beam_size, device=device) < free.unsqueeze(1)
        alive = inside & totals.isfinite()
        ended = alive & (next_words == EOS_ID)
        at_limit = torch.tensor([int(limits[owner]) <= length for owner in owners], device=device)
        closing = ended | (alive & at_limit.unsqueeze(1))
        for sentence, place in closing.nonzero().tolist():
            source = owners[sentence]
            log_prob = float(totals[sentence, place])
            ids, positions = history[sentence, place].T.tolist()
            attended = [min(position, int(src_lengths[source])) for position in positions]
            complete = ids[-1] == EOS_ID
            kept = weights[sentence, place, :, : int(src_lengths[source])].cpu() if with_alignment else None
            finished[source].append(
                Hypothesis(
                    ids[:-1] if complete else ids,
                    log_prob,
                    log_prob / float(length_norm(length, length_penalty)),
                    attended,
                    kept,
                )
            )
        free = free - ended.sum(dim=1)
        totals = totals.masked_fill(~alive | closing, -torch.inf)
        hopes = (totals.amax(dim=1).cpu() / length_norm(limits[owners], length_penalty)).tolist()
        going = [
            sentence
            for sentence, source in enumerate(owners)
            if hopes[sentence] > _bar(finished[source], n_best) and int(free[sentence]) > 0
        ]
        words = next_words.flatten()
        if len(going) < len(owners):
            index = torch.tensor(going, dtype=torch.long, device=device)
            grid = torch.arange(len(owners) * beam_size, device=device).view(len(owners), beam_size)
            rows = grid[index].flatten()
            memory, state = memory.select(index), state.select(rows, len(going))
            words, totals, free = words[rows], totals[index], free[index]
            history, weights = history[index], weights[index]
            owners = [owners[sentence] for sentence in going]
    return [sorted(hypotheses, key=lambda h: (-_complete(h), -h.score))[:n_best] for hypotheses in finished]


def _complete(hypothesis: Hypothesis) -> bool:
    """Whether EOS was reached: its attended position is there but its id is not."""
    return len(hypothesis.attended) > len(hypothesis.ids)


def _bar(finished: list[Hypothesis], n_best: int) -> float:
    """Score that a hypothesis must exceed to enter the `n_best` complete ones."""
    scores = sorted((h.score for h in finished if _complete(h)), reverse=True)
    return scores[n_best - 1] if len(scores) >= n_best else -torch.inf


def _extend(history: Tensor, rows: Tensor, new: Tensor) -> Tensor:
    """Reorder hypotheses and append a step: [B, K, T, X], [B * K, X] -> [B, K, T + 1, X]."""
    picked = history.flatten(0, 1).index_select(0, rows)
    extended = torch.cat([picked, new.unsqueeze(1)], dim=1)  # [R, T + 1, X]
    return extended.view(*history.shape[:2], *extended.shape[1:])
