"""Scoring of a model while it trains."""

from __future__ import annotations

from collections.abc import Sequence

from nmt.corpus.dataset import EncodedPairs
from nmt.corpus.splitting import Example
from nmt.evaluation.input_text import evenly_spaced
from nmt.evaluation.loss import evaluating, mean_loss, perplexity
from nmt.evaluation.metrics import QUICK_METRICS, ScoringRules, score_corpus
from nmt.models.seq2seq import Seq2Seq
from nmt.system.errors import CheckpointError
from nmt.translation.alignment import Alignment, align
from nmt.translation.translator import Translator


class Validator:
    """Scores a model during training: loss, perplexity and, if text can be scored, greedy BLEU and chrF.

    Args:
        pairs: Encoded validation pairs, one per reference.
        examples: The same as raw text; without any, BLEU and chrF are skipped.
        rules: Case and tokenisation.
        translator: Greedy translator of the model in training; None skips BLEU and chrF.
        watch: Number of sentences, evenly spaced, whose attention is stored.
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
        self.watched = [examples[row] for row in evenly_spaced(len(examples), watch)] if watch else []
        self.signatures: dict[str, str] = {}
        """sacreBLEU's signatures of the scores."""
        self.attention: list[Alignment] = []
        """Attention of the last validation on the watched sentences, while the model read their first references."""

    def validate(self, model: Seq2Seq) -> dict[str, float]:
        """Loss in nats per token, perplexity, BLEU and chrF; the mode of the model is restored."""
        with evaluating(model):
            self.attention = []
            loss = mean_loss(model, self.pairs)
            result = {"loss": loss, "perplexity": perplexity(loss)}
            if self.translator is not None and self.examples:
                result |= self._score_text(self.translator)
        return result

    def _score_text(self, translator: Translator) -> dict[str, float]:
        try:
            translations = translator.translate([example.src for example in self.examples])
        except CheckpointError:  # the model has diverged: without probabilities it translates nothing
            return dict.fromkeys(QUICK_METRICS, 0.0)
        scores = score_corpus(self.examples, [translation.text for translation in translations], self.rules)
        self.signatures = {key: score.signature for key, score in scores.items()}
        middle = len(self.examples) // 2
        example = self.examples[middle]
        self.sample = (example.src, translations[middle].text, example.references[0])
        targets = [watched.references[0] for watched in self.watched]
        self.attention = align(translator, [watched.src for watched in self.watched], targets)
        return {key: score.value for key, score in scores.items()}
