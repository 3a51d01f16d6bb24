"""The report page of a large result: how long it takes to write, its size, and when it can be used.

The task: 10 runs x 10,000 queries, 7 measures and a composite, 100 documents a list, 50,000 documents
with texts. The page is opened in headless Chromium, offline; `usable` is when the scripts have set up
the table, the filters and the sliders, and `drawn` when the first charts stand. Then one sort, one
filter and the opening of a query are timed.

Run with `python -m benchmarks.report`; it needs the extra `report`, Playwright and a Chromium.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from steelyard.comparison.compare import compare
from steelyard.qrels import Qrels
from steelyard.report.page.page import write_page
from steelyard.report.page.subject import Subject
from steelyard.run import Run

MEASURES = ["nDCG@10", "AP", "RR@10", "R@100", "P@10", "Hit@1", "DR@20"]
WORDS = 5_000
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def subject(runs: int, queries: int, depth: int, documents: int) -> Subject:
    """A synthetic result: runs of different quality on the same queries."""
    rng = np.random.default_rng(0)
    words = np.array([f"{'bcdfgklmnprst'[n % 13]}{'aeiou'[n % 5]}{n:x}" for n in range(WORDS)])
    texts = {f"d{n}": ("", " ".join(words[rng.integers(0, WORDS, 90)])) for n in range(documents)}
    asked = {f"q{n}": " ".join(words[rng.integers(0, WORDS, 9)]) for n in range(queries)}
    kinds = {f"q{n}": "abcd"[n % 4] for n in range(queries)}
    gold = rng.integers(0, documents, (queries, 3))
    judged = pl.DataFrame(
        {
            "query_id": np.repeat([f"q{n}" for n in range(queries)], 3),
            "doc_id": [f"d{n}" for n in gold.ravel().tolist()],
            "grade": np.tile([2, 1, -1], queries),
        }
    ).unique(["query_id", "doc_id"], keep="first", maintain_order=True)
    held = {f"run-{n}": _run(rng, f"run-{n}", gold, depth, documents, 2.0 + 3 * n) for n in range(runs)}
    comparison = compare(Qrels(judged), held, MEASURES, baseline="run-0", composite="default")
    costs = [{"run": name, "mean_seconds": 0.001 * (n + 1)} for n, name in enumerate(held)]
    return Subject(comparison, "made up", asked, {"kind": kinds}, texts, costs)


def _run(rng: np.random.Generator, name: str, gold: Any, depth: int, documents: int, spread: float) -> Run:
    """Random lists with the relevant documents at random ranks, near the top if `spread` is small."""
    size = len(gold)
    lists = np.sort(rng.integers(0, documents - depth, (size, depth)), axis=1) + np.arange(depth)
    lists = rng.permuted(lists, axis=1)
    for column in range(gold.shape[1]):
        rank = rng.exponential(spread, size).astype(int)
        there = rank < depth
        lists[np.flatnonzero(there), rank[there]] = gold[there, column]
    names = np.array([f"d{n}" for n in range(documents)])
    frame = pl.DataFrame(
        {
            "query_id": np.repeat([f"q{n}" for n in range(size)], depth),
            "doc_id": names[lists.ravel()],
            "score": np.tile(np.arange(depth, 0, -1.0), size),
        }
    )
    return Run(frame, name=name)


def opened(page: Path, times: int) -> dict[str, float]:
    """Seconds of each step, the lowest of several times."""
    from playwright.sync_api import sync_playwright

    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    least: dict[str, float] = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        for _ in range(times):
            for what, seconds in _once(browser, page).items():
                least[what] = min(seconds, least.get(what, float("inf")))
        browser.close()
    return least


def _once(browser: Any, page: Path) -> dict[str, float]:
    context = browser.new_context(offline=True)
    tab = context.new_page()
    taken: dict[str, float] = {}

    def timed(what: str, work: Any) -> None:
        start = time.perf_counter()
        work()
        taken[what] = time.perf_counter() - start

    def to_usable() -> None:
        tab.goto(page.as_uri(), wait_until="commit")
        tab.wait_for_selector("html[data-ready=yes]", state="attached")

    timed("usable", to_usable)
    row = "#queries-table tbody tr"
    timed("sorted by a run", lambda: (tab.click("th[data-sort='run:3'] button"), tab.wait_for_selector(row)))
    timed("filtered", lambda: (tab.click("button[data-filter=one]"), tab.wait_for_selector(row)))
    timed(
        "query opened",
        lambda: (tab.click("button[data-query]"), tab.wait_for_selector("dialog[open] .stage, dialog[open] .absent")),
    )
    tab.keyboard.press("Escape")
    timed(
        "chart drawn",
        lambda: (
            tab.evaluate("document.getElementById('charts').scrollIntoView()"),
            tab.wait_for_selector("#chart-differences svg"),
        ),
    )
    context.close()
    return taken


def main() -> None:
    """Write the page, open it, and print the times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--depth", type=int, default=100)
    parser.add_argument("--documents", type=int, default=50_000)
    parser.add_argument("--times", type=int, default=3)
    given, _ = parser.parse_known_args()
    start = time.perf_counter()
    made = subject(given.runs, given.queries, given.depth, given.documents)
    print(f"{given.runs} runs x {given.queries:,} queries x {given.depth} documents")
    print(f"  compared         {time.perf_counter() - start:8.2f} s (including the synthetic data)")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        start = time.perf_counter()
        write_page(made, page)
        print(f"  page written     {time.perf_counter() - start:8.2f} s")
        print(f"  size             {page.stat().st_size / 1e6:8.2f} MB")
        for what, seconds in opened(page, given.times).items():
            print(f"  {what:<16} {seconds:8.2f} s")


if __name__ == "__main__":
    main()
