"""Catalogues of messages of GNU gettext (PO): a translation is marked as fuzzy until a person has read it."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from nmt.system.errors import shorten
from nmt.translation.document import Part
from nmt.translation.files.encoded_text import EncodedText, decode
from nmt.translation.files.file_format import Edit, FileFormat, Task, edit
from nmt.translation.files.plural_forms import plural_forms
from nmt.translation.files.strings import divide_string

_CHARSET = re.compile(rb'^"Content-Type:[^"\n]*?charset=([^\\"\s;]*)', re.MULTILINE | re.IGNORECASE)
_LINE = re.compile(r'(?:(msgctxt|msgid_plural|msgid|msgstr(?:\[\d+\])?)\s*)?"((?:[^"\\]|\\.)*)"')
_NUMBER_OF_FORMS = re.compile(r"nplurals\s*=\s*([^;\s]*)")
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{2})|(.))")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_ESCAPED = {"\\": "\\\\", '"': '\\"', **{character: f"\\{letter}" for letter, character in _ESCAPES.items()}}
_TO_ESCAPE = re.compile('[\\\\"\a\b\t\n\v\f\r]')
MAX_FORMS = 10
TEMPLATE = ("CHARSET", "INTEGER")
"""Words of a template in place of an encoding and of the number of plural forms."""


@dataclass
class Entry:
    """A message.

    Attributes:
        begin: Its first character that is no comment or flag of a person: where a line with flags may be inserted.
        flags: Where its line of flags begins behind `#,`; None if it has none.
        is_fuzzy: True if it is marked so.
        texts: Its texts by keyword: msgctxt, msgid, msgid_plural, msgstr, msgstr[0], ...
        places: First and last character of each keyword with its text.
    """

    begin: int = -1
    flags: int | None = None
    is_fuzzy: bool = False
    texts: dict[str, str] = field(default_factory=dict)
    places: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def translations(self) -> dict[str, str]:
        """Its translations by keyword."""
        return {keyword: text for keyword, text in self.texts.items() if keyword.startswith("msgstr")}


def read(content: bytes, task: Task) -> EncodedText:
    """Read a catalogue.

    polib reads catalogues too, but wraps the lines of all messages anew when it writes: each text is changed in its
    place here.

    Raises:
        DataError: It is no catalogue, or its header is wrong.
    """
    declared = _CHARSET.search(content)
    charset = declared[1].decode("ascii", "replace") if declared else ""
    encoding = "utf-8" if charset in ("", *TEMPLATE) else charset
    try:
        codecs.lookup(encoding)
    except LookupError:
        raise task.refuse(
            f"its header has charset={shorten(charset)}, which is unknown; convert it to UTF-8, and write charset=UTF-8"
        ) from None
    text, encoding = decode(content, task, encoding)
    line_end = "\r\n" if "\r\n" in text else "\n"
    entries = list(_read_entries(text, task))
    is_header = [entry.texts["msgid"] == "" and "msgctxt" not in entry.texts for entry in entries]
    headers = [entry for entry, header in zip(entries, is_header, strict=True) if header]
    messages = [entry for entry, header in zip(entries, is_header, strict=True) if not header]
    number_of_forms = 0
    edits: list[Edit] = []
    if any("msgid_plural" in entry.texts for entry in messages):
        number_of_forms = _number_of_forms(headers[:1], task)
    for header in headers[:1]:
        edits += _edit_header(text, header, task, line_end, needs_forms=number_of_forms > 0)
    for entry in messages:
        edits += _edit_message(text, entry, number_of_forms, task, line_end)
    return EncodedText(edit(text, edits), task, encoding)


def _read_entries(text: str, task: Task) -> Iterator[Entry]:
    """The messages of a catalogue; obsolete ones are comments.

    Raises:
        DataError: A line is no line of a catalogue.
    """
    entry = Entry()
    keyword = ""
    position = 0
    for number, line in enumerate(re.findall(r"[^\n]*\n|[^\n]+$", text), 1):
        begin = position + len(line) - len(line.lstrip())
        stripped = line.strip().removeprefix("\ufeff")
        match = _LINE.fullmatch(stripped)
        starts_anew = stripped.startswith("#") or (match and match[1] in ("msgctxt", "msgid"))
        if starts_anew and entry.translations:
            yield entry
            entry = Entry()
            keyword = ""
        if stripped.startswith("#,"):
            entry.flags = begin + len("#,")
            entry.is_fuzzy = "fuzzy" in re.split(r"[,\s]+", stripped)
        elif stripped.startswith("#|") and entry.begin < 0:
            entry.begin = begin
        elif match:
            if entry.begin < 0:
                entry.begin = begin
            _add_text(entry, match[1] or keyword, _unescape(match[2]), begin, begin + len(line.strip()), task, number)
            keyword = match[1] or keyword
        elif stripped and not stripped.startswith("#"):
            raise task.refuse(f"{shorten(stripped)!r} is no line of a PO file", number)
        position += len(line)
    if entry.translations:
        yield entry
    elif entry.texts:
        raise task.refuse("the last message has no msgstr; the file is incomplete")


def _add_text(entry: Entry, keyword: str, text: str, begin: int, end: int, task: Task, number: int) -> None:
    """Add a line of a text to a message.

    Raises:
        DataError: It belongs to no keyword, or to none that may stand there.
    """
    is_translation = keyword.startswith("msgstr")
    if not keyword or (is_translation and "msgid" not in entry.texts):
        raise task.refuse("a text without its msgid", number)
    first, _ = entry.places.get(keyword, (begin, end))
    entry.places[keyword] = (first, end)
    entry.texts[keyword] = entry.texts.get(keyword, "") + text


def _number_of_forms(headers: Sequence[Entry], task: Task) -> int:
    """Number of plural forms: that of the header, or of the language if the header states none.

    Raises:
        DataError: The header states no number.
    """
    stated = _NUMBER_OF_FORMS.search(headers[0].texts.get("msgstr", "")) if headers else None
    number, forms = plural_forms(task.target)
    if stated is None or stated[1] in TEMPLATE:
        return number
    if not (stated[1].isdecimal() and 1 <= int(stated[1][:9]) <= MAX_FORMS):
        raise task.refuse(f"its header has nplurals={shorten(stated[1])}; write Plural-Forms: {forms}")
    return int(stated[1])


def _edit_header(text: str, header: Entry, task: Task, line_end: str, *, needs_forms: bool) -> Iterator[Edit]:
    """Fill in the open fields of a template: the encoding, the language and the plural forms."""
    begin, end = header.places["msgstr"]
    old = text[begin:end]
    new = re.sub(r"(charset=)CHARSET", r"\1UTF-8", old)
    new = re.sub(r'("Language: *)(?=\\n")', lambda match: f"{match[1].rstrip()} {task.target}", new)
    _, forms = plural_forms(task.target)
    new = re.sub(r"nplurals=INTEGER; *plural=EXPRESSION;?", lambda match: forms, new)
    if needs_forms and "nplurals" not in new:
        new += f'{line_end}"Plural-Forms: {forms}\\n"'
    if new != old:
        yield Edit(begin, end, [new])


def _edit_message(text: str, entry: Entry, number_of_forms: int, task: Task, line_end: str) -> Iterator[Edit]:
    """Translate a message, unless it has a translation."""
    there = entry.translations
    is_done = all(there.values()) and not task.retranslate
    if is_done or not entry.texts["msgid"]:
        return
    sources = {"msgstr": entry.texts["msgid"]}
    if "msgid_plural" in entry.texts:
        has_some = any(there.values())
        number = max(number_of_forms, len(there)) if has_some else number_of_forms
        sources = {f"msgstr[{form}]": entry.texts["msgid_plural"] for form in range(number)}
        if number > 1:
            sources["msgstr[0]"] = entry.texts["msgid"]
    parts: list[Part] = []
    for keyword, source in sources.items():
        if parts:
            parts.append(line_end)
        if there.get(keyword) and not task.retranslate:
            begin, end = entry.places[keyword]
            parts.append(text[begin:end])
        else:
            parts += _write(keyword, source, line_end)
    if all(isinstance(part, str) for part in parts):
        return  # nothing in it is translated: an empty msgstr stands for the message itself
    if not entry.is_fuzzy:
        if entry.flags is None:
            yield Edit(entry.begin, entry.begin, [f"#, fuzzy{line_end}"])
        else:
            yield Edit(entry.flags, entry.flags, [" fuzzy,"])
    places = [entry.places[keyword] for keyword in there]
    yield Edit(min(begin for begin, _ in places), max(end for _, end in places), parts)


def _write(keyword: str, source: str, line_end: str) -> list[Part]:
    """A keyword with its text; each line of a text with several is a line of the file."""
    has_lines = "\n" in source.rstrip("\n")
    lead = f'{keyword} ""{line_end}"' if has_lines else f'{keyword} "'
    body = source[:-1] if source.endswith("\n") else source
    last = '\\n"' if source.endswith("\n") else '"'
    return [lead, *divide_string(body, _escape, f'\\n"{line_end}"'), last]


def _unescape(text: str) -> str:
    return _ESCAPE.sub(_character, text)


def _character(match: re.Match[str]) -> str:
    octal, hexadecimal, letter = match.groups()
    if octal:
        return chr(int(octal, 8))
    if hexadecimal:
        return chr(int(hexadecimal, 16))
    return _ESCAPES.get(letter, letter)


def _escape(text: str) -> str:
    return _TO_ESCAPE.sub(lambda match: _ESCAPED[match[0]], text)


PO = FileFormat("po", (".po", ".pot"), "a PO file", read)
