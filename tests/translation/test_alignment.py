import random

import pytest
import torch
from test_translator import SRC_WORDS, TGT_WORDS, model_section, processor, random_model
from torch import Tensor

from nmt.config import DecodeSection
from nmt.corpus import Pair
from nmt.corpus.batching import pad
from nmt.corpus.example import Example
from nmt.evaluation.gold_links import find_links
from nmt.layers.attention.score import Score
from nmt.models.seq2seq import Seq2Seq
from nmt.text.vocabulary import EOS_ID
from nmt.translation.alignment import Links, strongest_links
from nmt.translation.translator import Translator

PAIRS = [
    Pair("the a cat", "die eine Katze"),
    Pair("ran", "Hund Hund saß lief"),
    Pair("the  a cat dog sat ran the a", "die"),
    Pair("unknown words here", "die unknown Katze Hund"),
    Pair("", "die eine"),
    Pair("cat dog", ""),
    Pair("sat dog cat a the", "die eine Katze lief saß Hund die eine Katze"),
]
DRAW = random.Random(0)
PAIRS += [
    Pair(*(" ".join(DRAW.choices(words, k=DRAW.randint(4, 9))) for words in (SRC_WORDS, TGT_WORDS))) for _ in range(9)
]


class Diagonal(Score):
    """Target position t reads source position t; past the end of the source it reads the end-of-sentence token."""

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__()

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return 100 * torch.eye(query.size(1), keys.size(1), dtype=query.dtype).expand(len(query), -1, -1)


class EndOnly(Score):
    """All weight on the source's end-of-sentence token, wherever it is."""

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__()

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        last = keys.ne(0).any(dim=-1).sum(dim=-1) - 1  # encoder states are zero on padding
        scores = torch.full((len(keys), query.size(1), keys.size(1)), -1e9, dtype=query.dtype)
        return scores.scatter(2, last.view(-1, 1, 1).expand(-1, query.size(1), 1), 0.0)


def forced_links(model: Seq2Seq, pairs: list[Pair], batch_size: int) -> list[Links]:
    """The links of each target token while the model reads the target."""
    translator = Translator(model, processor(), DecodeSection(batch_size=batch_size))
    examples = [Example(pair.src, (pair.tgt,)) for pair in pairs]
    found = translator.score([pair.src for pair in pairs], [pair.tgt for pair in pairs], with_alignment=True)
    return [find_links(translator, *each, "tokens") for each in zip(examples, found, strict=True)]


def aligned_links(model: Seq2Seq, pairs: list[Pair]) -> list[Links]:
    """The links of each target token when the model reads all of the target at once."""
    both = processor()
    links = []
    sides = both.tokenize_source(pair.src for pair in pairs), both.tokenize_target(pair.tgt for pair in pairs)
    for src, tgt in zip(*sides, strict=True):
        ids = pad([both.src_vocabulary.encode(src)], suffix=True), pad([both.tgt_vocabulary.encode(tgt)], prefix=True)
        with torch.no_grad():
            (weights,) = model.decoder(ids[1], model.encode(ids[0], torch.tensor([len(src) + 1]))).alignments
        links.append(strongest_links(weights.mean(dim=1)[:-1, :-1]))
    return links


def test_diagonal_attention_gives_diagonal_links() -> None:
    model = random_model(model_section(score=f"{__name__}.Diagonal"))
    short = [pair for pair in PAIRS if len(pair.tgt.split()) <= len(pair.src.split())]
    assert aligned_links(model, short) == [{(n, n) for n in range(len(pair.tgt.split()))} for pair in short]


@pytest.mark.parametrize(("score", "heads"), [("additive", 1), ("general", 1), ("general", 2)])
@pytest.mark.parametrize(("order", "input_feeding"), [("bahdanau", False), ("luong", False), ("luong", True)])
def test_links_are_those_of_decoding_step_by_step(order: str, input_feeding: bool, score: str, heads: int) -> None:
    model = random_model(model_section(order, score, input_feeding, heads=heads), spread=2.0)
    found = forced_links(model, PAIRS, 64)
    assert len({i for links in found for i, _ in links}) > 3
    assert found == aligned_links(model, PAIRS)


@pytest.mark.parametrize("order", ["bahdanau", "luong"])
def test_targets_without_weight_on_a_source_token_have_no_link(order: str) -> None:
    model = random_model(model_section(order, f"{__name__}.EndOnly"))
    assert forced_links(model, PAIRS, 3) == [set() for _ in PAIRS]


@pytest.mark.parametrize("batch_size", [1, 2, 64])
@pytest.mark.parametrize(("score", "heads"), [("additive", 1), ("general", 2), ("none", 1)])
def test_feeding_a_translation_gives_its_own_alignment(score: str, heads: int, batch_size: int) -> None:
    # Most translations end before their longest length.
    model = random_model(model_section("luong", score, heads=heads), spread=2.0, bias={EOS_ID: 3.0})
    translator = Translator(model, processor(), DecodeSection(beam_size=2, batch_size=batch_size, max_length=8))
    sources = [pair.src for pair in PAIRS]
    translations = translator.translate(sources, with_alignment=True)
    whole = [
        (source, each)
        for source, each in zip(sources, translations, strict=True)
        if each.alignment is not None and len(each.alignment) == len(each.tokens) + 1 and "<unk>" not in each.text
    ]
    assert whole or score == "none"
    sources, texts = [source for source, _ in whole], [each.text for _, each in whole]
    again = translator.score(sources, texts, with_alignment=True)
    for forced, (_, each) in zip(again, whole, strict=True):
        assert (forced.text, forced.src_tokens, forced.tokens) == (each.text, each.src_tokens, each.tokens)
        assert forced.alignment.shape == (len(each.tokens) + 1, heads, len(each.src_tokens) + 1)
        torch.testing.assert_close(forced.alignment, each.alignment, rtol=0, atol=1e-10)
