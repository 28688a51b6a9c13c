"""The two fields that are read of a SentencePiece model, by hand and from models of the library."""

import io
from collections.abc import Iterable

import pytest
import sentencepiece

from nmt.text.piece_model import read_training


def field(number: int, wire: int, content: bytes) -> bytes:
    """A field whose number needs one or two bytes."""
    key = number << 3 | wire
    head = bytes([key]) if key < 128 else bytes([key & 0x7F | 0x80, key >> 7])
    return head + (bytes([len(content)]) if wire == 2 else b"") + content


def model(*settings: bytes, before: bytes = b"") -> bytes:
    return before + field(2, 2, b"".join(settings))


BPE = field(3, 0, b"\x02")
PIECE = field(1, 2, field(1, 2, b"<unk>") + field(2, 5, bytes(4)) + field(3, 0, b"\x02"))


@pytest.mark.parametrize(
    ("content", "algorithm", "symbols"),
    [
        (model(BPE), "bpe", ()),
        (model(field(3, 0, b"\x01")), "unigram", ()),
        (b"", "unigram", ()),  # the default of the format
        (model(field(4, 0, b"\xac\x02"), BPE, before=PIECE * 3), "bpe", ()),  # a number of two bytes before it
        (model(field(31, 2, b"<bt>"), BPE, field(31, 2, "\u2581<é>".encode())), "bpe", ("<bt>", "\u2581<é>")),
        (model(BPE) + model(field(31, 2, b"x")), "bpe", ("x",)),  # parts of a message add up
        (model(field(10, 5, bytes(4)), field(9, 1, bytes(8)), BPE), "bpe", ()),
    ],
)
def test_algorithm_and_symbols_are_read(content: bytes, algorithm: str, symbols: tuple[str, ...]) -> None:
    assert read_training(content) == (algorithm, symbols)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (model(field(3, 0, b"\x03")), "its pieces are of type 3, neither unigram nor BPE"),
        (model(BPE)[:-1], "a field is longer than its message"),
        (model(b"\x18"), "it ends within a number"),
        (model(field(3, 0, b"\xff" * 10 + b"\x01")), "a number is longer than 64 bits"),
        (b"\x0b", "a field of wire type 3"),
        (model(field(31, 2, b"\xff")), "codec can't decode byte 0xff"),
    ],
)
def test_a_damaged_model_is_refused(content: bytes, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        read_training(content)


def train(model_type: str, symbols: Iterable[str] = ()) -> bytes:
    written = io.BytesIO()
    lines = ["the old woman reads a book", "a book", "the woman"] * 20
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=written,
        model_type=model_type,
        vocab_size=24,
        hard_vocab_limit=False,
        user_defined_symbols=[*symbols],
        minloglevel=2,
    )
    return written.getvalue()


@pytest.mark.parametrize("algorithm", ["bpe", "unigram"])
@pytest.mark.parametrize("symbols", [(), ("<bt>",), ("<web>", "\u2581<bt>")])
def test_models_of_the_library_say_how_they_were_learnt(algorithm: str, symbols: tuple[str, ...]) -> None:
    assert read_training(train(algorithm, symbols)) == (algorithm, symbols)


def test_pieces_of_characters_are_refused() -> None:
    with pytest.raises(ValueError, match="type 4"):
        read_training(train("char"))
