"""Files by HTTP: translation, download, limits, and what is left of temporary files."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from conftest import wait_until
from file_samples import DOCX_PARTS, SAMPLES, format_of, make_archive, parts_of
from real_server import golden, recording, serving

import nmt
from nmt.serving.downloads import Downloads, FolderFull
from nmt.serving.file_requests import divide_units
from nmt.translation.reader import Unit

FIELDS = {"source": "en", "target": "de"}


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with serving() as found:
        yield found


def send(client: httpx.Client, name: str, content: bytes, **fields: str) -> httpx.Response:
    return client.post("/translate_file", files={"file": (name, content)}, data={**FIELDS, **fields})


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"]


def test_a_line_with_more_sentences_than_the_queue_is_translated_in_portions() -> None:
    with serving(limits={"max_sentences": 3, "max_queue": 3}) as client:
        sentence = "I am old."
        reply = send(client, "a.txt", " ".join([sentence] * 8).encode())
        assert reply.status_code == 200, reply.text
        expected = " ".join([golden().translate(sentence).text] * 8)
        assert client.get(reply.json()["translatedFileUrl"]).text == expected


def test_portions_take_at_most_so_many_places_or_one_sentence() -> None:
    units = [Unit(["a"] * number) for number in (1, 50, 51, 120, 500, 1)]  # 1, 1, 2, 3, 10 and 1 places
    portions = list(divide_units(units, 4))
    assert [[len(unit) for unit in portion] for portion in portions] == [[1, 50, 51], [120], [500], [1]]
    assert list(divide_units([], 4)) == []


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_file_is_what_the_command_makes_of_it(sample: str, client: httpx.Client, tmp_path: Path) -> None:
    suffix = format_of(sample).suffixes[0]
    reply = send(client, f"a b{suffix}", SAMPLES[sample])
    assert reply.status_code == 200, reply.text
    url = reply.json()["translatedFileUrl"]
    assert url.startswith(f"{client.base_url}/download_file/")
    fetched = client.get(url)
    assert fetched.headers["content-disposition"] == f'attachment; filename="a_b_de{suffix}"'
    assert (fetched.headers["content-type"], fetched.headers["x-content-type-options"]) == (
        "application/octet-stream",
        "nosniff",
    )
    given = tmp_path / f"given{suffix}"
    given.write_bytes(SAMPLES[sample])
    nmt.translate_file(golden(), given, tmp_path / "out")
    expected = (tmp_path / "out").read_bytes()
    if suffix in (".docx", ".odt"):
        assert parts_of(fetched.content) == parts_of(expected)
    else:
        assert fetched.content == expected


def test_plain_text_and_a_detected_language(client: httpx.Client) -> None:
    reply = send(client, "a.txt", b"I am old.\r\n\r\nShe sleeps.\r\n", source="auto")
    assert client.get(reply.json()["translatedFileUrl"]).content.startswith(b"Ich bin jung.\r\n\r\n")
    settings = client.get("/frontend/settings").json()
    assert settings["filesTranslation"] is True
    assert {".txt", ".srt", ".docx"} < {*settings["supportedFilesFormat"]}


def test_an_unknown_field_beside_a_file_is_named(client: httpx.Client) -> None:
    assert set(send(client, "a.txt", b"I am old.").json()) == {"translatedFileUrl"}
    known = "source, target, file, glossary, api_key"
    warnings = send(client, "a.txt", b"I am old.", glosary="zoo").json()["warnings"]
    assert warnings == [f"glosary: unknown field, which has no effect; fields are {known}"]


def test_a_file_with_many_texts_is_translated_in_slices() -> None:
    with recording() as records, serving(limits={"max_sentences": 2, "max_queue": 2}) as client:
        lines = b"I am old. She sleeps.\nI am old.\nI am old. I am old. I am old.\n"
        reply = send(client, "a.txt", lines)
        assert len(client.get(reply.json()["translatedFileUrl"]).text.splitlines()) == 3
    (record,) = [found for found in map(json.loads, records.lines) if found["route"] == "/translate_file"]
    assert (record["sentences"], record["status"]) == (6, 200)
    assert [found["route"] for found in map(json.loads, records.lines)][-1] == "/download_file"
    assert "token" not in "".join(records.lines)


@pytest.mark.parametrize(
    ("name", "content", "status", "error"),
    [
        ("a.pdf", b"x", 400, ".pdf: files may be .txt, .srt"),
        ("a", b"x", 400, "a name without a suffix: files may be .txt, .srt"),
        ("a.docx", b"x", 400, "a.docx: is not a DOCX file, or is damaged (File is not a zip file); save it again"),
        ("../../b.srt", b"x", 400, "b.srt: has no line with times"),
        ("c\\d.xlf", b'<!DOCTYPE x [<!ENTITY a "b">]><xliff/>', 400, "d.xlf:1: declares the entity 'a'"),
        ("a.srt", b"x" * 3000, 413, "the file is larger than 2000 bytes"),
        ("a.docx", make_archive({**DOCX_PARTS, "x": b" " * 30_000}), 400, "a.docx: has 3"),
    ],
)
def test_bad_files_are_refused_in_one_line(name: str, content: bytes, status: int, error: str, tmp_path: Path) -> None:
    with serving(limits={"max_file_bytes": 2000}) as client:
        reply = send(client, name, content)
        assert reply.status_code == status
        assert reply.json()["error"].startswith(error)
    assert files_below(tmp_path) == []


def test_other_requests_are_refused(client: httpx.Client) -> None:
    form = "send multipart/form-data with the fields file, source and target"
    assert client.post("/translate_file", json={"source": "en", "target": "de"}).json() == {"error": form}
    missing = client.post("/translate_file", files={"x": ("", b"")}, data=FIELDS)
    assert (missing.status_code, missing.json()["error"]) == (400, "Invalid request: file: is missing")
    assert send(client, "a.txt", b"a", target="fr").json()["error"] == "en-fr is not supported; see /languages"
    two = [("file", ("a.txt", b"a")), ("file", ("b.txt", b"b"))]
    assert client.post("/translate_file", files=two, data=FIELDS).status_code == 400
    for name in ("x", "..%2f..%2fetc%2fpasswd", "%00"):
        assert client.get(f"/download_file/{name}").status_code == 404


def test_a_key_is_required_where_there_are_keys() -> None:
    with serving(api_keys=["secret"]) as client:
        assert send(client, "a.txt", b"I am old.").status_code == 403
        assert send(client, "a.txt", b"I am old.", api_key="wrong").status_code == 403
        url = send(client, "a.txt", b"I am old.", api_key="secret").json()["translatedFileUrl"]
        assert client.get(url).status_code == 200


def test_files_are_gone_after_their_time_and_with_the_server(tmp_path: Path) -> None:
    with serving(limits={"keep_seconds": 0.5}) as client:
        url = send(client, "a.txt", b"I am old.").json()["translatedFileUrl"]
        (file,) = files_below(tmp_path)
        assert file.stat().st_mode & 0o777 == 0o600 or file.parent.stat().st_mode & 0o777 == 0o700
        wait_until(lambda: not file.exists(), 10)  # without another request
        assert client.get(url).status_code == 404
        send(client, "a.txt", b"I am old.")
        assert len(files_below(tmp_path)) == 1
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == []


def test_no_more_is_stored_than_allowed(tmp_path: Path) -> None:
    store = Downloads(60, 10, tmp_path / "files")
    key = store.add("../\x00a/b.srt", b"12345")
    assert key.endswith(".._a_b.srt".lstrip("."))
    assert store.find(key).path.parent.parent == tmp_path / "files"  # type: ignore[union-attr]
    with pytest.raises(FolderFull):
        store.add("b", b"123456")
    store.close()
    assert files_below(tmp_path) == []


def test_the_folder_of_another_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "files").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(nmt.ConfigError, match="is not a folder that only this user can open"):
        Downloads(60, 10, tmp_path / "files").add("a", b"b")
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(nmt.ConfigError, match="is not a folder that only this user can open"):
        Downloads(60, 10, tmp_path / "open").clean_up()


def test_what_a_killed_server_left_is_deleted_at_the_next_start(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from nmt.serving.downloads import Downloads\n"
        f"store = Downloads(60, 100, Path({str(tmp_path / 'files')!r})); store.add('a', b'b')\n"
        "print('ready', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == "ready\n"
        living = Downloads(60, 100, tmp_path / "files")
        living.clean_up()
        assert len(files_below(tmp_path)) == 1  # that of a living server
        killed.send_signal(signal.SIGKILL)
        killed.wait()
    key = living.add("c", b"d")
    other = Downloads(60, 100, tmp_path / "files")
    other.clean_up()
    (left,) = files_below(tmp_path)
    assert living.find(key).path == left  # type: ignore[union-attr]
    living.close()
