"""What keeps a model from being exported, before it is trained."""

from pathlib import Path

import pytest
from conftest import Cli, Project, errors

import nmt
from nmt.config import Config, load_config
from nmt.exporting.formats import find_format
from nmt.system.files import shipped

READS = ("model.encoder={kind: self_attention, hidden_size: 32, num_layers: 1}", "model.attention.score=general")
TRANSFORMER = (*READS, "model.decoder={kind: transformer, hidden_size: 32, num_layers: 1}")
AVERAGE = ("decode.length_norm=average", "decode.coverage_penalty=0", "text.max_length=50", "decode.max_length=60")
FITS = (*TRANSFORMER, *AVERAGE, "model.output_norm=null")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ([], []),
        (["decode.length_norm=wu", "decode.length_penalty=0"], []),
        (["model.tying=target", "model.embedding_size=16"], []),
        (["model.tying=all", "text.vocabulary.joint=true", "text.subword.joint=true"], []),
        (["model.encoder.norm=post", "model.decoder.activation=gelu", "model.decoder.hidden_size=64"], []),
        (["model.encoder.learned_positions=51", "model.decoder.learned_positions=60"], []),
        (["model.encoder={kind: recurrent}"], [("model.encoder.kind", "set self_attention")]),
        (["model.decoder.kind=ssru"], [("model.decoder.kind", "set transformer")]),
        (
            ["model.decoder={kind: recurrent, initial_state: zeros}", "model.output_norm=5"],
            [("model.decoder.kind", "set transformer"), ("model.output_norm", "set null")],
        ),
        (["model.encoder.learned_positions=50"], [("model.encoder.learned_positions", "set null, or 51 or more")]),
        (["model.decoder.learned_positions=59"], [("model.decoder.learned_positions", "set null, or 60 or more")]),
        (["decode.length_norm=wu", "decode.length_penalty=0.5"], [("decode.length_norm", "set average")]),
        (
            ["decode.coverage_penalty=0.1", "decode.min_length_ratio=0.5"],
            [("decode.coverage_penalty", "set 0"), ("decode.min_length_ratio", "set 0, or use decode.min_length")],
        ),
    ],
)
def test_what_ctranslate2_cannot_hold(settings: list[str], expected: list[tuple[str, str]]) -> None:
    config = load_config(Config(), [*FITS, *settings])
    assert [(key, text.split("; ")[-1]) for key, text in find_format("ctranslate2").find_obstacles(config)] == expected


def test_what_to_put_removes_every_obstacle() -> None:
    config = load_config(Config(), ["model.output_norm=5", "decode.coverage_penalty=1"])
    remedies = {key: text.rpartition("; set ")[2] for key, text in find_format("ctranslate2").find_obstacles(config)}
    assert len(remedies) == 5
    mended = load_config(config, [f"{key}={value}" for key, value in remedies.items()])
    assert list(find_format("ctranslate2").find_obstacles(mended)) == []


def test_obstacles_come_first_and_need_no_data(project: Project, cli: Cli, tmp_path: Path) -> None:
    checked = cli("check", "--config", project.config, "--for", "ctranslate2", "--data", tmp_path / "none")
    assert checked.code == 1
    assert checked.out.splitlines() == [
        "PROBLEM model.encoder.kind: recurrent does not run in CTranslate2; set self_attention",
        "PROBLEM model.decoder.kind: recurrent does not run in CTranslate2; set transformer",
        "PROBLEM decode.length_norm: CTranslate2 does not divide scores by wu; set average",
        "problems: model.encoder.kind, model.decoder.kind, decode.length_norm",
    ]
    assert errors(checked.err) == []


def test_a_model_that_fits_is_said_to(project: Project) -> None:
    found = nmt.check(project.config, overrides=FITS[:-1], export_format="ctranslate2")
    first = next(iter(found))
    assert (first.name, first.ok) == ("export to ctranslate2", True)


def test_an_unknown_format_is_one_line(project: Project, cli: Cli) -> None:
    checked = cli("check", "--config", project.config, "--for", "ctranslate")
    known = "known: ctranslate2, onnx, argos, hub, html; did you mean ctranslate2?"
    assert (checked.code, checked.out) == (1, "")
    assert errors(checked.err) == [f"nmt: error: ctranslate: no such export format; {known}"]


def test_shipped_transformers_can_be_exported() -> None:
    configs = [load_config(path) for path in shipped("configs").glob("*_transformer.yaml")]
    assert configs
    assert [obstacle for config in configs for obstacle in find_format("ctranslate2").find_obstacles(config)] == []
