"""A test of 100 short inputs, made from training text and judged without references.

Small models that were trained on whole sentences often fail on single words, headlines, capitals and unknown names:
they translate "Hello" as "Hello hello". No reference is needed to see that such an output is wrong.
"""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from nmt.corpus import Pair
from nmt.corpus.augmentation import WORD, in_title_case, without_final_stop
from nmt.corpus.cleaning import NUMBER, find_numbers
from nmt.corpus.identity import draw
from nmt.evaluation.diagnostics import find_repeats
from nmt.translation.stream import translate_texts
from nmt.translation.translator import Translator

SIZES = {"single words": 17, "titles": 17, "all caps": 17, "no final stop": 17, "numbers": 16, "unknown names": 16}
"""Number of inputs in each category, unless the training text has too few sentences for them."""
FORMS: dict[str, Callable[[str], str]] = {
    "titles": in_title_case,
    "all caps": str.upper,
    "no final stop": without_final_stop,
}
"""Categories that are training sentences in another form."""
SEED = 1
WORDS = range(2, 7)
"""Number of words in a short sentence."""
KNOWN = 5
"""Minimum number of training sentences in which a single word occurs, so that the model can know it."""
NAME_LETTERS = range(4, 11)
"""Number of letters in a made-up name."""


@dataclass(frozen=True)
class ShortInput:
    """A text to translate, and what its translation is compared with.

    Attributes:
        category: One of `SIZES`.
        text: The text.
        plain: The training sentence that it is another form of; empty if there is none.
        name: The made-up name in it; empty if there is none.
        evidence: For a single word, all words, in lower case, in the targets of training sentences with it.
    """

    category: str
    text: str
    plain: str = ""
    name: str = ""
    evidence: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Failure:
    """An input whose translation violates rules.

    Attributes:
        category: One of `SIZES`.
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


@dataclass(frozen=True)
class TextStatistics:
    """Statistics of ordinary translations in the training text.

    Attributes:
        ratio: Target characters per source character.
        doubled: Target words in lower case that occur twice in a row, such as "sie" in "Kennen Sie sie?".
    """

    ratio: float
    doubled: frozenset[str]

    @classmethod
    def of(cls, pairs: Sequence[Pair]) -> TextStatistics:
        """Compute them from training pairs."""
        src, tgt = (sum(len(pair[side]) for pair in pairs) for side in (0, 1))
        neighbours = itertools.chain.from_iterable(itertools.pairwise(split_words(pair.tgt)) for pair in pairs)
        return cls(tgt / max(1, src), frozenset(word for word, after in neighbours if word == after))


def build_short_inputs(pairs: Sequence[Pair], seed: int = SEED) -> list[ShortInput]:
    """Make short inputs from training pairs, `SIZES` of each category or as many as the text has sentences for.

    They depend only on the pairs and the seed, not on the order of the pairs:

    - single words, as they occur in the text;
    - titles: sentences in Title Case without their final stop;
    - sentences in capitals;
    - sentences without their final stop;
    - numbers: sentences whose translation has the same numbers, with other digits. No digit becomes greater than it
      was, so that times and dates remain possible;
    - unknown names: sentences with a name, and names alone. A name is a capitalised word that translations keep; the
      new one is the beginning of one such name and the end of another.

    Args:
        pairs: Training pairs.
        seed: Seed of the random choices.
    """
    short = [pair for pair in pairs if len(pair.src.split()) in WORDS]
    makers = {
        "single words": _single_words(pairs, seed),
        **{category: _other_forms(category, short, seed) for category in FORMS},
        "numbers": _numbers(short, seed),
        "unknown names": _unknown_names(pairs, short, seed),
    }
    return [made for category, size in SIZES.items() for made in itertools.islice(makers[category], size)]


def split_words(text: str) -> list[str]:
    """Words and punctuation in lower case."""
    return [word.casefold() for word in WORD.findall(text)]


def _shuffled(texts: Iterable[str], purpose: str, seed: int) -> list[str]:
    """Distinct texts in a random order that does not depend on their original order."""
    return sorted(set(texts), key=lambda text: (draw(purpose, seed, text), text))


def _single_words(pairs: Sequence[Pair], seed: int) -> Iterator[ShortInput]:
    targets: dict[str, list[str]] = {}
    for pair in pairs:
        for word in set(WORD.findall(pair.src)):
            targets.setdefault(word, []).append(pair.tgt)
    known = (word for word, lines in targets.items() if len(lines) >= KNOWN and len(word) > 1 and word.isalpha())
    for word in _shuffled(known, "word", seed):
        yield ShortInput("single words", word, evidence=frozenset(split_words("\n".join(targets[word]))))


def _other_forms(category: str, short: Sequence[Pair], seed: int) -> Iterator[ShortInput]:
    for text in _shuffled((pair.src for pair in short if not NUMBER.search(pair.src)), category, seed):
        if (changed := FORMS[category](text)) != text:
            yield ShortInput(category, changed, plain=text)


def _numbers(short: Sequence[Pair], seed: int) -> Iterator[ShortInput]:
    same = (pair.src for pair in short if find_numbers(pair.src) and find_numbers(pair.src) == find_numbers(pair.tgt))
    seen = {""}
    for text in _shuffled(same, "numbers", seed):
        chance = random.Random(f"{seed} {text}")
        changed = "".join(str(chance.randint(1, int(sign))) if sign in "123456789" else sign for sign in text)
        if changed not in seen:
            seen.add(changed)
            yield ShortInput("numbers", changed)


def _unknown_names(pairs: Sequence[Pair], short: Sequence[Pair], seed: int) -> Iterator[ShortInput]:
    known = {word for pair in pairs for side in pair for word in split_words(side)}
    names = find_names(pairs)
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b")
    chance = random.Random(seed)
    sources = (pair.src for pair in short if names and len(pattern.findall(pair.src)) == 1)
    for number, text in enumerate(_shuffled(sources, "names", seed)):
        name = _make_name(names, known, chance)
        if not name:
            return
        known.add(name.casefold())
        yield ShortInput("unknown names", name if number % 4 == 0 else pattern.sub(name, text), name=name)


def _make_name(names: Sequence[str], known: set[str], chance: random.Random) -> str:
    """The beginning of one name joined to the end of another, if this is not a known word; empty if there is none."""
    for _ in range(100):
        first, second = chance.choice(names), chance.choice(names)
        name = first[: len(first) // 2 + 1] + second[len(second) // 2 :]
        if len(name) in NAME_LETTERS and name.casefold() not in known:
            return name
    return ""


def find_names(pairs: Sequence[Pair]) -> list[str]:
    """Names of the training text, in alphabetical order.

    A name is a word of at least three letters that occurs in several sources, always with a capital, and also in the
    targets of most of them.
    """
    sources, both = Counter[str](), Counter[str]()
    for pair in pairs:
        words = set(WORD.findall(pair.src))
        sources.update(words)
        both.update(words & set(WORD.findall(pair.tgt)))
    return sorted(
        word
        for word, count in sources.items()
        if word.istitle() and word.isalpha() and len(word) > 2 and word.lower() not in sources
        if count > 1 and 2 * both[word] > count
    )


def find_violations(
    made: ShortInput, output: str, plain_output: str, statistics: TextStatistics, *, lowercase: bool
) -> tuple[str, ...]:
    """Names of the rules that a translation violates.

    - `empty`: it has a letter or digit.
    - `repetition`: no word or group of words is repeated in a row more often than in the input. A word may be repeated
      once if training targets have it twice in a row.
    - `length`: it has at most twice as many words and characters as usual for such an input (and 2 words and 10
      characters more, since short texts vary most), and at least a third as many characters.
    - `evidence`: each word of the translation of a single word is in the target of a training sentence with it.
    - `digits`: if the input has numbers, they are the same, ignoring separators between digits.
    - `name`: a made-up name occurs in it exactly; an ending may follow, as in a genitive.
    - `drift`: another form of a sentence has at least half of the words of the sentence's own translation, ignoring
      case. The model has seen the sentence in training, so its own translation is a fair standard.
    - `beginning`: another form of a sentence, if it begins with a capital, has a translation that does too.

    The translation of a text in capitals need not be in capitals, and that of a text without a final stop may have one:
    such a translation is usable. A translation of something else is not; `drift` distinguishes the two.

    Args:
        made: The input.
        output: Its translation.
        plain_output: The translation of `made.plain`; not used if that is empty.
        statistics: Statistics of the training text.
        lowercase: Whether the model writes only lower case.
    """
    text, words, usual = made.text, split_words(output), statistics.ratio * len(made.text)
    many = max((copies for copies, _ in find_repeats(split_words(text))), default=1)
    repeats = (
        copies for copies, group in find_repeats(words) if copies > 2 or group[1:] or group[0] not in statistics.doubled
    )
    plain = Counter(word for word in split_words(plain_output) if word[0].isalnum())
    broken = {
        "empty": not any(map(str.isalnum, output)),
        "repetition": any(copies > many for copies in repeats),
        "length": len(output.split()) > 2 * len(text.split()) + 2 or not usual / 3 <= len(output) <= 2 * usual + 10,
        "evidence": bool(made.evidence) and any(word[0].isalnum() and word not in made.evidence for word in words),
        "digits": bool(find_numbers(text)) and find_numbers(text) != find_numbers(output),
        "name": made.name not in output and not (lowercase and made.name.lower() in output),
        "drift": bool(made.plain) and 2 * (plain & Counter(words)).total() < plain.total(),
        "beginning": bool(made.plain) and not lowercase and text[:1].isupper() and output[:1].islower(),
    }
    return tuple(rule for rule, violated in broken.items() if violated)


def measure_short_inputs(translator: Translator, pairs: Sequence[Pair]) -> ShortInputResult:
    """Translate short inputs made from training pairs, with a progress bar, and check the translations.

    Args:
        translator: Model and search settings.
        pairs: Training pairs of the model.
    """
    inputs, statistics = build_short_inputs(pairs), TextStatistics.of(pairs)
    plain = list(dict.fromkeys(made.plain for made in inputs if made.plain))
    translations = translate_texts(translator, [*plain, *(made.text for made in inputs)], "translating short inputs")
    outputs = [translation.text for translation in translations]
    of_plain, lowercase = dict(zip(plain, outputs, strict=False)), translator.processor.tgt_tokenizer.lowercase
    failures = []
    for made, output in zip(inputs, outputs[len(plain) :], strict=True):
        if rules := find_violations(made, output, of_plain.get(made.plain, ""), statistics, lowercase=lowercase):
            failures.append(Failure(made.category, made.text, output, rules))
    return ShortInputResult(dict(Counter(made.category for made in inputs)), failures)
