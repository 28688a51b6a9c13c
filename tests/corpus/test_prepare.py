import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Cli, tree

from nmt.config import Config, Overrides, load_config, read_config
from nmt.corpus.augmentation import FORMS
from nmt.corpus.dataset import DataDirectory, EncodedPairs, open_data
from nmt.corpus.example import read_examples
from nmt.corpus.identity import identities, load_seen
from nmt.corpus.marker_schema import compute_checksums, read_marker
from nmt.corpus.prepare import find_prepared_data, write_data
from nmt.corpus.training_pairs import read_training_pairs
from nmt.system.errors import ConfigError, DataError
from nmt.system.files import read_json, shipped
from nmt.text.processor import SEEN, load_processor
from nmt.text.tokenizers import SubwordTokenizer, WordTokenizer
from nmt.text.vocabulary import SPECIAL_TOKENS, Vocabulary

Pairs = list[tuple[str, str]]
ALL = dict.fromkeys([*FORMS, "words", "joined"], 1.0)

NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
PAIRS: Pairs = [(f"I have {word} .", f"ich habe {word.upper()} .") for word in NUMBERS]


ROOMS = [(number, room) for number in range(2, 8) for room in range(2, 12)]
CATS = [(f"Tom has {n} cats in room {room}.", f"Tom hat {n} Katzen in Raum {room}.") for n, room in ROOMS]
WHOLE = {"data.split.valid_size": 0, "data.split.test_size": 0}
BASE = load_config(
    Config(name="made"),
    ["data.source=corpus.tsv", "data.split={valid_size: 2, test_size: 3}", "text.tokenizer=whitespace"],
)


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_pictures: None) -> None:
    monkeypatch.chdir(tmp_path)


def write_lines(name: str, lines: list[str]) -> str:
    Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return name


def write_table(pairs: Pairs, name: str = "corpus.tsv") -> str:
    return write_lines(name, ["\t".join(pair) for pair in pairs])


def write_splits(**splits: Pairs) -> list[str]:
    """Two files for each split."""
    return [
        write_lines(f"{name}.{side}", [pair[side] for pair in pairs])
        for name, pairs in splits.items()
        for side in (0, 1)
    ]


def run(settings: Overrides = (), output: str = "out", *, overwrite: bool = False) -> dict[str, Any]:
    return write_data(load_config(BASE, settings), Path(output), overwrite=overwrite).as_json()


def decoded(data: DataDirectory, pairs: EncodedPairs) -> Pairs:
    """Encoded pairs as text, tokens joined by spaces."""
    return [
        (" ".join(data.src_vocabulary.decode(pairs.src[index])), " ".join(data.tgt_vocabulary.decode(pairs.tgt[index])))
        for index in range(len(pairs))
    ]


def training_pairs(output: str = "out") -> Pairs:
    data = open_data(Path(output))
    return decoded(data, data.train)


def examples_of(split: str, output: str = "out") -> Pairs:
    return [(e.src, reference) for e in read_examples(Path(output) / f"{split}.jsonl") for reference in e.references]


def test_the_data_directory_contains_the_corpus_once() -> None:
    write_table(PAIRS)
    run()
    data = open_data(Path("out"))
    train, valid, test = decoded(data, data.train), examples_of("valid"), examples_of("test")
    assert sorted(train + valid + test) == sorted(PAIRS)
    assert (len(train), len(valid), len(test)) == (7, 2, 3)
    assert data.config == BASE
    # The vocabulary is that of training alone: in valid, the number of a sentence is unknown.
    assert data.src_vocabulary.tokens[:7] == [*SPECIAL_TOKENS, ".", "I", "have"]
    assert set(data.src_vocabulary.tokens) == {word for src, _ in train for word in src.split()} | set(SPECIAL_TOKENS)
    assert decoded(data, data.valid) == [("I have <unk> .", "ich habe <unk> .")] * 2
    assert sorted(tree(Path("out"))) == sorted(
        ["config.yaml", "data.json", "lengths.png", "report.json", "report.md", "test.jsonl", "valid.jsonl"]
        + [f"{split}.{side}.{kind}.npy" for split in ("train", "valid") for side in ("src", "tgt")
           for kind in ("ids", "offsets")]
        + [f"text/{side}.{kind}.json" for side in ("src", "tgt") for kind in ("tokenizer", "vocabulary")]
        + ["text/normalization.json", "text/train.src.fingerprints.npy"]
    )  # fmt: skip


def test_the_report_counts_by_hand() -> None:
    rows = [f"{src}\t{tgt}" for src, tgt in PAIRS]
    rows += [
        "only one column",
        rows[0],  # duplicate
        "\tohne Quelle",  # empty
        "a b c d e f\tzu lang",  # six words
        "so  many   blanks\tso viele Leerzeichen",
        "u\u0308ber\tsieben",  # not composed
        "",
    ]
    write_lines("corpus.tsv", rows)
    report = run({"data.cleaning.max_length": 5, "data.max_malformed": 0.1, "text.max_length": 4})
    assert json.loads(json.dumps(report)) == read_json(Path("out/report.json"))
    assert report["lines"] == {
        "read": 19,
        "blank": 1,
        "malformed": {"too_few_columns": 1},
        "places": {"too_few_columns": ["corpus.tsv:13"]},
    }
    assert report["cleaning"] == {
        "read": 17,
        "kept": 14,
        "changed": {
            "blanks": {"pairs": 1, "samples": [(("so  many   blanks", "so viele Leerzeichen"),
                                                ("so many blanks", "so viele Leerzeichen"))]},
            "unicode": {"pairs": 1, "samples": [(("u\u0308ber", "sieben"), ("über", "sieben"))]},
        },
        "dropped": {
            "empty": {"pairs": 1, "samples": [(("", "ohne Quelle"),)]},
            "too_long": {"pairs": 1, "samples": [(("a b c d e f", "zu lang"),)]},
            "duplicate": {"pairs": 1, "samples": [(PAIRS[0],)]},
        },
    }  # fmt: skip
    assert report["given_splits"] is False
    assert report["pairs"] == {"train": 9, "valid": 2, "test": 3}
    assert report["sources"] == {"train": 9, "valid": 2, "test": 3}
    assert report["references"] == {"train": [9], "valid": [2], "test": [3]}
    assert (report["components"], report["largest_component"]) == (14, 1)
    assert report["overlap"] == {
        "valid": {"sources": 0, "targets": 0, "examples": 2},
        "test": {"sources": 0, "targets": 0, "examples": 3},
    }
    assert report["naive_overlap"] == {"sources": 0, "targets": 0, "examples": 3}
    assert report["too_many_tokens"] == 0
    marker = read_json(Path("out/data.json"))
    assert list(marker.pop("sources")) == ["corpus.tsv"]
    assert marker == {"format_version": 1, "pairs": report["pairs"], "sha256": compute_checksums(Path("out"))}


def test_the_report_counts_tokens_and_unknown_words() -> None:
    sources = write_splits(
        train=[("a b a", "x"), ("a c", "y y z"), ("a", "x x x x x")], valid=[("a d", "x")], test=[("d e b", "w x")]
    )
    report = run({"data.source": sources, "text.max_length": 4, "text.vocabulary.min_count": 2})
    # The third pair is too long and dropped after counting: x occurs 6 times, y 2, z once; a 4 times, b, c once.
    data = open_data(Path("out"))
    assert data.src_vocabulary == Vocabulary(["a"])
    assert data.tgt_vocabulary == Vocabulary(["x", "y"])
    assert decoded(data, data.train) == [("a <unk> a", "x"), ("a <unk>", "y y <unk>")]
    assert report["vocabulary"] == {"src": 5, "tgt": 6}
    assert report["too_many_tokens"] == 1
    assert report["tokens"] == {"train": [5, 4], "valid": [2, 1], "test": [3, 2]}
    assert report["unknown_share"] == {"train": [0.4, 0.25], "valid": [0.5, 0.0], "test": [1.0, 0.5]}


def test_many_unknown_tokens_are_reported(cli: Cli, caplog: pytest.LogCaptureFixture) -> None:
    write_table(PAIRS)
    run({"text.vocabulary.max_size": 2})
    warnings = [line for line in caplog.messages if line.startswith("50.0% of the ")]
    assert ["source" in line for line in warnings] == [True, False]
    assert "WARNING: 50.0% of the target tokens in training" in cli("data", "out").out


def test_a_reused_vocabulary_that_knows_no_word(first: Path) -> None:
    write_table([("a", "b")] * 9)
    with pytest.raises(DataError, match=r"every source token in training is unknown; set parent\.pieces=own"):
        run(WHOLE | {"parent": str(first)})
    assert not Path("out").exists()


def test_the_report_in_words(caplog: pytest.LogCaptureFixture) -> None:
    write_table([*PAIRS, PAIRS[0]])
    with caplog.at_level("INFO", "nmt"):
        run()
    direction, *said = caplog.messages
    assert direction.startswith("en to de: English to German")
    assert said[0] == "corpus.tsv: source in column 1, target in column 2: 13 lines"
    assert said[1] == "cleaning: 13 pairs read, 12 kept; dropped 1 duplicate"
    assert said[2] == ("splits: 7 training pairs, 2 valid sources with 2 references, 3 test sources with 3 references")
    assert "vocabularies: 14 source, 14 target" in said
    assert any("a random split of the same size would have leaked 0.0% of its sources" in line for line in said)


def test_all_references_of_a_source_stay_together() -> None:
    pairs = [*PAIRS, *((src, f"{tgt} wirklich") for src, tgt in PAIRS)]
    write_table(pairs)
    report = run()
    assert report["sources"] == {"train": 7, "valid": 2, "test": 3}
    assert report["references"] == {"train": [0, 7], "valid": [0, 2], "test": [0, 3]}
    assert report["pairs"] == {"train": 14, "valid": 4, "test": 6}
    expected = {src: (tgt, f"{tgt} wirklich") for src, tgt in PAIRS}
    for example in (*read_examples(Path("out/valid.jsonl")), *read_examples(Path("out/test.jsonl"))):
        assert example.references == expected[example.src]
    assert len(open_data(Path("out")).valid) == 4


def test_given_splits_are_used_unchanged() -> None:
    valid = [("I have thirteen .", "ich habe 13 ."), PAIRS[1], PAIRS[1]]
    test = [PAIRS[0], ("", "leer"), ("I have two .", "anders"), (" two  blanks ", "x")]
    report = run({"data.source": write_splits(train=PAIRS, valid=valid, test=test)})
    assert training_pairs() == PAIRS
    assert examples_of("valid") == valid
    assert examples_of("test") == [*test[:3], ("two blanks", "x")]
    assert report["given_splits"] is True
    assert report["sources"] == {"train": 12, "valid": 3, "test": 4}
    assert report["overlap"] == {
        "valid": {"sources": 2, "targets": 2, "examples": 3},
        "test": {"sources": 2, "targets": 1, "examples": 4},
    }
    assert "naive_overlap" not in report


@pytest.mark.parametrize(
    ("split", "side", "pairs"),
    [("valid", "source", [("", "a"), (" ", "b")]), ("valid", "target", [("a", "")]), ("test", "source", [("", "")])],
)
def test_given_splits_have_text(split: str, side: str, pairs: list[tuple[str, str]]) -> None:
    splits = {"valid": PAIRS[:2], "test": PAIRS[:2]} | {split: pairs}
    with pytest.raises(DataError, match=f"{split}: all {len(pairs)} {side} lines are empty"):
        run({"data.source": write_splits(train=PAIRS, **splits)})
    assert not Path("out").exists()


def test_training_pairs_of_given_splits_can_be_fewer() -> None:
    sources = write_splits(train=PAIRS, valid=PAIRS[:1])
    report = run({"data.source": sources, "data.split.train_size": 5})
    assert training_pairs() == PAIRS[:5]
    assert report["sources"] == {"train": 5, "valid": 1, "test": 0}
    assert not Path("out/test.jsonl").exists()


def test_what_is_dropped_is_counted_for_each_split_with_files(cli: Cli) -> None:
    """The first training pair is in both splits: it is dropped once and counts for each."""
    valid = [PAIRS[0], ("new", ""), ("newer", " ")]
    test = [PAIRS[0], PAIRS[1], ("other", PAIRS[2][1]), ("odd", "")]
    sources = write_splits(train=PAIRS, valid=valid, test=test)
    write_lines("mine.yaml", [f"data: {{source: [{', '.join(sources)}]}}", "text: {tokenizer: whitespace}"])
    outcome = cli("preprocess", "mine.yaml", "--output", "out")
    assert "\nvalid: 3 pairs read, 1 kept; left out 2 without a reference\n" in outcome.err
    outcome = cli("preprocess", "mine.yaml", "--output", "out", "--drop-overlap", "--overwrite")
    report = read_json(Path("out/report.json"))
    assert report["dropped_overlap"] == 3
    assert report["split_files"] == {
        "valid": {"read": 3, "without_reference": 2, "dropped_training": 1},
        "test": {"read": 4, "without_reference": 1, "dropped_training": 3},
    }
    line = (
        "4 pairs read, 3 kept; left out 1 without a reference; 3 training pairs dropped that share a sentence with it"
    )
    assert f"\ntest: {line}\n" in outcome.err
    assert f"Of the files of test: {line}." in Path("out/report.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("unicode_marks", ["", "!"])
def test_overlap_of_given_splits_can_be_dropped(unicode_marks: str) -> None:
    valid = [(PAIRS[1][0].upper() + unicode_marks, "neu"), ("new", "neu")]
    test = [("other", PAIRS[4][1]), ("I have thirteen .", "x")]
    report = run({"data.source": write_splits(train=PAIRS, valid=valid, test=test), "data.drop_overlap": True})
    assert training_pairs() == [pair for pair in PAIRS if pair not in (PAIRS[1], PAIRS[4])]
    assert report["dropped_overlap"] == 2
    files = {"read": 2, "without_reference": 0, "dropped_training": 1}
    assert report["split_files"] == {"valid": files, "test": files}
    assert report["overlap"]["valid"] == {"sources": 0, "targets": 0, "examples": 2}
    assert report["overlap"]["test"] == {"sources": 0, "targets": 0, "examples": 2}
    assert examples_of("valid") == valid
    with pytest.raises(DataError, match="corpus: every training pair shares a sentence"):
        run({"data.source": write_splits(train=PAIRS[:2], valid=PAIRS[:2]), "data.drop_overlap": True}, "none")


@pytest.mark.parametrize("files", [1, 2, 4])
def test_a_corpus_can_be_reversed(files: int) -> None:
    valid = [("I have thirteen .", "ich habe 13 .")]
    sources = {1: [write_table(PAIRS)], 2: write_splits(all=PAIRS), 4: write_splits(train=PAIRS, valid=valid)}[files]
    report = run(WHOLE | {"data.source": sources, "data.reverse": True})
    assert training_pairs() == [(tgt, src) for src, tgt in PAIRS]
    assert report["languages"] == ["de", "en"]
    assert files != 4 or examples_of("valid") == [(tgt, src) for src, tgt in valid]


def test_workers_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.corpus.store.in_chunks.__defaults__", (7,))
    monkeypatch.setattr("nmt.corpus.lines.in_blocks.__defaults__", (200, None))
    write_table([(src.replace("cats", " cats"), tgt) for src, tgt in CATS])
    settings = {"text.tokenizer": "subword", "text.subword.vocabulary_size": 70, "data.augment": ALL}
    for workers in (1, 2):
        run(settings | {"data.workers": workers}, f"out{workers}")
    one, two = tree(Path("out1")), tree(Path("out2"))
    assert {name for name in one if one[name] != two[name]} <= {"config.yaml", "report.json"}  # workers, seconds
    reports = [read_json(Path(f"out{workers}/report.json")) for workers in (1, 2)]
    assert reports[0] == reports[1]


def test_malformed_lines_are_fatal_above_a_share() -> None:
    Path("corpus.tsv").write_bytes("".join(f"{a}\t{b}\n" for a, b in PAIRS).encode() + b"caf\xe9\tKaffee\n")
    with pytest.raises(DataError, match=r"1 of 13 lines .*: 1 not UTF-8 \(corpus\.tsv:13\); convert"):
        run()
    report = run({"data.max_malformed": 0.08})
    assert report["lines"]["malformed"] == {"not_utf8": 1}


def test_every_subword_can_be_kept() -> None:
    write_table([(f"{a} {b} abab", f"{b}{a}") for a in "abcd" for b in "abcd"])
    text = {"tokenizer": "subword", "subword": {"vocabulary_size": 16, "joint": True}, "vocabulary": {"joint": True}}
    sizes = []
    for min_count in (1, 0):
        run(WHOLE | {"text": text, "text.vocabulary.min_count": min_count}, f"out{min_count}")
        sizes.append(len(open_data(Path(f"out{min_count}")).src_vocabulary))
    # Three pieces of SentencePiece are its own; the four special tokens are ours.
    assert sizes[1] == 16 - 3 + 4
    assert sizes[0] < sizes[1]


def test_given_splits_have_loss_on_repaired_text_and_scores_on_raw_text() -> None:
    """What training text became is what a model can learn to say; the user's references stay as they are.

    Source text to translate is repaired in the same way.
    """
    marked = "&amp; \u201cso\u201d"
    splits = {name: [(f"{src} {marked}", f"{tgt} {marked}") for src, tgt in PAIRS[:3]] for name in ("train", "valid")}
    run({"data.source": write_splits(**splits), "data.cleaning.quotes": True})
    data = open_data(Path("out"))
    assert decoded(data, data.valid) == [(f'{src} & "so"', f'{tgt} & "so"') for src, tgt in PAIRS[:3]]
    assert decoded(data, data.valid) == decoded(data, data.train)
    assert examples_of("valid") == splits["valid"]
    assert load_processor(Path("out/text")).tokenize_source(["a &amp;amp;  \u201eso\u201c"]) == [["a", "&", '"so"']]


LETTERS = {"data.cleaning.min_letters": 0.91}  # which two pairs have
FAILURES: list[tuple[dict[str, Any], str]] = [
    (
        LETTERS | {"data.source": ["train.0", "train.1", "valid.0", "valid.1"], "data.split.train_size": 9},
        "9 pairs wanted, but the training file has 2; ask for fewer or give more data; cleaning kept 2 of 12",
    ),
    ({"data.source": "latin.tsv", "data.max_malformed": 1}, "3 of 3 lines are malformed: 3 not UTF-8"),
    (
        {"text.vocabulary.min_count": 10**9},
        "every source token in training is unknown; lower text.vocabulary.min_count",
    ),
    ({"text.max_length": 3}, "no training pair has at most text.max_length = 3 tokens"),
    (
        {"data.cleaning.min_length": 9},
        "corpus: no pair is left, as cleaning kept 0 of 12 pairs (too_short dropped 12): see data.cleaning and ",
    ),
    (
        LETTERS | {"data.split.valid_size": 0},
        "corpus: 2 of 3 test sentences found; ask for a smaller test split or give more data; cleaning kept 2 of 12 "
        "pairs (few_letters dropped 10): see data.cleaning and data.columns",
    ),
    (
        LETTERS | WHOLE | {"data.split.train_size": 9},
        "2 pairs of the 9 wanted left for training, after 0 test and 0 valid sentences; ask for smaller splits or give "
        "more data; cleaning kept 2 of 12",
    ),
    ({"data.split.valid_size": 9, "data.split.test_size": 9}, "ask for a smaller valid split or give more data"),
    ({"data.columns": [1, 3]}, "no line has columns 1 and 3 (at most 2 columns in 12 lines); write lines of"),
    ({"data.source": "words.txt"}, "no line has columns 1 and 2 (only one column in 2 lines); write lines of"),
    ({"data.source": "nowhere.tsv"}, "nowhere.tsv: no such file"),
    ({"data.source": []}, "data.source: is empty"),
    ({"text.tokenizer": "subword", "text.subword.vocabulary_size": 5}, "raise text.subword.vocabulary_size"),
    ({"text.tokenizer": "spacy", "data.src_language": "zz"}, "language 'zz': spaCy has no blank tokenizer"),
    ({"parent": "nowhere"}, "parent: nowhere: does not exist"),
]


@pytest.mark.parametrize(("settings", "message"), FAILURES)
@pytest.mark.parametrize("earlier", [False, True])
def test_a_failure_changes_nothing(first: Path, settings: dict[str, Any], message: str, earlier: bool) -> None:
    write_table(PAIRS)
    write_splits(train=PAIRS, valid=PAIRS[:1])
    write_lines("words.txt", ["Hi.", "Run!"])
    Path("latin.tsv").write_bytes(b"\xff\ta\n" * 3)
    if earlier:
        shutil.copytree(first, "deep/out")
    before = tree()
    with pytest.raises((DataError, ConfigError)) as caught:
        run(settings, "deep/out", overwrite=True)
    assert message in str(caught.value)
    assert tree() == before
    assert Path("deep").exists() == earlier


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        (["nowhere.tsv"], "nowhere.tsv: no such file; check the path"),
        (["nowhere"], "nowhere: no such file, with or without .en and .de"),
        (["corpus.tsv", "nowhere.de"], "nowhere.de: no such file; check the path"),
        ([], "data.source: is empty; list files in the config or give them with --source"),
    ],
)
def test_what_is_wrong_with_a_source_is_said_before_the_output_folder(
    cli: Cli, sources: list[str], message: str
) -> None:
    write_table(PAIRS)
    write_lines("mine.yaml", ["data: {}"])
    Path("full").mkdir()
    write_lines("full/notes.txt", ["mine"])
    before = tree()
    for output in ("full", "deep/out"):
        words = [word for source in sources for word in ("--source", source)]
        outcome = cli("preprocess", "mine.yaml", "--output", output, *words)
        assert (outcome.code, outcome.out, outcome.err) == (1, "", f"nmt: error: {message}\n")
    assert tree() == before
    assert not Path("deep").exists()


@pytest.mark.parametrize(
    ("settings", "advice"),
    [
        ([], None),
        (["data.columns=[2, 1]"], "set data.columns=[1, 2] for a table"),
        (["data.src_language=de", "data.tgt_language=en"], "set data.columns=[2, 1] for a table"),
        (["data.src_language=de", "data.tgt_language=en", "data.columns=[2, 1]"], None),
        (["data.columns=[2, 1]", "data.tgt_language=fr"], None),  # only one side looks wrong
        (["data.reverse=true"], None),
    ],
)
def test_swapped_languages_are_noticed(cli: Cli, settings: list[str], advice: str | None) -> None:
    write_table([(f"The cat is in room {n} , and it is old .", f"Die Katze ist in Raum {n} .") for n in range(40)])
    write_lines("mine.yaml", ["data: {source: corpus.tsv}", "text: {tokenizer: whitespace}"])
    words = [word for setting in (*settings, "data.split={valid_size: 0, test_size: 0}") for word in ("--set", setting)]
    outcome = cli("preprocess", "mine.yaml", "--output", "out", *words)
    assert outcome.code == 0, outcome.err
    warnings = [line for line in outcome.err.splitlines() if "looks like" in line]
    source, target = ("German", "English") if not settings or "columns" in settings[0] else ("English", "German")
    looks = f"WARNING: the source looks like {source}, and the target like {target}: "
    assert warnings == ([] if advice is None else [f"{looks}{advice}, or swap the two languages"])


def test_a_folder_named_data_is_not_that_of_the_bundled_sample(cli: Cli) -> None:
    few = ("--set", "data.first_lines=200", "--set", "data.split={valid_size: 5, test_size: 5}")
    assert cli("preprocess", "sample", "--output", "data", *few).code == 0


@pytest.mark.parametrize("run_directory", [False, True])
def test_text_is_reused(first: Path, run_directory: bool) -> None:
    write_table([("I have thirteen apples .", "ich habe 13 ."), *PAIRS[:2]])
    if run_directory:
        Path("run").mkdir()
        Path("run/best").symlink_to(first)
    run(WHOLE | {"parent": "run" if run_directory else str(first)})
    earlier, later = tree(first / "text"), tree(Path("out/text"))
    assert earlier.pop(SEEN) != later.pop(SEEN)  # the training sources are others
    assert earlier == later
    # Cleaning keeps the order; what the first corpus did not have is unknown.
    assert training_pairs()[0] == ("I have <unk> <unk> .", "ich habe <unk> .")


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory of `PAIRS`."""
    folder = tmp_path_factory.mktemp("first")
    run({"data.source": write_table(PAIRS, str(folder / "corpus.tsv"))}, str(folder / "data"))
    return folder / "data"


def test_text_of_other_settings_is_refused(first: Path) -> None:
    write_table(PAIRS)
    other = {"data.cleaning.dashes": True, "text.lowercase": True}
    with pytest.raises(ConfigError) as caught:
        run({"parent": str(first), **other})
    differing = "data.cleaning.dashes (False there, True here), text.lowercase (False there, True here)"
    assert str(caught.value) == f"parent: {first} has other settings: {differing}; set the same, or leave them out"
    run({"parent": {"run": str(first), "pieces": "own"}, **other})


def test_text_is_reused_for_other_languages(first: Path) -> None:
    write_table(PAIRS)
    run({"parent": str(first), "data.tgt_language": "nl"})


def test_a_tokenizer_saved_again_is_read_again() -> None:
    write_table(PAIRS)
    for lowercase in (False, True):
        run({"text.lowercase": lowercase}, overwrite=True)
        assert all(src[0] == ("i" if lowercase else "I") for src, _ in training_pairs())


def test_a_joint_vocabulary_counts_both_sides() -> None:
    sources = write_splits(train=[("a b b", "c a"), ("d", "c a c")], valid=[("a", "c")])
    run({"data.source": sources, "text.vocabulary.joint": True})
    data = open_data(Path("out"))
    # a and c occur 3 times, b twice, d once.
    assert data.src_vocabulary.tokens == data.tgt_vocabulary.tokens == [*SPECIAL_TOKENS, "a", "c", "b", "d"]
    assert decoded(data, data.train) == [("a b b", "c a"), ("d", "c a c")]


SAMPLE = {
    "data": {"source": "data/sample/deu.txt", "first_lines": 400, "split": {"valid_size": 20, "test_size": 20}},
}


def test_the_bundled_sample_is_found_from_any_folder_and_its_subwords_restore_it() -> None:
    run(SAMPLE)
    lines = shipped("data/sample/deu.txt").read_text(encoding="utf-8").splitlines()[:400]
    words = training_pairs()
    evaluation = examples_of("valid") + examples_of("test")
    assert set(words + evaluation) == {tuple(line.split("\t")[:2]) for line in lines}
    for joint in (False, True):
        subword = {"vocabulary_size": 100, "joint": joint}
        text = {"tokenizer": "subword", "subword": subword, "vocabulary": {"joint": joint}}
        run(SAMPLE | {"text": text}, "pieces", overwrite=True)
        data, processor = open_data(Path("pieces")), load_processor(Path("pieces/text"))
        for index, (src, tgt) in enumerate(words):
            assert processor.src_tokenizer.detokenize(data.src_vocabulary.decode(data.train.src[index])) == src
            assert processor.tgt_tokenizer.detokenize(processor.target_tokens(data.train.tgt[index].tolist())) == tgt
        assert isinstance(processor.src_tokenizer, SubwordTokenizer)
        models = [Path(f"pieces/text/{side}.subwords.model").read_bytes() for side in ("src", "tgt")]
        assert (data.src_vocabulary == data.tgt_vocabulary) is (models[0] == models[1]) is joint


def test_words_learn_their_spacing_from_the_training_text() -> None:
    run(SAMPLE | {"text.tokenizer": "spacy"})
    processor = load_processor(Path("out/text"))
    texts = zip(*examples_of("valid"), *examples_of("test"), strict=True)
    for language, tokenizer, sentences in zip(("en", "de"), processor.tokenizers, texts, strict=True):
        assert isinstance(tokenizer, WordTokenizer)
        assert tokenizer.language == language
        assert [tokenizer.detokenize(tokens) for tokens in tokenizer.tokenize(sentences)] == list(sentences)


def augment(output: str, forms: dict[str, float]) -> dict[str, Any]:
    """Preprocess sentences with names and numbers, and copies of them in these forms."""
    write_table(CATS)
    return run({"data.split.valid_size": 5, "data.split.test_size": 10, "data.augment": forms}, output)


def test_copies_come_after_the_training_pairs_and_are_counted() -> None:
    augment("plain", {})
    report = augment("more", {"all_caps": 1.0, "no_final_stop": 0.5})
    plain, more = training_pairs("plain"), training_pairs("more")
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


def test_only_training_pairs_are_joined() -> None:
    augment("plain", {})
    report = augment("long", {"joined": 1.0, "joined_words": 30})
    plain = training_pairs("plain")
    copies = training_pairs("long")[45:]
    assert 25 < len(copies) == report["augmented"]["joined"] <= 45  # a pair of 7 words has no copy of under 14
    for copy in copies:
        src, tgt = ([f"{sentence}." for sentence in side.removesuffix(".").split(". ")] for side in copy)
        assert 2 <= len(src) <= 4
        assert {*zip(src, tgt, strict=True)} <= set(plain)
    for name in ("valid.jsonl", "test.jsonl"):
        assert Path("plain", name).read_bytes() == Path("long", name).read_bytes()


def test_a_lexicon_of_the_training_pairs_is_added_to_them() -> None:
    adjectives = [("red", "rote"), ("blue", "blaue"), ("old", "alte"), ("new", "neue")]
    nouns = [("cat", "Katze"), ("door", "Tür"), ("lamp", "Lampe")]
    write_table([(f"I see 1 {a} {b} .", f"ich sehe 1 {c} {d} .") for a, c in adjectives for b, d in nouns])
    sizes = {"data.split.valid_size": 1, "data.split.test_size": 1}
    run(sizes, "plain")
    report = run({**sizes, "data.augment": {"words": 1.0}}, "lexicon")
    plain, more = training_pairs("plain"), training_pairs("lexicon")
    assert report["augmented"] == {"words": 7}  # of `see` it is `ich`, of which it is unknown how it is written inside
    assert more == [*plain, *sorted([*adjectives, *nouns])]
    half = run({**sizes, "data.augment": {"no_final_stop": 0.5, "words": 0.5}}, "half")["augmented"]
    assert 0 < half["words"] < 7
    assert {*training_pairs("half")[len(plain) + half["no_final_stop"] :]} < {*more[len(plain) :]}


def test_no_copy_is_a_sentence_of_valid_or_test() -> None:
    """With other numbers, a training sentence can become one of the test split."""
    report = augment("out", ALL)
    assert report["augmented"]["numbers"] < 45  # those that did are left out
    examples = [example for name in ("valid", "test") for example in read_examples(Path(f"out/{name}.jsonl"))]
    train = training_pairs("out")
    for side, texts in ((0, [e.src for e in examples]), (1, [text for e in examples for text in e.references])):
        assert not np.isin(identities([pair[side] for pair in train]), identities(texts)).any()
    assert set(identities([src for src, _ in train])) == set(load_seen(Path("out/text") / SEEN))


def test_copies_that_are_too_long_are_left_out(cli: Cli) -> None:
    short = [(f"Word{n} .", f"Wort{n} .") for n in range(20)]
    long = [(f"a b c Word{n} .", f"a b c Wort{n} .") for n in range(10)]
    write_table(short + long)
    report = run(WHOLE | {"data.augment": {"no_final_stop": 1.0, "all_caps": 1.0}, "text.max_length": 4})
    assert report["augmented"] == {"no_final_stop": 30, "all_caps": 30}
    assert training_pairs("out")[:20] == short
    assert len(training_pairs("out")) == 20 + 50  # without its stop, a long one fits
    assert report["copies"] == read_marker(Path("out")).copies == 50
    assert "60 copies" in cli("data", "out").out


def test_auto_becomes_numbers_of_the_corpus_in_data_and_run_and_a_resumed_run_keeps_them(cli: Cli) -> None:
    rows = shipped("data/sample/deu.txt").read_text(encoding="utf-8").splitlines()[:2400]
    write_lines("corpus.tsv", ["\t".join(row.split("\t")[:2]) for row in rows])
    small = "model={embedding_size: 8, encoder: {hidden_size: 8}, decoder: {hidden_size: 8}}"
    data = "{source: corpus.tsv, src_language: en, tgt_language: de, weight: 3}"
    Path("mine.yaml").write_text(f"extends: base\ndata: {data}\n")
    output = cli("preprocess", "--config", "mine.yaml")
    made = read_config(Path("data/prepared/mine/config.yaml"))
    split, training = made.data.split, len(open_data(Path("data/prepared/mine")).train) // 3
    assert split.valid_size == split.test_size == 240
    assert made.text.subword.vocabulary_size == max(500, training // 2)
    assert f"auto: with {training:,} pairs text.subword.vocabulary_size {max(500, training // 2)}, " in output.err
    small_run = ("--config", "mine.yaml", "--set", small, "--set", "train.validation.metric=loss")
    run_twice = (*small_run, "--set", "train.max_updates=2")
    cli("train", *run_twice)
    stored = read_config(Path("runs/mine/config.yaml"))
    assert stored.text == made.text
    assert (stored.model.dropout, stored.model.output_norm, stored.train.batch.size) == (0.5, 5.0, 32)
    assert stored.train.epochs == 6000 * 32 // training < 150
    cli("train", "--config", "runs/mine/config.yaml", "--set", "train.max_updates=4", "--resume")
    cli("train", *run_twice[:-1], "train.max_updates=5", "--resume")  # auto again, and so the same numbers
    assert read_json(Path("runs/mine/run.json"))["updates"] == 5


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("algorithm", ["bpe", "unigram"])
def test_auto_has_a_piece_for_each_character(joint: bool, algorithm: str) -> None:
    han = [chr(0x4E00 + 7 * n) for n in range(900)]
    kana = [chr(0x3041 + n % 80) for n in range(900)]
    pairs = [(f"{''.join(han[n * 9 : n * 9 + 9])} {han[n]}", f"{''.join(kana[n : n + 9])} AB") for n in range(100)] * 2
    settings = [
        *("data.split={valid_size: 0, test_size: 0}", "data.cleaning={duplicates: keep, max_ratio: null}"),
        *("text.subword.vocabulary_size=auto", f"text.subword.joint={joint}", f"text.subword.algorithm={algorithm}"),
        *("text.tokenizer=subword", "text.lowercase=true"),
    ]
    write_table(pairs)
    run(settings)
    han_pieces, kana_pieces = (len({*"".join(side).lower()}) for side in zip(*pairs, strict=True))
    own = 3  # of SentencePiece; the space is a character of both sides
    needed = han_pieces + kana_pieces - 1 + own if joint else max(han_pieces, kana_pieces) + own
    assert needed > 900
    assert read_config(Path("out/config.yaml")).text.subword.vocabulary_size == needed
    with pytest.raises(DataError, match=f"the text has {needed} different characters"):
        run([*settings, f"text.subword.vocabulary_size={needed - 1}"], "few")


def test_auto_pieces_are_those_of_reused_subwords(cli: Cli) -> None:
    write_table(CATS)
    subword = "subword: {joint: true, vocabulary_size: 70}"
    settings = [f"text={{tokenizer: subword, {subword}}}", "data.split.test_size=0"]
    run(settings, "first")
    run([*settings, "text.subword.vocabulary_size=auto", "parent=first"], "second")
    assert read_config(Path("second/config.yaml")).text.subword.vocabulary_size == 70


def test_further_corpora_are_for_training_alone_weighted_and_tagged() -> None:
    """Of the further pairs one is a test sentence in other case, and one a repetition; weight 2.5 is 2 or 3 times."""
    write_table(PAIRS)
    run(output="alone")
    unseen = examples_of("test", "alone")[0]
    new = [(f"We see {word} .", f"wir sehen {word.upper()} .") for word in NUMBERS]
    write_table([*new, new[0], (unseen[0].upper(), "etwas anderes")], "more.tsv")
    extra = {"source": "more.tsv", "weight": 2.5, "tag": "<web>"}
    report = run({"data.extra": {"web": extra, "src": {"source": "more.tsv", "weight": 0.5}}})

    assert examples_of("test") == examples_of("test", "alone")
    assert examples_of("valid") == examples_of("valid", "alone")
    first, *others = (training_pairs(name) for name in ("alone", "out"))
    pairs = others[0]
    assert pairs[: len(first)] == first
    tagged = [pair for pair in pairs if pair[0].startswith("<web> ")]
    assert {(src.removeprefix("<web> "), tgt) for src, tgt in tagged} == set(new)
    times = Counter(tagged)
    assert set(times.values()) == {2, 3}
    halved = [pair for pair in pairs if pair in set(new)]
    assert len(halved) == len(set(halved)) == sum(count == 3 for count in times.values())  # the same draw of each pair
    assert report["extra"]["web"] == {
        "read": 14, "clean": 13, "overlap": 1, "pairs": 12, "repetitions": len(tagged) - 12,
    }  # fmt: skip
    assert report["copies"] == read_marker(Path("out")).copies == len(tagged) - 12
    assert report["pairs"]["train"] == len(first) + 12 + len(halved)
    assert set(load_seen(Path("out/text") / SEEN)) == set(identities([src for src, _ in [*first, *new]]))


def test_the_corpus_itself_and_copies_of_its_pairs_are_repeated_by_its_weight() -> None:
    augment("plain", {"all_caps": 1.0})
    write_table([("More text .", "mehr Text .")], "more.tsv")
    sizes = {"data.split.valid_size": 5, "data.split.test_size": 10, "data.augment": {"all_caps": 1.0}}
    report = run({**sizes, "data.weight": 3, "data.extra": {"more": {"source": "more.tsv"}}}, "thrice")
    plain, thrice = training_pairs("plain"), training_pairs("thrice")
    assert thrice == [*plain[:45], ("More text .", "mehr Text ."), *plain[45:], *sorted(plain * 2, key=plain.index)]
    assert report["copies"] == len(thrice) - 46
    assert examples_of("test", "plain") == examples_of("test", "thrice")


SUBWORDS = "{{tokenizer: subword, subword: {{vocabulary_size: {size}, joint: {joint}, algorithm: {algorithm}}}}}"
TAGGED = "data.extra={b: {source: corpus.tsv, tag: <bt>}}"


@pytest.mark.parametrize(
    ("text", "first"),
    [
        (SUBWORDS.format(size=40, joint="true", algorithm="bpe"), "▁<bt>"),
        (SUBWORDS.format(size=30, joint="false", algorithm="unigram"), "▁<bt>"),
        ("{tokenizer: spacy}", "<bt>"),
        ("{tokenizer: whitespace}", "<bt>"),
    ],
)
def test_a_tag_is_the_first_token(text: str, first: str, caplog: pytest.LogCaptureFixture) -> None:
    write_table([(src.replace("0", "o"), tgt) for src, tgt in CATS])
    run([f"text={text}", TAGGED, *in_settings(WHOLE)])
    processor = load_processor(Path("out/text"))
    (tokens,) = processor.tokenize_source(["<bt> Tom"])
    assert tokens[0] == first
    encoded = EncodedPairs.load(Path("out"), "train")
    firsts = Counter(processor.src_vocabulary.tokens[encoded.src[row][0]] for row in range(len(encoded)))
    assert firsts[first] == read_json(Path("out/report.json"))["extra"]["b"]["pairs"] > 0
    run(["parent=out", TAGGED, f"text={text}", *in_settings(WHOLE)], "child")
    assert "is no token of" not in caplog.text


def test_a_tag_that_a_parent_does_not_have_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    write_table([(src.replace("0", "o"), tgt) for src, tgt in CATS])
    run([f"text={SUBWORDS.format(size=40, joint='true', algorithm='bpe')}", *in_settings(WHOLE)])
    run(["parent=out", TAGGED, *in_settings(WHOLE)], "child")
    warned = "data.extra: the tag <bt> is no token of out, which reads it as ▁ <b t >; set parent.pieces=own"
    assert [record.message for record in caplog.records if "tag" in record.message] == [warned]


def test_pairs_left_out_of_training_are_drawn_as_others_are() -> None:
    pairs = [
        (f"{word} sees {number} birds", f"{word} sieht {number} Vögel") for word in "abcde" for number in range(100)
    ]
    write_table(pairs)
    run({"data.split.train_size": 100, "data.extra": {"all": {"source": "corpus.tsv", "weight": 0.3, "tag": "<x>"}}})
    tagged = {src.removeprefix("<x> ") for src, _ in training_pairs() if src.startswith("<x> ")}
    others = tagged - {src for src, _ in training_pairs()}
    assert 400 * 0.3 - 40 < len(others) < 400 * 0.3 + 40  # four standard deviations
    assert 8 < len(tagged) - len(others) < 52


def test_data_with_another_weight_is_refused() -> None:
    write_table(CATS)
    run(["data.extra={more: {source: corpus.tsv}}", *in_settings(WHOLE)])
    for name, there in (("more", "1.0"), ("less", "None")):
        settings = [f"data.extra.{name}={{source: corpus.tsv, weight: 0.5}}", f"data.extra.{name}.weight=0.5"]
        with pytest.raises(ConfigError, match=rf"settings: data.*\.{name}\.weight \({there} there, 0\.5 here\)"):
            find_prepared_data("out/config.yaml", settings, "out")


def in_settings(values: dict[str, Any]) -> list[str]:
    return [f"{key}={value}" for key, value in values.items()]


def test_a_public_test_set_takes_the_place_of_a_split_and_is_unseen() -> None:
    write_table(PAIRS)
    public = [("I HAVE ONE!", "anders"), ("other", "ich habe TWO ."), ("no", "nichts")]
    report = run({"data.test": write_splits(public=public)})
    assert examples_of("test") == public
    assert len(examples_of("valid")) == 2
    assert len(training_pairs()) == report["pairs"]["train"] == 12 - 2 - 2
    assert report["dropped_overlap"] == 2
    assert report["split_files"] == {"test": {"read": 3, "without_reference": 0, "dropped_training": 2}}
    assert not {src for src, _ in [*training_pairs(), *examples_of("valid")]} & {"I have one .", "I have two ."}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["data.extra={web: {source: more.tsv, tag: web}}"], "data.extra.web.tag: .*'web'"),
        (["data.extra={web: {weight: 2}}"], "data.extra.web.source: "),
        (["data.extra={web: {source: [a, b, c, d]}}"], "data.extra.web.source: must be 1, 2 or 3 files, found 4"),
        (["data.extra={web: {source: gone.tsv}}"], "gone.tsv: no such file"),
        (["data.extra={web: {source: corpus.tsv}}", "data.cleaning.min_letters=1"], "no pair is left"),
        (["data.test=gone.tsv"], "gone.tsv: no such file"),
        (["data.test=corpus.tsv"], "corpus: every training pair shares a sentence with valid or test"),
        (["data.source=[a, b, c, d]", "data.test=corpus.tsv"], "data.test: is for a corpus without ready-made splits"),
    ],
)
def test_wrong_further_corpora_are_refused_in_one_line(settings: list[str], message: str) -> None:
    write_table(PAIRS)
    with pytest.raises((ConfigError, DataError), match=message) as error:
        run(settings)
    assert "\n" not in str(error.value)
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"text.subword.vocabulary_size": 500}, "cannot learn 500 bpe pieces: the training text has at most "),
        ({"data.split.train_size": 9}, "data.split.train_size: 9 pairs wanted, but 2 are left; "),
    ],
)
def test_what_is_lacking_because_splits_overlap_is_said_of_the_overlap(settings: dict[str, Any], message: str) -> None:
    sources = write_splits(train=PAIRS, valid=PAIRS[:5], test=PAIRS[3:10])
    automatic = {"text.tokenizer": "subword", "text.subword.vocabulary_size": "auto"}
    whole = {"data.source": sources, "data.drop_overlap": True, **automatic}
    with pytest.raises(DataError, match="overlap with valid or test dropped 10 of 12 training pairs; use") as refused:
        run(whole | settings)
    assert message in str(refused.value)
    run(whole)
    assert len(training_pairs()) == 2


def test_a_public_test_set_that_is_most_of_the_corpus_is_named() -> None:
    write_table(PAIRS)
    write_table(PAIRS[:9], "test.tsv")
    with pytest.raises(DataError, match="; overlap with valid or test dropped 9 of 12 training pairs"):
        run({"data.test": "test.tsv", "data.split.valid_size": 5})
