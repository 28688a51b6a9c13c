"""Checks of a config beyond single values: combinations that cannot work, keys without effect, options.

Also rewords pydantic's messages about single values.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from nmt.config.sections import Config, Section
from nmt.system.errors import shorten

Place = tuple[str, ...]
Problem = tuple[Place, str]
Conflict = tuple[tuple[Place, ...], str]
"""The conflicting keys, starting with the one to change, and what is wrong."""


def dotted(path: Place) -> str:
    """A place in a config, as shown in messages."""
    return shorten(".".join(path))


def suggest(key: str, known: Sequence[str]) -> str:
    """`; did you mean ...?` if a known key is close, otherwise empty."""
    close = difflib.get_close_matches(key[:100], known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""


def closest_key(path: Place) -> Place:
    """The known key most similar to an unknown one; the unknown one itself if none is."""
    close = difflib.get_close_matches(path[-1][:100], _known_keys(path[:-1]), n=1, cutoff=0.6)
    return (*path[:-1], *(close or path[-1:]))


def _known_keys(path: Place, root: type[Section] = Config) -> list[str]:
    section = root
    for part in path:
        annotation = section.model_fields[part].annotation if part in section.model_fields else None
        if not (isinstance(annotation, type) and issubclass(annotation, Section)):
            return []
        section = annotation
    return list(section.model_fields)


def _in_words(error: Mapping[str, Any]) -> str:
    """Pydantic's message without its subject, as messages start with the key."""
    message = re.sub(r"^(Value error, )?(input|string|tuple|list) (?=should)", "", error["msg"], flags=re.IGNORECASE)
    return message[0].lower() + message[1:]


def describe(error: Mapping[str, Any], path: Place, root: type[Section] = Config) -> str:
    """Describe what is wrong with one value: what is allowed, what was found, what may have been meant.

    Args:
        error: One of the errors of a pydantic ValidationError.
        path: Place of the value.
        root: The section that places start from.
    """
    found = error["input"]
    if error["type"] == "extra_forbidden":
        known = _known_keys(path[:-1], root)
        return f"unknown key{suggest(path[-1], known) or ('; known keys: ' + ', '.join(known) if known else '')}"
    if error["type"] == "model_type":
        return f"should be a section with keys, found {shorten(repr(found))}"
    if isinstance(found, dict):
        return _in_words(error)
    choices = re.findall(r"'([^']*)'", error["ctx"]["expected"]) if error["type"] == "literal_error" else []
    return f"{_in_words(error)}, found {shorten(repr(found))}{suggest(str(found)[:100], choices)}"


def places(*keys: str) -> tuple[Place, ...]:
    """Places in a config from dotted keys."""
    return tuple(tuple(key.split(".")) for key in keys)


def names_class(score: str) -> bool:
    """Whether a score is the dotted path of a class rather than a registered name."""
    return "." in score


Check = Callable[[Config], Iterable[Conflict]]
"""Finds combinations that cannot work; defined by the packages that implement a section."""


def conflicts(config: Config) -> Iterator[Conflict]:
    """Combinations that cannot work."""
    yield from _depth_conflicts(config)
    yield from _model_conflicts(config)
    yield from _training_conflicts(config)
    yield from _data_conflicts(config)


def _model_conflicts(config: Config) -> Iterator[Conflict]:
    model, text = config.model, config.text
    if model.decoder.order == "bahdanau" and model.decoder.input_feeding:
        yield (
            places("model.decoder.input_feeding", "model.decoder.order"),
            "belongs to Luong order; Bahdanau order feeds the context anyway",
        )
    if model.decoder.initial_state == "backward" and not model.encoder.bidirectional:
        yield (
            places("model.decoder.initial_state", "model.encoder.bidirectional"),
            "backward needs model.encoder.bidirectional: true",
        )
    if model.tying == "all" and not text.vocabulary.joint:
        yield places("model.tying", "text.vocabulary.joint"), "all needs text.vocabulary.joint: true"
    if text.vocabulary.joint and text.tokenizer == "subword" and not text.subword.joint:
        yield (
            places("text.vocabulary.joint", "text.tokenizer", "text.subword.joint"),
            "with subwords needs text.subword.joint: true",
        )


def _training_conflicts(config: Config) -> Iterator[Conflict]:
    text, train = config.text, config.train
    if train.schedule.name == "inverse_sqrt" and train.schedule.warmup == 0:
        yield (
            places("train.schedule.warmup", "train.schedule.name"),
            "inverse_sqrt needs a number of warm-up updates",
        )
    forcing = train.teacher_forcing
    if forcing.schedule != "constant" and forcing.updates is None:
        yield (
            places("train.teacher_forcing.updates", "train.teacher_forcing.schedule"),
            f"{forcing.schedule} needs a number of updates",
        )
    if forcing.schedule != "constant" and forcing.minimum > forcing.ratio:
        yield (
            places("train.teacher_forcing.minimum", "train.teacher_forcing.ratio", "train.teacher_forcing.schedule"),
            f"is above the ratio {forcing.ratio}",
        )
    algorithm = text.subword.algorithm if text.tokenizer == "subword" else None
    for name, given, needed in [
        ("bpe_dropout", train.noise.bpe_dropout != 0, "bpe"),
        ("unigram_alpha", train.noise.unigram_alpha is not None, "unigram"),
    ]:
        if given and algorithm != needed:
            yield (
                places(f"train.noise.{name}", "text.tokenizer", "text.subword.algorithm"),
                f"needs text.tokenizer: subword and algorithm: {needed}",
            )


def _data_conflicts(config: Config) -> Iterator[Conflict]:
    data = config.data
    if data.cleaning.min_length > data.cleaning.max_length:
        yield places("data.cleaning.min_length", "data.cleaning.max_length"), "is above max_length"
    if data.columns[0] == data.columns[1]:
        yield places("data.columns"), f"must be two different columns, found {data.columns[0]} twice"
    if data.source and len(data.source) not in (1, 2, 3, 4, 6):
        yield places("data.source"), f"must be 1, 2, 3, 4 or 6 files, found {len(data.source)}"


_NEED_LAYERS: tuple[tuple[str, str | bool], ...] = (
    ("model.encoder.residual", True),
    ("model.encoder.layer_norm", "layers"),
    ("model.decoder.residual", True),
    ("model.decoder.layer_norm", "layers"),
    ("model.decoder.attend_from", "first"),
    ("model.decoder.context_to", "all"),
)


def _depth_conflicts(config: Config) -> Iterator[Conflict]:
    decoder = config.model.decoder
    for key, value in _NEED_LAYERS:
        layers = f"{key.rpartition('.')[0]}.num_layers"
        both = places(key, layers)
        if value_at(config, both[0]) == value and value_at(config, both[1]) == 1:
            yield both, f"{str(value).lower()} needs {layers}: 2 or more"
    if decoder.order == "luong" and decoder.context_to == "all" and not decoder.input_feeding:
        yield (
            places("model.decoder.context_to", "model.decoder.input_feeding", "model.decoder.order"),
            "Luong order feeds nothing back without model.decoder.input_feeding: true; set that, or order: bahdanau",
        )
    if decoder.order == "luong" and decoder.readout == "maxout":
        yield (
            places("model.decoder.readout", "model.decoder.order"),
            "maxout belongs to Bahdanau order; Luong order computes an attentional vector",
        )


def ineffective(config: Config) -> Iterator[Conflict]:
    """Combinations in which a setting never takes effect.

    For new configs only: a model that was trained with such a config is still valid.
    """
    data, schedule, patience = config.data, config.train.schedule, config.train.validation.patience
    if schedule.name == "plateau" and patience is not None and schedule.patience + 1 >= patience:
        yield (
            places("train.schedule.patience", "train.schedule.name", "train.validation.patience"),
            f"{schedule.patience} never lowers the learning rate, as train.validation.patience: {patience} stops the "
            f"run first; lower this, or set {schedule.patience + 2} or more there",
        )
    if schedule.name == "plateau" and len(data.source) in (1, 2, 3) and data.split.valid_size == 0:
        yield (
            places("train.schedule.name", "data.split.valid_size", "data.source"),
            "plateau needs validation, but data.split.valid_size is 0",
        )
    wanted = data.split.valid_size + data.split.test_size + (data.split.train_size or 1)
    if len(data.source) in (1, 2) and data.first_lines is not None and data.first_lines < wanted:
        yield (
            places(
                "data.first_lines",
                "data.source",
                "data.split.train_size",
                "data.split.valid_size",
                "data.split.test_size",
            ),
            f"yields at most {data.first_lines} pairs, but data.split needs {wanted} or more",
        )


_ADAM, _FALLING = ("adam", "adamw"), ("linear", "inverse_sigmoid")
_USED_WITH: dict[str, tuple[str, tuple[str, ...]]] = {
    "text.tokenized": ("text.tokenizer", ("subword",)),
    "model.attention.window.radius": ("model.attention.window.name", ("local_m", "local_p")),
    "model.attention.past.filters": ("model.attention.past.name", ("location",)),
    "model.attention.past.radius": ("model.attention.past.name", ("location",)),
    "train.optimizer.momentum": ("train.optimizer.name", ("sgd",)),
    "train.optimizer.betas": ("train.optimizer.name", _ADAM),
    "train.optimizer.epsilon": ("train.optimizer.name", _ADAM),
    "train.schedule.factor": ("train.schedule.name", ("plateau",)),
    "train.schedule.patience": ("train.schedule.name", ("plateau",)),
    "train.schedule.floor": ("train.schedule.name", ("plateau", "cosine")),
    "train.teacher_forcing.minimum": ("train.teacher_forcing.schedule", _FALLING),
    "train.teacher_forcing.updates": ("train.teacher_forcing.schedule", _FALLING),
}


def unused(config: Config, layers: Mapping[Place, int]) -> Iterator[Conflict]:
    """Values set on purpose that have no effect because of the value of another key.

    A value counts as unintended if it is the default, if the other key was set in a higher layer (a child config that
    changes the optimiser need not reset the parent's options of it), or if its section is written out in full, as in a
    resolved config.

    Args:
        config: The config.
        layers: Layer of each place that was set: a file is above those that it extends, and the command line is above
            all files.
    """
    rules = dict(_USED_WITH)
    if config.text.vocabulary.min_count == 0:
        rules["text.vocabulary.min_count"] = ("text.tokenizer", ("subword",))
    for key, (selector, users) in rules.items():
        place, selecting = places(key, selector)
        chosen = value_at(config, selecting)
        section = value_at(config, place[:-1])
        field = type(section).model_fields[place[-1]]
        if chosen in users or place not in layers or value_at(config, place) == field.default:
            continue
        layer = layers[place]
        complete = all(layers.get((*place[:-1], name)) == layer for name in type(section).model_fields)
        if layer >= layers.get(selecting, layer) and not complete:
            yield (
                (place, selecting),
                f"has no effect with {selector}: {chosen}, only with {' or '.join(users)}; remove it or change that",
            )


def value_at(section: Section, place: Place) -> Any:
    """The value or section at a place of a config."""
    value: Any = section
    for part in place:
        value = getattr(value, part)
    return value


class Option(NamedTuple):
    """An argument of a pluggable part, set in a config's `options`.

    Attributes:
        name: Name of the argument.
        annotation: Its type; `inspect.Parameter.empty` if it has none.
        required: Whether it has no default.
    """

    name: str
    annotation: Any
    required: bool


def check_options(accepted: Sequence[Option], given: Mapping[str, Any], path: Place) -> Iterator[Problem]:
    """Check the `options` of a pluggable part.

    Args:
        accepted: Arguments of the part.
        given: Values in the config.
        path: Place of `options` in the config.

    Yields:
        (place, message) for each unknown, missing or mistyped option.
    """
    options = {option.name: option for option in accepted}
    for name, value in given.items():
        if name not in options:
            known = f"; known options: {', '.join(options)}" if options else "; there are no options"
            yield (*path, name), f"unknown option{suggest(name, list(options)) or known}"
        elif options[name].annotation is not inspect.Parameter.empty:
            try:
                TypeAdapter(options[name].annotation).validate_python(value, strict=True)
            except ValidationError as error:
                yield (*path, name), f"{_in_words(error.errors()[0])}, found {shorten(repr(value))}"
    for option in accepted:
        if option.required and option.name not in given:
            yield (*path, option.name), "is required"
