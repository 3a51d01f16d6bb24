"""The page of a history: a drawing per measure, with its breaks and changes, and the queries of a change."""

from __future__ import annotations

import re

import pytest

import steelyard as sy
from needs import import_peer
from steelyard.cli.results import history
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


@pytest.fixture(scope="module")
def linked(page):
    """The same as the command line writes it: it finds the result of the bench beside the history."""
    folder = page.parent
    (folder / "other").mkdir()
    (folder / "other" / "result.json").write_text("[]")
    history(folder / "h.jsonl", output=folder / "linked.html")
    return folder / "linked.html"


def test_the_drawing_has_a_point_per_line_of_the_file_and_marks_the_drop(page, opened):
    with opened(page) as tab:
        assert tab.get_by_role("img", name="nDCG@10 on demo over time").locator("circle").count() == 2
        assert tab.locator("svg text.drop").count() == 1


def test_the_queries_of_the_last_change_are_shown_with_their_ids(page, opened):
    with opened(page) as tab:
        moved = tab.locator("#changes details")
        assert moved.locator("td").first.is_visible()
        assert moved.locator("tbody tr").count() == 5
        assert moved.locator("a").count() == 0
        assert moved.locator("thead th").all_inner_texts() == ["query", "before", "after", "difference"]
        moved.locator("summary").click()
        assert not moved.locator("td").first.is_visible()


def test_a_mover_has_its_text_and_opens_in_the_report_of_the_bench(linked, opened):
    with opened(linked) as tab:
        row = tab.locator("#changes tbody tr").first
        query, text = row.locator("td").nth(0).inner_text(), row.locator("td").nth(1).inner_text()
        assert text == sy.Dataset.read("demo").queries[query]
        address = row.locator("a").evaluate("link => link.href")
    report, _, state = address.partition("#")
    assert report == (linked.parent / "out" / "report.html").as_uri()
    with opened(linked.parent / "out" / "report.html", f"#{state}") as tab:
        assert text in tab.locator("dialog[open] h2").inner_text()
        assert tab.locator("#run").input_value() == "search"


def test_without_a_significant_change_the_largest_step_is_shown(linked, opened):
    found = sy.history(linked.parent / "h.jsonl", alpha=1e-9)
    found.to_html(linked.parent / "no-change.html")
    with opened(linked.parent / "no-change.html") as tab:
        assert tab.locator("h1").inner_text().endswith("no significant change.")
        assert tab.locator("#changes summary").all_inner_texts()[0].startswith("change of nDCG@10 of search")
        assert tab.locator("#changes tbody tr").count() == 5


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
