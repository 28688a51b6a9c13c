"""Subtitles: a sentence that goes on in the next line or cue is translated as one, and divided again in proportion."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from nmt.translation.document import Document
from nmt.translation.running_text import Piece, divide_text, match_tags

_CLOCK = r"(?:(\d+):)?(\d{1,2}):(\d{1,2})(?:[.,](\d{1,3}))?"
TIME = re.compile(rf"\s*{_CLOCK}[ \t]*-->[ \t]*{_CLOCK}")
"""The line of a cue with its times; behind them are settings, which stay."""
LONGEST = 200
"""Characters from which a sentence does not go on in the next line: some subtitles have no punctuation at all."""
PAUSE = 3.0
"""Seconds between two cues from which no sentence goes on."""
_TAG = re.compile(r"<(/?)([A-Za-z]*)[^<>\n]*>|\{\\[^{}\n]*\}")
_END = re.compile(r"[.!?:;\u2026\u3002\uff01\uff1f\u061f\u0964\u266a\u266b\])]['\"\u2019\u201d\u00bb\u203a)]*\s*$")
_BEGIN = re.compile(r"\s*(?:[-\u2010-\u2015]\s*|[\[(\u266a\u266b])")
_DASH = re.compile(r"\s*[-\u2010-\u2015]\s*")


@dataclass
class Cue:
    """A text that is shown for some time.

    Attributes:
        begin: When it appears, in seconds.
        end: When it disappears.
        lines: The lines of its text, each with its first character in the file and without its line end.
    """

    begin: float
    end: float
    lines: list[tuple[int, str]] = field(default_factory=list)


def read_cues(text: str, ends_at_blank_line: bool) -> Iterator[Cue]:
    """The cues of a file.

    pysubs2 reads them too, but drops settings, styles and notes when it writes: the text is changed in its place here.

    Args:
        text: The file.
        ends_at_blank_line: True if a blank line ends a cue; otherwise it may be one of its lines, and the number of the
            next cue ends it.
    """
    cue: Cue | None = None
    position = 0
    for line in re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$", text):
        times = TIME.match(line)
        if times:
            if cue is not None:
                _drop_number(cue)
                yield cue
            cue = Cue(_seconds(times.groups()[:4]), _seconds(times.groups()[4:]))
        elif cue is not None and (line.strip() or not ends_at_blank_line):
            cue.lines.append((position, line.rstrip("\r\n")))
        elif cue is not None:
            yield cue
            cue = None
        position += len(line)
    if cue is not None:
        yield cue


def _seconds(parts: Sequence[str | None]) -> float:
    hours, minutes, seconds, fraction = parts
    return 3600 * int(hours or 0) + 60 * int(minutes or 0) + float(f"{seconds}.{fraction or 0}")


def _drop_number(cue: Cue) -> None:
    """Take the number of the next cue, which stands in front of its times, from the lines of a cue."""
    if cue.lines and cue.lines[-1][1].strip().isdecimal():
        cue.lines.pop()


def divide_cues(
    text: str, cues: Sequence[Cue], unescape: Callable[[str], str], escape: Callable[[str], str]
) -> Document:
    """The file as a document.

    Args:
        text: The file.
        cues: Its cues, in order.
        unescape: Reads a text as it is written in a cue.
        escape: Writes a text so.
    """
    pieces: list[Piece] = []
    position = 0
    length = 0  # characters of the sentence up to here
    before = ""
    end = float("inf")
    for cue in cues:
        is_near = cue.begin - end <= PAUSE
        for first, line in cue.lines:
            visible = _TAG.sub("", line)
            if not visible.strip():
                continue
            between = text[position:first]
            is_apart = "-->" not in between and between.count("\n") > 1  # a blank line in the cue
            goes_on = (
                is_near
                and not is_apart
                and 0 < length < LONGEST
                and any(map(str.isalpha, before))
                and not _END.search(before)
                and not _BEGIN.match(visible)
            )
            pieces.append(Piece(between, "break" if goes_on else "block"))
            length = len(visible) + (length if goes_on else 0)
            pieces += _pieces(line, unescape)
            position = first + len(line)
            before = visible
            is_near = True  # the next line of the same cue
        end = cue.end
    pieces.append(Piece(text[position:], "block"))
    match_tags(pieces)
    return Document(divide_text(pieces, escape))


def _pieces(line: str, unescape: Callable[[str], str]) -> Iterator[Piece]:
    """A line of a cue; the dash of a speaker and tags in front of the text are no part of it."""
    position = 0
    has_text = False
    dash = _DASH.match(line)
    if dash:
        yield Piece(dash[0], "block")
        position = dash.end()
    for match in _TAG.finditer(line, position):
        text = line[position : match.start()]
        if text:
            yield Piece(unescape(text), "text", text)
            has_text = has_text or bool(text.strip())
        name = (match[2] or "").lower()
        if name:
            yield Piece(match[0], "end" if match[1] else "start", name=name)
        else:
            yield Piece(match[0], "single" if has_text else "block")
        position = match.end()
    if line[position:]:
        yield Piece(unescape(line[position:]), "text", line[position:])
