"""The JSONL trio, BEIR's layout: corpus.jsonl, queries.jsonl, and judgments in qrels.tsv or qrels/test.tsv.

A document is `{"_id", "title", "text"}`, and may have `links` (ids), a `group` and anything else; a
query is `{"_id", "text"}` and anything else. Files may be compressed. A judgment's score below 0
is a distractor; a fourth column, `target`, names what the document satisfies.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.datasets.corpus import CorpusBuilder
from steelyard.datasets.dataset import assemble, qrels_of_rows
from steelyard.datasets.fields import Finding
from steelyard.datasets.queries import QueriesBuilder
from steelyard.datasets.reading import find_file, listing, required_file
from steelyard.errors import InputError, NoQrelsError, did_you_mean
from steelyard.io.files import bare_name
from steelyard.qrels import Qrels

if TYPE_CHECKING:
    from steelyard.datasets.dataset import Dataset

_QRELS_HEADER = {"query_id": "query-id", "doc_id": "corpus-id", "grade": "score"}
_DOCUMENT_FIELDS = ("_id", "title", "text", "links", "group", "metadata")
_QUERY_FIELDS = ("_id", "text", "metadata")
_EXPECTED_DOCUMENT = 'Expected one document a line, as {"_id": "d1", "title": "...", "text": "..."}.'
_EXPECTED_QUERY = 'Expected one query a line, as {"_id": "q1", "text": "..."}.'


def read_trio(
    folder: Path,
    *,
    split: str | None = None,
    corpus: str | None = None,
    queries: str | None = None,
    qrels: str | None = None,
    unjudged: str | None = None,
    judged: bool = True,
) -> Dataset:
    """Read the trio; `corpus`, `queries` and `qrels` name files that are called otherwise.

    Not `judged`: no judgments are looked for, unless `qrels` or `split` name some.
    """
    documents, asked = CorpusBuilder(), QueriesBuilder()
    without = not judged and qrels is None and split is None
    judgments, several, notes = (None, False, []) if without else _judgments_file(folder, split, qrels)
    read_objects(required_file(folder, corpus or "corpus.jsonl"), documents.add_record, _EXPECTED_DOCUMENT)
    read_objects(required_file(folder, queries or "queries.jsonl"), asked.add_record, _EXPECTED_QUERY)
    key, found = (Qrels({}), ()) if judgments is None else read_judgments(judgments)
    policy = unjudged or ("drop" if several else "keep")
    return assemble(folder.resolve().name, documents, asked, key, policy, notes, found)


def read_objects(path: Path, use: Callable[[dict[str, Any]], None], expected: str) -> None:
    """Hand every JSON object of the lines to `use`; what is not one, or what `use` refuses, is reported by line."""
    from steelyard.io.files import bad_lines, line_blocks

    decoder = json.JSONDecoder(object_pairs_hook=_named_once)
    problems: list[tuple[int, str]] = []
    number, objects = 0, 0
    for block in line_blocks(path):
        for line in block.decode().removesuffix("\n").split("\n"):
            number += 1
            if not line or line.isspace():
                continue
            objects += 1
            try:
                record = decoder.decode(line)
                if not isinstance(record, dict):
                    raise InputError(f"a {type(record).__name__}, not an object")
                use(record)
            except InputError as error:
                problems.append((number, str(error)))
            except json.JSONDecodeError as error:
                problems.append((number, f"not JSON at column {error.colno:,} ({error.msg})"))
            except RecursionError:
                problems.append((number, "nested too deep"))
    if problems:
        raise bad_lines(path, problems, expected)
    if not objects:
        raise InputError(f"{path} is empty. {expected}")


def read_judgments(path: Path) -> tuple[Qrels, tuple[Finding, ...]]:
    """The judgments of a table with a header, or of any other format that `Qrels.read` knows."""
    from steelyard.io.columns import known_roles
    from steelyard.io.files import Source

    source = Source(path)
    lines = [line for line in source.head_lines if line.strip()]
    header = [name.strip('"') for name in lines[0].decode().strip().split("\t")] if lines else []
    if not {"query_id", "doc_id"} <= known_roles(header):
        return Qrels.read(path), ()
    if len(lines) == 1 and source.whole_head:
        return Qrels({}), ()
    from steelyard.io.columns import judgment_frame
    from steelyard.io.tables import read_table

    try:
        frame, notes = judgment_frame(
            read_table(source, "\t"), dict.fromkeys(("query_id", "doc_id", "grade", "target"))
        )
        judged = frame.drop_nulls("doc_id")
        columns = (judged[name].to_list() for name in ("query_id", "doc_id", "grade", "target"))
        qrels, found = qrels_of_rows(
            list(zip(*columns, strict=True)), frame["query_id"].unique(maintain_order=True).to_list()
        )
    except InputError as error:
        raise InputError(str(error) if str(path) in str(error) else f"{path}: {error}") from None
    qrels.notes += notes
    if not known_roles(header) & {"grade"}:
        qrels.notes += ("no column holds grades: every document listed was taken as relevant, grade 1",)
    return qrels, found


def write_trio(dataset: Dataset, folder: Path) -> None:
    """Write the trio; each file is the old one or the new one whatever happens on the way."""
    from steelyard.io.files import write_file
    from steelyard.io.tables import qrels_table, table_bytes

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be made a folder ({error.strerror}); name another.") from None
    table = qrels_table(dataset.qrels).drop_nulls("doc_id").rename(_QRELS_HEADER)
    write_file(folder / "corpus.jsonl", _lines(_document_records(dataset)))
    write_file(folder / "queries.jsonl", _lines(_query_records(dataset)))
    write_file(folder / "qrels.tsv", table_bytes(table, "\t"))


def _document_records(dataset: Dataset) -> Iterator[dict[str, Any]]:
    corpus = dataset.corpus
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
    sizes = (judged.starts[1:] - judged.starts[:-1]).tolist()
    unanswerable = {query for query, size in zip(judged.query_ids, sizes, strict=True) if not size}
    for query_id, text in dataset.queries.items():
        columns = {
            name: values[query_id] for name, values in dataset.queries.columns.items() if query_id in values
        }
        if query_id in unanswerable:
            columns["answerable"] = False
        yield {"_id": query_id, "text": text} | _rest(columns, _QUERY_FIELDS)


def _rest(metadata: Mapping[str, Any], taken: tuple[str, ...]) -> dict[str, Any]:
    """Metadata beside the other fields; what has the name of one goes into an object of its own."""
    beside = {name: value for name, value in metadata.items() if name not in taken}
    inside = {name: value for name, value in metadata.items() if name in taken}
    return beside | ({"metadata": inside} if inside else {})


def _lines(records: Iterator[dict[str, Any]]) -> bytes:
    lines = (json.dumps(record, ensure_ascii=False, default=str).encode() + b"\n" for record in records)
    return b"".join(lines)


def _judgments_file(folder: Path, split: str | None, named: str | None) -> tuple[Path, bool, list[str]]:
    """The file of judgments, whether it is one split of several, and a note on which was chosen."""
    if named is not None:
        return required_file(folder, named), split is not None, []
    splits = _splits(folder)
    if split is not None:
        if split not in splits:
            there = ", ".join(sorted(splits)) or "none"
            raise InputError(
                f"{folder} has no judgments of split {split!r}; it has {there}.{did_you_mean(split, splits)}"
            )
        return splits[split], True, []
    plain = find_file(folder, "qrels.tsv")
    if plain is not None:
        return plain, False, []
    if "test" in splits or len(splits) == 1:
        chosen = "test" if "test" in splits else next(iter(splits))
        others = [name for name in sorted(splits) if name != chosen]
        note = (
            [f"judgments of split {chosen!r} read; there are also {', '.join(others)} (split=...)"]
            if others
            else []
        )
        return splits[chosen], True, note
    if splits:
        raise InputError(
            f"{folder} has judgments of {', '.join(sorted(splits))} and none of test: say which (split=...)."
        )
    raise NoQrelsError(
        f"{folder} has no judgments: expected qrels.tsv, qrels/test.tsv or qrels_test.tsv, or one that is named: "
        f"qrels=... in Python, {{path: {folder}, qrels: FILE}} for the dataset in bench.yaml and on the command line. "
        f"It holds {listing(folder)}. Where `evidence` judges in bench.yaml none is needed, nor with judged=False in Python."
    )


def _splits(folder: Path) -> dict[str, Path]:
    """Split to its file of judgments: qrels/dev.tsv, qrels_dev.tsv, qrels-dev.tsv or qrels.dev.tsv."""
    found: dict[str, Path] = {}
    inner = folder / "qrels"
    for path in sorted(inner.iterdir()) if inner.is_dir() else []:
        if bare_name(path).suffix in (".tsv", ".txt", ".trec"):
            found.setdefault(bare_name(path).stem, path)
    for path in sorted(folder.iterdir()):
        bare = bare_name(path)
        if bare.suffix == ".tsv" and bare.stem.startswith(("qrels_", "qrels-", "qrels.")):
            found.setdefault(bare.stem[len("qrels_") :], path)
    return found


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise InputError(
            f"the name {next(name for name in names if names.count(name) > 1)!r} comes twice in one object"
        )
    return found
