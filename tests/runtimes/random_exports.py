"""Exports of models with random weights, which know a few words."""

from collections.abc import Sequence
from pathlib import Path

import torch

import nmt
from nmt.config import Config, load_config
from nmt.models.build import build_model
from nmt.models.storage import save_model
from nmt.text.processor import TextProcessor, load_processor
from nmt.text.tokenizers import WhitespaceTokenizer
from nmt.text.vocabulary import EOS_ID, UNK_ID, Vocabulary

WORDS = ("a", "b", "c", "write", "to")
SETTINGS = (
    "text={tokenizer: whitespace}",
    "model.embedding_size=8",
    "model.encoder={kind: self_attention, hidden_size: 8, num_layers: 1, num_heads: 2}",
    "model.decoder={kind: transformer, hidden_size: 8, num_layers: 1, num_heads: 2}",
    "data.source=pairs.tsv",
    "decode={beam_size: 2, length_norm: average, max_length: 6}",
)


def make_export(
    folder: Path,
    reserved: Sequence[str] = (),
    settings: Sequence[str] = (),
    *,
    to: str = "ctranslate2",
    text: Path | None = None,
    **odds: float,
) -> Path:
    """A random Transformer, which likes some words more than others.

    Args:
        folder: Where its parts are: the model in `model`, its export in `out`.
        reserved: Words before the others.
        settings: Further settings.
        to: The format of the export.
        text: A folder with vocabularies and tokenizers; None takes the reserved words and `WORDS`, between spaces.
        odds: What is added to the log-odds of words; `unknown`, `end` and `placeholder` name special ones.
    """
    torch.manual_seed(1)
    config = load_config(Config(), [*SETTINGS, *settings])
    if text is None:
        text = folder / "text"
        text.mkdir(parents=True)
        vocabulary = Vocabulary([*reserved, *WORDS])
        TextProcessor(WhitespaceTokenizer(), WhitespaceTokenizer(), vocabulary, vocabulary).save(text)
    source, target = load_processor(text).vocabularies
    model = build_model(config.model, len(source), len(target)).eval()
    special = {"unknown": UNK_ID, "end": EOS_ID, "placeholder": 4}
    with torch.no_grad():
        for name, value in odds.items():
            model.decoder.output.bias[special[name] if name in special else target.tokens.index(name)] += value
    save_model(folder / "model", config, model, text, {})
    return nmt.export(folder / "model", to=to, output=folder / "out")
