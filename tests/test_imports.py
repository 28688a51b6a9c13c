"""Imports point one way: no module imports itself through others, and no two packages import each other."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from nmt.files import PACKAGE

Graph = dict[str, set[str]]


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imports(node: ast.AST) -> Iterator[str]:
    """Modules that code imports, inside functions too, but not what only type checkers see."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        if isinstance(child, ast.ImportFrom) and child.module:
            for alias in child.names:
                whole = f"{child.module}.{alias.name}"
                yield whole if whole in MODULES else child.module
        yield from imports(child)


def package(module: str) -> str:
    """The package below nmt that a module belongs to, or the module itself."""
    return ".".join(module.split(".")[:2])


def graph() -> Graph:
    found: Graph = {}
    for module, path in MODULES.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found[module] = {name for name in imports(tree) if name in MODULES and name != module}
    return found


def cycle_of(edges: Graph) -> list[str]:
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_module_imports_itself_through_others() -> None:
    assert not cycle_of(graph())


def test_no_two_packages_import_each_other() -> None:
    edges: Graph = {}
    for module, imported in graph().items():
        edges.setdefault(package(module), set()).update(package(name) for name in imported)
    for name, imported in edges.items():
        imported.discard(name)
    assert not cycle_of(edges)


@pytest.mark.parametrize(
    ("package_name", "earlier"),
    [
        ("nmt.config", {"nmt.errors", "nmt.files", "nmt.limits"}),
        ("nmt.text", {"nmt.config", "nmt.corpus", "nmt.errors", "nmt.files", "nmt.limits"}),
    ],
)
def test_allowed_imports_of_the_first_packages(package_name: str, earlier: set[str]) -> None:
    imported = {package(name) for module, names in graph().items() if package(module) == package_name for name in names}
    assert imported - {package_name} <= earlier


def test_a_cycle_is_found() -> None:
    assert cycle_of({"a": {"b"}, "b": {"c"}, "c": {"a"}})
    assert not cycle_of({"a": {"b", "c"}, "b": {"c"}})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ["128", "128"]),
        ({"LRU_CACHE_CAPACITY": "7"}, ["128", "7"]),
        ({"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "0"}, ["0", "128"]),
        ({"DNNL_PRIMITIVE_CACHE_CAPACITY": "9"}, ["", "128"]),
    ],
)
def test_kernels_are_limited_before_torch_is_loaded(given: dict[str, str], expected: list[str]) -> None:
    names = ["ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"]
    kept = {name: value for name, value in os.environ.items() if "CACHE_CAPACITY" not in name}
    program = f"import sys, nmt, os; print('torch' in sys.modules, *(os.environ.get(n, '') for n in {names}), sep=',')"
    done = subprocess.run([sys.executable, "-c", program], env={**kept, **given}, capture_output=True, check=True)
    assert done.stdout.decode().strip().split(",") == ["False", *expected]
