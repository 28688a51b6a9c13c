"""Tables of the ledger, written into the pages of the experiments and of the leaderboard."""

import argparse
import re
from collections.abc import Sequence
from itertools import groupby
from statistics import mean, stdev

from benchmarks.arguments import Commands
from benchmarks.tables import markdown

from experiments.ledger import LEDGER, Result, read_results
from nmt.system.files import write_text

MEASUREMENTS = LEDGER.parents[2] / "docs/measurements"
EXPERIMENTS = MEASUREMENTS / "experiments.md"
LEADERBOARD = MEASUREMENTS / "leaderboard.md"
HEADER = ["cell", "seeds", "precision", "weights (M)", "epochs", "tokens (M)", "cores", "minutes", "GFLOP/s"]


def add_command(commands: Commands) -> None:
    """Describe the arguments."""
    parser = commands.add_parser("tables", help="update the tables in docs/measurements, or print both pages")
    parser.add_argument("--write", action="store_true", help="change the files instead of printing them")
    parser.set_defaults(run=update_tables)


def update_tables(arguments: argparse.Namespace) -> None:
    """Update the tables, or print the updated files."""
    for path in (EXPERIMENTS, LEADERBOARD):
        text = with_tables(path.read_text(encoding="utf-8"))
        if arguments.write:
            write_text(path, text)
        else:
            print(text, end="")


def with_tables(text: str) -> str:
    """Replace the table after each line `<!-- results: EXPERIMENT -->`; `records` and `alignments` are other tables."""

    def fill(match: re.Match[str]) -> str:
        make = {"results": table_of, "records": leaderboard_of, "alignments": table_of_alignments}[match["kind"]]
        return f"{match['begin']}\n{make(read_results(match['name']))}\n<!-- end -->"

    return re.sub(
        r"(?s)(?P<begin><!-- (?P<kind>results|records|alignments): (?P<name>\w+) -->).*?<!-- end -->", fill, text
    )


def leaderboard_of(results: Sequence[Result]) -> str:
    """A row per training, the newest first."""
    rows = (
        [
            result.cell,
            str(result.seed),
            result.finished,
            result.revision,
            result.processor,
            f"{result.total_minutes:.1f}",
            f"{result.gflops:.0f}",
            f"{result.total_minutes * result.gflops:,.0f}",
            spread([result.bleu("valid")]),
        ]
        for result in sorted(results, key=lambda one: (one.finished, one.cell, one.seed), reverse=True)
    )
    header = ["record", "seed", "date", "commit", "cores", "minutes", "GFLOP/s", "minutes × GFLOP/s", "valid BLEU"]
    return markdown(header, rows)


def table_of(results: Sequence[Result]) -> str:
    """A row per cell: means over seeds, and the standard deviation of scores; the best validation BLEU first."""
    cells = [list(group) for _, group in groupby(sorted(results, key=lambda r: (r.cell, r.seed)), lambda r: r.cell)]
    cells.sort(key=lambda cell: -mean([result.bleu("valid") or 0.0 for result in cell]))
    return markdown([*HEADER, "valid BLEU", "test BLEU"], map(row_of, cells))


def table_of_alignments(results: Sequence[Result]) -> str:
    """A row per cell, the lowest error rate first: figures of each seed, and the reading of the first."""
    cells = [list(group) for _, group in groupby(sorted(results, key=lambda r: (r.cell, r.seed)), lambda r: r.cell)]
    cells.sort(key=lambda cell: mean([result.alignment_error_rate or 0.0 for result in cell]))
    rows = (
        [
            cell[0].cell,
            ", ".join(str(result.seed) for result in cell),
            f"{cell[0].parameters / 1e6:.1f}",
            f"{cell[0].updates:,}",
            ", ".join(str(result.equal) for result in cell),
            ", ".join(f"{result.alignment_error_rate:.2f}" for result in cell),
            cell[0].reading,
        ]
        for cell in cells
    )
    header = ["cell", "seeds", "weights (M)", "updates", "of 1,000 as in a reference", "alignment error rate"]
    return markdown([*header, "reading of the first seed"], rows)


def row_of(cell: Sequence[Result]) -> list[str]:
    """The row of a cell; minutes and rates are means over the seeds with equal precision and processor."""
    first = cell[0]
    setups = sorted({(result.precision, result.processor) for result in cell})
    parts = [[result for result in cell if (result.precision, result.processor) == setup] for setup in setups]
    return [
        first.cell,
        str(len(cell)),
        " / ".join(dict.fromkeys(precision for precision, _ in setups)),
        f"{first.parameters / 1e6:.1f}",
        f"{mean([result.epochs for result in cell]):.1f}",
        f"{mean([result.tokens / 1e6 for result in cell]):.1f}",
        " / ".join(processor for _, processor in setups),
        " / ".join(f"{mean([result.minutes for result in results]):.0f}" for results in parts),
        " / ".join(
            "–" if results[0].gpu else f"{mean([result.gflops for result in results]):.0f}" for results in parts
        ),
        spread([result.bleu("valid") for result in cell]),
        spread([result.bleu("test") for result in cell]),
    ]


def spread(values: Sequence[float | None]) -> str:
    """Mean and, of several, standard deviation; how many there are, if not all; a dash if there are none."""
    known = [value for value in values if value is not None]
    if not known:
        return "–"
    deviation = f" ± {stdev(known):.2f}" if len(known) > 1 else ""
    missing = f" ({len(known)} of {len(values)})" if len(known) < len(values) else ""
    return f"{mean(known):.2f}{deviation}{missing}"
