"""Pages: each is one HTML file, which may load nothing and run only its own scripts."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nmt.config.outputs import check_files
from nmt.system.errors import as_nmt_errors
from nmt.system.files import AnyPath, write_text

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Page:
    """A page as HTML; in a notebook, shown in a frame; `write` stores it.

    Attributes:
        html: The whole file.
        policy: The content security policy that it sets.
    """

    html: str
    policy: str

    def __repr__(self) -> str:
        return f'<Page of {len(self.html):,} characters; write("page.html") stores it>'

    def write(self, path: AnyPath, *, overwrite: bool = False) -> None:
        """Write the file: `page.write("page.html")`.

        Args:
            path: The file.
            overwrite: Replace a file that is not empty.

        Raises:
            DataError: The file exists and is not empty, or cannot be written.
        """
        with as_nmt_errors():
            check_files({"path": path}, (), overwrite=overwrite)
            write_text(Path(path), self.html)

    def _repr_html_(self) -> str:
        return (
            '<iframe sandbox="allow-scripts allow-downloads" style="width: 100%; height: 48rem; border: 0" '
            f'srcdoc="{html.escape(self.html)}"></iframe>'
        )


def fill_page(
    template: Path, title: str, files: Sequence[Path], *, asks: bool = False, inline: bool = False, **values: object
) -> Page:
    """Fill a template, which escapes its values.

    Args:
        template: A template that extends `frame.html`.
        title: Title of the page.
        files: Its styles, after that of the frame, and its scripts.
        asks: True if it may ask the server that it comes from.
        inline: True if its elements have styles of their own.
        values: The values that the template names.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    texts = {path: path.read_text(encoding="utf-8") for path in (FOLDER / "frame.css", *files)}
    style = "".join(text for path, text in texts.items() if path.suffix == ".css")
    scripts = [text for path, text in texts.items() if path.suffix == ".js"]
    allowed_scripts = " ".join(map(_hash, scripts)) or "'none'"
    allowed_styles = "'unsafe-inline'" if inline else _hash(style)
    policy = (
        f"default-src 'none'; script-src {allowed_scripts}; style-src {allowed_styles}; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    if asks:
        policy += "; connect-src 'self'"
    loader = FileSystemLoader([template.parent, FOLDER])
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":"), "allow_nan": False}
    page = environment.get_template(template.name)
    return Page(page.render(title=title, policy=policy, style=style, scripts=scripts, **values), policy)


def _hash(content: str) -> str:
    """The hash by which a content security policy allows a script or a style."""
    digest = hashlib.sha256(content.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
