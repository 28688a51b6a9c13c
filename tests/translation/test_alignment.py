import random

import pytest
import torch
from torch import Tensor

from nmt.config import AttentionSection, DecodeSection, ModelSection, RecurrentDecoderSection, RecurrentEncoderSection
from nmt.corpus import Pair
from nmt.corpus.splitting import Example
from nmt.inspection.attention_report import find_links
from nmt.layers.attention.score import Score
from nmt.models.build import build_model
from nmt.models.seq2seq import Seq2Seq
from nmt.text.processor import TextProcessor
from nmt.text.tokenizers import WhitespaceTokenizer
from nmt.text.vocabulary import BOS_ID, EOS_ID, Vocabulary
from nmt.translation.alignment import Links, align, strongest_links
from nmt.translation.translator import Translator

SRC_WORDS, TGT_WORDS = tuple("abcdef"), tuple("UVWXYZ")
PAIRS = [
    Pair("a b c", "X Y Z"),
    Pair("f", "U U V W"),
    Pair("a  b c d e f a b", "X"),
    Pair("unknown words here", "X unknown Z U"),
    Pair("", "X Y"),
    Pair("c d", ""),
    Pair("e d c b a", "X Y Z W V U X Y Z"),
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


def processor() -> TextProcessor:
    return TextProcessor(WhitespaceTokenizer(), WhitespaceTokenizer(), Vocabulary(SRC_WORDS), Vocabulary(TGT_WORDS))


def random_model(order: str = "luong", score: str = "general", input_feeding: bool = False, heads: int = 1) -> Seq2Seq:
    section = ModelSection(
        embedding_size=4,
        dropout=0.3,
        encoder=RecurrentEncoderSection(hidden_size=3),
        decoder=RecurrentDecoderSection(hidden_size=6, order=order, input_feeding=input_feeding),
        attention=AttentionSection(score=score, heads=heads),
    )
    torch.manual_seed(0)
    model = build_model(section, len(SRC_WORDS) + 4, len(TGT_WORDS) + 4).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-2, 2)
    return model


def forced_links(model: Seq2Seq, pairs: list[Pair], batch_size: int = 64) -> list[Links]:
    """The links of each target token while the model reads the target."""
    translator = Translator(model.eval(), processor(), DecodeSection(batch_size=batch_size))
    examples = [Example(pair.src, (pair.tgt,)) for pair in pairs]
    found = translator.score([pair.src for pair in pairs], [pair.tgt for pair in pairs], with_alignment=True)
    return [find_links(translator, *each, "tokens") for each in zip(examples, found, strict=True)]


@pytest.mark.parametrize("batch_size", [1, 64])
def test_diagonal_attention_gives_diagonal_links(batch_size: int) -> None:
    model = random_model(score=f"{__name__}.Diagonal")
    short = [pair for pair in PAIRS if len(pair.tgt.split()) <= len(pair.src.split())]
    translator = Translator(model.eval(), processor(), DecodeSection(batch_size=batch_size))
    alignments = align(translator, [pair.src for pair in short], [pair.tgt for pair in short])
    found = [strongest_links(each.weights.mean(dim=1)[:-1, :-1]) for each in alignments]
    assert found == [{(n, n) for n in range(len(pair.tgt.split()))} for pair in short]


@pytest.mark.parametrize("order", ["bahdanau", "luong"])
def test_targets_without_weight_on_a_source_token_have_no_link(order: str) -> None:
    model = random_model(order, f"{__name__}.EndOnly")
    assert forced_links(model, PAIRS, 3) == [set() for _ in PAIRS]


MODELS = [("bahdanau", False), ("luong", False), ("luong", True)]


def stepped(model: Seq2Seq, pair: Pair) -> Links:
    """Decode the reference token by token: the weights of the step whose logits predict a token are its own."""
    text = processor()
    (src,), tgt = text.tokenize_source([pair.src]), text.tgt_vocabulary.encode(pair.tgt.split())
    ids = [*text.src_vocabulary.encode(src), EOS_ID]
    memory, state = model.decoder.start(model.encode(torch.tensor([ids]), torch.tensor([len(ids)])))
    weights = model.decoder.prepare()
    links = set()
    for position, (fed, _) in enumerate(zip([BOS_ID, *tgt], tgt, strict=False)):
        _, alignment, state = model.decoder.step(torch.tensor([fed]), memory, state, weights)
        row = alignment[0].mean(dim=0)[:-1].tolist()
        if row:
            links.add((row.index(max(row)), position))
    return links


@pytest.mark.parametrize(("score", "heads"), [("additive", 1), ("general", 1), ("general", 2)])
@pytest.mark.parametrize(("order", "input_feeding"), MODELS)
def test_links_are_those_of_decoding_step_by_step(order: str, input_feeding: bool, score: str, heads: int) -> None:
    model = random_model(order, score, input_feeding, heads).eval()
    expected = [stepped(model, pair) for pair in PAIRS]
    assert len({i for links in expected for i, _ in links}) > 3
    assert forced_links(model, PAIRS) == expected


@pytest.mark.parametrize("batch_size", [1, 2, 64])
@pytest.mark.parametrize(("score", "heads"), [("additive", 1), ("general", 2), ("none", 1)])
def test_feeding_a_translation_gives_its_own_alignment(score: str, heads: int, batch_size: int) -> None:
    model = random_model("luong", score, heads=heads).eval()
    with torch.no_grad():
        model.decoder.output.bias[EOS_ID] += 3  # most translations end before their longest length
    translator = Translator(model, processor(), DecodeSection(beam_size=2, batch_size=batch_size, max_length=8))
    sources = [pair.src for pair in PAIRS]
    translations = translator.translate(sources, with_alignment=True)
    whole = [
        (source, each)
        for source, each in zip(sources, translations, strict=True)
        if each.alignment is not None and len(each.alignment) == len(each.tokens) + 1 and "<unk>" not in each.text
    ]
    assert whole or score == "none"
    again = align(translator, [source for source, _ in whole], [each.text for _, each in whole])
    for forced, (_, each) in zip(again, whole, strict=True):
        assert (forced.target, forced.src_tokens, forced.tgt_tokens) == (each.text, each.src_tokens, each.tokens)
        assert forced.weights.shape == (len(each.tokens) + 1, heads, len(each.src_tokens) + 1)
        torch.testing.assert_close(forced.weights, each.alignment, rtol=0, atol=1e-10)
