"""What reaches the terminal."""

import io
import logging
import re
import sys
from pathlib import Path

import processes
import pytest
from conftest import Cli, Project, Terminal
from tqdm import tqdm

from nmt.system.progress import ProgressLog, progress_bar
from nmt.system.tables import Table
from nmt.system.terminal import live_table, showing_messages, write_table
from nmt.training.run_log import BAR

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


@pytest.mark.parametrize(
    ("columns", "shown"),
    [(20, ["name      state", "a long n  finished", "other     x"]), (12, ["name", "a long n", "other"])],
)
def test_a_changing_table_keeps_its_rows_on_one_line(
    monkeypatch: pytest.MonkeyPatch, columns: int, shown: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys, "stderr", Terminal())
    rows = [("a long n", "finished", "1,234"), ("other", "x", "")]
    with showing_messages(), live_table() as show:
        show(Table(("name", "state", "n"), rows, "llr", whole="cells"))
    lines = [re.sub(r"\x1b\[[\d;?]*[A-Za-z]|\r", "", line).rstrip() for line in sys.stderr.getvalue().splitlines()]
    assert [line for line in lines if line][:3] == shown


def test_a_name_that_is_wider_than_the_terminal_is_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "10")
    screen = Terminal()
    write_table(Table(("", ""), [("abcdefghijklm", "1")], "lr", whole="cells"), screen)
    assert screen.getvalue().split() == ["abcdefghij", "klm"]


def test_messages_are_plain_lines_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    with showing_messages():
        log.info("100% of a\x1b[2J\nb \ud800")
        log.warning("two")
        log.debug("not told")
    log.info("nor is this")
    assert capsys.readouterr() == ("", "100% of a\\x1b[2J\\nb \\ud800\nWARNING: two\n")
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


@pytest.mark.parametrize("columns", [80, 110])
def test_a_report_fits_a_real_terminal(random_project: Project, columns: int) -> None:
    code, shown = processes.show("data", random_project.data, columns=columns)
    assert code == 0
    lines = shown.split("\r\n")
    assert len(lines) > 30
    assert all("\x1b" not in line and len(line) <= columns for line in lines)


def test_the_bar_of_a_run_keeps_its_width(random_project: Project, tmp_path: Path) -> None:
    command = ["train", "--config", random_project.config, "--data", random_project.data, "--output", tmp_path / "run"]
    code, shown = processes.show(*command, columns=80)
    assert code == 0
    frames = [frame for frame in re.split("[\r\n]+", shown) if "|" in frame]
    assert re.fullmatch(r"  0%\| {12}\| 0/30, \? left", frames[0])
    assert all(re.match(r"( |\d){3}%\|[^|]{12}\| \d+/30, [\d?:]+ left", frame) for frame in frames)
    assert re.search(r"100%\|█{12}\| 30/30, 00:00 left, loss \d\.\d{3}, [\d,]+ tokens/s", frames[-1])
    assert "\x1b" not in shown
    assert "it/s" not in shown


def test_the_bar_of_a_long_run_fits_eighty_columns() -> None:
    measures = "loss 12.345, 123,456 tokens/s"
    bar = tqdm.format_meter(123_456, 345_678, 36_000, ncols=79, bar_format=BAR, postfix=measures)
    assert bar == f" 36%|████▎       | 123456/345678, 18:00:00 left, {measures}"  # 10 h / 123456 * 222222
    assert len(bar) < 80


def test_a_log_has_lines_instead_of_a_bar(
    random_project: Project, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, no_pictures: None
) -> None:
    """Every `log_every` (4) updates and at each validation (7), or fewer if updates are fast."""
    command = ["train", "--config", random_project.config, "--data", random_project.data]
    pattern = r"update (\d+) of 30 \((\d+)%\), 0:\d\d:\d\d elapsed, 0:\d\d:\d\d left, loss \d\.\d{3}, [\d,]+ tokens/s"
    for seconds, expected in ((0, [4, 7, 8, 12, 14, 16, 20, 21, 24, 28, 30]), (1000, [4])):
        monkeypatch.setattr("nmt.system.progress.LOG_SECONDS", seconds)
        found = cli(*command, "--output", tmp_path / str(seconds))
        assert found.code == 0
        assert "\r" not in found.err
        lines = [re.fullmatch(pattern, line) for line in found.err.splitlines() if line.startswith("update")]
        assert [(int(line[1]), int(line[2])) for line in lines if line] == [(n, round(n / 0.3)) for n in expected]


def test_a_line_of_a_log_says_how_long_a_run_will_take(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A run resumed after 50 updates: 25 more in 10 seconds, so the other 125 take 50."""
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    lines = ProgressLog("update", 200, 50)
    with caplog.at_level(logging.INFO, "nmt"):
        for now[0], number in ((1010.0, 75), (1039.9, 100), (1040.0, 125), (1041.0, 200)):
            lines.report(number, now[0] - 1010 + 3723, "loss 1.000")
    assert caplog.messages == [
        "update 75 of 200 (38%), 1:02:03 elapsed, 0:00:50 left, loss 1.000",
        "update 125 of 200 (62%), 1:02:33 elapsed, 0:00:40 left, loss 1.000",
    ]
