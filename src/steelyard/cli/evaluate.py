"""steelyard evaluate: evaluate runs with qrels."""

from __future__ import annotations

from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from steelyard.cli import options as args
from steelyard.cli.options import Argument, Option, RunFile
from steelyard.cli.output import Format, emit, format_for, print_message, print_messages, with_progress
from steelyard.coverage import coverage_lines, refuse_unmatched, unjudged_line
from steelyard.evaluation import evaluate as evaluate_run
from steelyard.measures.grammar import Measure
from steelyard.qrels import Qrels
from steelyard.report.tables import Cell, Table
from steelyard.run import Run
from steelyard.scores import Inputs, Scores, versions
from steelyard.version import __version__

if TYPE_CHECKING:
    from steelyard.predicted import PredictedScores


def evaluate(
    qrels: Annotated[Path, Argument("QRELS", "The qrels (TREC, BEIR, JSON, CSV, Parquet, ...), or a dataset folder.")],
    runs: Annotated[list[RunFile], Argument("RUN", "One or more runs, in any format: FILE, NAME=FILE, or - (stdin).")],
    measure: args.Measures = None,
    dialect: args.DialectName = "steelyard",
    per_query: Annotated[bool, Option("Show the values of every query.")] = False,
    columns: args.Columns = None,
    dataset: args.Texts = None,
    predicted: args.Predicted = None,
    pool: args.SampledPool = None,
    these_queries: args.TheseQueries = False,
    format: args.TableFormat = "table",
    output: args.Output = None,
    **options: Any,
) -> None:
    """Evaluate runs with qrels.

    Examples:

      steelyard evaluate qrels.trec bm25.run dense.run -m nDCG@10 -m 'P(rel=2)@5'

      steelyard evaluate qrels.csv dense.parquet \\
          --set columns=doc_id=passage,score=sim,qrels.grade=label

    Without -m: nDCG@10, AP, RR@10, R@100 and P@10. Formats are detected from the
    content of the files, and columns by their usual names.
    """
    qrels = args.input_path(qrels)
    run_columns, qrels_columns = args.column_names(columns)
    judged = Qrels.read(qrels, **qrels_columns)
    texts = None
    if dataset is not None:
        from steelyard.io.datasets import dataset_named

        texts = dict(dataset_named(dataset).corpus)
    labels = args.read_predicted(predicted, pool, these_queries)
    scores = []
    for run in with_progress(runs, lambda run: run.path.name):
        read = args.read_run(run.path, run_columns, len(runs)) if run_columns else run.path
        given = read if texts is None else Run(Run.of(read), texts=texts)
        evaluated = evaluate_run(judged, given, measure or None, dialect=dialect, name=run.name, **labels, **options)
        scores.append(replace(evaluated, inputs=Inputs.of(qrels, judged, run.path)))
    names = args.run_names([run_scores.name for run_scores in scores], runs)

    def data() -> dict[str, Any]:
        parts = [{**s.to_dict(per_query), "name": name} for s, name in zip(scores, names, strict=True)]
        shared = {key: parts[0][key] for key in ("policies", "measures")}
        per_run = [{key: value for key, value in part.items() if key not in shared} for part in parts]
        judgments = {"judgments": judged.query_fingerprints()} if per_query else {}
        head = {"steelyard": __version__, "versions": versions(), "dialect": dialect}
        return {**head, **shared, **judgments, "runs": per_run}

    emit(_table(scores, names, per_query, bool(labels), format_for(format, output)), data, format, output)
    if per_query and scores[0].settings and format_for(format, output) == "csv":
        print_message(f"Measured with {scores[0].settings}.")
    coverage = {name: run_scores.coverage for name, run_scores in zip(names, scores, strict=True)}
    if len(coverage) == 1:
        print_message(f"{names[0]}: {scores[0].coverage}")
    else:
        print_messages(coverage_lines(coverage))
        shares = {name: covered.unjudged / covered.documents for name, covered in coverage.items() if covered.documents}
        print_messages([unjudged_line(shares, "retrieved documents")] if any(shares.values()) else [])
    if labels:
        for name, run_scores in zip(names, scores, strict=True):
            print_messages(f"{name}: {about}." for about in cast("PredictedScores", run_scores).about)
    refuse_unmatched(coverage)


def _table(scores: list[Scores], names: list[str], per_query: bool, predicted: bool, format: Format) -> Table:
    """The table; settings that differ from the defaults are its note, and a column in CSV."""
    first, labels = scores[0], scores[0].labels
    settings = f"Measured with {first.settings}." if first.settings else ""
    rows: list[list[Cell]] = []
    if per_query and predicted:  # Estimates from few human values and many predicted ones: both are shown.
        rows = [[name, *row] for name, of_run in zip(names, scores, strict=True) for row in of_run.per_query.rows()]
        return Table(["run", *first.per_query.columns], rows, note=settings)
    if per_query:
        for name, of_run in zip(names, scores, strict=True):
            rows += ([name, query, *row] for query, row in zip(of_run.queries, of_run.matrix.T.tolist(), strict=True))
        return Table(["run", "query_id", *labels.values()], rows, note=settings)
    if format != "csv" and len(scores) > 1:
        rows = [[name, *_with_intervals(of_run)] for name, of_run in zip(names, scores, strict=True)]
        return Table(["run", *labels.values()], rows, note=settings)
    for name, of_run in zip(names, scores, strict=True):
        intervals = of_run.intervals()
        for key, mean in of_run.means.items():
            low, high = intervals[key] or (None, None)
            counted = sum(not isnan(value) for value in of_run.values(key).tolist())
            rows.append([name, labels[key], _count(mean, of_run.measures[key]), low, high, counted])
    columns = ["run", "measure", "value", "low", "high", "queries"]
    if format == "csv" and first.settings:
        return Table([*columns, "settings"], [[*row, first.settings] for row in rows])
    return Table(columns, rows, note=settings)


def _with_intervals(scores: Scores) -> list[Cell]:
    cells: list[Cell] = []
    for key, interval in scores.intervals().items():
        mean = _count(scores.means[key], scores.measures[key])
        has_interval = isinstance(mean, float) and interval is not None and not isnan(interval[0])
        cells.append(f"{mean:.4f} [{interval[0]:.4f}, {interval[1]:.4f}]" if has_interval and interval else mean)
    return cells


def _count(value: float, measure: Measure) -> Cell:
    return str(int(value)) if measure.definition.summary == "sum" and value == int(value) else value
