import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nmt.system.errors import DataError
from nmt.text.vocabulary import BOS_ID, EOS_ID, PAD_ID, SPECIAL_TOKENS, UNK_ID, Vocabulary

COUNTS = Counter({"the": 5, "cat": 2, "bat": 2, "Zoo": 2, "älter": 1, "ant": 1})


@pytest.mark.parametrize(
    ("min_count", "max_size", "expected"),
    [
        (1, None, ["the", "Zoo", "bat", "cat", "ant", "älter"]),
        (2, None, ["the", "Zoo", "bat", "cat"]),
        (3, None, ["the"]),
        (6, None, []),
        (1, 2, ["the", "Zoo"]),
        (1, 5, ["the", "Zoo", "bat", "cat", "ant"]),
        (1, 100, ["the", "Zoo", "bat", "cat", "ant", "älter"]),
        (2, 3, ["the", "Zoo", "bat"]),
    ],
)
def test_the_most_frequent_come_first(min_count: int, max_size: int | None, expected: list[str]) -> None:
    for counts in (COUNTS, Counter(dict(sorted(COUNTS.items(), reverse=True)))):  # in whatever order the text has them
        vocabulary = Vocabulary.from_counts(counts, min_count=min_count, max_size=max_size)
        assert vocabulary.tokens == [*SPECIAL_TOKENS, *expected]
        assert len(vocabulary) == 4 + len(expected)


def test_special_tokens_have_the_first_four_ids_and_the_others_follow() -> None:
    assert (PAD_ID, UNK_ID, BOS_ID, EOS_ID) == (0, 1, 2, 3)
    vocabulary = Vocabulary(["a", "b"])
    assert vocabulary.decode(range(6)) == ["<pad>", "<unk>", "<s>", "</s>", "a", "b"]
    assert vocabulary.encode(["b", "a", "c", "b"]) == [5, 4, UNK_ID, 5]
    assert vocabulary.encode([]) == []


@given(st.lists(st.text() | st.sampled_from(SPECIAL_TOKENS)))
@example([*SPECIAL_TOKENS, "a"])
def test_no_text_is_encoded_as_padding_or_as_a_boundary(tokens: list[str]) -> None:
    vocabulary = Vocabulary.from_counts(Counter(tokens))
    ids = vocabulary.encode(tokens)
    assert not {PAD_ID, BOS_ID, EOS_ID} & set(ids)
    assert [token for token in tokens if token not in SPECIAL_TOKENS] == vocabulary.decode(
        index for index in ids if index != UNK_ID
    )


def test_a_saved_vocabulary_is_loaded_as_it_was(tmp_path: Path) -> None:
    vocabulary = Vocabulary(["▁ä", "▁", '"', "\\", "🙂", "a\u00a0b", "Ngữ pháp", "\0", "\u200b"])
    vocabulary.save(tmp_path / "v.json")
    loaded = Vocabulary.load(tmp_path / "v.json")
    assert loaded == vocabulary
    assert loaded != Vocabulary(["▁ä"])
    assert loaded != vocabulary.tokens


BLANK = ("", " ", "\u00a0", "\t \u3000", "\n", "\x85")
IMPOSSIBLE = (*BLANK, "a\n", "a\r", "a\u2028b", "a\x1cb", "\ud800", "a\udfffb")


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (None, "missing"),
        *((content, "not valid JSON") for content in ("", "{")),
        *((content, "not a list of tokens") for content in ("{}", '"abc"', "[1]", '["a", null]', "[[]]")),
        *((content, "a token occurs twice") for content in ('["a", "a"]', '["<s>"]')),
        *(
            (json.dumps(["a", token, "b"]), f"token 2 is {token!r}, which no tokenizer produces; the directory is")
            for token in IMPOSSIBLE
        ),
    ],
)
def test_a_damaged_or_missing_vocabulary_is_a_data_error(tmp_path: Path, content: str | None, fault: str) -> None:
    path = tmp_path / "v.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        Vocabulary.load(path)
    assert str(caught.value).startswith(f"{path}: {fault}")
    assert str(caught.value).isprintable()
