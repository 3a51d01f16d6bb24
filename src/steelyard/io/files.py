"""Files: opened, decompressed, written atomically, and the names that runs take from them."""

from __future__ import annotations

import glob
import io
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from steelyard.errors import InputError, SteelyardError, did_you_mean
from steelyard.io.unpacking import check_unpacked
from steelyard.lazy import looked_up
from steelyard.safe_text import error_text

CHUNK = 1 << 22
_STEP = 1 << 11
_SHOWN = 200
_PART = ".part"
LZ4 = b"\x04\x22\x4d\x18"
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", LZ4: "lz4"}
_SUFFIXES = {".gz": "gzip", ".gzip": "gzip", ".zst": "zstd", ".zstd": "zstd", ".lz4": "lz4"}


@contextmanager
def errors_name(path: Path) -> Iterator[None]:
    """Add the path to an InputError that does not have one."""
    try:
        yield
    except InputError as error:
        if error.path is None:
            error.path = path
        raise


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Whatever cannot be done with the content of a file is an InputError, never another exception."""
    try:
        yield
    except (SteelyardError, OSError, MemoryError):
        raise
    except BaseException as error:
        # A panic of polars is a BaseException, as KeyboardInterrupt is.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        reason = error_text(error).partition("\n")[0][:_SHOWN]
        problem = "cannot be read: its content is not what is expected here, or it is damaged"
        raise InputError(f"{problem} ({reason}).", path) from error


def no_such_file(path: Path, what: str = "file") -> InputError:
    """The error for a path that does not exist, with names like it in its folder."""
    names = [entry.name for entry in path.parent.iterdir() if entry.name != path.name] if path.parent.is_dir() else []
    return InputError(f"there is no such {what}.{did_you_mean(path.name, names)}", path)


def find_file(folder: Path, name: str) -> Path | None:
    """The file of that name in a folder, or its compressed form."""
    return next(filter(Path.is_file, (folder / f"{name}{suffix}" for suffix in ("", *_SUFFIXES))), None)


def required_file(folder: Path, name: str) -> Path:
    """The file of that name in a folder, or its compressed form; an error that lists the folder if there is none."""
    path = find_file(folder, name)
    if path is None:
        raise InputError(f"there is no {name}; the folder holds {listing(folder)}.", folder)
    return path


def listing(folder: Path) -> str:
    """The names in a folder, the first ten of them, for a message."""
    if not folder.is_dir():
        return "nothing: it is not a folder"
    names = sorted(f"{path.name}/" if path.is_dir() else path.name for path in folder.iterdir())
    more = f" and {len(names) - 10:,} more" if len(names) > 10 else ""
    return ", ".join(names[:10]) + more if names else "nothing"


_streams: ContextVar[dict[Path, bytes] | None] = ContextVar("_streams", default=None)
outputs: ContextVar[dict[Path, bool]] = ContextVar("outputs")
"""The files that a command is to write, and whether it read them, as a part of a dataset for example."""
STANDARD_INPUT, STANDARD_OUTPUT = Path("/dev/stdin"), Path("/dev/stdout")


def is_descriptor(path: Path) -> bool:
    """Whether the path is that of an open file, which tells nothing of its content: standard input, `<(...)`."""
    return path.parts[:3] in [("/", "dev", name) for name in ("stdin", "stdout", "stderr", "fd")]


def is_stream(path: Path) -> bool:
    """Whether the path can be read only once: a pipe, a process substitution, standard input."""
    # On macOS open files share the position of the descriptor, even where it is a file.
    return is_descriptor(path) or (path.exists() and not path.is_file() and not path.is_dir())


@contextmanager
def streams_read_once() -> Iterator[None]:
    """In this context a stream is read once, from start to end; opening it again gives the same bytes.

    Every function that opens a path more than once (to detect its format, then to read it) runs in it.
    """
    read = _streams.get()
    outside = _streams.set({} if read is None else read)
    try:
        yield
    finally:
        _streams.reset(outside)


@contextmanager
def unchanged(file: IO[bytes], path: Path) -> Iterator[None]:
    """An error if an open file is changed while it is read: what was read may be a mixture of two versions."""

    def state() -> tuple[int, int] | None:
        if isinstance(file, io.BytesIO):
            return None
        status = os.fstat(file.fileno())
        return status.st_size, status.st_mtime_ns

    before = state()
    try:
        yield
    except InputError:
        if state() != before:
            raise changed(path) from None
        raise
    if state() != before:
        raise changed(path)


def changed(path: Path) -> InputError:
    """The error for a file that was changed while it was read."""
    return InputError("the file changed while it was read; wait until it is complete, then try again.", path)


def open_chunks(path: Path, size: int = CHUNK) -> Iterator[bytes]:
    """The file's bytes, decompressed, in chunks."""
    with _open(path) as file, unchanged(file, path):
        yield from _chunks(file, path, _compression(file), size)


def read_bytes(path: Path) -> bytes:
    """The whole file, decompressed."""
    with _open(path) as file, unchanged(file, path):
        kind = _compression(file)
        return file.read() if kind is None else b"".join(_chunks(file, path, kind, CHUNK))


def read_head(path: Path, size: int) -> bytes:
    """The first `size` bytes, decompressed (fewer where the file is shorter)."""
    head = bytearray()
    for chunk in open_chunks(path, size):
        head += chunk
        if len(head) >= size:
            break
    return bytes(head[:size])


def unpack_lz4(data: bytes, path: Path) -> bytes:
    """The content of LZ4 frames in memory: ranx compresses its files twice."""
    return b"".join(_chunks(io.BytesIO(data), path, "lz4", CHUNK))


def _open(path: Path) -> IO[bytes]:
    try:
        for output in outputs.get({}):
            outputs.get()[output] |= output.is_file() and output.samefile(path)
        if not is_stream(path):
            return path.open("rb")
        contents = _streams.get()
        if contents is None:
            return io.BytesIO(path.read_bytes())
        if path not in contents:
            contents[path] = path.read_bytes()
        return io.BytesIO(contents[path])
    except FileNotFoundError:
        raise no_such_file(path) from None
    except IsADirectoryError:
        raise InputError("this is a folder; expected a file.", path) from None
    except PermissionError:
        raise InputError("permission denied; change the permissions of the file.", path) from None


def would_be_replaced(path: Path) -> InputError:
    """The error for an output that the same command reads."""
    return InputError("is read by this command, and would be replaced; name another file to write.", path)


def _compression(file: IO[bytes]) -> str | None:
    """'gzip', 'zstd' or 'lz4' by the first bytes of an opened file; None for anything else."""
    start = file.read(4)
    file.seek(0)
    return next((name for magic, name in _MAGIC.items() if start.startswith(magic)), None)


def _chunks(file: IO[bytes], path: Path, kind: str | None, size: int) -> Iterator[bytes]:
    if kind is None:
        while chunk := file.read(size):
            yield chunk
        return
    packed = file.seek(0, os.SEEK_END)
    file.seek(0)
    unpacked = 0
    for chunk in _gunzip(file, path, size) if kind == "gzip" else _frames(file, path, kind, size):
        unpacked += len(chunk)
        check_unpacked(unpacked, packed, kind, path)
        yield chunk


def _gunzip(file: IO[bytes], path: Path, size: int) -> Iterator[bytes]:
    """The chunks by the fastest gzip reader installed: isal, zlib-ng, the standard library."""
    opener: Any
    broken: Any = zlib.error
    try:
        from isal import igzip, isal_zlib

        opener, broken = igzip.IGzipFile, isal_zlib.error
    except ImportError:
        try:
            opener = import_module("zlib_ng.gzip_ng").GzipNGFile
            broken = import_module("zlib_ng.zlib_ng").error
        except ImportError:
            opener = import_module("gzip").GzipFile
    try:
        reader = opener(fileobj=file, mode="rb")
        while chunk := reader.read(size):
            yield chunk
    except EOFError:
        raise _incomplete(path, "gzip") from None
    except (broken, zlib.error, OSError) as error:
        raise _incomplete(path, "gzip", error) from None


def _frames(file: IO[bytes], path: Path, kind: str, size: int) -> Iterator[bytes]:
    """Frame after frame; a frame without an end means that the file is truncated."""
    new, broken = _zstandard()[:2] if kind == "zstd" else (_lz4().LZ4FrameDecompressor, RuntimeError)
    frame, started = new(), False
    pending: list[bytes] = []
    pending_size = 0
    try:
        while packed := file.read(_STEP):  # small: the few bytes of a zstd block can stand for 128 KiB
            while packed:
                started = True
                pending.append(frame.decompress(packed))
                pending_size += len(pending[-1])
                if pending_size >= size:
                    yield b"".join(pending)
                    pending, pending_size = [], 0
                packed = b""
                if frame.eof:
                    packed = frame.unused_data or b""
                    frame, started = new(), False
    except broken as error:
        raise _incomplete(path, kind, error) from None
    if started:
        raise _incomplete(path, kind)
    if pending_size:
        yield b"".join(pending)


def _incomplete(path: Path, kind: str, error: Exception | None = None) -> InputError:
    """The error for compressed data that is damaged or, without an error of its reader, truncated."""
    truncated = "truncated: its end marker is missing (an interrupted copy or download?)"
    how = truncated if error is None else f"damaged ({error})"
    return InputError(f"the {kind} data is {how}. Nothing was read; get a complete copy.", path)


def _zstandard() -> tuple[Callable[[], Any], type[Exception], Callable[[bytes], bytes]]:
    """The decompressor, the error it raises and the compressor: of Python 3.14, or of zstandard."""
    with suppress(ImportError):
        # In the standard library of Python 3.14, which type checkers of an older Python do not know.
        zstd = import_module("compression.zstd")
        return zstd.ZstdDecompressor, zstd.ZstdError, zstd.compress
    advice = "pip install 'steelyard[zstd]', or decompress the file first."
    zstandard = optional("zstandard", "Zstandard files (.zst) need", advice)
    return (zstandard.ZstdDecompressor().decompressobj, zstandard.ZstdError, zstandard.ZstdCompressor().compress)


def _lz4() -> Any:
    return optional("lz4.frame", "LZ4 files (.lz4) need", "pip install 'steelyard[lz4]', or decompress the file first.")


def optional(module: str, what: str, advice: str) -> Any:
    """A module of a package that may be missing; without it, an error on what needs it."""
    try:
        return import_module(module)
    except ImportError:
        raise InputError(f"{what} the package {module.partition('.')[0]}: {advice}") from None


def compress(data: bytes, kind: str | None) -> bytes:
    """The bytes compressed by `kind`. Equal input gives equal output: no time stamp, no file name."""
    if kind is None:
        return data
    if kind == "gzip":
        import gzip

        return gzip.compress(data, compresslevel=6, mtime=0)
    return _zstandard()[2](data) if kind == "zstd" else _lz4().compress(data)


def write_file(path: Path, data: bytes, packed: bool = False) -> None:
    """Write a file atomically, compressed as its suffix asks (.gz, .zst, .lz4) unless `packed` already.

    A pipe or a device must not be replaced by a file: it is written to. So is what /dev/stdout stands for. Nor must
    judgments, which are work: their files are appended to, and never written by this function.
    """
    if outputs.get({}).get(path):
        raise would_be_replaced(path)
    content = data if packed else compress(data, _SUFFIXES.get(path.suffix.lower()))
    is_device = path.exists() and not path.is_dir() and (is_descriptor(path) or not path.is_file())
    if not is_device and path.is_file() and looked_up("steelyard.io.judgments:is_judgments_file")(path):
        raise InputError("holds judgments, which this output would replace; name another file, or remove it.", path)
    try:
        with path.open("ab") if is_device else written_atomically(path) as file:
            file.write(content)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise not_written(path, error) from None


@contextmanager
def written_atomically(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to, which replaces the one at the path at the end; after an error, that one is unchanged.

    A link stays: the file that it leads to is replaced. A file that nobody may write to is not replaced.
    """
    path = Path(os.path.realpath(path)) if path.is_symlink() else path
    if path.is_symlink():
        raise InputError("cannot be written: it is a link that leads to itself; name another file.", path)
    if path.is_file() and not path.stat().st_mode & 0o222:
        raise InputError("is read-only; name another file, or allow writing to it.", path)
    # The files of processes that were killed while they wrote this one: nobody holds them. Their names have eight
    # random characters. Where there are no locks, they stay.
    for left in path.parent.glob(f".{glob.escape(path.name)}.{'?' * 8}{_PART}"):
        with suppress(OSError), left.open("r+b") as file:
            if hold(file):
                left.unlink()
    part, temporary = _held_part(path)
    try:
        with part:
            yield part
            part.flush()
            os.fsync(part.fileno())
            if os.name == "nt":  # There an open file cannot be renamed, and nobody removes it.
                part.close()
            if path.exists():
                mode = path.stat().st_mode & 0o777
            else:  # that of a new file of this user
                mask = os.umask(0)
                os.umask(mask)
                mode = 0o666 & ~mask
            os.chmod(temporary, mode)
            os.replace(temporary, path)
    except BaseException as error:
        os.unlink(temporary)
        if isinstance(error, IsADirectoryError):
            raise InputError("this is a folder; name a file in it.", path) from None
        if isinstance(error, OSError):
            raise not_written(path, error) from None
        raise


def _held_part(path: Path) -> tuple[IO[bytes], str]:
    """A new temporary file beside a path, held, and its name."""
    import tempfile

    while True:
        try:
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=_PART)
        except OSError as error:
            advice = "name a folder that exists and that you may write to."
            raise InputError(f"cannot be written ({error.strerror}); {advice}", path) from None
        part = os.fdopen(handle, "wb")
        # Until it is held, it looks like one that was left: another process may remove it.
        if hold(part) is not False and is_at(part, Path(temporary)):
            return part, temporary
        part.close()
        with suppress(OSError):
            os.unlink(temporary)


def hold(file: IO[Any]) -> bool | None:
    """Lock an open file until it is closed; False if another process holds it, None where there are no locks."""
    try:
        import fcntl

        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError) as error:
        return False if isinstance(error, BlockingIOError) else None
    return True


def is_at(file: IO[Any], path: Path) -> bool:
    """Whether an open file is still the one at a path: it was not removed or replaced."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except OSError:
        return False


def not_written(path: Path, error: OSError) -> InputError:
    """The error for a file that could not be written: the disk is full, the folder is read-only."""
    return InputError(f"cannot be written ({error.strerror or error}); what was there before is unchanged.", path)


UNNAMED = "run"  # The name of a run that has none.


def bare_name(path: Path) -> Path:
    """The path without the suffix of its compression.

    >>> bare_name(Path("bm25.trec.gz")).name
    'bm25.trec'
    """
    return path.with_suffix("") if path.suffix.lower() in _SUFFIXES else path


def refuse_compressed(path: Path) -> None:
    """An error for a file that lines cannot be appended to: a compressed one, or one with the name of such a file."""
    with _open(path) if path.is_file() else io.BytesIO() as file:
        if bare_name(path) != path or _compression(file) is not None:
            problem = "judgments cannot be appended to a compressed file"
            raise InputError(f"{problem}; decompress it first, and name the file without .gz, .zst or .lz4.", path)


def run_name(path: Path) -> str:
    """The file's own name, without suffixes of format and compression; standard input and the like have none.

    >>> run_name(Path("runs/bm25.v2.trec.gz")), run_name(Path("/dev/fd/63"))
    ('bm25.v2', 'run')
    """
    return UNNAMED if is_descriptor(path) else bare_name(path).stem


def distinct_names(names: Sequence[str], runs: Sequence[Any]) -> list[str]:
    """Distinct names for runs: their own; if two are equal, those of their files, or paths; unnamed ones are numbered.

    >>> distinct_names(["bm25", "bm25"], ["old/bm25.run", "old/bm25-plus.run"])
    ['bm25', 'bm25-plus']
    >>> distinct_names(["bm25", "bm25"], ["old/bm25.run", "new/bm25.run"])
    ['old/bm25.run', 'new/bm25.run']
    >>> distinct_names(["run", "bm25", "run"], [{}, {}, {}])
    ['run-1', 'bm25', 'run-3']
    """
    choices = [list(names)]
    if all(isinstance(run, (str, Path)) for run in runs):
        paths = list(map(Path, runs))
        choices += [list(map(run_name, paths)), [UNNAMED if is_descriptor(path) else str(path) for path in paths]]
    choices += [
        [f"{UNNAMED}-{n}" if name == UNNAMED else name for n, name in enumerate(chosen, start=1)] for chosen in choices
    ]
    for chosen in choices:
        if len(set(chosen)) == len(chosen):
            return chosen
    raise same_names(next(name for name in names if list(names).count(name) > 1))


def same_names(name: str) -> InputError:
    """The error for two runs of one name."""
    return InputError(
        f"two runs are called {name!r}; give them different names: {name}-1=FILE {name}-2=FILE on the command line, "
        f"{{'{name}-1': ..., '{name}-2': ...}} in Python."
    )


def names_file(name: str, run: Any) -> bool:
    """Whether a name is that of a run's file: its path, its file name, or that without suffixes."""
    return isinstance(run, (str, Path)) and name in (str(Path(run)), Path(run).name, run_name(Path(run)))
