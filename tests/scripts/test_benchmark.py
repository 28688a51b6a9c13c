import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import benchmark
import pytest
import torch
from benchmarks import (
    checkouts,
    joeynmt,
    marian,
    opennmt,
    ours,
    random_nmt,
    runtime,
    scale,
    serve,
    startup,
    steps,
    systems,
    train,
    workload,
)
from benchmarks.limit import PATHS, product_rate
from benchmarks.measuring import Outcome, RunError, launch, run, steady
from benchmarks.products import Product, Standard, training_operations, weighted_rate
from conftest import Project

from nmt.config import load_config
from nmt.corpus.dataset import open_data
from nmt.system.errors import ConfigError, DataError

SCRIPTS = Path(benchmark.__file__).parent
JOEYNMT_LOG = """\
2026-11-21 13:01:02,003 - INFO - joeynmt.training - EPOCH 1
2026-11-21 13:01:09,120 - INFO - joeynmt.training - Epoch   1, Step:       20, Batch Loss:    38.125000, Batch Acc: \
0.081000, Tokens per Sec:     1693, Lr: 0.001000
2026-11-21 13:01:16,950 - INFO - joeynmt.training - Epoch   1, Step:       40, Batch Loss:    35.500000, Batch Acc: \
0.104000, Tokens per Sec:      984, Lr: 0.001000
"""
OPENNMT_LOG = """\
[2026-11-21 13:01:02,003 INFO] Starting training on CPU, could be very slow
[2026-11-21 13:01:09,120 INFO] Step 20/   40; acc: 11.9; ppl: 2151.8; xent: 7.7; lr: 0.00100; sents:    1280; bsz:  \
505/ 562/64; 2559/2848 tok/s;      4 sec;
[2026-11-21 13:01:16,950 INFO] Step 40/   40; acc: 17.2; ppl: 401.5; xent: 6.0; lr: 0.00100; sents:    1280; bsz:  \
487/ 545/64; 3828/ 990 tok/s;      7 sec;
"""
MARIAN_LOG = """\
[2026-11-21 12:58:31] [training] Using 2 CPU threads
[2026-11-21 12:58:41] Ep. 1 : Up. 20 : Sen. 1,280 : Cost 6.90299749 : Time 9.91s : 1039.36 words/s : gNorm 2.9793
[2026-11-21 12:58:52] Ep. 1 : Up. 40 : Sen. 2,560 : Cost 5.55644274 : Time 11.23s : 1041.76 words/s : gNorm 1.9321
"""
METRICS = """\
{"kind": "train", "seconds": 3.1, "update": 20, "loss": 6.5, "tokens_per_second": 5200.5}
{"kind": "train", "seconds": 5.1, "update": 40, "loss": 6.0, "tokens_per_second": 5800.0}
{"kind": "train", "seconds": 5.2, "update": 41, "loss": 6.0, "tokens_per_second": 100.0}
{"kind": "valid", "seconds": 5.9, "update": 41, "loss": 6.1}
"""


@pytest.mark.parametrize(
    ("read", "log", "expected"),
    [
        (joeynmt.read_speeds, JOEYNMT_LOG, [1693, 984]),
        (opennmt.read_speeds, OPENNMT_LOG, [2848, 990]),
        (marian.read_speeds, MARIAN_LOG, [1039.36, 1041.76]),
        (ours.read_speeds, METRICS, [5200.5, 5800.0]),
        (joeynmt.read_speeds, "", []),
    ],
)
def test_speeds_are_read_from_logs(read, log: str, expected: list[float]) -> None:
    assert read(log) == expected


def test_first_reports_do_not_count_unless_there_are_no_others() -> None:
    assert steady([1, 2, 3, 4, 5], 3) == [4, 5]
    assert steady([1, 2, 3, 4], 3) == [4]
    assert steady([1, 2], 3) == [2]
    with pytest.raises(RunError, match="no report"):
        steady([], 3)


def test_what_a_launched_process_ended_with(tmp_path: Path) -> None:
    log = "ended with products highest, threads 1\nmore\nended with products medium, threads 2\n"
    assert train.read_ending(log, tmp_path) == ("medium", 2)
    with pytest.raises(RunError, match=r"log\.txt"):
        train.read_ending("killed", tmp_path / "log.txt")


@pytest.mark.parametrize(
    ("precision", "expected"), [pytest.param("default", "highest", marks=pytest.mark.soak), ("medium", "medium")]
)
def test_launcher_sets_the_precision_of_the_process_that_runs_the_module(
    tmp_path: Path, precision: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shown.py").write_text("import sys, torch\nprint(torch.get_float32_matmul_precision(), sys.argv[1:])\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    finished = launch(Path(sys.executable), "shown", ["--steps", 3], tmp_path / "log", 1, precision)
    assert f"{expected} ['--steps', '3']" in finished.text
    assert train.read_ending(finished.text, tmp_path) == (expected, 1)


def test_a_command_is_measured(tmp_path: Path) -> None:
    program = "import sys, time; kept = bytearray(60 << 20); time.sleep(0.2); print('done', file=sys.stderr)"
    finished = run([sys.executable, "-c", program], tmp_path / "logs" / "log", {})
    assert finished.text == "done\n"
    assert 0.2 <= finished.seconds < 30
    assert finished.peak > 60 << 20


def test_the_checkout_that_is_measured_is_the_one_that_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("here", "there"):
        package = tmp_path / name / "nmt"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "__main__.py").write_text(f"print({name!r})\n")
    monkeypatch.chdir(tmp_path / "here")
    finished = run(ours.nmt("train"), tmp_path / "log", checkouts.surroundings(tmp_path / "there", 1))
    assert finished.text == "there\n"


def test_a_command_that_fails_names_its_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with pytest.raises(RunError, match=f"exit code 3 .no such key.; log: {log}"):
        run([sys.executable, "-c", "import sys; print('no such key'); sys.exit(3)"], log, {})
    with pytest.raises(RunError, match="cannot be started"):
        run([str(tmp_path / "python")], log, {})


def _outcome(*reports: float, precision: str = "fp32", peak: int = 100) -> Outcome:
    return Outcome(list(reports), precision, peak << 20)


def _cells(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line]


def test_standard_table_compares_rows_of_one_kind_and_cell() -> None:
    rows = {system.name: system for system in systems.list_systems()}
    results = {
        "nmt-luong-lstm": [_outcome(5900, 6000, precision="fp32, fast products"), _outcome(6050), _outcome(7000)],
        "nmt-luong-gru": [_outcome(5000)],
        "opennmt-py-luong-lstm": [_outcome(4000, peak=900), _outcome(4400, peak=950), _outcome(4840, peak=910)],
        "opennmt-py-luong-lstm-fast": [_outcome(5500)],
        "opennmt-py-bahdanau-lstm": [_outcome(2000)],
        "joeynmt-luong-lstm": [_outcome(1600)],
    }
    cells = _cells(train.standard_table([rows[name] for name in results], results, 12_100))
    assert len({len(row) for row in cells}) == 1
    ours_lstm, ours_gru, opennmt_luong, *_, joeynmt_luong = cells[2:]
    first = ["nmt", "general, no feeding", "LSTM", "fp32, fast products", "6,050", "5,950, 6,050, 7,000", "2.0"]
    assert ours_lstm[:7] == first
    assert ours_lstm[8:] == ["1.38 / 1.10", "3.78 / –"]
    assert ours_gru[8:] == ["", ""]
    assert opennmt_luong[4:] == ["4,400", "4,000, 4,400, 4,840", "2.8", "910", "", ""]
    assert joeynmt_luong[8:] == ["", ""]


def test_rows_are_chosen_by_name() -> None:
    rows = systems.list_systems()
    assert len({row.name for row in rows}) == len(rows)
    chosen = train.choose(rows, ["marian", "opennmt-py-*-gru"])
    assert [row.name for row in chosen] == ["opennmt-py-luong-gru", "opennmt-py-bahdanau-gru", "marian"]
    assert train.choose(rows, None) == rows
    with pytest.raises(ConfigError, match="--only fairseq: matches none of the rows nmt-luong-lstm"):
        train.choose(rows, ["fairseq"])


def test_every_row_of_ours_is_a_config_and_compares_with_a_peer(tmp_path: Path) -> None:
    rows = systems.list_systems()
    keys = {(row.kind, row.cell) for row in rows if row.toolkit == "OpenNMT-py"}
    of_ours_alone = {("ssru", ""), ("hybrid", "lstm")}
    assert keys | of_ours_alone == {(row.kind, row.cell) for row in rows if row.toolkit == "nmt"}
    path = ours.write_config(tmp_path)
    models = {kind: load_config(str(path), overrides).model for kind, overrides in ours.OVERRIDES.items()}
    for kind in ("luong", "luong_feeding", "bahdanau", "hybrid"):
        decoder = models[kind].decoder
        assert (decoder.order == "bahdanau") == (kind == "bahdanau")
        assert decoder.input_feeding == (kind == "luong_feeding")
        assert (models[kind].encoder.hidden_size, decoder.hidden_size, models[kind].dropout) == (256, 512, 0.2)
    for kind in ("transformer", "ssru"):
        assert models[kind].decoder.kind == kind
        assert models[kind].tying == "none"
        for side in (models[kind].encoder, models[kind].decoder):
            assert (side.hidden_size, side.num_layers, side.num_heads, side.feed_forward_size) == (256, 4, 4, 1024)
            assert (side.norm, side.learned_positions) == ("pre", None)
    assert models["hybrid"].encoder == models["transformer"].encoder


def test_marian_gets_its_vocabulary(tmp_path: Path) -> None:
    for language in marian.LANGUAGES:
        (tmp_path / f"vocab.{language}").write_text('.\n"\nno\n')
    arguments = marian.arguments(tmp_path, tmp_path, 40, 2)
    assert (tmp_path / "vocab.de.yml").read_text() == '"</s>": 0\n"<unk>": 1\n".": 2\n"\\"": 3\n"no": 4\n'
    assert arguments[arguments.index("--after-batches") + 1] == "40"


def test_operations_of_the_standard_model() -> None:
    # E = 256, D = 512, 4 gates, as many source as target tokens, 10 each, 5,000 words.
    encoder = 2 * 2 * (256 + 256) * 1024 + 2 * 512 * 512
    cell, attention, readout = 2 * (256 + 512) * 2048, 2 * 2 * 10 * 512, 2 * 1024 * 512
    luong = encoder + cell + attention + readout + 2 * 512 * 5000
    assert training_operations(Standard("luong", 10, 10, 5000)) == pytest.approx(3 * luong)
    bahdanau = luong + 2 * 512 * 2048 + 2 * 512 * 512 + 2 * 256 * 512
    assert training_operations(Standard("bahdanau", 10, 10, 5000)) == pytest.approx(3 * bahdanau)


def test_operations_of_a_transformer() -> None:
    # Two layers of 8 units and 16 inside, 100 words; 5 source and 10 target tokens: half a source token for each.
    encoder = 2 * (2 * 8 * 24 + 2 * 2 * 5 * 8 + 2 * 8 * 8 + 2 * 2 * 8 * 16)
    memory = 2 * 2 * 8 * 16
    decoder = 2 * (2 * 8 * 24 + 2 * 2 * 10 * 8 + 2 * 8 * 8 + 2 * 2 * 8 * 16)
    attention = 2 * (2 * 8 * 8 + 2 * 2 * 5 * 8 + 2 * 8 * 8)
    model = Standard("transformer", 5, 10, 100, embedding=8, layers=2, heads=4, feed_forward=16)
    total = 0.5 * (encoder + memory) + decoder + attention + 2 * 8 * 100
    assert training_operations(model) == pytest.approx(3 * total)


def test_weighted_rate_is_all_work_over_all_time() -> None:
    products = [Product("a", 100, 10, 10), Product("b", 300, 10, 10)]
    # 20,000 operations at 10,000 a second and 60,000 at 30,000: 2 seconds each.
    assert weighted_rate(products, [10_000, 30_000]) == pytest.approx(80_000 / 4)


def test_a_random_model_translates_to_one_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lines").write_text("w1 w2\nw3\nw5 w4 w3 w2 w1 w0\n")
    request = {"config": str(ours.write_config(tmp_path)), "overrides": ours.OVERRIDES["ssru"], "words": 12}
    request |= {"lines": str(tmp_path / "lines"), "precision": "float32", "beam": 2, "batch_size": 2, "length": 5}
    monkeypatch.setattr(sys, "argv", ["random_nmt.py", json.dumps(request)])
    random_nmt.main()
    reply = json.loads(capsys.readouterr().out)
    assert reply["seconds"] > 0
    assert 4 <= reply["shortest"] <= reply["longest"] == 5


@pytest.mark.parametrize(("shortest", "accepted"), [(8, True), (7, False)])
def test_translations_of_other_lengths_are_not_measured(tmp_path: Path, shortest: int, accepted: bool) -> None:
    (tmp_path / "lines").write_text("w1\n" * 30)
    program = tmp_path / "python"
    reply = json.dumps({"seconds": 0.5, "shortest": shortest, "longest": 9})
    program.write_text(f"#!/bin/sh\necho a warning\necho '{reply}'\n")
    program.chmod(0o755)
    row = runtime.list_searches(peers=True)[-1]
    assert (row.name, row.beam) == ("ctranslate2-beam-5", 5)
    common = {"lines": str(tmp_path / "lines"), "length": 9, "threads": 1}
    if accepted:
        assert runtime.translate(row, program, common, tmp_path / "log").speed == 60
    else:
        with pytest.raises(RunError, match="translations of 7 to 9 words"):
            runtime.translate(row, program, common, tmp_path / "log")


def test_random_models_are_compared_with_ctranslate2_of_the_same_beam() -> None:
    rows = {row.name: row for row in runtime.list_searches(peers=True)}
    results = {
        "nmt-transformer-beam-1": [_outcome(900, precision="float32"), _outcome(1000), _outcome(1100)],
        "ctranslate2-int8-beam-1": [_outcome(800, precision="int8")],
        "ctranslate2-beam-5": [_outcome(200)],
    }
    cells = _cells(runtime.table([rows[name] for name in results], results))[2:]
    first = ["nmt", "Transformer", "float32", "1", "1,000", "900, 1,000, 1,100", "100", "1.25 / –"]
    assert cells[0] == first
    assert cells[1][-1] == ""


def _groups(number: int) -> dict[str, list[tuple[str, str]]]:
    return {f"s{n}": [(f"s{n}", f"t{n}.{k}") for k in range(1 + n % 3)] for n in range(number)}


def test_splits_share_no_source_and_are_the_same_again() -> None:
    groups, sizes = _groups(60), {"valid": 5, "test": 7, "train": 50}
    splits = workload.draw_splits(groups, sizes, 1)
    assert {name: len(split) for name, split in splits.items()} == sizes
    sources = {name: {src for src, _ in split} for name, split in splits.items()}
    assert not sources["train"] & (sources["valid"] | sources["test"])
    assert not sources["valid"] & sources["test"]
    assert all(target.endswith(".0") for name in ("valid", "test") for _, target in splits[name])
    assert any(target.endswith(".2") for _, target in splits["train"])
    assert workload.draw_splits(groups, sizes, 1) == splits
    assert workload.draw_splits(groups, sizes, 2) != splits
    with pytest.raises(DataError, match="before the train split has its 500 pairs"):
        workload.draw_splits(groups, {**sizes, "train": 500}, 1)


def test_tokenised_pairs_are_lower_case_and_distinct() -> None:
    pairs = [("I'm here.", "Ich bin hier."), ("", "Nichts."), ("i'm HERE.", "ich bin hier."), ("a " * 51, "a")]
    assert list(workload.tokenized(pairs)) == [("i 'm here .", "ich bin hier .")]


def test_vocabulary_files(tmp_path: Path) -> None:
    workload.write_vocabularies(tmp_path, "en", ["b a a", "c b .", ". . d"])
    texts = [(tmp_path / f"vocab{kind}.en").read_text() for kind in ("", ".joey", ".onmt")]
    assert texts == [".\na\nb\n", "<unk>\n<pad>\n<s>\n</s>\n.\na\nb\n", ".\t2\na\t2\nb\t2\n"]


def test_a_folder_that_is_not_a_workload_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmark.py", "train", "--workload", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"valid\.en: missing; create the workload with"):
        benchmark.main()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "--workload", "w1", "--updates", "19"], "--updates: must be an integer of at least 20, found '19'"),
        (["scale", "--rounds", "0"], "--rounds: must be an integer of at least 1, found '0'"),
        (["startup", "--pairs", "5e6"], "--pairs: must be an integer of at least 1, found '5e6'"),
    ],
)
def test_invalid_numbers_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmark.py", *arguments])
    with pytest.raises(SystemExit):
        benchmark.main()
    assert message in capsys.readouterr().err


def test_a_row_that_fails_is_reported_once_and_the_others_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = systems.list_systems()[:2]

    def run_row(row: systems.System, folder: Path) -> Outcome:
        if row is rows[0]:
            raise RunError(f"exit code 1; log: {folder}/log.txt")
        return _outcome(100, 300)

    results, failed = train.run_rounds(rows, run_row, tmp_path, 2)
    assert failed == [rows[0].name]
    assert results == {rows[1].name: [_outcome(100, 300)] * 2}
    message = f"{rows[0].name}: exit code 1; log: {tmp_path}/round1/{rows[0].name}/log.txt"
    assert capsys.readouterr().err.count(message) == 1


def test_random_sentences_hold_every_word() -> None:
    point = scale.Scale(pairs=40, vocabulary=300, length=10)
    sentences = [sentence.split() for sentence in scale.random_sentences(point, 1)]
    assert {len(sentence) for sentence in sentences} == {10}
    assert len(sentences) == 40
    assert {word for sentence in sentences for word in sentence} == {f"w{n}" for n in range(300)}


def test_data_of_random_sentences_is_made_once(tmp_path: Path) -> None:
    point = scale.Scale(pairs=100, vocabulary=60, length=5)
    path = scale.prepare(tmp_path, point, 1)
    data = open_data(path)
    assert (len(data.train), len(data.valid), len(data.src_vocabulary)) == (100, 0, 64)
    assert set(data.train.src.lengths.tolist()) == {5}
    made = path.stat().st_mtime_ns
    assert scale.prepare(tmp_path, point, 1) == path
    assert path.stat().st_mtime_ns == made


def test_memory_of_a_process_is_read() -> None:
    status = "Name:\tpython\nVmHWM:\t  204800 kB\nVmRSS:\t  200000 kB\nRssAnon:\t  102400 kB\n"
    assert startup.read_memory(status) == (200 << 20, 100 << 20)


def test_rates_leave_the_setting_of_products_as_it_was() -> None:
    before = torch.get_float32_matmul_precision()
    for path in PATHS:
        assert product_rate(Product("scores", 16, 8, 8, batch=4), path) > 0
        assert torch.get_float32_matmul_precision() == before


def test_the_row_of_the_server() -> None:
    load = serve.Load([number / 1000 for number in range(1, 102)], wrong=2, errors=1)
    row = serve.row("nmt", load, argparse.Namespace(clients=200, seconds=10), 3 << 20)
    assert row == ["nmt", "200", "10", "51", "100", "10", "1", "2", "3"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_command_can_write_a_checkpoint(tmp_path: Path, number: signal.Signals) -> None:
    child = "import signal, sys, time\n" + (
        "def stop(*_):\n    open(sys.argv[1] + '/checkpoint', 'w').close()\n    sys.exit(75)\n"
        "signal.signal(signal.SIGTERM, stop)\nopen(sys.argv[1] + '/started', 'w').close()\ntime.sleep(60)\n"
    )
    parent = (
        "import argparse, pathlib, sys\nfrom benchmarks import arguments, measuring\n"
        "class Module:\n"
        "    def add_command(commands):\n"
        "        commands.add_parser('go').set_defaults(run=lambda _: measuring.run(\n"
        "            [sys.executable, '-c', CHILD, FOLDER], pathlib.Path(FOLDER) / 'log', {}))\n"
        "sys.argv = ['parent.py', 'go']\narguments.run_command(None, [Module])\n"
    )
    program = f"CHILD = {child!r}\nFOLDER = {str(tmp_path)!r}\n{parent}"
    variables = {**os.environ, "PYTHONPATH": str(SCRIPTS)}
    with subprocess.Popen([sys.executable, "-c", program], env=variables, stderr=subprocess.PIPE, text=True) as process:
        while not (tmp_path / "started").exists():
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(number)
        _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (130, "interrupted\n")
    assert (tmp_path / "checkpoint").exists()


def test_time_of_a_search_is_added_up_by_the_hypotheses_of_a_step() -> None:
    assert [steps.row_name(number) for number in (1, 2, 4, 5, 64, 65)] == [
        "1",
        "2 to 4",
        "2 to 4",
        "5 to 16",
        "17 to 64",
        "65 or more",
    ]
    events = [steps.Event(steps.OTHER, 1.0), steps.Event("1", 1.5), steps.Event("5 to 16", 2.5), steps.Event("1", 4.5)]
    parts = steps.add_up([*events, steps.Event(steps.OTHER, 5.0)])
    assert parts == {steps.OTHER: (1, 0.5), "1": (2, 1.5), "5 to 16": (1, 2.0)}
    assert steps.total(parts) == (3, 4.0)


def test_steps_of_a_search_are_shown_batch_by_batch_and_together(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["benchmark.py", "steps", "--model", str(project.run), "--data", str(project.data)]
    monkeypatch.setattr(sys, "argv", [*command, "--sentences", "20", "--batch-size", "4", "--rounds", "1"])
    benchmark.main()
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    rows = [line.strip("| ").split(" | ") for line in lines[2:]]
    table = {name: [cell.strip() for cell in cells] for name, *cells in rows}
    assert list(table) == ["1", "2 to 4", "5 to 16", "17 to 64", "65 or more", steps.ENCODER, steps.OTHER, "all"]
    assert table[steps.ENCODER][0] == table[steps.ENCODER][3] == "5"  # batches of four
    for first in (0, 3):
        numbers = [int(table[name][first]) for name in list(table)[:5]]
        assert int(table["all"][first]) == sum(numbers) > 0
