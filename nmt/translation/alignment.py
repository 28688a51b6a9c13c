"""Attention of a model as it reads a translation, the word links derived from it, and its picture."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nmt.corpus.batching import pad
from nmt.system.errors import ConfigError, DataError
from nmt.system.files import naming
from nmt.translation.sharpness import step_statistics
from nmt.translation.stream import within_memory
from nmt.translation.translation import Translation
from nmt.translation.translator import Translator

Links = set[tuple[int, int]]
"""Word alignment of a pair: (source token, target token), counted from 0."""


@dataclass(frozen=True)
class Alignment:
    """Attention of a model while it reads a sentence pair (forced decoding).

    Attributes:
        source: Raw source.
        target: Raw target.
        src_tokens: Source tokens without EOS.
        tgt_tokens: Target tokens without EOS.
        weights: Attention that stands for the whole, [target tokens + EOS, heads, source tokens + EOS].
    """

    source: str
    target: str
    src_tokens: list[str]
    tgt_tokens: list[str]
    weights: Tensor


@torch.inference_mode()
def align(translator: Translator, sources: Sequence[str], targets: Sequence[str]) -> list[Alignment]:
    """Read pairs; the weights of a target token are those of the step that predicts it.

    Args:
        translator: Model and text processor, whose batch size is used.
        sources: Raw sentences.
        targets: Raw targets, one per source.
    """
    processor, model, size = translator.processor, translator.model, translator.options.batch_size
    src_tokens = [tokens[: translator.max_source_length] for tokens in processor.tokenize_source(sources)]
    pairs = list(zip(sources, targets, src_tokens, processor.tokenize_target(targets), strict=True))
    alignments = []
    for batch in (pairs[start : start + size] for start in range(0, len(pairs), size)):
        src = [processor.src_vocabulary.encode(tokens) for _, _, tokens, _ in batch]
        tgt = [processor.tgt_vocabulary.encode(tokens) for *_, tokens in batch]
        encoded = model.encode(pad(src, suffix=True).to(model.device), torch.tensor([len(ids) + 1 for ids in src]))
        output = model.decoder(pad(tgt, prefix=True).to(model.device), encoded)
        weights = output.alignments[:, :, model.decoder.chosen_heads].cpu()
        for pair, rows in zip(batch, weights, strict=True):
            alignments.append(Alignment(*pair, rows[: len(pair[3]) + 1, :, : len(pair[2]) + 1]))
    return alignments


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
        DataError: The sentence has no words.
    """
    from nmt.drawing.heatmap import make_heatmap
    from nmt.drawing.picture import save_figure

    weights, columns, rows = translation.weights
    if not rows:
        raise DataError("the sentence has no words, so there is no attention to draw; give a sentence")
    if not np.any(weights):
        raise ConfigError("this model has no attention to draw (model.attention.score: none); use another model")
    with naming(picture, picture.parent):
        margin = step_statistics(torch.tensor(weights).unsqueeze(1)).columns()
        save_figure(make_heatmap(np.array(weights), columns, rows, margin), picture)
