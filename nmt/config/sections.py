"""The typed, frozen sections of a config: every key with its default, description and, for numbers, unit."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationError,
    WithJsonSchema,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError, core_schema

from nmt.system.errors import ConfigError, name_differences
from nmt.system.messages import Parameter


@dataclass(frozen=True)
class AtMost:
    """The upper bound of a number, and the reason for it."""

    limit: int
    reason: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Check the bound after everything else."""
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Add the bound for editors."""
        return {**handler(schema), "maximum": self.limit}

    def _check(self, value: int) -> int:
        if value > self.limit:
            context = {"limit": f"{self.limit:,}", "reason": self.reason}
            raise PydanticCustomError("at_most", "should be at most {limit} ({reason})", context)
        return value


AUTO = "auto"


def is_auto(value: object) -> bool:
    """True if the amount of text decides a value in its place."""
    return value == AUTO


class Automatic:
    """Also allows `auto` instead of a number, until `resolve_auto` puts one in its place."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Check everything but `auto`."""
        as_it_is = core_schema.plain_serializer_function_ser_schema(lambda value: value)
        return core_schema.no_info_wrap_validator_function(
            lambda value, check: value if is_auto(value) else check(value), handler(source), serialization=as_it_is
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Tell editors of `auto`."""
        return {"anyOf": [{"const": AUTO, "type": "string"}, handler(schema)]}


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


_ANY = 1_000_000_000
MAX_BEAM_SIZE = 1000
MAX_DECODE_BATCH = 100_000
"""Sentences translated at once."""
Count = Annotated[int, Field(strict=True, ge=1), AtMost(_ANY, "more than any corpus or run has")]
NonNegative = Annotated[int, Field(strict=True, ge=0), AtMost(_ANY, "more than any corpus or run has")]
Units = Annotated[Count, AtMost(16_384, "one layer would have over 4 GB of weights")]
Layers = Annotated[Count, AtMost(64, "deeper networks cannot be trained")]
Heads = Annotated[Count, AtMost(1024, "each head needs units of its own")]
Positions = Annotated[Count, AtMost(1_000_000, "no line is longer")]
Columns = Annotated[Count, AtMost(10_000, "no line has more")]
Tokens = Annotated[Count, AtMost(10_000_000, "their embeddings would not fit into memory")]
Processes = Annotated[Count, AtMost(1024, "no machine has more cores to run them on")]
FileCount = Annotated[Count, AtMost(10_000, "each is a file as large as the model")]
Hypotheses = Annotated[Count, AtMost(MAX_BEAM_SIZE, "each hypothesis costs as much as a sentence")]
Watched = Annotated[NonNegative, AtMost(100, "their attention is stored at each validation")]
Flag = Annotated[bool, Field(strict=True)]
Language = Annotated[str, Field(pattern=r"^[\w-]+$", min_length=1, max_length=35)]  # BCP 47 (RFC 5646, section 4.4.1)
Seed = Annotated[int, Field(strict=True, ge=0, le=4_294_967_295)]  # the range of random number generators
Number = Annotated[float, Field(strict=True)]
Probability = Annotated[Number, Field(ge=0, lt=1)]
Share = Annotated[Number, Field(ge=0, le=1)]
Positive = Annotated[Number, Field(gt=0)]
Betas = tuple[Probability, Probability]
Script = Literal[
    "latin", "cyrillic", "greek", "arabic", "hebrew", "devanagari", "thai", "hangul", "japanese", "chinese"
]
Files = Annotated[
    tuple[str, ...],
    BeforeValidator(_as_tuple),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]
ValidationMetric = Literal["loss", "bleu", "chrf"]
"""What may choose the best model: the loss, or a key of `METRICS` in nmt/evaluation/metrics.py."""


def key(default: Any, *, unit: str) -> Any:
    """A number of a section.

    Args:
        default: Value if a config does not set it; ... if it has to.
        unit: Its unit, "1" for a pure number.
    """
    return Field(default, json_schema_extra={"unit": unit})


Conflict = tuple[str, str]
"""The dotted key to change, and what is wrong; {} there is the section's path."""


class Section(BaseModel):
    """Base class of every section: unknown keys are rejected and values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)

    def conflicts(self) -> Iterator[Conflict]:
        """Combinations of this section's own values that cannot work, with keys relative to it."""
        return iter(())


@dataclass(frozen=True)
class Kinds:
    """Tells the kinds of a section apart by the value of one key; a section without that key is of the first kind.

    Every kind is a class in a union; the key is a field of each with its own value as the default. Null is short for
    a first kind called `none`.

    Attributes:
        key: The key.
        description: What the section is for.
    """

    key: str
    description: str

    def find(self, kinds: tuple[type[Section], ...], values: Any) -> type[Section] | None:
        """The kind of a section's values; None if there is no such kind."""
        if not isinstance(values, dict) or self.key not in values:
            return kinds[0]
        return next((kind for kind in kinds if self.name(kind) == values[self.key]), None)

    def name(self, kind: type[Section]) -> Any:
        """What a kind is called in a config."""
        return kind.model_fields[self.key].default

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Validate a section only by the class of its kind, so that places and messages are those of its keys."""
        kinds: tuple[type[Section], ...] = get_args(source) or (source,)

        def validate(values: Any, _: Callable[[Any], Any]) -> Section:
            if isinstance(values, kinds):
                return values
            if values is None and self.name(kinds[0]) == "none":
                return kinds[0]()
            if kind := self.find(kinds, values):
                return kind.model_validate(values)
            *others, last = [repr(self.name(kind)) for kind in kinds]
            expected = f"{', '.join(others)} or {last}" if others else last
            unknown = InitErrorDetails(
                type="literal_error", loc=(self.key,), input=values[self.key], ctx={"expected": expected}
            )
            raise ValidationError.from_exception_data(self.key, [unknown])

        return core_schema.no_info_wrap_validator_function(validate, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """The schemas of all kinds, for editors: all but the first must be named."""
        whole = handler(schema)
        first, *others = whole.get("anyOf", [whole])
        named = [{**other, "required": [self.key]} for other in others]
        name = handler.resolve_ref_schema(first)["properties"][self.key]["default"]
        null = [{"type": "null"}] if name == "none" else []
        return {"anyOf": [first, *named, *null]}


def kinds_of(field: FieldInfo) -> tuple[Kinds | None, tuple[type[Section], ...]]:
    """The classes of a key that is a section: one, or one for every kind, with what tells them apart.

    A key that is a value has none.
    """
    named = get_origin(field.annotation) is dict  # sections by names of the user's own are one value
    parts = () if named else get_args(field.annotation) or (field.annotation,)
    mark = next((mark for mark in field.metadata if isinstance(mark, Kinds)), None)
    return mark, tuple(part for part in parts if isinstance(part, type) and issubclass(part, Section))


def find_section(field: FieldInfo, values: Any) -> type[Section] | None:
    """The class of a section with the given values; None for a key that is a value, or an unknown kind."""
    mark, kinds = kinds_of(field)
    return mark.find(kinds, values) if mark else kinds[0] if kinds else None


class CleaningSection(Section):
    """How sentences are repaired and which pairs are dropped, before anything else.

    The first five keys change text, also that of sentences to translate; the others drop training pairs.
    """

    unicode: Literal["nfc", "nfkc", "none"] = "nfc"
    """Unicode normal form."""
    control_characters: Flag = True
    """Remove control, zero-width and direction characters and soft hyphens; decode those of Windows-1252."""
    html_entities: Flag = True
    """Replace &amp; and the like by the characters they stand for."""
    quotes: Flag = False
    """Replace typographic quotation marks by straight ones."""
    dashes: Flag = False
    """Replace typographic dashes and hyphens by -."""
    min_length: Positions = key(1, unit="words")
    """Minimum words (separated by spaces) on either side."""
    max_length: Positions = key(100, unit="words")
    """Maximum words (separated by spaces) on either side."""
    max_characters: Positions | None = key(1000, unit="characters")
    """Maximum characters on either side, for scripts without spaces; null is off."""
    max_ratio: Annotated[Number, Field(ge=1)] | None = key(9.0, unit="1")
    """Maximum characters of the longer side per character of the shorter; null is off."""
    min_letters: Share = key(0.3, unit="share")
    """Minimum share of letters among the characters that are not spaces."""
    copies: Flag = False
    """Keep pairs whose two sides are the same text."""
    same_numbers: Flag = False
    """Drop pairs whose sides have other numbers."""
    scripts: dict[str, Script] = {}
    """Scripts by language code, {en: latin, ru: cyrillic}: drop pairs most of whose letters on a side are others."""
    duplicates: Literal["drop", "drop_casefold", "keep"] = "drop"
    """What to do with repeated pairs; drop_casefold: ignore case when comparing."""

    def conflicts(self) -> Iterator[Conflict]:
        """Lengths of which there are none."""
        if self.min_length > self.max_length:
            yield "min_length", "is above max_length"


class SplitSection(Section):
    """Leak-free splits; of ready-made ones, train_size takes the first training pairs; other sizes are ignored."""

    train_size: Count | None = key(None, unit="pairs")
    """Size of the training split; null takes all that is left."""
    valid_size: Annotated[NonNegative, Automatic()] = key(1000, unit="sentences")
    """Distinct source sentences to validate on."""
    test_size: Annotated[NonNegative, Automatic()] = key(1000, unit="sentences")
    """Distinct source sentences to test on."""
    seed: Seed = key(1, unit="1")
    """Random choice of the sentences of each split."""


class AugmentSection(Section):
    """Copies of training pairs in forms that people type; of each, the share of the pairs that can have such a copy."""

    no_final_stop: Share = key(0.0, unit="share")
    """Both sides without their final stop."""
    all_caps: Share = key(0.0, unit="share")
    """Both sides in capitals."""
    title_case: Share = key(0.0, unit="share")
    """The source as a headline: Every Word with a Capital; both sides without their final stop."""
    lowercase_first: Share = key(0.0, unit="share")
    """The source with a small first letter."""
    short: Share = key(0.0, unit="share")
    """Both sides of a source of at most three words without their final stop, the source with a small first letter."""
    numbers: Share = key(0.0, unit="share")
    """Other digits, where both sides have the same numbers."""
    names: Share = key(0.0, unit="share")
    """A made-up word for a capitalised one that both sides have."""
    words: Share = key(0.0, unit="share")
    """Single words with their translations, of a lexicon from the training pairs."""
    joined: Share = key(0.0, unit="share")
    """The pair and others after it, chosen at random, as one long pair."""
    joined_words: Positions = key(100, unit="words")
    """Maximum words (separated by spaces) on either side of a long pair; lengths spread evenly up to it."""


class ExtraSection(Section):
    """A further corpus, only for training."""

    source: Files
    """Paths or URLs, as data.source without splits."""
    weight: Positive = key(1.0, unit="1")
    """How often a pair is in an epoch: 2 is twice; with 0.5, half of the pairs are in all."""
    tag: Annotated[str, Field(pattern="^<[a-z0-9]+>$")] | None = None
    """First token of its sources, from which the model knows the corpus."""


class DataSection(Section):
    """Where the sentences come from."""

    source: Files = ()
    """Paths, relative to the current folder (unlike `extends`, which is relative to its file), or URLs: one
    tab-separated, CSV or TMX file; two, four or six parallel files (source and target of train, valid, test), where
    corpus is corpus.en and corpus.de; or the three files of a Tatoeba export (source sentences, target sentences,
    links)."""
    extra: dict[str, ExtraSection] = {}
    """Further corpora, only for training, by names of your own: {web: {source: FILE, weight: 0.5, tag: <web>}}. A pair
    is `weight` times in an epoch, and `tag`, if there is one, is the first token of its source."""
    weight: Count = key(1, unit="1")
    """How often a training pair of the corpus itself is in an epoch, such as 10 beside a far larger corpus in extra."""
    test: Files = ()
    """A public test set, as source, in place of split.test_size; pairs that share a sentence with it are left out."""
    columns: tuple[Columns, Columns] = key((1, 2), unit="column")
    """Columns of source and target, from 1."""
    src_language: Language | None = "en"
    """Language code of the source in the files; null, as in base, has to be set."""
    tgt_language: Language | None = "de"
    """Language code of the target in the files; null, as in base, has to be set."""
    reverse: Flag = False
    """Translate in the opposite direction: swap source and target."""
    first_lines: Count | None = key(None, unit="lines")
    """How much of the corpus, or of its training files, to read; null reads all."""
    licence: Annotated[str, Field(max_length=1000)] | None = None
    """Licence and origin of the corpus in source, for the cards of models trained on it."""
    max_malformed: Share = key(0.01, unit="share")
    """Maximum share of malformed lines to skip: too few columns, not UTF-8, over 1 MB."""
    drop_overlap: Flag = False
    """Ready-made splits: drop training pairs that share a sentence with valid or test."""
    repair_references: Flag = False
    """Ready-made valid and test: repair references as training text is; signatures of their scores say so."""
    directory: str | None = None
    """Where prepared data goes; null means data/prepared/NAME."""
    workers: Processes | None = key(None, unit="processes")
    """Processes that clean and tokenise; null uses every core for large corpora."""
    cleaning: CleaningSection = CleaningSection()
    split: SplitSection = SplitSection()
    augment: AugmentSection = AugmentSection()

    def conflicts(self) -> Iterator[Conflict]:
        """Files and columns that are not two sides."""
        if self.columns[0] == self.columns[1]:
            yield "columns", f"must be two different columns, found {self.columns[0]} twice"
        for key in ("src_language", "tgt_language"):
            code = getattr(self, key)
            if code is not None and code.isalpha() and len(code) > 3:
                yield key, f"must be a code, such as en for English, found {code!r}"
        if self.source and len(self.source) not in (1, 2, 3, 4, 6):
            yield "source", f"must be 1, 2, 3, 4 or 6 files, found {len(self.source)}"
        if self.test and len(self.source) > 3:
            yield "test", "is for a corpus without ready-made splits; give six files in source"
        unsplit = {"test": self.test, **{f"extra.{name}.source": corpus.source for name, corpus in self.extra.items()}}
        for path, files in unsplit.items():
            if len(files) > 3 or (path != "test" and not files):
                yield path, f"must be 1, 2 or 3 files, found {len(files)}"

    @property
    def file_languages(self) -> tuple[str, str]:
        """Codes of the languages of the files, which `reverse` does not swap.

        Raises:
            ConfigError: One is not set.
        """
        if self.src_language is None or self.tgt_language is None:
            codes = {"src_language": self.src_language, "tgt_language": self.tgt_language}
            missing = [f"data.{name}" for name, code in codes.items() if code is None]
            raise ConfigError(
                "{missing}: {verb} not set; add {settings}, with codes of languages such as fr",
                missing=" and ".join(missing),
                verb="is" if len(missing) == 1 else "are",
                settings=Parameter("overrides", dict.fromkeys(missing, "CODE")),
            )
        return self.src_language, self.tgt_language

    @property
    def languages(self) -> tuple[str, str]:
        """Codes of the source and the target language.

        Raises:
            ConfigError: One is not set.
        """
        languages = self.file_languages
        return languages[::-1] if self.reverse else languages


class SubwordSection(Section):
    """Subword segmentation, learnt only from the training split (SentencePiece)."""

    algorithm: Literal["bpe", "unigram"] = "bpe"
    """bpe (Sennrich et al., 2016) or unigram (Kudo, 2018)."""
    vocabulary_size: Annotated[Tokens, Automatic()] = key(8000, unit="pieces")
    """Pieces to learn, including SentencePiece's own three."""
    joint: Flag = False
    """One segmentation for both languages."""
    sample: Count = key(500_000, unit="sentences")
    """Maximum training sentences per side to learn from, evenly spaced."""


class VocabularySection(Section):
    """Which tokens get an id; counted only on the training split."""

    min_count: NonNegative = key(1, unit="occurrences")
    """Rarer tokens become unknown; 0 also keeps subwords that do not occur in training text."""
    max_size: Tokens | None = key(None, unit="tokens")
    """Keep the most frequent; null keeps all."""
    joint: Flag = False
    """One vocabulary for both languages."""


class TextSection(Section):
    """How text becomes tokens and back."""

    tokenizer: Literal["spacy", "subword", "whitespace"] = "subword"
    """spacy: words; subword: pieces of words; whitespace: text that is already tokenised."""
    lowercase: Flag = False
    """Lower-case all text; scores then ignore case as well."""
    tokenized: Flag = False
    """Subword: the text is already tokenised, and scored without further tokenisation (tok:none)."""
    subword: SubwordSection = SubwordSection()
    vocabulary: VocabularySection = VocabularySection()
    max_length: Positions = key(100, unit="tokens")
    """Maximum on either side of a training pair; longer ones are dropped."""

    def conflicts(self) -> Iterator[Conflict]:
        """Subwords that cannot have one vocabulary."""
        if self.vocabulary.joint and self.tokenizer == "subword" and not self.subword.joint:
            yield "vocabulary.joint", "with subwords needs {}subword.joint: true"


def _several(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


class RecurrentSection(Section):
    """Keys of encoder and decoder."""

    family: ClassVar[str] = "recurrent"
    """What a model is called whose encoder and decoder are of this family."""
    kind: Literal["recurrent"] = "recurrent"
    cell: Literal["gru", "lstm", "rnn"] = "lstm"
    """Recurrent cell; rnn: a plain one, tanh(W x + U h + b) (Elman, 1990)."""
    hidden_size: Units
    num_layers: Layers = key(1, unit="layers")
    """Stacked recurrent layers."""
    residual: Flag = False
    """Layers above the first add their input to their output (Wu et al., 2016)."""
    layer_norm: Literal["none", "layers", "cell"] = "none"
    """layers: on the input of layers above the first; cell: inside each cell, slower (Ba et al., 2016)."""

    @property
    def summary(self) -> str:
        """Layers and units in words."""
        return f"{_several(self.num_layers, 'layer')} of {self.hidden_size} {self.cell.upper()} units"

    def conflicts(self) -> Iterator[Conflict]:
        """What needs several layers, but has one."""
        if self.num_layers == 1:
            for name, value in _NEED_LAYERS.items():
                if getattr(self, name, None) == value:
                    yield name, f"{str(value).lower()} needs {{}}num_layers: 2 or more"


_NEED_LAYERS = {"residual": True, "layer_norm": "layers", "attend_from": "first", "context_to": "all"}


class RecurrentEncoderSection(RecurrentSection):
    """Recurrent layers."""

    hidden_size: Units = key(256, unit="units")
    """Size of a state in each direction."""
    bidirectional: Flag = True
    """Read the sentence in both directions."""

    @property
    def output_size(self) -> int:
        """Size of an encoder state."""
        return self.hidden_size * (2 if self.bidirectional else 1)

    @property
    def summary(self) -> str:
        """Layers, units and directions in words."""
        return f"{super().summary}, {'both directions' if self.bidirectional else 'one direction'}"

    @property
    def states(self) -> tuple[str, ...]:
        """States that a decoder can begin with."""
        return ("zeros", "final", "copy", "backward") if self.bidirectional else ("zeros", "final", "copy")


class TransformerSection(Section):
    """Keys of self-attentive encoders, and of decoders made of the same sublayers."""

    family: ClassVar[str] = "Transformer"
    """What a model is called whose encoder and decoder are of this family."""
    kind: str
    hidden_size: Units = key(256, unit="units")
    """Size of a state."""
    num_layers: Layers = key(4, unit="layers")
    """Layers, each of several sublayers with residual connections."""
    num_heads: Heads = key(4, unit="heads")
    """Heads of every attention."""
    feed_forward_size: Units = key(1024, unit="units")
    """Size inside feed-forward sublayers."""
    norm: Literal["pre", "post"] = "pre"
    """Normalise the input of sublayers (Nguyen & Salazar, 2019), or their sum with it (Vaswani et al., 2017)."""
    activation: Literal["relu", "gelu"] = "relu"
    """Activation inside feed-forward sublayers."""
    learned_positions: Positions | None = key(None, unit="tokens")
    """Learn a vector for each of so many positions, and refuse longer texts; null: sinusoids (Vaswani et al., 2017)."""

    @property
    def summary(self) -> str:
        """Layers, units and heads in words."""
        layers = _several(self.num_layers, "layer")
        heads = _several(self.num_heads, "head")
        return f"{layers} of {self.hidden_size} units, {self.kind}, {heads}, feed-forward {self.feed_forward_size:,}"

    def conflicts(self) -> Iterator[Conflict]:
        """Heads that do not divide the units."""
        if self.hidden_size % self.num_heads:
            yield "num_heads", f"{self.num_heads} heads do not divide the {self.hidden_size} units"


class SelfAttentionEncoderSection(TransformerSection):
    """The Transformer's encoder (Vaswani et al., 2017)."""

    kind: Literal["self_attention"] = "self_attention"
    states: ClassVar[tuple[str, ...]] = ("zeros",)
    """States that a decoder can begin with."""

    @property
    def output_size(self) -> int:
        """Size of an encoder state."""
        return self.hidden_size


EncoderSection = Annotated[
    RecurrentEncoderSection | SelfAttentionEncoderSection, Kinds("kind", "Encoder of the source.")
]


class RecurrentDecoderSection(RecurrentSection):
    """Recurrent layers; the order of attention and update, and what is fed back."""

    own_attention: ClassVar[bool] = False
    """True if it attends in its own way, so that the config's attention says nothing but the dropout."""
    hidden_size: Units = key(512, unit="units")
    """Size of a state."""
    order: Literal["bahdanau", "luong"] = "luong"
    """bahdanau: attend with the last state, then update; luong: update, then attend with the new one."""
    input_feeding: Flag = False
    """Luong order: feed the last attentional vector back."""
    initial_state: Literal["backward", "final", "copy", "zeros"] = "final"
    """Source of the first decoder state: the encoder's backward state at the first word, its final states, these as
    they are (Sutskever et al., 2014), or nothing."""
    attend_from: Literal["top", "first"] = "top"
    """Layer that attends; first as in Wu et al. (2016)."""
    context_to: Literal["first", "all"] = "first"
    """Layers whose input includes the context or, with input feeding, the attentional vector."""
    readout: Literal["plain", "maxout", "state", "linear"] = "plain"
    """What the output layer reads: a tanh layer of state, context and, in Bahdanau order, word; in that order maxout
    (Bahdanau et al., 2015, A.2.2) or only the state; linear: all of them as they are."""

    @property
    def query_time(self) -> str:
        """The state that attends: the one before the last word is read, or the one after it."""
        return "before" if self.order == "bahdanau" else "after"

    @property
    def traits(self) -> tuple[str, str]:
        """How it attends, and what it feeds back, in words; an empty text is nothing."""
        return f"{self.order.capitalize()}'s order", "input feeding" if self.input_feeding else ""

    def attends_by(self, given: "AttentionSection") -> "AttentionSection":
        """The attention of the config."""
        return given

    def lacking(self, encoder: EncoderSection) -> Iterator[Conflict]:
        """What the decoder needs of an encoder that lacks it."""
        if self.initial_state == "copy" and encoder.kind == "recurrent":
            own = self.cell, self.num_layers, self.hidden_size
            if (encoder.cell, encoder.num_layers, encoder.output_size) != own or encoder.layer_norm == "cell":
                needed = f"{_several(self.num_layers, f'{self.cell} layer')}, states of {self.hidden_size}"
                message = f"copy needs an encoder of {needed}, and no layer_norm: cell; set both so, or set final"
                yield "decoder.initial_state", message
        elif self.initial_state not in encoder.states:
            lacking = f"{self.initial_state} needs a state that {encoder.kind} encoders lack"
            message = f"{lacking}; it can be {' or '.join(encoder.states)}"
            if "final" in encoder.states:
                message = "backward needs {}encoder.bidirectional: true"
            yield "decoder.initial_state", message

    def conflicts(self) -> Iterator[Conflict]:
        """What does not go with the order, or with one layer."""
        yield from super().conflicts()
        if self.order == "bahdanau" and self.input_feeding:
            yield "input_feeding", "belongs to Luong order; Bahdanau order feeds the context anyway"
        if self.order == "luong" and self.context_to == "all" and not self.input_feeding:
            message = "Luong order feeds nothing back without {}input_feeding: true; set that, or order: bahdanau"
            yield "context_to", message
        if self.order == "luong" and self.readout in ("maxout", "state"):
            message = f"{self.readout} belongs to Bahdanau order; Luong order computes an attentional vector"
            yield "readout", message


class GlobalWindowSection(Section):
    """All positions."""

    name: Literal["global"] = "global"


class LocalWindowSection(Section):
    """Positions around one of them."""

    name: str
    radius: Positions = key(10, unit="tokens")
    """D, positions on each side."""


class MonotonicWindowSection(LocalWindowSection):
    """Positions around the current one."""

    name: Literal["local_m"] = "local_m"


class PredictiveWindowSection(LocalWindowSection):
    """Positions around a predicted one."""

    name: Literal["local_p"] = "local_p"


class HardWindowSection(Section):
    """One position, drawn in training."""

    name: Literal["hard"] = "hard"


WindowSection = Annotated[
    GlobalWindowSection | MonotonicWindowSection | PredictiveWindowSection | HardWindowSection,
    Kinds("name", "Which source positions a step may attend to (Luong et al., 2015, section 3)."),
]


class NormalizerSection(Section):
    """From scores to weights."""

    name: Literal["softmax", "sparsemax", "entmax15"] = "softmax"
    """sparsemax and entmax15 give weights of exactly 0 (package entmax)."""
    temperature: Annotated[Number, Field(ge=0.001, le=1000)] = key(1.0, unit="1")
    """Divides the scores: above 1 weights are more uniform."""


class NoPastSection(Section):
    """No memory."""

    name: Literal["none"] = "none"


class CoverageSection(Section):
    """The sum of all alignments so far."""

    name: Literal["coverage"] = "coverage"
    loss_weight: Annotated[Number, Field(ge=0, le=1000)] = key(0.0, unit="1")
    """Weight of the coverage loss (See et al., 2017)."""


class LocationSection(Section):
    """The last alignment, convolved."""

    name: Literal["location"] = "location"
    filters: Units = key(10, unit="features")
    """Features per position."""
    radius: Units = key(5, unit="tokens")
    """Positions on each side that a feature depends on."""


PastSection = Annotated[
    NoPastSection | CoverageSection | LocationSection,
    Kinds("name", "Memory of earlier alignments in the score; additive scores only."),
]


class AttentionSection(Section):
    """How the decoder reads the source; `nmt attentions` lists the mechanisms."""

    score: Annotated[str, Field(min_length=1, max_length=200)] = "general"
    """Additive (= concat), dot, general, location, scaled_dot, cosine, none (fixed context) or the dotted path of a
    class."""
    options: dict[str, Any] = Field({})
    """Arguments of the score's class."""
    heads: Heads = key(1, unit="heads")
    """If several, each has projections of its own."""
    head_size: Units | None = key(None, unit="units")
    """Size of a head; null divides the encoder states among them."""
    window: WindowSection = GlobalWindowSection()
    normalizer: NormalizerSection = NormalizerSection()
    past: PastSection = NoPastSection()
    dropout: Probability = key(0.0, unit="probability")
    """Probability of dropping an attention weight, in training."""


class TransformerDecoderSection(TransformerSection):
    """The Transformer's decoder (Vaswani et al., 2017), with multi-head attention of its own to the source."""

    kind: Literal["transformer"] = "transformer"
    own_attention: ClassVar[bool] = True
    """True if it attends in its own way, so that the config's attention says nothing but the dropout."""
    readout: ClassVar[str] = "plain"
    """What the output layer reads: a layer of the state."""
    query_time: ClassVar[str] = "after"
    """The state that attends: the one before the last word is read, or the one after it."""
    traits: ClassVar[tuple[str, str]] = ("in every layer", "")
    """How it attends, and what it feeds back, in words; an empty text is nothing."""

    def attends_by(self, given: AttentionSection) -> AttentionSection:
        """Its own attention to the source; only the dropout is taken from the config's."""
        return AttentionSection(score="scaled_dot", heads=self.num_heads, dropout=given.dropout)

    def lacking(self, encoder: EncoderSection) -> Iterator[Conflict]:
        """It needs nothing of an encoder but its states."""
        return iter(())


class SSRUDecoderSection(TransformerDecoderSection):
    """As transformer, with a simple recurrence in place of self-attention (Kim et al., 2019)."""

    kind: Literal["ssru"] = "ssru"  # type: ignore[assignment]


DecoderSection = Annotated[
    RecurrentDecoderSection | TransformerDecoderSection | SSRUDecoderSection,
    Kinds("kind", "Decoder, which writes the translation."),
]


class InitializationSection(Section):
    """Initial weights; biases start at 0 (an LSTM's forget gate at `forget_bias`)."""

    scheme: Literal["uniform", "xavier"] = "uniform"
    """Distribution of weights; xavier (Glorot & Bengio, 2010) leaves embeddings uniform."""
    scale: Annotated[Positive, Field(le=1000)] = key(0.1, unit="1")
    """Uniform: weights are in [-scale, scale]."""
    forget_bias: Annotated[Number, Field(ge=-1000, le=1000)] = key(0.0, unit="1")
    """Initial bias of an LSTM's forget gate."""


class ModelSection(Section):
    """Sizes and parts of the network."""

    embedding_size: Units = key(256, unit="units")
    """Size of a word's vector, source and target."""
    dropout: Annotated[Probability, Automatic()] = key(0.2, unit="probability")
    """Between layers, on embeddings, before the output layer."""
    embedding_dropout: Probability | None = key(None, unit="probability")
    """On embeddings; null: as dropout."""
    output_dropout: Probability | None = key(None, unit="probability")
    """Before the output layer; null: as dropout."""
    memory_dropout: Probability = key(0.0, unit="probability")
    """On the encoder states that attention reads."""
    tying: Literal["none", "target", "all"] = "none"
    """target: output = target embedding; all: = source embedding too."""
    output_norm: Annotated[Annotated[Positive, Field(le=100)] | None, Automatic()] = key(None, unit="1")
    """Norm of the readout and of words' vectors in the output layer (Nguyen & Chiang, 2018), about 5; null: any."""
    encoder: EncoderSection = RecurrentEncoderSection()
    decoder: DecoderSection = RecurrentDecoderSection()
    attention: AttentionSection = AttentionSection()
    initialization: InitializationSection = InitializationSection()

    @property
    def family(self) -> str:
        """What kind of model it is, in a word."""
        return self.encoder.family if self.encoder.family == self.decoder.family else "hybrid"

    @property
    def readout_size(self) -> int:
        """Size of what the output layer reads; a layer can give it that of the embeddings, where these are tied."""
        state = self.decoder.hidden_size
        word = self.embedding_size if self.decoder.query_time == "before" else 0
        given = {"state": state, "linear": state + self.encoder.output_size + word}
        return given.get(self.decoder.readout, state if self.tying == "none" else self.embedding_size)

    @property
    def mechanism(self) -> AttentionSection:
        """The attention to the source: that of the config, or the decoder's own."""
        return self.decoder.attends_by(self.attention)

    def conflicts(self) -> Iterator[Conflict]:
        """What decoder and attention need of an encoder that lacks it, and attention that is not used."""
        yield from self.decoder.lacking(self.encoder)
        if self.tying != "none" and self.readout_size != self.embedding_size:
            sizes = f"an embedding of {self.embedding_size}, but the output layer reads {self.readout_size} units"
            yield "tying", f"{self.tying} needs equal sizes, found {sizes}; set none, or {{}}decoder.readout: plain"
        if self.decoder.own_attention:
            default = AttentionSection(dropout=self.attention.dropout)
            for path, unused, _ in differences(default, self.attention):
                value = "null" if unused is None else str(unused).replace("{}", "{{}}")
                message = (
                    f"is for recurrent decoders; with {self.decoder.kind}, which has heads of its own, set {value}"
                )
                yield f"attention.{path}", message
        elif self.attention.score == "none" and "final" not in self.encoder.states:
            yield "attention.score", f"none needs a final state, which {self.encoder.kind} encoders lack"


DROPOUT = ("dropout", "embedding_dropout", "output_dropout", "memory_dropout")
"""Keys of the model section that matter only in training."""


class BatchSection(Section):
    """Length-bucketed batches."""

    size: Annotated[Count, Automatic()] = key(64, unit="sentences or tokens")
    """Sentences, or tokens of the longer side with padding: see unit."""
    unit: Literal["sentences", "tokens"] = "sentences"
    """What size counts."""
    accumulate: Count = key(1, unit="batches")
    """Batches whose gradients are combined in one update."""

    def conflicts(self) -> Iterator[Conflict]:
        """A number of sentences that is meant to be one of tokens."""
        if is_auto(self.size) and self.unit == "tokens":
            yield "size", "auto is a number of sentences; set a number of tokens"


class _Optimizer(Section):
    """Keys of every optimiser. Keys are named as the parameters of torch.optim, `lr` and `eps` written out."""

    name: str
    learning_rate: Positive = key(0.001, unit="1")
    """Step size at the peak of the schedule."""
    weight_decay: Annotated[Number, Field(ge=0)] = key(0.0, unit="1")
    """L2 penalty; adamw, muon: decoupled from the gradient."""
    clip_norm: Positive | None = key(1.0, unit="1")
    """Maximum norm of the whole gradient; null is off."""


class _Adam(_Optimizer):
    betas: Betas = key((0.9, 0.999), unit="1")
    """Decay of the running means of gradient and squared gradient."""
    epsilon: Positive = key(1e-8, unit="1")
    """Keeps the denominator from 0."""


class AdamSection(_Adam):
    """Adam (Kingma & Ba, 2015)."""

    name: Literal["adam"] = "adam"


class AdamWSection(_Adam):
    """Adam with decoupled weight decay (Loshchilov & Hutter, 2019)."""

    name: Literal["adamw"] = "adamw"


class SGDSection(_Optimizer):
    """Stochastic gradient descent."""

    name: Literal["sgd"] = "sgd"
    momentum: Probability = key(0.0, unit="1")
    """Decay of the running sum of gradients; 0 is off."""


class RMSpropSection(_Optimizer):
    """RMSprop (Hinton, 2012)."""

    name: Literal["rmsprop"] = "rmsprop"
    alpha: Probability = key(0.99, unit="1")
    """Decay of the running mean of the squared gradient."""
    epsilon: Positive = key(1e-8, unit="1")
    """Keeps the denominator from 0."""
    momentum: Probability = key(0.0, unit="1")
    """Decay of the running sum of gradients; 0 is off."""
    centered: Flag = False
    """Divide by an estimate of the gradient's standard deviation."""


class RAdamSection(_Adam):
    """Rectified Adam (Liu et al., 2020)."""

    name: Literal["radam"] = "radam"


class NAdamSection(_Adam):
    """Adam with Nesterov momentum (Dozat, 2016)."""

    name: Literal["nadam"] = "nadam"
    momentum_decay: Annotated[Number, Field(ge=0)] = key(0.004, unit="1")
    """How fast the momentum grows to its beta."""


class AdadeltaSection(_Optimizer):
    """Adadelta (Zeiler, 2012)."""

    name: Literal["adadelta"] = "adadelta"
    learning_rate: Positive = key(1.0, unit="1")
    """Step size at the peak of the schedule."""
    rho: Probability = key(0.9, unit="1")
    """Decay of the running means of squared gradient and squared step."""
    epsilon: Positive = key(1e-6, unit="1")
    """Keeps the denominator from 0."""


class MuonSection(_Adam):
    """Muon (Jordan et al., 2024) for matrices, AdamW with betas and epsilon for the other weights."""

    name: Literal["muon"] = "muon"
    momentum: Probability = key(0.95, unit="1")
    """Decay of the running sum of gradients; 0 is off."""
    nesterov: Flag = True
    """Nesterov momentum."""
    ns_steps: Annotated[Count, AtMost(99, "torch allows no more")] = key(5, unit="steps")
    """Steps of the iteration that makes an update orthogonal."""
    adjust_lr_fn: Literal["original", "match_rms_adamw"] = "match_rms_adamw"
    """How an update is scaled: by the ratio of the matrix's sides, or to the size of AdamW's (Liu et al., 2025)."""


_Optimizers = AdamSection | AdamWSection | SGDSection | RMSpropSection | RAdamSection | NAdamSection | AdadeltaSection
OptimizerSection = Annotated[_Optimizers | MuonSection, Kinds("name", "Optimiser; see torch.optim.")]


class _Schedule(Section):
    """Key of every schedule."""

    name: str
    warmup: NonNegative = key(0, unit="updates")
    """Linear warm-up at the start."""


class ConstantRateSection(_Schedule):
    """Stays as it is."""

    name: Literal["constant"] = "constant"


class PlateauRateSection(_Schedule):
    """Falls when validation stalls."""

    name: Literal["plateau"] = "plateau"
    factor: Annotated[Number, Field(gt=0, lt=1)] = key(0.5, unit="1")
    """Multiply by this."""
    patience: NonNegative = key(0, unit="validations")
    """Validations without improvement to wait."""
    floor: Share = key(0.01, unit="share")
    """Minimum share of the learning rate."""


class InverseRootRateSection(_Schedule):
    """Falls with the root of updates (Vaswani et al., 2017)."""

    name: Literal["inverse_sqrt"] = "inverse_sqrt"
    warmup: Count = key(..., unit="updates")
    """Linear warm-up at the start."""


class CosineRateSection(_Schedule):
    """Falls to `floor` over the run."""

    name: Literal["cosine"] = "cosine"
    floor: Share = key(0.01, unit="share")
    """Minimum share of the learning rate."""


ScheduleSection = Annotated[
    ConstantRateSection | PlateauRateSection | InverseRootRateSection | CosineRateSection,
    Kinds("name", "Learning rate over time."),
]


class _Forcing(Section):
    """Keys of all teacher forcing."""

    ratio: Share = key(1.0, unit="probability")
    """Initial probability of the reference."""
    unit: Literal["sentence", "token"] = "sentence"
    """Draw once per sentence or once per token."""
    schedule: str


class ConstantForcingSection(_Forcing):
    """Stays as it is."""

    schedule: Literal["constant"] = "constant"


class _FallingForcing(_Forcing):
    minimum: Share = key(0.0, unit="probability")
    """Final probability."""

    def conflicts(self) -> Iterator[Conflict]:
        """A probability that does not fall."""
        if self.minimum > self.ratio:
            yield "minimum", f"is above the ratio {self.ratio}"


class LinearForcingSection(_FallingForcing):
    """Falls in a line (Bengio et al., 2015)."""

    schedule: Literal["linear"] = "linear"
    updates: Count = key(..., unit="updates")
    """Time until the minimum."""


class SigmoidForcingSection(_FallingForcing):
    """Falls with k / (k + exp(update / k)) (Bengio et al., 2015)."""

    schedule: Literal["inverse_sigmoid"] = "inverse_sigmoid"
    updates: Count = key(..., unit="updates")
    """K."""


TeacherForcingSection = Annotated[
    ConstantForcingSection | LinearForcingSection | SigmoidForcingSection,
    Kinds("schedule", "How often the decoder reads the reference instead of its own last word."),
]


class NoConsistencySection(Section):
    """No such term."""

    name: Literal["none"] = "none"


class SimCutSection(Section):
    """Predictions for a sentence pair and for itself with some words cut (Gao et al., 2022)."""

    name: Literal["simcut"] = "simcut"
    weight: Annotated[Number, Field(ge=0, le=1000)] = key(3.0, unit="1")
    """Weight of the divergence of the predictions."""
    share: Probability = key(0.05, unit="probability")
    """Probability of cutting a word: its vector is 0, on both sides; the end of a source and the start of a target
    stay."""
    stop_gradient: Flag = False
    """True if only the predictions for the cut pair learn from the divergence."""


ConsistencySection = Annotated[
    NoConsistencySection | SimCutSection,
    Kinds("name", "A term of the loss: how far predictions for changed input are from those for the input as it is."),
]


class ValidationSection(Section):
    """How often to validate, what counts as better, when to stop."""

    every: Count | None = key(None, unit="updates")
    """Time between validations; null: each epoch."""
    metric: ValidationMetric = "bleu"
    """Chooses the best model and stops the run."""
    patience: Count | None = key(5, unit="validations")
    """Stop after so many validations without a new best; null never stops."""


class NoiseSection(Section):
    """Noise on training text, drawn for each sentence in each epoch; only the seed decides."""

    bpe_dropout: Probability = key(0.0, unit="probability")
    """BPE subwords: probability of skipping a merge (Provilkov et al., 2020)."""
    unigram_alpha: Positive | None = key(None, unit="1")
    """Unigram subwords: sample segmentations with probability ~ P^alpha (Kudo, 2018); null is off."""
    src_word_dropout: Probability = key(0.0, unit="probability")
    """Probability of making a source token unknown."""
    tgt_word_dropout: Probability = key(0.0, unit="probability")
    """The same for the decoder's input."""


class CheckpointSection(Section):
    """Checkpoints, from which an interrupted run continues, and models to keep."""

    every: Count | None = key(None, unit="updates")
    """Time between checkpoints; null: only minutes decides."""
    minutes: Positive | None = key(5.0, unit="minutes")
    """Maximum time without a checkpoint; null: only every decides."""
    keep_last: FileCount = key(2, unit="checkpoints")
    """Newest checkpoints to keep."""
    keep_best: FileCount = key(1, unit="models")
    """Best models to keep; more than 1 are also stored in RUN/models."""


class TrainSection(Section):
    """One training run."""

    seed: Seed = key(1, unit="1")
    """Seed of every random choice of the run."""
    epochs: Annotated[Count, Automatic()] = key(20, unit="epochs")
    """Passes over the training split."""
    max_updates: Count | None = key(None, unit="updates")
    """Stop after so many updates; null is off."""
    batch: BatchSection = BatchSection()
    optimizer: OptimizerSection = AdamSection()
    schedule: ScheduleSection = ConstantRateSection()
    teacher_forcing: TeacherForcingSection = ConstantForcingSection()
    label_smoothing: Probability = key(0.0, unit="share")
    """Share of the target's probability that is spread over all words."""
    consistency: ConsistencySection = NoConsistencySection()
    ema_decay: Probability | None = key(None, unit="1")
    """Decay of a moving average of the weights, which is validated and stored in their place; null is off."""
    noise: NoiseSection = NoiseSection()
    validation: ValidationSection = ValidationSection()
    checkpoint: CheckpointSection = CheckpointSection()
    watch: Watched = key(0, unit="sentences")
    """Validation sentences whose attention is stored at each validation, and shown in live.html; see `nmt attention
    --training`."""
    tensorboard: Flag = False
    """Write curves, a sample and the attention of watched sentences for TensorBoard (extra `tensorboard`)."""
    max_skipped: NonNegative = key(20, unit="updates")
    """Maximum consecutive updates to skip because loss or gradient is not finite."""
    device: Annotated[str, Field(pattern=r"^(auto|cpu|mps|cuda(:\d+)?)$")] = "auto"
    """auto, cpu, mps, cuda or cuda:N; auto is the fastest available."""
    precision: Literal["auto", "float32", "bfloat16"] = "float32"
    """bfloat16: autocast; auto: bfloat16 if the device's products are clearly faster in it."""
    threads: Processes | None = key(None, unit="threads")
    """CPU threads; null is torch's choice."""
    log_every: Count = key(50, unit="updates")
    """Time between lines of metrics.jsonl."""

    def conflicts(self) -> Iterator[Conflict]:
        """Two readings of a pair with words of the model's own."""
        forcing = self.teacher_forcing
        lowest = forcing.ratio if forcing.schedule == "constant" else forcing.minimum
        if self.consistency.name != "none" and lowest < 1:
            reads = "compares two readings of the same words, but the decoder also reads its own"
            yield "consistency.name", f"{self.consistency.name} {reads}; set {{}}teacher_forcing.ratio: 1, or none here"


class SamplingSection(Section):
    """Words are drawn from the model's distribution instead of searched for."""

    temperature: Annotated[Number, Field(ge=0.01, le=100)] | None = key(None, unit="1")
    """Draw words, with log-probabilities divided by this: below 1 prefers probable words; null searches."""
    top_k: Tokens | None = key(None, unit="words")
    """Draw from so many of the most probable words; null from all."""
    top_p: Annotated[Number, Field(gt=0, le=1)] = key(1.0, unit="1")
    """Draw from the fewest most probable words that have this probability together."""
    seed: Seed = key(1, unit="1")
    """With the words of a sentence it decides what is drawn for it."""


class DecodeSection(Section):
    """Search for a translation; the defaults of `nmt translate` and `nmt evaluate`."""

    beam_size: Hypotheses = key(5, unit="hypotheses")
    """Hypotheses kept at each step; 1 is greedy."""
    length_penalty: Annotated[Number, Field(ge=0, le=100)] = key(1.0, unit="1")
    """Alpha of Wu et al. (2016)."""
    length_norm: Literal["wu", "average"] = "wu"
    """Scores are divided by ((5 + length) / 6) ** length_penalty, or by length ** length_penalty."""
    coverage_penalty: Annotated[Number, Field(ge=0, le=100)] = key(0.0, unit="1")
    """Beta of Wu et al. (2016): lowers the score of translations that leave source words out."""
    batch_size: Annotated[Count, AtMost(MAX_DECODE_BATCH, "they are in memory together")] = key(128, unit="sentences")
    """Sentences translated at once; fewer if they are long."""
    max_length: Positions = key(200, unit="tokens")
    """Maximum length of a translation."""
    max_length_ratio: Annotated[Number, Field(gt=0, le=1000)] = key(3.0, unit="tokens per token")
    """Maximum length per source token, on top of 10 tokens."""
    min_length: Annotated[NonNegative, AtMost(1_000_000, "no line is longer")] = key(0, unit="tokens")
    """Minimum length of a translation."""
    min_length_ratio: Annotated[Number, Field(ge=0, le=1000)] = key(0.0, unit="tokens per token")
    """Minimum length per source token."""
    no_repeat_ngram_size: Positions | None = key(None, unit="tokens")
    """No sequence of so many tokens twice in a translation; null allows them."""
    sampling: SamplingSection = SamplingSection()
    precision: Literal["float32", "bfloat16"] = "float32"
    """Number format of the products; bfloat16 is faster."""
    replace_unknown: Flag = True
    """Replace an unknown word by the source word attended most."""


class ParentSection(Section):
    """A trained model to start from; `parent: RUN` is short for its `run`."""

    run: str | None = None
    """Run or model directory whose sizes, kinds and weights to use; null: new weights."""
    pieces: Literal["same", "own"] = "same"
    """same: also its vocabularies and text settings; own: learnt from the training split, where those that both have
    keep its vectors."""


class Config(Section):
    """A complete experiment."""

    name: Annotated[str, Field(pattern=r"^[\w-][\w.-]*$", max_length=100)] = "experiment"
    """Name of the data and run folders; the config file's name if omitted."""
    parent: ParentSection = ParentSection()
    data: DataSection = DataSection()
    text: TextSection = TextSection()
    model: ModelSection = ModelSection()
    train: TrainSection = TrainSection()
    decode: DecodeSection = DecodeSection()

    def __repr__(self) -> str:
        codes = [self.data.src_language or "?", self.data.tgt_language or "?"]
        model = self.model
        languages = "-".join(codes[::-1] if self.data.reverse else codes)
        return f"<Config {self.name}: {languages}, {model.family}, {model.mechanism.score} attention>"

    @property
    def data_directory(self) -> Path:
        """Default output of `nmt preprocess` and input of `nmt train`."""
        return Path(self.data.directory or f"data/prepared/{self.name}")

    @property
    def run_directory(self) -> Path:
        """Default output of `nmt train`."""
        return Path("runs") / self.name


def differences(first: Section, second: Section, prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Path and both values of the keys in which two sections differ; of different kinds, the keys that both have."""
    for name in type(first).model_fields:
        a = getattr(first, name)
        b = getattr(second, name, getattr(first, name))
        if isinstance(a, Section) and isinstance(b, Section):
            yield from differences(a, b, f"{prefix}{name}.")
        elif a != b:
            yield f"{prefix}{name}", a, b


def differing_keys(first: Section, second: Section, prefix: str = "") -> list[str]:
    """Paths of the keys in which two sections differ, with both values; see `differences`."""
    return name_differences(differences(first, second, prefix))
