"""A test of 100 short inputs, made from training text and judged without references.

Small models that were trained on whole sentences often fail on single words, headlines, capitals and unknown names:
they translate "Hello" as "Hello hello". No reference is needed to see that such an output is wrong.
"""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nmt.corpus import Pair
from nmt.corpus.forms import NUMBER, WORD, find_numbers, in_title_case, without_final_stop
from nmt.corpus.identity import draw
from nmt.evaluation.training_text import decode_lines, load_training_pairs
from nmt.text.processor import TextProcessor
from nmt.translation.translator import Translator

SEED = 1
SAMPLE = 20_000
"""Maximum number of training pairs to read."""
SIZES = {
    "single words": 17,
    "titles": 17,
    "all caps": 17,
    "no final stop": 17,
    "numbers": 16,
    "unknown names": 16,
}
"""Number of inputs in each category, unless the training text has too few sentences for them."""
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
        rules: Names of the rules; see `judge`.
    """

    category: str
    input: str
    output: str
    rules: tuple[str, ...]


@dataclass(frozen=True)
class ShortInputResult:
    """How many short inputs were translated without an error that is visible without references.

    Attributes:
        passed: Number of inputs whose translation violates no rule, by category.
        of: Number of all inputs, by category.
        failures: The other inputs, in order.
    """

    passed: dict[str, int]
    of: dict[str, int]
    failures: list[Failure]

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {self.passed[name]}/{count}" for name, count in self.of.items())
        return f"short inputs: {sum(self.passed.values())} of {sum(self.of.values())} ({parts})"

    def as_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "passed": sum(self.passed.values()),
            "of": sum(self.of.values()),
            "categories": {name: {"passed": self.passed[name], "of": count} for name, count in self.of.items()},
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
        targets = (split_words(pair.tgt) for pair in pairs)
        doubled = {word for words in targets for word, after in itertools.pairwise(words) if word == after}
        return cls(tgt / max(1, src), frozenset(doubled))


def read_training_pairs(data: Path, processor: TextProcessor) -> list[Pair]:
    """Read at most `SAMPLE` training pairs of a data directory as text, chosen at random with a fixed seed.

    Copies that `data.augment` made are left out, so that the inputs do not depend on it.

    Args:
        data: The data directory.
        processor: Its tokenizers and vocabularies.

    Raises:
        DataError: The directory is missing, incomplete or damaged.
    """
    encoded, originals = load_training_pairs(data)
    rows = np.arange(originals)
    if originals > SAMPLE:
        rows = np.sort(np.random.default_rng(SEED).choice(originals, SAMPLE, replace=False))
    indices = rows.tolist()
    src = decode_lines(encoded.src, indices, processor.src_vocabulary, processor.src_tokenizer, data)
    tgt = decode_lines(encoded.tgt, indices, processor.tgt_vocabulary, processor.tgt_tokenizer, data)
    return list(map(Pair, src, tgt))


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
    makers: dict[str, Iterator[ShortInput]] = {
        "single words": _single_words(pairs, seed),
        "titles": _forms("titles", in_title_case, pairs, seed),
        "all caps": _forms("all caps", str.upper, pairs, seed),
        "no final stop": _forms("no final stop", without_final_stop, pairs, seed),
        "numbers": _numbers(pairs, seed),
        "unknown names": _unknown_names(pairs, seed),
    }
    return [made for name, maker in makers.items() for made, _ in zip(maker, range(SIZES[name]), strict=False)]


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
    known = (word for word, found in targets.items() if len(found) >= KNOWN and len(word) > 1 and word.isalpha())
    for word in _shuffled(known, "word", seed):
        evidence = frozenset(each for target in targets[word] for each in split_words(target))
        yield ShortInput("single words", word, evidence=evidence)


def _forms(category: str, form: Callable[[str], str], pairs: Sequence[Pair], seed: int) -> Iterator[ShortInput]:
    sources = (pair.src for pair in pairs if _is_short(pair.src) and not NUMBER.search(pair.src))
    for text in _shuffled(sources, category, seed):
        if form(text) != text:
            yield ShortInput(category, form(text), plain=text)


def _numbers(pairs: Sequence[Pair], seed: int) -> Iterator[ShortInput]:
    sources = (
        pair.src
        for pair in pairs
        if NUMBER.search(pair.src) and find_numbers(pair.src) == find_numbers(pair.tgt) and _is_short(pair.src)
    )
    seen = set()
    for text in _shuffled(sources, "numbers", seed):
        chance = random.Random(f"{seed} {text}")
        signs = [str(chance.randint(1, int(sign))) if sign in "123456789" else sign for sign in text]
        if (changed := "".join(signs)) not in seen:
            seen.add(changed)
            yield ShortInput("numbers", changed)


def _unknown_names(pairs: Sequence[Pair], seed: int) -> Iterator[ShortInput]:
    known = {word for pair in pairs for side in pair for word in split_words(side)}
    names = find_names(pairs)
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b")
    chance = random.Random(seed)
    sources = (pair.src for pair in pairs if names and _is_short(pair.src) and len(pattern.findall(pair.src)) == 1)
    for number, text in enumerate(_shuffled(sources, "names", seed)):
        name = _make_name(names, known, chance)
        if not name:
            return
        known.add(name.casefold())
        yield ShortInput("unknown names", name if number % 4 == 0 else pattern.sub(name, text), name=name)


def _make_name(names: Sequence[str], known: set[str], chance: random.Random) -> str:
    """The beginning of one name joined to the end of another, if this is not a known word; empty if none was found."""
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
    found, kept, small = Counter[str](), Counter[str](), set[str]()
    for pair in pairs:
        targets = set(WORD.findall(pair.tgt))
        for word in set(WORD.findall(pair.src)):
            kept[word] += word in targets
            if word.islower():
                small.add(word)
            else:
                found[word] += 1
    return sorted(
        word
        for word, count in found.items()
        if word.istitle() and word.isalpha() and len(word) > 2 and word.lower() not in small
        if count > 1 and 2 * kept[word] > count
    )


def _is_short(text: str) -> bool:
    return len(text.split()) in WORDS


def judge(
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
    words = split_words(output)
    usual = statistics.ratio * len(made.text)
    plain = Counter(word for word in split_words(plain_output) if word[0].isalnum())
    first = made.text[:1]
    rules: Mapping[str, bool] = {
        "empty": not any(map(str.isalnum, output)),
        "repetition": _repeats(words, split_words(made.text), statistics.doubled),
        "length": len(output.split()) > 2 * len(made.text.split()) + 2
        or len(output) > 2 * usual + 10
        or len(output) < usual / 3,
        "evidence": bool(made.evidence) and any(w[0].isalnum() and w not in made.evidence for w in words),
        "digits": bool(find_numbers(made.text)) and find_numbers(made.text) != find_numbers(output),
        "name": made.name not in output and not (lowercase and made.name.lower() in output),
        "drift": bool(made.plain) and 2 * (plain & Counter(words)).total() < plain.total(),
        "beginning": bool(made.plain) and not lowercase and first.isupper() and output[:1].islower(),
    }
    return tuple(name for name, violated in rules.items() if violated)


def find_repeats(words: Sequence[str]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Groups of words that are repeated in a row: number of copies, and the group."""
    for size in range(1, len(words) // 2 + 1):
        run = 0  # successive words that equal the word `size` places before
        for place in range(size, len(words)):
            run = run + 1 if words[place] == words[place - size] else 0
            if run and run % size == 0:
                yield run // size + 1, tuple(words[place - size + 1 : place + 1])


def _repeats(words: Sequence[str], src_words: Sequence[str], doubled: frozenset[str]) -> bool:
    """Whether something is repeated in a row more often than in the source, except for a word that may occur twice."""
    allowed = max((copies for copies, _ in find_repeats(src_words)), default=1)
    return any(
        copies > allowed and not (copies == 2 and len(group) == 1 and group[0] in doubled)
        for copies, group in find_repeats(words)
    )


def measure_short_inputs(
    translator: Translator, pairs: Sequence[Pair], advance: Callable[[int], object] = lambda count: None
) -> ShortInputResult:
    """Translate short inputs made from training pairs, and judge the translations.

    Args:
        translator: Model and search settings.
        pairs: Training pairs of the model.
        advance: Called with the number of finished texts, for a progress bar.
    """
    made = build_short_inputs(pairs)
    statistics = TextStatistics.of(pairs)
    lowercase = translator.processor.tgt_tokenizer.lowercase
    plain = list(dict.fromkeys(each.plain for each in made if each.plain))
    found = [
        translation.text for translation in translator.translate([*plain, *(m.text for m in made)], advance=advance)
    ]
    of_plain = dict(zip(plain, found, strict=False))
    of, failures = Counter[str](), []
    for each, output in zip(made, found[len(plain) :], strict=True):
        of[each.category] += 1
        if rules := judge(each, output, of_plain.get(each.plain, ""), statistics, lowercase=lowercase):
            failures.append(Failure(each.category, each.text, output, rules))
    failed = Counter(failure.category for failure in failures)
    return ShortInputResult({name: count - failed[name] for name, count in of.items()}, dict(of), failures)
