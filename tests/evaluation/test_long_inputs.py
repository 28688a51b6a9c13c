"""Long inputs that are made of short test pairs."""

from hypothesis import given
from hypothesis import strategies as st

from nmt.corpus.example import Example
from nmt.evaluation.long_inputs import MOST, join_examples, measure_long_inputs
from nmt.evaluation.metrics import ScoringRules


def test_pairs_are_joined_in_order() -> None:
    examples = [
        Example("a b", ("A B",)),
        Example("c d", ("C D", "CC DD")),
        Example("e f g h i j k", ("too long",)),
        Example("g", ("G",)),
        Example("h i j", ("H I J",)),
        Example("k", ("K",)),
    ]
    # 2 + 2 words reach the first target, 4; then 1 + 3 words do not reach the second, 5, but with one more they do.
    assert join_examples(examples, 4, 6) == [
        Example("a b c d", ("A B C D", "A B CC DD")),
        Example("g h i j k", ("G H I J K",)),
    ]


def test_a_pair_that_no_longer_fits_begins_the_next_input() -> None:
    examples = [Example("a b c", ("A B C",)), Example("d e f g", ("D E F G",))]
    assert join_examples(examples, 4, 6) == [examples[1]]


@given(st.lists(st.integers(1, 12), max_size=80), st.integers(2, 10), st.integers(1, 10))
def test_lengths_are_in_the_range_and_no_pair_is_used_twice(lengths: list[int], low: int, wider: int) -> None:
    examples = [Example(" ".join([f"w{n}"] * length), (f"r{n}",)) for n, length in enumerate(lengths)]
    joined = join_examples(examples, low, low + wider)
    assert all(low <= len(each.src.split()) <= low + wider for each in joined)
    used = [reference for each in joined for reference in each.references[0].split()]
    assert len(set(used)) == len(used)
    assert used == sorted(used, key=lambda name: int(name[1:]))
    assert all(
        dict.fromkeys(f"r{w[1:]}" for w in each.src.split()) == dict.fromkeys(each.references[0].split())
        for each in joined
    )


def test_languages_without_spaces_have_none() -> None:
    rules = ScoringRules(tokenize="zh")
    assert measure_long_inputs(None, [Example("字" * 17, ("a",))] * 99, rules) == ([], [])  # type: ignore[arg-type]


def test_there_are_not_too_many() -> None:
    assert len(join_examples([Example("a b c", ("A",))] * 5000, 20, 30)) == MOST
