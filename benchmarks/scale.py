"""Other formats, many runs, fusion, graphs, reports: processor time beside a peer's, at one, two and four times a size.

| case | four times | peer |
|---|---|---|
| jsonl | 7 million rows of JSON lines, evaluated | polars.read_ndjson |
| json | a JSON object of 500,000 scores, evaluated | orjson.loads |
| parquet | 7 million rows of Parquet, evaluated | polars.read_parquet |
| runs | 8 runs of 611,000 rows as dicts, 129,000 judgments | pytrec_eval |
| fuse | two runs of 7 million lines, fused and written | numpy: hash, sort and rank the rows of both |
| graph | nearest neighbours of 100,000 documents | all pairs, for the smallest size |
| report | the page of a stored result of 10 runs x 10,000 queries | |
| bench | a bench of 8 retrievers x 2,000 queries, 100 documents each | the same calls in a loop |
| lsa | latent semantic analysis of 5,200 documents, fitted and applied | scikit-learn: TfidfVectorizer, TruncatedSVD |
| dense | an index of 500,000 vectors of 384 numbers | numpy draws them; what counts is the memory |
| tukey | the randomised Tukey test of 50 runs x 10,000 queries, 10,000 draws | |
| index | BM25 index of 100,000 documents with the default tokenizer | tantivy, with a tokenizer that stems |
| search | 1,000 queries, the best 1,000 of 100,000 documents | tantivy |
| rare | 1,000 queries of five rare terms, the best 10 of 400,000 documents | tantivy |

Every measurement is a process of its own, and its time is that of the processor, so that other load changes it little.
Run with `python -m benchmarks.scale [CASE ...] [--scale 0.1]`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.load import STEPS, measured_process

MEASURES = ["-m", "nDCG@10", "-m", "AP", "-m", "RR@10", "-m", "R@100", "-m", "P@10"]
EVALUATE = ["-m", "steelyard", "evaluate", "a.qrels"]


@dataclass(frozen=True)
class Case:
    """What is measured: the size at one time, its unit, how its files are made, the command, and the peer's.

    `inside`: the commands print the seconds of the part that counts. `most`: the largest size of the peer.
    """

    title: str
    size: int
    unit: str
    make: Callable[[Path, int], None]
    command: list[str]
    peer: list[str]
    inside: bool = False
    most: int = 10**9


def rows(size: int, depth: int = 1000) -> pl.DataFrame:
    """A run of queries with `depth` documents each."""
    queries = max(1, size // depth)
    rng = np.random.default_rng(0)
    docs = (rng.integers(0, 10**7, (queries, 1)) + 7 * np.arange(depth)) % 8_841_823
    return pl.DataFrame(
        {
            "query_id": np.repeat(np.arange(queries), depth).astype(str),
            "doc_id": docs.ravel().astype(str),
            "score": np.sort(rng.random((queries, depth)) * 30, axis=1)[:, ::-1].round(6).ravel(),
        }
    )


def write_qrels(frame: pl.DataFrame, folder: Path) -> None:
    """Two judgments per query of a run of 1,000 documents each."""
    judged = frame[[place for first in range(0, frame.height, 1000) for place in (first + 3, first + 77)]]
    lines = judged.select("query_id", pl.lit("0").alias("0"), "doc_id", pl.lit(1).alias("grade"))
    lines.write_csv(folder / "a.qrels", separator=" ", include_header=False)


def jsonl(folder: Path, size: int) -> None:
    """One JSON object per row."""
    write_qrels(frame := rows(size), folder)
    frame.write_ndjson(folder / "a.jsonl")


def json_object(folder: Path, size: int) -> None:
    """One JSON object with an object of scores per query."""
    write_qrels(frame := rows(size), folder)
    lists = frame.group_by("query_id", maintain_order=True).agg("doc_id", "score")
    made = {query: dict(zip(docs, scores, strict=True)) for query, docs, scores in lists.iter_rows()}
    (folder / "a.json").write_text(json.dumps(made))


def parquet(folder: Path, size: int) -> None:
    """A table of query, document, score and the name of the run."""
    write_qrels(frame := rows(size), folder)
    frame.with_columns(run=pl.lit("bm25")).write_parquet(folder / "a.parquet")


def two_runs(folder: Path, size: int) -> None:
    """Two TREC runs whose lists share half of their documents."""
    rng = np.random.default_rng(0)
    queries = max(1, size // 1000)
    drawn = (rng.integers(0, 10**7, (queries, 1)) + 7 * np.arange(1500)) % 8_841_823
    for name, docs in (("a", drawn[:, :1000]), ("b", drawn[:, 500:])):
        frame = rows(queries * 1000).with_columns(doc_id=rng.permuted(docs, axis=1).ravel().astype(str))
        rank = np.tile(np.arange(1, 1001), queries)
        frame.select(
            "query_id", pl.lit("Q0").alias("Q0"), "doc_id", pl.Series("rank", rank), "score", pl.lit(name)
        ).write_csv(folder / f"{name}.run", separator=" ", include_header=False)


def vectors(folder: Path, size: int) -> None:
    """Vectors of length 1 around one centre per hundred."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((size // 100 + 1, 128))
    made = centres[rng.integers(0, len(centres), size)] + 0.7 * rng.standard_normal((size, 128))
    np.save(folder / "vectors.npy", (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32))


def result(folder: Path, queries: int) -> None:
    """The result folder of a bench of ten finished runs."""
    rng = np.random.default_rng(0)
    (folder / "data").mkdir()
    for name, count in (("corpus", 50_000), ("queries", queries)):
        ids = [f"{name[0]}{n}" for n in range(count)]
        texts = pl.DataFrame({"_id": ids, "text": [f"the text of {each}" for each in ids]})
        texts.write_ndjson(folder / "data" / f"{name}.jsonl")
    gold = rng.integers(0, 50_000, (queries, 3))
    (folder / "data" / "qrels.tsv").write_text(
        "query-id\tcorpus-id\tscore\n"
        + "".join(f"q{q}\tc{doc}\t1\n" for q, row in enumerate(gold.tolist()) for doc in dict.fromkeys(row))
    )
    for number in range(10):
        lists = (rng.integers(0, 50_000, (queries, 1)) + 7 * np.arange(100)) % 50_000
        for column in gold.T:
            lists[np.arange(queries), np.minimum(99, rng.exponential(2 + 3 * number, queries)).astype(int)] = column
        frame = pl.DataFrame(
            {
                "query_id": np.repeat([f"q{n}" for n in range(queries)], 100),
                "doc_id": [f"c{n}" for n in lists.ravel().tolist()],
                "score": np.tile(np.arange(100, 0, -1.0), queries),
            }
        )
        frame.unique(["query_id", "doc_id"], maintain_order=True).write_parquet(folder / f"run-{number}.parquet")
    runs = [{"run": f"run-{number}.parquet"} for number in range(10)]
    bench = {"dataset": "data", "retrievers": runs, "measures": ["nDCG@10", "R@20", "RR@10"]}
    (folder / "bench.yaml").write_text(json.dumps(bench))
    measured_process(folder, ["-m", "steelyard", "bench", "bench.yaml", "-o", "result"])


_LISTS = """
import json
queries = json.load(open("names.json"))
answers = {
    query: [(f"c{(7 * n + 13 * rank) % 5000}", 1 / (1 + rank)) for rank in range(100)]
    for n, query in enumerate(queries)
}
def search(query): return answers[query]
"""


def eight_retrievers(folder: Path, queries: int) -> None:
    """A bench of eight functions that know their answers."""
    (folder / "data").mkdir()
    for name, count in (("corpus", 5000), ("queries", queries)):
        ids = [f"{name[0]}{n}" for n in range(count)]
        texts = pl.DataFrame({"_id": ids, "text": [f"the text of {each}" for each in ids]})
        texts.write_ndjson(folder / "data" / f"{name}.jsonl")
    lines = [f"q{n}\tc{7 * n % 5000}\t1\n" for n in range(queries)]
    (folder / "data" / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(lines))
    (folder / "names.json").write_text(json.dumps([f"the text of q{n}" for n in range(queries)]))
    (folder / "known.py").write_text(_LISTS)
    retrievers = [{"python": {"target": "known:search", "name": f"r{n}"}} for n in range(8)]
    (folder / "bench.yaml").write_text(
        json.dumps({"dataset": "data", "retrievers": retrievers, "depth": 100, "measures": ["nDCG@10"]})
    )


def texts(folder: Path, size: int) -> None:
    """Documents of 200 words, the common words often."""
    rng = np.random.default_rng(0)
    words = np.minimum(rng.zipf(1.25, (size, 200)), 40_000)
    made = [" ".join(f"w{word}" for word in row) for row in words.tolist()]
    (folder / "texts.json").write_text(json.dumps(made))


def nothing(folder: Path, size: int) -> None:
    """The size alone: the data is made in the process."""
    (folder / "size").write_text(str(size))


_TIMED = """
import sys, time
def show(work, times):
    least = float("inf")
    for _ in range(times):
        start = time.process_time(); work(); least = min(least, time.process_time() - start)
    open("seconds", "w").write(str(least))
"""
_RUNS = (
    _TIMED
    + """
from benchmarks.scale import deep_runs
qrels, runs = deep_runs(int(open("size").read()))
"""
)
_OUR_RUNS = (
    _RUNS
    + """
import steelyard as sy
def work():
    judged = sy.Qrels(qrels)
    for run in runs: sy.evaluate(judged, run, ["nDCG@10", "AP", "RR@10", "R@100", "P@10"]).means
show(work, 9)
"""
)
_THEIR_RUNS = (
    _RUNS
    + """
import pytrec_eval
names = {"map": "map", "ndcg_cut.10": "ndcg_cut_10", "recip_rank": "recip_rank"}
names |= {"recall.100": "recall_100", "P.10": "P_10"}
def work():
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, set(names))
    for run in runs:
        found = evaluator.evaluate(run)
        [sum(values[name] for values in found.values()) for name in names.values()]
show(work, 5)
"""
)
_OUR_JSON = (
    _TIMED
    + """
import steelyard as sy
show(lambda: sy.evaluate("a.qrels", "a.json", ["nDCG@10", "AP", "RR@10", "R@100", "P@10"]), 9)
"""
)
_THEIR_JSON = _TIMED + "import orjson\nshow(lambda: orjson.loads(open('a.json', 'rb').read()), 9)\n"
_HASHING = """
import numpy as np, polars as pl
names = ["query", "q0", "doc", "rank", "score", "tag"]
tables = [
    pl.read_csv(f"{name}.run", separator=" ", has_header=False, new_columns=names, infer_schema=False) for name in "ab"
]
rows = pl.concat(tables)
query = rows["query"].rank("dense").to_numpy().astype(np.uint64)
keys = rows["doc"].hash().to_numpy() ^ (query * np.uint64(0x9E3779B97F4A7C15))
different, place = np.unique(keys, return_inverse=True)
scores = np.bincount(place, 1 / (60 + rows["rank"].cast(pl.Float64).to_numpy()))
first = np.zeros(len(different), dtype=np.int64)
first[place] = np.arange(len(place))
order = np.lexsort((-scores, query[first]))
fused = rows[first[order]].with_columns(score=pl.Series(scores[order]))
fused.write_csv("out.run", separator=" ", include_header=False)
"""
_BM25 = (
    _TIMED
    + """
from benchmarks.bm25 import BM25, tantivy_engine, tantivy_index, task
corpus, common, rare = task(int(open("size").read()))
def ours(queries, k):
    bm25 = BM25("okapi", tokenizer="whitespace").index(corpus)
    show(lambda: bm25.retrieve(queries, k), 5)
def theirs(queries, k):
    engine = tantivy_engine(corpus, [query.split() for query in queries])
    show(lambda: engine.search(k), 5)
"""
)
_TANTIVY = bool(find_spec("tantivy"))
_NEIGHBOURS = (
    _TIMED
    + "import numpy as np\nfrom steelyard.retrievers import graph as neighbours\nvectors = np.load('vectors.npy')\n"
)


_TEXTS = _TIMED + "import json\ntexts = json.load(open('texts.json'))\n"
_OUR_LSA = (
    _TEXTS
    + """
from steelyard.retrievers.embeddings import fit
show(lambda: fit(texts, str.split, 256), 2)
"""
)
_THEIR_LSA = (
    _TEXTS
    + """
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
def work():
    matrix = TfidfVectorizer(sublinear_tf=True, analyzer=str.split).fit_transform(texts)
    TruncatedSVD(256, random_state=0).fit_transform(matrix)
show(work, 2)
"""
)
_DENSE = """
import numpy as np
from steelyard.retrievers.dense import Dense
draw = np.random.default_rng(0)
count = int(open("size").read())
dense = Dense(model=lambda texts: draw.standard_normal((len(texts), 384), dtype=np.float32))
dense.index({str(n): str(n) for n in range(count)}).retrieve(["q"], k=10)
"""
_VECTORS = """
import numpy as np
np.random.default_rng(0).standard_normal((int(open("size").read()), 384), dtype=np.float32)
"""
_TUKEY = (
    _TIMED
    + """
import numpy as np
from steelyard.statistics import tukey
scores = np.random.default_rng(0).random((50, int(open("size").read())))
show(lambda: tukey(scores, 10_000), 1)
"""
)
_CALLS = "import known\nfor _ in range(8):\n    for query in known.queries: known.search(query)\n"


def deep_runs(queries: int) -> tuple[dict[str, dict[str, int]], list[dict[str, dict[str, float]]]]:
    """Qrels of 1,700 judgments per query, and eight runs of 1,005 documents per query, half of them judged."""
    rng = np.random.default_rng(0)
    qrels: dict[str, dict[str, int]] = {}
    runs: list[dict[str, dict[str, float]]] = [{} for _ in range(8)]
    for number in range(queries):
        ids = rng.choice(500_000, 6000, replace=False)
        grades = rng.choice([0] * 8 + [1, 2], 1700).tolist()
        qrels[f"q{number}"] = {f"doc-{n:07}": grade for n, grade in zip(ids[:1700].tolist(), grades, strict=True)}
        for run in runs:
            docs = np.concatenate(
                [rng.choice(ids[:1700], 502, replace=False), rng.choice(ids[1700:], 503, replace=False)]
            )
            scores = np.sort(rng.random(1005) * 30)[::-1].tolist()
            ordered = rng.permutation(docs).tolist()
            run[f"q{number}"] = {f"doc-{n:07}": score for n, score in zip(ordered, scores, strict=True)}
    return qrels, runs


def reading(call: str) -> list[str]:
    """A process that only reads a file with polars."""
    return ["-c", f"import polars; {call}"]


CASES = {
    "jsonl": Case(
        "JSON lines, evaluated", 1_750_000, "rows", jsonl,
        [*EVALUATE, "a.jsonl", *MEASURES], reading("polars.read_ndjson('a.jsonl')"),
    ),
    "json": Case(
        "A JSON object, evaluated", 125_000, "scores", json_object, ["-c", _OUR_JSON],
        ["-c", _THEIR_JSON] if find_spec("orjson") else [], inside=True,
    ),
    "parquet": Case(
        "Parquet, evaluated", 1_750_000, "rows", parquet,
        [*EVALUATE, "a.parquet", *MEASURES], reading("polars.read_parquet('a.parquet')"),
    ),
    "runs": Case(
        "Eight deep runs from dicts", 19, "queries", nothing, ["-c", _OUR_RUNS],
        ["-c", _THEIR_RUNS] if find_spec("pytrec_eval") else [], inside=True,
    ),
    "fuse": Case(
        "Two TREC runs fused", 1_750_000, "lines each", two_runs,
        ["-m", "steelyard", "fuse", "a.run", "b.run", "-o", "fused.run"], ["-c", _HASHING],
    ),
    "graph": Case(
        "Nearest neighbours of a document graph", 25_000, "documents", vectors,
        ["-c", f"{_NEIGHBOURS}show(lambda: neighbours.nearest(vectors, 10), 1)"],
        ["-c", f"{_NEIGHBOURS}show(lambda: neighbours.exact(vectors, 10), 1)"], inside=True, most=25_000,
    ),
    "report": Case(
        "The page of a stored result of ten runs", 2_500, "queries", result,
        ["-m", "steelyard", "report", "result", "-o", "out.html"], [],
    ),
    "bench": Case(
        "A bench of eight retrievers", 500, "queries", eight_retrievers,
        ["-m", "steelyard", "bench", "bench.yaml", "-o", "out"], ["-c", _CALLS],
    ),
    "lsa": Case(
        "Latent semantic analysis", 1300, "documents", texts, ["-c", _OUR_LSA],
        ["-c", _THEIR_LSA] if find_spec("sklearn") else [], inside=True,
    ),
    "dense": Case(
        "An index of vectors of 384 numbers", 125_000, "vectors", nothing, ["-c", _DENSE], ["-c", _VECTORS],
    ),
    "tukey": Case("Tukey's test of 50 runs", 2_500, "queries", nothing, ["-c", _TUKEY], [], inside=True),
    "index": Case(
        "BM25 index, default tokenizer", 25_000, "documents", nothing,
        ["-c", f"{_BM25}show(lambda: BM25().index(corpus), 2)"],
        ["-c", f"{_BM25}show(lambda: tantivy_index(corpus, 'en_stem'), 2)"] * _TANTIVY, inside=True,
    ),
    "search": Case(
        "BM25, 1,000 queries, the best 1,000", 25_000, "documents", nothing,
        ["-c", f"{_BM25}ours(common, 1000)"], ["-c", f"{_BM25}theirs(common, 1000)"] * _TANTIVY, inside=True,
    ),
    "rare": Case(
        "BM25, 1,000 queries of rare terms, the best 10", 100_000, "documents", nothing,
        ["-c", f"{_BM25}ours(rare, 10)"], ["-c", f"{_BM25}theirs(rare, 10)"] * _TANTIVY, inside=True,
    ),
}  # fmt: skip


def main() -> None:
    """Print one table per case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=[])
    parser.add_argument("--scale", type=float, default=1.0, help="a factor of all sizes")
    given, _ = parser.parse_known_args()
    for name in [name for name in given.cases if name in CASES] or CASES:
        show(CASES[name], given.scale)


def show(case: Case, scale: float) -> None:
    """Print the table of a case."""
    print(f"\n### {case.title}\n\n| {case.unit} | processor time | growth | peak memory | peer | ratio |")
    print("|---:|---:|---:|---:|---:|---:|")
    before = None
    for step in STEPS:
        size = max(2, int(step * case.size * scale))
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            case.make(folder, size)
            seconds, peak = timed(case, folder, case.command)
            peer = timed(case, folder, case.peer)[0] if case.peer and size <= case.most else None
        growth = "" if before is None else f"{seconds / before:.2f}"
        beside = " | " if peer is None else f"{in_words(peer)} | {seconds / peer:.2f}"
        print(f"| {size:,} | {in_words(seconds)} | {growth} | {peak / 1e6:,.0f} MB | {beside} |", flush=True)
        before = seconds


def in_words(seconds: float) -> str:
    """Seconds, or milliseconds below a tenth."""
    return f"{seconds:.2f} s" if seconds >= 0.1 else f"{seconds * 1e3:.1f} ms"


def timed(case: Case, folder: Path, command: list[str]) -> tuple[float, int]:
    """The processor time that counts, and the peak memory of the process."""
    _, seconds, peak = measured_process(folder, command)
    return (float((folder / "seconds").read_text()) if case.inside else seconds), peak


if __name__ == "__main__":
    sys.exit(main())
