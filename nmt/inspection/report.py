"""The report on a model, and its comparison with others."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from nmt.config import differing_keys, dump_config
from nmt.corpus.data_report import read_report
from nmt.corpus.splitting import Example
from nmt.evaluation.attention_statistics import tabulate_lengths
from nmt.evaluation.breakdown import SentenceGap
from nmt.evaluation.input_text import evenly_spaced
from nmt.evaluation.metrics import ScoringRules, sentence_scores
from nmt.evaluation.model_evaluation import ModelEvaluation, evaluate_model
from nmt.inspection.blocks import Block, Chapter, Picture, Sentence, Text, mark_words, plain, render
from nmt.inspection.explore import name_models
from nmt.layers.attention.catalog import describe_mechanism
from nmt.models.runs import MARKER as RUN_MARKER
from nmt.models.runs import find_data
from nmt.models.storage import SavedModel
from nmt.system.errors import CheckpointError, DataError
from nmt.system.files import read_json
from nmt.system.tables import Table
from nmt.translation.alignment import draw_alignment
from nmt.translation.translator import Translator

SHOWN = 10
"""Best, worst and most changed sentences."""
MAPS = 3
"""Sentences whose attention is drawn."""
CURVE = "learning_curve.png"
ENVIRONMENT = ("nmt", "python", "torch", "platform", "device", "device_name", "threads")

Opened = tuple[SavedModel, Translator]


def make_report(
    models: Sequence[Opened], examples: Sequence[Example], *, what: str, title: str, data: Path | None
) -> str:
    """Evaluate a model, compare it with others, and write the report as HTML.

    Args:
        models: The model, and those to compare it with.
        examples: The test set.
        what: Its name.
        title: Title of the page.
        data: Data directory of the model; None is the one that it was trained on.
    """
    named = name_models(models)
    (name, (saved, translator)), *others = named.items()
    against = {other: its_translator for other, (_, its_translator) in others}
    found = evaluate_model(
        [saved],
        translator,
        examples,
        what=what,
        name=name,
        against=against,
        breakdown=True,
        attention=True,
        short_inputs=True,
        data=data,
    )
    rules = ScoringRules.for_text(saved.config.text, saved.config.data.languages[1])
    by_name = {each: its_model for each, (its_model, _) in named.items()}
    chapters = [
        Chapter("Models" if others else "Model", [_tabulate_models(by_name)]),
        Chapter("Scores", list(_scores(found))),
        Chapter("Training", list(_curves(by_name))),
        *_breakdown(found),
        Chapter("Best and worst sentences", list(_extremes(found, examples, rules))),
        *_changes(found),
        Chapter("Attention", list(_attention(found, translator, examples))),
        Chapter("Config", list(_configs(by_name))),
        *_data(saved),
    ]
    return render(title, [chapter for chapter in chapters if chapter.blocks])


def _tabulate_models(models: Mapping[str, SavedModel]) -> Table:
    columns = [_describe(saved) for saved in models.values()]
    rows = [[label, *(column.get(label, "-") for column in columns)] for label in columns[0]]
    return Table(["", *models], rows, "l" * (1 + len(models)))


def _describe(saved: SavedModel) -> dict[str, str]:
    facts, config = saved.facts, saved.config
    run = _read(saved.path.parent / RUN_MARKER)
    environment = _read(saved.path.parent / "environment.json")
    languages = " to ".join(config.data.languages)
    encoder, decoder = config.model.encoder, config.model.decoder
    described = {
        "config": config.name,
        "languages": languages,
        "attention": describe_mechanism(config.model)[0],
        "equation": describe_mechanism(config.model)[1],
        "encoder": f"{encoder.cell}, {encoder.num_layers} × {encoder.hidden_size}",
        "decoder": f"{decoder.cell}, {decoder.num_layers} × {decoder.hidden_size}",
        "weights": _count(facts.get("parameters")),
        "of update": _count(facts.get("update")),
        "precision in training": config.train.precision,
        "licence of the data": config.data.licence or "not stated",
    }
    if run:
        seconds = run.get("training_seconds")
        minutes = f"{seconds / 60:,.1f}" if isinstance(seconds, int | float) else "-"
        updates, tokens = _count(run.get("updates")), _count(run.get("tokens"))
        described["training"] = f"{updates} updates, {tokens} target tokens, {minutes} minutes"
    if environment:
        versions = {"nmt": facts.get("nmt_version", "-"), **environment}
        described["trained with"] = ", ".join(f"{key} {versions[key]}" for key in ENVIRONMENT if key in versions)
    return described


def _count(value: Any) -> str:
    """A number of a run's or model's own facts, which may be damaged."""
    return f"{value:,}" if isinstance(value, int) else "-"


def _read(path: Path) -> dict[str, Any]:
    """A JSON file of a run; empty if the model has been taken out of its run."""
    try:
        value = read_json(path)
    except (DataError, OSError):
        return {}
    return value if isinstance(value, dict) else {}


def _scores(found: ModelEvaluation) -> Iterator[Block]:
    yield f"{found.what}: {found.sentences:,} sentences with {found.references:,} references, beam {found.beam_size}."
    yield from found.warnings
    yield str(found.seen)
    rows = [
        [each.name, f"{each.value:.2f}", _interval(each.confidence), each.signature] for each in found.scores.values()
    ]
    yield Table(["", "score", "95% interval", "signature"], rows, "lrrl")
    if found.comparisons:
        yield replace(found.comparison_table, caption="Compared with others")
        yield (
            "p is the probability of a difference this large if both were equally good, by a paired bootstrap; it says "
            "nothing of how another seed would have turned out."
        )
    yield str(found.diagnosis)
    for name, measures in (("references", found.teacher_forced), ("its own words", found.free_running)):
        if measures is not None:
            yield f"reading {name}: {measures}"
    if found.short_inputs is not None:
        yield str(found.short_inputs)


def _interval(confidence: float | None) -> str:
    return "-" if confidence is None else f"± {confidence:.2f}"


def _curves(models: Mapping[str, SavedModel]) -> Iterator[Picture]:
    for name, saved in models.items():
        path = saved.path.parent / CURVE
        if saved.path.name == "best" and path.is_file() and not path.is_symlink():
            yield Picture(f"Learning curve of {name}", path.read_bytes())


def _breakdown(found: ModelEvaluation) -> Iterator[Chapter]:
    if found.breakdown is None:
        return
    kept = replace(found.breakdown, differences=[])
    for section in kept.sections():
        yield Chapter(section.title, list(section.blocks))


def _extremes(found: ModelEvaluation, examples: Sequence[Example], rules: ScoringRules) -> Iterator[Block]:
    scores = sentence_scores(examples, found.hypotheses, rules)
    order = sorted(range(len(scores)), key=lambda number: scores[number])
    yield "Marked are words that only the translation has; struck out are those of the nearest reference that it lacks."
    for name, chosen in (("worst", order[:SHOWN]), ("best", order[: -SHOWN - 1 : -1])):
        for number in chosen:
            example, text = examples[number], found.hypotheses[number]
            alone = [Example(example.src, (reference,)) for reference in example.references]
            close = sentence_scores(alone, [text] * len(alone), rules)
            nearest = example.references[close.index(max(close))]
            rows = [("reference", plain(nearest)), ("translation", mark_words(nearest, text))]
            yield Sentence(f"{name}: sentence {number + 1}, BLEU {scores[number]:.1f}", example.src, rows)


def _changes(found: ModelEvaluation) -> Iterator[Chapter]:
    for difference in found.breakdown.differences if found.breakdown else []:
        better, worse = difference.gaps
        names = difference.first, difference.second
        blocks: list[Block] = [
            _change(gap, name, names) for name, gaps in zip(names, (better, worse), strict=True) for gap in gaps[:SHOWN]
        ]
        yield Chapter(f"{difference.first} instead of {difference.second}", blocks)


def _change(gap: SentenceGap, better: str, names: tuple[str, str]) -> Sentence:
    first, second = names
    rows = [
        ("reference", plain(gap.reference)),
        (second, plain(gap.second)),
        (first, mark_words(gap.second, gap.first)),
    ]
    return Sentence(f"{better} is better, by {abs(gap.gap):.1f} BLEU", gap.source, rows)


def _attention(found: ModelEvaluation, translator: Translator, examples: Sequence[Example]) -> Iterator[Block]:
    if not found.attention:
        return
    several = len(found.attention) > 1
    for number, head in enumerate(found.attention, 1):
        yield f"Head {number}: {head}." if several else f"{str(head)[0].upper()}{str(head)[1:]}."
    yield tabulate_lengths(found.attention_by_length)
    chosen = [examples[number].src for number in evenly_spaced(len(examples), MAPS)]
    for source, translation in zip(chosen, translator.translate(chosen, with_alignment=True), strict=True):
        if translation.alignment is None or not translation.alignment.any():
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "map.png"
            draw_alignment(translation.alignment, translation.src_tokens, translation.tokens, path)
            yield Picture(f"{source} → {translation.text}", path.read_bytes())


def _configs(models: Mapping[str, SavedModel]) -> Iterator[Block]:
    (first_name, first), *others = models.items()
    for name, other in others:
        differing = differing_keys(other.config, first.config)
        rows = [[each.replace(" there,", f" in {name},").replace(" here)", f" in {first_name})")] for each in differing]
        yield Table([""], rows, "l", f"Differences from {name}") if rows else f"The config of {name} is the same."
    yield Text(dump_config(first.config))


def _data(saved: SavedModel) -> Iterator[Chapter]:
    """The data report, if the data is still there."""
    try:
        directory = find_data(saved)
        sections = read_report(directory)
    except (CheckpointError, DataError) as error:
        yield Chapter("Data", [f"left out: {error}"])
        return
    for section in sections:
        picture = directory / section.picture if section.picture else None
        shown = [Picture(section.title, picture.read_bytes())] if picture is not None and picture.is_file() else []
        yield Chapter(f"Data: {section.title.lower()}", [*section.blocks, *shown])
