"""Untrusted model, data and run folders: reading them runs no code of theirs, terminates and needs little memory."""

import base64
import functools
import hashlib
import json
import multiprocessing
import os
import resource
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from conftest import UPDATES, Cli, Project, Refusal, call, errors

from nmt.config import Config, DataSection, ParentSection
from nmt.models.build import build_model
from nmt.models.storage import load_model, save_model
from nmt.system.errors import CheckpointError
from nmt.text.processor import TextProcessor
from nmt.text.tokenizers import SubwordTokenizer, Tokenizer, WhitespaceTokenizer
from nmt.text.vocabulary import Vocabulary
from nmt.training.checkpoint import Checkpoint, newest_checkpoint, write_checkpoint

PAYLOAD = """
from pathlib import Path
Path({canary!r}).touch()
from nmt.layers.attention.general import GeneralScore
class Score(GeneralScore):
    pass
"""
TEXT = ["the cat sat on the mat", "a dog sat", "die Katze sass da", "ein Hund sass auf der Matte"] * 5


@pytest.fixture(autouse=True)
def limited_time() -> Iterator[None]:
    """Opening a pipe without a writer blocks for ever: here that is a failure."""

    def fail(number: int, frame: object) -> None:
        pytest.fail("hangs")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def canary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file that is there once the code of the module `stranger_payload` has run."""
    path = tmp_path / "the_code_ran"
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules/stranger_payload.py").write_text(PAYLOAD.format(canary=str(path)), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    yield path
    sys.modules.pop("stranger_payload", None)


def copied(folder: Path, to: Path) -> Path:
    """A copy of a folder, which a test may damage."""
    shutil.copytree(folder, to)
    return to


def tokenizers(kind: str) -> tuple[Tokenizer, Tokenizer]:
    if kind == "subword":
        pieces = SubwordTokenizer.learn(TEXT, algorithm="bpe", vocabulary_size=40)
        return pieces, pieces
    return WhitespaceTokenizer(), WhitespaceTokenizer()


def make_model_directory(folder: Path, kind: str = "whitespace") -> Path:
    """A model folder without any training."""
    src, tgt = tokenizers(kind)
    tokens = sorted({token for line in src.tokenize(TEXT) for token in line})
    vocabulary = Vocabulary(tokens)
    pieces, layers = {"joint": True}, {"hidden_size": 8}
    settings = {"tokenizer": kind, "subword": pieces, "vocabulary": pieces}
    sizes = {"embedding_size": 8, "encoder": layers, "decoder": layers}
    config = Config.model_validate({"name": "small", "text": settings, "model": sizes})
    text = folder.with_name(f"{folder.name}.text")
    text.mkdir()
    TextProcessor(src, tgt, vocabulary, vocabulary).save(text)
    torch.manual_seed(0)
    model = build_model(config.model, len(vocabulary), len(vocabulary))
    save_model(folder, config, model, text, {"update": 3, "epoch": 1, "scores": {}})
    return folder


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The model folder of a kind of tokenizer, which is made once."""
    return functools.cache(lambda kind: make_model_directory(tmp_path_factory.mktemp("original") / "model", kind))


@pytest.fixture
def model(original: Callable[[str], Path], tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A model folder, which a test may damage."""
    return copied(original(getattr(request, "param", "whitespace")), tmp_path / "model")


def let_config_name(directory: Path, score: str) -> None:
    path = directory / "config.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("score: general", f"score: {score}"), encoding="utf-8")


@pytest.mark.parametrize("score", ["stranger_payload.Score", "stranger_payload.Missing", "stranger_payload.sub.Score"])
def test_a_class_that_a_model_names_is_not_imported(model: Path, canary: Path, refusal: Refusal, score: str) -> None:
    let_config_name(model, score)
    assert f"--allow-class {score}" in refusal("translate", "--model", model, "the cat")
    refusal("translate", "--model", model, "the cat", "--allow-class", "stranger_payload.Other")
    assert not canary.exists()
    assert "stranger_payload" not in sys.modules


def test_a_class_that_its_user_allows_is_used_once(tmp_path: Path, model: Path, canary: Path, cli: Cli) -> None:
    let_config_name(model, "stranger_payload.Score")
    plain = cli("translate", "--model", make_model_directory(tmp_path / "plain"), "the cat")
    allowed = cli("translate", "--model", model, "the cat", "--allow-class", "stranger_payload.Score")
    assert (allowed.code, allowed.out) == (0, plain.out)
    assert canary.exists()
    canary.unlink()
    assert cli("translate", "--model", model, "the cat").code == 1  # the permission is not remembered
    assert not canary.exists()


def test_a_custom_score_may_keep_a_buffer_out_of_its_weights(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a buffer has no values on the meta device, on which shapes are compared."""
    (tmp_path / "scores_with_buffer.py").write_text(
        "import torch\nfrom nmt.layers.attention.general import GeneralScore\n"
        "class Scaled(GeneralScore):\n"
        "    def __init__(self, query_size, key_size):\n"
        "        super().__init__(query_size, key_size)\n"
        "        self.register_buffer('factor', torch.full((1,), 2.0), persistent=False)\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    let_config_name(model, "scores_with_buffer.Scaled")
    loaded = load_model(model, allowed_classes=["scores_with_buffer.Scaled"])
    (factor,) = loaded.model.buffers()
    assert factor.tolist() == [2.0]


@pytest.mark.parametrize(
    "command",
    [
        ["train", "--config", "MINE", "--data", "DATA", "--output", "new", "--set", "train.max_updates=2"],
        ["train", "--config", "MINE", "--data", "DATA", "--output", "RUN", "--resume"],
        ["train", "--config", "MINE", "--data", "DATA", "--output", "new", "--set", "parent=RUN"],
        ["preprocess", "--config", "MINE", "--output", "data2", "--set", "parent=RUN"],
        ["evaluate", "--model", "RUN", "--data", "DATA"],
        ["translate", "--model", "RUN", "a b"],
    ],
    ids=lambda command: f"{command[0]} {command[-1]}",
)
def test_no_command_imports_what_a_received_folder_names(
    project: Project, tmp_path: Path, canary: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], cli: Cli
) -> None:
    """Data, run, checkpoint and model all name a class; nothing of it runs, whatever else comes of the command."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(project.data, "data")
    shutil.copytree(project.run, "run")
    for config in (*Path("data").rglob("config.yaml"), *Path("run").rglob("config.yaml")):
        text = config.read_text(encoding="utf-8")
        assert "score: additive" in text
        config.write_text(text.replace("score: additive", "score: stranger_payload.Score"), encoding="utf-8")
    places = {"MINE": str(project.config), "DATA": "data", "RUN": "run"}
    arguments = [places.get(word, word.replace("RUN", "run")) for word in command]
    outcome = cli(*arguments)
    assert "Traceback" not in outcome.err
    assert not canary.exists()
    assert "stranger_payload" not in sys.modules


def in_child(work: Callable[[], int], seconds: int = 10) -> tuple[int | None, int]:
    """Do some work in a forked process.

    Returns:
        Its exit code, None where it took longer than `seconds` of processor time or never ended; and by how many bytes
        its memory grew at most.
    """
    context = multiprocessing.get_context("fork")
    reader, writer = context.Pipe(duplex=False)

    def run() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        code = work()
        writer.send((code, 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)))
        os._exit(0)

    child = context.Process(target=run)
    child.start()
    child.join(6 * seconds)
    child.kill()
    child.join()
    with reader, writer:
        return reader.recv() if reader.poll() else (None, 0)


def set_in(path: Path, value: Any, *keys: str) -> None:
    """Set a value in a YAML or JSON file."""
    load, dump = (json.loads, json.dumps) if path.suffix == ".json" else (yaml.safe_load, yaml.safe_dump)
    content = load(path.read_text(encoding="utf-8"))
    inner = content
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    path.write_text(dump(content), encoding="utf-8")


@pytest.mark.parametrize("key", ["model.encoder.hidden_size", "model.decoder.hidden_size", "model.embedding_size"])
def test_sizes_that_the_weights_do_not_have_take_no_memory(model: Path, key: str) -> None:
    """`hidden_size: 20000` over a file of 170 KB filled 8 GB."""
    set_in(model / "config.yaml", 16_000, *key.split("."))

    def load() -> int:
        with pytest.raises(CheckpointError, match="weights do not match config and vocabulary"):
            load_model(model)
        return 0

    code, grown = in_child(load)
    assert code == 0
    assert grown < 50 * 2**20


def test_a_vocabulary_that_the_weights_do_not_have_takes_no_memory(model: Path) -> None:
    for side in ("src", "tgt"):
        (model / f"text/{side}.vocabulary.json").write_text(json.dumps([f"w{n}" for n in range(60_000)]))
    with pytest.raises(CheckpointError, match="weights do not match config and vocabulary"):
        load_model(model)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.float64, torch.bfloat16, torch.float16])
def test_weights_of_another_type_are_refused(model: Path, dtype: torch.dtype) -> None:
    from safetensors.torch import load_file, save_file

    path = model / "model.safetensors"
    save_file({name: tensor.to(dtype) for name, tensor in load_file(path).items()}, path)
    with pytest.raises(CheckpointError, match="should be F32"):
        load_model(model)


TEXT_FILES = "src.vocabulary.json tgt.vocabulary.json src.tokenizer.json tgt.tokenizer.json"
TEXT_FILES += " normalization.json src.subwords.model"
FILES = ("model.json", "config.yaml", "model.safetensors", "text", *(f"text/{name}" for name in TEXT_FILES.split()))


def replace_by(path: Path, kind: str) -> None:
    """Put something else in the place of a file or folder."""
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case _:
            path.symlink_to(kind)


@pytest.mark.parametrize("kind", ["fifo", "/dev/zero", "/etc/passwd", "folder", "itself"])
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("model", ["subword"], indirect=True)
def test_only_regular_files_of_the_folder_are_read(model: Path, refusal: Refusal, name: str, kind: str) -> None:
    """A FIFO hung, a link to /dev/zero was read until memory ended, one to /etc/passwd was quoted in the error."""
    replace_by(model / name, Path(name).name if kind == "itself" else kind)
    line = refusal("translate", "--model", model, "the cat")
    if kind == "folder" and "." in name:
        assert str(model if name == "model.json" else model / name) in line


@pytest.mark.parametrize("kind", ["fifo", "/etc/passwd", "itself", "3 GB", "not UTF-8"])
@pytest.mark.parametrize("name", ["README.md", "text/tgt.subwords.model"])
@pytest.mark.parametrize("model", ["subword"], indirect=True)
def test_an_export_reads_only_regular_files_of_the_folder(
    model: Path, tmp_path: Path, refusal: Refusal, name: str, kind: str
) -> None:
    """An exported card quoted /etc/passwd, a FIFO hung, and 3 GB that take no room on the disk took 6.5 GiB."""
    path = model / name
    path.touch()
    if kind == "3 GB":
        os.truncate(path, 3 * 2**30)
    elif kind == "not UTF-8":
        path.write_bytes(b"gr\xfcn")
    else:
        replace_by(path, path.name if kind == "itself" else kind)
    line = refusal("export", "--model", model, "--to", "onnx", "--output", tmp_path / "out")
    assert line.startswith(str(path))
    assert not (tmp_path / "out").exists()


PICTURES = ["runs/reversal/learning_curve.png", "data/prepared/reversal/lengths.png"]


@pytest.mark.parametrize("kind", ["fifo", "theirs.txt"])
def test_a_report_shows_only_pictures_of_its_folders(here: Project, kind: str, cli: Cli) -> None:
    """A link in data of a stranger became part of the page."""
    Path("theirs.txt").write_text("a secret", encoding="utf-8")
    for name in PICTURES:
        replace_by(Path(name), str(here.root / kind) if kind.startswith("theirs") else kind)
    outcome = cli("report", "--model", here.run, "--output", "report.html")
    assert outcome.code == 0
    assert "Traceback" not in outcome.err
    secret = base64.b64encode(b"a secret").decode()
    assert secret not in Path("report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PICTURES)
def test_a_report_shows_no_large_pictures(here: Project, name: str, cli: Cli) -> None:
    os.truncate(name, 3 * 2**30)  # takes no room on the disk
    outcome = cli("report", "--model", here.run, "--output", "report.html")
    assert outcome.code in (0, 1)
    assert "Traceback" not in outcome.err
    assert Path("report.html").exists() == (outcome.code == 0)
    if outcome.code:
        (line,) = errors(outcome.err)
        assert line.startswith(f"nmt: error: {name}: has 3,221,225,472 bytes, more than the limit")


@pytest.mark.parametrize(
    "name",
    ["run.json", "config.yaml", "best", "metrics.jsonl", "checkpoints", "checkpoint", "text", "models"],
)
@pytest.mark.parametrize("kind", ["fifo", "theirs.txt", "theirs"])
def test_only_regular_files_of_a_run_are_read(project: Project, tmp_path: Path, cli: Cli, name: str, kind: str) -> None:
    run = copied(project.run, tmp_path / "run")
    place = max((run / "checkpoints").glob("*.safetensors")) if name == "checkpoint" else run / name
    if name == "models":
        place.mkdir()
    (tmp_path / "theirs.txt").write_text("root: a secret\n", encoding="utf-8")
    (tmp_path / "theirs").mkdir()
    replace_by(place, str(tmp_path / kind) if kind.startswith("theirs") else kind)
    assert cli("runs", tmp_path).code == 0
    for command in (
        ["translate", "--model", run, "a b"],
        ["train", "--config", project.config, "--data", project.data, "--output", run, "--resume"],
    ):
        outcome = cli(*command)
        assert outcome.code in (0, 1)
        assert "Traceback" not in outcome.err
        assert "root:" not in outcome.err
    assert (tmp_path / "theirs.txt").read_text(encoding="utf-8") == "root: a secret\n"
    assert not list((tmp_path / "theirs").iterdir())


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("model.json", '{"format_version": ' + "1" * 5000 + "}", "a number of 5,000 digits"),
        ("model.json", '{"format_version": "\\u001b[2J"}', "model format '\\x1b[2J'"),
        ("model.json", "[" * 100_000, "not valid JSON"),
        ("model.json", "7", "model format None"),
        ("text/src.tokenizer.json", "[[[]]]", "src.tokenizer.json"),
        ("model.safetensors", "", "model.safetensors: damaged or truncated (1,099,511,627,776 bytes)"),
    ],
)
def test_files_that_promise_too_much(model: Path, refusal: Refusal, name: str, content: str, found: str) -> None:
    if content:
        (model / name).write_text(content, encoding="utf-8")
    else:
        os.truncate(model / name, 2**40)  # takes no room on the disk
    assert found in refusal("translate", "--model", model, "the cat")


def test_control_characters_of_a_vocabulary_reach_no_terminal(tmp_path: Path, model: Path, cli: Cli) -> None:
    path = model / "text/tgt.vocabulary.json"
    number = len(json.loads(path.read_text(encoding="utf-8")))
    token = "\x1b[2J\x1b]0;owned\x07 \x9b31m a\x08\x08b \x7f \x00x \u202e \u2066".replace(" ", "")
    path.write_text(json.dumps([f"{token}{n}" for n in range(number)]), encoding="utf-8")
    for more in ([], ["--n-best", "3"], ["--attention", tmp_path / "map.png"]):
        outcome = cli("translate", "--model", model, "the cat", *more)
        assert outcome.code == 0
        assert "31m" in outcome.out
        assert all(line.isprintable() for line in (outcome.out + outcome.err).splitlines())


def test_a_model_reveals_nothing_about_its_machine(project: Project) -> None:
    for path in (project.run / "best").rglob("*"):
        if path.is_file():
            assert str(project.root).encode() not in path.read_bytes(), path


def test_paths_of_a_config_are_cut_in_a_model(tmp_path: Path, model: Path) -> None:
    config = load_model(model).config
    sources = ("/somewhere/else/corpus.tsv", "https://example.org/a/b.zip", "data/sample/x.tsv", "../y.tsv")
    paths = {
        "data": DataSection(source=sources, directory="/somewhere/else/data"),
        "parent": ParentSection(run="/somewhere/else/runs/a"),
    }
    config = config.model_copy(update=paths)
    save_model(tmp_path / "again", config, load_model(model).model, model / "text", {})
    found = yaml.safe_load((tmp_path / "again/config.yaml").read_text(encoding="utf-8"))
    assert found["data"]["source"] == ["corpus.tsv", "https://example.org/a/b.zip", "data/sample/x.tsv", "y.tsv"]
    assert found["data"]["directory"] == "data"
    assert found["parent"]["run"] == "a"


def put(place: int, value: int) -> Callable[[Path], None]:
    """Changes a number of an array on disk, and the checksum of it that the data directory holds."""

    def change(path: Path) -> None:
        numbers = np.load(path)
        numbers[place] = value
        np.save(path, numbers)
        set_in(path.parent / "data.json", hashlib.sha256(path.read_bytes()).hexdigest(), "sha256", path.name)

    return change


ARRAYS = {
    "empty": b"",
    "zip": b"PK\x03\x04xxxxx",
    "nested": b"\x93NUMPY\x01\x00\x10\x27" + b"(" * 10_000,
    "cut": b"\x93NUMPY\x01\x00",
    "other": b"x" * 300,
}
EXAMPLES = {
    "nothing": b"",
    "nested": b"[" * 500_000,
    "without references": b'{"src": "a", "references": []}\n',
    "a number": b'{"src": 3, "references": ["a"]}\n',
    "a string": b'{"src": "a", "references": "abc"}\n',
    "too few": b'{"src": "a", "references": ["b"]}\n',
}


def replaced(kind: str) -> Callable[[Path], None]:
    return lambda path: replace_by(path, kind)


def written(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


@pytest.mark.parametrize(
    ("name", "damage", "fault"),
    [
        *(
            pytest.param(name, replaced(kind), "", id=f"{name} {kind}")
            for name in ("data.json", "config.yaml", "train.src.ids.npy", "valid.jsonl", "test.jsonl", "text")
            for kind in ("fifo", "/etc/passwd")
        ),
        *(
            pytest.param(name, written(content), Path(name).name, id=f"{name} {what}")
            for name in ("train.src.ids.npy", "valid.tgt.offsets.npy", "text/train.src.fingerprints.npy")
            for what, content in ARRAYS.items()
        ),
        *(pytest.param("valid.jsonl", written(content), "valid.jsonl", id=what) for what, content in EXAMPLES.items()),
        # These took gigabytes, or ended the run with a traceback once the sentence was reached.
        ("train.tgt.offsets.npy", put(10, 2**40), "do not match"),
        ("train.src.offsets.npy", put(0, -5), "do not match"),
        ("train.src.offsets.npy", put(3, 10**4), "do not match"),
        ("train.src.ids.npy", put(5, 60_000), "has ids beyond the"),
        ("train.tgt.ids.npy", put(5, -5), "has ids beyond the"),
        ("valid.src.ids.npy", put(3, 60_000), "has ids beyond the"),
    ],
)
def test_data_that_is_damaged(
    project: Project, tmp_path: Path, refusal: Refusal, name: str, damage: Callable[[Path], object], fault: str
) -> None:
    data = copied(project.data, tmp_path / "data")
    damage(data / name)
    config, run = ["--config", project.config, "--data", data], tmp_path / "run"
    if name == "test.jsonl":
        refusal("evaluate", "--model", project.run, "--data", data)
        return
    for command in (["train", "--output", run], *([["check"]] if "ids" in fault or "match" in fault else [])):
        assert fault in refusal(*command, *config)
    assert not run.exists()


VALUES = ("x", None, [1], {}, -1, 1.5, True, 10**17, "\x1b[2J", [None] * 9, 10**40)
PLACES = [
    *(("progress", name) for name in ("update", "epoch", "position", "best", "best_loss", "waited", "learnt")),
    *((name,) for name in ("progress", "rate", "workers", "meter_seconds")),
    *((name,) for name in ("config", "data", "environment", "metrics_size", "run_seconds", "format_version")),
]


ALL_VALUES = [pytest.param(place, VALUES, marks=pytest.mark.soak) for place in PLACES]
SOME_VALUES = [(place, VALUES[number % 5 :: 5]) for number, place in enumerate(PLACES)]
"""Each place has two or three of them, each value comes three times or more."""


@pytest.mark.parametrize(("place", "values"), [*SOME_VALUES, *ALL_VALUES])
def test_a_checkpoint_with_a_valid_checksum_and_invalid_facts(
    random_project: Project, tmp_path: Path, place: tuple[str, ...], values: tuple[object, ...], cli: Cli
) -> None:
    checkpoint = newest_checkpoint(random_project.run)
    for value in values:
        signal.alarm(120)
        run = copied(random_project.run, tmp_path / "run")
        changed = json.loads(json.dumps(checkpoint.metadata))
        inner = changed
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = value
        write_checkpoint(run, UPDATES, Checkpoint(checkpoint.tensors, changed), keep=1)
        arguments = ["--config", random_project.config, "--data", random_project.data, "--output", run, "--resume"]
        outcome = cli("train", *arguments)
        assert outcome.code in (0, 1), (value, outcome.err)
        assert "Traceback" not in outcome.err
        assert all(line.isprintable() for line in outcome.err.splitlines()), (value, outcome.err)
        shutil.rmtree(run)


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("runs/reversal/best/model.json", ["translate", "a b"]),
        ("runs/reversal/run.json", ["train", "--config", "CONFIG", "--resume"]),
        ("data/prepared/reversal/test.jsonl", ["evaluate"]),
    ],
)
def test_much_json_takes_little_memory(
    here: Project, capsys: pytest.CaptureFixture[str], name: str, command: list[str]
) -> None:
    path = Path(name)
    first, *_ = path.read_text(encoding="utf-8").splitlines(keepends=True)
    content = first if path.suffix == ".jsonl" else path.read_text(encoding="utf-8")
    path.write_text(content.rstrip()[:-1] + ', "more": [' + ",".join(["{}"] * 3_000_000) + "]}\n", encoding="utf-8")

    def work() -> int:
        return call(*(here.config if word == "CONFIG" else word for word in command))

    code, grown = in_child(work)
    assert code == (0 if name.endswith("run.json") else 1)  # a run is resumed without it
    assert grown < 200 * 2**20  # libraries included; parsed it would take 250 more
