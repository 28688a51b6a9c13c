"""Gather what scripts/benchmark.py gpu needs on a bare machine without a network: wheels, text and encoded data.

Here, where there is a network, with the output of scripts/benchmark.py workload:

    python scripts/prepare_gpu.py gather --workload workload --output build/gpu

There, where Python 3.12 and torch are, with a copy of this checkout and of build/gpu:

    python3 scripts/prepare_gpu.py install --prepared build/gpu
    PYTHONPATH=build/gpu/packages python3 scripts/benchmark.py gpu --prepared build/gpu
    PYTHONPATH=build/gpu/packages python3 scripts/benchmark.py gpu --prepared build/gpu --peers

Only what the machine lacks is installed. All of it together is smaller than 64 MiB: with --peers only if --without
names what the machine has, such as numpy and matplotlib.
"""

import argparse
import importlib.metadata
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

LIMIT = 64 << 20
"""Bytes of everything."""
MIB = 1 << 20
PYTHON = "3.12"
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
OURS = (
    *("pydantic", "typer", "rich", "pyyaml", "safetensors", "filelock", "tqdm", "psutil", "pooch", "sentencepiece"),
    *("sacrebleu", "matplotlib", "jinja2", "numpy", "pytest", "pytest-xdist", "hypothesis", "allpairspy"),
)
"""What this project needs for training and for its tests, but for PyTorch and spaCy."""
PEERS = (
    *("opennmt-py==3.5.1", "pyonmttok", "configargparse", "fasttext-wheel", "rapidfuzz", "pyahocorasick", "six"),
    *("joeynmt==2.3.0", "subword-nmt"),
)
"""Other toolkits, and those of their libraries that training imports, each without what it depends on."""


def main() -> None:
    """Run one command."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter, fromfile_prefix_chars="@")
    commands = parser.add_subparsers(required=True)
    about = "download wheels, and encode the data"
    gathering = commands.add_parser("gather", help=about, fromfile_prefix_chars="@")
    gathering.add_argument(
        "--workload", type=Path, required=True, metavar="DIR", help="output of benchmark.py workload"
    )
    gathering.add_argument("--output", type=Path, default=Path("build/gpu"), metavar="DIR")
    gathering.add_argument("--peers", action="store_true", help="add OpenNMT-py and JoeyNMT")
    text = "libraries that the machine has; @FILE: those of its pip list --format=freeze"
    gathering.add_argument("--without", nargs="*", default=[], metavar="NAME", help=text)
    gathering.set_defaults(run=gather)
    installing = commands.add_parser("install", help="install the wheels that this machine lacks")
    installing.add_argument("--prepared", type=Path, default=Path("build/gpu"), metavar="DIR")
    installing.set_defaults(run=install)
    arguments = parser.parse_args()
    arguments.run(arguments)


def gather(arguments: argparse.Namespace) -> None:
    """Fill the folder, and check its size.

    Raises:
        SystemExit: A command failed, or the folder is too large.
    """
    output: Path = arguments.output
    shutil.rmtree(output, ignore_errors=True)
    wheels = output / "wheels"
    wheels.mkdir(parents=True)
    run(download(OURS, wheels))
    # Peers would bring a PyTorch of their own; one that a machine cannot have is left out, and reported there.
    for peer in PEERS if arguments.peers else ():
        if subprocess.run([*download([peer], wheels), "--no-deps"], check=False).returncode:
            print(f"{peer}: has no wheel for Python {PYTHON}", file=sys.stderr)
    for wheel in sorted(wheels.glob("*.whl")):
        if name_of(wheel) in map(normalized, ["torch", *arguments.without]):
            wheel.unlink()
    shutil.copytree(arguments.workload, output / "workload")
    encode(output)
    check_size(output)


def download(names: Iterable[str], wheels: Path) -> list[str]:
    """The command that downloads wheels."""
    chosen = [f"--platform={platform}" for platform in PLATFORMS]
    target = ["--only-binary=:all:", f"--python-version={PYTHON}", "--implementation=cp", *chosen]
    return [sys.executable, "-m", "pip", "download", "--quiet", *target, "--dest", str(wheels), *names]


def encode(output: Path) -> None:
    """Preprocess the workload as all benchmarks do."""
    from benchmarks import ours  # which the other command does without

    ours.prepare_workload(ours.write_config(output), output / "workload", output / "data", threads=1)


def run(command: Sequence[str]) -> None:
    """Run a command.

    Raises:
        SystemExit: It failed.
    """
    if code := subprocess.run(command, check=False).returncode:
        sys.exit(f"error: {' '.join(command)}: exit code {code}")


def check_size(output: Path) -> int:
    """Print and return the bytes of a folder.

    Raises:
        SystemExit: They are too many.
    """
    sizes = {path.relative_to(output): path.stat().st_size for path in output.rglob("*") if path.is_file()}
    total = sum(sizes.values())
    print(f"{output}: {total / MIB:.1f} MiB in {len(sizes)} files")
    if total >= LIMIT:
        largest = sorted(sizes, key=lambda path: -sizes[path])[:5]
        parts = ", ".join(f"{path} {sizes[path] / MIB:.1f} MiB" for path in largest)
        sys.exit(f"error: {output}: must be below {LIMIT / MIB:.0f} MiB; leave out by --without: {parts}")
    return total


def install(arguments: argparse.Namespace) -> None:
    """Install the wheels of libraries that are missing here, without a network."""
    wheels = sorted((arguments.prepared / "wheels").glob("*.whl"))
    if not wheels:
        sys.exit(f"error: {arguments.prepared}: has no wheels; make it with: prepare_gpu.py gather")
    missing = [wheel for wheel in wheels if not is_installed(name_of(wheel))]
    print(f"installing {len(missing)} of {len(wheels)} libraries: {', '.join(map(name_of, missing)) or 'none'}")
    if missing:
        target = str(arguments.prepared / "packages")
        options = ["--quiet", "--no-index", "--no-deps", "--upgrade", "--target", target]
        run([sys.executable, "-m", "pip", "install", *options, *map(str, missing)])


def is_installed(name: str) -> bool:
    """True if this Python has a library of that name."""
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def name_of(wheel: Path) -> str:
    """The name of the library of a wheel, normalised."""
    return normalized(wheel.name.partition("-")[0])


def normalized(name: str) -> str:
    """A name as registries compare it."""
    return re.sub(r"[-_.]+", "-", name.partition("==")[0]).lower()


if __name__ == "__main__":
    main()
