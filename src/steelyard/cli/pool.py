"""steelyard pool: choose documents to judge. steelyard agreement: compare judges, or sets of queries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from steelyard.cli import options as args
from steelyard.cli.options import Argument, Option, RunFile, Setting, UsageError
from steelyard.cli.output import Format, emit_result, print_message, print_messages, print_tables
from steelyard.errors import InputError
from steelyard.qrels import Qrels

if TYPE_CHECKING:
    from steelyard.judging.agreement import Agreement
    from steelyard.judging.query_sets import QuerySets


def pool(
    runs: Annotated[list[RunFile], Argument("RUN", "One or more runs: FILE, NAME=FILE, or - (stdin).")],
    output: Annotated[Path, Option("Write the pool here, as JSON lines.")],
    qrels: Annotated[Path | None, Option("The judgments so far; their documents are left out.")] = None,
    dataset: Annotated[str | None, Option("Check that this dataset has the texts of the pool.", "DIR")] = None,
    depth: Annotated[int | None, Option("Documents of every run that are considered.")] = None,
    budget: Annotated[int | None, Option("Documents in the pool at most.")] = None,
    strategy: Annotated[str, Option("depth, mtf, bandit, pair or sample.")] = "depth",
    measure: Annotated[str, Option("pair: the measure that the runs are compared by.", "MEASURE")] = "nDCG@10",
    pair: Annotated[
        list[str] | None, Setting("pair: the two runs to compare, if there are more.", "NAME,NAME", commas=True)
    ] = None,
    columns: args.Columns = None,
    queries: Annotated[int | None, Setting("Draw this many queries at random and pool only these.")] = None,
    rel: args.Rel = None,
    seed: args.Seed = 0,
) -> None:
    """Choose documents to judge, the most useful first.

    Examples:

      steelyard pool bm25.run dense.run --depth 10 -o pool.jsonl

      steelyard pool bm25.run dense.run --qrels qrels.trec --strategy pair \\
          --budget 50 -o pool.jsonl

    Strategies: depth takes the first documents of every run; mtf (move to front)
    and bandit find relevant documents early, from the judgments so far; pair takes
    the documents that decide which of two runs is better; sample draws documents
    with known probabilities, for unbiased estimates.
    """
    from steelyard.judging.pool import pool as pooled

    run_columns, qrels_columns = args.column_names(columns)
    if qrels_columns and qrels is None:
        raise UsageError("--set columns=qrels... is for --qrels; add --qrels FILE.")
    read = args.read_runs(runs, run_columns)
    if pair is not None and len(pair) != 2:
        raise UsageError(f"--set pair is {','.join(pair)!r}; expected two names, as in bm25,dense.")
    new_pool = pooled(
        read,
        Qrels.read(qrels, **qrels_columns) if qrels is not None and qrels_columns else qrels,
        depth=depth,
        budget=budget,
        strategy=strategy,  # type: ignore[arg-type]
        measure=measure,
        seed=seed,
        queries=queries,
        pair=pair,
        rel=rel,
    )
    if dataset is not None:
        from steelyard.io.datasets import dataset_named
        from steelyard.judging.pool import check_texts

        check_texts(new_pool.pairs, dataset_named(dataset, judged=False))
    new_pool.write(output)
    print_message(f"{new_pool}. Written to {output}.")
    if strategy == "depth" and budget is not None and len(new_pool.settings.runs) == 2:
        more = "`--strategy pair` chooses those that can decide between the two."
        print_message(f"The first documents of both runs come first. {more}")


def agreement(
    judges: Annotated[
        list[str] | None,
        Argument("FILE", "FILE or NAME=FILE of each judge, or a file of several. The first is the reference."),
    ] = None,
    runs: Annotated[list[Path] | None, Option("Runs to rank by each judge.", "RUN", files=True)] = None,
    measure: args.Measures = None,
    scores: Annotated[
        Path | None, Option("Compare sets of queries, not judges: a table of values per run and query.")
    ] = None,
    queries: Annotated[Path | None, Option("--scores: the table with the sets of the queries.")] = None,
    by: Annotated[str, Option("--scores: the column that names the set of a query.", "COLUMN")] = "kind",
    reference: Annotated[
        str | None, Option("--scores: the set that the others are compared with, the real queries.")
    ] = None,
    resolve: Annotated[
        str, Setting("Several judges in one file: majority, mean, max, min, last or a name.", "RULE")
    ] = "majority",
    seed: args.Seed = 0,
    format: args.TableFormat = "table",
    output: args.Output = None,
) -> None:
    """Compare judges: do they give the same grades, and do they rank runs alike?
    Or compare sets of queries: do synthetic queries rank runs as real ones do?

    Examples:

      steelyard agreement human=qrels.txt gpt=judgments.jsonl -m nDCG@10 \\
          --runs bm25.run dense.run

      steelyard agreement --scores scores.csv --queries queries.tsv --by kind \\
          --reference real -m nDCG@10

    Prints kappa (plain, linear, quadratic), Krippendorff's alpha, AC1, the
    confusion matrix and the bias of each judge compared with the first; with runs
    also Kendall's tau, tau_AP and RBO of the two rankings, and which significant
    differences are kept, lost or reversed. -o agreement.html adds a drawing: the
    score of every run by both judges.

    With --scores: Kendall's tau of each set of queries with the reference, and the
    tau that as many queries of the reference reach with the rest of them. Only a
    set below that range ranks runs worse than real queries do.
    """
    from steelyard.judging.agreement import agreement as compared

    if scores is not None:
        if judges or runs:
            raise UsageError("--scores compares sets of queries; leave out the judges and --runs.")
        sets = compared(
            scores=scores, queries=queries, by=by, reference=reference, measures=measure or ["nDCG@10"], seed=seed
        )
        return _emit(sets, sets.notes, format, output)
    if queries is not None or reference is not None:
        raise UsageError("--queries and --reference are for --scores, the table of values per run and query.")
    # After `--runs *.run` a shell's words go on: NAME=FILE is a judge.
    late = [run for run in runs or [] if "=" in str(run) and not run.exists()]
    named = _judges([*(judges or []), *map(str, late)])
    ranked = [run for run in runs or [] if run not in late]
    result = compared(named, runs=ranked or None, measures=measure or ["nDCG@10"], resolve=resolve, seed=seed)
    _emit(result, result.remarks, format, output)


def _emit(result: Agreement | QuerySets, remarks: Sequence[str], format: Format, output: Path | None) -> None:
    def show() -> None:
        print_message(result.verdict)
        print_tables(result.document().tables)
        print_messages(remarks)

    emit_result(result, format, output, show)


def _judges(texts: Sequence[str]) -> dict[str, Path] | Path:
    """The file of every judge by name, that of the file if none is given; one file is that of several judges."""
    named: dict[str, Path] = {}
    for text in texts:
        name, path = text.split("=", 1) if "=" in text and not Path(text).exists() else (Path(text).stem, text)
        if not Path(path).exists():
            raise InputError(f"{path}: no such file; expected FILE or NAME=FILE, as in human=qrels.txt.")
        if named.setdefault(name, Path(path)) != Path(path):
            raise InputError(f"two judges are called {name!r}; give them different names, as in human=qrels.txt.")
    return Path(texts[0]) if len(texts) == 1 and "=" not in texts[0] else named
