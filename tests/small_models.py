"""Small models with random weights, of every kind of attention."""

from typing import Any, NamedTuple, TypeVar

import torch
from torch import nn

from nmt.config import AttentionSection, ModelSection
from nmt.layers.attention.score import find_score
from nmt.models.build import build_model
from nmt.models.seq2seq import Seq2Seq
from nmt.text.vocabulary import EOS_ID

ORDERS = (("bahdanau", False), ("luong", False), ("luong", True))
LOCAL = {"name": "local_m", "radius": 1}
MECHANISMS = {
    "local_m": AttentionSection(score="dot", window=LOCAL),
    "local_p": AttentionSection(window={"name": "local_p", "radius": 1}),
    "hard": AttentionSection(window={"name": "hard"}),
    "coverage": AttentionSection(score="additive", past={"name": "coverage", "loss_weight": 0.5}),
    "location_features": AttentionSection(
        score="concat", past={"name": "location", "filters": 2, "radius": 1}, window=LOCAL
    ),
    "heads": AttentionSection(score="additive", heads=2, window={"name": "local_m", "radius": 2}),
    "sparsemax": AttentionSection(normalizer={"name": "sparsemax", "temperature": 0.5}),
}
Module = TypeVar("Module", bound=nn.Module)


class Variant(NamedTuple):
    """A kind of model; the attention is a mechanism of the table above, a score, or given in full."""

    order: str = "luong"
    input_feeding: bool = False
    attention: str | AttentionSection = "general"
    cell: str = "lstm"
    num_layers: int = 1
    initial_state: str = "backward"
    tying: str = "none"


def attention_section(name: str) -> AttentionSection:
    """A mechanism of the table above, or a score by itself."""
    if name in MECHANISMS:
        return MECHANISMS[name]
    return AttentionSection(score=name, options={} if name == "none" else dict(find_score(name).example))


def randomize(module: Module, seed: int = 0, spread: float = 1.0) -> Module:
    """Make a module's parameters float64 numbers from U(-spread, spread)."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in module.double().parameters():
            parameter.uniform_(-spread, spread)
    return module


def random_model(
    variant: Variant,
    seed: int = 0,
    words: tuple[int, int] = (9, 8),
    spread: float = 1.0,
    eos: float = 0.0,
    **options: Any,
) -> Seq2Seq:
    """A float64 model in evaluation mode.

    Args:
        variant: Its kind.
        seed: Of its weights.
        words: The sizes of its vocabularies.
        spread: The largest absolute value of a weight.
        eos: What is added to the log-odds of EOS.
        **options: Further settings of the model, and of its decoder; those of the encoder join the ones it has.
    """
    order, input_feeding, attention, cell, num_layers, initial_state, tying = variant
    encoder = {"cell": cell, "hidden_size": 2, **options.pop("encoder", {})}
    of_model = {name: options.pop(name) for name in ModelSection.model_fields if name in options}
    layers = {"cell": cell, "hidden_size": 4, "num_layers": num_layers, "initial_state": initial_state, **options}
    config = ModelSection(
        **{"embedding_size": 3, "dropout": 0.0, "tying": tying, "encoder": encoder, **of_model},
        decoder={"order": order, "input_feeding": input_feeding, **layers},
        attention=attention_section(attention) if isinstance(attention, str) else attention,
    )
    model = randomize(build_model(config, *words), seed, spread)
    with torch.no_grad():
        model.decoder.output.bias[EOS_ID] += eos
    return model.eval()
