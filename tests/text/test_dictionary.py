"""A user's dictionary as it is read."""

from pathlib import Path

import pytest

from nmt.system.errors import DataError
from nmt.text.dictionary import read_dictionary
from nmt.text.processor import TextProcessor
from nmt.text.tokenizers import WhitespaceTokenizer
from nmt.text.vocabulary import Vocabulary


def read(path: Path, content: bytes | None = None, *, lowercase: bool = False) -> dict[str, str]:
    if content is not None:
        path.write_bytes(content)
    tokenizer = WhitespaceTokenizer(lowercase=lowercase)
    return dict(read_dictionary(path, TextProcessor(tokenizer, tokenizer, Vocabulary([]), Vocabulary([]))))


def test_words_are_kept_as_the_model_reads_them(tmp_path: Path) -> None:
    content = "\ufeffZebra\tdas Zebra\r\n\n  \t \nCafe\u0301\t Kaffeehaus \nZebra\tdas  Zebra".encode()
    assert read(tmp_path / "d.tsv", content) == {"Zebra": "das Zebra", "Café": "Kaffeehaus"}
    assert read(tmp_path / "d.tsv", content, lowercase=True) == {"zebra": "das Zebra", "café": "Kaffeehaus"}
    assert read(tmp_path / "d.tsv", b"") == {}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a\tb\nzebra Zebra\n", ("line 2", "'zebra Zebra'", "tab")),
        (b"a\tb\tc\n", ("line 1", "tab")),
        (b"\n\n\ta\n", ("line 3", "tab")),
        (b"a\t \n", ("line 1",)),
        (b"a\tb\nc\td\n a\tx\n", ("line 3", "'a'", "'x'", "'b'")),
        (b"a\tb\nc\t\xff\n", ("line 2", "UTF-8")),
        (b"a\tb\nc\t" + b"x" * 2_000_000 + b"\n", ("line 2", "longer than 1 MB; write one entry per line")),
        ("a\tb\n".encode("utf-16"), ("line 1", "UTF-8")),
    ],
)
def test_what_is_no_dictionary_is_refused_with_its_line(tmp_path: Path, content: bytes, words: tuple[str, ...]) -> None:
    path = tmp_path / "d.tsv"
    with pytest.raises(DataError) as caught:
        read(path, content)
    assert str(caught.value).startswith(f"{path}, ")
    assert "\n" not in str(caught.value)
    assert all(word in str(caught.value) for word in words)


@pytest.mark.parametrize("place", ["nowhere.tsv", "."])
def test_files_that_cannot_be_read(tmp_path: Path, place: str) -> None:
    with pytest.raises(OSError, match=r"No such file.*nowhere\.tsv|Is a directory"):
        read(tmp_path / place)
