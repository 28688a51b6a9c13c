"""Making the explorer's page from models and sentences."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nmt.corpus.splitting import Example
from nmt.decoding.translator import Translator
from nmt.errors import DataError
from nmt.evaluation.alignment import GoldLinks
from nmt.evaluation.metrics import ScoringRules
from nmt.explorer.page import Emergence, Page, System, make_page
from nmt.explorer.record import describe_mechanism, record
from nmt.model.storage import SavedModel
from nmt.progress import progress_bar
from nmt.workflow.translate import within_memory
from nmt.workflow.watch import read_attention

LONGEST = 200
"""Source tokens of a sentence that can be shown."""


def explore(
    models: Sequence[tuple[SavedModel, Translator]],
    examples: Sequence[Example],
    *,
    title: str,
    emergence: bool = False,
    gold: Sequence[GoldLinks] | None = None,
    token_links: bool = False,
) -> Page:
    """Record what each model does with each sentence, with a progress bar, and make the page.

    Args:
        models: The models, with translators that do not split their input.
        examples: Sources, perhaps with references.
        title: Title of the page.
        emergence: Whether the sentences are those that the models' runs have watched.
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
            frames = read_emergence(saved) if emergence else ()
            systems.append(System(name_of(saved.path), *describe_mechanism(saved.config), subwords, records, frames))
    return make_page(title, examples, systems, gold, token_links=token_links)


def read_emergence(saved: SavedModel) -> list[Emergence]:
    """The attention of the sentences that the run of a model has watched, at each validation.

    Raises:
        DataError: The model's run has watched none.
    """
    facts = read_attention(saved.path.parent)
    validations = facts["validations"]
    return [
        Emergence(
            [each["update"] for each in validations],
            [each["weights"][number] for each in validations],
            [each["entropy"][number] for each in validations],
        )
        for number in range(len(facts["sentences"]))
    ]


def watched_examples(saved: SavedModel) -> list[Example]:
    """The sentences that the run of a model has watched.

    Raises:
        DataError: There are none.
    """
    sentences = read_attention(saved.path.parent)["sentences"]
    return [Example(sentence["source"], (sentence["reference"],)) for sentence in sentences]


def name_of(path: Path) -> str:
    """The name of a model on the page: that of its run."""
    return path.parent.name if path.name == "best" else path.name
