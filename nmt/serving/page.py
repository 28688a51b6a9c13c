"""The pages at `/` and `/docs`: they may load nothing from elsewhere and run only their own script."""

from collections.abc import Mapping
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from nmt.inspection.explorer_page import Page, policy_hash


@cache
def make_front_page() -> Page:
    """A page that translates what is typed."""
    html = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
    script, style = (policy_hash(html.split(f"<{tag}>")[1].split(f"</{tag}>")[0]) for tag in ("script", "style"))
    sources = f"default-src 'none'; script-src {script}; style-src {style}; connect-src 'self'; img-src data:"
    return Page(html, f"{sources}; base-uri 'none'; form-action 'none'")


def make_reference_page(document: Mapping[str, Any]) -> Page:
    """A page for people that says what an OpenAPI document says, in the style of the front page."""
    front, schemas = make_front_page(), document["components"]["schemas"]
    parts = [front.html.split("<h1>")[0].replace("<title>Translate", "<title>Routes"), "<h1>Routes</h1>"]
    parts.append('<p>What programs can ask of this server, also as an <a href="openapi.json">OpenAPI document</a>.</p>')
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            parts.append(f"<h2>{method.upper()} {path}</h2><p>{escape(operation['summary'])}</p>")
            if "requestBody" in operation:
                parts.append(f"Fields, as {_describe(operation['requestBody']['content'], schemas)}")
            parts.append(f"Reply: {_describe(operation['responses']['200']['content'], schemas)}")
    return Page("\n".join([*parts, "</main>", "</body>", "</html>", ""]), front.policy)


def _describe(content: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    """The media types of a body, and its fields if they are known."""
    schema = next(iter(content.values()))["schema"]
    name = schema.get("items", schema).get("$ref", "").rpartition("/")[2]
    fields = schemas[name]["properties"].items() if name else ()
    items = (f"<li><code>{field}</code> {escape(value.get('description', ''))}" for field, value in fields)
    return f"{' or '.join(content)}{' (a list)' if 'items' in schema else ''}<ul>{''.join(items)}</ul>"
