"""Tables: CSV, TSV and Parquet files, one row per document or one row per query with lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from steelyard.datasets.corpus import CorpusBuilder, QueriesBuilder
from steelyard.datasets.dataset import Dataset, assemble, qrels_of_rows
from steelyard.errors import InputError, did_you_mean
from steelyard.frames import parquet_bytes
from steelyard.io.columns import NAMES, QRELS_LISTS, RUN_LISTS, first_named, kind_of_table
from steelyard.io.files import UNNAMED, bare_name, errors_name, run_name
from steelyard.io.formats import Detected, Format, Layout, Shape, name_them, run_or_qrels
from steelyard.io.frames import is_constant, qrels_of_table, run_of_table
from steelyard.io.lists import list_of
from steelyard.io.text import Source, read_table
from steelyard.lazy import polars as pl
from steelyard.notes import note
from steelyard.qrels import Qrels, Row
from steelyard.run import Run


def run_table(run: Run) -> pl.DataFrame:
    """The run's rows: a score column where it has scores, a rank column where it has an order of its own.

    With scores the ranks are called own_rank, since scores are used before ranks. A query with an
    empty list is a row without a document. Token counts and seconds are added where the run has them.
    """
    frame = run.frame if run.ordered else run.table
    tokens = run.tokens if "tokens" not in frame.columns else None
    if tokens is not None and set(frame["doc_id"].unique().to_list()) <= set(tokens):
        frame = _with_values(frame, "doc_id", "tokens", tokens, pl.Int64)
    chosen = ["query_id", "doc_id"]
    scored = not frame.height or frame["score"].null_count() < frame.height
    if run.ordered:
        chosen.append("own_rank" if scored else "rank")
        frame = frame.rename({"rank": chosen[-1]})
    if scored:
        chosen.append("score")
    frame = frame.select(*chosen, *(["tokens"] if "tokens" in frame.columns else []))
    answered = set(frame["query_id"].unique().to_list())
    empty = [query for query in run.queries if query not in answered]
    if empty:
        frame = pl.concat([frame, pl.DataFrame({"query_id": empty}, schema={"query_id": pl.String})], how="diagonal")
    if run.seconds is not None:
        frame = _with_values(frame, "query_id", "seconds", run.seconds, pl.Float64)
    return frame


def _with_values(
    frame: pl.DataFrame, key: str, name: str, by_id: Mapping[str, float], kind: type[pl.DataType]
) -> pl.DataFrame:
    """The frame with the value of each row's id in a new column, null where an id has none."""
    values = pl.DataFrame({key: list(by_id), name: list(by_id.values())}, schema={key: pl.String, name: kind})
    return frame.join(values, on=key, how="left", maintain_order="left")


def qrels_table(qrels: Qrels) -> pl.DataFrame:
    """The rows of the qrels, with a target column where they have targets."""
    return qrels.frame if qrels.has_targets else qrels.frame.drop("target")


_NAME = "run"  # The column with the run's name, in every row: a file name cannot hold every name.


def _read_parquet_run(source: Source, columns: Mapping[str, str]) -> Run:
    """The run of a Parquet file; its name is in the column `run`, if there is one, or that of the file."""
    frame, name = source.parquet, None
    if frame.height and _NAME in frame.columns and _NAME not in columns.values() and is_constant(frame[_NAME]):
        name, frame = frame[_NAME][0], frame.drop(_NAME)
    run = run_of_table(frame, columns, run_name(source.path))
    if isinstance(name, str) and name:
        run.name = name
    return run


def _parquet_run_bytes(run: Run) -> bytes:
    """The run as Parquet, with its name if it has one of its own."""
    named = [pl.lit(run.name).alias(_NAME)] if run.name != UNNAMED else []
    return parquet_bytes(run_table(run).with_columns(*named))


# Datasets: a table whose rows are documents with example queries. Every cell of a query column is a query, and its row
# is the relevant document. Another column may list the ids of distractors.

_ID_NAMES = ("_id", "id", *NAMES["doc_id"])


def read_table_dataset(
    path: Path,
    *,
    queries: str | Sequence[str] | None = None,
    document: str | Sequence[str] = "rest",
    id: str | None = None,
    title: str | None = None,
    relevant: str | None = None,
    distractors: str | None = None,
    columns: str | Sequence[str] = (),
    separator: str = " ",
    empty: str = "",
    unjudged: str = "keep",
) -> Dataset:
    """Read the table.

    `queries`: the column or columns that hold queries; an empty cell is no query.
    `document`: the columns whose cells, joined by `separator`, are the document: one or more
    names, 'all', or 'rest' for every column that has no other role.
    `id`: the document's id; by default a column called id or doc_id, or the number of the row.
    `relevant`: a column that lists the ids of a row's relevant documents, where it is not the row itself.
    `distractors`: a column that lists the ids of distractors.
    `columns`: columns to keep for each query, to slice scores by. `empty`: the text of an empty
    cell of a document; by default the cell is left out.
    """
    frame = read_table(Source(path), "\t" if bare_name(path).suffix.lower() == ".tsv" else ",")
    named = {"queries": queries, "document": document, "id": id, "title": title, "columns": columns}
    rows = [{name: value or "" for name, value in row.items()} for row in frame.iter_rows(named=True)]
    with errors_name(path):
        named |= {"relevant": relevant, "distractors": distractors}
        queries, document, columns, (id, title, relevant, distractors) = _roles(frame.columns, named)
        if relevant is None:
            _refuse_questions_as_documents(queries, document, id, rows)
        documents, builder = CorpusBuilder(), QueriesBuilder()
        judgments: list[Row] = []
        query_ids: list[str] = []
        problems: list[str] = []
        first: dict[str, str] = {}
        counts: Counter[str] = Counter()
        seen: set[tuple[str, str]] = set()
        for number, row in enumerate(rows):
            text = separator.join(filter(None, (row[name] or empty for name in document)))
            doc_id = row[id] if id else first.setdefault(text, str(number))
            if not doc_id:
                problems.append(f"row {number + 1:,}: {id} (id) is empty")
                continue
            if (doc_id, text) not in seen:
                seen.add((doc_id, text))
                documents.add(doc_id, text, row[title] if title else "")
            try:
                judged = _judged(row, doc_id, relevant, distractors)
            except InputError as error:
                problems.append(f"row {number + 1:,}: {error}")
                continue
            for column in queries:
                if row[column].strip():
                    counts[doc_id] += 1
                    query_ids.append(f"{doc_id}-{counts[doc_id]}")  # numbered within their document
                    builder.add(query_ids[-1], row[column], {name: row[name] for name in columns if row[name]})
                    judgments += [(query_ids[-1], *judgment) for judgment in judged]
        expected = "Expected an id in every row, and lists as [\"d1\", \"d2\"] or ['d1', 'd2']."
        InputError.refuse(problems, "row not as expected", "rows not as expected", expected)
        qrels, findings = qrels_of_rows(judgments, query_ids)
        notes = [] if id else [note("documents-numbered")]
        if len(seen) < len(rows):
            notes.append(note("rows-merged", count=len(rows) - len(seen)))
        return assemble(bare_name(path).stem, documents, builder, qrels, unjudged, notes, findings)


def _refuse_questions_as_documents(
    queries: Sequence[str], document: Sequence[str], id: str | None, rows: Sequence[Mapping[str, str]]
) -> None:
    """Raise if the documents are mostly their own queries: each would find itself, and every score be 1."""
    shared = [name for name in document if name in queries]
    others = [name for name in document if name not in queries and name != id]
    questions, content = (sum(len(row[name]) for row in rows for name in names) for names in (shared, others))
    if shared and 2 * content < questions:
        raise InputError(
            f"the documents (document: {', '.join(document)}) consist mostly of the questions "
            f"({', '.join(shared)}), so that every question would be its own relevant document. A list of questions "
            "without documents is `queries: FILE` in bench.yaml, in place of `dataset`; it needs no qrels."
        )


def _judged(
    row: Mapping[str, str], doc_id: str, relevant: str | None, distractors: str | None
) -> list[tuple[Any, float, str | None]]:
    """The documents judged for the queries of a row: its own or those listed (a list is a target), and distractors."""
    listed, wrong = (
        list_of(row[column]) if column is not None and row[column].strip() else [] for column in (relevant, distractors)
    )
    judged: list[tuple[Any, float, str | None]] = []
    for number, entry in enumerate(listed if relevant else [doc_id], start=1):
        target = str(number) if isinstance(entry, list) else None
        judged += [(str(doc), 1.0, target) for doc in (entry if isinstance(entry, list) else [entry])]
    return judged + [(doc if isinstance(doc, list) else str(doc), -1.0, None) for doc in wrong]


def _roles(header: Sequence[str], named: Mapping[str, Any]) -> tuple[list[str], list[str], list[str], list[str | None]]:
    """The columns of queries, of documents and to keep, and id, title, relevant and distractors, as far as named."""
    if not named["queries"]:
        problem = f"name the columns that hold queries (queries=...). The columns are {_shown(header)}. Other options"
        raise InputError(f"{problem}: document, id, title, relevant, distractors, columns, separator, empty.")
    single = {
        role: None if named[role] is None else _columns(header, role, named[role])[0]
        for role in ("id", "title", "relevant", "distractors")
    }
    single["id"] = single["id"] or first_named(header, _ID_NAMES)
    queries, columns = (_columns(header, role, named[role]) for role in ("queries", "columns"))
    document = named["document"]
    if document in ("all", "rest") and document not in header:
        taken = {*queries, *columns, *single.values()} if document == "rest" else ()
        cells = [name for name in header if name not in taken]
    else:
        cells = _columns(header, "document", document)
    if not cells:
        raise InputError("no column is left for the document; name some (document=...), or document='all'.")
    return queries, cells, columns, list(single.values())


def _columns(header: Sequence[str], role: str, names: Any) -> list[str]:
    """The columns named; a name may be written with other white space, as headers can contain line ends."""
    listed = [names] if isinstance(names, str) else names
    if not isinstance(listed, (list, tuple)) or not all(isinstance(name, str) for name in listed):
        raise InputError(f"{role}={names!r}: expected the name of a column, or a list of names.")
    plain = {" ".join(column.split()): column for column in header}
    columns: list[str] = []
    for name in listed:
        column = name if name in header else plain.get(" ".join(name.split()))
        if column is None:
            near = did_you_mean(name, plain)
            raise InputError(f"no column {name!r} ({role}); the columns are {_shown(header)}.{near}")
        columns.append(column)
    return columns


def _shown(header: Sequence[str]) -> str:
    return ", ".join(" ".join(column.split()) for column in header)


def _detect(format: str, shape: Shape) -> Detected | None:
    """What a table holds, by the names of its columns."""
    if shape.form != format:
        return None
    kind = kind_of_table(shape.names)
    if kind is not None:
        graded = kind == "either" and any(name.lower() in ("corpus-id", "corpus_id") for name in shape.names)
        return Detected(kind, format, "qrels" if kind == "qrels" or graded else "run")
    lists = run_or_qrels(format, bool(first_named(shape.names, RUN_LISTS)), bool(first_named(shape.names, QRELS_LISTS)))
    if lists is None:
        problem = f"no columns hold query and document; the columns are {', '.join(shape.names)}"
        raise InputError(f"{problem}. Call them query_id and doc_id, or {name_them()}")
    return lists


def _text_format(name: str, separator: str, called: str, **more: Any) -> Format:
    return Format(
        name=name,
        description=f"a table with a header, separated by {called}",
        detect=partial(_detect, name),
        reads={
            "run": lambda source, columns: run_of_table(read_table(source, separator), columns, run_name(source.path)),
            "qrels": lambda source, columns: qrels_of_table(read_table(source, separator), columns),
        },
        writes={
            "run": lambda run: run_table(run).write_csv(separator=separator).encode(),
            "qrels": lambda qrels: qrels_table(qrels).write_csv(separator=separator).encode(),
        },
        seconds=True,
        **more,
    )


FORMATS = (
    _text_format(
        "csv",
        ",",
        "commas",
        suffixes={"run": (".csv",), "qrels": (".csv",)},
        dataset=Layout(
            read_table_dataset, lambda path: path.is_file() and bare_name(path).suffix.lower() in (".csv", ".tsv")
        ),
    ),
    _text_format("tsv", "\t", "tabs", suffixes={"run": (".tsv",)}),
    Format(
        name="parquet",
        description="a Parquet table",
        detect=partial(_detect, "parquet"),
        reads={"run": _read_parquet_run, "qrels": lambda source, columns: qrels_of_table(source.parquet, columns)},
        writes={"run": _parquet_run_bytes, "qrels": lambda qrels: parquet_bytes(qrels_table(qrels))},
        suffixes=dict.fromkeys(("run", "qrels"), (".parquet", ".parq", ".pq")),
        seconds=True,
    ),
)
