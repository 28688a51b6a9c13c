"""What is added to errors of usage: the option, key or quotation marks that were meant."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def explain(error: Any) -> None:
    """Add to an error of the option parser what was probably meant."""
    if hasattr(error, "possibilities"):  # there is no such option
        _name_settings(error)
    elif "unexpected extra argument" in str(getattr(error, "message", "")):
        _explain_extra(error)
    elif getattr(error, "message", None) == "":  # an option or argument is missing
        _show_example(error)


def correct_setting(overrides: Sequence[str] | None) -> str:
    """What to add to an error about a word that may be the value of a setting: --set KEY VALUE."""
    keys = [setting for setting in overrides or () if "=" not in setting]
    return f"; a key is set without a space: --set {keys[-1]}=VALUE" if keys else ""


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
    elif hint := correct_setting(error.ctx.params.get("overrides")):
        error.message += hint
    elif sentence := error.ctx.params.get("sentence"):
        error.message += f"; put the sentence in quotation marks: {shlex.quote(f'{sentence} {word}')}"


def _show_example(error: Any) -> None:
    lines = error.ctx.command.help.splitlines()
    error.message = "".join(line for line in lines if line.startswith("Example: "))
