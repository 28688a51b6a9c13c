"""Load test of `nmt serve`, and of OpenNMT-py's server: many concurrent clients, every reply compared."""

import argparse
import asyncio
import json
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import nmt
from benchmarks import opennmt, ours
from benchmarks.arguments import Commands, add_parser, positive
from benchmarks.exported import OTHERS
from benchmarks.measuring import MIB, PEER_VARIABLES, RunError, environment, start
from benchmarks.startup import read_memory
from benchmarks.tables import markdown
from nmt.models.storage import read_export_format
from nmt.runtimes.folder import load_export

SENTENCES = 500  # number of different sentences
ALONE = 10.0
"""Seconds at least that the program of an export translates by itself."""


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


@dataclass(frozen=True)
class Server:
    """A server under test.

    Attributes:
        name: Name of the toolkit.
        process: Its process.
        port: Its port.
        path: Path of the requests.
        body: Makes the JSON value of a request from a sentence.
        read: Reads the translation from the JSON value of a reply.
        expected: The correct translation of each sentence.
    """

    name: str
    process: subprocess.Popen[bytes]
    port: int
    path: str
    body: Callable[[str], Any]
    read: Callable[[Any], str]
    expected: Mapping[str, str]


def add_command(commands: Commands) -> None:
    """Describe the arguments."""
    about, output = "errors, response times and memory of nmt serve under load", "runs/benchmark/serve"
    parser = add_parser(commands, benchmark_serve, "serve", about, output, threads=1, peers=["opennmt"])
    parser.add_argument("--model", type=Path, required=True, help="run or model directory, or an export")
    parser.add_argument("--input", type=Path, required=True, help="sentences to translate, one per line; tabs end them")
    parser.add_argument("--clients", type=positive, default=200, help="concurrent clients")
    parser.add_argument("--seconds", type=positive, default=60, help="duration")
    parser.add_argument("--opennmt-model", type=Path, metavar="FILE", help="the model of OpenNMT-py's server")


def benchmark_serve(arguments: argparse.Namespace) -> None:
    """Print a row of measurements for each server; they run one after the other."""
    folder: Path = arguments.output.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    lines = arguments.input.read_text(encoding="utf-8").split("\n")
    texts = list(filter(None, dict.fromkeys(line.split("\t")[0].strip() for line in lines)))[:SENTENCES]
    starts = [start_ours] if arguments.opennmt is None else [start_ours, start_opennmt]
    rows = []
    alone = measure_alone(arguments.model, texts, arguments.clients, arguments.threads)
    for start_server in starts:
        server = start_server(arguments, texts, folder)
        process, load = server.process, Load()
        try:
            asyncio.run(ask_all(server, load, arguments.clients, arguments.seconds))
            peak, _ = read_memory(Path(f"/proc/{process.pid}/status").read_text())
            process.send_signal(signal.SIGTERM)
            code = process.wait(60)
        finally:
            process.kill()
            process.wait()
        if code not in (0, -signal.SIGTERM):
            raise RunError(f"{server.name}: exit code {code}; log: {folder}")
        rows.append(row(server.name, load, arguments, peak))
    header = ["server", "clients", "seconds", "p50 ms", "p99 ms", "sentences/s", "errors", "wrong answers"]
    print(markdown([*header, "peak resident MiB"], rows))
    again = measure_alone(arguments.model, texts, arguments.clients, arguments.threads)
    if alone and again:
        print(f"\nthe program of the export itself, before and after: {alone:,.0f} and {again:,.0f} sentences/s")


def measure_alone(model: Path, texts: list[str], clients: int, threads: int) -> float | None:
    """Let the program of an export translate in this process, as many texts at a time as there are clients.

    Returns:
        Sentences a second; None for a model that is no export, or whose beam its program lacks.
    """
    name = read_export_format(model)
    if name not in OTHERS:
        return None
    folder = load_export(model)
    beam = folder.config.decode.beam_size
    if beam not in OTHERS[name]:
        return None
    translate = OTHERS[name][beam](model, folder, beam, threads)
    calls = [texts[start : start + clients] for start in range(0, len(texts), clients)]
    translate(calls[0])
    count = 0
    begin = time.perf_counter()
    while time.perf_counter() - begin < ALONE:
        for lines in calls:
            count += len(translate(lines))
    return count / (time.perf_counter() - begin)


def start_ours(arguments: argparse.Namespace, texts: list[str], folder: Path) -> Server:
    """Start `nmt serve`; its answers are to be those of the translator."""
    translator = nmt.load(arguments.model, device="cpu")
    translator.repairs = True  # as the server's
    expected = {text: translator.translate(text).text for text in texts}
    assert translator.direction
    source, target = translator.direction.source, translator.direction.target
    command = ours.nmt("serve", "--model", arguments.model, "--port", "0", "--device", "cpu")
    log = folder / "nmt.log"
    with log.open("wb") as file:
        process = start(command, file, environment(arguments.threads))
    while not (found := re.search(r"serving .*:(\d+);", log.read_text(encoding="utf-8"))):
        wait_for(process, log)

    def body(text: str) -> Any:
        return {"q": text, "source": source, "target": target}

    def read(reply: Any) -> str:
        return str(reply["translatedText"])

    return Server("nmt", process, int(found[1]), "/translate", body, read, expected)


def start_opennmt(arguments: argparse.Namespace, texts: list[str], folder: Path) -> Server:
    """Start OpenNMT-py's server; its answers are to be those that it gives to one client."""
    if arguments.opennmt_model is None:
        raise RunError("give --opennmt-model")
    with socket.create_server(("127.0.0.1", 0)) as probe:  # a port that is free
        port = int(probe.getsockname()[1])
    config, log = folder / "opennmt.json", folder / "opennmt.log"
    config.write_text(json.dumps(opennmt.server_config(arguments.opennmt_model.resolve())), encoding="utf-8")
    command = [str(arguments.opennmt.absolute()), "-W", "ignore", "-m", opennmt.SERVER_MODULE]
    command += ["--model_config", str(config), "--ip", "127.0.0.1", "--port", str(port)]
    with log.open("wb") as file:
        process = start(command, file, environment(arguments.threads) | PEER_VARIABLES)
    path = "/translator/translate"
    expected: dict[str, str] = {}
    while len(expected) < len(texts):
        text = texts[len(expected)]
        body = json.dumps(opennmt.request_body(text)).encode()
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", body) as reply:
                expected[text] = opennmt.read_reply(json.load(reply))
        except urllib.error.URLError:  # it does not listen yet
            wait_for(process, log)
    return Server("OpenNMT-py", process, port, path, opennmt.request_body, opennmt.read_reply, expected)


def wait_for(process: subprocess.Popen[bytes], log: Path) -> None:
    """Give a server time to start.

    Raises:
        RunError: It has ended.
    """
    if process.poll() is not None:
        raise RunError(f"exit code {process.returncode}; log: {log}")
    time.sleep(0.05)


async def ask_all(server: Server, load: Load, clients: int, seconds: int) -> None:
    """Let clients request one sentence after another until the time is over."""
    bodies = [json.dumps(server.body(text)).encode() for text in server.expected]
    answers = list(server.expected.values())
    end = time.perf_counter() + seconds

    async def client(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        while time.perf_counter() < end:
            index = number % len(bodies)
            number += clients + 1
            begin = time.perf_counter()
            status, reply = await ask(reader, writer, server.path, bodies[index])
            load.seconds.append(time.perf_counter() - begin)
            load.errors += status != 200
            load.wrong += status == 200 and server.read(json.loads(reply)) != answers[index]
        writer.close()

    done = await asyncio.gather(*map(client, range(clients)), return_exceptions=True)
    load.errors += sum(isinstance(each, BaseException) for each in done)


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, body: bytes) -> tuple[int, bytes]:
    """One request on a persistent connection: status and body of the reply."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    writer.write(head.encode() + b"\r\n\r\n" + body)
    reply = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    length = re.search(r"content-length: (\d+)", reply, re.IGNORECASE)
    return int(reply.split(" ", 2)[1]), await reader.readexactly(int(length[1]) if length else 0)


def row(name: str, load: Load, arguments: argparse.Namespace, peak: int) -> list[str]:
    """A row of the table."""
    p50, p99 = 1000 * np.percentile(load.seconds or [0.0], (50, 99))
    speed = f"{len(load.seconds) / arguments.seconds:,.0f}"
    counts = [f"{load.errors:,}", f"{load.wrong:,}", f"{peak / MIB:,.0f}"]
    return [name, str(arguments.clients), str(arguments.seconds), f"{p50:,.0f}", f"{p99:,.0f}", speed, *counts]
