"""A report of many runs: the matrix by keys, its details at the cell, ranges of ranks, sorted bars, and print."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import steelyard as sy
from needs import import_peer

RUNS = 37


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    import_peer("altair")
    rng = np.random.default_rng(0)
    level = rng.uniform(0.3, 0.6, 40)
    rows = [
        (f"run-{run:02}", f"q{query}", float(value))
        for run in range(RUNS)
        for query, value in enumerate(level + 0.01 * run + rng.normal(0, 0.03, 40))
    ]
    path = tmp_path_factory.mktemp("many") / "report.html"
    sy.compare_scores(pl.DataFrame(rows, schema=["run", "query_id", "nDCG@10"], orient="row")).to_html(path)
    return path


@pytest.fixture
def tab(page, opened):
    with opened(page, viewport={"width": 1366, "height": 768}) as tab:
        yield tab


def test_the_matrix_has_one_tab_stop_and_arrow_keys_step_over_the_diagonal(tab):
    assert tab.locator("#matrix button").count() == RUNS * (RUNS - 1)
    assert tab.locator("#matrix button[tabindex='0']").count() == 1
    tab.locator("#matrix button[tabindex='0']").focus()
    place = "() => [document.activeElement.closest('tr').rowIndex, document.activeElement.closest('td').cellIndex]"
    assert tab.evaluate(place) == [1, 2]
    for key, expected in {"ArrowRight": [1, 3], "ArrowDown": [2, 3], "ArrowLeft": [2, 1], "ArrowUp": [2, 1]}.items():
        tab.keyboard.press(key)
        assert tab.evaluate(place) == expected
    assert tab.locator("#matrix button[tabindex='0']").count() == 1


def test_the_matrix_fits_and_its_details_are_at_the_cell(tab):
    frame = tab.get_by_role("region", name="Differences between runs")
    assert frame.evaluate("frame => frame.scrollWidth <= frame.clientWidth")
    cell = tab.locator("#matrix tbody tr").nth(4).locator("td").nth(30).locator("button")
    cell.click()
    panel = tab.locator("#pair")
    assert panel.is_visible()
    assert 0 <= panel.bounding_box()["y"] - cell.bounding_box()["y"] - cell.bounding_box()["height"] < 10
    tab.keyboard.press("Escape")
    assert panel.is_hidden()
    assert cell.evaluate("cell => cell === document.activeElement")


def test_ranges_of_ranks_replace_letters_and_the_leaderboard_is_above_the_fold(tab):
    groups = tab.locator("#board .group").all_inner_texts()
    assert len(groups) == RUNS
    assert all(text.replace("–", "").isdigit() for text in groups)
    assert tab.locator("#board tbody tr").nth(2).bounding_box()["y"] < 700
    sizes = [
        float(tab.locator(each).first.evaluate("e => parseFloat(getComputedStyle(e).fontSize)"))
        for each in ("h1", "h2")
    ]
    assert sizes[0] > sizes[1]


def test_the_head_of_the_leaderboard_stays_in_view(tab):
    frame = tab.get_by_role("region", name="Leaderboard")
    frame.evaluate("frame => frame.scrollTo({ top: 900, behavior: 'instant' })")
    place = "frame => frame.querySelector('thead th').getBoundingClientRect().y - frame.getBoundingClientRect().y"
    assert frame.evaluate("frame => frame.scrollTop") > 0
    assert abs(frame.evaluate(place)) < 3


def test_a_bar_opens_its_query_and_bars_are_sorted(tab):
    tab.locator("#run").select_option("run-30")
    tab.locator("#against").select_option("run-10")
    bars = tab.locator("#bars .query-bar")
    assert bars.count() == 40
    titles = [text.rpartition(": ")[2].split(" vs ") for text in bars.locator("title").all_text_contents()]
    gains = [float(one) - float(other) for one, other in titles]
    assert gains == pytest.approx(sorted(gains, reverse=True), abs=0.0021)
    last = bars.last.get_attribute("data-query")
    bars.last.locator(".hit").click(position={"x": 3, "y": 5})
    assert tab.locator("dialog[open]").get_by_text(f"q{last}", exact=True).first.is_visible()


def test_nothing_is_cut_in_print(page, opened):
    with opened(page, viewport={"width": 1032, "height": 703}) as tab:
        tab.emulate_media(media="print")
        for part in ("#board", "#matrix"):
            box = tab.locator(part).bounding_box()
            assert box["x"] + box["width"] <= 1032, part
            assert box["height"] <= tab.locator(part).locator("xpath=..").bounding_box()["height"] + 1, part


def test_no_option_and_no_backtick_in_a_sentence_of_the_page(tmp_path):
    qrels = {f"q{number}": {"a": 1, "b": 0} for number in range(5)}
    runs = {"one": {query: ["a", "b"] for query in qrels}, "other": {query: ["x", "a"] for query in qrels}}
    with pytest.warns(sy.SteelyardWarning):
        sy.compare(qrels, runs, ["nDCG@10"]).to_html(tmp_path / "report.html")
    top = (
        (tmp_path / "report.html").read_text("utf-8").partition('<section id="verdict">')[2].partition("</section>")[0]
    )
    assert "`" not in top
    assert "(--all)" not in top
