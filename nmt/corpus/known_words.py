"""The words of training text, by which a model with placeholders tells names that it does not know.

Such names stay as they are, which is right for English to German and wrong where other words have capitals too, as the
nouns of German, or where the target has another script. Training text decides: what it has in one sentence only is as
rare as what it does not have.
"""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from nmt.corpus.lines import Rows
from nmt.corpus.report_schema import NameReport
from nmt.corpus.store import PairStore, in_chunks
from nmt.text.names import find_names, list_words, most_frequent

FEWEST = 20
"""Rare names below which nothing is known of them."""
LEAST_SHARE = 0.5
"""Share of the rare names that the target has too from which unknown ones are taken over."""


def find_known_words(store: PairStore, rows: Rows) -> tuple[frozenset[str], NameReport]:
    """The words of training sources, none if the targets lack most of the rare names of their sources.

    A rare name is a word with a capital inside a sentence that one distinct source has, in any case.

    Args:
        store: Clean pairs.
        rows: Those of training.
    """
    _, first = np.unique(store.fingerprints("src_identity")[rows], return_index=True)
    counts = Counter[str]()
    places: dict[str, int] = {}
    for chunk in in_chunks(rows[np.sort(first)]):
        for row, text in zip(chunk.tolist(), store.lines("src").texts(chunk), strict=True):
            counts.update(list_words(text))
            for begin, end in find_names(text):
                if re.search(r"\w", text[:begin]):
                    places[text[begin:end]] = row
    rare = {name: row for name, row in places.items() if any(counts[word] == 1 for word in list_words(name))}
    targets = store.lines("tgt").texts(np.array(list(rare.values()), dtype=np.int64))
    kept = sum(bool(re.search(rf"(?<!\w){re.escape(name)}", text)) for name, text in zip(rare, targets, strict=True))
    are_taken_over = len(rare) >= FEWEST and kept >= LEAST_SHARE * len(rare)
    report = NameReport(len(rare), kept, len(counts), are_taken_over)
    return most_frequent(counts) if are_taken_over else frozenset(), report
