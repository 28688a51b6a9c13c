"""nmt score, and translations that begin with given words."""

import json
import math
import re
from pathlib import Path

import pytest
from conftest import Cli, Project

from nmt.corpus.dataset import open_data
from nmt.evaluation.loss import mean_loss
from nmt.models.storage import load_model
from nmt.system.replacement import locked


def write_pairs(project: Project, folder: Path) -> list[str]:
    """Options that name files with the validation pairs."""
    lines = (project.data / "valid.jsonl").read_text(encoding="utf-8").splitlines()
    pairs = [json.loads(line) for line in lines]
    src, tgt = folder / "src.txt", folder / "tgt.txt"
    src.write_text("".join(f"{pair['src']}\n" for pair in pairs), encoding="utf-8")
    tgt.write_text("".join(f"{pair['references'][0]}\n" for pair in pairs), encoding="utf-8")
    return ["--src", str(src), "--tgt", str(tgt), "--model", str(project.run)]


def test_the_perplexity_is_that_of_validation(cli: Cli, project: Project, tmp_path: Path) -> None:
    data = open_data(project.data)
    loss = mean_loss(load_model(project.run / "best").model, data.valid)
    done = cli("score", *write_pairs(project, tmp_path), "--batch-size", "7")
    scores = [float(line) for line in done.out.splitlines()]
    tokens = len(data.valid.tgt.ids) + len(data.valid)
    assert len(scores) == len(data.valid)
    assert sum(scores) / tokens == pytest.approx(-loss, abs=1e-4)
    (pairs, words, perplexity) = re.findall(r"[\d.]+", done.err.splitlines()[-1])
    assert (int(pairs), int(words)) == (len(scores), tokens)
    assert float(perplexity) == pytest.approx(math.exp(loss), abs=1e-4)


def test_json_has_the_probability_of_each_token(cli: Cli, project: Project, tmp_path: Path) -> None:
    options = write_pairs(project, tmp_path)
    scores = [float(line) for line in cli("score", *options).out.splitlines()]
    output = tmp_path / "scores.jsonl"
    assert cli("score", *options, "--format", "jsonl", "--output", output).code == 0
    targets = (tmp_path / "tgt.txt").read_text(encoding="utf-8").splitlines()
    found = [json.loads(line)["translations"][0] for line in output.read_text(encoding="utf-8").splitlines()]
    assert [each["text"] for each in found] == targets
    assert [sum(each["token_log_probs"]) for each in found] == pytest.approx(scores, abs=2e-4)
    assert all(len(each["token_log_probs"]) == len(each["tokens"]) + 1 for each in found)


@pytest.mark.parametrize(("shorter", "longer"), [("src", "tgt"), ("tgt", "src")])
def test_files_of_different_lengths_are_refused(
    cli: Cli, project: Project, tmp_path: Path, shorter: str, longer: str
) -> None:
    options = write_pairs(project, tmp_path)
    path, output = tmp_path / f"{shorter}.txt", tmp_path / "scores.txt"
    path.write_text("a b\nc\n", encoding="utf-8")
    done = cli("score", *options, "--output", output)
    problem = f"{path}: has 2 lines, fewer than {tmp_path / longer}.txt; give one translation per line"
    assert (done.code, done.err.splitlines()[-1]) == (1, f"nmt: error: {problem}")
    assert not output.exists()


def test_a_translation_begins_as_it_is_told(cli: Cli, project: Project) -> None:
    done = cli("translate", "a b c d", "--prefix", "A A", "--model", project.run, "--n-best", "2")
    lines = [line.split(" ||| ")[1] for line in done.out.splitlines()]
    assert len(lines) == 2
    assert all(line.startswith("A A") for line in lines)


def test_a_prefix_belongs_to_a_sentence(cli: Cli, project: Project, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a b\n", encoding="utf-8")
    done = cli("translate", "--input", tmp_path / "a.txt", "--prefix", "A", "--model", project.run)
    assert done.code == 1
    assert "--prefix is for one sentence" in done.err


def test_a_cut_source_and_missing_lines_are_said(cli: Cli, project: Project, tmp_path: Path) -> None:
    src, tgt = tmp_path / "src.txt", tmp_path / "tgt.txt"
    src.write_text("a\n" + "a " * 1001 + "\n", encoding="utf-8")
    tgt.write_text("A\nA\n", encoding="utf-8")
    done = cli("score", "--src", src, "--tgt", tgt, "--model", project.run)
    assert done.code == 0
    assert "line 2: longer than 1000 tokens" in done.err
    assert "longer than 1000 tokens" in cli("translate", "a " * 1001, "--prefix", "A", "--model", project.run).err
    for path in (src, tgt):
        path.write_text("", encoding="utf-8")
    done = cli("score", "--src", src, "--tgt", tgt, "--model", project.run)
    assert (done.code, done.err) == (1, f"nmt: error: {src}: has no lines; give one source sentence per line\n")


def test_one_command_at_a_time_writes_a_file(cli: Cli, project: Project, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("a\n", encoding="utf-8")
    output = tmp_path / "scores"
    arguments = ["score", "--model", project.run, "--src", tmp_path / "in", "--tgt", tmp_path / "in", "-o", output]
    with locked(output):
        outcome = cli(*arguments)
    assert outcome.code == 1
    assert f"{output}: in use by another command" in outcome.err
    assert not output.exists()
    assert cli(*arguments).code == 0
    assert [path.name for path in tmp_path.iterdir() if "scores" in path.name] == ["scores"]
