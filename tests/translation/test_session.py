"""A session: lines and commands in, translations out, at any stream and at a terminal."""

import os
import pty
import select
from functools import cache

import processes
import pytest
from conftest import GOLDEN_MODEL

import nmt
from nmt.drawing.heatmap import EOS_LABEL
from nmt.translation.session import BAD_COMMAND, COMMANDS, Session
from nmt.translation.translator import Translator


@cache
def translator() -> Translator:
    return nmt.load(GOLDEN_MODEL, device="cpu", beam_size=2, max_length=20)


def talk(*lines: str | type[BaseException], width: int = 80) -> list[list[str]]:
    """What is shown after each line; an exception is what asking for a line raises."""
    shown: list[list[str]] = []
    left = list(lines)

    def ask() -> str:
        shown.append([])
        line = left.pop(0) if left else EOFError
        if not isinstance(line, str):
            raise line
        return line

    Session(translator(), lambda text: shown[-1].append(text), width=width).run(ask)
    return shown


def test_lines_are_translated_until_the_end() -> None:
    texts = ["He is old.", "It rains. It snows."]
    first, last = ([translator().translate(text).text] for text in texts)
    assert talk(texts[0], "", "  ", texts[1]) == [first, [], [], last, [""]]


def test_settings_last_and_leave_the_translator_alone() -> None:
    found = talk(":nbest 2", ":scores", "He is old.", ":beam 1", ":scores", "He is old.", ":quit", "not read")
    best = translator().translate("He is old.", 2)
    assert found[2] == [f"{rank}  {each.score:.4f}  {each.text}" for rank, each in enumerate(best, start=1)]
    greedy = nmt.load(GOLDEN_MODEL, device="cpu", beam_size=1, max_length=20)
    assert found[5] == [greedy.translate("He is old.").text]
    assert found[:2] == [["translations shown: 2"], ["scores: shown"]]
    assert found[3:5] == [["beam size: 1; translations shown: 1"], ["scores: hidden"]]
    assert found[6:] == [[]]
    assert translator().options.beam_size == 2


def test_attention_is_drawn() -> None:
    (said,), (text, header, *rows), _ = talk(":attention", "He is old.")
    assert said == "attention: shown"
    assert talk(":attention", ":attention")[1] == ["attention: hidden"]
    best = translator().translate("He is old.", with_alignment=True)
    assert best.alignment is not None
    assert text == best.text
    assert header.split() == [*best.src_tokens, EOS_LABEL]
    assert [row.split()[0] for row in rows] == [*best.tokens, EOS_LABEL][: len(best.alignment)]
    _, (_, *links), _ = talk(":attention", "He is old.", width=10)
    assert [link.split()[0] for link in links] == [row.split()[0] for row in rows]
    assert all(0 < float(link.split()[2]) <= 1 for link in links)


@pytest.mark.parametrize(
    "line", [":", ":bea 3", ":beam", ":beam x", ":beam 1 2", ":beam -1", ":nbest ²", ":quit now", ":Help"]
)
def test_a_bad_command_is_one_line_of_help(line: str) -> None:
    assert talk(line) == [[BAD_COMMAND], [""]]
    assert all(f":{command}" in BAD_COMMAND for command in COMMANDS)


@pytest.mark.parametrize("line", [":beam 0", ":beam 999999999999", ":nbest 0", ":nbest 3"])
def test_a_number_that_makes_no_sense_is_one_line(line: str) -> None:
    (said,), after, _ = talk(line, "He is old.")
    assert "\n" not in said
    assert said.startswith(f"{line}: takes 1 to ")
    assert after == [translator().translate("He is old.").text]


def test_help_lists_every_command() -> None:
    assert [line.split()[0] for line in talk(":help")[0]] == [f":{command.split()[0]}" for command in COMMANDS]


def test_an_interrupt_cancels_a_line() -> None:
    assert talk(KeyboardInterrupt, "He is old.")[:2] == [[""], [translator().translate("He is old.").text]]


def test_a_real_terminal() -> None:
    terminal, end = pty.openpty()
    command = ["translate", "--model", GOLDEN_MODEL, "--beam-size", 2]
    with processes.start(*command, stdin=end, stdout=end, stderr=end, new_session=True) as process:
        os.close(end)
        said = b""

        def until(text: str) -> None:
            nonlocal said
            while text.encode() not in said:
                assert select.select([terminal], [], [], 120)[0], said
                said += os.read(terminal, 4096)
            said = said.split(text.encode(), 1)[1]

        until("> ")
        os.write(terminal, b"He is old.\n")
        until(nmt.load(GOLDEN_MODEL, device="cpu", beam_size=2).translate("He is old.").text)
        until("> ")
        os.write(terminal, b":nbest 5\n")
        until("takes 1 to 2")
        until("> ")
        os.write(terminal, b"\x04")
        assert process.wait(timeout=60) == 0
    os.close(terminal)
