"""The example files for clusters: a job that is stopped is queued again, and several machines train one run."""

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from conftest import Cli, Project, read_metrics, train_arguments, wait_until
from training_runs import record_of

CLUSTERS = Path(__file__).parents[2] / "docs/clusters"
BASH = Path("/bin/bash")
EPOCHS = "train.epochs=8"  # 120 updates
SRUN = """
shift 4  # --ntasks-per-node 1 --cpus-per-task 1
"$@" &
first=$!
"$@" &
second=$!
trap 'kill -TERM "$first" "$second"' TERM
wait "$first" || wait "$first"  # a signal ends the wait
code=$?
wait "$second"
exit "$code"
"""


def spot() -> Any:
    return yaml.safe_load((CLUSTERS / "spot.yaml").read_text(encoding="utf-8"))


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A machine of Slurm, as far as a job sees one: its number, a `scontrol` that notes what it is asked to requeue and
    knows one machine, and a `srun` that starts its command twice and passes signals on.
    """
    folder = tmp_path / "bin"
    folder.mkdir()
    programs = {
        "nmt": f'exec {shlex.quote(sys.executable)} -m nmt "$@"',
        "torchrun": f'exec {shlex.quote(sys.executable)} -m torch.distributed.run "$@"',
        "scontrol": f'[ "$1" = show ] && echo 127.0.0.1 || echo "$@" >> {shlex.quote(str(tmp_path / "asked"))}',
        "srun": SRUN,
    }
    for name, command in programs.items():
        (folder / name).write_text(f"#!/bin/bash\n{command}\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "SLURM_JOB_ID": "17", "OMP_NUM_THREADS": "1"}


@pytest.mark.skipif(not BASH.exists(), reason="needs bash")
def test_a_job_that_is_stopped_goes_back_into_the_queue(
    random_project: Project, tmp_path: Path, environment: dict[str, str]
) -> None:
    run = tmp_path / "run"
    command = [BASH, CLUSTERS / "slurm.sh", *train_arguments(random_project, run, EPOCHS)]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as job:
        log = run / "metrics.jsonl"
        wait_until(lambda: log.exists() and len(read_metrics(run)) > 0, 120)
        job.send_signal(signal.SIGTERM)  # to the shell only, as --signal=B:TERM does
        _, said = job.communicate(timeout=120)
    assert job.returncode == 75, said
    assert record_of(run)["state"] == "stopped"
    assert (tmp_path / "asked").read_text(encoding="utf-8") == "requeue 17\n"

    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert record_of(run)["state"] == "finished"
    assert (tmp_path / "asked").read_text(encoding="utf-8") == "requeue 17\n"


@pytest.mark.soak
@pytest.mark.skipif(not BASH.exists(), reason="needs bash")
def test_a_job_that_fails_stays_out_of_the_queue(tmp_path: Path, environment: dict[str, str]) -> None:
    command = [BASH, CLUSTERS / "slurm.sh", "train", "nowhere.yaml"]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, (tmp_path / "asked").exists()) == (1, False)


@pytest.mark.skipif(not BASH.exists(), reason="needs bash")
@pytest.mark.parametrize(("code", "asked"), [(75, "requeue 17\n"), (0, ""), (1, "")])
def test_a_job_runs_any_command_and_its_exit_code_decides(
    tmp_path: Path, environment: dict[str, str], code: int, asked: str
) -> None:
    (tmp_path / "bin/nmt").write_text(f'#!/bin/bash\nprintf "%s\\n" "$@"\nexit {code}\n', encoding="utf-8")
    notes = tmp_path / "asked"
    notes.touch()
    command = [BASH, CLUSTERS / "slurm.sh", "compare", "two words", "--jobs", "2"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (code, "compare\ntwo words\n--jobs\n2\n")
    assert notes.read_text(encoding="utf-8") == asked


@pytest.mark.soak
@pytest.mark.skipif(not BASH.exists() or not torch.distributed.is_gloo_available(), reason="needs bash and gloo")
def test_a_job_on_two_machines_is_one_run_that_goes_back_into_the_queue(
    random_project: Project, tmp_path: Path, environment: dict[str, str]
) -> None:
    run = tmp_path / "run"
    command = [BASH, CLUSTERS / "slurm.sh", *train_arguments(random_project, run, EPOCHS)]
    job_id = str(os.getpid())  # which decides the port
    environment |= {"SLURM_NNODES": "2", "SLURM_JOB_NODELIST": "first,second", "SLURM_JOB_ID": job_id}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as job:
        log = run / "metrics.jsonl"
        wait_until(lambda: log.exists() and len(read_metrics(run)) > 0, 120)
        job.send_signal(signal.SIGTERM)
        _, said = job.communicate(timeout=120)
    assert job.returncode == 75, said
    assert "on 2 times cpu" in said
    assert record_of(run)["state"] == "stopped"
    assert (tmp_path / "asked").read_text(encoding="utf-8") == f"requeue {job_id}\n"
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert record_of(run)["state"] == "finished"


@pytest.mark.soak
@pytest.mark.skipif(not BASH.exists() or not torch.distributed.is_gloo_available(), reason="needs bash and gloo")
def test_two_machines_train_one_run(random_project: Project, tmp_path: Path, environment: dict[str, str]) -> None:
    """Both are this one, on its loopback address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        endpoint = f"127.0.0.1:{free.getsockname()[1]}"
    run = tmp_path / "run"
    command = [CLUSTERS / "torchrun.sh", endpoint, *train_arguments(random_project, run)[1:]]
    machines = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [machine.communicate(timeout=300)[1] for machine in machines]
    assert [machine.returncode for machine in machines] == [0, 0], said
    assert record_of(run)["state"] == "finished"
    assert ["on 2 times cpu" in text for text in said].count(True) == 1


def test_the_commands_of_a_spot_job_have_options_that_exist(cli: Cli) -> None:
    task = spot()
    commands = re.findall(r"\bnmt (\w+)( .*)?$", task["run"], re.MULTILINE)
    assert [name for name, _ in commands] == ["preprocess", "train"]
    for name, words in commands:
        assert {*re.findall(r"--[a-z-]+", words)} <= {*re.findall(r"--[a-z-]+", cli(name, "--help").out)}
    assert task["resources"]["job_recovery"]["recover_on_exit_codes"] == [75]
    assert "data/prepared/$CONFIG" in task["run"]
    assert {*task["file_mounts"]} == {re.findall(r"^cd (.*)$", task["run"], re.MULTILINE)[0]}
