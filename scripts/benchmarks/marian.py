"""Marian, from the pymarian package: its arguments, and the speeds in its log.

Marian has one size for encoder and decoder, so with a decoder of 512 units each direction of the encoder also has 512,
and its decoder cell is conditional, with two cells per step; so it does more work per token than the others.
"""

import json
import re
from pathlib import Path

from benchmarks.systems import UPDATES_PER_REPORT

LANGUAGES = ("en", "de")


def arguments(workload: Path, folder: Path, updates: int, threads: int) -> list[str]:
    """Write the vocabularies and return the arguments of the program."""
    vocabularies = []
    for language in LANGUAGES:
        words = (workload / f"vocab.{language}").read_text(encoding="utf-8").split("\n")[:-1]
        path = folder / f"vocab.{language}.yml"
        lines = (
            f"{json.dumps(word, ensure_ascii=False)}: {place}\n" for place, word in enumerate(["</s>", "<unk>", *words])
        )
        path.write_text("".join(lines), encoding="utf-8")
        vocabularies.append(str(path))
    options: dict[str, object] = {"type": "s2s", "model": folder / "model.npz", "dim-emb": 256, "dim-rnn": 512}
    options |= {"enc-cell": "lstm", "enc-depth": 1, "dec-cell": "lstm", "dec-depth": 1, "dec-cell-base-depth": 2}
    options |= {"dropout-rnn": 0.2, "optimizer": "adam", "learn-rate": 0.001, "clip-norm": 1.0, "seed": 1}
    options |= {"cost-type": "ce-mean-words", "mini-batch": 64, "maxi-batch": 320, "max-length": 100}
    options |= {"cpu-threads": threads, "workspace": 1500, "after-batches": updates}
    options |= {"disp-freq": f"{UPDATES_PER_REPORT}u", "save-freq": "100000u"}
    flags = [part for key, value in options.items() for part in (f"--{key}", str(value))]
    files = [str(workload / f"train.{language}") for language in LANGUAGES]
    return ["train", *flags, "--sync-sgd", "--train-sets", *files, "--vocabs", *vocabularies]


def read_speeds(log: str) -> list[float]:
    """Target tokens per second of each report: `: 1208.50 words/s`."""
    return [float(figure) for figure in re.findall(r": ([\d.]+) words/s", log)]
