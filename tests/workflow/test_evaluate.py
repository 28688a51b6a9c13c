"""Scoring a model as its text asks for."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import Cli, Project

import nmt
from nmt.config import Config, DecoderSection, EncoderSection, ModelSection, TextSection
from nmt.corpus.splitting import Example
from nmt.dataset import write_examples
from nmt.errors import DataError
from nmt.files import write_json
from nmt.model.seq2seq import build_model
from nmt.model.storage import save_model
from nmt.text.processor import TextProcessor
from nmt.text.tokenizers import WhitespaceTokenizer
from nmt.text.vocabulary import Vocabulary
from nmt.workflow.evaluate import read_split


def test_only_the_split_of_a_data_directory_is_read(tmp_path: Path) -> None:
    examples = [Example("a", ("b", "c"))]
    write_json(tmp_path / "data.json", {"format_version": 1})
    write_examples(tmp_path / "test.jsonl", examples)
    assert read_split(tmp_path, "test") == examples
    with pytest.raises(DataError, match="has no valid split"):
        read_split(tmp_path, "valid")
    write_json(tmp_path / "data.json", {"format_version": 2})
    with pytest.raises(DataError, match="data format 2"):
        read_split(tmp_path, "test")


def make_model(folder: Path, *, lowercase: bool) -> Path:
    config = Config(
        name="small",
        text=TextSection(tokenizer="whitespace", lowercase=lowercase),
        model=ModelSection(
            embedding_size=4, encoder=EncoderSection(hidden_size=4), decoder=DecoderSection(hidden_size=4)
        ),
    )
    tokenizer, vocabulary = WhitespaceTokenizer(lowercase=lowercase), Vocabulary(["the", "cat", "sat", "on", "mat"])
    (folder / "text").mkdir(parents=True)
    TextProcessor(tokenizer, tokenizer, vocabulary, vocabulary).save(folder / "text")
    torch.manual_seed(1)
    model = build_model(config.model, len(vocabulary), len(vocabulary))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-1, 1)
    save_model(folder / "model", config, model, folder / "text", {})
    return folder / "model"


@pytest.mark.parametrize("lowercase", [True, False])
def test_a_lowercase_model_is_scored_in_lower_case(tmp_path: Path, cli: Cli, lowercase: bool) -> None:
    model = make_model(tmp_path, lowercase=lowercase)
    found = cli("translate", "--model", model, "the cat sat")
    assert found.code == 0
    assert found.out.strip()
    (tmp_path / "src").write_text("the cat sat\n", encoding="utf-8")
    (tmp_path / "ref").write_text(found.out.upper(), encoding="utf-8")
    outcome = cli("evaluate", "--model", model, "--src", tmp_path / "src", "--ref", tmp_path / "ref")
    assert outcome.code == 0
    chrf = next(line for line in outcome.out.splitlines() if line.startswith("chrF"))
    assert ("case:lc" if lowercase else "case:mixed") in chrf
    assert float(chrf.split()[1]) == (100.0 if lowercase else 0.0)
    assert not lowercase or cli("translate", "--model", model, "THE Cat sAT").out == found.out


@pytest.mark.parametrize(("name", "content"), [("src", "\n \n"), ("ref", "\n\n"), ("second", "\n\t\n")])
def test_files_of_empty_lines_are_refused(tmp_path: Path, cli: Cli, name: str, content: str) -> None:
    paths = {key: tmp_path / key for key in ("src", "ref", "second")}
    for path in paths.values():
        path.write_text("the cat\n\n")
    paths[name].write_text(content)
    model = make_model(tmp_path / "made", lowercase=False)
    arguments = ["--src", paths["src"], "--ref", paths["ref"], "--ref", paths["second"]]
    outcome = cli("evaluate", "--model", model, *arguments)
    assert outcome.code == 1
    assert outcome.err == f"nmt: error: {paths[name]}: has only empty lines; give sentences to evaluate\n"
    paths[name].write_text("the cat\n\n")
    assert cli("evaluate", "--model", model, *arguments).code == 0


def test_short_inputs_are_judged(here: Project, cli: Cli) -> None:
    outcome = cli("evaluate", "--split", "valid", "--json", "scores.json")
    assert outcome.code == 0
    *scores, line = outcome.out.splitlines()
    assert [score.split()[0] for score in scores] == ["BLEU", "chrF"]
    found = json.loads(Path("scores.json").read_text(encoding="utf-8"))["short_inputs"]
    assert line.startswith(f"short inputs: {found['passed']} of {found['of']} (titles ")
    assert set(found["categories"]) == {"titles", "all caps"}  # letters have no final stop, numbers or names
    assert sum(each["of"] for each in found["categories"].values()) == found["of"] == 34
    assert found["of"] - found["passed"] == len(found["failures"]) > 0  # the model knows no capitals
    assert {each["category"] for each in found["failures"]} <= set(found["categories"])
    assert all(each["rules"] and each["input"].isupper() for each in found["failures"])
    Path("src").write_text("a b\n", encoding="utf-8")
    assert cli("evaluate", "--src", "src", "--ref", "src").out.splitlines()[-1] == line


def test_short_inputs_are_turned_off(here: Project, cli: Cli) -> None:
    outcome = cli("evaluate", "--no-short-inputs", "--json", "scores.json")
    assert [line.split()[0] for line in outcome.out.splitlines()] == ["BLEU", "chrF"]
    assert "short inputs" not in outcome.err
    assert json.loads(Path("scores.json").read_text(encoding="utf-8"))["short_inputs"] is None
    assert nmt.evaluate(short_inputs=False).short_inputs is None


def test_short_inputs_need_the_training_data(here: Project, cli: Cli) -> None:
    Path("src").write_text("a b\n", encoding="utf-8")
    damaged, other = Path("damaged"), Path("other")
    for copy in (damaged, other):
        shutil.copytree(here.data, copy)
    ids = np.load(damaged / "train.src.ids.npy")
    np.save(damaged / "train.src.ids.npy", np.full_like(ids, 999))
    facts = json.loads((other / "data.json").read_text(encoding="utf-8"))
    write_json(other / "data.json", {**facts, "sha256": {"changed": "1"}})
    shutil.move(here.data, "moved")
    reasons = {
        ("--src", "src", "--ref", "src"): "no longer there",
        ("--data", damaged): "damaged: has ids beyond",
        ("--data", other): "other is not the data",
    }
    for arguments, reason in reasons.items():
        outcome = cli("evaluate", *arguments)
        assert outcome.code == 0
        assert [line.split()[0] for line in outcome.out.splitlines()] == ["BLEU", "chrF"]
        (line,) = [line for line in outcome.err.splitlines() if line.startswith("short inputs: left out")]
        assert reason in line
    assert "short inputs: " in cli("evaluate", "--data", "moved").out
