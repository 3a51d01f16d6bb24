"""Same inputs, same bytes: whatever the hash seed, the threads, the locale, the time zone or the row order."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

import steelyard as sy

pytestmark = pytest.mark.slow

QUERIES, DOCUMENTS = 30, 120

COMMANDS = [
    "evaluate data/qrels.tsv a.run b.run -m nDCG@10 -m AP --per-query -o out/evaluate.json",
    "compare data/qrels.tsv a.run b.run c.run -m nDCG@10 -m AP "
    "--test permutation --set permutations=2000 -o out/compare.json",
    "bench bench.yaml -o out/bench",
    "report out/bench -o out/report.html",
    "gate out/bench --save-baseline out/baseline.json",
    "convert a.run out/a.parquet",
    "convert a.run out/a.json.gz",
    "fuse a.run b.run --method rrf -o out/fused.run",
    "pool a.run b.run --qrels data/qrels.tsv --budget 40 --strategy pair -o out/pool.jsonl",
    "pool a.run b.run --depth 20 --budget 300 --strategy sample --set seed=3 -o out/sample.jsonl",
    "judge out/pool.jsonl --dataset data --set split=ann,bob --judge bob --html out/judge.html",
]

COPIES = ["a.json.gz", "a.parquet", "bench/runs/a.parquet"]
"""Copies of a run have its order of rows."""

# Times and memory are fixed; all commands are run in one process.
SESSION = """
import sys, time, uuid
from pathlib import Path
time.perf_counter = lambda: 0.0
uuid.uuid4 = lambda: uuid.UUID(int=0)
from steelyard.benchmark import retrieval
from steelyard.cli import run
retrieval._STATM = Path("none")
for line in Path("commands").read_text().splitlines():
    code = run(line.split())
    assert code == 0, (code, line)
"""

ENVIRONMENTS = {
    "one thread": {
        "PYTHONHASHSEED": "0",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "POLARS_MAX_THREADS": "1",
        "LC_ALL": "C",
        "TZ": "UTC",
    },
    "four threads, another hash seed, time zone and locale": {
        "PYTHONHASHSEED": "4242",
        "OPENBLAS_NUM_THREADS": "4",
        "OMP_NUM_THREADS": "4",
        "POLARS_MAX_THREADS": "4",
        "LC_ALL": "tr_TR.UTF-8",
        "LANG": "tr_TR.UTF-8",
        "TZ": "Asia/Kathmandu",
    },
}


def write_inputs(folder: Path, shuffled: bool) -> None:
    """A dataset and three runs with distinct scores; `shuffled` changes the order of their rows."""
    draw = random.Random(7)
    words = [f"iıİ{n}" for n in range(50)]
    (folder / "data").mkdir(parents=True)
    (folder / "out").mkdir()
    docs = [{"_id": f"d{n}", "text": " ".join(draw.choices(words, k=20))} for n in range(DOCUMENTS)]
    asked = [{"_id": f"q{n}", "text": " ".join(draw.choices(words, k=3)), "kind": "ab"[n % 2]} for n in range(QUERIES)]
    qrels = [
        f"q{n}\td{doc}\t{draw.randint(0, 2)}\n" for n in range(QUERIES) for doc in draw.sample(range(DOCUMENTS), 10)
    ]
    runs = {
        name: [
            f"q{n} Q0 d{doc} {rank} {100 - rank + draw.random() / 2} {name}\n"
            for n in range(QUERIES)
            for rank, doc in enumerate(draw.sample(range(DOCUMENTS), 40), start=1)
        ]
        for name in "abc"
    }
    if shuffled:
        for lines in runs.values():
            draw.shuffle(lines)
            # The order of the queries stays.
            lines.sort(key=lambda line: int(line.split()[0][1:]))
    for name, rows in (("corpus", docs), ("queries", asked)):
        (folder / "data" / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    (folder / "data" / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(qrels))
    for name, lines in runs.items():
        (folder / f"{name}.run").write_text("".join(lines))
    (folder / "bench.yaml").write_text(
        "dataset: data\ndepth: 20\nmeasures: [nDCG@10, AP]\nby: kind\nretrievers:\n  - bm25-okapi\n"
        "  - random: {seed: 4}\n  - graph-flow\n  - swarm-rerank: {candidates: 20, agents: 5}\n"
        "  - hybrid: {of: [bm25-okapi, bm25-plus], fuse: rrf}\n  - run: a.run\n"
    )
    (folder / "commands").write_text("\n".join(COMMANDS))


def written(folder: Path, environment: dict[str, str], shuffled: bool = False) -> dict[str, bytes]:
    """The files that all commands write."""
    write_inputs(folder, shuffled)
    done = subprocess.run(
        [sys.executable, "-c", SESSION],
        cwd=folder,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(Path(sy.__file__).parent.parent), **environment},
    )
    assert done.returncode == 0, done.stderr.decode()
    out = folder / "out"
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file() and path.parent.name != "cache"
    }


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return written(tmp_path_factory.mktemp("first") / "x", ENVIRONMENTS["one thread"])


def different(files: dict[str, bytes], expected: dict[str, bytes]) -> list[str]:
    return sorted(name for name in files.keys() | expected.keys() if files.get(name) != expected.get(name))


def test_other_hash_seed_threads_locale_and_time_zone(tmp_path, expected):
    assert len(expected) > 20
    environment = ENVIRONMENTS["four threads, another hash seed, time zone and locale"]
    assert different(written(tmp_path / "x", environment), expected) == []


def test_other_order_of_rows_with_distinct_scores(tmp_path, expected):
    files = written(tmp_path / "x", ENVIRONMENTS["one thread"], shuffled=True)
    assert different(files, expected) == COPIES
