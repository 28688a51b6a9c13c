"""The machine fails: full disks, folders that cannot be written, kills, two commands at once, odd bytes, terminals."""

import contextlib
import fcntl
import json
import os
import re
import resource
import signal
import stat
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import processes
import pytest
from conftest import Cli, Project, Refusal, call, errors, tree, wait_until
from processes import PIPE
from training_runs import training

SHORT = ["--set", "train.max_updates=10"]
# Thousands of updates before the first model.
LONG = ["--set", "train.epochs=1000", "--set", "train.validation.every=1000000"]
EACH = ["--set", "train.log_every=1", "--set", "train.batch.size=8"]  # soon much is logged


@contextlib.contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """No file can grow beyond `size` bytes, here and in processes started meanwhile: what a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        with pytest.MonkeyPatch.context() as patch:
            # Python would keep truncated files of compiled modules, for others to stumble over.
            patch.setattr(sys, "dont_write_bytecode", True)
            patch.setenv("PYTHONDONTWRITEBYTECODE", "1")
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize(
    ("limit", "command", "named"),
    [
        (100, ["evaluate", "--hypotheses", "test.txt", "--overwrite"], "test.txt"),
        (100, ["evaluate", "--json", "scores.json", "--hypotheses", "/dev/null", "--overwrite"], "scores.json"),
        (700, ["evaluate", "--json", "scores.json", "--hypotheses", "test.txt", "--overwrite"], "scores.json"),
        (100, ["translate", "--input", "in.txt", "--output", "out.txt", "--overwrite"], "out.txt"),
        (1000, ["translate", "a b", "--attention", "map.png", "--overwrite"], "map.png"),
        (0, ["train", "--overwrite"], "runs/reversal/run.json"),
        (1000, ["train", "--overwrite"], "runs/reversal/config.yaml"),
        (50_000, ["train", "--overwrite", *SHORT], "runs/reversal/best"),
        (12_000, ["train", "--overwrite", *LONG, *EACH], "runs/reversal/metrics.jsonl"),
    ],
)
def test_a_full_disk_is_one_line_and_harms_nothing(
    here: Project, capsys: pytest.CaptureFixture[str], limit: int, command: list[str], named: str
) -> None:
    Path("in.txt").write_text("a b c d e f\n" * 20)
    for earlier in ("test.txt", "scores.json", "out.txt", "map.png"):
        Path(earlier).write_text("earlier\n")
    before = tree()
    config = ["--config", here.config] if command[0] == "train" else []
    with file_size_limit(limit):
        assert call(*command, *config) == 1
    err = capsys.readouterr().err
    (found,) = errors(err)
    assert found.startswith(f"nmt: error: {named}: ")
    assert found.endswith(("File too large", "is the disk full?"))
    for line in err.splitlines():
        subprocess.run(line.partition("take it back with: ")[2], shell=True, check=True)
    assert tree() == before


def test_a_full_disk_while_data_is_written(here: Project) -> None:
    before = tree()
    with file_size_limit(2000):  # of the new process as well
        done = processes.run("preprocess", "--config", here.config, "--overwrite", stdout=None)
    assert done.returncode == 1
    (line,) = errors(done.stderr)
    assert line.startswith("nmt: error: data/prepared/reversal: ")
    assert line.endswith(("File too large", "is the disk full?"))
    assert tree() == before


FULL = "output: No space left on device; make room and run the command again"


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_standard_output_that_takes_nothing(unbuffered: str) -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    command = [sys.executable, "-m", "nmt", "--help"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=PIPE, text=True, env=environment, check=False)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert errors(done.stderr)[0].endswith(FULL)


def test_standard_output_that_takes_no_translation(here: Project) -> None:
    with Path("/dev/full").open("w") as full:
        done = processes.run("translate", "a b", stdout=full)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert errors(done.stderr)[0].endswith(FULL)


@pytest.mark.parametrize("option", ["--output", "--hypotheses", "--json"])
def test_devices_are_written_and_not_replaced(here: Project, refusal: Refusal, option: str) -> None:
    command = ["translate", "a b"] if option == "--output" else ["evaluate"]
    assert call(*command, option, "/dev/null") == 0
    assert refusal(*command, option, "/dev/full").startswith("/dev/full: No space left on device")
    for device in ("/dev/null", "/dev/full"):
        assert stat.S_ISCHR(Path(device).stat().st_mode)


@pytest.mark.parametrize("place", ["file/x", "/proc/x", "folder", "protected/x"])
@pytest.mark.parametrize(
    "command",
    ["preprocess --output", "train --output", "translate a --output", "evaluate --json", "evaluate --hypotheses"],
)
def test_places_that_cannot_be_written(here: Project, refusal: Refusal, command: str, place: str) -> None:
    if place == "protected/x" and os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    Path("file").touch()
    Path("folder").mkdir()
    Path("folder/theirs").touch()
    Path("protected").mkdir(mode=0o555)
    before = tree()
    config = ["--config", here.config] if command.startswith(("preprocess", "train")) else []
    line = refusal(*command.split(), place, *config)
    assert place.removesuffix("/x") in line
    assert place != "protected/x" or "Permission denied" in line
    assert tree() == before


def test_a_killed_run_holds_no_lock_and_keeps_the_earlier_one(here: Project, cli: Cli, refusal: Refusal) -> None:
    with training(here, here.run, "--overwrite") as process:
        line = refusal("train", "--config", here.config, "--overwrite")
        assert line.startswith(f"runs/reversal: in use by another command (process {process.pid})")
        assert "no finished run" in refusal("translate", "a b")  # the earlier run is not taken for a finished one
        process.kill()
        process.wait()
    found = cli("train", "--config", here.config)
    assert "runs/reversal: the earlier result is kept; take it back with: rm -r" in found.err
    assert "contains an unfinished run" in errors(found.err)[0]
    assert call("train", "--config", here.config, "--overwrite", *SHORT) == 0
    assert [path.name for path in Path("runs").iterdir()] == ["reversal"]
    assert json.loads((here.run / "best/model.json").read_text())["update"] == 10


def is_held(lock: Path) -> bool:
    """True if a command holds a lock, into which it then writes its name."""
    return lock.exists() and lock.stat().st_size > 0


def test_two_preprocess_at_once(here: Project, refusal: Refusal) -> None:
    os.mkfifo("corpus.pipe.tsv")  # the first command waits for a corpus that never comes
    before = tree(here.data)
    command = ["preprocess", "--config", here.config, "--source", "corpus.pipe.tsv", "--overwrite"]
    with processes.start(*command, stderr=PIPE) as process, contextlib.ExitStack() as at_end:
        at_end.callback(process.kill)
        wait_until(lambda: is_held(Path("data/prepared/.reversal.lock")))
        line = refusal("preprocess", "--config", here.config, "--overwrite")
        assert line.startswith(f"data/prepared/reversal: in use by another command (process {process.pid})")
    assert tree(here.data) == before
    assert call("preprocess", "--config", here.config, "--overwrite") == 0
    assert [path.name for path in Path("data/prepared").iterdir()] == ["reversal"]


def test_the_working_folder_is_not_replaced(here: Project, monkeypatch: pytest.MonkeyPatch, refusal: Refusal) -> None:
    before = tree()
    monkeypatch.chdir(here.run)
    data = here.root / here.data
    line = refusal("train", "--config", here.config, "--data", data, "--output", ".", "--overwrite")
    assert "is the working folder" in line
    monkeypatch.chdir(here.root)
    assert tree() == before


@pytest.mark.parametrize(
    ("content", "warnings"),
    [
        (b"a b\r\nc d\r\ne\r\n", []),
        (b"\xef\xbb\xbfa b\nc d\ne", []),
        (
            "a b\nc d\ne ü\nü\n".encode("latin-1"),
            ["line 3: not UTF-8; invalid bytes became U+FFFD", "2 lines in all: not UTF-8"],
        ),
        ("a b\nc d\ne \ufffd\n".encode(), []),
        (b"a b\nc d\ne f\0 g\n", ["line 3: has NUL characters, as UTF-16 does; convert it to UTF-8 first"]),
    ],
)
def test_encodings_of_what_is_translated(here: Project, cli: Cli, content: bytes, warnings: list[str]) -> None:
    Path("in.txt").write_bytes(content)
    found = cli("translate", "--input", "in.txt")
    assert (found.code, found.err.splitlines()) == (0, [f"WARNING: {warning}" for warning in warnings])
    ends = re.findall(
        rb"\r?\n", content
    )  # each line has the end that it has in the input, and the last one perhaps none
    assert re.findall(rb"\r?\n", found.out.encode()) == ends
    assert found.out.endswith("\n") == content.endswith(b"\n")
    assert b"\0" in content or found.out.replace("\r", "").startswith("B A\nD C\nE")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "latin-1"])
@pytest.mark.parametrize("option", ["--src", "--ref"])
def test_evaluation_refuses_what_is_not_utf8(here: Project, refusal: Refusal, encoding: str, option: str) -> None:
    Path("good.txt").write_text("a\nb\n")
    Path("bad.txt").write_bytes("a\nü\n".encode(encoding))
    files = {"--src": "good.txt", "--ref": "good.txt", option: "bad.txt"}
    line = refusal("evaluate", *[part for pair in files.items() for part in pair])
    assert line.startswith("bad.txt: ")
    assert ("UTF-16" if encoding.startswith("utf-16") else "line 2: not UTF-8") in line


HALF = {
    "UTF-16 without its mark": "a b\n".encode("utf-16-le"),  # each second byte is 0
    "KOI8-R": "б б\n".encode("koi8-r"),
    "all bytes": bytes(range(256)) * 9,  # no byte from 128 on fits to the next
}


@pytest.mark.parametrize("content", HALF.values(), ids=HALF)
@pytest.mark.parametrize("command", ["translate --input in.bin", "score --src in.bin --tgt in.bin"])
def test_what_is_not_text_is_refused(here: Project, refusal: Refusal, command: str, content: bytes) -> None:
    Path("in.bin").write_bytes(content)
    advice = "give a text file, or convert it first, as in: iconv -f UTF-16 -t UTF-8"
    assert refusal(*command.split()) == f"in.bin: is not UTF-8 text (50% of its beginning is not); {advice}"


def test_translating_utf16_with_its_mark_is_refused(here: Project, refusal: Refusal) -> None:
    Path("in.txt").write_bytes("a\n".encode("utf-16"))
    line = refusal("translate", "--input", "in.txt", "--output", "out.txt")
    assert line.startswith("in.txt: is UTF-16, not UTF-8")
    assert not Path("out.txt").exists()


def take_terminal() -> None:
    """Let the terminal at standard input send its signals to this process."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def test_a_terminal_is_read_line_by_line(here: Project) -> None:
    """What a person sees: a hint, each translation at once, one line after Ctrl-C."""
    terminal, end = os.openpty()
    streams = {"stdin": end, "stdout": PIPE, "stderr": PIPE}
    with processes.start("translate", **streams, new_session=True, prepare=take_terminal) as process:
        assert process.stdout
        assert process.stderr
        os.close(end)
        assert process.stderr.readline() == "reading standard input, one sentence per line; end with Ctrl-D\n"
        for line, translation in (("a b c\n", "C B A\n"), ("d\n", "D\n")):
            os.write(terminal, line.encode())
            assert process.stdout.readline() == translation
        os.write(terminal, b"\x03")
        out, err = process.communicate(timeout=60)
    os.close(terminal)
    assert process.returncode == 130
    assert out == ""
    assert err == "nmt: error: interrupted; earlier results are intact\n"


def test_the_end_of_a_terminal_is_the_end(here: Project) -> None:
    terminal, end = os.openpty()
    with processes.start("translate", stdin=end, stdout=PIPE) as process:
        os.close(end)
        os.write(terminal, b"a b\n\x04")
        out, _ = process.communicate(timeout=60)
    os.close(terminal)
    assert (process.returncode, out) == (0, "B A\n")


@pytest.mark.parametrize("stream", ["stdin", "stdout"])
def test_closed_streams(
    here: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], stream: str
) -> None:
    monkeypatch.setattr(sys, stream, None)  # as Python has it after <&- or >&-
    assert call("translate") == 1
    assert "is closed" in errors(capsys.readouterr().err)[0]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("model/model.json", b'{"format_version": 99}', "model format 99, this version reads"),
        ("model/model.json", None, "model.json ... train first"),
        ("model/text/src.vocabulary.json", b'["\xff"]', "src.vocabulary.json: not valid JSON"),
        ("model/text/src.vocabulary.json", b'{"a": 1}', "not a list of tokens"),
        ("model/text/src.vocabulary.json", None, "src.vocabulary.json ... incomplete"),
        ("model/text/tgt.vocabulary.json", b"shorter", "do not match"),
        ("model/config.yaml", None, "config.yaml ... incomplete"),
        ("model/model.safetensors", b"", "model.safetensors: damaged"),
        ("model/model.safetensors", b"half", "model.safetensors ... truncated"),
        ("model/model.safetensors", None, "model.safetensors ... missing"),
        ("data/data.json", b'{"format_version": 99}', "data format 99, this version reads"),
        ("data/data.json", None, "no data.json"),
        ("data/valid.tgt.offsets.npy", None, "valid.tgt.offsets.npy: missing"),
    ],
)
def test_what_cannot_be_read_is_named(
    here: Project, refusal: Refusal, name: str, content: bytes | None, words: str
) -> None:
    kind, _, place = name.partition("/")
    file = (here.data if kind == "data" else here.run / "best") / place
    if content == b"shorter":
        content = json.dumps(json.loads(file.read_text())[:-1]).encode()
    if content == b"half":
        content = file.read_bytes()[: file.stat().st_size // 2]
    file.unlink() if content is None else file.write_bytes(content)
    before = tree()
    train = ["train", "--config", here.config, "--overwrite"]
    line = refusal(*(train if kind == "data" else ["translate", "a", "--model", here.run / "best"]))
    assert all(part in line for part in words.split(" ... "))
    assert tree() == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_terminated_command_cleans_up(here: Project, number: signal.Signals) -> None:
    os.mkfifo("endless.tsv")
    command = ["preprocess", "--config", here.config, "--source", "endless.tsv", "-o", "new/data"]
    with processes.start(*command, stderr=PIPE) as process, Path("endless.tsv").open("w") as pipe:
        pipe.write("a b\tb a\n")
        pipe.flush()
        wait_until(lambda: is_held(Path("new/.data.lock")))
        time.sleep(0.5)  # until it waits for more lines: a signal just before that would be noticed after it
        process.send_signal(number)
        _, err = process.communicate()
    assert process.returncode == 128 + number
    assert err.splitlines()[1:] == [f"nmt: error: ended by {number.name}; earlier results are intact"]
    assert not Path("new").exists()
