"""A package for Argos Translate: read as that program reads it, and, in `make soak`, by the program itself."""

import itertools
import json
import os
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import Cli, Project, Refusal, without_pictures

import nmt
from nmt.exporting.argos import write_splitter
from nmt.system.files import PACKAGE

ctranslate2 = pytest.importorskip("ctranslate2")
sentencepiece = pytest.importorskip("sentencepiece")

SETTINGS = (
    "text.tokenizer=subword",
    "text.subword={joint: true, vocabulary_size: 30}",
    "model.encoder={kind: self_attention, hidden_size: 32, num_layers: 2, num_heads: 4}",
    "model.attention.score=general",
    "model.decoder={kind: transformer, hidden_size: 32, num_layers: 2, num_heads: 2}",
    "decode={length_norm: average, length_penalty: 0.2, beam_size: 4, max_length: 30}",
    "train.epochs=3",
    "train.optimizer.learning_rate=0.01",
    "train.schedule={name: inverse_sqrt, warmup: 40}",
    "train.validation.metric=loss",
)
GUIDE = (PACKAGE.parent / "docs/guides/exporting.md").read_text(encoding="utf-8")
LINES = [" ".join("abcdefgh"[(3 * start + step) % 8] for step in range(1 + start % 9)) for start in range(40)]


@pytest.fixture(scope="module")
def run(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Transformer on joint pieces that has learnt a little."""
    folder = tmp_path_factory.mktemp("argos")
    with without_pictures():
        nmt.preprocess(project.config, output=folder / "data", overrides=SETTINGS)
        nmt.train(project.config, data=folder / "data", output=folder / "run", overrides=SETTINGS)
    return folder / "run"


@pytest.fixture(scope="module")
def package(run: Path) -> Path:
    return nmt.export(run, to="argos", output=run.parent / "x_y.argosmodel", quantization="none")


def translate(run: Path) -> list[str]:
    """What nmt says with the search that Argos has."""
    translator = nmt.load(run, beam_size=4, overrides={"decode.max_length_ratio": 100})
    return [translation.text for translation in translator.translate(LINES)]


def test_the_package_translates_as_here(run: Path, package: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(package) as archive:
        archive.extractall(tmp_path)
    (folder,) = tmp_path.iterdir()
    metadata = json.loads((folder / "metadata.json").read_text())
    model = json.loads((run / "best" / "model.json").read_text(encoding="utf-8"))
    source, target = model["src_language"], model["tgt_language"]
    assert folder.name == metadata["code"] == f"translate-{source}_{target}"
    assert (metadata["from_code"], metadata["to_code"], metadata["type"]) == (source, target, "translate")
    assert "beam of 4 and a length penalty of 0.2" in (folder / "README.md").read_text(encoding="utf-8")
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.model"))
    results = ctranslate2.Translator(str(folder / "model")).translate_batch(
        pieces.encode(LINES, out_type=str), beam_size=4, length_penalty=0.2, patience=2, replace_unknowns=True
    )
    found = [pieces.decode_pieces(result.hypotheses[0]) for result in results]
    assert len(set(found)) > 5
    assert sum(ours == other for ours, other in zip(translate(run), found, strict=True)) >= 0.9 * len(LINES)


def test_a_package_is_replaced_on_demand_alone(run: Path, cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "p.argosmodel"
    export = ("export", "--model", run, "--to", "argos", "--output")
    assert cli(*export, path).code == 0
    assert [file.name for file in tmp_path.iterdir() if file.suffix != ".lock"] == [path.name]
    before = path.read_bytes()
    refused = cli(*export, path, "--quantization", "none")
    assert refused.code == 1
    assert f"{path}: exists and is not empty; choose another file, or replace it with --overwrite" in refused.err
    assert path.read_bytes() == before
    assert cli(*export, path, "--quantization", "none", "--overwrite").code == 0
    assert path.stat().st_size > len(before)  # int8 unless asked otherwise


def test_what_cannot_be_a_package_is_said_in_one_line(
    run: Path, project: Project, refusal: Refusal, cli: Cli, tmp_path: Path
) -> None:
    export = ("export", "--to", "argos", "--output")
    said = refusal(*export, tmp_path / "p.zip", "--model", run)
    assert said == f"--output {tmp_path / 'p.zip'}: give a file that ends in .argosmodel"
    (tmp_path / "d.argosmodel").mkdir()
    folder = tmp_path / "d.argosmodel"
    assert "d.argosmodel: is a folder; choose another file" in refusal(*export, folder, "--model", run, "--overwrite")
    checked = cli("check", "--config", project.config, "--for", "argos", "--set", "model.output_norm=5")
    lines = [line for line in checked.out.splitlines() if line.startswith("PROBLEM") and "set" in line]
    assert [line.split()[1] for line in lines[:4]] == [
        *("model.encoder.kind:", "model.decoder.kind:", "model.output_norm:", "text.tokenizer:")
    ]


def test_nothing_keeps_the_config_that_the_documentation_gives_from_argos(cli: Cli, tmp_path: Path) -> None:
    """Without its data, which come after what the format needs."""
    config = GUIDE.partition("    extends: base\n")
    (tmp_path / "mine.yaml").write_text(textwrap.dedent("".join(config[1:]).partition("\n\n")[0]), encoding="utf-8")
    checked = cli("check", "--config", tmp_path / "mine.yaml", "--for", "argos", "--data", tmp_path / "none")
    fits, data, last = checked.out.splitlines()
    assert (checked.code, fits) == (0, "ok      export to argos: no setting keeps the model from it")
    assert "create it with: nmt preprocess --config" in data
    assert (data[:8], last) == ("-       ", "nothing is wrong")
    (tmp_path / "none").mkdir()
    (tmp_path / "none/data.json").write_text("{", encoding="utf-8")
    damaged = cli("check", "--config", tmp_path / "mine.yaml", "--for", "argos", "--data", tmp_path / "none")
    assert (damaged.code, damaged.err.count("nmt: error: ")) == (1, 1)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("She sings. He reads.", ["She sings.", "He reads."]),
        ("What?! Oh… Yes", ["What?!", "Oh…", "Yes"]),
        ("Dr. Smith met J. Smith. Über uns!", ["Dr. Smith met J. Smith.", "Über uns!"]),
        ("3.5 km. no 4 U.S. ok", ["3.5 km. no 4 U.S. ok"]),
        ("A", ["A"]),
    ],
)
def test_sentences_end_at_marks_before_a_capital(text: str, sentences: list[str], tmp_path: Path) -> None:
    """The file is read as MiniSBD reads it: ids and capitals of characters in, the largest of three values out."""
    onnxruntime = pytest.importorskip("onnxruntime")
    write_splitter(tmp_path / "rules.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "rules.onnx", providers=["CPUExecutionProvider"])
    metadata = session.get_modelmeta().custom_metadata_map
    ids = json.loads(metadata["vocab"])["_unit2id"]
    assert json.loads(metadata["config"])["feat_funcs"] == ["capitalized"]
    units = np.array([[ids.get(character, ids["<UNK>"]) for character in text] + [ids["<PAD>"]]])
    capitals = np.array([[[character.isupper()] for character in text] + [[False]]], dtype=np.float32)
    (values,) = session.run(None, {"units": units, "features": capitals})
    ends = [place + 1 for place in np.flatnonzero(values[0].argmax(axis=1) == 2)]
    parts = [text[begin:end].strip() for begin, end in itertools.pairwise([0, *ends, len(text)])]
    assert parts == sentences


@pytest.mark.soak
def test_argos_itself_translates_as_here(run: Path, package: Path, tmp_path: Path) -> None:
    """In an environment of its own, as it pins versions; installed by the documented line, it needs no network."""
    python = tmp_path / "env" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True)
    for needed in (f"torch=={torch.__version__.partition('+')[0]}", "argostranslate==1.11.0"):
        installed = subprocess.run([python, "-m", "pip", "install", "--quiet", needed], capture_output=True, text=True)
        if installed.returncode:
            pytest.skip(f"{needed} cannot be installed: {installed.stderr.splitlines()[-1]}")
    script = Path(__file__).parents[2] / "scripts" / "benchmarks" / "argos_lines.py"
    model = json.loads((run / "best" / "model.json").read_text(encoding="utf-8"))
    languages = model["src_language"], model["tgt_language"]
    homes = {name: str(tmp_path / name) for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")}
    line = GUIDE.partition('$ python -c "')[2].partition('"\n')[0].replace("en_de.argosmodel", str(package))
    subprocess.run([python, "-c", line], check=True, env=os.environ | homes)
    assert [path.name for path in tmp_path.glob("XDG_DATA_HOME/**/translate-*")] == ["translate-" + "_".join(languages)]
    done = subprocess.run(
        [python, script, package, *languages],
        input=json.dumps(LINES) + "\n",
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | homes,
    )
    same = [ours == other for ours, other in zip(translate(run), json.loads(done.stdout), strict=True)]
    assert sum(same) >= 0.9 * len(LINES)
