"""What a model does with one sentence, for the page that explores it."""

from __future__ import annotations

from typing import Any

from nmt.corpus.splitting import Example
from nmt.inspection.page import System, page_data
from nmt.inspection.record import LONGEST, record
from nmt.serving.directions import Direction
from nmt.serving.fields import RequestError


def look_inside(direction: Direction, source: str, target: str) -> dict[str, Any]:
    """The data of a page with one sentence.

    Args:
        direction: The model.
        source: The sentence.
        target: A translation that the model reads too; empty for none.

    Raises:
        RequestError: A text has no words, or too many.
    """
    translator, processor = direction.translator, direction.translator.processor
    counts = {"q": len(translator.tokenize([source])[0])}
    if target.strip():
        counts["given"] = len(processor.tokenize_target([target])[0])
    for name, count in counts.items():
        if not 0 < count <= LONGEST:
            raise RequestError(400, f"Invalid request: {name} has {count} tokens; give 1 to {LONGEST}")
    example = Example(source, (target,) if target.strip() else ())
    recorded = record(translator, example, rules=None)
    return page_data([example], [System.of_model(str(direction), direction.config, processor, [recorded])])
