"""Forms of code that take a second reading, and that the package therefore does without; see CONTRIBUTING."""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "nmt"
PRONOUNS = ("one", "other", "what", "own", "both", "found", "each")
PICKLED = ("__getstate__", "__setstate__")
"""Methods that need all attributes of an object, and may ask for them by vars()."""


def assigns_a_tuple(node: ast.AST) -> bool:
    """Several values in one assignment, but for a swap, which needs it."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
        return False
    if not isinstance(node.targets[0], ast.Tuple):
        return False
    written = {ast.unparse(target) for target in node.targets[0].elts}
    read = {ast.unparse(part) for part in ast.walk(node.value) if isinstance(part, ast.Name | ast.Attribute)}
    return written.isdisjoint(read)


def has_a_condition_in_a_condition(node: ast.AST) -> bool:
    """An expression with `if` and `else` where a condition is expected."""
    conditions: list[ast.expr] = []
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        conditions = [node.test]
    if isinstance(node, ast.comprehension):
        conditions = node.ifs
    return any(isinstance(part, ast.IfExp) for condition in conditions for part in ast.walk(condition))


def zips_a_map(node: ast.AST) -> bool:
    """`zip(*map(...))`, which turns a list of results inside out."""
    if not isinstance(node, ast.Call) or getattr(node.func, "id", "") != "zip":
        return False
    starred = [argument.value for argument in node.args if isinstance(argument, ast.Starred)]
    return any(isinstance(value, ast.Call) and getattr(value.func, "id", "") == "map" for value in starred)


def switches_by_lambdas(node: ast.AST) -> bool:
    """A dict of functions without names, of which one is called: `match` says which."""
    return isinstance(node, ast.Dict) and sum(isinstance(value, ast.Lambda) for value in node.values) > 1


def calls_vars(node: ast.AST) -> bool:
    """`vars()`, which reads or writes whatever an object has."""
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "vars"


def has_a_name_that_says_nothing(node: ast.AST) -> bool:
    """A variable or parameter with a pronoun as its name, where a noun says what it is."""
    if isinstance(node, ast.Name):
        return isinstance(node.ctx, ast.Store) and node.id in PRONOUNS
    return isinstance(node, ast.arg) and node.arg in PRONOUNS


FORMS: dict[Callable[[ast.AST], bool], tuple[str, str]] = {
    assigns_a_tuple: ("size, limit = 3, 4", "size, limit = limit, size"),
    has_a_condition_in_a_condition: ("if (a if b else c) and d: pass", "e = a if b else c"),
    zips_a_map: ("rows = zip(*map(read, files))", "rows = zip(*parts)"),
    switches_by_lambdas: ("kinds = {'a': lambda: 1, 'b': lambda: 2}", "kinds = {'a': f, 'b': lambda: 2}"),
    calls_vars: ("values = vars(event)", "values = asdict(event)"),
    has_a_name_that_says_nothing: ("for one in models: pass", "def is_same(self, other): pass"),
}
"""Each form, with code that has it and code that has not."""
ALLOWED = {
    (has_a_name_that_says_nothing, "evaluation/model_evaluation.py"): "a public attribute",
    (has_a_name_that_says_nothing, "inspection/all_heads.py"): "public attributes",
    (
        calls_vars,
        "corpus/prepare.py",
    ): "the fields of two reports become those of one, without copies",
    (calls_vars, "evaluation/attention_statistics.py"): "tensors by the names of fields, which asdict would copy",
    (calls_vars, "inspection/attention_report.py"): "tensors by the names of fields, which asdict would copy",
    (calls_vars, "inspection/explorer_page.py"): "fields without one that is large",
}
"""Exceptions with their reasons."""


def find(form: Callable[[ast.AST], bool], tree: ast.Module) -> Iterator[int]:
    """Lines with a form."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and function.name in PICKLED:
            function.body = []
        if isinstance(function, ast.arguments) and [part.arg for part in function.args] == ["self", "other"]:
            function.args = []  # another object of the same class, as in __eq__
    return (getattr(node, "lineno", 0) for node in ast.walk(tree) if form(node))


@pytest.mark.parametrize("form", FORMS)
def test_a_form_is_recognised(form: Callable[[ast.AST], bool]) -> None:
    plain_or_not = [list(find(form, ast.parse(code))) for code in FORMS[form]]
    assert plain_or_not == [[1], []]


@pytest.fixture(scope="module")
def modules() -> dict[str, ast.Module]:
    """The syntax trees of the package by the names of their files."""
    return {
        path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
    }


@pytest.mark.parametrize("form", FORMS)
def test_the_package_has_no_such_form(form: Callable[[ast.AST], bool], modules: dict[str, ast.Module]) -> None:
    found = []
    for name, tree in modules.items():
        lines = list(find(form, tree))
        if (form, name) in ALLOWED:
            assert lines, f"{name} no longer needs its exception"
            continue
        found += [f"nmt/{name}:{line}" for line in lines]
    assert found == [], form.__doc__
