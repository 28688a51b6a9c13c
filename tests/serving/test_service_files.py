"""The files of a service: systemd's unit, the Dockerfile and the compose file, and what the guide says about them."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import Cli

from nmt.serving.request_limits import Limits
from nmt.system.limits import KIB, MIB

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs/service"
GUIDE = (ROOT / "docs/guides/serving.md").read_text(encoding="utf-8")
UNIT = (FOLDER / "nmt.service").read_text(encoding="utf-8")
DOCKERFILE = (FOLDER / "Dockerfile").read_text(encoding="utf-8")
ANALYZER = shutil.which("systemd-analyze")


def entrypoint() -> tuple[list[str], list[str]]:
    """The command of the image, and the arguments that a user may replace."""
    entry, arguments = re.findall(r"^(?:ENTRYPOINT|CMD) (.*)$", DOCKERFILE, re.MULTILINE)
    return json.loads(entry), json.loads(arguments)


def read(name: str) -> Any:
    return yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))


@pytest.mark.skipif(ANALYZER is None, reason="needs systemd")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    assert ANALYZER is not None
    unit = tmp_path / "nmt.service"
    # In a user's mode it works in this folder, and not in /run, which a container need not have.
    surroundings = os.environ | {"XDG_RUNTIME_DIR": str(tmp_path)}
    for text, expected in ((UNIT, ""), (UNIT.replace("Restart=", "Restarts="), "Unknown key")):
        unit.write_text(text.replace("/opt/nmt/bin/nmt", sys.executable), encoding="utf-8")
        command = [ANALYZER, "--user", "verify", unit]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=surroundings)
        assert done.returncode == 0
        assert expected in done.stderr if expected else done.stderr == ""


def test_their_commands_have_options_that_exist(cli: Cli) -> None:
    unit = re.search("^ExecStart=/opt/nmt/bin/(.*)$", UNIT, re.MULTILINE)
    entry, arguments = entrypoint()
    assert unit is not None
    for command in (shlex.split(unit[1]), [*entry, *arguments]):
        assert command[:2] == ["nmt", "serve"]
        options = [part for part in command if part.startswith("--")]
        assert options
        assert set(options) <= set(re.findall(r"--[a-z-]+", cli("serve", "--help").out))


def test_what_is_installed_is_what_the_project_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    torch = re.search(r"^TORCH \?= (.*)$", makefile, re.MULTILINE)
    assert torch is not None
    assert f"ARG TORCH={torch[1]}\n" in DOCKERFILE
    assert f"${{TORCH:-{torch[1]}}}" == read("compose.yaml")["services"]["nmt"]["build"]["args"]["TORCH"]
    assert DOCKERFILE.partition("\nFROM ")[2].startswith(f"python:{project['requires-python'].removeprefix('>=')}")
    unit = GUIDE[GUIDE.index("## As a service") :]
    assert re.findall(r"pip install .*\"\.\[(\w+)\]\"$", unit, re.MULTILINE) == ["serve"]
    assert "\nARG EXTRAS=serve\n" in DOCKERFILE
    assert DOCKERFILE.count('".[$EXTRAS]"') == 1
    assert "serve" in project["optional-dependencies"]


def test_what_is_copied_can_be_installed(tmp_path: Path) -> None:
    for line in re.findall("^COPY (.*)$", DOCKERFILE, re.MULTILINE):
        *copied, place = line.split()
        for name in copied:
            source, target = ROOT / name, tmp_path / place
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, target)
    wheel = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", "wheels", "."]
    done = subprocess.run(wheel, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (made,) = (tmp_path / "wheels").iterdir()
    with zipfile.ZipFile(made) as files:
        assert {"nmt/serving/page.html", "nmt/shipped/configs/sample.yaml"} < set(files.namelist())


def test_what_is_copied_is_sent_to_docker() -> None:
    """The ignored files leave out everything else: data and runs can be large."""
    first, *others = (FOLDER / "Dockerfile.dockerignore").read_text(encoding="utf-8").split()
    copied = re.findall("^COPY (.*)$", DOCKERFILE, re.MULTILINE)
    names = {name for line in copied for name in line.split()[:-1]}
    assert (first, others[-1]) == ("*", "**/__pycache__")
    assert {name.removeprefix("!") for name in others[:-1]} == names


def test_prometheus_asks_the_server_that_the_compose_file_starts() -> None:
    services = read("compose.yaml")["services"]
    (job,) = read("prometheus.yaml")["scrape_configs"]
    ((target,),) = [config["targets"] for config in job["static_configs"]]
    (port,) = re.findall("^EXPOSE (.*)$", DOCKERFILE, re.MULTILINE)
    assert target == f"nmt:{port}"
    assert services["nmt"]["ports"] == [f"127.0.0.1:{port}:{port}"]
    (mounted,) = services["nmt"]["volumes"]
    assert mounted.endswith(f":{entrypoint()[1][-1]}:ro")
    assert (FOLDER / services["nmt"]["build"]["context"]).resolve() == ROOT
    assert (ROOT / services["nmt"]["build"]["dockerfile"]).is_file()
    assert services["prometheus"]["volumes"][0].startswith("./prometheus.yaml:")


def test_the_image_runs_as_a_user_with_a_number() -> None:
    """Kubernetes cannot tell otherwise that it is not root."""
    (user,) = re.findall("^USER (.*)$", DOCKERFILE, re.MULTILINE)
    assert int(user) > 0
    assert f"useradd --uid {user} " in DOCKERFILE


def test_the_service_starts_again_however_it_ends() -> None:
    assert "\nRestart=always\n" in UNIT


def test_the_proxy_lets_through_what_the_server_allows() -> None:
    (size,) = re.findall(r"client_max_body_size (\d+)m;", GUIDE)
    largest = max(Limits().max_body, Limits().max_file_bytes)
    assert largest + 64 * KIB <= int(size) * MIB < 1.2 * largest
