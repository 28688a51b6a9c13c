"""A file that grows: complete at its end, resumed after a kill, and never mixed with another."""

import json
from pathlib import Path

import pytest
from conftest import names
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.system.errors import DataError
from nmt.system.files import hidden_path
from nmt.system.replacement import locked
from nmt.system.resumable import Origin, open_resumable

MADE_FROM: Origin = {"input": "in.txt", "beam_size": 5}
STEPS = [("a\nb\n", 2), ("", 3), ("ü\ud800\n", 1), ("d\n", 1)]
WHOLE = "a\nb\nü?\nd\n"


class Stop(Exception):
    pass


def write(
    path: Path, until: int | None = None, *, made_from: Origin = MADE_FROM, resume: bool = True
) -> tuple[int, int]:
    """Write the steps that are left; where it stops before one, what was finished when it began is all it tells."""
    found = (0, 0)
    try:
        with open_resumable(path, made_from, resume=resume) as file:
            found = (file.steps, file.lines)
            for number, (text, lines) in enumerate(STEPS):
                if number == until:
                    raise Stop
                if number >= found[0]:
                    file.write(text, lines)
    except Stop:
        pass
    return found


@pytest.mark.parametrize("resume", [True, False])
def test_it_appears_whole_and_alone(tmp_path: Path, resume: bool) -> None:
    path = tmp_path / "out"
    path.write_text("earlier")
    with open_resumable(path, MADE_FROM, resume=resume) as file:
        for text, lines in STEPS:
            assert path.read_text() == "earlier"
            file.write(text, lines)
    assert path.read_text(encoding="utf-8") == WHOLE
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("until", range(len(STEPS) + 1))
def test_it_goes_on_where_it_stopped(tmp_path: Path, until: int) -> None:
    path = tmp_path / "out"
    write(path, until)
    finished = until % (len(STEPS) + 1) if until < len(STEPS) else 0
    assert path.exists() == (until == len(STEPS))
    assert write(path) == (finished, sum(lines for _, lines in STEPS[:finished]))
    assert path.read_text(encoding="utf-8") == WHOLE
    assert names(tmp_path) == ["out"]


@given(cut_data=st.integers(0, 12), cut_progress=st.integers(0, 80), junk=st.binary(max_size=5))
@settings(max_examples=40, deadline=None)
def test_what_a_kill_or_a_crash_left_unfinished_is_cut(
    tmp_path_factory: pytest.TempPathFactory, cut_data: int, cut_progress: int, junk: bytes
) -> None:
    path = tmp_path_factory.mktemp("cut") / "out"
    write(path, 3)
    for left, cut in ((hidden_path(path, "partial"), cut_data), (hidden_path(path, "partial.json"), cut_progress)):
        content = left.read_bytes()
        left.write_bytes(content[:-cut] if cut else content + junk.replace(b"\n", b""))
    write(path)
    assert path.read_text(encoding="utf-8") == WHOLE
    assert names(path.parent) == ["out"]


@pytest.mark.parametrize("missing", ["partial", "partial.json"])
def test_a_half_of_what_was_left_is_nothing(tmp_path: Path, missing: str) -> None:
    path = tmp_path / "out"
    write(path, 3)
    hidden_path(path, missing).unlink()
    assert write(path) == (0, 0)
    assert path.read_text(encoding="utf-8") == WHOLE


def test_other_settings_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "out"
    write(path, 2)
    before = {name: (tmp_path / name).read_bytes() for name in names(tmp_path)}
    with pytest.raises(DataError) as caught:
        write(path, made_from={"input": "in.txt", "beam_size": 3, "format": "text"})
    assert str(caught.value).startswith(f"{path}: ")
    assert "beam_size (5 there, 3 here), format (None there, 'text' here)" in str(caught.value)
    assert "input" not in str(caught.value)
    assert {name: (tmp_path / name).read_bytes() for name in names(tmp_path)} == before
    write(path, made_from=dict(reversed(MADE_FROM.items())))
    assert path.read_text(encoding="utf-8") == WHOLE


def test_without_resuming_it_begins_anew_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "out"
    write(path, 2)
    assert write(path, 1, resume=False) == (0, 0)
    assert names(tmp_path) == []


def test_only_one_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "out"
    write(path, 2)
    with locked(path), pytest.raises(DataError, match="in use by another command"):
        write(path)
    assert write(path) == (2, 5)


def test_a_record_of_nonsense_is_none(tmp_path: Path) -> None:
    path = tmp_path / "out"
    finished = {"steps": 1, "lines": 1, "bytes": 2}
    for record in ("", "null", "[7]", json.dumps(finished), json.dumps({**finished, "made_from": 1, "steps": "a"})):
        hidden_path(path, "partial").write_text("half")
        hidden_path(path, "partial.json").write_text(record)
        assert write(path) == (0, 0)
        assert path.read_text(encoding="utf-8") == WHOLE
