"""Printing a comparison: for compare, bench and demo."""

from __future__ import annotations

from pathlib import Path

from steelyard.cli.output import Format, emit, format_for, say, write
from steelyard.comparison.movers import Mover
from steelyard.comparison.result import Comparison
from steelyard.report.comparison_rows import leaderboard_table, pairs_table, remarks, slice_table


def print_comparison(result: Comparison, format: Format, output: Path | None, movers: int = 0) -> None:
    """Print a comparison in the format asked for: tables to stdout, what to know about them to stderr."""
    format = format_for(format, output)
    if format is Format.json:
        write(result.to_json(), output)
    elif format is Format.markdown:
        write(result.to_markdown(), output)
    elif format is Format.latex:
        write(result.to_latex(), output)
    elif format is Format.csv:
        emit(leaderboard_table(result), None, format, output)
    elif output is not None:
        write(repr(result), output)
    else:
        say(result.verdict)
        emit(leaderboard_table(result), None, format, None)
        if result.tested:
            print()
            emit(pairs_table(result), None, format, None)
        sliced = slice_table(result)
        if sliced is not None:
            print()
            emit(sliced, None, format, None)
        for line in remarks(result):
            say(line)
        if movers:
            _print_movers(result, movers)


def _print_movers(result: Comparison, most: int) -> None:
    baseline = result.plan.baseline or result.standings[-1].run
    for run in result.runs:
        if run != baseline:
            print(f"\n{run} against {baseline}: the queries that moved most")
            for mover in result.movers(run, baseline, most=most):
                print(_mover_text(mover))


def _mover_text(mover: Mover) -> str:
    moves = [
        f"{move.doc_id} (grade {move.grade:g}) {move.before or 'absent'} -> {move.after or 'absent'}"
        for move in mover.documents[:4]
    ]
    return f"  {mover.query_id}: {mover.before:.4f} -> {mover.after:.4f}; {'; '.join(moves)}"
