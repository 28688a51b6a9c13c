import pytest

from nmt.text.languages import base_language, is_language, language_name


@pytest.mark.parametrize(
    ("codes", "base"),
    [
        (("zh", "ZH", "zh-Hans", "zh_TW", "zho", "zho_Hant", "chi", "cmn", "cmn_Hans"), "zh"),
        (("ja", "jpn", "jpn_Jpan"), "ja"),
        (("th", "tha", "tha_Thai"), "th"),
        (("km", "khm"), "km"),
        (("de", "deu", "ger", "de-AT", "deu_Latn"), "de"),
        (("en", "eng", "en-GB-oxendict"), "en"),
        (("fa", "fas", "per", "pes_Arab"), "fa"),
        (("ar", "ara", "arb_Arab"), "ar"),
        (("he", "heb", "iw"), "he"),
        (("et", "est", "ekk_Latn"), "et"),
        (("nb", "nob_Latn"), "nb"),
        (("yue", "yue_Hant"), "yue"),  # ISO 639-1 has no code for it
        (("xx", "XX-Latn"), "xx"),
        (("tlh",), "tlh"),
    ],
)
def test_one_code_for_a_language(codes: tuple[str, ...], base: str) -> None:
    assert {base_language(code) for code in codes} == {base}


@pytest.mark.parametrize(
    ("code", "wanted", "expected"),
    [
        ("en-GB", "en", True),
        ("eng", "en", True),
        ("en", "en-GB", False),
        ("zho_Hans", "zh-Hans", True),
        ("zh-Hant", "zh-Hans", False),
        ("cmn", "zh", True),
        ("yue", "zh", False),
    ],
)
def test_a_region_is_asked_for_or_not(code: str, wanted: str, expected: bool) -> None:
    assert is_language(code, wanted) is expected


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("deu", "German"),
        ("cmn", "Chinese"),
        ("zho_Hans", "Chinese (Hans)"),
        ("pt-BR", "Portuguese (BR)"),
        ("tlh-Latn", "tlh-Latn"),
    ],
)
def test_a_language_has_the_name_of_its_base(code: str, name: str) -> None:
    assert language_name(code) == name
