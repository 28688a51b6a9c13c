import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.config import SplitSection
from nmt.corpus import Pair
from nmt.corpus.example import Example
from nmt.corpus.identity import draw
from nmt.corpus.report_schema import Overlap
from nmt.corpus.splitting import (
    Splits,
    find_components,
    group_references,
    measure_overlap,
    naive_overlap,
    split_pairs,
    without_overlap,
)
from nmt.corpus.store import Block, PairStore
from nmt.system.errors import DataError
from nmt.text.normalization import Normalizer

NewStore = Callable[..., PairStore]


@pytest.fixture(scope="module")
def new_store(tmp_path_factory: pytest.TempPathFactory) -> NewStore:
    """`new_store(pairs, seed)` puts pairs into a store of their own."""

    def build(pairs: list[Pair], seed: int = 1) -> PairStore:
        store = PairStore(tmp_path_factory.mktemp("pairs") / "store")
        store.append(Block.encode(pairs, seed))
        return store

    return build


def split(store: PairStore, valid_size: int = 0, test_size: int = 0, **options: Any) -> Splits:
    """Splits of a whole store."""
    section = SplitSection(valid_size=valid_size, test_size=test_size, **options)
    return split_pairs(store, np.arange(len(store)), section)


def same(text: str) -> str:
    """The identity of a sentence, written differently from the library's."""
    kept = [letter for letter in text.casefold() if letter.isalpha() or letter.isnumeric()]
    return "".join(kept) if kept else text


def flat(examples: list[Example]) -> list[Pair]:
    return [Pair(example.src, reference) for example in examples for reference in example.references]


def groups(pairs: list[Pair]) -> list[set[Pair]]:
    """The connected components, by growing each group until nothing joins it."""
    left = set(pairs)
    found = []
    while left:
        group = {left.pop()}
        while True:
            sources, targets = {same(pair.src) for pair in group}, {same(pair.tgt) for pair in group}
            joined = {pair for pair in left if same(pair.src) in sources or same(pair.tgt) in targets}
            if not joined:
                break
            group |= joined
            left -= joined
        found.append(group)
    return found


def fill(components: list[set[Pair]], size: int) -> set[Pair]:
    """Take components, in order, that fit into `size` sources, out of the list."""
    taken: set[Pair] = set()
    for component in list(components):
        sources = len({pair.src for pair in component})
        if sources <= size:
            taken |= component
            size -= sources
            components.remove(component)
    return taken


def singles(count: int) -> list[Pair]:
    return [Pair(f"source {number}", f"target {number}") for number in range(count)]


def numbers(*values: int) -> Any:
    return np.array(values, dtype=np.uint64)


@pytest.mark.parametrize(
    ("src", "tgt", "labels"),
    [
        ([], [], []),
        ([7], [7], [0]),  # the same number on both sides is not the same sentence
        ([7, 8], [8, 7], [0, 1]),
        ([1, 1, 2], [5, 6, 7], [0, 0, 1]),
        ([3, 2, 1], [9, 9, 8], [1, 1, 0]),
        ([1, 2, 2, 3, 4], [5, 5, 6, 6, 7], [0, 0, 0, 0, 1]),
        ([2**64 - 1, 0, 2**63], [1, 1, 2**64 - 1], [0, 0, 1]),
    ],
)
def test_components_of_numbers_by_hand(src: list[int], tgt: list[int], labels: list[int]) -> None:
    assert find_components(numbers(*src), numbers(*tgt)).tolist() == labels


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_a_long_chain_is_one_component_until_it_is_cut(seed: int | None) -> None:
    count = 20_000
    src, tgt = np.arange(1, count + 1) // 2, np.arange(count) // 2  # 0-0, 1-0, 1-1, 2-1, ...
    if seed is not None:
        chance = np.random.default_rng(seed)
        order, names = chance.permutation(count), chance.permutation(count)
        src, tgt = names[src[order]], names[tgt[order]]
    assert find_components(src.astype(np.uint64), tgt.astype(np.uint64)).max() == 0
    cut = src != src[count // 3]
    assert find_components(src[cut].astype(np.uint64), tgt[cut].astype(np.uint64)).max() == 1


def test_without_held_out_sentences_the_order_is_kept(new_store: NewStore) -> None:
    store = new_store(singles(20), 3)
    assert split(store, seed=3).train.tolist() == list(range(20))
    fewer = split(store, train_size=7, seed=3).train.tolist()
    assert len(fewer) == 7
    assert fewer == sorted(fewer)
    assert fewer != list(range(7))
    backwards = split_pairs(
        store, np.arange(20)[::-1], SplitSection(valid_size=0, test_size=0, train_size=7, seed=3)
    ).train
    assert backwards.tolist() == fewer[::-1]


def test_training_pairs_are_a_prefix_of_more_training_pairs(new_store: NewStore) -> None:
    store = new_store(singles(40), 5)

    def train(size: int | None) -> list[int]:
        return split(store, valid_size=3, test_size=4, train_size=size, seed=5).train.tolist()

    assert len(train(None)) == 33
    assert train(10) == train(None)[:10]


def test_only_the_given_rows_are_split(new_store: NewStore) -> None:
    store = new_store(singles(20))
    rows = np.arange(3, 10)
    splits = split_pairs(store, rows, SplitSection(valid_size=2, test_size=2))
    pairs = store.pairs(splits.train) + flat(splits.evaluation["valid"]) + flat(splits.evaluation["test"])
    assert sorted(pairs) == sorted(singles(10)[3:])
    assert (splits.components, splits.largest_component) == (7, 1)


CLUSTERS = [Pair(f"{word} {number}", f"{word}") for word in ("a", "b", "c") for number in range(4)]


@pytest.mark.parametrize(
    ("pairs", "sizes", "message"),
    [
        (
            singles(20),
            {"test_size": 21},
            "20 of 21 test sentences found; ask for a smaller test split or give more data$",
        ),
        (singles(20), {"test_size": 5, "valid_size": 16}, "15 of 16 valid sentences found"),
        (singles(20), {"test_size": 10, "valid_size": 10}, "0 pairs left for training"),
        (singles(20), {"train_size": 21}, "20 pairs of the 21 wanted left for training"),
        (
            CLUSTERS,
            {"test_size": 6},
            "4 of 6 test sentences found; ask for a smaller test split or give more data$",
        ),
        ([], {}, "0 pairs left for training"),
    ],
)
def test_sizes_out_of_reach(new_store: NewStore, pairs: list[Pair], sizes: dict[str, int], message: str) -> None:
    assert f"{refusal(new_store(pairs), **sizes)}$".startswith(f"corpus: {message}")


def refusal(store: PairStore, **sizes: int) -> str:
    with pytest.raises(DataError) as caught:
        split(store, **sizes)
    return str(caught.value)


HUBS = [
    *(Pair("Yes!" if number % 2 else "yes", f"Ja, {number}.") for number in range(40)),
    *(Pair(f"Yes, {number}.", f"ja, {number}") for number in range(40)),
    *(Pair(f"No {number}", "Nein\x1b!") for number in range(15)),
    Pair("No 3", "Ja, 3!"),
]


def test_the_sentences_that_connect_a_corpus_are_named(new_store: NewStore) -> None:
    for chance in map(random.Random, range(20)):  # in any order
        assert refusal(new_store(chance.sample(HUBS, len(HUBS))), test_size=5) == (
            "corpus: 0 of 5 test sentences found; 96 of 96 pairs are "
            "connected through shared sentences, mainly 'Yes!' (40 targets), 'Nein\\x1b!' (15 sources); remove such "
            "lines, or give ready-made splits, 4 or 6 files with `source`"
        )
    without = [pair for pair in HUBS if pair.src not in ("Yes!", "yes") and pair.tgt != "Nein\x1b!"]
    assert len(split(new_store(without), test_size=5).evaluation["test"]) == 5


def test_a_corpus_that_no_single_sentence_connects(new_store: NewStore) -> None:
    chain = [Pair(f"s {(number + 1) // 2}", f"t {number // 2}") for number in range(40)]
    message = refusal(new_store([*chain, Pair("a", "b")]), test_size=2)
    assert message == (
        "corpus: 1 of 2 test sentences found; 40 of 41 pairs are connected through shared sentences; "
        "give ready-made splits, 4 or 6 files with `source`"
    )


# Few short clean texts that share much; `singles` are enough pairs of their own for any size to be met.
CLEAN = st.text("ab1!É ", min_size=1, max_size=3).map(str.strip).filter(bool)
TANGLED = st.lists(
    st.builds(Pair, CLEAN, st.text("ab.ß", min_size=1, max_size=3)),
    max_size=30,
    unique=True,
)


@given(TANGLED, st.integers(0, 8), st.integers(0, 8), st.integers(0, 2**32 - 1), st.randoms(use_true_random=False))
def test_splits_are_exact_disjoint_complete_and_independent_of_order(
    new_store: NewStore, tangled: list[Pair], valid_size: int, test_size: int, seed: int, chance: random.Random
) -> None:
    pairs = tangled + singles(20)
    store = new_store(pairs, seed)
    splits = split(store, valid_size, test_size, seed=seed)

    assert (len(splits.evaluation["valid"]), len(splits.evaluation["test"])) == (valid_size, test_size)
    assert len({example.src for example in splits.evaluation["test"]}) == test_size
    parts = [store.pairs(splits.train), flat(splits.evaluation["valid"]), flat(splits.evaluation["test"])]
    assert sorted(pair for part in parts for pair in part) == sorted(pairs)
    for first, second in ((0, 1), (0, 2), (1, 2)):
        for side in (0, 1):
            assert not {same(pair[side]) for pair in parts[first]} & {same(pair[side]) for pair in parts[second]}
    assert measure_overlap(store, splits.train, splits.evaluation["test"], Normalizer()) == Overlap(0, 0, test_size)
    assert (
        without_overlap(store, splits.train, splits.evaluation["test"], Normalizer()).tolist() == splits.train.tolist()
    )
    components = groups(pairs)
    assert (splits.components, splits.largest_component) == (len(components), max(map(len, components)))
    components.sort(key=lambda component: draw("component", seed, *min(component)))
    assert set(parts[2]) == fill(components, test_size)
    assert set(parts[1]) == fill(components, valid_size)

    shuffled = chance.sample(pairs, len(pairs))
    moved = new_store(shuffled, seed)
    again = split(moved, valid_size, test_size, seed=seed)
    assert again.evaluation == splits.evaluation
    if valid_size or test_size:
        assert moved.pairs(again.train) == parts[0]
    else:
        assert moved.pairs(again.train) == shuffled


@given(TANGLED, st.integers(0, 9), st.randoms(use_true_random=False))
def test_success_and_refusal_are_independent_of_order(
    new_store: NewStore, pairs: list[Pair], size: int, chance: random.Random
) -> None:
    def outcome(pairs: list[Pair]) -> object:
        store = new_store(pairs)
        try:
            splits = split(store, valid_size=1, test_size=size, train_size=2)
            return store.pairs(splits.train), splits.evaluation
        except DataError as error:
            return str(error)

    assert outcome(chance.sample(pairs, len(pairs))) == outcome(pairs)


def test_references_are_collected() -> None:
    pairs = [Pair("b", "2"), Pair("a", "1"), Pair("b", "1"), Pair("b", "2"), Pair("B", "3")]
    assert group_references(pairs) == [Example("b", ("1", "2")), Example("a", ("1",)), Example("B", ("3",))]


EXAMPLES = [
    Example("hi", ("Servus!", "HALLO")),
    Example("Hi!!", ("Moin!",)),
    Example("Bye!", ("geh", "Geh")),
    Example("Hallo", ("Hi.",)),  # the sides are not mixed up
]


def test_overlap_by_hand(new_store: NewStore) -> None:
    store = new_store([Pair("Hi.", "Hallo!"), Pair("Go!", "Geh!"), Pair("Bye", "Tschüs!")])
    assert measure_overlap(store, np.arange(2), EXAMPLES, Normalizer()) == Overlap(sources=2, targets=2, examples=4)
    assert measure_overlap(store, np.arange(3), EXAMPLES, Normalizer()) == Overlap(sources=3, targets=2, examples=4)
    assert measure_overlap(store, np.arange(0), EXAMPLES, Normalizer()) == Overlap(0, 0, 4)
    assert measure_overlap(store, np.arange(3), [], Normalizer()) == Overlap(0, 0, 0)


def test_pairs_that_share_a_sentence_with_the_examples_are_dropped(new_store: NewStore) -> None:
    pairs = [
        Pair("HI", "Guten Tag!"),  # source shared
        Pair("Hello.", "Moin"),  # target shared
        Pair("Moin!", "Hi."),  # the target of the last example
        Pair("Moin!", "Bye!"),  # on the other side only
        Pair("Go!", "Los!"),
    ]
    store = new_store(pairs)
    assert without_overlap(store, np.arange(5), EXAMPLES, Normalizer()).tolist() == [3, 4]
    assert without_overlap(store, np.array([4, 0, 3]), EXAMPLES, Normalizer()).tolist() == [4, 3]
    assert without_overlap(store, np.arange(5), [], Normalizer()).tolist() == [0, 1, 2, 3, 4]


def test_naive_overlap_by_hand(new_store: NewStore) -> None:
    same_source = new_store([Pair("a", "1"), Pair("a", "2"), Pair("a", "3")])
    assert naive_overlap(same_source, np.arange(3), 2) == Overlap(sources=2, targets=0, examples=2)
    same_target = new_store([Pair("a", "1"), Pair("A", "1")])  # exact texts: a is not A
    assert naive_overlap(same_target, np.arange(2), 1) == Overlap(sources=0, targets=1, examples=1)
    assert naive_overlap(same_target, np.arange(2), 5) == Overlap(0, 0, 2)


def test_naive_overlap_is_independent_of_order(new_store: NewStore) -> None:
    pairs = [Pair(f"{number % 30}", f"{number % 40}") for number in range(60)]
    rows = np.arange(60)
    found = naive_overlap(new_store(pairs, 4), rows, 20)
    assert found == naive_overlap(new_store(pairs[::-1], 4), rows, 20)
    store = new_store(pairs, 4)
    drawn = sorted(pairs, key=lambda pair: int(store.fingerprints("pair_draw")[pairs.index(pair)]))
    assert found.sources == sum(pair.src in {train.src for train in drawn[20:]} for pair in drawn[:20])
    assert found.targets == sum(pair.tgt in {train.tgt for train in drawn[20:]} for pair in drawn[:20])
