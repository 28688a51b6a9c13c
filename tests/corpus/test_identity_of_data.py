"""A run owns its text files, a data directory in use is not replaced, and a test set is what it says it is."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from conftest import Cli, Project, Refusal, call, train_arguments, tree
from training_runs import refusal_to_resume, training

from nmt.config import load_config, read_config
from nmt.corpus.dataset import open_data
from nmt.corpus.identity import count_seen, fingerprint, identities, load_seen, save_seen
from nmt.models.lookup import path_from
from nmt.system.errors import DataError
from nmt.system.limits import MAX_TEXT_FILE
from nmt.text.names import load_words, save_words
from nmt.text.processor import SEEN, WORDS
from nmt.training.text_files import keep_text

pytestmark = pytest.mark.usefixtures("no_pictures")


def seen_by(folder: Path) -> list[int]:
    """The fingerprints of a folder's training sources."""
    return load_seen(folder / "text" / SEEN).tolist()


def test_a_run_keeps_its_text_files(here: Project) -> None:
    """Each save used to copy them from the data directory, whatever had come into it meanwhile."""
    expected = tree(here.data / "text")
    assert tree(here.run / "text") == tree(here.run / "best/text") == expected
    for path in (here.data / "text").glob("*.vocabulary.json"):
        path.write_text('["other"]', encoding="utf-8")
    (here.data / "text" / "more.txt").touch()
    refusal_to_resume(here, here.run, "train.epochs=9", "train.validation.every=1")
    assert tree(here.run / "best/text") == expected


@pytest.mark.parametrize("name", ["src.vocabulary.json", SEEN])
def test_data_whose_text_is_not_what_was_written_is_refused(here: Project, refusal: Refusal, name: str) -> None:
    path = here.data / "text" / name
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(bytes(content))
    line = refusal(*train_arguments(here, Path("new")))
    what = "is missing or has changed since nmt preprocess wrote it"
    assert line == f"{path}: {what}; preprocess again" or "vocabulary.json" in line
    assert not (Path("new") / "best").exists()


@pytest.mark.parametrize("change", ["changed", "gone"])
@pytest.mark.parametrize("name", ["tgt.vocabulary.json", "src.tokenizer.json", SEEN])
def test_a_run_whose_text_was_changed_is_not_resumed(here: Project, name: str, change: str) -> None:
    path = here.run / "text" / name
    if change == "gone":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes() + b" ")
    message = f"{path}: is missing or has changed since nmt preprocess wrote it; restore it"
    assert refusal_to_resume(here, here.run, "train.epochs=9").startswith(message)


def test_a_run_of_an_older_version_copies_its_text_when_resumed(here: Project, cli: Cli) -> None:
    kept = tree(here.run / "text")
    shutil.rmtree(here.run / "text")
    outcome = cli(*train_arguments(here, here.run, "train.epochs=9", "train.schedule.name=constant", "--resume"))
    assert outcome.code == 0, outcome.err
    assert tree(here.run / "text") == kept


def test_preprocess_does_not_replace_data_that_runs_read(here: Project, refusal: Refusal) -> None:
    before = tree(here.data)
    with training(here, Path("long")), training(here, Path("longer")):
        for _ in range(2):
            line = refusal("preprocess", "--config", here.config, "--overwrite")
            assert re.match(f"{here.data}: in use by the run long(er)? .process ", line)
        assert tree(here.data) == before
    assert call("preprocess", "--config", here.config, "--overwrite") == 0  # the processes were killed
    assert not list(here.data.parent.glob(".*"))


def test_a_run_and_its_data_may_be_moved_together(here: Project, cli: Cli) -> None:
    assert path_from(Path("/a/b/runs/x"), Path("/a/y")) == "../../../y"
    assert path_from(Path("/somewhere/runs/x"), Path("/elsewhere/data")) is None
    metadata = json.loads((here.run / "best/model.json").read_text(encoding="utf-8"))
    assert metadata["data"]["path"] == "../../data/prepared/reversal"
    assert len(metadata["data"]["identity"]) == 64
    outcome = cli("evaluate")  # in a copy of the project
    assert outcome.code == 0, outcome.err
    assert "overlap: 0 of 50 sources (0.0%)" in outcome.err
    shutil.move(here.run, "model")
    outcome = cli("evaluate", "--model", "model")
    assert outcome.code == 1
    assert outcome.err.splitlines()[-1] == (
        "nmt: error: model/best: the data it was trained on is no longer there; give it with --data DIR"
    )
    assert cli("evaluate", "--model", "model", "--data", here.data).code == 0


@pytest.mark.parametrize(
    "data", [None, 7, "", "a\0b", [], {"path": 3}, {"path": "a\0b"}, {"path": "/etc"}, {"path": ".."}]
)
def test_a_model_without_its_data(here: Project, cli: Cli, data: object) -> None:
    path = here.run / "best/model.json"
    metadata = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**metadata, "data": data}), encoding="utf-8")
    outcome = cli("evaluate")
    assert outcome.code == 1
    assert outcome.err.splitlines()[-1].endswith("give it with --data DIR")


def test_training_sentences_are_not_a_test_set(here: Project, cli: Cli) -> None:
    """Preprocess again with another seed: most test sentences are those that the model was trained on."""
    outcome = cli("evaluate", "--json", "scores.json")
    assert json.loads(Path("scores.json").read_text())["in_training"] == {"sources": 0, "of": 50, "marked": False}
    assert "UNSEEN" not in outcome.out
    assert "differs from the data" not in outcome.err
    other = ["--set", "data.split.seed=2"]
    assert call("preprocess", "--config", here.config, "--overwrite", *other) == 0
    outcome = cli("evaluate", "--json", "scores.json", "--overwrite")
    assert outcome.code == 0
    assert f"WARNING: {here.data}: differs from the data that the model was trained on" in outcome.err.splitlines()
    call("preprocess", "--config", here.config, "--overwrite", "--set", "data.reverse=true")
    backwards = f"WARNING: {here.data}: is de-en, not en-de, and differs from the data that the model was trained on"
    assert backwards in cli("evaluate").err.splitlines()
    assert call("preprocess", "--config", here.config, "--overwrite", *other) == 0
    trained = {line.split("\t")[0] for line in Path(here.config.parent / "corpus.tsv").read_text().splitlines()}
    tested = [json.loads(line)["src"] for line in (here.data / "test.jsonl").read_text().splitlines()]
    found = json.loads(Path("scores.json").read_text())["in_training"]
    assert set(tested) <= trained
    assert found["of"] == 50
    assert found["sources"] > 40
    assert found["marked"] is True
    assert f"overlap: {found['sources']} of 50 sources ({found['sources'] / 50:.1%})" in outcome.err
    scores = outcome.out.splitlines()[:4]
    assert all(line.endswith("NOT A TEST OF UNSEEN TEXT, see overlap") for line in scores)


def test_files_are_compared_too(here: Project, cli: Cli) -> None:
    """Case and punctuation do not make a sentence another one."""
    seen = load_seen(here.run / "best/text" / SEEN)
    lines = Path(here.config.parent / "corpus.tsv").read_text().splitlines()
    known = [line.split("\t") for line in lines if count_seen([line.split("\t")[0]], seen)]
    new = [line.split("\t") for line in lines if not count_seen([line.split("\t")[0]], seen)]
    pairs = [*known[:2], *new[:2]]
    Path("src").write_text("".join(f"  {src.upper()} !\n" for src, _ in pairs))
    Path("ref").write_text("".join(f"{tgt}\n" for _, tgt in pairs))
    rival = Path(shutil.copytree(here.run / "best", "rival"))
    save_seen(rival / "text" / SEEN, identities([src for src, _ in pairs[1:]]))
    Path("lines").write_text("a\n" * 4)
    outcome = cli("evaluate", "--src", "src", "--ref", "ref", "--against", "rival", "--against", "lines")
    said = "sources ({}) are in the model's training data"
    overlaps = [line for line in outcome.err.splitlines() if "overlap: " in line]
    assert overlaps == [f"rival: overlap: 3 of 4 {said.format('75.0%')}", f"overlap: 2 of 4 {said.format('50.0%')}"]
    assert outcome.out.splitlines()[0].endswith("see overlap")


def test_a_parent_adds_its_training_sources(here: Project, cli: Cli) -> None:
    other = ["--set", "data.split.seed=2", "--set", f"parent={here.run}"]
    assert call("preprocess", "--config", here.config, "--output", "other", *other) == 0
    command = train_arguments(
        Project(here.root, here.config, Path("other"), here.run),
        Path("runs/more"),
        f"parent={here.run}",
        "train.max_updates=2",
    )
    assert call(*command) == 0
    assert {*seen_by(Path("runs/more/best"))} == {*seen_by(here.data), *seen_by(Path("other"))}
    assert "of 50 sources" in cli("evaluate", "--model", "runs/more").err
    (here.run / "best/text" / SEEN).unlink()  # made by an older version: it is not known what the weights have seen
    command[command.index("runs/more")] = "runs/third"
    assert call(*command) == 0
    outcome = cli("evaluate", "--model", "runs/third", "--json", "scores.json")
    assert "overlap: unknown" in outcome.err
    assert json.loads(Path("scores.json").read_text())["in_training"]["sources"] is None


def test_a_parent_adds_its_known_words(here: Project, tmp_path: Path) -> None:
    """A model without the file, or with an empty one, says nothing of its words, and nothing is then known of both."""
    parent = Path(shutil.copytree(here.run / "best", "parent"))
    data = open_data(Path(shutil.copytree(here.data, "copied")))
    config = load_config(read_config(here.run / "config.yaml"), [f"parent={parent}"])
    for number, (own, of_parent, kept) in enumerate(
        [(["a", "b"], ["b", "c"], {"a", "b", "c"}), (["a"], [], set()), ([], ["a"], set())]
    ):
        save_words(data.text / WORDS, own)
        save_words(parent / "text" / WORDS, of_parent)
        run = tmp_path / f"run{number}"
        run.mkdir()
        keep_text(config, data, run)
        assert load_words(run / "text" / WORDS) == kept


def test_fingerprints_of_a_parent_are_refused_if_they_are_of_any_size(here: Project, cli: Cli) -> None:
    stranger = Path(shutil.copytree(here.run / "best", "stranger"))
    with (stranger / "text" / SEEN).open("r+b") as file:
        file.truncate(MAX_TEXT_FILE + 1)  # sparse: it takes no space
    outcome = cli(*train_arguments(here, Path("runs/refused"), f"parent={stranger}"))
    assert outcome.code == 1
    assert f"{stranger / 'text' / SEEN}: " in outcome.err
    assert "more than the limit" in outcome.err


def test_fingerprints_are_counted(tmp_path: Path) -> None:
    texts = [f"Sentence {n}." for n in range(1000)]
    save_seen(tmp_path / "seen.npy", identities([*texts, *texts]))
    seen = load_seen(tmp_path / "seen.npy")
    assert len(seen) == 1000
    assert (tmp_path / "seen.npy").stat().st_size == 8 * 1000 + 128
    assert count_seen(["sentence 7", "SENTENCE 1!", "Sentence 1000.", "another"], seen) == 2
    old = np.array([int.from_bytes(fingerprint(text), "big") for text in ("iamold", "imsad")], dtype=np.uint64)
    assert count_seen(["I am old.", "I'm old.", "I'm sad.", "I am sad."], np.sort(old)) == 3  # as before, and one more
    save_seen(tmp_path / "none.npy", identities([]))
    assert count_seen(["a"], load_seen(tmp_path / "none.npy")) == 0
    assert load_seen(tmp_path / "missing.npy") is None
    for content in (b"", b"\x93NUMPY", b"x" * 500):
        (tmp_path / "bad.npy").write_bytes(content)
        with pytest.raises(DataError, match="damaged"):
            load_seen(tmp_path / "bad.npy")
