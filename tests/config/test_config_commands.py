"""nmt config show, check and schema."""

import json
import re
from pathlib import Path

import pytest
from conftest import Cli
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.config import differences, load_config, parse_config, show_config
from nmt.config.description import json_schema
from nmt.config.reading import in_one_line
from nmt.system.files import shipped

SHIPPED = sorted(path.stem for path in shipped("configs").glob("*.yaml"))


@pytest.fixture
def configs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a config and the one that it extends."""
    (tmp_path / "old.yaml").write_text(
        "data:\n  source:\n    - a b.en\n    - '#.de'\ntrain:\n  epochs: 7\n  seed: 3\n", encoding="utf-8"
    )
    (tmp_path / "young.yaml").write_text("extends: old.yaml\ntrain:\n  epochs: 9\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shown_config_loads_again_as_it_was(tmp_path: Path, name: str) -> None:
    path = tmp_path / "shown.yaml"
    path.write_text(show_config(name, ["train.epochs=3"]), encoding="utf-8")
    assert load_config(str(path)) == load_config(name, ["train.epochs=3"])


def test_each_value_is_shown_with_where_it_comes_from(configs: Path) -> None:
    shown = show_config("young.yaml", ["train.batch={size: 8}", "decode.beam_size=2"])
    pairs = [line.split("  # ") for line in shown.splitlines() if "  # " in line]
    found = {(value.strip(), origin) for value, origin in pairs}
    assert {
        ("name: young", "young.yaml"),
        ("source: [a b.en, '#.de']", "old.yaml:3"),
        ("columns: [1, 2]", "default"),
        ("seed: 3", "old.yaml:7"),
        ("epochs: 9", "young.yaml:3"),
        ("size: 8", "--set"),
        ("unit: sentences", "default"),
        ("beam_size: 2", "--set"),
        ("options: {}", "default"),
    } <= found


def test_comments_are_aligned_except_those_of_long_values(configs: Path) -> None:
    shown = show_config("young.yaml", [f"data.directory={'x' * 100}"]).splitlines()
    short = [line for line in shown if "  # " in line and "xxx" not in line]
    assert len({line.rindex("  # ") for line in short}) == 1
    assert f"  directory: {'x' * 100}  # --set" in shown


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=200))
def test_any_text_is_shown_on_one_line(value: str) -> None:
    line = f"  directory: {in_one_line(value)}"
    assert line.splitlines() == [line]
    assert parse_config(f"data:\n{line}  # default\n", "shown.yaml").data.directory == value


def test_show_prints_what_can_be_saved_and_used(configs: Path, cli: Cli) -> None:
    outcome = cli("config", "show", "young.yaml", "--set", "data.src_language=ää")
    assert (outcome.code, outcome.err) == (0, "")
    (configs / "saved.yaml").write_text(outcome.out, encoding="utf-8")
    assert load_config("saved.yaml") == load_config("young.yaml", ["data.src_language=ää"])


def test_a_shipped_config_is_named_by_its_path_from_here(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shipped("configs").parent)
    assert "# configs/base.yaml:" in cli("config", "show", "tatoeba").out


def test_check_says_that_there_is_no_problem(configs: Path, cli: Cli) -> None:
    outcome = cli("config", "check", "young.yaml")
    assert (outcome.code, outcome.out, outcome.err) == (0, "young.yaml: no problems\n", "")


def test_check_and_show_report_every_problem(configs: Path, cli: Cli) -> None:
    Path("bad.yaml").write_text("train:\n  epohcs: 3\n  optimizer: {name: adm}\n")
    lines = [
        "nmt: error: bad.yaml:2: train.epohcs: unknown key; did you mean epochs?",
        "nmt: error: bad.yaml:3: train.optimizer.name: should be 'adam', 'adamw', 'sgd', 'rmsprop', 'radam', 'nadam', "
        "'adadelta' or 'muon', found 'adm'; did you mean adam?",
    ]
    for command in ("check", "show"):
        outcome = cli("config", command, "bad.yaml")
        assert (outcome.code, outcome.out) == (1, "")
        assert sorted(outcome.err.splitlines()) == lines
    assert cli("config", "check", "nowhere.yaml").code == 1


TRANSFORMER = {"encoder.kind": "self_attention", "decoder.kind": "transformer"}


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("bahdanau", {"attention.score": "additive", "decoder.order": "bahdanau"}),
        ("Luong", {"attention.score": "general", "decoder.order": "luong", "decoder.input_feeding": "true"}),
        ("dot-product", {"attention.score": "dot"}),
        ("multiplicative", {"attention.score": "general"}),
        ("local", {"attention.score": "general", "attention.window.name": "local_p"}),
        ("self-attention", TRANSFORMER),
        ("self", TRANSFORMER),
    ],
)
def test_other_names_of_an_attention_are_answered_with_its_settings(
    cli: Cli, name: str, wanted: dict[str, str]
) -> None:
    outcome = cli("config", "check", "tatoeba_small", "--set", f"model.attention.score={name}")
    settings = " ".join(f"--set model.{key}={value}" for key, value in wanted.items())
    line = f"{name} is not the name of a score here: its score is {wanted.get('attention.score', 'scaled_dot')}"
    line = f"{line}; for a model, set what it is: {settings}"
    assert (outcome.code, outcome.err) == (1, f"nmt: error: --set model.attention.score: {line}\n")
    shown = cli("config", "show", "tatoeba_small", *settings.split()).out
    for key, value in wanted.items():
        indentation, name = "  " * (key.count(".") + 1), key.rpartition(".")[2]
        assert re.search(rf"^{indentation}{name}: {value} +# --set$", shown, re.MULTILINE)


def test_bahdanau_and_luong_are_tatoeba_small_with_their_attention() -> None:
    small, bahdanau, luong = map(load_config, ("tatoeba_small", "bahdanau", "luong"))
    same = {"name", "data.directory"}
    changes = [
        {key: value for key, _, value in differences(small, other) if key not in same} for other in (bahdanau, luong)
    ]
    assert changes == [
        {"model.decoder.order": "bahdanau", "model.attention.score": "additive"},
        {"model.decoder.input_feeding": True},
    ]
    assert (luong.model.decoder.order, luong.model.attention.score) == ("luong", "general")
    assert {config.data_directory for config in (small, bahdanau, luong)} == {small.data_directory}


def test_schema_prints_json(cli: Cli) -> None:
    outcome = cli("config", "schema")
    assert outcome.code == 0
    assert json.loads(outcome.out) == json_schema()


@pytest.mark.parametrize(("name", "cells"), [("attention_dropout", 4), ("mine.yaml", 6), ("mine", 6)])
def test_a_comparison_without_problems(configs: Path, cli: Cli, name: str, cells: int) -> None:
    text = "config: sample\nvary: {model.dropout: [0.1, 0.2]}\nseeds: [1, 2, 3]\n"
    (configs / "mine.yaml").write_text(text, encoding="utf-8")
    outcome = cli("config", "check", name)
    assert (outcome.code, outcome.out, outcome.err) == (0, f"{name}: no problems in {cells} cells\n", "")
    assert list(configs.glob("runs")) == []


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "config: sample\nsedes: [1]\nbudget_minutes: -1",
            [
                "mine.yaml: budget_minutes: should be greater than 0",
                "mine.yaml: sedes: unknown key; did you mean seeds?",
            ],
        ),
        (
            "config: [sample, gone]\nsettings: {train.epohcs: 3}",
            [
                "cell sample: train.epohcs: unknown key; did you mean epochs?",
                "cell gone: gone: no such config file",
            ],
        ),
        ("config: base", ["data.src_language and data.tgt_language: are not set"]),
        ("config: sample\nvariants: [{name: a}, {name: a}]", ["cells 'a' and 'a': would share the folder a-1"]),
    ],
)
def test_every_problem_of_a_comparison_is_reported(configs: Path, cli: Cli, text: str, lines: list[str]) -> None:
    (configs / "mine.yaml").write_text(f"{text}\n", encoding="utf-8")
    outcome = cli("config", "check", "mine.yaml")
    assert outcome.code == 1
    reported = outcome.err.splitlines()
    assert len(reported) == len(lines)
    for line, beginning in zip(reported, lines, strict=True):
        assert line.removeprefix("nmt: error: ").startswith(beginning)


def test_a_setting_changes_every_cell_of_a_checked_comparison(cli: Cli) -> None:
    outcome = cli("config", "check", "attention_dropout", "--set", "model.dropout=2")
    assert outcome.err.startswith("nmt: error: cell ")
    assert "model.dropout: should be less than 1, found 2" in outcome.err
