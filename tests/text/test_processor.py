from pathlib import Path

import pytest

from nmt.system.errors import DataError
from nmt.system.files import read_json, shipped, write_json
from nmt.text.normalization import Normalizer
from nmt.text.processor import TextProcessor, copy_text_files, load_processor, load_vocabularies
from nmt.text.tokenizers import SubwordTokenizer, Tokenizer, WhitespaceTokenizer, WordTokenizer
from nmt.text.vocabulary import UNK_ID, Vocabulary

LINES = [line.split("\t") for line in shipped("data/sample/deu.txt").read_text(encoding="utf-8").splitlines()[:600]]
SRC, TGT = [line[0] for line in LINES], [line[1] for line in LINES]


def make_vocabulary(tokenizer: Tokenizer, lines: list[str]) -> Vocabulary:
    return Vocabulary(sorted({token for tokens in tokenizer.tokenize(lines) for token in tokens}))


def make_processor(kind: str) -> TextProcessor:
    sides: list[Tokenizer] = []
    for language, lines in (("en", SRC), ("de", TGT)):
        match kind:
            case "spacy":
                words = WordTokenizer(language)
                words.learn_spacing(lines)
                sides.append(words)
            case "subword":
                sides.append(SubwordTokenizer.learn(lines, algorithm="bpe", vocabulary_size=120))
            case _:
                sides.append(WhitespaceTokenizer())
    return TextProcessor(sides[0], sides[1], make_vocabulary(sides[0], SRC), make_vocabulary(sides[1], TGT))


SIMPLE = TextProcessor(WhitespaceTokenizer(), WhitespaceTokenizer(), Vocabulary(["a"]), Vocabulary(["x", "y"]))


@pytest.mark.parametrize("kind", ["spacy", "subword", "whitespace"])
def test_a_saved_processor_does_the_same(kind: str, tmp_path: Path) -> None:
    processor = make_processor(kind)
    processor.save(tmp_path)
    loaded = load_processor(tmp_path)
    assert loaded.src_vocabulary == processor.src_vocabulary
    assert loaded.tgt_vocabulary == processor.tgt_vocabulary
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


@pytest.mark.parametrize(
    ("line", "tokens"),
    [
        ("  a\t b  c ", ["a", "b", "c"]),
        ("a\u00a0b\u2028c", ["a", "b", "c"]),
        ("u\u0308ber", ["über"]),
        ("a &amp; b\u200b", ["a", "&", "b"]),
        ("", []),
        (" \t ", []),
    ],
)
def test_raw_lines_are_cleaned_as_training_text_was(line: str, tokens: list[str]) -> None:
    assert SIMPLE.tokenize_source([line]) == [tokens]


def test_a_processor_remembers_how_training_text_was_repaired(tmp_path: Path) -> None:
    parts = SIMPLE.src_tokenizer, SIMPLE.tgt_tokenizer, SIMPLE.src_vocabulary, SIMPLE.tgt_vocabulary
    normalizer = Normalizer(unicode="nfkc", html_entities=False, quotes=True)
    TextProcessor(*parts, normalizer).save(tmp_path)
    loaded = load_processor(tmp_path)
    assert loaded.normalizer.settings == normalizer.settings
    assert loaded.tokenize_source(["“ﬁ” &amp;"]) == [['"fi"', "&amp;"]]
    assert SIMPLE.normalizer.settings == Normalizer().settings


@pytest.mark.parametrize("content", ["[1]", "3", "null"])
def test_invalid_normalisation_settings_are_a_data_error(content: str, tmp_path: Path) -> None:
    SIMPLE.save(tmp_path)
    (tmp_path / "normalization.json").write_text(content, encoding="utf-8")
    with pytest.raises(
        DataError, match=r"normalization\.json: damaged, or written by another version \(content: found .*; "
    ):
        load_processor(tmp_path)


FORMS = "Input should be 'nfc', 'nfkc' or 'none'"
FLAG = "Input should be a valid boolean"


@pytest.mark.parametrize(
    ("key", "value", "fault"),
    [
        ("unicode", "bogus", f"unicode: found 'bogus'; {FORMS}"),
        ("unicode", "NFC", f"unicode: found 'NFC'; {FORMS}"),
        ("unicode", None, f"unicode: found None; {FORMS}"),
        ("unicode", ["nfc"], f"unicode: found ['nfc']; {FORMS}"),
        ("quotes", "false", f"quotes: found 'false'; {FLAG}"),
        ("dashes", 1, f"dashes: found 1; {FLAG}"),
        ("html_entities", None, f"html_entities: found None; {FLAG}"),
        ("control_characters", ["x" * 10**6], f"control_characters: found ['{'x' * 98}...; {FLAG}"),
        (
            "smile\x1b",
            True,
            "smile\\x1b: found True; Extra inputs are not permitted",
        ),
    ],
)
def test_wrong_normalisation_settings_are_a_data_error(key: str, value: object, fault: str, tmp_path: Path) -> None:
    SIMPLE.save(tmp_path)
    path = tmp_path / "normalization.json"
    write_json(path, read_json(path) | {key: value})
    with pytest.raises(DataError) as caught:
        load_processor(tmp_path)
    assert str(caught.value) == f"{path}: damaged, or written by another version ({fault})"


def test_all_normalisation_settings_are_required(tmp_path: Path) -> None:
    SIMPLE.save(tmp_path)
    write_json(tmp_path / "normalization.json", {"unicode": "nfc"})
    with pytest.raises(DataError, match=r"\(control_characters: found .*; Field required\)"):
        load_processor(tmp_path)


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


def test_text_files_are_copied_completely(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    make_processor("subword").save(first)
    copy_text_files(first, second)
    copy_text_files(first, second)
    assert {path.name: path.read_bytes() for path in first.iterdir()} == {
        path.name: path.read_bytes() for path in second.iterdir()
    }
    assert len(list(second.iterdir())) == 7


@pytest.mark.parametrize(
    "name", ["src.vocabulary.json", "tgt.vocabulary.json", "src.tokenizer.json", "normalization.json"]
)
@pytest.mark.parametrize("damage", ["missing", "damaged"])
def test_incomplete_folders_are_a_data_error(name: str, damage: str, tmp_path: Path) -> None:
    SIMPLE.save(tmp_path)
    if damage == "missing":
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match=name):
        load_processor(tmp_path)
