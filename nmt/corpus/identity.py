"""Fingerprints of sentences and pairs: 64 bits represent a text, so that millions fit in memory.

In a corpus of 3 million pairs, the probability that any two texts share a fingerprint is about one in a million.
They would then count as the same sentence, which can cost a pair but never leak one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.corpus import Pair
from nmt.files import check_file, map_array

FINGERPRINTS = np.dtype(
    [
        ("src_identity", ">u8"),
        ("tgt_identity", ">u8"),
        ("src_text", ">u8"),
        ("tgt_text", ">u8"),
        ("caseless_pair", ">u8"),
        ("pair_draw", ">u8"),
        ("component_draw", ">u8"),
    ]
)
"""The fingerprints of a pair: its sentences as identities and as texts, the pair ignoring case, and random draws."""

Fingerprints = NDArray[np.void]


def identity(text: str) -> str:
    """What sentences are compared by: letters and digits, ignoring case; if there are none, the text itself."""
    return "".join(filter(str.isalnum, text.casefold())) or text


def fingerprint(text: str) -> bytes:
    """Eight bytes that represent a text."""
    return hashlib.blake2b(text.encode(), digest_size=8).digest()


def draw(purpose: str, seed: int, *texts: str) -> bytes:
    """Eight bytes to sort by, which put texts in a random order that does not depend on their previous order.

    Args:
        purpose: Draws for different purposes are independent of each other; at most 16 letters.
        seed: Which random order.
        texts: What is drawn, a sentence or a pair, without line breaks.
    """
    key = str(seed).encode()
    return hashlib.blake2b("\n".join(texts).encode(), digest_size=8, key=key, person=purpose.encode()).digest()


def take_fingerprints(pairs: Sequence[Pair], seed: int) -> Fingerprints:
    """Fingerprints of pairs, in order: structured array [len(pairs)]."""
    found = bytearray()
    for src, tgt in pairs:
        found += fingerprint(identity(src))
        found += fingerprint(identity(tgt))
        found += fingerprint(src)
        found += fingerprint(tgt)
        found += fingerprint(f"{src}\n{tgt}".casefold())
        found += draw("pair", seed, src, tgt)
        found += draw("component", seed, src, tgt)
    return np.frombuffer(bytes(found), dtype=FINGERPRINTS)


def save_seen(path: Path, prints: NDArray[np.uint64]) -> None:
    """Write the identity fingerprints of training sources, 8 bytes per distinct sentence, in ascending order."""
    np.save(path, np.unique(prints), allow_pickle=False)


def load_seen(path: Path) -> NDArray[np.uint64] | None:
    """Memory-map what `save_seen` wrote; None if there is no such file.

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
    if not len(seen):
        return 0
    wanted = identities(texts)
    places = np.minimum(np.searchsorted(seen, wanted), len(seen) - 1)
    return int(np.count_nonzero(seen[places] == wanted))


def identities(texts: Sequence[str]) -> NDArray[np.uint64]:
    """Identity fingerprints of sentences, comparable with those of `take_fingerprints`."""
    return np.frombuffer(b"".join(fingerprint(identity(text)) for text in texts), dtype=">u8").astype(np.uint64)
