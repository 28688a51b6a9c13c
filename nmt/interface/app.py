"""The command `nmt`: its commands, and its hints at errors of usage."""

import functools
from collections.abc import Callable
from typing import Annotated

import typer
import typer.core
import typer.main

from nmt.interface import usage
from nmt.interface.command import Command
from nmt.interface.comparison_commands import backtranslate, compare
from nmt.interface.config_commands import check_config, show_attentions, show_config, show_schema
from nmt.interface.data_commands import describe_data, preprocess
from nmt.interface.evaluation_commands import evaluate, explain, look_at_attention, report
from nmt.interface.training_commands import average, check, show_runs, train
from nmt.interface.translation_commands import export, score, serve, translate
from nmt.system.process import run_program
from nmt.system.version import __version__

app = typer.Typer(
    name="nmt",
    help="Neural machine translation with attention, recurrent or Transformer: from raw text to BLEU, driven by YAML.",
    epilog="In order: nmt preprocess, nmt train, nmt evaluate, nmt translate. Each --help shows an example.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
configs = typer.Typer(help="Show and check configs, and describe their keys to editors.", no_args_is_help=True)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"nmt {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options of nmt itself, which has no work of its own."""


COMMANDS: dict[str, Callable[..., None]] = {
    "preprocess": preprocess,
    "data": describe_data,
    "train": train,
    "check": check,
    "translate": translate,
    "evaluate": evaluate,
    "attention": look_at_attention,
    "explain": explain,
    "report": report,
    "compare": compare,
    "backtranslate": backtranslate,
    "score": score,
    "serve": serve,
    "average": average,
    "export": export,
    "runs": show_runs,
    "attentions": show_attentions,
}
"""Commands by name, as --help lists them."""
CONFIG_COMMANDS: dict[str, Callable[..., None]] = {"show": show_config, "check": check_config, "schema": show_schema}
"""Those of nmt config."""
for name, function in COMMANDS.items():
    app.command(name, cls=Command)(function)
for name, function in CONFIG_COMMANDS.items():
    configs.command(name, cls=Command)(function)
app.add_typer(configs, name="config")


@functools.cache
def command() -> typer.core.TyperGroup:
    """The command with all of its commands, as typer makes it of their functions."""
    made = typer.main.get_command(app)
    assert isinstance(made, typer.core.TyperGroup)
    return made


def main() -> None:
    """Run a command; a user error results in one clear line and a non-zero exit code, never a traceback."""
    run_program(_run)


def _run() -> int | None:
    """Run a command and return its exit code; `run_program` shows its errors, typer's errors of usage included."""
    try:
        code: int | None = command()(standalone_mode=False)  # so that it raises, and neither shows errors nor exits
    except typer.Abort:
        raise KeyboardInterrupt from None  # typer turns one into Abort
    except Exception as error:
        usage.add_hint(error)
        raise
    return code
