"""Translation of raw text to raw text, one line per line."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import overload

import torch

from nmt.config import DecodeSection
from nmt.models.seq2seq import Seq2Seq
from nmt.search.beam_tree import BeamTree
from nmt.search.hypothesis import Hypothesis
from nmt.search.searcher import Searcher
from nmt.system.errors import CONTROL, CheckpointError, ConfigError, check_at_least
from nmt.system.messages import Parameter
from nmt.system.surroundings import plain_torch
from nmt.text.casing import Casing, capitalize, upper
from nmt.text.languages import base_language
from nmt.text.processor import TextProcessor
from nmt.text.repeats import most_copies
from nmt.text.sentences import SentenceSplitter, is_in_capitals, is_title, split_tokens, untitle
from nmt.text.tokenizers import WORD_BEGINNING, Tokenizer
from nmt.text.vocabulary import EOS_ID, UNK_ID
from nmt.translation.copies import repair_copies
from nmt.translation.joining import join_sentences
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
LOOP = 3
"""Copies of tokens in a row from which a translation is called a loop."""
MAX_SOURCE_LENGTH = 1000
"""Maximum number of source tokens per line, less if the model has so many positions; the rest is cut off."""


class Translator:
    """A model with its text processor. It is thread-safe.

    Args:
        model: Model in evaluation mode.
        processor: Text to ids and back.
        options: Search settings.
        others: Further models of an ensemble, with the same vocabularies; the probability of a word is the mean over
            all models.
        splitter: Finds the sentences of a line, which are translated one by one; None takes a line as it is.
        dictionary: Translations of words that the model does not know, by the word as it reads it.
        frozen: True if the models' parameters never change, so that prepared weights can be reused.
        description: Path, direction and attention of the models, in words.

    Attributes:
        repairs: True if a sentence whose best translation is a loop gets the best one in the beam that is none, or
            stays as it is, and misspelled numbers and names are copied; see `repair_copies`.
        max_source_length: Maximum number of source tokens of a sentence; the rest of a longer one is cut off.
    """

    def __init__(
        self,
        model: Seq2Seq,
        processor: TextProcessor,
        options: DecodeSection,
        others: Sequence[Seq2Seq] = (),
        *,
        splitter: SentenceSplitter | None = None,
        dictionary: Mapping[str, str] | None = None,
        frozen: bool = False,
        description: str = "",
    ) -> None:
        self.model = model
        self.description = description
        self.processor = processor
        self.options = options
        self.searcher = Searcher([model, *others], options, frozen=frozen)
        self.splitter = splitter
        self.dictionary = dictionary
        self.repairs = False
        limits = filter(None, (model.encoder.max_length for model in self.searcher.models))
        self.max_source_length = min([MAX_SOURCE_LENGTH, *(limit - 1 for limit in limits)])
        self._tokenizing = threading.Lock()  # spaCy fills caches while tokenising

    def __repr__(self) -> str:
        models = self.searcher.models
        device = self.model.device
        parameters = sum(weights.numel() for model in models for weights in model.parameters())
        name = f" {self.description}," if self.description else " of"
        return f"<Translator{name} {parameters:,} parameters, beam {self.options.beam_size}, on {device}>"

    def __getstate__(self) -> dict[str, object]:
        """What is pickled: all but the lock."""
        return {name: value for name, value in vars(self).items() if name != "_tokenizing"}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        self._tokenizing = threading.Lock()

    def with_options(self, options: DecodeSection) -> Translator:
        """A translator of the same models with other search settings."""
        translator = copy.copy(self)
        translator._tokenizing = self._tokenizing  # both use the same tokenizers
        translator.options = options
        translator.searcher = Searcher(self.searcher.models, options, frozen=self.searcher.frozen)
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
        lines = _as_list(texts, "texts")
        sentences = self.read(lines)
        owners = [line for line, parts in enumerate(sentences) for _ in parts]
        left = Counter(owners)

        def finish(indices: Iterable[int]) -> None:
            done = [owners[index] for index in indices]
            left.subtract(done)
            advance(sum(not left[line] for line in set(done)))

        parts = [part for line in sentences for part in line]
        results = iter(self.translate_tokens(parts, 1 if n_best is None else n_best, with_alignment, finish))
        translations = list(map(self.join, lines, ([next(results) for _ in line] for line in sentences)))
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
        return [best for (best,) in self._search(sources, 1, with_alignment, target_tokens, whole=True)]

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
        ended = [text[-1:].isspace() for text in beginnings]
        return self._search(sources, n_best, with_alignment, target_tokens, ended=ended)

    def _read_both(self, texts: Iterable[str], targets: Iterable[str]) -> tuple[list[list[str]], list[list[str]]]:
        """The tokens of raw sources, and of a raw target for each."""
        if isinstance(texts, str) or isinstance(targets, str):
            raise TypeError("give a list of texts and a list of the same length, even for one text")
        src = _as_list(texts, "texts")
        tgt = _as_list(targets, "targets")
        if len(src) != len(tgt):
            raise ValueError(f"{len(src)} texts, but {len(tgt)} translations or prefixes")
        with self._tokenizing:
            return self.processor.tokenize_source(src), self.processor.tokenize_target(tgt)

    def _search(
        self,
        sources: Sequence[list[str]],
        n_best: int,
        with_alignment: bool,
        target_tokens: Sequence[list[str]] | None = None,
        *,
        whole: bool = False,
        ended: Sequence[bool] = (),
        finish: Callable[[Iterable[int]], object] = lambda indices: None,
    ) -> list[list[Translation]]:
        """The translations of tokenised sources, in order.

        Args:
            sources: Tokens of each source.
            n_best: Number of translations of each.
            with_alignment: Keep alignments.
            target_tokens: For each source the first target tokens as the user gave them; None leaves them free.
            whole: True if they are all of the translation, and an empty source is read too; otherwise its translation
                is empty.
            ended: For each source, whether the last of its first target tokens ends a word.
            finish: Called with the indices of the sources that are finished.

        Raises:
            ConfigError: The search settings forbid every continuation of a translation.
            CheckpointError: The model's probabilities are not finite.
        """
        order = [n for n, tokens in enumerate(sources) if tokens or whole]
        vocabulary = self.processor.tgt_vocabulary
        ids = [self.processor.src_vocabulary.encode(sources[n][: self.max_source_length]) for n in order]
        begun = None if target_tokens is None else [vocabulary.encode(target_tokens[n]) for n in order]
        if whole and begun is not None:
            hypotheses = self.searcher.score(ids, begun, with_alignment=with_alignment)
        else:
            hypotheses = self.searcher.search(
                ids,
                n_best,
                with_alignment,
                begun,
                inside=self._inside_words() if any(ended) else None,
                ended=[ended[n] for n in order] if any(ended) else (),
                advance=lambda batch: finish(order[n] for n in batch),
            )
        if not all(hypotheses):
            # With no constraint but EOS at once, only a diverged model finds nothing.
            if all(self.searcher.score(ids, [[] for _ in ids])):
                raise ConfigError(NO_CONTINUATION)
            raise CheckpointError(DIVERGED)
        translations = [[Translation("")] for _ in sources]
        for n, best in zip(order, hypotheses, strict=True):
            translations[n] = [
                self._render(hypothesis, sources[n], target_tokens[n] if target_tokens else ()) for hypothesis in best
            ]
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

    def tokenize(self, lines: Sequence[str]) -> list[list[str]]:
        """Source tokens of raw lines; an empty line has none."""
        with self._tokenizing:
            return self.processor.tokenize_source(lines)

    def read(self, lines: Sequence[str]) -> list[list[list[str]]]:
        """The tokens of the sentences of each line, or of parts of one that is too long."""
        with self._tokenizing:
            lines = [*map(self.processor.normalizer.decode, lines)]
            sentences = [self.splitter(line) if self.splitter else [line] for line in lines]
            for line in itertools.compress(sentences, map(is_in_capitals, lines)):
                line[:] = [capitalize(sentence, self._casings[0]) for sentence in line]
            if self.splitter and base_language(self.splitter.language) == "en":
                sentences = [
                    [untitle(word, self._rarity) if is_title(word) else word for word in line] for line in sentences
                ]
            tokens = iter(self.processor.tokenize_source([sentence for line in sentences for sentence in line]))
            return [[part for _ in line for part in self._cut(next(tokens))] for line in sentences]

    @property
    def _casings(self) -> tuple[Casing, Casing]:
        return self.splitter.casings if self.splitter else ("", "")

    def _rarity(self, word: str) -> tuple[float, float]:
        """Number of tokens of a source word, and of a single one its rank by frequency, inf if it is unknown."""
        (tokens,) = self.processor.tokenize_source([word])
        ids = self.processor.src_vocabulary.encode(tokens)
        return len(ids), ids[0] if len(ids) == 1 and ids[0] != UNK_ID else math.inf

    @plain_torch()
    def translate_tokens(
        self,
        sentences: Sequence[list[str]],
        n_best: int,
        with_alignment: bool = False,
        finish: Callable[[Iterable[int]], object] = lambda indices: None,
    ) -> list[list[Translation]]:
        """The translations of each sentence of `read`, best first.

        What has no letters, such as an emoji or a number, stays as it is.

        Args:
            sentences: Source tokens of each.
            n_best: Number of translations of each.
            with_alignment: Keep alignments.
            finish: Called with the indices of the sentences that are finished.

        Raises:
            ConfigError: `n_best` is not from 1 to the beam size.
            CheckpointError: The model's probabilities are not finite.
        """
        self.check_n_best(n_best)
        kept = {n: tokens for n, tokens in enumerate(sentences) if not any(map(str.isalpha, "".join(tokens)))}
        finish(kept)
        read = [[] if n in kept else tokens for n, tokens in enumerate(sentences)]
        translations = self._search(read, n_best, with_alignment, finish=finish)
        heads = next((best.alignment.size(1) for best, *_ in translations if best.alignment is not None), 1)
        if self.repairs:
            loops = [n for n, tokens in enumerate(read) if self._is_loop(tokens, translations[n][0])]
            beams = self._search([read[n] for n in loops], self.options.beam_size, with_alignment)
            for n, beam in zip(loops, beams, strict=True):
                translations[n] = [
                    hypothesis for hypothesis in beam if hypothesis.text and not self._is_loop(read[n], hypothesis)
                ][:n_best]
            kept |= {n: read[n] for n in loops if not translations[n]}
            if self.processor.src_tokenizer.kind == self.processor.tgt_tokenizer.kind == "subword":
                translations = [list(map(self._with_copies, ranked)) for ranked in translations]
        for n, tokens in kept.items():
            translations[n] = [self._copy(tokens, heads if with_alignment else 0)]
        return translations

    def _is_loop(self, src_tokens: list[str], translation: Translation) -> bool:
        """True if a translation repeats tokens that the source does not, or words where the source is a single one."""
        if LOOP <= most_copies(translation.tokens) > most_copies(src_tokens):
            return True
        alone = len(_as_text(src_tokens, self.processor.src_tokenizer).split()) == 1
        return alone and most_copies(translation.text.casefold().split()) > 1

    def _with_copies(self, translation: Translation) -> Translation:
        tokens = repair_copies(translation.src_tokens, translation.tokens, translation.token_log_probs)
        if tokens == translation.tokens:
            return translation
        return dataclasses.replace(translation, text=_as_text(tokens, self.processor.tgt_tokenizer), tokens=tokens)

    def _copy(self, src_tokens: list[str], heads: int) -> Translation:
        """A source as its own translation, with an alignment of so many heads."""
        tokens = src_tokens[: self.max_source_length]
        alignment = torch.eye(len(tokens) + 1)[:, None].expand(-1, heads, -1) if tokens and heads else None
        return Translation(
            _as_text(tokens, self.processor.src_tokenizer),
            tokens,
            tokens,
            alignment=alignment,
            truncated=len(src_tokens) > len(tokens),
            token_log_probs=[0.0] * len(tokens),
        )

    def join(self, line: str, sentences: Sequence[Sequence[Translation]]) -> list[Translation]:
        """The translations of a line, from those of its sentences, in capitals as it is; see `join_sentences`."""
        translations = join_sentences(sentences, self.splitter.glue if self.splitter else " ")
        if not is_in_capitals(line):
            return translations
        return [
            dataclasses.replace(translation, text=upper(translation.text, self._casings[1]))
            for translation in translations
        ]

    def _cut(self, tokens: list[str]) -> Iterable[list[str]]:
        """A sentence that can be read whole, or parts of it that are short enough to be translated whole."""
        if self.splitter is None or len(tokens) <= self.max_source_length:
            return [tokens]
        limit = max(1, min(self.options.max_length, self.max_source_length) // 2)
        return split_tokens(tokens, limit, subwords=self.processor.src_tokenizer.kind == "subword")

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

    def render(self, ids: list[int], src_tokens: list[str]) -> str:
        """Target ids without EOS as text, where unknown words stay as they are."""
        return _as_text(self.processor.target_tokens(ids, src_tokens), self.processor.tgt_tokenizer)

    def _render(self, hypothesis: Hypothesis, src_tokens: list[str], target_tokens: Sequence[str] = ()) -> Translation:
        """A hypothesis as text; `target_tokens` are its first ones as the user gave them, perhaps unknown words."""
        read = src_tokens[: self.max_source_length]
        attended = hypothesis.attended[: len(hypothesis.ids)] if self.options.replace_unknown else []
        tokens = self.processor.target_tokens(hypothesis.ids, read, attended, self.dictionary)
        tokens[: len(target_tokens)] = target_tokens
        return Translation(
            _as_text(tokens, self.processor.tgt_tokenizer),
            tokens,
            read,
            hypothesis.log_prob,
            hypothesis.score,
            hypothesis.alignment,
            len(src_tokens) > len(read),
            hypothesis.token_log_probs,
            hypothesis.ids.count(UNK_ID),
        )


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


def _as_text(tokens: list[str], tokenizer: Tokenizer) -> str:
    return " ".join(CONTROL.sub("", tokenizer.detokenize(tokens)).split())
