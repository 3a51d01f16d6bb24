"""BenchResult: the comparison, the runs and the cost of each retriever, and how the result folder is written."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from steelyard.benchmark import folder as files
from steelyard.benchmark.approximation import Approximation, approximation_table
from steelyard.benchmark.cache import COLUMNS, ReturnedTexts
from steelyard.benchmark.comparison import STAGES_FILE, StageRow, stages_schema
from steelyard.benchmark.config import Bench
from steelyard.benchmark.folder import DOCUMENTS, ResultFolder, read_frame, remove_files, run_files
from steelyard.benchmark.retrieval import SHOWN_IDS, CostRow
from steelyard.comparison.lists import ListComparison
from steelyard.comparison.result import Comparison
from steelyard.comparison.scores import ScoreTable
from steelyard.datasets import Dataset
from steelyard.errors import InputError
from steelyard.frames import parquet_bytes
from steelyard.io.files import not_written, write_file
from steelyard.lazy import polars as pl
from steelyard.masking import masked_settings
from steelyard.notes import Note, note, sentence
from steelyard.qrels import Qrels
from steelyard.quality.check import Check
from steelyard.report.page.page import write_page
from steelyard.report.page.view import COSTS
from steelyard.report.tables import Cell, Table, markdown
from steelyard.run import Run
from steelyard.safe_text import markdown_text, terminal_text, utf8
from steelyard.version import __version__

INDEXING = ("index s", "index MB", "peak MB")  # Columns of the cost that a bench without a corpus does not have.

TEXT_DEPTH = 20
"""The folder has the texts of documents within this rank of any run, and of judged documents.

If a measure reads texts, it has those of all retrieved documents, so that the measure can be computed again.
"""


@dataclass(frozen=True, eq=False)
class BenchResult:
    """The result of a bench: the comparison, the runs, the cost of each retriever, and the folder.

    evaluated: the comparison, or None if the dataset has no qrels. problems: errors in the dataset. removed: files of
    earlier results that were removed from the folder. chunk_notes: the notes on the chunkings, which are also among
    those of the comparison. rules: the qrels of all chunkings by each overlap rule. approximation: what approximate
    search costs, for every run over the vectors of a dense one. input_notes: the notes on the questions, the judgments,
    and the texts that retrievers returned. source: the bench.yaml. check: what is wrong with the data, by the checks of
    `check` that cost little. across_page: the address of the page over all datasets, if there are several.
    """

    bench: Bench
    dataset: Dataset
    runs: dict[str, Run]
    rows: tuple[CostRow, ...]
    evaluated: Comparison | None
    folder: Path
    problems: tuple[Note, ...] = ()
    removed: tuple[Path, ...] = ()
    chunk_notes: tuple[Note, ...] = ()
    rules: Mapping[str, Qrels] = field(default_factory=dict)
    approximation: tuple[Approximation, ...] = ()
    input_notes: tuple[Note, ...] = ()
    source: Path | None = None
    check: Check | None = None
    across_page: str = ""

    @property
    def in_folder(self) -> Path:
        """The folder; an error if it does not have this result any more, as after another bench in it."""
        records = (files.read_record(self.folder), json.loads(json.dumps(self.to_dict(), default=str)))
        for record in records:
            record["runs"] = [(row["run"], row["fingerprint"]) for row in record["runs"]]
        there, this = ([record[name] for name in ("settings", "dataset", "runs", "comparison")] for record in records)
        if there != this:
            raise InputError(
                f"{self.folder} has another result now: a later bench wrote it. "
                "Give each bench a folder of its own (bench(..., output=FOLDER)), and run this one again."
            )
        return self.folder

    @property
    def documents(self) -> pl.DataFrame:
        """The documents of the folder with their texts: doc_id, text, title, metadata (JSON)."""
        frame = read_frame(self.in_folder / DOCUMENTS)
        if frame is None:
            raise InputError(f"{self.folder / DOCUMENTS} cannot be read; run the bench again.")
        return frame

    @property
    def comparison(self) -> Comparison:
        """The comparison of the runs; an error if the dataset has no qrels."""
        return files.required_comparison(self.evaluated, self.folder)

    @cached_property
    def lists(self) -> ListComparison:
        """How far the lists of the runs agree; it needs no qrels."""
        return files.lists_of(self.runs)

    @property
    def failed(self) -> dict[str, int]:
        """The number of failed queries of each retriever that failed on any."""
        return {row.run: len(row.errors) for row in self.rows if row.errors}

    @property
    def broken(self) -> list[str]:
        """The retrievers that failed on every query."""
        return [row.run for row in self.rows if row.broken]

    @property
    def notes(self) -> list[Note]:
        """Notes on the dataset and on the retrievers: cached answers, failures, unknown documents."""
        notes = [] if self.evaluated is not None else [note("no-qrels", command=files.command_of("judge", self.folder))]
        notes += self.input_notes
        if cached := [row.run for row in self.rows if row.cached]:
            notes.append(note("answers-cached", runs=cached))
        filtered = [row.run for row in self.rows if row.settings.get("filter") is not None]
        if filtered and len(filtered) < len(self.rows):
            notes.append(note("filtered-runs", runs=filtered))
        approximate = [row for row in self.rows if isinstance(row.settings.get("of"), Mapping) and not row.broken]
        compared = {search.run for search in self.approximation}
        alone = [row.run for row in approximate if row.run not in compared]
        if alone and self.evaluated is not None:
            notes.append(note("no-exact-search", runs=alone))
        for row in self.rows:
            if row.errors:
                query, error = next(iter(row.errors.items()))
                counts = {"failed": len(row.errors), "queries": len(row.errors) + row.queries}
                notes.append(note("retriever-failed", run=row.run, **counts, query=query, error=error.rstrip(".")))
            if short := self._short(row):
                notes.append(short)
            if row.unknown_documents:
                prefix = f"{row.chunker}:" if row.chunker else ""
                corpus_ids = (doc for doc in self.dataset.corpus if doc.startswith(prefix))
                details = {"count": row.unknown_documents, "examples": row.unknown_examples}
                corpus = tuple(islice(corpus_ids, SHOWN_IDS))
                notes.append(note("unknown-documents", run=row.run, **details, corpus=corpus, id_hint=row.id_hint))
        return notes

    def _short(self, row: CostRow) -> Note | None:
        """The note on lists that are all shorter than asked: by half, or than a measure reads."""
        asked = min(self.bench.depth, row.chunks or len(self.dataset.corpus) or self.bench.depth)
        if row.longest is None or row.longest >= asked or row.settings.get("filter") is not None:
            return None
        tables = self.evaluated.score_tables if self.evaluated is not None else ()
        measures = [c.measure for table in tables for c in table.columns if c.measure is not None]
        cutoffs = [measure.cutoff for measure in measures if measure.definition.cutoff_kind == "rank"]
        is_read = any(cutoff is not None and row.longest < cutoff for cutoff in cutoffs)
        if not is_read and row.longest > asked / 2:
            return None
        return note("short-lists", run=row.run, longest=row.longest, asked=asked)

    @property
    def removal_note(self) -> Note | None:
        """The files that were removed from the folder: runs by name, the others by their number."""
        if not self.removed:
            return None
        runs = [str(path.relative_to(self.folder)) for path in self.removed if path.parent.name == "runs"]
        return note("files-removed", folder=str(self.folder), runs=runs, answers=len(self.removed) - len(runs))

    @property
    def cost_table(self) -> Table:
        """One row per retriever: time per query, throughput, and indexing if there is a corpus."""
        costs = [cost for cost in COSTS if len(self.dataset.corpus) or cost[0] not in INDEXING]
        rows: list[list[Cell]] = []
        for row in self.rows:
            values = ((getattr(row, name), factor) for _, name, factor, _ in costs)
            scaled = (None if value is None else float(value) * factor for value, factor in values)
            rows.append([row.run, *scaled, len(row.errors)])
        return Table(["run", *(cost[0] for cost in costs), "errors"], rows, digits=2)

    @property
    def chunk_table(self) -> Table | None:
        """The number of chunks of each chunking and their mean size; None without chunkers."""
        if not self.bench.chunkers:
            return None
        rows: dict[str | None, list[Cell]] = {r.chunker: [r.chunker, r.chunks, r.chunk_tokens] for r in self.rows}
        return Table(["chunking", "chunks", "mean tokens"], list(rows.values()), digits=1)

    @property
    def approximation_table(self) -> Table | None:
        """What approximate search costs, one row per run; None if no run is compared with exact search."""
        return approximation_table(self.approximation)

    def to_markdown(self) -> str:
        """The comparison in Markdown, with the cost of each retriever and the notes."""
        chunks, approximate = self.chunk_table, self.approximation_table
        costs = [f"- {markdown_text(_cost_line(row))}" for row in self.rows if row.p50_seconds is not None]
        errors = (f"    {terminal_text(str(problem))}".replace("\n", "\n    ") for problem in self.problems)
        parts = [
            (self.evaluated or self.lists).to_markdown(),
            *([] if chunks is None else ["## Chunkings", markdown(chunks)]),
            *([] if approximate is None else ["## What approximate search costs", markdown(approximate)]),
            "## Cost",
            "\n".join(costs),
            "\n".join(f"- {markdown_text(sentence(note))}" for note in self.notes),
            *(["## Errors in the dataset", *errors] if self.problems else []),
        ]
        return "\n\n".join(part for part in parts if part)

    def to_dict(self) -> dict[str, Any]:
        """As in result.json."""
        data, dataset = self.dataset, self.bench.dataset
        machine = {"system": platform.platform(), "python": platform.python_version(), "processor": platform.machine()}
        parts = {name: getattr(self.bench, name) for name in ("queries", "corpus", "qrels")}
        others = {"dataset", "datasets", "history", "retrievers", "chunkers", "evidence", *parts}
        settings = self.bench.model_dump(mode="json", exclude=others)
        settings |= {
            name: masked_settings(part) if isinstance(part, (str, Mapping)) else type(part).__name__
            for name, part in parts.items()
            if part is not None
        }
        settings |= {"gate": self.bench.gate.rules, "allow_failed": self.bench.gate.allow_failed}
        settings |= {name: getattr(data.qrels, name) for name in ("relevant_from", "labelled_by", "from_judgments")}
        settings["chunkers"] = list(dict.fromkeys(row.chunker for row in self.rows if row.chunker))
        settings["evidence"] = None if self.bench.evidence is None else str(self.bench.evidence)
        for name, file in (("history", self.bench.history), ("bench", self.source)):
            if file is not None:
                settings[name] = Path(os.path.relpath(file, self.folder)).as_posix()
        settings["dataset"] = dataset if isinstance(dataset, (dict, str)) else str(dataset)
        return {
            "steelyard": __version__,
            "settings": settings,
            "dataset": {"name": data.name, "fingerprint": data.fingerprint, "documents": len(data.corpus)},
            "machine": machine,
            "runs": [
                {**asdict(row), "fingerprint": self.runs[row.run].fingerprint, "file": file}
                for row, file in zip(self.rows, run_files([row.run for row in self.rows]), strict=True)
            ],
            "comparison": None if self.evaluated is None else self.evaluated.to_dict(),
            **({"lists": self.lists.to_dict()} if self.evaluated is None else {}),
            **({"approximation": [asdict(search) for search in self.approximation]} if self.approximation else {}),
            **({"check": self.check.to_dict()} if self.check is not None else {}),
            "problems": [problem.to_dict() for problem in self.problems],
            "chunk_notes": [note.to_dict() for note in self.chunk_notes],
            "notes": [note.to_dict() for note in self.notes],
        }

    def __repr__(self) -> str:
        notes = self.notes if self.removal_note is None else [*self.notes, self.removal_note]
        lines = [repr(self.evaluated or self.lists), *map(str, self.problems), *map(sentence, notes)]
        return "\n".join([*lines, f"The result is in {self.folder}."])

    def write(
        self, leftovers: Collection[Path] = (), texts: ReturnedTexts | None = None, stages: Iterable[StageRow] = ()
    ) -> list[Path]:
        """Write the folder with the `texts` and `stages` that came back, each file whole or not, result.json last; the
        leftovers that were removed."""
        folder = self.folder
        (folder / "runs").mkdir(parents=True, exist_ok=True)
        for run, file in zip(self.runs.values(), run_files(list(self.runs)), strict=True):
            run.write(folder / "runs" / file)
        write_file(folder / "queries.parquet", parquet_bytes(_queries_frame(self.dataset)))
        write_rows(self._documents(texts), folder / DOCUMENTS, dict.fromkeys(COLUMNS, pl.String))
        if any(row.stages for row in self.rows):
            write_rows(stages, folder / STAGES_FILE, stages_schema())
        else:
            remove_files([folder / STAGES_FILE])
        write_file(folder / "leaderboard.md", utf8(self.to_markdown() + "\n"))
        record = json.dumps(self.to_dict(), indent=1, ensure_ascii=False, default=str)
        if self.evaluated is None:
            remove_files([folder / name for name in files.EVALUATION_FILES])
        else:
            write_file(folder / "scores.parquet", parquet_bytes(_scores_frame(self.evaluated.score_tables)))
            write_file(folder / "pairs.parquet", parquet_bytes(self.evaluated.pairs))
            self.dataset.qrels.write(folder / "qrels.parquet")
            ranges = self.dataset.qrels.ranges
            scores = {rule: _scores_frame(tables) for rule, tables in self.evaluated.claims.rules.items()}
            frames = {
                files.RANGES: None if ranges is None else ranges.frame,
                files.OVERLAPS_FILE: files.rules_frame({rule: qrels.frame for rule, qrels in self.rules.items()}),
                files.OVERLAP_SCORES: files.rules_frame(scores),
            }
            remove_files([folder / name for name, frame in frames.items() if frame is None])
            for name, frame in ((name, frame) for name, frame in frames.items() if frame is not None):
                write_file(folder / name, parquet_bytes(frame))
            subject = replace(self._written(json.loads(record)).subject(), across_page=self.across_page)
            write_page(subject, folder / "report.html")
        removed = remove_files(leftovers)  # A bench that is killed here finds them again by the earlier result.json.
        write_file(folder / "result.json", utf8(record))
        return removed

    def to_html(
        self, path: str | Path | None = None, *, everything: bool = False, charts: str | Path | None = None
    ) -> str:
        """The tables as an HTML fragment; with a path, the report page is written there.

        With `charts`, every chart is also written as PNG and SVG to that folder.
        """
        if path is None:
            return (self.evaluated or self.lists).to_html()
        written = self._written(files.read_record(self.in_folder))
        return written.to_html(path, everything=everything, charts=charts)

    def _repr_html_(self) -> str:
        return self.to_html()

    def _written(self, record: dict[str, Any]) -> ResultFolder:
        """The folder as it is read back, so that its page is the same."""
        documents = files.documents_of(read_frame(self.folder / DOCUMENTS))
        texts = (*files.queries_of(_queries_frame(self.dataset)), documents)
        return ResultFolder(self.folder, record, self.runs, self.dataset.qrels, self.evaluated, *texts)

    def _documents(self, texts: ReturnedTexts | None) -> Iterator[tuple[str, str, str, str]]:
        """The documents with their texts: judged ones and those near the top of a run, and all that came back."""
        selected = set(self.dataset.qrels.judged.doc_ids)
        returned: set[str] = set(selected)
        for run in self.runs.values():
            near = run.frame if run.texts is not None else run.frame.filter(pl.col("rank") <= TEXT_DEPTH)
            selected |= set(near["doc_id"].to_list())
            returned |= set(run.frame["doc_id"].to_list())
        corpus = self.dataset.corpus
        for doc in corpus:
            if doc in selected:
                metadata = corpus.metadata[doc]
                shown = json.dumps(metadata, ensure_ascii=False, default=str) if metadata else ""
                yield doc, corpus.texts[doc], corpus.titles.get(doc, ""), shown
        if texts is not None:
            yield from texts.rows(sorted(doc for doc in returned if doc not in corpus))


def _cost_line(row: CostRow) -> str:
    """The cost of a retriever on one line."""
    costs = [(getattr(row, name), factor, text) for _, name, factor, text in COSTS]
    return f"{row.run}: " + ", ".join(text.format(value * factor) for value, factor, text in costs if value is not None)


def _scores_frame(tables: Sequence[ScoreTable]) -> pl.DataFrame:
    return pl.concat(
        pl.DataFrame(
            {
                "run": [run] * len(table.queries),
                "query_id": list(table.queries),
                "measure": [column.key + ("" if table.k is None else f" at {table.k}")] * len(table.queries),
                "value": values,
            }
        )
        for table in tables
        for run, rows in zip(table.runs, table.values, strict=True)
        for column, values in zip(table.columns, rows, strict=True)
    )


def _queries_frame(dataset: Dataset) -> pl.DataFrame:
    queries = dataset.queries
    data: dict[str, Any] = {"query_id": list(queries), "text": list(queries.values())}
    for name, values in queries.columns.items():
        if name not in data:
            data[name] = [None if query not in values else str(values[query]) for query in queries]
    return pl.DataFrame(data, schema=dict.fromkeys(data, pl.String))


_ROWS, _CHARACTERS = 4_000, 4_000_000  # The size of a part of a Parquet file.
_ID = 20  # Characters that are counted for an id in a list.


def write_rows(rows: Iterable[tuple[Any, ...]], path: Path, schema: Mapping[str, Any]) -> None:
    """Write rows as Parquet, in parts of a few megabytes that become row groups; a complete file replaces the old."""
    parts: list[Path] = []
    count = 0
    new_path = path.with_name(f"{path.name}.new")
    try:
        for part in _parts(rows):
            parts.append(path.with_name(f"{path.name}.part{len(parts)}"))
            pl.DataFrame(part, schema=schema, orient="row").write_parquet(parts[-1])
            count += len(part)
        if len(parts) < 2:
            pl.DataFrame(schema=schema).write_parquet(new_path) if not parts else os.replace(parts.pop(), new_path)
        else:
            pl.scan_parquet(parts).sink_parquet(new_path, row_group_size=-(-count // len(parts)))
        os.replace(new_path, path)
    except OSError as error:
        raise not_written(path, error) from None
    finally:
        for file in parts:
            with suppress(OSError):
                file.unlink()


def _parts(rows: Iterable[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    """Rows in parts with at most `_ROWS` rows, and not many more than `_CHARACTERS` characters."""
    part: list[tuple[Any, ...]] = []
    size = 0
    for row in rows:
        part.append(row)
        size += sum(len(cell) * (1 if isinstance(cell, str) else _ID) for cell in row if isinstance(cell, str | list))
        if len(part) == _ROWS or size >= _CHARACTERS:
            yield part
            part, size = [], 0
    if part:
        yield part
