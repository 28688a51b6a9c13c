"""Copies of training pairs in other forms, and in a data directory."""

import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Cli

from nmt.config import AugmentSection, Config, load_config
from nmt.corpus import Pair
from nmt.corpus.augmentation import (
    FORMS,
    find_numbers,
    in_title_case,
    make_copies,
    with_lowercase_first,
    without_final_stop,
)
from nmt.corpus.dataset import open_data, read_examples, read_marker
from nmt.corpus.identity import identities, load_seen
from nmt.corpus.prepare import write_data
from nmt.evaluation.training_text import read_training_pairs
from nmt.system.errors import ConfigError
from nmt.system.files import read_json
from nmt.text.processor import SEEN

ALL = dict.fromkeys(FORMS, 1.0)


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def prepare(output: str, augment: dict[str, float], **data: Any) -> dict[str, Any]:
    lines = [
        f"Tom has {n} cats in room {m}.\tTom hat {n} Katzen in Raum {m}." for n in range(2, 8) for m in range(2, 12)
    ]
    Path("corpus.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    settings = {"source": "corpus.tsv", "split": {"valid_size": 5, "test_size": 10}, "augment": augment, **data}
    config = Config.model_validate({"name": "made", "data": settings, "text": {"tokenizer": "whitespace"}})
    return write_data(config, Path(output)).as_json()


def read_sides(output: str) -> list[tuple[str, str]]:
    data = open_data(Path(output))
    src, tgt = (
        [" ".join(vocabulary.decode(side[n])) for n in range(len(side))]
        for vocabulary, side in ((data.src_vocabulary, data.train.src), (data.tgt_vocabulary, data.train.tgt))
    )
    return list(zip(src, tgt, strict=True))


def test_copies_come_after_the_training_pairs_and_are_counted() -> None:
    prepare("plain", {})
    report = prepare("more", {"all_caps": 1.0, "no_final_stop": 0.5})
    plain, more = read_sides("plain"), read_sides("more")
    assert len(plain) == 45
    assert more[:45] == plain
    copies = set(more[45:])
    capitals = {(src.upper(), tgt.upper()) for src, tgt in plain}
    assert capitals < copies
    assert 5 < len(copies - capitals) < 40
    assert all((f"{src}.", f"{tgt}.") in plain for src, tgt in copies - capitals)
    assert report["augmented"] == {"no_final_stop": len(copies) - 45, "all_caps": 45}
    assert report["pairs"]["train"] == 45
    assert report["copies"] == len(copies) == len(more) - 45 == read_marker(Path("more")).copies
    assert "45 all caps" in Path("more/report.md").read_text(encoding="utf-8")
    for name in ("valid.jsonl", "test.jsonl"):
        assert Path("plain", name).read_bytes() == Path("more", name).read_bytes()
    assert "copies" not in read_json(Path("plain/data.json"))
    assert read_marker(Path("plain")).copies == 0
    pairs = [read_training_pairs(Path(name), open_data(Path(name)).load_processor()) for name in ("plain", "more")]
    assert pairs[0] == pairs[1]  # and so the same short inputs


def test_no_copy_is_a_sentence_of_valid_or_test() -> None:
    """With other numbers, a training sentence can become one of the test split."""
    report = prepare("out", ALL)
    assert report["augmented"]["numbers"] < 45  # those that did are left out
    examples = [example for name in ("valid", "test") for example in read_examples(Path(f"out/{name}.jsonl"))]
    train = read_sides("out")
    for side, texts in ((0, [e.src for e in examples]), (1, [text for e in examples for text in e.references])):
        assert not np.isin(identities([pair[side] for pair in train]), identities(texts)).any()
    seen = load_seen(Path("out/text") / SEEN)
    assert seen is not None
    assert set(identities([src for src, _ in train]).tolist()) == set(seen.tolist())


def test_workers_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.corpus.store.in_chunks.__defaults__", (7,))
    for workers in (1, 2):
        prepare(f"out{workers}", ALL, workers=workers)
    assert read_sides("out1") == read_sides("out2")


def test_copies_that_are_too_long_are_left_out(cli: Cli) -> None:
    short = [(f"Word{n} .", f"Wort{n} .") for n in range(20)]
    long = [(f"a b c Word{n} .", f"a b c Wort{n} .") for n in range(10)]
    Path("corpus.tsv").write_text("".join(f"{src}\t{tgt}\n" for src, tgt in short + long), encoding="utf-8")
    split = {"valid_size": 0, "test_size": 0}
    data = {"source": "corpus.tsv", "split": split, "augment": {"no_final_stop": 1.0, "all_caps": 1.0}}
    text = {"tokenizer": "whitespace", "max_length": 4}
    report = write_data(Config.model_validate({"name": "made", "data": data, "text": text}), Path("out")).as_json()
    assert report["augmented"] == {"no_final_stop": 30, "all_caps": 30}
    assert read_sides("out")[:20] == short
    assert len(read_sides("out")) == 20 + 50  # without its stop, a long one fits
    assert report["copies"] == read_marker(Path("out")).copies == 50
    assert "60 copies" in cli("data", "out").out


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        *((f"all_caps={value}", r"data\.augment\.all_caps") for value in ("-0.1", "1.1", "true", "x")),
        ("all_cap=0.1", "did you mean all_caps"),
    ],
)
def test_a_share_is_from_0_to_1_and_of_a_known_form(setting: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_config("tatoeba", [f"data.augment.{setting}"])


@pytest.mark.parametrize(
    ("text", "without", "title", "small"),
    [
        ("How are you?", "How are you", "How Are You", "how are you?"),
        ("Wait ...", "Wait", "Wait", "wait ..."),
        ("It's 3.50!?", "It's 3.50", "It's 3.50", "it's 3.50!?"),
        ("?!", "?!", "?!", "?!"),
        ("你好。", "你好", "你好", "你好。"),
        ("", "", "", ""),
    ],
)
def test_forms(text: str, without: str, title: str, small: str) -> None:
    assert (without_final_stop(text), in_title_case(text), with_lowercase_first(text)) == (without, title, small)


def copy(form: str, src: str, tgt: str, seed: int = 1) -> Pair:
    return FORMS[form](Pair(src, tgt), random.Random(seed))


@pytest.mark.parametrize(
    ("form", "pair", "copied"),
    [
        ("no_final_stop", ("Hello!", "Hallo."), ("Hello", "Hallo")),
        ("no_final_stop", ("Hello", "Hallo."), None),
        ("no_final_stop", ("Hello.", "Hallo"), None),
        ("all_caps", ("It's big.", "Groß."), ("IT'S BIG.", "GROSS.")),
        ("all_caps", ("你好", "OK"), None),
        ("title_case", ("How are you?", "Wie geht es dir?"), ("How Are You", "Wie geht es dir")),
        ("title_case", ("Hello!", "Hallo!"), None),
        ("lowercase_first", ("How are you?", "Wie geht es dir?"), ("how are you?", "Wie geht es dir?")),
        ("lowercase_first", ("1 dog", "1 Hund"), None),
        ("numbers", ("I have two.", "Ich habe zwei."), None),
        ("numbers", ("I have 2.", "Ich habe zwei."), None),
        ("numbers", ("I have 1.", "Ich habe 1."), None),
        ("names", ("I saw a computer.", "Ich sah einen Computer."), None),
        ("names", ("OK, he said.", "OK, sagte er."), None),
        ("names", ("Mary left.", "Maria ging."), None),
    ],
)
def test_copies(form: str, pair: tuple[str, str], copied: tuple[str, str] | None) -> None:
    assert copy(form, *pair) == (copied or pair)


def test_numbers_change_alike_on_both_sides() -> None:
    for seed in range(50):
        src, tgt = copy(
            "numbers",
            "At 9:30 I paid 1,050 and 1 euro, not 930.",
            "Ich zahlte 1.050 um 9.30 und 1 Euro, nicht 930.",
            seed,
        )
        found = re.fullmatch(r"At ([1-9]):(\d\d) I paid ([1-9]),(\d{3}) and 1 euro, not ([1-9]\d\d)\.", src)
        assert found
        assert tgt == f"Ich zahlte {found[3]}.{found[4]} um {found[1]}.{found[2]} und 1 Euro, nicht {found[5]}."
    assert len({copy("numbers", "In 1984.", "Im Jahr 1984.", seed) for seed in range(50)}) > 40
    assert find_numbers(copy("numbers", "Call 007.", "Ruf 007.").src)[0].startswith("0")


def test_names_change_alike_on_both_sides() -> None:
    made = set()
    for seed in range(50):
        src, tgt = copy(
            "names", "I told Tom about Tom's dog and Boston.", "Ich habe Tom von Tom Hund und Boston erzählt.", seed
        )
        name = src.split()[2]
        assert name.isalpha()
        assert name.istitle()
        assert 4 <= len(name) <= 7
        assert src == f"I told {name} about {name}'s dog and Boston."
        assert tgt == f"Ich habe {name} von {name} Hund und Boston erzählt."
        made.add(name)
    assert len(made) > 45


def test_pairs_are_chosen_by_text_and_seed() -> None:
    pairs = [Pair(f"word{n} more.", f"wort{n} mehr.") for n in range(2000)]
    shares = {"no_final_stop": 0.1, "all_caps": 0.05, "title_case": 1.0}
    copies = make_copies(pairs, shares, 1)
    counts = {form: sum(name == form for name, _ in copies) for form in shares}
    assert 160 < counts["no_final_stop"] < 240  # 200 expected, deviation 13
    assert 70 < counts["all_caps"] < 130  # 100 expected, deviation 10
    assert counts["title_case"] == 2000
    assert sorted(make_copies(pairs[::-1], shares, 1)) == sorted(copies)
    assert make_copies(pairs[:700], shares, 1) + make_copies(pairs[700:], shares, 1) == copies
    assert make_copies(pairs, {"all_caps": 0.05}, 1) == [each for each in copies if each[0] == "all_caps"]
    assert make_copies(pairs, shares, 2) != copies
    assert make_copies(pairs, dict.fromkeys(shares, 0.0), 1) == []


def test_every_form_has_a_key() -> None:
    assert list(AugmentSection().model_dump()) == list(FORMS)
    assert set(AugmentSection().model_dump().values()) == {0.0}
    assert all(len(name) <= 16 for name in FORMS)  # of a random draw
