"""nmt: neural machine translation with attention, from raw text to BLEU.

Everything that the commands do is available in Python:

    import nmt

    nmt.preprocess("sample")
    run = nmt.train("sample")
    print(run.best, nmt.evaluate(run.path).bleu)
    translator = nmt.load(run.path)
    print(translator.translate("The old woman reads a book.").text)

Bad input raises a subclass of `NmtError` with a one-line message: where, what was found, what to do. Nothing is
printed; messages go to loggers below "nmt". Everything is imported on first use. The import sets nothing in the
process; `nmt.tune_process()`, called before torch is imported, bounds torch's caches as the commands do.
"""

import importlib
import logging
from typing import TYPE_CHECKING

from nmt.system.version import __version__ as __version__

if TYPE_CHECKING:
    from nmt.comparison.compare import ComparisonResult as ComparisonResult, compare as compare
    from nmt.comparison.synthesis import Synthesis as Synthesis, backtranslate as backtranslate
    from nmt.config import Config as Config, load_config as load_config
    from nmt.corpus.prepare import PreparedData as PreparedData, preprocess as preprocess
    from nmt.drawing.heatmap import heat_map as heat_map
    from nmt.evaluation.evaluate import evaluate as evaluate
    from nmt.evaluation.model_evaluation import ModelEvaluation as ModelEvaluation
    from nmt.exporting.export import export as export
    from nmt.inspection.attention_command import measure_attention as measure_attention
    from nmt.inspection.attention_report import AttentionReport as AttentionReport
    from nmt.inspection.explain_command import explain as explain
    from nmt.inspection.explore_command import explore as explore
    from nmt.inspection.report_command import report as report
    from nmt.layers.attention.attention_module import AttentionModule as AttentionModule, attention as attention
    from nmt.layers.attention.own_score import as_score as as_score
    from nmt.layers.attention.score import Score as Score
    from nmt.layers.kernels.stepwise import StepLinear as StepLinear
    from nmt.layers.self_attention_module import (
        SelfAttentionModule as SelfAttentionModule,
        self_attention as self_attention,
    )
    from nmt.run import Run as Run, check as check, train as train
    from nmt.serving.serve import serve as serve
    from nmt.system.errors import (
        CheckpointError as CheckpointError,
        ConfigError as ConfigError,
        DataError as DataError,
        NmtError as NmtError,
        OutOfMemory as OutOfMemory,
        RunInterrupted as RunInterrupted,
        TrainingError as TrainingError,
    )
    from nmt.system.tuning import tune_process as tune_process
    from nmt.training.average import average as average
    from nmt.training.findings import Finding as Finding
    from nmt.translation.translate import translate_file as translate_file
    from nmt.translation.loading import load as load
    from nmt.translation.translation import Translation as Translation
    from nmt.translation.translator import Translator as Translator

_HOMES = {
    "nmt.comparison.compare": "ComparisonResult compare",
    "nmt.comparison.synthesis": "Synthesis backtranslate",
    "nmt.config": "Config load_config",
    "nmt.corpus.prepare": "PreparedData preprocess",
    "nmt.drawing.heatmap": "heat_map",
    "nmt.evaluation.evaluate": "evaluate",
    "nmt.evaluation.model_evaluation": "ModelEvaluation",
    "nmt.exporting.export": "export",
    "nmt.inspection.attention_command": "measure_attention",
    "nmt.inspection.attention_report": "AttentionReport",
    "nmt.inspection.explain_command": "explain",
    "nmt.inspection.explore_command": "explore",
    "nmt.inspection.report_command": "report",
    "nmt.layers.attention.attention_module": "AttentionModule attention",
    "nmt.layers.attention.own_score": "as_score",
    "nmt.layers.attention.score": "Score",
    "nmt.layers.kernels.stepwise": "StepLinear",
    "nmt.layers.self_attention_module": "SelfAttentionModule self_attention",
    "nmt.run": "Run check train",
    "nmt.serving.serve": "serve",
    "nmt.system.errors": "CheckpointError ConfigError DataError NmtError OutOfMemory RunInterrupted TrainingError",
    "nmt.system.tuning": "tune_process",
    "nmt.training.average": "average",
    "nmt.training.findings": "Finding",
    "nmt.translation.loading": "load",
    "nmt.translation.translate": "translate_file",
    "nmt.translation.translation": "Translation",
    "nmt.translation.translator": "Translator",
}
"""Public names by module; imported above for type checkers, and on first use by everybody else."""
_MODULES = {name: module for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name == "__all__":
        return sorted(_MODULES)
    if name in ("score", "translate"):  # commands of these names use it
        raise AttributeError(f"nmt.{name} is a method of a translator: nmt.load(path).{name}(...)")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = getattr(importlib.import_module(_MODULES[name]), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted([*_MODULES, *(name for name in {"__all__", *globals()} if name.startswith("__"))])


logging.getLogger(__name__).addHandler(logging.NullHandler())
