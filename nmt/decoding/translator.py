"""Raw text in, raw text out: one line for one line, whatever the line."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import overload

import torch
from torch import Tensor

from nmt.batching import pad
from nmt.config import DecodeSection
from nmt.decoding.search import Hypothesis, beam_search, greedy_search
from nmt.decoding.stepper import Seq2SeqStepper
from nmt.errors import CheckpointError, ConfigError
from nmt.model.seq2seq import Seq2Seq
from nmt.text.processor import TextProcessor

_CONTROL = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
"""Characters that could command a terminal, from a vocabulary of whatever origin; white space is not among them."""
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
    """

    text: str
    tokens: list[str] = field(default_factory=list)
    src_tokens: list[str] = field(default_factory=list)
    log_prob: float = 0.0
    score: float = 0.0
    alignment: Tensor | None = field(default=None, repr=False)
    truncated: bool = False


class Translator:
    """A model with its text processor; several threads may translate with one at once.

    Args:
        model: In evaluation mode, in which it stays.
        processor: Text to ids and back.
        options: Search settings.
    """

    def __init__(self, model: Seq2Seq, processor: TextProcessor, options: DecodeSection) -> None:
        self.model = model
        self.processor = processor
        self.options = options
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
            texts: One sentence, or several; one without any token gives an empty translation.
            n_best: How many translations of each to give, at most the beam size; None gives the best one by itself.
            with_alignment: Keep alignments.
            advance: Called with the number of sentences done, for a progress bar.

        Returns:
            The translation of one sentence; the translations of several, in order. With `n_best` a list for each
            sentence, best first.

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

    def tokenize(self, lines: Sequence[str]) -> list[list[str]]:
        """Source tokens of raw lines; an empty line has none."""
        with self._tokenizing:
            return self.processor.tokenize_source(lines)

    def _translate(
        self, lines: Sequence[str], n_best: int, with_alignment: bool, advance: Callable[[int], object]
    ) -> list[list[Translation]]:
        """For each line, in order, its translations, best first."""
        sources = self.tokenize(lines)
        results = [[Translation("")] for _ in lines]
        order = sorted((n for n, tokens in enumerate(sources) if tokens), key=lambda n: len(sources[n]))
        advance(len(lines) - len(order))
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
            advance(len(batch))
        return results

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
        tokens = self.processor.target_tokens(hypothesis.ids, read, attended)
        return Translation(
            " ".join(_CONTROL.sub("", self.processor.tgt_tokenizer.detokenize(tokens)).split()),
            tokens,
            read,
            hypothesis.log_prob,
            hypothesis.score,
            hypothesis.alignment,
            len(src_tokens) > len(read),
        )
