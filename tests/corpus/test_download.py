import bz2
import contextlib
import gzip
import io
import json
import lzma
import random
import re
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

import pytest

from nmt import __version__
from nmt.corpus import download
from nmt.corpus.download import resolve_sources
from nmt.errors import DataError

DATE = "Mon, 06 Jul 2020 10:00:00 GMT"
PAGE = b"\n<!DOCTYPE html><html><body>Please log in to the network.</body></html>"


def zipped(seed: int) -> bytes:
    """An archive of 200,112 bytes: 200,000 that do not compress, and zip's headers."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo("deu.txt"), random.Random(seed).randbytes(200_000))
    return buffer.getvalue()


BODY, OTHER_BODY = zipped(1), zipped(2)
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
    etag: str | None = '"1"'
    modified: str | None = None
    resumes: bool = True  # honours Range
    compares: bool = True  # honours If-Range
    content_range: str | None = None  # sent instead of the right one
    length: str | None = ""  # Content-Length; None for none, "" for the right one


@dataclass
class Server:
    """What a server does and has seen."""

    replies: tuple[Reply, ...]
    address: str = ""
    asked: list[dict[str, str]] = field(default_factory=list)  # headers of each request
    sent: list[int] = field(default_factory=list)  # bytes of body for each request
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
            state.sent.append(0)
        reply = state.replies[min(number, len(state.replies) - 1)]
        if reply.status != 200:
            self.send_error(reply.status, reply.reason)
            return
        start = 0
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if asked and reply.resumes and (not reply.compares or self.headers["If-Range"] in (reply.etag, reply.modified)):
            start = int(asked[1])
            self.send_response(206)
            right = f"bytes {start}-{len(reply.body) - 1}/{len(reply.body)}"
            self.send_header("Content-Range", reply.content_range or right)
        else:
            self.send_response(200)
        if reply.length is not None:
            self.send_header("Content-Length", reply.length or str(len(reply.body) - start))
        if reply.etag:
            self.send_header("ETag", reply.etag)
        if reply.modified:
            self.send_header("Last-Modified", reply.modified)
        self.end_headers()
        stop = len(reply.body) if reply.send is None else start + reply.send
        with contextlib.suppress(ConnectionError):  # whoever asked may leave
            self.wfile.write(reply.body[start:stop])
            state.sent[number] = len(reply.body[start:stop])
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


def refusal(url: str, directory: Path, say: Callable[[str], None] = lambda line: None) -> str:
    with pytest.raises(DataError) as caught:
        resolve_sources([url], directory, say)
    message = str(caught.value)
    assert message.startswith(f"{url}: cannot be downloaded (")
    assert message.endswith("give the file with --source PATH")
    assert "\n" not in message
    return message


def leave_part(directory: Path, body: bytes, origin: object) -> None:
    """What an earlier command left of deu-eng.zip."""
    (directory / "deu-eng.zip.part").write_bytes(body)
    (directory / "deu-eng.zip.part.json").write_text(origin if isinstance(origin, str) else json.dumps(origin))


def in_another_process(url: str, directory: Path, before: str = "") -> "subprocess.Popen[str]":
    program = (
        f"import sys; from pathlib import Path; from nmt.corpus.download import resolve_sources\n{before}\n"
        "try: resolve_sources([sys.argv[1]], Path(sys.argv[2]), print)\n"
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
        paths = resolve_sources([url, "local/a.txt"], raw, said.append)
        assert paths == [raw / "deu-eng.zip", Path("local/a.txt")]
        assert paths[0].read_bytes() == BODY
        assert names(raw) == ["deu-eng.zip"]
        assert resolve_sources([url], raw, said.append) == paths[:1]
    assert [headers["User-Agent"] for headers in server.asked] == [
        f"nmt/{__version__} (neural machine translation trainer; python-urllib)"
    ]
    assert said == [
        f"Downloading {url} (200.1 kB) to {raw / 'deu-eng.zip'}",
        f"Using {raw / 'deu-eng.zip'}, downloaded before (delete it to download it again)",
    ]


def test_a_size_may_be_unknown(tmp_path: Path) -> None:
    said: list[str] = []
    with serving(Reply(length=None)) as server:
        (path,) = resolve_sources([server.url], tmp_path, said.append)
    assert path.read_bytes() == BODY
    assert "(size unknown)" in said[0]


def test_local_paths_need_no_folder(tmp_path: Path) -> None:
    assert resolve_sources(["a.en", "b/a.de"], tmp_path / "raw", print) == [Path("a.en"), Path("b/a.de")]
    assert not (tmp_path / "raw").exists()


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ("close", "30,000 of 200,112 bytes arrived"),
        ("stall", "timed out"),
        ("reset", "reset by peer"),
    ],
)
def test_a_transfer_that_breaks_off_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, reason: str
) -> None:
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        monkeypatch.setattr(download, "TIMEOUT", 30.0)

    monkeypatch.setattr(download, "TIMEOUT", 2.0 if end == "stall" else 30.0)
    with serving(Reply(send=30_000, end=end), Reply()) as server:
        (path,) = resolve_sources([server.url], tmp_path, say)
    assert path.read_bytes() == BODY
    assert names(tmp_path) == ["deu-eng.zip"]
    assert [headers.get("Range") for headers in server.asked] == [None, "bytes=30000-"]
    assert server.asked[1]["If-Range"] == '"1"'
    assert server.sent == [30_000, SIZE - 30_000]
    first, broken, resumed = said
    assert first == f"Downloading {server.url} (200.1 kB) to {path}"
    assert broken.startswith(f"{server.url}: ")
    assert reason in broken
    assert broken.endswith("; attempt 2 of 4 follows in 0 s")
    assert resumed == f"{first}, resuming at 30.0 kB of 200.1 kB"


@pytest.mark.parametrize(
    ("etag", "modified", "condition"),
    [
        ('"1"', None, '"1"'),
        ('"1"', DATE, '"1"'),
        ('W/"1"', DATE, DATE),
        (None, DATE, DATE),
        ('W/"1"', None, None),
        (None, None, None),
    ],
)
def test_only_a_file_known_to_be_the_same_is_resumed(
    tmp_path: Path, etag: str | None, modified: str | None, condition: str | None
) -> None:
    said: list[str] = []
    replies = Reply(send=120_000, etag=etag, modified=modified), Reply(etag=etag, modified=modified)
    with serving(*replies) as server:
        (path,) = resolve_sources([server.url], tmp_path, said.append)
    assert path.read_bytes() == BODY
    assert server.asked[1].get("If-Range") == condition
    assert server.asked[1].get("Range") == (condition and "bytes=120000-")
    assert server.sent == [120_000, SIZE - 120_000 if condition else SIZE]
    assert ("resuming" if condition else "from its start: the 120.0 kB that came before cannot be resumed") in said[2]


@pytest.mark.parametrize(
    ("reply", "body", "requests"),
    [
        pytest.param(Reply(resumes=False), BODY, 2, id="Range is ignored"),
        pytest.param(Reply(body=OTHER_BODY, etag='"2"'), OTHER_BODY, 2, id="new version, If-Range honoured"),
        pytest.param(Reply(body=OTHER_BODY, etag='"2"', compares=False), OTHER_BODY, 3, id="If-Range ignored"),
        pytest.param(Reply(content_range=f"bytes 0-{SIZE - 1}/{SIZE}"), BODY, 3, id="wrong start"),
        pytest.param(Reply(content_range=f"bytes 120000-{SIZE}/{SIZE + 1}"), BODY, 3, id="wrong total"),
        pytest.param(Reply(content_range="all of it"), BODY, 3, id="unreadable Content-Range"),
        pytest.param(Reply(status=416), BODY, 3, id="416"),
    ],
)
def test_what_cannot_be_resumed_starts_again(tmp_path: Path, reply: Reply, body: bytes, requests: int) -> None:
    last = Reply(body=body, etag=reply.etag)
    with serving(Reply(send=120_000), reply, last) as server:
        (path,) = resolve_sources([server.url], tmp_path, print)
    assert path.read_bytes() == body
    assert names(tmp_path) == ["deu-eng.zip"]
    assert [headers.get("Range") for headers in server.asked] == [None, "bytes=120000-", None][:requests]


def test_a_transfer_that_always_breaks_off_fails_and_keeps_what_came(tmp_path: Path) -> None:
    said: list[str] = []
    with serving(Reply(send=10_000)) as server:
        message = refusal(server.url, tmp_path, said.append)
        assert "(40,000 of 200,112 bytes arrived, at attempt 4 of 4); run the command again later, or" in message
        assert (tmp_path / "deu-eng.zip.part").read_bytes() == BODY[:40_000]
        assert names(tmp_path) == ["deu-eng.zip.part", "deu-eng.zip.part.json"]
        server.replies = (Reply(),)
        (path,) = resolve_sources([server.url], tmp_path, said.append)
    assert path.read_bytes() == BODY
    assert server.sent == [10_000] * 4 + [SIZE - 40_000]
    assert said[-1].endswith("resuming at 40.0 kB of 200.1 kB")


def test_a_server_that_is_always_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "TIMEOUT", 0.2)
    with serving(Reply(send=0, end="stall")) as server:
        assert "timed out, at attempt 4 of 4" in refusal(server.url, tmp_path)


@pytest.mark.parametrize(
    ("status", "requests", "reason"),
    [
        (401, 1, "(HTTP 401 Unauthorized); download it yourself and"),
        (403, 1, "(HTTP 403 Forbidden); the server refuses automatic downloads: fetch it with a browser"),
        (404, 1, "(HTTP 404 Not Found); the file may have moved"),
        (406, 1, "(HTTP 406 Not Acceptable); the server refuses automatic downloads: fetch it with a browser"),
        (410, 1, "(HTTP 410 Gone); the file may have moved"),
        (416, 4, "HTTP 416"),
        (429, 4, "(HTTP 429 Too Many Requests, at attempt 4 of 4); run the command again later"),
        (500, 4, "HTTP 500"),
        (502, 4, "HTTP 502"),
        (503, 4, "HTTP 503"),
        (504, 4, "HTTP 504"),
    ],
)
def test_a_refusal_leaves_nothing_and_says_what_to_do(tmp_path: Path, status: int, requests: int, reason: str) -> None:
    with serving(Reply(status=status)) as server:
        assert reason in refusal(server.url, tmp_path / "raw")
    assert len(server.asked) == requests
    assert names(tmp_path / "raw") == []


def test_a_server_that_talks_much(tmp_path: Path) -> None:
    with serving(Reply(status=404, reason="\x1b[2J" * 10_000)) as server:
        message = refusal(server.url, tmp_path)
    assert "(HTTP 404 \\x1b[2J\\x1b[2J" in message
    assert "...); the file may have moved" in message
    assert message.isprintable()
    assert len(message) < 600


def test_a_busy_server_is_asked_again_for_the_rest(tmp_path: Path) -> None:
    busy = Reply(status=503)
    with serving(busy, Reply(send=120_000), busy, Reply()) as server:
        (path,) = resolve_sources([server.url], tmp_path, print)
    assert path.read_bytes() == BODY
    assert server.sent == [0, 120_000, 0, SIZE - 120_000]


def test_nobody_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(download, "PAUSE", 2.0)
    monkeypatch.setattr(download.time, "sleep", pauses.append)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert "refused, at attempt 4 of 4" in refusal(f"http://127.0.0.1:{port}/deu-eng.zip", tmp_path / "raw")
    assert pauses == [2.0, 4.0, 6.0]


@pytest.mark.parametrize("name", ["/", "/?file=deu-eng.zip", "/..", "/a/%2e%2e", "/a%00.zip", "/a%1b.zip", "/a%0a.zip"])
def test_a_url_without_a_file(tmp_path: Path, name: str) -> None:
    assert "names no file" in refusal(f"http://127.0.0.1:1{name}", tmp_path)


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


def test_after_a_bad_file_the_next_command_starts_from_nothing(tmp_path: Path) -> None:
    with serving(Reply(body=BAD_CRC), Reply()) as server:
        assert "bad checksum" in refusal(server.url, tmp_path)
        (path,) = resolve_sources([server.url], tmp_path, print)
    assert path.read_bytes() == BODY
    assert "Range" not in server.asked[1]


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
def test_a_good_file_is_stored_as_it_came(tmp_path: Path, name: str, body: bytes) -> None:
    with serving(Reply(body=body)) as server:
        (path,) = resolve_sources([f"{server.address}/{name}"], tmp_path, print)
    assert path.read_bytes() == body


def test_an_interrupted_download_goes_on_in_the_next_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    positions: list[tuple[float, float | None]] = []

    class Interrupted(download.tqdm):
        def update(self, n: float | None = 1) -> bool | None:
            raise KeyboardInterrupt

    class Watched(download.tqdm):
        def __enter__(self) -> "Watched":
            positions.append((self.n, self.total))
            return self

    with serving() as server:
        monkeypatch.setattr(download, "tqdm", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            resolve_sources([server.url], tmp_path, said.append)
        assert names(tmp_path) == ["deu-eng.zip.part", "deu-eng.zip.part.json"]
        arrived = (tmp_path / "deu-eng.zip.part").stat().st_size
        assert 0 < arrived < SIZE
        monkeypatch.setattr(download, "tqdm", Watched)
        (path,) = resolve_sources([server.url], tmp_path, said.append)
    assert path.read_bytes() == BODY
    assert names(tmp_path) == ["deu-eng.zip"]
    assert server.asked[1]["Range"] == f"bytes={arrived}-"
    assert server.sent[1] == SIZE - arrived
    assert positions == [(arrived, SIZE)]
    assert f"resuming at {download._readable_size(arrived)} of 200.1 kB" in said[-1]


def test_a_killed_download_goes_on_in_the_next_command(tmp_path: Path) -> None:
    part = tmp_path / "deu-eng.zip.part"
    with serving(Reply(send=120_000, end="stall"), Reply()) as server:
        with in_another_process(server.url, tmp_path) as process:
            while process.poll() is None and not (part.exists() and part.stat().st_size):
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
        arrived = part.stat().st_size
        assert 0 < arrived <= 120_000
        (path,) = resolve_sources([server.url], tmp_path, print)
    assert path.read_bytes() == BODY
    assert names(tmp_path) == ["deu-eng.zip"]
    assert server.sent[1] == SIZE - arrived


@pytest.mark.parametrize(
    ("body", "change"),
    [
        (BODY[:50_000], {"url": "http://elsewhere.example/deu-eng.zip"}),
        (BODY[:50_000], {"validator": None}),
        (BODY[:50_000], {"total": None}),
        (BODY[:50_000], {"unknown": 1}),
        (BODY + b"more", {}),
        (b"", {}),
        (BODY[:50_000], "half a li"),
        (BODY[:50_000], "[1]"),
    ],
)
def test_a_part_of_doubtful_origin_is_not_used(tmp_path: Path, body: bytes, change: dict[str, object] | str) -> None:
    with serving() as server:
        origin = {"url": server.url, "validator": '"1"', "total": SIZE}
        leave_part(tmp_path, body, change if isinstance(change, str) else origin | change)
        (path,) = resolve_sources([server.url], tmp_path, print)
    assert path.read_bytes() == BODY
    assert "Range" not in server.asked[0]
    assert names(tmp_path) == ["deu-eng.zip"]


def test_a_complete_part_needs_no_server(tmp_path: Path) -> None:
    said: list[str] = []
    with serving() as server:
        leave_part(tmp_path, BODY, {"url": server.url, "validator": '"1"', "total": SIZE})
        (path,) = resolve_sources([server.url], tmp_path, said.append)
    assert path.read_bytes() == BODY
    assert server.asked == []
    assert said == [f"Using {path}.part, which is complete: 200.1 kB of {server.url}"]


def test_of_two_processes_one_downloads_and_the_other_waits(tmp_path: Path) -> None:
    said: list[str] = []
    path = tmp_path / "deu-eng.zip"

    def say(line: str) -> None:
        said.append(line)
        server.release.set()

    with serving(Reply(end="stall", length=None)) as server, in_another_process(server.url, tmp_path) as process:
        assert server.stalled.wait(30)
        assert resolve_sources([server.url], tmp_path, say) == [path]
        assert process.wait(30) == 0
    assert path.read_bytes() == BODY
    assert names(tmp_path) == ["deu-eng.zip"]
    assert len(server.asked) == 1
    assert said == [
        f"Waiting for another process, which downloads {path}",
        f"Using {path}, downloaded before (delete it to download it again)",
    ]


def test_whoever_waited_goes_on_where_the_other_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "ATTEMPTS", 1)
    refused: list[str] = []
    with serving(Reply(send=120_000, end="stall"), Reply()) as server:
        thread = threading.Thread(target=lambda: refused.append(refusal(server.url, tmp_path)))
        thread.start()
        assert server.stalled.wait(30)
        (path,) = resolve_sources([server.url], tmp_path, lambda line: server.release.set())
        thread.join()
    assert "120,000 of 200,112 bytes arrived" in refused[0]
    assert path.read_bytes() == BODY
    assert server.sent == [120_000, SIZE - 120_000]
    assert names(tmp_path) == ["deu-eng.zip"]


def test_many_at_once_download_once(tmp_path: Path) -> None:
    bodies: list[bytes] = []
    together = threading.Barrier(8)

    def one() -> None:
        together.wait()
        (path,) = resolve_sources([server.url], tmp_path, lambda line: None)
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
        resolve_sources([server.url], tmp_path / "raw", print)
    assert str(caught.value).startswith(f"{tmp_path / 'raw'}: cannot be written (File exists); see to the folder")
    assert server.asked == []


def test_a_full_disk(tmp_path: Path) -> None:
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))"
    with serving() as server:
        with in_another_process(server.url, tmp_path, limit) as process:
            _, errors = process.communicate()
        part = tmp_path / "deu-eng.zip.part"
        assert errors.startswith(f"DataError {part}: cannot be written (File too large); see to the folder")
        assert part.read_bytes() == BODY[:100_000]
        (path,) = resolve_sources([server.url], tmp_path, print)
    assert path.read_bytes() == BODY
    assert server.asked[1]["Range"] == "bytes=100000-"
    assert names(tmp_path) == ["deu-eng.zip"]


def test_two_urls_with_one_file_name_are_not_confused(tmp_path: Path) -> None:
    with serving(Reply(body=gzip.compress(b"a"))) as server, pytest.raises(DataError, match="under different names"):
        resolve_sources([f"{server.address}/train/en.gz", f"{server.address}/valid/en.gz"], tmp_path, print)


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1_500, "1.5 kB"), (9_200_000, "9.2 MB"), (1_250_000_000, "1.2 GB")],
)
def test_sizes_are_readable(size: int, text: str) -> None:
    assert download._readable_size(size) == text
