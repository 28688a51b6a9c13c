"""The page at `/`: one file, which may load nothing from elsewhere and run only its own script."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

PAGE = Path(__file__).with_name("page.html").read_text(encoding="utf-8")


def _hash(tag: str) -> str:
    """The hash of the content of the only element of a name, in the form of a content security policy."""
    content = PAGE.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


PAGE_POLICY = (
    f"default-src 'none'; script-src {_hash('script')}; style-src {_hash('style')}; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Its content security policy."""
