"""steelyard demo: the bundled benchmark."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated

from steelyard.bench.runner import bench as benched
from steelyard.cli.bench import print_result
from steelyard.cli.options import RESULT_FOLDER, Fresh, TableFormat
from steelyard.cli.output import Format
from steelyard.cli.progress import bench_watched


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
