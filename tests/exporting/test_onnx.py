"""The graphs of a model compute what the model computes, and the program beside them translates as `nmt` does."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import GOLDEN_MODEL, Cli, Project
from covering import covering
from small_models import randomize

import nmt
from nmt.config import Config, load_config
from nmt.exporting.formats import find_format
from nmt.exporting.onnx_models import build_graphs
from nmt.models.build import build_model
from nmt.search.stepper import Seq2SeqStepper
from nmt.text.vocabulary import BOS_ID, EOS_ID, PAD_ID

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

LAYERS = "num_layers: 2, residual: true, layer_norm: layers"
RECURRENT_ENCODERS = ("hidden_size: 4", f"hidden_size: 4, {LAYERS}", "hidden_size: 8, bidirectional: false")
RECURRENT_DECODERS = (
    "order: bahdanau",
    f"order: bahdanau, readout: maxout, {LAYERS}, attend_from: first, context_to: all",
    "order: bahdanau, readout: state, num_layers: 2",
    "order: luong, readout: linear, num_layers: 2",
    f"order: luong, {LAYERS}, attend_from: first",
    "order: luong, input_feeding: true, num_layers: 2, residual: true, context_to: all",
)
ATTENTIONS = (
    "score: additive, window: {name: local_p, radius: 1}, normalizer: {temperature: 0.5}",
    "score: additive, heads: 2, options: {size: 6}",
    "score: dot",
    "score: general, window: {name: local_p, radius: 2}",
    "score: general, heads: 2, head_size: 3",
    "score: scaled_dot, normalizer: {temperature: 2.0}",
)
SCORES = ("additive", "concat", "dot", "general", "scaled_dot")
SIZES = "hidden_size: 8, num_heads: 2, num_layers: 2, feed_forward_size: 12"
OTHER = "norm: post, activation: gelu, learned_positions: 7"
SOURCES = ((5, 4, 8, 6, 7), (4, 5, 6), ())
SELECTIONS = ((0, 1, 2), (2, 0, 0, 1), (3, 1, 2, 0, 2), (4, 1, 0))
"""The rows that go on after each step, as in a beam."""


class Exported:
    """A small model with random weights and its graphs, as a runtime loads them."""

    def __init__(self, folder: Path, *settings: str) -> None:
        config = load_config(Config(), ["model.embedding_size=6", *settings])
        assert list(find_format("onnx").find_obstacles(config)) == []
        self.model = randomize(build_model(config.model, 9, 8)).float().eval()
        self.sessions = []
        for graph in build_graphs(self.model, config):
            graph.write(folder / graph.name)
            self.sessions.append(onnxruntime.InferenceSession(folder / graph.name, providers=["CPUExecutionProvider"]))
        self.stepper = Seq2SeqStepper(self.model)
        with torch.inference_mode():
            self.starts = {
                source: self.stepper.start(torch.tensor([[*source, EOS_ID]]), torch.tensor([len(source) + 1]))
                for source in SOURCES
            }

    def run(self, number: int, inputs: dict[str, Any]) -> dict[str, Any]:
        """The outputs of the encoder's graph, 0, or the decoder's, 1."""
        outputs = [output.name for output in self.sessions[number].get_outputs()]
        return dict(zip(outputs, self.sessions[number].run(outputs, inputs), strict=True))

    def expect(self, source: Sequence[int], words: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
        """What the model itself computes for one source, alone and without padding, in the step after some words."""
        state = self.starts[tuple(source)]
        with torch.inference_mode():
            for word in (BOS_ID, *words):
                log_probs, alignment, state = self.stepper.step(torch.tensor([word]), state)
        return log_probs[0], alignment[0]


def assert_same_steps(exported: Exported) -> None:
    """Mixed lengths in one batch, whose rows a beam repeats and reorders, give what each gives alone."""
    lengths = np.array([len(source) + 1 for source in SOURCES])
    src = np.full((len(SOURCES), max(lengths)), PAD_ID)
    for row, source in zip(src, SOURCES, strict=True):
        row[: len(source) + 1] = [*source, EOS_ID]
    state = exported.run(0, {"src": src, "lengths": lengths})
    rows = [(source, ()) for source in SOURCES]
    words = np.full(len(rows), BOS_ID)
    for step, selection in enumerate(SELECTIONS):
        found = exported.run(1, {"words": words, **state})
        if step in (0, len(SELECTIONS) - 1):
            for number, (source, prefix) in enumerate(rows):
                log_probs, alignment = exported.expect(source, prefix)
                real = found["alignment"][number, :, : len(source) + 1]
                torch.testing.assert_close(torch.tensor(found["log_probs"][number]), log_probs, atol=1e-5, rtol=1e-5)
                torch.testing.assert_close(torch.tensor(real), alignment, atol=1e-5, rtol=1e-5)
                assert not found["alignment"][number, :, len(source) + 1 :].any()  # exactly 0 on padding
        state |= {name.removeprefix("next_"): found[name] for name in found if name.startswith("next_")}
        state = {name: value[list(selection)] for name, value in state.items()}
        words = np.array([4 + (3 * step + number) % 4 for number in range(len(selection))])
        rows = [(rows[row][0], (*rows[row][1], int(word))) for row, word in zip(selection, words, strict=True)]


def is_possible(row: tuple[Any, ...]) -> bool:
    """Whether the encoder has the backward state that the decoder begins with."""
    encoder, _, _, _, initial_state = row
    return "false" not in encoder or initial_state != "backward"


@covering(
    "encoder, decoder, cell, attention, initial_state",
    RECURRENT_ENCODERS,
    RECURRENT_DECODERS,
    ("lstm", "gru", "rnn"),
    ATTENTIONS,
    ("final", "backward", "zeros"),
    valid=is_possible,
)
def test_steps_of_recurrent_models_are_the_same(
    encoder: str, decoder: str, cell: str, attention: str, initial_state: str, tmp_path: Path
) -> None:
    exported = Exported(
        tmp_path,
        f"model.encoder={{cell: {cell}, {encoder}}}",
        f"model.decoder={{cell: {cell}, hidden_size: 8, initial_state: {initial_state}, {decoder}}}",
        f"model.attention={{{attention}}}",
    )
    assert_same_steps(exported)


@covering(
    "encoder, decoder, output",
    (f"kind: self_attention, {SIZES}", f"kind: self_attention, {SIZES}, {OTHER}", "kind: recurrent, hidden_size: 4"),
    (
        f"kind: transformer, {SIZES}",
        f"kind: transformer, {SIZES.replace('layers: 2', 'layers: 1')}, {OTHER}",
        f"kind: ssru, {SIZES}",
        f"kind: ssru, {SIZES}, {OTHER}",
        "kind: recurrent, hidden_size: 8, initial_state: zeros",
    ),
    (("model.tying=none",), ("model.tying=target", "model.embedding_size=8"), ("model.output_norm=3",)),
)
def test_steps_of_transformers_and_hybrids_are_the_same(
    encoder: str, decoder: str, output: tuple[str, ...], tmp_path: Path
) -> None:
    assert_same_steps(Exported(tmp_path, f"model.encoder={{{encoder}}}", f"model.decoder={{{decoder}}}", *output))


@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn"])
def test_a_copied_state_is_that_of_every_layer(cell: str, tmp_path: Path) -> None:
    sizes = f"cell: {cell}, num_layers: 2, hidden_size"
    decoder = f"model.decoder={{{sizes}: 8, initial_state: copy}}"
    assert_same_steps(Exported(tmp_path, f"model.encoder={{{sizes}: 4}}", decoder))


@pytest.mark.parametrize("norm", ["null", "3"])
def test_weights_that_are_tied_are_stored_once(norm: str, tmp_path: Path) -> None:
    sizes = []
    for tying in ("none", "target"):
        Exported(tmp_path, f"model.tying={tying}", "model.decoder.hidden_size=6", f"model.output_norm={norm}")
        sizes.append((tmp_path / "decoder").stat().st_size)
    assert sizes[0] - sizes[1] >= 8 * 6 * 4  # words, units and bytes


def test_the_program_translates_as_nmt_does(project: Project, cli: Cli, tmp_path: Path) -> None:
    lines = ["a b c", "", "h g f e d c", "bad b", *(letter for letter in "abcdefgh")]
    own = [translation.text for translation in nmt.load(project.run, beam_size=1).translate(lines)]
    assert cli("export", "--model", project.run, "--to", "onnx", "--output", tmp_path / "out").code == 0
    program = [sys.executable, "translate.py"]
    found = subprocess.run(
        program, cwd=tmp_path / "out", input="\n".join(lines), capture_output=True, text=True, check=True
    )
    assert found.stdout.splitlines() == own
    assert len(set(own)) > 5  # the sources matter
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        refused = subprocess.run(
            program, cwd=tmp_path / "out", input="a\n", stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert refused.returncode == 1
    assert refused.stderr == "translate.py: the output cannot be written: No space left on device\n"


def test_a_folder_has_pieces_limits_and_names(tmp_path: Path) -> None:
    lines = ["The old woman reads a book.", "", "I am old.", "We see the small dog, and he sleeps."]
    own = [translation.text for translation in nmt.load(GOLDEN_MODEL, beam_size=1).translate(lines)]
    output = nmt.export(GOLDEN_MODEL, to="onnx", output=tmp_path / "out")
    program = [sys.executable, output / "translate.py"]
    text = "\n".join(lines).encode()
    found = subprocess.run(program, input=text + b"\n\xff", capture_output=True, check=True)
    assert found.stdout.decode().splitlines()[: len(own)] == own  # behind them, what the model makes of a wrong byte
    settings = json.loads((output / "model.json").read_text(encoding="utf-8"))
    assert settings["special_ids"] == [0, 1, 2, 3]
    assert settings["decoder"]["inputs"] == ["words", "mask", "keys", "values", "hidden_0"]
    assert settings["decoder"]["outputs"] == ["log_probs", "alignment", "next_hidden_0"]
    usage = (output / "README.md").read_text(encoding="utf-8")
    assert "unicode" in usage  # what is done with text before
    assert "Emoji" in usage
    (output / "source.spm").unlink()  # text is not split at spaces in its place
    incomplete = subprocess.run(program, input=text, capture_output=True, check=False)
    assert (incomplete.returncode != 0, incomplete.stdout) == (True, b"")
    assert b"source.spm" in incomplete.stderr


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ([], []),
        (["model.decoder={kind: ssru}", "model.encoder={kind: self_attention}"], []),
        (["model.encoder.layer_norm=cell"], ["model.encoder.layer_norm: cell {}; set layers or none"]),
        (["model.decoder.layer_norm=cell"], ["model.decoder.layer_norm: cell {}; set layers or none"]),
        (
            ["model.attention={score: location, options: {max_length: 9}, window: {name: hard}}"],
            [
                "model.attention.score: location {}; set {}",
                "model.attention.window.name: hard {}; set global or local_p",
            ],
        ),
        (
            ["model.attention={score: additive, past: {name: coverage}, normalizer: {name: sparsemax}}"],
            [
                "model.attention.normalizer.name: sparsemax {}; set softmax",
                "model.attention.past.name: coverage {}; set none",
            ],
        ),
        (
            ["model.attention={score: none}"],
            ["model.attention.score: none {}; set {}"],
        ),
    ],
)
def test_what_is_not_written_as_onnx(settings: list[str], expected: list[str]) -> None:
    config = load_config(Config(), settings)
    assert [f"{key}: {text}" for key, text in find_format("onnx").find_obstacles(config)] == [
        text.format("does not run in ONNX", " or ".join(SCORES)) for text in expected
    ]


def test_the_program_reads_lines_as_nmt_does(tmp_path: Path) -> None:
    """A byte order mark changed the first translation, no line gave one, and the locale chose the encoding."""
    output = nmt.export(GOLDEN_MODEL, to="onnx", output=tmp_path / "out")

    def translate(content: bytes) -> bytes:
        environment = os.environ | {"PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0", "LC_ALL": "C"}
        program = [sys.executable, output / "translate.py"]
        return subprocess.run(program, input=content, capture_output=True, check=True, env=environment).stdout

    plain = translate(b"She sleeps.\nI gave her five books.\n")
    assert plain.count(b"\n") == 2
    assert translate(b"\xef\xbb\xbfShe sleeps.\r\nI gave her five books.") == plain
    assert translate(b"") == b""
    assert translate(b"\n") == b"\n"
    unknown = translate("\u0160\u4e00".encode())
    assert unknown.decode("utf-8").count("\n") == 1
    assert translate(b"a\x85b\x0cc\rd\xe2\x80\xa8e").count(b"\n") == 1  # only a line feed ends a line
