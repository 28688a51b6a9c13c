"""Time to quality: seconds of training and test BLEU, of this project and of OpenNMT-py."""

from __future__ import annotations

import argparse
import math
import shutil
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from benchmarks import opennmt, ours
from benchmarks.arguments import Commands, positive
from benchmarks.measuring import MIB, RunError, environment, run
from benchmarks.systems import list_systems
from benchmarks.tables import markdown
from benchmarks.train import LAUNCHER, empty_folder
from benchmarks.workload import check_workload, read_lines
from nmt.corpus.splitting import Example
from nmt.evaluation.metrics import ScoringRules, score_corpus

PEER_ROW = "opennmt-py-bahdanau-lstm"
PEER_EPOCHS = 5
BATCH = 64


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
    peak: int
    bleu: float
    signature: str


def add_command(commands: Commands) -> None:
    """Describe the arguments."""
    parser = commands.add_parser("quality", help="seconds of training and test BLEU, compared with OpenNMT-py")
    parser.add_argument("--workload", type=Path, required=True, metavar="DIR", help="output of the workload command")
    parser.add_argument("--config", metavar="FILE|NAME", help="this project's config [default: the standard model]")
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="seeds of this project's runs")
    parser.add_argument("--opennmt", type=Path, metavar="PYTHON", help="a Python interpreter with OpenNMT-py")
    parser.add_argument("--threads", type=positive, default=2, help="CPU threads of each system")
    parser.add_argument(
        "--output", type=Path, default=Path("runs/benchmark/quality"), help="folder for logs and models"
    )
    parser.set_defaults(run=benchmark_quality)


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
    rows = [cells(quality) for quality in found]
    if len(found) > 1:
        means = [
            statistics.mean(values) for values in zip(*((q.training, q.decoding, q.bleu) for q in found), strict=True)
        ]
        spread = statistics.stdev(quality.bleu for quality in found)
        peak = statistics.mean(quality.peak for quality in found)
        mean = Quality("nmt, mean", means[0], means[1], round(peak), means[2], f"standard deviation {spread:.2f}")
        rows.append(cells(mean))
    failure = ""
    if arguments.opennmt:
        try:
            rows.append(cells(train_opennmt(arguments.opennmt, workload, output, arguments.threads)))
        except RunError as error:
            failure = f"{PEER_ROW}: {error}"
    header = ["system", "training, s", "translating, s", "peak MiB", "test BLEU", "signature"]
    print(markdown(header, rows))
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
    return Quality(
        f"nmt, seed {seed}", training.seconds, decoding.seconds, training.peak, *score(translations, workload)
    )


def train_opennmt(python: Path, workload: Path, output: Path, threads: int) -> Quality:
    """OpenNMT-py's standard model with additive attention and input feeding, for 5 epochs."""
    folder = empty_folder(output / "opennmt")
    system = next(system for system in list_systems() if system.name == PEER_ROW)
    updates = PEER_EPOCHS * math.ceil(len(read_lines(workload / "train.en")) / BATCH)
    variables = environment(threads) | opennmt.TRANSLATE_VARIABLES
    launch = [str(python.absolute()), str(LAUNCHER), "default"]
    training = run(
        [*launch, opennmt.MODULE, *opennmt.arguments(system, workload, folder, updates)],
        folder / "train.log",
        variables,
    )
    translations = folder / "test.translations"
    decode = opennmt.translate_arguments(workload, folder, updates, translations)
    decoding = run([*launch, opennmt.TRANSLATE_MODULE, *decode], folder / "translate.log", variables)
    name = f"OpenNMT-py, {system.description}"
    return Quality(name, training.seconds, decoding.seconds, training.peak, *score(translations, workload))


def score(translations: Path, workload: Path) -> tuple[float, str]:
    """BLEU of tokenised, lower-case translations without detokenisation, and its signature."""
    pairs = zip(read_lines(workload / "test.en"), read_lines(workload / "test.de"), strict=True)
    examples = [Example(src, (tgt,)) for src, tgt in pairs]
    bleu = score_corpus(examples, read_lines(translations), ScoringRules(tokenize="none"))["bleu"]
    return bleu.value, bleu.signature


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
