"""nmt explain: the numbers of one step."""

import re

import pytest
from conftest import Cli, Project

import nmt


def test_the_numbers_are_those_of_the_translation(here: Project, cli: Cli) -> None:
    outcome = cli("explain", "a b c", "--step", "2")
    assert outcome.code == 0
    found = nmt.load(here.run).translate("a b c", with_alignment=True)
    assert found.alignment is not None
    lines = outcome.out.splitlines()
    assert lines[0] == f"a b c -> {found.text}"
    assert "additive, Bahdanau's order. Additive score" in lines[1]
    assert lines[3] == f"Step 2 of {len(found.tokens) + 1}: {found.tokens[1]}, after {found.tokens[0]}"
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


@pytest.mark.parametrize("settings", [["model.attention.score=none"], ["model.attention.heads=2"]])
def test_other_mechanisms(random_project: Project, tmp_path: object, cli: Cli, settings: list[str]) -> None:
    run = f"{tmp_path}/run"
    chosen = [part for each in (*settings, "train.max_updates=3") for part in ("--set", each)]
    command = ["train", "--config", random_project.config, "--data", random_project.data, "--output", run, *chosen]
    assert cli(*command).code == 0
    out = cli("explain", "a b", "--model", run).out
    assert ("No attention" in out) == ("none" in settings[0])
    assert ("head 2" in out) == ("heads" in settings[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["a b", "--step", "99"], "--step 99: the translation has"), (["  "], "the sentence has no words")],
)
def test_bad_input_is_one_line(arguments: list[str], message: str, here: Project, cli: Cli) -> None:
    outcome = cli("explain", *arguments)
    assert outcome.code == 1
    assert message in outcome.err
    assert len(outcome.err.splitlines()) == 1
