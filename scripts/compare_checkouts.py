"""Run the same commands in two checkouts on one machine, and compare everything that they write.

    python scripts/compare_checkouts.py OLD NEW --work FOLDER

OLD and NEW are folders with the package `nmt`; this Python runs both. Each runs the steps below in a folder of its own;
files are then compared byte by byte but for times, and weights tensor by tensor. The later one also continues a run,
and uses data and models, of the earlier one. A step that is named in no line of the output did the same. Exit code 1:
something differs.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from safetensors.numpy import load_file

ROOT = Path(__file__).resolve().parent.parent
REAL = Path(os.environ.get("NMT_BENCH_DATA", ROOT.parent / "shared/data")) / "tatoeba-deu-eng-2018-05-13.zip"
SMALL = "train.max_updates=50 train.validation.every=25 train.log_every=5 train.threads=1"
LUONG = "model.decoder.order=luong model.attention.score=general"
MODELS = {
    "bahdanau": "train.precision=float32",
    "bahdanau_bf16": "train.precision=bfloat16",
    "luong": f"{LUONG} train.precision=float32",
    "luong_bf16": f"{LUONG} train.precision=bfloat16",
    "feeding": f"{LUONG} model.decoder.input_feeding=true model.decoder.cell=lstm model.encoder.cell=lstm",
    "local": f"{LUONG} model.attention.window.name=local_p",
    "coverage": "model.attention.past.name=coverage",
    "sgd": "train.optimizer.name=sgd train.optimizer.momentum=0.9 train.schedule.name=cosine train.ema_decay=0.99",
    "heads": "model.attention.heads=4 train.batch.accumulate=2",
    "bpe": "text.tokenizer=subword text.subword.vocabulary_size=400",
}
"""Settings of small models, trained for 50 updates."""
VARYING = re.compile(
    r'("?[\w ]*(?:seconds|minutes|time|per second|_per_second|memory|peak|created|took)[\w ]*"?: )[^,}\n]+'
    r"|\d+(?:\.\d+)? (?:s|seconds|minutes|MiB|sentences/s)\b|\d\d:\d\d(?::\d\d)?|\d{4}-\d\d-\d\d"
)
"""What differs between two runs of one checkout."""


def sets(settings: str) -> str:
    """Settings as options."""
    return "".join(f" --set {setting}" for setting in settings.split())


def steps() -> Iterator[tuple[str, str]]:
    """Names and arguments of the commands."""
    yield "preprocess", "preprocess --config sample --source sample.txt"
    yield "preprocess_bpe", f"preprocess --config sample --source sample.txt --output bpe {sets(MODELS['bpe'])}"
    if REAL.exists():
        yield "preprocess_real", f"preprocess --config tatoeba_small --source {shlex.quote(str(REAL))} --output real"
        yield "data_real", "data real"
    for name, settings in MODELS.items():
        data = "--data bpe" if name == "bpe" else ""
        yield f"train_{name}", f"train --config sample {data} --output runs/{name} {sets(SMALL)} {sets(settings)}"
    yield "train_stopped", f"train --config sample --output runs/stopped {sets(SMALL.replace('=50', '=25'))}"
    yield from reading()


def reading() -> Iterator[tuple[str, str]]:
    """Commands that use data and runs which exist."""
    yield "resumed", f"train --config sample --output runs/stopped --resume {sets(SMALL)}"
    for name in MODELS:
        yield f"greedy_{name}", f"translate --model runs/{name} --input lines.txt --beam-size 1"
        beam = "--beam-size 5 --format jsonl --with-attention --n-best 2"
        yield f"beam_{name}", f"translate --model runs/{name} --input lines.txt {beam}"
    yield "ensemble", "translate --model runs/bahdanau --model runs/luong --input lines.txt --format nbest --n-best 2"
    yield "sampling", "translate --model runs/luong --input lines.txt --set decode.sampling.temperature=0.8"
    files = "--json scores.json --hypotheses hypotheses.txt --references references.txt"
    yield "evaluate", f"evaluate --model runs/luong --breakdown --attention {files} --against runs/bahdanau"
    yield "attention", "attention --model runs/luong --split valid --sample 20 --json attention.json"
    yield "attention_page", "attention --model runs/luong --split valid --sample 5 --output attention.html"
    yield "explain", "explain 'I am old.' --model runs/luong"
    yield "score", "score --model runs/luong --src lines.txt --tgt lines.txt"
    yield "report", "report --model runs/luong --output report.html"
    yield "average", "average runs/luong runs/luong_bf16 --output averaged"
    yield "config", "config show tatoeba_small"
    yield "help", "--help"


def run(checkout: Path, folder: Path, name: str, arguments: str) -> None:
    """Run one command in a folder, with its output and exit code in `outputs/NAME`."""
    outputs = folder / "outputs"
    outputs.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "nmt", *shlex.split(arguments)]
    environment = {**os.environ, "PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1", "COLUMNS": "100"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    (outputs / name).write_bytes(done.stdout + f"exit code {done.returncode}\n".encode())
    if done.returncode:
        print(f"{folder.name} {name}: exit code {done.returncode}: {done.stderr.decode().strip()[-300:]}", flush=True)


def content(path: Path) -> Any:
    """What is compared of a file."""
    if path.suffix == ".safetensors":
        return {name: (tensor.dtype, tensor.tobytes()) for name, tensor in load_file(path).items()}
    data = path.read_bytes()
    if path.suffix in {".npy", ".png", ".model"}:
        return data
    text = data.decode("utf-8", errors="replace")
    if path.suffix == ".json":
        text = json.dumps(json.loads(text), indent=1, sort_keys=True)
    return VARYING.sub(r"\1-", text)


def run_all(checkout: Path, folder: Path, commands: Iterator[tuple[str, str]]) -> None:
    """Run commands in a folder; the run that was stopped is copied before another command continues it."""
    for name, arguments in commands:
        if name == "resumed":
            shutil.copytree(folder / "runs/stopped", folder / "stopped", dirs_exist_ok=True)
        run(checkout.resolve(), folder, name, arguments)


def compare(old: Path, new: Path, skipped: frozenset[str] = frozenset()) -> int:
    """Print the files that differ between two folders, but for those of `skipped` commands; their number."""
    files = {path.relative_to(folder) for folder in (old, new) for path in folder.rglob("*") if path.is_file()}
    names = files - {Path("outputs", name) for name in skipped}
    different = 0
    for name in sorted(names):
        if not (old / name).exists() or not (new / name).exists():
            print(f"{name}: only in {old.name if (old / name).exists() else new.name}")
        elif (before := content(old / name)) != (after := content(new / name)):
            print(f"{name}: {first_difference(before, after)}")
        else:
            continue
        different += 1
    print(f"{different} of {len(names)} files differ between {old} and {new}")
    return different


def first_difference(before: Any, after: Any) -> str:
    """The first line or tensor that differs."""
    if isinstance(before, dict):
        names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        return f"{len(names)} of {len(before)} tensors differ, the first is {names[0]}"
    if isinstance(before, str) and isinstance(after, str):
        pairs = zip([*before.splitlines(), ""], [*after.splitlines(), ""], strict=False)
        return next((f"{one[:150]!r} is now {other[:150]!r}" for one, other in pairs if one != other), "more lines")
    return "other bytes"


def prepare(folder: Path) -> Path:
    """An empty folder with the lines to translate."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    unseen = (ROOT / "data/sample/unseen.txt").read_text(encoding="utf-8").splitlines()
    shutil.copy(ROOT / "data/sample/deu.txt", folder / "sample.txt")
    pairs = (folder / "sample.txt").read_text(encoding="utf-8").splitlines()[:3000:60]
    lines = [*unseen, *(pair.split("\t")[0] for pair in pairs), "", "Zyx\u4f60 \U0001f600 a" + " b" * 60]
    (folder / "lines.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def main() -> None:
    """Run the steps in both, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--work", type=Path, required=True, help="folder for everything that is written")
    parser.add_argument("--keep-old", action="store_true", help="use what OLD wrote there before")
    given = parser.parse_args()
    old, new, crossed = (given.work.resolve() / name for name in ("old", "new", "crossed"))
    if not given.keep_old:
        prepare(old)
        run_all(given.old, old, steps())
    prepare(new)
    run_all(given.new, new, steps())
    shutil.rmtree(crossed, ignore_errors=True)
    shutil.copytree(old, crossed)
    shutil.rmtree(crossed / "runs/stopped")
    shutil.move(crossed / "stopped", crossed / "runs/stopped")
    for path in (crossed / "averaged", crossed / "outputs"):
        shutil.rmtree(path)
    for name in ("scores.json", "hypotheses.txt", "references.txt", "attention.json", "attention.html", "report.html"):
        (crossed / name).unlink()  # these steps write them again
    run_all(given.new, crossed, reading())
    print("== a new run of everything")
    different = compare(old, new)
    print("== data, models and a stopped run of the old checkout, used by the new one")
    different += compare(old, crossed, frozenset(name for name, _ in steps()) - {name for name, _ in reading()})
    sys.exit(bool(different))


if __name__ == "__main__":
    main()
