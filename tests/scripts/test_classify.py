"""Sentence classification by the parts of translation."""

import random
import re
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "scripts"))
import classify

FILLER = ["the", "a", "film", "plot", "scene", "actor", "with", "and", "of", "in", "was"]


def write_reviews(path: Path, number: int, seed: int) -> None:
    """Texts whose class is that of one of their words, wherever it stands."""
    rng, lines = random.Random(seed), []
    for n in range(number):
        label = ("good", "bad")[n % 2]
        words = [
            *rng.choices(FILLER, k=rng.randint(4, 12)),
            rng.choice({"good": ["great", "fine"], "bad": ["dull", "poor"]}[label]),
        ]
        rng.shuffle(words)
        lines.append(f"{label}\t{' '.join(words)}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", ["classify.py", *map(str, arguments)])
    classify.main()


def test_texts_are_classified_by_the_words_that_decide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    train, test, page = tmp_path / "train.tsv", tmp_path / "test.tsv", tmp_path / "page.html"
    write_reviews(train, 1200, 1)
    write_reviews(test, 60, 2)
    run(monkeypatch, train, test, "--output", page, "--epochs", 3, "--save", tmp_path / "saved")
    out = capsys.readouterr().out
    assert out.startswith("Accuracy 100.0% (95% interval 94.0% to 100.0%) on 60 texts")
    run(monkeypatch, "--model", tmp_path / "saved", "--text", "The plot was dull and in a scene")
    assert re.fullmatch(r"bad \(dull [01]\.\d\d(, \w+ 0\.\d\d){4}\)\n", capsys.readouterr().out)
    text = page.read_text(encoding="utf-8")
    assert text.count("<table") == 20  # self-attention, as all texts are short
    assert text.count("<h2>") == 20
    darkest = [part.split(">")[1] for part in text.split("<span ")[1:] if "/100%)" in part]
    assert len(darkest) == 20
    assert sum(word.startswith(("great", "fine", "dull", "poor")) for word in darkest) >= 15


def test_folders_of_classes_are_read(tmp_path: Path) -> None:
    for label, text in (("pos", "Good.\n\nReally."), ("neg", "Bad.")):
        (tmp_path / label).mkdir()
        (tmp_path / label / "1.txt").write_text(text, encoding="utf-8")
    assert classify.read_texts(tmp_path) == [("neg", "Bad."), ("pos", "Good. Really.")]


@pytest.mark.parametrize(
    ("train", "test", "message"),
    [
        ("good\ta\nbad\tb\nno tab\n", "good\ta\nbad\tb\n", "train.tsv:3: has no tab; a line is label<TAB>text"),
        ("good\ta\n", "good\ta\nbad\tb\n", "train.tsv: needs texts of two classes"),
        ("good\ta\nbad\tb\n", "good\ta\nworse\tb\n", "test.tsv: has classes that training has not: worse"),
    ],
)
def test_texts_that_cannot_be_used(
    train: str, test: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (("train", train), ("test", test)):
        (tmp_path / f"{name}.tsv").write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit) as caught:
        run(monkeypatch, tmp_path / "train.tsv", tmp_path / "test.tsv", "--output", tmp_path / "page.html")
    assert message in str(caught.value)
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--text", "a"], "--model and --text go together: a classifier, and a text for it"),
        (["--model", "none", "--text", "a"], "none: is no classifier that --save has written (DataError)"),
        (["a", "b", "--model", "none", "--text", "a"], "--model classifies without training: leave TRAIN and TEST out"),
        (["a"], "give TRAIN and TEST, two files or folders of texts, or --model and --text"),
        (["a", "b", "--epochs", "0"], "--epochs: must be at least 1, found 0"),
        (["none.tsv", "none.tsv"], "No such file or directory: 'none.tsv'"),
    ],
)
def test_arguments_that_do_not_fit_get_one_line(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as caught:
        run(monkeypatch, *arguments)
    assert str(caught.value).startswith("error: ")
    assert str(caught.value).endswith(message)
    assert "\n" not in str(caught.value)


def test_the_interval_by_hand() -> None:
    """Wilson (1927): of 10 right of 10, the lower end is 1 / (1 + z^2 / 10)."""
    low, high = classify.interval(10, 10)
    assert low == pytest.approx(1 / (1 + 1.96**2 / 10))
    assert high == pytest.approx(1)
