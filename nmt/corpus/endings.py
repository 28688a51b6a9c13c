"""Languages that the names of parallel files end in: `train.de` says German."""

import re
from collections.abc import Sequence
from pathlib import Path

from nmt.config import DataSection
from nmt.corpus.lines import UNPACK
from nmt.system.errors import DataError
from nmt.system.messages import Parameter
from nmt.text.languages import NAMES, base_language

AMBIGUOUS = (
    *("am", "an", "as", "be", "he", "id", "in", "is", "it", "lo", "may"),
    *("ms", "my", "no", "or", "sl", "so", "te", "to", "tr"),
)
"""Endings that also stand for something else, such as input, training or a number."""
WITHDRAWN = ("in", "iw", "ji", "jw", "mo")
"""Codes that languages had once."""
_NORWEGIAN = ("nb", "nn", "no")
"""Codes of which each is written for the others."""


def check_endings(paths: Sequence[Path], data: DataSection) -> None:
    """Refuse parallel files whose names end in the code of another language than the config says.

    Endings that are no codes of languages, such as .txt, say nothing, nor do those that also stand for something else,
    such as .in, unless the other file ends in a code.

    Args:
        paths: Two, four or six files, source and target in turn.
        data: Its languages are those of the files, in this order.

    Raises:
        DataError: An ending contradicts the config.
    """
    wanted = [_merge_norwegian(base_language(code)) for code in data.file_languages]
    for first in range(0, len(paths), 2):
        pair = paths[first : first + 2]
        codes = [find_language(path, wanted) for path in pair]
        endings = [
            None if _ending(path) in AMBIGUOUS and None in codes else code
            for path, code in zip(pair, codes, strict=True)
        ]
        if endings == wanted[::-1] and endings != wanted:
            src, tgt = map(_ending, pair)
            raise DataError(
                "{first} and {second}: end in .{src} and .{tgt}, but data.src_language is {src_language} and "
                "data.tgt_language {tgt_language}: give the files in the other order, or set {setting}",
                first=pair[0],
                second=pair[1],
                src=src,
                tgt=tgt,
                src_language=data.src_language,
                tgt_language=data.tgt_language,
                setting=_setting(src_language=src, tgt_language=tgt),
            )
        for name, path, there, code in zip(("src_language", "tgt_language"), pair, endings, wanted, strict=True):
            if there not in (None, code):
                ending = _ending(path)
                side = "source" if name == "src_language" else "target"
                raise DataError(
                    "{path}: ends in .{ending}, but data.{name} is {code}: give or rename the file of the {side}, or "
                    "set {setting}",
                    path=path,
                    ending=ending,
                    name=name,
                    code=getattr(data, name),
                    side=side,
                    setting=_setting(**{name: ending}),
                )


def find_language(path: Path, known: Sequence[str] = ()) -> str | None:
    """The language that the name of a file ends in; None if it names none.

    Args:
        path: The file, plain or compressed.
        known: Languages that count beside those with an English name in the list.
    """
    ending = _ending(path)
    parts = re.split("[-_]", ending)
    if len(parts) > 1 and all(part == part.lower() and base_language(part) in NAMES for part in parts):
        return None  # a pair of languages, as in corpus.de-en, or hardly to be told from one
    if ending in WITHDRAWN:
        return None
    language = _merge_norwegian(base_language(ending))
    return language if language in NAMES or language in known else None


def is_of_other_language(path: Path, code: str) -> bool:
    """True if the name of a file ends in the code of another language."""
    wanted = _merge_norwegian(base_language(code))
    return _ending(path) not in AMBIGUOUS and find_language(path, [wanted]) not in (None, wanted)


def _ending(path: Path) -> str:
    """The last part of a name, without the suffix of a compression."""
    name = path.stem if path.suffix.lower() in (*UNPACK, ".zip") else path.name
    return Path(name).suffix.removeprefix(".")


def _merge_norwegian(language: str) -> str:
    return "no" if language in _NORWEGIAN else language


def _setting(**codes: str) -> Parameter:
    return Parameter("overrides", {f"data.{name}": code for name, code in codes.items()})
