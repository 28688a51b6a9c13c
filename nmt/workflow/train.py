"""From a data directory to a run directory with a trained model."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import math
import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from nmt.config import Config, differing_keys, dump_config
from nmt.corpus.splitting import Example
from nmt.dataset import DataDirectory, open_data, read_examples
from nmt.decoding.translator import Translator
from nmt.errors import ConfigError
from nmt.evaluation.evaluate import Validator
from nmt.evaluation.metrics import ScoringRules
from nmt.files import append_text, check_output, locked, naming, set_aside, settle, write_json, write_text
from nmt.model.seq2seq import Seq2Seq, build_model
from nmt.model.storage import MARKER as MODEL_MARKER
from nmt.model.storage import WEIGHTS, load_model, read_weights, save_model
from nmt.noise import Noise, make_noise
from nmt.text.processor import load_processor
from nmt.training.device import describe_environment, resolve_device, use_fast_products
from nmt.training.loop import Reported, Started, Stopped, TrainState, Updated, Validated, train
from nmt.visualize.curves import draw_learning_curve
from nmt.workflow.runs import BEST, MARKER, find_model, write_state

Say = Callable[[str], None]

# An earlier run is kept until the new one, which begins with its marker, has a model.
WORTH = (MARKER, f"{BEST}/{MODEL_MARKER}")


def train_run(
    config: Config, data_directory: Path, output: Path, *, overwrite: bool = False, say: Say = print
) -> TrainState:
    """Train a model and leave a run directory that explains itself.

    The run directory holds `config.yaml`, `environment.json`, `metrics.jsonl`, `learning_curve.png`, `run.json`
    (state, timings, tokens/s) and `best/`, the model directory. Everything that can be wrong is checked before it
    is made.

    Args:
        config: The whole config; its text settings must be those of the data.
        data_directory: What `nmt preprocess` wrote.
        output: The run directory.
        overwrite: Replace an earlier run there; it is put back if the new one ends before it has saved a model.
        say: Receives lines for the user.

    Returns:
        Where the run ended.

    Raises:
        NmtError: The data, the config, the device or the output folder cannot be used.
    """
    with locked(output, *WORTH) as restored:
        if restored:
            say(f"{output}: the earlier run is back; the one to replace it was cut off before it had a model")
        check_output(output, MARKER, overwrite=overwrite)
        return _train_into(output, config, data_directory, say)


def _train_into(output: Path, config: Config, data_directory: Path, say: Say) -> TrainState:
    data = open_data(data_directory)
    config = with_text_of(config, data)
    device = prepare(config)
    noise = make_noise(config.train, data)
    model = make_model(config, data).to(device)
    config, validator = _make_validator(config, data, model, say)
    state = TrainState()
    begin = time.perf_counter()
    set_aside(output)
    try:
        output.resolve().mkdir(parents=True, exist_ok=True)
        write_state(output, "running")
        write_text(output / "config.yaml", dump_config(config))
        write_json(output / "environment.json", describe_environment(device))
        parameters = sum(parameter.numel() for parameter in model.parameters())
        say(f"{parameters:,} parameters, {len(data.train):,} training pairs, on {device}, into {output}")
        _follow(config, data, noise, model, validator, state, output, say)
    except BaseException as error:
        outcome = "stopped" if isinstance(error, KeyboardInterrupt) else "failed"
        with contextlib.suppress(OSError):
            write_state(output, outcome, reason=repr(error), **_summary(state, begin))
        raise
    else:
        write_state(output, "finished", **_summary(state, begin))
    finally:
        if settle(output, *WORTH):
            say(f"{output}: the earlier run is back, as this one has no model")
    return state


def _summary(state: TrainState, begin: float) -> dict[str, Any]:
    speed = state.tokens / state.seconds if state.seconds else None
    return {
        "updates": state.update,
        "epochs": state.epoch,
        "best": state.best,
        "best_update": state.best_update,
        "training_seconds": round(state.seconds, 2),
        "total_seconds": round(time.perf_counter() - begin, 2),
        "tokens_per_second": round(speed, 1) if speed else None,
    }


def with_text_of(config: Config, data: DataDirectory) -> Config:
    """The config with the data section of the data, after checking that both mean the same text."""
    # Where vocabularies came from does not matter once the data is made.
    config = config.model_copy(
        update={"text": config.text.model_copy(update={"reuse": data.config.text.reuse}), "data": data.config.data}
    )
    differing = differing_keys(data.config.text, config.text, "text.")
    if differing:
        raise ConfigError(
            f"{data.path}: was preprocessed with other settings: {', '.join(differing)}; preprocess again, or train "
            "with the config it was made with"
        )
    return config


def prepare(config: Config) -> torch.device:
    """Threads, random seeds, kernels and device."""
    device = resolve_device(config.train.device)
    if config.train.threads:
        torch.set_num_threads(config.train.threads)
    use_fast_products()
    random.seed(config.train.seed)
    np.random.seed(config.train.seed)
    torch.manual_seed(config.train.seed)
    return device


def make_model(config: Config, data: DataDirectory) -> Seq2Seq:
    """A fresh model, or one that starts from the weights of another."""
    model = build_model(config.model, len(data.src_vocabulary), len(data.tgt_vocabulary))
    if config.train.init_from is None:
        return model
    path = find_model(Path(config.train.init_from))
    other = load_model(path)
    if (other.src_vocabulary, other.tgt_vocabulary) != (data.src_vocabulary, data.tgt_vocabulary):
        raise ConfigError(
            f"train.init_from: {path} has other vocabularies than {data.path}; preprocess with --set text.reuse={path}"
        )
    differing = differing_keys(other.config.model, config.model, "model.")
    if any(not key.startswith(("model.dropout", "model.initialization")) for key in differing):
        raise ConfigError(f"train.init_from: {path} is another model: {', '.join(differing)}")
    read_weights(model, path / WEIGHTS)
    return model


def _make_validator(config: Config, data: DataDirectory, model: Seq2Seq, say: Say) -> tuple[Config, Validator | None]:
    """What scores the model during training, and the config with a metric that it can give."""
    rules = ScoringRules.for_text(config.text, config.data.languages[1])
    if len(data.valid) == 0:
        say("no validation split: the last model is kept")
        return config, None
    metric = config.train.validation.metric
    missing = [name for name in _libraries(config) if importlib.util.find_spec(name) is None]
    if missing:
        if metric != "loss":
            say(f"{' and '.join(missing)} not installed: the best model is chosen by loss, not {metric}")
            validation = config.train.validation.model_copy(update={"metric": "loss"})
            config = config.model_copy(update={"train": config.train.model_copy(update={"validation": validation})})
        return config, Validator(data.valid, [], rules, None)
    examples: list[Example] = read_examples(data.path / "valid.jsonl")
    greedy = config.decode.model_copy(update={"beam_size": 1})
    return config, Validator(data.valid, examples, rules, Translator(model, load_processor(data.text), greedy))


def _libraries(config: Config) -> list[str]:
    """Libraries without which translations cannot be scored as text."""
    tokenizer = {"spacy": ["spacy"], "subword": ["sentencepiece"], "whitespace": []}[config.text.tokenizer]
    return [*tokenizer, "sacrebleu"]


def _follow(
    config: Config,
    data: DataDirectory,
    noise: Noise,
    model: Seq2Seq,
    validator: Validator | None,
    state: TrainState,
    output: Path,
    say: Say,
) -> None:
    """Run the loop; log, save and show what it tells."""
    validate = (lambda: validator.validate(model)) if validator else None

    def save(scores: dict[str, float]) -> None:
        facts = {
            "update": state.update,
            "epoch": state.epoch,
            "scores": scores,
            "data": str(data.path.resolve()),
        }
        save_model(output / BEST, config, model, data.text, facts)
        settle(output, *WORTH)

    def draw() -> None:
        with naming(output / "learning_curve.png"):
            draw_learning_curve(output)

    log = _metrics_log(output)
    with (
        _interrupts() as stop_if_interrupted,
        tqdm(unit=" updates", disable=None, dynamic_ncols=True) as bar,
    ):
        for event in train(model, data.train, config, validate, state, noise):
            match event:
                case Started():
                    bar.total = event.total_updates
                    bar.refresh()
                case Updated():
                    bar.update()
                case Reported():
                    log("train", vars(event))
                    bar.set_postfix_str(
                        f"epoch {event.epoch}, loss {event.loss:.3f}, {event.tokens_per_second:,.0f} tok/s"
                    )
                case Validated():
                    log("valid", {**vars(event), "scores": None, **event.scores})
                    values = ", ".join(f"{name} {value:.2f}" for name, value in event.scores.items())
                    with bar.external_write_mode():
                        say(f"epoch {event.epoch}, update {event.update}: {values}{' (best)' * event.improved}")
                        if validator and validator.sample:
                            source, translation, reference = validator.sample
                            say(f"    {source}\n    -> {translation}\n    == {reference}")
                    if event.improved:
                        save(dict(event.scores))
                    draw()
                case Stopped():
                    with bar.external_write_mode():
                        say(f"stopped at update {event.update}: {event.reason}")
            stop_if_interrupted()
    if validator is None:
        save({})
        draw()


@contextlib.contextmanager
def _interrupts() -> Iterator[Callable[[], None]]:
    """Take Ctrl-C at a safe place: the yielded function raises KeyboardInterrupt once it was pressed.

    A second Ctrl-C stops at once. Where interrupts are ignored (a shell's background job) they stay ignored.
    """
    pressed = False

    def note(number: int, frame: object) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True

    def check() -> None:
        if pressed:
            raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield check
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _metrics_log(output: Path) -> Callable[[str, dict[str, Any]], None]:
    """What appends to `metrics.jsonl`, one JSON object a line."""
    begin = time.time()
    path = output / "metrics.jsonl"
    append_text(path, "")  # the learning curve reads it even if nothing is reported

    def log(kind: str, values: dict[str, Any]) -> None:
        kept = {
            key: (round(value, 6) if isinstance(value, float) and math.isfinite(value) else value)
            for key, value in values.items()
            if value is not None and not (isinstance(value, float) and not math.isfinite(value))
        }
        append_text(path, json.dumps({"kind": kind, "seconds": round(time.time() - begin, 2), **kept}) + "\n")

    return log
