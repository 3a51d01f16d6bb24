"""identify(): the definitions that give a number which some tool printed."""

from __future__ import annotations

import json

import pytest

import steelyard as sy
from steelyard.cli import run
from steelyard.dialects import identify as identification
from steelyard.errors import InputError, MeasureError

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
    assert (
        run(["reconcile", str(qrels), str(ranked), "--value", "0.6111", "-m", "MAP", "--format", "json"]) == 0
    )
    made = json.loads(capsys.readouterr().out)
    assert made["matches"][0]["clauses"][0]["clause"] == "denominator"
    assert run(["reconcile", str(qrels), str(ranked), "-m", "MAP@5"]) == 2
    assert "--value 0.4123" in capsys.readouterr().err
