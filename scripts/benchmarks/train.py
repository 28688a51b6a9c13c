"""Training speed and memory of this project compared with JoeyNMT, OpenNMT-py and Marian."""

import argparse
import re
import shutil
import statistics
import sys
from collections.abc import Callable, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import TypeVar

from tqdm import tqdm

from benchmarks import joeynmt, marian, opennmt, ours
from benchmarks.arguments import Commands, add_parser, updates
from benchmarks.measuring import MIB, Outcome, RunError, environment, launch, run, steady
from benchmarks.systems import PEERS, System, list_systems
from benchmarks.tables import counts, markdown, ratio
from benchmarks.workload import check_workload, target_tokens
from nmt.system.errors import ConfigError

PRODUCTS = {"default": "default", "fast": "medium"}
"""The launcher's PRECISION argument for each precision."""
PRECISION_NAMES = {"highest": "fp32", "medium": "fp32, fast products"}
"""Names of the float32 matmul precisions."""
Row = TypeVar("Row", bound=System)
Results = dict[str, list[Outcome]]


def add_command(commands: Commands) -> None:
    """Describe the arguments."""
    about, peers = "training speed and memory compared with other toolkits", ("joeynmt", "opennmt", "marian")
    output = "runs/benchmark"
    parser = add_parser(commands, benchmark_training, "train", about, output, rounds=3, workload=True, peers=peers)
    parser.add_argument("--updates", type=updates, default=150, help="updates per run")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="rows to run, or patterns such as 'nmt-*'")


def benchmark_training(arguments: argparse.Namespace) -> None:
    """Run every row once per round, one at a time, and print a table of the medians.

    Raises:
        SystemExit: A row failed; the others are printed.
    """
    workload: Path = arguments.workload.resolve()
    check_workload(workload)
    output: Path = arguments.output.resolve()
    config, data = ours.write_config(output), output / "data"
    interpreters = {"JoeyNMT": arguments.joeynmt, "OpenNMT-py": arguments.opennmt, "Marian": arguments.marian}
    known = [row for row in list_systems() if row.toolkit == "nmt" or interpreters[row.toolkit] is not None]
    rows = choose(known, arguments.only)
    if any(row.toolkit == "nmt" for row in rows):
        ours.prepare_workload(config, workload, data, arguments.threads)

    def run_row(row: System, folder: Path) -> Outcome:
        if row.toolkit == "nmt":
            return run_ours(row, config, data, arguments, folder)
        return run_peer(row, interpreters[row.toolkit], workload, arguments, folder)

    results, failed = run_rounds(rows, run_row, output, arguments.rounds)
    print(standard_table([row for row in rows if row.name in results], results, target_tokens(workload)))
    if failed:
        sys.exit(f"missing from the table, as they failed: {', '.join(failed)}")


def choose(rows: Sequence[Row], patterns: Sequence[str] | None) -> list[Row]:
    """Rows whose names match one of the patterns; all without patterns.

    Raises:
        ConfigError: A pattern matches no row.
    """
    for pattern in patterns or ():
        if not any(fnmatch(row.name, pattern) for row in rows):
            raise ConfigError(f"--only {pattern}: matches none of the rows {', '.join(row.name for row in rows)}")
    return [row for row in rows if patterns is None or any(fnmatch(row.name, pattern) for pattern in patterns)]


def run_rounds(
    rows: Sequence[Row], run_row: Callable[[Row, Path], Outcome], output: Path, rounds: int
) -> tuple[Results, list[str]]:
    """Run all rows, round by round; a row that fails is reported in a line and not run again.

    Returns:
        The outcomes of each row, and the names of the rows that failed.
    """
    results: Results = {}
    failed: list[str] = []
    runs = [(number, row) for number in range(1, rounds + 1) for row in rows]
    with tqdm(runs, unit=" runs", disable=None) as bar:
        for number, row in bar:
            bar.set_postfix_str(f"round {number} of {rounds}, {row.name}")
            if row.name not in failed:
                try:
                    outcome = run_row(row, output / f"round{number}" / row.name)
                    results.setdefault(row.name, []).append(outcome)
                except RunError as error:
                    failed.append(row.name)
                    results.pop(row.name, None)
                    tqdm.write(f"{row.name}: {error}", file=sys.stderr)
    return results, failed


def empty_folder(folder: Path) -> Path:
    """Create an empty folder, deleting an existing one."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def run_ours(system: System, config: Path, data: Path, arguments: argparse.Namespace, folder: Path) -> Outcome:
    """Train with this project."""
    overrides = list(ours.OVERRIDES[system.kind])
    if system.cell == "gru":
        overrides += ["model.encoder.cell=gru", "model.decoder.cell=gru"]
    if system.precision == "bf16":
        overrides.append("train.precision=bfloat16")
    return ours.train(config, data, folder, arguments.updates, arguments.threads, overrides)


def run_peer(system: System, python: Path, workload: Path, arguments: argparse.Namespace, folder: Path) -> Outcome:
    """Train with another toolkit."""
    empty_folder(folder)
    log, threads = folder / "log.txt", arguments.threads
    if system.toolkit == "Marian":
        options = marian.arguments(workload, folder, arguments.updates, threads)
        finished = run([str(python.absolute()), "-m", "pymarian", *options], log, environment(threads))
        return Outcome(steady(marian.read_speeds(finished.text), 2), "fp32", finished.peak)
    driver = joeynmt if system.toolkit == "JoeyNMT" else opennmt
    options = driver.arguments(system, workload, folder, arguments.updates)
    wanted = PRODUCTS[system.precision]
    finished = launch(python, driver.MODULE, options, log, threads, wanted)
    found = read_ending(finished.text, log)
    if found != (wanted.replace("default", "highest"), threads):
        raise RunError(f"ended with {found[0]} products on {found[1]} threads, not as requested; log: {log}")
    return Outcome(steady(driver.read_speeds(finished.text)), PRECISION_NAMES[found[0]], finished.peak)


def read_ending(log: str, path: Path) -> tuple[str, int]:
    """Precision of fp32 products and number of threads of a launched process when it ended.

    Raises:
        RunError: They are not in the log.
    """
    found = re.findall(r"^ended with products (\w+), threads (\d+)$", log, re.MULTILINE)
    if not found:
        raise RunError(f"its log has no precision and threads; log: {path}")
    return found[-1][0], int(found[-1][1])


def overall(outcomes: Sequence[Outcome]) -> float:
    """Median target tokens per second over the rounds."""
    return statistics.median(outcome.speed for outcome in outcomes)


def standard_table(systems: Sequence[System], results: Results, epoch_tokens: int) -> str:
    """The standard model in every toolkit; ours with the ratio to the rows of the same kind and cell."""
    speeds: dict[tuple[str, ...], float] = {
        (system.toolkit, system.kind, system.cell, system.precision): overall(results[system.name])
        for system in systems
    }
    header = ["system", "attention, feeding", "cell", "precision", "target tokens/s", "rounds", "s/epoch", "peak MiB"]
    header += [f"× {toolkit}, as shipped / fast products" for toolkit in PEERS]
    rows = []
    for system in systems:
        outcomes = results[system.name]
        speed, peak = overall(outcomes), statistics.median(outcome.peak for outcome in outcomes)
        row = [system.toolkit, system.description, system.cell.upper(), outcomes[0].precision, f"{speed:,.0f}"]
        row += [counts(outcome.speed for outcome in outcomes), f"{epoch_tokens / speed:.1f}", f"{peak / MIB:,.0f}"]
        for toolkit in PEERS:
            others = [speeds.get((toolkit, system.kind, system.cell, precision)) for precision in ("default", "fast")]
            compares = system.toolkit == "nmt" and others != [None, None]
            row.append(ratio(speed, others) if compares else "")
        rows.append(row)
    return markdown(header, rows) + "\n"
