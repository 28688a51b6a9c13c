"""What the demo says to do next works as it is printed."""

import shlex
import subprocess

from conftest import Cli, Project
from demo import next_commands


def test_the_next_commands_work_as_printed(here: Project, cli: Cli) -> None:
    """The first in a shell, the others as the shell would hand their words to the same program."""
    first, *others = next_commands(here.run)
    done = subprocess.run(first, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for command in others:
        program, *words = shlex.split(command)
        assert program == shlex.split(first)[0]
        outcome = cli(*words)
        assert outcome.code == 0, outcome.err
    pages = {page.name for page in here.run.parent.glob("*.html")}
    assert pages == {"reversal-attention.html", "reversal-report.html"}
