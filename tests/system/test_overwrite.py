"""`nmt train --overwrite` keeps the earlier run until the new one is finished."""

import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import Cli, Project, assert_same_run, errors, train_arguments, tree
from test_kills import run_killed
from training_runs import stop, train

from nmt.models.lookup import find_model
from nmt.system.errors import CheckpointError

DIVERGING = ["train.epochs=1", "train.optimizer.learning_rate=1.0e+38", "train.max_skipped=50"]
WORSE = [  # all is finite, and worse than guessing
    "train.epochs=1",
    "train.optimizer={name: sgd, learning_rate: 30.0, clip_norm: null}",
]


@pytest.fixture
def run(random_project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An earlier run that is finished, in the working folder's `runs`."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(random_project.run, tmp_path / "runs/run")
    return Path("runs/run")


def runs() -> list[str]:
    """What is in `runs`, hidden or not."""
    return sorted(path.name for path in Path("runs").iterdir())


def shown(cli: Cli) -> list[list[str]]:
    """Name, state and updates of the runs that `nmt runs` lists."""
    rows = (row.split("\t") for row in cli("runs").out.splitlines()[1:])
    return [[name, state, updates.partition("/")[0]] for name, _, state, updates, *_ in rows]


KEPT = "runs/run: the earlier result is kept; take it back with: "


def take_back(err: str) -> None:
    """Do as the message says."""
    (line,) = (line for line in err.splitlines() if KEPT in line)
    subprocess.run(line.partition(KEPT)[2], shell=True, check=True)


@pytest.mark.parametrize(
    "settings",
    [
        [*DIVERGING, "train.checkpoint.every=4"],
        [*DIVERGING, "train.max_skipped=3"],
        [*WORSE, "train.checkpoint={every: null, minutes: 1000}"],  # nothing to resume from at the first validation
    ],
)
def test_a_run_that_learnt_nothing_replaces_none(
    random_project: Project, run: Path, cli: Cli, settings: list[str]
) -> None:
    """Neither its checkpoints nor its best model are worth the earlier run, which a second attempt does not touch."""
    before = tree()
    for _ in range(2):
        err = train(random_project, run, "--overwrite", *settings, code=1)
        assert len(errors(err)) == 1
        assert runs() == [".run.earlier", "run"]
        assert shown(cli)[0][:2] == ["run", "broken"]
        with pytest.raises(CheckpointError, match="no finished run"):
            find_model(None)
    take_back(err)
    assert tree() == before
    assert find_model(None) == run / "best"


def test_a_run_that_can_be_resumed_leaves_both_until_it_is_finished(
    random_project: Project, run: Path, cli: Cli
) -> None:
    before = tree(run)
    stop(random_project, run, 9, "--overwrite")
    assert shown(cli) == [["run", "stopped", "9"]]
    err = train(random_project, run, code=1)
    assert "contains an unfinished run; resume with: " in errors(err)[0]
    shutil.copytree("runs", "copy")
    take_back(err)
    assert tree(run) == before
    shutil.rmtree("runs")
    Path("copy").rename("runs")
    stop(random_project, run, 15, "--resume")
    assert runs() == [".run.earlier", "run"]
    train(random_project, run, "--resume")
    assert runs() == ["run"]
    assert_same_run(run, random_project.run)


@pytest.mark.parametrize(
    ("function", "number", "left"),
    [
        ("nmt.training.loop.train_step", 3, None),
        ("nmt.training.loop.train_step", 7, 6),  # after the first checkpoint
        pytest.param("nmt.models.storage._weights_of", 1, 6, marks=pytest.mark.soak),
        pytest.param("nmt.system.replacement.discard_earlier", 2, 30, marks=pytest.mark.soak),  # it is finished
    ],
)
def test_kills_while_an_earlier_run_waits(
    random_project: Project, run: Path, function: str, number: int, left: int | None
) -> None:
    word = "run" if function.endswith("discard_earlier") else ""
    assert run_killed(function, number, train_arguments(random_project, run, "--overwrite"), word)
    assert runs() == [".run.earlier", ".run.lock", "run"]
    err = train(random_project, run, "--resume")
    assert (f"runs/run: resumed at update {left}" if left else "no checkpoint yet; starting from scratch") in err
    assert_same_run(run, random_project.run)
    assert runs() == ["run"]
