"""steelyard compare: which run is best, by how much, and whether that is real."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from steelyard.cli.arguments import (
    Argument,
    DialectName,
    Measures,
    Option,
    Output,
    QrelsColumns,
    QrelsFormat,
    RunColumns,
    TableFormat,
    named,
    read_qrels,
    read_run,
)
from steelyard.cli.output import Format, followed, format_for, print_comparison, say
from steelyard.cli.report import page_line
from steelyard.comparison.compare import compare as compared
from steelyard.comparison.compare import compare_scores
from steelyard.comparison.scores import TableOptions
from steelyard.comparison.slices import column_values
from steelyard.datasets.reading import dataset_named, queries_beside
from steelyard.dialects import dialect as dialect_of
from steelyard.errors import InputError
from steelyard.io.files import distinct_names
from steelyard.run import Run


def compare(
    qrels: Annotated[
        Path | None, Argument("QRELS", "The judgments, or a dataset's folder (not with --scores).")
    ] = None,
    runs: Annotated[list[Path] | None, Argument("RUN", "Two or more runs.")] = None,
    measure: Measures = None,
    baseline: Annotated[
        str | None,
        Option("Test every run against this one; without it, every two runs.", "NAME"),
    ] = None,
    test: Annotated[str, Option("t, wilcoxon, sign, permutation, bootstrap, tukey or max-t.", "TEST")] = "t",
    correction: Annotated[str, Option("For many tests: none, bonferroni, holm or bh.", "NAME")] = "holm",
    composite: Annotated[
        str | None,
        Option("Weights for a composite score: a YAML or JSON file, or default.", "FILE|default"),
    ] = None,
    at: Annotated[
        list[int] | None,
        Option("A row for every run at this cutoff. Repeat for more.", "K"),
    ] = None,
    by: Annotated[
        str | None,
        Option(
            "Slice by a column of --queries (or of queries.jsonl beside QRELS; with --scores, of that FILE), or "
            "by complexity.",
            "COLUMN",
        ),
    ] = None,
    queries: Annotated[
        Path | None, Option("The queries' columns: JSONL, CSV, TSV or Parquet.", "FILE")
    ] = None,
    scores: Annotated[
        Path | None,
        Option("Compare a table of values per query instead of runs.", "FILE"),
    ] = None,
    run_column: Annotated[str | None, Option("--scores: the column that names the run.", "COLUMN")] = None,
    query_column: Annotated[
        str | None, Option("--scores: the column that names the query.", "COLUMN")
    ] = None,
    measure_column: Annotated[
        str | None,
        Option("--scores, long form: the column that names the measure.", "COLUMN"),
    ] = None,
    value_column: Annotated[
        str | None, Option("--scores, long form: the column of values.", "COLUMN")
    ] = None,
    repeat_column: Annotated[
        str | None,
        Option("--scores: the column that tells repetitions apart (a seed).", "COLUMN"),
    ] = None,
    repeats: Annotated[
        str, Option("--scores: average repetitions, or keep them as blocks.", "HOW")
    ] = "average",
    movers: Annotated[
        int,
        Option(
            "Show so many queries that lost most, and that won most, against the baseline "
            "(without one, the last run). Not as CSV.",
            "N",
        ),
    ] = 0,
    report: Annotated[Path | None, Option("Also write the report page here.", "FILE.html")] = None,
    dataset: Annotated[
        str | None,
        Option(
            "The dataset whose texts the page shows and measures read (a budget, near-repeats), as in bench.yaml: "
            "a folder, or with options "
            "'{path: DIR, qrels: FILE}'.",
            "DIR",
        ),
    ] = None,
    columns: RunColumns = None,
    qrels_columns: QrelsColumns = None,
    qrels_format: QrelsFormat = None,
    dialect: DialectName = "steelyard",
    alpha: Annotated[float, Option("What counts as significant.", "P")] = 0.05,
    permutations: Annotated[int, Option("How many, for the permutation test.", "N")] = 100_000,
    seed: Annotated[int, Option("The same seed gives the same bytes.", "N")] = 0,
    format: TableFormat = Format.table,
    output: Output = None,
    **options: Any,
) -> None:
    """Compare runs: a leaderboard, the differences, and whether they are real.

    Examples:

    steelyard compare qrels.trec bm25.run dense.run -m nDCG@10 -m RR@10 --baseline bm25

    steelyard compare qrels.tsv a.run b.run --at 1 --at 3 --dialect leaderboard --composite default --format markdown

    steelyard compare --scores per-query.csv --run-column method --query-column query_id -m MRR

    Every format shows differences, intervals, corrected p-values and verdicts. CSV has one row a run, and
    the differences from --baseline and the slices of --by as columns. Verdicts go by p; a note names the
    pairs whose interval says otherwise.
    """
    if movers < 0:
        raise InputError(f"--movers is {movers}; expected 0 or more.")
    if movers and format_for(format, output) is Format.csv:
        raise InputError(
            "--movers cannot be shown as CSV, which holds one row a run; use table, markdown, latex or json."
        )
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
    }
    known = None if dataset is None else dataset_named(dataset)
    if scores is not None:
        if qrels is not None:
            raise InputError("give judgments and runs, or --scores, not both.")
        if columns or qrels_columns or qrels_format:
            raise InputError(
                "--columns, --qrels-columns and --qrels-format are for runs and judgments; with --scores use --run-column, "
                "--query-column and the like."
            )
        if repeats not in ("average", "blocks"):
            raise InputError(f"--repeats is {repeats!r}; expected average or blocks.")
        how = cast(Literal["average", "blocks"], repeats)
        table = TableOptions(run_column, query_column, measure_column, value_column, repeat_column, how)
        result = compare_scores(
            scores, measure, options=table, missing=options["missing"] or "zero", **shared
        )
    else:
        if qrels is None or not runs:
            raise InputError(
                "nothing to compare: give QRELS and at least one RUN, or --scores FILE. `steelyard compare --help` has examples."
            )
        if by is not None and queries is None:
            shared["queries"] = queries_beside(qrels)
        spoken = dialect_of(dialect)
        truth = read_qrels(qrels, qrels_columns, qrels_format)
        corpus = dict(known.corpus) if known is not None and spoken.reads_texts(measure or []) else None
        held = _given(runs, named(columns, "--columns"), corpus)
        default = None if dialect != "steelyard" or at else ["nDCG@10"]
        result = compared(truth, held, measure or default, at=at, dialect=dialect, **options, **shared)
    texts = None if queries is None or not movers else _texts(queries)
    print_comparison(result, format, output, movers, texts)
    if report is not None:
        result.to_html(report, known)
        say(page_line(report, None))


def _given(paths: list[Path], columns: dict[str, str], texts: dict[str, str] | None) -> Iterable[Run | Path]:
    """The runs, read where columns are named or the documents have texts, else as the files they are."""
    if not columns and texts is None:
        return followed(paths, lambda path: path.name)
    held = (read_run(path, columns, len(paths)) for path in followed(paths, lambda path: path.name))
    read = list(held if texts is None else (Run(run, texts=texts) for run in held))
    names = distinct_names([run.name for run in read], paths)
    return [Run(run, name=name) for run, name in zip(read, names, strict=True)]


def _texts(queries: Path) -> dict[str, object]:
    """The queries' texts, where the file has them."""
    try:
        return column_values(queries, "text")
    except InputError:
        return {}
