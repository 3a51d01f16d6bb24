"""The lock of a result folder: two benches in one folder would run every query twice and mix their files."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from time import monotonic, sleep
from typing import IO

from steelyard.errors import InputError
from steelyard.io.files import hold

LOCK = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a result folder; an error that names the other process if another bench holds it.

    The lock is that of the operating system on a file in the folder: it ends with the process, however that ends.
    Where there are no such locks, nothing is held.
    """
    path = folder / LOCK
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+", encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"cannot be written ({error.strerror}); name a folder that you may write to.", folder
        ) from None
    with file:
        # A file that was removed in between belongs to a bench that has just ended: another may hold a new one.
        if not hold(file) or not _is_at(file, path):
            file.seek(0)
            holder = file.read(200).strip() or "another process"
            raise InputError(
                f"another bench is running in this folder: {holder}. Wait until it has finished, or name another "
                "folder (-o, output=).",
                folder,
            )
        file.truncate(0)
        file.write(f"process {os.getpid()} on {platform.node()}, since {datetime.now():%Y-%m-%d %H:%M:%S}")
        file.flush()
        try:
            yield
        finally:
            with suppress(OSError):
                path.unlink()


def _is_at(file: IO[str], path: Path) -> bool:
    """Whether an open file is still the one at a path."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except OSError:
        return False


@contextmanager
def held(path: Path, seconds: float = 60.0) -> Iterator[None]:
    """Hold a lock file, and wait for it if another process has it; an error after so many seconds."""
    end = monotonic() + seconds
    while True:
        try:
            file = path.open("a+", encoding="utf-8")
        except OSError as error:
            raise InputError(
                f"cannot be written ({error.strerror}); name a folder that you may write to.", path.parent
            ) from None
        # A file that was removed in between belongs to a process that has just ended: another may hold a new one.
        if hold(file) and _is_at(file, path):
            break
        file.close()
        if monotonic() > end:
            raise InputError(f"another process has been writing for {seconds:g} seconds; try again.", path.parent)
        sleep(0.01)
    with file:
        try:
            yield
        finally:
            with suppress(OSError):
                path.unlink()
