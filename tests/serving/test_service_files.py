"""The systemd unit and the Dockerfile of serving's README."""

import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from conftest import Cli

ROOT = Path(__file__).parents[2]
README = (ROOT / "nmt/serving/README.md").read_text(encoding="utf-8")
ANALYZER = shutil.which("systemd-analyze")


def block(language: str) -> str:
    """The code block of a language."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)
    return str(found)


@pytest.mark.skipif(ANALYZER is None, reason="needs systemd")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    assert ANALYZER is not None
    unit = tmp_path / "nmt.service"
    for text, expected in ((block("ini"), ""), (block("ini").replace("Restart=", "Restarts="), "Unknown key")):
        unit.write_text(text.replace("/opt/nmt/bin/nmt", sys.executable), encoding="utf-8")
        done = subprocess.run([ANALYZER, "verify", unit], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0
        assert expected in done.stderr if expected else done.stderr == ""


def test_their_commands_have_options_that_exist(cli: Cli) -> None:
    unit = re.search("^ExecStart=/opt/nmt/bin/(.*)$", block("ini"), re.MULTILINE)
    entry, arguments = (
        json.loads(text) for text in re.findall(r"^(?:ENTRYPOINT|CMD) (.*)$", block("dockerfile"), re.MULTILINE)
    )
    assert unit is not None
    for command in (shlex.split(unit[1]), [*entry, *arguments]):
        assert command[:2] == ["nmt", "serve"]
        options = [part for part in command if part.startswith("--")]
        assert options
        assert set(options) <= set(re.findall(r"--[a-z-]+", cli("serve", "--help").out))


def test_what_is_installed_is_what_the_project_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    text = block("dockerfile")
    torch = re.search(r"^TORCH \?= (.*)$", makefile, re.MULTILINE)
    assert torch is not None
    assert f"ARG TORCH={torch[1]}\n" in text
    assert text.startswith(f"FROM python:{project['requires-python'].removeprefix('>=')}")
    extras = re.findall(r"(?:\.whl\)|nmt/bin/pip install \"\.)\[(\w+)\]", README)
    assert extras == ["serve", "serve"]
    assert "serve" in project["optional-dependencies"]
    for copied in re.findall(r"^COPY (\S+) ", text, re.MULTILINE):
        assert (ROOT / copied).is_file()
