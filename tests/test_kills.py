"""SIGKILL at bad moments: the resumed run is the uninterrupted run."""

import functools
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import processes
import pytest
from conftest import Project, assert_same_run, call, read_metrics, train_arguments, wait_until

from nmt.models.storage import load_model
from nmt.system.files import read_json

pytestmark = pytest.mark.usefixtures("no_pictures")


def run_killed(function: str, number: int, arguments: list[str], word: str = "") -> bool:
    """Run `nmt` that is killed at the n-th call of a function; whether it came so far."""
    done = processes.run(*arguments, prepare=functools.partial(processes.kill_at, function, number, word))
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode != 0


def children_of(process: int) -> list[int]:
    """Numbers of the processes that a process has started."""
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def kill_during_training(command: list[str], run: Path, update: int, total: int) -> None:
    """Kill a command, and what it has started, some moments after its log has come to an update."""
    with tempfile.TemporaryFile("a+") as said, subprocess.Popen(command, stderr=said) as process:

        def is_training() -> bool:
            said.seek(0)
            text = said.read()
            assert process.poll() is None, text
            return "training pairs, on " in text and any(entry["update"] >= update for entry in read_metrics(run))

        wait_until(is_training, 300)
        time.sleep(random.SystemRandom().uniform(0, 0.1))
        for number in (process.pid, *children_of(process.pid)):
            os.kill(number, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    reached = max(entry["update"] for entry in read_metrics(run))
    print(f"to be killed from update {update} on, killed after {reached} of {total}")
    assert update <= reached < total
    assert read_json(run / "run.json")["state"] == "running"


def moments(total: int) -> list[int]:
    """Three updates of a run, at random, not too near to its ends."""
    return sorted(random.SystemRandom().sample(range(total // 10, total * 4 // 5), 3))


def test_three_kills(random_project: Project, tmp_path: Path) -> None:
    """Inside the second checkpoint, in an update between two checkpoints, and while the best model is written."""
    run = tmp_path / "run"
    begin, resume = (train_arguments(random_project, run, *more) for more in ([], ["--resume"]))
    # The tensors, the folder; the tensors again.
    assert run_killed("nmt.training.checkpoint.sync", 3, begin)
    assert [path.name for path in sorted((run / "checkpoints").iterdir())] == [
        "update-000000006.safetensors",
        "update-000000012.safetensors.partial",
    ]
    moment = random.SystemRandom().randrange(8, 12)
    print(f"killed at update {6 + moment}")
    assert run_killed("nmt.training.loop.train_step", moment, resume)
    assert run_killed("nmt.models.storage.save_file", 1, resume)
    assert list(run.glob(".best.partial-*"))
    assert call(*resume) == 0
    assert_same_run(run, random_project.run)


@pytest.mark.parametrize(
    ("function", "number", "former"),
    [
        pytest.param("nmt.models.storage.save_file", 2, "best", marks=pytest.mark.soak),
        pytest.param("nmt.models.storage.write_json", 2, "best", marks=pytest.mark.soak),
        pytest.param("os.rename", 2, "best", marks=pytest.mark.soak),
        ("os.rename", 3, ".best.earlier"),  # the former one is out of the way, the new one not yet in its place
        pytest.param("os.rename", 4, ".best.earlier", marks=pytest.mark.soak),  # before the former one is deleted
    ],
)
def test_a_kill_while_a_better_model_is_saved_harms_neither(
    random_project: Project, tmp_path: Path, function: str, number: int, former: str
) -> None:
    run = tmp_path / "run"
    word = "best" if function == "os.rename" else ""
    assert run_killed(function, number, train_arguments(random_project, run), word)
    assert load_model(run / former).metadata["update"] == 7
    if (function, number) == ("os.rename", 4):
        assert load_model(run / "best").metadata["update"] == 14
    assert list(run.glob(".best.*"))
    assert call(*train_arguments(random_project, run, "--resume")) == 0
    assert_same_run(run, random_project.run)


PLACES = {
    **{"os.fsync": 24, "os.replace": 20, "shutil.rmtree": 2, "nmt.training.loop.train_step": 15},
    **{"nmt.training.checkpoint.save_file": 3, "os.unlink": 12},
    **{"nmt.training.metrics_log.append_text": 6, "nmt.evaluation.validator.mean_loss": 2},
    **{"nmt.training.directory.write_json": 4, "nmt.drawing.charts.draw_learning_curve": 2},
    **{"nmt.models.storage.save_file": 1, "nmt.models.storage.write_json": 1},
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


UNIGRAMS = """
text: {tokenizer: subword, subword: {algorithm: unigram, vocabulary_size: 60}, vocabulary: {min_count: 0}}
"""


@pytest.fixture(scope="module")
def unigram_project(random_project: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Words of several letters, so that there are segmentations to draw."""
    root = tmp_path_factory.mktemp("unigrams")
    rng, letters = random.Random(0), "abcdefgh"
    sources = {" ".join("".join(rng.choices(letters, k=rng.randint(2, 5))) for _ in range(2)) for _ in range(160)}
    lines = "".join(f"{source}\t{source[::-1].upper()}\n" for source in sorted(sources))
    (root / "corpus.tsv").write_text(lines, encoding="utf-8")
    text = random_project.config.read_text(encoding="utf-8").replace("text: {tokenizer: whitespace}\n", UNIGRAMS)
    config = root / "random.yaml"
    config.write_text(text.replace(str(random_project.root / "corpus.tsv"), str(root / "corpus.tsv")), encoding="utf-8")
    assert call("preprocess", "--config", config, "--output", root / "data") == 0
    return Project(root, config, root / "data", root / "run")


TOKENS = "train.batch={size: 60, unit: tokens}"
ACCUMULATED = "train.batch={size: 4, accumulate: 3}"
UNIGRAM = "train.noise={unigram_alpha: 0.2, src_word_dropout: 0.1}"
PLATEAU = "train.schedule={name: plateau, warmup: 5, patience: 1, factor: 0.7}"
SAMPLING = "train.teacher_forcing={ratio: 1, minimum: 0.2, unit: token, schedule: inverse_sigmoid, updates: 60}"
CHRF = "train.validation.metric=chrf"
COMBINATIONS = {
    "tokens": [TOKENS, "train.schedule.name=cosine", "train.validation.metric=bleu"],
    "accumulated": [ACCUMULATED, "train.checkpoint.keep_best=2", "train.label_smoothing=0.1"],
    "unigram": [UNIGRAM, "train.optimizer={name: adamw, weight_decay: 0.01}"],
    "plateau": [PLATEAU, "train.validation={every: 25, metric: chrf, patience: null}", "model.decoder.order=bahdanau"],
    "sampling": [SAMPLING, "train.precision=bfloat16", "train.checkpoint={every: 1, keep_last: 1}"],
    "all": ["train.batch={size: 40, unit: tokens, accumulate: 2}", UNIGRAM, PLATEAU, SAMPLING, CHRF],
}
LONG = ["train.epochs=25", "train.validation={every: 50, metric: loss, patience: null}", "train.log_every=2"]


@pytest.mark.soak
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux")
@pytest.mark.parametrize("name", COMBINATIONS)
def test_kills_at_random_moments(random_project: Project, unigram_project: Project, tmp_path: Path, name: str) -> None:
    project = unigram_project if UNIGRAM in COMBINATIONS[name] else random_project
    settings = [*LONG, *COMBINATIONS[name]]
    expected, run = tmp_path / "expected", tmp_path / "run"
    assert call(*train_arguments(project, expected, *settings)) == 0
    total = read_json(expected / "run.json")["updates"]
    for number, update in enumerate(moments(total)):
        arguments = train_arguments(project, run, *settings, *["--resume"] * (number > 0))
        kill_during_training([sys.executable, "-m", "nmt", *arguments], run, update, total)
    assert call(*train_arguments(project, run, *settings, "--resume")) == 0
    assert_same_run(run, expected)
