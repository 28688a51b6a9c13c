"""The notebook is made from its text, and its cells run as they stand."""

import os
import re
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

from make_notebook import SOURCE, make_notebook, run_notebook  # noqa: E402

SETTINGS = 'SETTINGS = {"train.epochs": 16}'
SHORT_SETTINGS = """SETTINGS = {
    "train.max_updates": 3, "data.first_lines": 300, "data.split.valid_size": 8, "data.split.test_size": 8,
}"""


def outputs(text: str, folder: Path, patch: pytest.MonkeyPatch) -> tuple[str, set[str]]:
    """What the cells of a notebook print, and the kinds of what they show."""
    # The kernel is another process, which has its own warnings.
    packages = [str(SOURCE.parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    patch.setenv("PYTHONPATH", os.pathsep.join(packages))
    patch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    notebook = make_notebook(text)
    run_notebook(notebook, folder)
    results = [result for cell in notebook.cells for result in cell.get("outputs", [])]
    printed = "".join(result.text for result in results if result.output_type == "stream")
    return printed, {kind for result in results for kind in result.get("data", {})}


def test_the_stored_notebook_has_the_cells_of_the_text_and_results() -> None:
    stored = nbformat.read(SOURCE.with_suffix(".ipynb"), as_version=4)
    made = make_notebook(SOURCE.read_text(encoding="utf-8"))
    assert [(cell.cell_type, cell.id, cell.source) for cell in stored.cells] == [
        (cell.cell_type, cell.id, cell.source) for cell in made.cells
    ]
    nbformat.validate(stored)
    assert any("image/png" in result.get("data", {}) for cell in stored.cells for result in cell.get("outputs", []))
    assert not any(result.get("name") == "stderr" for cell in stored.cells for result in cell.get("outputs", []))


def test_text_and_code_become_cells() -> None:
    notebook = make_notebook("# A\n\n```python\nprint(1)\n```\n\nB\n\n```sh\nls\n```\n")
    assert [(cell.cell_type, cell.source) for cell in notebook.cells] == [
        ("markdown", "# A"),
        ("code", "print(1)"),
        ("markdown", "B\n\n```sh\nls\n```"),
    ]


def test_a_short_form_of_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = SOURCE.read_text(encoding="utf-8")
    assert SETTINGS in text
    printed, kinds = outputs(text.replace(SETTINGS, SHORT_SETTINGS), tmp_path, monkeypatch)
    assert {"image/png", "text/html"} <= kinds
    assert len(re.findall(r"^(?:Bahdanau|Luong): BLEU [\d.]+ on test$", printed, re.MULTILINE)) == 2


@pytest.mark.soak
def test_the_notebook_aligns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its text says that rows are sharp in the end."""
    printed, _ = outputs(SOURCE.read_text(encoding="utf-8"), tmp_path, monkeypatch)
    sharpness = re.findall(r"largest weight ([\d.]+)", printed)
    assert len(sharpness) == 2
    assert all(float(weight) > 0.5 for weight in sharpness)
