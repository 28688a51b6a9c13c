"""The processes that tests start are like those of users."""

import functools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import processes
import pytest
from processes import PIPE


def report() -> None:
    """Print what the process has, and what the server that it was forked from has."""
    server = Path(f"/proc/{os.getppid()}")
    print(len(list((server / "task").iterdir())))
    print(Path.cwd(), dict(os.environ), sys.argv[1:], sys.stdin.read())
    print("broken", file=sys.stderr)
    sys.exit(3)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux")
def test_a_process_has_what_it_was_given_and_its_server_has_one_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = processes.run("a", 1, given="ü\n", program=report, environment={"KEY": "value"})
    threads, *given = done.stdout.splitlines()
    assert threads == "1"
    assert given == [f"{tmp_path} {{'KEY': 'value'}} ['a', '1'] ü", ""]
    assert (done.returncode, done.stderr) == (3, "broken\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGHUP])
def test_a_signal_ends_a_process(number: int) -> None:
    with processes.start(program=functools.partial(time.sleep, 60)) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        os.kill(process.pid, number)
        assert process.wait(60) == -number


def test_a_pipe_ends_with_its_process() -> None:
    with (
        processes.start(program=functools.partial(time.sleep, 60), stdout=PIPE) as first,
        processes.start(program=functools.partial(time.sleep, 60)) as second,
    ):
        first.kill()
        assert first.communicate(timeout=60) == ("", None)
        second.kill()
