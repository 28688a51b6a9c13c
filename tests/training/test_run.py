"""Runs that are stopped, fail or go wrong: what they say and what they leave."""

import contextlib
import errno
import functools
import itertools
import math
import os
import pty
import select
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import processes
import pytest
import torch
from conftest import (
    Cli,
    Project,
    assert_same_run,
    assert_same_tensors,
    at_update,
    call,
    read_metrics,
    train_arguments,
    wait_until,
)
from processes import DEVNULL, PIPE, Running
from safetensors.torch import load_file, save_file
from test_faults import file_size_limit
from training_runs import checkpoints_of, record_of, refusal, stop, stop_and_resume, train, validations_of

from nmt.config import CheckpointSection
from nmt.models.storage import write_tensors
from nmt.system.files import read_json
from nmt.training.interruption import CHECKPOINT, NOTHING, STOP, Interruptions

LONG = ["train.epochs=100000", "train.validation.every=1000000", "train.checkpoint.every=null"]


@pytest.mark.parametrize(("every", "keep", "left"), [(3, 99, [3, 6, 9, 10]), (3, 2, [9, 10]), (1, 1, [10])])
def test_checkpoints_are_made_when_they_are_due_and_change_nothing(
    short_project: Project, run: Path, every: int, keep: int, left: list[int]
) -> None:
    train(short_project, run, f"train.checkpoint.every={every}", f"train.checkpoint.keep_last={keep}")
    assert checkpoints_of(run) == left
    assert_same_run(run, short_project.run)


def test_checkpoints_are_due_by_the_clock() -> None:
    interruptions = Interruptions(CheckpointSection(every=None, minutes=1e-9))
    time.sleep(1e-3)
    assert interruptions.due(1) == CHECKPOINT
    assert Interruptions(CheckpointSection(every=None, minutes=5)).due(1) == NOTHING
    assert [Interruptions(CheckpointSection(every=3, minutes=None)).due(n) for n in (1, 2, 3)] == [0, 0, CHECKPOINT]


@pytest.mark.parametrize("before", [True, False])
def test_a_stop_is_not_lost_in_a_checkpoint(before: bool) -> None:
    interruptions = Interruptions(CheckpointSection())
    interruptions.checkpoint, interruptions.stop = True, before
    assert interruptions.due(1) == (STOP if before else CHECKPOINT)
    interruptions.stop = True
    interruptions.done()
    assert interruptions.due(2) == STOP


def test_a_signal_while_a_checkpoint_is_written_stops_the_run(
    short_project: Project, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def save(*arguments: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        write_tensors(*arguments)

    monkeypatch.setattr("nmt.training.checkpoint.write_tensors", save)
    train(short_project, run, code=75)
    assert checkpoints_of(run) == [4, 5]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.usefixtures("no_pictures")
def test_a_stopped_run_continues_as_if_it_had_not_stopped(short_project: Project, run: Path, number: int) -> None:
    (line,) = (line for line in stop(short_project, run, 7, number=number).splitlines() if "resume with" in line)
    what, _, command = line.partition("; resume with: nmt ")
    assert what == f"{run}: stopped at update 7, nothing is lost"
    assert (record_of(run)["state"], checkpoints_of(run)) == ("stopped", [4, 7])
    assert not list(run.rglob(".*"))
    how = f"resume with: nmt {command}; or replace it with --overwrite"
    assert refusal(short_project, run) == f"{run}: contains an unfinished run; {how}"
    assert call(*command.split()) == 0
    assert_same_run(run, short_project.run)


@contextlib.contextmanager
def training(project: Project, run: Path, **options: Any) -> Iterator[Running]:
    """A real process that has made some updates."""
    with processes.start(*train_arguments(project, run, *LONG), **options) as process:
        try:
            wait_until(lambda: (run / "metrics.jsonl").exists() and len(read_metrics(run)) > 2)
            yield process
        finally:
            process.kill()


def test_signals_to_a_process(short_project: Project, tmp_path: Path, run: Path, cli: Cli) -> None:
    """SIGUSR1 makes a checkpoint, meanwhile the folder is taken, SIGTERM stops."""
    with training(short_project, run, stderr=PIPE) as process:
        process.send_signal(signal.SIGUSR1)
        wait_until(lambda: (run / "checkpoints").exists() and checkpoints_of(run))
        assert record_of(run)["state"] == "running"
        for more in ([], ["--resume"], ["--overwrite"]):
            line = refusal(short_project, run, *more)
            assert line.startswith(f"{run}: in use by another command (process {process.pid})")
        assert "\trunning\t" in cli("runs", tmp_path).out
        process.terminate()
        _, err = process.communicate(timeout=60)
    assert process.returncode == 75, err
    assert "Traceback" not in err
    assert "nothing is lost; resume with: nmt train" in err
    assert record_of(run)["state"] == "stopped"
    assert len(checkpoints_of(run)) == 2
    assert not list(run.rglob(".*"))
    assert not list(tmp_path.glob(".*"))


def hang(model: object) -> None:
    print("hanging", file=sys.stderr)
    while True:
        time.sleep(0.1)


def hang_in_an_update() -> None:
    """Let this process make five updates and no more."""
    at_update(pytest.MonkeyPatch(), 6, hang)


def test_a_second_interrupt_ends_it_at_once(short_project: Project, run: Path) -> None:
    """The process hangs in an update, so that only the second one gets through."""
    with processes.start(*train_arguments(short_project, run), stderr=PIPE, prepare=hang_in_an_update) as process:
        assert process.stderr
        assert any(line == "hanging\n" for line in process.stderr)
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.splitlines()[-1] == "nmt: error: interrupted; earlier results are intact"
    assert (record_of(run)["state"], checkpoints_of(run)) == ("broken", [4])
    train(short_project, run, "--resume")
    assert_same_run(run, short_project.run)


@pytest.mark.parametrize(("number", "advice"), [(1, "run the command again with --overwrite"), (2, "resume with: ")])
def test_a_disk_that_is_full_says_how_to_go_on(
    short_project: Project, run: Path, monkeypatch: pytest.MonkeyPatch, number: int, advice: str
) -> None:
    """Before the first checkpoint nothing can be resumed."""
    calls = itertools.count(1)

    def save(*arguments: Any) -> None:
        if next(calls) == number:
            raise OSError(errno.ENOSPC, "No space left on device")
        write_tensors(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr("nmt.training.checkpoint.write_tensors", save)
        line = refusal(short_project, run, "train.validation.every=1000")
    what, _, said = line.partition("; make room and ")
    assert what.endswith("No space left on device")
    assert said.startswith(advice)
    train(short_project, run, "train.validation.every=1000", "--overwrite" if number == 1 else "--resume")


def test_a_disk_that_is_full_when_a_checkpoint_is_written(short_project: Project, run: Path) -> None:
    stop(short_project, run, 5)
    size = (run / "checkpoints/update-000000005.safetensors").stat().st_size
    with file_size_limit(size // 2):
        line = refusal(short_project, run, "train.validation.every=1000", "--resume")
    assert line.startswith(f"{run}/checkpoints/update-000000008.safetensors: ")
    assert line.endswith(("File too large", "is the disk full?"))
    assert (record_of(run)["state"], checkpoints_of(run)) == ("broken", [4, 5])
    assert len(list((run / "checkpoints").iterdir())) == 2
    train(short_project, run, "--resume")
    assert_same_run(run, short_project.run)


def test_updates_that_are_not_finite(short_project: Project, run: Path) -> None:
    """A learning rate that no weight survives: one line ends the run, and the weights of its checkpoints are finite."""
    settings = ["train.optimizer={name: sgd, learning_rate: 1.0e+37, clip_norm: null}", "train.max_skipped=2"]
    settings += ["train.checkpoint={every: 1, keep_last: 1}"]
    line = refusal(short_project, run, *settings)
    assert "loss or gradient not finite for 3 updates in a row" in line
    assert "train.optimizer.learning_rate" in line
    entries = read_metrics(run)
    skipped = [entry for entry in entries if entry["kind"] == "skipped"]
    assert [entry["update"] for entry in skipped] == list(range(skipped[0]["update"], skipped[0]["update"] + 3))
    assert all(entry["epoch"] == 1 for entry in skipped)
    assert f"update {skipped[-1]['update']}: " in line
    (checkpoint,) = (run / "checkpoints").glob("*.safetensors")
    assert checkpoint.stem == f"update-{skipped[0]['update'] - 1:09d}"  # what was before was not given up for them
    assert all(math.isfinite(entry["loss"]) for entry in entries if "loss" in entry)
    assert record_of(run)["state"] == "broken"
    assert all(tensor.isfinite().all() for name, tensor in load_file(checkpoint).items() if name.startswith("model."))


def sgd(rate: str) -> str:
    return f"train.optimizer={{name: sgd, learning_rate: {rate}, clip_norm: null}}"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ([sgd("1.0e+38"), "train.max_skipped=50"], "skipped"),
        (["train.optimizer.learning_rate=1.0e+38", "train.max_skipped=50", "train.validation.metric=bleu"], "skipped"),
        (["train.optimizer.learning_rate=1.0e+308", "train.max_skipped=50", "train.log_every=50"], "skipped"),
        ([sgd("30.0")], "learnt nothing"),  # all is finite, and worse than guessing
        (["train.optimizer.learning_rate=1.0e-12", "model.initialization.scale=2"], "learnt nothing"),
    ],
    ids=["sgd", "adam", "infinite", "worse", "frozen"],
)
def test_a_run_that_learnt_nothing_is_broken(
    short_project: Project, run: Path, settings: list[str], words: str
) -> None:
    line = refusal(short_project, run, *settings)
    assert line.startswith(f"{run}: ")
    assert words in line
    assert "lower train.optimizer.learning_rate" in line
    assert (record_of(run)["state"], record_of(run)["reason"]) == ("broken", line)
    valid = validations_of(run)
    assert len(valid) == 4
    assert not any(entry["improved"] for entry in valid if "loss" not in entry)


def test_a_run_that_diverged_at_its_end_is_broken_and_keeps_what_it_had(
    short_project: Project, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The best model and the earlier checkpoints are kept, so the run can be resumed."""

    def spoil(model: Any) -> None:
        model.decoder.output.weight.register_hook(lambda gradient: gradient * math.nan)

    with monkeypatch.context() as patched:
        at_update(patched, 9, spoil)
        line = refusal(short_project, run, "train.checkpoint.keep_last=1")
    assert line.startswith(f"{run}: ended with 2 updates skipped")
    metadata = record_of(run)
    assert (metadata["state"], metadata["best_update"]) == ("broken", 9)
    assert checkpoints_of(run) == [8]
    assert call("translate", "--model", run, "a b") == 0
    train(short_project, run, "--resume")
    assert record_of(run)["state"] == "finished"


def test_whether_it_has_learnt_is_remembered(short_project: Project, run: Path) -> None:
    """Learnt before it was stopped, and worse than guessing at each validation since."""
    stop(short_project, run, 7)
    train(short_project, run, "--resume", "train.optimizer.learning_rate=10")
    valid = validations_of(run)
    assert all(entry["loss"] > math.log(12) for entry in valid if entry["update"] > 7)
    assert record_of(run)["state"] == "finished"


@pytest.fixture(scope="module")
def without_validation(short_project: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    root = tmp_path_factory.mktemp("without")
    text = short_project.config.read_text(encoding="utf-8").replace("_size: 20", "_size: 0")
    config = root / "random.yaml"
    config.write_text(text.replace("schedule: {name: plateau}", "schedule: {name: constant}"), encoding="utf-8")
    assert call("preprocess", "--config", config, "--output", root / "data") == 0
    return Project(root, config, root / "data", root / "run")


def test_a_run_without_validation_that_learnt_nothing_is_broken(without_validation: Project, run: Path) -> None:
    settings = ["train.optimizer.learning_rate=1.0e+38", "train.max_skipped=50", "train.checkpoint.every=1"]
    line = refusal(without_validation, run, *settings)
    assert line.startswith(f"{run}: ended with 13 updates skipped")
    assert record_of(run)["state"] == "broken"
    assert checkpoints_of(run) == [1]
    assert not (run / "best").exists()


def test_sums_of_fixed_order_are_those_that_a_cpu_makes_anyway(short_project: Project, run: Path) -> None:
    train(short_project, run, "train.deterministic=true")
    assert_same_run(run, short_project.run)
    assert not torch.are_deterministic_algorithms_enabled()


@pytest.mark.parametrize("kept", [2, 3])
def test_the_best_models_are_kept(short_project: Project, run: Path, kept: int) -> None:
    train(short_project, run, f"train.checkpoint.keep_best={kept}")
    valid = validations_of(run)
    assert len(valid) == 4
    best = sorted(valid, key=lambda entry: entry["loss"])[:kept]
    assert sorted(path.name for path in (run / "models").iterdir()) == sorted(
        f"update-{entry['update']:09d}" for entry in best
    )
    for entry in best:
        metadata = read_json(run / f"models/update-{entry['update']:09d}/model.json")
        assert metadata["update"] == entry["update"]
        assert metadata["scores"]["loss"] == pytest.approx(entry["loss"], abs=1e-6)
    model = run / f"models/update-{best[0]['update']:09d}/model.safetensors"
    assert_same_tensors(load_file(model), load_file(run / "best/model.safetensors"))


def test_while_bleu_is_zero_the_loss_decides(short_project: Project, run: Path) -> None:
    """The loss falls, no word comes out right: neither is the first model the best, nor is the run given up."""
    settings = ["train.validation={every: 3, metric: bleu, patience: 2}", "train.checkpoint.keep_best=2"]
    train(short_project, run, *settings)
    valid = validations_of(run)
    losses = [entry["loss"] for entry in valid]
    assert [entry["bleu"] for entry in valid] == [0] * 4
    assert losses == sorted(losses, reverse=True)
    assert [entry["improved"] for entry in valid] == [True] * 4
    metadata = read_json(run / "best/model.json")
    assert (metadata["update"], metadata["scores"]["loss"]) == (10, pytest.approx(losses[-1], abs=1e-6))
    assert sorted(path.name for path in (run / "models").iterdir()) == ["update-000000009", "update-000000010"]


def test_patience_at_the_floor_is_that_of_an_uninterrupted_run(short_project: Project, tmp_path: Path) -> None:
    """Stopped while BLEU is 0.00: neither the loss of the best model nor patience may be forgotten."""
    settings = ["train.validation={every: 2, metric: bleu, patience: 3}", "train.schedule.name=constant"]
    settings += ["train.batch.size=8", "train.max_updates=20"]
    valid = validations_of(stop_and_resume(short_project, tmp_path, 17, *settings))
    assert {entry["bleu"] for entry in valid} == {0}
    improved = [entry["improved"] for entry in valid]
    assert [False] * 3 in [improved[place : place + 3] for place in range(len(improved))]


def test_a_run_starts_from_the_weights_of_another(short_project: Project, run: Path) -> None:
    settings = [f"parent={short_project.run}", "train.optimizer.learning_rate=1.0e-12"]
    train(short_project, run, *settings)
    found, expected = (load_file(path / "best/model.safetensors") for path in (run, short_project.run))
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("parent", "what"),
    [
        ("nowhere", "does not exist"),
        ("empty", "is not a run"),
        ("begun", "has no model yet"),
        ("data", "is not a model"),
    ],
)
def test_a_parent_that_is_not_a_model(short_project: Project, tmp_path: Path, parent: str, what: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun/run.json").write_text('{"state": "running"}')
    shutil.copy(short_project.run / "config.yaml", tmp_path / "begun")
    (tmp_path / "data").symlink_to(short_project.data)
    line = refusal(short_project, tmp_path / "run", f"parent={tmp_path / parent}")
    assert line.startswith(f"parent: {tmp_path / parent}: ")
    assert what in line
    assert "--model" not in line
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_parent_with_weights_that_are_not_finite(short_project: Project, tmp_path: Path, value: float) -> None:
    parent = tmp_path / "parent"
    shutil.copytree(short_project.run / "best", parent)
    tensors = load_file(parent / "model.safetensors")
    sorted(tensors.items())[-1][1].view(-1)[0] = value
    save_file(tensors, parent / "model.safetensors")
    line = refusal(short_project, tmp_path / "run", f"parent={parent}")
    assert line.startswith(f"parent: {parent} has weights that are not finite; ")
    assert not (tmp_path / "run").exists()


def test_a_closed_terminal_stops_a_run(short_project: Project, run: Path) -> None:
    """The run gets SIGHUP, and nothing that it says can be written any more."""
    ours, theirs = pty.openpty()
    arguments = train_arguments(short_project, run, *LONG, "train.validation.every=1", "train.log_every=1")
    with processes.start(*arguments, stderr=theirs, new_session=True) as process:
        try:
            os.close(theirs)
            best = run / "best"
            wait_until(lambda: select.select([ours], [], [], 0)[0] and os.read(ours, 4096) and best.exists())
            os.close(ours)
            process.send_signal(signal.SIGHUP)
            assert process.wait(60) == 75
        finally:
            process.kill()
    assert record_of(run)["state"] == "stopped"
    assert checkpoints_of(run)
    assert not list(run.rglob(".*"))


def test_a_run_under_nohup_ignores_its_terminal(short_project: Project, run: Path) -> None:
    nohup = functools.partial(signal.signal, signal.SIGHUP, signal.SIG_IGN)
    with training(short_project, run, stderr=DEVNULL, prepare=nohup) as process:
        process.send_signal(signal.SIGHUP)
        there = len(read_metrics(run))
        wait_until(lambda: len(read_metrics(run)) > there + 2)
        assert record_of(run)["state"] == "running"
        process.terminate()
        assert process.wait(60) == 75
