"""A test of short inputs, as people type them into a translator, that is judged by rules instead of references.

Small models that were trained on whole sentences often fail on single words, headlines, capitals and unknown names:
they translate "Hello" as "Hello hello". A file has the requirements of each input's translation.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nmt.corpus.augmentation import WORD
from nmt.system.errors import DataError
from nmt.system.files import shipped
from nmt.text.direction import Direction
from nmt.text.languages import base_language
from nmt.text.numbers import find_numbers, have_same_numbers
from nmt.text.repeats import most_copies
from nmt.translation.input import read_text

COLUMNS = ("category", "input", "accepted", "words", "kept", "plain")
"""Columns of a file of short inputs, separated by tabs; the last four may be empty."""
PARTS = 3
"""One of so many inputs is there to tune on; the others are scored once a release."""
SYMBOL = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")
"""A word, or one other character."""


@dataclass(frozen=True)
class ShortInput:
    """A text to translate, and the requirements of its translation.

    Attributes:
        category: Its kind of text.
        text: The text.
        accepted: Whole translations, `Hund|Köter`; a word may begin or end with `*`, which stands for any letters.
        words: Words that a translation has, `wo & *Halle|Saal`: at least one of each group.
        kept: Names and emoji, with spaces between them, that a translation has exactly.
        plain: The text in ordinary letters, if it is a title or in capitals.
    """

    category: str
    text: str
    accepted: str = ""
    words: str = ""
    kept: str = ""
    plain: str = ""

    @property
    def scored(self) -> bool:
        """True if it belongs to the part that nothing may be tuned on, which depends only on the text."""
        return int(hashlib.sha256(self.text.encode()).hexdigest(), 16) % PARTS != 0


@dataclass(frozen=True)
class Failure:
    """An input whose translation violates rules.

    Attributes:
        category: That of the input.
        input: The text.
        output: Its translation.
        rules: Names of the rules; see `find_violations`.
    """

    category: str
    input: str
    output: str
    rules: tuple[str, ...]


@dataclass(frozen=True)
class ShortInputResult:
    """How many short inputs were translated without an error that is visible without references.

    Attributes:
        of: Number of all inputs, by category.
        failures: The inputs whose translation violates rules, in order.
    """

    of: dict[str, int]
    failures: list[Failure]

    @property
    def passed(self) -> dict[str, int]:
        """Number of inputs whose translation violates no rule, by category."""
        failed = Counter(failure.category for failure in self.failures)
        return {category: count - failed[category] for category, count in self.of.items()}

    def __str__(self) -> str:
        parts = ", ".join(f"{category} {count}/{self.of[category]}" for category, count in self.passed.items())
        return f"short inputs: {sum(self.passed.values())} of {sum(self.of.values())} ({parts})"

    def as_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "passed": sum(self.passed.values()),
            "of": sum(self.of.values()),
            "categories": {name: {"passed": count, "of": self.of[name]} for name, count in self.passed.items()},
            "failures": [asdict(failure) for failure in self.failures],
        }


def find_short_inputs(direction: Direction) -> list[ShortInput]:
    """The shipped inputs for two languages that may be tuned on; none if there is no file for them."""
    path = shipped(f"data/short_inputs/{base_language(direction.source)}-{base_language(direction.target)}.tsv")
    return [short_input for short_input in read_short_inputs(path) if not short_input.scored] if path.is_file() else []


def read_short_inputs(path: Path) -> list[ShortInput]:
    """Read a file of short inputs, whose first line has the names of the columns.

    Raises:
        DataError: It cannot be read or has other columns.
    """
    lines = read_text(path)
    inputs = list[ShortInput]()
    if not lines or lines[0] != "\t".join(COLUMNS):
        raise DataError(f"{path}:1: must name the columns {', '.join(COLUMNS)}, with tabs between them")
    for number, line in enumerate(lines[1:], 2):
        cells = line.split("\t")
        if len(cells) != len(COLUMNS) or not (cells[0] and cells[1]):
            raise DataError(f"{path}:{number}: must have {len(COLUMNS)} columns, of which the first two are not empty")
        inputs.append(ShortInput(*cells))
    return inputs


def split_words(text: str) -> list[str]:
    """Words and punctuation in lower case."""
    return [word.casefold() for word in WORD.findall(text)]


def has_loop(text: str, output: str) -> bool:
    """True if a translation has a word, a character or a group of them more often in a row than the text has any."""
    most, copies = (most_copies(SYMBOL.findall(side.casefold())) for side in (text, output))
    return copies > most


def _pattern(alternatives: str) -> str:
    """The regular expression of `Hund|große* Hund`, in lower case; punctuation may stand for a space."""
    forms = (form.split() for form in alternatives.casefold().split("|"))
    either = "|".join(r"\W+".join(re.escape(word).replace(r"\*", r"\w*") for word in form) for form in forms)
    return rf"(?<!\w)(?:{either})(?!\w)"


def find_violations(made: ShortInput, output: str, plain_output: str, *, lowercase: bool) -> tuple[str, ...]:
    """Names of the rules that a translation violates.

    - `empty`: it has a letter or digit if the input has one.
    - `repetition`: no word, character or group of them is repeated in a row more often than in the input.
    - `length`: it has at most twice as many words and characters as the input (and 2 words and 10 characters more,
      since short texts vary most), and at least a third as many characters; not asked where translations are listed.
    - `accepted`: it is one of the listed translations, before which it may have one more word, such as an article.
    - `words`: it has one word of each listed group.
    - `digits`: if the input has numbers, they are the same, ignoring separators between digits and their script.
    - `kept`: names and emoji occur in it exactly; an ending may follow, as in a genitive.
    - `drift`: a title or a text in capitals has at least half of the words of the translation of its plain form,
      ignoring case.
    - `beginning`: a title or a text in capitals has a translation that begins with a capital.

    The translation of a text in capitals need not be in capitals, and that of a text without a final stop may have one:
    such a translation is usable. A translation of something else is not; `drift` distinguishes the two.

    Args:
        made: The input.
        output: Its translation.
        plain_output: The translation of `made.plain`; not used if that is empty.
        lowercase: True if the model writes only lower case.
    """
    text = made.text
    written = made.text.split()
    folded = output.casefold().replace("’", "'")
    plain = Counter(word for word in split_words(plain_output) if word[0].isalnum())
    longest = 2 * len(text) + 10
    shortest = len(text) / 3
    fits = len(output.split()) <= 2 * len(written) + 2 and shortest <= len(output) <= longest
    kept = made.kept.lower() if lowercase else made.kept
    broken = {
        "empty": any(map(str.isalnum, text)) and not any(map(str.isalnum, output)),
        "repetition": has_loop(text, output),
        "length": not made.accepted and not fits,
        "accepted": bool(made.accepted) and not re.fullmatch(rf"\W*(?:\w+\W+)?{_pattern(made.accepted)}\W*", folded),
        "words": not all(re.search(_pattern(group), folded) for group in made.words.split(" & ") if group),
        "digits": bool(find_numbers(text)) and not have_same_numbers(text, output),
        "kept": any(part not in output for part in kept.split()),
        "drift": bool(made.plain) and 2 * (plain & Counter(split_words(output))).total() < plain.total(),
        "beginning": bool(made.plain) and not lowercase and text[:1].isupper() and output[:1].islower(),
    }
    return tuple(rule for rule, violated in broken.items() if violated)


def judge_short_inputs(
    inputs: Sequence[ShortInput], translate: Callable[[list[str]], list[str]], *, lowercase: bool = False
) -> ShortInputResult:
    """Translate short inputs, and check the translations.

    Args:
        inputs: The inputs.
        translate: Translates texts.
        lowercase: True if it writes only lower case.
    """
    texts = list(dict.fromkeys(text for made in inputs for text in (made.text, made.plain) if text))
    outputs = dict(zip(texts, translate(texts), strict=True)) | {"": ""}
    failures = []
    for made in inputs:
        output = outputs[made.text]
        if rules := find_violations(made, output, outputs[made.plain], lowercase=lowercase):
            failures.append(Failure(made.category, made.text, output, rules))
    return ShortInputResult(dict(Counter(made.category for made in inputs)), failures)
