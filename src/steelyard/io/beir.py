"""BEIR: qrels with the header `query-id corpus-id score` and tabs, and datasets of corpus.jsonl, queries.jsonl and
qrels.tsv or qrels/test.tsv.

A document is `{"_id", "title", "text"}`, and may have `links` (ids), a `group` and anything else; a
query is `{"_id", "text"}` and anything else. Files may be compressed. A score below 0 marks a
distractor; a fourth column `target`, which is not BEIR's, names what the document satisfies.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import compress
from math import isnan
from pathlib import Path
from typing import Any

from steelyard.datasets.corpus import HALF_CHARACTER, Corpus, CorpusBuilder, QueriesBuilder, document_of, passage
from steelyard.datasets.dataset import Dataset, assemble, qrels_of_rows
from steelyard.datasets.findings import Finding
from steelyard.errors import InputError, NoQrelsError, did_you_mean
from steelyard.io.columns import QRELS_ROLES, known_roles
from steelyard.io.files import bare_name, errors_name, find_file, listing, required_file, write_file
from steelyard.io.formats import LINES, Detected, Format, Layout, Shape
from steelyard.io.frames import qrels_columns, qrels_of_table
from steelyard.io.json import json_lines
from steelyard.io.tables import qrels_table
from steelyard.io.text import Source, bad_lines, line_blocks, number, quick_json_lines, read_table, unique_names
from steelyard.io.trec import rows_to_write
from steelyard.notes import Note, note
from steelyard.qrels import Qrels
from steelyard.safe_text import has_lone_surrogate

_HEADER = {"query_id": "query-id", "doc_id": "corpus-id", "grade": "score"}
_DOCUMENT_FIELDS = ("_id", "title", "text", "links", "group", "metadata")
_QUERY_FIELDS = ("_id", "text", "metadata")
_BLOCK = 1 << 24
_BATCH = 1000  # lines that are parsed together; if one of them is wrong, each is parsed alone
EXPECTED_DOCUMENT = 'Expected one document per line, as {"_id": "d1", "title": "...", "text": "..."}.'
_EXPECTED_QUERY = 'Expected one query per line, as {"_id": "q1", "text": "..."}.'


def qrels_bytes(qrels: Qrels) -> bytes:
    """The qrels, with a target column where they have targets."""
    frame = rows_to_write(qrels, "beir").rename(_HEADER)
    return (frame if qrels.has_targets else frame.drop("target")).write_csv(separator="\t").encode()


def read_dataset(
    folder: Path,
    *,
    split: str | None = None,
    corpus: str | None = None,
    queries: str | None = None,
    qrels: str | None = None,
    unjudged: str | None = None,
    judged: bool = True,
) -> Dataset:
    """Read the folder; `corpus`, `queries` and `qrels` name files with other names.

    With `judged=False` no qrels are read, unless `qrels` or `split` name some.
    """
    documents, query_builder = CorpusBuilder(), QueriesBuilder()
    judgments, one_of_several, notes, findings = beir_qrels(folder, split, qrels, judged)
    read_objects(required_file(folder, corpus or "corpus.jsonl"), documents.add_record, EXPECTED_DOCUMENT)
    read_objects(required_file(folder, queries or "queries.jsonl"), query_builder.add_record, _EXPECTED_QUERY)
    policy = unjudged or ("drop" if one_of_several else "keep")
    return assemble(folder.resolve().name, documents, query_builder, judgments, policy, notes, findings)


def beir_qrels(
    folder: Path, split: str | None, named: str | None, judged: bool
) -> tuple[Qrels, bool, list[Note], tuple[Finding, ...]]:
    """The qrels of a folder, whether they are one split of several, a note on which was chosen, and findings."""
    if not judged and named is None and split is None:
        return Qrels.from_rows([]), False, [], ()
    path, one_of_several, notes = _qrels_file(folder, split, named)
    qrels, findings = _dataset_qrels(path)
    return qrels, one_of_several, notes, findings


def read_documents(path: Path, use: Callable[[str, str], None]) -> None:
    """Pass the id and the passage (title and text) of every document of a corpus.jsonl to `use`."""

    def read(record: dict[str, Any]) -> None:
        doc_id, text, title = document_of(record)[:3]
        text = passage(title, text)
        if has_lone_surrogate(doc_id) or has_lone_surrogate(text):
            raise InputError(HALF_CHARACTER)
        use(doc_id, text)

    read_objects(path, read, EXPECTED_DOCUMENT)


def read_objects(path: Path, use: Callable[[dict[str, Any]], None], expected: str) -> None:
    """Pass every JSON object of the lines to `use`; lines that are none, or that `use` refuses, are reported."""
    decoder = json.JSONDecoder(object_pairs_hook=unique_names)
    problems: list[tuple[int, str]] = []
    objects = 0
    for first, lines in _batches(path):
        records = quick_json_lines(lines)
        for place, line in enumerate(lines):
            if records is None and (not line or line.decode().isspace()):
                continue
            objects += 1
            try:
                record = decoder.decode(line.decode()) if records is None else records[place]
                if not isinstance(record, dict):
                    raise InputError(f"a {type(record).__name__}, not an object")
                use(record)
            except InputError as error:
                problems.append((first + place, str(error)))
            except json.JSONDecodeError as error:
                problems.append((first + place, f"not JSON at column {error.colno:,} ({error.msg})"))
            except RecursionError:
                problems.append((first + place, "nested too deep"))
    if problems:
        raise bad_lines(path, problems, expected)
    if not objects:
        raise InputError(f"the file is empty. {expected}", path)


def _batches(path: Path) -> Iterator[tuple[int, list[bytes]]]:
    """The lines of a file, as many at a time as are parsed together, with the number of the first."""
    number = 1
    for block in line_blocks(path, _BLOCK):
        lines = block.removesuffix(b"\n").split(b"\n")
        for start in range(0, len(lines), _BATCH):
            yield number + start, lines[start : start + _BATCH]
        number += len(lines)


def _dataset_qrels(path: Path) -> tuple[Qrels, tuple[Finding, ...]]:
    """The qrels of a table with a header, or of any other format that `Qrels.read` knows.

    A table may be empty below its header, and a distractor may also be relevant, which is a finding.
    """
    source = Source(path)
    lines = [line for line in source.head_lines if line.strip()]
    header = [name.strip('"') for name in lines[0].decode().strip().split("\t")] if lines else []
    roles = known_roles(header)
    if not {"query_id", "doc_id"} <= roles:
        return Qrels.read(path), ()
    if len(lines) == 1 and source.whole_head:
        return Qrels.from_rows([]), ()
    with errors_name(path):
        frame, notes = qrels_columns(read_table(source, "\t"), {})
        rows = frame.drop_nulls("doc_id").select(QRELS_ROLES).rows()
        qrels, findings = qrels_of_rows(rows, frame["query_id"].unique(maintain_order=True).to_list())
    qrels.notes = (*qrels.notes, *notes, *([] if "grade" in roles else [note("no-grades")]))
    return qrels, findings


def _qrels_file(folder: Path, split: str | None, named: str | None) -> tuple[Path, bool, list[Note]]:
    """The qrels file, whether it is one split of several, and a note on which was chosen."""
    if named is not None:
        return required_file(folder, named), split is not None, []
    splits = _splits(folder)
    there = ", ".join(sorted(splits))
    if split is not None:
        if split not in splits:
            choices = f"{there or 'none'}.{did_you_mean(split, splits)}"
            raise InputError(f"no qrels for split {split!r}; the splits are {choices}", folder)
        return splits[split], True, []
    if (plain := find_file(folder, "qrels.tsv")) is not None:
        return plain, False, []
    if "test" in splits or len(splits) == 1:
        chosen = "test" if "test" in splits else next(iter(splits))
        others = [name for name in sorted(splits) if name != chosen]
        return splits[chosen], True, [note("split-chosen", split=chosen, others=others)] if others else []
    if splits:
        raise InputError(f"there are qrels for {there} and none for test; select one (split=...).", folder)
    raise NoQrelsError(
        "there are no qrels: expected qrels.tsv, qrels/test.tsv or qrels_test.tsv, or a file that is named: "
        f"qrels=... in Python, {{path: {folder}, qrels: FILE}} for the dataset in bench.yaml and on the command line. "
        f"The folder holds {listing(folder)}. None are needed with `evidence` in bench.yaml, or with judged=False "
        "in Python.",
        folder,
    )


def _splits(folder: Path) -> dict[str, Path]:
    """Split to its qrels file: qrels/dev.tsv, qrels_dev.tsv, qrels-dev.tsv or qrels.dev.tsv."""
    splits: dict[str, Path] = {}
    inner = folder / "qrels"
    for path in sorted(inner.iterdir()) if inner.is_dir() else []:
        if bare_name(path).suffix in (".tsv", ".txt", ".trec"):
            splits.setdefault(bare_name(path).stem, path)
    for path in sorted(folder.iterdir()):
        bare = bare_name(path)
        if bare.suffix == ".tsv" and bare.stem.startswith(("qrels_", "qrels-", "qrels.")):
            splits.setdefault(bare.stem[len("qrels_") :], path)
    return splits


def write_dataset(dataset: Dataset, folder: Path) -> None:
    """Write the three files, each atomically."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder cannot be created ({error.strerror}); name another.", folder) from None
    table = qrels_table(dataset.qrels).drop_nulls("doc_id").rename(_HEADER)
    write_file(folder / "corpus.jsonl", json_lines(document_records(dataset.corpus)))
    write_file(folder / "queries.jsonl", json_lines(_query_records(dataset)))
    write_file(folder / "qrels.tsv", table.write_csv(separator="\t").encode())


def document_records(corpus: Corpus) -> Iterator[dict[str, Any]]:
    """The lines of corpus.jsonl."""
    links = corpus.links.values() if corpus.links is not None else ([] for _ in corpus)
    columns = (corpus.titles.values(), corpus.texts.items(), links, corpus.metadata.values())
    for title, (doc_id, text), linked, metadata in zip(*columns, strict=True):
        record: dict[str, Any] = {"_id": doc_id, "title": title, "text": text}
        if linked:
            record["links"] = linked
        if doc_id in corpus.groups:
            record["group"] = corpus.groups[doc_id]
        yield record | _rest(metadata, _DOCUMENT_FIELDS)


def _query_records(dataset: Dataset) -> Iterator[dict[str, Any]]:
    judged = dataset.qrels.judged
    unanswerable = set(compress(judged.query_ids, (judged.starts[1:] == judged.starts[:-1]).tolist()))
    for query_id, text in dataset.queries.items():
        columns = {name: values[query_id] for name, values in dataset.queries.columns.items() if query_id in values}
        if query_id in unanswerable:
            columns["answerable"] = False
        yield {"_id": query_id, "text": text} | _rest(columns, _QUERY_FIELDS)


def _rest(metadata: Mapping[str, Any], taken: tuple[str, ...]) -> dict[str, Any]:
    """Metadata beside the other fields; entries with the name of such a field go into an object `metadata`."""
    beside = {name: value for name, value in metadata.items() if name not in taken}
    inside = {name: value for name, value in metadata.items() if name in taken}
    return beside | ({"metadata": inside} if inside else {})


def _detect(shape: Shape) -> Detected | None:
    """BEIR's header has a score, as that of a run may: in qrels these are whole numbers."""
    if shape.form != "tsv" or shape.names[:3] != list(_HEADER.values()) or shape.names[3:] not in ([], ["target"]):
        return None
    rows = [line.split(b"\t") for line in shape.source.head.split(b"\n")[1:-1]][:LINES]
    scores = [number(fields[2].strip()) for fields in rows if len(fields) > 2]
    if all(score is None or isnan(score) or score % 1 == 0 for score in scores):
        return Detected("qrels", "beir", "qrels")
    return Detected("either", "tsv", "run", note("beir-header-with-fractions"))


def _is_dataset(path: Path) -> bool:
    return path.is_dir() and any(find_file(path, name) for name in ("corpus.jsonl", "queries.jsonl"))


FORMATS = (
    Format(
        name="beir",
        description="query-id corpus-id score, with that header and tabs",
        detect=_detect,
        reads={"qrels": lambda source, columns: qrels_of_table(read_table(source, "\t"), columns)},
        writes={"qrels": qrels_bytes},
        suffixes={"qrels": (".tsv",)},
        dataset=Layout(read_dataset, _is_dataset, "corpus.jsonl, queries.jsonl and qrels.tsv"),
    ),
)
