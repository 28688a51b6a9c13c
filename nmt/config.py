"""Configuration: YAML files become frozen, typed sections; every problem is told at once, with its place.

The one module that knows YAML and pydantic. `load_config` reads a file or a shipped config by name, follows
`extends:`, applies `--set` overrides and checks each value and each combination.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from nmt.errors import ConfigError
from nmt.files import shipped


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("input should be a valid number")
    return value


Count = Annotated[int, Field(strict=True, ge=1)]
NonNegative = Annotated[int, Field(strict=True, ge=0)]
Number = Annotated[float, BeforeValidator(_number)]
Probability = Annotated[Number, Field(ge=0, lt=1)]
Share = Annotated[Number, Field(ge=0, le=1)]
Positive = Annotated[Number, Field(gt=0)]
Metric = Literal["loss", "bleu", "chrf"]


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


class Section(BaseModel):
    """Base of every section: unknown keys are refused and values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class CleaningSection(Section):
    """Which pairs are thrown away before anything else looks at them."""

    min_length: Count = Field(1, description="fewest words (separated by blanks) on either side")
    max_length: Count = Field(100, description="most words (separated by blanks) on either side")


class SplitSection(Section):
    """Leak-free splits; ignored where the corpus comes with splits of its own."""

    train_size: Count | None = Field(None, description="pairs; null takes all that is left")
    valid_size: NonNegative = Field(1000, description="distinct source sentences")
    test_size: NonNegative = Field(1000, description="distinct source sentences")
    seed: NonNegative = Field(1, description="chooses which sentences go where")


class DataSection(Section):
    """Where the sentences come from."""

    source: Annotated[tuple[str, ...], BeforeValidator(_as_tuple)] = Field(
        (), description="one tab-separated file, zip or URL; or two, four or six parallel files"
    )
    columns: tuple[Count, Count] = Field((1, 2), description="columns of source and target, from 1")
    src_language: str = Field("en", min_length=1, description="language code of the source")
    tgt_language: str = Field("de", min_length=1, description="language code of the target")
    first_lines: Count | None = Field(None, description="read only so many lines; null reads all")
    directory: str | None = Field(None, description="null means data/prepared/NAME")
    cleaning: CleaningSection = CleaningSection()
    split: SplitSection = SplitSection()


class SubwordSection(Section):
    """Subword segmentation, learnt from the training split alone (SentencePiece)."""

    algorithm: Literal["bpe", "unigram"] = "bpe"
    vocabulary_size: Count = Field(8000, description="pieces, with the learner's own three")
    joint: bool = Field(False, description="one segmentation for both languages")


class VocabularySection(Section):
    """Which tokens get an id; counted on the training split alone."""

    min_count: Count = Field(1, description="rarer tokens become unknown")
    max_size: Count | None = Field(None, description="keep the most frequent; null keeps all")
    joint: bool = Field(False, description="one vocabulary for both languages")


class TextSection(Section):
    """How text becomes tokens and back."""

    tokenizer: Literal["spacy", "subword", "whitespace"] = "subword"
    lowercase: bool = False
    subword: SubwordSection = SubwordSection()
    vocabulary: VocabularySection = VocabularySection()
    max_length: Count = Field(100, description="tokens; longer training pairs are left out")
    reuse: str | None = Field(None, description="data or model directory whose tokenizers and vocabularies to take")


class EncoderSection(Section):
    """Recurrent encoder."""

    cell: Literal["gru", "lstm"] = "lstm"
    hidden_size: Count = Field(256, description="units a direction")
    num_layers: Count = 1
    bidirectional: bool = True


class DecoderSection(Section):
    """Recurrent decoder: the order of attention and update, and what is fed back."""

    cell: Literal["gru", "lstm"] = "lstm"
    hidden_size: Count = 512
    num_layers: Count = 1
    order: Literal["bahdanau", "luong"] = "luong"
    input_feeding: bool = Field(False, description="Luong order: feed the last attentional vector back")
    initial_state: Literal["backward", "final", "zeros"] = Field(
        "final", description="what the first decoder state is made from"
    )


class AttentionSection(Section):
    """Attention score: a registered name, `none`, or the dotted path of a class of one's own."""

    score: str = Field("general", min_length=1)
    options: dict[str, Any] = Field(default_factory=dict, description="arguments of the score's class")


class InitializationSection(Section):
    """Initial weights; biases start at 0 (an LSTM's forget gate at `forget_bias`)."""

    scheme: Literal["uniform", "xavier"] = "uniform"
    scale: Positive = Field(0.1, description="uniform: weights lie in [-scale, scale]")
    forget_bias: Number = 0.0


class ModelSection(Section):
    """Sizes and parts of the network."""

    embedding_size: Count = 256
    dropout: Probability = Field(0.2, description="on embeddings, between layers, before the output layer")
    tying: Literal["none", "target", "all"] = Field(
        "none", description="target: output = target embedding; all: = source embedding too"
    )
    encoder: EncoderSection = EncoderSection()
    decoder: DecoderSection = DecoderSection()
    attention: AttentionSection = AttentionSection()
    initialization: InitializationSection = InitializationSection()


class BatchSection(Section):
    """Length-bucketed batches."""

    size: Count = Field(64, description="sentences, or tokens of the longer side with padding")
    unit: Literal["sentences", "tokens"] = "sentences"
    accumulate: Count = Field(1, description="batches an update")


class OptimizerSection(Section):
    """Optimiser; see torch.optim."""

    name: Literal["adam", "adamw", "sgd"] = "adam"
    learning_rate: Positive = 0.001
    weight_decay: Annotated[Number, Field(ge=0)] = 0.0
    betas: tuple[Probability, Probability] = (0.9, 0.999)
    epsilon: Positive = 1e-8
    momentum: Probability = Field(0.0, description="sgd only")
    clip_norm: Positive | None = Field(1.0, description="largest norm of the whole gradient; null is off")


class ScheduleSection(Section):
    """Learning rate over time."""

    name: Literal["constant", "plateau", "inverse_sqrt", "cosine"] = "constant"
    warmup: NonNegative = Field(0, description="updates of linear warm-up; any schedule")
    factor: Annotated[Number, Field(gt=0, lt=1)] = Field(0.5, description="plateau: multiply by this")
    patience: NonNegative = Field(0, description="plateau: validations without gain that are let pass")
    floor: Share = Field(0.01, description="plateau, cosine: lowest share of the learning rate")


class TeacherForcingSection(Section):
    """How often the decoder is fed the reference instead of its own last word."""

    ratio: Share = Field(1.0, description="probability of feeding the reference, at the start")
    minimum: Share = Field(0.0, description="where a falling schedule ends")
    unit: Literal["sentence", "token"] = "sentence"
    schedule: Literal["constant", "linear", "inverse_sigmoid"] = "constant"
    updates: Count | None = Field(None, description="linear: its length; inverse_sigmoid: its k")


class ValidationSection(Section):
    """How often to validate, what counts as better, when to stop."""

    every: Count | None = Field(None, description="updates between validations; null: each epoch")
    metric: Metric = Field("bleu", description="chooses the best model and stops the run")
    patience: Count | None = Field(5, description="stop after so many validations without a new best; null never stops")


class TrainSection(Section):
    """One training run."""

    seed: NonNegative = 1
    epochs: Count = 20
    max_updates: Count | None = Field(None, description="stop after so many updates; null is off")
    batch: BatchSection = BatchSection()
    optimizer: OptimizerSection = OptimizerSection()
    schedule: ScheduleSection = ScheduleSection()
    teacher_forcing: TeacherForcingSection = TeacherForcingSection()
    label_smoothing: Probability = 0.0
    validation: ValidationSection = ValidationSection()
    device: str = Field("auto", pattern=r"^(auto|cpu|mps|cuda(:\d+)?)$")
    precision: Literal["float32", "bfloat16"] = Field("float32", description="bfloat16: autocast")
    threads: Count | None = Field(None, description="CPU threads; null leaves torch's choice")
    init_from: str | None = Field(None, description="model directory whose weights to start from")
    log_every: Count = Field(50, description="updates between lines of metrics.jsonl")


class DecodeSection(Section):
    """Search for a translation; the defaults of `nmt translate` and `nmt evaluate`."""

    beam_size: Count = 5
    length_penalty: Annotated[Number, Field(ge=0)] = Field(1.0, description="alpha of Wu et al. (2016)")
    batch_size: Count = Field(64, description="sentences")
    max_length: Count = Field(200, description="tokens of a translation, at most")
    replace_unknown: bool = Field(True, description="an unknown word becomes the source word attended most")


class Config(Section):
    """A whole experiment."""

    name: str = Field("experiment", pattern=r"^[\w.-]+$", description="names the data and run folders")
    data: DataSection = DataSection()
    text: TextSection = TextSection()
    model: ModelSection = ModelSection()
    train: TrainSection = TrainSection()
    decode: DecodeSection = DecodeSection()

    @property
    def data_directory(self) -> Path:
        """Where `nmt preprocess` writes and `nmt train` reads unless told otherwise."""
        return Path(self.data.directory or f"data/prepared/{self.name}")

    @property
    def run_directory(self) -> Path:
        """Where `nmt train` writes unless told otherwise."""
        return Path("runs") / self.name


class _Loader(yaml.SafeLoader):
    """YAML with the scalars of version 1.2: only true/false are booleans, 1e-3 is a number, no dates."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.rsplit(":", 1)[1] not in ("bool", "timestamp", "float")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(true|True|false|False)$"), list("tTfF"))


class _Dumper(yaml.SafeDumper):
    """Quotes whatever `_Loader` would not read as text."""


_FLOAT = re.compile(r"^[-+]?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][-+]?\d+)?$")
for _reader in (_Loader, _Dumper):
    _reader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+.0123456789"))

Place = tuple[str, ...]


@dataclass
class _Source:
    """Raw values of a config and where each was written."""

    values: dict[str, Any]
    places: dict[Place, str]

    def place_of(self, path: Place) -> str:
        for end in range(len(path), 0, -1):
            if path[:end] in self.places:
                return f"{self.places[path[:end]]}: "
        return ""


def _load_yaml(text: str, origin: str) -> _Source:
    places: dict[Place, str] = {}

    def build(loader: _Loader, node: yaml.Node, path: Place) -> Any:
        places[path] = f"{origin}:{node.start_mark.line + 1}" if origin else "--set"
        if isinstance(node, yaml.MappingNode):
            result: dict[str, Any] = {}
            for key_node, value_node in node.value:
                key = str(key_node.value)
                if key in result:
                    raise ConfigError(
                        f"{origin}:{key_node.start_mark.line + 1}: {'.'.join((*path, key))}: written twice; keep one"
                    )
                result[key] = build(loader, value_node, (*path, key))
            return result
        if isinstance(node, yaml.SequenceNode):
            return [build(loader, item, (*path, str(index))) for index, item in enumerate(node.value)]
        return loader.construct_object(node)

    loader: _Loader | None = None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        values = {} if node is None else build(loader, node, ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{origin or '--set'}:{mark.line + 1}:{mark.column + 1}" if mark else (origin or "--set")
        raise ConfigError(f"{where}: not valid YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{origin or '--set'}: not valid YAML: {' '.join(str(error).split())}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{origin or '--set'}: not valid YAML: {error}") from None
    finally:
        if loader:
            loader.dispose()
    if not isinstance(values, dict):
        raise ConfigError(f"{origin or '--set'}: expected keys and values, found {values!r}")
    return _Source(values, places)


def _merge(base: _Source, top: _Source) -> _Source:
    def merge(below: dict[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
        result = dict(below)
        for key, value in above.items():
            old = result.get(key)
            result[key] = merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
        return result

    def replaces(path: Place) -> bool:
        value: Any = top.values
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return not isinstance(value, dict)

    replaced = [path for path in top.places if replaces(path)]
    kept = {p: v for p, v in base.places.items() if not any(p[: len(r)] == r for r in replaced)}
    return _Source(merge(base.values, top.values), {**kept, **top.places})


def find_config(name: str) -> Path:
    """Path of a config given as a path or as the name of a shipped config.

    Raises:
        ConfigError: There is neither such a file nor such a shipped config.
    """
    path = Path(name)
    if path.is_file():
        return path
    by_name = shipped(f"configs/{name}.yaml")
    if re.fullmatch(r"[\w-]+", name) and by_name.is_file():
        return by_name
    known = sorted(file.stem for file in shipped("configs").glob("*.yaml"))
    raise ConfigError(f"{name}: no such config file; shipped configs: {', '.join(known)}{_suggest(name, known)}")


def _read(path: Path, seen: tuple[Path, ...] = ()) -> _Source:
    resolved = path.resolve()
    if resolved in seen:
        raise ConfigError(f"{path}: extends itself through {' -> '.join(p.name for p in (*seen, resolved))}")
    try:
        source = _load_yaml(path.read_text(encoding="utf-8-sig"), str(path))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    parent = source.values.pop("extends", None)
    source.values.setdefault("name", path.stem)
    if parent is None:
        return source
    if not isinstance(parent, str):
        raise ConfigError(f"{source.place_of(('extends',))}extends: expected one path or name, found {parent!r}")
    beside = path.parent / parent
    parent_path = beside if beside.is_file() else find_config(parent)
    return _merge(_read(parent_path, (*seen, resolved)), source)


def _suggest(key: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""


def _known_keys(path: Place) -> list[str]:
    section: type[BaseModel] = Config
    for part in path:
        annotation = section.model_fields[part].annotation if part in section.model_fields else None
        if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
            return []
        section = annotation
    return list(section.model_fields)


def _describe(error: Mapping[str, Any], path: Place) -> str:
    if error["type"] == "extra_forbidden":
        known = _known_keys(path[:-1])
        suggestion = _suggest(path[-1], known)
        return f"unknown key{suggestion or '; known here: ' + ', '.join(known)}"
    found = error["input"]
    message = error["msg"][0].lower() + error["msg"][1:]
    if isinstance(found, dict) and error["type"] != "model_type":
        return str(message)
    if error["type"] == "model_type":
        message = "should hold keys of its own"
    return f"{message}, found {found!r}"


def _validate(source: _Source) -> Config:
    try:
        config = Config.model_validate(source.values)
    except ValidationError as error:
        problems = []
        for item in error.errors():
            path = tuple(str(part) for part in item["loc"])
            problems.append((path, _describe(item, path)))
        raise _config_error(source, problems) from None
    problems = list(_cross_check(config))
    if problems:
        raise _config_error(source, problems)
    return config


def _config_error(source: _Source, problems: Sequence[tuple[Place, str]]) -> ConfigError:
    lines = [f"{source.place_of(path)}{'.'.join(path)}: {message}" for path, message in problems]
    return ConfigError("\n".join(dict.fromkeys(lines)))


def _cross_check(config: Config) -> list[tuple[Place, str]]:
    """Combinations that cannot work, each with the key to change."""
    from nmt.model.attention import check_score  # the registry of scores knows which sizes each can take

    problems: list[tuple[Place, str]] = []
    model, text, train = config.model, config.text, config.train
    encoder_size = model.encoder.hidden_size * (2 if model.encoder.bidirectional else 1)
    attention: Place = ("model", "attention")
    try:
        score = check_score(model.attention.score, model.decoder.hidden_size, encoder_size)
    except ConfigError as error:
        problems.append(((*attention, "score"), str(error)))
    else:
        problems += check_options(score, model.attention.options, (*attention, "options"))
    if model.decoder.order == "bahdanau" and model.decoder.input_feeding:
        problems.append(
            (
                ("model", "decoder", "input_feeding"),
                "belongs to Luong order; Bahdanau order feeds the context anyway",
            )
        )
    if model.decoder.initial_state == "backward" and not model.encoder.bidirectional:
        problems.append((("model", "decoder", "initial_state"), "backward needs model.encoder.bidirectional: true"))
    if model.tying == "all" and not text.vocabulary.joint:
        problems.append((("model", "tying"), "all needs text.vocabulary.joint: true"))
    if text.vocabulary.joint and text.tokenizer == "subword" and not text.subword.joint:
        problems.append((("text", "vocabulary", "joint"), "with subwords needs text.subword.joint: true"))
    if train.schedule.name == "inverse_sqrt" and train.schedule.warmup == 0:
        problems.append((("train", "schedule", "warmup"), "inverse_sqrt needs a number of warm-up updates"))
    forcing = train.teacher_forcing
    if forcing.schedule != "constant" and forcing.updates is None:
        problems.append((("train", "teacher_forcing", "updates"), f"{forcing.schedule} needs a number of updates"))
    if forcing.schedule != "constant" and forcing.minimum > forcing.ratio:
        problems.append((("train", "teacher_forcing", "minimum"), f"is above the ratio {forcing.ratio}"))
    if config.data.cleaning.min_length > config.data.cleaning.max_length:
        problems.append((("data", "cleaning", "min_length"), "is above max_length"))
    if config.data.source and len(config.data.source) not in (1, 2, 4, 6):
        problems.append((("data", "source"), f"takes 1, 2, 4 or 6 files, found {len(config.data.source)}"))
    return problems


def check_options(part: Callable[..., Any] | None, options: Mapping[str, Any], path: Place) -> list[tuple[Place, str]]:
    """Hold `options` against the keyword-only arguments of a pluggable part's constructor.

    Args:
        part: Class whose constructor takes the options, or None for a part without any.
        options: What the config gives.
        path: Place of `options` in the config.

    Returns:
        A (place, message) for each unknown, missing or mistyped option.
    """
    signature = inspect.signature(part, eval_str=True).parameters.values() if part else []
    accepted = {p.name: p for p in signature if p.kind is inspect.Parameter.KEYWORD_ONLY}
    problems: list[tuple[Place, str]] = []
    for name, value in options.items():
        if name not in accepted:
            known = f"; known here: {', '.join(accepted)}" if accepted else "; it takes no options"
            problems.append(((*path, name), f"unknown option{_suggest(name, list(accepted)) or known}"))
        elif accepted[name].annotation is not inspect.Parameter.empty:
            try:
                TypeAdapter(accepted[name].annotation).validate_python(value, strict=True)
            except ValidationError as error:
                message = error.errors()[0]["msg"]
                problems.append(((*path, name), f"{message[0].lower()}{message[1:]}, found {value!r}"))
    problems += [
        ((*path, name), "is required")
        for name, parameter in accepted.items()
        if parameter.default is inspect.Parameter.empty and name not in options
    ]
    return problems


def load_config(name: str, overrides: Sequence[str] = ()) -> Config:
    """Read a config file or a shipped config, with `section.key=value` overrides.

    Args:
        name: Path of a YAML file, or the name of a shipped config.
        overrides: `section.key=value`, the value parsed as YAML; later ones win.

    Raises:
        ConfigError: One line for each problem: file and line, key, what was found, what is allowed.
    """
    source = _read(find_config(name))
    for override in overrides:
        path, separator, value = override.partition("=")
        keys = tuple(path.strip().split("."))
        if not separator or not all(keys):
            raise ConfigError(f"--set {override}: expected section.key=value")
        loaded = _load_yaml(f"value: {value}", "")
        parsed: Any = loaded.values.get("value")
        places = {(*keys, *place[1:]): f"--set {path.strip()}" for place in loaded.places if place}
        for key in reversed(keys):
            parsed = {key: parsed}
        source = _merge(source, _Source(parsed, places))
    return _validate(source)


def parse_config(text: str, origin: str) -> Config:
    """Read a resolved config, as `dump_config` wrote it into a data or model directory."""
    return _validate(_load_yaml(text, origin))


def dump_config(config: Config) -> str:
    """The whole config as YAML, every default written out."""
    return yaml.dump(config.model_dump(mode="json"), Dumper=_Dumper, sort_keys=False, allow_unicode=True)


def differing_keys(first: Section, second: Section, prefix: str = "") -> list[str]:
    """Paths of the keys in which two sections of one kind differ, with both values."""
    result: list[str] = []
    for key in type(first).model_fields:
        a, b = getattr(first, key), getattr(second, key)
        if isinstance(a, Section) and isinstance(b, Section):
            result += differing_keys(a, b, f"{prefix}{key}.")
        elif a != b:
            result.append(f"{prefix}{key} ({a!r} there, {b!r} here)")
    return result
