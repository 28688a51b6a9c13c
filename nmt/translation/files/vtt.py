"""Subtitles of the web (WebVTT): cues with settings, between notes, styles and regions, which stay."""

import html

from nmt.translation.document import escape_markup
from nmt.translation.files.encoded_text import EncodedText, decode
from nmt.translation.files.file_format import FileFormat, Task
from nmt.translation.files.subtitles import divide_cues, read_cues


def read(content: bytes, task: Task) -> EncodedText:
    """Read subtitles.

    Raises:
        DataError: It does not begin with WEBVTT, or is not UTF-8.
    """
    text, encoding = decode(content, task)
    if not text.removeprefix("\ufeff").startswith("WEBVTT"):
        raise task.refuse("does not begin with WEBVTT; it is no WebVTT file", 1)
    cues = list(read_cues(text, ends_at_blank_line=True))
    return EncodedText(divide_cues(text, cues, html.unescape, escape_markup), task, encoding)


VTT = FileFormat("vtt", (".vtt",), "a WebVTT file", read)
