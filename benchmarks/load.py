"""Load: time and peak memory of the command line at one, two and four times a size.

| case | one time | four times |
|---|---|---|
| lines | 12.5 million lines of a run | 50 million |
| queries | 250,000 queries | 1 million |
| one query | 1.25 million documents | 5 million |
| long ids | 5,000 lines of ids of 10 kB | 20,000 |
| compare | 50 runs | 200 |
| report | 50 runs | 200 |

Every measurement is a process of its own. `growth` is that of the processor time (of all threads, which other load
changes little) when the size doubles, without the time of a process that does nothing: n log n gives 2.1 to 2.2, pairs
of runs give 4.

Run with `python -m benchmarks.load [CASE ...] [--scale 0.1]`.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

STEPS = (1, 2, 4)
NOISE = 1.4
"""A step that grows by more than this times what is allowed is reported."""

PAGE_RUNS, PAGE_BYTES = 100, 500_000_000
"""The memory of a page of so many runs is limited."""

Arguments = list[str]


@dataclass(frozen=True)
class Case:
    """What is measured: the size at one time, its unit, how fast it may grow, and how it is made."""

    title: str
    size: int
    unit: str
    by_pairs: bool
    make: Callable[[Path, int], Arguments]

    def allowed(self, size: float) -> float:
        """How much the time may grow from half of the size to the size."""
        return 4.0 if self.by_pairs else 2 * math.log2(size) / math.log2(size / 2)


def lines(folder: Path, size: int) -> Arguments:
    """Queries of 1,000 documents."""
    return _evaluate(folder, _write_run(folder / "a.run", size // 1000, 1000))


def queries(folder: Path, size: int) -> Arguments:
    """Queries of ten documents."""
    return _evaluate(folder, _write_run(folder / "a.run", size, 10))


def one_query(folder: Path, size: int) -> Arguments:
    """One query with all documents."""
    return _evaluate(folder, _write_run(folder / "a.run", 1, size))


def long_ids(folder: Path, size: int) -> Arguments:
    """Queries of 100 documents whose ids have 10 kB."""
    return _evaluate(folder, _write_run(folder / "a.run", size // 100, 100, "x" * 10_000))


def compare(folder: Path, runs: int) -> Arguments:
    """Runs of 200 queries with 50 documents."""
    names = _write_runs(folder, runs)
    return ["compare", "a.qrels", *names, "-m", "nDCG@10", "-m", "AP", "-o", "out.html"]


def report(folder: Path, runs: int) -> Arguments:
    """The page of a bench of finished runs."""
    names = _write_runs(folder, runs)
    (folder / "data").mkdir(exist_ok=True)
    rows = [line.split() for line in (folder / "a.qrels").read_text().splitlines()]
    (folder / "data" / "qrels.tsv").write_text(
        "query-id\tcorpus-id\tscore\n" + "".join(f"{query}\t{doc}\t{grade}\n" for query, _, doc, grade in rows)
    )
    for name, ids in (("queries", [f"q{n}" for n in range(200)]), ("corpus", [f"d{n}" for n in range(5000)])):
        texts = pl.DataFrame({"_id": ids, "text": [f"the text of {each}" for each in ids]})
        texts.write_ndjson(folder / "data" / f"{name}.jsonl")
    entries = "".join(f"  - run: {name}\n" for name in names)
    (folder / "bench.yaml").write_text(f"dataset: data\ndepth: 50\nmeasures: [nDCG@10, AP]\nretrievers:\n{entries}")
    measured(folder, ["bench", "bench.yaml", "-o", "result"])
    return ["report", "result", "-o", "out.html"]


CASES = {
    "lines": Case("Lines of a run", 12_500_000, "lines", False, lines),
    "queries": Case("Queries of ten documents", 250_000, "queries", False, queries),
    "one-query": Case("Documents of one query", 1_250_000, "documents", False, one_query),
    "long-ids": Case("Lines with ids of 10 kB", 5_000, "lines", False, long_ids),
    "compare": Case("Runs in compare, with the page", 50, "runs", True, compare),
    "report": Case("Runs in report", 50, "runs", True, report),
}


def main() -> None:
    """Print one table per case, and what grows too fast."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=[])
    parser.add_argument("--scale", type=float, default=1.0, help="a factor of all sizes")
    given, _ = parser.parse_known_args()
    chosen = [name for name in given.cases if name in CASES] or list(CASES)
    with tempfile.TemporaryDirectory() as folder:
        idle = measured(Path(folder), ["--version"])[1]
    problems = [problem for name in chosen for problem in show(CASES[name], given.scale, idle)]
    print("\n".join(problems) or "\nNo step grows faster than allowed.")


def show(case: Case, scale: float, idle: float) -> Iterator[str]:
    """Print the table of a case; what grows too fast or is too large."""
    print(f"\n### {case.title}\n")
    print(f"| {case.unit} | time | processor time | growth | peak memory |\n|---:|---:|---:|---:|---:|")
    before = None
    for step in STEPS:
        size = max(2, int(step * case.size * scale))
        with tempfile.TemporaryDirectory() as folder:
            arguments = case.make(Path(folder), size)
            seconds, worked, peak = measured(Path(folder), arguments)
        growth = None if before is None else (worked - idle) / max(before - idle, 1e-3)
        shown = "" if growth is None else f"{growth:.2f}"
        print(f"| {size:,} | {seconds:.1f} s | {worked:.1f} s | {shown} | {peak / 1e6:,.0f} MB |", flush=True)
        if growth is not None and growth > NOISE * case.allowed(size):
            yield f"{case.title}: {size:,} take {growth:.2f} times as long as half of them."
        if case.by_pairs and size == PAGE_RUNS and peak > PAGE_BYTES:
            yield f"{case.title}: a page of {size} runs takes {peak / 1e6:,.0f} MB."
        before = worked


def measured(folder: Path, arguments: Arguments) -> tuple[float, float, int]:
    """Seconds by the clock and of the processor, and peak memory in bytes, of a command of steelyard."""
    return measured_process(folder, ["-m", "steelyard", *arguments])


def measured_process(folder: Path, arguments: Arguments) -> tuple[float, float, int]:
    """The same of a process of Python.

    It is started by a small process: a new process has the peak memory of the one that starts it.
    """
    root = Path(__file__).resolve().parents[1]
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-S", "-c", _START, sys.executable, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        env={
            "OPENBLAS_THREAD_TIMEOUT": "4",  # as the command line sets it
            **kept,
            "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)]),
        },
    )
    if done.returncode != 0:
        sys.exit(f"python {' '.join(arguments)} failed: {done.stderr[-500:]}")
    seconds, worked, peak = done.stdout.split()
    return float(seconds), float(worked), int(peak) * (1 if sys.platform == "darwin" else 1024)


_START = """
import os, sys, time
start = time.perf_counter()
other = os.fork()
if other == 0:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.execv(sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(other, 0)
print(time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def _evaluate(folder: Path, run: Path) -> Arguments:
    return ["evaluate", "a.qrels", run.name, "-m", "nDCG@10", "-m", "AP", "-o", "out.json"]


def _write_run(path: Path, queries: int, depth: int, prefix: str = "d") -> Path:
    """A run of some queries with some documents each, and qrels of five documents of each query."""
    rng = np.random.default_rng(0)
    block = max(1, 2_000_000 // depth) if len(prefix) == 1 else 1
    with path.open("wb") as file, (path.parent / "a.qrels").open("w") as judgments:
        for first in range(0, queries, block):
            part = np.arange(first, min(first + block, queries))
            # The documents of a query differ: a random start, then a step that shares no factor with their number.
            docs = (rng.integers(0, 10**7, (len(part), 1)) + 7 * np.arange(depth)) % 8_841_823
            frame = pl.DataFrame({"query": np.repeat(part, depth), "doc": docs.ravel()})
            rank = np.tile(np.arange(1, depth + 1), len(part))
            frame.select(
                pl.format("q{}", "query"),
                pl.lit("Q0").alias("0"),
                pl.format(prefix + "{}", "doc").alias("d"),
                pl.Series("rank", rank),
                pl.Series("score", (depth + 1 - rank) + 0.5),
                pl.lit("run").alias("tag"),
            ).write_csv(file, separator=" ", include_header=False)
            for query, row in zip(part.tolist(), docs, strict=True):
                picked = row[rng.integers(0, depth, 5)].tolist()
                judgments.writelines(f"q{query} 0 {prefix}{doc} 1\n" for doc in sorted(set(picked)))
    return path


def _write_runs(folder: Path, runs: int) -> list[str]:
    """Runs of 200 queries with 50 of 5,000 documents, of different quality, and their qrels."""
    rng = np.random.default_rng(0)
    relevant = np.array([rng.choice(5000, 8, replace=False) for _ in range(200)])
    (folder / "a.qrels").write_text(
        "".join(f"q{q} 0 d{doc} {grade % 3}\n" for q, row in enumerate(relevant) for grade, doc in enumerate(row))
    )
    names = []
    for number in range(runs):
        text = []
        for query, row in enumerate(relevant):
            noise = rng.choice(5000, 60, replace=False).tolist()
            found = row[rng.random(8) < 0.3 + 0.4 * number / runs].tolist()
            drawn = list(dict.fromkeys([*rng.permutation([*found, *noise[:8]]).tolist(), *noise]))[:50]
            text += [f"q{query} Q0 d{doc} {r} {60 - r} run{number}\n" for r, doc in enumerate(drawn, start=1)]
        names.append(f"run{number}.run")
        (folder / names[-1]).write_text("".join(text))
    return names


if __name__ == "__main__":
    main()
