"""Unknown words, for every kind of attention: replaced by the source word attended most, or by its dictionary entry."""

from pathlib import Path

import pytest
import torch
from conftest import GOLDEN_MODEL, Cli
from test_translator import model_section, processor, random_model

import nmt
from nmt.config import Config, DecodeSection, TextSection
from nmt.corpus.batching import pad
from nmt.models.storage import save_model
from nmt.text.vocabulary import UNK_ID
from nmt.translation.translator import Translator

LINES = ["zebra the gnu cat okapi ran", "okapi", "the gnu", "cat zebra ran zebra sat the a dog", "cat", "dog gnu"]
ENTRIES = {"zebra": "das Zebra", "gnu": "Gnu", "cat": "Mieze", "the": "DIE"}
MODELS = {
    "bahdanau": model_section("bahdanau", "additive"),
    "luong": model_section("luong", "general"),
    "input feeding": model_section("luong", "dot", input_feeding=True),
    "heads": model_section("luong", "scaled_dot", heads=3),
    "coverage": model_section("bahdanau", "additive", past={"name": "coverage"}),
}


def forced_attention(ours: Translator, src_tokens: list[str], tokens: list[str]) -> list[list[float]]:
    """Mean attention of each target word when a single pair is fed to the decoder, without a search."""
    src = pad([ours.processor.src_vocabulary.encode(src_tokens)], suffix=True)
    tgt = pad([ours.processor.tgt_vocabulary.encode(tokens)], prefix=True)
    with torch.inference_mode():
        encoded = ours.model.encode(src, torch.tensor([len(src_tokens) + 1]))
        weights = ours.model.decoder(tgt, encoded).alignments[0, : len(tokens)]
    return weights.mean(dim=1).tolist()


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("name", MODELS)
def test_the_word_attended_most_is_copied(name: str, beam_size: int) -> None:
    options = {"beam_size": beam_size, "max_length": 9}
    model = random_model(MODELS[name], seed=3, bias={UNK_ID: 4.0})
    plain = Translator(model, processor(), DecodeSection(replace_unknown=False, **options))
    ours = Translator(model, processor(), DecodeSection(**options), dictionary=ENTRIES)
    kinds = set()
    translated = (each.translate(LINES, beam_size) for each in (plain, ours))
    for unreplaced, replaced in zip(*translated, strict=True):
        for before, after in zip(unreplaced, replaced, strict=True):
            weights = forced_attention(ours, before.src_tokens, before.tokens)
            for token, found, row in zip(before.tokens, after.tokens, weights, strict=True):
                position = max(range(len(row)), key=row.__getitem__)
                source = [*before.src_tokens, "<unk>"][position]  # at the end there is no word to copy
                expected = ENTRIES.get(source, source) if token == "<unk>" else token
                assert found == expected
                kinds.add("word" if token != "<unk>" else "entry" if source in ENTRIES else "copy")
            assert after.text == " ".join(after.tokens)
    assert {"entry", "copy"} <= kinds


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    decode = DecodeSection(beam_size=2, max_length=5)
    config = Config(text=TextSection(tokenizer="whitespace"), model=model_section(), decode=decode)
    made = random_model(config.model, seed=1, bias={UNK_ID: 50.0}).float()
    (tmp_path / "text").mkdir()
    processor().save(tmp_path / "text")
    save_model(tmp_path / "model", config, made, tmp_path / "text", {})
    return tmp_path


def test_a_file_on_the_command_line_and_in_python(folder: Path, cli: Cli) -> None:
    entries = folder / "d.tsv"
    entries.write_text("Zebra\tZEBRA\n", encoding="utf-8")
    found = cli("translate", "Zebra", "--model", folder / "model", "--dictionary", entries)
    assert found.code == 0
    assert found.err.count("\n") == 1
    assert "never learnt to write an unknown word" in found.err
    assert found.err.endswith("train with text.vocabulary.min_count=2\n")
    assert "ZEBRA" in found.out
    assert "Zebra" in cli("translate", "Zebra", "--model", folder / "model").out
    ours = nmt.load(folder / "model", device="cpu", dictionary=entries)
    assert ours.translate("Zebra").text + "\n" == found.out
    entries.write_text("Zebra ZEBRA\n", encoding="utf-8")
    refused = cli("translate", "Zebra", "--model", folder / "model", "--dictionary", entries)
    assert refused.code == 1
    assert refused.err.startswith(f"nmt: error: {entries}, line 1: ")


def test_a_dictionary_without_effect_is_refused(folder: Path) -> None:
    entries = folder / "d.tsv"
    entries.write_text("Zebra\tZEBRA\n", encoding="utf-8")
    with pytest.raises(nmt.ConfigError, match=r"`dictionary=.*is for models of words"):
        nmt.load(GOLDEN_MODEL, device="cpu", dictionary=entries)
    with pytest.raises(nmt.ConfigError, match=r"`dictionary=.*needs decode\.replace_unknown"):
        nmt.load(folder / "model", device="cpu", dictionary=entries, replace_unknown=False)
