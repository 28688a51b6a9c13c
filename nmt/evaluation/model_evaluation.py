"""A model evaluated: its translations of a test set, their scores, and further measures."""

import contextlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nmt.corpus.dataset import encode_examples
from nmt.corpus.example import Example
from nmt.evaluation.attention_statistics import HeadStatistics, LengthAttention, attention_by_length, summarize
from nmt.evaluation.breakdown import Breakdown, bin_by_length, break_down
from nmt.evaluation.diagnostics import Diagnosis, diagnose, find_faults
from nmt.evaluation.input_text import EvaluationSet
from nmt.evaluation.loss import LossMeasures, measure_loss, own_words
from nmt.evaluation.metrics import (
    METRICS,
    RESAMPLES,
    SIGNIFICANT,
    Comparison,
    CorpusScore,
    PairedTestName,
    ScoringRules,
    compare_systems,
    describe_test,
    name_direction,
    reference_streams,
    score_corpus,
)
from nmt.evaluation.short_inputs import ShortInput, ShortInputResult, find_short_inputs, judge_short_inputs
from nmt.evaluation.training_text import (
    TrainingOverlap,
    compare_with_training,
    count_training_words,
    find_training_data,
)
from nmt.models.lookup import describe_stop
from nmt.models.storage import ModelFolder
from nmt.system.errors import ConfigError, DataError
from nmt.system.files import as_json_text, naming, open_text
from nmt.system.messages import Message, Parameter
from nmt.system.tables import Table
from nmt.text.direction import Direction
from nmt.translation.loading import make_splitter
from nmt.translation.stream import translate_texts, within_memory
from nmt.translation.translator import Translator

log = logging.getLogger(__name__)

MAX_TESTED = 10_000
"""Sentences of the largest test set with confidence intervals, for which sacreBLEU needs about 1 GB."""
LOSS_BATCH = 64
"""Maximum number of pairs whose loss is measured at once."""


@dataclass(frozen=True)
class Measures:
    """The measures beside the scores.

    Attributes:
        breakdown: True if the scores are broken down.
        attention: True if the attention of the translations is measured.
        short_inputs: True if the translations of short inputs are judged, where there are some for the languages.
        test: How the significance of differences between systems is tested.
    """

    breakdown: bool = False
    attention: bool = False
    short_inputs: bool = False
    test: PairedTestName = "bootstrap"


@dataclass(frozen=True)
class ModelEvaluation:
    """Translations and scores of a test set.

    Attributes:
        hypotheses: One translation per source, in order.
        model: The model directory, the first of several.
        other_models: Directories of models that translated together with it.
        what: Name of the test set.
        sentences: Number of sources.
        references: Number of references.
        beam_size: Hypotheses kept at each step.
        length_penalty: Exponent of the length normalisation of the search.
        seen: How much of the test set the model has seen in training.
        others_seen: The same of the models that it was compared with, by name.
        scores: `bleu`, `chrf`, `chrf++` and `ter`, each with its signature.
        diagnosis: Visible faults of the translations.
        warnings: Faults that make the scores meaningless.
        teacher_forced: How well the model predicts each word of the references from those before it; None for several
            models, an export, or if a reference is longer than the model can read.
        free_running: How well it predicts them from its own words instead; None likewise.
        comparisons: For each metric, this model and the systems that it was compared with.
        attention: Statistics of the attention of the translations, one for each head; empty unless requested.
        attention_by_length: Statistics of the attention by source length; empty unless requested.
        breakdown: Where it is good and bad; None if that was not asked for.
        short_inputs: Verdicts on the translations of short inputs; None if they were left out.
    """

    hypotheses: list[str]
    model: Path
    other_models: list[Path]
    what: str
    sentences: int
    references: int
    beam_size: int
    length_penalty: float
    seen: TrainingOverlap
    others_seen: dict[str, TrainingOverlap]
    scores: dict[str, CorpusScore]
    diagnosis: Diagnosis
    warnings: list[str]
    teacher_forced: LossMeasures | None
    free_running: LossMeasures | None
    comparisons: dict[str, list[Comparison]]
    attention: list[HeadStatistics]
    attention_by_length: list[LengthAttention]
    breakdown: Breakdown | None
    short_inputs: ShortInputResult | None

    def __repr__(self) -> str:
        return f"<ModelEvaluation of {self.name} on {self.what}: {self.scores['bleu']}, {self.scores['chrf']}>"

    @property
    def name(self) -> str:
        """The model directories."""
        return ", ".join(map(str, [self.model, *self.other_models]))

    @property
    def bleu(self) -> float:
        """BLEU, from 0 to 100."""
        return self.scores["bleu"].value

    @property
    def chrf(self) -> float:
        """chrF, from 0 to 100."""
        return self.scores["chrf"].value

    @property
    def comparison_table(self) -> Table:
        """Each system's scores with 95% intervals, and p of its difference from the model."""
        header = ["system"]
        rows = [[comparison.name] for comparison in next(iter(self.comparisons.values()), [])]
        caption = "significance of differences"
        for key, compared in self.comparisons.items():
            caption = f"significance of differences: p by {describe_test(compared[0].signature)}"
            header += [self.scores[key].name, "p"]
            for row, comparison in zip(rows, compared, strict=True):
                row.append(f"{comparison.score:.2f} ± {comparison.confidence:.2f}")
                if comparison.p_value is None:  # the model itself
                    row.append("")
                elif comparison.p_value < SIGNIFICANT:
                    direction = name_direction(comparison.score - compared[0].score, key)
                    row.append(f"{comparison.p_value:.4f}, {direction}")
                else:
                    row.append(f"{comparison.p_value:.4f}")
        return Table(header, rows, "l" + "r" * (len(header) - 1), caption, whole="words")

    def as_json(self) -> dict[str, Any]:
        """As plain values, without the translations."""
        seen = {"sources": self.seen.sentences, "of": self.seen.examples, "marked": self.seen.marked}
        plain = {
            "model": str(self.model),
            "other_models": list(map(str, self.other_models)),
            "short_inputs": None if self.short_inputs is None else self.short_inputs.as_json(),
        }
        left_out = ["hypotheses", "others_seen"]
        if not self.other_models:
            left_out.append("other_models")
        values: dict[str, Any] = {}
        for key, value in asdict(self).items():
            if key == "seen":
                values["in_training"] = seen
            elif key not in left_out:
                values[key] = plain.get(key, value)
        return values


def evaluate_model(
    models: Sequence[ModelFolder],
    translator: Translator,
    text: EvaluationSet,
    measures: Measures,
    *,
    name: str = "",
    files: Mapping[str, Path | None] = {},
    against: Mapping[str, tuple[Sequence[ModelFolder], Translator] | list[str]] = {},
) -> ModelEvaluation:
    """Translate and score, with a progress bar, and write the results to files.

    The files are opened first, so that errors show before the work.

    Args:
        models: The model, or several that translate together.
        translator: Their translator.
        text: The test set.
        measures: The measures beside the scores.
        name: Name of the model in comparisons; its directory if empty.
        files: Files to write: `json` is everything but the translations, `hypotheses` has a translation in a line, and
            `references` those of a sentence in a line, with tabs between them; where a sentence has fewer than another
            one, its first is repeated. All are stored or none, even if the disk is full.
        against: Other systems by name to compare with: models and their translator, or translations of the sources.

    Raises:
        ConfigError: The model is compared with itself.
    """
    (saved, *others) = models
    processor = translator.processor
    examples = text.examples
    name = name or ", ".join(str(model.path) for model in models)
    if name in against:
        against_itself = Parameter("against", name)
        raise ConfigError("{system}: is the model that is evaluated; give another system", system=against_itself)
    inputs = find_short_inputs(Direction.of(saved.config.data)) if measures.short_inputs else []
    rules = ScoringRules.for_config(saved.config, repaired=text.repaired)
    sources = [example.src for example in examples]
    with contextlib.ExitStack() as stack:
        opened = {kind: (path, stack.enter_context(open_text(path))) for kind, path in files.items() if path}
        seen = compare_with_training(models, processor.normalizer, examples)
        translations = translate_texts(
            translator, sources, f"translating {text.name}", with_alignment=measures.attention
        )
        hypotheses = [translation.text for translation in translations]
        alignments = [translation.alignment for translation in translations]
        tokens = sum(len(translation.tokens) for translation in translations)
        unknown_tokens = sum(translation.unknown for translation in translations) / max(1, tokens)
        resamples = RESAMPLES if len(examples) <= MAX_TESTED else 1

        # The model and its rivals by name, with their translations.
        systems: list[tuple[str, Sequence[str]]] = [(name, hypotheses)]
        others_seen: dict[str, TrainingOverlap] = {}
        for rival, system in against.items():
            if isinstance(system, list):
                systems.append((rival, system))
                continue
            rival_models, rival_translator = system
            overlap = compare_with_training(rival_models, rival_translator.processor.normalizer, examples)
            log.info(f"{rival}: {overlap}")
            others_seen[rival] = overlap
            translated = translate_texts(rival_translator, sources, f"translating with {rival}")
            systems.append((rival, [translation.text for translation in translated]))
        frequency = None
        if measures.breakdown:
            try:
                frequency = count_training_words(find_training_data(saved, text.data), processor, rules)
            except DataError as error:
                log.info("%s", Message("words by frequency: left out ({error})", error=error))
        comparisons: dict[str, list[Comparison]] = {}
        if against:
            comparisons = compare_systems(systems, examples, rules, metrics=list(METRICS), test=measures.test)
        teacher_forced, free_running = _measure_loss(translator, examples)
        evaluation = ModelEvaluation(
            hypotheses=hypotheses,
            model=saved.path,
            other_models=[saved.path for saved in others],
            what=text.name,
            sentences=len(examples),
            references=sum(len(example.references) for example in examples),
            beam_size=translator.options.beam_size,
            length_penalty=translator.options.length_penalty,
            seen=seen,
            others_seen=others_seen,
            scores=score_corpus(examples, hypotheses, rules, list(METRICS), resamples),
            diagnosis=diagnose(examples, hypotheses, unknown_tokens, rules),
            warnings=list(find_faults(examples, hypotheses, rules, processor.normalizer)),
            teacher_forced=teacher_forced,
            free_running=free_running,
            comparisons=comparisons,
            attention=summarize(alignments),
            attention_by_length=attention_by_length(bin_by_length(examples), alignments) if measures.attention else [],
            breakdown=break_down(examples, systems, rules, frequency) if measures.breakdown else None,
            short_inputs=_judge_short_inputs(saved, translator, inputs) if inputs else None,
        )
        rows = zip(*reference_streams(examples), strict=True)
        contents: dict[str, Iterable[str]] = {
            "json": [as_json_text(evaluation.as_json())],
            "hypotheses": (f"{line}\n" for line in hypotheses),
            "references": ("\t".join(" ".join(text.split()) for text in row) + "\n" for row in rows),
        }
        for kind, (path, file) in opened.items():
            with naming(path):
                file.writelines(contents[kind])
                file.flush()
    log.info(f"{evaluation.name} on {text.name}: {len(examples):,} sentences, beam {evaluation.beam_size}")
    log.info(str(seen))
    for warning in evaluation.warnings:
        log.warning(warning)
    for model in models:
        stop = describe_stop(model.path)
        if stop:
            log.warning(f"{model.path}: {stop}")
    return evaluation


def check_comparable(examples: Sequence[Example]) -> None:
    """Refuse a test set that is too large for tests of significance.

    Raises:
        DataError: It is.
    """
    if len(examples) > MAX_TESTED:
        raise DataError(
            "{against}: the test set has {sentences} sentences; compare systems on at most {most} of them",
            against=Parameter("against"),
            sentences=f"{len(examples):,}",
            most=f"{MAX_TESTED:,}",
        )


def _judge_short_inputs(saved: ModelFolder, translator: Translator, inputs: Sequence[ShortInput]) -> ShortInputResult:
    """Short inputs are read as people send them, unlike the sentences that are scored."""
    splitter = make_splitter(translator.processor, Direction.of(saved.config.data))
    translator = translator.reading_documents(splitter)

    def translate(texts: list[str]) -> list[str]:
        return [translation.text for translation in translate_texts(translator, texts, "translating short inputs")]

    return judge_short_inputs(inputs, translate, lowercase=translator.processor.tgt_tokenizer.lowercase)


def _measure_loss(
    translator: Translator, examples: Sequence[Example]
) -> tuple[LossMeasures, LossMeasures] | tuple[None, None]:
    """Teacher-forced and free-running; see `ModelEvaluation`."""
    if len(translator.searcher.models) != 1:
        return None, None
    pairs = encode_examples(translator.processor, examples, longest_source=translator.reader.max_length)
    size = min(LOSS_BATCH, translator.options.batch_size)
    try:
        with within_memory(translator.options, len(pairs)):
            return measure_loss(translator.model, pairs, size), measure_loss(translator.model, pairs, size, own_words)
    except ConfigError as error:  # a reference is longer than the model can read
        log.info("%s", Message("reading the references: left out ({error})", error=error))
        return None, None
