"""Measures this project on the machine it runs on; every table in README that is about speed comes from here.

python scripts/benchmark.py preprocess --corpus deu-eng.zip
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from nmt.corpus.sources import open_corpus, read_pairs

INTERVAL = 0.25  # seconds between two looks at the memory
MIB = 1 << 20


def main() -> None:
    """Parse the arguments and run one benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    preprocess = commands.add_parser("preprocess", help="pairs a second and peak memory as the corpus grows")
    preprocess.add_argument("--corpus", type=Path, required=True, help="tab-separated pairs, plain or compressed")
    preprocess.add_argument("--pairs", type=int, nargs="+", default=[169_813, 1_000_000, 3_000_000])
    preprocess.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    preprocess.add_argument("--config", default="tatoeba")
    preprocess.add_argument("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE")
    preprocess.add_argument("--rounds", type=int, default=1)
    preprocess.set_defaults(run=benchmark_preprocess)
    arguments = parser.parse_args()
    arguments.run(arguments)


def benchmark_preprocess(arguments: argparse.Namespace) -> None:
    """Preprocess corpora of growing size with different numbers of processes.

    A corpus is made larger by repeating it, each sentence with the number of the repetition at its end, so that
    no pair is a duplicate.
    """
    pairs = read_pairs(open_corpus([arguments.corpus]).train)
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
                command = [sys.executable, "-m", "nmt", "preprocess", "--config", arguments.config]
                command += ["--source", str(corpus), "--output", str(Path(folder) / "data"), "--overwrite"]
                overrides = [f"data.workers={workers}", *arguments.overrides]
                command += itertools.chain.from_iterable(("--set", override) for override in overrides)
                runs = [measure(command) for _ in range(arguments.rounds)]
                seconds = statistics.median(run[0] for run in runs)
                peak = statistics.median(run[1] for run in runs)
                print(
                    f"| {number:,} | {workers} | {seconds:.1f} | {number / seconds:,.0f} | {peak / MIB:,.0f} |",
                    flush=True,
                )


def measure(command: list[str]) -> tuple[float, int]:
    """Run a command to its end.

    Returns:
        Wall-clock seconds, and the peak of the memory of all its processes together, in bytes: their proportional
        set sizes, in which a page that several share counts once. Linux only.

    Raises:
        SystemExit: The command failed; it has said why.
    """
    begin = time.perf_counter()
    peak = 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            peak = max(peak, sum(map(proportional_size, tree(process.pid))))
            time.sleep(INTERVAL)
        seconds = time.perf_counter() - begin
        errors = process.stderr.read() if process.stderr else ""
    if process.returncode:
        sys.exit(f"{' '.join(command)}\n{errors}")
    return seconds, peak


def tree(pid: int) -> Iterator[int]:
    """A process and all that came from it."""
    yield pid
    try:
        children = [Path(task, "children").read_text().split() for task in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:  # it has ended
        return
    for child in itertools.chain.from_iterable(children):
        yield from tree(int(child))


def proportional_size(pid: int) -> int:
    """Proportional set size of a process in bytes; 0 once it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


if __name__ == "__main__":
    main()
