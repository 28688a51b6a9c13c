from pathlib import Path

import pytest

from nmt.system.errors import DataError
from nmt.system.files import shipped, write_json
from nmt.text.normalization import Normalizer
from nmt.text.processor import TextProcessor, copy_text_files, load_processor, load_vocabularies
from nmt.text.tokenizers import SubwordTokenizer, Tokenizer, WhitespaceTokenizer, WordTokenizer
from nmt.text.vocabulary import UNK_ID, Vocabulary

LINES = [line.split("\t") for line in shipped("data/sample/deu.txt").read_text(encoding="utf-8").splitlines()[:600]]
SRC, TGT = [line[0] for line in LINES], [line[1] for line in LINES]


def make_vocabulary(tokenizer: Tokenizer, lines: list[str]) -> Vocabulary:
    return Vocabulary(sorted({token for tokens in tokenizer.tokenize(lines) for token in tokens}))


def make_processor(kind: str) -> TextProcessor:
    def tokenizer(language: str, lines: list[str]) -> Tokenizer:
        if kind == "subword":
            return SubwordTokenizer.learn(lines, algorithm="bpe", vocabulary_size=120)
        words = WordTokenizer(language)
        words.learn_spacing(lines)
        return words if kind == "spacy" else WhitespaceTokenizer()

    src, tgt = tokenizer("en", SRC), tokenizer("de", TGT)
    return TextProcessor(src, tgt, make_vocabulary(src, SRC), make_vocabulary(tgt, TGT))


SIMPLE = TextProcessor(WhitespaceTokenizer(), WhitespaceTokenizer(), Vocabulary(["a"]), Vocabulary(["x", "y"]))


@pytest.mark.parametrize("kind", ["spacy", "subword", "whitespace"])
def test_a_saved_processor_does_the_same_and_is_copied_completely(kind: str, tmp_path: Path) -> None:
    processor = make_processor(kind)
    (tmp_path / "first").mkdir()
    processor.save(tmp_path / "first")
    for _ in range(2):
        copy_text_files(tmp_path / "first", tmp_path / "second")
    files = [{path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("first", "second")]
    assert files[0] == files[1]
    assert len(files[0]) == (7 if kind == "subword" else 5)
    loaded = load_processor(tmp_path / "second")
    assert loaded.vocabularies == processor.vocabularies
    lines = [*SRC[:50], "", "never  seen ☃"]
    assert loaded.tokenize_source(lines) == processor.tokenize_source(lines)
    for line in TGT[:50]:
        [tokens] = loaded.tgt_tokenizer.tokenize([line])
        ids = loaded.tgt_vocabulary.encode(tokens)
        assert loaded.tgt_tokenizer.detokenize(loaded.target_tokens(ids)) == line


def test_vocabularies_load_alone(tmp_path: Path) -> None:
    SIMPLE.save(tmp_path)
    for path in tmp_path.glob("*.tokenizer.json"):
        path.unlink()
    assert load_vocabularies(tmp_path) == (SIMPLE.src_vocabulary, SIMPLE.tgt_vocabulary)
    with pytest.raises(DataError, match=r"src\.tokenizer\.json: missing"):
        load_processor(tmp_path)
    (tmp_path / "normalization.json").unlink()
    with pytest.raises(DataError, match=r"normalization\.json: missing"):
        load_processor(tmp_path)


def test_a_processor_remembers_how_training_text_was_repaired(tmp_path: Path) -> None:
    parts = SIMPLE.src_tokenizer, SIMPLE.tgt_tokenizer, SIMPLE.src_vocabulary, SIMPLE.tgt_vocabulary
    normalizer = Normalizer(unicode="nfkc", html_entities=False, quotes=True)
    TextProcessor(*parts, normalizer).save(tmp_path)
    loaded = load_processor(tmp_path)
    assert loaded.normalizer.settings == normalizer.settings
    assert loaded.tokenize_source(["“ﬁ” &amp;"]) == [['"fi"', "&amp;"]]
    assert SIMPLE.normalizer.settings == Normalizer().settings


FORMS = "Input should be 'nfc', 'nfkc' or 'none'"
FLAG = "Input should be a valid boolean"
GOOD = SIMPLE.normalizer.settings


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ([1], "content: found [1]; Input should be a valid dictionary or instance of NormalizationSettings"),
        (None, "content: found None; Input should be a valid dictionary or instance of NormalizationSettings"),
        (GOOD | {"unicode": "bogus"}, f"unicode: found 'bogus'; {FORMS}"),
        (GOOD | {"unicode": "NFC"}, f"unicode: found 'NFC'; {FORMS}"),
        (GOOD | {"unicode": ["nfc"]}, f"unicode: found ['nfc']; {FORMS}"),
        (GOOD | {"quotes": "false"}, f"quotes: found 'false'; {FLAG}"),
        (GOOD | {"dashes": 1}, f"dashes: found 1; {FLAG}"),
        (GOOD | {"html_entities": None}, f"html_entities: found None; {FLAG}"),
        (GOOD | {"control_characters": ["x" * 10**6]}, f"control_characters: found ['{'x' * 98}...; {FLAG}"),
        ({"unicode": "nfc"}, "control_characters: found {'unicode': 'nfc'}; Field required"),
        (GOOD | {"smile\x1b": True}, "smile\\x1b: found True; Extra inputs are not permitted"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_wrong_normalisation_settings_are_a_data_error(content: object, fault: str, tmp_path: Path) -> None:
    SIMPLE.save(tmp_path)
    path = tmp_path / "normalization.json"
    write_json(path, content)
    with pytest.raises(DataError) as caught:
        load_processor(tmp_path)
    assert str(caught.value) == f"{path}: damaged, or written by another version ({fault})"


@pytest.mark.parametrize(
    ("ids", "src_tokens", "attended", "tokens"),
    [
        ([4, 5], [], [], ["x", "y"]),
        ([4, UNK_ID], ["a", "Tom"], [], ["x", "<unk>"]),
        ([4, UNK_ID], ["a", "Tom"], [0, 1], ["x", "Tom"]),
        ([UNK_ID, UNK_ID], ["a", "Tom"], [1, 0], ["Tom", "a"]),
        # Position 2 is the end of the sentence: there is no word to copy.
        ([4, UNK_ID], ["a", "Tom"], [0, 2], ["x", "<unk>"]),
        ([], ["a"], [], []),
    ],
)
def test_an_unknown_word_becomes_the_source_word_attended_most(
    ids: list[int], src_tokens: list[str], attended: list[int], tokens: list[str]
) -> None:
    assert SIMPLE.target_tokens(ids, src_tokens, attended) == tokens
