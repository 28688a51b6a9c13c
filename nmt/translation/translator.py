"""Translation of raw text to raw text, one line per line."""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import overload

import torch

from nmt.config import DecodeSection
from nmt.models.seq2seq import Seq2Seq
from nmt.search.beam_tree import BeamTree
from nmt.search.constraint import Constraint, ForcedPrefix, WholeWord
from nmt.search.hypothesis import Hypothesis
from nmt.search.searcher import ModelSearcher, Searcher
from nmt.system.errors import CheckpointError, ConfigError, check_at_least
from nmt.system.messages import Parameter
from nmt.system.surroundings import plain_torch
from nmt.text.direction import Direction
from nmt.text.processor import TextProcessor
from nmt.text.sentences import SentenceSplitter
from nmt.text.tokenizers import WORD_BEGINNING
from nmt.text.vocabulary import EOS_ID
from nmt.translation.protection import Protection
from nmt.translation.reader import MAX_SOURCE_LENGTH, Reader, Unit
from nmt.translation.repairs import copy_misspelled, is_loop
from nmt.translation.translation import Translation

DIVERGED = (
    "the model's probabilities are not finite: its training diverged, or its file is damaged; copy it again, or train "
    "it with a lower train.optimizer.learning_rate"
)
NO_CONTINUATION = (
    "decode.no_repeat_ngram_size: every continuation of a translation would repeat something; raise it, lower "
    "decode.min_length, or give another prefix"
)
Advance = Callable[[int], object]
"""Called with the number of finished texts."""
Finish = Callable[[Iterable[int]], object]
"""Called with the numbers of finished sentences."""


class Translator:
    """Models, a reader of text and search settings. It is thread-safe.

    Args:
        model: Model in evaluation mode, or the searcher with these search settings of another program's model.
        processor: Text to ids and back.
        options: Search settings.
        others: Further models of an ensemble, with the same vocabularies; the probability of a word is the mean over
            all models.
        splitter: Finds the sentences of a text, which are translated one by one; None takes a text as it is.
        dictionary: Translations of words that the model does not know, by the word as it reads it.
        protection: Spans that translations take over, with a splitter; None protects none.
        frozen: True if the models' parameters never change, so that prepared weights can be reused.
        description: Path, direction and attention of the models, in words.
        direction: The languages; None if they are not known.

    Attributes:
        reader: Splits texts into the units that are translated, and writes translations as text.
        searcher: Finds the translations of a unit.
        repairs: True if a sentence whose best translation is a loop gets the best one in the beam that is none, or
            stays as it is, and misspelled numbers and names are copied; see `repair_copies`.
    """

    def __init__(
        self,
        model: Seq2Seq | Searcher,
        processor: TextProcessor,
        options: DecodeSection,
        others: Sequence[Seq2Seq] = (),
        *,
        splitter: SentenceSplitter | None = None,
        dictionary: Mapping[str, str] | None = None,
        protection: Protection | None = None,
        frozen: bool = False,
        description: str = "",
        direction: Direction | None = None,
    ) -> None:
        self.description = description
        self.direction = direction
        self.options = options
        if isinstance(model, Searcher):
            self.searcher = model
        else:
            self.searcher = ModelSearcher([model, *others], options, frozen=frozen)
        self.repairs = False
        max_length = MAX_SOURCE_LENGTH
        if self.searcher.max_source_length:
            max_length = min(max_length, self.searcher.max_source_length - 1)
        self.reader = Reader(
            processor,
            splitter,
            dictionary,
            protection,
            max_length=max_length,
            longest_part=_longest_part(options, max_length),
            takes_constraints=self.searcher.takes_constraints,
        )

    def __repr__(self) -> str:
        name = f" {self.description}," if self.description else " of"
        models = self.searcher.models
        if models:
            parameters = sum(weights.numel() for model in models for weights in model.parameters())
            name += f" {parameters:,} parameters,"
        return f"<Translator{name} beam {self.options.beam_size}, on {self.searcher.device}>"

    @property
    def model(self) -> Seq2Seq:
        """The first of the models.

        Raises:
            ConfigError: Another program has the model.
        """
        if not self.searcher.models:
            raise ConfigError(
                f"{self.description}: an export does not show the inside of its model; give the model it was made from"
            )
        return self.searcher.models[0]

    @property
    def processor(self) -> TextProcessor:
        """Text to ids and back."""
        return self.reader.processor

    def with_options(self, options: DecodeSection) -> Translator:
        """A translator of the same models with other search settings."""
        translator = copy.copy(self)
        translator.options = options
        translator.searcher = self.searcher.with_options(options)
        translator.reader = self.reader.with_longest_part(_longest_part(options, self.reader.max_length))
        return translator

    def reading_documents(self, splitter: SentenceSplitter) -> Translator:
        """A translator with the same models that reads text as people send it: by sentences, with protected spans."""
        translator = copy.copy(self)
        reader = self.reader
        translator.reader = Reader(
            reader.processor,
            splitter,
            reader.dictionary,
            Protection(),
            max_length=reader.max_length,
            longest_part=reader.longest_part,
            takes_constraints=reader.takes_constraints,
        )
        return translator

    @overload
    def translate(  # type: ignore[overload-overlap]  # str is a sequence of str, too
        self, texts: str, n_best: None = None, with_alignment: bool = False, *, advance: Advance = ...
    ) -> Translation: ...
    @overload
    def translate(  # type: ignore[overload-overlap]
        self, texts: str, n_best: int, with_alignment: bool = False, *, advance: Advance = ...
    ) -> list[Translation]: ...
    @overload
    def translate(
        self, texts: Iterable[str], n_best: None = None, with_alignment: bool = False, *, advance: Advance = ...
    ) -> list[Translation]: ...
    @overload
    def translate(
        self, texts: Iterable[str], n_best: int, with_alignment: bool = False, *, advance: Advance = ...
    ) -> list[list[Translation]]: ...
    @plain_torch()
    def translate(
        self,
        texts: str | Iterable[str],
        n_best: int | None = None,
        with_alignment: bool = False,
        *,
        advance: Advance = lambda count: None,
    ) -> Translation | list[Translation] | list[list[Translation]]:
        """Translate raw text.

        A text of several words in capitals is read in small letters, and its translation set in capitals. With a
        splitter, an English title is read as a sentence is written.

        Args:
            texts: One text, or several, such as a list, a generator or an open file; a text without tokens has an empty
                translation. With a splitter a text may have several sentences; see `join_sentences`.
            n_best: Number of translations of each, at most the beam size; None returns only the best, without a list.
            with_alignment: Keep alignments.
            advance: Called with the number of finished texts, for a progress bar.

        Returns:
            The translation of one text; the translations of several, in order. With `n_best` a list per text, best
            first.

        Raises:
            ConfigError: `n_best` is not from 1 to the beam size.
            CheckpointError: The model's probabilities are not finite.
            TypeError: One of the texts is no string.
        """
        passages = self.reader.read(_as_list(texts, "texts"))
        units = [unit for passage in passages for unit in passage.units]
        owners = [number for number, passage in enumerate(passages) for _ in passage.units]
        left = Counter(owners)

        def finish(indices: Iterable[int]) -> None:
            done = [owners[index] for index in indices]
            left.subtract(done)
            advance(sum(not left[number] for number in set(done)))

        results = iter(self.translate_units(units, 1 if n_best is None else n_best, with_alignment, finish))
        translations = [self.reader.join(passage, [next(results) for _ in passage.units]) for passage in passages]
        chosen = [ranked[0] for ranked in translations] if n_best is None else translations
        return chosen[0] if isinstance(texts, str) else chosen

    @plain_torch()
    def score(self, texts: Iterable[str], targets: Iterable[str], *, with_alignment: bool = False) -> list[Translation]:
        """The probabilities of given translations, token by token (forced decoding).

        Args:
            texts: Source sentences; they are not split.
            targets: A translation of each.
            with_alignment: Keep alignments.

        Returns:
            The translations as the model reads them, with log-probabilities. From an empty source the model reads only
            the end of the sentence.

        Raises:
            ValueError: There are more texts than targets, or fewer.
            CheckpointError: The model's probabilities are not finite.
        """
        sources, target_tokens = self._read_both(texts, targets)
        vocabulary = self.processor.tgt_vocabulary
        hypotheses = self.searcher.score(
            self._source_ids(sources),
            [vocabulary.encode(tokens) for tokens in target_tokens],
            with_alignment=with_alignment,
        )
        if not all(hypotheses):
            raise CheckpointError(DIVERGED)
        return [
            self._as_translation(best, source, target)
            for (best,), source, target in zip(hypotheses, sources, target_tokens, strict=True)
        ]

    @plain_torch()
    def complete(
        self, texts: Iterable[str], prefixes: Iterable[str], *, n_best: int = 1, with_alignment: bool = False
    ) -> list[list[Translation]]:
        """Translations that begin with given words (prefix-constrained decoding).

        Args:
            texts: Source sentences; they are not split.
            prefixes: What the translation of each begins with, which may be empty. A prefix that ends in a space ends
                a word; the last word of another may go on.
            n_best: Number of translations of each.
            with_alignment: Keep alignments.

        Returns:
            For each source its translations, best first; an empty source has an empty one.

        Raises:
            ConfigError: `n_best` is not from 1 to the beam size, or a prefix is too long for the limits of the search.
            ValueError: There are more texts than prefixes, or fewer.
            CheckpointError: The model's probabilities are not finite.
        """
        self.check_n_best(n_best)
        beginnings = _as_list(prefixes, "prefixes")
        sources, target_tokens = self._read_both(texts, prefixes if isinstance(prefixes, str) else beginnings)
        ids = [self.processor.tgt_vocabulary.encode(tokens) for tokens in target_tokens]
        for source, prefix in zip(self._source_ids(sources), ids, strict=True):
            most = self.searcher.longest(source)
            if source and len(prefix) > most:
                raise ConfigError(
                    f"the prefix has {len(prefix):,} tokens, but a translation of this sentence at most {most:,}; give "
                    "a shorter prefix, or raise decode.max_length or decode.max_length_ratio"
                )
        constraints: list[Constraint] = [ForcedPrefix(ids)]
        if forbidden := self.reader.demand([Unit(tokens) for tokens in sources]):
            constraints.append(forbidden)
        ended = [len(prefix) if text[-1:].isspace() else 0 for text, prefix in zip(beginnings, ids, strict=True)]
        if any(ended):
            constraints.append(WholeWord(torch.tensor(ended), self._inside_words()))
        return self._search(sources, n_best, with_alignment, constraints, given=target_tokens)

    def _read_both(self, texts: Iterable[str], targets: Iterable[str]) -> tuple[list[list[str]], list[list[str]]]:
        """The tokens of raw sources, and of a raw target for each."""
        if isinstance(texts, str) or isinstance(targets, str):
            raise TypeError("give a list of texts and a list of the same length, even for one text")
        src = _as_list(texts, "texts")
        tgt = _as_list(targets, "targets")
        if len(src) != len(tgt):
            raise ValueError(f"{len(src)} texts, but {len(tgt)} translations or prefixes")
        return self.reader.tokenize(src), self.reader.tokenize_target(tgt)

    def _source_ids(self, sources: Iterable[Sequence[str]]) -> list[list[int]]:
        """The ids of source tokens, as many as the model reads."""
        vocabulary = self.processor.src_vocabulary
        return [vocabulary.encode(self.reader.cut_off(tokens)) for tokens in sources]

    def _as_translation(
        self, hypothesis: Hypothesis, src_tokens: Sequence[str], given: Sequence[str] = ()
    ) -> Translation:
        return self.reader.translation(hypothesis, src_tokens, given, replace_unknown=self.options.replace_unknown)

    def _search(
        self,
        sources: Sequence[list[str]],
        n_best: int,
        with_alignment: bool,
        constraints: Sequence[Constraint] = (),
        *,
        given: Sequence[list[str]] = (),
        finish: Finish = lambda numbers: None,
    ) -> list[list[Translation]]:
        """The translations of tokenised sources, in order; that of an empty source is empty.

        Args:
            sources: Tokens of each source.
            n_best: Number of translations of each.
            with_alignment: Keep alignments.
            constraints: On the translations of all sources.
            given: For each source the first target tokens as the user gave them; empty if there are none.
            finish: Called with the numbers of the sources that are finished.

        Raises:
            ConfigError: The search settings forbid every continuation of a translation.
            CheckpointError: The model's probabilities are not finite.
        """
        order = [n for n, tokens in enumerate(sources) if tokens]
        ids = self._source_ids(sources[n] for n in order)
        hypotheses = self.searcher.search(
            ids,
            n_best,
            with_alignment,
            [constraint.select(order) for constraint in constraints],
            advance=lambda batch: finish(order[n] for n in batch),
        )
        if not all(hypotheses):
            # With no constraint but EOS at once, only a diverged model finds nothing.
            if all(self.searcher.score(ids, [[] for _ in ids])):
                raise ConfigError(NO_CONTINUATION)
            raise CheckpointError(DIVERGED)
        translations = [[Translation("")] for _ in sources]
        for n, ranked in zip(order, hypotheses, strict=True):
            first = given[n] if given else ()
            translations[n] = [self._as_translation(hypothesis, sources[n], first) for hypothesis in ranked]
        return translations

    def _inside_words(self) -> torch.Tensor:
        """True at ids of target tokens that go on with a word, [V]; only pieces of subwords do."""
        tokens = self.processor.tgt_vocabulary.tokens
        if self.processor.tgt_tokenizer.kind != "subword":
            return torch.zeros(len(tokens), dtype=torch.bool)
        return torch.tensor(
            [id_ != EOS_ID and not token.startswith(WORD_BEGINNING) for id_, token in enumerate(tokens)]
        )

    def check_n_best(self, n_best: int) -> None:
        """Check that `n_best` is from 1 to the beam size.

        Raises:
            ConfigError: It is not.
        """
        if n_best > self.options.beam_size and self.options.sampling.temperature is None:
            raise ConfigError(
                "{n_best}: is more than the beam size; add {beam_size}",
                n_best=Parameter("n_best", n_best),
                beam_size=Parameter("beam_size", n_best),
            )
        check_at_least("n_best", n_best, 1)

    @plain_torch()
    def translate_units(
        self,
        units: Sequence[Unit],
        n_best: int,
        with_alignment: bool = False,
        finish: Finish = lambda numbers: None,
    ) -> list[list[Translation]]:
        """The translations of each unit that the reader found, best first.

        A unit without letters, such as an emoji or a number, stays as it is.

        Args:
            units: The units.
            n_best: Number of translations of each.
            with_alignment: Keep alignments.
            finish: Called with the numbers of the units that are finished.

        Raises:
            ConfigError: `n_best` is not from 1 to the beam size.
            CheckpointError: The model's probabilities are not finite.
        """
        self.check_n_best(n_best)
        translations: list[list[Translation]] = [[] for _ in units]
        waiting = dict(enumerate(units))
        while waiting:
            asked = with_alignment or any(unit.needs_alignment for unit in waiting.values())
            done = self._translate_as_read(list(waiting.values()), n_best, asked, finish)
            again: dict[int, Unit] = {}
            for (n, unit), ranked in zip(waiting.items(), done, strict=True):
                ended = [translation for translation in ranked if not self._runs_away(unit, translation)]
                whole = [self.reader.put_back(unit, translation) for translation in ended]
                translations[n] = [translation for translation in whole if translation is not None]
                if not translations[n]:
                    again[n] = self.reader.read_again(unit)
                if asked and not with_alignment:
                    translations[n] = [replace(translation, alignment=None) for translation in translations[n]]
            waiting = again
            finish = _ignore  # a unit is counted once
        return translations

    def _runs_away(self, unit: Unit, translation: Translation) -> bool:
        """True if a translation with stand-ins for spans is as long as it may be.

        The search then made the model write what it did not want to write.
        """
        if unit.is_copied or unit.way not in ("placeholders", "numbers"):
            return False
        (source,) = self._source_ids([unit.tokens])
        return len(translation.tokens) >= self.searcher.longest(source) - 1

    def _translate_as_read(
        self, units: Sequence[Unit], n_best: int, with_alignment: bool, finish: Finish
    ) -> list[list[Translation]]:
        """The translations of each unit with what stands in for its spans, best first."""
        copied = [n for n, unit in enumerate(units) if unit.is_copied]
        loops: list[int] = []
        finish(copied)
        sources = [[] if unit.is_copied else unit.tokens for unit in units]
        demand = self.reader.demand(units)
        constraints = [] if demand is None else [demand]
        translations = self._search(sources, n_best, with_alignment, constraints, finish=finish)
        heads = next((best.alignment.size(1) for best, *_ in translations if best.alignment is not None), 1)
        if self.repairs:
            translations = self._without_loops(sources, translations, n_best, with_alignment, constraints)
            loops = [n for n, ranked in enumerate(translations) if not ranked and not units[n].is_copied]
            if not self.searcher.has_token_log_probs:
                translations = self._with_token_log_probs(sources, translations)
            translations = [
                [copy_misspelled(translation, self.reader) for translation in ranked] for ranked in translations
            ]
        for n in (*copied, *loops):
            copy = self._copy(units[n], heads if with_alignment else 0)
            translations[n] = [replace(copy, is_loop=n in loops)]
        return [
            [replace(translation, unread=unit.unread) for translation in ranked] if unit.unread else ranked
            for unit, ranked in zip(units, translations, strict=True)
        ]

    def _without_loops(
        self,
        sources: Sequence[list[str]],
        translations: Sequence[list[Translation]],
        n_best: int,
        with_alignment: bool,
        constraints: Sequence[Constraint],
    ) -> list[list[Translation]]:
        """Translations, where the best one is a loop those in the beam that are none, perhaps none at all."""
        loops = [n for n, ranked in enumerate(translations) if is_loop(sources[n], ranked[0], self.reader)]
        selected = [constraint.select(loops) for constraint in constraints]
        beams = self._search([sources[n] for n in loops], self.options.beam_size, with_alignment, selected)
        chosen = list(translations)
        for n, beam in zip(loops, beams, strict=True):
            fitting = [
                hypothesis
                for hypothesis in beam
                if hypothesis.text and not is_loop(sources[n], hypothesis, self.reader)
            ]
            chosen[n] = fitting[:n_best]
        return chosen

    def _with_token_log_probs(
        self, sources: Sequence[list[str]], translations: Sequence[list[Translation]]
    ) -> list[list[Translation]]:
        """Translations, those that a repair may change with the log-probabilities of their tokens."""
        completed = [list(ranked) for ranked in translations]
        places: list[tuple[int, int]] = []
        most = self.searcher.max_target_length or math.inf
        for n, ranked in enumerate(translations):
            for rank, translation in enumerate(ranked):
                unsure = replace(translation, token_log_probs=[-math.inf] * len(translation.tokens))
                is_scored = len(translation.tokens) < most  # which gives it an end
                if is_scored and copy_misspelled(unsure, self.reader) is not unsure:
                    places.append((n, rank))
        vocabulary = self.processor.tgt_vocabulary
        hypotheses = self.searcher.score(
            self._source_ids(sources[n] for n, _ in places),
            [vocabulary.encode(translations[n][rank].tokens) for n, rank in places],
        )
        for (n, rank), (scored,) in zip(places, hypotheses, strict=True):
            completed[n][rank] = replace(translations[n][rank], token_log_probs=scored.token_log_probs)
        return completed

    def _copy(self, unit: Unit, heads: int) -> Translation:
        """A unit as its own translation, with an alignment of so many heads."""
        tokens = self.reader.cut_off(unit.tokens)
        alignment = torch.eye(len(tokens) + 1)[:, None].expand(-1, heads, -1) if tokens and heads else None
        return Translation(
            self.reader.write_copy(unit),
            tokens,
            tokens,
            alignment=alignment,
            truncated=len(unit.tokens) > len(tokens),
            token_log_probs=[0.0] * len(tokens),
            is_copied=bool(tokens),
        )

    @plain_torch()
    def grow_tree(self, ids: list[int]) -> BeamTree:
        """The search for translations of source ids, with every prefix that was in the beam.

        Raises:
            CheckpointError: The model's probabilities are not finite.
        """
        tree = self.searcher.grow_tree(ids)
        if not tree.best:
            raise CheckpointError(DIVERGED)
        return tree


def _ignore(numbers: Iterable[int]) -> None:
    """Finished sentences that nobody counts."""


def _longest_part(options: DecodeSection, max_length: int) -> int:
    """Maximum number of source tokens of a part of a long sentence: its translation fits into the search's limit."""
    return max(1, min(options.max_length, max_length) // 2)


def _as_list(texts: str | Iterable[str], name: str) -> list[str]:
    """One text, or several, as a list.

    Raises:
        TypeError: One of them is no string.
    """
    # The elements of bytes are numbers, and those of a path do not exist.
    if isinstance(texts, bytes) or not isinstance(texts, Iterable):
        kind = type(texts).__name__
        raise TypeError(f"{name}: is of type {kind}, not str or several str; decode bytes, and open a file")
    listed = [texts] if isinstance(texts, str) else list(texts)
    for number, text in enumerate(listed):
        if not isinstance(text, str):
            raise TypeError(f"{name}: element {number} is of type {type(text).__name__}, not str")
    return listed
