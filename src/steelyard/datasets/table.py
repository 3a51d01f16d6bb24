"""A table (CSV or TSV) whose rows are documents with example queries of their own.

Every cell of a query column is a query, and the row it stands in is what it should find. Another
column may list the ids of rows that mislead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.datasets.corpus import CorpusBuilder
from steelyard.datasets.dataset import Row, assemble, qrels_of_rows
from steelyard.datasets.queries import QueriesBuilder
from steelyard.errors import InputError, did_you_mean, problem_report
from steelyard.io.columns import NAMES
from steelyard.io.files import bare_name
from steelyard.io.lists import list_of
from steelyard.wording import counted

if TYPE_CHECKING:
    from steelyard.datasets.dataset import Dataset

_ID_NAMES = ("_id", "id", *NAMES["doc_id"])


@dataclass(frozen=True)
class _Roles:
    """Which column is for what."""

    queries: list[str]
    document: list[str]
    id: str | None
    title: str | None
    relevant: str | None
    distractors: str | None
    columns: list[str]


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

    `queries`: the column or columns that hold queries; an empty cell is none.
    `document`: the columns whose cells, joined by `separator`, are the document: one or more
    names, 'all', or 'rest' for every column that has no other part.
    `id`: the document's id; by default a column called id or doc_id, or else the number of the row.
    `relevant`: a column that lists the ids of a row's relevant documents, where it is not the row itself.
    `distractors`: a column that lists the ids of documents that mislead.
    `columns`: what to keep of each query, to slice scores by. `empty`: what an empty cell of a
    document reads as; by default nothing, and the cell is left out.
    """
    from steelyard.io.files import Source
    from steelyard.io.tables import read_table

    frame = read_table(Source(path), "\t" if bare_name(path).suffix.lower() == ".tsv" else ",")
    asked = {"queries": queries, "document": document, "id": id, "title": title, "columns": columns}
    roles = _roles(frame.columns, {**asked, "relevant": relevant, "distractors": distractors}, path)
    rows = [{name: value or "" for name, value in row.items()} for row in frame.iter_rows(named=True)]
    return _Table(path, roles, separator, empty).read(rows, unjudged)


class _Table:
    """The rows of a table on their way into a dataset."""

    def __init__(self, path: Path, roles: _Roles, separator: str, empty: str) -> None:
        self.path = path
        self.roles = roles
        self.separator = separator
        self.empty = empty
        self.documents = CorpusBuilder()
        self.queries = QueriesBuilder()
        self.judgments: list[Row] = []
        self.query_ids: list[str] = []
        self.problems: list[str] = []

    def read(self, rows: Sequence[Mapping[str, str]], unjudged: str) -> Dataset:
        """The dataset of the rows."""
        first: dict[str, str] = {}
        seen: set[tuple[str, str]] = set()
        asked: dict[str, int] = {}
        merged = 0
        for number, row in enumerate(rows):
            text = self._text(row)
            doc_id = row[self.roles.id] if self.roles.id else first.setdefault(text, str(number))
            if not doc_id:
                self.problems.append(f"row {number + 1:,}: {self.roles.id} (id) is empty")
                continue
            if (doc_id, text) in seen:
                merged += 1
            else:
                seen.add((doc_id, text))
                self.documents.add(doc_id, text, row[self.roles.title] if self.roles.title else "")
            self._ask(number, row, doc_id, asked)
        if self.problems:
            raise InputError(
                problem_report(
                    f"{self.path}: {counted(len(self.problems), 'row')} not as expected:",
                    self.problems,
                    "Expected an id in every row, and lists as [\"d1\", \"d2\"] or ['d1', 'd2'].",
                )
            )
        qrels, found = qrels_of_rows(self.judgments, self.query_ids)
        notes = (
            [] if self.roles.id else ["no column holds ids: documents have the numbers of their rows, from 0"]
        )
        if merged:
            notes.append(f"{counted(merged, 'row')} with the text of an earlier one are the same document")
        return assemble(
            bare_name(self.path).stem, self.documents, self.queries, qrels, unjudged, notes, found
        )

    def _text(self, row: Mapping[str, str]) -> str:
        cells = [row[name] or self.empty for name in self.roles.document]
        return self.separator.join(cell for cell in cells if cell)

    def _ask(self, number: int, row: Mapping[str, str], doc_id: str, asked: dict[str, int]) -> None:
        """The queries of a row, numbered within their document: d1-1, d1-2, ..."""
        try:
            wrong = self._ids(row, self.roles.distractors)
            right = self._ids(row, self.roles.relevant) if self.roles.relevant else [doc_id]
        except InputError as error:
            self.problems.append(f"row {number + 1:,}: {error}")
            return
        for column in self.roles.queries:
            if not row[column].strip():
                continue
            asked[doc_id] = asked.get(doc_id, 0) + 1
            query_id = f"{doc_id}-{asked[doc_id]}"
            kept = {name: row[name] for name in self.roles.columns if row[name]}
            self.queries.add(query_id, row[column], kept)
            self.query_ids.append(query_id)
            self.judgments += _judged(query_id, right)
            self.judgments += [(query_id, doc, -1.0, None) for doc in wrong]

    def _ids(self, row: Mapping[str, str], column: str | None) -> list[Any]:
        if column is None or not row[column].strip():
            return []
        listed = list_of(row[column])
        return [entry if isinstance(entry, list) else str(entry) for entry in listed]


def _judged(query_id: str, right: Sequence[Any]) -> list[Row]:
    """The rows of relevant documents; a list among them is one target."""
    rows: list[Row] = []
    for number, entry in enumerate(right, start=1):
        if isinstance(entry, list):
            rows += [(query_id, str(doc), 1.0, str(number)) for doc in entry]
        else:
            rows.append((query_id, entry, 1.0, None))
    return rows


def _roles(there: Sequence[str], asked: Mapping[str, Any], path: Path) -> _Roles:
    """The columns asked for, once all of them are known to be there."""
    if not asked["queries"]:
        raise InputError(
            f"{path}: say which columns hold queries (queries=...). Its columns are {_shown(there)}. "
            "Other options: document, id, title, relevant, distractors, columns, separator, empty."
        )
    single = {
        role: _one(there, role, asked[role], path) for role in ("id", "title", "relevant", "distractors")
    }
    by_lower = {name.lower().strip(): name for name in there}
    single["id"] = single["id"] or next((by_lower[name] for name in _ID_NAMES if name in by_lower), None)
    queries, columns = (_several(there, role, asked[role], path) for role in ("queries", "columns"))
    document = asked["document"]
    if document == "all" and "all" not in there:
        cells = list(there)
    elif document == "rest" and "rest" not in there:
        taken = {*queries, *columns, *single.values()}
        cells = [name for name in there if name not in taken]
    else:
        cells = _several(there, "document", document, path)
    if not cells:
        raise InputError(
            f"{path}: no column is left for the document; name them (document=...), or document='all'."
        )
    return _Roles(queries=queries, document=cells, columns=columns, **single)


def _one(there: Sequence[str], role: str, name: Any, path: Path) -> str | None:
    return None if name is None else _several(there, role, name, path)[0]


def _several(there: Sequence[str], role: str, names: Any, path: Path) -> list[str]:
    """The columns named; a name may be written with other white space, as headers can hold line ends."""
    listed = [names] if isinstance(names, str) else names
    if not isinstance(listed, (list, tuple)) or not all(isinstance(name, str) for name in listed):
        raise InputError(f"{path}: {role}={names!r}: expected the name of a column, or a list of names.")
    plain = {" ".join(column.split()): column for column in there}
    found: list[str] = []
    for name in listed:
        column = name if name in there else plain.get(" ".join(name.split()))
        if column is None:
            raise InputError(
                f"{path} has no column {name!r} ({role}); its columns are {_shown(there)}.{did_you_mean(name, plain)}"
            )
        found.append(column)
    return found


def _shown(there: Sequence[str]) -> str:
    return ", ".join(" ".join(column.split()) for column in there)
