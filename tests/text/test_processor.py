from pathlib import Path

import pytest
from conftest import tree

from nmt.system.errors import DataError
from nmt.system.files import shipped, write_json
from nmt.text.normalization import Normalizer
from nmt.text.processor import TextProcessor, copy_text_files, load_processor, load_vocabularies
from nmt.text.tokenizers import SubwordTokenizer, WhitespaceTokenizer
from nmt.text.vocabulary import UNK_ID, Vocabulary

LINES = [line.split("\t") for line in shipped("data/sample/deu.txt").read_text(encoding="utf-8").splitlines()[:600]]
SRC, TGT = [line[0] for line in LINES], [line[1] for line in LINES]


SIMPLE = TextProcessor(WhitespaceTokenizer(), WhitespaceTokenizer(), Vocabulary(["a"]), Vocabulary(["x", "y"]))


def test_a_saved_processor_does_the_same_and_is_copied_completely(tmp_path: Path) -> None:
    src, tgt = (SubwordTokenizer.learn(lines, algorithm="bpe", vocabulary_size=120) for lines in (SRC, TGT))
    processor = TextProcessor(src, tgt, Vocabulary(src.scores), Vocabulary(tgt.scores))
    (tmp_path / "first").mkdir()
    processor.save(tmp_path / "first")
    for _ in range(2):
        copy_text_files(tmp_path / "first", tmp_path / "second")
    assert tree(tmp_path / "first") == tree(tmp_path / "second")
    assert len(tree(tmp_path / "first")) == 7
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
        ([1], "content: found [1]; Input should be a dictionary or an instance of Normalizer"),
        (GOOD | {"unicode": "bogus"}, f"unicode: found 'bogus'; {FORMS}"),
        (GOOD | {"unicode": "NFC"}, f"unicode: found 'NFC'; {FORMS}"),
        (GOOD | {"quotes": "false"}, f"quotes: found 'false'; {FLAG}"),
        (GOOD | {"dashes": 1}, f"dashes: found 1; {FLAG}"),
        (GOOD | {"html_entities": None}, f"html_entities: found None; {FLAG}"),
        (GOOD | {"control_characters": ["x" * 10**6]}, f"control_characters: found ['{'x' * 98}...; {FLAG}"),
        (GOOD | {"smile\x1b": True}, "smile\\x1b: found True; Unexpected keyword argument"),
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
        ([4, UNK_ID], ["a", "Tom"], [0, 2], ["x", "<unk>"]),  # the end of the sentence is no word to copy
        ([], ["a"], [], []),
    ],
)
def test_an_unknown_word_becomes_the_source_word_attended_most(
    ids: list[int], src_tokens: list[str], attended: list[int], tokens: list[str]
) -> None:
    assert SIMPLE.target_tokens(ids, src_tokens, attended) == tokens
