"""steelyard reconcile: why two tools give different numbers, and which definition gives a number."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from steelyard.cli import options as args
from steelyard.cli.options import Argument, Option, UsageError
from steelyard.cli.output import emit, format_for, is_page, progress_bar, write_prose
from steelyard.dialects.identify import Identification, identify
from steelyard.dialects.reconcile import Reconciliation
from steelyard.dialects.reconcile import reconcile as reconcile_dialects
from steelyard.qrels import Qrels
from steelyard.report.documents import frame_table
from steelyard.run import Run


def reconcile(
    qrels: Annotated[Path, Argument("QRELS", "The qrels.")],
    run: Annotated[Path, Argument("RUN", "The run.")],
    measure: Annotated[list[str] | None, Option("A metric, as in MAP@5. Repeat for more.", "METRIC")] = None,
    dialects: Annotated[list[str] | None, Option("The dialects to compare.", "A,B,...", commas=True)] = None,
    value: Annotated[
        str | None,
        Option("A number that another tool printed, with all its digits: find the definition that gives it.", "NUMBER"),
    ] = None,
    movers: args.Movers = 5,
    columns: args.Columns = None,
    format: args.TableFormat = "table",
    output: args.Output = None,
) -> None:
    """Show the value of a metric in each dialect, and why they differ.

    Examples:

      steelyard reconcile qrels.trec bm25.run -m MAP@5 \\
          --dialects trec_eval-9,multihop-rag

      steelyard reconcile qrels.trec bm25.run --value 0.4123

    With --value: the measures, cutoffs and policies of the dialects that give this
    number, and the clause that decides it. -m and --dialects narrow the search.
    """
    chosen = [name for name in dialects or [] if name]
    result: Identification | Reconciliation
    if value is None and not (measure and chosen):
        raise UsageError(
            "name a metric and the dialects to compare, as in -m MAP@5 --dialects trec_eval-9,multihop-rag, "
            "or a number to search for, as in --value 0.4123."
        )
    names, qrels_names = args.column_names(columns)
    judged = Qrels.read(args.input_path(qrels), **qrels_names)
    source = Run.read(run, **names) if names else run
    if value is not None:
        with progress_bar() as progress:
            result = identify(judged, source, value, measure, chosen or None, progress=progress)
    else:
        result = reconcile_dialects(judged, source, measure or [], chosen, movers)
    if format_for(format, output) == "table" and not is_page(output):
        write_prose(str(result), output)
        return
    emit(frame_table(result.frame), result.to_dict(), format, output)
