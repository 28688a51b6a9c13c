"""Train and score the cells of an experiment with the real commands."""

import argparse
import datetime
import hashlib
import json
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean

import torch
from benchmarks import ours
from benchmarks.arguments import Commands
from benchmarks.arguments import add_parser as add_common
from benchmarks.measuring import MIB, environment, run
from benchmarks.workload import read_lines, write_lines

import nmt
from experiments.ledger import Result, Scores, path_of, read_result, rounded, settings_of, write_result
from experiments.plan import Cell, Experiment, read_experiment
from nmt.config import load_config
from nmt.corpus.sources import open_corpus, read_pairs
from nmt.system.device import use_fast_products
from nmt.system.errors import ConfigError
from nmt.system.files import read_json

CORPORA = "NMT_BENCH_DATA"
SCRIPTS = Path(__file__).resolve().parents[1]
BEAM_SIZE = 5
ROWS, INNER, COLUMNS = 1024, 512, 4096  # of the product whose rate is measured


def add_command(commands: Commands) -> None:
    """Describe the arguments of both commands."""
    about = {
        "run": (run_experiment, "train and score the cells that have no result yet"),
        "test": (test_experiment, "score the test split with cells that were chosen by their validation scores, once"),
    }
    for name, (function, text) in about.items():
        parser = add_parser(commands, function, name, text)
        parser.add_argument("--cell", action="append", metavar="NAME", help="only these cells", required=name == "test")
        parser.add_argument("--seed", type=int, action="append", help="only these seeds")


def add_parser(
    commands: Commands, run: Callable[[argparse.Namespace], None], name: str, about: str
) -> argparse.ArgumentParser:
    """Add a command with the options that all of them have."""
    parser = add_common(commands, run, name, about, "runs/experiments")
    parser.add_argument("experiment", type=Path, metavar="FILE", help="a TOML file of this folder")
    parser.add_argument("--corpora", type=Path, help=f"folder of the corpora [default: the variable {CORPORA}]")
    return parser


def chosen_cells(experiment: Experiment, arguments: argparse.Namespace) -> list[Cell]:
    """The cells that the arguments name; all without names.

    Raises:
        ConfigError: There is no cell with one of the names, or none of them has one of the seeds.
    """
    cells = named_cells(experiment, arguments.cell)
    seeds = sorted({cell.seed for cell in cells})
    for seed in set(arguments.seed or []).difference(seeds):
        known = ", ".join(map(str, seeds))
        raise ConfigError(f"--seed {seed}: not planned for these cells; their seeds are {known}")
    return [cell for cell in cells if not arguments.seed or cell.seed in arguments.seed]


def named_cells(experiment: Experiment, wanted: Sequence[str] | None) -> list[Cell]:
    """The cells of some names; all without names.

    Raises:
        ConfigError: There is no cell with one of the names.
    """
    names = list(dict.fromkeys(cell.name for cell in experiment.cells))
    for name in wanted or []:
        if name not in names:
            raise ConfigError(f"--cell {name}: {experiment.name} has no such cell; it has {', '.join(names)}")
    return [cell for cell in experiment.cells if not wanted or cell.name in wanted]


def test_experiment(arguments: argparse.Namespace) -> None:
    """Add test scores to results that have none."""
    experiment = read_experiment(arguments.experiment)
    for cell in chosen_cells(experiment, arguments):
        result = read_result(experiment.name, cell.key)
        if result.bleu("test") is None:
            folder = arguments.output / experiment.name
            models = [folder / key for key in cell.models or [cell.key]]
            scores = result.scores | score(cell, models, folder, arguments.threads, "test")
            result = replace(result, scores=scores)
            print(f"{write_result(result, cell.key)}: test BLEU {result.bleu('test'):.2f}")


def run_experiment(arguments: argparse.Namespace) -> None:
    """Train what has no result yet, one cell after the other, and say which named cell has one; stops at a failure."""
    experiment = read_experiment(arguments.experiment)
    for cell in chosen_cells(experiment, arguments):
        path = path_of(experiment.name, cell.key)
        if not path.exists():
            result = train_cell(experiment, cell, arguments)
            split = validation_split(experiment, cell)
            print(f"{write_result(result, cell.key)}: {split} BLEU {result.bleu(split):.2f}, {result.minutes:.1f} min")
        elif arguments.cell:
            print(f"{path}: has the result already; to repeat the cell, move this file away and give another --output")


def train_cell(experiment: Experiment, cell: Cell, arguments: argparse.Namespace) -> Result:
    """Preprocess if necessary, train or resume, and score; of an ensemble, only score.

    Raises:
        RunError: A command failed.
    """
    folder = arguments.output / experiment.name
    folder.mkdir(parents=True, exist_ok=True)
    if cell.models:
        return score_ensemble(experiment, cell, folder, arguments)
    planned, cell = cell, with_parent(cell, arguments.output)
    data = prepare_data(experiment, cell, folder, arguments)
    output, log = folder / cell.key, folder / f"{cell.key}.log"
    overrides = ours.overriding([*cell.settings, f"train.seed={cell.seed}", f"train.threads={arguments.threads}"])
    chosen = ["--config", experiment.config, "--data", data, "--output", output, *overrides]
    before = product_rate(arguments.threads)
    finished = run(ours.nmt("train", *chosen, "--resume"), log, environment(arguments.threads))
    after = product_rate(arguments.threads)
    state = read_json(output / "run.json")
    precision = load_config(str(output / "config.yaml")).train.precision
    used = read_json(output / "environment.json")
    split = validation_split(experiment, cell)
    scores = score(cell, [output], folder, arguments.threads, split)
    links = arguments.experiment.parent / experiment.links if experiment.links else None
    return replace(
        new_result(experiment, planned, arguments.threads),
        precision=precision,
        gflops=round((before[precision] + after[precision]) / 2),
        parameters=state["parameters"],
        epochs=round(state["updates"] / state["updates_per_epoch"], 2),
        updates=state["updates"],
        tokens=state["tokens"],
        minutes=round(state["training_seconds"] / 60, 1),
        total_minutes=round(state["total_seconds"] / 60, 1),
        peak_mib=round(finished.peak / MIB),
        gpu=used["device_name"] if used["device"].startswith("cuda") else "",
        scores=scores,
        equal=count_equal(folder / f"{cell.key}.train.json") if split == "train" else None,
        alignment_error_rate=align(output, links, folder / f"{cell.key}.links", arguments.threads) if links else None,
        reading=read_first(output, links, folder / f"{cell.key}.reading", arguments.threads) if links else "",
    )


def validation_split(experiment: Experiment, cell: Cell) -> str:
    """The split that a cell is scored on after its training: the training split where there is no other."""
    split = load_config(experiment.config, list(cell.settings)).data.split
    return "train" if split.valid_size == 0 else "valid"


def count_equal(evaluation: Path) -> int:
    """How many translations of an evaluation are equal to a reference."""
    equal: int = read_json(evaluation)["diagnosis"]["exact"]
    return equal


def align(model: Path, links: Path, begin: Path, threads: int) -> float:
    """Alignment error rate of a model that reads the targets of aligned pairs.

    Args:
        model: Its run directory.
        links: The pairs: source, target and links, between tabs.
        begin: What the names of the files that are written begin with.
        threads: CPU threads.
    """
    rows = [line.split("\t") for line in read_lines(links)]
    src, ref, gold = (begin.with_suffix(f".{name}") for name in ("src", "ref", "gold"))
    for column, path in enumerate((src, ref, gold)):
        write_lines(path, [row[column] for row in rows])
    measured = begin.with_suffix(".json")
    command = ours.nmt("attention", "--model", model, "--src", src, "--ref", ref, "--gold", gold, "--forced")
    run([*command, "--json", str(measured), "--overwrite"], begin.with_suffix(".log"), environment(threads))
    return round(float(read_json(measured)["alignment_error_rate"]), 3)


def read_first(model: Path, links: Path, begin: Path, threads: int) -> str:
    """Each word of the translation of the first source, the word it reads most, and the weight."""
    source = begin.with_suffix(".txt")
    write_lines(source, [read_lines(links)[0].split("\t")[0]])
    written = begin.with_suffix(".jsonl")
    command = ours.nmt("translate", "--model", model, "--input", source, "--output", written, "--overwrite")
    command += ["--format", "jsonl", "--with-attention", "--beam-size", str(BEAM_SIZE)]
    run(command, begin.with_suffix(".log"), environment(threads))
    sentence = json.loads(read_lines(written)[0])
    words = [*sentence["source_tokens"], "⟨eos⟩"]
    translation = sentence["translations"][0]
    reading = []
    for word, heads in zip(translation["tokens"], translation["attention"], strict=False):  # the last row is of the end
        weights = [mean(column) for column in zip(*heads, strict=True)]
        largest = max(weights)
        reading.append(f"{word}: {words[weights.index(largest)]} {largest:.2f}")
    return ", ".join(reading)


def with_parent(cell: Cell, output: Path) -> Cell:
    """Add the settings that start a training from another cell's model; they hold the path of this machine."""
    parent = (f"parent={output / cell.parent}",) if cell.parent else ()
    return cell.model_copy(update={"settings": cell.settings + parent})


def score_ensemble(experiment: Experiment, cell: Cell, folder: Path, arguments: argparse.Namespace) -> Result:
    """Score models that translate together; sizes and times are sums over them."""
    parts = [read_result(experiment.name, key) for key in cell.models]
    scores = score(cell, [folder / key for key in cell.models], folder, arguments.threads)
    totals = {
        name: sum(getattr(part, name) for part in parts)
        for name in ("parameters", "updates", "epochs", "tokens", "minutes", "total_minutes")
    }
    first = {name: getattr(parts[0], name) for name in ("precision", "gflops", "peak_mib")}
    return replace(new_result(experiment, cell, arguments.threads), **totals, **first, scores=scores)


def new_result(experiment: Experiment, cell: Cell, threads: int) -> Result:
    """What is known of a result before the training."""
    return Result(
        experiment=experiment.name,
        cell=cell.name,
        seed=cell.seed,
        system=f"nmt {nmt.__version__}",
        config=experiment.config,
        settings=settings_of(load_config(experiment.config, list(cell.settings))),
        finished=datetime.datetime.now(datetime.UTC).date().isoformat(),
        threads=threads,
        beam_size=BEAM_SIZE,
        models=list(cell.models),
        teachers=list(cell.teachers),
        parent=cell.parent,
        revision=revision(),
        torch=torch.__version__,
    )


def revision() -> str:
    """Commit of this repository, and whether files differ from it; empty if git cannot tell."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    try:
        return subprocess.run(command, cwd=SCRIPTS, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def score(cell: Cell, models: Sequence[Path], folder: Path, threads: int, split: str = "valid") -> Scores:
    """Translate and score a split."""
    path = folder / f"{cell.key}.{split}.json"
    chosen = [part for model in models for part in ("--model", model)]
    command = ours.nmt("evaluate", *chosen, "--split", split, "--json", path, "--no-short-inputs", "--overwrite")
    command += ["--hypotheses", str(path.with_suffix(".txt")), "--beam-size", str(BEAM_SIZE)]
    command += ours.overriding([override for override in cell.settings if override.startswith("decode.")])
    run(command, path.with_suffix(".log"), environment(threads))
    return {split: rounded(read_json(path)["scores"])}


def prepare_data(experiment: Experiment, cell: Cell, folder: Path, arguments: argparse.Namespace) -> Path:
    """The data directory of a cell, which it shares with all cells with equal text and data settings and sources."""
    corpora = arguments.corpora or Path(os.environ.get(CORPORA, "../shared/data"))
    sources = [corpora / name for name in experiment.source]
    settings = load_config(experiment.config, list(cell.settings)).model_dump_json(include={"data", "text"})
    parts = [settings, *(str(source.resolve()) for source in sources), *(f"teacher {key}" for key in cell.teachers)]
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    data = folder / f"data-{digest[:8]}"
    if not (data / "data.json").exists():
        if cell.teachers:
            teachers = [folder / key for key in cell.teachers]
            sources[:2] = distill(sources[:2], teachers, data.with_suffix(".distilled"), arguments.threads)
        options = [*ours.sources_of(*sources), *ours.overriding(cell.data_settings)]
        command = ours.nmt("preprocess", "--config", experiment.config, "--output", data, "--overwrite", *options)
        run(command, data.with_suffix(".log"), environment(arguments.threads))
    return data


def distill(training: Sequence[Path], teachers: Sequence[Path], folder: Path, threads: int) -> list[Path]:
    """Add the teachers' joint translations of the sources to training pairs in two parallel files.

    Returns:
        The files with both.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pairs = list(read_pairs(open_corpus(training)["train"]))
    src, tgt = [pair.src for pair in pairs], [pair.tgt for pair in pairs]
    sources, translations = folder / "sources.txt", folder / "translations.txt"
    write_lines(sources, src)
    chosen = [part for teacher in teachers for part in ("--model", teacher)]
    command = ours.nmt(
        "translate", *chosen, "--input", sources, "--output", translations, "--no-split-sentences", "--overwrite"
    )
    run([*command, "--beam-size", str(BEAM_SIZE)], folder / "translate.log", environment(threads))
    both = [folder / "train.src", folder / "train.tgt"]
    for path, lines in zip(both, (src + src, tgt + read_lines(translations)), strict=True):
        write_lines(path, lines)
    return both


def product_rate(threads: int, *, fast: bool = True) -> dict[str, float]:
    """GFLOP/s of a matrix product of typical size, by precision; the best of as many as fit into half a second.

    Args:
        threads: CPU threads.
        fast: Use the fast fp32 products of `nmt` rather than torch's default, which other toolkits use.
    """
    torch.set_num_threads(threads)
    if fast:
        use_fast_products()
    rates = {}
    for dtype in (torch.float32, torch.bfloat16):
        left, right = torch.ones(ROWS, INNER, dtype=dtype), torch.ones(INNER, COLUMNS, dtype=dtype)
        seconds: list[float] = []
        while sum(seconds) < 0.5:
            begin = time.perf_counter()
            left @ right
            seconds.append(time.perf_counter() - begin)
        rates[str(dtype).removeprefix("torch.")] = 2 * ROWS * INNER * COLUMNS / min(seconds) / 1e9
    return rates
