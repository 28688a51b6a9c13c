"""The attention of a few sentences at each validation of a run, as it emerges."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nmt.corpus.splitting import Example
from nmt.errors import DataError
from nmt.evaluation.alignment import Alignment
from nmt.evaluation.attention_statistics import step_statistics
from nmt.explorer.encoding import as_bytes
from nmt.files import read_json, write_json

WATCHED = "attention.json"
FORMAT_VERSION = 1


def add_attention(run: Path, update: int, examples: Sequence[Example], alignments: Sequence[Alignment]) -> None:
    """Add a validation to `attention.json` of a run; those of later updates, before the run was resumed, are dropped.

    Args:
        run: The run directory.
        update: Update of the validation.
        examples: The sentences.
        alignments: Attention while the model read the first reference of each.
    """
    sentences = [
        {"source": example.src, "reference": example.references[0], "src": each.src_tokens, "tgt": each.tgt_tokens}
        for example, each in zip(examples, alignments, strict=True)
    ]
    earlier = []
    with contextlib.suppress(DataError):  # a damaged file is begun again, as it should not end a run
        there = read_attention(run)
        if there["sentences"] == sentences:  # otherwise the run was resumed with others
            earlier = [each for each in there["validations"] if each["update"] < update]
    now = {
        "update": update,
        "weights": [as_bytes(each.weights) for each in alignments],
        "entropy": [round(float(step_statistics(each.weights).entropy.mean()), 4) for each in alignments],
    }
    facts = {"format_version": FORMAT_VERSION, "sentences": sentences, "validations": [*earlier, now]}
    write_json(run / WATCHED, facts)


def read_attention(run: Path) -> dict[str, Any]:
    """The content of `attention.json` of a run.

    Raises:
        DataError: It is missing or damaged.
    """
    if not (run / WATCHED).is_file():
        raise DataError(
            f"{run}: has no {WATCHED}; train with --set train.watch=8 to store attention at each validation"
        )
    facts = read_json(run / WATCHED)
    try:
        number = len(facts["sentences"])
        texts = [sentence[key] for sentence in facts["sentences"] for key in ("source", "reference")]
        whole = all(
            isinstance(each["update"], int) and len(each["weights"]) == len(each["entropy"]) == number
            for each in facts["validations"]
        )
        if not whole or not all(isinstance(text, str) for text in texts) or facts["format_version"] != FORMAT_VERSION:
            raise ValueError
    except (LookupError, TypeError, ValueError):
        raise DataError(f"{run / WATCHED}: damaged, or written by another version; delete it") from None
    result: dict[str, Any] = facts
    return result
