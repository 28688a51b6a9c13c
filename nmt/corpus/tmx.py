"""Translation memories in TMX 1.4, the exchange format of translators' programs, unit by unit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element
from xml.parsers.expat import ErrorString

from nmt.corpus.lines import open_unpacked
from nmt.system.errors import DataError
from nmt.system.limits import MAX_LINE

LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
NATIVE = {"bpt", "ept", "it", "ph", "ut"}
"""Elements with codes of the program that wrote the text, which are not text."""


def read_units(path: Path) -> Iterator[dict[str, str]]:
    """Texts of each translation unit by language, `en` or `en-gb`, in lower case; spaces are single.

    Nothing outside the file is read, and expat limits how far entities can make a small file large.

    Raises:
        DataError: The file cannot be read, is not XML, or has a unit that is too long.
    """
    above: list[Element] = []
    with open_unpacked(path) as file:
        try:
            for event, element in ElementTree.iterparse(file, ("start", "end")):
                if event == "start":
                    above.append(element)
                    continue
                above.pop()
                if element.tag == "tu":
                    yield _texts(element, path)
                    for parent in above[-1:]:
                        parent.clear()  # else all units would stay in memory
        except ElementTree.ParseError as error:
            reason = f"not XML ({ErrorString(error.code)})"
            raise DataError(f"{path}:{error.position[0]}: {reason}; export it as TMX again") from None


def _texts(unit: Element, path: Path) -> dict[str, str]:
    texts = {
        (variant.get(LANGUAGE) or variant.get("lang") or "").casefold(): _text(segment)
        for variant in unit.iterfind("tuv")
        for segment in variant.iterfind("seg")
    }
    if sum(map(len, texts.values())) > MAX_LINE:
        raise DataError(f"{path}: has a unit longer than a megabyte; write one sentence per unit")
    return {language: " ".join(text.split()) for language, text in texts.items()}


def _text(element: Element) -> str:
    """The text in an element, without codes of other programs."""
    below = (_text(child) + (child.tail or "") for child in element)
    return "" if element.tag in NATIVE else (element.text or "") + "".join(below)
