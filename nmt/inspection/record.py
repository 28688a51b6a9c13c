"""Everything that the explorer shows of a sentence and a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt.corpus.batching import pad
from nmt.corpus.splitting import Example
from nmt.drawing.heatmap import EOS_LABEL
from nmt.evaluation.attention_statistics import coverage, diagonality, step_statistics
from nmt.evaluation.diagnostics import repeats
from nmt.evaluation.metrics import ScoringRules, sentence_scores
from nmt.search.beam_tree import BeamTree
from nmt.text.vocabulary import EOS_ID
from nmt.translation.translator import MAX_SOURCE_LENGTH, Translator

TOP_WORDS = 10
LONGEST = 200
"""Source tokens of a sentence that can be shown."""
LONGEST_OCCLUDED = 60
"""Source tokens up to which each one is left out in turn."""


@dataclass(frozen=True)
class Focus:
    """The window of local attention.

    Attributes:
        centres: Its centre at each step, p_t in Luong et al. (2015, section 3.2), as a source position from 0, [T].
        radius: Source positions on each side; D in the paper.
    """

    centres: Tensor
    radius: int


@dataclass(frozen=True)
class Forced:
    """A model that reads a given target.

    Attributes:
        text: The target.
        tokens: Its tokens, with EOS last if the target has it.
        log_probs: Natural logarithm of the probability of each token.
        alignment: Attention, [T, heads, S].
        queries: What is compared with the source at each step, [T, heads, Q]; None as for `scores`.
        contexts: Encoder states summed by weight, [T, D]; None with several heads, which project them first.
        scores: What the attention's normaliser turned into weights, before its masks, [T, heads, S]; None without
            attention, or if the mechanism has another number of scores.
        focus: The window of local attention; None if attention is global.
        chances: The weights that hard attention draws from, [T, heads, S]; None for other attention.
        top: For each step the most probable tokens with their probabilities.
        occlusion: By how much the log-probability of each token falls without a source token, [T, S - 1]; None if the
            source is too long.
        agreement: For each step Spearman's rank correlation of the weights with `occlusion`; None if undefined.
    """

    text: str
    tokens: list[str]
    log_probs: list[float]
    alignment: Tensor
    queries: Tensor | None
    contexts: Tensor | None
    scores: Tensor | None
    focus: Focus | None
    chances: Tensor | None
    top: list[list[tuple[str, float]]]
    occlusion: Tensor | None
    agreement: list[float | None]


@dataclass(frozen=True)
class SentenceRecord:
    """What a model does with a sentence.

    Attributes:
        src_tokens: Source tokens, with EOS last.
        tree: The search.
        labels: Token of each node of the tree.
        texts: By node, the translation that ends there.
        best: The translation.
        reference: The reference, read by the model; None without one.
        measures: What sentences are sorted by.
    """

    src_tokens: list[str]
    tree: BeamTree
    labels: list[str]
    texts: dict[int, str]
    best: Forced
    reference: Forced | None
    measures: dict[str, float]

    @property
    def likely_tokens(self) -> Iterator[str]:
        """The most probable tokens of all steps, with repetitions."""
        for forced in filter(None, (self.best, self.reference)):
            yield from (token for step in forced.top for token, _ in step)


def record(translator: Translator, example: Example, rules: ScoringRules | None) -> SentenceRecord:
    """Search for translations of a sentence, and look at the best one and at the reference step by step.

    Args:
        translator: A single model; it does not split its input.
        example: The source, perhaps with references.
        rules: How text is scored; None if what is given as reference is none, so that there is no BLEU.
    """
    tokens, ids = read_source(translator, example.src)
    tree = translator.grow_tree(ids)
    words = translator.processor.tgt_vocabulary.tokens
    labels = [_label(words, node.id) for node in tree.nodes]
    texts = {end: translator.render(_without_eos(tree.ids(end)), tokens) for end in tree.best}
    best = force_ids(translator, ids, tree.ids(tree.best[0]), texts[tree.best[0]])
    reference = force_text(translator, ids, example.references[0]) if example.references else None
    return SentenceRecord([*tokens, EOS_LABEL], tree, labels, texts, best, reference, _measure(example, best, rules))


def read_source(translator: Translator, source: str) -> tuple[list[str], list[int]]:
    """The tokens of a source that a model reads, and their ids."""
    (tokens,) = translator.tokenize([source])
    tokens = tokens[:MAX_SOURCE_LENGTH]
    return tokens, translator.processor.src_vocabulary.encode(tokens)


def force_best(translator: Translator, tokens: list[str], ids: list[int]) -> Forced:
    """Let a model read the best translation that it finds.

    Args:
        translator: A single model.
        tokens: Source tokens.
        ids: Their ids.
    """
    tree = translator.grow_tree(ids)
    best = tree.ids(tree.best[0])
    return force_ids(translator, ids, best, translator.render(_without_eos(best), tokens))


def force_text(translator: Translator, ids: list[int], text: str) -> Forced:
    """Let a model read a given translation of source ids."""
    processor = translator.processor
    (given,) = processor.tokenize_target([text])
    return force_ids(translator, ids, [*processor.tgt_vocabulary.encode(given), EOS_ID], text)


def _label(tokens: Sequence[str], number: int) -> str:
    return EOS_LABEL if number == EOS_ID else tokens[number]


def _without_eos(ids: list[int]) -> list[int]:
    return ids[:-1] if ids and ids[-1] == EOS_ID else ids


@torch.inference_mode()
def force_ids(translator: Translator, src: list[int], tgt: list[int], text: str) -> Forced:
    """Let a model read a target, with the whole source and without each of its tokens.

    Args:
        translator: A single model.
        src: Source ids without EOS.
        tgt: Target ids, with EOS if it was reached.
        text: The target as text.
    """
    model, words = translator.model, translator.processor.tgt_vocabulary.tokens
    occluded = len(src) <= LONGEST_OCCLUDED
    sources = [src, *([src[:n] + src[n + 1 :] for n in range(len(src))] if occluded else [])]
    lengths = torch.tensor([len(source) + 1 for source in sources])
    tgt_in = pad([tgt[:-1]], prefix=True).expand(len(sources), -1)
    encoded = model.encode(pad(sources, suffix=True).to(model.device), lengths)
    output, details = model.decoder.inspect(tgt_in.to(model.device), encoded)
    # One source at a time: [T, V] is the largest tensor.
    given = torch.tensor(tgt, device=model.device).unsqueeze(1)
    rows = (model.decoder.output(readouts).float().log_softmax(dim=-1) for readouts in output.readouts)
    log_probs = next(rows)
    own, *without = (row.gather(1, given).squeeze(1).cpu() for row in (log_probs, *rows))  # [T], of every source
    best, places = log_probs.exp().topk(min(TOP_WORDS, log_probs.size(1)))
    alignment = output.alignments[0, :, :, : len(src) + 1].float().cpu()
    occlusion = (own - torch.stack(without)).T if without else None
    scores, chances = details.scores, details.chances
    return Forced(
        text,
        [_label(words, number) for number in tgt],
        own.tolist(),
        alignment,
        details.queries,
        alignment[:, 0] @ encoded.states[0, : len(src) + 1].float().cpu() if alignment.size(1) == 1 else None,
        None if scores is None else scores[..., : len(src) + 1],
        None if details.centres is None or details.radius is None else Focus(details.centres, details.radius),
        None if chances is None else chances[..., : len(src) + 1],
        [
            [(_label(words, number), share) for number, share in zip(row.tolist(), shares.tolist(), strict=True)]
            for row, shares in zip(places, best, strict=True)
        ],
        occlusion,
        [] if occlusion is None else _agreement(alignment.mean(dim=1)[:, :-1], occlusion),
    )


def _agreement(weights: Tensor, occlusion: Tensor) -> list[float | None]:
    """Spearman's rank correlation of each step; None with fewer than three positions or without differences."""
    return [
        rank_correlation(one, other)
        for one, other in zip(weights.double().numpy(), occlusion.double().numpy(), strict=True)
    ]


def rank_correlation(one: NDArray[np.float64], other: NDArray[np.float64]) -> float | None:
    """Spearman's rank correlation, where equal values share their mean rank; None if it is not defined."""
    if len(one) < 3:
        return None
    ranks = [_ranks(values) - (len(values) - 1) / 2 for values in (one, other)]
    norm = float(np.linalg.norm(ranks[0]) * np.linalg.norm(ranks[1]))
    return float(ranks[0] @ ranks[1]) / norm if norm else None


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts) - 1
    ranks: NDArray[np.float64] = (last - (counts - 1) / 2)[places]
    return ranks


def _measure(example: Example, best: Forced, rules: ScoringRules | None) -> dict[str, float]:
    """What sentences are sorted by: coverage, entropy, repetition, length ratio and, with a reference, BLEU."""
    measures = {
        "length": float(len(example.src.split())),
        "length ratio": len(best.text.split()) / max(1, len(example.src.split())),
        "repetition": float(repeats(best.text)),
        "log-probability": sum(best.log_probs) / max(1, len(best.log_probs)),
    }
    if best.alignment.any():
        measures["entropy"] = float(step_statistics(best.alignment).entropy.mean())
        measures["coverage"] = float(coverage(best.alignment).mean())
        measures["diagonality"] = float(diagonality(best.alignment).mean())
    known = [value for value in best.agreement if value is not None]
    if known:
        measures["agreement"] = sum(known) / len(known)
    if example.references and rules is not None:
        measures["BLEU"] = sentence_scores([example], [best.text], rules)[0]
    return measures
