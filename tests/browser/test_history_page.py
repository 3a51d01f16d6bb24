"""The page of a history: a drawing per measure, with its breaks and changes, and the queries of a change."""

from __future__ import annotations

import re

import pytest

import steelyard as sy
from needs import import_peer
from steelyard.comparison.history import History


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Two points of the demo: a setting that makes it worse."""
    folder = tmp_path_factory.mktemp("history")
    for k1, b in ((1.2, 0.75), (8.0, 1.0)):
        retrievers = [{"bm25-okapi": {"name": "search", "k1": k1, "b": b}}]
        bench = {"dataset": "demo", "retrievers": retrievers, "measures": ["nDCG@10"]}
        sy.bench(bench, folder / "out", history=folder / "h.jsonl")
    sy.history(folder / "h.jsonl").to_html(folder / "history.html")
    return folder / "history.html"


def test_the_drawing_has_a_point_per_line_of_the_file_and_marks_the_drop(page, opened):
    with opened(page) as tab:
        assert tab.get_by_role("img", name="nDCG@10 on demo over time").locator("circle").count() == 2
        assert tab.locator("svg text.drop").count() == 1


def test_the_queries_of_a_change_open_on_a_click(page, opened):
    with opened(page) as tab:
        moved = tab.locator("#changes details")
        assert not moved.locator("td").first.is_visible()
        moved.locator("summary").click()
        assert moved.locator("tbody tr").count() == 5
        assert moved.locator("td").first.is_visible()


@pytest.mark.parametrize("view", [(1366, "light"), (1366, "dark"), (390, "light"), (390, "dark")])
def test_axe_finds_nothing(page, opened, view):
    width, scheme = view
    axe = import_peer("axe_playwright_python.sync_playwright")
    with opened(page, viewport={"width": width, "height": 768}, color_scheme=scheme, bypass_csp=True) as tab:
        tab.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        found = axe.Axe().run(tab).response["violations"]
        assert [(each["id"], each["nodes"][0]["html"]) for each in found] == []
        assert tab.evaluate("document.documentElement.scrollWidth") <= width


def test_the_dated_chart_is_first_and_the_table_has_plain_names(page, opened):
    with opened(page, viewport={"width": 1366, "height": 768}) as tab:
        drawn = tab.get_by_role("img", name="nDCG@10 on demo over time").bounding_box()
        assert drawn["y"] + drawn["height"] <= 768
        dates = tab.locator("svg text.date").all_text_contents()
        assert len(dates) == 2
        assert all(re.fullmatch(r"\d{4}-\d{2}-\d{2}", date) for date in dates)
        heads = tab.locator("#latest thead th").all_inner_texts()
        assert heads[3:9] == ["last", "last point", "best", "best point", "difference", "p"]


def test_the_intervals_of_two_runs_are_beside_each_other(tmp_path, opened):
    record = {
        "dataset": "demo",
        "time": "2026-01-02T03:04:05",
        "queries": ["a", "b", "c"],
        "measures": {"AP": "AP"},
        "fingerprints": {},
        "runs": {run: {"means": {"AP": 0.5}, "values": {"AP": [0.4, 0.5, 0.6]}} for run in ("one", "other")},
    }
    History.of([record, {**record, "time": "2026-01-03T03:04:05"}]).to_html(tmp_path / "history.html")
    with opened(tmp_path / "history.html") as tab:
        groups = tab.locator(".over-time svg g")
        places = [groups.nth(number).locator("circle").first.bounding_box()["x"] for number in range(2)]
        assert places[1] - places[0] >= 8
