"""The search of CTranslate2 in the place of ours."""

import json
from pathlib import Path

import pytest
from conftest import GOLDEN_MODEL, Refusal
from random_exports import make_export

import nmt

pytest.importorskip("ctranslate2")

PLACEHOLDERS = ("\u27e61\u27e7", "\u27e62\u27e7")
MISSPELLED = ("▁Ich", "▁W", "en", "te", "r", "▁ist", "▁war", "▁ein", "▁sie", "▁hat", "▁alt", "▁krank")
"""Pieces of a translation with a name that is `Wanter` in the source."""


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


@pytest.mark.parametrize("beam_size", [1, 2])
@pytest.mark.parametrize("limits", [(15, 15, 3), (1500, 3000, 2)])
def test_the_least_length_is_at_most_that_of_the_limit(
    beam_size: int, limits: tuple[int, int, int], tmp_path: Path
) -> None:
    """CTranslate2 takes one minimum for all sentences of a batch, and none above the maximum or its positions."""
    folder = make_export(tmp_path, end=3)
    names = ("decode.min_length", "decode.max_length", "decode.max_length_ratio")
    overrides = dict(zip(names, limits, strict=True))
    own, other = (
        nmt.load(path, beam_size=beam_size, overrides=overrides).translate(["a", "b c", "c c a b", "b"])
        for path in (tmp_path / "model", folder)
    )
    assert [len(each.tokens) for each in other] == [len(each.tokens) for each in own]
    assert min(len(each.tokens) for each in own) >= 13  # the end, which is likely, fits in behind them
    if beam_size == 1:
        assert [each.tokens for each in other] == [each.tokens for each in own]


def test_a_translation_has_as_many_words_as_there_are_positions(tmp_path: Path) -> None:
    overrides = {"decode.min_length": 1500, "decode.max_length": 3000, "decode.max_length_ratio": 1000}
    translator = nmt.load(make_export(tmp_path), beam_size=1, overrides=overrides)
    assert len(translator.translate("a b").tokens) in (1023, 1024)


def test_a_given_translation_is_as_long_as_there_are_positions(tmp_path: Path, refusal: Refusal) -> None:
    folder = make_export(tmp_path)
    words = ["b"] * 1024
    (scored,) = nmt.load(folder).score(["a"], [" ".join(words[1:])])
    assert len(scored.token_log_probs) == 1024
    for name, line in (("src", "a"), ("tgt", " ".join(words))):
        (tmp_path / name).write_text(f"{line}\n", encoding="utf-8")
    said = refusal("score", "--model", folder, "--src", tmp_path / "src", "--tgt", tmp_path / "tgt")
    assert said.startswith("b b b b ")
    assert ": has 1,025 tokens with the end, and the export at most 1,024; shorten the text, or give the model" in said


def test_a_translation_of_all_positions_is_not_scored_again(tmp_path: Path) -> None:
    """It has no end, which would need another position."""
    odds = {token: 200.0 - 10 * place for place, token in enumerate(MISSPELLED)}
    settings = ("model.decoder.learned_positions=12", "decode={max_length: 12, no_repeat_ngram_size: 1}")
    folder = make_export(tmp_path, (), settings, text=GOLDEN_MODEL / "text", end=-300, **odds)
    translator = nmt.load(folder, split_sentences=False)
    translator.repairs = True
    assert translator.translate("I see Wanter.").text == "Ich Wenter ist war ein sie hat alt krank"


def test_an_error_of_the_program_names_the_folder(tmp_path: Path) -> None:
    translator = nmt.load(make_export(tmp_path))
    source = [4] * 1024  # which no reader of text lets through
    with pytest.raises(
        nmt.CheckpointError, match=r"out: CTranslate2 cannot compute it \(.*\); shorten the text, or exp"
    ):
        translator.searcher.search([source])


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        ({"config.json": "null"}, "out/config.json: is not a JSON object; export the model again"),
        ({"config.json": None}, "out/config.json: missing; the directory is incomplete; export the model again"),
        ({"config.json": '{"bos_token": null}'}, "out: CTranslate2 cannot load it ("),
        (
            {"shared_vocabulary.json": None},
            "out: has neither shared_vocabulary.json nor source_vocabulary.json and target_vocabulary.json; export the",
        ),
        (
            {"shared_vocabulary.json": None, "source_vocabulary.json": json.dumps(["a"])},
            "out/source_vocabulary.json: has other words than the text of the export; export the model again",
        ),
    ],
)
def test_a_damaged_file_of_the_program_is_named(
    damage: dict[str, str | None], expected: str, tmp_path: Path, refusal: Refusal
) -> None:
    folder = make_export(tmp_path)
    assert (folder / "shared_vocabulary.json").exists()
    for name, content in damage.items():
        path = folder / name
        if content is None:
            path.unlink()
        else:
            path.write_text(content, encoding="utf-8")
    assert expected in refusal("translate", "a", "--model", folder)
