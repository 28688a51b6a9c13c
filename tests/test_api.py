"""The commands called from Python."""

import ast
import functools
import json
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import processes
import pytest
from conftest import GOLDEN_MODEL, Cli, Project, tree

import nmt
from nmt.system.files import PACKAGE

README = PACKAGE.parent / "README.md"


def test_every_name_is_there_and_no_other() -> None:
    assert [getattr(nmt, name).__name__ for name in nmt.__all__] == nmt.__all__
    assert [name for name in dir(nmt) if not name.startswith("__")] == nmt.__all__
    assert {"__all__", "__doc__", "__version__"} <= set(dir(nmt))
    tree = ast.parse(Path(nmt.__file__).read_bytes())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    typed = {alias.name: node.module for node in imports for alias in node.names if alias.asname}
    del typed["__version__"]
    assert typed == nmt._MODULES
    with pytest.raises(AttributeError, match="trains"):
        nmt.trains  # type: ignore[attr-defined]  # noqa: B018
    for name in ("translate", "score"):
        with pytest.raises(AttributeError, match=rf"^nmt\.{name} is .*: nmt\.load\(path\)\.{name}\(\.\.\.\)$"):
            getattr(nmt, name)
        assert callable(getattr(nmt.Translator, name))


def test_the_script_of_the_readme_runs(here: Project) -> None:
    text = README.read_text("utf-8")
    (script,) = re.findall(r"^## From Python\n.*?^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    program = script.replace("runs/demo", str(here.run)).replace('"sample"', repr(str(here.config)))
    program = program.replace("data/prepared/demo", str(here.data))
    program = program.replace("beam_size=4", "beam_size=3")
    done = processes.run(program=functools.partial(exec, program, {}))
    assert done.returncode == 0, done.stderr
    shapes, first, *texts = done.stdout.splitlines()
    assert shapes == "torch.Size([2, 3, 6]) torch.Size([2, 3, 5])"
    assert first.endswith("])")
    assert len(texts) == 2
    assert len(ast.literal_eval(texts[0])) == 2
    metric, best, bleu = texts[-1].split()
    metadata = json.loads((here.root / "runs/trials/short/run.json").read_text("utf-8"))
    assert (metric, metadata["epochs"]) == ("bleu", 2)
    assert float(best) == metadata["best"]
    assert 0 <= float(bleu) <= 100
    assert done.stderr == ""


def test_what_functions_return_is_one_line_in_python(here: Project) -> None:
    small = {"data.first_lines": 300, "data.split": {"valid_size": 5, "test_size": 7}}
    assert (
        repr(nmt.preprocess(here.config, output="small", overrides=small)) == "<PreparedData small: 288 training pairs>"
    )
    config = nmt.load_config(here.config)
    assert repr(config) == "<Config reversal: en-de, recurrent, additive attention>"
    run, outcome = nmt.Run(here.run), json.loads((here.run / "run.json").read_text("utf-8"))
    best = f"bleu {outcome['best']:.2f} at update {outcome['best_update']:,}"
    assert repr(run) == f"<Run runs/reversal: {outcome['updates']:,} updates, {best}>"
    translator = run.translator(device="cpu")
    parameters = sum(weights.numel() for weights in translator.model.parameters())
    assert repr(translator) == (
        f"<Translator {here.run}/best: en to de, additive attention, {parameters:,} parameters, beam 3, on cpu>"
    )
    Path("src").write_text("a b\nc\n", "utf-8")
    Path("ref").write_text("B A\nC\n", "utf-8")
    scores = r"BLEU \d+\.\d\d ± \d+\.\d\d, chrF 100\.00 ± 0\.00"
    evaluation = run.evaluate(src="src", ref="ref", short_inputs=False)
    assert re.fullmatch(rf"<ModelEvaluation of runs/reversal/best on src: {scores}>", repr(evaluation))
    report = nmt.measure_attention(src="src", model=here.run)
    assert repr(report) == "<AttentionReport of runs/reversal/best: sentences 2, heads 1>"
    page = nmt.explore("a b", model=here.run)
    assert repr(page) == f'<Page of {len(page.html):,} characters; write("page.html") stores it>'
    page.write("page.html")
    assert Path("page.html").read_text("utf-8") == page.html


def test_messages_are_logged(here: Project, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "nmt"):
        nmt.evaluate(here.run, split="valid", short_inputs=False)
    assert {record.name for record in caplog.records} == {"nmt.evaluation.model_evaluation"}
    assert "runs/reversal/best on valid: 50 sentences, beam 3" in caplog.messages


def test_evaluate_gives_what_the_command_writes(here: Project, cli: Cli) -> None:
    found = nmt.evaluate(json_path="scores.json", device="cpu")
    written = json.loads(Path("scores.json").read_text("utf-8"))
    assert cli("evaluate", "--json", "command.json", "--device", "cpu").code == 0
    assert json.loads(Path("command.json").read_text("utf-8")) == written
    assert found.model == here.run / "best"
    assert (found.bleu, found.chrf) == tuple(written["scores"][name]["value"] for name in ("bleu", "chrf"))
    assert (len(found.hypotheses), found.beam_size, found.seen.sentences) == (50, 3, 0)


def test_a_run_has_its_outcome(here: Project) -> None:
    run = nmt.train(here.config, output="new", overrides={"train.max_updates": 20, "train.validation.every": 10})
    metadata = json.loads(Path("new/run.json").read_text("utf-8"))
    assert isinstance(run, nmt.Run)
    assert (run.path, run.model, run.metric) == (Path("new"), Path("new/best"), "bleu")
    assert (run.updates, run.epochs, run.best, run.best_update) == (20, 1, metadata["best"], metadata["best_update"])


def test_a_run_is_made_from_a_path(here: Project) -> None:
    run, metadata = nmt.Run(str(here.run), device="cpu"), json.loads((here.run / "run.json").read_text("utf-8"))
    assert (run.path, run.model, run.metric) == (here.run, here.run / "best", "bleu")
    assert (run.updates, run.best, run.seconds) == (metadata["updates"], metadata["best"], metadata["training_seconds"])
    found = run.evaluate(split="valid", short_inputs=False)
    assert (found.model, found.what) == (run.model, "valid")
    assert run.translator(beam_size=2).options.beam_size == 2
    assert run.report(split="valid", output="report.html") == Path("report.html")
    with pytest.raises(nmt.ConfigError, match="cuda:99"):
        nmt.Run(here.run, device="cuda:99").translator()
    with pytest.raises(nmt.CheckpointError, match="nowhere: is not a run directory"):
        nmt.Run("nowhere")


def test_data_is_made_from_a_config_or_a_config_object(here: Project) -> None:
    small = {"data.first_lines": 300, "data.split": {"valid_size": 5, "test_size": 7}}
    made = nmt.preprocess(here.config, output="small", overrides=small)
    assert made.path == Path("small")
    assert made.report["sources"]["test"] == 7
    config = nmt.load_config(here.config, small)
    again = nmt.preprocess(config, source=[config.data.source[0]], output="again")
    assert again.report["pairs"] == made.report["pairs"]
    assert (Path("again/train.src.ids.npy")).read_bytes() == Path("small/train.src.ids.npy").read_bytes()
    with pytest.raises(nmt.DataError, match="again: contains an earlier result"):
        nmt.preprocess(config, output="again")
    with pytest.raises(nmt.DataError, match=r"never: does not exist .*; create it with: nmt\.preprocess"):
        nmt.train(config, data="never")


def test_errors_name_arguments_and_those_of_commands_options(here: Project, cli: Cli) -> None:
    """What a message says to do is done by pasting it."""
    files = {"output": here.run, "data": here.data}
    typed = [part for name, path in files.items() for part in (f"--{name}", path)]
    cases: list[tuple[str, dict[str, Any], list[str], str]] = [
        ("add `overwrite=True` or choose another `output`", {}, [], "add --overwrite or choose another --output"),
        (
            "`overrides` train.epohcs: unknown key",
            {"overrides": {"train.epohcs": 3}},
            ["--set", "train.epohcs=3"],
            "--set train.epohcs: unknown key",
        ),
        (
            "`overrides={'model.attention.score': 'additive', 'model.decoder.order': 'bahdanau'}`",
            {"overrides": {"model.attention.score": "bahdanau"}},
            ["--set", "model.attention.score=bahdanau"],
            "--set model.attention.score=additive --set model.decoder.order=bahdanau",
        ),
    ]
    for message, arguments, options, shown in cases:
        with pytest.raises(nmt.NmtError) as caught:
            nmt.train(here.config, **files, **arguments)
        assert message in str(caught.value)
        error = cli("train", here.config, *typed, *options).err
        assert shown in error
        assert "`" not in error


def test_overrides_are_a_mapping_or_settings(here: Project) -> None:
    settings = ["data.source=[a b.en, '#.de']", "train.epochs=3", "model.dropout=0.5", "train.max_updates=null"]
    mapping = {"data.source": (Path("a b.en"), "#.de"), "train": {"epochs": 3}, "model.dropout": 0.5}
    expected = nmt.load_config(here.config, settings)
    assert nmt.load_config(here.config, mapping) == expected
    assert nmt.load_config(nmt.load_config(here.config), mapping) == expected
    with pytest.raises(nmt.ConfigError, match=r"train\.epochs: should be a valid integer, found 'ten'"):
        nmt.load_config(here.config, {"train.epochs": "ten"})
    with pytest.raises(nmt.ConfigError, match=r"^train\.epochs: .*object.* cannot be a value"):
        nmt.load_config(here.config, {"train.epochs": object()})


@pytest.mark.parametrize("options", [{"beam_size": 0}, {"beam_size": 10**6}, {"max_length": "x"}, {"batch_size": 1.5}])
def test_search_options_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(nmt.ConfigError, match=rf"^decode\.{next(iter(options))}: "):
        nmt.load(GOLDEN_MODEL, **options)


def test_search_options_are_used() -> None:
    options = {"beam_size": 2, "batch_size": 3, "length_penalty": 0.5, "max_length": 4, "replace_unknown": False}
    translator = nmt.load(GOLDEN_MODEL, **options)
    assert {key: getattr(translator.options, key) for key in options} == options
    assert len(translator.translate("Do you know where the old woman lives?").tokens) <= 4


@pytest.mark.parametrize(
    ("function", "options"),
    [
        *((nmt.load, {"model": path}) for path in ("x" * 300, "a\0b", "\ud800")),
        *((nmt.evaluate, {"json_path": path}) for path in ("nowhere/x", "/dev/full")),
        (nmt.evaluate, {"hypotheses_path": "."}),
        *((nmt.train, {"output": path}) for path in ("/proc/x", "x" * 300)),
        *((nmt.preprocess, {"output": path}) for path in ("/dev/null/x", "a\0b", "\ud800")),
        (nmt.average, {"output": "/proc/x"}),
    ],
)
def test_paths_that_cannot_be_used_are_errors_of_nmt(
    function: Callable[..., object], options: dict[str, str], here: Project
) -> None:
    given = {
        nmt.evaluate: {"model": here.run, "data": here.data},
        nmt.train: {"config": here.config, "data": here.data},
        nmt.preprocess: {"config": here.config},
        nmt.average: {"models": [here.run, here.run]},
    }
    before = tree()
    with pytest.raises(nmt.NmtError) as caught:
        function(**given.get(function, {}), **options)
    assert str(caught.value).isprintable()
    assert tree() == before
