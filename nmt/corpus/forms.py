"""Other forms of a sentence: how people write what a corpus has as a whole sentence with its final stop."""

from __future__ import annotations

FINAL_STOPS = ".!?…。！？．؟۔।"


def without_final_stop(text: str) -> str:
    """A sentence without its final stop; the text itself if nothing else is left of it."""
    return text.rstrip(f"{FINAL_STOPS} ") or text


def in_title_case(text: str) -> str:
    """A sentence as a headline: every word with a capital, and no final stop."""
    return " ".join(word[:1].upper() + word[1:] for word in without_final_stop(text).split(" "))


def with_lowercase_first(text: str) -> str:
    """A sentence with a small first letter."""
    return text[:1].lower() + text[1:]
