"""steelyard bench: run retrievers over a dataset, measure, compare, report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from steelyard.bench.result import BenchResult
from steelyard.bench.runner import bench as benched
from steelyard.cli.comparison_output import print_comparison
from steelyard.cli.options import RESULT_FOLDER, Fresh, TableFormat
from steelyard.cli.output import Format, print_tables, say, watched, write
from steelyard.cli.parsing import Argument
from steelyard.wording import counted


def bench(
    config: Annotated[
        Path,
        Argument("BENCH.YAML", "The bench: `steelyard init` writes one to start from."),
    ],
    output: Annotated[Path | None, RESULT_FOLDER] = None,
    fresh: Fresh = False,
    format: TableFormat = Format.table,
) -> None:
    """Run retrievers over a dataset, time, measure and compare them, and write a result folder.

    Example: steelyard init && steelyard bench bench.yaml

    A bench that was stopped goes on where it was; a changed setting reruns only what it touches.
    Runs that an earlier bench left in the folder, and answers older than its last result, are removed.
    """
    with watched() as watch:
        result = benched(config, output, fresh=fresh, watch=watch)
    print_result(result, format)


def print_result(result: BenchResult, format: Format) -> None:
    """The leaderboard, the differences, what each retriever cost, and where it was all written."""
    if format is Format.markdown:
        write(result.to_markdown(), None)
    else:
        print_comparison(result.comparison, format, None)
        if format is Format.table:
            beside = (result.chunk_table, result.cost_table)
            print_tables([table for table in beside if table is not None], below=True)
    for line in result.remarks():
        say(line)
    if result.removed:
        say(f"Removed, as this bench no longer names them: {_files(result)}.")
    say(f"The result is in {result.folder}; {result.folder / 'report.html'} is the page to look at.")


def _files(result: BenchResult) -> str:
    """The files that were removed: runs by name, answers by number."""
    runs = [str(path.relative_to(result.folder)) for path in result.removed if path.parent.name == "runs"]
    answers = len(result.removed) - len(runs)
    kept = [f"{counted(answers, 'file')} of old answers"] if answers else []
    return ", ".join([*runs, *kept])
