"""Making the explorer's page from models and sentences."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.corpus.splitting import Example
from nmt.evaluation.gold_links import GoldLinks, alignment_error_rate
from nmt.evaluation.metrics import ScoringRules
from nmt.inspection.attention_report import Unit, check_gold_links, find_links
from nmt.inspection.explorer_page import Page, System, Validation, make_page, rounded
from nmt.inspection.record import LONGEST, SentenceRecord, record
from nmt.models.storage import SavedModel
from nmt.system.encoding import from_bytes
from nmt.system.errors import DataError
from nmt.system.progress import progress_bar
from nmt.training.attention_history import WATCHED, read_attention
from nmt.translation.stream import within_memory
from nmt.translation.translator import Translator

if TYPE_CHECKING:
    from torch import Tensor


log = logging.getLogger(__name__)


def explore(
    models: Sequence[tuple[SavedModel, Translator]],
    examples: Sequence[Example],
    *,
    title: str,
    emergence: bool = False,
    gold: Sequence[GoldLinks] | None = None,
    unit: Unit = "words",
) -> Page:
    """Record what each model does with each sentence, with a progress bar, and make the page.

    Args:
        models: The models, with translators that do not split their input.
        examples: Sources, perhaps with references.
        title: Title of the page.
        emergence: Whether the sentences are those that the models' runs have watched.
        gold: Links of people between each source and its first reference.
        unit: What they count: words, separated by spaces, or tokens of the models.

    Raises:
        DataError: No sentence can be shown, or a link points past the end of one.
    """
    shown = _shown(examples, [translator for _, translator in models])
    examples = [examples[number] for number in shown]
    systems = []
    with progress_bar(total=len(models) * len(examples), unit=" sentences", desc="recording", leave=False) as bar:
        for name, (saved, translator) in name_models(models).items():
            rules = ScoringRules.for_text(saved.config.text, saved.config.data.languages[1])
            watched = read_attention(saved.path.parent) if emergence else None
            records, validations = [], []
            with within_memory(translator.options, 1):
                for number, example in zip(shown, examples, strict=True):
                    recorded, history = record(translator, example, rules), []
                    if watched is not None:
                        _check_watched(saved, watched["sentences"][number], recorded)
                        history = [
                            Validation(entry["update"], entry["weights"][number], entry["entropy"][number])
                            for entry in watched["validations"]
                        ]
                    if gold is not None:
                        rate, history = _rate(translator, example, gold[number], number + 1, unit, history)
                        recorded = replace(recorded, measures={**recorded.measures, "AER": rate})
                    records.append(recorded)
                    validations.append(history)
                    bar.update()
            histories = [] if watched is None else validations
            systems.append(System.of_model(name, saved.config, translator.processor, records, histories))
    links = None if gold is None else [gold[number] for number in shown]
    return make_page(title, examples, systems, links, token_links=unit == "tokens")


def _shown(examples: Sequence[Example], translators: Sequence[Translator]) -> list[int]:
    """The sentences that can be shown; a warning says how many cannot.

    Raises:
        DataError: None can.
    """
    counts = [[len(translator.tokenize([example.src])[0]) for translator in translators] for example in examples]
    shown = [number for number, each in enumerate(counts) if all(0 < count <= LONGEST for count in each)]
    if not shown:
        most = max(map(max, counts))
        found = f"{most:,} tokens, more than the {LONGEST} that can be shown" if most else "no words"
        raise DataError(f"sentence 1: has {found}; give another one")
    if len(shown) < len(examples):
        left = len(examples) - len(shown)
        log.warning(f"left out: {left:,} sentences without words or with more than {LONGEST} tokens")
    return shown


def _rate(
    translator: Translator,
    example: Example,
    gold: GoldLinks,
    number: int,
    unit: Unit,
    history: Sequence[Validation],
) -> tuple[float, list[Validation]]:
    """Alignment error rate of the model when it reads a reference, and of its attention at each validation.

    Args:
        translator: The model.
        example: The sentence.
        gold: Its links.
        number: Its number, from 1.
        unit: What the links count.
        history: Its attention at each validation.

    Raises:
        DataError: A link points past the end of the sentence, or the stored attention is not that of the sentence.
    """
    (forced,) = translator.score([example.src], [example.references[0]], with_alignment=True)
    check_gold_links(number, gold, example, forced, unit)
    assert forced.alignment is not None

    def rate(alignment: Tensor) -> float:
        links = find_links(translator, example, replace(forced, alignment=alignment), unit)
        return alignment_error_rate([links], [gold])

    try:
        weights = [from_bytes(validation.w, forced.alignment.shape) for validation in history]
        rates = [rounded(rate(alignment)) for alignment in weights]
    except (RuntimeError, ValueError):
        raise DataError("the attention that the run has stored is not that of its sentences; train again") from None
    rated = [validation._replace(aer=aer) for validation, aer in zip(history, rates, strict=True)]
    return rate(forced.alignment), rated


def _check_watched(saved: SavedModel, stored: Mapping[str, Any], recorded: SentenceRecord) -> None:
    """Check that a watched sentence still has the tokens that its stored attention is of.

    Raises:
        DataError: It has others.
    """
    assert recorded.reference is not None
    if (stored["src"], stored["tgt"]) != (recorded.src_tokens[:-1], recorded.reference.tokens[:-1]):
        raise DataError(f"{saved.path.parent / WATCHED}: was stored for other tokens than the model's; train again")


def watched_examples(saved: SavedModel) -> list[Example]:
    """The sentences that the run of a model has watched.

    Raises:
        DataError: There are none.
    """
    sentences = read_attention(saved.path.parent)["sentences"]
    return [Example(sentence["source"], (sentence["reference"],)) for sentence in sentences]


def name_of(path: Path) -> str:
    """The name of a model on the page: the name of its run."""
    return path.parent.name if path.name == "best" else path.name


def name_models(models: Sequence[tuple[SavedModel, Translator]]) -> dict[str, tuple[SavedModel, Translator]]:
    """Models by the names of their runs, numbered where those are the same."""
    named: dict[str, tuple[SavedModel, Translator]] = {}
    for saved, translator in models:
        name = name_of(saved.path)
        taken = sum(name_of(other.path) == name for other, _ in named.values())
        named[f"{name} ({taken + 1})" if taken else name] = saved, translator
    return named
