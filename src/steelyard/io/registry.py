"""Every format of runs and qrels: its name, and the functions that read and write it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeAlias

from steelyard.checks import unknown_name
from steelyard.errors import InputError
from steelyard.io.files import bare_name

Kind: TypeAlias = Literal["run", "qrels"]


@dataclass(frozen=True)
class Format:
    """One format. `reads` and `writes` name the functions of its module for 'run' and 'qrels'.

    A reader takes a Source and the columns named by role, and returns a Run or Qrels; a writer takes
    a Run or Qrels and returns bytes. `options` are passed to both. `packed`: it compresses by itself.
    """

    name: str
    module: str
    reads: Mapping[Kind, str]
    writes: Mapping[Kind, str]
    description: str
    packed: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    def reader(self, kind: Kind) -> Callable[..., Any]:
        """The function that reads a run or qrels; its module is imported now."""
        return self._function(self.reads[kind])

    def writer(self, kind: Kind) -> Callable[..., bytes]:
        """The function that gives the bytes of a run or qrels; its module is imported now."""
        return self._function(self.writes[kind])

    def _function(self, name: str) -> Callable[..., Any]:
        function = getattr(import_module(f"steelyard.io.{self.module}"), name)
        return partial(function, **self.options) if self.options else function


_READS: dict[Kind, str] = {"run": "read_run", "qrels": "read_qrels"}
_WRITES: dict[Kind, str] = {"run": "run_bytes", "qrels": "qrels_bytes"}
_READS_TEXT: dict[Kind, str] = {"run": "read_text_run", "qrels": "read_text_qrels"}
_WRITES_TEXT: dict[Kind, str] = {"run": "text_run_bytes", "qrels": "text_qrels_bytes"}

FORMATS: tuple[Format, ...] = (
    Format("trec-run", "trec", {"run": "read_run"}, {"run": "run_bytes"}, "query Q0 document rank score tag"),
    Format(
        "trec-qrels",
        "trec",
        {"qrels": "read_qrels"},
        {"qrels": "qrels_bytes"},
        "query iteration document grade",
    ),
    Format(
        "trec-diversity",
        "trec",
        {"qrels": "read_diversity_qrels"},
        {"qrels": "diversity_qrels_bytes"},
        "topic subtopic document judgment",
    ),
    Format("msmarco", "msmarco", _READS, _WRITES, "runs: query document rank; qrels: query 0 document grade"),
    Format(
        "beir",
        "beir",
        {"qrels": "read_qrels"},
        {"qrels": "qrels_bytes"},
        "query-id corpus-id score, with that header and tabs",
    ),
    Format(
        "json",
        "json",
        _READS,
        _WRITES,
        "{query: {document: number}}, {query: [ids]} or a list of records",
    ),
    Format(
        "jsonl",
        "json",
        {"run": "read_lines_run", "qrels": "read_lines_qrels"},
        {"run": "lines_run_bytes", "qrels": "lines_qrels_bytes"},
        "one JSON object per line, for a query or for a document",
    ),
    Format(
        "judgments",
        "json",
        {"qrels": "read_judgments"},
        {},
        "a judgments file: query_id, doc_id, grade and judge, one JSON object per line",
    ),
    Format(
        "csv",
        "tables",
        _READS_TEXT,
        _WRITES_TEXT,
        "a table with a header, separated by commas",
        options={"separator": ","},
    ),
    Format(
        "tsv",
        "tables",
        _READS_TEXT,
        _WRITES_TEXT,
        "a table with a header, separated by tabs",
        options={"separator": "\t"},
    ),
    Format(
        "parquet",
        "tables",
        {"run": "read_parquet_run", "qrels": "read_parquet_qrels"},
        {"run": "parquet_run_bytes", "qrels": "parquet_qrels_bytes"},
        "a Parquet table",
    ),
    Format(
        "autorag",
        "autorag",
        _READS,
        {},
        "AutoRAG's qa table (retrieval_gt) and result table (retrieved_ids)",
    ),
    Format(
        "llama-index",
        "llama_index",
        {"qrels": "read_qrels"},
        {},
        "LlamaIndex's EmbeddingQAFinetuneDataset, as JSON",
    ),
    Format("ragas", "ragas", _READS, {}, "ragas rows: retrieved_context_ids, reference_context_ids"),
    Format("multihop-rag", "multihop_rag", _READS, {}, "MultiHop-RAG questions (evidence_list) and results"),
    Format("mteb", "mteb", {"run": "read_run"}, {}, "MTEB predictions, alone or under subset and split"),
    Format("ranx", "ranx", _READS, _WRITES, "ranx's JSON: {query: {document: number}}"),
    Format(
        "ranx-lz4",
        "ranx",
        {"run": "read_lz4_run", "qrels": "read_lz4_qrels"},
        {"run": "lz4_run_bytes", "qrels": "lz4_qrels_bytes"},
        "ranx's .lz4: the same as CBOR, compressed",
        packed=True,
    ),
)
_ALIASES: dict[tuple[str, Kind], str] = {("trec", "run"): "trec-run", ("trec", "qrels"): "trec-qrels"}
_SHARED_SUFFIXES = {
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    **dict.fromkeys((".parquet", ".parq", ".pq"), "parquet"),
}
_SUFFIXES: dict[Kind, dict[str, str]] = {
    "run": {
        **_SHARED_SUFFIXES,
        **dict.fromkeys((".trec", ".run", ".txt", ".res", ""), "trec-run"),
        ".tsv": "tsv",
    },
    "qrels": {
        **_SHARED_SUFFIXES,
        **dict.fromkeys((".trec", ".qrels", ".qrel", ".txt", ""), "trec-qrels"),
        ".tsv": "beir",
    },
}


def formats() -> tuple[Format, ...]:
    """Every format, for a listing."""
    return FORMATS


def format_named(name: str, kind: Kind, doing: Literal["reads", "writes"]) -> Format:
    """The format of that name; an error if it does not read (or write) a run or qrels, as `kind` asks."""
    name = _ALIASES.get((name, kind), name)
    found = next((entry for entry in FORMATS if entry.name == name), None)
    able = [entry.name for entry in FORMATS if kind in getattr(entry, doing)]
    if found is None:
        raise InputError(unknown_name("format", name, able))
    if kind not in getattr(found, doing):
        verb = doing.removesuffix("s")
        raise InputError(f"format {name!r} cannot {verb} {plural(kind)}; these can: {', '.join(able)}.")
    return found


def format_of_name(path: Path, kind: Kind) -> Format:
    """The format that a file's suffix asks for when it is written; a suffix of compression is skipped.

    >>> format_of_name(Path("bm25.run.gz"), "run").name, format_of_name(Path("qrels.tsv"), "qrels").name
    ('trec-run', 'beir')
    """
    suffix = bare_name(path).suffix.lower()
    if path.suffix.lower() == ".lz4" and suffix in ("", ".json"):
        return format_named("ranx-lz4" if not suffix else "ranx", kind, "writes")
    name = _SUFFIXES[kind].get(suffix)
    if name is None:
        known = sorted(s for s in _SUFFIXES[kind] if s)
        raise InputError(
            f"unknown suffix {suffix!r}; expected one of {', '.join(known)}, or name the format.", path
        )
    return format_named(name, kind, "writes")


def plural(kind: Kind) -> str:
    """'runs' or 'qrels'."""
    return "runs" if kind == "run" else "qrels"


def singular(kind: Kind) -> str:
    """'a run' or 'qrels'."""
    return "a run" if kind == "run" else "qrels"
