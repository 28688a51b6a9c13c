"""Encoded sentence pairs on disk, memory-mapped; raw validation and test text with all references."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.config import Config, read_config
from nmt.corpus.example import Example
from nmt.corpus.marker_schema import CONFIG, read_marker
from nmt.system.errors import DataError
from nmt.system.files import check_file, map_array
from nmt.text.processor import TEXT, TextProcessor, WithText, load_vocabularies
from nmt.text.vocabulary import Vocabulary

Ids = NDArray[np.int32]


class Sequences:
    """Many id sequences in two arrays: all ids concatenated, and where each sequence starts."""

    def __init__(self, ids: Ids, offsets: NDArray[np.int64]) -> None:
        self.ids = ids
        self.offsets = offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> Ids:
        return self.ids[self.offsets[index] : self.offsets[index + 1]]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of ids of each sequence."""
        return self.offsets[1:] - self.offsets[:-1]

    @classmethod
    def pack(cls, sequences: Iterable[Sequence[int]]) -> Sequences:
        """Concatenate sequences."""
        lists = list(sequences)
        ids = np.fromiter(itertools.chain.from_iterable(lists), dtype=np.int32)
        return cls(ids, np.cumsum([0, *map(len, lists)], dtype=np.int64))

    @classmethod
    def load(cls, directory: Path, name: str) -> Sequences:
        """Memory-map the file of `write_sequences`; ids are read when they are used."""
        ids = map_array(directory / f"{name}.ids.npy", np.int32, "preprocess again")
        offsets = map_array(directory / f"{name}.offsets.npy", np.int64, "preprocess again")
        whole = len(offsets) > 0 and offsets[0] == 0 and offsets[-1] == len(ids)
        if not whole or (np.diff(offsets) < 0).any():
            raise DataError(f"{directory / name}: ids and offsets do not match; preprocess again")
        return cls(ids, offsets)


def has_repaired_references(directory: Path) -> bool:
    """True if the references of a data directory's ready-made splits were repaired as its training text was."""
    return read_config(directory / CONFIG).data.repair_references


def write_sequences(directory: Path, name: str, lengths: NDArray[np.int64], pieces: Iterable[Ids]) -> None:
    """Write the file that `Sequences.load` reads, piece by piece, so that the ids need not fit into memory.

    Args:
        directory: Output folder.
        name: NAME in `NAME.ids.npy` and `NAME.offsets.npy`.
        lengths: Number of ids of each sequence.
        pieces: All ids, in order, in pieces of any size.
    """
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    np.save(directory / f"{name}.offsets.npy", offsets, allow_pickle=False)
    header = {"descr": "<i4", "fortran_order": False, "shape": (int(offsets[-1]),)}
    with (directory / f"{name}.ids.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for piece in pieces:
            file.write(piece.astype("<i4").tobytes())


@dataclass(frozen=True)
class EncodedPairs:
    """Aligned source and target sequences, without EOS."""

    src: Sequences
    tgt: Sequences

    def __len__(self) -> int:
        return len(self.src)

    def select(self, indices: NDArray[np.int64]) -> EncodedPairs:
        """Copies of the pairs with these indices."""
        return EncodedPairs(*(Sequences.pack(side[n].tolist() for n in indices) for side in (self.src, self.tgt)))

    def save(self, directory: Path, split: str) -> None:
        """Write four arrays."""
        for name, side in (("src", self.src), ("tgt", self.tgt)):
            write_sequences(directory, f"{split}.{name}", side.lengths, [side.ids])

    @classmethod
    def load(cls, directory: Path, split: str) -> EncodedPairs:
        """Memory-map four arrays.

        Raises:
            DataError: They are missing or damaged, or differ in the number of sequences.
        """
        src, tgt = (Sequences.load(directory, f"{split}.{side}") for side in ("src", "tgt"))
        if len(src) != len(tgt):
            raise DataError(f"{directory}: {split} has {len(src)} sources but {len(tgt)} targets; preprocess again")
        return cls(src, tgt)


def encode_examples(
    processor: TextProcessor, examples: Sequence[Example], *, longest_source: int | None = None
) -> EncodedPairs:
    """Encode raw sentences, one pair per reference.

    Args:
        processor: Tokenizers and vocabularies.
        examples: Sources with references.
        longest_source: Maximum number of tokens of a source, which is cut; None cuts none.
    """
    sources = processor.tokenize_source([example.src for example in examples])
    # A source is repeated for each of its references.
    repeated: list[Sequence[str]] = []
    references: list[str] = []
    for tokens, example in zip(sources, examples, strict=True):
        repeated += [tokens[:longest_source]] * len(example.references)
        references += example.references
    targets = processor.tokenize_target(references)
    return EncodedPairs(
        Sequences.pack(map(processor.src_vocabulary.encode, repeated)),
        Sequences.pack(map(processor.tgt_vocabulary.encode, targets)),
    )


@dataclass(frozen=True)
class DataDirectory(WithText):
    """A data directory written by `nmt preprocess`.

    Attributes:
        path: The folder.
        config: The config it was preprocessed with.
        src_vocabulary: Vocabulary of the source.
        tgt_vocabulary: Vocabulary of the target.
        train: Encoded training pairs.
        valid: Encoded validation pairs, one per reference; may be empty.
        checksums: SHA-256, by name, of the files that training depends on; empty if never computed.
    """

    path: Path
    config: Config
    src_vocabulary: Vocabulary
    tgt_vocabulary: Vocabulary
    train: EncodedPairs
    valid: EncodedPairs
    checksums: Mapping[str, str]

    def check_ids(self) -> None:
        """Check that all ids of training and validation pairs are in the vocabularies; reads every id.

        Raises:
            DataError: An id is not in its vocabulary.
        """
        for split, pairs in (("train", self.train), ("valid", self.valid)):
            sides = (("src", pairs.src, self.src_vocabulary), ("tgt", pairs.tgt, self.tgt_vocabulary))
            for side, sequences, vocabulary in sides:
                if len(sequences.ids) and not 0 <= sequences.ids.min() <= sequences.ids.max() < len(vocabulary):
                    raise DataError(
                        f"{self.path / f'{split}.{side}.ids.npy'}: has ids beyond the {len(vocabulary):,} of its "
                        "vocabulary; preprocess again"
                    )


def open_data(path: Path) -> DataDirectory:
    """Open a data directory.

    Raises:
        DataError: It is missing, incomplete, damaged, or of another format version.
    """
    marker = read_marker(path)
    return DataDirectory(
        path,
        read_config(path / CONFIG),
        *load_vocabularies(check_file(path / TEXT, path)),
        EncodedPairs.load(path, "train"),
        EncodedPairs.load(path, "valid"),
        marker.sha256,
    )
