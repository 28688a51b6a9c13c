"""The page's scripts segment text as SentencePiece does, the user's symbols included."""

import io
import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest
import sentencepiece

import nmt
from nmt.exporting import html
from nmt.text.normalization import Normalizer
from nmt.text.processor import TextProcessor
from nmt.text.tokenizers import SubwordTokenizer
from nmt.text.vocabulary import Vocabulary

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="needs Node.js: apt-get install nodejs")
SAMPLE = Path(nmt.__file__).parents[1] / "data/sample/deu.txt"
READ = """
const lines = JSON.parse(require("fs").readFileSync(0, "utf8"));
const processor = new TextProcessor(lines.shift());
console.log(JSON.stringify(lines.map((line) => processor.tokenize(line))));
"""
TAGS = ["<bt>", "<b>", "<web>"]
ODD = (
    "",
    " ",
    "\u2581",
    "\u2581\u2581 a \u2581",
    "a\u2581b",
    "x" * 60,
    "日本語。",
    "\U00010348𝒜",
    "😀👩\u200d👩",
    "1,000.50 €",
)
TAGGED = (
    "<bt>",
    "<bt> <bt>",
    "<bt><bt>",
    "a <bt> b",
    "a<bt>b",
    "<bt",
    "bt>",
    "<<bt>>",
    "<bt>\u2581<web>",
    "<BT> a",
    "<b>",
)


def learn(algorithm: str, lines: list[str], symbols: list[str]) -> SubwordTokenizer:
    """Pieces with any user-defined symbols, as SentencePiece itself makes them."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        model_type=algorithm,
        vocab_size=180,
        character_coverage=1.0,
        normalization_rule_name="identity",
        user_defined_symbols=symbols,
        num_threads=1,
        minloglevel=2,
    )
    return SubwordTokenizer(model.getvalue())


def segment_in_node(tokenizer: SubwordTokenizer, lines: list[str]) -> list[list[str]]:
    """The tokens of the page's scripts."""
    vocabulary = Vocabulary(["a"])
    processor = TextProcessor(tokenizer, tokenizer, vocabulary, vocabulary, Normalizer(html_entities=False))
    settings = html._describe_text(processor)
    script = f"const EOS = 3, UNK = 1;\n{(html.FOLDER / 'pieces.js').read_text(encoding='utf-8')}{READ}"
    assert NODE is not None
    done = subprocess.run(
        [NODE, "-e", script], input=json.dumps([settings, *lines]), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    found: list[list[str]] = json.loads(done.stdout)
    return found


def make_lines(number: int) -> list[str]:
    """Lines of the sample, some behind a tag, and odd parts put together."""
    draw = random.Random(7)
    lines = [line.split("\t")[0] for line in SAMPLE.read_text(encoding="utf-8").splitlines()][: number // 2]
    tagged = [f"{draw.choice(TAGS)} {line}" for line in lines]
    parts = [*ODD, *TAGGED, *lines[:40]]
    mixed = ["".join(part[:12] for part in draw.choices(parts, k=4)) for _ in range(number)]
    return [*lines, *tagged, *ODD, *TAGGED, *mixed]


@needs_node
@pytest.mark.parametrize("algorithm", ["bpe", "unigram"])
@pytest.mark.parametrize(
    "symbols",
    [[], ["\u2581<bt>"], ["<bt>"], [*TAGS, "\u2581<b>", "\u2581<bt>"], ["ab", "abc", "bcde", "he"]],
    ids=["none", "tag", "older", "several", "overlapping"],
)
@pytest.mark.parametrize("has_markup", [False, True])
@pytest.mark.parametrize("number", [300, pytest.param(1000, marks=pytest.mark.soak)])
def test_segmentation_is_sentencepieces(algorithm: str, symbols: list[str], has_markup: bool, number: int) -> None:
    lines = make_lines(number)
    learnt = make_lines(1000)[:400]
    if has_markup:  # then pieces such as "<b" compete with the symbols
        learnt = [line.replace("the", "<b>the</b>").replace(" a ", " <bt>a</bt> ") for line in learnt]
    tokenizer = learn(algorithm, learnt, symbols)
    assert tokenizer.algorithm == algorithm
    assert {*tokenizer.symbols} == {*symbols}
    normalize = Normalizer(html_entities=False)
    expected = list(tokenizer.tokenize([normalize(line) for line in lines]))
    found = segment_in_node(tokenizer, lines)
    assert [pair for pair in zip(found, expected, strict=True) if pair[0] != pair[1]] == []
    if symbols == ["\u2581<bt>"] and not has_markup:
        assert sum(tokens[:1] == symbols for tokens in found) > number // 10
