"""Training speed and memory of this project compared with JoeyNMT, OpenNMT-py, Marian and loops of tutorials."""

import argparse
import re
import shutil
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import TypeVar

from tqdm import tqdm

from benchmarks import joeynmt, marian, opennmt, ours, tutorial_loops
from benchmarks.arguments import Commands, add_parser, updates
from benchmarks.measuring import MIB, Outcome, RunError, environment, launch, run, steady
from benchmarks.systems import UPDATES_PER_REPORT, System, list_systems
from benchmarks.tables import counts, markdown, ratio
from benchmarks.workload import check_workload, target_tokens
from nmt.config import load_config
from nmt.corpus.dataset import open_data
from nmt.system.errors import ConfigError

PRODUCTS = {"default": "default", "fast": "medium"}
"""The launcher's PRECISION argument for each precision."""
PRECISION_NAMES = {"highest": "fp32", "medium": "fp32, fast products"}
"""Names of the float32 matmul precisions."""
TUTORIALS = {"tutorial_luong_concat": "luong", "tutorial_course": "bahdanau"}
"""Configs with a tutorial's set-up, and the plain loop for each."""


@dataclass(frozen=True)
class TutorialRow:
    """One row of a tutorial's set-up.

    Attributes:
        name: Name for `--only`.
        config: The config with the tutorial's set-up.
        loop: Whether this is the tutorial's plain loop.
        batch_size: Sentences per batch.
    """

    name: str
    config: str
    loop: bool
    batch_size: int


Row = System | TutorialRow
AnyRow = TypeVar("AnyRow", bound=Row)
Results = dict[str, list[Outcome]]


def add_command(commands: Commands) -> None:
    """Describe the arguments."""
    about, peers = "training speed and memory compared with other toolkits", ("joeynmt", "opennmt", "marian")
    output = "runs/benchmark"
    parser = add_parser(commands, benchmark_training, "train", about, output, rounds=3, workload=True, peers=peers)
    parser.add_argument("--corpus", type=Path, help="English-German pairs: adds the rows of the tutorials' set-ups")
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
    config, data, tutorial_data = ours.write_config(output), output / "data", output / "tutorial-data"
    interpreters = {"JoeyNMT": arguments.joeynmt, "OpenNMT-py": arguments.opennmt, "Marian": arguments.marian}
    systems = [row for row in list_systems() if row.toolkit == "nmt" or interpreters[row.toolkit] is not None]
    rows = choose([*systems, *(tutorial_rows() if arguments.corpus else ())], arguments.only)
    standard = [row for row in rows if isinstance(row, System)]
    tutorials = [row for row in rows if isinstance(row, TutorialRow)]
    if any(row.toolkit == "nmt" for row in standard):
        ours.prepare_workload(config, workload, data, arguments.threads)
    if tutorials:
        prepare_tutorial(arguments.corpus.resolve(), tutorial_data, arguments.threads)

    def run_row(row: Row, folder: Path) -> Outcome:
        if isinstance(row, TutorialRow):
            return run_tutorial(row, tutorial_data, arguments, folder)
        if row.toolkit == "nmt":
            return run_ours(row, config, data, arguments, folder)
        return run_peer(row, interpreters[row.toolkit], workload, arguments, folder)

    results, failed = run_rounds(rows, run_row, output, arguments.rounds)
    standard = [row for row in standard if row.name in results]
    if standard:
        print(standard_table(standard, results, target_tokens(workload)))
    tutorials = [row for row in tutorials if row.name in results]
    if tutorials:
        print(tutorial_table(tutorials, results, tutorial_tokens(tutorial_data)))
    if failed:
        sys.exit(f"missing from the table, as they failed: {', '.join(failed)}")


def choose(rows: Sequence[AnyRow], patterns: Sequence[str] | None) -> list[AnyRow]:
    """Rows whose names match one of the patterns; all without patterns.

    Raises:
        ConfigError: A pattern matches no row.
    """
    for pattern in patterns or ():
        if not any(fnmatch(row.name, pattern) for row in rows):
            raise ConfigError(f"--only {pattern}: matches none of the rows {', '.join(row.name for row in rows)}")
    return [row for row in rows if patterns is None or any(fnmatch(row.name, pattern) for pattern in patterns)]


def run_rounds(
    rows: Sequence[AnyRow], run_row: Callable[[AnyRow, Path], Outcome], output: Path, rounds: int
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


def tutorial_rows() -> list[Row]:
    """For each tutorial: its loop, and this project with the config's batch size and with 64."""
    rows: list[Row] = []
    for config, loop in TUTORIALS.items():
        own = load_config(config).train.batch.size
        rows.append(TutorialRow(f"{config}-loop", config, True, tutorial_loops.BATCH_SIZES[loop]))
        rows += [TutorialRow(f"{config}-{size}", config, False, size) for size in sorted({own, 64})]
    return rows


def prepare_tutorial(corpus: Path, output: Path, threads: int) -> None:
    """Preprocess the data of both tutorials."""
    config = next(iter(TUTORIALS))
    command = ours.nmt("preprocess", "--config", config, "--source", corpus, "--output", output, "--overwrite")
    run(command, output.with_suffix(".log"), environment(threads))


def run_tutorial(row: TutorialRow, data: Path, arguments: argparse.Namespace, folder: Path) -> Outcome:
    """Train in a tutorial's set-up, with its loop or with this project.

    A loop with one sentence per update gets as many updates as this project's updates with batch 8 have sentences.
    """
    if not row.loop:
        overrides = [f"train.batch.size={row.batch_size}"]
        return ours.train(row.config, data, folder, arguments.updates, arguments.threads, overrides)
    empty_folder(folder)
    steps = 8 if row.batch_size == 1 else 1
    command = [sys.executable, "-m", "benchmarks.tutorial_loops", TUTORIALS[row.config], "--data", str(data)]
    command += ["--updates", str(steps * arguments.updates), "--report-every", str(steps * UPDATES_PER_REPORT)]
    variables = environment(arguments.threads) | {"PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    finished = run(command, folder / "log.txt", variables)
    return Outcome(steady(tutorial_loops.read_speeds(finished.text)), "fp32", finished.peak)


def tutorial_tokens(data: Path) -> int:
    """Target tokens per epoch, including EOS."""
    lengths = open_data(data).train.tgt.lengths
    return int(lengths.sum()) + len(lengths)


def overall(outcomes: Sequence[Outcome]) -> float:
    """Median target tokens per second over the rounds."""
    return statistics.median(outcome.speed for outcome in outcomes)


FIGURES = ("precision", "target tokens/s", "rounds", "s/epoch", "peak MiB")


def figures(outcomes: Sequence[Outcome], epoch_tokens: int) -> list[str]:
    """The common cells of the tables: precision, speed, its rounds, time per epoch, memory."""
    speed, peak = overall(outcomes), statistics.median(outcome.peak for outcome in outcomes)
    rounds = counts(outcome.speed for outcome in outcomes)
    return [outcomes[0].precision, f"{speed:,.0f}", rounds, f"{epoch_tokens / speed:.1f}", f"{peak / MIB:,.0f}"]


def standard_table(systems: Sequence[System], results: Results, epoch_tokens: int) -> str:
    """The standard model in every toolkit; ours with the ratio to the rows of the same kind and cell."""
    speeds: dict[tuple[str, ...], float] = {
        (system.toolkit, system.kind, system.cell, system.precision): overall(results[system.name])
        for system in systems
    }

    def compared(system: System, toolkit: str) -> str:
        others = [speeds.get((toolkit, system.kind, system.cell, precision)) for precision in ("default", "fast")]
        compares = system.toolkit == "nmt" and others != [None, None]
        return ratio(overall(results[system.name]), others) if compares else ""

    header = ["system", "attention, feeding", "cell", *FIGURES]
    header += [f"× {toolkit}, as shipped / fast products" for toolkit in ("OpenNMT-py", "JoeyNMT")]
    rows = [
        [
            *(system.toolkit, system.description, system.cell.upper()),
            *figures(results[system.name], epoch_tokens),
            *(compared(system, toolkit) for toolkit in ("OpenNMT-py", "JoeyNMT")),
        ]
        for system in systems
    ]
    return markdown(header, rows) + "\n"


def tutorial_table(rows: Sequence[TutorialRow], results: Results, epoch_tokens: int) -> str:
    """The tutorials' set-ups; ours with the ratio to the plain loop."""
    loops = {row.config: overall(results[row.name]) for row in rows if row.loop}
    cells = [
        [
            *(row.config, "plain loop" if row.loop else "nmt", str(row.batch_size)),
            *figures(results[row.name], epoch_tokens),
            "" if row.loop or row.config not in loops else ratio(overall(results[row.name]), [loops[row.config]]),
        ]
        for row in rows
    ]
    return markdown(["set-up", "system", "batch", *FIGURES, "× the loop"], cells) + "\n"
