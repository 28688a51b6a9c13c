"""The tests that users run on scores of their own: the project's scores pass them, broken ones fail the right one."""

import importlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from conftest import Cli, write_reversal_corpus
from torch import Tensor, nn

from nmt.config.attention_scores import SCORES
from nmt.layers.attention.score import Score, find_score
from nmt.testing import ScoreTests

GUIDE = Path(__file__).resolve().parents[1] / "docs/guides/own_score.md"


class TestRegisteredScores(ScoreTests):
    @pytest.fixture(autouse=True, params=SCORES)
    def _choose(self, request: pytest.FixtureRequest) -> None:
        self.score = find_score(request.param)


class Bilinear(Score):
    """A sound score, from which the broken ones differ in one thing."""

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__()
        self.key = nn.Linear(key_size, query_size, bias=False)

    def project_keys(self, encoder_states: Tensor) -> Tensor:
        return self.key(encoder_states)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return query @ keys.transpose(1, 2)


def computing(forward: Callable[..., Tensor], extra: Callable[[], nn.Module | Tensor | None] = lambda: None) -> Any:
    """A score that computes something else of itself, queries and projected keys, and has an extra part."""

    class Broken(Bilinear):
        def __init__(self, query_size: int, key_size: int) -> None:
            super().__init__(query_size, key_size)
            self.extra = extra()

        def forward(self, query: Tensor, keys: Tensor) -> Tensor:
            return forward(self, query, keys)

    return Broken


class EqualSizesUndeclared(Score):
    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__()

    forward = Bilinear.forward


class KeepsKeys(Bilinear):
    def project_keys(self, encoder_states: Tensor) -> Tensor:
        self.kept = super().project_keys(encoder_states)
        return encoder_states

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return super().forward(query, self.kept)


def suite_of(score: type[Score]) -> ScoreTests:
    return type("Tests", (ScoreTests,), {"score": score})()


def failures(tests: ScoreTests) -> dict[str, str]:
    """Names and messages of the tests that a score does not pass."""
    found = {}
    for name in vars(ScoreTests):
        if name.startswith("test_"):
            try:
                getattr(tests, name)()
            except AssertionError as error:
                found[name.removeprefix("test_")] = str(error)
    return found


STEPS = {"teacher_forcing_equals_repeated_steps": "equal repeated steps (luong)"}
NEIGHBOURS = computing(lambda score, query, keys: query @ keys.mT * (1 + keys[:, :1].mean()))
DISTANCES = computing(lambda score, query, keys: -(query.unsqueeze(2) - keys.unsqueeze(1)).square().sum(dim=-1).sqrt())
UNUSED = computing(Bilinear.forward, lambda: nn.Linear(2, 2))
BIAS = computing(lambda score, query, keys: query @ keys.mT + score.extra, lambda: nn.Parameter(torch.zeros(1)))
# A tensor that is not saved.
SCALED = computing(lambda score, query, keys: query @ keys.mT * score.extra, lambda: torch.rand(()) + 0.5)
MIXTURE = computing(lambda score, query, keys: (query - query.mean(dim=1, keepdim=True)) @ keys.mT)


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        (Bilinear, {}),
        (
            computing(lambda score, query, keys: query @ keys.mT / keys.size(1)),
            {"padding_changes_nothing": "how much padding"},
        ),
        (NEIGHBOURS, {"alignments_do_not_depend_on_other_sentences": "the others in its batch"}),
        (MIXTURE, {"queries_do_not_see_each_other": "on the other queries", **STEPS}),
        (UNUSED, {"gradients_reach_every_weight": "the weight extra.weight should influence the alignment"}),
        (BIAS, {"gradients_reach_every_weight": "the weight extra should influence the alignment"}),
        (DISTANCES, {"zeros_have_finite_gradients": "finite at vectors of 0"}),
        (KeepsKeys, {"keys_are_computed_once_per_sentence": "stored on the module"}),
        (
            computing(lambda score, query, keys: query.detach() @ keys.mT),
            {"gradients_match_finite_differences": "finite differences"},
        ),
        (SCALED, {"a_loaded_score_equals_the_saved_one": "make its tensors parameters or buffers"}),
    ],
)
def test_a_broken_score_fails_the_right_tests(score: type[Score], expected: dict[str, str]) -> None:
    found = failures(suite_of(score))
    assert found.keys() == expected.keys()
    for name, words in expected.items():
        assert words in found[name]


SHAPE = "there_is_one_score_for_each_query_and_position"


@pytest.mark.parametrize(
    ("score", "test", "words"),
    [
        (computing(lambda score, query, keys: keys @ query.mT), SHAPE, "[B, N, S] = [3, 6, 5], but is [3, 5, 6]"),
        (EqualSizesUndeclared, SHAPE, "set needs_equal_sizes = True"),
        (computing(lambda score, query, keys: query @ keys.mT / torch.zeros(())), SHAPE, "scores should be finite"),
        (
            computing(lambda score, query, keys: query @ keys.detach().mul_(2).mT),
            "keys_are_computed_once_per_sentence",
            "changed by a step",
        ),
    ],
)
def test_a_score_that_breaks_much_is_reported_what_first(score: type[Score], test: str, words: str) -> None:
    with pytest.raises(AssertionError, match=re.escape(words)):
        getattr(suite_of(score), f"test_{test}")()


class Shifted(Bilinear):
    def __init__(self, query_size: int, key_size: int, *, shifts: int) -> None:
        super().__init__(query_size, key_size)
        self.shift = nn.Parameter(torch.zeros(shifts))

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        scores = super().forward(query, keys)
        return scores + nn.functional.pad(self.shift, (0, max(0, scores.size(2) - len(self.shift))))[: scores.size(2)]


class TestOptions(ScoreTests):
    score = Shifted
    options: ClassVar = {"shifts": 3}


def files_of_the_guide() -> dict[str, str]:
    """The Python files of the guide to a score of one's own, by the names that it gives them."""
    text = GUIDE.read_text(encoding="utf-8")
    found = re.findall(r"`(\w+\.py)`[^`]*\n```python\n(.*?)```", text, flags=re.DOTALL)
    return dict(found)


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, code in files_of_the_guide().items():
        (tmp_path / name).write_text(code, encoding="utf-8")
        monkeypatch.delitem(sys.modules, Path(name).stem, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_score_of_the_guide_is_short_and_passes_the_tests(example: Path) -> None:
    files = files_of_the_guide()
    assert list(files) == ["distance.py", "test_distance.py"]
    assert len(files["distance.py"].splitlines()) < 25
    assert failures(importlib.import_module("test_distance").TestDistance()) == {}


@pytest.mark.usefixtures("no_pictures")
def test_the_score_of_the_guide_trains_by_its_dotted_path(example: Path, cli: Cli) -> None:
    write_reversal_corpus(example / "corpus.tsv", 600)
    settings = {
        "text.tokenizer": "whitespace",
        "data.split": "{valid_size: 5, test_size: 5}",
        "model.attention": "{score: distance.Distance, options: {temperature: 2.0}}",
        "train.max_updates": 2,
        "train.validation.metric": "loss",
        "train.device": "cpu",
    }
    changes = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    prepared, run = example / "prepared", example / "run"
    (example / "mine.yaml").write_text("data: {source: corpus.tsv}\n", encoding="utf-8")
    assert cli("preprocess", "--config", "mine.yaml", "--output", prepared, *changes).code == 0
    found = cli("train", "--config", "mine.yaml", "--data", prepared, "--output", run, *changes)
    assert found.code == 0, found.err
    assert "2 updates" in found.err
    assert cli("translate", "a b", "--model", run).code == 1  # a model's own config may not name classes
    translated = cli("translate", "a b", "--model", run, "--allow-class", "distance.Distance")
    assert translated.code == 0
    assert translated.out.count("\n") == 1
