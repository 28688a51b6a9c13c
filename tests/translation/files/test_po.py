"""PO files: plural forms, marks on translations, contexts, and what other readers make of them."""

import re
import shutil
import subprocess
from pathlib import Path

import polib
import pytest
from file_samples import PO, changed_lines, read, same, shout, texts, write
from hypothesis import given
from hypothesis import strategies as st

from nmt.system.errors import DataError

needs_gettext = pytest.mark.skipif(shutil.which("msgfmt") is None, reason="gettext is not installed")
UNTRANSLATED = 'msgid "Hello."\nmsgstr ""\n'


def test_messages_without_a_translation_get_one_that_is_marked() -> None:
    assert changed_lines(PO, shout(read("po"))) == [
        r'"Language: de\n"',
        r'"Plural-Forms: nplurals=2; plural=(n != 1);\n"',
        "#, fuzzy, c-format",
        'msgstr[0] "I HAVE %d DOLLAR."',
        'msgstr[1] "I HAVE %d DOLLARS."',
        r'"SHE SAID: \"I AM OLD\"\n"',
        r'"AND <b>WENT</b> HOME.\n"',
    ]
    again = read("po", retranslate=True)
    assert texts(again)[-2:] == ["I am old.", "Good night."]
    assert {'msgstr "I AM OLD."', 'msgstr "GOOD NIGHT."'} < set(changed_lines(PO, shout(again)))


def test_a_message_in_which_nothing_is_translated_stays_without_a_translation() -> None:
    message = '\nmsgid "{count, plural, one {# apple} other {# apples}}"\nmsgstr ""\n'
    written = shout(read("po", PO + message))
    assert written.endswith(message)
    assert "fuzzy" not in written.rpartition("msgid")[0].rpartition("msgstr")[2]


def test_what_is_done_is_not_touched() -> None:
    done = write(read("po"), str.upper)
    assert texts(read("po", done)) == []
    assert write(read("po", done), str.lower) == done


@needs_gettext
@pytest.mark.parametrize(
    ("target", "forms"), [("de", 2), ("fr", 2), ("ja", 1), ("ru", 3), ("ar", 6), ("sl", 4), ("xx", 2)]
)
def test_a_language_has_its_number_of_plural_forms(target: str, forms: int, tmp_path: Path) -> None:
    written = write(read("po", target=target), same)
    (tmp_path / "a.po").write_bytes(written)
    (entry, *_) = polib.pofile(tmp_path / "a.po")
    assert list(entry.msgstr_plural) == list(range(forms))
    assert entry.msgstr_plural[0] == ("I have %d dollars." if forms == 1 else "I have %d dollar.")
    checked = subprocess.run(["msgfmt", "-c", "-o", "/dev/null", tmp_path / "a.po"], capture_output=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, b"")


def test_a_header_that_states_its_forms_is_believed() -> None:
    three = PO.replace("nplurals=INTEGER; plural=EXPRESSION", "nplurals=3; plural=n%3")
    assert re.findall(r"msgstr\[\d\]", shout(read("po", three))) == ["msgstr[0]", "msgstr[1]", "msgstr[2]"]


def test_one_missing_form_is_filled() -> None:
    half = PO.replace('msgstr[0] ""', 'msgstr[0] "Ich habe %d Dollar."')
    assert {'msgstr[0] "Ich habe %d Dollar."', 'msgstr[1] "I HAVE %d DOLLARS."'} < {
        *shout(read("po", half)).splitlines()
    }


@given(st.lists(st.sampled_from(["a", '"', "\\", "\n", "\t", " ", "é", "%s"]), min_size=1, max_size=9).map("".join))
def test_a_text_is_what_another_reader_reads(text: str) -> None:
    escaped = polib.escape(text)
    catalogue = f'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "x{escaped}"\nmsgstr ""\n'
    written = write(read("po", catalogue), same).decode()
    (entry,) = polib.pofile(written)
    if "a" in text or "é" in text:
        assert entry.msgstr.split() == entry.msgid.split()
        assert entry.msgstr.count("\n") == entry.msgid.count("\n")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("I am old.\n", "a.po:1: 'I am old.' is no line of a PO file"),
        ('msgid "a"\nmsgid "b"\n', "a.po: the last message has no msgstr; the file is incomplete"),
        ('msgstr "a"\n', "a.po:1: a text without its msgid"),
        ('"a"\n', "a.po:1: a text without its msgid"),
        (PO.replace("UTF-8", "klingon"), "a.po: its header has charset=klingon, which is unknown"),
        (PO.replace("UTF-8", "ASCII"), "a.po:38: is not ASCII"),
        (PO.replace("nplurals=INTEGER", "nplurals=many"), "a.po: its header has nplurals=many; write Plural-Forms"),
        (PO.replace("nplurals=INTEGER", "nplurals=99"), "a.po: its header has nplurals=99; write Plural-Forms"),
    ],
)
def test_what_is_no_catalogue_is_refused(content: str, problem: str) -> None:
    with pytest.raises(DataError, match="^" + re.escape(problem)):
        read("po", content)


def test_a_character_that_the_encoding_lacks_is_named() -> None:
    latin = f'msgid ""\nmsgstr "Content-Type: text/plain; charset=ISO-8859-1\\n"\n\n{UNTRANSLATED}'.replace(
        'msgstr "Content', 'msgstr ""\n"Content'
    )
    assert write(read("po", latin), lambda text: "Grüße").endswith(b'"Gr\xfc\xdfe"\n')
    with pytest.raises(
        DataError, match=r"^a\.po: its encoding, ISO-8859-1, has no '\\u015b', which a translation needs"
    ):
        write(read("po", latin), lambda text: "Cześć, był")
