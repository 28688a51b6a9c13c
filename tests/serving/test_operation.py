"""The server in operation: started again under the rules of its unit, and given another model as the guide says."""

import contextlib
import fcntl
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import termios
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import processes
import pytest
from processes import PIPE
from real_server import GOLDEN_MODEL, wait_until
from safetensors.torch import load_file, save_file
from test_service_files import GUIDE, UNIT

FIELDS = {"q": "I am old.", "source": "en", "target": "de"}
CLEAN = {0, -signal.SIGHUP, -signal.SIGINT, -signal.SIGTERM, -signal.SIGPIPE}
"""Ends that are no failures for systemd."""


def free_port() -> int:
    """A port below those that the system lends to clients and other servers, so that it is free again after a stop."""
    for port in random.sample(range(20_000, 32_000), 100):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("no free port")


class Unit:
    """A server that starts again as the `Restart` of the unit says, like a service of systemd without a terminal.

    Args:
        folder: For its log, its process id, and a `systemctl` that stops it once.
        arguments: Of `nmt serve`.
    """

    def __init__(self, folder: Path, *arguments: object) -> None:
        (self.rule,) = re.findall("^Restart=(.*)$", UNIT, re.MULTILINE)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.ends: list[int] = []
        self.pid = 0
        self.log = folder / "log"
        self._pid = folder / "pid"
        self._arguments = ["serve", *arguments, "--port", self.port, "--device", "cpu"]
        self._stopping = False
        self._thread = threading.Thread(target=self._run)
        shim = folder / "systemctl"
        shim.write_text(f'pid=$(cat {self._pid}); kill -TERM "$pid"; while kill -0 "$pid" 2>&-; do sleep 0.05; done\n')
        shim.chmod(0o755)

    def __enter__(self) -> "Unit":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stopping = True
        self.send(signal.SIGTERM)
        self._thread.join(60)
        assert not self._thread.is_alive()
        print(self.log.read_text())  # which pytest shows where the test fails

    def _run(self) -> None:
        while not self._stopping:
            with self.log.open("a") as log, processes.start(*self._arguments, stderr=log, new_session=True) as process:
                self.pid = process.pid
                self._pid.write_text(str(process.pid))
                end = process.wait()
            self.ends.append(end)
            if self.rule != "always" and (self.rule != "on-failure" or end in CLEAN):
                break

    def send(self, number: int) -> None:
        os.kill(self.pid, number)

    def is_ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/health", timeout=5, verify=False).status_code == 200
        except httpx.TransportError:
            return False

    def translate(self) -> tuple[str, str]:
        """The translation of a sentence, and the model that it is from.

        It returns once the server has logged the request, which it does after its answer: a kill in between would lose
        the record.
        """
        num_records = len(self.records())
        reply = httpx.post(f"{self.url}/translate", json=FIELDS, timeout=20)
        wait_until(lambda: len(self.records()) > num_records, 20)
        return reply.json()["translatedText"], reply.headers["model-identity"]

    def records(self) -> list[dict[str, Any]]:
        """The log's records of translations so far."""
        lines = [line for line in self.log.read_text().splitlines(keepends=True) if line.startswith("{")]
        records = [json.loads(line) for line in lines if line.endswith("\n")]
        return [record for record in records if record["route"] == "/translate"]


@pytest.fixture
def models(tmp_path: Path) -> dict[str, Path]:
    """Two models by their folders, one of them another run, and the link of the guide."""
    (tmp_path / "srv").mkdir()
    first = shutil.copytree(GOLDEN_MODEL, tmp_path / "srv/en-de-1")
    second = shutil.copytree(GOLDEN_MODEL, tmp_path / "runs/en-de-larger/best")
    tensors = {
        name: value + 0.05 if value.is_floating_point() else value
        for name, value in load_file(second / "model.safetensors").items()
    }
    save_file(tensors, second / "model.safetensors")
    (tmp_path / "srv/en-de").symlink_to("en-de-1")
    return {"first": first, "second": second, "link": tmp_path / "srv/en-de"}


def identity(model: Path) -> str:
    return subprocess.run(["sha256sum", model / "model.safetensors"], capture_output=True, text=True).stdout[:12]


@pytest.mark.skipif(not shutil.which("curl") or not shutil.which("sha256sum"), reason="runs the commands of the guide")
def test_it_comes_back_and_takes_another_model_as_the_guide_says(models: dict[str, Path], tmp_path: Path) -> None:
    (commands,) = re.findall("```sh\n(.*?)```", GUIDE, re.DOTALL)
    guide = [line.replace("/srv/nmt", str(tmp_path / "srv")) for line in commands.splitlines()]
    assert len(guide) == 8
    old, new = identity(models["first"]), identity(models["second"])
    assert old != new
    with Unit(tmp_path, "--model", models["link"]) as unit:

        def run(*lines: str) -> str:
            environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
            commands = "set -e\n" + "\n".join(lines).replace("http://127.0.0.1:5000", unit.url)
            done = subprocess.run(
                ["bash", "-c", commands], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
            )
            assert done.returncode == 0, done.stderr
            return done.stdout

        def health(expected: str) -> None:
            wait_until(unit.is_ready, 60)
            (model,) = httpx.get(f"{unit.url}/health").json()["models"]
            update = json.loads((models["link"] / "model.json").read_text())["update"]
            named = {"direction": "en-de", "path": str(models["link"]), "update": update, "identity": expected}
            assert model == named

        health(old)
        first, found = unit.translate()
        assert found == old
        before = unit.pid
        unit.send(signal.SIGHUP)
        time.sleep(0.3)
        assert (unit.translate(), unit.pid, unit.ends) == ((first, old), before, [])
        for number, end in ((signal.SIGTERM, 0), (signal.SIGKILL, -signal.SIGKILL)):
            before = unit.pid
            unit.send(number)
            wait_until(lambda before=before: unit.pid != before, 60)  # type: ignore[misc]
            health(old)
            assert unit.translate() == (first, old)
            assert unit.ends[-1] == end
        run(*guide[:3])  # the model in memory answers until the restart
        assert unit.translate() == (first, old)
        assert json.loads(run(*guide[3:5]))["models"][0]["identity"] == new
        assert unit.translate()[1] == new
        run(*guide[5:])
        wait_until(unit.is_ready, 60)
        health(old)
        assert unit.translate() == (first, old)
        assert unit.ends == [0, -signal.SIGKILL, 0, 0]
    lines = unit.log.read_text().splitlines()
    starts = [
        re.search(r"; en-de is (\S+), update [\d,]+, identity (\w+)$", line) for line in lines if "serving" in line
    ]
    assert [found and found.groups() for found in starts] == [
        (str(models["link"]), name) for name in (old, old, old, new, old)
    ]
    answered = [record["models"][0]["identity"] for record in unit.records()]
    assert answered == [old] * 5 + [new, old]


def take_terminal() -> None:
    """Make the terminal at standard error that of the session."""
    fcntl.ioctl(2, termios.TIOCSCTTY, 0)


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="needs SIGHUP")
def test_it_stops_when_its_terminal_hangs_up() -> None:
    leader, terminal = os.openpty()
    command: list[Any] = ["serve", "--model", GOLDEN_MODEL, "--port", 0, "--device", "cpu"]
    with processes.start(*command, stderr=terminal, stdout=PIPE, new_session=True, prepare=take_terminal) as process:
        os.close(terminal)
        said = b""
        while b"serving" not in said:
            said += os.read(leader, 1 << 12)
        process.send_signal(signal.SIGHUP)
        assert process.wait(60) == 0
    os.close(leader)
