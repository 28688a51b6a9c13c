"""The formats of exported models; the module of a format has its name."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from nmt.config import Config, dump_config
from nmt.config.messages import suggest
from nmt.models.card import CARD, read_card
from nmt.models.lookup import find_data, path_from
from nmt.models.storage import CONFIG, SavedModel
from nmt.runtimes.folder import METADATA
from nmt.system.errors import CheckpointError, ConfigError
from nmt.system.files import check_file, read_bytes, write_json, write_text
from nmt.system.limits import MAX_TEXT_FILE
from nmt.text.processor import TEXT, copy_text_files
from nmt.training.findings import Finding

FORMATS = ("ctranslate2", "onnx", "argos", "hub", "html")


class Obstacle(NamedTuple):
    """A setting that keeps a model from being exported.

    Attributes:
        key: Its dotted path.
        text: The reason, and the value to set instead.
    """

    key: str
    text: str


def find_other_values(config: Config, program: str, possible: Mapping[str, Sequence[object]]) -> Iterator[Obstacle]:
    """Find which choices a program does not have. A key that the model's kinds lack is none, and null is allowed.

    Args:
        config: The config.
        program: The program.
        possible: The values that it has, by dotted path.
    """
    for key, known in possible.items():
        value: Any = config
        for name in key.split("."):
            value = getattr(value, name, None)
        unused = config.model.decoder.own_attention and key.startswith("model.attention.")
        if value is not None and value not in known and not unused:
            names = ["null" if value is None else str(value) for value in known]
            yield Obstacle(key, f"{value} does not run in {program}; set {' or '.join(names)}")


@dataclass(frozen=True)
class Format:
    """The properties of a format, which its module has as `FORMAT`.

    Attributes:
        write: Writes a model without obstacles, whose weights get a number format, into an empty folder, or as a new
            file; others follow the number format and stand beside it. It yields differences in the treatment
            of text by the other program: a sentence each.
        find_obstacles: Finds the settings that keep the model of a config from being exported.
        packages: Packages that it imports, by the name under which they are installed; all of the extra `export`.
        quantizations: Number formats of weights, the default first; `none` is float32.
        suffix: Suffix of the file that it writes; empty if it writes a folder.
        several: True if it can hold several models, side by side.
        protects: True if it can hold names and terms of a user, which `write` gets as `protection`.
    """

    write: Callable[..., Iterator[str]]
    find_obstacles: Callable[[Config], Iterable[Obstacle]]
    packages: Sequence[str] = ()
    quantizations: Sequence[str] = ("none",)
    suffix: str = ""
    several: bool = False
    protects: bool = False


def check_format(name: str) -> str:
    """The name of a format, if there is one of that name.

    Raises:
        ConfigError: There is none.
    """
    if name not in FORMATS:
        raise ConfigError(f"{name}: no such export format; known: {', '.join(FORMATS)}{suggest(name, FORMATS)}")
    return name


def find_format(name: str) -> Format:
    """The format of a name.

    Raises:
        ConfigError: There is none.
    """
    check_format(name)
    form: Format = import_module(f"nmt.exporting.{name}").FORMAT
    return form


def check_export(config: Config, export_format: str) -> list[Finding]:
    """Report whether the model of a config can be exported: a problem for each obstacle, or that there is none.

    Raises:
        ConfigError: There is no such format.
    """
    problems = [Finding(key, False, text) for key, text in find_format(export_format).find_obstacles(config)]
    return problems or [Finding(f"export to {export_format}", True, "no setting keeps the model from it")]


def describe_text(model: SavedModel, program: str) -> Iterator[str]:
    """Limits of a program that has only the model's pieces or words of a text, two sentences each."""
    for step in _text_steps(model):
        yield f"{step} {program} does not do this."


def _text_steps(model: SavedModel) -> Iterator[str]:
    processor = model.load_processor()
    source, target = processor.tokenizers
    if source.kind != "subword" or target.kind != "subword":
        yield f"Sources are split into tokens by {source.kind}, and tokens of translations joined by {target.kind}."
    if source.lowercase:
        yield f"Sources are lower-cased{', I as ı and İ as i' if source.casing else ''}."
    if steps := [step.replace("_", " ") for step in processor.normalizer.steps if step != "blanks"]:
        yield f"Sources are repaired first: {', '.join(steps)}."
    yield "Emoji and lines without letters are set apart; lines in capitals and English titles are read as sentences."


def write_for_nmt(model: SavedModel, path: Path, quantization: str) -> None:
    """Write what `nmt` needs to read an exported folder again: config, text, and the metadata of the model."""
    copy_text_files(model.text, path / TEXT)
    decode = model.config.decode.model_copy(update={"precision": "float32"})  # the export has a number format
    write_text(path / CONFIG, dump_config(model.config.model_copy(update={"decode": decode})))
    metadata = {**model.metadata, "quantization": quantization}
    with suppress(CheckpointError):  # its data is no longer there
        data = find_data(model)
        metadata["data"] = {**metadata["data"], "path": path_from(path, data)}
    write_json(path / METADATA, metadata)


def write_usage(model: SavedModel, path: Path, usage: str, program: str) -> Iterator[str]:
    """Write SentencePiece's models, and a README: how to translate, what the program does not do, and the model card.

    Args:
        model: The model.
        path: The exported folder.
        usage: Beginning of the README, with fields for `config` and `remarks`.
        program: The program that translates.

    Yields:
        See `Format.write`.
    """
    names = (("src", "source"), ("tgt", "target"))
    for (side, name), tokenizer in zip(names, model.load_processor().tokenizers, strict=True):
        if tokenizer.kind == "subword":
            pieces = check_file(model.text / f"{side}.subwords.model", model.text)
            (path / f"{name}.spm").write_bytes(read_bytes(pieces, MAX_TEXT_FILE, model.text))
    remarks = list(describe_text(model, program))
    lines = "\n".join(f"- {remark}" for remark in remarks)
    write_text(path / CARD, usage.format(config=model.config, remarks=lines) + read_card(model.path))
    yield from remarks
