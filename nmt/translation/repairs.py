"""Repairs of translations that a server sends: loops, and misspelled numbers and names."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nmt.text.repeats import most_copies
from nmt.translation.copies import repair_copies

if TYPE_CHECKING:
    from nmt.translation.reader import Reader
    from nmt.translation.translation import Translation

LOOP = 3
"""Copies of tokens in a row from which a translation is called a loop."""


def is_loop(src_tokens: Sequence[str], translation: Translation, reader: Reader) -> bool:
    """True if a translation repeats tokens that the source does not, or words where the source is a single one."""
    if LOOP <= most_copies(translation.tokens) > most_copies(src_tokens):
        return True
    is_one_word = len(reader.write_source(src_tokens).split()) == 1
    return is_one_word and most_copies(translation.text.casefold().split()) > 1


def copy_misspelled(translation: Translation, reader: Reader) -> Translation:
    """A translation of subwords with misspelled numbers and names as in its source; see `repair_copies`."""
    if any(tokenizer.kind != "subword" for tokenizer in reader.processor.tokenizers):
        return translation
    tokens = repair_copies(translation.src_tokens, translation.tokens, translation.token_log_probs)
    if tokens == translation.tokens:
        return translation
    return dataclasses.replace(translation, text=reader.write(tokens), tokens=tokens)
