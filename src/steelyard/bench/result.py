"""BenchResult: what a bench found, and the folder it is kept in."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.bench.cache import Answers
from steelyard.bench.config import Bench
from steelyard.bench.folder import failed_of, subject_of
from steelyard.comparison.result import Comparison
from steelyard.datasets import Dataset
from steelyard.io.files import write_file
from steelyard.report.page import write_page
from steelyard.report.page.subject import Subject
from steelyard.report.tables import Cell, Table, markdown
from steelyard.run import Run
from steelyard.version import __version__
from steelyard.wording import counted

SHOWN_IDS = 2
"""Ids that a message shows of either side."""

SHOWN_DEPTH = 20
"""Documents whose texts go into the folder: those within this rank of any run, and the judged ones.

Where a measure reads texts, those of all documents that came back, so that it can be made again.
"""


@dataclass(frozen=True)
class Row:
    """What one retriever cost, and what went wrong with it."""

    run: str
    retriever: str
    settings: dict[str, Any]
    queries: int
    mean_seconds: float | None
    p50_seconds: float | None
    p95_seconds: float | None
    p99_seconds: float | None
    queries_per_second: float | None
    index_seconds: float | None
    index_bytes: int | None
    peak_bytes: int | None
    errors: dict[str, str]
    unknown_documents: int
    cached: bool
    chunker: str | None = None
    chunks: int | None = None
    chunk_tokens: float | None = None
    answers: str | None = None
    unknown_examples: tuple[str, ...] = ()
    id_hint: str | None = None

    @property
    def failed(self) -> str:
        """On how many of its queries it failed, as in `2 of 6`."""
        return failed_of(len(self.errors), self.queries)

    @property
    def broken(self) -> bool:
        """Whether it failed on every query."""
        return bool(self.errors) and not self.queries

    @classmethod
    def of(
        cls,
        run: str,
        retriever: str,
        settings: dict[str, Any],
        answers: Answers,
        unknown: Sequence[str],
        cached: bool,
    ) -> Row:
        """A row from a retriever's answers; `unknown` are the documents of them that are not in the corpus."""
        taken = np.array(list(answers.seconds.values()))
        points = np.percentile(taken, [50, 95, 99]).tolist() if len(taken) else [None] * 3
        return cls(
            run=run,
            retriever=retriever,
            settings=settings,
            queries=len(answers.lists),
            mean_seconds=float(taken.mean()) if len(taken) else None,
            p50_seconds=points[0],
            p95_seconds=points[1],
            p99_seconds=points[2],
            queries_per_second=answers.cost.get("queries_per_second"),
            index_seconds=answers.cost.get("index_seconds"),
            index_bytes=answers.cost.get("index_bytes"),
            peak_bytes=answers.cost.get("peak_bytes"),
            errors=dict(answers.errors),
            unknown_documents=len(unknown),
            cached=cached,
            unknown_examples=tuple(dict.fromkeys(unknown))[:SHOWN_IDS],
            id_hint=answers.id_hint,
        )


@dataclass(frozen=True, eq=False)
class BenchResult:
    """The comparison, the runs, what each retriever cost, and the folder that keeps it all.

    `problems` are the errors of the answer key; `removed` the files of earlier results that were taken out
    of the folder; `chunk_notes` what to know of the chunkings, which is among the comparison's notes.
    """

    bench: Bench
    dataset: Dataset
    runs: dict[str, Run]
    rows: tuple[Row, ...]
    comparison: Comparison
    folder: Path
    problems: tuple[str, ...] = ()
    removed: tuple[Path, ...] = ()
    chunk_notes: tuple[str, ...] = ()

    @property
    def failed(self) -> dict[str, int]:
        """On how many queries each retriever failed that failed on any."""
        return {row.run: len(row.errors) for row in self.rows if row.errors}

    @property
    def broken(self) -> list[str]:
        """The retrievers that failed on every query: their numbers say nothing of them."""
        return [row.run for row in self.rows if row.broken]

    @property
    def removal(self) -> str:
        """What was removed from the folder, in a sentence: runs by name, answers by number; "" where nothing was."""
        runs = [str(path.relative_to(self.folder)) for path in self.removed if path.parent.name == "runs"]
        answers = len(self.removed) - len(runs)
        kept = [f"{counted(answers, 'file')} of old answers"] if answers else []
        files = ", ".join([*runs, *kept])
        return f"Removed from {self.folder}, as this bench no longer names them: {files}." if files else ""

    @property
    def cost_table(self) -> Table:
        """One row a retriever: time a query, throughput, indexing."""
        columns = [
            "run",
            "p50 ms",
            "p95 ms",
            "p99 ms",
            "queries/s",
            "index s",
            "index MB",
            "peak MB",
            "errors",
        ]
        rows = [
            [
                row.run,
                _scaled(row.p50_seconds, 1e3),
                _scaled(row.p95_seconds, 1e3),
                _scaled(row.p99_seconds, 1e3),
                _scaled(row.queries_per_second, 1),
                _scaled(row.index_seconds, 1),
                _scaled(row.index_bytes, 1e-6),
                _scaled(row.peak_bytes, 1e-6),
                len(row.errors),
            ]
            for row in self.rows
        ]
        return Table(columns, rows, digits=2)

    @property
    def chunk_table(self) -> Table | None:
        """Of a bench with chunkers: how many chunks each made, and their mean size."""
        if not self.bench.chunkers:
            return None
        sizes = {row.chunker: (row.chunks, _scaled(row.chunk_tokens, 1)) for row in self.rows}
        rows: list[list[Cell]] = [[label, *size] for label, size in sizes.items()]
        return Table(["chunking", "chunks", "mean tokens"], rows, digits=1)

    def remarks(self) -> list[str]:
        """What a reader should know of how the runs came about."""
        cached = [row.run for row in self.rows if row.cached]
        said = [f"Answers and times from before, not asked again: {', '.join(cached)}."] if cached else []
        for row in self.rows:
            if row.errors:
                query, error = next(iter(row.errors.items()))
                said.append(f"{row.run} failed on {row.failed} queries (the first, {query}: {error}).")
            if row.unknown_documents:
                said.append(self._unknown_examples(row))
        return said

    def _unknown_examples(self, row: Row) -> str:
        """What to say of a retriever whose documents are not in the corpus, and what to do about it."""
        inside = f"{row.chunker}:" if row.chunker else ""
        known = islice((doc for doc in self.dataset.corpus if doc.startswith(inside)), SHOWN_IDS)
        said = (
            f"{row.run} returned {counted(row.unknown_documents, 'document that is', 'documents that are')} "
            f"not in the corpus: it has {', '.join(map(repr, row.unknown_examples))}, "
            f"the corpus {', '.join(map(repr, known))}."
        )
        if row.id_hint == "hash":
            return f"{said} The texts are in the corpus: set `id: hash`."
        return (
            said
            if row.id_hint is None
            else f"{said} What is in the corpus is {row.id_hint}: set `id: {row.id_hint}`."
        )

    def to_markdown(self) -> str:
        """The comparison in Markdown, with what each retriever cost."""
        costs = [f"- {_cost(row)}" for row in self.rows if row.p50_seconds is not None]
        said = [f"- {line}" for line in self.remarks()]
        wrong = ["## The answer key", *(f"    {text}".replace("\n", "\n    ") for text in self.problems)]
        chunked = self.chunk_table
        beside = [] if chunked is None else ["## Chunkings", markdown(chunked)]
        parts = [self.comparison.to_markdown(), *beside, "## Cost", "\n".join(costs), "\n".join(said)]
        parts += wrong if self.problems else []
        return "\n\n".join(part for part in parts if part)

    def to_dict(self) -> dict[str, Any]:
        """As result.json holds it."""
        settings = self.bench.model_dump(
            mode="json", exclude={"dataset", "retrievers", "chunkers", "evidence"}
        )
        settings |= {"gate": self.bench.gate.rules, "allow_failed": self.bench.gate.allow_failed}
        settings["chunkers"] = list(dict.fromkeys(row.chunker for row in self.rows if row.chunker))
        settings["evidence"] = None if self.bench.evidence is None else str(self.bench.evidence)
        settings["dataset"] = (
            str(self.bench.dataset) if not isinstance(self.bench.dataset, (dict, str)) else self.bench.dataset
        )
        return {
            "steelyard": __version__,
            "settings": settings,
            "dataset": {
                "name": self.dataset.name,
                "fingerprint": self.dataset.fingerprint,
                "documents": len(self.dataset.corpus),
            },
            "machine": {
                "system": platform.platform(),
                "python": platform.python_version(),
                "processor": platform.machine(),
            },
            "runs": [
                {**asdict(row), "fingerprint": self.runs[row.run].fingerprint, "file": file}
                for row, file in zip(self.rows, run_files([row.run for row in self.rows]), strict=True)
            ],
            "comparison": self.comparison.to_dict(),
            "problems": list(self.problems),
            "chunk_notes": list(self.chunk_notes),
        }

    def __repr__(self) -> str:
        said = [*self.problems, *self.remarks(), self.removal, f"The result is in {self.folder}."]
        return "\n".join([repr(self.comparison), *(line for line in said if line)])

    def write(self) -> None:
        """Write the folder, file by file, each wholly or not at all; result.json comes last."""
        import polars as pl

        folder = self.folder
        (folder / "runs").mkdir(parents=True, exist_ok=True)
        for run, file in zip(self.runs.values(), run_files(list(self.runs)), strict=True):
            run.write(folder / "runs" / file)
        scores = pl.concat(_scores(board) for board in self.comparison.score_tables)
        _write_frame(scores, folder / "scores.parquet")
        _write_frame(self.comparison.pairs, folder / "pairs.parquet")
        self.dataset.qrels.write(folder / "qrels.parquet")
        _write_frame(_queries(self.dataset), folder / "queries.parquet")
        documents = self._documents()
        _write_frame(documents, folder / "documents.parquet")
        write_file(folder / "leaderboard.md", (self.to_markdown() + "\n").encode())
        record = json.dumps(self.to_dict(), indent=1, ensure_ascii=False, default=str)
        write_page(self._subject(json.loads(record), documents), folder / "report.html")
        write_file(folder / "result.json", record.encode())

    def to_html(
        self, path: str | Path, *, everything: bool = False, charts: str | Path | None = None
    ) -> None:
        """Write the report page; with `charts`, also every chart as PNG and SVG in that folder."""
        record = json.loads(json.dumps(self.to_dict(), default=str))
        write_page(self._subject(record, self._documents()), path, everything=everything, charts=charts)

    def _repr_html_(self) -> str:
        return self.comparison.to_html()

    def _subject(self, record: dict[str, Any], documents: Any) -> Subject:
        """What the page is about: the same as that of the folder read back."""
        queries = _queries(self.dataset)
        ids = queries["query_id"].to_list()
        columns = {
            name: {
                query: value
                for query, value in zip(ids, queries[name].to_list(), strict=True)
                if value is not None
            }
            for name in queries.columns
            if name not in ("query_id", "text")
        }
        texts = {doc: (title, text) for doc, title, text in documents.iter_rows()}
        asked = dict(zip(ids, queries["text"].to_list(), strict=True))
        return subject_of(self.folder, record, self.comparison, asked, columns, texts)

    def _documents(self) -> Any:
        """The documents a reader may want to look at: judged, or near the top of a run."""
        import polars as pl

        wanted = set(self.dataset.qrels.judged.doc_ids)
        for run in self.runs.values():
            near = run.frame if run.texts is not None else run.frame.filter(pl.col("rank") <= SHOWN_DEPTH)
            wanted |= set(near["doc_id"].to_list())
        corpus = self.dataset.corpus
        ids = [doc for doc in corpus if doc in wanted]
        rows = {
            "doc_id": ids,
            "title": [corpus.titles.get(doc, "") for doc in ids],
            "text": [corpus.texts[doc] for doc in ids],
        }
        return pl.DataFrame(rows, schema={"doc_id": pl.String, "title": pl.String, "text": pl.String})


def safe_name(name: str) -> str:
    """A run's name as a file name.

    >>> safe_name("bm25 k1=1.2/b")
    'bm25_k1=1.2_b'
    """
    return "".join(c if c.isalnum() or c in "-_.=+" else "_" for c in name)


def _cost(row: Row) -> str:
    """What a retriever cost, in a line."""
    parts = [
        (row.p50_seconds, 1e3, "p50 {:.2f} ms"),
        (row.p95_seconds, 1e3, "p95 {:.2f} ms"),
        (row.p99_seconds, 1e3, "p99 {:.2f} ms"),
        (row.queries_per_second, 1, "{:,.0f} queries/s at once"),
        (row.index_seconds, 1, "indexed in {:.2f} s"),
        (row.index_bytes, 1e-6, "index {:.2f} MB"),
        (row.peak_bytes, 1e-6, "peak {:.2f} MB"),
    ]
    return f"{row.run}: " + ", ".join(
        text.format(value * by) for value, by, text in parts if value is not None
    )


def run_files(names: Sequence[str]) -> list[str]:
    """A file name of its own for every run.

    >>> run_files(["a/b", "a_b"])
    ['a_b.parquet', 'a_b-2.parquet']
    """
    files: list[str] = []
    for name in names:
        stem, number = safe_name(name), 1
        file = f"{stem}.parquet"
        while file.lower() in {known.lower() for known in files}:
            number += 1
            file = f"{stem}-{number}.parquet"
        files.append(file)
    return files


def _scaled(value: float | None, by: float) -> float | None:
    return None if value is None else float(value) * by


def _scores(board: Any) -> Any:
    import polars as pl

    label = "" if board.k is None else f" at {board.k}"
    size = len(board.queries)
    parts = [
        pl.DataFrame(
            {
                "run": [run] * size,
                "query_id": list(board.queries),
                "measure": [column.key + label] * size,
                "value": values,
            }
        )
        for run, rows in zip(board.runs, board.values, strict=True)
        for column, values in zip(board.columns, rows, strict=True)
    ]
    return pl.concat(parts)


def _queries(dataset: Dataset) -> Any:
    import polars as pl

    columns = {
        name: [None if query not in values else str(values[query]) for query in dataset.queries]
        for name, values in dataset.queries.columns.items()
        if name not in ("query_id", "text")
    }
    made = {"query_id": list(dataset.queries), "text": list(dataset.queries.values()), **columns}
    return pl.DataFrame(made, schema=dict.fromkeys(made, pl.String))


def _write_frame(frame: Any, path: Path) -> None:
    from io import BytesIO

    buffer = BytesIO()
    frame.write_parquet(buffer)
    write_file(path, buffer.getvalue())
