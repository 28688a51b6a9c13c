"""The marker of a data directory: its properties, and the checksums that identify its content."""

import hashlib
import itertools
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import Field

from nmt.system.errors import DataError
from nmt.system.files import sha256, write_json
from nmt.system.messages import Message, Parameter
from nmt.text.processor import TEXT
from nmt.text.settings import read_settings

FORMAT_VERSION = 1
MARKER = "data.json"
CONFIG = "config.yaml"


@dataclass(frozen=True)
class ParentRecord:
    """The trained model that data was prepared for, as `parent` of its config.

    Attributes:
        run: Run or model directory, as the config names it.
        weights: SHA-256 checksum of its weights at that time.
    """

    run: str
    weights: str


@dataclass(frozen=True)
class SourceFile:
    """A file that data was prepared from.

    Attributes:
        size: Its bytes, as they are on the disk, at that time.
        sha256: SHA-256 checksum of them.
    """

    size: Annotated[int, Field(strict=True, ge=0)]
    sha256: str


@dataclass(frozen=True)
class Marker:
    """The content of `data.json`, which makes a folder a data directory.

    Attributes:
        format_version: Format of the directory.
        pairs: Pairs of each split; in training, without copies.
        sha256: SHA-256 checksums, by name, of the files that training depends on; empty if never computed.
        copies: Copies of training pairs, in another form (`data.augment`) or repeated, which come after them.
        parent: The model that the data was prepared for; None without one, or if it was a data directory.
        sources: The files that the text was read from, by path as in the config; empty if never recorded.
    """

    format_version: int
    pairs: Mapping[str, int] = field(default_factory=dict)
    sha256: Mapping[str, str] = field(default_factory=dict)
    copies: Annotated[int, Field(strict=True, ge=0)] = 0
    parent: ParentRecord | None = None
    sources: Mapping[str, SourceFile] = field(default_factory=dict)


def read_marker(path: Path) -> Marker:
    """Read the marker of a data directory.

    Raises:
        DataError: It is not a data directory, is damaged, or of another format version.
    """
    check_is_data(path, Message("run nmt preprocess first, or give another one as {data}", data=Parameter("data")))
    marker = read_settings(path / MARKER, Marker)
    if marker.format_version != FORMAT_VERSION:
        version = f"data format {marker.format_version}, this version reads {FORMAT_VERSION}"
        raise DataError(f"{path}: {version}; preprocess again")
    return marker


def write_marker(path: Path, marker: Marker) -> None:
    """Write the marker of a data directory; copies, a parent or sources that it does not have are not named."""
    write_json(path / MARKER, {name: value for name, value in asdict(marker).items() if value not in (0, None, {})})


def check_is_data(path: Path, advice: str | Message) -> None:
    """Reject a folder that is not a data directory.

    Raises:
        DataError: It has no marker.
    """
    if not (path / MARKER).is_file():
        state = "is not a data directory" if path.exists() else "does not exist"
        raise DataError("{path}: {state} (no {file}); {advice}", path=path, state=state, file=MARKER, advice=advice)


def compute_checksums(directory: Path) -> dict[str, str]:
    """SHA-256 checksums of training and validation data, vocabularies and tokenizers, by file name."""
    names = ["train.*.npy", "valid.*.npy", "valid.jsonl", f"{TEXT}/*"]
    return {path.name: sha256(path) for path in sorted(itertools.chain.from_iterable(map(directory.glob, names)))}


def combine_checksums(checksums: Mapping[str, str]) -> str | None:
    """One SHA-256 checksum of many, which identifies a data directory; None if there are none."""
    return hashlib.sha256(json.dumps(dict(checksums), sort_keys=True).encode()).hexdigest() if checksums else None
