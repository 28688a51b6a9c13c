from pathlib import Path
from typing import Any

import pytest
import yaml
from config_keys import load, refused, write

from nmt.config import (
    Config,
    DecodeSection,
    choose_by_amount,
    choose_split,
    differing_keys,
    dump_config,
    load_config,
    parse_config,
    read_config,
    resolve_auto,
    with_search_options,
)
from nmt.system.errors import ConfigError, printable
from nmt.system.files import shipped

SHIPPED = sorted(path.stem for path in shipped("configs").glob("*.yaml"))
TOKENS = "'spacy', 'subword' or 'whitespace'"
OPTIMIZERS = "'adam', 'adamw', 'sgd', 'rmsprop', 'radam', 'nadam', 'adadelta' or 'muon'"

USER_SCORES = """\
from nmt.layers.attention.score import Score


class Weighted(Score):
    def __init__(self, query_size: int, key_size: int, *, factor: float, depth: int = 1, even: bool = False) -> None:
        super().__init__()

    def forward(self, query, keys):
        return query @ keys.transpose(1, 2)


class NoScore:
    pass
"""


def only_problem(tmp_path: Path, text: str, *overrides: str) -> str:
    [problem] = refused(tmp_path, text, *overrides)
    return problem


def value_at(config: Config, path: str) -> Any:
    found: Any = config
    for key in path.split("."):
        found = getattr(found, key)
    return found


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_configs_load_by_name_and_by_path(name: str) -> None:
    config = load_config(name)
    assert config.name == name
    assert config == load_config(str(shipped(f"configs/{name}.yaml")))
    resolved = resolve_auto(config, {**choose_split(20_000), **choose_by_amount(16_000)})
    complete = "classroom", "classroom_transformer", "sample", "tatoeba", "tatoeba_public", "tatoeba_transformer"
    assert (resolved == config) == (name in complete or name.startswith("tutorial_"))
    dumped = dump_config(resolved)
    assert parse_config(dumped, "dump.yaml") == resolved
    assert yaml.safe_load(dumped).keys() == {"format", *Config.model_fields}


def test_an_empty_file_is_the_defaults_under_its_own_name(tmp_path: Path) -> None:
    config = load(tmp_path, "")
    assert config == Config(name="mine")
    assert (config.data_directory, config.run_directory) == (Path("data/prepared/mine"), Path("runs/mine"))
    assert load(tmp_path, "data: {directory: elsewhere}").data_directory == Path("elsewhere")


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    assert load(tmp_path, "\ufefftrain: {epochs: 3}").train.epochs == 3


def test_extends_merges_sections_and_replaces_lists(tmp_path: Path) -> None:
    old = "name: parent\ndata: {source: [a, b], columns: [2, 1]}\ntrain: {epochs: 7, batch: {size: 8, unit: tokens}}\n"
    young = "extends: ../parents/middle.yaml\ndata: {source: [c]}\ntrain: {batch: {size: 16}}\n"
    write(tmp_path / "parents/old.yaml", old)
    write(tmp_path / "parents/middle.yaml", "extends: old.yaml\ntrain: {epochs: 9}\n")
    config = load_config(write(tmp_path / "children/young.yaml", young))
    assert config.name == "young"
    assert config.data.source == ("c",)
    assert config.data.columns == (2, 1)
    assert (config.train.epochs, config.train.batch.size, config.train.batch.unit) == (9, 16, "tokens")


def test_a_shipped_config_is_extended_by_name_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config, sample = load(tmp_path, "extends: sample\ntrain: {epochs: 2}\n"), load_config("sample")
    assert (config.train.epochs, config.name) == (2, "mine")
    assert (config.data, config.text, config.model) == (sample.data, sample.text, sample.model)


@pytest.mark.parametrize(
    ("files", "chain"),
    [
        ({"mine": "mine"}, "mine.yaml -> mine.yaml"),
        ({"mine": "b", "b": "c", "c": "b"}, "mine.yaml -> b.yaml -> c.yaml -> b.yaml"),
    ],
)
def test_a_config_may_not_extend_itself(tmp_path: Path, files: dict[str, str], chain: str) -> None:
    for name, parent in files.items():
        write(tmp_path / f"{name}.yaml", f"extends: {parent}.yaml\n")
    with pytest.raises(ConfigError, match=f"extends itself through {chain}$"):
        load_config(str(tmp_path / "mine.yaml"))


def test_a_mistake_in_a_parent_is_shown_in_the_parent(tmp_path: Path) -> None:
    write(tmp_path / "parent.yaml", "data: {}\ntrain:\n  epohcs: 3\n")
    assert only_problem(tmp_path, "extends: parent.yaml\ntrain:\n  seed: 3\n") == (
        "parent.yaml:3: train.epohcs: unknown key; did you mean epochs?"
    )


@pytest.mark.parametrize(
    ("override", "path", "expected"),
    [
        ("train.epochs=3", "train.epochs", 3),
        ("train.optimizer.learning_rate=3e-3", "train.optimizer.learning_rate", 0.003),
        ("train.optimizer.learning_rate=1", "train.optimizer.learning_rate", 1.0),
        ("train.optimizer.clip_norm=null", "train.optimizer.clip_norm", None),
        ("data.source=[a.en, a.de]", "data.source", ("a.en", "a.de")),
        ("data.source=dir/a=b.tsv", "data.source", ("dir/a=b.tsv",)),
        ("data.columns=[2, 1]", "data.columns", (2, 1)),
        ("data.tgt_language=no", "data.tgt_language", "no"),
        ("text.lowercase=true", "text.lowercase", True),
        ("name=2018-05-13", "name", "2018-05-13"),
        ("train.batch={size: 5, unit: tokens}", "train.batch.unit", "tokens"),
        (" train.seed = 4", "train.seed", 4),
    ],
)
def test_overrides_are_parsed_as_yaml(tmp_path: Path, override: str, path: str, expected: object) -> None:
    found = value_at(load(tmp_path, "", override), path)
    assert found == expected
    assert type(found) is type(expected)


def test_later_overrides_win_and_leave_their_neighbours(tmp_path: Path) -> None:
    config = load(tmp_path, "train: {seed: 5, epochs: 6}", "train.seed=7", "train.batch.size=3", "train.seed=8")
    assert (config.train.seed, config.train.epochs, config.train.batch.size) == (8, 6, 3)


def test_all_wrong_overrides_are_named_at_once(tmp_path: Path) -> None:
    unread = ["train.seed", "text.vocabulary.joint={"]
    wrong = ["train.epohcs=3", "model.dropout=7"]
    lines = refused(tmp_path, "train: {epochs: 0}\n", *wrong)
    assert "mine.yaml:1: train.epochs: should be greater than or equal to 1, found 0" in lines
    places = sorted(line.partition(": ")[0] for line in lines)
    assert places[:2] == ["`overrides` model.dropout", "`overrides` train.epohcs"]
    assert len(lines) == 3
    seed, joint = refused(tmp_path, "", *unread, *wrong)
    assert seed == "`overrides` train.seed: expected section.key=value"
    assert joint.startswith("`overrides`:1:")


def test_all_wrong_search_options_are_named_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        with_search_options(Config(), {}, ["decode.beam_size=0", "decode.x=1"])
    assert [line.partition(": ")[0] for line in str(caught.value).splitlines()] == [
        "`overrides` decode.beam_size",
        "`overrides` decode.x",
    ]
    with pytest.raises(
        ConfigError, match=r"^train\.epochs: cannot be .*\nname: cannot be changed after training; only"
    ):
        with_search_options(Config(), {}, ["train={epochs: 3}", "decode.beam_size=3", "name=x"])
    with pytest.raises(ConfigError, match=r"^beam_size: .*; did you mean decode\.beam_size\?$"):
        with_search_options(Config(), {}, ["beam_size=3"])


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (r'"\ud800": 1', r"mine.yaml:1: \ud800"),
        (r'data: {source: "\ud800"}', "mine.yaml:1: data.source"),
        (r'data: {"a\udfff": 1}', r"mine.yaml:1: data.a\udfff"),
        ('data:\n  source: [a, "\\ud83d\\ude00"]', "mine.yaml:2: data.source.1"),
        (r'extends: "\udc00"', "mine.yaml:1: extends"),
        (r'model: {attention: {options: {"\ud800": 1}}}', r"mine.yaml:1: model.attention.options.\ud800"),
    ],
)
def test_surrogates_are_not_text(tmp_path: Path, text: str, place: str) -> None:
    assert only_problem(tmp_path, text).startswith(f"{place}: is not valid Unicode text")
    path = tmp_path / "received.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_config(path)
    assert str(caught.value).startswith(f"{path.parent}/{place.replace('mine', 'received')}: is not valid Unicode text")


@pytest.mark.parametrize("override", ["\udcff=1", "data.\ud800=1"])
def test_surrogates_are_not_a_key_to_override(tmp_path: Path, override: str) -> None:
    key = override.removesuffix("=1")
    assert only_problem(tmp_path, "", override).startswith(f"`overrides` {printable(key)}: is not valid Unicode text")


def test_a_config_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes("data: {source: ä.tsv}\n".encode("latin-1"))
    with pytest.raises(ConfigError, match=r"not UTF-8 text \(byte 15\)"):
        load_config(str(path))


def test_all_unknown_keys_are_reported_at_once(tmp_path: Path) -> None:
    text = """\
data:
  sorce: a.tsv
train:
  epochs: 3
  batch:
    sise: 2
  optimizer: {learning_rat: 0.1}
modell: {}
decode: {zzz: 1}
"""
    assert sorted(refused(tmp_path, text)) == [
        "mine.yaml:2: data.sorce: unknown key; did you mean source?",
        "mine.yaml:6: train.batch.sise: unknown key; did you mean size?",
        "mine.yaml:7: train.optimizer.learning_rat: unknown key; did you mean learning_rate?",
        "mine.yaml:8: modell: unknown key; did you mean model?",
        "mine.yaml:9: decode.zzz: unknown key; known keys: " + ", ".join(DecodeSection.model_fields),
    ]


WRONG = [
    ("extends: [a, b]", "mine.yaml:1: extends: expected one path or name, found ['a', 'b']"),
    (
        "\nextends: samle",
        "mine.yaml:2: extends: samle: no such config file; "
        f"shipped configs: {', '.join(SHIPPED)}; did you mean sample?",
    ),
    (
        "data: {src_language: english}",
        "mine.yaml:1: data.src_language: must be a code, such as en for English, found 'english'",
    ),
    ("data: {columns: 3}", "mine.yaml:1: data.columns: should be a list, found 3"),
    *(
        (f"\ntrain:\n  {key}: {given}", f"mine.yaml:3: train.{key}: should be a valid integer, found {found}")
        for key, given, found in (
            *(("epochs", "true", "True"), ("seed", "false", "False"), ("epochs", "many", "'many'")),
            *(("epochs", "'3'", "'3'"), ("epochs", "2.5", "2.5"), ("epochs", "null", "None")),
        )
    ),
    ("train: 3", "mine.yaml:1: train: should be a section with keys, found 3"),
    ("train:", "mine.yaml:1: train: should be a section with keys, found None"),
    ("model: {dropout: 1.0}", "mine.yaml:1: model.dropout: should be less than 1, found 1.0"),
    ("text: {tokenizer: spcy}", f"mine.yaml:1: text.tokenizer: should be {TOKENS}, found 'spcy'; did you mean spacy?"),
    ("data:\n  columns:\n   - 1\n   - 0", "mine.yaml:4: data.columns.1: should be greater than or equal to 1, found 0"),
    ("train:\n  epochs: 1\n  seed: 2\n  epochs: 3", "mine.yaml:4: train.epochs: occurs twice; remove one"),
    ("train: {}\ndata: {}\ntrain: {}", "mine.yaml:3: train: occurs twice; remove one"),
    ("model: {attention: {options: {a: 1, a: 1}}}", "mine.yaml:1: model.attention.options.a: occurs twice; remove one"),
    ("train:\n  epochs: [1\nseed: 2", "mine.yaml:3:5: not valid YAML: ..."),
    ("train: *nowhere", "mine.yaml:1:8: not valid YAML: ..."),
    ("train:\n\tseed: 2", "mine.yaml:2:1: not valid YAML: ..."),
    ("train: {}\n# \x00", "mine.yaml: not valid YAML: ..."),
    *((text, "mine.yaml: expected keys and values, found ...") for text in ("- a\n- b", "3", "some words")),
]
WRONG_OVERRIDES = [
    ("train.epochs", "train.epochs: expected section.key=value"),
    ("=3", "=3: expected section.key=value"),
    ("train.epohcs=3", "train.epohcs: unknown key; did you mean epochs?"),
    ("epochs=3", "epochs: unknown key; did you mean train.epochs?"),
    ("attention.score=luong", "attention: unknown key; did you mean model.attention.score?"),
    ("train.dropout=0.3", "train.dropout: unknown key; did you mean model.dropout or model.attention.dropout?"),
    ("train.epochs=0", "train.epochs: should be greater than or equal to 1, found 0"),
    ("train=3", "train: should be a section with keys, found 3"),
    *(
        (f"{section}={value}", f"{section}: should be a section with keys, found '{value}'; did you mean {meant}?")
        for section, value, meant in (
            ("model.attention", "dot", "model.attention.score=dot"),
            ("model.attention", "none", "model.attention.score=none or model.attention.past.name=none"),
            ("model.decoder", "luong", "model.decoder.order=luong"),
            ("train.optimizer", "sgd", "train.optimizer.name=sgd"),
            ("text", "subword", "text.tokenizer=subword"),
            ("data", "pairs.tsv", "data.source=pairs.tsv"),
        )
    ),
    ("train.epochs=1e3", "train.epochs: should be a valid integer, found 1000.0"),
    ("train.optimizer.name=adm", f"train.optimizer.name: should be {OPTIMIZERS}, found 'adm'; did you mean adam?"),
    ("text.tokenizer=Subwords", f"text.tokenizer: should be {TOKENS}, found 'Subwords'; did you mean subword?"),
    ("model.dropout='0.1'", "model.dropout: should be a valid number, found '0.1'"),
    ("model.dropout=.inf", "model.dropout: should be a valid number, found '.inf'"),
    ("train.device=gpu", r"train.device: should match pattern '^(auto|cpu|mps|cuda(:\d+)?)$', found 'gpu'"),
    ("data.src_language=''", "data.src_language: should have at least 1 character, found ''"),
    *((f"name={name}", r"name: should match pattern '^[\w-][\w.-]*$', found ...") for name in ("a b", "..", "a/b")),
    *(("data.source=3", "data.source: ..."), ("model.dropout=[1]", "model.dropout: should be a valid number, ...")),
]


@pytest.mark.parametrize(
    ("text", "overrides", "message"),
    [
        *((text, (), message) for text, message in WRONG),
        # What an override replaces is not blamed on the file.
        *(
            ("data: {columns: [1, 2]}\ntrain: {epochs: 3}", (given,), f"`overrides` {said}")
            for given, said in WRONG_OVERRIDES
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place(
    tmp_path: Path, text: str, overrides: tuple[str, ...], message: str
) -> None:
    """A message that ends in dots goes on."""
    found, start = only_problem(tmp_path, f"{text}\n", *overrides), message.removesuffix("...")
    assert found.startswith(start) if start != message else found == message


def test_wrong_values_and_unknown_keys_come_together(tmp_path: Path) -> None:
    assert len(refused(tmp_path, "train: {epochs: -1, sead: 2}\ndata: 7\n", "model.dropout=2")) == 4


BACKWARD = "model: {encoder: {bidirectional: false}, decoder: {initial_state: backward}}"
COPY = "hidden_size: 128, initial_state: copy"
INVERSE = "train: {schedule: {name: inverse_sqrt}}"


ATTENTION = "model: {{attention: {{score: {}}}}}"
FALLING = "linear, updates: 5, ratio: 0.3, minimum: 0.5"
FORCING = "train: {{teacher_forcing: {{schedule: {}}}}}"
PLATEAU = "train: {{schedule: {{name: plateau, patience: {}}}, validation: {{patience: {}}}}}"


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("model: {decoder: {order: bahdanau, input_feeding: true}}", "model.decoder.input_feeding", "Luong"),
        ("model: {tying: all}", "model.tying", "all needs text.vocabulary.joint: true"),
        ("model: {decoder: {readout: state}}", "model.decoder.readout", "state belongs to Bahdanau order; Luong"),
        (
            "model: {tying: target, embedding_size: 64, decoder: {order: bahdanau, hidden_size: 128, readout: state}}",
            "model.tying",
            "target needs equal sizes, found an embedding of 64, but the output layer reads 128 units; set none, or "
            "model.decoder.readout: plain",
        ),
        *(
            (
                f"model: {{encoder: {{hidden_size: 64{encoder}}}, decoder: {{{COPY}{decoder}}}}}",
                "model.decoder.initial_state",
                f"copy needs an encoder of {layers}, states of 128, and no layer_norm: cell; set both so, or set final",
            )
            for encoder, decoder, layers in (
                (", bidirectional: false", "", "1 lstm layer"),
                ("", ", num_layers: 2, cell: gru", "2 gru layers"),
                (", layer_norm: cell", "", "1 lstm layer"),
            )
        ),
        ("text: {vocabulary: {joint: true}}", "text.vocabulary.joint", "needs text.subword.joint: true"),
        (INVERSE, "train.schedule.warmup", "inverse_sqrt needs a number of updates"),
        (BACKWARD, "model.decoder.initial_state", "backward needs model.encoder.bidirectional: true"),
        (FORCING.format("linear"), "train.teacher_forcing.updates", "linear needs a"),
        (FORCING.format(FALLING), "train.teacher_forcing.minimum", "is above the ratio 0.3"),
        (ATTENTION.format("genral"), "model.attention.score", "; did you mean general?"),
        (ATTENTION.format("non"), "model.attention.score", "; did you mean none?"),
        *(
            (ATTENTION.format(f"{score}, options: {{{option}: 8}}"), f"model.attention.options.{option}", message)
            for score, option, message in (
                ("additive", "sise", "unknown option; did you mean size?"),
                ("none", "size", "unknown option; there are no options"),
            )
        ),
        ("data: {cleaning: {min_length: 5, max_length: 4}}", "data.cleaning.min_length", "is above max_length"),
        ("data: {source: [a, b, c, d, e]}", "data.source", "must be 1, 2, 3, 4 or 6 files, found 5"),
        *(
            (
                f"model: {{{part}: {{{name}: {value}{', order: bahdanau' * (value == 'all')}}}}}",
                f"model.{part}.{name}",
                f"{value} needs model.{part}.num_layers: 2 or more",
            )
            for part, name, value in (
                *(("encoder", "residual", "true"), ("encoder", "layer_norm", "layers")),
                *(("decoder", "residual", "true"), ("decoder", "layer_norm", "layers")),
                *(("decoder", "attend_from", "first"), ("decoder", "context_to", "all")),
            )
        ),
        (
            "model: {decoder: {num_layers: 2, context_to: all}}",
            "model.decoder.context_to",
            "Luong order feeds nothing back without model.decoder.input_feeding: true; set that, or order: bahdanau",
        ),
        (
            "model: {decoder: {readout: maxout}}",
            "model.decoder.readout",
            "maxout belongs to Bahdanau order; Luong order computes an attentional vector",
        ),
        # Settings without effect.
        (
            PLATEAU.format(4, 5),
            "train.schedule.patience",
            "4 never lowers the learning rate, as train.validation.patience: 5 stops the run first; lower this, or set "
            "6 or more there",
        ),
        (
            "train: {schedule: {name: plateau}}\ndata: {source: a.tsv, split: {valid_size: 0}}",
            "train.schedule.name",
            "plateau needs validation, but data.split.valid_size is 0",
        ),
        (
            "data: {source: a.tsv, test: t.tsv, split: {test_size: 1000}}",
            "data.split.test_size",
            "1000 has no effect with data.test, whose pairs are the test split; set 0, or leave data.test out",
        ),
        ("text: {tokenizer: spacy, tokenized: true}", "text.tokenized", "has no effect with text.tokenizer: spacy"),
        (
            "text: {tokenizer: spacy, vocabulary: {min_count: 0}}",
            "text.vocabulary.min_count",
            "has no effect with text.tokenizer: spacy, only with subword",
        ),
    ],
)
def test_combinations_that_cannot_work_are_refused(tmp_path: Path, text: str, place: str, message: str) -> None:
    found = only_problem(tmp_path, f"{text}\n")
    assert f"{place}: " in found
    assert message in found
    assert found.startswith(("mine.yaml:1: ", f"{place}: "))


@pytest.mark.parametrize(
    "text",
    [
        "model: {encoder: {hidden_size: 4}, decoder: {hidden_size: 8}, attention: {score: dot}}",
        "model: {decoder: {order: luong, input_feeding: true}}",
        "model: {tying: all}\ntext: {subword: {joint: true}, vocabulary: {joint: true}}",
        "text: {tokenizer: whitespace, vocabulary: {joint: true}}",
        "train: {schedule: {name: inverse_sqrt, warmup: 10}}",
        "train: {teacher_forcing: {schedule: linear, updates: 5}}",
        "model: {decoder: {initial_state: backward}}",
        f"model: {{encoder: {{hidden_size: 64, num_layers: 2}}, decoder: {{{COPY}, num_layers: 2}}}}",
        "model: {encoder: {cell: rnn, layer_norm: cell}, decoder: {cell: rnn, order: bahdanau, readout: linear}}",
        "model: {tying: target, encoder: {hidden_size: 64}, decoder: {hidden_size: 128, readout: linear}}",
        "model: {tying: target, embedding_size: 8, decoder: {hidden_size: 8, order: bahdanau, readout: state}}",
        "model: {encoder: {num_layers: 2, residual: true, layer_norm: layers}}",
        "model: {decoder: {num_layers: 2, residual: true, layer_norm: layers, attend_from: first}}",
        "model: {decoder: {num_layers: 2, input_feeding: true, context_to: all}}",
        "model: {decoder: {num_layers: 2, order: bahdanau, attend_from: first, context_to: all, readout: maxout}}",
        *map(ATTENTION.format, ("none", "concat, options: {size: 8}", "additive, options: {size: null}")),
        *(PLATEAU.format(3, 5), PLATEAU.format(9, "null")),
        "train: {schedule: {name: plateau}}\ndata: {source: [a, b, c, d], split: {valid_size: 0}}",
        "text: {vocabulary: {min_count: 0}}",
        "data: {source: a.tsv, test: t.tsv, split: {valid_size: 9, test_size: 0}}",
        "data: {source: a.tsv, test: t.tsv, split: {test_size: auto}}",
        "extends: tatoeba\ndata: {test: t.tsv}",  # the size is not the user's
        "model: {tying: target, embedding_size: 8, decoder: {hidden_size: 12, order: bahdanau}}",
    ],
)
def test_combinations_that_work_are_accepted(tmp_path: Path, text: str) -> None:
    load(tmp_path, f"{text}\n")


def test_a_size_of_the_test_split_that_a_program_wrote_goes_with_a_test_set(tmp_path: Path) -> None:
    made = load_config("tatoeba", {"data.test": "t.tsv"})
    assert load_config(made) == made
    path = tmp_path / "stored.yaml"
    path.write_text(dump_config(made), encoding="utf-8")
    assert load_config(path) == made
    with pytest.raises(ConfigError, match=r"`overrides` data\.split\.test_size: 7 has no effect with data\.test"):
        load_config(path, {"data.split.test_size": 7})


def test_problems_of_combination_come_together(tmp_path: Path) -> None:
    assert len(refused(tmp_path, f"{BACKWARD}\ndata: {{source: [a, b, c, d, e]}}\n")) == 2


def test_combinations_come_with_wrong_values_elsewhere(tmp_path: Path) -> None:
    text = """\
data: {source: [a, b, c, d, e]}
train:
  epochs: ten
  schedule: {name: warmup}
  teacher_forcing: {schedule: linear, ratio: 0.2, minimum: 0.5, updates: 5}
model:
  encoder: {kind: conv, num_heads: 4}
  decoder: {residual: true}
"""
    assert refused(tmp_path, text) == [
        "mine.yaml:7: model.encoder.kind: should be 'recurrent' or 'self_attention', found 'conv'",
        "mine.yaml:3: train.epochs: should be a valid integer, found 'ten'",
        "mine.yaml:4: train.schedule.name: should be 'constant', 'plateau', 'inverse_sqrt' or 'cosine', found 'warmup'",
        "mine.yaml:1: data.source: must be 1, 2, 3, 4 or 6 files, found 5",
        "mine.yaml:8: model.decoder.residual: true needs model.decoder.num_layers: 2 or more",
        "mine.yaml:5: train.teacher_forcing.minimum: is above the ratio 0.2",
    ]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("text: {vocabulary: {joint: true}, subword: {joint: 1}}", "text.subword.joint"),
        ("text: {vocabulary: {joint: true}, subwrd: {joint: true}}", "text.subwrd"),
        ("model: {tying: all}\ntext: {vocabulary: {joint: 1}}", "text.vocabulary.joint"),
        ("model: {attention: {score: dot}, encoder: {hidden_size: x}}", "model.encoder.hidden_size"),
        ("model: {decoder: {kind: transformr}, attention: {score: dotted}}", "model.decoder.kind"),
        ("train: {teacher_forcing: {schedule: linear, ratio: 0.2, minimum: 0.5}}", "train.teacher_forcing.updates"),
        ("train: {schedule: {name: plateau, patience: 8}, validation: {patience: x}}", "train.validation.patience"),
    ],
)
def test_nothing_is_said_of_combinations_with_a_wrong_value(tmp_path: Path, text: str, key: str) -> None:
    assert f": {key}: " in only_problem(tmp_path, f"{text}\n")


@pytest.mark.parametrize("value", ["true", "'3'", "3.0", "2.5", "[3]", "wide"])
def test_attention_options_of_the_wrong_type_are_refused(tmp_path: Path, value: str) -> None:
    found = only_problem(tmp_path, "", "model.attention.score=additive", f"model.attention.options.size={value}")
    assert "model.attention.options.size: should be a valid integer" in found
    assert f"found {yaml.safe_load(value)!r}" in found


@pytest.fixture
def user_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "scores_of_a_user.py", USER_SCORES)
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("user_scores")
@pytest.mark.parametrize("options", ["{factor: 2.5}", "{factor: 2}", "{factor: 1e-3, depth: 3, even: true}"])
def test_a_custom_score_is_found(tmp_path: Path, options: str) -> None:
    config = load(tmp_path, f"model: {{attention: {{score: scores_of_a_user.Weighted, options: {options}}}}}\n")
    assert config.model.attention.score == "scores_of_a_user.Weighted"


@pytest.mark.usefixtures("user_scores")
def test_options_of_a_custom_score_are_checked(tmp_path: Path) -> None:
    text = "model:\n  attention:\n    score: scores_of_a_user.Weighted\n    options:\n      depht: 3\n      even: 7\n"
    [unknown, missing, mistyped] = sorted(refused(tmp_path, text))
    assert unknown == "mine.yaml:5: model.attention.options.depht: unknown option; did you mean depth?"
    assert missing == "mine.yaml:5: model.attention.options.factor: is required"
    assert mistyped.startswith("mine.yaml:6: model.attention.options.even: should be a valid boolean")
    assert mistyped.endswith(", found 7")


@pytest.mark.usefixtures("user_scores")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("scores_of_a_user.NoScore", "is not a subclass of nmt.Score"),
        ("scores_of_a_user.Missing", "cannot be imported (module 'scores_of_a_user' has no attribute 'Missing')"),
        ("nowhere_at_all.Score", "cannot be imported (No module named 'nowhere_at_all')"),
        (".Weighted", "cannot be imported"),
        ("..Weighted", "cannot be imported"),
        ("scores_of_a_user.", "cannot be imported"),
    ],
)
def test_a_dotted_path_that_is_not_a_score_is_reported(tmp_path: Path, name: str, message: str) -> None:
    found = only_problem(tmp_path, f"model: {{attention: {{score: {name}}}}}\n")
    assert found.startswith(f"mine.yaml:1: model.attention.score: {name} {message}")


DISTANCE = """
1 / 0  # the file is not run
class Distance(Score):
    pass
class Far(nmt.Score): ...
class Map: ...
"""


@pytest.mark.parametrize(
    ("score", "message"),
    [
        (
            "distance.py",
            "is a file, not a class; {} PYTHONPATH=. and set score=distance.Distance or score=distance.Far",
        ),
        ("my scores/near.py", "is a file, not a class; {} PYTHONPATH='my scores' and set score=near.CLASS"),
        ("nowhere.py", "is a file, not a class; {} PYTHONPATH=. and set score=nowhere.CLASS"),
        (
            "distance.Near",
            "cannot be imported (No module named 'distance'); {} PYTHONPATH=. and set score=distance.Distance or "
            "score=distance.Far",
        ),
    ],
)
def test_a_file_in_place_of_a_score_is_answered_with_its_classes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, score: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "distance.py", DISTANCE)
    (tmp_path / "my scores").mkdir()
    write(tmp_path / "my scores/near.py", "import math\n")
    found = only_problem(tmp_path, "", f"model.attention.score={score}")
    assert found == f"`overrides` model.attention.score: {score} {message.format('start the command with')}"


def test_a_run_can_be_named_after_its_learning_rate(tmp_path: Path) -> None:
    config = load_config(write(tmp_path / "1e-3.yaml", ""))
    assert config.name == "1e-3"
    assert parse_config(dump_config(config), "dump.yaml") == config


def test_a_damaged_dump_is_reported_with_its_place() -> None:
    with pytest.raises(ConfigError, match=r"^runs/a/config.yaml:2: train.epochs: "):
        parse_config("train:\n  epochs: 0\n", "runs/a/config.yaml")


def test_differing_keys_have_both_values(tmp_path: Path) -> None:
    first = load(tmp_path, "data: {src_language: en}\ntrain: {epochs: 3, optimizer: {clip_norm: null}}")
    second = load(tmp_path, "data: {src_language: fr}\ntrain: {epochs: 3, optimizer: {clip_norm: 2.0}}")
    assert differing_keys(first, first) == []
    assert differing_keys(first, second) == [
        "data.src_language ('en' there, 'fr' here)",
        "train.optimizer.clip_norm (None there, 2.0 here)",
    ]
    assert differing_keys(first.train, second.train, "train.") == ["train.optimizer.clip_norm (None there, 2.0 here)"]


def test_a_config_never_changes(tmp_path: Path) -> None:
    config = load(tmp_path, "")
    with pytest.raises(ValueError, match="frozen"):
        config.train.epochs = 3  # type: ignore[misc]
