"""fuse(): runs in every form, missing queries, ties, depth, and errors."""

from __future__ import annotations

import numpy as np
import pytest
from plain_fusion import fused as plainly_fused

import steelyard as sy
from needs import SHARED, needs_shared
from steelyard.fusion.fuse import METHODS, fuse_lists
from steelyard.notes import note

A = {"q1": {"x": 3.0, "y": 2.0, "z": 1.0}, "q2": {"m": 5.0, "n": 4.0}}
B = {"q1": {"y": 0.9, "w": 0.4}, "q3": {"k": 1.0, "j": 0.5}}


def lists_of(run):
    found = {}
    for query, doc, score in run.frame.select("query_id", "doc_id", "score").iter_rows():
        found.setdefault(query, []).append((doc, score))
    return found


def random_run(rng, queries, docs=12):
    made = {}
    for number in rng.permutation(queries):
        if rng.random() < 0.8:
            chosen = rng.permutation(docs)[: rng.integers(0, docs)]
            made[f"q{number}"] = {f"d{n}": float(rng.integers(0, 6)) + 1 for n in chosen}
    return made


@pytest.mark.parametrize("method", METHODS)
def test_many_queries_at_once_are_each_query_by_itself(method):
    """Ties, empty lists and missing queries, compared with the plain reference one query at a time."""
    rng = np.random.default_rng(3)
    runs = [random_run(rng, 60) for _ in range(3)]
    found = lists_of(sy.fuse(runs, method))
    ranked = [lists_of(sy.Run(run)) for run in runs]
    queries = {query for run in ranked for query in run}
    assert found.keys() == queries
    assert len(queries) > 50
    for query in queries:
        expected = plainly_fused([run.get(query, []) for run in ranked], method)
        assert dict(found[query]) == pytest.approx(expected, abs=1e-12)
        assert found[query] == fuse_lists([run.get(query, []) for run in ranked], method)


def test_queries_missing_from_a_run_are_fused_from_the_others_and_counted():
    fused = sy.fuse([sy.Run(A, "a"), sy.Run(B, "b")])
    assert lists_of(fused)["q2"] == [("m", 1 / 61), ("n", 1 / 62)]
    assert fused.queries == ["q1", "q2", "q3"]
    assert fused.notes == tuple(
        note("fused-missing-queries", run=run, count=1, queries=3) for run in ("run 'a'", "run 'b'")
    )
    assert str(fused.notes[0]) == "run 'a' is missing 1 of 3 queries, which is fused from the other runs"
    assert "missing 1 of 3" in str(sy.evaluate({"q1": ["y"]}, fused, "RR").coverage)


def test_the_fused_run_has_a_name_scores_and_the_tie_policy_of_evaluate():
    fused = sy.fuse([sy.Run({"q": ["a", "b"]}, "one"), sy.Run({"q": ["b", "a"]}, "two")])
    assert fused.name == "rrf(one,two)"
    assert not fused.ordered
    assert fused.frame["doc_id"].to_list() == ["b", "a"]
    qrels = {"q": ["a"]}
    assert sy.evaluate(qrels, fused, "RR")["RR"] == 0.5
    assert sy.evaluate(qrels, fused, "RR", ties="docid-asc")["RR"] == 1.0
    assert sy.fuse([A, B], name="mine").name == "mine"
    assert sy.fuse([A] * 7).name == "rrf(7 runs)"


def test_a_run_with_its_own_order_is_ranked_by_it():
    own = sy.Run({"q": [("a", 0.5), ("b", 0.5), ("c", 0.5)]}, "own")
    by_scores = sy.Run({"q": {"a": 0.5, "b": 0.5, "c": 0.5}}, "scores")
    assert dict(lists_of(sy.fuse([own, {"q": []}]))["q"])["a"] == 1 / 61
    assert dict(lists_of(sy.fuse([by_scores, {"q": {}}]))["q"])["a"] == 1 / 63


def test_scores_that_increase_with_the_rank_are_reported():
    """A retriever's list whose scores are distances is fused in its order, with a note."""
    distances = sy.Run({"q": [("a", 0.1), ("b", 0.7)]}, "distances")
    fused = sy.fuse([distances, sy.Run({"q": ["a"]}, "other")])
    assert fused.notes == (note("fused-increasing-scores", run="run 'distances'"),)
    assert fused.frame["doc_id"].to_list() == ["a", "b"]


@pytest.mark.parametrize("native", ["0", "1"])
@pytest.mark.parametrize(
    ("norm", "by_hand"),
    [  # Negated: -1, -2, -4, of mean -7/3 and deviation (14/9) ** 0.5.
        ("min-max", [1.0, 2 / 3, 0.0]),
        ("sum", [3 / 5, 2 / 5, 0.0]),
        ("z", [4 / 14**0.5, 1 / 14**0.5, -5 / 14**0.5]),
        ("rank", [1.0, 2 / 3, 1 / 3]),
        ("none", [-1.0, -2.0, -4.0]),
    ],
)
def test_methods_on_scores_negate_distances(monkeypatch, native, norm, by_hand):
    monkeypatch.setenv("STEELYARD_NATIVE", native)
    distances = [("x", 1.0), ("y", 2.0), ("z", 4.0)]
    reversed_once, other = [("x", 9.0), ("y", 5.0), ("z", 6.0)], {"w": 5.0, "v": 1.0}
    mine = sy.Run({"q": distances, "p": reversed_once}, "dist")
    fused = sy.fuse([mine, sy.Run({"q": other})], "combsum", norm)
    assert [s for doc, s in sorted(lists_of(fused)["q"]) if doc in "xyz"] == pytest.approx(by_hand)
    assert [doc for doc, _ in lists_of(fused)["p"]] == (["x", "y", "z"] if norm == "rank" else ["x", "z", "y"])
    code = "fused-increasing-scores" if norm == "rank" else "fused-distances"
    assert note(code, run="run 'dist'") in fused.notes
    assert dict(fuse_lists([distances, list(other.items())], "combsum", norm)) == pytest.approx(
        dict(lists_of(fused)["q"])
    )


def test_the_best_score_of_distances_is_not_positive():
    with pytest.raises(sy.InputError, match=r"norm=max divides by the best score of a list, which is -0\.1"):
        sy.fuse([sy.Run({"q": [("x", 0.1), ("y", 0.5)]}), {"q": {"w": 5.0}}], "combsum", "max")


def test_ranked_ids_are_fused_by_rank():
    ranked = sy.Run({"q1": ["x", "y"]}, "ranked")
    assert lists_of(sy.fuse([ranked, ranked], "borda"))["q1"] == [("x", 4.0), ("y", 2.0)]
    assert lists_of(sy.fuse([ranked, A], "combsum", "rank"))["q1"][0] == ("x", 2.0)
    with pytest.raises(sy.SteelyardError, match=r"run 'ranked' has ranked ids without scores.*rrf.*norm='rank'"):
        sy.fuse([sy.Run(A, "a"), ranked], "combsum")


def test_repeated_documents_count_at_their_best_rank():
    again = sy.Run({"q": ["x", "x", "y", "x"]}, "again")
    fused = sy.fuse([again, {"q": ["y"]}])
    assert dict(lists_of(fused)["q"]) == {"y": 1 / 62 + 1 / 61, "x": 1 / 61}
    assert fused.notes == (note("fused-repeats", run="run 'again'", count=2),)
    import polars as pl

    frame = pl.DataFrame({"query_id": ["q"] * 3, "doc_id": ["x", "y", "x"], "score": [1.0, 2.0, 3.0]})
    scored = sy.fuse([sy.Run(frame), {"q": {"z": 1.0}}], "combsum")
    assert dict(lists_of(scored)["q"]) == {"x": 1.0, "y": 0.0, "z": 1.0}


def test_depth_cuts_the_fused_lists():
    fused = sy.fuse([A, B], depth=2)
    assert [len(listed) for listed in lists_of(fused).values()] == [2, 2, 2]
    assert lists_of(fused)["q1"] == lists_of(sy.fuse([A, B]))["q1"][:2]


def test_a_query_with_empty_lists_counts_as_answered():
    fused = sy.fuse([{"q": [], "r": ["a"]}, {"q": []}])
    assert fused.queries == ["r", "q"]
    assert sy.evaluate({"q": ["a"]}, fused, "RR").coverage.answered == 1
    for method in METHODS:
        assert len(sy.fuse([{"q": {}}, {"q": {}}], method)) == 0


def test_a_run_of_weight_0_is_not_used_and_is_reported():
    fused = sy.fuse([sy.Run(A, "a"), sy.Run(B, "b")], "wsum", weights=[1, 0])
    assert lists_of(fused) == {"q1": [("x", 1.0), ("y", 0.5), ("z", 0.0)], "q2": [("m", 1.0), ("n", 0.0)]}
    assert note("fused-weight-0", run="run 'b'") in fused.notes
    assert fused.queries == ["q1", "q2", "q3"]


def test_runs_with_the_same_name_are_numbered_in_notes():
    fused = sy.fuse([sy.Run(A, "same"), sy.Run({"q1": {"x": 1}}, "same")])
    assert fused.notes == (note("fused-missing-queries", run="run 2 ('same')", count=1, queries=2),)


def test_every_form_of_run(tmp_path):
    path = tmp_path / "a.run"
    sy.Run(A, "a").write(path, "trec-run")
    expected = sy.fuse([A, B])
    assert sy.fuse([path, sy.Run(B).frame]) == expected
    assert sy.fuse({"one": A, "two": sy.Run(B, "b")}).name == "rrf(one,two)"
    target = tmp_path / "fused.run"
    expected.write(target, "trec-run")
    assert sy.Run.read(target) == expected


def test_inputs_are_not_changed():
    a, b = sy.Run(A, "a"), sy.Run(B, "b")
    before = a.fingerprint, b.fingerprint
    sy.fuse([a, b], "combmnz", "z")
    assert (a.fingerprint, b.fingerprint) == before


def test_lengths_and_texts_are_kept():
    a = sy.Run({"q": ["x"]}, tokens={"x": 3})
    b = sy.Run({"q": ["y"]}, tokens={"y": 4, "x": 9})
    fused = sy.fuse([a, b])
    assert fused.tokens == {"x": 3, "y": 4}
    assert sy.evaluate({"q": ["y"]}, fused, "R(budget=4)")["R(budget=4)"] == 1.0
    assert sy.fuse([A, B]).tokens is None


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([], "expected two or more runs to fuse, got none"),
        ([A], "expected two or more runs to fuse, got one"),
        ("a.run", "expected a list of runs"),
        (None, "nothing"),
    ],
)
def test_too_few_runs(runs, message):
    with pytest.raises(sy.SteelyardError, match=message):
        sy.fuse(runs)


@pytest.mark.parametrize("depth", [0, -1, 2.5, True])
def test_depth_must_be_a_whole_number(depth):
    with pytest.raises(sy.SteelyardError, match="depth is .*; expected a whole number of documents, 1 or more"):
        sy.fuse([A, B], depth=depth)


DATA = SHARED / "docs-rag"


@needs_shared
def test_three_real_pipelines_are_better_together():
    """Up to three documents each, one query empty: nDCG@10 .6285, .6811 and .7147 alone."""
    runs = [DATA / "runs" / f"retrieve_{name}.trec" for name in ("base", "level_two", "level_three")]
    alone = [sy.evaluate(DATA / "qrels.tsv", run, "nDCG@10")["nDCG@10"] for run in runs]
    assert alone == pytest.approx([0.6285, 0.6811, 0.7147], abs=5e-5)
    for method, together in (("rrf", 0.7230), ("combsum", 0.7213), ("condorcet", 0.7228)):
        assert sy.evaluate(DATA / "qrels.tsv", sy.fuse(runs, method), "nDCG@10")["nDCG@10"] == pytest.approx(
            together, abs=5e-5
        )
