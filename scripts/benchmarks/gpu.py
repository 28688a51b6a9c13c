"""What a GPU gives: correctness, training, launches of an update and decoding, as one JSON and its tables.

It runs alone on a machine without a network, in a limited time, with what scripts/prepare_gpu.py has prepared. Whatever
fails or does not fit into the time is "not measured", with the reason; the JSON is written after each part, so that
nothing is lost. A second command, with --peers, adds other toolkits to it.
"""

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import joeynmt, opennmt, ours
from benchmarks.arguments import Commands, add_parser, positive
from benchmarks.limit import mean_length
from benchmarks.measuring import LAUNCHER, PEER_VARIABLES, RunError, end, environment, start, steady
from benchmarks.runtime import WORDS, random_lines
from benchmarks.systems import DESCRIPTIONS, PEERS, System
from benchmarks.tables import markdown
from benchmarks.workload import LANGUAGES, SIZES, check_workload, read_lines, write_lines, write_vocabularies
from nmt.system.errors import ConfigError
from nmt.system.files import read_json, write_json

ROOT = Path(__file__).resolve().parents[2]
TESTS = ("tests/training/test_cuda.py", "tests/system/test_device.py")
"""Tests of which some need a GPU."""
KINDS = ("luong", "luong_feeding", "bahdanau", "transformer", "ssru")
TRAININGS: tuple[tuple[str, int, object], ...] = (
    ("float32", 64, "auto"),
    ("bfloat16", 64, "auto"),
    ("bfloat16", 64, False),
    ("bfloat16", 512, "auto"),
)
"""Precision, sentences of a batch, and graphs of each measured training."""
SEARCHES = (("float32", 1), ("bfloat16", 1), ("bfloat16", 5))
"""Precision and beam size of each measured search."""
BATCH_SIZES = (64, 512)
"""Sentences of a batch with which the other toolkits train."""
NOT_MEASURED = "not measured"
SMALL_SIZES = ["model.embedding_size=8", "model.decoder.hidden_size=8", "model.encoder.hidden_size=8"]
SMALL_LAYERS = [f"model.{part}.{key}" for part in ("encoder", "decoder") for key in ("num_layers=1", "num_heads=2")]
SMALL_PAIRS = {"train": 120, "valid": 3, "test": 4}


def add_command(commands: Commands) -> None:
    """Describe the arguments."""
    about, output = "what a GPU gives, alone or beside OpenNMT-py and JoeyNMT", "runs/benchmark/gpu"
    parser = add_parser(commands, benchmark_gpu, "gpu", about, output)
    parser.add_argument("--prepared", type=Path, metavar="DIR", help="output of scripts/prepare_gpu.py")
    parser.add_argument("--device", default="cuda", help="device to measure")
    parser.add_argument("--minutes", type=positive, default=6, help="time for all measurements")
    parser.add_argument("--updates", type=positive, default=400, help="updates per training")
    parser.add_argument("--only", nargs="+", choices=KINDS, default=KINDS, help="kinds of models; all unless given")
    parser.add_argument("--small", action="store_true", help="measure tiny models, to try out the command")
    parser.add_argument("--peers", action="store_true", help="measure OpenNMT-py and JoeyNMT instead, if they import")
    parser.add_argument("--tables", action="store_true", help="measure nothing, and print the tables of the last runs")


def benchmark_gpu(arguments: argparse.Namespace) -> None:
    """Measure, write `gpu.json` and print its tables.

    Raises:
        ConfigError: Nothing is prepared.
        SystemExit: Tests failed, or a figure could not be measured.
    """
    output: Path = arguments.output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    stored = output / "gpu.json"
    report: dict[str, Any] = read_json(stored) if stored.exists() else {}
    if not arguments.tables:
        deadline = time.monotonic() + 60 * arguments.minutes
        workload, data = find_workload(arguments, output)
        if arguments.peers:
            report["peers"] = []
            for found in measure_peers(workload, output, arguments, deadline):
                report["peers"].append(found)
                write_json(stored, report)
        else:
            report |= {"machine": describe_machine(arguments.device), "small": arguments.small, "figures": []}
            write_json(stored, report)
            report["tests"] = run_tests(arguments.device, output, deadline)
            write_json(stored, report)
            for found in measure(workload, data, output, arguments, deadline):
                report["figures"].append(found)
                write_json(stored, report)
    print(tables(report))
    if missing := [*problems(report, "peers" if arguments.peers else "figures")]:
        sys.exit("\n".join(["not measured:", *missing]))


def find_workload(arguments: argparse.Namespace, output: Path) -> tuple[Path, Path]:
    """The folders of the text and of the encoded data: those that were prepared, or tiny ones of random words.

    Raises:
        ConfigError: Nothing is prepared.
    """
    if arguments.prepared:
        workload: Path = arguments.prepared.resolve() / "workload"
        check_workload(workload)
        return workload, workload.with_name("data")
    if not arguments.small:
        raise ConfigError("--prepared: set it to the output of scripts/prepare_gpu.py, or try --small")
    workload = output / "workload"
    write_random_workload(workload)
    config = ours.write_config(output)
    ours.prepare_workload(config, workload, output / "data", arguments.threads)
    return workload, output / "data"


def write_random_workload(folder: Path) -> None:
    """A workload of random words, with fewer pairs than that of the other benchmarks."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = random.Random(1)
    assert SMALL_PAIRS.keys() == SIZES.keys()
    for split, pairs in SMALL_PAIRS.items():
        for language in LANGUAGES:
            lengths = [generator.randint(1, 12) for _ in range(pairs)]
            lines = [" ".join(f"{language}{generator.randrange(40)}" for _ in range(length)) for length in lengths]
            write_lines(folder / f"{split}.{language}", lines)
            if split == "train":
                write_vocabularies(folder, language, lines)


def describe_machine(device: str) -> dict[str, Any]:
    """The device and the versions, by a process of its own: this one stays away from the GPU."""
    script = "import json, sys; from nmt.system.device import describe_environment, resolve_device; "
    script += "print(json.dumps(describe_environment(resolve_device(sys.argv[1]))))"
    command = [sys.executable, "-c", script, device]
    finished = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **surroundings(1)})
    if finished.returncode:
        last = (finished.stderr.strip() or "no output").splitlines()[-1]
        raise RunError(f"{device}: cannot be used ({last})")
    described: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    return described


def surroundings(threads: int) -> dict[str, str]:
    """Environment variables of a process that imports this checkout, and then what PYTHONPATH already has."""
    path = os.pathsep.join(filter(None, [str(ROOT), str(ROOT / "scripts"), os.environ.get("PYTHONPATH")]))
    return environment(threads) | {"PYTHONPATH": path}


def run_for(command: Sequence[str], log: Path, variables: Mapping[str, str], deadline: float) -> str | None:
    """Run a command, with its output in a file, and end it at a time.

    Args:
        command: Program and arguments.
        log: File for standard output and standard error.
        variables: Environment variables to add.
        deadline: By `time.monotonic`.

    Returns:
        None if it succeeded, otherwise the reason.
    """
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        return "no time was left"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as file:
        try:
            process = start(command, file, variables)
        except OSError as error:
            return f"cannot be started ({error.strerror})"
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            end(process)
            return f"was not done after {seconds:.0f} s"
        except BaseException:
            end(process)
            raise
    return f"exit code {code}, {last_line(log)}" if code else None


def last_line(log: Path) -> str:
    """The last line of a log that is not empty."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "no output")


def run_tests(device: str, output: Path, deadline: float) -> dict[str, Any]:
    """Run the tests that need a GPU, with the warnings of other versions of libraries allowed.

    Returns:
        Tests by outcome, such as `passed`; and `error` if they could not run.
    """
    log = output / "tests.log"
    chosen = [str(ROOT / test) for test in (TESTS if device == "cuda" else TESTS[:1])]  # a CPU's are run elsewhere
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-o", "filterwarnings=default", *chosen]
    begin = time.monotonic()
    reason = run_for(command, log, surroundings(2) | {"PYTHONDONTWRITEBYTECODE": "1"}, deadline)
    found: dict[str, Any] = {"seconds": round(time.monotonic() - begin, 1)}
    counts = re.findall(r"(\d+) (passed|failed|skipped|error)", last_line(log)) if log.exists() else []
    found |= {outcome: int(number) for number, outcome in counts}
    if reason and not counts:
        found["error"] = reason
    return found


def measure(
    workload: Path, data: Path, output: Path, arguments: argparse.Namespace, deadline: float
) -> Iterable[dict[str, Any]]:
    """The figures of each kind of model, measured by a process of its own: a broken one spoils no other.

    Args:
        workload: Text.
        data: The same, encoded.
        output: Folder for runs and logs.
        arguments: The command line.
        deadline: By `time.monotonic`.
    """
    lines = output / "random.en"
    write_lines(lines, random_lines([len(line.split()) for line in read_lines(workload / "test.en")]))
    request: dict[str, Any] = {"config": str(ours.write_config(output)), "data": str(data)}
    request |= {"output": str(output / "runs")}
    request |= {"device": arguments.device, "lines": str(lines), "words": WORDS, "batch_size": 256}
    request |= {"length": round(mean_length(workload / "train.de")), "updates": arguments.updates}
    for kind in arguments.only:
        asked = request | {"kind": kind, "overrides": [], "trainings": TRAININGS, "searches": SEARCHES}
        if arguments.small:
            layers = SMALL_LAYERS if kind in ("transformer", "ssru") else []
            asked |= {"overrides": [*SMALL_SIZES, *layers], "updates": 20, "words": 50, "length": 4}
            asked |= {"trainings": [TRAININGS[1]], "searches": SEARCHES[:1]}
        log = output / f"{kind}.log"
        command = [sys.executable, "-m", "benchmarks.gpu_figures", json.dumps(asked)]
        reason = run_for(command, log, surroundings(arguments.threads), deadline)
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        found = [json.loads(line) for line in text.splitlines() if line.startswith('{"section"')]
        yield from found
        known = [(figure["section"], figure["row"]) for figure in found]
        for section, row in expected_rows(kind, asked["trainings"], asked["searches"]):
            if (section, row) not in known:
                yield {"section": section, "row": row, "error": reason or "is missing from the log"}


def expected_rows(
    kind: str, trainings: Iterable[Sequence[object]], searches: Iterable[Sequence[object]]
) -> list[tuple[str, list[object]]]:
    """Section and row of each figure of a kind of model."""
    rows: list[tuple[str, list[object]]] = [("training", [kind, *row]) for row in trainings]
    rows += [("launches", [kind, graphs]) for graphs in (False, True)]
    return rows + [("decoding", [kind, *row]) for row in searches]


def measure_peers(
    workload: Path, output: Path, arguments: argparse.Namespace, deadline: float
) -> Iterable[dict[str, Any]]:
    """Target tokens per second of the toolkits that import here: the same models, sentences of a batch and updates.

    Args:
        workload: Text and vocabularies.
        output: Folder for models and logs.
        arguments: The command line.
        deadline: By `time.monotonic`.
    """
    variables = peer_surroundings(output / "peers", arguments.threads)
    for toolkit in PEERS:
        driver = opennmt if toolkit == "OpenNMT-py" else joeynmt
        reason = import_error(driver.MODULE, output / "peers", variables, deadline)
        for size in BATCH_SIZES[:1] if arguments.small else BATCH_SIZES:
            for kind, description in DESCRIPTIONS[toolkit].items():
                system = System(kind, toolkit, kind, description, "" if kind == "transformer" else "lstm", "default")
                folder = output / "peers" / f"{toolkit.lower()}-{kind}-{size}"
                found: dict[str, Any] = {"section": "peers", "row": [toolkit, kind, "float32", size]}
                try:
                    if reason:
                        raise RunError(reason)
                    found["value"] = train_peer(system, size, workload, folder, arguments, variables, deadline)
                except RunError as error:
                    found["error"] = str(error)
                yield found


def peer_surroundings(folder: Path, threads: int) -> dict[str, str]:
    """Environment variables of another toolkit, whose unused libraries are empty modules where they are missing.

    OpenNMT-py imports spaCy for a transform that nothing here uses.
    """
    empty = folder / "empty"
    empty.mkdir(parents=True, exist_ok=True)
    (empty / "spacy.py").touch()
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(empty)]))
    return environment(threads) | PEER_VARIABLES | {"PYTHONPATH": path}


def import_error(module: str, folder: Path, variables: Mapping[str, str], deadline: float) -> str | None:
    """Why a module does not import; None if it does."""
    log = folder / f"{module}.log"
    reason = run_for([sys.executable, "-c", f"import {module}"], log, variables, deadline)
    return reason and f"does not import: {last_line(log)}"


def train_peer(
    system: System,
    size: int,
    workload: Path,
    folder: Path,
    arguments: argparse.Namespace,
    variables: Mapping[str, str],
    deadline: float,
) -> int:
    """Train with another toolkit; median target tokens per second after the warm-up.

    Raises:
        RunError: It failed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    module, options = peer_arguments(system, size, workload, folder, arguments)
    log = folder / "log.txt"
    command = [sys.executable, str(LAUNCHER), "default", module, *options]
    if reason := run_for(command, log, variables, deadline):
        raise RunError(reason)
    driver = opennmt if system.toolkit == "OpenNMT-py" else joeynmt
    return round(statistics.median(steady(driver.read_speeds(log.read_text(encoding="utf-8", errors="replace")))))


def peer_arguments(
    system: System, size: int, workload: Path, folder: Path, arguments: argparse.Namespace
) -> tuple[str, list[str]]:
    """The module of a toolkit and its arguments, with a config for the device."""
    on_gpu = arguments.device != "cpu"
    if system.toolkit == "OpenNMT-py":
        values = opennmt.config(system, workload, folder, arguments.updates)
        values |= {"gpu_ranks": [0] if on_gpu else [], "batch_size": size}
        return opennmt.MODULE, opennmt.write_config(values, folder / "config.yaml")
    values = joeynmt.config(system, workload, folder, arguments.updates) | {"use_cuda": on_gpu}
    values["training"]["batch_size"] = size
    path = folder / "config.yaml"
    path.write_text(json.dumps(values, indent=1), encoding="utf-8")
    return joeynmt.MODULE, ["train", str(path), "--skip-test"]


def problems(report: Mapping[str, Any], section: str) -> Iterable[str]:
    """The reasons for figures that are missing, and tests that failed."""
    tests = report.get("tests", {})
    if section == "figures" and "error" in tests:
        yield f"tests: {tests['error']}"
    if section == "figures" and "failed" in tests:
        yield f"tests: {tests['failed']} failed"
    for figure in report.get(section, []):
        if "error" in figure:
            yield f"{figure['section']}, {', '.join(map(str, figure['row']))}: {figure['error']}"


def tables(report: Mapping[str, Any]) -> str:
    """The tables of a report, with "not measured" in place of a figure that it lacks."""
    machine = report.get("machine", {})
    figures = {(figure["section"], *figure["row"]): figure for figure in report.get("figures", [])}
    tests = report.get("tests", {})
    outcomes = [f"{tests[outcome]} {outcome}" for outcome in ("passed", "failed", "skipped") if outcome in tests]
    first = f"{machine.get('device_name', 'a GPU')}, torch {machine.get('torch', NOT_MEASURED)}; "
    first += f"tests: {', '.join(outcomes) or NOT_MEASURED}"
    if report.get("small"):
        first += "; tiny models, whose figures say nothing"
    return "\n\n".join([first, _training_table(figures), _peer_table(report, figures), _other_table(figures)])


Figures = Mapping[tuple[Any, ...], Mapping[str, Any]]


def _value(figure: Mapping[str, Any] | None, name: str = "value") -> str:
    value = (figure or {}).get(name)
    return NOT_MEASURED if value is None else f"{value:,}"


def _training_table(figures: Figures) -> str:
    header = [
        "model",
        *(f"{precision}, {size}{'' if graphs else ', no graphs'}" for precision, size, graphs in TRAININGS),
    ]
    rows = [
        [DESCRIPTIONS["nmt"][kind], *(_value(figures.get(("training", kind, *row))) for row in TRAININGS)]
        for kind in KINDS
    ]
    return f"Training, target tokens/s, by precision and sentences of a batch:\n\n{markdown(header, rows)}"


def _peer_table(report: Mapping[str, Any], figures: Figures) -> str:
    peers = {(figure["section"], *figure["row"]): figure for figure in report.get("peers", [])}
    rows = []
    for toolkit in PEERS:
        for kind, description in DESCRIPTIONS[toolkit].items():
            row = [toolkit, description]
            for size in BATCH_SIZES:
                theirs = peers.get(("peers", toolkit, kind, "float32", size))
                row += [_value(theirs), _ratio(figures, kind, size, theirs)]
            rows.append(row)
    header = ["toolkit", "model"]
    for size in BATCH_SIZES:
        header += [f"float32, {size}", f"× nmt's fastest, {size}"]
    return f"Other toolkits, target tokens/s:\n\n{markdown(header, rows)}"


def _ratio(figures: Figures, kind: str, size: int, theirs: Mapping[str, Any] | None) -> str:
    """How many times faster the fastest row of ours with the same batches is."""
    speeds = [figures.get(("training", kind, *row), {}).get("value") for row in TRAININGS if row[1] == size]
    known = [speed for speed in speeds if speed is not None]
    value = (theirs or {}).get("value")
    return f"{max(known) / value:.2f}" if known and value else NOT_MEASURED


def _other_table(figures: Figures) -> str:
    header = ["model", "launches", "launches with graphs", "graphs"]
    header += [f"sentences/s, {precision}, beam {beam}" for precision, beam in SEARCHES]
    rows = []
    for kind in KINDS:
        plain = figures.get(("launches", kind, False))
        graphed = figures.get(("launches", kind, True))
        row = [DESCRIPTIONS["nmt"][kind], _value(plain), _value(graphed), _value(graphed, "graphs")]
        rows.append([*row, *(_value(figures.get(("decoding", kind, *search))) for search in SEARCHES)])
    return f"Launches of an update in bfloat16, and decoding with random weights:\n\n{markdown(header, rows)}"
