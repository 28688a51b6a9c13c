"""Values without measure: every number has a largest value and says why, and no file can make reading it endless."""

import time
from pathlib import Path
from typing import Any, get_args

import pytest
from config_keys import Key, every_key, load, refused
from conftest import Cli

from nmt.config import load_config
from nmt.config.description import describe_keys
from nmt.system.errors import ConfigError


def integers(annotation: Any) -> bool:
    return annotation is int or any(integers(part) for part in get_args(annotation))


INTEGERS = [key for key in every_key() if integers(key.annotation)]
DESCRIBED = [*describe_keys()]


@pytest.mark.parametrize("key", INTEGERS, ids=lambda key: key.path)
def test_every_integer_has_a_largest_value_and_says_why(tmp_path: Path, key: Key) -> None:
    """There was no end, or a traceback, at 10^12 threads, 10^30 units, 10^8 layers."""
    path, huge = key.path, f"{10**20}"
    # What goes with every kind of the other sections; only recurrent decoders have a choice of attention.
    text = (
        "model: {attention: {score: additive}}" if "attention" in path else "model: {decoder: {initial_state: zeros}}"
    )
    [line] = refused(tmp_path, text, *key.kinds, f"{path}={f'[{huge}, 1]' if path == 'data.columns' else huge}")
    assert line.startswith(f"`overrides` {path}")
    if path.endswith("seed"):
        assert "4294967295" in line
    else:
        assert " should be at most " in line
        assert line.partition("(")[2].partition(")")[0].count(" ") > 2  # the reason, in words
    described = [described for described in DESCRIBED if described.path == path]
    assert described
    assert all("≤" in each.values for each in described)


def test_there_are_many_integers() -> None:
    assert len(INTEGERS) > 40


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("model.initialization.scale", "1e308"),
        ("model.initialization.forget_bias", "-1e308"),
        ("model.attention.past.loss_weight", "1e308"),
        ("decode.length_penalty", "1e308"),
    ],
)
def test_numbers_that_weights_and_scores_cannot_hold(tmp_path: Path, path: str, value: str) -> None:
    [line] = refused(tmp_path, "model: {attention: {score: additive, past: {name: coverage}}}", f"{path}={value}")
    assert line.startswith(f"`overrides` {path}: should be ")


@pytest.mark.parametrize("option", ["size", "max_length"])
def test_a_score_s_own_integers_are_bounded(tmp_path: Path, option: str) -> None:
    score = {"size": "additive", "max_length": "location"}[option]
    [line] = refused(tmp_path, f"model: {{attention: {{score: {score}, options: {{{option}: {10**20}}}}}}}\n")
    assert f"model.attention.options.{option}: should be at most " in line


@pytest.mark.parametrize("value", ["1" * 31, "-" + "9" * 5000, "0x" + "f" * 5000, "0o" + "7" * 5000, '!!int ""'])
def test_a_number_that_is_none_or_of_thousands_of_digits(tmp_path: Path, value: str) -> None:
    [line] = refused(tmp_path, f"train:\n  epochs: {value}\n")
    assert line == "mine.yaml:2: train.epochs: cannot be read as int"


@pytest.mark.parametrize("value", ["1:30", "1_000", "0b11", "2018-05-13", "=", "yes"])
def test_what_yaml_1_2_does_not_read_as_a_number_is_text(tmp_path: Path, value: str) -> None:
    [line] = refused(tmp_path, f"train:\n  epochs: {value}\n")
    assert line == f"mine.yaml:2: train.epochs: should be a valid integer, found '{value}'"


@pytest.mark.parametrize(("value", "read"), [("0o17", 15), ("0x1F", 31), ("017", 17), ("+5", 5)])
def test_the_integers_of_yaml_1_2(tmp_path: Path, value: str, read: int) -> None:
    assert load(tmp_path, f"train: {{epochs: {value}}}\n").train.epochs == read


@pytest.mark.parametrize("value", ["0", "1", "yes", "off", "'true'"])
def test_only_true_and_false_are_booleans(tmp_path: Path, value: str) -> None:
    [line] = refused(tmp_path, f"data: {{reverse: {value}}}\n")
    assert line.startswith("mine.yaml:1: data.reverse: should be a valid boolean, found ")


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("data: {columns: !!set [1, 2]}", "set"),
        ("data: {columns: !!python/tuple [1, 2]}", "python/tuple"),
        ("data: !!omap {reverse: true}", "omap"),
        ("data: {columns: !mine [1, 2]}", "!mine"),
        ("data: {source: !!str [a, b]}", "str"),
        ("train: {epochs: !!timestamp 2018-05-13}", "timestamp"),
        ("name: !!python/name:os.system ''", "python/name:os.system"),
        ("name: !!binary aGVsbG8=", "binary"),
    ],
)
def test_tags_of_other_schemas_are_refused(tmp_path: Path, text: str, tag: str) -> None:
    [line] = refused(tmp_path, text)
    assert f"is tagged {tag}, which does not fit here" in line


@pytest.mark.parametrize("text", ["? [a, b]\n: 3", "train:\n  ? {a: b}\n  : 3"])
def test_keys_are_text(tmp_path: Path, text: str) -> None:
    [line] = refused(tmp_path, text)
    assert "has a key that is a list or a section" in line


BOMB = "a0: &a0 x\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10))


@pytest.mark.parametrize("text", [BOMB, "a: &a [*a]\n", "a: &a {b: *a}\n", "[" * 5000, "x: " * 3 + "\n" + "{" * 9000])
def test_aliases_and_depth_come_to_an_end(tmp_path: Path, text: str) -> None:
    """Nine levels of ten aliases each are 10^9 values. Time of this process counts, not of others on the machine."""
    begin = time.process_time()
    assert len(refused(tmp_path, text)) == 1
    assert time.process_time() - begin < 10


def test_a_config_file_has_a_largest_size(tmp_path: Path) -> None:
    [line] = refused(tmp_path, "# " + "x" * 300_000)
    assert "262,144" in line


def test_thousands_of_problems_are_counted_not_listed(tmp_path: Path) -> None:
    lines = refused(tmp_path, "".join(f"k{n}: 1\n" for n in range(1500)))
    assert len(lines) == 51
    assert lines[-1] == "and 1,450 more problems"


@pytest.mark.parametrize(
    "text", ["train: {epochs: [" + "7, " * 1500 + "7]}", f"name: {'x' * 20_000}", f"? {'x' * 20_000}\n: 1"]
)
def test_what_was_found_is_shown_in_part(tmp_path: Path, text: str) -> None:
    [line] = refused(tmp_path, text)
    assert "..." in line
    assert len(line) < 700


@pytest.mark.parametrize("text", ['"a\\e[2Jb": 1', '"train\\ntrain": 1', 'name: "a\\e[2J\\u202eb"', "name: !<\\e> x"])
def test_control_characters_of_a_config_do_not_reach_a_terminal(tmp_path: Path, cli: Cli, text: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    outcome = cli("config", "check", path)
    assert outcome.code == 1
    (line,) = outcome.err.splitlines()
    assert line.startswith("nmt: error: ")
    assert line.isprintable()


@pytest.mark.parametrize("kind", ["fifo", "device"])
def test_a_config_that_never_ends_is_not_read(tmp_path: Path, kind: str) -> None:
    import os

    path = tmp_path / "mine.yaml"
    if kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(ConfigError, match=r"mine\.yaml: (no such config file|is not a regular file)"):
        load_config(str(path))
