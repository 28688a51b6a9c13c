"""Random text and configs: the commands accept any input or reject it in clear lines.

Each test runs on a few inputs with a fixed seed and, marked `soak`, on many with a new one, which it prints and
FUZZ_SEED sets again.
"""

import os
import random
import re
import secrets
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import GOLDEN_MODEL, Cli, Outcome, Project

from nmt.config import choose_by_amount, choose_split, dump_config, load_config, parse_config, resolve_auto
from nmt.config.description import describe_keys
from nmt.corpus.dataset import open_data
from nmt.system.errors import ConfigError
from nmt.system.files import read_json, shipped

FEW, MANY = 100, 10_000


@pytest.fixture(params=[FEW, pytest.param(MANY, marks=pytest.mark.soak)], ids=["few", "many"])
def number(request: pytest.FixtureRequest) -> int:
    """How many inputs."""
    return int(request.param)


@pytest.fixture
def source(number: int, capfd: pytest.CaptureFixture[str], request: pytest.FixtureRequest) -> random.Random:
    """Random draws."""
    if number != MANY:
        return random.Random(1)
    seed = int(os.environ.get("FUZZ_SEED", secrets.randbits(32)))
    with capfd.disabled():
        print(f"\n{request.node.name}: {number:,} inputs, FUZZ_SEED={seed}")
    return random.Random(seed)


BLANKS = " \t\x0b\x0c\x1c\x1d\x1e\x1f\x85\u00a0\u1680\u2003\u2028\u2029\u202f\u205f\u3000"
CONTROL = "".join(map(chr, (*range(10), *range(11, 32), *range(127, 160), 65)))
JOINING = "\u200b\u200c\u200d\u2060\ufe0e\ufe0f\ufeff\u00ad\u061c\u202a\u202e\u2066\u2069"
EMOJI = "\U0001f468\U0001f469\U0001f467\U0001f3fd\U0001f3f3\U0001f308\U0001f1e9\U0001f1ea\u2764\u20e3"
MARKUP = [
    "&amp;", "&lt;b&gt;", "&#0;", "&#10;", "&#x0a;", "&#xd800;", "&#1114112;", "&amp;amp;#8232;", "&nbsp;", "&;",
    "<unk>", "<pad>", "<s>", "</s>", "\u2581", "|||", "%s", "{0}", "\\n", "\\x00", "'; --", '"', "'", "`",
]  # fmt: skip


def any_character(source: random.Random) -> str:
    """Any character except surrogates, which are not text, and line feeds, which end a line."""
    plane = source.choice([0, 0, 0, 1, 2, 3, 14, 15, 16])
    character = chr(source.randrange(plane << 16, (plane + 1) << 16))
    return "\ufffd" if "\ud800" <= character <= "\udfff" or character == "\n" else character


KINDS: list[Callable[[random.Random], str]] = [
    lambda s: "",
    lambda s: "".join(s.choices(BLANKS, k=s.randint(1, 9))),
    lambda s: "".join(any_character(s) for _ in range(s.randint(1, 30))),
    lambda s: "".join(s.choices(CONTROL, k=s.randint(1, 9))),
    lambda s: s.choice("aA1.!\u00df\u4f60\U0001f600\u0301") * s.choice([50, 200, 1000]),
    lambda s: " ".join(s.choices("abcdefgh", k=s.choice([3, 30, 1200]))),
    lambda s: "e" + "".join(chr(s.randint(0x300, 0x36F)) for _ in range(s.randint(1, 40))),
    lambda s: "".join(chr(s.choice([32, s.randint(0x5D0, 0x5EA), s.randint(0x620, 0x64A)])) for _ in range(20)),
    lambda s: "".join(s.choice(EMOJI) + s.choice(["", "\u200d", "\ufe0f"]) for _ in range(s.randint(1, 8))),
    lambda s: "".join(s.choice([*MARKUP, " ", "a"]) for _ in range(s.randint(1, 9))),
    lambda s: "".join(s.choice(JOINING + BLANKS + "ab") for _ in range(s.randint(1, 9))),
    lambda s: s.choice(["a b c", "d e", "Hello, world!", "It's 5 o'clock."]) + s.choice(["", "\r", "\t", "\r\r", "\0"]),
    lambda s: "".join(s.choice("!\"'()[]{}.,;:?-\u2013\u2026\u00ab\u00bb") for _ in range(s.randint(1, 60))),
]


def any_text(source: random.Random) -> str:
    """Text without a line feed."""
    return "".join(source.choice(KINDS)(source) for _ in range(source.choice([1, 1, 1, 2, 3])))


def any_line(source: random.Random) -> bytes:
    """Bytes without a line feed; some are no UTF-8."""
    line = any_text(source).encode()
    if source.random() < 0.1:
        place = source.randint(0, len(line))
        noise = bytes(source.choice([0x80, 0xC0, 0xED, 0xF5, 0xFE, 0xFF, 0xE2]) for _ in range(source.randint(1, 3)))
        line = line[:place] + noise + line[place + source.randint(0, 1) :]
    return line


ADJECTIVES = ["red", "green", "blue", "old", "new", "big", "small", "good", "bad", "warm", "cold", "hard", "soft"]
CORPUS = ["data.max_malformed=1", "data.split.valid_size=20", "data.split.test_size=20", "text.max_length=10000"]
RULES = "max_length=100000 max_characters=null max_ratio=null min_letters=0 copies=true duplicates=keep unicode=none"
RULES += " control_characters=false html_entities=false"
NO_CLEANING = [f"data.cleaning.{rule}" for rule in RULES.split()]


def write_lines(path: Path, lines: list[bytes]) -> None:
    path.write_bytes(b"".join(line + b"\n" for line in lines))


def assert_refused_clearly(outcome: Outcome) -> None:
    """An error of lines that all say so, and no traceback."""
    assert outcome.code == 1, outcome
    assert outcome.err.strip().splitlines()[-1].startswith("nmt: error: "), outcome.err[-2000:]
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize("model", ["project", "golden"])
def test_any_line_is_translated(
    model: str, number: int, source: random.Random, project: Project, cli: Cli, tmp_path: Path
) -> None:
    lines = [b"a b c", *(any_line(source) for _ in range(number))]  # must not start like UTF-16
    write_lines(tmp_path / "in", lines)
    directory = project.run if model == "project" else GOLDEN_MODEL
    outcome = cli("translate", "--model", directory, "-i", tmp_path / "in", "-o", tmp_path / "out", "--beam-size", 2)
    assert outcome.code == 0, outcome.err[-2000:]
    *translations, rest = (tmp_path / "out").read_bytes().decode("utf-8").split("\n")
    assert len(translations) == len(lines)
    assert rest == ""
    assert all(len(translation.splitlines()) <= 1 for translation in translations)
    for line, translation in zip(lines, translations, strict=True):
        if not line.strip():  # its white space stays, but for what other programs read as the end of a line
            assert translation == re.sub("[\r\v\f]", " ", line.decode().removesuffix("\r"))


@pytest.mark.parametrize("tokenizer", ["spacy", "subword", "whitespace"])
@pytest.mark.parametrize("cleaning", ["default", "off"])
def test_any_lines_are_a_corpus(
    tokenizer: str, cleaning: str, number: int, source: random.Random, cli: Cli, tmp_path: Path
) -> None:
    lines = [f"The {a} and the {b} house .\tDas {a} {b} Haus".encode() for a in ADJECTIVES for b in ADJECTIVES]
    lines += [any_line(source) + b"\t" + any_line(source) for _ in range(number // 2)]
    lines += [b"\t".join(any_line(source) for _ in range(source.randint(0, 4))) for _ in range(number // 2)]
    write_lines(tmp_path / "corpus.tsv", lines)

    def preprocess(*settings: str) -> Outcome:
        options = [part for setting in (*CORPUS, *settings) for part in ("--set", setting)]
        files = ("--source", tmp_path / "corpus.tsv", "--output", tmp_path / "out")
        return cli("preprocess", "--config", "sample", *files, f"--set=text.tokenizer={tokenizer}", *options)

    rules = NO_CLEANING if cleaning == "off" else []
    outcome = preprocess(*rules, "text.subword.vocabulary_size=10")
    refusals = 0
    while characters := re.search(r"the text has (\d+) different characters; raise", outcome.err):
        assert_refused_clearly(outcome)
        assert not (tmp_path / "out").exists()
        refusals += 1
        outcome = preprocess(*rules, f"text.subword.vocabulary_size={10 + int(characters[1])}")
    assert refusals in ((1, 2) if tokenizer == "subword" else (0,))  # of the source, and of a richer target
    assert outcome.code == 0, outcome.err[-2000:]

    report, data = read_json(tmp_path / "out/report.json"), open_data(tmp_path / "out")
    found, cleaned = report["lines"], report["cleaning"]
    assert found["read"] == len(lines)
    assert cleaned["read"] == found["read"] - found["blank"] - sum(found["malformed"].values())
    assert cleaned["kept"] == cleaned["read"] - sum(rule["pairs"] for rule in cleaned["dropped"].values())
    assert sum(report["pairs"].values()) == cleaned["kept"]
    assert len(data.train) == report["pairs"]["train"] - report["too_many_tokens"]


@pytest.mark.parametrize("number", [25, pytest.param(MANY, marks=pytest.mark.soak)], indirect=True)
def test_any_lines_are_scored(number: int, source: random.Random, project: Project, cli: Cli, tmp_path: Path) -> None:
    lines, references = (
        [b"a b c", *(any_text(source).replace("\0", "").encode() for _ in range(number))] for _ in range(2)
    )
    write_lines(tmp_path / "src", lines)
    write_lines(tmp_path / "ref", references)
    files = ("--src", tmp_path / "src", "--ref", tmp_path / "ref", "--hypotheses", tmp_path / "out")
    outcome = cli("evaluate", "--model", project.run, *files, "--beam-size", 1)
    assert outcome.code == 0, outcome.err[-2000:]
    assert outcome.out.startswith("BLEU ")
    assert (tmp_path / "out").read_bytes().count(b"\n") == len(lines)

    write_lines(tmp_path / "ref", [*references[:-1], b"\xff" + any_line(source)])
    assert_refused_clearly(cli("evaluate", "--model", project.run, *files))


KEYS = [key.path for key in describe_keys()]
PLAIN_VALUES = r"""
    null ~ true True yes on 0 -1 1 3 0.5 1e-3 1e400 -.inf .nan 0x1F 017 1_000 0b1 0x _ 1:30 2018-05-13 1.5.2
    99999999999999999999 "" '' "\0" "\ud800" "\x80" "\u2028" .. . a.b os.path os. .x nmt.run torch.nn.Linear [] {} [1]
    [1,2,3] [[]] [a,b] {a:1} {"a":{b:[1]}} {1:2} {[a]:b} {?a} {{a}:b} [*a] &a *a &a[*a] &a{b:*a} !!str !!int !!int""
    !!int"x" !!float !!float"x" !!bool !!bool"x" !!null"x" !!binary"x" !!binary"\u2028" !!timestamp"x" !!set{a}
    !!omap[a] !!pairs[a] !!merge"x" !!value"x" !!python/none !x !!map[] !!seq{} !<a> | > |9 >- %a @a ` , : ? - -- ---
    ... # [ ] { } " ' & * ! = << <<:{a:1} cpu cuda:0 cuda:x bpe spacy plateau adamw none dot deu.txt
"""
VALUES = [
    *PLAIN_VALUES.split(),
    *("a b", "\t1", "1 #", "\U0001f600", "\u2028", "[1, 2", "{a: 1, a: 2}", "!!int 1"),
    *("!!python/object/apply:os.getcwd []", "1" * 5000, "[" * 3000, "{a: " * 300),
]
CHARACTERS = "\t\n\r :#-?,[]{}&*!|>'\"%@`~=<.0a\u00e9\x00\x07\x85\u2028\ufeff\U0001f600"


def with_mistake(source: random.Random, text: str) -> str:
    """The text of a config with one mistake more."""
    place, lines = source.randint(0, len(text)), text.split("\n")
    number = source.randrange(len(lines))
    match source.randrange(6):
        case 0:
            return text[:place] + source.choice(CHARACTERS) + text[place:]
        case 1:
            return text[:place] + text[place + source.randint(1, 9) :]
        case 2:
            lines[number] = lines[number].partition(":")[0] + ": " + source.choice(VALUES)
        case 3:
            lines.insert(number, source.choice(lines))
        case 4:
            lines[number] = " " * source.randint(0, 8) + lines[number].strip()
        case _:
            lines.insert(number, f"{source.choice(KEYS).split('.')[-1]}: {source.choice(VALUES)}")
    return "\n".join(lines)


def any_override(source: random.Random) -> str:
    key = source.choice([*KEYS, "train", "x", "", ".", "train.", "data.source.0"])
    return key + source.choice(["=", "=", "=", " = ", "", ":"]) + source.choice(VALUES)


def test_any_config_is_accepted_or_refused(
    number: int, source: random.Random, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    valid = shipped("configs/sample.yaml").read_text(encoding="utf-8") + "extends: base\n"
    taken = 0
    for _ in range(number):
        text = valid
        for _ in range(source.choice([0, 1, 1, 2])):
            text = with_mistake(source, text)
        overrides = [any_override(source) for _ in range(source.choice([0, 0, 1, 2]))]
        Path("fuzz.yaml").write_bytes(text.encode("utf-8"))
        try:
            config = load_config("fuzz.yaml", overrides)
        except ConfigError:
            pass
        except Exception as error:
            raise AssertionError((overrides, set(text.split("\n")) ^ set(valid.split("\n")))) from error
        else:
            taken += 1
            config = resolve_auto(config, {**choose_split(9), **choose_by_amount(9)})
            assert parse_config(dump_config(config), "dump.yaml") == config, (text, overrides)
    assert number / 100 < taken < number
