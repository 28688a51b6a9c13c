"""Shared fixtures: a command line that runs in this process, and a model trained by the real commands."""

import contextlib
import gc
import io
import itertools
import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from browser import Page, browsing
from filelock import FileLock
from hypothesis import settings
from safetensors.torch import load_file
from torch import Tensor

from nmt.drawing.charts import draw_learning_curve
from nmt.evaluation.metrics import compare_systems
from nmt.interface.app import main
from nmt.training import loop
from nmt.training.checkpoint import newest_checkpoint

GOLDEN_MODEL = Path(__file__).parent / "golden/model"
REVERSAL_CONFIG = """
name: reversal
data: {{source: {source}, split: {{valid_size: 50, test_size: 50}}}}
text: {{tokenizer: whitespace}}
model:
  embedding_size: 32
  dropout: 0.0
  encoder: {{cell: gru, hidden_size: 48}}
  decoder: {{cell: gru, hidden_size: 64, order: bahdanau}}
  attention: {{score: additive}}
train: {{epochs: 8, batch: {{size: 64}}, optimizer: {{learning_rate: 0.01}}, schedule: {{name: cosine}}, device: cpu}}
decode: {{beam_size: 3}}
"""

settings.register_profile("tests", deadline=None)  # a machine may be busy, and speed is measured elsewhere
settings.load_profile("tests")
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests and what they start are not under nohup, even if pytest is
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # nor in the background of a shell


# Thousands of collected tests and the modules of torch live to the end: without this, a fifth of the time goes to
# looking whether they are garbage.
gc.set_threshold(200_000, 20, 100)


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()


# Whatever a run could forget when it is resumed: random numbers of all kinds, patience, sums between two reports.
RANDOM_CONFIG = """
name: random
data: {{source: {source}, split: {{valid_size: 20, test_size: 20}}}}
text: {{tokenizer: whitespace}}
model:
  {{embedding_size: 8, dropout: 0.3, encoder: {{cell: gru, hidden_size: 8}}, decoder: {{cell: gru, hidden_size: 12}}}}
train:
  epochs: 2
  batch: {{size: 8}}
  optimizer: {{name: adam, learning_rate: 0.01}}
  schedule: {{name: plateau}}
  teacher_forcing: {{ratio: 0.7, unit: token}}
  noise: {{src_word_dropout: 0.1, tgt_word_dropout: 0.1}}
  validation: {{every: 7, metric: loss, patience: null}}
  checkpoint: {{every: 6, minutes: null}}
  log_every: 4
  device: cpu
"""
SHORTER = {
    "batch: {size: 8}": "batch: {size: 24}",
    "learning_rate: 0.01": "learning_rate: 0.02",
    "every: 7": "every: 3",
    "every: 6": "every: 4",
    "log_every: 4": "log_every: 2",
}
"""Changes of RANDOM_CONFIG for a run of a third of the updates, none of whose periods divides an epoch."""
UPDATES = 30  # of a run of RANDOM_CONFIG: 120 training pairs, 15 updates an epoch


@dataclass(frozen=True)
class Outcome:
    """What a command left: exit code, standard output and standard error."""

    code: int
    out: str
    err: str


Cli = Callable[..., Outcome]
Refusal = Callable[..., str]


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


@contextlib.contextmanager
def without_pictures() -> Iterator[pytest.MonkeyPatch]:
    """Pictures take most of the time where there is little data."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("nmt.drawing.charts.draw_learning_curve", lambda run: None)
        patched.setattr("nmt.corpus.data_report.draw_lengths", lambda lengths, path: path.touch())
        yield patched


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str]) -> Cli:
    """`cli("translate", ...)` runs a command and returns its outcome."""

    def run(*arguments: object) -> Outcome:
        capfd.readouterr()
        code = call(*arguments)
        sys.stdout.flush()
        return Outcome(code, *capfd.readouterr())

    return run


class Terminal(io.StringIO):
    """Keeps what is written to a terminal."""

    def isatty(self) -> bool:
        return True


def errors(text: str) -> list[str]:
    """The lines on standard error that tell of an error."""
    assert "Traceback" not in text
    assert "Exception ignored" not in text
    return [line for line in text.splitlines() if line.startswith("nmt: error: ")]


@pytest.fixture
def refusal(cli: Cli) -> Refusal:
    """`refusal("translate", ...)` runs a command that fails, and returns what its one line says."""

    def run(*arguments: object) -> str:
        outcome = cli(*arguments)
        assert outcome.code == 1
        (line,) = errors(outcome.err)
        assert line.isprintable()
        assert len(line) < 800
        assert "root:" not in line  # nothing of /etc/passwd is quoted
        return line.removeprefix("nmt: error: ")

    return run


@pytest.fixture(autouse=True)
def full_precision() -> Iterator[None]:
    """Every test multiplies as a fresh process does, whatever a test before it left half-way."""
    torch.set_float32_matmul_precision("highest")
    yield
    torch.set_float32_matmul_precision("highest")


def wait_until(condition: Callable[[], object], seconds: float = 60) -> None:
    """Wait until a condition is met in another thread or process."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the condition was not met in time"
        time.sleep(0.005)


def names(directory: Path) -> list[str]:
    """The names of what is in a folder, hidden ones too."""
    return sorted(path.name for path in directory.iterdir())


def tree(root: Path = Path()) -> dict[str, bytes]:
    """Every file below a folder, hidden ones too, by its path there."""
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


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


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder of this process, which several processes of a test run make only once and copy."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        folder = factory.mktemp(name)
        make(folder)
        return folder
    shared = factory.getbasetemp().parent / name
    with FileLock(f"{shared}.lock"):
        if not shared.exists():
            unfinished = factory.mktemp(name)
            make(unfinished)
            unfinished.rename(shared)
    return Path(shutil.copytree(shared, factory.getbasetemp() / name))


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The four real commands' first two, run once for all tests."""

    def make(root: Path) -> None:
        source = root / "corpus.tsv"
        write_reversal_corpus(source)
        (root / "reversal.yaml").write_text(REVERSAL_CONFIG.format(source=source), encoding="utf-8")
        with without_pictures() as patched:
            patched.chdir(root)
            assert call("preprocess", "--config", root / "reversal.yaml") == 0
            assert call("train", "--config", root / "reversal.yaml") == 0
        draw_learning_curve(root / "runs/reversal")  # once instead of at every validation

    root = made_once(tmp_path_factory, "project", make)
    config = root / "reversal.yaml"
    config.write_text(REVERSAL_CONFIG.format(source=root / "corpus.tsv"), encoding="utf-8")  # of this copy
    return Project(root, config, root / "data/prepared/reversal", root / "runs/reversal")


@pytest.fixture
def here(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A copy of the project, which a fault may hit, as the working folder."""
    shutil.copytree(project.root / "data", tmp_path / "data")
    shutil.copytree(project.root / "runs", tmp_path / "runs")
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path, project.config, Path("data/prepared/reversal"), Path("runs/reversal"))


@pytest.fixture(scope="session")
def random_data(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The data of the random project, whose run is not made yet."""
    root = tmp_path_factory.mktemp("random")
    source, config, data, run = root / "corpus.tsv", root / "random.yaml", root / "data", root / "run"
    write_reversal_corpus(source)
    lines = source.read_text(encoding="utf-8").splitlines(keepends=True)
    source.write_text("".join(random.Random(0).sample(lines, 160)), encoding="utf-8")
    config.write_text(RANDOM_CONFIG.format(source=source), encoding="utf-8")
    with without_pictures():
        assert call("preprocess", "--config", config, "--output", data) == 0
    return Project(root, config, data, run)


@pytest.fixture(scope="session")
def random_project(random_data: Project) -> Project:
    """A small run that depends on all that is random, trained without interruption."""
    with without_pictures():
        assert call(*train_arguments(random_data, random_data.run)) == 0
    return random_data


@pytest.fixture(scope="session")
def short_project(random_data: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The random project with larger batches: its 10 updates, 5 an epoch, still depend on all that is random."""
    root = tmp_path_factory.mktemp("short")
    text = random_data.config.read_text(encoding="utf-8")
    for before, after in SHORTER.items():
        assert before in text
        text = text.replace(before, after)
    short = Project(root, root / "short.yaml", random_data.data, root / "run")
    short.config.write_text(text, encoding="utf-8")
    with without_pictures():
        assert call(*train_arguments(short, short.run)) == 0
    return short


@pytest.fixture(scope="module")
def chromium() -> Iterator[Page]:
    with browsing() as page:
        yield page


@pytest.fixture
def browser(chromium: Page) -> Iterator[Page]:
    """A browser that has met no problem when the test is over."""
    chromium.problems.clear()
    yield chromium
    assert chromium.problems == []


@pytest.fixture
def page(chromium: Page) -> Iterator[Page]:
    """A browser that may meet problems, and leaves the page and forgets what was set when the test is over."""
    chromium.problems.clear()
    yield chromium
    chromium.call("Network.disable")
    chromium.prefer("light")
    chromium.open("about:blank", 1200)


@pytest.fixture
def no_pictures() -> Iterator[None]:
    """As `without_pictures`, for a whole test."""
    with without_pictures():
        yield


@contextlib.contextmanager
def few_trials() -> Iterator[None]:
    """Intervals and tests of significance take most of the time of an evaluation of few sentences."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("nmt.evaluation.model_evaluation.RESAMPLES", 20)
        patched.setattr("nmt.evaluation.model_evaluation.compare_systems", partial(compare_systems, samples=20))
        yield


@pytest.fixture
def no_significance() -> Iterator[None]:
    """As `few_trials`, for a whole test."""
    with few_trials():
        yield


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run directory that does not exist yet."""
    return tmp_path / "run"


def train_arguments(project: Project, run: Path, *more: str) -> list[str]:
    """`nmt train` of a project into a run directory; arguments with `=` are settings."""
    command = ["train", "--config", str(project.config), "--data", str(project.data), "--output", str(run)]
    return [*command, *(part for word in more for part in (["--set", word] if "=" in word else [word]))]


def at_update(monkeypatch: pytest.MonkeyPatch, update: int, act: Callable[[Any], object]) -> None:
    """Let training in this process call a function with its model when it begins an update."""
    original = loop.make_update

    def make(learner: Any, *arguments: Any) -> loop.Update:
        step = original(learner, *arguments)

        def call(batches: Any, number: int) -> loop.Step:
            if number == update - 1:
                act(learner)
            return step(batches, number)

        return call

    monkeypatch.setattr(loop, "make_update", make)


def signal_at(monkeypatch: pytest.MonkeyPatch, update: int, number: int = signal.SIGTERM) -> None:
    """Let training in this process get a signal while it makes an update."""
    at_update(monkeypatch, update, lambda model: os.kill(os.getpid(), number))


def read_metrics(run: Path) -> list[dict[str, Any]]:
    """The lines of `metrics.jsonl` without what the clock says."""
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    clock = ("seconds", "tokens_per_second")
    return [{key: value for key, value in json.loads(line).items() if key not in clock} for line in lines]


def read_tensors(run: Path) -> dict[str, Tensor]:
    """All tensors of the newest checkpoint."""
    return dict(newest_checkpoint(run).tensors)


def read_position(run: Path) -> dict[str, Any]:
    """Facts of the newest checkpoint, without times, config and paths."""
    checkpoint = newest_checkpoint(run)
    progress = {key: value for key, value in checkpoint.metadata["progress"].items() if key != "seconds"}
    return {"progress": progress, "rate": checkpoint.metadata["rate"]}


def assert_same_tensors(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    """Bit for bit."""
    assert found.keys() == expected.keys()
    assert [name for name, tensor in expected.items() if not torch.equal(found[name], tensor)] == []


def assert_same_run(found: Path, expected: Path) -> None:
    """Two runs ended alike: weights, optimiser, random numbers, progress, log and best model, bit for bit."""
    assert read_metrics(found) == read_metrics(expected)
    assert read_position(found) == read_position(expected)
    assert_same_tensors(read_tensors(found), read_tensors(expected))
    assert_same_tensors(*(load_file(run / "best/model.safetensors") for run in (found, expected)))
    assert_same_states(found, expected)
    assert not list(found.rglob(".*"))
    assert not list(found.rglob("*.partial"))


def assert_same_states(found: Path, expected: Path) -> None:
    """The outcomes that `run.json` tells agree, the clock aside."""
    clock = ("time", "training_seconds", "total_seconds", "tokens_per_second", "launch")
    states = [json.loads((run / "run.json").read_text(encoding="utf-8")) for run in (found, expected)]
    kept = [{key: value for key, value in state.items() if key not in clock} for state in states]
    assert kept[0] == kept[1]
