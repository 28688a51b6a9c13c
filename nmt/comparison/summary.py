"""Tables of a comparison, for people and for programs."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

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
INSIGNIFICANT = "{:+z.2f} ({:.3f})"
"""Form of a difference and its p-value that is not significant."""
NAMED = "{:+z.2f} ({:.3f}, {})"
"""Form of a significant one in a table, with `better` or `worse`."""
BOLD = r"\textbf{{{:+z.2f} ({:.3f})}}"
"""Form of a significant one in LaTeX."""
COLUMNS: dict[str, tuple[str, ...]] = {
    "bleu": ("scores", "bleu", "value"),
    "bleu_confidence": ("scores", "bleu", "confidence"),
    "chrf": ("scores", "chrf", "value"),
    "chrf_confidence": ("scores", "chrf", "confidence"),
    "chrf++": ("scores", "chrf++", "value"),
    "ter": ("scores", "ter", "value"),
    "perplexity": ("teacher_forced", "perplexity"),
    "length_ratio": ("diagnosis", "length_ratio"),
    "parameters": ("parameters",),
    "updates": ("updates",),
    "epochs": ("epochs",),
    "tokens": ("tokens",),
    "training_seconds": ("training_seconds",),
    "tokens_per_second": ("tokens_per_second",),
    "peak_mib": ("peak_mib",),
    "sentences_per_second": ("sentences_per_second",),
    "precision": ("precision",),
    "finished": ("finished",),
}
"""Columns of the CSV file, besides name, seed, p-value and attention, with the keys of their values in a result."""


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
    """How the scores were measured, as a text beside the table; `missing` are names of trials without a result."""
    baseline = rows[0].name
    first = rows[0].results[0]
    of_config = f" of {first['config']}" if "config" in first else ""
    all_seeds = {result["seed"] for row in rows for result in row.results}
    seeds = ", ".join(map(str, sorted(all_seeds)))
    bleu = " or ".join(_signatures(rows, "bleu"))
    chrf = " or ".join(_signatures(rows, "chrf"))
    without_result = f" Without a result: {'; '.join(missing)}." if missing else ""
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
        f"changes is in the deviation (SD).{without_result}"
    )


def _signatures(rows: Sequence[Row], metric: str) -> list[str]:
    """The different signatures of a metric, sorted."""
    signatures = set()
    for row in rows:
        for result in row.results:
            signatures.add(str(dig(result, ("scores", metric, "signature"))))
    return sorted(signatures)


def score_table(rows: Sequence[Row]) -> Table:
    """BLEU and chrF with intervals, significance, the deviation over seeds, and perplexity.

    Where a config has several seeds, the mean difference over them stands beside those of each.
    """
    has_seeds = any(row.over_seeds for row in rows)
    lines = []
    for row in rows:
        cells = {
            "config": row.name,
            "seeds": str(len(row.results)),
            "BLEU": _with_interval(row, "bleu"),
            "difference (p)": ", ".join(_differences(row, rows[0], NAMED)),
        }
        if has_seeds:
            cells[OVER_SEEDS] = _mean_difference(row, NAMED)
        cells["std over seeds"] = _number(row.deviation("scores", "bleu", "value"), ".2f")
        cells["chrF"] = _with_interval(row, "chrf")
        cells["perplexity"] = _number(row.mean("teacher_forced", "perplexity"), ".2f")
        cells["length ratio"] = _number(row.mean("diagnosis", "length_ratio"), ".3f")
        lines.append(cells)
    header = list(lines[0])
    return Table(header, [list(cells.values()) for cells in lines], "l" + "r" * (len(header) - 1), whole="words")


def _differences(row: Row, first: Row, significant: str) -> list[str]:
    """For each seed, the difference in BLEU from the first config and its p-value, in this form if significant."""
    texts = []
    for difference, p in zip(row.differences(first), row.p_values, strict=True):
        if difference is None or p is None:
            texts.append(MISSING)
        else:
            texts.append(_difference(difference, p, significant))
    return texts


def _mean_difference(row: Row, significant: str) -> str:
    """The mean difference over seeds and its p-value, in this form if significant."""
    if row.over_seeds is None:
        return MISSING
    difference, p = row.over_seeds
    return _difference(difference, p, significant)


def _difference(difference: float, p: float, significant: str) -> str:
    form = significant if p < SIGNIFICANT else INSIGNIFICANT
    return form.format(difference, p, name_direction(difference))


def _with_interval(row: Row, metric: str) -> str:
    value = row.mean("scores", metric, "value")
    interval = row.mean("scores", metric, "confidence")
    text = _number(value, ".2f")
    return text if interval is None else f"{text} ± {interval:.2f}"


def _cost_table(rows: Sequence[Row]) -> Table:
    lines = []
    for row in rows:
        precisions = {result["precision"] or MISSING for result in row.results}
        cells = {
            "config": row.name,
            "M weights": _number(row.mean("parameters"), ".2f", 1e-6),
            "updates": _number(row.mean("updates"), ",.0f"),
            "epochs": _number(row.mean("epochs"), ".1f"),
            "minutes": _number(row.mean("training_seconds"), ".1f", 1 / 60),
            "tokens/s": _number(row.mean("tokens_per_second"), ",.0f"),
            "peak MiB": _number(row.mean("peak_mib"), ",.0f"),
            "sentences/s": _number(row.mean("sentences_per_second"), ",.0f"),
            "precision": ", ".join(sorted(precisions)),
        }
        lines.append(cells)
    header = list(lines[0])
    return Table(header, [list(cells.values()) for cells in lines], "lrrrrrrrl", whole="words")


def _attention_table(rows: Sequence[Row]) -> Table:
    cells = [[row.name, *(_attention(row, name) for name in LABELS)] for row in rows]
    return Table(["config", *LABELS.values()], cells, "l" + "r" * len(LABELS), whole="words")


def _attention(row: Row, name: str) -> str:
    middle = _mean_over_heads(row.results, name, "mean")
    deviation = _mean_over_heads(row.results, name, "deviation")
    return MISSING if middle is None else f"{middle:.3f} ± {deviation:.3f}"


def _mean_over_heads(results: Sequence[Result], name: str, part: str) -> float | None:
    """The mean over seeds and heads of a statistic's mean or deviation; None without attention."""
    values = [head[name][part] for result in results for head in result["attention"]]
    return sum(values) / len(values) if values else None


def _length_tables(rows: Sequence[Row]) -> Iterator[str | Table]:
    """BLEU and entropy by length; configs with other test sets, and so with other lengths, have tables of their own."""
    yield (
        "Words of the source, separated by spaces, in bins of about equal numbers of sentences (n). Columns marked "
        "joined are test pairs joined end to end. A bin of fewer than "
        f"{FEWEST} sentences is {MISSING}."
    )
    by_bins: dict[tuple[LengthBin, ...], list[Row]] = {}
    for row in rows:
        by_bins.setdefault(bins_of(row), []).append(row)
    for bins, same in by_bins.items():
        if not bins:
            continue
        header = ["config"]
        for length_bin in bins:
            joined = "joined " if length_bin.joined else ""
            header.append(f"{joined}{length_bin.name} (n={length_bin.sentences:,})")
        for key, caption in (("bleu", "BLEU"), ("entropy", "entropy of attention, nats")):
            cells = [[row.name, *(_number(value, ".2f") for value in lengths_of(row, key))] for row in same]
            yield Table(header, cells, "l" + "r" * len(bins), caption, whole="words")


class LengthBin(NamedTuple):
    """Sentences of a test set with sources of similar lengths.

    Attributes:
        name: The numbers of words of the sources.
        sentences: Number of sentences.
        joined: True if the sentences are test pairs joined end to end.
    """

    name: str
    sentences: int
    joined: bool


def bins_of(row: Row) -> tuple[LengthBin, ...]:
    """The bins of source lengths of a config's test set."""
    bins = row.results[0]["lengths"]
    return tuple(LengthBin(length_bin["name"], length_bin["sentences"], length_bin["joined"]) for length_bin in bins)


def lengths_of(row: Row, key: str) -> list[float | None]:
    """Mean over seeds of each bin of source lengths; None where a bin is too small, or there is no attention."""
    means: list[float | None] = []
    bins_of_seeds = [result["lengths"] for result in row.results]
    for same_bin in zip(*bins_of_seeds, strict=True):
        values = []
        for length_bin in same_bin:
            if length_bin[key] is not None and length_bin["sentences"] >= FEWEST:
                values.append(length_bin[key])
        means.append(sum(values) / len(values) if values else None)
    return means


def _number(value: float | None, format_: str, scale: float = 1) -> str:
    return MISSING if value is None else format(value * scale, format_)


def as_csv(rows: Sequence[Row]) -> str:
    """A line for each trial, with all numbers."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["name", "seed", "p_value", "difference", *COLUMNS, *(f"attention_{name}" for name in LABELS)])
    for row in rows:
        for result, p, difference in zip(row.results, row.p_values, row.differences(rows[0]), strict=True):
            values = [row.name, result["seed"], p, difference]
            values += [dig(result, path) for path in COLUMNS.values()]
            values += [_mean_over_heads([result], name, "mean") for name in LABELS]
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
        missing: Names of trials without a result, for the caption.
    """
    table = score_table(rows)
    titles = {name: title for name, title in LATEX_COLUMNS.items() if name in table.header}
    lines = []
    for row, cells in zip(rows, table.rows, strict=True):
        escaped = {name: cell.translate(ESCAPES) for name, cell in zip(table.header, cells, strict=True)}
        # Significant differences are bold in place of a word: the sign is the direction.
        seeds = _differences(row, rows[0], BOLD)
        escaped["difference (p)"] = seeds[0] if len(seeds) == 1 else r"\shortstack[r]{" + r"\\".join(seeds) + "}"
        if OVER_SEEDS in titles:
            escaped[OVER_SEEDS] = _mean_difference(row, BOLD)
        line = []
        for name in titles:
            is_number = name != "config"
            line.append(escaped[name].replace("-", "$-$") if is_number else escaped[name])
        lines.append(_latex_line(line))
    return "\n".join(
        [
            r"% \usepackage{booktabs}",
            r"\begin{table}",
            r"\centering\small\tabcolsep=4pt",
            rf"\caption{{{_note(rows, missing).translate(ESCAPES)}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(titles) - 1)}}}",
            r"\toprule",
            _latex_line(titles.values()),
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _latex_line(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"
