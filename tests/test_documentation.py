"""The Markdown files: links between them lead somewhere, READMEs stay short, and the Python of guides is sound."""

import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest
import yaml
from markdown_files import FILES, ROOT, without_code
from PIL import Image

from nmt.config import load_config
from nmt.system import errors
from nmt.system.errors import NmtError
from nmt.system.files import PACKAGE
from nmt.system.version import __version__

LINK = re.compile(r"\]\(([^)\s]+)\)")


def text_of(path: Path) -> str:
    """A file without its blocks of code."""
    return without_code(path.read_text(encoding="utf-8"))


def anchors(path: Path) -> set[str]:
    """What GitHub makes of the headings: lower case, no punctuation, hyphens for spaces, a number if repeated."""
    found: set[str] = set()
    seen: Counter[str] = Counter()
    for heading in re.findall(r"^#+ (.+)$", text_of(path), flags=re.MULTILINE):
        anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
        seen[anchor] += 1
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_relative_links_lead_to_files_and_headings(path: Path) -> None:
    for link in LINK.findall(text_of(path)):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), f"{link}: no such file"
        assert target.is_relative_to(ROOT), f"{link}: outside the repository"
        assert not anchor or anchor in anchors(target), f"{link}: no such heading"


def test_every_file_is_reached_from_the_readme() -> None:
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        path = waiting.pop()
        reached.add(path)
        targets = ((path.parent / link.partition("#")[0]).resolve() for link in LINK.findall(text_of(path)))
        waiting += [target for target in targets if target in FILES and target not in reached]
    assert reached >= set(FILES)


README_OF = {path.parent: path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("README.md"))}
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py" and path.parent != PACKAGE)


def test_every_module_is_named_in_the_readme_of_its_package() -> None:
    missing = []
    for path in MODULES:
        folder = next(parent for parent in path.parents if parent in README_OF)
        if path.name not in README_OF[folder]:
            missing.append(path.relative_to(ROOT).as_posix())
    assert missing == []


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


READMES = [path for path in FILES if path.name == "README.md" and path.parent != ROOT]


@pytest.mark.parametrize("path", READMES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_readme_of_a_folder_is_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 30, "move the text to a page of docs"


def test_the_page_of_errors_has_every_error() -> None:
    text = (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8")
    classes = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, NmtError)]
    assert {*re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)} == {kind.__name__ for kind in classes}


def test_the_config_that_is_written_out_is_the_shipped_one(tmp_path: Path) -> None:
    text = (ROOT / "docs/guides/configs.md").read_text(encoding="utf-8").partition("`tatoeba_small`, written out:")[2]
    path = tmp_path / "tatoeba_small.yaml"
    path.write_text(text.partition("```yaml\n")[2].partition("```")[0], encoding="utf-8")
    assert load_config(str(path)) == load_config("tatoeba_small")


def test_nothing_tells_to_install_a_name_that_is_not_published() -> None:
    """One day it may be the name of a stranger's package."""
    name = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"].encode()
    files = [path for path in (ROOT / "nmt").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert [path for path in files if name in path.read_bytes()] == []


def test_the_citation_says_what_the_package_does() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {"authors", "cff-version", "message", "title"} <= citation.keys()
    assert (citation["cff-version"], citation["type"]) == ("1.2.0", "software")
    assert citation["authors"] == project["authors"]
    assert (citation["version"], citation["license"]) == (__version__, project["license"])


def test_the_changelog_keeps_a_changelog() -> None:
    """https://keepachangelog.com/en/1.1.0: the unreleased first, then released versions, each with its date."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert versions[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", version) for version in versions[1:])
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert {*re.findall(r"^### (.*)$", text, re.MULTILINE)} <= kinds
    commands = {*re.findall(r"`nmt ([a-z]+)", text)}
    assert versions[1].startswith(f"[{__version__}]")
    listed = (ROOT / ".github/CONTRIBUTING.md").read_text(encoding="utf-8") + (ROOT / "README.md").read_text("utf-8")
    assert all(f"nmt {name}`" in listed or f"nmt {name} " in listed for name in commands), commands


PLACES = ["tests/example.py", "nmt/layers/attention/distance.py", "tests/test_distance.py"]
"""Where the linter is told that the blocks of Python of both files lie."""


@pytest.mark.parametrize(("number", "place"), list(enumerate(PLACES)), ids=PLACES)
def test_python_of_the_guides_passes_the_linter_and_the_type_checker(number: int, place: str, tmp_path: Path) -> None:
    text = "".join((ROOT / name).read_text("utf-8") for name in ("README.md", "docs/guides/own_score.md"))
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) == len(PLACES)

    def check(tool: str, *arguments: str) -> None:
        command = [sys.executable, "-m", tool, *arguments]
        found = subprocess.run(command, cwd=ROOT, input=blocks[number], capture_output=True, text=True, check=False)
        assert found.returncode == 0, found.stdout + found.stderr

    check("ruff", "check", "--stdin-filename", place, "-")
    check("ruff", "format", "--check", "--stdin-filename", place, "-")
    if place.startswith("nmt/"):
        path = tmp_path / Path(place).name
        path.write_text(blocks[number], encoding="utf-8")
        check("mypy", "--strict", str(path))


def test_figures_are_those_of_the_run_in_the_pictures() -> None:
    texts = []
    for name in ("attention", "learning_curve"):
        with Image.open(ROOT / f"data/pictures/{name}.png") as image:
            texts.append(image.text)
    metadata, other = texts
    assert metadata == other
    assert "name: tatoeba_small" in metadata["config"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"run directory: runs/tatoeba_small .*best (\w+ [\d.]+) at", readme) == [metadata["valid"]]
    source, translation = metadata["translation"].split(" -> ")
    assert f'$ nmt translate "{source}" --attention attention.png\n    {translation}\n' in readme
    shown = re.compile(r"runs/tatoeba_small/best on test: .*\n.*\n +(BLEU [\d.]+)")
    figures = {path: shown.findall(path.read_text(encoding="utf-8")) for path in FILES}
    found = {path.relative_to(ROOT).as_posix(): figure for path, figure in figures.items() if figure}
    assert found == {"README.md": [metadata["test"]]}
