"""Word links derived from attention, and its picture."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nmt.system.errors import ConfigError, DataError
from nmt.system.files import naming
from nmt.translation.sharpness import step_statistics
from nmt.translation.stream import within_memory
from nmt.translation.translation import Translation
from nmt.translation.translator import Translator

MAX_DRAWN = 200
"""Tokens of a side that a picture shows; it grows quadratically."""

Links = set[tuple[int, int]]
"""Word alignment of a pair: (source token, target token), counted from 0."""


def strongest_links(weights: Tensor) -> Links:
    """Link each target token to the source token with the largest weight, if that is not 0: [T, S]."""
    if weights.numel() == 0:
        return set()
    weight, position = weights.max(dim=-1)
    return {(int(position[j]), j) for j in weight.nonzero().flatten().tolist()}


def draw_attention(translator: Translator, sentence: str, picture: Path) -> Translation:
    """Translate one sentence and draw its attention, averaged over heads.

    Raises:
        ConfigError: The model has no attention.
        DataError: The sentence has no words.
    """
    with within_memory(translator.options, 1):
        translation = translator.translate(sentence, with_alignment=True)
    draw_alignment(translation, picture)
    return translation


def draw_alignment(translation: Translation, picture: Path) -> None:
    """Draw the attention of a translation, averaged over heads, to a file, with how sharp it is at each step.

    Raises:
        ConfigError: The model has no attention.
        DataError: The sentence has no words, or too many for a picture.
    """
    from nmt.drawing.heatmap import make_heatmap
    from nmt.drawing.picture import save_figure

    weights, columns, rows = translation.weights
    if not rows:
        raise DataError("the sentence has no words, so there is no attention to draw; give a sentence")
    if not np.any(weights):
        raise ConfigError("this model has no attention to draw (model.attention.score: none); use another model")
    if (longest := max(len(rows), len(columns))) > MAX_DRAWN:
        problem = f"the text has {longest:,} tokens, and a picture shows at most {MAX_DRAWN}"
        raise DataError(f"{picture}: {problem}; give one sentence at a time")
    with naming(picture, picture.parent):
        margin = step_statistics(torch.tensor(weights).unsqueeze(1)).columns()
        save_figure(make_heatmap(np.array(weights), columns, rows, margin), picture)
