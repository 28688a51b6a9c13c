"""References are treated as the text that a model learns from, or a warning says what it cannot write."""

import itertools
import json
import random
from pathlib import Path

import pytest
from conftest import Cli

from nmt.config import TextSection
from nmt.corpus.example import Example, read_examples
from nmt.corpus.references import Unwritable, find_altered, find_unwritable, read_references
from nmt.evaluation.metrics import ScoringRules, score_corpus
from nmt.text.normalization import Normalizer
from nmt.text.processor import load_processor
from nmt.text.vocabulary import Vocabulary

pytestmark = pytest.mark.usefixtures("no_pictures")

WORDS = ["Haus", "Brücke", "Straße", "Käse", "Fluss", "Wälder"]
NOUNS = [*itertools.permutations(WORDS[:4], 3)][:12]
ODD = {
    "entities": "&quot;{}&quot; &amp; so ist es",
    "zero-width": "das\u200b{}\u200bist es ja",
    "decomposed": "scho\u0308n {} ist es",
    "ligature": "ﬁnde {} ja",
    "quotes": "„{}“ – ja, so",
    "spaces": "\u00a0das  {}\u2003ist",
}
"""Texts that a step of the normalizer changes, with a gap."""
SETTINGS = {
    "unicode": ("nfc", "nfkc", "none"),
    "control_characters": (True, False),
    "html_entities": (True, False),
    "quotes": (True, False),
    "dashes": (True, False),
}


def as_is(text: str) -> list[Example]:
    return [Example("x", (text,))]


def test_only_the_unicode_form_and_spaces_change_unless_references_are_repaired() -> None:
    normalizer = Normalizer(quotes=True)
    text = " scho\u0308n\u00a0&amp;  „gut“\u200b "
    assert read_references(as_is(text), normalizer) == as_is("schön &amp; „gut“\u200b")
    assert read_references(as_is(text), normalizer, repair=True) == as_is('schön & "gut"')


def test_a_form_that_training_text_keeps_is_kept() -> None:
    text = "scho\u0308n"
    assert read_references(as_is(text), Normalizer(unicode="none")) == as_is(text)
    assert read_references(as_is("ﬁn"), Normalizer(unicode="nfkc")) == as_is("ﬁn")
    assert find_unwritable(as_is("ﬁn"), Normalizer(unicode="nfkc")) == Unwritable(1, 1, "unicode", "ﬁn", "fin")


def test_references_that_become_equal_are_one() -> None:
    assert read_references([Example("a", ("b c", "b  c", "d"))], Normalizer()) == [Example("a", ("b c", "d"))]


def test_the_most_frequent_step_is_named_with_the_words_that_change() -> None:
    examples = [
        Example("1", ("I don&apos;t know.", "fine")),
        Example("2", ("She said &quot;no&quot; twice.", "  only   spaces ")),
        Example("3", ("zero\u200bwidth",)),
    ]
    found = find_unwritable(examples, Normalizer())
    assert found == Unwritable(3, 5, "html_entities", "don&apos;t", "don't")
    assert found.setting == "data.cleaning.html_entities=false"
    assert find_unwritable(examples[:2], Normalizer(html_entities=False)) is None


@pytest.mark.parametrize("values", [*itertools.product(*SETTINGS.values())])
def test_a_perfect_model_has_a_bleu_of_100_or_there_is_a_warning(values: tuple[object, ...]) -> None:
    """For each setting of the normalizer: what it makes of the references is the best that a model can write."""
    normalizer = Normalizer(**dict(zip(SETTINGS, values, strict=True)))  # type: ignore[arg-type]
    rules = ScoringRules.for_text(TextSection(), "de")
    for pattern in ODD.values():
        raw = [Example("x", (pattern.format(" ".join(nouns)),)) for nouns in NOUNS]
        for repair in (False, True):
            examples = read_references(raw, normalizer, repair=repair)
            best = [normalizer(example.references[0]) for example in examples]
            value = score_corpus(examples, best, rules, ["bleu"])["bleu"].value
            warned = find_unwritable(examples, normalizer) is not None
            assert value == pytest.approx(100) or warned
            assert not (repair and warned)


def write_corpus(folder: Path, escaped: str) -> list[str]:
    """Six files, in which references have an apostrophe in some form; sentences of a split are in no other one."""
    names = []
    for split, first, size in (("train", 0, 200), ("valid", 200, 20), ("test", 300, 20)):
        chance = random.Random(split)
        lines = [(chance.choice(WORDS), number) for number in range(first, first + size)]
        for code, pattern in (("de", "Das ist {} {}."), ("en", "It" + escaped + "s {} {}.")):
            path = folder / f"{split}.{code}"
            path.write_text("".join(pattern.format(*words) + "\n" for words in lines), encoding="utf-8")
            names.append(str(path))
    return names


CONFIG = """
extends: base
data: {src_language: de, tgt_language: en}
text: {subword: {vocabulary_size: 60}}
model: {embedding_size: 8, encoder: {hidden_size: 16}, decoder: {hidden_size: 16}}
train: {max_updates: 2, precision: float32, threads: 1}
"""


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Sources as arguments, in a folder with a config `c.yaml`."""
    monkeypatch.chdir(tmp_path)
    Path("c.yaml").write_text(CONFIG)
    return [word for name in write_corpus(Path(), "&apos;") for word in ("--source", name)]


def test_the_two_ways_out_of_moses_escapes(corpus: list[str], cli: Cli) -> None:
    made = cli("preprocess", "c.yaml", *corpus, "--output", "raw")
    assert made.code == 0
    warnings = [line for line in made.err.splitlines() if line.startswith("WARNING")]
    assert warnings == [
        f"WARNING: {split}: 20 of 20 references have text that training text has in another form, so that no model can "
        "write it, such as 'It&apos;s' for \"It's\": set data.cleaning.html_entities=false to keep it in training "
        "text, which has it in 200 of 200 pairs, or set data.repair_references=true to score repaired references, "
        "which signatures then name"
        for split in ("valid", "test")
    ]
    assert json.loads(Path("raw/report.json").read_text())["warnings"] == [line[9:] for line in warnings]
    assert all(line in " ".join(cli("data", "raw").out.split()) for line in warnings)

    kept = cli("preprocess", "c.yaml", *corpus, "--output", "kept", "--set", "data.cleaning.html_entities=false")
    repaired = cli("preprocess", "c.yaml", *corpus, "--output", "repaired", "--set", "data.repair_references=true")
    assert "WARNING" not in kept.err + repaired.err
    for name, apostrophe in (("kept", "&apos;"), ("repaired", "'")):
        texts = [example.references[0] for example in read_examples(Path(name) / "test.jsonl")]
        assert all(text.startswith(f"It{apostrophe}s ") for text in texts)


def test_signatures_name_repaired_references(corpus: list[str], cli: Cli) -> None:
    assert cli("preprocess", "c.yaml", *corpus, "--output", "d", "--set", "data.repair_references=true").code == 0
    assert cli("train", "c.yaml", "--data", "d", "--output", "r").code == 0
    split = cli("evaluate", "--model", "r", "--no-short-inputs", "--beam-size", "1")
    assert split.code == 0
    assert [line.endswith("|refs:repaired") for line in split.out.splitlines() if "|version:" in line] == [True] * 4
    # A file of references gets what a split of the model's data gets.
    found = cli("evaluate", "--model", "r", "--src", "test.de", "--ref", "test.en", "--no-short-inputs")
    assert found.code == 0
    assert "|refs:repaired" in found.out
    assert "references have text" not in found.err


def test_text_that_the_tokenizer_does_not_give_back_is_counted(corpus: list[str], cli: Cli) -> None:
    assert cli("preprocess", "c.yaml", *corpus, "--output", "d").code == 0
    processor = load_processor(Path("d/text"))
    assert find_altered([Example("x", ("It's fine.", "as  it was"))], processor) is None
    found = find_altered([Example("x", ("a \u2581 sign", "none here"))], processor)
    assert str(found).startswith("1 of 2 references come back from the tokenizer as other text")
    assert isinstance(processor.tgt_vocabulary, Vocabulary)


def test_copies_in_training_are_found_however_they_are_escaped(corpus: list[str], cli: Cli) -> None:
    for code in ("de", "en"):
        plain = Path(f"test.{code}").read_text(encoding="utf-8").replace("&apos;", "'")
        with Path(f"train.{code}").open("a", encoding="utf-8") as file:
            file.write(plain)
    found = cli("preprocess", "c.yaml", *corpus, "--output", "d")
    assert "overlap: of 20 test sources 20 are in training on the source side, 20 have a reference there" in found.err
    dropped = cli("preprocess", "c.yaml", *corpus, "--output", "e", "--drop-overlap")
    assert "overlap: 20 training pairs were dropped because valid or test share them" in dropped.err
    assert "overlap: of 20 test sources 0 are in training on the source side, 0 have a reference there" in dropped.err


def test_a_validation_split_that_is_tested_with_is_named(corpus: list[str], cli: Cli) -> None:
    for code in ("de", "en"):
        lines = Path(f"test.{code}").read_text(encoding="utf-8").splitlines(keepends=True)
        changed = [line.replace(".", "!") for line in lines[:5]]  # the same sentence by letters and digits
        with Path(f"valid.{code}").open("a", encoding="utf-8") as file:
            file.writelines(changed)
    found = cli("preprocess", "c.yaml", *corpus, "--output", "d")
    warning = (
        "WARNING: overlap: of 25 valid sources 5 are in test, and 5 have a reference there, so the best model is "
        "chosen on sentences that it is tested with: give other sentences for valid"
    )
    assert warning in found.err.splitlines()
    assert json.loads(Path("d/report.json").read_text())["valid_in_test"] == {
        "sources": 5,
        "targets": 5,
        "examples": 25,
    }


REPAIRED = "set data.repair_references=true to score repaired references, which signatures then name"


@pytest.mark.parametrize(
    ("odd", "kept"),
    [("&apos;", "html_entities=false"), ("\u200b'", "control_characters=false"), ("\ufb01", "unicode=none")],
)
@pytest.mark.parametrize("side", [None, "de", "en"])
def test_a_way_out_is_named_only_where_it_helps(
    corpus: list[str], cli: Cli, odd: str, kept: str, side: str | None
) -> None:
    """To keep text in training text helps only if the targets of training pairs have such text."""
    write_corpus(Path(), odd)
    for code in ("de", "en"):
        path = Path(f"train.{code}")
        plain = path.read_text(encoding="utf-8").replace(odd, "fi")
        path.write_text(plain.replace(" ", f" {odd}", 2) if side == code else plain, encoding="utf-8")
    settings = ["--set", "data.cleaning.unicode=nfkc"] if odd == "\ufb01" else []
    found = cli("preprocess", "c.yaml", *corpus, "--output", "d", *settings)
    lines = [line for line in found.err.splitlines() if "no model can write it" in line]
    assert len(lines) == 2
    keep = f", or set data.cleaning.{kept} to keep it in training text, which has it in 1 of 200 pairs"
    for line in lines:
        assert line.endswith(f": {REPAIRED}{keep}" if side == "en" else f": {REPAIRED}")


ANSWERS = ["data.cleaning.html_entities=false", "data.repair_references=true"]


@pytest.mark.parametrize("answer", [None, *ANSWERS])
def test_moses_escapes_are_not_warned_of_once_the_config_answers(
    corpus: list[str], cli: Cli, answer: str | None
) -> None:
    write_corpus(Path(), " &apos;")
    settings = [] if answer is None else ["--set", answer]
    found = cli("preprocess", "c.yaml", *corpus, "--output", "d", *settings)
    assert found.code == 0
    assert ("escapes of Moses' tokenizer" in found.err) == (answer is None)
    assert ("no model can write it" in found.err) == (answer is None)
