"""pyterrier: a PyTerrier transformer from queries to ranked documents."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from steelyard.retrievers.adapters.base import Wrapped, package
from steelyard.retrievers.adapters.documents import DocIds
from steelyard.retrievers.adapters.python import label_of, library_object, seen_settings
from steelyard.retrievers.base import RetrieverError


class PyTerrier(Wrapped):
    """A PyTerrier transformer or pipeline, asked with a frame of qid and query.

    target: the transformer, or `package.module:attribute`; a class or a function without parameters is called.
    id: the column that has the id.
    arguments, folder, version, name: as for `python`.

    Its frame is ordered by rank, or by score where there is no rank. Terrier's own query parser refuses some
    punctuation: begin the pipeline with `pt.rewrite.tokenise()`.
    """

    extra: ClassVar[str] = "pyterrier"
    """The extra that brings its package."""

    def __init__(
        self,
        target: Any = None,
        id: str = "docno",
        arguments: Mapping[str, Any] | None = None,
        folder: str | Path | None = None,
        version: str | None = None,
        name: str | None = None,
    ) -> None:
        found = library_object(target, self.extra, "pyterrier", ["transform"], folder, arguments)
        label = name or label_of(target)
        self._transformer = found
        self._column = id
        seen = seen_settings("pyterrier", target, version, arguments)
        super().__init__(label, DocIds(id, label), seen)

    def _ask(self, queries: list[str], k: int) -> list[Any]:
        frames = package("pandas", self.extra, self.label)
        numbers = [str(place) for place in range(len(queries))]
        found = self._transformer.transform(frames.DataFrame({"qid": numbers, "query": queries}))
        lacking = [column for column in ("qid", self._column) if column not in found.columns]
        if lacking:
            raise RetrieverError(
                f"{self.label}: its frame has no column {' and no '.join(map(repr, lacking))}; "
                f"it has {', '.join(map(str, found.columns))}."
            )
        order = {"rank": True, "score": False}
        by = next((column for column in order if column in found.columns), None)
        if by is not None:
            found = found.sort_values(by, ascending=order[by], kind="stable")
        groups = {str(number): group for number, group in found.groupby("qid", sort=False)}
        return [_pairs(groups.get(number), self._column) for number in numbers]


def _pairs(group: Any, column: str) -> list[Any]:
    if group is None:
        return []
    ids = group[column].tolist()
    return list(zip(ids, group["score"].tolist(), strict=True)) if "score" in group.columns else ids
