"""A model that CTranslate2 runs translates as here, word for word, and with the same scores."""

from pathlib import Path

import pytest
import torch
from conftest import Cli, Project, without_pictures

import nmt

ctranslate2 = pytest.importorskip("ctranslate2")

VARIANTS = {
    "pre-norm": (
        "model.embedding_size=24",
        "model.tying=target",
        "model.encoder={hidden_size: 64, num_heads: 8}",
        "model.decoder={num_layers: 3, num_heads: 2}",
    ),
    "post-norm": (
        "model.encoder={norm: post, activation: gelu, learned_positions: 101}",
        "model.decoder={norm: post, activation: gelu, learned_positions: 60}",
    ),
}
SETTINGS = (
    "model.encoder={kind: self_attention, hidden_size: 32, num_layers: 2, num_heads: 4}",
    "model.attention.score=general",
    "model.decoder={kind: transformer, hidden_size: 32, num_layers: 2, num_heads: 2}",
    "decode={beam_size: 4, length_norm: average, length_penalty: 0.8, max_length: 30}",
)


TRAINING = (
    "train.epochs=4",
    "train.optimizer.learning_rate=0.01",
    "train.schedule={name: inverse_sqrt, warmup: 20}",
    "train.validation.metric=loss",
)


@pytest.fixture(params=VARIANTS, scope="module")
def transformer(request: pytest.FixtureRequest, project: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Transformer that has learnt a little, so that its sentences differ and end."""
    run = tmp_path_factory.mktemp("run") / "run"
    settings = [*SETTINGS, *VARIANTS[request.param], *TRAINING]
    with without_pictures():
        nmt.train(project.config, data=project.data, output=run, overrides=settings)
    return run


def test_translations_and_scores_are_the_same(transformer: Path, tmp_path: Path) -> None:
    lines = [" ".join("abcdefgh"[(3 * start + step) % 8] for step in range(1 + start % 9)) for start in range(40)]
    output = nmt.export(transformer, to="ctranslate2", output=tmp_path / "out")
    runtime = ctranslate2.Translator(str(output))
    for beam_size in (1, 4):
        translator = nmt.load(transformer, beam_size=beam_size, overrides={"decode.max_length_ratio": 100})
        own = translator.translate(lines)
        others = runtime.translate_batch(
            [line.split() for line in lines],
            beam_size=beam_size,
            length_penalty=0.8,
            max_decoding_length=30,
            min_decoding_length=0,
            return_scores=True,
        )
        found = [" ".join(other.hypotheses[0]) for other in others]
        assert len(set(found)) > 5  # the sources matter
        same = [translation.text == text for translation, text in zip(own, found, strict=True)]
        # In a beam it stops at as many ended hypotheses as the beam holds, and may miss a better one.
        assert sum(same) >= (len(lines) if beam_size == 1 else 0.7 * len(lines))
        for translation, other, equal in zip(own, others, same, strict=True):
            assert not equal or translation.score == pytest.approx(other.scores[0], abs=1e-4)


def test_attention_is_that_of_the_layer_that_stands_for_the_whole(transformer: Path, tmp_path: Path) -> None:
    output = nmt.export(transformer, to="ctranslate2", output=tmp_path / "out")
    translator = nmt.load(transformer, beam_size=1, overrides={"decode.max_length_ratio": 100})
    translation = translator.translate("a b c d", with_alignment=True)
    (other,) = ctranslate2.Translator(str(output)).translate_batch(
        [list("abcd")], beam_size=1, max_decoding_length=30, return_attention=True
    )
    found = torch.tensor(other.attention[0])
    expected = torch.as_tensor(translation.alignment)[: len(found), :, :4].mean(dim=1)  # without the end of the source
    torch.testing.assert_close(found, expected.to(found.dtype), atol=1e-4, rtol=0)


def test_int8_weights_are_smaller(transformer: Path, cli: Cli, tmp_path: Path) -> None:
    sizes = {}
    for quantization in ("none", "int8", "float16"):
        exported = cli(
            *("export", "--model", transformer, "--to", "ctranslate2"),
            *("--output", tmp_path / quantization, "--quantization", quantization),
        )
        assert exported.code == 0, exported.err
        sizes[quantization] = (tmp_path / quantization / "model.bin").stat().st_size
        runtime = ctranslate2.Translator(str(tmp_path / quantization))
        assert runtime.translate_batch([["a", "b"]], max_decoding_length=30)[0].hypotheses
    assert sizes["int8"] < sizes["float16"] < sizes["none"]
