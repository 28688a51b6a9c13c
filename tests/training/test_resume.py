"""A resumed run equals the uninterrupted run; changes are reported.

Some tests stand for faults that other toolkits had; their docstrings name them.
"""

import itertools
import json
import math
import random
import shutil
import signal
import time
from pathlib import Path

import pytest
import torch
from conftest import (
    UPDATES,
    Cli,
    Outcome,
    Project,
    assert_same_run,
    assert_same_tensors,
    call,
    read_metrics,
    read_tensors,
    signal_at,
    train_arguments,
)
from safetensors.torch import load_file
from test_faults import errors, tree
from torch import nn
from torch.optim.swa_utils import AveragedModel

from nmt.config import load_config
from nmt.drawing.charts import draw_learning_curve
from nmt.system import device as devices
from nmt.system.files import read_json, write_json


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Learning curves take most of the time of such short runs."""
    monkeypatch.setattr("nmt.drawing.charts.draw_learning_curve", lambda run: None)


@pytest.fixture(scope="module")
def stopped_once(random_project: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was stopped at update 17, in its second epoch."""
    run = tmp_path_factory.mktemp("stopped") / "run"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("nmt.drawing.charts.draw_learning_curve", lambda run: None)
        stop(random_project, run, 17, patched)
    return run


@pytest.fixture
def stopped(stopped_once: Path, tmp_path: Path) -> Path:
    """A copy of it, which a test may damage."""
    return Path(shutil.copytree(stopped_once, tmp_path / "run"))


def stop(project: Project, run: Path, update: int, monkeypatch: pytest.MonkeyPatch, *more: str) -> None:
    with monkeypatch.context() as patched:
        signal_at(patched, update)
        assert call(*train_arguments(project, run, *more)) == 75


def frozen(project: Project) -> list[str]:
    """Settings of a run that begins with what another has learnt, and whose weights never move."""
    return [f"train.init_from={project.run}", "train.optimizer={name: sgd, learning_rate: 1.0e-30}"]


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def said(found: Outcome, run: Path) -> list[str]:
    """What was said of the run itself."""
    return [line.removeprefix(f"{run}: ") for line in found.err.splitlines() if line.startswith(f"{run}: ")]


def test_a_run_of_many_stops(random_project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Continued training differs, and metrics lose a line at each stop (joeynmt#125, OpenNMT-py#2006, sockeye#859)."""
    run = tmp_path / "run"
    updates = sorted(random.SystemRandom().sample(range(1, UPDATES), 6))
    print(f"stopped at {updates}")
    for number, update in enumerate(updates):
        stop(random_project, run, update, monkeypatch, *["--resume"] * (number > 0))
    assert call(*train_arguments(random_project, run, "--resume")) == 0
    assert_same_run(run, random_project.run)


def test_a_clock_that_goes_backwards_changes_nothing(
    random_project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """During the run by an hour at each look, and by a year while it was stopped."""
    run = tmp_path / "run"
    for begin, more in ((1.8e9, []), (1.8e9 - 3.2e7, ["--resume"])):
        clock = itertools.count(begin, -3600)
        with monkeypatch.context() as patched:
            patched.setattr(time, "time", lambda clock=clock: next(clock))
            if more:
                assert call(*train_arguments(random_project, run, *more)) == 0
            else:
                stop(random_project, run, 17, patched)
    assert_same_run(run, random_project.run)
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    seconds = [line["seconds"] for line in lines]
    assert 0 <= seconds[0] <= seconds[-1] < 600
    assert seconds == sorted(seconds)
    assert seconds[-1] <= read_json(run / "run.json")["total_seconds"] < 600


@pytest.mark.parametrize(
    "settings",
    [
        ["train.validation={every: 3, metric: loss, patience: 4}"],
        ["train.schedule={name: plateau, warmup: 2}"],
        ["train.schedule={name: cosine, warmup: 4}"],
        ["train.schedule={name: inverse_sqrt, warmup: 4}"],
    ],
)
def test_patience_and_the_learning_rate_continue(
    settings: list[str], random_project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is resumed forgets patience, or begins a fresh schedule (joeynmt#125, sockeye#890)."""
    whole, run = tmp_path / "whole", tmp_path / "run"
    every = ["train.validation={every: 3, metric: loss}", "train.log_every=1"]
    settings = [*frozen(random_project), *every, *settings]
    assert call(*train_arguments(random_project, whole, *settings)) == 0
    stop(random_project, run, 11, monkeypatch, *settings)
    assert call(*train_arguments(random_project, run, *settings, "--resume")) == 0
    assert_same_run(run, whole)
    if "patience" in settings[-1]:  # four validations after the first, which is the best
        assert read_json(run / "run.json")["updates"] == 15
    else:
        rates = [line["learning_rate"] for line in read_metrics(run) if "learning_rate" in line]
        assert rates[-1] < rates[12] < rates[4]


def test_the_epoch_is_kept_in_another_place(stopped: Path, random_project: Project, tmp_path: Path, cli: Cli) -> None:
    """Elsewhere the count of epochs is lost when a run is resumed (joeynmt#172)."""
    there = tmp_path / "elsewhere"
    shutil.copytree(stopped, there / "copy")
    shutil.copytree(random_project.data, there / "their data")
    shutil.rmtree(stopped)
    command = ["--config", there / "copy/config.yaml", "--data", there / "their data", "--output", there / "copy"]
    found = cli("train", *command, "--resume")
    assert found.code == 0, found.err
    assert "resumed at update 17, epoch 2" in said(found, there / "copy")
    assert_same_run(there / "copy", random_project.run)


def test_checkpoints_are_made_while_validation_does_not_improve(
    random_project: Project, tmp_path: Path, cli: Cli
) -> None:
    """No checkpoint is saved until validation improves (joeynmt#128)."""
    run = tmp_path / "run"
    settings = [*frozen(random_project), "train.checkpoint.keep_last=99"]
    assert cli(*train_arguments(random_project, run, *settings, "train.validation.metric=bleu")).code == 0
    assert read_json(run / "run.json")["best_update"] == 7
    assert len(list((run / "checkpoints").glob("*.sha256"))) == 5


def test_a_finished_run_says_so_and_continues_with_more_epochs(
    random_project: Project, tmp_path: Path, cli: Cli
) -> None:
    """A finished run quits without a word, or makes further checkpoints (OpenNMT-py#886, sockeye#859)."""
    run, longer = tmp_path / "run", tmp_path / "longer"
    shutil.copytree(random_project.run, run)
    before = tree(run)
    found = cli(*train_arguments(random_project, run, "--resume"))
    assert found.code == 0
    assert f"stopped at update {UPDATES}: all {UPDATES} updates are done; to continue, raise train.epochs" in found.err
    after = tree(run)
    name = str(run / "run.json")
    clock = ("time", "total_seconds")
    states = [{k: v for k, v in json.loads(t.pop(name)).items() if k not in clock} for t in (before, after)]
    assert states[0] == states[1]
    assert after == before
    found = cli(*train_arguments(random_project, run, "--resume", "train.epochs=4", "train.validation.every=15"))
    assert found.code == 0
    assert any("changed since the checkpoint: train.epochs (2 there, 4 here)" in line for line in said(found, run))
    assert read_json(run / "run.json")["updates"] == 2 * UPDATES
    more = ["train.validation.every=15", "train.checkpoint.every=15", "train.log_every=5"]
    runs = tmp_path / "short", longer
    for place, epochs in zip(runs, (2, 4), strict=True):
        assert call(*train_arguments(random_project, place, *more, f"train.epochs={epochs}")) == 0
    assert call(*train_arguments(random_project, runs[0], *more, "train.epochs=4", "--resume")) == 0
    assert_same_run(*runs)


def test_a_damaged_checkpoint_is_skipped(stopped: Path, random_project: Project, cli: Cli) -> None:
    newest = stopped / "checkpoints/update-000000017.safetensors"
    damage(newest)
    found = cli(*train_arguments(random_project, stopped, "--resume"))
    assert found.code == 0
    assert found.err.count(f"{newest}: damaged") == 1
    assert "resumed at update 12, epoch 1" in said(found, stopped)
    assert_same_run(stopped, random_project.run)
    assert not newest.exists()


def test_all_checkpoints_damaged(stopped: Path, random_project: Project, cli: Cli) -> None:
    for path in (stopped / "checkpoints").glob("*.safetensors"):
        damage(path)
    before = tree(stopped)
    found = cli(*train_arguments(random_project, stopped, "--resume"))
    assert found.code == 1
    (line,) = errors(found.err)
    assert line.endswith("checkpoints: all checkpoints are damaged; start over with --overwrite")
    assert tree(stopped) == before


def test_a_run_that_has_lost_its_checkpoints_is_not_restarted(stopped: Path, random_project: Project, cli: Cli) -> None:
    before = tree(stopped)
    for path in (stopped / "checkpoints").glob("*.sha256"):
        path.rename(stopped / path.name)
    found = cli(*train_arguments(random_project, stopped, "--resume"))
    assert found.code == 1
    assert "its checkpoints, or their checksums (.sha256), are missing; restore them" in errors(found.err)[0]
    for path in stopped.glob("*.sha256"):
        path.rename(stopped / "checkpoints" / path.name)
    assert tree(stopped) == before
    lost = max((stopped / "checkpoints").glob("*.sha256"))
    lost.unlink()
    found = cli(*train_arguments(random_project, stopped, "--resume"))
    assert found.code == 0
    assert f"{lost.with_suffix('')}: unfinished, as it has no checksum; skipping it" in found.err
    assert_same_run(stopped, random_project.run)


@pytest.mark.parametrize("content", [None, b"", b"{", b"{}", b"\xff"])
def test_without_run_json_the_checkpoints_still_count(
    stopped: Path, random_project: Project, cli: Cli, content: bytes | None
) -> None:
    (stopped / "run.json").unlink()
    if content is not None:
        (stopped / "run.json").write_bytes(content)
    found = cli(*train_arguments(random_project, stopped))
    assert "contains an unfinished run; resume with: " in errors(found.err)[0]
    assert cli(*train_arguments(random_project, stopped, "--resume")).code == 0
    assert_same_run(stopped, random_project.run)


def test_a_best_model_from_before_a_change_is_named(stopped: Path, random_project: Project, cli: Cli) -> None:
    """Killed after a validation that no checkpoint knows of, and gone on with another learning rate."""
    marker = stopped / "best/model.json"
    write_json(marker, read_json(marker) | {"update": 25})
    found = cli(*train_arguments(random_project, stopped, "--resume", "train.optimizer.learning_rate=1.0e-12"))
    assert found.code == 0
    assert f"{stopped / 'best'}: is of update 25, before the change, until there is a better one" in found.err


def test_a_damaged_log_ends_no_run(
    stopped: Path, random_project: Project, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nmt.drawing.charts.draw_learning_curve", draw_learning_curve)
    lines = (stopped / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    lines[0] = b"\xff[" + b"x" * (len(lines[0]) - 3) + b"\n"
    (stopped / "metrics.jsonl").write_bytes(b"".join(lines))
    found = cli(*train_arguments(random_project, stopped, "--resume"))
    assert found.code == 0, found.err
    assert (stopped / "learning_curve.png").stat().st_size > 1000


def test_a_run_without_a_checkpoint_starts_from_scratch(stopped: Path, random_project: Project, cli: Cli) -> None:
    shutil.rmtree(stopped / "checkpoints")
    write_json(stopped / "run.json", read_json(stopped / "run.json") | {"state": "running"})  # as if killed
    found = cli(*train_arguments(random_project, stopped))
    assert errors(found.err) == [
        f"nmt: error: {stopped}: contains an unfinished run; it has no checkpoint; replace it with --overwrite"
    ]
    found = cli(*train_arguments(random_project, stopped, "--resume"))
    assert found.code == 0
    assert "no checkpoint yet; starting from scratch" in said(found, stopped)
    assert_same_run(stopped, random_project.run)


def test_a_finished_run_without_a_checkpoint_is_not_replaced(random_project: Project, tmp_path: Path, cli: Cli) -> None:
    run = tmp_path / "run"
    shutil.copytree(random_project.run, run)
    shutil.rmtree(run / "checkpoints")
    before = tree(run)
    found = cli(*train_arguments(random_project, run, "--resume"))
    assert found.code == 1
    assert "is finished and has no checkpoint to resume" in errors(found.err)[0]
    assert tree(run) == before


def test_one_command_starts_a_run_and_resumes_it(
    random_project: Project, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        signal_at(patch, 9)
        found = cli(*train_arguments(random_project, run, "--resume"))
    assert found.code == 75
    assert f"{run}: no run to resume yet; starting one" in found.err.splitlines()
    found = cli(*train_arguments(random_project, run, "--resume"))
    assert found.code == 0
    assert "starting" not in found.err
    assert_same_run(run, random_project.run)


def test_the_average_of_the_weights_is_stored_and_continues(
    random_project: Project, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, whole = tmp_path / "run", tmp_path / "whole"
    weights: list[dict[str, torch.Tensor]] = []

    def keep(average: AveragedModel, model: nn.Module) -> None:
        weights.append({name: weight.detach().double().clone() for name, weight in model.named_parameters()})
        update(average, model)

    update = AveragedModel.update_parameters
    settings = ["train.ema_decay=0.7", "train.validation.metric=loss"]
    with monkeypatch.context() as patch:
        patch.setattr(AveragedModel, "update_parameters", keep)
        assert call(*train_arguments(random_project, whole, *settings)) == 0
    best = json.loads((whole / "run.json").read_text())["best_update"]
    stored = load_file(whole / "best/model.safetensors")
    shares = [min(0.7, (1 + number) / (10 + number)) for number in range(1, best + 1)]
    for name, found in stored.items():
        recent = [math.prod(shares[number + 1 :]) * (1 - share) for number, share in enumerate(shares)]
        expected = sum(part * each[name] for part, each in zip(recent, weights[:best], strict=True))
        assert torch.allclose(found.double(), expected, atol=2e-2 * math.prod(shares) + 1e-5), name
        assert not torch.allclose(found.double(), weights[best - 1][name], atol=1e-5)
    stop(random_project, run, 17, monkeypatch, *settings)
    assert cli(*train_arguments(random_project, run, *settings, "--resume")).code == 0
    assert_same_run(run, whole)
    found = cli(*train_arguments(random_project, run, "train.ema_decay=0.8", *settings[1:], "--resume"))
    assert "cannot be resumed with another train.ema_decay (0.7 there, 0.8 here)" in errors(found.err)[0]


def test_a_resumed_run_keeps_its_automatic_precision(
    random_project: Project, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, whole = tmp_path / "run", tmp_path / "whole"
    arguments = ["train.precision=auto", "train.epochs=1"]
    with monkeypatch.context() as patch:
        patch.setattr(devices, "_bfloat16_gain", lambda: 2.0)
        assert call(*train_arguments(random_project, whole, "train.precision=bfloat16", "train.epochs=1")) == 0
        stop(random_project, run, 9, patch, *arguments)
    assert load_config(run / "config.yaml").train.precision == "bfloat16"
    monkeypatch.setattr(devices, "_bfloat16_gain", lambda: 1.0)
    found = cli(*train_arguments(random_project, run, *arguments, "--resume"))
    assert found.code == 0
    assert "changed since" not in found.err
    assert_same_run(run, whole)


def test_what_is_not_a_run_is_not_resumed(random_project: Project, tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "letter.txt").write_text("mine", encoding="utf-8")
    found = cli(*train_arguments(random_project, tmp_path, "--resume"))
    assert (found.code, [path.name for path in tmp_path.iterdir()]) == (1, ["letter.txt"])
    assert "other files" in errors(found.err)[0]


def test_resume_and_overwrite_exclude_each_other(random_project: Project, cli: Cli) -> None:
    found = cli(*train_arguments(random_project, random_project.run, "--resume", "--overwrite"))
    assert found.code == 1
    assert "give only one of them" in errors(found.err)[0]


def test_a_log_that_lost_lines_is_reported(stopped: Path, random_project: Project, cli: Cli) -> None:
    (stopped / "metrics.jsonl").write_text("")
    found = cli(*train_arguments(random_project, stopped, "--resume"))
    assert found.code == 0
    assert f"{stopped / 'metrics.jsonl'}: is shorter than at the checkpoint; some lines are lost" in found.err


def test_an_intact_log_is_not_reported(stopped: Path, random_project: Project, cli: Cli) -> None:
    with (stopped / "metrics.jsonl").open("a") as log:
        log.write('{"kind": "train"')  # cut off by a kill
    assert "metrics.jsonl" not in cli(*train_arguments(random_project, stopped, "--resume")).err
    assert_same_run(stopped, random_project.run)


def test_leftovers_of_a_kill_between_best_models_are_cleaned_up(stopped: Path, random_project: Project) -> None:
    """A kill between two renames, one in a write, and models of updates that will be made again."""
    (stopped / "best").rename(stopped / ".best.earlier")
    (stopped / ".best.partial-12345").mkdir()
    (stopped / ".run.json.partial-12345").write_text("{")
    for update in (14, 21, 28):
        shutil.copytree(random_project.run / "best", stopped / f"models/update-{update:09d}")
    (stopped / "models/.update-000000028.partial-12345").mkdir()
    assert call(*train_arguments(random_project, stopped, "--resume", "train.checkpoint.keep_best=2")) == 0
    assert len(list((stopped / "models").iterdir())) == 2
    assert not list(stopped.rglob(".*"))


def test_the_initial_weights_are_not_needed_again(
    random_project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, first, whole = tmp_path / "run", tmp_path / "first", tmp_path / "whole"
    shutil.copytree(random_project.run / "best", first)
    settings = [f"train.init_from={first}"]
    assert call(*train_arguments(random_project, whole, *settings)) == 0
    stop(random_project, run, 9, monkeypatch, *settings)
    shutil.rmtree(first)
    assert call(*train_arguments(random_project, run, *settings, "--resume")) == 0
    assert_same_run(run, whole)


def test_keys_that_must_not_change(stopped: Path, random_project: Project, cli: Cli) -> None:
    before, harmless = tree(stopped), {"train.log_every", "train.watch", "train.tensorboard"}
    changes = {
        "model.decoder.hidden_size": 16,
        "train.seed": 9,
        "train.batch.size": 16,
        "train.optimizer.name": "sgd",
        "train.log_every": 2,
        "train.watch": 3,
        "train.tensorboard": True,
    }
    settings = [f"{key}={value}" for key, value in changes.items()]
    found = cli(*train_arguments(random_project, stopped, "--resume", *settings))
    assert found.code == 1
    (line,) = errors(found.err)
    assert line.startswith(f"nmt: error: {stopped}: cannot be resumed with another ")
    for key, value in changes.items():
        assert (f"{key} (" in line and f"{value!r} here)" in line) == (key not in harmless)
    assert "train.init_from" in line
    assert tree(stopped) == before


def test_influential_keys_are_reported(stopped: Path, random_project: Project, cli: Cli) -> None:
    settings = ["train.optimizer.learning_rate=0.001", "model.dropout=0.1", "train.teacher_forcing.ratio=1"]
    settings += ["model.memory_dropout=0.1", "train.r_drop=0.5"]
    found = cli(*train_arguments(random_project, stopped, "--resume", *settings))
    assert found.code == 0
    assert any(
        line.startswith("changed since the checkpoint: ")
        and "train.optimizer.learning_rate (0.01 there, 0.001 here)" in line
        and "model.dropout (0.3 there, 0.1 here)" in line
        and "model.memory_dropout (0.0 there, 0.1 here)" in line
        and "train.r_drop (0.0 there, 0.5 here)" in line
        for line in said(found, stopped)
    )
    assert "from here on, the run differs from an unchanged one" in said(found, stopped)
    rates = [entry["learning_rate"] for entry in read_metrics(stopped) if entry["kind"] == "train"]
    assert rates[0] == 0.01
    assert rates[-1] <= 0.001


@pytest.mark.parametrize(
    "settings",
    [
        ["train.checkpoint={every: 4, keep_last: 1}", "train.max_skipped=1", "train.threads=1", "decode.beam_size=2"],
        ["train.validation.patience=99", "train.device=auto", "name=other"],
    ],
)
def test_harmless_keys(stopped: Path, random_project: Project, cli: Cli, settings: list[str]) -> None:
    found = cli(*train_arguments(random_project, stopped, "--resume", *settings))
    assert found.code == 0
    assert "differs from an unchanged one" not in found.err
    assert read_metrics(stopped) == read_metrics(random_project.run)
    assert_same_tensors(read_tensors(stopped), read_tensors(random_project.run))


def test_more_epochs_of_a_cosine_are_another_run(
    random_project: Project, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    stop(random_project, run, 5, monkeypatch, "train.schedule.name=cosine")
    found = cli(*train_arguments(random_project, run, "--resume", "train.schedule.name=cosine", "train.epochs=3"))
    assert found.code == 0
    assert "from here on, the run differs from an unchanged one" in said(found, run)


def test_other_data_is_refused_by_file(stopped: Path, random_project: Project, tmp_path: Path, cli: Cli) -> None:
    other = tmp_path / "other"
    assert cli("preprocess", "--config", random_project.config, "-o", other, "--set", "data.split.seed=5").code == 0
    before = tree(stopped)
    found = cli(*train_arguments(Project(tmp_path, random_project.config, other, stopped), stopped, "--resume"))
    assert found.code == 1
    (line,) = errors(found.err)
    assert line.startswith(f"nmt: error: {stopped}: the data has changed since the checkpoint: ")
    assert "train.src.ids.npy" in line
    assert "valid.jsonl" in line
    assert tree(stopped) == before


def test_the_same_data_preprocessed_again_is_the_same(
    stopped: Path, random_project: Project, tmp_path: Path, cli: Cli
) -> None:
    again = tmp_path / "again"
    assert cli("preprocess", "--config", random_project.config, "-o", again).code == 0
    assert (
        cli(*train_arguments(Project(tmp_path, random_project.config, again, stopped), stopped, "--resume")).code == 0
    )
    assert_same_run(stopped, random_project.run)


def test_another_environment_is_reported(
    stopped: Path, random_project: Project, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nmt.system import device

    here = device.describe_environment

    def elsewhere(device: object) -> dict[str, object]:
        return {**here(device), "torch": "99.0", "threads": 64}  # type: ignore[arg-type]

    for module in ("directory", "resume"):
        monkeypatch.setattr(f"nmt.training.{module}.describe_environment", elsewhere)
    found = cli(*train_arguments(random_project, stopped, "--resume"))
    assert found.code == 0
    (line,) = (line for line in said(found, stopped) if line.startswith("another environment: "))
    assert "torch (" in line
    assert "'99.0' here)" in line
    assert "threads (" in line
    assert line.endswith("results will be close, but not bit for bit the same")
    assert read_json(stopped / "environment.json")["threads"] == 64


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="needs POSIX")
def test_a_run_that_was_asked_for_a_checkpoint_is_the_same(
    random_project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    signal_at(monkeypatch, 28, signal.SIGUSR1)
    assert call(*train_arguments(random_project, run)) == 0
    names = sorted(path.name[7:16] for path in (run / "checkpoints").glob("*.sha256"))
    assert names == ["000000028", "000000030"]
    assert_same_run(run, random_project.run)
