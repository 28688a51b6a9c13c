"""Subtitles of SubRip: numbers, times and text."""

from nmt.translation.document import keep_as_is
from nmt.translation.files.encoded_text import EncodedText, decode
from nmt.translation.files.file_format import FileFormat, Task
from nmt.translation.files.subtitles import divide_cues, read_cues


def read(content: bytes, task: Task) -> EncodedText:
    """Read subtitles.

    Raises:
        DataError: It has no cue, or is not UTF-8.
    """
    text, encoding = decode(content, task)
    cues = list(read_cues(text, ends_at_blank_line=False))
    if text.strip() and not cues:
        raise task.refuse("has no line with times, such as 00:00:01,000 --> 00:00:02,500; it is no SubRip file")
    return EncodedText(divide_cues(text, cues, keep_as_is, keep_as_is), task, encoding)


SRT = FileFormat("srt", (".srt",), "a SubRip file", read)
