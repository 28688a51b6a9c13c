"""A resumed run equals the uninterrupted run; changes are reported.

Some tests stand for faults that other toolkits had; their docstrings name them.
"""

import itertools
import json
import math
import random
import shutil
import time
from pathlib import Path

import pytest
import torch
from conftest import (
    UPDATES,
    Cli,
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
from training_runs import messages, record_of, refusal, stop, train

from nmt.config import load_config
from nmt.drawing.charts import draw_learning_curve
from nmt.system import device as devices
from nmt.system.files import read_json, write_json

pytestmark = pytest.mark.usefixtures("no_pictures")


@pytest.fixture(scope="module")
def stopped_once(random_project: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was stopped at update 17, in its second epoch."""
    run = tmp_path_factory.mktemp("stopped") / "run"
    stop(random_project, run, 17)
    return run


@pytest.fixture
def stopped(stopped_once: Path, tmp_path: Path) -> Path:
    """A copy of it, which a test may damage."""
    return Path(shutil.copytree(stopped_once, tmp_path / "run"))


def frozen(project: Project) -> list[str]:
    """Settings of a run that begins with what another has learnt, and whose weights never move."""
    return [f"train.init_from={project.run}", "train.optimizer={name: sgd, learning_rate: 1.0e-30}"]


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def said(err: str, run: Path) -> list[str]:
    """What was said of the run itself."""
    return [line.removeprefix(f"{run}: ") for line in err.splitlines() if line.startswith(f"{run}: ")]


def test_a_run_of_many_stops(random_project: Project, run: Path) -> None:
    """Continued training differs, and metrics lose a line at each stop (joeynmt#125, OpenNMT-py#2006, sockeye#859)."""
    updates = sorted(random.SystemRandom().sample(range(1, UPDATES), 6))
    print(f"stopped at {updates}")
    for number, update in enumerate(updates):
        stop(random_project, run, update, *["--resume"] * (number > 0))
    train(random_project, run, "--resume")
    assert_same_run(run, random_project.run)


def test_a_clock_that_goes_backwards_changes_nothing(
    random_project: Project, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """During the run by an hour at each look, and by a year while it was stopped."""
    for begin, more in ((1.8e9, []), (1.8e9 - 3.2e7, ["--resume"])):
        clock = itertools.count(begin, -3600)
        with monkeypatch.context() as patched:
            patched.setattr(time, "time", lambda clock=clock: next(clock))
            if more:
                train(random_project, run, *more)
            else:
                stop(random_project, run, 17)
    assert_same_run(run, random_project.run)
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    seconds = [line["seconds"] for line in lines]
    assert 0 <= seconds[0] <= seconds[-1] < 600
    assert seconds == sorted(seconds)
    assert seconds[-1] <= record_of(run)["total_seconds"] < 600


@pytest.mark.parametrize(
    "settings",
    [
        ["train.validation={every: 3, metric: loss, patience: 4}"],
        ["train.schedule={name: plateau, warmup: 2}"],
        ["train.schedule={name: cosine, warmup: 4}"],
        ["train.schedule={name: inverse_sqrt, warmup: 4}"],
    ],
)
def test_patience_and_the_learning_rate_continue(settings: list[str], random_project: Project, tmp_path: Path) -> None:
    """A run that is resumed forgets patience, or begins a fresh schedule (joeynmt#125, sockeye#890)."""
    whole, run = tmp_path / "whole", tmp_path / "run"
    every = ["train.validation={every: 3, metric: loss}", "train.log_every=1"]
    settings = [*frozen(random_project), *every, *settings]
    train(random_project, whole, *settings)
    stop(random_project, run, 11, *settings)
    train(random_project, run, *settings, "--resume")
    assert_same_run(run, whole)
    if "patience" in settings[-1]:  # four validations after the first, which is the best
        assert record_of(run)["updates"] == 15
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
    assert "resumed at update 17, epoch 2" in said(found.err, there / "copy")
    assert_same_run(there / "copy", random_project.run)


def test_checkpoints_are_made_while_validation_does_not_improve(random_project: Project, run: Path) -> None:
    """No checkpoint is saved until validation improves (joeynmt#128)."""
    settings = [*frozen(random_project), "train.checkpoint.keep_last=99"]
    train(random_project, run, *settings, "train.validation.metric=bleu")
    assert record_of(run)["best_update"] == 7
    assert len(list((run / "checkpoints").glob("*.sha256"))) == 5


def test_a_finished_run_says_so_and_continues_with_more_epochs(
    random_project: Project, tmp_path: Path, cli: Cli
) -> None:
    """A finished run quits without a word, or makes further checkpoints (OpenNMT-py#886, sockeye#859)."""
    run, longer = tmp_path / "run", tmp_path / "longer"
    shutil.copytree(random_project.run, run)
    before = tree(run)
    assert f"stopped at update {UPDATES}: all {UPDATES} updates are done; to continue, raise train.epochs" in messages(
        cli, random_project, run, "--resume"
    )
    after = tree(run)
    name = str(run / "run.json")
    clock = ("time", "total_seconds")
    states = [{k: v for k, v in json.loads(t.pop(name)).items() if k not in clock} for t in (before, after)]
    assert states[0] == states[1]
    assert after == before
    err = messages(cli, random_project, run, "--resume", "train.epochs=4", "train.validation.every=15")
    assert any("changed since the checkpoint: train.epochs (2 there, 4 here)" in line for line in said(err, run))
    assert record_of(run)["updates"] == 2 * UPDATES
    more = ["train.validation.every=15", "train.checkpoint.every=15", "train.log_every=5"]
    runs = tmp_path / "short", longer
    for place, epochs in zip(runs, (2, 4), strict=True):
        train(random_project, place, *more, f"train.epochs={epochs}")
    train(random_project, runs[0], *more, "train.epochs=4", "--resume")
    assert_same_run(*runs)


def test_a_damaged_checkpoint_is_skipped(stopped: Path, random_project: Project, cli: Cli) -> None:
    newest = stopped / "checkpoints/update-000000017.safetensors"
    damage(newest)
    err = messages(cli, random_project, stopped, "--resume")
    assert err.count(f"{newest}: damaged") == 1
    assert "resumed at update 12, epoch 1" in said(err, stopped)
    assert_same_run(stopped, random_project.run)
    assert not newest.exists()


def test_all_checkpoints_damaged(stopped: Path, random_project: Project, cli: Cli) -> None:
    for path in (stopped / "checkpoints").glob("*.safetensors"):
        damage(path)
    before = tree(stopped)
    line = refusal(cli, random_project, stopped, "--resume")
    assert line.endswith("checkpoints: all checkpoints are damaged; start over with --overwrite")
    assert tree(stopped) == before


def test_a_run_that_has_lost_its_checkpoints_is_not_restarted(stopped: Path, random_project: Project, cli: Cli) -> None:
    before = tree(stopped)
    for path in (stopped / "checkpoints").glob("*.sha256"):
        path.rename(stopped / path.name)
    assert "its checkpoints, or their checksums (.sha256), are missing; restore them" in refusal(
        cli, random_project, stopped, "--resume"
    )
    for path in stopped.glob("*.sha256"):
        path.rename(stopped / "checkpoints" / path.name)
    assert tree(stopped) == before
    lost = max((stopped / "checkpoints").glob("*.sha256"))
    lost.unlink()
    assert f"{lost.with_suffix('')}: unfinished, as it has no checksum; skipping it" in messages(
        cli, random_project, stopped, "--resume"
    )
    assert_same_run(stopped, random_project.run)


@pytest.mark.parametrize("content", [None, b"", b"{", b"{}", b"\xff"])
def test_without_run_json_the_checkpoints_still_count(
    stopped: Path, random_project: Project, cli: Cli, content: bytes | None
) -> None:
    (stopped / "run.json").unlink()
    if content is not None:
        (stopped / "run.json").write_bytes(content)
    assert "contains an unfinished run; resume with: " in refusal(cli, random_project, stopped)
    train(random_project, stopped, "--resume")
    assert_same_run(stopped, random_project.run)


def test_a_best_model_from_before_a_change_is_named(stopped: Path, random_project: Project, cli: Cli) -> None:
    """Killed after a validation that no checkpoint knows of, and gone on with another learning rate."""
    marker = stopped / "best/model.json"
    write_json(marker, read_json(marker) | {"update": 25})
    assert f"{stopped / 'best'}: is of update 25, before the change, until there is a better one" in messages(
        cli, random_project, stopped, "--resume", "train.optimizer.learning_rate=1.0e-12"
    )


def test_a_damaged_log_ends_no_run(stopped: Path, random_project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.drawing.charts.draw_learning_curve", draw_learning_curve)
    lines = (stopped / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    lines[0] = b"\xff[" + b"x" * (len(lines[0]) - 3) + b"\n"
    (stopped / "metrics.jsonl").write_bytes(b"".join(lines))
    assert call(*train_arguments(random_project, stopped, "--resume")) == 0
    assert (stopped / "learning_curve.png").stat().st_size > 1000


def test_a_run_without_a_checkpoint_starts_from_scratch(stopped: Path, random_project: Project, cli: Cli) -> None:
    shutil.rmtree(stopped / "checkpoints")
    write_json(stopped / "run.json", read_json(stopped / "run.json") | {"state": "running"})  # as if killed
    found = cli(*train_arguments(random_project, stopped))
    assert errors(found.err) == [
        f"nmt: error: {stopped}: contains an unfinished run; it has no checkpoint; replace it with --overwrite"
    ]
    assert "no checkpoint yet; starting from scratch" in said(
        messages(cli, random_project, stopped, "--resume"), stopped
    )
    assert_same_run(stopped, random_project.run)


def test_a_finished_run_without_a_checkpoint_is_not_replaced(random_project: Project, run: Path, cli: Cli) -> None:
    shutil.copytree(random_project.run, run)
    shutil.rmtree(run / "checkpoints")
    before = tree(run)
    assert "is finished and has no checkpoint to resume" in refusal(cli, random_project, run, "--resume")
    assert tree(run) == before


def test_one_command_starts_a_run_and_resumes_it(
    random_project: Project, run: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        signal_at(patch, 9)
        found = cli(*train_arguments(random_project, run, "--resume"))
    assert found.code == 75
    assert f"{run}: no run to resume yet; starting one" in found.err.splitlines()
    assert "starting" not in messages(cli, random_project, run, "--resume")
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
        train(random_project, whole, *settings)
    best = record_of(whole)["best_update"]
    stored = load_file(whole / "best/model.safetensors")
    shares = [min(0.7, (1 + number) / (10 + number)) for number in range(1, best + 1)]
    for name, found in stored.items():
        recent = [math.prod(shares[number + 1 :]) * (1 - share) for number, share in enumerate(shares)]
        expected = sum(part * each[name] for part, each in zip(recent, weights[:best], strict=True))
        assert torch.allclose(found.double(), expected, atol=2e-2 * math.prod(shares) + 1e-5), name
        assert not torch.allclose(found.double(), weights[best - 1][name], atol=1e-5)
    stop(random_project, run, 17, *settings)
    train(random_project, run, *settings, "--resume")
    assert_same_run(run, whole)
    assert "cannot be resumed with another train.ema_decay (0.7 there, 0.8 here)" in refusal(
        cli, random_project, run, "train.ema_decay=0.8", *settings[1:], "--resume"
    )


def test_a_resumed_run_keeps_its_automatic_precision(
    random_project: Project, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, whole = tmp_path / "run", tmp_path / "whole"
    arguments = ["train.precision=auto", "train.epochs=1"]
    with monkeypatch.context() as patch:
        patch.setattr(devices, "_bfloat16_gain", lambda: 2.0)
        train(random_project, whole, "train.precision=bfloat16", "train.epochs=1")
        stop(random_project, run, 9, *arguments)
    assert load_config(run / "config.yaml").train.precision == "bfloat16"
    monkeypatch.setattr(devices, "_bfloat16_gain", lambda: 1.0)
    assert "changed since" not in messages(cli, random_project, run, *arguments, "--resume")
    assert_same_run(run, whole)


def test_what_is_not_a_run_is_not_resumed(random_project: Project, tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "letter.txt").write_text("mine", encoding="utf-8")
    found = cli(*train_arguments(random_project, tmp_path, "--resume"))
    assert (found.code, [path.name for path in tmp_path.iterdir()]) == (1, ["letter.txt"])
    assert "other files" in errors(found.err)[0]


def test_resume_and_overwrite_exclude_each_other(random_project: Project, cli: Cli) -> None:
    assert "give only one of them" in refusal(cli, random_project, random_project.run, "--resume", "--overwrite")


@pytest.mark.parametrize("content", [None, b'{"kind": "train"'])  # lost, or cut off by a kill
def test_a_log_that_lost_lines_is_reported(
    stopped: Path, random_project: Project, cli: Cli, content: bytes | None
) -> None:
    log = stopped / "metrics.jsonl"
    log.write_bytes(b"" if content is None else log.read_bytes() + content)
    err = messages(cli, random_project, stopped, "--resume")
    assert (f"{log}: is shorter than at the checkpoint; some lines are lost" in err) == (content is None)
    if content is not None:
        assert_same_run(stopped, random_project.run)


def test_leftovers_of_a_kill_between_best_models_are_cleaned_up(stopped: Path, random_project: Project) -> None:
    """A kill between two renames, one in a write, and models of updates that will be made again."""
    (stopped / "best").rename(stopped / ".best.earlier")
    (stopped / ".best.partial-12345").mkdir()
    (stopped / ".run.json.partial-12345").write_text("{")
    for update in (14, 21, 28):
        shutil.copytree(random_project.run / "best", stopped / f"models/update-{update:09d}")
    (stopped / "models/.update-000000028.partial-12345").mkdir()
    train(random_project, stopped, "--resume", "train.checkpoint.keep_best=2")
    assert len(list((stopped / "models").iterdir())) == 2
    assert not list(stopped.rglob(".*"))


def test_the_initial_weights_are_not_needed_again(random_project: Project, tmp_path: Path) -> None:
    run, first, whole = tmp_path / "run", tmp_path / "first", tmp_path / "whole"
    shutil.copytree(random_project.run / "best", first)
    settings = [f"train.init_from={first}"]
    train(random_project, whole, *settings)
    stop(random_project, run, 9, *settings)
    shutil.rmtree(first)
    train(random_project, run, *settings, "--resume")
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
    line = refusal(cli, random_project, stopped, "--resume", *settings)
    assert line.startswith(f"nmt: error: {stopped}: cannot be resumed with another ")
    for key, value in changes.items():
        assert (f"{key} (" in line and f"{value!r} here)" in line) == (key not in harmless)
    assert "train.init_from" in line
    assert tree(stopped) == before


def test_influential_keys_are_reported(stopped: Path, random_project: Project, cli: Cli) -> None:
    settings = ["train.optimizer.learning_rate=0.001", "model.dropout=0.1", "train.teacher_forcing.ratio=1"]
    settings += ["model.memory_dropout=0.1", "train.r_drop=0.5"]
    err = messages(cli, random_project, stopped, "--resume", *settings)
    assert any(
        line.startswith("changed since the checkpoint: ")
        and "train.optimizer.learning_rate (0.01 there, 0.001 here)" in line
        and "model.dropout (0.3 there, 0.1 here)" in line
        and "model.memory_dropout (0.0 there, 0.1 here)" in line
        and "train.r_drop (0.0 there, 0.5 here)" in line
        for line in said(err, stopped)
    )
    assert "from here on, the run differs from an unchanged one" in said(err, stopped)
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
    assert "differs from an unchanged one" not in messages(cli, random_project, stopped, "--resume", *settings)
    assert read_metrics(stopped) == read_metrics(random_project.run)
    assert_same_tensors(read_tensors(stopped), read_tensors(random_project.run))


def test_more_epochs_of_a_cosine_are_another_run(random_project: Project, run: Path, cli: Cli) -> None:
    stop(random_project, run, 5, "train.schedule.name=cosine")
    assert "from here on, the run differs from an unchanged one" in said(
        messages(cli, random_project, run, "--resume", "train.schedule.name=cosine", "train.epochs=3"), run
    )


def test_other_data_is_refused_by_file(stopped: Path, random_project: Project, tmp_path: Path, cli: Cli) -> None:
    other = tmp_path / "other"
    assert cli("preprocess", "--config", random_project.config, "-o", other, "--set", "data.split.seed=5").code == 0
    before = tree(stopped)
    line = refusal(cli, Project(tmp_path, random_project.config, other, stopped), stopped, "--resume")
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
    err = messages(cli, random_project, stopped, "--resume")
    (line,) = (line for line in said(err, stopped) if line.startswith("another environment: "))
    assert "torch (" in line
    assert "'99.0' here)" in line
    assert "threads (" in line
    assert line.endswith("results will be close, but not bit for bit the same")
    assert read_json(stopped / "environment.json")["threads"] == 64
