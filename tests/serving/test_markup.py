"""Translation of HTML: no tag, attribute or text is lost or duplicated, for any document and model."""

import random
import re
import time
from html.parser import HTMLParser
from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from lxml import etree
from real_server import golden

from nmt.serving.markup import read_html
from nmt.text.processor import TextProcessor
from nmt.text.tokenizers import WhitespaceTokenizer
from nmt.text.vocabulary import Vocabulary
from nmt.translation.document import Document
from nmt.translation.hypertext import VOID
from nmt.translation.running_text import MAX_TAGS
from nmt.translation.tags import Element, best_run, link_words, place_tags
from nmt.translation.translation import Translation

PROCESSOR = TextProcessor(WhitespaceTokenizer(), WhitespaceTokenizer(), Vocabulary([]), Vocabulary([]))


def shout(document: Document) -> str:
    """The document with each word in capitals, in its place."""
    return document.render([Translation(text.upper()) for text in document.texts], PROCESSOR)


@pytest.mark.parametrize(
    ("source", "texts", "expected"),
    [
        ("", [], ""),
        ("<p class='x'> a\n b </p>", ["a b"], '<p class="x"> A B </p>'),
        ("a<br>b<br/>c", ["a", "b", "c"], "A<br>B<br>C"),
        ("<ul><li>a<li>b</ul><hr>", ["a", "b"], "<ul><li>A</li><li>B</li></ul><hr>"),
        ("<table><td>a</td><TD>b</table>", ["a", "b"], "<table><td>A</td><td>B</td></table>"),
        ("a &amp; b &lt;c&gt; &eacute;&nbsp;", ["a & b \ue000 é"], "A &amp; B &lt;c&gt; É\xa0"),
        ("&nbsp;a", ["a"], "\xa0A"),
        pytest.param(f"a &#{'1' * 5000};", ["a \ufffd"], "A \ufffd", id="huge"),
        pytest.param(f"a&#{'0' * 5000}65;", ["aA"], "AA", id="zeros"),
        ("1 < 2 <3 & 4", ["1 < 2 <3 & 4"], "1 &lt; 2 &lt;3 &amp; 4"),
        ("<b>a</b>, <i>b</i>!", ["a, b!"], "<b>A</b>, <i>B</i>!"),
        ("(see <b>it</b>).", ["(see it)."], "(SEE <b>IT</b>)."),
        ("(<b><i>a</i></b>), <b>b.</b>", ["(a), b."], "(<b><i>A</i></b>), <b>B.</b>"),
        ("a<b>.</b> <img>“<a>c</a>”", ["a. “c”"], "A<b>.</b> <img>“<a>C</a>”"),
        ("<a href='?a&b=\"c>'>a <i>b</i></a> c", ["a b c"], '<a href="?a&amp;b=&quot;c&gt;">A <i>B</i></a> C'),
        ("un<b>believ</b>able x", ["unbelievable x"], "<b>UNBELIEVABLE</b> X"),
        ("a<!-- <p> --> b", ["a b"], "A<!-- <p> --> B"),
        ("a <img alt='x > y' hidden> b", ["a b"], 'A <img alt="x &gt; y" hidden=""> B'),
        ("a<wbr>b <p>c<source>d", ["ab", "c", "d"], "AB<wbr> <p>C<source>D</p>"),
        ("<script>a<b>'<p>&lt;'</script>b", ["b"], "<script>a<b>'<p>&lt;'</script>B"),
        ("<STYLE>a</style >b<textarea>c<p></textarea>", ["b"], "<style>a</style>B<textarea>c&lt;p&gt;</textarea>"),
        ("<pre>a <b>b</b><pre>c</pre></pre>d", ["d"], "<pre>a <b>b</b><pre>c</pre></pre>D"),
        ("run <code>ls <b>-l</b><!--x--></code> now", ["run \ue000 now"], "RUN <code>ls <b>-l</b><!--x--></code> NOW"),
        ("<div translate=no>a<p>b</p></div><p>c", ["c"], '<div translate="no">a<p>b</p></div><p>C</p>'),
        ("<p translate='yes' title='translate=no'>a", ["a"], '<p translate="yes" title="translate=no">A</p>'),
        ("a <b>b<div>c</div>d</b> e", ["a", "b", "c", "d", "e"], "A <b>B<div>C</div>D</b> E"),
        ("<b>a<i>b</b>c</i>", ["abc"], "<b><i>ABC</i></b>"),
        ("<?x y?></ z>a<![CDATA[b]]>", ["a"], "<!--?x y?--><!-- z-->A<!--[CDATA[b]]-->"),
        (
            "<!-- x --><html lang=de><head></head>a",
            ["a"],
            '<!-- x --><html lang="de"><head></head><body>A</body></html>',
        ),
        (
            '<!DOCTYPE html PUBLIC "a" \'b"c\'><body id=x>a',
            ["a"],
            '<!DOCTYPE html PUBLIC "a" "b&quot;c"><html><body id="x">A</body></html>',
        ),
        ("<svg><!DOCTYPE html>a</svg>b", ["b"], "<html><body><svg><!DOCTYPE html>a</svg>B</body></html>"),
        ("a<p title='>b", ["a"], "A"),
        ("a\x00b\x1b", ["a\ufffdb\x1b"], "A\ufffdB\x1b"),
    ],
)
def test_text_is_translated_and_the_rest_is_kept(source: str, texts: list[str], expected: str) -> None:
    document = read_html(source)
    assert document.texts == texts
    assert shout(document) == expected


@pytest.mark.parametrize(
    "source",
    [
        'I am old, <span translate="no">@bob</span>!',
        'Do you know <span translate="no">{name}</span>?',
        'I know <span translate="no">{name}</span>, and she sleeps.',
        "I saw <code>x</code>, <code>y</code> and <code>z</code>.",
        'Hello <span translate="no">@bob</span>, I am <b>old</b>.',
        '<span class="notranslate">A B</span> is old, and 1,000.50 too.',
    ],
)
def test_protected_text_has_a_space_beside_a_word_and_none_before_a_mark(source: str) -> None:
    reader = golden().reader
    document = read_html(source)
    passages = reader.read(document.texts)
    (units,) = [passage.units for passage in passages]
    ranked = golden().translate_units(units, 1, with_alignment=True)
    found = document.render([reader.join(passages[0], ranked)[0]], golden().processor)
    for match in re.finditer(r"<(span|code)\b.*?</\1>", source):
        assert found.count(match[0]) >= 1
    for match in re.finditer(r"(.?)<(?:span|code)\b.*?</(?:span|code)>(.?)", found):
        assert match[1] in ("", " ", ">")
        assert match[2] in ("", " ", "<", *",.!?")
    assert ("1,000.50" in found) == ("1,000.50" in source)


@pytest.mark.parametrize(
    "source",
    [
        'Hello {name}, see <a href="https://a.de/?a=1&amp;b=2">https://a.de/?a=1&amp;b=2</a> now.',
        "Hi <b>{user.name}</b>, write to <i>a@b.org</i>, %s&lt;br&gt; &lt;x/&gt;",
    ],
)
def test_no_tag_is_put_into_a_span(source: str) -> None:
    document = read_html(source)
    passages = golden().reader.read(document.texts)
    units = [unit for passage in passages for unit in passage.units]
    ranked = iter(golden().translate_units(units, 1, with_alignment=True))
    joined = [golden().reader.join(passage, [next(ranked) for _ in passage.units])[0] for passage in passages]
    found = document.render(joined, golden().processor)
    for span in ("{name}", ">https://a.de/?a=1&amp;b=2<", "{user.name}", "a@b.org", "&lt;br&gt;", "&lt;x/&gt;"):
        assert found.count(span.strip("<>")) == source.count(span.strip("<>"))
    assert "<br>" not in found
    assert "<x/>" not in found


OLD_SHE_SLEEPS = "I am old. She sleeps."


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("I am old.<sup>1</sup> She sleeps.", ["I am old. She sleeps."]),
        ("x<sup>2</sup> and 10<sup>th and</sup> a<sup>[12]</sup>", ["x and 10th and a"]),
        ('I am old.<sup id="r"><a href="#1">[1]</a></sup> She<a href="#2"><sup>2</sup></a> sleeps.', [OLD_SHE_SLEEPS]),
        ('I am old.<sup><a href="#1"><i>[</i>1<i>]</i></a></sup> She <a href="#2">sleeps</a>.', [OLD_SHE_SLEEPS]),
        ('I am<a href="#2"><sup>th</sup></a> old. <a href="#3"><sup>1</sup> He.</a>', ["I amth old. He."]),
        ("<ruby>book<rp>(</rp><rt>livre</rt><rp>)</rp></ruby> is old", ["book is old"]),
    ],
)
def test_footnotes_and_ruby_are_no_running_text(source: str, texts: list[str]) -> None:
    document = read_html(source)
    assert document.texts == texts
    kept = re.findall(r"<rt>.*?</rt>|<sup[^>]*>(?:<[ai][^>]*>)*[\[\d\]]+(?:</[^>]+>)+", source)
    assert len(kept) == source.count("<rt>") + len(re.findall(r"<sup", source)) - source.count("th")
    assert all(shout(document).count(part) == 1 for part in kept)


def element(name: str, first: int, last: int, *children: Element) -> Element:
    return Element(f"<{name}>", f"</{name}>", first, last, list(children))


@pytest.mark.parametrize(
    ("elements", "links", "expected"),
    [
        ([element("b", 1, 2)], [(0, 1), (1, 0), (2, 2)], "<b>X</b> Y Z"),
        ([element("b", 1, 2)], [(1, 0), (1, 2), (0, 1)], "<b>X</b> Y Z"),
        ([element("b", 1, 2)], [(1, 0), (1, 2)], "<b>X Y Z</b>"),
        ([element("b", 1, 2)], [(0, 0), (2, 1)], "X <b></b>Y Z"),
        ([element("b", 0, 3)], [], "<b>X Y Z</b>"),
        ([element("b", 0, 1), element("i", 2, 3)], [(0, 2), (2, 0)], "<i>X</i> Y <b>Z</b>"),
        ([element("b", 0, 1), element("i", 1, 2)], [(0, 0), (0, 1), (1, 1), (1, 2)], "<b>X Y</b> <i>Z</i>"),
        ([element("b", 0, 1), element("i", 1, 2)], [(0, 0), (0, 1), (0, 2), (1, 1)], "<b>X Y Z</b> <i></i>"),
        ([element("b", 0, 2, element("i", 1, 2))], [(0, 2), (1, 1)], "X <b><i>Y</i> Z</b>"),
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
    attended = Translation("Haus rot", tokens, src_tokens, alignment=weights)
    assert link_words("red house", attended, PROCESSOR) == [(1, 0), (0, 1)]
    assert link_words("red house", Translation("Haus rot"), PROCESSOR) == [(0, 0), (1, 1)]
    assert link_words("red house", Translation(""), PROCESSOR) == []


def test_the_punctuation_at_the_end_is_that_at_the_end_of_the_source() -> None:
    weights = torch.zeros(3, 1, 3)
    weights[:2, 0, 0] = 1  # that of EOS is ignored
    attended = Translation("hier.", ["▁hier", "."], ["▁here", "."], alignment=weights)
    assert link_words("here.", attended, PROCESSOR) == [(0, 0), (1, 1)]
    assert read_html("<b>here</b>.").render([attended], PROCESSOR) == "<b>hier</b>."
    assert read_html("<b>here.</b>").render([attended], PROCESSOR) == "<b>hier.</b>"


def test_no_tag_parts_a_word_from_its_punctuation_if_it_follows_a_space() -> None:
    picture = Element("<img>", first=1, last=1, spaced=True)
    assert place_tags([picture], [(0, 0)], 2, ["X", ",", "Y"], {1}) == "X, <img> Y"


@given(st.lists(st.integers(-1, 1), max_size=12))
def test_the_best_run_has_the_largest_sum(votes: list[int]) -> None:
    start, end = best_run(votes)
    runs = [sum(votes[i:j]) for i in range(len(votes)) for j in range(i + 1, len(votes) + 1)]
    assert sum(votes[start:end]) == max([0, *runs])


def content(source: str) -> tuple[list[str], list[str]]:
    """Elements with their attributes, comments, and characters but spaces, all sorted, as a tree parser reads them."""
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True)
    root = etree.fromstring(f"<html><body>{source}".encode(), parser)
    markup = [f"<!--{comment.text}-->" for comment in root.iter(etree.Comment)]
    markup += [str((element.tag, sorted(element.attrib.items()))) for element in root.iter(etree.Element)]
    return sorted(markup), sorted("".join("".join(root.itertext(etree.Element)).split()))


FRAGMENTS = (
    "<b> </b> <i> </i> <a\thref='x>y'> </a> <span\ttranslate=no> </span> <p> </p> <br> <div\tclass=notranslate> </div> "
    "<img\talt=a> <code> </code> <pre> </pre> <script> </script> <!--\tc\t--> <!-- <td\tx &amp; &lt; &nbsp; < > one "
    "two.\tthree 日本 \" ' </ <? = <a\tb=' <svg> </svg> <textarea> </textarea> <title> </title> <ul> <li> <wbr> <o:p>"
)
PIECES = [*FRAGMENTS.split(" "), *["<b>", "</b>", "<i>", "</i>", "one", "two ", " "] * 4]


class Tags(HTMLParser):
    """Whether tags are well nested, by an independent parser."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=False)
        self.open: list[str] = []
        self.nested = True
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self.nested = bool(self.open) and self.open.pop() == tag and self.nested


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join), st.randoms())
@settings(max_examples=150, deadline=None)
def test_tags_are_kept_well_nested_and_not_written_for_any_alignment(source: str, chance: random.Random) -> None:
    assume("<script>" not in source or "<!--" not in source)  # in a comment, </script> may end nothing
    document = read_html(source)
    translations = []
    for text in document.texts:
        count, length = len(text.split()), chance.randint(0, 8)
        weights = torch.tensor([[[chance.random() for _ in range(count + 1)]] for _ in range(length + 1)])
        words = [chance.choice(["x", "<b>", "&", "&lt;"]) for _ in range(length)]
        translations.append(Translation(" ".join(words), words, text.split(), alignment=weights))
    rendered = document.render(translations, PROCESSOR)
    untranslated = content(document.render([Translation("") for _ in translations], PROCESSOR))[1]
    written = "".join(each.text for each in translations).replace(" ", "")
    assert content(rendered) == (content(source)[0], sorted([*untranslated, *written]))
    tags = Tags(rendered)
    assert tags.nested
    assert not tags.open


def test_tags_are_placed_by_a_real_model() -> None:
    source = "<p>The <b>old</b> woman <a href='x'>reads a book</a>.</p>"
    document, model = read_html(source), golden()
    translations = [best for (best,) in model.translate(document.texts, 1, with_alignment=True)]
    rendered = document.render(translations, model.processor)
    assert content(rendered) == (content(source)[0], sorted(translations[0].text.replace(" ", "")))
    assert Tags(rendered).nested


@pytest.mark.parametrize(
    "source",
    [
        "<a " * 33_000,
        "<a ='" * 20_000,
        "<!--" * 25_000,
        "<script>" * 12_000,
        "</b>" * 25_000,
        "<b>" * 8_000 + "x" + "</b>" * 8_000,
        "<i>" * 16_000 + "</b>" * 12_000,
        "<div>" * 14_000 + "x" + "</p>" * 7_000,
        "<table>" * 14_000 + "x",
        "<b>x " * 5_000,
        "<b><p>" * 8_000 + "x",
        "a" + " " * 99_998 + "b",
        "&nbsp;" * 16_000 + "x",
        "<b translate=no>" * 6_000 + "x",
        "<a " + "= " * 49_000,
        f"<a {' '.join(f'x{n}' for n in range(3_000))}>x",
        f"<a title='{'x' * 99_000}'>x",
        f"<{'a' * 99_000}>x",
        "&" * 100_000,
        "&#" * 50_000,
        f'<!DOCTYPE a [<!ENTITY x "{"y" * 9_000}">]>' + "&x;" * 30_000,
        "\0" * 100_000,
    ],
    ids=lambda source: ascii(source[:8]),
)
def test_no_document_takes_long(source: str) -> None:
    start = time.process_time()
    rendered = shout(read_html(source))
    assert time.process_time() - start < 5
    assert len(rendered) < 10 * len(source)
    written, given = (sorted(map(str.upper, content(html)[1])) for html in (rendered, source))
    assert written == given


def test_with_many_tags_each_text_is_translated_separately() -> None:
    document = read_html("a<b>b &amp; c</b>" * MAX_TAGS)
    assert len(document.texts) == 2 * MAX_TAGS
    assert shout(document) == "A<b>B &amp; C</b>" * MAX_TAGS
