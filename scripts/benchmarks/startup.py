"""Time and memory of `nmt train` from its start to the first update on a large data directory."""

import argparse
import shutil
import time
from pathlib import Path

from benchmarks import ours
from benchmarks.arguments import Commands, add_parser, positive
from benchmarks.measuring import MIB, RunError, environment
from benchmarks.measuring import start as start_command
from benchmarks.scale import Scale, prepare
from benchmarks.tables import markdown

INTERVAL = 0.02  # seconds between checks for the first update


def add_command(commands: Commands) -> None:
    """Describe the arguments."""
    about = "seconds and memory from the start of nmt train to its first update"
    parser = add_parser(commands, benchmark_startup, "startup", about, "runs/benchmark/startup", rounds=1)
    parser.add_argument("--pairs", type=positive, nargs="+", default=[5_000_000], help="training pairs")


def benchmark_startup(arguments: argparse.Namespace) -> None:
    """Print seconds and memory for each number of pairs."""
    folder: Path = arguments.output.resolve()
    rows = []
    for pairs in arguments.pairs:
        data = prepare(folder, Scale(pairs=pairs), arguments.threads)
        for _ in range(arguments.rounds):
            config = data.parent / "benchmark.yaml"
            seconds, resident, own = start(config, data, folder / "run", arguments.threads)
            rows.append([f"{pairs:,}", f"{seconds:.1f}", f"{resident / MIB:,.0f}", f"{own / MIB:,.0f}"])
        shutil.rmtree(data.parent)
    print(markdown(["pairs", "seconds to the first update", "peak resident MiB", "MiB without files"], rows))


def start(config: Path, data: Path, output: Path, threads: int) -> tuple[float, int, int]:
    """Start training, and kill it at the first update.

    Returns:
        Seconds, peak resident memory with mapped files, and memory without files, both in bytes.

    Raises:
        RunError: The command ended without an update.
    """
    shutil.rmtree(output, ignore_errors=True)
    overrides = ours.overriding(["train.log_every=1"])
    command = ours.nmt("train", "--config", config, "--data", data, "--output", output, *overrides)
    log, metrics = output.with_suffix(".log"), output / "metrics.jsonl"
    begin = time.perf_counter()
    with log.open("wb") as file:
        process = start_command(command, file, environment(threads))
        try:
            while not (metrics.is_file() and metrics.stat().st_size):
                if process.poll() is not None:
                    raise RunError(f"exit code {process.returncode} before the first update; log: {log}")
                time.sleep(INTERVAL)
            seconds = time.perf_counter() - begin
            memory = read_memory(Path(f"/proc/{process.pid}/status").read_text())
        finally:
            process.kill()
            process.wait()
    return seconds, *memory


def read_memory(status: str) -> tuple[int, int]:
    """Peak resident memory and memory without files, in bytes, from the text of /proc/PID/status."""
    values = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    peak, own = (int(values[name].split()[0]) * 1024 for name in ("VmHWM", "RssAnon"))
    return peak, own
