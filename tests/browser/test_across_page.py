"""The page over several datasets: a matrix of runs and datasets, and one click to the page of a dataset."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import steelyard as sy
from needs import import_peer


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


@pytest.fixture(scope="module")
def seven(tmp_path_factory):
    """Six runs on seven datasets by two measures, which rank them differently."""
    rng = np.random.default_rng(0)
    found = {}
    for dataset in range(7):
        level = rng.normal(0.3, 0.1, 40)
        rows = [
            (f"run-{run}", f"q{query}", one, other)
            for run in range(6)
            for query, (one, other) in enumerate(zip(level + 0.05 * run, level - 0.05 * run, strict=True))
        ]
        frame = pl.DataFrame(rows, schema=["run", "query_id", "nDCG@10", "RR"], orient="row")
        found[f"dataset-number-{dataset}"] = sy.compare_scores(frame)
    path = tmp_path_factory.mktemp("seven") / "across.html"
    sy.across(found).to_html(path)
    return path


@pytest.mark.parametrize("view", [(1366, "light"), (1366, "dark"), (390, "light"), (390, "dark")])
def test_axe_finds_nothing(seven, opened, view):
    width, scheme = view
    axe = import_peer("axe_playwright_python.sync_playwright")
    with opened(seven, viewport={"width": width, "height": 800}, color_scheme=scheme, bypass_csp=True) as tab:
        found = axe.Axe().run(tab).response["violations"]
        assert [(each["id"], each["nodes"][0]["html"]) for each in found] == []


@pytest.mark.parametrize(("media", "width"), [("screen", 1366), ("print", 1032)])
def test_seven_datasets_are_visible_on_a_screen_and_in_print(seven, opened, media, width):
    with opened(seven, viewport={"width": width, "height": 768}) as tab:
        tab.emulate_media(media=media)
        last = tab.locator("#datasets th", has_text="dataset-number-6").first.bounding_box()
        assert last["x"] + last["width"] <= width
        ends = "[...document.querySelectorAll('main *')].map(each => each.getBoundingClientRect().right)"
        assert max(tab.evaluate(ends)) <= width


def test_the_measure_can_be_switched_and_is_shaded_by_dataset(seven, opened):
    with opened(seven) as tab:
        assert tab.get_by_role("region", name="RR", exact=True).is_hidden()
        tab.get_by_label("Measure").select_option("RR")
        table = tab.get_by_role("region", name="RR", exact=True)
        assert tab.get_by_role("region", name="nDCG@10 by dataset").is_hidden()
        parts = "rows => rows.map(row => [row.cells[0].textContent, row.cells[2].style.getPropertyValue('--part')])"
        shaded = dict(table.locator("tbody tr").evaluate_all(parts))
        assert (shaded["run-0"], shaded["run-5"]) == ("1", "0")
        table.get_by_role("button", name="dataset-number-3").click()
        assert table.locator("tbody tr").first.inner_text().startswith("run-0")


def test_the_critical_difference_diagram_joins_runs_that_do_not_differ(seven, opened):
    with opened(seven) as tab:
        drawn = tab.get_by_role("img", name="Mean ranks of the runs with the critical difference")
        assert drawn.locator("text").all_text_contents()[-6:] == [f"run-{run} {6 - run}.00" for run in range(5, -1, -1)]
        # Nemenyi's critical difference of 6 runs on 7 datasets is 2.85: ranks 1 to 3, 2 to 4, ... are joined.
        assert drawn.locator("line[stroke-width='4']").count() == 4
