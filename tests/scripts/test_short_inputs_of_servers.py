"""The script that judges a server's translations of short inputs."""

import json
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[2] / "scripts"))
import short_inputs

ANSWERS = {
    "dog": "Hund Hund",
    "cat": "Katze",
    "house": "Haus haus",
    "I AM OLD.": "ICH BIN ALT.",
    "I am old.": "Ich bin alt.",
}
HEADER = "category\tinput\taccepted\twords\tkept\tplain\n"
ROWS = (
    "words\tdog\tHund\t\t\t\nwords\tcat\tKatze\t\t\t\nwords\thouse\tHaus\t\t\t\ncapitals\tI AM OLD.\t\t\t\tI am old.\n"
)


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    """A server with LibreTranslate's interface that knows `ANSWERS`, and repeats any other text if it is a word."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            right = (self.path, body["source"], body["target"], body["api_key"]) == ("/translate", "xx", "yy", "secret")
            texts = [ANSWERS.get(text, f"{text} {text}" if text.isalpha() else text) for text in body["q"]]
            self.send_response(200 if right else 403)
            self.end_headers()
            self.wfile.write(json.dumps({"translatedText": texts} if right else {"error": "no such key"}).encode())

        def log_message(self, *arguments: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.fixture
def run(
    server: HTTPServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., list[str]]:
    """Run the script on the server, with inputs of its own; the lines that it prints."""
    (tmp_path / "xx-yy.tsv").write_text(HEADER + ROWS, encoding="utf-8")

    def call(*arguments: Any) -> list[str]:
        url = f"http://127.0.0.1:{server.server_port}/"
        given = ["--url", url, "--api-key", "secret", "--inputs", tmp_path / "xx-yy.tsv", *arguments]
        monkeypatch.setattr(sys, "argv", ["short_inputs.py", *map(str, given)])
        short_inputs.main()
        return capsys.readouterr().out.splitlines()

    return call


def test_what_may_be_tuned_on_is_shown_and_the_rest_is_counted(run: Callable[..., list[str]]) -> None:
    # sha256 of house and I AM OLD. is a multiple of 3, and that of dog and cat is not.
    assert run() == ["short inputs: 1 of 2 (words 0/1, capitals 1/1)", "house -> Haus haus (repetition)"]
    assert run("--scored") == ["short inputs: 1 of 2 (words 1/2)"]


def test_loops_are_counted(run: Callable[..., list[str]], tmp_path: Path) -> None:
    (tmp_path / "text").write_text("dog: a cat, 12 mice; mice & Männer\n", encoding="utf-8")
    *_, words, odd = run("--loops", tmp_path / "text")
    assert words == "loops in 2 of 2 single words"  # mice and Männer: no single letter, and nothing that the file has
    assert odd.startswith("loops in ")
    assert odd.endswith(" of 1,000 odd lines")
    assert run("--loops", tmp_path / "text", "--words", 1)[-2] == "loops in 1 of 1 single words"


def test_odd_lines_depend_on_the_seed_alone() -> None:
    lines = short_inputs.make_odd_lines(300, 1)
    assert lines == short_inputs.make_odd_lines(300, 1) != short_inputs.make_odd_lines(300, 2)
    assert all(line and line == line.strip() for line in lines)
    for kind in ("https://", "😂", "я", "ω", "あ", "7", "!"):
        assert any(kind in line for line in lines)
    assert any(len(word) >= 30 and word.isascii() and word.isalpha() for line in lines for word in line.split())


def test_a_server_that_does_not_translate_is_named(run: Callable[..., list[str]], server: HTTPServer) -> None:
    with pytest.raises(SystemExit) as caught:
        run("--api-key", "wrong")
    url = f"http://127.0.0.1:{server.server_port}/translate"
    assert caught.value.code == f'error: {url}: HTTP Error 403: Forbidden: {{"error": "no such key"}}'
