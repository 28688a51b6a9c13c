"""`nmt train --overwrite` keeps the earlier run until the new one has learnt something."""

import json
import shutil
from pathlib import Path

import pytest
from conftest import Cli, Project, assert_same_run, call, signal_at, train_arguments
from test_faults import errors, tree
from test_kills import run_killed

from nmt.models.runs import find_model, write_state
from nmt.system.errors import CheckpointError
from nmt.system.replacement import Verdict
from nmt.training.checkpoint import Checkpoint, write_checkpoint
from nmt.training.resume import judge

DIVERGING = ["train.optimizer.learning_rate=1.0e+38", "train.max_skipped=50"]
WORSE = ["train.optimizer={name: sgd, learning_rate: 30.0, clip_norm: null}"]  # all is finite, and worse than guessing


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Learning curves take most of the time of such short runs."""
    monkeypatch.setattr("nmt.training.run.draw_learning_curve", lambda run: None)


@pytest.fixture
def run(random_project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An earlier run that is finished, in the working folder's `runs`."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(random_project.run, tmp_path / "runs/run")
    return Path("runs/run")


def stop(project: Project, run: Path, update: int, monkeypatch: pytest.MonkeyPatch, *more: str) -> None:
    with monkeypatch.context() as patched:
        signal_at(patched, update)
        assert call(*train_arguments(project, run, *more)) == 75


def runs() -> list[str]:
    """What is in `runs`, hidden or not."""
    return sorted(path.name for path in Path("runs").iterdir())


def shown(cli: Cli) -> list[list[str]]:
    """Name, state and updates of the runs that `nmt runs` lists."""
    return [row.split()[:3] for row in cli("runs").out.splitlines()[1:]]


BACK = "runs/run: restored the earlier run, as the new one has learnt nothing"
KEPT = "runs/run: keeping the earlier run as .run.earlier until the new one learns something"


@pytest.mark.parametrize(
    "settings",
    [
        DIVERGING,
        WORSE,
        [*DIVERGING, "train.max_skipped=3"],
        [*WORSE, "train.checkpoint={every: null, minutes: 1000}"],  # nothing to resume from at the first validation
    ],
)
def test_a_run_that_learnt_nothing_replaces_none(
    random_project: Project, run: Path, cli: Cli, settings: list[str]
) -> None:
    """Neither its checkpoints nor its best model are worth the earlier run."""
    before = tree()
    found = cli(*train_arguments(random_project, run, "--overwrite", "train.checkpoint.every=1", *settings))
    assert found.code == 1
    assert found.err.count(BACK) == 1
    assert len(errors(found.err)) == 1
    assert tree() == before
    assert find_model(None) == run / "best"


def test_a_run_that_has_learnt_replaces_the_earlier_one_at_once(
    random_project: Project, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop(
        random_project,
        run,
        8,
        monkeypatch,
        "--overwrite",
        "train.validation.every=7",
        "train.optimizer.learning_rate=0.03",
    )
    assert json.loads((run / "run.json").read_text(encoding="utf-8"))["learnt"] is True
    assert runs() == ["run"]


def test_a_run_with_checkpoints_alone_leaves_both_until_it_has_learnt(
    random_project: Project, run: Path, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = "train.validation.every=20"
    whole = tmp_path / "whole"
    assert call(*train_arguments(random_project, whole, late)) == 0
    earlier = tree(run)
    with monkeypatch.context() as patched:
        signal_at(patched, 9)
        found = cli(*train_arguments(random_project, run, late, "--overwrite"))
    assert found.code == 75
    assert found.err.count(KEPT) == 1
    assert runs() == [".run.earlier", "run"]
    assert {
        name.replace(".run.earlier", "run"): text for name, text in tree(Path("runs/.run.earlier")).items()
    } == earlier
    assert shown(cli) == [["run", "stopped", "9"]]
    with pytest.raises(CheckpointError, match="no finished run"):
        find_model(None)
    stop(random_project, run, 15, monkeypatch, late, "--resume")
    assert runs() == [".run.earlier", "run"]
    assert call(*train_arguments(random_project, run, late, "--resume")) == 0
    assert runs() == ["run"]
    assert_same_run(run, whole)


def test_a_resumed_run_that_learnt_nothing_restores_the_earlier_one(
    random_project: Project, run: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tree()
    stop(random_project, run, 5, monkeypatch, "--overwrite", *WORSE)
    found = cli(*train_arguments(random_project, run, "--resume", *WORSE))
    assert found.code == 1
    assert found.err.count(BACK) == 1
    assert tree() == before


def test_a_run_with_results_outlives_two_replacements(
    random_project: Project, run: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that has only checkpoints is replaced in its turn, by one that learns nothing."""
    before = tree()
    stop(random_project, run, 5, monkeypatch, "--overwrite")
    refused = cli(*train_arguments(random_project, run))
    assert refused.code == 1
    assert "contains an unfinished run; resume with: " in errors(refused.err)[0]
    assert cli(*train_arguments(random_project, run, "--overwrite", *WORSE)).code == 1
    assert tree() == before


@pytest.mark.parametrize(
    ("function", "number", "left"),
    [
        pytest.param("nmt.training.loop.train_step", 3, None, marks=pytest.mark.soak),
        ("nmt.training.loop.train_step", 7, 6),  # after the first checkpoint
        pytest.param("nmt.models.storage.save_weights", 1, 6, marks=pytest.mark.soak),
        pytest.param(
            "nmt.training.run.settle", 1, 6, marks=pytest.mark.soak
        ),  # the first model, not better than a fresh one
    ],
)
def test_kills_while_an_earlier_run_waits(
    random_project: Project, run: Path, cli: Cli, function: str, number: int, left: int | None
) -> None:
    before = tree()
    assert run_killed(function, number, train_arguments(random_project, run, "--overwrite"))
    assert runs() == [".run.earlier", ".run.lock", "run"]
    found = cli(*train_arguments(random_project, run, "--resume"))
    assert found.code == 0, found.err
    if left is None:
        assert BACK in found.err
        assert "stopped at update 30: all 30 updates are done; to continue" in found.err  # of the earlier run
        before = {name: text for name, text in before.items() if not name.endswith("run.json")}
        assert {name: text for name, text in tree().items() if not name.endswith("run.json")} == before
    else:
        assert f"runs/run: resumed at update {left}" in found.err
        assert_same_run(run, random_project.run)
    assert runs() == ["run"]


@pytest.mark.parametrize(
    ("state", "learnt", "checkpoint", "verdict"),
    [
        ("running", None, False, Verdict.EARLIER),
        ("running", None, True, Verdict.BOTH),
        ("running", True, False, Verdict.NEW),
        ("stopped", None, True, Verdict.BOTH),
        ("stopped", True, True, Verdict.NEW),
        ("broken", None, True, Verdict.BOTH),  # a full disk, two interrupts
        ("broken", None, False, Verdict.EARLIER),
        ("broken", False, True, Verdict.EARLIER),
        ("broken", True, True, Verdict.NEW),
        ("finished", True, True, Verdict.NEW),
        (None, None, True, Verdict.BOTH),  # its run.json was lost
        (None, None, False, Verdict.EARLIER),
    ],
)
def test_verdicts_about_a_run(
    tmp_path: Path, state: str | None, learnt: bool | None, checkpoint: bool, verdict: Verdict
) -> None:
    (tmp_path / ".hidden").touch()
    if state:
        write_state(tmp_path, state, learnt=learnt)
    if checkpoint:
        write_checkpoint(tmp_path, 3, Checkpoint({}, {}), keep=1)
    assert judge(tmp_path) is verdict


def test_files_of_others_in_the_place_of_a_run_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    assert judge(tmp_path) is Verdict.BOTH
    assert judge(tmp_path / "nowhere") is Verdict.EARLIER
