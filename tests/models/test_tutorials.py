"""The networks of well-known tutorials, counted weight by weight as their texts describe them."""

import pytest

from nmt.config import load_config
from nmt.models.build import build_model

WORDS = 100


def gates(number: int, inputs: int, size: int) -> int:
    """Weights of a recurrent layer: matrices and biases of each gate, on the input and on the state."""
    return number * size * (inputs + size + 2)


COUNTS = {
    # GRU of 128 units; the GRU of the decoder reads [embedding; context]; a linear layer on its output alone.
    "tutorial_course": [
        2 * WORDS * 128,
        gates(3, 128, 128) + gates(3, 128 + 128, 128),
        128 * 128 + 128 * 128 + 128,  # v^T tanh(W s + U h), without biases
        WORDS * (128 + 1),
    ],
    # LSTM of 256 units; otherwise the same.
    "tutorial_bahdanau": [
        2 * WORDS * 256,
        gates(4, 256, 256) + gates(4, 256 + 256, 256),
        256 * 256 + 256 * 256 + 256,
        WORDS * (256 + 1),
    ],
    # The LSTM reads embeddings; a linear layer on [h; c].
    "tutorial_luong_concat": [
        2 * WORDS * 256,
        gates(4, 256, 256) + gates(4, 256, 256),
        256 * 256 + 256 * 256 + 256,
        WORDS * (256 + 256 + 1),
    ],
    # The same with an LSTM of 64 units in each direction under it, whose states of both directions are attended.
    "tutorial_aligned": [
        2 * WORDS * 256,
        2 * gates(4, 256, 64) + gates(4, 256, 256),
        256 * 256 + 256 * 128 + 256,
        WORDS * (256 + 128 + 1),
    ],
}


@pytest.mark.parametrize("name", COUNTS)
def test_a_tutorials_network_has_the_weights_of_its_text(name: str) -> None:
    model = build_model(load_config(name).model, WORDS, WORDS)
    assert sum(weights.numel() for weights in model.parameters()) == sum(COUNTS[name])


def test_the_course_says_another_number() -> None:
    """It says about 49,700; embeddings and output layer alone have 38,500."""
    assert sum(COUNTS["tutorial_course"]) == 318_692
