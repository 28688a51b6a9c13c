"""A text file that takes a long time to write: its finished part survives a kill, and writing can be resumed.

Until it is complete, it has a hidden name in the same folder, next to a small JSON file that names its origins
and how much of it is finished.
"""

import contextlib
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from nmt.system.errors import DataError, add_remedy, name_differences
from nmt.system.files import atomic_file, hidden_path, naming, read_json, real_path, write_json
from nmt.system.messages import Message, Parameter
from nmt.system.replacement import locked

log = logging.getLogger(__name__)

Origin = Mapping[str, str | int | float | bool | None]
"""The origins of a file, by name."""


@dataclass
class ResumableFile:
    """A text file that grows step by step.

    Attributes:
        file: Receives the text.
        progress: Path of the JSON file.
        made_from: Origins of the text.
        steps: Steps that are finished.
        lines: Lines of the input that they have read.
    """

    file: BinaryIO
    progress: Path
    made_from: Origin
    steps: int
    lines: int

    def read_lines(self) -> list[str]:
        """The lines of text that are finished."""
        return Path(self.file.name).read_text(encoding="utf-8").splitlines()

    def write(self, text: str, lines: int) -> None:
        """Finish a step.

        Args:
            text: Text that it adds.
            lines: Lines of the input that it read.
        """
        self.file.write(text.encode("utf-8", "replace"))
        self.file.flush()
        os.fsync(self.file.fileno())  # before the step counts as finished
        self.steps += 1
        self.lines += lines
        finished = {"steps": self.steps, "lines": self.lines, "bytes": self.file.tell()}
        write_json(self.progress, {"made_from": dict(self.made_from), **finished})


@contextlib.contextmanager
def open_resumable(
    path: Path,
    made_from: Origin,
    *,
    resume: bool,
    unit: str = "lines",
    assemble: Callable[[bytes], bytes] | None = None,
) -> Iterator[ResumableFile]:
    """Open a file for UTF-8 text; it appears only when the block succeeds.

    If the block fails, the finished part is kept for the next call if `resume` is true, and deleted otherwise. A kill
    keeps it in any case.

    Args:
        path: The file, which is no folder, in a folder that exists.
        made_from: Its origins.
        resume: Resume an unfinished file, or begin if there is none; otherwise an unfinished one is deleted.
        unit: The name of the lines of the input, for messages.
        assemble: Makes the content of the file from the text when it is whole; None takes the text.

    Raises:
        DataError: Another command is writing it, or the unfinished one was made from something else.
    """
    data = hidden_path(path, "partial")
    progress = hidden_path(path, "partial.json")
    with locked(path), naming(path, data), naming(path, progress):
        steps, lines, size = _read_progress(path, data, progress, made_from if resume else None, unit)
        if not size:
            progress.unlink(missing_ok=True)
        try:
            with data.open("ab") as file:
                file.truncate(size)
                yield ResumableFile(file, progress, made_from, steps, lines)
            if assemble is None:
                data.replace(real_path(path))
            else:
                with atomic_file(path) as whole:
                    whole.write_bytes(assemble(data.read_bytes()))
                data.unlink()
            progress.unlink(missing_ok=True)
        except BaseException as error:
            if not resume:
                data.unlink(missing_ok=True)
                progress.unlink(missing_ok=True)
            elif isinstance(error, OSError):
                add_remedy(error, Message("run the command again with {resume}", resume=Parameter("resume", True)))
            raise


def is_unfinished(path: Path) -> bool:
    """True if there is an unfinished file to resume: whether it may replace another was decided when it was begun."""
    return hidden_path(path, "partial.json").is_file()


def _read_progress(path: Path, data: Path, progress: Path, made_from: Origin | None, unit: str) -> tuple[int, int, int]:
    """Steps, lines and bytes of an unfinished file to resume; zeros if there is none, or it is to be deleted.

    Raises:
        DataError: It was made from something else than `made_from`.
    """
    try:
        stored = read_json(progress)
        steps, lines, size = (int(stored[name]) for name in ("steps", "lines", "bytes"))
        there = {**stored["made_from"]}
        if data.stat().st_size < size:
            return 0, 0, 0
    except (DataError, OSError, LookupError, TypeError, ValueError):
        return 0, 0, 0
    if made_from is None:
        deleted = Message(
            "{path}: {lines} unfinished {unit} are deleted; {resume} would have kept them",
            path=path,
            lines=f"{lines:,}",
            unit=unit,
            resume=Parameter("resume", True),
        )
        log.warning("%s", deleted)
        return 0, 0, 0
    values = ((key, there.get(key), made_from.get(key)) for key in {**there, **made_from})
    if differing := name_differences(values):
        raise DataError(
            "{path}: the unfinished one was made differently: {differing}; use the same, or begin again without "
            "{resume}",
            path=path,
            differing=", ".join(differing),
            resume=Parameter("resume", True),
        )
    return steps, lines, size
