"""Fingerprints of sentences and pairs: 64 bits represent a text, so that millions fit in memory.

In a corpus of 3 million pairs, the probability that any two texts share a fingerprint is about one in a million.
They would then count as the same sentence, which can cost a pair but never leak one.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.corpus import Pair
from nmt.system.files import check_file, map_array

_OF_SIDES = tuple(f"{side}_{fact}" for fact in ("identity", "text") for side in ("src", "tgt"))
FINGERPRINT_NAMES = (*_OF_SIDES, "caseless_pair", "pair_draw", "component_draw")
FINGERPRINTS = np.dtype([(name, ">u8") for name in FINGERPRINT_NAMES])
"""The fingerprints of a pair: its sentences as identities and as texts, the pair ignoring case, and random draws."""

Fingerprints = NDArray[np.void]


_APOSTROPHES = re.compile("['\u2019\u02bc]")
_VARIATION = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_DOTTED_I = "i\u0307"
"""A Turkish capital I with a dot, after `casefold`."""
_CONTRACTIONS = [
    (verb, re.compile(rf"\b{before}{verb}\b"), short)
    for before, verbs, short in (
        (r"(do|does|did|is|are|was|were|has|have|had|could|should|would|must|need|might)", " not", r"\1nt"),
        (r"can ?", "not", "cant"),
        (r"will", " not", "wont"),
        (r"(he|she|it|that|there|who|what|where|here)", "s not", r"\1 isnt"),
        (r"(you|they)", "re not", r"\1 arent"),
        (r"we", " arent", "werent"),
        (r"(i)", " am", r"\1m"),
        (r"(we|you|they|who|what|there)", " are", r"\1re"),
        (r"(he|she|it|that|there|who|what|where|when|why|how|here)", " is| has", r"\1s"),
        (r"(i|we|you|they|who|could|should|would|must|might)", " have", r"\1ve"),
        (r"(i|he|she|it|we|you|they|that|there|who|what)", " will", r"\1ll"),
        (r"(i|he|she|it|we|you|they|that|there|who)", " would| had", r"\1d"),
        (r"let", " us", "lets"),
    )
    for verb in verbs.split("|")
]
"""Verbs, English forms that end in them, without apostrophes and capitals, and their replacements, in this order."""


def identity(text: str) -> str:
    """The key by which sentences are compared: letters, their marks and digits, ignoring case; else the text itself.

    Marks are the vowel signs of Hindi, Thai and other languages, and accents that have no letter of their own.
    The usual contractions of English pronouns and auxiliaries are the same as their full forms: "I'm" is "I am",
    and "he's" both "he is" and "he has". Other languages have no such words.
    """
    words = _APOSTROPHES.sub("", text.casefold())
    for verb, full, short in _CONTRACTIONS:
        if verb in words:  # most texts have none, and a search takes longer
            words = full.sub(short, words)
    if not any(map(str.isalnum, words)):
        return text
    if words.isascii():
        return "".join(filter(str.isalnum, words))
    words = words.replace(_DOTTED_I, "i")
    return "".join(character for character in words if character.isalnum() or _is_mark(character))


def _is_mark(character: str) -> bool:
    """True if a character belongs to the letter before it, other than by the choice of a picture's variant."""
    return unicodedata.category(character)[0] == "M" and not _VARIATION.match(character)


def _older_identities(text: str) -> tuple[str, str]:
    """The keys by which models of older versions compared it: letters and digits, with and without contractions."""
    letters, contracted = ("".join(filter(str.isalnum, form.casefold())) for form in (text, identity(text)))
    return letters or text, contracted or text


def fingerprint(text: str) -> bytes:
    """Eight bytes that represent a text."""
    return hashlib.blake2b(text.encode(), digest_size=8).digest()


def draw(purpose: str, seed: int, *texts: str) -> bytes:
    """Eight bytes to sort by: texts then have a random order, whatever their order was before.

    Args:
        purpose: Draws for different purposes are independent of each other; at most 16 letters.
        seed: Which random order.
        texts: Sentences or pairs to draw from, without line breaks.
    """
    key = str(seed).encode()
    return hashlib.blake2b("\n".join(texts).encode(), digest_size=8, key=key, person=purpose.encode()).digest()


def take_fingerprints(pairs: Sequence[Pair], seed: int) -> Fingerprints:
    """Fingerprints of pairs, in order: structured array [len(pairs)]."""
    fingerprints = bytearray()
    for src, tgt in pairs:
        for text in (identity(src), identity(tgt), src, tgt, f"{src}\n{tgt}".casefold()):
            fingerprints += fingerprint(text)
        fingerprints += draw("pair", seed, src, tgt)
        fingerprints += draw("component", seed, src, tgt)
    return np.frombuffer(bytes(fingerprints), dtype=FINGERPRINTS)


def save_seen(path: Path, fingerprints: NDArray[np.uint64]) -> None:
    """Write the identity fingerprints of training sources, 8 bytes per distinct sentence, in ascending order."""
    np.save(path, np.unique(fingerprints), allow_pickle=False)


def load_seen(path: Path) -> NDArray[np.uint64] | None:
    """Memory-map the file of `save_seen`; None if there is no such file.

    Raises:
        DataError: The file is damaged.
    """
    return map_array(path, np.uint64, "copy the directory again") if check_file(path, path.parent).exists() else None


def count_seen(texts: Sequence[str], seen: NDArray[np.uint64]) -> int:
    """How many sentences were seen in training.

    Args:
        texts: Sentences, repaired in the same way as training text.
        seen: Fingerprints in ascending order.
    """
    known = among_sorted(identities(texts), seen)
    older_of_each = [_older_identities(text) for text in texts]
    for older in zip(*older_of_each, strict=True):
        known |= among_sorted(_fingerprints(older), seen)
    return int(np.count_nonzero(known))


def among_sorted(numbers: NDArray[np.uint64], others: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which numbers are among others in ascending order; unlike `np.isin`, without sorting either of them again."""
    if not len(others):
        return np.zeros(len(numbers), dtype=bool)
    positions = np.minimum(np.searchsorted(others, numbers), len(others) - 1)
    return np.equal(others[positions], numbers)


def identities(texts: Sequence[str]) -> NDArray[np.uint64]:
    """Identity fingerprints of sentences, comparable with those of `take_fingerprints`."""
    return _fingerprints(map(identity, texts))


def _fingerprints(texts: Iterable[str]) -> NDArray[np.uint64]:
    return np.frombuffer(b"".join(map(fingerprint, texts)), dtype=">u8").astype(np.uint64)
