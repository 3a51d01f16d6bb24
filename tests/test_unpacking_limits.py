"""A small file that unpacks to gigabytes is an InputError, before it uses memory."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys

import polars as pl
import pytest

import steelyard as sy
from needs import import_peer
from steelyard.benchmark.config import read_yaml
from steelyard.errors import InputError
from steelyard.io.files import read_bytes
from steelyard.io.unpacking import _parquet_size, load_yaml, read_parquet
from steelyard.judging.guidelines import Guidelines

LIMIT = 1 << 20


@pytest.fixture
def low_limit(monkeypatch):
    monkeypatch.setenv("STEELYARD_MAX_UNPACKED", str(LIMIT))


def zstd_bomb(size):
    """A frame of blocks that each repeat one byte 128 Ki times: four bytes per block."""
    blocks = size >> 17
    header = b"\x28\xb5\x2f\xfd\x00\x38"  # no content size; a window of 128 KiB
    block = lambda last: ((1 << 17 << 3) | (1 << 1) | last).to_bytes(3, "little") + b"a"  # noqa: E731
    return header + block(0) * (blocks - 1) + block(1)


def lz4_bomb(size):
    import lz4.frame

    return lz4.frame.compress(b"a" * size)


BOMBS = {"gzip": lambda size: gzip.compress(b"a" * size), "zstd": zstd_bomb, "lz4": lz4_bomb}


@pytest.mark.parametrize("kind", BOMBS)
def test_compressed_data_is_limited(tmp_path, low_limit, kind):
    (tmp_path / "a.run").write_bytes(BOMBS[kind](LIMIT))
    assert len(read_bytes(tmp_path / "a.run")) == LIMIT
    (tmp_path / "a.run").write_bytes(BOMBS[kind](2 * LIMIT))
    with pytest.raises(InputError, match=f"the {kind} data of .* bytes unpacks to more than 1,048,576 bytes"):
        read_bytes(tmp_path / "a.run")
    for read in (sy.Run.read, sy.Qrels.read, lambda path: sy.evaluate({"q1": {"d1": 1}}, path, ["AP"])):
        with pytest.raises(InputError):
            read(tmp_path / "a.run")


def test_the_limit_is_a_number(tmp_path, monkeypatch):
    (tmp_path / "a.run").write_bytes(gzip.compress(b"q1 Q0 d1 1 1 t\n"))
    monkeypatch.setenv("STEELYARD_MAX_UNPACKED", "1 GB")
    with pytest.raises(InputError, match="STEELYARD_MAX_UNPACKED is '1 GB'; expected a number of bytes"):
        sy.Run.read(tmp_path / "a.run")


def test_large_files_that_compress_well_are_read(tmp_path):
    lines = "".join(f"q1 Q0 d{n % 7} {n} 1.5 tag\n" for n in range(100_000)).encode()
    (tmp_path / "a.run.gz").write_bytes(gzip.compress(lines))
    assert read_bytes(tmp_path / "a.run.gz") == lines


PEAK = r"""
import os, re, resource, sys
from steelyard.cli import run
code = run(sys.argv[1:])
# ru_maxrss counts the process that started this one, too; VmHWM is of this one alone.
own = re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read()) if os.path.exists("/proc/self/status") else None
print(code, int(own[1] if own else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) // 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize("native", ["1", "0"])
@pytest.mark.parametrize("kind", ["zstd", "parquet"])
def test_the_memory_of_a_bomb_is_bounded(tmp_path, kind, native):
    (tmp_path / "a.qrels").write_text("q1 0 d1 1\n")
    path = tmp_path / "bomb"
    if kind == "zstd":
        path.write_bytes(zstd_bomb(8 << 30)[:-4] + zstd_bomb(1 << 18)[6:])
    else:
        rows = 20_000_000
        pl.select(query_id=pl.repeat("q1", rows), doc_id=pl.repeat("d", rows), rank=pl.repeat(1, rows)).write_parquet(
            path
        )
    assert path.stat().st_size < 1_000_000
    done = subprocess.run(
        [sys.executable, "-c", PEAK, "evaluate", str(tmp_path / "a.qrels"), str(path)],
        env={**os.environ, "STEELYARD_NATIVE": native},
        capture_output=True,
        text=True,
    )
    code, megabytes = map(int, done.stdout.split())
    assert code == 2, done.stderr
    assert megabytes < 900


def parquet(tmp_path, rows, **options):
    path = tmp_path / "a.parquet"
    pl.DataFrame({"query_id": ["q1"] * rows, "doc_id": ["d1"] * rows, "score": [1.0] * rows}).write_parquet(
        path, **options
    )
    return path


@pytest.mark.parametrize(
    "options", [{}, {"compression": "uncompressed"}, {"row_group_size": 1000}, {"use_pyarrow": True}], ids=str
)
@pytest.mark.slow
def test_the_size_of_a_parquet_file_is_known_before_it_is_read(tmp_path, options):
    path = parquet(tmp_path, 20_000, **options)
    # Three columns of 16 bytes, once by the rows and once by the pages; and what the pages hold.
    assert _parquet_size(path.read_bytes()) > 2 * 3 * 16 * 20_000
    assert len(sy.Run.read(path)) == 20_000


def test_a_parquet_file_of_many_equal_rows_is_limited(tmp_path, low_limit):
    path = parquet(tmp_path, 50_000)
    assert path.stat().st_size < 10_000
    for read in (sy.Run.read, sy.Qrels.read, sy.compare_scores):
        with pytest.raises(InputError, match="the Parquet data of .* unpacks to more than"):
            read(path)


@pytest.mark.slow
def test_a_parquet_file_of_long_texts_is_limited(tmp_path, low_limit):
    path = tmp_path / "a.parquet"
    pl.DataFrame({"query_id": ["q1"], "doc_id": ["d" * 2 * LIMIT], "score": [1.0]}).write_parquet(path)
    assert path.stat().st_size < 10_000
    with pytest.raises(InputError, match="the Parquet data of .* unpacks to more than"):
        sy.Run.read(path)


@pytest.mark.parametrize("data", [b"PAR1", b"PAR1" + b"\xff" * 100 + b"PAR1", b"PAR1\0\0\0\0PAR1"])
def test_damaged_headers_of_parquet_are_refused(tmp_path, data):
    (tmp_path / "a.parquet").write_bytes(data)
    with pytest.raises(InputError, match="starts as a Parquet file but cannot be read as one"):
        sy.Run.read(tmp_path / "a.parquet")


def test_parquet_with_a_negative_count_does_not_end_the_process(tmp_path):
    """polars 2.1 allocates memory for the count, which ends the process."""
    path = parquet(tmp_path, 2, compression="uncompressed", statistics=False)
    data = path.read_bytes()
    # The header of a data page: a struct (field 5) with the count 2, the encoding and those of the levels.
    count = data.index(b"\x2c\x15\x04\x15")
    path.write_bytes(data[: count + 2] + b"\x53" + data[count + 3 :])
    with pytest.raises(InputError, match="headers are damaged"):
        sy.Run.read(path)


LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)
MERGED = "a0: &a0 {x: 1}\n" + "".join(f"a{n}: &a{n}\n  <<: [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))


@pytest.mark.parametrize("text", [LAUGHS, MERGED], ids=["aliases", "merges"])
def test_yaml_aliases_are_limited(tmp_path, text):
    (tmp_path / "a.yaml").write_text(text)
    for read in (read_yaml, Guidelines.read):
        with pytest.raises(InputError, match="the aliases of this YAML stand for more than 100,000 values"):
            read(tmp_path / "a.yaml")


def test_yaml_that_contains_itself_is_refused(tmp_path):
    (tmp_path / "a.yaml").write_text("grades: &a\n  0: [*a]\n")
    for read in (read_yaml, Guidelines.read):
        with pytest.raises(InputError, match="line 1: the YAML value contains itself"):
            read(tmp_path / "a.yaml")


def test_yaml_is_read_as_before():
    text = "a: &x {b: [1, 2.5, yes, null]}\nc: *x\nd:\n  <<: *x\n  e: 2024-01-01"
    assert json.dumps(load_yaml(text), default=str) == json.dumps(
        {
            "a": {"b": [1, 2.5, True, None]},
            "c": {"b": [1, 2.5, True, None]},
            "d": {"b": [1, 2.5, True, None], "e": "2024-01-01"},
        }
    )
    assert load_yaml("") is None


@pytest.mark.parametrize("rows", [0, 1, 3000])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("compression", ["none", "zstd", "snappy"])
def test_headers_of_other_writers(rows, version, dictionary, compression):
    arrow = import_peer("pyarrow.parquet")
    frame = pl.DataFrame(
        {"doc_id": [f"d{n}" for n in range(rows)], "list": [["a"] * (n % 3) for n in range(rows)]},
        schema={"doc_id": pl.String, "list": pl.List(pl.String)},
    )
    file = io.BytesIO()
    options = {"row_group_size": 1000, "data_page_size": 2000, "write_page_index": True}
    arrow.write_table(
        frame.to_arrow(), file, data_page_version=version, use_dictionary=dictionary, compression=compression, **options
    )
    assert read_parquet(file.getvalue(), None).equals(frame)
