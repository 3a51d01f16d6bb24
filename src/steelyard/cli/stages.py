"""steelyard stages: where a pipeline loses relevant documents."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from steelyard.cli import options as args
from steelyard.cli.options import Argument, Option, RunFile, UsageError
from steelyard.cli.output import emit, emit_result, print_message, print_messages, print_tables
from steelyard.comparison.stages import Stages
from steelyard.comparison.stages import stages as split_by_stage
from steelyard.dialects import dialect
from steelyard.qrels import Qrels
from steelyard.report.documents import frame_table
from steelyard.report.tables import plain
from steelyard.run import Run
from steelyard.wording import shortened_name

LONGEST = 14  # Characters of a stage's name in the terminal, so that the table fits 80 columns.


SPAN_FILES = (".json", ".jsonl", ".ndjson")  # Suffixes of exports of spans.


def stages(
    qrels: Annotated[Path, Argument("QRELS", "The qrels, a dataset folder, or the result folder of a bench.")],
    runs: Annotated[
        list[RunFile] | None,
        Argument(
            "STAGE=RUN",
            "The list of every stage, in the order of the pipeline; or an export of OpenTelemetry spans. Of a result: "
            "a run (default: the best one with stages), or two that are compared.",
        ),
    ] = None,
    measure: Annotated[
        str | None, Option("A mean over queries; default nDCG@10, or the first measure of a result.", "MEASURE")
    ] = None,
    inputs: Annotated[
        list[str] | None,
        Option("The stages that a stage reads, if not the one before it, as in fuse=lexical,dense.", "STAGE=A,B"),
    ] = None,
    by: args.By = None,
    queries: args.QueryColumns = None,
    before: Annotated[
        list[RunFile] | None,
        Option("A stage of an earlier pipeline: show which stage explains the difference.", "STAGE=RUN"),
    ] = None,
    per_query: Annotated[bool, Option("Show what every query loses in every stage.")] = False,
    columns: args.Columns = None,
    alpha: args.Alpha = 0.05,
    rel: args.Rel = None,
    format: args.TableFormat = "table",
    output: args.Output = None,
) -> None:
    """Show where a pipeline loses relevant documents, and what each stage costs.

    Examples:

      steelyard stages qrels.trec retrieve=bm25.run rerank=reranked.run \\
          context=context.run -m nDCG@10

      steelyard stages bench-result

      steelyard stages qrels.trec spans.jsonl --set queries=queries.jsonl

      steelyard stages qrels.trec lexical=bm25.run dense=dense.run fuse=rrf.run \\
          rerank=reranked.run --inputs fuse=lexical,dense -o stages.html

      steelyard stages qrels.trec retrieve=new.run rerank=new2.run \\
          --before retrieve=old.run --before rerank=old2.run

    The ceiling of a stage is what a perfect order of its documents would reach.
    The losses of the stages and of the last list's order add up to the loss of the
    pipeline.
    """
    run_columns, qrels_columns = args.column_names(columns)
    path = args.input_path(qrels)
    how: dict[str, Any] = {"by": by, "alpha": alpha, "rel": rel}
    if path.name == "result.json" or (path / "result.json").is_file():
        named: list[str | None] = [run.text for run in runs or []] or [None]
        if inputs or before or len(named) > 2:
            raise UsageError(f"{path} is the result of a bench; expected at most two of its runs, without stages.")
        result, *earlier = [split_by_stage(path, run, measure, queries=queries, **how) for run in named]
    else:
        from steelyard.io.datasets import dataset_named, queries_beside

        judged = Qrels.read(path, **qrels_columns)
        if by is not None and queries is None:
            queries = queries_beside(path)

        def split(files: list[RunFile]) -> Stages:
            if len(files) == 1 and files[0].name is None and files[0].path.suffix in SPAN_FILES:
                texts = queries or (queries_beside(path) if path.is_dir() else None)
                return split_by_stage(judged, files[0].path, measure, queries=texts, **how)
            if unnamed := [run.text for run in files if run.name is None]:
                raise UsageError(f"{unnamed[0]!r} has no stage; expected STAGE=RUN, as in retrieve={unnamed[0]}.")
            read = [args.read_run(run.path, run_columns, len(files)) if run_columns else run.path for run in files]
            lists = dict(zip(args.run_names([], files), read, strict=True))
            if measure is not None and path.is_dir() and dialect("steelyard").reads_texts([measure]):
                last = next(reversed(lists))
                lists[last] = Run(Run.of(lists[last]), texts=dict(dataset_named(str(path)).corpus))
            return split_by_stage(judged, lists, measure, inputs=_inputs(inputs), queries=queries, **how)

        if not runs:
            raise UsageError("no stage is given; expected STAGE=RUN, as in retrieve=bm25.run rerank=reranked.run.")
        result, earlier = split(runs), [split(before)] if before else []
    if earlier:
        changes = result.difference(earlier[0])
        emit(frame_table(changes), changes.to_dicts, format, output)
        return
    if per_query:
        emit(frame_table(result.per_query), result.per_query.to_dicts, format, output)
        return

    def show() -> None:
        document = result.document()
        table, *others = document.tables
        print_message(document.verdict, "bold")
        names = [[shortened_name(str(name), LONGEST), *row] for name, *row in table.rows]
        print(plain(replace(table, rows=names)), flush=True)
        if others:
            print_tables(others, below=True)
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
