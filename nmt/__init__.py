"""nmt: recurrent neural machine translation with attention, from raw text to BLEU.

Everything that the commands do is available in Python:

    import nmt

    nmt.preprocess("sample")
    run = nmt.train("sample")
    print(run.best, nmt.evaluate(run.path).bleu)
    translator = nmt.load(run.path)
    print(translator.translate("The old woman reads a book.").text)

Bad input raises a subclass of `NmtError` with a one-line message: where, what was found, what to do. Nothing is
printed; messages go to loggers below "nmt". Everything is imported on first use.
"""

import logging
import os
from typing import TYPE_CHECKING

from nmt.system.limits import KERNELS_KEPT
from nmt.system.version import __version__ as __version__

# oneDNN keeps a kernel for each shape of a product, and torch's wrapper does so too: by default 1,024 each. Both read
# their limit at the first product.
if "DNNL_PRIMITIVE_CACHE_CAPACITY" not in os.environ:  # its earlier name
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", str(KERNELS_KEPT))
os.environ.setdefault("LRU_CACHE_CAPACITY", str(KERNELS_KEPT))

if TYPE_CHECKING:
    from nmt.api import (
        PreparedData,
        average,
        check,
        compare,
        evaluate,
        explain,
        explore,
        measure_attention,
        preprocess,
        report,
        serve,
        train,
    )
    from nmt.comparison.compare import ComparisonResult
    from nmt.config import Config
    from nmt.evaluation.model_evaluation import ModelEvaluation
    from nmt.inspection.attention_report import AttentionReport
    from nmt.layers.attention.score import Score
    from nmt.layers.kernels.stepwise import StepLinear
    from nmt.models.configs import load_config
    from nmt.models.runs import Run
    from nmt.system.errors import (
        CheckpointError,
        ConfigError,
        DataError,
        NmtError,
        OutOfMemory,
        RunInterrupted,
        TrainingError,
    )
    from nmt.training.findings import Finding
    from nmt.translation.bulk import translate_file
    from nmt.translation.loading import load
    from nmt.translation.translation import Translation
    from nmt.translation.translator import Translator
else:
    _HOMES = {
        "nmt.api": (
            "PreparedData",
            "average",
            "check",
            "compare",
            "evaluate",
            "explain",
            "explore",
            "measure_attention",
            "preprocess",
            "report",
            "serve",
            "train",
        ),
        "nmt.comparison.compare": ("ComparisonResult",),
        "nmt.config": ("Config",),
        "nmt.translation.bulk": ("translate_file",),
        "nmt.translation.loading": ("load",),
        "nmt.translation.translation": ("Translation",),
        "nmt.translation.translator": ("Translator",),
        "nmt.system.errors": (
            "CheckpointError",
            "ConfigError",
            "DataError",
            "NmtError",
            "OutOfMemory",
            "RunInterrupted",
            "TrainingError",
        ),
        "nmt.inspection.attention_report": ("AttentionReport",),
        "nmt.training.findings": ("Finding",),
        "nmt.layers.attention.score": ("Score",),
        "nmt.layers.kernels.stepwise": ("StepLinear",),
        "nmt.models.configs": ("load_config",),
        "nmt.evaluation.model_evaluation": ("ModelEvaluation",),
        "nmt.models.runs": ("Run",),
    }

    def __getattr__(name: str) -> object:
        import importlib

        for home, names in _HOMES.items():
            if name in names:
                globals()[name] = getattr(importlib.import_module(home), name)
                return globals()[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


__all__ = [
    "AttentionReport",
    "CheckpointError",
    "ComparisonResult",
    "Config",
    "ConfigError",
    "DataError",
    "Finding",
    "ModelEvaluation",
    "NmtError",
    "OutOfMemory",
    "PreparedData",
    "Run",
    "RunInterrupted",
    "Score",
    "StepLinear",
    "TrainingError",
    "Translation",
    "Translator",
    "average",
    "check",
    "compare",
    "evaluate",
    "explain",
    "explore",
    "load",
    "load_config",
    "measure_attention",
    "preprocess",
    "report",
    "serve",
    "train",
    "translate_file",
]

logging.getLogger(__name__).addHandler(logging.NullHandler())
