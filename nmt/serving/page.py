"""The pages at `/` and `/docs`: they may load nothing from elsewhere and run only their own scripts."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from nmt.inspection.explorer_page import ASKING
from nmt.inspection.html_page import Page, fill_page

FOLDER = Path(__file__).parent
STYLE = FOLDER / "page.css"


@cache
def make_front_page() -> Page:
    """A page that translates text as it is typed."""
    return fill_page(FOLDER / "page.html", "Translate", [STYLE, ASKING, FOLDER / "page.js"], asks=True)


def make_reference_page(document: Mapping[str, Any], example: Mapping[str, str]) -> Page:
    """The content of an OpenAPI document as a page for people.

    Args:
        document: The document.
        example: The required fields of all requests, each with a value that shows how to ask.
    """
    return fill_page(FOLDER / "routes.html", "Routes", [STYLE], document=document, example=example)
