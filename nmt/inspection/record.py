"""Everything that the explorer shows of a sentence and a model."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt.corpus.batching import pad
from nmt.corpus.example import Example
from nmt.drawing.heatmap import EOS_LABEL
from nmt.evaluation.attention_statistics import coverage, diagonality
from nmt.evaluation.diagnostics import repeats
from nmt.evaluation.metrics import ScoringRules, sentence_scores
from nmt.inspection.all_heads import HeadWeights, read_heads
from nmt.layers.attention.source_memory import AttentionDetails
from nmt.search.beam_tree import BeamTree
from nmt.text.vocabulary import EOS_ID
from nmt.translation.sharpness import step_statistics
from nmt.translation.translator import Translator

TOP_WORDS = 10
LONGEST = 200
"""Source tokens of a sentence that can be shown."""
LONGEST_OCCLUDED = 60
"""Source tokens up to which each one is left out in turn."""


class Validation(NamedTuple):
    """The attention of a watched sentence at a validation of a run, while the model read the reference.

    Attributes:
        update: Update of the validation.
        w: The weights as base64; see `as_bytes`.
        entropy: Their mean entropy, in nats.
        aer: Alignment error rate; None without gold links.
    """

    update: int
    w: str
    entropy: float
    aer: float | None = None


@dataclass(frozen=True)
class Forced:
    """A model that reads a given target.

    Attributes:
        text: The target.
        tokens: Its tokens, with EOS last if the target has it.
        log_probs: Natural logarithm of the probability of each token.
        alignment: Attention, [T, heads, S].
        contexts: Encoder states summed by weight, [T, D]; None with several heads, which project them first.
        details: What attention computed for it.
        top: For each step the most probable tokens with their probabilities.
        occlusion: By how much the log-probability of each token falls without a source token, [T, S - 1]; None if the
            source is too long.
        agreement: For each step Spearman's rank correlation of the weights with `occlusion`; None if undefined.
        heads: The weights of every head; None if not asked for.
    """

    text: str
    tokens: list[str]
    log_probs: list[float]
    alignment: Tensor
    contexts: Tensor | None
    details: AttentionDetails
    top: list[list[tuple[str, float]]]
    occlusion: Tensor | None
    agreement: list[float | None]
    heads: HeadWeights | None


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
        validations: Its attention at each validation of the run; empty if unknown.
    """

    src_tokens: list[str]
    tree: BeamTree
    labels: list[str]
    texts: dict[int, str]
    best: Forced
    reference: Forced | None
    measures: dict[str, float]
    validations: Sequence[Validation] = ()

    @property
    def likely_tokens(self) -> Iterator[str]:
        """The most probable tokens of all steps, with repetitions."""
        for forced in filter(None, (self.best, self.reference)):
            yield from (token for step in forced.top for token, _ in step)


def record(
    translator: Translator, example: Example, rules: ScoringRules | None, *, all_heads: bool = False
) -> SentenceRecord:
    """Search for translations of a sentence, and look at the best one and at the reference step by step.

    Args:
        translator: A single model; it does not split its input.
        example: The source, perhaps with references.
        rules: How text is scored; None if what is given as reference is none, so that there is no BLEU.
        all_heads: True if the weights of every head are kept, self-attention included.
    """
    processor = translator.processor
    words = translator.processor.tgt_vocabulary.tokens
    tokens = translator.reader.cut_off(translator.reader.tokenize([example.src])[0])
    ids = processor.src_vocabulary.encode(tokens)
    tree = translator.grow_tree(ids)
    labels = [_label(words, node.id) for node in tree.nodes]
    texts = {
        end: translator.reader.write_ids([number for number in tree.ids(end) if number != EOS_ID]) for end in tree.best
    }
    best = force_ids(translator, ids, tree.ids(tree.best[0]), texts[tree.best[0]], all_heads)
    reference = None
    if example.references:
        text = example.references[0]
        (target_tokens,) = processor.tokenize_target([text])
        tgt = [*processor.tgt_vocabulary.encode(target_tokens), EOS_ID]
        reference = force_ids(translator, ids, tgt, text, all_heads)
    return SentenceRecord([*tokens, EOS_LABEL], tree, labels, texts, best, reference, _measure(example, best, rules))


def _label(tokens: Sequence[str], number: int) -> str:
    return EOS_LABEL if number == EOS_ID else tokens[number]


@torch.inference_mode()
def force_ids(translator: Translator, src: list[int], tgt: list[int], text: str, all_heads: bool) -> Forced:
    """Let a model read a target, with the whole source and without each of its tokens.

    Args:
        translator: A single model.
        src: Source ids without EOS.
        tgt: Target ids, with EOS if it was reached.
        text: The target as text.
        all_heads: True if the weights of every head are kept.
    """
    model = translator.model
    words = translator.processor.tgt_vocabulary.tokens
    occluded = len(src) <= LONGEST_OCCLUDED
    sources = [src, *([src[:n] + src[n + 1 :] for n in range(len(src))] if occluded else [])]
    lengths = torch.tensor([len(source) + 1 for source in sources])
    tgt_in = pad([tgt[:-1]], prefix=True).expand(len(sources), -1)
    encoded = model.encode(pad(sources, suffix=True).to(model.device), lengths)
    output, details = model.decoder.inspect(tgt_in.to(model.device), encoded)
    # One source at a time: [T, V] is the largest tensor.
    target_ids = torch.tensor(tgt, device=model.device).unsqueeze(1)
    rows = (model.decoder.output(readouts).float().log_softmax(dim=-1) for readouts in output.readouts)
    log_probs = next(rows)
    whole, *without = (row.gather(1, target_ids).squeeze(1).cpu() for row in (log_probs, *rows))  # [T], of every source
    best, word_ids = log_probs.exp().topk(min(TOP_WORDS, log_probs.size(1)))
    alignment = output.alignments[0, :, model.decoder.chosen_heads].float().cpu()
    occlusion = None
    agreement = list[float | None]()
    if without:
        occlusion = (whole - torch.stack(without)).T
        weights = alignment.mean(dim=1)[:, :-1]
        agreement = list(map(rank_correlation, weights.double().numpy(), occlusion.double().numpy()))
    return Forced(
        text,
        [_label(words, number) for number in tgt],
        whole.tolist(),
        alignment,
        alignment[:, 0] @ encoded.states[0].float().cpu() if alignment.size(1) == 1 else None,
        details,
        [
            [(_label(words, number), share) for number, share in zip(row.tolist(), shares.tolist(), strict=True)]
            for row, shares in zip(word_ids, best, strict=True)
        ],
        occlusion,
        agreement,
        read_heads(translator, src, tgt[:-1]) if all_heads else None,
    )


def rank_correlation(first: NDArray[np.float64], second: NDArray[np.float64]) -> float | None:
    """Spearman's rank correlation, where equal values share their mean rank; None if it is not defined."""
    if len(first) < 3:
        return None
    # Twice the mean rank, from the middle: as many as are smaller less those that are larger.
    ranks = [np.sign(values[:, None] - values).sum(axis=1) for values in (first, second)]
    norm = float(np.linalg.norm(ranks[0]) * np.linalg.norm(ranks[1]))
    return float(ranks[0] @ ranks[1]) / norm if norm else None


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
