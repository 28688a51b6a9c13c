"""Imports point down the floors of the house, and no module imports itself through others."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from nmt.system.files import PACKAGE

Graph = dict[str, set[str]]

FLOORS = (
    *("system", "config", "drawing", "text", "corpus", "layers", "models", "search", "runtimes", "translation"),
    *("evaluation", "training", "inspection", "comparison", "exporting", "serving"),
)
"""Packages from the ground up; above them are the modules of the root, and above those the interface."""


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imports(node: ast.AST) -> Iterator[str]:
    """Modules that code imports, inside functions and for type checkers too."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        if isinstance(child, ast.ImportFrom) and child.module:
            for alias in child.names:
                whole = f"{child.module}.{alias.name}"
                yield whole if whole in MODULES else child.module
        yield from imports(child)


def floor(module: str) -> int:
    name = module.split(".")[1] if "." in module else ""
    above = {"interface": 1, "__main__": 2}
    return FLOORS.index(name) if name in FLOORS else len(FLOORS) + above.get(name, 0)


@pytest.fixture(scope="module")
def graph() -> Graph:
    """The modules that each module imports, inside functions and for type checkers too."""
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


def test_no_module_imports_itself_through_others(graph: Graph) -> None:
    assert not cycle_of(graph)


def test_every_import_points_down(graph: Graph) -> None:
    """Imports inside functions and those that only type checkers see included."""
    wrong = [
        f"{module} imports {name}" for module, names in graph.items() for name in names if floor(name) > floor(module)
    ]
    assert wrong == []


def test_the_house_has_few_rooms() -> None:
    packages = [path for path in PACKAGE.rglob("__init__.py") if path.parent != PACKAGE]
    # One of them is runtimes: what other programs compute stands apart from what writes for them, far below it.
    assert len(packages) + len(list(PACKAGE.glob("*.py"))) <= 27


def test_a_cycle_is_found() -> None:
    assert cycle_of({"a": {"b"}, "b": {"c"}, "c": {"a"}})
    assert not cycle_of({"a": {"b", "c"}, "b": {"c"}})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ["128", "128", "5000"]),
        ({"LRU_CACHE_CAPACITY": "7"}, ["128", "7", "5000"]),
        ({"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "0"}, ["0", "128", "5000"]),
        ({"DNNL_PRIMITIVE_CACHE_CAPACITY": "9"}, ["", "128", "5000"]),
        ({"GOMP_SPINCOUNT": "7"}, ["128", "128", "7"]),
    ],
)
def test_kernels_and_waiting_threads_are_limited_before_torch_is_loaded(
    given: dict[str, str], expected: list[str]
) -> None:
    names = ["ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY", "GOMP_SPINCOUNT"]
    kept = {name: value for name, value in os.environ.items() if "CACHE_CAPACITY" not in name and "GOMP" not in name}
    program = "import sys, nmt, os; nmt.tune_process(); "
    program += f"print('torch' in sys.modules, *(os.environ.get(n, '') for n in {names}), sep=',')"
    done = subprocess.run([sys.executable, "-c", program], env={**kept, **given}, capture_output=True, check=True)
    assert done.stdout.decode().strip().split(",") == ["False", *expected]


def test_the_import_sets_nothing_in_the_process() -> None:
    kept = {name: value for name, value in os.environ.items() if "CACHE_CAPACITY" not in name and "GOMP" not in name}
    program = "import os; before = dict(os.environ); import nmt; nmt.Config; print(before == dict(os.environ))"
    done = subprocess.run([sys.executable, "-c", program], env=kept, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_torch_is_tuned_before_it_is_imported(tmp_path: Path) -> None:
    (tmp_path / "torch.py").touch()  # which is imported faster
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
    program += "import nmt, torch\ntry: nmt.tune_process()\nexcept nmt.ConfigError as error: print(error)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "nmt.tune_process: torch is imported already; call it before\n"
