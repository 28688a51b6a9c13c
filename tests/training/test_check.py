import dataclasses
import functools
import json
import math
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import processes
import pytest
import torch
from conftest import Cli, Project, train_arguments

from nmt.config import Config, TrainSection
from nmt.corpus.dataset import EncodedPairs, Sequences, open_data
from nmt.corpus.noise import no_noise
from nmt.models.configs import load_config
from nmt.models.seq2seq import Seq2Seq, build_model
from nmt.system.memory import Footprint, Trial, Trials, peak_resident, trimmed_resident
from nmt.training import check, trial_updates
from nmt.training.check import count_parameters, describe_data, describe_parameters, typical_pairs
from nmt.training.findings import Finding
from nmt.training.trial_updates import (
    Epoch,
    check_updates,
    choose_pairs,
    describe_host_memory,
    describe_longest_batch,
    describe_memory,
    try_longest_batch,
)

PLENTY = 2**60  # bytes of memory

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
    "first updates",
    "speed",
    "memory",
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
    for words in ("target tokens/s", "minutes per epoch", "hours for all", "are translated exactly"):
        assert words in found.out


@pytest.mark.parametrize(
    ("names", "settings"),
    [
        (
            ["initial loss", "one batch overfits", "first updates"],
            [
                "model.initialization.scale=5",
                "train.optimizer={name: sgd, learning_rate: 1000.0, clip_norm: null}",
            ],
        ),
        (
            ["one batch overfits"],
            [
                "model.attention.score=none",
                "model.embedding_size=1",
                "model.encoder.hidden_size=1",
                "model.decoder.hidden_size=1",
            ],
        ),
    ],
)
def test_problems_are_found(project: Project, cli: Cli, names: list[str], settings: list[str]) -> None:
    options = [part for setting in settings for part in ("--set", setting)]
    found = cli("check", "--config", project.config, "--data", project.data, *options)
    assert found.code == 1, found
    last = found.out.splitlines()[-1]
    assert "problem" in last
    for name in names:
        assert ("PROBLEM", name) in lines_of(found.out)
        assert name in last
    assert ("-", "decoding") in lines_of(found.out)  # not another problem: the batch was not learnt


SMALL = [f"model.{part}=12" for part in ("embedding_size", "encoder.hidden_size", "decoder.hidden_size")]


def test_a_small_model_is_given_the_updates_that_it_needs(project: Project, cli: Cli) -> None:
    options = [part for setting in SMALL for part in ("--set", setting)]
    found = cli("check", "--config", project.config, "--data", project.data, *options)
    assert found.code == 0, found
    (updates,) = re.findall(r"loss 0\.10 after (\d+) updates of Adam", found.out)
    assert int(updates) > 200
    assert {("ok", "one batch overfits"), ("ok", "decoding")} <= set(lines_of(found.out))


def overfitting(project: Project, *settings: str) -> dict[str, Finding]:
    """What `nmt check` finds of overfitting, by name."""
    data, config = open_data(project.data), load_config(str(project.config), settings)

    def new_model(config: Config) -> Seq2Seq:
        torch.manual_seed(1)
        return build_model(config.model, len(data.src_vocabulary), len(data.tgt_vocabulary))

    return {finding.name: finding for finding in check.check_overfitting(config, data, new_model)}


def test_a_loss_that_still_falls_is_no_problem(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "OVERFIT_LONGEST", 200)
    found = overfitting(project, *SMALL)
    assert [found[name].ok for name in ("one batch overfits", "decoding")] == [None, None]
    assert " after 200 updates" in found["one batch overfits"].text
    assert found["one batch overfits"].text.endswith("not settled: the loss still falls")


def test_a_loss_that_is_not_a_number_is_a_problem(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "OVERFIT_RATE", 1e30)
    found = overfitting(project)
    assert [found[name].ok for name in ("one batch overfits", "decoding")] == [False, None]


def test_the_initial_loss_of_fixed_norms_is_above_that_of_guessing(project: Project, cli: Cli) -> None:
    found = cli("check", "--config", project.config, "--data", project.data, "--set", "model.output_norm=3")
    (line,) = (line for line in found.out.splitlines() if "initial loss" in line)
    assert line.startswith("ok")
    vocabulary = len(open_data(project.data).tgt_vocabulary)
    size = load_config(project.config).model.decoder.hidden_size
    assert f"random vectors of norm 3 {math.log(vocabulary) + 81 / (2 * size):.2f}" in line


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


CPU = torch.device("cpu")


def problems_with(project: Project, available: int, *settings: str) -> list[Finding]:
    """What trying out updates of a project finds where so many bytes are there."""
    data, config = open_data(project.data), load_config(str(project.config), settings)

    def new_model(config: Config) -> Seq2Seq:
        return build_model(config.model, len(data.src_vocabulary), len(data.tgt_vocabulary))

    return list(check_updates(config, data, no_noise, new_model, CPU, available))


def test_a_batch_beyond_memory_is_not_tried(project: Project) -> None:
    findings = problems_with(project, 2**20)
    assert [(finding.name, finding.ok) for finding in findings] == [("longest batch", False)]
    assert ", extrapolated from 1 of them; -" in findings[0].text
    assert findings[0].text.endswith("are available; lower train.batch.size or the sizes under model")


HUGE_SCORE = "model.attention={score: additive, options: {size: 4096}}"


def test_a_huge_batch_is_tried_in_steps(project: Project) -> None:
    available, before = trimmed_resident() + 200 * 2**20, peak_resident()
    findings = problems_with(project, available, "train.batch.size=1000000", HUGE_SCORE)
    assert [(finding.name, finding.ok) for finding in findings] == [("longest batch", False)]
    assert "1,387 sentences of at most 6 source and 6 target tokens would take an estimated " in findings[0].text
    assert re.search(r"estimated [4-6]\d\d\.\d MiB, extrapolated from 8 of them; ", findings[0].text)
    assert peak_resident() - before < 100 * 2**20


def test_a_batch_that_takes_too_long_is_not_tried(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_updates, "BATCH_SECONDS", 0.0)
    findings = problems_with(project, PLENTY, "train.batch={size: 1000000000, unit: tokens}")
    assert [(finding.name, finding.ok) for finding in findings] == [("longest batch", None), ("memory", True)]
    assert "1,387 sentences of at most 6 source and 6 target tokens were not tried: " in findings[0].text


def test_slow_updates_are_timed_less_often(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_updates, "TIMED_SECONDS", 0.0)
    found = {finding.name: finding.text for finding in problems_with(project, PLENTY)}
    assert "over the last 2 of 2" in found["first updates"]
    assert found["speed"].startswith("1 updates in ")


def test_chosen_pairs_are_padded_like_the_whole_batch() -> None:
    pairs = pairs_of([[4], [4] * 9, [4], [4] * 2, [4]], [[5], [5], [5] * 3, [5] * 7, [5]])
    batch = np.array([4, 3, 2, 1])
    assert choose_pairs(pairs, batch, 2).tolist() == [1, 3]
    for number in (1, 2, 3, 4):
        assert len(set(choose_pairs(pairs, batch, number).tolist())) == number


def test_shapes_of_an_epoch() -> None:
    lengths = [1, 1, 2, 2, 3, 3, 3, 3]
    epoch = Epoch(
        pairs_of(*[[[4] * length for length in lengths]] * 2),
        TrainSection(batch={"size": 2, "accumulate": 2}, epochs=5),
    )
    assert (len(epoch.groups), epoch.total_updates) == (2, 10)
    assert epoch.count_shapes(2) == 3
    assert epoch.count_shapes(1) in (1, 2)
    assert len(epoch.longest) == 2


@pytest.mark.parametrize("accumulate", [1, 3])
def test_the_longest_batch(accumulate: int) -> None:
    pairs = pairs_of([[4], [4, 5, 6], [5, 6]], [[5, 4], [4], [6]])
    options, model = TrainSection(batch={"accumulate": accumulate}), build_model(Config(model=LUONG).model, 7, 9)
    longest = np.array([1, 2])
    trials, weights, state = try_longest_batch(options, pairs, no_noise, longest, model, PLENTY)
    numbers = sum(parameter.numel() for parameter in model.parameters())
    assert (weights, state) == (4 * numbers, 8 * numbers + 4 * len(list(model.parameters())))
    assert [trial.size for trial in trials.done] == [1, 2]
    assert trials.done[-1].memory > weights  # gradients are a part of it
    found = describe_longest_batch(pairs, longest, trials, weights + state, PLENTY)
    assert found.ok is True
    assert found.text.startswith("2 sentences of at most 3 source and 1 target tokens")


def test_a_single_sentence_cannot_be_cut() -> None:
    pairs = pairs_of([[4]], [[5]])
    trials = Trials([Trial(1, 2**20, 1.0)], 1, False)
    found = describe_longest_batch(pairs, np.array([0]), trials, 2**20, 2**20)
    assert found.text.endswith("would take an estimated 2.0 MiB; 1.0 MiB are available; lower the sizes under model")


def footprint(**parts: int) -> Footprint:
    names = ("libraries", "data", "weights", "optimizer", "activations", "validation", "kernels", "gaps")
    return Footprint(**{name: parts.get(name, 0) for name in names})


def test_parts_of_the_memory_are_listed() -> None:
    mebibytes = dict(zip(footprint().__dict__, (400, 50, 20, 40, 200, 60, 500, 100), strict=True))
    parts = footprint(**{name: size * 2**20 for name, size in mebibytes.items()})
    found = describe_memory(parts, 2 * 2**30)
    assert found.ok
    assert found.text == (
        "an estimated 1.3 GiB of 2.0 GiB available: libraries 400.0 MiB, data 50.0 MiB, weights 20.0 MiB, gradients "
        "20.0 MiB, optimiser 40.0 MiB, activations of the longest batch 200.0 MiB, validation 60.0 MiB, kernels for "
        "the shapes of batches 500.0 MiB, gaps in the heap 100.0 MiB"
    )
    assert not describe_memory(parts, 1024 * 2**20).ok


@pytest.mark.parametrize(
    ("parts", "ok", "advice"),
    [
        ({"weights": 10, "activations": 90}, True, ""),
        ({"weights": 10, "activations": 91}, False, "lower train.batch.size or the sizes under model"),
        (
            {"weights": 10, "activations": 50, "validation": 101},
            False,
            "lower decode.batch_size or the sizes under model",
        ),
        ({"weights": 10, "data": 1000, "activations": 90}, True, ""),  # mapped: it need not stay in memory
    ],
)
def test_memory_that_does_not_suffice(parts: dict[str, int], ok: bool, advice: str) -> None:
    found = describe_memory(footprint(**parts), 110)
    assert found.ok is ok
    assert found.text.endswith(advice)


def test_host_memory_of_a_device() -> None:
    needed = peak_resident() + 2**30
    assert describe_host_memory(2**30, needed + 2**20).ok
    assert not describe_host_memory(2**30, needed - 2**20).ok


def test_a_model_beyond_memory_is_not_built(project: Project, cli: Cli) -> None:
    """Hundreds of GiB of weights are refused within the time of any other check."""
    found = cli(
        "check",
        "--config",
        project.config,
        "--data",
        project.data,
        "--set",
        "model.decoder={hidden_size: 16000, num_layers: 64}",
    )
    assert found.code == 1
    assert lines_of(found.out)[-1] == ("PROBLEM", "parameters")
    assert found.out.splitlines()[-2].endswith("lower the sizes under model")


@pytest.mark.parametrize(
    ("optimizer", "copies"), [("adam", 4), ("adamw", 4), ("sgd", 2), ({"name": "sgd", "momentum": 0.9}, 3)]
)
def test_memory_of_weights_gradients_and_optimiser(optimizer: object, copies: int) -> None:
    options = optimizer if isinstance(optimizer, dict) else {"name": optimizer}
    config = Config(model=LUONG, train={"optimizer": options})
    model = build_model(config.model, 7, 9)
    size = copies * 4 * sum(parameter.numel() for parameter in model.parameters())
    assert describe_parameters(config, model, size).ok is None
    assert describe_parameters(config, model, size - 1).ok is False


PEAK = """
from nmt.cli import main
from nmt.system.memory import peak_resident
try:
    main()
finally:
    print("PEAK", peak_resident() / 2**20)
"""


@pytest.mark.soak
@pytest.mark.skipif(sys.platform != "linux", reason="needs glibc")
def test_the_estimate_is_close_to_the_memory_of_training(project: Project, cli: Cli, tmp_path: Path) -> None:
    """Within 30% of the peak of a run with validations and checkpoints."""
    settings = ("model.encoder.hidden_size=256", "model.decoder.hidden_size=512", "train.max_updates=30")
    arguments = train_arguments(project, tmp_path / "run", *settings, "train.validation.every=12")
    done = subprocess.run([sys.executable, "-c", PEAK, *arguments], capture_output=True, text=True, check=True)
    peak = float(done.stdout.split("PEAK")[1])
    options = [part for setting in settings for part in ("--set", setting)]
    command = [sys.executable, "-m", "nmt", "check", "--config", str(project.config), "--data", str(project.data)]
    found = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    estimated = float(re.search(r"memory: an estimated ([\d,.]+) MiB of", found.stdout)[1].replace(",", ""))
    assert 0.7 * peak < estimated < 1.3 * peak


def check_with_little_memory(config: Path, data: Path) -> None:
    """Print what `nmt check` finds when memory runs out while it makes updates."""
    original = check.check_updates

    def limited(*arguments: Any) -> Any:
        processes.limit_memory(400)
        return original(*arguments)

    check.check_updates = limited
    check.available_memory = lambda device: PLENTY
    check.check_overfitting = lambda *arguments: iter(())
    options = ["train.batch.size=100000", "train.threads=1", "model.attention={score: additive, options: {size: 4096}}"]
    for finding in check.check(load_config(str(config), options), data):
        print(finding.ok, finding.name, finding.text, flush=True)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")
def test_running_out_of_memory_is_reported(project: Project) -> None:
    done = processes.run(program=functools.partial(check_with_little_memory, project.config, project.data))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == (
        "False longest batch out of memory; lower train.batch.size or the sizes under model"
    )


def test_pairs_of_median_length_with_distinct_sources() -> None:
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
def test_facts_from_the_report(project: Project, tmp_path: Path, report: object, expected: dict[str, bool]) -> None:
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
