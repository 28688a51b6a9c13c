"""A folder that was exported translates as the model does, and refuses what its program cannot do."""

import json
import pickle
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from conftest import GOLDEN_MODEL, Cli, Refusal, made_once, without_pictures

import nmt
from nmt.models.storage import RUNTIMES
from nmt.runtimes.folder import PROGRAMS
from nmt.system.errors import CheckpointError

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")
pytest.importorskip("ctranslate2")

GOLDEN = GOLDEN_MODEL.parent
SETTINGS = (
    "model.encoder={kind: self_attention, hidden_size: 32, num_layers: 1, num_heads: 2}",
    "model.decoder={kind: transformer, hidden_size: 32, num_layers: 2, num_heads: 2}",
    "model.attention={score: general}",
    "model.tying=none",
    "train={epochs: 5, schedule: {name: inverse_sqrt, warmup: 20}, validation: {metric: loss, every: null}}",
    "decode={beam_size: 4, length_norm: average, length_penalty: 0.8, max_length: 40}",
)
KINDS = (("onnx", "recurrent"), ("onnx", "transformer"), ("ctranslate2", "transformer"))
"""Formats of exports, and the models in them."""
LINES = (
    "The old woman reads a book.",
    "",
    "I am old. She sleeps!",
    "OPEN THE DOOR NOW",
    "Write to info@example.com about 2386 books, Tom.",
    "We see the small dog, and he sleeps, and we sleep, and the dog sees us, and then he sees the old woman.",
    "a",
    "\U0001f600",
    *(f"{who} {what}." for who in ("He", "The dog", "Tom", "My mother") for what in ("sleeps", "is old", "came late")),
)
TERMS = "old woman\tGreisin\nbook\tBand\n"


class Pair(NamedTuple):
    """A model and its export."""

    form: str
    model: Path
    export: Path


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The golden model, which is recurrent, and a Transformer that has learnt a little of the same data."""

    def make(folder: Path) -> None:
        with without_pictures():
            nmt.train(GOLDEN / "golden.yaml", data=GOLDEN / "data", output=folder / "run", overrides=SETTINGS)

    return {"recurrent": GOLDEN_MODEL, "transformer": made_once(tmp_path_factory, "transformer", make) / "run"}


@pytest.fixture(params=KINDS, ids=" of a ".join, scope="module")
def pair(request: pytest.FixtureRequest, models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Pair:
    form, kind = request.param
    output = tmp_path_factory.mktemp("exported") / form
    return Pair(form, models[kind], nmt.export(models[kind], to=form, output=output))


@pytest.fixture(scope="module")
def transformer(models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export for CTranslate2."""
    output = tmp_path_factory.mktemp("exported") / "ctranslate2"
    return nmt.export(models["transformer"], to="ctranslate2", output=output)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_translations_scores_and_attention_are_those_of_the_model(pair: Pair, beam_size: int, tmp_path: Path) -> None:
    glossary = tmp_path / "terms.tsv"
    glossary.write_text(TERMS, encoding="utf-8")
    own, others = (
        nmt.load(path, beam_size=beam_size, glossary=glossary).translate(LINES, beam_size, with_alignment=True)
        for path in (pair.model, pair.export)
    )
    same = 0
    for ranked, found in zip(own, others, strict=True):
        assert len(found) == len(ranked)
        if pair.form == "onnx" or beam_size == 1:  # the search is ours, or there is one word to take
            assert [each.text for each in found] == [each.text for each in ranked]
        expected = {tuple(each.tokens): each for each in ranked}
        for each in found:
            like = expected.get(tuple(each.tokens))
            if like is not None:
                same += 1
                assert each.score == pytest.approx(like.score, abs=1e-4)
                assert each.log_prob == pytest.approx(like.log_prob, abs=1e-4)
                assert (each.alignment is None) is (like.alignment is None)
                if like.alignment is not None and each.alignment is not None:
                    means = [alignment.double().mean(dim=1) for alignment in (each.alignment, like.alignment)]
                    torch.testing.assert_close(*means, atol=1e-4, rtol=0)
    assert same > 0.7 * sum(map(len, own))
    assert len({ranked[0].text for ranked in own}) > 5  # the sources matter
    spans = others[4][0].text
    assert (spans.count("info@example.com"), spans.count("2386")) == (1, 1)
    assert all(word in others[0][0].text for word in ("Greisin", "Band"))


def test_a_translation_does_not_depend_on_its_batch(pair: Pair) -> None:
    alone, together = (nmt.load(pair.export, batch_size=size).translate(LINES) for size in (1, 64))
    assert [each.text for each in alone] == [each.text for each in together]
    for one, other in zip(alone, together, strict=True):
        assert one.score == pytest.approx(other.score, abs=1e-5)


def test_several_processes_write_the_output_of_one(pair: Pair, tmp_path: Path) -> None:
    source = tmp_path / "in.txt"
    source.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    translator = nmt.load(pair.export, batch_size=1)  # 16 lines a window
    for workers in (1, 2):
        nmt.translate_file(translator, source, tmp_path / str(workers), format="jsonl", workers=workers)
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


def test_given_translations_have_the_probability_that_the_model_gives_them(pair: Pair) -> None:
    targets = [f"Das ist {number}." for number in range(len(LINES))]
    own, others = (nmt.load(path).score(LINES, targets) for path in (pair.model, pair.export))
    for one, other in zip(own, others, strict=True):
        assert other.log_prob == pytest.approx(one.log_prob, abs=1e-3)
        assert other.token_log_probs == pytest.approx(one.token_log_probs, abs=1e-4)


def test_the_commands_take_an_export(pair: Pair, cli: Cli, tmp_path: Path) -> None:
    source = tmp_path / "in.txt"
    source.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    written = []
    scores = []
    for path in (pair.model, pair.export):
        files = [tmp_path / f"{path.name}.{name}" for name in ("txt", "json", "jsonl")]
        options = ("--model", path, "--beam-size", "1")
        assert cli("translate", *options, "--input", source, "--output", files[0]).code == 0
        given = ("--data", GOLDEN / "data", "--json", files[1])
        assert cli("evaluate", *options, *given).code == 0
        assert cli("translate", *options, "--input", source, "--output", files[2], "--format", "jsonl").code == 0
        written.append(files[0].read_text(encoding="utf-8"))
        scores.append(json.loads(files[1].read_text(encoding="utf-8")))
        (first, *_) = map(json.loads, files[2].read_text(encoding="utf-8").splitlines())
        assert first["translations"][0]["links"]
    assert written[0] == written[1]
    values = [{name: score["value"] for name, score in each["scores"].items()} for each in scores]
    assert values[0] == values[1]
    assert scores[0]["teacher_forced"] is not None
    assert scores[1]["teacher_forced"] is None  # which needs the weights


def test_a_translator_goes_to_another_process_without_the_graph(pair: Pair) -> None:
    translator = nmt.load(pair.export)
    pickled = pickle.dumps(translator)
    weights = sum(pair.export.joinpath(name).stat().st_size for name in PROGRAMS[pair.form].files)
    assert len(pickled) < weights + 300_000
    copied = pickle.loads(pickled)
    assert copied.translate(LINES[0]).text == translator.translate(LINES[0]).text


def test_the_description_names_the_program(pair: Pair) -> None:
    program = PROGRAMS[pair.form].program
    assert f"in {program}, beam 4, on cpu" in repr(nmt.load(pair.export))


def test_what_needs_a_run_names_the_export(transformer: Path, refusal: Refusal, tmp_path: Path) -> None:
    expected = f"{transformer}: is an export for ctranslate2; give the model that it was made from"
    assert refusal("average", "--last", "2", transformer, "--output", tmp_path / "average") == expected
    with pytest.raises(nmt.CheckpointError, match=f"{transformer}: is an export for ctranslate2; give the model"):
        nmt.Run(transformer)


REFUSALS = (
    (("translate", "a", "--model", "{other}"), "is an export, which translates by itself; give no other model"),
    (("translate", "a", "--precision", "bfloat16"), "number format of its export; leave --precision bfloat16 out"),
    (("translate", "a", "--prefix", "Die"), "CTranslate2 computes: its search takes no constraints"),
    (("translate", "a", "--set", "decode.sampling.temperature=1"), "decode.sampling.temperature: CTranslate2"),
    (("translate", "a", "--set", "decode.coverage_penalty=1"), "decode.coverage_penalty: source positions without"),
    (("translate", "a", "--set", "decode.length_norm=wu"), "decode.length_norm: CTranslate2 does not divide"),
    (("translate", "a", "--set", "decode.min_length_ratio=1"), "decode.min_length_ratio: CTranslate2 has no such"),
    (("explain", "a"), "CTranslate2 computes: its search shows no beam; give the model that it was made from"),
    (("export", "--to", "html", "--output", "a.html"), "is an export for ctranslate2; give the model that it was made"),
)


@pytest.mark.parametrize(("command", "expected"), REFUSALS)
def test_what_the_program_cannot_do_is_refused_by_name(
    command: tuple[str, ...], expected: str, transformer: Path, refusal: Refusal, tmp_path: Path
) -> None:
    verb, *rest = (word.format(other=GOLDEN / "model") for word in command)
    if "--output" in rest:
        rest[-1] = str(tmp_path / rest[-1])
    assert expected in refusal(verb, "--model", transformer, *rest)


def test_the_inside_of_a_model_is_not_in_an_export(pair: Pair) -> None:
    translator = nmt.load(pair.export)
    with pytest.raises(nmt.ConfigError, match="does not show the inside of its model; give the model it was made from"):
        assert translator.model


def lose_marker(folder: Path) -> None:
    (folder / "export.json").unlink()


def cut_marker(folder: Path) -> None:
    (folder / "export.json").write_text("{", encoding="utf-8")


def leave_out_metadata(folder: Path) -> None:
    (folder / "metadata.json").unlink()


def cut_weights(folder: Path) -> None:
    for path in (*folder.glob("model.bin"), *folder.glob("decoder.onnx")):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def lose_weights(folder: Path) -> None:
    for path in (*folder.glob("model.bin"), *folder.glob("decoder.onnx")):
        path.unlink()


def link_weights(folder: Path) -> None:
    for path in (*folder.glob("model.bin"), *folder.glob("decoder.onnx")):
        path.rename(folder.parent / path.name)
        path.symlink_to(folder.parent / path.name)


def lose_a_word(folder: Path) -> None:
    path = folder / "text/tgt.vocabulary.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8"))[:-1]), encoding="utf-8")


def enlarge_vocabulary(folder: Path) -> None:
    path = folder / "text/tgt.vocabulary.json"
    path.write_text(" " * 3_000_000 + path.read_text(encoding="utf-8"), encoding="utf-8")


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lose_marker, "copied/export.json: missing, and "),
        (cut_marker, "copied/export.json: damaged, and "),
        (leave_out_metadata, "has no metadata.json: an earlier nmt exported it for other programs only; export again"),
        (cut_weights, "cannot load it ("),
        (lose_weights, "missing; the export is incomplete"),
        (link_weights, "is a link to a place outside"),
        (lose_a_word, "; export the model again"),
        (enlarge_vocabulary, "more than the limit of"),
    ],
)
def test_a_damaged_export_is_refused_in_one_line(
    damage: Callable[[Path], None], expected: str, pair: Pair, refusal: Refusal, tmp_path: Path
) -> None:
    folder = tmp_path / "copied"
    shutil.copytree(pair.export, folder)
    damage(folder)
    assert expected in refusal("translate", "a", "--model", folder)


@pytest.mark.parametrize("form", RUNTIMES)
def test_a_missing_program_is_named_with_its_command(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "export.json").write_text(json.dumps({"format": form, "files": []}), encoding="utf-8")
    package = PROGRAMS[form].package
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(CheckpointError, match=f"not installed: pip install {package}$"):
        nmt.load(tmp_path)
