"""Making the explorer's page from models and sentences."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from nmt.corpus.splitting import Example
from nmt.decoding.translator import Translator
from nmt.errors import DataError
from nmt.evaluation.alignment import GoldLinks
from nmt.evaluation.metrics import ScoringRules
from nmt.explorer.page import Page, System, make_page
from nmt.explorer.record import describe_mechanism, record
from nmt.model.storage import SavedModel
from nmt.progress import progress_bar
from nmt.workflow.translate import within_memory

LONGEST = 200
"""Source tokens of a sentence that can be shown."""


def choose(number: int, most: int | None) -> list[int]:
    """At most so many of the first `number` whole numbers, evenly spaced; None is all."""
    if most is None or number <= most:
        return list(range(number))
    return [int(place) for place in np.linspace(0, number - 1, most).round()]


def explore(
    models: Sequence[tuple[SavedModel, Translator]],
    examples: Sequence[Example],
    *,
    title: str,
    gold: Sequence[GoldLinks] | None = None,
    token_links: bool = False,
) -> Page:
    """Record what each model does with each sentence, with a progress bar, and make the page.

    Args:
        models: The models, with translators that do not split their input.
        examples: Sources, perhaps with references.
        title: Title of the page.
        gold: Links of people between each source and its first reference.
        token_links: Whether they count tokens instead of words.

    Raises:
        DataError: A sentence has no words, or too many.
    """
    for number, example in enumerate(examples, 1):
        for _, translator in models:
            (tokens,) = translator.tokenize([example.src])
            if not 0 < len(tokens) <= LONGEST:
                found = f"{len(tokens):,} tokens, more than the {LONGEST} that can be shown" if tokens else "no words"
                raise DataError(f"sentence {number}: has {found}; leave it out")
    systems = []
    with progress_bar(total=len(models) * len(examples), unit=" sentences", desc="recording", leave=False) as bar:
        for saved, translator in models:
            rules = ScoringRules.for_text(saved.config.text, saved.config.data.languages[1])
            records = []
            with within_memory(translator.options, 1):
                for example in examples:
                    records.append(record(translator, example, rules))
                    bar.update()
            processor = translator.processor
            subwords = (processor.src_tokenizer.kind == "subword", processor.tgt_tokenizer.kind == "subword")
            systems.append(System(name_of(saved.path), *describe_mechanism(saved.config), subwords, records))
    return make_page(title, examples, systems, gold, token_links=token_links)


def name_of(path: Path) -> str:
    """The name of a model on the page: that of its run."""
    return path.parent.name if path.name == "best" else path.name
