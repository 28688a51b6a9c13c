"""The real commands end to end, and what they say to bad input."""

import fcntl
import functools
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import processes
import pytest
from conftest import Cli, Project, errors, write_reversal_corpus
from processes import PIPE

from nmt.interface import app as command_line


@pytest.fixture
def here(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The project as the working folder."""
    monkeypatch.chdir(project.root)
    return project


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def assert_error(outcome, *words: str, code: int = 1) -> None:
    """One clear line on standard error, no traceback, nothing on standard output."""
    assert (outcome.code, outcome.out) == (code, ""), outcome
    lines = errors(outcome.err)
    assert lines, outcome.err
    for word in words:
        assert word in "\n".join(lines), (word, lines)


def test_four_commands_learn_to_reverse(here: Project, cli: Cli) -> None:
    evaluated = cli("evaluate", "--json", "scores.json", "--hypotheses", "test.txt")
    assert evaluated.code == 0
    assert evaluated.out.startswith("BLEU ")
    assert "tok:none" in evaluated.out
    scores = json.loads(Path("scores.json").read_text())
    assert scores["sentences"] == 50
    assert scores["scores"]["bleu"]["value"] > 90
    assert len(Path("test.txt").read_text().splitlines()) == 50
    assert cli("translate", "a b c d").out == "D C B A\n"
    assert cli("translate", "a b c d", "--beam-size", 1).out == "D C B A\n"


def test_scores_of_training_and_evaluate_agree(here: Project, cli: Cli) -> None:
    metadata = json.loads((here.run / "best/model.json").read_text())
    cli("evaluate", "--split", "valid", "--beam-size", 1, "--json", "valid.json")
    scores = json.loads(Path("valid.json").read_text())["scores"]
    assert scores["bleu"]["value"] == pytest.approx(metadata["scores"]["bleu"], abs=1e-9)
    assert scores["chrf"]["value"] == pytest.approx(metadata["scores"]["chrf"], abs=1e-9)


def test_evaluate_on_files(here: Project, cli: Cli) -> None:
    Path("a.src").write_text("a b\nc\n")
    Path("a.ref").write_text("B A\nC\n")
    assert cli("evaluate", "--src", "a.src", "--ref", "a.ref", "--ref", "a.ref").code == 0
    Path("b.ref").write_text("B A\n")
    assert_error(cli("evaluate", "--src", "a.src", "--ref", "b.ref"), "b.ref", "1 lines", "2")
    assert_error(cli("evaluate", "--src", "a.src"), "--ref")
    assert_error(cli("evaluate", "--ref", "a.ref"), "--src")
    assert_error(
        cli("evaluate", "--src", "a.src", "--ref", "a.ref", "--split", "test"), "give one of: --src, or --split"
    )
    assert_error(cli("evaluate", "--split", "dev"), "test, valid or train")
    assert_error(cli("evaluate", "--src", "none", "--ref", "a.ref"), "none")


def test_run_directory_explains_itself(here: Project) -> None:
    run = json.loads((here.run / "run.json").read_text())
    assert run["state"] == "finished"
    assert run["tokens_per_second"] > 0
    assert json.loads((here.run / "environment.json").read_text())["torch"]
    assert (here.run / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    entries = [json.loads(line) for line in (here.run / "metrics.jsonl").read_text().splitlines()]
    assert {"loss", "perplexity", "bleu", "chrf", "update", "epoch"} <= entries[-1].keys()
    assert [e["epoch"] for e in entries if e["kind"] == "valid"] == list(range(1, run["epochs"] + 1))
    best = max(e["bleu"] for e in entries if e["kind"] == "valid")
    assert run["best"] == pytest.approx(best, abs=1e-5)


def test_heatmap_is_written(here: Project, cli: Cli) -> None:
    found = cli("translate", "a b c", "--attention", "map.png")
    assert found.out == "C B A\n"
    assert Path("map.png").read_bytes().startswith(b"\x89PNG")
    assert_error(cli("translate", "a b c", "--attention", "map.nothing"), "map.nothing")
    for options in (["--format", "jsonl"], ["--n-best", 2], ["--format", "jsonl", "--with-attention"]):
        assert_error(cli("translate", "a b c", "--attention", "other.png", *options), "leave --format, --n-best")
    assert_error(cli("translate", " ", "--attention", "empty.png"), "no words")
    assert not Path("empty.png").exists()


ODD = ["", "   ", "a b", "🙂 🤷 a", "zzz unknown", " ".join(["a"] * 5000), "a b \x0b c", "tab\tb", "a\u2028b\x85c"]
ODD += ["\x00", "häß a"]
ODD_BYTES = "\n".join(ODD).encode() + b"\n\xff\xfe broken \xc3\n\xef\xbb\xbfa b\r\nlast line open"


@pytest.fixture(scope="module")
def started(project: Project) -> "subprocess.CompletedProcess[bytes]":
    """`nmt translate` as a shell starts it, in a plain locale; standard error tells its imports and threads too."""
    environment = {name: value for name, value in os.environ.items() if name != "GOMP_SPINCOUNT"}
    environment |= {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii", "OMP_DISPLAY_ENV": "verbose"}
    command = [sys.executable, "-X", "importtime", "-m", "nmt", "translate", "--no-split-sentences"]
    return subprocess.run(command, input=ODD_BYTES, capture_output=True, env=environment, cwd=project.root, check=False)


def test_one_line_out_per_input_line(started: "subprocess.CompletedProcess[bytes]") -> None:
    assert started.returncode == 0, started.stderr
    lines = started.stdout.decode().split("\n")
    assert len(lines) == len(ODD) + 3  # none behind the last line, which is open
    assert lines[0] == lines[1] == ""
    assert lines[2] == "B A"
    assert lines[-2] == "B A\r"
    assert b"line 6: longer than 1000 tokens" in started.stderr


def test_translation_does_not_depend_on_locale_or_batch(
    here: Project, cli: Cli, started: "subprocess.CompletedProcess[bytes]"
) -> None:
    Path("in.txt").write_bytes(ODD_BYTES)
    files = ["--input", "in.txt", "--output", "out.txt"]
    assert cli("translate", *files, "--no-split-sentences", "--batch-size", 1).code == 0
    assert started.stdout == Path("out.txt").read_bytes()


def test_a_model_is_loaded_without_the_imports_of_the_compiler(started: "subprocess.CompletedProcess[bytes]") -> None:
    """Random numbers on the meta device, where shapes are compared, bring 800 modules along, which take 1.5 s."""
    imported = {line.rpartition("|")[2].strip() for line in started.stderr.decode().splitlines()}
    assert "nmt.models.storage" in imported
    assert "torch._dynamo" not in imported


def test_waiting_threads_soon_sleep(started: "subprocess.CompletedProcess[bytes]") -> None:
    if b"GOMP_" not in started.stderr:
        pytest.skip("torch is built with another OpenMP")
    assert b"GOMP_SPINCOUNT = '5000'" in started.stderr


def test_lines_are_translated_unchanged(here: Project) -> None:
    with processes.start("translate", stdin=PIPE, stdout=PIPE) as process:
        assert process.stdin
        assert process.stdout
        for line, expected in (("a b\n", "B A\n"), ("c\n", "C\n")):
            process.stdin.write(line)
            process.stdin.flush()
            assert process.stdout.readline() == expected
        process.stdin.close()


def test_closed_pipe_ends_in_silence(here: Project) -> None:
    Path("big.txt").write_text("a b c\n" * 5000)  # more output than the pipe below holds
    with processes.start("translate", "--input", "big.txt", stdout=PIPE, stderr=PIPE) as process:
        assert process.stdout
        assert process.stderr
        fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 4096)
        assert process.stdout.readline() == "C B A\n"
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(60) == 128 + signal.SIGPIPE


def test_translating_without_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    monkeypatch.chdir(tmp_path)
    assert_error(cli("translate", "a"), "no finished run", "--model")
    assert_error(cli("evaluate"), "no finished run")
    assert_error(cli("translate", "a", "--model", "nowhere"), "nowhere", "does not exist")
    assert list(tmp_path.iterdir()) == []


def test_more_translations_than_the_beam_holds(here: Project, cli: Cli) -> None:
    words = ["translate", "a b", "--beam-size", "2", "--n-best", "3"]
    assert cli(*words).err == "nmt: error: --n-best 3: is more than the beam size; add --beam-size 3\n"
    assert len(cli(*words, "--beam-size", "3").out.splitlines()) == 3


def test_unavailable_device(here: Project, tmp_path: Path, cli: Cli) -> None:
    found = cli("train", "--config", here.config, "--output", tmp_path / "run", "--set", "train.device=cuda:99")
    assert_error(found, "cuda:99", "not available")
    assert not (tmp_path / "run").exists()
    assert_error(cli("translate", "a", "--device", "cuda:99"), "cuda:99")
    assert_error(cli("translate", "a", "--device", "gpu"), "gpu")


@pytest.mark.parametrize("words", [["mine.yaml"], ["mine"], ["--config", "mine"], ["mine", "-c", "mine"]])
def test_a_config_needs_neither_its_option_nor_its_suffix(empty: Path, cli: Cli, words: list[str]) -> None:
    text = "data: {source: pairs.tsv, split: {valid_size: 2, test_size: 2}}\ntext: {tokenizer: whitespace}\n"
    Path("mine.yaml").write_text(f"{text}train: {{max_updates: 1}}\n")
    assert cli("config", "check", *words).out.endswith(": no problems\n")
    assert "max_updates: 1 " in cli("config", "show", *words).out
    data = "data/prepared/mine: does not exist (no data.json); create it with: nmt preprocess --config mine"
    assert_error(cli("check", *words), data)
    assert_error(cli("train", *words), data)
    write_reversal_corpus(Path("pairs.tsv"), 30)
    assert cli("preprocess", *words).err.endswith("data directory: data/prepared/mine\n")


@pytest.mark.parametrize("command", [["train"], ["check"], ["preprocess"], ["config", "show"], ["config", "check"]])
def test_one_config_is_wanted(empty: Path, cli: Cli, command: list[str]) -> None:
    one = "give one config, a file or a name; found "
    assert_error(cli(*command, "b.yaml", "--config", "a.yaml"), f"{one}a.yaml and b.yaml")
    if command != ["preprocess"]:  # which has a default
        assert_error(cli(*command), f"{one}none")
    spaced = cli(*command, "--config", "a.yaml", "--set", "train.epochs", "2")
    assert_error(spaced, f"{one}2 and a.yaml; a key is set without a space: --set train.epochs=VALUE")


@pytest.mark.parametrize("command", [["preprocess"], ["train"], ["config", "check"]])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("pairs.csv", b"Hi.;Hallo.\nRun!;Lauf!\n"),
        ("my pairs.TSV", b"Hi.\tHallo.\nRun!\tLauf!\n"),
        ("deu.txt", "Wer: 'er'?\tWho\n".encode("utf-16")),
        ("deu.zip", b"PK\3\4\0\0"),
        ("memory.tmx", b'<?xml version="1.0"?><tmx><body/></tmx>'),
    ],
)
def test_data_in_place_of_a_config(empty: Path, cli: Cli, command: list[str], name: str, content: bytes) -> None:
    Path(name).write_bytes(content)
    advice = f"nmt preprocess takes it by --source {shlex.quote(name)}, a config as data.source"
    assert cli(*command, name).err == f"nmt: error: {name}: looks like data, not a config; {advice}\n"
    assert [path.name for path in empty.iterdir()] == [name]


def test_a_config_may_have_any_suffix(empty: Path, cli: Cli) -> None:
    Path("mine.txt").write_text("extends: sample\n")
    assert cli("config", "check", "mine.txt").out == "mine.txt: no problems\n"
    Path("mine.txt").write_text("extends: sample\nmodle: 1\n")
    assert_error(cli("config", "check", "mine.txt"), "mine.txt:2: modle: unknown key")
    assert_error(cli("config", "check", "none.csv"), "none.csv: no such config file")
    Path("mine.txt").rename("mine.yaml")
    assert_error(cli("config", "check", "mine.yml"), "mine.yml: no such config file", "did you mean mine.yaml?")


def test_a_shipped_config_comes_before_a_file_without_its_suffix(empty: Path, cli: Cli) -> None:
    Path("sample.yaml").write_text("extends: sample\ntrain: {seed: 77}\n")
    shown = cli("config", "show", "sample")
    assert "seed: 77" not in shown.out
    assert (
        shown.err == "WARNING: sample: the shipped config, not the file sample.yaml; to use that, give its whole name\n"
    )
    assert "seed: 77" in cli("config", "show", "sample.yaml").out


MEANT = [
    ("train mine --epochs 3", "--epochs; set the key of the config: --set train.epochs=3"),
    ("train --lr=0.1 mine", "--lr; set the key of the config: --set train.optimizer.learning_rate=0.1"),
    ("train --seed 3", "--seed; set the key of the config: --set train.seed=3"),
    ("train --batch-size 32", "--batch-size; set the key of the config: --set train.batch.size=32"),
    ("compare --minutes 3", "--minutes (Possible options: --budget-minutes)"),
    ("compare --seed 3", "--seed (Possible options: --seeds)"),
    ("check --metric", "--metric; set the key of the config: --set train.validation.metric=VALUE"),
    ("preprocess --lowercase", "--lowercase; set the key of the config: --set text.lowercase=true"),
    ("preprocess --directory 'a b'", "--directory; set the key of the config: --set data.directory='a b'"),
    (
        "translate --length-penalty 0.6 a",
        "--length-penalty; set the key of the config: --set decode.length_penalty=0.6",
    ),
    ("translate --epochs 3", "--epochs"),  # a trained model has only keys of the search
    ("serve --epochs 3", "--epochs"),
    ("train -x", "-x"),
]


@pytest.mark.parametrize(("typed", "answer"), MEANT)
def test_an_option_that_is_a_key_of_configs_is_answered_with_the_setting(cli: Cli, typed: str, answer: str) -> None:
    outcome = cli(*shlex.split(typed))
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.splitlines()[-1] == f"Error: No such option: {answer}"


def test_a_setting_that_is_shown_can_be_used(here: Project, cli: Cli) -> None:
    answer = cli("train", here.config, "--epochs", 3).err.rpartition("config: ")[2]
    assert "  epochs: 3 " in cli("config", "show", here.config, *shlex.split(answer)).out


EXTRA = [
    ("serve runs/x", "; for a model: --model runs/x"),
    ("evaluate x", "; for a model: --model runs/x"),
    ("report -o a.html 'my run'", "; for a model: --model 'my run'"),
    ("evaluate elsewhere", "; for a model: --model DIR"),
    ("translate Hello x", "; for a model: --model runs/x"),
    ("translate Hello world", "; quote the sentence: 'Hello world'"),
    ("explain I --step 2 'am (too) old.'", "; quote the sentence: 'I am (too) old.'"),
    ("runs x runs/x", ""),
    ("train sample --set train.epochs 2", "; a key is set without a space: --set train.epochs=VALUE"),
]


@pytest.mark.parametrize(("typed", "hint"), EXTRA)
def test_a_model_without_its_option_is_answered_with_it(empty: Path, cli: Cli, typed: str, hint: str) -> None:
    Path("runs/x").mkdir(parents=True)
    Path("my run").mkdir()
    outcome = cli(*shlex.split(typed))
    assert (outcome.code, outcome.out) == (2, "")
    extra = shlex.split(typed)[-1]
    assert outcome.err.splitlines()[-1] == f"Error: Got unexpected extra argument(s) ({extra}){hint}"


def test_a_sentence_that_is_a_file_is_translated_with_a_note(here: Project, cli: Cli) -> None:
    Path("a b").write_text("c d\n")
    found = cli("translate", "a b")
    assert (found.code, found.out) == (0, "B A\n")
    note = "a b: taken as a sentence, but is a file too; for that: --input 'a b'\n"
    assert found.err.endswith(note)
    assert cli("translate", *shlex.split(note.rpartition(": ")[2])).out == "D C\n"
    assert "file too" not in cli("translate", "a " * 500).err


@pytest.mark.parametrize(
    ("command", "missing", "example"),
    [
        ("report", "option '--output' / '-o'", "nmt report --model runs/luong --against runs/bahdanau --output report"),
        ("data", "argument 'DIR'", "nmt data data/prepared/tatoeba_small"),
    ],
)
def test_what_is_missing_is_answered_with_an_example(cli: Cli, command: str, missing: str, example: str) -> None:
    found = cli(command)
    assert found.code == 2
    assert f"Error: Missing {missing}. Example: {example}" in found.err


def test_a_sentence_that_is_a_file_is_measured_with_a_note(here: Project, cli: Cli) -> None:
    Path("a b").write_text("c d\n")
    for page in ([], ["--output", "page.html"]):
        found = cli("attention", "a b", *page)
        assert found.code == 0
        assert found.err.startswith("WARNING: a b: taken as a sentence, but is a file too; for that: --src 'a b'\n")
    assert cli("attention", "--src", "a b").err == ""


@pytest.mark.parametrize("command", ["train", "check"])
def test_missing_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli, command: str) -> None:
    monkeypatch.chdir(tmp_path)
    make = "nmt preprocess --config sample"
    settings = ["--set", "data.first_lines=900", "--set", "train.epochs=1"]
    assert cli(command, "--config", "sample").err.endswith(
        f"data/prepared/sample: does not exist (no data.json); create it with: {make}\n"
    )
    found = cli(command, "--config", "sample", "--data", "elsewhere", *settings)
    assert_error(found, "elsewhere: does not exist", f"{make} --set data.first_lines=900 --output elsewhere")
    Path("data").mkdir()
    found = cli(command, "--config", "sample", "--data", "data")  # which preprocess would not replace
    assert_error(found, "data: is not a data directory", f"create it with: {make} --output DIR")
    (tmp_path / "mine.yaml").write_text("train: {epochs: 3}\n")
    assert_error(cli(command, "--config", "mine.yaml"), "nmt preprocess --config mine.yaml --source FILE")
    assert not Path("runs").exists()


@pytest.mark.parametrize("command", ["train", "check"])
def test_overrides_that_differ_from_the_data_are_refused(here: Project, tmp_path: Path, cli: Cli, command: str) -> None:
    for setting, key in (
        ("data.reverse=true", "data.reverse (False there, True here)"),
        ("text.lowercase=true", "text.lowercase (False there, True here)"),
        ("data={split: {valid_size: 50, test_size: 9}}", "data.split.test_size (50 there, 9 here)"),
    ):
        found = cli(command, "--config", here.config, "--set", setting, "--set", "data.split.seed=1")
        make = ["nmt", "preprocess", "--config", str(here.config), "--set", setting, "--set", "data.split.seed=1"]
        assert_error(found, key, shlex.join([*make, "--output", "DIR"]), "--data DIR")
        assert "valid_size" not in found.err.partition("preprocess again")[0]
        assert "data.split.seed (" not in found.err


def test_overrides_that_match_the_data_are_accepted(here: Project, tmp_path: Path, cli: Cli) -> None:
    same = ["data.reverse=false", "data.split={valid_size: 50}", "text.tokenizer=whitespace"]
    same.append(f"data.directory={here.data}")
    settings = [part for setting in (*same, "train.max_updates=1") for part in ("--set", setting)]
    found = cli("train", "--config", here.config, "--output", tmp_path / "run", *settings)
    assert found.code == 0 or "learnt nothing" in found.err


def test_training_starts_from_a_model(here: Project, tmp_path: Path, cli: Cli) -> None:
    common = ["--config", here.config, "--set", "train.max_updates=1", "--set", f"parent={here.run}"]
    different = ["--set", "model.decoder.hidden_size=32", "--set", "model.dropout=0.123"]
    found = cli("train", *common, "--output", tmp_path / "other", *different)
    assert_error(
        found, "other settings: model.decoder.hidden_size (64 there, 32 here); set the same, or leave them out"
    )
    write_reversal_corpus(tmp_path / "more.tsv", 700)
    again = ["-s", tmp_path / "more.tsv", "-o", tmp_path / "again", "--set", f"parent={here.run}"]
    assert cli("preprocess", "--config", here.config, *again).code == 0
    found = cli("train", *common, "--data", tmp_path / "again", "--output", tmp_path / "third")
    assert found.code == 0, found.err


def test_fixed_context_has_no_attention_to_draw(here: Project, tmp_path: Path, cli: Cli) -> None:
    run = tmp_path / "run"
    few = ["--set", "train.max_updates=1", "--set", "model.attention.score=none"]
    assert cli("train", "--config", here.config, "--output", run, *few).code == 0
    assert cli("translate", "a b", "--model", run).code == 0
    assert_error(cli("translate", "a b", "--model", run, "--attention", tmp_path / "x.png"), "no attention")


OPTIONS = {
    "preprocess": "config_argument --config -c --source -s --output -o --drop-overlap --set --overwrite",
    "data": "directory",
    "train": "config_argument --config -c --data -d --output -o --set --overwrite --resume",
    "check": "config_argument --config -c --data -d --set --for",
    "translate": "sentence --model -m --input -i --output -o --beam-size --batch-size --n-best --num-hypotheses "
    "--precision --set --format --with-attention --attention --dictionary --keep --glossary "
    "--protect --no-protect --split-sentences --no-split-sentences --prefix --retranslate --workers --overwrite "
    "--resume --device "
    "--allow-class",
    "evaluate": "--model -m --split --data -d --src --ref --repair-references --json --hypotheses --references "
    "--against --test --breakdown --attention --beam-size --batch-size --set --device --short-inputs "
    "--no-short-inputs --overwrite --allow-class",
    "attention": "sentence --model -m --target --split --data -d --src --ref --forced --gold --links-of "
    "--all-heads --relations --json --picture --output -o --against --sample --training --overwrite --device "
    "--allow-class",
    "explain": "sentence --model -m --against --step --target --device --allow-class",
    "report": "--output -o --model -m --against --split --data -d --src --ref --title --overwrite --device "
    "--allow-class",
    "compare": "comparison --config -c --vary --set --seeds --budget-minutes --source -s --data -d --split --jobs -j "
    "--launcher --against --output -o --cell",
    "backtranslate": "config_argument --config -c --text -t --teacher --sample --round-trip --weight --tag --split "
    "--source -s --set --output -o",
    "score": "--src --tgt --model -m --output -o --format --batch-size --precision --overwrite --device --allow-class",
    "serve": "--model -m --host --port --api-key --api-keys --max-characters --max-sentences --max-queue "
    "--requests-per-minute --max-file-bytes --allow-host --allow-origin --trust-proxy --keep --glossary --log "
    "--log-probes --no-log-probes --beam-size --batch-size --device --allow-class",
    "average": "models --output -o --last --overwrite --allow-class",
    "export": "--to --output -o --model -m --against --quantization --keep --glossary --overwrite --allow-class",
    "runs": "directory",
    "attentions": "",
}
CONFIG_OPTIONS = dict.fromkeys(("show", "check"), "config_argument --config -c --set") | {"schema": ""}


def test_commands_and_options_are_those_that_were_decided_on() -> None:
    group = command_line.command()
    commands = dict(group.commands)
    for expected, found in ((OPTIONS, commands), (CONFIG_OPTIONS, commands.pop("config").commands)):
        options = {name: [word for each in found[name].params for word in names_of(each)] for name in found}
        assert options == {name: words.split() for name, words in expected.items()}
        for name, command in found.items():
            assert "\nExample: nmt" in command.help, name
            for each in command.params:
                assert each.help, (name, each.name)
                assert "`" not in each.help
                assert "None is" not in each.help


def names_of(parameter: Any) -> list[str]:
    return [*parameter.opts, *parameter.secondary_opts]


def test_help_shows_what_stands_for_a_value(cli: Cli) -> None:
    found = cli("evaluate", "--help").out
    for words in (
        "--model DIR",
        "--src FILE",
        "--beam-size N",
        "--split test|valid|train",
        "--test bootstrap|randomization",
    ):
        assert words in found
    assert re.search(
        r"References for --src, one per line, or\s+several\s+with\s+tabs\s+between\s+them\. Can be\s+repeated\.", found
    )
    assert re.search(r"or train\.\s+\[default: test\]", found)
    assert "[1 to 1000]" in found
    assert "--set SECTION.KEY=VALUE" in cli("train", "--help").out
    assert re.search(r"--tag <TAG> +First token .*, such as\s+<bt>\. ", cli("backtranslate", "--help").out, re.DOTALL)
    lines = cli("compare", "--help").out.partition("Arguments:\n")[2].splitlines()
    assert lines[0].index("Comparison file") == lines[1].index(lines[1].strip())
    assert "nmt data [OPTIONS] DIR\n" in cli("data", "--help").out
    assert "nmt average [OPTIONS] MODEL...\n" in cli("average", "--help").out


def test_help_fits_eighty_columns_and_speaks_of_no_types(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for command in (*([name] for name in OPTIONS), *(["config", name] for name in CONFIG_OPTIONS)):
        found = cli(*command, "--help").out.replace('"{command}"', "").replace("{command}", "")
        assert max(map(len, found.splitlines())) <= 80
        assert not re.search(r"<\w|[{}]|list\[|range|=x", found.replace("<TAG>", "").replace("<bt>", "")), found
    for group in ([], ["config"]):
        summaries = cli(*group, "--help").out.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()
        assert len(summaries) >= 3
        assert all(re.fullmatch(r"  \w+ +[A-Z].*[^.]\.", line) and len(line) <= 80 for line in summaries), summaries


def test_an_option_out_of_its_range_is_refused(cli: Cli) -> None:
    for option in (["--beam-size", 0], ["--batch-size", "many"], ["--beam-size", 10**20], ["--batch-size", 10**20]):
        assert cli("translate", "a", *option).code == 2
    found = cli("translate", "a", "--n-best", 1001)
    assert (found.code, "should be less than or equal to 1000" in found.err) == (2, True)
    assert cli("evaluate", "--test", "luck").code == 2


def test_the_package_and_help_import_nothing_heavy() -> None:
    heavy = ("torch", "spacy", "numpy", "pydantic", "yaml", "sacrebleu", "matplotlib", "pooch", "requests", "psutil")
    heavy += ("rich", "tqdm")
    program = "import sys, nmt; dir(nmt); print('typer' in sys.modules)\n"
    program += f"import nmt.interface.app; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n[]\n"


@pytest.mark.parametrize("library", ["nmt.interface.app", "torch"])
def test_an_interrupt_during_imports_is_one_line_whatever_a_library_does(here: Project, library: str) -> None:
    program = f"""
import contextlib, importlib.abc, os, signal, sys
class Interrupted(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == {library!r}:
            with contextlib.suppress(BaseException):
                os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupted())
sys.argv = ["nmt", "translate", "a b"]
from nmt.__main__ import main
main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "nmt: error: interrupted; earlier results are intact\n"


def test_the_shell_completes_configs(empty: Path) -> None:
    Path("folder").mkdir()
    for name in ("tab.yaml", "table.txt", "folder/inner.yml"):
        Path(name).touch()
    for words, expected in (
        (
            ["train", "--config", "ta"],
            ["tatoeba", "tatoeba_japanese", "tatoeba_public", "tatoeba_small", "tatoeba_transformer", "tab.yaml"],
        ),
        (["config", "show", "folder/"], ["folder/inner.yml"]),
        (["preprocess", "-c", "fo"], ["folder/"]),
        (["pre"], ["preprocess"]),
    ):
        request = {"_NMT_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(["nmt", *words])}
        environment = {**os.environ, **request, "COMP_CWORD": str(len(words))}
        assert processes.run(environment=environment).stdout.split() == expected


def test_training_needs_neither_spacy_nor_sacrebleu(here: Project, tmp_path: Path) -> None:
    """In a process that forgets `nmt` and these libraries, and imports it again without them."""
    program = f"""
import logging, sys
absent = ("spacy", "sacrebleu", "sentencepiece", "matplotlib", "typer")
for name in list(sys.modules):
    if name.partition(".")[0] in ("nmt", *absent):
        del sys.modules[name]
sys.modules.update(dict.fromkeys(absent))  # what is None is not installed
import nmt
logging.basicConfig(level="INFO", stream=sys.stdout)
few = {{"train.max_updates": 10}}
nmt.train({str(here.config)!r}, data={str(here.data)!r}, output={str(tmp_path / "run")!r}, overrides=few)
"""
    done = processes.run(program=functools.partial(exec, program, {}))
    assert done.returncode == 0, done.stderr
    assert "sacrebleu not installed: the best model is chosen by loss, not bleu" in done.stdout
    assert (tmp_path / "run/best/model.safetensors").exists()
