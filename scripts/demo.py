"""Run all steps on the bundled sample: preprocess, train, evaluate, translate, draw attention.

Usage: python scripts/demo.py

The run is stored where the commands find it: afterwards, `nmt translate "..."` uses its model.
"""

import argparse
import shlex
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def nmt(*arguments: str | Path) -> str:
    """Run one `nmt` command, show it, and return what it printed to standard output."""
    words = [str(argument) for argument in arguments]
    print("\n$ nmt " + " ".join(f'"{word}"' if " " in word else word for word in words), flush=True)
    done = subprocess.run([sys.executable, "-m", "nmt", *words], stdout=subprocess.PIPE, encoding="utf-8", check=False)
    print(done.stdout, end="", flush=True)
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout


def next_commands(run: Path) -> list[str]:
    """Commands to go on with, as a shell in the working folder takes them."""
    program, shown = Path(sys.executable).with_name("nmt"), run.with_name(f"{run.name}-")
    program = program.relative_to(Path.cwd()) if program.is_relative_to(Path.cwd()) else program
    commands = [
        ["translate", "I am old.", "--model", run],
        ["attention", "--split", "test", "--model", run, "--output", f"{shown}attention.html"],
        ["report", "--model", run, "--output", f"{shown}report.html"],
    ]
    return [shlex.join(map(str, [program, *command])) for command in commands]


def main() -> None:
    """Run the demo."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("data/prepared/demo"), help="data directory to write")
    parser.add_argument("--output", type=Path, default=Path("runs/demo"), help="run directory to write")
    arguments = parser.parse_args()
    data, run, begin = arguments.data, arguments.output, time.perf_counter()
    # Beside the run directory, which --overwrite replaces only if nothing else is in it.
    heatmap, test = run.with_name(f"{run.name}-attention.png"), run.with_name(f"{run.name}-test.json")
    nmt("preprocess", "--config", "sample", "--output", data, "--overwrite")
    nmt("train", "--config", "sample", "--data", data, "--output", run, "--overwrite")
    scores = nmt("evaluate", "--model", run, "--json", test, "--no-short-inputs", "--overwrite")
    unseen = [line.split("\t") for line in (ROOT / "data/sample/unseen.txt").read_text("utf-8").splitlines()]
    for source, reference in unseen:
        nmt("translate", source, "--model", run)
        print(f"    reference: {reference}")
    nmt("translate", unseen[0][0], "--model", run, "--attention", heatmap, "--overwrite")
    print(f"\ndone in {time.perf_counter() - begin:.0f} s")
    parts = {"data directory": data, "run directory": run, "model": run / "best"}
    parts |= {"learning curve": run / "learning_curve.png", "attention heatmap": heatmap, "test scores": test}
    for what, path in parts.items():
        print(f"{what + ':':19}{path}")
    print(" ".join(scores.splitlines()[0].split()[:2]))
    print("\nnext: translate, see where the model looks, and read a report", *next_commands(run), sep="\n")


if __name__ == "__main__":
    main()
