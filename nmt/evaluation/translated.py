"""Evaluation of a model, with the same code during and after training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from nmt.corpus.dataset import EncodedPairs
from nmt.corpus.splitting import Example
from nmt.evaluation.attention_statistics import HeadStatistics, LengthAttention, attention_by_length, summarize
from nmt.evaluation.breakdown import bin_by_length
from nmt.evaluation.loss import evaluating, mean_loss, perplexity
from nmt.evaluation.metrics import QUICK_METRICS, Score, ScoringRules, score_corpus
from nmt.models.seq2seq import Seq2Seq
from nmt.system.errors import CheckpointError
from nmt.translation.alignment import Alignment, align
from nmt.translation.translator import Translator


@dataclass(frozen=True)
class Evaluation:
    """Translations of a test set and their scores.

    Attributes:
        hypotheses: One translation per example, in order.
        scores: A score for each metric.
        unknown_tokens: Share of the tokens that the model predicted as unknown.
        attention: Statistics of the attention of the translations, one for each head; empty unless requested.
        attention_by_length: The same by source length; empty unless requested.
    """

    hypotheses: list[str]
    scores: dict[str, Score]
    unknown_tokens: float
    attention: list[HeadStatistics]
    attention_by_length: list[LengthAttention]


def evaluate(
    translator: Translator,
    examples: Sequence[Example],
    rules: ScoringRules,
    advance: Callable[[int], object] = lambda count: None,
    metrics: Sequence[str] = QUICK_METRICS,
    resamples: int = 1,
    with_attention: bool = False,
) -> Evaluation:
    """Translate raw sources and score them against all their raw references.

    Args:
        translator: Model and search settings.
        examples: Sources with references.
        rules: Case and tokenisation.
        advance: Called with the number of finished sentences, for a progress bar.
        metrics: Keys of metrics.
        resamples: Test sets of a bootstrap that estimates confidence intervals; 1 is none.
        with_attention: Also measure the attention of the translations.
    """
    found = translator.translate([example.src for example in examples], with_alignment=with_attention, advance=advance)
    hypotheses = [translation.text for translation in found]
    references = [example.references for example in examples]
    tokens = sum(len(translation.tokens) for translation in found)
    alignments = [translation.alignment for translation in found]
    return Evaluation(
        hypotheses,
        score_corpus(hypotheses, references, rules, metrics, resamples),
        sum(translation.unknown for translation in found) / tokens if tokens else 0.0,
        summarize(alignments),
        attention_by_length(bin_by_length(examples), alignments) if with_attention else [],
    )


def evenly_spaced(number: int, most: int) -> list[int]:
    """At most so many of the first `number` whole numbers, evenly spaced."""
    if number <= most:
        return list(range(number))
    return [int(place) for place in np.linspace(0, number - 1, most).round()]


class Validator:
    """Scores a model during training: loss, perplexity and, if text can be scored, greedy BLEU and chrF.

    Args:
        pairs: Encoded validation pairs, one per reference.
        examples: The same as raw text; without any, BLEU and chrF are skipped.
        rules: Case and tokenisation.
        translator: Greedy translator of the model in training; None skips BLEU and chrF.
        watch: Number of sentences, evenly spaced, whose attention is kept.
    """

    def __init__(
        self,
        pairs: EncodedPairs,
        examples: Sequence[Example],
        rules: ScoringRules,
        translator: Translator | None,
        watch: int = 0,
    ) -> None:
        self.pairs = pairs
        self.examples = examples
        self.rules = rules
        self.translator = translator
        self.sample: tuple[str, str, str] | None = None
        """Source, translation and first reference of one sentence of the last validation."""
        self.watched = [examples[place] for place in evenly_spaced(len(examples), watch)] if watch else []
        self.signatures: dict[str, str] = {}
        """sacreBLEU's signatures of the scores."""
        self.attention: list[Alignment] = []
        """Attention of the last validation on the watched sentences, while the model read their first references."""

    def validate(self, model: Seq2Seq) -> dict[str, float]:
        """Loss in nats per token, perplexity, BLEU and chrF; the mode of the model is restored."""
        with evaluating(model):
            return self._score(model)

    def _score(self, model: Seq2Seq) -> dict[str, float]:
        self.attention = []
        loss = mean_loss(model, self.pairs)
        result = {"loss": loss, "perplexity": perplexity(loss)}
        if self.translator is not None and self.examples:
            try:
                found = evaluate(self.translator, self.examples, self.rules)
            except CheckpointError:  # the model has diverged: without probabilities it translates nothing
                return result | {"bleu": 0.0, "chrf": 0.0}
            result |= {key: score.value for key, score in found.scores.items()}
            self.signatures = {key: score.signature for key, score in found.scores.items()}
            middle = len(self.examples) // 2
            example = self.examples[middle]
            self.sample = (example.src, found.hypotheses[middle], example.references[0])
            targets = [each.references[0] for each in self.watched]
            self.attention = list(align(self.translator, [each.src for each in self.watched], targets))
        return result
