"""The verdict `undecided`: differences that depend on unjudged documents are not reported as better or worse."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from shared_collections import Grades, dl2019, restricted, retrieved

import steelyard as sy
from needs import import_peer
from steelyard.alignment.alignment import align
from steelyard.comparison.failures import run_failures
from steelyard.comparison.judged import Conventions, GradedLists, JudgedDocuments, Part, _verdict
from steelyard.comparison.pairs import Pair
from steelyard.comparison.testing import ComparisonPlan
from steelyard.comparison.unjudged import (
    DRAWS,
    DifferenceTest,
    GradeDraws,
    JoinedLists,
    Noise,
    PairedLists,
    RunLists,
    combined_test,
    join_lists,
    largest_p,
    pooled,
)
from steelyard.errors import MeasureError
from steelyard.measures.compute import values
from steelyard.measures.gradings import ABSENT, Unjudged, graded, graded_draws, reads_zeros
from steelyard.measures.grammar import Measure, parse
from steelyard.measures.registry import definitions
from steelyard.options import Options
from steelyard.report.page.queries import Kept
from steelyard.report.page.subject import comparison_subject
from steelyard.report.page.view import view_of
from steelyard.statistics import paired_tests

CUTOFF = 10


def as_qrels(grades: Sequence[Mapping[object, float]]) -> sy.Qrels:
    return sy.Qrels(
        {f"q{number}": {str(doc): grade for doc, grade in row.items()} for number, row in enumerate(grades)}
    )


def as_run(lists: Sequence[Sequence[object]]) -> dict[str, list[str]]:
    return {f"q{number}": list(map(str, docs)) for number, docs in enumerate(lists)}


def joined(
    one: Sequence[Sequence[object]], other: Sequence[Sequence[object]], grades: Sequence[Mapping[object, float]]
) -> JoinedLists:
    """The lists of two runs, joined as in a comparison."""
    qrels = as_qrels(grades)
    sides = (RunLists.of(sy.Run(as_run(lists)).frame, qrels) for lists in (one, other))
    return join_lists(*sides, len(qrels.judged.query_ids))


def paired_lists(
    one: Sequence[Sequence[object]], other: Sequence[Sequence[object]], grades: Sequence[Mapping[object, float]]
) -> PairedLists:
    return joined(one, other, grades).pair


def compared(
    one: Sequence[Sequence[object]], other: Sequence[Sequence[object]], grades: Sequence[Mapping[object, float]]
) -> Pair:
    runs = {"one": as_run(one), "other": as_run(other)}
    (pair,) = sy.compare(as_qrels(grades), runs, [f"nDCG@{CUTOFF}"], baseline="other").tested_pairs
    return pair


def drawn_values(
    measure: str, one: Sequence[Sequence[object]], other: Sequence[Sequence[object]], grades: list[dict[object, float]]
) -> tuple[np.ndarray, np.ndarray]:
    """A measure of both runs with drawn grades, draws x queries."""
    lists = joined(one, other, grades)
    sides = tuple(align(as_qrels(grades), as_run(each), Options().ordering).alignment for each in (one, other))
    return GradedLists(lists, Noise(DRAWS, sides[0].size, 0)).values(Part(parse(measure)), sides, CUTOFF)


def grade_draws(pair: PairedLists, draws: int, seed: int) -> GradeDraws:
    return GradeDraws(pair, Noise(draws, pair.lengths.shape[1], seed))


def drawn_grades(draws: GradeDraws, wanted: np.ndarray) -> np.ndarray:
    """The drawn grades of some documents, documents x draws."""
    return draws.levels[draws.numbers(wanted).T]


def simulated(
    queries: int, skills: tuple[float, float], seed: int
) -> tuple[list[list[list[int]]], list[dict[int, float]]]:
    """Rankings of 60 documents by two runs of some skill, and the complete grades."""
    rng = np.random.default_rng(seed)
    lists: list[list[list[int]]] = [[], []]
    grades = []
    for _ in range(queries):
        grade = rng.choice([0.0, 1.0, 2.0], size=60, p=[0.7, 0.2, 0.1])
        for run, skill in enumerate(skills):
            lists[run].append(np.argsort(-(skill * grade + rng.standard_normal(60))).tolist())
        grades.append(dict(enumerate(grade.tolist())))
    return lists, grades


def first(lists: list[list[int]], depth: int, grades: list[dict[int, float]]) -> list[dict[int, float]]:
    return [{d: g[d] for d in documents[:depth]} for documents, g in zip(lists, grades, strict=True)]


def union(*qrels: list[dict[int, float]]) -> list[dict[int, float]]:
    return [{d: g for row in rows for d, g in row.items()} for rows in zip(*qrels, strict=True)]


def test_without_variance_between_draws_it_is_the_t_test() -> None:
    differences = np.random.default_rng(0).normal(0.1, 1, 30)
    known = stats.ttest_1samp(differences, 0).pvalue
    assert combined_test(differences[None, :]).p == pytest.approx(known)
    assert combined_test(np.tile(differences, (20, 1))).p == pytest.approx(known)


def test_rubins_rules() -> None:
    differences = np.array([[0.1, 0.3, 0.2, 0.4], [0.0, 0.5, 0.2, 0.1], [0.3, 0.3, 0.1, 0.6]])
    within = np.mean([np.var(row, ddof=1) / 4 for row in differences])
    between = 4 / 3 * np.var(differences.mean(axis=1), ddof=1)
    share = between / (within + between)
    freedom = 1 / (share**2 / 2 + 1 / (4 / 6 * 3 * (1 - share)))
    t = differences.mean() / np.sqrt(within + between)
    assert combined_test(differences).p == pytest.approx(2 * stats.t.sf(t, freedom))


def test_queries_without_a_value_are_left_out() -> None:
    differences = np.array([[0.1, np.nan, 0.3], [0.2, 0.4, 0.3]])
    assert combined_test(differences).difference == pytest.approx(0.225)
    assert np.isnan(combined_test(differences[:, 1:2]).p)


def test_no_difference_at_all() -> None:
    assert combined_test(np.zeros((5, 8))) == DifferenceTest(0.0, 1.0, 0.0, 0.0)


def test_a_constant_difference_has_the_p_value_of_equal_signs() -> None:
    values = np.array([0.4771, 0.8654, 0.2])
    assert combined_test(np.tile((values + 0.0001) - values, (5, 1))).p == 0.25
    assert combined_test(np.full((5, 8), 1e-16)).p == 1.0


def test_drawn_grades_are_grades_of_the_qrels_and_repeat_with_the_seed() -> None:
    (one, other), grades = simulated(30, (1.5, 1.0), seed=1)
    pair = paired_lists(one, other, first(one, 10, grades))
    wanted = pair.unjudged & pair.within(CUTOFF)
    drawn = drawn_grades(grade_draws(pair, 25, seed=3), wanted)
    assert drawn.shape == (wanted.sum(), 25)
    assert set(np.unique(drawn)) <= {0.0, 1.0, 2.0}
    np.testing.assert_array_equal(drawn, drawn_grades(grade_draws(pair, 25, seed=3), wanted))


def test_the_drawn_grades_of_a_document_do_not_depend_on_how_many_are_asked_for() -> None:
    (one, other), grades = simulated(30, (1.5, 1.0), seed=1)
    pair = paired_lists(one, other, first(one, 10, grades))
    draws = grade_draws(pair, 25, seed=3)
    few, many = pair.unjudged & pair.within(CUTOFF), pair.unjudged
    assert few.sum() < many.sum()
    np.testing.assert_array_equal(drawn_grades(draws, few), drawn_grades(draws, many)[few[many]])


def test_drawn_grades_are_nearer_to_the_true_ones_than_zero_or_the_mean_grade() -> None:
    (one, other), grades = simulated(100, (1.5, 1.0), seed=2)
    complete = paired_lists(one, other, grades)
    for judged in (first(one, 5, grades), union(first(one, 5, grades), first(other, 5, grades))):
        pair = paired_lists(one, other, judged)
        wanted = pair.unjudged & pair.within(CUTOFF)
        true = complete.grade[wanted].mean()
        error = abs(drawn_grades(grade_draws(pair, 50, seed=0), wanted).mean() - true)
        assert error < 0.5 * min(true, np.nanmean(pair.grade) - true)


@pytest.mark.parametrize("zeros", [False, True])
def test_all_draws_at_once_are_the_gradings_one_by_one(zeros: bool) -> None:
    """The alignments of all draws are those that `graded` makes of single gradings, and so is every measure."""
    rng = np.random.default_rng(5)
    qrels = {f"q{n}": {f"d{d}": int(rng.integers(-1, 4)) for d in rng.permutation(12)[:4]} for n in range(7)}
    runs = [{q: [f"d{d}" for d in rng.permutation(12)[: 2 + n]] for n, q in enumerate(qrels)} for _ in range(2)]
    known = sy.Qrels(qrels)
    sides = [align(known, run, Options().ordering).alignment for run in runs]
    names = known.judged.query_ids
    unknown = [
        (number, doc)
        for number, query in enumerate(names)
        for doc in dict.fromkeys((*runs[0][query], *runs[1][query]))
        if doc not in qrels[query]
    ]
    ranks = tuple(
        np.array([run[names[q]].index(d) + 1 if d in run[names[q]] else ABSENT for q, d in unknown]) for run in runs
    )
    docs = Unjudged(np.array([query for query, _ in unknown]), ranks, len(names))
    levels = np.array([-1.0, 0.0, 1.0, 3.0])
    numbers = rng.integers(0, len(levels), (6, len(unknown))).astype(np.uint8)
    together = graded_draws(sides, docs, numbers, levels, zeros)
    every = [Measure(definition) for definition in definitions().values() if definition.bounded != "fixed"]
    measures = [each for each in every if zeros or not reads_zeros(each)]
    compared = 0
    for a, rank, drawn in zip(sides, ranks, together, strict=True):
        for measure in measures:
            try:
                expected = [
                    values(measure, graded(a, np.arange(a.size), docs.query, rank, levels[row])) for row in numbers
                ]
            except (MeasureError, TypeError):
                continue  # It needs texts, times or a cutoff.
            compared += 1
            np.testing.assert_allclose(values(measure, drawn), np.concatenate(expected), 1e-14, err_msg=str(measure))
    assert compared > 40


def test_many_distinct_grades() -> None:
    (one, other), grades = simulated(30, (1.5, 1.0), seed=1)
    rng = np.random.default_rng(0)
    continuous = [{d: g + rng.random() / 2 for d, g in row.items()} for row in grades]
    pair = paired_lists(one, other, first(one, 10, continuous))
    drawn = drawn_grades(grade_draws(pair, 5, seed=0), pair.unjudged & pair.within(10))
    assert len(np.unique(drawn)) <= 10


def test_a_document_in_both_lists_has_one_grade() -> None:
    lists = [[f"d{n}" for n in range(12)] for _ in range(20)]
    qrels = [{"d0": 2.0, "d1": float(n % 2), "d2": 0.0} for n in range(20)]
    one, other = drawn_values("nDCG@10", lists, lists, qrels)
    np.testing.assert_array_equal(one, other)


def test_every_measure_is_computed_without_code_of_its_own() -> None:
    (one, other), grades = simulated(30, (1.5, 1.0), seed=1)
    for drawn in drawn_values("P@10", one, other, first(one, 5, grades)):
        assert drawn.shape == (DRAWS, 30)
        assert np.allclose(drawn * 10, np.round(drawn * 10))


def test_complete_qrels_have_nothing_to_estimate() -> None:
    (one, other), grades = simulated(30, (1.5, 1.0), seed=1)
    pair = compared(one, other, grades)
    assert (pair.unjudged, pair.imputed) == (0, None)


def test_qrels_with_relevant_documents_only_are_not_pooled() -> None:
    (one, other), grades = simulated(50, (1.5, 1.0), seed=1)
    relevant = [{d: g for d, g in row.items() if g > 0} for row in first(one, 10, grades)]
    assert not pooled(paired_lists(one, other, relevant), CUTOFF)
    assert compared(one, other, relevant).imputed is None


def test_one_chosen_document_per_query_does_not_make_a_pool() -> None:
    (one, other), grades = simulated(100, (1.5, 1.0), seed=1)
    qrels = [{d: g for d, g in row.items() if g > 0} for row in grades]
    for number, row in enumerate(qrels):
        not_relevant = [document for document in one[number] if document not in row]
        row[not_relevant[0]] = 0.0
    assert not pooled(paired_lists(one, other, qrels), CUTOFF)


def test_distractors_do_not_make_a_pool() -> None:
    (one, other), grades = simulated(50, (1.5, 1.0), seed=1)
    qrels = [{d: g or -1.0 for d, g in row.items()} for row in first(one, 10, grades)]
    assert not pooled(paired_lists(one, other, qrels), CUTOFF)


def test_judged_lists_of_either_run_or_of_a_similar_one_are_a_pool() -> None:
    (one, other), grades = simulated(50, (1.5, 1.0), seed=1)
    rng = np.random.default_rng(0)
    similar = [[row[n] for n in np.argsort(np.arange(60) + 10 * rng.standard_normal(60))] for row in one]
    for judged in (one, other, similar):
        assert pooled(paired_lists(one, other, first(judged, 10, grades)), CUTOFF)


def test_the_verdicts() -> None:
    """The estimate, and qrels made from a run, make a significant difference undecided."""
    (one, other), grades = simulated(20, (1.5, 1.0), seed=1)
    tested = compared(one, other, grades)

    def verdict(plain: DifferenceTest, imputed: DifferenceTest | None, edges: tuple[str, ...] = ()) -> str:
        by_test = ("better" if plain.difference > 0 else "worse") if plain.p < 0.05 else "not significant"
        pair = replace(tested, difference=plain.difference, p=plain.p, p_adjusted=plain.p, verdict=by_test)
        known = Conventions() if imputed is None else Conventions(imputed=imputed.difference, imputed_p=imputed.p)
        return _verdict(pair, known, ComparisonPlan(), SimpleNamespace(edges=edges))  # type: ignore[arg-type]

    up, down, unclear = DifferenceTest(0.2, 0.01), DifferenceTest(-0.2, 0.01), DifferenceTest(0.1, 0.2)
    assert verdict(up, None) == "better"
    assert verdict(down, None) == "worse"
    assert verdict(up, up) == "better"
    assert verdict(down, down) == "worse"
    assert verdict(up, unclear) == "undecided"
    assert verdict(up, down) == "undecided"
    assert verdict(unclear, up) == "not significant"
    assert verdict(up, up, ("one",)) == "undecided"
    assert verdict(up, up, ("other",)) == "better"
    assert verdict(down, down, ("other",)) == "undecided"


def test_a_difference_holds_with_every_grading_or_the_estimate_decides() -> None:
    """With the lowest and the highest differences p is below 0.04, with four gradings between them it is 0.056."""
    grades = {  # Of a0 ... a4, then of b0 ... b4; None: unjudged.
        "q0": [0, None, 1, 1, 1, 0, 0, 0, 0, 0],
        "q1": [0, 1, 0, 0, 1, 0, 1, 0, 0, 0],
        "q2": [0, 1, 0, 0, 1, None, 1, 1, 0, 0],
        "q3": [1, 1, 1, 1, 0, 0, 0, 0, 1, 0],
        "q4": [None, 1, 1, 1, 0, 0, 0, 1, 0, 0],
        "q5": [None, 1, 0, 1, 0, 0, 0, 0, 0, 0],
        "q6": [0, 1, 1, 1, None, 0, 0, None, None, 1],
    }
    names = [f"{run}{place}" for run in "ab" for place in range(5)]
    qrels = {
        query: {doc: g for doc, g in zip(names, row, strict=True) if g is not None} for query, row in grades.items()
    }
    runs = {"a": dict.fromkeys(grades, names[:5]), "b": dict.fromkeys(grades, names[5:])}
    runs["b"] |= {"q2": ["a3", *names[6:]], "q6": ["b0", "b1", "a2", "b3", "b4"]}
    (pair,) = sy.compare(qrels, runs, ["RR@5"]).tested_pairs
    assert pair.p < 0.05 < (pair.imputed_p or 0)
    assert (pair.bound_low or 0) > 0
    assert pair.verdict == "undecided"


@pytest.mark.parametrize("test", ["t", "sign"])
def test_no_grading_has_a_larger_p_than_the_bound(test: str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(60):
        low = rng.normal(0.4, 0.4, 6).round(2)
        high = low + rng.exponential(0.3, 6) * (rng.random(6) < 0.7)
        if low.sum() <= 0:
            continue
        choices = product(*zip(low, (low + high) / 2, high, strict=True))
        worst = max(result.p for result in paired_tests(np.array(list(choices)), test))
        assert worst <= (largest_p(low, high, test) or 0) + 1e-12
    assert largest_p(low, high, "wilcoxon") is None


def test_two_equal_runs_and_qrels_made_from_one_of_them() -> None:
    undecided = 0
    for seed in range(10):
        (one, other), grades = simulated(40, (1.2, 1.2), seed)
        pair = compared(one, other, first(one, 10, grades))
        assert pair.p < 0.001
        undecided += pair.verdict == "undecided"
    assert undecided == 10


def test_runs_with_other_unjudged_documents_are_not_equal() -> None:
    judged = [f"d{rank}" for rank in range(5)]
    qrels = {f"q{n}": {doc: rank % 3 for rank, doc in enumerate(judged)} for n in range(20)}
    runs = {name: {query: [*judged, f"{name}1", f"{name}2"] for query in qrels} for name in ("one", "other")}
    result = sy.compare(qrels, {**runs, "copy": runs["one"]}, ["nDCG@10"], baseline="one")
    pairs = {pair["run"]: pair for pair in result.pairs.to_dicts()}
    assert pairs["other"]["verdict"] == "not significant"
    assert pairs["other"]["bound_low"] < 0 < pairs["other"]["bound_high"]
    assert pairs["copy"]["verdict"] == "equal"


def test_a_better_run_stays_better_if_both_were_judged() -> None:
    (one, other), grades = simulated(60, (2.0, 1.0), seed=0)
    pair = compared(one, other, union(first(one, 5, grades), first(other, 5, grades)))
    assert pair.unjudged
    assert pair.imputed is not None
    assert pair.verdict == "better"


def random_pairs(runs: list[str], number: int = 400, seed: int = 2019) -> list[tuple[str, str]]:
    rng = np.random.default_rng(seed)
    return [tuple(rng.choice(runs, 2, replace=False).tolist()) for _ in range(number)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("depths", "number", "kept_at_least"),
    [((10, 0), 400, 0.0), ((10, 3), 100, 0.2), ((5, 5), 100, 0.75), ((3, 3), 100, 0.7)],
    ids=["first 10 of one", "first 10 and first 3", "first 5 of both", "first 3 of both"],
)
def test_compare_claims_what_the_complete_qrels_of_dl2019_support(
    depths: tuple[int, int], number: int, kept_at_least: float
) -> None:
    collection = dl2019()
    runs = {
        name: sy.Run({query: ranking[query][:50] for query in collection.qrels}, name=name)
        for name, ranking in collection.runs.items()
    }
    complete = sy.Qrels(collection.qrels)
    claims = unsupported = opposite = real = kept = 0
    for one, other in random_pairs(list(runs), number):
        pair = {name: runs[name] for name in (one, other)}
        truth = sy.compare(complete, pair, ["nDCG@10"], baseline=other).tested_pairs[0]
        assert truth.verdict != "undecided"
        qrels = restricted(collection.qrels, collection.first(one, depths[0]), collection.first(other, depths[1]))
        claim = sy.compare(qrels, pair, ["nDCG@10"], baseline=other).tested_pairs[0]
        real += truth.verdict in ("better", "worse")
        if claim.verdict in ("better", "worse"):
            claims += 1
            unsupported += claim.verdict != truth.verdict
            opposite += (claim.difference > 0) != (truth.difference > 0)
            kept += claim.verdict == truth.verdict
    assert unsupported <= 0.10 * claims
    assert opposite <= 0.02 * claims
    assert kept >= kept_at_least * real


@pytest.mark.slow
def test_complete_qrels_of_dl2019_change_no_verdict() -> None:
    collection = dl2019()
    runs = {
        name: sy.Run({query: ranking[query] for query in collection.qrels}, name=name)
        for name, ranking in collection.runs.items()
    }
    compared = sy.compare(collection.qrels, runs, ["nDCG@10"], correction="none")
    assert not [pair for pair in compared.tested_pairs if pair.verdict == "undecided"]


def judged_of(qrels: Grades, *runs: dict[str, list[str]]) -> JudgedDocuments:
    known, options = sy.Qrels(qrels), Options()
    lists = {str(number): align(known, run, options.ordering).alignment for number, run in enumerate(runs)}
    return JudgedDocuments(known, None, lists, options)  # type: ignore[arg-type]


@pytest.mark.slow
def test_pools_of_dl2019_are_judged_by_rank() -> None:
    """Qrels made from runs, of the pair or others, are distinguished from qrels with chosen documents."""
    collection = dl2019()
    for one, other in random_pairs(list(collection.runs), 30):
        for depths in ((10, 0), (10, 3), (5, 5), (3, 3)):
            qrels = restricted(collection.qrels, collection.first(one, depths[0]), collection.first(other, depths[1]))
            assert judged_of(qrels, collection.runs[one], collection.runs[other]).judged_by_rank
    two, outside = ("idst_bert_p1.run.gz", "bm25base_p.run.gz"), "ICT-BERT2.run.gz"
    qrels = restricted(collection.qrels, collection.first(outside, 10))
    assert judged_of(qrels, *(collection.runs[run] for run in two)).judged_by_rank


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cranfield", "multihop-rag"])
def test_chosen_documents_are_not_judged_by_rank(name: str) -> None:
    collection = retrieved(name)
    assert not judged_of(collection.qrels, *collection.runs.values()).judged_by_rank


def test_chosen_documents_say_nothing_about_the_others() -> None:
    """Relevant documents, and some that look relevant: unjudged documents stay not relevant, with a note."""
    random = np.random.default_rng(1)
    qrels, near, far = {}, {}, {}
    for number in range(60):
        query = f"q{number}"
        qrels[query] = {f"{query}-{doc}": int(doc == "r") for doc in "rabc"}
        near[query] = [f"{query}-{doc}" for doc in ("r", "x", "a", "y", "b", "z")]
        far[query] = [f"{query}-{doc}" for doc in random.permutation(["x", "a", "r", "b", "v", "w"])]
    result = sy.compare(qrels, {"near": near, "far": far}, ["nDCG@5"])
    assert [pair.verdict for pair in result.tested_pairs] == ["better"]
    assert result.judged == {}
    assert any(note.code == "documents-chosen" for note in result.notes)
    assert "Unjudged: 40% (near) to 52% (far) of the first 5 documents." in result.summary().splitlines()[1]


def test_the_share_of_unjudged_documents_is_beside_the_verdict_on_known_items(tmp_path: Path) -> None:
    """Clicks on one of two systems: nothing else is known of the other one's documents."""
    qrels = {f"q{n}": [f"q{n}-clicked"] for n in range(30)}
    clicked = {f"q{n}": [*(f"q{n}-{rank}" for rank in range(n % 3)), f"q{n}-clicked"] for n in range(30)}
    other = {query: [f"{query}-x", *listed] for query, listed in clicked.items()}
    result = sy.compare(qrels, {"clicked": clicked, "other": other}, ["RR@2"])
    assert [pair.verdict for pair in result.tested_pairs] == ["better"]
    line = "Unjudged: 50% (clicked) to 83% (other) of the first 2 documents."
    assert result.summary().splitlines()[1] == line
    import_peer("jinja2")
    result.to_html(tmp_path / "page.html")
    assert f'<p class="more"><bdi>{line}</bdi></p>' in (tmp_path / "page.html").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cranfield", "scifact", "docs-rag", "expense-rules"])
def test_qrels_that_were_not_pooled_change_no_verdict(name: str) -> None:
    collection = retrieved(name)
    for one, other in combinations(collection.runs, 2):
        pair = paired_lists(collection.lists(one), collection.lists(other), list(collection.qrels.values()))
        for depth in (1, 3, 10, 100):
            assert not np.any(pair.unjudged & pair.within(depth)) or not pooled(pair, depth)


def partly_judged(grade=0):
    """Twenty queries; the first run is judged, of the second one half of the first four documents."""
    qrels = {f"q{n}": {"a": 1, "b": grade, "c": 1, "d": grade, "e": grade} for n in range(20)}
    runs = {
        "known": {query: ["a", "b", "c", "d"] for query in qrels},
        "partly": {query: ["c", "x", "b", "y"] for query in qrels},
    }
    return qrels, runs


def view_of_page(result):
    """What the page shows of a comparison."""
    import_peer("jinja2")
    kept = Kept(tuple(range(len(result.score_tables[0].queries))), everything=True)
    return view_of(comparison_subject(result), run_failures(result), kept)


def test_the_judged_share_and_the_bounds_are_shown_below_100_percent():
    qrels, runs = partly_judged()
    result = sy.compare(qrels, runs, ["P@4", "P@1"])
    frame = result.leaderboard
    assert dict(frame.select("run", "P@4 judged").rows()) == {"known": 1.0, "partly": 0.5}
    assert set(frame["P@1 judged"]) == {1.0}
    assert dict(frame.select("run", "P@4 lowest").rows()) == {"known": 0.5, "partly": 0.25}
    assert dict(frame.select("run", "P@4 highest").rows()) == {"known": 0.5, "partly": 0.75}
    for run, lists in runs.items():
        scores = sy.evaluate(qrels, lists, ["P@4"])
        assert result.judged[run, None].bounds == pytest.approx(scores.bounds("P@4"))
        assert result.judged[run, None].shares["P@4"] == scores.judged("P@4")
    text = result.to_text()
    assert re.search(r"(?m)^ +\d +partly .* 50% +0\.2500 to 0\.7500$", text)
    assert "Judged: the share of judged documents above the cutoff of P@4" in text
    assert re.search(r"(?m)^\| partly .*\| 50% +\| 0\.2500 to 0\.7500 \|$", result.to_markdown())
    row = next(row for row in result.to_dict()["leaderboard"] if row["run"] == "partly")
    assert (row["judged"], row["bounds"]) == ({"P@4": 0.5, "P@1": 1.0}, {"P@4": pytest.approx([0.25, 0.75])})
    assert "P@4 judged" in result.to_csv()
    view = view_of_page(result)
    assert view["judged"]
    (cell,) = next(row["further"] for row in view["boards"][0] if row["run"] == "partly")
    assert (cell["text"], cell["aside"]) == ("50%", "0.2500 to 0.7500")
    first = sy.compare(qrels, runs, ["P@1", "P@4"])
    assert "judged  bounds" not in first.to_text(), "the measure that ranks the runs is judged"


def test_the_judged_share_is_not_shown_where_it_says_nothing():
    qrels, runs = partly_judged()
    complete = {query: {**judged, "x": 0, "y": 0} for query, judged in qrels.items()}
    relevant = {query: {doc: 1 for doc, grade in judged.items() if grade} for query, judged in qrels.items()}
    for known in (complete, relevant):
        result = sy.compare(known, runs, ["P@4"])
        assert result.judged == {}
        assert "bounds" not in result.to_text()
        assert not [name for name in result.leaderboard.columns if "judged" in name]
        assert not view_of_page(result)["judged"]


def many_runs(count: int, queries: int, seed: int = 0) -> tuple[dict[str, dict[str, list[str]]], Grades]:
    """Runs of decreasing skill over 40 documents, and qrels from the first ten of three of them."""
    rng = np.random.default_rng(seed)
    names = [f"run{number:02}" for number in range(count)]
    runs: dict[str, dict[str, list[str]]] = {name: {} for name in names}
    qrels: Grades = {}
    for number in range(queries):
        grade = rng.choice([0, 1, 2], size=40, p=[0.7, 0.2, 0.1])
        for place, name in enumerate(names):
            order = np.argsort(-((2.5 - 2 * place / count) * grade + rng.standard_normal(40)))
            runs[name][f"q{number}"] = [f"d{document}" for document in order]
        judged = {doc for name in names[:3] for doc in runs[name][f"q{number}"][:10]}
        qrels[f"q{number}"] = {doc: int(grade[int(doc[1:])]) for doc in sorted(judged)}
    return runs, qrels


@pytest.mark.slow
def test_every_claim_is_checked_however_many_there_are() -> None:
    runs, qrels = many_runs(34, 40)
    together = sy.compare(qrels, runs, ["nDCG@10"], correction="none")
    claims = [pair for pair in together.tested_pairs if pair.p_adjusted < 0.05]
    assert len(claims) > 400
    assert all(pair.imputed is not None for pair in claims)
    undecided = [pair for pair in claims if pair.verdict == "undecided"]
    for pair in [*undecided[:5], *claims[:5]]:
        alone = sy.compare(qrels, {name: runs[name] for name in (pair.baseline, pair.run)}, ["P@10", "nDCG@10"])
        found = next(each for each in alone.tested_pairs if each.measure == "nDCG@10")
        sign = 1 if found.run == pair.run else -1
        assert (found.imputed, found.imputed_p) == (sign * (pair.imputed or 0), pair.imputed_p)


@pytest.mark.slow
def test_claims_of_many_runs_and_measures_hold_with_the_complete_qrels_of_dl2019() -> None:
    """Qrels from the first ten of three runs. All 37 runs and 7 measures: 892 claims, 0 opposite, 37 unsupported."""
    collection = dl2019()
    names = list(collection.runs)
    measures = ["nDCG@10", "AP", "P@10"]
    runs = {name: sy.Run({q: collection.runs[name][q] for q in collection.qrels}, name=name) for name in names[::3]}
    qrels = restricted(collection.qrels, *(collection.first(name, 10) for name in list(runs)[:3]))
    complete = sy.compare(collection.qrels, runs, measures, correction="none")
    truth = {(pair.measure, pair.run, pair.baseline): pair for pair in complete.tested_pairs}
    claims = unsupported = opposite = 0
    for pair in sy.compare(qrels, runs, measures).tested_pairs:
        if pair.verdict not in ("better", "worse"):
            continue
        known = truth.get((pair.measure, pair.run, pair.baseline))
        sign = 1 if known is not None else -1
        known = known or truth[pair.measure, pair.baseline, pair.run]
        claims += 1
        opposite += (sign * known.difference > 0) != (pair.difference > 0)
        unsupported += known.p >= 0.05 or (sign * known.difference > 0) != (pair.difference > 0)
    assert claims >= 20
    assert opposite <= 0.02 * claims
    assert unsupported <= 0.10 * claims


def test_the_estimates_of_a_pair_do_not_depend_on_the_baseline_or_on_other_runs_and_measures() -> None:
    runs, qrels = many_runs(5, 25)
    estimates = []
    for options in ({}, {"baseline": "run00"}, {"baseline": "run04"}):
        for measures in (["nDCG@10"], ["AP", "R@20", "nDCG@10"]):
            compared = sy.compare(qrels, runs, measures, correction="none", **options)
            pair = next(
                each
                for each in compared.tested_pairs
                if each.measure == "nDCG@10" and {each.run, each.baseline} == {"run00", "run04"}
            )
            sign = 1 if pair.run == "run00" else -1
            assert pair.imputed is not None
            estimates.append((sign * pair.imputed, pair.imputed_p))
    assert len(set(estimates)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("test", ["t", "permutation", "wilcoxon", "sign", "bootstrap", "max-t", "tukey"])
def test_one_missing_judgment_changes_no_verdict_whatever_the_test(test: str) -> None:
    """The estimate is tested as the plain difference is, with the same correction."""
    runs, full = many_runs(8, 30, seed=3)
    pooled_to = {name: {query: docs[:12] for query, docs in lists.items()} for name, lists in runs.items()}
    options = {"test": test, "permutations": 2_000}
    rng = np.random.default_rng(0)
    complete: Grades = {
        query: {doc: full[query].get(doc, int(rng.random() < 0.2)) for name in runs for doc in pooled_to[name][query]}
        for query in full
    }
    judged = sy.compare(complete, pooled_to, ["nDCG@10"], **options)
    claims = {(p.run, p.baseline): p.verdict for p in judged.tested_pairs if p.verdict in ("better", "worse")}
    clear = {(p.run, p.baseline) for p in judged.tested_pairs if p.p_adjusted < 0.03}
    assert len(clear) >= 5
    last = pooled_to["run00"]["q0"][9]
    fewer = {
        query: {d: g for d, g in grades.items() if (query, d) != ("q0", last)} for query, grades in complete.items()
    }
    again = sy.compare(fewer, pooled_to, ["nDCG@10"], **options)
    for pair in again.tested_pairs:
        if (pair.run, pair.baseline) in clear:
            assert pair.verdict == claims[pair.run, pair.baseline]
