"""The README's table of all config keys, made from their descriptions.

Usage: python scripts/config_table.py [--write]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from nmt.config.description import with_table
from nmt.files import write_text

README = Path(__file__).resolve().parent.parent / "README.md"


def main() -> None:
    """Bring the README up to date, or print it as it should be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="change README.md; without it the text is printed")
    text = with_table(README.read_text(encoding="utf-8"))
    if parser.parse_args().write:
        write_text(README, text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
