"""Runs on all of a corpus, as in tutorials: what they show and leave, and how their training text is looked at."""

import json
from pathlib import Path

import pytest
from conftest import Cli, Project, call, read_metrics, without_pictures
from safetensors.torch import load_file
from training_runs import record_of, stop, stop_and_resume, train

from nmt.corpus.example import Example
from nmt.evaluation import input_text
from nmt.evaluation.input_text import read_split

CONFIG = """
data: {{source: {source}, split: {{valid_size: 0, test_size: 0}}}}
text: {{tokenizer: whitespace}}
model:
  {{embedding_size: 8, dropout: 0.3, encoder: {{cell: rnn, hidden_size: 8}}, decoder: {{cell: gru, hidden_size: 12}}}}
train: {{epochs: 3, batch: {{size: 2}}, log_every: 2, device: cpu, watch: 1}}
"""
PAIRS = [("a", "A"), ("a", "Ah"), ("b c", "C B"), ("d", "D"), ("e", "E"), ("f", "F")]
EXAMPLES = [Example("a", ("A", "Ah")), *(Example(src, (tgt,)) for src, tgt in PAIRS[2:])]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A corpus of six pairs, all of them to train on; three updates an epoch."""
    root = tmp_path_factory.mktemp("whole")
    source, config = root / "pairs.tsv", root / "whole.yaml"
    source.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in PAIRS), encoding="utf-8")
    config.write_text(CONFIG.format(source=source), encoding="utf-8")
    with without_pictures():
        assert call("preprocess", "--config", config, "--output", root / "data") == 0
        assert call("train", "--config", config, "--data", root / "data", "--output", root / "run") == 0
    return Project(root, config, root / "data", root / "run")


def test_each_epoch_has_its_loss_and_a_training_sentence(whole: Project, run: Path) -> None:
    said = train(whole, run).splitlines()
    losses = {line["update"]: line["loss"] for line in read_metrics(run)}
    assert list(losses) == [2, 3, 4, 6, 8, 9]  # every other update, and at the end of an epoch
    assert [line for line in said if line.startswith("epoch ")] == [
        f"epoch {epoch}, update {end}: training loss {(losses[first] + losses[end]) / 2:.2f}"
        for epoch, (first, end) in enumerate([(2, 3), (4, 6), (8, 9)], 1)
    ]
    shown = [line.split() for line in said if line.startswith("    ")]
    assert shown[::3] == [["d"]] * 3
    assert [line[0] for line in shown[1::3]] == ["->"] * 3
    assert shown[2::3] == [["==", "D"]] * 3
    history = json.loads((run / "attention.json").read_text(encoding="utf-8"))
    assert [sentence["source"] for sentence in history["sentences"]] == ["d"]
    assert [validation["update"] for validation in history["validations"]] == [3, 6, 9]


def test_a_stopped_run_leaves_its_last_weights(whole: Project, run: Path, cli: Cli) -> None:
    stop(whole, run, 5)
    assert record_of(run)["state"] == "stopped"
    assert json.loads((run / "best/model.json").read_text(encoding="utf-8"))["update"] == 5
    checkpoint = load_file(run / "checkpoints/update-000000005.safetensors")
    for name, weights in load_file(run / "best/model.safetensors").items():
        assert checkpoint[f"model.{name}"].equal(weights)
    assert cli("translate", "a", "--model", run).code == 0


def test_a_stopped_run_is_resumed_as_if_it_had_not_stopped(whole: Project, tmp_path: Path) -> None:
    stop_and_resume(whole, tmp_path, 5)


def test_the_training_split_has_every_source_once(whole: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sorted(read_split(whole.data, "train")) == EXAMPLES
    monkeypatch.setattr(input_text, "MAX_SEEN", 3)
    assert len(read_split(whole.data, "train")) == 3


def test_commands_take_the_training_split_and_say_so(whole: Project, cli: Cli) -> None:
    warning = "train: 5 sentences that a model of this data has learnt from: not a test"
    outcome = cli("evaluate", "--model", whole.run, "--split", "train")
    assert outcome.code == 0
    assert warning in outcome.err
    assert "BLEU" in outcome.out.splitlines()[0]
    assert "NOT A TEST OF UNSEEN TEXT" in outcome.out.splitlines()[0]
    outcome = cli("attention", "--model", whole.run, "--split", "train", "--sample", 2, "--json", whole.root / "a.json")
    assert outcome.code == 0
    assert warning in outcome.err
    assert len(json.loads((whole.root / "a.json").read_text(encoding="utf-8"))["sentences"]) == 2
