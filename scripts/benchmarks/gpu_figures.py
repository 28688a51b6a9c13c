"""Measure one kind of model on a device: training, launches of an update, decoding.

python -m benchmarks.gpu_figures REQUEST

REQUEST is JSON: kind (of `ours.OVERRIDES`), config, overrides (more of them), data (encoded), output (a folder),
device, updates (of a training), trainings (rows of `gpu.TRAININGS`), searches (rows of `gpu.SEARCHES`), lines (a file
to translate), words, length (of each translation) and batch_size of decoding. Each figure is a line of output, JSON, as
soon as it is known: section, row, and value, or error.
"""

import contextlib
import json
import shutil
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch.profiler import ProfilerActivity, profile

import nmt
from benchmarks import ours, random_nmt
from benchmarks.measuring import steady
from benchmarks.systems import UPDATES_PER_REPORT
from nmt.config import load_config
from nmt.corpus.batch_source import open_batches
from nmt.corpus.dataset import open_data
from nmt.corpus.noise import no_noise
from nmt.system.device import resolve_device
from nmt.training.distributed import Workers
from nmt.training.loop import make_update, plan_epoch, start
from nmt.training.setup import make_model, resolve

LAUNCHES = ("cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx")
"""Names under which the profiler counts the launch of a kernel."""
GRAPH_LAUNCHES = ("cudaGraphLaunch", "cuGraphLaunch")
WARM_UP = 4  # updates


def main() -> None:
    """Measure what the request names; an error ends one figure, not the others."""
    request = json.loads(sys.argv[1])
    for row in request["trainings"]:
        with figure("training", request["kind"], row) as found:
            found["value"] = round(train(request, row))
    for graphs in (False, True):
        with figure("launches", request["kind"], [graphs]) as found:
            found |= count_launches(request, graphs=graphs)
    for row in request["searches"]:
        with figure("decoding", request["kind"], row) as found:
            found["value"] = round(decode(request, row))


@contextlib.contextmanager
def figure(section: str, kind: str, row: Sequence[object]) -> Iterator[dict[str, Any]]:
    """Print a figure that the block fills, or why there is none."""
    found: dict[str, Any] = {"section": section, "row": [kind, *row]}
    try:
        yield found
    except Exception as error:  # whatever it is, the other figures are wanted
        found["error"] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no message'}"
    print(json.dumps(found), flush=True)


def train(request: Mapping[str, Any], row: Sequence[Any]) -> float:
    """Median target tokens per second of a real training, after the warm-up.

    Args:
        request: See above.
        row: Precision, sentences of a batch, graphs.
    """
    precision, size, graphs = row
    updates = request["updates"]
    folder = Path(request["output"]) / "-".join(map(str, [request["kind"], *row]))
    shutil.rmtree(folder, ignore_errors=True)
    limits = [f"train.max_updates={updates}", "train.epochs=100000", f"train.validation.every={updates}"]
    limits += ["train.validation.metric=loss", f"train.log_every={UPDATES_PER_REPORT}"]
    settings = [f"train.precision={precision}", f"train.batch.size={size}", f"train.graphs={str(graphs).lower()}"]
    nmt.train(
        request["config"],
        data=request["data"],
        output=folder,
        overrides=[*overrides_of(request), *limits, *settings],
    )
    return statistics.median(steady(ours.read_speeds((folder / "metrics.jsonl").read_text(encoding="utf-8"))))


def overrides_of(request: Mapping[str, Any]) -> list[str]:
    """The overrides that make the kind of model on the device."""
    return [*ours.OVERRIDES[request["kind"]], *request["overrides"], f"train.device={request['device']}"]


def count_launches(request: Mapping[str, Any], *, graphs: bool) -> dict[str, int]:
    """Launches of one update in bfloat16, and torch's operators in it, both on the host."""
    settings = [*overrides_of(request), "train.precision=bfloat16", f"train.graphs={str(graphs).lower()}"]
    device = resolve_device(request["device"])
    data = open_data(Path(request["data"]))
    config = resolve(load_config(request["config"], settings), data, Workers(device=device))
    state = start(make_model(config, data).to(device).train(), data.train, config.train)
    update = make_update(state.replica, state.optimizer, config.train, state.workers, state.scale)
    indices = np.concatenate(plan_epoch(data.train, config.train, 1)[0])
    batch = open_batches(data.train, no_noise, device)(indices, 1)
    for number in range(WARM_UP):
        update([batch], number)
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device.type == "cuda" else [])]
    with profile(activities=activities) as recorded:
        step = update([batch], WARM_UP)
        float(step.loss)  # waits for the device
    events = recorded.key_averages()
    return {
        "value": sum(event.count for event in events if event.key in LAUNCHES),
        "graphs": sum(event.count for event in events if event.key in GRAPH_LAUNCHES),
        "operators": sum(event.count for event in events if event.key.startswith("aten::")),
    }


def decode(request: Mapping[str, Any], row: Sequence[Any]) -> float:
    """Sentences per second with random weights, in a process whose kernels are warm.

    Args:
        request: See above.
        row: Precision, beam size.
    """
    precision, beam = row
    overrides = [*ours.OVERRIDES[request["kind"]], *request["overrides"]]
    asked = {**request, "precision": precision, "beam": beam, "overrides": overrides}
    reply = random_nmt.translate(asked)
    lines: int = len(Path(request["lines"]).read_text(encoding="utf-8").splitlines())
    return lines / float(reply["seconds"])


if __name__ == "__main__":
    main()
