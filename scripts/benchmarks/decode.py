"""Translation speed of the standard models after equal training, compared with OpenNMT-py and JoeyNMT."""

from __future__ import annotations

import argparse
import math
import re
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm

from benchmarks import joeynmt, opennmt, ours
from benchmarks.arguments import Commands, positive
from benchmarks.measuring import MIB, Finished, RunError, environment, run
from benchmarks.quality import score
from benchmarks.systems import System, list_systems
from benchmarks.tables import markdown
from benchmarks.train import LAUNCHER, empty_folder
from benchmarks.workload import check_workload, read_lines

EPOCHS = 5
BATCH = 64
"""Sentences per update."""
ROWS = {
    "nmt-luong-lstm": ("float32", "bfloat16"),
    "nmt-bahdanau-lstm": ("float32", "bfloat16"),
    "opennmt-py-luong-lstm": ("float32",),
    "opennmt-py-bahdanau-lstm": ("float32",),
    "joeynmt-bahdanau-lstm": ("float32",),
}
"""Rows of the training benchmark whose models are measured, and the precisions of translation."""
BEAMS = (1, 5)


@dataclass(frozen=True)
class Decoding:
    """One way to translate the test split.

    Attributes:
        system: The system whose model translates.
        precision: Precision of translation.
        beam: Beam size.
    """

    system: System
    precision: str
    beam: int


@dataclass
class Result:
    """Measurements of the rounds of one decoding.

    Attributes:
        seconds: Translation time in each round, by the toolkit's own clock.
        commands: Seconds of the whole command in each round.
        peak: Peak resident memory, in bytes.
        bleu: BLEU on the test split.
    """

    seconds: list[float] = field(default_factory=list)
    commands: list[float] = field(default_factory=list)
    peak: int = 0
    bleu: float = math.nan


def add_command(commands: Commands) -> None:
    """Describe the arguments."""
    parser = commands.add_parser("decode", help="translation speed, compared with OpenNMT-py and JoeyNMT")
    parser.add_argument("--workload", type=Path, required=True, metavar="DIR", help="output of the workload command")
    parser.add_argument("--opennmt", type=Path, metavar="PYTHON", help="an interpreter that has OpenNMT-py")
    parser.add_argument("--joeynmt", type=Path, metavar="PYTHON", help="an interpreter that has JoeyNMT")
    parser.add_argument("--only", nargs="+", choices=list(ROWS), help="rows to run; all of them unless given")
    parser.add_argument("--rounds", type=positive, default=3)
    parser.add_argument("--threads", type=positive, default=2, help="CPU threads of each system")
    parser.add_argument("--train", action="store_true", help="only train the models that are missing")
    parser.add_argument(
        "--output", type=Path, default=Path("runs/benchmark/decode"), help="folder for models, logs and translations"
    )
    parser.set_defaults(run=benchmark_decode)


def benchmark_decode(arguments: argparse.Namespace) -> None:
    """Train each model once, translate the test split with each in interleaved rounds, print a table."""
    workload: Path = arguments.workload.resolve()
    check_workload(workload)
    output: Path = arguments.output.resolve()
    pythons = {"nmt": Path(), "OpenNMT-py": arguments.opennmt, "JoeyNMT": arguments.joeynmt}
    systems = [
        system
        for system in list_systems()
        if system.name in (arguments.only or ROWS) and pythons[system.toolkit] is not None
    ]
    for system in tqdm(systems, desc="training", unit=" models", disable=None):
        python = pythons[system.toolkit].absolute()
        train(system, python, workload, output / system.name, arguments.threads)
    if arguments.train:
        return
    decodings = [
        Decoding(system, precision, beam) for system in systems for precision in ROWS[system.name] for beam in BEAMS
    ]
    results = {decoding: Result() for decoding in decodings}
    for _ in tqdm(range(arguments.rounds), desc="translating", unit=" rounds", disable=None):
        for decoding, result in results.items():
            python = pythons[decoding.system.toolkit].absolute()
            folder = output / decoding.system.name
            translate = TRANSLATORS[decoding.system.toolkit]
            seconds, finished, translations = translate(decoding, python, workload, folder, arguments.threads)
            result.seconds.append(seconds)
            result.commands.append(finished.seconds)
            result.peak = max(result.peak, finished.peak)
            result.bleu, _ = score(translations, workload)
    print(table(results, len(read_lines(workload / "test.en"))))


def updates_of(workload: Path) -> int:
    """Training updates of each model."""
    return EPOCHS * math.ceil(len(read_lines(workload / "train.en")) / BATCH)


def train(system: System, python: Path, workload: Path, folder: Path, threads: int) -> None:
    """Train a toolkit's model in a folder, unless that is already done."""
    if (folder / "finished").exists():
        return
    empty_folder(folder)
    run(training_command(system, python, workload, folder, threads), folder / "train.log", environment(threads))
    (folder / "finished").touch()


def training_command(system: System, python: Path, workload: Path, folder: Path, threads: int) -> list[str]:
    """Prepare the config or data of a toolkit's model; returns the command that trains it."""
    if system.toolkit == "nmt":
        config = ours.write_config(folder)
        ours.prepare_workload(config, workload, folder / "data", threads)
        command = ours.nmt("train", "--config", config, "--data", folder / "data", "--output", folder / "run")
        return [*command, *ours.overriding(ours.OVERRIDES[system.kind])]
    peer = opennmt if system.toolkit == "OpenNMT-py" else joeynmt
    arguments = peer.arguments(system, workload, folder, updates_of(workload))
    return [str(python), str(LAUNCHER), "default", peer.MODULE, *arguments]


Translated = tuple[float, Finished, Path]
"""Seconds by the toolkit's own clock, the command, and the translations."""


def translate_ours(decoding: Decoding, python: Path, workload: Path, folder: Path, threads: int) -> Translated:
    """Translate with `nmt translate`, which reports its time after loading the model."""
    translations = folder / f"{decoding.precision}-{decoding.beam}.de"
    command = ours.nmt("translate", "--model", folder / "run", "--input", workload / "test.en")
    options = [
        "--output",
        str(translations),
        "--beam-size",
        str(decoding.beam),
        "--batch-size",
        "128",
        "--precision",
        decoding.precision,
    ]
    options += ["--no-split-sentences"]  # the test split has one sentence per line
    finished = run([*command, *options], translations.with_suffix(".log"), environment(threads))
    return read_seconds(r"lines in ([\d.]+) s", finished.text), finished, translations


def translate_opennmt(decoding: Decoding, python: Path, workload: Path, folder: Path, threads: int) -> Translated:
    """Translate with `onmt_translate -report_time`."""
    translations = folder / f"beam-{decoding.beam}.de"
    updates = updates_of(workload)
    options = opennmt.translate_arguments(workload, folder, updates, translations, decoding.beam)
    command = [str(python), str(LAUNCHER), "default", opennmt.TRANSLATE_MODULE, *options]
    variables = environment(threads) | opennmt.TRANSLATE_VARIABLES
    finished = run(command, translations.with_suffix(".log"), variables)
    return read_seconds(opennmt.TRANSLATION_TIME, finished.text), finished, translations


def translate_joeynmt(decoding: Decoding, python: Path, workload: Path, folder: Path, threads: int) -> Translated:
    """Translate with `joeynmt test`, which also scores the translations."""
    arguments, translations = joeynmt.translate_arguments(decoding.system, workload, folder, decoding.beam)
    command = [str(python), str(LAUNCHER), "default", joeynmt.MODULE, *arguments]
    finished = run(command, translations.with_suffix(".log"), environment(threads))
    return read_seconds(joeynmt.TRANSLATION_TIME, finished.text), finished, translations


Translate = Callable[[Decoding, Path, Path, Path, int], Translated]
TRANSLATORS: dict[str, Translate] = {
    "nmt": translate_ours,
    "OpenNMT-py": translate_opennmt,
    "JoeyNMT": translate_joeynmt,
}


def read_seconds(pattern: str, log: str) -> float:
    """The last translation time in a toolkit's log.

    Raises:
        RunError: There is none.
    """
    found = re.findall(pattern, log)
    if not found:
        raise RunError(f"no translation time in the log (expected {pattern})")
    return float(found[-1])


def table(results: dict[Decoding, Result], sentences: int) -> str:
    """All rows as Markdown; those of nmt with the ratios to the other toolkits' rows of the same beam size."""
    header = ["system", "attention, feeding", "precision", "beam", "sentences/s", "rounds", "command, s", "peak MiB"]
    header += ["BLEU", "× OpenNMT-py general", "× OpenNMT-py mlp", "× JoeyNMT bahdanau"]
    peers = ("opennmt-py-luong-lstm", "opennmt-py-bahdanau-lstm", "joeynmt-bahdanau-lstm")
    speeds = {decoding: [sentences / seconds for seconds in result.seconds] for decoding, result in results.items()}

    def ratio(decoding: Decoding, peer: str) -> str:
        others = [statistics.median(figures) for other, figures in speeds.items() if is_peer(other, peer, decoding)]
        ours_first = decoding.system.toolkit == "nmt"
        return f"{statistics.median(speeds[decoding]) / others[0]:.2f}" if ours_first and others else ""

    rows: list[Sequence[str]] = [
        [
            decoding.system.toolkit,
            decoding.system.description,
            decoding.precision,
            str(decoding.beam),
            f"{statistics.median(speeds[decoding]):,.0f}",
            ", ".join(f"{speed:,.0f}" for speed in speeds[decoding]),
            f"{statistics.median(result.commands):.1f}",
            f"{result.peak / MIB:,.0f}",
            f"{result.bleu:.2f}",
            *(ratio(decoding, peer) for peer in peers),
        ]
        for decoding, result in results.items()
    ]
    return markdown(header, rows)


def is_peer(other: Decoding, name: str, decoding: Decoding) -> bool:
    """Whether a row belongs to the system `name` and has the same beam size as `decoding`."""
    return other.system.name == name and other.beam == decoding.beam
