"""The share of the machine's matrix rate that translating reaches."""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.arguments import Commands, positive
from benchmarks.limit import PATHS, product_rate
from benchmarks.products import Product
from benchmarks.tables import markdown
from benchmarks.workload import read_lines

if TYPE_CHECKING:
    from nmt.translation.translator import Translator

PRECISIONS = {"float32": PATHS[1], "bfloat16": PATHS[2]}
"""The path that products take in each precision of `nmt translate`."""


def add_command(commands: Commands) -> None:
    """Describe the arguments."""
    parser = commands.add_parser("share", help="the share of the machine's matrix rate that translating reaches")
    parser.add_argument("--model", type=Path, required=True, nargs="+", help="run or model directories")
    parser.add_argument("--input", type=Path, required=True, help="sentences, one per line")
    parser.add_argument("--beam-size", type=positive, default=5)
    parser.add_argument("--rounds", type=positive, default=5)
    parser.add_argument("--threads", type=positive, default=2, help="CPU threads")
    parser.set_defaults(run=benchmark_share)


def benchmark_share(arguments: argparse.Namespace) -> None:
    """Print, for each model and precision, the operations per second that translating reaches and could reach."""
    import torch

    import nmt

    torch.set_num_threads(arguments.threads)
    lines = read_lines(arguments.input)
    rows = []
    for model in arguments.model:
        for precision, path in PRECISIONS.items():
            translator = nmt.load(model, device="cpu", beam_size=arguments.beam_size, precision=precision)
            seconds = []
            for _ in range(1 + arguments.rounds):
                begin = time.perf_counter()
                translator.translate(lines)
                seconds.append(time.perf_counter() - begin)
            median = statistics.median(seconds[1:])  # the first round creates kernels
            operations = count_operations(translator, lines)
            decoder = translator.model.decoder
            columns, inner = decoder.output.weight.shape
            output = Product("output layer", translator.options.batch_size * arguments.beam_size, inner, columns)
            rate = product_rate(output, path)
            reached = operations / median
            speed = f"{len(lines) / median:,.0f}"
            rows.append([str(model), precision, speed, f"{operations / 1e9:,.0f}", f"{reached / 1e9:,.0f}"])
            rows[-1] += [f"{rate / 1e9:,.0f}", f"{reached / rate:.0%}"]
    header = ["model", "precision", "sentences/s", "GFLOP", "GFLOP/s reached", "GFLOP/s of the output layer", "share"]
    print(markdown(header, rows))


def count_operations(translator: Translator, lines: list[str]) -> int:
    """Floating-point operations of the matrix products of a translation, as carried out."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    def count_layer(inputs: Any, input_weight: Any, hidden_weight: Any, *rest: Any, **others: Any) -> int:
        steps, sentences, size = inputs
        gates, hidden = hidden_weight
        return int(2 * steps * sentences * gates * (size + hidden))

    layers: dict[Any, Any] = {torch.ops.aten.mkldnn_rnn_layer: count_layer}
    with FlopCounterMode(display=False, custom_mapping=layers) as counter:
        translator.translate(lines)
    return int(counter.get_total_flops())
