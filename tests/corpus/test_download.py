import contextlib
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from nmt import __version__
from nmt.corpus import download
from nmt.corpus.download import resolve_sources
from nmt.errors import DataError

BODY = bytes(range(256)) * 400  # 102,400 bytes: more than one block


class Handler(BaseHTTPRequestHandler):
    agents: list[str]
    release: threading.Event

    def do_GET(self) -> None:
        self.agents.append(self.headers["User-Agent"])
        if self.path == "/missing.zip":
            self.send_error(404)
            return
        self.send_response(200)
        if self.path != "/unsized.zip":
            self.send_header("Content-Length", "lots" if self.path == "/odd.zip" else str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY[:70_000] if self.path in ("/short.zip", "/slow.zip") else BODY)
        if self.path == "/slow.zip":
            self.release.wait(20)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextlib.contextmanager
def serving() -> Iterator[tuple[str, type[Handler]]]:
    handler = type("OneHandler", (Handler,), {"agents": [], "release": threading.Event()})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", handler
        finally:
            handler.release.set()
            server.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def refusal(url: str, directory: Path) -> str:
    with pytest.raises(DataError) as caught:
        resolve_sources([url], directory, lambda line: None)
    message = str(caught.value)
    assert message.startswith(f"{url}: cannot be downloaded (")
    assert message.endswith("); download it yourself and give the file with --source PATH")
    assert not directory.exists() or list(directory.iterdir()) == []
    return message


def test_a_url_is_downloaded_once(tmp_path: Path) -> None:
    said: list[str] = []
    raw = tmp_path / "data" / "raw"
    with serving() as (address, handler):
        url = f"{address}/deu%2Deng.zip?version=1"
        paths = resolve_sources([url, "local/a.txt"], raw, said.append)
        assert paths == [raw / "deu-eng.zip", Path("local/a.txt")]
        assert paths[0].read_bytes() == BODY
        assert [path.name for path in raw.iterdir()] == ["deu-eng.zip"]
        assert resolve_sources([url], raw, said.append) == paths[:1]
    assert handler.agents == [f"nmt/{__version__} (neural machine translation trainer; python-urllib)"]
    assert said == [
        f"Downloading {url} (102.4 kB) to {raw / 'deu-eng.zip'}",
        f"Using {raw / 'deu-eng.zip'}, downloaded before (delete it to download it again)",
    ]


def test_a_size_may_be_unknown(tmp_path: Path) -> None:
    said: list[str] = []
    with serving() as (address, _):
        (path,) = resolve_sources([f"{address}/unsized.zip"], tmp_path, said.append)
    assert path.read_bytes() == BODY
    assert "(size unknown)" in said[0]


def test_local_paths_need_no_folder(tmp_path: Path) -> None:
    assert resolve_sources(["a.en", "b/a.de"], tmp_path / "raw", print) == [Path("a.en"), Path("b/a.de")]
    assert not (tmp_path / "raw").exists()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing.zip", "HTTP 404 Not Found"),
        ("short.zip", "only 70,000 of 102,400 bytes arrived"),
        ("odd.zip", "lots"),
        ("", "names no file"),
    ],
)
def test_a_failed_download_leaves_nothing_and_says_what_to_do(tmp_path: Path, name: str, reason: str) -> None:
    with serving() as (address, _):
        assert reason in refusal(f"{address}/{name}", tmp_path / "raw")


def test_nobody_listens(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert "refused" in refusal(f"http://127.0.0.1:{port}/deu-eng.zip", tmp_path / "raw")


def test_a_server_that_falls_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "TIMEOUT", 0.3)
    with serving() as (address, _):
        assert "timed out" in refusal(f"{address}/slow.zip", tmp_path / "raw")


@pytest.mark.parametrize("url", ["http://127.0.0.1:port/a.zip", "http://[::1/a.zip"])
def test_a_malformed_url(tmp_path: Path, url: str) -> None:
    refusal(url, tmp_path / "raw")


def test_an_interrupt_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(download.tqdm):
        def update(self, n: float | None = 1) -> bool | None:
            assert (tmp_path / "deu-eng.zip.part").exists()
            raise KeyboardInterrupt

    monkeypatch.setattr(download, "tqdm", Interrupted)
    with serving() as (address, _), pytest.raises(KeyboardInterrupt):
        resolve_sources([f"{address}/deu-eng.zip"], tmp_path, print)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "raw").write_text("a file")
    with serving() as (address, _), pytest.raises(DataError, match="--source PATH"):
        resolve_sources([f"{address}/deu-eng.zip"], tmp_path / "raw", print)


def test_two_urls_with_one_file_name_are_not_confused(tmp_path: Path) -> None:
    with serving() as (address, _), pytest.raises(DataError, match="under different names"):
        resolve_sources([f"{address}/train/en.gz", f"{address}/valid/en.gz"], tmp_path, print)


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1_500, "1.5 kB"), (9_200_000, "9.2 MB"), (1_250_000_000, "1.2 GB")],
)
def test_sizes_are_readable(size: int, text: str) -> None:
    assert download._readable_size(size) == text
