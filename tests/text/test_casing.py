import json
from pathlib import Path

import pytest

import nmt
from nmt.config import TextSection
from nmt.corpus import Pair
from nmt.corpus.augmentation import make_copies
from nmt.corpus.example import Example
from nmt.evaluation.metrics import METRICS, ScoringRules, score_corpus, words_of
from nmt.text.casing import Casing, capitalize, casing_of, lower, upper
from nmt.text.processor import load_processor
from nmt.text.sentences import SentenceSplitter
from nmt.text.tokenizers import SubwordTokenizer, Tokenizer, WhitespaceTokenizer, WordTokenizer, load_tokenizer


@pytest.mark.parametrize(
    ("casing", "capitals", "small"),
    [
        ("tr", "ISPARTA IŞIK İSTANBUL", "ısparta ışık istanbul"),
        ("tr", "DİYARBAKIR", "diyarbakır"),
        ("", "HIM ÄÖÜ ΟΔΟΣ", "him äöü οδος"),
    ],
)
def test_letters_become_small_and_large_by_language(casing: Casing, capitals: str, small: str) -> None:
    assert lower(capitals, casing) == small
    assert upper(small, casing) == capitals
    assert lower(lower(capitals, casing)) == small
    assert capitalize(capitals, casing) == capitals[0] + small[1:]
    assert capitalize("", casing) == ""


def test_a_dot_of_its_own_is_part_of_the_letter() -> None:
    assert lower("I\u0307I", "tr") == "iı"
    assert lower("İ") == "i\u0307"  # as Unicode has it for other languages


@pytest.mark.parametrize(
    ("language", "casing"), [("tr", "tr"), ("tr-TR", "tr"), ("TUR", "tr"), ("az_Latn", "tr"), ("en", ""), ("", "")]
)
def test_languages_have_rules(language: str, casing: str) -> None:
    assert casing_of(language) == casing


LINES = ["IŞIK VE İSTANBUL", "Isparta ılık, İzmir sıcak", "Kapı açık mı? İyi"] * 9
MADE: list[Tokenizer] = [
    WhitespaceTokenizer(lowercase=True, casing="tr"),
    WordTokenizer("tr", lowercase=True, casing="tr"),
    SubwordTokenizer.learn(LINES, algorithm="bpe", vocabulary_size=50, lowercase=True, casing="tr"),
]


@pytest.mark.parametrize("tokenizer", MADE)
def test_a_tokenizer_stores_its_rules_and_older_ones_have_none(tmp_path: Path, tokenizer: Tokenizer) -> None:
    small = ["ışık ve istanbul", "ısparta ılık, izmir sıcak", "kapı açık mı? iyi"] * 9
    tokenizer.save(tmp_path, "src")
    loaded = load_tokenizer(tmp_path, "src")
    plain = list(loaded.tokenize(small))
    assert [*loaded.tokenize(LINES)] == [*tokenizer.tokenize(LINES)] == plain
    path = tmp_path / "src.tokenizer.json"
    settings = json.loads(path.read_text("utf-8"))
    assert settings.pop("casing") == "tr"
    path.write_text(json.dumps(settings), encoding="utf-8")
    older = load_tokenizer(tmp_path, "src")
    assert older.fold("IŞIK") == "işik"


def test_cased_tokenizers_and_those_of_other_languages_store_nothing_new(tmp_path: Path) -> None:
    WhitespaceTokenizer(casing="tr").save(tmp_path, "src")
    WhitespaceTokenizer(lowercase=True).save(tmp_path, "tgt")
    stored = [json.loads((tmp_path / f"{side}.tokenizer.json").read_text("utf-8")) for side in ("src", "tgt")]
    assert stored == [{"kind": "whitespace", "lowercase": False}, {"kind": "whitespace", "lowercase": True}]


@pytest.mark.parametrize("tokenizer", ["whitespace", "spacy", "subword"])
def test_a_data_directory_follows_the_language_of_each_side(tmp_path: Path, tokenizer: str) -> None:
    path = tmp_path / "a.tsv"
    rows = [f"HIS IDEA {n} IS IN IRAN\tISPARTA {n} IŞIK İZMİR" for n in range(40)]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    settings = {
        "data": {"src_language": "en", "tgt_language": "tr", "split": {"valid_size": 4, "test_size": 4}},
        "text": {"tokenizer": tokenizer, "lowercase": True, "subword": {"vocabulary_size": 60, "joint": True}},
    }
    nmt.preprocess("base", source=path, output=tmp_path / "d", overrides=settings)
    processor = load_processor(tmp_path / "d/text")
    assert processor.src_tokenizer.fold("HIS IDEA") == "his idea"
    assert processor.tgt_tokenizer.fold("IŞIK İZMİR") == "ışık izmir"
    [tokens] = processor.tokenize_target(["ISPARTA IŞIK İZMİR"])
    assert processor.tgt_tokenizer.detokenize(tokens) == "ısparta ışık izmir"
    assert 1 not in processor.tgt_vocabulary.encode(tokens)


def test_scores_ignore_case_by_the_rules_of_the_language() -> None:
    rules = ScoringRules.for_text(TextSection(lowercase=True), "tr")
    assert rules == ScoringRules(True, "13a", "tr")
    examples = [Example("x", ("IŞIK VE İSTANBUL burada. Isparta DA",))] * 3
    hypotheses = ["ışık ve istanbul burada. ısparta da"] * 3
    for resamples in (1, 20):
        scores = score_corpus(examples, hypotheses, rules, list(METRICS), resamples)
        assert {key: score.value for key, score in scores.items()} == pytest.approx(
            {"bleu": 100, "chrf": 100, "chrf++": 100, "ter": 0}
        )
    assert [*words_of(["IŞIK İN"], rules)] == [["ışık", "in"]]


def test_copies_follow_the_language() -> None:
    pair = Pair("ışık iyi", "the light is in it")
    shares = dict.fromkeys(["all_caps", "title_case", "lowercase_first"], 1.0)
    copies = make_copies([pair, Pair("Ilık.", "Warm.")], shares, 1, casings=("tr", ""))
    assert copies == [
        ("all_caps", Pair("IŞIK İYİ", "THE LIGHT IS IN IT")),
        ("title_case", Pair("Işık İyi", "the light is in it")),
        ("all_caps", Pair("ILIK.", "WARM.")),
        ("lowercase_first", Pair("ılık.", "Warm.")),
    ]


def test_lines_in_capitals_follow_the_languages() -> None:
    assert SentenceSplitter("tr", "en").casings == ("tr", "")
    assert SentenceSplitter("en", "az").casings == ("", "tr")
