"""steelyard bench, demo and init: run retrievers over a dataset, evaluate, compare, report."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated

from steelyard.benchmark.across import BenchAcross
from steelyard.benchmark.config import write_starter
from steelyard.benchmark.folder import command_of
from steelyard.benchmark.judged import JUDGMENTS_USED, differences
from steelyard.benchmark.mlflow import LOCAL_STORE
from steelyard.benchmark.result import BenchResult
from steelyard.benchmark.runner import bench as run_bench
from steelyard.cli import WRONG_INPUT
from steelyard.cli import output as out
from steelyard.cli.compare import print_comparison, print_lists
from steelyard.cli.options import RESULT_FOLDER, Argument, Option, Setting, ShowAll, TableFormat, UsageError
from steelyard.cli.results import print_across
from steelyard.io.text import shortened
from steelyard.notes import sentence
from steelyard.safe_text import cell_text
from steelyard.wording import counted, listed

SHOWN = 3  # Documents of a first answer that are shown.


def bench(
    config: Annotated[Path, Argument("BENCH.YAML", "The bench: `steelyard init` writes an example.")],
    output: Annotated[Path | None, RESULT_FOLDER] = None,
    fresh: Annotated[bool, Option("Run every query again, without the cache.")] = False,
    mlflow: Annotated[
        str | None,
        Option(
            "Log the result to MLflow: to the store at this URI, or without one to mlflow.db in the working directory.",
            "URI",
            alone=LOCAL_STORE,
        ),
    ] = None,
    show_all: ShowAll = False,
    format: TableFormat = "table",
) -> int:
    """Run retrievers over a dataset, evaluate and compare them, and write a result
    folder: the runs, the scores, a leaderboard and a report page.

    Example:

      steelyard init && steelyard bench bench.yaml

      steelyard bench bench.yaml --mlflow

    A stopped bench continues where it stopped, and a changed setting reruns only
    what depends on it. Runs of an earlier bench that this one does not have are
    removed from the folder. Errors in the qrels are reported, as `steelyard
    validate` does. A retriever that fails on some queries is marked; one that fails
    on all of them makes the exit code 2, after everything is written. A dataset
    without qrels is not evaluated: the lists of the retrievers are compared. With
    `datasets`, every dataset has a folder, and one table is across all of them.
    """
    with out.bench_progress() as progress:
        result = run_bench(config, output, fresh=fresh, mlflow=mlflow or False, watch=progress)
    return _print_result(result, format, show_all)


def _print_result(result: BenchResult, format: out.Format, show_all: bool) -> int:
    """Print the verdict, the leaderboard, warnings and where the result is; the exit code."""
    more = "    More: --all" if format == "table" and not show_all else ""
    if isinstance(result, BenchAcross):
        print_across(result.across, format, None, show_all)
        for name, single in result.results.items() if show_all else ():
            out.print_messages(f"{name}: {sentence(note)}" for note in single.notes)
        out.print_message(f"Report: {result.folder / 'report.html'}{more}")
        return max(_print_failures(single) for single in result.results.values())
    shown = (result.chunk_table, result.approximation_table, result.cost_table)
    tables = [table for table in shown if table is not None]
    if format == "markdown":
        out.write(result.to_markdown(), None)
    elif result.evaluated is None:
        print_lists(result.lists, format, None)
        out.print_tables(tables if format == "table" else [], below=True)
        if format == "table":
            _print_differences(result)
    else:
        print_comparison(result.evaluated, format, None, notes=result.notes, tables=tables, show_all=show_all)
    if format != "table" or result.evaluated is None:
        out.print_messages(map(sentence, result.notes))
    elif not show_all:
        out.print_messages(sentence(note) for note in result.input_notes if note.code == JUDGMENTS_USED)
    changing = [row.run for row in result.rows if row.cached and not {"target", "url"}.isdisjoint(row.settings)]
    if changing and format == "table":
        out.print_message(
            f"From the cache: {listed(changing)}. Changes of code and settings are noticed, those of data are not: "
            "--fresh asks again."
        )
    if result.evaluated is not None:
        out.print_message(f"{out.page_line(result.folder / 'report.html', result.folder)}{more}")
    else:
        judge = "" if all(row.broken for row in result.rows) else f" Next: {command_of('judge', result.folder)}"
        out.print_message(f"The result is in {result.folder}.{judge}")
    return _print_failures(result)


def _print_failures(result: BenchResult) -> int:
    """Print which retrievers failed; the exit code: 2 if one failed on every query."""
    if partly := [f"{row.run} on {row.failed} queries" for row in result.rows if row.errors and not row.broken]:
        out.print_message(
            f"FAILED: {'; '.join(partly)}. These queries have no answer; the policy `missing` decides how they count."
        )
    for row in result.rows:
        if row.broken:
            reason = next(iter(row.errors.values()))
            out.print_message(f"error: {row.run} failed on every query and could not be evaluated: {reason}")
    return WRONG_INPUT if result.broken else 0


def demo(
    output: Annotated[Path, RESULT_FOLDER] = Path("steelyard-demo"),
    show_all: ShowAll = False,
    format: TableFormat = "table",
) -> int:
    """Run the bundled benchmark: a leaderboard here, a report in ./steelyard-demo.

    Example:

      steelyard demo

    115 questions about a small railway, 267 passages of its handbook. It needs no
    network.
    """
    with as_file(files("steelyard.demo") / "bench.yaml") as config, out.bench_progress() as progress:
        result = run_bench(config, output, watch=progress)
    return _print_result(result, format, show_all)


def init(
    folder: Annotated[Path, Argument("DIR", "The folder for bench.yaml.")] = Path(),
    queries: Annotated[
        Path | None, Option("Questions: CSV, TSV, JSON, JSON lines, Parquet, or text with one per line.")
    ] = None,
    retriever: Annotated[
        list[str] | None,
        Option(
            "--queries: module:attribute, a URL, a name of `steelyard list retrievers`, or '{name: {settings}}'; NAME= "
            "before it is its label. Repeat for more.",
            "RETRIEVER",
        ),
    ] = None,
    corpus: Annotated[
        str | None, Option("--queries: the documents, for retrievers that index them: a file or a folder.", "PATH")
    ] = None,
    column: Annotated[str | None, Setting("--queries: the column of the questions.")] = None,
) -> None:
    """Write a bench.yaml: for your questions and retrievers, or a starter with
    comments that runs as it is.

    Examples:

      steelyard init --queries questions.csv --retriever my_app:search \\
          --retriever http://127.0.0.1:8000/search

      steelyard init my-bench && steelyard bench my-bench/bench.yaml

    Every retriever is asked the first question, and what it returned is shown. A
    LangChain, LlamaIndex or Haystack object is recognised. A URL without {query}
    is asked in the usual ways, and the one that works is written.
    """
    if queries is None:
        if retriever or corpus or column:
            raise UsageError("--retriever, --corpus and --set column belong to --queries, a file of questions.")
        path = write_starter(folder)
        out.print_message(f"{path} is written. Run it with: steelyard bench {path}")
        return
    from steelyard.benchmark.start import write_bench

    started = write_bench(folder, queries, retriever or [], corpus=corpus, column=column)
    question, wide = next(iter(started.queries.values())), out.width() - 4
    out.print_message(
        f"{counted(len(started.queries), 'question')} in {queries}. The first: {shortened(question, wide)}"
    )
    out.print_messages(map(sentence, started.notes))
    for answer in started.answers:
        size = counted(len(answer.documents), "document")
        out.print_message(
            f"{answer.label}: {size} in {1000 * answer.seconds:.0f} ms" if answer.seconds else answer.label
        )
        for rank, (doc, score, text) in enumerate(answer.documents[:SHOWN], start=1):
            shown = " ".join(f"{shortened(doc, 24)}  {score:.4g}  {text[:500]}".split("\n"))
            out.print_message(shortened(f"  {rank}  {cell_text(shown)}", wide))
        if len(answer.documents) > SHOWN:
            out.print_message(f"  ... and {len(answer.documents) - SHOWN} more")
        out.print_messages(f"  ({remark})" for remark in answer.remarks)
    out.print_message(f"{started.path} is written. Next: steelyard bench {started.path}")


def _print_differences(result: BenchResult) -> None:
    """The questions on which the runs agree least, with the first document of each."""
    disagreements = differences(result.runs)
    if not disagreements:
        return
    wide = out.width() - 6
    shown = [doc for disagreement in disagreements for doc in disagreement.first.values()]
    documents = result.documents.select("doc_id", "text")
    texts = dict(documents.filter(documents["doc_id"].is_in(shown)).iter_rows())
    out.print_message("Where they differ most, with the first document of each:")
    for disagreement in disagreements:
        question = shortened(" ".join(result.dataset.queries.get(disagreement.query, "").split()), wide - 24)
        out.print_message(f"  {disagreement.query}  {cell_text(question)} (agreement {disagreement.agreement:.0%})")
        for run, doc in disagreement.first.items():
            text = " ".join((texts.get(doc) or "").split())[:200]
            out.print_message(shortened(f"    {run}: {cell_text(f'{doc}  {text}')}", wide))
