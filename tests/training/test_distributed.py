"""Training by several processes, between CPUs."""

import contextlib
import functools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import numpy as np
import processes
import pytest
import torch
from conftest import UPDATES, Project, assert_same_run, read_metrics, read_tensors, train_arguments, wait_until
from processes import PIPE
from safetensors.torch import load_file
from training_runs import record_of, refusal, train

from nmt.interface.dialect import CommandLine
from nmt.system.errors import ConfigError, DataError, NmtError
from nmt.training.distributed import AGREE_EVERY, SINGLE, Workers, join_workers, launch_id, restarts
from nmt.training.resume import call_to_resume

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
RESTARTED = {"TORCHELASTIC_RESTART_COUNT": "2"}
# Nothing that is drawn at random in a process of its own.
PLAIN = ["model.dropout=0", "train.teacher_forcing.ratio=1"]

pytestmark = pytest.mark.skipif(not torch.distributed.is_gloo_available(), reason="needs gloo")


def run_two(*arguments: str, program: Callable[[], object] | None = None) -> str:
    """Run two processes of one run until they end, with the variables that torchrun sets; what they said."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    place = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    with contextlib.ExitStack() as at_end:
        both = []
        for rank in ("0", "1"):
            environment = {**ENVIRONMENT, **place, "RANK": rank, "LOCAL_RANK": rank}
            process = processes.start(*arguments, program=program, stderr=PIPE, environment=environment)
            both.append(at_end.enter_context(process))
        said = "".join(process.communicate(timeout=300)[1] for process in both)
    assert [process.returncode for process in both] == [0, 0], said
    return said


def torchrun(arguments: Sequence[str], code: int = 0) -> str:
    """Let torchrun run a command in two processes until they end; what they said."""
    command = [*TORCHRUN, "-m", "nmt", *arguments]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == code, done.stderr
    return done.stderr


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("number", [0, 1, 2, 5, 12])
def test_parts_are_complete_and_do_not_overlap(size: int, number: int) -> None:
    indices = np.random.default_rng(0).permutation(number)
    parts = [Workers(rank, size).part(indices) for rank in range(size)]
    assert sorted(np.concatenate(parts).tolist()) == list(range(number))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_one_process_alone() -> None:
    assert SINGLE.is_first
    assert SINGLE.broadcast({"a": 1}) == {"a": 1}
    assert SINGLE.decide_on_first(lambda: 3) == 3
    assert SINGLE.agree(7, 2) == 2
    assert SINGLE.total(torch.tensor(3.0)) == 3
    assert [tensor.tolist() for tensor in SINGLE.gather(torch.tensor([1, 2]))] == [[1, 2]]


@pytest.mark.parametrize(
    ("variables", "again", "name", "command"),
    [
        ({}, 0, None, "nmt train --config"),
        ({"TORCHELASTIC_RUN_ID": "a", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1"}, 0, "a", "nmt train --config"),
        (
            {**RESTARTED, "TORCHELASTIC_RUN_ID": "none", "WORLD_SIZE": "3", "LOCAL_WORLD_SIZE": "3"},
            *(2, f"process {os.getppid()}", "torchrun --nproc-per-node 3 -m nmt train --config"),
        ),
    ],
)
def test_restarts_launch_ids_and_the_command_to_resume_come_from_torchrun(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], again: int, name: str | None, command: str
) -> None:
    monkeypatch.setattr(os, "environ", variables)
    assert (restarts(), launch_id()) == (again, name)
    assert call_to_resume(Path("run"), Path("data")).say(CommandLine({})).startswith(command)


def test_a_restart_touches_no_run_of_another_launch(random_project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first start was refused as there is a finished run; the second one must neither resume nor replace it."""
    monkeypatch.setattr(os, "environ", {**os.environ, **RESTARTED, "TORCHELASTIC_RUN_ID": "another"})
    before = (random_project.run / "run.json").read_bytes()
    assert "contains an earlier result; add --overwrite" in refusal(random_project, random_project.run)
    assert (random_project.run / "run.json").read_bytes() == before


def refuse() -> NoReturn:
    raise DataError("somewhere: something")


def share_values(folder: Path) -> None:
    """One of the processes that share values; it writes what it was told."""
    with join_workers(torch.device("cpu")) as workers:
        rank = workers.rank
        try:
            workers.decide_on_first(refuse)
            refused = None
        except NmtError as error:
            refused = str(error)
        found = {
            "size": workers.size,
            "first": workers.is_first,
            "told": workers.broadcast({"ü": [1.5, None], "long": "x" * 1000} if rank == 0 else None),
            "asked": workers.decide_on_first(lambda: [True, rank]),
            "refused": refused,
            "total": float(workers.total(torch.tensor(float(rank + 1)))),
            "collected": [part.tolist() for part in workers.gather(torch.tensor([rank, 7]))],
            "bytes": [part.tolist() for part in workers.gather(torch.tensor([rank, 255], dtype=torch.uint8))],
            "nothing": [part.tolist() for part in workers.gather(torch.zeros(0))],
            "agreed": [workers.agree(AGREE_EVERY * n, 2 * rank * (n == 2)) for n in (1, 2, 3)],
            "between": workers.agree(AGREE_EVERY + 1, rank),
        }
    (folder / f"{rank}.json").write_text(json.dumps(found))


def test_processes_share_values(tmp_path: Path) -> None:
    run_two(program=functools.partial(share_values, tmp_path))
    for rank in (0, 1):
        assert json.loads((tmp_path / f"{rank}.json").read_text()) == {
            "size": 2,
            "first": rank == 0,
            "told": {"ü": [1.5, None], "long": "x" * 1000},
            "asked": [True, 0],
            "refused": "somewhere: something",
            "total": 3.0,
            "collected": [[0, 7], [1, 7]],
            "bytes": [[0, 255], [1, 255]],
            "nothing": [[], []],
            "agreed": [0, 2, 0],
            "between": 1,
        }


def assert_close_runs(found: Path, expected: Path) -> None:
    """The same training except for the rounding of sums."""
    pairs = zip(read_metrics(found), read_metrics(expected), strict=True)
    for entry, other in pairs:
        assert entry.pop("kind") == other.pop("kind")
        assert entry == pytest.approx(other, rel=2e-3)
    tensors, others = read_tensors(found), read_tensors(expected)
    names = [name for name in others if name.startswith("model.")]
    for name in names:
        torch.testing.assert_close(tensors[name], others[name], rtol=1e-3, atol=1e-4)


SETTINGS = {
    # 120 pairs are 17 batches of 7, the last with one pair, of which the second process has nothing.
    "accumulated": ["train.batch={size: 7, accumulate: 2}", "train.checkpoint.every=5"],
    "noise": ["train.noise={src_word_dropout: 0.5, tgt_word_dropout: 0.3}"],
    "tokens": ["train.batch={size: 40, unit: tokens}", "train.label_smoothing=0.1"],
    "sgd": ["train.optimizer={name: sgd, learning_rate: 0.5, momentum: 0.9}"],
    "single": ["train.batch.size=1", "train.max_updates=20"],
}
READS = "model.encoder={kind: self_attention, hidden_size: 8, num_layers: 2}"
# One for each class of work, and whatever could leave a weight without a gradient.
MECHANISMS = {
    "fixed context": ["model.attention.score=none"],
    "bahdanau": ["model.decoder.order=bahdanau", "model.attention.score=additive"],
    "input feeding": ["model.decoder.input_feeding=true"],
    "local": ["model.attention.window={name: local_p, radius: 2}"],
    "hard": ["model.attention.window.name=hard"],
    "coverage": ["model.attention={score: additive, past: {name: coverage, loss_weight: 0.1}}"],
    "location": ["model.attention={score: additive, past: {name: location}}"],
    "location score": ["model.attention={score: location, options: {max_length: 20}}"],
    "heads": ["model.attention.heads=2"],
    "tied": ["model.tying=target"],
    "deep": [
        "model.encoder={num_layers: 2, residual: true, layer_norm: cell}",
        "model.decoder={num_layers: 2, residual: true, layer_norm: layers}",
    ],
    "zeros": ["model.decoder.initial_state=zeros"],
    "backward": ["model.decoder.initial_state=backward"],
    "one direction": ["model.encoder.bidirectional=false"],
    "transformer": [READS, "model.decoder={kind: transformer, learned_positions: 9, hidden_size: 8, num_layers: 2}"],
    "ssru": [READS, "model.decoder={kind: ssru, norm: post, hidden_size: 8, num_layers: 2}", "model.tying=target"],
    "hybrid": [READS, "model.decoder.initial_state=zeros"],
}
# Adam would make a step of any gradient, even of one that is but rounding.
SHORT_SGD = ["train.optimizer={name: sgd, learning_rate: 0.5}", "train.max_updates=7"]
SETTINGS |= {name: [*settings, *SHORT_SGD] for name, settings in MECHANISMS.items()}
# With nearly every word cut, so that each process cuts the same ones.
SETTINGS["simcut"] = ["train.consistency={name: simcut, share: 0.999999}", *SHORT_SGD]
QUICK = ("accumulated", "transformer", "simcut")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.soak] * (name not in QUICK)) for name in SETTINGS]
)
def test_two_processes_equal_one(random_project: Project, tmp_path: Path, name: str) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    train(random_project, one, *PLAIN, *SETTINGS[name])
    err = run_two(*train_arguments(random_project, two, *PLAIN, *SETTINGS[name]))
    assert err.count("run directory: ") == 1
    assert "on 2 times cpu" in err
    if name != "hard":  # whose positions are drawn
        assert_close_runs(two, one)
    assert record_of(two)["state"] == "finished"


@contextlib.contextmanager
def two_training(arguments: Sequence[str], *options: str) -> Iterator["subprocess.Popen[str]"]:
    command = [*TORCHRUN, *options, "-m", "nmt", *arguments]
    with subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def children_of(process: int) -> list[int]:
    """Numbers of the processes that a process has started."""
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def wait_for_update(run: Path, update: int) -> None:
    log = run / "metrics.jsonl"
    wait_until(lambda: log.exists() and any(entry["update"] >= update for entry in read_metrics(run)), 120)


LONGER = ["train.epochs=8"]  # 120 updates


@pytest.mark.soak
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux")
def test_stops_kills_and_restarts_of_two_processes(random_project: Project, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    torchrun(train_arguments(random_project, whole, *LONGER))

    stopped = tmp_path / "stopped"
    with two_training(train_arguments(random_project, stopped, *LONGER)) as process:
        wait_for_update(stopped, 20)
        process.terminate()
        _, err = process.communicate(timeout=120)
    assert process.returncode != 0
    assert "nothing is lost; resume with: torchrun --nproc-per-node 2 -m nmt train" in err
    assert record_of(stopped)["state"] == "stopped"
    torchrun(train_arguments(random_project, stopped, *LONGER, "--resume"))
    assert_same_run(stopped, whole)

    killed = tmp_path / "killed"
    with two_training(train_arguments(random_project, killed, *LONGER), "--max-restarts", "1") as process:
        wait_for_update(killed, 20)
        os.kill(children_of(process.pid)[-1], signal.SIGKILL)
        _, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    assert re.search(r"resumed at update \d+", err)
    assert_same_run(killed, whole)


@pytest.mark.soak
def test_another_number_of_processes_says_so_and_works(random_project: Project, tmp_path: Path) -> None:
    one, run = tmp_path / "one", tmp_path / "run"
    settings = [*PLAIN, "train.validation.every=15"]
    train(random_project, one, *settings)
    torchrun(train_arguments(random_project, run, *settings, "train.epochs=1"))
    err = train(random_project, run, *settings, "train.epochs=2", "--resume")
    assert "resumed on other processes or devices" in err
    assert record_of(run)["updates"] == UPDATES
    found, expected = (load_file(path / "best/model.safetensors") for path in (run, one))
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"WORLD_SIZE": "2"}, "RANK: is not set, though WORLD_SIZE is 2"),
        ({"WORLD_SIZE": "y", "RANK": "x"}, "RANK: is 'x', though WORLD_SIZE is y"),
        ({"WORLD_SIZE": "2", "RANK": "0", "MASTER_PORT": "1"}, "MASTER_ADDR: is not set"),
    ],
)
def test_variables_that_no_launcher_sets(
    variables: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", variables)
    with pytest.raises(ConfigError) as caught, join_workers(torch.device("cpu")):
        pass
    assert words in str(caught.value)
    assert "torchrun" in str(caught.value)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_process_that_waits_for_others_can_be_ended(project: Project, tmp_path: Path, number: int) -> None:
    place = {"WORLD_SIZE": "2", "RANK": "0", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29533"}
    arguments = train_arguments(project, tmp_path / "run")
    with processes.start(*arguments, stderr=PIPE, environment={**os.environ, **place}) as process:
        assert process.stderr is not None
        assert "waiting at 127.0.0.1:29533 for 1 other processes" in process.stderr.readline()
        time.sleep(0.5)
        process.send_signal(number)
        assert process.wait(20) == -number
    assert not (tmp_path / "run").exists()
