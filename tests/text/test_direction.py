import pytest

from nmt.config import DataSection
from nmt.system.errors import ConfigError
from nmt.text.direction import Direction


def test_a_direction_is_that_of_a_config_in_which_languages_may_be_swapped() -> None:
    data = DataSection(src_language="en", tgt_language="de")
    assert Direction.of(data) == Direction("en", "de")
    assert Direction.of(data.model_copy(update={"reverse": True})) == Direction("de", "en")
    with pytest.raises(ConfigError, match=r"data\.tgt_language"):
        Direction.of(DataSection(src_language="en", tgt_language=None))


def test_directions_are_the_same_however_their_languages_are_named() -> None:
    assert Direction("en", "deu").is_same(Direction("eng", "de"))
    assert not Direction("en", "de").is_same(Direction("de", "en"))
    assert not Direction("en", "zh-Hans").is_same(Direction("en", "zho_Hant"))
    assert not Direction("en", "de", "<de>").is_same(Direction("en", "de"))


def test_a_direction_has_a_name() -> None:
    assert str(Direction("en", "pt-BR")) == "en-pt-BR"
    assert Direction("en", "pt-BR").name == "English to Portuguese (BR)"
    assert Direction("xx", "de").name == "xx to German"


@pytest.mark.parametrize(
    ("language", "writing"),
    [
        ("de", "ltr"),
        ("ar", "rtl"),
        ("arb", "rtl"),
        ("he", "rtl"),
        ("iw", "rtl"),
        ("fa-IR", "rtl"),
        ("az", "ltr"),
        ("az-Arab", "rtl"),
        ("ur_Latn", "ltr"),
        ("zh-Hant", "ltr"),
        ("yi", "rtl"),
    ],
)
def test_a_language_or_its_script_says_how_it_is_written(language: str, writing: str) -> None:
    assert Direction(language, "en").writing == (writing, "ltr")
    assert Direction("en", language).writing == ("ltr", writing)


def test_sentences_and_letters_follow_the_rules_of_their_language() -> None:
    assert Direction("tr", "en").casings == ("tr", "")
    assert (Direction("en", "ja").separator, Direction("ja", "en").separator) == ("", " ")
