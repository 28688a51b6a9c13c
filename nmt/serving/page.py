"""The page at `/`: one file, which may load nothing from elsewhere and run only its own script."""

from functools import cache
from pathlib import Path

from nmt.inspection.explorer_page import Page, policy_hash


@cache
def make_front_page() -> Page:
    """Make the page."""
    html = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
    script, style = (policy_hash(html.split(f"<{tag}>")[1].split(f"</{tag}>")[0]) for tag in ("script", "style"))
    sources = f"default-src 'none'; script-src {script}; style-src {style}; connect-src 'self'; img-src data:"
    return Page(html, f"{sources}; base-uri 'none'; form-action 'none'")
