"""The mean of several models, and several models that translate together."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from conftest import Cli, Project, Refusal, errors, tree

import nmt
from nmt.config import dump_config, read_config
from nmt.config.attention_sections import NormalizerSection
from nmt.config.sections import ParentSection
from nmt.models.storage import load_model
from nmt.system.errors import ConfigError

RUN = Path("runs/reversal")


def shift(source: Path, target: Path, by: float) -> None:
    """A copy of a model with other weights."""
    from safetensors.torch import load_file, save_file

    shutil.copytree(source, target)
    weights = {name: part + by for name, part in load_file(target / "model.safetensors").items()}
    save_file(weights, target / "model.safetensors")


@pytest.fixture
def models(here: Project) -> list[Path]:
    paths = [RUN / "best", Path("second"), Path("third")]
    shift(paths[0], paths[1], 0.01)
    shift(paths[0], paths[2], 0.05)
    return paths


def test_the_average_has_the_mean_of_the_weights(here: Project, models: list[Path], cli: Cli) -> None:
    assert cli("average", *models, "--output", "mean").code == 0
    first, mean = (load_model(path).model.state_dict() for path in (models[0], Path("mean")))
    for name, weight in first.items():
        torch.testing.assert_close(mean[name], weight + 0.02, rtol=0, atol=1e-6)
    metadata = json.loads(Path("mean/model.json").read_text())
    assert metadata["average_of"] == ["best", "second", "third"]
    assert str(Path.cwd()) not in Path("mean/model.json").read_text()
    assert cli("translate", "a b c", "--model", "mean").code == 0
    assert cli("evaluate", "--model", "mean").code == 0
    assert cli("average", *models, "--output", "deep/down/mean").code == 0
    assert cli("evaluate", "--model", "deep/down/mean").code == 0


@pytest.mark.parametrize(
    ("begun", "strangers"),
    [
        ([(1, None), (1, None), (1, None)], ""),
        ([(1, None), (2, None), (3, None)], "second, third"),
        ([(1, None), (1, "base"), (2, "base")], "third"),
        ([(1, "base"), (2, "base"), (2, "other")], "third"),
    ],
)
def test_models_that_began_with_other_weights_are_named(
    models: list[Path], begun: list[tuple[int, str | None]], strangers: str, cli: Cli
) -> None:
    for path, (seed, run) in zip(models, begun, strict=True):
        config = read_config(path / "config.yaml")
        changed = {"train": config.train.model_copy(update={"seed": seed}), "parent": ParentSection(run=run)}
        (path / "config.yaml").write_text(dump_config(config.model_copy(update=changed)), encoding="utf-8")
    found = cli("average", *models, "--output", "mean")
    assert found.code == 0
    said = f"WARNING: {strangers}: began with other weights than runs/reversal/best (another seed, no common parent): "
    assert [line.startswith(said) for line in found.err.splitlines() if "began" in line] == [True] * bool(strangers)


@pytest.mark.parametrize("last", [-1, 0, 1])
def test_an_average_is_of_two_or_more(models: list[Path], last: int) -> None:
    with pytest.raises(ConfigError, match=f"`last={last}`: must be at least 2"):
        nmt.average(RUN, "mean", last=last)


def test_the_last_models_of_a_run(models: list[Path], cli: Cli) -> None:
    for number, path in enumerate(models, 1):
        shutil.copytree(path, RUN / f"models/update-{number:09d}")
    assert cli("average", RUN, "--last", 2, "--output", "mean").code == 0
    first, mean = (load_model(path).model.state_dict() for path in (models[0], Path("mean")))
    for name, weight in first.items():
        torch.testing.assert_close(mean[name], weight + 0.03, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([RUN], "at least two models: give several, or with --last those that one run has kept"),
        ([RUN, "--last", 2], "has kept 0 models, not 2"),
        ([RUN, RUN, "--last", 2], "models of one run"),
        ([RUN, "nowhere"], "nowhere: does not exist"),
        ([RUN, "other"], "other: differs from runs/reversal/best in "),
        ([RUN, "second", "--output", "third"], "--overwrite"),
        ([RUN, "second", "--output", RUN / "best", "--overwrite"], "choose another --output"),
        ([RUN, "second", "--output", "second", "--overwrite"], "would be lost"),
    ],
)
def test_what_cannot_be_averaged(models: list[Path], refusal: Refusal, arguments: list[object], words: str) -> None:
    shutil.copytree(models[0], "other")
    config = Path("other/text/src.vocabulary.json")
    config.write_text(json.dumps([*json.loads(config.read_text())[:-1], "unheard"]))
    before = tree()
    output = [] if "--output" in arguments else ["--output", "mean"]
    assert words in refusal("average", *arguments, *output)
    assert tree() == before


def test_models_translate_together(models: list[Path], cli: Cli) -> None:
    repeated = [part for path in models for part in ("--model", path)]
    found = cli("translate", "a b c d", *repeated, "--n-best", 2)
    assert found.code == 0
    ensemble = nmt.load(models)
    expected = ensemble.translate("a b c d", n_best=2)
    assert [line.split(" ||| ")[1] for line in found.out.splitlines()] == [each.text for each in expected]
    same = nmt.load([models[0], models[0]]).translate("a b c d")
    alone = nmt.load(models[0]).translate("a b c d")
    assert (same.text, same.log_prob) == (alone.text, pytest.approx(alone.log_prob, abs=1e-5))
    assert expected[0].log_prob != pytest.approx(alone.log_prob, abs=1e-5)
    scores = cli("evaluate", *repeated, "--json", "scores.json")
    assert scores.code == 0
    assert json.loads(Path("scores.json").read_text())["other_models"] == ["second", "third"]


def test_models_of_other_words_do_not_translate_together(models: list[Path], refusal: Refusal) -> None:
    path = Path("second/text/tgt.vocabulary.json")
    path.write_text(json.dumps(json.loads(path.read_text())[::-1]))
    line = refusal("translate", "a b", "--model", models[0], "--model", "second")
    assert line.startswith("second: has other vocabularies or another tokenizer than runs/reversal/best")


def test_search_settings_that_cannot_be(here: Project, cli: Cli) -> None:
    decode = {
        "decode.beam_sise=3": "did you mean beam_size?",
        "decode.min_length=-1": "decode.min_length",
        "decode.sampling.temperature=hot": "decode.sampling.temperature",
    }
    other = {"model.dropout=0.5": "model.dropout: cannot be changed after training"}
    for command in (["translate", "a b"], ["evaluate"]):
        for wrong in (decode, other, {"nonsense": "nonsense"}):
            found = cli(*command, *(part for setting in wrong for part in ("--set", setting)))
            assert found.code == 1
            lines = errors(found.err)
            assert len(lines) == len(wrong)
            assert all(sum(words in line for line in lines) == 1 for words in wrong.values())


def test_search_settings(here: Project, cli: Cli) -> None:
    long = cli("translate", "a b", "--set", "decode.min_length=6")
    assert len(long.out.split()) >= 6
    sampled = [
        cli("translate", "a b c d", "--n-best", 20, "--set", f"decode.sampling={{temperature: 9.0, seed: {seed}}}").out
        for seed in (1, 1, 2)
    ]
    assert len(sampled[0].splitlines()) == 20
    assert sampled[0] == sampled[1] != sampled[2]
    assert cli("translate", "a b c", "--precision", "bfloat16").code == 0
    assert cli("translate", "a b c", "--precision", "int8").code == 1


def test_scores_and_beginnings_of_given_translations(here: Project) -> None:
    translator = nmt.load(RUN)
    texts = ["a b c d", "", "e f"]
    found = translator.translate(texts, with_alignment=True)
    again = translator.score(texts, [each.text for each in found], with_alignment=True)
    for text, one, other in zip(texts, found, again, strict=True):
        assert (one.text, one.tokens) == (other.text, other.tokens)
        if not text:  # translated without the model, but scored with it
            continue
        assert one.log_prob == pytest.approx(other.log_prob, abs=1e-4)
        assert one.token_log_probs == pytest.approx(other.token_log_probs, abs=1e-4)
        if one.alignment is not None and other.alignment is not None:
            torch.testing.assert_close(one.alignment, other.alignment, rtol=0, atol=1e-4)
    for translations, prefix in zip(
        translator.complete(texts, ["A zzz", "B", ""], n_best=2), ["A zzz", "", ""], strict=True
    ):
        assert [each.text[: len(prefix)] for each in translations] == [prefix] * len(translations)


def test_a_translation_of_nothing_is_improbable(here: Project) -> None:
    nothing, something = nmt.load(RUN).score(["", "a b c"], ["C B A", "C B A"])
    assert nothing.log_prob < something.log_prob - 1
    assert len(nothing.token_log_probs) == 4


def test_settings_that_forbid_everything_are_named(here: Project, refusal: Refusal) -> None:
    line = refusal("translate", "a b", "--prefix", "A A A", "--set", "decode.no_repeat_ngram_size=1")
    assert line.startswith("decode.no_repeat_ngram_size: every continuation")


def test_models_that_differ_in_training_alone_have_a_mean(models: list[Path], cli: Cli, refusal: Refusal) -> None:
    """Dropout and the first values of weights are not there when a model translates."""
    path = models[1] / "config.yaml"
    config = read_config(path)
    assert config.model.dropout != 0.45
    model = config.model.model_copy(
        update={
            "dropout": 0.45,
            "output_dropout": 0.1,
            "attention": config.model.attention.model_copy(update={"dropout": 0.2}),
            "initialization": config.model.initialization.model_copy(update={"scale": 0.3}),
        }
    )
    path.write_text(dump_config(config.model_copy(update={"model": model})), encoding="utf-8")
    assert cli("average", *models, "--output", "mean").code == 0
    mean = load_model(Path("mean"))
    assert mean.config.model == load_model(models[0]).config.model
    other = config.model.attention.model_copy(update={"normalizer": NormalizerSection(temperature=2.0)})
    model = config.model.model_copy(update={"attention": other})
    path.write_text(dump_config(config.model_copy(update={"model": model})), encoding="utf-8")
    message = refusal("average", *models, "--output", "mean2")
    assert (
        "second: differs from runs/reversal/best in model.attention.normalizer.temperature (2.0 there, 1.0" in message
    )
