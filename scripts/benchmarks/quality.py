"""Time to quality: seconds of training and test BLEU, of this project and of OpenNMT-py."""

import argparse
import shutil
import statistics
import sys
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


Quality = tuple[str, float, float, float, float, str]
"""One trained model: system and seed; seconds of training, validation included; seconds of translating the test split
with beam 5; peak resident memory of training, in bytes; BLEU of the test split; sacreBLEU's signature."""


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
    bar = tqdm(arguments.seeds, desc="nmt", unit=" seeds", disable=None)
    found = [train_ours(config, seed, workload, output, arguments) for seed in bar]
    rows = list(found)
    if len(found) > 1:
        training, decoding, peak, bleu = zip(*(quality[1:5] for quality in found), strict=True)
        deviation, mean = f"standard deviation {statistics.stdev(bleu):.2f}", statistics.mean
        rows.append(("nmt, mean", mean(training), mean(decoding), mean(peak), mean(bleu), deviation))
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
    return f"nmt, seed {seed}", training.seconds, decoding.seconds, training.peak, *scores


def train_opennmt(python: Path, workload: Path, output: Path, threads: int) -> Quality:
    """OpenNMT-py's standard model with additive attention and input feeding, for 5 epochs."""
    folder = empty_folder(output / "opennmt")
    system = next(system for system in list_systems() if system.name == PEER_ROW)
    training = decode.train(system, python, workload, folder, threads)
    choice = decode.Decoding(system, "float32", 5)
    _, decoding, translations = decode.translate(choice, python, workload, folder, threads)
    name, scores = f"OpenNMT-py, {system.description}", decode.score(translations, workload)
    return name, training.seconds, decoding.seconds, training.peak, *scores


def cells(quality: Quality) -> list[str]:
    """A row of the table."""
    name, training, decoding, peak, bleu, signature = quality
    return [name, f"{training:.0f}", f"{decoding:.1f}", f"{peak / MIB:,.0f}", f"{bleu:.2f}", signature]
