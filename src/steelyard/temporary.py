"""Temporary folders that leave nothing behind: at the end, after SIGTERM and SIGHUP, and at a start after a kill.

A folder is named `steelyard-NAME-PROCESS-START-MACHINE-RANDOM`, after the process that made it, and contains nothing
but the folder `data`, which is for the caller. What a killed process left is removed by the next bench, or the next
process that makes a folder: only folders with such a name and content, of the same user, whose process ran on this
machine and no longer lives.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import platform
import re
import shutil
import signal
import tempfile
import threading
import weakref
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

OPEN_TO_ALL = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))
"""Where a folder can be if other users have to read it and the user's temporary folder does not let them."""

_OURS = re.compile(r"steelyard-[a-z]+-((\d+)-\w+-[0-9a-f]{8})-\w{8}")
_DATA = "data"
_SERVERS = "steelyard-postgres-"
_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]

_folders: dict[Path, int] = {}
"""The folders, each with the process that made it: a forked child has a copy, and must not remove its parent's."""


def temporary_folder(name: str, owner: object = None, parent: Path | None = None) -> Path:
    """A new empty folder, which is removed with its owner (if there is one) or at the end of the process.

    Before a folder for `postgres` is removed, the server in it is ended.
    """
    _prepare(os.getpid())
    folder = Path(tempfile.mkdtemp(prefix=f"steelyard-{name}-{_described(os.getpid())}-", dir=parent))
    _folders[folder] = os.getpid()
    data = folder / _DATA
    data.mkdir()
    if owner is not None:
        weakref.finalize(owner, _remove, folder)
    return data


@cache
def _prepare(process: int) -> None:
    """Prepare the removal of this process's folders, once per process, and remove what a killed process left."""
    atexit.register(_remove_all)
    if threading.current_thread() is threading.main_thread():
        for number in _SIGNALS:
            # A handler of the user's stays: it decides what happens, and `atexit` follows if the process ends.
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, _stop)
    remove_left_over()


def _stop(number: int, frame: Any) -> None:
    """Remove the folders, and end by the signal as if there were no handler, so that the exit status is the same."""
    _remove_all()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _remove_all() -> None:
    for folder in list(_folders):
        _remove(folder)


def _remove(folder: Path) -> None:
    if _folders.get(folder) == os.getpid():
        del _folders[folder]
        _delete(folder)


def remove_left_over() -> None:
    """Remove the folders of processes that no longer live, and end the PostgreSQL servers in them."""
    if os.name == "nt":
        return  # Asking whether a process lives would send it a signal there.
    for place in dict.fromkeys([Path(tempfile.gettempdir()), *OPEN_TO_ALL]):
        for folder in place.glob("steelyard-*"):
            with suppress(OSError):  # Another process may remove it at the same time.
                if _is_left_over(folder):
                    _delete(folder)


def _is_left_over(folder: Path) -> bool:
    """Whether a process made this folder that ended. Anything else of a similar name is not ours."""
    ours = _OURS.fullmatch(folder.name)
    if ours is None or folder.is_symlink() or not folder.is_dir() or folder.stat().st_uid != os.getuid():
        return False
    of_this_machine = ours[1].endswith(f"-{_machine()}")
    # A process that was killed just after it made the folder left it empty.
    return of_this_machine and _described(int(ours[2])) != ours[1] and os.listdir(folder) in ([], [_DATA])


def _delete(folder: Path) -> None:
    if folder.name.startswith(_SERVERS):
        _end_server(folder.name)
    shutil.rmtree(folder, ignore_errors=True)


def _described(process: int) -> str:
    """A process by its number, its start and its machine; a number alone may belong to another process by now."""
    try:
        # The name of the command, in parentheses, may have spaces. After it come the state and, 19 further, the start.
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        start = "ended" if fields[0] in "ZX" else fields[19]
    except (OSError, IndexError):
        start = "running" if os.name == "nt" or _lives(process) else "ended"
    return f"{process}-{start}-{_machine()}"


def _machine() -> str:
    """The machine, and the container if there is one: process numbers mean nothing in another, which may share /tmp."""
    name = platform.node()
    with suppress(OSError):
        name += os.readlink("/proc/self/ns/pid")
    return hashlib.sha256(name.encode()).hexdigest()[:8]


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)
    return True


def _end_server(folder: str) -> None:
    """End the processes of a private PostgreSQL server, which may still be starting."""
    try:
        import psutil
    except ImportError:
        return  # The package that starts such servers needs psutil.
    processes = [
        process
        for process in psutil.process_iter(["name", "cmdline"])
        if process.info["name"] in ("postgres", "initdb", "pg_ctl")
        and any(folder in word for word in process.info["cmdline"] or ())
    ]
    for process in processes:
        with suppress(psutil.Error):
            process.send_signal(signal.SIGQUIT)  # An immediate shutdown; the data are not needed any more.
    for process in psutil.wait_procs(processes, timeout=5)[1]:
        with suppress(psutil.Error):
            process.kill()
