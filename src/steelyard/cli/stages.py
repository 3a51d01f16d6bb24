"""steelyard stages: where a pipeline loses relevant documents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from steelyard.cli import arguments as args
from steelyard.cli.arguments import Argument, Option, RunFile, UsageError
from steelyard.cli.output import Format, emit, emit_result, print_message, print_messages, print_tables
from steelyard.comparison.stages import Stages
from steelyard.comparison.stages import stages as split_by_stage
from steelyard.report.documents import frame_table


def stages(
    qrels: Annotated[Path, Argument("QRELS", "The qrels, or a dataset folder.")],
    runs: Annotated[list[RunFile], Argument("STAGE=RUN", "The list of every stage, in the order of the pipeline.")],
    measure: Annotated[str, Option("A mean over queries, as in nDCG@10.", "MEASURE")] = "nDCG@10",
    inputs: Annotated[
        list[str] | None,
        Option("The stages that a stage reads, if not the one before it, as in fuse=lexical,dense.", "STAGE=A,B"),
    ] = None,
    by: Annotated[
        str | None, Option("Slice by a column of --queries (or of queries.jsonl next to QRELS).", "COLUMN")
    ] = None,
    queries: Annotated[Path | None, Option("Columns of the queries: JSONL, CSV, TSV or Parquet.", "FILE")] = None,
    before: Annotated[
        list[RunFile] | None,
        Option("A stage of an earlier pipeline: show which stage explains the difference.", "STAGE=RUN"),
    ] = None,
    per_query: Annotated[bool, Option("Show what every query loses in every stage.")] = False,
    columns: args.RunColumns = None,
    qrels_columns: args.QrelsColumns = None,
    qrels_format: args.QrelsFormat = None,
    alpha: args.Alpha = 0.05,
    rel: args.Rel = None,
    format: args.TableFormat = Format.table,
    output: args.Output = None,
) -> None:
    """Show where a pipeline loses relevant documents, and what each stage costs.

    Examples:

      steelyard stages qrels.trec retrieve=bm25.run rerank=reranked.run \\
          context=context.run -m nDCG@10

      steelyard stages qrels.trec lexical=bm25.run dense=dense.run fuse=rrf.run \\
          rerank=reranked.run --inputs fuse=lexical,dense -o stages.html

      steelyard stages qrels.trec retrieve=new.run rerank=new2.run \\
          --before retrieve=old.run --before rerank=old2.run

    The ceiling of a stage is what a perfect order of its documents would reach.
    The losses of the stages and of the last list's order add up to the loss of the
    pipeline.
    """
    run_columns = args.column_names(columns, "--columns")
    path = args.input_path(qrels)
    if by is not None and queries is None:
        from steelyard.io.datasets import queries_beside

        queries = queries_beside(path)
    judged = args.read_qrels(path, qrels_columns, qrels_format)

    def split(files: list[RunFile]) -> Stages:
        if unnamed := [run.text for run in files if run.name is None]:
            raise UsageError(f"{unnamed[0]!r} has no stage; expected STAGE=RUN, as in retrieve={unnamed[0]}.")
        read = [args.read_run(run.path, run_columns, len(files)) if run_columns else run.path for run in files]
        named = dict(zip(args.run_names([], files), read, strict=True))
        how: dict[str, Any] = {"inputs": _inputs(inputs), "by": by, "queries": queries, "alpha": alpha, "rel": rel}
        return split_by_stage(judged, named, measure, **how)

    result = split(runs)
    if before:
        changes = result.difference(split(before))
        emit(frame_table(changes), changes.to_dicts, format, output)
        return
    if per_query:
        emit(frame_table(result.per_query), result.per_query.to_dicts, format, output)
        return

    def show() -> None:
        document = result.document()
        print_message(document.verdict, "bold")
        print_tables(document.tables)
        print_messages(document.notes)

    emit_result(result, format, output, show)


def _inputs(texts: list[str] | None) -> dict[str, Any]:
    """The stages that each stage reads."""
    read: dict[str, Any] = {}
    for text in texts or []:
        name, equals, others = text.partition("=")
        if not (name and equals):
            raise UsageError(f"--inputs is {text!r}; expected a stage and what it reads, as in fuse=lexical,dense.")
        read[name] = [other.strip() for other in others.split(",") if other.strip()]
    return read
