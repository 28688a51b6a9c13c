"""What a user does with models of every family, by the real commands."""

import json
import re
from pathlib import Path

import pytest
from conftest import Cli, Project, errors
from inspection.test_explorer import data_of
from training_runs import refusal, stop_and_resume, train

SIZES = "hidden_size: 32, num_layers: 2, num_heads: 4, feed_forward_size: 64"
READS, WRITES = f"model.encoder={{kind: self_attention, {SIZES}}}", f"model.decoder={{kind: transformer, {SIZES}}}"
SSRU = f"model.decoder={{kind: ssru, {SIZES}}}"
HYBRID = "model.decoder={hidden_size: 32, initial_state: zeros}"
PLAIN = "model.attention={score: scaled_dot, heads: 4}"
ENDS = ("first", "stop", "end")
OWN = "model.attention={score: general}"


def trained(project: Project, run: Path, *settings: str) -> Path:
    faster = ["train.optimizer.learning_rate=0.01", "train.schedule.warmup=30", "train.batch.size=32"]
    train(project, run, *faster, "train.validation.every=1000", *settings)
    return run


@pytest.fixture(scope="module")
def transformer(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(project, tmp_path_factory.mktemp("transformer") / "run", READS, WRITES, OWN, "train.epochs=7")


def test_a_transformer_learns_to_reverse(transformer: Path, project: Project, cli: Cli, tmp_path: Path) -> None:
    scores = tmp_path / "scores.json"
    assert cli("evaluate", "--model", transformer, "--data", project.data, "--json", scores).code == 0
    assert json.loads(scores.read_text())["scores"]["bleu"]["value"] > 90
    for beam in (1, 4):
        assert cli("translate", "a b c d", "--model", transformer, "--beam-size", beam).out == "D C B A\n"
    card = (transformer / "best/README.md").read_text(encoding="utf-8")
    assert "A Transformer translation model with attention" in card
    assert r"2 layers of 32 units, self\_attention, 4 heads, feed-forward 64" in card


def test_a_transformer_is_explained_and_drawn(transformer: Path, project: Project, cli: Cli, tmp_path: Path) -> None:
    shown = cli("explain", "a b c", "--model", transformer, "--step", 2).out
    assert "scaled_dot, in every layer, 4 heads" in shown
    assert "the decoder's state, as the head projects it, after reading C" in shown
    page, report = tmp_path / "page.html", tmp_path / "report.html"
    sample = ["--data", project.data, "--sample", 2, "--all-heads"]
    assert cli("attention", "--model", transformer, *sample, "--output", page).code == 0
    assert cli("report", "--model", transformer, "--data", project.data, "--output", report).code == 0
    (system,) = data_of(page.read_text(encoding="utf-8"))["systems"]
    assert system["mechanism"] == "scaled_dot, in every layer, 4 heads"
    assert {part: len(heads) for part, heads in system["heads"].items()} == {"encoder": 8, "decoder": 8, "source": 8}
    assert "2 layers of 32 units, transformer, 4 heads" in report.read_text(encoding="utf-8")


def test_every_head_is_measured(transformer: Path, project: Project, cli: Cli, tmp_path: Path) -> None:
    """With links of people, the error rate of the layer that stands for the whole is that of the whole report."""
    sources, references, gold = tmp_path / "a.src", tmp_path / "a.ref", tmp_path / "gold.txt"
    sources.write_text("a b c d\nb c\n")
    references.write_text("D C B A\nC B\n")
    gold.write_text("0-3 1-2 2-1 3-0\n0-1 1-0\n")
    files = ["--src", sources, "--ref", references, "--forced", "--gold", gold]
    shown = cli("attention", "--model", transformer, *files, "--all-heads", "--json", tmp_path / "heads.json")
    assert shown.code == 0, shown.err
    stored = json.loads((tmp_path / "heads.json").read_text())
    heads = stored["all_heads"]
    assert [(one["layer"], one["number"]) for one in heads["source"]] == [(n, m) for n in (0, 1) for m in range(4)]
    assert min(one["error_rate"] for one in heads["source"]) < 0.5
    assert heads["layer_error_rates"][0] == pytest.approx(stored["alignment_error_rate"])
    assert len(heads["layer_error_rates"]) == 2
    related = tmp_path / "relations.txt"
    related.write_text("next:0-1 next:1-2\n\n")
    measured = ["--all-heads", "--relations", related, "--json", tmp_path / "related.json"]
    table = cli("attention", "--model", transformer, *files, *measured).out
    assert len(re.findall(r"^encoder \d\.\d\tnext\t\d\.\d\d\t\d\.\d\d\t\d\.\d\d$", table, re.MULTILINE)) == 8
    for head in json.loads((tmp_path / "related.json").read_text())["all_heads"]["self_attention"]:
        names = ["next"] if head["part"] == "encoder" else []
        assert list(head["relations"]) == names
        if names:
            assert head["relations"]["next"]["shuffled"] == pytest.approx(1 / 5)  # four words and the end
            assert head["relations"]["next"]["distance"] == pytest.approx(head["by_distance"]["1"], abs=1e-6)
    whole = [head["entropy"]["mean"] for head in stored["heads"]]
    assert [one["entropy"] for one in heads["source"][:4]] == pytest.approx(whole, abs=1e-5)
    assert [one["part"] for one in heads["self_attention"]] == ["encoder"] * 8 + ["decoder"] * 8
    for one in heads["self_attention"]:
        assert sum(one["by_distance"].values()) == pytest.approx(1)
        assert one["part"] == "encoder" or all(one["by_distance"][str(after)] == 0 for after in range(1, 6))
    assert shown.out.count("encoder 2.4") == 1
    assert heads["self_attention"][5].keys() == {
        *("part", "layer", "number", "pattern", "by_distance", *ENDS, "spread", "excesses", "relations")
    }
    sources.write_text("a b c d\n\nb c\n")  # an empty line has no attention
    files = ["--src", sources, "--json", tmp_path / "more.json"]
    assert cli("attention", "--model", transformer, *files, "--all-heads").code == 0
    more = json.loads((tmp_path / "more.json").read_text())
    entropies = [[head["entropy"]["mean"] for head in more["heads"]]]
    entropies += [[one["entropy"] for one in more["all_heads"]["source"][:4]]]
    assert entropies[0] == pytest.approx(entropies[1], abs=1e-5)
    alone = cli("attention", "a b", "--model", project.run, "--all-heads")
    assert "source 1.1" in alone.out
    assert "encoder" not in alone.out


def test_unlike_families_translate_together(transformer: Path, project: Project, cli: Cli) -> None:
    together = cli("translate", "a b c d", "--model", transformer, "--model", project.run)
    assert (together.code, together.out) == (0, "D C B A\n")


@pytest.mark.parametrize(
    "settings",
    [
        [READS, WRITES, "train.ema_decay=0.9", "model.attention.dropout=0.1", "model.tying=target"],
        [READS, SSRU, "model.encoder.norm=post", "train.teacher_forcing.ratio=1"],
        [READS, HYBRID, "train.precision=bfloat16"],
        [WRITES, "model.decoder.learned_positions=20", "train.optimizer.name=muon"],
    ],
    ids=["transformer", "ssru", "hybrid", "recurrent encoder"],
)
def test_every_family_resumes_exactly(settings: list[str], short_project: Project, tmp_path: Path) -> None:
    """With dropout, scheduled sampling, noise and an average of the weights."""
    stop_and_resume(short_project, tmp_path, 7, *settings)


def test_a_run_starts_from_the_weights_of_another(transformer: Path, project: Project, tmp_path: Path) -> None:
    settings = [READS, WRITES, OWN, f"parent={transformer}", "train.max_updates=1"]
    train(project, tmp_path / "run", *settings, "train.optimizer.learning_rate=1e-9")
    scores = json.loads((tmp_path / "run/best/model.json").read_text())["scores"]
    assert scores["bleu"] > 90


@pytest.mark.parametrize(
    ("settings", "key", "words"),
    [
        ([READS], "model.decoder.initial_state", "final needs a state that self_attention encoders lack"),
        ([READS, HYBRID, "model.attention.score=none"], "model.attention.score", "none needs a final state"),
        ([READS, WRITES, OWN, "model.decoder.num_heads=5"], "model.decoder.num_heads", "5 heads do not divide the 32"),
        ([READS, "model.encoder.num_heads=3", WRITES, OWN], "model.encoder.num_heads", "3 heads do not divide the 32"),
        ([READS, WRITES, OWN, "model.attention.window.name=local_m"], "model.attention.window", "own, set global"),
        ([READS, WRITES, "model.attention.score=additive"], "model.attention.score", "own, set general"),
        (
            [READS, WRITES, OWN, "model.decoder.order=luong"],
            "model.decoder.order",
            "unknown key with kind: transformer",
        ),
        ([READS, WRITES, OWN, "model.attention.options={size: 4}"], "model.attention.options", "own, set {}"),
        ([READS, WRITES, OWN, "model.encoder.num_layers=65"], "model.encoder.num_layers", "deeper networks cannot be"),
        ([READS, WRITES, OWN, "model.decoder.learned_positions=4"], "model.decoder.learned_positions", "has 7 tokens"),
        ([READS, WRITES, OWN, "model.encoder.learned_positions=4"], "model.encoder.learned_positions", "has 7 tokens"),
    ],
)
def test_what_does_not_go_together_is_one_line(
    settings: list[str], key: str, words: str, project: Project, tmp_path: Path
) -> None:
    line = refusal(project, tmp_path / "run", *settings)
    assert key in line.removeprefix("--set ").removeprefix(f"{project.config}:9: ")[: len(key)]
    assert words in line
    assert not (tmp_path / "run/best").exists()


def test_learned_positions_end(project: Project, tmp_path: Path, cli: Cli) -> None:
    """A longer sentence is cut as one of more than 1,000 tokens is, no translation is longer, no target is read."""
    limits = ["model.encoder.learned_positions=7", "model.decoder.learned_positions=8"]
    run = tmp_path / "run"
    train(project, run, READS, WRITES, OWN, *limits, "train.max_updates=2", "decode.min_length=7")
    read = cli("translate", "a b c d e f g h a", "--model", run, "--no-split-sentences")
    assert read.code == 0
    assert len(read.out.split()) == 7
    assert "longer than 6 tokens; the rest was ignored" in read.err
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("a b\t" + "A " * 9 + "\n", encoding="utf-8")
    (line,) = errors(cli("explain", "a b", "--model", run, "--target", "A " * 9).err)
    assert "10 tokens are more than the 8 positions that the model has learned" in line
    for length, code in ((8, 0), (9, 1)):
        outcome = cli("translate", "a b", "--model", run, "--set", f"decode.max_length={length}")
        assert outcome.code == code
    assert errors(outcome.err) == ["nmt: error: decode.max_length: 9 is above the 8 positions of the model"]
    sources, references = tmp_path / "a.src", tmp_path / "a.ref"
    sources.write_text("a b\n")
    references.write_text("A " * 9 + "\n")
    evaluated = cli("evaluate", "--model", run, "--src", sources, "--ref", references, "--no-short-inputs")
    assert evaluated.code == 0
    assert "reading the references: left out (10 tokens are more than the 8 positions" in evaluated.err
    assert "BLEU" in evaluated.out
    assert "reading" not in evaluated.out
