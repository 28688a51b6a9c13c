"""Raw text in, raw text out: one line for one line, whatever the line."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import overload

import torch
from torch import Tensor

from nmt.batching import pad
from nmt.config import DecodeSection
from nmt.decoding.joining import join_sentences
from nmt.decoding.search import Hypothesis, beam_search, greedy_search
from nmt.decoding.stepper import Seq2SeqStepper
from nmt.decoding.words import CONTROL
from nmt.errors import CheckpointError, ConfigError
from nmt.model.seq2seq import Seq2Seq
from nmt.text.processor import TextProcessor
from nmt.text.sentences import SentenceSplitter, split_tokens

MAX_SOURCE_LENGTH = 1000
"""Source tokens that are read of one line; the rest of a longer line is cut off."""


@dataclass(frozen=True)
class Translation:
    """One translation of one line.

    Attributes:
        text: Detokenised text, never with a line break.
        tokens: Target tokens.
        src_tokens: Source tokens.
        log_prob: Natural logarithm of the model's probability.
        score: What hypotheses are ranked by.
        alignment: Attention, [target tokens + EOS, heads, source tokens + EOS]; None unless asked for.
        truncated: Whether the source was longer than `MAX_SOURCE_LENGTH`.
        token_log_probs: Natural logarithm of the probability of each target token; empty where it is not known.
        sentences: The translations of the sentences of a line that was split; empty where it was not.
    """

    text: str
    tokens: list[str] = field(default_factory=list)
    src_tokens: list[str] = field(default_factory=list)
    log_prob: float = 0.0
    score: float = 0.0
    alignment: Tensor | None = field(default=None, repr=False)
    truncated: bool = False
    token_log_probs: list[float] = field(default_factory=list)
    sentences: list[Translation] = field(default_factory=list, repr=False)


class Translator:
    """A model with its text processor; several threads may translate with one at once.

    Args:
        model: In evaluation mode, in which it stays.
        processor: Text to ids and back.
        options: Search settings.
        splitter: Finds the sentences of a line, which are translated one by one; None takes a line as it is.
        dictionary: Translations of words that the model does not know, by the word as it reads it.
    """

    def __init__(
        self,
        model: Seq2Seq,
        processor: TextProcessor,
        options: DecodeSection,
        *,
        splitter: SentenceSplitter | None = None,
        dictionary: Mapping[str, str] | None = None,
    ) -> None:
        self.model = model
        self.processor = processor
        self.options = options
        self.splitter = splitter
        self.dictionary = dictionary
        self._tokenizing = threading.Lock()  # spaCy fills caches as it goes

    @overload
    def translate(  # type: ignore[overload-overlap]  # a text is a sequence of texts too, but never meant as one
        self, texts: str, n_best: None = None, with_alignment: bool = False, *, advance: Callable[[int], object] = ...
    ) -> Translation: ...
    @overload
    def translate(  # type: ignore[overload-overlap]
        self, texts: str, n_best: int, with_alignment: bool = False, *, advance: Callable[[int], object] = ...
    ) -> list[Translation]: ...
    @overload
    def translate(
        self,
        texts: Sequence[str],
        n_best: None = None,
        with_alignment: bool = False,
        *,
        advance: Callable[[int], object] = ...,
    ) -> list[Translation]: ...
    @overload
    def translate(
        self, texts: Sequence[str], n_best: int, with_alignment: bool = False, *, advance: Callable[[int], object] = ...
    ) -> list[list[Translation]]: ...
    def translate(
        self,
        texts: str | Sequence[str],
        n_best: int | None = None,
        with_alignment: bool = False,
        *,
        advance: Callable[[int], object] = lambda count: None,
    ) -> Translation | list[Translation] | list[list[Translation]]:
        """Translate raw text.

        Args:
            texts: One text, or several; one without any token gives an empty translation. With a splitter a text may
                have several sentences; see `join_sentences`.
            n_best: How many translations of each to give, at most the beam size; None gives the best one by itself.
            with_alignment: Keep alignments.
            advance: Called with the number of texts done, for a progress bar.

        Returns:
            The translation of one text; the translations of several, in order. With `n_best` a list for each text, best
            first.

        Raises:
            ConfigError: `n_best` is more than the beam size.
            CheckpointError: The model's probabilities are not numbers.
        """
        self.check_n_best(n_best)
        found = self._translate([texts] if isinstance(texts, str) else texts, n_best or 1, with_alignment, advance)
        if n_best is None:
            best = [translations[0] for translations in found]
            return best[0] if isinstance(texts, str) else best
        return found[0] if isinstance(texts, str) else found

    def check_n_best(self, n_best: int | None) -> None:
        """Refuse to give more translations than the beam holds, or none.

        Raises:
            ConfigError: As it says.
        """
        if n_best is not None and n_best > self.options.beam_size:
            raise ConfigError(f"--n-best {n_best} is more than the beam size {self.options.beam_size}")
        if n_best is not None and n_best < 1:
            raise ConfigError(f"--n-best {n_best}: there is no such number of translations")

    def _translate(
        self, lines: Sequence[str], n_best: int, with_alignment: bool, advance: Callable[[int], object]
    ) -> list[list[Translation]]:
        """For each line, in order, its translations, best first."""
        with self._tokenizing:
            sources, owners = self._read(lines)
        results = [[Translation("")] for _ in sources]
        left = Counter(owners)

        def finish(places: Sequence[int]) -> None:
            done = Counter(owners[place] for place in places)
            left.subtract(done)
            advance(sum(not left[line] for line in done))

        finish([n for n, tokens in enumerate(sources) if not tokens])
        order = sorted((n for n, tokens in enumerate(sources) if tokens), key=lambda n: len(sources[n]))
        for start in range(0, len(order), self.options.batch_size):
            batch = order[start : start + self.options.batch_size]
            found = self._search([sources[n][:MAX_SOURCE_LENGTH] for n in batch], n_best, with_alignment)
            if not all(found):
                raise CheckpointError(
                    "the model gives no word a probability, as its weights are not finite or too large: its "
                    "training diverged; train it again with a lower train.optimizer.learning_rate"
                )
            for n, hypotheses in zip(batch, found, strict=True):
                results[n] = [self._render(h, sources[n]) for h in hypotheses]
            finish(batch)
        of_lines: list[list[list[Translation]]] = [[] for _ in lines]
        for line, translations in zip(owners, results, strict=True):
            of_lines[line].append(translations)
        return [join_sentences(each, self.splitter.glue if self.splitter else " ") for each in of_lines]

    def _read(self, lines: Sequence[str]) -> tuple[list[list[str]], list[int]]:
        """Tokens of each sentence, or part of one that is too long, and the number of the line that it is from."""
        sentences = [self.splitter(line) if self.splitter else [line] for line in lines]
        tokens = iter(self.processor.tokenize_source([sentence for each in sentences for sentence in each]))
        parts = [(part, line) for line, each in enumerate(sentences) for _ in each for part in self._cut(next(tokens))]
        return [part for part, _ in parts], [line for _, line in parts]

    def _cut(self, tokens: list[str]) -> Iterable[list[str]]:
        """A sentence that can be read whole, or parts of it that are short enough to be translated whole."""
        if self.splitter is None or len(tokens) <= MAX_SOURCE_LENGTH:
            return [tokens]
        limit = max(1, min(self.options.max_length, MAX_SOURCE_LENGTH) // 2)
        return split_tokens(tokens, limit, subwords=self.processor.src_tokenizer.kind == "subword")

    def _search(self, sources: Sequence[list[str]], n_best: int, with_alignment: bool) -> list[list[Hypothesis]]:
        ids = [self.processor.src_vocabulary.encode(tokens) for tokens in sources]
        lengths = torch.tensor([len(sequence) + 1 for sequence in ids])
        src = pad(ids, suffix=True).to(self.model.device)
        options, stepper = self.options, Seq2SeqStepper(self.model)
        if options.beam_size == 1:
            found = greedy_search(stepper, src, lengths, max_length=options.max_length, with_alignment=with_alignment)
            return [[hypothesis] for hypothesis in found]
        return beam_search(
            stepper,
            src,
            lengths,
            beam_size=options.beam_size,
            length_penalty=options.length_penalty,
            max_length=options.max_length,
            n_best=min(n_best, options.beam_size),
            with_alignment=with_alignment,
        )

    def _render(self, hypothesis: Hypothesis, src_tokens: list[str]) -> Translation:
        read = src_tokens[:MAX_SOURCE_LENGTH]
        attended = hypothesis.attended[: len(hypothesis.ids)] if self.options.replace_unknown else []
        tokens = self.processor.target_tokens(hypothesis.ids, read, attended, self.dictionary)
        return Translation(
            " ".join(CONTROL.sub("", self.processor.tgt_tokenizer.detokenize(tokens)).split()),
            tokens,
            read,
            hypothesis.log_prob,
            hypothesis.score,
            hypothesis.alignment,
            len(src_tokens) > len(read),
        )
