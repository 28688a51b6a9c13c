"""Training speed and memory as data, vocabulary, model and sentence length grow, one at a time."""

import argparse
import itertools
import random
import statistics
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path

from tqdm import tqdm

from benchmarks import ours
from benchmarks.arguments import Commands, add_parser, updates
from benchmarks.measuring import MIB, Outcome, environment, run
from benchmarks.tables import counts, markdown
from benchmarks.train import overall
from benchmarks.workload import write_lines

BASE_PAIRS = 20_000
KINDS = ("luong", "bahdanau")


@dataclass(frozen=True)
class Scale:
    """One point.

    Attributes:
        pairs: Training pairs.
        vocabulary: Words per side, without the special ones.
        hidden: Units of the decoder; each of the encoder's two directions has half of them.
        length: Words of every sentence.
    """

    pairs: int = BASE_PAIRS
    vocabulary: int = 8000
    hidden: int = 512
    length: int = 10

    @property
    def data_name(self) -> str:
        """Name of the data, shared by all points with the same data."""
        return f"{self.pairs}-{self.vocabulary}-{self.length}"


VARIED: dict[str, tuple[str, tuple[int, ...]]] = {
    "data": ("pairs", (BASE_PAIRS, 4 * BASE_PAIRS, 16 * BASE_PAIRS)),
    "vocabulary": ("vocabulary", (4000, 8000, 16_000, 32_000)),
    "hidden": ("hidden", (256, 512, 1024)),
    "length": ("length", (10, 25, 50, 100)),
}


def add_command(commands: Commands) -> None:
    """Describe the arguments."""
    about = "training speed and memory as data, vocabulary, model, sentences grow"
    parser = add_parser(commands, benchmark_scale, "scale", about, "runs/benchmark/scale", rounds=1)
    parser.add_argument("--only", nargs="+", choices=VARIED, default=list(VARIED), help="what to vary")
    parser.add_argument("--updates", type=updates, default=80, help="updates per run")


def benchmark_scale(arguments: argparse.Namespace) -> None:
    """Print a table; points shared by several rows are run once."""
    rows = [(name, value, point) for name in arguments.only for value, point in points(name)]
    distinct = list(dict.fromkeys(point for _, _, point in rows))
    folder: Path = arguments.output.resolve()
    found: dict[tuple[str, Scale], list[Outcome]] = {}
    runs = list(itertools.product(range(arguments.rounds), distinct, KINDS))
    with tqdm(runs, unit=" runs", disable=None) as bar:
        for number, point, kind in bar:
            bar.set_postfix_str(f"round {number + 1}, {kind}, {point}")
            data = prepare(folder, point, arguments.threads)
            sizes = [f"model.decoder.hidden_size={point.hidden}", f"model.encoder.hidden_size={point.hidden // 2}"]
            overrides = [*ours.OVERRIDES[kind], *sizes]
            run_folder = folder / "runs" / f"{kind}-{point.data_name}-{point.hidden}"
            config = data.parent / "benchmark.yaml"
            outcome = ours.train(config, data, run_folder, arguments.updates, arguments.threads, overrides)
            found.setdefault((kind, point), []).append(outcome)
            tqdm.write(f"{kind}, {point}: {outcome.speed:,.0f} target tokens/s, {outcome.peak / MIB:,.0f} MiB")
    header = ["varied", "value"]
    header += [f"{kind}, {what}" for kind in KINDS for what in ("target tokens/s", "rounds", "peak MiB")]
    print(markdown(header, ([name, f"{value:,}", *cells(found, point)] for name, value, point in rows)))


def points(name: str) -> Iterator[tuple[int, Scale]]:
    """The values of one varying parameter, and their points."""
    field, values = VARIED[name]
    for value in values:
        yield value, replace(Scale(), **{field: value})


def cells(found: dict[tuple[str, Scale], list[Outcome]], point: Scale) -> list[str]:
    """Speed, rounds and memory of a point, for each kind of model."""
    result = []
    for kind in KINDS:
        outcomes = found[kind, point]
        peak = statistics.median(outcome.peak for outcome in outcomes) / MIB
        result += [f"{overall(outcomes):,.0f}", counts(outcome.speed for outcome in outcomes), f"{peak:,.0f}"]
    return result


def prepare(folder: Path, point: Scale, threads: int) -> Path:
    """The data directory of a point, created if missing: random sentences as parallel files, preprocessed."""
    place = folder / point.data_name
    data = place / "data"
    if (data / "data.json").exists():
        return data
    values = deepcopy(ours.STANDARD)
    values["data"]["split"] = {"valid_size": 0, "test_size": 0}
    values["text"]["vocabulary"]["min_count"] = 1
    config = ours.write_config(place, values)
    files = [place / "train.src", place / "train.tgt"]
    for seed, path in enumerate(files, 1):
        write_lines(path, random_sentences(point, seed))
    sources = ours.sources_of(*files)
    command = ours.nmt("preprocess", "--config", config, *sources, "--output", data, "--overwrite")
    run(command, place / "preprocess.log", environment(threads))
    for path in files:
        path.unlink()
    return data


def random_sentences(point: Scale, seed: int) -> Iterator[str]:
    """Sentences of random words, in which every word occurs at least once if there is room for all of them."""
    generator = random.Random(seed)
    names = [f"w{number}" for number in range(point.vocabulary)]
    unused = iter(generator.sample(names, len(names)))
    for _ in range(point.pairs):
        chosen = list(itertools.islice(unused, point.length))
        chosen += generator.choices(names, k=point.length - len(chosen))
        yield " ".join(chosen)
