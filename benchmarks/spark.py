"""Twenty million rows in Parquet: Spark on the cores of this machine, compared with the evaluation in memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import polars as pl

from benchmarks.evaluation import MEASURES, show

QUERIES, DEPTH, LONG = 20_000, 1_000, 2_000_000
CORES = 2


def main() -> None:
    """Print the tables."""
    if find_spec("pyspark") is None:
        print("pyspark is not installed: pip install --group spark")
        return
    with tempfile.TemporaryDirectory() as folder:
        run, qrels = Path(folder) / "run", Path(folder) / "qrels.parquet"
        _write(run, qrels, QUERIES, DEPTH, seed=0)
        rows = [
            (
                "steelyard.evaluate, polars frames",
                _in_fresh("memory", run, qrels),
                "reading Parquet included",
            ),
            ("Spark: reading and counting", _in_fresh("count", run, qrels), f"local[{CORES}], warm"),
            ("Spark: shuffling and sorting by query", _in_fresh("shuffle", run, qrels), "without Steelyard"),
            (
                "steelyard.spark.evaluate",
                _in_fresh("spark", run, qrels),
                "the first evaluation of a warm Spark",
            ),
        ]
        show(f"A run in Parquet, {QUERIES:,} queries x {DEPTH:,}", rows, rows[0][1], "x in memory")
        one, judged = Path(folder) / "one", Path(folder) / "one.parquet"
        _write(one, judged, 1, LONG, seed=1)
        rows = [
            ("steelyard.evaluate, polars frames", _in_fresh("memory", one, judged), ""),
            (
                "steelyard.spark.evaluate",
                _in_fresh("spark", one, judged),
                f"a worker's peak: {_peak(one, judged):.0f} MB",
            ),
        ]
        show(f"One query of {LONG:,} documents", rows, rows[0][1], "x in memory")


def _write(folder: Path, qrels: Path, queries: int, depth: int, seed: int) -> None:
    """A run in several files, its queries spread over all of them, and two judgments per query."""
    rng = np.random.default_rng(seed)
    folder.mkdir()
    judged = []
    files = 8
    for number in range(files):
        query = np.repeat(np.arange(queries), depth // files)
        doc = rng.integers(0, 50_000_000, len(query))
        frame = pl.DataFrame({"query_id": query, "doc_id": doc, "score": rng.random(len(query))})
        text = frame.with_columns(pl.col("query_id", "doc_id").cast(pl.String)).sample(
            fraction=1, shuffle=True, seed=seed
        )
        text.write_parquet(folder / f"part-{number}.parquet")
        if number < 2:
            judged.append(text.unique("query_id", keep="first").select("query_id", "doc_id", grade=pl.lit(1)))
    pl.concat(judged).unique(["query_id", "doc_id"]).write_parquet(qrels)


def _in_fresh(way: str, run: Path, qrels: Path) -> float:
    """The seconds of one method, in a new process."""
    return float(_said("timed", way, run, qrels))


def _peak(run: Path, qrels: Path) -> float:
    """The peak memory of the Python of a worker, in MB."""
    return float(_said("peak", "spark", run, qrels))


def _said(function: str, way: str, run: Path, qrels: Path) -> str:
    code = (
        f"from benchmarks.spark import {function}; print({function}({way!r}, {str(run)!r}, {str(qrels)!r}))"
    )
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )
    return done.stdout.splitlines()[-1]


def timed(way: str, run: str, qrels: str) -> float:
    """The seconds from the files to the means."""
    if way == "memory":
        import steelyard as sy

        start = perf_counter()
        frames = pl.read_parquet(qrels), pl.read_parquet(f"{run}/*.parquet")
        sy.evaluate(*frames, MEASURES).means  # noqa: B018
        return perf_counter() - start
    spark = _session()
    listed, judged = spark.read.parquet(run), spark.read.parquet(qrels)
    judged.groupBy("query_id").count().agg({"count": "sum"}).collect()
    start = perf_counter()
    if way == "count":
        listed.agg({"score": "sum", "doc_id": "max", "query_id": "max"}).collect()
    elif way == "shuffle":
        listed.repartition("query_id").sortWithinPartitions("query_id").write.format("noop").mode(
            "overwrite"
        ).save()
    else:
        import steelyard.spark

        steelyard.spark.evaluate(spark, judged, listed, MEASURES).means  # noqa: B018
    return perf_counter() - start


def peak(way: str, run: str, qrels: str) -> float:
    """The peak memory of the Python of a worker while Spark evaluates a run, in MB."""
    import threading

    most, over = [0.0], threading.Event()

    def watch() -> None:
        while not over.wait(0.05):
            most[0] = max([most[0], *map(_resident, _workers())])

    watcher = threading.Thread(target=watch)
    watcher.start()
    timed(way, run, qrels)
    over.set()
    watcher.join()
    return most[0]


def _workers() -> list[int]:
    """The processes that Spark's Python daemon started."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (
                b"pyspark/daemon" in (words := (process / "cmdline").read_bytes())
                or b"pyspark.daemon" in words
            ):
                found.append(int(process.name))
        except OSError:
            continue
    return found


def _resident(process: int) -> float:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    except (OSError, IndexError):
        return 0.0


def _session() -> Any:
    from pyspark.sql import SparkSession

    return (
        SparkSession.builder.master(f"local[{CORES}]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.shuffle.partitions", 16)
        .getOrCreate()
    )


if __name__ == "__main__":
    main()
