"""identify(): the definitions that give a number which some tool printed."""

from __future__ import annotations

import json
from dataclasses import replace
from math import log2

import numpy as np
import pytest

import steelyard as sy
from steelyard.alignment.alignment import align
from steelyard.alignment.hits import Ordering
from steelyard.cli import run
from steelyard.dialects import dialect
from steelyard.dialects import identify as identification
from steelyard.dialects.identify import measures_of, other_parameters
from steelyard.errors import InputError, MeasureError
from steelyard.measures.compute import values
from steelyard.measures.gradings import reads_zeros

QRELS = {"Q1": ["A", "B", "C"], "Q2": ["D", "E"], "Q3": ["G", "H", "I"]}
RUN = {"Q1": ["A", "D", "B", "E", "F"], "Q2": ["D", "E", "F", "G", "H"], "Q3": ["A", "B", "C", "D", "E"]}


def names(found):
    return {(name.dialect, name.name) for match in found.matches for name in match.names}


def test_the_tool_and_the_clause_are_found():
    found = sy.identify(QRELS, RUN, "0.6111")
    assert ("multihop-rag", "MAP@5") in names(found)
    match = next(m for m in found.matches if ("multihop-rag", "MAP@5", "AP(denominator=found)@5") in m.names)
    assert match.value == pytest.approx(11 / 18)
    assert [clause[:3] for clause in match.clauses] == [("denominator", "found", "relevant")]
    assert match.clauses[0].gives == pytest.approx(0.5185185185185185)
    assert "denominator=found matters: relevant gives 0.518519" in str(found)


def test_every_match_rounds_to_the_printed_digits_and_has_its_value():
    found = sy.identify(QRELS, RUN, "0.67")
    assert len(found.matches) > 3
    for match in found.matches:
        assert 0.665 <= match.value <= 0.675
        dialect, name, _ = match.names[0]
        if not match.but:
            assert sy.evaluate(QRELS, RUN, [name], dialect=dialect)[name] == pytest.approx(match.value)


@pytest.mark.parametrize("written", ["61.11", "61.11%", "61.11 %", 61.11])
def test_a_percentage(written):
    assert ("multihop-rag", "MAP@5") in names(sy.identify(QRELS, RUN, written, "MAP@5"))


def test_a_float_has_the_digits_it_shows():
    assert ("multihop-rag", "MAP@5") in names(sy.identify(QRELS, RUN, 0.6111, "MAP@5"))
    assert ("multihop-rag", "MAP@5") not in names(sy.identify(QRELS, RUN, "0.61110", "MAP@5"))


def test_a_changed_policy_is_found():
    """beir leaves a missing query out; its MRR scores it 0."""
    less = {query: RUN[query] for query in ("Q1", "Q2")}
    found = sy.identify(QRELS, less, "0.6667", ["MRR@10"], ["beir"])
    (match,) = found.matches
    assert match.but == "missing=zero"
    assert match.names == (("beir", "MRR@10", "RR@10"),)


def test_ties_in_another_order():
    found = sy.identify({"q": {"a": 1}}, {"q": {"a": 1.0, "b": 1.0}}, "1.0000", ["RR"], ["trec_eval-9"])
    assert [match.but for match in found.matches] == ["ties=docid-asc", "ties=stable", "unjudged=remove"]


def test_no_match_names_the_nearest():
    found = sy.identify(QRELS, RUN, "0.6112")
    assert found.matches == ()
    assert abs(found.nearest[0].value - 0.6112) < 0.0002
    assert "no definition gives it" in str(found)


def test_a_run_is_joined_once_per_ordering(monkeypatch):
    orderings = []

    def counted(qrels, given, ordering, *more):
        orderings.append(ordering)
        return align(qrels, given, ordering, *more)

    align = identification.align
    monkeypatch.setattr(identification, "align", counted)
    found = sy.identify(QRELS, RUN, "0.6111")
    assert found.tried > 500
    assert len(orderings) == 1
    orderings.clear()
    sy.identify({"q": {"a": 1}}, {"q": {"a": 1.0, "b": 1.0}}, "0.5", "RR")
    assert len(orderings) > 1
    assert len(set(orderings)) >= len(orderings) - 1


def test_wrong_input():
    with pytest.raises(InputError, match=r"expected a number as it was printed"):
        sy.identify(QRELS, RUN, "about a half")
    with pytest.raises(InputError, match="no query of the run is in the qrels"):
        sy.identify(QRELS, {"other": ["A"]}, "0.5")
    with pytest.raises(MeasureError, match="Did you mean Recall"):
        sy.identify(QRELS, RUN, "0.5", "Recal")


def test_on_the_command_line(tmp_path, capsys):
    qrels, ranked = tmp_path / "qrels.json", tmp_path / "run.json"
    qrels.write_text(json.dumps(QRELS))
    ranked.write_text(json.dumps(RUN))
    assert run(["reconcile", str(qrels), str(ranked), "--value", "0.6111", "-m", "MAP@5"]) == 0
    assert "in multihop-rag: MAP@5" in capsys.readouterr().out
    assert run(["reconcile", str(qrels), str(ranked), "--value", "0.6111", "-m", "MAP", "--format", "json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["matches"][0]["clauses"][0]["clause"] == "denominator"
    assert run(["reconcile", str(qrels), str(ranked), "-m", "MAP@5"]) == 2
    assert "--value 0.4123" in capsys.readouterr().err


@pytest.mark.slow
def test_the_usual_values_of_p_are_tried():
    for p in (0.5, 0.8, 0.85, 0.9, 0.95):
        value = sy.evaluate(QRELS, RUN, [f"RBP(p={p})"])[f"RBP(p={p})"]
        found = names(sy.identify(QRELS, RUN, f"{value:.6f}", dialects=["ranx"]))
        assert ("ranx", f"rbp.{f'{p:g}'[2:]:0<2}") in found
        found = names(sy.identify(QRELS, RUN, f"{value:.6f}", "RBP"))
        assert ("steelyard", "RBP" if p == 0.8 else f"RBP(p={p})") in found


def test_condensed_and_jarvelin_kekalainen_ndcg_are_found():
    qrels = {"q": {"a": 3, "b": 2, "c": 1}}
    run = {"q": ["x", "a", "c", "y", "b"]}
    jk = (3 + 1 / log2(3) + 2 / log2(5)) / (3 + 2 + 1 / log2(3))
    assert sy.evaluate(qrels, run, "nDCG(discount=jk)@10")["nDCG(discount=jk)@10"] == pytest.approx(jk)
    found = sy.identify(qrels, run, f"{jk:.6f}", "nDCG")
    assert any("nDCG(discount=jk)@10" in match.means for match in found.matches)
    ideal = 3 + 2 / log2(3) + 1 / 2
    condensed = (3 + 1 / log2(3) + 2 / 2) / ideal
    found = sy.identify(qrels, run, f"{condensed:.6f}", "nDCG")
    assert any(match.but == "unjudged=remove" and "nDCG@10" in match.means for match in found.matches)


def test_the_first_answer_names_the_likeliest_tool():
    value = sy.evaluate(QRELS, RUN, "nDCG@3")["nDCG@3"]
    found = sy.identify(QRELS, RUN, f"{value:.4f}")
    assert str(found).startswith(f"{value:.4f} of run 'run': most likely ndcg_cut_10 of trec_eval-9. ")
    assert found.matches[0].names[0] == ("trec_eval-9", "ndcg_cut_10", "nDCG@10")
    assert [name.dialect for name in found.matches[0].names][-1] == "steelyard"
    changed = sy.identify({"q": {"a": 1}}, {"q": {"a": 1.0, "b": 1.0}}, "1.0000", ["RR"], ["trec_eval-9"])
    assert "most likely RR@10 of trec_eval-9, but ties=docid-asc." in str(changed)


def test_progress_is_reported():
    steps = []
    sy.identify(QRELS, RUN, "0.6111", progress=lambda step, done, total: steps.append((step, done, total)))
    assert {step for step, _, _ in steps} >= {"names of ranx", "other policies", "other parameters"}
    assert all(0 <= done < total for _, done, total in steps)


def random_case(queries, documents, ties):
    rng = np.random.default_rng(5)
    qrels, run = {}, {}
    for q in range(queries):
        relevant = rng.random(documents) < 0.1
        scores = np.round(rng.normal(size=documents) + 1.2 * relevant, 1 if ties else 12).tolist()
        docs = [f"d{q}-{n}" for n in range(documents)]
        qrels[f"q{q}"] = dict(zip(docs, relevant.astype(int).tolist(), strict=True))
        run[f"q{q}"] = dict(zip(docs, scores, strict=True))
    return qrels, run


@pytest.mark.slow
def test_the_size_of_jqara_is_measured_once_per_definition(monkeypatch):
    """1,667 queries with 100 judged documents each: what takes long is counted, each measure once and one join."""
    measured, joined = [], []
    monkeypatch.setattr(
        identification, "values", lambda *given, **more: measured.append(given) or values(*given, **more)
    )
    monkeypatch.setattr(identification, "align", lambda *given: joined.append(given) or align(*given))
    qrels, run = random_case(1667, 100, ties=False)
    value = sy.evaluate(qrels, run, "nDCG@10")["nDCG@10"]
    found = sy.identify(qrels, run, f"{value:.4f}")
    assert len(joined) == 1
    assert len({(str(measure), id(lists)) for measure, lists in measured}) == len(measured)
    assert len(measured) < 2500
    assert found.matches[0].names[0].name == "ndcg_cut_10"


def test_every_measure_that_is_tried_without_documents_of_grade_0_has_the_same_values():
    rng = np.random.default_rng(1)

    def drawn(most):
        return [f"d{n}" for n in rng.choice(25, rng.integers(1, most), replace=False)]

    run = {f"q{q}": {doc: float(rng.integers(0, 8)) for doc in drawn(20)} for q in range(20)}
    graded = {query: {doc: int(rng.integers(-1, 4)) for doc in drawn(15)} for query in run}
    targets = {query: [drawn(5) for _ in range(rng.integers(1, 4))] for query in run}
    compared = 0
    for qrels in (graded, targets):
        whole = align(sy.Qrels(qrels), run, Ordering()).alignment
        less = whole.without_zeros()
        own = [measure for _, measure in measures_of(dialect("steelyard"), None, [2])]
        for measure in [*own, *(other for each in own for other in other_parameters(each, [2]))]:
            if not reads_zeros(measure) and measure.cutoff in (None, 3, 10, 0.2):
                try:
                    expected = values(measure, whole)
                except MeasureError:
                    continue
                np.testing.assert_allclose(values(measure, less), expected, atol=1e-12, err_msg=str(measure))
                compared += 1
    assert compared > 300


def test_other_orders_of_ties_are_left_out_only_where_they_cannot_give_the_number(monkeypatch):
    qrels, run = random_case(30, 20, ties=True)
    narrow = {"measures": ["AP", "nDCG", "P", "RR"], "dialects": ["trec_eval-9", "ranx", "steelyard"]}
    for value in ("0.40", "0.3"):
        found = sy.identify(qrels, run, value, **narrow)
        with monkeypatch.context() as patch:
            patch.setattr(identification.Means, "most_by_ties", lambda self, reading: np.inf)
            everything = sy.identify(qrels, run, value, **narrow)
        assert [replace(match, chance=1) for match in found.matches] == [
            replace(match, chance=1) for match in everything.matches
        ]
        both = zip(found.matches, everything.matches, strict=True)
        assert all(few.chance >= many.chance for few, many in both), "what was left out could give other numbers"
        assert found.tried <= everything.tried


def graded_case():
    rng = np.random.default_rng(5)
    qrels, run = {}, {}
    for q in range(20):
        grades = rng.choice(4, size=30, p=[0.7, 0.15, 0.1, 0.05]).tolist()
        qrels[f"q{q}"] = {f"d{n}": grade for n, grade in enumerate(grades)}
        run[f"q{q}"] = {f"d{n}": float(rng.normal() + 0.8 * grade) for n, grade in enumerate(grades)}
    return qrels, run


@pytest.mark.slow
def test_the_chance_that_a_random_number_fits_is_stated_and_limits_what_is_called_most_likely():
    """Of all numbers with two digits, the stated share fits, and at most 5% are said to be most likely something."""
    qrels, run = graded_case()
    narrow = {"measures": ["nDCG", "AP", "P"], "dialects": ["trec_eval-9"]}
    found = [sy.identify(qrels, run, f"{number / 100:.2f}", **narrow) for number in range(101)]
    fitting = sum(bool(each.matches) for each in found) / 101
    assert fitting > 0.2
    assert all(abs(each.chance - fitting) < 0.1 for each in found)
    likely = [each for each in found if "most likely" in str(each)]
    assert 1 <= len(likely) <= 5
    assert all(each.matches[0].chance <= 0.05 for each in likely)
    chances = [match.chance for each in found for match in each.matches]
    assert max(chances) <= max(each.chance for each in found)
    unclear = next(each for each in found if each.matches and each.matches[0].chance > 0.05)
    assert "it fits by chance, and no definition is more likely than another" in str(unclear)
    assert unclear.to_dict()["chance"] == unclear.chance
    assert unclear.to_dict()["matches"][0]["chance"] == unclear.matches[0].chance


def test_trec_eval_with_another_relevance_level_is_found():
    qrels, run = graded_case()
    for name in ("map", "P_5", "recip_rank"):
        value = sy.evaluate(qrels, run, name, dialect="trec_eval-9", rel=2)[name]
        found = sy.identify(qrels, run, f"{value:.5f}", dialects=["trec_eval-9", "trec_eval-10"])
        assert ("trec_eval-9", f"{name} -l2") in names(found)
        assert ("trec_eval-10", f"{name} -l2") in names(found)
    assert not any("ndcg" in name for _, name in names(found) if "-l" in name), "ndcg does not depend on -l"
