"""Translation memories in TMX 1.4, the exchange format of translators' programs, unit by unit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.parsers import expat

from nmt.corpus.lines import open_unpacked
from nmt.system.errors import DataError
from nmt.system.limits import MAX_LINE

PIECE = 1 << 16  # bytes
NATIVE = {"bpt", "ept", "it", "ph", "ut"}
"""Elements with codes of the program that wrote the text, which are not text."""


class _Reader:
    """Collects the texts of each unit by language; entities, which can make a small file huge, are refused.

    Attributes:
        units: Complete units, as texts by language, until they are taken.
        parser: What the file is fed to.
    """

    def __init__(self, path: Path) -> None:
        self.units: list[dict[str, str]] = []
        self._path, self._language, self._open = path, "", list[str]()
        self._texts: dict[str, list[str]] = {}
        self._size = 0
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler, self.parser.EndElementHandler = self._start, self._end
        self.parser.CharacterDataHandler, self.parser.EntityDeclHandler = self._add, self._refuse

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._open.append(name)
        if name == "tu":
            self._texts, self._size = {}, 0
        elif name == "tuv":
            self._language = (attributes.get("xml:lang") or attributes.get("lang") or "").casefold()
        elif name == "seg":
            self._texts[self._language] = []

    def _end(self, name: str) -> None:
        self._open.pop()
        if name == "tu":
            self.units.append({language: " ".join("".join(text).split()) for language, text in self._texts.items()})

    def _add(self, text: str) -> None:
        if "seg" in self._open and NATIVE.isdisjoint(self._open):
            self._texts[self._language].append(text)
            self._size += len(text)
            if self._size > MAX_LINE:
                raise self.fail("a unit longer than a megabyte; write one sentence per unit")

    def _refuse(self, name: str, *_: Any) -> None:
        raise self.fail(f"declares the entity {name!r}, which a translation memory does not need; write out its text")

    def fail(self, fault: str) -> DataError:
        """An error at the current line."""
        return DataError(f"{self._path}:{self.parser.CurrentLineNumber}: {fault}")


def read_units(path: Path) -> Iterator[dict[str, str]]:
    """Texts of each translation unit by language, `en` or `en-gb`, in lower case; spaces are single.

    Raises:
        DataError: The file cannot be read, is not XML, or declares entities.
    """
    reader = _Reader(path)
    with open_unpacked(path) as file:
        piece: bytes | None = None
        while piece != b"":
            piece = file.read(PIECE)
            try:
                reader.parser.Parse(piece, not piece)
            except expat.ExpatError as error:
                raise reader.fail(f"not XML ({expat.ErrorString(error.code)}); export it as TMX again") from None
            yield from reader.units
            reader.units = []
