"""The benchmark of a GPU: the command in small on the CPU, its tables, and what is prepared for a bare machine."""

import argparse
import json
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import benchmark
import prepare_gpu
import pytest
from benchmarks import gpu

from nmt.system.files import PACKAGE, read_json

ROOT = PACKAGE.parent


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """What `benchmark.py gpu` prints."""
    monkeypatch.setattr(sys, "argv", ["benchmark.py", "gpu", *map(str, arguments)])
    benchmark.main()
    return capsys.readouterr().out


@pytest.mark.parametrize(
    "kinds", [pytest.param(["luong"], id="luong"), pytest.param(list(gpu.KINDS), id="all", marks=pytest.mark.soak)]
)
def test_the_whole_command_runs_in_small_on_the_cpu(
    kinds: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--device", "cpu", "--small", "--output", tmp_path, "--threads", 1, "--only", *kinds]
    shown = run(monkeypatch, capsys, *options)
    report = read_json(tmp_path / "gpu.json")
    assert (report["machine"]["device"], report["small"]) == ("cpu", True)
    assert report["tests"]["skipped"] > 0
    assert not {"failed", "error"} & report["tests"].keys()
    figures = {(figure["section"], *figure["row"]): figure for figure in report["figures"]}
    assert [figure for figure in report["figures"] if "error" in figure] == []
    for kind in kinds:
        assert figures["training", kind, "bfloat16", 64, "auto"]["value"] > 0
        assert figures["decoding", kind, "float32", 1]["value"] > 0
        launches = figures["launches", kind, False]
        assert launches["value"] == launches["graphs"] == 0  # a CPU has none
        assert launches["operators"] > 100
    assert len(figures) == 4 * len(kinds)
    assert "tiny models, whose figures say nothing" in shown
    assert shown == run(monkeypatch, capsys, "--output", tmp_path, "--tables")


def test_a_toolkit_that_does_not_import_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("opennmt", "joeynmt"):
        monkeypatch.setattr(getattr(gpu, name), "MODULE", f"no_{name}")
    with pytest.raises(SystemExit) as caught:
        run(monkeypatch, capsys, "--device", "cpu", "--small", "--output", tmp_path, "--threads", 1, "--peers")
    first, *lines = str(caught.value).splitlines()
    assert first == "not measured:"
    assert len(lines) == 8  # four models of each
    reason = "does not import: ModuleNotFoundError: No module named"
    assert lines[0] == f"peers, OpenNMT-py, luong, float32, 64: {reason} 'no_opennmt'"
    assert lines[-1] == f"peers, JoeyNMT, transformer, float32, 64: {reason} 'no_joeynmt'"
    assert len(read_json(tmp_path / "gpu.json")["peers"]) == 8


def test_what_other_toolkits_are_told_of_the_gpu(tmp_path: Path) -> None:
    gpu.write_random_workload(tmp_path)
    arguments = benchmark_arguments("--device", "cuda", "--updates", "40")
    told = []
    for toolkit in gpu.PEERS:
        system = gpu.System("", toolkit, "luong", "", "lstm", "default")
        _, options = gpu.peer_arguments(system, 512, tmp_path, tmp_path, arguments)
        told.append(json.loads(Path(options[1]).read_text(encoding="utf-8")))
    onmt, joey = told
    assert (onmt["gpu_ranks"], onmt["world_size"], onmt["batch_size"], onmt["train_steps"]) == ([0], 1, 512, 40)
    assert (joey["use_cuda"], joey["training"]["batch_size"], joey["training"]["updates"]) == (True, 512, 40)


def benchmark_arguments(*words: str) -> Any:
    parser = argparse.ArgumentParser()
    gpu.add_command(parser.add_subparsers())
    return parser.parse_args(["gpu", *words])


def test_nothing_prepared_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmark.py", "gpu", "--output", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"--prepared: set it to the output of scripts/prepare_gpu\.py, or"):
        benchmark.main()


def test_a_part_without_time_is_not_measured(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    command = [sys.executable, "-c", f"open({str(begun)!r}, 'w').close()"]
    assert gpu.run_for(command, tmp_path / "log", {}, deadline=0.0) == "no time was left"
    assert not begun.exists()


def test_a_part_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    begin = time.monotonic()
    reason = gpu.run_for(command, tmp_path / "log", {}, deadline=begin + 0.5)
    assert reason is not None
    assert reason.startswith("was not done after ")
    assert time.monotonic() - begin < 30


def cells(table: str) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("|")
    ]


def test_tables_have_every_row_and_say_what_is_not_measured() -> None:
    figures = [
        {"section": "training", "row": ["luong", "float32", 64, "auto"], "value": 150_000},
        {"section": "training", "row": ["luong", "bfloat16", 64, "auto"], "value": 200_000},
        {"section": "training", "row": ["luong", "bfloat16", 64, False], "error": "RuntimeError: none"},
        {"section": "launches", "row": ["luong", False], "value": 812, "graphs": 0, "operators": 900},
        {"section": "launches", "row": ["luong", True], "value": 14, "graphs": 1, "operators": 20},
        {"section": "decoding", "row": ["ssru", "bfloat16", 5], "value": 1234},
    ]
    peers = [{"section": "peers", "row": ["OpenNMT-py", "luong", "float32", 64], "value": 50_000}]
    report = {"machine": {"device_name": "A card", "torch": "2.11"}, "figures": figures, "peers": peers}
    text = gpu.tables(report | {"tests": {"passed": 30, "failed": 1, "seconds": 9}})
    assert text.startswith("A card, torch 2.11; tests: 30 passed, 1 failed\n")
    rows = cells(text)
    none = gpu.NOT_MEASURED
    assert ["general, no feeding", "150,000", "200,000", none, none] in rows
    assert ["OpenNMT-py", "general, no feeding", "50,000", "4.00", none, none] in rows
    assert ["general, no feeding", "812", "14", "1", none, none, none] in rows
    assert ["Transformer, SSRU decoder", none, none, none, none, none, "1,234"] in rows
    headers = 3 * 2
    assert len(rows) == headers + 2 * len(gpu.KINDS) + 8
    assert "tests: not measured" in gpu.tables({})
    assert [*gpu.problems(report | {"tests": {"failed": 1}}, "figures")] == [
        "tests: 1 failed",
        "training, luong, bfloat16, 64, False: RuntimeError: none",
    ]


ABSENT = ("spacy", "pooch", "entmax", "starlette", "uvicorn", "lxml", "ctranslate2", "onnx", "onnxruntime", "py3langid")


def test_a_bare_machine_can_import_it() -> None:
    """It has neither spaCy nor the libraries of servers and exports."""
    program = f"import sys\nfor name in {ABSENT}: sys.modules[name] = None\nimport benchmark, benchmarks.gpu_figures"
    command = [sys.executable, "-c", program]
    finished = subprocess.run(command, capture_output=True, text=True, env=gpu.surroundings(1))
    assert finished.returncode == 0, finished.stderr


def test_a_prepared_folder_has_a_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "wheels").mkdir()
    large = tmp_path / "wheels/large.whl"
    for size in (1 << 20, 60 << 20):
        with large.open("wb") as file:
            file.truncate(size)
        assert prepare_gpu.check_size(tmp_path) == size
    assert "60.0 MiB in 1 files" in capsys.readouterr().out
    (tmp_path / "more").write_bytes(bytes(4 << 20))
    with pytest.raises(SystemExit, match=r"must be below 64 MiB; leave out by --without: wheels/large\.whl 60\.0 MiB"):
        prepare_gpu.check_size(tmp_path)


@pytest.mark.parametrize(
    ("wheel", "name"),
    [
        ("pydantic_core-2.41.5-cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", "pydantic-core"),
        ("PyYAML-6.0.3-cp312-cp312-manylinux_2_28_x86_64.whl", "pyyaml"),
        ("zope.interface-7-py3-none-any.whl", "zope-interface"),
    ],
)
def test_the_name_in_a_wheel(wheel: str, name: str) -> None:
    assert prepare_gpu.name_of(Path(wheel)) == name


def test_only_what_is_missing_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("numpy", "surely_missing_here"):
        write_wheel(tmp_path / "wheels", name)
    monkeypatch.setattr(sys, "argv", ["prepare_gpu.py", "install", "--prepared", str(tmp_path)])
    prepare_gpu.main()
    assert "installing 1 of 2 libraries: surely-missing-here" in capsys.readouterr().out
    assert (tmp_path / "packages/surely_missing_here.py").read_text() == "ANSWER = 42\n"
    assert not (tmp_path / "packages/numpy.py").exists()


def write_wheel(folder: Path, name: str) -> None:
    """A library of one module, as a wheel."""
    folder.mkdir(exist_ok=True)
    about = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as file:
        file.writestr(f"{name}.py", "ANSWER = 42\n")
        file.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        file.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{about}/RECORD", "")


def test_no_wheels_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["prepare_gpu.py", "install", "--prepared", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"has no wheels; make it with: prepare_gpu\.py gather"):
        prepare_gpu.main()


def test_libraries_of_the_machine_are_read_from_its_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "installed.txt").write_text("numpy==2.5.2\nPyYAML==6\n")
    for name in ("numpy", "pyyaml", "pooch", "torch"):
        write_wheel(tmp_path / "fetched", name)
    monkeypatch.setattr(prepare_gpu, "run", lambda command: copy_wheels(tmp_path / "fetched", command))
    monkeypatch.setattr(prepare_gpu, "encode", lambda output: (output / "data").mkdir())
    gpu.write_random_workload(tmp_path / "workload")
    options = ["--workload", str(tmp_path / "workload"), "--output", str(tmp_path / "gpu")]
    installed = f"@{tmp_path / 'installed.txt'}"
    monkeypatch.setattr(sys, "argv", ["prepare_gpu.py", "gather", *options, "--without", installed])
    prepare_gpu.main()
    assert [path.name for path in (tmp_path / "gpu/wheels").iterdir()] == ["pooch-1.0-py3-none-any.whl"]
    assert (tmp_path / "gpu/workload/train.en").exists()
    assert "MiB in" in capsys.readouterr().out


def copy_wheels(folder: Path, command: list[str]) -> None:
    """In place of a download, which needs a network."""
    shutil.copytree(folder, command[command.index("--dest") + 1], dirs_exist_ok=True)


def test_wheels_are_of_the_machines_python_and_without_pytorch(tmp_path: Path) -> None:
    command = prepare_gpu.download(prepare_gpu.OURS, tmp_path)
    assert {"--only-binary=:all:", "--python-version=3.12", "--implementation=cp"} <= set(command)
    assert "torch" not in map(prepare_gpu.normalized, [*prepare_gpu.OURS, *prepare_gpu.PEERS])
