from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nmt.config import Config, dump_config
from nmt.corpus.dataset import EncodedPairs, Sequences, open_data, write_sequences
from nmt.corpus.example import Example, read_examples, write_examples
from nmt.system.errors import DataError
from nmt.system.files import write_json
from nmt.text.processor import TextProcessor
from nmt.text.tokenizers import WhitespaceTokenizer
from nmt.text.vocabulary import Vocabulary

LISTS = [[5, 6, 7], [], [4], [9, 9]]


def unpacked(sequences: Sequences) -> list[list[int]]:
    return [sequences[index].tolist() for index in range(len(sequences))]


def save(sequences: Sequences, folder: Path, name: str) -> None:
    write_sequences(folder, name, sequences.lengths, [sequences.ids])


def test_sequences_are_concatenated() -> None:
    packed = Sequences.pack(LISTS)
    assert packed.ids.tolist() == [5, 6, 7, 4, 9, 9]
    assert packed.offsets.tolist() == [0, 3, 3, 4, 6]
    assert packed.ids.dtype == np.int32
    assert packed.offsets.dtype == np.int64
    assert packed.lengths.tolist() == [3, 0, 1, 2]
    assert len(packed) == 4


@given(st.lists(st.lists(st.integers(0, 2**31 - 1), max_size=5)), st.lists(st.integers(0, 50)))
@example([[], []], [])
def test_sequences_written_piece_by_piece_are_those_saved_at_once(
    tmp_path_factory: pytest.TempPathFactory, lists: list[list[int]], cuts: list[int]
) -> None:
    folder, packed = tmp_path_factory.getbasetemp(), Sequences.pack(lists)
    save(packed, folder, "once")
    pieces = np.split(packed.ids, sorted(min(cut, len(packed.ids)) for cut in cuts))
    write_sequences(folder, "pieces", packed.lengths, iter(pieces))
    for kind in ("ids", "offsets"):
        assert (folder / f"pieces.{kind}.npy").read_bytes() == (folder / f"once.{kind}.npy").read_bytes()
    loaded = Sequences.load(folder, "pieces")
    assert unpacked(loaded) == lists
    assert isinstance(loaded.ids, np.memmap)  # ids stay on disk
    assert not loaded.ids.flags.writeable


@pytest.mark.parametrize("kind", ["ids", "offsets"])
@pytest.mark.parametrize("kept", [0, 3, 60, -4, None])
def test_cut_and_pickled_sequences_are_a_data_error(tmp_path: Path, kind: str, kept: int | None) -> None:
    save(Sequences.pack(LISTS), tmp_path, "a")
    path = tmp_path / f"a.{kind}.npy"
    path.write_bytes(path.read_bytes()[:kept])
    if kept is None:  # whole, but nothing that is safe to load
        np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match=rf"a\.{kind}\.npy: damaged"):
        Sequences.load(tmp_path, "a")


@pytest.mark.parametrize("offsets", [[], [0, 3], [0, 7]])
def test_ids_and_offsets_belong_together(tmp_path: Path, offsets: list[int]) -> None:
    save(Sequences.pack(LISTS), tmp_path, "a")
    np.save(tmp_path / "a.offsets.npy", np.array(offsets, dtype=np.int64))
    with pytest.raises(DataError, match="do not match"):
        Sequences.load(tmp_path, "a")


def make_pairs(number: int) -> EncodedPairs:
    return EncodedPairs(Sequences.pack([[4 + index] for index in range(number)]), Sequences.pack([[4, 5]] * number))


def test_pairs_need_as_many_targets_as_sources(tmp_path: Path) -> None:
    make_pairs(3).save(tmp_path, "train")
    save(make_pairs(2).tgt, tmp_path, "train.tgt")
    with pytest.raises(DataError, match="train has 3 sources but 2 targets"):
        EncodedPairs.load(tmp_path, "train")


@given(st.lists(st.builds(Example, st.text(), st.lists(st.text(), min_size=1).map(tuple))))
def test_examples_round_trip(tmp_path_factory: pytest.TempPathFactory, examples: list[Example]) -> None:
    path = tmp_path_factory.getbasetemp() / "test.jsonl"
    write_examples(path, iter(examples))
    assert read_examples(path) == examples


def test_examples_are_readable_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "test.jsonl"
    write_examples(path, [Example("Hi\u2028ü", ("a", "b")), Example("", ("c",))])
    assert path.read_text(encoding="utf-8") == (
        '{"src": "Hi\u2028ü", "references": ["a", "b"]}\n{"src": "", "references": ["c"]}\n'
    )


@pytest.mark.parametrize(
    "content", [b'{"src": "a"}\n', b'{"references": []}\n', b"{\n", b"[]\n", b"3\n", b'{"src": "\xff"}\n', b"\n"]
)
def test_damaged_examples_are_a_data_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "test.jsonl"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"test\.jsonl: damaged"):
        read_examples(path)
    with pytest.raises(DataError, match=r"none\.jsonl: missing; there is no such split"):
        read_examples(tmp_path / "none.jsonl")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A data directory written by hand."""
    path = tmp_path / "data"
    (path / "text").mkdir(parents=True)
    TextProcessor(
        WhitespaceTokenizer(), WhitespaceTokenizer(), Vocabulary(["a", "b", "c"]), Vocabulary(["x", "y"])
    ).save(path / "text")
    make_pairs(3).save(path, "train")
    make_pairs(0).save(path, "valid")
    (path / "config.yaml").write_text(dump_config(Config(name="made")), encoding="utf-8")
    write_json(path / "data.json", {"format_version": 1})
    return path


def test_a_data_directory_is_opened_without_tokenizers(directory: Path) -> None:
    for path in (directory / "text").glob("*.tokenizer.json"):
        path.unlink()
    data = open_data(directory)
    assert data.path == directory
    assert data.text == directory / "text"
    assert data.config == Config(name="made")
    assert data.src_vocabulary == Vocabulary(["a", "b", "c"])
    assert data.tgt_vocabulary == Vocabulary(["x", "y"])
    assert (len(data.train), len(data.valid)) == (3, 0)


def test_vocabularies_are_read_once(directory: Path) -> None:
    data = open_data(directory)
    for path in (directory / "text").glob("*.vocabulary.json"):
        path.unlink()
    assert data.load_processor().tgt_vocabulary == Vocabulary(["x", "y"])
