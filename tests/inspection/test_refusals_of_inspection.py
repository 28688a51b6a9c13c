"""What nmt attention, explain and report refuse with one line, leaving nothing behind."""

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Project, Refusal

import nmt

FORCED = ["attention", "--src", "in.txt", "--ref", "in.txt", "--forced", "--gold"]
PAGE = ["attention", "--output", "p.html"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["attention", "a b", "--split", "test"], "give one of: a sentence, --src, or --split"),
        (["attention", "--target", "A"], "--target is for one sentence"),
        (["attention", "--ref", "in.txt"], "--ref belongs to --src"),
        (["attention", "--gold", "gold.txt"], "and --forced"),
        (["attention", "--src", "in.txt", "--forced"], "--forced reads references"),
        (["attention", "--split", "dev"], "has no dev split; give --split test, valid or train"),
        (["attention", "   "], "no sentence has words"),
        ([*FORCED, "short.txt"], "short.txt: has 1 lines, but there are 2"),
        ([*FORCED, "far.txt"], "line 2: 0-7, but the sentences have 1 and 1"),
        ([*FORCED, "in.txt"], "'a' is not a link"),
        (["attention", "--src", "nowhere.txt"], "nowhere.txt"),
        (["attention", "a b", "--json", "data/prepared/reversal/x.json"], "is inside the data directory"),
        (["attention", "a b", "--picture", "a.xyz", "--json", "x.json"], "not a picture format"),
        (["attention", "a b", "--picture", "nowhere/a.png", "--json", "x.json"], "the folder nowhere does not exist"),
        (["attention", "a b", "--against", "runs/reversal"], "--against is for a page"),
        ([*PAGE, "a b", "--json", "x.json"], "--json does not go with --output"),
        ([*PAGE, "a b", "--target", "A"], "--target does not go with --output"),
        (["attention", "a b", "--output", "p.pdf"], "--output p.pdf: a page is HTML; give a name that ends in .html"),
        (["attention", "a b", "--output", "heat.png"], "ends in .html; --picture draws the weights of the sentence"),
        ([*PAGE, ""], "sentence 1: has 0 tokens; give one of 1 to 200"),
        ([*PAGE, "a " * 300], "sentence 1: has 300 tokens"),
        (["attention", "a b", "--output", "runs/reversal/best/p.html"], "is inside the model directory"),
        (["attention", "a b", "--output", "nowhere/p.html"], "the folder nowhere does not exist"),
        ([*PAGE, "a b", "--against", "nowhere"], "nowhere"),
        (["explain", "a b", "--step", "99"], "--step 99: the translation has"),
        (["explain", "  "], "the sentence has no words"),
        (["report", "--output", "r.html", "--src", "in.txt"], "--ref belongs to --src: give both"),
        (["report", "--output", "r.pdf"], "--output r.pdf: a page is HTML; give a name that ends in .html"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], message: str, here: Project, refusal: Refusal) -> None:
    files = {"in.txt": "a b\nc\n", "gold.txt": "0-0\n1-1\n", "short.txt": "0-0\n", "far.txt": "0-0\n0-7\n"}
    for name, text in files.items():
        Path(name).write_text(text, encoding="utf-8")
    assert message in refusal(*arguments)
    assert {path.name for path in Path().iterdir()} == {"data", "runs", *files}


def test_a_picture_is_no_way_out_where_models_are_compared(here: Project, refusal: Refusal) -> None:
    said = refusal("attention", "a b", "--output", "heat.png", "--against", "runs/reversal")
    assert said.strip() == "--output heat.png: a page is HTML; give a name that ends in .html"


@pytest.mark.parametrize("function", [nmt.explore, nmt.measure_attention])
def test_a_sample_has_at_least_one_sentence(function: Callable[..., object], here: Project) -> None:
    with pytest.raises(nmt.ConfigError, match="must be at least 1"):
        function(model=here.run, sample=0)
