"""XLIFF: states, inline codes, segments, and what is not translated."""

import pytest
from file_samples import XLIFF, XLIFF_2, changed_lines, read, shout, texts, write
from lxml import etree

from nmt.system.errors import DataError

NAMES = {"x": "urn:oasis:names:tc:xliff:document:1.2", "y": "urn:oasis:names:tc:xliff:document:2.0"}


def test_units_without_a_translation_get_one_that_needs_review() -> None:
    document = read("xliff")
    assert texts(document) == ["I am old & tired.", "Hello.", "She sleeps.", "He runs.", "\ue000 sleeps."]
    written = shout(document)
    root = etree.fromstring(written.encode())
    states = {
        target.getparent().get("id"): target.get("state") for target in root.iterfind(".//x:trans-unit/x:target", NAMES)
    }
    review = "needs-review-translation"
    assert states == {"1": review, "3": "final", "4": review, "5": review}
    file, first, *others = changed_lines(XLIFF, written)
    assert file == XLIFF.splitlines()[3].replace('"plaintext">', '"plaintext" target-language="de">')
    assert first == (
        '    <target state="needs-review-translation">I AM <g id="1">OLD</g> &amp; <x id=\'2\'/>'
        '<bpt id="3">&lt;b></bpt>TIRED<ept id="3">&lt;/b></ept>.</target>'
    )
    assert others == [
        '  She sleeps.</source><target state="needs-review-translation">HELLO.',
        "  SHE SLEEPS.</target></trans-unit>",
        XLIFF.splitlines()[-2].replace(
            "</trans-unit>",
            '<target state="needs-review-translation"><mrk mtype="seg">HE RUNS.</mrk> <mrk mtype="seg" mid="1">'
            '<mrk mtype="protected">nmt</mrk> SLEEPS.</mrk></target></trans-unit>',
        ),
    ]


def test_version_2_has_its_own_states_and_codes() -> None:
    written = shout(read("xliff 2"))
    root = etree.fromstring(written.encode())
    assert [segment.get("state") for segment in root.iterfind(".//y:segment", NAMES)] == ["translated", "final"]
    (new,) = [line for line in changed_lines(XLIFF_2, written) if "<target>" in line]
    assert new.endswith(
        '<target>I <pc id="1">AM <sc id="2"/>OLD</pc> AND<ec startRef="2"/> <ph id="3"/> SLEEP.</target>'
    )


def test_translated_units_are_translated_again_if_that_is_asked_for() -> None:
    assert "Good night." in texts(read("xliff", retranslate=True))
    assert '<target state="needs-review-translation">GOOD NIGHT.</target>' in shout(read("xliff", retranslate=True))


def test_what_is_done_is_not_touched() -> None:
    for sample in ("xliff", "xliff 2"):
        done = write(read(sample), str.upper)
        assert texts(read(sample, done)) == []
        assert write(read(sample, done), str.lower) == done


def test_a_file_without_a_namespace_and_with_a_prefix_is_read() -> None:
    bare = "<xliff><file><body><trans-unit><source>I am old.</source></trans-unit></body></file></xliff>"
    assert "<source>I am old.</source><target state" in shout(read("xliff", bare))
    named = '<q:xliff xmlns:q="urn:oasis:names:tc:xliff:document:1.2"><q:file><q:body><q:trans-unit>'
    named += "<q:source>I am</q:source></q:trans-unit></q:body></q:file></q:xliff>"
    assert '<q:target state="needs-review-translation">I AM</q:target>' in shout(read("xliff", named))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('<!DOCTYPE x [<!ENTITY a "b">]><xliff>&a;</xliff>', "a.xliff:1: declares the entity 'a'"),
        ('<!DOCTYPE x SYSTEM "file:///etc/passwd"><xliff>&a;</xliff>', "a.xliff:1: uses the entity 'a'"),
        ("<xliff>&eacute;</xliff>", "a.xliff:1: is not XML: undefined entity"),
        ("<xliff>\n<file>", "a.xliff:2: is not XML: no element found"),
        ("<a/>", "a.xliff: its root is a, not xliff"),
        ("<xliff>" * 201, "a.xliff:1: more than 200 elements inside each other"),
        (XLIFF.replace("utf-8", "klingon"), "a.xliff: declares the encoding klingon, which is unknown"),
        (
            XLIFF.replace("language='en'", "language='fr'"),
            "a.xliff:4: is for fr to [?], but the model translates en to de",
        ),
        (XLIFF_2.replace('trgLang="de"', "trgLang='pl'"), "a.xliff:1: is for en-US to pl, but"),
    ],
)
def test_what_is_no_xliff_or_of_other_languages_is_refused(content: str, problem: str) -> None:
    with pytest.raises(DataError, match="^" + problem):
        read("xliff", content)
