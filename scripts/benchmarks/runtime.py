"""Translation speed with random weights, compared with CTranslate2: the same sizes, batches and output lengths."""

import argparse
import json
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import ours
from benchmarks.arguments import Commands, add_parser, positive
from benchmarks.limit import mean_length
from benchmarks.measuring import MIB, Outcome, RunError, environment, run
from benchmarks.systems import System, list_systems
from benchmarks.tables import counts, markdown, ratio
from benchmarks.train import Results, choose, overall, run_rounds
from benchmarks.workload import check_workload, read_lines, write_lines

WORDS = 8000
"""Words of each vocabulary, with four special ones."""
BEAMS = (1, 5)
FORMATS = {"default": "float32", "bf16": "bfloat16", "int8": "int8"}
PEERS = [
    System("ctranslate2-int8", "CTranslate2", "transformer", "Transformer", "", "int8"),
    System("ctranslate2", "CTranslate2", "transformer", "Transformer", "", "default"),
]


@dataclass(frozen=True)
class Search(System):
    """A row: a system that searches with a beam size."""

    beam: int


def add_command(commands: Commands) -> None:
    """Describe the arguments."""
    about, output = "translation speed with random weights, compared with CTranslate2", "runs/benchmark/runtime"
    peers = ("ctranslate2",)
    parser = add_parser(commands, benchmark_runtime, "runtime", about, output, rounds=5, workload=True, peers=peers)
    parser.add_argument("--batch-size", type=positive, default=64, help="sentences that each system translates at once")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="rows to run, or patterns such as 'nmt-*-beam-1'")


def benchmark_runtime(arguments: argparse.Namespace) -> None:
    """Run every row once per round, one at a time, and print a table of the medians.

    Raises:
        SystemExit: A row failed; the others are printed.
    """
    workload: Path = arguments.workload.resolve()
    check_workload(workload)
    output: Path = arguments.output.resolve()
    rows = choose(list_searches(peers=arguments.ctranslate2 is not None), arguments.only)
    lines = random_lines([len(line.split()) for line in read_lines(workload / "test.en")])
    common = {"config": str(ours.write_config(output)), "lines": str(output / "random.en"), "words": WORDS}
    common |= {"length": round(mean_length(workload / "train.de")), "threads": arguments.threads}
    common |= {"batch_size": arguments.batch_size}
    write_lines(output / "random.en", lines)

    def run_row(row: Search, folder: Path) -> Outcome:
        python = Path(sys.executable) if row.toolkit == "nmt" else arguments.ctranslate2
        return translate(row, python, common, folder.with_suffix(".log"))

    results, failed = run_rounds(rows, run_row, output, arguments.rounds)
    print(table([row for row in rows if row.name in results], results))
    if failed:
        sys.exit(f"missing from the table, as they failed: {', '.join(failed)}")


def list_searches(*, peers: bool) -> list[Search]:
    """All rows: ours, and those of CTranslate2."""
    kinds = ("transformer", "ssru", "hybrid", "luong")
    systems = [row for row in list_systems() if row.toolkit == "nmt" and row.kind in kinds and row.cell != "gru"]
    return [
        Search(**vars(system) | {"name": f"{system.name}-beam-{beam}", "beam": beam})
        for beam in BEAMS
        for system in [*systems, *(PEERS if peers else ())]
    ]


def random_lines(lengths: Sequence[int]) -> list[str]:
    """Lines of random words of a vocabulary, of given lengths."""
    generator = random.Random(1)
    return [" ".join(f"w{generator.randrange(WORDS - 4)}" for _ in range(length)) for length in lengths]


def translate(row: Search, python: Path, common: dict[str, Any], log: Path) -> Outcome:
    """Translate all lines in a process of its own, whose models and kernels are warm.

    Raises:
        RunError: It failed, or its translations have other lengths than all others.
    """
    script = Path(__file__).with_name(f"random_{row.toolkit.lower()}.py")
    request = common | {"precision": FORMATS[row.precision], "beam": row.beam}
    request["overrides"] = ours.OVERRIDES[row.kind]
    command = [str(python.absolute()), str(script), json.dumps(request)]
    finished = run(command, log, environment(common["threads"]))
    reply = json.loads(finished.text.splitlines()[-1])
    # The last of `length` words may be the end of the sentence, which is not written.
    if not common["length"] - 1 <= reply["shortest"] <= reply["longest"] <= common["length"]:
        raise RunError(f"has translations of {reply['shortest']} to {reply['longest']} words; log: {log}")
    speed = len(read_lines(Path(common["lines"]))) / reply["seconds"]
    return Outcome([speed], request["precision"], finished.peak)


def table(rows: Sequence[Search], results: Results) -> str:
    """All rows as Markdown; ours with the ratios to those of CTranslate2 with the same beam size."""
    speeds = {(row.toolkit, row.precision, row.beam): overall(results[row.name]) for row in rows}
    header = ["system", "model", "precision", "beam", "sentences/s", "rounds", "peak MiB"]
    cells = []
    for row in rows:
        speed, outcomes = overall(results[row.name]), results[row.name]
        others = [speeds.get(("CTranslate2", precision, row.beam)) for precision in ("int8", "default")]
        compared = ratio(speed, others) if row.toolkit == "nmt" else ""
        figures = [f"{speed:,.0f}", counts(outcome.speed for outcome in outcomes)]
        peak = max(outcome.peak for outcome in outcomes)
        cells.append([row.toolkit, row.description, outcomes[0].precision, str(row.beam), *figures])
        cells[-1] += [f"{peak / MIB:,.0f}", compared]
    return markdown([*header, "× CTranslate2, int8 / float32"], cells)
