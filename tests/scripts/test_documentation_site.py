"""The site: pages stand where their files stand, and links lead to the same things as in the repository."""

from pathlib import Path

import pytest

pytest.importorskip("mkdocs")

from documentation_site import (
    commands_page,
    heading_anchor,
    markdown_files,
    on_page_markdown,
    python_page,
    readme_of,
    site_path,
    with_wide_lists,
)
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import nmt
from nmt.interface.app import COMMANDS, CONFIG_COMMANDS

ROOT = Path(__file__).parents[2]


def render(name: str, text: str, repository: str | None = None) -> tuple[str, Files]:
    """The Markdown of a page for a file of the repository that has a text, and the files of the site then."""
    config = MkDocsConfig()
    config.load_dict({"site_name": "test", "repo_url": repository, "site_dir": "site", "plugins": []})
    config.validate()
    config.plugins._current_plugin = "documentation_site"  # as in an event
    files = Files([File.generated(config, site_path(name), abs_src_path=str(ROOT / name))])
    (file,) = files
    return on_page_markdown(text, Page(None, file, config), config, files), files


@pytest.mark.parametrize(
    ("name", "link", "expected"),
    [
        ("docs/guides/training.md", "exporting.md#a-page", "exporting.md#a-page"),
        ("nmt/training/README.md", "../../docs/guides/clusters.md", "../../guides/clusters.md"),
        ("docs/guides/clusters.md", "../../nmt/training/README.md", "../nmt/training/README.md"),
        (".github/CONTRIBUTING.md", "../README.md", "../README.md"),
        ("README.md", ".github/CONTRIBUTING.md", "development/CONTRIBUTING.md"),
        ("README.md", "data/pictures/attention.png", "data/pictures/attention.png"),
        ("nmt/models/README.md", "base.py", "../../source/nmt/models/base.py.txt"),
        ("nmt/layers/README.md", "../models/recurrent", "../models/README.md"),
        ("README.md", "https://example.org/a.md", "https://example.org/a.md"),
        ("README.md", "#install", "#install"),
    ],
)
def test_a_link_leads_to_the_same_file(name: str, link: str, expected: str) -> None:
    text, _ = render(name, f"See [it]({link}).")
    assert text == f"See [it]({expected})."


def test_a_file_that_is_no_page_comes_along_as_text() -> None:
    _, files = render("README.md", "[the licence](LICENSE)")
    file = files.get_file_from_path("source/LICENSE.txt")
    assert file is not None
    assert file.content_string == (ROOT / "LICENSE").read_text(encoding="utf-8")


def test_with_an_address_of_the_repository_it_is_shown_there() -> None:
    text, files = render("nmt/models/README.md", "[it](base.py)", "https://example.org/nmt/")
    assert text == "[it](https://example.org/nmt/blob/main/nmt/models/base.py)"
    assert len(list(files)) == 1


def test_code_stays_as_it_is() -> None:
    code = "```python\nvalues[0](LICENSE)\n```"
    assert render("README.md", code)[0] == code


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [("Bahdanau's order: attend, then update", "bahdanaus-order-attend-then-update"), ("1. A score", "1-a-score")],
)
def test_anchors_are_those_of_github(heading: str, anchor: str) -> None:
    assert heading_anchor(heading, "-") == anchor


def test_every_command_and_public_name_has_its_place() -> None:
    commands = [*COMMANDS, *(f"config {name}" for name in CONFIG_COMMANDS)]
    headings = [line.lstrip("# ") for line in commands_page().splitlines() if line.startswith("##")]
    assert sorted(headings) == sorted(f"nmt {name}" for name in [*commands, "config"])
    assert "| `-o, --output DIR` | Data directory to write. [default: data/prepared/NAME] |" in commands_page()
    listed = {line.removeprefix("::: nmt.") for line in python_page().splitlines() if line.startswith(":::")}
    errors = {name for name in nmt.__all__ if name.endswith(("Error", "Interrupted", "Memory"))}
    assert listed == {*nmt.__all__} - errors


def test_a_folder_without_a_readme_is_shown_by_the_one_above() -> None:
    assert readme_of(ROOT / "nmt/models/recurrent") == ROOT / "nmt/models/README.md"
    assert ROOT / "scripts/experiments/README.md" in markdown_files()


def test_what_belongs_to_a_list_item_is_indented_by_four_spaces() -> None:
    lines = ["1. First:", "", "       code", "", "   More.", "2. Second", "   - inner", "     goes on", "After."]
    assert with_wide_lists(lines) == [
        *("1. First:", "", "        code", "", "    More.", ""),
        *("2. Second", "    - inner", "        goes on", "After."),
    ]
