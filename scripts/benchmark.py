"""Measure this project on the machine it runs on: the figures of scripts/benchmarks/README.md that are about speed.

python scripts/benchmark.py preprocess --corpus deu-eng.zip
python scripts/benchmark.py workload --corpus deu-eng.zip --output workload
python scripts/benchmark.py train --workload workload --opennmt opennmt/bin/python --joeynmt joeynmt/bin/python
python scripts/benchmark.py limit --workload workload
python scripts/benchmark.py scale
python scripts/benchmark.py startup
python scripts/benchmark.py serve --model runs/sample --input data/sample/deu.txt
python scripts/benchmark.py quality --workload workload --opennmt opennmt/bin/python
"""

from __future__ import annotations

import argparse
import sys

from benchmarks import limit, preprocess, quality, scale, serve, startup, train, workload
from benchmarks.measuring import RunError

from nmt.errors import NmtError


def main() -> None:
    """Parse the arguments and run one benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for module in (preprocess, workload, train, limit, scale, startup, serve, quality):
        module.add_command(commands)
    arguments = parser.parse_args()
    try:
        arguments.run(arguments)
    except (NmtError, RunError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
