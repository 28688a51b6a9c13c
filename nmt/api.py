"""The Python API: one function per command, which takes the command's arguments and returns its result.

Nothing is printed. Messages go to the loggers below `nmt`; progress bars are shown if their level is INFO or lower.
Messages of errors name arguments as the command line does: `--beam-size` is `beam_size`.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from nmt.system.errors import ConfigError, DataError, as_nmt_errors

if TYPE_CHECKING:
    from nmt.comparison.compare import ComparisonResult
    from nmt.config import Config, Overrides
    from nmt.evaluation.model_evaluation import ModelEvaluation
    from nmt.inspection.attention import AttentionReport
    from nmt.inspection.page import Page
    from nmt.models.runs import Run
    from nmt.models.storage import SavedModel
    from nmt.training.findings import Finding
    from nmt.translation.translator import Translator

AnyPath = str | PathLike[str]


@dataclass(frozen=True)
class PreparedData:
    """A data directory written by `preprocess`.

    Attributes:
        path: The folder.
        report: Content of `report.json`: pairs, overlap, vocabularies, what cleaning did.
    """

    path: Path
    report: Mapping[str, Any]


@as_nmt_errors()
def preprocess(
    config: str | Path | Config = "tatoeba",
    *,
    source: AnyPath | Sequence[AnyPath] = (),
    output: AnyPath | None = None,
    overrides: Overrides = (),
    overwrite: bool = False,
) -> PreparedData:
    """Clean, split, tokenise and encode a corpus.

    Args:
        config: Name of a shipped config, path of a YAML file, or a config.
        source: Files or URLs instead of the config's: one tab-separated file, 2, 4 or 6 parallel files, or the 3 files
            of a Tatoeba export.
        output: Data directory to write, completely or not at all; None is the config's.
        overrides: Values in place of the config's: `{"train.epochs": 3}` or `["train.epochs=3"]`.
        overwrite: Replace an earlier data directory.

    Raises:
        ConfigError: The config is wrong, or names no source.
        DataError: The corpus or the output folder cannot be used.
        OutOfMemory: Memory ran out.
    """
    from nmt.config import overridden
    from nmt.corpus.licence import with_sources
    from nmt.corpus.prepare import write_data
    from nmt.models.configs import load_config

    settings = load_config(config, overrides)
    sources = _as_list(source)
    if sources:
        stated = "data.licence" in overridden(overrides)
        settings = with_sources(settings, [str(each) for each in sources], keep_licence=stated)
    directory = settings.data_directory if output is None else Path(output)
    return PreparedData(directory, write_data(settings, directory, overwrite=overwrite).as_json())


@as_nmt_errors()
def train(
    config: str | Path | Config,
    *,
    data: AnyPath | None = None,
    output: AnyPath | None = None,
    overrides: Overrides = (),
    overwrite: bool = False,
    resume: bool = False,
) -> Run:
    """Train a model; the best one is stored in RUN/best.

    Seeds the random number generators of Python, numpy and torch. In the main thread, handles SIGINT, SIGTERM,
    SIGHUP and SIGUSR1 while training.

    Args:
        config: Name of a shipped config, path of a YAML file, or a config.
        data: Data directory; None is the one that `preprocess` writes for this config.
        output: Run directory to write; None is runs/NAME.
        overrides: Values in place of the config's: `{"train.epochs": 3}` or `["train.epochs=3"]`.
        overwrite: Replace an earlier run.
        resume: Continue the run in `output` as if it had never stopped; start one if there is none.

    Raises:
        RunInterrupted: The run was stopped by a signal and can be resumed.
        TrainingError: The run diverged, or learnt nothing.
        NmtError: The config, the data, the device or the output folder cannot be used.
    """
    settings, directory = _with_data(config, overrides, data)
    from nmt.training.run import train_run

    run = settings.run_directory if output is None else Path(output)
    return train_run(settings, directory, run, overwrite=overwrite, resume=resume)


def check(config: str | Path | Config, *, data: AnyPath | None = None, overrides: Overrides = ()) -> Iterator[Finding]:
    """Check data, model, memory and speed before a long run; nothing is written.

    Args:
        config: Name of a shipped config, path of a YAML file, or a config.
        data: Data directory; None is the one that `preprocess` writes for this config.
        overrides: Values in place of the config's.

    Yields:
        Findings, as soon as each is known.

    Raises:
        NmtError: The config, the data or the device cannot be used.
    """
    with as_nmt_errors():
        settings, directory = _with_data(config, overrides, data)
        from nmt.training.check import check

        yield from check(settings, directory)


@as_nmt_errors()
def load(
    model: AnyPath | Sequence[AnyPath] | None = None,
    *,
    device: str = "auto",
    beam_size: int | None = None,
    batch_size: int | None = None,
    length_penalty: float | None = None,
    max_length: int | None = None,
    replace_unknown: bool | None = None,
    precision: str | None = None,
    overrides: Overrides = (),
    split_sentences: bool = True,
    dictionary: AnyPath | None = None,
    allowed_classes: Collection[str] = (),
) -> Translator:
    """Load a model. Safe for untrusted models: no code of theirs is run.

    Args:
        model: Run or model directory; None is the newest finished run under `runs`. Several models with the same
            vocabularies translate together: the probability of a word is the mean of theirs.
        device: auto, cpu, cuda, cuda:N or mps.
        beam_size: Hypotheses kept at each step; 1 is greedy. None, here and below, is the value in the model's config.
        batch_size: Sentences translated at once.
        length_penalty: Alpha of Wu et al. (2016).
        max_length: Maximum length of a translation in tokens.
        replace_unknown: Whether to replace an unknown word by the source word attended most.
        precision: float32, or bfloat16, which is faster.
        overrides: Other search settings: `{"decode.sampling.temperature": 0.8}` or `["decode.min_length=3"]`.
        split_sentences: Translate the sentences of a text one by one, as the model was trained, and parts of sentences
            that are too long. `evaluate` never does, so that scores do not depend on it.
        dictionary: For models of words: a file with a source word, a tab and its translation on each line. An unknown
            word that attends to a source word becomes its translation, or the word itself if it has none.
        allowed_classes: Dotted paths of classes that the model's config may use; their code runs.

    Raises:
        CheckpointError: The model does not exist, is damaged, or uses a class that is not allowed.
        ConfigError: A search option is invalid, the device is not available, or the model cannot use a dictionary.
        DataError: The dictionary cannot be read.
    """
    from nmt.translation.translate import open_translator

    options = {
        "beam_size": beam_size,
        "batch_size": batch_size,
        "length_penalty": length_penalty,
        "max_length": max_length,
        "replace_unknown": replace_unknown,
        "precision": precision,
    }
    return open_translator(
        [Path(each) for each in _as_list(model)],
        device,
        options,
        allowed_classes,
        overrides=overrides,
        split_sentences=split_sentences,
        dictionary=_as_path(dictionary),
    )[1]


@as_nmt_errors()
def translate_file(
    translator: Translator,
    source: AnyPath,
    target: AnyPath,
    *,
    format: str | None = None,
    n_best: int = 1,
    with_attention: bool = False,
    resume: bool = False,
) -> None:
    """Translate a file line by line, in order and in little memory; the translation appears whole when it is done.

    Args:
        translator: What `load` returned.
        source: Lines of UTF-8.
        target: File to write.
        format: text, nbest, jsonl or pharaoh; None is text for one translation per line and nbest for several.
        n_best: Translations per line.
        with_attention: Write the attention weights too; only jsonl can.
        resume: Continue an unfinished translation, with the same result, or start one. What is finished is kept when
            this command fails, and after a kill whether this is set or not.

    Raises:
        ConfigError: The format cannot show what is asked for, or `n_best` is more than the beam size.
        DataError: A file cannot be used, or the unfinished translation was made from something else.
        OutOfMemory: Memory ran out.
    """
    from nmt.system.outputs import check_files
    from nmt.translation.bulk import translate_file
    from nmt.translation.formats import choose_format

    check_files({"target": Path(target)}, [Path(source)])
    shape = choose_format(format, translator.processor, n_best=n_best, with_attention=with_attention)
    translate_file(translator, Path(source), Path(target), shape, n_best=n_best, resume=resume)


@as_nmt_errors()
def average(
    models: AnyPath | Sequence[AnyPath],
    output: AnyPath,
    *,
    last: int | None = None,
    overwrite: bool = False,
    allowed_classes: Collection[str] = (),
) -> Path:
    """Write a model whose weights are the mean of those of others.

    Args:
        models: Run or model directories; with `last` one run.
        output: Model directory to write.
        last: Average so many of the latest models that the run has kept (`train.checkpoint.keep_best`).
        overwrite: Replace an earlier model.
        allowed_classes: Dotted paths of classes that the models' configs may use; their code runs.

    Returns:
        The model directory.

    Raises:
        NmtError: There are fewer than two models, one cannot be used, or they differ in more than their weights.
    """
    from nmt.training.average import average

    paths = [Path(each) for each in _as_list(models)]
    return average(paths, Path(output), last=last, overwrite=overwrite, allowed_classes=allowed_classes)


@as_nmt_errors()
def evaluate(
    model: AnyPath | Sequence[AnyPath] | None = None,
    *,
    split: str | None = None,
    data: AnyPath | None = None,
    src: AnyPath | None = None,
    ref: AnyPath | Sequence[AnyPath] = (),
    json_path: AnyPath | None = None,
    hypotheses_path: AnyPath | None = None,
    references_path: AnyPath | None = None,
    against: AnyPath | Sequence[AnyPath] = (),
    test: Literal["bootstrap", "randomization"] = "bootstrap",
    breakdown: bool = False,
    attention: bool = False,
    beam_size: int | None = None,
    batch_size: int | None = None,
    overrides: Overrides = (),
    device: str = "auto",
    short_inputs: bool = True,
    allowed_classes: Collection[str] = (),
) -> ModelEvaluation:
    """Score a model with sacreBLEU on detokenised text, count visible faults, and compare it with other systems.

    Args:
        model: Run or model directory; None is the newest finished run under `runs`.
        split: Split of the data directory, test or valid; None is test.
        data: Data directory; None is the one that the model was trained on.
        src: Source sentences, one per line, instead of a split.
        ref: References of `src`, one per line, in one file or several.
        json_path: Where to write the scores.
        hypotheses_path: Where to write the translations, one per line.
        references_path: Where to write the references, those of a sentence in a line with tabs between them.
        against: Other systems to compare with: run or model directories, or files with their translations.
        test: Paired significance test: bootstrap or randomization.
        breakdown: Also break scores down by frequency of words, length and sentence, and show where systems differ.
        attention: Also measure the attention of the translations: entropy, largest weight, coverage and so on.
        beam_size: Hypotheses kept at each step; None is the value in the model's config.
        batch_size: Sentences translated at once; None is the value in the model's config.
        overrides: Other search settings, as for `load`.
        device: auto, cpu, cuda, cuda:N or mps.
        short_inputs: Also translate 100 short inputs, made from the model's training data if that is there, and count
            the translations without a visible fault.
        allowed_classes: Dotted paths of classes that the model's config may use; their code runs.

    Raises:
        NmtError: The model, the test set or the device cannot be used, or arguments conflict.
        OutOfMemory: Memory ran out.
    """
    references = _as_list(ref)
    _check_test_set(split, data, src, references)
    from nmt.evaluation.evaluate import open_systems
    from nmt.evaluation.input_text import read_files, split_of
    from nmt.evaluation.metrics import PAIRED_TESTS
    from nmt.evaluation.model_evaluation import EvaluationFiles, evaluate_model
    from nmt.system.outputs import check_files
    from nmt.translation.translate import open_translator

    if test not in PAIRED_TESTS:
        raise ConfigError(f"--test {test}: must be {' or '.join(PAIRED_TESTS)}")
    others = [Path(each) for each in _as_list(against)]
    inputs = [*others, *([] if src is None else [Path(each) for each in (src, *references)])]
    outputs = {"--json": json_path, "--hypotheses": hypotheses_path, "--references": references_path}
    check_files({name: _as_path(path) for name, path in outputs.items()}, inputs)
    examples = None if src is None else read_files(Path(src), [Path(each) for each in references])
    options = {"beam_size": beam_size, "batch_size": batch_size}
    paths = [Path(each) for each in _as_list(model)]
    models, translator = open_translator(paths, device, options, allowed_classes, overrides=overrides)
    if examples is None:
        examples = split_of(models, _as_path(data), split or "test")
    return evaluate_model(
        models,
        translator,
        examples,
        what=split or "test" if src is None else str(src),
        files=EvaluationFiles(*map(_as_path, outputs.values())),
        against=open_systems(others, device, options, allowed_classes, len(examples), overrides),
        test=test,
        breakdown=breakdown,
        attention=attention,
        short_inputs=short_inputs,
        data=_as_path(data),
    )


@as_nmt_errors()
def measure_attention(
    sentence: str | None = None,
    *,
    model: AnyPath | None = None,
    target: str | None = None,
    split: str | None = None,
    data: AnyPath | None = None,
    src: AnyPath | None = None,
    ref: AnyPath | None = None,
    forced: bool = False,
    gold: AnyPath | None = None,
    links_of: Literal["words", "tokens"] = "words",
    sample: int | None = None,
    json_path: AnyPath | None = None,
    picture: AnyPath | None = None,
    device: str = "auto",
    allowed_classes: Collection[str] = (),
) -> AttentionReport:
    """Measure where a model looks, on a sentence or many: entropy, largest weight, coverage and so on, step by step.

    Args:
        sentence: One sentence; None is a file or a split.
        model: Run or model directory; None is the newest finished run under `runs`.
        target: What the model is made to say, for one sentence; None translates.
        split: Split of the data directory, test or valid; None is test.
        data: Data directory; None is the one that the model was trained on.
        src: Source sentences, one per line, instead of a split.
        ref: A reference of each line of `src`.
        forced: Whether the model reads the first references instead of its own words.
        gold: Word alignment of people in Pharaoh format, with `i?j` for links that are only possible, between each
            source and its first reference: measures the alignment error rate. It needs `forced`.
        links_of: What the numbers in `gold` count: words, separated by spaces, or tokens of the model.
        sample: Maximum number of sentences, evenly spaced; None is all.
        json_path: Where to write every step of every sentence.
        picture: Where to draw the heat map of one sentence, or the distribution of sharpness over many.
        device: auto, cpu, cuda, cuda:N or mps.
        allowed_classes: Dotted paths of classes that the model's config may use; their code runs.

    Raises:
        NmtError: The model, the text or the links cannot be used, or arguments conflict.
        OutOfMemory: Memory ran out.
    """
    _check_sample(sample)
    if target is not None and sentence is None:
        raise ConfigError("--target is for one sentence, given as the argument")
    if gold is not None and not forced:
        raise ConfigError("--gold aligns references: give a split, or --src with --ref, and --forced")
    if forced and (sentence is not None or (src is not None and ref is None)):
        raise ConfigError("--forced reads references: give a split, or --src with --ref; for a sentence --target")
    from nmt.drawing.picture import check_picture
    from nmt.evaluation.input_text import InputText
    from nmt.inspection.attention import draw_attention_statistics, measure_attention
    from nmt.system.files import write_json
    from nmt.translation.translate import open_translator

    _check_outputs({"--json": json_path, "--picture": picture}, (src, ref, gold))
    if picture is not None:
        check_picture(Path(picture))
    text = InputText.read(
        sentence,
        split,
        links_of,
        data=_as_path(data),
        src=_as_path(src),
        ref=_as_path(ref),
        gold=_as_path(gold),
        target=target,
    )
    models, translator = open_translator([Path(each) for each in _as_list(model)], device, {}, allowed_classes)
    examples, links = text.of(models, sample)
    name, known = str(models[0].path), forced or target is not None
    found = measure_attention(name, translator, examples, forced=known, gold=links, unit=links_of)
    if picture is not None:
        draw_attention_statistics(found, Path(picture))
    if json_path is not None:
        write_json(Path(json_path), found.as_json())
    return found


@as_nmt_errors()
def explore(
    sentence: str | None = None,
    *,
    model: AnyPath | None = None,
    against: AnyPath | Sequence[AnyPath] = (),
    split: str | None = None,
    data: AnyPath | None = None,
    src: AnyPath | None = None,
    ref: AnyPath | None = None,
    gold: AnyPath | None = None,
    links_of: Literal["words", "tokens"] = "words",
    sample: int | None = None,
    training: bool = False,
    output: AnyPath | None = None,
    title: str = "Attention",
    device: str = "auto",
    allowed_classes: Collection[str] = (),
) -> Page:
    """Make a page in which the attention of models can be explored: one HTML file, which loads nothing.

    In a notebook, the result is shown in a frame.

    Args:
        sentence: One sentence; None is a file or a split.
        model: Run or model directory; None is the newest finished run under `runs`.
        against: Further models on the same page.
        split: Split of the data directory, test or valid; None is test.
        data: Data directory; None is the one that the model was trained on.
        src: Source sentences, one per line, instead of a split.
        ref: A reference of each line of `src`.
        gold: Word alignment of people in Pharaoh format, with `i?j` for links that are only possible, between each
            source and its first reference.
        links_of: What the numbers in `gold` count: words, separated by spaces, or tokens of the model.
        sample: Maximum number of sentences, evenly spaced; None is 50.
        training: Show the sentences that the model's run has watched (`train.watch`), with a slider over validations;
            `gold` then has a line for each of them.
        output: File to write.
        title: Title of the page.
        device: auto, cpu, cuda, cuda:N or mps.
        allowed_classes: Dotted paths of classes that the models' configs may use; their code runs.

    Raises:
        NmtError: A model, the text or the links cannot be used, or arguments conflict.
        OutOfMemory: Memory ran out.
    """
    _check_page(output, (src, ref, gold))
    from nmt.evaluation.input_text import InputText
    from nmt.inspection.explore import explore, watched_examples

    _check_sample(sample)
    given = any(each is not None for each in (sentence, src, split, data, sample))
    if training and (given or against):
        raise ConfigError("--training shows the sentences that one run has watched: leave other text and models out")
    text = InputText.read(
        sentence, split, links_of, data=_as_path(data), src=_as_path(src), ref=_as_path(ref), gold=_as_path(gold)
    )
    opened = _open_all(model, against, device, allowed_classes)
    if training:
        text = replace(text, examples=watched_examples(opened[0][0]))
    examples, links = text.of([opened[0][0]], None if training else sample or 50)
    page = explore(opened, examples, title=title, emergence=training, gold=links, unit=links_of)
    if output is not None:
        page.write(Path(output))
    return page


@as_nmt_errors()
def explain(
    sentence: str,
    *,
    model: AnyPath | None = None,
    step: int = 1,
    target: str | None = None,
    device: str = "auto",
    allowed_classes: Collection[str] = (),
) -> str:
    """Explain one decoding step with its numbers: query, scores, weights, context, next words.

    Args:
        sentence: The source.
        model: Run or model directory; None is the newest finished run under `runs`.
        step: Which word of the translation, counted from 1; its end counts as one.
        target: What the model is made to say; None translates.
        device: auto, cpu, cuda, cuda:N or mps.
        allowed_classes: Dotted paths of classes that the model's config may use; their code runs.

    Returns:
        Lines of text.

    Raises:
        NmtError: The model cannot be used, the sentence has no words, or there is no such step.
    """
    from nmt.inspection.explain import explain
    from nmt.translation.translate import open_translator

    models, translator = open_translator([Path(each) for each in _as_list(model)], device, {}, allowed_classes)
    return explain(models[0], translator, sentence, step, target)


@as_nmt_errors()
def report(
    model: AnyPath | None = None,
    *,
    against: AnyPath | Sequence[AnyPath] = (),
    split: str | None = None,
    data: AnyPath | None = None,
    src: AnyPath | None = None,
    ref: AnyPath | Sequence[AnyPath] = (),
    output: AnyPath,
    title: str | None = None,
    device: str = "auto",
    allowed_classes: Collection[str] = (),
) -> Path:
    """Write a report on a model, or on how it differs from others: one HTML file without scripts, which loads nothing.

    It has scores with intervals, learning curves, breakdowns, the best, worst and most changed sentences, attention,
    configs and the data report.

    Args:
        model: Run or model directory; None is the newest finished run under `runs`.
        against: Models to compare it with.
        split: Split of the data directory, test or valid; None is test.
        data: Data directory; None is the one that the model was trained on.
        src: Source sentences, one per line, instead of a split.
        ref: References of `src`, one per line, in one file or several.
        output: File to write.
        title: Title; None is the name of the model.
        device: auto, cpu, cuda, cuda:N or mps.
        allowed_classes: Dotted paths of classes that the models' configs may use; their code runs.

    Raises:
        NmtError: A model or the test set cannot be used, or arguments conflict.
        OutOfMemory: Memory ran out.
    """
    from nmt.evaluation.input_text import read_files, split_of
    from nmt.evaluation.model_evaluation import MAX_TESTED
    from nmt.inspection.explore import name_of
    from nmt.inspection.report import make_report
    from nmt.system.files import write_text

    references = _as_list(ref)
    _check_test_set(split, data, src, references)
    _check_page(output, (src, *references))
    examples = None if src is None else read_files(Path(src), [Path(each) for each in references])
    opened = _open_all(model, against, device, allowed_classes)
    first = opened[0]
    if examples is None:
        examples = split_of([first[0]], _as_path(data), split or "test")
    if len(opened) > 1 and len(examples) > MAX_TESTED:
        raise DataError(f"--against: the test set has {len(examples):,} sentences; compare on at most {MAX_TESTED:,}")
    what = split or "test" if src is None else str(src)
    heading = title or f"Report on {name_of(first[0].path)}"
    write_text(Path(output), make_report(opened, examples, what=what, title=heading, data=_as_path(data)))
    return Path(output)


def _check_test_set(
    split: str | None, data: AnyPath | None, src: AnyPath | None, references: Sequence[AnyPath]
) -> None:
    """Check that one test set is given.

    Raises:
        ConfigError: Arguments conflict.
    """
    if (src is not None) != bool(references):
        raise ConfigError("--src and --ref belong together: give both or neither")
    if src is not None and (split or data):
        raise ConfigError("give --src and --ref, or --split and --data, not both")
    if split not in (None, "test", "valid"):
        raise ConfigError(f"--split {split}: must be test or valid")


def _open_all(
    model: AnyPath | None, against: AnyPath | Sequence[AnyPath], device: str, allowed_classes: Collection[str]
) -> list[tuple[SavedModel, Translator]]:
    """Open a model, and those beside it.

    Raises:
        ConfigError: They translate between other languages.
    """
    from nmt.translation.translate import open_translator

    opened = []
    for path in [model, *_as_list(against)]:
        (saved,), translator = open_translator([] if path is None else [Path(path)], device, {}, allowed_classes)
        opened.append((saved, translator))
    wanted = opened[0][0].config.data.languages
    for saved, _ in opened:
        if saved.config.data.languages != wanted:
            found, first = "-".join(saved.config.data.languages), "-".join(wanted)
            raise ConfigError(f"--against {saved.path}: translates {found}, not {first}")
    return opened


def _check_sample(sample: int | None) -> None:
    if sample is not None and sample < 1:
        raise ConfigError(f"--sample {sample}: must be at least 1")


def _check_outputs(outputs: Mapping[str, AnyPath | None], inputs: Sequence[AnyPath | None]) -> None:
    from nmt.system.outputs import check_files

    check_files(
        {name: _as_path(path) for name, path in outputs.items()}, [Path(each) for each in inputs if each is not None]
    )


def _check_page(output: AnyPath | None, inputs: Sequence[AnyPath | None]) -> None:
    """Check the file that a page is written to: devices and pipes are allowed."""
    path = _as_path(output)
    if path is not None and path.suffix.lower() not in (".html", ".htm") and (path.is_file() or not path.exists()):
        raise DataError(f"--output {path}: a page is HTML; give a name that ends in .html")
    _check_outputs({"--output": output}, inputs)


@as_nmt_errors()
def compare(
    comparison: AnyPath | None = None,
    *,
    config: AnyPath | Sequence[AnyPath] = (),
    variants: Mapping[str, Overrides] | None = None,
    vary: Mapping[str, Sequence[Any]] | Sequence[str] = (),
    overrides: Overrides = (),
    seeds: Sequence[int] = (),
    budget_minutes: float | None = None,
    source: AnyPath | Sequence[AnyPath] = (),
    data: AnyPath | None = None,
    split: str = "test",
    jobs: int | None = None,
    launcher: str | None = None,
    output: AnyPath | None = None,
) -> ComparisonResult:
    """Train several configs and compare scores, significance, time, memory and attention.

    Each training and its evaluation, a cell, is a process of its own. What is finished in `output` is not repeated, and
    what was interrupted goes on.

    Args:
        comparison: Comparison file, or the name of a shipped one; the other arguments replace its values.
        config: Names of shipped configs or paths of YAML files to compare.
        variants: By name, values in place of the config's: `{"Luong": {"model.decoder.order": "luong"}}`.
        vary: Values to compare, in all combinations: `{"model.attention.score": ["dot", "general"]}`, or
            `["model.attention.score=dot,general"]`.
        overrides: Values in place of those of all configs.
        seeds: Seeds to train each config with.
        budget_minutes: Minutes of training, without validation, for each cell; how many updates they allow is measured
            before it. None is what the config says.
        source: Corpus instead of the configs' own, as for `preprocess`.
        data: Data directory for all; None preprocesses into `output`, once.
        split: Split to evaluate on: test or valid.
        jobs: Cells that run at once, with the processor's cores divided among them; None is 1, with a launcher all.
        launcher: Command of a shell that runs `{command}`, the command of a cell, or hands it to a cluster that shares
            the folder: `sbatch --wrap "{command}"`. `{name}` is the name of the cell's folder.
        output: Folder for everything; None is runs/comparisons and the name of the file, or of the config and what
            varies.

    Raises:
        RunInterrupted: A signal asked for the end; the same call continues.
        NmtError: A config, the data or the folder cannot be used. If a cell fails, the others go on.
    """
    from nmt.config import parse_varied, read_comparison

    if split not in ("test", "valid"):
        raise ConfigError(f"--split {split}: must be test or valid")
    if jobs is not None and jobs < 1:
        raise ConfigError(f"--jobs {jobs}: must be at least 1")
    given = {
        "config": [str(each) for each in _as_list(config)],
        "settings": _as_mapping(overrides),
        "variants": [{"name": name, "settings": _as_mapping(each)} for name, each in (variants or {}).items()],
        "vary": vary if isinstance(vary, Mapping) else parse_varied(vary),
        "seeds": list(seeds),
        "budget_minutes": budget_minutes,
        "source": [str(each) for each in _as_list(source)],
    }
    wanted = read_comparison(None if comparison is None else str(comparison), given)
    from nmt.comparison.compare import compare

    name = Path(wanted.config[0] if comparison is None else comparison).stem
    if comparison is None and wanted.vary:
        name = "-".join([name, *wanted.vary])
    directory = Path("runs", "comparisons", name) if output is None else Path(output)
    return compare(
        wanted,
        directory,
        data=_as_path(data),
        split=split,
        jobs=jobs or (1 if launcher is None else sys.maxsize),
        launcher=launcher,
    )


@as_nmt_errors()
def serve(
    model: AnyPath | Sequence[AnyPath] = (),
    *,
    host: str = "127.0.0.1",
    port: int = 5000,
    device: str = "auto",
    beam_size: int | None = None,
    batch_size: int | None = None,
    api_keys: Collection[str] = (),
    allowed_hosts: Collection[str] = (),
    allowed_origins: Collection[str] = (),
    trusted_proxies: Collection[str] = (),
    limits: Mapping[str, Any] | None = None,
    log_format: Literal["json", "text", "none"] = "json",
    allowed_classes: Collection[str] = (),
) -> None:
    """Serve models over HTTP, as LibreTranslate does, until a signal to end: SIGINT, SIGTERM or SIGHUP.

    Only a main thread handles signals.

    Args:
        model: Run or model directories, one for each direction; none is the newest finished run under `runs`.
        host: Address to listen on; 0.0.0.0 is all addresses of this machine.
        port: Port; 0 takes any that is free, which a message names.
        device: auto, cpu, cuda, cuda:N or mps.
        beam_size: Hypotheses kept at each step. None, here and below, is what each model's config says.
        batch_size: Sentences translated at once.
        api_keys: Keys, one of which clients must send; none allows all clients.
        allowed_hosts: Names, besides `host`, that the server is reached by.
        allowed_origins: Origins of web pages that may use it; `*` is all.
        trusted_proxies: Addresses of reverse proxies whose `X-Forwarded-For` is trusted.
        limits: Values of `nmt.serving.limits.Limits` that are not the default ones.
        log_format: Format of requests on the logger `nmt.serving.requests`.
        allowed_classes: Dotted paths of classes that the models' configs may name; their code runs.

    Raises:
        NmtError: A model, the device, the port or a limit cannot be used, or what a server needs is not installed.
    """
    from nmt.serving.serve import open_directions, require_libraries

    require_libraries()
    from nmt.serving.limits import Limits
    from nmt.serving.server import Server, bind

    bounds = Limits(**(limits or {}))
    models: list[Path | None] = [Path(each) for each in _as_list(model)] or [None]
    with bind(host, port) as listener:
        options = {"beam_size": beam_size, "batch_size": batch_size}
        Server(
            listener,
            host,
            open_directions(models, device, options, allowed_classes),
            api_keys=api_keys,
            allowed_hosts=allowed_hosts,
            allowed_origins=allowed_origins,
            trusted_proxies=trusted_proxies,
            limits=bounds,
            log_format=log_format,
        ).run()


def _with_data(config: str | Path | Config, overrides: Overrides, data: AnyPath | None) -> tuple[Config, Path]:
    """The config, and the data directory to use.

    Raises:
        ConfigError: The config is wrong, or overrides do not match the data.
        DataError: The data does not exist.
    """
    from nmt.config import overridden, read_config
    from nmt.corpus.dataset import CONFIG, MARKER
    from nmt.models.configs import load_config

    settings = load_config(config, overrides)
    directory = settings.data_directory if data is None else Path(data)
    if not (directory / MARKER).is_file():
        what = "is not a data directory" if directory.exists() else "does not exist"
        output = None if directory == settings.data_directory else directory
        command = _command_to_prepare(config, overrides, settings, output)
        raise DataError(f"{directory}: {what} (no {MARKER}); create it with: {command}")
    asked = [key for key in overridden(overrides) if key.startswith(("data.", "text.")) and key != "data.directory"]
    made = read_config(directory / CONFIG) if asked else settings
    values = {key: [reduce(getattr, key.split("."), each) for each in (made, settings)] for key in asked}
    other = [f"{key} ({there!r} there, {here!r} here)" for key, (there, here) in values.items() if there != here]
    if other:
        command = _command_to_prepare(config, overrides, settings, Path("DIR"))
        raise ConfigError(
            f"{directory}: was preprocessed with other settings: {', '.join(other)}; "
            f"preprocess again with: {command}, and use --data DIR"
        )
    return settings, directory


def _command_to_prepare(
    config: str | Path | Config, overrides: Overrides, settings: Config, output: Path | None
) -> str:
    """The command that creates the data of a config."""
    from nmt.config import as_settings

    if not isinstance(config, str | Path):
        return "nmt.preprocess, with the same config"
    words = ["nmt", "preprocess", "--config", str(config)]
    for setting in as_settings(overrides):
        if re.match(r"\s*(name|data|text)\b", setting):
            words += ["--set", setting]
    if not settings.data.source:
        words += ["--source", "FILE"]
    return shlex.join([*words, *(["--output", str(output)] if output else [])])


def _as_mapping(overrides: Overrides) -> dict[str, Any]:
    """Overrides as values by section.key."""
    from nmt.config import as_values

    return as_values(overrides)


def _as_path(path: AnyPath | None) -> Path | None:
    return None if path is None else Path(path)


def _as_list(paths: AnyPath | Sequence[AnyPath] | None) -> list[AnyPath]:
    if paths is None:
        return []
    return [paths] if isinstance(paths, str | PathLike) else list(paths)
