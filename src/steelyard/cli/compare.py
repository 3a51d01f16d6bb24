"""steelyard compare: which run is best, by how much, and whether the difference is significant."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from steelyard.cli import options as args
from steelyard.cli import output as out
from steelyard.cli.options import Argument, Option, RunFile, Setting, UsageError
from steelyard.comparison.compare import compare as compare_runs
from steelyard.comparison.compare import compare_scores
from steelyard.comparison.lists import ListComparison
from steelyard.comparison.result import Comparison
from steelyard.comparison.scores import TableOptions
from steelyard.comparison.slices import column_values
from steelyard.dialects import dialect as dialect_of
from steelyard.errors import InputError, WrongKindError
from steelyard.io.datasets import dataset_named, queries_beside
from steelyard.notes import Note, sentence
from steelyard.qrels import Qrels
from steelyard.report.comparison import comparison_document, movers_lines, remarks, slice_tables
from steelyard.report.summary import summary
from steelyard.report.tables import Table, plain
from steelyard.run import Run
from steelyard.safe_text import cell_text


def compare(
    qrels: Annotated[
        Path | None, Argument("QRELS", "The qrels, or a dataset folder (not with --scores or --no-qrels).")
    ] = None,
    runs: Annotated[list[RunFile] | None, Argument("RUN", "Two or more runs: FILE, NAME=FILE, or - (stdin).")] = None,
    measure: args.Measures = None,
    baseline: Annotated[str | None, Option("Compare every run with this one; default: all pairs.")] = None,
    composite: Annotated[
        str | None, Option("Weights of a composite score: a YAML or JSON file, or default.", "FILE|default")
    ] = None,
    at: Annotated[list[int] | None, Option("One row per run at this cutoff. Repeat for more.", "K")] = None,
    by: args.By = None,
    queries: args.QueryColumns = None,
    no_qrels: Annotated[bool, Option("Compare lists of runs without qrels: overlap, RBO, rank correlation.")] = False,
    scores: Annotated[Path | None, Option("Compare a table of values per query instead of runs.")] = None,
    run_column: Annotated[
        str | None, Option("--scores: the same as --set columns=run=COLUMN.", "COLUMN", expert=True)
    ] = None,
    query_column: Annotated[
        str | None, Option("--scores: the same as --set columns=query=COLUMN.", "COLUMN", expert=True)
    ] = None,
    columns: Annotated[
        list[str] | None,
        args.COLUMNS._replace(
            help=f"{args.COLUMNS.help} With --scores: run, query, repeat (repetitions, as of a seed); in the long "
            "form also measure and value."
        ),
    ] = None,
    repeats: Annotated[
        Literal["average", "blocks"],
        Setting(
            "--scores: average the repetitions of each run; or blocks: pair the runs by query and repetition, then "
            "average. Queries are tested, not repetitions."
        ),
    ] = "average",
    lower: Annotated[
        list[str] | None, Setting("--scores: a measure whose lower values are better. Repeat for more.")
    ] = None,
    movers: args.Movers = 0,
    dataset: args.Texts = None,
    predicted: args.Predicted = None,
    pool: args.SampledPool = None,
    these_queries: args.TheseQueries = False,
    dialect: args.DialectName = "steelyard",
    test: Annotated[str, args.TEST] = "t",
    correction: Annotated[str, args.CORRECTION] = "holm",
    alpha: args.Alpha = 0.05,
    equivalence: Annotated[
        float | None,
        Setting(
            "Report which runs are equivalent: the 95% interval of their difference is within this margin.", "MARGIN"
        ),
    ] = None,
    permutations: args.Permutations = None,
    seed: args.Seed = 0,
    show_all: args.ShowAll = False,
    format: args.TableFormat = "table",
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

    The terminal shows the verdict, a leaderboard and warnings; --all shows the
    rest, and files have all of it. -o report.html writes the report page.
    """
    if movers < 0:
        raise InputError(f"--set movers is {movers}; expected 0 or more.")
    if movers and out.format_for(format, output) == "csv":
        raise InputError(
            "--set movers cannot be written as CSV, which has one row per run; use table, markdown, latex or json."
        )
    if lower and scores is None:
        raise UsageError("--set lower is for --scores; for runs, the measures say which direction is better.")
    labels = args.read_predicted(predicted, pool, these_queries)
    names, qrels_names = args.column_names(columns)
    given = [*([] if qrels is None else [RunFile(str(qrels))]), *(runs or [])]
    qrels = None if qrels is None else args.input_path(qrels)
    shared: dict[str, Any] = {"baseline": baseline, "composite": composite, "by": by, "queries": queries}
    shared |= {"test": test, "correction": correction, "alpha": alpha, "equivalence": equivalence}
    shared |= {"permutations": permutations, "seed": seed}
    if no_qrels:
        if scores is not None:
            raise UsageError("--no-qrels compares the lists of runs; leave out --scores.")
        used = {name: shared[name] for name in ("baseline", "composite", "by", "queries", "equivalence")}
        used |= {"at": at, "predicted": labels.get("predicted")}
        used |= {name: value for name, value in options.items() if value is not None}
        return print_lists(compare_runs(None, _read_runs(given, names, None), measure, **used), format, output)
    if dataset is None and qrels is not None and qrels.is_dir():
        if (qrels / "result.json").is_file():
            raise InputError("is the result of a bench: use its qrels.parquet and runs/*.parquet in its place.", qrels)
        dataset = str(qrels)
    loaded_dataset = None if dataset is None else dataset_named(dataset, judged=False)
    if scores is not None:
        if given:
            raise InputError("give qrels and runs, or --scores, not both.")
        if labels:
            raise InputError("--set predicted needs qrels and runs; it cannot be used with --scores.")
        names |= {role: name for role, name in (("run", run_column), ("query", query_column)) if name}
        given_roles = [*names, *(f"{args.QRELS}{role}" for role in qrels_names)]
        if wrong := [role for role in given_roles if role not in _SCORE_ROLES]:
            raise UsageError(
                f"--set columns: {wrong[0]} is not a role of --scores; expected one of {', '.join(_SCORE_ROLES)}, as "
                "in columns=run=method,query=id."
            )
        of_roles: dict[str, Any] = {f"{role}_column": name for role, name in names.items()}
        table = TableOptions(**of_roles, repeats=repeats, lower=lower or ())
        result = compare_scores(scores, measure, options=table, missing=options["missing"] or "zero", **shared)
    else:
        if qrels is None or not runs:
            raise InputError(
                "nothing to compare: give QRELS and at least one RUN, or --scores FILE, or --no-qrels and the runs. "
                "`steelyard compare --help` shows examples."
            )
        if by is not None and queries is None:
            shared["queries"] = queries_beside(qrels)
        corpus = None
        if loaded_dataset is not None and dialect_of(dialect).reads_texts(measure or []):
            corpus = dict(loaded_dataset.corpus)
        try:
            judged = Qrels.read(qrels, **qrels_names)
        except WrongKindError:
            raise UsageError(
                f"{qrels} holds a run; expected qrels first, then the runs. To compare the lists of runs without "
                "qrels, add --no-qrels."
            ) from None
        read = _read_runs(runs, names, corpus)
        default = None if dialect != "steelyard" or at else ["nDCG@10"]
        result = compare_runs(judged, read, measure or default, at=at, dialect=dialect, **labels, **options, **shared)
    texts: dict[str, object] = {}
    if queries is not None and movers:
        with suppress(InputError):
            texts = column_values(queries, "text")
    if output is not None and out.is_page(output):
        from steelyard.report.page.page import write_page
        from steelyard.report.page.subject import comparison_subject

        command = shlex.join(["steelyard", *sys.argv[1:]])
        write_page(comparison_subject(result, loaded_dataset, command), output)
        out.print_messages([result.verdict, out.page_line(output, None)])
        return
    print_comparison(result, format, output, movers, texts, show_all=show_all, slices=by is not None)
    if out.format_for(format, output) == "table" and output is None and not show_all:
        out.print_message("More: --all")


_SCORE_ROLES = ("run", "query", "measure", "value", "repeat")  # The columns of a table of scores.


def print_comparison(
    result: Comparison,
    format: out.Format,
    output: Path | None,
    movers: int = 0,
    texts: Mapping[str, object] | None = None,
    *,
    notes: Sequence[Note] = (),
    tables: Sequence[Table] = (),
    show_all: bool = False,
    slices: bool = False,
) -> None:
    """Print a comparison, or write it to a file; on a screen in short (with `slices`), or with `show_all` all of it."""

    def show() -> None:
        short = summary(result, out.width(), notes)
        if show_all:
            document = comparison_document(result, screen=True)
            out.print_message(document.verdict)
            out.print_tables([*document.tables, *tables])
            out.print_message("")
            out.print_messages(f"- {line}" for line in (*document.notes, *map(sentence, notes)))
        else:
            style = {True: "green", False: "yellow", None: "bold"}[short.significant]
            for number, line in enumerate(short.verdict):
                out.print_message(line, style if number == 0 else "")
            out.print_message("")
            head, *rows = plain(short.table).splitlines()
            print("\n".join([out.styled(head, "bold", sys.stdout), *rows]), flush=True)
            out.print_messages(short.left_out)
            if slices and (tables_of_slices := slice_tables(result)):
                out.print_tables(tables_of_slices, below=True)
            out.print_message("")
            for line in short.warnings:
                out.print_message(line, "yellow")
            out.print_messages(short.next_steps)
        if movers:
            out.write("\n" + "\n".join(map(cell_text, movers_lines(result, movers, texts))), None)

    out.emit_result(
        result,
        format,
        output,
        show,
        table=partial(result.to_text, movers, texts),
        markdown=partial(result.to_markdown, movers, texts),
        latex=partial(result.to_latex, movers, texts),
        json=partial(result.to_json, movers),
    )
    kind = out.format_for(format, output)
    if kind == "latex":
        out.print_message(result.verdict)
    elif kind == "csv":
        out.print_messages([result.verdict, *remarks(result, tables=False)])
        if result.plan.baseline is None and result.tested_pairs:
            out.print_message(
                "The tests of all pairs are in the JSON; with --baseline NAME, the differences from it are columns "
                "here."
            )


def print_lists(lists: ListComparison, format: out.Format, output: Path | None) -> None:
    """Print a comparison without qrels: tables to stdout or a file, the verdict to stderr. CSV has the pairs only."""
    if out.format_for(format, output) != "markdown":
        out.print_message(lists.verdict)
    out.emit_result(lists, format, output)


def _read_runs(runs: list[RunFile], columns: dict[str, str], texts: dict[str, str] | None) -> Iterable[Run | Path]:
    """The runs: as files, or read if they or their columns are named or the documents have texts."""
    if not columns and texts is None and not any(run.name for run in runs):
        return out.with_progress([run.path for run in runs], lambda path: path.name)
    return [Run(run, name=name, texts=texts) for name, run in args.read_runs(runs, columns).items()]
