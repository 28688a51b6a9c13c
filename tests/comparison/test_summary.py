"""What the tables of a comparison say of given results."""

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import sacrebleu
from conftest import Terminal
from sacrebleu.significance import PairedTest

from nmt.comparison.results import Row, make_rows
from nmt.comparison.summary import as_csv, as_latex, comparison_sections, score_table
from nmt.comparison.trial import CONFIG
from nmt.config import Config, dump_config
from nmt.system.tables import Table
from nmt.system.terminal import write_table


def spread(mean: float) -> dict[str, float]:
    return {"mean": mean, "deviation": mean / 10}


def make_result(name: str = "a", seed: int = 1, bleu: float = 20.0, **changes: Any) -> dict[str, Any]:
    head = {key: spread(1.0) for key in ("entropy", "maximum", "clear", "coverage", "diagonality")}
    score = {"name": "BLEU", "signature": "s", "mean": bleu, "confidence": 1.5}
    return {
        "name": name,
        "seed": seed,
        "config": "tatoeba",
        "split": "test",
        "sentences": 40,
        "beam_size": 5,
        "scores": {"bleu": {**score, "value": bleu}, "chrf": {**score, "value": bleu + 20}},
        "diagnosis": {"length_ratio": 0.9},
        "teacher_forced": {"perplexity": 5.0},
        "attention": [head],
        "parameters": 2_000_000,
        "updates": 1234,
        "epochs": 2.5,
        "tokens": 1000,
        "training_seconds": 90.0,
        "tokens_per_second": 4321.0,
        "peak_mib": 500,
        "sentences_per_second": 250.0,
        "precision": "float32",
        "finished": "2020-01-01",
        "lengths": [
            {"name": "1-5", "sentences": 40, "joined": False, "bleu": bleu, "entropy": 0.5, "maximum": 0.9},
            {"name": "20-30", "sentences": 29, "joined": True, "bleu": None, "entropy": 2.0, "maximum": 0.3},
        ],
        **changes,
    }


ROWS = [
    Row("a", [make_result(seed=1, bleu=20), make_result(seed=2, bleu=23)], [None, None]),
    Row("b", [make_result("b", 1, 25, attention=[])], [0.012]),
]


def tables(rows: Sequence[Row] = ROWS) -> list[Table]:
    return [block for section in comparison_sections(rows) for block in section.blocks if isinstance(block, Table)]


@pytest.mark.parametrize(("columns", "last"), [(60, "std"), (80, "perplexity"), (200, "length")])
def test_no_word_of_a_table_is_broken_on_a_terminal(monkeypatch: pytest.MonkeyPatch, columns: int, last: str) -> None:
    """Each column has the width of its longest word at least: 23, 5, 5, 10, 5, 5, 10 and 6, and 2 between them."""
    monkeypatch.setenv("COLUMNS", str(columns))
    name = "attention.score=general"
    for table in tables([Row(name, ROWS[0].results, [0.5, 0.001]), Row("b", ROWS[1].results, [0.012])]):
        screen = Terminal()
        write_table(table, screen, indent=2)
        text = " ".join([*table.header, *(cell.replace(" ± ", " ±") for row in table.rows for cell in row)])
        assert {name, table.header[0]} <= set(screen.getvalue().split()) <= set(text.split())
        assert max(map(len, screen.getvalue().splitlines())) <= columns
        if "perplexity" in table.header:
            words = screen.getvalue().split()
            titles = ["seeds", "std", "chrF", "perplexity", "length"]
            assert [title for title in titles if title in words] == titles[: titles.index(last) + 1]


def test_scores_are_means_with_the_spread_over_seeds_beside_the_interval() -> None:
    rows = {row[0]: dict(zip(score_table(ROWS).header, row, strict=True)) for row in score_table(ROWS).rows}
    assert rows["a"]["BLEU"] == "21.50 ± 1.50"
    assert rows["a"]["std over seeds"] == "2.12"  # sqrt((1.5^2 + 1.5^2) / 1)
    assert rows["a"]["difference (p)"] == "-, -"
    assert rows["b"]["difference (p)"] == "+5.00 (0.012, better)"
    assert (rows["b"]["std over seeds"], rows["b"]["seeds"]) == ("-", "1")
    assert rows["b"]["chrF"] == "45.00 ± 1.50"


def test_each_difference_has_its_sign_and_is_better_or_worse_if_significant() -> None:
    """Against 20 with seed 1 and 23 with seed 2, in the order of the row's own seeds."""
    changed = [make_result("c", seed, bleu) for seed, bleu in ((2, 21.5), (1, 20.75), (3, 99), (1, 19.999))]
    row = score_table([*ROWS, Row("c", changed, [0.004, 0.18, None, 1.0])]).rows[2]
    assert row[3] == "-1.50 (0.004, worse), +0.75 (0.180), -, +0.00 (1.000)"
    assert Row("c", changed, [0.004, 0.18, None, 1.0]).as_json(ROWS[0])["differences"] == [
        -1.5,
        0.75,
        None,
        pytest.approx(-0.001),
    ]


def test_the_other_tables_have_a_row_for_each_config() -> None:
    _, cost, attention, bleu, entropy = tables()
    assert list(cost.rows[0]) == ["a", "2.00", "1,234", "2.5", "1.5", "4,321", "500", "250", "float32"]
    assert list(attention.rows[0]) == ["a", *["1.000 ± 0.100"] * 5]
    assert list(attention.rows[1]) == ["b", *["-"] * 5]
    assert list(bleu.header) == ["config", "1-5 (n=40)", "joined 20-30 (n=29)"]
    assert list(bleu.rows[0]) == ["a", "21.50", "-"]
    assert list(entropy.rows[0]) == ["a", "0.50", "-"]  # also where 29 sentences have an entropy


def test_other_test_sets_have_tables_of_their_own() -> None:
    other = [{"name": "1-9", "sentences": 77, "joined": False, "bleu": 3.0, "entropy": 1.0, "maximum": 0.5}]
    sections = comparison_sections([*ROWS, Row("c", [make_result("c", lengths=other)], [None])])
    by_length = [block for block in sections[-1].blocks if isinstance(block, Table)]
    assert [[row[0] for row in table.rows] for table in by_length] == [["a", "b"], ["a", "b"], ["c"], ["c"]]


def test_the_csv_has_a_line_for_each_cell() -> None:
    lines = list(csv.DictReader(io.StringIO(as_csv(ROWS))))
    assert [(line["name"], line["seed"], line["bleu"]) for line in lines] == [
        ("a", "1", "20"),
        ("a", "2", "23"),
        ("b", "1", "25"),
    ]
    assert [(line["p_value"], line["difference"]) for line in lines] == [("", ""), ("", ""), ("0.012", "5")]
    assert [line["attention_entropy"] for line in lines] == ["1.0", "1.0", ""]
    assert lines[0]["bleu_confidence"] == "1.5"


ODD = r"dot_a & 50% of #1 {x=$y$} ~^\ <a|b>"
WRITTEN = r"dot\_a \& 50\% of \#1 \{x=\$y\$\} \textasciitilde{}\textasciicircum{}\textbackslash{} "
WRITTEN += r"\textless{}a\textbar\allowbreak{}b\textgreater{}"
ODD_ROWS = [*ROWS, Row(ODD, [make_result(ODD, 2, 21.25)], [0.25])]


def read_latex(table: str) -> list[list[str]]:
    """Cells of the body of a table."""
    body = table.split("\\midrule\n")[1].split("\\bottomrule\n")[0].splitlines()
    assert all(line.endswith(r" \\") for line in body)
    return [re.split(r" (?<!\\)& ", line.removesuffix(r" \\")) for line in body]


def test_the_table_for_papers_has_the_numbers_of_the_json_file() -> None:
    rows = ODD_ROWS
    table = as_latex(rows)
    for (name, seeds, bleu, difference, _, chrf), row in zip(read_latex(table), rows, strict=True):
        values = row.as_json(rows[0])
        assert name == {ODD: WRITTEN}.get(row.name, row.name)
        assert int(seeds) == len(values["results"])
        for cell, metric in ((bleu, "bleu"), (chrf, "chrf")):
            scores = [result["scores"][metric] for result in values["results"]]
            means = [sum(score[key] for score in scores) / len(scores) for key in ("value", "confidence")]
            assert re.findall(r"[\d.]+", cell) == [f"{mean:.2f}" for mean in means]
        tests = [(d, p) for d, p in zip(values["differences"], values["p_values"], strict=True) if p is not None]
        written = [f"{'+' if d > 0 else '$-$'}{abs(d):.2f} ({p:.3f})" for d, p in tests] or ["$-$", "$-$"]
        written = [rf"\textbf{{{cell}}}" if "(0.0" in cell else cell for cell in written]
        assert difference == (r"\shortstack[r]{" + r"\\".join(written) + "}" if len(written) > 1 else written[0])
    assert re.findall(r"\\textbf\{(.*?)\}", table) == ["+5.00 (0.012)"]
    caption = re.search(r"\\caption\{(.*)\}\n", table)
    assert caption is not None
    assert caption[1].startswith("40 sentences of test of tatoeba, beam 5, seeds 1, 2. BLEU is s. chrF is s. ")
    rules = re.findall(r"^\\(?:begin|end|top|mid|bottom)\S*", table, re.MULTILINE)
    begin = [r"\begin{table}", r"\begin{tabular}{lrrrrr}"]
    assert rules == [*begin, r"\toprule", r"\midrule", r"\bottomrule", r"\end{tabular}", r"\end{table}"]


def test_the_note_says_what_a_dash_is_and_names_what_has_no_result() -> None:
    dash = "; - is a itself, another test set or scoring, a seed without a, or over 10,000 sentences. "
    for missing in ([], ["b, seed 2", "c_d, seed 1"]):
        table, (note, *_) = as_latex(ROWS, missing), comparison_sections(ROWS, missing)[0].blocks
        assert isinstance(note, str)
        for text, named in ((note, "b, seed 2; c_d, seed 1"), (table, r"b, seed 2; c\_d, seed 1")):
            assert dash in text
            assert (f"(SD). Without a result: {named}." in text) == bool(missing)
            assert ("Without" in text) == bool(missing)


def test_all_signatures_are_in_the_caption() -> None:
    lower = {metric: {**make_result()["scores"][metric], "signature": "lc|x"} for metric in ("bleu", "chrf")}
    both = as_latex([ROWS[0], Row("c", [make_result("c", scores=lower)], [None])])
    assert r"BLEU is lc\textbar\allowbreak{}x or s. chrF is lc\textbar\allowbreak{}x or s." in both


REFERENCES = [f"the cat number {n} sat on the mat today" for n in range(60)]
SYSTEMS = {
    "first": [line.replace("sat", "slept") if n % 2 else line for n, line in enumerate(REFERENCES)],
    "second": [line.replace("mat", "hat") if n % 5 else line for n, line in enumerate(REFERENCES)],
}


def write_cell(folder: Path, hypotheses: list[str], references: list[str]) -> Path:
    folder.mkdir()
    (folder / CONFIG).write_text(dump_config(Config()), encoding="utf-8")
    (folder / "hypotheses.txt").write_text("".join(f"{line}\n" for line in hypotheses), encoding="utf-8")
    (folder / "references.txt").write_text("".join(f"{line}\n" for line in references), encoding="utf-8")
    return folder


def test_significance_is_that_of_sacrebleu_seed_by_seed(tmp_path: Path) -> None:
    cells = {
        write_cell(tmp_path / f"{name}-{seed}", lines, REFERENCES): make_result(name, seed)
        for seed in (1, 2)
        for name, lines in SYSTEMS.items()
    }
    metric = {"BLEU": sacrebleu.BLEU(force=True)}
    test = PairedTest(list(SYSTEMS.items()), metric, [REFERENCES], test_type="bs", n_samples=1000)
    expected = test()[1]["BLEU"][1].p_value
    rows = make_rows(cells)
    assert [row.name for row in rows] == ["first", "second"]
    assert rows[0].p_values == [None, None]
    assert rows[1].p_values == [pytest.approx(expected, abs=1e-12)] * 2
    large = {folder: {**result, "sentences": 10_001} for folder, result in cells.items()}
    assert [row.p_values for row in make_rows(large)] == [[None] * 2] * 2


def test_other_references_and_signatures_are_not_compared(tmp_path: Path) -> None:
    lower = {"bleu": {"value": 1.0, "signature": "lc", "confidence": 1.0}}
    cells = {
        write_cell(tmp_path / "a", SYSTEMS["first"], REFERENCES): make_result("a"),
        write_cell(tmp_path / "b", SYSTEMS["second"], [*REFERENCES[1:], "x"]): make_result("b"),
        write_cell(tmp_path / "c", SYSTEMS["second"], REFERENCES): make_result("c", scores=lower),
        write_cell(tmp_path / "d", SYSTEMS["second"], REFERENCES): make_result("d", seed=2),
    }
    assert [row.p_values for row in make_rows(cells)] == [[None]] * 4
