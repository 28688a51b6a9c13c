import gzip
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.corpus import Pair
from nmt.corpus.sources import read_corpus
from nmt.errors import DataError


def written(path: Path, data: bytes | str) -> Path:
    content = data.encode() if isinstance(data, str) else data
    if path.suffix == ".gz":
        content = gzip.compress(content)
    path.write_bytes(content)
    return path


def archive(path: Path, members: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in members.items():
            file.writestr(name, text)
    return path


def refusal(*paths: Path, columns: tuple[int, int] = (1, 2)) -> str:
    with pytest.raises(DataError) as caught:
        read_corpus(paths, columns=columns)
    message = str(caught.value)
    assert "\n" not in message
    return message


HELLO = [Pair("Hi.", "Hallo!"), Pair("Run!", "Lauf!")]


@pytest.mark.parametrize("name", ["deu.txt", "deu.tsv", "deu.txt.gz", "deu"])
def test_a_tab_separated_file_is_read(tmp_path: Path, name: str) -> None:
    corpus = read_corpus([written(tmp_path / name, "Hi.\tHallo!\nRun!\tLauf!\n")])
    assert corpus.splits == {"all": HELLO}
    assert corpus.skipped == 0
    assert corpus.description == (f"{tmp_path / name}: 2 lines, source in column 1, target in column 2",)


def test_a_zip_is_read_and_its_underscored_members_are_not(tmp_path: Path) -> None:
    members = {
        "_about.txt": "x",
        "__MACOSX/deu.txt": "x",
        "deu.txt": "Hi.\tHallo!\tCC-BY\nRun!\tLauf!\tCC-BY\n",
    }
    assert read_corpus([archive(tmp_path / "deu-eng.zip", members)]).splits["all"] == HELLO


def test_other_columns_can_be_named_and_short_lines_are_counted(tmp_path: Path) -> None:
    path = written(tmp_path / "ids.tsv", "1\tHallo!\t2\tHi.\n3\tkurz\n\n4\tLauf!\t5\tRun!")
    corpus = read_corpus([path], columns=(4, 2))
    assert corpus.splits["all"] == HELLO
    assert corpus.skipped == 2


def test_a_mark_at_the_start_and_carriage_returns_are_not_text(tmp_path: Path) -> None:
    path = written(tmp_path / "windows.txt", b"\xef\xbb\xbfHi.\tHallo!\r\nRun!\tLauf!\r\n")
    assert read_corpus([path]).splits["all"] == HELLO


def test_only_line_feeds_end_lines(tmp_path: Path) -> None:
    odd = "a\u2028b\u0085c\x0cd\re\x1cf"
    src = written(tmp_path / "a.en", f"{odd}\nRun!\n")
    tgt = written(tmp_path / "a.de.gz", "Hallo!\nLauf!\n")
    assert read_corpus([src, tgt]).splits == {"all": [Pair(odd, "Hallo!"), HELLO[1]]}


def test_blank_lines_of_parallel_files_stay(tmp_path: Path) -> None:
    src = written(tmp_path / "a.en", "Hi.\n\nRun!\n")
    tgt = written(tmp_path / "a.de", "Hallo!\n\n\n")
    assert read_corpus([src, tgt]).splits["all"] == [HELLO[0], Pair("", ""), Pair("Run!", "")]


@pytest.mark.parametrize("names", [("train", "valid"), ("train", "valid", "test")])
def test_given_splits_keep_their_names(tmp_path: Path, names: tuple[str, ...]) -> None:
    paths = []
    for name in names:
        paths += [written(tmp_path / f"{name}.en", name), written(tmp_path / f"{name}.de", name.upper())]
    corpus = read_corpus(paths)
    assert corpus.splits == {name: [Pair(name, name.upper())] for name in names}
    assert len(corpus.description) == len(names)
    assert corpus.description[0].startswith("train: ")


def test_only_the_first_lines_are_taken(tmp_path: Path) -> None:
    table = written(tmp_path / "a.txt", "Hi.\tHallo!\nshort\nRun!\tLauf!\n")
    assert read_corpus([table], first_lines=2).splits["all"] == HELLO[:1]
    src, tgt = written(tmp_path / "a.en", "1\n2\n3\n"), written(tmp_path / "a.de", "1\n2\n3\n4\n")
    assert read_corpus([src, tgt], first_lines=2).splits["all"] == [Pair("1", "1"), Pair("2", "2")]


@pytest.mark.parametrize("count", [0, 3, 5, 7])
def test_other_numbers_of_files_are_refused(tmp_path: Path, count: int) -> None:
    message = refusal(*[tmp_path / "a"] * count)
    assert f"{count} files given" in message
    assert "1 (tab-separated text), 2 (source, target), 4 (" in message


@pytest.mark.parametrize("name", ["none.txt", "none.gz", "none.zip"])
def test_a_missing_file_is_refused(tmp_path: Path, name: str) -> None:
    assert refusal(tmp_path / name) == f"{tmp_path / name}: no such file; check the path"


def test_a_folder_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path).startswith(f"{tmp_path}: cannot be read (")


def test_text_that_is_not_utf8_is_refused_with_its_line(tmp_path: Path) -> None:
    path = written(tmp_path / "latin.txt", b"Hi.\tHallo!\n" + "Hi.\tGrüß Gott!\n".encode("latin-1"))
    assert refusal(path).startswith(f"{path}, line 2: not UTF-8 (invalid start byte at byte 7")


def test_a_file_that_is_no_zip_is_refused(tmp_path: Path) -> None:
    message = refusal(written(tmp_path / "page.zip", "<html>"))
    assert message.startswith(f"{tmp_path / 'page.zip'}: not a readable zip archive (")


def test_a_zip_with_damaged_data_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "damaged.zip"
    with zipfile.ZipFile(path, "w") as file:  # stored, so that only the checksum can tell
        file.writestr("deu.txt", "Hi.\tHallo!\n")
    path.write_bytes(path.read_bytes().replace(b"Hallo", b"Holla"))
    assert "not a readable zip archive (Bad CRC-32" in refusal(path)


@pytest.mark.parametrize(
    ("members", "found"),
    [
        ({"_about.txt": "x"}, "no data file in the archive"),
        ({"a.txt": "x", "b/c.txt": "x"}, "2 data files (a.txt, b/c.txt) in the archive"),
    ],
)
def test_a_zip_without_one_data_file_is_refused(tmp_path: Path, members: dict[str, str], found: str) -> None:
    message = refusal(archive(tmp_path / "a.zip", members))
    assert message == f"{tmp_path / 'a.zip'}: {found}, one is needed; unpack it and give the text file"


def test_an_encrypted_zip_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "secret.zip", {"a.txt": "x"})
    data = bytearray(path.read_bytes())
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + flags] |= 1
    path.write_bytes(data)
    assert "cannot be unpacked (" in refusal(path)


@pytest.mark.parametrize(
    "damage", [lambda data: b"plain text", lambda data: data[:-12], lambda data: data[:30] + b"?" * 30]
)
def test_damaged_gzip_is_refused(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(damage(gzip.compress(b"".join(b"%d\t%d\n" % (i, i * i) for i in range(500)))))
    assert f"{path}: damaged compressed data (" in refusal(path)


def test_parallel_files_of_different_lengths_are_refused(tmp_path: Path) -> None:
    src, tgt = written(tmp_path / "a.en", "1\n2\n"), written(tmp_path / "a.de", "1\n2\n3")
    assert refusal(src, tgt).startswith(f"{src} and {tgt}: 2 and 3 lines; ")


def test_empty_files_are_refused(tmp_path: Path) -> None:
    empty = written(tmp_path / "empty.txt", "")
    assert refusal(empty) == f"{empty}: empty; give a file with lines of source<TAB>target"
    assert f"{empty} and {empty}: empty" in refusal(empty, empty)


@pytest.mark.parametrize(
    ("text", "columns", "found"),
    [
        ("Hi.\nRun!\n", (1, 2), "no line has columns 1 and 2 (one column only in 2 lines)"),
        ("Hi.\tHallo!\nRun!\n", (3, 1), "no line has columns 3 and 1 (2 columns at most in 2 lines)"),
    ],
)
def test_text_without_the_columns_is_refused(tmp_path: Path, text: str, columns: tuple[int, int], found: str) -> None:
    message = refusal(written(tmp_path / "a.txt", text), columns=columns)
    assert found in message
    assert "source<TAB>target" in message


def test_columns_start_at_one(tmp_path: Path) -> None:
    assert "columns are numbered from 1" in refusal(written(tmp_path / "a.txt", "a\tb\n"), columns=(0, 1))
