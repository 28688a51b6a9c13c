import json
import os
import shutil
import sys
import time
from pathlib import Path

import pytest
from conftest import Cli, Outcome, Project

import nmt
from nmt.models.lookup import find_model, read_value
from nmt.system.files import read_json, write_json
from nmt.system.replacement import locked
from nmt.training.run_records import list_runs

METADATA = {
    "state": "finished",
    "launch": None,
    "parameters": 10,
    "updates_per_epoch": 600,
    "tokens": 10**6,
    "total_seconds": 4000.0,
    "tokens_per_second": 268.6,
    "updates": 1234,
    "total_updates": 5678,
    "epochs": 3,
    "metric": "bleu",
    "best": 26.708,
    "best_update": 1000,
    "training_seconds": 3723.4,
}


def write(folder: Path, name: str, state: str, age: float, **changes: object) -> Path:
    """A run whose state was written so many seconds ago."""
    run = folder / name
    run.mkdir()
    then = time.time() - age
    told = time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(then))
    write_json(run / "run.json", {**METADATA, "time": told, "state": state, **changes})
    os.utime(run / "run.json", (then, then))
    return run


def rows(folder: Path) -> list[list[str]]:
    """Cells of the list of the runs in a folder."""
    return [list(row) for row in list_runs(folder).rows]


def test_runs_in_all_states(tmp_path: Path) -> None:
    write(tmp_path, "done", "finished", 50)
    write(tmp_path, "halted", "stopped", 40, best=None, best_update=0)
    write(tmp_path, "failed", "broken", 30, reason="disk")
    write(tmp_path, "killed", "running", 20)
    write(tmp_path, "alive", "running", 10)
    damaged = write(tmp_path, "damaged", "finished", 0)
    (damaged / "run.json").write_text('{"state": "fin')
    (tmp_path / "no run").mkdir()
    write(tmp_path, ".hidden", "finished", 0)
    with locked(tmp_path / "alive"):
        found = rows(tmp_path)
    header = ["run", "", "state", "updates", "best", "training", "last change", "epoch", "at"]
    assert list(list_runs(tmp_path).header) == header
    reached = ["1,234/5,678", "bleu 26.71", "1:02:03"]
    assert [row[:6] + row[7:] for row in found[:-1]] == [
        ["done", "", "finished", *reached, "3", "1,000"],
        ["halted", "", "stopped", "1,234/5,678", "-", "1:02:03", "3", "-"],
        ["failed", "", "broken", *reached, "3", "1,000"],
        ["killed", "", "broken", *reached, "3", "1,000"],
        ["alive", "", "running", *reached, "3", "1,000"],
    ]
    assert found[-1] == ["damaged", "", "broken", *["-"] * 6]
    assert all(row[6].startswith(time.strftime("%Y-")) for row in found[:-1])


ENDLESS = b"""{"state": "finished", "updates": 3, "total_updates": 3, "epochs": 1, "best": null,
"training_seconds": 1e999,
"time": "2026-01-01T00:00:00+0000"}"""


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{}", b'{"state": 5}', b"\xff", b'{"state": "finished", "updates": 3}', b"[" * 100_000, ENDLESS],
)
def test_a_damaged_state_is_one_row(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/run.json").write_bytes(content)
    assert rows(tmp_path)[0] == ["run", "", "broken", *["-"] * 6]


def test_runs_that_were_copied_keep_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy gives every file the time of the copy, or one second later the other way round."""
    monkeypatch.chdir(tmp_path)
    Path("runs").mkdir()
    for age, name in enumerate(["new", "middle", "old"]):
        run = write(Path("runs"), name, "finished", 100 * age)
        write_json(folder(run / "best") / "model.json", {})
        os.utime(run / "run.json", (time.time() + age, time.time() + age))
    assert [row[0] for row in rows(Path("runs"))] == ["old", "middle", "new"]
    assert find_model(None) == Path("runs/new/best")


def test_runs_of_the_same_second_and_of_no_known_time(tmp_path: Path) -> None:
    """The times of their files decide."""
    for age, name in enumerate(["c", "b", "a"]):
        run = write(tmp_path, name, "finished", 0)
        told = {"c": "2026-01-01T00:00:00+0000", "b": "2026-01-01T01:00:00+0100", "a": "?"}[name]
        write_json(run / "run.json", read_json(run / "run.json") | {"time": told})
        then = 1767225600 + 0.5 - age / 10  # half a second after what the first two tell
        os.utime(run / "run.json", (then, then))
    assert [row[0] for row in rows(tmp_path)] == ["b", "c", "a"]


def test_the_run_that_commands_use_by_default_is_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for place in (Path("runs"), Path("elsewhere")):
        place.mkdir()
        for age, (name, state) in enumerate({"halted": "stopped", "new": "finished", "old": "finished"}.items()):
            write_json(folder(write(place, name, state, 100 * age) / "best") / "model.json", {})
    marks = {"old": "", "new": "*", "halted": ""}
    assert {row[0]: row[1] for row in rows(Path("runs"))} == marks
    assert {row[0]: row[1] for row in rows(tmp_path / "runs")} == marks
    assert find_model(None) == Path("runs/new/best")
    assert {row[1] for row in rows(Path("elsewhere"))} == {""}


def test_a_command_says_which_of_several_models_it_chose(
    here: Project, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def at_terminal(*command: object) -> Outcome:
        with monkeypatch.context() as patched:
            patched.setattr(sys.stderr, "isatty", lambda: True)
            return cli(*command)

    shutil.copytree(here.run, "runs/second")
    then = "2030-01-01T00:00:00+0000"
    write_json(Path("runs/second/run.json"), read_json(Path("runs/second/run.json")) | {"time": then})
    Path("a.txt").write_text("a b\n", encoding="utf-8")
    Path("b.txt").write_text("B A\n", encoding="utf-8")
    files = ("--src", "a.txt", "--ref", "b.txt")
    line = "model: runs/second, newest of 2"
    for command in (
        ("translate", "a b"),
        ("attention", "a b"),
        ("score", "--src", "a.txt", "--tgt", "b.txt"),
        ("report", *files, "--output", "report.html", "--overwrite"),
    ):
        shown, piped, given = at_terminal(*command), cli(*command), at_terminal(*command, "--model", "runs/second")
        assert shown.err.splitlines()[0] == line
        assert piped.err.splitlines()[0] == line
        assert line not in given.err
        assert shown.out == piped.out == given.out
    for command in (("explain", "a b"), ("evaluate", *files)):  # they name it in any case
        shown = at_terminal(*command)
        assert line not in shown.err.splitlines()
        assert "runs/second/best" in shown.out + shown.err


def test_a_lone_model_is_named_at_a_terminal_alone(here: Project, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "model: " not in cli("translate", "a b").err
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert cli("translate", "a b").err.splitlines()[0] == f"model: {here.run}, newest of 1"


@pytest.mark.parametrize("place", ["runs/trials", "runs/comparisons/x/cells/one", "runs/backtranslation/x/complete"])
def test_a_run_in_a_folder_below_is_no_default(here: Project, cli: Cli, place: str) -> None:
    """Trials, cells of comparisons, and the models that back-translation makes on its way."""
    newer = Path(shutil.copytree(here.run, Path(place, "run")))
    record = read_json(newer / "run.json") | {"time": "2030-01-01T00:00:00+0000"}
    write_json(newer / "run.json", record)
    assert find_model(None) == here.run / "best"
    assert repr(nmt.load()).startswith(f"<Translator {here.run}/best: ")
    assert [row[1] for row in rows(Path("runs"))] == ["*"]


def test_a_run_is_found_by_its_name(here: Project, cli: Cli) -> None:
    one = cli("translate", "a b", "--model", here.run).out
    for name in (here.run.name, f"runs/{here.run.name}"):
        assert cli("translate", "a b", "--model", name).out == one
    Path("a.txt").write_text("a b\n", encoding="utf-8")
    files = ("--src", "a.txt", "--ref", "a.txt", "--no-short-inputs")
    shutil.copytree(here.run, "runs/second")
    assert "\nruns/second\t" in cli("evaluate", "--model", here.run.name, "--against", "second", *files).out
    average = cli("average", here.run.name, "second", "--output", "average")
    assert average.err == "model directory: average, the average of 2 models\n"
    start = f"nmt: error: {here.run.name}: "
    assert cli("average", here.run.name, "--last", 2, "--output", "other").err.startswith(f"{start}has kept ")
    Path(here.run.name).mkdir()  # what is there comes first
    assert cli("translate", "a b", "--model", here.run.name).err.startswith(f"{start}is not a model directory")
    for name in ("nowhere", "..", ".", "runs", "../second"):
        assert cli("translate", "a b", "--model", name).code == 1


def folder(path: Path) -> Path:
    path.mkdir()
    return path


def test_no_runs(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").touch()
    problems = {"empty": "contains no runs", "nowhere": "does not exist", "notes.txt": "is not a directory"}
    for name, what in problems.items():
        found = cli("runs", tmp_path / name)
        assert found.code == 1
        assert found.err == f"nmt: error: {tmp_path / name}: {what}; train first, or give the folder of your runs\n"


def test_a_run_itself_is_listed(tmp_path: Path, cli: Cli) -> None:
    write(tmp_path, "alive", "finished", 0)
    alone = cli("runs", tmp_path / "alive").out.splitlines()[-1].split("\t")
    among = cli("runs", tmp_path).out.splitlines()[-1].split("\t")
    assert (alone[0], among[0]) == (".", "alive")
    assert alone[1:] == among[1:]


def test_listing_leaves_no_trace_and_takes_no_lock(tmp_path: Path) -> None:
    write(tmp_path, "alive", "running", 0)
    with locked(tmp_path / "alive"):
        before = sorted(tmp_path.rglob("*"))
        for _ in range(3):
            assert rows(tmp_path)[0][2] == "running"
        assert sorted(tmp_path.rglob("*")) == before
    assert rows(tmp_path)[0][2] == "broken"
    with locked(tmp_path / "alive"):
        pass


def test_the_command_lists_a_real_run(random_project: Project, cli: Cli) -> None:
    found = cli("runs", random_project.root)
    assert (found.code, found.err) == (0, "")
    _, row = (line.split("\t") for line in found.out.splitlines())
    state = json.loads((random_project.run / "run.json").read_text(encoding="utf-8"))
    assert row[:5] == ["run", "", "finished", "30/30", f"loss {state['best']:.2f}"]
    assert row[7] == "2"
    assert read_value(random_project.run, "state") == "finished"
