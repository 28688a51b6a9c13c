"""The server: start, malformed requests, slow clients, stop."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
import torch
from conftest import Cli
from real_server import GOLDEN_MODEL, SENTENCES, Gated, golden, recording, serving, wait_until
from safetensors.torch import load_file, save_file

import nmt
import nmt.serving.serve
import nmt.serving.server
from nmt.serving import detection
from nmt.serving.server import bind
from nmt.translation.loading import LoadSettings

BODY = json.dumps({"q": "I am old.", "source": "en", "target": "de"}).encode()
JSON = {"Content-Type": "application/json"}
IMPATIENT = {"max_characters": 200, "body_seconds": 0.4, "idle_seconds": 0.4}


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    """A client of a server with short time limits."""
    with serving(limits=IMPATIENT) as found:
        yield found


def talk(
    client: httpx.Client, *parts: bytes, pause: float = 0.0, seconds: float = 10, enough: bytes | None = None
) -> bytes:
    """The server's reply to bytes, until it has what is enough, the server closes the connection or sends no more."""
    found = b""
    with (
        socket.create_connection((client.base_url.host, client.base_url.port or 80), timeout=seconds) as connection,
        contextlib.suppress(ConnectionError, TimeoutError),
    ):
        for part in parts:
            connection.sendall(part)
            time.sleep(pause)
        while chunk := connection.recv(1 << 16):
            found += chunk
            if enough is not None and enough in found:
                break
    return found


def error_of(reply: bytes) -> str:
    """The message in a reply."""
    (message,) = json.loads(reply.split(b"\r\n\r\n", 1)[1]).values()
    return str(message)


def head(length: int | None = None, more: str = "") -> bytes:
    size = "" if length is None else f"Content-Length: {length}\r\n"
    return f"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{size}{more}\r\n".encode()


def test_malformed_http_gets_an_error(client: httpx.Client) -> None:
    for sent in (b"GARBAGE\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", head(more="a\0b: c\r\n")):
        found = talk(client, sent)
        assert found.startswith(b"HTTP/1.1 400 ")


CHUNKED = "Transfer-Encoding: chunked\r\n"
HIDDEN = b"GET /languages HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


END = b"0\r\n\r\n"
LENGTHS = ("5, 6", "+5", "-5", "0x5", "5_0", "5 5", "", "9" * 30)
CODINGS = (
    *("chunked, chunked", "gzip, chunked", "chunked, identity", "identity", "gzip", "xchunked", "", "chunked;a"),
    *('"chunked"', "\x0bchunked"),
)
NAMES = ("Transfer-Encoding ", "Transfer-Encoding\t", "Transfer Encoding")
SIZES = (b"+5", b"0x5", b" 5", b"", b"-5", b"5 a", b"5_0")
VERSIONS = (b"HTTP/0.9", b"HTTP/1.2", b"HTTP/2.0", b"http/1.1", b"HTTP/11")


@pytest.mark.parametrize(
    "sent",
    [
        head(5, CHUNKED) + END,
        head(0, CHUNKED) + END,
        head(5, CHUNKED.upper()) + END,
        head(more=CHUNKED + "content-length: 5\r\n") + END,
        head(5, "Transfer-Encoding:\r\n chunked\r\n") + END,
        head(more=CHUNKED).replace(b"HTTP/1.1", b"HTTP/1.0") + END,
        head(5, CHUNKED).replace(b"HTTP/1.1", b"HTTP/1.0") + END,
        head(5, "Content-Length: 6\r\n") + b"abcde",
        *(head(more=f"Content-Length: {value}\r\n") + b"abcde" for value in LENGTHS),
        *(head(more=f"Transfer-Encoding: {value}\r\n") + END for value in CODINGS),
        head(more=CHUNKED + CHUNKED) + END,
        head(more=CHUNKED + "Transfer-Encoding: identity\r\n") + END,
        *(head(more=f"{name}: chunked\r\n") for name in NAMES),
        head(more="X: a\rTransfer-Encoding: chunked\r\n"),
        head(more="X: a\0Transfer-Encoding: chunked\r\n"),
        *(head(more=CHUNKED) + size + b"\r\nabcde\r\n" + END for size in SIZES),
        head(more=CHUNKED) + b"5\nabcde\r\n" + END,
        head(more=CHUNKED) + b"5\r\nabcdefg\r\n" + END,
        head(5).replace(b"/translate", b"/trans late"),
        head(5).replace(b"/translate ", b"/translate\t"),
        head(5).replace(b" /translate", b"  /translate"),
        head(5).replace(b"Host: localhost\r\n", b""),
        head(5, "Host: localhost\r\n"),
        *(head(5).replace(b"HTTP/1.1", version) for version in VERSIONS),
        b"GET /health\r\n",
    ],
)
def test_a_request_whose_end_is_ambiguous_is_the_last_of_its_connection(client: httpx.Client, sent: bytes) -> None:
    start = time.monotonic()
    found = talk(client, sent + HIDDEN)
    assert time.monotonic() - start < 5
    assert found.startswith(b"HTTP/1.1 400 ")
    assert found.count(b"HTTP/1.1 ") == 1
    assert error_of(found)


@pytest.mark.parametrize(
    "sent", [head(5, "Content-Length: 5\r\n") + b"abcde", head(more=CHUNKED) + b"5\r\nabcde\r\n0\r\n\r\n"]
)
def test_a_request_whose_end_is_certain_is_followed_by_another(client: httpx.Client, sent: bytes) -> None:
    found = talk(client, sent + HIDDEN)
    assert re.findall(rb"HTTP/1.1 (\d+)", found) == [b"400", b"200"]  # the first is no JSON


@pytest.mark.parametrize(
    "place", ["//localhost/health", "http://localhost/health", "http://evil.example/health", "localhost:80", "*"]
)
def test_a_target_names_no_other_server(client: httpx.Client, place: str) -> None:
    found = talk(client, f"GET {place} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    assert found.startswith(b"HTTP/1.1 404 ")


@pytest.mark.parametrize(
    "host",
    [
        "evil.com@localhost",
        "localhost:80@localhost",
        "localhost:x",
        "localhost,localhost",
        "::1",
        "[::1",
        "localhost/a",
        "localhost:http",
        "[",
        "a b",
    ],
)
def test_a_host_that_is_none_is_refused(client: httpx.Client, host: str) -> None:
    reply = client.get("/health", headers={"Host": host})
    assert reply.status_code == 400
    assert reply.json()["error"] == f"the header Host is not the name of a server: {host}"


def test_a_reply_does_not_wait_for_the_client_to_acknowledge_its_head() -> None:
    with bind("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        connection, _ = listener.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_missing_headers_time_out(client: httpx.Client) -> None:
    start = time.monotonic()
    assert talk(client) == b""
    assert talk(client, head()[:-10]) == b""
    kept = talk(client, b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /hea", pause=0.1)
    assert kept.count(b"HTTP/1.1 200") == 1
    assert 1 <= time.monotonic() - start < 8


def test_a_slow_body_times_out(client: httpx.Client) -> None:
    found = talk(client, head(len(BODY)), BODY[:5], BODY[5:10], pause=0.1)
    assert found.startswith(b"HTTP/1.1 408 ")
    assert "0.4 seconds" in error_of(found)


def test_a_body_may_arrive_in_pieces(client: httpx.Client) -> None:
    chunks = b"".join(b"%x\r\n%b\r\n" % (1, bytes([byte])) for byte in BODY) + b"0\r\n\r\n"
    expected = json.dumps(golden().translate("I am old.").text).encode()
    whole = head(len(BODY)) + BODY
    assert expected in talk(client, head(more="Transfer-Encoding: chunked\r\nConnection: close\r\n") + chunks)
    assert (
        talk(client, whole + whole + whole.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")).count(expected) == 3
    )


def test_connections_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nmt.serving.server, "MAX_CONNECTIONS", 2)
    ask = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with serving() as client:
        address = client.base_url.host, client.base_url.port or 80
        with socket.create_connection(address), socket.create_connection(address):
            assert talk(client, ask).startswith(b"HTTP/1.1 503 ")
        wait_until(lambda: talk(client, ask).startswith(b"HTTP/1.1 200 "))


@pytest.mark.soak
def test_connections_are_closed(client: httpx.Client) -> None:
    def number() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before = number()
    for _ in range(300):
        talk(client, head(10**6), seconds=0.001)
    wait_until(lambda: number() <= before + 2, 20)


@pytest.fixture(scope="module")
def other_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with the text of the golden one and other weights."""
    other = shutil.copytree(GOLDEN_MODEL, tmp_path_factory.mktemp("models") / "other")
    generator = torch.Generator().manual_seed(1)
    tensors = {
        name: value + 0.1 * torch.randn(value.shape, generator=generator)
        for name, value in load_file(other / "model.safetensors").items()
    }
    save_file(tensors, other / "model.safetensors")
    return other


@contextlib.contextmanager
def started(*arguments: object) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """`nmt serve` in a process of its own, and its address."""
    command = ["-m", "nmt", "serve", "--model", GOLDEN_MODEL, "--port", 0, "--device", "cpu", *arguments]
    with subprocess.Popen([sys.executable, *map(str, command)], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"serving en-de(?: \(2 models\))? at (http://\S+);", line)
        assert found, line + process.stderr.read()
        assert line.count("(2 models)") == arguments.count("--model")
        yield process, found[1]
        process.terminate()
        process.communicate(timeout=20)


def test_the_command_serves_and_stops(other_model: Path, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("one\n\n two words \n", encoding="utf-8")
    with started("--model", other_model, "--api-keys", tmp_path / "keys", "--beam-size", 1) as (process, url):
        fields = {"q": "I am old.", "source": "en", "target": "de", "api_key": "two words", "alternatives": 1}
        reply = httpx.post(f"{url}/translate", json=fields, timeout=20)
        assert reply.json()["alternatives"] == []
        assert reply.headers["model-identity"].count(", ") == 1  # of two models
        assert httpx.post(f"{url}/translate", json={**fields, "api_key": "three"}, timeout=20).status_code == 403
        foreign = httpx.get(f"{url}/health", headers={"Host": "mt.example"}, timeout=20)
        assert foreign.json()["error"].endswith("unknown host name mt.example: start the server with --allow-host")
        with socket.create_connection((httpx.URL(url).host, httpx.URL(url).port or 80)):
            process.send_signal(signal.SIGTERM)
            *requests, last = process.communicate(timeout=20)[1].splitlines()
        assert process.returncode == 0
    assert [json.loads(line)["status"] for line in requests] == [200, 403, 400]
    assert "SIGTERM" in last
    assert "3 requests" in last


def begin(client: httpx.Client, gated: Gated, pool: ThreadPoolExecutor) -> "Future[httpx.Response]":
    """Request a translation, and return when the model has started."""
    fields = {"q": "I am old.", "source": "en", "target": "de"}
    reply = pool.submit(httpx.post, f"{client.base_url}/translate", json=fields, timeout=20)
    assert gated.started.wait(10)
    return reply


def test_the_model_of_languages_is_read_at_the_start() -> None:
    detection._identifier.cache_clear()
    with serving():
        wait_until(lambda: detection._identifier.cache_info().currsize == 1, 20)


def test_requests_that_have_begun_are_finished() -> None:
    gated = Gated()
    with ThreadPoolExecutor() as pool, serving(("en", "de", gated)) as client:
        reply = begin(client, gated, pool)
        threading.Timer(0.2, gated.open.set).start()
    assert reply.result().json()["translatedText"] == golden().translate("I am old.").text
    with pytest.raises(httpx.ConnectError):
        httpx.get(str(client.base_url))


def test_stopping_has_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nmt.serving.server, "LAST_BATCH", 0.1)
    gated = Gated()
    with ThreadPoolExecutor() as pool, recording() as records:
        with serving(("en", "de", gated), limits={"stop_seconds": 1}) as client:
            reply = begin(client, gated, pool)
            start = time.monotonic()
        assert time.monotonic() - start < 5
        gated.open.set()
        refused = reply.result()
        assert len(records.lines) == 1
    assert (refused.status_code, refused.json()) == (503, {"error": "the server is stopping"})
    assert int(refused.headers["retry-after"]) > 0


@pytest.mark.parametrize("patience", [0.0, 0.1])
def test_a_client_that_reads_nothing_is_disconnected(patience: float) -> None:
    """With patience it reads slowly, for longer than the time limit, and gets everything."""
    number, found = 60, b""
    ask = b"GET /explore HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with serving(limits={"idle_seconds": 0.8}) as client, socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536 if patience else 4096)
        connection.settimeout(10)
        connection.connect((client.base_url.host, client.base_url.port or 80))
        connection.sendall(ask * (number - 1) + ask[:-2] + b"Connection: close\r\n\r\n")
        start = time.monotonic()
        if not patience:
            time.sleep(1.6)
        with contextlib.suppress(ConnectionError):
            while chunk := connection.recv(1 << 16):
                found += chunk
                if patience and time.monotonic() - start < 1.8:
                    time.sleep(patience)
        assert client.get("/health").status_code == 200
    assert (found.count(b"HTTP/1.1 200") == number) == bool(patience)


@pytest.mark.parametrize("size", [b"/explore", b"/health"])
def test_a_client_that_reads_too_slowly_is_disconnected(size: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """It makes some progress within each time limit."""
    monkeypatch.setattr(nmt.serving.server, "SEND_BUFFER", 1 << 12)
    monkeypatch.setattr(nmt.serving.server, "MIN_READING", 1 << 18)
    number, found = 4000 if size == b"/health" else 60, b""
    ask = b"GET " + size + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with serving(limits={"idle_seconds": 0.5}) as client, socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(10)
        connection.connect((client.base_url.host, client.base_url.port or 80))
        threading.Thread(target=lambda: _send(connection, ask * number)).start()
        with contextlib.suppress(ConnectionError):
            for _ in range(40):  # 40 kB per second
                found += connection.recv(1600)
                time.sleep(0.04)
            while chunk := connection.recv(1 << 16):
                found += chunk
        assert client.get("/health").status_code == 200
    assert 0 < found.count(b"HTTP/1.1 200") < number


def _send(connection: socket.socket, data: bytes) -> None:
    with contextlib.suppress(OSError):  # it is closed from the other side
        connection.sendall(data)


def test_a_body_in_very_many_chunks_is_refused(client: httpx.Client) -> None:
    found = talk(client, head(more="Transfer-Encoding: chunked\r\n") + b"1\r\n9\r\n" * 20_000)
    assert found.startswith(b"HTTP/1.1 400 ")


def test_a_wrong_key_in_the_head_is_refused_before_the_body() -> None:
    with serving(api_keys=["right", "richtig-ä"]) as client:
        start = time.monotonic()
        for place in ("Authorization: Bearer wrong\r\n", ""):
            sent = head(1000, place)
            sent = sent if place else sent.replace(b"/translate", b"/translate?api_key=wrong")
            found = talk(client, sent, enough=b"\r\n\r\n")
            assert found.startswith(b"HTTP/1.1 403 ")
        assert time.monotonic() - start < 10  # the time limit of a body
        for body in (BODY, BODY.replace(b"}", b', "api_key": ""}')):
            reply = client.post(
                "/translate", content=body, headers={**JSON, "Authorization": "Bearer richtig-ä".encode()}
            )
            assert reply.status_code == 200
        assert client.post("/translate?api_key=right", content=BODY, headers=JSON).status_code == 200


def test_errors_at_the_start_are_reported_in_one_line(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def error(*arguments: object, model: object = GOLDEN_MODEL) -> str:
        outcome = cli("serve", "--model", model, "--device", "cpu", *arguments)
        assert outcome.code == 1
        assert outcome.err.startswith("nmt: error: ")
        assert outcome.err.count("\n") == 1
        return outcome.err

    copy = shutil.copytree(GOLDEN_MODEL, tmp_path / "copy")
    config = (copy / "config.yaml").read_text(encoding="utf-8")
    (copy / "config.yaml").write_text(config.replace("lowercase: false", "lowercase: true"), encoding="utf-8")
    found = error("--model", copy, "--port", 0)
    assert f"{copy}: has other vocabularies or another tokenizer than {GOLDEN_MODEL}" in found
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert f"--port {taken.getsockname()[1]}" in error("--port", taken.getsockname()[1])
    assert "--host 192.0.2.1" in error("--host", "192.0.2.1")
    assert "nowhere: does not exist (no model.json)" in error("--port", 0, model=tmp_path / "nowhere")
    assert "--max-queue 1 " in error("--max-queue", 1)
    assert "has no API key" in error("--api-keys", os.devnull)
    for path, found in ((tmp_path, "Is a directory"), (tmp_path / "no", "No such file or directory")):
        assert error("--api-keys", path) == f"nmt: error: {path}: cannot be read ({found})\n"
    (tmp_path / "keys").write_bytes(b"secr\xffet\n")
    assert error("--api-keys", tmp_path / "keys").endswith("line 1: not UTF-8; convert it to UTF-8 first\n")
    assert "an API key is empty" in error("--api-key", "", "--port", 0)
    assert "--allow-origin x" in error("--allow-origin", "x", "--port", 0)
    monkeypatch.setattr(nmt.serving.serve, "LIBRARIES", ("starlette", "no_such_library"))
    found = error()
    assert found.rstrip().endswith("pip install no-such-library")


def test_a_server_for_other_machines_without_a_key_warns(caplog: pytest.LogCaptureFixture) -> None:
    def warned(keys: list[str]) -> bool:
        caplog.clear()
        with serving(host="0.0.0.0", api_keys=keys) as client:
            port = client.base_url.port
            assert httpx.get(f"http://127.0.0.1:{port}/health", headers={"Host": "mt.example"}).status_code == 200
        return "`host='0.0.0.0'`: other machines" in caplog.text

    assert warned([])
    assert not warned(["key"])


def test_several_models_are_several_directions(tmp_path: Path) -> None:
    copy = shutil.copytree(GOLDEN_MODEL, tmp_path / "copy")
    config = (copy / "config.yaml").read_text(encoding="utf-8")
    (copy / "config.yaml").write_text(config.replace("reverse: false", "reverse: true"), encoding="utf-8")
    directions = nmt.serving.serve.open_directions([GOLDEN_MODEL, copy], LoadSettings("cpu", split_sentences=True))
    assert list(map(str, directions)) == ["en-de", "de-en"]


def test_loops_are_not_served() -> None:
    (direction,) = nmt.serving.serve.open_directions([GOLDEN_MODEL], LoadSettings("cpu", split_sentences=True))
    texts, loop = ["the dog", "qzxv kjh asdkjh", "He sees me."], re.compile(r"(.)\1\1\1")
    alone = nmt.load(GOLDEN_MODEL, device="cpu")
    plain = alone.translate(texts, n_best=alone.options.beam_size)
    assert [bool(loop.search(best.text)) for best, *_ in plain] == [True, True, False]
    served = direction.translator.translate(texts)
    for text, ranked, found in zip(texts, plain, served, strict=True):
        fitting = [one.text for one in ranked if not loop.search(one.text)]
        assert found.text == (fitting[0] if fitting else text)
        assert (found.is_loop, found.is_copied) == (not fitting, not fitting)


def test_a_misspelled_name_is_served_as_in_the_text() -> None:
    (direction,) = nmt.serving.serve.open_directions([GOLDEN_MODEL], LoadSettings("cpu", split_sentences=True))
    text = "The dog sees Bauttt"
    plain = nmt.load(GOLDEN_MODEL, device="cpu").translate(text)
    served = direction.translator.translate(text, with_alignment=True)
    assert (plain.text, served.text) == ("Der Muttt an.", "Der Bauttt an.")
    assert served.alignment is not None
    assert len(served.alignment) == len(served.tokens) + 1 == len(plain.tokens) + 1


def test_models_of_one_direction_translate_together(other_model: Path, cli: Cli, tmp_path: Path) -> None:
    text = "\n".join(SENTENCES[:30]) + "\n"
    (tmp_path / "input").write_text(text, encoding="utf-8")

    def translate(*models: Path) -> str:
        named = [part for model in models for part in ("--model", model)]
        outcome = cli(
            "translate", *named, "--device", "cpu", "-i", tmp_path / "input", "-o", tmp_path / "output", "--overwrite"
        )
        assert outcome.code == 0, outcome.err
        return (tmp_path / "output").read_text(encoding="utf-8")

    together = translate(GOLDEN_MODEL, other_model)
    assert together not in (translate(GOLDEN_MODEL), translate(other_model))
    (both,) = nmt.serving.serve.open_directions([GOLDEN_MODEL, other_model], LoadSettings("cpu", split_sentences=True))
    with serving(both) as client:
        fields = {"q": text, "source": "en", "target": "de"}
        assert client.post("/translate", json=fields, timeout=60).json()["translatedText"] == together
        shown = client.post("/explore", json={**fields, "q": SENTENCES[0]}, timeout=60).json()
    assert [system["name"] for system in shown["systems"]] == [GOLDEN_MODEL.name, "other"]
    for model, record in zip((GOLDEN_MODEL, other_model), shown["items"][0]["of"], strict=True):
        best = nmt.load(model, device="cpu", replace_unknown=False).translate(SENTENCES[0])
        assert record["text"][str(record["best"][0])] == best.text
