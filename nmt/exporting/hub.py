"""A folder as model hubs keep it: nmt's own files, and a card with a header that describes them in a hub's terms."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nmt.config import Config
from nmt.config.tree import as_yaml
from nmt.exporting.formats import Format
from nmt.models.card import CARD
from nmt.models.storage import SavedModel, save_model
from nmt.system.files import write_json, write_text
from nmt.text.direction import Direction

SCORES = {"bleu": "BLEU", "chrf": "chrF"}


def write(model: SavedModel, path: Path, quantization: str) -> Iterator[str]:
    """Write a model directory, with a hub's header in its card, and `config.json`; see `Format`."""
    config = model.config
    metadata = model.metadata
    direction = Direction.of(config.data)
    save_model(path, config, model.model, model.text, metadata)
    header = as_yaml(_describe(config, dict(metadata)))
    card = (path / CARD).read_text(encoding="utf-8")
    write_text(path / CARD, f"---\n{header}---\n{card}")
    summary = {
        "library_name": "nmt",
        "model_type": config.model.family,
        "parameters": metadata.get("parameters"),
        "languages": [direction.source, direction.target],
    }
    write_json(path / "config.json", summary)
    yield "The licence of a model is for its owner to choose: `license` in README.md."


def _describe(config: Config, metadata: dict[str, Any]) -> dict[str, Any]:
    """The header of the card (https://github.com/huggingface/hub-docs/blob/main/modelcard.md)."""
    direction = Direction.of(config.data)
    scores = metadata.get("scores") or {}
    signatures = metadata.get("signatures") or {}
    metrics = []
    for key, name in SCORES.items():
        if key in scores:
            signature = {"signature": signatures.get(key)}
            metrics.append({"type": key, "name": name, "value": round(scores[key], 2), "args": signature})
    task = {"type": "translation", "name": direction.name}
    dataset = {"type": "text", "name": ", ".join(config.data.source) or "unknown", "split": "validation"}
    results = []
    if metrics:
        results.append({"task": task, "dataset": dataset, "metrics": metrics})
    return {
        "language": [direction.source, direction.target],
        "license": "unknown",
        "library_name": "nmt",
        "pipeline_tag": "translation",
        "tags": ["translation", "attention", config.model.family],
        "model-index": [{"name": config.name, "results": results}],
    }


FORMAT = Format(write, lambda config: ())
