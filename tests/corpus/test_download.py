import bz2
import contextlib
import gzip
import io
import logging
import lzma
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from nmt.corpus import download
from nmt.corpus.download import resolve_sources
from nmt.system import progress
from nmt.system.errors import DataError
from nmt.system.version import __version__

PAGE = b"\n<!DOCTYPE html><html><body>Please log in to the network.</body></html>"


def zipped() -> bytes:
    """An archive of 200,112 bytes: 200,000 that do not compress, and zip's headers."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo("deu.txt"), random.Random(1).randbytes(200_000))
    return buffer.getvalue()


BODY = zipped()
SIZE = len(BODY)
BAD_CRC = BODY[:5_000] + bytes([BODY[5_000] ^ 1]) + BODY[5_001:]


@dataclass(frozen=True)
class Reply:
    """How the server answers one request."""

    status: int = 200
    reason: str | None = None  # of a status that is not 200; None for the usual words
    body: bytes = BODY
    send: int | None = None  # bytes of the body, then the connection ends; None sends all
    end: str = "close"  # or "reset" (few bytes only: it drops those not yet sent), or "stall" until `release`
    length: str | None = ""  # Content-Length; None for none, "" for the right one
    more: dict[str, str] = field(default_factory=dict)  # other headers


@dataclass
class Server:
    """What a server does and has seen."""

    replies: tuple[Reply, ...]
    address: str = ""
    asked: list[dict[str, str]] = field(default_factory=list)  # headers of each request
    stalled: threading.Event = field(default_factory=threading.Event)
    release: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return f"{self.address}/deu-eng.zip"


class Handler(BaseHTTPRequestHandler):
    state: Server

    def do_GET(self) -> None:
        state = self.state
        with state.lock:
            number = len(state.asked)
            state.asked.append(dict(self.headers))
        reply = state.replies[min(number, len(state.replies) - 1)]
        if reply.status >= 400:
            self.send_error(reply.status, reply.reason)
            return
        self.send_response(reply.status)
        if reply.length is not None:
            self.send_header("Content-Length", reply.length or str(len(reply.body)))
        for name, value in reply.more.items():
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(ConnectionError):  # the client may disconnect
            self.wfile.write(reply.body[: reply.send])
        if reply.end == "stall":
            state.stalled.set()
            state.release.wait(30)
        elif reply.end == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def log_message(self, format: str, *args: object) -> None:
        pass


class Listener(ThreadingHTTPServer):
    daemon_threads = False  # closing waits until every reply is counted

    def shutdown_request(self, request: object) -> None:
        self.close_request(request)  # no orderly end before a reset


@contextlib.contextmanager
def serving(*replies: Reply) -> Iterator[Server]:
    """A server that answers the n-th request with the n-th reply, and with the last one from then on."""
    state = Server(replies or (Reply(),))
    with Listener(("127.0.0.1", 0), type("OneHandler", (Handler,), {"state": state})) as server:
        state.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield state
        finally:
            state.release.set()
            server.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(download, "PAUSE", 0.0)


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir()) if directory.exists() else []


def made_here(directory: Path) -> Path:
    """A new file with the usual permissions."""
    (directory / "new").touch()
    return directory / "new"


def telling(say: Callable[[str], object], act: Callable[[], list[Path]]) -> list[Path]:
    """What an action returns; its messages are passed to `say` while it runs."""
    handler = logging.Handler()
    handler.emit = lambda record: say(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("nmt")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        return act()
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)


def refusal(url: str, directory: Path) -> str:
    with pytest.raises(DataError) as caught:
        resolve_sources([url], directory)
    message = str(caught.value)
    assert message.startswith(f"{url}: cannot be downloaded (")
    assert message.endswith("give the file with --source PATH")
    assert "\n" not in message
    return message


def in_another_process(url: str, directory: Path, before: str = "") -> "subprocess.Popen[str]":
    program = (
        f"import sys; from pathlib import Path; from nmt.corpus.download import resolve_sources\n{before}\n"
        "try: resolve_sources([sys.argv[1]], Path(sys.argv[2]))\n"
        "except Exception as error: sys.exit(f'{type(error).__name__} {error}')\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", program, url, str(directory)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_url_is_downloaded_once(tmp_path: Path) -> None:
    said: list[str] = []
    raw = tmp_path / "data" / "raw"
    with serving() as server:
        url = f"{server.address}/deu%2Deng.zip?version=1"
        paths = telling(said.append, lambda: resolve_sources([url, "local/a.txt"], raw))
        assert paths == [raw / "deu-eng.zip", Path("local/a.txt")]
        assert paths[0].read_bytes() == BODY
        assert names(raw) == ["deu-eng.zip"]
        assert telling(said.append, lambda: resolve_sources([url], raw)) == paths[:1]
    assert [(headers["User-Agent"], headers["Accept-Encoding"]) for headers in server.asked] == [
        (f"nmt/{__version__} (neural machine translation trainer)", "identity")
    ]
    assert paths[0].stat().st_mode == made_here(tmp_path).stat().st_mode
    assert said == [
        f"Downloading {url} (200.1 kB) to {raw / 'deu-eng.zip'}",
        f"Using {raw / 'deu-eng.zip'}, downloaded earlier (delete it to download it again)",
    ]


def test_a_size_may_be_unknown(tmp_path: Path) -> None:
    said: list[str] = []
    with serving(Reply(length=None)) as server:
        (path,) = telling(said.append, lambda: resolve_sources([server.url], tmp_path))
    assert path.read_bytes() == BODY
    assert "(size unknown)" in said[0]


def test_local_paths_need_no_folder(tmp_path: Path) -> None:
    assert resolve_sources(["a.en", "b/a.de"], tmp_path / "raw") == [Path("a.en"), Path("b/a.de")]
    assert not (tmp_path / "raw").exists()


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ("close", "30,000 of 200,112 bytes arrived"),
        ("stall", "timed out"),
        ("reset", "reset by peer"),
    ],
)
def test_a_failed_transfer_is_retried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, reason: str) -> None:
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        if len(said) > 1:
            monkeypatch.setattr(download, "TIMEOUT", 30.0)

    monkeypatch.setattr(download, "TIMEOUT", 2.0 if end == "stall" else 30.0)
    with serving(Reply(send=30_000, end=end), Reply(status=503), Reply()) as server:
        (path,) = telling(say, lambda: resolve_sources([server.url], tmp_path))
    assert path.read_bytes() == BODY
    assert names(tmp_path) == ["deu-eng.zip"]
    first, broken, busy, again = said
    assert first == again == f"Downloading {server.url} (200.1 kB) to {path}"
    assert broken.startswith(f"{server.url}: ")
    assert reason in broken
    assert broken.endswith("; attempt 2 of 4 in 0 s")
    assert busy == f"{server.url}: HTTP 503 Service Unavailable; attempt 3 of 4 in 0 s"


def test_a_transfer_that_always_fails_leaves_nothing(tmp_path: Path) -> None:
    with serving(Reply(send=10_000)) as server:
        message = refusal(server.url, tmp_path)
        assert "(10,000 of 200,112 bytes arrived, attempt 4 of 4); run the command again later, or" in message
    assert len(server.asked) == 4
    assert names(tmp_path) == []


def test_a_failed_transfer_of_unknown_size(tmp_path: Path) -> None:
    """Sent in pieces, each with its size; the last one, of size 0, never comes."""
    chunked = Reply(body=b"5\r\nHallo\r\n", length=None, more={"Transfer-Encoding": "chunked"})
    with serving(chunked) as server:
        assert "attempt 4 of 4" in refusal(f"{server.address}/a.txt", tmp_path)
    assert names(tmp_path) == []


def test_a_compressed_file_is_stored_unchanged_whatever_its_encoding(tmp_path: Path) -> None:
    """Many servers say of a .gz file that it is a text that was packed for the way."""
    body = gzip.compress(b"Hallo\tHello\n")
    with serving(Reply(body=body, more={"Content-Encoding": "gzip", "Content-Type": "text/plain"})) as server:
        (path,) = resolve_sources([f"{server.address}/a.tsv.gz"], tmp_path)
    assert path.read_bytes() == body


def test_a_file_that_has_moved_is_followed(tmp_path: Path) -> None:
    said: list[str] = []
    moved = Reply(status=302, body=b"over there", more={"Location": "/elsewhere"})
    with serving(moved, Reply()) as server:
        (path,) = telling(said.append, lambda: resolve_sources([server.url], tmp_path))
    assert path.read_bytes() == BODY
    assert path.name == "deu-eng.zip"
    assert said == [f"Downloading {server.url} (200.1 kB) to {path}"]
    assert server.asked[0]["User-Agent"] == server.asked[1]["User-Agent"]


@pytest.mark.parametrize("place", ["file:///etc/passwd", "ftp://127.0.0.1:1/a.zip"])
def test_redirects_to_local_files_are_refused(tmp_path: Path, place: str) -> None:
    with serving(Reply(status=302, body=b"", more={"Location": place})) as server:
        assert place in refusal(server.url, tmp_path)
    assert len(server.asked) == 1
    assert names(tmp_path) == []


def test_a_server_that_is_always_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "TIMEOUT", 0.2)
    with serving(Reply(send=0, end="stall")) as server:
        assert "timed out, attempt 4 of 4" in refusal(server.url, tmp_path)


@pytest.mark.parametrize(
    ("status", "requests", "reason"),
    [
        (401, 1, "(HTTP 401 Unauthorized); download it yourself and"),
        (403, 1, "(HTTP 403 Forbidden); the server refuses automatic downloads: fetch it with a browser"),
        (404, 1, "(HTTP 404 Not Found); the file may have moved"),
        (406, 1, "(HTTP 406 Not Acceptable); the server refuses automatic downloads: fetch it with a browser"),
        (410, 1, "(HTTP 410 Gone); the file may have moved"),
        (416, 1, "HTTP 416"),
        (429, 4, "(HTTP 429 Too Many Requests, attempt 4 of 4); run the command again later"),
        (500, 4, "HTTP 500"),
        (502, 4, "HTTP 502"),
        (503, 4, "HTTP 503"),
        (504, 4, "HTTP 504"),
    ],
)
def test_a_refusal_leaves_nothing_and_has_advice(tmp_path: Path, status: int, requests: int, reason: str) -> None:
    with serving(Reply(status=status)) as server:
        assert reason in refusal(server.url, tmp_path / "raw")
    assert len(server.asked) == requests
    assert names(tmp_path / "raw") == []


def test_a_long_reason_is_shortened(tmp_path: Path) -> None:
    with serving(Reply(status=404, reason="\x1b[2J" * 10_000)) as server:
        message = refusal(server.url, tmp_path)
    assert "(HTTP 404 \\x1b[2J\\x1b[2J" in message
    assert "...); the file may have moved" in message
    assert message.isprintable()
    assert len(message) < 600


def test_connection_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(download, "PAUSE", 2.0)
    monkeypatch.setattr(download.time, "sleep", pauses.append)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert "refused, attempt 4 of 4" in refusal(f"http://127.0.0.1:{port}/deu-eng.zip", tmp_path / "raw")
    assert pauses == [2.0, 4.0, 6.0]


@pytest.mark.parametrize("name", ["/", "/?file=deu-eng.zip", "/..", "/a/%2e%2e", "/a%00.zip", "/a%1b.zip", "/a%0a.zip"])
def test_a_url_without_a_file_name(tmp_path: Path, name: str) -> None:
    assert "has no file name" in refusal(f"http://127.0.0.1:1{name}", tmp_path)


@pytest.mark.parametrize("url", ["ftp://example.org/a.zip", "S3://bucket/a.zip"])
def test_other_schemes_are_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(DataError, match="is not supported; download it yourself"):
        resolve_sources([url], tmp_path)


@pytest.mark.parametrize("url", ["http://127.0.0.1:port/a.zip", "http://[::1/a.zip"])
def test_a_malformed_url(tmp_path: Path, url: str) -> None:
    refusal(url, tmp_path / "raw")
    assert names(tmp_path / "raw") == []


def test_a_malformed_length(tmp_path: Path) -> None:
    with serving(Reply(length="lots")) as server:
        assert "the length 'lots'" in refusal(server.url, tmp_path)
    assert len(server.asked) == 1
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "body", "problem"),
    [
        ("a.zip", b"nonsense" * 100, "corrupt and was deleted: File is not a zip file"),
        ("a.zip", BAD_CRC, "corrupt and was deleted: bad checksum of 'deu.txt'"),
        ("a.zip", BODY[:150_000], "corrupt and was deleted: File is not a zip file"),
        ("a.zip", b"", "corrupt"),
        ("a.txt.gz", gzip.compress(BODY)[:-9], "corrupt and was deleted: Compressed file ended before"),
        ("a.txt.gz", b"nonsense", "corrupt and was deleted: Not a gzipped file"),
        ("a.txt.bz2", bz2.compress(BODY)[:-9], "corrupt and was deleted: Compressed file ended before"),
        ("a.txt.bz2", b"nonsense", "corrupt and was deleted: Invalid data stream"),
        ("a.txt.XZ", lzma.compress(BODY)[:-9], "corrupt and was deleted: Compressed file ended before"),
        ("a.txt.xz", b"nonsense", "corrupt and was deleted: Input format not supported"),
        ("a.zip", PAGE, "the server sent an HTML page"),
        ("a.tsv", PAGE, "the server sent an HTML page"),
    ],
)
def test_a_bad_file_is_named_and_not_kept(tmp_path: Path, name: str, body: bytes, problem: str) -> None:
    with serving(Reply(body=body, length=None)) as server:  # without a length only the content can tell
        assert problem in refusal(f"{server.address}/{name}", tmp_path)
    assert len(server.asked) == 1
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("a.gz", gzip.compress(BODY)),
        ("a.bz2", bz2.compress(BODY)),
        ("a.XZ", lzma.compress(BODY)),
        ("a.tsv", b"Hallo\tHello\n"),
        ("empty.txt", b""),
    ],
)
def test_a_good_file_is_stored_unchanged(tmp_path: Path, name: str, body: bytes) -> None:
    with serving(Reply(body=body)) as server:
        (path,) = resolve_sources([f"{server.address}/{name}"], tmp_path)
    assert path.read_bytes() == body


@pytest.mark.parametrize("length", ["", None])
def test_a_progress_bar_counts_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: str | None) -> None:
    bars: list[tuple[float, float | None]] = []

    class Watched(progress.tqdm):
        def __init__(self, **options: Any) -> None:
            super().__init__(**{**options, "disable": False, "file": io.StringIO()})

        def close(self) -> None:
            bars.append((self.n, self.total))
            super().close()

    monkeypatch.setattr(progress, "tqdm", Watched)
    with serving(Reply(length=length)) as server:
        resolve_sources([server.url], tmp_path)
    assert bars[0] == (SIZE, SIZE if length == "" else None)


def test_an_interrupted_download_leaves_nothing(tmp_path: Path) -> None:
    def say(line: str) -> None:
        raise KeyboardInterrupt

    with serving() as server, pytest.raises(KeyboardInterrupt):
        telling(say, lambda: resolve_sources([server.url], tmp_path))
    assert names(tmp_path) == []


def test_a_killed_download_leaves_no_file_and_is_repeated(tmp_path: Path) -> None:
    part = tmp_path / "deu-eng.zip.part"
    with serving(Reply(send=120_000, end="stall"), Reply()) as server:
        with in_another_process(server.url, tmp_path) as process:
            while process.poll() is None and not (part.exists() and part.stat().st_size):
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
        assert 0 < part.stat().st_size <= 120_000
        assert not (tmp_path / "deu-eng.zip").exists()
        (path,) = resolve_sources([server.url], tmp_path)
    assert path.read_bytes() == BODY
    assert names(tmp_path) == ["deu-eng.zip"]


def test_of_two_processes_one_downloads_and_the_other_waits(tmp_path: Path) -> None:
    said: list[str] = []
    path = tmp_path / "deu-eng.zip"

    def say(line: str) -> None:
        said.append(line)
        server.release.set()

    with serving(Reply(end="stall", length=None)) as server, in_another_process(server.url, tmp_path) as process:
        assert server.stalled.wait(30)
        assert telling(say, lambda: resolve_sources([server.url], tmp_path)) == [path]
        assert process.wait(30) == 0
    assert path.read_bytes() == BODY
    assert names(tmp_path) == ["deu-eng.zip"]
    assert len(server.asked) == 1
    assert said == [
        f"Waiting for another process to download {path}",
        f"Using {path}, downloaded earlier (delete it to download it again)",
    ]


def test_a_waiting_process_downloads_what_the_other_could_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "ATTEMPTS", 1)
    refused: list[str] = []
    with serving(Reply(send=120_000, end="stall"), Reply()) as server:
        thread = threading.Thread(target=lambda: refused.append(refusal(server.url, tmp_path)))
        thread.start()
        assert server.stalled.wait(30)
        (path,) = telling(lambda line: server.release.set(), lambda: resolve_sources([server.url], tmp_path))
        thread.join()
    assert "120,000 of 200,112 bytes arrived" in refused[0]
    assert path.read_bytes() == BODY
    assert names(tmp_path) == ["deu-eng.zip"]


def test_many_at_once_download_once(tmp_path: Path) -> None:
    bodies: list[bytes] = []
    together = threading.Barrier(8)

    def one() -> None:
        together.wait()
        (path,) = resolve_sources([server.url], tmp_path)
        bodies.append(path.read_bytes())

    with serving() as server:
        threads = [threading.Thread(target=one) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert bodies == [BODY] * 8
    assert len(server.asked) == 1
    assert names(tmp_path) == ["deu-eng.zip"]


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "raw").write_text("a file")
    with serving() as server, pytest.raises(DataError) as caught:
        resolve_sources([server.url], tmp_path / "raw")
    assert str(caught.value).startswith(f"{tmp_path / 'raw'}: cannot be written (File exists); check the folder")
    assert server.asked == []


def test_a_full_disk(tmp_path: Path) -> None:
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))"
    with serving() as server, in_another_process(server.url, tmp_path, limit) as process:
        _, errors = process.communicate()
    part = tmp_path / "deu-eng.zip.part"
    assert errors.startswith(f"DataError {part}: cannot be written (File too large); check the folder")
    assert len(server.asked) == 1
    assert names(tmp_path) == []


def test_two_urls_with_one_file_name_are_not_confused(tmp_path: Path) -> None:
    with serving(Reply(body=gzip.compress(b"a"))) as server, pytest.raises(DataError, match="under different names"):
        resolve_sources([f"{server.address}/train/en.gz", f"{server.address}/valid/en.gz"], tmp_path)


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1_500, "1.5 kB"), (9_200_000, "9.2 MB"), (1_250_000_000, "1.2 GB")],
)
def test_sizes_are_readable(size: int, text: str) -> None:
    assert download._readable_size(size) == text
