"""The search of CTranslate2 in the place of ours."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

import nmt
from nmt.config import Config, load_config
from nmt.models.build import build_model
from nmt.models.storage import save_model
from nmt.text.processor import TextProcessor
from nmt.text.tokenizers import WhitespaceTokenizer
from nmt.text.vocabulary import EOS_ID, UNK_ID, Vocabulary

pytest.importorskip("ctranslate2")

WORDS = ("a", "b", "c", "write", "to")
PLACEHOLDERS = ("\u27e61\u27e7", "\u27e62\u27e7")
SETTINGS = (
    "text={tokenizer: whitespace}",
    "model.embedding_size=8",
    "model.encoder={kind: self_attention, hidden_size: 8, num_layers: 1, num_heads: 2}",
    "model.decoder={kind: transformer, hidden_size: 8, num_layers: 1, num_heads: 2}",
    "data.source=pairs.tsv",
    "decode={beam_size: 2, length_norm: average, max_length: 6}",
)


def make_export(folder: Path, reserved: Sequence[str] = (), **odds: float) -> Path:
    """A random model of words and placeholders, which likes some words more than others, in CTranslate2."""
    torch.manual_seed(1)
    config = load_config(Config(), SETTINGS)
    vocabulary = Vocabulary([*reserved, *WORDS])
    model = build_model(config.model, len(vocabulary), len(vocabulary)).eval()
    with torch.no_grad():
        for name, value in odds.items():
            model.decoder.output.bias[{"unknown": UNK_ID, "end": EOS_ID, "placeholder": 4}[name]] += value
    text = folder / "text"
    text.mkdir(parents=True)
    TextProcessor(WhitespaceTokenizer(), WhitespaceTokenizer(), vocabulary, vocabulary).save(text)
    save_model(folder / "model", config, model, text, {})
    return nmt.export(folder / "model", to="ctranslate2", output=folder / "out")


def test_spans_come_back_though_no_placeholder_can_be_demanded(tmp_path: Path) -> None:
    translator = nmt.load(make_export(tmp_path, PLACEHOLDERS, placeholder=30))
    found = translator.translate(["write to info@example.com", "a b c", "write 1 to c"])
    assert found[0].text.count("info@example.com") == 1
    assert not any(symbol in each.text for each in found for symbol in PLACEHOLDERS)


@pytest.mark.parametrize("beam_size", [1, 2])
def test_an_unknown_word_becomes_the_source_word_attended_most(beam_size: int, tmp_path: Path) -> None:
    folder = make_export(tmp_path, unknown=30)
    own, other = (
        nmt.load(path, beam_size=beam_size, split_sentences=False).translate(["zebra", "a gnu b", "b c a"])
        for path in (tmp_path / "model", folder)
    )
    assert [each.text for each in other] == [each.text for each in own]
    words = {word for each in other for word in each.text.split()}
    assert words - {"<unk>"}  # which is where the end of the source is attended most
    assert all(each.alignment is None for each in other)


def test_a_model_that_ends_at_once_gives_an_empty_line_if_it_may(tmp_path: Path) -> None:
    folder = make_export(tmp_path, end=30)
    (translation,) = nmt.load(folder, overrides={"decode.min_length": 0}).translate(["a b"])
    own, other = (nmt.load(path).translate(["a b", "c"]) for path in (tmp_path / "model", folder))
    assert [each.text for each in other] == [each.text for each in own]
    assert all(each.text for each in other)
    assert translation.text == ""
    assert translation.log_prob == pytest.approx(0, abs=1e-4)


def test_a_diverged_model_is_reported(tmp_path: Path) -> None:
    translator = nmt.load(make_export(tmp_path, end=float("nan")))
    with pytest.raises(nmt.CheckpointError, match="the model's probabilities are not finite"):
        translator.translate(["a b"])


@pytest.mark.parametrize("beam_size", [1, 2])
def test_a_translation_is_cut_where_the_model_cuts_it_whatever_its_batch(beam_size: int, tmp_path: Path) -> None:
    folder = make_export(tmp_path, end=-30)
    limits = {"decode.max_length_ratio": 2, "decode.max_length": 15}
    own, other = (
        nmt.load(path, beam_size=beam_size, overrides=limits).translate(["a", "b c", "c c a b"], with_alignment=True)
        for path in (tmp_path / "model", folder)
    )
    assert [len(each.tokens) for each in other] == [14, 15, 15]  # 2 * tokens with the end + 10, at most 15
    for one, two in zip(own, other, strict=True):
        assert two.alignment is not None
        assert one.alignment is not None
        assert two.alignment.shape[0] == one.alignment.shape[0]
    if beam_size == 1:
        assert [each.tokens for each in other] == [each.tokens for each in own]
        assert other[0].score == pytest.approx(own[0].score, abs=1e-4)
        assert other[0].token_log_probs == pytest.approx(own[0].token_log_probs, abs=1e-4)
