"""The model directory: weights, config, vocabularies and tokenizers. Whoever made it, loading it runs none of its code.

Nothing is unpickled, no class that it names is imported unless its user allows it, no file outside it is read, and
nothing is allocated before the names, shapes and types in the header of the weights agree with the config.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_model as save_weights
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from nmt import __version__
from nmt.config import Config, dump_config, names_class, read_config
from nmt.errors import CheckpointError, DataError, shorten
from nmt.files import check_file, flush, grant_usual_access, read_json, write_json, write_text
from nmt.limits import MAX_HEADER, MIB
from nmt.model.attention.checks import attention_check
from nmt.model.seq2seq import Seq2Seq, build_model
from nmt.replacement import whole_directory
from nmt.text.processor import SEEN, TEXT_FILES, TextProcessor, copy_text_files, load_processor, load_vocabularies
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

    def load_processor(self) -> TextProcessor:
        """Tokenizers and vocabularies, of which only the tokenizers are still to be read.

        Raises:
            DataError: Files are missing or damaged.
        """
        return load_processor(self.text, (self.src_vocabulary, self.tgt_vocabulary))


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
        write_text(temporary / CONFIG, dump_config(_without_paths(config)))
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


def _without_paths(config: Config) -> Config:
    """The config in which paths of the machine it was trained on are cut down to their last part."""

    def cut(place: str | None) -> str | None:
        if place is None or "://" in place:
            return place
        path = PurePath(place)
        return path.name if path.is_absolute() or ".." in path.parts or place.startswith("~") else place

    data = {"source": tuple(cut(source) for source in config.data.source), "directory": cut(config.data.directory)}
    return config.model_copy(
        update={
            "data": config.data.model_copy(update=data),
            "text": config.text.model_copy(update={"reuse": cut(config.text.reuse)}),
            "train": config.train.model_copy(update={"init_from": cut(config.train.init_from)}),
        }
    )


def load_model(
    directory: Path, device: torch.device | None = None, allowed_classes: Collection[str] = ()
) -> SavedModel:
    """Read a model directory, which may be anybody's.

    Args:
        directory: What `save_model` wrote.
        device: Where the weights go; None is the CPU.
        allowed_classes: Dotted paths of classes that its config may name; importing one runs its module.

    Raises:
        CheckpointError: It is missing, incomplete, damaged, of another format, or its parts do not fit; or it names a
            class that is not allowed.
        ConfigError: Its config is wrong.
    """
    if not (directory / MARKER).is_file():
        what = "is not a model directory" if directory.exists() else "does not exist"
        raise CheckpointError(f"{directory}: {what} (no {MARKER}); train first, or give one with --model")
    try:
        facts = read_json(directory / MARKER)
        version = facts.get("format_version") if isinstance(facts, dict) else None
        if version != FORMAT_VERSION:
            found = shorten(repr(version))
            raise CheckpointError(f"{directory}: model format {found}, this version reads {FORMAT_VERSION}")
        config = read_config(directory / CONFIG, [attention_check(allowed_classes)])
        _check_class(config.model.attention.score, directory / CONFIG, allowed_classes)
        weights = check_file(directory / WEIGHTS, directory)
        _check_text(check_file(directory / TEXT, directory), weights)
        vocabularies = load_vocabularies(directory / TEXT)
        model = _build(config, vocabularies, weights)
    except OSError as error:
        raise CheckpointError(f"{error.filename}: cannot be read ({error.strerror}); the model is incomplete") from None
    except DataError as error:
        raise CheckpointError(str(error)) from None
    return SavedModel(directory, config, model.to(device or torch.device("cpu")).eval(), *vocabularies, facts)


def _check_class(score: str, path: Path, allowed: Collection[str]) -> None:
    if names_class(score) and score not in allowed:
        raise CheckpointError(
            f"{path}: model.attention.score names the class {shorten(score)}, whose code would run; if you trust it, "
            f"allow it with --allow-class {shorten(score)}, or to train on, name it in the config of your own"
        )


def _check_text(folder: Path, weights: Path) -> None:
    """Refuse text files that are large beside the weights: what is learnt of a word takes far more than its letters."""
    limit = MIB + (weights.stat().st_size // 4 if weights.is_file() else 0)
    for name in TEXT_FILES:
        check_file(folder / name, folder, None if name == SEEN else limit)


def _build(config: Config, vocabularies: tuple[Vocabulary, Vocabulary], weights: Path) -> Seq2Seq:
    """The model with its weights; only shapes are made before it is known that the file fits them."""
    sizes = [len(vocabulary) for vocabulary in vocabularies]
    with torch.device("meta"), _NoDraws():
        model = build_model(config.model, *sizes)
    read_weights(model, weights)
    if any(buffer.is_meta for buffer in model.buffers()):  # a class of a user's may keep some out of its weights
        model = build_model(config.model, *sizes)
        read_weights(model, weights)
    return model


class _NoDraws(TorchFunctionMode):
    """Leaves out random initial values: on the meta device they are nothing, and take 1.5 s of imports."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call any other function as it is."""
        if getattr(func, "__module__", None) == "torch.nn.init" or func in (Tensor.uniform_, Tensor.normal_):
            return args[0] if args else kwargs["tensor"]
        return func(*args, **(kwargs or {}))


def read_weights(model: nn.Module, path: Path) -> None:
    """Give a model the weights of a safetensors file; those that were tied are tied still.

    Args:
        model: On any device; on the meta device, memory is taken for the weights alone.
        path: The file.

    Raises:
        CheckpointError: The file is missing or damaged, or its tensors do not fit the model.
    """
    if not path.is_file():
        raise CheckpointError(f"{path}: missing; the model directory is incomplete")
    wanted: dict[Tensor, list[str]] = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        wanted.setdefault(tensor, []).append(name)
    begins = _read_header(path)
    if fault := _misfit(wanted, {name: kind for name, (kind, _) in begins.items()}):
        raise CheckpointError(f"{path}: weights do not fit config and vocabulary: {fault}")
    with path.open("rb") as file:
        for tensor, names in wanted.items():
            value = torch.empty(tensor.shape, dtype=tensor.dtype)
            file.seek(next(begins[name][1] for name in names if name in begins))
            file.readinto(value.numpy().reshape(-1).view(np.uint8).data)  # mapping the file would take memory twice
            given = nn.Parameter(value, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else value
            for name in names:
                owner, _, attribute = name.rpartition(".")
                setattr(model.get_submodule(owner), attribute, given)


_TYPES = {torch.float32: "F32", torch.float64: "F64", torch.int64: "I64", torch.int32: "I32", torch.bool: "BOOL"}
_Kind = tuple[str, list[int]]
"""Type and shape of a tensor, as a safetensors file names them."""


def _read_header(path: Path) -> dict[str, tuple[_Kind, int]]:
    """Type, shape and place in the file of each stored tensor; the library makes sure that they fit the file.

    Raises:
        CheckpointError: They do not.
    """
    try:
        with path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            if size > MAX_HEADER:
                raise ValueError(f"a header of {size:,} bytes")
            header = json.loads(file.read(size))
            ends = [facts["data_offsets"][1] for name, facts in header.items() if name != "__metadata__"]
            if 8 + size + max(ends, default=0) != path.stat().st_size:
                raise ValueError(f"{path.stat().st_size:,} bytes")
        with safe_open(path, framework="pt") as checked:
            return {
                name: (
                    (checked.get_slice(name).get_dtype(), checked.get_slice(name).get_shape()),
                    8 + size + header[name]["data_offsets"][0],
                )
                for name in checked.keys()  # noqa: SIM118
            }
    except (SafetensorError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        reason = shorten(str(error))
        raise CheckpointError(f"{path}: damaged or truncated ({reason}); copy the model again") from None


def _misfit(wanted: Mapping[Tensor, list[str]], stored: Mapping[str, _Kind]) -> str:
    """The first way in which stored tensors are not those that are wanted; empty if they are."""
    known = {name for names in wanted.values() for name in names}
    unknown = sorted(stored.keys() - known)
    if unknown:
        more = f" ({len(unknown):,} such)" if len(unknown) > 1 else ""
        return f"{shorten(unknown[0])} is no part of the model{more}"
    for tensor, names in wanted.items():
        need = _TYPES.get(tensor.dtype, str(tensor.dtype)), list(tensor.shape)
        found = [stored[name] for name in names if name in stored]
        if not found:
            return f"{names[0]} is missing"
        if found[0] != need:
            return f"{names[0]} should be {need[0]} {need[1]}, found {found[0][0]} {shorten(str(found[0][1]))}"
    return ""
