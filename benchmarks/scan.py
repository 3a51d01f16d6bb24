"""The times of readers of runs compared with `wc -l` and a raw read, as ratios of one run.

    python benchmarks/scan.py RUN QRELS


Every figure is the best of several, taken in turn, so that a busy moment falls on all of them alike.
The readers are timed inside one process; what starting Python costs is not in them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.alignment.hits import JudgedDocs, Ordering
from steelyard.alignment.scans import scan_file, scan_frame, scan_mapping
from steelyard.native import native_available
from steelyard.run import Run


def judged_of(path: Path) -> JudgedDocs:
    judged: dict[str, list[str]] = {}
    for line in path.read_text().splitlines():
        query, _, doc, _ = line.split()
        judged.setdefault(query, []).append(doc)
    starts = np.cumsum([0, *map(len, judged.values())], dtype=np.int64)
    return JudgedDocs(list(judged), starts, [doc for docs in judged.values() for doc in docs])


def raw_read(path: Path) -> None:
    buffer = bytearray(1 << 20)
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def with_native(used: bool, read: Callable[[], Any]) -> Callable[[], Any]:
    def timed() -> Any:
        os.environ["STEELYARD_NATIVE"] = "1" if used else "0"
        return read()

    return timed


def best_of(ways: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """The shortest time of each, over several rounds."""
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def print_table(title: str, times: dict[str, float], base: str) -> None:
    print(f"\n{title}\n\n| way | seconds | x {base} |\n|---|---:|---:|")
    for name, seconds in times.items():
        print(f"| {name} | {seconds:.4f} | {seconds / times[base]:.2f} |")


def time_files(run: Path, judged: JudgedDocs, rounds: int) -> None:
    quiet = {"stdout": subprocess.DEVNULL, "check": True}
    ways: dict[str, Callable[[], Any]] = {
        "wc -l": lambda: subprocess.run(["wc", "-l", str(run)], **quiet),
        "cat": lambda: subprocess.run(["cat", str(run)], **quiet),
        "raw read": lambda: raw_read(run),
    }
    for threads in (1, 2) if native_available() else ():
        read = lambda threads=threads: scan_file(run, judged, Ordering(), threads=threads)  # noqa: E731
        ways[f"native, {threads} thread{'s' * (threads > 1)}"] = with_native(True, read)
    ways["portable"] = with_native(False, lambda: scan_frame(Run.read(run), judged, Ordering()))
    print_table(f"{run.name}, {run.stat().st_size / 1e6:,.0f} MB", best_of(ways, rounds), "wc -l")


def time_memory(rounds: int) -> None:
    rng = np.random.default_rng(0)

    def runs(queries: int, depth: int) -> dict[str, dict[str, float]]:
        drawn = ((str(q), rng.choice(8_841_823, depth, replace=False).tolist()) for q in range(queries))
        scores = np.sort(rng.random(depth) * 30)[::-1].tolist()
        return {query: dict(zip(map(str, docs), scores, strict=True)) for query, docs in drawn}

    dicts = runs(6980, 100)
    lists = {query: list(docs) for query, docs in runs(10_000, 10).items()}
    ways: dict[str, Callable[[], Any]] = {
        "sum of all scores": lambda: sum(sum(docs.values()) for docs in dicts.values())
    }
    for used in (True, False):
        for title, run in (("dicts 6,980 x 100", dicts), ("lists 10,000 x 10", lists)):
            docs = [[list(listed)[3], "none"] for listed in run.values()]
            starts = np.arange(0, 2 * len(docs) + 1, 2)
            judged = JudgedDocs(list(run), starts, [doc for pair in docs for doc in pair])
            if native_available() or not used:
                read = lambda run=run, judged=judged: (  # noqa: E731
                    scan_mapping(run, judged, Ordering()) or scan_frame(Run(run), judged, Ordering())
                )
                ways[f"{title}, {'native' if used else 'portable'}"] = with_native(used, read)
    print_table("Runs in memory", best_of(ways, rounds), "sum of all scores")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("qrels", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    os.environ.pop("STEELYARD_NATIVE", None)
    time_files(given.run, judged_of(given.qrels), given.rounds)
    os.environ.pop("STEELYARD_NATIVE", None)
    time_memory(given.rounds)


if __name__ == "__main__":
    main()
