"""Hints at errors of usage: the option, key or quotation marks that were meant.

typer does not export the classes of its errors, so they are told apart by the names of their classes.
"""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def add_hint(error: Any) -> None:
    """Add a hint at the probable meaning to an error of the option parser."""
    kind = type(error).__name__
    if kind == "NoSuchOption":
        _hint_at_option(error)
    elif kind == "MissingParameter":
        error.message = _example_of(error.ctx.command)
    elif kind == "UsageError" and "unexpected extra argument" in error.message:
        _hint_at_extra_argument(error)


def hint_at_setting(overrides: Sequence[str] | None) -> str:
    """The hint at an error about a word that may be the value of a setting: --set KEY VALUE."""
    keys = [setting for setting in overrides or () if "=" not in setting]
    return f"; a key is set without a space: --set {keys[-1]}=VALUE" if keys else ""


def _hint_at_option(error: Any) -> None:
    """Name the options that an unknown one may be short for; without any, the config keys that it may mean."""
    option = error.option_name
    command = error.ctx.command
    similar = _similar_options(command, option)
    if similar:
        error.possibilities = similar
        return
    settings = _matching_settings(command, option)
    if settings:
        error.message += f"; set the key of the config: {' or '.join(settings)}"
        error.possibilities = None  # the parser's guesses, which are further away


def _similar_options(command: Any, option: str) -> list[str]:
    """Options that end as the given one does, such as --no-cache for --cache, or are its plural."""
    names = (name for parameter in command.params for name in parameter.opts)
    return [name for name in names if name.endswith(option[1:]) or name == f"{option}s"]


def _matching_settings(command: Any, option: str) -> list[str]:
    """The settings, as --set KEY=VALUE, whose keys an option may mean; none for a command without --set.

    A key is meant by its last part, by its last two, or by the initials of the last: --batch-size, --lr. Keys of the
    command's own section, as `train` of nmt train, leave out all others.
    """
    from nmt.config.description import describe_keys

    (accepted,) = [parameter.metavar for parameter in command.params if "--set" in parameter.opts] or [None]
    if accepted is None:
        return []
    # The option --set takes decode.KEY=VALUE, or SECTION.KEY=VALUE, which is any section.
    section = accepted.partition("KEY=")[0]
    if section == "SECTION.":
        section = ""
    typed = option.removeprefix("--").replace("-", "_")
    settings: dict[str, str] = {}
    for path, values, *_ in describe_keys():
        parts = path.split(".")
        last = parts[-1]
        initials = "".join(word[0] for word in last.split("_"))
        is_meant = typed in (last, "_".join(parts[-2:]), initials)
        if values and is_meant and path.startswith(section):
            value = "true" if values == "true, false" else _typed_value(option)
            settings[path] = f"--set {path}={value}"
    nearest = [setting for path, setting in settings.items() if path.startswith(f"{command.name}.")]
    return nearest or list(settings.values())


def _typed_value(option: str) -> str:
    """The value that was typed behind an option, as `--lr 3` or `--lr=3`, for a shell; VALUE if none was."""
    for place, word in enumerate(sys.argv):
        name, _, value = word.partition("=")
        if name == option:
            following = sys.argv[place + 1 : place + 2] or ["VALUE"]
            return shlex.quote(value or following[0])
    return "VALUE"


def _hint_at_extra_argument(error: Any) -> None:
    """Add a hint to the error of an argument too many: a model without its option, or words without quotes."""
    # The parser's message ends with the words that are too many, in parentheses.
    word = error.message.partition(" (")[2].removesuffix(")")
    parameters = error.ctx.command.params
    folder = next((path for path in (Path(word), Path("runs", word)) if path.is_dir()), None)
    takes_model = any("--model" in parameter.opts for parameter in parameters)
    takes_no_argument = all(parameter.opts[0].startswith("-") for parameter in parameters)
    sentence = error.ctx.params.get("sentence")
    if takes_model and (folder or takes_no_argument):
        error.message += f"; for a model: --model {shlex.quote(str(folder)) if folder else 'DIR'}"
    elif hint := hint_at_setting(error.ctx.params.get("overrides")):
        error.message += hint
    elif sentence:
        error.message += f"; quote the sentence: {shlex.quote(f'{sentence} {word}')}"


def _example_of(command: Any) -> str:
    """The line of a command's help with an example."""
    return next((line for line in command.help.splitlines() if line.startswith("Example: ")), "")
