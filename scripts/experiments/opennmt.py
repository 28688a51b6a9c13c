"""OpenNMT-py's recurrent models on the data of an experiment, for the same time."""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.arguments import Commands, minutes, positive
from benchmarks.measuring import MIB, RunError, environment, run
from benchmarks.opennmt import (
    BATCH,
    MODULE,
    TRANSLATE_MODULE,
    TRANSLATE_VARIABLES,
    search_arguments,
    standard_config,
    write_config,
)
from benchmarks.train import LAUNCHER
from benchmarks.workload import read_lines, write_lines

from experiments.ledger import path_of, read_result, rounded, write_result
from experiments.plan import Cell, read_experiment
from experiments.runs import BEAM_SIZE, CORPORA, new_result, prepare_data, product_rate
from nmt.corpus.dataset import DataDirectory, open_data, read_examples
from nmt.evaluation.metrics import ScoringRules, score_corpus
from nmt.text.vocabulary import SPECIAL_TOKENS

VERSION = "3.5.1"
CONFIGS: dict[str, dict[str, Any]] = {
    "general": {"global_attention": "general", "input_feed": 0},
    "mlp, input feeding": {"global_attention": "mlp", "input_feed": 1},
}
"""Two sensible configs, beside what `config_of` says."""
PATHS = "data", "src_vocab", "tgt_vocab", "save_model"
"""Keys of a config that hold paths of this machine."""
PROBE, REPORT = 150, 50
"""Updates from which the number of updates that fit into the time is estimated, and updates between two reports."""


def add_command(commands: Commands) -> None:
    """Describe the arguments."""
    parser = commands.add_parser("opennmt", help="train OpenNMT-py on the data of the experiment's first cell")
    parser.add_argument("experiment", type=Path, metavar="FILE", help="a TOML file of this folder")
    parser.add_argument("--python", type=Path, required=True, metavar="PYTHON", help="interpreter with OpenNMT-py")
    parser.add_argument("--kind", choices=CONFIGS, default="general", help="attention and feeding")
    parser.add_argument("--minutes", type=minutes, required=True, help="time of training")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=positive, default=2, help="CPU threads")
    parser.add_argument("--corpora", type=Path, help=f"folder of the corpora [default: the variable {CORPORA}]")
    parser.add_argument("--output", type=Path, default=Path("runs/experiments"), help="folder for data and runs")
    parser.add_argument("--test", action="store_true", help="add the score of the test split to a finished result")
    parser.set_defaults(run=train_opennmt)


@dataclass(frozen=True)
class Peer:
    """Where one of its models is trained.

    Attributes:
        python: Interpreter with OpenNMT-py.
        folder: Folder for texts, logs and checkpoints.
        variables: Environment variables.
    """

    python: Path
    folder: Path
    variables: dict[str, str]

    def run(self, name: str, module: str, arguments: Sequence[object]) -> Any:
        """Run one of its modules."""
        command = [str(self.python.absolute()), str(LAUNCHER), "default", module, *map(str, arguments)]
        return run(command, self.folder / f"{name}.log", self.variables)


def train_opennmt(arguments: argparse.Namespace) -> None:
    """Train for about the given time, translate and score, and add the result to the ledger."""
    experiment = read_experiment(arguments.experiment)
    name = f"OpenNMT-py {arguments.kind}, {arguments.minutes:g} min"
    cell = Cell(experiment.name, name, arguments.seed, experiment.cells[0].data_overrides)
    known = path_of(experiment.name, cell.key).exists()
    if known and not arguments.test:
        return
    folder = (arguments.output / experiment.name / cell.key).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    data = open_data(prepare_data(experiment, cell, arguments.output / experiment.name, arguments))
    write_texts(data, folder)
    peer = Peer(arguments.python, folder, environment(arguments.threads) | TRANSLATE_VARIABLES)
    if known:
        result = read_result(experiment.name, cell.key)
        result = replace(result, scores=result.scores | {"test": translate(peer, data, "test", result.updates)})
        print(f"{write_result(result, cell.key)}: test BLEU {result.bleu('test'):.2f}")
        return

    before = product_rate(arguments.threads, fast=False)["float32"]
    probe = config_of(arguments.kind, folder, PROBE, len(data.train), arguments.seed)
    first, *_, last = read_seconds(peer.run("probe", MODULE, write_config(probe, folder / "probe.json")).text)
    updates = max(PROBE, round(arguments.minutes * 60 * (PROBE - REPORT) / (last - first)))
    config = config_of(arguments.kind, folder, updates, len(data.train), arguments.seed)
    begin = time.perf_counter()
    finished = peer.run("train", MODULE, write_config(config, folder / "config.json"))
    total = (time.perf_counter() - begin) / 60
    after = product_rate(arguments.threads, fast=False)["float32"]

    scores = {"valid": translate(peer, data, "valid", updates)}
    pairs, tokens = len(data.train), int(data.train.tgt.lengths.sum()) + len(data.train)
    result = replace(
        new_result(experiment, cell, arguments.threads),
        system=f"OpenNMT-py {VERSION}",
        config="",
        settings=[f"{key}={json.dumps(value)}" for key, value in sorted(config.items()) if key not in PATHS],
        gflops=round((before + after) / 2),
        parameters=int(re.findall(r"number of parameters: (\d+)", finished.text)[-1]),
        epochs=round(updates * BATCH / pairs, 2),
        updates=updates,
        tokens=round(tokens * updates * BATCH / pairs),
        minutes=round(read_seconds(finished.text)[-1] / 60, 1),
        total_minutes=round(total, 1),
        peak_mib=round(finished.peak / MIB),
        scores=scores,
    )
    print(f"{write_result(result, cell.key)}: valid BLEU {result.bleu('valid'):.2f}, {result.minutes:.1f} min")


def write_texts(data: DataDirectory, folder: Path) -> None:
    """Write the training pairs and the sources to translate as tokens, and the vocabularies."""
    processor = data.load_processor()
    for side, vocabulary in (("src", data.src_vocabulary), ("tgt", data.tgt_vocabulary)):
        sequences = getattr(data.train, side)
        decoded = (vocabulary.decode(sequences[index]) for index in range(len(sequences)))
        write_lines(folder / f"train.{side}", map(" ".join, decoded))
        write_lines(folder / f"vocabulary.{side}", vocabulary.tokens[len(SPECIAL_TOKENS) :])
    for split in ("valid", "test"):
        examples = read_examples(data.path / f"{split}.jsonl")
        tokens = processor.tokenize_source([example.src for example in examples])
        write_lines(folder / f"{split}.src", map(" ".join, tokens))


def config_of(kind: str, folder: Path, updates: int, pairs: int, seed: int) -> dict[str, Any]:
    """The config of a training of so many updates.

    Sizes as in this project's standard model. As in this project's recipe there are label smoothing and a learning rate
    that falls: it is halved 6 times in the last 40% of the updates.
    """
    texts, vocabularies = ((folder / f"{name}.src", folder / f"{name}.tgt") for name in ("train", "vocabulary"))
    return standard_config(texts, vocabularies, folder, updates, pairs) | {
        **CONFIGS[kind],
        "seed": seed,
        "src_vocab_size": 100_000,
        "tgt_vocab_size": 100_000,
        "report_every": REPORT,
        "learning_rate_decay": 0.5,
        "start_decay_steps": max(1, round(0.6 * updates)),
        "decay_steps": max(1, round(0.4 * updates / 6)),
        "label_smoothing": 0.1,
        "dropout": [0.3],
    }


def read_seconds(log: str) -> list[float]:
    """Seconds of training at each report.

    Raises:
        RunError: There are fewer than two.
    """
    found = [float(figure) for figure in re.findall(r"tok/s; *([\d.]+) sec", log)]
    if len(found) < 2:
        raise RunError("OpenNMT-py reported no progress")
    return found


def translate(peer: Peer, data: DataDirectory, split: str, updates: int) -> dict[str, Any]:
    """Translate a split with beam 5, detokenise, and score against all its references."""
    output = peer.folder / f"{split}.tokens"
    model = peer.folder / f"model_step_{updates}.pt"
    command = search_arguments(model, peer.folder / f"{split}.src", output, BEAM_SIZE, max_length=100)
    peer.run(f"translate-{split}", TRANSLATE_MODULE, command)
    detokenize = data.load_processor().tgt_tokenizer.detokenize
    lines = [detokenize(line.split()) for line in read_lines(output)]
    write_lines(peer.folder / f"{split}.txt", lines)
    examples = read_examples(data.path / f"{split}.jsonl")
    rules = ScoringRules.for_text(data.config.text, data.config.data.languages[1])
    return rounded({key: asdict(score) for key, score in score_corpus(examples, lines, rules).items()})
