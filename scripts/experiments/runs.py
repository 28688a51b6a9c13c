"""Train and score the cells of an experiment with the real commands."""

from __future__ import annotations

import argparse
import datetime
import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from benchmarks import ours
from benchmarks.arguments import Commands, positive
from benchmarks.measuring import MIB, environment, run

import nmt
from experiments.ledger import Result, path_of, write_result
from experiments.plan import Cell, Experiment, read_experiment
from nmt.config import load_config
from nmt.files import read_json
from nmt.training.device import use_fast_products

CORPORA = "NMT_BENCH_DATA"
ROWS, INNER, COLUMNS = 1024, 512, 4096  # of the product whose rate is measured


def add_command(commands: Commands) -> None:
    """Describe the arguments."""
    parser = commands.add_parser("run", help="train and score the cells that have no result yet")
    parser.add_argument("experiment", type=Path, metavar="FILE", help="a TOML file of this folder")
    parser.add_argument("--cell", action="append", metavar="NAME", help="only these cells")
    parser.add_argument("--seed", type=int, action="append", help="only these seeds")
    parser.add_argument("--threads", type=positive, default=2, help="CPU threads")
    parser.add_argument("--corpora", type=Path, help=f"folder of the corpora [default: the variable {CORPORA}]")
    parser.add_argument("--output", type=Path, default=Path("runs/experiments"), help="folder for data and runs")
    parser.set_defaults(run=run_experiment)


def run_experiment(arguments: argparse.Namespace) -> None:
    """Train what has no result yet, one cell after the other; stops at the first failure."""
    experiment = read_experiment(arguments.experiment)
    for cell in experiment.cells:
        wanted = (not arguments.cell or cell.name in arguments.cell) and (
            not arguments.seed or cell.seed in arguments.seed
        )
        if wanted and not path_of(experiment.name, cell.key).exists():
            result = train_cell(experiment, cell, arguments)
            print(f"{write_result(result, cell.key)}: valid BLEU {result.bleu('valid'):.2f}, {result.minutes:.1f} min")


def train_cell(experiment: Experiment, cell: Cell, arguments: argparse.Namespace) -> Result:
    """Preprocess if necessary, train or resume, and score.

    Raises:
        RunError: A command failed.
    """
    folder = arguments.output / experiment.name
    folder.mkdir(parents=True, exist_ok=True)
    data = prepare_data(experiment, cell, folder, arguments)
    output, logs = folder / cell.key, folder / f"{cell.key}.log"
    variables, overrides = environment(arguments.threads), ours.overriding([*cell.overrides, f"train.seed={cell.seed}"])
    chosen = ["--config", experiment.config, "--data", data, "--output", output, *overrides]
    chosen += ["--set", f"train.threads={arguments.threads}"]
    before = product_rate(arguments.threads)
    finished = run(ours.nmt("train", *chosen, "--resume"), logs, variables)
    after = product_rate(arguments.threads)
    scores = {}
    for split in ("valid", "test") if cell.test else ("valid",):
        path = folder / f"{cell.key}.{split}.json"
        scoring = ours.nmt("evaluate", "--model", output, "--split", split, "--json", path, "--no-short-inputs")
        run([*scoring, "--hypotheses", path.with_suffix(".txt")], logs.with_suffix(f".{split}.log"), variables)
        found = read_json(path)
        scores[split] = {
            metric: {"value": round(score["value"], 2), "signature": score["signature"]}
            for metric, score in found["scores"].items()
        }
    state = read_json(output / "run.json")
    config = load_config(str(output / "config.yaml"))
    precision = config.train.precision
    return Result(
        experiment=experiment.name,
        cell=cell.name,
        seed=cell.seed,
        system=f"nmt {nmt.__version__}",
        config=experiment.config,
        settings=list(cell.overrides),
        finished=datetime.datetime.now(datetime.UTC).date().isoformat(),
        threads=arguments.threads,
        precision=precision,
        gflops=round((before[precision] + after[precision]) / 2),
        parameters=state["parameters"],
        epochs=round(state["updates"] / state["updates_per_epoch"], 2),
        updates=state["updates"],
        tokens=state["tokens"],
        minutes=round(state["training_seconds"] / 60, 1),
        total_minutes=round(state["total_seconds"] / 60, 1),
        peak_mib=round(finished.peak / MIB),
        beam_size=found["beam_size"],
        scores=scores,
    )


def prepare_data(experiment: Experiment, cell: Cell, folder: Path, arguments: argparse.Namespace) -> Path:
    """The data directory of a cell, which it shares with all cells with the same text and data settings."""
    identity = hashlib.sha256("\n".join(cell.data_overrides).encode()).hexdigest()[:8]
    data = folder / f"data-{identity}"
    if not (data / "data.json").exists():
        corpora = arguments.corpora or Path(os.environ.get(CORPORA, "../shared/data"))
        sources: Sequence[str] = [part for name in experiment.source for part in ("--source", str(corpora / name))]
        command = ours.nmt("preprocess", "--config", experiment.config, *sources, "--output", data, "--overwrite")
        run([*command, *ours.overriding(cell.data_overrides)], data.with_suffix(".log"), environment(arguments.threads))
    return data


def product_rate(threads: int) -> dict[str, float]:
    """GFLOP/s of a matrix product of typical size, by precision; the best of several."""
    torch.set_num_threads(threads)
    use_fast_products()
    rates = {}
    for dtype in (torch.float32, torch.bfloat16):
        left, right = torch.ones(ROWS, INNER, dtype=dtype), torch.ones(INNER, COLUMNS, dtype=dtype)
        seconds = []
        for _ in range(20):
            begin = time.perf_counter()
            left @ right
            seconds.append(time.perf_counter() - begin)
        rates[str(dtype).removeprefix("torch.")] = 2 * ROWS * INNER * COLUMNS / min(seconds) / 1e9
    return rates
