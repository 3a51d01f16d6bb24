"""Compressed files, known by their first bytes: gzip, Zstandard and LZ4 frames, read in bounded chunks.

One way in for everything that reads a file: `open_chunks` and `read_bytes` give the same bytes
whether or not the file is compressed. A file cut short or damaged is an error, never less data.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from steelyard.errors import InputError, did_you_mean

CHUNK = 1 << 22
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
_SUFFIXES = {".gz": "gzip", ".gzip": "gzip", ".zst": "zstd", ".zstd": "zstd", ".lz4": "lz4"}


def compression_of(path: Path) -> str | None:
    """'gzip', 'zstd' or 'lz4' by the file's first bytes; None for anything else."""
    with _open(path) as file:
        start = file.read(4)
    return next((name for magic, name in _MAGIC.items() if start.startswith(magic)), None)


def compression_named(path: Path) -> str | None:
    """The compression a file's name asks for when it is written.

    >>> compression_named(Path("bm25.run.gz")), compression_named(Path("bm25.run"))
    ('gzip', None)
    """
    return _SUFFIXES.get(path.suffix.lower())


def open_chunks(path: Path, size: int = CHUNK) -> Iterator[bytes]:
    """The file's bytes, decompressed, a chunk at a time."""
    kind = compression_of(path)
    with _open(path) as file:
        if kind is None:
            while chunk := file.read(size):
                yield chunk
        elif kind == "gzip":
            yield from _gunzip(file, path, size)
        else:
            yield from _frames(file, path, kind, size)


def read_bytes(path: Path) -> bytes:
    """The whole file, decompressed."""
    if compression_of(path) is None:
        with _open(path) as file:
            return file.read()
    return b"".join(open_chunks(path))


def read_head(path: Path, size: int) -> bytes:
    """The first `size` bytes, decompressed (fewer where the file is shorter)."""
    head = bytearray()
    for chunk in open_chunks(path, size):
        head += chunk
        if len(head) >= size:
            break
    return bytes(head[:size])


def compress(data: bytes, kind: str | None) -> bytes:
    """The bytes as `kind` holds them. The same bytes in give the same bytes out: no time stamp, no name."""
    if kind is None:
        return data
    if kind == "gzip":
        import gzip

        return gzip.compress(data, compresslevel=6, mtime=0)
    packed: bytes = _zstandard()[2](data) if kind == "zstd" else _lz4().compress(data)
    return packed


def unpack_lz4(data: bytes, path: Path) -> bytes:
    """The content of LZ4 frames held in memory: ranx packs its files twice."""
    import io

    return b"".join(_frames(io.BytesIO(data), path, "lz4", CHUNK))


def is_lz4(data: bytes) -> bool:
    """Whether the bytes begin an LZ4 frame."""
    return data.startswith(b"\x04\x22\x4d\x18")


def _open(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except FileNotFoundError:
        near = (
            did_you_mean(path.name, (entry.name for entry in path.parent.iterdir()))
            if path.parent.is_dir()
            else ""
        )
        raise InputError(f"{path}: there is no such file.{near}") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder; expected a file.") from None
    except PermissionError:
        raise InputError(f"{path} may not be read by this user; change its permissions.") from None


def _gunzip(file: IO[bytes], path: Path, size: int) -> Iterator[bytes]:
    reader, broken = _gzip_reader(file)
    try:
        while chunk := reader.read(size):
            yield chunk
    except EOFError:
        raise _cut_short(path, "gzip") from None
    except broken as error:
        raise _damaged(path, "gzip", error) from None


def _gzip_reader(file: IO[bytes]) -> tuple[IO[bytes], tuple[type[Exception], ...]]:
    """The fastest gzip reader installed (isal, zlib-ng, the standard library's), and what it raises."""
    reader: Any
    error: Any = zlib.error
    try:
        from isal import igzip, isal_zlib

        reader, error = igzip.IGzipFile, isal_zlib.error
    except ImportError:
        try:
            reader = import_module("zlib_ng.gzip_ng").GzipNGFile
            error = import_module("zlib_ng.zlib_ng").error
        except ImportError:
            import gzip

            reader = gzip.GzipFile
    return reader(fileobj=file, mode="rb"), (error, zlib.error, OSError)


def _frames(file: IO[bytes], path: Path, kind: str, size: int) -> Iterator[bytes]:
    """Frame after frame; a frame that does not end is a file cut short."""
    if kind == "zstd":
        new, broken, _ = _zstandard()
    else:
        library = _lz4()
        new, broken = library.LZ4FrameDecompressor, RuntimeError
    frame, started = new(), False
    try:
        while packed := file.read(max(1, size // 8)):
            while packed:
                started = True
                if chunk := frame.decompress(packed):
                    yield chunk
                packed = b""
                if frame.eof:
                    packed = frame.unused_data or b""
                    frame, started = new(), False
    except broken as error:
        raise _damaged(path, kind, error) from None
    if started:
        raise _cut_short(path, kind)


def _cut_short(path: Path, kind: str) -> InputError:
    return InputError(
        f"{path}: the {kind} data ends before its end mark; the file is cut short (an interrupted copy or "
        "download?). Nothing was read from it: get a whole copy."
    )


def _damaged(path: Path, kind: str, error: Exception) -> InputError:
    return InputError(
        f"{path}: the {kind} data is damaged ({error}). Nothing was read from it: get a whole copy."
    )


def _zstandard() -> tuple[Callable[[], Any], type[Exception], Callable[[bytes], bytes]]:
    """What makes a decompressor, what it raises, and what compresses: of Python 3.14, or of zstandard."""
    try:
        # The standard library's own, which type checkers of an older Python do not know.
        zstd = import_module("compression.zstd")
        return zstd.ZstdDecompressor, zstd.ZstdError, zstd.compress
    except ImportError:
        pass
    try:
        import zstandard
    except ImportError:
        raise InputError(
            "Zstandard files (.zst) need the package zstandard: pip install 'steelyard[zstd]', "
            "or decompress the file first."
        ) from None
    return (
        zstandard.ZstdDecompressor().decompressobj,
        zstandard.ZstdError,
        zstandard.ZstdCompressor().compress,
    )


def _lz4() -> Any:
    try:
        import lz4.frame
    except ImportError:
        raise InputError(
            "LZ4 files (.lz4) need the package lz4: pip install 'steelyard[lz4]', or decompress the file first."
        ) from None
    return lz4.frame
