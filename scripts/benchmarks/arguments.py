"""Types of command-line arguments."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.measuring import RunError
from benchmarks.systems import UPDATES_PER_REPORT
from nmt.system.errors import NmtError
from nmt.system.signals import ENDING, handled_signals

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]
else:
    Commands = object


def run_command(description: str | None, modules: Iterable[Any]) -> None:
    """Parse the command line and run one command.

    Args:
        description: Text of the help.
        modules: Each adds a command by its `add_command`.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for module in modules:
        module.add_command(commands)
    arguments = parser.parse_args()
    try:
        with handled_signals(ENDING, signal.default_int_handler):
            arguments.run(arguments)
    except (NmtError, RunError) as error:
        sys.exit(f"error: {error}")
    except OSError as error:
        sys.exit(f"error: {error.filename}: {error.strerror}" if error.filename else f"error: {error}")
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)


def add_parser(
    commands: Commands,
    run: Callable[[argparse.Namespace], None],
    name: str,
    about: str,
    output: str,
    *,
    rounds: int | None = None,
    threads: int = 2,
    workload: bool = False,
    peers: Iterable[str] = (),
) -> argparse.ArgumentParser:
    """Add a command with the options that several have.

    Args:
        commands: What it is added to.
        run: What it does.
        name: Its name.
        about: Text of the help.
        output: Default of `--output`.
        rounds: Default of `--rounds`; None without this option.
        threads: Default of `--threads`.
        workload: Whether it needs the output of the workload command.
        peers: Other toolkits that it can measure: opennmt, joeynmt, marian.
    """
    parser = commands.add_parser(name, help=about)
    parser.set_defaults(run=run)
    if workload:
        parser.add_argument(
            "--workload", type=Path, required=True, metavar="DIR", help="output of the command workload"
        )
    for peer in peers:
        parser.add_argument(f"--{peer}", type=Path, metavar="PYTHON", help=f"a Python interpreter that has {peer}")
    if rounds:
        parser.add_argument("--rounds", type=positive, default=rounds, help="how often each measurement is made")
    parser.add_argument("--threads", type=positive, default=threads, help="CPU threads of each system")
    parser.add_argument("--output", type=Path, default=Path(output), help="folder for data, models and logs")
    return parser


def positive(text: str) -> int:
    """An integer of at least 1."""
    return _at_least(1, text)


def updates(text: str) -> int:
    """A number of updates that includes at least one report of the speed."""
    return _at_least(UPDATES_PER_REPORT, text)


def _at_least(smallest: int, text: str) -> int:
    if not text.isdecimal() or int(text) < smallest:
        raise argparse.ArgumentTypeError(f"must be an integer of at least {smallest}, found {text!r}")
    return int(text)
