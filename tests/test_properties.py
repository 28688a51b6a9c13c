"""Properties of whole stages, on random corpora and batches; those of single parts are in their own tests."""

import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from conftest import without_pictures
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.config import Config
from nmt.corpus.dataset import EncodedPairs, Ids, Sequences, open_data
from nmt.corpus.example import read_examples
from nmt.corpus.identity import identity
from nmt.corpus.prepare import write_data
from nmt.models.build import build_model
from nmt.system.errors import DataError
from nmt.training.loop import start, training_events

WORDS = [f"{letter}{ending}" for letter in "abcdefghijklmnopqrst" for ending in ("", "x", "X", "!")]
SENTENCES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=2).map(" ".join)


@settings(max_examples=15, deadline=None)
@given(
    pairs=st.lists(st.tuples(SENTENCES, SENTENCES), min_size=6, max_size=40),
    sizes=st.tuples(st.integers(0, 3), st.integers(0, 3)),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_corpus_is_complete_and_its_held_out_part_unseen(
    pairs: list[tuple[str, str]], sizes: tuple[int, int], seed: int
) -> None:
    with tempfile.TemporaryDirectory() as folder, without_pictures():
        corpus, output = Path(folder) / "corpus.tsv", Path(folder) / "out"
        corpus.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in pairs), encoding="utf-8")
        split = {"valid_size": sizes[0], "test_size": sizes[1], "seed": seed}
        source = {"source": str(corpus), "split": split, "cleaning": {"copies": True, "min_letters": 0.0}}
        config = Config.model_validate({"data": source, "text": {"tokenizer": "whitespace"}})
        try:
            write_data(config, output)
        except DataError:  # too few groups of sentences for such splits
            assert not output.exists()
            assert any(sizes)
            return
        data = open_data(output)
        sides = ((data.src_vocabulary, data.train.src), (data.tgt_vocabulary, data.train.tgt))
        texts = [[" ".join(vocabulary.decode(side[i])) for i in range(len(side))] for vocabulary, side in sides]
        training = list(zip(*texts, strict=True))
        held_out = {
            name: read_examples(output / f"{name}.jsonl") if size else []
            for name, size in zip(("valid", "test"), sizes, strict=True)
        }
    assert tuple(len(examples) for examples in held_out.values()) == sizes
    splits = [training, *([(e.src, ref) for e in examples for ref in e.references] for examples in held_out.values())]
    assert Counter(pair for split in splits for pair in split) == Counter(set(pairs))
    for side in (0, 1):
        seen = [{identity(pair[side]) for pair in split} for split in splits]
        assert not seen[0] & seen[1]
        assert not seen[0] & seen[2]
        assert not seen[1] & seen[2]


@settings(max_examples=25, deadline=None)
@given(
    lengths=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=25),
    size=st.integers(1, 40),
    unit=st.sampled_from(["sentences", "tokens"]),
    accumulate=st.integers(1, 4),
)
def test_an_epoch_has_each_pair_once_whatever_the_batches(
    lengths: list[tuple[int, int]], size: int, unit: str, accumulate: int
) -> None:
    src, tgt = (Sequences.pack([5] * pair[side] for pair in lengths) for side in (0, 1))
    layer = {"cell": "gru", "hidden_size": 2}
    model = {"embedding_size": 2, "encoder": layer, "decoder": layer}
    batch = {"size": size, "unit": unit, "accumulate": accumulate}
    config = Config.model_validate({"model": model, "train": {"epochs": 2, "batch": batch}})
    seen: Counter[tuple[int, int]] = Counter()

    def watch(src: Ids, tgt: Ids, epoch: int, index: int) -> tuple[Ids, Ids, Ids]:
        seen[epoch, index] += 1
        return src, tgt, tgt

    pairs = EncodedPairs(src, tgt)
    state = start(build_model(config.model, 9, 9), pairs, config.train)
    for _ in training_events(state, pairs, config, watch):
        pass
    assert seen == Counter((epoch, index) for epoch in (1, 2) for index in range(len(lengths)))
    assert state.progress.tokens == 2 * int(np.sum(tgt.lengths + 1))
