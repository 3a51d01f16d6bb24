"""The page of an agreement: shaded confusion matrices, tables in any order, and nothing found by axe-core."""

from __future__ import annotations

import random

import pytest

import steelyard as sy
from needs import import_peer


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    rng = random.Random(0)
    docs = [f"d{number}" for number in range(12)]
    human = {f"q{number}": {doc: rng.choice([0, 0, 1, 2]) for doc in docs} for number in range(20)}
    model = {query: {doc: min(2, each + rng.choice([0, 1])) for doc, each in human[query].items()} for query in human}
    runs = {f"run {number}": {query: rng.sample(docs, 10) for query in human} for number in range(9)}
    path = tmp_path_factory.mktemp("agreement") / "agreement.html"
    sy.agreement({"human": human, "model": model}, runs, ["nDCG@10", "P@5"]).to_html(path)
    return path


@pytest.mark.parametrize("view", [(1366, "light"), (1366, "dark"), (390, "light"), (390, "dark")])
def test_axe_finds_nothing_and_only_tables_are_scrolled(page, opened, view):
    width, scheme = view
    axe = import_peer("axe_playwright_python.sync_playwright")
    options = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme, "bypass_csp": True}
    with opened(page, **options) as tab:
        found = axe.Axe().run(tab).response["violations"]
        assert [(each["id"], each["nodes"][0]["html"]) for each in found] == []
        assert tab.evaluate("document.documentElement.scrollWidth") <= width


def test_the_matrix_is_shaded_by_the_share_of_the_row(page, opened):
    with opened(page) as tab:
        rows = tab.locator("table[data-shade=row] tbody tr")
        for number in range(rows.count()):
            cells = rows.nth(number).locator("td.number")
            counts = [int(text) for text in cells.all_inner_texts()]
            parts = cells.evaluate_all("cells => cells.map(cell => Number(cell.style.getPropertyValue('--part')))")
            assert parts == pytest.approx([count / sum(counts) for count in counts])


def test_a_click_on_a_column_sorts_and_the_theme_can_be_chosen(page, opened):
    with opened(page) as tab:
        table = tab.get_by_role("region", name="Pairs of runs with a significant difference")
        first = table.locator("tbody tr td:nth-child(3)")
        before = first.all_inner_texts()
        table.get_by_role("button", name="measure").click()
        assert first.all_inner_texts() == sorted(before, key=str.lower)
        table.get_by_role("button", name="measure").click()
        assert first.all_inner_texts() == sorted(before, key=str.lower, reverse=True)
        assert table.locator("th[aria-sort=descending]").inner_text().startswith("measure")
        tab.get_by_role("button", name="Dark theme").click()
        assert tab.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"
        assert tab.get_by_role("navigation").get_by_role("link").all_inner_texts() == ["Charts", "Tables", "Notes"]
