"""Generate the table of all config keys in docs/reference/config_keys.md from their descriptions.

Usage: python scripts/config_table.py [--write]
"""

import argparse
import html
from pathlib import Path

from nmt.config.description import EXTENDS, describe_keys
from nmt.system.files import write_text

KEY_REFERENCE = Path(__file__).resolve().parent.parent / "docs/reference/config_keys.md"
BEGIN = "<!-- config table: python scripts/config_table.py --write -->"
END = "<!-- end of config table -->"


def markdown_table() -> str:
    """Every key, in one Markdown table for each top-level section."""
    header = ["| key | values | default | unit | description |", "|---|---|---|---|---|"]
    lines = [*header, f"| `extends` | text | | | {EXTENDS} |"]
    for path, values, default, unit, text in describe_keys():
        text = html.escape(text, quote=False)
        if values:
            shown = path.partition(".")[2] or path
            lines.append(f"| `{shown}` | {values} | {f'`{default}`' if default else 'required'} | {unit} | {text} |")
        elif "." in path:
            lines.append(f"| **`{path.partition('.')[2]}`** | | | | *{text}* |")
        else:
            lines += ["", f"**`{path}`**: {text}", "", *header]
    return "\n".join(lines) + "\n"


def with_table(text: str) -> str:
    """Replace the text between the two marks by the current table.

    Raises:
        ValueError: The text lacks one of the marks.
    """
    before, first, rest = text.partition(BEGIN)
    _, last, after = rest.partition(END)
    if not (first and last):
        raise ValueError(f"the text lacks {BEGIN} or, after it, {END}")
    return f"{before}{BEGIN}\n\n{markdown_table()}\n{END}{after}"


def main() -> None:
    """Update the table, or print the updated file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="change the page instead of printing it")
    text = with_table(KEY_REFERENCE.read_text(encoding="utf-8"))
    if parser.parse_args().write:
        write_text(KEY_REFERENCE, text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
