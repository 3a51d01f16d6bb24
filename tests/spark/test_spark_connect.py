"""Spark Connect: the same values from a remote session, in its own process, since a process has one kind of session."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import steelyard
from needs import NO_JAVA, import_peer

import_peer("pyspark")
import_peer("grpc_status")
pytestmark = pytest.mark.spark

SCRIPT = """
import polars as pl
from pyspark.sql import SparkSession
from spark_data import in_spark, judgments, run
import steelyard as sy
import steelyard.spark
from steelyard.spark import evaluation, scan

spark = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "2").getOrCreate()
assert "connect" in type(spark).__module__
qrels, listed, measures = judgments(1), run(2), ["nDCG@10", "AP", "NumRet"]
frames = in_spark(spark, qrels), in_spark(spark, listed.sort("query_id"))
here = sy.evaluate(qrels, listed, measures)
for way in ("in place", "exchanged", "shuffled"):
    if way == "exchanged":
        scan.RunScan._found_in_place = lambda *_: None
    evaluation.MOST_JUDGMENTS = -1 if way == "shuffled" else 10**7
    there = steelyard.spark.evaluate(spark, *frames, measures)
    assert there.means == here.means and there.coverage.counts() == here.coverage.counts(), way
    values = {row["query_id"]: row["AP"] for row in there.per_query.collect()}
    assert values == dict(here.per_query.select("query_id", "AP").iter_rows()), way
    there.unpersist()
evaluation.MOST_JUDGMENTS = 10**7
both = {"one": frames[1], "two": in_spark(spark, run(3))}
comparison = steelyard.spark.compare(spark, frames[0], both, "AP")
assert comparison.leaderboard["AP"].max() >= here.means["AP"]
fused = sy.fuse({"one": sy.Run(listed), "two": sy.Run(run(3))}).table
assert steelyard.spark.fuse(both).filter("doc_id is not null").count() == fused.height
assert steelyard.spark.pool(both, depth=2).count() == len(sy.pool({"one": listed, "two": run(3)}, depth=2))
print("the same")
"""


def test_the_same_values_with_spark_connect(tmp_path):
    if not shutil.which("java") and not os.environ.get("JAVA_HOME"):
        pytest.skip(NO_JAVA)
    here = Path(__file__).parent
    folders = [str(here), str(here.parent), str(Path(steelyard.__file__).parents[1])]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(folders),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=1200
    )
    assert done.stdout.splitlines()[-1:] == ["the same"], done.stderr[-3000:]
