"""MS MARCO's tables without headers: collection.tsv (id, passage), queries*.tsv (id, text), qrels*.tsv.

The document ranking's msmarco-docs.tsv (id, url, title, body) is read too.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.datasets.corpus import CorpusBuilder
from steelyard.datasets.dataset import assemble
from steelyard.datasets.queries import QueriesBuilder
from steelyard.datasets.reading import find_file, listing, required_file
from steelyard.errors import InputError, NoQrelsError, did_you_mean
from steelyard.io.files import bare_name
from steelyard.qrels import Qrels
from steelyard.wording import counted

if TYPE_CHECKING:
    from steelyard.datasets.dataset import Dataset

_EXPECTED_PASSAGES = "Expected an id, a tab and a text a line (or, for documents: id, url, title and body)."
_EXPECTED_QUERIES = "Expected an id, a tab and a text a line."


def read_msmarco(
    folder: Path,
    *,
    split: str | None = None,
    collection: str | None = None,
    queries: str | None = None,
    qrels: str | None = None,
    unjudged: str | None = None,
    judged: bool = True,
) -> Dataset:
    """Read the folder; `split` picks among several, as 'dev.small' of queries.dev.small.tsv.

    Not `judged`: no judgments are looked for, unless `qrels` names some.
    """
    names = (collection,) if collection else ("collection.tsv", "msmarco-docs.tsv", "docs.tsv")
    passages = next((path for name in names if (path := find_file(folder, name))), None)
    if passages is None:
        raise InputError(
            f"{folder} has no {names[0]}: name the file (collection=...). It holds {listing(folder)}."
        )
    judgments = _of_split(folder, "qrels", split, qrels) if judged or qrels is not None else None
    split = split or (None if judgments is None else _split_of(judgments, "qrels"))
    asked_file = _of_split(folder, "queries", split, queries)
    documents, asked = CorpusBuilder(), QueriesBuilder()
    _read_rows(passages, lambda fields: _add_document(documents, fields), _EXPECTED_PASSAGES)
    _read_rows(asked_file, lambda fields: _add_query(asked, fields), _EXPECTED_QUERIES)
    key = Qrels({}) if judgments is None else Qrels.read(judgments, format="msmarco")
    policy = unjudged or ("keep" if judgments is None else "drop")
    return assemble(folder.resolve().name, documents, asked, key, policy)


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
        raise (NoQrelsError if kind == "qrels" else InputError)(
            f"{folder} has no {kind}.tsv: name the file ({kind}=...). It holds {listing(folder)}."
        )
    if split is None:
        raise InputError(
            f"{folder} has {kind} of {splits}: say which (split=...), or name the file ({kind}=...)."
        )
    raise InputError(
        f"{folder} has no {kind} of split {split!r}; it has {splits}.{did_you_mean(split, there)}"
    )


def _split_of(path: Path, kind: str) -> str:
    """'dev.small' of queries.dev.small.tsv; what is left of the name once the kind is taken out."""
    return bare_name(path).stem.replace(kind, "", 1).strip(".-_")


def _read_rows(path: Path, use: Callable[[list[str]], None], expected: str) -> None:
    from steelyard.io.files import bad_lines, line_blocks

    problems: list[tuple[int, str]] = []
    number = 0
    for block in line_blocks(path):
        for line in block.decode().removesuffix("\n").split("\n"):
            number += 1
            if not line or line.isspace():
                continue
            try:
                use(line.removesuffix("\r").split("\t"))
            except InputError as error:
                problems.append((number, str(error)))
    if problems:
        raise bad_lines(path, problems, expected)
    if not number:
        raise InputError(f"{path} is empty. {expected}")


def _add_document(documents: CorpusBuilder, fields: list[str]) -> None:
    if not fields[0]:
        raise InputError("the id is empty")
    if len(fields) == 2:
        documents.add(fields[0], fields[1])
    elif len(fields) == 4:
        documents.add(fields[0], fields[3], fields[2], metadata={"url": fields[1]} if fields[1] else None)
    else:
        raise InputError(counted(len(fields), "column"))


def _add_query(asked: QueriesBuilder, fields: list[str]) -> None:
    if len(fields) != 2:
        raise InputError(counted(len(fields), "column"))
    if not fields[0]:
        raise InputError("the id is empty")
    asked.add(fields[0], fields[1])
