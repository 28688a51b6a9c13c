"""Scoring a model on a split or on files, beside other systems."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from nmt.system import options
from nmt.system.errors import ConfigError, DataError, as_nmt_errors
from nmt.system.files import AnyPath, AnyPaths, as_path, as_paths
from nmt.system.options import Option
from nmt.translation.loading import open_translator

if TYPE_CHECKING:
    from nmt.config import Overrides
    from nmt.evaluation.model_evaluation import ModelEvaluation
    from nmt.translation.translator import Translator


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
    check_test_set(split, data, src, references)
    from nmt.evaluation.input_text import read_files, split_of
    from nmt.evaluation.metrics import PAIRED_TESTS
    from nmt.evaluation.model_evaluation import EvaluationFiles, evaluate_model
    from nmt.system.outputs import check_files

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
        against=_open_systems(others, device, options, allowed_classes, len(examples), overrides),
        test=test,
        breakdown=breakdown,
        attention=attention,
        short_inputs=short_inputs,
        data=as_path(data),
    )


def check_test_set(split: str | None, data: AnyPath | None, src: AnyPath | None, references: Sequence[AnyPath]) -> None:
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


def _open_systems(
    paths: Sequence[Path],
    device: str,
    options: Mapping[str, Any],
    allowed_classes: Collection[str],
    lines: int,
    overrides: Overrides = (),
) -> dict[str, Translator | list[str]]:
    """Open the systems to compare a model with.

    Args:
        paths: Run or model directories, or text files with one translation per line.
        device: As in a config.
        options: Search options for models; None keeps their config.
        allowed_classes: As for `load_model`.
        lines: Number of lines that a file must have.
        overrides: Other search settings for models.

    Raises:
        CheckpointError: There is no such model, or it is damaged.
        DataError: A file cannot be read or has another number of lines, or the test set is too large.
    """
    from nmt.evaluation.input_text import read_text
    from nmt.evaluation.model_evaluation import MAX_TESTED

    if paths and lines > MAX_TESTED:
        raise DataError(
            f"--against: the test set has {lines:,} sentences; compare systems on at most {MAX_TESTED:,} of them"
        )
    systems: dict[str, Translator | list[str]] = {}
    for path in paths:
        if path.is_dir():
            systems[str(path)] = open_translator([path], device, options, allowed_classes, overrides=overrides)[1]
            continue
        translations = read_text(path)
        if len(translations) != lines:
            raise DataError(f"{path}: has {len(translations):,} lines, but the test set has {lines:,} sentences")
        systems[str(path)] = translations
    return systems
