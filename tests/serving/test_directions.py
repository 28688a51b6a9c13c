"""Models by language pair, and language detection."""

import pytest
from real_server import golden, golden_config

from nmt.serving.detection import rank_languages
from nmt.serving.directions import Directions, ServedDirection
from nmt.text.direction import Direction
from nmt.text.languages import language_name
from nmt.text.processor import TextProcessor
from nmt.text.tokenizers import WhitespaceTokenizer
from nmt.text.vocabulary import Vocabulary
from nmt.translation.translator import Translator


def direction(source: str, target: str, words: str) -> ServedDirection:
    """A direction whose source vocabulary is given, most frequent word first."""
    tokenizer, vocabulary = WhitespaceTokenizer(), Vocabulary(words.split())
    processor = TextProcessor(tokenizer, tokenizer, vocabulary, vocabulary)
    translator = Translator(golden().model, processor, golden().options)
    return ServedDirection(Direction(source, target), translator, {"one": (golden_config(), translator)})


EN = direction("en", "de", "the a dog is big in")
DE = direction("de", "en", "der die das in Hund ist groß")


def test_models_are_found_by_their_languages() -> None:
    directions = Directions([EN, DE])
    assert directions.find("EN", "De") is EN
    assert directions.find("en", "fr") is None
    assert directions.find("eng", "deu") is EN  # other codes of the same languages
    assert directions.find("en-GB", "de-AT") is EN
    assert directions.targets == {"en": ["de"], "de": ["en"]}
    assert list(Directions([EN]).targets.items()) == [("en", ["de"]), ("de", [])]


@pytest.mark.parametrize(
    ("text", "language"),
    [("the dog is big", "en"), ("der Hund ist groß", "de"), ("the Hund is big", "en")],
)
def test_the_language_is_detected_by_its_words(text: str, language: str) -> None:
    found = Directions([EN, DE]).detect(text)
    assert found[0].language == language
    assert [each.confidence for each in found] == sorted((each.confidence for each in found), reverse=True)
    assert 0 <= found[1].confidence <= found[0].confidence <= 100
    assert [each.language for each in Directions([EN, DE]).detect(text, "de")] == ["en"]
    assert Directions([EN, DE]).detect(text, "fr") == []


def test_unknown_words_lower_the_confidence() -> None:
    directions = Directions([EN])
    texts = ["the dog", "the Hund", "Hund", "", " \n"]
    assert [directions.detect(text)[0].confidence for text in texts] == [100, 50, 0, 0, 0]
    same = Directions([EN, direction("fr", "en", "the a dog is big in")])
    first, second = same.detect("the dog")  # both know all words: the library tells the languages apart
    assert (first.language, second.language) == ("en", "fr")
    assert first.confidence > 90
    assert first.confidence + second.confidence == pytest.approx(100, abs=0.2)


@pytest.mark.parametrize("text", ["日本語", "Привет мир", "🥂 !"])
def test_text_that_no_model_can_read_has_no_confidence(text: str) -> None:
    assert [each.confidence for each in Directions([EN, DE]).detect(text)] == [0, 0]


def test_languages_are_ranked_among_those_that_are_served() -> None:
    ranked = rank_languages("Das ist ein sehr altes Haus.", ["en", "deu", "nl"])
    assert sum(ranked.values()) == pytest.approx(1)
    assert max(ranked, key=lambda language: ranked[language]) == "deu"
    assert rank_languages("HIja'", ["tlh"]) == {"tlh": 1.0}
    assert rank_languages("Das ist alt.", ["tlh", "de"])["tlh"] == pytest.approx(0.5)  # as probable as the others


def test_names_of_languages() -> None:
    names = {"en": "English", "pt-BR": "Portuguese (BR)", "zh_Hant": "Chinese (Hant)", "tlh": "tlh", "x-y": "x-y"}
    assert {code: language_name(code) for code in names} == names
