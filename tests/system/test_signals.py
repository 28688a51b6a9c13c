"""Signals that arrive while a library is at work."""

import functools
import signal
import time
from collections.abc import Callable
from types import FrameType

import processes
import pytest

import nmt.system.signals
from nmt.system.process import run_program
from nmt.system.signals import PATIENCE, handled_signals, raise_when_safe


class Ended(Exception):
    """What the handler raises."""


def handle(number: int, frame: FrameType | None) -> None:
    raise_when_safe(Ended(), number, frame)


def inside(seconds: float = 0.0) -> None:
    """A signal while numpy calls our function."""
    import numpy as np

    def work(row: object) -> int:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)  # asked twice, ended once
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(0.01)
        print("worked", flush=True)
        return 1

    with handled_signals(["SIGTERM"], handle):
        try:
            print(np.apply_along_axis(work, 0, np.zeros((1, 1))), flush=True)
            time.sleep(10)
        except Ended:
            print("ended")


def stuck() -> None:
    """A library that is at work for longer than one waits."""
    inside(PATIENCE + 5)


@pytest.mark.parametrize(("program", "lines"), [(inside, ["worked", "[1]", "ended"]), (stuck, ["ended"])])
def test_a_library_is_not_interrupted_for_a_while(program: Callable[[], None], lines: list[str]) -> None:
    done = processes.run(program=functools.partial(run_program, program))
    assert done.stdout.splitlines() == lines, done.stderr


@pytest.mark.parametrize(
    ("file", "library"),
    [
        ("/usr/lib/python3/dist-packages/numpy/_core/_methods.py", True),
        ("C:\\venv\\Lib\\site-packages\\torch\\nn\\modules\\module.py", True),
        ("<frozen importlib._bootstrap>", True),
        ("/venv/lib/python3.11/site-packages/torch/utils/_contextlib.py", False),  # of every inference_mode function
        ("/venv/lib/python3.11/site-packages/typer/_click/core.py", False),  # calls each command
        ("/venv/lib/python3.11/site-packages/nmt/search/search.py", False),
        ("/usr/lib/python3.11/codecs.py", False),  # waits for input
    ],
)
def test_what_is_a_library(file: str, library: bool) -> None:
    assert bool(nmt.system.signals._LIBRARY.search(file)) is library


def test_a_library_that_has_called_us_does_not_count() -> None:
    """As pytest has, and a notebook would."""
    with handled_signals(["SIGTERM"], handle):
        start = time.monotonic()
        with pytest.raises(Ended):
            signal.raise_signal(signal.SIGTERM)
        assert time.monotonic() - start < PATIENCE
