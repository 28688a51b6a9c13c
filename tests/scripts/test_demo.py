"""What the demo says to do next works as it is printed."""

import subprocess

from conftest import Project
from demo import next_commands


def test_the_next_commands_work_as_printed(here: Project) -> None:
    for command in next_commands(here.run):
        done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    pages = {page.name for page in here.run.parent.glob("*.html")}
    assert pages == {"reversal-attention.html", "reversal-report.html"}
