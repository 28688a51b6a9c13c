import contextlib
from pathlib import Path

import pytest
from conftest import names

from nmt.system.errors import DataError
from nmt.system.files import append_text, open_text, read_json, shipped, write_json, write_text

LONE_SURROGATE = "x" * 100_000 + "\ud800"  # no UTF-8 for it: writing fails in the middle


def test_text_is_written_as_utf8_with_line_feeds(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "Grüße 🙂\n中\n")
    assert (tmp_path / "a.txt").read_bytes() == "Grüße 🙂\n中\n".encode()
    assert names(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("earlier", [["a.txt"], []])
def test_a_failing_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, earlier: list[str]) -> None:
    for name in earlier:
        write_text(tmp_path / name, "old")
    with pytest.raises(UnicodeEncodeError):
        write_text(tmp_path / "a.txt", LONE_SURROGATE)
    assert names(tmp_path) == earlier
    assert [(tmp_path / name).read_text(encoding="utf-8") for name in earlier] == ["old"] * len(earlier)


def test_text_cannot_replace_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(OSError, match="a"):
        write_text(tmp_path / "a", "text")
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("value", [{"ü": [1, 2.5, None, True]}, [], "text", 0.1, {"nested": {"a": ["b"]}}])
def test_json_comes_back(tmp_path: Path, value: object) -> None:
    write_json(tmp_path / "a.json", value)
    assert read_json(tmp_path / "a.json") == value


@pytest.mark.parametrize("content", [None, b"", b"{", b'{"a": 1', b"\xff\xfe", b"{'a': 1}"])
def test_damaged_or_missing_json_is_a_data_error(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "a.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=r"a\.json: " + ("missing" if content is None else "not valid JSON")):
        read_json(path)


@pytest.mark.parametrize("relative", ["configs/sample.yaml", "data/sample/deu.txt", "data/sample/README.md"])
def test_shipped_files_are_found_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, relative: str) -> None:
    monkeypatch.chdir(tmp_path)
    assert shipped(relative).is_file()
    assert shipped(relative).is_absolute()


def test_an_opened_file_appears_only_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "old")
    with open_text(path) as file:
        file.write("new")
        assert path.read_text(encoding="utf-8") == "old"
    assert path.read_text(encoding="utf-8") == "new"
    assert names(tmp_path) == ["a.txt"]


def test_what_a_killed_process_left_is_written_over(tmp_path: Path) -> None:
    with contextlib.suppress(KeyboardInterrupt), open_text(tmp_path / "a.txt") as file:
        file.write("half of a longer text")
        file.flush()
        (left,) = tmp_path.iterdir()
        left.rename(tmp_path / "kept")
        raise KeyboardInterrupt
    (tmp_path / "kept").rename(left)
    write_text(tmp_path / "a.txt", "a")
    assert names(tmp_path) == ["a.txt"]
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "a"


def test_a_link_is_written_through(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "old")
    (tmp_path / "link").symlink_to("a.txt")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "new"


def test_text_is_appended(tmp_path: Path) -> None:
    for text in ("ä\n", "", "b\n"):
        append_text(tmp_path / "a.txt", text)
    assert (tmp_path / "a.txt").read_bytes() == "ä\nb\n".encode()
