import contextlib
import gzip
import io
import logging
import random
import signal
import socket
import sys
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import processes
import pytest
from test_faults import file_size_limit

from nmt.corpus import download
from nmt.corpus.download import resolve_sources
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


@dataclass(frozen=True)
class Reply:
    """How the server answers one request."""

    status: int = 200
    reason: str | None = None  # of a status that is not 200; None for the usual words
    body: bytes = BODY
    send: int | None = None  # bytes of the body, then the connection ends; None sends all
    stall: bool = False  # rather wait for `release` before the connection ends
    length: str | None = ""  # Content-Length; None for none, "" for the right one
    more: dict[str, str] = field(default_factory=dict)  # other headers


class Server(ThreadingHTTPServer):
    """Answers the n-th request with the n-th reply, and with the last one from then on."""

    daemon_threads = False  # closing waits until every reply is counted

    def __init__(self, *replies: Reply) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.replies = replies or (Reply(),)
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.url = f"{self.address}/deu-eng.zip"
        self.asked: list[dict[str, str]] = []  # headers of each request
        self.stalled, self.release = threading.Event(), threading.Event()


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        state = self.server
        reply = state.replies[min(len(state.asked), len(state.replies) - 1)]
        state.asked.append(dict(self.headers))
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
        if reply.stall:
            state.stalled.set()
            state.release.wait(30)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextlib.contextmanager
def serving(*replies: Reply) -> Iterator[Server]:
    """A server in a thread."""
    with Server(*replies) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.release.set()
            server.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir()) if directory.exists() else []


def refusal(url: str, directory: Path) -> str:
    with pytest.raises(DataError) as caught:
        resolve_sources([url], directory)
    message = str(caught.value)
    assert message.startswith(f"{url}: cannot be downloaded (")
    assert message.endswith("give the file with `source='PATH'`")
    assert message.isprintable()
    assert len(message) < 600
    return message


def fetch(url: str, directory: Path) -> None:
    """What a process of its own does."""
    try:
        resolve_sources([url], directory)
    except OSError as error:
        sys.exit(f"{type(error).__name__} {error}")


def test_a_url_is_downloaded_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    raw = tmp_path / "data" / "raw"
    assert resolve_sources(["a.en", "b/a.de"], raw) == [Path("a.en"), Path("b/a.de")]
    assert not raw.exists()
    with serving() as server:
        url = f"{server.address}/deu%2Deng.zip?version=1"
        paths = resolve_sources([url, "local/a.txt"], raw)
        assert paths == [raw / "deu-eng.zip", Path("local/a.txt")]
        assert paths[0].read_bytes() == BODY
        assert names(raw) == ["deu-eng.zip"]
        assert resolve_sources([url], raw) == paths[:1]
    assert [(headers["User-Agent"], headers["Accept-Encoding"]) for headers in server.asked] == [
        (f"nmt/{__version__} (neural machine translation trainer)", "identity")
    ]
    (tmp_path / "new").touch()  # with the usual permissions
    assert paths[0].stat().st_mode == (tmp_path / "new").stat().st_mode
    assert caplog.messages == [
        f"Downloading {url} to {raw / 'deu-eng.zip'}",
        f"Using {raw / 'deu-eng.zip'}, downloaded earlier (delete it to download it again)",
    ]


CHUNKED = Reply(body=b"5\r\nHallo\r\n", length=None, more={"Transfer-Encoding": "chunked"})  # without a last piece


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(send=30_000), "30000 bytes read, 170112 more expected)); run the command again later, or"),
        (Reply(send=0, stall=True), "timed out); run the command again later, or"),
        (CHUNKED, "); run the command again later, or"),
        (Reply(status=401), "(HTTP 401 Unauthorized); download it yourself and"),
        (Reply(status=403), "(HTTP 403 Forbidden); the server refuses automatic downloads: fetch it with a browser"),
        (Reply(status=404), "(HTTP 404 Not Found); the file may have moved"),
        (Reply(status=404, reason="\x1b[2J" * 10_000), "(HTTP 404 \\x1b[2J\\x1b[2J"),
        (Reply(status=404, reason="x" * 10_000), "...); the file may have moved"),
        (Reply(status=429), "(HTTP 429 Too Many Requests); run the command again later"),
        (Reply(length="lots"), "lots"),
        (Reply(status=302, body=b"", more={"Location": "file:///etc/passwd"}), "file:///etc/passwd"),
        (Reply(body=PAGE), "(the server sent an HTML page); "),
        (Reply(body=PAGE, length=None), "(the server sent an HTML page); "),
    ],
)
def test_a_failure_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reply: Reply, reason: str) -> None:
    monkeypatch.setattr(download, "TIMEOUT", 0.5 if reply.stall else 30.0)
    with serving(reply) as server:
        assert reason in refusal(server.url, tmp_path / "raw")
    assert len(server.asked) == 1
    assert names(tmp_path / "raw") == []


def test_a_file_that_has_moved_is_followed_and_stored_unchanged_whatever_its_encoding(tmp_path: Path) -> None:
    body = gzip.compress(b"Hallo\tHello\n")
    moved = Reply(status=302, body=b"over there", more={"Location": "/elsewhere"})
    packed = Reply(body=body, length=None, more={"Content-Encoding": "gzip", "Content-Type": "text/plain"})
    with serving(moved, packed) as server:
        (path,) = resolve_sources([f"{server.address}/a.tsv.gz"], tmp_path)
    assert path.read_bytes() == body
    assert path.name == "a.tsv.gz"
    assert server.asked[0]["User-Agent"] == server.asked[1]["User-Agent"]


def test_connection_refused(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert "(Connection refused); run" in refusal(f"http://127.0.0.1:{port}/deu-eng.zip", tmp_path / "raw")


NO_NAME = "cannot be downloaded (the URL has no file name); download"
NAMELESS = ["/", "/?file=deu-eng.zip", "/..", "/a/%2e%2e", "/a%00.zip", "/a%1b.zip", "/a%0a.zip"]


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        *((f"http://127.0.0.1:1{name}", NO_NAME) for name in NAMELESS),
        ("ftp://example.org/a.zip", "ftp:// is not supported; download it yourself"),
        ("http://127.0.0.1:port/a.zip", "cannot be downloaded ("),
        ("http://[::1/a.zip", "cannot be downloaded ("),
    ],
)
def test_an_unusable_url(tmp_path: Path, url: str, reason: str) -> None:
    with pytest.raises(DataError) as caught:
        resolve_sources([url], tmp_path / "raw")
    assert str(caught.value).startswith(f"{url}: {reason}")
    assert str(caught.value).endswith("give the file with `source='PATH'`")
    assert names(tmp_path / "raw") == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_download_leaves_no_file_and_is_repeated(tmp_path: Path, number: int) -> None:
    with serving(Reply(send=120_000, stall=True), Reply()) as server:
        with processes.start(program=partial(fetch, server.url, tmp_path)) as process:
            assert server.stalled.wait(60)
            process.send_signal(number)
        assert not (tmp_path / "deu-eng.zip").exists()
        (path,) = resolve_sources([server.url], tmp_path)
    assert path.read_bytes() == BODY
    if number == signal.SIGINT:
        assert names(tmp_path) == ["deu-eng.zip"]


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "raw").write_text("a file")
    with serving() as server, pytest.raises(OSError, match="raw") as caught:
        resolve_sources([server.url], tmp_path / "raw")
    assert "\n" not in str(caught.value)
    assert server.asked == []


def test_a_full_disk(tmp_path: Path) -> None:
    with serving() as server, file_size_limit(100_000):
        done = processes.run(program=partial(fetch, server.url, tmp_path))
    assert done.stderr.strip() == f"OSError [Errno 27] File too large: '{tmp_path / 'deu-eng.zip'}'"
    assert len(server.asked) == 1
    assert names(tmp_path) == []


def test_two_urls_with_one_file_name_are_not_confused(tmp_path: Path) -> None:
    with serving(Reply(body=gzip.compress(b"a"))) as server, pytest.raises(DataError, match="under different names"):
        resolve_sources([f"{server.address}/train/en.gz", f"{server.address}/valid/en.gz"], tmp_path)
