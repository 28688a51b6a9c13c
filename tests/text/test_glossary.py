"""Terms and names that a user gives in files."""

from pathlib import Path

import pytest

from nmt.system.errors import DataError
from nmt.text.glossary import read_glossary, read_names


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "terms.tsv"


def test_terms_and_names(file: Path) -> None:
    file.write_text("\ufeffcheque\tScheck\r\n\n  delivery  note \tLieferschein\ncheque\tScheck\n", encoding="utf-8")
    assert read_glossary(file) == ({"cheque": "Scheck", "delivery note": "Lieferschein"}, frozenset())
    file.write_text("cheque\tScheck\tinflected\nbill\tRechnung\texact\n", encoding="utf-8")
    assert read_glossary(file) == ({"cheque": "Scheck", "bill": "Rechnung"}, {"cheque"})
    file.write_text("Acme\n\n Acme  Pro \n", encoding="utf-8")
    assert read_names(file) == ["Acme", "Acme Pro"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "has no entries; write a term, a tab and its translation on each line"),
        ("\n \n", "has no entries"),
        ("a\tb\tc\td\n", "line 1: 'a\\tb\\tc\\td' is not an entry; write a term, a tab and its translation"),
        ("a\tb\tsoft\n", "line 1: 'soft' in the third column; write exact or inflected there"),
        ("x\ty\nword\n", "line 2: 'word' is not an entry"),
        ("\tb\n", "line 1: '\\tb' is not an entry"),
        ("a\tb\nA\tc\n", "line 2: 'A' is 'c' here and 'b' before; keep one of them"),
        ("a\tb\nb\tc\n", "line 1: the translation 'b' of 'a' is a term too; leave out one of the two"),
        ("a\tb\x1bc\n", "has a control character; remove it"),
        (f"{'w ' * 500}\tb\n", "has 500 words; write at most 20"),
        (f"a\t{'w ' * 21}\n", "has 21 words; write at most 20"),
    ],
)
def test_a_glossary_that_cannot_be_used_is_one_line(file: Path, content: str, problem: str) -> None:
    file.write_text(content, encoding="utf-8")
    with pytest.raises(DataError) as raised:
        read_glossary(file)
    assert str(file) in str(raised.value)
    assert problem in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\n", "has no names; write one on each line"),
        (b"a\n\xff\n", "line 2: not UTF-8"),
        (b"w " * 21, "has 21 words"),
    ],
)
def test_names_that_cannot_be_used_are_one_line(file: Path, content: bytes, problem: str) -> None:
    file.write_bytes(content)
    with pytest.raises(DataError, match=problem):
        read_names(file)
