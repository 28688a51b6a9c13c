"""Run all steps on the bundled sample: preprocess, train, evaluate, translate, draw attention.

Usage: python scripts/demo.py

The run is stored where the commands find it: afterwards, `nmt translate "..."` uses its model.
"""

import argparse
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


def main() -> None:
    """Run the demo."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("data/prepared/demo"), help="data directory to write")
    parser.add_argument("--output", type=Path, default=Path("runs/demo"), help="run directory to write")
    arguments = parser.parse_args()
    data, run, begin = arguments.data, arguments.output, time.perf_counter()
    heatmap, test = run / "attention.png", run / "test.json"
    nmt("preprocess", "--config", "sample", "--output", data, "--overwrite")
    nmt("train", "--config", "sample", "--data", data, "--output", run, "--overwrite")
    scores = nmt("evaluate", "--model", run, "--json", test)
    unseen = [line.split("\t") for line in (ROOT / "data/sample/unseen.txt").read_text("utf-8").splitlines()]
    for source, reference in unseen:
        nmt("translate", source, "--model", run)
        print(f"    reference: {reference}")
    nmt("translate", unseen[0][0], "--model", run, "--attention", heatmap)
    print(f"\ndone in {time.perf_counter() - begin:.0f} s")
    parts = {"data directory": data, "run directory": run, "model": run / "best"}
    parts |= {"learning curve": run / "learning_curve.png", "attention heatmap": heatmap, "test scores": test}
    for what, path in parts.items():
        print(f"{what + ':':19}{path}")
    print(" ".join(scores.splitlines()[0].split()[:2]))


if __name__ == "__main__":
    main()
