"""Qrels made from the first documents of a run are recognised; qrels made independently of it are not flagged."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from shared_collections import Collection, Grades, dl2019, restricted, retrieved

import steelyard as sy
from steelyard.comparison.provenance import Edge, find_edge


def edge(lists: Sequence[Sequence[str]], qrels: Grades) -> Edge | None:
    found = [
        (number, rank, grades[document] > 0)
        for number, (documents, grades) in enumerate(zip(lists, qrels.values(), strict=True))
        for rank, document in enumerate(documents, start=1)
        if document in grades
    ]
    query, rank, relevant = (np.array(column) for column in zip(*found, strict=True)) if found else [np.array([])] * 3
    judged = sum(map(len, qrels.values()))
    return find_edge(query.astype(np.int64), rank.astype(np.float64), relevant.astype(bool), judged)


def decaying(queries: int, relevant: int, exponent: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Gaps between relevant documents drawn from a zeta distribution: query and rank of each."""
    gaps = np.random.default_rng(seed).zipf(exponent, (queries, relevant)).clip(max=10_000)
    return np.repeat(np.arange(queries), relevant), gaps.cumsum(axis=1).ravel().astype(np.float64)


def test_a_smooth_decay_is_not_flagged() -> None:
    flagged = 0
    for seed in range(300):
        query, rank = decaying(50, 1 + seed % 4, 2 + seed % 5, seed)
        flagged += find_edge(query, rank, np.ones(len(rank), dtype=bool), len(rank)) is not None
    assert flagged <= 3


@pytest.mark.parametrize("depth", [3, 5, 10])
def test_a_decay_that_is_cut_is_flagged(depth: int) -> None:
    query, rank = decaying(200, 3, 1.8, seed=1)
    kept = rank <= depth
    found = find_edge(query[kept], rank[kept], np.ones(int(kept.sum()), dtype=bool), int(kept.sum()))
    assert found is not None
    assert found.depth == depth
    assert found.p < 1e-4


def test_a_judged_document_elsewhere_is_evidence_of_other_sources() -> None:
    query, rank = decaying(200, 3, 1.8, seed=1)
    kept = rank <= 5
    assert find_edge(query[kept], rank[kept], np.ones(int(kept.sum()), dtype=bool), len(rank)) is None


def flat(queries: int, depth: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Each of the first documents is relevant with a probability of its query."""
    rng = np.random.default_rng(seed)
    query, place = np.nonzero(rng.random((queries, depth)) < rng.beta(2, 2, (queries, 1)))
    return query, place + 1.0


@pytest.mark.parametrize("share", [0.01, 0.05, 0.1])
def test_a_few_judgments_from_elsewhere_do_not_hide_the_edge(share: float) -> None:
    query, rank = flat(60, 10, seed=2)
    rng = np.random.default_rng(3)
    added = round(share / (1 - share) * len(rank))
    below = added // 2  # The others are not in the run.
    query = np.concatenate([query, rng.integers(0, 60, below)])
    rank = np.concatenate([rank, rng.integers(11, 100, below)])
    found = find_edge(query, rank, np.ones(len(rank), dtype=bool), len(rank) + added - below)
    assert found is not None
    assert found.depth == 10


def test_a_quarter_of_judgments_from_elsewhere_is_another_source() -> None:
    query, rank = flat(60, 10, seed=2)
    assert find_edge(query, rank, np.ones(len(rank), dtype=bool), round(len(rank) / 0.75)) is None


@pytest.mark.parametrize("found", [1.0, 0.97, 0.92])
def test_smooth_decays_with_documents_that_were_not_found_are_not_flagged(found: float) -> None:
    flagged = 0
    for seed in range(200):
        query, rank = decaying(50, 1 + seed % 4, 2 + seed % 5, seed)
        kept = np.random.default_rng(seed).random(len(rank)) < found
        flagged += find_edge(query[kept], rank[kept], np.ones(int(kept.sum()), dtype=bool), len(rank)) is not None
    assert flagged <= 5


def with_strays(collection: Collection, run: str, share: float, seed: int) -> Grades:
    """The relevant documents in the first ten of a run, and a share of other relevant ones."""
    qrels = restricted(collection.qrels, collection.first(run, 10), lowest=1)
    others = [
        (query, document, grade)
        for query, grades in collection.qrels.items()
        for document, grade in grades.items()
        if grade >= 1 and document not in qrels[query]
    ]
    size = round(share / (1 - share) * sum(map(len, qrels.values())))
    for place in np.random.default_rng(seed).choice(len(others), size, replace=False).tolist():
        query, document, grade = others[place]
        qrels[query][document] = grade
    return qrels


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.01, 0.05, 0.1])
def test_claims_with_relevant_documents_of_one_run_and_strays_are_not_opposite(share: float) -> None:
    """dl2019; without the detection, 34 of 80 pairs are claimed with the opposite sign."""
    collection = dl2019()
    rng = np.random.default_rng(2019)
    opposite = undecided = 0
    for number in range(30):
        one, other = rng.choice(list(collection.runs), 2, replace=False).tolist()
        runs = {name: {q: collection.runs[name][q][:50] for q in collection.qrels} for name in (one, other)}
        (pair,) = sy.compare(
            with_strays(collection, one, share, number), runs, ["nDCG@10"], baseline=other
        ).tested_pairs
        (truth,) = sy.compare(collection.qrels, runs, ["nDCG@10"], baseline=other).tested_pairs
        undecided += pair.verdict == "undecided"
        if pair.verdict in ("better", "worse"):
            opposite += (pair.difference > 0) != (truth.difference > 0)
    assert opposite == 0
    assert undecided >= 25


@pytest.mark.parametrize("relevant", [1, 2, 5])
def test_a_perfect_run_is_not_flagged(relevant: int) -> None:
    query = np.repeat(np.arange(100), relevant)
    rank = np.tile(np.arange(1.0, relevant + 1), 100)
    assert find_edge(query, rank, np.ones(len(rank), dtype=bool), len(rank)) is None


def test_a_nearly_perfect_run_is_not_flagged() -> None:
    rank = np.array([1.0] * 111 + [2.0] * 16 + [3.0])
    assert find_edge(np.arange(128), rank, np.ones(128, dtype=bool), 128) is None


def test_every_one_of_the_first_documents_is_judged_and_no_other() -> None:
    query, rank = np.repeat(np.arange(40), 5), np.tile(np.arange(1.0, 6.0), 40)
    relevant = np.random.default_rng(0).random(200) < 0.6
    found = find_edge(query, rank, relevant, 200)
    assert found is not None
    assert found.depth == 5


def test_no_judged_document() -> None:
    nothing = np.array([])
    assert find_edge(nothing.astype(np.int64), nothing, nothing.astype(bool), 0) is None


def test_runs_that_are_all_judged_are_not_suspected() -> None:
    random = np.random.default_rng(1)
    docs = [f"d{number}" for number in range(10)]
    qrels = {f"q{query}": {doc: int(random.random() < 0.4) for doc in docs} for query in range(40)}
    runs = {
        name: {
            query: {doc: random.random() + worth * grade for doc, grade in grades.items()}
            for query, grades in qrels.items()
        }
        for name, worth in (("good", 0.8), ("bad", 0.0))
    }
    result = sy.compare(qrels, runs, ["P@5"])
    assert result.tested_pairs[0].verdict == "better"
    assert result.notes == ()
    more = {"other": {query: ["new", *docs] for query in qrels}, **runs}
    codes = {each.code for each in sy.compare(qrels, more, ["P@5"]).notes}
    assert "qrels-made-from-run" in codes


def test_a_difference_of_judged_documents_is_decided_whoever_made_the_qrels() -> None:
    """Nothing that the measure reads is unjudged; what is below its cutoff in the other run does not matter."""
    random = np.random.default_rng(2)
    qrels, made, other = {}, {}, {}
    for number in range(40):
        docs = [f"{number}-{place}" for place in range(20)]
        made[f"q{number}"], other[f"q{number}"] = docs, [*docs[11:1:-1], *docs[14:]]
        qrels[f"q{number}"] = {doc: int(random.random() < 0.8 / (place + 1)) for place, doc in enumerate(docs[:12])}
    runs = {"made": made, "other": other}
    decided = sy.compare(qrels, runs, ["nDCG@10"])
    assert decided.claims.judged is not None
    assert decided.claims.judged.edges.keys() == {"made"}
    assert [pair.verdict for pair in decided.tested_pairs] == ["better"]
    assert "qrels-made-from-run" not in {each.code for each in decided.notes}
    deeper = sy.compare(qrels, runs, ["nDCG@10", "nDCG@15"])
    assert [pair.verdict for pair in deeper.tested_pairs] == ["better", "undecided"]
    assert "qrels-made-from-run" in {each.code for each in deeper.notes}


@pytest.mark.parametrize("size", [8, 10, 15, 20])
@pytest.mark.parametrize("relevant", [1, 2])
def test_lists_of_all_candidates_end_where_the_candidates_end(size: int, relevant: int) -> None:
    random = np.random.default_rng(size)
    docs = [f"d{place}" for place in range(size)]
    qrels: Grades = {}
    runs: dict[str, dict[str, dict[str, float]]] = {"good": {}, "bad": {}}
    for number in range(100):
        chosen = random.choice(docs, random.integers(1, relevant + 1), replace=False).tolist()
        qrels[f"q{number}"] = dict.fromkeys(chosen, 1)
        for name, worst in (("good", size / 4), ("bad", size)):
            scores = {doc: -random.uniform(0, size) for doc in docs}
            scores |= {doc: -min(size - 1, random.exponential(worst)) for doc in chosen}
            runs[name][f"q{number}"] = scores
    result = sy.compare(qrels, runs, ["RR"], baseline="bad")
    assert "qrels-made-from-run" not in {each.code for each in result.notes}
    assert [pair.verdict for pair in result.tested_pairs] == ["better"]


@pytest.mark.parametrize("mean", [0.7, 1.5, 4])
@pytest.mark.parametrize("queries", [30, 100, 300])
def test_known_items_have_no_edge(queries: int, mean: float) -> None:
    for seed in range(20):
        rank = 1 + np.floor(np.random.default_rng(seed).exponential(mean, queries))
        assert find_edge(np.arange(queries), rank, np.ones(queries, dtype=bool), queries) is None


def test_a_similar_run_with_the_same_documents_further_down_is_not_suspected() -> None:
    random = np.random.default_rng(3)
    qrels, one, other = {}, {}, {}
    for number in range(60):
        docs = [f"{number}-{place}" for place in range(40)]
        qrels[f"q{number}"] = {doc: int(random.random() < 0.6) for doc in docs[:5]}
        one[f"q{number}"] = docs
        other[f"q{number}"] = [*random.permutation(docs[:12]).tolist(), *docs[12:]]
    notes = sy.compare(qrels, {"one": one, "other": other}, ["P@5"]).notes
    assert [dict(each.values)["run"] for each in notes if each.code == "qrels-made-from-run"] == ["one"]


def test_a_judgments_file_says_something_about_unjudged_documents() -> None:
    qrels, one, other = {}, {}, {}
    labels = []
    for number in range(30):
        docs = [f"{number}-{place}" for place in range(20)]
        one[f"q{number}"], other[f"q{number}"] = docs, docs[::-1]
        qrels[f"q{number}"] = {docs[3]: 1, docs[15]: 0}
        labels += [
            {"query_id": f"q{number}", "doc_id": doc, "grade": grade, "judge": "ann"}
            for doc, grade in qrels[f"q{number}"].items()
        ]
    runs = {"one": one, "other": other}
    assert sy.compare(qrels, runs, ["nDCG@10"]).judged == {}
    result = sy.compare(sy.Judgments(labels), runs, ["nDCG@10"])
    assert result.judged["one", None].shares["nDCG@10"] == pytest.approx(0.1)
    assert result.tested_pairs[0].bound_low is not None


@pytest.mark.parametrize("relevant_from", [None, 2])
def test_the_scale_of_the_judgments_says_which_grades_are_not_relevant(relevant_from: int | None) -> None:
    """Grades 1 to 3 of the first run, and one 0 of the second, whose other documents are unjudged."""
    random = np.random.default_rng(4)
    labels, one, other = [], {}, {}
    for number in range(30):
        first = [f"{number}-a{place}" for place in range(10)]
        one[f"q{number}"], other[f"q{number}"] = first, [*first[1:5], *(f"{number}-b{place}" for place in range(6))]
        labels += [
            {"query_id": f"q{number}", "doc_id": doc, "grade": 3 if random.random() < 0.8 / (place + 1) else 1}
            for place, doc in enumerate(first)
        ]
    labels.append({"query_id": "q0", "doc_id": "0-b0", "grade": 0})
    labels = [{**label, "judge": "ann", "relevant_from": relevant_from} for label in labels]
    result = sy.compare(sy.Judgments(labels), {"one": one, "other": other}, ["nDCG@10"])
    warned = "judged-unevenly-unchecked" in {each.code for each in result.notes if each.severity == "warning"}
    (pair,) = result.tested_pairs
    if relevant_from is None:
        assert (pair.verdict, pair.imputed, warned) == ("better", None, True), "nothing to estimate grades from"
    else:
        assert pair.imputed is not None, "grade 1 is not relevant: documents were judged because they were returned"
        assert not warned


def test_differences_of_very_long_lists_have_no_bounds_and_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    docs = [f"d{place}" for place in range(20)]
    queries = [f"q{number}" for number in range(30)]
    labels = [
        {"query_id": query, "doc_id": doc, "grade": grade, "judge": "ann"}
        for query in queries
        for doc, grade in (*((doc, 1) for doc in docs[:4]), *((doc, 0) for doc in docs[5:19]), ("elsewhere", 0))
    ]
    runs = {"one": dict.fromkeys(queries, docs), "other": dict.fromkeys(queries, docs[::-1])}

    def bounded(most: int) -> tuple[list[bool], list[str]]:
        monkeypatch.setattr("steelyard.comparison.judged.MOST_BOUNDED", most)
        result = sy.compare(sy.Judgments(labels), runs, ["nDCG@10", "P@5"])
        codes = [each.code for each in result.notes]
        return [pair.bound_low is not None for pair in result.tested_pairs], codes

    both = 30 * 20 * 2
    assert bounded(2 * both)[0] == [True, True]
    found, codes = bounded(2 * both - 1)
    assert found == [True, False], "the measure that ranks the runs comes first"
    assert "differences-without-bounds" in codes


def recognised(collection: Collection) -> tuple[int, int]:
    """How many of the restricted qrels are recognised, by run, depth and form, and how many there are."""
    flagged = cases = 0
    for run in collection.runs:
        for depth in (3, 5, 10):
            for lowest in (float("-inf"), 1.0):
                qrels = restricted(collection.qrels, collection.first(run, depth), lowest=lowest)
                flagged += edge(collection.lists(run), qrels) is not None
                cases += 1
    return flagged, cases


def false_alarms(collection: Collection) -> int:
    """How many runs are flagged with the qrels as they are."""
    return sum(edge(collection.lists(run), collection.qrels) is not None for run in collection.runs)


@pytest.mark.slow
def test_qrels_made_from_one_run_are_recognised() -> None:
    counts = [recognised(retrieved(name)) for name in ("cranfield", "scifact", "faq-ja")]
    counts.append(recognised(dl2019()))
    flagged, cases = (sum(column) for column in zip(*counts, strict=True))
    assert cases == 492
    assert flagged / cases >= 0.95


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cranfield", "scifact", "faq-ja", "docs-rag", "multihop-rag", "expense-rules"])
def test_qrels_as_they_are_have_no_edge(name: str) -> None:
    assert false_alarms(retrieved(name)) == 0


@pytest.mark.slow
def test_pooled_qrels_have_no_edge() -> None:
    assert false_alarms(dl2019()) == 0
