"""SIGKILL at bad moments: the resumed run is the uninterrupted run."""

import functools
import random
import signal
from pathlib import Path

import processes
import pytest
from conftest import Project, assert_same_run, call, train_arguments

pytestmark = pytest.mark.usefixtures("no_pictures")


def run_killed(function: str, number: int, arguments: list[str], word: str = "") -> bool:
    """Run `nmt` that is killed at the n-th call of a function; whether it came so far."""
    done = processes.run(*arguments, prepare=functools.partial(processes.kill_at, function, number, word))
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode != 0


def test_three_kills(random_project: Project, tmp_path: Path) -> None:
    """Inside the second checkpoint, in an update between two checkpoints, and while the best model is written."""
    run = tmp_path / "run"
    begin, resume = (train_arguments(random_project, run, *more) for more in ([], ["--resume"]))
    # The tensors, the folder; the tensors again.
    assert run_killed("nmt.training.checkpoint.sync", 3, begin)
    assert [path.name for path in sorted((run / "checkpoints").iterdir())] == [
        ".update-000000012.safetensors.partial-0",
        "update-000000006.safetensors",
    ]
    moment = random.SystemRandom().randrange(8, 12)
    print(f"killed at update {6 + moment}")
    assert run_killed("nmt.training.loop.train_step", moment, resume)
    assert run_killed("nmt.models.storage._weights_of", 1, resume)
    assert list(run.glob(".best.partial-*"))
    assert call(*resume) == 0
    assert_same_run(run, random_project.run)


PLACES = {
    **{"os.fsync": 24, "os.replace": 20, "shutil.rmtree": 2, "nmt.training.loop.train_step": 15},
    **{"nmt.training.checkpoint.write_tensors": 3, "os.unlink": 12},
    **{"nmt.training.metrics_log.append_text": 6, "nmt.evaluation.validator.mean_loss": 2},
    **{"nmt.training.directory.write_json": 4, "nmt.models.storage._weights_of": 1, "nmt.models.storage.write_json": 1},
    **{"nmt.system.replacement.set_aside": 1, "nmt.system.replacement.discard_earlier": 4},
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
