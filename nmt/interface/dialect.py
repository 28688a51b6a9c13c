"""How a command says the parameters and functions that a message names: as options and commands."""

import shlex
from collections.abc import Mapping

from nmt.system.messages import UNSET, Call


class CommandLine:
    """Parameters as options of a command.

    Args:
        options: The options of a command by their parameters' names: `{"n_best": "--n-best"}`. A name without dashes
            is that of an argument. Other parameters are options of the same name.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = options

    def say_parameter(self, name: str, value: object) -> str:
        """The option, and the value as a shell takes it.

        overwrite=True is --overwrite, and False --no-overwrite; src="a b" is --src 'a b'; ref=["a", "b"] is --ref a
        --ref b; overrides={"train.epochs": 3} is --set train.epochs=3.
        """
        if isinstance(value, Mapping):
            from nmt.config.tree import in_one_line

            settings = [f"{key}={in_one_line(item)}" for key, item in value.items()]
            return " ".join(f"{self._option(name)} {shlex.quote(text)}" for text in settings)
        if isinstance(value, list | tuple):
            return " ".join(self.say_parameter(name, item) for item in value)
        option = self._option(name)
        if value is UNSET or value is True:
            return option
        if value is False:
            return option.replace("--", "--no-", 1)
        text = shlex.quote(str(value))
        return f"{option} {text}" if option.startswith("-") else text

    def say_call(self, call: Call) -> str:
        """The command, to be copied into a shell."""
        words = [self.say_parameter(name, value) for name, value in call.arguments.items()]
        return " ".join([shlex.join(call.launcher), call.function, *words])

    def _option(self, name: str) -> str:
        """The name of an option; a parameter that the command does not have becomes an option of the same name."""
        return self.options.get(name) or f"--{name.replace('_', '-')}"
