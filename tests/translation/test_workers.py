"""Several processes translate: the same output, resumed by any number of them, and no process is left over."""

import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path

import processes
import psutil
import pytest
import torch
from conftest import GOLDEN_MODEL, Cli, Refusal, names, wait_until
from file_samples import SAMPLES, format_of
from processes import PIPE
from test_kills import run_killed

import nmt
from nmt.system.errors import ConfigError
from nmt.translation import file_translation

OPTIONS = ("--model", str(GOLDEN_MODEL), "--beam-size", "2", "--batch-size", "1")  # 16 lines a window
WORDS = ("I", "you", "he", "rain", "old", "is", "the", "a", "works", "sleeps")


def write_lines(path: Path, number: int) -> Path:
    lines = (" ".join(WORDS[(n * k) % 10] for k in range(n % 7)) for n in range(number))
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def given_file(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "in.txt", 70)


@pytest.mark.parametrize("workers", [2, pytest.param(3, marks=pytest.mark.soak)])
def test_the_output_is_that_of_one_process(cli: Cli, tmp_path: Path, given_file: Path, workers: int) -> None:
    """Files with weights in the output, files to standard output, and numbered translations of standard input."""
    command = ["translate", *OPTIONS, "--input", given_file]
    for options in (("--format", "jsonl", "--with-attention"), ("--n-best", 2)):
        written = []
        for number in (1, workers):
            output = tmp_path / f"{number}.out"
            done = cli(*command, *options, "--output", output, "--overwrite", "--workers", number)
            assert (done.code, done.out) == (0, ""), done.err
            assert done.err.startswith("70 lines in ")
            written.append(output.read_bytes())
            assert cli(*command, *options, "--workers", number).out.encode() == written[-1]
        assert written[0] == written[1]
    streams = []
    for number in (1, workers):
        done = processes.run("translate", *OPTIONS, "--n-best", 2, "--workers", number, given=given_file.read_text())
        assert done.returncode == 0, done.stderr
        streams.append(done.stdout)
    assert streams[0] == streams[1] == (tmp_path / "1.out").read_text(encoding="utf-8")


@pytest.mark.parametrize("workers", [1, 2])
def test_line_ends_are_those_of_the_input(cli: Cli, tmp_path: Path, workers: int) -> None:
    """From a file to a file and to standard output, and from standard input."""
    ends = [*["\r\n", "\n", "\r\n"] * 7, ""]
    texts = [f"I {WORDS[n % 10]}" for n in range(len(ends))]
    given, output = tmp_path / "in.txt", tmp_path / "out.txt"
    command = ["translate", *OPTIONS, "--workers", workers]
    given.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    translations = cli(*command, "--input", given).out.split("\n")[:-1]
    expected = "".join(f"{text}{end}" for text, end in zip(translations, ends, strict=True)).encode()

    given.write_bytes("".join(map(str.__add__, texts, ends)).encode())
    assert cli(*command, "--input", given, "--output", output).code == 0
    assert output.read_bytes() == expected
    for more in (["--input", given], []):
        with given.open("rb") as source, output.open("wb") as target:
            done = processes.run(*command, *more, stdin=source, stdout=target)
        assert done.returncode == 0, done.stderr
        assert output.read_bytes() == expected
    for options in (("--format", "jsonl"), ("--n-best", 2)):  # they have lines of their own
        assert cli(*command, *options, "--input", given, "--output", output, "--overwrite").code == 0
        assert output.read_bytes().count(b"\r") == 0
        assert output.read_bytes().endswith(b"\n")


def test_each_line_that_comes_alone_is_answered(given_file: Path) -> None:
    with processes.start("translate", *OPTIONS, "--workers", 2, stdin=PIPE, stdout=PIPE) as process:
        assert process.stdin
        assert process.stdout
        for line in given_file.read_text(encoding="utf-8").splitlines()[1:5]:
            print(line, file=process.stdin, flush=True)
            assert process.stdout.readline().strip()
        process.communicate()
    assert process.returncode == 0


@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 3)])
def test_another_number_goes_on_after_a_kill(
    cli: Cli, tmp_path: Path, given_file: Path, before: int, after: int
) -> None:
    whole, output = tmp_path / "whole.txt", tmp_path / "out.txt"
    command = ["translate", *OPTIONS, "--input", str(given_file)]
    given_file.write_bytes(given_file.read_bytes().replace(b"\n", b"\r\n").removesuffix(b"\r\n"))
    assert cli(*command, "--output", whole).code == 0
    assert whole.read_bytes().count(b"\r\n") == whole.read_bytes().count(b"\n") == 69
    command += ["--output", str(output)]
    assert run_killed("os.fsync", 3, [*command, "--workers", str(before)])
    resumed = cli(*command, "--resume", "--workers", after)
    assert resumed.code == 0, resumed.err
    assert resumed.err.startswith(f"{output}: resuming after 32 lines\n38 lines in ")
    assert output.read_bytes() == whole.read_bytes()
    assert names(tmp_path) == ["in.txt", "out.txt", "whole.txt"]


@pytest.mark.parametrize("sample", SAMPLES)
def test_files_with_markup_are_divided_by_texts(sample: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    translator = nmt.load(GOLDEN_MODEL, device="cpu", beam_size=1, batch_size=1)
    monkeypatch.setattr(file_translation, "WINDOW", 1)
    source = tmp_path / f"in{format_of(sample).suffixes[0]}"
    source.write_bytes(SAMPLES[sample])
    for workers in (1, 2):
        nmt.translate_file(translator, source, tmp_path / str(workers), workers=workers)
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


def children_of(process: processes.Running) -> list[int]:
    return [child.pid for child in psutil.Process(process.pid).children()]


def end_of_workers(
    tmp_path: Path, end: Callable[[processes.Running], object], *options: object
) -> tuple[int | None, list[str]]:
    """What a command with two processes leaves that is ended in its work: exit code and lines of errors."""
    source = write_lines(tmp_path / "in.txt", 20_000)
    command = ("translate", *OPTIONS, "--input", source, "--output", tmp_path / "out.txt", "--workers", 2, *options)
    with processes.start(*command, stderr=PIPE, new_session=True) as process:
        try:
            wait_until((tmp_path / ".out.txt.partial.json").exists)
            assert len(children_of(process)) == 2
            end(process)
            _, err = process.communicate(timeout=60)  # every process has the pipe: it ends with the last of them
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, err.splitlines()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_all(tmp_path: Path, number: signal.Signals) -> None:
    code, errors = end_of_workers(tmp_path, lambda process: os.killpg(process.pid, number))
    reason = "interrupted" if number == signal.SIGINT else "ended by SIGTERM"
    assert (code, errors) == (128 + number, [f"nmt: error: {reason}; earlier results are intact"])
    assert names(tmp_path) == ["in.txt"]


def test_a_killed_process_ends_all_and_its_command_can_be_gone_on_with(tmp_path: Path) -> None:
    code, errors = end_of_workers(
        tmp_path, lambda process: os.kill(children_of(process)[0], signal.SIGKILL), "--resume"
    )
    killed = "nmt: error: one of 2 processes was killed, perhaps for lack of memory; lower --workers"
    assert (code, errors) == (1, [killed])
    assert names(tmp_path) == [".out.txt.partial", ".out.txt.partial.json", "in.txt"]


def translate_after_threads() -> None:
    """Translate in processes with two threads each, after threads of this process have worked."""
    torch.set_num_threads(4)
    assert torch.ones(1000, 1000).exp().sum() > 0
    translator = nmt.load(GOLDEN_MODEL, device="cpu", beam_size=1, batch_size=1)
    nmt.translate_file(translator, "in.txt", "out.txt", workers=2)


def test_threads_of_the_first_process_do_not_matter(
    tmp_path: Path, given_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is forked has no threads of OpenMP, and must not wait for them."""
    monkeypatch.chdir(tmp_path)
    with processes.start(program=translate_after_threads) as process:
        assert process.wait(timeout=60) == 0
    assert (tmp_path / "out.txt").read_text(encoding="utf-8").count("\n") == 70


def test_what_cannot_be_divided_is_refused(refusal: Refusal) -> None:
    assert "--workers" in refusal("translate", "a b", *OPTIONS, "--workers", 2)


def test_a_model_on_another_device_is_refused(tmp_path: Path, given_file: Path) -> None:
    translator = nmt.load(GOLDEN_MODEL, device="cpu")
    translator.model.to("meta")
    with pytest.raises(ConfigError, match=r"^`workers=2`: .* is on meta; add `device='cpu'`"):
        nmt.translate_file(translator, given_file, tmp_path / "out.txt", workers=2)
    with pytest.raises(ConfigError, match="`workers=0`: must be at least 1"):
        nmt.translate_file(translator, given_file, tmp_path / "out.txt", workers=0)
