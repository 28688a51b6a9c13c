import ast
import json
import math
import sys
from importlib.metadata import version
from pathlib import Path

import catalogue
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st

from nmt.system.errors import ConfigError, DataError
from nmt.system.files import read_json, shipped, write_json
from nmt.text import tokenizers
from nmt.text.spacing import Spacing
from nmt.text.tokenizers import SubwordTokenizer, Tokenizer, WhitespaceTokenizer, WordTokenizer, load_tokenizer
from nmt.text.vocabulary import UNK_ID, Vocabulary

SAMPLE = [line.split("\t")[1] for line in shipped("data/sample/deu.txt").read_text(encoding="utf-8").splitlines()[::2]]
SEEN = sorted(set("".join(SAMPLE)))
BPE = SubwordTokenizer.learn(SAMPLE, algorithm="bpe", vocabulary_size=300)
UNIGRAM = SubwordTokenizer.learn(SAMPLE, algorithm="unigram", vocabulary_size=200)
WORDS = WordTokenizer("de")
WORDS.learn_spacing(SAMPLE)

every_tokenizer = pytest.mark.parametrize(
    "tokenizer", [BPE, UNIGRAM, WORDS, WhitespaceTokenizer()], ids=["bpe", "unigram", "spacy", "whitespace"]
)
subwords = pytest.mark.parametrize("tokenizer", [BPE, UNIGRAM], ids=["bpe", "unigram"])
algorithms = pytest.mark.parametrize("algorithm", ["bpe", "unigram"])


def single_spaces(text: str) -> str:
    return " ".join(text.split())


seen_text = st.text(st.sampled_from(SEEN), max_size=60).map(single_spaces)
word_text = st.lists(
    st.text(st.characters(min_codepoint=33, max_codepoint=0x24F, exclude_categories=["C", "Z"]), min_size=1)
).map(" ".join)


def tokens_of(tokenizer: Tokenizer, text: str) -> list[str]:
    [tokens] = tokenizer.tokenize([text])
    return tokens


@every_tokenizer
def test_text_of_the_sample_is_restored(tokenizer: Tokenizer) -> None:
    assert [tokenizer.detokenize(tokens) for tokens in tokenizer.tokenize(SAMPLE[:500])] == SAMPLE[:500]


@every_tokenizer
def test_an_empty_line_has_no_tokens(tokenizer: Tokenizer) -> None:
    assert list(tokenizer.tokenize(["", SAMPLE[0], " ", ""]))[0::2] == [[], []]
    assert list(tokenizer.tokenize([])) == []
    assert tokens_of(tokenizer, "") == []
    assert tokenizer.detokenize([]) == ""


@every_tokenizer
def test_a_line_is_tokenised_the_same_whatever_its_neighbours(tokenizer: Tokenizer) -> None:
    lines = SAMPLE[:40]
    assert list(tokenizer.tokenize(lines)) == [tokens_of(tokenizer, line) for line in lines]


@subwords
@given(text=seen_text)
def test_subwords_restore_any_text_of_seen_characters(tokenizer: SubwordTokenizer, text: str) -> None:
    tokens = tokens_of(tokenizer, text)
    assert "".join(tokens) == ("▁" + text.replace(" ", "▁") if text else "")
    assert tokenizer.detokenize(tokens) == text


@subwords
@given(text=word_text)
def test_subwords_restore_text_of_unseen_characters(tokenizer: SubwordTokenizer, text: str) -> None:
    assert tokenizer.detokenize(tokens_of(tokenizer, text)) == text


@given(text=word_text)
def test_words_lose_nothing_but_spaces(text: str) -> None:
    assert "".join(tokens_of(WORDS, text)) == text.replace(" ", "")


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("I don't know.", ["I", "do", "n't", "know", "."]),
        ("He's (very) old, isn't he?", ["He", "'s", "(", "very", ")", "old", ",", "is", "n't", "he", "?"]),
        ('"Stop!" she said.', ['"', "Stop", "!", '"', "she", "said", "."]),
    ],
)
def test_words_by_hand(text: str, tokens: list[str]) -> None:
    assert tokens_of(WordTokenizer("en"), text) == tokens


@subwords
def test_unknown_characters_stay_as_text_and_have_no_id(tokenizer: SubwordTokenizer) -> None:
    assert not {"☃", "ж"} & set(SEEN)
    pieces = {piece for tokens in tokenizer.tokenize(SAMPLE) for piece in tokens}
    vocabulary = Vocabulary(sorted(pieces))
    tokens = tokens_of(tokenizer, "Das ☃ж ist alt.")
    unknown = [token for token, index in zip(tokens, vocabulary.encode(tokens), strict=True) if index == UNK_ID]
    assert unknown == ["☃ж"]
    assert tokenizer.detokenize(tokens) == "Das ☃ж ist alt."


@pytest.mark.parametrize(
    ("tokenizer", "algorithm", "size"), [(BPE, "bpe", 300), (UNIGRAM, "unigram", 200)], ids=["bpe", "unigram"]
)
def test_pieces_are_all_that_text_can_become(tokenizer: SubwordTokenizer, algorithm: str, size: int) -> None:
    assert tokenizer.algorithm == algorithm
    pieces = list(tokenizer.scores)
    assert len(set(pieces)) == len(pieces) == size - 3  # the learner's own three are <unk>, <s> and </s>
    assert not {"<unk>", "<s>", "</s>"} & set(pieces)
    assert {piece for tokens in tokenizer.tokenize(SAMPLE) for piece in tokens} <= set(pieces)
    assert set(SEEN) - {" "} | {"▁"} <= set(pieces)


def test_scores_are_the_order_of_merges_or_log_probabilities() -> None:
    assert list(BPE.scores.items()) == [(piece, -place) for place, piece in enumerate(BPE.scores)]
    assert 0.5 < sum(map(math.exp, UNIGRAM.scores.values())) <= 1  # what the learner pruned is missing


@every_tokenizer
@pytest.mark.parametrize("text", ["<s>", "</s>", "<pad> <unk>", "Das <s> ist </s> alt."])
def test_text_that_looks_like_a_special_token_is_text(tokenizer: Tokenizer, text: str) -> None:
    tokens = tokens_of(tokenizer, text)
    assert "".join(tokens).replace("▁", "") == text.replace(" ", "")
    assert all(index in (UNK_ID, *range(4, 10_000)) for index in Vocabulary([]).encode(tokens))


@algorithms
def test_lowercase_subwords(algorithm: tokenizers.Algorithm) -> None:
    tokenizer = SubwordTokenizer.learn(SAMPLE, algorithm=algorithm, vocabulary_size=150, lowercase=True)
    assert tokenizer.detokenize(tokens_of(tokenizer, "Ich KENNE den Ärger.")) == "ich kenne den ärger."
    pieces = {piece for tokens in tokenizer.tokenize(SAMPLE) for piece in tokens}
    assert all(piece == piece.lower() for piece in pieces)


def test_lowercase_words_and_spaces() -> None:
    assert tokens_of(WordTokenizer("de", lowercase=True), "Ärger, WIE hier.") == ["ärger", ",", "wie", "hier", "."]
    assert tokens_of(WhitespaceTokenizer(lowercase=True), "Ärger, WIE") == ["ärger,", "wie"]
    tokenizer = WordTokenizer("en", lowercase=True)
    tokenizer.learn_spacing(["He DOESN'T know.", "SHE DIDN'T go."])
    assert {"n't", "."} <= tokenizer.spacing.left
    assert tokenizer.detokenize(tokens_of(tokenizer, "He DIDN'T know.")) == "he didn't know."


@algorithms
def test_more_pieces_than_the_text_has_are_refused_with_advice(algorithm: tokenizers.Algorithm) -> None:
    with pytest.raises(DataError, match=r"^cannot learn 50000 .* at most \d+; use fewer: `overrides=") as refused:
        SubwordTokenizer.learn(SAMPLE, algorithm=algorithm, vocabulary_size=50_000)
    ((key, number),) = ast.literal_eval(str(refused.value).partition("`overrides=")[2].rstrip("`")).items()
    assert key == "text.subword.vocabulary_size"
    SubwordTokenizer.learn(SAMPLE, algorithm=algorithm, vocabulary_size=number)


@algorithms
@pytest.mark.parametrize(
    ("lines", "size", "reason"),
    [
        (SAMPLE, 10, r"has \d+ different characters; raise text\.subword\.vocabulary_size$"),
        (SAMPLE, 1, r"needs three; raise text\.subword\.vocabulary_size$|has \d+ different characters"),
        ([], 100, ""),
        (["", ""], 100, ""),
    ],
)
def test_too_few_pieces_are_refused(algorithm: tokenizers.Algorithm, lines: list[str], size: int, reason: str) -> None:
    with pytest.raises(DataError, match=rf"^cannot learn {size} {algorithm} .*(?:{reason})"):
        SubwordTokenizer.learn(lines, algorithm=algorithm, vocabulary_size=size)


NO_LANGUAGES = [
    *("zz", "english", "x y", "", ".", "..x", "en.", "./en", "a\0b", "\ud800", "x" * 10**5),
    *("char_classes", "punctuation", "tokenizer_exceptions", "en.stop_words", "lij.examples"),
]


@pytest.mark.parametrize("language", NO_LANGUAGES, ids=lambda name: ascii(name[:20]))
def test_a_language_that_spacy_does_not_know_is_one_line(
    language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "spacy.lang.lij", raising=False)  # where another test has read its examples
    path = tmp_path / "src.tokenizer.json"
    path.write_text(json.dumps(GOOD | {"language": language}), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        WordTokenizer(language)
    with pytest.raises(DataError) as loading:
        load_tokenizer(tmp_path, "src")
    message = str(caught.value)
    assert message.startswith(f"language {repr(language)[:100]}")
    advice = "; use text.tokenizer: subword or whitespace"
    assert message.endswith(f": spaCy has no blank tokenizer for it (it knows no such language){advice}")
    assert str(loading.value) == f"{path}: {message.removesuffix(advice)}"
    assert message.isprintable()
    assert len(message) < 300
    assert "spacy.lang.lij" not in sys.modules


def test_a_language_that_needs_a_missing_library_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pythainlp", None)
    with pytest.raises(ConfigError, match=r"^language 'th': spaCy has no blank tokenizer for it \(The Thai tokenizer"):
        WordTokenizer("th")


@pytest.mark.parametrize("language", ["deu", "ger", "de", "xx"])
def test_other_codes_of_a_language_are_known(language: str) -> None:
    assert tokens_of(WordTokenizer(language), "Wie geht's, Tom?")[-1] == "?"


def test_a_registered_language_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    class Own(spacy.language.Language):
        lang = "own"

    monkeypatch.setitem(catalogue.REGISTRY, ("spacy", "languages", "own"), Own)
    assert tokens_of(WordTokenizer("own"), "a b") == ["a", "b"]


@pytest.mark.parametrize(
    "tokenizer",
    [
        BPE,
        UNIGRAM,
        SubwordTokenizer.learn(SAMPLE, algorithm="bpe", vocabulary_size=150, lowercase=True),
        WORDS,
        WordTokenizer("en", lowercase=True, spacing=Spacing(["."], ["("], [("can", "not")])),
        WhitespaceTokenizer(),
        WhitespaceTokenizer(lowercase=True),
    ],
    ids=["bpe", "unigram", "lowercase bpe", "spacy", "lowercase spacy", "whitespace", "lowercase whitespace"],
)
def test_a_saved_tokenizer_does_the_same(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path, "src")
    tokenizer.save(tmp_path, "tgt")
    loaded = load_tokenizer(tmp_path, "src")
    assert type(loaded) is type(tokenizer)
    library = {"subword": "sentencepiece", "spacy": "spacy"}.get(tokenizer.kind)
    settings = read_json(tmp_path / "src.tokenizer.json")
    assert library is None or settings[f"{library}_version"] == version(library)
    lines = [*SAMPLE[:200], "", "He isn't (here) ☃.", "Das ÜBEL <s>"]
    tokens = list(tokenizer.tokenize(lines))
    assert list(loaded.tokenize(lines)) == tokens
    assert list(map(loaded.detokenize, tokens)) == list(map(tokenizer.detokenize, tokens))


GOOD = {"kind": "spacy", "language": "en", "lowercase": False, "glue_left": ["."], "glue_right": []}


@pytest.mark.parametrize(
    "settings",
    [
        *([], "spacy", {"kind": "spacy"}, {"kind": "whitespace"}, {"kind": "newest", "lowercase": False}),
        *({name: GOOD[name] for name in GOOD if name != absent} for absent in ("glue_left", "language")),
        *(GOOD | {"glue_left": value} for value in (3, ".", [".", 1])),
        *(GOOD | {"lowercase": value} for value in ("false", 0)),
        *(GOOD | {"kind": value} for value in (["spacy"], None)),
        *(GOOD | {"glue_right": [["a"]]}, GOOD | {"language": None}),
        *(GOOD | {"symbols": value} for value in (None, "<bt>", [""], ["a b"], ["<BT>"])),
        *({"kind": "subword", "lowercase": value} for value in ("no", False)),
    ],
)
def test_damaged_settings_are_a_data_error(settings: object, tmp_path: Path) -> None:
    write_json(tmp_path / "src.tokenizer.json", settings)
    with pytest.raises(DataError, match=r"src\.(tokenizer\.json: damaged, or written by another|subwords)") as caught:
        load_tokenizer(tmp_path, "src")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("content", [b"", b"garbage"])
def test_a_damaged_model_is_a_data_error(content: bytes, tmp_path: Path) -> None:
    BPE.save(tmp_path, "src")
    (tmp_path / "src.subwords.model").write_bytes(content)
    with pytest.raises(DataError, match=r"src\."):
        load_tokenizer(tmp_path, "src")


def test_a_very_long_word_is_split_into_parts() -> None:
    tokenizer = WordTokenizer("en")
    (tokens,) = tokenizer.tokenize(["!" * 50_000])
    assert "".join(tokens) == "!" * 50_000
    (tokens,) = tokenizer.tokenize(["x" * 450 + " y"])
    assert list(map(len, tokens)) == [200, 200, 50, 1]


@algorithms
def test_a_tag_is_the_first_token(algorithm: str, tmp_path: Path) -> None:
    tokenizer = SubwordTokenizer.learn(SAMPLE, algorithm=algorithm, vocabulary_size=200, symbols=["<bt>", "<web>"])  # type: ignore[arg-type]
    tokenizer.save(tmp_path, "src")
    loaded = load_tokenizer(tmp_path, "src")
    assert isinstance(loaded, SubwordTokenizer)
    for one in (tokenizer, loaded):
        assert (one.algorithm, one.symbols) == (algorithm, ["▁<bt>", "▁<web>"])
        assert not {*one.symbols} & {*one.scores}
        for line in SAMPLE[:20]:
            first, *others = tokens_of(one, f"<web> {line}")
            assert (first, others) == ("▁<web>", tokens_of(one, line))
            assert one.detokenize([first, *others]) == f"<web> {line}"


def test_a_tag_is_the_first_word(tmp_path: Path) -> None:
    tokenizer = WordTokenizer("de", symbols=["<bt>"])
    tokenizer.save(tmp_path, "src")
    for one in (tokenizer, load_tokenizer(tmp_path, "src")):
        assert tokens_of(one, "<bt> Ich lese, ja.") == ["<bt>", "Ich", "lese", ",", "ja", "."]
        assert one.detokenize(["<bt>", "Ich"]) == "<bt> Ich"
    assert tokens_of(WORDS, "<bt> Ich")[0] == "<"
    assert "symbols" not in json.loads(saved_settings(tmp_path))


def saved_settings(folder: Path) -> str:
    WORDS.save(folder, "src")
    return (folder / "src.tokenizer.json").read_text(encoding="utf-8")
