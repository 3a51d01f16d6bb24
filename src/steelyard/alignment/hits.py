"""What is asked of a run, and what comes back: the one contract every way of reading a run keeps.

A reader (of a file, a mapping, a frame, a cluster) is given a `JudgedDocs`, which names the
documents that matter, and gives `Hits`: where those documents stand, and counts of the rest.
Nothing here needs numpy to be loaded: a run is read ahead while it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Floats: TypeAlias = "NDArray[np.float64]"
Ints: TypeAlias = "NDArray[np.int64]"
Bools: TypeAlias = "NDArray[np.bool_]"

TieRule: TypeAlias = Literal["docid-desc", "docid-asc", "stable", "expected"]
DuplicateRule: TypeAlias = Literal["hold", "collapse", "error"]


@dataclass(frozen=True)
class Ordering:
    """How a list is put in order before anything is measured.

    `ties` orders documents of equal score: by id, largest first (trec_eval's rule) or smallest
    first, or as they stood in the input (`stable`). `expected` ranks as docid-desc; the measures
    then average over all orders of tied documents. `single` compares scores as 32-bit floats.
    `duplicates`: a document that comes a second time holds its rank and gains nothing (`hold`),
    is taken out and the ranks below close up (`collapse`), or is an error. The occurrence that
    ranks first is the one that counts; of two that tie wholly, the first in the input.
    """

    ties: TieRule = "docid-desc"
    duplicates: DuplicateRule = "hold"
    single: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class JudgedDocs:
    """The judged documents of each query: those of query i are doc_ids[starts[i]:starts[i + 1]].

    Queries are unique, and so are the documents within a query.
    """

    query_ids: Sequence[str]
    starts: Ints
    doc_ids: Sequence[str]


@dataclass(frozen=True, eq=False, repr=False)
class Hits:
    """Where the judged documents stand in a run. Arrays are int64 unless said.

    Per query of the JudgedDocs: `retrieved`, how many documents came back (repeats included under
    `hold`); `answered`, whether the run has the query at all; `top_score`, the best score (NaN where
    there is none). Per hit, sorted by query and then rank: `query`, its query; `doc`, its place in
    JudgedDocs.doc_ids; `rank`, 1 first; and its group of equal scores: `tie_first`, the first rank
    the group holds, and `tie_size`, how many documents are in it (1 where nothing ties).
    Per repeated document, sorted likewise: `repeat_query`, `repeat_rank` (the rank it holds; under
    `collapse` the rank of its first occurrence). Queries that only the run has are counted.
    Where the run carries them: `tokens_through`, per hit, the tokens of the list down to it;
    `seconds`, per query; `near_query` and `near_rank`, documents whose text repeats an earlier one's.
    """

    retrieved: Ints
    answered: Bools
    top_score: Floats
    query: Ints
    doc: Ints
    rank: Ints
    tie_first: Ints
    tie_size: Ints
    repeat_query: Ints
    repeat_rank: Ints
    run_only_queries: int = 0
    run_only_examples: tuple[str, ...] = ()
    tag: str | None = None
    tokens_through: Ints | None = None
    seconds: Floats | None = None
    near_query: Ints | None = None
    near_rank: Ints | None = None

    def same_as(self, other: Hits) -> bool:
        """Equal in every field, NaN equal to NaN: what a test holds two readers to."""
        return all(_same(getattr(self, name), getattr(other, name)) for name in self.__dataclass_fields__)


def _same(left: Any, right: Any) -> bool:
    import numpy as np

    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        return left.dtype == right.dtype and np.array_equal(left, right, equal_nan=left.dtype.kind == "f")
    return bool(left == right) and type(left) is type(right)
