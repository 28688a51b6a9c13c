"""The sections of `model`: encoders and decoders of each family, and their common parts."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal, Protocol, runtime_checkable

from pydantic import Field

from nmt.config.attention_sections import AttentionSection
from nmt.config.fields import (
    Automatic,
    Conflict,
    Flag,
    Heads,
    Kinds,
    Layers,
    Number,
    Positions,
    Positive,
    Probability,
    Section,
    Units,
    differences,
    key,
)


class Family(Protocol):
    """The questions that sections of encoders and of decoders answer, whatever their family."""

    @property
    def kind(self) -> str:
        """Its name in a config."""

    @property
    def family(self) -> str:
        """The name of a model whose encoder and decoder are of this family."""

    @property
    def summary(self) -> str:
        """Its layers and sizes in words."""


@runtime_checkable
class EncoderFamily(Family, Protocol):
    """The questions that the section of an encoder answers, whatever its family: a new one has all of this."""

    @property
    def output_size(self) -> int:
        """Size of an encoder state."""

    @property
    def states(self) -> tuple[str, ...]:
        """States that a decoder can begin with."""


@runtime_checkable
class DecoderFamily(Family, Protocol):
    """The questions that the section of a decoder answers, whatever its family: a new one has all of this."""

    @property
    def hidden_size(self) -> int:
        """Size of a state."""

    @property
    def own_attention(self) -> bool:
        """True if it attends in its own way, so that the config's attention says nothing but the dropout."""

    @property
    def query_time(self) -> str:
        """The state that attends: `before` the last word is read, or `after` it."""

    @property
    def readout(self) -> str:
        """What the output layer reads, as in `RecurrentDecoderSection.readout`."""

    @property
    def traits(self) -> tuple[str, str]:
        """How it attends, and what it feeds back, in words; an empty text is nothing."""

    def attends_by(self, given: AttentionSection) -> AttentionSection:
        """The attention to the source: that of the config, or its own."""

    def lacking(self, encoder: "EncoderSection", above: str) -> Iterator[Conflict]:
        """Properties that the decoder needs of an encoder without them; `above` is the path of the model section."""


def _several(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


class RecurrentSection(Section):
    """Keys of encoder and decoder."""

    family: ClassVar[str] = "recurrent"
    """The name of a model whose encoder and decoder are of this family."""
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

    def conflicts(self, above: str) -> Iterator[Conflict]:
        """Settings that need several layers, with only one."""
        if self.num_layers == 1:
            for name, value in _NEED_LAYERS.items():
                if getattr(self, name, None) == value:
                    yield name, f"{str(value).lower()} needs {above}num_layers: 2 or more"


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
    """The name of a model whose encoder and decoder are of this family."""
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

    def conflicts(self, above: str) -> Iterator[Conflict]:
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

    def attends_by(self, given: AttentionSection) -> AttentionSection:
        """The attention of the config."""
        return given

    def lacking(self, encoder: EncoderSection, above: str) -> Iterator[Conflict]:
        """Properties that the decoder needs of an encoder without them."""
        if self.initial_state == "copy" and encoder.kind == "recurrent":
            layers = self.cell, self.num_layers, self.hidden_size
            if (encoder.cell, encoder.num_layers, encoder.output_size) != layers or encoder.layer_norm == "cell":
                needed = f"{_several(self.num_layers, f'{self.cell} layer')}, states of {self.hidden_size}"
                message = f"copy needs an encoder of {needed}, and no layer_norm: cell; set both so, or set final"
                yield "decoder.initial_state", message
        elif self.initial_state not in encoder.states:
            lacking = f"{self.initial_state} needs a state that {encoder.kind} encoders lack"
            message = f"{lacking}; it can be {' or '.join(encoder.states)}"
            if "final" in encoder.states:
                message = f"backward needs {above}encoder.bidirectional: true"
            yield "decoder.initial_state", message

    def conflicts(self, above: str) -> Iterator[Conflict]:
        """Settings that do not go with the order, or with one layer."""
        yield from super().conflicts(above)
        if self.order == "bahdanau" and self.input_feeding:
            yield "input_feeding", "belongs to Luong order; Bahdanau order feeds the context anyway"
        if self.order == "luong" and self.context_to == "all" and not self.input_feeding:
            message = f"Luong order feeds nothing back without {above}input_feeding: true; set that, or order: bahdanau"
            yield "context_to", message
        if self.order == "luong" and self.readout in ("maxout", "state"):
            message = f"{self.readout} belongs to Bahdanau order; Luong order computes an attentional vector"
            yield "readout", message


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

    def lacking(self, encoder: EncoderSection, above: str) -> Iterator[Conflict]:
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
        """The kind of model, in a word."""
        return self.encoder.family if self.encoder.family == self.decoder.family else "hybrid"

    @property
    def readout_size(self) -> int:
        """Size of the output layer's input; a layer can give it that of the embeddings, where these are tied."""
        state = self.decoder.hidden_size
        word = self.embedding_size if self.decoder.query_time == "before" else 0
        given = {"state": state, "linear": state + self.encoder.output_size + word}
        return given.get(self.decoder.readout, state if self.tying == "none" else self.embedding_size)

    @property
    def mechanism(self) -> AttentionSection:
        """The attention to the source: that of the config, or the decoder's own."""
        return self.decoder.attends_by(self.attention)

    def conflicts(self, above: str) -> Iterator[Conflict]:
        """Properties that decoder and attention need of an encoder without them, and attention that is not used."""
        yield from self.decoder.lacking(self.encoder, above)
        if self.tying != "none" and self.readout_size != self.embedding_size:
            sizes = f"an embedding of {self.embedding_size}, but the output layer reads {self.readout_size} units"
            yield "tying", f"{self.tying} needs equal sizes, found {sizes}; set none, or {above}decoder.readout: plain"
        if self.decoder.own_attention:
            default = AttentionSection(dropout=self.attention.dropout)
            for path, unused, _ in differences(default, self.attention):
                value = "null" if unused is None else unused
                message = (
                    f"is for recurrent decoders; with {self.decoder.kind}, which has heads of its own, set {value}"
                )
                yield f"attention.{path}", message
        elif self.attention.score == "none" and "final" not in self.encoder.states:
            yield "attention.score", f"none needs a final state, which {self.encoder.kind} encoders lack"


DROPOUT = ("dropout", "embedding_dropout", "output_dropout", "memory_dropout")
"""Keys of the model section that matter only in training."""
