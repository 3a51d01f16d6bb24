"""The page of a real bench, used as a reader would use it."""

from __future__ import annotations

import re

from addresses import go_to, wait_until_drawn

import steelyard as sy
from steelyard.report.page.view import LINE
from steelyard.report.summary import verdict_lines

ROWS = "#queries-table tbody tr"


def order(tab, table="#board"):
    """The runs of the leaderboard from top to bottom."""
    return tab.locator(f"{table} tbody th bdi").all_inner_texts()


def unfold(tab):
    """Open the folds with charts."""
    tab.locator("details:has(figure.chart)").evaluate_all("folds => folds.forEach(fold => { fold.open = true; })")


def asked(tab):
    """The ids of the queries shown."""
    return tab.locator(f"{ROWS} .id").all_inner_texts()


def column(tab, place):
    """The numbers in a column of the table of queries."""
    cells = tab.locator(f"{ROWS} td.value:nth-of-type({place})").all_inner_texts()
    return [float(cell) for cell in cells]


def test_the_verdict_comes_first(page, result, opened):
    with opened(page) as tab:
        assert tab.locator("h1").inner_text() == verdict_lines(result.comparison.verdict, LINE)[0]
        assert tab.title() == "demo · Steelyard"
        facts = tab.locator(".lead").inner_text()
        assert "95% interval" in facts
        assert "Won, tied, lost" in facts


def test_the_leaderboard_has_the_numbers_of_the_comparison(page, result, opened):
    with opened(page) as tab:
        rows = result.comparison.leaderboard_rows
        assert order(tab) == [row.run for row in rows]
        shown = tab.locator("#board tbody tr:first-child .number").all_inner_texts()
        assert shown[1] == f"{rows[0].means['nDCG@10']:.4f}"
        assert tab.locator("#board tbody .cell.best .crown").count() >= 5
        groups = [row.group for row in rows]
        assert tab.locator("#board .group").all_inner_texts() == groups


def test_sorting_the_leaderboard(page, opened):
    with opened(page) as tab:
        head = tab.locator("#board th[data-sort='nDCG@10']")
        head.locator("button").click()
        assert head.get_attribute("aria-sort") == "descending"
        assert order(tab)[-1] == "random"
        head.locator("button").click()
        assert head.get_attribute("aria-sort") == "ascending"
        assert order(tab)[0] == "random"
        tab.locator("#board th[data-sort='Confusion@3'] button").click()
        assert order(tab)[0] == "random", "where lower is better, the first click sorts the lowest value first"
        tab.locator("#board th[data-sort=run] button").click()
        assert order(tab) == ["bm25-l", "bm25-okapi", "random"]


def test_weights_change_the_ranking_and_the_leader_is_reported(page, opened):
    with opened(page) as tab:
        before = order(tab)
        assert before[0] == "bm25-okapi"
        sliders = tab.locator("#sliders input")
        for number in range(sliders.count()):
            weight = "1" if number == 6 else "0"
            sliders.nth(number).evaluate("(input, value) => { input.value = value; }", weight)
        sliders.nth(6).dispatch_event("input")
        assert order(tab)[0] == "random", "with confusion alone, a run without hits is best"
        status = tab.locator("#weights-said").inner_text()
        assert "random now leads bm25-okapi by " in status
        assert "(95% interval ± " in status
        assert tab.locator("#board tbody tr:first-child .place").inner_text() == "1"
        tab.locator("#weights-reset").click()
        assert order(tab) == before
        assert tab.url.endswith("#")


def test_a_slider_moves_by_keyboard(page, opened):
    with opened(page) as tab:
        slider = tab.get_by_label("mrr")
        slider.focus()
        tab.keyboard.press("ArrowRight")
        assert tab.locator("#sliders output").nth(3).inner_text() == "0.06"
        assert "weights=" in tab.url


def test_the_composite_with_the_given_weights_is_the_measured_one(page, result, opened):
    with opened(page) as tab:
        tab.locator("#sliders input").nth(0).evaluate("input => input.dispatchEvent(new Event('input'))")
        values = tab.locator("td[data-composite]").evaluate_all(
            "cells => cells.map(cell => Number(cell.dataset.value))"
        )
        means = [row.means["composite"] for row in result.comparison.leaderboard_rows]
        assert all(abs(a - b) < 1e-12 for a, b in zip(values, means, strict=True))


def test_searching_and_filtering(page, result, opened):
    with opened(page) as tab:
        assert tab.locator("#queries-said").inner_text() == "1 to 25 of 115 queries"
        tab.locator("#find").fill("penalty fare")
        tab.wait_for_function("() => !document.getElementById('queries-said').textContent.includes('115')")
        assert all("penalty fare" in text.lower() for text in tab.locator(f"{ROWS} .asked").all_inner_texts())
        tab.locator("#find").fill("no such words anywhere")
        tab.get_by_text("No query matches").wait_for()
        tab.locator("#find").fill("")
        tab.get_by_text("of 115 queries").wait_for()
        tab.locator("#slice").select_option("type:unanswerable")
        assert tab.locator(ROWS).count() == 8
        assert tab.locator(f"{ROWS} .tag.nothing").count() == 8
        assert result.comparison.coverage["random"].no_relevant == 8


def test_filters_select_the_right_queries(page, opened):
    with opened(page) as tab:
        tab.locator("[data-filter=lost]").click()
        signs = tab.locator(f"{ROWS} .difference .shape").all_inner_texts()
        assert signs
        assert set(signs) == {"▼"}
        tab.locator("[data-filter=one]").click()
        rows = tab.locator(ROWS)
        assert rows.count() > 0
        assert tab.locator(f"{ROWS} td.best").count() == rows.count()
        tab.locator("[data-filter=unjudged]").click()
        assert tab.locator(ROWS).count() > 0
        assert tab.locator("[data-filter=unjudged]").get_attribute("aria-pressed") == "true"
        tab.locator("[data-filter=all]").click()
        tab.locator("#run").select_option("random")
        tab.locator("[data-filter=missed]").click()
        assert tab.locator(ROWS).count() > 0
        for name in ("bm25-okapi", "bm25-l", "random"):
            tab.locator("#run").select_option(name)
            words = tab.locator(f"{ROWS} td.failures").all_inner_texts()
            assert all("missed" in each or "empty list" in each for each in words)


def test_sorting_queries_by_a_run_and_by_difference(page, opened):
    with opened(page) as tab:
        tab.locator("#measure").select_option("nDCG@10")
        tab.locator("th[data-sort='run:2'] button").click()
        found = tab.locator(f"{ROWS} td.value:last-child").all_inner_texts()
        values = [float(each) for each in found]
        assert values == sorted(values, reverse=True)
        tab.locator("th[data-sort='run:2'] button").click()
        found = tab.locator(f"{ROWS} td.value:last-child").all_inner_texts()
        assert [float(each) for each in found] == sorted(float(each) for each in found)
        tab.locator("th[data-sort='difference'] button").click()
        texts = tab.locator(f"{ROWS} .difference span:first-child").all_inner_texts()
        differences = [float(each.strip().replace("−", "-").replace("±", "")) for each in texts]
        assert differences == sorted(differences, reverse=True)
        assert tab.locator("th[data-sort='difference'] button").evaluate("e => e === document.activeElement")


def test_turning_pages(page, opened):
    with opened(page) as tab:
        first = asked(tab)
        tab.locator("#page-on").click()
        assert tab.locator("#queries-said").inner_text() == "26 to 50 of 115 queries"
        assert not set(first) & set(asked(tab))
        tab.locator("#page-back").click()
        assert asked(tab) == first
        assert tab.locator("#page-back").is_disabled()


def test_an_opened_query_shows_the_lists_side_by_side(page, result, opened):
    with opened(page) as tab:
        tab.locator("#find").fill("fact-03")
        tab.wait_for_function("() => document.querySelectorAll('#queries-table tbody tr').length === 1")
        tab.locator("button[data-query]").click()
        dialog = tab.locator("dialog[open]")
        assert dialog.locator("h2").inner_text() == result.dataset.queries["fact-03"]
        assert dialog.locator(".list").count() == 3
        rows = result.runs["bm25-okapi"].frame.filter(query_id="fact-03")
        first = dialog.locator(".list").first
        assert first.locator("h3").inner_text() == "bm25-okapi"
        top = first.locator("li").first
        assert result.dataset.corpus.titles[rows["doc_id"][0]] == top.locator(".title").inner_text()
        assert top.locator("mark").count() > 0
        labels = dialog.locator(".label").all_inner_texts()
        assert any(re.fullmatch(r"◆ relevant \d.*", label) for label in labels)
        assert any(label == "? unjudged" for label in labels)
        assert dialog.locator("path.move").count() > 0
        assert "query=fact-03" in tab.url
        tab.keyboard.press("Escape")
        assert tab.locator("dialog[open]").count() == 0
        assert "query=" not in tab.url


def test_labels_and_failures_are_shown_as_text(page, opened):
    seen, failures = set(), set()
    with opened(page) as tab:
        for query in ("fact-03", "comp-01", "hop-01", "para-06", "none-01", "code-01"):
            go_to(tab, f"#query={query}")
            seen |= {label.split()[0] for label in tab.locator("dialog .label").all_inner_texts()}
            failures |= set(tab.locator("dialog .glance .tag").all_inner_texts())
    assert {"◆", "?", "✖", "◇"} <= seen
    assert {"missed", "unjudged at rank 1", "distractor above relevant"} <= failures
    assert any(re.fullmatch(r"found \d+ of \d+ in the top 10", each) for each in failures)
    assert any(each.startswith("ranked low (first relevant at") for each in failures)


def test_missed_relevant_documents_are_listed_with_their_ranks(page, result, opened):
    with opened(page, "#query=fact-03") as tab:
        table = tab.locator("dialog table.missed")
        assert table.count() == 1
        first = table.locator("tbody tr").first.inner_text()
        assert "at " in first or "not retrieved" in first
        ranks = result.runs["random"].frame.filter(query_id="fact-03")
        judged = result.dataset.qrels.frame.filter(query_id="fact-03")
        for row in table.locator("tbody tr").all():
            doc = row.locator(".id").inner_text().strip()
            assert judged.filter(doc_id=doc)["grade"].max() > 0
            place = ranks.filter(doc_id=doc)["rank"].to_list()
            head = tab.locator("dialog table.missed thead th").all_inner_texts()
            cell = row.locator("td").nth(head.index("random") - 1).inner_text()
            assert cell.endswith(f"at {place[0]}" if place else "not retrieved")


def test_choosing_lists_and_moving_between_queries_in_the_dialog(page, opened):
    with opened(page, "#query=fact-03") as tab:
        dialog = tab.locator("dialog[open]")
        dialog.get_by_label("show the list of random").uncheck()
        assert dialog.locator(".list").count() == 2
        assert "lists=" in tab.url
        title = dialog.locator("h2").inner_text()
        tab.keyboard.press("ArrowRight")
        assert dialog.locator("h2").inner_text() != title
        tab.locator("#query-back").click()
        assert dialog.locator("h2").inner_text() == title
        more = dialog.locator(".list li .quiet").first
        more.click()
        assert more.get_attribute("aria-expanded") == "true"
        tab.locator("#query-close").click()
        assert not dialog.is_visible()


def test_a_shared_link_shows_the_same_view(page, opened):
    with opened(page) as tab:
        tab.locator("#measure").select_option("R@20")
        tab.locator("#run").select_option("random")
        tab.locator("[data-filter=lost]").click()
        tab.locator("th[data-sort='run:1'] button").click()
        tab.locator("#sliders input").nth(2).evaluate(
            "input => { input.value = '0'; input.dispatchEvent(new Event('input')); }"
        )
        tab.locator("#page-on").click()
        tab.locator("button[data-query]").nth(2).click()
        view = (
            asked(tab),
            order(tab),
            tab.locator("dialog h2").inner_text(),
            tab.locator("#weights-said").inner_text(),
        )
        address = tab.url.partition("#")[2]
    with opened(page, f"#{address}") as tab:
        again = (
            asked(tab),
            order(tab),
            tab.locator("dialog h2").inner_text(),
            tab.locator("#weights-said").inner_text(),
        )
        assert again == view
        assert tab.locator("#measure").input_value() == "R@20"
        assert tab.locator("#run").input_value() == "random"


def test_the_back_button_closes_a_query(page, opened):
    with opened(page) as tab:
        tab.locator("button[data-query]").first.click()
        assert tab.locator("dialog[open]").count() == 1
        tab.go_back()
        tab.wait_for_selector("dialog[open]", state="detached")


def test_wrong_addresses_are_ignored(page, opened):
    wild = "#query=%3Cscript%3Ealert(1)%3C/script%3E&filter=nope&sort=run:99&page=-7"
    wild += "&weights=1,x&measure=%22%3E&lists=9.x&by=%22]&slice=a:b"
    with opened(page, wild) as tab:
        assert tab.locator("dialog[open]").count() == 0
        assert tab.locator(ROWS).count() == 25


def test_charts_are_drawn_when_seen_and_follow_the_measure(page, opened):
    names = ("means", "cutoffs", "distribution", "trade", "slices", "diversity", "p-values", "agreement")
    with opened(page) as tab:
        unfold(tab)
        for name in names:
            tab.locator(f"#chart-{name}").scroll_into_view_if_needed()
            tab.wait_for_selector(f"#chart-{name} svg[role=img]")
            assert tab.locator(f"#chart-{name} svg path").count() > 0
        assert tab.locator("#chart-means .shown").inner_text() == "composite"
        before = tab.locator("#chart-means svg").inner_html()
        tab.locator("#chart-measure").select_option("R@20")
        tab.wait_for_function("before => document.querySelector('#chart-means svg').innerHTML !== before", arg=before)
        assert tab.locator("#chart-cutoffs .shown").inner_text() == "R@20"
        tab.locator("#chart-column").select_option("complexity")
        tab.wait_for_function("() => document.querySelector('#chart-slices .drawing').textContent.includes('simple')")


def test_charts_keep_their_height(page, opened):
    with opened(page) as tab:
        unfold(tab)
        height = tab.evaluate("document.documentElement.scrollHeight")
        for figure in tab.locator("figure.chart").all():
            figure.scroll_into_view_if_needed()
            figure.locator("svg[role=img]").wait_for()
        assert abs(tab.evaluate("document.documentElement.scrollHeight") - height) <= 4


def test_dark_and_light(page, opened):
    paper = "getComputedStyle(document.body).backgroundColor"
    with opened(page, color_scheme="dark") as tab:
        dark = tab.evaluate(paper)
        tab.locator("#chart-differences").scroll_into_view_if_needed()
        tab.wait_for_selector("#chart-differences svg")
        drawn = tab.locator("#chart-differences svg").inner_html()
        tab.locator("#theme").click()
        light = tab.evaluate(paper)
        assert dark != light
        tab.wait_for_function(
            "before => document.querySelector('#chart-differences svg')?.innerHTML !== before", arg=drawn
        )
        tab.reload()
        tab.wait_for_selector("html[data-ready=yes]", state="attached")
        assert tab.evaluate(paper) == light, "the choice is kept"
    with opened(page, color_scheme="light") as tab:
        assert tab.evaluate(paper) == light


def test_nothing_overflows_at_phone_width(page, opened):
    wide = "document.documentElement.scrollWidth <= innerWidth"
    with opened(page, viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True) as tab:
        assert tab.evaluate(wide)
        for name in ("charts", "queries", "method"):
            tab.evaluate("name => document.getElementById(name).scrollIntoView()", name)
            if name == "charts":
                tab.locator("#charts svg[role=img]").first.wait_for()
            wait_until_drawn(tab)
            assert tab.evaluate(wide), name
        tab.locator("button[data-query]").first.tap()
        assert tab.locator("dialog[open] .list").count() == 2
        assert tab.evaluate("document.querySelector('dialog').scrollWidth <= innerWidth")


def test_everything_can_be_reached_by_keyboard(page, opened):
    with opened(page) as tab:
        tab.keyboard.press("Tab")
        assert tab.evaluate("document.activeElement.className") == "skip"
        tab.keyboard.press("Enter")
        assert tab.evaluate("document.activeElement.textContent") == "Leaderboard"
        tab.locator("button[data-query]").first.focus()
        tab.keyboard.press("Enter")
        assert tab.locator("dialog[open]").count() == 1
        inside = "document.querySelector('dialog').contains(document.activeElement)"
        inside += " || document.activeElement === document.body"
        for _ in range(12):
            tab.keyboard.press("Tab")
            assert tab.evaluate(inside)
        tab.keyboard.press("Escape")
        assert tab.evaluate("document.activeElement.dataset.query") is not None, "focus goes back to the row"


def test_printing_draws_every_chart(page, opened):
    with opened(page) as tab:
        tab.evaluate("dispatchEvent(new Event('beforeprint'))")
        tab.wait_for_function(
            "() => document.querySelectorAll('figure.chart svg[role=img]').length"
            " === document.querySelectorAll('figure.chart').length"
        )
        tab.emulate_media(media="print")
        assert not tab.locator(".filters").is_visible()
        assert tab.locator("#board").is_visible()


def test_how_it_was_measured(page, result, opened):
    with opened(page) as tab:
        method = tab.locator("#method").inner_text()
        for part in ("nDCG(gain=linear", "missing=zero", result.dataset.fingerprint, "Steelyard", "docid-desc"):
            assert part in method
        for run in result.runs.values():
            assert run.fingerprint in method
        assert f"steelyard report {result.folder} -o report.html" in method


def saved_pool(tab, button, path):
    with tab.expect_download() as download:
        button.click()
    download.value.save_as(path)
    return sy.Pool.read(path)


def test_the_unjudged_documents_are_saved_as_a_pool(page, result, opened, tmp_path):
    with opened(page) as tab:
        made = saved_pool(tab, tab.locator("#pool"), tmp_path / "pool.jsonl")
        expected = sy.pool({name: result.runs[name] for name in result.comparison.runs}, result.dataset.qrels, depth=10)
        assert made.frame.equals(expected.frame)
        assert made.settings == expected.settings
        said = tab.locator("#queries-said").inner_text()
        assert said.startswith(f"Pool of {len(expected):,} documents of ")
        tab.locator(f"{ROWS}:first-child button").click()
        button = tab.locator(".to-judge button")
        one = saved_pool(tab, button, tmp_path / "one.jsonl")
        (query,) = one.frame["query_id"].unique()
        assert one.frame["doc_id"].to_list() == [
            doc for q, doc in expected.frame.select("query_id", "doc_id").iter_rows() if q == query
        ]
        assert button.inner_text() == f"Download a pool of {len(one)} unjudged documents"
