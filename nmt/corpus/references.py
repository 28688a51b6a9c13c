"""References of ready-made splits and of files, and translations of other programs, treated as text to learn from.

A model cannot write a text that the normalizer of its training text always changes: `&apos;` where training text has
an apostrophe, or a zero-width space where it was removed. Such references make every score too low.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from nmt.corpus.example import Example
from nmt.system.errors import shorten
from nmt.text.normalization import Normalizer
from nmt.text.processor import TextProcessor

SAMPLE = 1000
"""Maximum number of references that are split into tokens and joined again."""
REPAIR = "data.repair_references"
"""The key that repairs references."""


def read_references(examples: Sequence[Example], normalizer: Normalizer, *, repair: bool = False) -> list[Example]:
    """References in NFC, unless text keeps its own form, with single spaces; or wholly repaired as training text is.

    Args:
        examples: Raw sources and references.
        normalizer: Normalizer of the training text.
        repair: True if its other steps apply to references, too.

    Returns:
        The examples, with the same sources; each reference of a source once.
    """
    change = _choose(normalizer, repair)
    return [Example(src, tuple(dict.fromkeys(map(change, references)))) for src, references in examples]


def read_hypotheses(lines: Sequence[str], normalizer: Normalizer, *, repair: bool = False) -> list[str]:
    """Translations of a file in the form of the references that they are compared with; see `read_references`."""
    return [*map(_choose(normalizer, repair), lines)]


def _choose(normalizer: Normalizer, repair: bool) -> Normalizer:
    return normalizer if repair else normalizer.without_repairs


@dataclass(frozen=True)
class Unwritable:
    """References that a model cannot write, beyond their spaces; or translations with such text.

    Attributes:
        changed: Texts that the normalizer of the training text changes.
        references: All of them.
        step: The step of the normalizer that changes most of them: a key of `data.cleaning`.
        before: One of them.
        after: The text that training text has in its place.
    """

    changed: int
    references: int
    step: str
    before: str
    after: str

    @property
    def of_translations(self) -> str:
        """The same of translations: they differ from references that have the text of the training text."""
        return (
            f"{self.changed:,} of {self.references:,} translations have text that training text has in another form, "
            f"such as {shorten(repr(self.before))} for {shorten(repr(self.after))}"
        )

    def __str__(self) -> str:
        return (
            f"{self.changed:,} of {self.references:,} references have text that training text has in another form, so "
            f"that no model can write it, such as {shorten(repr(self.before))} for {shorten(repr(self.after))}"
        )

    @property
    def setting(self) -> str:
        """The setting that keeps the text in training text as it is."""
        return f"data.cleaning.{self.step}={'none' if self.step == 'unicode' else 'false'}"


def find_unwritable(examples: Sequence[Example], normalizer: Normalizer) -> Unwritable | None:
    """The references that the normalizer of the training text would change beyond spaces; None without any."""
    return find_unwritable_texts([text for example in examples for text in example.references], normalizer)


def find_unwritable_texts(texts: Sequence[str], normalizer: Normalizer) -> Unwritable | None:
    """The texts that the normalizer of the training text would change beyond spaces; None without any."""
    steps = Counter[str]()
    samples: dict[str, tuple[str, str]] = {}
    changed = 0
    for text in texts:
        repaired, applied = normalizer.explain(text)
        if "".join(repaired.split()) != "".join(text.split()):
            changed += 1
            for step in applied:
                if step != "blanks":
                    steps[step] += 1
                    samples.setdefault(step, _difference(text, repaired))
    if not changed:
        return None
    step = steps.most_common(1)[0][0]
    return Unwritable(changed, len(texts), step, *samples[step])


@dataclass(frozen=True)
class Altered:
    """References that the tokenizer of the target does not give back as they were.

    Attributes:
        changed: Number of them.
        references: References that were looked at.
        before: The words of one that are changed.
        after: The words in their place.
    """

    changed: int
    references: int
    before: str
    after: str

    def __str__(self) -> str:
        return (
            f"{self.changed:,} of {self.references:,} references come back from the tokenizer as other text, which is "
            f"the best that a model can write, such as {shorten(repr(self.before))} as {shorten(repr(self.after))}"
        )


def find_altered(examples: Sequence[Example], processor: TextProcessor) -> Altered | None:
    """The references, at most `SAMPLE` of them, that are other text when they were split into tokens and joined again.

    Case is not compared if the tokenizer lower-cases, as scores ignore it then.
    """
    tokenizer = processor.tgt_tokenizer
    references = [processor.normalizer(text) for example in examples for text in example.references]
    step = max(1, math.ceil(len(references) / SAMPLE))
    references = references[::step]
    joined = [tokenizer.detokenize(tokens) for tokens in tokenizer.tokenize(references)]
    wanted = [tokenizer.fold(text) for text in references]
    changed = [(text, back) for text, back in zip(wanted, joined, strict=True) if text != back]
    return Altered(len(changed), len(references), *_difference(*changed[0])) if changed else None


def _difference(before: str, after: str) -> tuple[str, str]:
    """The words in which two texts differ, from the first to the last of them."""
    words = before.split()
    others = after.split()
    same = 0
    while same < min(len(words), len(others)) and words[same] == others[same]:
        same += 1
    same_at_end = 0
    while same_at_end < min(len(words), len(others)) - same and words[-1 - same_at_end] == others[-1 - same_at_end]:
        same_at_end += 1
    return " ".join(words[same : len(words) - same_at_end]), " ".join(others[same : len(others) - same_at_end])
