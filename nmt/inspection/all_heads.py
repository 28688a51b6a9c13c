"""What every attention head of every layer does: its weights, and the pattern that they have beyond chance."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from nmt.corpus.batching import pad
from nmt.corpus.example import Example
from nmt.evaluation.attention_statistics import LABELS, HeadStatistics, summarize
from nmt.evaluation.gold_links import GoldLinks, Unit, measure_error_rate
from nmt.inspection.head_patterns import (
    CANDIDATES,
    NEAR,
    PLACES,
    Excess,
    LayerTally,
    Relation,
    WordRelation,
    place_relations,
)
from nmt.layers.self_attention import recorded_weights
from nmt.models.base import Decoder, Head
from nmt.system.progress import progress_bar
from nmt.system.tables import Table
from nmt.translation.translation import Translation
from nmt.translation.translator import Translator
from nmt.translation.words import token_places

Part = Literal["encoder", "decoder"]
"""Where self-attention is."""
SHARE = 0.5
"""A head has a pattern only with this share of its weight on it."""
EVEN = 0.7
"""Share of the largest possible entropy from which on weights are even."""


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
        excesses: What the head does more than the same weights shuffled within each row; see `head_patterns`.
        relations: The same of each relation that was given, such as a verb's weight on its subject; of an encoder.
    """

    part: Part
    head: Head
    by_distance: dict[int, float]
    first: float
    stop: float
    end: float
    spread: float
    excesses: dict[str, Excess]
    relations: dict[str, Excess]

    @property
    def finding(self) -> tuple[str, str]:
        """Its pattern, and the name of the excess that shows it; both are empty if it has none.

        - `positional`: at least half of its weight at one distance, or on the first word, the last or the end.
        - `syntactic`: the words of a relation that was given have at least half of their weight on those that they
          belong to, and clearly more than the head has on any words at these distances.
        - `local`: at least half of its weight within 2 positions.

        Each has to exceed chance: see `Excess.holds`.
        """
        single = {name: excess for name, excess in self.excesses.items() if name in CANDIDATES}
        syntactic = {name: excess for name, excess in self.relations.items() if excess.beyond_distance()}
        near = {"near": self.excesses["near"]}
        for kind, excesses in (("positional", single), ("syntactic", syntactic), ("local", near)):
            held = [name for name, excess in excesses.items() if excess.weight >= SHARE and excess.holds()]
            if held:
                return kind, max(held, key=lambda name: excesses[name].value)
        return "", ""

    @property
    def pattern(self) -> str:
        """Its pattern; without one `even` if its entropy is high, else `by content`: both are what chance gives."""
        kind, _ = self.finding
        return kind or ("even" if self.spread >= EVEN else "by content")

    @property
    def shown_excess(self) -> tuple[str, Excess]:
        """Name and value of the excess of its pattern; without one of the largest there is."""
        _, name = self.finding
        known = self.excesses | self.relations
        name = name or max(known, key=lambda key: known[key].value)
        return name, known[name]

    def describe(self) -> str:
        """Its pattern, and by how much its weights exceed shuffled ones there: `positional, −1: +0.43`."""
        name, excess = self.shown_excess
        return f"{self.pattern}, {name}: {excess.value:+.2f}".replace("-", "−")


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
            header = [
                "head",
                "before",
                "same",
                "after",
                "far",
                "first",
                "stop",
                "end",
                "spread",
                "pattern",
                "over chance",
            ]
            rows = []
            for head in self.own:
                weights = head.by_distance
                far = math.fsum(weight for distance, weight in weights.items() if abs(distance) > NEAR)
                values = weights[-1], weights[0], weights[1], far, head.first, head.stop, head.end, head.spread
                name, excess = head.shown_excess
                cells = [*(f"{value:.2f}" for value in values), head.pattern, f"{name}: {excess.value:+.2f}"]
                rows.append([f"{head.part} {head.head}", *cells])
            yield Table(header, rows, "lrrrrrrrrll", caption="Self-attention: mean weights")
        yield from self._relation_tables()

    def _relation_tables(self) -> Iterator[Table]:
        rows = [
            [
                f"{head.part} {head.head}",
                name,
                *(f"{value:.2f}" for value in (excess.weight, excess.shuffled, excess.distance)),
            ]
            for head in self.own
            for name, excess in head.relations.items()
        ]
        if rows:
            header = ["head", "relation", "weight", "shuffled", "at such distances"]
            yield Table(header, rows, "llrrr", caption="Mean weight of a word on the one that it belongs to")

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
                | {"excesses": {name: asdict(excess) for name, excess in head.excesses.items()}}
                | {"relations": {name: asdict(excess) for name, excess in head.relations.items()}}
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
    relations: Sequence[Sequence[WordRelation]] | None = None,
) -> AllHeads:
    """Measure every head while a model reads translations, with a progress bar.

    Args:
        translator: A single model.
        examples: Sources, with a reference each if there are gold links.
        sentences: A target of each, with its alignment; those without one, as they have no words, are left out.
        gold: Links of people between each source and its first reference.
        unit: What gold links and relations count.
        relations: Those between the words of each source; None without them.

    Raises:
        DataError: A link or a relation points past the end of a sentence.
    """
    processor = translator.processor
    alignments = list[Tensor]()
    placed = list[Sequence[Relation]]()

    def read() -> Iterator[HeadWeights]:
        with progress_bar(total=len(sentences), unit=" sentences", desc="measuring heads", leave=False) as bar:
            for number, sentence in enumerate(sentences):
                bar.update()
                if sentence.alignment is not None:
                    src = processor.src_vocabulary.encode(sentence.src_tokens)
                    weights = read_heads(translator, src, processor.tgt_vocabulary.encode(sentence.tokens))
                    alignments.append(weights.source)
                    if relations is not None:
                        places = token_places(examples[number].src, sentence.src_tokens, processor, unit)
                        placed.append(place_relations(relations[number], places, number + 1))
                    yield weights

    statistics = summarize_self_attention(read(), placed)
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


def summarize_self_attention(
    sentences: Iterable[HeadWeights], relations: Sequence[Sequence[Relation]] = ()
) -> list[SelfHead]:
    """Means of each head of self-attention over all positions of all sentences.

    Args:
        sentences: Their weights.
        relations: Those of each source, once its weights have been drawn from `sentences`; empty without them.
    """
    layers: dict[tuple[Part, int], LayerTally] = {}
    for number, sentence in enumerate(sentences):
        for part, tensors in sentence.own.items():
            for layer, weights in enumerate(tensors):
                tally = layers.setdefault((part, layer), LayerTally(causal=part == "decoder"))
                tally.add(weights, relations[number] if relations and part == "encoder" else ())
    return [
        self_head(part, Head(layer, head), tally)
        for (part, layer), tally in layers.items()
        for head in range(len(tally.spread))
    ]


def self_head(part: Part, head: Head, tally: LayerTally) -> SelfHead:
    """A head, from what its layer does."""
    number = head.number
    first, stop, end = (tally.tallies[place].mean(number) for place in PLACES)
    return SelfHead(
        part,
        head,
        tally.by_distance(number),
        first,
        stop,
        end,
        tally.mean_spread(number),
        tally.excesses(number),
        tally.relation_excesses(number),
    )


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
        heads.setdefault(self_head.part, []).append((str(self_head.head), self_head.describe() if patterns else ""))
    several = len(decoder.heads) > 1
    chosen = decoder.heads[decoder.chosen_heads]
    notes = ["above" if several and head in chosen else "" for head in decoder.heads]
    return {**heads, "source": list(zip(map(str, decoder.heads), notes, strict=True))}
