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
    file.write_text("Cheque\tScheck\tinflected\ncheque\tScheck\tinflected\na\tb\na\tb\texact\n", encoding="utf-8")
    assert read_glossary(file).inflected == {"cheque", "Cheque"}
    longest = "w" * 100
    file.write_text(f"{longest} {longest}\t{longest * 2}\n", encoding="utf-8")  # as an address may be
    assert read_glossary(file).terms == {f"{longest} {longest}": longest * 2}
    file.write_text(f"Acme\n\n Acme  Pro \n\u27e6x\u27e7\n{longest}\n", encoding="utf-8")
    assert read_names(file) == ["Acme", "Acme Pro", "\u27e6x\u27e7", longest]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "has no entries; write a term, a tab and its translation on each line"),
        ("\n \n", "has no entries"),
        ("a\tb\tc\td\n", "line 1: 4 columns; write a term, its translation and a form"),
        ("a\tb\tsoft\n", "line 1: 'soft' in the third column; write exact or inflected there"),
        ("x\ty\nword\n", "line 2: 'word' is not an entry"),
        ("\tb\n", "line 1: '\\tb' is not an entry"),
        ("a\tb\texact\tx\n", "line 1: 4 columns; write a term, its translation and a form"),
        ("a\tb\n\na\tc\n", "line 3: 'a' is 'c' here and 'b' in line 1; keep one of them"),
        ("\na\tb\na\tb\tinflected\n", "line 3: 'a' is inflected here and exact in line 2; keep one of them"),
        ("a\tb\tinflected\nx\ty\na\tb\n", "line 3: 'a' is exact here and inflected in line 1; keep one of them"),
        ("a\tb\tinflected\na\tc\n", "line 2: 'a' is 'c' here and 'b' in line 1; keep one of them"),
        (f"a\t{'bbbbbbbbb ' * 20}\na\t{'bbbbbbbbb ' * 19}c\n", "line 2: 'a' is "),
        (
            "the \u27e6=\u27e7\tb\n",
            "line 1: 'the \u27e6=\u27e7' has \u27e6=\u27e7, which is reserved for models; remove it",
        ),
        ("a\tb\u27e6;\u27e7c\n", "has \u27e6;\u27e7, which is reserved"),
        ("a\tb \u27e612\u27e7\n", "has \u27e612\u27e7, which is reserved"),
        (f"a {'w' * 101}\tb\n", "has a word of 101 characters; write at most 100"),
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
        (b"a\n" + b"w" * 2000, "line 2: 'w.*' has a word of 2,000 characters; write at most 100"),
        (
            "Acme \u27e61\u27e7".encode(),
            "line 1: 'Acme \u27e61\u27e7' has \u27e61\u27e7, which is reserved for models; remove it",
        ),
    ],
)
def test_names_that_cannot_be_used_are_one_line(file: Path, content: bytes, problem: str) -> None:
    file.write_bytes(content)
    with pytest.raises(DataError, match=problem):
        read_names(file)
