"""The page: records as compact JSON inside one HTML file, which may load nothing and run only its own script."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nmt.config import Config
from nmt.corpus.splitting import Example
from nmt.evaluation.gold_links import GoldLinks
from nmt.inspection.record import Forced, Record
from nmt.layers.attention.catalog import describe_mechanism
from nmt.system.encoding import as_bytes, as_hundredths
from nmt.system.files import write_text
from nmt.text.processor import TextProcessor

FOLDER = Path(__file__).parent
SHOWN_NUMBERS = 4
"""Shown numbers of a vector; the script knows it too."""
DIGITS = 3
"""Decimals of probabilities and their logarithms."""


@dataclass(frozen=True)
class Emergence:
    """The attention of a sentence at each validation of a run.

    Attributes:
        updates: Updates of the validations.
        weights: The weights of each as base64; see `as_bytes`.
        entropy: Mean entropy of each, in nats.
        error_rates: Alignment error rate of each; empty without gold links.
    """

    updates: Sequence[int]
    weights: Sequence[str]
    entropy: Sequence[float]
    error_rates: Sequence[float] = ()


@dataclass(frozen=True)
class System:
    """A model on the page.

    Attributes:
        name: Its name.
        mechanism: Its attention, in a few words.
        equation: The equation of its score.
        subwords: Whether tokens are subwords, on either side.
        records: A record of each sentence.
        emergence: The attention of each sentence in training, while the model read the reference; empty if unknown.
    """

    name: str
    mechanism: str
    equation: str
    subwords: tuple[bool, bool]
    records: Sequence[Record]
    emergence: Sequence[Emergence] = ()

    @classmethod
    def of_model(
        cls,
        name: str,
        config: Config,
        processor: TextProcessor,
        records: Sequence[Record],
        emergence: Sequence[Emergence] = (),
    ) -> System:
        """A model as its config describes it."""
        subwords = (processor.src_tokenizer.kind == "subword", processor.tgt_tokenizer.kind == "subword")
        return cls(name, *describe_mechanism(config.model), subwords, records, emergence)


@dataclass(frozen=True)
class Page:
    """A page as HTML; in a notebook, shown in a frame.

    Attributes:
        html: The whole file.
        policy: The content security policy that it sets.
    """

    html: str
    policy: str

    def write(self, path: Path) -> None:
        """Write the file."""
        write_text(path, self.html)

    def _repr_html_(self) -> str:
        return (
            '<iframe sandbox="allow-scripts allow-downloads" style="width: 100%; height: 48rem; border: 0" '
            f'srcdoc="{html.escape(self.html)}"></iframe>'
        )


def make_page(
    title: str,
    examples: Sequence[Example],
    systems: Sequence[System],
    gold: Sequence[GoldLinks] | None = None,
    *,
    token_links: bool = False,
) -> Page:
    """Make the page.

    Args:
        title: Its title.
        examples: The sentences, at least one.
        systems: Models with records of them, at least one.
        gold: Links of people between each sentence and its first reference.
        token_links: Whether they count tokens of the models instead of words.
    """
    return _render(title, page_data(examples, systems, gold, token_links=token_links))


@cache
def make_live_page() -> Page:
    """Make a page that asks the server it comes from for each sentence that is typed."""
    return _render("Look inside", {**page_data([], []), "live": True}, live=True)


def page_data(
    examples: Sequence[Example],
    systems: Sequence[System],
    gold: Sequence[GoldLinks] | None = None,
    *,
    token_links: bool = False,
) -> dict[str, Any]:
    """What a page shows, as plain values; the arguments are those of `make_page`."""
    words = sorted({token for system in systems for each in system.records for token in each.likely_tokens})
    places = {token: place for place, token in enumerate(words)}
    return {
        "systems": [
            {key: getattr(system, key) for key in ("name", "mechanism", "equation", "subwords")} for system in systems
        ],
        "tokenLinks": token_links,
        "words": words,
        "items": [
            {
                "source": example.src,
                "reference": example.references[0] if example.references else None,
                "gold": None if gold is None else _as_triples(gold[number]),
                "of": [
                    _encode(system.records[number], places) | _encode_emergence(system.emergence[number : number + 1])
                    for system in systems
                ],
            }
            for number, example in enumerate(examples)
        ],
    }


def _render(title: str, data: dict[str, Any], *, live: bool = False) -> Page:
    from markupsafe import Markup

    names = ("explorer.css", "explorer.js", "live.js")
    style, *scripts = ((FOLDER / name).read_text(encoding="utf-8") for name in names[: 3 if live else 2])
    connections = "connect-src 'self'; " if live else ""
    policy = (
        f"default-src 'none'; script-src {' '.join(map(_hash, scripts))}; style-src {_hash(style)}; "
        f"{connections}img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    html = _template().render(
        title=title,
        policy=policy,
        style=Markup(style),
        scripts=[Markup(script) for script in scripts],
        data=Markup(as_script_data(data)),
        live=live,
    )
    return Page(html, policy)


@cache
def _template() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(loader=FileSystemLoader(FOLDER), autoescape=True, undefined=StrictUndefined)
    return environment.get_template("page.html")


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def as_script_data(value: Any) -> str:
    """JSON for a script element: nothing in it can end the element or begin another."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    escapes = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
    return "".join(escapes.get(character, character) for character in text)


def _as_triples(links: GoldLinks) -> list[tuple[int, int, int]]:
    return [(i, j, int((i, j) in links.sure)) for i, j in sorted(links.possible)]


def _encode(record: Record, places: Mapping[str, int]) -> dict[str, Any]:
    nodes = record.tree.nodes
    return {
        "src": record.src_tokens,
        "heads": record.best.alignment.size(1),
        "p": [node.parent for node in nodes],
        "l": record.labels,
        "lp": [_round(node.log_prob) for node in nodes],
        "sc": [None if node.score is None else _round(node.score) for node in nodes],
        "w": as_bytes([node.alignment for node in nodes]),
        "best": record.tree.best,
        "text": record.texts,
        "steps": _steps(record.best, places),
        "ref": record.reference
        and {
            "text": record.reference.text,
            "l": record.reference.tokens,
            "lp": [_round(value) for value in record.reference.log_probs],
            "w": as_bytes(record.reference.alignment),
            **_steps(record.reference, places),
        },
        "measures": {name: _round(value) for name, value in record.measures.items()},
    }


def _encode_emergence(found: Sequence[Emergence]) -> dict[str, Any]:
    if not found:
        return {}
    (each,) = found
    rates: Sequence[float | None] = each.error_rates or [None] * len(each.updates)
    frames = [
        {"update": update, "w": weights, "entropy": entropy, "aer": None if rate is None else _round(rate)}
        for update, weights, entropy, rate in zip(each.updates, each.weights, each.entropy, rates, strict=True)
    ]
    return {"frames": frames}


def _steps(forced: Forced, places: Mapping[str, int]) -> dict[str, Any]:
    """Details of each step; the most probable words are places in the page's list of words, and thousandths."""
    return {
        "top": [
            [part for token, share in step for part in (places[token], round(1000 * share))] for step in forced.top
        ],
        "e": None if forced.scores is None else as_hundredths(forced.scores),
        "occ": None if forced.occlusion is None else as_hundredths(forced.occlusion),
        "q": _vectors(None if forced.queries is None or forced.queries.size(1) > 1 else forced.queries[:, 0]),
        "c": _vectors(forced.contexts if forced.alignment.any() else None),
        "focus": forced.focus and {"centres": _rounded(forced.focus.centres), "radius": forced.focus.radius},
        "chances": None if forced.chances is None else as_hundredths(forced.chances),
        "agree": [None if value is None else _round(value) for value in forced.agreement],
    }


def _vectors(values: Tensor | None) -> str | None:
    """The first numbers of each vector, and its Euclidean norm."""
    if values is None:
        return None
    return as_hundredths(torch.cat([values[:, :SHOWN_NUMBERS], values.norm(dim=1, keepdim=True)], dim=1))


def _round(value: float) -> float:
    return round(max(-1e9, min(1e9, value)), DIGITS)  # JSON has no infinity


def _rounded(values: Tensor) -> Any:
    """Nested lists with two decimals."""
    return (values.clamp(-1e6, 1e6).double() * 100).round().div(100).tolist()
