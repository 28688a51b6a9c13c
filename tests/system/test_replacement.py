import contextlib
import itertools
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nmt.system.errors import DataError
from nmt.system.files import write_text
from nmt.system.replacement import (
    Verdict,
    atomic_directory,
    check_not_in_use,
    check_output,
    clean_up,
    is_locked,
    locked,
    reading,
    set_aside,
    settle,
)


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def folder(path: Path, *files: str) -> Path:
    path.mkdir()
    for name in files:
        (path / name).touch()
    return path


@pytest.mark.parametrize("overwrite", [False, True])
def test_new_and_empty_folders_are_accepted(tmp_path: Path, overwrite: bool) -> None:
    check_output(tmp_path / "new" / "deep", "marker.json", overwrite=overwrite)
    check_output(folder(tmp_path / "empty"), "marker.json", overwrite=overwrite)
    assert names(tmp_path) == ["empty"]


def test_an_earlier_result_is_replaced_only_when_asked(tmp_path: Path) -> None:
    earlier = folder(tmp_path / "out", "marker.json", "other.txt")
    with pytest.raises(DataError, match="contains an earlier result; add --overwrite"):
        check_output(earlier, "marker.json", overwrite=False)
    check_output(earlier, "marker.json", overwrite=True)
    assert names(earlier) == ["marker.json", "other.txt"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_files_of_others_are_never_replaced(tmp_path: Path, overwrite: bool) -> None:
    theirs = folder(tmp_path / "out", "thesis.tex")
    with pytest.raises(DataError, match=r"other files \(no marker\.json\)"):
        check_output(theirs, "marker.json", overwrite=overwrite)


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_is_not_an_output_folder(tmp_path: Path, overwrite: bool) -> None:
    (tmp_path / "out").touch()
    with pytest.raises(DataError, match="out: is a file"):
        check_output(tmp_path / "out", "marker.json", overwrite=overwrite)


def test_an_atomic_directory_appears_only_at_the_end(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "out"
    with atomic_directory(target) as temporary:
        write_text(temporary / "a.txt", "new")
        (temporary / "sub").mkdir()
        assert not target.exists()
    assert names(target) == ["a.txt", "sub"]
    assert names(tmp_path / "deep") == ["out"]


def test_an_atomic_directory_replaces_the_old_one(tmp_path: Path) -> None:
    target = folder(tmp_path / "out", "a.txt", "stale.txt")
    with atomic_directory(target) as temporary:
        write_text(temporary / "a.txt", "new")
        assert names(target) == ["a.txt", "stale.txt"]
    assert names(target) == ["a.txt"]
    assert (target / "a.txt").read_text(encoding="utf-8") == "new"
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("error", [DataError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("existed", [False, True])
def test_a_failing_block_changes_nothing(tmp_path: Path, error: type[BaseException], existed: bool) -> None:
    target = tmp_path / "out"
    if existed:
        folder(target, "old.txt")

    def fail() -> None:
        with atomic_directory(target) as temporary:
            write_text(temporary / "new.txt", "new")
            raise error("stop")

    with pytest.raises(error):
        fail()
    assert names(tmp_path) == ["out"] * existed
    if existed:
        assert names(target) == ["old.txt"]


@pytest.mark.parametrize(
    ("new", "verdict", "kept"),
    [
        (None, Verdict.EARLIER, ["old"]),
        ([], Verdict.EARLIER, ["old"]),
        (["begun"], Verdict.EARLIER, ["old"]),
        (["begun", "open"], Verdict.BOTH, ["begun", "open"]),
        (["begun", "worth"], Verdict.NEW, ["begun", "worth"]),
    ],
)
def test_an_earlier_folder_is_settled_however_the_command_ended(
    tmp_path: Path, new: list[str] | None, verdict: Verdict, kept: list[str]
) -> None:
    target = folder(tmp_path / "out", "old")
    set_aside(target)
    assert not target.exists()
    if new is not None:
        folder(target, *new)
    with locked(target, judge_by_names) as decided:
        assert decided is verdict
    assert names(target) == kept
    assert names(tmp_path) == [".out.earlier"] * (verdict is Verdict.BOTH) + ["out"]
    assert settle(target, judge_by_names) is (Verdict.BOTH if verdict is Verdict.BOTH else None)


def judge_by_names(directory: Path) -> Verdict:
    if (directory / "worth").exists():
        return Verdict.NEW
    return Verdict.BOTH if (directory / "open").exists() else Verdict.EARLIER


def test_an_atomically_created_folder_needs_no_judge(tmp_path: Path) -> None:
    target = folder(tmp_path / "out", "old")
    for verdict, files in ((Verdict.EARLIER, None), (Verdict.NEW, "new")):
        set_aside(target)
        if files:
            folder(target, files)
        assert settle(target) is verdict
        assert names(target) == [files or "old"]
    assert names(tmp_path) == ["out"]


def test_of_three_folders_the_one_with_results_is_kept(tmp_path: Path) -> None:
    target = folder(tmp_path / "out", "old")
    set_aside(target)
    folder(target, "begun", "open")
    set_aside(target)
    folder(target, "begun")
    assert settle(target, judge_by_names) is Verdict.EARLIER
    assert (names(target), names(tmp_path)) == (["old"], ["out"])


@pytest.mark.parametrize("new", [["begun", "open", "x"], ["begun", "worth", "x"], ["begun", "x", "y"]])
@pytest.mark.parametrize("moment", range(8))
def test_settling_can_be_interrupted_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new: list[str], moment: int
) -> None:
    """At each rename and each deleted file, as by a kill; the next command decides the same."""
    target = folder(tmp_path / "out", "old", "older")
    set_aside(target)
    folder(target, *new)
    verdict = judge_by_names(target)
    with monkeypatch.context() as patched:
        cut_off(patched, moment)
        with contextlib.suppress(KeyboardInterrupt):
            settle(target, judge_by_names)
    with locked(target, judge_by_names):
        pass
    assert names(target) == (["old", "older"] if verdict is Verdict.EARLIER else sorted(new))
    assert names(tmp_path) == [".out.earlier"] * (verdict is Verdict.BOTH) + ["out"]


@pytest.mark.parametrize("moment", range(8))
def test_setting_aside_can_be_interrupted_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    target = folder(tmp_path / "out", "old")
    set_aside(target)
    folder(target, "begun", "open", "x")
    with monkeypatch.context() as patched:
        cut_off(patched, moment)
        with contextlib.suppress(KeyboardInterrupt):
            set_aside(target)
    whole = target.exists()
    with locked(target, judge_by_names):
        pass
    assert names(target) == (["begun", "open", "x"] if whole else ["old"])
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


HOLDER = """
import sys
from pathlib import Path
from nmt.system.replacement import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


NOBODY = 65534


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that every user may look into, unlike those that pytest makes."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        yield Path(name)


@contextlib.contextmanager
def another_user() -> Iterator[None]:
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("mode", [0o644, 0o600])
def test_a_lock_of_another_user(shared: Path, mode: int) -> None:
    """Living and killed; a file that cannot even be read counts as held."""
    target = folder(shared / "run")
    command = [sys.executable, "-c", HOLDER, str(target)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        (shared / ".run.lock").chmod(mode)
        with another_user():
            assert is_locked(target)
        assert is_locked(target)
        process.kill()
    assert (shared / ".run.lock").exists()
    with another_user():
        assert is_locked(target) is (mode == 0o600)
    assert not is_locked(target)
    assert names(shared) == [".run.lock", "run"]
    (shared / ".run.lock").unlink()
    with another_user():
        assert not is_locked(target)


def test_leftovers_of_a_killed_process(tmp_path: Path) -> None:
    """Cut off in a write of a file, in one of a folder, and before and after a new folder took the old one's place."""
    (tmp_path / ".a.json.partial-12").write_text("{")
    (tmp_path / ".curve.png.partial").write_text("")
    (tmp_path / ".b.partial-12").mkdir()
    for place in ("b", ".b.earlier", ".c.earlier"):
        write_text_in(tmp_path / place, place)
    (tmp_path / ".mine").touch()
    clean_up(tmp_path)
    assert names(tmp_path) == [".mine", "b", "c"]
    assert (tmp_path / "b/name").read_text(encoding="utf-8") == "b"
    assert (tmp_path / "c/name").read_text(encoding="utf-8") == ".c.earlier"
    clean_up(tmp_path / "nowhere")


def write_text_in(folder: Path, text: str) -> None:
    folder.mkdir()
    write_text(folder / "name", text)


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
