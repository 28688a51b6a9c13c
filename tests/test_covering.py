import itertools

from covering import covering, each_value


def chosen_rows(mark: object) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    rows = mark.args[1]
    return [row.values for row in rows if not row.marks], [row.values for row in rows]


def test_every_pair_that_can_be_is_covered() -> None:
    def valid(row: tuple[object, ...]) -> bool:
        return not (row[0] == "a" and row[2] == "x") and (row[1], row[3]) != (1, True)

    chosen, possible = chosen_rows(covering("p, q, r, s", "abc", (1, 2), "xyz", (False, True), valid=valid))
    pairs = [set(itertools.combinations(enumerate(row), 2)) for row in possible]
    covered = [set(itertools.combinations(enumerate(row), 2)) for row in chosen]
    assert set.union(*covered) == set.union(*pairs)
    assert all(valid(row) for row in possible)
    assert len(possible) == len([row for row in itertools.product("abc", (1, 2), "xyz", (False, True)) if valid(row)])
    assert len(chosen) < len(possible) / 2


def test_every_value_occurs_in_as_few_rows_as_the_longest_column() -> None:
    chosen, possible = chosen_rows(each_value("p, q, r", "abcd", (1, 2), "xyz"))
    assert [set(column) for column in zip(*chosen, strict=True)] == [set("abcd"), {1, 2}, set("xyz")]
    assert len(chosen) == 4
    assert possible == [*itertools.product("abcd", (1, 2), "xyz")]
