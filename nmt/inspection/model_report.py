"""The report on a model, and its comparison with others."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from nmt.config import differing_keys, dump_config
from nmt.corpus.data_report import read_report
from nmt.corpus.example import Example
from nmt.corpus.training_pairs import evenly_spaced
from nmt.drawing.heatmap import make_html_heatmap
from nmt.evaluation.attention_statistics import LABELS, READING, SHARP, tabulate_lengths
from nmt.evaluation.breakdown import Breakdown
from nmt.evaluation.input_text import EvaluationSet
from nmt.evaluation.metrics import SIGNIFICANT, ScoringRules, sentence_scores
from nmt.evaluation.model_evaluation import Measures, ModelEvaluation, evaluate_model
from nmt.inspection.explorer_data import name_models
from nmt.inspection.html_page import Page
from nmt.inspection.report_blocks import Block, Chapter, Figure, Preformatted, Sentence, mark_words, render
from nmt.models.card import count, describe_model
from nmt.models.lookup import describe_stop, find_data, read_value
from nmt.models.storage import ModelFolder
from nmt.system.errors import CheckpointError, DataError
from nmt.system.files import read_bytes
from nmt.system.limits import MIB
from nmt.system.tables import Table
from nmt.text.direction import Direction
from nmt.translation.translator import Translator

SHOWN = 10
"""Best, worst and most changed sentences."""
MAPS = 3
"""Sentences whose attention is drawn."""
CURVE = "learning_curve.png"
MAX_PICTURE = 16 * MIB
"""Bytes of a picture of a run or of data."""
ENVIRONMENT = ("python", "platform", "device", "device_name", "threads")
QUALITY = {50: "very good", 40: "good", 30: "understandable", 20: "clear in gist, but faulty", 10: "hard to understand"}
"""The quality of translations by the BLEU from which it holds, a rule of thumb of Google's AutoML Translation."""
MEANINGS = {
    "BLEU": "agreement with the references in words and groups of two to four words; 100 is word for word",
    "chrF": "agreement in groups of one to six letters; 100 is letter for letter",
    "chrF++": "the same with words and pairs of words",
    "TER": "words to insert, delete, replace or move to reach a reference, per 100 of its words; less is better",
    **{LABELS[name]: text for name, text in READING.items()},
}
"""Definitions of measures, by their name."""
SCALE = "The scale of all maps, in which heads are averaged; point at a cell to read its weight"

Opened = tuple[ModelFolder, Translator]


def make_report(
    models: Sequence[Opened],
    text: EvaluationSet,
    title: str,
) -> Page:
    """Evaluate a model, compare it with others, and make the report.

    Args:
        models: The model, and those to compare it with.
        text: The test set.
        title: Title of the page.
    """
    named = name_models(models)
    (name, (saved, translator)), *others = named.items()
    against = {name: ([its_files], its_translator) for name, (its_files, its_translator) in others}
    measures = Measures(breakdown=True, attention=True, short_inputs=True)
    evaluation = evaluate_model([saved], translator, text, measures, name=name, against=against)
    breakdown = evaluation.breakdown
    assert breakdown is not None
    rules = ScoringRules.for_config(saved.config)
    by_name = {model: its_files for model, (its_files, _) in named.items()}
    chapters = [
        Chapter("Scores", list(_score_blocks(evaluation))),
        Chapter("Training", list(_curves(by_name))),
        *(Chapter(section.title, list(section.blocks)) for section in replace(breakdown, differences=[]).sections()),
        Chapter("Best and worst sentences", list(_extremes(evaluation, text.examples, rules))),
        *_changes(breakdown),
        Chapter("Attention", list(_attention(evaluation, translator, text.examples))),
        Chapter("Models" if others else "Model", [_tabulate_models(by_name)]),
        Chapter("Config", list(_configs(by_name)), folded=True),
        *_data(saved),
    ]
    lead = _lead(name, saved, evaluation)
    return render(title, lead, [chapter for chapter in chapters if chapter.blocks])


def _lead(name: str, saved: ModelFolder, evaluation: ModelEvaluation) -> list[str]:
    """Sentences on the model: its training text and its quality, a training that stopped early, its date if known."""
    config = saved.config
    described = _describe_model(saved)
    direction = Direction.of(config.data)
    quality = next((words for least, words in QUALITY.items() if evaluation.bleu >= least), "hardly usable")
    new = " new" if evaluation.seen.sentences == 0 else ""
    sentences = (
        f"{name} is a {config.model.family} model that learned to translate {direction.name} from sentences and "
        f"their translations: {described['trained on']}. By a rule of thumb, its own translations of "
        f"{evaluation.sentences:,}{new} sentences ({evaluation.what}) are {quality}: {evaluation.bleu:.1f} of 100 "
        f"BLEU, and {evaluation.diagnosis.exact:,} are word for word the expected ones."
    )
    if stop := describe_stop(saved.path):
        sentences += f" {stop.capitalize()}."
    short = evaluation.short_inputs
    if short is not None and 2 * sum(short.passed.values()) < sum(short.of.values()):
        sentences += (
            f" Those are sentences like the ones that it learned from. It translates other text badly: of "
            f"{sum(short.of.values())} short inputs, {sum(short.passed.values())} are without a visible error."
        )
    return [sentences, *([f"Trained on {described['date']}."] if "date" in described else [])]


def _tabulate_models(models: Mapping[str, ModelFolder]) -> Table:
    columns = [_describe_model(saved) for saved in models.values()]
    labels = dict.fromkeys(label for column in columns for label in column)
    rows = [[label, *(column.get(label, "–") for column in columns)] for label in labels]
    return Table(["", *models], rows, "l" * (1 + len(models)))


def _describe_model(saved: ModelFolder) -> dict[str, str]:
    run = saved.path.parent
    described = {"config": saved.config.name}
    described |= describe_model(saved.config, saved.metadata, lambda source: Path(source).name)
    described["precision in training"] = saved.config.train.precision
    seconds, *counts = (read_value(run, name) for name in ("training_seconds", "updates", "tokens"))
    if isinstance(seconds, int | float):
        updates, tokens = map(count, counts)
        described["run"] = f"{updates} updates, {tokens} target tokens, {seconds / 60:,.1f} minutes"
    if time := read_value(run, "time"):
        described["date"] = str(time)[:10]
    environment = {name: read_value(run, name, "environment.json") for name in ENVIRONMENT}
    if machine := ", ".join(f"{name} {value}" for name, value in environment.items() if value is not None):
        described["trained with"] = machine
    return described


def _score_blocks(evaluation: ModelEvaluation) -> Iterator[Block]:
    yield (
        f"{evaluation.what}: {evaluation.sentences:,} sentences with {evaluation.references:,} references, "
        f"{evaluation.beam_size} hypotheses kept at each step of the search (beam); {evaluation.seen}."
    )
    yield from evaluation.warnings
    scores = evaluation.scores.values()
    intervals = ["–" if score.confidence is None else f"± {score.confidence:.2f}" for score in scores]
    numbers = {score.name: [f"{score.value:.2f}", half] for score, half in zip(scores, intervals, strict=True)}
    yield _define(numbers, ["score", "95% interval"], "Scores with 95% confidence intervals")
    if evaluation.comparisons:
        yield replace(evaluation.comparison_table, caption="Compared with others")
        yield (
            "p is the probability of a difference this large, in either direction, if both systems were equally good "
            f"(paired bootstrap). A system is called better or worse if p is below {SIGNIFICANT}. p does not tell how "
            "another seed would have turned out."
        )
    yield (
        f"Translations {evaluation.diagnosis}. Length ratio: words of the translations per word of the references. "
        "Unknown: tokens that the model has no word for. Repetitions: a word three times in a row, or two to four "
        "words twice, where no reference has that. Copies: equal to the source as no reference is. Empty: of a source "
        "with words."
    )
    for name, measures in (("the references", evaluation.teacher_forced), ("its own words", evaluation.free_running)):
        if measures is not None:
            yield f"Predicting the references, reading {name} before each token: {measures}."
    yield (
        "Loss is the mean of -ln p in nats per token, p being the probability that the model gives a token of the "
        "references; perplexity is e to the power of it; accuracy is the share of tokens that are most probable."
    )
    if evaluation.short_inputs is not None:
        yield (
            f"Judged by rules, {evaluation.short_inputs} pass: their translations repeat nothing, have a usual length, "
            "and have the words, numbers and names that they must have. Known words are common ones of Tatoeba; a "
            "model of another corpus may never have read them."
        )
    signatures = "; ".join(f"{score.name} {score.signature}" for score in scores)
    yield f"Signatures, which say how each score was computed, for repeating it: {signatures}."
    yield from (f"{name}: {overlap}." for name, overlap in evaluation.others_seen.items())


def _define(values: Mapping[str, Sequence[str]], header: Sequence[str], caption: str) -> Table:
    """Measures with their definitions."""
    rows = [[name, *cells, MEANINGS.get(name, "")] for name, cells in values.items()]
    return Table(["", *header, "what it is"], rows, f"l{'r' * len(header)}l", caption)


def _curves(models: Mapping[str, ModelFolder]) -> Iterator[Figure]:
    for name, saved in models.items():
        path = saved.path.parent / CURVE
        if saved.path.name == "best" and path.is_file() and not path.is_symlink():
            yield Figure.of_png(f"Learning curve of {name}", read_bytes(path, MAX_PICTURE, path.parent))


def _extremes(evaluation: ModelEvaluation, examples: Sequence[Example], rules: ScoringRules) -> Iterator[Block]:
    scores = sentence_scores(examples, evaluation.hypotheses, rules)
    order = sorted(range(len(scores)), key=lambda number: scores[number])
    yield "Marked are words that only the translation has; struck out are those of the nearest reference that it lacks."
    for name, chosen in (("worst", order[:SHOWN]), ("best", order[: -SHOWN - 1 : -1])):
        for number in chosen:
            example = examples[number]
            text = evaluation.hypotheses[number]
            alone = [Example(example.src, (reference,)) for reference in example.references]
            close = sentence_scores(alone, [text] * len(alone), rules)
            nearest = example.references[close.index(max(close))]
            rows = [("reference", mark_words(nearest, nearest)), ("translation", mark_words(nearest, text))]
            yield Sentence(f"{name}: sentence {number + 1}, BLEU {scores[number]:.1f}", example.src, rows)


def _changes(breakdown: Breakdown) -> Iterator[Chapter]:
    for difference in breakdown.differences:
        first = difference.first
        second = difference.second
        blocks = []
        for better, gaps in zip((first, second), difference.gaps, strict=True):
            for gap in gaps[:SHOWN]:
                texts = [("reference", gap.reference), (second, gap.second)]
                rows = [(label, mark_words(text, text)) for label, text in texts]
                rows.append((first, mark_words(gap.second, gap.first)))
                note = f"{better} is better, by {abs(gap.gap):.1f} BLEU"
                blocks.append(Sentence(note, gap.source, rows))
        yield Chapter(f"{first} instead of {second}", blocks)


def _attention(evaluation: ModelEvaluation, translator: Translator, examples: Sequence[Example]) -> Iterator[Block]:
    if not (heads := evaluation.attention):
        return
    names = [f"head {number}" for number in range(1, len(heads) + 1)] if len(heads) > 1 else ["mean and deviation"]
    values = {label: [str(getattr(head, name)) for head in heads] for name, label in LABELS.items()}
    yield _define(values, names, "Where the decoder looks: mean ± standard deviation")
    yield tabulate_lengths(evaluation.attention_by_length)
    yield SHARP
    scale = [tenths / 10 for tenths in range(11)]
    yield Figure(SCALE, make_html_heatmap([scale], list(map(str, scale)), ["weight"]))
    chosen = [examples[number].src for number in evenly_spaced(len(examples), MAPS)]
    for source, translation in zip(chosen, translator.translate(chosen, with_alignment=True), strict=True):
        if translation.alignment is not None and translation.alignment.any():
            yield Figure(f"{source} → {translation.text}", make_html_heatmap(*translation.weights))


def _configs(models: Mapping[str, ModelFolder]) -> Iterator[Block]:
    (first_name, first), *others = models.items()
    for name, saved in others:
        differing = differing_keys(saved.config, first.config)
        rows = [[line.replace(" there,", f" in {name},").replace(" here)", f" in {first_name})")] for line in differing]
        yield Table([""], rows, "l", f"Differences from {name}") if rows else f"The config of {name} is the same."
    yield Preformatted(dump_config(first.config))


def _data(saved: ModelFolder) -> Iterator[Chapter]:
    """The data report, if the data is still there."""
    try:
        directory = find_data(saved)
        sections = read_report(directory)
        pictures = {
            section.picture: read_bytes(directory / section.picture, MAX_PICTURE, directory)
            for section in sections
            if section.picture and (directory / section.picture).is_file()
        }
    except (CheckpointError, DataError) as error:
        yield Chapter("Data", [f"left out: {error}"], folded=True)
        return
    for section in sections:
        picture = pictures.get(section.picture)
        shown = [] if picture is None else [Figure.of_png(section.title, picture)]
        yield Chapter(f"Data: {section.title.lower()}", [*section.blocks, *shown], folded=True)
