"""Links between words, from attention between tokens."""

import re
from collections.abc import Sequence
from functools import cache

import pytest
import torch
from conftest import GOLDEN_MODEL
from hypothesis import given, settings
from hypothesis import strategies as st

import nmt
from nmt.text.normalization import Normalizer
from nmt.text.processor import TextProcessor
from nmt.text.tokenizers import SubwordTokenizer, Tokenizer, WhitespaceTokenizer, WordTokenizer
from nmt.text.vocabulary import Vocabulary
from nmt.translation.translation import Translation
from nmt.translation.translator import Translator
from nmt.translation.words import align_words

PLAIN = Normalizer()


def processor(src: Tokenizer, normalizer: Normalizer = PLAIN) -> TextProcessor:
    return TextProcessor(src, WhitespaceTokenizer(), Vocabulary([]), Vocabulary([]), normalizer)


def translation(
    text: str, tokens: Sequence[str], src_tokens: Sequence[str], looks: Sequence[dict[int, float]], heads: int = 1
) -> Translation:
    """A translation whose tokens attend to source positions with given weights, in each of its heads."""
    weights = torch.zeros(len(tokens) + 1, heads, len(src_tokens) + 1)
    for row, look in enumerate(looks):
        for position, weight in look.items():
            weights[row, row % heads, position] = weight
    return Translation(text, list(tokens), list(src_tokens), alignment=weights)


def test_pieces_of_a_word_count_together() -> None:
    pieces = ["\u2581the", "\u2581un", "know", "able"]
    looks = [{0: 0.4, 1: 0.2, 2: 0.2, 3: 0.2}, {0: 0.5, 4: 0.5}, {0: 0.3, 3: 0.7}]
    found = translation("das Unbekannte", ["\u2581das", "\u2581Unbe", "kannte"], pieces, looks)
    assert align_words("the  unknowable", found, processor(WhitespaceTokenizer())) == [(1, 0), (0, 1)]


def test_a_word_without_attention_has_no_link() -> None:
    found = translation("x y z", ["x", "y", "z"], ["a", "b"], [{2: 1.0}, {}, {1: 0.1}])
    assert align_words("a b", found, processor(WhitespaceTokenizer())) == [(1, 2)]


def test_heads_are_averaged() -> None:
    found = translation("x", ["x"], ["a", "b"], [{}], heads=2)
    assert found.alignment is not None
    found.alignment[0] = torch.tensor([[0.6, 0.4, 0.0], [0.0, 0.5, 0.5]])
    assert align_words("a b", found, processor(WhitespaceTokenizer())) == [(1, 0)]


@pytest.mark.parametrize(
    ("line", "tokens", "look", "word"),
    [
        ("Hi, it's me.", ["Hi", ",", "it", "'s", "me", "."], 3, 1),
        ("A &amp;lt; B", ["a", "<", "b"], 1, 1),
        ("a \u200b\u00ad b", ["a", "b"], 1, 2),
        ("cafe\u0301 \u0130stanbul nu", ["café", "i\u0307stanbul", "nu"], 2, 2),
        ("\ufeffx\u3000\u2028y\tz", ["x", "y", "z"], 2, 2),
        ("a\x85b \x92c", ["a…b", "’c"], 1, 1),
        ("..." * 100 + " b", ["." * 200, "." * 100, "b"], 2, 1),
    ],
)
def test_source_words_are_those_that_were_typed(line: str, tokens: list[str], look: int, word: int) -> None:
    found = translation("x", ["x"], tokens, [{look: 1.0}])
    assert align_words(line, found, processor(WhitespaceTokenizer(lowercase=True))) == [(word, 0)]


def test_target_words_are_those_that_were_returned() -> None:
    tokens = ['"', "Ja", ",", "\x1b", "du", '"', "!"]
    found = translation('"Ja, du"!', tokens, list("abcdefg"), [{place: 1.0} for place in range(7)])
    found.alignment[5:7] *= 0.1
    assert align_words("a b c d e f g", found, processor(WhitespaceTokenizer())) == [(0, 0), (3, 1)]


def test_no_tokens_give_no_links_and_no_alignment_is_an_error() -> None:
    ours = processor(WhitespaceTokenizer())
    assert align_words(" \u200b ", Translation(""), ours) == []
    with pytest.raises(ValueError, match="with_alignment"):
        align_words("a", Translation("x", ["x"], ["a"]), ours)


@cache
def golden() -> Translator:
    return nmt.load(GOLDEN_MODEL, device="cpu", beam_size=1, max_length=12)


@cache
def tokenizer(kind: str) -> Tokenizer:
    subwords = golden().processor.src_tokenizer
    assert isinstance(subwords, SubwordTokenizer)
    made = {"spacy": lambda: WordTokenizer("en", lowercase=True), "whitespace": WhitespaceTokenizer}
    return made[kind]() if kind in made else SubwordTokenizer(subwords._model, lowercase=True)


TEXT = st.text(max_size=12) | st.text(alphabet="aİΣ\u0301\u200b\u00a8&;ltamp \u2581\ufb01…'\x85", max_size=12)


@given(lines=st.lists(TEXT.map(lambda text: text.replace("\n", " ")), max_size=4).map(" ".join), unicode=st.data())
@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("kind", ["whitespace", "spacy", "subword"])
def test_each_source_token_belongs_to_the_word_that_holds_it(kind: str, lines: str, unicode: st.DataObject) -> None:
    """A target word for each token, which attends only to that token, is linked to a word with its characters."""
    ours = processor(tokenizer(kind), Normalizer(unicode=unicode.draw(st.sampled_from(["nfc", "nfkc", "none"]))))
    (tokens,) = ours.tokenize_source([lines])
    found = translation(" ".join("x" * len(tokens)), "x" * len(tokens), tokens, [{n: 1.0} for n in range(len(tokens))])
    links = align_words(lines, found, ours)
    assert [target for _, target in links] == list(range(len(tokens)))
    assert [source for source, _ in links] == sorted(source for source, _ in links)
    words = ours.normalizer.decode(lines).split()  # U+0085 is an ellipsis
    for source, target in links:
        read = re.sub(r"[\s\u2581]", "", ours.normalizer(words[source]).casefold())
        assert re.sub(r"[\s\u2581]", "", tokens[target]).casefold() in read


@given(line=st.text(max_size=30).map(lambda text: text.replace("\n", " ")), unknown=st.booleans())
@settings(max_examples=40, deadline=None)
def test_links_are_in_range_for_any_line(line: str, unknown: bool) -> None:
    found = golden().translate(line, with_alignment=True)
    if unknown:  # whatever the source holds may be copied
        copied = [*found.src_tokens, *found.tokens][: len(found.tokens)]
        text = " ".join(golden().processor.tgt_tokenizer.detokenize(copied).split())
        found = Translation(text, copied, found.src_tokens, alignment=found.alignment)
    links = align_words(line, found, golden().processor)
    assert len({target for _, target in links}) == len(links)
    words = golden().processor.normalizer.decode(line).split()
    assert all(0 <= source < len(words) and 0 <= target < len(found.text.split()) for source, target in links)
