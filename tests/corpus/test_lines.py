import contextlib
import functools
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import processes
import pytest

from nmt.corpus.lines import UNPACK
from nmt.corpus.sources import LineReport, open_corpus, parse_chunk
from nmt.system.memory import peak_resident

SUFFIXES = [".tsv", ".gz", ".bz2", ".xz", ".zip"]


def read(*paths: Path) -> None:
    """Read three lines, of which the second is too long in each file."""
    report, pairs = LineReport(0), 0
    for chunk in open_corpus(list(paths))["train"].chunks(report):
        found, lines = parse_chunk(chunk)
        pairs += len(found)
        report.add(lines)
    assert (pairs, report.read, report.malformed) == (2, 3, {"too_long": 1}), (pairs, report)


def measure(small: Path, large: Path) -> None:
    """Print by how many MiB this process grows when it reads the large file after the small one."""
    read(small)
    before = peak_resident()
    for paths in ([large], [large, large]):
        read(*paths)
    print((peak_resident() - before) / 2**20)


@contextlib.contextmanager
def packed(path: Path) -> Iterator[IO[bytes]]:
    """A file to write, packed as its suffix says."""
    if path.suffix == ".zip":
        archive = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        with archive, archive.open("a.tsv", "w", force_zip64=True) as member:
            yield member
    else:
        options = {"preset": 0} if path.suffix == ".xz" else {}  # with more, its memory grows with the file
        with UNPACK.get(path.suffix, open)(path, "wb", **options) as file:
            yield file


def write_long_line(path: Path, megabytes: int) -> Path:
    """Three lines, of which the second has so many megabytes, written piece by piece."""
    with packed(path) as file:
        file.write(b"1\ta\n")
        for _ in range(megabytes):
            file.write(b"x" * 1_000_000)
        file.write(b"\n3\tc\n")
    return path


def growth(small: Path, large: Path) -> float:
    """MiB that a process takes more for the large file, alone and as parallel text, than for the small one."""
    done = processes.run(program=functools.partial(measure, small, large))
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("megabytes", [20, pytest.param(2000, marks=pytest.mark.soak)])
def test_a_long_line_takes_little_memory(tmp_path: Path, suffix: str, megabytes: int) -> None:
    small, large = (write_long_line(tmp_path / f"{size}{suffix}", size) for size in (2, megabytes))
    found = growth(small, large)
    print(f"{suffix}: {found:.1f} MiB more for a line of {megabytes} MB than for one of 2 MB")
    assert found < 10
