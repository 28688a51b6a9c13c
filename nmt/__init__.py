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

from nmt.limits import KERNELS_KEPT

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
        load,
        measure_attention,
        preprocess,
        report,
        serve,
        train,
        translate_file,
    )
    from nmt.comparison.compare import ComparisonResult
    from nmt.config import Config
    from nmt.decoding.translator import Translation, Translator
    from nmt.errors import (
        CheckpointError,
        ConfigError,
        DataError,
        NmtError,
        OutOfMemory,
        RunInterrupted,
        TrainingError,
    )
    from nmt.workflow.attention import AttentionReport
    from nmt.workflow.configs import load_config
    from nmt.workflow.evaluation import ModelEvaluation
    from nmt.workflow.findings import Finding
    from nmt.workflow.runs import Run
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
            "load",
            "measure_attention",
            "preprocess",
            "report",
            "serve",
            "train",
            "translate_file",
        ),
        "nmt.comparison.compare": ("ComparisonResult",),
        "nmt.config": ("Config",),
        "nmt.decoding.translator": ("Translation", "Translator"),
        "nmt.errors": (
            "CheckpointError",
            "ConfigError",
            "DataError",
            "NmtError",
            "OutOfMemory",
            "RunInterrupted",
            "TrainingError",
        ),
        "nmt.workflow.attention": ("AttentionReport",),
        "nmt.workflow.findings": ("Finding",),
        "nmt.workflow.configs": ("load_config",),
        "nmt.workflow.evaluation": ("ModelEvaluation",),
        "nmt.workflow.runs": ("Run",),
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


__version__ = "0.1.0"
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
