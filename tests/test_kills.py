"""SIGKILL at bad moments: the resumed run is the uninterrupted run."""

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Project, assert_same_run, call, train_arguments

# `nmt` that kills itself at the n-th call of a function, before the function does anything.
KILLED = """
import importlib, itertools, os, signal, sys

name, number, *arguments = sys.argv[1:]
module, _, function = name.rpartition(".")
place, calls = importlib.import_module(module), itertools.count(1)
original = getattr(place, function)

def kill(*given, **named):
    if next(calls) == int(number):
        os.kill(os.getpid(), signal.SIGKILL)
    return original(*given, **named)

setattr(place, function, kill)
sys.argv = ["nmt", *arguments]
from nmt.cli import main
main()
"""


def run_killed(function: str, number: int, arguments: list[str]) -> bool:
    """Run `nmt` that is killed at a call of a function; whether it came so far."""
    command = [sys.executable, "-c", KILLED, function, str(number), *arguments]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode != 0


def test_three_kills(random_project: Project, tmp_path: Path) -> None:
    """Inside the second checkpoint, in an update between two checkpoints, and while the best model is written."""
    run = tmp_path / "run"
    begin, resume = (train_arguments(random_project, run, *more) for more in ([], ["--resume"]))
    # The tensors, the folder, the checksum, the folder; the tensors again.
    assert run_killed("nmt.training.checkpoint.flush", 5, begin)
    assert [path.name for path in sorted((run / "checkpoints").iterdir())] == [
        "update-000000006.safetensors",
        "update-000000006.safetensors.sha256",
        "update-000000012.safetensors.partial",
    ]
    moment = random.SystemRandom().randrange(8, 12)
    print(f"killed at update {6 + moment}")
    assert run_killed("nmt.training.loop.train_step", moment, resume)
    assert run_killed("nmt.model.storage.save_weights", 1, resume)
    assert list(run.glob(".best.partial-*"))
    assert call(*resume) == 0
    assert_same_run(run, random_project.run)


PLACES = {
    "os.fsync": 24,
    "os.replace": 20,
    "nmt.training.loop.train_step": 15,
    "nmt.training.checkpoint.save_file": 3,
    "nmt.training.checkpoint.delete_checkpoint": 2,
    "nmt.workflow.train.append_text": 6,
    "nmt.workflow.train.write_state": 4,
    "nmt.workflow.train.draw_learning_curve": 2,
    "nmt.model.storage.save_weights": 1,
    "nmt.model.storage.write_json": 1,
    "nmt.evaluation.evaluate.mean_loss": 2,
    "nmt.files.set_aside": 1,
    "nmt.files.settle": 6,
    "shutil.rmtree": 2,
}
"""Functions at whose calls a run may be killed, and how many calls a short life sees."""


@pytest.mark.soak
@pytest.mark.parametrize(
    "settings",
    [
        [],
        [
            "train.optimizer={name: sgd, learning_rate: 0.5, momentum: 0.9}",
            "train.batch.accumulate=2",
            "train.schedule.name=cosine",
            "train.checkpoint.keep_last=1",
        ],
        ["train.precision=bfloat16", "train.checkpoint.keep_best=2"],
    ],
    ids=["adam", "sgd", "bfloat16"],
)
def test_twenty_kills(random_project: Project, tmp_path: Path, settings: list[str]) -> None:
    expected, run = tmp_path / "expected", tmp_path / "run"
    settings = [*settings, "train.epochs=30", "train.validation.patience=null"]  # long enough for 20 short lives
    assert call(*train_arguments(random_project, expected, *settings)) == 0
    seed = random.SystemRandom().randrange(10**6)  # training seeds the global generator
    print(f"seed {seed}")
    rng = random.Random(seed)
    kills, begun = 0, False
    while kills < 20:
        place = rng.choice(list(PLACES))
        number = rng.randint(1, PLACES[place])
        print(f"{place}, call {number}")
        arguments = train_arguments(random_project, run, *settings, *["--resume"] * begun)
        if not run_killed(place, number, arguments):
            break
        kills += 1
        begun = begun or (run / "run.json").exists()
    print(f"{kills} kills")
    assert kills == 20
    assert call(*train_arguments(random_project, run, *settings, *["--resume"] * begun)) == 0
    assert_same_run(run, expected)
    for name in ("models", "checkpoints"):
        found, wanted = (sorted(str(p.relative_to(r)) for p in (r / name).rglob("*")) for r in (run, expected))
        assert found == wanted
