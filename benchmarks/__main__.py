"""make bench: run every benchmark; each prints a table of times and ratios of one run."""

from __future__ import annotations

import subprocess
import sys

BENCHMARKS = {
    "evaluation": "reading and measuring runs: files and memory",
    "significance": "tests and intervals",
    "bm25": "indexing and searching",
    "passages": "BM25 from a file, saved and opened again, at one, two and four times a size",
    "evidence": "facts and spans in chunks",
    "report": "the page",
    "scale": "other formats, many runs, fusion, graphs and reports, with peers, at one, two and four times a size",
    "load": "time and memory at one, two and four times a size",
    "returned_texts": "benches whose retrievers return texts, and ids alone",
    "spark": "a run in Parquet on Spark, where there are pyspark and Java",
}


def main(wanted: list[str]) -> None:
    """Run the named benchmarks, or all of them."""
    unknown = [name for name in wanted if name not in BENCHMARKS]
    if unknown:
        sys.exit(f"unknown benchmark {', '.join(unknown)}; expected one of {', '.join(BENCHMARKS)}.")
    # Each in a process of its own: what one imports and starts, such as threads, must not change the next.
    failed = []
    for name in wanted or BENCHMARKS:
        print(f"\n## {name}: {BENCHMARKS[name]}\n", flush=True)
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode:
            failed.append(name)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main(sys.argv[1:])
