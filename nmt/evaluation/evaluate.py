"""Scoring a model on a split or on files, beside other systems."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from nmt.config import Overrides
from nmt.evaluation.input_text import read_text
from nmt.evaluation.model_evaluation import MAX_TESTED
from nmt.system.errors import DataError
from nmt.translation.loading import open_translator
from nmt.translation.translator import Translator


def open_systems(
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
