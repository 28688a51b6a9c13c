"""Signals that arrive while torch is at work."""

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import nmt
from nmt.signals import handled_signals, raise_when_safe, uninterrupted


class Ended(Exception):
    """What the handler raises."""


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    with handled_signals(["SIGTERM"], lambda number, frame: raise_when_safe(Ended())):
        yield


def test_a_handler_raises_at_once_outside_and_at_the_end_of_the_outer_block_inside() -> None:
    done = []
    with pytest.raises(Ended):
        signal.raise_signal(signal.SIGTERM)

    @uninterrupted()
    def work() -> None:
        with uninterrupted():
            signal.raise_signal(signal.SIGTERM)
            done.append("inner")
        signal.raise_signal(signal.SIGTERM)  # asked twice, ended once
        done.append("outer")

    with pytest.raises(Ended):
        work()
    assert done == ["inner", "outer"]
    with uninterrupted():
        done.append("next")
    assert done[-1] == "next"


def test_a_signal_wins_over_an_error_in_the_block() -> None:

    @uninterrupted()
    def fail() -> None:
        signal.raise_signal(signal.SIGTERM)
        raise ValueError

    with pytest.raises(Ended):
        fail()
    with pytest.raises(ValueError, match="alone"), uninterrupted():
        raise ValueError("alone")


def test_blocks_of_other_threads_delay_nothing() -> None:
    entered, leave = threading.Event(), threading.Event()

    def work() -> None:
        with uninterrupted():
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=work)
    thread.start()
    assert entered.wait(10)
    with pytest.raises(Ended):
        signal.raise_signal(signal.SIGTERM)
    leave.set()
    thread.join()


def test_a_search_is_not_interrupted_within_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    translator = nmt.load(Path(__file__).parent / "golden/model", device="cpu")
    search, done = translator.searcher._encode, []

    def encode(sources: object) -> object:
        signal.raise_signal(signal.SIGTERM)
        done.append(sources)
        return search(sources)

    monkeypatch.setattr(translator.searcher, "_encode", encode)
    with pytest.raises(Ended):
        translator.translate(["I am old."])
    assert len(done) == 1
