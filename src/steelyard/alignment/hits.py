"""What every reader of a run takes and returns.

A reader (of a file, a mapping, a frame) takes a `JudgedDocs`, which names the judged documents, and an `Ordering`,
and returns `Hits`: the ranks of the judged documents, and counts of the rest. This module does not import numpy: a
run is read ahead while numpy is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from steelyard.alignment.ranges import RetrievedRanges

_T = TypeVar("_T")

Floats: TypeAlias = "NDArray[np.float64]"
Ints: TypeAlias = "NDArray[np.int64]"
Bools: TypeAlias = "NDArray[np.bool_]"

SHOWN_RUN_ONLY = 3  # How many of the queries that only the run has are named.

TieRule: TypeAlias = Literal["docid-desc", "docid-asc", "stable", "expected"]
DuplicateRule: TypeAlias = Literal["hold", "collapse", "error"]


@dataclass(frozen=True)
class Ordering:
    """How a list is ordered before anything is measured.

    `ties` orders documents of equal score: by id, largest first (trec_eval's rule) or smallest first, or as in the
    input (`stable`). `expected` ranks as docid-desc; the measures then average over all orders of tied documents.
    `single` compares scores as 32-bit floats. `duplicates`: a repeated document keeps its rank and gains nothing
    (`hold`), is removed and the ranks below it move up (`collapse`), or is an error. The occurrence that ranks first
    counts; of two with the same score and id, the first in the input.
    """

    ties: TieRule = "docid-desc"
    duplicates: DuplicateRule = "hold"
    single: bool = False


class Remembers:
    """What is made of an object's values alone is made once, and shared by all runs."""

    def once(self, key: Any, make: Callable[[], _T]) -> _T:
        """What `make` returns, made once per key (one result of several threads is kept); arrays cannot be changed."""
        cache: dict[Any, _T] = self.__dict__.setdefault("_known", {})
        if key not in cache:
            value = make()
            if hasattr(value, "flags"):
                value.flags.writeable = False
            cache[key] = value
        return cache[key]


@dataclass(frozen=True, eq=False, repr=False)
class JudgedDocs(Remembers):
    """The judged documents of each query: those of query i are doc_ids[starts[i]:starts[i + 1]].

    Queries are unique, and so are the documents within a query.
    """

    query_ids: Sequence[str]
    starts: Ints
    doc_ids: Sequence[str]

    def __reduce__(self) -> tuple[Any, ...]:
        return JudgedDocs, (self.query_ids, self.starts, self.doc_ids)


@dataclass(frozen=True, eq=False, repr=False)
class Repeats:
    """Repeated documents: the query and the rank of each.

    `held`: each has a rank of its own in the list; otherwise it was removed, and the rank is the first.
    """

    query: Ints
    rank: Ints
    held: bool = True


@dataclass(frozen=True, eq=False, repr=False)
class Hits:
    """The ranks of the judged documents in a run.

    Per query of the JudgedDocs: `retrieved`, how many documents were retrieved (with repeats under `hold`);
    `answered`, whether the run has the query at all; `top_score`, the best score (NaN if there is none). Per hit,
    sorted by query and rank: `query`, its query; `doc`, its index in JudgedDocs.doc_ids; `rank`, from 1; and its group
    of equal scores: `tie_first`, the first rank of the group, and `tie_size`, its number of documents (1 without
    ties). `repeats`, sorted in the same way, have under `collapse` the rank of the first occurrence. Queries that only
    the run has are counted. `tags` are the tags of a TREC file, in its order. If the run has them: `tokens_through`,
    per hit, the tokens of the list down to it; `seconds`, per query; `near_repeats`, documents whose text nearly
    repeats an earlier one's; `ranges`, where each retrieved chunk is in its document.
    """

    retrieved: Ints
    answered: Bools
    top_score: Floats
    query: Ints
    doc: Ints
    rank: Ints
    tie_first: Ints
    tie_size: Ints
    repeats: Repeats
    run_only_queries: int = 0
    run_only_examples: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    tokens_through: Ints | None = None
    seconds: Floats | None = None
    near_repeats: Repeats | None = None
    ranges: RetrievedRanges | None = None
