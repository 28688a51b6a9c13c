"""A text file that takes a long time to write: its finished part survives a kill, and writing can be resumed.

Until it is complete, it has a hidden name in the same folder, next to a record of what it is made from and of the
finished steps.
"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from nmt.system.errors import DataError, shorten
from nmt.system.files import beside, delete_leftovers, naming, read_bytes, real_path
from nmt.system.limits import MAX_RECORD
from nmt.system.replacement import locked

log = logging.getLogger(__name__)

Facts = Mapping[str, str | int | float | bool | None]
"""What a file is made from, by name."""
Step = tuple[int, int]
"""State after a step: finished lines of the input, and bytes of the output."""


class ResumableFile:
    """A text file that grows step by step.

    Args:
        file: Receives the text.
        record: Receives the record of steps.
        steps: Steps that were finished before.
    """

    def __init__(self, file: BinaryIO, record: BinaryIO, steps: list[Step]) -> None:
        self.file = file
        self.record = record
        self.steps = len(steps)
        """Steps that are finished."""
        self.lines = steps[-1][0] if steps else 0
        """Lines of the input that they have read."""

    def write(self, text: str, lines: int) -> None:
        """Finish a step.

        Args:
            text: Text that it adds.
            lines: Lines of the input that it read.
        """
        self.file.write(text.encode("utf-8", "replace"))
        self.file.flush()
        os.fsync(self.file.fileno())  # before the step is recorded
        self.steps += 1
        self.lines += lines
        self.note((self.lines, self.file.tell()))

    def note(self, value: Facts | Step) -> None:
        """Add to the record."""
        self.record.write(_as_line(value))
        self.record.flush()


@contextlib.contextmanager
def open_resumable(path: Path, made_from: Facts, *, resume: bool) -> Iterator[ResumableFile]:
    """Open a file for UTF-8 text; it appears only when the block succeeds.

    If the block fails, the finished part is kept for the next call if `resume` is true, and deleted otherwise. A kill
    keeps it in any case.

    Args:
        path: The file, in a folder that exists.
        made_from: What it is made from.
        resume: Resume an unfinished file, or begin if there is none; otherwise an unfinished one is deleted.

    Raises:
        DataError: Another command is writing it, or the unfinished one was made from something else.
    """
    if not real_path(path).parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    data, record = beside(path, "partial"), beside(path, "partial.jsonl")
    with locked(path), naming(path, data), naming(path, record):
        delete_leftovers(path)
        steps = _finished_steps(path, data, record, made_from if resume else None)
        if not steps:
            data.unlink(missing_ok=True)  # before the record that it belongs to
        try:
            with data.open("ab") as file, record.open("ab") as notes:
                file.truncate(steps[-1][1] if steps else 0)
                notes.truncate(sum(len(_as_line(value)) for value in (made_from, *steps)) if steps else 0)
                growing = ResumableFile(file, notes, steps)
                if not steps:
                    growing.note(made_from)
                yield growing
            data.replace(real_path(path))
            record.unlink()
        except BaseException as error:
            if not resume:
                data.unlink(missing_ok=True)
                record.unlink(missing_ok=True)
            elif isinstance(error, OSError):
                error.add_note("run the command again with --resume")
            raise


def _finished_steps(path: Path, data: Path, record: Path, made_from: Facts | None) -> list[Step]:
    """The steps of an unfinished file to resume; none if there is no such file, or it is to be deleted.

    Raises:
        DataError: It was made from something else than `made_from`.
    """
    try:
        size = data.stat().st_size
        # The last line, if it was written at all, may have been written in part.
        before, *noted = [json.loads(line) for line in read_bytes(record, MAX_RECORD).split(b"\n")[:-1]]
        steps = [(lines, end) for lines, end in noted if end <= size]
    except (OSError, ValueError, TypeError):
        return []
    if not isinstance(before, dict):
        return []
    if made_from is None:
        if steps:
            log.warning(f"{path}: {steps[-1][0]:,} unfinished lines are deleted; --resume would have kept them")
        return []
    differing = [
        f"{key} ({shorten(repr(before.get(key)))} there, {shorten(repr(made_from.get(key)))} here)"
        for key in {**before, **made_from}
        if before.get(key) != made_from.get(key)
    ]
    if differing:
        raise DataError(
            f"{path}: the unfinished one was made differently: {', '.join(differing)}; use the same, or begin again "
            "without --resume"
        )
    return steps


def _as_line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"
