"""nmt explain: the numbers of one step."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Cli, Project
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import nmt


def test_the_numbers_are_those_of_the_translation(here: Project, cli: Cli) -> None:
    outcome = cli("explain", "a b c", "--step", "2")
    assert outcome.code == 0
    found = nmt.load(here.run).translate("a b c", with_alignment=True)
    assert found.alignment is not None
    lines = outcome.out.splitlines()
    assert lines[0] == f"a b c -> {found.text}"
    assert lines[1] == f"model: {here.run}/best"
    assert "additive, Bahdanau's order. Additive score" in lines[2]
    assert lines[4] == f"Step 2 of {len(found.tokens) + 1}: {found.tokens[1]}, after {found.tokens[0]}"
    rows = [re.match(r"     (\S+) +(-?[\d.]+)  ([\d.]+)", line) for line in lines]
    weights = [float(row[3]) for row in rows if row and row[1] in ("a", "b", "c", "⟨eos⟩")]
    assert weights == pytest.approx(found.alignment[1, 0].tolist(), abs=6e-4)
    (chosen,) = (line for line in lines if line.endswith("<- chosen"))
    assert chosen.split()[0] == found.tokens[1]
    assert found.token_log_probs is not None
    assert float(chosen.split()[1]) == pytest.approx(2.718281828 ** found.token_log_probs[1], abs=6e-4)


def test_scores_become_the_weights(here: Project) -> None:
    text = nmt.explain("a b c d", model=here.run, step=1)
    rows = re.findall(r"^     (?:[a-d]|⟨eos⟩) +(-?[\d.]+)  ([\d.]+)", text, re.MULTILINE)
    powers = [2.718281828 ** float(score) for score, _ in rows]
    assert [float(weight) for _, weight in rows] == pytest.approx([p / sum(powers) for p in powers], abs=2e-2)


def test_another_target(here: Project, cli: Cli) -> None:
    outcome = cli("explain", "a b", "--target", "H G", "--step", "3")
    assert "Step 3 of 3: ⟨eos⟩, after H G" in outcome.out


@pytest.fixture
def explain(random_project: Project, tmp_path: Path, cli: Cli) -> Callable[..., str]:
    """Explain a sentence with a new model that has the given settings."""

    def run(*settings: str) -> str:
        chosen = [part for setting in ("train.max_updates=3", *settings) for part in ("--set", setting)]
        command = ["train", "--config", random_project.config, "--data", random_project.data, *chosen]
        assert cli(*command, "--output", tmp_path / "run").code == 0
        return cli("explain", "a b c d", "--model", tmp_path / "run").out

    return run


@pytest.mark.parametrize("setting", ["model.attention.score=none", "model.attention.heads=2"])
def test_other_mechanisms(explain: Callable[..., str], setting: str) -> None:
    out = explain(setting)
    assert ("No attention" in out) == ("none" in setting)
    assert ("head 2" in out) == ("heads" in setting)


def test_hard_attention_looks_at_the_largest_chance(explain: Callable[..., str]) -> None:
    longer = ("train.max_updates=40", "train.optimizer.learning_rate=0.05")  # until the chances differ
    out = explain("model.attention.window.name=hard", *longer)
    rows = re.findall(r"^     (?:[a-d]|⟨eos⟩) +(-?[\d.]+)  ([\d.]+)  ([\d.]+)", out, re.MULTILINE)
    assert len(rows) == 5
    powers = [2.718281828 ** float(score) for score, _, _ in rows]
    chances = [float(chance) for _, chance, _ in rows]
    assert chances == pytest.approx([power / sum(powers) for power in powers], abs=5e-3)
    assert [float(weight) for _, _, weight in rows] == [float(chance == max(chances)) for chance in chances]


def test_numbers_that_are_almost_zero_have_no_sign(here: Project) -> None:
    """The first number of a query is made almost zero by its weights."""
    weights = here.run / "best/model.safetensors"
    tensors = {name: tensor * 1e-6 for name, tensor in load_file(weights).items()}
    save_file(tensors, weights, safe_open(weights, "pt").metadata())
    text = nmt.explain("a b c", model=here.run)
    assert " 0.00 0.00 " in text
    assert "-0.0" not in text
