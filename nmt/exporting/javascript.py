"""Regular expressions of Python as JavaScript writes them, with its flag u."""

import re
from collections.abc import Iterator

LETTER_OR_DIGIT = r"\p{L}\p{N}"
BLANK = r"\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""White space as Python has it: JavaScript's \\s has other characters."""
CLASSES = {"w": f"{LETTER_OR_DIGIT}_", "d": r"\p{Nd}", "s": BLANK}
"""Characters of an escape, for the inside of brackets. JavaScript's own know only ASCII."""
WHOLE_CLASSES = {r"[^\W_]": f"[{LETTER_OR_DIGIT}]", r"[^\W\d_]": r"[\p{L}\p{Nl}\p{No}]"}
"""Classes with a negated escape, which cannot be written inside of brackets."""
BOUNDARY = f"(?:(?<=[{CLASSES['w']}])(?![{CLASSES['w']}])|(?<![{CLASSES['w']}])(?=[{CLASSES['w']}]))"
_PART = re.compile(r"\[\^\\W(?:\\d)?_\]|\\U[0-9a-fA-F]{8}|\\.|\(\?P<|[\[\]]|[^\\\[\](]+|\(", re.DOTALL)


def as_javascript(pattern: str) -> str:
    """A pattern with the same matches in JavaScript.

    Args:
        pattern: A regular expression of Python without flags, conditional groups and possessive quantifiers.
    """
    return "".join(_translate(pattern))


def _translate(pattern: str) -> Iterator[str]:
    is_in_class = False
    for match in _PART.finditer(pattern):
        part = match[0]
        if part in WHOLE_CLASSES:
            yield WHOLE_CLASSES[part]
        elif part == "(?P<":
            yield "(?<"
        elif part.startswith("\\U"):
            yield f"\\u{{{part[2:].lstrip('0')}}}"
        elif part == r"\b" and not is_in_class:
            yield BOUNDARY
        elif part[0] == "\\" and part[1] in CLASSES:
            characters = CLASSES[part[1]]
            yield characters if is_in_class else f"[{characters}]"
        elif part in (r"\'", r"\"", r"\#", r"\ ", r"\&", r"\~", r"\`"):
            yield part[1]  # such an escape is an error with the flag u
        else:
            if part in ("[", "]"):
                is_in_class = part == "["
            yield part
