"""The explorer's page in a browser: what it shows, how it is used, and that text cannot run in it."""

import dataclasses
import json
import math
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from browser import Page as Browser
from browser import needs_chromium
from conftest import Cli, Project
from covering import covering
from inspection.test_record import RULES, make_translator

import nmt
from nmt.corpus.example import Example
from nmt.evaluation.gold_links import GoldLinks
from nmt.inspection.all_heads import list_heads
from nmt.inspection.explorer_page import System, make_page, page_data
from nmt.inspection.html_page import Page
from nmt.inspection.record import SentenceRecord, Validation, record
from nmt.layers.attention.source_memory import AttentionDetails
from nmt.system.encoding import as_bytes

PICTURES = os.environ.get("NMT_TEST_PICTURES")
"""A folder for screenshots, to look at."""
ATTACKS = [
    "<script>window.hit=1</script>",
    "</script><script>window.hit=1</script>",
    "<img src=x onerror=window.hit=1>",
    "{{ 7 * 7 }} {% raw %}",
    "'\"`;window.hit=1//",
    "\x00\x07\u2028\u2029\ud83d\ude00",
]


def page_with(
    example: Example, *records: SentenceRecord, subwords: bool = False, gold: list[GoldLinks] | None = None
) -> Page:
    """A page of one sentence and some models."""
    systems = [System(f"model {n}", "dot", "q^T k", (subwords, False), [each]) for n, each in enumerate(records)]
    return make_page("A page", page_data([example], systems, gold))


def page_of(sources: list[str], references: list[str] | None = None, number: int = 1) -> Page:
    """A page of sentences, with a reference each, and models that differ in their heads."""
    examples = [Example(src, (references[n],) if references else ()) for n, src in enumerate(sources)]
    systems = []
    for heads in range(1, number + 1):
        translator = make_translator(score="dot", heads=heads)
        records = [record(translator, example, RULES) for example in examples]
        systems.append(System(f"model {heads}", "dot", "q^T k", (False, False), records))
    gold = [GoldLinks({(0, 0)}, {(0, 0), (1, 1)})] * len(sources) if references else None
    return make_page("A page", page_data(examples, systems, gold))


def opened(browser: Browser, page: Page, path: Path, width: int = 1200, place: str = "") -> Browser:
    page.write(path, overwrite=True)
    browser.open("about:blank", width)
    browser.open(f"{path.as_uri()}{place}", width)
    return browser


def texts(browser: Browser, selector: str) -> list[str]:
    found: list[str] = browser.evaluate(
        f"[...document.querySelectorAll({json.dumps(selector)})].map((e) => e.textContent)"
    )
    return found


def column(browser: Browser, title: str = "weight") -> list[float]:
    """The numbers of a column of the step's table."""
    place = texts(browser, "#step thead th").index(title) + 1
    return [float(text) for text in texts(browser, f"#step tbody td:nth-child({place})")]


def count(browser: Browser, selector: str) -> int:
    return len(texts(browser, selector))


def act(browser: Browser, selector: str, event: str = "click", **values: str) -> None:
    """Let something happen to an element, after its properties have changed."""
    browser.evaluate(
        f"{{ const one = Object.assign(document.querySelector({json.dumps(selector)}), {json.dumps(values)}); "
        f"one.dispatchEvent(new MouseEvent('{event}')); }}"
    )


def data_of(html: str) -> Any:
    return json.loads(html.partition('id="data">')[2].partition("</script>")[0])


def test_the_page_is_one_small_file_that_loads_nothing() -> None:
    html = page_of(["a b c"]).html
    assert re.search(r'http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;; script-src', html)
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", html)
    scripts = [path.read_bytes() for path in (Path(nmt.__file__).parent / "inspection").glob("*.js")]
    assert max(map(len, scripts)) <= 30_000
    assert sum(map(len, scripts)) <= 45_000


def test_in_a_notebook_the_page_is_in_a_frame() -> None:
    frame = page_of(["a b"])._repr_html_()
    assert frame.startswith("<iframe sandbox=")
    assert "<script" not in frame


@needs_chromium
def test_labels_keyboard_and_mouse(browser: Browser, tmp_path: Path) -> None:
    page = opened(browser, page_of(["a b c", "d e f g"], ["c b", "g f"], 2), tmp_path / "page.html")
    found = record(make_translator(score="dot"), Example("a b c", ()), RULES)
    assert texts(page, "#lines [data-step] text") == found.best.tokens
    assert texts(page, "#step tbody th") == found.src_tokens
    assert texts(page, "#said")[0].startswith("To write it, model 1 read ")
    assert page.evaluate("document.querySelector('#heads-part').hidden")
    assert column(page) == pytest.approx(found.best.alignment[0, 0].tolist(), abs=3e-3)
    page.press("ArrowRight", 39)
    assert page.evaluate("location.hash") == "#t=1"
    assert column(page) == pytest.approx(found.best.alignment[1, 0].tolist(), abs=3e-3)
    page.press("ArrowDown", 40)
    assert texts(page, "#source") == ["d e f g"]
    assert page.evaluate("location.hash") == "#s=1"
    act(page, "#tree text[role=button]")
    assert page.evaluate("location.hash").startswith("#s=1&y=n0")
    act(page, "#difference")
    assert "d=1" in page.evaluate("location.hash")
    act(page, "#target", "change", value="r")
    assert texts(page, "#map-title") == ["model 1 minus model 2"]
    assert texts(page, "#lines [data-step] text") == ["g", "f", "⟨eos⟩"]
    assert count(page, "#map rect[stroke-dasharray]") == 1


@needs_chromium
def test_the_maps_of_two_models_stand_side_by_side(browser: Browser, tmp_path: Path) -> None:
    place = "#y=r&t=1&o=map"
    page = opened(browser, page_of(["a b c"], ["c b a"], number=2), tmp_path / "page.html", place=place)
    weights = [
        record(make_translator(score="dot", heads=heads), Example("a b c", ("c b a",)), RULES).reference.alignment
        for heads in (1, 2)
    ]
    first, second = (each.mean(dim=1).flatten().tolist() for each in weights)
    drawn = "[...document.querySelectorAll('{} [data-cell]')].map((cell) => Number(cell.getAttribute('fill-opacity')))"
    titles = "#map-title, #beside-title"
    assert texts(page, titles) == ["Weights of model 1", "Weights of model 2"]
    assert page.evaluate(drawn.format("#map")) == pytest.approx(first, abs=3e-3)
    assert page.evaluate(drawn.format("#beside")) == pytest.approx(second, abs=3e-3)
    top = "document.querySelector('{} svg').getBoundingClientRect().top"
    assert page.evaluate(top.format("#map")) == page.evaluate(top.format("#beside"))
    act(page, "#difference")
    assert texts(page, titles) == ["model 1 minus model 2", "Weights of model 2"]
    gaps = [abs(one - other) for one, other in zip(first, second, strict=True)]
    assert page.evaluate(drawn.format("#map")) == pytest.approx(gaps, abs=6e-3)


@needs_chromium
def test_only_a_map_of_the_same_words_frames_the_chosen_one(browser: Browser, tmp_path: Path) -> None:
    """A translation of the second model has other words, and perhaps fewer."""
    example = Example("a b c d", ("a b c d e f",))
    first, second = (record(make_translator(score="dot", heads=heads), example, RULES) for heads in (1, 2))
    assert first.reference is not None
    page = opened(browser, page_with(example, first, second), tmp_path / "page.html", place="#t=1&y=n1&o=map")
    frame = "rect[stroke-width='1.5']"
    assert [count(page, f"{part} {frame}") for part in ("#map", "#beside")] == [1, 0]
    page.evaluate("go({ y: 'r', t: 5 })")
    assert [count(page, f"{part} {frame}") for part in ("#map", "#beside")] == [1, 1]


@needs_chromium
def test_permalinks_open_what_they_name(browser: Browser, tmp_path: Path) -> None:
    page = opened(browser, page_of(["a b c", "d e f g"], number=2), tmp_path / "page.html", place="#s=1&m=1&t=2&h=2")
    found = record(make_translator(score="dot", heads=2), Example("d e f g", ()), RULES)
    assert column(page) == pytest.approx(found.best.alignment[2, 1].tolist(), abs=3e-3)
    wrongs = ["#s=99", "#y=n9999", "#t=-5", "#h=7", "#nonsense", "#s=x&y=%00", "#h=-1", "#h=1.5", "#t=1.5", "#s=0.5"]
    wrongs += ["#v=9", "#v=-1", "#m=9", "#u=x&g=9&d=-1"]
    wrongs += ["#k=__proto__", "#k=toString", "#k=constructor", "#k=-", "#k=-order"]
    opened(browser, page_of(["a b"]), tmp_path / "other.html", place="#s=7")
    for wrong in wrongs:
        page.evaluate(f"location.hash = '{wrong}'; follow()")
        assert texts(page, "#source") == ["a b"]


@needs_chromium
def test_the_list_is_sorted_both_ways(browser: Browser, tmp_path: Path) -> None:
    page = opened(browser, page_of(["a b c", "d e", "f g a b"]), tmp_path / "page.html", place="#k=length")
    assert texts(page, "#item option") == ["d e (length 2)", "a b c (length 3)", "f g a b (length 4)"]
    act(page, "#sort", "change", value="-length")
    assert texts(page, "#item option") == ["f g a b (length 4)", "a b c (length 3)", "d e (length 2)"]
    page.press("ArrowDown", 40)
    assert texts(page, "#source") == ["d e"]
    rounded = page.evaluate("[-0.004, -0.0, -0.006, 0, -10].map((value) => number(value)).join()")
    assert rounded == "0.00,0.00,-0.01,0.00,-10.00"
    assert page.evaluate("location.hash") == "#s=1&k=-length"


@needs_chromium
def test_guessing_hides_the_weights_until_the_answer(browser: Browser, tmp_path: Path) -> None:
    page = opened(browser, page_of(["a b c"]), tmp_path / "page.html")
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    act(page, "#guess")
    weights = "#said, #step td, #map [data-cell], #occlusion [data-cell], [data-weight], [data-link]"
    seen = f"[...document.querySelectorAll('{weights}')].filter((one) => one.checkVisibility()).length"
    assert page.evaluate(seen) == 0
    act(page, '#lines g[tabindex="0"]:not([data-step])')
    assert re.search(r"(Right|It looked at \S+): [01] of 1\.", texts(page, "#status")[0])
    assert page.evaluate(seen) > 3


@needs_chromium
def test_what_is_special_to_a_mechanism(browser: Browser, tmp_path: Path) -> None:
    """The window of local attention is drawn, the chances of hard attention and what was covered before are shown."""
    example = Example("a b c d e f", ())
    translators = [make_translator(score="general", window={"name": name}) for name in ("local_p", "hard")]
    found = [record(translator, example, RULES) for translator in translators]
    page = opened(browser, page_with(example, *found), tmp_path / "page.html", place="#t=2&o=map")
    assert count(page, "#map [data-centre]") == len(found[0].best.tokens)
    assert page.evaluate("document.querySelector('#windows').checkVisibility()")
    assert "chance" not in texts(page, "#step thead th")
    assert column(page, "before") == pytest.approx(found[0].best.alignment[:2, 0].sum(dim=0).tolist(), abs=0.02)
    opened(browser, page_with(example, *found), tmp_path / "page.html", place="#m=1&t=2&o=map")
    chances = found[1].best.details.chances
    assert column(page, "chance") == pytest.approx(chances[2, 0].tolist(), abs=6e-3)
    assert count(page, "#map [data-centre]") == 0
    assert not page.evaluate("document.querySelector('#windows').checkVisibility()")


@needs_chromium
def test_a_model_without_attention_claims_none(browser: Browser, tmp_path: Path) -> None:
    example = Example("a b c", ())
    page = opened(
        browser, page_with(example, record(make_translator(score="none"), example, RULES)), tmp_path / "p.html"
    )
    assert texts(page, "#said")[0].startswith("To write it, the model used no attention.")
    hidden = "['lead', 'thicker', 'guess', 'map-part'].map((id) => at(id).checkVisibility())"
    assert page.evaluate(hidden) == [False] * 4
    assert count(page, "[data-link], [data-weight]") == 0
    assert page.evaluate("""document.querySelector('[data-name="word entropy"]').hidden""")


@needs_chromium
def test_words_sum_over_the_source_and_average_over_the_target(browser: Browser, tmp_path: Path) -> None:
    example = Example("a b c", ())
    found = record(make_translator(score="dot"), example, RULES)
    changed = dataclasses.replace(found, src_tokens=["▁a", "b", "▁c", "⟨eos⟩"])
    opened(browser, page_with(example, changed, subwords=True), tmp_path / "page.html", place="#u=1")
    assert texts(browser, "#step tbody th") == ["ab", "c", "⟨eos⟩"]
    first = found.best.alignment[0, 0]
    assert column(browser) == pytest.approx([float(first[0] + first[1]), float(first[2]), float(first[3])], abs=5e-3)


@needs_chromium
@pytest.mark.parametrize("width", [320, 1200])
def test_labels_of_any_text_in_any_width(browser: Browser, tmp_path: Path, width: int) -> None:
    sources = ["a b c", " ".join("abcdefg"[n % 7] for n in range(60)), "ä ö ü ß", "😀 👩‍👩‍👧 𝄞", "שלום עולם a"]
    page = opened(browser, page_of(sources), tmp_path / "page.html", width)
    for number, source in enumerate(sources):
        page.evaluate(f"go({{s: {number}, t: 0}})")
        assert texts(page, "#step tbody th") == [*source.split(), "⟨eos⟩"]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    words = "[...document.querySelectorAll('#lines g:not([data-step]) text:not([data-weight])')]"
    places = page.evaluate(f"{words}.map((word) => Number(word.getAttribute('x')))")
    assert len(places) > 2
    assert places == sorted(places, reverse=True)  # those of the last text, from right to left


@needs_chromium
@pytest.mark.parametrize("attack", ATTACKS, ids=range(len(ATTACKS)))
def test_text_cannot_run(browser: Browser, tmp_path: Path, attack: str) -> None:
    text = attack.encode("utf-16", "surrogatepass").decode("utf-16")
    examples = [Example(text, (text,))]
    found = record(make_translator(score="dot"), examples[0], RULES)
    labels, shown = [text] * len(found.labels), dict.fromkeys(found.texts, text)
    hostile = dataclasses.replace(found, src_tokens=[text] * len(found.src_tokens), labels=labels, texts=shown)
    page = make_page(text, page_data(examples, [System(text, text, text, (False, False), [hostile])]))
    opened(browser, page, tmp_path / "page.html")
    assert browser.evaluate("window.hit") is None
    assert texts(browser, "h1") == [text.replace("\x00", "")]
    assert texts(browser, "#source") == [text]


@needs_chromium
def test_the_frame_of_a_notebook_follows_keys(browser: Browser, tmp_path: Path) -> None:
    """The frame may not change its address; it is opened to the test by leaving out its sandbox."""
    frame = page_of(["a b c", "d e"])._repr_html_()
    (tmp_path / "notebook.html").write_text(frame.replace("sandbox=", "data-sandbox="), encoding="utf-8")
    browser.open((tmp_path / "notebook.html").as_uri(), 1200)
    inside = "document.querySelector('iframe').contentDocument"
    browser.wait_for(f"{inside}.querySelector('#step-title')?.textContent.startsWith('Word 1')")
    event = "new KeyboardEvent('keydown', {key: '%s', bubbles: true})"
    for key in ("ArrowRight", "ArrowDown"):
        browser.evaluate(f"{inside}.body.dispatchEvent({event % key})")
    assert browser.evaluate(f"{inside}.querySelector('#source').textContent") == "d e"
    browser.evaluate(f"{inside}.body.dispatchEvent({event % 'ArrowRight'})")
    assert browser.evaluate(f"{inside}.querySelector('#step-title').textContent").startswith("Word 2")


@needs_chromium
def test_words_of_a_tokenizer_that_splits_punctuation(browser: Browser, tmp_path: Path) -> None:
    """Gold links and saved alignments count words as they are separated by spaces."""
    example = Example("a, b c.", ("d, e f",))
    found = record(make_translator(score="dot"), example, RULES)
    src, tgt = ["a", ",", "b", "c", ".", "⟨eos⟩"], ["d", ",", "e", "f", "⟨eos⟩"]
    weights = torch.zeros(5, 1, 6)
    for t, s in enumerate((0, 1, 3, 2, 5)):
        weights[t, 0, s] = 1
    unknown = {"details": AttentionDetails(), "contexts": None, "occlusion": None}
    reference = dataclasses.replace(
        found.reference, text="d, e f", tokens=tgt, alignment=weights, log_probs=[-1.0] * 5, top=[[]] * 5, **unknown
    )
    changed = dataclasses.replace(found, src_tokens=src, reference=reference)
    links = [GoldLinks({(1, 1)}, {(1, 1)})]
    opened(browser, page_with(example, changed, gold=links), tmp_path / "page.html", place="#y=r")
    boxes = "[...document.querySelectorAll('#map rect[stroke-width=\"2\"]')]"
    cell = "document.querySelector('#map [data-cell=\"2,2\"]')"  # the tokens e and b
    assert browser.evaluate(f"{boxes}.length") == 1
    for axis in ("x", "y"):
        assert browser.evaluate(f"{boxes}[0].getAttribute('{axis}') - {cell}.getAttribute('{axis}')") == 1
    browser.evaluate("go({u: 1})")
    assert texts(browser, "#step tbody th") == ["a,", "b", "c.", "⟨eos⟩"]
    assert texts(browser, "#lines [data-step] text") == ["d,", "e", "f", "⟨eos⟩"]


@needs_chromium
def test_scores_are_those_of_one_head(browser: Browser, tmp_path: Path) -> None:
    example = Example("a b c", ())
    found = record(make_translator(score="dot", heads=2), example, RULES)
    opened(browser, page_with(example, found), tmp_path / "page.html")
    assert "score" not in texts(browser, "#step thead th")
    for head in (1, 2):
        browser.evaluate(f"go({{h: {head}}})")
        expected = found.best.details.scores[0, head - 1].tolist()
        assert column(browser, "score") == pytest.approx(expected, abs=6e-3)


@needs_chromium
def test_every_head_can_be_enlarged(browser: Browser, tmp_path: Path) -> None:
    """Two layers of two heads in encoder and decoder, beside a recurrent model with its one head."""
    part = {"hidden_size": 8, "num_layers": 2, "num_heads": 2, "feed_forward_size": 8}
    kinds = {"encoder": {"kind": "self_attention", **part}, "decoder": {"kind": "transformer", **part}}
    example, systems = Example("a b c", ("d e f",)), []
    for translator in (make_translator(model={"embedding_size": 8, **kinds}), make_translator(score="general")):
        one = record(translator, example, RULES, all_heads=True)
        heads = list_heads(translator.model.decoder, [one.best.heads], patterns=True)
        systems.append(System(f"model {len(systems)}", "dot", "q^T k", (False, False), [one], heads))
    opened(browser, make_page("A page", page_data([example], systems)), tmp_path / "page.html")
    assert count(browser, "#heads canvas") == 3 * 2 * 2 + 1
    assert texts(browser, "#heads h2") == ["model 0", "model 1"]
    notes = texts(browser, "#heads button span:last-child")
    assert all(re.fullmatch(r"(positional|local|even|by content), [−+\w]+: [−+]0\.\d\d", note) for note in notes[:8])
    assert notes[8:] == ["above", "above", "", "", ""]
    forced = systems[0].records[0].reference
    read = ["⟨bos⟩", "d", "e", "f"]
    expected = {
        "encoder": (["a", "b", "c", "⟨eos⟩"], forced.heads.own["encoder"][1][1]),
        "decoder": (read, forced.heads.own["decoder"][1][1]),
        "source": (["d", "e", "f", "⟨eos⟩"], forced.heads.source[:, 3]),
    }
    browser.evaluate("go({y: 'r'})")
    for name, (rows, weights) in expected.items():
        act(browser, f'[data-key="head-0.{name}.3"]')
        titles = texts(browser, f'[data-enlarged="0.{name}.3"] title')
        columns = read if name == "decoder" else expected["encoder"][0]
        assert [title.partition(":")[0] for title in titles] == [f"{tgt} ← {src}" for tgt in rows for src in columns]
        shown = [float(title.rpartition(" ")[2]) for title in titles]
        assert shown == pytest.approx(weights.flatten().tolist(), abs=3e-3)
        opacity = browser.evaluate(
            f"""[...document.querySelector('[data-key="head-0.{name}.3"] canvas').getContext("2d")"""
            ".getImageData(0, 0, 4, 4).data].filter((_, n) => n % 4 === 3)"
        )
        assert [value / 255 for value in opacity] == pytest.approx(shown, abs=3e-3)
    assert expected["decoder"][1].triu(1).count_nonzero() == 0
    browser.evaluate("go({y: 'n0'})")
    assert texts(browser, "#heads p") == ["Heads are stored for the best translation and the reference."]


@needs_chromium
def test_the_focus_stays_and_what_is_chosen_can_be_seen(browser: Browser, tmp_path: Path) -> None:
    long = " ".join("abcdefg"[n % 7] * 9 for n in range(12))
    page = opened(browser, page_of([long, "a b"], [long, "b"]), tmp_path / "page.html", 320, "#y=r&o=tree")
    seen = """(() => { const step = document.querySelector('#lines [aria-pressed=true]').getBoundingClientRect();
        return step.left >= 0 && step.right <= innerWidth && step.top >= 0 && step.bottom <= innerHeight; })()"""
    page.evaluate("scrollTo(0, 0)")
    for _ in range(12):
        page.press("ArrowRight", 39)
        assert page.evaluate(seen)
    bold = "document.querySelectorAll('#tree [font-weight=\"700\"]').length > 0"
    told = "!document.querySelector('#shown-path').hidden"
    assert not page.evaluate(told)  # the reference is no beginning of the beam: nothing is bold
    assert not page.evaluate(bold)
    page.evaluate("document.querySelector('#tree [data-key=node-1]').focus()")
    page.press("Enter", 13)
    assert page.evaluate("state.y") == "n1"
    assert page.evaluate(told)
    assert page.evaluate(bold)
    assert page.evaluate("document.activeElement.getAttribute('data-key')") == "node-1"
    page.evaluate("document.querySelector('#tree-part').scrollIntoView()")
    before = page.evaluate("scrollY")
    page.press("ArrowLeft", 37)
    assert page.evaluate("scrollY") == before  # the lines are far above: the reader stays where he reads


@needs_chromium
def test_the_chosen_word_stands_beside_its_rivals(browser: Browser, tmp_path: Path) -> None:
    found = record(make_translator(score="dot"), Example("a b c", ("d e",)), RULES)
    page = opened(browser, page_of(["a b c"], ["d e"]), tmp_path / "page.html", place="#t=1")
    likely = [(token, f"{100 * round(share, 3):.1f}%") for token, share in found.best.top[1]]
    assert texts(page, "#top tbody tr > :first-child") == [token for token, _ in likely]
    assert texts(page, "#top tbody .number") == [share for _, share in likely]
    assert texts(page, "#step-title") == [f"Word 2 of {len(found.best.tokens)}: {found.best.tokens[1]}"]
    weights = dict(zip(found.src_tokens, found.best.alignment[1, 0].tolist(), strict=True))
    words = sorted(weights, key=lambda word: -weights[word])[:3]
    (said,) = texts(page, "#said")
    assert re.findall(r"“\u2068(\S+)\u2069” \(\d+%\)", said) == words
    shares = [float(share) for share in re.findall(r"([\d.]+)%", said)]
    expected = [*(100 * weights[word] for word in words), 100 * math.exp(found.best.log_probs[1])]
    assert shares == pytest.approx(expected, abs=0.7)
    assert texts(page, "#lines [data-weight]") == [f"{share:.0f}%" for share in shown_weights(page)]
    page.evaluate("go({ y: 'r', t: 0 })")
    assert texts(page, "#top tbody th") == ["d"]  # the word of the reference, although others are more probable


def shown_weights(browser: Browser) -> list[float]:
    """The weights of the table, in percent, that are large enough to stand above the source words."""
    return [100 * weight for weight in column(browser) if weight >= 0.02]


@needs_chromium
def test_controls_appear_only_where_there_is_a_choice(browser: Browser, tmp_path: Path) -> None:
    seen = """[...document.querySelectorAll('main label, main > .bar button, #difference')].filter((one) =>
        one.checkVisibility({ visibilityProperty: true })).map((one) => (one.firstChild.textContent.trim()))"""
    found = record(make_translator(score="dot"), Example("a b", ()), RULES)
    one = dataclasses.replace(found, tree=dataclasses.replace(found.tree, best=found.tree.best[:1]))
    page = opened(browser, page_with(Example("a b", ()), one), tmp_path / "page.html")
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    assert page.evaluate(seen) == ["Guess where it looks"]
    opened(browser, page_of(["a b", "c"], ["d", "e"], 2), tmp_path / "page.html", place="#m=1&o=map")
    assert page.evaluate(seen) == [
        *("Sentence", "Translation", "Model", "Head", "Sort sentences by"),
        *("Guess where it looks", "Difference between the models"),
    ]


@needs_chromium
def test_sections_open_by_keyboard_and_by_address(browser: Browser, tmp_path: Path) -> None:
    page = opened(browser, page_of(["a b c"]), tmp_path / "page.html")
    assert count(page, "main > details:not([hidden])") == 5
    assert count(page, "details[open]") == 0
    for part in ("map", "numbers"):
        page.evaluate(f"document.querySelector('#{part}-part summary').focus()")
        page.press("Enter", 13)
    page.wait_for("location.hash === '#o=map.numbers'")
    address = page.evaluate("location.href")
    page.press("ArrowRight", 39)
    assert page.evaluate("location.hash") == "#t=1&o=map.numbers"
    browser.open("about:blank", 1200)
    browser.open(address, 1200)
    shown = "[...document.querySelectorAll('details[open]')].map((part) => part.id).join()"
    assert page.evaluate(shown) == "map-part,numbers-part"
    assert page.evaluate("document.querySelector('#map-part').getBoundingClientRect().top < innerHeight")
    rows = "[...document.querySelectorAll('#measures [data-name]:not([hidden])')]"
    measures = page.evaluate(f"{rows}.map((row) => [...row.cells].map((one) => one.textContent))")
    of_word = ["probability", "loss", "mean loss", "entropy", "largest weight", "positions above 0.1", "agreement"]
    assert [name for name, *_ in measures][:7] == of_word
    weights, values = column(page), {name: value for name, value, _ in measures[:7]}
    assert float(values["largest weight"]) == pytest.approx(max(weights), abs=6e-3)
    assert int(values["positions above 0.1"]) == sum(weight > 0.1 for weight in weights)
    assert all(re.fullmatch(r"-?[\d.]+", value) and len(meaning) > 10 for _, value, meaning in measures)


@pytest.fixture(scope="module")
def rich_page() -> Page:
    """Two models, all of their heads, gold links and two validations: everything that a page can have."""
    part = {"hidden_size": 8, "num_layers": 2, "num_heads": 2, "feed_forward_size": 8}
    kinds = {"encoder": {"kind": "self_attention", **part}, "decoder": {"kind": "transformer", **part}}
    examples, systems = [Example("a b c d e f g", ("g f e d c b a",)), Example("a b", ("b a",))], []
    for translator in (make_translator(score="general"), make_translator(model={"embedding_size": 8, **kinds})):
        records = [record(translator, example, RULES, all_heads=True) for example in examples]
        for number, one in enumerate(records):
            size = one.reference.alignment.shape
            frames = [torch.full(size, 1 / size[2]), torch.eye(size[2])[: size[0], None].expand(size)]
            validations = [Validation(100 * n, as_bytes(frame), 2.0 / n, 0.5) for n, frame in enumerate(frames, 1)]
            records[number] = dataclasses.replace(one, validations=validations, measures={**one.measures, "AER": 0.25})
        heads = list_heads(translator.model.decoder, [one.best.heads for one in records], patterns=True)
        systems.append(System(f"model {len(systems)}", "dot", "q^T k", (False, False), records, heads))
    return make_page("A page", page_data(examples, systems, [GoldLinks({(0, 0)}, {(0, 0), (1, 1)})] * 2))


EVERYTHING = "o=map.occlusion.tree.heads.numbers.save"


@needs_chromium
@covering(
    "place, width, scheme",
    (f"#{EVERYTHING}&t=1&v=2", f"#{EVERYTHING}&m=1&y=0&d=1&a=1.source.2", "#g=1&y=0"),
    (360, 1400),
    ("light", "dark"),
)
def test_everything_is_legible(
    browser: Browser, rich_page: Page, tmp_path: Path, width: int, scheme: str, place: str
) -> None:
    browser.prefer(scheme, touch=width < 600)
    page = opened(browser, rich_page, tmp_path / "page.html", width, place)
    hints = page.evaluate("['keys', 'touch'].map((name) => document.querySelector(`.${name}`).checkVisibility())")
    assert hints == [width > 600, width < 600]
    shown = page.read_legibility()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    browser.prefer("light")
    assert len(shown) > (30 if "g=1" in place else 100)
    assert [one for one in shown if one["size"] < 11] == []
    assert [one for one in shown if one["cut"]] == []
    assert sum(one["contrast"] is None for one in shown) < 0.3 * len(shown)
    assert [one for one in shown if (one["contrast"] or 21) < 4.5] == []
    if PICTURES:
        page.save_picture(Path(PICTURES) / f"explorer-{width}-{scheme}-{'-'.join(re.findall('[a-z]=1', place))}.png")


@needs_chromium
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_lines_of_the_chosen_word_stand_out(browser: Browser, tmp_path: Path, scheme: str) -> None:
    """Graphics need a contrast of 3 (WCAG 2.2, 1.4.11); the width is the weight."""
    browser.prefer(scheme)
    page = opened(browser, page_of(["a b c"]), tmp_path / "page.html", place="#t=1")
    chosen = """[...document.querySelectorAll('#lines [data-link^="1,"]')]"""
    names = ("stroke", "stroke-opacity", "stroke-width")
    lines = page.evaluate(f"{chosen}.map((line) => {list(names)}.map((name) => line.getAttribute(name)))")
    back = page.evaluate("colour('back')").replace("#fff", "#ffffff")
    browser.prefer("light")
    ((ink, share),) = {(ink, share) for ink, share, _ in lines}
    assert share == "1"
    light, dark = sorted((luminance(ink), luminance(back)), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 3
    weights = [weight for weight in column(page) if weight >= 0.02]
    assert sorted(float(width) for *_, width in lines) == pytest.approx(
        [0.8 + 13 * weight for weight in sorted(weights)], abs=0.06
    )


def luminance(colour: str) -> float:
    """Relative luminance of #rrggbb (WCAG 2.2)."""
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@needs_chromium
def test_play_shows_one_validation_after_another(browser: Browser, rich_page: Page, tmp_path: Path) -> None:
    page = opened(browser, rich_page, tmp_path / "page.html")
    page.evaluate(
        "{ const wait = setTimeout; window.setTimeout = (act, pause, ...given) => wait(act, pause / 4, ...given); }"
    )
    assert texts(page, "#frame") == ["The best model of the run, alignment error rate 0.25"]
    page.evaluate(
        "window.said = []; new MutationObserver(() => said.push(at('frame').textContent))"
        ".observe(at('frame'), { childList: true })"
    )
    act(page, "#play")
    assert texts(page, "#play") == ["Pause"]
    page.wait_for("state.v === 2")
    assert "entropy (nats)" in texts(page, "#curve text")
    assert {"0", "100", "200", "update of the training", "2.00"} <= set(texts(page, "#curve text"))
    page.wait_for("!playing")
    assert [texts(page, "#play"), page.evaluate("state.v")] == [["Play"], 0]
    frames = [text.partition(":")[0] for text in dict.fromkeys(page.evaluate("said"))]
    assert frames[:2] == ["Update 100, validation 1 of 2", "Update 200, validation 2 of 2"]
    act(page, "#play")
    act(page, "#play")
    assert [texts(page, "#play"), page.evaluate("state.v")] == [["Play"], 1]
    assert texts(page, "#frame") == ["Update 100, validation 1 of 2: entropy 2.00 nats, alignment error rate 0.50"]
    assert column(page) == pytest.approx([1 / 8] * 8, abs=3e-3)


def test_sentences_that_cannot_be_shown_are_left_out(here: Project, caplog: pytest.LogCaptureFixture) -> None:
    Path("in.txt").write_text(f"a b\n\n{'a ' * 300}\nc\n", encoding="utf-8")
    Path("out.txt").write_text("B A\nA\nB\nC\n", encoding="utf-8")
    Path("gold.txt").write_text("0-1 1-0\n\n\n0-0\n", encoding="utf-8")
    with caplog.at_level("WARNING", logger="nmt"):
        page = nmt.explore(model=here.run, src="in.txt", ref="out.txt", gold="gold.txt")
    assert "left out: 2 sentences" in caplog.text
    assert [(each["source"], each["gold"]) for each in data_of(page.html)["items"]] == [
        ("a b", [[0, 1, 1], [1, 0, 1]]),
        ("c", [[0, 0, 1]]),
    ]


def test_models_of_other_languages_are_refused(here: Project) -> None:
    shutil.copytree(here.run / "best", "other")
    config = Path("other/config.yaml")
    text = config.read_text(encoding="utf-8").replace("src_language: en", "src_language: fr")
    config.write_text(text, encoding="utf-8")
    with pytest.raises(nmt.ConfigError, match="`against='other'`: translates fr-de, not en-de"):
        nmt.explore("a b", model=here.run, against="other")


@needs_chromium
def test_what_is_saved(browser: Browser, tmp_path: Path) -> None:
    page = opened(browser, page_of(["a b c"]), tmp_path / "page.html")
    page.evaluate(
        "window.saved = []; HTMLAnchorElement.prototype.click = () => {}; URL.createObjectURL = (blob) => "
        "{ blob.text().then((text) => saved.push([blob.type, text])); return '#'; };"
    )
    for name in ("svg", "json", "links", "png"):
        page.evaluate(f"document.querySelector('#save-{name}').click()")
    page.wait_for("saved.length === 4")
    saved = dict(page.evaluate("saved"))
    assert saved["image/svg+xml"].startswith("<svg")
    metadata = json.loads(saved["application/json"])
    assert metadata["src"] == ["a", "b", "c", "⟨eos⟩"]
    assert len(metadata["weights"]) == len(metadata["tgt"])
    assert re.fullmatch(r"(\d+-\d+ ?)*\n", saved["text/plain"])


def test_the_command_writes_a_page(here: Project, cli: Cli) -> None:
    assert cli("attention", "--split", "test", "--sample", "4", "--output", "page.html").code == 0
    data = data_of(Path("page.html").read_text(encoding="utf-8"))
    assert len(data["items"]) == 4
    assert data["systems"][0]["name"] == "reversal"
    assert all(item["reference"] for item in data["items"])
    page = nmt.explore("a b c", model=here.run, against=here.run)
    assert page.html.count('id="data"') == 1
    assert [system["name"] for system in data_of(page.html)["systems"]] == ["reversal", "reversal (2)"]


def test_each_sentence_has_its_alignment_error_rate(here: Project) -> None:
    Path("in.txt").write_text("a b c\na b\n", encoding="utf-8")
    Path("out.txt").write_text("C B A\nB A\n", encoding="utf-8")
    Path("gold.txt").write_text("0-2 1-1 2-0\n0-0 1?1\n", encoding="utf-8")
    page = nmt.explore(model=here.run, src="in.txt", ref="out.txt", gold="gold.txt")
    found = data_of(page.html)
    for number, line in enumerate(("0-2 1-1 2-0", "0-0 1?1")):
        for name in ("in.txt", "out.txt"):
            Path(f"one-{name}").write_text(f"{Path(name).read_text().splitlines()[number]}\n", encoding="utf-8")
        Path("one.txt").write_text(f"{line}\n", encoding="utf-8")
        expected = nmt.measure_attention(
            model=here.run, src="one-in.txt", ref="one-out.txt", forced=True, gold="one.txt"
        ).error_rate
        assert found["items"][number]["of"][0]["measures"]["AER"] == pytest.approx(expected, abs=1e-3)
    Path("gold.txt").write_text("0-9\n0-0\n", encoding="utf-8")
    with pytest.raises(nmt.DataError, match="line 1: 0-9, but the sentences have 3 and 3 words"):
        nmt.explore(model=here.run, src="in.txt", ref="out.txt", gold="gold.txt")


@needs_chromium
@pytest.mark.parametrize("before", ["display: none", "width: 320px"])
def test_lines_are_drawn_again_when_the_frame_of_a_notebook_changes(browser: Browser, before: str) -> None:
    """A frame can be hidden at first, and then has no width at all."""
    page = page_of(["the cat sat the cat sat the cat sat the cat sat"])
    browser.open("about:blank", 1200)
    browser.evaluate(
        "(() => { const frame = document.createElement('iframe'); frame.id = 'frame'; "
        f"frame.style = 'height: 600px; {before}'; frame.srcdoc = {json.dumps(page.html)}; "
        "document.body.append(frame); })()"
    )
    lines = "document.getElementById('frame').contentDocument?.querySelector('#lines svg')"
    browser.wait_for(f"Boolean({lines})")
    narrow = browser.evaluate(f"{lines}.getAttribute('viewBox')")
    browser.evaluate("document.getElementById('frame').style = 'height: 600px; width: 1000px'")
    browser.wait_for(f"{lines}.getAttribute('viewBox') !== {json.dumps(narrow)}", 5)
