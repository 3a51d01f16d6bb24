"""PyTerrier: a PyTerrier transformer from queries to ranked documents."""

from __future__ import annotations

from typing import Any

from steelyard.retrievers.adapters.base import LibraryRetriever
from steelyard.retrievers.adapters.targets import package
from steelyard.retrievers.base import RetrieverError
from steelyard.retrievers.settings import setting


class PyTerrier(LibraryRetriever):
    """A PyTerrier transformer or pipeline, called with a frame of qid and query.

    The returned frame is ordered by rank, or by score if it has no rank. Terrier's query parser does not accept
    some punctuation: start the pipeline with `pt.rewrite.tokenise()`.
    """

    retriever = extra = "pyterrier"
    module = "pyterrier"
    methods = ("transform",)
    concurrency = 1

    id: str = setting("the column of the ids", default="docno", key=None)

    def _ask(self, queries: list[str], k: int) -> list[Any]:
        pandas = package("pandas", self.extra, self.label)
        numbers = [str(number) for number in range(len(queries))]
        found = self._object.transform(pandas.DataFrame({"qid": numbers, "query": queries}))
        missing = [column for column in ("qid", self.id) if column not in found.columns]
        if missing:
            raise RetrieverError(
                f"{self.label}: its frame has no column {' and no '.join(map(repr, missing))}; "
                f"it has {', '.join(map(str, found.columns))}."
            )
        order = {"rank": True, "score": False}
        by = next((column for column in order if column in found.columns), None)
        if by is not None:
            found = found.sort_values(by, ascending=order[by], kind="stable")
        groups = {str(number): group for number, group in found.groupby("qid", sort=False)}
        return [_pairs(groups.get(number), self.id) for number in numbers]


def _pairs(group: Any, column: str) -> list[Any]:
    if group is None:
        return []
    ids = group[column].tolist()
    return list(zip(ids, group["score"].tolist(), strict=True)) if "score" in group.columns else ids
