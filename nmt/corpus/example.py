"""A sentence with its references, and files of them."""

import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from nmt.system.errors import DataError, shorten
from nmt.system.files import check_file, write_text
from nmt.system.limits import MAX_EXAMPLES, MIB

MAX_EXAMPLE = 4 * MIB
"""Bytes of an example with its references."""


class Example(NamedTuple):
    """A sentence with all its reference translations."""

    src: str
    references: tuple[str, ...]


def write_examples(path: Path, examples: Iterable[Example]) -> None:
    """Write raw sentences with their references, one JSON object per line."""
    lines = (json.dumps({"src": e.src, "references": e.references}, ensure_ascii=False) for e in examples)
    write_text(path, "".join(f"{line}\n" for line in lines))


def read_examples(path: Path) -> list[Example]:
    """Read the file of `write_examples`.

    Raises:
        DataError: The file is missing or damaged.
    """

    try:
        with check_file(path, path.parent, MAX_EXAMPLES).open("rb") as file:
            return [_parse_example(line) for line in iter(partial(file.readline, MAX_EXAMPLE + 1), b"")]
    except FileNotFoundError:
        raise DataError(f"{path}: missing; there is no such split, or the directory is incomplete") from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(f"{path}: damaged ({shorten(str(error))}); preprocess again") from None


def _parse_example(line: bytes) -> Example:
    if len(line) > MAX_EXAMPLE:
        raise ValueError(f"an example of more than {MAX_EXAMPLE:,} bytes")
    item = json.loads(line.decode("utf-8"))
    src = item["src"]
    references = item["references"]
    if not (isinstance(references, list) and references and all(isinstance(text, str) for text in (src, *references))):
        raise ValueError("not a source and its references")
    return Example(src, tuple(references))
