"""Running the trials of a comparison: several at once, each in a process of its own, here or where a launcher puts it.

A trial is done when its result is in its folder. So a comparison that was stopped or killed goes on from the files that
are there, and trials may run on other machines that share the folder.
"""

import contextlib
import logging
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nmt.comparison.plan import Trial
from nmt.comparison.trial import FAILURE, RESULT, RUN, TRAINING, read_record
from nmt.drawing.charts import read_metrics
from nmt.system.errors import DataError, RunInterrupted, shorten
from nmt.system.files import read_bytes, read_json, read_text
from nmt.system.limits import MAX_JSON, MAX_TEXT_FILE
from nmt.system.process_pool import available_cores
from nmt.system.replacement import is_locked
from nmt.system.signals import ENDING, handled_signals
from nmt.system.tables import Table
from nmt.system.terminal import live_table
from nmt.training.metrics_log import METRICS

log = logging.getLogger(__name__)

LOG = "log.txt"
SECONDS = 1.0
"""Time between two looks at the trials."""


@dataclass
class Job:
    """A trial and the process that runs it.

    Attributes:
        trial: The trial.
        folder: Its folder.
        process: The process; None before it is started, and if an earlier command started it.
        state: The state of the trial, in a word.
        seen: True if a process that was handed over, or that an earlier command started, held the lock of the folder.
    """

    trial: Trial
    folder: Path
    process: subprocess.Popen[bytes] | None = None
    state: str = "waiting"
    seen: bool = False

    @property
    def ended(self) -> bool:
        """True if there is nothing left to do."""
        return self.state in ("finished", "failed")

    @property
    def at_work(self) -> bool:
        """True if a process works on it: ours, another, or one that a launcher was asked to start."""
        return not self.ended and self.state != "waiting"


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
            trials that a launcher has handed over go on.
    """
    all_jobs = [Job(trial, folder) for folder, trial in trials.items()]
    stop: list[int] = []
    with handled_signals(ENDING, lambda number, frame: stop.append(number)), live_table() as show:
        try:
            while True:
                for job in all_jobs:
                    _look(job, launcher)
                for job in all_jobs:
                    if job.state == "waiting" and sum(running.at_work for running in all_jobs) < jobs:
                        _start(job, jobs, launcher)
                show(describe_jobs(all_jobs))
                if all(job.ended for job in all_jobs):
                    return {job.folder: _reason(job) for job in all_jobs if job.state == "failed"}
                if stop:
                    raise RunInterrupted("stopped; run the same command again to continue")
                time.sleep(SECONDS)
        finally:
            _end(all_jobs, stop)


def _look(job: Job, launcher: str | None) -> None:
    """Update the state of a trial."""
    if job.ended:
        return
    before = job.state
    process = job.process
    code = None if process is None else process.poll()
    if (job.folder / RESULT).exists():
        job.state = "finished"
    elif process is not None and code is None:
        job.state = _stage(job.folder)
    elif process is not None and (job.folder / FAILURE).exists():
        job.state = "failed"
    elif is_locked(job.folder):  # by a process that was handed over, or that an earlier command started
        job.state = _stage(job.folder)
        job.seen = True
        if code:  # the other one was faster than ours
            job.process = None
    elif process is not None and (code or launcher is None):
        job.state = "failed"
    elif process is None:
        job.state = "waiting"
    else:  # what held the lock has left no result
        job.state = "failed" if job.seen else "launched"
    if job.state != before:
        log.info(f"{job.trial.title}: {job.state}{_summary(job)}")


def _stage(folder: Path) -> str:
    """The state of a trial's process, from the files that are there."""
    if (folder / TRAINING).exists():
        return "evaluating"
    return "training" if (folder / RUN / METRICS).exists() else "starting"


def _summary(job: Job) -> str:
    """The score of a finished trial, and the reason of a failure, for a message."""
    if job.state == "finished":
        return f", BLEU {read_record(job.folder / RESULT)['scores']['bleu']['value']:.2f}"
    return f" ({_reason(job)})" if job.state == "failed" else ""


def _reason(job: Job) -> str:
    """Why a trial failed: its error, or the last line of its log."""
    with contextlib.suppress(OSError, DataError):
        return "; ".join(read_text(job.folder / FAILURE, MAX_JSON, job.folder).splitlines())
    with contextlib.suppress(OSError, DataError):
        log_text = read_bytes(job.folder / LOG, MAX_TEXT_FILE, job.folder).decode("utf-8", "replace")
        if lines := log_text.strip().splitlines():
            return f"{shorten(lines[-1].removeprefix('nmt: error: '))}; see {job.folder / LOG}"
    return f"its process ended without a result; see {job.folder / LOG}"


def _start(job: Job, jobs: int, launcher: str | None) -> None:
    """Start the process of a trial, in a session of its own, so that Ctrl-C reaches it only through this process."""
    (job.folder / FAILURE).unlink(missing_ok=True)
    environment = dict(os.environ)
    command: str | list[str] = [sys.executable, "-m", "nmt", "compare", "--cell", str(job.folder.resolve())]
    if launcher is not None:
        command = launcher.replace("{command}", shlex.join(command)).replace("{name}", shlex.quote(job.trial.key))
    elif jobs > 1:
        environment.setdefault("OMP_NUM_THREADS", str(max(1, available_cores() // jobs)))
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
    job.state = "starting"
    log.info(f"{job.trial.title}: starting")


def _end(jobs: Sequence[Job], stop: Sequence[int]) -> None:
    """Ask the processes that still run to stop, and wait for their checkpoints; a second signal ends them at once."""
    running = [job for job in jobs if job.process is not None and job.process.poll() is None]
    unfinished = [job for job in running if not job.ended]
    at_work = [job.process for job in unfinished if job.process is not None]
    if at_work:
        log.info(f"waiting for {len(at_work)} {'cells' if len(at_work) > 1 else 'cell'} to write checkpoints")
    _signal(at_work, signal.SIGTERM)
    signals = len(stop)
    while any(job.process is not None and job.process.poll() is None for job in running):
        if len(stop) > signals:
            _signal(at_work, getattr(signal, "SIGKILL", signal.SIGTERM))
        time.sleep(SECONDS / 10)
    # The shell of a launcher can end before the trial that it has started.
    while len(stop) == signals and any(is_locked(job.folder) for job in unfinished):
        time.sleep(SECONDS / 10)


def _signal(processes: Sequence[subprocess.Popen[bytes]], number: int) -> None:
    """Send a signal to processes and to those that they have started, such as a launcher's."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            getattr(os, "killpg", os.kill)(process.pid, number)


def describe_jobs(jobs: Sequence[Job]) -> Table:
    """The state of all trials."""
    rows = [[job.trial.title, job.state, *_progress(job)] for job in jobs]
    return Table(["config", "state", "updates", "minutes", "BLEU"], rows, "llrrr", whole="cells")


def _progress(job: Job) -> list[str]:
    """Updates, minutes with validation, and BLEU: of the test set if it is known, else the last one in validation."""
    with contextlib.suppress(DataError, OSError, LookupError, TypeError, ValueError):
        if job.state == "finished":
            result = read_record(job.folder / RESULT)
            minutes = f"{result['total_seconds'] / 60:.1f}"
            return [f"{result['updates']:,}", minutes, f"{result['scores']['bleu']['value']:.2f}"]
        total = read_json(job.folder / RUN / "run.json")["total_updates"]
        entries = list(read_metrics(job.folder / RUN / METRICS))
        updates = f"{entries[-1]['update']:,} of {total:,}"
        minutes = f"{entries[-1]['seconds'] / 60:.1f}"
        return [updates, minutes, ([""] + [f"valid {entry['bleu']:.2f}" for entry in entries if "bleu" in entry])[-1]]
    return ["", "", ""]
