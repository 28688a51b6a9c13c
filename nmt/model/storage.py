"""The model directory: weights, config, vocabularies and tokenizers; nothing in it is ever unpickled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_model as load_weights
from safetensors.torch import save_model as save_weights

from nmt import __version__
from nmt.config import Config, dump_config, parse_config
from nmt.errors import CheckpointError, DataError
from nmt.files import flush, grant_usual_access, read_json, whole_directory, write_json, write_text
from nmt.model.seq2seq import Seq2Seq, build_model
from nmt.text.processor import copy_text_files, load_vocabularies
from nmt.text.vocabulary import Vocabulary

FORMAT_VERSION = 1
MARKER = "model.json"
WEIGHTS = "model.safetensors"
CONFIG = "config.yaml"
TEXT = "text"


@dataclass(frozen=True)
class SavedModel:
    """A model read from its directory.

    Attributes:
        path: The directory.
        config: The config it was trained with.
        model: The model, in evaluation mode.
        src_vocabulary: Vocabulary of the source.
        tgt_vocabulary: Vocabulary of the target.
        facts: What `model.json` says: versions, update, epoch, validation scores.
    """

    path: Path
    config: Config
    model: Seq2Seq
    src_vocabulary: Vocabulary
    tgt_vocabulary: Vocabulary
    facts: Mapping[str, Any]

    @property
    def text(self) -> Path:
        """Folder with vocabularies and tokenizers."""
        return self.path / TEXT


def save_model(directory: Path, config: Config, model: Seq2Seq, text: Path, facts: Mapping[str, Any]) -> None:
    """Write a model directory, whole or not at all; an older one in its place is replaced.

    Args:
        directory: Where to.
        config: Resolved config.
        model: The weights.
        text: Folder with vocabularies and tokenizers, copied as it is.
        facts: Update, epoch, scores: whatever explains this model.

    Raises:
        OSError: The disk is full, or the folder cannot be written.
    """
    with whole_directory(directory) as temporary:
        copy_text_files(text, temporary / TEXT)
        try:
            save_weights(model, str(temporary / WEIGHTS))
        except SafetensorError as error:
            raise OSError(str(error)) from None
        grant_usual_access(temporary / WEIGHTS)
        write_text(temporary / CONFIG, dump_config(config))
        write_json(
            temporary / MARKER,
            {
                "format_version": FORMAT_VERSION,
                "nmt_version": __version__,
                "torch_version": torch.__version__,
                "src_language": config.data.languages[0],
                "tgt_language": config.data.languages[1],
                "parameters": sum(parameter.numel() for parameter in model.parameters()),
                **facts,
            },
        )
        for path in temporary.rglob("*"):
            flush(path)  # before it takes the place of an older one


def load_model(directory: Path, device: torch.device | None = None) -> SavedModel:
    """Read a model directory.

    Raises:
        CheckpointError: It is missing, incomplete, damaged, of another format, or its parts do not fit.
    """
    if not (directory / MARKER).is_file():
        what = "is not a model directory" if directory.exists() else "does not exist"
        raise CheckpointError(f"{directory}: {what} (no {MARKER}); train first, or give one with --model")
    try:
        facts = read_json(directory / MARKER)
        version = facts.get("format_version") if isinstance(facts, dict) else None
        if version != FORMAT_VERSION:
            raise CheckpointError(f"{directory}: model format {version}, this version reads {FORMAT_VERSION}")
        config = parse_config((directory / CONFIG).read_text(encoding="utf-8"), str(directory / CONFIG))
        src_vocabulary, tgt_vocabulary = load_vocabularies(directory / TEXT)
        model = build_model(config.model, len(src_vocabulary), len(tgt_vocabulary))
        read_weights(model, directory / WEIGHTS)
    except OSError as error:
        raise CheckpointError(f"{error.filename}: cannot be read ({error.strerror}); the model is incomplete") from None
    except UnicodeDecodeError:
        raise CheckpointError(f"{directory / CONFIG}: not UTF-8 text; the model is damaged") from None
    except DataError as error:
        raise CheckpointError(str(error)) from None
    return SavedModel(
        directory,
        config,
        model.to(device or torch.device("cpu")).eval(),
        src_vocabulary,
        tgt_vocabulary,
        facts,
    )


def read_weights(model: Seq2Seq, path: Path) -> None:
    """Load a safetensors file into a model of the same shape.

    Raises:
        CheckpointError: The file is damaged, or its tensors do not fit the model.
    """
    if not path.is_file():
        raise CheckpointError(f"{path}: missing; the model directory is incomplete")
    try:
        load_weights(model, path)
    except SafetensorError as error:
        raise CheckpointError(f"{path}: damaged or truncated ({error}); copy the model again") from None
    except RuntimeError as error:
        details = [line.strip() for line in str(error).splitlines()[1:]] or [str(error)]
        raise CheckpointError(f"{path}: weights do not fit config and vocabulary: {details[0]}") from None
