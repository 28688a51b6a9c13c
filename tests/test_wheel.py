"""The wheel holds all that the commands need: it is built, unpacked read-only away from the checkout, and used."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from nmt.system.files import PACKAGE

SETTINGS = [
    *("data.first_lines=100", "data.split.valid_size=10", "data.split.test_size=10", "model.embedding_size=8"),
    *("model.encoder.hidden_size=8", "model.decoder.hidden_size=8", "train.max_updates=4", "train.device=cpu"),
]
PROGRAM = """
import json, os, sys
from importlib.metadata import entry_points

commands, *folders = sys.argv[1:]
sys.path += folders
(script,) = entry_points(group="console_scripts", name="nmt")
main = script.load()
assert sys.modules["nmt"].__path__ == [folders[0] + "/nmt"]
assert os.geteuid() == 0 or not os.access(folders[0], os.W_OK)
for command in json.loads(commands):
    sys.argv = ["nmt", *command]
    try:
        main()
    except SystemExit as leaving:
        assert not leaving.code, command
"""
"""The script of the wheel, called with several commands in a process that knows the wheel and its libraries alone."""
CAPABILITIES = "-dac_override,-dac_read_search,-fowner"


def without_privileges() -> list[str]:
    """What a command begins with so that root, too, may not write where the permissions say no."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        return []
    return ["setpriv", f"--bounding-set={CAPABILITIES}", f"--inh-caps={CAPABILITIES}"]


def run(*command: object, folder: Path) -> str:
    """Standard output of a program without anything of this checkout in its environment."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "COV_"))}
    done = subprocess.run([*map(str, command)], env=environment, cwd=folder, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


def test_the_wheel_runs_the_four_commands(tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="building a wheel needs hatchling: pip install hatchling")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path, folder=PACKAGE.parent)
    packages, here = tmp_path / "packages", tmp_path / "here"
    here.mkdir()
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        wheel.extractall(packages)
    assert (packages / "nmt/py.typed").is_file()
    folders = [packages, *(path for path in packages.rglob("*") if path.is_dir())]
    settings = ["--config", "sample", *(part for setting in SETTINGS for part in ("--set", setting))]
    commands = [["preprocess", *settings], ["train", *settings], ["evaluate"], ["translate", "I am old.", "-o", "out"]]
    libraries = [path for path in sys.path if path.endswith("-packages")]  # without their .pth files
    python = [*without_privileges(), sys.executable, "-I", "-S", "-c", PROGRAM]
    for folder in folders:
        folder.chmod(0o555)
    try:
        said = run(*python, json.dumps(commands), packages, *libraries, folder=here)
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert said.startswith("BLEU ")
    assert (here / "out").read_text(encoding="utf-8").count("\n") == 1
    assert sorted(path.name for path in here.iterdir()) == ["data", "out", "runs"]
