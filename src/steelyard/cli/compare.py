"""steelyard compare: which run is best, by how much, and whether the difference is significant."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from steelyard.cli import arguments as args
from steelyard.cli.arguments import Argument, Option, RunFile, UsageError
from steelyard.cli.output import (
    Format,
    emit_result,
    format_for,
    is_page,
    print_message,
    print_messages,
    print_summary,
    print_tables,
    width,
    with_progress,
    write,
)
from steelyard.cli.report import page_line
from steelyard.comparison.compare import compare as compare_runs
from steelyard.comparison.compare import compare_scores
from steelyard.comparison.lists import ListComparison
from steelyard.comparison.result import Comparison
from steelyard.comparison.scores import TableOptions
from steelyard.comparison.slices import column_values
from steelyard.dialects import dialect as dialect_of
from steelyard.errors import InputError
from steelyard.io.datasets import dataset_named, queries_beside
from steelyard.notes import Note, sentence
from steelyard.report.comparison import comparison_tables
from steelyard.report.rows import is_long, movers_lines, remarks
from steelyard.report.summary import summary
from steelyard.report.tables import Table
from steelyard.run import Run
from steelyard.safe_text import cell_text


def compare(
    qrels: Annotated[
        Path | None, Argument("QRELS", "The qrels, or a dataset folder (not with --scores or --no-qrels).")
    ] = None,
    runs: Annotated[list[RunFile] | None, Argument("RUN", "Two or more runs: FILE, NAME=FILE, or - (stdin).")] = None,
    measure: args.Measures = None,
    baseline: Annotated[str | None, Option("Compare every run with this one; default: all pairs.", "NAME")] = None,
    test: Annotated[str, Option("t, wilcoxon, sign, permutation, bootstrap, tukey or max-t.", "TEST")] = "t",
    correction: args.Correction = "holm",
    composite: Annotated[
        str | None, Option("Weights of a composite score: a YAML or JSON file, or default.", "FILE|default")
    ] = None,
    at: Annotated[list[int] | None, Option("One row per run at this cutoff. Repeat for more.", "K")] = None,
    by: Annotated[
        str | None,
        Option(
            "Slice by a column of --queries (or of queries.jsonl next to QRELS; with --scores, of that file), or by "
            "complexity.",
            "COLUMN",
        ),
    ] = None,
    queries: Annotated[Path | None, Option("Columns of the queries: JSONL, CSV, TSV or Parquet.", "FILE")] = None,
    no_qrels: Annotated[
        bool, Option("Compare the lists of runs without qrels: overlap, RBO, rank correlation.")
    ] = False,
    scores: Annotated[Path | None, Option("Compare a table of values per query instead of runs.", "FILE")] = None,
    run_column: Annotated[str | None, Option("--scores: the column of run names.", "COLUMN")] = None,
    query_column: Annotated[str | None, Option("--scores: the column of query ids.", "COLUMN")] = None,
    measure_column: Annotated[str | None, Option("--scores, long form: the column of measures.", "COLUMN")] = None,
    value_column: Annotated[str | None, Option("--scores, long form: the column of values.", "COLUMN")] = None,
    repeat_column: Annotated[str | None, Option("--scores: the column of repetitions, as of a seed.", "COLUMN")] = None,
    repeats: Annotated[
        str,
        Option(
            "--scores: `average` the repetitions of each run, or pair the runs by query and repetition (`blocks`) "
            "first. Queries are tested, not repetitions.",
            "HOW",
        ),
    ] = "average",
    movers: Annotated[
        int,
        Option(
            "Show this many queries with the largest losses and gains from the baseline (default: from the last "
            "run). Not as CSV.",
            "N",
        ),
    ] = 0,
    report: Annotated[Path | None, Option("Also write the report page here.", "FILE.html")] = None,
    dataset: Annotated[
        str | None,
        Option(
            "Dataset with the texts for the page and for measures that read texts (a budget, near-duplicates), as "
            "in bench.yaml: a folder, or '{path: DIR, qrels: FILE}'.",
            "DIR",
        ),
    ] = None,
    predicted: args.Predicted = None,
    pool: args.SampledPool = None,
    these_queries: args.TheseQueries = False,
    columns: args.RunColumns = None,
    qrels_columns: args.QrelsColumns = None,
    qrels_format: args.QrelsFormat = None,
    dialect: args.DialectName = "steelyard",
    alpha: args.Alpha = 0.05,
    equivalence: Annotated[
        float | None,
        Option(
            "Report which runs are equivalent: the 95% interval of their difference is within this margin.", "MARGIN"
        ),
    ] = None,
    permutations: args.Permutations = None,
    seed: args.Seed = 0,
    show_all: args.ShowAll = False,
    show_notes: args.ShowNotes = False,
    format: args.TableFormat = Format.table,
    output: args.Output = None,
    **options: Any,
) -> None:
    """Compare runs: a leaderboard, the differences, and whether they are significant.

    Examples:

      steelyard compare qrels.trec bm25.run dense.run -m nDCG@10 --baseline bm25

      steelyard compare qrels.tsv a.run b.run --at 1 --at 3 --format markdown \\
          --dialect leaderboard --composite default

      steelyard compare --scores per-query.csv -m MRR \\
          --run-column method --query-column query_id

      steelyard compare --no-qrels bm25.run dense.run --at 10

    The terminal shows the verdict, a leaderboard and warnings; --all and --notes
    show the rest. Files and other formats have all of it: differences, intervals,
    corrected p-values and verdicts. CSV has one row per run, with the differences
    from --baseline and the slices of --by as columns. Verdicts follow the p-values;
    a note lists the pairs whose interval disagrees.
    """
    if movers < 0:
        raise InputError(f"--movers is {movers}; expected 0 or more.")
    if movers and format_for(format, output) is Format.csv:
        raise InputError(
            "--movers cannot be written as CSV, which has one row per run; use table, markdown, latex or json."
        )
    labels = args.read_predicted(predicted, pool, these_queries)
    given = [*([] if qrels is None else [RunFile(str(qrels))]), *(runs or [])]
    qrels = None if qrels is None else args.input_path(qrels)
    if no_qrels:
        chosen = {name: value for name, value in options.items() if value is not None}
        if scores is not None or report is not None:
            raise UsageError("--no-qrels compares the lists of runs; leave out --scores and --report.")
        read = _read_runs(given, args.column_names(columns, "--columns"), None)
        lists = compare_runs(
            None,
            read,
            measure,
            at=at,
            baseline=baseline,
            composite=composite,
            by=by,
            queries=queries,
            predicted=labels.get("predicted"),
            equivalence=equivalence,
            **chosen,
        )
        print_lists(lists, format, output)
        return
    shared: dict[str, Any] = {
        "baseline": baseline,
        "test": test,
        "correction": correction,
        "composite": composite,
        "by": by,
        "queries": queries,
        "alpha": alpha,
        "permutations": permutations,
        "seed": seed,
        "equivalence": equivalence,
    }
    known = None if dataset is None else dataset_named(dataset, judged=False)
    if scores is not None:
        if given:
            raise InputError("give qrels and runs, or --scores, not both.")
        if labels:
            raise InputError("--predicted needs qrels and runs; it cannot be used with --scores.")
        if columns or qrels_columns or qrels_format:
            raise InputError(
                "--columns, --qrels-columns and --qrels-format are for runs and qrels; with --scores use --run-column, "
                "--query-column and the like."
            )
        if repeats not in ("average", "blocks"):
            raise InputError(f"--repeats is {repeats!r}; expected average or blocks.")
        how = cast(Literal["average", "blocks"], repeats)
        table = TableOptions(run_column, query_column, measure_column, value_column, repeat_column, how)
        result = compare_scores(scores, measure, options=table, missing=options["missing"] or "zero", **shared)
    else:
        if qrels is None or not runs:
            raise InputError(
                "nothing to compare: give QRELS and at least one RUN, or --scores FILE, or --no-qrels and the runs. "
                "`steelyard compare --help` shows examples."
            )
        if by is not None and queries is None:
            shared["queries"] = queries_beside(qrels)
        reads_texts = known is not None and dialect_of(dialect).reads_texts(measure or [])
        corpus = dict(known.corpus) if known is not None and reads_texts else None
        judged = args.read_qrels(qrels, qrels_columns, qrels_format)
        read = _read_runs(runs, args.column_names(columns, "--columns"), corpus)
        default = None if dialect != "steelyard" or at else ["nDCG@10"]
        result = compare_runs(judged, read, measure or default, at=at, dialect=dialect, **labels, **options, **shared)
    texts = None if queries is None or not movers else _query_texts(queries)
    if is_page(output):
        report = output
    else:
        print_comparison(result, format, output, movers, texts, show_all=show_all, show_notes=show_notes)
    if report is not None:
        from steelyard.report.page import write_page
        from steelyard.report.page.subject import comparison_subject

        command = shlex.join(["steelyard", *sys.argv[1:]])
        write_page(comparison_subject(result, known, command), report)
    if report is not None or _is_short(format, output):
        where = "" if report is None else page_line(report, None)
        print_message(last_line(where, show_all, show_notes) if _is_short(format, output) else where)


def _is_short(format: Format, output: Path | None) -> bool:
    """Whether a comparison is printed in short."""
    return format_for(format, output) is Format.table and output is None


def last_line(where: str, show_all: bool, show_notes: bool) -> str:
    """Where the report is, and the options that show more."""
    more = [name for name, given in (("--all", show_all), ("--notes", show_notes)) if not given]
    return "    ".join([*([where] if where else []), *([f"More: {', '.join(more)}"] if more else [])])


def print_comparison(
    result: Comparison,
    format: Format,
    output: Path | None,
    movers: int = 0,
    texts: Mapping[str, object] | None = None,
    *,
    notes: Sequence[Note] = (),
    tables: Sequence[Table] = (),
    show_all: bool = False,
    show_notes: bool = False,
) -> None:
    """Print a comparison: tables to stdout or a file, the verdict and the notes to stderr.

    On a screen in short: `show_all` prints every table, also the given ones, `show_notes` every note.
    """

    def show() -> None:
        short = summary(result, width(), notes)
        if show_all:
            print_message(result.verdict)
            print_tables([*comparison_tables(result), *tables])
            print_message("")
        else:
            print_summary(short)
        if show_notes:
            lines = [*remarks(result, short=show_all and is_long(result)), *map(sentence, notes)]
            print_messages([f"- {line}" for line in lines])
        else:
            for line in short.warnings:
                print_message(line, "yellow")
            print_messages(short.next_steps)
        if movers:
            write("\n" + "\n".join(map(cell_text, movers_lines(result, movers, texts))), None)

    emit_result(
        result,
        format,
        output,
        show,
        table=partial(result.to_text, movers, texts),
        markdown=partial(result.to_markdown, movers, texts),
        latex=partial(result.to_latex, movers, texts),
        json=partial(result.to_json, movers),
    )
    kind = format_for(format, output)
    if kind is Format.latex:
        print_message(result.verdict)
    elif kind is Format.csv:
        print_messages([result.verdict, *remarks(result, tables=False)])
        if result.plan.baseline is None and result.tested_pairs:
            print_message(
                "The tests of all pairs are in the JSON; with --baseline NAME, the differences from it are columns "
                "here."
            )


def print_lists(lists: ListComparison, format: Format, output: Path | None) -> None:
    """Print a comparison without qrels: tables to stdout or a file, the verdict to stderr. CSV has the pairs only."""
    if format_for(format, output) is not Format.markdown:
        print_message(lists.verdict)
    emit_result(lists, format, output)


def _read_runs(runs: list[RunFile], columns: dict[str, str], texts: dict[str, str] | None) -> Iterable[Run | Path]:
    """The runs: as files, or read if they or their columns are named or the documents have texts."""
    if not columns and texts is None and not any(run.name for run in runs):
        return with_progress([run.path for run in runs], lambda path: path.name)
    read = [args.read_run(run.path, columns, len(runs)) for run in with_progress(runs, lambda run: run.path.name)]
    names = args.run_names([run.name for run in read], runs)
    return [Run(run, name=name, texts=texts) for run, name in zip(read, names, strict=True)]


def _query_texts(queries: Path) -> dict[str, object]:
    """The texts of the queries, if the file has them."""
    try:
        return column_values(queries, "text")
    except InputError:
        return {}
