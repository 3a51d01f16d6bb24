"""Stages in a bench: what each step received and returned is kept, cached, and split by what it loses."""

from __future__ import annotations

import json
import math
import random
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

import steelyard as sy
from needs import import_peer, needs_shared, shared_data
from steelyard.benchmark.cache import Answers, AnswerStore
from steelyard.benchmark.comparison import stage_rows, stages_schema
from steelyard.benchmark.folder import load_result
from steelyard.benchmark.result import write_rows
from steelyard.cli import run as steelyard
from steelyard.errors import InputError
from steelyard.retrievers import BM25, Dense, Hybrid
from steelyard.retrievers.adapters.http import Http
from steelyard.retrievers.base import Staged

WORDS = [
    "gold",
    "balance",
    "river",
    "boat",
    "stone",
    "lead",
    "water",
    "lake",
    "weigh",
    "float",
    "sink",
    "scale",
    "beam",
    "arm",
    "pan",
]
RNG = random.Random(5)
CORPUS = {f"d{n:02}": " ".join(RNG.choices(WORDS, k=6)) for n in range(60)}
QUERIES = {f"q{n}": " ".join(RNG.sample(WORDS, 2)) for n in range(12)}
QRELS = {query: {doc: RNG.randint(1, 3) for doc in RNG.sample(sorted(CORPUS), 6)} for query in QUERIES}


def shortest(query: str, texts: list[str]) -> list[float]:
    return [-float(len(text)) for text in texts]


def bench(folder: Path, *retrievers: object, **more: object) -> sy.BenchResult:
    dataset = sy.Dataset.of(CORPUS, QUERIES, QRELS, name="tiny")
    given = {"dataset": dataset, "retrievers": list(retrievers), "measures": ["nDCG@5"], "depth": 8, "warmup": 0}
    return sy.bench({**given, **more}, output=folder)


def kept(folder: Path, run: str) -> dict[str, dict[str, list[str]]]:
    """The lists of stages.parquet: stage, query, documents."""
    found: dict[str, dict[str, list[str]]] = {}
    for name, stage, query, _, docs in pl.read_parquet(folder / "stages.parquet").rows():
        if name == run:
            found.setdefault(stage, {})[query] = docs
    return found


def ids(found: list[tuple[str, float]]) -> list[str]:
    return [doc for doc, _ in found]


def mean(result: sy.BenchResult, run: str) -> float:
    return float(result.comparison.leaderboard.filter(run=run)["nDCG@5"][0])


def by_hand(retriever: object, k: int) -> dict[str, list[str]]:
    indexed = retriever.index(CORPUS)
    return {query: ids(indexed.retrieve([text], k)[0]) for query, text in QUERIES.items()}


RERANK = {"rerank": {"first": "bm25-okapi", "score": shortest, "candidates": 20}}
DEEP = {
    "rerank": {
        "first": {"hybrid": {"of": ["bm25-lucene", {"dense": {"dimensions": 4}}], "depth": 15}},
        "score": shortest,
        "candidates": 10,
        "name": "deep",
    }
}


def test_rerank_and_hybrid_keep_what_each_step_returned(tmp_path: Path) -> None:
    result = bench(tmp_path, RERANK, DEEP)
    assert kept(tmp_path, "rerank") == {"retrieve": by_hand(BM25("okapi"), 20)}
    lexical, dense = BM25("lucene", fill=False), Dense(dimensions=4)
    assert kept(tmp_path, "deep") == {
        "bm25-lucene": by_hand(lexical, 15),
        "dense": by_hand(dense, 15),
        "fuse": by_hand(Hybrid(of=[lexical, dense], depth=15), 10),
    }
    stages = {row["run"]: row["stages"] for row in json.loads((tmp_path / "result.json").read_text())["runs"]}
    assert stages == {
        "rerank": {"retrieve": [], "rerank": ["retrieve"]},
        "deep": {"bm25-lucene": [], "dense": [], "fuse": ["bm25-lucene", "dense"], "rerank": ["fuse"]},
    }
    whole = {**kept(tmp_path, "deep"), "rerank": result.runs["deep"]}
    expected = sy.stages(QRELS, whole, "nDCG@5", inputs={"fuse": ["bm25-lucene", "dense"]})
    for source in (result, tmp_path, load_result(tmp_path)):
        found = sy.stages(source, "deep")
        assert found.table.equals(expected.table)
        assert found.fates == expected.fates
        assert found.to_dict() == {**expected.to_dict(), "run": "deep"}
        assert found.value == pytest.approx(mean(result, "deep"), abs=1e-12)


def test_filter_and_walks_are_stages(tmp_path: Path) -> None:
    bench(tmp_path, {"dense": {"filter": 0.5}}, {"swarm-rerank": {"candidates": 12}}, "graph-flow")
    nearest = by_hand(Dense(), 12)
    assert kept(tmp_path, "swarm-rerank") == {"retrieve": nearest}
    first = {query: docs[:8] for query, docs in nearest.items()}
    assert kept(tmp_path, "dense") == kept(tmp_path, "graph-flow") == {"retrieve": first}
    found = sy.stages(tmp_path, "dense")
    passed = set(found.target_fates.filter(fate="lost in filter")["target"])
    assert found.fates["lost in filter"] > 0
    assert not passed & {doc for query in QUERIES for doc in by_hand(Dense(filter=0.5), 60)[query]}


def test_a_token_budget_of_the_measure_is_a_stage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import_peer("jinja2")
    result = bench(tmp_path / "result", RERANK, measures=["R(budget=20)"])
    found = sy.stages(result)
    assert found.steps == ("retrieve", "rerank", "budget")
    assert found.value == pytest.approx(float(result.comparison.leaderboard["R(budget=20)"][0]), abs=1e-12)
    # Every document has 6 words: the budget keeps 3 of the 8 documents of a list
    below = result.runs["rerank"].frame.filter(pl.col("rank") > 3)
    cut = sum(doc in QRELS[query] for query, doc in below.select("query_id", "doc_id").rows())
    assert found.fates["lost in budget"] == cut > 0
    assert list(found.lists) == ["retrieve", "rerank", "budget"]
    assert "lost in budget" in (tmp_path / "result" / "report.html").read_text()
    # and on the command line, with the texts of a dataset folder
    sy.Dataset.of(CORPUS, QUERIES, QRELS, name="tiny").write(tmp_path / "data")
    files = [f"rerank={tmp_path / 'result' / 'runs' / 'rerank.parquet'}", "-m", "R(budget=20)", "--format", "json"]
    assert steelyard(["stages", str(tmp_path / "data"), *files]) == 0
    assert json.loads(capsys.readouterr().out)["fates"]["lost in budget"] == cut


def lists_of(query: str) -> list[str]:
    return random.Random(query).sample(sorted(CORPUS), 10)


def test_functions_return_stages_and_may_skip_one(tmp_path: Path) -> None:
    def app(query: str, k: int) -> dict[str, object]:
        found = lists_of(query)
        if query == QUERIES["q3"]:
            return {"stages": {"retrieve": found, "context": found[2:5]}}
        if query == QUERIES["q4"]:
            return {"stages": {"retrieve": found}}
        pairs = [(doc, 1.0) for doc in found[::-1]]
        return {"stages": {"retrieve": found, "rerank": pairs, "context": [{"id": doc} for doc in found[:3]]}}

    result = bench(tmp_path, {"python": {"target": app, "name": "app"}}, "bm25-okapi")
    assert not result.failed
    found = kept(tmp_path, "app")
    every = {query: lists_of(text) for query, text in QUERIES.items()}
    skipped = {"q3", "q4"}
    assert found["retrieve"] == {**every, "q4": every["q4"][:8]}
    assert found["rerank"] == {q: found["retrieve"][q] if q in skipped else docs[::-1] for q, docs in every.items()}
    lists = {query: docs[:3] for query, docs in every.items()} | {"q3": every["q3"][2:5], "q4": every["q4"][:8]}
    assert {query: ids(docs) for query, docs in result.runs["app"].mapping.items()} == lists
    expected = sy.stages(QRELS, {**found, "context": lists}, "nDCG@5")
    assert sy.stages(result).table.equals(expected.table)
    assert sy.stages(result).run == "app"
    assert sy.stages(result).steps == ("retrieve", "rerank", "context")


@pytest.mark.parametrize("last", [False, True])
def test_calls_of_a_function_are_kept(last: bool, tmp_path: Path) -> None:
    import_peer("jinja2")

    def agent(query: str) -> dict[str, object]:
        found = lists_of(query)
        calls = [found[:4], [*found[2:6], *found[:2]]] + ([found[1:3]] if query == QUERIES["q5"] else [])
        stage = {"calls": calls, "list": found[:5]} if last else {"calls": calls}
        return {"stages": {"retrieve": stage} if last else {"retrieve": stage, "context": found[1:4]}}

    result = bench(tmp_path, {"python": {"target": agent, "name": "agent"}})
    every = {query: lists_of(text) for query, text in QUERIES.items()}
    calls = [
        {query: docs[:4] for query, docs in every.items()},
        {query: [*docs[2:6], *docs[:2]] for query, docs in every.items()},
        {"q5": every["q5"][1:3]},
    ]
    stages = {"retrieve": {"calls": calls}, "context": {query: docs[1:4] for query, docs in every.items()}}
    if last:
        stages = {"retrieve": {"calls": calls, "list": {query: docs[:5] for query, docs in every.items()}}}
    expected = sy.stages(QRELS, stages, "nDCG@5")
    for found in (sy.stages(result), sy.stages(tmp_path, "agent")):
        assert found.to_dict() == {**expected.to_dict(), "run": "agent"}
    assert expected.calls is not None
    assert expected.calls["nothing_new"].to_list() == [0, 0, 1]
    assert "nothing relevant" in (tmp_path / "report.html").read_text()


def test_parallel_stages_of_a_function_are_a_graph(tmp_path: Path) -> None:
    def app(query: str) -> dict[str, object]:
        found = lists_of(query)
        stages = {"lexical": found[:6], "dense": found[4:], "fuse": found[1:9]}
        return {"stages": stages, "inputs": {"fuse": ["lexical", "dense"]}}

    found = sy.stages(bench(tmp_path, {"python": {"target": app}}))
    assert found.steps == ("lexical + dense", "fuse")
    assert set(found.own) == {"lexical", "dense"}


def test_a_service_returns_stages() -> None:
    service = Http(target="http://localhost:9/search?q={query}")
    answer = {"stages": {"retrieve": [{"id": "a", "score": 2}, {"id": "b", "score": 1}], "rerank": ["b", "a", "c"]}}
    found = service.read(["a question"], [answer], 2)[0]
    assert found == [("b", 1.0), ("a", 0.5)]
    assert isinstance(found, Staged)
    assert found.lists == {"retrieve": ["a", "b"]}


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"stages": {}}, "`stages` is empty; expected"),
        ({"stages": {"a": ["d01"], "b": ["d02"]}, "inputs": ["a"]}, "`inputs` is a list; expected"),
        ({"stages": {"a": ["d01"], "b": ["d02"]}, "inputs": {"b": ["c"]}}, "there is no stage 'c'"),
        ({"stages": {"a": ["d01"], "ordering": ["d02"]}}, "'ordering' cannot be the name of a stage"),
        ({"stages": {"a": 7, "b": ["d02"]}}, "stage a: the result for '"),
    ],
)
def test_wrong_stages_fail_the_query(answer: object, error: str, tmp_path: Path) -> None:
    def app(query: str) -> object:
        return answer if query == QUERIES["q2"] else ["d01"]

    result = bench(tmp_path, {"python": {"target": app}}, "bm25-okapi")
    assert list(result.rows[0].errors) == ["q2"]
    assert error in result.rows[0].errors["q2"]
    assert not (tmp_path / "stages.parquet").exists()


def test_cached_answers_keep_their_stages(tmp_path: Path) -> None:
    first = bench(tmp_path, RERANK, DEEP)
    frame, rows = pl.read_parquet(tmp_path / "stages.parquet"), [row.stages for row in first.rows]
    (tmp_path / "stages.parquet").unlink()
    with pytest.raises(InputError, match=r"stages\.parquet cannot be read; run the bench again"):
        sy.stages(tmp_path)
    again = bench(tmp_path, RERANK, DEEP)
    assert all(row.cached for row in again.rows)
    assert [row.stages for row in again.rows] == rows
    assert pl.read_parquet(tmp_path / "stages.parquet").equals(frame)
    bench(tmp_path, "bm25-okapi")
    assert not (tmp_path / "stages.parquet").exists()
    with pytest.raises(InputError, match="no run has stages"):
        sy.stages(tmp_path)


def test_chunkings_have_stages_of_their_own_chunks(tmp_path: Path) -> None:
    texts = {"a": "Gold is weighed here. Boats are for lakes.", "b": "Stones sink. A balance weighs gold and lead."}
    dataset = sy.Dataset.of(texts, {"q1": "weighed gold"}, {"q1": ["a", "b"]})
    evidence = sy.Evidence({"q1": [{"doc_id": "a", "start": 0, "end": 21}, {"fact": "weighs gold"}]})
    bench(
        tmp_path,
        RERANK,
        dataset=dataset,
        evidence=evidence,
        chunkers=[{"sentence": {"tokens": 4}}, "whole"],
        measures=["R@1"],
    )
    found = kept(tmp_path, "rerank on sentence-4")["retrieve"]["q1"]
    assert all(doc.startswith("sentence-4:") for doc in found)
    assert sy.stages(tmp_path, "rerank on sentence-4").fates["never retrieved"] == 0
    assert sy.stages(tmp_path, "rerank on whole").value == pytest.approx(0.5)


def test_stages_are_written_from_the_cache_one_answer_at_a_time(tmp_path: Path) -> None:
    queries, docs = 150, 2_000
    store = AnswerStore(tmp_path, "0" * 20)
    for number in range(queries):
        found = [f"document-{number}-{rank:05}" for rank in range(docs)]
        staged = Staged([(found[0], 1.0)], "rerank", [("retrieve", [(doc, 1.0) for doc in found])])
        entry = {"query": f"q{number}", "seconds": 0.1, "list": staged}
        store.add({**entry, "stages": staged.lists, "reads": staged.reads})
    store.close()
    answers = Answers()
    tracemalloc.start()
    answers = store.read()
    job = SimpleNamespace(answers=answers, store=store, spec=SimpleNamespace(label="mine"), doc_id=str)
    write_rows(stage_rows([job]), tmp_path / "stages.parquet", stages_schema())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    frame = pl.read_parquet(tmp_path / "stages.parquet")
    assert frame["doc_ids"].list.len().to_list() == [docs] * queries
    assert frame["doc_ids"][7][1999] == "document-7-01999"
    assert peak < 25_000_000 < frame["doc_ids"].explode().str.len_bytes().sum() * 8


def test_command_with_a_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "result"
    result = bench(folder, RERANK, DEEP)
    best = result.comparison.leaderboard["run"][0]
    assert steelyard(["stages", str(folder), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["run"] == best
    assert found["measure"] == "nDCG@5"
    assert steelyard(["stages", str(folder), "rerank", "-m", "R@5"]) == 0
    out, err = capsys.readouterr()
    assert "in/out@5" in out
    assert "rerank: R@5 of 12 queries" in err
    assert "Other runs with stages: deep." in err
    assert steelyard(["stages", str(folder), "nothing"]) != 0
    assert "'nothing' is not a run with stages; expected one of" in capsys.readouterr().err
    assert steelyard(["stages", str(folder), "a", "b", "c"]) != 0
    assert "expected at most two of its runs" in capsys.readouterr().err


def test_two_runs_of_a_result_are_compared_by_stage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = {"rerank": {**RERANK["rerank"], "first": "bm25-lucene", "candidates": 5, "name": "other"}}
    result = bench(tmp_path, RERANK, other)
    changes = sy.stages(result, "rerank").difference(sy.stages(result, "other"))
    means = [mean(result, run) for run in ("rerank", "other")]
    assert changes["gained"].sum() == pytest.approx(means[0] - means[1], abs=1e-12)
    assert steelyard(["stages", str(tmp_path), "rerank", "other", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == changes.to_dicts()


def test_page_shows_the_stages_of_every_run(tmp_path: Path) -> None:
    import_peer("jinja2")
    named = {"rerank": {**RERANK["rerank"], "name": "<b>mine</b>"}}
    bench(tmp_path, named, DEEP)
    page = (tmp_path / "report.html").read_text()
    assert page.count('<details class="panel"') >= 2
    assert '<section id="stages">' in page
    assert "<bdi>&lt;b&gt;mine&lt;/b&gt;</bdi>" in page
    assert "<b>mine" not in page
    lost = sy.stages(tmp_path, "deep").target_fates.filter(fate="never retrieved")["query_id"][0]
    assert f'<a href="#query={lost}&amp;stages=deep">{lost}</a>' in page
    load_result(tmp_path).to_html(tmp_path / "again.html")
    assert '<section id="stages">' in (tmp_path / "again.html").read_text()
    bench(tmp_path, "bm25-okapi")
    assert '<section id="stages">' not in (tmp_path / "report.html").read_text()


def shared_words(query: str, texts: list[str]) -> list[float]:
    """A bad reranker: the share of the question's words that a text has."""
    words = set(query.lower().split())
    return [len(words & set(text.lower().split())) / len(words) for text in texts]


@needs_shared
@pytest.mark.slow
def test_scifact_the_story_by_hand(tmp_path: Path) -> None:
    """BM25 finds 314 of 339 documents in its first 100; the reranker pushes 63 of them out of the first ten."""
    data = sy.Dataset.read(shared_data("scifact"))
    rerank = {"rerank": {"first": "bm25-okapi", "score": shared_words, "candidates": 100}}
    bench(tmp_path, rerank, dataset=data, measures=["nDCG@10"], depth=100)
    found = sy.stages(tmp_path)

    bm25 = BM25("okapi").index(data.corpus)
    values: dict[str, list[float]] = {"best": [], "retrieve": [], "first": [], "last": []}
    never = below = delivered = lifted = pushed = 0
    grades_of: dict[str, dict[str, float]] = {}
    for line in (shared_data("scifact") / "qrels_test.tsv").read_text().splitlines()[1:]:
        query, doc, grade = line.split("\t")
        grades_of.setdefault(query, {})[doc] = float(grade)
    for query, judged in grades_of.items():
        first = ids(bm25.retrieve([data.queries[query]], 100)[0])
        scores = shared_words(data.queries[query], [data.corpus[doc] for doc in first])
        last = [doc for doc, _ in sorted(zip(first, scores, strict=True), key=lambda pair: -pair[1])]
        ideal = sorted(judged.values(), reverse=True)
        lists = {
            "best": ideal,
            "retrieve": sorted((judged.get(doc, 0) for doc in first), reverse=True),
            "first": [judged.get(doc, 0) for doc in first],
            "last": [judged.get(doc, 0) for doc in last],
        }
        for name, grades in lists.items():
            values[name].append(dcg(grades[:10]) / dcg(ideal[:10]))
        for doc in judged:
            never += doc not in first
            delivered += doc in last[:10]
            below += doc in last[10:]
            lifted += doc in last[:10] and doc not in first[:10]
            pushed += doc in first[:10] and doc not in last[:10]
    means = {name: sum(each) / len(each) for name, each in values.items()}
    assert found.table["ceiling"].to_list() == pytest.approx([means["retrieve"]] * 2, abs=1e-12)
    assert found.table["value"].to_list() == pytest.approx([means["first"], means["last"]], abs=1e-12)
    assert found.table["lost"].to_list() == pytest.approx([means["best"] - means["retrieve"], 0.0], abs=1e-12)
    assert found.ordering["lost"] == pytest.approx(means["retrieve"] - means["last"], abs=1e-12)
    fates = {"never retrieved": never, "lost in rerank": 0, "below the cutoff": below, "delivered": delivered}
    assert found.fates == fates
    assert (found.table["lifted"][1], found.table["pushed"][1]) == (lifted, pushed)
    assert (never, below, delivered, lifted, pushed) == (25, 102, 212, 2, 63)
    assert found.verdict == "Work on: ordering (0.40 of the 0.48 lost)"


def dcg(grades: list[float]) -> float:
    return sum(grade / math.log2(rank + 1) for rank, grade in enumerate(grades, start=1))


def test_a_result_whose_folder_was_written_again_is_not_that_of_the_later_bench(tmp_path: Path) -> None:
    earlier = bench(tmp_path, {"hybrid": {"name": "mine", "of": ["bm25-okapi", "bm25-l"]}})
    assert sy.gate(earlier, ["nDCG@5 >= 0"]).verdict == "passed"
    assert earlier.documents.height > 0
    assert sy.stages(earlier).steps
    later = bench(tmp_path, {"random": {"name": "mine"}})
    for use in (
        lambda: sy.gate(later, "no significant drop in nDCG@5", baseline=earlier),
        lambda: sy.stages(earlier),
        lambda: earlier.documents,
        lambda: earlier.to_html(tmp_path / "page.html"),
    ):
        with pytest.raises(InputError, match="has another result now: a later bench wrote it"):
            use()
    assert sy.gate(later, ["nDCG@5 >= 0"]).verdict == "passed"
