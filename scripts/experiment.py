"""Train the models behind the published scores, and keep a ledger of results.

python scripts/experiment.py run scripts/experiments/multi30k.toml --threads 2
python scripts/experiment.py opennmt scripts/experiments/tatoeba.toml --python PYTHON --minutes 60
python scripts/experiment.py tables --write

An experiment is a TOML file: a config, the corpus, seeds, and cells, each with settings of its own. `run` trains what
has no result yet, continues what was interrupted, and stores each result in a small JSON file of the ledger as soon as
it is known.
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.measuring import RunError
from experiments import opennmt, runs, tables

from nmt.errors import NmtError


def main() -> None:
    """Parse the arguments and run a command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for module in (runs, opennmt, tables):
        module.add_command(commands)
    arguments = parser.parse_args()
    try:
        arguments.run(arguments)
    except (NmtError, RunError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
