"""Placeholders: reserved tokens that stand for what a translation takes over; training teaches to copy them."""

import re

PLACEHOLDER = re.compile("\u27e6[1-9][0-9]?\u27e7")
"""A placeholder in a text."""

MAX_PLACEHOLDERS = 99
"""Maximum number of a model's placeholders."""


def make_placeholders(number: int) -> list[str]:
    """The first placeholders: \u27e61\u27e7, \u27e62\u27e7, and so on.

    Args:
        number: How many.
    """
    return [f"\u27e6{place}\u27e7" for place in range(1, number + 1)]
