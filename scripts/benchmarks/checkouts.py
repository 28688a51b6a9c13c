"""Training and decoding speed of two checkouts of this project, in alternating pairs."""

import argparse
import json
import math
import shutil
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from benchmarks import ours
from benchmarks.arguments import Commands, add_parser, positive, updates
from benchmarks.limit import mean_length
from benchmarks.measuring import environment, run, steady
from benchmarks.runtime import WORDS, random_lines
from benchmarks.tables import markdown
from benchmarks.workload import check_workload, read_lines, write_lines

ROOT = Path(__file__).resolve().parents[2]
MODELS = {
    "luong": "Luong, LSTM",
    "bahdanau": "Bahdanau, LSTM",
    "luong_feeding": "input feeding, LSTM",
    "transformer": "Transformer",
}
"""Descriptions of the models by their name in `ours.OVERRIDES`."""
WORKS = {"training": "target tokens/s", "decoding": "sentences/s"}
"""Units of speed."""
PRECISIONS = ["float32", "bfloat16"]
STUDENT = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}
"""97.5% quantiles of Student's t by the number of pairs, which is one more than the degrees of freedom."""


def add_command(commands: Commands) -> None:
    """Describe the arguments."""
    about, output = "training and decoding speed of two checkouts of this project", "runs/benchmark/checkouts"
    parser = add_parser(commands, benchmark_checkouts, "checkouts", about, output, threads=1, workload=True)
    parser.add_argument("--before", type=Path, required=True, metavar="DIR", help="the earlier checkout")
    parser.add_argument("--after", type=Path, default=ROOT, metavar="DIR", help="the later one; this one by default")
    parser.add_argument("--pairs", type=int, choices=STUDENT, default=5, help="measurements of each checkout")
    parser.add_argument("--only", choices=WORKS, help="measure training or decoding alone")
    parser.add_argument("--precision", choices=PRECISIONS, default="float32", help="format of products")
    parser.add_argument("--updates", type=updates, default=160, help="updates per training")
    parser.add_argument("--batch-size", type=positive, default=64, help="sentences translated at once")


def benchmark_checkouts(arguments: argparse.Namespace) -> None:
    """Measure both checkouts in turn, the other one first in each second pair, and print a table of the ratios.

    Raises:
        RunError: A run failed.
    """
    workload: Path = arguments.workload.resolve()
    check_workload(workload)
    output: Path = arguments.output.resolve()
    checkouts = [arguments.before.resolve(), arguments.after.resolve()]
    config = ours.write_config(output)
    data = output / "data"
    # The earlier checkout prepares the data, as later ones read its configs.
    ours.prepare_workload(config, workload, data, arguments.threads, surroundings(checkouts[0], arguments.threads))
    lines = output / "random.en"
    write_lines(lines, random_lines([len(line.split()) for line in read_lines(workload / "test.en")]))
    request = {"config": str(config), "lines": str(lines), "words": WORDS, "beam": 1}
    request |= {"length": round(mean_length(workload / "train.de")), "threads": arguments.threads}
    request |= {"batch_size": arguments.batch_size, "precision": arguments.precision}
    works = [arguments.only] if arguments.only else list(WORKS)
    speeds: dict[tuple[str, str], list[list[float]]] = {(model, work): [[], []] for model in MODELS for work in works}
    runs = [(pair, model, work) for pair in range(arguments.pairs) for model in MODELS for work in works]
    for pair, model, work in tqdm(runs, unit=" pairs", disable=None):
        for place in (0, 1) if pair % 2 == 0 else (1, 0):
            if work == "training":
                speed = _train(checkouts[place], model, config, data, output / "run", arguments)
            else:
                speed = _decode(checkouts[place], model, request, output / "decode.log")
            speeds[model, work][place].append(speed)
    print(table(speeds))


def _train(checkout: Path, model: str, config: Path, data: Path, output: Path, arguments: argparse.Namespace) -> float:
    """Median target tokens per second after the warm-up."""
    shutil.rmtree(output, ignore_errors=True)
    limits = [f"train.max_updates={arguments.updates}", "train.epochs=1000"]
    limits += [f"train.precision={arguments.precision}"]
    limits += [f"train.validation.every={arguments.updates}", "train.validation.metric=loss"]
    settings = ours.overriding([*limits, *ours.OVERRIDES[model]])
    command = ours.nmt("train", "--config", config, "--data", data, "--output", output, *settings)
    run(command, output.with_suffix(".log"), surroundings(checkout, arguments.threads))
    return statistics.median(steady(ours.read_speeds((output / "metrics.jsonl").read_text(encoding="utf-8"))))


def _decode(checkout: Path, model: str, request: dict[str, Any], log: Path) -> float:
    """Sentences per second of greedy search with random weights, in a process whose kernels are warm."""
    script = checkout / "scripts/benchmarks/random_nmt.py"
    command = [sys.executable, str(script), json.dumps(request | {"overrides": ours.OVERRIDES[model]})]
    finished = run(command, log, surroundings(checkout, request["threads"]))
    seconds: float = json.loads(finished.text.splitlines()[-1])["seconds"]
    return len(read_lines(Path(request["lines"]))) / seconds


def surroundings(checkout: Path, threads: int) -> dict[str, str]:
    """Environment variables of a process that imports a checkout, even if it is started in the folder of another."""
    return environment(threads) | {"PYTHONPATH": str(checkout), "PYTHONSAFEPATH": "1"}


def interval(before: Sequence[float], after: Sequence[float]) -> tuple[float, float, float]:
    """Geometric mean of the ratios of pairs, and its 95% interval by Student's t of their logarithms.

    Args:
        before: Speeds of the earlier checkout, at least two.
        after: Those of the later one, measured beside them.

    Returns:
        Mean, lower and upper limit.
    """
    logs = [math.log(new / old) for old, new in zip(before, after, strict=True)]
    mean = statistics.mean(logs)
    margin = STUDENT[len(logs)] * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), math.exp(mean - margin), math.exp(mean + margin)


def table(speeds: dict[tuple[str, str], list[list[float]]]) -> str:
    """Medians, ratios and their intervals as Markdown."""
    rows = []
    for (model, work), (before, after) in speeds.items():
        ratio, low, high = interval(before, after)
        medians = [f"{statistics.median(values):,.0f}" for values in (before, after)]
        rows.append([MODELS[model], f"{work}, {WORKS[work]}", *medians, f"{ratio:.3f}", f"{low:.3f} to {high:.3f}"])
    return markdown(["model", "speed", "before", "after", "after / before", "95% interval"], rows)
