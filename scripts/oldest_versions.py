"""Write the oldest version of each library that pyproject.toml admits, as constraints for pip.

Usage: python scripts/oldest_versions.py > build/oldest.txt

PyTorch is left out: the Makefile's TORCH variable chooses it.
"""

import argparse
import re
import tomllib
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
TOOLS = {"dev", "docs"}
"""Extras of developers, whose libraries may be of any version."""


def oldest_versions(project: dict[str, Any]) -> list[str]:
    """The lower bounds of a project, one `name==version` for each library but PyTorch.

    Args:
        project: The table `project` of a `pyproject.toml`.

    Raises:
        ValueError: A library has no lower bound.
    """
    requirements = list(project["dependencies"])
    for extra, libraries in project["optional-dependencies"].items():
        if extra not in TOOLS:
            requirements += libraries
    versions = []
    for requirement in requirements:
        bound = re.match(r"([\w.-]+)>=([\w.]+)", requirement)
        if bound is None:
            raise ValueError(f"{requirement}: no lower bound; write name>=version")
        if bound[1] != "torch":
            versions.append(f"{bound[1]}=={bound[2]}")
    return versions


def main() -> None:
    """Print the constraints."""
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args()
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    print("\n".join(oldest_versions(project)))


if __name__ == "__main__":
    main()
