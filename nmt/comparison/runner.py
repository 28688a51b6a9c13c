"""Running the trials of a comparison: several at once, each in a process of its own, here or where a launcher puts it.

A trial is done when its result is in its folder. So a comparison that was stopped or killed goes on from what is there,
and trials may run on other machines that share the folder.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.comparison.plan import Trial
from nmt.comparison.trial import BUDGET, FAILURE, RESULT, RUN, TRAINING, read_result
from nmt.corpus.processes import available_cores
from nmt.drawing.charts import read_metrics
from nmt.system.errors import ConfigError, DataError, RunInterrupted, shorten
from nmt.system.files import read_json
from nmt.system.replacement import is_locked
from nmt.system.signals import ENDING, handled_signals
from nmt.system.tables import Table
from nmt.system.terminal import live_table
from nmt.training.metrics_log import METRICS

log = logging.getLogger(__name__)

LOG = "log.txt"
SECONDS = 1.0
"""Time between two looks at the trials."""
TAIL = 4096
"""Bytes of a log that are enough for its last line."""


@dataclass
class Job:
    """A trial and the process that runs it.

    Attributes:
        trial: The trial.
        folder: Its folder.
        process: The process; None before it is started, and if an earlier command started it.
        state: What the trial is doing, in a word.
        at_work: Whether a process works on it: ours, one that holds the lock of its folder, or one that a launcher was
            asked to start.
        seen: Whether such a lock was seen.
    """

    trial: Trial
    folder: Path
    process: subprocess.Popen[bytes] | None = None
    state: str = "waiting"
    at_work: bool = False
    seen: bool = False

    @property
    def ended(self) -> bool:
        """Whether there is nothing left to do."""
        return self.state in ("finished", "failed")


def check_launcher(launcher: str) -> None:
    """Refuse the template of a command that does not run trials.

    Raises:
        ConfigError: It has no `{command}`.
    """
    if "{command}" not in launcher:
        raise ConfigError(f"--launcher {launcher}: has no {{command}}, which stands for the command of a cell")


def run_trials(trials: Mapping[Path, Trial], *, jobs: int, launcher: str | None) -> dict[Path, str]:
    """Run all trials that have no result yet.

    Args:
        trials: The trials by folder.
        jobs: How many run at once.
        launcher: Command of a shell that runs, or hands over, `{command}`; None runs trials on this machine.

    Returns:
        By folder, why a trial failed.

    Raises:
        RunInterrupted: A signal asked for the end. The processes that this command started have written checkpoints;
            what a launcher has handed over goes on.
    """
    all_jobs = [Job(trial, folder) for folder, trial in trials.items()]
    stop: list[int] = []
    with handled_signals(ENDING, lambda number, frame: stop.append(number)), live_table() as show:
        try:
            while not all(job.ended for job in all_jobs):
                for job in all_jobs:
                    _look(job, launcher)
                for job in all_jobs:
                    if job.state == "waiting" and sum(other.at_work for other in all_jobs) < jobs:
                        _start(job, jobs, launcher)
                show(_describe(all_jobs))
                if stop:
                    raise RunInterrupted("stopped; run the same command again to continue")
                time.sleep(SECONDS)
            show(_describe(all_jobs))
        finally:
            _end(all_jobs, stop)
    return {job.folder: _reason(job) for job in all_jobs if job.state == "failed"}


def _look(job: Job, launcher: str | None) -> None:
    """Update the state of a trial."""
    if job.ended:
        return
    before = job.state
    code = None if job.process is None else job.process.poll()
    if (job.folder / RESULT).exists():
        job.state, job.at_work = "finished", False
    elif job.process is not None and code is None:
        job.state = _stage(job.folder)
    elif code or (job.process is not None and launcher is None) or (job.folder / FAILURE).exists():
        job.state, job.at_work = ("failed", False) if job.process is not None else ("waiting", False)
    elif is_locked(job.folder):  # by a process that was handed over, or that an earlier command started
        job.state, job.at_work, job.seen = _stage(job.folder), True, True
    elif job.process is None:
        job.state, job.at_work = "waiting", False
    else:  # what held the lock has left no result
        job.state, job.at_work = ("failed", False) if job.seen else ("launched", True)
    if job.state != before:
        log.info(f"{job.trial.title}: {job.state}{_summary(job)}")


def _stage(folder: Path) -> str:
    """What the process of a trial is doing, from the files that are there."""
    if (folder / TRAINING).exists():
        return "evaluating"
    return "training" if (folder / RUN / METRICS).exists() else "starting"


def _summary(job: Job) -> str:
    """The score of a finished trial, and the reason of a failure, for a message."""
    if job.state == "finished":
        return f", BLEU {read_result(job.folder)['scores']['bleu']['value']:.2f}"
    return f" ({_reason(job)})" if job.state == "failed" else ""


def _reason(job: Job) -> str:
    """Why a trial failed: its error, or the last line of its log."""
    with contextlib.suppress(OSError):
        return "; ".join((job.folder / FAILURE).read_text(encoding="utf-8").splitlines())
    with contextlib.suppress(OSError):
        lines = (job.folder / LOG).read_bytes()[-TAIL:].decode("utf-8", "replace").strip().splitlines()
        if lines:
            return f"{shorten(lines[-1].removeprefix('nmt: error: '))}; see {job.folder / LOG}"
    return f"its process ended without a result; see {job.folder / LOG}"


def command_of(folder: Path) -> list[str]:
    """The command that runs a trial."""
    return [sys.executable, "-m", "nmt", "compare", "--cell", str(folder.resolve())]


def _start(job: Job, jobs: int, launcher: str | None) -> None:
    """Start the process of a trial, in a session of its own, so that Ctrl-C reaches it through this process alone."""
    (job.folder / FAILURE).unlink(missing_ok=True)
    environment = dict(os.environ)
    command: str | list[str] = command_of(job.folder)
    if launcher is not None:
        command = launcher.replace("{command}", shlex.join(command)).replace("{name}", shlex.quote(job.trial.key))
    elif jobs > 1 and "OMP_NUM_THREADS" not in environment:
        environment["OMP_NUM_THREADS"] = str(max(1, available_cores() // jobs))
    with (job.folder / LOG).open("ab") as file:
        job.process = subprocess.Popen(
            command,
            shell=launcher is not None,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    job.state, job.at_work = "starting", True
    log.info(f"{job.trial.title}: starting")


def _end(jobs: Sequence[Job], stop: Sequence[int]) -> None:
    """Ask the processes that still run to stop, and wait for their checkpoints; a second signal ends them at once."""
    processes = [(job.process, job.ended) for job in jobs if job.process is not None]
    at_work = [process for process, ended in processes if not ended and process.poll() is None]
    if at_work:
        log.info(f"waiting for {len(at_work)} {'cells' if len(at_work) > 1 else 'cell'} to write checkpoints")
    _signal(at_work, signal.SIGTERM)
    signals = len(stop)
    for process, _ in processes:
        while process.poll() is None:
            if len(stop) > signals:
                _signal(at_work, getattr(signal, "SIGKILL", signal.SIGTERM))
            time.sleep(SECONDS / 10)


def _signal(processes: Sequence[subprocess.Popen[bytes]], number: int) -> None:
    """Send a signal to processes and to those that they have started, such as a launcher's."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, number)
            else:
                process.send_signal(number)


def _describe(jobs: Sequence[Job]) -> Table:
    """The state of all trials."""
    rows = [[job.trial.title, job.state, *_progress(job)] for job in jobs]
    return Table(["config", "state", "updates", "minutes", "BLEU"], rows, "llrrr")


def _progress(job: Job) -> list[str]:
    """Updates, minutes with validation, and BLEU: of the test set if it is known, else the last one in validation."""
    with contextlib.suppress(DataError, OSError, KeyError, TypeError, ValueError):
        if job.state == "finished":
            result = read_result(job.folder)
            minutes = f"{result['total_seconds'] / 60:.1f}"
            return [f"{result['updates']:,}", minutes, f"{result['scores']['bleu']['value']:.2f}"]
        state = read_json(job.folder / RUN / "run.json")
        entries = list(_last_entries(job.folder / RUN / METRICS))
        scores = [entry["bleu"] for entry in entries if "bleu" in entry]
        last: dict[str, Any] = entries[-1] if entries else {}
        return [
            f"{last.get('update', state['updates']):,} of {state['total_updates']:,}",
            f"{last.get('seconds', state['total_seconds']) / 60:.1f}",
            f"valid {scores[-1]:.2f}" if scores else "",
        ]
    with contextlib.suppress(DataError, OSError, KeyError):
        return [f"of {read_json(job.folder / BUDGET)['updates']:,}", "", ""]
    return ["", "", ""]


def _last_entries(path: Path) -> Iterator[dict[str, Any]]:
    """The last complete entries of a log of metrics."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 16 * TAIL))
        yield from read_metrics(file.read())
