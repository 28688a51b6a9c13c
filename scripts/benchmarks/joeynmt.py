"""JoeyNMT: config of the standard model, the training command, and the speeds in its log."""

import json
import re
from pathlib import Path
from typing import Any

from benchmarks.systems import UPDATES_PER_REPORT, System

MODULE = "joeynmt"


def config(system: System, workload: Path, folder: Path, updates: int) -> dict[str, Any]:
    """JoeyNMT's config for a row.

    Version 2.3.0 requires a schedule, and its `plateau` no longer works with current torch, so the constant rate is
    written as an exponential decay by a factor of 1.
    """
    embeddings = {"embedding_dim": 256}
    common = {"type": "recurrent", "rnn_type": system.cell, "embeddings": embeddings, "num_layers": 1, "dropout": 0.2}
    attention = "bahdanau" if system.kind == "bahdanau" else "luong"

    def side(language: str) -> dict[str, Any]:
        vocabulary = str(workload / f"vocab.joey.{language}")
        return {"lang": language, "level": "word", "lowercase": False, "max_length": 100, "voc_file": vocabulary}

    training: dict[str, Any] = {"optimizer": "adam", "learning_rate": 0.001, "learning_rate_min": 0.0}
    training |= {"clip_grad_norm": 1.0, "scheduling": "exponential", "decrease_factor": 1.0}
    training |= {"epochs": 1000, "updates": updates}
    training |= {"batch_size": 64, "batch_type": "sentence", "normalization": "tokens", "loss": "crossentropy"}
    training |= {"shuffle": True, "validation_freq": 100_000_000, "logging_freq": UPDATES_PER_REPORT}
    training |= {"early_stopping_metric": "loss", "overwrite": True, "print_valid_sents": [], "keep_best_ckpts": 1}
    decoder = {"hidden_size": 512, "hidden_dropout": 0.2, "init_hidden": "bridge"}
    decoder["input_feeding"] = system.kind != "luong"
    sides = {**common, "hidden_size": 256, "bidirectional": True}, {**common, **decoder, "attention": attention}
    if system.kind == "transformer":
        layers = {"num_layers": 4, "num_heads": 4, "hidden_size": 256, "ff_size": 1024, "layer_norm": "pre"}
        embeddings = {"embedding_dim": 256, "scale": True}
        sides = ({"type": "transformer", "embeddings": embeddings, "dropout": 0.2, **layers},) * 2
    files = {"train": str(workload / "train"), "dev": str(workload / "valid"), "dataset_type": "plain"}
    initial = {"initializer": "xavier_uniform", "embed_initializer": "normal", "embed_init_weight": 0.1}
    general = {"name": "benchmark", "joeynmt_version": "2.3.0", "use_cuda": False, "fp16": False, "random_seed": 1}
    return {
        **general,
        "model_dir": str(folder / "model"),
        "data": {**files, "src": side("en"), "trg": side("de")},
        "testing": {"beam_size": 1, "batch_size": 32, "batch_type": "sentence", "eval_metrics": ["bleu"]},
        "training": training,
        "model": {**initial, "encoder": sides[0], "decoder": sides[1]},
    }


def arguments(system: System, workload: Path, folder: Path, updates: int) -> list[str]:
    """Write the config and return the arguments of the module."""
    path = folder / "config.yaml"
    path.write_text(json.dumps(config(system, workload, folder, updates), indent=1), encoding="utf-8")
    return ["train", str(path), "--skip-test"]


TRANSLATION_TIME = r"Generation took ([\d.]+)\[sec\]"
"""Where `joeynmt test` tells how many seconds it took."""


def translate_arguments(system: System, workload: Path, folder: Path, beam: int) -> tuple[list[str], Path]:
    """Write a config that translates the test split; return the arguments of the module and the file it writes."""
    settings = config(system, workload, folder, updates=1)
    settings["data"]["test"] = str(workload / "test")
    settings["testing"] |= {"beam_size": beam, "beam_alpha": 1.0, "max_output_length": 60}
    settings["testing"]["sacrebleu_cfg"] = {"tokenize": "none"}
    path = folder / f"beam-{beam}.yaml"
    path.write_text(json.dumps(settings, indent=1), encoding="utf-8")
    output = folder / f"beam-{beam}"
    return ["test", str(path), "-o", str(output)], output.with_name(f"{output.name}.test")


def read_speeds(log: str) -> list[float]:
    """Target tokens per second of each report."""
    return [float(figure) for figure in re.findall(r"Tokens per Sec: +([\d.]+)", log)]
