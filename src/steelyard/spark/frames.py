"""Frames of Spark and data on the driver: columns are sent both ways in packed blocks, not row by row."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException

from steelyard.errors import PackageError
from steelyard.lazy import polars as pl

_NOT_ON_WORKERS = (
    "steelyard is not installed in the Python of the workers. Install steelyard[spark] on the cluster, or set "
    "PYSPARK_PYTHON to an interpreter that has it."
)
SENT_ROWS = 1 << 16  # Rows of a packed block that the driver sends.


def map_in_arrow(frame: Any, function: Callable[..., Any], schema: str) -> Any:
    """Spark's mapInArrow without its warning about the version of pandas: no data passes through pandas here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*pandas", category=FutureWarning)
        return frame.mapInArrow(function, schema)


def arrow_schema(schema: str) -> pa.Schema:
    """The Arrow schema of a Spark schema that is written as text."""
    kinds = {"string": pa.string(), "int": pa.int32(), "long": pa.int64(), "double": pa.float64()}
    kinds["binary"] = pa.binary()
    kinds |= {f"array<{name}>": pa.list_(kind) for name, kind in kinds.items()}
    return pa.schema([(name, kinds[kind]) for name, kind in map(str.split, schema.split(", "))])


def collect(frame: Any) -> Any:
    """The rows of a frame on the driver."""
    try:
        return frame.collect()
    except PySparkException as error:
        if "No module named 'steelyard'" in str(error):
            raise PackageError(_NOT_ON_WORKERS) from None
        raise


def collect_columns(frame: Any) -> pl.DataFrame:
    """The columns of a frame on the driver."""
    kinds = {"string": pl.String, "long": pl.Int64, "byte": pl.Int8, "double": pl.Float64}
    parts = collect(map_in_arrow(frame, _packed, "packed binary"))
    schema = {column.name: kinds[column.dataType.typeName()] for column in frame.schema.fields}
    return pl.concat([pl.DataFrame(schema=schema), *(pl.read_ipc_stream(io.BytesIO(part["packed"])) for part in parts)])


def send_columns(spark: Any, table: pl.DataFrame, schema: str) -> Any:
    """A frame on the driver as a Spark frame."""
    whole = table.to_arrow()
    kinds = [(one.name, one.type if pa.types.is_floating(one.type) else pa.string()) for one in whole.schema]
    rows = [(_stream(batch),) for batch in whole.cast(pa.schema(kinds)).to_batches(max_chunksize=SENT_ROWS)]
    return map_in_arrow(spark.createDataFrame(rows, "packed binary"), _unpacked, schema)


def _stream(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_arrays([pa.array([_stream(batch)], pa.binary())], ["packed"])


def _unpacked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for packed in batch.column(0):
            yield from pa.ipc.open_stream(packed.as_buffer())
