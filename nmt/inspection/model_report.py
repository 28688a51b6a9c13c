"""The report on a model, and its comparison with others."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from nmt.config import differing_keys, dump_config
from nmt.corpus.data_report import read_report
from nmt.corpus.splitting import Example
from nmt.evaluation.attention_statistics import tabulate_lengths
from nmt.evaluation.breakdown import Breakdown
from nmt.evaluation.input_text import evenly_spaced
from nmt.evaluation.metrics import ScoringRules, sentence_scores
from nmt.evaluation.model_evaluation import ModelEvaluation, evaluate_model
from nmt.inspection.explorer_data import name_models
from nmt.inspection.report_blocks import Block, Chapter, Picture, Preformatted, Sentence, mark_words, plain, render
from nmt.layers.attention.catalog import describe_mechanism
from nmt.models.run_records import MARKER as RUN_MARKER
from nmt.models.run_records import find_data
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
    evaluate = partial(evaluate_model, [saved], translator, examples, breakdown=True, attention=True, short_inputs=True)
    evaluation = evaluate(what=what, name=name, against=against, data=data)
    breakdown = evaluation.breakdown
    assert breakdown is not None
    rules = ScoringRules.for_text(saved.config.text, saved.config.data.languages[1])
    by_name = {model: its_files for model, (its_files, _) in named.items()}
    chapters = [
        Chapter("Models" if others else "Model", [_tabulate_models(by_name)]),
        Chapter("Scores", list(_score_blocks(evaluation))),
        Chapter("Training", list(_curves(by_name))),
        *(Chapter(section.title, list(section.blocks)) for section in replace(breakdown, differences=[]).sections()),
        Chapter("Best and worst sentences", list(_extremes(evaluation, examples, rules))),
        *_changes(breakdown),
        Chapter("Attention", list(_attention(evaluation, translator, examples))),
        Chapter("Config", list(_configs(by_name))),
        *_data(saved),
    ]
    return render(title, [chapter for chapter in chapters if chapter.blocks])


def _tabulate_models(models: Mapping[str, SavedModel]) -> Table:
    columns = [_describe_model(saved) for saved in models.values()]
    rows = [[label, *(column.get(label, "-") for column in columns)] for label in columns[0]]
    return Table(["", *models], rows, "l" * (1 + len(models)))


def _describe_model(saved: SavedModel) -> dict[str, str]:
    metadata, config = saved.metadata, saved.config
    run = _read_run_json(saved.path.parent / RUN_MARKER)
    environment = _read_run_json(saved.path.parent / "environment.json")
    attention, equation = describe_mechanism(config.model)
    described = {
        "config": config.name,
        "languages": " to ".join(config.data.languages),
        "attention": attention,
        "equation": equation,
        "encoder": config.model.encoder.summary,
        "decoder": config.model.decoder.summary,
        "weights": _count(metadata.get("parameters")),
        "of update": _count(metadata.get("update")),
        "precision in training": config.train.precision,
        "licence of the data": config.data.licence or "not stated",
    }
    if run:
        seconds = run.get("training_seconds")
        minutes = f"{seconds / 60:,.1f}" if isinstance(seconds, int | float) else "-"
        updates, tokens = _count(run.get("updates")), _count(run.get("tokens"))
        described["training"] = f"{updates} updates, {tokens} target tokens, {minutes} minutes"
    if environment:
        versions = {"nmt": metadata.get("nmt_version", "-"), **environment}
        described["trained with"] = ", ".join(f"{key} {versions[key]}" for key in ENVIRONMENT if key in versions)
    return described


def _count(value: Any) -> str:
    """A number of the metadata of a run or model, which may be damaged."""
    return f"{value:,}" if isinstance(value, int) else "-"


def _read_run_json(path: Path) -> dict[str, Any]:
    """A JSON file of a run; empty if the model has been taken out of its run."""
    try:
        value = read_json(path)
    except (DataError, OSError):
        return {}
    return value if isinstance(value, dict) else {}


def _score_blocks(evaluation: ModelEvaluation) -> Iterator[Block]:
    yield (
        f"{evaluation.what}: {evaluation.sentences:,} sentences with {evaluation.references:,} references, "
        f"beam {evaluation.beam_size}."
    )
    yield from evaluation.warnings
    yield str(evaluation.seen)
    rows = []
    for score in evaluation.scores.values():
        interval = "-" if score.confidence is None else f"± {score.confidence:.2f}"
        rows.append([score.name, f"{score.value:.2f}", interval, score.signature])
    yield Table(["", "score", "95% interval", "signature"], rows, "lrrl")
    if evaluation.comparisons:
        yield replace(evaluation.comparison_table, caption="Compared with others")
        yield (
            "p is the probability of a difference this large if both were equally good, by a paired bootstrap; it says "
            "nothing of how another seed would have turned out."
        )
    yield str(evaluation.diagnosis)
    for name, measures in (("references", evaluation.teacher_forced), ("its own words", evaluation.free_running)):
        if measures is not None:
            yield f"reading {name}: {measures}"
    if evaluation.short_inputs is not None:
        yield str(evaluation.short_inputs)


def _curves(models: Mapping[str, SavedModel]) -> Iterator[Picture]:
    for name, saved in models.items():
        path = saved.path.parent / CURVE
        if saved.path.name == "best" and path.is_file() and not path.is_symlink():
            yield Picture(f"Learning curve of {name}", path.read_bytes())


def _extremes(evaluation: ModelEvaluation, examples: Sequence[Example], rules: ScoringRules) -> Iterator[Block]:
    scores = sentence_scores(examples, evaluation.hypotheses, rules)
    order = sorted(range(len(scores)), key=lambda number: scores[number])
    yield "Marked are words that only the translation has; struck out are those of the nearest reference that it lacks."
    for name, chosen in (("worst", order[:SHOWN]), ("best", order[: -SHOWN - 1 : -1])):
        for number in chosen:
            example, text = examples[number], evaluation.hypotheses[number]
            alone = [Example(example.src, (reference,)) for reference in example.references]
            close = sentence_scores(alone, [text] * len(alone), rules)
            nearest = example.references[close.index(max(close))]
            rows = [("reference", plain(nearest)), ("translation", mark_words(nearest, text))]
            yield Sentence(f"{name}: sentence {number + 1}, BLEU {scores[number]:.1f}", example.src, rows)


def _changes(breakdown: Breakdown) -> Iterator[Chapter]:
    for difference in breakdown.differences:
        first, second = difference.first, difference.second
        blocks = []
        for better, gaps in zip((first, second), difference.gaps, strict=True):
            for gap in gaps[:SHOWN]:
                rows = [("reference", plain(gap.reference)), (second, plain(gap.second))]
                rows.append((first, mark_words(gap.second, gap.first)))
                note = f"{better} is better, by {abs(gap.gap):.1f} BLEU"
                blocks.append(Sentence(note, gap.source, rows))
        yield Chapter(f"{first} instead of {second}", blocks)


def _attention(evaluation: ModelEvaluation, translator: Translator, examples: Sequence[Example]) -> Iterator[Block]:
    if not evaluation.attention:
        return
    several = len(evaluation.attention) > 1
    for number, head in enumerate(evaluation.attention, 1):
        yield f"Head {number}: {head}." if several else f"{str(head)[0].upper()}{str(head)[1:]}."
    yield tabulate_lengths(evaluation.attention_by_length)
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
        rows = [[line.replace(" there,", f" in {name},").replace(" here)", f" in {first_name})")] for line in differing]
        yield Table([""], rows, "l", f"Differences from {name}") if rows else f"The config of {name} is the same."
    yield Preformatted(dump_config(first.config))


def _data(saved: SavedModel) -> Iterator[Chapter]:
    """The data report, if the data is still there."""
    try:
        directory = find_data(saved)
        sections = read_report(directory)
    except (CheckpointError, DataError) as error:
        yield Chapter("Data", [f"left out: {error}"])
        return
    for section in sections:
        picture = directory / section.picture
        shown = [Picture(section.title, picture.read_bytes())] if picture.is_file() else []
        yield Chapter(f"Data: {section.title.lower()}", [*section.blocks, *shown])
