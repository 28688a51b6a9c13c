"""Combinations of parameters: a set in which every pair of values occurs runs always, all the others in `make soak`."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from allpairspy import AllPairs


def covering(
    names: str, *values: Sequence[Any], valid: Callable[[tuple[Any, ...]], bool] = lambda row: True
) -> pytest.MarkDecorator:
    """Parametrise a test over all combinations.

    Args:
        names: The arguments, as in `pytest.mark.parametrize`.
        *values: What each may be.
        valid: Whether a combination makes sense.
    """
    columns = [range(len(column)) for column in values]

    def row_of(places: Sequence[int]) -> tuple[Any, ...]:
        return tuple(column[place] for column, place in zip(values, places, strict=True))

    possible = [places for places in itertools.product(*columns) if valid(row_of(places))]
    pairs = {pair for places in possible for pair in itertools.combinations(enumerate(places), 2)}
    # A part of a combination is let through where some whole one continues it.
    prefixes = {places[:end] for places in possible for end in range(len(places) + 1)}
    chosen = {tuple(places) for places in AllPairs(columns, filter_func=lambda part: tuple(part) in prefixes)}
    missing = pairs - {pair for places in chosen for pair in itertools.combinations(enumerate(places), 2)}
    for places in possible:  # what the filter kept from being paired up
        found = {pair for pair in itertools.combinations(enumerate(places), 2) if pair in missing}
        if found:
            chosen.add(places)
            missing -= found
    rows = []
    for places in possible:
        row = row_of(places)
        rows.append(pytest.param(*row, marks=() if places in chosen else (pytest.mark.soak,), id=_name(row)))
    return pytest.mark.parametrize(names, rows)


def each_value(names: str, *values: Sequence[Any]) -> pytest.MarkDecorator:
    """Parametrise a test whose arguments do not act on each other: every value occurs, in as few rows as possible.

    Args:
        names: The arguments, as in `pytest.mark.parametrize`.
        *values: What each may be.
    """
    chosen = {tuple(n % len(column) for column in values) for n in range(max(map(len, values)))}
    rows = []
    for places in itertools.product(*(range(len(column)) for column in values)):
        row = [column[place] for column, place in zip(values, places, strict=True)]
        rows.append(pytest.param(*row, marks=() if places in chosen else (pytest.mark.soak,), id=_name(row)))
    return pytest.mark.parametrize(names, rows)


def _name(row: Sequence[Any]) -> str:
    return "-".join("_".join(map(str, part)) if isinstance(part, tuple) else str(part) for part in row)
