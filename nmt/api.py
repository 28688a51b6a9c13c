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
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from nmt.system import options
from nmt.system.errors import ConfigError, DataError, as_nmt_errors
from nmt.system.files import AnyPath, AnyPaths, as_names, as_path, as_paths
from nmt.system.options import Argument, Option

if TYPE_CHECKING:
    from nmt.comparison.compare import ComparisonResult
    from nmt.config import Config, Overrides
    from nmt.evaluation.model_evaluation import ModelEvaluation
    from nmt.inspection.attention_report import AttentionReport
    from nmt.inspection.explorer import Page
    from nmt.models.runs import Run
    from nmt.models.storage import SavedModel
    from nmt.training.findings import Finding
    from nmt.translation.translator import Translator


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
    config: Annotated[str | Path | Config, options.CONFIG] = "tatoeba",
    *,
    source: options.Sources = (),
    output: options.OutputFolder = None,
    drop_overlap: options.Flag = False,
    overrides: Annotated[Overrides, options.SETTINGS] = (),
    overwrite: options.Overwrite = False,
) -> PreparedData:
    """Clean, split, tokenise and encode a corpus.

    Without arguments, English-German Tatoeba is downloaded into data/raw.

    Example: nmt preprocess --config tatoeba_small --source deu-eng.zip

    Args:
        config: Name of a shipped config, path of a YAML file, or a config.
        source: Corpus to use instead of the config's: one tab-separated file (.txt, .zip, .gz, .xz, .bz2) or URL.
            Repeat it for 2, 4 or 6 parallel files (source and target of train, valid, test), or for the 3 files of a
            Tatoeba export (source sentences, target sentences, links).
        output: Data directory to write; None is data/prepared/NAME.
        drop_overlap: With ready-made splits, drop training pairs that overlap valid or test.
        overrides: Values in place of the config's: `{"train.epochs": 3}` or `["train.epochs=3"]`.
        overwrite: Replace an earlier data directory.

    Raises:
        ConfigError: The config is wrong, or names no source.
        DataError: The corpus or the output folder cannot be used.
        OutOfMemory: Memory ran out.
    """
    from nmt.config import as_settings, overridden
    from nmt.corpus.licence import with_sources
    from nmt.corpus.prepare import write_data
    from nmt.models.configs import load_config

    settings = load_config(config, [*as_settings(overrides), *(["data.drop_overlap=true"] if drop_overlap else [])])
    sources = as_names(source)
    if sources:
        stated = "data.licence" in overridden(overrides)
        settings = with_sources(settings, sources, keep_licence=stated)
    directory = settings.data_directory if output is None else Path(output)
    return PreparedData(directory, write_data(settings, directory, overwrite=overwrite).as_json())


@as_nmt_errors()
def train(
    config: Annotated[str | Path | Config, options.CONFIG],
    *,
    data: options.DataFolder = None,
    output: options.OutputFolder = None,
    overrides: Annotated[Overrides, options.SETTINGS] = (),
    overwrite: options.Overwrite = False,
    resume: options.Flag = False,
) -> Run:
    """Train a model; the best one is stored in RUN/best.

    Ctrl-C, SIGTERM and a closed terminal stop it after a checkpoint, with exit code 75; --resume continues from there.
    SIGUSR1 writes a checkpoint. For several processes: torchrun --nproc-per-node N -m nmt train ...

    Example: nmt train --config tatoeba_small --set model.attention.score=additive --output runs/additive

    Args:
        config: Name of a shipped config, path of a YAML file, or a config.
        data: Data directory; None is the one nmt preprocess writes for this config.
        output: Run directory to write; None is runs/NAME.
        overrides: Values in place of the config's: `{"train.epochs": 3}` or `["train.epochs=3"]`.
        overwrite: Replace an earlier run.
        resume: Continue the run in `output` as if it had never stopped; start one if there is none.

    Raises:
        RunInterrupted: The run was stopped by a signal and can be resumed.
        TrainingError: The run diverged, or learnt nothing.
        NmtError: The config, the data, the device or the output folder cannot be used.

    Note:
        Seeds the random number generators of Python, numpy and torch. Signals are handled in the main thread, while
        training.
    """
    settings, directory = _with_data(config, overrides, data)
    from nmt.training.run import train_run

    run = settings.run_directory if output is None else Path(output)
    return train_run(settings, directory, run, overwrite=overwrite, resume=resume)


def check(
    config: Annotated[str | Path | Config, options.CONFIG],
    *,
    data: options.DataFolder = None,
    overrides: Annotated[Overrides, options.SETTINGS] = (),
) -> Iterator[Finding]:
    """Check data, model, memory and speed before a long run; nothing is written.

    Args:
        config: Name of a shipped config, path of a YAML file, or a config.
        data: Data directory; None is the one nmt preprocess writes for this config.
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
def average(
    models: Annotated[AnyPaths, Argument(metavar="MODEL...")],
    output: Annotated[AnyPath, Option("-o", "DIR")],
    *,
    last: Annotated[int | None, Option(minimum=2)] = None,
    overwrite: options.Overwrite = False,
    allowed_classes: options.AllowedClasses = (),
) -> Path:
    """Average the weights of models of one kind, such as the last ones of a run.

    Example: nmt average runs/tatoeba --last 5 --output runs/tatoeba-average

    Args:
        models: Run or model directories.
        output: Model directory to write.
        last: Average so many of the latest models that one run has kept in RUN/models.
        overwrite: Replace an earlier model.
        allowed_classes: Dotted paths of classes that the models' configs may use; their code runs.

    Returns:
        The model directory.

    Raises:
        NmtError: There are fewer than two models, one cannot be used, or they differ in more than their weights.
    """
    from nmt.training.average import average

    paths = as_paths(models)
    return average(paths, Path(output), last=last, overwrite=overwrite, allowed_classes=allowed_classes)


@as_nmt_errors()
def evaluate(
    model: options.Models = None,
    *,
    split: options.Split | None = None,
    data: options.ModelData = None,
    src: options.File | None = None,
    ref: options.Files = (),
    json_path: Annotated[AnyPath | None, Option("--json", "FILE")] = None,
    hypotheses_path: Annotated[AnyPath | None, Option("--hypotheses", "FILE")] = None,
    references_path: Annotated[AnyPath | None, Option("--references", "FILE")] = None,
    against: Annotated[AnyPaths, Option(metavar="DIR|FILE")] = (),
    test: Annotated[Literal["bootstrap", "randomization"], Option()] = "bootstrap",
    breakdown: options.Flag = False,
    attention: options.Flag = False,
    beam_size: options.BeamSize = None,
    batch_size: options.BatchSize = None,
    overrides: Annotated[Overrides, options.SEARCH_SETTINGS] = (),
    device: options.Device = "auto",
    short_inputs: options.Flag = True,
    allowed_classes: options.AllowedClasses = (),
) -> ModelEvaluation:
    """Score a model with sacreBLEU's BLEU, chrF, chrF++ and TER on detokenised text.

    Example: nmt evaluate --split test --json scores.json

    Args:
        model: Run or model directory; None is the newest finished run under `runs`.
        split: Split to score: test or valid; None is test.
        data: Data directory; None is the one that the model was trained on.
        src: Source sentences to score instead of a split, one per line.
        ref: References for `src`, one per line.
        json_path: Also write the scores to this file.
        hypotheses_path: Write the translations to this file.
        references_path: Write the references to this file, with tabs between those of a line.
        against: Compare with this run, model, or file of translations.
        test: Paired significance test for `against`: bootstrap or randomization.
        breakdown: Also break scores down by word frequency, length and sentence.
        attention: Also measure how sharp attention is, and what it covers.
        beam_size: Hypotheses kept at each step; None is the value in the model's config.
        batch_size: Sentences translated at once; None is the value in the model's config.
        overrides: Other search settings, as for `load`.
        device: auto, cpu, cuda, cuda:N or mps.
        short_inputs: Also judge the translations of 100 short inputs made from training text.
        allowed_classes: Dotted paths of classes that the model's config may use; their code runs.

    Raises:
        NmtError: The model, the test set or the device cannot be used, or arguments conflict.
        OutOfMemory: Memory ran out.
    """
    references = as_paths(ref)
    _check_test_set(split, data, src, references)
    from nmt.evaluation.evaluate import open_systems
    from nmt.evaluation.input_text import read_files, split_of
    from nmt.evaluation.metrics import PAIRED_TESTS
    from nmt.evaluation.model_evaluation import EvaluationFiles, evaluate_model
    from nmt.system.outputs import check_files
    from nmt.translation.loading import open_translator

    if test not in PAIRED_TESTS:
        raise ConfigError(f"--test {test}: must be {' or '.join(PAIRED_TESTS)}")
    others = as_paths(against)
    inputs = [*others, *([] if src is None else [Path(each) for each in (src, *references)])]
    outputs = {"--json": json_path, "--hypotheses": hypotheses_path, "--references": references_path}
    check_files({name: as_path(path) for name, path in outputs.items()}, inputs)
    examples = None if src is None else read_files(Path(src), [Path(each) for each in references])
    options = {"beam_size": beam_size, "batch_size": batch_size}
    paths = as_paths(model)
    models, translator = open_translator(paths, device, options, allowed_classes, overrides=overrides)
    if examples is None:
        examples = split_of(models, as_path(data), split or "test")
    return evaluate_model(
        models,
        translator,
        examples,
        what=split or "test" if src is None else str(src),
        files=EvaluationFiles(*map(as_path, outputs.values())),
        against=open_systems(others, device, options, allowed_classes, len(examples), overrides),
        test=test,
        breakdown=breakdown,
        attention=attention,
        short_inputs=short_inputs,
        data=as_path(data),
    )


@as_nmt_errors()
def measure_attention(
    sentence: options.Sentence = None,
    *,
    model: options.Model = None,
    target: options.Text | None = None,
    split: options.Split | None = None,
    data: options.ModelData = None,
    src: options.File | None = None,
    ref: options.File | None = None,
    forced: options.Flag = False,
    gold: options.File | None = None,
    links_of: Annotated[Literal["words", "tokens"], Option()] = "words",
    json_path: Annotated[AnyPath | None, Option("--json", "FILE")] = None,
    picture: options.Picture = None,
    sample: options.Positive | None = None,
    device: options.Device = "auto",
    allowed_classes: options.AllowedClasses = (),
) -> AttentionReport:
    """Measure where a model looks, on a sentence or many: entropy, largest weight, coverage and so on, step by step.

    Args:
        sentence: Sentence to translate; None is the test split.
        model: Run or model directory; None is the newest finished run under `runs`.
        target: What the model is made to say, for one sentence.
        split: Split to translate: test or valid; None is test.
        data: Data directory; None is the one that the model was trained on.
        src: Source sentences instead of a split, one per line.
        ref: A reference of each line of `src`.
        forced: Let the model read the first references instead of its own words.
        gold: Word alignment made by people, to measure the alignment error rate with `forced`: a line for each
            sentence, i-j for each link, i?j if it is only possible.
        links_of: What `gold` counts: words, separated by spaces, or tokens of the model.
        sample: Maximum number of sentences, evenly spaced; None is all; 50 on a page.
        json_path: Write the statistics of every step to this file.
        picture: Draw the heat map of one sentence, or how sharp attention is on many.
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
    from nmt.inspection.attention_report import draw_attention_statistics, measure_attention
    from nmt.system.files import write_json
    from nmt.translation.loading import open_translator

    _check_outputs({"--json": json_path, "--picture": picture}, (src, ref, gold))
    if picture is not None:
        check_picture(Path(picture))
    text = InputText.read(
        sentence,
        split,
        links_of,
        data=as_path(data),
        src=as_path(src),
        ref=as_path(ref),
        gold=as_path(gold),
        target=target,
    )
    models, translator = open_translator(as_paths(model), device, {}, allowed_classes)
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
    sentence: options.Sentence = None,
    *,
    model: options.Model = None,
    split: options.Split | None = None,
    data: options.ModelData = None,
    src: options.File | None = None,
    ref: options.File | None = None,
    gold: options.File | None = None,
    links_of: Annotated[Literal["words", "tokens"], Option()] = "words",
    output: Annotated[AnyPath | None, options.PAGE] = None,
    against: options.Against = (),
    sample: options.Positive | None = None,
    training: options.Flag = False,
    title: str = "Attention",
    device: options.Device = "auto",
    allowed_classes: options.AllowedClasses = (),
) -> Page:
    """Make a page in which the attention of models can be explored: one HTML file, which loads nothing.

    In a notebook, the result is shown in a frame.

    Args:
        sentence: One sentence; None is a file or a split.
        model: Run or model directory; None is the newest finished run under `runs`.
        against: Another model on the page.
        split: Split of the data directory, test or valid; None is test.
        data: Data directory; None is the one that the model was trained on.
        src: Source sentences, one per line, instead of a split.
        ref: A reference of each line of `src`.
        gold: Word alignment of people in Pharaoh format, with `i?j` for links that are only possible, between each
            source and its first reference.
        links_of: What the numbers in `gold` count: words, separated by spaces, or tokens of the model.
        sample: Maximum number of sentences, evenly spaced; None is 50.
        training: A page with the sentences of train.watch, at each validation of the run.
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
    from nmt.inspection.exploration import explore, watched_examples

    _check_sample(sample)
    given = any(each is not None for each in (sentence, src, split, data, sample))
    if training and (given or against):
        raise ConfigError("--training shows the sentences that one run has watched: leave other text and models out")
    text = InputText.read(
        sentence, split, links_of, data=as_path(data), src=as_path(src), ref=as_path(ref), gold=as_path(gold)
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
    sentence: Annotated[str, Argument()],
    *,
    model: options.Model = None,
    step: options.Positive = 1,
    target: options.Text | None = None,
    device: options.Device = "auto",
    allowed_classes: options.AllowedClasses = (),
) -> str:
    """Explain one decoding step with its numbers: query, scores, weights, context, next words.

    Example: nmt explain "She kissed him." --step 3

    Args:
        sentence: Sentence to translate.
        model: Run or model directory; None is the newest finished run under `runs`.
        step: Which word of the translation; its end counts as one.
        target: What the model is made to say instead.
        device: auto, cpu, cuda, cuda:N or mps.
        allowed_classes: Dotted paths of classes that the model's config may use; their code runs.

    Returns:
        Lines of text.

    Raises:
        NmtError: The model cannot be used, the sentence has no words, or there is no such step.
    """
    from nmt.inspection.explain import explain
    from nmt.translation.loading import open_translator

    models, translator = open_translator(as_paths(model), device, {}, allowed_classes)
    return explain(models[0], translator, sentence, step, target)


@as_nmt_errors()
def report(
    model: options.Model = None,
    *,
    output: Annotated[AnyPath, Option("-o", "FILE.html")],
    against: options.Against = (),
    split: options.Split | None = None,
    data: options.ModelData = None,
    src: options.File | None = None,
    ref: options.Files = (),
    title: options.Text | None = None,
    device: options.Device = "auto",
    allowed_classes: options.AllowedClasses = (),
) -> Path:
    """Write a report on a model as one HTML file: scores, curves, sentences, attention, config, data.

    Example: nmt report --model runs/luong --against runs/bahdanau --output report.html

    Args:
        model: Run or model directory; None is the newest finished run under `runs`.
        against: Model to compare with.
        split: Split to score: test or valid; None is test.
        data: Data directory; None is the one that the model was trained on.
        src: Source sentences to score instead of a split.
        ref: References for `src`.
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
    from nmt.inspection.exploration import name_of
    from nmt.inspection.model_report import make_report
    from nmt.system.files import write_text

    references = as_paths(ref)
    _check_test_set(split, data, src, references)
    _check_page(output, (src, *references))
    examples = None if src is None else read_files(Path(src), [Path(each) for each in references])
    opened = _open_all(model, against, device, allowed_classes)
    first = opened[0]
    if examples is None:
        examples = split_of([first[0]], as_path(data), split or "test")
    if len(opened) > 1 and len(examples) > MAX_TESTED:
        raise DataError(f"--against: the test set has {len(examples):,} sentences; compare on at most {MAX_TESTED:,}")
    what = split or "test" if src is None else str(src)
    heading = title or f"Report on {name_of(first[0].path)}"
    write_text(Path(output), make_report(opened, examples, what=what, title=heading, data=as_path(data)))
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
    from nmt.translation.loading import open_translator

    opened = []
    for path in [as_path(model), *as_paths(against)]:
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
        {name: as_path(path) for name, path in outputs.items()}, [Path(each) for each in inputs if each is not None]
    )


def _check_page(output: AnyPath | None, inputs: Sequence[AnyPath | None]) -> None:
    """Check the file that a page is written to: devices and pipes are allowed."""
    path = as_path(output)
    if path is not None and path.suffix.lower() not in (".html", ".htm") and (path.is_file() or not path.exists()):
        raise DataError(f"--output {path}: a page is HTML; give a name that ends in .html")
    _check_outputs({"--output": output}, inputs)


@as_nmt_errors()
def compare(
    comparison: Annotated[AnyPath | None, options.COMPARISON] = None,
    *,
    config: Annotated[AnyPaths, options.CONFIGS] = (),
    variants: Mapping[str, Overrides] | None = None,
    vary: Annotated[Mapping[str, Sequence[Any]] | Sequence[str], options.VARIED] = (),
    overrides: Annotated[Overrides, options.SETTINGS] = (),
    seeds: Annotated[Sequence[int], Option(metavar="1,2,3", parse=options.parse_seeds)] = (),
    budget_minutes: Annotated[float | None, Option()] = None,
    source: Annotated[AnyPaths, options.CORPUS] = (),
    data: options.DataFolder = None,
    split: options.Split = "test",
    jobs: Annotated[int | None, Option("-j", minimum=1)] = None,
    launcher: Annotated[str | None, Option(metavar="TEMPLATE")] = None,
    output: options.OutputFolder = None,
) -> ComparisonResult:
    """Train several configs and compare scores, significance, time, memory and attention.

    The same command continues what was stopped, with Ctrl-C or otherwise, and skips what is finished.

    Example: nmt compare --config tatoeba_small --vary model.attention.score=additive,dot,general --budget-minutes 5

    Args:
        comparison: Comparison file, or the name of a shipped one.
        config: Config to train; repeat it to compare several.
        variants: By name, values in place of the config's: `{"Luong": {"model.decoder.order": "luong"}}`.
        vary: Values to compare, in all combinations: `{"model.attention.score": ["dot", "general"]}`, or
            `["model.attention.score=dot,general"]`.
        overrides: Values in place of those of all configs.
        seeds: Train each config with these seeds.
        budget_minutes: Minutes of training for each; the number of updates is measured; None is the config's.
        source: Corpus instead of the configs' own, as for `preprocess`.
        data: Data directory; None is made once, inside `output`.
        split: Split to evaluate on: test or valid.
        jobs: Trainings at once; None is 1; with `launcher` all.
        launcher: Shell command that runs {command}, or hands it to a cluster: 'sbatch --wrap "{command}"'.
        output: Folder for everything; None is runs/comparisons/NAME.

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
        "config": as_names(config),
        "settings": _as_mapping(overrides),
        "variants": [{"name": name, "settings": _as_mapping(each)} for name, each in (variants or {}).items()],
        "vary": vary if isinstance(vary, Mapping) else parse_varied(vary),
        "seeds": list(seeds),
        "budget_minutes": budget_minutes,
        "source": as_names(source),
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
        data=as_path(data),
        split=split,
        jobs=jobs or (1 if launcher is None else sys.maxsize),
        launcher=launcher,
    )


@as_nmt_errors()
def serve(
    model: Annotated[AnyPaths, options.DIRECTIONS] = (),
    *,
    host: Annotated[str, Option(metavar="ADDRESS")] = "127.0.0.1",
    port: Annotated[int, Option(minimum=0, maximum=65535)] = 5000,
    api_keys: Annotated[Collection[str], Option("--api-key", "KEY")] = (),
    key_file: Annotated[AnyPath | None, Option("--api-keys", "FILE")] = None,
    max_characters: options.Positive = 100_000,
    max_sentences: options.Positive = 2000,
    max_queue: options.Positive = 5000,
    requests_per_minute: options.Positive | None = None,
    allowed_hosts: Annotated[Collection[str], Option("--allow-host", "NAME")] = (),
    allowed_origins: Annotated[Collection[str], Option("--allow-origin", "URL")] = (),
    trusted_proxies: Annotated[Collection[str], Option("--trust-proxy", "ADDRESS")] = (),
    limits: Mapping[str, Any] | None = None,
    log_format: Annotated[Literal["json", "text", "none"], Option("--log")] = "json",
    beam_size: options.BeamSize = None,
    batch_size: options.BatchSize = None,
    device: options.Device = "auto",
    allowed_classes: options.AllowedClasses = (),
) -> None:
    """Serve models over HTTP to LibreTranslate's clients and to a page for browsers.

    Ctrl-C and SIGTERM stop it when the requests at work are answered. It needs more packages:
    pip install starlette uvicorn python-multipart lxml

    Example: nmt serve --model runs/en-de --model runs/de-en --port 5000

    Args:
        model: Run or model directories, one for each direction; none is the newest finished run under `runs`.
        host: Address to listen on; 0.0.0.0 is all of this machine's.
        port: Port; 0 takes any that is free.
        device: auto, cpu, cuda, cuda:N or mps.
        beam_size: Hypotheses kept at each step. None, here and below, is what each model's config says.
        batch_size: Sentences translated at once.
        api_keys: Key that clients must give.
        key_file: File with such keys, one per line, hidden from other users.
        max_characters: Characters of a request.
        max_sentences: Sentences of a request.
        max_queue: Sentences that may wait for a model.
        requests_per_minute: Requests of a client or a key; None is no limit.
        allowed_hosts: Name that the server is reached by.
        allowed_origins: Web pages that may use the server, or * for all.
        trusted_proxies: Reverse proxy whose X-Forwarded-For is trusted.
        limits: Values of `nmt.serving.limits.Limits` that are not the default ones.
        log_format: Log of requests, one line each, on standard error.
        allowed_classes: Dotted paths of classes that the models' configs may name; their code runs.

    Raises:
        NmtError: A model, the device, the port or a limit cannot be used, or what a server needs is not installed.

    Note:
        Only a main thread handles signals.
    """
    from nmt.serving.serve import open_directions, read_keys, require_libraries

    require_libraries()
    from nmt.serving.limits import Limits
    from nmt.serving.server import Server, bind

    sizes = {"max_characters": max_characters, "max_sentences": max_sentences, "max_queue": max_queue}
    bounds = Limits(**{**sizes, "requests_per_minute": requests_per_minute, **(limits or {})})
    keys = [*api_keys, *([] if key_file is None else read_keys(Path(key_file)))]
    models: list[Path | None] = [*as_paths(model)] or [None]
    with bind(host, port) as listener:
        search = {"beam_size": beam_size, "batch_size": batch_size}
        Server(
            listener,
            host,
            open_directions(models, device, search, allowed_classes),
            api_keys=keys,
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
