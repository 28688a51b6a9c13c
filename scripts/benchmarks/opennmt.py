"""OpenNMT-py: config of the standard model, the commands, and the speeds in its log."""

import json
import re
from pathlib import Path
from typing import Any

from benchmarks.systems import UPDATES_PER_REPORT, System
from benchmarks.workload import read_lines

MODULE = "onmt.bin.train"
TRANSLATE_MODULE = "onmt.bin.translate"
BATCH = 64
"""Sentences of a batch in training."""
TRANSFORMER: dict[str, Any] = {"encoder_type": "transformer", "decoder_type": "transformer", "position_encoding": True}
TRANSFORMER |= {"layers": 4, "heads": 4, "hidden_size": 256, "transformer_ff": 1024, "attention_dropout": [0.0]}
TRANSFORMER |= {"param_init": 0.0, "param_init_glorot": True}
"""What a Transformer has in place of the keys of the standard model; the toolkit's are pre-norm."""


def config(system: System, workload: Path, folder: Path, updates: int) -> dict[str, Any]:
    """OpenNMT-py's config for a row."""
    pairs = len(read_lines(workload / "train.en"))
    texts = (workload / "train.en", workload / "train.de")
    vocabularies = (workload / "vocab.onmt.en", workload / "vocab.onmt.de")
    standard = standard_config(texts, vocabularies, folder, updates, pairs)
    if system.kind == "transformer":
        return standard | TRANSFORMER
    return standard | {
        "rnn_type": system.cell.upper(),
        "global_attention": "mlp" if system.kind == "bahdanau" else "general",
        "input_feed": int(system.kind != "luong"),
    }


def standard_config(
    texts: tuple[Path, Path], vocabularies: tuple[Path, Path], folder: Path, updates: int, pairs: int
) -> dict[str, Any]:
    """The config of the standard model, but for its attention.

    A bucket is the whole training split; with the default of 262,144 the toolkit would read a small split many times
    before its first step.

    Args:
        texts: Tokenised source and target of the training pairs.
        vocabularies: Vocabulary of each side.
        folder: Where to store the model.
        updates: Number of updates.
        pairs: Number of training pairs.
    """
    never = 100_000_000
    values: dict[str, Any] = {"seed": 1, "data": {"corpus": {"path_src": str(texts[0]), "path_tgt": str(texts[1])}}}
    values |= {"src_vocab": str(vocabularies[0]), "tgt_vocab": str(vocabularies[1]), "vocab_size_multiple": 1}
    values |= {"src_vocab_size": 20_000, "tgt_vocab_size": 20_000, "bucket_size": pairs, "num_workers": 0}
    values |= {"save_model": str(folder / "model"), "save_checkpoint_steps": updates, "keep_checkpoint": 1}
    values |= {"train_steps": updates, "valid_steps": never, "report_every": UPDATES_PER_REPORT}
    values |= {"batch_type": "sents", "batch_size": BATCH, "normalization": "tokens"}
    values |= {"world_size": 1, "gpu_ranks": [], "model_dtype": "fp32", "param_init": 0.1}
    values |= {"optim": "adam", "adam_beta2": 0.999, "learning_rate": 0.001, "start_decay_steps": never}
    values |= {"max_grad_norm": 1.0, "encoder_type": "brnn", "decoder_type": "rnn", "rnn_type": "LSTM", "layers": 1}
    values |= {"word_vec_size": 256, "hidden_size": 512, "dropout": [0.2]}
    return values


def arguments(system: System, workload: Path, folder: Path, updates: int) -> list[str]:
    """Write the config and return the arguments of the module."""
    return write_config(config(system, workload, folder, updates), folder / "config.yaml")


def write_config(values: dict[str, Any], path: Path) -> list[str]:
    """Write a config, which is JSON and so YAML, and return the arguments that use it."""
    path.write_text(json.dumps(values, indent=1), encoding="utf-8")
    return ["-config", str(path)]


TRANSLATION_TIME = r"(?:Total translation time|Time w/o python interpreter load/terminate)[^\d]*([\d.]+)"
"""Where `onmt_translate` tells how many seconds it took."""


def search_arguments(model: Path, src: Path, output: Path, beam: int, max_length: int = 60) -> list[str]:
    """Arguments that translate a tokenised file."""
    options: dict[str, object] = {"model": model, "src": src, "output": output, "beam_size": beam}
    options |= {"max_length": max_length, "length_penalty": "avg" if beam > 1 else "none"}
    options |= {"batch_type": "sents", "batch_size": 32, "gpu": -1}
    return ["-report_time", *(part for key, value in options.items() for part in (f"-{key}", str(value)))]


SERVER_MODULE = "onmt.bin.server"


def server_config(model: Path, beam: int = 5) -> dict[str, Any]:
    """The config of a server of one model, which searches as `translate_arguments` says."""
    options = {"beam_size": beam, "length_penalty": "avg", "max_length": 60, "batch_size": 32, "gpu": -1}
    described = {"id": 0, "models": [model.name], "timeout": -1, "load": True, "opt": options}
    return {"models_root": str(model.parent), "models": [described]}


def request_body(text: str) -> Any:
    """The JSON value of a request."""
    return [{"src": text, "id": 0}]


def read_reply(reply: Any) -> str:
    """The translation in the JSON value of a reply."""
    return str(reply[0][0]["tgt"])


def read_speeds(log: str) -> list[float]:
    """Target tokens per second of each report, the second of two figures: `4100/4200 tok/s`."""
    return [float(figure) for figure in re.findall(r"/ *(\d+) tok/s", log)]
