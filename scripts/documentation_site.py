"""Hooks of mkdocs: Markdown files of this repository become pages of the site, and references are made from the code.

`mkdocs build --strict` calls them, as mkdocs.yml says. A page stands in the site where its file is in the repository,
but for the folders in `MOVED`. Links between pages stay; a picture that a page links to is copied, and so is any other
file, as text.
"""

import html
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import nmt
from nmt.interface.app import command as nmt_command
from nmt.interface.command import without_types

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = (".github", "configs", "data/sample", "nmt", "notebooks", "scripts")
"""Folders whose Markdown files are pages, besides README.md, CHANGELOG.md and docs."""
MOVED = {"docs/": "", ".github/": "development/"}
"""Beginnings of paths in the repository, and in the site."""
PICTURES = {".gif", ".jpg", ".png", ".svg"}
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^ *(```|~~~)")
ITEM = re.compile(r"(?:[-*]|\d+\.) +(?=\S)")


def site_path(path: str) -> str:
    """The path in the site of a path in the repository."""
    for beginning, place in MOVED.items():
        if path.startswith(beginning):
            return place + path.removeprefix(beginning)
    return path


def heading_anchor(heading: str, separator: str) -> str:
    """The anchor that GitHub gives to a heading, so that one link works in both places."""
    kept = re.sub(r"[^\w\- ]", "", heading.lower())
    return kept.replace(" ", separator)


def markdown_files() -> list[Path]:
    """The files outside of docs that are pages."""
    found = [ROOT / "README.md", ROOT / "CHANGELOG.md"]
    for folder in FOLDERS:
        found += sorted((ROOT / folder).rglob("*.md"))
    return found


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Give headings the anchors that they have on GitHub."""
    config.mdx_configs.setdefault("toc", {})["slugify"] = heading_anchor
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs: files of the repository, and references."""
    for path in markdown_files():
        name = path.relative_to(ROOT).as_posix()
        files.append(File.generated(config, site_path(name), abs_src_path=str(path)))
    references = {"commands": commands_page(), "python": python_page()}
    for name, text in references.items():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let the links of a page lead to their places in the site."""
    if page.file.generated_by and page.file.abs_src_path is None:
        return markdown  # made here, with links of the site
    source = Path(str(page.file.abs_src_path))
    lines = []
    in_code = False
    for line in with_wide_lists(markdown.split("\n")):
        if FENCE.match(line):
            in_code = not in_code
        if not in_code:
            line = LINK.sub(lambda match: f"]({site_link(match[1], source, page.file, config, files)})", line)
        lines.append(line)
    return "\n".join(lines)


def with_wide_lists(lines: list[str]) -> list[str]:
    """Indent what belongs to a list item by four spaces, as mkdocs asks; on GitHub the width of the mark is enough."""
    result: list[str] = []
    position = 0
    while position < len(lines):
        line = lines[position]
        position += 1
        item = ITEM.match(line)
        if item is None:
            result.append(line)
            continue
        width = len(item[0])
        contents = []
        while position < len(lines) and (not lines[position].strip() or lines[position].startswith(" " * width)):
            contents.append(lines[position][width:])
            position += 1
        result.append(line)
        for inner in with_wide_lists(contents):
            result.append(f"    {inner}" if inner else "")
        if "" in contents and contents[-1]:
            result.append("")  # the next item begins after a paragraph
    return result


def site_link(link: str, source: Path, file: File, config: MkDocsConfig, files: Files) -> str:
    """The link in the site for a link in a file of the repository.

    Args:
        link: A link as the file has it.
        source: The file.
        file: The page of the file.
        config: Of the site. With `repo_url`, a file that is no page is shown there.
        files: All files of the site; one that the link needs is added.
    """
    name, mark, anchor = link.partition("#")
    if not name or re.match(r"[a-z]+:", link):
        return link
    target = (source.parent / name).resolve()
    if not target.exists():
        # A page that is made here, or a dead link: mkdocs tells them apart.
        return posixpath.relpath(site_path(repository_path(target)), posixpath.dirname(file.src_uri)) + mark + anchor
    if target.is_dir():
        target = readme_of(target)
    place = site_path(repository_path(target))
    if target.suffix != ".md" and target.suffix not in PICTURES:
        if config.repo_url:
            return f"{config.repo_url.rstrip('/')}/blob/main/{repository_path(target)}{mark}{anchor}"
        place = f"source/{place}.txt"
        anchor = ""
        mark = ""
    if files.get_file_from_path(place) is None:
        files.append(File.generated(config, place, abs_src_path=str(target)))
    return posixpath.relpath(place, posixpath.dirname(file.src_uri)) + mark + anchor


def repository_path(path: Path) -> str:
    """A path from the root of the repository."""
    return path.relative_to(ROOT).as_posix()


def readme_of(folder: Path) -> Path:
    """The README of a folder, or of the nearest folder above it that has one."""
    while not (folder / "README.md").is_file():
        folder = folder.parent
    return folder / "README.md"


def commands_page() -> str:
    """All commands, each with its help and its options."""
    parts = ["# Commands", "`nmt COMMAND --help` shows the same text."]
    root = nmt_command()
    for name, child in root.commands.items():
        subcommands = getattr(child, "commands", None)
        if subcommands is None:
            parts += describe_command(f"nmt {name}", child)
            continue
        parts += [f"## nmt {name}", str(child.help)]
        for subname, subcommand in subcommands.items():
            parts += describe_command(f"nmt {name} {subname}", subcommand, "###")
    return "\n\n".join(parts) + "\n"


def describe_command(name: str, command: Any, level: str = "##") -> list[str]:
    """The section of a command: its help, an example, a table of its arguments and options."""
    text, _, example = command.help.partition("Example: ")
    parts = [f"{level} {name}", html.escape(text.strip(), quote=False)]
    if example:
        parts.append("```sh\n" + " ".join(example.split()) + "\n```")
    rows = ["| option | meaning |", "|---|---|"]
    context = command.context_class(command, info_name=name)
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is not None:
            option = without_types(record[0])
            meaning = html.escape(record[1], quote=False).replace("|", "&#124;")
            rows.append(f"| `{option.strip()}` | {meaning} |")
    return [*parts, "\n".join(rows)]


def python_page() -> str:
    """The public names of the package: functions, classes, errors."""
    names: dict[str, list[str]] = {"Functions": [], "Classes": [], "Errors": []}
    for name in dir(nmt):
        if name.startswith("__"):
            continue
        value = getattr(nmt, name)
        if not isinstance(value, type):
            names["Functions"].append(name)
        elif issubclass(value, Exception):
            names["Errors"].append(name)
        else:
            names["Classes"].append(name)
    parts = ["# Python", "`import nmt` has these names. Each is imported when it is first used."]
    for kind, members in names.items():
        if kind == "Errors":
            parts += [f"## {kind}", "[Errors](errors.md) has their meaning."]
            continue
        parts.append(f"## {kind}")
        for name in members:
            parts.append(f"::: nmt.{name}\n    options:\n      heading_level: 3")
    return "\n\n".join(parts) + "\n"
