"""Prepared data knows the files that it was made from, and is not reused silently when they change."""

import gzip
import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli, Refusal

from nmt.config import Config, load_config
from nmt.corpus.prepare import write_data
from nmt.corpus.source_files import find_changed
from nmt.system.files import shipped

LINES = [f"I have {number} cats .\tich habe {number} Katzen .\n" for number in range(20)]
CONFIG = """
data: {source: corpus.tsv, split: {valid_size: 2, test_size: 2}}
text: {tokenizer: whitespace}
model: {embedding_size: 4, encoder: {hidden_size: 4}, decoder: {hidden_size: 4}}
train: {max_updates: 1, device: cpu}
"""
TRAIN = ("train", "mine.yaml", "--output", "run")
GROWN = "corpus.tsv (740 bytes then, 780 now)"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_pictures: None) -> None:
    monkeypatch.chdir(tmp_path)
    Path("corpus.tsv").write_text("".join(LINES), encoding="utf-8")
    Path("mine.yaml").write_text(CONFIG, encoding="utf-8")


def prepare(**data: Any) -> dict[str, Any]:
    """Prepare data in `out`, and return the sources of its marker."""
    values = {"data": {"source": "corpus.tsv", "split": {"valid_size": 2, "test_size": 2}, **data}}
    config = load_config(Config(name="made"), {**values, "text.tokenizer": "whitespace"})
    write_data(config, Path("out"))
    sources: dict[str, Any] = json.loads(Path("out/data.json").read_text(encoding="utf-8"))["sources"]
    return sources


def grow(path: str = "corpus.tsv") -> None:
    with Path(path).open("a", encoding="utf-8") as file:
        file.write("I have many cats .\tviele Katzen hab ich\n")


def rewrite(path: str, seconds: int) -> None:
    """Change a letter of a file, and let it have been written so many seconds after the data."""
    text = Path(path).read_text(encoding="utf-8")
    Path(path).write_text(text.replace("cats", "cows", 1), encoding="utf-8")
    prepared = Path("out/data.json").stat().st_mtime
    os.utime(path, (prepared + seconds, prepared + seconds))


def test_every_file_is_recorded_as_it_is_on_the_disk() -> None:
    for language, column in (("en", 0), ("de", 1)):
        side = "".join(f"{line.rstrip().split(chr(9))[column]}\n" for line in LINES)
        Path(f"pair.{language}.gz").write_bytes(gzip.compress(side.encode()))
    Path("test.tsv").write_text("one cat\teine Katze\n", encoding="utf-8")
    Path("more").mkdir()
    Path("more/web.tsv").write_text("a dog is here\tein Hund ist hier\n", encoding="utf-8")
    split = {"valid_size": 2, "test_size": 0}
    sources = prepare(source="pair", test="test.tsv", extra={"web": {"source": "more/web.tsv"}}, split=split)
    files = ["pair.en.gz", "pair.de.gz", "test.tsv", "more/web.tsv"]
    assert list(sources) == files
    for name in files:
        content = Path(name).read_bytes()
        assert sources[name] == {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def test_a_file_that_ships_with_the_project_is_recorded_by_its_name_in_the_config() -> None:
    (size,) = [record["size"] for record in prepare(source="data/sample/deu.txt", first_lines=100).values()]
    assert size == shipped("data/sample/deu.txt").stat().st_size
    assert find_changed(Path("out")) == []


def test_a_download_is_recorded_where_it_is_kept() -> None:
    """It is there already, so that nothing is fetched."""
    Path("data/raw").mkdir(parents=True)
    Path("corpus.tsv").rename("data/raw/corpus.tsv")
    assert list(prepare(source="https://example.invalid/corpus.tsv")) == ["data/raw/corpus.tsv"]
    grow("data/raw/corpus.tsv")
    assert find_changed(Path("out")) == [f"data/raw/{GROWN}"]


def test_a_file_has_changed_if_its_size_or_its_content_has() -> None:
    prepare()
    assert find_changed(Path("out")) == []
    os.utime("corpus.tsv", (2e9, 2e9))  # newer, but the same
    assert find_changed(Path("out")) == []
    rewrite("corpus.tsv", 10)
    assert find_changed(Path("out")) == ["corpus.tsv (other content of the same size)"]
    rewrite("corpus.tsv", -10)  # an older file is not read
    assert find_changed(Path("out")) == []
    grow()
    assert find_changed(Path("out")) == [GROWN]


def test_data_without_its_files_or_without_a_record_is_silent() -> None:
    prepare()
    Path("elsewhere").mkdir()
    shutil.copytree("out", "elsewhere/out")
    grow()
    marker = json.loads(Path("out/data.json").read_text(encoding="utf-8"))
    del marker["sources"]
    Path("elsewhere/out/data.json").write_text(json.dumps(marker), encoding="utf-8")
    assert find_changed(Path("elsewhere/out")) == []
    Path("corpus.tsv").unlink()
    assert find_changed(Path("out")) == []
    Path("corpus.tsv").mkdir()
    assert find_changed(Path("out")) == []


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        ([], "nmt preprocess --config mine.yaml --overwrite"),
        (["--output", "out"], "nmt preprocess --config mine.yaml --output out --overwrite"),
        (["--source", "other.tsv"], "nmt preprocess --config mine.yaml --overwrite --source other.tsv"),
    ],
)
def test_training_on_earlier_content_is_a_warning_with_the_call_that_prepares_the_data_again(
    cli: Cli, given: list[str], advice: str
) -> None:
    shutil.copy("corpus.tsv", "other.tsv")
    assert cli("preprocess", "mine.yaml", *given).code == 0
    data = ["--data", "out"] if "--output" in given else []
    assert "earlier content" not in cli(*TRAIN, *data).err
    file = "other.tsv" if "--source" in given else "corpus.tsv"
    grow(file)
    folder = "out" if data else "data/prepared/mine"
    (line,) = [line for line in cli(*TRAIN, *data, "--overwrite").err.splitlines() if "earlier content" in line]
    files = GROWN.replace("corpus.tsv", file)
    assert line == f"WARNING: {folder}: was prepared from earlier content of {files}; preprocess again with: {advice}"
    assert cli(*advice.split()[1:]).code == 0
    assert "earlier content" not in cli(*TRAIN, *data, "--overwrite").err


def test_a_check_warns_too(cli: Cli) -> None:
    assert cli("preprocess", "mine.yaml").code == 0
    grow()
    assert f"earlier content of {GROWN}; preprocess again with: nmt preprocess" in cli("check", "mine.yaml").err


def test_a_damaged_record_is_named(refusal: Refusal) -> None:
    prepare()
    path = Path("out/data.json")
    path.write_text(path.read_text(encoding="utf-8").replace('"size": ', '"size": -'), encoding="utf-8")
    message = refusal("train", "mine.yaml", "--data", "out")
    assert message.startswith("out/data.json: damaged, or written by another version (sources.corpus.tsv.size")
