"""steelyard bench: run retrievers over a dataset, measure, compare, report."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated

from steelyard.bench.config import write_starter
from steelyard.bench.result import BenchResult
from steelyard.bench.runner import bench as benched
from steelyard.cli.arguments import RESULT_FOLDER, Argument, Fresh, Option, TableFormat
from steelyard.cli.output import Format, bench_watched, print_comparison, print_tables, say, write
from steelyard.cli.report import page_line

WRONG_INPUT = 2


def bench(
    config: Annotated[
        Path,
        Argument("BENCH.YAML", "The bench: `steelyard init` writes one to start from."),
    ],
    output: Annotated[Path | None, RESULT_FOLDER] = None,
    fresh: Fresh = False,
    strict: Annotated[
        bool, Option("Run nothing where the answer key has errors, such as documents that are not there.")
    ] = False,
    format: TableFormat = Format.table,
) -> int:
    """Run retrievers over a dataset, time, measure and compare them, and write a result folder.

    Example: steelyard init && steelyard bench bench.yaml

    A bench that was stopped goes on where it was; a changed setting reruns only what it touches.
    Runs that an earlier bench left in the folder, and answers older than its last result, are removed.
    Errors of the answer key are told, as `steelyard validate` has them. A retriever that fails on some
    queries is marked; one that fails on all of them makes the exit code 2, after everything was written.
    """
    with bench_watched() as watch:
        result = benched(config, output, fresh=fresh, strict=strict, watch=watch)
    return print_result(result, format)


def print_result(result: BenchResult, format: Format) -> int:
    """The leaderboard, the differences, what each retriever cost, where it was all written; the exit code."""
    if format is Format.markdown:
        write(result.to_markdown(), None)
    else:
        print_comparison(result.comparison, format, None)
        if format is Format.table:
            beside = (result.chunk_table, result.cost_table)
            print_tables([table for table in beside if table is not None], below=True)
    for line in result.remarks():
        say(line)
    say(f"The result is in {result.folder}; {page_line(result.folder / 'report.html', result.folder)}")
    return _failures(result)


def _failures(result: BenchResult) -> int:
    """Say last which retrievers failed; the exit code: 2 where one failed on every query."""
    partly = [f"{row.run} on {row.failed} queries" for row in result.rows if row.errors and not row.broken]
    if partly:
        say(f"FAILED: {'; '.join(partly)}. They got no answer; the policy `missing` says how they count.")
    if not result.broken:
        return 0
    say(
        f"error: {', '.join(result.broken)} failed on every query, so nothing was measured of "
        f"{'it' if len(result.broken) == 1 else 'them'}; the errors are above and in the result."
    )
    return WRONG_INPUT


def demo(
    output: Annotated[Path, RESULT_FOLDER] = Path("steelyard-demo"),
    fresh: Fresh = False,
    format: TableFormat = Format.table,
) -> int:
    """Run the bundled benchmark: a leaderboard here, a report in ./steelyard-demo.

    Example: steelyard demo

    115 questions about a small railway, 267 passages of its handbook, no network needed.
    """
    with as_file(files("steelyard.demo") / "bench.yaml") as config, bench_watched() as watch:
        result = benched(config, output, fresh=fresh, watch=watch)
    return print_result(result, format)


def init(
    folder: Annotated[Path, Argument("DIR", "The folder to write bench.yaml into.")] = Path(),
) -> None:
    """Write a bench.yaml that runs as it is and explains itself.

    Example: steelyard init my-bench && steelyard bench my-bench/bench.yaml
    """
    say(f"{write_starter(folder)} is written; run it with: steelyard bench {folder / 'bench.yaml'}")
