"""Generate the table of all config keys in configs/README.md from their descriptions.

Usage: python scripts/config_table.py [--write]
"""

import argparse
from pathlib import Path

from nmt.config.description import with_table
from nmt.system.files import write_text

KEY_REFERENCE = Path(__file__).resolve().parent.parent / "configs" / "README.md"


def main() -> None:
    """Update the table, or print the updated file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="change configs/README.md instead of printing it")
    text = with_table(KEY_REFERENCE.read_text(encoding="utf-8"))
    if parser.parse_args().write:
        write_text(KEY_REFERENCE, text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
