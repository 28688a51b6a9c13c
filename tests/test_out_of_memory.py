"""Where memory runs out, one line says so, and what to lower only where that helps."""

import errno
import functools
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import processes
import pytest
import torch
from conftest import Project, train_arguments
from tqdm import tqdm

from nmt.config import DecodeSection
from nmt.evaluation.validator import Validator
from nmt.search.searcher import StepSearcher
from nmt.system.errors import DataError, OutOfMemory, is_out_of_memory, when_out_of_memory
from nmt.translation.stream import within_memory


def limit(where: str, size: int) -> None:
    """From now on, or from the first validation on, this process may take `size` MiB more than it has."""
    tqdm.get_lock()  # the first message would make it, for which there is no memory either
    if where == "command":
        processes.limit_memory(size)
        return
    original = Validator.validate

    def validate(*arguments: Any) -> Any:
        processes.limit_memory(size)
        return original(*arguments)

    Validator.validate = validate


def ask_for_too_much() -> None:
    """From now on, each search of this process asks torch for more memory than there is."""
    original = StepSearcher.search

    def search(*arguments: Any, **options: Any) -> Any:
        torch.empty(1 << 60, dtype=torch.uint8)
        return original(*arguments, **options)

    StepSearcher.search = search


def run_limited(where: str, size: int, *arguments: object) -> str:
    """The only error of an `nmt` command that may take `size` MiB more than its libraries, or its validation may."""
    return run_without_memory(functools.partial(limit, where, size), *arguments)


def run_without_memory(prepare: Callable[[], None], *arguments: object) -> str:
    """The only error of an `nmt` command that runs out of memory."""
    done = processes.run(*arguments, prepare=prepare)
    errors = [line for line in done.stderr.splitlines() if line.startswith("nmt: error: ")]
    assert (done.returncode, len(errors)) == (1, 1), done.stderr
    assert "Traceback" not in done.stderr
    return errors[0].removeprefix("nmt: error: ")


needs_linux = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")
HUGE_SCORE = "model.attention={score: additive, options: {size: 65536}}"
ONE_PAIR = ["train.max_updates=1", "train.batch.size=1", "decode.batch_size=50"]
BATCH_OR_SIZES = "out of memory; lower train.batch.size or the sizes under model"


@needs_linux
@pytest.mark.parametrize(
    ("where", "size", "settings", "expected"),
    [
        ("command", 400, ["train.batch.size=100000", HUGE_SCORE], BATCH_OR_SIZES),
        ("command", 400, ["model.encoder.hidden_size=16000"], "out of memory; lower the sizes under model"),
        ("validation", 64, [*ONE_PAIR, HUGE_SCORE], "out of memory; lower decode.batch_size or the sizes under model"),
    ],
)
def test_training(project: Project, tmp_path: Path, where: str, size: int, settings: list[str], expected: str) -> None:
    arguments = train_arguments(project, tmp_path / "run", *settings, "train.threads=1")
    assert run_limited(where, size, *arguments) == expected


@needs_linux
@pytest.mark.parametrize(
    ("command", "size", "options", "expected"),
    [
        ("translate", 200, ["--batch-size", "20000", "--beam-size", "20"], "lower --batch-size or --beam-size"),
        ("evaluate", 60, ["--batch-size", "20000", "--beam-size", "1"], "lower --batch-size"),
    ],
)
def test_searches(project: Project, tmp_path: Path, command: str, size: int, options: list[str], expected: str) -> None:
    text = tmp_path / "text"
    text.write_text("a b c d e f g h\n" * 20_000)
    files = {"translate": ["--input", text], "evaluate": ["--src", text, "--ref", text]}[command]
    found = run_limited("command", size, command, "--model", project.run, *files, *options)
    assert found == f"out of memory; {expected}"


@needs_linux
def test_preprocessing(project: Project, tmp_path: Path) -> None:
    source, words = tmp_path / "corpus", ["".join(letters) for letters in itertools.product("abcdefghij", repeat=4)]
    with source.open("w") as file:
        for number in range(100_000):
            line = " ".join(words[(number * step + number // 9973) % 9973] for step in (1, 3, 5, 7, 11, 13))
            file.write(f"{line}\t{line.upper()}\n")
    options = ["--source", source, "--output", tmp_path / "data", "--set", "data.workers=1"]
    found = run_limited("command", 12, "preprocess", "--config", project.config, *options)
    assert found == "out of memory; set data.first_lines to read less"
    assert [path.name for path in tmp_path.iterdir()] == ["corpus"]


def test_there_may_be_no_advice(project: Project) -> None:
    """Nothing makes the search for a single translation of a single sentence smaller."""
    command = ["translate", "a b", "--model", project.run, "--beam-size", "1"]
    assert run_without_memory(ask_for_too_much, *command) == "out of memory"


@pytest.mark.parametrize(
    ("batch_size", "beam_size", "lines", "expected"),
    [
        (64, 5, 100, "out of memory; lower `batch_size` or `beam_size`"),
        (64, 5, 1, "out of memory; lower `beam_size`"),
        (64, 1, 1, "out of memory"),
        (1, 1, 100, "out of memory"),
    ],
)
def test_options_that_make_a_search_smaller(batch_size: int, beam_size: int, lines: int, expected: str) -> None:
    options = DecodeSection(batch_size=batch_size, beam_size=beam_size)
    with pytest.raises(OutOfMemory) as caught, within_memory(options, lines):
        raise MemoryError
    assert str(caught.value) == expected


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory"), True),
        (RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 8 bytes"), True),
        (RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"), True),
        (RuntimeError("std::bad_alloc"), True),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), True),
        (FileNotFoundError(errno.ENOENT, "No such file", "out of memory.txt"), False),
        (DataError("out of memory.txt: does not exist"), False),
        (RuntimeError("shapes do not fit"), False),
    ],
)
def test_out_of_memory_errors_are_recognised(error: Exception, expected: bool) -> None:
    assert is_out_of_memory(error) is expected
    with pytest.raises(OutOfMemory if expected else type(error)), when_out_of_memory("lower something"):
        raise error


def test_the_innermost_advice_is_shown() -> None:
    with pytest.raises(OutOfMemory) as caught, when_out_of_memory("outer"), when_out_of_memory("inner"):
        raise MemoryError
    assert str(caught.value) == "out of memory; inner"
