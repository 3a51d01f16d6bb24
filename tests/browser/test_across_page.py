"""The page over several datasets: a matrix of runs and datasets, and one click to the page of a dataset."""

from __future__ import annotations

import pytest

import steelyard as sy


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    folder = tmp_path_factory.mktemp("across")
    settings = {"retrievers": ["bm25-okapi", "dense"], "measures": ["nDCG@10"]}
    return sy.bench({"datasets": {"demo": "demo", "again": "demo"}, **settings}, folder / "out")


def test_the_matrix_has_every_value_with_its_interval(result, opened):
    with opened(result.folder / "report.html") as tab:
        assert tab.locator("#datasets thead th").all_inner_texts()[-2:] == ["demo\n115 queries", "again\n115 queries"]
        for number, row in enumerate(result.across.rows):
            cells = tab.locator("#datasets tbody tr").nth(number).locator("td")
            shown = cells.last.inner_text()
            low, high = result.across.datasets[1].intervals[row.run]
            assert f"{row.values['again']:.4f}" in shown
            assert f"[{low:.4f}, {high:.4f}]" in shown
            assert cells.last.locator("svg circle").count() == 1


def test_one_click_opens_the_page_of_a_dataset(result, chromium):
    tab = chromium.new_context(offline=True).new_page()
    errors = []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.goto((result.folder / "report.html").as_uri())
    tab.get_by_role("link", name="again").click()
    tab.wait_for_selector("html[data-ready=yes]", state="attached")
    assert tab.url == (result.folder / "again" / "report.html").as_uri()
    assert tab.locator("#leaderboard").is_visible()
    tab.context.close()
    assert errors == []


def test_a_narrow_screen_scrolls_the_matrix_and_not_the_page(result, opened):
    with opened(result.folder / "report.html", viewport={"width": 360, "height": 800}) as tab:
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
