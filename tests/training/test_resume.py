"""A resumed run equals the uninterrupted run; changes are reported.

Some tests stand for faults that other toolkits had; their docstrings name them.
"""

import itertools
import json
import random
import shutil
import time
from pathlib import Path

import pytest
import torch
from conftest import Project, assert_same_run, call, names, read_metrics, read_tensors, tree
from safetensors.torch import load_file
from training_runs import record_of, refusal, refusal_to_resume, stop, stop_and_resume, train

from nmt.config import load_config
from nmt.system import device as devices
from nmt.system.files import read_json, write_json


@pytest.fixture(scope="module")
def stopped_once(short_project: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was stopped at update 7 of 10, in its second epoch."""
    run = tmp_path_factory.mktemp("stopped") / "run"
    stop(short_project, run, 7)
    return run


@pytest.fixture
def stopped(stopped_once: Path, tmp_path: Path) -> Path:
    """A copy of it, which a test may damage."""
    return Path(shutil.copytree(stopped_once, tmp_path / "run"))


def frozen(project: Project) -> list[str]:
    """Settings of a run that begins with what another has learnt, and whose weights never move."""
    return [f"parent={project.run}", "train.optimizer={name: sgd, learning_rate: 1.0e-30}"]


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def said(err: str, run: Path) -> list[str]:
    """What was said of the run itself."""
    return [line.removeprefix(f"{run}: ") for line in err.splitlines() if line.startswith(f"{run}: ")]


def test_a_run_of_many_stops(short_project: Project, run: Path) -> None:
    """Continued training differs, and metrics lose a line at each stop (joeynmt#125, OpenNMT-py#2006, sockeye#859)."""
    updates = sorted(random.SystemRandom().sample(range(1, 10), 4))
    print(f"stopped at {updates}")
    for number, update in enumerate(updates):
        stop(short_project, run, update, *["--resume"] * (number > 0))
    train(short_project, run, "--resume")
    assert_same_run(run, short_project.run)


def test_a_clock_that_goes_backwards_changes_nothing(
    short_project: Project, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """During the run by an hour at each look, and by a year while it was stopped."""
    monkeypatch.setattr(time, "time", itertools.count(1.8e9, -3600).__next__)
    stop(short_project, run, 7)
    monkeypatch.setattr(time, "time", itertools.count(1.8e9 - 3.2e7, -3600).__next__)
    train(short_project, run, "--resume")
    assert_same_run(run, short_project.run)
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    seconds = [line["seconds"] for line in lines]
    assert seconds == sorted(seconds)
    assert 0 <= seconds[0] <= seconds[-1] <= record_of(run)["total_seconds"] < 600


@pytest.mark.parametrize(
    "settings",
    [
        ["train.validation={every: 2, metric: loss, patience: 3}"],
        ["train.schedule={name: plateau, warmup: 2}"],
        ["train.schedule={name: cosine, warmup: 4}"],
        ["train.schedule={name: inverse_sqrt, warmup: 4}"],
    ],
)
def test_patience_and_the_learning_rate_continue(settings: list[str], short_project: Project, tmp_path: Path) -> None:
    """A run that is resumed forgets patience, or begins a fresh schedule (joeynmt#125, sockeye#890)."""
    every = ["train.validation={every: 2, metric: loss}", "train.log_every=1"]
    run = stop_and_resume(short_project, tmp_path, 6, *frozen(short_project), *every, *settings)
    if "patience" in settings[-1]:  # three validations after the first, which is the best
        assert record_of(run)["updates"] == 8
    else:
        rates = [line["learning_rate"] for line in read_metrics(run) if "learning_rate" in line]
        assert rates[9] < rates[6] < rates[3]


def test_the_epoch_is_kept_in_another_place(stopped: Path, short_project: Project, tmp_path: Path) -> None:
    """Elsewhere the count of epochs is lost when a run is resumed (joeynmt#172)."""
    run, data = tmp_path / "elsewhere/copy", tmp_path / "elsewhere/their data"
    shutil.copytree(short_project.data, data)
    shutil.move(stopped, run)
    err = train(Project(tmp_path, run / "config.yaml", data, run), run, "--resume")
    assert "resumed at update 7, epoch 2" in said(err, run)
    assert_same_run(run, short_project.run)


def test_checkpoints_are_made_while_validation_does_not_improve(short_project: Project, run: Path) -> None:
    """No checkpoint is saved until validation improves (joeynmt#128)."""
    settings = [*frozen(short_project), "train.checkpoint.keep_last=99"]
    train(short_project, run, *settings, "train.validation.metric=bleu")
    assert record_of(run)["best_update"] == 3
    assert len(list((run / "checkpoints").glob("*.safetensors"))) == 3


def test_a_finished_run_says_so_and_continues_with_more_epochs(short_project: Project, tmp_path: Path) -> None:
    """A finished run quits without a word, or makes further checkpoints (OpenNMT-py#886, sockeye#859)."""
    run, longer = tmp_path / "run", tmp_path / "longer"
    settings = ["train.validation.every=5", "train.checkpoint.every=5", "train.log_every=5"]
    train(short_project, run, *settings)
    before = tree(run)
    err = train(short_project, run, *settings, "--resume")
    assert "stopped at update 10: all 10 updates are done; to continue, raise train.epochs" in err
    after = tree(run)
    clock = {"time": 0, "total_seconds": 0}
    states = [json.loads(files.pop("run.json")) | clock for files in (before, after)]
    assert states[0] == states[1]
    assert after == before
    err = train(short_project, run, *settings, "train.epochs=3", "--resume")
    assert "changed since the checkpoint: train.epochs (2 there, 3 here)" in said(err, run)
    assert record_of(run)["updates"] == 15
    train(short_project, longer, *settings, "train.epochs=3")
    assert_same_run(run, longer)


def test_a_damaged_checkpoint_is_skipped(stopped: Path, short_project: Project) -> None:
    newest = stopped / "checkpoints/update-000000007.safetensors"
    damage(newest)
    err = train(short_project, stopped, "--resume")
    assert err.count(f"{newest}: damaged") == 1
    assert "resumed at update 4, epoch 1" in said(err, stopped)
    assert_same_run(stopped, short_project.run)
    assert not newest.exists()


def test_all_checkpoints_damaged(stopped: Path, short_project: Project) -> None:
    for path in (stopped / "checkpoints").glob("*.safetensors"):
        damage(path)
    line = refusal_to_resume(short_project, stopped)
    assert line.endswith("checkpoints: all checkpoints are damaged; start over with --overwrite")


def test_a_run_that_has_lost_its_checkpoints_is_not_restarted(stopped: Path, short_project: Project) -> None:
    shutil.rmtree(stopped / "checkpoints")
    assert "this run is stopped, but its checkpoints are missing; restore them" in refusal_to_resume(
        short_project, stopped
    )


@pytest.mark.parametrize("content", [None, b"", b"{", b"{}", b"\xff"])
def test_without_run_json_the_checkpoints_still_count(
    stopped: Path, short_project: Project, content: bytes | None
) -> None:
    (stopped / "run.json").unlink()
    if content is not None:
        (stopped / "run.json").write_bytes(content)
    assert "contains an unfinished run; resume with: " in refusal(short_project, stopped)
    train(short_project, stopped, "--resume")
    assert_same_run(stopped, short_project.run)


def test_a_damaged_log_ends_no_run(stopped: Path, short_project: Project) -> None:
    lines = (stopped / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    lines[0] = b"\xff[" + b"x" * (len(lines[0]) - 3) + b"\n"
    (stopped / "metrics.jsonl").write_bytes(b"".join(lines))
    train(short_project, stopped, "--resume", drawing=True)
    assert (stopped / "learning_curve.png").stat().st_size > 1000


def test_a_run_without_a_checkpoint_starts_from_scratch(stopped: Path, short_project: Project) -> None:
    shutil.rmtree(stopped / "checkpoints")
    write_json(stopped / "run.json", read_json(stopped / "run.json") | {"state": "running"})  # as if killed
    what = "contains an unfinished run; it has no checkpoint; replace it with --overwrite"
    assert refusal(short_project, stopped) == f"{stopped}: {what}"
    err = train(short_project, stopped, "--resume")
    assert "no checkpoint yet; starting from scratch" in said(err, stopped)
    assert_same_run(stopped, short_project.run)


def test_a_finished_run_without_a_checkpoint_is_not_replaced(short_project: Project, run: Path) -> None:
    shutil.copytree(short_project.run, run)
    shutil.rmtree(run / "checkpoints")
    assert "this run is finished, but its checkpoints are missing; restore them" in refusal_to_resume(
        short_project, run
    )


def test_one_command_starts_a_run_and_resumes_it(short_project: Project, run: Path) -> None:
    assert "no checkpoint yet; starting from scratch" in said(stop(short_project, run, 3, "--resume"), run)
    assert "starting" not in train(short_project, run, "--resume")
    assert_same_run(run, short_project.run)


def test_the_average_of_the_weights_is_stored_and_continues(short_project: Project, tmp_path: Path) -> None:
    settings = ["train.ema_decay=0.7", "train.validation.metric=loss", "train.max_updates=9"]  # the last is the best
    run = stop_and_resume(short_project, tmp_path, 7, *settings)
    assert record_of(run)["best_update"] == 9
    trained, stored = read_tensors(run), load_file(run / "best/model.safetensors")
    assert not any(torch.equal(weights, trained[f"model.{name}"]) for name, weights in stored.items())
    line = refusal_to_resume(short_project, run, "train.ema_decay=0.8", *settings[1:])
    assert "cannot be resumed with another train.ema_decay (0.7 there, 0.8 here)" in line


def test_a_resumed_run_keeps_its_automatic_precision(
    short_project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, whole = tmp_path / "run", tmp_path / "whole"
    arguments = ["train.precision=auto", "train.epochs=1"]
    train(short_project, whole, "train.precision=bfloat16", "train.epochs=1")
    monkeypatch.setattr(devices, "_bfloat16_gain", lambda: 2.0)
    stop(short_project, run, 3, *arguments)
    assert load_config(run / "config.yaml").train.precision == "bfloat16"
    monkeypatch.setattr(devices, "_bfloat16_gain", lambda: 1.0)
    assert "changed since" not in train(short_project, run, *arguments, "--resume")
    assert_same_run(run, whole)


def test_what_is_not_a_run_is_not_resumed(short_project: Project, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("mine", encoding="utf-8")
    assert "other files" in refusal_to_resume(short_project, tmp_path)


def test_resume_and_overwrite_exclude_each_other(short_project: Project) -> None:
    assert "give only one of them" in refusal_to_resume(short_project, short_project.run, "--overwrite")


@pytest.mark.parametrize("content", [None, b'{"kind": "train"'])  # lost, or cut off by a kill
def test_a_log_that_lost_lines_ends_no_run(stopped: Path, short_project: Project, content: bytes | None) -> None:
    log = stopped / "metrics.jsonl"
    log.write_bytes(b"" if content is None else log.read_bytes() + content)
    train(short_project, stopped, "--resume")
    if content is None:
        assert {line["update"] for line in read_metrics(stopped)} == {8, 9, 10}
    else:
        assert_same_run(stopped, short_project.run)


def test_leftovers_of_a_kill_between_best_models_are_cleaned_up(stopped: Path, short_project: Project) -> None:
    """A kill between two renames, one in a write, and models of updates after the one that is resumed from."""
    (stopped / "best").rename(stopped / ".best.earlier")
    (stopped / ".best.partial-12345").mkdir()
    (stopped / ".run.json.partial-12345").write_text("{")
    for update in (6, 8, 10):
        shutil.copytree(short_project.run / "best", stopped / f"models/update-{update:09d}")
    (stopped / "models/.update-000000010.partial-12345").mkdir()
    train(short_project, stopped, "--resume", "train.checkpoint.keep_best=2")
    assert names(stopped / "models") == ["update-000000006", "update-000000010"]
    assert not list(stopped.rglob(".*"))


def test_the_initial_weights_are_not_needed_again(short_project: Project, tmp_path: Path) -> None:
    run, first, whole = tmp_path / "run", tmp_path / "first", tmp_path / "whole"
    shutil.copytree(short_project.run / "best", first)
    train(short_project, whole, f"parent={first}")
    stop(short_project, run, 3, f"parent={first}")
    shutil.rmtree(first)
    again = ["--config", run / "config.yaml", "--data", short_project.data, "--output", run, "--resume"]
    assert call("train", *again) == 0
    assert_same_run(run, whole)


def test_keys_that_must_not_change(stopped: Path, short_project: Project) -> None:
    fatal = {"model.decoder.hidden_size": 16, "train.seed": 9, "train.batch.size": 16, "train.optimizer.name": "sgd"}
    harmless = {"train.log_every": 5, "train.watch": 3, "train.tensorboard": True}
    settings = [f"{key}={value}" for key, value in (fatal | harmless).items()]
    line = refusal_to_resume(short_project, stopped, *settings)
    assert line.startswith(f"{stopped}: cannot be resumed with another ")
    assert all(f"{key} (" in line and f"{value!r} here)" in line for key, value in fatal.items())
    assert not any(key in line for key in harmless)
    assert "with parent=RUN" in line


def test_influential_keys_are_reported(stopped: Path, short_project: Project) -> None:
    settings = ["train.optimizer.learning_rate=0.001", "model.dropout=0.1", "train.teacher_forcing.ratio=1"]
    settings += ["model.memory_dropout=0.1", "train.label_smoothing=0.2"]
    lines = said(train(short_project, stopped, "--resume", *settings), stopped)
    changes = ["model.dropout (0.3 there, 0.1 here)", "model.memory_dropout (0.0 there, 0.1 here)"]
    changes += ["train.optimizer.learning_rate (0.02 there, 0.001 here)"]
    changes += ["train.teacher_forcing.ratio (0.7 there, 1.0 here)", "train.label_smoothing (0.0 there, 0.2 here)"]
    assert f"changed since the checkpoint: {', '.join(changes)}" in lines
    assert "from here on, the run differs from an unchanged one" in lines
    rates = [entry["learning_rate"] for entry in read_metrics(stopped) if entry["kind"] == "train"]
    assert rates[0] == 0.02
    assert rates[-1] <= 0.001


@pytest.mark.parametrize(
    "settings",
    [
        ["train.checkpoint={every: 3, keep_last: 1}", "train.max_skipped=1", "train.threads=1", "decode.beam_size=2"],
        ["train.validation.patience=99", "train.device=auto", "name=other"],
    ],
)
def test_harmless_keys(stopped: Path, short_project: Project, settings: list[str]) -> None:
    assert "differs from an unchanged one" not in train(short_project, stopped, "--resume", *settings)
    assert_same_run(stopped, short_project.run)


def test_more_epochs_of_a_cosine_are_another_run(short_project: Project, run: Path) -> None:
    stop(short_project, run, 3, "train.schedule.name=cosine")
    err = train(short_project, run, "--resume", "train.schedule.name=cosine", "train.epochs=3")
    assert "from here on, the run differs from an unchanged one" in said(err, run)


def test_other_data_is_refused_by_file_and_the_same_data_again_is_the_same(
    stopped: Path, short_project: Project, tmp_path: Path
) -> None:
    again = Project(tmp_path, short_project.config, tmp_path / "again", stopped)
    preprocess = ["preprocess", "--config", again.config, "-o", again.data, "--overwrite"]
    assert call(*preprocess, "--set", "data.split.seed=5") == 0
    line = refusal_to_resume(again, stopped)
    assert line.startswith(f"{stopped}: the data has changed since the checkpoint: ")
    assert "train.src.ids.npy" in line
    assert "valid.jsonl" in line
    assert call(*preprocess) == 0
    train(again, stopped, "--resume")
    assert_same_run(stopped, short_project.run)


def test_another_environment_is_reported(
    stopped: Path, short_project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = devices.describe_environment(torch.device("cpu")) | {"torch": "99.0", "threads": 64}
    elsewhere["library"] = "1.0"  # of which an older checkpoint says nothing
    for module in ("directory", "resume"):
        monkeypatch.setattr(f"nmt.training.{module}.describe_environment", lambda device: elsewhere)
    err = train(short_project, stopped, "--resume")
    (line,) = (line for line in said(err, stopped) if line.startswith("another environment: "))
    assert "torch (" in line
    assert "'99.0' here)" in line
    assert "threads (" in line
    assert "library" not in line
    assert line.endswith("results will be close, but not bit for bit the same")
    assert read_json(stopped / "environment.json")["threads"] == 64
