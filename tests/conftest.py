"""Shared fixtures: a command line that runs in this process, and a model trained by the real commands."""

import itertools
import os
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from nmt.cli import main

REVERSAL_CONFIG = """
name: reversal
data:
  source: {source}
  split: {{valid_size: 50, test_size: 50}}
text: {{tokenizer: whitespace}}
model:
  embedding_size: 32
  dropout: 0.0
  encoder: {{cell: gru, hidden_size: 48}}
  decoder: {{cell: gru, hidden_size: 64, order: bahdanau}}
  attention: {{score: additive}}
train:
  epochs: 8
  batch: {{size: 32}}
  optimizer: {{learning_rate: 0.005}}
  schedule: {{name: cosine}}
  device: cpu
decode: {{beam_size: 3}}
"""


@dataclass(frozen=True)
class Outcome:
    """What a command left: exit code, standard output and standard error."""

    code: int
    out: str
    err: str


Cli = Callable[..., Outcome]


def call(*arguments: object) -> int:
    """Run `nmt` in this process and return its exit code."""
    before = sys.argv
    sys.argv = ["nmt", *map(str, arguments)]
    try:
        main()
    except SystemExit as leaving:
        return int(leaving.code or 0)
    finally:
        sys.argv = before
    return 0


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str]) -> Cli:
    """`cli("translate", ...)` runs a command and returns its outcome."""

    def run(*arguments: object) -> Outcome:
        capfd.readouterr()
        code = call(*arguments)
        sys.stdout.flush()
        return Outcome(code, *capfd.readouterr())

    return run


@dataclass(frozen=True)
class Project:
    """A working folder in which the reversal corpus was preprocessed and a model trained."""

    root: Path
    config: Path
    data: Path
    run: Path


def write_reversal_corpus(path: Path, number: int = 1500) -> None:
    """Distinct letter sequences and the same ones read backwards, 1 to 6 tokens, tab-separated."""
    letters = "abcdefgh"
    longer = random.Random(0)
    sequences = [list(s) for n in (1, 2, 3) for s in itertools.product(letters, repeat=n)]
    sequences += [longer.choices(letters, k=longer.randint(4, 6)) for _ in range(number - len(sequences))]
    lines = {" ".join(s) + "\t" + " ".join(reversed(s)).upper() for s in sequences}
    path.write_text("\n".join(sorted(lines)) + "\n", encoding="utf-8")


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The four real commands' first two, run once for all tests."""
    root = tmp_path_factory.mktemp("project")
    source, config = root / "corpus.tsv", root / "reversal.yaml"
    write_reversal_corpus(source)
    config.write_text(REVERSAL_CONFIG.format(source=source), encoding="utf-8")
    before = Path.cwd()
    os.chdir(root)
    try:
        assert call("preprocess", "--config", config) == 0
        assert call("train", "--config", config) == 0
    finally:
        os.chdir(before)
    return Project(root, config, root / "data/prepared/reversal", root / "runs/reversal")
