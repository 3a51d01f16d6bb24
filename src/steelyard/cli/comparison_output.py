"""Printing a comparison: for compare, bench and demo."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from steelyard.cli.output import Format, format_for, print_tables, say, write
from steelyard.comparison.result import Comparison
from steelyard.report.comparison_rows import is_long, remarks
from steelyard.report.comparison_text import comparison_tables
from steelyard.report.movers_rows import movers_lines


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
        write(result.to_json(movers), output)
    elif format is Format.markdown:
        write(result.to_markdown(movers, texts), output)
    elif format is Format.latex:
        write(result.to_latex(movers, texts), output)
        say(result.verdict)
    elif format is Format.csv:
        write(result.to_csv(), output)
        _say_all(result)
    elif output is not None:
        write(result.to_text(movers, texts), output)
    else:
        _print_tables(result, movers, texts)


def _print_tables(result: Comparison, movers: int, texts: Mapping[str, object] | None) -> None:
    say(result.verdict)
    print_tables(comparison_tables(result))
    for line in remarks(result, short=is_long(result)):
        say(line)
    if movers:
        print("\n" + "\n".join(movers_lines(result, movers, texts)))


def _say_all(result: Comparison) -> None:
    """What is to be known of a comparison whose table cannot say it."""
    for line in (result.verdict, *remarks(result, tables=False)):
        say(line)
    if result.plan.baseline is None and result.tested:
        say(
            "The tests of every two runs are in the JSON; with --baseline NAME, the differences from it are columns here."
        )
