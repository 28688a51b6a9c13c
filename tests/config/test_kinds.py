"""Sections of several kinds: how one is chosen, what a child that changes it keeps, and how older files are read."""

from pathlib import Path

import pytest
import yaml
from config_keys import load, refused

from nmt.config import (
    Config,
    DecoderFamily,
    EncoderFamily,
    ModelSection,
    SimCutSection,
    differing_keys,
    dump_config,
    load_config,
    parse_config,
)
from nmt.config.fields import kinds_of
from nmt.system.errors import ConfigError

FULL = {  # keys of sections as versions without a format number wrote them
    "optimizer": {"momentum": 0.0, "betas": [0.9, 0.999], "epsilon": 1e-8, "learning_rate": 0.001, "clip_norm": 1.0},
    "schedule": {"warmup": 7, "factor": 0.5, "patience": 0, "floor": 0.01},
    "teacher_forcing": {"ratio": 1.0, "minimum": 0.0, "updates": None},
}


@pytest.mark.parametrize("path", ["model.encoder", "model.decoder", "train.optimizer", "train.schedule"])
def test_a_kind_may_be_left_out_and_is_then_the_first(path: str) -> None:
    section, _, name = path.partition(".")
    field = type(getattr(Config(), section)).model_fields[name]
    mark, (first, *_) = kinds_of(field)
    assert mark is not None
    for values in ({}, {mark.key: mark.name(first)}):
        assert type(getattr(getattr(Config(**{section: {name: values}}), section), name)) is first


def test_a_child_that_changes_a_kind_drops_what_the_new_kind_lacks(tmp_path: Path) -> None:
    (tmp_path / "parent.yaml").write_text(
        "train: {optimizer: {learning_rate: 0.5, betas: [0.8, 0.9]}, schedule: {name: plateau, floor: 0.3}}"
    )
    child = tmp_path / "child.yaml"
    child.write_text("extends: parent.yaml\ntrain: {optimizer: {name: sgd, momentum: 0.9}, schedule: {name: cosine}}")
    config = load_config(str(child))
    assert (config.train.optimizer.learning_rate, config.train.optimizer.momentum) == (0.5, 0.9)
    assert config.train.schedule.floor == 0.3
    for order in (1, -1):
        overrides = ["train.optimizer.name=nadam", "train.optimizer.momentum_decay=0.1"][::order]
        of_command = load_config(str(tmp_path / "parent.yaml"), overrides).train.optimizer
        assert (of_command.betas, of_command.momentum_decay) == ((0.8, 0.9), 0.1)
    again = load_config(config, ["train.optimizer.name=adam"])
    assert (again.train.optimizer.learning_rate, again.train.optimizer.betas) == (0.5, (0.9, 0.999))


@pytest.mark.parametrize(
    ("overrides", "problems"),
    [
        (["train.optimizer={name: sgd, betas: [0.9, 0.9]}"], ["train.optimizer.betas: unknown key with name: sgd"]),
        (
            ["train.optimizer.name=sgd", "train.optimizer.betas=[0.9, 0.9]", "train.optimizer.momentun=1"],
            ["train.optimizer.betas: unknown key with name: sgd", "train.optimizer.momentun: unknown key; did you"],
        ),
        (["train.optimizer.name=sgdd", "train.optimizer.momentum=0.5"], ["train.optimizer.name: should be 'adam'"]),
        (["train.optimizer.momentum=0.9"], ["train.optimizer.momentum: unknown key with name: adam, only with sgd or"]),
        (
            ["train.schedule={name: inverse_sqrt, warmup: 9, floor: 0.2}", "train.teacher_forcing.minimum=0.2"],
            ["train.schedule.floor: unknown key with name", "train.teacher_forcing.minimum: unknown key with schedule"],
        ),
        (["train.optimizer=3"], ["train.optimizer: should be a section with keys, found 3"]),
        (["train.optimizer.name=[sgd]"], ["train.optimizer.name: should be 'adam', 'adamw'"]),
        (
            ["model.encoder.kind=recurent"],
            ["model.encoder.kind: should be 'recurrent' or 'self_attention', found 'recurent'; did you mean recurrent"],
        ),
        (["train.teacher_forcing={schedule: linear, updates: x}"], ["train.teacher_forcing.updates: should be a"]),
    ],
)
def test_keys_beside_a_new_kind_are_checked(tmp_path: Path, overrides: list[str], problems: list[str]) -> None:
    lines = refused(tmp_path, "train: {optimizer: {name: adam, epsilon: 1e-6}}\n", *overrides)
    assert len(lines) == len(problems)
    for line, problem in zip(sorted(lines), problems, strict=True):
        assert line.startswith(f"`overrides` {problem}")


def test_a_parent_s_own_mistake_is_told_though_a_child_changes_the_kind(tmp_path: Path) -> None:
    (tmp_path / "parent.yaml").write_text("train:\n  optimizer: {betsa: [0.8, 0.9]}")
    [line] = refused(tmp_path, "extends: parent.yaml\ntrain: {optimizer: {name: sgd}}")
    assert line.startswith("parent.yaml:2: train.optimizer.betsa: unknown key; ")


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize(
    ("names", "settings"),
    [
        (("adam", "constant", "constant"), ["train.schedule.warmup=7"]),
        (("sgd", "cosine", "constant"), ["train.optimizer.name=sgd", "train.schedule={name: cosine, warmup: 7}"]),
    ],
)
def test_a_config_stored_without_a_format_number_equals_its_new_form(
    names: tuple[str, str, str], settings: list[str], momentum: float
) -> None:
    """Older versions stored the keys of every kind, also with values that a parent had set for another kind."""
    optimizer, schedule, forcing = names
    old = {
        "name": "experiment",
        "train": {
            "optimizer": {**FULL["optimizer"], "name": optimizer, "momentum": momentum},
            "schedule": {**FULL["schedule"], "name": schedule},
            "teacher_forcing": {**FULL["teacher_forcing"], "schedule": forcing},
        },
        "model": {
            "encoder": {"kind": "recurrent"},
            "attention": {"window": {"name": "global", "radius": 3}, "past": {"name": "none", "filters": 4}},
        },
    }
    more = [f"train.optimizer.momentum={momentum}"] if optimizer == "sgd" else []
    new = load_config(Config(), [*settings, *more, "train.graphs=false"])  # which is what those versions did
    stored = parse_config(yaml.safe_dump(old), "config.yaml")
    assert differing_keys(stored, new) == []
    assert stored == new


def test_an_old_stored_config_can_be_used_again(tmp_path: Path) -> None:
    values = Config().model_dump(mode="json")
    for name, section in FULL.items():
        values["train"][name] |= section
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    assert load_config(str(path)).train.schedule.warmup == 7


def test_a_stored_config_has_its_format_and_the_keys_of_its_kinds_only() -> None:
    dumped = yaml.safe_load(dump_config(load_config(Config(), ["train.optimizer.name=sgd"])))
    assert dumped["format"] == 3
    assert set(dumped["train"]["optimizer"]) == {"name", "learning_rate", "weight_decay", "clip_norm", "momentum"}
    with pytest.raises(
        ConfigError, match=r"^config\.yaml:1: format: this version reads 3, found 4; use the nmt that wrote it$"
    ):
        parse_config("format: 4\n", "config.yaml")
    with pytest.raises(ConfigError, match=r"^config\.yaml:2: train.optimizer.betas: unknown key with name: sgd"):
        parse_config("format: 2\ntrain: {optimizer: {name: sgd, betas: [0.9, 0.9]}}\n", "config.yaml")


def test_sections_of_different_kinds_differ_in_what_both_have() -> None:
    other = load_config(Config(), ["train.optimizer={name: sgd, learning_rate: 0.5, momentum: 0.9}"])
    assert differing_keys(Config(), other) == [
        "train.optimizer.name ('adam' there, 'sgd' here)",
        "train.optimizer.learning_rate (0.001 there, 0.5 here)",
    ]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("null", {"name": "none"}),
        ("{}", {"name": "none"}),
        ("{name: none}", {"name": "none"}),
        ("{name: simcut}", {"name": "simcut", "weight": 3.0, "share": 0.05, "stop_gradient": False}),
        ("{name: simcut, weight: 1, share: 0}", {"name": "simcut", "weight": 1, "share": 0, "stop_gradient": False}),
    ],
)
def test_how_a_consistency_term_is_chosen(value: str, expected: dict[str, object], tmp_path: Path) -> None:
    for config in (
        load(tmp_path, f"train: {{consistency: {value}}}"),
        load(tmp_path, "", f"train.consistency={value}"),
        load(tmp_path, "train: {consistency: null}", f"train.consistency={value}"),
    ):
        assert config.train.consistency.model_dump() == expected
        assert parse_config(dump_config(config), "config.yaml") == config


def test_a_child_turns_off_the_consistency_of_its_parent(tmp_path: Path) -> None:
    (tmp_path / "parent.yaml").write_text("train: {consistency: {name: simcut, share: 0.1}}", encoding="utf-8")
    for value in ("null", "{name: none}"):
        assert load(tmp_path, f"extends: parent.yaml\ntrain: {{consistency: {value}}}").train.consistency.name == "none"
    assert load(tmp_path, "extends: parent.yaml").train.consistency == SimCutSection(share=0.1)


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("{name: simcut, share: 1.0}", "train.consistency.share: should be less than 1, found 1.0"),
        ("{name: simcut, share: -0.1}", "train.consistency.share: should be greater than or equal to 0, found -0.1"),
        ("{name: simcut, weight: -1}", "train.consistency.weight: should be greater than or equal to 0, found -1"),
        ("{name: simcut, weight: 1e9}", "train.consistency.weight: should be less than or equal to 1000"),
        ("{name: simcut, weight: three}", "train.consistency.weight: should be a valid number, found 'three'"),
        ("{name: simcutt}", "train.consistency.name: should be 'none' or 'simcut', found 'simcutt'; did you mean sim"),
        ("{name: r_drop}", "train.consistency.name: should be 'none' or 'simcut', found 'r_drop'"),
        ("{share: 0.1}", "train.consistency.share: unknown key with name: none, only with simcut"),
        ("simcut", "train.consistency: should be a section with keys, found 'simcut'; did you mean train.consistency."),
        ("3", "train.consistency: should be a section with keys, found 3"),
    ],
)
def test_a_wrong_value_of_consistency_is_one_clear_line(value: str, line: str, tmp_path: Path) -> None:
    (found,) = refused(tmp_path, "", f"train.consistency={value}")
    assert found.startswith(f"`overrides` {line}")


@pytest.mark.parametrize(
    "forcing",
    ["{ratio: 0.9}", "{schedule: linear, updates: 9}", "{schedule: inverse_sigmoid, updates: 9, minimum: 0.5}"],
)
def test_consistency_compares_readings_of_the_reference(forcing: str, tmp_path: Path) -> None:
    text = f"train:\n  teacher_forcing: {forcing}\n  consistency: {{name: simcut}}\n"
    (found,) = refused(tmp_path, text)
    assert found == (
        "mine.yaml:3: train.consistency.name: simcut compares two readings of the same words, but the decoder also "
        "reads its own; set train.teacher_forcing.ratio: 1, or none here"
    )
    assert load(tmp_path, text, "train.consistency=null").train.consistency.name == "none"
    assert load(tmp_path, text, "train.teacher_forcing={schedule: constant, ratio: 1}").train.consistency.share == 0.05


def test_configs_stored_before_there_was_consistency_are_read(tmp_path: Path) -> None:
    values = Config().model_dump(mode="json", exclude={"parent"})
    del values["train"]["consistency"]
    values["train"]["optimizer"]["momentum"] = 0.0  # of another kind, as older forms had it
    text = yaml.safe_dump(values)
    assert parse_config(text, "config.yaml") == Config()
    assert load(tmp_path, text).train == Config().train


def test_every_family_answers_what_models_ask() -> None:
    for name, family in (("encoder", EncoderFamily), ("decoder", DecoderFamily)):
        _, kinds = kinds_of(ModelSection.model_fields[name])
        assert len(kinds) >= 2
        for kind in kinds:
            assert isinstance(kind(), family), kind
