"""Make a notebook of a Markdown file: blocks of Python become cells of code, and the text between them cells of text.

Usage: python scripts/make_notebook.py [--run] [notebooks/attention.md]

--run also runs the cells and stores what they show. The notebook is written beside the Markdown file.
"""

import argparse
import re
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from nmt.system.files import write_text

SOURCE = Path(__file__).resolve().parent.parent / "notebooks/attention.md"
CODE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
TIMEOUT = 600
"""Seconds that a cell may take."""


def make_notebook(text: str) -> nbformat.NotebookNode:
    """The notebook of a text in Markdown, without results.

    The id of a cell is its number, so that the same text gives the same file.
    """
    cells: list[nbformat.NotebookNode] = []
    for number, part in enumerate(CODE.split(text)):
        if number % 2:
            cells.append(new_code_cell(part.strip(), id=f"cell-{len(cells)}"))
        elif part.strip():
            cells.append(new_markdown_cell(part.strip(), id=f"cell-{len(cells)}"))
    return new_notebook(cells=cells, metadata=METADATA)


def run_notebook(notebook: nbformat.NotebookNode, folder: Path) -> None:
    """Run the cells of a notebook in a folder and store what they show.

    Raises:
        nbclient.exceptions.CellExecutionError: A cell failed.
    """
    client = NotebookClient(
        notebook, timeout=TIMEOUT, resources={"metadata": {"path": str(folder)}}, record_timing=False
    )
    client.execute()


def main() -> None:
    """Write the notebook."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", nargs="?", type=Path, default=SOURCE, help="Markdown file")
    parser.add_argument("--run", action="store_true", help="run the cells and store what they show")
    arguments = parser.parse_args()
    notebook = make_notebook(arguments.source.read_text(encoding="utf-8"))
    if arguments.run:
        with tempfile.TemporaryDirectory() as folder:
            run_notebook(notebook, Path(folder))
    write_text(arguments.source.with_suffix(".ipynb"), nbformat.writes(notebook) + "\n")


if __name__ == "__main__":
    main()
