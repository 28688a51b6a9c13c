"""SIGKILL while data or translations are written: what was there is still there, or the new is there whole."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import call, write_reversal_corpus
from test_kills import run_killed

from nmt.corpus.dataset import open_data

GOLDEN_MODEL = Path(__file__).parent / "golden/model"
CONFIG = """
name: killed
data: {{source: {source}, workers: 1, split: {{valid_size: {size}, test_size: 5}}}}
text: {{tokenizer: whitespace}}
"""
# Functions at whose calls `nmt preprocess` may be killed, how many calls it makes, and what it does there.
PLACES = {
    "nmt.corpus.cleaning.parse_chunk": 1,  # cleaning
    "nmt.corpus.splitting.split_pairs": 1,
    "nmt.corpus.token_ids.tokenize_block": 2,  # tokenising
    "nmt.corpus.token_ids.write_sequences": 2,  # writing
    "nmt.corpus.data_report.write_report": 1,
    "nmt.corpus.dataset.write_json": 1,  # the marker
    "os.replace": 10,
    "os.rename": 3,  # the earlier folder makes way, the new one takes its place, the earlier one is deleted
    "nmt.system.replacement.discard_earlier": 2,
    "shutil.rmtree": 4,
}
FEW = [
    ("nmt.corpus.cleaning.parse_chunk", 1, True),
    ("nmt.corpus.token_ids.tokenize_block", 2, False),
    ("nmt.corpus.token_ids.write_sequences", 2, True),
    ("os.rename", 2, True),
]
"""Of these it is known that they come, with or without an earlier folder."""
ALL = [
    (place, number, earlier)
    for place, numbers in PLACES.items()
    for number in range(1, numbers + 1)
    for earlier in (False, True)
]
MOMENTS = [*FEW, *(pytest.param(*moment, marks=pytest.mark.soak) for moment in ALL if moment not in FEW)]
Prepared = dict[str, tuple[list[str], dict[str, bytes]]]


def contents(directory: Path) -> dict[str, bytes]:
    """Every file except the report, which has the time."""
    files = {str(path.relative_to(directory)): path for path in directory.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in files.items() if name != "report.json"}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """Two ways to preprocess a corpus, `earlier` and `new`: arguments, and what comes of them."""
    root = tmp_path_factory.mktemp("prepared")
    write_reversal_corpus(root / "corpus.tsv", 600)
    found = {}
    for name, size in (("earlier", 5), ("new", 9)):
        config = root / f"{name}.yaml"
        config.write_text(CONFIG.format(source=root / "corpus.tsv", size=size), encoding="utf-8")
        assert call("preprocess", "--config", config, "--output", root / name) == 0
        found[name] = (["preprocess", "--config", str(config)], contents(root / name))
    assert found["earlier"][1] != found["new"][1]
    return found


def assert_one_is_whole(prepared: Prepared, output: Path, earlier: bool) -> None:
    """After a kill the earlier folder is there or the new one, and the next command tidies up."""
    before, after = prepared["earlier"][1], prepared["new"][1]
    if output.exists():
        assert contents(output) in ([before, after] if earlier else [after])
    elif earlier:  # killed between two renames: the earlier one is next to its place
        assert contents(output.with_name(".data.earlier")) == before
    whole = earlier or output.exists()
    again = [*prepared["new"][0], "--output", str(output)]
    assert call(*again) == (1 if whole else 0)
    assert contents(output) in ([before, after] if earlier else [after])
    assert call(*again, "--overwrite") == 0
    assert contents(output) == after
    assert [path.name for path in output.parent.iterdir()] == ["data"]
    assert len(open_data(output).valid) == 9


@pytest.mark.parametrize(("place", "number", "earlier"), MOMENTS)
def test_a_killed_preprocess(prepared: Prepared, tmp_path: Path, place: str, number: int, earlier: bool) -> None:
    output = tmp_path / "folder/data"
    if earlier:
        assert call(*prepared["earlier"][0], "--output", output) == 0
    killed = run_killed(place, number, [*prepared["new"][0], "--output", str(output), *["--overwrite"] * earlier])
    assert killed or (place, number, earlier) not in FEW
    assert_one_is_whole(prepared, output, earlier)


@pytest.mark.soak
def test_kills_at_random_times(prepared: Prepared, tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    chance = random.Random(seed)
    output = tmp_path / "folder/data"
    command = [sys.executable, "-m", "nmt", *prepared["new"][0], "--output", str(output), "--overwrite"]
    begin = time.perf_counter()
    subprocess.run(command, stderr=subprocess.DEVNULL, check=True)
    longest = time.perf_counter() - begin
    kills, begun = 0, 0
    for _ in range(30):
        assert call(*prepared["earlier"][0], "--output", output, "--overwrite") == 0
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            try:
                process.wait(chance.uniform(0.4, 1.1) * longest)
            except subprocess.TimeoutExpired:
                process.kill()
                kills += 1
        begun += bool(list(output.parent.glob(".data.*")))
        assert_one_is_whole(prepared, output, earlier=True)
    print(f"{kills} kills within {longest:.1f} s, {begun} of them at work")
    assert kills > 5


@pytest.mark.soak
def test_workers_end_with_a_killed_preprocess(tmp_path: Path) -> None:
    """Each of them holds the standard error that `run_killed` reads to its end."""
    source, config = tmp_path / "corpus.tsv", tmp_path / "c.yaml"
    chance = random.Random(1)
    lines = [" ".join(chance.choices("abcdefgh", k=12)) for _ in range(200_000)]
    source.write_text("".join(f"{line}\t{line[::-1]}\n" for line in lines), encoding="utf-8")
    settings = CONFIG.format(source=source, size=5).replace("workers: 1", "workers: 2")
    config.write_text(settings, encoding="utf-8")
    arguments = ["preprocess", "--config", str(config), "--output", str(tmp_path / "data")]
    for place, number in (("nmt.corpus.lines.line_lengths", 4), ("nmt.corpus.store.in_chunks", 1)):
        assert run_killed(place, number, arguments)
        assert not (tmp_path / "data").exists()
    assert call(*arguments) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.yaml", "corpus.tsv", "data"]


@pytest.mark.parametrize("earlier", [None, "an earlier translation\n"])
@pytest.mark.parametrize(
    ("place", "number"),
    [
        ("nmt.search.searcher.search", 1),
        pytest.param("nmt.translation.input.decode_line", 70_001, marks=pytest.mark.soak),
        pytest.param("os.replace", 1, marks=pytest.mark.soak),
    ],
)
def test_a_killed_translation(tmp_path: Path, place: str, number: int, earlier: str | None) -> None:
    given, output = tmp_path / "in.txt", tmp_path / "out.txt"
    given.write_text("\n" * 70_000 + "Hello.\n", encoding="utf-8")  # more than is read, and written, at once
    if earlier is not None:
        output.write_text(earlier, encoding="utf-8")
    command = ["translate", "--model", str(GOLDEN_MODEL), "--beam-size", "1", "-i", str(given), "-o", str(output)]
    assert run_killed(place, number, command)
    assert (tmp_path / ".out.txt.partial").stat().st_size > 8000  # it had begun to write
    assert output.exists() == (earlier is not None)
    assert earlier is None or output.read_text(encoding="utf-8") == earlier
    assert call(*command) == 0
    assert output.read_text(encoding="utf-8").count("\n") == 70_001
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "out.txt"]
