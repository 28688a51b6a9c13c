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
        details: The details of attention for it.
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
    """A model's work on a sentence.

    Attributes:
        src_tokens: Source tokens, with EOS last.
        tree: The search.
        labels: Token of each node of the tree.
        texts: By node, the translation that ends there.
        best: The translation.
        reference: The reference, read by the model; None without one.
        measures: The measures by which sentences are sorted.
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
        rules: How text is scored; None if the given text is no reference, so that there is no BLEU.
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

    # The whole source comes first, then the source without its first token, without its second, and so on.
    sources = [src]
    if len(src) <= LONGEST_OCCLUDED:
        sources += [src[:place] + src[place + 1 :] for place in range(len(src))]
    lengths = torch.tensor([len(source) + 1 for source in sources])
    encoded = model.encode(pad(sources, suffix=True).to(model.device), lengths)
    tgt_in = pad([tgt[:-1]], prefix=True).expand(len(sources), -1)
    output, details = model.decoder.inspect(tgt_in.to(model.device), encoded)

    # The distributions are computed for one source at a time: [T, V] is the largest tensor.
    target_ids = torch.tensor(tgt, device=model.device).unsqueeze(1)
    target_log_probs = []  # [T] for each source
    top: list[list[tuple[str, float]]] = []
    for readouts in output.readouts:
        log_probs = model.decoder.output(readouts).float().log_softmax(dim=-1)  # [T, V]
        target_log_probs.append(log_probs.gather(1, target_ids).squeeze(1).cpu())
        if not top:
            top = _top_words(log_probs, words)
    whole = target_log_probs[0]
    without = target_log_probs[1:]

    alignment = output.alignments[0, :, model.decoder.chosen_heads].float().cpu()  # [T, heads, S]
    contexts = None
    if alignment.size(1) == 1:
        contexts = alignment[:, 0] @ encoded.states[0].float().cpu()
    occlusion = None
    agreement: list[float | None] = []
    if without:
        occlusion = (whole - torch.stack(without)).T  # [T, S - 1]
        weights = alignment.mean(dim=1)[:, :-1]  # the last source token is EOS, which no source lacks
        for step_weights, step_occlusion in zip(weights.double().numpy(), occlusion.double().numpy(), strict=True):
            agreement.append(rank_correlation(step_weights, step_occlusion))
    return Forced(
        text=text,
        tokens=[_label(words, number) for number in tgt],
        log_probs=whole.tolist(),
        alignment=alignment,
        contexts=contexts,
        details=details,
        top=top,
        occlusion=occlusion,
        agreement=agreement,
        heads=read_heads(translator, src, tgt[:-1]) if all_heads else None,
    )


def _top_words(log_probs: Tensor, words: Sequence[str]) -> list[list[tuple[str, float]]]:
    """The most probable words of each step with their probabilities, of log-probabilities [T, V]."""
    probabilities, word_ids = log_probs.exp().topk(min(TOP_WORDS, log_probs.size(1)))
    steps = []
    for step_ids, step_probabilities in zip(word_ids.tolist(), probabilities.tolist(), strict=True):
        labels = [_label(words, number) for number in step_ids]
        steps.append(list(zip(labels, step_probabilities, strict=True)))
    return steps


def rank_correlation(first: NDArray[np.float64], second: NDArray[np.float64]) -> float | None:
    """Spearman's rank correlation, where equal values share their mean rank; None if it is not defined."""
    if len(first) < 3:
        return None
    first_ranks = _centred_ranks(first)
    second_ranks = _centred_ranks(second)
    norm = float(np.linalg.norm(first_ranks) * np.linalg.norm(second_ranks))
    if norm == 0:
        return None  # all values of one side are equal
    return float(first_ranks @ second_ranks) / norm


def _centred_ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Twice the distance of each value's rank from the mean rank: the number of smaller values less that of larger."""
    differences = values[:, None] - values
    ranks: NDArray[np.float64] = np.sign(differences).sum(axis=1)
    return ranks


def _measure(example: Example, best: Forced, rules: ScoringRules | None) -> dict[str, float]:
    """Measures to sort sentences by: coverage, entropy, repetition, length ratio and, with a reference, BLEU."""
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
