"""Runs of the shared projects, trained in this process."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli, Project, call, read_metrics, signal_at, train_arguments
from test_faults import errors


def train(project: Project, run: Path, *more: str, code: int = 0) -> None:
    """Train without drawing learning curves, which takes longest; arguments with `=` are settings."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("nmt.drawing.charts.draw_learning_curve", lambda run: None)
        assert call(*train_arguments(project, run, *more)) == code


def stop(project: Project, run: Path, update: int, *more: str, number: int = signal.SIGTERM) -> None:
    """Train until a signal comes during an update."""
    with pytest.MonkeyPatch.context() as patched:
        signal_at(patched, update, number)
        train(project, run, *more, code=75)


def messages(cli: Cli, project: Project, run: Path, *more: str) -> str:
    """What a run that ends well says."""
    outcome = cli(*train_arguments(project, run, *more))
    assert outcome.code == 0, outcome.err
    return outcome.err


def refusal(cli: Cli, project: Project, run: Path, *more: str) -> str:
    """The one line with which a run does not begin, or ends."""
    outcome = cli(*train_arguments(project, run, *more))
    assert outcome.code == 1, outcome
    (line,) = errors(outcome.err)
    return line


def record_of(run: Path) -> dict[str, Any]:
    """The content of `run.json`."""
    record: dict[str, Any] = json.loads((run / "run.json").read_text(encoding="utf-8"))
    return record


def checkpoints_of(run: Path) -> list[int]:
    """Updates of the finished checkpoints."""
    return sorted(int(path.name[7:16]) for path in (run / "checkpoints").glob("*.sha256"))


def validations_of(run: Path) -> list[dict[str, Any]]:
    """The lines of the log about validations."""
    return [line for line in read_metrics(run) if line["kind"] == "valid"]
