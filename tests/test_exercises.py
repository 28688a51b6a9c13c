"""The exercises: solutions pass, and typical mistakes are named; the page and the checks have the same functions."""

import inspect
import re
import runpy
import sys
from pathlib import Path

import exercise_solutions
import pytest

from nmt import exercises
from nmt.system.files import PACKAGE
from nmt.testing import check_exercises

PATH = PACKAGE.parent / "docs/learn/exercises.md"
PAGE = PATH.read_text(encoding="utf-8")
SOLUTIONS = inspect.getsource(exercise_solutions)
FIRST, ALONE, LAST = exercises.CASES
MISTAKES = [
    # function, what is right in it, what stands there instead, and the line that is written
    ("attend", "softmax(dim=1)", "softmax(dim=0)", rf"{FIRST}: alignment off"),
    ("attend", "(alignment.unsqueeze(1) @ states).squeeze(1)", "alignment @ states", r"should have shape \[3, 4\]"),
    (
        "masked_attend",
        "real(lengths, states.size(1))",
        "real(lengths, states.size(1)) | True",
        f"{FIRST}: alignment off",
    ),
    ("masked_attend", "real(lengths, s", "~real(lengths, s", f"{FIRST}: alignment off by up to .* nan in place of"),
    ("additive_scores", "torch.tanh(", "(", f"{FIRST}: scores off"),
    ("additive_scores", " + states @ U.T) @ v", ") @ v", r"scores should have shape \[3, 5\], not \[3, 1\]"),
    ("luong_step", "masked_attend(new,", "masked_attend(s,", f"{FIRST}: alignment off"),
    ("luong_step", "[y, feedback]", "[y, s]", f"{FIRST}: alignment off"),
    ("bahdanau_step", "[new, context, y]", "[s, context, y]", f"{FIRST}: readout off"),
    (
        "bahdanau_step",
        "masked_attend(s,",
        "masked_attend(cell(torch.cat([y, s], dim=1), s),",
        f"{FIRST}: alignment off",
    ),
    ("local_p", "lengths * ", "scores.size(1) * ", f"{FIRST}, radius 2: alignment off"),
    ("local_p", "(radius / 2)", "radius", f"{FIRST}, radius 2: alignment off"),
    ("coverage_step", " + coverage.unsqueeze(2) * V", "", f"{FIRST}: alignment off"),
    ("coverage_step", "return alignment, coverage + alignment", "return alignment, alignment", "coverage off"),
    ("multi_head", "q.size(-1)", "query.size(-1)", f"{FIRST}, heads 2: alignments off"),
    ("multi_head", "for W in (W_k, W_v)", "for W in (W_v, W_k)", f"{FIRST}, heads 2: alignments off"),
    ("multi_head", "alignments.squeeze(2)", "alignments", r"should have shape \[3, 2, 5\], not \[3, 2, 1, 5\]"),
    ("self_attention", "    if causal:", "    if False:", f"{LAST}, heads 3, causal True: output off"),
    ("self_attention", " * words.unsqueeze(2)", "", f"{FIRST}, heads 2, causal False: output off"),
    ("self_attention", ".transpose(1, 2).flatten(2)", ".reshape(x.size(0), x.size(1), -1)", "output off"),
    ("cached_step", "q @ keys.mT / math.sqrt(q.size(-1))", "q @ keys.mT", f"{FIRST}: output off"),
    ("cached_step", "torch.cat([keys, k], dim=2), torch.cat([values, v], dim=2)", "keys, values", f"{FIRST}: "),
]


def write(folder: Path, text: str, name: str = "mine.py") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_solutions_pass(capsys: pytest.CaptureFixture[str]) -> None:
    assert not check_exercises([str(exercise_solutions.__file__)])
    assert capsys.readouterr().out == "".join(f"{name}: ok\n" for name in exercises.EXERCISES)


@pytest.mark.parametrize(("function", "right", "wrong", "line"), MISTAKES)
def test_mistakes_are_named(
    function: str, right: str, wrong: str, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    solution = inspect.getsource(getattr(exercise_solutions, function))
    assert right in solution
    path = write(tmp_path, SOLUTIONS.replace(solution, solution.replace(right, wrong)))
    assert check_exercises([str(path)])
    lines = dict(line.split(": ", maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert re.match(rf"with .*{line}", lines[function])
    assert lines["additive_scores" if function != "additive_scores" else "attend"] == "ok"


def test_every_exercise_has_mistakes() -> None:
    names = [function for function, *_ in MISTAKES]
    assert all(names.count(name) >= 2 for name in exercises.EXERCISES)


def solution_of(name: str, *changes: tuple[str, str]) -> str:
    text = "import math\nimport torch\nfrom torch import Tensor\n"
    text += inspect.getsource(getattr(exercise_solutions, name))
    for right, wrong in changes:
        assert right in text
        text = text.replace(right, wrong)
    return text


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "def attend(query, states:\n",
            "PATH: cannot be imported; SyntaxError: '(' was never closed (mine.py, line 1)",
        ),
        ("\nimport no_such_module\n", "PATH: cannot be imported; line 2, ModuleNotFoundError: No module named 'no_s"),
        ("raise SystemExit\n", "PATH: cannot be imported; line 1, SystemExit: "),
        (
            "def atend(query, states): ...\n",
            "PATH: has no function of an exercise, and no attention; define one of attend, masked_attend,",
        ),
        (
            "def attend(query, states): ...\n",
            f"attend: with {FIRST}: should return context, alignment, but returns 0 values",
        ),
        (
            "def additive_scores(*arguments): ...\n",
            f"additive_scores: with {FIRST}: should return scores, but returns 0 values",
        ),
        (
            solution_of("attend", (", alignment\n", ", alignment.float()\n")),
            f"attend: with {FIRST}: alignment should be torch.float64, as the arguments are, not torch.float32",
        ),
        (
            "def attend(query, states):\n    raise SystemExit\n",
            f"attend: with {FIRST}: line 2, SystemExit: ",
        ),
        (
            solution_of("additive_scores", (" @ v", " @ v.mul_(-1) * -1")),
            f"additive_scores: with {FIRST}: changes argument 5, which others still need",
        ),
        (
            solution_of("attend", ("softmax(dim=1)", "softmax(dim=1).squeeze()")),
            f"attend: with {ALONE}: line 6, IndexError: Dimension out of range",
        ),
    ],
)
def test_what_cannot_be_compared_is_one_line(
    text: str, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, text)
    assert check_exercises([str(path)])
    found = capsys.readouterr().out.replace(str(path), "PATH")
    assert found.startswith(line)
    assert found.count("\n") == 1


def test_an_argument_that_is_changed_does_not_hide_a_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is expected is computed before the function is called."""
    path = write(tmp_path, "def attend(query, states):\n    states.zero_()\n    return query * 0, states[..., 0]\n")
    assert check_exercises([str(path)])
    assert "attend: with" in capsys.readouterr().out


def test_the_page_asks_for_what_is_checked() -> None:
    """The same functions in the same order, with shapes and results of these names."""
    asked = re.findall(r'^def (\w+)\(([\w, ]+)\):\n    """(.*?)"""$', PAGE, re.MULTILINE | re.DOTALL)
    assert [name for name, _, _ in asked] == [*exercises.EXERCISES]
    for name, parameters, text in asked:
        _, returns, takes = exercises.EXERCISES[name]
        before, _, after = text.partition("->")
        described = [(what, shape) for what, shape in re.findall(r"(\w+)(?: \[([^]]*)\])?(?:,|$)", before.strip())]
        assert [what for what, _ in described] == parameters.split(", ")
        shapes = [
            shape.replace(", ", " ").replace(" + ", "+").replace("2 D", "2D") or what for what, shape in described
        ]
        assert ", ".join(shapes) == takes
        assert re.findall(r"(\w+) \[", after) == returns.split(", ")
        assert list(inspect.signature(getattr(exercise_solutions, name)).parameters) == parameters.split(", ")


def test_solutions_are_where_the_page_says() -> None:
    parts = re.findall(r"Solution: (.*?)\n\n", PAGE, re.DOTALL)
    assert len(parts) == len(exercises.EXERCISES)
    for part in parts:
        files = [(PATH.parent / link).read_text("utf-8") for link in re.findall(r"\]\((.*?)\)", part)]
        for name in re.findall(r"`([\w.]+)`", part):
            assert any(all(re.search(rf"(class|def) {one}\b", file) for one in name.split(".")) for file in files), name


def test_the_command_says_what_the_page_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From another folder; the second file imports the first, and has no mask."""
    write(tmp_path, solution_of("attend"), "exercise1.py")
    text = "def masked_attend(query, states, lengths): return attend(query, states)\n"
    write(tmp_path, f"from exercise1 import attend\n{text}", "exercise2.py")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["testing", "exercise1.py", "exercise2.py"])
    monkeypatch.delitem(sys.modules, "nmt.testing")  # as in a process of its own
    with pytest.raises(SystemExit) as leaving:
        runpy.run_module("nmt.testing", run_name="__main__")
    assert int(leaving.value.code or 0) == 1
    out, err = capsys.readouterr()
    assert err == ""
    assert out.splitlines() == re.findall(r"^    ((?:masked_)?attend: .*)$", PAGE, re.MULTILINE)


def test_no_file_is_one_line() -> None:
    assert check_exercises([]) == "error: no file; name those of your exercises: python -m nmt.testing exercise1.py"
