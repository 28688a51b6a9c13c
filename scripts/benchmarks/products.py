"""The matrix products of the standard models: their shapes, and their floating-point operations per target token."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

GATES = 4  # of an LSTM
Kind = Literal["luong", "bahdanau", "transformer"]


@dataclass(frozen=True)
class Standard:
    """The sizes that determine the products of a batch.

    Attributes:
        kind: `luong` (general score), `bahdanau` (additive score) or `transformer`.
        src_length: Mean source tokens, including EOS.
        tgt_length: Mean target tokens, including EOS.
        vocabulary: Target words, including special ones.
        embedding: Units of a word's vector, and of every layer of a Transformer.
        hidden: Units of a recurrent decoder; each of the encoder's two directions has half of them.
        batch: Sentences.
        layers: Layers of each side of a Transformer.
        heads: Heads of each of its attentions.
        feed_forward: Units inside its feed-forward sublayers.
    """

    kind: Kind
    src_length: float
    tgt_length: float
    vocabulary: int
    embedding: int = 256
    hidden: int = 512
    batch: int = 64
    layers: int = 4
    heads: int = 4
    feed_forward: int = 1024


@dataclass(frozen=True)
class Product:
    """A product [rows, inner] x [inner, columns] of the forward pass over one batch.

    Attributes:
        name: What it computes.
        rows: Rows of all its calls together.
        inner: Inner dimension.
        columns: Columns of the result.
        calls: Calls that share the rows; a recurrence has one per step.
        batch: Matrices per call: one per sentence in attention, otherwise 1.
    """

    name: str
    rows: float
    inner: float
    columns: float
    calls: float = 1.0
    batch: int = 1

    @property
    def operations(self) -> float:
        """Floating-point operations of all calls: 2 for each multiplication with its addition."""
        return 2 * self.rows * self.inner * self.columns

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Matrices in a call, rows, inner length and columns of each; whole numbers."""
        rows = self.rows / (self.calls * self.batch)
        return self.batch, max(1, round(rows)), max(1, round(self.inner)), max(1, round(self.columns))


def forward_products(model: Standard) -> list[Product]:
    """The products of a forward pass without padding; without that of the initial decoder state."""
    if model.kind == "transformer":
        return transformer_products(model)
    hidden, half, embedding = model.hidden, model.hidden // 2, model.embedding
    src, tgt = model.batch * model.src_length, model.batch * model.tgt_length  # tokens
    steps = model.tgt_length
    products = [
        Product("encoder, input", 2 * src, embedding, GATES * half, 2),
        Product("encoder, recurrence", 2 * src, half, GATES * half, 2 * model.src_length),
        Product("keys", src, hidden, hidden),
        Product("decoder, input", tgt, embedding, GATES * hidden),
        Product("decoder, recurrence", tgt, hidden, GATES * hidden, steps),
    ]
    if model.kind == "bahdanau":
        products.append(Product("decoder, context", tgt, hidden, GATES * hidden, steps))
        products.append(Product("query", tgt, hidden, hidden, steps))
        products.append(Product("scores", tgt * model.src_length, hidden, 1, steps))
        products.append(Product("context", tgt, model.src_length, hidden, steps, model.batch))
        products.append(Product("readout", tgt, 2 * hidden + embedding, hidden))
    else:
        products.append(Product("scores", tgt, hidden, model.src_length, 1, model.batch))
        products.append(Product("context", tgt, model.src_length, hidden, 1, model.batch))
        products.append(Product("readout", tgt, 2 * hidden, hidden))
    products.append(Product("output layer", tgt, hidden, model.vocabulary))
    return products


def transformer_products(model: Standard) -> list[Product]:
    """The products of a Transformer's forward pass without padding; causal attention also computes what it masks."""
    size, inner, calls = model.embedding, model.feed_forward, model.layers
    src, tgt = model.batch * model.src_length, model.batch * model.tgt_length  # tokens

    def linear(name: str, tokens: float, inputs: int, outputs: int) -> Product:
        return Product(name, calls * tokens, inputs, outputs, calls)

    def attention(name: str, reading: float, read: float) -> list[Product]:
        number, head = model.heads * model.batch, size / model.heads
        rows = calls * number * reading
        scores = Product(f"{name}, scores", rows, head, read, calls, number)
        return [scores, Product(f"{name}, contexts", rows, read, head, calls, number)]

    products = []
    for side, tokens, length in (("encoder", src, model.src_length), ("decoder", tgt, model.tgt_length)):
        products.append(linear(f"{side}, queries, keys, values", tokens, size, 3 * size))
        products += attention(f"{side}, self-attention", length, length)
        products.append(linear(f"{side}, heads together", tokens, size, size))
        products.append(linear(f"{side}, feed-forward, inner", tokens, size, inner))
        products.append(linear(f"{side}, feed-forward, outer", tokens, inner, size))
    products.append(linear("attention, keys, values", src, size, 2 * size))
    products.append(linear("attention, queries", tgt, size, size))
    products += attention("attention", model.tgt_length, model.src_length)
    products.append(linear("attention, heads together", tgt, size, size))
    products.append(Product("output layer", tgt, size, model.vocabulary))
    return products


def training_operations(model: Standard) -> float:
    """Floating-point operations per target token in training, matrix products only.

    With the decoder's size D, embeddings of size E, S source and T target tokens per sentence, G gates and V words, the
    forward pass takes, per target token,

        S/T * (2*2*(E + D/2)*G*D/2 + 2*D*D)      encoder, both directions, and keys
        + 2*(E + D)*G*D + 2*2*S*D                cell; scores and context
        + 2*2*D*D + 2*D*V                        readout and output layer
        [+ 2*D*G*D + 2*D*D + 2*E*D]              context as input, query, word in the readout: Bahdanau's order only

    of a Transformer with L layers of E units and F inside the feed-forward sublayers

        S/T * L*(2*4*E*E + 2*2*S*E + 2*2*E*F)    encoder: four projections, scores and contexts, feed-forward
        + S/T * L*2*2*E*E                        keys and values of the source
        + L*(2*4*E*E + 2*2*T*E + 2*2*E*F)        decoder, as the encoder
        + L*(2*2*E*E + 2*2*S*E) + 2*E*V          attention to the source; output layer

    and training three times as much: the backward pass has two products of the same size, one for the gradient of each
    factor. Padding, elementwise functions, softmax, optimiser and the initial decoder state are not counted.
    """
    tokens = model.batch * model.tgt_length
    return 3 * sum(product.operations for product in forward_products(model)) / tokens


def weighted_rate(products: Sequence[Product], rates: Sequence[float]) -> float:
    """Operations per second if each product runs at its own rate: all operations / total time."""
    seconds = sum(product.operations / rate for product, rate in zip(products, rates, strict=True))
    return sum(product.operations for product in products) / seconds
