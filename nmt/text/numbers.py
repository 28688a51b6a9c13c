"""Numbers in text: found and compared however their digits are grouped, and in digits of any script."""

import re
import unicodedata
from collections.abc import Callable, Iterator

NUMBER = re.compile(r"\d+(?:[.,:٫٬'’]\d+)*")
"""A number, a time or a date without spaces; separators are part of it."""
_SPACE = "[ \u00a0\u2009\u202f]"
_GROUPED = re.compile(rf"(?<!\d)\d{{1,3}}(?:{_SPACE}\d{{3}})+(?!\d)(?:[.,٫]\d+)?|{NUMBER.pattern}")
"""The same, or a number whose thousands are separated by spaces: `10 000` is perhaps one number, and perhaps two."""


def read_digits(number: str) -> str:
    """The digits of a number, of whatever script, as those of ASCII, without separators."""
    return "".join(str(unicodedata.decimal(character)) for character in number if character.isdecimal())


def find_numbers(text: str) -> list[str]:
    """The digits of each number of a text, in ascending order; 2:30 and 2.30 are the same, and 10 000 and 10,000."""
    return sorted(map(read_digits, _GROUPED.findall(text)))


def have_same_numbers(text: str, other_text: str) -> bool:
    """True if two texts have the same numbers, as translations have, in whatever order.

    Digits with a space between them are one number if the other text has that number, and otherwise several.
    """
    has_digits = any(map(str.isdecimal, text + other_text))
    if not has_digits:
        return True
    numbers = sorted(_read_beside(text, other_text))
    other_numbers = sorted(_read_beside(other_text, text))
    return numbers == other_numbers


def replace_numbers(text: str, other_text: str, replace: Callable[[str], str]) -> str:
    """A text with other numbers, which are found as in `have_same_numbers`.

    Args:
        text: The text.
        other_text: Its translation.
        replace: Returns the number that replaces a number.
    """
    known = _all_readings(other_text)

    def replace_match(match: re.Match[str]) -> str:
        return replace(match[0])

    def replace_group(match: re.Match[str]) -> str:
        # Digits with spaces between them are one number if the other text has it, otherwise each part is one.
        if read_digits(match[0]) in known:
            return replace(match[0])
        return NUMBER.sub(replace_match, match[0])

    return _GROUPED.sub(replace_group, text)


def write_like(number: str, counterpart: str) -> str:
    """A number in the digits of the script of another number."""
    # The digits of a script follow one another in Unicode, so any of them leads to its zero.
    first = next(filter(str.isdecimal, counterpart))
    zero = ord(first) - unicodedata.decimal(first)
    return re.sub(r"\d", lambda digit: chr(zero + unicodedata.decimal(digit[0])), number)


def _all_readings(text: str) -> set[str]:
    """The digits of the numbers of a text, both with spaces as parts of numbers and with spaces between numbers."""
    grouped = map(read_digits, _GROUPED.findall(text))
    apart = map(read_digits, NUMBER.findall(text))
    return {*grouped, *apart}


def _read_beside(text: str, counterpart: str) -> Iterator[str]:
    """The digits of each number of a text, read as `have_same_numbers` says beside its counterpart."""
    known = _all_readings(counterpart)
    for group in _GROUPED.findall(text):
        digits = read_digits(group)
        if digits in known:
            yield digits
        else:
            yield from map(read_digits, NUMBER.findall(group))
