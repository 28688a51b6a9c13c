"""Time to quality: seconds of training and test BLEU, of this project and of OpenNMT-py."""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
from dataclasses import astuple, dataclass
from pathlib import Path

from tqdm import tqdm

from benchmarks import decode, ours
from benchmarks.arguments import Commands, add_parser
from benchmarks.measuring import MIB, RunError, environment, run
from benchmarks.systems import list_systems
from benchmarks.tables import markdown
from benchmarks.train import empty_folder
from benchmarks.workload import check_workload

PEER_ROW = "opennmt-py-bahdanau-lstm"


@dataclass(frozen=True)
class Quality:
    """One trained model.

    Attributes:
        name: System and seed.
        training: Seconds of the training command, including validation.
        decoding: Seconds of the command that translates the test split with beam 5.
        peak: Peak resident memory of training, in bytes.
        bleu: BLEU of the test split.
        signature: sacreBLEU's signature.
    """

    name: str
    training: float
    decoding: float
    peak: float
    bleu: float
    signature: str


def add_command(commands: Commands) -> None:
    """Describe the arguments."""
    about, output = "seconds of training and test BLEU, compared with OpenNMT-py", "runs/benchmark/quality"
    parser = add_parser(commands, benchmark_quality, "quality", about, output, workload=True, peers=["opennmt"])
    parser.add_argument("--config", metavar="FILE|NAME", help="this project's config [default: the standard model]")
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="seeds of this project's runs")


def benchmark_quality(arguments: argparse.Namespace) -> None:
    """Train with every seed, translate the test split, score it, and print a table with means.

    Raises:
        SystemExit: OpenNMT-py failed; this project's rows are printed.
    """
    workload: Path = arguments.workload.resolve()
    check_workload(workload)
    output: Path = arguments.output.resolve()
    config = arguments.config or ours.write_config(output)
    ours.prepare_workload(config, workload, output / "data", arguments.threads)
    found = []
    for seed in tqdm(arguments.seeds, desc="nmt", unit=" seeds", disable=None):
        found.append(train_ours(config, seed, workload, output, arguments))
    rows = list(found)
    if len(found) > 1:
        training, decoding, peak, bleu = map(statistics.mean, zip(*(astuple(q)[1:5] for q in found), strict=True))
        deviation = f"standard deviation {statistics.stdev(quality.bleu for quality in found):.2f}"
        rows.append(Quality("nmt, mean", training, decoding, peak, bleu, deviation))
    failure = ""
    if arguments.opennmt:
        try:
            rows.append(train_opennmt(arguments.opennmt, workload, output, arguments.threads))
        except RunError as error:
            failure = f"{PEER_ROW}: {error}"
    header = ["system", "training, s", "translating, s", "peak MiB", "test BLEU", "signature"]
    print(markdown(header, map(cells, rows)))
    if failure:
        sys.exit(failure)


def train_ours(config: str | Path, seed: int, workload: Path, output: Path, arguments: argparse.Namespace) -> Quality:
    """Train and evaluate this project with its real commands."""
    folder = output / f"nmt-{seed}"
    shutil.rmtree(folder, ignore_errors=True)
    variables = environment(arguments.threads)
    overrides = ours.overriding([*arguments.overrides, f"train.seed={seed}"])
    command = ours.nmt("train", "--config", config, "--data", output / "data", "--output", folder, *overrides)
    training = run(command, output / f"nmt-{seed}.log", variables)
    translations = folder / "test.translations"
    command = ours.nmt("translate", "--model", folder, "--input", workload / "test.en", "--output", translations)
    decoding = run([*command, "--beam-size", "5"], output / f"nmt-{seed}.translate.log", variables)
    scores = decode.score(translations, workload)
    return Quality(f"nmt, seed {seed}", training.seconds, decoding.seconds, training.peak, *scores)


def train_opennmt(python: Path, workload: Path, output: Path, threads: int) -> Quality:
    """OpenNMT-py's standard model with additive attention and input feeding, for 5 epochs."""
    folder = empty_folder(output / "opennmt")
    system = next(system for system in list_systems() if system.name == PEER_ROW)
    training = decode.train(system, python, workload, folder, threads)
    choice = decode.Decoding(system, "float32", 5)
    _, decoding, translations = decode.translate(choice, python, workload, folder, threads)
    name, scores = f"OpenNMT-py, {system.description}", decode.score(translations, workload)
    return Quality(name, training.seconds, decoding.seconds, training.peak, *scores)


def cells(quality: Quality) -> list[str]:
    """A row of the table."""
    return [
        quality.name,
        f"{quality.training:.0f}",
        f"{quality.decoding:.1f}",
        f"{quality.peak / MIB:,.0f}",
        f"{quality.bleu:.2f}",
        quality.signature,
    ]
