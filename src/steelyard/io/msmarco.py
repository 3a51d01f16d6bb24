"""MS MARCO: runs of three columns, `query document rank`, qrels, `query 0 document grade`, and datasets.

A run keeps the order of its ranks and has no scores. Qrels of three columns, without the constant
one, are also read. A dataset has collection.tsv (id, passage) or msmarco-docs.tsv (id, url, title,
body), queries*.tsv (id, text) and qrels*.tsv, all without headers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from steelyard.datasets.corpus import CorpusBuilder, QueriesBuilder
from steelyard.datasets.dataset import Dataset, assemble
from steelyard.errors import InputError, NoQrelsError, did_you_mean
from steelyard.io import trec
from steelyard.io.columns import check_roles
from steelyard.io.files import bare_name, find_file, listing, required_file, run_name
from steelyard.io.formats import Detected, Format, Layout, Shape, is_ranked
from steelyard.io.frames import run_of_frame
from steelyard.io.text import Source, bad_lines, finite, frame_columns, judgment_columns, line_blocks, number, shown
from steelyard.io.trec import check_every_query, check_ids
from steelyard.lazy import polars as pl
from steelyard.notes import note
from steelyard.qrels import Qrels
from steelyard.run import Run
from steelyard.wording import counted

_EXPECTED_RUN = "Expected 3 columns, separated by a tab: query document rank, the best rank 1."
_EXPECTED_QRELS = "Expected 4 columns, separated by a tab: query 0 document grade (or 3: query document grade)."
_EXPECTED_PASSAGES = "Expected an id, a tab and a text per line (or, for documents: id, url, title and body)."
_EXPECTED_QUERIES = "Expected an id, a tab and a text per line."


def _check_run(fields: list[bytes]) -> str | None:
    """What is wrong with one line of an MS MARCO run; None if nothing is."""
    if len(fields) != 3:
        return counted(len(fields), "column")
    rank = number(fields[2])
    return None if rank is not None and rank >= 1 and not rank % 1 else f"rank {shown(fields[2])} is not 1, 2, 3, ..."


def _run_passes(frame: pl.DataFrame) -> bool:
    """Whether every line of a block passes `_check_run`."""
    rank = frame["c2"].cast(pl.Float64, strict=False)
    if rank.null_count() or frame["c3"].null_count() < frame.height:
        return False
    return bool(((rank >= 1) & (rank % 1 == 0)).all())


def read_run(source: Source, columns: Mapping[str, str]) -> Run:
    """The run, in the order of its ranks."""
    check_roles(columns, (), "an MS MARCO run")

    def keep(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.select(query_id="c0", doc_id="c1", rank=pl.col("c2").cast(pl.Float64))

    table, notes = frame_columns(source.path, 4, _run_passes, keep, _check_run, _EXPECTED_RUN)
    run = run_of_frame(table, {}, run_name(source.path))
    run.notes += notes
    return run


def read_qrels(source: Source, columns: Mapping[str, str]) -> Qrels:
    """The qrels, of four columns or three."""
    check_roles(columns, (), "an MS MARCO qrels file")

    def check(fields: list[bytes]) -> str | None:
        return counted(len(fields), "column") if len(fields) != 3 else finite(fields[2], "grade")

    rows = (line.split() for line in source.head_lines)
    first = next((fields for fields in rows if fields and not fields[0].startswith(b"#")), [])
    if len(first) != 3:
        return trec.read_qrels(source, columns)
    table, notes = judgment_columns(source.path, ("query_id", "doc_id", "grade"), check, _EXPECTED_QRELS)
    qrels = Qrels.from_rows([(query, doc, grade, None) for query, doc, grade in table.iter_rows()])
    qrels.notes += (*notes, note("three-columns-are-qrels"))
    return qrels


def run_bytes(run: Run) -> bytes:
    """The run's order, best first; there is no column for scores."""
    frame = run.frame
    check_ids(frame, ("query_id", "doc_id"), "msmarco")
    check_every_query(run.empty, (), "msmarco")
    rows = frame.select("query_id", "doc_id", "rank").iter_rows()
    return "".join(f"{query}\t{doc}\t{rank}\n" for query, doc, rank in rows).encode()


def read_dataset(
    folder: Path,
    *,
    split: str | None = None,
    collection: str | None = None,
    queries: str | None = None,
    qrels: str | None = None,
    unjudged: str | None = None,
    judged: bool = True,
) -> Dataset:
    """Read the folder; `split` selects among several, as 'dev.small' of queries.dev.small.tsv.

    With `judged=False` no qrels are read, unless `qrels` names some.
    """
    names = (collection,) if collection else ("collection.tsv", "msmarco-docs.tsv", "docs.tsv")
    passages = next((path for name in names if (path := find_file(folder, name))), None)
    if passages is None:
        advice = f"name the file (collection=...). The folder holds {listing(folder)}."
        raise InputError(f"there is no {names[0]}; {advice}", folder)
    qrels_file = _of_split(folder, "qrels", split, qrels) if judged or qrels is not None else None
    split = split or (None if qrels_file is None else _split_of(qrels_file, "qrels"))
    queries_file = _of_split(folder, "queries", split, queries)
    documents, query_builder = CorpusBuilder(), QueriesBuilder()

    def add_page(doc_id: str, url: str, title: str, body: str) -> None:
        documents.add(doc_id, body, title, metadata={"url": url} if url else None)

    _read_rows(passages, {2: documents.add, 4: add_page}, _EXPECTED_PASSAGES)
    _read_rows(queries_file, {2: query_builder.add}, _EXPECTED_QUERIES)
    judged_documents = Qrels.from_rows([]) if qrels_file is None else Qrels.read(qrels_file, format="msmarco")
    policy = unjudged or ("keep" if qrels_file is None else "drop")
    return assemble(folder.resolve().name, documents, query_builder, judged_documents, policy)


def _of_split(folder: Path, kind: str, split: str | None, named: str | None) -> Path:
    """The file named, the one of the split, or the only one there is."""
    if named is not None:
        return required_file(folder, named)
    there = {
        _split_of(path, kind): path
        for path in sorted(folder.iterdir())
        if bare_name(path).suffix == ".tsv" and kind in bare_name(path).stem
    }
    if split is not None and split in there:
        return there[split]
    if len(there) == 1 and (split is None or kind == "queries"):
        return next(iter(there.values()))
    splits = ", ".join(name for name in there if name)
    if not there:
        message = f"there is no {kind}.tsv; name the file ({kind}=...). The folder holds {listing(folder)}."
    elif split is None:
        message = f"there are {kind} for {splits}; select one (split=...), or name the file ({kind}=...)."
    else:
        message = f"no {kind} for split {split!r}; the splits are {splits}.{did_you_mean(split, there)}"
    raise (NoQrelsError if kind == "qrels" and not there else InputError)(message, folder)


def _split_of(path: Path, kind: str) -> str:
    """'dev.small' of queries.dev.small.tsv: the name without the kind."""
    return bare_name(path).stem.replace(kind, "", 1).strip(".-_")


def _read_rows(path: Path, add_of: Mapping[int, Callable[..., object]], expected: str) -> None:
    """Pass the fields of every line to the function for their number; lines that it refuses are reported."""
    problems: list[tuple[int, str]] = []
    number = 0
    for block in line_blocks(path):
        for line in block.decode().removesuffix("\n").split("\n"):
            number += 1
            if not line or line.isspace():
                continue
            try:
                fields = line.removesuffix("\r").split("\t")
                if len(fields) not in add_of:
                    raise InputError(counted(len(fields), "column"))
                if not fields[0]:
                    raise InputError("the id is empty")
                add_of[len(fields)](*fields)
            except InputError as error:
                problems.append((number, str(error)))
    if problems:
        raise bad_lines(path, problems, expected)
    if not number:
        raise InputError(f"the file is empty. {expected}", path)


def _detect(shape: Shape) -> Detected | None:
    if shape.line_shape != "three":
        return None
    if is_ranked([fields for fields in shape.rows if len(fields) == 3]):
        return Detected("run", "msmarco", "run")
    return Detected("either", "msmarco", "qrels", note("three-columns"))


def _is_dataset(path: Path) -> bool:
    starts = ("collection.tsv", "msmarco-docs.tsv")
    return path.is_dir() and any(entry.name.lower().startswith(starts) for entry in path.iterdir())


FORMATS = (
    Format(
        name="msmarco",
        description="runs: query document rank; qrels: query 0 document grade",
        detect=_detect,
        reads={"run": read_run, "qrels": read_qrels},
        writes={"run": run_bytes, "qrels": lambda qrels: trec.qrels_bytes(qrels).replace(b" ", b"\t")},
        scores="dropped",
        dataset=Layout(read_dataset, _is_dataset, "collection.tsv, queries.tsv and qrels.tsv"),
    ),
)
