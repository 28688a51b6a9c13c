"""A page that contains a model translates as `nmt` does with the same rounded weights."""

import json
import os
import random
import re
import zipfile
from collections import Counter
from pathlib import Path
from urllib.parse import quote

import pytest
import torch
from benchmarks.exported import measure_page
from browser import Page as Browser
from browser import needs_chromium
from conftest import Cli, Project, errors, without_pictures

import nmt
from nmt.config import Config, load_config
from nmt.exporting import html
from nmt.exporting.formats import find_format
from nmt.models.build import build_model
from nmt.models.seq2seq import Seq2Seq
from nmt.models.storage import SavedModel
from nmt.search.searcher import ModelSearcher
from nmt.text.casing import Casing, lower, upper
from nmt.text.names import list_words
from nmt.text.normalization import Normalizer
from nmt.text.placeholders import TERM_MARKS, make_placeholders
from nmt.text.processor import TextProcessor
from nmt.text.sentences import SentenceSplitter
from nmt.text.tokenizers import SubwordTokenizer, WhitespaceTokenizer
from nmt.text.vocabulary import EOS_ID, UNK_ID, Vocabulary
from nmt.translation.protection import Protection
from nmt.translation.translator import Translator

FOLDER = Path(html.__file__).parent
SAMPLE = Path(nmt.__file__).parents[1] / "data/sample"
REAL = Path(os.environ.get("NMT_BENCH_DATA", "")) / "tatoeba-deu-eng-2018-05-13.zip"
PICTURES = os.environ.get("NMT_TEST_PICTURES")
"""A folder for screenshots, to look at."""
SMALL = (
    "model={embedding_size: 6, dropout: 0}",
    "model.encoder={hidden_size: 5}",
    "model.decoder={hidden_size: 10, initial_state: backward}",
)
BAHDANAU = ("model.decoder.order=bahdanau", "model.attention.score=additive")
SIDES = "encoder", "decoder"
SUBLAYERS = "hidden_size: 8, num_heads: 2, feed_forward_size: 12, num_layers: 3"
TRANSFORMER = (
    f"model.encoder={{kind: self_attention, {SUBLAYERS}}}",
    f"model.decoder={{kind: transformer, {SUBLAYERS}}}",
)
TWO = ("model.encoder.num_layers=2", "model.decoder.num_layers=2")
VARIANTS = {
    "luong": ["model.output_norm=3", "decode.length_norm=average"],
    "bahdanau": [*BAHDANAU, *TWO, "model.encoder.cell=gru", "model.decoder.cell=gru", "decode.min_length=3"],
    "maxout": [*BAHDANAU, *TWO, "model.decoder.readout=maxout", "model.decoder.context_to=all"],
    "state": [*BAHDANAU, *TWO, "model.decoder={readout: state, attend_from: first, initial_state: zeros}"],
    "linear": ["model.decoder={readout: linear, initial_state: final}", "model.attention.score=dot"],
    "fed": [*TWO, "model.decoder={input_feeding: true, context_to: all, residual: true, layer_norm: layers}"],
    "copied": [*TWO, "model.decoder={input_feeding: true, initial_state: copy}", "model.encoder.residual=true"],
    "normalised": [*TWO, "model.encoder.layer_norm=layers", "model.attention.score=dot"],
    "plain": ["model.encoder={cell: rnn, bidirectional: false}", "model.decoder={cell: rnn, initial_state: final}"],
    "heads": ["model.attention={score: additive, heads: 2, head_size: 3, normalizer: {temperature: 0.5}}"],
    "scaled": ["model.attention={score: scaled_dot, heads: 2}", "decode.length_penalty=0"],
    "tied": ["model={tying: target, output_norm: 2}", "model.attention.window={name: hard}"],
    "local_m": ["model.attention.window={name: local_m, radius: 1}", "decode.max_length_ratio=0.5"],
    "local_p": ["model.attention.window={name: local_p, radius: 2}"],
    "fixed": ["model.attention.score=none"],
    "transformer": [*TRANSFORMER, "decode.length_norm=average"],
    "transformer, post-norm": [*TRANSFORMER, *(f"model.{side}={{norm: post, activation: gelu}}" for side in SIDES)],
    "transformer, learnt": [*TRANSFORMER, *(f"model.{side}.learned_positions=11" for side in SIDES)],
    "transformer, one head": [*TRANSFORMER, *(f"model.{side}={{num_heads: 1, hidden_size: 6}}" for side in SIDES)],
    "ssru": [*TRANSFORMER, "model.decoder={kind: ssru, hidden_size: 4}", "model.output_norm=2"],
    "recurrent to transformer": [TRANSFORMER[1], *TWO],
    "transformer to recurrent": [TRANSFORMER[0], "model.decoder={initial_state: zeros, input_feeding: true}"],
}
RUN = """
function run(ids, decode) {
  const work = search(data.models[0].network, ids, decode, { reserved: [], demanded: [] });
  let step = work.next();
  while (!step.done) step = work.next();
  const { nodes, ends } = step.value, steps = trace(nodes, ends[0]);
  const lengths = nodes.map((_, number) => trace(nodes, number).length), over = ends.map((number) => lengths[number]);
  const widths = lengths.map((length) =>
    lengths.filter((each) => each === length).length + over.filter((each) => each < length).length);
  return {
    width: Math.max(...widths),
    ids: steps.map(({ word }) => word), score: nodes[ends[0]].score,
    alignment: steps.map(({ alignment }) => Array.from(alignment)),
  };
}
"""


def opened(browser: Browser, path: Path, place: str = "", width: int = 1200) -> Browser:
    """The page after it has translated what it shows first."""
    browser.open("about:blank", width)
    browser.open(f"{path.as_uri()}{place}", width)
    browser.wait_for("document.getElementById('result').getAttribute('aria-busy') === 'false'")
    return browser


def text_of(browser: Browser, name: str) -> str:
    found: str = browser.evaluate(f"document.getElementById('{name}').textContent")
    return found


@torch.no_grad()
def round_weights(model: Seq2Seq) -> Seq2Seq:
    """Give a model the weights that the page has: int8 with a scale for each row."""
    for weights in model.parameters():
        if weights.dim() == 2 and len(weights) > 1:
            scales = weights.abs().amax(dim=1, keepdim=True).clamp(min=1e-30) / 127
            weights.copy_((weights / scales).round() * scales)
    return model


def make_model(folder: Path, processor: TextProcessor, *settings: str) -> SavedModel:
    """A model of random weights that are rounded already."""
    config = load_config(load_config(Config(), SMALL), settings)
    vocabularies = processor.src_vocabulary, processor.tgt_vocabulary
    torch.manual_seed(5)
    model = build_model(config.model, *map(len, vocabularies)).eval()
    with torch.no_grad():
        for weights in model.parameters():
            weights.uniform_(-0.9, 0.9)
        model.decoder.output.bias[EOS_ID] -= 2
    (folder / "text").mkdir(parents=True)
    processor.save(folder / "text")
    return SavedModel(folder, config, *vocabularies, {}, round_weights(model))


def test_a_row_is_rounded_to_steps_of_its_largest_weight() -> None:
    scales, rounded = html.quantize(torch.tensor([[1.27, -0.634, 0.006], [0.0, 0.0, 0.0], [-254.0, 2.9, 1.1]]))
    assert scales.tolist() == pytest.approx([0.01, 0, 2])
    assert rounded.tolist() == [[127, -63, 1], [0, 0, 0], [-127, 1, 1]]


@needs_chromium
@pytest.mark.parametrize("variant", VARIANTS)
def test_words_scores_and_attention_are_those_of_the_model(variant: str, browser: Browser, tmp_path: Path) -> None:
    words = Vocabulary("abcdefgh")
    processor = TextProcessor(WhitespaceTokenizer(), WhitespaceTokenizer(), words, Vocabulary("ABCDEFG"))
    model = make_model(tmp_path / "model", processor, *VARIANTS[variant])
    assert list(find_format("html").find_obstacles(model.config)) == []
    list(html.write(model, tmp_path / "page.html", "int8"))
    page = opened(browser, tmp_path / "page.html", "#q=a")
    page.evaluate(f"{RUN}; globalThis.run = run")
    draw = random.Random(3)
    sources = [draw.choices(range(1, 12), k=draw.randint(1, 9)) for _ in range(8)]
    for beam_size in (1, 4):
        options = model.config.decode.model_copy(update={"beam_size": beam_size})
        expected = [ranked[0] for ranked in ModelSearcher([model.model], options).search(sources, with_alignment=True)]
        assert sum(map(len, (hypothesis.ids for hypothesis in expected))) >= 12
        found = page.evaluate(
            f"{json.dumps(sources)}.map((ids) => run(ids, {{...data.models[0].decode, beam_size: {beam_size}}}))"
        )
        for own, other in zip(expected, found, strict=True):
            assert other["ids"] == [*own.ids, *[EOS_ID] * own.complete]
            assert other["width"] <= beam_size  # with those that have ended, which keep their places
            assert other["score"] == pytest.approx(own.score, abs=1e-4)
            assert own.alignment is not None
            weights = torch.tensor(other["alignment"], dtype=torch.float32).view(own.alignment.shape)
            torch.testing.assert_close(weights, own.alignment, atol=1e-5, rtol=0)


@needs_chromium
def test_two_models_stand_beside_each_other(browser: Browser, tmp_path: Path) -> None:
    models = [
        make_model(
            tmp_path / name, TextProcessor(*[WhitespaceTokenizer()] * 2, *map(Vocabulary, sides)), *VARIANTS[name]
        )
        for name, *sides in (("luong", "abcdefgh", "ABCDEFG"), ("transformer", "fedcba", "UVWXYZ"))
    ]
    list(html.write(models[0], tmp_path / "page.html", "int8", models[1]))
    page = opened(browser, tmp_path / "page.html", "#q=a%20b%20d%20c")
    for number, model in enumerate(models):
        ids = model.src_vocabulary.encode("abdc")
        best = ModelSearcher([model.model], model.config.decode).search([ids])[0][0]
        words = model.tgt_vocabulary.decode(best.ids)
        assert text_of(page, f"result{number or ''}") == " ".join(words)
        page.evaluate(f"go({{m: {number}, t: 0}})")
        shown = page.evaluate("[...document.querySelectorAll('#lines [data-step] text')].map((e) => e.textContent)")
        assert shown == [*words, *["⟨eos⟩"] * best.complete]
        rivals = page.evaluate("[...document.querySelectorAll('#top tbody tr')].map((e) => e.cells[0].textContent)")
        assert words[0] == rivals[0]
        assert set(rivals) <= {*model.tgt_vocabulary.tokens, "⟨eos⟩"}
    assert text_of(page, "system") == "luongtransformer"  # the choices
    assert page.evaluate("document.querySelectorAll('#map svg, #beside svg').length") == 2


ODD = [
    *(
        "",
        " ",
        "\t \u00a0\u3000",
        "\u200b\ufeff",
        "x" * 300,
        "ab " * 100,
        "\u2581",
        "\u2581\u2581 a \u2581",
        "a\u2581b",
    ),
    *("Äpfel über Öl", "straße STRAẞE", "e\u0301a\u0308o\u0302", "e" + "\u0301" * 40 + "x", "ｆｕｌｌ　ｗｉｄｔｈ！"),
    *("ﬁne ①②", "İstanbul ΟΔΟΣ", "日本語のテキスト。", "שלום עולם", "ﾊﾟﾋﾟ", "\U00010348𝒜", "😀👩\u200d👩\u200d👧🇩🇪"),
    *("a\u0000b\u0007c\u001cd\u0085e\u2028f", "&amp;amp;lt;", "&lt;b&gt; &#65; &#x1F600; &#0; &#128; &nosuch;"),
    *("&copy a&copy;b", "&#1114112; &#xD800;", "?a=1&section=2", "“quoted” ‘so’ „und“ «da»", "a–b—c‐d−e", "1,000.50 €"),
    *("didn\x92t \x93so\x94 \x80 5 \x85", *(f"a{chr(code)}b c{chr(code)}" for code in range(0x80, 0xA0))),
    *("<s> </s> <unk> <pad>", "</script><script>", "\u202eabc\u202c"),
]


def make_processor(
    algorithm: str, lines: list[str], *, lowercase: bool, quotes: bool, placeholders: int = 0
) -> TextProcessor:
    """Pieces and vocabulary of every second line, so that others have unknown characters and pieces."""
    symbols = [*make_placeholders(placeholders), *TERM_MARKS] if placeholders else []
    tokenizer = SubwordTokenizer.learn(
        lines[::2], algorithm=algorithm, vocabulary_size=240, lowercase=lowercase, placeholders=symbols
    )
    counts = Counter(piece for tokens in tokenizer.tokenize(lines[::2]) for piece in tokens)
    counts.update(dict.fromkeys(symbols, 2))
    counts["☃☃"] = 3  # what is unknown to SentencePiece can have an id
    vocabulary = Vocabulary.from_counts(counts, min_count=2)
    normalizer = Normalizer(unicode="nfkc" if lowercase else "nfc", quotes=quotes, dashes=quotes)
    known_words = frozenset(word for line in lines[::2] for word in list_words(line)) if placeholders else frozenset()
    return TextProcessor(tokenizer, tokenizer, vocabulary, vocabulary, normalizer, known_words)


def find_odd_lines(lines: list[str], number: int) -> list[str]:
    """Odd strings, and parts of them and of lines put together."""
    draw = random.Random(1)
    parts = [*(text for text in ODD if text), *lines[:50], "☃☃☃", "&amp;", "\u0301", " "]
    return [*ODD, *("".join(draw.choices([part[:9] for part in parts], k=4)) for _ in range(number))]


@needs_chromium
@pytest.mark.parametrize("algorithm", ["bpe", "unigram"])
@pytest.mark.parametrize("number", [1000, pytest.param(10000, marks=pytest.mark.soak)])
def test_ids_are_those_of_the_text_processor(algorithm: str, number: int, browser: Browser, tmp_path: Path) -> None:
    if REAL.exists():
        texts = zipfile.ZipFile(REAL).read("deu.txt").decode().splitlines()
    else:
        texts = (SAMPLE / "deu.txt").read_text(encoding="utf-8").splitlines()
    lines = [side for text in texts for side in text.split("\t")[:2]]
    lines = lines[:: max(1, len(lines) // number)][:number]
    odd = algorithm == "unigram"
    processor = make_processor(algorithm, lines, lowercase=odd, quotes=odd)
    lines += find_odd_lines(lines, 300)
    model = make_model(tmp_path / "model", processor)
    list(html.write(model, tmp_path / "page.html", "int8"))
    page = opened(browser, tmp_path / "page.html")
    page.evaluate("globalThis.text = new TextProcessor(data.models[0].text)")
    found = page.evaluate(f"{json.dumps(lines)}.map((line) => text.encode(text.tokenize(line)))")
    expected = [processor.src_vocabulary.encode(tokens) for tokens in processor.tokenize_source(lines)]
    wrong = [(line, ids) for line, ids, own in zip(lines, found, expected, strict=True) if ids != own]
    assert wrong == []
    assert sum(UNK_ID in ids for ids in expected) > 100
    texts = [processor.tgt_tokenizer.detokenize(tokens) for tokens in processor.tokenize_source(lines[:300])]
    joined = page.evaluate(f"{json.dumps(lines[:300])}.map((line) => text.join(text.tokenize(line)))")
    assert joined == [" ".join(text.split()) for text in texts]


@needs_chromium
@pytest.mark.parametrize("casing", ["", "tr"])
def test_small_letters_follow_the_language(casing: Casing, browser: Browser, tmp_path: Path) -> None:
    lines = ["IŞIK ve İSTANBUL", "Isparta ılık, İzmir sıcak mı?", "I\u0307yi ΟΔΟΣ Straße ÇĞÖŞÜ I'm"]
    tokenizer = WhitespaceTokenizer(lowercase=True, casing=casing)
    tokens = [*tokenizer.tokenize(lines)]
    vocabulary = Vocabulary.from_counts(Counter(token for line in tokens for token in line), min_count=1)
    model = make_model(tmp_path / "model", TextProcessor(tokenizer, tokenizer, vocabulary, vocabulary, Normalizer()))
    list(html.write(model, tmp_path / "page.html", "int8"))
    page = opened(browser, tmp_path / "page.html")
    page.evaluate("globalThis.text = new TextProcessor(data.models[0].text)")
    assert page.evaluate(f"{json.dumps(lines)}.map((line) => text.tokenize(line))") == [
        *tokenizer.tokenize([Normalizer()(line) for line in lines])
    ]
    cased = page.evaluate(
        f"{json.dumps(lines)}.map((line) => [toSmall(line, '{casing}'), toCapitals(line, '{casing}')])"
    )
    assert cased == [[lower(line, casing), upper(line, casing)] for line in lines]


@pytest.fixture(scope="module")
def translator_page(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the model that reads sequences backwards."""
    return nmt.export(project.run, to="html", output=tmp_path_factory.mktemp("page") / "page.html")


def test_the_page_is_one_small_file_that_loads_nothing(project: Project, translator_page: Path) -> None:
    text = translator_page.read_text(encoding="utf-8")
    policy = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy[0].startswith("default-src &#39;none&#39;; script-src &#39;sha256-")
    assert "connect-src" not in policy[0]
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert max(map(len, scripts)) <= 30_000
    assert sum(map(len, scripts)) <= 124_000
    weights = sum(parameter.numel() for parameter in nmt.load(project.run).model.parameters())
    assert len(text) < 1.4 * weights + 400_000


@needs_chromium
def test_what_is_typed_is_translated(project: Project, translator_page: Path, browser: Browser) -> None:
    translator = nmt.load(project.run)
    round_weights(translator.model)
    page = opened(browser, translator_page)
    for text in ("a b c", "h g f e d", "c c <b c"):
        page.evaluate("document.getElementById('text').select()")
        page.type(text)
        expected = translator.translate(text, with_alignment=True)
        page.wait_for(f"document.getElementById('result').textContent === {json.dumps(expected.text)}")
        page.wait_for(f"document.getElementById('source').textContent === {json.dumps(text)}")
        shown = page.evaluate("[...document.querySelectorAll('#lines [data-step] text')].map((e) => e.textContent)")
        assert shown == [*("<unk>" if token in text else token for token in expected.tokens), "⟨eos⟩"]
        assert expected.alignment is not None
        weights = page.evaluate(
            "[...document.querySelectorAll('#step tbody td:nth-child(2)')].map((e) => +e.textContent)"
        )
        assert weights == pytest.approx(expected.alignment[0, 0].tolist(), abs=3e-3)
        assert page.evaluate("decodeURIComponent(location.hash)").replace("+", " ") == f"#q={text}"


@needs_chromium
def test_the_address_names_a_text_of_several_sentences(translator_page: Path, browser: Browser) -> None:
    page = opened(browser, translator_page, "#q=a%20bb.%20C%20d!%20e%0Af")
    names = page.evaluate("[...document.getElementById('item').options].map((option) => option.textContent)")
    assert names == ["a bb.", "C d! e", "f"]
    page.evaluate("location.hash = '#q=a%20b'")
    page.wait_for("document.getElementById('result').textContent === 'B A'")


@needs_chromium
def test_emoji_stay_and_capitals_are_read_as_small_letters(
    project: Project, translator_page: Path, browser: Browser
) -> None:
    page, translator = opened(browser, translator_page), nmt.load(project.run)
    round_weights(translator.model)
    for text in (
        "a b c \U0001f389\U0001f44d\U0001f3fd!",
        "\u2615 a b",
        "A B C! D E",
        "A",
        "A 2 \U0001f389",
        "\U0001f389",
        "1,000 27",
        "?! ...",
    ):
        page.evaluate(f"location.hash = {json.dumps('#q=' + quote(text))}")
        expected = translator.translate(text).text
        page.wait_for(f"document.getElementById('result').textContent === {json.dumps(expected)}")
    assert expected == "?! ..."


@needs_chromium
def test_each_line_of_the_box_is_a_line_of_the_translation(
    project: Project, translator_page: Path, browser: Browser
) -> None:
    """All were one, and one line in small letters kept the others from being read as capitals."""
    page, translator = opened(browser, translator_page), nmt.load(project.run)
    round_weights(translator.model)
    lines = ["a b c! d", "", "A B C! D E", "h g f"]
    page.evaluate(f"location.hash = {json.dumps('#q=' + quote(chr(10).join(lines)))}")
    expected = "\n".join(each.text for each in translator.translate(lines))
    page.wait_for(f"document.getElementById('result').textContent === {json.dumps(expected)}")
    names = page.evaluate("[...document.getElementById('item').options].map((option) => option.textContent)")
    assert len(names) >= 4
    heights = "document.getElementById('result').getBoundingClientRect().height"
    tall = page.evaluate(heights)
    page.evaluate("location.hash = '#q=a'")
    page.wait_for("document.getElementById('result').textContent === 'A'")
    assert tall > page.evaluate(heights) + 40  # lines, as people see them


SPLIT = [
    *("It is 5 p.m. She sleeps.", "I saw him at 5 p.m. He was old.", "We met in the U.S. She is old."),
    *("The U.S. Army came.", "Tom works for Acme Inc. He is old.", "This is plan B. It is old."),
    *("He lives in D.C. She lives in Boston.", "Dr. Smith came.  He left.", "So do I. Tom came."),
    *(
        "e.g. This one. Yes?!",
        "Mr. J. F. Kennedy spoke. Don't go.",
        'He said "No." She left.',
        "(Why?) Because... Yes!",
        " a\t b.  C ",
    ),
    *("At 10:30. Then 2 men. OK", "No. 5 is it. I've 3. Go", "Hello \u2615 you. \u2615 Bye \U0001f389"),
    *(
        "It is No. 5. See Fig. 3, (pp. 3-5). Art. \u0663 is.",
        "He said no. Tom left. I say no. 5 came.",
        "On Elm St. It is.",
    ),
    *("We met in the U.S. - She is old. \u2013 Sit. - \u201cNo. - 5\u201d", "In St. Louis. Wait a sec. (2) Go"),
    *("STOP! I AM OLD. She sleeps.", "NASA", "\u4f60\u597d\u3002\u4f60"),
]
"""Lines with abbreviations, initials, numbers, quotes, emoji, capitals and blanks."""


@needs_chromium
def test_lines_are_split_as_the_reader_does(browser: Browser, tmp_path: Path) -> None:
    lines = [line.split("\t")[0] for line in (SAMPLE / "deu.txt").read_text(encoding="utf-8").splitlines()]
    processor = make_processor("bpe", lines, lowercase=False, quotes=False)
    model = make_model(tmp_path / "model", processor, "decode.max_length=3")
    list(html.write(model, tmp_path / "page.html", "int8"))
    page = opened(browser, tmp_path / "page.html")
    splitter = SentenceSplitter("en", "de")
    translator = Translator(model.model, processor, model.config.decode, splitter=splitter, protection=Protection())
    round_weights(translator.model)
    joined = [f"{one} {two}" for one, two in zip(lines[::60], lines[7::60], strict=False)]
    texts = [*SPLIT, *joined[:80]]
    page.evaluate(f"location.hash = {json.dumps('#q=' + quote(chr(10).join(texts)))}")
    expected = "\n".join(found.text for found in translator.translate(texts))
    page.wait_for("document.getElementById('result').getAttribute('aria-busy') === 'false'")
    assert text_of(page, "result").split("\n") == expected.split("\n")


SPANS = [
    *(
        "{name}",
        "{{user.name}}",
        "${total}",
        "%s",
        "%1$s",
        "%(count)d",
        "100%",
        "<x/>",
        "<b>",
        "**",
        "`a b`",
        "[a](b_c)",
    ),
    *("https://example.org/a?b=(1)&c=2.", "www.example.com,", "jane.doe@example.org", "@bob", "#tag", "_"),
    *(
        "\U0001f436",
        "\u2764\ufe0f",
        "\U0001f44d\U0001f3fd",
        "1\ufe0f\u20e3",
        "2012-02-11",
        "10:30",
        "4,914,729",
        "\u22125.5",
    ),
    *(
        "+49-30-1234567",
        "1\u00a0000",
        "v1.2.3",
        "\u0663\u0664",
        "42",
        "Tom",
        "New York",
        "\u27e63\u27e7",
        "STOP!",
        "U.S.",
    ),
    *("\u65e5\u672c\u8a9e", "{a\u0301}", "e.g.", "teacher", "\U00010348"),
    *(
        "$5",
        "\u20ac9.50",
        "5kg",
        "7:30am",
        "1 234",
        "- [x]",
        "|",
        "\u23f0",
        "Acme\u2122",
        "</b>",
        "<0>",
        "</0>",
        "[a][b]",
    ),
    *("<b>old</b>", "**red**", "_not_", "[link](http://a.b)", "<i>2</i>", "(555) 123-4567", "Windows 11", "24/7"),
    *("Zelvandra", "O\u2019Brindle", "Kr\u00e1mov-Liss's", "\u0130zmirli", "Novatrix-like"),
    *(
        "us",
        "US",
        "MAY",
        "may",
        "May",
        "SEE",
        "TEACHER",
        "The",
        "Acme Inc.",
        "ACME INC.",
        "\u00c9t\u00e9 (X)",
        "\u00c9T\u00c9 (X)",
    ),
    *(
        "<b>{name}</b>",
        "**%s**",
        "_@jane_",
        "*{x}*",
        "__2012-02-11__",
        "_https://a.b/c_",
        "***so***",
        "\\nHe",
        "<br>",
        "</p>",
    ),
    *(
        "1e-5",
        "R2-D2",
        "5,\u2013",
        "5%-10%",
        "< 5",
        "x=5",
        "3 + 4 = 7",
        "\u00bd",
        "x\u00b2",
        "house\u00b2",
        "C++",
        "max_length",
    ),
    *(
        "git@a.org:b/c",
        "tel:+49-30",
        '[a](http://b.c "T t")',
        "&nbsp;",
        "\\1",
        "@{x}",
        "\u2192",
        ":)",
        "____",
        "sleeps.[1] She",
        "sleeps.** _She",
        "sleeps.</b> <i>She",
    ),
    *(
        "C:\\a\\b.txt",
        "/usr/bin",
        "--keep",
        "|",
        "\u2167",
        "__NAME__",
        "_Tom_",
        "\u200b",
        "\ufeff",
        "\u200e",
        "_teacher_",
    ),
    *("\u65e5\u672c \u8a9e", "\u041f\u0440\u0438\u0432\u0435\u0442,", "\u03c0", "\uff21\uff22", "x\u65e5"),
]
"""Spans of every kind, names and terms of a user, names that no training has, and what looks like them."""


def find_lines_with_spans(lines: list[str], number: int) -> list[str]:
    """Lines with up to four spans between their words, at their ends, or glued to words."""
    draw = random.Random(1)
    found = []
    for line in draw.choices(lines, k=number):
        words = line.split()
        for span in draw.choices(SPANS, k=draw.randint(0, 4)):
            place = draw.randint(0, len(words))
            if draw.random() < 0.15 and place < len(words):
                words[place] += span
            else:
                words.insert(place, span)
        found.append(draw.choice([" ", " ", " ", "  ", "\t"]).join(words))
    return found


@needs_chromium
@pytest.mark.parametrize("placeholders", [0, 4])
def test_spans_and_terms_are_kept_as_the_reader_does(placeholders: int, browser: Browser, tmp_path: Path) -> None:
    lines = [line.split("\t")[0] for line in (SAMPLE / "deu.txt").read_text(encoding="utf-8").splitlines()]
    processor = make_processor("bpe", lines, lowercase=False, quotes=False, placeholders=placeholders)
    model = make_model(tmp_path / "model", processor, "decode={max_length: 12, beam_size: 2}")
    with torch.no_grad():  # a model that writes some placeholders before it has to
        bias = model.model.decoder.output.bias
        bias += 3 * torch.randn(len(bias))
        bias[processor.tgt_vocabulary.encode(make_placeholders(placeholders))] += 8
        bias[EOS_ID] += 30 if placeholders else 0
    terms = {"teacher": "Lehrerin", "he": "Er/Sie", "see": "sehen {x}", "the": "das", "24/7": "rund um die Uhr"}
    terms |= {"US": "Vereinigte Staaten", "May": "Mai", "Acme Inc.": "Acme Corp.", "\u00e9t\u00e9 (x)": "sommer"}
    protection = Protection(["Tom", "New York", "Windows 11"], terms, ["the"])
    list(html.write(model, tmp_path / "page.html", "int8", protection=protection))
    page = opened(browser, tmp_path / "page.html")
    splitter = SentenceSplitter("en", "de")
    translator = Translator(model.model, processor, model.config.decode, splitter=splitter, protection=protection)
    round_weights(translator.model)
    odd = [line for line in ODD if not re.search(r"[\r\n\0]", line)]
    texts = [*find_lines_with_spans(lines, 400), *odd]
    found = page.evaluate(
        f"{json.dumps(texts)}.map((text) => protection.find(decodeControl(text, data.models[0].text.repairs)))"
    )
    decoded = [processor.normalizer.decode(text) for text in texts]
    spans = [protection.find(text, translator.reader.known) for text in decoded]
    assert [[(span["text"], span["kind"]) for span in each] for each in found] == [
        [(span.text, span.kind) for span in each] for each in spans
    ]
    assert len({span.kind for each in spans for span in each}) >= 12
    expected = [each.text for each in translator.translate(texts)]
    units = [unit for passage in translator.reader.read(texts) for unit in passage.units if unit.way == "placeholders"]
    written = translator._translate_as_read(units, 1, False, list)
    kept = sum(not translator._runs_away(unit, *ranked) for unit, ranked in zip(units, written, strict=True))
    assert (50 < kept < len(units) - 50) if placeholders else not units, (kept, len(units))
    ways = {unit.way for passage in translator.reader.read(texts) for unit in passage.units}
    assert ways >= ({"placeholders"} if placeholders else {"plain", "numbers"})
    page.evaluate(f"location.hash = {json.dumps('#q=' + quote(chr(10).join(texts)))}")
    page.wait_for(f"document.getElementById('text').value === {json.dumps(chr(10).join(texts))}")
    page.wait_for("document.getElementById('result').getAttribute('aria-busy') === 'false'")
    translations = text_of(page, "result").split("\n")
    wrong = [pair for pair in zip(texts, translations, expected, strict=True) if pair[1] != pair[2]]
    assert wrong == []


@needs_chromium
def test_titles_are_read_as_sentences(browser: Browser, tmp_path: Path) -> None:
    lines = [line.split("\t")[0] for line in (SAMPLE / "deu.txt").read_text(encoding="utf-8").splitlines()]
    processor = make_processor("bpe", lines, lowercase=False, quotes=False)
    model = make_model(tmp_path / "model", processor, "decode.max_length=3")
    list(html.write(model, tmp_path / "page.html", "int8"))
    page = opened(browser, tmp_path / "page.html")
    translator = Translator(model.model, processor, model.config.decode, splitter=SentenceSplitter("en"))
    titles = [line.rstrip(".").title() for line in lines[::400]]
    changed = 0
    for title in [*titles, "Don\u2019t McAdam Xyz Are Here", "The Teacher Sees The Dog."]:
        (passage,) = translator.reader.read([title])
        (unit,) = passage.units
        expected = processor.src_tokenizer.detokenize(unit.tokens)
        page.evaluate(f"location.hash = {json.dumps('#q=' + quote(title))}")
        page.wait_for(f"document.getElementById('source').textContent === {json.dumps(expected)}")
        changed += expected != title
    assert len(titles) // 2 < changed <= len(titles)


@needs_chromium
@pytest.mark.parametrize(("words", "said"), [(120, "more than 100 tokens"), (1001, "the first 1000 tokens")])
def test_what_cannot_be_drawn_is_translated_all_the_same(
    words: int, said: str, translator_page: Path, browser: Browser
) -> None:
    page = opened(browser, translator_page, f"#q={'a%20' * words}")
    assert said in text_of(page, "asked")
    assert len(text_of(page, "result")) > 10
    assert page.evaluate("document.querySelector('main').hidden")


@needs_chromium
@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (1400, "dark")])
def test_it_is_legible(width: int, scheme: str, translator_page: Path, browser: Browser) -> None:
    browser.prefer(scheme)
    page = opened(browser, translator_page, "#q=a%20b%20c%20d&o=map.tree.numbers", width)
    shown = page.read_legibility()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert [one for one in shown if one["size"] < 11 or one["cut"] or (one["contrast"] or 21) < 4.5] == []
    if PICTURES:
        page.save_picture(Path(PICTURES) / f"translator-{width}-{scheme}.png")
    browser.prefer("light")


@needs_chromium
def test_the_benchmark_compares_a_page_with_its_rounded_model(translator_page: Path, project: Project) -> None:
    lines = ["a b c", "d </script> e", "f"]
    same, first, speed = measure_page(translator_page, project.run, lines, 3)
    assert same == 3
    assert 0 < first < 30
    assert speed > 10
    text = translator_page.read_text(encoding="utf-8")
    other = translator_page.with_name("other.html")
    other.write_text(re.sub(r'"max_length": ?\d+', '"max_length":1', text), encoding="utf-8")
    assert measure_page(other, project.run, lines, 3)[0] < 3


@needs_chromium
@pytest.mark.soak
def test_a_trained_model_translates_the_same(tmp_path: Path) -> None:
    settings = ["text={tokenizer: subword, subword: {algorithm: unigram, vocabulary_size: 200}}", "train.epochs=1"]
    with without_pictures():
        nmt.preprocess("sample", output=tmp_path / "data", overrides=settings)
        nmt.train("sample", data=tmp_path / "data", output=tmp_path / "run", overrides=settings)
    page = nmt.export(tmp_path / "run", to="html", output=tmp_path / "page.html")
    lines = [line.split("\t")[0] for line in (SAMPLE / "deu.txt").read_text(encoding="utf-8").splitlines()[::12]]
    assert len(lines) == 500
    assert measure_page(page, tmp_path / "run", lines, 5)[0] >= 495


@pytest.mark.parametrize(
    ("settings", "key", "remedy"),
    [
        (["model.encoder.layer_norm=cell"], "model.encoder.layer_norm", "none or layers"),
        (["model.attention={score: location, options: {max_length: 9}}"], "model.attention.score", "additive"),
        (["model.attention={score: additive, past: {name: coverage}}"], "model.attention.past.name", "none"),
        (["text.tokenizer=spacy"], "text.tokenizer", "subword or whitespace"),
        (["decode.coverage_penalty=0.1"], "decode.coverage_penalty", "0"),
        (["decode.no_repeat_ngram_size=3"], "decode.no_repeat_ngram_size", "null"),
        (["decode.sampling.temperature=0.7"], "decode.sampling.temperature", "null"),
    ],
)
def test_what_a_page_cannot_compute_is_named(settings: list[str], key: str, remedy: str) -> None:
    ((found, text),) = find_format("html").find_obstacles(load_config(Config(), settings))
    assert found == key
    assert f"set {remedy}" in text


def test_the_command_writes_a_file_and_says_what_is_missing(project: Project, cli: Cli, tmp_path: Path) -> None:
    arguments = "export", "--model", project.run, "--to", "html", "--output"
    terms = tmp_path / "terms.tsv"
    terms.write_text("teacher\tLehrerin\n", encoding="utf-8")
    names = tmp_path / "names.txt"
    names.write_text("New York\n", encoding="utf-8")
    written = cli(*arguments, tmp_path / "page.html", "--glossary", terms, "--keep", names)
    assert (written.code, written.out) == (0, "")
    files = {path.name for path in tmp_path.iterdir() if not path.name.endswith(".lock")}
    assert files == {"page.html", "terms.tsv", "names.txt"}
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert '"terms":{"teacher":"Lehrerin"}' in text.replace(": ", ":")
    assert '"names":["New York"]' in text.replace(": ", ":")
    to_onnx = cli("export", "--model", project.run, "--to", "onnx", "--output", tmp_path / "onnx", "--keep", names)
    assert to_onnx.code == 1
    assert errors(to_onnx.err) == [f"nmt: error: --keep {names}: onnx has no protected text; leave it out"]
    refused = cli(*arguments, tmp_path / "page")
    assert refused.code == 1
    assert "give a file that ends in .html" in errors(refused.err)[0]
