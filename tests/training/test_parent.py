"""Models that start from a trained one: the same pieces or pieces of their own, by the real commands."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from conftest import Cli, Project, call
from safetensors.torch import load_file, save_file
from training_runs import refusal, stop_and_resume, train

import nmt
from nmt.config import load_config
from nmt.corpus.dataset import open_data
from nmt.system.errors import ConfigError
from nmt.text.vocabulary import SPECIAL_TOKENS
from nmt.training import readiness

CHILD = """
data: {{source: {source}, tgt_language: nl, split: {{valid_size: 10, test_size: 10}}}}
text: {{tokenizer: whitespace}}
parent: {{run: {run}, pieces: own}}
train: {{epochs: 1, batch: {{size: 8}}, checkpoint: {{every: 3, minutes: null}}, device: cpu}}
"""
STILL = "train.optimizer={name: sgd, learning_rate: 1.0e-30}"  # weights stay as they are


@pytest.fixture(scope="module")
def child(short_project: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Data of another language with a part of the parent's letters and some more, in a config without any sizes."""
    root = tmp_path_factory.mktemp("child")
    pairs = [(f"{a} {b} {c}", f"{c} {b} {a}".upper()) for a in "cdxyz" for b in "abyzv" for c in "abcw"]
    (root / "corpus.tsv").write_text("".join(f"{src}\t{tgt}\n" for src, tgt in pairs), encoding="utf-8")
    config = root / "child.yaml"
    config.write_text(CHILD.format(source=root / "corpus.tsv", run=short_project.run), encoding="utf-8")
    assert call("preprocess", config, "--output", root / "data") == 0
    return Project(root, config, root / "data", root / "run")


def test_rows_of_shared_pieces_are_those_of_the_parent(
    child: Project, short_project: Project, run: Path, tmp_path: Path
) -> None:
    said = train(child, run, STILL)
    sizes = (
        "{embedding_size: 8, dropout: 0.3, encoder: {cell: gru, hidden_size: 8}, decoder: {cell: gru, hidden_size: 12}}"
    )
    train(child, tmp_path / "new", STILL, "parent=null", f"model={sizes}")
    found, parent, new = (
        load_file(path / "best/model.safetensors") for path in (run, short_project.run, tmp_path / "new")
    )
    here, there = open_data(child.data), open_data(short_project.data)
    sides = {
        "encoder.embedding": (here.src_vocabulary.tokens, there.src_vocabulary.tokens, set("abcd")),
        "decoder.embedding": (here.tgt_vocabulary.tokens, there.tgt_vocabulary.tokens, set("ABCD")),
        "decoder.output": (here.tgt_vocabulary.tokens, there.tgt_vocabulary.tokens, set("ABCD")),
    }
    assert found.keys() == parent.keys()
    for name, weights in found.items():
        if name.rpartition(".")[0] not in sides:
            assert weights.equal(parent[name]), name
            continue
        tokens, of_parent, letters = sides[name.rpartition(".")[0]]
        assert {*tokens} & {*of_parent} == {*SPECIAL_TOKENS, *letters}
        for row, token in zip(weights, tokens, strict=True):
            if token in of_parent:
                assert row.equal(parent[name][of_parent.index(token)]), (name, token)
            else:  # a bias of 0 does move
                torch.testing.assert_close(row, new[name][tokens.index(token)], rtol=0, atol=1e-20)
    assert "\nparent: " in f"\n{said}"
    assert "best has 4 of the 9 source pieces and 4 of the 9 target pieces; the vectors of the others are new" in said


def test_a_child_with_pieces_of_its_own_resumes_exactly_and_is_evaluated(
    child: Project, short_project: Project, tmp_path: Path, cli: Cli
) -> None:
    run = stop_and_resume(child, tmp_path, 5)
    config = load_config(str(run / "config.yaml"))
    assert (config.model.encoder.hidden_size, config.model.decoder.hidden_size) == (8, 12)
    assert (config.parent.run, config.parent.pieces) == (str(short_project.run), "own")
    there = open_data(short_project.data)
    for name, pairs, vocabulary in (
        ("a", there.train.src, there.src_vocabulary),
        ("b", there.train.tgt, there.tgt_vocabulary),
    ):
        lines = (" ".join(vocabulary.decode(pairs[index])) for index in range(7))
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    files = ["--src", tmp_path / "a", "--ref", tmp_path / "b", "--json", tmp_path / "scores"]
    assert cli("evaluate", "--model", run, *files).code == 0
    seen = json.loads((tmp_path / "scores").read_text(encoding="utf-8"))["in_training"]
    assert seen == {"sources": 7, "of": 7, "marked": True}  # the parent has


def test_the_parent_may_be_gone_once_a_run_has_begun(child: Project, short_project: Project, tmp_path: Path) -> None:
    shutil.copytree(short_project.run / "best", tmp_path / "parent")
    train(child, tmp_path / "run", f"parent.run={tmp_path / 'parent'}")
    shutil.rmtree(tmp_path / "parent")
    assert call("evaluate", "--model", tmp_path / "run", "--data", child.data) == 0
    line = refusal(child, tmp_path / "run", f"parent.run={tmp_path / 'parent'}", "--overwrite")
    assert line == f"parent: {tmp_path / 'parent'}: does not exist"


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("model.embedding_size=16", "other settings: model.embedding_size (8 there, 16 here); set the same, or leave"),
        ("model.encoder.num_layers=2", "other settings: model.encoder.num_layers (1 there, 2 here); set the same"),
        (
            "model.decoder.kind=transformer",
            "other settings: model.decoder.kind ('recurrent' there, 'transformer' here)",
        ),
        ("parent.pieces=same", "best has other vocabularies than"),
        ("parent.pieces=some", "should be 'same' or 'own', found 'some'"),
    ],
)
def test_what_is_not_the_parent_s_is_refused(child: Project, run: Path, setting: str, problem: str) -> None:
    said = train(child, run, setting, code=1)
    assert problem in said
    assert "begins from" not in said
    assert len(said.splitlines()) == 1
    assert not run.exists()


def test_a_check_does_not_expect_much_of_new_vectors(child: Project, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("OVERFIT_LONGEST", "TIMED_UPDATES"):  # of what is checked next
        monkeypatch.setattr(readiness, limit, 1)
    found = cli("check", child.config, "--data", child.data)
    assert "ok      initial loss" in found.out
    assert "parent: " not in found.err


def test_a_run_says_first_where_its_weights_come_from(
    child: Project, short_project: Project, run: Path, tmp_path: Path
) -> None:
    said = train(child, run, "train.max_updates=1").splitlines()
    assert said[0] == f"{run}: begins from the weights of {short_project.run}"
    said = train(short_project, tmp_path / "new", "train.max_updates=1").splitlines()
    assert said[0] == f"{tmp_path / 'new'}: begins from new weights"


@pytest.fixture
def orphan(child: Project, tmp_path: Path) -> Project:
    """The data of the child with a config that names no parent."""
    config = tmp_path / "orphan.yaml"
    lines = child.config.read_text(encoding="utf-8").splitlines()
    config.write_text("\n".join(line for line in lines if not line.startswith("parent")), encoding="utf-8")
    return Project(child.root, config, child.data, tmp_path / "run")


@pytest.mark.parametrize("as_object", [False, True])
def test_data_of_a_parent_is_not_trained_on_without_it_in_silence(
    orphan: Project, short_project: Project, run: Path, cli: Cli, as_object: bool
) -> None:
    parent = short_project.run
    if as_object:
        with pytest.raises(
            ConfigError, match=r"add `overrides={'parent.run': .* or `overrides={'parent': None}` for new"
        ):
            nmt.train(nmt.load_config(orphan.config), data=orphan.data, output=run)
        return
    line = refusal(orphan, run)
    assert line == (
        f"{orphan.data}: was prepared from {parent}, but the config names no parent; add --set "
        f"parent.run={parent} --set parent.pieces=own to begin from its weights, or --set parent=null for new weights"
    )
    assert not run.exists()
    found = cli("check", orphan.config, "--data", orphan.data)
    assert (found.code, line in found.err) == (1, True)
    assert "begins from new weights" in train(orphan, run, "parent=null", "train.max_updates=1")
    with orphan.config.open("a", encoding="utf-8") as file:
        file.write("\nparent: null\n")
    assert "begins from new weights" in train(orphan, run, "train.max_updates=1", "--overwrite")
    again = ["parent={run: " + str(parent) + ", pieces: own}", "train.max_updates=1", "--overwrite"]
    assert f"begins from the weights of {parent}" in train(orphan, run, *again)


def test_another_parent_than_that_of_the_data_is_named(
    child: Project, short_project: Project, run: Path, tmp_path: Path
) -> None:
    copied = shutil.copytree(short_project.run / "best", tmp_path / "copy")
    settings = [f"parent={{run: {copied}, pieces: own}}", "train.max_updates=1"]
    assert "was prepared from" not in train(child, run, *settings)  # the same weights
    other = load_file(copied / "model.safetensors")
    save_file({name: part + 0.01 for name, part in other.items()}, copied / "model.safetensors")
    line = f"{child.data}: was prepared from {short_project.run}, but the config names the parent {copied}"
    assert line in train(child, run, "--overwrite", *settings)


def test_data_without_a_record_of_its_parent_trains(orphan: Project, run: Path, tmp_path: Path) -> None:
    """As earlier versions made it."""
    data = Path(shutil.copytree(orphan.data, tmp_path / "data"))
    marker = json.loads((data / "data.json").read_text(encoding="utf-8"))
    assert set(marker.pop("parent")) == {"run", "weights"}
    (data / "data.json").write_text(json.dumps(marker), encoding="utf-8")
    said = train(Project(orphan.root, orphan.config, data, run), run, "train.max_updates=1")
    assert "begins from new weights" in said


def follow(line: str) -> list[str]:
    """The settings that a refusal names after the first --set, up to the next comma."""
    return line.partition("--set ")[2].partition(",")[0].split(" to begin")[0].split(" --set ")


@pytest.mark.parametrize("named", [True, False])
def test_a_refusal_names_the_parent_and_the_pieces_of_the_data(
    child: Project, orphan: Project, short_project: Project, run: Path, named: bool
) -> None:
    """The data has pieces of its own: with those of the parent, nothing can be learnt from it."""
    settings = [f"parent={short_project.run}"] if named else []
    line = refusal(orphan, run, *settings)
    added = follow(line)
    assert "parent.pieces=own" in added
    assert f"parent={short_project.run}" not in line
    said = train(orphan, run, *settings, *added, "train.max_updates=1")
    assert said.splitlines()[0] == f"{run}: begins from the weights of {short_project.run}"


def test_a_refusal_names_the_pieces_of_a_parent_that_the_data_has(
    child: Project, orphan: Project, short_project: Project, tmp_path: Path, cli: Cli
) -> None:
    """Data with the parent's pieces, and configs with pieces of their own, in other text settings."""
    same = Project(child.root, orphan.config, tmp_path / "same", tmp_path / "run")
    made = cli("preprocess", "--config", orphan.config, "--output", same.data, "--set", f"parent={short_project.run}")
    assert made.code == 0
    own = f"parent={{run: {short_project.run}, pieces: own}}"
    plain = Project(child.root, config_without_text(orphan), same.data, same.run)
    line = refusal(plain, same.run, own)
    assert follow(line) == ["parent.pieces=same"]
    said = train(plain, same.run, own, *follow(line), "train.max_updates=1", code=1)  # most of its tokens are unknown
    assert "stopped at update 1: all 1 updates are done" in said


def config_without_text(project: Project) -> Path:
    lines = project.config.read_text(encoding="utf-8").splitlines()
    path = project.config.with_name("plain.yaml")
    path.write_text("\n".join(line for line in lines if not line.startswith("text")), encoding="utf-8")
    return path


def test_a_parent_that_is_gone_is_no_way_out(
    orphan: Project, short_project: Project, run: Path, tmp_path: Path
) -> None:
    data = Path(shutil.copytree(orphan.data, tmp_path / "data"))
    for name in ("data.json", "config.yaml"):
        text = (data / name).read_text(encoding="utf-8")
        (data / name).write_text(text.replace(str(short_project.run), str(tmp_path / "gone")), encoding="utf-8")
    line = refusal(Project(orphan.root, orphan.config, data, run), run)
    assert line.endswith("but the config names no parent; add --set parent=null for new weights")


def test_what_validation_cannot_do_is_said_after_the_origin_of_the_weights(
    child: Project, run: Path, tmp_path: Path, cli: Cli
) -> None:
    no_split = ["--set", "data.split={valid_size: 0, test_size: 0}"]
    assert cli("preprocess", "--config", child.config, "--output", tmp_path / "data", *no_split).code == 0
    said = train(Project(child.root, child.config, tmp_path / "data", run), run, "train.max_updates=1").splitlines()
    assert "begins from the weights of" in said[0]
    assert "WARNING: no validation split: the last model is kept" in said[1:]
