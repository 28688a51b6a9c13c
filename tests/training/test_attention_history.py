"""The attention of a few sentences at each validation of a run."""

import base64
import json
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import Cli, Project
from training_runs import record_of, stop, train, validations_of

import nmt
from nmt.corpus.example import Example, read_examples
from nmt.corpus.training_pairs import evenly_spaced
from nmt.training.attention_history import add_attention, read_attention
from nmt.training.live_page import LiveView
from nmt.translation.translation import Translation


def read(run: Path) -> dict[str, Any]:
    history: dict[str, Any] = json.loads((run / "attention.json").read_text(encoding="utf-8"))
    return history


@pytest.fixture(scope="module")
def watched(short_project: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("watched") / "run"
    train(short_project, run, "train.watch=3")
    return run


def test_each_validation_is_stored(watched: Path, short_project: Project) -> None:
    history = read(watched)
    assert [each["update"] for each in history["validations"]] == [line["update"] for line in validations_of(watched)]
    examples = read_examples(short_project.data / "valid.jsonl")
    chosen = [examples[place] for place in evenly_spaced(len(examples), 3)]
    assert [each["source"] for each in history["sentences"]] == [example.src for example in chosen]


def test_the_attention_is_that_of_the_model_at_that_time(watched: Path) -> None:
    history = read(watched)
    best = record_of(watched)["best_update"]
    (then,) = [each for each in history["validations"] if each["update"] == best]
    translator = nmt.load(watched)
    for sentence, weights, entropy in zip(history["sentences"], then["weights"], then["entropy"], strict=True):
        (found,) = translator.score([sentence["source"]], [sentence["reference"]], with_alignment=True)
        assert found.alignment is not None
        stored = np.frombuffer(base64.b64decode(weights), dtype=np.uint8) / 255
        assert stored == pytest.approx(found.alignment.flatten().numpy(), abs=0.5 / 255 + 1e-5)
        exact = found.alignment.double().clamp(min=1e-300)
        assert entropy == pytest.approx(float(-(exact * exact.log()).sum(dim=-1).mean()), abs=1e-3)


def test_a_resumed_run_stores_the_same(watched: Path, short_project: Project, run: Path) -> None:
    stop(short_project, run, 7, "train.watch=3")
    history = read(run)
    history["validations"].append({**history["validations"][-1], "update": 1000})  # of a process that was killed later
    (run / "attention.json").write_text(json.dumps(history), encoding="utf-8")
    train(short_project, run, "train.watch=3", "--resume")
    assert read(run) == read(watched)


def test_other_sentences_and_damage_begin_a_new_file(watched: Path, tmp_path: Path) -> None:
    history = read(watched)
    alignment = Translation("b", ["b"], ["a"], alignment=torch.full((2, 1, 2), 0.5))
    for before in (json.dumps(history), "{"):
        (tmp_path / "attention.json").write_text(before, encoding="utf-8")
        add_attention(tmp_path, 1000, [Example("a", ("b",))], [alignment])
        found = read(tmp_path)
        assert [each["update"] for each in found["validations"]] == [1000]
        assert [each["source"] for each in found["sentences"]] == ["a"]


def test_a_page_shows_the_newest_validation_and_loads_itself_again(watched: Path, tmp_path: Path) -> None:
    weights, run = torch.tensor([[[0.25, 0.75]], [[1.0, 0.0]]]), tmp_path / "<run>"
    run.mkdir()
    for update in (10, 1000):
        add_attention(run, update, [Example("<a>", ("b",))], [Translation("b", ["b"], ["<a>"], alignment=weights)])
    page = (run / "live.html").read_text(encoding="utf-8")
    (until,) = map(int, re.findall(r"Date.now\(\) / 1000 < (\d+)\) setTimeout\(\(\) => location.reload", page))
    assert 0 <= until - time.time() <= 3600  # a run that was killed is not followed for ever
    assert "Update 1,000, validation 2: entropy 0.28 nats" in page  # half of -0.25 ln 0.25 - 0.75 ln 0.75
    assert page.count("<circle") == 2
    assert re.findall("<h1>(.*?):", page) == ["&lt;run&gt; after 1,000 updates"]
    names = [f"{row}, {column}" for row in ("b", "⟨eos⟩") for column in ("&lt;a&gt;", "⟨eos⟩")]
    shown = re.findall('<td title="(.*?): ([0-9.]+)"', page)
    assert shown == list(zip(names, ["0.25", "0.75", "1.00", "0.00"], strict=True))
    assert "loss (nats)" not in page  # there is no log
    last = (watched / "live.html").read_text(encoding="utf-8")
    assert last.count("<p>It writes: ") == 3
    assert re.findall('aria-label="(loss of training and validation over [0-9]+ validations)"', last)
    assert "self-attention" not in last  # the encoder is recurrent
    assert f"after {validations_of(watched)[-1]['update']:,} updates" in last
    assert last.count("<table") == 3
    assert "reload" not in last  # the run has ended


def test_a_page_shows_losses_words_and_self_attention(tmp_path: Path) -> None:
    lines = [
        {"kind": "train", "update": 5, "loss": 4.0},
        {"kind": "valid", "update": 10, "loss": 2.0},
        {"kind": "skipped", "update": 12},
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"kind', "utf-8")
    read = Translation("b", ["b"], ["a"], alignment=torch.full((2, 1, 2), 0.5))
    heads = torch.tensor([[[0.25, 0.75], [1.0, 0.0]], [[0.5, 0.5], [0.5, 0.5]]])
    add_attention(tmp_path, 10, [Example("a", ("b",))], [read], LiveView(["<c>"], [heads]))
    page = (tmp_path / "live.html").read_text(encoding="utf-8")
    assert 'It writes: <b dir="auto">&lt;c&gt;</b>' in page
    loss, entropy = re.findall(r"<svg.*?</svg>", page)
    assert 'aria-label="loss of training and validation over 1 validations"' in loss
    points = re.findall(r'<polyline points="([^"]+)"', loss)
    assert points == ["220.0,30.0", "392.0,97.0"]  # half of the updates and all of the loss; all of them and half of it
    assert entropy.count("<polyline") == 1
    assert re.findall(r'aria-label="Self-attention, (.*?)"', page) == ["layer 1, head 1", "layer 1, head 2"]
    assert re.findall('<td title="a, ⟨eos⟩: ([0-9.]+)"', page) == ["0.75", "0.50"]


def test_the_page_does_not_keep_a_run_from_being_replaced(watched: Path, short_project: Project, run: Path) -> None:
    shutil.copytree(watched, run)
    first = (run / "live.html").stat().st_mtime_ns
    train(short_project, run, "train.watch=3", "train.max_updates=1", "--overwrite")
    assert (run / "live.html").stat().st_mtime_ns > first


def test_the_history_of_many_long_sentences_is_kept(tmp_path: Path) -> None:
    tokens = ["a"] * 64
    text = " ".join(tokens)
    alignment = Translation(text, tokens, tokens, alignment=torch.full((65, 1, 65), 1 / 65))
    for update in (1, 2):
        add_attention(tmp_path, update, [Example(text, (text,))] * 100, [alignment] * 100)
    assert (tmp_path / "attention.json").stat().st_size > 1 << 20
    assert [each["update"] for each in read_attention(tmp_path)["validations"]] == [1, 2]


def test_nothing_is_stored_unless_asked_for(short_project: Project) -> None:
    assert not any((short_project.run / name).exists() for name in ("attention.json", "live.html", "tensorboard"))


def test_the_page_has_the_stored_validations(watched: Path, tmp_path: Path, cli: Cli) -> None:
    outcome = cli("attention", "--training", "--model", watched, "--output", tmp_path / "page.html")
    assert outcome.code == 0
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    data = json.loads(html.partition('id="data">')[2].partition("</script>")[0])
    history = read(watched)
    frames = data["items"][1]["of"][0]["frames"]
    assert [each["w"] for each in frames] == [each["weights"][1] for each in history["validations"]]


def test_error_rates_over_the_validations(watched: Path, tmp_path: Path) -> None:
    """Counted by hand from the stored weights: each target word is linked to the source word with the most weight."""
    history = read(watched)
    sizes = [(len(each["src"]), len(each["tgt"])) for each in history["sentences"]]
    gold = [{(i, i) for i in range(min(size))} for size in sizes]
    lines = [" ".join(f"{i}-{j}" for i, j in sorted(links)) for links in gold]
    (tmp_path / "gold.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    page = nmt.explore(model=watched, training=True, gold=tmp_path / "gold.txt")
    data = json.loads(page.html.partition('id="data">')[2].partition("</script>")[0])
    for number, (item, links, (src, tgt)) in enumerate(zip(data["items"], gold, sizes, strict=True)):
        for frame, stored in zip(item["of"][0]["frames"], history["validations"], strict=True):
            flat = np.frombuffer(base64.b64decode(stored["weights"][number]), dtype=np.uint8) / 255
            weights = flat.reshape(tgt + 1, -1, src + 1).mean(axis=1)[:tgt, :src]
            found = {(int(row.argmax()), j) for j, row in enumerate(weights) if row.any()}
            expected = 1 - 2 * len(found & links) / (len(found) + len(links))
            assert frame["aer"] == pytest.approx(expected, abs=1e-3)


def put(name: str, value: object) -> Callable[[dict[str, Any]], None]:
    return lambda history: history["validations"][0][name].__setitem__(0, value)


NOTHING = {"sentences": [], "validations": [{"update": 1, "weights": [], "entropy": []}]}


@pytest.mark.parametrize(
    "damage",
    [
        lambda history: "{",
        lambda history: [],
        lambda history: {},
        lambda history: {**history, "format_version": 9},
        lambda history: {**history, **NOTHING},
        *(put("entropy", value) for value in (float("nan"), "<b>")),
        *(put("weights", value) for value in ("!!!", 7, "AAAA")),
        lambda history: history["validations"][1].update(update=history["validations"][0]["update"]),
        lambda history: history["sentences"][0].update(tgt=["Z"] * len(history["sentences"][0]["tgt"])),
    ],
)
def test_a_damaged_file_is_one_line(watched: Path, tmp_path: Path, cli: Cli, damage: Callable[..., Any]) -> None:
    shutil.copytree(watched, tmp_path / "run")
    history = read(watched)
    other = damage(history)
    text = other if isinstance(other, str) else json.dumps(history if other is None else other)
    (tmp_path / "run/attention.json").write_text(text, encoding="utf-8")
    outcome = cli("attention", "--training", "--model", tmp_path / "run", "--output", tmp_path / "page.html")
    assert outcome.code == 1
    assert "attention.json" in outcome.err
    assert len(outcome.err.splitlines()) == 1
    assert not (tmp_path / "page.html").exists()


def test_a_run_that_watched_nothing_says_how(short_project: Project, tmp_path: Path, cli: Cli) -> None:
    outcome = cli("attention", "--training", "--model", short_project.run, "--output", tmp_path / "page.html")
    assert outcome.code == 1
    assert "train.watch" in outcome.err
