"""A user's dictionary of translations for unknown words."""

from collections.abc import Mapping
from pathlib import Path

from nmt.system.errors import DataError, shorten
from nmt.text.glossary import read_entries
from nmt.text.processor import TextProcessor


def read_dictionary(path: Path, processor: TextProcessor) -> Mapping[str, str]:
    """Read a dictionary: a source word, a tab and its translation on each line; empty lines are skipped.

    Args:
        path: UTF-8 text.
        processor: The text processor of the model that will use it.

    Returns:
        Translations by source word as the model reads it: normalised, and in lower case if the model is.

    Raises:
        DataError: A line is malformed or contradicts an earlier one.
        OSError: The file cannot be read.
    """
    entries: dict[str, str] = {}
    for number, line in read_entries(path):
        fields = [" ".join(field.split()) for field in line.split("\t")]
        if len(fields) != 2 or not all(fields):
            raise DataError(
                f"{path}, line {number}: {shorten(repr(line))} is not an entry; write a source word, a tab and its "
                "translation"
            )
        source = processor.src_tokenizer.fold(processor.normalizer(fields[0]))
        if entries.setdefault(source, fields[1]) != fields[1]:
            word, here, before = (shorten(repr(text)) for text in (*fields, entries[source]))
            raise DataError(f"{path}, line {number}: {word} is {here} here and {before} before; keep one of them")
    return entries
