"""This project's own runs: the real commands, and the speeds in `metrics.jsonl`."""

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.measuring import Outcome, RunError, environment, run, steady
from benchmarks.systems import UPDATES_PER_REPORT
from benchmarks.workload import LANGUAGES, read_lines
from nmt.system.files import read_json

SPLITS = ("train", "valid", "test")

CLEANING: dict[str, Any] = {"unicode": "none", "control_characters": False, "html_entities": False}
CLEANING |= {"max_characters": None, "max_ratio": None, "min_letters": 0.0, "copies": True, "duplicates": "keep"}
"""None, so that all toolkits train on the same pairs."""
STANDARD: dict[str, Any] = {
    "data": {"src_language": "en", "tgt_language": "de", "cleaning": CLEANING},
    "text": {"tokenizer": "whitespace", "vocabulary": {"min_count": 2}},
    "model": {
        "embedding_size": 256,
        "dropout": 0.2,
        "encoder": {"cell": "lstm", "hidden_size": 256, "num_layers": 1, "bidirectional": True},
        "decoder": {"cell": "lstm", "hidden_size": 512, "num_layers": 1, "order": "luong"},
        "attention": {"score": "general"},
    },
    "train": {
        "epochs": 5,
        "batch": {"size": 64, "unit": "sentences"},
        "optimizer": {"name": "adam", "learning_rate": 0.001, "clip_norm": 1.0},
        "schedule": {"name": "constant"},
        "device": "cpu",
        "log_every": UPDATES_PER_REPORT,
    },
}
"""Config of the standard model of the benchmarks."""

_SELF_ATTENTION = ["model.encoder.kind=self_attention", "model.encoder.num_layers=4"]
_LAYERS = ["model.decoder.num_layers=4", "model.decoder.hidden_size=256"]
OVERRIDES = {
    "luong": ["model.decoder.order=luong", "model.attention.score=general"],
    "luong_feeding": ["model.decoder.order=luong", "model.attention.score=general", "model.decoder.input_feeding=true"],
    "bahdanau": ["model.decoder.order=bahdanau", "model.attention.score=additive"],
    "transformer": [*_SELF_ATTENTION, *_LAYERS, "model.decoder.kind=transformer"],
    "ssru": [*_SELF_ATTENTION, *_LAYERS, "model.decoder.kind=ssru"],
    "hybrid": [*_SELF_ATTENTION, "model.decoder.initial_state=zeros"],
}
"""Overrides of each kind of model; see `systems.System.kind`."""


def write_config(folder: Path, values: dict[str, Any] | None = None) -> Path:
    """Write a config for `--config`, by default the standard one: JSON is YAML."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "benchmark.yaml"
    path.write_text(json.dumps(STANDARD if values is None else values, indent=1), encoding="utf-8")
    return path


def nmt(*arguments: object) -> list[str]:
    """Command line of an `nmt` command."""
    return [sys.executable, "-m", "nmt", *map(str, arguments)]


def overriding(overrides: Sequence[str]) -> list[str]:
    """`--set` options for overrides."""
    return [part for override in overrides for part in ("--set", override)]


def sources_of(*files: Path) -> list[str]:
    """`--source` options for files."""
    return [part for file in files for part in ("--source", str(file))]


def prepare_workload(
    config: str | Path, workload: Path, output: Path, threads: int, variables: Mapping[str, str] | None = None
) -> None:
    """Preprocess a workload; no pair may be dropped.

    Args:
        config: Config or name of a shipped one.
        workload: Output of the workload command.
        output: Data directory to write.
        threads: CPU threads.
        variables: Further environment variables.

    Raises:
        RunError: The command failed, or the data has another number of training pairs than the workload.
    """
    sources = sources_of(*(workload / f"{split}.{language}" for split in SPLITS for language in LANGUAGES))
    command = nmt("preprocess", "--config", config, *sources, "--output", output, "--overwrite")
    run(command, output.with_suffix(".log"), environment(threads) | dict(variables or {}))
    expected = len(read_lines(workload / "train.en"))
    found = read_json(output / "data.json")["pairs"]["train"]
    if found != expected:
        raise RunError(f"{output}: has {found:,} of the {expected:,} pairs of {workload}; loosen data.cleaning")


def train(
    config: str | Path, data: Path, output: Path, updates: int, threads: int, overrides: Sequence[str] = ()
) -> Outcome:
    """Run `nmt train` for some updates.

    Raises:
        RunError: The command failed.
    """
    limits = [f"train.max_updates={updates}", "train.epochs=1000", f"train.validation.every={updates}"]
    limits += ["train.validation.metric=loss", f"train.log_every={UPDATES_PER_REPORT}"]
    shutil.rmtree(output, ignore_errors=True)
    command = nmt("train", "--config", config, "--data", data, "--output", output, *overriding([*limits, *overrides]))
    finished = run(command, output.with_suffix(".log"), environment(threads))
    speeds = read_speeds((output / "metrics.jsonl").read_text(encoding="utf-8"))
    return Outcome(steady(speeds), read_precision(output, overrides), finished.peak)


def read_speeds(metrics: str) -> list[float]:
    """Target tokens per second of each complete report; the last one of a run may cover fewer updates."""
    lines = [json.loads(line) for line in metrics.splitlines()]
    return [
        line["tokens_per_second"]
        for line in lines
        if line["kind"] == "train" and line["update"] % UPDATES_PER_REPORT == 0
    ]


def read_precision(output: Path, overrides: Sequence[str]) -> str:
    """The precision that a run used, from its own records."""
    if "train.precision=bfloat16" in overrides:
        return "bf16"
    fast = read_json(output / "environment.json")["float32_matmul_precision"] != "highest"
    return "fp32, fast products" if fast else "fp32"
