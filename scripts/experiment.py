"""Train the models behind the published scores, and keep a ledger of results.

python scripts/experiment.py run scripts/experiments/multi30k.toml --threads 2
python scripts/experiment.py opennmt scripts/experiments/tatoeba.toml --python PYTHON --minutes 60
python scripts/experiment.py test scripts/experiments/multi30k.toml --cell start
python scripts/experiment.py tables --write

An experiment is a TOML file: a config, the corpus, seeds, and cells, each with settings of its own. `run` trains what
has no result yet, continues what was interrupted, and stores each result in a small JSON file of the ledger as soon as
it is known.
"""

from benchmarks.arguments import run_command
from experiments import opennmt, runs, tables


def main() -> None:
    """Run one command."""
    run_command(__doc__, (runs, opennmt, tables))


if __name__ == "__main__":
    main()
