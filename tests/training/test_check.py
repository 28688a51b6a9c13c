import dataclasses
import itertools
import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from conftest import Cli, Outcome, Project, errors
from pairs import pairs_of

import nmt
from nmt.config import Config, load_config
from nmt.corpus.batching import Batch
from nmt.corpus.dataset import open_data
from nmt.models.build import build_model
from nmt.models.seq2seq import Seq2Seq
from nmt.system.errors import ConfigError
from nmt.training import loop, readiness, timing
from nmt.training.findings import Finding
from nmt.training.loop import train_step
from nmt.training.readiness import check_updates, count_parameters, describe_parameters, typical_pairs
from nmt.training.setup import make_model
from nmt.training.timing import measure_updates

NAMES = [
    *("training data", "validation data", "parameters", "initial loss"),
    *("one batch overfits", "decoding", "sample", "sample", "longest batch", "first updates", "speed", "memory"),
]


def lines_of(out: str) -> list[tuple[str, str]]:
    """Mark and name of each finding."""
    return [(line.split(maxsplit=1)[0], line[8:].split(":")[0]) for line in out.splitlines()[:-1]]


def sizes(units: int) -> list[str]:
    return [f"model.{part}={units}" for part in ("embedding_size", "encoder.hidden_size", "decoder.hidden_size")]


def check(cli: Cli, project: Project, *settings: str) -> Outcome:
    """Check the data of a project with these settings."""
    options = [part for setting in settings for part in ("--set", setting)]
    return cli("check", "--config", project.config, "--data", project.data, *options)


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
    for words in ("target tokens/s", "minutes per epoch", "hours for all", "are translated exactly", "iB so far, of "):
        assert words in found.out


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the loss falls is looked at after 20 updates, and over 10; few pairs and updates are tried."""
    monkeypatch.setattr(readiness, "OVERFIT_UPDATES", 20)
    monkeypatch.setattr(readiness, "OVERFIT_WINDOW", 10)
    monkeypatch.setattr(readiness, "OVERFIT_PAIRS", 6)
    monkeypatch.setattr(readiness, "TIMED_UPDATES", 6)


@pytest.mark.parametrize(
    ("names", "settings"),
    [
        (
            ["initial loss", "one batch overfits", "first updates"],
            ["model.initialization.scale=5", "train.optimizer={name: sgd, learning_rate: 1000.0, clip_norm: null}"],
        ),
        (
            ["one batch overfits", "warm-up"],
            ["model.attention.score=none", *sizes(1), "train.schedule.warmup=1000000"],
        ),
    ],
)
@pytest.mark.usefixtures("hasty")
def test_problems_are_found(project: Project, cli: Cli, names: list[str], settings: list[str]) -> None:
    found = check(cli, project, *settings)
    assert found.code == 1, found
    last = found.out.splitlines()[-1]
    assert "problem" in last
    for name in names:
        assert ("PROBLEM", name) in lines_of(found.out)
        assert name in last
    assert ("-", "decoding") in lines_of(found.out)  # not another problem: the batch was not learnt


@pytest.mark.usefixtures("hasty")
def test_a_small_model_is_given_the_updates_that_it_needs(project: Project) -> None:
    found = overfitting(project, *sizes(32), "decode.max_length=9")
    assert [found[name].ok for name in ("one batch overfits", "decoding")] == [True, True]
    (updates,) = re.findall(r"loss 0\.10 after (\d+) updates of Adam", found["one batch overfits"].text)
    assert int(updates) > 20


def overfitting(project: Project, *settings: str) -> dict[str, Finding]:
    """What `nmt check` finds of overfitting, by name."""
    data, config = open_data(project.data), load_config(str(project.config), settings)

    def new_model(config: Config) -> Seq2Seq:
        torch.manual_seed(1)
        return build_model(config.model, len(data.src_vocabulary), len(data.tgt_vocabulary))

    return {finding.name: finding for finding in readiness.check_overfitting(config, data, new_model)}


def test_a_loss_that_still_falls_is_no_problem(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "OVERFIT_LONGEST", 20)
    monkeypatch.setattr(readiness, "OVERFIT_PAIRS", 6)
    found = overfitting(project, *sizes(12), "decode.max_length=9")
    assert [found[name].ok for name in ("one batch overfits", "decoding")] == [None, None]
    assert " after 20 updates" in found["one batch overfits"].text
    assert found["one batch overfits"].text.endswith("not settled: the loss still falls")


@pytest.mark.usefixtures("hasty")
def test_a_loss_that_is_not_a_number_is_a_problem(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "OVERFIT_RATE", 1e30)
    found = overfitting(project)
    assert [found[name].ok for name in ("one batch overfits", "decoding")] == [False, None]


def initial_loss(project: Project, *settings: str) -> Finding:
    findings = nmt.check(project.config, data=project.data, overrides=settings)
    return next(finding for finding in findings if finding.name == "initial loss")


def test_the_initial_loss_of_fixed_norms_is_above_that_of_guessing(project: Project) -> None:
    found = initial_loss(project, "model.output_norm=3")
    vocabulary = len(open_data(project.data).tgt_vocabulary)
    size = load_config(project.config).model.decoder.hidden_size
    assert f"random vectors of norm 3 {math.log(vocabulary) + 81 / (2 * size):.2f}" in found.text
    assert found.ok


def test_a_fresh_transformer_with_tied_embeddings_is_no_problem(project: Project) -> None:
    sizes = "hidden_size: 128, num_layers: 2, num_heads: 4, feed_forward_size: 128"
    kinds = [f"model.encoder={{kind: self_attention, {sizes}}}", f"model.decoder={{kind: transformer, {sizes}}}"]
    kinds += ["model.tying=target", "model.embedding_size=128", "model.attention.score=general"]
    found = initial_loss(project, *kinds)
    assert found.ok, found.text


def test_weights_to_start_from_are_better_than_guessing(project: Project) -> None:
    assert initial_loss(project, f"parent={project.run}").ok


def test_bad_input_is_one_line(project: Project, cli: Cli, tmp_path: Path) -> None:
    for options, words in (
        (["--data", tmp_path / "none"], "does not exist"),
        (["--data", project.data, "--set", "text.lowercase=true"], "text.lowercase"),
        (["--data", project.data, "--set", "train.device=cuda:99"], "cuda:99"),
    ):
        found = cli("check", "--config", project.config, *options)
        (line,) = errors(found.err)
        assert (found.code, found.out, found.err) == (1, "", f"{line}\n")
        assert words in line


def model_of(cell: str, order: str, score: str) -> dict[str, object]:
    layers = {"encoder": {"cell": cell, "hidden_size": 2}, "decoder": {"cell": cell, "hidden_size": 4, "order": order}}
    return {"embedding_size": 3, "attention": {"score": score}, **layers}


LUONG, BAHDANAU = model_of("gru", "luong", "general"), model_of("lstm", "bahdanau", "additive")
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


def updates(project: Project, monkeypatch: pytest.MonkeyPatch, *settings: str) -> tuple[dict[str, Finding], list[int]]:
    """What trying out updates of a project finds, by name, and the number of padded tokens of each batch."""
    data, config = open_data(project.data), load_config(str(project.config), settings)
    sizes = []

    def step(model: Seq2Seq, batches: list[Batch], *rest: Any, **scale: Any) -> Any:
        sizes.extend(len(batch.src) * (batch.src.shape[1] + batch.tgt_out.shape[1]) for batch in batches)
        return train_step(model, batches, *rest, **scale)

    monkeypatch.setattr(readiness, "train_step", step)
    monkeypatch.setattr(loop, "train_step", step)

    def new_model(config: Config) -> Seq2Seq:
        return build_model(config.model, len(data.src_vocabulary), len(data.tgt_vocabulary))

    return {finding.name: finding for finding in check_updates(config, data, new_model)}, sizes


@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.usefixtures("hasty")
def test_the_longest_batch_comes_first(project: Project, monkeypatch: pytest.MonkeyPatch, accumulate: int) -> None:
    findings, sizes = updates(project, monkeypatch, f"train.batch.accumulate={accumulate}")
    assert sizes[0] == max(sizes) == sizes[min(2, accumulate) - 1]
    assert len(sizes) > min(2, accumulate) + timing.WARM_UP + readiness.TIMED_UPDATES - 1
    assert findings["longest batch"].text.startswith("64 sentences of at most 6 source and 6 target tokens: ")
    assert findings["first updates"].ok is True
    assert re.search(f"over the last 5 of {timing.WARM_UP + readiness.TIMED_UPDATES}$", findings["first updates"].text)
    assert findings["speed"].text.startswith(f"{readiness.TIMED_UPDATES} updates in ")


def test_slow_updates_are_timed_less_often(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "TIMED_SECONDS", 0.0)
    findings, _ = updates(project, monkeypatch)
    assert "over the last 1 of 1" in findings["first updates"].text
    assert findings["speed"].text.startswith("1 updates in ")


def test_minutes_of_an_epoch_follow_from_tokens(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a clock that ticks once a look, the mean update has the mean number of tokens."""
    monkeypatch.setattr(timing, "time", SimpleNamespace(perf_counter=itertools.count().__next__))
    seconds, per_epoch = measure_updates(load_config(str(project.config)), project.data, 22)
    data = open_data(project.data).train
    assert per_epoch == math.ceil(len(data) / 64)
    assert 0.8 < seconds < 1.3


@pytest.mark.parametrize(("side", "pairs"), [("encoder", ([[4] * 9], [[4]])), ("decoder", ([[4]], [[4] * 9]))])
def test_validation_sentences_beyond_the_positions_are_refused(
    project: Project, side: str, pairs: tuple[list[list[int]], list[list[int]]]
) -> None:
    """Otherwise the first validation would end the run."""
    kinds = {
        "encoder": ["model.encoder.kind=self_attention", "model.decoder.initial_state=zeros"],
        "decoder": ["model.decoder.kind=transformer", "model.attention.score=general"],
    }
    data = dataclasses.replace(open_data(project.data), valid=pairs_of(*pairs))
    config = load_config(str(project.config), [*kinds[side], f"model.{side}.learned_positions=9"])
    reason = "but the longest validation sentence has 10 tokens with its end; set 10 or more, or null"
    with pytest.raises(ConfigError, match=f"^model.{side}.learned_positions: 9, {reason}$"):
        make_model(config, data)
    assert make_model(load_config(config, {f"model.{side}.learned_positions": 10}), data)


def test_a_model_beyond_memory_is_not_built(project: Project, cli: Cli) -> None:
    """Hundreds of GiB of weights are refused within the time of any other check."""
    found = check(cli, project, "model.decoder={hidden_size: 16000, num_layers: 64}")
    assert found.code == 1
    assert lines_of(found.out)[-1] == ("PROBLEM", "parameters")
    assert found.out.splitlines()[-2].endswith("lower the sizes under model")


@pytest.mark.parametrize(("optimizer", "copies"), [("adam", 4), ("adamw", 4), ("sgd", 2)])
def test_memory_of_weights_gradients_and_optimiser(optimizer: str, copies: int) -> None:
    config = Config(model=LUONG, train={"optimizer": {"name": optimizer}})
    model = build_model(config.model, 7, 9)
    size = copies * 4 * sum(parameter.numel() for parameter in model.parameters())
    assert describe_parameters(config, model, size).ok is None
    assert describe_parameters(config, model, size - 1).ok is False


def test_pairs_of_median_length_with_distinct_sources() -> None:
    src = [[4] * length for length in (1, 2, 3, 3, 4, 5, 9)]
    pairs = pairs_of(src, src)
    assert sorted(typical_pairs(pairs, 3).tolist()) == [3, 4, 5]
    assert sorted(typical_pairs(pairs, 100).tolist()) in ([0, 1, 2, 4, 5, 6], [0, 1, 3, 4, 5, 6])
