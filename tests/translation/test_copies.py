"""Copies of numbers and names that a translation misspells."""

import math

import pytest

from nmt.text.tokenizers import WORD_BEGINNING
from nmt.translation.copies import repair_copies

REPAIRED = {
    ("▁Flight ▁2 38 6 ▁is ▁late", "▁Flug ▁23 6 ▁kommt ▁zu ▁spät"): "Flug 2386 kommt zu spät",
    ("▁We ▁work ▁for ▁Nov at ri x .", "▁Wir ▁arbeiten ▁für ▁No at rix ."): "Wir arbeiten für Novatrix.",
    ("▁It ▁costs ▁1 48 .50 ▁( euros ).", "▁Es ▁kostet ▁1 4 5 0 ▁( Euro )."): "Es kostet 148.50 (Euro).",
    ("▁Gate ▁3 4 ▁and ▁gate ▁7 6 6", "▁Tor ▁766 7 ▁und ▁Tor ▁34 1"): "Tor 766 und Tor 34",
    ("▁Ask ▁Pa pa dimi tri ou !", "▁Frag ▁P i mi tri o u !"): "Frag Papadimitriou!",
    ("▁I ▁know ▁A n n e", "▁Ich ▁kenne ▁A n n n n n n e"): "Ich kenne Anne",
}
UNCHANGED = [
    ("▁at ▁13 :25", "▁um ▁13 25"),  # the same digits
    ("▁at ▁2 :30 ▁p.m.", "▁um ▁14 .30 ▁Uhr"),  # of another clock
    ("▁3 4 ▁of ▁3 4 1", "▁3 4 1 ▁von ▁3 4"),
    ("▁3 ▁cats ▁in ▁199 7", "▁drei ▁Katzen ▁199 7"),
    ("▁I ▁like ▁Vi en na .", "▁Ich ▁mag ▁Wien ."),  # a word that the model knows
    ("▁I ▁like ▁Vien na .", "▁Ich ▁mag ▁Vien n ."),
    ("▁I ▁know ▁S ve n .", "▁Ich ▁kenne ▁S ve n s ▁Frau ."),
    ("▁Philosoph er s ▁sleep .", "▁Phil osoph en ▁schlafen ."),  # the first word may be none
    ("▁Die ▁Ph ilo soph en", "▁the ▁phil osoph ers"),
    ("▁I ▁see ▁Q u o", "▁Ich ▁sehe ▁B a r t"),  # not similar
    ("▁The ▁A fric an s", "▁Die ▁Afrik a ner"),  # it ends otherwise
    ("▁a ▁T - s hirt", "▁ein ▁T - S hirt"),
    ("▁, ▁" + "12 " * 20 + "1", "▁" + "12 " * 21),  # longer than any that is compared
    ("▁,", "▁,"),
]


def join(tokens: list[str]) -> str:
    return "".join(tokens).replace(WORD_BEGINNING, " ").strip()


@pytest.mark.parametrize(("pair", "expected"), REPAIRED.items())
def test_misspelled_numbers_and_names_are_copied_from_the_source(pair: tuple[str, str], expected: str) -> None:
    source, translation = (text.split() for text in pair)
    unsure = [-1.0] * len(translation)
    repaired = repair_copies(source, translation, unsure)
    assert join(repaired) == expected
    assert len(repaired) == len(translation)  # each has a row of the alignment
    assert repair_copies(source, repaired, unsure) == repaired


@pytest.mark.parametrize(("source", "translation"), UNCHANGED)
def test_what_is_no_misspelled_copy_stays(source: str, translation: str) -> None:
    tokens = translation.split()
    assert repair_copies(source.split(), tokens, [-1.0] * len(tokens)) == tokens


@pytest.mark.parametrize(("probability", "land"), [(0.75, "Scotland"), (0.85, "Schottland")])
def test_a_name_of_which_the_model_was_sure_stays(probability: float, land: str) -> None:
    source, tokens = ["▁from", "▁S", "cot", "land", "▁2", "38", "6"], ["▁aus", "▁Sch", "ott", "land", "▁23", "6"]
    assert join(repair_copies(source, tokens, [math.log(probability)] * 6)) == f"aus {land} 2386"
