"""Printing a comparison: for compare, bench and demo."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from steelyard.cli.output import Format, emit, format_for, say, write
from steelyard.comparison.movers import Mover
from steelyard.comparison.result import Comparison
from steelyard.report.comparison_rows import leaderboard_table, pairs_table, remarks, slice_table
from steelyard.wording import counted


def print_comparison(
    result: Comparison,
    format: Format,
    output: Path | None,
    movers: int = 0,
    texts: Mapping[str, object] | None = None,
) -> None:
    """Print a comparison in the format asked for: tables to stdout, what to know about them to stderr."""
    format = format_for(format, output)
    if format is Format.json:
        write(result.to_json(), output)
    elif format is Format.markdown:
        told = f"\n\n## Queries that moved\n\n{movers_text(result, movers, texts)}" if movers else ""
        write(result.to_markdown() + told, output)
    elif format is Format.latex:
        write(result.to_latex(), output)
        say(result.verdict)
    elif format is Format.csv:
        emit(leaderboard_table(result), None, format, output)
        say(result.verdict)
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
            print(f"\n{movers_text(result, movers, texts)}")


def movers_text(result: Comparison, most: int, texts: Mapping[str, object] | None) -> str:
    """The queries that lost most and won most against the baseline (or the last run), for every other run."""
    baseline = result.plan.baseline or result.standings[-1].run
    lines: list[str] = []
    for run in (name for name in result.runs if name != baseline):
        moved = result.movers(run, baseline, most=len(result.boards[0].queries))
        better = result.boards[0].columns[0].better
        lost = [mover for mover in moved if (mover.difference < 0) == (better == "more")]
        won = [mover for mover in moved if (mover.difference < 0) != (better == "more")]
        for what, found in (("lost", lost), ("won", won)):
            lines.append(
                f"{run} against {baseline}: {counted(len(found), 'query', 'queries')} {what} on "
                f"{result.keys[0]}"
            )
            lines += [_mover_text(mover, texts or {}) for mover in found[:most]]
    return "\n".join(lines)


def _mover_text(mover: Mover, texts: Mapping[str, object]) -> str:
    moves = [
        f"{move.doc_id} (grade {move.grade:g}) {move.before or 'absent'} -> {move.after or 'absent'}"
        for move in mover.documents[:4]
    ]
    asked = f" {texts[mover.query_id]!s:.80}" if mover.query_id in texts else ""
    return f"- {mover.query_id}{asked}: {mover.before:.4f} -> {mover.after:.4f}; {'; '.join(moves)}"
