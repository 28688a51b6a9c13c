"""Each command that a Markdown file shows is one that the command line or a script takes."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from markdown_files import FILES, ROOT

from nmt.interface.app import command

BLOCK = re.compile(r"^```.*?\n(.*?)^```", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^ {4}(.*)$", re.MULTILINE)
INLINE = re.compile(r"`(nmt [^`\n]+)`")
COMMAND = re.compile(r"(?:\$ )?(?:[A-Z_]+=\S+ )*(?:nice \S+ \S+ )?(?:python -m )?(nmt .*)")
SCRIPT = re.compile(r"python3? (scripts/\w+\.py)((?: .*)?)")
MARKS = "|<>&;"
"""What the shell reads itself, if it is not quoted."""
UNFINISHED = ("MissingParameter", "BadOptionUsage", "NoArgsIsHelpError")
"""What a command in running text may lack: a name, the value of an option."""
MADE_UP = {"nmt count FILE"}
"""The example of a new command in CONTRIBUTING.md."""


def shell_lines(path: Path) -> Iterator[str]:
    """The lines of a file's blocks of code, each continued line as one."""
    text = path.read_text(encoding="utf-8").replace("\\\n", " ")
    for block in [*BLOCK.findall(text), *INDENTED.findall(text)]:
        yield from (line.strip() for line in block.splitlines())


def words_of(line: str) -> list[str]:
    """The words of a command, up to the shell's own."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=MARKS)
    lexer.whitespace_split = True
    words = []
    for word in lexer:
        if not word.strip(MARKS):
            break
        words.append(word)
    return words


def parse(line: str) -> None:
    """Parse a command as the command line does; nothing runs."""
    group: Any = command()
    _, *words = words_of(line)
    try:
        context = group.make_context("nmt", words)
        name, found, rest = group.resolve_command(context, context._protected_args + context.args)
        found.make_context(name, rest, parent=context)
    except Exception as error:
        if type(error).__name__ != "Exit":  # --help
            raise


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_commands_are_parsed(path: Path) -> None:
    for line in shell_lines(path):
        match = COMMAND.fullmatch(line)
        if match and match[1] not in MADE_UP:
            parse(match[1])
    for line in INLINE.findall(path.read_text(encoding="utf-8")):
        try:
            if line not in MADE_UP:
                parse(line)
        except Exception as error:
            if type(error).__name__ not in UNFINISHED:
                raise


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_scripts_have_the_options_that_are_shown(path: Path) -> None:
    for line in shell_lines(path):
        match = SCRIPT.search(line)
        if match:
            script = ROOT / match[1]
            folder = script.with_suffix("")
            sources = [script, *(ROOT / "scripts").glob(f"{folder.name}*/**/*.py")]
            text = "".join(source.read_text(encoding="utf-8") for source in sources)
            options = {word.partition("=")[0] for word in words_of(match[2]) if word.startswith("--")}
            unknown = [option for option in options if not re.search(rf"\b{option.removeprefix('--')}\b", text)]
            assert unknown == [], line


@pytest.mark.parametrize("line", ["nmt trian x", "nmt train --no-such-option", "nmt translate --beam x"])
def test_what_is_no_command_is_refused(line: str) -> None:
    with pytest.raises(Exception, match=r"No such|Invalid|invalid"):
        parse(line)
