"""Mojibake: text that was decoded in another encoding than its own, recognised without a list of spoilt words.

UTF-8 that was read as something else can be read back: its characters, as bytes of that encoding, are UTF-8 again,
which ordinary text hardly ever is. Text of another encoding that was read as Latin-1 or the like shows in characters
that no language has together, or not within a word.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import cache
from itertools import pairwise

from nmt.text.normalization import WINDOWS_1252, decode_windows_1252

_SIGNS = "".join(WINDOWS_1252.values())
_CONTINUATIONS = "".join(map(chr, range(0x80, 0xC0))) + _SIGNS
_NEXT = f"[{re.escape(_CONTINUATIONS)}]"  # the second or a later byte of a character, as a character of its own
_SURELY_SPOILT = re.compile(
    rf"(?<![A-ZÀ-Þ])[ÂÃ]{_NEXT}|â[€\x80„\x84‚\x82]{_NEXT}|ð[Ÿ\x9f]{_NEXT}|(?:[à-ï]{_NEXT}{_NEXT}){{2}}"
)
_PERHAPS_SPOILT = re.compile(rf"(?<![A-ZÀ-Þ])[Ä-ÖØ-Þ]{_NEXT}")

_WESTERN = "WINDOWS-1252"
_OF_ONE_BYTE = {
    "WINDOWS-1251": "cp1251",
    "MACINTOSH": "mac_roman",
    "CP437": "cp437",
    "CP850": "cp850",
    "WINDOWS-1250": "cp1250",
    "ISO-8859-2": "iso8859_2",
    "ISO-8859-5": "iso8859_5",
    "CP852": "cp852",
    "CP866": "cp866",
    "KOI8-R": "koi8_r",
    "WINDOWS-1253": "cp1253",
    "WINDOWS-1254": "cp1254",
    "WINDOWS-1255": "cp1255",
    "WINDOWS-1256": "cp1256",
    "WINDOWS-1257": "cp1257",
    "WINDOWS-1258": "cp1258",
    "ISO-8859-15": "iso8859_15",
    "MAC-CYRILLIC": "mac_cyrillic",
    "CP874": "cp874",
}
"""Encodings with a byte a character as iconv names them, and as Python does."""
_OF_SEVERAL_BYTES = {"GBK": "gbk", "CP932": "cp932", "BIG5": "big5", "CP949": "cp949"}
_FEWEST_WIDE = 4
"""Fewest characters of UTF-8 that are no chance in Chinese, Japanese or Korean text: one in ten syllables looks so."""
_FEWEST_SMALL = 5
"""Fewest characters of UTF-8 that are no chance if they look like a word of small letters, such as Thai or Russian."""
_MOST_OTHERS = 0.25
"""Maximum share of characters above ASCII that do not belong to UTF-8 that was read in another encoding."""
_BEFORE_LETTERS = "«»‹›„“”‚‘’–—…¡¿‛‟\u00a0"
_AFTER_LETTERS = "«»‹›„“”‚‘’–—…"
_NEIGHBOURS = re.compile(r"[^\x00-\x7f]{2}")
_ABOVE_ASCII = re.compile(r"[^\x00-\x7f]")
_WIDE = re.compile("[\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3\uff61-\uff9f]")


@cache
def _match_utf8(encoding: str) -> re.Pattern[str]:
    """Matches characters of UTF-8, each byte of which was read as a character of an encoding.

    Bytes that stand for nothing there are the control characters of the same number. A pattern is compiled once it is
    needed: training imports this module and does not search text.
    """
    characters = {code: bytes([code]).decode(encoding, "ignore") or chr(code) for code in range(0x80, 0xF5)}

    def span(first: int, last: int) -> str:
        return f"[{re.escape(''.join(characters[code] for code in range(first, last + 1)))}]"

    following = span(0x80, 0xBF)
    return re.compile(
        f"{span(0xC2, 0xDF)}{following}|{span(0xE0, 0xEF)}{following}{{2}}|{span(0xF0, 0xF4)}{following}{{3}}"
    )


def find_mojibake(text: str) -> int | None:
    """Find UTF-8 that was read in another encoding: `ü` as Latin-1 is `Ã¼`, and `п` as Windows-1251 is `Рї`."""
    if text.isascii():
        return None
    place = _find_western(text)
    if place is not None and not _is_of_other_bytes(text):
        return place
    if not _NEIGHBOURS.search(text):
        return None
    places = (_find_utf8(text, encoding) for encoding in _OF_ONE_BYTE.values())
    place = next((place for place in places if place is not None), None)
    if place is None and (wide := _WIDE.search(text)):
        is_found = any(_count_wide(text, encoding) for encoding in _OF_SEVERAL_BYTES.values())
        return wide.start() if is_found else None
    return place


def name_encoding(texts: Iterable[str]) -> str:
    """The encoding, as iconv names it, in which most characters of some texts with mojibake were read."""
    counts = Counter({_WESTERN: 0})
    c1 = 0
    for text in texts:
        decoded = decode_windows_1252(text)
        c1 += decoded != text
        counts[_WESTERN] += sum(map(len, _match_utf8("cp1252").findall(decoded)))
        for name, encoding in _OF_ONE_BYTE.items():
            counts[name] += sum(map(len, _match_utf8(encoding).findall(text)))
        for name, encoding in _OF_SEVERAL_BYTES.items():
            counts[name] += _count_wide(text, encoding)
    name = max(counts, key=counts.__getitem__)  # the first of several
    return "ISO-8859-1" if name == _WESTERN and c1 else name


def _find_western(text: str) -> int | None:
    """UTF-8 that was read as Latin-1 or Windows-1252.

    `Ã` and `Â` before a sign are hardly ever written, except in capitals (`IRMÃ”`); other letters may stand before a
    quotation mark or an ellipsis (`Ö…`), and must come twice.
    """
    places = [match.start() for match in _PERHAPS_SPOILT.finditer(text)]
    sure = _SURELY_SPOILT.search(text)
    if sure:
        return min([sure.start(), *places[:1]])
    return places[0] if len(places) > 1 else None


def _is_of_other_bytes(text: str) -> bool:
    """True if most characters above ASCII cannot be bytes of UTF-8, and look like bytes of another encoding."""
    covered = sum(map(len, _match_utf8("cp1252").findall(decode_windows_1252(text))))
    return 2 * covered < len(_ABOVE_ASCII.findall(text)) and _find_other_bytes(text) is not None


def _find_utf8(text: str, encoding: str) -> int | None:
    """UTF-8 that was read in an encoding with a byte a character, where it makes up nearly all characters above ASCII.

    Two characters of UTF-8 are enough if they are neighbours, or do not begin with a mark that is written before
    letters (`“Él`, `—Él`), and are no word of small letters. Marks that are written after letters (`OLÉ»`) do not
    count. Otherwise it takes one that cannot be part of its word (`gl√ºcklich`).
    """
    matches = list(_match_utf8(encoding).finditer(text))
    if not matches:
        return None
    characters = "".join(match[0] for match in matches)
    above_ascii = len(_ABOVE_ASCII.findall(text))
    others = above_ascii - len(characters)
    if 2 * others <= above_ascii and any(_breaks_word(text, match) for match in matches):
        return matches[0].start()
    if others > _MOST_OTHERS * above_ascii:
        return None
    counted = [match for match in matches if match[0][1:].strip(_AFTER_LETTERS)]
    are_small = characters == characters.lower() and not any(map(_is_sign, characters))
    if are_small and len(counted) < _FEWEST_SMALL:
        return None
    are_neighbours = any(match.end() == following.start() for match, following in pairwise(counted))
    unwritten = sum(match[0][0] not in _BEFORE_LETTERS for match in counted)
    return matches[0].start() if are_neighbours or unwritten > 1 else None


def _is_sign(character: str) -> bool:
    """True unless a character is a letter or part of one."""
    return unicodedata.category(character)[0] not in "LM"


def _breaks_word(text: str, match: re.Match[str]) -> bool:
    """True if a character of UTF-8 stands beside a letter of ASCII and begins with a sign, with a letter of another
    script, or with a capital after a small letter."""
    lead = match[0][0]
    before = text[match.start() - 1 : match.start()]
    after = text[match.end() : match.end() + 1]
    is_beside_letter = any(letter.isascii() and letter.isalpha() for letter in (before, after))
    if lead in _BEFORE_LETTERS or not is_beside_letter:
        return False
    is_latin = lead.isalpha() and lead < "\u0250" and lead != "ƒ"
    return not is_latin or (lead.isupper() and before.isascii() and before.islower())


def _count_wide(text: str, encoding: str) -> int:
    """Number of characters of UTF-8 that was read in an encoding with several bytes a character; 0 if it is chance."""
    read = text.encode(encoding, "replace").decode("utf-8", "replace")
    lost = read.count("\ufffd")
    good = len(_ABOVE_ASCII.findall(read)) - lost
    return good if good >= _FEWEST_WIDE and lost <= _MOST_OTHERS * good else 0


_BYTES = "\x80-\xff" + _SIGNS
_MANY_BYTES = re.compile(f"[{_BYTES}]{{3}}")
_BYTE = re.compile(f"[{_BYTES}]")
_TYPOGRAPHIC = re.compile("[«»‹›„“”‚‘’–—…¡¿°·•\u00a0]")
_WITHIN_WORD = re.compile(
    r"[A-Za-zß-öø-ÿ][¹³¿¾¼½¶ºª¸±¢№≤≥‰ˆ˜÷ⁿ▀▄■╬„\x80-\x9f][a-zß-öø-ÿ]"  # Polish of Windows-1250, German of CP850
    r"|[a-z]{2}[À-ÖØ-ÞŠŽŒ][a-z]|[A-Za-z]Ÿ[a-z]"  # text of MacRoman
    r"|[A-Za-z][\u0370-\u03ff\u0400-\u04ff]{1,2}[a-z]"  # Latin-1 read as Greek or Cyrillic
)
_OF_NO_LANGUAGE = (
    ("ìù", "øšž"),  # Czech, where these are ě and ů beside ř
    ("ðþ", "çü"),  # Turkish, where these are ğ and ş
)
"""Letters that no language has together."""


def find_wrong_encoding(text: str) -> int | None:
    """Find text of an encoding other than UTF-8 that was read in another: `Привет` as `Ïðèâåò`, `było` as `by³o`.

    Text without Latin letters becomes nothing but letters with accents and signs; other text has letters or signs that
    do not belong into a word or into one line.
    """
    if text.isascii():
        return None
    place = _find_other_bytes(text)
    return None if place is None or find_mojibake(text) is not None else place


def _find_other_bytes(text: str) -> int | None:
    """Bytes of an encoding other than UTF-8, each of which was read as a character of another."""
    if run := _MANY_BYTES.search(text):
        signs = _BYTE.findall(text)
        letters = _BYTE.findall(_TYPOGRAPHIC.sub("", text))
        is_varied = len(letters) > 3 and len(set(letters)) > 2
        if is_varied and 2 * len(signs) >= len("".join(text.split())):
            return run.start()
    if match := _WITHIN_WORD.search(text):
        return match.start() + 1
    for first, second in _OF_NO_LANGUAGE:
        places = [text.find(letter) for letter in first if letter in text]
        if places and any(letter in text for letter in second):
            return min(places)
    return None
