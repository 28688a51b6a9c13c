import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from conftest import assert_same_tensors

from nmt.system.errors import CheckpointError
from nmt.training.checkpoint import Checkpoint, clean_up_checkpoints, newest_checkpoint, write_checkpoint

Newest = Callable[[Path], tuple[int, list[str]]]


def checkpoint_of(update: int) -> Checkpoint:
    tensors = {"weights": torch.full((3, 2), float(update)), "state": torch.tensor([update], dtype=torch.uint8)}
    return Checkpoint({**tensors, "step": torch.tensor(0.5), "none": torch.zeros(0)}, {"progress": update, "ü": [None]})


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Checkpoints of updates 1, 2 and 3."""
    for update in (1, 2, 3):
        write_checkpoint(tmp_path, update, checkpoint_of(update), keep=9)
    return tmp_path


def names(run: Path) -> list[str]:
    return sorted(path.name for path in (run / "checkpoints").iterdir())


def tensors_of(run: Path, update: int) -> Path:
    return run / f"checkpoints/update-{update:09d}.safetensors"


@pytest.fixture
def newest(caplog: pytest.LogCaptureFixture) -> Newest:
    """The update of a run's newest checkpoint, and what is said while it is looked for."""

    def find(run: Path) -> tuple[int, list[str]]:
        caplog.clear()
        return newest_checkpoint(run).metadata["progress"], caplog.messages

    return find


def test_what_is_written_is_read(tmp_path: Path) -> None:
    written = checkpoint_of(7)
    write_checkpoint(tmp_path, 7, written, keep=1)
    found = newest_checkpoint(tmp_path)
    assert_same_tensors(dict(found.tensors), dict(written.tensors))
    assert found.metadata == {"format_version": 2, **written.metadata}
    assert names(tmp_path) == ["update-000000007.safetensors"]


def test_files_can_be_read_by_others(run: Path) -> None:
    assert {path.stat().st_mode & 0o777 for path in (run / "checkpoints").iterdir()} == {
        (run / "checkpoints").stat().st_mode & 0o666
    }


@pytest.mark.parametrize(("keep", "left"), [(1, [9]), (2, [3, 9]), (4, [1, 2, 3, 9])])
def test_the_newest_are_kept(run: Path, keep: int, left: list[int]) -> None:
    write_checkpoint(run, 9, checkpoint_of(9), keep)
    assert names(run) == [f"update-{update:09d}.safetensors" for update in left]


def flip(path: Path, place: int = -1) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-5]),
    "flipped": flip,
    "flipped size": lambda path: flip(path, 0),
    "flipped header": lambda path: flip(path, 30),
    "flipped name": lambda path: path.write_bytes(path.read_bytes().replace(b'"sha256"', b'"sha257"')),
    "empty": lambda path: path.write_bytes(b""),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_skipped_and_reported(run: Path, damage: str, newest: Newest) -> None:
    path = tensors_of(run, 3)
    DAMAGES[damage](path)
    update, (line,) = newest(run)
    assert update == 2
    assert line.startswith(f"{path}: damaged (")
    assert line.endswith("using the one before")
    clean_up_checkpoints(run, update)
    assert len(names(run)) == 2
    assert newest(run) == (2, [])


def test_damaged_ones_that_are_newer_do_not_survive_pruning(run: Path, newest: Newest) -> None:
    flip(tensors_of(run, 2))
    flip(tensors_of(run, 3))
    clean_up_checkpoints(run, 1)
    write_checkpoint(run, 2, checkpoint_of(2), keep=2)
    assert newest(run) == (2, [])
    assert {name.split(".")[0] for name in names(run)} == {"update-000000001", "update-000000002"}


def test_only_leftovers_of_a_killed_process_are_cleaned_up(run: Path, newest: Newest) -> None:
    folder = run / "checkpoints"
    left = [".update-000000004.safetensors.partial-0", ".tmpa1B2c3"]
    for name in left:
        (folder / name).write_bytes(b"half")
    for name in ("notes.txt", "update-of-mine.safetensors"):
        (folder / name).touch()
    before = names(run)
    assert newest(run) == (3, [])
    clean_up_checkpoints(run, 3)
    assert names(run) == [name for name in before if name not in left]


def test_another_format_is_named_and_kept(tmp_path: Path) -> None:
    made = checkpoint_of(1)
    write_checkpoint(tmp_path, 1, made, keep=2)
    write_checkpoint(tmp_path, 2, Checkpoint(made.tensors, {**made.metadata, "format_version": 99}), keep=2)
    with pytest.raises(CheckpointError, match="checkpoint format 99, this version of nmt reads 2"):
        newest_checkpoint(tmp_path)
    assert len(names(tmp_path)) == 2


def test_nothing_is_pickled(run: Path) -> None:
    content = tensors_of(run, 3).read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    assert json.loads(header["__metadata__"]["nmt"])["progress"] == 3
