import dataclasses
import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import Cli, Project

from nmt.config import Config, OptimizerSection, TrainSection, load_config
from nmt.dataset import EncodedPairs, Sequences, open_data
from nmt.model.seq2seq import Seq2Seq, build_model
from nmt.noise import no_noise
from nmt.training.state import make_optimizer
from nmt.workflow.check import (
    check_longest_batch,
    check_updates,
    count_parameters,
    describe_data,
    peak_growth,
    state_size,
    typical_pairs,
)

NAMES = [
    "training data",
    "too long",
    "validation data",
    "valid overlap",
    "test overlap",
    "parameters",
    "initial loss",
    "one batch overfits",
    "decoding",
    "sample",
    "sample",
    "longest batch",
    "memory",
    "first updates",
    "speed",
]


def pairs_of(src: list[list[int]], tgt: list[list[int]]) -> EncodedPairs:
    return EncodedPairs(Sequences.pack(src), Sequences.pack(tgt))


def lines_of(out: str) -> list[tuple[str, str]]:
    """Mark and name of each finding."""
    return [(line.split(maxsplit=1)[0], line[8:].split(":")[0]) for line in out.splitlines()[:-1]]


def contents(root: Path) -> dict[str, tuple[int, int]]:
    return {str(p): (p.stat().st_mtime_ns, p.stat().st_size) for p in sorted(root.rglob("*"))}


def test_a_healthy_project_is_fine_and_nothing_is_written(
    project: Project, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project.root)
    before = contents(project.root)
    found = cli("check", "--config", project.config)
    assert contents(project.root) == before
    assert found.code == 0, found
    assert found.err == ""
    lines = lines_of(found.out)
    assert [name for _, name in lines] == NAMES
    assert "PROBLEM" not in {mark for mark, _ in lines}
    assert found.out.endswith("nothing is wrong\n")
    size = len(open_data(project.data).tgt_vocabulary)
    assert f"ln {size} = {math.log(size):.2f}" in found.out
    for words in ("target tokens/s", "minutes an epoch", "hours for all", "come out as their references"):
        assert words in found.out


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("initial loss", ["model.initialization.scale=5"]),
        ("first updates", ["train.optimizer={name: sgd, learning_rate: 1000.0, clip_norm: null}"]),
        (
            "one batch overfits",
            [
                "model.attention.score=none",
                "model.embedding_size=1",
                "model.encoder.hidden_size=1",
                "model.decoder.hidden_size=1",
            ],
        ),
    ],
)
def test_what_is_broken_is_found(project: Project, cli: Cli, name: str, settings: list[str]) -> None:
    options = [part for setting in settings for part in ("--set", setting)]
    found = cli("check", "--config", project.config, "--data", project.data, *options)
    assert found.code == 1, found
    assert ("PROBLEM", name) in lines_of(found.out)
    last = found.out.splitlines()[-1]
    assert "problem" in last
    assert name in last


def test_weights_to_start_from_are_better_than_guessing(project: Project, cli: Cli) -> None:
    settings = ["--set", f"train.init_from={project.run}", "--set", "train.optimizer.learning_rate=0.0005"]
    found = cli("check", "--config", project.config, "--data", project.data, *settings)
    assert found.code == 0, found
    assert ("ok", "initial loss") in lines_of(found.out)


def test_bad_input_is_one_line(project: Project, cli: Cli, tmp_path: Path) -> None:
    for options, words in (
        (["--data", tmp_path / "none"], "does not exist"),
        (["--data", project.data, "--set", "text.lowercase=true"], "text.lowercase"),
        (["--data", project.data, "--set", "train.device=cuda:99"], "cuda:99"),
    ):
        found = cli("check", "--config", project.config, *options)
        assert found.code == 1
        assert found.out == ""
        assert found.err.startswith("nmt: error: ")
        assert found.err.count("\n") == 1
        assert words in found.err


LUONG = {
    "embedding_size": 3,
    "encoder": {"cell": "gru", "hidden_size": 2},
    "decoder": {"cell": "gru", "hidden_size": 4, "order": "luong"},
    "attention": {"score": "general"},
}
BAHDANAU = {
    "embedding_size": 3,
    "encoder": {"cell": "lstm", "hidden_size": 2},
    "decoder": {"cell": "lstm", "hidden_size": 4, "order": "bahdanau"},
    "attention": {"score": "additive"},
}
# A direction of G gates over I inputs has G * H * (I + H + 2) weights; the first state comes from W x + b.
GRU_ENCODER, LSTM_ENCODER = 2 * 3 * 2 * (3 + 2 + 2), 2 * 4 * 2 * (3 + 2 + 2)
GRU_DECODER = 3 * 4 * (3 + 4 + 2) + (4 * 4 + 4)
LSTM_DECODER = 4 * 4 * (3 + 4 + 4 + 2) + (4 * 8 + 8)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (LUONG, (7 * 3, 9 * 3, GRU_ENCODER, 4 * 4, GRU_DECODER, 8 * 4 + 9 * 4 + 9)),
        ({**LUONG, "attention": {"score": "dot"}}, (7 * 3, 9 * 3, GRU_ENCODER, 0, GRU_DECODER, 8 * 4 + 9 * 4 + 9)),
        ({**LUONG, "tying": "target"}, (7 * 3, 9 * 3, GRU_ENCODER, 4 * 4, GRU_DECODER, 8 * 3 + 9)),
        ({**LUONG, "tying": "all"}, (9 * 3, 0, GRU_ENCODER, 4 * 4, GRU_DECODER, 8 * 3 + 9)),
        (BAHDANAU, (7 * 3, 9 * 3, LSTM_ENCODER, 4 * 4 + 4 * 4 + 4, LSTM_DECODER, 11 * 4 + 4 + 9 * 4 + 9)),
    ],
)
def test_parameters_by_part(model: dict[str, object], expected: tuple[int, ...]) -> None:
    built = build_model(Config(model=model).model, 7, 9)
    counts = count_parameters(built)
    names = ("source embedding", "target embedding", "encoder", "attention", "decoder", "output")
    assert tuple(counts[name] for name in names) == expected
    assert counts.total() == sum(parameter.numel() for parameter in built.parameters())


def test_torch_counts_the_bytes_of_a_peak() -> None:
    def run() -> None:
        first = torch.zeros(3_000, dtype=torch.uint8)
        second = torch.zeros(2_000, dtype=torch.uint8)
        del first
        third = torch.zeros(1_000, dtype=torch.uint8)
        del second, third

    assert peak_growth(run, torch.device("cpu")) == 5_000


@pytest.mark.parametrize(
    ("options", "copies", "scalars"),
    [
        ({"name": "adam"}, 2, 1),
        ({"name": "adamw"}, 2, 1),
        ({"name": "sgd"}, 0, 0),
        ({"name": "sgd", "momentum": 0.9}, 1, 0),
    ],
)
def test_size_of_an_optimizers_state(options: dict[str, object], copies: int, scalars: int) -> None:
    layer = torch.nn.Linear(10, 5)
    optimizer = make_optimizer(OptimizerSection(**options), layer)
    layer(torch.ones(10)).sum().backward()
    optimizer.step()
    assert state_size(optimizer) == 4 * (copies * 55 + scalars * 2)  # float32: 50 weights, 5 biases; 2 step counts


def test_a_batch_beyond_memory_is_not_tried(project: Project) -> None:
    data, config = open_data(project.data), load_config(str(project.config))

    def fresh(config: Config) -> Seq2Seq:
        return build_model(config.model, len(data.src_vocabulary), len(data.tgt_vocabulary))

    findings = list(check_updates(config, data.train, no_noise, fresh, available=2**20))
    assert [(finding.name, finding.ok) for finding in findings] == [("longest batch", False)]
    assert "1.0 MiB are available; lower train.batch.size" in findings[0].text


@pytest.mark.parametrize("accumulate", [1, 3])
def test_memory_of_the_longest_batch(accumulate: int) -> None:
    pairs = pairs_of([[4], [4, 5, 6], [5, 6]], [[5, 4], [4], [6]])
    config = Config(model=LUONG)
    plan = [np.array([0]), np.array([1, 2])]
    options = TrainSection(batch={"accumulate": accumulate})
    model = build_model(config.model, 7, 9)
    batch, memory = check_longest_batch(options, pairs, no_noise, plan, model, available=None)
    assert (batch.ok, memory.ok) == (True, True)
    assert batch.text.startswith("2 sentences of at most 3 source and 1 target tokens")
    assert "an unknown amount" in memory.text


LIMITED = """
import resource, sys
from pathlib import Path
import torch._dynamo  # which optimisers would import under the limit
from nmt.config import load_config
from nmt.workflow import check

def limit(*arguments):
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 400 * 2**20,) * 2)
    return original(*arguments)

original, check.check_updates = check.check_updates, limit
options = ["train.batch.size=100000", "train.threads=1", "model.attention={score: additive, options: {size: 4096}}"]
check.available_memory = lambda device: None
check.check_overfitting = lambda *arguments: iter(())
for finding in check.check(load_config(sys.argv[1], options), Path(sys.argv[2])):
    print(finding.ok, finding.name, finding.text, flush=True)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")
def test_running_out_of_memory_is_told(project: Project) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, project.config, project.data],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("False longest batch out of memory; lower train.batch.size")


def test_pairs_of_median_length_with_sources_of_their_own() -> None:
    src = [[4] * length for length in (1, 2, 3, 3, 4, 5, 9)]
    pairs = pairs_of(src, src)
    assert sorted(typical_pairs(pairs, 3).tolist()) == [3, 4, 5]
    assert sorted(typical_pairs(pairs, 100).tolist()) in ([0, 1, 2, 4, 5, 6], [0, 1, 3, 4, 5, 6])


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        (None, {}),
        ([], {}),
        ({"overlap": 3, "too_many_tokens": {"train": 5}}, {}),
        ({"overlap": {"valid": {"examples": 0, "sources": 0}}}, {}),
        ({"too_many_tokens": 0}, {"too long": True}),
        ({"too_many_tokens": 10**6}, {"too long": False}),
        ({"overlap": {"valid": {"examples": 100, "sources": 1}}}, {"valid overlap": True}),
        ({"overlap": {"test": {"examples": 100, "sources": 2}}}, {"test overlap": False}),
    ],
)
def test_what_the_report_says(project: Project, tmp_path: Path, report: object, expected: dict[str, bool]) -> None:
    shutil.copytree(project.data, tmp_path / "data")
    (tmp_path / "data/report.json").write_text("broken" if report is None else json.dumps(report), encoding="utf-8")
    found = {finding.name: finding.ok for finding in describe_data(open_data(tmp_path / "data"))}
    assert found == {"training data": None, "validation data": True, **expected}


def test_validation_data(project: Project) -> None:
    data = open_data(project.data)

    def finding(valid: EncodedPairs) -> tuple[bool | None, str]:
        found = {f.name: f for f in describe_data(dataclasses.replace(data, valid=valid))}["validation data"]
        return found.ok, found.text

    assert finding(pairs_of([], []))[0] is None
    ok, text = finding(pairs_of([[4, 5], [1, 4]], [[4, 4, 4, 4], [4, 4, 4, 4]]))
    assert ok is False
    assert text.startswith("2 pairs; 25.00% of source and 0.00% of target tokens are unknown")
