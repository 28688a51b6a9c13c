"""A SentencePiece model's record of its training, read from its protocol buffer: the library has no method for it.

A message is a sequence of fields: a key, which is a number and a wire type, and a value. Sources:
https://protobuf.dev/programming-guides/encoding and google/sentencepiece, src/sentencepiece_model.proto.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

Algorithm = Literal["bpe", "unigram"]

TRAINER_SPEC = 2
"""Field of a model: the settings of its training, a message."""
MODEL_TYPE = 3
"""Field of these settings: the algorithm, a number."""
USER_DEFINED_SYMBOLS = 31
"""Field of these settings: a text that is always one piece; it is repeated."""
ALGORITHMS: dict[int, Algorithm] = {1: "unigram", 2: "bpe"}
DEFAULT = 1
"""The algorithm where none is recorded."""
# Wire types. There is no other but for groups, which no model has.
VARINT = 0
FIXED64 = 1
BYTES = 2
FIXED32 = 5
_WIDTHS = {FIXED64: 8, FIXED32: 4}


class PieceTraining(NamedTuple):
    """How pieces were learnt.

    Attributes:
        algorithm: `bpe` or `unigram`.
        symbols: Texts that are always one piece, which the user defined.
    """

    algorithm: Algorithm
    symbols: tuple[str, ...]


def read_training(model: bytes) -> PieceTraining:
    """Read how the pieces of a serialised model were learnt.

    Raises:
        ValueError: It is damaged, or its pieces were learnt in another way.
    """
    algorithm = DEFAULT
    symbols: list[str] = []
    for field, settings in _fields(model):
        if field != TRAINER_SPEC or not isinstance(settings, bytes):
            continue
        for key, value in _fields(settings):
            if key == MODEL_TYPE and isinstance(value, int):
                algorithm = value
            elif key == USER_DEFINED_SYMBOLS and isinstance(value, bytes):
                symbols.append(value.decode("utf-8"))
    if algorithm not in ALGORITHMS:
        raise ValueError(f"its pieces are of type {algorithm}, neither unigram nor BPE")
    return PieceTraining(ALGORITHMS[algorithm], tuple(symbols))


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The number and the value of each field of a message."""
    place = 0
    while place < len(message):
        key, place = _read_varint(message, place)
        wire = key & 7
        if wire == VARINT:
            value, place = _read_varint(message, place)
            yield key >> 3, value
            continue
        if wire == BYTES:
            width, place = _read_varint(message, place)
        elif wire in _WIDTHS:
            width = _WIDTHS[wire]
        else:
            raise ValueError(f"a field of wire type {wire}")
        if place + width > len(message):
            raise ValueError("a field is longer than its message")
        yield key >> 3, message[place : place + width]
        place += width


def _read_varint(message: bytes, place: int) -> tuple[int, int]:
    """A whole number in groups of seven bits, the lowest first, and the place behind it."""
    number = 0
    for shift in range(0, 70, 7):
        if place >= len(message):
            raise ValueError("it ends within a number")
        byte = message[place]
        place += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, place
    raise ValueError("a number is longer than 64 bits")
