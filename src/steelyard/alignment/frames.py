"""What both ways of reading a frame need: its rows by the numbers of the judgments, groups of rows, keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from steelyard.alignment.hits import Bools, Floats, Hits, Ints, JudgedDocs, Ordering
from steelyard.alignment.ranking import SHOWN_RUN_ONLY
from steelyard.errors import PolicyError, problem_report
from steelyard.run import Run
from steelyard.wording import counted

Words: TypeAlias = NDArray[np.uint64]

_SPREAD = np.uint64(0x9E3779B97F4A7C15)
"""An odd number that spreads small ones over 64 bits, so that equal keys are equal documents of a query."""


def query_numbers(table: pl.DataFrame, judged: JudgedDocs) -> Ints:
    """The number of each row's query; -1 where nobody judged it."""
    size = len(judged.query_ids)
    numbers = pl.DataFrame(
        {"query_id": _texts(judged.query_ids), "query": np.arange(size)},
        schema={"query_id": pl.String, "query": pl.Int64},
    )
    found = table.select("query_id").join(numbers, on="query_id", how="left", maintain_order="left")
    return ints(found.fill_null(-1), "query")


def keys_of(docs: pl.Series, queries: Ints) -> Words:
    """A hash of each document and its query."""
    keys: Words = docs.hash().to_numpy() ^ (queries.astype(np.uint64) * _SPREAD)
    return keys


def documents_of(judged: JudgedDocs) -> pl.DataFrame:
    """The judged documents: query, doc_id and doc, their number."""
    return pl.DataFrame(
        {
            "query": np.repeat(np.arange(len(judged.query_ids)), np.diff(judged.starts)),
            "doc_id": _texts(judged.doc_ids),
            "doc": np.arange(len(judged.doc_ids)),
        },
        schema={"query": pl.Int64, "doc_id": pl.String, "doc": pl.Int64},
    )


def _texts(ids: Sequence[str]) -> list[str | None]:
    """Ids as a frame can hold them: one that has no UTF-8 form is in no frame."""
    try:
        "".join(ids).encode()
    except UnicodeEncodeError:
        return [None if any("\ud800" <= letter <= "\udfff" for letter in text) else text for text in ids]
    return list(ids)


def answered_by(run: Run, judged: JudgedDocs) -> tuple[Bools, int, tuple[str, ...]]:
    """Which judged queries the run has; how many others it has, and the first of those."""
    came, known = run.queries, set(judged.query_ids)
    answered = set(came)
    only_run = [query for query in came if query not in known]
    found = np.fromiter((query in answered for query in judged.query_ids), np.bool_, len(judged.query_ids))
    return found, len(only_run), tuple(only_run[:SHOWN_RUN_ONLY])


def group_begins(differs: Bools, length: int) -> Ints:
    """The first of each group of rows, given where a row differs from the one before it."""
    return np.flatnonzero(np.concatenate([[True], differs])) if length else np.zeros(0, dtype=np.int64)


def ints(frame: pl.DataFrame, column: str) -> Ints:
    """A column of whole numbers."""
    return frame[column].to_numpy().astype(np.int64)


NEARLY = 0.9
"""Two texts nearly repeat each other when they share this much of their word 3-grams (Jaccard)."""


def hits_by_sorting(run: Run, table: pl.DataFrame, judged: JudgedDocs, ordering: Ordering) -> Hits:
    """Rank every list, then look up the judged documents. The table has all rows of the run, or those of some queries."""
    size = len(judged.query_ids)
    numbers = pl.Series("query", query_numbers(table, judged))
    table = table.with_columns(numbers).with_row_index("row").filter(pl.col("query") >= 0)
    table = _with_ranks(_in_order(table, ordering, run.ordered))
    top = np.full(size, np.nan)
    best = table.group_by("query").agg(pl.col("score").max())
    top[ints(best, "query")] = best["score"].fill_null(float("nan")).to_numpy()
    firsts, repeats = _split_repeats(table)
    if ordering.duplicates == "error" and repeats.height:
        raise _repeat_error(repeats)
    if ordering.duplicates == "collapse":
        table = firsts = _with_ranks(firsts)
        standing = firsts.select("query", "doc_id", "rank")
        repeats = (
            repeats.drop("rank").join(standing, on=["query", "doc_id"], how="left").sort("query", "rank")
        )
    table = _with_ties(table, run.ordered)
    if run.tokens is not None or "tokens" in table.columns:
        table = _with_tokens(table, run)
    hits = (
        table.join(firsts.select("row"), on="row", how="semi")
        .join(documents_of(judged), on=["query", "doc_id"], how="inner")
        .sort("query", "rank")
    )
    near = _near_repeats(table, run.texts)
    answered, run_only, examples = answered_by(run, judged)
    return Hits(
        retrieved=np.bincount(ints(table, "query"), minlength=size).astype(np.int64),
        answered=answered,
        top_score=top,
        query=ints(hits, "query"),
        doc=ints(hits, "doc"),
        rank=ints(hits, "rank"),
        tie_first=ints(hits, "tie_first"),
        tie_size=ints(hits, "tie_size"),
        repeat_query=ints(repeats, "query"),
        repeat_rank=ints(repeats, "rank"),
        run_only_queries=run_only,
        run_only_examples=examples,
        tokens_through=ints(hits, "tokens_through") if "tokens_through" in hits.columns else None,
        near_query=None if near is None else ints(near, "query"),
        near_rank=None if near is None else ints(near, "rank"),
    )


def _split_repeats(table: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows whose document comes for the first time in its list, and the others.

    Only rows whose key is not alone can be repeats: a few as a rule, and only they are compared.
    """
    alone = ~pl.Series(keys_of(table["doc_id"], ints(table, "query"))).is_duplicated()
    again = table.filter(~alone).filter(pl.int_range(pl.len()).over("query", "doc_id") > 0)
    if not again.height:
        return table, again
    return table.join(again.select("row"), on="row", how="anti", maintain_order="left"), again


def _in_order(table: pl.DataFrame, ordering: Ordering, ordered: bool) -> pl.DataFrame:
    """The rows of each query best first; `key` is the score that was compared."""
    score = pl.col("score").cast(pl.Float32 if ordering.single else pl.Float64) + 0.0
    table = table.with_columns(score.alias("key"))
    if ordered:
        return table.sort("query", maintain_order=True)
    if ordering.ties == "stable":
        return table.sort("query", "key", descending=[False, True], maintain_order=True)
    ids_fall = ordering.ties != "docid-asc"
    return table.sort("query", "key", "doc_id", descending=[False, True, ids_fall], maintain_order=True)


def _with_ranks(table: pl.DataFrame) -> pl.DataFrame:
    """The place of each row in its list; the rows of a query stand together, best first."""
    query = ints(table, "query")
    first = _first_of_group(query[1:] != query[:-1], len(query))
    return table.with_columns(pl.Series("rank", np.arange(len(query)) - first + 1, dtype=pl.Int64))


def _with_ties(table: pl.DataFrame, ordered: bool) -> pl.DataFrame:
    """The ranks that each row's group of equal scores holds: itself alone where the order is the run's own."""
    rank = ints(table, "rank")
    size = np.ones(len(rank), dtype=np.int64)
    if not ordered and len(rank):
        query, key = ints(table, "query"), table["key"].to_numpy()
        first = _first_of_group((query[1:] != query[:-1]) | (key[1:] != key[:-1]), len(rank))
        rank, size = rank[first], np.bincount(first, minlength=len(first))[first]
    return table.with_columns(pl.Series("tie_first", rank), pl.Series("tie_size", size, dtype=pl.Int64))


def _first_of_group(differs: Bools, length: int) -> Ints:
    """For every row the first row of its group, given where a row differs from the one before it."""
    begins = group_begins(differs, length)
    return np.repeat(begins, np.diff(begins, append=length))


def _with_tokens(table: pl.DataFrame, run: Run) -> pl.DataFrame:
    """The tokens of each list down to each of its documents."""
    if run.tokens is not None:
        lengths = pl.DataFrame(
            {"doc_id": list(run.tokens), "tokens": list(run.tokens.values())},
            schema={"doc_id": pl.String, "tokens": pl.Int64},
        )
        table = table.drop("tokens", strict=False).join(
            lengths, on="doc_id", how="left", maintain_order="left"
        )
    unknown = table.filter(pl.col("tokens").is_null())
    if unknown.height:
        shown, total = (
            unknown["doc_id"].unique(maintain_order=True).head(10).to_list(),
            unknown["doc_id"].n_unique(),
        )
        raise PolicyError(
            problem_report(
                f"{counted(total, 'returned document has', 'returned documents have')} no token count:",
                [f"document {doc!r}" for doc in shown],
                "A budget counts every document that comes back: give the run a length for each (tokens=, texts=).",
                total=total,
            )
        )
    return table.with_columns(pl.col("tokens").cum_sum().over("query").cast(pl.Int64).alias("tokens_through"))


def _near_repeats(table: pl.DataFrame, texts: dict[str, str] | None) -> pl.DataFrame | None:
    """Rows whose document, or nearly its text, came earlier in the list."""
    if texts is None:
        return None
    shingles = {doc: _shingles(texts.get(doc, doc)) for doc in table["doc_id"].unique().to_list()}
    repeated: list[bool] = []
    above: list[frozenset[str]] = []
    last = -1
    for query, doc in table.select("query", "doc_id").iter_rows():
        if query != last:
            above, last = [], query
        mine = shingles[doc]
        repeated.append(any(len(mine & other) >= NEARLY * len(mine | other) for other in above))
        above.append(mine)
    return table.filter(pl.Series(repeated, dtype=pl.Boolean))


def _shingles(text: str) -> frozenset[str]:
    words = text.lower().split()
    return frozenset(" ".join(words[i : i + 3]) for i in range(max(1, len(words) - 2)))


def _repeat_error(repeats: pl.DataFrame) -> PolicyError:
    shown = repeats.select("query_id", "doc_id").head(10).iter_rows()
    return PolicyError(
        problem_report(
            f"{counted(repeats.height, 'document comes', 'documents come')} more than once in a query's list "
            "(duplicates=error):",
            [f"query {query!r}: document {doc!r}" for query, doc in shown],
            "Take the repeats out, or choose duplicates=hold or duplicates=collapse.",
            total=repeats.height,
        )
    )


_LONG = 64
"""Lists of so many rows on average are sorted one by one, shorter ones all together."""


def scan_frame(run: Run, judged: JudgedDocs, ordering: Ordering) -> Hits:
    """Where the judged documents stand."""
    table = run.table
    if run.tokens is not None or run.texts is not None or "tokens" in table.columns:
        return hits_by_sorting(run, table, judged, ordering)
    lists = _lists_of(table, query_numbers(table, judged))
    keys = keys_of(lists.docs, lists.row_query)
    repeating = np.unique(lists.row_query[_rows_among(keys, _repeated(keys))])
    if not repeating.size:
        return _hits(lists, keys, run, judged, ordering)
    plain = np.isin(lists.row_query, repeating)
    clean = _hits(lists.some(~plain), keys[~plain], run, judged, ordering)
    ids = pl.Series(judged.query_ids, dtype=pl.String).gather(repeating)
    rest = table.filter(pl.col("query_id").is_in(ids.to_list()))
    return _joined(clean, hits_by_sorting(run, rest, judged, ordering))


@dataclass(frozen=True, eq=False, repr=False)
class _Lists:
    """The rows of judged queries, as they came but for one query's standing together.

    Per row the number of its query, its document and its score; `begins` is the first row of each list.
    """

    row_query: Ints
    docs: pl.Series
    scores: Floats
    begins: Ints

    @property
    def query(self) -> Ints:
        """The number of each list's query."""
        return self.row_query[self.begins]

    @property
    def sizes(self) -> Ints:
        return np.diff(self.begins, append=len(self.row_query))

    def some(self, rows: Bools) -> _Lists:
        """Whole lists out of these."""
        return _lists(self.row_query[rows], self.docs.filter(pl.Series(rows)), self.scores[rows])


def _lists_of(table: pl.DataFrame, numbers: Ints) -> _Lists:
    docs, scores = table["doc_id"], table["score"].to_numpy()
    judged = numbers >= 0
    if not judged.all():
        numbers, docs, scores = numbers[judged], docs.filter(pl.Series(judged)), scores[judged]
    lists = _lists(numbers, docs, scores)
    if len(np.unique(lists.query)) == len(lists.query):
        return lists
    # Short numbers are sorted by counting them.
    short = numbers.astype(np.uint16) if numbers.max() < 1 << 16 else numbers
    order = np.argsort(short, kind="stable")
    return _lists(numbers[order], docs.gather(order), scores[order])


def _lists(numbers: Ints, docs: pl.Series, scores: Floats) -> _Lists:
    return _Lists(numbers, docs, scores, group_begins(numbers[1:] != numbers[:-1], len(numbers)))


def _repeated(keys: Words) -> Words:
    """The keys that come more than once."""
    rising = np.sort(keys)
    return np.unique(rising[1:][rising[1:] == rising[:-1]])


def _rows_among(keys: Words, some: Words) -> Ints:
    """The rows whose key is one of some; a table of the keys' first bits tells most others apart at once."""
    bits = min(24, len(some).bit_length() + 6)
    maybe = np.zeros(1 << bits, dtype=np.bool_)
    maybe[some >> np.uint64(64 - bits)] = True
    rows = np.flatnonzero(maybe[keys >> np.uint64(64 - bits)])
    return rows[np.isin(keys[rows], some)]


def _hits(lists: _Lists, keys: Words, run: Run, judged: JudgedDocs, ordering: Ordering) -> Hits:
    """The same for lists without repeats."""
    size = len(judged.query_ids)
    retrieved, top = np.zeros(size, dtype=np.int64), np.full(size, np.nan)
    retrieved[lists.query] = lists.sizes
    if len(lists.begins):
        top[lists.query] = np.fmax.reduceat(lists.scores, lists.begins)
    documents = documents_of(judged)
    rows = _rows_among(keys, keys_of(documents["doc_id"], documents["query"].to_numpy()))
    met = (
        pl.DataFrame({"query": lists.row_query[rows], "doc_id": lists.docs.gather(rows), "row": rows})
        .join(documents, on=["query", "doc_id"], how="inner")
        .sort("row")
    )
    rows = met["row"].to_numpy()
    begin = lists.begins[np.searchsorted(lists.begins, rows, side="right") - 1]
    place, first, count = (rows, rows, np.ones_like(rows)) if run.ordered else _places(lists, rows, ordering)
    order = np.lexsort((place, met["query"].to_numpy()))
    answered, run_only, examples = answered_by(run, judged)
    return Hits(
        retrieved,
        answered,
        top,
        query=met["query"].to_numpy()[order],
        doc=met["doc"].to_numpy()[order],
        rank=(place - begin + 1)[order],
        tie_first=(first - begin + 1)[order],
        tie_size=count[order],
        repeat_query=np.zeros(0, dtype=np.int64),
        repeat_rank=np.zeros(0, dtype=np.int64),
        run_only_queries=run_only,
        run_only_examples=examples,
    )


def _places(lists: _Lists, rows: Ints, ordering: Ordering) -> tuple[Ints, Ints, Ints]:
    """Where rows come to stand, by score, when each list is put in order; and where their group of equal scores
    begins, and how many it holds."""
    scores: NDArray[Any] = lists.scores
    if ordering.single:
        with np.errstate(over="ignore"):
            scores = scores.astype(np.float32)
    order = _by_score(lists, scores)
    if order is not None:
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        scores, rows = scores[order], places[rows]
    differs = scores[1:] != scores[:-1]
    differs[lists.begins[1:] - 1] = True
    groups = np.append(group_begins(differs, len(scores)), len(scores))
    group = np.searchsorted(groups, rows, side="right") - 1
    first = groups[group]
    count = groups[group + 1] - first
    tied = count > 1
    if ordering.ties == "stable" or not tied.any():
        return rows, first, count
    chosen = np.unique(group[tied])
    sizes = groups[chosen + 1] - groups[chosen]
    inside = np.repeat(groups[chosen] - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
    ids = lists.docs.gather(inside if order is None else order[inside])
    by_id = pl.DataFrame({"group": np.repeat(chosen, sizes), "doc_id": ids, "place": inside}).sort(
        "group", "doc_id", descending=[False, ordering.ties != "docid-asc"]
    )
    ranked = np.empty_like(inside)
    ranked[np.searchsorted(inside, by_id["place"].to_numpy())] = inside
    rows = rows.copy()
    rows[tied] = ranked[np.searchsorted(inside, rows[tied])]
    return rows, first, count


def _by_score(lists: _Lists, scores: NDArray[Any]) -> Ints | None:
    """The rows in the order of their lists and scores, equal ones as they came; None where they stand so."""
    rises = scores[1:] > scores[:-1]
    rises[lists.begins[1:] - 1] = False
    uneven = np.unique(np.searchsorted(lists.begins, np.flatnonzero(rises), side="right") - 1)
    if not uneven.size:
        return None
    order = np.arange(len(scores))
    if lists.sizes[uneven].sum() >= _LONG * len(uneven):
        for begin, size in zip(lists.begins[uneven].tolist(), lists.sizes[uneven].tolist(), strict=True):
            order[begin : begin + size] = begin + np.argsort(-scores[begin : begin + size], kind="stable")
        return order
    chosen = np.zeros(len(lists.begins), dtype=np.bool_)
    chosen[uneven] = True
    rows = np.flatnonzero(np.repeat(chosen, lists.sizes))
    order[rows] = rows[np.lexsort((-scores[rows], np.repeat(np.arange(len(chosen)), lists.sizes)[rows]))]
    return order


def _joined(clean: Hits, plain: Hits) -> Hits:
    """What was found in some queries, and what in the others; both know which were answered."""
    other = plain.retrieved > 0
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(clean, name), getattr(plain, name)])
        for name in ("query", "doc", "rank", "tie_first", "tie_size")
    }
    order = np.lexsort((columns["rank"], columns["query"]))
    return replace(
        clean,
        retrieved=np.where(other, plain.retrieved, clean.retrieved),
        top_score=np.where(other, plain.top_score, clean.top_score),
        repeat_query=plain.repeat_query,
        repeat_rank=plain.repeat_rank,
        **{name: column[order] for name, column in columns.items()},
    )
