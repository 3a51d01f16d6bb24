"""Evaluating runs from files and from memory, compared with raw reads and other tools: the best times of one run."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.make_run import write_run

MEASURES = ["nDCG@10", "AP", "RR@10", "R@100", "P@10"]
RANX_MEASURES = ["ndcg@10", "map", "mrr@10", "recall@100", "precision@10"]
COUNT = """
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(int count, char** names) {
    static char bytes[16384];
    int file = open(names[1], O_RDONLY);
    long lines = 0, got;
    while ((got = read(file, bytes, sizeof bytes)) > 0)
        for (char* at = bytes; at != bytes + got; ++at) lines += *at == '\\n';
    printf("%ld\\n", lines);
    return count != 2;
}
"""
QUERIES, DEPTH = 6_980, 1_000
PYTREC_EVAL = find_spec("pytrec_eval") is not None
"""It has no build for some platforms; its rows are left out there."""


def main() -> None:
    """Print the tables."""
    with tempfile.TemporaryDirectory() as folder:
        run, qrels = write_run(Path(folder), QUERIES, DEPTH, "sorted", digits=6, seed=0)
        files(Path(folder), run, qrels)
        frames(Path(folder), run, qrels)
    memory()
    lists()
    imports()


def best(action: Callable[[], object], times: int = 15) -> float:
    """The shortest of several timings, in seconds."""
    taken = []
    for _ in range(times):
        start = perf_counter()
        action()
        taken.append(perf_counter() - start)
    return min(taken)


def show(title: str, rows: list[tuple[str, float, str]], base: float, unit: str) -> None:
    """A table of times and their ratio to a base."""
    print(f"\n### {title}\n\n| what | time | {unit} | note |\n|:---|---:|---:|:---|")
    for what, seconds, note in rows:
        shown = f"{seconds:.3f} s" if seconds >= 0.1 else f"{seconds * 1e3:.1f} ms"
        print(f"| {what} | {shown} | {seconds / base:.2f} | {note} |", flush=True)


def files(folder: Path, run: Path, qrels: Path) -> None:
    """A whole `steelyard evaluate` process on a run of seven million lines, compared with `wc -l`."""
    measures = [part for measure in MEASURES for part in ("-m", measure)]
    command = [sys.executable, "-m", "steelyard", "evaluate", str(qrels), str(run), *measures, "--format", "json"]
    lines = best(lambda: subprocess.run(["wc", "-l", str(run)], check=True, capture_output=True))
    rows = [
        ("`wc -l`", lines, f"{run.stat().st_size / 1e6:.0f} MB"),
        *_plain_count(folder, run),
        ("`cat`", best(lambda: subprocess.run(["cat", str(run)], check=True, stdout=subprocess.DEVNULL)), ""),
        ("reading the bytes in Python", best(lambda: run.read_bytes()), ""),
    ]
    for name, native in (("steelyard evaluate, native", "1"), ("steelyard evaluate, portable", "0")):
        environment = _environment(native)
        taken = best(
            partial(subprocess.run, command, check=True, capture_output=True, env=environment),
            25 if native == "1" else 5,
        )
        rows.append((name, taken, f"whole process; peak {_peak(command, environment):.0f} MB"))
    if PYTREC_EVAL:
        taken = best(lambda: _pytrec_eval_file(run, qrels), 1)
        rows.append(("pytrec_eval, its own reader", taken, "in one process, once"))
    show("A run file, 6,980 queries x 1,000", rows, lines, "x `wc -l`")
    zipped = folder / "big.run.gz"
    subprocess.run(f"gzip -1 -c {run} > {zipped}", shell=True, check=True)
    unzip = best(lambda: subprocess.run(["gzip", "-dc", str(zipped)], check=True, stdout=subprocess.DEVNULL), 2)
    packed = [*command[:5], str(zipped), *command[6:]]
    rows = [
        ("`gzip -dc`", unzip, ""),
        ("steelyard evaluate, native", best(lambda: subprocess.run(packed, check=True, capture_output=True), 2), ""),
    ]
    show("The same, gzipped", rows, unzip, "x `gzip -dc`")


def _plain_count(folder: Path, run: Path) -> list[tuple[str, float, str]]:
    """Lines counted in C byte by byte, as `wc -l` counts them where it has no vector instructions."""
    if not (compiler := shutil.which("cc")):
        return []
    (folder / "count.c").write_text(COUNT)
    subprocess.run([compiler, "-O2", "-o", folder / "count", folder / "count.c"], check=True)
    taken = best(lambda: subprocess.run([folder / "count", run], check=True, capture_output=True))
    return [("lines counted byte by byte in C", taken, "`wc -l` without vector instructions")]


def frames(folder: Path, run: Path, qrels: Path) -> None:
    """The same rows as Parquet and as frames in memory, compared with polars and ranx."""
    import polars as pl

    import steelyard as sy

    table = folder / "run.parquet"
    sy.Run.read(run).write(table)
    command = [sys.executable, "-m", "steelyard", "evaluate", str(qrels), str(table)]
    command += [part for measure in MEASURES for part in ("-m", measure)]
    truth, polars_frame = sy.Qrels.read(qrels), pl.read_parquet(table)
    pandas_frame = polars_frame.to_pandas()
    read = best(lambda: pl.read_parquet(table), 5)
    process = best(partial(subprocess.run, command, check=True, capture_output=True, env=_environment("1")), 5)
    rows = [
        ("polars.read_parquet", read, "in one process"),
        ("steelyard evaluate, Parquet", process, "whole process"),
        ("steelyard, a polars frame", best(lambda: sy.evaluate(truth, polars_frame, MEASURES), 5), ""),
        ("steelyard, a pandas frame", best(lambda: sy.evaluate(truth, pandas_frame, MEASURES), 3), ""),
        ("ranx, a pandas frame", _ranx_frame(qrels, pandas_frame), "compiled before, once"),
    ]
    show("A frame, 6,980 queries x 1,000", rows, read, "x polars' read")


def _environment(native: str) -> dict[str, str]:
    """The environment of a process: native or portable, with compiled files as after an installation."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "STEELYARD_NATIVE": native}


def _peak(command: list[str], environment: dict[str, str]) -> float:
    """The peak memory of a command, in MB."""
    code = (
        "import resource, subprocess, sys; "
        "subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *command], check=True, capture_output=True, text=True, env=environment
    )
    return int(done.stdout) / 1024


def _pytrec_eval_file(run: Path, qrels: Path) -> None:
    import pytrec_eval

    with qrels.open() as file:
        truth = pytrec_eval.parse_qrel(file)
    with run.open() as file:
        ranked = pytrec_eval.parse_run(file)
    pytrec_eval.RelevanceEvaluator(truth, {"map", "ndcg_cut", "recip_rank", "recall", "P"}).evaluate(ranked)


def memory() -> None:
    """A dict of dicts, 6,980 x 100: from the dicts to the means."""
    qrels, run = _dicts(QUERIES, 100)
    plain = best(lambda: _loops(qrels, {q: sorted(d, key=d.get, reverse=True) for q, d in run.items()}), 2)
    rows = [("plain Python loops", plain, "")]
    rows += [
        (f"steelyard, {name}", _in_fresh("dicts", native), "") for name, native in (("native", "1"), ("portable", "0"))
    ]
    if PYTREC_EVAL:
        rows.append(("pytrec_eval", best(lambda: _pytrec_eval(qrels, run)), ""))
    rows.append(("ranx", _ranx(qrels, run), "with its build, compiled before"))
    show("From memory, dict of dicts, 6,980 x 100", rows, rows[1][1], "x steelyard native")


def lists() -> None:
    """Ranked lists, 10,000 x 10."""
    qrels, run = _lists()
    plain = best(lambda: _loops(qrels, run), 3)
    rows = [("plain Python loops", plain, "")]
    rows += [
        (f"steelyard, {name}", _in_fresh("lists", native), "") for name, native in (("native", "1"), ("portable", "0"))
    ]
    show("From memory, ranked lists, 10,000 x 10", rows, rows[1][1], "x steelyard native")


def imports() -> None:
    """A process that imports numpy, and one that imports steelyard."""
    rows = []
    for what in ("numpy", "steelyard", "steelyard.evaluation"):
        command = [sys.executable, "-c", f"import {what}"]
        rows.append(
            (f"import {what}", best(partial(subprocess.run, command, check=True, env=_environment("1")), 9), "")
        )
    show("Importing", rows, rows[0][1], "x import numpy")


def _in_fresh(kind: str, native: str) -> float:
    """The time of Steelyard in a new process, with the chosen path (native or portable)."""
    code = f"from benchmarks.evaluation import timed; print(timed({kind!r}))"
    environment = _environment(native)
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
    return float(done.stdout)


def timed(kind: str) -> float:
    """The best time of evaluate() on one kind of input."""
    import steelyard as sy

    qrels, run = _dicts(QUERIES, 100) if kind == "dicts" else _lists()
    return best(lambda: sy.evaluate(qrels, run, MEASURES).means, 40)


def _dicts(queries: int, depth: int) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    import numpy as np

    rng = np.random.default_rng(0)
    qrels, run = {}, {}
    for number in range(queries):
        docs = [f"d{d}" for d in rng.choice(1_000_000, depth, replace=False)]
        run[f"q{number}"] = dict(zip(docs, rng.random(depth).tolist(), strict=True))
        qrels[f"q{number}"] = {docs[int(rng.integers(depth))]: 1, f"d{int(rng.integers(1_000_000))}": 1}
    return qrels, run


def _lists() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    qrels, run = _dicts(10_000, 10)
    return {q: list(d) for q, d in qrels.items()}, {q: list(d) for q, d in run.items()}


def _loops(qrels: dict, run: dict) -> list[float]:
    """The five measures in plain Python."""
    totals = [0.0] * 5
    for query, relevant in qrels.items():
        ranked = run.get(query, [])
        found = [doc in relevant for doc in ranked]
        dcg = sum(1 / math.log2(rank + 2) for rank, hit in enumerate(found[:10]) if hit)
        ideal = sum(1 / math.log2(rank + 2) for rank in range(min(len(relevant), 10)))
        hits, precision = 0, 0.0
        for rank, hit in enumerate(found, 1):
            if hit:
                hits += 1
                precision += hits / rank
        first = next((rank for rank, hit in enumerate(found[:10], 1) if hit), 0)
        row = (
            dcg / ideal,
            precision / len(relevant),
            1 / first if first else 0,
            sum(found[:100]) / len(relevant),
            sum(found[:10]) / 10,
        )
        totals = [total + value for total, value in zip(totals, row, strict=True)]
    return [total / len(qrels) for total in totals]


def _pytrec_eval(qrels: dict, run: dict) -> None:
    import pytrec_eval

    names = {"map", "ndcg_cut.10", "recip_rank", "recall.100", "P.10"}
    found = pytrec_eval.RelevanceEvaluator(qrels, names).evaluate(run)
    for name in ("map", "ndcg_cut_10", "recip_rank", "recall_100", "P_10"):
        sum(values[name] for values in found.values())


def _ranx(qrels: dict, run: dict) -> float:
    import warnings

    warnings.simplefilter("ignore")
    from ranx import Qrels, Run, evaluate

    def whole() -> None:
        evaluate(Qrels(qrels), Run(run), RANX_MEASURES)

    whole()
    return best(whole, 3)


def _ranx_frame(qrels: Path, frame: Any) -> float:
    import steelyard as sy

    truth: dict[str, dict[str, int]] = {}
    for query, doc, grade in sy.Qrels.read(qrels).frame.select("query_id", "doc_id", "grade").iter_rows():
        truth.setdefault(query, {})[doc] = int(grade)
    from ranx import Qrels, Run, evaluate

    # ranx accepts ids as Python objects only, which are no longer the default of pandas.
    ids = frame.astype({"query_id": object, "doc_id": object})

    def whole() -> None:
        run = Run.from_df(ids, q_id_col="query_id", doc_id_col="doc_id", score_col="score")
        evaluate(Qrels(truth), run, RANX_MEASURES, make_comparable=True)

    return best(whole, 1)


if __name__ == "__main__":
    main()
