"""The command `nmt`; `python -m nmt` is the same."""

import sys

from nmt.system.signals import exit_on_interrupt
from nmt.system.tuning import tune_process


def main() -> None:
    """Run the command line."""
    exit_on_interrupt()
    if "torch" not in sys.modules:  # as in a process that is forked from one that has it
        tune_process()
    from nmt.interface.app import main as run

    run()


if __name__ == "__main__":
    main()
