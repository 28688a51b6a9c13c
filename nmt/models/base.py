"""The interfaces of encoders and decoders."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar

import torch
from torch import Tensor, nn

from nmt.corpus.batching import Batch
from nmt.layers.attention.attention import Attention
from nmt.layers.attention.source_memory import AttentionDetails
from nmt.layers.layout import Layout
from nmt.layers.output import OutputLayer
from nmt.text.vocabulary import BOS_ID

WordChooser = Callable[[int, Tensor], Tensor]
"""Chooses input words in training: ids [B] for a position (1 or later), given the logits [B, V] of the previous one."""


class Task(nn.Module, ABC):
    """The part of a model that training needs."""

    @abstractmethod
    def forward(self, batch: Batch, choose: WordChooser | None = None, label_smoothing: float = 0.0) -> Tensor:
        """Cross-entropy summed over the real target positions, in nats, and whatever is added to it.

        Args:
            batch: Pairs.
            choose: Chooses the input word of each decoder step; None is always the reference.
            label_smoothing: Share of the probability that is spread evenly over all words.

        Returns:
            A scalar.
        """

    @property
    @abstractmethod
    def uniform_loss(self) -> float:
        """Loss of guessing, in nats per token: a model that never gets below it has learnt nothing."""

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return next(self.parameters()).device


class EncoderOutput(NamedTuple):
    """The encoded sources.

    Attributes:
        states: Encoder states, [B, S, D], 0 on padding.
        mask: True at real tokens, [B, S].
        lengths: True lengths, [B].
        final_state: A summary of the source, [B, final_size]: for a recurrent encoder, the last state of the forward
            direction and, if bidirectional, the backward state at the first word. None if the encoder has none.
        backward_state: The backward direction's state at the first word, [B, backward_size]; None if there is none.
        last_states: The last states of every layer, hidden and of an LSTM the cell's too, [L, B, D] each, with both
            directions joined; none unless a decoder copies them.
    """

    states: Tensor
    mask: Tensor
    lengths: Tensor
    final_state: Tensor | None = None
    backward_state: Tensor | None = None
    last_states: tuple[Tensor, ...] = ()


class Cut(NamedTuple):
    """The words of a batch whose vectors are 0.

    Attributes:
        src: True at words of `Batch.src`, [B, S].
        tgt_in: True at words of `Batch.tgt_in`, [B, T].
    """

    src: Tensor
    tgt_in: Tensor


class EncoderDropout(NamedTuple):
    """Probabilities of dropping a unit, in training.

    Attributes:
        inner: Between layers, or on the output of sublayers.
        embedding: On embeddings.
        output: On the encoder states, but not on the final state.
    """

    inner: float = 0.0
    embedding: float = 0.0
    output: float = 0.0


class Encoder(nn.Module, ABC):
    """Encodes sources. Padding never changes a state."""

    output_size: int
    """Size of an encoder state, D."""
    final_size: int = 0
    """Size of the final state; 0 without one."""
    backward_size: int = 0
    """Size of the backward state; 0 without one."""
    max_length: int | None = None
    """Longest source that it can read, in tokens with EOS; None: any."""

    @abstractmethod
    def forward(self, src: Tensor, lengths: Tensor, cut: Tensor | None = None) -> EncoderOutput:
        """Encode padded sources.

        Args:
            src: Ids that end in EOS, padded on the right, [B, S].
            lengths: True lengths with EOS, at least 1, [B].
            cut: True at words whose vector is 0, [B, S]; None cuts none.
        """


class DecoderMemory(Protocol):
    """The result of a decoder's work on sources. It belongs to sentences: hypotheses share it, nothing reorders it."""

    def select(self, sentences: Tensor) -> Self:
        """The memory of the sentences with these indices, which a search still works on."""

    @classmethod
    def join(cls, memories: Sequence[Self]) -> Self:
        """The memory of the sentences of several searches, one after another."""


class DecoderState(Protocol):
    """The state that a decoder carries from one target word to the next. It belongs to hypotheses: one row each."""

    def select(self, rows: Tensor, layout: Layout) -> Self:
        """The state of the hypotheses in these rows, perhaps repeated, which belong to sentences as `layout` says.

        Sentences stay in order; those that have no row may be gone.
        """

    @classmethod
    def join(cls, states: Sequence[Self], layout: Layout) -> Self:
        """The rows of several searches one after another, which belong to sentences as `layout` says.

        The searches have read the same number of words.
        """


class DecoderWeights(Protocol):
    """A decoder's weights in the form that the steps of a loop use."""

    @property
    def output(self) -> nn.Module:
        """The output layer, prepared."""


class Head(NamedTuple):
    """The name of an attention head: its layer and its number there, from 0."""

    layer: int
    number: int

    def __str__(self) -> str:
        return f"{self.layer + 1}.{self.number + 1}"


class DecoderOutput(NamedTuple):
    """All positions of known targets.

    Attributes:
        readouts: Vectors before the output layer, [B, T, readout size].
        alignments: Attention of all heads, in the order of `Decoder.heads`, [B, T, heads, S]; 0 on padding.
        penalty: Attention's term of the loss at each position, [B, T].
    """

    readouts: Tensor
    alignments: Tensor
    penalty: Tensor


Memory = TypeVar("Memory", bound=DecoderMemory)
State = TypeVar("State", bound=DecoderState)
Weights = TypeVar("Weights", bound=DecoderWeights)


class Decoder(nn.Module, ABC, Generic[Memory, State, Weights]):
    """Predicts target words one after another: `start` once, `step` for each word; or `forward` for known targets.

    A decoder implements `heads`, `attention`, `start`, `advance`, `prepare` and `forward`, which must equal repeated
    steps.
    """

    output: OutputLayer
    """From a readout to the logits of all words."""
    max_length: int | None = None
    """Longest target that it can write, in tokens with EOS; None: any."""
    parts: ClassVar[Mapping[str, str]] = {"output": "output"}
    """Part of the model in reports, by the prefix of a weight's name; the other weights count as `decoder`."""

    @property
    @abstractmethod
    def heads(self) -> tuple[Head, ...]:
        """The attention heads that `forward` returns, layer by layer."""

    @property
    @abstractmethod
    def attention(self) -> Attention:
        """The attention that stands for the whole in search, heat maps, links and the replacement of unknown words."""

    @property
    def chosen_heads(self) -> slice:
        """The heads of `attention` among `heads`; a step returns their alignments."""
        return slice(None)

    @abstractmethod
    def start(self, encoded: EncoderOutput) -> tuple[Memory, State]:
        """The memory of the sources, and the state before the first word, with one row for each sentence."""

    @abstractmethod
    def prepare(self, num_words: int = 1, num_models: int = 1) -> Weights:
        """The weights for the steps of one loop, discarded after it: they do not see updates of the parameters.

        Args:
            num_words: Words that the loop will read at least: above 1 only in evaluation, where tables of all words can
                pay.
            num_models: Models that share the memory for such tables.
        """

    @abstractmethod
    def advance(self, words: Tensor, memory: Memory, state: State, weights: Weights) -> tuple[Tensor, Tensor, State]:
        """Read one word in every row; `step` without the output layer.

        Args:
            words: Ids of the last words, [R].
            memory: Memory of the sentences.
            state: State before the step.
            weights: Result of `prepare`.

        Returns:
            Readouts [R, readout size], alignment [R, heads of one layer, S] and new state.
        """

    @abstractmethod
    def forward(
        self,
        tgt_in: Tensor,
        encoded: EncoderOutput,
        choose: WordChooser | None = None,
        cut: Tensor | None = None,
    ) -> DecoderOutput:
        """Decode all positions of known targets.

        Args:
            tgt_in: Target ids that start with BOS, [B, T].
            encoded: The encoded sources.
            choose: Chooses the input word of each step; None uses `tgt_in`.
            cut: True at words of `tgt_in` whose vector is 0, [B, T]; None cuts none, as does `choose`.
        """

    def step(self, words: Tensor, memory: Memory, state: State, weights: Weights) -> tuple[Tensor, Tensor, State]:
        """Read one word in every row; see `advance`.

        Returns:
            Logits [R, V], alignment [R, heads of one layer, S] and new state.
        """
        readout, alignment, state = self.advance(words, memory, state, weights)
        return weights.output(readout), alignment, state

    def unroll(
        self, tgt_in: Tensor, memory: Memory, state: State, choose: WordChooser | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """`forward` as a loop over `advance`.

        Returns:
            Readouts [B, T, readout size], alignments [B, T, heads of one layer, S] and input words [B, T].
        """
        weights = self.prepare()
        words = torch.full_like(tgt_in[:, 0], BOS_ID)
        readouts = list[Tensor]()
        alignments = list[Tensor]()
        inputs = list[Tensor]()
        for position in range(tgt_in.size(1)):
            if choose is None:
                words = tgt_in[:, position]
            elif position:
                with torch.no_grad():
                    words = choose(position, weights.output(readouts[-1]))
            readout, alignment, state = self.advance(words, memory, state, weights)
            readouts.append(readout)
            alignments.append(alignment)
            inputs.append(words)
        return torch.stack(readouts, dim=1), torch.stack(alignments, dim=1), torch.stack(inputs, dim=1)

    def inspect(self, tgt_in: Tensor, encoded: EncoderOutput) -> tuple[DecoderOutput, AttentionDetails]:
        """`forward`, and the details of `attention` for the first of the sources."""
        with self.attention.recording() as calls:
            output: DecoderOutput = self(tgt_in, encoded)
        final = None if encoded.final_state is None else encoded.final_state[:1]
        memory = self.attention.memorize(encoded.states[:1], final, encoded.mask[:1], encoded.lengths[:1])
        return output, self.attention.explain(calls, memory)
