import os
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.corpus import Pair
from nmt.corpus.cleaning import clean
from nmt.corpus.sources import read_corpus
from nmt.corpus.splitting import (
    Example,
    Overlap,
    Splits,
    as_examples,
    group_references,
    measure_overlap,
    naive_overlap,
    split_pairs,
)
from nmt.errors import DataError


def same(text: str) -> str:
    """The identity of a sentence, written differently from the library's."""
    kept = [letter for letter in text.casefold() if letter.isalpha() or letter.isnumeric()]
    return "".join(kept) if kept else text


def flat(examples: list[Example]) -> list[Pair]:
    return [Pair(example.src, reference) for example in examples for reference in example.references]


def group_sizes(pairs: list[Pair]) -> list[int]:
    """Sizes of the connected components, by growing each group until nothing joins it."""
    left = set(pairs)
    sizes = []
    while left:
        group = {left.pop()}
        while True:
            sources, targets = {same(pair.src) for pair in group}, {same(pair.tgt) for pair in group}
            joined = {pair for pair in left if same(pair.src) in sources or same(pair.tgt) in targets}
            if not joined:
                break
            group |= joined
            left -= joined
        sizes.append(len(group))
    return sizes


def singles(count: int) -> list[Pair]:
    return [Pair(f"source {number}", f"target {number}") for number in range(count)]


HAND_MADE = [
    Pair("Run!", "Lauf!"),
    Pair("Run!", "Renn!"),
    Pair("run.", "Lauf los!"),  # same source: case and punctuation do not count
    Pair("Sprint!", "RENN"),  # same target
    Pair("Lauf", "Barrel"),  # sources and targets are told apart
    Pair("!", "Achtung!"),
    Pair("?", "Was?"),  # nothing but punctuation: the text itself counts
]


def test_components_by_hand() -> None:
    splits = split_pairs(HAND_MADE, valid_size=0, test_size=0, train_size=None, seed=1)
    assert splits == Splits(train=HAND_MADE, valid=[], test=[], components=4, largest_component=4)


@pytest.mark.parametrize("seed", range(5))
def test_a_component_goes_whole_to_one_split(seed: int) -> None:
    splits = split_pairs(HAND_MADE, valid_size=0, test_size=3, train_size=None, seed=seed)
    sources = {example.src for example in splits.test}
    running = {"Run!", "run.", "Sprint!"}
    assert sources == running or sources == {"Lauf", "!", "?"}
    if sources == running:
        assert Example("Run!", ("Lauf!", "Renn!")) in splits.test


def test_seeds_give_different_splits() -> None:
    pairs = singles(50)
    chosen = {
        tuple(split_pairs(pairs, valid_size=5, test_size=5, train_size=None, seed=seed).test) for seed in range(9)
    }
    assert len(chosen) == 9


def test_without_held_out_sentences_the_order_is_kept() -> None:
    pairs = singles(20)
    assert split_pairs(pairs, valid_size=0, test_size=0, train_size=None, seed=3).train == pairs
    fewer = split_pairs(pairs, valid_size=0, test_size=0, train_size=7, seed=3).train
    assert len(fewer) == 7
    assert fewer == [pair for pair in pairs if pair in fewer]
    assert fewer != pairs[:7]


def test_training_pairs_are_a_prefix_of_more_training_pairs() -> None:
    def train(size: int | None) -> list[Pair]:
        return split_pairs(singles(40), valid_size=3, test_size=4, train_size=size, seed=5).train

    assert len(train(None)) == 33
    assert train(10) == train(None)[:10]


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"test_size": 21}, r"20 of 21 test sentences found \(0 components left"),
        ({"test_size": 5, "valid_size": 16}, "15 of 16 valid sentences found"),
        ({"test_size": 10, "valid_size": 10}, "0 pairs left for training"),
        ({"test_size": 5, "train_size": 16}, "15 pairs of the 16 wanted left for training"),
        ({"train_size": 21}, "20 pairs of the 21 wanted left for training"),
    ],
)
def test_sizes_out_of_reach_are_refused(sizes: dict[str, int], message: str) -> None:
    wanted = {"valid_size": 0, "test_size": 0, "train_size": None} | sizes
    with pytest.raises(DataError, match=message):
        split_pairs(singles(20), seed=1, **wanted)


def test_components_that_are_too_large_are_refused() -> None:
    pairs = [Pair(f"{word} {number}", f"{word}") for word in ("a", "b", "c") for number in range(4)]
    with pytest.raises(DataError, match=r"4 of 6 test sentences found \(2 components left"):
        split_pairs(pairs, valid_size=0, test_size=6, train_size=None, seed=1)


def test_an_empty_corpus_is_refused() -> None:
    with pytest.raises(DataError, match="0 pairs left for training"):
        split_pairs([], valid_size=0, test_size=0, train_size=None, seed=1)


# Few short texts that share much, and enough pairs of their own for any size to be met.
TANGLED = st.lists(
    st.builds(Pair, st.text("ab1!É ", min_size=1, max_size=3), st.text("ab.ß", min_size=1, max_size=3)),
    max_size=30,
    unique=True,
)


@given(TANGLED, st.integers(0, 8), st.integers(0, 8), st.integers(0, 2**64), st.randoms(use_true_random=False))
def test_splits_are_exact_disjoint_complete_and_independent_of_order(
    tangled: list[Pair], valid_size: int, test_size: int, seed: int, chance: random.Random
) -> None:
    pairs = tangled + singles(20)
    splits = split_pairs(pairs, valid_size=valid_size, test_size=test_size, train_size=None, seed=seed)

    assert (len(splits.valid), len(splits.test)) == (valid_size, test_size)
    assert len({example.src for example in splits.test}) == test_size
    parts = [splits.train, flat(splits.valid), flat(splits.test)]
    assert sorted(pair for part in parts for pair in part) == sorted(pairs)
    for first, second in ((0, 1), (0, 2), (1, 2)):
        for side in (0, 1):
            assert not {same(pair[side]) for pair in parts[first]} & {same(pair[side]) for pair in parts[second]}
    assert measure_overlap(splits.train, splits.test) == Overlap(0, 0, test_size)
    sizes = group_sizes(pairs)
    assert (splits.components, splits.largest_component) == (len(sizes), max(sizes))

    chance.shuffle(pairs)
    again = split_pairs(pairs, valid_size=valid_size, test_size=test_size, train_size=None, seed=seed)
    assert (again.valid, again.test) == (splits.valid, splits.test)
    if valid_size or test_size:
        assert again == splits


@settings(deadline=None)  # no verdict on a busy machine
@given(TANGLED, st.integers(0, 9), st.randoms(use_true_random=False))
def test_success_and_refusal_are_independent_of_order(pairs: list[Pair], size: int, chance: random.Random) -> None:
    def outcome() -> Splits | str:
        try:
            return split_pairs(pairs, valid_size=1, test_size=size, train_size=2, seed=1)
        except DataError as error:
            return str(error)

    first = outcome()
    chance.shuffle(pairs)
    assert outcome() == first


def test_references_are_collected_or_kept_apart() -> None:
    pairs = [Pair("b", "2"), Pair("a", "1"), Pair("b", "1"), Pair("b", "2"), Pair("B", "3")]
    assert group_references(pairs) == [Example("b", ("1", "2")), Example("a", ("1",)), Example("B", ("3",))]
    assert as_examples(pairs)[2:4] == [Example("b", ("1",)), Example("b", ("2",))]
    assert len(as_examples(pairs)) == 5


def test_overlap_by_hand() -> None:
    train = [Pair("Hi.", "Hallo!"), Pair("Go!", "Geh!")]
    examples = [
        Example("hi", ("Servus!", "HALLO")),
        Example("Hi!!", ("Moin!",)),
        Example("Bye!", ("geh", "Geh")),
        Example("Hallo", ("Hi.",)),  # the sides are not mixed up
    ]
    assert measure_overlap(train, examples) == Overlap(sources=2, targets=2, examples=4)
    assert measure_overlap([], examples) == Overlap(0, 0, 4)


def test_naive_overlap_by_hand() -> None:
    same_source = [Pair("a", "1"), Pair("a", "2"), Pair("a", "3")]
    assert naive_overlap(same_source, test_size=2, seed=1) == Overlap(sources=2, targets=0, examples=2)
    same_target = [Pair("a", "1"), Pair("A", "1")]  # exact texts: a is not A
    assert naive_overlap(same_target, test_size=1, seed=1) == Overlap(sources=0, targets=1, examples=1)
    assert naive_overlap(same_target, test_size=5, seed=1) == Overlap(0, 0, 2)


def test_naive_overlap_is_independent_of_order() -> None:
    pairs = [Pair(f"{number % 30}", f"{number % 40}") for number in range(60)]
    found = naive_overlap(pairs, test_size=20, seed=4)
    assert found == naive_overlap(pairs[::-1], test_size=20, seed=4)
    shuffled = sorted(pairs)
    random.Random(4).shuffle(shuffled)
    seen = [pair.src for pair in shuffled[20:]]
    assert found.sources == len([pair for pair in shuffled[:20] if pair.src in seen])


def test_the_tatoeba_test_set_is_unseen_where_a_plain_split_leaks_a_third() -> None:
    path = Path(os.environ.get("NMT_BENCH_DATA", "../shared/data")) / "tatoeba-deu-eng-2018-05-13.zip"
    if not path.exists():
        pytest.skip(f"{path} is absent; name its folder in NMT_BENCH_DATA")
    pairs, _ = clean(read_corpus([path]).splits["all"])
    assert len(pairs) == 169_813
    naive = naive_overlap(pairs, test_size=5_000, seed=1)
    assert 0.33 < naive.sources / naive.examples < 0.36
    splits = split_pairs(pairs, valid_size=5_000, test_size=5_000, train_size=None, seed=1)
    assert measure_overlap(splits.train, splits.test) == Overlap(0, 0, 5_000)
    assert measure_overlap(splits.train + flat(splits.valid), splits.test) == Overlap(0, 0, 5_000)
    assert len(splits.train) + len(flat(splits.valid)) + len(flat(splits.test)) == len(pairs)
