"""Engines on scifact with the same vectors: one bench, what approximate search costs, and the chart on its page."""

from __future__ import annotations

import json

import numpy as np
import pytest

import steelyard as sy
from needs import import_peer, shared_data
from steelyard.benchmark.approximation import neighbours_found
from steelyard.cli import run as steelyard
from steelyard.retrievers.adapters.postgres import server_package
from steelyard.retrievers.dense import passing

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]

EXACT = ["faiss", "lancedb", "milvus", "qdrant", "sqlite-vec"]
SWEEPS = {"hnsw": [4, 16, 64], "ivf": [1, 8, 64]}


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    for module in ("faiss", "psycopg", server_package(), "lancedb", "chromadb", "pymilvus", "milvus_lite"):
        import_peer(module)
    import_peer("qdrant_client")
    import_peer("sqlite_vec")
    shares = [("", None), (" filtered", 0.2)]
    bench = {
        "dataset": str(shared_data("scifact")),
        "depth": 20,
        "retrievers": [
            "dense",
            {"dense": {"filter": 0.2, "name": "dense filtered"}},
            *({name: {"of": "dense"}} for name in (*EXACT, "chroma")),
            {"pgvector": {"kind": "hnsw", "ef_search": 100, "of": "dense"}},
            *(
                {"faiss": {"kind": kind, "of": "dense", **more, "filter": share, "name": f"{kind}{suffix}"}}
                for suffix, share in shares
                for kind, more in (("hnsw", {"m": 4, "ef_search": SWEEPS["hnsw"]}), ("ivf", {"probes": SWEEPS["ivf"]}))
            ),
        ],
        "measures": ["nDCG@10", "R@20", "Latency"],
        "baseline": "dense",
    }
    return sy.bench(bench, tmp_path_factory.mktemp("engines") / "result")


def test_exact_engines_have_the_lists_of_dense(result):
    assert not result.failed
    expected = result.runs["dense"].frame
    for name in EXACT:
        found = result.runs[name].frame
        np.testing.assert_allclose(found["score"].to_numpy(), expected["score"].to_numpy(), atol=3e-6)
        assert (found["doc_id"] == expected["doc_id"]).mean() > 0.995
        assert neighbours_found(result.runs["dense"], result.runs[name], 10) == 1.0


def test_the_embeddings_were_computed_once(result):
    assert len(list((result.folder / "cache" / "vectors").glob("*.npz"))) == 1
    seconds = {row.run: row.index_seconds for row in result.rows}
    assert seconds["dense"] > 5 * seconds["dense filtered"]


def test_what_approximate_search_costs(result):
    found = {each.run: each for each in result.approximation}
    assert set(found) == {row.run for row in result.rows} - {"dense", "dense filtered"}
    for name in EXACT:
        assert (found[name].neighbours, found[name].exact) == (1.0, "dense")
        assert abs(found[name].lost) < 0.002
    for suffix, exact in (("", "dense"), (" filtered", "dense filtered")):
        for kind, setting in (("hnsw", "ef_search"), ("ivf", "probes")):
            sweep = [found[f"{kind}{suffix} {setting}={value}"] for value in SWEEPS[kind]]
            assert {each.exact for each in sweep} == {exact}
            shares = [each.neighbours for each in sweep]
            assert shares == sorted(shares)
            assert sweep[0].lost > sweep[-1].lost > -0.01
            assert sweep[0].low > 0
            assert sweep[0].p_adjusted < 0.05
            assert sweep[0].verdict == "worse"
            assert all(each.low <= each.lost <= each.high for each in sweep)
            assert all(each.seconds > 0 and each.exact_seconds > 0 for each in sweep)
    assert found["ivf probes=64"].neighbours == 1.0
    assert found["ivf filtered probes=64"].neighbours == 1.0


def test_the_loss_is_that_of_a_comparison_with_the_judgments_that_pass(result):
    dataset = sy.Dataset.read(shared_data("scifact"))
    ids = list(dataset.corpus)
    kept = {doc for doc, keep in zip(ids, passing(dataset.corpus, ids, 0.2, "test"), strict=True) if keep}
    qrels: dict[str, dict[str, int]] = {}
    for query, doc, grade in dataset.qrels.frame.select("query_id", "doc_id", "grade").iter_rows():
        if doc in kept:
            qrels.setdefault(query, {})[doc] = int(grade)
    qrels = {query: docs for query, docs in qrels.items() if max(docs.values()) > 0}
    for suffix, judged in (("", dataset.qrels), (" filtered", qrels)):
        exact, other = (
            sy.evaluate(judged, result.runs[f"{name}"], ["nDCG@10"])["nDCG@10"]
            for name in (f"dense{suffix}", f"hnsw{suffix} ef_search=4")
        )
        found = next(each for each in result.approximation if each.run == f"hnsw{suffix} ef_search=4")
        assert found.lost == pytest.approx(exact - other, abs=1e-12)
        assert found.queries == len(judged if isinstance(judged, dict) else judged.queries)


def test_the_result_has_it_in_every_form(result, capsys, tmp_path):
    record = json.loads((result.folder / "result.json").read_text("utf-8"))
    assert [row["run"] for row in record["approximation"]] == [each.run for each in result.approximation]
    assert "## What approximate search costs" in (result.folder / "leaderboard.md").read_text("utf-8")
    notes = {note.code: note for note in result.notes}
    assert notes["filtered-runs"]["runs"][0] == "dense filtered"
    assert steelyard(["report", str(result.folder), "-o", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "What approximate search costs" in page
    assert "chart-approximation" in page
