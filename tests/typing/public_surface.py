"""A user's script that uses every public name. It is type-checked with `mypy --strict`, and not run.

One function per subject. A new public name is added where it belongs; `test_public_surface_types.py` checks that
no name of `steelyard.__all__` is missing here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import polars as pl
from typing_extensions import Self, assert_type

import steelyard as sy
import steelyard.spark
from steelyard.measures import P, R, nDCG
from steelyard.retrievers import BM25, Dense, GraphFlow, Hybrid, Random, Ranked, Rerank, Retriever, SwarmRerank
from steelyard.retrievers.adapters import Faiss, Http


def qrels_and_runs(frame: pl.DataFrame) -> tuple[sy.Qrels, sy.Run]:
    qrels = sy.Qrels.read("qrels.trec")
    qrels = sy.Qrels.read(Path("qrels.tsv"), format="beir")
    qrels = sy.Qrels({"q1": {"d1": 2, "d9": -1}})
    qrels = sy.Qrels({"q1": ["d1", "d2"]})
    qrels = sy.Qrels({"q1": [["a", "b"], ["c"]]})
    qrels = sy.Qrels(frame)
    run = sy.Run.read("bm25.run")
    run = sy.Run({"q1": {"d1": 12.3, "d2": 9.1}}, name="bm25")
    run = sy.Run({"q1": ["d1", "d2"]})
    run = sy.Run(frame)
    assert_type(qrels.frame, pl.DataFrame)
    assert_type(run.frame, pl.DataFrame)
    assert_type(run.name, str)
    qrels.write("qrels.jsonl")
    run.write(Path("run.parquet"))
    return qrels, run


def evaluation(qrels: sy.Qrels, run: sy.Run) -> sy.Scores:
    scores = sy.evaluate(qrels, run, ["nDCG@10", "AP", "RR@10"])
    scores = sy.evaluate("qrels.trec", Path("bm25.run"), "nDCG@10")
    scores = sy.evaluate({"q1": {"d1": 1}}, {"q1": ["d1"]}, [nDCG @ 10, P(rel=2) @ 5, R @ 20])
    scores = sy.evaluate(
        qrels,
        run,
        ["map", "ndcg_cut_10"],
        dialect="trec_eval-9",
        missing="zero",
        ties="docid-desc",
        duplicates="hold",
        no_relevant="zero",
        unjudged="keep",
        rel=1,
        depth=1000,
    )
    assert_type(scores["nDCG@10"], float)
    assert_type(scores.means, dict[str, float])
    assert_type(scores.per_query, pl.DataFrame)
    assert_type(scores.interval("nDCG@10"), tuple[float, float])
    coverage: sy.Coverage = scores.coverage
    notes: Sequence[sy.Note] = coverage.notes
    for note in notes:
        assert_type(note.code, str)
        assert_type(note.severity, Literal["error", "warning", "info"])
    print(coverage, scores.to_json())
    return scores


def comparison(qrels: sy.Qrels, a: sy.Run, b: sy.Run) -> sy.Comparison:
    result = sy.compare(
        qrels,
        {"bm25": a, "dense": b},
        ["nDCG@10", "RR@10"],
        baseline="bm25",
        test="t",
        correction="holm",
        composite={"nDCG@10": 0.5, "RR@10": 0.5},
        seed=0,
    )
    policies: sy.Policies = {"missing": "skip", "rel": 2}
    statistics: sy.Statistics = {"test": "permutation", "alpha": 0.01}
    assert_type(sy.evaluate(qrels, a, **policies), sy.Scores)
    assert_type(sy.compare(qrels, [a, b], **policies, **statistics), sy.Comparison)
    assert_type(sy.gate("result", "nDCG@10 >= 0.4", **statistics), sy.GateResult)
    result = sy.compare_scores("per-query.csv", ["MRR"], baseline="bm25", **statistics)
    assert_type(result.leaderboard, pl.DataFrame)
    assert_type(result.pairs, pl.DataFrame)
    texts: list[str] = [result.to_markdown(), result.to_latex(), result.to_json(), str(result.verdict)]
    print(*texts)
    result.to_html("report.html")
    return result


def definitions(qrels: sy.Qrels, run: sy.Run) -> None:
    assert_type(sy.parse("nDCG(gain=exp)@10"), sy.Measure)
    assert_type(sy.explain("nDCG@10", dialect="autorag"), sy.Explanation)
    dialects = ["trec_eval-9", "multihop-rag"]
    assert_type(sy.reconcile(qrels, run, ["MAP@5"], dialects=dialects), sy.Reconciliation)
    assert_type(sy.identify(qrels, run, 0.4123), sy.Identification)
    assert_type(sy.list_measures().frame, pl.DataFrame)
    assert_type(sy.list_dialects()["ranx"], sy.Dialect)
    names: Iterable[str] = sy.list_measures()
    print(*names)


def files() -> None:
    for format in sy.list_formats().values():
        print(format.name, format.description)
    sy.convert("bm25.run", Path("bm25.parquet"))


def judging(a: sy.Run, b: sy.Run, dataset: sy.Dataset) -> None:
    pool = sy.pool({"bm25": a, "dense": b}, qrels=None, depth=10)
    pool = sy.pool([a, b], "qrels.trec", budget=500, strategy="pair")
    assert_type(pool, sy.Pool)
    assert_type(pool.frame, pl.DataFrame)
    labels = sy.Judgments.read("judgments.jsonl")
    labels = sy.judge(
        pool,
        dataset,
        endpoint="http://127.0.0.1:8000/v1",
        model="a-model",
        prompt="graded",
        cache="judge.sqlite",
        max_requests=1000,
    )
    assert_type(labels, sy.Judgments)
    assert_type(labels.qrels(resolve="majority"), sy.Qrels)
    sets = sy.agreement(scores="scores.csv", queries="queries.tsv", by="kind", reference="real", measures=["nDCG@10"])
    assert_type(sets, sy.QuerySets)
    assert_type(sets.query_sets, pl.DataFrame)
    drafts = sy.questions("docs/", endpoint="http://127.0.0.1:8000/v1", model="m", n=200, kinds={"fact": 1.0}, seed=0)
    assert_type(drafts, sy.Drafts)
    assert_type(drafts.accepted, pl.DataFrame)
    drafts.write("questions/")
    agreed = sy.agreement({"human": labels, "model": "model.jsonl"}, runs=[a, b], measures=["nDCG@10"])
    assert_type(agreed, sy.Agreement)
    assert_type(agreed.pairs, pl.DataFrame)
    texts: list[str] = [agreed.to_text(), agreed.to_markdown(), agreed.to_json(), agreed.to_html()]
    print(*texts, agreed.systems, agreed.confusion("human", "model"), sy.sampled_scores(a, pool, labels))
    scores = sy.evaluate("human.trec", a, ["nDCG@10"], predicted=labels)
    assert_type(scores.judged("nDCG@10"), float)
    assert_type(scores.bounds("nDCG@10"), tuple[float, float])


def runs_without_qrels(a: sy.Run, b: sy.Run) -> None:
    lists = sy.compare(None, {"bm25": a, "dense": b})
    assert_type(lists, sy.ListComparison)


def fusion(qrels: sy.Qrels, a: sy.Run, b: sy.Run) -> sy.Run:
    tuned = sy.tune(qrels, [a, b], "wsum", "nDCG@10")
    assert_type(tuned, sy.Tuned)
    return sy.fuse([a, b], method="rrf", k=60)


def datasets_and_evidence(chunks: pl.DataFrame) -> sy.Dataset:
    dataset = sy.Dataset.read("folder-or-file")
    evidence = sy.Evidence(
        {"q1": [[{"doc_id": "book", "start": 10, "end": 90}], [{"fact": "Paris is ..."}, {"doc_id": "d7"}]]}
    )
    assert_type(evidence.judge(chunks), sy.Qrels)
    assert_type(dataset.qrels, sy.Qrels)
    assert_type(dataset.corpus, sy.Corpus)
    assert_type(dataset.queries, sy.Queries)
    texts: Mapping[str, str] = dataset.corpus
    questions: Mapping[str, str] = dataset.queries
    by_document = sy.RollUp({"chunk-1": "book"})
    sy.evaluate("qrels.trec", "chunks.run", "nDCG@10", roll_up=by_document)
    print(len(texts), len(questions))
    return dataset


class FirstDocuments(sy.Retriever):
    """A retriever of the user's own."""

    documents: list[str]

    @property
    def label(self) -> str:
        return "first-documents"

    def index(self, corpus: Mapping[str, str]) -> Self:
        self.documents = list(corpus)
        return self

    def retrieve(self, queries: Sequence[str], k: int = 10) -> list[Ranked]:
        return [[(doc, 1.0) for doc in self.documents[:k]] for _ in queries]

    def settings(self) -> dict[str, Any]:
        return {}

    def size_in_bytes(self) -> int:
        return 0


def retrieval() -> None:
    bm25 = BM25(variant="okapi", k1=1.5, b=0.75, tokenizer="whitespace")
    bm25 = BM25(tokenizer=str.split)
    bm25.index({"d1": "text", "d2": "text"})
    lists = bm25.retrieve(["a question"], k=10)
    for doc, score in lists[0]:
        assert_type(doc, str)
        assert_type(score, float)
    retrievers: list[Retriever] = [
        Random(seed=42),
        Dense(name="lsa", vectors=None),
        GraphFlow(),
        SwarmRerank(),
        FirstDocuments(),
    ]
    retrievers += [Hybrid(of=[bm25, Dense()], fuse="rrf"), Rerank(bm25, score="model-folder")]
    retrievers += [
        Faiss(of="dense", kind="hnsw", name="approximate"),
        Http("http://127.0.0.1:8000/search", timeout=2.5),
    ]
    names: Iterable[str] = sy.list_retrievers()
    print(*names, len(retrievers))


def stored_result() -> sy.ResultFolder:
    return sy.load_result("bench-result")


def benchmark() -> sy.BenchResult:
    result = sy.bench("bench.yaml")
    result = sy.bench(sy.Bench.model_validate({"dataset": "demo", "retrievers": ["bm25-okapi"]}))
    assert_type(result, sy.BenchResult)
    assert_type(result.comparison, sy.Comparison)
    runs: Mapping[str, sy.Run] = result.runs
    folder: Path | None = result.folder
    print(len(runs), folder)
    return result


def several_datasets(result: sy.BenchResult, comparison: sy.Comparison) -> sy.Across:
    many = sy.across({"scifact": result, "cranfield": comparison, "faq": "faq-result"}, measure="nDCG@10")
    many = sy.across(
        ["scifact-result", Path("cranfield-result")],
        missing="skip",
        borda="measured",
        dialect="mteb",
        published=["beir.csv"],
    )
    assert_type(many.table, pl.DataFrame)
    assert_type(many.pairs, pl.DataFrame)
    verdict: str = many.verdict
    print(verdict, many.to_html("across.html"), many.to_json(), many.to_markdown(), many.to_latex(), many.to_csv())
    if isinstance(result, sy.BenchAcross):
        assert_type(result.across, sy.Across)
        print(*result.results)
    return many


def by_stage(qrels: sy.Qrels, run: sy.Run) -> sy.Stages:
    flow = sy.stages(qrels, {"retrieve": run, "rerank": "b.run"}, measure="nDCG@10", inputs={"rerank": ["retrieve"]})
    assert_type(flow.table, pl.DataFrame)
    assert_type(flow.per_query, pl.DataFrame)
    fates: Mapping[str, int] = flow.fates
    print(fates, flow.verdict, flow.to_html("stages.html"), flow.to_json(), flow.to_markdown(), flow.to_csv())
    return flow


def data_quality(dataset: sy.Dataset, run: sy.Run) -> sy.Check:
    found = sy.check(dataset, {"mine": run}, ["nDCG@10"])
    findings: tuple[sy.CheckFinding, ...] = found.findings
    print([(each.code, each.severity, each.count, each.text, each.effect) for each in findings], found.ceilings)
    return found


def over_time() -> sy.History:
    found = sy.history("history.jsonl")
    assert_type(found.table, pl.DataFrame)
    assert_type(found.changes, pl.DataFrame)
    assert_type(found.latest, pl.DataFrame)
    assert_type(found.movers("1a2b3c4", "last", run="bm25"), pl.DataFrame)
    assert_type(found.to_html("history.html"), str)
    return found


def gate(result: sy.BenchResult) -> bool:
    checked = sy.gate(result, ["nDCG@10 >= 0.40"], baseline="baseline.json")
    assert_type(checked, sy.GateResult)
    assert_type(checked.passed, bool)
    sy.save_baseline(result, "baseline.json")
    return checked.passed


def cluster(spark: Any, qrels: Any, run: Any) -> None:
    scores = steelyard.spark.evaluate(spark, qrels, run, ["nDCG@10"])
    assert_type(scores.means, dict[str, float])
    print(scores.per_query)


def errors() -> None:
    try:
        sy.Run.read("no-such-file")
    except (sy.InputError, sy.MeasureError, sy.PolicyError, sy.PackageError, sy.RetrieverError) as error:
        failure: sy.SteelyardError = error
        print(failure, sy.__version__)
    warned: type[UserWarning] = sy.SteelyardWarning
    print(warned)
