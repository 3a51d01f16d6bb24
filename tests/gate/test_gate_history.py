"""The baseline of a gate from the history of a bench: the best, the last, or a commit."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import steelyard as sy
from steelyard.cli import run as steelyard
from steelyard.comparison.rules import parse_rule
from steelyard.comparison.scores import column_named
from steelyard.errors import InputError
from steelyard.gating.decisions import ResolvedRule, RuleCase, _tests
from steelyard.gating.result import GatePlan
from steelyard.statistics import t_test

pytestmark = pytest.mark.slow


def bench(folder, k1, dataset="demo", measures=("nDCG@10", "RR@10"), **more):
    settings = {
        "dataset": dataset,
        "retrievers": [{"bm25-okapi": {"name": "search", "k1": k1}}],
        "measures": list(measures),
        "history": str(folder / "h.jsonl"),
        **more,
    }
    return sy.bench(settings, folder / "out")


@pytest.fixture
def folder(tmp_path):
    """Three lines: a good one, a bad one, and the result, which is in between."""
    for number, k1 in enumerate((1.2, 20.0, 4.0)):
        bench(tmp_path, k1)
        lines = [json.loads(line) for line in (tmp_path / "h.jsonl").read_text().splitlines()]
        lines[-1] |= {"commit": f"{number}" * 40, "time": f"2026-01-0{number + 1}T00:00:00+00:00"}
        (tmp_path / "h.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path


def means(folder):
    lines = [json.loads(line) for line in (folder / "h.jsonl").read_text().splitlines()]
    return [line["runs"]["search"]["means"]["nDCG@10"] for line in lines]


@pytest.mark.parametrize(("point", "number"), [("best", 0), ("last", 1), ("1111", 1), ("0000000", 0)])
def test_the_baseline_is_the_named_point(folder, point, number):
    found = sy.gate(folder / "out", ["nDCG@10 >= baseline - 0.5"], baseline=f"history:{point}")
    (row,) = found.rows
    assert row.reference == pytest.approx(means(folder)[number])
    assert str(number) * 7 in found.baseline


@pytest.mark.parametrize("point", ["best", "last"])
def test_a_run_that_was_renamed_has_no_baseline(tmp_path, point):
    """It must not pass because another run is the only one of both: its own rules would not be checked."""
    other = {"random": {"seed": 1}}
    bench(tmp_path, 1.2, retrievers=[{"bm25-okapi": {"name": "search"}}, "bm25-plus"])
    bench(tmp_path, 1.2, retrievers=[{"bm25-okapi": {"name": "search"}}, other])
    with pytest.raises(InputError, match=r"'random' is not in the baseline .*, which has search, bm25-plus\."):
        sy.gate(tmp_path / "out", ["nDCG@10 >= 0.4"], baseline=f"history:{point}")


def test_a_drop_from_the_best_fails_and_a_rise_from_the_last_passes(folder, capsys):
    given = ["gate", str(folder / "out"), "--rule", "nDCG@10 >= baseline"]
    assert steelyard([*given, "--baseline", "history:best"]) == 1
    assert steelyard([*given, "--baseline", "history:last"]) == 0
    notes = sy.gate(folder / "out", baseline="history:last").warnings
    assert "gate-qrels-unknown" not in {each.code for each in notes}


def test_an_unknown_commit_is_an_error(folder):
    with pytest.raises(
        InputError, match="no comparable line of the commit 'abc'; expected best, last or one of 0000000"
    ):
        sy.gate(folder / "out", baseline="history:abc")


def test_the_first_line_has_nothing_to_compare_with(tmp_path):
    bench(tmp_path, 1.2)
    with pytest.raises(InputError, match="nothing to compare with"):
        sy.gate(tmp_path / "out", baseline="history:last")


def test_other_definitions_are_not_comparable(tmp_path):
    bench(tmp_path, 1.2, measures=("RR@10",))
    bench(tmp_path, 2.0)
    with pytest.raises(InputError, match="nothing to compare with"):
        sy.gate(tmp_path / "out", baseline="history:best")


CHANGED = {
    "weights": ({"composite": {"nDCG@10": 0.9, "RR@10": 0.1}}, {"composite": {"nDCG@10": 0.1, "RR@10": 0.9}}),
    "weights at cutoffs": (
        {"composite": {"nDCG": 0.9, "RR": 0.1}, "measures": ["nDCG", "RR"], "at": [3, 5]},
        {"composite": {"nDCG": 0.1, "RR": 0.9}, "measures": ["nDCG", "RR"], "at": [3, 5]},
    ),
    "unjudged": ({"unjudged": "remove"}, {"unjudged": "keep"}),
    "no_relevant": ({"no_relevant": "skip"}, {}),
    "dialect": ({"dialect": "trec_eval-10", "measures": ["recip_rank"]}, {"measures": ["recip_rank"]}),
}


@pytest.mark.parametrize("change", CHANGED)
@pytest.mark.parametrize("point", ["last", "best"])
def test_lines_that_were_measured_differently_are_not_compared(tmp_path, change, point):
    """With one changed setting between two lines there is no baseline; an earlier line with the same one is used."""
    other, same = CHANGED[change]
    bench(tmp_path, 1.2, **other)
    bench(tmp_path, 1.2, **same)
    with pytest.raises(InputError, match=r"measured differently"):
        sy.gate(tmp_path / "out", baseline=f"history:{point}")
    assert "definition" in sy.history(tmp_path / "h.jsonl").steps[-1].broken or "weights" in change
    bench(tmp_path, 1.2, **other)
    (row, *_) = sy.gate(tmp_path / "out", baseline=f"history:{point}").rows
    assert row.reference == row.value


def test_a_bench_without_a_history_is_an_error(tmp_path):
    sy.bench({"dataset": "demo", "retrievers": ["bm25-okapi"], "measures": ["RR@10"]}, tmp_path / "out")
    with pytest.raises(InputError, match="has no history"):
        sy.gate(tmp_path / "out", baseline="history:best")


def test_against_the_best_the_p_value_knows_of_the_choice():
    """The same values against the best of many points, and against this point alone."""
    rng = np.random.default_rng(8)
    values = rng.normal(0.5, 0.2, 60) + rng.normal(0, 0.1, (20, 60))
    best = int(values[:-1].mean(axis=1).argmax())
    queries = tuple(f"q{number}" for number in range(60))
    case = RuleCase(
        ResolvedRule(parse_rule("no significant drop in nDCG@10"), "nDCG@10", None),
        *("run", "run", column_named("nDCG@10"), queries, values[-1], values[best]),
    )
    ((alone, _),) = _tests([case], GatePlan())
    ((chosen, _),) = _tests([replace(case, candidates=values[:-1])], GatePlan())
    ((one, _),) = _tests([replace(case, candidates=values[best : best + 1])], GatePlan())
    assert alone == one == pytest.approx(t_test(case.gains).p / 2)
    assert alone < 0.05 < chosen


def test_the_newest_version_of_the_lines_is_compared_by_its_numbers(folder):
    lines = [json.loads(line) for line in (folder / "h.jsonl").read_text().splitlines()]
    for line, version in zip(lines, ("0.9.0", "0.10.0", "0.1.0"), strict=True):
        line["steelyard"] = version
    (folder / "h.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    notes = sy.gate(folder / "out", baseline="history:best").warnings
    assert next(note["baseline_version"] for note in notes if note.code == "gate-versions-differ") == "0.10.0"
