"""Tables of a comparison, for people and for programs."""

import csv
import io
from collections.abc import Iterator, Sequence

from nmt.comparison.results import Result, Row, dig
from nmt.evaluation.attention_statistics import LABELS
from nmt.evaluation.breakdown import FEWEST
from nmt.evaluation.metrics import SIGNIFICANT, name_direction
from nmt.evaluation.model_evaluation import MAX_TESTED
from nmt.evaluation.several_seeds import TRIALS
from nmt.system.tables import ReportSection, Table

OVER_SEEDS = "mean difference (p)"
"""Title of the column of differences over all seeds."""
SCORES = "bleu.png"
CURVES = "curves.png"
LENGTHS = "lengths.png"
MISSING = "-"
COLUMNS: dict[str, tuple[str, ...]] = {
    "bleu": ("scores", "bleu", "value"),
    "bleu_confidence": ("scores", "bleu", "confidence"),
    "chrf": ("scores", "chrf", "value"),
    "chrf_confidence": ("scores", "chrf", "confidence"),
    "chrf++": ("scores", "chrf++", "value"),
    "ter": ("scores", "ter", "value"),
    "perplexity": ("teacher_forced", "perplexity"),
    "length_ratio": ("diagnosis", "length_ratio"),
    **{key: (key,) for key in ("parameters", "updates", "epochs", "tokens", "training_seconds", "tokens_per_second")},
    **{key: (key,) for key in ("peak_mib", "sentences_per_second", "precision", "finished")},
}
"""Columns of the CSV file, besides name, seed, p-value and attention."""


def comparison_sections(rows: Sequence[Row], missing: Sequence[str] = ()) -> list[ReportSection]:
    """The tables of `table.md`: scores, cost, attention, and by source length; which trials have no result."""
    return [
        ReportSection("Scores", [_note(rows, missing), PERPLEXITIES, score_table(rows)], SCORES),
        ReportSection("Cost", [COST, _cost_table(rows)], CURVES),
        ReportSection("Attention", [ATTENDING, _attention_table(rows)]),
        ReportSection("By source length", list(_length_tables(rows)), LENGTHS),
    ]


PERPLEXITIES = "Perplexities are per token, so they can be compared only between equal vocabularies."
COST = (
    "Training time is without validation. Speed of training is in target tokens, that of translation in sentences of "
    "the test set with the beam of the config. Peak memory is that of the training process: what it allocated on a "
    "GPU, or else resident memory. The learning curves are those of the first seed, and their time includes validation."
)
ATTENDING = (
    "Mean and standard deviation over the steps of all translations, averaged over heads and seeds; entropy in nats. "
    "Coverage and diagonality are over sentences."
)


def _note(rows: Sequence[Row], missing: Sequence[str]) -> str:
    baseline = rows[0].name
    first = rows[0].results[0]
    of_config = f" of {first['config']}" if "config" in first else ""
    seeds = ", ".join(map(str, sorted({result["seed"] for row in rows for result in row.results})))
    bleu, chrf = (" or ".join(_signatures(rows, metric)) for metric in ("bleu", "chrf"))
    over_seeds = ""
    if any(row.over_seeds for row in rows):
        over_seeds = (
            f" The mean difference over seeds has p by approximate randomisation of {TRIALS:,} trials, stratified by "
            "seed, in which a sentence is exchanged with all seeds or none: what another test set would change."
        )
    return (
        f"{first['sentences']:,} sentences of {first['split']}{of_config}, beam {first['beam_size']}, seeds {seeds}. "
        f"BLEU is {bleu}. chrF is {chrf}. Scores are means over seeds, ± half of the 95% interval of a bootstrap over "
        f"sentences. Differences in BLEU are from {baseline} with the same seed, with two-sided p by a paired "
        f"bootstrap, marked (better, worse, bold) below {SIGNIFICANT}; {MISSING} is {baseline} itself, another test "
        f"set or scoring, a seed without {baseline}, or over {MAX_TESTED:,} sentences.{over_seeds} What another seed "
        "changes is in the deviation (SD)." + (f" Without a result: {'; '.join(missing)}." if missing else "")
    )


def _signatures(rows: Sequence[Row], metric: str) -> list[str]:
    paths = (dig(result, ("scores", metric, "signature")) for row in rows for result in row.results)
    return sorted({str(signature) for signature in paths})


def score_table(rows: Sequence[Row]) -> Table:
    """BLEU and chrF with intervals, significance, the deviation over seeds, and perplexity.

    Where a config has several seeds, the mean difference over them stands beside those of each.
    """
    over_seeds = [OVER_SEEDS] if any(row.over_seeds for row in rows) else []
    header = ["config", "seeds", "BLEU", "difference (p)", *over_seeds, "std over seeds", "chrF", "perplexity"]
    header.append("length ratio")
    cells = [
        [
            row.name,
            str(len(row.results)),
            _with_interval(row, "bleu"),
            ", ".join(_differences(row, rows[0], "{:+z.2f} ({:.3f}, {})")),
            *([_mean_difference(row, "{:+z.2f} ({:.3f}, {})")] if over_seeds else []),
            _number(row.deviation("scores", "bleu", "value"), ".2f"),
            _with_interval(row, "chrf"),
            _number(row.mean("teacher_forced", "perplexity"), ".2f"),
            _number(row.mean("diagnosis", "length_ratio"), ".3f"),
        ]
        for row in rows
    ]
    return Table(header, cells, "l" + "r" * (len(header) - 1), whole="words")


def _differences(row: Row, first: Row, significant: str) -> Iterator[str]:
    """For each seed, the difference in BLEU from the first config and its p-value, in this form if significant."""
    for difference, p in zip(row.differences(first), row.p_values, strict=True):
        if difference is None or p is None:
            yield MISSING
        else:
            form = significant if p < SIGNIFICANT else "{:+z.2f} ({:.3f})"
            yield form.format(difference, p, name_direction(difference))


def _mean_difference(row: Row, significant: str) -> str:
    """The mean difference over seeds and its p-value, in this form if significant."""
    if row.over_seeds is None:
        return MISSING
    difference, p = row.over_seeds
    form = significant if p < SIGNIFICANT else "{:+z.2f} ({:.3f})"
    return form.format(difference, p, name_direction(difference))


def _with_interval(row: Row, metric: str) -> str:
    value = row.mean("scores", metric, "value")
    interval = row.mean("scores", metric, "confidence")
    return _number(value, ".2f") + ("" if interval is None else f" ± {interval:.2f}")


def _cost_table(rows: Sequence[Row]) -> Table:
    columns = {
        "M weights": ("parameters", 1e-6, ".2f"),
        "updates": ("updates", 1, ",.0f"),
        "epochs": ("epochs", 1, ".1f"),
        "minutes": ("training_seconds", 1 / 60, ".1f"),
        "tokens/s": ("tokens_per_second", 1, ",.0f"),
        "peak MiB": ("peak_mib", 1, ",.0f"),
        "sentences/s": ("sentences_per_second", 1, ",.0f"),
    }
    cells = [
        [
            row.name,
            *(_number(row.mean(name), format_, scale) for name, scale, format_ in columns.values()),
            ", ".join(sorted({result["precision"] or MISSING for result in row.results})),
        ]
        for row in rows
    ]
    return Table(["config", *columns, "precision"], cells, "l" + "r" * len(columns) + "l", whole="words")


def _attention_table(rows: Sequence[Row]) -> Table:
    cells = [[row.name, *(_attention(row, name) for name in LABELS)] for row in rows]
    return Table(["config", *LABELS.values()], cells, "l" + "r" * len(LABELS), whole="words")


def _attention(row: Row, name: str) -> str:
    middle, deviation = (_mean_over_heads(row.results, name, part) for part in ("mean", "deviation"))
    return MISSING if middle is None else f"{middle:.3f} ± {deviation:.3f}"


def _mean_over_heads(results: Sequence[Result], name: str, part: str) -> float | None:
    values = [head[name][part] for result in results for head in result["attention"]]
    return sum(values) / len(values) if values else None


def _length_tables(rows: Sequence[Row]) -> Iterator[str | Table]:
    """BLEU and entropy by length; configs with other test sets, and so with other lengths, have tables of their own."""
    yield (
        "Words of the source, separated by spaces, in bins of about equal numbers of sentences (n). Columns marked "
        "joined are test pairs joined end to end. A bin of fewer than "
        f"{FEWEST} sentences is {MISSING}."
    )
    for bins in filter(None, dict.fromkeys(map(bins_of, rows))):
        header = ["config", *(f"{'joined ' if joined else ''}{name} (n={n:,})" for name, n, joined in bins)]
        for key, caption in (("bleu", "BLEU"), ("entropy", "entropy of attention, nats")):
            same = [row for row in rows if bins_of(row) == bins]
            cells = [[row.name, *(_number(value, ".2f") for value in lengths_of(row, key))] for row in same]
            yield Table(header, cells, "l" + "r" * len(bins), caption, whole="words")


def bins_of(row: Row) -> tuple[tuple[str, int, bool], ...]:
    """Words of the sources, number of sentences, and whether these are joined, of each bin."""
    return tuple((bin_["name"], bin_["sentences"], bin_["joined"]) for bin_ in row.results[0]["lengths"])


def lengths_of(row: Row, key: str) -> list[float | None]:
    """Mean over seeds of each bin of source lengths; None where a bin is too small, or there is no attention."""
    columns = zip(*(result["lengths"] for result in row.results), strict=True)
    known = [[bin[key] for bin in bins if bin[key] is not None and bin["sentences"] >= FEWEST] for bins in columns]
    return [sum(values) / len(values) if values else None for values in known]


def _number(value: float | None, format_: str, scale: float = 1) -> str:
    return MISSING if value is None else format(value * scale, format_)


def as_csv(rows: Sequence[Row]) -> str:
    """A line for each trial, with all numbers."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["name", "seed", "p_value", "difference", *COLUMNS, *(f"attention_{name}" for name in LABELS)])
    for row in rows:
        for result, *test in zip(row.results, row.p_values, row.differences(rows[0]), strict=True):
            attention = [_mean_over_heads([result], name, "mean") for name in LABELS]
            values = [row.name, result["seed"], *test, *(dig(result, path) for path in COLUMNS.values()), *attention]
            writer.writerow(["" if value is None else value for value in values])
    return file.getvalue()


LATEX_COLUMNS = {"config": "Config", "seeds": "Seeds", "BLEU": "BLEU", "difference (p)": r"$\Delta$BLEU ($p$)"}
LATEX_COLUMNS |= {OVER_SEEDS: r"Mean $\Delta$ ($p$)", "std over seeds": "SD", "chrF": "chrF"}
"""Columns of the score table for papers, if they are there, and their titles."""
_ESCAPES = {character: f"\\{character}" for character in "&%$#_{}"}
_ESCAPES |= {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"}
ESCAPES = str.maketrans(_ESCAPES | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar\allowbreak{}"})
"""Characters that mean something in LaTeX, and how they are written."""


def as_latex(rows: Sequence[Row], missing: Sequence[str] = ()) -> str:
    """The scores as a table for papers, with significant differences in bold; it needs the package booktabs.

    Args:
        rows: The configs.
        missing: What trials without a result are called, for the caption.
    """
    table = score_table(rows)
    titles = {name: title for name, title in LATEX_COLUMNS.items() if name in table.header}
    columns = [table.header.index(name) for name in titles]
    lines = [[row[column].translate(ESCAPES) for column in columns] for row in table.rows]
    for line, row in zip(lines, rows, strict=True):  # the sign says the direction in less space
        seeds = [*_differences(row, rows[0], r"\textbf{{{:+z.2f} ({:.3f})}}")]
        if OVER_SEEDS in titles:
            line[4] = _mean_difference(row, r"\textbf{{{:+z.2f} ({:.3f})}}")
        line[3] = seeds[0] if len(seeds) == 1 else r"\shortstack[r]{" + r"\\".join(seeds) + "}"
    body = [[name, *(cell.replace("-", "$-$") for cell in cells)] for name, *cells in lines]
    header, *written = [" & ".join(line) + r" \\" for line in ([*titles.values()], *body)]
    caption = rf"\caption{{{_note(rows, missing).translate(ESCAPES)}}}"
    begin = [
        r"\begin{table}",
        r"\centering\small\tabcolsep=4pt",
        caption,
        rf"\begin{{tabular}}{{l{'r' * (len(columns) - 1)}}}",
    ]
    end = [r"\bottomrule", r"\end{tabular}", r"\end{table}", ""]
    return "\n".join([r"% \usepackage{booktabs}", *begin, r"\toprule", header, r"\midrule", *written, *end])
