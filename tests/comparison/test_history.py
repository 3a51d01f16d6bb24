"""History: 20 commits with a real drop, a dip that is noise, and a change of the qrels."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import numpy as np
import pytest

import steelyard as sy
from steelyard.cli import run as steelyard
from steelyard.comparison.history import History, Point
from steelyard.comparison.scores import Column
from steelyard.errors import InputError, MeasureError
from steelyard.measures.grammar import parse
from steelyard.statistics import t_test

QUERIES = 150
DROP, DIP, QRELS = 8, 5, 14


def records(seed=0, runs=("bm25",)):
    """20 commits: noise per query at each, a lower mean by noise at DIP, a real drop at DROP, other qrels at QRELS."""
    rng = np.random.default_rng(seed)
    level = np.clip(rng.normal(0.5, 0.25, QUERIES), 0, 1)
    made = []
    for number in range(20):
        values = {}
        for run in runs:
            noise = rng.normal(0, 0.05, QUERIES)
            noise += -0.004 - noise.mean() if number == DIP else 0.0
            shift = -0.05 if number >= DROP else 0.0
            values[run] = np.clip(level + shift + noise + (0.2 if number >= QRELS else 0.0), 0, 1.5)
        made.append(
            {
                "steelyard": "0.1.0",
                "time": f"2026-01-{number + 1:02}T00:00:00+00:00",
                "commit": f"{number:02}" + "a" * 38,
                "branch": "main",
                "dirty": number == 3,
                "dataset": "demo",
                "fingerprints": {"corpus": "c", "queries": "q", "qrels": "new" if number >= QRELS else "old"},
                "measures": {"nDCG@10": "nDCG@10"},
                "settings": "",
                "queries": [f"q{n}" for n in range(QUERIES)],
                "runs": {
                    run: {"means": {"nDCG@10": float(each.mean())}, "values": {"nDCG@10": each.tolist()}}
                    for run, each in values.items()
                },
            }
        )
    return made


@pytest.fixture(scope="module")
def found():
    return History.of(records())


@pytest.fixture
def file(tmp_path):
    (tmp_path / "h.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records()))
    return tmp_path / "h.jsonl"


def test_the_drop_is_found_the_dip_is_not_and_the_change_of_qrels_breaks_the_line(found):
    steps = found.steps
    assert [(number, step.change) for number, step in enumerate(steps) if step.change] == [(DROP, "drop")]
    assert [(number, step.broken) for number, step in enumerate(steps) if step.broken] == [(QRELS, ("qrels",))]
    assert np.isnan(steps[QRELS].p_adjusted)
    assert steps[DROP].difference == pytest.approx(-0.05, abs=0.02)


def test_over_many_histories_the_drop_is_always_found_and_other_changes_are_rare():
    others = 0
    for seed in range(20):
        changed = {number for number, step in enumerate(History.of(records(seed)).steps) if step.change}
        assert DROP in changed
        assert not {DIP, DIP + 1} & changed
        others += bool(changed - {DROP})
    assert others <= 3


def test_the_last_is_compared_with_the_best_since_the_break(found):
    (row,) = found.latest.to_dicts()
    assert row["last_at"] == "19aaaaa"
    assert int(row["best_at"][:2]) >= QRELS
    assert row["verdict"] in ("not significant", "")


def test_a_definition_that_changed_breaks_the_line():
    lines = records()[:4]
    lines[2]["measures"] = {"nDCG@10": "nDCG(gain=exp)@10"}
    steps = History.of(lines).steps
    assert steps[2].broken == ("definition",)


def of_values(measure, rows, definition=None):
    """A history of one measure: the values per query of every point, None where a query has none."""
    column = Column(measure, measure=parse(definition or measure))
    made = []
    for line, row in zip(records(), rows, strict=False):
        mean = column.mean(np.array(row, dtype=float))
        line |= {"measures": {measure: definition or measure}, "queries": [f"q{n}" for n in range(len(row))]}
        made.append(line | {"runs": {"bm25": {"means": {measure: mean}, "values": {measure: row}}}})
    return History.of(made)


@pytest.mark.parametrize(
    ("measure", "definition"),
    [
        ("Confusion at 3", "Confusion@3"),
        ("Confusion@3", "Confusion@3"),
        ("Latency(stat=p95) at 3", "Latency(stat=p95)"),
    ],
)
def test_the_best_is_the_lowest_where_lower_is_better(measure, definition):
    found = of_values(measure, [[0.25] * 8, [0.125] * 8, [0.5] * 8], parse(definition).spelled)
    (row,) = found.latest.to_dicts()
    assert (row["best"], row["last"]) == (0.125, 0.5)


def test_the_best_of_an_unknown_measure_at_a_cutoff_is_by_its_name():
    lines = records()[:3]
    for line, value in zip(lines, (0.25, 0.125, 0.5), strict=True):
        line["measures"] = {"loss at 3": "a measure of the past"}
        line["runs"]["bm25"] = {"means": {"loss at 3": value}, "values": {"loss at 3": [value] * QUERIES}}
    (row,) = History.of(lines).latest.to_dicts()
    assert row["best"] == 0.125


@pytest.mark.parametrize("most_drawn", [1000, 2])
def test_geometric_means_are_tested_by_their_logarithms(most_drawn, monkeypatch):
    """Their intervals contain them, and the sign of a difference is that of the change of the mean."""
    monkeypatch.setattr("steelyard.comparison.history.MOST_DRAWN", most_drawn)
    rng = np.random.default_rng(1)
    rows = [(rng.beta(1, 2, 30) * (rng.random(30) < share)).tolist() for share in (0.4, 0.9, 0.7, 0.3)]
    rows[2][3] = None
    steps = of_values("GMAP", rows).steps
    assert all(0 <= step.low < step.mean < step.high <= 1 for step in steps)
    logarithms = np.log(np.maximum(rows[:2], 1e-5))
    assert steps[1].difference == pytest.approx(steps[1].mean - steps[0].mean, rel=1e-12)
    assert steps[1].p_adjusted == pytest.approx(min(1, 3 * t_test(logarithms[1] - logarithms[0]).p))
    both = [row[:3] + row[4:] for row in rows[1:3]]
    before, after = (float(np.exp(np.log(np.maximum(row, 1e-5)).mean())) for row in both)
    assert steps[2].difference == pytest.approx(after - before, rel=1e-12)


def test_a_fall_of_a_geometric_mean_is_not_a_rise_of_the_mean():
    """One value near 0 halves the geometric mean, while the other values rise."""
    rows = [[0.5] * 8, [0.000_01, *[0.55] * 7]]
    step = of_values("GMAP", rows).steps[1]
    assert np.mean(rows[1]) < step.high
    assert step.difference == pytest.approx(step.mean - 0.5)
    assert step.difference < -0.2


def test_geometric_means_compare_the_best_by_logarithms():
    rng = np.random.default_rng(2)
    level = rng.uniform(0.001, 0.9, 40)
    rows = [level.tolist(), (level * rng.uniform(0.4, 0.6, 40)).tolist()]
    (row,) = of_values("GMAP", rows).latest.to_dicts()
    assert row["p_adjusted"] < 1e-9, "the ratio is the same on every query, the difference is not"


@pytest.mark.parametrize("measure", ["NumRelRet", "Latency(stat=p95)", "Latency(stat=max)"])
def test_sums_and_percentiles_have_differences_without_intervals_and_tests(measure):
    rng = np.random.default_rng(3)
    rows = [(rng.exponential(scale, 30)).tolist() for scale in (1.0, 9.0, 2.0)]
    found = of_values(measure, rows)
    assert [step.difference for step in found.steps[1:]] == pytest.approx(
        [after.mean - before.mean for before, after in pairwise(found.steps)]
    )
    assert all(math.isnan(value) for step in found.steps for value in (step.low, step.high, step.p_adjusted))
    assert {step.change for step in found.steps} == {""}
    (row,) = found.latest.to_dicts()
    assert (row["p_adjusted"], row["verdict"]) == (None, "")
    assert found.to_html().count("<circle") == 3
    assert f"{found.steps[-1].mean:.4f}" in found.to_text()


def test_sums_without_a_common_query_have_no_difference():
    found = of_values("NumRelRet", [[1.0, None, 2.0, None], [None, 3.0, None, 4.0]])
    assert math.isnan(found.steps[1].difference)


@pytest.mark.parametrize("most_drawn", [1000, 1])
def test_intervals_are_within_the_range_of_the_measure(most_drawn, monkeypatch):
    monkeypatch.setattr("steelyard.comparison.history.MOST_DRAWN", most_drawn)
    steps = of_values("nDCG@10", [[0.1, 0.9], [0.2, 0.4]]).steps
    assert [(step.low, step.high) for step in steps] == [(0, 1), (0, 1)]


def test_queries_that_moved_between_any_two_points(found):
    moved = found.movers("05", "10")
    lines = records()
    old, new = (lines[n]["runs"]["bm25"]["values"]["nDCG@10"] for n in (5, 10))
    largest = max(range(QUERIES), key=lambda n: abs(new[n] - old[n]))
    assert moved.row(0)[0] == f"q{largest}"
    assert moved.row(0)[3] == pytest.approx(new[largest] - old[largest])
    assert moved.height == 10


def test_unknown_commits_runs_and_measures_are_errors(found):
    with pytest.raises(InputError, match="no commit 'zz' in the history"):
        found.movers("zz", "last")
    with pytest.raises(InputError, match="no values of nDCG@10"):
        found.movers("first", "last", run="other")
    with pytest.raises(MeasureError, match="not in the history"):
        found.movers("first", "last", measure="AP")


def test_several_runs_are_corrected_together():
    alone, both = History.of(records()), History.of(records(runs=("bm25", "dense")))
    assert len(both.lines) == 2
    assert sum(step.p_adjusted == step.p_adjusted for step in both.steps) == 36
    assert len(alone.steps) == 20


def test_every_format(file, capsys):
    assert steelyard(["history", str(file)]) == 0
    printed = capsys.readouterr()
    assert "drop of bm25 (p <0.001)" in printed.out
    assert "new qrels" in printed.out
    assert "03aaaaa*" in printed.out
    assert "drop of nDCG@10 of bm25" in printed.err
    assert steelyard(["history", str(file), "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert len(data["points"]) == 20
    assert steelyard(["history", str(file), "--commits", "07..08", "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith("query_id,before,after,difference\n")
    for name in ("h.html", "h.csv", "h.md", "h.tex", "h.txt"):
        assert steelyard(["history", str(file), "-o", str(file.parent / name)]) == 0
        assert "nDCG@10" in (file.parent / name).read_text()


def test_the_page_has_the_line_its_break_and_the_queries_of_the_drop(file):
    page = sy.history(file).to_html()
    assert page.count("<circle") == 20
    assert page.count('class="break"') == 1
    assert page.count("▼") == 1
    assert "Queries that moved most" in page
    assert page.count("<script") == 1, "that of the shell"


def test_a_broken_line_without_values_is_left_out():
    lines = records()[:3]
    lines[1]["runs"] = {"bm25": {}}
    assert len(History.of(lines).steps) == 2


def test_the_tests_of_a_line_are_those_of_t_test():
    """All steps are tested together, with the p-values that one call per step gives, to the last bit."""
    from steelyard.statistics.paired import t_tests

    rng = np.random.default_rng(5)
    blocks = [np.array([rng.normal(size=n).round(digits) for digits in (1, 16)]) for n in (0, 1, 2, 3, 10, 115)]
    blocks += [np.array([np.zeros(5), np.full(5, 0.1), np.full(5, -0.3)]), np.array([[0.1, 0.1 + 1e-17]])]
    for block in blocks:
        differences, p_values = t_tests(block)
        for values, difference, p in zip(block, differences, p_values, strict=True):
            expected = t_test(values).p if len(values) else float("nan")
            assert np.array_equal(p, expected, equal_nan=True)
            assert np.array_equal(difference, values.mean() if len(values) else float("nan"), equal_nan=True)
    gaps = np.array([[0.1, np.nan, 0.3, 0.2], [np.nan, np.nan, np.nan, 0.5]])
    differences, p_values = t_tests(gaps)
    assert differences == pytest.approx([0.2, 0.5])
    assert p_values == pytest.approx([t_test([0.1, 0.3, 0.2]).p, float("nan")], nan_ok=True)


def test_a_long_line_has_intervals_of_student(monkeypatch):
    import numpy as np

    from steelyard.comparison import history
    from steelyard.statistics import mean_interval

    steps = History.of(records()[:6]).lines["demo", "nDCG@10", "bm25"]
    values = [list(step.point.values("bm25", "nDCG@10").values()) for step in steps]
    assert [(step.low, step.high) for step in steps] == [mean_interval(each) for each in values]
    monkeypatch.setattr(history, "MOST_DRAWN", 5)
    steps = History.of(records()[:6]).lines["demo", "nDCG@10", "bm25"]
    assert np.allclose([(step.low, step.high) for step in steps], [mean_interval(each, method="t") for each in values])


@pytest.mark.parametrize("output", ["to_text", "to_markdown", "to_json", "to_html"])
def test_the_work_grows_with_the_number_of_lines(tmp_path, monkeypatch, output):
    """Calls of functions are counted: twice the lines take twice the calls, and nothing is drawn for a long line."""
    import sys

    from steelyard.comparison import history

    monkeypatch.setattr(history, "MOST_DRAWN", 100)
    monkeypatch.setattr(history, "mean_interval", None)
    lines = [json.dumps(each) + "\n" for each in records()]
    file, counts = tmp_path / "long.jsonl", []
    for repeated in (6, 10, 20):  # The first one also imports modules.
        file.write_text("".join(lines * repeated))
        calls = 0

        def count(frame, event, argument):
            nonlocal calls
            calls += event in ("call", "c_call")

        sys.setprofile(count)
        try:
            getattr(sy.history(file), output)()
        finally:
            sys.setprofile(None)
        counts.append(calls)
    assert counts[2] < 2.1 * counts[1]


def test_without_any_change_the_last_point_is_rarely_called_different_from_the_best():
    """The best of 12 points is above its true value by chance, which a test of that pair alone does not know."""
    different = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        level = rng.normal(0.5, 0.25, QUERIES)
        made = records()[:12]
        for each in made:
            values = level + rng.normal(0, 0.1, QUERIES)
            each["runs"]["bm25"] = {"means": {"nDCG@10": float(values.mean())}, "values": {"nDCG@10": values.tolist()}}
        different += "worse than the best" in History.of(made).latest["verdict"].to_list()
    assert different <= 6


def test_a_drop_from_the_best_is_found():
    (row,) = History.of(records()[: DROP + 3]).latest.to_dicts()
    assert row["verdict"] == "worse than the best"
    assert row["p_adjusted"] < 0.001


def test_lines_without_runs_have_no_points():
    found = History.of([{**record, "runs": {}} for record in records()])
    assert found.lines == {}
    assert found.table.is_empty()
    assert found.verdict.endswith("no significant change.")


def test_the_work_grows_with_the_number_of_points_also_if_every_point_has_its_own_run(monkeypatch):
    looked = []
    recorded = Point.recorded
    monkeypatch.setattr(Point, "recorded", lambda point, *key: looked.append(key) or recorded(point, *key))
    lines = records()
    for number, line in enumerate(lines):
        line["runs"] = {f"run {number}": line["runs"]["bm25"]}
    assert len(History.of(lines).lines) == len(lines)
    assert len(looked) == len(lines)


def test_a_point_with_values_of_fewer_queries_is_compared_on_those():
    lines = records()[:QRELS]
    shorter = lines[DIP]["runs"]["bm25"]["values"]
    shorter["nDCG@10"] = shorter["nDCG@10"][:-2]
    latest = History.of(lines).latest.row(0, named=True)
    for line in lines:
        values = line["runs"]["bm25"]["values"]
        values["nDCG@10"] = values["nDCG@10"][:-2]
        line["queries"] = line["queries"][:-2]
    assert latest["verdict"] == "worse than the best"
    assert latest["p_adjusted"] == History.of(lines).latest["p_adjusted"][0]
