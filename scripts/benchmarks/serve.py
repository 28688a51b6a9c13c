"""Load test of `nmt serve`: many concurrent clients, every reply compared with that of the translator."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

import nmt
from benchmarks import ours
from benchmarks.arguments import Commands, positive
from benchmarks.measuring import MIB, RunError, environment
from benchmarks.startup import read_memory
from benchmarks.tables import markdown
from nmt.model.storage import load_model
from nmt.workflow.runs import find_model

SENTENCES = 500  # number of different sentences


@dataclass
class Load:
    """Measurements of the clients.

    Attributes:
        seconds: Time of each request that was answered.
        wrong: Number of translations that differ from the translator's.
        errors: Number of requests without a translation.
    """

    seconds: list[float] = field(default_factory=list)
    wrong: int = 0
    errors: int = 0


def add_command(commands: Commands) -> None:
    """Describe the arguments."""
    parser = commands.add_parser("serve", help="errors, response times and memory of nmt serve under load")
    parser.add_argument("--model", type=Path, required=True, help="run or model directory")
    parser.add_argument("--input", type=Path, required=True, help="sentences to translate, one per line; tabs end them")
    parser.add_argument("--clients", type=positive, default=200, help="concurrent clients")
    parser.add_argument("--seconds", type=positive, default=60, help="duration")
    parser.add_argument("--threads", type=positive, default=1, help="CPU threads of the server")
    parser.add_argument("--output", type=Path, default=Path("runs/benchmark/serve"), help="folder for the log")
    parser.set_defaults(run=benchmark_serve)


def benchmark_serve(arguments: argparse.Namespace) -> None:
    """Print one row of measurements."""
    folder: Path = arguments.output
    folder.mkdir(parents=True, exist_ok=True)
    lines = arguments.input.read_text(encoding="utf-8").split("\n")
    texts = list(filter(None, dict.fromkeys(line.split("\t")[0].strip() for line in lines)))[:SENTENCES]
    translator = nmt.load(arguments.model, device="cpu")
    expected = {text: translator.translate(text).text for text in texts}
    target = load_model(find_model(arguments.model), torch.device("cpu")).config.data.languages[1]
    log = folder / "log"
    process, port = start(arguments.model, log, arguments.threads)
    try:
        load = Load()
        asyncio.run(ask_all(port, target, expected, load, arguments.clients, arguments.seconds))
        peak, _ = read_memory(Path(f"/proc/{process.pid}/status").read_text())
        process.send_signal(signal.SIGTERM)
        code = process.wait(60)
    finally:
        process.kill()
        process.wait()
    if code:
        raise RunError(f"exit code {code}; log: {log}")
    print(row(load, arguments.clients, arguments.seconds, peak))


def start(model: Path, log: Path, threads: int) -> tuple[subprocess.Popen[bytes], int]:
    """Start the server in its own process; returns the process and its port."""
    command = ours.nmt("serve", "--model", model, "--port", "0", "--device", "cpu")
    with log.open("wb") as file:
        process = subprocess.Popen(command, stderr=file, env={**os.environ, **environment(threads)})
    while not (found := re.search(r"serving .*:(\d+);", log.read_text(encoding="utf-8"))):
        if process.poll() is not None:
            raise RunError(f"exit code {process.returncode}; log: {log}")
        time.sleep(0.05)
    return process, int(found[1])


async def ask_all(port: int, target: str, expected: dict[str, str], load: Load, clients: int, seconds: int) -> None:
    """Let clients request one sentence after another until the time is over."""
    bodies = [json.dumps({"q": text, "source": "auto", "target": target}).encode() for text in expected]
    answers = list(expected.values())
    end = time.perf_counter() + seconds

    async def client(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.perf_counter() < end:
            index = number % len(bodies)
            number += clients + 1
            begin = time.perf_counter()
            status, body = await ask(reader, writer, bodies[index])
            load.seconds.append(time.perf_counter() - begin)
            load.errors += status != 200
            load.wrong += status == 200 and json.loads(body)["translatedText"] != answers[index]
        writer.close()

    done = await asyncio.gather(*map(client, range(clients)), return_exceptions=True)
    load.errors += sum(isinstance(each, BaseException) for each in done)


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes) -> tuple[int, bytes]:
    """One request on a persistent connection: status and body of the reply."""
    head = (
        f"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    )
    writer.write(head.encode() + b"\r\n\r\n" + body)
    reply = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    length = re.search(r"content-length: (\d+)", reply)
    return int(reply.split(" ", 2)[1]), await reader.readexactly(int(length[1]) if length else 0)


def row(load: Load, clients: int, seconds: int, peak: int) -> str:
    """The measurements as a table of one row."""
    header = ["clients", "seconds", "p50 ms", "p99 ms", "sentences/s", "errors", "wrong answers", "peak resident MiB"]
    p50, p99 = 1000 * np.percentile(load.seconds or [0.0], (50, 99))
    speed = f"{len(load.seconds) / seconds:,.0f}"
    counts = [f"{load.errors:,}", f"{load.wrong:,}", f"{peak / MIB:,.0f}"]
    return markdown(header, [[str(clients), str(seconds), f"{p50:.0f}", f"{p99:.0f}", speed, *counts]])
