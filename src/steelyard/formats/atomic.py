"""Writing a file so that a crash at any moment leaves the old one or the new one, never a half."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from steelyard.errors import InputError
from steelyard.formats.compression import compress, compression_named


def write_file(path: Path, data: bytes, packed: bool = False) -> None:
    """Put `data` at `path`, compressed as the name asks (.gz, .zst, .lz4) unless it is packed already."""
    content = data if packed else compress(data, compression_named(path))
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    except OSError as error:
        raise InputError(
            f"{path} cannot be written ({error.strerror}); name a folder that exists and is yours."
        ) from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _mode(path))
        os.replace(temporary, path)
    except IsADirectoryError:
        os.unlink(temporary)
        raise InputError(f"{path} is a folder; name a file in it.") from None
    except BaseException:
        os.unlink(temporary)
        raise


def _mode(path: Path) -> int:
    """The mode of the file that is replaced, or what a new file of this user would have."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
