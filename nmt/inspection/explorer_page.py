"""The page: records as compact JSON inside one HTML file, which may load nothing and run only its own script."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from nmt.config import Config
from nmt.corpus.splitting import Example
from nmt.evaluation.gold_links import GoldLinks
from nmt.inspection.all_heads import list_heads
from nmt.inspection.head_weights import HeadWeights
from nmt.inspection.record import Forced, SentenceRecord
from nmt.layers.attention.catalog import describe_mechanism
from nmt.system.encoding import as_bytes, as_hundredths
from nmt.system.files import AnyPath, write_text
from nmt.translation.translator import Translator

FOLDER = Path(__file__).parent
EXPLORER = FOLDER / "explorer.html"
FILES = ("explorer.css", "drawings.js", "head_maps.js", "explorer.js", "live.js")
"""Style and scripts; the last one is for pages that ask a server."""
DIGITS = 3
"""Decimals of probabilities and their logarithms."""


@dataclass(frozen=True)
class System:
    """A model on the page.

    Attributes:
        name: Its name.
        mechanism: Its attention, in a few words.
        equation: The equation of its score.
        subwords: Whether tokens are subwords, on either side.
        records: A record of each sentence.
        heads: What `list_heads` says of the heads whose weights are recorded.
    """

    name: str
    mechanism: str
    equation: str
    subwords: tuple[bool, bool]
    records: Sequence[SentenceRecord]
    heads: Mapping[str, Sequence[tuple[str, str]]] = field(default_factory=dict)

    @classmethod
    def of_model(cls, name: str, config: Config, translator: Translator, records: Sequence[SentenceRecord]) -> System:
        """A model as its config describes it."""
        processor = translator.processor
        subwords = (processor.src_tokenizer.kind == "subword", processor.tgt_tokenizer.kind == "subword")
        forced = [one for record in records for one in (record.best, record.reference) if one is not None]
        weights = [one.heads for one in forced if one.heads is not None]
        decoder, patterns = translator.model.decoder, len(records) > 1
        heads = list_heads(decoder, weights, patterns=patterns) if weights else {}
        return cls(name, *describe_mechanism(config.model), subwords, records, heads)


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

    def write(self, path: AnyPath) -> None:
        """Write the file: `page.write("page.html")`."""
        write_text(Path(path), self.html)

    def _repr_html_(self) -> str:
        return (
            '<iframe sandbox="allow-scripts allow-downloads" style="width: 100%; height: 48rem; border: 0" '
            f'srcdoc="{html.escape(self.html)}"></iframe>'
        )


@cache
def make_live_page() -> Page:
    """A page that asks the server it comes from about the sentences that are typed."""
    return make_page("Look inside", {**page_data([], []), "live": True})


def page_data(
    examples: Sequence[Example],
    systems: Sequence[System],
    gold: Sequence[GoldLinks] | None = None,
    *,
    token_links: bool = False,
) -> dict[str, Any]:
    """What a page shows, as plain values.

    Args:
        examples: The sentences.
        systems: Models with records of them.
        gold: Links of people between each sentence and its first reference.
        token_links: Whether they count tokens of the models instead of words.
    """
    words = sorted({token for system in systems for record in system.records for token in record.likely_tokens})
    index = {token: number for number, token in enumerate(words)}
    return {
        "systems": [
            {key: getattr(system, key) for key in ("name", "mechanism", "equation", "subwords", "heads")}
            for system in systems
        ],
        "tokenLinks": token_links,
        "words": words,
        "items": [
            {
                "source": example.src,
                "reference": next(iter(example.references), None),
                "gold": None if gold is None else _as_triples(gold[number]),
                "of": [_encode(system.records[number], index) for system in systems],
            }
            for number, example in enumerate(examples)
        ],
    }


def make_page(
    title: str, data: dict[str, Any], page: Path = EXPLORER, files: Sequence[Path] = (), **content: Any
) -> Page:
    """Make the page.

    Args:
        title: Its title.
        data: What it shows; see `page_data`. With `live` it asks a server for more.
        page: Its template: the explorer's, or one that extends it.
        files: Styles and scripts of its own, after those of the explorer.
        content: What else the template shows.
    """
    live = data.get("live", False)
    paths = [*(FOLDER / name for name in FILES[: None if live else -1]), *files]
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    style = "".join(text for path, text in texts.items() if path.suffix == ".css")
    scripts = [text for path, text in texts.items() if path.suffix == ".js"]
    connections = "connect-src 'self'; " if live else ""
    policy = (
        f"default-src 'none'; script-src {' '.join(map(policy_hash, scripts))}; style-src {policy_hash(style)}; "
        f"{connections}img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    html = template(page.name, page.parent).render(
        title=title, policy=policy, style=style, scripts=scripts, data=as_script_data(data), live=live, **content
    )
    return Page(html, policy)


def template(name: str, folder: Path = FOLDER, **options: Any) -> Any:
    """A template, which escapes what is filled in and may extend one of this folder.

    Args:
        name: Its file.
        folder: Where it is.
        options: Those of Jinja2's environment.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader([folder, FOLDER])
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, **options)
    return environment.get_template(name)


def policy_hash(content: str) -> str:
    """The hash by which a content security policy allows a script or a style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def as_script_data(value: Any) -> str:
    """JSON for a script element: nothing in it can end the element or begin another."""
    escapes = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return "".join(escapes.get(character, character) for character in text)


def _as_triples(links: GoldLinks) -> list[tuple[int, int, int]]:
    return [(i, j, int((i, j) in links.sure)) for i, j in sorted(links.possible)]


def _encode(record: SentenceRecord, index: Mapping[str, int]) -> dict[str, Any]:
    nodes, reference = record.tree.nodes, record.reference
    frames = {"frames": [validation._asdict() for validation in record.validations]} if record.validations else {}
    return {
        "src": record.src_tokens,
        "heads": record.best.alignment.size(1),
        "p": [node.parent for node in nodes],
        "l": record.labels,
        "lp": [rounded(node.log_prob) for node in nodes],
        "sc": [None if node.score is None else rounded(node.score) for node in nodes],
        "w": as_bytes([node.alignment for node in nodes]),
        "best": record.tree.best,
        "text": record.texts,
        "steps": _encode_steps(record.best, index),
        "ref": reference
        and {
            "text": reference.text,
            "l": reference.tokens,
            "lp": [rounded(value) for value in reference.log_probs],
            "w": as_bytes(reference.alignment),
            **_encode_steps(reference, index),
        },
        "measures": {name: rounded(value) for name, value in record.measures.items()},
        **frames,
    }


def _encode_steps(forced: Forced, index: Mapping[str, int]) -> dict[str, Any]:
    """Details of each step; the most probable words are numbers in the page's list of words, with thousandths."""
    details, focus = forced.details, None
    if details.centres is not None:
        focus = {"centres": [round(centre, 2) for centre in details.centres.tolist()], "radius": details.radius}
    return {
        "top": [[part for token, share in step for part in (index[token], round(1000 * share))] for step in forced.top],
        "e": None if details.scores is None else as_hundredths(details.scores),
        "occ": None if forced.occlusion is None else as_hundredths(forced.occlusion),
        "focus": focus,
        "chances": None if details.chances is None else as_hundredths(details.chances),
        "agree": [None if value is None else rounded(value) for value in forced.agreement],
        "heads": None if forced.heads is None else _encode_heads(forced.heads),
    }


def _encode_heads(heads: HeadWeights) -> dict[str, Any]:
    """The weights of each part, [heads of all layers, rows, columns]."""
    own: dict[str, Any] = {part: {"w": as_bytes(layers)} for part, layers in heads.own.items() if layers}
    return {**own, "source": {"w": as_bytes(heads.source.transpose(0, 1))}}


def rounded(value: float) -> float:
    """A number with three decimals; JSON has no infinity."""
    return round(max(-1e9, min(1e9, value)), DIGITS)
