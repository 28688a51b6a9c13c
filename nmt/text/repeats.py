"""Repetitions in a row, the most visible fault of small models."""

from collections.abc import Iterator, Sequence


def find_repeats(words: Sequence[str], longest: int | None = None) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Groups of words that are repeated in a row.

    Args:
        words: The words, or the tokens, of a text.
        longest: Most words of a group; None is any number.

    Yields:
        Number of copies, and the group.
    """
    for size in range(1, min(len(words) // 2, longest or len(words)) + 1):
        run = 0  # successive words that equal the word `size` words before
        for end in range(size, len(words)):
            run = run + 1 if words[end] == words[end - size] else 0
            if run and run % size == 0:
                yield run // size + 1, tuple(words[end - size + 1 : end + 1])


def most_copies(words: Sequence[str]) -> int:
    """How many copies of a group of words follow each other at most; 1 if none is repeated."""
    return max((copies for copies, _ in find_repeats(words)), default=1)
