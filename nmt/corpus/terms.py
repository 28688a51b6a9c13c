"""Copies of pairs with the translations of some words beside them, from which a model learns to obey a glossary.

Dinu et al. (2019) write the translation of a term into the source. Here it stands there in its most frequent form, and
the target has the form that the sentence needs, so that the model learns to inflect it. A third of the translations are
those of the pair, a third other words of the lexicon and a third made-up words, each with the endings of the real one:
those the model cannot guess, and learns to copy.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nmt.corpus import Pair
from nmt.corpus.lexicon import WORD
from nmt.text.inflection import SHORTEST_STEM, find_stem, is_form
from nmt.text.placeholders import annotate
from nmt.text.spans import replace_places

MOST = 3
"""Maximum number of annotated words in a pair."""
MOST_TRIED = 8
"""Translations among which another one is looked for."""
CONSONANTS = "bcdfghjklmnprstvwz"
VOWELS = "aeiou"


class Term(NamedTuple):
    """A word of a source and its translation in the target.

    Attributes:
        src: The first character of the word, and the character after its last one.
        tgt: Those of its translation.
        stem: The letters that the translation and its usual form have in common.
        form: The letters of the translation behind the stem.
        usual_form: Those of its usual form.
    """

    src: tuple[int, int]
    tgt: tuple[int, int]
    stem: str
    form: str
    usual_form: str


def annotate_terms(lexicon: Mapping[str, str], pair: Pair, chance: random.Random) -> Pair:
    """A pair with translations beside some words; the pair itself if the lexicon has none of them.

    Args:
        lexicon: Words in small letters with their translations in their usual form.
        pair: The pair.
        chance: Which words, and what becomes of their translations.
    """
    terms = find_terms(pair, lexicon)
    if not terms:
        return pair
    translations = list(lexicon.values())
    number = min(len(terms), chance.randint(1, MOST))
    src: dict[tuple[int, int], str] = {}
    tgt: dict[tuple[int, int], str] = {}
    for term in chance.sample(terms, number):
        stem = choose_stem(term.stem, translations, chance)
        word = pair.src[slice(*term.src)]
        src[term.src] = annotate(word, stem + term.usual_form)
        tgt[term.tgt] = stem + term.form
    return Pair(replace_places(pair.src, src), replace_places(pair.tgt, tgt))


def find_terms(pair: Pair, lexicon: Mapping[str, str]) -> list[Term]:
    """Words of a source that stand there once, with the one word of the target that is a form of their translation."""
    src_words = list(WORD.finditer(pair.src))
    tgt_words = list(WORD.finditer(pair.tgt))
    counts: dict[str, int] = {}
    for match in src_words:
        word = match[0].casefold()
        counts[word] = counts.get(word, 0) + 1
    terms = []
    taken = set[tuple[int, int]]()
    for match in src_words:
        translation = lexicon.get(match[0].casefold())
        if translation is None or counts[match[0].casefold()] > 1:
            continue
        forms = [word for word in tgt_words if is_form(word[0], translation)]
        if len(forms) != 1 or forms[0].span() in taken:
            continue
        form = forms[0]
        taken.add(form.span())
        stem = find_stem(form[0], translation)
        terms.append(Term(match.span(), form.span(), stem, form[0][len(stem) :], translation[len(stem) :]))
    return terms


def choose_stem(stem: str, translations: Sequence[str], chance: random.Random) -> str:
    """The stem of a translation itself, another translation with as large a first letter, or a made-up stem."""
    has_capital = stem[0].isupper()
    kind = chance.randrange(3)
    if kind == 0:
        return stem
    if kind == 1:
        for word in chance.sample(translations, min(MOST_TRIED, len(translations))):
            if word[0].isupper() == has_capital and len(word) > SHORTEST_STEM:
                return word
    return make_stem(chance, has_capital=has_capital)


def make_stem(chance: random.Random, *, has_capital: bool) -> str:
    """A made-up word of two or three syllables and a consonant, to which endings are added."""
    syllables = [chance.choice(CONSONANTS) + chance.choice(VOWELS) for _ in range(chance.randint(2, 3))]
    word = "".join(syllables) + chance.choice(CONSONANTS)
    return word.capitalize() if has_capital else word
