from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.system.errors import DataError, NmtError
from nmt.text.names import (
    LONGEST_FILE,
    find_names,
    find_unknown_names,
    list_words,
    load_words,
    most_frequent,
    save_words,
)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("She met Jean-Luc's friend.", ["She", "Jean-Luc"]),
        ("an O\u2019Brien-like talk", ["O\u2019Brien"]),
        ("I saw McDonald in NYC.", ["McDonald", "NYC"]),
        ("the iPhone, a non-Euclidean X", []),
        ("B2B, A_b and _Ab_", ["Ab"]),
        ("\u00c9mile et \u00d6zg\u00fcr", ["\u00c9mile", "\u00d6zg\u00fcr"]),
        ("\u65e5\u672c\u8a9e 12 \U0001f436", []),
        ("", []),
    ],
)
def test_names_are_words_with_a_capital(text: str, names: list[str]) -> None:
    assert [text[begin:end] for begin, end in find_names(text)] == names


def test_a_name_is_unknown_if_a_part_of_it_is() -> None:
    known = list_words("Tom met the old JEAN and o'brien")
    text = "TOM, Jean-Luc and O'Brien met Luc at the Old Zoo."
    assert [text[begin:end] for begin, end in find_unknown_names(text, known)] == ["Jean-Luc", "Luc", "Zoo"]


@given(text=st.text(st.sampled_from("aB'- \u2019\u00c4\u01c5\u0130\u00b2_1")))
def test_no_name_is_unknown_in_text_that_training_had(text: str) -> None:
    assert find_unknown_names(text, list_words(text)) == []
    for begin, end in find_names(text):
        assert text[begin].isupper()
        assert text[begin:end] == text[begin:end].strip("'-\u2019 ")


def test_words_are_saved_and_loaded(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    assert load_words(path) == frozenset()
    save_words(path, {"tom", "\u00e9mile", "i\u0307zmir"})
    assert load_words(path) == {"tom", "\u00e9mile", "i\u0307zmir"}
    assert path.read_text(encoding="utf-8") == "i\u0307zmir\ntom\n\u00e9mile\n"


def test_of_too_many_words_the_rarest_are_left_out(tmp_path: Path) -> None:
    word = "x" * 1023
    counts = Counter({f"{word[:-4]}{number:04}": number for number in range(1100)})
    chosen = most_frequent(counts)
    assert len(chosen) == LONGEST_FILE // 1024
    assert min(counts[word] for word in chosen) == 1100 - len(chosen)
    save_words(tmp_path / "words.txt", chosen)
    assert load_words(tmp_path / "words.txt") == chosen


def test_a_damaged_file_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_bytes(b"tom\n\xff\n")
    with pytest.raises(DataError, match=r"words\.txt: is not in UTF-8"):
        load_words(path)
    path.write_bytes(b"a\n" * LONGEST_FILE)
    with pytest.raises(NmtError, match=r"words\.txt"):
        load_words(path)
