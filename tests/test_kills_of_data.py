"""SIGKILL while data or translations are written: what was there is still there, or the new is there whole."""

import shutil
from pathlib import Path

import pytest
from conftest import call, write_reversal_corpus
from test_kills import run_killed

from nmt.corpus.dataset import open_data

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
    "nmt.corpus.marker_schema.write_json": 1,  # the marker
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
Prepared = dict[str, tuple[list[str], dict[str, bytes], Path]]


def contents(directory: Path) -> dict[str, bytes]:
    """Every file except the report, which has the time."""
    files = {str(path.relative_to(directory)): path for path in directory.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in files.items() if name != "report.json"}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """Two ways to preprocess a corpus, `earlier` and `new`: arguments, what comes of them, and where that is."""
    root = tmp_path_factory.mktemp("prepared")
    write_reversal_corpus(root / "corpus.tsv", 600)
    found = {}
    for name, size in (("earlier", 5), ("new", 9)):
        config = root / f"{name}.yaml"
        config.write_text(CONFIG.format(source=root / "corpus.tsv", size=size), encoding="utf-8")
        assert call("preprocess", "--config", config, "--output", root / name) == 0
        found[name] = (["preprocess", "--config", str(config)], contents(root / name), root / name)
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
        shutil.copytree(prepared["earlier"][2], output)
    killed = run_killed(place, number, [*prepared["new"][0], "--output", str(output), *["--overwrite"] * earlier])
    assert killed or (place, number, earlier) not in FEW
    assert_one_is_whole(prepared, output, earlier)
