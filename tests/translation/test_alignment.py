import random
import re
from pathlib import Path

import pytest
import torch
from torch import Tensor

from nmt.config import AttentionSection, DecoderSection, DecodeSection, EncoderSection, ModelSection
from nmt.corpus import Pair
from nmt.corpus.sources import open_corpus, read_pairs
from nmt.corpus.splitting import Example
from nmt.inspection.attention import find_links
from nmt.layers.attention import Score
from nmt.models.build import build_model
from nmt.models.seq2seq import Seq2Seq
from nmt.system.errors import DataError
from nmt.system.files import shipped
from nmt.text.processor import TextProcessor
from nmt.text.tokenizers import WhitespaceTokenizer, WordTokenizer
from nmt.text.vocabulary import BOS_ID, EOS_ID, Vocabulary
from nmt.translation.alignment import (
    GoldLinks,
    Links,
    align,
    alignment_error_rate,
    read_alignments,
    strongest_links,
)
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
        encoder=EncoderSection(hidden_size=3),
        decoder=DecoderSection(hidden_size=6, order=order, input_feeding=input_feeding),
        attention=AttentionSection(score=score, heads=heads),
    )
    torch.manual_seed(0)
    model = build_model(section, len(SRC_WORDS) + 4, len(TGT_WORDS) + 4).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-2, 2)
    return model


@pytest.mark.parametrize(
    ("predicted", "gold", "expected"),
    [
        ([{(0, 0), (1, 2)}, {(3, 1)}], [{(0, 0), (1, 2)}, {(3, 1)}], 0.0),
        ([{(0, 0), (1, 2)}], [{(0, 1), (2, 1)}], 1.0),
        # |A| = 3, |S| = 4, two in common: 1 - (2 + 2) / (3 + 4).
        ([{(0, 0), (1, 1), (2, 2)}], [{(0, 0), (1, 1), (1, 2), (2, 3)}], 3 / 7),
        # Counted over the corpus, not averaged over pairs: 1 - 2 * (1 + 0) / (1 + 3 + 1 + 1).
        ([{(0, 0)}, {(0, 0), (1, 1), (2, 2)}], [{(0, 0)}, {(0, 1)}], 2 / 3),
        ([set()], [{(0, 0)}], 1.0),
        ([set(), set()], [set(), set()], 0.0),
        ([], [], 0.0),
    ],
)
def test_alignment_error_rate_by_hand(predicted: list[Links], gold: list[Links], expected: float) -> None:
    assert alignment_error_rate(predicted, all_sure(gold)) == pytest.approx(expected)
    assert alignment_error_rate(gold, all_sure(predicted)) == pytest.approx(expected)  # with S = P it is 1 - F1


def all_sure(links: list[Links]) -> list[GoldLinks]:
    return [GoldLinks(each, each) for each in links]


def test_possible_links_are_right_but_not_missed() -> None:
    gold = [GoldLinks({(0, 0), (1, 1)}, {(0, 0), (1, 1), (2, 2), (3, 3)})]
    # |A & S| = 1, |A & P| = 2, |A| = 3, |S| = 2.
    assert alignment_error_rate([{(0, 0), (2, 2), (4, 4)}], gold) == pytest.approx(1 - 3 / 5)
    assert alignment_error_rate([{(0, 0), (1, 1)}], gold) == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0-0 1-2 2-1\n\n10-11\n", [{(0, 0), (1, 2), (2, 1)}, set(), {(10, 11)}]),
        ("0-0\r\n1-1", [{(0, 0)}, {(1, 1)}]),
        ("\ufeff 0-0\t0-0 ", [{(0, 0)}]),
        ("\n", [set()]),
        ("", []),
    ],
)
def test_alignments_are_read(tmp_path: Path, text: str, expected: list[Links]) -> None:
    path = tmp_path / "links.txt"
    path.write_bytes(text.encode())
    assert read_alignments(path) == all_sure(expected)


def test_possible_links_are_read(tmp_path: Path) -> None:
    path = tmp_path / "links.txt"
    path.write_text("0-0 1?2\n", encoding="utf-8")
    assert read_alignments(path) == [GoldLinks({(0, 0)}, {(0, 0), (1, 2)})]


@pytest.mark.parametrize("item", ["1", "1-", "-1-2", "1-2-3", "1?2?3", "1~2", "a-b", "1,2", "1-²", "1234567890-0"])
def test_what_is_not_a_link_is_reported_with_its_line(tmp_path: Path, item: str) -> None:
    path = tmp_path / "links.txt"
    path.write_text(f"0-0\n1-1 {item} 2-2\n", encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_alignments(path)
    assert str(caught.value) == f"{path}, line 2: {item!r} is not a link; write i-j, counted from 0, as in 0-0"


def test_unreadable_alignments_are_reported(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"missing\.txt: cannot be read \(No such file"):
        read_alignments(tmp_path / "missing.txt")
    (tmp_path / "binary.txt").write_bytes(b"0-0 \xff\n")
    with pytest.raises(DataError, match=r"binary\.txt: not UTF-8 text"):
        read_alignments(tmp_path / "binary.txt")


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


@pytest.mark.parametrize("batch_size", [1, 2, 3, 5])
@pytest.mark.parametrize(("order", "input_feeding"), MODELS)
def test_links_do_not_depend_on_batch_size_or_order(order: str, input_feeding: bool, batch_size: int) -> None:
    model = random_model(order, input_feeding=input_feeding)
    expected = forced_links(model, PAIRS)
    assert forced_links(model, PAIRS[::-1], batch_size) == expected[::-1]


def test_sample_alignments_are_of_spacy_tokens() -> None:
    every = slice(None, None, 10)
    pairs = read_pairs(open_corpus([shipped("data/sample/deu.txt")]).train)[every]
    gold = read_alignments(shipped("data/sample/alignments.txt"))[every]
    words = TextProcessor(WordTokenizer("en"), WordTokenizer("de"), Vocabulary(()), Vocabulary(()))
    sources, targets = ([re.findall(r"\w+|[,.?!]", text) for text in column] for column in zip(*pairs, strict=True))
    assert words.tokenize_source([pair.src for pair in pairs]) == sources
    assert list(words.tgt_tokenizer.tokenize([pair.tgt for pair in pairs])) == targets
    for links, src, tgt in zip(gold, sources, targets, strict=True):
        assert all(i < len(src) and j < len(tgt) for i, j in links.possible)
        assert (len(src) - 1, len(tgt) - 1) in links.sure  # the final marks


@pytest.mark.parametrize("batch_size", [1, 2, 64])
@pytest.mark.parametrize(("score", "heads"), [("additive", 1), ("general", 2), ("none", 1)])
def test_feeding_a_translation_gives_its_own_alignment(score: str, heads: int, batch_size: int) -> None:
    model = random_model("luong", score, heads=heads).eval()
    with torch.no_grad():
        model.decoder.output.bias[EOS_ID] += 3  # most translations end before their longest length
    translator = Translator(model, processor(), DecodeSection(beam_size=2, batch_size=batch_size, max_length=8))
    sources = [pair.src for pair in PAIRS]
    found = list(align(translator, sources))
    assert [each.source for each in found] == sources
    assert not any(each.forced for each in found)
    whole = [each for each in found if len(each.weights) == len(each.tgt_tokens) + 1 and "<unk>" not in each.target]
    assert whole or score == "none"
    again = align(translator, [each.source for each in whole], [each.target for each in whole])
    for one, other in zip(again, whole, strict=True):
        assert one.forced
        assert (one.target, one.src_tokens, one.tgt_tokens) == (other.target, other.src_tokens, other.tgt_tokens)
        assert one.weights.shape == (len(one.tgt_tokens) + 1, heads, len(one.src_tokens) + 1)
        torch.testing.assert_close(one.weights, other.weights, rtol=0, atol=1e-10)


def test_a_source_without_words_has_nothing_to_align() -> None:
    (found,) = align(Translator(random_model().eval(), processor(), DecodeSection()), [" "])
    assert found.weights.numel() == 0
    assert (found.target, found.tgt_tokens) == ("", [])
