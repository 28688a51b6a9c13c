"""Names of parallel files that contradict the languages of the config."""

from pathlib import Path

import pytest
from conftest import Cli, Refusal

from nmt.config import DataSection
from nmt.corpus.endings import check_endings, find_language
from nmt.system.errors import DataError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty working folder."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("corpus.de", "de"),
        ("corpus.de.gz", "de"),
        ("corpus.de.XZ", "de"),
        ("corpus.de.zip", "de"),
        ("corpus.fr-de.de", "de"),
        ("train.de-en.de.bz2", "de"),
        ("train.lc.norm.tok.en", "en"),
        ("tatoeba.eng.gz", "en"),
        ("corpus.DE", "de"),
        ("corpus.pt_BR", "pt"),
        ("corpus.de-AT", "de"),
        ("corpus.nb", "no"),
        *((name, None) for name in ("corpus", "de", ".de", "a.txt", "a.tsv", "a.src", "a.tgt", "a.tok", "a.de-en")),
        *((name, None) for name in ("a.bpe", "a.1", "a.", "a.gz", "a.pt-br", "train.en.txt", "a.xx")),
    ],
)
def test_the_language_that_a_name_ends_in(name: str, language: str | None) -> None:
    assert find_language(Path(name)) == language


def data(src: str, tgt: str, *, reverse: bool = False) -> DataSection:
    return DataSection(src_language=src, tgt_language=tgt, reverse=reverse)


@pytest.mark.parametrize(
    ("files", "section"),
    [
        ("a.fr a.de", data("fr", "de")),
        ("a.fr a.de", data("fr", "de", reverse=True)),  # the languages of the files, in their order
        ("a.fra a.deu", data("fr-CA", "de_DE")),
        ("a.fr a.de", data("fra", "deu")),
        ("a.no a.en", data("nb", "en")),
        ("a.haw a.en", data("haw", "en")),
        ("a.txt a.de", data("fr", "de")),
        ("a.src a.tgt b.src b.tgt", data("fr", "de")),
        ("a.haw a.en", data("fr", "en")),  # no code in the list
        ("train.in train.out", data("en", "de")),  # input and output
        ("a.tr a.txt", data("en", "de")),
        ("a.in a.en", data("fr", "en")),  # a code that Indonesian had once
        ("a.en-US a.en-GB", data("en-US", "en-GB")),
    ],
)
def test_endings_that_agree_or_say_nothing(files: str, section: DataSection) -> None:
    check_endings([*map(Path, files.split())], section)


@pytest.mark.parametrize(
    ("files", "section", "message"),
    [
        (
            "a.de a.fr",
            data("fr", "de"),
            "a.de and a.fr: end in .de and .fr, but data.src_language is fr and data.tgt_language de: give the files "
            "in the other order, or set `overrides={'data.src_language': 'de', 'data.tgt_language': 'fr'}`",
        ),
        (
            "a.tr a.en",
            data("fr", "en"),
            "a.tr: ends in .tr, but data.src_language is fr: give or rename the file of the source, or set "
            "`overrides={'data.src_language': 'tr'}`",
        ),
        (
            "a.de a.txt",
            data("fr", "en"),
            "a.de: ends in .de, but data.src_language is fr: give or rename the file of the source, or set "
            "`overrides={'data.src_language': 'de'}`",
        ),
        (
            "a.fr a.de a.fr b.fr.gz",
            data("fr", "de"),
            "b.fr.gz: ends in .fr, but data.tgt_language is de: give or rename the file of the target, or set "
            "`overrides={'data.tgt_language': 'fr'}`",
        ),
    ],
)
def test_endings_that_contradict_the_config(files: str, section: DataSection, message: str) -> None:
    with pytest.raises(DataError) as error:
        check_endings([*map(Path, files.split())], section)
    assert str(error.value) == message


CONFIG = """
data: {{source: [corpus.fr, corpus.de]{more}, split: {{valid_size: 2, test_size: 2}}}}
text: {{tokenizer: whitespace}}
"""


def write_corpus(more: str, *names: str) -> None:
    Path("mine.yaml").write_text(CONFIG.format(more=more))
    for name in names:
        Path(name).write_text("".join(f"{name} {number}\n" for number in range(20)))


def test_the_first_line_of_preprocessing_is_the_direction(cli: Cli) -> None:
    write_corpus(", src_language: fr, tgt_language: de", "corpus.fr", "corpus.de")
    assert cli("preprocess", "mine.yaml").err.splitlines()[0] == "fr to de: French to German"
    found = cli("preprocess", "mine.yaml", "--overwrite", "--set", "data.reverse=true")
    assert found.err.splitlines()[0] == "de to fr: German to French"
    write_corpus("", "a.txt", "b.txt")
    found = cli("preprocess", "mine.yaml", "--source", "a.txt", "--source", "b.txt", "--output", "other")
    assert found.err.splitlines()[0].startswith("en to de: English to German, as the config sets no languages; set ")


def test_swapped_files_are_refused_and_leave_nothing(refusal: Refusal, cli: Cli) -> None:
    write_corpus(", src_language: de, tgt_language: fr", "corpus.fr", "corpus.de", "public.de", "public.fr")
    line = refusal("preprocess", "mine.yaml")
    assert line.endswith("order, or set --set data.src_language=fr --set data.tgt_language=de")
    assert not Path("data").exists()
    settings = ["--set", "data.source=[corpus.de, corpus.fr]"]
    public = ["--set", "data.test=[public.fr, public.de]", "--set", "data.split.test_size=0"]
    line = refusal("preprocess", "mine.yaml", *settings, *public)
    assert line.startswith("public.fr and public.de: end in .fr and .de, ")
    extra = "data.extra={web: {source: [public.fr, public.de]}}"
    line = refusal("preprocess", "mine.yaml", *settings, "--set", extra)
    assert line.startswith("public.fr and public.de: end in ")
    assert cli("preprocess", "mine.yaml", *settings).code == 0


def test_base_has_no_languages(refusal: Refusal, cli: Cli) -> None:
    write_corpus("", "corpus.fr", "corpus.de")
    Path("mine.yaml").write_text("extends: base\n" + Path("mine.yaml").read_text())
    line = refusal("preprocess", "mine.yaml")
    assert line == (
        "data.src_language and data.tgt_language: are not set; add --set data.src_language=CODE --set "
        "data.tgt_language=CODE, with codes of languages such as fr"
    )
    assert refusal("config", "check", "mine.yaml") == line
    line = refusal("preprocess", "mine.yaml", "--set", "data.src_language=fr")
    assert line.startswith("data.tgt_language: is not set; ")
    languages = ["--set", "data.src_language=fr", "--set", "data.tgt_language=de"]
    found = cli("preprocess", "mine.yaml", *languages)
    assert (found.code, found.err.splitlines()[0]) == (0, "fr to de: French to German")
