"""Translation of HTML: no tag is lost, duplicated or badly nested, for any document and model."""

import html
import random
import re
from html.parser import HTMLParser
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from real_server import golden

from nmt.serving.markup import MAX_TAGS, Document
from nmt.serving.tags import Element, best_run, link_words, place_tags
from nmt.text.processor import TextProcessor
from nmt.text.tokenizers import WhitespaceTokenizer
from nmt.text.vocabulary import Vocabulary
from nmt.translation.translation import Translation

PROCESSOR = TextProcessor(WhitespaceTokenizer(), WhitespaceTokenizer(), Vocabulary([]), Vocabulary([]))


def shout(document: Document) -> str:
    """The document with each word in capitals, in its place."""
    return document.render([Translation(text.upper()) for text in document.texts], PROCESSOR)


@pytest.mark.parametrize(
    ("source", "texts", "expected"),
    [
        ("", [], ""),
        ("a b", ["a b"], "A B"),
        ("<p class='x'> a\n b </p>", ["a b"], "<p class='x'> A B </p>"),
        ("a<br>b<br/>c", ["a", "b", "c"], "A<br>B<br/>C"),
        ("<ul><li>a<li>b</ul><hr>", ["a", "b"], "<ul><li>A<li>B</ul><hr>"),
        ("<table><td>a</td><TD>b</table>", ["a", "b"], "<table><td>A</td><TD>B</table>"),
        ("a &amp; b &lt;c&gt; &eacute;&nbsp;", ["a & b <c> é"], "A &amp; B &lt;C&gt; É&nbsp;"),
        ("&nbsp;a", ["a"], "&nbsp;A"),
        ("a&#0065;&#x41;", ["aAA"], "AAA"),
        pytest.param(f"a &#{'1' * 5000};", ["a \ufffd"], "A \ufffd", id="huge"),
        pytest.param(f"a&#{'0' * 5000}65;", ["aA"], "AA", id="zeros"),
        ("1 < 2 <3 & 4", ["1 < 2 <3 & 4"], "1 &lt; 2 &lt;3 &amp; 4"),
        ("a <b>b</b> c", ["a b c"], "A <b>B</b> C"),
        ("<b>a</b>, <i>b</i>!", ["a, b!"], "<b>A,</b> <i>B!</i>"),
        ("<a href='/?a=1&b=<c>'>a <i>b</i></a> c", ["a b c"], "<a href='/?a=1&b=<c>'>A <i>B</i></a> C"),
        ("un<b>believ</b>able x", ["unbelievable x"], "<b>UNBELIEVABLE</b> X"),
        ("a<!-- <p> --> b", ["a b"], "A<!-- <p> --> B"),
        ("a <img alt='x > y'> b", ["a b"], "A <img alt='x > y'> B"),
        ("a<sup>1</sup>", ["a1"], "<sup>A1</sup>"),
        ("a <span></span>b", ["a b"], "A <span></span>B"),
        ("<script>a<b>'<p>'</script>b", ["b"], "<script>a<b>'<p>'</script>B"),
        ("<STYLE>a</style >b<textarea>c<p></textarea>", ["b"], "<STYLE>a</style >B<textarea>c<p></textarea>"),
        ("<pre>a <b>b</b><pre>c</pre></pre>d", ["d"], "<pre>a <b>b</b><pre>c</pre></pre>D"),
        ("run <code>ls <b>-l</b></code> now", ["run now"], "RUN <code>ls <b>-l</b></code> NOW"),
        ("<p translate=no>a<p>b</p></p><p>c", ["c"], "<p translate=no>a<p>b</p></p><p>C"),
        ("<b class='x notranslate'>a</b> b", ["b"], "<b class='x notranslate'>a</b> B"),
        ("<p translate='yes' title='translate=no'>a", ["a"], "<p translate='yes' title='translate=no'>A"),
        ("<b><p>a</b></p><i>b", ["a", "b"], "<b><p>A</b></p><i>B"),
        ("<b>a<i>b</b>c</i>", ["a", "b", "c"], "<b>A<i>B</b>C</i>"),
        ("<!DOCTYPE html><?x y?></ z><title>a</title>", ["a"], "<!DOCTYPE html><?x y?></ z><title>A</title>"),
        ("a<p title='>b", ["a"], "A<p title='>b"),
        ("a<!-- b", ["a"], "A<!-- b"),
        ("a<script>b", ["a"], "A<script>b"),
        ("<p>123</p><p>--</p>", ["123"], "<p>123</p><p>--</p>"),
    ],
)
def test_text_is_translated_and_the_rest_is_kept(source: str, texts: list[str], expected: str) -> None:
    document = Document(source)
    assert document.texts == texts
    assert shout(document) == expected


def test_the_model_cannot_write_tags() -> None:
    document = Document("<p>a <b>b</b></p>")
    evil = Translation('<script>alert("1")</script> & &lt;')
    assert (
        re.sub("</?[bp]>", "", document.render([evil], PROCESSOR))
        == '&lt;script&gt;alert("1")&lt;/script&gt; &amp; &amp;lt;'
    )


@pytest.mark.parametrize(
    ("elements", "links", "expected"),
    [
        ([Element("<b>", "</b>", 1, 2)], [(0, 1), (1, 0), (2, 2)], "<b>X</b> Y Z"),
        ([Element("<b>", "</b>", 1, 2)], [(1, 0), (1, 2), (0, 1)], "<b>X</b> Y Z"),
        ([Element("<b>", "</b>", 1, 2)], [(1, 0), (1, 2)], "<b>X Y Z</b>"),
        ([Element("<b>", "</b>", 1, 2)], [(0, 0), (2, 1)], "X <b></b>Y Z"),
        ([Element("<b>", "</b>", 0, 3)], [], "<b>X Y Z</b>"),
        ([Element("<b>", "</b>", 0, 1), Element("<i>", "</i>", 2, 3)], [(0, 2), (2, 0)], "<i>X</i> Y <b>Z</b>"),
        ([Element("<b>", "</b>", 0, 2, [Element("<i>", "</i>", 1, 2)])], [(0, 2), (1, 1)], "X <b><i>Y</i> Z</b>"),
        ([Element("<img>", first=1, last=1, spaced=True)], [(0, 0), (1, 1), (2, 2)], "X <img> Y Z"),
        ([Element("<img>", first=3, last=3, glued=True)], [(0, 0)], "X Y Z<img>"),
        ([Element("<img>", first=0, last=0)], [(0, 2)], "<img>X Y Z"),
    ],
)
def test_tags_follow_their_words(elements: list[Element], links: Any, expected: str) -> None:
    assert place_tags(elements, links, 3, ["X", "Y", "Z"]) == expected


def test_words_are_linked_by_attention() -> None:
    tokens, src_tokens = ["▁Ha", "us", "▁rot"], ["▁red", "▁ho", "use"]
    weights = torch.zeros(4, 2, 4)
    for target, source in enumerate([1, 2, 0, 3]):
        weights[target, :, source] = 0.5
    found = Translation("Haus rot", tokens, src_tokens, alignment=weights)
    assert link_words("red house", found, PROCESSOR) == [(1, 0), (0, 1)]
    assert link_words("red house", Translation("Haus rot"), PROCESSOR) == [(0, 0), (1, 1)]
    assert link_words("red house", Translation(""), PROCESSOR) == []


@given(st.lists(st.integers(-1, 1), max_size=12))
def test_the_best_run_has_the_largest_sum(votes: list[int]) -> None:
    start, end = best_run(votes)
    runs = [sum(votes[i:j]) for i in range(len(votes)) for j in range(i + 1, len(votes) + 1)]
    assert sum(votes[start:end]) == max([0, *runs])


PIECES = st.sampled_from(
    [
        "<b>",
        "</b>",
        "<i>",
        "</i>",
        "<a href='x>y'>",
        "</a>",
        "<span translate=no>",
        "</span>",
        "<p>",
        "</p>",
        "<br>",
        "<div class=notranslate>",
        "</div>",
        "<img alt=a>",
        "<code>",
        "</code>",
        "<pre>",
        "</pre>",
        "<script>",
        "</script>",
        "<!-- c -->",
        "<!--",
        "<td x",
        "&amp;",
        "&lt;",
        "&nbsp;",
        "<",
        ">",
        " ",
        "one",
        "two. three",
        "日本",
        '"',
        "'",
        "</",
        "<?",
        "=",
        "<a b='",
    ]
)
WORDS = st.sampled_from(["eins", "zwei", "<b>", "</p>", "&amp;", '"', "<!--"])


class Tags(HTMLParser):
    """Tags in order, by an independent parser, and whether they are well nested."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=False)
        self.found: list[str] = []
        self.open: list[str] = []
        self.nested = True
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        self.found.append(self.get_starttag_text() or "")
        if tag not in ("br", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self.found.append(f"</{tag}>")
        self.nested = self.nested and bool(self.open) and self.open.pop() == tag

    def handle_comment(self, data: str) -> None:
        self.found.append(f"<!--{data}-->")


@given(st.lists(PIECES, max_size=25).map("".join), st.data())
@settings(max_examples=60, deadline=None)
def test_any_text_keeps_its_markup(source: str, data: st.DataObject) -> None:
    document = Document(source)
    written = [" ".join(data.draw(st.lists(WORDS, max_size=6))) for _ in document.texts]
    found = document.render([Translation(text) for text in written], PROCESSOR)
    untouched = document.render([Translation("") for _ in written], PROCESSOR)
    for text in written:
        for word in text.split():
            escaped = html.escape(word, quote=False)
            assert escaped in found
            found = found.replace(escaped, "", 1)
    assert sorted("".join(found.split())) == sorted("".join(untouched.split()))


@st.composite
def well_formed(draw: st.DrawFn, depth: int = 0) -> str:
    parts = []
    for _ in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["text", "inline", "block", "void"] if depth < 4 else ["text"]))
        if kind == "text":
            parts.append(draw(st.sampled_from(["one two ", "three", " four, five. ", "&lt;x&gt; ", " "])))
        elif kind == "void":
            parts.append(draw(st.sampled_from(["<br>", "<img alt='>'>", "<!--c-->"])))
        else:
            names = ["b", "i", "a", "span", "code"] if kind == "inline" else ["p", "div", "li", "h1", "td"]
            name = draw(st.sampled_from(names))
            parts.append(f"<{name} id={draw(st.integers(0, 9))}>{draw(well_formed(depth + 1))}</{name}>")
    return "".join(parts)


@given(well_formed(), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_well_nested_tags_stay_well_nested_for_any_alignment(source: str, chance: random.Random) -> None:
    document = Document(source)
    translations = []
    for text in document.texts:
        count, length = len(text.split()), chance.randint(0, 8)
        weights = torch.tensor([[[chance.random() for _ in range(count + 1)]] for _ in range(length + 1)])
        words = [chance.choice(["x", "<b>", "&"]) for _ in range(length)]
        translations.append(Translation(" ".join(words), words, text.split(), alignment=weights))
    before, after = Tags(source), Tags(document.render(translations, PROCESSOR))
    assert sorted(after.found) == sorted(before.found)
    assert after.nested
    assert not after.open


def test_tags_are_placed_by_a_real_model() -> None:
    document = Document("<p>The <b>old</b> woman <a href='x'>reads a book</a>.</p>")
    model = golden()
    found = model.translate(document.texts, 1, with_alignment=True)
    text = document.render([each for (each,) in found], model.processor)
    tags = Tags(text)
    assert sorted(tags.found) == sorted(["<p>", "<b>", "</b>", "<a href='x'>", "</a>", "</p>"])
    assert tags.nested
    assert re.sub(r"\s+", "", re.sub("<[^>]*>", "", text)) == found[0][0].text.replace(" ", "")


@pytest.mark.parametrize(
    "source",
    [
        "<a " * 33_000,
        "<a ='" * 20_000,
        "<!--" * 25_000,
        "<script>" * 12_000,
        "</b>" * 25_000,
        "<b>" * 8_000 + "x" + "</b>" * 8_000,
        "<b>x " * 5_000,
        "a" + " " * 99_998 + "b",
        "&nbsp;" * 16_000 + "x",
        "<b translate=no>" * 6_000,
        "<a " + "= " * 49_000,
        "&" * 100_000,
    ],
    ids=lambda source: source[:8],
)
def test_no_document_takes_long(source: str) -> None:
    found, expected = ("".join(html.unescape(text).upper().split()) for text in (shout(Document(source)), source))
    assert found == expected


def test_with_many_tags_each_text_is_translated_separately() -> None:
    source = "a<b>b</b>" * MAX_TAGS
    document = Document(source)
    assert len(document.texts) == 2 * MAX_TAGS
    assert shout(document) == re.sub(r"a|b(?=<)", lambda found: found[0].upper(), source)
