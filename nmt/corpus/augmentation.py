"""Data augmentation: copies of training pairs in other forms, as people type the sentences of a corpus."""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from nmt.config import DataSection
from nmt.corpus import Pair
from nmt.corpus.cleaning import make_text_normalizer
from nmt.corpus.identity import draw
from nmt.corpus.lexicon import MOST_PAIRS, find_lexicon
from nmt.corpus.lines import Rows, decode_lines
from nmt.corpus.processes import map_chunks
from nmt.corpus.splitting import Splits, without_overlap
from nmt.corpus.store import Block, PairStore, in_chunks
from nmt.corpus.substitution import find_common_words, substitute
from nmt.corpus.terms import annotate_terms
from nmt.system.progress import progress_bar
from nmt.text.casing import Casing, lower, upper
from nmt.text.direction import Direction
from nmt.text.numbers import find_numbers as find_numbers
from nmt.text.numbers import have_same_numbers, read_digits, replace_numbers, write_like

Casings = tuple[Casing, Casing]
Substitutes = tuple[Sequence[str], Mapping[str, str]]
"""Placeholders, and words in small letters with their translations as they are mostly written."""
FINAL_STOPS = ".!?…。！？．؟۔।"
WORD = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]+")
"""A word, or punctuation."""

SHORT = 3
"""Maximum words of a short sentence."""
SYLLABLE = (
    "b br c ch d dr f fl g gr h j k kr l m n p ph pl qu r s sch sh st t th tr tw v w x y z",
    "a a e e i i o o u u ae ai ea ee ei ie io ou y",
    "    l ll m n nd ng ck r rt s ss t x",  # mostly none
)
"""Beginnings, vowels and ends of syllables of made-up names, with a space between two."""


def without_final_stop(text: str) -> str:
    """A sentence without its final stop; the text itself if nothing else is left of it."""
    return text.rstrip(f"{FINAL_STOPS} ") or text


def in_title_case(text: str, casing: Casing = "") -> str:
    """A sentence as a headline: every word with a capital, and no final stop."""
    return " ".join(upper(word[:1], casing) + word[1:] for word in without_final_stop(text).split(" "))


def with_lowercase_first(text: str, casing: Casing = "") -> str:
    """A sentence with a small first letter."""
    return lower(text[:1], casing) + text[1:]


def _without_final_stops(pair: Pair, chance: random.Random) -> Pair:
    shorter = Pair(without_final_stop(pair.src), without_final_stop(pair.tgt))
    return pair if pair.src == shorter.src or pair.tgt == shorter.tgt else shorter


def _in_title_case(casings: Casings, pair: Pair, chance: random.Random) -> Pair:
    """Only the source: most languages write headlines like sentences."""
    title = in_title_case(pair.src, casings[0])
    return pair if title == without_final_stop(pair.src) else Pair(title, without_final_stop(pair.tgt))


def _in_capitals(casings: Casings, pair: Pair, chance: random.Random) -> Pair:
    return Pair(*map(upper, pair, casings))


def _with_lowercase_first(casings: Casings, pair: Pair, chance: random.Random) -> Pair:
    return Pair(with_lowercase_first(pair.src, casings[0]), pair.tgt)


def _short(casings: Casings, pair: Pair, chance: random.Random) -> Pair:
    if len(pair.src.split()) > SHORT:
        return pair
    return Pair(with_lowercase_first(without_final_stop(pair.src), casings[0]), without_final_stop(pair.tgt))


def _with_other_numbers(pair: Pair, chance: random.Random) -> Pair:
    """Other digits, the same on both sides; 1 remains, as the words after it are singular."""
    changed = {"1": "1"}

    def change(number: str) -> str:
        digits = read_digits(number)
        if digits not in changed:
            first = "0" if digits[0] == "0" else chance.choice("123456789")
            changed[digits] = first + "".join(chance.choice("0123456789") for _ in digits[1:])
        new = iter(changed[digits])
        return write_like(re.sub(r"\d", lambda _: next(new), number), number)

    if not have_same_numbers(*pair):
        return pair
    return Pair(replace_numbers(pair.src, pair.tgt, change), replace_numbers(pair.tgt, pair.src, change))


def _with_other_name(pair: Pair, chance: random.Random) -> Pair:
    """A made-up word of Latin letters for the first capitalised one that both sides have."""
    words = set(WORD.findall(pair.tgt))
    names = (word for word in WORD.findall(pair.src) if word.istitle() and word.isalpha() and word.isascii())
    name = next((word for word in names if len(word) > 2 and word in words), None)
    if name is None:
        return pair
    parts = [part.split(" ") for part in SYLLABLE]
    new = "".join(map(chance.choice, parts * chance.choice((1, 2, 2, 3)))).capitalize()
    src, tgt = (re.sub(rf"\b{name}\b", new, side) for side in pair)
    return Pair(src, tgt)


def _joined(others: Sequence[Pair], longest: int, pair: Pair, chance: random.Random) -> Pair:
    """The pair and others, up to a length that is drawn evenly; the pair itself if no other fits."""
    words = _count_words(pair)
    parts = [pair]
    limit = chance.randint(min(words, longest), longest)
    for neighbour in chance.sample(others, min(longest, len(others))):  # they have at least a word each
        words += _count_words(neighbour)
        if words > limit or neighbour == pair:
            break
        parts.append(neighbour)
    return Pair(*map(" ".join, zip(*parts, strict=True)))


def _count_words(pair: Pair) -> int:
    """Words of the longer side, as one language may be written without spaces."""
    return max(len(text.split()) for text in pair)


def find_forms(casings: Casings) -> dict[str, Callable[[Pair, random.Random], Pair]]:
    """The forms of a copy that need no other pair, for languages with such rules of small letters and capitals."""
    return {
        "no_final_stop": _without_final_stops,
        "all_caps": partial(_in_capitals, casings),
        "title_case": partial(_in_title_case, casings),
        "lowercase_first": partial(_with_lowercase_first, casings),
        "short": partial(_short, casings),
        "numbers": _with_other_numbers,
        "names": _with_other_name,
    }


FORMS = find_forms(("", ""))
"""The forms of a copy that need no other pair; a pair that cannot have a form is returned as it is."""


def make_copies(
    pairs: Sequence[Pair],
    shares: Mapping[str, float],
    seed: int,
    longest: int = 100,
    casings: Casings = ("", ""),
    substitutes: Substitutes | None = None,
) -> list[tuple[str, Pair]]:
    """Copies of pairs in other forms.

    Which pairs are copied, and how, depends only on each pair and the seed, except for pairs joined to a pair.

    Args:
        pairs: Training pairs.
        shares: By name of a form, the share of the pairs that are copied if they can have it.
        seed: Which pairs.
        longest: Maximum words of joined pairs.
        casings: Rules of small letters and capitals of both languages.
        substitutes: The placeholders of the form `placeholders`, and words with their translations, for that form and
            for `terms`.

    Returns:
        Name of the form and copy, in the order of the pairs and then of the forms.
    """
    forms = find_forms(casings) | {"joined": partial(_joined, pairs, longest)}
    if substitutes is not None:
        placeholders, lexicon = substitutes
        forms["placeholders"] = partial(substitute, placeholders, lexicon)
        forms["terms"] = partial(annotate_terms, lexicon)
    copies = []
    for pair in pairs:
        for name, share in shares.items():
            drawn = draw(name, seed, *pair)
            if _is_chosen(drawn, share):
                copy = forms[name](pair, random.Random(drawn))
                if copy != pair:
                    copies.append((name, copy))
    return copies


def _is_chosen(drawn: bytes, share: float) -> bool:
    return int.from_bytes(drawn) < share * 2**64


def add_copies(
    data: DataSection, store: PairStore, splits: Splits, placeholders: Sequence[str] = ()
) -> tuple[Rows, dict[str, int]]:
    """Add the copies that `data.augment` asks for to a store.

    Only training pairs are copied, and copies that share a sentence with valid or test are dropped: other numbers or
    names can turn one sentence into another. Pairs are joined with others of the same block.

    Args:
        data: The forms, the share of the pairs to copy in each, and the seed.
        store: Clean pairs.
        splits: Their splits.
        placeholders: Those of the text, for the form of that name.

    Returns:
        The rows of the copies to use, and their number by form.
    """
    shares = {name: share for name, share in data.augment.model_dump(exclude={"joined_words"}).items() if share}
    if not shares:
        return np.empty(0, dtype=np.int64), {}
    before = len(store)
    forms = []
    of_words = shares.pop("words", 0.0)
    src = store.lines("src")
    tgt = store.lines("tgt")
    lexicon: list[Pair] = []
    needs_content = "placeholders" in shares or "terms" in shares
    if of_words or needs_content:
        lexicon = find_lexicon(chain.from_iterable(map(store.pairs, in_chunks(splits.train))))
    content: dict[str, str] = {}
    if needs_content:
        common = find_common_words(src.texts(splits.train[:MOST_PAIRS]))
        content = {word.casefold(): translation for word, translation in lexicon if word.casefold() not in common}
    substitutes = placeholders, content
    blocks = ((src.raw(piece), tgt.raw(piece)) for piece in in_chunks(splits.train))
    with progress_bar(desc="copying", unit=" copies", leave=False) as bar:
        settings = data.split.seed, data.augment.joined_words, Direction.of(data).casings, substitutes
        copy_block = partial(_copy_block, shares, *settings)
        for block, numbers in map_chunks(copy_block, blocks, data.workers):
            store.append(block)
            forms.append(numbers)
            bar.update(len(numbers))
    if of_words:
        words = [pair for pair in lexicon if _is_chosen(draw("words", data.split.seed, *pair), of_words)]
        store.append(Block.encode(words, data.split.seed))
        forms.append(np.full(len(words), len(shares), dtype=np.uint8))
        shares["words"] = of_words
    unseen = splits.evaluation["valid"] + splits.evaluation["test"]
    rows = without_overlap(store, np.arange(before, len(store)), unseen, make_text_normalizer(data.cleaning))
    counts = np.bincount(np.concatenate(forms)[rows - before], minlength=len(shares))
    return rows, dict(zip(shares, counts.tolist(), strict=True))


def _copy_block(
    shares: Mapping[str, float],
    seed: int,
    longest: int,
    casings: Casings,
    substitutes: Substitutes,
    texts: tuple[bytes, bytes],
) -> tuple[Block, NDArray[np.uint8]]:
    """Copies of a block of pairs, and for each copy the place of its form in `shares`: the work of one process."""
    copies = make_copies([*map(Pair, *map(decode_lines, texts))], shares, seed, longest, casings, substitutes)
    forms = [list(shares).index(form) for form, _ in copies]
    return Block.encode([pair for _, pair in copies], seed), np.array(forms, dtype=np.uint8)
