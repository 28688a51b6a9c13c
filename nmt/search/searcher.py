"""Searches in batches: from source ids to hypotheses."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from nmt.config import DecodeSection, SamplingSection
from nmt.corpus.batching import pad
from nmt.models.seq2seq import Seq2Seq
from nmt.search.beam_tree import BeamTree, grow_tree
from nmt.search.constraint import Constraint, ForcedPrefix, NoRepeat
from nmt.search.hypothesis import Hypothesis, Lengths, Scoring
from nmt.search.search import Search, SearchSettings
from nmt.search.stepper import EnsembleStepper, Seq2SeqStepper, Stepper
from nmt.search.strategy import BeamStrategy, GreedyStrategy, SamplingStrategy, Strategy
from nmt.search.waiting import BatchSize, Numbers, search_together
from nmt.system.device import autocast
from nmt.text.vocabulary import EOS_ID

Ids = Sequence[int]
Advance = Callable[[Sequence[int]], object]
"""Called with the indices of sources as they are finished."""

TOKENS_PER_SENTENCE = 64
"""Maximum number of source tokens in a batch, including padding, divided by `batch_size`."""


def ignore(sources: Sequence[int]) -> None:
    """Finished sources that nobody counts."""


class Searcher(ABC):
    """Finds translations: the interface between a translator and its models, whichever program computes them.

    Args:
        options: Search settings.

    Attributes:
        models: The models with the same vocabularies that search together; empty if another program has them.
        max_source_length: Longest source that can be read, in tokens with EOS; None: any.
        takes_constraints: True if `search` takes constraints.
        has_token_log_probs: True if hypotheses of `search` have the log-probability of each token.
    """

    models: Sequence[Seq2Seq] = ()
    max_source_length: int | None = None
    takes_constraints: bool = True
    has_token_log_probs: bool = True

    def __init__(self, options: DecodeSection) -> None:
        self.options = options

    @abstractmethod
    def with_options(self, options: DecodeSection) -> Self:
        """A searcher of the same models with other settings."""

    @abstractmethod
    def search(
        self,
        sources: Sequence[Ids],
        n_best: int = 1,
        with_alignment: bool = False,
        constraints: Sequence[Constraint] = (),
        *,
        advance: Advance = ignore,
    ) -> list[list[Hypothesis]]:
        """Search for translations, in batches of sources of similar length.

        Args:
            sources: Source ids without EOS.
            n_best: Maximum number of hypotheses per source.
            with_alignment: Keep alignments.
            constraints: On the translations of all sources, besides those of the search settings.
            advance: Called with the indices of sources as they are finished.

        Returns:
            The hypotheses of each source, in order, best first; none if probabilities are not finite.
        """

    @abstractmethod
    def score(
        self, sources: Sequence[Ids], targets: Sequence[Ids], *, with_alignment: bool = False
    ) -> list[list[Hypothesis]]:
        """Compute the probabilities of given translations.

        Args:
            sources: Source ids without EOS.
            targets: Target ids without EOS, one for each source.
            with_alignment: Keep alignments.

        Returns:
            For each source a single hypothesis, in order; none if probabilities are not finite.
        """

    @abstractmethod
    def grow_tree(self, source: Ids) -> BeamTree:
        """Search for translations of one source, and keep every prefix that was in the beam, with its alignment."""

    @abstractmethod
    def fingerprint(self) -> str:
        """A checksum of the weights of all models."""

    @property
    @abstractmethod
    def device(self) -> torch.device:
        """Device of the weights."""

    @property
    @abstractmethod
    def max_target_length(self) -> int | None:
        """Longest translation that the models can write, in tokens with EOS; None: any."""

    def longest(self, source: Ids) -> int:
        """Maximum number of words of a translation of a source."""
        return int(self._lengths().most(torch.tensor(len(source) + 1)))

    def _lengths(self) -> Lengths:
        options = self.options
        longest = min(filter(None, [options.max_length, self.max_target_length]))
        return Lengths(longest, options.max_length_ratio, options.min_length, options.min_length_ratio)

    def _scoring(self) -> Scoring:
        options = self.options
        return Scoring(options.length_penalty, options.length_norm, options.coverage_penalty)

    @property
    def _full_batch(self) -> BatchSize:
        most = self.options.batch_size
        return BatchSize(most, most * TOKENS_PER_SENTENCE)

    def _batches(self, sources: Sequence[Ids]) -> Iterator[list[int]]:
        """Indices of sources in batches of similar length."""
        full = self._full_batch
        batch: list[int] = []
        for n in sorted(range(len(sources)), key=lambda n: len(sources[n])):
            tokens = (len(batch) + 1) * (len(sources[n]) + 1)
            if batch and (len(batch) == full.sentences or tokens > full.tokens):
                yield batch
                batch = []
            batch.append(n)
        if batch:
            yield batch


class StepSearcher(Searcher):
    """A searcher whose loop is `search`, over the steps of a `Stepper`."""

    @abstractmethod
    def _stepper(self, num_words: int) -> Stepper[Any]:
        """The models for a search that reads at least `num_words` words."""

    def search(
        self,
        sources: Sequence[Ids],
        n_best: int = 1,
        with_alignment: bool = False,
        constraints: Sequence[Constraint] = (),
        *,
        advance: Advance = ignore,
    ) -> list[list[Hypothesis]]:
        """See `Searcher.search`."""
        width = n_best if self.options.sampling.temperature else self.options.beam_size

        def choose(batch: Numbers) -> SearchSettings:
            selected = [constraint.select(batch) for constraint in constraints]
            return self._settings([sources[n] for n in batch], n_best, with_alignment, selected)

        return self._in_batches(sources, width * sum(map(len, sources)), choose, advance)

    def grow_tree(self, source: Ids) -> BeamTree:
        """See `Searcher.grow_tree`."""
        settings = replace(self._settings([source], self.options.beam_size, True), n_best=1)
        with autocast(self.device, self.options.precision):
            stepper = self._stepper(self.options.beam_size * len(source))
            search = Search(stepper, *self._encode([source]), settings)
            search.run()
            return grow_tree(search.steps)

    def _settings(
        self, sources: Sequence[Ids], n_best: int, with_alignment: bool, constraints: Sequence[Constraint] = ()
    ) -> SearchSettings:
        options = self.options
        sampling = self.options.sampling
        strategy: Strategy = GreedyStrategy() if options.beam_size == 1 else BeamStrategy(options.beam_size)
        if sampling.temperature is not None:
            seeds = [_seed(ids, sampling) for ids in sources]
            strategy = SamplingStrategy(n_best, seeds, options.max_length, sampling)
        size = options.no_repeat_ngram_size
        chosen = [] if size is None else [NoRepeat(size)]
        return SearchSettings(
            strategy, self._lengths(), self._scoring(), [*chosen, *constraints], n_best, with_alignment
        )

    def score(
        self, sources: Sequence[Ids], targets: Sequence[Ids], *, with_alignment: bool = False
    ) -> list[list[Hypothesis]]:
        """Force the search to follow the translations; see `Searcher.score`."""

        def choose(batch: Numbers) -> SearchSettings:
            forced = [[*targets[n], EOS_ID] for n in batch]
            longest = max(map(len, forced))
            lengths = Lengths(longest, max_ratio=0.0, margin=longest)
            return SearchSettings(GreedyStrategy(), lengths, self._scoring(), [ForcedPrefix(forced)], 1, with_alignment)

        return self._in_batches(sources, sum(map(len, targets)), choose)

    def _in_batches(
        self,
        sources: Sequence[Ids],
        num_words: int,
        choose: Callable[[Numbers], SearchSettings],
        advance: Advance = ignore,
    ) -> list[list[Hypothesis]]:
        """Hypotheses of all sources, in order; `choose` says how to search a batch, `num_words` is their length."""
        results: list[list[Hypothesis]] = [[] for _ in sources]
        with autocast(self.device, self.options.precision):
            stepper = self._stepper(num_words)
            searches = (
                (batch, Search(stepper, *self._encode([sources[n] for n in batch]), choose(batch)))
                for batch in self._batches(sources)
            )
            for finished, hypotheses in search_together(searches, choose, self._full_batch, advance):
                for n, ranked in zip(finished, hypotheses, strict=True):
                    results[n] = ranked
        return results

    def _encode(self, sources: Sequence[Ids]) -> tuple[Tensor, Tensor]:
        lengths = torch.tensor([len(ids) + 1 for ids in sources])
        return pad(sources, suffix=True).to(self.device), lengths


class ModelSearcher(StepSearcher):
    """Models with the same vocabularies that search for translations together, by the mean of their probabilities.

    Args:
        models: In evaluation mode.
        options: Search settings.
        frozen: True if the models' parameters never change, so that prepared weights can be reused.
    """

    def __init__(self, models: Sequence[Seq2Seq], options: DecodeSection, *, frozen: bool = False) -> None:
        super().__init__(options)
        self.models = models
        self.frozen = frozen
        limits = list(filter(None, (model.encoder.max_length for model in models)))
        self.max_source_length = min(limits) if limits else None
        self._cached: tuple[int, Stepper[Any]] | None = None

    def __getstate__(self) -> dict[str, object]:
        """The pickled attributes: not the prepared weights, which are made again."""
        return {**vars(self), "_cached": None}

    def with_options(self, options: DecodeSection) -> Self:
        """See `Searcher.with_options`."""
        return type(self)(self.models, options, frozen=self.frozen)

    @property
    def device(self) -> torch.device:
        """See `Searcher.device`."""
        return self.models[0].device

    @property
    def max_target_length(self) -> int | None:
        """See `Searcher.max_target_length`."""
        limits = list(filter(None, (model.decoder.max_length for model in self.models)))
        return min(limits) if limits else None

    def fingerprint(self) -> str:
        """See `Searcher.fingerprint`."""
        digest = hashlib.sha256()
        for model in self.models:
            for name, tensor in model.state_dict().items():
                digest.update(name.encode())
                digest.update(tensor.detach().cpu().contiguous().numpy().data)
        return digest.hexdigest()

    def _stepper(self, num_words: int) -> Stepper[Any]:
        """The models for a search that reads at least `num_words` words."""
        vocabulary = self.models[0].decoder.output.out_features
        num_words = vocabulary if num_words >= vocabulary else 1  # only a long search pays for tables of all words
        if self._cached is not None and self._cached[0] >= num_words:
            return self._cached[1]
        steppers = [Seq2SeqStepper(model, num_words=num_words, num_models=len(self.models)) for model in self.models]
        stepper = steppers[0] if len(steppers) == 1 else EnsembleStepper(steppers)
        if self.frozen:
            self._cached = num_words, stepper
        return stepper


def _seed(ids: Ids, sampling: SamplingSection) -> int:
    """A seed for a source that depends only on the source and on the seed of the sampling."""
    content = np.asarray([sampling.seed, *ids], dtype="<i8").tobytes()
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")
