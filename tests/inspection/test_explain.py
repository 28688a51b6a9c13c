"""nmt explain: the numbers of one step."""

import html
import math
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from conftest import GOLDEN_MODEL, Cli, Project, Refusal, train_arguments
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import nmt
from nmt.text.vocabulary import BOS_ID, EOS_ID


def rows_of(text: str) -> list[list[float]]:
    """The numbers of each source position: score, chance if there is one, and weight."""
    rows = re.findall(r"^     (?:[a-d]|⟨eos⟩) +(-?[\d.]+(?:  [\d.]+)+)", text, re.MULTILINE)
    return [list(map(float, row.split())) for row in rows]


def source_lines(text: str) -> list[str]:
    """The lines of the five source positions of `a b c d`."""
    return re.findall(r"^     (?:[a-d]|⟨eos⟩) +(-?\d.*)", text, re.MULTILINE)[:5]


def softmax(scores: Sequence[float]) -> list[float]:
    return torch.tensor(scores).softmax(dim=0).tolist()


def test_the_numbers_are_those_of_the_translation(here: Project, cli: Cli) -> None:
    outcome = cli("explain", "a b c", "--step", "2")
    assert outcome.code == 0
    found = nmt.load(here.run).translate("a b c", with_alignment=True)
    lines = outcome.out.splitlines()
    assert lines[0] == f"a b c -> {found.text}"
    assert lines[1] == f"model: {here.run}/best"
    assert "additive, Bahdanau's order. Additive score" in lines[2]
    assert lines[4] == f"Step 2 of {len(found.tokens) + 1}: {found.tokens[1]}, after {found.tokens[0]}"
    assert [weight for _, weight in rows_of(outcome.out)] == pytest.approx(found.alignment[1, 0].tolist(), abs=6e-4)
    (chosen,) = (line for line in lines if line.endswith("<- chosen"))
    assert chosen.split()[0] == found.tokens[1]
    assert float(chosen.split()[1]) == pytest.approx(math.exp(found.token_log_probs[1]), abs=6e-4)


def test_scores_become_the_weights(here: Project) -> None:
    scores, weights = zip(*rows_of(nmt.explain("a b c d", model=here.run, step=1)), strict=True)
    assert weights == pytest.approx(softmax(scores), abs=2e-2)


def test_unknown_words_are_named(here: Project) -> None:
    lines = nmt.explain("a zebra b Gnu", model=here.run).splitlines()
    assert lines[1] == "read as unknown words: zebra Gnu"
    assert "unknown" not in nmt.explain("a b", model=here.run)


def test_another_target(here: Project, cli: Cli) -> None:
    outcome = cli("explain", "a b", "--target", "H G", "--step", "3")
    assert "Step 3 of 3: ⟨eos⟩, after H G" in outcome.out


def test_the_weights_of_several_models_stand_side_by_side(here: Project, cli: Cli) -> None:
    others = ["runs/one", "runs/two"]
    generator = torch.Generator().manual_seed(5)
    for other in others:
        weights = shutil.copytree(here.run, Path(other)) / "best/model.safetensors"
        tensors = load_file(weights)
        changed = {name: value + 0.2 * torch.randn(value.shape, generator=generator) for name, value in tensors.items()}
        save_file(changed, weights, safe_open(weights, "pt").metadata())
    against = [part for other in others for part in ("--against", other)]
    outcome = cli("explain", "a b c d", "--model", here.run, "--step", "2", *against)
    assert outcome.code == 0, outcome.err
    assert re.findall("^model: (.*)", outcome.out, re.MULTILINE) == [f"{run}/best" for run in (here.run, *others)]
    assert "     Columns of weights: reversal, one, two\n" in outcome.out
    text = nmt.load(here.run).translate("a b c d").text
    rows = [map(float, re.findall(r"-?\d+\.\d+", line)) for line in source_lines(outcome.out)]
    _, *columns = zip(*rows, strict=True)
    for column, run in zip(columns, (here.run, *others), strict=True):
        (read,) = nmt.load(run).score(["a b c d"], [text], with_alignment=True)
        assert column == pytest.approx(read.alignment[1, 0].tolist(), abs=6e-4)
        if run in others:
            share = math.exp(read.token_log_probs[1])
            assert f"     {read.tokens[1]} has {share:.3f} with {Path(run).name}\n" in outcome.out


def test_models_with_other_tokens_are_refused_in_one_line(here: Project, refusal: Refusal) -> None:
    says = refusal("explain", "a b", "--against", GOLDEN_MODEL)
    assert says.startswith(f"--against {GOLDEN_MODEL}: has other tokens for the same text: ")


def test_a_model_without_attention_stands_beside_one_that_has_it(
    here: Project, explain: Callable[..., str], run: Path, cli: Cli
) -> None:
    explain("model.attention.score=none")
    outcome = cli("explain", "a b c d", "--model", run, "--against", here.run)
    assert outcome.code == 0, outcome.err
    columns = [re.findall(r"\d\.\d{3}", line) for line in source_lines(outcome.out)]
    assert [own for own, _ in columns] == ["0.000"] * 5
    assert sum(float(beside) for _, beside in columns) == pytest.approx(1, abs=3e-3)


@pytest.fixture
def explain(random_project: Project, run: Path, cli: Cli, no_pictures: None) -> Callable[..., str]:
    """Explain a sentence with a new model that has the given settings."""

    def train(*settings: str) -> str:
        assert cli(*train_arguments(random_project, run, "train.max_updates=3", *settings)).code == 0
        return cli("explain", "a b c d", "--model", run).out

    return train


@pytest.mark.parametrize("setting", ["model.attention.score=none", "model.attention.heads=2"])
def test_other_mechanisms(explain: Callable[..., str], setting: str) -> None:
    out = explain(setting)
    assert ("No attention" in out) == ("none" in setting)
    assert ("head 2" in out) == ("heads" in setting)


@pytest.mark.parametrize(("heads", "named"), [(2, "all 2 heads"), (1, "one head")])
def test_the_layer_of_a_transformer_is_named(explain: Callable[..., str], run: Path, heads: int, named: str) -> None:
    sizes = f"hidden_size: 4, num_layers: 3, num_heads: {heads}, feed_forward_size: 4"
    lines = explain(f"model.decoder={{kind: transformer, {sizes}}}").splitlines()
    assert lines[5] == f"  Attention of layer 2 of 3 ({named}), which stands for the whole"
    translator = nmt.load(run, device="cpu")
    model, ids = translator.model, translator.processor.src_vocabulary.encode(["a", "b", "c", "d"])
    encoded = model.encode(torch.tensor([[*ids, EOS_ID]]), torch.tensor([5]))
    alignments = model.decoder(torch.tensor([[BOS_ID]]), encoded).alignments[0, 0]  # [layers * heads, S]
    shown = [weight for _, weight in rows_of("\n".join(lines))]
    assert shown == pytest.approx(alignments[heads : 2 * heads].flatten().tolist(), abs=6e-4)


def test_hard_attention_looks_at_the_largest_chance(explain: Callable[..., str]) -> None:
    longer = ("train.max_updates=40", "train.optimizer.learning_rate=0.05")  # until the chances differ
    out = explain("model.attention.window.name=hard", *longer)
    scores, chances, weights = zip(*rows_of(out), strict=True)
    assert len(scores) == 5
    assert chances == pytest.approx(softmax(scores), abs=5e-3)
    assert weights == tuple(float(chance == max(chances)) for chance in chances)


def test_numbers_that_are_almost_zero_have_no_sign(here: Project) -> None:
    """The first number of a query is made almost zero by its weights."""
    weights = here.run / "best/model.safetensors"
    tensors = {name: tensor * 1e-6 for name, tensor in load_file(weights).items()}
    save_file(tensors, weights, safe_open(weights, "pt").metadata())
    text = nmt.explain("a b c", model=here.run)
    assert " 0.00 0.00 " in text
    assert "-0.0" not in text


def test_a_notebook_shows_lines(project: Project) -> None:
    """It was one paragraph, with \\n in it."""
    found = nmt.explain("a b c", model=project.run)
    assert found.count("\n") > 5
    assert repr(found) == found
    shown = f'<pre style="overflow-x: auto">{html.escape(found)}</pre>'
    assert found._repr_html_() == shown  # type: ignore[attr-defined]
