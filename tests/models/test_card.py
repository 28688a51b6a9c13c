"""The model card says what the model is, and nothing in it is markup of others."""

import json
import zipfile
from pathlib import Path

import pytest
from conftest import Cli, Project

import nmt
from nmt.config import Config, load_config, read_config
from nmt.config.data_sections import ExtraSection
from nmt.corpus.licence import with_sources
from nmt.models.card import make_card
from nmt.models.storage import load_model, save_model

PAIRS = "a b\tB A\nc d e\tE D C\nb a\tA B\n" * 3
METADATA = {"nmt_version": "1.2", "torch_version": "2.0", "parameters": 1234567}


def test_a_trained_model_has_a_card(random_project: Project) -> None:
    card = (random_project.run / "best/README.md").read_text(encoding="utf-8")
    metadata = load_model(random_project.run / "best").metadata
    assert f"{metadata['parameters']:,}" in card
    assert f"- BLEU {metadata['scores']['bleu']:.2f} (`{metadata['signatures']['bleu']}`)" in card
    report = json.loads((random_project.data / "report.json").read_text(encoding="utf-8"))
    pairs = sum(report["references"]["train"])
    assert f"| trained on | {pairs} pairs of" in card
    assert "| licence of the data | not stated |" in card


def test_an_average_says_so_and_has_no_scores(random_project: Project, tmp_path: Path) -> None:
    models = [random_project.run / "best", random_project.run / "best"]
    nmt.average(models, output=tmp_path / "both")
    card = (tmp_path / "both/README.md").read_text(encoding="utf-8")
    assert "| training | the average of 2 models |" in card
    assert "Not measured." in card


def test_the_settings_are_described() -> None:
    settings = {
        "data": {"src_language": "de", "tgt_language": "en", "reverse": True, "cleaning": {"max_length": 70}},
        "text": {"lowercase": True},
        "model": {"encoder": {"num_layers": 2, "cell": "gru"}, "attention": {"score": "none"}},
    }
    card = make_card(Config.model_validate(settings), METADATA)
    assert card.startswith("# English to German\n")
    assert "2 layers of" in card
    assert "GRU units" in card
    assert "at most 70 words" in card
    assert "It reads and writes lower case." in card


@pytest.mark.parametrize(("given", "named"), [(1, 1), (2, 2), (3, 3), (4, 2), (6, 2)])
def test_only_files_of_the_training_split_are_named(given: int, named: int) -> None:
    files = ["train.en", "train.de", "valid.en", "valid.de", "test.en", "test.de"][:given]
    card = make_card(Config.model_validate({"data": {"source": files}}), {**METADATA, "data": {"pairs": 3000}})
    assert f"| trained on | 3,000 pairs of {', '.join(files[:named])} |" in card


def test_of_names_for_several_files_that_of_the_training_split_is_named() -> None:
    card = make_card(Config.model_validate({"data": {"source": ["a/train", "a/valid", "a/test"]}}), METADATA)
    assert "a/train |" in card
    assert "a/valid" not in card


def test_further_corpora_and_the_parent_are_named_and_the_licence_is_not_said_to_be_theirs() -> None:
    extra = {"web": {"source": "web.tsv", "weight": 0.5, "tag": "<web>"}, "own": {"source": ["own.en", "own.de"]}}
    data = {"source": "corpus.tsv", "licence": "CC0", "extra": extra}
    card = make_card(Config.model_validate({"data": data, "parent": {"run": "runs/base"}}), METADATA)
    corpora = r"corpus.tsv; web: web.tsv (weight 0.5, tag \<web\>); own: own.en, own.de (weight 1)"
    assert f"| trained on | {corpora} |" in card
    assert "| licence of the data | CC0 (only for corpus.tsv, not for web or own or the data of the parent) |" in card
    assert "| parent | training began with the weights of runs/base |" in card
    alone = make_card(Config.model_validate({"data": {**data, "extra": {}}}), METADATA)
    assert "| licence of the data | CC0 |" in alone
    assert "| parent |" not in alone


def test_no_path_of_a_further_corpus_is_kept(random_project: Project, tmp_path: Path) -> None:
    saved = load_model(random_project.run / "best")
    files = {"test": (f"{tmp_path}/test.tsv",), "extra": {"web": ExtraSection(source=(f"{tmp_path}/web.tsv",))}}
    config = saved.config.model_copy(update={"data": saved.config.data.model_copy(update=files)})
    save_model(tmp_path / "model", config, saved.model, saved.text, saved.metadata)
    for name in ("README.md", "config.yaml"):
        text = (tmp_path / "model" / name).read_text(encoding="utf-8")
        assert "web.tsv" in text
        assert str(tmp_path) not in text


def test_text_of_a_config_is_no_markup() -> None:
    settings = {"data": {"source": ["<b>x</b>.tsv"], "licence": "a | b\n# [c](d) \x1b[31m"}}
    card = make_card(Config.model_validate(settings), METADATA)
    assert r"| licence of the data | a \| b" in card
    assert "\x1b" not in card
    assert r"\<b\>x\</b\>.tsv" in card
    assert not [line for line in card.splitlines() if line.startswith("# [")]


def test_other_sources_do_not_inherit_the_licence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.tsv").write_text(PAIRS, encoding="utf-8")
    settings = ["data.split={valid_size: 1, test_size: 0}", "text.tokenizer=whitespace"]
    for extra, licence in (([], None), (["data.licence=mine"], "mine")):
        prepared = nmt.preprocess("sample", source="own.tsv", output=f"data-{licence}", overrides=[*settings, *extra])
        assert read_config(prepared.path / "config.yaml").data.licence == licence


ABOUT = "Check for newest version here:\n  http://www.manythings.org/anki/\nDate of this file:\n  2018-05-13\n"


@pytest.mark.parametrize(
    ("name", "about", "kept"),
    [
        ("deu-eng.zip", None, True),
        ("deu-eng-2018-05-13.zip", ABOUT, True),
        ("deu-eng-2018-05-13.zip", None, False),
        ("other.zip", "from www.example.org/anki/", False),
        ("own.tsv", None, False),
    ],
)
def test_the_licence_stays_with_the_source_of_the_config(
    name: str, about: str | None, kept: bool, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if name.endswith(".zip"):
        with zipfile.ZipFile(name, "w") as archive:
            archive.writestr("deu.txt", PAIRS)
            if about is not None:
                archive.writestr("_about.txt", about)
    else:
        Path(name).write_text(PAIRS, encoding="utf-8")
    config = "name: c\ntext: {tokenizer: whitespace}\ndata:\n  split: {valid_size: 1, test_size: 0}\n  licence: CC\n"
    source = "  source: https://www.manythings.org/anki/deu-eng.zip\n"
    Path("c.yaml").write_text(config + source, encoding="utf-8")
    outcome = cli("preprocess", "--config", "c.yaml", "--source", name)
    assert outcome.code == 0, outcome.err
    assert read_config(Path("data/prepared/c/config.yaml")).data.licence == ("CC" if kept else None)
    assert ("licence of the data: not stated" in outcome.err) == (not kept)
    assert ("--set 'data.licence=" in outcome.err) == (not kept)


def test_a_file_named_like_a_local_source_does_not_inherit_its_licence() -> None:
    """The archives of manythings.org contain a deu.txt too."""
    assert with_sources(load_config("sample"), ["elsewhere/deu.txt"]).data.licence is None
    assert with_sources(load_config("sample"), ["data/sample/deu.txt"]).data.licence == "CC0 1.0; synthetic"
    assert with_sources(load_config("multi30k"), ["train.en.gz"] * 2).data.licence is None
