"""Train attention mechanisms on the bundled sample and compare them: a Markdown table on standard output.

Each mechanism is `nmt train --config sample` with a few overrides; a finished run is not trained again, unless its
settings (`--epochs`) differ: then it is replaced. BLEU is that of `nmt evaluate`; the alignment error rate (AER)
compares the attention in forced decoding of the references with the gold alignments of data/sample.

Usage: python scripts/mechanism_table.py [--only none luong_dot] [--epochs 8] [--output runs/mechanisms]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from tqdm import tqdm

from nmt.config import Config, parse_config
from nmt.corpus import Pair
from nmt.corpus.batching import make_batch
from nmt.corpus.dataset import MARKER as DATA_MARKER
from nmt.corpus.dataset import DataDirectory, open_data
from nmt.corpus.sources import open_corpus, read_pairs
from nmt.corpus.splitting import Example
from nmt.evaluation.gold_links import GoldLinks, read_alignments
from nmt.evaluation.input_text import read_split
from nmt.evaluation.model_evaluation import evaluate_model
from nmt.inspection.attention import measure_attention
from nmt.models.build import build_model
from nmt.models.configs import load_config
from nmt.models.recurrent.decoder import RecurrentDecoder
from nmt.models.runs import MARKER, find_data, find_model
from nmt.models.storage import load_model
from nmt.system.errors import ConfigError, DataError, NmtError
from nmt.system.files import read_json, shipped
from nmt.training.loop import plan_epoch, train_step
from nmt.training.state import make_optimizer
from nmt.translation.translator import Translator

CONFIG = "sample"
BAHDANAU, LUONG = "model.decoder.order=bahdanau", "model.decoder.order=luong"
ADDITIVE, GENERAL = "model.attention.score=additive", "model.attention.score=general"
MECHANISMS: dict[str, tuple[str, ...]] = {
    "none": ("model.attention.score=none",),
    **{f"bahdanau_{name}": (BAHDANAU, f"model.attention.score={name}") for name in ("additive", "dot", "general")},
    **{f"luong_{name}": (LUONG, f"model.attention.score={name}") for name in ("dot", "general", "concat")},
    **{f"luong_{name}": (LUONG, f"model.attention.score={name}") for name in ("scaled_dot", "cosine")},
    "luong_location": (LUONG, "model.attention.score=location", "model.attention.options={max_length: 20}"),
    "luong_feeding": (LUONG, GENERAL, "model.decoder.input_feeding=true"),
    "luong_local_m": (LUONG, GENERAL, "model.attention.window={name: local_m, radius: 5}"),
    "luong_local_p": (LUONG, GENERAL, "model.attention.window={name: local_p, radius: 5}"),
    "luong_hard": (LUONG, GENERAL, "model.attention.window.name=hard"),
    **{
        f"luong_heads_{name}": (LUONG, f"model.attention.score={name}", "model.attention.heads=4")
        for name in ("additive", "general", "scaled_dot")
    },
    **{
        f"luong_{name}": (LUONG, GENERAL, f"model.attention.normalizer.name={name}")
        for name in ("sparsemax", "entmax15")
    },
    "luong_dropout": (LUONG, GENERAL, "model.attention.dropout=0.1"),
    "luong_coverage": (LUONG, ADDITIVE, "model.attention.past.name=coverage"),
    "bahdanau_coverage": (BAHDANAU, ADDITIVE, "model.attention.past={name: coverage, loss_weight: 0.1}"),
    "bahdanau_maxout": (BAHDANAU, ADDITIVE, "model.decoder.readout=maxout"),
    "luong_deep": (
        LUONG,
        GENERAL,
        "model.encoder={num_layers: 2, residual: true, layer_norm: layers}",
        "model.decoder={num_layers: 2, residual: true, layer_norm: layers}",
    ),
    "luong_cell_norm": (LUONG, GENERAL, "model.encoder.layer_norm=cell", "model.decoder.layer_norm=cell"),
    "bahdanau_location": (BAHDANAU, ADDITIVE, "model.attention.past.name=location"),
}
"""Overrides of the sample config, by name of the table row. `concat` is `additive`."""
BEAM_SIZE = 5
ROUNDS = 3
UPDATES = 20


def work_class(config: Config) -> str:
    """The class of work of teacher-forced training.

    Returns:
        `a`: recurrence, attention and readout are one call each for all target positions; `b`: attention depends on its
        own past and loops; `c`: the whole step loops.
    """
    decoder, forcing = config.model.decoder, config.train.teacher_forcing
    if decoder.order == "bahdanau" or decoder.input_feeding or forcing.ratio < 1 or forcing.schedule != "constant":
        return "c"
    model = build_model(config.model, 8, 8).decoder
    assert isinstance(model, RecurrentDecoder)
    return "b" if model.cell.attention.reads_own_past else "a"


def gold_links(pairs: Sequence[Pair]) -> list[GoldLinks]:
    """Gold alignments of some pairs of the sample corpus.

    Raises:
        DataError: A pair is not in the corpus.
    """
    corpus, path = shipped("data/sample/deu.txt"), shipped("data/sample/alignments.txt")
    sentences, alignments = read_pairs(open_corpus([corpus]).train), read_alignments(path)
    if len(sentences) != len(alignments):
        raise DataError(f"{path}: has {len(alignments)} lines for {len(sentences)} pairs of {corpus}; generate both")
    gold = dict(zip(sentences, alignments, strict=True))
    unknown = [pair for pair in pairs if pair not in gold]
    if unknown:
        raise DataError(f"{corpus}: does not contain {unknown[0].src!r} of the test split; preprocess the sample again")
    return [gold[pair] for pair in pairs]


def nmt(*arguments: str) -> None:
    """Run an `nmt` command, with its output on standard error.

    Raises:
        SystemExit: It failed.
    """
    code = subprocess.run([sys.executable, "-m", "nmt", *arguments], stdout=sys.stderr).returncode
    if code:
        sys.exit(code)


def train(overrides: Sequence[str], run: Path) -> None:
    """Train a mechanism unless there is a finished run with the same settings."""
    if (run / MARKER).exists() and read_json(run / MARKER)["state"] == "finished":
        there = parse_config((run / "config.yaml").read_text("utf-8"), str(run / "config.yaml"))
        wanted = load_config(CONFIG, overrides)
        if (there.model, there.train) == (wanted.model, wanted.train):
            return
    settings = [part for override in overrides for part in ("--set", override)]
    nmt("train", "--config", CONFIG, "--output", str(run), "--overwrite", *settings)


def measure_speed(translator: Translator, lines: Sequence[str]) -> float:
    """Sentences per second, the median of some rounds after a warm-up round."""
    seconds = []
    for _ in range(1 + ROUNDS):
        begin = time.perf_counter()
        translator.translate(lines)
        seconds.append(time.perf_counter() - begin)
    return len(lines) / statistics.median(seconds[1:])


def measure_training(config: Config, data: DataDirectory) -> float:
    """Target tokens per second of ordinary updates, the median of some rounds after a warm-up round."""
    model = build_model(config.model, len(data.src_vocabulary), len(data.tgt_vocabulary)).train()
    optimizer = make_optimizer(config.train.optimizer, model)
    groups = plan_epoch(data.train, config.train, 1)[:UPDATES]
    batches = [[make_batch(data.train, indices) for indices in group] for group in groups]
    tokens = sum(batch.num_tokens for group in batches for batch in group)
    seconds = []
    for _ in range(1 + ROUNDS):
        begin = time.perf_counter()
        for update, group in enumerate(batches):
            train_step(model, group, optimizer, config.train, update)
        seconds.append(time.perf_counter() - begin)
    return tokens / statistics.median(seconds[1:])


def measure(
    name: str, run: Path, examples: Sequence[Example], pairs: Sequence[Pair], gold: Sequence[GoldLinks]
) -> tuple[str, str]:
    """Evaluate a trained mechanism on the test split.

    Returns:
        Its table row, and the signature of its BLEU.
    """
    saved = load_model(find_model(run))
    processor = saved.load_processor()
    greedy, beam = (
        Translator(saved.model, processor, saved.config.decode.model_copy(update={"beam_size": size}))
        for size in (1, BEAM_SIZE)
    )
    with_reference = [Example(pair.src, (pair.tgt,)) for pair in pairs]
    try:
        aligned = measure_attention(name, greedy, with_reference, forced=True, gold=gold, unit="tokens")
        error_rate = f"{aligned.error_rate:.3f}"
    except ConfigError:
        error_rate = "–"  # a model without attention
    bleu = evaluate_model([saved], beam, examples, what=name).scores["bleu"]
    sources = [example.src for example in examples]
    training = measure_training(saved.config, open_data(find_data(saved)))
    row = (
        f"| {name} | {work_class(saved.config)} | {saved.facts['parameters'] / 1e6:.2f} M | {training:,.0f} "
        f"| {measure_speed(greedy, sources):,.0f} | {measure_speed(beam, sources):,.0f} "
        f"| {bleu.value:.2f} | {error_rate} |"
    )
    return row, bleu.signature


def main() -> None:
    """Train what is missing, then print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=MECHANISMS, default=list(MECHANISMS))
    parser.add_argument("--epochs", type=int, help="passes over the training split [default: the config's]")
    parser.add_argument("--output", type=Path, default=Path("runs/mechanisms"), help="folder for the run directories")
    arguments = parser.parse_args()
    try:
        data = load_config(CONFIG).data_directory
        if not (data / DATA_MARKER).exists():
            nmt("preprocess", "--config", CONFIG)
        examples = read_split(data, "test")
        pairs = [Pair(example.src, reference) for example in examples for reference in example.references]
        gold = gold_links(pairs)
        rows = []
        for name in tqdm(arguments.only, unit=" mechanisms", disable=None):
            epochs = [f"train.epochs={arguments.epochs}"] if arguments.epochs is not None else []
            train([*MECHANISMS[name], *epochs], arguments.output / name)
            rows.append(measure(name, arguments.output / name, examples, pairs, gold))
    except NmtError as error:
        sys.exit(f"{parser.prog}: error: {error}")
    print(
        "| mechanism | work | parameters | training, tokens/s | greedy, sentences/s | beam, sentences/s | BLEU | AER |"
    )
    print("|---|---|---|---|---|---|---|---|")
    print("\n".join(row for row, _ in rows))
    print(f"\nBLEU {rows[0][1]}; {len(examples):,} sentences, {len(pairs):,} pairs, beam {BEAM_SIZE}.", end=" ")
    print(f"Speeds: CPU, threads: {torch.get_num_threads()}, batch 64, medians of {ROUNDS} rounds.")


if __name__ == "__main__":
    main()
