"""Running a command and measuring it: wall-clock time and memory."""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

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
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**os.environ, **variables},
            )
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


def end(process: subprocess.Popen[bytes]) -> None:
    """Ask a process to end, and kill it if it has not done so after a while; a training writes a checkpoint first."""
    process.terminate()
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(SECONDS_TO_END)
    finally:
        process.kill()
        process.wait()


def measure(command: list[str]) -> tuple[float, int]:
    """Run a command.

    Returns:
        Wall-clock seconds, and the peak memory of all its processes together, in bytes: their proportional set sizes,
        in which a shared page counts once. Linux only.

    Raises:
        SystemExit: The command failed.
    """
    begin = time.perf_counter()
    peak = 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            peak = max(peak, sum(map(proportional_size, tree(process.pid))))
            time.sleep(INTERVAL)
        seconds = time.perf_counter() - begin
        errors = process.stderr.read() if process.stderr else ""
    if process.returncode:
        sys.exit(f"{' '.join(command)}\n{errors}")
    return seconds, peak


def tree(pid: int) -> Iterator[int]:
    """A process and all its descendants."""
    yield pid
    try:
        children = [Path(task, "children").read_text().split() for task in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:  # it has ended
        return
    for child in itertools.chain.from_iterable(children):
        yield from tree(int(child))


def proportional_size(pid: int) -> int:
    """Proportional set size of a process in bytes; 0 once it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
