"""History: 20 commits with a real drop, a dip that is noise, and a change of the qrels."""

from __future__ import annotations

import json

import numpy as np
import pytest

import steelyard as sy
from steelyard.cli import run as steelyard
from steelyard.comparison.history import History
from steelyard.errors import InputError, MeasureError

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
    assert [(number, step.broken) for number, step in enumerate(steps) if step.broken] == [
        (QRELS, ("qrels",))
    ]
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
    assert steelyard(["history", str(file), "--from", "07", "--to", "08", "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith("query_id,before,after,difference\n")
    for name in ("h.html", "h.csv", "h.md", "h.tex", "h.txt"):
        assert steelyard(["history", str(file), "-o", str(file.parent / name)]) == 0
        assert "nDCG@10" in (file.parent / name).read_text()


def test_the_page_has_the_line_its_break_and_the_queries_of_the_drop(file):
    page = sy.history(file).to_html()
    assert page.count("<circle") == 20
    assert page.count('class="break"') == 1
    assert page.count("▼") == 1
    assert "Significant changes" in page
    assert "<script" not in page


def test_a_broken_line_without_values_is_left_out():
    lines = records()[:3]
    lines[1]["runs"] = {"bm25": {}}
    assert len(History.of(lines).steps) == 2
