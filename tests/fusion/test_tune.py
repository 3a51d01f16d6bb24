"""tune(): its choice equals brute force, and held-out queries have no influence on it."""

from __future__ import annotations

import numpy as np
import pytest

import steelyard as sy
from steelyard.alignment.alignment import align
from steelyard.alignment.hits import Ordering
from steelyard.fusion.candidates import judged_pool, pool_runs
from steelyard.fusion.fuse import recipe
from steelyard.fusion.tune import recipes, simplex


def collection(seed, queries=40, signals=(0.8, 0.3)):
    """Qrels, and one run per signal: the higher the signal, the more its scores follow the grades."""
    rng = np.random.default_rng(seed)
    qrels, runs = {}, [{} for _ in signals]
    for number in range(queries):
        grades = rng.permutation([1] * 4 + [0] * 16)
        qrels[f"q{number}"] = {f"d{n}": int(grade) for n, grade in enumerate(grades)}
        for run, signal in zip(runs, signals, strict=True):
            scores = signal * grades + rng.normal(0, 0.5, 20)
            kept = np.argsort(-scores)[:12]
            run[f"q{number}"] = {f"d{n}": float(scores[n]) for n in kept}
    return qrels, [sy.Run(run, name) for run, name in zip(runs, "abcdef", strict=False)]


def values(qrels, runs, settings, measure):
    scores = sy.evaluate(qrels, sy.fuse(runs, **settings), measure)
    return dict(zip(scores.queries, scores.values(measure).tolist(), strict=True))


GRIDS = [
    ("rrf", {"k": [1, 10, 60]}),
    ("wsum", {"weights": [(1, 0), (3, 1), (1, 1), (1, 3)], "norm": ["min-max", "z"]}),
    ("rbc", {"phi": [0.5, 0.9]}),
]


@pytest.mark.parametrize(("method", "grid"), GRIDS)
def test_the_choice_and_the_score_by_brute_force(method, grid):
    qrels, runs = collection(1)
    tuned = sy.tune(qrels, runs, method, "nDCG@5", grid=grid, folds=4, seed=2)
    tried = [values(qrels, runs, made.settings(), "nDCG@5") for made in recipes(method, 2, grid)]
    held_out = {}
    assert sorted(query for fold in tuned.folds for query in fold.queries) == sorted(qrels)
    assert [len(fold.queries) for fold in tuned.folds] == [10, 10, 10, 10]
    for fold in tuned.folds:
        others = [query for query in qrels if query not in fold.queries]
        best = max(np.mean([of[query] for query in others]) for of in tried)
        chosen = values(qrels, runs, fold.chosen.settings(), "nDCG@5")
        assert fold.tuned_on == pytest.approx(best)
        assert np.mean([chosen[query] for query in others]) == pytest.approx(best)
        assert fold.held_out == pytest.approx(np.mean([chosen[query] for query in fold.queries]))
        held_out |= {query: chosen[query] for query in fold.queries}
    assert tuned.held_out == pytest.approx(np.mean(list(held_out.values())))
    assert tuned.tuned_on == pytest.approx(max(np.mean(list(of.values())) for of in tried))
    assert tuned.optimism == pytest.approx(tuned.tuned_on - tuned.held_out)
    found = dict(zip(tuned.queries, tuned.values[tuned.run.name].tolist(), strict=True))
    assert found == pytest.approx(held_out)


def test_the_run_is_the_one_that_was_scored():
    qrels, runs = collection(2)
    tuned = sy.tune(qrels, runs, "wsum", "AP")
    assert sy.evaluate(qrels, tuned.run, "AP")["AP"] == pytest.approx(tuned.held_out)
    assert sy.evaluate(qrels, sy.fuse(runs, **tuned.settings), "AP")["AP"] == pytest.approx(tuned.tuned_on)
    assert tuned.scores["a"] == sy.evaluate(qrels, runs[0], "AP")["AP"]
    assert tuned.scores["untuned-wsum"] == pytest.approx(sy.evaluate(qrels, sy.fuse(runs, "wsum"), "AP")["AP"])


def test_the_judgments_of_a_fold_do_not_influence_its_parameters():
    qrels, runs = collection(3, queries=30)
    before = sy.tune(qrels, runs, "wsum", folds=3)
    for number, fold in enumerate(before.folds):
        inverted = {
            query: {doc: 1 - grade for doc, grade in grades.items()} if query in fold.queries else grades
            for query, grades in qrels.items()
        }
        after = sy.tune(inverted, runs, "wsum", folds=3)
        assert after.folds[number].queries == fold.queries
        assert after.folds[number].chosen == fold.chosen
        assert after.folds[number].tuned_on == fold.tuned_on
        assert after.folds[number].held_out != fold.held_out


@pytest.mark.slow
def test_without_any_signal_the_tuned_on_score_is_optimistic():
    """Every setting is as good as chance, but the best of many has a higher score."""
    gaps, held = [], []
    for seed in range(20):
        qrels, runs = collection(100 + seed, queries=20, signals=(0, 0, 0))
        tuned = sy.tune(qrels, runs, "wsum", "RR", seed=seed)
        gaps.append(tuned.optimism)
        held.append(tuned.held_out - np.mean([tuned.scores[name] for name in "abc"]))
    assert np.mean(gaps) > 0.05
    assert np.mean(gaps) > 3 * np.std(gaps) / np.sqrt(len(gaps))
    assert abs(np.mean(held)) < 3 * np.std(held) / np.sqrt(len(held))


def test_the_better_run_gets_the_larger_weight_and_every_fold_agrees():
    qrels, runs = collection(5, queries=100, signals=(1.5, 0.1))
    tuned = sy.tune(qrels, runs, "wsum", grid={"weights": [(1, 9), (1, 1), (9, 1)]})
    assert tuned.settings == {"method": "wsum", "norm": "min-max", "weights": [9.0, 1.0]}
    assert tuned.stability == 1.0
    assert tuned.optimism == pytest.approx(0)


def test_the_same_seed_gives_the_same_and_the_order_of_queries_does_not_matter():
    qrels, runs = collection(6)
    tuned = sy.tune(qrels, runs, "wsum", seed=4)
    again = sy.tune(qrels, runs, "wsum", seed=4)
    assert again.to_dict() == tuned.to_dict()
    assert again.run.fingerprint == tuned.run.fingerprint
    reverse = sy.tune(dict(reversed(qrels.items())), runs, "wsum", seed=4)
    assert reverse.run.fingerprint == tuned.run.fingerprint
    assert reverse.settings == tuned.settings
    assert reverse.held_out == pytest.approx(tuned.held_out)
    for fold, same in zip(tuned.folds, reverse.folds, strict=True):
        assert set(fold.queries) == set(same.queries)
        assert fold.chosen == same.chosen
    other = sy.tune(qrels, runs, "wsum", seed=5)
    assert other.folds[0].queries != tuned.folds[0].queries


def test_queries_that_are_not_in_the_qrels_get_the_final_parameters():
    qrels, runs = collection(7, queries=20)
    known = {query: qrels[query] for query in list(qrels)[:12]}
    tuned = sy.tune(known, runs, "rrf", folds=3)
    assert len(tuned.queries) == 12
    final = sy.fuse(runs, **tuned.settings).frame
    for query in list(qrels)[12:]:
        assert tuned.run.frame.filter(query_id=query).equals(final.filter(query_id=query))
    assert sorted(tuned.run.queries) == sorted(qrels)


def test_queries_missing_from_every_run_score_0():
    qrels, runs = collection(8, queries=10)
    tuned = sy.tune({**qrels, "absent": {"d1": 1}}, runs, "rrf", folds=2)
    assert tuned.values[tuned.run.name][tuned.queries.index("absent")] == 0
    assert sy.evaluate({**qrels, "absent": {"d1": 1}}, tuned.run, "nDCG@10")["nDCG@10"] == pytest.approx(tuned.held_out)


def test_a_measure_where_lower_is_better():
    """Confusion counts distractors, so the lowest score is chosen; optimism is still positive if tuned on is better."""
    qrels, runs = collection(9, signals=(1.0, 1.0))
    distracting = {q: {doc: -grade for doc, grade in grades.items()} for q, grades in qrels.items()}
    bad = sy.Run({query: {"d0": 1.0, "d1": 0.5} for query in qrels}, "harmless")
    tuned = sy.tune(distracting, [runs[0], bad], "wsum", "Confusion@2", grid={"weights": [(1, 0), (0, 1)]})
    assert tuned.settings["weights"] == [0.0, 1.0]
    assert tuned.better == "less"
    assert tuned.optimism == pytest.approx(tuned.held_out - tuned.tuned_on)


def test_equally_good_settings_give_the_default():
    """The relevant document is first in both lists, so no setting is better than the default."""
    same = sy.Run({f"q{n}": {"a": 2.0, "b": 1.0} for n in range(10)})
    tuned = sy.tune({f"q{n}": ["a"] for n in range(10)}, [same, same], "rrf")
    assert tuned.settings == {"method": "rrf", "k": 60}
    assert tuned.stability == 1.0


def test_per_query_values_are_ready_to_compare():
    qrels, runs = collection(10)
    tuned = sy.tune(qrels, runs, "rrf", "nDCG@10")
    assert tuned.per_query.columns == ["run", "query_id", "nDCG@10"]
    assert tuned.per_query.height == 4 * 40
    board = tuned.comparison.leaderboard
    assert set(board["run"]) == {tuned.run.name, "untuned-rrf", "a", "b"}
    mine = board.filter(run=tuned.run.name)["nDCG@10"][0]
    assert mine == pytest.approx(tuned.held_out)


def test_the_printed_result():
    qrels, runs = collection(11)
    tuned = sy.tune(qrels, runs, "rrf", grid={"k": [1, 60]}, folds=2)
    text = str(tuned)
    assert repr(tuned) == text
    assert f"held out     {tuned.held_out:.4f}" in text
    assert f"optimism     {tuned.optimism:.4f}" in text
    assert "fold 2: k=" in text
    assert f"final parameters: k={tuned.settings['k']}" in text


def test_runs_without_scores_are_tuned_over_settings_that_use_ranks():
    qrels, runs = collection(12)
    ranked = sy.Run({query: runs[1].frame.filter(query_id=query)["doc_id"].to_list() for query in qrels}, "ranked")
    tuned = sy.tune(qrels, [runs[0], ranked], "wsum")
    assert tuned.settings["norm"] == "rank"
    assert tuned.tried == 11
    with pytest.raises(sy.SteelyardError, match="ranked ids without scores"):
        sy.tune(qrels, [runs[0], ranked], "wsum", grid={"norm": ["z"]})


def test_a_normalisation_that_does_not_fit_the_scores_is_left_out_and_reported():
    qrels, runs = collection(13)
    below = sy.Run(
        {query: {d: s - 100 for d, s in listed.items()} for query, listed in runs[0].mapping.items()}, "below"
    )
    tuned = sy.tune(qrels, [below, runs[1]], "combsum")
    assert tuned.tried == 4
    (left_out,) = tuned.notes
    assert (left_out.code, left_out["norm"]) == ("fusion-norm-not-tried", "max")
    assert str(left_out).startswith("norm=max was not tried: norm=max divides")
    assert f"  {left_out}." in str(tuned)
    assert tuned.to_dict()["notes"][0]["code"] == "fusion-norm-not-tried"
    with pytest.raises(sy.SteelyardError, match="norm=max divides"):
        sy.tune(qrels, [below, runs[1]], "combsum", grid={"norm": ["max"]})


def test_progress_is_reported():
    qrels, runs = collection(14, queries=10)
    steps = []
    sy.tune(qrels, runs, "rrf", grid={"k": [1, 60]}, folds=2, progress=lambda *step: steps.append(step))
    assert steps == [("k=60", 0, 2), ("k=1", 1, 2)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"folds": 1}, "folds is 1; expected a whole number, 2 or more"),
        ({"folds": 11}, "10 queries cannot be split into 11 folds"),
        ({"seed": None}, "seed is None"),
        ({"measure": "R(budget=9)"}, "not lengths, texts or times"),
        ({"measure": "NumRet"}, "neither higher nor lower"),
        ({"measure": "nDGC@10"}, "nDCG"),
        ({"grid": {"kk": [1]}}, "rrf has no 'kk' to tune; expected one of k, weights. Did you mean k"),
        ({"grid": {"k": []}}, "expected a list of values"),
        ({"grid": {"k": 60}}, "expected a list of values"),
        ({"grid": {"k": [-1]}}, "k is -1"),
        ({"grid": {"weights": [(1, 2, 3)]}}, "3 weights for 2 runs"),
        ({"method": "isr", "grid": {"norm": ["z"]}}, "isr has no 'norm' to tune"),
        ({"method": "rff"}, "Did you mean rrf"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    qrels, runs = collection(15, queries=10)
    with pytest.raises(sy.SteelyardError, match=message):
        sy.tune(qrels, runs, **settings)


def test_runs_with_the_same_name_keep_their_own_values():
    qrels, runs = collection(18, queries=10)
    tuned = sy.tune(qrels, [sy.Run(run, "same") for run in runs], name="same", folds=2)
    assert list(tuned.scores) == ["same", "untuned-rrf", "same (1)", "same (2)"]
    assert tuned.scores["same (2)"] == sy.evaluate(qrels, runs[1], "nDCG@10")["nDCG@10"]


def test_lists_that_are_all_empty_score_0():
    empty = sy.Run({"q1": {}, "q2": {}})
    for method in ("rrf", "wsum"):
        tuned = sy.tune({"q1": ["a"], "q2": ["b"]}, [empty, empty], method, folds=2)
        assert (tuned.held_out, tuned.optimism, len(tuned.run)) == (0, 0, 0)


def test_qrels_of_other_queries_are_an_error():
    _, runs = collection(16, queries=10)
    with pytest.raises(sy.SteelyardError, match="no query of the qrels is in any of the runs"):
        sy.tune({f"x{n}": ["d1"] for n in range(10)}, runs)


def test_the_weights_of_a_simplex():
    assert all(sum(weights) == pytest.approx(1) for weights in simplex(4))
    assert (0.3, 0.7) in simplex(2)
    assert [len(simplex(runs)) <= 300 for runs in range(2, 12)] == [True] * 10
    assert [made.settings() for made in recipes("condorcet", 2, {"weights": "simplex"})][0] == {
        "method": "condorcet",
        "weights": [0.5, 0.5],
    }


@pytest.mark.parametrize("method", ["rrf", "combmnz", "wsum"])
def test_the_alignment_of_a_pool_equals_the_alignment_of_the_fused_run(method):
    """tune() ranks a pool without making a run; every array is equal to that of `evaluate`, with ties."""
    rng = np.random.default_rng(17)
    qrels = sy.Qrels({f"q{n}": {f"d{d}": int(rng.integers(-1, 3)) for d in rng.permutation(15)[:6]} for n in range(50)})
    runs = []
    for _ in range(3):
        made = {}
        for number in rng.permutation(60)[:45]:
            made[f"q{number}"] = {
                f"d{d}": float(rng.integers(1, 4)) for d in rng.permutation(15)[: rng.integers(0, 10)]
            }
        runs.append(sy.Run(made))
    weights = [1, 2, 0] if method == "wsum" else None
    made = recipe(3, method, weights=weights)
    judged = judged_pool(qrels, pool_runs(runs, scores=True))
    short = judged.alignment(made.scores(judged.pool))
    fused = sy.fuse(runs, method, weights=weights)
    long = align(qrels, fused, Ordering()).alignment
    assert len(long.rank) > 100
    assert int(long.tie_size.max()) > 1
    for name in ("retrieved", "answered", "query", "rank", "grade", "doc", "tie_first", "tie_size"):
        assert np.array_equal(getattr(short, name), getattr(long, name)), name
    assert np.array_equal(short.top_score, long.top_score, equal_nan=True)


def graded_collection():
    """Two runs, and qrels with grades 0 to 3, of which 2 and 3 are relevant."""
    random = np.random.default_rng(0)
    qrels = sy.Qrels({f"q{i}": {doc: int(random.integers(0, 4)) for doc in "abcdef"} for i in range(12)})
    qrels.relevant_from = 2.0
    lists = {f"q{i}": random.permutation(list("abcdef")).tolist() for i in range(12)}
    one = {query: {doc: float(6 - rank) for rank, doc in enumerate(docs)} for query, docs in lists.items()}
    other = {query: {doc: -score for doc, score in scores.items()} for query, scores in one.items()}
    return qrels, {"one": one, "other": other}


@pytest.mark.parametrize("measure", ["P@2", "Composite(weights={P@2: 1})"])
def test_fused_runs_and_single_runs_have_the_scale_of_the_qrels(measure):
    qrels, runs = graded_collection()
    tuned = sy.tune(qrels, runs, "wsum", measure, grid={"weights": [(1, 0)]})
    assert tuned.held_out == tuned.scores["one"] == sy.evaluate(qrels, runs["one"], measure)[measure]
    stated = sy.tune(qrels, runs, "wsum", "P@2", grid={"weights": [(1, 0)]}, rel=1)
    assert stated.held_out == stated.scores["one"] == sy.evaluate(qrels, runs["one"], "P@2", rel=1)["P@2"]
    assert stated.held_out > tuned.held_out
    at_level = sy.tune(qrels, runs, "wsum", sy.measures.P(rel=1) @ 2, grid={"weights": [(1, 0)]})
    assert at_level.held_out == at_level.scores["one"] == stated.held_out


def test_geometric_means_are_compared_as_geometric_means():
    qrels, runs = graded_collection()
    tuned = sy.tune(qrels, runs, "rrf", "GMAP", rel=1)
    means = dict(tuned.comparison.leaderboard.select("run", "GMAP").rows())
    assert means == pytest.approx(dict(tuned.scores))
