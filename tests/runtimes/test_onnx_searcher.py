"""The graphs of a folder as a stepper of the search."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from conftest import GOLDEN_MODEL, Refusal
from random_exports import make_export

import nmt
from nmt.search import waiting
from nmt.search.beam_tree import BeamTree
from nmt.translation.translation import Translation
from nmt.translation.translator import Translator

pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")

SENTENCE = "The old woman reads a book."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return nmt.export(GOLDEN_MODEL, to="onnx", output=tmp_path_factory.mktemp("onnx") / "out")


@pytest.fixture(scope="module")
def translators(folder: Path) -> tuple[Translator, Translator]:
    """The model, and its export."""
    return nmt.load(GOLDEN_MODEL), nmt.load(folder)


def assert_same(expected: list[list[Translation]], found: list[list[Translation]]) -> None:
    for ranked, others in zip(expected, found, strict=True):
        assert [each.text for each in others] == [each.text for each in ranked]
        for one, two in zip(ranked, others, strict=True):
            assert one.alignment is not None
            assert two.alignment is not None
            torch.testing.assert_close(two.alignment, one.alignment, atol=1e-4, rtol=0)


def test_a_translation_begins_with_given_words(translators: tuple[Translator, Translator]) -> None:
    own, other = (each.complete([SENTENCE], ["Das "], n_best=3) for each in translators)
    assert [ranked.text for ranked in other[0]] == [ranked.text for ranked in own[0]]
    assert all(ranked.text.startswith("Das ") for ranked in other[0])


@pytest.mark.parametrize(
    "overrides",
    [
        {"decode.sampling": {"temperature": 1.0, "seed": 3}},
        {"decode.coverage_penalty": 0.5},
        {"decode.no_repeat_ngram_size": 1},
        {"decode.min_length": 12},
    ],
)
def test_every_setting_of_the_search_holds(folder: Path, overrides: dict[str, object]) -> None:
    lines = [SENTENCE, "I am old.", "Tom sleeps."]
    own, other = (nmt.load(path, overrides=overrides).translate(lines, 3) for path in (GOLDEN_MODEL, folder))
    plain = nmt.load(GOLDEN_MODEL).translate(lines, 3)
    texts = [[[each.text for each in ranked] for ranked in found] for found in (own, other, plain)]
    assert texts[0] == texts[1]
    assert texts[0] != texts[2]  # the setting matters


def test_the_beam_is_shown(translators: tuple[Translator, Translator]) -> None:
    def count(tree: BeamTree) -> list[int]:
        return [len(tree.nodes), *tree.best]

    ids = translators[0].processor.src_vocabulary.encode(translators[0].reader.tokenize([SENTENCE])[0])
    own, other = (each.grow_tree(ids) for each in translators)
    assert count(other) == count(own)


def test_a_graph_that_reads_another_file_is_refused(folder: Path, tmp_path: Path, refusal: Refusal) -> None:
    """Weights outside the file would be read from wherever the graph says."""
    stranger = tmp_path / "stranger"
    nmt.export(GOLDEN_MODEL, to="onnx", output=stranger)
    (stranger / "decoder.onnx").unlink()
    model = onnx.load(folder / "decoder.onnx")
    onnx.save_model(model, stranger / "decoder.onnx", save_as_external_data=True, location="weights", size_threshold=0)
    said = refusal("translate", "a", "--model", stranger)
    assert said.endswith("decoder.onnx: has weights in another file, which is not read; export the model again")


def test_the_state_of_a_search_keeps_what_belongs_to_sentences(translators: tuple[Translator, Translator]) -> None:
    """Sources of unlike lengths in a beam, some of which end long before others."""
    lines = [SENTENCE, "a", "I am old.", " ".join([SENTENCE[:-1]] * 3), "Tom."]
    own, other = (each.translate(lines, 4, with_alignment=True) for each in translators)
    assert_same(own, other)


def test_sentences_that_wait_for_others_are_translated_as_alone(
    translators: tuple[Translator, Translator], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a pause after each word, searches of unlike sources go on together."""
    lines = [" ".join([SENTENCE[:-1]] * n) for n in (1, 2, 3, 1, 2, 3)]
    lines = [f"{line} {number} ." for number, line in enumerate(lines)]
    expected = [translators[0].translate([line], 4, with_alignment=True)[0] for line in lines]
    monkeypatch.setattr(waiting, "PAUSE", 1)
    monkeypatch.setattr(waiting, "FEW", 1.0)
    searcher = translators[1].searcher
    monkeypatch.setattr(searcher, "options", searcher.options.model_copy(update={"batch_size": 2}))
    found = translators[1].translate(lines, 4, with_alignment=True)
    assert_same(expected, found)


def test_a_given_translation_is_as_long_as_there_are_positions(tmp_path: Path) -> None:
    translator = nmt.load(make_export(tmp_path, (), ["model.decoder.learned_positions=12"], to="onnx"))
    (scored,) = translator.score(["a"], ["b " * 11])
    assert len(scored.token_log_probs) == 12
    with pytest.raises(
        nmt.ConfigError, match="has 13 tokens with the end, and the export at most 12; shorten the text"
    ):
        translator.score(["a"], ["b " * 12])


def test_an_error_of_the_program_names_the_graph(tmp_path: Path) -> None:
    translator = nmt.load(make_export(tmp_path, (), ["model.encoder.learned_positions=12"], to="onnx"))
    with pytest.raises(nmt.CheckpointError, match=r"out/encoder\.onnx: ONNX Runtime cannot compute it \(.*\); shorten"):
        translator.searcher.search([[4] * 12])  # which no reader of text lets through


def swap_words(folder: Path) -> None:
    path = folder / "text/tgt.vocabulary.json"
    words = json.loads(path.read_text(encoding="utf-8"))
    words[10], words[20] = words[20], words[10]
    path.write_text(json.dumps(words), encoding="utf-8")


def cut_settings(folder: Path) -> None:
    (folder / "model.json").write_text("{", encoding="utf-8")


def empty_settings(folder: Path) -> None:
    (folder / "model.json").write_text("null", encoding="utf-8")


def lose_settings(folder: Path) -> None:
    (folder / "model.json").unlink()


def cut_encoder(folder: Path) -> None:
    (folder / "encoder.onnx").write_bytes((folder / "encoder.onnx").read_bytes()[:1000])


def replace_decoder(folder: Path) -> None:
    shutil.copy(folder / "encoder.onnx", folder / "decoder.onnx")


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (swap_words, "model.json: has other words than the text of the export; export the model again"),
        (cut_settings, "model.json: not valid JSON ("),
        (empty_settings, "model.json: is not a JSON object; export the model again"),
        (lose_settings, "model.json: missing; the directory is incomplete; export the model again"),
        (cut_encoder, "encoder.onnx: ONNX Runtime cannot load it ("),
        (replace_decoder, "decoder.onnx: ONNX Runtime cannot compute it ("),
    ],
)
def test_a_damaged_file_is_named(
    damage: Callable[[Path], None], expected: str, folder: Path, tmp_path: Path, refusal: Refusal
) -> None:
    copied = tmp_path / "copied"
    shutil.copytree(folder, copied)
    damage(copied)
    said = refusal("translate", "a", "--model", copied)
    assert said.startswith(f"{copied}/{expected}")
    assert said.endswith("export the model again")
