"""Pairs other than English-German, by configuration alone: reversed, without spaces, from Tatoeba's own export."""

import json
import random
from pathlib import Path

import pytest
from conftest import Cli

ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
ONES += " seventeen eighteen nineteen"
TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
SMALL = """
model:
  embedding_size: 48
  dropout: 0.0
  encoder: {hidden_size: 48}
  decoder: {hidden_size: 64}
train:
  epochs: 3
  batch: {size: 32}
  optimizer: {learning_rate: 0.005}
  schedule: {name: cosine}
  device: cpu
"""


def english(number: int) -> str:
    """A number below 100 in words."""
    if number < 20:
        return ONES.split()[number]
    return TENS.split()[number // 10 - 2] + (f"-{ONES.split()[number % 10]}" if number % 10 else "")


def chinese(number: int) -> str:
    """A number below 100 in Chinese characters."""
    digits = "零一二三四五六七八九"
    tens, ones = divmod(number, 10)
    return ("" if tens <= 1 else digits[tens]) + ("十" if tens else "") + (digits[ones] if ones or not tens else "")


def sentences() -> list[tuple[str, str]]:
    """He has N cats, and the like, in English and Chinese."""
    things = [("cats", "只猫"), ("books", "本书"), ("friends", "个朋友")]
    people = [("He has", "他有"), ("I have", "我有"), ("They want", "他们要")]
    return [
        (f"{who} {english(number)} {what}.", f"{wer}{chinese(number)}{was}。")
        for number in range(2, 100)
        for who, wer in people
        for what, was in things
    ]


@pytest.fixture
def export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three files as Tatoeba exports them, in a folder that becomes the working folder."""
    monkeypatch.chdir(tmp_path)
    pairs = sentences()
    random.Random(1).shuffle(pairs)
    numbers = random.Random(2).sample(range(1, 100_000), 2 * len(pairs))
    for place, (name, code) in enumerate((("eng_sentences.tsv", "eng"), ("cmn_sentences.tsv", "cmn"))):
        lines = [f"{numbers[2 * row + place]}\t{code}\t{pair[place]}\n" for row, pair in enumerate(pairs)]
        Path(name).write_text("".join(sorted(lines)), encoding="utf-8")
    links = [f"{numbers[2 * row]}\t{numbers[2 * row + 1]}\n" for row in range(len(pairs))]
    Path("links.csv").write_text("".join([*links, "5\t123456\n"]), encoding="utf-8")


SOURCES = "[eng_sentences.tsv, cmn_sentences.tsv, links.csv]"
SPLIT = "split: {valid_size: 60, test_size: 60}"
PIECES = "{algorithm: bpe, vocabulary_size: 50}"


@pytest.mark.usefixtures("export", "no_pictures")
@pytest.mark.parametrize(
    ("reverse", "text", "tokenize"),
    [(False, f"{{tokenizer: subword, subword: {PIECES}}}", "zh"), (True, "{tokenizer: spacy}", "13a")],
    ids=["to-chinese-subwords", "from-chinese-words"],
)
def test_a_script_without_spaces(cli: Cli, reverse: bool, text: str, tokenize: str) -> None:
    languages = "src_language: en, tgt_language: zh"
    data = f"{{source: {SOURCES}, {languages}, reverse: {json.dumps(reverse)}, {SPLIT}}}"
    Path("numbers.yaml").write_text(f"data: {data}\ntext: {text}\n{SMALL}", encoding="utf-8")
    config = ["--config", "numbers.yaml"]
    for command in (["preprocess", *config], ["train", *config], ["evaluate", "--json", "scores.json"]):
        outcome = cli(*command)
        assert outcome.code == 0, outcome.err
    scores = json.loads(Path("scores.json").read_text(encoding="utf-8"))["scores"]
    assert f"tok:{tokenize}" in scores["bleu"]["signature"]
    assert scores["chrf"]["value"] > 10  # three epochs on 762 pairs: learning, not learnt
    src = "他有三十八本书。" if reverse else "He has thirty-eight books."
    translation = cli("translate", src).out.rstrip("\n")
    assert translation
    assert translation.isascii() == reverse
    assert " " in translation if reverse else " " not in translation
