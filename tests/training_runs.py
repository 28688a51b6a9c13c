"""Runs of the shared projects; those of this process draw no learning curves, which takes longest."""

import contextlib
import io
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import processes
import pytest
from conftest import Project, assert_same_run, call, errors, read_metrics, signal_at, train_arguments, tree, wait_until
from processes import PIPE, Running


def train(project: Project, run: Path, *more: str, code: int = 0, drawing: bool = False) -> str:
    """Train, and return what is said; arguments with `=` are settings."""
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patched, contextlib.redirect_stderr(said):
        if not drawing:
            patched.setattr("nmt.drawing.charts.draw_learning_curve", lambda run: None)
        found = call(*train_arguments(project, run, *more))
    assert found == code, said.getvalue()
    return said.getvalue()


@contextlib.contextmanager
def training(project: Project, run: Path, *more: str) -> Iterator[Running]:
    """A process that has begun to train into a run directory, and stands still meanwhile; there is no model yet."""
    before = run.stat().st_ino if run.exists() else None
    settings = "train.epochs=1000", "train.validation.every=1000000"
    with processes.start(*train_arguments(project, run, *settings, *more), stderr=PIPE) as process:
        try:
            wait_until(lambda: (run / "run.json").exists() and run.stat().st_ino != before)
            process.send_signal(signal.SIGSTOP)
            yield process
        finally:
            process.kill()


def stop(project: Project, run: Path, update: int, *more: str, number: int = signal.SIGTERM) -> str:
    """Train until a signal comes during an update."""
    with pytest.MonkeyPatch.context() as patched:
        signal_at(patched, update, number)
        return train(project, run, *more, code=75)


def stop_and_resume(project: Project, folder: Path, update: int, *settings: str) -> Path:
    """A run that was stopped and has gone on as if it had not: it equals another one, `whole`, that was not."""
    run, whole = folder / "run", folder / "whole"
    train(project, whole, *settings)
    stop(project, run, update, *settings)
    train(project, run, *settings, "--resume")
    assert_same_run(run, whole)
    return run


def refusal(project: Project, run: Path, *more: str) -> str:
    """The one line with which a run does not begin, or ends."""
    (line,) = errors(train(project, run, *more, code=1))
    return line.removeprefix("nmt: error: ")


def refusal_to_resume(project: Project, run: Path, *more: str) -> str:
    """The one line with which a run is not resumed, which changes nothing."""
    before = tree(run)
    line = refusal(project, run, "--resume", *more)
    assert tree(run) == before
    return line


def record_of(run: Path) -> dict[str, Any]:
    """The content of `run.json`."""
    record: dict[str, Any] = json.loads((run / "run.json").read_text(encoding="utf-8"))
    return record


def checkpoints_of(run: Path) -> list[int]:
    """Updates of the finished checkpoints."""
    return sorted(int(path.name[7:16]) for path in (run / "checkpoints").glob("*.safetensors"))


def validations_of(run: Path) -> list[dict[str, Any]]:
    """The lines of the log about validations."""
    return [line for line in read_metrics(run) if line["kind"] == "valid"]
