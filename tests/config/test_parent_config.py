"""What a config takes over from a trained model, what it keeps, and how the keys of older versions are read."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from config_keys import load, refused

from nmt.config import Config, ParentSection, dump_config, load_config, parse_config, show_config

PARENT = {
    "text.tokenizer": "spacy",
    "text.max_length": 33,
    "data.cleaning.quotes": True,
    "data.cleaning.max_length": 44,
    "model.embedding_size": 24,
    "model.dropout": 0.1,
    "model.encoder": {"kind": "self_attention", "hidden_size": 24, "num_heads": 2},
    "model.decoder": {"kind": "transformer", "hidden_size": 24, "num_heads": 3},
    "model.attention.dropout": 0.2,
}


@pytest.fixture
def parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder with the config of a Transformer; only that is read."""
    monkeypatch.chdir(tmp_path)
    return stored(PARENT)


def stored(values: dict[str, object], folder: str = "runs/one") -> str:
    Path(folder).mkdir(parents=True)
    Path(folder, "config.yaml").write_text(dump_config(load_config(Config(), values)), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "made",
    [
        lambda: load_config("tatoeba", ["parent=runs/one", "data.augment.placeholders=0"]),
        lambda: load_config("tatoeba", {"parent": {"run": "runs/one"}, "data.augment.placeholders": 0}),
        lambda: load_config(load_config("tatoeba"), {"parent": "one", "data.augment.placeholders": 0}),
        lambda: load(Path(), "extends: tatoeba\nparent: runs\ndata: {augment: {placeholders: 0}}"),
    ],
)
def test_sizes_and_text_are_those_of_the_parent(parent: str, made: Callable[[], Config]) -> None:
    shutil.copytree(parent, "runs/best")
    config, there = made(), load_config(Config(), PARENT)
    assert config.text == there.text.model_copy(update={"max_length": 100})
    assert (config.data.cleaning.quotes, config.data.cleaning.max_length) == (True, 100)
    attention = there.model.attention.model_copy(update={"dropout": 0.0})
    assert config.model == there.model.model_copy(update={"dropout": 0.3, "attention": attention})


def test_with_pieces_of_its_own_a_config_keeps_its_text(parent: str, tmp_path: Path) -> None:
    config = load(tmp_path, "extends: tatoeba", "parent.pieces=own", f"parent={parent}")
    assert (config.text, config.data.cleaning.quotes) == (load_config("tatoeba").text, False)
    assert config.model.decoder.kind == "transformer"


def test_what_the_user_sets_stays(parent: str, tmp_path: Path) -> None:
    """Whatever it is used for refuses it then; `auto` is no setting, nor what ships with the project."""
    own = "extends: base\nmodel: {embedding_size: 12, output_norm: auto}\ntext: {lowercase: true}"
    config = load(tmp_path, own, f"parent={parent}", "model.decoder={kind: ssru, hidden_size: 12}")
    assert (config.model.embedding_size, config.model.output_norm, config.text.lowercase) == (12, None, True)
    assert (config.model.encoder.hidden_size, config.model.decoder.hidden_size) == (24, 12)
    assert load(tmp_path, f"parent: {parent}", "parent=null") == Config(name="mine")


def test_the_origin_of_values_is_shown(parent: str) -> None:
    shown = show_config("tatoeba", [f"parent={parent}", "data.augment.placeholders=0"])
    assert "  run: runs/one " in shown
    assert "num_heads: 3 " in shown
    assert shown.count("# runs/one/config.yaml\n") > 30


def test_the_class_of_a_score_is_not_taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = stored({"model.embedding_size": 24})
    path = Path(folder, "config.yaml")
    path.write_text(path.read_text().replace("score: general\n    options: {}", "score: a.B\n    options: {c: 1}"))
    config = load_config("tatoeba", [f"parent={folder}", "data.augment.placeholders=0"])
    assert (config.model.embedding_size, config.model.attention.score, config.model.attention.options) == (
        24,
        "general",
        {},
    )


NAMED = {
    "data.extra": {"syn": {"source": ["a.tsv"], "weight": 2.5, "tag": "<bt>"}, "web": {"source": ["b.tsv"]}},
    "data.cleaning.scripts": {"en": "latin"},
    "model.attention": {"score": "additive", "heads": 2},
}
"""Keys of the user's own among those of sections."""


@pytest.mark.parametrize("pieces", ["same", "own"])
@pytest.mark.parametrize("has_same", [False, True])
def test_a_parent_may_have_keys_of_the_user_s_own(
    has_same: bool, pieces: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = stored(NAMED)
    own = {key: value for key, value in NAMED.items() if has_same and key.startswith("data")}
    config = load(
        tmp_path, "{}", *(f"{key}={value}" for key, value in own.items()), f"parent={{run: {folder}, pieces: {pieces}}}"
    )
    assert config.model.attention.heads == 2
    expected = load_config(Config(), own).data
    assert (config.data.extra, config.data.cleaning.scripts) == (expected.extra, expected.cleaning.scripts)


def test_an_empty_section_drops_the_keys_of_the_user_s_own(tmp_path: Path) -> None:
    there = load_config(Config(), NAMED)
    (tmp_path / "base.yaml").write_text(dump_config(there), encoding="utf-8")
    empty = {"data.extra": {}, "data.cleaning.scripts": {}, "model": {}, "model.attention": {}}
    for config in (
        load_config(there, empty),
        load(tmp_path, "extends: base.yaml\ndata: {extra: {}, cleaning: {scripts: {}}}\nmodel: {attention: {}}"),
    ):
        assert (config.data.extra, config.data.cleaning.scripts) == ({}, {})
        assert config.model == there.model
    added = load_config(there, {"data.extra": {"more": {"source": ["c.tsv"]}}})
    assert [*added.data.extra] == ["syn", "web", "more"]


@pytest.mark.parametrize("number", [None, 2])
def test_older_stored_configs_are_read(tmp_path: Path, number: int | None) -> None:
    values = Config().model_dump(mode="json", exclude={"parent"})
    values["text"]["reuse"] = "data/prepared/old"
    values["train"]["r_drop"] = 4.0
    for run in (None, "runs/gone"):
        values["train"]["init_from"] = run
        text = yaml.safe_dump({"format": number, **values} if number else values)
        expected = Config(parent=ParentSection(run=run))
        assert parse_config(text, "config.yaml") == expected
        assert load(tmp_path, text) == expected  # it is used again, and needs no parent
    assert load(tmp_path, dump_config(expected)) == expected


@pytest.mark.parametrize(
    ("setting", "line"),
    [
        ("parent=nowhere", "parent: nowhere: does not exist"),
        ("parent=runs", "parent: runs: is not a run, model or data directory"),
        ("parent=[1]", "`overrides` parent.run: should be a valid string, found [1]"),
        ("parent.piece=own", "`overrides` parent.piece: unknown key; did you mean pieces?"),
    ],
)
def test_a_wrong_parent_is_one_line(parent: str, tmp_path: Path, setting: str, line: str) -> None:
    assert refused(tmp_path, "", setting) == [line]
