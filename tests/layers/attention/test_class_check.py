"""Attention classes of readers: each mistake is named, what is right is not, and a right one trains as a score."""

from pathlib import Path

import pytest
import torch
from conftest import Cli, Project
from torch import Tensor, nn

import nmt
from nmt.testing import check_exercises

BEGIN = "import torch\nfrom torch import nn\n\n\nclass Mine(nn.Module):\n"
MATRICES = """\
    def __init__(self, size):
        super().__init__()
        self.W, self.U, self.v = nn.Linear(size, size), nn.Linear(size, size), nn.Linear(size, 1)

"""
WIDE = """\
    def __init__(self, size):
        super().__init__()
        self.W, self.v = nn.Linear(2 * size, size, bias=False), nn.Parameter(torch.zeros(size))

"""
FORWARD = "    def forward(self, query, states, mask):\n"
DOT = "        scores = (states @ query.unsqueeze(2)).squeeze(2)\n"
MASK = "        scores = scores.masked_fill(~mask, -torch.inf)\n"
RETURN = "        return scores.softmax(dim=1)\n"
CASES = {
    "dot": (FORWARD + DOT + MASK + RETURN, "the dot score, ok"),
    "context and weights": (
        FORWARD
        + DOT
        + MASK
        + "        weights = scores.softmax(1)\n        return (weights.unsqueeze(1) @ states), weights\n",
        "the dot score, ok",
    ),
    "additive with biases, a query of one step": (
        MATRICES
        + FORWARD
        + "        scores = self.v(torch.tanh(self.W(query) + self.U(states))).squeeze(2)\n"
        + MASK
        + "        return scores.softmax(1).unsqueeze(1)\n",
        "the additive score, ok",
    ),
    "concat": (
        WIDE
        + FORWARD
        + "        both = torch.cat([query.unsqueeze(1).expand_as(states), states], dim=2)\n"
        + "        scores = torch.tanh(self.W(both)) @ self.v\n"
        + MASK
        + RETURN,
        "the concat score, ok",
    ),
    "tied": (
        MATRICES
        + FORWARD
        + "        scores = self.v(torch.tanh(self.W(query.unsqueeze(1) + states))).squeeze(2)\n"
        + MASK
        + RETURN,
        "the additive score with tied matrices, one matrix for query and states: give each its own "
        "(Mistakes of tutorials on attention, 1); U.weight, U.bias: has no gradient, so nothing reads it",
    ),
    "no mask": (
        "    def forward(self, query, states):\n" + DOT + RETURN,
        "the dot score, no mask: forward(query, states) cannot know where the padding is, which gets weight",
    ),
    "mask after the softmax": (
        FORWARD + DOT + "        return scores.softmax(dim=1) * mask\n",
        "the dot score, depends on how much padding follows: more of it changes the weights of words",
    ),
    "mask the wrong way round": (
        FORWARD + DOT + "        return scores.masked_fill(mask, -1e9).softmax(dim=1)\n",
        "a score of its own, the mask hides the words: it is True at words, and `masked_fill(~mask, -torch.inf)` hides "
        "the others",
    ),
    "mask that is not read": (FORWARD + DOT + RETURN, "the dot score, padding has weight, up to "),
    "wrong axis": (
        FORWARD + DOT + MASK.replace("-torch.inf", "-1e9") + "        return scores.softmax(dim=0)\n",
        "the weights of a word sum to 1 over the sentences: the softmax is over the wrong axis; depends on the rest",
    ),
    "batch": (
        FORWARD + "        scores = states @ query.mean(dim=0)\n" + MASK + RETURN,
        "a score of its own, depends on the rest of the batch: a sentence by itself has other weights",
    ),
    "context": (
        FORWARD + DOT + MASK + "        weights = scores.softmax(dim=1)\n        return states.sum(dim=1), weights\n",
        "the dot score, the context is not the sum of the states, each times its weight",
    ),
    "error": (FORWARD + "        return states @ query\n", "fails with query [4, 8], states [4, 5, 8] and mask [4, 5]"),
    "no weights": (FORWARD + "        return query\n", "no result has the shape of weights, [B, S] = [4, 5]"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_class_gets_the_verdict_that_it_deserves(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body, expected = CASES[name]
    path = tmp_path / "my_attention.py"
    path.write_text(BEGIN + body, encoding="utf-8")
    failed = check_exercises([str(path)])
    said = capsys.readouterr().out
    assert said.startswith("Mine: ")
    assert expected in said
    assert said.count("\n") == 1
    assert failed is not said.endswith(", ok\n")


class Dot(nn.Module):
    """As in many tutorials."""

    def forward(self, query: Tensor, states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        scores = (states @ query.unsqueeze(2)).squeeze(2).masked_fill(~mask, -torch.inf)
        weights = scores.softmax(dim=1)
        return (weights.unsqueeze(1) @ states).squeeze(1), weights


def test_a_class_as_a_score_gives_its_weights() -> None:
    score = nmt.as_score(Dot)(query_size=6, key_size=6).double()
    query, states = torch.randn(2, 3, 6).double(), torch.randn(2, 5, 6).double()
    torch.testing.assert_close(score(query, states).softmax(dim=2), (query @ states.mT).softmax(dim=2))


def test_a_class_trains_as_a_score(project: Project, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body, _ = CASES["additive with biases, a query of one step"]
    body = body.replace("self.W(query)", "self.W(query).unsqueeze(1)").replace(
        ".softmax(1).unsqueeze(1)", ".softmax(1)"
    )
    text = BEGIN + body + "\n\nimport nmt\n\nMyScore = nmt.as_score(Mine)\n"
    (tmp_path / "attention_of_mine.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    sizes = ["model.decoder.hidden_size=16", "model.encoder={hidden_size: 8}", "train.max_updates=2"]
    changes = [part for key in ("model.attention.score=attention_of_mine.MyScore", *sizes) for part in ("--set", key)]
    found = cli("train", "--config", project.config, "--data", project.data, "--output", tmp_path / "run", *changes)
    assert found.code == 0, found.err
    allowed = ["--allow-class", "attention_of_mine.MyScore"]
    assert cli("translate", "a b", "--model", tmp_path / "run", *allowed).code == 0
