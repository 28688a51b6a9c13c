"""Preprocessing of growing corpora."""

import argparse
import statistics
import tempfile
from pathlib import Path

from benchmarks import ours
from benchmarks.arguments import Commands, positive
from benchmarks.measuring import MIB, measure
from nmt.corpus.sources import open_corpus, read_pairs


def add_command(commands: Commands) -> None:
    """Describe the arguments."""
    parser = commands.add_parser("preprocess", help="pairs per second and peak memory as the corpus grows")
    parser.add_argument("--corpus", type=Path, required=True, help="tab-separated pairs, plain or compressed")
    parser.add_argument("--pairs", type=positive, nargs="+", default=[169_813, 1_000_000, 3_000_000])
    parser.add_argument("--workers", type=positive, nargs="+", default=[1, 2])
    parser.add_argument("--config", default="tatoeba")
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--rounds", type=positive, default=1)
    parser.set_defaults(run=benchmark_preprocess)


def benchmark_preprocess(arguments: argparse.Namespace) -> None:
    """Preprocess corpora of growing size with different numbers of processes.

    A corpus is enlarged by repeating it, with the number of the repetition appended to each sentence, so that no pair
    is a duplicate.
    """
    pairs = read_pairs(open_corpus([arguments.corpus])["train"])
    print("| pairs | processes | seconds | pairs/s | peak memory, MiB |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for number in arguments.pairs:
            corpus = Path(folder) / "corpus.tsv"
            with corpus.open("w", encoding="utf-8", newline="\n") as file:
                for row in range(number):
                    repetition, place = divmod(row, len(pairs))
                    suffix = f" {repetition + 1}" if repetition else ""
                    file.write(f"{pairs[place].src}{suffix}\t{pairs[place].tgt}{suffix}\n")
            for workers in arguments.workers:
                command = ours.nmt("preprocess", "--config", arguments.config, "--source", corpus)
                command += ["--output", f"{folder}/data", "--overwrite"]
                command += ours.overriding([f"data.workers={workers}", *arguments.overrides])
                runs = [measure(command) for _ in range(arguments.rounds)]
                seconds, peak = map(statistics.median, zip(*runs, strict=True))
                cells = f"{number:,}", f"{workers}", f"{seconds:.1f}", f"{number / seconds:,.0f}", f"{peak / MIB:,.0f}"
                print(f"| {' | '.join(cells)} |", flush=True)
