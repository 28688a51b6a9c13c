"""Making the explorer's page from models and sentences."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from torch import Tensor

from nmt.corpus.example import Example
from nmt.evaluation.gold_links import GoldLinks, Unit, measure_error_rate
from nmt.evaluation.metrics import ScoringRules
from nmt.inspection.explorer_page import System, make_page, page_data, rounded
from nmt.inspection.html_page import Page
from nmt.inspection.record import LONGEST, SentenceRecord, Validation, record
from nmt.models.storage import ModelFolder
from nmt.system.encoding import from_bytes
from nmt.system.errors import DataError
from nmt.system.progress import progress_bar
from nmt.training.attention_history import WATCHED
from nmt.translation.stream import within_memory
from nmt.translation.translator import Translator

log = logging.getLogger(__name__)

Folder = TypeVar("Folder", bound=ModelFolder)
Reader = TypeVar("Reader")
"""The reader of text for a model."""


def make_explorer_page(
    models: Sequence[tuple[ModelFolder, Translator]],
    examples: Sequence[Example],
    *,
    title: str,
    watched: Mapping[str, Any] | None = None,
    gold: Sequence[GoldLinks] | None = None,
    unit: Unit = "words",
    all_heads: bool = False,
) -> Page:
    """Record each model's work on each sentence, with a progress bar, and make the page.

    Args:
        models: The models, with translators that do not split their input.
        examples: Sources, perhaps with references.
        title: Title of the page.
        watched: Result of `read_attention`, if the sentences are those that the run of the model has watched.
        gold: Links of people between each source and its first reference.
        unit: Their unit: words, separated by spaces, or tokens of the models.
        all_heads: True if every head is shown, self-attention included.

    Raises:
        DataError: No sentence can be shown, a link points past the end of one, or the stored attention is of others.
    """
    shown = _shown(examples, [translator for _, translator in models])
    systems = []
    with progress_bar(total=len(models) * len(shown), unit=" sentences", desc="recording", leave=False) as bar:
        for name, (saved, translator) in name_models(models).items():
            rules = ScoringRules.for_config(saved.config)
            records = []
            with within_memory(translator.options, 1):
                for number in shown:
                    recorded = record(translator, examples[number], rules, all_heads=all_heads)
                    if watched is not None:
                        recorded = replace(recorded, validations=_read_validations(saved, watched, number, recorded))
                    if gold is not None:
                        recorded = _rate(translator, examples[number], gold[number], number + 1, unit, recorded)
                    records.append(recorded)
                    bar.update()
            systems.append(System.of_model(name, saved.config, translator, records))
    links = None if gold is None else [gold[number] for number in shown]
    data = page_data([examples[number] for number in shown], systems, links, token_links=unit == "tokens")
    return make_page(title, data)


def _shown(examples: Sequence[Example], translators: Sequence[Translator]) -> list[int]:
    """The sentences that can be shown; a warning says how many cannot.

    Raises:
        DataError: None can.
    """
    counts = [[len(translator.reader.tokenize([example.src])[0]) for translator in translators] for example in examples]
    shown = [number for number, lengths in enumerate(counts) if all(0 < count <= LONGEST for count in lengths)]
    if not shown:
        raise DataError(f"sentence 1: has {max(counts[0]):,} tokens; give one of 1 to {LONGEST}")
    if len(shown) < len(examples):
        left = len(examples) - len(shown)
        log.warning(f"left out: {left:,} sentences without words or with more than {LONGEST} tokens")
    return shown


def _read_validations(
    saved: ModelFolder, watched: Mapping[str, Any], number: int, recorded: SentenceRecord
) -> list[Validation]:
    """The stored attention of a watched sentence.

    Raises:
        DataError: The sentence had other tokens then.
    """
    stored = watched["sentences"][number]
    assert recorded.reference is not None
    if (stored["src"], stored["tgt"]) != (recorded.src_tokens[:-1], recorded.reference.tokens[:-1]):
        raise DataError(f"{saved.path.parent / WATCHED}: was stored for other tokens than the model's; train again")
    return [
        Validation(entry["update"], entry["weights"][number], entry["entropy"][number])
        for entry in watched["validations"]
    ]


def _rate(
    translator: Translator, example: Example, gold: GoldLinks, number: int, unit: Unit, recorded: SentenceRecord
) -> SentenceRecord:
    """Add the alignment error rate of the model when it reads a reference, and of its attention at each validation.

    Args:
        translator: The model.
        example: The sentence.
        gold: Its links.
        number: Its number, from 1.
        unit: The unit of the links.
        recorded: The model's record of it.

    Raises:
        DataError: A link points past the end of the sentence.
    """
    (forced,) = translator.score([example.src], [example.references[0]], with_alignment=True)
    assert forced.alignment is not None
    steps, _, positions = forced.alignment.shape

    def rate(alignment: Tensor) -> float:
        shown = replace(forced, alignment=alignment)
        return measure_error_rate(translator, [example], [shown], [gold], unit, number)

    validations = [
        validation._replace(aer=rounded(rate(from_bytes(validation.w, (steps, -1, positions)))))
        for validation in recorded.validations
    ]
    return replace(recorded, validations=validations, measures={**recorded.measures, "AER": rate(forced.alignment)})


def name_of(path: Path) -> str:
    """The name of a model on the page: the name of its run."""
    path = path.absolute()
    return path.parent.name if path.name == "best" else path.name


def name_models(models: Sequence[tuple[Folder, Reader]]) -> dict[str, tuple[Folder, Reader]]:
    """Models by the names of their runs, numbered where those are the same."""
    named: dict[str, tuple[Folder, Reader]] = {}
    for saved, reader in models:
        name = name_of(saved.path)
        taken = sum(name_of(saved.path) == name for saved, _ in named.values())
        named[f"{name} ({taken + 1})" if taken else name] = saved, reader
    return named
