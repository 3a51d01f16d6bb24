"""steelyard check: is the data any good?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from steelyard.benchmark.folder import read_record
from steelyard.cli import options as args
from steelyard.cli.options import Argument, RunFile
from steelyard.cli.output import emit_result, print_message, print_tables, write_prose
from steelyard.errors import InputError
from steelyard.quality.check import Check, effect_text
from steelyard.quality.check import check as check_data
from steelyard.wording import shortened_name


def check(
    dataset: Annotated[
        str, Argument("DATASET", "As in bench.yaml: a folder, or '{queries: FILE, qrels: FILE}'. Or a bench's result.")
    ],
    runs: Annotated[list[RunFile] | None, Argument("RUN", "Runs: FILE or NAME=FILE.")] = None,
    measure: args.Measures = None,
    strict: args.Strict = False,
    columns: args.Columns = None,
    format: args.TableFormat = "table",
    output: args.Output = None,
) -> int:
    """Check the meaning of data: qrels, corpus, questions and runs.

    Examples:

      steelyard check my-dataset bm25.run dense.run

      steelyard check '{queries: questions.csv, qrels: qrels.txt}' *.run --strict

    Every finding has a count, examples, and its effect on the leaderboard: all runs
    evaluated again with the problem fixed, by the first measure. `validate` checks
    the form of files instead.
    """
    if (Path(dataset) / "result.json").is_file():
        stored = read_record(Path(dataset)).get("check")
        if stored is None or runs or measure:
            fault = "the bench made no check" if stored is None else "its check has the runs and measure of the bench"
            raise InputError(f"this is the result of a bench, and {fault}. Give its dataset instead.", dataset)
        result = Check.from_dict(stored)
    else:
        result = check_data(dataset, args.read_runs(runs or [], args.column_names(columns)[0]), measure or None)

    def show() -> None:
        print_message(result.verdict, "bold")
        lines = []
        for finding in result.findings:
            shown = "; ".join(shortened_name(example, 60) for example in finding.examples[:2])
            lines.append(f"{finding.severity}: {finding.code} ({finding.count:,})  {effect_text(finding)}".rstrip())
            lines += [f"  {finding.text}", *([f"  {shown}"] if shown else [])]
        if lines:
            write_prose("\n".join([*lines, ""]), None)
        if result.ceilings:
            print_tables(result.document().tables[-1:])

    emit_result(result, format, output, show)
    return 1 if strict and result.problems else 0
