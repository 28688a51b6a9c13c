"""What reaches the terminal."""

import contextlib
import fcntl
import io
import logging
import os
import pty
import struct
import sys
import termios
from pathlib import Path

import processes
import pytest
from conftest import Terminal

from nmt.system.progress import progress_bar
from nmt.system.tables import Table
from nmt.system.terminal import showing_messages, write_table

TABLE = Table(("name", "what it is", "n"), [("a\x1b[2J", "word " * 20, "7"), ("b", "", "1,234")], "llr")
log = logging.getLogger("nmt.some.module")


def test_a_table_uses_tabs_without_a_terminal() -> None:
    file = io.StringIO()
    write_table(TABLE, file)
    assert file.getvalue() == f"name\twhat it is\tn\na\\x1b[2J\t{'word ' * 20}\t7\nb\t\t1,234\n"


@pytest.mark.parametrize("columns", [30, 60, 200])
def test_a_table_fits_the_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    file = Terminal()
    write_table(TABLE, file)
    lines = file.getvalue().splitlines()
    assert max(map(len, lines)) <= columns
    assert file.getvalue().count("word") == 20
    assert file.getvalue().replace("\n", "").isprintable()
    header, first, last = lines[0], lines[1], lines[-1]
    assert header.index("what") == first.index("word")
    assert {line.rstrip().endswith(end) for line, end in ((header, "n"), (first, "7"), (last, "1,234"))} == {True}
    assert first.rstrip().index("7") == last.rstrip().index("4")


def test_messages_are_plain_lines_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    with showing_messages():
        log.info("100% of a\x1b[2J\nb \ud800")
        log.warning("two")
        log.debug("not told")
    log.info("nor is this")
    assert capsys.readouterr() == ("", "100% of a\\x1b[2J\\nb \\ud800\ntwo\n")
    assert [type(handler) for handler in logging.getLogger("nmt").handlers] == [logging.NullHandler]


def test_a_message_is_above_the_progress_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with showing_messages(), progress_bar(total=9, desc="going on", file=screen):
        log.info("a message")
    before, _, after = screen.getvalue().partition("a message\n")
    assert before.endswith("\r")
    assert "going on" in before
    assert "going on" in after


def test_there_is_no_bar_without_messages() -> None:
    screen = Terminal()
    with progress_bar(total=9, file=screen) as bar:
        bar.update(9)
    with showing_messages(), progress_bar(total=9, file=screen, shown=False):
        pass
    assert screen.getvalue() == ""


@pytest.mark.parametrize("columns", [70, 110])
def test_the_attentions_fit_a_real_terminal(tmp_path: Path, columns: int) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")} | {
        "TERM": "xterm"
    }
    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    with processes.start("attentions", **streams, environment=environment) as process:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # the other end is closed
            while part := os.read(ours, 4096):
                shown += part
    os.close(ours)
    assert process.returncode == 0
    table = shown.decode().split("\r\n\r\n")[0].splitlines()
    assert len(table) > 15
    assert max(map(len, table)) <= columns
    assert all("\x1b" not in line for line in table)
