"""Every format, in one place: its name, the module that reads and writes it, and what it holds."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeAlias

from steelyard.errors import InputError, did_you_mean
from steelyard.io.files import bare_name

Kind: TypeAlias = Literal["run", "qrels"]


@dataclass(frozen=True)
class Format:
    """One format. `reads` and `writes` name what it holds: 'run', 'qrels' or both.

    Its module has `read_run`, `read_qrels` (of a Source and columns) and `run_bytes`, `qrels_bytes`
    (what is written), those of them that it can. `packed`: it does its own compressing.
    """

    name: str
    module: str
    reads: tuple[Kind, ...]
    writes: tuple[Kind, ...]
    description: str
    packed: bool = False

    def load(self) -> Any:
        """The module that reads and writes it, imported when first needed."""
        return import_module(f"steelyard.io.{self.module}")


_BOTH: tuple[Kind, Kind] = ("run", "qrels")
FORMATS: tuple[Format, ...] = (
    Format("trec-run", "trec_run", ("run",), ("run",), "query Q0 document rank score tag"),
    Format("trec-qrels", "trec_qrels", ("qrels",), ("qrels",), "query iteration document grade"),
    Format("trec-diversity", "trec_diversity", ("qrels",), ("qrels",), "topic subtopic document judgment"),
    Format(
        "msmarco", "msmarco", _BOTH, _BOTH, "runs: query document rank; judgments: query 0 document grade"
    ),
    Format("beir", "beir", ("qrels",), ("qrels",), "query-id corpus-id score, with that header and tabs"),
    Format(
        "json",
        "json_object",
        _BOTH,
        _BOTH,
        "{query: {document: number}}, {query: [ids]} or a list of records",
    ),
    Format("jsonl", "json_lines", _BOTH, _BOTH, "one JSON object a line, for a query or for a document"),
    Format("csv", "comma", _BOTH, _BOTH, "a table with a header, commas between columns"),
    Format("tsv", "tab", _BOTH, _BOTH, "a table with a header, tabs between columns"),
    Format("parquet", "tables", _BOTH, _BOTH, "a Parquet table"),
    Format(
        "autorag", "autorag", _BOTH, (), "AutoRAG's qa table (retrieval_gt) and result table (retrieved_ids)"
    ),
    Format("llama-index", "llama_index", ("qrels",), (), "LlamaIndex's EmbeddingQAFinetuneDataset, as JSON"),
    Format("ragas", "ragas", _BOTH, (), "ragas rows: retrieved_context_ids, reference_context_ids"),
    Format("multihop-rag", "multihop_rag", _BOTH, (), "MultiHop-RAG questions (evidence_list) and results"),
    Format("mteb", "mteb", ("run",), (), "MTEB predictions, bare or under subset and split"),
    Format("ranx", "ranx", _BOTH, _BOTH, "ranx's JSON: {query: {document: number}}"),
    Format("ranx-lz4", "ranx_lz4", _BOTH, _BOTH, "ranx's .lz4: the same as CBOR, packed", packed=True),
)
_ALIASES: dict[tuple[str, str], str] = {("trec", "run"): "trec-run", ("trec", "qrels"): "trec-qrels"}
_SUFFIXES: dict[Kind, dict[str, str]] = {
    "run": {
        ".trec": "trec-run",
        ".run": "trec-run",
        ".txt": "trec-run",
        ".res": "trec-run",
        "": "trec-run",
        ".tsv": "tsv",
    },
    "qrels": {
        ".trec": "trec-qrels",
        ".qrels": "trec-qrels",
        ".qrel": "trec-qrels",
        ".txt": "trec-qrels",
        "": "trec-qrels",
        ".tsv": "beir",
    },
}
_SHARED_SUFFIXES = {
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
    ".parq": "parquet",
    ".pq": "parquet",
}


def formats() -> tuple[Format, ...]:
    """Every format, for a listing."""
    return FORMATS


def format_named(name: str, kind: Kind, doing: Literal["reads", "writes"]) -> Format:
    """The format of that name, once it is known to read (or write) what is asked."""
    name = _ALIASES.get((name, kind), name)
    found = next((entry for entry in FORMATS if entry.name == name), None)
    able = [entry.name for entry in FORMATS if kind in getattr(entry, doing)]
    if found is None:
        raise InputError(
            f"there is no format {name!r}; the formats are {', '.join(able)}.{did_you_mean(name, able)}"
        )
    if kind not in getattr(found, doing):
        what = "a run" if kind == "run" else "judgments"
        raise InputError(f"format {name!r} {doing} no {_noun(kind)}; {what} may be {', '.join(able)}.")
    return found


def format_of_name(path: Path, kind: Kind) -> Format:
    """The format a file's name asks for when it is written; the suffix of a compression is passed over.

    >>> format_of_name(Path("bm25.run.gz"), "run").name, format_of_name(Path("qrels.tsv"), "qrels").name
    ('trec-run', 'beir')
    """
    suffix = bare_name(path).suffix.lower()
    if path.suffix.lower() == ".lz4" and suffix in ("", ".json"):
        return format_named("ranx-lz4" if not suffix else "ranx", kind, "writes")
    name = {**_SHARED_SUFFIXES, **_SUFFIXES[kind]}.get(suffix)
    if name is None:
        known = sorted(s for s in {**_SHARED_SUFFIXES, **_SUFFIXES[kind]} if s)
        raise InputError(
            f"{path}: no format is known by the suffix {suffix!r}; the suffixes are {', '.join(known)}. "
            "Name the format to choose one."
        )
    return format_named(name, kind, "writes")


def _noun(kind: Kind) -> str:
    return "runs" if kind == "run" else "judgments"
