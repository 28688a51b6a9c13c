"""Measure the speed figures of scripts/benchmarks/README.md on this machine.

python scripts/benchmark.py preprocess --corpus deu-eng.zip
python scripts/benchmark.py workload --corpus deu-eng.zip --output workload
python scripts/benchmark.py train --workload workload --opennmt opennmt/bin/python --joeynmt joeynmt/bin/python
python scripts/benchmark.py limit --workload workload
python scripts/benchmark.py share --model runs/benchmark/decode/nmt-luong-lstm/run --input workload/test.en
python scripts/benchmark.py scale
python scripts/benchmark.py startup
python scripts/benchmark.py stream --model runs/tatoeba_small
python scripts/benchmark.py serve --model runs/sample --input data/sample/deu.txt
python scripts/benchmark.py quality --workload workload --opennmt opennmt/bin/python
python scripts/benchmark.py decode --workload workload --opennmt opennmt/bin/python --joeynmt joeynmt/bin/python
"""

from __future__ import annotations

import argparse
import sys

from benchmarks import decode, limit, preprocess, quality, scale, serve, share, startup, stream, train, workload
from benchmarks.measuring import RunError

from nmt.errors import NmtError


def main() -> None:
    """Parse the arguments and run one benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for module in (preprocess, workload, train, limit, scale, startup, serve, quality, decode, share, stream):
        module.add_command(commands)
    arguments = parser.parse_args()
    try:
        arguments.run(arguments)
    except (NmtError, RunError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
