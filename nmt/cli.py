"""The command line: commands made of public functions, and what they show at a terminal.

Names, types, defaults and help of options are those of the function's parameters; see `nmt.system.options`. Nothing
heavy is imported before a command runs, so that --help is instant.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import inspect
import logging
import re
import shlex
import sys
from collections import abc
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial, reduce
from itertools import islice
from os import PathLike
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import typer
import typer.core

import nmt
from nmt.interface.dialect import CommandLine
from nmt.system.errors import CheckpointError, ConfigError, NmtError, TrainingError, printable
from nmt.system.files import AnyPath
from nmt.system.options import CONFIG, SETTINGS, Argument, Option
from nmt.system.process import open_output, run_program
from nmt.system.signals import raise_on_interrupt
from nmt.system.tables import Table
from nmt.system.terminal import show_text, write_sections, write_table
from nmt.translation.probability import score
from nmt.translation.translate import translate

if TYPE_CHECKING:
    from nmt.config import Overrides
    from nmt.system.tables import ReportSection

log = logging.getLogger(__name__)

Handler = TypeVar("Handler", bound=Callable[..., None])

app = typer.Typer(
    name="nmt",
    help="Neural machine translation with attention, recurrent or Transformer: from raw text to BLEU, driven by YAML.",
    epilog="In order: nmt preprocess, nmt train, nmt evaluate, nmt translate. Each --help shows an example.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
configs = typer.Typer(help="Show and check configs, and describe their keys to editors.", no_args_is_help=True)

_SECTION = re.compile(r"(?:\A|\n)(?:Args|Yields|Returns|Raises|Note):\n")
"""The start of a section of a docstring; --help shows the text before the first."""
_ENTRY = re.compile(r"^    (\w+): (.*(?:\n {5,}.*)*)", re.MULTILINE)
"""What a docstring says of one parameter."""
_DEFAULT = re.compile(r"[;.] None is (.+)\.$")
"""What it says of a parameter that is not given."""
_UNNAMED = "config_argument"
"""Parameter of a config that is given without --config."""
_TYPE = re.compile(r"(?<=[A-Z\].]) <[\w\[\]]+>")
_TYPES = {r"{([A-Z|]+)}": r"\1", r"(\d+)<=x<=(\d+)": r"\1 to \2", r"x>=(\d+)": r"from \1"}
"""What Typer writes of types and ranges, and what --help says instead; never much longer, as lines are wrapped."""


class _Command(typer.core.TyperCommand):
    """A command whose help is for people."""

    def get_help(self, ctx: Any) -> str:
        """The help without types: DIR, where Typer writes {DIR} and DIR <path>."""
        text = _TYPE.sub(lambda found: " " * len(found[0]), super().get_help(ctx))  # the next line begins below
        for written, plain in _TYPES.items():
            text = re.sub(written, plain, text)
        return text


class _Names(dict[str, Any]):
    """Names of a module; those that it imports for type checkers alone are Any."""

    def __missing__(self, name: str) -> Any:
        return Any


def command(
    name: str, *functions: Callable[..., Any], imports: str = "", names_model: bool = False, group: typer.Typer = app
) -> Callable[[Handler], Handler]:
    """Make a command of public functions and a handler, which gets a call of each with what was given.

    Args:
        name: Name of the command.
        functions: The functions. Their parameters with an `Option` are offered, and so are those of the handler.
        imports: A module with what they need. While it is imported, Ctrl-C ends the process at once; later it raises
            KeyboardInterrupt.
        names_model: Whether to say which of several models was taken, and at a terminal any; else the result says it.
        group: What the command belongs to.
    """

    def add(handler: Handler) -> Handler:
        accepted = [dict(_parameters(function)) for function in functions]
        accepted.append(dict(_parameters(handler, first=len(functions))))

        def run(**values: Any) -> None:
            if imports:
                importlib.import_module(imports)
            raise_on_interrupt()
            if _UNNAMED in values:
                given = {values.pop(_UNNAMED), values["config"]} - {None, ""}
                if len(given) > 1 or (values["config"] == "" and not given):
                    found = " and ".join(sorted(given)) or "none"
                    hint = _correct_setting(values["overrides"])
                    raise ConfigError(f"give one config, a file or a name; found {found}{hint}")
                values["config"] = next(iter(given), None)
            if names_model and not values["model"]:
                _name_model()
            *calls, own = ({key: values[key] for key in keys if values.get(key) not in (None, [])} for keys in accepted)
            try:
                handler(*(partial(function, **call) for function, call in zip(functions, calls, strict=True)), **own)
            except NmtError as error:
                error.dialect = dialect
                raise

        offered = sorted(reduce(_merge, accepted).values(), key=lambda option: option.default is not option.empty)
        dialect = CommandLine(dict(_names(offered)))
        vars(run).update(__signature__=inspect.Signature(offered))
        run.__annotations__ = {}
        texts = (_SECTION.split(inspect.getdoc(function) or "")[0] for function in (handler, *functions))
        group.command(name, cls=_Command, help=next(filter(None, texts)))(run)
        return handler

    return add


def _name_model() -> None:
    from nmt.models.run_records import newest_run

    with contextlib.suppress(CheckpointError):
        run, number = newest_run()
        if number > 1 or sys.stderr.isatty():
            log.info(f"model: {run}, newest of {number}")


def _merge(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Both in one order: what only the second has comes before what follows it there."""
    order, index = list(first), len(first)
    for key in reversed(second):
        if key in first:
            index = order.index(key)
        else:
            order.insert(index, key)
    return {key: {**second, **first}[key] for key in order}


def _parameters(function: Callable[..., Any], first: int = 0) -> Iterator[tuple[str, inspect.Parameter]]:
    """The parameters, from a first one, that the command line offers, as Typer takes them."""
    names = _Names({**vars(builtins), **inspect.unwrap(function).__globals__})
    entries = dict(_ENTRY.findall(inspect.getdoc(function) or ""))
    parameters = dict(islice(inspect.signature(function).parameters.items(), first, None))
    types = {key: list(_leaves(eval(parameter.annotation, {}, names))) for key, parameter in parameters.items()}
    options = {key: part for key, parts in types.items() for part in parts if isinstance(part, Option)}
    flags = {key: option.flags(key) for key, option in options.items()}
    for key, option in options.items():
        kind, default = _value_type(types[key], option), parameters[key].default
        text = _DEFAULT.sub(r". [default: \1]", " ".join(entries.get(key, "").split()))
        text = re.sub("`(.*?)`", lambda word: flags.get(word[1], [word[1]])[0], text)
        metavar = option.metavar or ("N" if kind in (int, float) else None)
        if get_origin(kind) is Literal:
            metavar = "|".join(get_args(kind))
        if option.parse and default == ():
            default = None  # or Typer would parse it too
        if get_origin(kind) is list and default is not inspect.Parameter.empty:
            default = None
            text += "" if "epeat" in text else " Can be repeated."
        text = option.help or text
        flag_names = [f"{flags[key][0]}/--no{flags[key][0][1:]}"] if default is True else flags[key]
        shown: dict[str, Any] = {"metavar": metavar, "help": text, "min": option.minimum, "max": option.maximum}
        shown |= {"parser": option.parse, "autocompletion": option.complete}
        offered = inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=default)
        if option is CONFIG:  # an argument too: one of the two is enough, and needed where the option is empty
            usual = "" if default is offered.empty else f" [default: {default}]"
            argument = typer.Argument(**shown | {"help": text + usual})
            yield _UNNAMED, offered.replace(name=_UNNAMED, default=None, annotation=Annotated[kind, argument])
            offered = offered.replace(default=None if usual else "")
            shown |= {"help": "The same, by name.", "show_default": False}
        info = typer.Argument(**shown) if isinstance(option, Argument) else typer.Option(*flag_names, **shown)
        yield key, offered.replace(annotation=Annotated[kind, info])


def _names(offered: Iterable[inspect.Parameter]) -> Iterator[tuple[str, str]]:
    """The name of each parameter at the command line, an argument's without dashes."""
    for parameter in offered:
        info = parameter.annotation.__metadata__[0]
        # Typer takes the first name for the default as long as it has not read the annotation.
        given = [name for name in (info.default, *(info.param_decls or ())) if isinstance(name, str)]
        flags = [name.partition("/")[0] for name in given if name.startswith("--")]
        yield parameter.name, flags[0] if flags else info.metavar or parameter.name.upper()


def _leaves(annotation: Any) -> Iterator[Any]:
    """The types and options that an annotation consists of."""
    if get_origin(annotation) in (Annotated, Union, UnionType):
        for part in (*get_args(annotation), *getattr(annotation, "__metadata__", ())):
            yield from _leaves(part)
    else:
        yield annotation


def _value_type(parts: Sequence[Any], option: Option) -> Any:
    """The type of a value at the command line; a list may be repeated."""
    if option.kind or option.parse:
        return option.kind or str
    for part in parts:
        if get_origin(part) is Literal:
            return part
        if get_origin(part) in (abc.Sequence, abc.Collection):
            return list[_value_type(list(_leaves(get_args(part)[0])), option)]  # type: ignore[misc]
    plain = [part for part in parts if part in (bool, int, float)]
    return plain[0] if plain else Path if any(get_origin(part) is PathLike for part in parts) else str


def _show(*parts: str | Table | Sequence[ReportSection]) -> None:
    """Print text for a person to read, tables and reports."""
    with open_output(None) as file:
        for part in parts:
            if isinstance(part, str):
                show_text(part, file)
            elif isinstance(part, Table):
                write_table(part, file)
            else:
                write_sections(part, file)


def _call(verb: partial[object]) -> None:
    # The handler of commands that show nothing at their end; their help is that of the function.
    verb()


def _version(value: bool) -> None:
    if value:
        typer.echo(f"nmt {nmt.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


@command("preprocess", nmt.preprocess, imports="nmt.corpus.dataset")
def _preprocess(preprocess: partial[nmt.PreparedData]) -> None:
    log.info(f"data directory: {preprocess().path}")


@command("data")
def _data(directory: Annotated[AnyPath, Argument(metavar="DIR")]) -> None:
    """Describe a data directory: splits, lengths, overlap, words.

    Example: nmt data data/prepared/tatoeba_small

    Args:
        directory: Data directory written by nmt preprocess.
    """
    from nmt.corpus.data_report import read_report

    _show(read_report(Path(directory)))


command("train", nmt.train, imports="nmt.training.directory")(_call)


@command("check", nmt.check, imports="nmt.training.readiness")
def _check(check: partial[Iterator[nmt.Finding]]) -> None:
    """Check data, model, memory and speed before a long run. Nothing is written.

    The exit code is 1 if something is wrong.

    Example: nmt check --config tatoeba_small; nmt check --config tatoeba_small --for ctranslate2
    """
    marks = {True: "ok", False: "PROBLEM", None: "-"}
    problems = []
    with open_output(None) as file:
        for finding in check():
            print(f"{marks[finding.ok]:<8}{finding.name}: {printable(finding.text)}", file=file, flush=True)
            if finding.ok is False:
                problems.append(finding.name)
        print(f"problems: {', '.join(problems)}" if problems else "nothing is wrong", file=file)
    raise typer.Exit(bool(problems))


command("translate", translate, imports="nmt.translation.translator", names_model=True)(_call)


@command("evaluate", nmt.evaluate, imports="nmt.evaluation.model_evaluation")
def _evaluate(evaluate: partial[nmt.ModelEvaluation]) -> None:
    from nmt.evaluation.attention_statistics import SHARP, tabulate_lengths

    evaluation = evaluate()
    mark = "    NOT A TEST OF UNSEEN TEXT, see overlap" if evaluation.seen.marked else ""
    lines = [f"{score}    {score.signature}{mark}" for score in evaluation.scores.values()]
    lines.append(str(evaluation.diagnosis))
    lines += [f"reading the references: {evaluation.teacher_forced}"] if evaluation.teacher_forced else []
    lines += [f"reading its own words: {evaluation.free_running}"] if evaluation.free_running else []
    heads, several = evaluation.attention, len(evaluation.attention) > 1
    lines += [f"attention{f' of head {n}' if several else ''}: {head}" for n, head in enumerate(heads, 1)]
    if evaluate.keywords["attention"] and not heads:
        lines += ["attention: none, as model.attention.score is none"]
    lines += [str(evaluation.short_inputs)] if evaluation.short_inputs else []
    _show(
        "\n".join(lines),
        *((tabulate_lengths(evaluation.attention_by_length), SHARP) if heads else ()),
        *((table.caption, table) if (table := evaluation.comparison_table).rows else ()),
        *([list(evaluation.breakdown.sections())] if evaluation.breakdown else []),
    )


@command("attention", nmt.measure_attention, nmt.explore, imports="nmt.inspection.explorer_data", names_model=True)
def _attention(measure_attention: partial[nmt.AttentionReport], explore: partial[object]) -> None:
    """Show where a model looks: numbers, pictures or a page.

    Example: nmt attention "She kissed him." --picture kiss.png; nmt attention --split test --output attention.html
    """
    page, measured = explore.keywords, measure_attention.keywords
    if "output" not in page and ("against" in page or page["training"]):
        raise ConfigError(f"{'--against' if 'against' in page else '--training'} is for a page: add --output FILE.html")
    if "output" in page:
        for name in ("target", "json_path", "picture", "forced"):
            if measured.get(name):
                option = name.removesuffix("_path")
                raise ConfigError(f"--{option} does not go with --output, which writes a page")
        explore()
        log.info(f"page: {page['output']}")
        return
    from nmt.evaluation.attention_statistics import SHARP, tabulate_lengths

    report, one = measure_attention(), "sentence" in measured
    if "picture" in measured:
        log.info(f"picture: {measured['picture']}")
    several = len(report.heads) > 1
    lines = [f"{f'head {number}: ' if several else ''}{head}" for number, head in enumerate(report.heads, 1)]
    lines += [] if report.error_rate is None else [f"alignment error rate {report.error_rate:.3f}"]
    text = "\n".join(lines)
    tables = [] if report.all_heads is None else report.all_heads.tables()
    parts = (report.step_table, text) if one else (text, tabulate_lengths(report.by_length))
    _show(*parts, SHARP, *tables)


@command("explain", nmt.explain, imports="nmt.inspection.record")
def _explain(explain: partial[str]) -> None:
    _show(explain())


@command("report", nmt.report, imports="nmt.inspection.model_report", names_model=True)
def _report(report: partial[Path]) -> None:
    log.info(f"report: {report()}")


@command("compare", nmt.compare, imports="nmt.comparison.trial")
def _compare(
    compare: partial[nmt.ComparisonResult],
    cell: Annotated[AnyPath | None, Option("", "DIR", "Only train and evaluate this cell, as launchers do.")] = None,
) -> None:
    if cell is not None:
        from nmt.comparison.trial import run_trial

        if compare.keywords != {"split": "test"}:
            raise ConfigError("--cell runs a cell as it was made: leave the other options out")
        run_trial(Path(cell))
        return
    result = compare()
    _show(result.sections)
    if result.failed:
        raise TrainingError(*(f"{name}: {reason}" for name, reason in result.failed.items()))


@command("backtranslate", nmt.backtranslate, imports="nmt.comparison.synthetic_pairs")
def _backtranslate(backtranslate: partial[nmt.Synthesis]) -> None:
    _show(backtranslate().sections)


command("score", score, imports="nmt.translation.translator", names_model=True)(_call)


@command("serve", nmt.serve, imports="nmt.translation.translator", names_model=True)
def _serve(serve: partial[None]) -> None:
    from nmt.serving.serve import exit_if_busy

    serve()
    exit_if_busy()


command("average", nmt.average, imports="nmt.models.storage")(_call)
command("export", nmt.export, imports="nmt.models.storage", names_model=True)(_call)


@command("runs")
def _runs(directory: Annotated[AnyPath, Argument(metavar="DIR")] = Path("runs")) -> None:
    """List runs: state, updates, best score, time.

    A star marks the newest finished run, which commands use without --model.

    Example: nmt runs

    Args:
        directory: Folder of runs.
    """
    from nmt.models.run_records import list_runs

    _show(list_runs(Path(directory)))


@command("attentions")
def _attentions() -> None:
    """List attention mechanisms: equation, work, limits, paper.

    Example: nmt attentions
    """
    from nmt.layers.attention.catalog import describe_mechanisms

    _show(describe_mechanisms())


app.add_typer(configs, name="config")


@command("show", group=configs)
def _show_config(config: Annotated[str, CONFIG], overrides: Annotated[Overrides, SETTINGS] = ()) -> None:
    """Print the whole config as YAML, each value with its origin.

    Example: nmt config show tatoeba_small --set train.epochs=3

    Args:
        config: YAML file, or the name of a shipped config.
    """
    from nmt.config import show_config

    _show(show_config(config, overrides))


@command("check", group=configs)
def _check_config(config: Annotated[str, CONFIG], overrides: Annotated[Overrides, SETTINGS] = ()) -> None:
    """Report every problem of a config. It reads no data; nmt check does.

    Example: nmt config check mine.yaml

    Args:
        config: YAML file, or the name of a shipped config.
    """
    settings = nmt.load_config(config, overrides)
    if config != "base":  # which has none, as others extend it
        _ = settings.data.languages
    _show(f"{config}: no problems\n")


@command("schema", group=configs)
def _config_schema() -> None:
    """Print a JSON Schema (draft 2020-12) of configs, for editors.

    Example: nmt config schema > nmt.schema.json
    """
    import json

    from nmt.config.description import json_schema

    _show(json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n")


def _run_app() -> int | None:
    try:
        code: int | None = app(standalone_mode=False)
    except typer.Abort:
        raise KeyboardInterrupt from None
    except Exception as error:
        if hasattr(error, "possibilities"):  # there is no such option
            _name_settings(error)
        elif "unexpected extra argument" in str(getattr(error, "message", "")):
            _explain_extra(error)
        elif getattr(error, "message", None) == "":  # an option or argument is missing
            _show_example(error)
        raise
    return code


def _name_settings(error: Any) -> None:
    """Add to the error of an unknown option what sets the keys of a config that it may mean.

    A key is meant by its last part, by its last two, or by the initials of the last: --batch-size, --lr. Longer options
    and keys of the command's own section come before others.
    """
    from nmt.config.description import describe_keys

    option, command = error.option_name, error.ctx.command
    allowed = [parameter.metavar.partition("KEY=")[0] for parameter in command.params if "--set" in parameter.opts]
    own = (name for parameter in command.params for name in parameter.opts)
    if longer := [name for name in own if name.endswith(option[1:]) or name == f"{option}s"]:
        error.possibilities = longer
        return
    section = "".join(allowed).removeprefix("SECTION.")
    words = iter(sys.argv)
    given = next((word for word in words if word.partition("=")[0] == option), "").partition("=")[2]
    value = shlex.quote(given or next(words, "VALUE"))
    settings = {}
    for path, values, *_ in describe_keys() if allowed else ():
        last = path.rpartition(".")[2]
        names = (last, "_".join(path.split(".")[-2:]), "".join(word[0] for word in last.split("_")))
        if values and option[2:].replace("-", "_") in names and path.startswith(section):
            settings[path] = f"--set {path}={'true' if values == 'true, false' else value}"
    if settings:
        nearest = [setting for path, setting in settings.items() if path.startswith(f"{command.name}.")]
        error.message += f"; set the key of the config: {' or '.join(nearest or settings.values())}"
        error.possibilities = None  # other options


def _explain_extra(error: Any) -> None:
    """Add to the error of an argument too many what it may be: a model without its option, or words without quotes."""
    word, parameters = error.message.partition(" (")[2].removesuffix(")"), error.ctx.command.params
    folder = next((path for path in (Path(word), Path("runs", word)) if path.is_dir()), None)
    no_arguments = all(parameter.opts[0].startswith("-") for parameter in parameters)
    if (folder or no_arguments) and any("--model" in parameter.opts for parameter in parameters):
        error.message += f"; for a model: --model {shlex.quote(str(folder)) if folder else 'DIR'}"
    elif hint := _correct_setting(error.ctx.params.get("overrides")):
        error.message += hint
    elif sentence := error.ctx.params.get("sentence"):
        error.message += f"; put the sentence in quotation marks: {shlex.quote(f'{sentence} {word}')}"


def _correct_setting(overrides: Sequence[str] | None) -> str:
    """What to add to an error about a word that may be the value of a setting: --set KEY VALUE."""
    keys = [setting for setting in overrides or () if "=" not in setting]
    return f"; a key is set without a space: --set {keys[-1]}=VALUE" if keys else ""


def _show_example(error: Any) -> None:
    error.message = "".join(re.findall(r"Example: .*", error.ctx.command.help))


def main() -> None:
    """Run a command; a user error results in one clear line and a non-zero exit code, never a traceback."""
    run_program(_run_app)
