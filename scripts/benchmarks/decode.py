"""Translation speed of the standard models after equal training, compared with OpenNMT-py and JoeyNMT."""

import argparse
import math
import re
import statistics
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm

from benchmarks import joeynmt, opennmt, ours
from benchmarks.arguments import Commands, add_parser
from benchmarks.measuring import MIB, Finished, RunError, environment, launch, run
from benchmarks.systems import System, list_systems
from benchmarks.tables import counts, markdown
from benchmarks.train import empty_folder
from benchmarks.workload import check_workload, read_lines
from nmt.corpus.example import Example
from nmt.evaluation.metrics import ScoringRules, score_corpus

EPOCHS = 5
ROWS = {
    "nmt-luong-lstm": ("float32", "bfloat16"),
    "nmt-bahdanau-lstm": ("float32", "bfloat16"),
    "nmt-transformer": ("float32", "bfloat16"),
    "nmt-ssru": ("float32", "bfloat16"),
    "nmt-hybrid-lstm": ("float32", "bfloat16"),
    "opennmt-py-luong-lstm": ("float32",),
    "opennmt-py-bahdanau-lstm": ("float32",),
    "opennmt-py-transformer": ("float32",),
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
    about, output = "translation speed, compared with OpenNMT-py and JoeyNMT", "runs/benchmark/decode"
    peers = ("opennmt", "joeynmt")
    parser = add_parser(commands, benchmark_decode, "decode", about, output, rounds=3, workload=True, peers=peers)
    parser.add_argument("--only", nargs="+", choices=list(ROWS), help="rows to run; all of them unless given")


def benchmark_decode(arguments: argparse.Namespace) -> None:
    """Train each model once, translate the test split with each in interleaved rounds, print a table."""
    workload: Path = arguments.workload.resolve()
    check_workload(workload)
    output: Path = arguments.output.resolve()
    pythons = {"nmt": Path(), "OpenNMT-py": arguments.opennmt, "JoeyNMT": arguments.joeynmt}
    chosen = [system for system in list_systems() if system.name in (arguments.only or ROWS)]
    systems = [system for system in chosen if pythons[system.toolkit] is not None]
    for system in tqdm(systems, desc="training", unit=" models", disable=None):
        folder = output / system.name
        if not (folder / "finished").exists():
            train(system, pythons[system.toolkit], workload, empty_folder(folder), arguments.threads)
            (folder / "finished").touch()
    results = {
        Decoding(system, precision, beam): Result()
        for system in systems
        for precision in ROWS[system.name]
        for beam in BEAMS
    }
    for _ in tqdm(range(arguments.rounds), desc="translating", unit=" rounds", disable=None):
        for decoding, result in results.items():
            python, folder = pythons[decoding.system.toolkit], output / decoding.system.name
            seconds, finished, translations = translate(decoding, python, workload, folder, arguments.threads)
            result.seconds.append(seconds)
            result.commands.append(finished.seconds)
            result.peak = max(result.peak, finished.peak)
            result.bleu, _ = score(translations, workload)
    print(table(results, len(read_lines(workload / "test.en"))))


def updates_of(workload: Path) -> int:
    """Training updates of each model."""
    return EPOCHS * math.ceil(len(read_lines(workload / "train.en")) / opennmt.BATCH)


def train(system: System, python: Path, workload: Path, folder: Path, threads: int) -> Finished:
    """Train a toolkit's model in an empty folder."""
    if system.toolkit == "nmt":
        config = ours.write_config(folder)
        ours.prepare_workload(config, workload, folder / "data", threads)
        command = ours.nmt("train", "--config", config, "--data", folder / "data", "--output", folder / "run")
        command += ours.overriding(ours.OVERRIDES[system.kind])
        return run(command, folder / "train.log", environment(threads))
    peer = opennmt if system.toolkit == "OpenNMT-py" else joeynmt
    options = peer.arguments(system, workload, folder, updates_of(workload))
    return launch(python, peer.MODULE, options, folder / "train.log", threads)


def translate(
    decoding: Decoding, python: Path, workload: Path, folder: Path, threads: int
) -> tuple[float, Finished, Path]:
    """Translate the test split with a toolkit's model.

    Returns:
        Seconds by the toolkit's own clock, which starts once the model is loaded; the command; the translations.
    """
    toolkit, beam, test = decoding.system.toolkit, decoding.beam, workload / "test.en"
    output = folder / (f"{decoding.precision}-{beam}.de" if toolkit == "nmt" else f"beam-{beam}.de")
    log = output.with_suffix(".log")
    if toolkit == "nmt":
        command = ours.nmt("translate", "--model", folder / "run", "--input", test, "--output", output, "--overwrite")
        command += ["--beam-size", str(beam), "--batch-size", "128", "--precision", decoding.precision]
        command += ["--no-split-sentences"]  # the test split has one sentence per line
        finished, pattern = run(command, log, environment(threads)), r"lines in ([\d.]+) s"
    elif toolkit == "OpenNMT-py":
        options = opennmt.search_arguments(folder / f"model_step_{updates_of(workload)}.pt", test, output, beam)
        finished = launch(python, opennmt.TRANSLATE_MODULE, options, log, threads)
        pattern = opennmt.TRANSLATION_TIME
    else:
        options, output = joeynmt.translate_arguments(decoding.system, workload, folder, beam)
        finished, pattern = launch(python, joeynmt.MODULE, options, log, threads), joeynmt.TRANSLATION_TIME
    return read_seconds(pattern, finished.text), finished, output


def score(translations: Path, workload: Path) -> tuple[float, str]:
    """BLEU of tokenised, lower-case translations without detokenisation, and its signature."""
    pairs = zip(read_lines(workload / "test.en"), read_lines(workload / "test.de"), strict=True)
    examples = [Example(src, (tgt,)) for src, tgt in pairs]
    bleu = score_corpus(examples, read_lines(translations), ScoringRules(tokenize="none"))["bleu"]
    return bleu.value, bleu.signature


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
    peers = list(dict.fromkeys(decoding.system for decoding in results if decoding.system.toolkit != "nmt"))
    header += ["BLEU", *(f"× {peer.toolkit} {peer.description.split(',')[0]}" for peer in peers)]
    speeds = {decoding: [sentences / seconds for seconds in result.seconds] for decoding, result in results.items()}

    def ratio(decoding: Decoding, peer: System) -> str:
        others = [
            statistics.median(figures)
            for other, figures in speeds.items()
            if (other.system, other.beam) == (peer, decoding.beam)
        ]
        ours_first = decoding.system.toolkit == "nmt"
        return f"{statistics.median(speeds[decoding]) / others[0]:.2f}" if ours_first and others else ""

    rows = []
    for decoding, result in results.items():
        system, figures, command = decoding.system, speeds[decoding], statistics.median(result.commands)
        row = [system.toolkit, system.description, decoding.precision, str(decoding.beam)]
        row += [f"{statistics.median(figures):,.0f}", counts(figures), f"{command:.1f}", f"{result.peak / MIB:,.0f}"]
        rows.append([*row, f"{result.bleu:.2f}", *(ratio(decoding, peer) for peer in peers)])
    return markdown(header, rows)
