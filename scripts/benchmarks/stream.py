"""Translating a large file: lines per second, memory over time, and the same file after kills."""

from __future__ import annotations

import argparse
import filecmp
import itertools
import os
import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks import ours
from benchmarks.arguments import Commands, positive
from benchmarks.measuring import INTERVAL, MIB, RunError, environment
from benchmarks.tables import markdown
from nmt.system.files import beside, shipped

SHARES = (0.1, 0.25, 0.5, 0.75, 1.0)
"""When memory is reported, as shares of the time that translating takes."""


def add_command(commands: Commands) -> None:
    """Describe the arguments."""
    parser = commands.add_parser("stream", help="speed and memory of translating a large file, resumed after kills")
    parser.add_argument("--model", type=Path, required=True, help="run or model directory")
    parser.add_argument("--lines", type=positive, default=20_000, help="lines to translate")
    parser.add_argument("--source", type=Path, default=shipped("data/sample/deu.txt"), help="sentences to repeat")
    parser.add_argument("--kills", type=positive, default=3, help="how often to kill the second translation")
    parser.add_argument("--threads", type=positive, default=2, help="CPU threads")
    parser.add_argument("--output", type=Path, default=Path("runs/benchmark/stream"), help="folder for the files")
    parser.add_argument("options", nargs="*", help="other options of nmt translate, after --")
    parser.set_defaults(run=benchmark_stream)


def benchmark_stream(arguments: argparse.Namespace) -> None:
    """Print speed and memory of one translation, and check that a second one that is killed gives the same file.

    Raises:
        RunError: A command failed, or the files differ.
    """
    folder: Path = arguments.output.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    given, whole, killed = folder / "in.txt", folder / "whole.txt", folder / "killed.txt"
    write_input(arguments.source, given, arguments.lines)
    killed.unlink(missing_ok=True)
    command = ours.nmt("translate", "--model", arguments.model, "--input", given, *arguments.options)
    begin = time.perf_counter()
    memory = list(run([*command, "--output", str(whole)], folder / "whole.log", arguments.threads))
    seconds = time.perf_counter() - begin
    places = [min(len(memory) - 1, int(share * len(memory))) for share in SHARES]
    rows = [[f"{share:.0%}", f"{memory[place] / MIB:,.0f}"] for share, place in zip(SHARES, places, strict=True)]
    print(markdown(["of the time", "resident MiB"], [*rows, ["peak", f"{max(memory) / MIB:,.0f}"]]))
    print((folder / "whole.log").read_text(encoding="utf-8").strip())
    again = [*command, "--output", str(killed), "--resume"]
    for moment in sorted(random.SystemRandom().uniform(0.2, 0.9) for _ in range(arguments.kills)):
        # Each start resumes the last one, so the kills are spread over the whole translation.
        list(run(again, folder / "killed.log", arguments.threads, seconds * moment / arguments.kills))
        print(f"killed with {size(beside(killed, 'partial')) / max(1, size(whole)):.0%} of the output finished")
    list(run(again, folder / "killed.log", arguments.threads))
    print((folder / "killed.log").read_text(encoding="utf-8").strip())
    if not filecmp.cmp(whole, killed, shallow=False):
        raise RunError(f"{killed} is not the same as {whole}")
    left = [path.name for path in folder.glob(".*")]
    if left:
        raise RunError(f"{folder}: {', '.join(left)} left behind")
    print("the same file after the kills, and nothing else")


def write_input(source: Path, given: Path, lines: int) -> None:
    """Repeat the sentences of a file, the first column of each line."""
    sentences = [line.split("\t")[0] for line in source.read_text(encoding="utf-8").splitlines()]
    with given.open("w", encoding="utf-8") as file:
        file.writelines(f"{sentence}\n" for sentence in itertools.islice(itertools.cycle(sentences), lines))


def run(command: list[str], log: Path, threads: int, kill_after: float | None = None) -> Iterator[int]:
    """Run a command, and kill it after some seconds if it is not done.

    Yields:
        Its resident memory in bytes, at regular intervals.

    Raises:
        RunError: The command failed.
    """
    begin = time.perf_counter()
    with (
        log.open("wb") as file,
        subprocess.Popen(
            command, stdout=file, stderr=subprocess.STDOUT, env={**os.environ, **environment(threads)}
        ) as process,
    ):
        while process.poll() is None:
            status = Path(f"/proc/{process.pid}/status").read_text()
            if "VmRSS:" in status:
                yield int(status.split("VmRSS:")[1].split()[0]) * 1024
            if kill_after is not None and time.perf_counter() - begin > kill_after:
                process.kill()
                process.wait()
                return
            time.sleep(INTERVAL)
    if process.returncode:
        raise RunError(f"exit code {process.returncode}; log: {log}")


def size(path: Path) -> int:
    """Bytes of a file; 0 if there is none."""
    return path.stat().st_size if path.exists() else 0
