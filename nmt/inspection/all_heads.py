"""What every attention head of every layer does: its weights, and which of the known patterns it follows."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from nmt.corpus.batching import pad
from nmt.corpus.example import Example
from nmt.evaluation.attention_statistics import LABELS, HeadStatistics, summarize
from nmt.evaluation.gold_links import GoldLinks, Unit, measure_error_rate
from nmt.layers.self_attention import recorded_weights
from nmt.models.base import Decoder, Head
from nmt.system.progress import progress_bar
from nmt.system.tables import Table
from nmt.translation.translation import Translation
from nmt.translation.translator import Translator

Part = Literal["encoder", "decoder"]
"""Where self-attention is."""


NEAR = 2
"""Positions on each side that count as near."""
FARTHEST = 5
"""Distance from which on all distances are one."""


@dataclass(frozen=True)
class HeadWeights:
    """The weights of a sentence and a target.

    Attributes:
        own: Self-attention of each layer: of the encoder over the source with EOS, [heads, S, S]; of the decoder over
            BOS and the target without EOS, [heads, T, T]. Without layers where there is none.
        source: Attention to the source, in the order of `Decoder.heads`, [T, heads, S].
    """

    own: dict[Part, list[Tensor]]
    source: Tensor


@dataclass(frozen=True)
class SourceHead:
    """A head that attends to the source.

    Attributes:
        head: Its layer and number.
        statistics: Where it looks.
        error_rate: Alignment error rate of its links; None without gold links.
    """

    head: Head
    statistics: HeadStatistics
    error_rate: float | None


@dataclass(frozen=True)
class SelfHead:
    """A head of self-attention: means over all positions of all sentences.

    Attributes:
        part: `encoder` or `decoder`.
        head: Its layer and number.
        by_distance: Weight at each distance, from -5 (5 or more words before) to 5; 0 is the same word.
        first: Weight on the first position: in the decoder the beginning of the sentence.
        stop: Weight on the last word, which is a full stop in most sentences.
        end: Weight on the end of the sentence, which an encoder reads.
        spread: Entropy as a share of the largest possible one.
    """

    part: Part
    head: Head
    by_distance: dict[int, float]
    first: float
    stop: float
    end: float
    spread: float

    @property
    def pattern(self) -> str:
        """The first of four patterns that holds.

        - `positional`: at least half of its weight at one distance.
        - `global`: spread over the sentence: at least 70% of the largest possible entropy.
        - `local`: at least half of its weight within 2 positions.
        - `syntactic`: on few words elsewhere, which depend on the sentence.
        """
        single = max(weight for distance, weight in self.by_distance.items() if abs(distance) < FARTHEST)
        near = sum(weight for distance, weight in self.by_distance.items() if abs(distance) <= NEAR)
        held = {"positional": single >= 0.5, "global": self.spread >= 0.7, "local": near >= 0.5, "syntactic": True}
        return next(name for name, holds in held.items() if holds)


@dataclass(frozen=True)
class AllHeads:
    """Every head of a model on some sentences.

    Attributes:
        source: Heads that attend to the source.
        own: Heads of self-attention.
        layer_error_rates: Alignment error rate of the mean of each layer's heads; empty without gold links.
    """

    source: Sequence[SourceHead]
    own: Sequence[SelfHead]
    layer_error_rates: Sequence[float] = ()

    def tables(self) -> Iterator[Table]:
        """Attention to the source, and self-attention if there is any."""
        header = ["head", *LABELS.values(), "error rate"]
        rows = []
        for source_head in self.source:
            means = [f"{getattr(source_head.statistics, name).mean:.3f}" for name in LABELS]
            rate = "-" if source_head.error_rate is None else f"{source_head.error_rate:.3f}"
            rows.append([f"source {source_head.head}", *means, rate])
        yield Table(header, rows, "lrrrrrr", caption="Attention to the source")
        if self.layer_error_rates:
            rows = [[f"source {layer}", f"{rate:.3f}"] for layer, rate in enumerate(self.layer_error_rates, 1)]
            yield Table(["layer", "error rate"], rows, "lr", caption="Mean of the heads of each layer")
        if self.own:
            header = ["head", "before", "same", "after", "far", "first", "stop", "end", "spread", "pattern"]
            rows = []
            for head in self.own:
                weights = head.by_distance
                far = math.fsum(weight for distance, weight in weights.items() if abs(distance) > NEAR)
                values = weights[-1], weights[0], weights[1], far, head.first, head.stop, head.end, head.spread
                rows.append([f"{head.part} {head.head}", *(f"{value:.2f}" for value in values), head.pattern])
            yield Table(header, rows, "lrrrrrrrrl", caption="Self-attention: mean weights")

    def as_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "source": [
                {**head.head._asdict(), "entropy": head.statistics.entropy.mean, "error_rate": head.error_rate}
                for head in self.source
            ],
            "layer_error_rates": list(self.layer_error_rates),
            "self_attention": [
                {"part": head.part, **head.head._asdict(), "pattern": head.pattern}
                | {name: getattr(head, name) for name in ("by_distance", "first", "stop", "end", "spread")}
                for head in self.own
            ],
        }


@torch.inference_mode()
def read_heads(translator: Translator, src: list[int], tgt: list[int]) -> HeadWeights:
    """Let a model read a target.

    Args:
        translator: A single model.
        src: Source ids without EOS.
        tgt: Target ids without EOS, T - 1 of them.
    """
    model = translator.model
    with recorded_weights(model.encoder) as of_encoder, recorded_weights(model.decoder) as of_decoder:
        encoded = model.encode(pad([src], suffix=True).to(model.device), torch.tensor([len(src) + 1]))
        output = model.decoder(pad([tgt], prefix=True).to(model.device), encoded)
    part_weights: dict[Part, list[Tensor]] = {"encoder": of_encoder, "decoder": of_decoder}
    part_weights = {part: [weights[0].float().cpu() for weights in layers] for part, layers in part_weights.items()}
    return HeadWeights(part_weights, output.alignments[0].float().cpu())


def measure_heads(
    translator: Translator,
    examples: Sequence[Example],
    sentences: Sequence[Translation],
    gold: Sequence[GoldLinks] | None = None,
    unit: Unit = "words",
) -> AllHeads:
    """Measure every head while a model reads translations, with a progress bar.

    Args:
        translator: A single model.
        examples: Sources, with a reference each if there are gold links.
        sentences: A target of each, with its alignment; those without one, as they have no words, are left out.
        gold: Links of people between each source and its first reference.
        unit: What gold links count.
    """
    processor = translator.processor
    alignments = list[Tensor]()

    def read() -> Iterator[HeadWeights]:
        with progress_bar(total=len(sentences), unit=" sentences", desc="measuring heads", leave=False) as bar:
            for sentence in sentences:
                bar.update()
                if sentence.alignment is not None:
                    src = processor.src_vocabulary.encode(sentence.src_tokens)
                    weights = read_heads(translator, src, processor.tgt_vocabulary.encode(sentence.tokens))
                    alignments.append(weights.source)
                    yield weights

    statistics = summarize_self_attention(read())
    heads = translator.model.decoder.heads

    def rate(numbers: Sequence[int]) -> float:
        """The error rate of some heads together."""
        assert gold is not None
        pairs = zip(sentences, alignments, strict=True)  # a sentence with links has been read, so it has weights
        shown = [replace(sentence, alignment=weights[:, numbers]) for sentence, weights in pairs]
        return measure_error_rate(translator, examples, shown, gold, unit)

    layers: dict[int, list[int]] = {}
    for number, head in enumerate(heads):
        layers.setdefault(head.layer, []).append(number)
    rates = [None if gold is None else rate([number]) for number in range(len(heads))]
    source = [SourceHead(*row) for row in zip(heads, summarize(alignments), rates, strict=True)]
    layer_rates = [] if gold is None else [rate(numbers) for numbers in layers.values()]
    return AllHeads(source, statistics, layer_rates)


def summarize_self_attention(sentences: Iterable[HeadWeights]) -> list[SelfHead]:
    """Means of each head of self-attention over all positions of all sentences."""
    sums: dict[tuple[Part, Head], Tensor] = {}
    for sentence in sentences:
        for part, layers in sentence.own.items():
            for layer, weights in enumerate(layers):
                for number, values in enumerate(_profile(weights, part == "decoder")):
                    key = part, Head(layer, number)
                    sums[key] = sums.get(key, torch.zeros_like(values)) + values
    return [_self_head(*key, values) for key, values in sums.items()]


def list_heads(
    decoder: Decoder[Any, Any, Any], sentences: Sequence[HeadWeights], *, patterns: bool
) -> dict[str, list[tuple[str, str]]]:
    """Layer, number and a note of each head by part: its pattern, or whether it stands for the whole.

    Args:
        decoder: The decoder that attends to the source.
        sentences: Weights of at least one sentence.
        patterns: True if they are enough to tell the patterns of heads.

    Returns:
        Heads of `encoder`, `decoder` and `source`, in the order of their weights.
    """
    heads: dict[str, list[tuple[str, str]]] = {}
    for self_head in summarize_self_attention(sentences):
        heads.setdefault(self_head.part, []).append((str(self_head.head), self_head.pattern if patterns else ""))
    several = len(decoder.heads) > 1
    chosen = decoder.heads[decoder.chosen_heads]
    notes = ["above" if several and head in chosen else "" for head in decoder.heads]
    return {**heads, "source": list(zip(map(str, decoder.heads), notes, strict=True))}


def _profile(weights: Tensor, causal: bool) -> Tensor:
    """Sums over the positions of a sentence: number, then weights by distance and place, and spread, [heads, 16].

    Args:
        weights: [heads, T, T].
        causal: True if each position reads those up to its own, as in a decoder, where the sentence has no end yet.
    """
    size = weights.size(1)
    exact = weights.double()
    positions = torch.arange(size)
    distance = (positions - positions.unsqueeze(1)).clamp(-FARTHEST, FARTHEST)  # [T, T]: of what is read
    columns = [torch.full((len(weights),), float(size), dtype=torch.float64)]
    columns += [(exact * (distance == offset)).sum(dim=(1, 2)) for offset in range(-FARTHEST, FARTHEST + 1)]
    received = exact.sum(dim=1)  # [heads, T]
    last = size - 1 if causal else max(size - 2, 0)
    columns += [received[:, 0], received[:, last], received[:, -1] * (not causal)]
    readable = positions + 1 if causal else torch.full_like(positions, size)
    columns.append((torch.special.entr(exact).sum(dim=-1) / readable.clamp(min=2).log()).sum(dim=1))
    return torch.stack(columns, dim=1)


def _self_head(part: Part, head: Head, sums: Tensor) -> SelfHead:
    means = (sums[1:] / sums[0]).tolist()
    distances = range(-FARTHEST, FARTHEST + 1)
    by_distance = dict(zip(distances, means, strict=False))
    return SelfHead(part, head, by_distance, *means[len(distances) :])
