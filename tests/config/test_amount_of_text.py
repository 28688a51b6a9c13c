"""`auto`: what the amount of training text decides."""

import itertools
from pathlib import Path

import pytest
from conftest import Cli

from nmt.config import automatic_keys, choose_by_amount, choose_split, load_config, parse_config, resolve_auto, value_at
from nmt.config.reading import dump_config
from nmt.system.errors import ConfigError
from nmt.system.files import shipped

PIECES, DROPOUT, NORM, BATCH, EPOCHS = choose_by_amount(1)


def test_the_rule_passes_through_the_recipe_of_all_of_tatoeba() -> None:
    config = load_config("tatoeba")
    keys = [PIECES, DROPOUT, NORM, BATCH]
    assert {key: choose_by_amount(162_000)[key] for key in keys} == {key: value_at(config, key) for key in keys}


@pytest.mark.parametrize(
    ("pairs", "pieces", "dropout", "norm", "batch", "epochs"),
    [
        (3000, 1500, 0.5, 5.0, 32, 64),
        (20_000, 8000, 0.5, 5.0, 64, 20),
        (29_000, 8000, 0.4, None, 64, 20),
    ],
)
def test_the_rule_passes_through_what_was_measured(
    pairs: int, pieces: int, dropout: float, norm: float | None, batch: int, epochs: int
) -> None:
    chosen = {PIECES: pieces, DROPOUT: dropout, NORM: norm, BATCH: batch, EPOCHS: epochs}
    assert choose_by_amount(pairs) == chosen


@pytest.mark.parametrize(("pairs", "characters", "pieces"), [(914, 1837, 1837), (3000, 90, 1500), (10**6, 9000, 9000)])
def test_every_character_has_a_piece(pairs: int, characters: int, pieces: int) -> None:
    assert choose_by_amount(pairs, characters) == {**choose_by_amount(pairs), PIECES: pieces}


@pytest.mark.parametrize("name", ["tatoeba_small", "multi30k"])
def test_small_recipes_are_the_rule_and_their_data(name: str) -> None:
    config, base = load_config(name), load_config("base")
    assert automatic_keys(config)[-5:] == [PIECES, DROPOUT, NORM, BATCH, EPOCHS]
    assert (config.model, config.train) == (base.model, base.train)


def test_more_text_never_has_fewer_pieces_smaller_batches_or_more_dropout_and_every_amount_has_allowed_values() -> None:
    amounts = [1, 2, 30, 999, 1000, 9_999, 10_000, 24_999, 25_000, 99_999, 100_000, 10**7]
    rules = [choose_by_amount(pairs) for pairs in amounts]
    for fewer, more in itertools.pairwise(rules):
        assert fewer[PIECES] <= more[PIECES]
        assert fewer[BATCH] <= more[BATCH]
        assert fewer[DROPOUT] >= more[DROPOUT]
    base = load_config("base")
    for pairs, values in zip(amounts, rules, strict=True):
        assert values[EPOCHS] * pairs / values[BATCH] >= 5900 or values[EPOCHS] == 200  # updates
        config = resolve_auto(base, {**values, **choose_split(pairs)})
        assert parse_config(dump_config(config), "config.yaml") == config  # every value is allowed


def test_auto_is_replaced_where_it_stands_and_nowhere_else() -> None:
    config = load_config("tatoeba", ["model.dropout=auto", "train.epochs=auto"])
    assert automatic_keys(config) == [DROPOUT, EPOCHS]
    resolved = resolve_auto(config, choose_by_amount(3000))
    assert resolved == load_config("tatoeba", ["model.dropout=0.5", "train.epochs=64"])
    assert automatic_keys(resolve_auto(config, {DROPOUT: 0.1})) == [EPOCHS]


def test_a_tenth_of_a_small_corpus_is_for_validation_and_another_for_test() -> None:
    sizes = [choose_split(pairs)["data.split.valid_size"] for pairs in (9, 1000, 6000, 10_000, 500_000)]
    assert sizes == [0, 100, 600, 1000, 1000]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["model.dropout=automatic"], "model.dropout: should be a valid number, found 'automatic'"),
        (["model.embedding_dropout=auto"], "model.embedding_dropout: should be a valid number, found 'auto'"),
        (["train.batch={size: auto, unit: tokens}"], "train.batch.size: auto is a number of sentences; set"),
    ],
)
def test_what_cannot_be_auto_is_refused(settings: list[str], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        load_config("base", settings)
    (line,) = error.value.args
    assert line.startswith(f"`overrides` {message}")


def test_a_stored_config_has_numbers() -> None:
    text = dump_config(load_config("base", ["data.split={valid_size: 1, test_size: 1}"]))
    with pytest.raises(ConfigError) as error:
        parse_config(text, "here/config.yaml")
    assert str(error.value) == (
        f"here/config.yaml: {PIECES}, {DROPOUT}, {NORM}, {BATCH}, {EPOCHS}: auto, where a stored config has a value; "
        "it is damaged"
    )


def test_auto_survives_a_file_and_is_shown(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("extends: base\nmodel: {dropout: 0.25}\n")
    config = load_config(tmp_path / "mine.yaml")
    assert automatic_keys(config) == ["data.split.valid_size", "data.split.test_size", PIECES, NORM, BATCH, EPOCHS]
    assert load_config(config) == config


def test_text_with_fewer_pieces_than_auto_asks_for_is_prepared(tmp_path: Path, cli: Cli) -> None:
    """24 pairs have 386 pieces at most, and 500 were an error."""
    pairs = shipped("data/sample/deu.txt").read_text(encoding="utf-8").splitlines()[:30]
    source = tmp_path / "small.tsv"
    source.write_text("".join(f"{pair}\n" for pair in pairs), encoding="utf-8")
    settings = ["data.src_language=en", "data.tgt_language=de", "data.split.valid_size=3", "data.split.test_size=3"]
    settings += ["text.tokenizer=subword", f"{PIECES}=auto"]
    options = [word for setting in settings for word in ("--set", setting)]
    found = cli("preprocess", "base", "--source", source, "--output", tmp_path / "data", *options)
    assert found.code == 0, found.err
    assert "with 24 pairs text.subword.vocabulary_size 500" in found.err
    options[-1] = f"{PIECES}=500"
    refused = cli("preprocess", "base", "--source", source, "--output", tmp_path / "more", *options)
    assert "cannot learn 500 bpe pieces: the training text has at most 386" in refused.err
