"""Scoring a model as its text asks for."""

import json
import math
import re
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import Cli, Outcome, Project, Refusal

import nmt
from nmt.config import Config
from nmt.corpus.example import Example, write_examples
from nmt.evaluation.input_text import read_files, read_split
from nmt.models.build import build_model
from nmt.models.storage import save_model
from nmt.system.errors import ConfigError, DataError
from nmt.system.files import write_json
from nmt.text.processor import TextProcessor
from nmt.text.tokenizers import WhitespaceTokenizer
from nmt.text.vocabulary import Vocabulary


def test_only_the_split_of_a_data_directory_is_read(tmp_path: Path) -> None:
    examples = [Example("a", ("b", "c"))]
    write_json(tmp_path / "data.json", {"format_version": 1})
    write_examples(tmp_path / "test.jsonl", examples)
    assert read_split(tmp_path, "test") == examples
    with pytest.raises(DataError, match="has no valid split"):
        read_split(tmp_path, "valid")


def make_model(folder: Path, *, lowercase: bool) -> Path:
    sides = {name: {"hidden_size": 4} for name in ("encoder", "decoder")}
    text, sections = {"tokenizer": "whitespace", "lowercase": lowercase}, {"embedding_size": 4, **sides}
    config = Config.model_validate({"name": "small", "text": text, "model": sections})
    tokenizer, vocabulary = WhitespaceTokenizer(lowercase=lowercase), Vocabulary(["the", "cat", "sat", "on", "mat"])
    (folder / "text").mkdir(parents=True)
    TextProcessor(tokenizer, tokenizer, vocabulary, vocabulary).save(folder / "text")
    torch.manual_seed(1)
    model = build_model(config.model, len(vocabulary), len(vocabulary))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-1, 1)
    save_model(folder / "model", config, model, folder / "text", {})
    return folder / "model"


@pytest.mark.usefixtures("no_significance")
@pytest.mark.parametrize("lowercase", [True, False])
def test_a_lowercase_model_is_scored_in_lower_case(tmp_path: Path, cli: Cli, lowercase: bool) -> None:
    model = make_model(tmp_path, lowercase=lowercase)
    found = cli("translate", "--model", model, "the cat sat")
    assert found.code == 0
    assert found.out.strip()
    (tmp_path / "src").write_text("the cat sat\n", encoding="utf-8")
    (tmp_path / "ref").write_text(found.out.upper(), encoding="utf-8")
    outcome = cli("evaluate", "--model", model, "--src", tmp_path / "src", "--ref", tmp_path / "ref")
    assert outcome.code == 0
    chrf = next(line for line in outcome.out.splitlines() if line.startswith("chrF "))
    assert ("case:lc" if lowercase else "case:mixed") in chrf
    assert float(chrf.split()[1]) == (100.0 if lowercase else 0.0)
    assert not lowercase or cli("translate", "--model", model, "THE Cat sAT").out == found.out


@pytest.mark.usefixtures("no_significance")
@pytest.mark.parametrize(("name", "content"), [("src", "\n \n"), ("ref", "\n\n"), ("second", "\n\t\n")])
def test_files_of_empty_lines_are_refused(tmp_path: Path, cli: Cli, name: str, content: str) -> None:
    paths = {key: tmp_path / key for key in ("src", "ref", "second")}
    for path in paths.values():
        path.write_text("the cat\n\n")
    paths[name].write_text(content)
    model = make_model(tmp_path / "made", lowercase=False)
    arguments = ["--src", paths["src"], "--ref", paths["ref"], "--ref", paths["second"]]
    outcome = cli("evaluate", "--model", model, *arguments)
    assert outcome.code == 1
    assert outcome.err == f"nmt: error: {paths[name]}: has only empty lines; give sentences to evaluate\n"
    paths[name].write_text("the cat\n\n")
    assert cli("evaluate", "--model", model, *arguments).code == 0


@pytest.mark.parametrize(
    ("content", "references", "log"),
    [
        ("a b\ta c\nb\tb\n", [("a b", "a c"), ("b", "b")], "ref: tabs separate the references of a line, 4 in 2 lines"),
        ("a\t\tb\t\n\t c\td\n", [("a", "b"), (" c", "d")], "ref: tabs separate the references of a line, 4 in 2 lines"),
        (
            "a\tb\nc\n",
            [("a", "b"), ("c",)],
            "ref: 1 of 2 lines have tabs, which separate references: replace a tab inside a reference by a space",
        ),
        ("a\n\n", [("a",), ("",)], None),
        ("a\n\tc\t\n", [("a",), ("c",)], None),
    ],
)
def test_tabs_separate_references(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: str, references: list[tuple[str, ...]], log: str | None
) -> None:
    (tmp_path / "src").write_text("x\ny\n", encoding="utf-8")
    (tmp_path / "ref").write_text(content, encoding="utf-8")
    with caplog.at_level("INFO"):
        found = read_files(tmp_path / "src", [tmp_path / "ref"])
    assert [example.references for example in found] == references
    assert caplog.messages == ([] if log is None else [f"{tmp_path}/{log}"])


@pytest.mark.usefixtures("no_significance")
def test_references_that_were_written_are_read(tmp_path: Path, cli: Cli) -> None:
    """Scores with the references that `nmt evaluate` wrote are those of the files that it read."""
    model = make_model(tmp_path, lowercase=False)
    files = {"src": "the cat sat\nsat on\n", "one": "the cat\nsat on the mat\n", "two": "a cat sat\nsat on the mat\n"}
    paths = {name: tmp_path / name for name in files}
    for name, content in files.items():
        paths[name].write_text(content, encoding="utf-8")
    two = ["--ref", paths["one"], "--ref", paths["two"], "--references", tmp_path / "both"]
    first = cli("evaluate", "--model", model, "--src", paths["src"], *two)
    again = cli("evaluate", "--model", model, "--src", paths["src"], "--ref", tmp_path / "both")
    assert first.code == again.code == 0
    assert (tmp_path / "both").read_text() == "the cat\ta cat sat\nsat on the mat\tsat on the mat\n"
    assert again.out == first.out


@pytest.mark.usefixtures("no_significance")
def test_references_of_a_file_have_the_form_of_a_split(tmp_path: Path, cli: Cli) -> None:
    model = make_model(tmp_path, lowercase=False)
    (tmp_path / "src").write_text("the cat sat\n" * 3, encoding="utf-8")
    outputs = []
    for text in ("schön the cat sat", "scho\u0308n\u00a0the  cat sat ", "scho\u0308n the cat\u200b sat"):
        (tmp_path / "ref").write_text(f"{text}\n" * 3, encoding="utf-8")
        outputs.append(cli("evaluate", "--model", model, "--src", tmp_path / "src", "--ref", tmp_path / "ref"))
    composed, decomposed, invisible = outputs
    assert decomposed.out == composed.out
    assert "WARNING" not in composed.err + decomposed.err
    assert (
        f"WARNING: {tmp_path / 'ref'}: 3 of 3 references have text that training text has in another form, so that no "
        "model can write it, such as 'cat\\u200b' for 'cat': give --repair-references to score repaired references, "
        "which signatures then name, or train with data.cleaning.control_characters=false"
    ) in invisible.err.splitlines()
    assert "refs:repaired" not in invisible.out
    given = ["--src", tmp_path / "src", "--ref", tmp_path / "ref", "--repair-references"]
    repaired = cli("evaluate", "--model", model, *given)
    assert "WARNING" not in repaired.err
    assert repaired.out.replace("|refs:repaired", "") == composed.out


@pytest.mark.usefixtures("no_significance")
def test_files_of_other_languages_than_the_model_are_named(tmp_path: Path, cli: Cli) -> None:
    model = make_model(tmp_path, lowercase=False)  # English to German
    for name in ("x.de", "x.en", "x.eng", "x.txt"):
        (tmp_path / name).write_text("the cat\n", encoding="utf-8")

    def warnings(src: str, ref: str) -> list[str]:
        given = ["--src", tmp_path / src, "--ref", tmp_path / ref, "--no-short-inputs"]
        return [line for line in cli("evaluate", "--model", model, *given).err.splitlines() if "ends in" in line]

    assert warnings("x.en", "x.de") == warnings("x.eng", "x.txt") == []
    assert warnings("x.de", "x.en") == [
        f"WARNING: {tmp_path}/x.{there}: the name ends in a code of another language than {code}, but the model "
        f"translates en to de: give {side} in {name}"
        for there, code, side, name in (("de", "en", "sources", "English"), ("en", "de", "references", "German"))
    ]


GIVEN = [f"schön ist {number} Haus und Straße {number * 7}" for number in range(60)]
"""References, and translations of another program in several forms of the same text."""


@pytest.mark.usefixtures("no_significance")
@pytest.mark.parametrize(
    ("change", "options", "bleu", "warning"),
    [
        (lambda text: unicodedata.normalize("NFD", text), [], 100, None),
        (
            lambda text: text.replace("ö", "&ouml;"),
            [],
            None,
            "60 of 60 translations have text that training text has in an",
        ),
        (lambda text: text.replace("ö", "&ouml;"), ["--repair-references"], 100, None),
        (lambda text: text.replace("Haus", "Ha\u200bus"), ["--repair-references"], 100, None),
        (lambda text: text.replace("Haus", "Haus &apos;s"), ["--repair-references"], None, None),
        (lambda text: text.replace("Haus", "Ha@@ us"), [], None, "60 of 60 target lines have the mark @@"),
        (lambda text: text.replace("Haus", "<unk>"), [], None, "60 of 60 target lines have a mark of an unknown word"),
    ],
    ids=["nfd", "entities", "entities repaired", "zero-width repaired", "escapes repaired", "pieces", "unknown"],
)
def test_translations_of_a_file_are_treated_as_references(
    tmp_path: Path,
    cli: Cli,
    change: Callable[[str], str],
    options: list[str],
    bleu: float | None,
    warning: str | None,
) -> None:
    model = make_model(tmp_path / "made", lowercase=False)
    files = {"src": ["the cat sat"] * len(GIVEN), "ref": GIVEN, "own": [*map(change, GIVEN)]}
    for name, lines in files.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    given = ["--src", tmp_path / "src", "--ref", tmp_path / "ref", "--against", tmp_path / "own"]
    found = cli("evaluate", "--model", model, *given, *options, "--no-short-inputs", "--json", tmp_path / "scores.json")
    assert found.code == 0, found.err
    own = json.loads((tmp_path / "scores.json").read_text(encoding="utf-8"))["comparisons"]["bleu"][1]["score"]
    assert own == pytest.approx(bleu) if bleu else own < 99
    named = [line for line in found.err.splitlines() if line.startswith(f"WARNING: {tmp_path / 'own'}: ")]
    assert len(named) == (warning is not None)
    assert warning is None or named[0].startswith(f"WARNING: {tmp_path / 'own'}: {warning}")


def evaluated(cli: Cli, *arguments: object) -> tuple[dict[str, Any], Outcome]:
    """Scores that the command writes, and what it says."""
    outcome = cli("evaluate", "--json", "scores.json", "--overwrite", *arguments)
    assert outcome.code == 0, outcome.err
    scores: dict[str, Any] = json.loads(Path("scores.json").read_text(encoding="utf-8"))
    return scores, outcome


@pytest.mark.usefixtures("no_significance")
def test_short_inputs_are_judged(here: Project, cli: Cli) -> None:
    scores, outcome = evaluated(cli, "--split", "valid")
    *_, line = outcome.out.splitlines()
    found = scores["short_inputs"]
    assert line.startswith(f"short inputs: {found['passed']} of 100 (known words ")
    assert sum(each["of"] for each in found["categories"].values()) == found["of"] == 100
    assert 100 - found["passed"] == len(found["failures"]) > 50  # the model reverses letters
    assert all(each["rules"] and each["category"] in found["categories"] for each in found["failures"])
    (failure,) = [each for each in found["failures"] if each["input"] == "kitchen"]
    assert failure["output"] == cli("translate", "kitchen").out.rstrip("\n")
    Path("src").write_text("a b\n", encoding="utf-8")
    shutil.move(here.data, "moved")
    assert cli("evaluate", "--src", "src", "--ref", "src").out.splitlines()[-1] == line


@pytest.mark.usefixtures("no_significance")
def test_faults_losses_and_attention_are_measured(here: Project, cli: Cli) -> None:
    found, outcome = evaluated(cli, "--split", "valid", "--no-short-inputs", "--attention")
    assert [line.split()[0] for line in outcome.out.splitlines()[:4]] == ["BLEU", "chrF", "chrF++", "TER"]
    assert "short inputs" not in outcome.out + outcome.err
    assert found["short_inputs"] is None
    assert found["diagnosis"]["sentences"] == found["sentences"]
    assert found["teacher_forced"]["perplexity"] == pytest.approx(math.exp(found["teacher_forced"]["loss"]))
    assert 0 <= found["free_running"]["accuracy"] <= 1
    assert found["free_running"]["loss"] >= found["teacher_forced"]["loss"] - 1e-6
    logged = [json.loads(line) for line in (here.run / "metrics.jsonl").read_text().splitlines()]
    best = json.loads((here.run / "run.json").read_text())["best_update"]
    (valid,) = [each for each in logged if each["kind"] == "valid" and each["update"] == best]
    assert found["teacher_forced"]["loss"] == pytest.approx(valid["loss"], rel=1e-5)
    (head,) = found["attention"]
    assert 0 <= head["entropy"]["mean"] <= math.log(10)
    assert 1 / 10 <= head["maximum"]["mean"] <= 1
    assert 0 < head["coverage"]["mean"] <= 1
    assert head["diagonality"]["mean"] < 0.7  # the model reverses sentences
    assert "attention: entropy " in outcome.out
    plain = cli("evaluate", "--no-short-inputs")
    assert "attention" not in plain.out


SACREBLEU = """
import functools, json
from sacrebleu.sacrebleu import main
json.dumps = functools.partial(json.dumps, default=float)  # version 2.6 cannot write its own bootstrap
main()
"""


@pytest.mark.parametrize(("test", "option"), [("bootstrap", "--paired-bs"), ("randomization", "--paired-ar")])
def test_scores_and_significance_are_those_of_sacrebleu(here: Project, cli: Cli, test: str, option: str) -> None:
    """What the command line of sacreBLEU says of the files that were written."""
    evaluated(cli, "--no-short-inputs", "--hypotheses", "one.txt", "--references", "references.txt")
    lines = Path("one.txt").read_text(encoding="utf-8").splitlines()
    Path("other.txt").write_text("".join(f"{line[:-1]}\n" for line in lines), encoding="utf-8")
    others = ["--against", "other.txt", "--against", here.run]
    found, outcome = evaluated(cli, "--no-short-inputs", *others, "--test", test)
    tests = re.findall(r"\t(\d\.\d{4})(?:, (better|worse))?", outcome.out)
    name = {
        "bootstrap": "a paired bootstrap of 1,000 test sets",
        "randomization": "approximate randomization, 10,000 trials",
    }
    assert f"\nsignificance of differences: p by {name[test]}\nsystem\t" in outcome.out
    assert {word for p, word in tests if float(p) < 0.05} == {"worse"}
    assert {word for p, word in tests if float(p) >= 0.05} == {""}
    tabs = Path("references.txt").read_text(encoding="utf-8").splitlines()[0].count("\t")
    command = [sys.executable, "-c", SACREBLEU, "references.txt", "-nr", str(tabs + 1), "-i", "one.txt", "other.txt"]
    command += ["--metrics", "bleu", "chrf", "ter", "--tokenize", "none", option, "--format", "json", "--force"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for place, system in enumerate(json.loads(done.stdout)):
        for key, name in (("bleu", "BLEU"), ("chrf", "chrF2"), ("ter", "TER")):
            ours = found["comparisons"][key][place]
            assert ours["score"] == system[name]["score"]
            assert ours["p_value"] == (system[name]["p_value"] if place else None)
    for key, (first, _, same) in found["comparisons"].items():
        assert (same["score"], same["p_value"]) == (first["score"], 1)
        assert found["scores"][key]["value"] == first["score"]


def test_what_cannot_be_compared_is_refused(
    here: Project, cli: Cli, refusal: Refusal, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("short.txt").write_text("a\n", encoding="utf-8")
    for path, message in {
        "short.txt": "short.txt: has 1 lines, but the test set has",
        "none.txt": "none.txt: cannot be read",
        ".": ".: is not a model directory",
    }.items():
        assert refusal("evaluate", "--against", path).startswith(message)
    same = refusal("evaluate", "--model", here.run / "best", "--against", here.run / "best")
    assert "is the model that is evaluated; give another system" in same
    with pytest.raises(ConfigError, match="`test='sign'`: must be bootstrap or randomization"):
        nmt.evaluate(test="sign")  # type: ignore[arg-type]
    monkeypatch.setattr("nmt.evaluation.model_evaluation.MAX_TESTED", 2)
    assert "compare systems on at most 2 of them" in refusal("evaluate", "--against", "short.txt")
    assert "±" not in cli("evaluate").out


@pytest.mark.usefixtures("no_significance")
def test_search_settings_hold_for_all_models(here: Project, cli: Cli) -> None:
    other = shutil.copytree(here.run, "other")
    settings = ["--set", "decode.beam_size=1", "--set", "decode.max_length=2"]
    found, _ = evaluated(cli, "--no-short-inputs", "--against", other, *settings)
    first, second = found["comparisons"]["bleu"]
    assert (second["score"], second["p_value"]) == (first["score"], 1)
    assert first["score"] != evaluated(cli, "--no-short-inputs")[0]["scores"]["bleu"]["value"]


@pytest.mark.usefixtures("no_significance")
def test_a_breakdown_of_two_systems(here: Project, cli: Cli) -> None:
    examples = read_split(here.data, "test")
    worse = [example.references[0] if row % 2 else "A" for row, example in enumerate(examples)]
    Path("other.txt").write_text("".join(f"{line}\n" for line in worse), encoding="utf-8")
    scores, outcome = evaluated(cli, "--no-short-inputs", "--breakdown", "--against", "other.txt")
    found = scores["breakdown"]
    ours, other = found["scores"]
    assert other == "other.txt"
    for name in (ours, other):
        assert sum(found["scores"][name]) == len(examples)
        assert sum(each["sentences"] for each in found["lengths"][name]) == len(examples)
    words = [word for example in examples for word in example.references[0].split()]
    assert sum(each["in_references"] for each in found["frequencies"][other]) == len(words)
    assert sum(each["common"] for each in found["frequencies"][other]) >= len(words) // 3
    # Eight letters, each in hundreds of training pairs: there are no words that occur 5 to 9 times.
    assert [each["f1"] for each in found["frequencies"][other] if each["low"] == 5] == [None]
    first, *_, last = zip(found["scores"][ours], found["scores"][other], strict=True)
    lines = outcome.out.splitlines()
    dashes = [[count or "–" for count in counts] for counts in (first, last)]
    rows = ["5-9\t–\t–\t–", "0-10\t{}\t{}".format(*dashes[0]), "90-100\t{}\t{}".format(*dashes[1])]
    rows.append(f"BLEU\t+{found['differences'][0]['gaps'][0][0]['gap']:.1f}")
    assert [row for row in rows if row not in lines] == []
    for title in ("F1 of words by their frequency", "BLEU by source length", "Sentences by their BLEU"):
        assert title in outcome.out
    ids = np.load(here.data / "train.tgt.ids.npy")
    np.save(here.data / "train.tgt.ids.npy", np.full_like(ids, 999))
    outcome = cli("evaluate", "--no-short-inputs", "--breakdown")
    assert (outcome.code, "words by frequency: left out" in outcome.err, "ids beyond" in outcome.err) == (0, True, True)
    shutil.move(here.data, "moved")
    Path("src").write_text("a b\n", encoding="utf-8")
    outcome = cli("evaluate", "--no-short-inputs", "--breakdown", "--src", "src", "--ref", "src")
    assert outcome.code == 0
    assert "words by frequency: left out (the data that the model was trained on is no longer there)" in outcome.err
