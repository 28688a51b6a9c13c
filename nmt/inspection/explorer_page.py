"""The explorer's page: records as compact JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from nmt.config import Config
from nmt.corpus.example import Example
from nmt.evaluation.gold_links import GoldLinks
from nmt.inspection.all_heads import HeadWeights, list_heads
from nmt.inspection.html_page import FOLDER, Page, fill_page
from nmt.inspection.record import Forced, SentenceRecord
from nmt.layers.attention.catalog import describe_mechanism
from nmt.system.encoding import as_bytes, as_hundredths
from nmt.translation.translator import Translator

EXPLORER = FOLDER / "explorer.html"
FILES = [FOLDER / name for name in ("tables.css", "explorer.css", "drawings.js", "head_maps.js", "explorer.js")]
ASKING = FOLDER / "asking.js"
"""The script that the pages of `nmt serve` share."""
DIGITS = 3
"""Decimals of probabilities and their logarithms."""


@dataclass(frozen=True)
class System:
    """A model on the page.

    Attributes:
        name: Its name.
        mechanism: Its attention, in a few words.
        equation: The equation of its score.
        subwords: True if tokens are subwords, on either side.
        records: A record of each sentence.
        heads: The heads whose weights are recorded, as `list_heads` describes them.
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
        weights = []
        for record in records:
            for reading in (record.best, record.reference):
                if reading and reading.heads:
                    weights.append(reading.heads)
        heads = list_heads(translator.model.decoder, weights, patterns=len(records) > 1) if weights else {}
        return cls(name, *describe_mechanism(config.model), subwords, records, heads)


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
    """The data of a page, as plain values.

    Args:
        examples: The sentences.
        systems: Models with records of them.
        gold: Links of people between each sentence and its first reference.
        token_links: True if they count tokens of the models instead of words.
    """
    # Every probable word once; the steps of all sentences name words by their numbers in this list.
    likely: set[str] = set()
    descriptions = []
    for system in systems:
        for record in system.records:
            likely.update(record.likely_tokens)
        descriptions.append({key: value for key, value in vars(system).items() if key != "records"})
    words = sorted(likely)
    index = {token: number for number, token in enumerate(words)}
    items = []
    for number, example in enumerate(examples):
        item = {
            "source": example.src,
            "reference": example.references[0] if example.references else None,
            "gold": None if gold is None else _as_triples(gold[number]),
            "of": [_encode(system.records[number], index) for system in systems],
        }
        items.append(item)
    return {"systems": descriptions, "tokenLinks": token_links, "words": words, "items": items}


def make_page(
    title: str, data: dict[str, Any], page: Path = EXPLORER, files: Sequence[Path] = (), **content: Any
) -> Page:
    """Make the page.

    Args:
        title: Its title.
        data: Its data; see `page_data`. With `live` it asks a server for more.
        page: Its template: the explorer's, or one that extends it.
        files: Styles and scripts of its own, after those of the explorer.
        content: Further values of the template.
    """
    live = data.get("live", False)
    scripts = [ASKING, FOLDER / "live.js"] if live else files
    return fill_page(page, title, [*FILES, *scripts], asks=live, data=data, live=live, **content)


def _as_triples(links: GoldLinks) -> list[tuple[int, int, int]]:
    """Source position, target position, and 1 if the link is sure, of each link."""
    return [(i, j, int((i, j) in links.sure)) for i, j in sorted(links.possible)]


def _encode(record: SentenceRecord, index: Mapping[str, int]) -> dict[str, Any]:
    """A record as explorer.js reads it.

    Args:
        record: The record.
        index: Numbers of words; see `page_data`.
    """
    nodes = record.tree.nodes
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
        "ref": None if record.reference is None else _encode_reference(record.reference, index),
        "measures": {name: rounded(value) for name, value in record.measures.items()},
        "frames": [validation._asdict() for validation in record.validations] or None,
    }


def _encode_reference(reference: Forced, index: Mapping[str, int]) -> dict[str, Any]:
    return {
        "text": reference.text,
        "l": reference.tokens,
        "lp": [rounded(value) for value in reference.log_probs],
        "w": as_bytes(reference.alignment),
        **_encode_steps(reference, index),
    }


def _encode_steps(forced: Forced, index: Mapping[str, int]) -> dict[str, Any]:
    """Details of each step; the most probable words are numbers in the page's list of words, with thousandths."""
    details = forced.details
    focus = None
    if details.centres is not None:
        focus = {"centres": [round(centre, 2) for centre in details.centres.tolist()], "radius": details.radius}
    top = []
    for step in forced.top:
        flat = []  # number, thousandths, number, thousandths, ...
        for token, share in step:
            flat += [index[token], round(1000 * share)]
        top.append(flat)
    return {
        "top": top,
        "e": None if details.scores is None else as_hundredths(details.scores),
        "occ": None if forced.occlusion is None else as_hundredths(forced.occlusion),
        "focus": focus,
        "chances": None if details.chances is None else as_hundredths(details.chances),
        "agree": [None if value is None else rounded(value) for value in forced.agreement],
        "heads": None if forced.heads is None else _encode_heads(forced.heads),
    }


def _encode_heads(heads: HeadWeights) -> dict[str, Any]:
    """The weights of each part, [heads of all layers, rows, columns]."""
    parts: dict[str, Any] = {part: {"w": as_bytes(layers)} for part, layers in heads.own.items() if layers}
    return {**parts, "source": {"w": as_bytes(heads.source.transpose(0, 1))}}


def rounded(value: float) -> float:
    """A number with three decimals; JSON has no infinity."""
    return round(max(-1e9, min(1e9, value)), DIGITS)
