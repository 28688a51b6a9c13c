import copy
import itertools
import math
import pickle
import re
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from conftest import GOLDEN_MODEL

import nmt
from nmt.config import AttentionSection, DecodeSection, ModelSection, RecurrentDecoderSection, RecurrentEncoderSection
from nmt.models.build import build_model
from nmt.models.seq2seq import Seq2Seq
from nmt.system.errors import CheckpointError, ConfigError
from nmt.text.processor import TextProcessor
from nmt.text.sentences import SentenceSplitter
from nmt.text.tokenizers import WhitespaceTokenizer, WordTokenizer
from nmt.text.vocabulary import EOS_ID, UNK_ID, Vocabulary
from nmt.translation.reader import MAX_SOURCE_LENGTH, Unit
from nmt.translation.translation import Translation
from nmt.translation.translator import Translator

SRC_WORDS = ("the", "a", "cat", "dog", "sat", "ran")
TGT_WORDS = ("die", "eine", "Katze", "Hund", "saß", "lief", ".")
THREADS = 8
SIZES = (len(SRC_WORDS) + 4, len(TGT_WORDS) + 4)

LINES = ["the cat sat", "", "a dog", "   \t ", "the the the a a cat ran ran sat", "cat", "zebra gnu cat"]
LINES += ["  the   dog\tran  ", "a"]


def model_section(
    order: str = "luong", score: str = "general", input_feeding: bool = False, **attention: object
) -> ModelSection:
    return ModelSection(
        embedding_size=4,
        dropout=0.3,
        encoder=RecurrentEncoderSection(hidden_size=3),
        decoder=RecurrentDecoderSection(hidden_size=6, order=order, input_feeding=input_feeding),
        attention=AttentionSection(score=score, **attention),
    )


def random_model(
    section: ModelSection | None = None, seed: int = 0, spread: float = 1.0, bias: Mapping[int, float] | None = None
) -> Seq2Seq:
    """A float64 model with weights from U(-spread, spread); `bias` is added to the log-odds of words."""
    torch.manual_seed(seed)
    model = build_model(section or model_section(), *SIZES).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-spread, spread)
        for word, odds in (bias or {}).items():
            model.decoder.output.bias[word] += odds
    return model.eval()


def processor() -> TextProcessor:
    return TextProcessor(WhitespaceTokenizer(), WhitespaceTokenizer(), Vocabulary(SRC_WORDS), Vocabulary(TGT_WORDS))


def translator(model: Seq2Seq | None = None, **options: object) -> Translator:
    settings = DecodeSection(**{"beam_size": 3, "max_length": 12, **options})
    return Translator(model or random_model(), processor(), settings)


def read(model: Translator, lines: list[str]) -> list[list[list[str]]]:
    """The tokens of each unit of each line."""
    return [[unit.tokens for unit in passage.units] for passage in model.reader.read(lines)]


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("batch_size", [1, 2, 3, 7, 64])
def test_one_translation_per_line_in_order_for_any_batch(beam_size: int, batch_size: int) -> None:
    alone = translator(beam_size=beam_size)
    expected = [alone.translate(line) for line in LINES]
    counts: list[int] = []
    found = translator(beam_size=beam_size, batch_size=batch_size).translate(LINES, advance=counts.append)
    assert len(found) == sum(counts) == len(LINES)
    for one, other in zip(found, expected, strict=True):
        assert (one.text, one.tokens, one.src_tokens) == (other.text, other.tokens, other.src_tokens)
        assert one.log_prob == pytest.approx(other.log_prob, abs=1e-9)
        assert one.score == pytest.approx(other.score, abs=1e-9)
    assert len({one.text for one in found}) > 3
    assert translator().translate([]) == []
    assert [one.src_tokens for one in found] == [line.split() for line in LINES]


@pytest.mark.parametrize("line", ["", " ", "\t \n", "\u2028", "\u00a0\u3000", "\x0b\x0c\x1c"])
def test_a_line_without_tokens_becomes_an_empty_line(line: str) -> None:
    for lines in ([line], ["the cat", line, "a dog"]):
        found = translator().translate(lines, n_best=3, with_alignment=True)
        (empty,) = found[lines.index(line)]
        assert (empty.text, empty.tokens, empty.src_tokens, empty.truncated) == ("", [], [], False)


@pytest.mark.parametrize("line", ["?!", "🥂 🎆", "… -", "1,000 27"])
def test_a_line_without_letters_stays_as_it_is(line: str) -> None:
    counts: list[int] = []
    lines = ["the cat", line, "a dog"]
    found = translator().translate(lines, n_best=3, with_alignment=True, advance=counts.append)
    (kept,), tokens = found[1], line.split()
    assert (kept.text, kept.tokens, kept.src_tokens, kept.log_prob) == (line, tokens, tokens, 0)
    assert kept.alignment is not None
    assert torch.equal(kept.alignment, torch.eye(len(tokens) + 1)[:, None])
    assert sum(counts) == 3
    assert [one.text for one in found[0]] == [one.text for one in translator().translate("the cat", n_best=3)]


def test_a_long_line_without_letters_is_truncated_and_marked() -> None:
    (kept,) = translator().translate(["7 " * (MAX_SOURCE_LENGTH + 1)], with_alignment=True)
    assert (kept.text, kept.truncated) == (" ".join("7" * MAX_SOURCE_LENGTH), True)
    assert kept.alignment is not None
    assert kept.alignment.size(0) == len(kept.tokens) + 1 == MAX_SOURCE_LENGTH + 1


def count_copies(text: str) -> int:
    repeated = r"(?<!\S)(\S+(?: \S+)*)(?: \1){%d}(?!\S)"
    return max((n for n in range(2, 13) if re.search(repeated % (n - 1), text)), default=1)


def test_a_server_prefers_translations_in_the_beam_that_are_no_loops() -> None:
    lines = ["the cat sat", "dog", "cat", "the dog ran", "the the the cat", "a dog", "a a a a a dog"]
    kinds = set()
    for seed in range(4):
        model = translator(random_model(seed=seed), beam_size=4)
        plain, safe = model.translate(lines, n_best=4), copy.copy(model)
        safe.repairs = True
        found = safe.translate(lines, n_best=2, with_alignment=True)
        for line, ranked, chosen, best in zip(lines, plain, found, safe.translate(lines), strict=True):
            allowed = max(2, count_copies(line)) if " " in line else 1
            fitting = [one.text for one in ranked if one.text and count_copies(one.text) <= allowed]
            looped = count_copies(ranked[0].text) > allowed
            expected = (fitting[:2] or [line]) if looped else [one.text for one in ranked[:2]]
            assert [one.text for one in chosen] == expected
            assert best.text == expected[0]
            assert all(one.alignment is not None and len(one.alignment) >= len(one.tokens) for one in chosen)
            kinds.add((looped, bool(fitting)))
    assert kinds >= {(False, True), (True, True), (True, False)}


def test_lines_in_capitals_are_translated_as_in_small_letters() -> None:
    model = translator()
    by_sentence = Translator(model.model, model.processor, model.options, splitter=SentenceSplitter("en"))
    for one, second in ((model, "a"), (by_sentence, "A")):
        found = one.translate(["THE CAT SAT", "A DOG. A DOG RAN!"])
        expected = one.translate(["The cat sat", f"A dog. {second} dog ran!"])
        assert [each.src_tokens for each in found] == [each.src_tokens for each in expected]
        assert [each.text for each in found] == [each.text.upper() for each in expected]
    unchanged = ["CAT", "I", "The USA", "CAT 2", "- CAT -"]
    assert [one.src_tokens for one in model.translate(unchanged)] == [line.split() for line in unchanged]
    assert model.translate("HELLO \U0001f600").src_tokens[0] == "HELLO"


def test_an_english_title_is_read_as_a_sentence() -> None:
    sides = TextProcessor(
        WhitespaceTokenizer(),
        WhitespaceTokenizer(),
        Vocabulary(["Mary", "cats", "Cats", "like"]),
        Vocabulary(TGT_WORDS),
    )
    lines = ["Dogs and Cats Like Mary Jones", "Dogs and cats like Mary Jones."]
    for language, first in (
        ("en", "Dogs and cats like Mary Jones"),
        ("en-GB", "Dogs and cats like Mary Jones"),
        ("de", lines[0]),
    ):
        by_sentence = Translator(random_model(), sides, DecodeSection(), splitter=SentenceSplitter(language))
        assert [" ".join(tokens) for (tokens,) in read(by_sentence, lines)] == [first, lines[1]]
    assert by_sentence.reader._rarity("\u115f") == (1, math.inf)
    assert read(Translator(random_model(), sides, DecodeSection()), lines[:1]) == [[lines[0].split()]]


@pytest.mark.parametrize("beam_size", [1, 2])
@pytest.mark.parametrize("number", [MAX_SOURCE_LENGTH - 1, MAX_SOURCE_LENGTH, MAX_SOURCE_LENGTH + 1, 5000])
def test_a_long_line_is_truncated_and_marked(number: int, beam_size: int) -> None:
    words = [SRC_WORDS[place % 5] for place in range(number)]
    found = translator(beam_size=beam_size).translate(" ".join(words), with_alignment=True)
    assert found.truncated == (number > MAX_SOURCE_LENGTH)
    assert found.src_tokens == words[:MAX_SOURCE_LENGTH]
    assert len(found.tokens) <= 12
    assert found.alignment is not None
    assert found.alignment.size(2) == min(number, MAX_SOURCE_LENGTH) + 1
    assert len(found.text.splitlines()) <= 1


def test_without_attention_an_unknown_word_stays_unknown() -> None:
    model = random_model(model_section(score="none"), bias={UNK_ID: 60.0})
    for found in translator(model).translate(["zebra", "the cat sat", "the gnu cat sat ran"]):
        assert set(found.tokens) == {"<unk>"}


def test_a_diverged_model_is_reported() -> None:
    model = random_model(bias={UNK_ID: math.nan})
    expected = "its training diverged, or its file is damaged; copy it again, or train it"
    for options in ({}, {"no_repeat_ngram_size": 2}):
        with pytest.raises(CheckpointError, match=expected):
            translator(model, beam_size=5, **options).translate(["a b"])


def test_translating_draws_no_random_numbers_and_leaves_no_gradient() -> None:
    model = random_model()
    before = torch.get_rng_state()
    translator(model).translate(LINES)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize("n_best", [1, 2, 3])
def test_n_best(n_best: int) -> None:
    found = translator(beam_size=3).translate(LINES, n_best)
    for line, translations in zip(LINES, found, strict=True):
        assert 1 <= len(translations) <= (n_best if line.split() else 1)
    assert [translations[0] for translations in found] == translator(beam_size=3).translate(LINES)


def test_a_text_gives_one_result_and_a_list_gives_a_list() -> None:
    ours = translator(beam_size=3)
    (one,) = ours.translate(["the cat sat"])
    assert ours.translate("the cat sat") == one
    assert ours.translate("the cat sat", 2) == ours.translate(["the cat sat"], n_best=2)[0]
    assert ours.translate("the cat sat", 2)[0] == one
    assert ours.translate("", 2)[0].text == ours.translate("").text == ""


@pytest.mark.parametrize("n_best", [-1, 0, 4])
def test_n_best_is_at_most_the_beam_size(n_best: int) -> None:
    with pytest.raises(ConfigError, match=f"`n_best={n_best}`"):
        translator(beam_size=3).translate("a", n_best)


def test_lines_in_capitals_are_read_and_written_by_the_rules_of_their_languages() -> None:
    turkish = Translator(random_model(), processor(), DecodeSection(), splitter=SentenceSplitter("tr", "tr"))
    assert read(turkish, ["KIRMIZI İP. SICAK SU"]) == [[["Kırmızı", "ip."], ["Sıcak", "su"]]]
    [joined] = [turkish.reader.put_back(Unit([], is_in_capitals=True), Translation("iyi ışık"))]
    assert joined.text == "İYİ IŞIK"


def test_control_characters_are_those_of_windows_1252() -> None:
    found = read(translator(), ["Well\x85 I can\x92t. Yes\x85"])
    assert found == read(translator(), ["Well… I can’t. Yes…"])


def translator_of_spacy() -> Translator:
    tokenizers = WordTokenizer("en"), WordTokenizer("de")
    words = TextProcessor(*tokenizers, Vocabulary(SRC_WORDS), Vocabulary(TGT_WORDS))
    return Translator(random_model(), words, DecodeSection(beam_size=2, max_length=12))


@pytest.mark.parametrize(
    "make",
    [
        lambda: translator(beam_size=1, batch_size=2),
        lambda: translator(beam_size=3, batch_size=2),
        lambda: nmt.load(GOLDEN_MODEL, device="cpu", beam_size=2, max_length=12),
        translator_of_spacy,  # whose tokenizers fill caches
    ],
    ids=["greedy", "beam", "subwords", "spacy"],
)
def test_threads_that_share_a_translator_get_the_same_results(make: Callable[[], Translator]) -> None:
    ours, alone = make(), make()
    words = [words for length in (1, 2, 3) for words in itertools.product(SRC_WORDS[:3], repeat=length)]
    lines = [f"{' '.join(line)} {number}" for number, line in enumerate(words)]
    parts = [lines[start::THREADS] for start in range(THREADS)]
    expected = [alone.translate(part, with_alignment=True) for part in parts]
    begin = threading.Barrier(THREADS)

    def work(part: list[str]) -> list[Translation]:
        begin.wait()
        return ours.translate(part, with_alignment=True)

    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(work, parts))
    assert not ours.model.training
    for one, other in zip(itertools.chain(*found), itertools.chain(*expected), strict=True):
        assert (one.text, one.score) == (other.text, other.score)
        assert torch.equal(one.alignment, other.alignment)


def test_translations_have_scores_and_on_request_alignments() -> None:
    lines = [line for line in LINES if line.split()]
    assert all(found.alignment is None for found in translator().translate(lines))
    for found in translator(length_penalty=1.0).translate(lines, with_alignment=True):
        assert found.alignment is not None
        assert found.alignment.shape[1:] == (1, len(found.src_tokens) + 1)
        assert len(found.tokens) <= len(found.alignment) <= len(found.tokens) + 1
        assert set(found.tokens) <= {*TGT_WORDS, "<unk>", *found.src_tokens}
        assert found.text == " ".join(found.tokens)
        assert found.score == pytest.approx(found.log_prob / ((5 + len(found.alignment)) / 6))


def test_a_prefix_must_leave_room() -> None:
    model = translator(max_length=4)
    (found,) = model.complete(["a b"], ["X Y Z X"])
    assert (found[0].tokens, len(found[0].token_log_probs)) == (["X", "Y", "Z", "X"], 4)
    with pytest.raises(ConfigError, match=r"the prefix has 5 tokens, .* at most 4; .* raise decode\.max_length"):
        model.complete(["a b"], ["X Y Z X Y"])
    with pytest.raises(ConfigError, match=r"at most 16"):  # 3 * (a + EOS) + 10
        translator(max_length=30).complete(["a"], ["X " * 17])


def test_a_greedy_translation_has_the_score_of_the_same_text_when_given() -> None:
    ending = random_model(bias={EOS_ID: 60.0})
    model = translator(ending, beam_size=1)
    ((found,),) = model.complete(["a b c"], ["X Y Z"])
    (given,) = model.score(["a b c"], ["X Y Z"])
    assert found.tokens == given.tokens == ["X", "Y", "Z"]
    assert (found.log_prob, found.score) == pytest.approx((given.log_prob, given.score))
    assert found.score == pytest.approx(found.log_prob / ((5 + 4) / 6))


def test_given_translations_belong_to_the_texts() -> None:
    model = translator()
    with pytest.raises(ValueError, match="1 texts, but 2"):
        model.score(["a"], ["b", "c"])
    with pytest.raises(ValueError, match="2 texts, but 1"):
        model.complete(["a", "b"], ["c"])
    with pytest.raises(TypeError, match="list"):
        model.score("a", "b")


def test_texts_may_be_anything_that_yields_them(tmp_path: Path) -> None:
    """A generator was used up before it was translated, and gave no translation at all."""
    model, lines = translator(), ["the cat sat", "", "a dog"]
    expected = [each.text for each in model.translate(lines)]
    (tmp_path / "lines").write_text("the cat sat\n\na dog\n", encoding="utf-8")
    with (tmp_path / "lines").open(encoding="utf-8") as file:
        for texts in ((line for line in lines), map(str, lines), iter(lines), dict.fromkeys(lines), tuple(lines), file):
            assert [each.text for each in model.translate(texts)] == expected
    assert [ranked[0].text for ranked in model.translate(iter(lines), n_best=1)] == expected
    completed = model.complete(iter(["the cat"]), iter(["die"]))[0][0]
    assert completed == model.complete(["the cat"], ["die"])[0][0]
    assert model.score(iter(["the cat"]), iter(["die"])) == model.score(["the cat"], ["die"])


@pytest.mark.parametrize("texts", [["a", None], [b"a"], [["a"]], {"a": 1}.items()])
def test_what_is_no_text_is_named(texts: object) -> None:
    with pytest.raises(TypeError, match=r"texts: element [01] is of type \w+, not str"):
        translator().translate(texts)  # type: ignore[call-overload]


@pytest.mark.parametrize("texts", [b"a", None, 5, Path("text.en")])
def test_what_has_no_texts_is_named(texts: object) -> None:
    kind = type(texts).__name__
    with pytest.raises(TypeError, match=f"^texts: is of type {kind}, not str or several str; decode bytes, and open"):
        translator().translate(texts)  # type: ignore[call-overload]


@pytest.mark.parametrize("method", ["pickle", "deepcopy"])
def test_a_translator_can_be_sent_to_another_process(method: str) -> None:
    """As `multiprocessing` with spawn and Spark do."""
    for model in (nmt.load(GOLDEN_MODEL), translator()):
        expected = model.translate("Dr. Cat is here. I am old.", with_alignment=True)
        copied = copy.deepcopy(model) if method == "deepcopy" else pickle.loads(pickle.dumps(model))
        found = copied.translate("Dr. Cat is here. I am old.", with_alignment=True)
        assert found.text == expected.text
        assert torch.equal(found.alignment, expected.alignment)


def test_a_prefix_that_ends_in_a_space_ends_a_word() -> None:
    """`Ich ` went on as `Ich0505`: the piece after it began no word."""
    model = nmt.load(GOLDEN_MODEL)
    vocabulary = model.processor.tgt_vocabulary
    inside = next(n for n, token in enumerate(vocabulary.tokens) if n > UNK_ID and token.isalpha())
    with torch.no_grad():  # a model that always goes on with a word
        model.model.decoder.output.bias[inside] += 100
    piece = vocabulary.tokens[inside]
    texts = {prefix: model.complete(["I am old."], [prefix])[0][0].text for prefix in ("Ich", "Ich ", "Ich\u3000")}
    assert texts["Ich"].startswith(f"Ich{piece}")
    assert texts["Ich "] == texts["Ich\u3000"]
    assert texts["Ich "] == "Ich" or texts["Ich "].startswith("Ich ")
