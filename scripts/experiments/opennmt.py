"""OpenNMT-py's recurrent model on the data of an experiment, for the same time."""

import argparse
import json
import re
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import opennmt
from benchmarks.arguments import Commands, positive
from benchmarks.measuring import MIB, Finished, RunError, launch
from benchmarks.workload import read_lines, write_lines

from experiments.ledger import Score, path_of, read_result, rounded, write_result
from experiments.plan import Cell, read_experiment
from experiments.runs import BEAM_SIZE, add_parser, named_cells, new_result, prepare_data, product_rate
from nmt.corpus.dataset import DataDirectory, open_data
from nmt.corpus.example import read_examples
from nmt.evaluation.metrics import ScoringRules, score_corpus
from nmt.text.direction import Direction
from nmt.text.vocabulary import SPECIAL_TOKENS

VERSION = "3.5.1"
PATHS = "data", "src_vocab", "tgt_vocab", "save_model"
"""Keys of a config that hold paths of this machine."""
DROPOUT = 0.3
CHECKPOINTS = 5
"""Checkpoints of which the one with the best BLEU on valid counts."""
PROBE, REPORT = 150, 50
"""Updates from which the number of updates that fit into the time is estimated, and updates between two reports."""


def add_command(commands: Commands) -> None:
    """Describe the arguments."""
    parser = add_parser(commands, train_opennmt, "opennmt", "train OpenNMT-py on the data of a cell")
    parser.add_argument("--cell", metavar="NAME", help="the cell; without it the first")
    parser.add_argument("--dropout", type=float, default=DROPOUT)
    parser.add_argument("--python", type=Path, required=True, metavar="PYTHON", help="interpreter with OpenNMT-py")
    parser.add_argument("--minutes", type=positive, required=True, help="time of training")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--test", action="store_true", help="add the score of the test split to a finished result")


def train_opennmt(arguments: argparse.Namespace) -> None:
    """Train for about the given time, translate and score, and add the result to the ledger.

    Raises:
        ConfigError: There is no such cell.
    """
    experiment = read_experiment(arguments.experiment)
    data_settings = named_cells(experiment, arguments.cell and [arguments.cell])[0].data_settings
    dropout = "" if arguments.dropout == DROPOUT else f", dropout {arguments.dropout:g}"
    name = f"{f'{arguments.cell}, ' if arguments.cell else ''}OpenNMT-py general, {arguments.minutes} min{dropout}"
    cell = Cell(name=name, seed=arguments.seed, settings=data_settings)
    known = path_of(experiment.name, cell.key).exists()
    if known and not arguments.test:
        return
    folder = (arguments.output / experiment.name / cell.key).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    data = open_data(prepare_data(experiment, cell, arguments.output / experiment.name, arguments))
    write_texts(data, folder)
    scored = partial(score, arguments, data, folder)
    if known:
        result = read_result(experiment.name, cell.key)
        result = replace(result, scores=result.scores | {"test": scored("test", result.updates)})
        print(f"{write_result(result, cell.key)}: test BLEU {result.bleu('test'):.2f}")
        return

    def train(updates: int, file: str) -> tuple[dict[str, Any], Finished]:
        config = config_of(folder, updates, len(data.train), arguments.seed) | {"dropout": [arguments.dropout]}
        options = opennmt.write_config(config, folder / f"{file}.json")
        finished = launch(arguments.python, opennmt.MODULE, options, folder / f"{file}.log", arguments.threads)
        return config, finished

    before = product_rate(arguments.threads, fast=False)["float32"]
    first, *_, last = read_seconds(train(PROBE, "probe")[1].text)
    steps = max(PROBE, round(arguments.minutes * 60 * (PROBE - REPORT) / (last - first))) // CHECKPOINTS
    updates = steps * CHECKPOINTS
    config, finished = train(updates, "config")
    after = product_rate(arguments.threads, fast=False)["float32"]
    pairs, tokens = len(data.train), int(data.train.tgt.lengths.sum()) + len(data.train)
    scores = {step: scored("valid", step) for step in range(steps, updates + 1, steps)}
    kept = max(scores, key=lambda step: scores[step]["bleu"].value)
    result = replace(
        new_result(experiment, cell, arguments.threads),
        system=f"OpenNMT-py {VERSION}",
        config="",
        settings=[f"{key}={json.dumps(value)}" for key, value in sorted(config.items()) if key not in PATHS],
        gflops=round((before + after) / 2),
        parameters=int(re.findall(r"number of parameters: (\d+)", finished.text)[-1]),
        epochs=round(updates * opennmt.BATCH / pairs, 2),
        updates=kept,
        tokens=round(tokens * updates * opennmt.BATCH / pairs),
        minutes=round(read_seconds(finished.text)[-1] / 60, 1),
        total_minutes=round(finished.seconds / 60, 1),
        peak_mib=round(finished.peak / MIB),
        scores={"valid": scores[kept]},
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


def config_of(folder: Path, updates: int, pairs: int, seed: int) -> dict[str, Any]:
    """The config of a training of so many updates, with general attention and no input feeding.

    Sizes as in this project's standard model. As in this project's recipe there are label smoothing and a learning rate
    that falls: it is halved 6 times in the last 40% of the updates. Each fifth of the updates leaves a checkpoint.
    """
    texts, vocabularies = ((folder / f"{name}.src", folder / f"{name}.tgt") for name in ("train", "vocabulary"))
    return opennmt.standard_config(texts, vocabularies, folder, updates, pairs) | {
        "global_attention": "general",
        "input_feed": 0,
        "seed": seed,
        "src_vocab_size": 100_000,
        "tgt_vocab_size": 100_000,
        "report_every": REPORT,
        "learning_rate_decay": 0.5,
        "start_decay_steps": max(1, round(0.6 * updates)),
        "decay_steps": max(1, round(0.4 * updates / 6)),
        "label_smoothing": 0.1,
        "save_checkpoint_steps": max(1, updates // CHECKPOINTS),
        "keep_checkpoint": CHECKPOINTS,
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


def score(
    arguments: argparse.Namespace, data: DataDirectory, folder: Path, split: str, updates: int
) -> dict[str, Score]:
    """Translate a split with beam 5, detokenise, and score against all its references."""
    output, model = folder / f"{split}.tokens", folder / f"model_step_{updates}.pt"
    options = opennmt.search_arguments(model, folder / f"{split}.src", output, BEAM_SIZE, max_length=100)
    log = folder / f"translate-{split}.log"
    launch(arguments.python, opennmt.TRANSLATE_MODULE, options, log, arguments.threads)
    detokenize = data.load_processor().tgt_tokenizer.detokenize
    lines = [detokenize(line.split()) for line in read_lines(output)]
    write_lines(folder / f"{split}.txt", lines)
    examples = read_examples(data.path / f"{split}.jsonl")
    rules = ScoringRules.for_text(data.config.text, Direction.of(data.config.data).target)
    return rounded({key: asdict(score) for key, score in score_corpus(examples, lines, rules).items()})
