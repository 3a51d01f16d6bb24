"""Twenty million rows in Parquet: Spark on the cores of this machine, compared with Spark's own read and shuffle."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import polars as pl

from benchmarks.evaluation import MEASURES

QUERIES, DEPTH, LONG, FILES = 20_000, 1_000, 2_000_000, 8
CORES = 2
WAYS = {
    "read": "Spark: reading and aggregating all columns",
    "python": "Spark: the rows to Python, which drops them",
    "shuffle": "Spark: shuffling and sorting by query",
    "evaluate": "steelyard.spark.evaluate",
    "rows": "the same by a shuffle of all rows",
}


def main() -> None:
    """Print the tables."""
    if find_spec("pyspark") is None:
        print("pyspark is not installed: pip install --group spark")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for order in ("random", "grouped"):
            for part in (4, 2, 1):
                where = folder / f"{order}-{part}"
                write(where, QUERIES // part, DEPTH, order)
                ways = ["read", "python", "shuffle", "evaluate", *(["rows"] if part == 1 else [])]
                title = f"A run in Parquet, {QUERIES // part:,} queries x {DEPTH:,}, rows {_ORDERS[order]}"
                _show(title, in_fresh(where, ways), "shuffle" if order == "random" else "read")
        write(folder / "long", 1, LONG, "random")
        _show(f"One query of {LONG:,} documents", in_fresh(folder / "long", ["read", "evaluate"]), "read")


_ORDERS = {"random": "in no order", "grouped": "grouped by query"}


def _show(title: str, found: list[dict[str, Any]], base: str) -> None:
    unit = next(row for row in found if row["way"] == base)
    print(f"\n### {title}\n")
    print(f"| what | time | processor time | x {base} | a worker's peak |\n|:---|---:|---:|---:|---:|")
    for row in found:
        print(
            f"| {WAYS[row['way']]} | {row['seconds']:.1f} s | {row['processor']:.1f} s | "
            f"{row['processor'] / unit['processor']:.2f} | {row['peak']:.0f} MB |",
            flush=True,
        )


def write(folder: Path, queries: int, depth: int, order: str) -> None:
    """A run in several files, in random order or grouped by query, and two judgments per query."""
    rng = np.random.default_rng(0)
    (folder / "run").mkdir(parents=True)
    judged = []
    for number in range(FILES):
        if order == "random":
            query = np.repeat(np.arange(queries), depth // FILES)
        else:
            query = np.repeat(np.arange(number * queries // FILES, (number + 1) * queries // FILES), depth)
        doc, score = rng.integers(0, 50_000_000, len(query)), rng.random(len(query))
        frame = pl.DataFrame({"query_id": query, "doc_id": doc, "score": score})
        if order == "random":
            frame = frame.sample(fraction=1, shuffle=True, seed=number)
        else:
            frame = frame.sort("query_id", "score", descending=[False, True], maintain_order=True)
        text = frame.with_columns(pl.col("query_id", "doc_id").cast(pl.String))
        text.write_parquet(folder / "run" / f"part-{number}.parquet")
        judged.append(text.sample(min(2 * queries // FILES + 1, len(text)), seed=1))
    qrels = pl.concat(judged).select("query_id", "doc_id", grade=pl.lit(1.0))
    qrels.unique(["query_id", "doc_id"], maintain_order=True).write_parquet(folder / "qrels.parquet")


def in_fresh(folder: Path, ways: list[str]) -> list[dict[str, Any]]:
    """The times of some methods, one after another in a new process."""
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    code = f"from benchmarks.spark import timed; timed({str(folder)!r}, {ways!r})"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def timed(folder: str, ways: list[str]) -> None:
    """Print a line of JSON for every way. Spark and the workers are warm: they have done all of it on a few rows."""
    spark = _session()
    listed = spark.read.parquet(f"{folder}/run")
    judged = spark.read.parquet(f"{folder}/qrels.parquet").cache()
    for way in ways:
        _work(spark, judged, listed.limit(1000), way)()
    for way in ways:
        work = _work(spark, judged, listed, way)
        most, over = [0.0], threading.Event()
        watcher = threading.Thread(target=_watch, args=(most, over), daemon=True)
        watcher.start()
        start, before = perf_counter(), _processor()
        work()
        seconds, processor = perf_counter() - start, _processor() - before
        over.set()
        watcher.join()
        row = {"way": way, "seconds": seconds, "processor": processor, "peak": most[0]}
        print(json.dumps(row), flush=True)


def _work(spark: Any, judged: Any, listed: Any, way: str) -> Callable[[], Any]:
    if way == "read":
        return listed.agg({"score": "sum", "doc_id": "max", "query_id": "max"}).collect
    if way == "python":
        return listed.mapInArrow(_dropped, "score double").collect
    if way == "shuffle":
        shuffled = listed.repartition("query_id").sortWithinPartitions("query_id")
        return shuffled.write.format("noop").mode("overwrite").save
    import steelyard.spark
    from steelyard.spark import plan

    def evaluate() -> Any:
        plan.MOST_JUDGMENTS = 0 if way == "rows" else 10_000_000
        return steelyard.spark.evaluate(spark, judged, listed, MEASURES).means

    return evaluate


def _dropped(batches: Any) -> Any:
    for _ in batches:
        pass
    return iter(())


def _watch(most: list[float], over: threading.Event) -> None:
    """Record the peak memory of the Python of a worker, in MB."""
    while not over.wait(0.05):
        most[0] = max([most[0], *map(_resident, _workers())])


def _processor() -> float:
    """The processor time of this process and all that it started, in seconds."""
    parents, times = {}, {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            fields = (process / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(process.name)] = int(fields[1])
        times[int(process.name)] = sum(map(int, fields[11:15]))
    own = {os.getpid()}
    while more := {process for process, parent in parents.items() if parent in own} - own:
        own |= more
    return sum(times[process] for process in own) / os.sysconf("SC_CLK_TCK")


def _workers() -> list[int]:
    """The processes that Spark's Python daemon started."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if b"pyspark.daemon" in (process / "cmdline").read_bytes():
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
