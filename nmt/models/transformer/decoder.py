"""The Transformer's decoder: any way of reading the words so far, attention to the source, feed-forward sublayers."""

from collections.abc import Sequence
from typing import NamedTuple, Self

import torch
from torch import Tensor, nn

from nmt.config import TransformerSection
from nmt.layers.attention.attention import Attention
from nmt.layers.attention.source_memory import Memory
from nmt.layers.kernels.dropout import Dropout
from nmt.layers.kernels.stepwise import for_steps
from nmt.layers.layout import Layout
from nmt.layers.output import OutputLayer
from nmt.layers.positions import PositionedEmbedding
from nmt.models.base import Decoder, DecoderOutput, DecoderState, EncoderOutput, Head, WordChooser
from nmt.models.transformer.cache import Prefixes
from nmt.models.transformer.layer import DecoderLayer


class TransformerMemory(NamedTuple):
    """The source as each layer's attention sees it."""

    layers: tuple[Memory, ...]

    def select(self, sentences: Tensor) -> Self:
        """See `nmt.models.base.DecoderMemory`."""
        return self._replace(layers=tuple(memory.select(sentences) for memory in self.layers))

    @classmethod
    def join(cls, memories: Sequence[Self]) -> Self:
        """See `nmt.models.base.DecoderMemory`."""
        layers = zip(*(memory.layers for memory in memories), strict=True)
        return cls(tuple(Memory.join(layer) for layer in layers))


class TransformerState(NamedTuple):
    """The state that a Transformer's decoder carries from one target token to the next.

    Attributes:
        position: Position of the next word, from 0.
        histories: State of each layer, of the words so far.
        prefixes: Which words each hypothesis has.
    """

    position: int
    histories: tuple[DecoderState, ...]
    prefixes: Prefixes

    def select(self, rows: Tensor, layout: Layout) -> Self:
        """See `nmt.models.base.DecoderState`."""
        histories = tuple(history.select(rows, layout) for history in self.histories)
        return self._replace(histories=histories, prefixes=self.prefixes.select(rows, layout))

    @classmethod
    def join(cls, states: Sequence[Self], layout: Layout) -> Self:
        """See `nmt.models.base.DecoderState`."""
        layers = zip(*(state.histories for state in states), strict=True)
        histories = tuple(layer[0].join(layer, layout) for layer in layers)
        prefixes = Prefixes.join([state.prefixes for state in states], layout)
        return cls(states[0].position, histories, prefixes)


class TransformerDecoder(Decoder[TransformerMemory, TransformerState, "TransformerDecoder"]):
    """Decoder of the Transformer (Vaswani et al., 2017, section 3.1). Its weights for a loop are a copy of itself.

    The attention of one layer stands for the whole: that before the last, whose alignments are the best (Garg et al.,
    2019, section 4.1).

    Args:
        section: Sizes and kinds.
        embedding: Target embedding.
        layers: From the embeddings up.
        output: Output layer from readout to logits.
        dropout: On the sum of embedding and position.
    """

    def __init__(
        self,
        section: TransformerSection,
        embedding: nn.Embedding,
        layers: Sequence[DecoderLayer],
        output: OutputLayer,
        dropout: float,
    ) -> None:
        super().__init__()
        self.embedding = PositionedEmbedding(embedding, section.learned_positions, section.hidden_size)
        self.embedding_dropout = Dropout(dropout)
        self.layers: Sequence[DecoderLayer] = nn.ModuleList(layers)  # type: ignore[assignment]
        self.max_length = section.learned_positions
        self.size = size = section.hidden_size
        # Pre-norm never normalises the sum itself (Nguyen & Salazar, 2019, section 2.1).
        norm = nn.LayerNorm(size) if section.norm == "pre" else nn.Identity()
        resize = nn.Identity() if size == output.in_features else nn.Linear(size, output.in_features, bias=False)
        self.readout = nn.Sequential(norm, resize)
        self.output = output
        self.aligned = max(section.num_layers - 2, 0)

    @property
    def heads(self) -> tuple[Head, ...]:
        """The heads that attend to the source, of all layers."""
        layers = enumerate(self.layers)
        return tuple(Head(number, head) for number, layer in layers for head in range(layer.attention.num_heads))

    @property
    def attention(self) -> Attention:
        """That of the layer which stands for the whole."""
        return self.layers[self.aligned].attention

    @property
    def chosen_heads(self) -> slice:
        """See `Decoder.chosen_heads`."""
        return slice(*(layer * self.attention.num_heads for layer in (self.aligned, self.aligned + 1)))

    def start(self, encoded: EncoderOutput) -> tuple[TransformerMemory, TransformerState]:
        """See `Decoder.start`."""
        source = encoded.states, encoded.final_state, encoded.mask, encoded.lengths
        memory = TransformerMemory(tuple(layer.attention.memorize(*source) for layer in self.layers))
        rows = encoded.states.new_empty(len(encoded.states), self.size)
        histories = tuple(layer.history.start(rows) for layer in self.layers)
        return memory, TransformerState(0, histories, Prefixes.start(len(rows), rows.device))

    def prepare(self, num_words: int = 1, num_models: int = 1) -> "TransformerDecoder":
        """See `Decoder.prepare`."""
        return for_steps(self)

    def advance(
        self, words: Tensor, memory: TransformerMemory, state: TransformerState, weights: "TransformerDecoder"
    ) -> tuple[Tensor, Tensor, TransformerState]:
        """See `Decoder.advance`."""
        rows = self.embedding_dropout(self.embedding(words.unsqueeze(1), state.position)).squeeze(1)  # [R, D]
        prefixes = state.prefixes.append()
        allowed = prefixes.allowed
        histories = list[DecoderState]()
        alignments = list[Tensor]()
        for layer, source, history in zip(weights.layers, memory.layers, state.histories, strict=True):
            rows, alignment, history = layer.step(rows, source, history, prefixes.layout, allowed)
            histories.append(history)
            alignments.append(alignment)
        state = TransformerState(state.position + 1, tuple(histories), prefixes)
        return self.readout(rows), alignments[self.aligned], state

    def forward(
        self,
        tgt_in: Tensor,
        encoded: EncoderOutput,
        choose: WordChooser | None = None,
        cut: Tensor | None = None,
    ) -> DecoderOutput:
        """See `Decoder.forward`."""
        memory, state = self.start(encoded)
        if choose is not None:  # no gradient passes through the choice of words, so that it can come first
            with torch.no_grad():
                _, _, tgt_in = self.unroll(tgt_in, memory, state, choose)
        states = self.embedding_dropout(self.embedding(tgt_in, cut=cut))  # [B, T, D]
        layers = list[Tensor]()
        for layer, source in zip(self.layers, memory.layers, strict=True):
            states, alignments = layer(states, source)
            layers.append(alignments)
        # L times [B, T, heads, S] -> [B, T, L * heads, S]
        return DecoderOutput(self.readout(states), torch.cat(layers, dim=2), states.new_zeros(states.shape[:2]))
