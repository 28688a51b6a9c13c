"""CTranslate2's own search (https://github.com/OpenNMT/CTranslate2) in the place of `nmt.search`."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, NoReturn, Self

import torch
from torch import Tensor

from nmt.runtimes.folder import ExportedModel, check_tokens, computing, read_object, reading
from nmt.search.hypothesis import Hypothesis
from nmt.search.searcher import Advance, Ids, Searcher, ignore
from nmt.system.errors import CheckpointError, ConfigError
from nmt.system.files import read_json
from nmt.system.limits import MAX_TEXT_FILE
from nmt.text.placeholders import MAX_PLACEHOLDERS, TERM_MARKS, make_placeholders
from nmt.text.vocabulary import BOS_ID, EOS_ID, PAD_ID, SPECIAL_TOKENS, UNK_ID

if TYPE_CHECKING:
    from nmt.config import DecodeSection
    from nmt.search.beam_tree import BeamTree
    from nmt.search.constraint import Constraint

POSITIONS = 1024
"""Tokens of the longest input and translation of an export without learned positions."""
PATIENCE = 2
"""A search ends when this many times as many hypotheses have ended as the beam holds."""
SETTINGS = "config.json"
"""CTranslate2's own file of settings."""
END = SPECIAL_TOKENS[EOS_ID]


def find_search_obstacles(options: DecodeSection) -> Iterator[tuple[str, str]]:
    """Find search settings that CTranslate2 lacks: key, and the reason with the value to set instead.

    It divides log-probabilities by length ** length_penalty, where the length counts EOS (`src/decoding.cc`), which is
    `length_norm: average` with the same penalty.
    """
    if options.length_penalty and options.length_norm != "average":
        yield "decode.length_norm", f"CTranslate2 does not divide scores by {options.length_norm}; set average"
    if options.coverage_penalty:
        yield "decode.coverage_penalty", "source positions without attention cost nothing in CTranslate2; set 0"
    if options.min_length_ratio:
        yield "decode.min_length_ratio", "CTranslate2 has no such limit; set 0, or use decode.min_length"


class CTranslate2Searcher(Searcher):
    """An exported folder that CTranslate2 searches with.

    Its beam search takes no constraints, and gives the probability of a whole translation only.

    Args:
        model: The folder.
        options: Search settings.
        device: The CPU or a CUDA device.
        program: The `ctranslate2.Translator` of the folder; None loads it.

    Raises:
        CheckpointError: It cannot be loaded.
        ConfigError: CTranslate2 lacks a search setting, or the device.
    """

    takes_constraints = False
    has_token_log_probs = False

    def __init__(self, model: ExportedModel, options: DecodeSection, device: torch.device, program: Any = None) -> None:
        super().__init__(options)
        problems = [f"{model.path}: {key}: {text}" for key, text in find_search_obstacles(options)]
        if options.sampling.temperature is not None:
            problems.append(f"{model.path}: decode.sampling.temperature: CTranslate2's samples are others; set null")
        if problems:
            raise ConfigError(*problems)
        self.model = model
        self._device = device
        self.program = program or _load(model, device)
        self.max_source_length = _positions(model.config.model.encoder)
        # No translation has padding or a second beginning, nor placeholders and marks of terms: nobody can demand them.
        known = set(model.src_vocabulary.tokens) & set(model.tgt_vocabulary.tokens)
        reserved = (*make_placeholders(MAX_PLACEHOLDERS), *TERM_MARKS)
        impossible = (SPECIAL_TOKENS[PAD_ID], SPECIAL_TOKENS[BOS_ID], *reserved)
        self.impossible = {token for token in impossible if token in known}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled without the weights, which are loaded again."""
        return type(self), (self.model, self.options, self._device)

    def with_options(self, options: DecodeSection) -> Self:
        """See `Searcher.with_options`."""
        return type(self)(self.model, options, self._device, self.program)

    @property
    def device(self) -> torch.device:
        """See `Searcher.device`."""
        return self._device

    @property
    def max_target_length(self) -> int | None:
        """See `Searcher.max_target_length`."""
        return _positions(self.model.config.model.decoder)

    def fingerprint(self) -> str:
        """See `Searcher.fingerprint`."""
        return self.model.fingerprint()

    def grow_tree(self, source: Ids) -> BeamTree:
        """Refuse; see `Searcher.grow_tree`."""
        self._refuse("its search shows no beam")

    def search(
        self,
        sources: Sequence[Ids],
        n_best: int = 1,
        with_alignment: bool = False,
        constraints: Sequence[Constraint] = (),
        *,
        advance: Advance = ignore,
    ) -> list[list[Hypothesis]]:
        """See `Searcher.search`. Hypotheses have no log-probabilities of tokens."""
        if constraints:
            self._refuse("its search takes no constraints, such as given words at the beginning")
        results: list[list[Hypothesis]] = [[] for _ in sources]
        fewest = self._lengths().fewest(torch.tensor([len(source) + 1 for source in sources])).tolist()
        for batch in self._batches(sources):
            # A call has one minimum of the length; that of a source is smaller only if its limit is.
            for shortest, same in groupby(batch, fewest.__getitem__):
                group = list(same)
                hypotheses = self._search_batch([sources[n] for n in group], n_best, with_alignment, shortest)
                for n, ranked in zip(group, hypotheses, strict=True):
                    results[n] = ranked
            advance(batch)
        return results

    def _search_batch(
        self, sources: Sequence[Ids], n_best: int, with_alignment: bool, shortest: int
    ) -> list[list[Hypothesis]]:
        results = self._find_possible(sources, n_best, with_alignment, shortest)
        hypotheses = [self._hypotheses(result, source) for result, source in zip(results, sources, strict=True)]
        if self.options.replace_unknown and not with_alignment:
            # Only unknown words ask for the attention of their sentences.
            unknown = [n for n, ranked in enumerate(hypotheses) if any(UNK_ID in best.ids for best in ranked)]
            again = self._find_possible([sources[n] for n in unknown], n_best, True, shortest)
            for n, result in zip(unknown, again, strict=True):
                attended = self._hypotheses(result, sources[n])
                hypotheses[n] = [replace(hypothesis, alignment=None) for hypothesis in attended]
        return [self._within_limit(source, ranked) for source, ranked in zip(sources, hypotheses, strict=True)]

    def _find_possible(self, sources: Sequence[Ids], n_best: int, with_alignment: bool, shortest: int) -> list[Any]:
        """CTranslate2's results without impossible tokens, and not empty if the shortest may have 1 word.

        Only those that would be are searched again: CTranslate2 then deals out the probability of tokens that it rules
        out to the others, which changes scores.
        """
        results = self._translate(sources, n_best, with_alignment, 0 if shortest == 1 else shortest)
        wrong = [n for n, result in enumerate(results) if self._has_impossible(result, shortest)]
        again = self._translate([sources[n] for n in wrong], n_best, with_alignment, shortest, self.impossible)
        for n, result in zip(wrong, again, strict=True):
            results[n] = result
        return results

    def _has_impossible(self, result: Any, shortest: int) -> bool:
        if shortest == 1 and any(tokens in ([], [END]) for tokens in result.hypotheses):
            return True
        return any(not self.impossible.isdisjoint(tokens) for tokens in result.hypotheses)

    def _translate(
        self,
        sources: Sequence[Ids],
        n_best: int,
        with_alignment: bool,
        shortest: int,
        suppressed: Collection[str] = (),
    ) -> list[Any]:
        """CTranslate2's results. All have the same limit of the length, and those of short sources are cut afterwards.

        In a beam, the attention of the first word is only right if the sentence is the only one of its batch.
        """
        options = self.options
        is_alone = with_alignment and options.beam_size > 1
        tokens = self.model.src_vocabulary.tokens
        with computing(self.model, self.model.path):
            results: list[Any] = self.program.translate_batch(
                [[tokens[id_] for id_ in source] for source in sources],
                beam_size=options.beam_size,
                num_hypotheses=n_best,
                patience=PATIENCE,
                length_penalty=options.length_penalty,
                no_repeat_ngram_size=options.no_repeat_ngram_size or 0,
                min_decoding_length=shortest,
                max_decoding_length=self._lengths().longest,
                max_input_length=0,
                max_batch_size=1 if is_alone else 0,
                suppress_sequences=[[token] for token in sorted(suppressed)] or None,
                return_end_token=True,
                return_scores=True,
                return_attention=with_alignment,
            )
        return results

    def _hypotheses(self, result: Any, source: Ids) -> list[Hypothesis]:
        """The hypotheses of a result; none if their scores are not finite."""
        attention = result.attention or [None] * len(result.hypotheses)
        hypotheses = []
        for tokens, score, weights in zip(result.hypotheses, result.scores, attention, strict=True):
            if not math.isfinite(score):
                return []
            complete = tokens[-1:] == [END]
            ids = self.model.tgt_vocabulary.encode(tokens[: len(tokens) - complete])
            alignment = None if weights is None else _alignment(weights)
            attended = [len(source) + 1] * len(tokens)
            if alignment is not None:
                attended = alignment.squeeze(1).argmax(dim=1).tolist()
            log_prob = score * self._scoring().norm(float(max(1, len(tokens))))
            hypotheses.append(Hypothesis(ids, complete, log_prob, score, [], attended, alignment))
        return hypotheses

    def _within_limit(self, source: Ids, ranked: list[Hypothesis]) -> list[Hypothesis]:
        """Hypotheses of a source, those that are too long for it cut, and scored as what they are then."""
        limit = self.longest(source)
        long = [n for n, hypothesis in enumerate(ranked) if len(hypothesis.ids) + hypothesis.complete > limit]
        if not long:
            return ranked
        cut = [ranked[n].ids[:limit] for n in long]
        for n, (scored,) in zip(long, self.score([source] * len(long), cut), strict=True):
            log_probs = scored.token_log_probs[:limit]  # without EOS
            alignment = ranked[n].alignment
            ranked[n] = Hypothesis(
                scored.ids,
                False,
                sum(log_probs),
                sum(log_probs) / self._scoring().norm(float(limit)),
                log_probs,
                ranked[n].attended[:limit],
                None if alignment is None else alignment[:limit],
            )
        return sorted(ranked, key=_score_of, reverse=True)

    def score(
        self, sources: Sequence[Ids], targets: Sequence[Ids], *, with_alignment: bool = False
    ) -> list[list[Hypothesis]]:
        """See `Searcher.score`.

        Raises:
            ConfigError: A translation is too long.
        """
        if with_alignment:
            self._refuse("it shows no attention of given translations")
        self.model.check_positions(targets, self.max_target_length)
        results: list[list[Hypothesis]] = [[] for _ in sources]
        src_tokens = self.model.src_vocabulary.tokens
        tgt_tokens = self.model.tgt_vocabulary.tokens
        for batch in self._batches(sources):
            with computing(self.model, self.model.path):
                scored = self.program.score_batch(
                    [[src_tokens[id_] for id_ in sources[n]] for n in batch],
                    [[tgt_tokens[id_] for id_ in targets[n]] for n in batch],
                    max_input_length=0,
                )
            for n, result in zip(batch, scored, strict=True):
                log_probs = list(result.log_probs)
                log_prob = sum(log_probs)
                if math.isfinite(log_prob):
                    score = log_prob / self._scoring().norm(float(len(log_probs)))
                    attended = [len(sources[n]) + 1] * len(log_probs)
                    results[n] = [Hypothesis(list(targets[n]), True, log_prob, score, log_probs, attended)]
        return results

    def _refuse(self, feature: str) -> NoReturn:
        raise self.model.refuse(feature)


def open_searcher(model: ExportedModel, options: DecodeSection, device: torch.device) -> CTranslate2Searcher:
    """See `ExportedModel.open_searcher`; without CUDA in CTranslate2 the device is the CPU."""
    import ctranslate2

    if device.type != "cuda" or not ctranslate2.get_cuda_device_count():
        device = torch.device("cpu")
    return CTranslate2Searcher(model, options, device)


def _load(model: ExportedModel, device: torch.device) -> Any:
    import ctranslate2

    _check_vocabularies(model)
    with reading(model, model.path):
        return ctranslate2.Translator(
            str(model.path),
            device=device.type,
            device_index=device.index or 0,
            inter_threads=1,
            intra_threads=torch.get_num_threads(),
        )


def _check_vocabularies(model: ExportedModel) -> None:
    """Check that CTranslate2, which is given tokens, has the ids that they have here, and its settings."""
    vocabularies = {"source": model.src_vocabulary, "target": model.tgt_vocabulary}
    paths = {side: model.path / f"{side}_vocabulary.json" for side in vocabularies}
    shared = model.path / "shared_vocabulary.json"
    if shared.exists():
        paths = dict.fromkeys(vocabularies, shared)
    elif not any(path.exists() for path in paths.values()):
        separate = " and ".join(path.name for path in paths.values())
        raise CheckpointError(f"{model.path}: has neither {shared.name} nor {separate}; export the model again")
    settings = model.path / SETTINGS
    with reading(model, settings):
        read_object(settings)
    for side, vocabulary in vocabularies.items():
        with reading(model, paths[side]):
            tokens = read_json(paths[side], MAX_TEXT_FILE)
        check_tokens(paths[side], tokens, vocabulary)


def _positions(section: Any) -> int:
    """Tokens with EOS that one side of a model can have."""
    return getattr(section, "learned_positions", None) or POSITIONS


def _alignment(weights: Sequence[Sequence[float]]) -> Tensor:
    """Attention as in a hypothesis, [T, 1, S]: CTranslate2 leaves out the end of the source, which has the rest."""
    words = torch.tensor(weights)
    end = (1 - words.sum(dim=1, keepdim=True)).clamp(min=0)
    return torch.cat([words, end], dim=1).unsqueeze(1)


def _score_of(hypothesis: Hypothesis) -> float:
    return hypothesis.score
