"""Output formats for the translations of a line."""

import json
import math
from pathlib import Path

import pytest
import torch
from conftest import GOLDEN_MODEL, Cli
from hypothesis import given
from hypothesis import strategies as st

from nmt.system.errors import ConfigError
from nmt.text.processor import TextProcessor
from nmt.text.tokenizers import WhitespaceTokenizer
from nmt.text.vocabulary import Vocabulary
from nmt.translation.formats import (
    FORMATS,
    Format,
    JsonLinesFormat,
    NBestFormat,
    PharaohFormat,
    TextFormat,
    choose_format,
)
from nmt.translation.translation import Translation

WORDS = TextProcessor(WhitespaceTokenizer(), WhitespaceTokenizer(), Vocabulary([]), Vocabulary([]))
WEIGHTS = torch.tensor([[0.75, 0.0, 0.25], [0.25, 0.5, 0.25], [0.0, 0.0, 1.0]]).unsqueeze(1)
BEST = Translation("B A", ["B", "A"], ["a", "b"], -0.5, -0.25, WEIGHTS.flip(0)[[1, 2, 0]], token_log_probs=[-0.5, 0.0])
SECOND = Translation("A", ["A"], ["a", "b"], -1.5, -1.0, WEIGHTS[:1])


@pytest.mark.parametrize(
    ("kind", "translations", "expected"),
    [
        (TextFormat, [BEST, SECOND], "B A\n"),
        (TextFormat, [Translation("")], "\n"),
        (NBestFormat, [BEST, SECOND], "7 ||| B A ||| -0.2500\n7 ||| A ||| -1.0000\n"),
        (NBestFormat, [Translation("A", ["A"], ["a"], -0.00004, -0.00004)], "7 ||| A ||| 0.0000\n"),  # without a sign
        (PharaohFormat, [BEST], "1-0 0-1\n"),
        (PharaohFormat, [Translation("")], "\n"),
    ],
)
def test_lines_of_text(kind: type[Format], translations: list[Translation], expected: str) -> None:
    assert kind(WORDS).render(7, "a b", translations) == expected
    end = "\r\n" if kind is TextFormat else "\n"  # other formats have lines of their own
    assert kind(WORDS).render(7, "a b", translations, "\r\n") == expected.replace("\n", end)


def test_json_has_all_fields() -> None:
    found = json.loads(JsonLinesFormat(WORDS).render(1, "a  b", [BEST, SECOND]))
    assert (found["source"], found["source_tokens"], found["truncated"]) == ("a  b", ["a", "b"], False)
    best = {"text": "B A", "tokens": ["B", "A"], "score": -0.25, "log_prob": -0.5, "token_log_probs": [-0.5, 0.0]}
    second = {"text": "A", "tokens": ["A"], "score": -1.0, "log_prob": -1.5, "token_log_probs": []}
    assert found["translations"] == [{**best, "links": [[1, 0], [0, 1]]}, {**second, "links": [[0, 0]]}]


def test_json_has_attention_on_request() -> None:
    found = json.loads(JsonLinesFormat(WORDS, with_attention=True).render(1, "a b", [SECOND]))
    assert found["translations"][0]["attention"] == [[[0.75, 0.0, 0.25]]]
    (empty,) = json.loads(JsonLinesFormat(WORDS, with_attention=True).render(1, "", [Translation("")]))["translations"]
    assert (empty["text"], empty["links"], empty["attention"]) == ("", [], None)


@given(
    source=st.text(alphabet=st.characters(exclude_characters="\n")),
    token=st.text(alphabet='\x00\x1b\x85\u2028\u202e\ud800"\\ä🙂'),
)
def test_json_is_one_line_of_plain_characters(source: str, token: str) -> None:
    odd = Translation("x", [token], [source], -math.inf, math.nan, torch.zeros(2, 1, 2), token_log_probs=[math.nan])
    line = JsonLinesFormat(WORDS, with_attention=True).render(1, source, [odd])
    assert line.splitlines() == [line.removesuffix("\n")]
    assert all(ord(character) >= 32 and not 0x7F <= ord(character) <= 0x9F for character in line.removesuffix("\n"))
    found = json.loads(line.encode(), parse_constant=lambda name: pytest.fail(name))
    (only,) = found["translations"]
    assert (found["source"], found["source_tokens"], only["tokens"]) == (source, [source], [token])
    assert (only["score"], only["log_prob"], only["token_log_probs"]) == (None, None, [None])


@pytest.mark.parametrize(
    ("name", "n_best", "kind"),
    [(None, 1, TextFormat), (None, 2, NBestFormat), ("nbest", 1, NBestFormat), ("jsonl", 3, JsonLinesFormat)],
)
def test_the_chosen_format(name: str | None, n_best: int, kind: type) -> None:
    assert type(choose_format(name, WORDS, n_best=n_best)) is kind


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("csv", {}, ("`format='csv'`", "text, nbest, jsonl, pharaoh")),
        ("text", {"n_best": 2}, ("`n_best=2`", "text", "nbest or jsonl")),
        ("pharaoh", {"n_best": 3}, ("`n_best=3`", "pharaoh")),
        (None, {"with_attention": True}, ("`with_attention=True`", "text", "jsonl")),
    ],
)
def test_what_a_format_cannot_show_is_refused(
    name: str | None, options: dict[str, int], words: tuple[str, ...]
) -> None:
    with pytest.raises(ConfigError) as caught:
        choose_format(name, WORDS, **options)
    assert all(word in str(caught.value) for word in words)


def test_help_names_every_format(cli: Cli) -> None:
    assert f"--format {'|'.join(FORMATS)}" in cli("translate", "--help").out


def test_every_format_writes_every_line(cli: Cli, tmp_path: Path) -> None:
    given = tmp_path / "in.txt"
    given.write_text("He is old.\n\nIt  rains.\n", encoding="utf-8")

    def lines(*options: object) -> list[str]:
        found = cli("translate", "--model", GOLDEN_MODEL, "--input", given, *options)
        assert (found.code, found.err) == (0, "")
        return found.out.split("\n")[:-1]

    plain = lines()
    assert lines("--format", "text") == plain
    assert [bool(line) for line in plain] == [True, False, True]
    assert lines("--n-best", 2) == lines("--n-best", 2, "--format", "nbest")
    objects = [json.loads(line) for line in lines("--format", "jsonl", "--n-best", 2, "--with-attention")]
    assert [each["source"] for each in objects] == ["He is old.", "", "It  rains."]
    assert [len(each["translations"]) for each in objects] == [2, 1, 2]
    best = [each["translations"][0] for each in objects]
    assert [each["text"] for each in best] == plain
    assert [len(each["attention"] or ()) for each in best] == [
        len(each["tokens"]) + bool(each["text"]) for each in best
    ]
    links = [" ".join(f"{i}-{j}" for i, j in each["links"]) for each in best]
    assert lines("--format", "pharaoh") == links
    assert len(best[0]["links"]) == len(plain[0].split())
    assert cli("translate", "a", "--model", GOLDEN_MODEL, "--format", "csv").err.startswith("nmt: error: --format csv")
