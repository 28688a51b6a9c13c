"""Running a command and measuring it: wall-clock time and memory."""

import contextlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import psutil

LAUNCHER = Path(__file__).with_name("launcher.py")
PEER_VARIABLES = {"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}
"""Without this, OpenNMT-py 3.5.1 cannot load its own checkpoints with current torch."""
INTERVAL = 0.25  # seconds between memory samples
SECONDS_TO_END = 60
MIB = 1 << 20


class RunError(Exception):
    """A measured command failed; the message is one line that names its log."""


@dataclass(frozen=True)
class Finished:
    """A successful command.

    Attributes:
        seconds: Wall-clock time from start to end.
        peak: Peak resident memory of its process, or of a child that it waited for, in bytes.
        text: Its standard output and standard error.
    """

    seconds: float
    peak: int
    text: str


@dataclass(frozen=True)
class Outcome:
    """One measured training.

    Attributes:
        reports: Target tokens per second, without padding, of each report after the warm-up.
        precision: The precision actually used.
        peak: Peak resident memory, in bytes.
    """

    reports: Sequence[float]
    precision: str
    peak: int

    @property
    def speed(self) -> float:
        """Median target tokens per second."""
        return statistics.median(self.reports)


def steady(reports: Sequence[float], warm_up: int = 3) -> Sequence[float]:
    """The reports after the warm-up; the last one if there are no others.

    Raises:
        RunError: There is no report.
    """
    if not reports:
        raise RunError("its log has no report of its speed")
    return reports[min(warm_up, len(reports) - 1) :]


def environment(threads: int) -> dict[str, str]:
    """Environment variables of a measured command: number of CPU threads, and unbuffered output."""
    return {
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONUNBUFFERED": "1",
    }


def run(command: Sequence[str], log: Path, variables: Mapping[str, str]) -> Finished:
    """Run a command, with its output in a file.

    Args:
        command: Program and arguments.
        log: File for standard output and standard error.
        variables: Environment variables to add.

    Raises:
        RunError: It cannot be started, or failed.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    begin = time.perf_counter()
    with log.open("wb") as file:
        try:
            process = start(command, file, variables)
        except OSError as error:
            raise RunError(f"{command[0]}: cannot be started ({error.strerror})") from None
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            end(process)
            raise
    seconds = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    text = log.read_text(encoding="utf-8", errors="replace")
    if process.returncode:
        last = next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "no output")
        raise RunError(f"exit code {process.returncode} ({last[:160]}); log: {log}")
    return Finished(seconds, usage.ru_maxrss * 1024, text)  # Linux counts in KiB


def start(command: Sequence[str], log: BinaryIO, variables: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a command with its output in a file."""
    chosen = {**os.environ, **variables}
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=chosen)


def end(process: subprocess.Popen[bytes]) -> None:
    """Ask a process to end, and kill it if it has not done so after a while; a training writes a checkpoint first."""
    process.terminate()
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(SECONDS_TO_END)
    finally:
        process.kill()
        process.wait()


def launch(
    python: Path,
    module: str,
    arguments: Sequence[object],
    log: Path,
    threads: int,
    precision: str = "default",
) -> Finished:
    """Run a module of another toolkit in its own interpreter.

    Args:
        python: The interpreter. It is not resolved, as it finds the packages of its environment by its path.
        module: The module.
        arguments: Its arguments.
        log: File for standard output and standard error.
        threads: CPU threads.
        precision: PRECISION of the launcher.

    Raises:
        RunError: It cannot be started, or failed.
    """
    command = [str(python.absolute()), str(LAUNCHER), precision, module, *map(str, arguments)]
    return run(command, log, environment(threads) | PEER_VARIABLES)


def measure(command: list[str]) -> tuple[float, int]:
    """Run a command.

    Returns:
        Wall-clock seconds, and the peak memory of all its processes together, in bytes: their proportional set sizes,
        in which a shared page counts once. Linux only.

    Raises:
        SystemExit: The command failed.
    """
    begin, peak = time.perf_counter(), 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            with contextlib.suppress(psutil.Error):  # one of them has ended
                root = psutil.Process(process.pid)
                processes = [root, *root.children(recursive=True)]
                peak = max(peak, sum(each.memory_full_info().pss for each in processes))
            time.sleep(INTERVAL)
        seconds = time.perf_counter() - begin
        errors = process.stderr.read() if process.stderr else ""
    if process.returncode:
        sys.exit(f"{' '.join(command)}\n{errors}")
    return seconds, peak
