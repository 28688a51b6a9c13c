import hashlib
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.corpus import Pair
from nmt.corpus.identity import FINGERPRINTS, draw, fingerprint, identities, identity, take_fingerprints

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=8)


def number(eight_bytes: bytes) -> int:
    return int.from_bytes(eight_bytes, "big")


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("Run!", "run"),
        ("Lauf, los...", "lauflos"),
        ("Straße 7", "strasse7"),
        ("İ", "i"),
        ("Écoute !", "écoute"),
        ("今天。", "今天"),
        ("का", "का"),  # Hindi of three words that differ in their vowel signs alone
        ("की!", "की"),
        ("ที่นี่", "ที่นี่"),
        ("I \u2764\ufe0f you", "iyou"),  # a variant of a picture is no mark of a letter
        ("½", "½"),
        ("!", "!"),
        ("?!", "?!"),
        ("", ""),
        (" ", " "),
    ],
)
def test_letters_and_digits_are_the_identity(text: str, same: str) -> None:
    assert identity(text) == same
    assert identity(same) == same


@pytest.mark.parametrize(
    "forms",
    [
        ("I am here.", "I'm here.", "I\u2019m here", "Im here"),
        ("You are not old.", "You're not old.", "You aren't old."),
        ("We are not old.", "We're not old.", "We aren't old."),
        ("He is not old.", "He's not old.", "He isn't old."),
        ("I do not know.", "I don't know."),
        ("I can not go.", "I cannot go.", "I can't go."),
        ("It will not rain.", "It won't rain."),
        ("She has gone, and they have too.", "She's gone, and they've too."),
        ("I would go if we had time.", "I'd go if we'd time."),
        ("Let us go; it is late and there will be rain.", "Let's go; it's late and there'll be rain."),
    ],
    ids=lambda forms: forms[0],
)
def test_contractions_are_their_full_forms(forms: tuple[str, ...]) -> None:
    assert len(set(map(identity, forms))) == 1
    assert len(set(identities(forms).tolist())) == 1
    others = ("I was here.", "I am here.", "They were not old.", "They are not old.", "He has not come.")
    others += ("He is not come.", "Ich bin nicht da.", "Ich bins nicht.", "Will I am?", "William?!")
    assert len(set(map(identity, others))) == len(others)  # other words stay different


@given(st.text("aA!ß s", max_size=3), st.text("aA!ß s", max_size=3))
def test_fingerprints_are_equal_if_identities_are(first: str, second: str) -> None:
    one, other = identities([first, second])
    assert (one == other) == (identity(first) == identity(second))
    assert (fingerprint(first) == fingerprint(second)) == (first == second)


def test_a_fingerprint_is_eight_bytes_of_blake2() -> None:
    assert fingerprint("ä") == hashlib.blake2b("ä".encode(), digest_size=8).digest()
    assert identities(["Ä!"]).tolist() == [number(fingerprint("ä"))]


def test_draws_differ_by_purpose_seed_and_text() -> None:
    draws = [
        draw(*choice) for choice in itertools.product(("pair", "component"), (0, 1, 2**63), ("a", "b"), ("a", "b"))
    ]
    draws.append(draw("pair", 0, "a"))
    assert len(set(draws)) == len(draws)
    assert {len(drawn) for drawn in draws} == {8}
    assert draw("pair", 1, "a", "b") == draw("pair", 1, "a", "b")


def test_draws_are_in_no_order() -> None:
    places = np.argsort([number(draw("pair", 1, f"{index:04}")) for index in range(1000)])
    moved = np.abs(places - np.arange(1000)).mean()
    assert moved == pytest.approx(1000 / 3, rel=0.1)  # the mean distance of two independent uniform places


@given(st.lists(st.builds(Pair, TEXT, TEXT), max_size=6), st.integers(0, 2**64))
def test_every_column_is_the_result_of_its_function(pairs: list[Pair], seed: int) -> None:
    prints = take_fingerprints(pairs, seed)
    assert prints.dtype == FINGERPRINTS
    assert len(prints) == len(pairs)
    assert prints["src_identity"].tolist() == identities([pair.src for pair in pairs]).tolist()
    assert prints["tgt_identity"].tolist() == identities([pair.tgt for pair in pairs]).tolist()
    for found, (src, tgt) in zip(prints, pairs, strict=True):
        assert found["src_text"] == number(fingerprint(src))
        assert found["tgt_text"] == number(fingerprint(tgt))
        assert found["caseless_pair"] == number(fingerprint(f"{src.casefold()}\n{tgt.casefold()}"))
        assert found["pair_draw"] == number(draw("pair", seed, src, tgt))
        assert found["component_draw"] == number(draw("component", seed, src, tgt))


def test_pairs_without_case_are_reported_apart_by_their_punctuation() -> None:
    prints = take_fingerprints([Pair("Go!", "Geh!"), Pair("GO!", "geh!"), Pair("Go.", "Geh!"), Pair("go!g", "eh!")], 1)
    assert len(set(prints["caseless_pair"].tolist())) == 3
    assert prints["caseless_pair"][0] == prints["caseless_pair"][1]
    assert len(set(prints["pair_draw"].tolist())) == 4
