"""Setting up a run: config, seeds, model, validation."""

import importlib.util
import logging
from collections.abc import Callable
from pathlib import Path

import torch

from nmt.config import Config, SamplingSection, differing_keys, read_config
from nmt.config.combinations import unrecordable
from nmt.config.parent import MODEL_KEYS, check_parent, settings_of_recorded
from nmt.corpus.dataset import DataDirectory, has_repaired_references
from nmt.corpus.example import read_examples
from nmt.evaluation.diagnostics import find_faults_of_references
from nmt.evaluation.input_text import read_split
from nmt.evaluation.metrics import ScoringRules
from nmt.evaluation.validator import Validator
from nmt.models.build import build_model
from nmt.models.lookup import find_model
from nmt.models.seq2seq import Seq2Seq
from nmt.models.storage import SavedModel, load_model
from nmt.system.device import resolve_precision, use_fast_products
from nmt.system.errors import CheckpointError, ConfigError, DataError, when_out_of_memory
from nmt.system.messages import Message, Parameter, setting
from nmt.text.vocabulary import SPECIAL_TOKENS
from nmt.training.distributed import SINGLE, Workers
from nmt.training.state import TrainState
from nmt.translation.translator import Translator

log = logging.getLogger(__name__)


def with_text_of(config: Config, data: DataDirectory) -> Config:
    """The config with the data section of the data, after checking that their text settings agree."""
    config = config.model_copy(update={"data": data.config.data})
    differing = differing_keys(data.config.text, config.text, "text.")
    if differing:
        advice = Message("preprocess again, or train with the config of the data")
        if recorded := settings_of_recorded(data.config.parent, config.parent):
            advice = Message(
                "the data has another parent or other pieces: set {recorded}, or {otherwise}",
                recorded=Parameter("overrides", recorded),
                otherwise=advice,
            )
        raise ConfigError(
            "{data}: was preprocessed with other settings: {differing}; {advice}",
            data=data.path,
            differing=", ".join(differing),
            advice=advice,
        )
    return config


def resolve(config: Config, data: DataDirectory, workers: Workers = SINGLE, run: Path | None = None) -> Config:
    """Set the random seed, the threads and the kernels of products, and resolve values that a config leaves open.

    Args:
        config: The whole config.
        data: The data.
        workers: The processes that train; the first one decides.
        run: A run to resume: the values of `auto` when it started still hold.

    Returns:
        The config with the data section of the data, and with a precision and graphs that are not `auto`.

    Raises:
        ConfigError: Updates are to be recorded, but several processes train.
    """
    config = with_text_of(config, data)
    if config.train.threads:
        torch.set_num_threads(config.train.threads)
    use_fast_products()
    torch.manual_seed(config.train.seed)

    def choose() -> dict[str, object]:
        given = config.train
        earlier = given if run is None else read_config(run / "config.yaml").train  # imports no class that it names
        precision = earlier.precision if given.precision == "auto" else given.precision
        graphs = earlier.graphs if given.graphs == "auto" else given.graphs
        return {
            "precision": resolve_precision(precision, workers.device),
            "graphs": resolve_graphs(config, workers) if graphs == "auto" else graphs,
        }

    config = _with_train(config, **workers.decide_on_first(choose))
    if config.train.graphs and workers.size > 1:
        raise ConfigError(f"train.graphs: true records the updates of one process, not of {workers.size}; set false")
    return config


def resolve_graphs(config: Config, workers: Workers) -> bool:
    """True if updates are recorded where the config leaves it open: on one GPU, if nothing in them waits."""
    return workers.device.type == "cuda" and workers.size == 1 and not any(unrecordable(config))


def _with_train(config: Config, **values: object) -> Config:
    return config.model_copy(update={"train": config.train.model_copy(update=values)})


def make_model(
    config: Config, data: DataDirectory, *, resumed: bool = False, say: Callable[[str], None] = log.info
) -> Seq2Seq:
    """Build a model with initial weights, which are those of its parent if it has one.

    Args:
        config: The whole config.
        data: The data.
        resumed: True if the weights come from a checkpoint, so that the parent is not needed.
        say: Shows how many pieces the parent has of those of the model, if these are its own.
    """
    model = build_model(config.model, len(data.src_vocabulary), len(data.tgt_vocabulary))
    for name, pairs in (("training", data.train), ("validation", data.valid)):
        limits = model.encoder.max_length, model.decoder.max_length
        for side, limit, sequences in zip(("encoder", "decoder"), limits, (pairs.src, pairs.tgt), strict=True):
            if limit and (longest := int(sequences.lengths.max(initial=0)) + 1) > limit:
                shorter = f", or preprocess again with text.max_length: {limit - 1}" if name == "training" else ""
                reason = f"the longest {name} sentence has {longest:,} tokens with its end"
                advice = f"set {longest:,} or more, or null{shorter}"
                raise ConfigError(f"model.{side}.learned_positions: {limit:,}, but {reason}; {advice}")
    if config.parent.run is not None and not resumed:
        parent = _load_parent(config)
        check_parent(config, parent.config, MODEL_KEYS)
        shared = _take_weights(model, data, parent)
        if config.parent.pieces == "own":
            say(f"parent: {parent.path} has {shared}; the vectors of the others are new")
        elif (parent.src_vocabulary, parent.tgt_vocabulary) != (data.src_vocabulary, data.tgt_vocabulary):
            remedy = Message(
                "preprocess with {parent}, or set parent.pieces=own", parent=setting(parent=config.parent.run)
            )
            if recorded := settings_of_recorded(data.config.parent, config.parent):
                remedy = Message(
                    "set {recorded}, with which the data was prepared", recorded=Parameter("overrides", recorded)
                )
            raise ConfigError(
                "parent: {parent} has other vocabularies than {data}; {remedy}",
                parent=parent.path,
                data=data.path,
                remedy=remedy,
            )
    return model


def _load_parent(config: Config) -> SavedModel:
    try:
        path = find_model(Path(str(config.parent.run)))
        # A class is trusted if the user's own config names it.
        parent = load_model(path, allowed_classes=[config.model.attention.score])
    except (CheckpointError, DataError) as error:
        raise CheckpointError("parent: {error}", error=error) from None
    if not all(bool(tensor.isfinite().all()) for tensor in parent.model.state_dict().values()):
        raise CheckpointError(f"parent: {path} has weights that are not finite; use another model")
    return parent


_BY_TOKEN = ("embedding.weight", "embedding.words.weight", "output.weight", "output.bias")
"""Weights of encoder and decoder that have a row for each token."""


def _take_weights(model: Seq2Seq, data: DataDirectory, parent: SavedModel) -> str:
    """Give a new model the weights of another; rows of tokens that the other does not have stay as they are.

    Trivial transfer (Zoph et al., 2016; Kocmi & Bojar, 2018).

    Returns:
        How many pieces both have, in words.
    """
    initial = model.state_dict()
    weights = parent.model.state_dict()
    counts = []
    for part, side, noun in (("encoder", "src", "source"), ("decoder", "tgt", "target")):
        here, there = (getattr(owner, f"{side}_vocabulary").tokens for owner in (data, parent))
        places = {token: row for row, token in enumerate(there)}
        rows = [row for row, token in enumerate(here) if token in places]
        for name in initial.keys() & {f"{part}.{name}" for name in _BY_TOKEN}:
            initial[name][rows] = weights[name][[places[here[row]] for row in rows]]
            weights[name] = initial[name]
        special = len(SPECIAL_TOKENS)
        counts.append(f"{len(rows) - special:,} of the {len(here) - special:,} {noun} pieces")
    model.load_state_dict(weights)
    return " and ".join(counts)


def make_validator(
    config: Config, data: DataDirectory, model: Seq2Seq, *, warn: Callable[[str], None] = log.warning
) -> tuple[Config, Validator]:
    """The validator, and the config with a metric that it supports.

    Without validation data it translates a sentence of the training text.

    Args:
        config: The whole config.
        data: The data.
        model: The model to validate.
        warn: Receives warnings of limits of validation.
    """
    rules = ScoringRules.for_config(config, repaired=has_repaired_references(data.path))
    if len(data.valid) == 0:
        warn("no validation split: the last model is kept")
    tokenizer = {"spacy": ["spacy"], "subword": ["sentencepiece"], "whitespace": []}[config.text.tokenizer]
    if missing := [name for name in (*tokenizer, "sacrebleu") if importlib.util.find_spec(name) is None]:
        metric = config.train.validation.metric
        if metric != "loss" and len(data.valid):
            warn(f"{' and '.join(missing)} not installed: the best model is chosen by loss, not {metric}")
        validation = config.train.validation.model_copy(update={"metric": "loss"})
        return _with_train(config, validation=validation), Validator(data.valid, [], rules, None)
    if len(data.valid):
        examples = read_examples(data.path / "valid.jsonl")
        for warning in find_faults_of_references(examples, rules):
            warn(warning)
        if sum(len(example.references) for example in examples) != len(data.valid):
            raise DataError(f"{data.path / 'valid.jsonl'}: does not match the encoded valid split; preprocess again")
    else:
        examples = read_split(data.path, "train")
        examples = [examples[len(examples) // 2]]
    greedy = config.decode.model_copy(update={"beam_size": 1, "sampling": SamplingSection()})
    translator = Translator(model, data.load_processor(), greedy)
    return config, Validator(data.valid, examples, rules, translator, config.train.watch)


def validate(validator: Validator, state: TrainState[Seq2Seq]) -> dict[str, float] | None:
    """The scores of a model in training, in all processes; the first one computes them. None of training text."""
    with when_out_of_memory("lower decode.batch_size or the sizes under model"):
        scores = validator.validate(state.result) if state.workers.is_first else None
    shared: dict[str, float] = state.workers.broadcast(scores)
    return shared if validator.is_unseen else None
