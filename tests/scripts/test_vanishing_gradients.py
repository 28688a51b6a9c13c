"""Gradients at encoder states: by finite differences, and the script as a user runs it."""

import sys
from pathlib import Path

import pytest
import torch
import vanishing_gradients as gradients
from torch import Tensor

from nmt.config import load_config
from nmt.models.base import EncoderOutput
from nmt.models.build import build_model
from nmt.models.seq2seq import Seq2Seq

SOURCES, TARGETS = [[4, 5, 6], [7, 8, 4]], [[4, 5], [6, 7]]


def small_model(cell: str, score: str) -> Seq2Seq:
    settings = gradients.settings_of(cell, score, updates=1, seed=1)
    settings |= {"model.embedding_size": 3, "model.encoder.hidden_size": 4, "model.decoder.hidden_size": 4}
    torch.manual_seed(1)
    model = build_model(load_config("sample", [f"{key}={value}" for key, value in settings.items()]).model, 9, 9)
    for weights in model.parameters():
        torch.nn.init.uniform_(weights, -1, 1)
    return model.double().eval()


@pytest.mark.parametrize("cell", gradients.CELLS)
@pytest.mark.parametrize("score", gradients.SCORES)
def test_steps_encode_what_the_encoder_does(cell: str, score: str) -> None:
    model = small_model(cell, score)
    src = gradients.pad(SOURCES, suffix=True)
    by_steps, _ = gradients.encode_by_steps(model, src)
    encoded: EncoderOutput = model.encode(src, torch.tensor([4, 4]))
    torch.testing.assert_close(by_steps.states, encoded.states)
    assert by_steps.final_state is not None
    torch.testing.assert_close(by_steps.final_state, encoded.final_state)


def test_a_gradient_is_that_of_finite_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small change of the first state goes on through the later states, and through attention."""
    model = small_model("gru", "additive")
    norms = gradients.measure(model, SOURCES[:1], TARGETS[:1])
    layer = model.encoder.layers[0][0]
    step = type(layer).forward

    def loss(position: int, change: Tensor) -> float:
        """The loss if the state after a step is changed."""
        calls = []

        def changed(self: object, inputs: Tensor, state: tuple[Tensor, ...]) -> tuple[object, tuple[Tensor, ...]]:
            outputs, (after,) = step(self, inputs, state)
            calls.append(inputs)
            return outputs, (after + change if len(calls) == position + 1 else after,)

        with monkeypatch.context() as patch:
            patch.setattr(type(layer), "forward", changed)
            encoded, _ = gradients.encode_by_steps(model, gradients.pad(SOURCES[:1], suffix=True))
        readouts = model.decoder(gradients.pad(TARGETS[:1], prefix=True), encoded).readouts
        logits = model.decoder.output(readouts)
        words = gradients.pad(TARGETS[:1], suffix=True).flatten()
        return float(torch.nn.functional.cross_entropy(logits.flatten(0, 1), words).detach())

    def norm(position: int) -> float:
        sides = [torch.eye(4, dtype=torch.float64)[n].view(1, 1, 4) * 1e-5 for n in range(4)]
        return float(torch.tensor([(loss(position, s) - loss(position, -s)) / 2e-5 for s in sides]).norm())

    expected = [norm(position) / norm(3) for position in (3, 2, 1, 0)]
    assert norms == pytest.approx(expected, rel=1e-4)


def test_the_script_draws_and_tabulates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "gradients.png"
    monkeypatch.setattr(gradients, "CELLS", ("gru",))
    monkeypatch.setattr(sys, "argv", ["vanishing_gradients.py", "--output", str(output), "--updates", "2"])
    gradients.main()
    header, *rows = capsys.readouterr().out.splitlines()
    assert header == "moment\tcell\tattention\t1 words\t4 words\t8 words\t12 words"
    assert [row.split("\t")[:3] for row in rows] == [
        ["at initialisation", "gru", "one fixed context"],
        ["at initialisation", "gru", "additive attention"],
        ["after 2 updates", "gru", "one fixed context"],
        ["after 2 updates", "gru", "additive attention"],
    ]
    assert float(rows[0].split("\t")[-1]) < 0.1 < float(rows[1].split("\t")[-1])  # twelve words from the end
    assert output.read_bytes().startswith(b"\x89PNG")
    monkeypatch.setattr(sys, "argv", ["vanishing_gradients.py", "--output", str(tmp_path / "gradients.x")])
    with pytest.raises(SystemExit, match="not a picture format"):
        gradients.main()
