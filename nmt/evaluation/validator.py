"""Scoring of a model while it trains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nmt.corpus.dataset import EncodedPairs
from nmt.corpus.example import Example
from nmt.corpus.training_pairs import evenly_spaced
from nmt.evaluation.loss import evaluating, mean_loss, perplexity
from nmt.evaluation.metrics import QUICK_METRICS, ScoringRules, score_corpus
from nmt.models.seq2seq import Seq2Seq
from nmt.system.errors import CheckpointError
from nmt.translation.self_reading import read_self_attention
from nmt.translation.translation import Translation
from nmt.translation.translator import Translator

if TYPE_CHECKING:
    from torch import Tensor


@dataclass
class Validator:
    """Scores a model during training: loss, perplexity and, if text can be scored, greedy BLEU and chrF.

    Attributes:
        pairs: Encoded validation pairs, one per reference; without any, the examples are of training text.
        examples: The same as raw text; without any, BLEU and chrF are skipped.
        rules: Case and tokenisation.
        translator: Greedy translator of the model in training; None skips BLEU and chrF.
        watch: Number of sentences, evenly spaced, whose attention is stored.
        sample: Source, translation and first reference of one sentence of the last validation.
        signatures: sacreBLEU's signatures of the scores.
        attention: The first references of the watched sentences as the model of the last validation read them, with
            their alignments.
        written: The model's own translation of each of them.
        self_attention: How the words of the first of them read each other, layer by layer, [heads, S, S]; none of a
            recurrent encoder.
    """

    pairs: EncodedPairs
    examples: Sequence[Example]
    rules: ScoringRules
    translator: Translator | None
    watch: int = 0
    sample: tuple[str, str, str] | None = None
    signatures: dict[str, str] = field(default_factory=dict)
    attention: list[Translation] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    self_attention: list[Tensor] = field(default_factory=list)

    @property
    def is_unseen(self) -> bool:
        """True if the text is not that of training, so that its scores can choose a model."""
        return len(self.pairs) > 0

    @property
    def watched(self) -> list[Example]:
        """The sentences whose attention is stored."""
        return [self.examples[row] for row in self.watched_rows]

    @property
    def watched_rows(self) -> Sequence[int]:
        """The numbers of these sentences."""
        return evenly_spaced(len(self.examples), self.watch) if self.watch else []

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
        watched = self.watched
        rows = self.watched_rows
        try:
            translations = translator.translate([example.src for example in self.examples])
            references = [example.references[0] for example in watched]
            self.attention = translator.score([example.src for example in watched], references, with_alignment=True)
        except CheckpointError:  # the model has diverged: without probabilities it translates nothing
            return dict.fromkeys(QUICK_METRICS, 0.0)
        self.written = [translations[row].text for row in rows]
        if self.attention:
            self.self_attention = read_self_attention(translator, self.attention[0].src_tokens)
        scores = score_corpus(self.examples, [translation.text for translation in translations], self.rules)
        self.signatures = {key: score.signature for key, score in scores.items()}
        middle = len(self.examples) // 2
        example = self.examples[middle]
        self.sample = (example.src, translations[middle].text, example.references[0])
        return {key: score.value for key, score in scores.items()}
