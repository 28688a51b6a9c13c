import contextlib
import functools
import itertools
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import processes
import pytest
from conftest import names
from processes import PIPE

from nmt.system.errors import DataError
from nmt.system.files import write_text
from nmt.system.replacement import (
    atomic_directory,
    check_not_in_use,
    clean_up,
    discard_earlier,
    is_locked,
    locked,
    reading,
    replacing,
    set_aside,
)


def folder(path: Path, *files: str) -> Path:
    path.mkdir()
    for name in files:
        (path / name).touch()
    return path


@pytest.mark.parametrize("error", [None, DataError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("earlier", [None, ["a.txt", "stale.txt"]])
def test_an_atomic_directory_appears_at_the_end_or_never(
    tmp_path: Path, error: type[BaseException] | None, earlier: list[str] | None
) -> None:
    target = tmp_path / "out" if earlier else tmp_path / "deep/out"
    if earlier:
        folder(target, *earlier)
    with pytest.raises(error) if error else contextlib.nullcontext(), atomic_directory(target) as temporary:
        write_text(temporary / "a.txt", "new")
        (temporary / "sub").mkdir()
        assert (names(target) if target.exists() else None) == earlier
        if error:
            raise error("stop")
    assert (names(target) if target.exists() else None) == (earlier if error else ["a.txt", "sub"])
    assert error or (target / "a.txt").read_text(encoding="utf-8") == "new"
    assert names(target.parent) == ["out"] * target.exists()


@pytest.mark.parametrize("new", [None, ["begun"]])
def test_what_a_killed_command_set_aside_stays_until_the_new_one_is_complete(
    tmp_path: Path, new: list[str] | None
) -> None:
    """Two further commands replace what was begun; neither touches the result."""
    target = folder(tmp_path / "out", "old")
    set_aside(target)
    if new:
        folder(target, *new)
        with locked(target):
            assert (names(target), names(tmp_path)) == (["begun"], [".out.earlier", ".out.lock", "out"])
            set_aside(target)
    with locked(target):  # nothing is in its place
        assert names(target) == ["old"]
        set_aside(target)
        folder(target, "new")
        discard_earlier(target)
    assert (names(target), names(tmp_path)) == (["new"], ["out"])


def test_a_failure_says_how_to_take_the_earlier_folder_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    target = folder(Path("my out"), "old")

    def replace(error: type[BaseException] | None, *files: str) -> None:
        with replacing(target):
            set_aside(target)
            folder(target, *files)
            if error:
                raise error

    for error in (DataError, KeyboardInterrupt):
        with pytest.raises(error):
            replace(error, "begun")
    (line, again) = caplog.messages
    assert line == again
    subprocess.run(line.partition("take it back with: ")[2], shell=True, check=True)
    assert (names(target), names(tmp_path)) == (["old"], ["my out"])
    replace(None, "new")
    assert (names(target), names(tmp_path)) == (["new"], ["my out"])


@pytest.mark.parametrize("moment", range(9))
def test_replacing_can_be_interrupted_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int) -> None:
    """At each rename and each deleted file, as by a kill; one of the two is whole, and the next command tidies up."""
    target = folder(tmp_path / "out", "old", "older")
    with monkeypatch.context() as patched, contextlib.suppress(KeyboardInterrupt), atomic_directory(target) as new:
        write_text(new / "new", "new")
        cut_off(patched, moment)
    place = target if target.exists() else tmp_path / ".out.earlier"
    assert names(place) in (["old", "older"], ["new"])
    with locked(target):
        assert names(target) in (["old", "older"], ["new"])
    with locked(target), atomic_directory(target) as newer:
        write_text(newer / "newer", "newer")
    assert (names(target), names(tmp_path)) == (["newer"], ["out"])


@pytest.mark.parametrize("moment", range(5))
def test_setting_aside_can_be_interrupted_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    target = folder(tmp_path / "out", "old")
    set_aside(target)
    folder(target, "begun", "x")
    with monkeypatch.context() as patched, contextlib.suppress(KeyboardInterrupt):
        cut_off(patched, moment)
        set_aside(target)
    whole = target.exists()
    assert whole == (moment == 0)
    with locked(target):
        assert names(target) == (["begun", "x"] if whole else ["old"])
    assert names(tmp_path) == [".out.earlier"] * whole + ["out"]


def cut_off(patched: pytest.MonkeyPatch, moment: int) -> None:
    """Let the n-th call of what changes folders raise before it does anything, and all that follow."""
    calls = itertools.count()
    for name in ("rename", "unlink", "rmdir"):

        def cut(*given: Any, original: Callable[..., None] = getattr(os, name), **named: Any) -> None:
            if next(calls) >= moment:
                raise KeyboardInterrupt
            original(*given, **named)

        patched.setattr(os, name, cut)


def test_a_lock_leaves_nothing_and_cleans_up_after_a_killed_command(tmp_path: Path) -> None:
    folder(tmp_path / ".out.partial-123", "half")
    folder(tmp_path / ".out.b.partial-123", "of another folder")
    with locked(tmp_path / "out"), pytest.raises(DataError, match=r"out: in use by another command \(process \d+\)"):
        locked(tmp_path / "out").__enter__()
    assert names(tmp_path) == [".out.b.partial-123"]
    with locked(tmp_path / "deep/er/out"):
        pass
    assert names(tmp_path) == [".out.b.partial-123"]


def hold(target: Path) -> None:
    with locked(target):
        print("held", flush=True)
        sys.stdin.read()


def test_a_lock_counts_while_its_process_lives(tmp_path: Path) -> None:
    target = folder(tmp_path / "run")
    with processes.start(program=functools.partial(hold, target), stdin=PIPE, stdout=PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        assert is_locked(target)
        process.kill()
    assert names(tmp_path) == [".run.lock", "run"]
    assert not is_locked(target)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_lock_of_another_user_counts_as_held() -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:  # those of pytest are private
        Path(name).chmod(0o755)
        (Path(name) / ".run.lock").touch()
        os.seteuid(65534)
        try:
            assert is_locked(Path(name) / "run")
        finally:
            os.seteuid(0)


def test_leftovers_of_a_killed_process(tmp_path: Path) -> None:
    """Cut off in a write of a file, in one of a folder, and before and after a new folder took the old one's place."""
    (tmp_path / ".a.json.partial-12").write_text("{")
    (tmp_path / ".curve.png.partial").write_text("")
    (tmp_path / ".b.partial-12").mkdir()
    for place in ("b", ".b.earlier", ".c.earlier"):
        write_text(folder(tmp_path / place) / "name", place)
    (tmp_path / ".mine").touch()
    clean_up(tmp_path)
    assert names(tmp_path) == [".mine", "b", "c"]
    assert (tmp_path / "b/name").read_text(encoding="utf-8") == "b"
    assert (tmp_path / "c/name").read_text(encoding="utf-8") == ".c.earlier"
    clean_up(tmp_path / "nowhere")


def test_data_that_is_being_written_is_not_read(tmp_path: Path) -> None:
    written = pytest.raises(DataError, match="is being written by another command")
    with locked(tmp_path / "data"), written, reading(tmp_path / "data", Path("run")):
        pytest.fail("it was read")
    with reading(tmp_path / "data", Path("run")), pytest.raises(DataError, match="in use by the run run"):
        check_not_in_use(tmp_path / "data")
    check_not_in_use(tmp_path / "data")
    assert not list(tmp_path.glob(".*"))


def test_data_in_a_read_only_folder_is_read(tmp_path: Path) -> None:
    with reading(tmp_path / "gone/data", Path("run")):
        pass
    assert not (tmp_path / "gone").exists()
