"""Each error names parameters as its reader writes them: Python as keywords, a command as options."""

import ast
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli, Project

import nmt

PACKAGE = Path(nmt.__file__).parent
OPTION = re.compile(r"(?<![\w-])--[a-z]")
KEYWORD = re.compile(r"`[a-z_]+[`=]")

Case = tuple[Callable[..., Any], dict[str, Any], str, str, str]
"""A function with arguments, the parameter as Python says it, and the command with the option as it says it."""

CASES: list[Case] = [
    (
        nmt.compare,
        {"config": "sample", "split": "dev"},
        "`split='dev'`",
        "compare -c sample --split dev",
        "--split dev",
    ),
    (
        nmt.compare,
        {"comparison": "sample"},
        "`vary=['SECTION.KEY=VALUE,VALUE']`",
        "compare sample",
        "--vary SECTION.KEY=",
    ),
    (nmt.compare, {}, "`config`", "compare", "with --config"),
    (
        nmt.compare,
        {"config": "sample", "vary": ["model.dropout=0"]},
        "`vary=['model.dropout=0']`: has a single value; use `overrides`",
        "compare -c sample --vary model.dropout=0",
        "--vary model.dropout=0: has a single value; use --set",
    ),
    (
        nmt.compare,
        {"config": "sample", "vary": ["model.dropout=[0"]},
        "`vary` model.dropout:1:",
        "compare -c sample --vary model.dropout=[0",
        "--vary model.dropout:1:",
    ),
    (
        nmt.compare,
        {"config": "sample", "overrides": {"train.seed": 3}},
        "`seeds`",
        "compare -c sample --set train.seed=3",
        "--seeds",
    ),
    (
        nmt.compare,
        {"config": "sample", "launcher": "srun"},
        "`launcher='srun'`: has no {command}",
        "compare -c sample --launcher srun",
        "--launcher srun: has no {command}",
    ),
    (
        nmt.compare,
        {"config": "sample", "against": "nowhere"},
        "`against='nowhere'`",
        "compare -c sample --against nowhere",
        "--against nowhere",
    ),
    (
        nmt.compare,
        {"config": "sample", "against": "a=nowhere"},
        "`against='a=nowhere'`: nowhere does not exist",
        "compare -c sample --against a=nowhere",
        "--against a=nowhere: nowhere does not exist",
    ),
    (nmt.backtranslate, {"config": "sample"}, "`text`: is empty", "backtranslate sample", "--text: is empty"),
    (
        nmt.backtranslate,
        {"config": "sample", "text": "a", "split": "dev"},
        "`split='dev'`",
        "backtranslate sample --text a --split dev",
        "--split dev",
    ),
    (
        nmt.backtranslate,
        {"config": "sample", "teacher": "a", "round_trip": 3.0},
        "`round_trip`: is for back-translations; leave it out with `teacher`",
        "backtranslate sample --teacher a --round-trip 3",
        "--round-trip: is for back-translations; leave it out with --teacher",
    ),
    (
        nmt.load_config,
        {"config": "sample", "overrides": ["train.epohcs=3"]},
        "`overrides` train.epohcs: unknown key",
        "config check sample --set train.epohcs=3",
        "--set train.epohcs: unknown key",
    ),
    (
        nmt.load_config,
        {"config": "sample", "overrides": ["train.epochs"]},
        "`overrides` train.epochs: expected",
        "config check sample --set train.epochs",
        "--set train.epochs: expected",
    ),
    (
        nmt.load_config,
        {"config": "sample", "overrides": ["train.epochs=[1"]},
        "`overrides`:1:",
        "config check sample --set train.epochs=[1",
        "--set:1:",
    ),
    (
        nmt.load_config,
        {"config": "sample", "overrides": {"model.attention.score": "bahdanau"}},
        "`overrides={'model.attention.score': 'additive'",
        "config check sample --set model.attention.score=bahdanau",
        "--set model.attention.score=additive --set model.decoder.order=bahdanau",
    ),
    (nmt.load_config, {"config": "pairs.tsv"}, "`source='pairs.tsv'`", "config check pairs.tsv", "--source pairs.tsv"),
    (
        nmt.preprocess,
        {"config": "sample", "source": "ftp://example.org/a.tsv"},
        "`source='PATH'`",
        "preprocess sample --source ftp://example.org/a.tsv",
        "--source PATH",
    ),
    (
        nmt.preprocess,
        {"config": "sample", "output": "data/prepared/reversal"},
        "add `overwrite=True` or choose another `output`",
        "preprocess sample --output data/prepared/reversal",
        "add --overwrite or choose another --output",
    ),
    (
        nmt.train,
        {"config": "sample", "data": "nowhere"},
        "create it with: nmt.preprocess('sample', output='nowhere')",
        "train sample --data nowhere",
        "create it with: nmt preprocess --config sample --output nowhere",
    ),
    (
        nmt.train,
        {"config": "sample", "overwrite": True, "resume": True},
        "`overwrite=True` starts a new run and `resume=True`",
        "train sample --overwrite --resume",
        "--overwrite starts a new run and --resume",
    ),
    (
        nmt.average,
        {"models": ["runs/reversal", "runs/reversal"], "output": "average", "last": 2},
        "`last`",
        "average runs/reversal runs/reversal --output average --last 2",
        "--last",
    ),
    (nmt.evaluate, {"ref": "in.txt"}, "`ref` belongs to `src`", "evaluate --ref in.txt", "--ref belongs to --src"),
    (
        nmt.evaluate,
        {"split": "dev"},
        "has no dev split; give `split` test",
        "evaluate --split dev",
        "has no dev split; give --split test",
    ),
    (
        nmt.evaluate,
        {"json_path": "full.txt"},
        "`json_path='full.txt'`: exists",
        "evaluate --json full.txt",
        "--json full.txt: exists",
    ),
    (
        nmt.evaluate,
        {"hypotheses_path": "full.txt"},
        "give `against='full.txt'`",
        "evaluate --hypotheses full.txt",
        "give --against full.txt",
    ),
    (nmt.evaluate, {"test": "t"}, "`test='t'`", "evaluate --test t", "--test"),
    (
        nmt.measure_attention,
        {"target": "A"},
        "`target` is for one sentence",
        "attention --target A",
        "--target is for one sentence",
    ),
    (
        nmt.measure_attention,
        {"split": "test", "sample": -1},
        "`sample=-1`",
        "attention --split test --sample -1",
        "--sample",
    ),
    (nmt.explain, {"sentence": "a b", "step": 99}, "`step=99`", "explain 'a b' --step 99", "--step 99"),
    (nmt.report, {"output": "r.pdf"}, "`output='r.pdf'`", "report --output r.pdf", "--output r.pdf"),
    (
        nmt.serve,
        {"max_queue": 1},
        "`max_queue=1` is less than `max_sentences=2000`",
        "serve --max-queue 1",
        "--max-queue 1 is less than --max-sentences 2000",
    ),
    (
        nmt.serve,
        {"allowed_hosts": ["a:1"]},
        "`allowed_hosts=['a:1']`",
        "serve --allow-host a:1",
        "--allow-host a:1",
    ),
    (
        nmt.serve,
        {"allowed_origins": ["a.org"]},
        "`allowed_origins=['a.org']`",
        "serve --allow-origin a.org",
        "--allow-origin a.org",
    ),
    (
        nmt.serve,
        {"host": "192.0.2.1", "port": 5005},
        "`host='192.0.2.1'` `port=5005`",
        "serve --host 192.0.2.1 --port 5005",
        "--host 192.0.2.1 --port 5005",
    ),
]
"""Further parameters have a line of their own where a function is tested."""


@pytest.mark.parametrize(("function", "arguments", "keyword", "command", "option"), CASES)
def test_an_error_is_said_in_the_dialect_of_its_reader(
    function: Callable[..., Any],
    arguments: dict[str, Any],
    keyword: str,
    command: str,
    option: str,
    here: Project,
    cli: Cli,
) -> None:
    Path("full.txt").write_text("full\n", encoding="utf-8")
    Path("in.txt").write_text("a b\n", encoding="utf-8")
    Path("pairs.tsv").write_text("a\tb\n", encoding="utf-8")
    with pytest.raises(nmt.NmtError) as caught:
        function(**arguments)
    said = str(caught.value)
    assert keyword in said
    assert not OPTION.search(said)
    outcome = cli(*shlex.split(command))
    assert outcome.code in (1, 2)
    assert "Traceback" not in outcome.err
    assert option in outcome.err
    assert not KEYWORD.search(outcome.err)


def test_a_model_without_its_data_names_the_parameter_that_gives_it(here: Project, cli: Cli) -> None:
    here.data.rename("elsewhere")
    with pytest.raises(nmt.CheckpointError, match=r"give it with `data='DIR'`"):
        nmt.evaluate(model=here.run)
    assert "give it with --data DIR" in cli("evaluate", "--model", here.run).err


def test_without_a_run_the_parameter_of_a_model_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(nmt.CheckpointError, match=r"with `model='DIR'`"):
        nmt.load()
    assert "with --model DIR" in cli("translate", "a b").err


def test_a_nested_error_keeps_its_parameters(here: Project) -> None:
    with pytest.raises(nmt.ConfigError) as caught:
        nmt.load_config(here.config, ["model.attention.score=bahdanau", "train.epohcs=3"])
    assert {parameter.name for parameter in caught.value.parameters} == {"overrides"}
    assert all(isinstance(line, str) for line in caught.value.args)


def texts_of_messages(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and text of every constant that is an argument of an error, a message or a line of the log."""
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        name = ast.unparse(call.func)
        if re.search(r"(Error|Interrupted|OutOfMemory|Message|Finding)$|^log\.|\.add_note$|^when_out_of_memory$", name):
            for part in (*call.args, *(keyword.value for keyword in call.keywords)):
                for node in ast.walk(part):
                    if isinstance(node, ast.Constant) and isinstance(node.value, str):
                        yield node.lineno, node.value


def test_no_message_of_the_library_is_written_in_a_dialect() -> None:
    paths = [path for path in PACKAGE.rglob("*.py") if not path.is_relative_to(PACKAGE / "interface")]
    found = [
        f"{path.relative_to(PACKAGE)}:{line}: {text}"
        for path in sorted(paths)
        for line, text in texts_of_messages(ast.parse(path.read_text(encoding="utf-8")))
        if OPTION.search(text) or KEYWORD.search(text)
    ]
    assert found == []


def test_the_walk_finds_both_dialects() -> None:
    code = 'raise ConfigError(f"{x}: give --data", a="`n_best=3`")\nlog.warning("use `data`")\nlist("--data")'
    texts = [text for _, text in texts_of_messages(ast.parse(code))]
    assert texts == [": give --data", "`n_best=3`", "use `data`"]
