"""Pairs that models make, here by a translator that writes words backwards."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from nmt.config import DataSection
from nmt.corpus.example import Example, write_examples
from nmt.corpus.synthetic import RoundTrip, SyntheticPairs
from nmt.system.errors import DataError

DATA = DataSection(src_language="en", tgt_language="de")


def backwards(source: Path, target: Path) -> None:
    lines = source.read_text(encoding="utf-8").splitlines()
    target.write_text("".join(f"{line[::-1]}\n" for line in lines), encoding="utf-8")


def make(folder: Path, text: str, *, reverse: bool = False, from_source: bool = False) -> SyntheticPairs:
    """Steps for a text, beside data whose only test sentence is `a test` and whose reference `ein Test`."""
    (folder / "data").mkdir()
    write_examples(folder / "data" / "test.jsonl", [Example("a test", ("ein Test",))])
    (folder / "text").write_text(text, encoding="utf-8")
    options = DATA.model_copy(update={"reverse": reverse})
    return SyntheticPairs(folder, options, folder / "data", [str(folder / "text")], from_source)


def made(pairs: SyntheticPairs, round_trip: RoundTrip | None = None) -> dict[str, list[str]]:
    """The lines of the synthetic files by the language in their names."""
    files = pairs.translate(backwards, round_trip)
    return {file.suffix[1:]: file.read_text(encoding="utf-8").splitlines() for file in files}


@pytest.mark.parametrize(
    ("reverse", "from_source", "expected"),
    [
        (False, False, {"en": ["ba", "dc"], "de": ["ab", "cd"]}),  # the text is German, its translations are sources
        (False, True, {"en": ["ab", "cd"], "de": ["ba", "dc"]}),
        (True, False, {"en": ["ab", "cd"], "de": ["ba", "dc"]}),  # from German to English: the text is English
        (True, True, {"en": ["ba", "dc"], "de": ["ab", "cd"]}),
    ],
)
def test_a_sentence_stands_on_its_side(
    tmp_path: Path, reverse: bool, from_source: bool, expected: dict[str, list[str]]
) -> None:
    pairs = make(tmp_path, "ab\ncd\n", reverse=reverse, from_source=from_source)
    pairs.collect()
    assert made(pairs) == expected


@pytest.mark.parametrize(("from_source", "left_out"), [(False, "ein Test"), (True, "a test")])
def test_sentences_are_collected_once_and_never_from_a_test_set(
    tmp_path: Path, from_source: bool, left_out: str
) -> None:
    pairs = make(tmp_path, f"ab\n{left_out}!\nAB.\n\ncd\n", from_source=from_source)
    pairs.collect()
    assert pairs.original.read_text(encoding="utf-8") == "ab\ncd\n"


def test_a_text_of_nothing_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no sentence that is not in valid or test"):
        make(tmp_path, "ein Test\n").collect()


def test_a_pair_that_does_not_come_back_is_left_out(tmp_path: Path) -> None:
    seen: list[tuple[list[str], list[str]]] = []

    def similarity(originals: Sequence[str], returned: Sequence[str]) -> list[float]:
        seen.append((list(originals), list(returned)))
        return [10.0, 30.0, 20.0]

    pairs = make(tmp_path, "ab\ncd\nef\n")
    pairs.collect()
    assert made(pairs, RoundTrip(backwards, similarity, 20.0)) == {"en": ["dc", "fe"], "de": ["cd", "ef"]}
    assert seen == [(["ab", "cd", "ef"], ["ab", "cd", "ef"])]


def test_finished_steps_are_not_repeated(tmp_path: Path) -> None:
    pairs = make(tmp_path, "ab\n")
    pairs.collect()
    (tmp_path / "translated.txt").write_text("of an earlier run\n", encoding="utf-8")
    (tmp_path / "text").unlink()
    pairs.collect()
    assert made(pairs) == {"en": ["of an earlier run"], "de": ["ab"]}
