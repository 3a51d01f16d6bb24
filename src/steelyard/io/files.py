"""Files: opened, decompressed, and written so that a crash leaves the old file or the new one."""

from __future__ import annotations

import os
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from steelyard.errors import SHOWN_PROBLEMS, InputError, did_you_mean, problem_report
from steelyard.wording import counted

if TYPE_CHECKING:
    import polars as pl


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


BLOCK = 1 << 26
_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def line_blocks(path: Path, size: int = BLOCK) -> Iterator[bytes]:
    """The file in blocks of whole lines, without a byte order mark; every block is UTF-8 text."""
    pending: list[bytes] = []
    held, lines = 0, 0
    for chunk in open_chunks(path, 1 << 24):
        pending.append(chunk)
        held += len(chunk)
        cut = chunk.rfind(b"\n") + 1
        if held >= size and cut:
            block = b"".join([*pending[:-1], chunk[:cut]])
            pending, held = [chunk[cut:]], len(chunk) - cut
            yield checked(block, path, lines)
            lines += block.count(b"\n")
    block = b"".join(pending)
    if block:
        yield checked(block, path, lines)


def checked(data: bytes, path: Path, lines_before: int = 0) -> bytes:
    """The bytes without a byte order mark, once they are known to be UTF-8 text with ordinary line ends."""
    if not lines_before:
        if data.startswith(_UTF16):
            raise InputError(
                f"{path} is UTF-16 text; expected UTF-8. Re-encode it, as in: iconv -f UTF-16 -t UTF-8 {path.name}"
            )
        data = data.removeprefix(_BOM)
    if b"\0" in data:
        line = lines_before + data.count(b"\n", 0, data.index(b"\0")) + 1
        raise InputError(
            f"{path} is not text: a zero byte stands in line {line:,}. Expected a text, JSON, CSV or Parquet file "
            "(`steelyard validate` says what a file is)."
        )
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError:
            _refuse_encoding(data, path, lines_before)
    if b"\r" in data and (bare := data.count(b"\r") - data.count(b"\r\n") - data.endswith(b"\r")):
        place = next(at for at in _every(data, b"\r") if data[at + 1 : at + 2] != b"\n")
        line = lines_before + data.count(b"\n", 0, place) + 1
        raise InputError(
            f"{path}: line {line:,} holds a carriage return that ends no line ({bare:,} in all); expected lines "
            "that end in LF or CR LF. Convert the file, as in: tr '\\r' '\\n'"
        )
    return data


def decode(data: bytes, path: Path) -> str:
    """The text, once it is known to be UTF-8. Carriage returns are the caller's to judge."""
    if data.startswith(_UTF16):
        checked(data, path)
    data = data.removeprefix(_BOM)
    try:
        return data.decode()
    except UnicodeDecodeError:
        _refuse_encoding(data, path, 0)
        raise


def bad_lines(path: Path, problems: Iterable[tuple[int, str]], expected: str) -> InputError:
    """The error for lines that are not as expected: the first ten, and how many more."""
    shown: list[str] = []
    total = 0
    for line, problem in problems:
        total += 1
        if total <= SHOWN_PROBLEMS:
            shown.append(f"line {line:,}: {problem}")
    lines = counted(total, "line is", "lines are")
    return InputError(problem_report(f"{path}: {lines} not as expected:", shown, expected, total=total))


def _every(data: bytes, wanted: bytes) -> Iterator[int]:
    at = data.find(wanted)
    while at >= 0:
        yield at
        at = data.find(wanted, at + 1)


def _refuse_encoding(data: bytes, path: Path, lines_before: int) -> None:
    raise bad_lines(
        path,
        _undecodable(data, lines_before),
        f"Expected UTF-8. Re-encode the file, as in: iconv -f LATIN1 -t UTF-8 {path.name}",
    )


def _undecodable(data: bytes, lines_before: int) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(data.split(b"\n"), start=lines_before + 1):
        try:
            line.decode()
        except UnicodeDecodeError as error:
            yield number, f"byte {error.start + 1} (0x{line[error.start]:02x}) is not UTF-8"


HEAD = 1 << 18


class Source:
    """One file, compressed or not."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def head(self) -> bytes:
        """The first 256 KB, decompressed."""
        return read_head(self.path, HEAD)

    @property
    def whole_head(self) -> bool:
        """Whether the head is the whole file."""
        return len(self.head) < HEAD

    @cached_property
    def head_lines(self) -> list[bytes]:
        """The whole lines of the head, without a byte order mark."""
        head = self.head if self.whole_head else self.head[: self.head.rfind(b"\n") + 1]
        return checked(head, self.path).split(b"\n")

    @cached_property
    def data(self) -> bytes:
        """Every byte, decompressed."""
        return self.head if self.whole_head else read_bytes(self.path)

    @cached_property
    def text(self) -> str:
        """The whole file as text."""
        return decode(self.data, self.path)

    @cached_property
    def json(self) -> Any:
        """The whole file as JSON."""
        return parse_json(self.text, self.path)

    @cached_property
    def jsonl(self) -> list[dict[str, Any]]:
        """The objects of a file that holds one JSON object a line."""
        records: list[dict[str, Any]] = []
        problems: list[tuple[int, str]] = []
        for number, line in enumerate(self.text.split("\n"), start=1):
            if not line.strip():
                continue
            try:
                record = parse_json(line, self.path)
            except InputError as error:
                problems.append((number, str(error).removeprefix(f"{self.path}: ")))
                continue
            if isinstance(record, dict):
                records.append(record)
            else:
                problems.append((number, f"a {type(record).__name__}, not an object"))
        if problems:
            raise bad_lines(self.path, problems, "Expected one JSON object a line.")
        return records

    @cached_property
    def parquet(self) -> pl.DataFrame:
        """The whole file as a Parquet table."""
        import io

        import polars as pl

        try:
            return pl.read_parquet(io.BytesIO(self.data))
        except (pl.exceptions.PolarsError, OSError) as error:
            reason = str(error).splitlines()[0]
            raise InputError(
                f"{self.path} begins as a Parquet file and cannot be read as one ({reason}); "
                "it may be cut short: get a whole copy."
            ) from None


def parse_json(text: str, path: Path) -> Any:
    """The JSON value; a name that comes twice in one object is an error, not the last one's win."""
    import json

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"{path}: the name {twice!r} comes twice in one JSON object; keep one of them.")
        return found

    try:
        return json.loads(text, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path}: line {error.lineno:,}, column {error.colno:,}: not JSON ({error.msg}). "
            "The file may be cut short, or hold one object a line (format 'jsonl')."
        ) from None
    except RecursionError:
        raise InputError(f"{path}: the JSON is nested too deep to be judgments or a run.") from None


def bare_name(path: Path) -> Path:
    """The path without the suffix of its compression.

    >>> bare_name(Path("bm25.trec.gz")).name
    'bm25.trec'
    """
    return path.with_suffix("") if compression_named(path) else path


def run_name(path: Path) -> str:
    """The file's own name, without suffixes of format and compression.

    >>> run_name(Path("runs/bm25.v2.trec.gz"))
    'bm25.v2'
    """
    return bare_name(path).stem


def distinct_names(names: Sequence[str], runs: Sequence[Any]) -> list[str]:
    """Names for runs, no two alike: their own; where two share one, those of their files, or the paths.

    >>> distinct_names(["bm25", "bm25"], ["old/bm25.run", "old/bm25-plus.run"])
    ['bm25', 'bm25-plus']
    >>> distinct_names(["bm25", "bm25"], ["old/bm25.run", "new/bm25.run"])
    ['old/bm25.run', 'new/bm25.run']
    """
    choices = [list(names)]
    if all(isinstance(run, (str, Path)) for run in runs):
        choices += [[run_name(Path(run)) for run in runs], list(map(str, runs))]
    for chosen in choices:
        if len(set(chosen)) == len(chosen):
            return chosen
    twice = next(name for name in names if list(names).count(name) > 1)
    raise InputError(
        f"two runs are called {twice!r}; give them names of their own: {{'{twice}-1': ..., '{twice}-2': ...}}."
    )


def names_file(name: str, run: Any) -> bool:
    """Whether a name is that of a run's file, in any of the ways to say it."""
    if not isinstance(run, (str, Path)):
        return False
    path = Path(run)
    return name in (str(path), path.name, run_name(path))
