"""Where the time of a search goes: its steps by the number of hypotheses that they continue.

The batches are searched twice: one after the other, and as `Searcher.search` does it, where sentences that outlast most
of their batch wait for those of other batches.
"""

import argparse
import itertools
import time
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from tqdm import tqdm

import nmt
from benchmarks.arguments import Commands, add_parser, positive
from benchmarks.measuring import RunError
from benchmarks.tables import markdown
from nmt.evaluation.input_text import read_split
from nmt.layers.layout import Layout
from nmt.search.searcher import ModelSearcher
from nmt.search.stepper import Stepper

ENCODER = "encoder, reading sources"
OTHER = "between batches"
MOST = (1, 4, 16, 64)
"""Rows of the table: the largest number of hypotheses of a step in each; one more row has larger steps."""


class Event(NamedTuple):
    """Something that begins: it lasts until the next event begins.

    Attributes:
        name: Row of the table.
        seconds: When it begins.
    """

    name: str
    seconds: float


class TimedStepper:
    """A stepper that notes when each step begins; the search's own work on a step's result counts to the step."""

    def __init__(self, stepper: Stepper[Any]) -> None:
        self.stepper = stepper
        self.events: list[Event] = []

    def note(self, name: str) -> None:
        """Note that something begins."""
        self.events.append(Event(name, time.perf_counter()))

    def start(self, src: Tensor, src_lengths: Tensor) -> Any:
        """See `Stepper.start`."""
        self.note(ENCODER)
        state = self.stepper.start(src, src_lengths)
        self.note(OTHER)
        return state

    def step(self, words: Tensor, state: Any) -> tuple[Tensor, Tensor, Any]:
        """See `Stepper.step`."""
        self.note(row_name(len(words)))
        return self.stepper.step(words, state)

    def select(self, state: Any, rows: Tensor, layout: Layout, sentences: Tensor | None = None) -> Any:
        """See `Stepper.select`."""
        return self.stepper.select(state, rows, layout, sentences)

    def join(self, states: Sequence[Any], layout: Layout) -> Any:
        """See `Stepper.join`."""
        return self.stepper.join(states, layout)


class TimedSearcher(ModelSearcher):
    """A searcher whose stepper notes when each step begins."""

    timed: TimedStepper | None = None

    def _stepper(self, num_words: int) -> Stepper[Any]:
        if self.timed is None:
            self.timed = TimedStepper(super()._stepper(num_words))
        return self.timed


class Part(NamedTuple):
    """What a row of the table counts.

    Attributes:
        number: Steps, or batches that the encoder read.
        seconds: Of all of them.
    """

    number: int = 0
    seconds: float = 0.0


def add_command(commands: Commands) -> None:
    """Describe the arguments."""
    about = "the time of a search by the number of hypotheses of its steps"
    parser = add_parser(commands, measure_steps, "steps", about, "runs/benchmark/steps", rounds=3, threads=1)
    parser.add_argument("--model", type=Path, required=True, help="a run")
    parser.add_argument("--data", type=Path, required=True, help="its data directory")
    parser.add_argument("--sentences", type=positive, default=1000, help="of the test split, from its beginning")
    parser.add_argument("--beam", type=positive, default=1, help="hypotheses of a sentence; 1 is greedy search")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--ratio", type=positive, default=3, help="most tokens of a translation per source token")
    parser.add_argument("--batch-size", type=positive, default=64, help="sentences that are searched at once")


def measure_steps(arguments: argparse.Namespace) -> None:
    """Search in interleaved rounds, and print a table of the fastest round of each way."""
    torch.set_num_threads(arguments.threads)
    translator = nmt.load(
        arguments.model,
        beam_size=arguments.beam,
        batch_size=arguments.batch_size,
        precision=arguments.precision,
        overrides={"decode.max_length_ratio": arguments.ratio},
    )
    if not translator.searcher.models:
        raise RunError(f"{arguments.model}: is an export, whose steps another program computes; give a run")
    processor = translator.processor
    lines = [example.src for example in read_split(arguments.data, "test")[: arguments.sentences]]
    sources = [processor.src_vocabulary.encode(tokens) for tokens in processor.tokenize_source(lines)]
    sources = sorted(filter(None, sources), key=len)
    batches = [sources[n : n + arguments.batch_size] for n in range(0, len(sources), arguments.batch_size)]
    searcher = TimedSearcher(translator.searcher.models, translator.options, frozen=True)
    ways = {"batch by batch": batches, "together": [sources]}
    best: dict[str, dict[str, Part]] = {}
    searcher.search(batches[0])  # not measured: the weights are prepared
    for _ in tqdm(range(arguments.rounds), desc="searching", unit=" rounds", disable=None):
        for way, calls in ways.items():
            parts = measure(searcher, calls)
            if way not in best or total(parts).seconds < total(best[way]).seconds:
                best[way] = parts
    print(table(best), flush=True)


def measure(searcher: TimedSearcher, calls: Sequence[Sequence[Sequence[int]]]) -> dict[str, Part]:
    """Search the sources of each call, and add up what happened by rows of the table."""
    assert searcher.timed is not None
    searcher.timed.events = []
    searcher.timed.note(OTHER)
    for sources in calls:
        searcher.search(sources)
        searcher.timed.note(OTHER)
    return add_up(searcher.timed.events)


def add_up(events: Sequence[Event]) -> dict[str, Part]:
    """The number and the seconds of the events of each name; the last one only ends that before it."""
    parts: dict[str, Part] = {}
    for event, following in itertools.pairwise(events):
        part = parts.get(event.name, Part())
        parts[event.name] = Part(part.number + 1, part.seconds + following.seconds - event.seconds)
    return parts


def row_name(hypotheses: int) -> str:
    """The row of a step that continues so many hypotheses."""
    return STEPS[bisect_left(MOST, hypotheses)]


def total(parts: dict[str, Part]) -> Part:
    """All steps, and the seconds of everything."""
    steps = sum(part.number for name, part in parts.items() if name in STEPS)
    return Part(steps, sum(part.seconds for part in parts.values()))


def table(ways: dict[str, dict[str, Part]]) -> str:
    """A Markdown table with the parts of each way of searching."""
    header = ["hypotheses of a step"]
    for way in ways:
        header += [f"steps, {way}", "seconds", "ms each"]
    rows = []
    for name in (*STEPS, ENCODER, OTHER, "all"):
        row = [name]
        for parts in ways.values():
            part = total(parts) if name == "all" else parts.get(name, Part())
            each = f"{1000 * part.seconds / part.number:.2f}" if part.number else "–"
            row += [f"{part.number:,}", f"{part.seconds:.2f}", each]
        rows.append(row)
    return markdown(header, rows)


def _step_names() -> list[str]:
    """The rows of the table for steps."""
    names = []
    least = 1
    for most in MOST:
        names.append(f"{least} to {most}" if least < most else f"{most}")
        least = most + 1
    return [*names, f"{least} or more"]


STEPS = _step_names()
