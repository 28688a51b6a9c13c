"""An interactive session at a terminal that translates each line; commands begin with a colon."""

import contextlib
import logging
import shutil
from collections.abc import Callable
from typing import TextIO

from nmt.config import MAX_BEAM_SIZE, Config, with_search_options
from nmt.drawing.heatmap import draw_shades
from nmt.system.errors import ConfigError, NmtError, printable
from nmt.translation.input import decode_line
from nmt.translation.stream import within_memory
from nmt.translation.translation import Translation
from nmt.translation.translator import Translator

log = logging.getLogger(__name__)


def converse(translator: Translator, file: TextIO, n_best: int) -> None:
    """Translate what a person types at a terminal, with a history that ends with the session.

    Args:
        translator: Model and search settings.
        file: The terminal.
        n_best: Translations to show per line.
    """
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  # from now on input() has a history
    log.info("type a sentence; :help lists commands, Ctrl-D ends")
    width = shutil.get_terminal_size().columns
    session = Session(translator, lambda line: print(line, file=file, flush=True), n_best=n_best, width=width)
    session.run(lambda: input("> "))


COMMANDS = {
    "beam N": "keep N hypotheses at each step; 1 is greedy",
    "nbest N": "show the N best translations",
    "scores": "show or hide scores",
    "attention": "show or hide the attention weights",
    "help": "list the commands",
    "quit": "leave, as Ctrl-D does; Ctrl-C cancels a line",
}
BAD_COMMAND = f"commands: {', '.join(f':{command}' for command in COMMANDS)}"


class Session:
    """A conversation with a model.

    Args:
        translator: Model and search settings; it is not changed.
        show: Receives a line to show.
        n_best: Translations to show per line.
        width: Columns of the terminal.
    """

    def __init__(
        self, translator: Translator, show: Callable[[str], object], *, n_best: int = 1, width: int = 80
    ) -> None:
        self.translator = translator
        self.show = show
        self.n_best = n_best
        self.width = width
        self.scores = self.attention = False

    def run(self, ask: Callable[[], str]) -> None:
        """Answer line by line until the end of the input.

        Args:
            ask: Returns the next line; raises EOFError if there is none, and KeyboardInterrupt to cancel it.
        """
        while True:
            try:
                if not self.answer(ask()):
                    return
            except (EOFError, KeyboardInterrupt) as end:
                self.show("")
                if isinstance(end, EOFError):
                    return
            except NmtError as error:
                self.show(str(error))

    def answer(self, line: str) -> bool:
        """Translate a line or execute it as a command; returns whether the session continues."""
        if line.startswith(":"):
            return self._execute(line[1:].split())
        text, _ = decode_line(line.encode("utf-8", "surrogateescape"))
        if text.strip():
            with within_memory(self.translator.options, 1):
                self._show(self.translator.translate(text, self.n_best, self.attention))
        return True

    def _show(self, translations: list[Translation]) -> None:
        for rank, translation in enumerate(translations, start=1):
            before = f"{rank}  " if self.n_best > 1 else ""
            score = f"{translation.score:z.4f}  " if self.scores else ""
            self.show(printable(f"{before}{score}{translation.text}"))
        if self.attention and translations[0].alignment is not None:
            for line in draw_shades(*translations[0].weights, self.width):
                self.show(line)

    def _execute(self, words: list[str]) -> bool:
        match words:
            case ["beam", number] if number.isdecimal():
                size = int(number[:9])
                if not 1 <= size <= MAX_BEAM_SIZE:
                    raise ConfigError(f":beam {number}: takes 1 to {MAX_BEAM_SIZE:,}")
                settings = with_search_options(Config(decode=self.translator.options), {"beam_size": size})
                self.translator = self.translator.with_options(settings)
                self.n_best = min(self.n_best, self.translator.options.beam_size)
                self.show(f"beam size: {settings.beam_size:,}; translations shown: {self.n_best:,}")
            case ["nbest", number] if number.isdecimal():
                wanted = int(number[:9])
                most = self.translator.options.beam_size
                if not 1 <= wanted <= most:
                    raise ConfigError(f":nbest {number}: takes 1 to {most}, the beam size; :beam N sets it")
                self.n_best = wanted
                self.show(f"translations shown: {wanted:,}")
            case ["scores"]:
                self.scores = not self.scores
                self.show(f"scores: {'shown' if self.scores else 'hidden'}")
            case ["attention"]:
                self.attention = not self.attention
                self.show(f"attention: {'shown' if self.attention else 'hidden'}")
            case ["help"]:
                for command, purpose in COMMANDS.items():
                    self.show(f":{command:<11}{purpose}")
            case ["quit"]:
                return False
            case _:
                self.show(BAD_COMMAND)
        return True
