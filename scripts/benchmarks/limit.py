"""The rate of matrix products in the model's shapes on this machine, and the share of it that training reaches."""

import argparse
import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

import torch
from torch.utils.benchmark import Timer
from tqdm import tqdm

from benchmarks import ours
from benchmarks.arguments import Commands, add_parser, updates
from benchmarks.products import Kind, Product, Standard, forward_products, training_operations, weighted_rate
from benchmarks.tables import markdown
from benchmarks.workload import check_workload, read_lines

PATHS = ("fp32", "fp32, fast products", "bf16")
SECONDS = 0.1  # of measuring a product
KINDS = get_args(Kind)


def add_command(commands: Commands) -> None:
    """Describe the arguments."""
    about = "the machine's matrix rate in the model's shapes, and our share of it"
    parser = add_parser(commands, benchmark_limit, "limit", about, "runs/benchmark")
    parser.add_argument("--workload", type=Path, metavar="DIR", help="train on it to measure our share")
    parser.add_argument("--updates", type=updates, default=150, help="updates per training run")
    parser.add_argument("--only", nargs="+", choices=KINDS, default=KINDS, help="kinds of models; all unless given")


def benchmark_limit(arguments: argparse.Namespace) -> None:
    """Print the rate of each product by path and, with a workload, the share of it that training reaches."""
    torch.set_num_threads(arguments.threads)
    lengths, vocabulary = (8.86, 8.81), 5083
    if arguments.workload:
        workload: Path = arguments.workload.resolve()
        check_workload(workload)
        lengths = mean_length(workload / "train.en"), mean_length(workload / "train.de")
        vocabulary = len(read_lines(workload / "vocab.de")) + 4
    models = {kind: Standard(kind, *lengths, vocabulary) for kind in arguments.only}
    shapes = {product.shape: product for model in models.values() for product in forward_products(model)}
    bar = tqdm(shapes.items(), desc="multiplying", leave=False, disable=None)
    rates = {shape: [product_rate(product, path) for path in PATHS] for shape, product in bar}
    for kind, model in models.items():
        products = forward_products(model)
        total = sum(product.operations for product in products)
        rows = []
        for product in products:
            shape = " x ".join(map(str, product.shape[1 if product.batch == 1 else 0 :]))
            rows.append([product.name, shape, f"{product.operations / total:.1%}", *giga(rates[product.shape])])
        weighted = [weighted_rate(products, [rates[p.shape][path] for p in products]) for path in range(len(PATHS))]
        rows.append(["all, weighted", "", "100%", *giga(weighted)])
        print(f"{kind}: {training_operations(model) / 1e6:.1f} MFLOP per target token; GFLOP/s, forward and backward\n")
        print(markdown(["product", "shape", "of the work", *PATHS], rows) + "\n", flush=True)
        if arguments.workload:
            print(share_table(kind, model, dict(zip(PATHS, weighted, strict=True)), workload, arguments), flush=True)


def giga(rates: Sequence[float]) -> list[str]:
    """Rates in units of 1e9."""
    return [f"{rate / 1e9:,.0f}" for rate in rates]


def share_table(
    kind: str, model: Standard, rates: dict[str, float], workload: Path, arguments: argparse.Namespace
) -> str:
    """Train in fp32 and bf16, and return a table of the share of the rates that training reaches."""
    output = arguments.output.resolve()
    config, data = ours.write_config(output), output / "data"
    ours.prepare_workload(config, workload, data, arguments.threads)
    operations = training_operations(model)
    rows = []
    for precision in ("float32", "bfloat16"):
        overrides = [*ours.OVERRIDES[kind], f"train.precision={precision}"]
        folder = output / "limit" / f"{kind}-{precision}"
        found = ours.train(config, data, folder, arguments.updates, arguments.threads, overrides)
        reached, rate = operations * found.speed, rates[found.precision]
        rows.append([kind, found.precision, f"{found.speed:,.0f}", *giga([reached, rate]), f"{reached / rate:.0%}"])
    header = ["training", "precision", "target tokens/s", "GFLOP/s reached", "of GFLOP/s possible", "share"]
    return markdown(header, rows) + "\n"


def mean_length(path: Path) -> float:
    """Mean tokens per line, including EOS."""
    lines = read_lines(path)
    return sum(len(line.split()) + 1 for line in lines) / len(lines)


def product_rate(product: Product, path: str) -> float:
    """Operations per second of a product and the two of its backward pass."""
    number, rows, inner, columns = product.shape
    kind = torch.bfloat16 if path == "bf16" else torch.float32
    sizes = (rows, inner), (columns, inner), (rows, columns)  # a layer's weight has a row for each column of its result
    many = (number,) if number > 1 else ()
    inputs, weight, gradient = (torch.randn(*many, *size).to(kind) for size in sizes)

    def work() -> None:
        _ = inputs @ weight.mT
        _ = gradient @ weight
        _ = gradient.mT @ inputs

    with products_of(path):
        timer = Timer("work()", globals={"work": work}, num_threads=torch.get_num_threads())
        return 3 * 2 * number * rows * inner * columns / timer.blocked_autorange(min_run_time=SECONDS).median


@contextlib.contextmanager
def products_of(path: str) -> Iterator[None]:
    """The setting of a path."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium" if path == "fp32, fast products" else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
