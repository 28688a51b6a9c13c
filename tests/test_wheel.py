"""The wheel holds all that the commands need: it is built, installed read-only away from the checkout, and used."""

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from nmt.system.files import PACKAGE

CHECKOUT = PACKAGE.parent
SMALL = [
    *("data.first_lines=300", "data.split.valid_size=10", "data.split.test_size=10", "model.embedding_size=8"),
    *("model.encoder.hidden_size=8", "model.decoder.hidden_size=8", "train.max_updates=20", "train.device=cpu"),
]


CAPABILITIES = "-dac_override,-dac_read_search,-fowner"


def without_privileges() -> list[str]:
    """What a command begins with so that root, too, may not write where the permissions say no."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        return []
    return ["setpriv", f"--bounding-set={CAPABILITIES}", f"--inh-caps={CAPABILITIES}"]


def run(*command: object) -> subprocess.CompletedProcess[str]:
    """A program without anything of this checkout in its environment."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "COV_"))}
    done = subprocess.run([*map(str, command)], env=environment, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folder of the commands of an environment with the wheel, and with the libraries of this one."""
    pytest.importorskip("hatchling", reason="building a wheel needs hatchling: pip install hatchling")
    root = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", root, CHECKOUT)
    (wheel,) = root.glob("*.whl")
    environment = root / "environment"
    venv.create(environment, symlinks=True)
    python = environment / "bin/python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", "--quiet", wheel)
    (packages,) = environment.glob("lib/python*/site-packages")
    # These folders are searched, but their own .pth files, of which one may lead to the checkout, are not read.
    libraries = [path for path in sys.path if path.endswith("-packages")]
    (packages / "libraries.pth").write_text("\n".join(libraries) + "\n", encoding="utf-8")
    folders = [folder for folder in environment.rglob("*") if folder.is_dir() and not folder.is_symlink()]
    for folder in folders:
        folder.chmod(0o555)
    yield python.parent
    for folder in folders:
        folder.chmod(0o755)


def test_the_wheel_runs_the_four_commands(commands: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    nmt = [*without_privileges(), commands / "nmt"]
    settings = [part for setting in SMALL for part in ("--set", setting)]
    where = run(commands / "python", "-c", "import nmt; print(nmt.__file__)").stdout
    assert Path(where.strip()).is_relative_to(commands.parent)
    assert (Path(where.strip()).parent / "py.typed").is_file()
    touch = subprocess.run([*without_privileges(), "touch", Path(where.strip()).parent / "new"], check=False)
    assert touch.returncode != 0 or os.geteuid() == 0

    run(*nmt, "preprocess", "--config", "sample", *settings)
    run(*nmt, "train", "--config", "sample", *settings)
    assert run(*nmt, "evaluate").stdout.startswith("BLEU ")
    assert run(*nmt, "translate", "I am old.").stdout.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "runs"]
