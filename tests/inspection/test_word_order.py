"""Attention to a language that orders words otherwise is told from attention to one that does not."""

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from conftest import REVERSAL_CONFIG, Cli

SIZE = 6
"""Words of each sentence, of which the second is the verb."""


def verb_last(words: Sequence[str]) -> list[str]:
    """The verb moves to the end."""
    return [words[0], *words[2:], words[1]]


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize(
    ("order", "diagonality"),
    [(list, 1), (verb_last, 1 - 8 / 42)],  # of 7 steps, four look 1/6 too far to the right, and one 4/6 to the left
    ids=["same", "verb-last"],
)
def test_verbs_that_move_to_the_end_are_seen(
    order: Callable[[Sequence[str]], list[str]],
    diagonality: float,
    tmp_path: Path,
    cli: Cli,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = random.Random(0)
    sources = {(*rng.choices("abcdefgh"), *rng.choices("uvwxyz"), *rng.choices("abcdefgh", k=4)) for _ in range(1000)}
    lines = [" ".join(words) + "\t" + " ".join(order(words)).upper() + "\n" for words in sorted(sources)]
    Path("corpus.tsv").write_text("".join(lines), encoding="utf-8")
    Path("order.yaml").write_text(REVERSAL_CONFIG.format(source="corpus.tsv"), encoding="utf-8")
    luong = ("--set", "model.attention.score=general", "--set", "model.decoder.order=luong")
    training = ("--set", "train.epochs=5", "--set", "train.optimizer.learning_rate=0.02")
    settings = (*luong, *training, "--set", "train.validation.metric=loss")
    assert cli("preprocess", "--config", "order.yaml").code == 0
    assert cli("train", "--config", "order.yaml", *settings).code == 0
    assert cli("attention", "--split", "test", "--forced", "--json", "a.json").code == 0
    (head,) = json.loads(Path("a.json").read_text(encoding="utf-8"))["heads"]
    assert head["diagonality"]["mean"] == pytest.approx(diagonality, abs=0.08)
