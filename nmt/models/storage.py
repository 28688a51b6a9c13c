"""The model directory: weights, config, vocabularies and tokenizers. Loading an untrusted one runs none of its code.

Nothing is unpickled, no class that it names is imported unless the user allows it, no file outside it is read, and
nothing is allocated before the names, shapes and types in the header of the weights agree with the config.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from nmt.config import Config, dump_config, names_class, read_config
from nmt.models.build import build_model
from nmt.models.card import CARD, make_card
from nmt.models.seq2seq import Seq2Seq
from nmt.system.errors import CheckpointError, DataError, shorten
from nmt.system.files import check_file, read_json, set_default_permissions, sha256, sync, write_json, write_text
from nmt.system.limits import MIB
from nmt.system.messages import Parameter
from nmt.system.replacement import atomic_directory
from nmt.system.version import __version__
from nmt.text.direction import Direction
from nmt.text.processor import SEEN, TEXT, TEXT_FILES, WithText, copy_text_files, load_vocabularies
from nmt.text.vocabulary import Vocabulary

FORMAT_VERSION = 1
MARKER = "model.json"
WEIGHTS = "model.safetensors"
CONFIG = "config.yaml"
EXPORT_MARKER = "export.json"
"""Name of the file that lists the files of an exported folder."""
RUNTIMES = {"ctranslate2": "model.bin", "onnx": "decoder.onnx"}
"""Formats of exported folders that other programs compute, and the file that tells models apart; see `nmt.runtimes`."""
MAX_HEADER = 16 * MIB
"""Bytes of the header of a weights file."""


@dataclass(frozen=True)
class ModelFolder(WithText):
    """A folder with a model, and what can be read of it without its weights.

    Attributes:
        path: The folder.
        config: The config it was trained with.
        src_vocabulary: Vocabulary of the source.
        tgt_vocabulary: Vocabulary of the target.
        metadata: Versions, update, epoch, validation scores.
    """

    path: Path
    config: Config
    src_vocabulary: Vocabulary
    tgt_vocabulary: Vocabulary
    metadata: Mapping[str, Any]

    @property
    def weights(self) -> Path:
        """The file of its weights."""
        return self.path / WEIGHTS

    @property
    def identity(self) -> str:
        """The name of its weights, wherever they lie: the first 12 digits of the SHA-256 checksum of their file.

        Raises:
            CheckpointError: The file is no longer there.
        """
        try:
            return sha256(self.weights)[:12]
        except OSError as error:
            raise CheckpointError(f"{self.weights}: cannot be read ({error.strerror})") from None


@dataclass(frozen=True)
class SavedModel(ModelFolder):
    """A model read from its directory.

    Attributes:
        model: The model, in evaluation mode.
    """

    model: Seq2Seq


def save_model(directory: Path, config: Config, model: Seq2Seq, text: Path, metadata: Mapping[str, Any]) -> None:
    """Write a model directory atomically, replacing an existing one.

    Args:
        directory: Output folder.
        config: Resolved config.
        model: The weights.
        text: Folder with vocabularies and tokenizers, which is copied unchanged.
        metadata: Information about this model: update, epoch, scores.

    Raises:
        OSError: The disk is full, or the folder cannot be written.
    """
    with atomic_directory(directory) as temporary:
        copy_text_files(text, temporary / TEXT)
        write_tensors(temporary / WEIGHTS, _weights_of(model))
        config = _without_paths(config)
        write_text(temporary / CONFIG, dump_config(config))
        versions = {"format_version": FORMAT_VERSION, "nmt_version": __version__, "torch_version": torch.__version__}
        direction = Direction.of(config.data)
        languages = {"src_language": direction.source, "tgt_language": direction.target}
        parameters = sum(parameter.numel() for parameter in model.parameters())
        all_metadata = {**versions, **languages, "parameters": parameters, **metadata}
        write_json(temporary / MARKER, all_metadata)
        write_text(temporary / CARD, make_card(config, all_metadata))
        for path in temporary.rglob("*"):
            sync(path)  # before it replaces an older one


def write_tensors(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    """Write contiguous tensors, and text by name, to a safetensors file with the default permissions of new files.

    Raises:
        OSError: The disk is full, or the folder cannot be written.
    """
    try:
        save_file(tensors, path, metadata)
    except SafetensorError as error:
        raise OSError(str(error)) from None
    set_default_permissions(path)


def _without_paths(config: Config) -> Config:
    """The config with local paths of the training machine reduced to their last part."""
    extra = {}
    for name, corpus in config.data.extra.items():
        extra[name] = corpus.model_copy(update={"source": _cut_paths(corpus.source)})
    data = {
        "source": _cut_paths(config.data.source),
        "test": _cut_paths(config.data.test),
        "extra": extra,
        "directory": _cut_path(config.data.directory),
    }
    sections = {
        "data": config.data.model_copy(update=data),
        "parent": config.parent.model_copy(update={"run": _cut_path(config.parent.run)}),
    }
    return config.model_copy(update=sections)


def _cut_paths(paths: Iterable[str]) -> tuple[str | None, ...]:
    return tuple(map(_cut_path, paths))


def _cut_path(path: str | None) -> str | None:
    """The last part of a path that shows folders of the machine; URLs and paths inside the current folder stay."""
    if path is None or "://" in path:
        return path
    local = PurePath(path)
    is_outside = local.is_absolute() or ".." in local.parts or path.startswith("~")
    return local.name if is_outside else path


def _weights_of(model: nn.Module) -> dict[str, Tensor]:
    """Weights by name, tied ones once; recurrent layers on a GPU keep theirs as parts of one piece of memory."""
    names: dict[Tensor, str] = {}
    for name, tensor in sorted(model.state_dict(keep_vars=True).items()):
        names.setdefault(tensor, name)
    return {name: tensor.detach().cpu().contiguous() for tensor, name in names.items()}


def check_model(directory: Path) -> Path:
    """The directory.

    Raises:
        CheckpointError: It is no model directory, or an exported folder that another program computes.
    """
    refuse_export(directory)
    marker = directory / EXPORT_MARKER
    for form, name in RUNTIMES.items():
        # An exported folder that has lost its marker.
        if (directory / name).exists() and (directory / CONFIG).exists():
            problem = "damaged" if marker.exists() else "missing"
            raise CheckpointError(f"{marker}: {problem}, and {name} is an export for {form}; export the model again")
    if not (directory / MARKER).is_file():
        problem = "is not a model directory" if directory.exists() else "does not exist"
        raise CheckpointError(f"{directory}: {problem} (no {MARKER}); train first, or give another one")
    return directory


def refuse_export(directory: Path) -> None:
    """Refuse a folder that another program computes.

    Raises:
        CheckpointError: It is one.
    """
    form = read_export_format(directory)
    if form in RUNTIMES:
        raise CheckpointError(f"{directory}: is an export for {form}; give the model that it was made from")


def read_export_format(directory: Path) -> str | None:
    """The format of an exported folder; None if it is none."""
    try:
        listed = read_json(check_file(directory / EXPORT_MARKER, directory))
    except (DataError, OSError):
        return None
    form = listed.get("format") if isinstance(listed, dict) else None
    return form if isinstance(form, str) else None


def load_model(
    directory: Path, device: torch.device | None = None, allowed_classes: Collection[str] = ()
) -> SavedModel:
    """Load a model directory, which may be untrusted.

    Args:
        directory: Folder written by `save_model`.
        device: Device for the weights; None is the CPU.
        allowed_classes: Dotted paths of classes that its config may use; importing one runs its module.

    Raises:
        CheckpointError: It is missing, incomplete, damaged or of another format, its parts do not match, or it uses a
            class that is not allowed.
        ConfigError: Its config is wrong.
    """
    check_model(directory)
    try:
        folder = read_folder(directory, directory / MARKER, directory / WEIGHTS, allowed_classes)
        config = folder.config
        _check_class(config.model.attention.score, directory / CONFIG, allowed_classes)
        vocabularies = folder.src_vocabulary, folder.tgt_vocabulary
        model = _build(config, vocabularies, directory / WEIGHTS)
    except OSError as error:
        raise CheckpointError(f"{error.filename}: cannot be read ({error.strerror}); the model is incomplete") from None
    except DataError as error:
        raise CheckpointError(*error.problems) from None
    model = model.to(device or torch.device("cpu")).eval()
    return SavedModel(directory, config, *vocabularies, folder.metadata, model)


def read_folder(directory: Path, marker: Path, weights: Path, allowed_classes: Collection[str] = ()) -> ModelFolder:
    """Read all of a folder but the weights, which are only checked to be a file of the folder.

    Args:
        directory: The folder.
        marker: Its file of metadata.
        weights: Its file of weights.
        allowed_classes: As for `load_model`.

    Raises:
        CheckpointError: It is of another format.
        ConfigError: Its config is wrong.
        DataError: A file is missing, damaged, too large or outside the folder.
        OSError: A file cannot be read.
    """
    metadata = read_json(marker)
    version = metadata.get("format_version") if isinstance(metadata, dict) else None
    if version != FORMAT_VERSION:
        writer = "the run that was exported" if version is None else "the nmt that wrote it"
        problem = f"model format {shorten(repr(version))}, this version reads {FORMAT_VERSION}; use {writer}"
        raise CheckpointError(f"{directory}: {problem}")
    config = read_config(directory / CONFIG, allowed_classes)
    check_file(weights, directory)
    _check_text(check_file(directory / TEXT, directory), weights)
    return ModelFolder(directory, config, *load_vocabularies(directory / TEXT), metadata)


def _check_class(score: str, path: Path, allowed: Collection[str]) -> None:
    if names_class(score) and score not in allowed:
        name = shorten(score)
        raise CheckpointError(
            "{path}: model.attention.score is the class {name}, whose code would run; if you trust it, allow it with "
            "{allowed}, or, for a parent, set it in your own config",
            path=path,
            name=name,
            allowed=Parameter("allowed_classes", [name]),
        )


def _check_text(folder: Path, weights: Path) -> None:
    """Reject text files that are large compared to the weights: a word's weights take far more than its letters."""
    limit = MIB + (weights.stat().st_size // 4 if weights.is_file() else 0)
    for name in TEXT_FILES:
        check_file(folder / name, folder, None if name == SEEN else limit)


def _build(config: Config, vocabularies: tuple[Vocabulary, Vocabulary], weights: Path) -> Seq2Seq:
    """Build the model and load its weights; memory is allocated only once the file is known to match."""
    sizes = [len(vocabulary) for vocabulary in vocabularies]
    with torch.device("meta"), _SkipInitialization():
        model = build_model(config.model, *sizes)
    read_weights(model, weights)
    if any(buffer.is_meta for buffer in model.buffers()):  # a custom class may have buffers that are not stored
        model = build_model(config.model, *sizes)
        read_weights(model, weights)
    return model


class _SkipInitialization(TorchFunctionMode):
    """Skips random initialisation: on the meta device it has no effect but takes 1.5 s of imports."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call all other functions unchanged."""
        if getattr(func, "__module__", None) == "torch.nn.init" or func in (Tensor.uniform_, Tensor.normal_):
            return args[0] if args else kwargs["tensor"]
        return func(*args, **(kwargs or {}))


def read_weights(model: nn.Module, path: Path) -> None:
    """Load the weights of a safetensors file into a model; tied weights stay tied.

    Args:
        model: A model on any device; on the meta device, memory is only needed for the weights.
        path: The file.

    Raises:
        CheckpointError: The file is missing or damaged, or its tensors do not match the model.
    """
    if not path.is_file():
        raise CheckpointError(f"{path}: missing; the model directory is incomplete")
    # The names of each tensor: tied weights are one tensor with several names, stored under one of them.
    wanted: dict[Tensor, list[str]] = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        wanted.setdefault(tensor, []).append(name)
    stored = _read_header(path)
    fault = _find_mismatch(wanted, stored)
    if fault:
        raise CheckpointError(f"{path}: weights do not match config and vocabulary: {fault}")
    weights: dict[str, Tensor] = {}
    with path.open("rb") as file:
        for tensor, names in wanted.items():
            value = torch.empty(tensor.shape, dtype=tensor.dtype)
            file.seek(stored[_stored_name(names, stored)].offset)
            file.readinto(value.numpy().reshape(-1).view(np.uint8).data)  # mapping the file would need twice the memory
            if isinstance(tensor, nn.Parameter):
                value = nn.Parameter(value, tensor.requires_grad)
            for name in names:
                weights[name] = value
    model.load_state_dict(weights, assign=True)


_TYPES = {torch.float32: "F32", torch.float64: "F64", torch.int64: "I64", torch.int32: "I32", torch.bool: "BOOL"}
_LENGTH_SIZE = 8
"""Bytes at the beginning of a safetensors file, which are the size of the header after them."""


class _Stored(NamedTuple):
    """A tensor in a safetensors file.

    Attributes:
        dtype: Its type, as in the header.
        shape: Its shape.
        offset: Place of its first byte in the file.
    """

    dtype: str
    shape: list[int]
    offset: int


def _read_header(path: Path) -> dict[str, _Stored]:
    """The stored tensors by name; the library checks that they match the file.

    Raises:
        CheckpointError: They do not match.
    """
    try:
        with path.open("rb") as file:
            size = int.from_bytes(file.read(_LENGTH_SIZE), "little")
            if size > MAX_HEADER:
                raise ValueError(f"a header of {size:,} bytes")
            header = json.loads(file.read(size))
        # Checked here, as a header may claim more than can be mapped.
        begin = _LENGTH_SIZE + size
        ends = [part["data_offsets"][1] for name, part in header.items() if name != "__metadata__"]
        if begin + max(ends, default=0) != path.stat().st_size:
            raise ValueError(f"{path.stat().st_size:,} bytes")
        stored = {}
        with safe_open(path, framework="pt") as checked:
            for name in checked.keys():  # noqa: SIM118
                part = checked.get_slice(name)
                offset = begin + header[name]["data_offsets"][0]
                stored[name] = _Stored(part.get_dtype(), part.get_shape(), offset)
        return stored
    except (SafetensorError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        reason = shorten(str(error))
        raise CheckpointError(f"{path}: damaged or truncated ({reason}); copy the model again") from None


def _stored_name(names: Sequence[str], stored: Collection[str]) -> str:
    """The name under which a tensor with these names is stored; the first of them if it is not stored."""
    return next((name for name in names if name in stored), names[0])


def _find_mismatch(wanted: Mapping[Tensor, list[str]], stored: Mapping[str, _Stored]) -> str:
    """The first difference between wanted and stored tensors; empty if there is none."""
    nothing: tuple[str, list[int]] = ("nothing", [])
    needed: dict[str, tuple[str, list[int]]] = {}
    for tensor, names in wanted.items():
        dtype = _TYPES.get(tensor.dtype, str(tensor.dtype))
        needed[_stored_name(names, stored)] = (dtype, list(tensor.shape))
    there = {name: (tensor.dtype, tensor.shape) for name, tensor in stored.items()}
    for name in sorted({*needed, *there}):
        dtype, shape = needed.get(name, nothing)
        stored_dtype, stored_shape = there.get(name, nothing)
        if (dtype, shape) != (stored_dtype, stored_shape):
            return f"{shorten(name)} should be {dtype} {shape}, found {stored_dtype} {shorten(str(stored_shape))}"
    return ""
