import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from nmt.corpus.batching import Unit, epoch_generator, make_batch, pad, plan_batches
from nmt.corpus.dataset import EncodedPairs, Ids, Sequences
from nmt.text.vocabulary import BOS_ID, EOS_ID, PAD_ID, UNK_ID

units = pytest.mark.parametrize("unit", ["sentences", "tokens"])
lengths_of_pairs = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=80)
seeds = st.none() | st.integers(0, 2**40)


def arrays(lengths: list[tuple[int, int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    table = np.array(lengths, dtype=np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def generator(seed: int | None) -> np.random.Generator | None:
    return None if seed is None else epoch_generator(seed, 1)


@units
@given(lengths=lengths_of_pairs, size=st.integers(1, 200), seed=seeds)
@example(lengths=[], size=4, seed=1)
def test_every_pair_is_in_one_batch_of_the_size_asked_for(
    unit: Unit, lengths: list[tuple[int, int]], size: int, seed: int | None
) -> None:
    plan, again = (plan_batches(*arrays(lengths), size=size, unit=unit, generator=generator(seed)) for _ in range(2))
    assert sorted(index for batch in plan for index in batch.tolist()) == list(range(len(lengths)))
    assert [batch.tolist() for batch in plan] == [batch.tolist() for batch in again]
    assert all(len(batch) for batch in plan)
    if unit == "sentences":
        full, rest = divmod(len(lengths), size)
        assert sorted(map(len, plan)) == sorted([size] * full + [rest] * (rest > 0))
    else:
        longest = [max(max(lengths[index]) + 1 for index in batch) for batch in plan]
        assert all(len(batch) * peak <= size or len(batch) == 1 for batch, peak in zip(plan, longest, strict=True))


def random_lengths(number: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Lengths like those of real text: a long tail, and the two sides much alike."""
    random = np.random.default_rng(7)
    src = np.clip(np.exp(random.normal(2.2, 0.5, number)).round(), 1, 80).astype(np.int64)
    tgt = np.clip(src + random.integers(-2, 4, number), 1, 80)
    return src, tgt


@units
def test_epochs_and_seeds_have_other_batches_in_another_order(unit: Unit) -> None:
    lengths = random_lengths(400)
    plans = [
        plan_batches(*lengths, size=40, unit=unit, generator=epoch_generator(seed, epoch))
        for seed, epoch in ((1, 1), (1, 2), (2, 1), (2, 2))
    ]
    orders = {tuple(np.concatenate(plan).tolist()) for plan in plans}
    contents = {frozenset(frozenset(batch.tolist()) for batch in plan) for plan in plans}
    assert len(orders) == len(contents) == 4


def test_without_a_generator_pairs_are_sorted_by_target_and_source() -> None:
    src, tgt = arrays([(3, 9), (1, 2), (5, 2), (1, 1), (1, 2)])
    plan = plan_batches(src, tgt, size=2, unit="sentences")
    assert [batch.tolist() for batch in plan] == [[3, 1], [4, 2], [0]]


def test_a_plan_by_tokens_by_hand() -> None:
    # With the end of the sentence the longer sides are 3, 3, 4, 4 and 11.
    src, tgt = arrays([(2, 1), (1, 2), (3, 2), (1, 3), (10, 4)])
    plan = plan_batches(src, tgt, size=8, unit="tokens")
    assert [batch.tolist() for batch in plan] == [[0, 1], [2, 3], [4]]
    assert [batch.tolist() for batch in plan_batches(src, tgt, size=12, unit="tokens")] == [[0, 1, 2], [3], [4]]


def padding_share(src: NDArray[np.int64], tgt: NDArray[np.int64], plan: list[NDArray[np.int64]]) -> float:
    cells = sum(len(batch) * int(side[batch].max() + 1) for batch in plan for side in (src, tgt))
    return 1 - (int(src.sum() + tgt.sum()) + 2 * len(src)) / cells


@pytest.mark.parametrize(("unit", "size"), [("sentences", 64), ("tokens", 1000)])
def test_batches_of_similar_lengths_have_little_padding(unit: Unit, size: int) -> None:
    src, tgt = random_lengths(5_000)
    plan = plan_batches(src, tgt, size=size, unit=unit, generator=epoch_generator(1, 1))
    in_order = np.array_split(np.arange(5_000), len(plan))
    assert padding_share(src, tgt, in_order) > 0.5
    assert padding_share(src, tgt, plan) < 0.1


PAIRS = EncodedPairs(Sequences.pack([[7, 8, 9], [10], [11, 12]]), Sequences.pack([[20], [21, 22], []]))


def test_a_batch_by_hand() -> None:
    batch = make_batch(PAIRS, np.array([1, 0, 2]))
    assert batch.src.tolist() == [[10, EOS_ID, PAD_ID, PAD_ID], [7, 8, 9, EOS_ID], [11, 12, EOS_ID, PAD_ID]]
    assert batch.tgt_in.tolist() == [[BOS_ID, 21, 22], [BOS_ID, 20, PAD_ID], [BOS_ID, PAD_ID, PAD_ID]]
    assert batch.tgt_out.tolist() == [[21, 22, EOS_ID], [20, EOS_ID, PAD_ID], [EOS_ID, PAD_ID, PAD_ID]]
    assert batch.src_lengths.tolist() == [2, 4, 3]
    assert batch.indices.tolist() == [1, 0, 2]
    assert batch.num_tokens == 3 + 2 + 1
    assert {tensor.dtype for tensor in batch[:5]} == {torch.int64}
    assert batch.to(torch.device("cpu")) is batch


def test_a_batch_with_noise_by_hand() -> None:
    def longer(src: Ids, tgt: Ids, epoch: int, index: int) -> tuple[Ids, Ids, Ids]:
        """The source twice; the target with its epoch and index, which the decoder does not read."""
        return np.tile(src, 2), np.append(tgt, [UNK_ID, UNK_ID]), np.append(tgt, [30 + epoch, 40 + index])

    batch = make_batch(PAIRS, np.array([1, 2]), longer, 7)
    assert batch.src.tolist() == [[10, 10, EOS_ID, PAD_ID, PAD_ID], [11, 12, 11, 12, EOS_ID]]
    assert batch.src_lengths.tolist() == [3, 5]
    assert batch.tgt_in.tolist() == [[BOS_ID, 21, 22, UNK_ID, UNK_ID], [BOS_ID, UNK_ID, UNK_ID, PAD_ID, PAD_ID]]
    assert batch.tgt_out.tolist() == [[21, 22, 37, 41, EOS_ID], [37, 42, EOS_ID, PAD_ID, PAD_ID]]
    assert batch.indices.tolist() == [1, 2]
    assert batch.num_tokens == 5 + 3


def test_a_batch_read_twice_is_that_of_repeated_pairs() -> None:
    sides = [[[5, 6], [7]], [[8], [9, 5, 6]]]
    once, twice = (EncodedPairs(*(Sequences.pack(side * copies) for side in sides)) for copies in (1, 2))
    found, expected = make_batch(once, np.arange(2)).twice(), make_batch(twice, np.arange(4))
    for name in ("src", "src_lengths", "tgt_in", "tgt_out", "positions"):
        assert torch.equal(getattr(found, name), getattr(expected, name)), name
    assert found.indices.tolist() == [0, 1, 0, 1]
    assert found.num_tokens == 12


def test_padding_by_hand() -> None:
    assert pad([[5, 6], [7]]).tolist() == [[5, 6], [7, PAD_ID]]
    assert pad([[5, 6], [7]], prefix=True).tolist() == [[BOS_ID, 5, 6], [BOS_ID, 7, PAD_ID]]
    assert pad([[5, 6], [7]], suffix=True).tolist() == [[5, 6, EOS_ID], [7, EOS_ID, PAD_ID]]
    both = [[BOS_ID, 5, 6, EOS_ID], [BOS_ID, 7, EOS_ID, PAD_ID]]
    assert pad([[5, 6], [7]], prefix=True, suffix=True).tolist() == both
    assert pad([]).shape == (0, 0)
    assert pad([[], []], suffix=True).tolist() == [[EOS_ID], [EOS_ID]]
