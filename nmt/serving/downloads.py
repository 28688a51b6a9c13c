"""Translated files that wait to be fetched: they lie in a folder of the server, and are deleted after an hour."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import stat
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout

from nmt.system.errors import ConfigError

FOLDER = "nmt-serve"
LOCK = ".lock"
LONGEST_NAME = 80
"""Characters of the name that a client gave a file, which are kept."""


class Download(NamedTuple):
    """A translated file.

    Attributes:
        path: Where it lies.
        name: Its name for the client.
        size: Its size in bytes.
        end: When it is deleted, in seconds of the monotonic clock.
    """

    path: Path
    name: str
    size: int
    end: float


class FolderFull(Exception):
    """Too many files wait to be fetched; try again later."""


class Downloads:
    """Files of a server in a folder of its own below that for temporary files; others of the user cannot be reached.

    The folder is made when the first file comes, and deleted with the server. The next server deletes
    the files of a killed one.

    Args:
        seconds: Time for which a file is kept.
        limit: Maximum bytes of all files.
        folder: Where the folders of servers are; None is the folder for temporary files.
    """

    def __init__(self, seconds: float, limit: int, folder: Path | None = None) -> None:
        self._seconds = seconds
        self._limit = limit
        self._root = folder or Path(tempfile.gettempdir()) / f"{FOLDER}-{os.getuid()}"
        self._folder: Path | None = None
        self._files: dict[str, Download] = {}
        self._guard = threading.Lock()
        self._lock: FileLock | None = None

    def clean_up(self) -> None:
        """Delete the folders of servers that were killed."""
        if not self._root.is_dir():
            return
        self._check_root()
        for path in self._root.glob(f"*{LOCK}"):
            lock = FileLock(path)
            with contextlib.suppress(Timeout, OSError):
                lock.acquire(timeout=0)  # which a living server holds
                shutil.rmtree(path.with_suffix(""), ignore_errors=True)
                path.unlink(missing_ok=True)
                lock.release()

    def add(self, name: str, content: bytes) -> str:
        """Keep a file, and return the name that it is fetched by, which nobody can guess.

        Args:
            name: Its name for the client.
            content: Its bytes.

        Raises:
            FolderFull: There is no room.
        """
        self.delete_old()
        with self._guard:
            if sum(file.size for file in self._files.values()) + len(content) > self._limit:
                raise FolderFull
            safe = re.sub(r"[^\w.-]+", "_", name)[-LONGEST_NAME:].lstrip(".") or "file"
            key = f"{secrets.token_urlsafe(24)}.{safe}"
            path = self._open_folder() / secrets.token_hex(16)  # nothing of the client's is in it
            path.write_bytes(content)
            self._files[key] = Download(path, safe, len(content), time.monotonic() + self._seconds)
        return key

    def find(self, key: str) -> Download | None:
        """A file by the name that `add` returned; None if there is none, or its time is over."""
        self.delete_old()
        with self._guard:
            return self._files.get(key)

    def delete_old(self) -> None:
        """Delete the files whose time is over."""
        now = time.monotonic()
        with self._guard:
            for key, file in list(self._files.items()):
                if file.end <= now:
                    file.path.unlink(missing_ok=True)
                    del self._files[key]

    def close(self) -> None:
        """Delete all files, and the folder."""
        with self._guard:
            self._files.clear()
            if self._folder is not None and self._lock is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
                Path(self._lock.lock_file).unlink(missing_ok=True)
                self._lock.release()
                self._folder = None

    def _open_folder(self) -> Path:
        if self._folder is None:
            self._root.mkdir(mode=0o700, exist_ok=True)
            self._check_root()
            name = f"{os.getpid()}-{secrets.token_hex(4)}"
            self._lock = FileLock(self._root / f"{name}{LOCK}")
            self._lock.acquire(timeout=0)
            self._folder = self._root / name
            self._folder.mkdir(mode=0o700)
        return self._folder

    def _check_root(self) -> None:
        """Refuse a folder that another user has made, or can write to.

        Raises:
            ConfigError: It is one, or a link.
        """
        status = self._root.lstat()
        is_private = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077
        if not is_private:
            raise ConfigError(f"{self._root}: is not a folder that only this user can open; delete it")
