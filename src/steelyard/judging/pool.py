"""Pool: which documents to judge, most useful first, and the scores that judgments of a random sample estimate.

`pool` makes one from runs and the judgments so far. Strategies:

- `depth`: the first documents of every run, by best rank.
- `mtf`, `bandit`: relevant documents first, by what the judgments so far say of the runs; see `candidates`.
- `pair`: documents that decide which of two runs is better; see `candidates.pair_order`.
- `sample`: drawn at random with known probabilities; see `candidates.draw_documents`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import polars as pl

from steelyard.checks import whole_number
from steelyard.datasets import Dataset
from steelyard.errors import InputError, MeasureError, did_you_mean, problem_report
from steelyard.io.files import streams_read_once, write_file
from steelyard.io.formats import is_pool_header
from steelyard.io.text import Source
from steelyard.judging import candidates
from steelyard.judging.candidates import Design, Pairs
from steelyard.notes import Note, note
from steelyard.qrels import Qrels
from steelyard.run import Run
from steelyard.safe_text import utf8
from steelyard.statistics.sampled import ESTIMATORS, Estimator, SampledPool, bias_corrected, sampled_interval
from steelyard.wording import counted, listed

Strategy = Literal["depth", "mtf", "bandit", "pair", "sample"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
DEFAULT_DEPTH = 10
DEFAULT_OVERLAP = 0.1
ENOUGH_DRAWN = 16
"""Documents drawn per query from which on the corrected infNDCG has no bias left: dl2019, 2,000 draws."""
_WHOLE = ("statAP", "xinfAP")  # Measures of the whole list, without a cutoff.

Pair = tuple[str, str]  # Query id and document id.
SCHEMA: dict[str, Any] = {
    "query_id": pl.String,
    "doc_id": pl.String,
    "priority": pl.Int64,
    "runs": pl.List(pl.String),
    "ranks": pl.List(pl.Int64),
    "probability": pl.Float64,
    "stratum": pl.Int64,
    "strategy": pl.String,
}


@dataclass(frozen=True)
class Settings:
    """How a pool was made.

    runs: names of the runs.
    queries: number of queries of the runs.
    sampled_queries: the queries that were drawn at random from them; None where all were used.
    """

    strategy: str
    depth: int
    budget: int | None
    measure: str | None
    seed: int
    runs: tuple[str, ...]
    queries: int
    sampled_queries: tuple[str, ...] | None = None


@dataclass(eq=False, repr=False)
class Pool:
    """Documents to judge, most useful first.

    frame: query_id, doc_id, priority (1 is judged first), runs and ranks (who returned the document, and at
    which rank), probability and stratum (strategy `sample` only, otherwise null), strategy.
    settings: how the pool was made. design: for strategy `sample`, the population and its strata.
    """

    frame: pl.DataFrame
    settings: Settings
    design: Design | None = None

    def __len__(self) -> int:
        """The number of documents to judge."""
        return self.frame.height

    def __repr__(self) -> str:
        queries = self.frame["query_id"].n_unique()
        text = f"Pool: {counted(len(self), 'document')} of {counted(queries, 'query', 'queries')} to judge"
        if len(self.settings.runs) > 1:
            shared = self.frame.filter(pl.col("runs").list.len() > 1).height
            by = "both runs" if len(self.settings.runs) == 2 else "two or more runs"
            text += f", {shared:,} of them returned by {by}"
        if (drawn := self.settings.sampled_queries) is not None:
            text += f"; {len(drawn):,} of {counted(self.settings.queries, 'query', 'queries')} drawn at random"
        return text

    @property
    def pairs(self) -> Pairs:
        """(query id, document id), most useful first."""
        return list(dict.fromkeys(self.frame.sort("priority").select("query_id", "doc_id").iter_rows()))

    def write(self, path: str | Path) -> None:
        """Write JSON lines: first how the pool was made, then one line per document."""
        design = self.design
        strata = None if design is None else {"strata": dict(design.strata), "drawn": dict(design.drawn)}
        lines = [json.dumps({"pool": {**asdict(self.settings), "strata": strata}}, ensure_ascii=False)]
        lines += (json.dumps(row, ensure_ascii=False) for row in self.frame.iter_rows(named=True))
        write_file(Path(path), ("\n".join(lines) + "\n").encode())

    @classmethod
    @streams_read_once()
    def read(cls, path: str | Path) -> Pool:
        """Read what `write` wrote."""
        source = Source(Path(path))
        if not is_pool_header(source.first_line):
            raise InputError(
                'not a pool: line 1 is not {"pool": {...}}, which records how the pool was made. A pool lists the '
                "documents to judge, as JSON lines; `steelyard pool RUN RUN -o pool.jsonl` or Pool.write writes it.",
                path,
            )
        records = source.jsonl
        header = records[0]["pool"]
        try:
            values = {name: header[name] for name in Settings.__dataclass_fields__}
            sampled, strata = values["sampled_queries"], header["strata"]
            values |= {"runs": tuple(values["runs"]), "sampled_queries": None if sampled is None else tuple(sampled)}
            settings = Settings(**values)
            design = None if strata is None else Design(strata["strata"], strata["drawn"])
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path}, line 1: {error} is missing or not as `Pool.write` writes it.") from None
        wrong = [place for place, row in enumerate(records[1:], start=2) if not SCHEMA.keys() <= row.keys()]
        if wrong:
            raise InputError(f"{path}, line {wrong[0]}: expected the fields {', '.join(SCHEMA)}.")
        return cls(pl.DataFrame(records[1:], schema=SCHEMA), settings, design)


def check_texts(pairs: Sequence[Pair], dataset: Dataset) -> None:
    """Raise an error if the dataset does not have the text of a query or a document of the pool."""
    queries, docs = (dict.fromkeys(pair[place] for pair in pairs) for place in (0, 1))
    missing = [f"query {query!r}" for query in queries if query not in dataset.queries]
    missing += [f"document {doc!r}" for doc in docs if doc not in dataset.corpus]
    if missing:
        head, tail = "the dataset has no text for part of the pool:", "Give the dataset that the pooled runs searched."
        raise InputError(problem_report(head, missing, tail))


def pool(
    runs: Any,
    qrels: Any = None,
    *,
    depth: int | None = None,
    budget: int | None = None,
    strategy: Strategy = "depth",
    measure: str = "nDCG@10",
    seed: int = 0,
    queries: int | None = None,
    pair: Sequence[str] | None = None,
    rel: float | None = None,
) -> Pool:
    """Documents to judge, most useful first. Documents in `qrels` are left out, but inform the strategies.

    runs: by name, or a list; each is anything that `Run.of` takes.
    qrels: the judgments so far.
    depth: documents considered of every run, 10 by default; for `pair` at most the cutoff of the measure, its default.
    budget: documents in the pool at most; all by default.
    strategy: `mtf` and `bandit` depend on judgments: judge the documents of a small budget, pool again. `sample`
    draws documents at random, for `sampled_scores`.
    measure: for `pair`: the measure that the runs are compared by.
    seed: for what is drawn at random.
    queries: draw this many queries at random and pool these only. `settings.sampled_queries` records them.
    pair: for `pair` with more than two runs: the two to compare; by default the best two by `qrels`.
    rel: for `mtf` and `bandit`: the lowest grade that counts as relevant; by default that of the qrels' scale, or 1.

    >>> pool({"bm25": {"q1": ["a", "b"]}, "dense": {"q1": ["b", "c"]}})
    Pool: 3 documents of 1 query to judge, 1 of them returned by both runs
    """
    if strategy not in STRATEGIES:
        raise InputError(f"There is no strategy {strategy!r}; use one of {', '.join(STRATEGIES)}.")
    for name, value in (("depth", depth), ("budget", budget), ("queries", queries)):
        if value is not None:
            whole_number(name, value, 1)
    whole_number("seed", seed)
    qrels = None if qrels is None else Qrels.of(qrels)
    read, judged = candidates.named_runs(runs), candidates.judged_grades(qrels)
    if not read:
        raise InputError("There are no runs to pool; give at least one.")
    weights = candidates.rank_weights(measure, depth)
    reach = len(weights) if strategy == "pair" else depth or DEFAULT_DEPTH
    retrieved = candidates.candidates_of(read, reach)
    total = len(retrieved.lists)
    if strategy == "pair":
        names = candidates.chosen_pair(read, qrels, measure, pair)
        places = [retrieved.names.index(name) for name in names]
        lists = {query: [by_run[place] for place in places] for query, by_run in retrieved.lists.items()}
        retrieved = candidates.Candidates(names, lists)
    sampled = None if queries is None else candidates.draw_queries(list(retrieved.lists), queries, seed)
    if sampled is not None:
        retrieved = replace(retrieved, lists={query: retrieved.lists[query] for query in sampled})
    design = None
    if strategy == "sample":
        design, order = candidates.draw_documents(retrieved, judged, reach, budget, seed)
    elif strategy in candidates.RULES:
        level = candidates.lowest_relevant(qrels, rel)
        orders = {
            query: candidates.unjudged_order(lists, {d: g >= level for d, g in judged.get(query, {}).items()}, strategy)
            for query, lists in retrieved.lists.items()
        }
        order = list(islice(candidates.round_robin(orders), budget))
    elif strategy == "pair":
        order = candidates.pair_order(retrieved, judged, weights)[:budget]
    else:
        order = candidates.depth_order(retrieved, judged)[:budget]
    compared_by = measure if strategy == "pair" else None
    settings = Settings(strategy, reach, budget, compared_by, seed, retrieved.names, total, sampled)
    ranks = {query: retrieved.ranks(query) for query in dict.fromkeys(query for query, _ in order)}
    rows = []
    for priority, (query, doc) in enumerate(order, start=1):
        by = ranks[query][doc]
        drawn = (None, None) if design is None else design.of(query, doc)
        rows.append((query, doc, priority, [retrieved.names[run] for run in by], list(by.values()), *drawn, strategy))
    return Pool(pl.DataFrame(rows, schema=SCHEMA, orient="row"), settings, design)


def assigned(
    pool: Pool, judge: str, judges: Sequence[str] | None = None, overlap: float = DEFAULT_OVERLAP, seed: int = 0
) -> list[Pair]:
    """The pairs that a judge gets, in the judge's order.

    judges: the names of all judges; without them every judge gets the whole pool. `overlap` is the share of the pool
    that all of them get, so that their agreement can be measured: the pairs with the lowest hashes. Every other pair
    goes to one judge: the one for whom the hash of name and pair is highest (rendezvous hashing). The parts are about
    equal, and a judge who joins later takes over documents but moves none between the others. Hashes are SHA-256 of the
    seed and the ids, so that every computer makes the same assignment.

    The order is a shuffle of its own for each judge: queries in random order, and the documents of one query together,
    in random order. It tells nothing of runs, ranks or priorities, and who stops early has judged whole queries.
    """
    pairs = pool.pairs
    if judges is not None:
        if not 0 <= overlap <= 1:
            raise InputError(f"overlap is {overlap}; expected a share from 0 to 1, or 0% to 100%.")
        if len(set(judges)) != len(judges) or not all(judges):
            raise InputError(f"judges are {listed(list(judges))}; expected different names.")
        if judge not in judges:
            raise InputError(f"{judge!r} is not one of the judges {listed(list(judges))}.{did_you_mean(judge, judges)}")
        shared = shared_pairs(pairs, overlap, seed)
        pairs = [pair for pair in pairs if pair in shared or judge_of(pair, judges, seed) == judge]
    queries = {query: _hashed(seed, "query", judge, query) for query, _ in pairs}
    return sorted(pairs, key=lambda pair: (queries[pair[0]], pair[0], _hashed(seed, "order", judge, *pair), pair[1]))


def shared_pairs(pairs: Sequence[Pair], overlap: float, seed: int = 0) -> set[Pair]:
    """The pairs that every judge gets: the share asked for, at least one unless it is 0.

    >>> pairs = [("q", str(number)) for number in range(20)]
    >>> len(shared_pairs(pairs, 0.1)), len(shared_pairs(pairs, 0.01)), len(shared_pairs(pairs, 0))
    (2, 1, 0)
    """
    count = max(round(overlap * len(pairs)), 1 if overlap > 0 else 0)
    return set(sorted(pairs, key=lambda pair: (_hashed(seed, "overlap", *pair), pair))[:count])


def judge_of(pair: Pair, judges: Sequence[str], seed: int = 0) -> str:
    """The judge of a pair that only one gets."""
    return max(judges, key=lambda name: (_hashed(seed, "judge", name, *pair), name))


def _hashed(seed: int, *parts: str) -> bytes:
    """A hash of a seed and texts; their lengths are hashed too, so that no two lists of texts are the same."""
    hasher = sha256(str(seed).encode())
    for part in parts:
        raw = utf8(part)
        hasher.update(len(raw).to_bytes(8, "little") + raw)
    return hasher.digest()


# Scores of a run from the judgments of a pool that was drawn at random


@dataclass(frozen=True, eq=False)
class SampledScores:
    """Scores of one run, estimated from judgments of a sample.

    per_query: query_id, then one column per measure.
    errors: the standard error of each value of `per_query`, from the draw of documents.
    queries: number of queries that those measured were drawn from; None where all were measured.
    notes: what limits the estimates.
    """

    per_query: pl.DataFrame
    errors: pl.DataFrame
    queries: int | None = None
    notes: tuple[Note, ...] = ()

    @property
    def means(self) -> dict[str, float]:
        """Mean over the queries by measure."""
        return {name: float(np.mean(self.per_query[name].to_numpy())) for name in self.per_query.columns[1:]}

    def __getitem__(self, measure: str) -> float:
        """The mean of a measure."""
        return self.means[measure]

    def interval(self, measure: str, level: float = 0.95) -> tuple[float, float]:
        """(low, high) of the mean over the queries of the pool.

        It covers which documents were drawn and, where queries were drawn at random, which; not future queries.
        """
        values, errors = self.per_query[measure].to_numpy(), self.errors[measure].to_numpy()
        return sampled_interval(values, errors**2, level, self.queries)

    def __repr__(self) -> str:
        rows = ((name, mean, *self.interval(name)) for name, mean in self.means.items())
        parts = [f"{name} {mean:.4f} [{low:.4f}, {high:.4f}]" for name, mean, low, high in rows]
        head = f"SampledScores of {self.per_query.height:,} queries: {', '.join(parts)}"
        return "\n".join([head, *map(str, self.notes)])


def sampled_scores(
    run: Any, pool: Pool, qrels: Any, measures: Sequence[str] = ("statAP", "infNDCG"), *, rel: float | None = None
) -> SampledScores:
    """Estimate a run's scores from judgments of a pool with strategy `sample`.

    The estimated value is the one that judging the whole population of the pool would give, documents outside
    it being not relevant. Estimates are corrected for bias (jackknife); single queries may lie slightly outside 0 to 1.

    run: anything that `Run.of` takes. It need not be one of the pooled runs, but documents that only it returns
    count as not relevant.
    pool: from `pool(..., strategy="sample")`.
    qrels: grades of all documents of the pool.
    measures: of P@k, DCG, DCG@k, statAP, xinfAP, infNDCG, infNDCG@k.
    rel: the lowest grade that counts as relevant for P, statAP and xinfAP; by default that of the qrels' scale, or 1.
    """
    if pool.design is None:
        made = f"The pool was made with strategy {pool.settings.strategy!r}"
        raise InputError(f'{made}, so the probability of a document is not known. Make it with strategy="sample".')
    qrels = Qrels.of(qrels)
    grades, level = candidates.judged_grades(qrels), candidates.lowest_relevant(qrels, rel)
    pairs = pool.frame.select("query_id", "doc_id").iter_rows()
    missing = [(query, doc) for query, doc in pairs if doc not in grades.get(query, {})]
    if missing:
        raise InputError(
            f"{len(missing):,} of {len(pool):,} documents of the pool are not in the qrels, the first is "
            f"{missing[0][1]!r} of query {missing[0][0]!r}. Estimates need a grade for every document that was drawn: "
            "judge the rest."
        )
    ranks: dict[Pair, int] = {}
    for query, doc, rank in Run.of(run).frame.select("query_id", "doc_id", "rank").iter_rows():
        ranks.setdefault((query, doc), rank)
    drawn = set(pool.pairs)
    pools = []
    for query, strata in pool.design.strata.items():
        docs = [(number, doc) for number, listed in enumerate(strata) for doc in listed]
        # Documents judged before the draw (stratum 0) count as drawn.
        judged = {doc for number, doc in docs if number == 0 or (query, doc) in drawn}
        given = [grades.get(query, {}).get(doc, math.nan) if doc in judged else math.nan for _, doc in docs]
        run_ranks = [ranks.get((query, doc), 0) for _, doc in docs]
        pools.append(SampledPool.of(run_ranks, [number for number, _ in docs], given))
    values, errors = {}, {}
    for text in measures:
        results = [bias_corrected(one, estimator_of(text, level)) for one in pools]
        values[text] = [float(result.corrected) for result in results]
        errors[text] = [math.sqrt(float(result.variance)) for result in results]
    means, deviations = (pl.DataFrame({"query_id": list(pool.design.strata), **table}) for table in (values, errors))
    of = pool.settings.queries if pool.settings.sampled_queries is not None else None
    return SampledScores(means, deviations, of, _bias_notes(pool.design, measures))


def _bias_notes(design: Design, measures: Sequence[str]) -> tuple[Note, ...]:
    """Whether infNDCG is still biased: with few documents per query, if not all of them were drawn."""
    drawn = sum(map(sum, design.drawn.values()))
    every = sum(len(docs) for strata in design.strata.values() for docs in strata)
    per_query = round(drawn / max(1, len(design.strata)))
    estimated = any(text.strip().lower().startswith("infndcg") for text in measures)
    biased = estimated and drawn < every and per_query < ENOUGH_DRAWN
    return (note("few-documents-drawn", documents=per_query, enough=ENOUGH_DRAWN),) if biased else ()


def estimator_of(text: str, rel: float) -> Estimator:
    """The estimator that a measure's text names.

    >>> estimator_of("MAP", 1)
    Traceback (most recent call last):
    steelyard.errors.MeasureError: 'MAP' cannot be estimated from a sample; use P@k, DCG@k, statAP, xinfAP, infNDCG@k.
    """
    form = re.fullmatch(r"(\w+?)(?:@(\d+))?", text.strip())
    names = {name.lower(): name for name in ESTIMATORS}
    name = names.get(form.group(1).lower()) if form else None
    cutoff = int(form.group(2)) if form and form.group(2) else None
    if name is None or cutoff == 0 or (name == "P" and cutoff is None) or (name in _WHOLE and cutoff is not None):
        raise MeasureError(f"{text!r} cannot be estimated from a sample; use P@k, DCG@k, statAP, xinfAP, infNDCG@k.")
    given: dict[str, Any] = {} if name in ("DCG", "infNDCG") else {"rel": rel}
    return partial(ESTIMATORS[name], **given, **({} if name in _WHOLE else {"k": cutoff}))
