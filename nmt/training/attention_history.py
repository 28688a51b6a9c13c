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
from nmt.training.live_page import write_live_page
from nmt.translation.sharpness import step_statistics
from nmt.translation.translation import Translation

WATCHED = "attention.json"
FORMAT_VERSION = 1
MAX_SIZE = 1 << 28
"""Maximum size of the file in bytes: 100 sentences and several heads make 100 kB or more per validation."""


def add_attention(run: Path, update: int, examples: Sequence[Example], references: Sequence[Translation]) -> None:
    """Add a validation to `attention.json` of a run, and show it in `live.html`.

    Validations of later updates, before the run was resumed, are dropped.

    Args:
        run: The run directory.
        update: Update of the validation.
        examples: The sentences.
        references: The first reference of each as the model read it, with its alignment.
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
    write_live_page(run, history, references)


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
    texts = [sentence[key] for sentence in sentences for key in ("source", "reference")]
    texts += [token for sentence in sentences for side in ("src", "tgt") for token in sentence[side]]
    updates = [validation["update"] for validation in validations]
    entropies = [value for validation in validations for value in validation["entropy"]]
    lists = [validation[key] for validation in validations for key in ("weights", "entropy")]
    return (
        bool(sentences and validations)
        and all(isinstance(text, str) for text in texts)
        and all(type(update) is int and update > 0 for update in updates)
        and updates == sorted(set(updates))
        and all(type(value) in (int, float) and math.isfinite(value) for value in entropies)
        and {len(values) for values in lists} == {len(sentences)}
        and all(all(map(_fits, validation["weights"], sentences)) for validation in validations)
    )


def _fits(weights: str, sentence: Any) -> bool:
    """True if stored weights are those of the tokens of a sentence, with EOS, and any number of heads."""
    size = len(base64.b64decode(weights, validate=True))
    return size > 0 and size % ((len(sentence["src"]) + 1) * (len(sentence["tgt"]) + 1)) == 0
