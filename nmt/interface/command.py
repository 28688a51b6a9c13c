"""The common parts of the commands: their help, the dialect of their errors, and their output."""

import contextlib
import importlib
import logging
import re
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import typer.core

from nmt.interface.dialect import CommandLine
from nmt.interface.usage import hint_at_setting
from nmt.system.errors import CheckpointError, ConfigError, NmtError
from nmt.system.messages import speaking
from nmt.system.process import open_output
from nmt.system.signals import raise_on_interrupt
from nmt.system.tables import Table
from nmt.system.terminal import show_text, showing_messages, write_sections, write_table

if TYPE_CHECKING:
    from nmt.system.tables import ReportSection

log = logging.getLogger(__name__)

_TYPE_AFTER_NAME = re.compile(r"(?<=[A-Z\].]) <[\w\[\]]+>")
"""The type that Typer writes after the name of a value: ` <path>` in `DIR <path>`."""
_PLAIN = {r"{([A-Z|]+)}": r"\1", r"(\d+)<=x<=(\d+)": r"\1 to \2", r"x>=(\d+)": r"from \1"}
"""Forms of Typer, and forms that people read: {DIR} is DIR, 1<=x<=1000 is 1 to 1000, and x>=1 is from 1."""


def without_types(text: str) -> str:
    """Help without types; spaces take their place, as the columns that follow on a line must not move."""
    text = _TYPE_AFTER_NAME.sub(lambda match: " " * len(match[0]), text)
    for written, plain in _PLAIN.items():
        text = re.sub(written, plain, text)
    return text


class Command(typer.core.TyperCommand):
    """A command whose help is for people, and whose messages name its options."""

    def get_help(self, ctx: Any) -> str:
        """The help without types: DIR, where Typer writes {DIR} and DIR <path>."""
        return without_types(super().get_help(ctx))

    def get_usage(self, ctx: Any) -> str:
        """The line above an error of usage."""
        return without_types(super().get_usage(ctx))

    def make_context(self, *arguments: Any, **keywords: Any) -> Any:
        """Read the options."""
        with self._naming_options():
            return super().make_context(*arguments, **keywords)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with self._naming_options():
            return super().invoke(ctx)

    @contextlib.contextmanager
    def _naming_options(self) -> Iterator[None]:
        """Name options, where the library names parameters, in messages and errors of the block."""
        dialect = CommandLine({str(parameter.name): _option_name(parameter) for parameter in self.params})
        try:
            with speaking(dialect), showing_messages():
                yield
        except NmtError as error:
            error.dialect = dialect  # its text is asked for after the block
            raise


def _option_name(parameter: Any) -> str:
    """The name of an option, or that of an argument without dashes."""
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper())
    return str(next(option for option in parameter.opts if option.startswith("--")))


def import_libraries(module: str) -> None:
    """Import a module that brings the heavy libraries of a command, and let Ctrl-C raise KeyboardInterrupt afterwards.

    While libraries are imported, Ctrl-C ends the process at once, as nothing is to be cleaned up. A command names the
    module that does its work; the libraries that this one imports later, in functions, are those of rare options.
    """
    importlib.import_module(module)
    raise_on_interrupt()


def choose_config(argument: str | None, option: str | None, overrides: Sequence[str] | None) -> str:
    """The one config that a command is given, as an argument or as --config.

    Raises:
        ConfigError: There is none, or there are two.
    """
    given = sorted({name for name in (argument, option) if name})
    if len(given) != 1:
        names = " and ".join(given) or "none"
        raise ConfigError(f"give one config, a file or a name; found {names}{hint_at_setting(overrides)}")
    return given[0]


def log_default_model(model: object) -> None:
    """Without --model, log which run is used, if there are several to choose from or if a person watches."""
    if model:
        return
    from nmt.models.lookup import newest_run

    with contextlib.suppress(CheckpointError):
        run, number = newest_run()
        if number > 1 or sys.stderr.isatty():
            log.info(f"model: {run}, newest of {number}")


def show(*parts: str | Table | Sequence["ReportSection"]) -> None:
    """Print text for a person to read, tables and reports."""
    with open_output(None) as file:
        for part in parts:
            if isinstance(part, str):
                show_text(part, file)
            elif isinstance(part, Table):
                write_table(part, file)
            else:
                write_sections(part, file)
