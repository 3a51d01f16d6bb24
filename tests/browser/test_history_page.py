"""The page of a history: a drawing per measure, with its breaks and changes, and the queries of a change."""

from __future__ import annotations

import pytest

import steelyard as sy


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
