"""Training speed and memory of this project compared with JoeyNMT, OpenNMT-py, Marian and loops of tutorials."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from functools import partial
from pathlib import Path

from tqdm import tqdm

from benchmarks import joeynmt, marian, opennmt, ours, tutorial_loops
from benchmarks.arguments import Commands, positive, updates
from benchmarks.measuring import MIB, RunError, environment, run
from benchmarks.systems import UPDATES_PER_REPORT, System, list_systems
from benchmarks.tables import counts, markdown, ratio
from benchmarks.workload import check_workload, target_tokens
from nmt.config import load_config
from nmt.corpus.dataset import open_data
from nmt.system.errors import ConfigError

LAUNCHER = Path(__file__).with_name("launcher.py")
PRODUCTS = {"default": "default", "fast": "medium"}
"""The launcher's PRECISION argument for each precision."""
PRECISION_NAMES = {"highest": "fp32", "medium": "fp32, fast products"}
"""Names of the float32 matmul precisions."""
WARM_UP = {"Marian": 2}
"""Reports at the start of a run that are ignored; 3 for all others."""
TUTORIALS = {"tutorial_luong_concat": "luong", "tutorial_bahdanau": "bahdanau"}
"""Configs with a tutorial's set-up, and the plain loop for each."""


@dataclass(frozen=True)
class Outcome:
    """One run.

    Attributes:
        reports: Target tokens per second, without padding, of each report after the warm-up.
        precision: The precision actually used.
        seconds: Wall-clock time of the whole process.
        peak: Peak resident memory, in bytes.
    """

    reports: list[float]
    precision: str
    seconds: float
    peak: int

    @property
    def speed(self) -> float:
        """Median target tokens per second."""
        return statistics.median(self.reports)


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
Results = dict[str, list[Outcome]]


def add_command(commands: Commands) -> None:
    """Describe the arguments."""
    parser = commands.add_parser("train", help="training speed and memory compared with other toolkits")
    parser.add_argument("--workload", type=Path, required=True, metavar="DIR", help="output of the workload command")
    add_peers(parser)
    parser.add_argument("--corpus", type=Path, help="English-German pairs: adds the rows of the tutorials' set-ups")
    parser.add_argument("--rounds", type=positive, default=3, help="runs per row")
    parser.add_argument("--updates", type=updates, default=150, help="updates per run")
    parser.add_argument("--threads", type=positive, default=2, help="CPU threads of each system")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="rows to run, or patterns such as 'nmt-*'")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures of every run here, one per line")
    parser.add_argument("--output", type=Path, default=Path("runs/benchmark"), help="folder for logs and models")
    parser.set_defaults(run=benchmark_training)


def add_peers(parser: argparse.ArgumentParser) -> None:
    """Add options for the other toolkits' interpreters."""
    for option, toolkit in (("--joeynmt", "JoeyNMT"), ("--opennmt", "OpenNMT-py"), ("--marian", "pymarian")):
        parser.add_argument(option, type=Path, metavar="PYTHON", help=f"a Python interpreter with {toolkit}")


def benchmark_training(arguments: argparse.Namespace) -> None:
    """Run every row once per round, one at a time, and print a table of the medians.

    Raises:
        SystemExit: A row failed; the others are printed.
    """
    workload: Path = arguments.workload.resolve()
    check_workload(workload)
    output: Path = arguments.output.resolve()
    interpreters = {"JoeyNMT": arguments.joeynmt, "OpenNMT-py": arguments.opennmt, "Marian": arguments.marian}
    rows: list[Row] = [
        system for system in list_systems() if system.toolkit == "nmt" or interpreters[system.toolkit] is not None
    ]
    if arguments.corpus:
        rows += tutorial_rows()
    rows = choose(rows, arguments.only)
    config = ours.write_config(output)
    runs: dict[str, Callable[[Path], Outcome]] = {}
    if any(isinstance(row, System) and row.toolkit == "nmt" for row in rows):
        ours.prepare_workload(config, workload, output / "data", arguments.threads)
    if any(isinstance(row, TutorialRow) for row in rows):
        prepare_tutorial(arguments.corpus.resolve(), output / "tutorial-data", arguments.threads)
    for row in rows:
        if isinstance(row, TutorialRow):
            runs[row.name] = partial(run_tutorial, row, output / "tutorial-data", arguments)
        elif row.toolkit == "nmt":
            runs[row.name] = partial(run_ours, row, config, output / "data", arguments)
        else:
            runs[row.name] = partial(run_peer, row, interpreters[row.toolkit], workload, arguments)
    results, failed = run_rounds(rows, runs, output, arguments)
    standard = [row for row in rows if isinstance(row, System) and row.name in results]
    if standard:
        print(standard_table(standard, results, target_tokens(workload)))
    tutorials = [row for row in rows if isinstance(row, TutorialRow) and row.name in results]
    if tutorials:
        print(tutorial_table(tutorials, results, tutorial_tokens(output / "tutorial-data")))
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
    rows: Sequence[Row], runs: Mapping[str, Callable[[Path], Outcome]], output: Path, arguments: argparse.Namespace
) -> tuple[Results, list[str]]:
    """Run all rows, round by round; a row that fails is reported in a line and not run again.

    Returns:
        The outcomes of each row, and the names of the rows that failed.
    """
    results: Results = {}
    failed: list[str] = []
    if arguments.json:
        arguments.json.write_text("")
    with tqdm(total=arguments.rounds * len(rows), unit=" runs", disable=None) as bar:
        for number in range(1, arguments.rounds + 1):
            for row in rows:
                bar.set_postfix_str(f"round {number} of {arguments.rounds}, {row.name}")
                if row.name not in failed:
                    try:
                        outcome = runs[row.name](output / f"round{number}" / row.name)
                    except RunError as error:
                        failed.append(row.name)
                        results.pop(row.name, None)
                        tqdm.write(f"{row.name}: {error}", file=sys.stderr)
                    else:
                        results.setdefault(row.name, []).append(outcome)
                        if arguments.json:
                            record(arguments.json, row, number, outcome, arguments)
                bar.update()
    return results, failed


def record(path: Path, row: Row, number: int, outcome: Outcome, arguments: argparse.Namespace) -> None:
    """Append a line with everything about one run."""
    values = asdict(row) | {"round": number, "threads": arguments.threads, "updates": arguments.updates}
    values |= asdict(outcome) | {"tokens_per_second": outcome.speed}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(values) + "\n")


def steady(reports: Sequence[float], warm_up: int) -> list[float]:
    """The reports after the warm-up; the last one if there are no others.

    Raises:
        RunError: There is no report.
    """
    if not reports:
        raise RunError("its log has no report of its speed")
    return list(reports[min(warm_up, len(reports) - 1) :])


def empty_folder(folder: Path) -> Path:
    """Create an empty folder, deleting an existing one."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def run_ours(system: System, config: Path, data: Path, arguments: argparse.Namespace, folder: Path) -> Outcome:
    """Train with this project."""
    overrides = [*ours.OVERRIDES[system.kind], f"model.encoder.cell={system.cell}", f"model.decoder.cell={system.cell}"]
    if system.precision == "bf16":
        overrides.append("train.precision=bfloat16")
    return outcome_of(ours.train(config, data, folder, arguments.updates, arguments.threads, overrides))


def outcome_of(speed: ours.Speed) -> Outcome:
    """The outcome of a run of this project."""
    return Outcome(steady(speed.reports, 3), speed.precision, speed.finished.seconds, speed.finished.peak)


def run_peer(system: System, python: Path, workload: Path, arguments: argparse.Namespace, folder: Path) -> Outcome:
    """Train with another toolkit."""
    empty_folder(folder)
    variables, log = environment(arguments.threads), folder / "log.txt"
    # Not resolved: an interpreter finds the packages of its virtual environment by its path.
    program = str(python.absolute())
    warm_up = WARM_UP.get(system.toolkit, 3)
    if system.toolkit == "Marian":
        command = [program, "-m", "pymarian"]
        command += marian.arguments(workload, folder, arguments.updates, arguments.threads)
        finished = run(command, log, variables)
        return Outcome(steady(marian.read_speeds(finished.text), warm_up), "fp32", finished.seconds, finished.peak)
    driver = joeynmt if system.toolkit == "JoeyNMT" else opennmt
    wanted = PRODUCTS[system.precision]
    command = [program, str(LAUNCHER), wanted, driver.MODULE]
    command += driver.arguments(system, workload, folder, arguments.updates)
    finished = run(command, log, variables)
    found = read_ending(finished.text, log)
    if found != (wanted.replace("default", "highest"), arguments.threads):
        raise RunError(f"ended with {found[0]} products on {found[1]} threads, not as requested; log: {log}")
    speeds = steady(driver.read_speeds(finished.text), warm_up)
    return Outcome(speeds, PRECISION_NAMES[found[0]], finished.seconds, finished.peak)


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
    command = ours.nmt("preprocess", "--config", next(iter(TUTORIALS)), "--source", corpus, "--output", output)
    run([*command, "--overwrite"], output.with_suffix(".log"), environment(threads))


def run_tutorial(row: TutorialRow, data: Path, arguments: argparse.Namespace, folder: Path) -> Outcome:
    """Train in a tutorial's set-up, with its loop or with this project.

    A loop with one sentence per update gets as many updates as this project's updates with batch 8 have sentences.
    """
    if not row.loop:
        overrides = [f"train.batch.size={row.batch_size}"]
        return outcome_of(ours.train(row.config, data, folder, arguments.updates, arguments.threads, overrides))
    empty_folder(folder)
    steps = 8 if row.batch_size == 1 else 1
    command = [sys.executable, "-m", "benchmarks.tutorial_loops", TUTORIALS[row.config], "--data", str(data)]
    command += ["--updates", str(steps * arguments.updates), "--report-every", str(steps * UPDATES_PER_REPORT)]
    variables = environment(arguments.threads) | {"PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    finished = run(command, folder / "log.txt", variables)
    speeds = steady(tutorial_loops.read_speeds(finished.text), 3)
    return Outcome(speeds, "fp32", finished.seconds, finished.peak)


def tutorial_tokens(data: Path) -> int:
    """Target tokens per epoch, including EOS."""
    lengths = open_data(data).train.tgt.lengths
    return int(lengths.sum()) + len(lengths)


def overall(outcomes: Sequence[Outcome]) -> float:
    """Median target tokens per second over the rounds."""
    return statistics.median(outcome.speed for outcome in outcomes)


def figures(outcomes: Sequence[Outcome], epoch_tokens: int) -> list[str]:
    """The common cells of the tables: precision, speed, its rounds, time per epoch, memory."""
    speed = overall(outcomes)
    return [
        outcomes[0].precision,
        f"{speed:,.0f}",
        counts(outcome.speed for outcome in outcomes),
        f"{epoch_tokens / speed:.1f}",
        f"{statistics.median(outcome.peak for outcome in outcomes) / MIB:,.0f}",
    ]


def standard_table(systems: Sequence[System], results: Results, epoch_tokens: int) -> str:
    """The standard model in every toolkit; ours with the ratio to the rows of the same kind and cell."""
    speeds: dict[tuple[str, str, str, str], float] = {
        (system.toolkit, system.kind, system.cell, system.precision): overall(results[system.name])
        for system in systems
    }

    def compared(system: System, toolkit: str) -> str:
        others = [speeds.get((toolkit, system.kind, system.cell, precision)) for precision in ("default", "fast")]
        if system.toolkit != "nmt" or others == [None, None]:
            return ""
        return ratio(overall(results[system.name]), others)

    header = ["system", "attention, feeding", "cell", "precision", "target tokens/s", "rounds", "s/epoch", "peak MiB"]
    header += [f"× {toolkit}, as shipped / fast products" for toolkit in ("OpenNMT-py", "JoeyNMT")]
    rows = [
        [
            system.toolkit,
            system.description,
            system.cell.upper(),
            *figures(results[system.name], epoch_tokens),
            compared(system, "OpenNMT-py"),
            compared(system, "JoeyNMT"),
        ]
        for system in systems
    ]
    return markdown(header, rows) + "\n"


def tutorial_table(rows: Sequence[TutorialRow], results: Results, epoch_tokens: int) -> str:
    """The tutorials' set-ups; ours with the ratio to the plain loop."""
    loops = {row.config: overall(results[row.name]) for row in rows if row.loop}
    header = [
        "set-up",
        "system",
        "batch",
        "precision",
        "target tokens/s",
        "rounds",
        "s/epoch",
        "peak MiB",
        "× the loop",
    ]
    cells = [
        [
            row.config,
            "plain loop" if row.loop else "nmt",
            str(row.batch_size),
            *figures(results[row.name], epoch_tokens),
            "" if row.loop or row.config not in loops else ratio(overall(results[row.name]), [loops[row.config]]),
        ]
        for row in rows
    ]
    return markdown(header, cells) + "\n"
