"""Scoring a model on a split or on files, with other systems."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Literal

from nmt.system.errors import ConfigError, DataError, as_nmt_errors
from nmt.system.files import AnyPath, AnyPaths, as_path, as_paths
from nmt.system.messages import Message, Parameter
from nmt.system.surroundings import plain_torch
from nmt.translation.loading import LoadSettings, open_translator

if TYPE_CHECKING:
    from nmt.config import Overrides
    from nmt.evaluation.model_evaluation import ModelEvaluation
    from nmt.models.storage import ModelFolder
    from nmt.translation.translator import Translator


@as_nmt_errors()
@plain_torch()
def evaluate(
    model: AnyPaths | None = None,
    *,
    split: str | None = None,
    data: AnyPath | None = None,
    src: AnyPath | None = None,
    ref: AnyPaths = (),
    repair_references: bool = False,
    json_path: AnyPath | None = None,
    hypotheses_path: AnyPath | None = None,
    references_path: AnyPath | None = None,
    against: AnyPaths = (),
    test: Literal["bootstrap", "randomization"] = "bootstrap",
    breakdown: bool = False,
    attention: bool = False,
    beam_size: int | None = None,
    batch_size: int | None = None,
    overrides: Overrides = (),
    device: str = "auto",
    short_inputs: bool = True,
    overwrite: bool = False,
    allowed_classes: Collection[str] = (),
) -> ModelEvaluation:
    """Score a model with BLEU, chrF, chrF++ and TER.

    sacreBLEU computes them, on detokenised text.

    Example: nmt evaluate --split test --json scores.json

    Args:
        model: Run or model directory; None is the newest finished run under `runs`.
        split: Split to score: test, valid or train; None is test.
        data: Data directory; None is the one that the model was trained on.
        src: Source sentences to score instead of a split, one per line.
        ref: References for `src`, one per line, or several with tabs between them.
        repair_references: Repair references as training text is; signatures of their scores say so.
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
        short_inputs: Also judge the translations of 100 short inputs, if the model translates English to German.
        overwrite: Replace files that are not empty.
        allowed_classes: Dotted paths of classes that the model's config may use; their code runs.

    Raises:
        NmtError: The model, the test set or the device cannot be used, or arguments conflict.
        OutOfMemory: Memory ran out.
    """
    from nmt.config.outputs import check_files
    from nmt.evaluation.diagnostics import read_system
    from nmt.evaluation.input_text import InputText
    from nmt.evaluation.metrics import PAIRED_TESTS, ScoringRules
    from nmt.evaluation.model_evaluation import Measures, check_comparable, evaluate_model
    from nmt.models.lookup import find_run
    from nmt.translation.input import read_text

    if test not in PAIRED_TESTS:
        raise ConfigError("{test}: must be {known}", test=Parameter("test", test), known=" or ".join(PAIRED_TESTS))
    outputs = {"json_path": json_path, "hypotheses_path": hypotheses_path, "references_path": references_path}
    to_score_it = Parameter("against", hypotheses_path)
    advice = {"hypotheses_path": Message("; to score the hypotheses in it, give {against}", against=to_score_it)}
    check_files(outputs, [*as_paths(against), src, *as_paths(ref)], overwrite=overwrite, advice=advice)
    text = InputText.read(split=split, data=data, src=src, ref=ref, scored=True, repair=repair_references)
    search = {"beam_size": beam_size, "batch_size": batch_size}
    settings = LoadSettings(device, allowed_classes, search, overrides)
    models, translator = open_translator(as_paths(model), settings)
    test_set = text.evaluation_set(models)
    rules = ScoringRules.for_config(models[0].config, repaired=test_set.repaired)
    # Other systems: a folder is a model, and a file has translations.
    systems: dict[str, tuple[list[ModelFolder], Translator] | list[str]] = {}
    for path in map(find_run, as_paths(against)):
        check_comparable(test_set.examples)
        if path.is_dir():
            systems[str(path)] = open_translator([path], settings)
            continue
        translations = read_text(path)
        if len(translations) != len(test_set.examples):
            raise DataError(
                f"{path}: has {len(translations):,} lines, but the test set has {len(test_set.examples):,} sentences"
            )
        normalizer = translator.processor.normalizer
        systems[str(path)] = read_system(path, translations, test_set.examples, normalizer, rules)
    return evaluate_model(
        models,
        translator,
        test_set,
        Measures(breakdown, attention, short_inputs, test),
        files={name.removesuffix("_path"): as_path(path) for name, path in outputs.items()},
        against=systems,
    )
