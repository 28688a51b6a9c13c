"""The attention of a few sentences at each validation of a run, as it emerges."""

import base64
import contextlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nmt.corpus.example import Example
from nmt.system.encoding import as_bytes
from nmt.system.errors import DataError
from nmt.system.files import read_json, write_json
from nmt.system.messages import Parameter
from nmt.training.live_page import NOTHING_MORE, LiveView, write_live_page
from nmt.translation.sharpness import step_statistics
from nmt.translation.translation import Translation

WATCHED = "attention.json"
FORMAT_VERSION = 1
MAX_SIZE = 1 << 28
"""Maximum size of the file in bytes: 100 sentences and several heads make 100 kB or more per validation."""


def add_attention(
    run: Path,
    update: int,
    examples: Sequence[Example],
    references: Sequence[Translation],
    view: LiveView = NOTHING_MORE,
) -> None:
    """Add a validation to `attention.json` of a run, and show it in `live.html`.

    Validations of later updates, before the run was resumed, are dropped.

    Args:
        run: The run directory.
        update: Update of the validation.
        examples: The sentences.
        references: The first reference of each as the model read it, with its alignment.
        view: What the page shows besides.
    """
    sentences = [
        {"source": example.src, "reference": example.references[0], "src": read.src_tokens, "tgt": read.tokens}
        for example, read in zip(examples, references, strict=True)
    ]
    earlier = []
    with contextlib.suppress(DataError):  # a damaged file is begun again, as it should not end a run
        history = read_attention(run)
        if history["sentences"] == sentences:  # otherwise the run was resumed with others
            earlier = [validation for validation in history["validations"] if validation["update"] < update]
    alignments = [read.alignment for read in references if read.alignment is not None]
    now = {
        "update": update,
        "weights": [as_bytes(weights) for weights in alignments],
        "entropy": [round(float(step_statistics(weights).entropy.mean()), 4) for weights in alignments],
    }
    history = {"format_version": FORMAT_VERSION, "sentences": sentences, "validations": [*earlier, now]}
    write_json(run / WATCHED, history)
    write_live_page(run, history, references, view)


def read_attention(run: Path) -> dict[str, Any]:
    """The content of `attention.json` of a run.

    Raises:
        DataError: It is missing or damaged.
    """
    if not (run / WATCHED).is_file():
        raise DataError(
            "{run}: has no {file}; train with {watch} to store attention at each validation",
            run=run,
            file=WATCHED,
            watch=Parameter("overrides", {"train.watch": 8}),
        )
    history: dict[str, Any] = read_json(run / WATCHED, MAX_SIZE)
    with contextlib.suppress(LookupError, TypeError, ValueError):
        if history["format_version"] == FORMAT_VERSION and _is_whole(history["sentences"], history["validations"]):
            return history
    raise DataError(f"{run / WATCHED}: damaged, or written by another version; delete it")


def _is_whole(sentences: Sequence[Any], validations: Sequence[Any]) -> bool:
    """True if sentences and validations have the right types and sizes."""
    if not sentences or not validations:
        return False
    for sentence in sentences:
        texts = [sentence["source"], sentence["reference"], *sentence["src"], *sentence["tgt"]]
        if not all(isinstance(text, str) for text in texts):
            return False
    # Updates ascend, and each validation has the weights and the entropy of each sentence.
    last_update = 0
    for validation in validations:
        update = validation["update"]
        if type(update) is not int or update <= last_update:
            return False
        last_update = update
        entropies = validation["entropy"]
        if not all(type(value) in (int, float) and math.isfinite(value) for value in entropies):
            return False
        weights = validation["weights"]
        if len(weights) != len(sentences) or len(entropies) != len(sentences):
            return False
        if not all(map(_fits, weights, sentences)):
            return False
    return True


def _fits(weights: str, sentence: Any) -> bool:
    """True if stored weights, a byte each, are those of a sentence's tokens, with EOS, and any number of heads."""
    size = len(base64.b64decode(weights, validate=True))
    of_head = (len(sentence["tgt"]) + 1) * (len(sentence["src"]) + 1)
    return size > 0 and size % of_head == 0
