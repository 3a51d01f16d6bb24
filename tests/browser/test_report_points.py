"""The parts of the report page, at two widths, with 2, 8 and 20 runs, in light, dark and print."""

from __future__ import annotations

import csv
import io
import re
from contextlib import ExitStack, contextmanager
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from addresses import go_to

import steelyard as sy
from needs import import_peer
from steelyard.comparison.compare import compare_scores
from steelyard.comparison.next_steps import next_steps
from steelyard.report.page.page import page_html
from steelyard.report.page.subject import Subject, comparison_subject
from steelyard.report.tables import short_names

SIZES = (2, 8, 20)
WIDTHS = (1366, 390)
QUERIES = 60
ROWS = "#queries-table tbody tr"


def run_names(size):
    """Short names, and for 20 runs long ones that differ in their middles; the last of 8 and 20 is a control."""
    if size < 20:
        names = [f"run-{number}" for number in range(size)]
    else:
        names = [
            f"organisation/dense-retriever-{number:02}-finetuned-on-synthetic-queries-v2.{number % 3}"
            for number in range(size)
        ]
    return [*names[:-1], "random"] if size > 2 else names


def made(size):
    """Runs of decreasing quality over one small dataset; the first ones are close to each other."""
    rng = np.random.default_rng(size)
    corpus = {f"d{n}": {"title": f"Title {n}", "text": f"word{n} text of document {n}"} for n in range(300)}
    kinds = ("paraphrase", "exact", "many")
    queries = {f"q{n}": {"text": f"word{n} question", "type": kinds[n % 3]} for n in range(QUERIES)}
    relevant = {f"q{n}": [f"d{n + 60 * part}" for part in range(3 + 12 * (n % 3 == 2))] for n in range(QUERIES)}
    qrels = {
        query: {**dict.fromkeys(docs, 1), f"d{(number + 31) % 300}": -1, f"d{(number + 17) % 300}": 0}
        for number, (query, docs) in enumerate(relevant.items())
    }
    qrels["q59"] = {"d1": 0}
    runs = {}
    for number, name in enumerate(run_names(size)):
        lists = {}
        noise = 3.0 + 0.25 * number
        for query, docs in relevant.items():
            scores = {f"d{n}": float(rng.normal(0, 1)) for n in rng.integers(0, 300, 40).tolist()}
            if name != "random":
                missed = rng.random() < 0.08
                scores |= {doc: float(rng.normal(2.0 - 8 * missed, noise / 3)) for doc in docs}
            lists[query] = scores
        seconds = dict.fromkeys(queries, 0.001 * (size - number))
        runs[name] = sy.Run(lists, name=name, seconds=seconds)
    composite = {"nDCG@10": 0.6, "RR@10": 0.4}
    measures = ["nDCG@10", "RR@10", "R@20", "P@5", "AP", "Hit@1", "R@100", "F@10", "ERR@10"]
    baseline = list(runs)[min(3, size - 1)]
    compared = sy.compare(qrels, runs, measures, baseline=baseline, composite=composite)
    return compared, sy.Dataset.of(corpus, queries, qrels, name="synthetic")


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The comparison and the page for each number of runs, made once."""
    import_peer("altair")
    known = {}

    def page_of(size):
        if size not in known:
            compared, dataset = made(size)
            path = tmp_path_factory.mktemp("points") / f"{size}.html"
            compared.to_html(path, dataset)
            known[size] = compared, path
        return known[size]

    return page_of


@pytest.fixture(scope="module")
def shown(chromium, pages):
    """A tab with the page of so many runs at a width, opened once and reset; no error may occur in it."""
    tabs, errors = {}, []
    with ExitStack() as stack:

        def tab_of(size, width, scheme="light"):
            if (size, width, scheme) not in tabs:
                context = chromium.new_context(
                    offline=True, color_scheme=scheme, reduced_motion="reduce", viewport={"width": width, "height": 900}
                )
                stack.callback(context.close)
                tab = context.new_page()
                tab.set_default_timeout(10_000)
                tab.on("pageerror", lambda error: errors.append(str(error)))
                tab.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
                tab.goto(pages(size)[1].as_uri())
                tab.wait_for_selector("html[data-ready=yes]", state="attached")
                tabs[size, width, scheme] = tab
            tab = tabs[size, width, scheme]
            go_to(tab, "#")
            tab.evaluate("() => scrollTo(0, 0)")
            return pages(size)[0], tab

        yield tab_of
        assert errors == []


@contextmanager
def state(tab, address):
    """The page in the state of an address."""
    go_to(tab, address)
    yield
    go_to(tab, "#")


def lines_of(locator):
    """The number of lines of text of an element."""
    return locator.evaluate(
        """element => {
          const range = document.createRange();
          range.selectNodeContents(element);
          const boxes = [...range.getClientRects()].filter((box) => box.width > 1);
          return new Set(boxes.map((box) => Math.round(box.bottom / 6))).size;
        }"""
    )


def saved(tab, button):
    """The text of a file that a button saves."""
    with tab.expect_download() as download:
        button.click()
    return download.value.suggested_filename, download.value.path().read_bytes()


every_view = pytest.mark.parametrize("width", WIDTHS)
every_size = pytest.mark.parametrize("size", SIZES)


@every_view
@every_size
def test_the_page_fits_the_width(shown, size, width):
    _, tab = shown(size, width)
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for table in ("#board", "#failure-table", "#queries-table"):
        assert tab.locator(table).evaluate("table => table.parentElement.getBoundingClientRect().right <= innerWidth")


@every_view
@every_size
def test_the_verdict_is_short_and_followed_by_what_next(shown, size, width):
    compared, tab = shown(size, width)
    lines = lines_of(tab.locator("h1")) + (lines_of(tab.locator(".more")) if tab.locator(".more").count() else 0)
    assert lines <= (2 if width > 1000 else 6)
    steps = tab.locator("#next li")
    assert 2 <= steps.count() <= 4
    expected = next_steps(compared, comparison_subject(compared).seconds, {}, ("random",))
    codes = {step.note.code for step in expected}
    if "step-faster" in codes:
        assert "times faster" in tab.locator("#next").inner_text()
    text = tab.locator("#next").inner_text()
    assert re.search(r"Look at the \d+ queries with \w+ \w+, where \S+ loses most to \S+", text)
    top, above = (tab.locator(place).bounding_box()["y"] for place in ("#next", "h1"))
    assert above < top < tab.locator("#leaderboard").bounding_box()["y"]


def test_a_step_opens_its_queries(shown):
    _, tab = shown(8, 1366)
    step = tab.locator("#next li", has_text="loses most to")
    (count,) = re.findall(r"Look at the (\d+) queries", step.inner_text())
    step.get_by_role("button").click()
    assert "type:" in tab.locator("#slice").input_value()
    assert tab.locator("[data-filter=all] .count").inner_text() == count


def test_a_step_saves_the_documents_to_judge(shown, tmp_path):
    _, tab = shown(8, 1366)
    step = tab.locator("#next li", has_text="unjudged documents")
    name, content = saved(tab, step.get_by_role("button"))
    (tmp_path / name).write_bytes(content)
    pool = sy.Pool.read(tmp_path / name)
    assert len(pool) == 40
    assert re.search(r"Judge 40 of the [\d,]+ unjudged documents", step.inner_text())


@every_view
@every_size
def test_warnings_are_one_line_each_and_not_folded(shown, size, width):
    _, tab = shown(size, width)
    warnings = tab.locator("#warnings summary")
    assert warnings.count() >= 1
    for each in warnings.all():
        assert each.is_visible()
        assert lines_of(each) == 1
    folded = tab.locator("details.panel ul.note li").all_text_contents()
    assert not set(warnings.locator("bdi").all_text_contents()) & set(folded)
    above, below = (tab.locator("#warnings").bounding_box()["y"], tab.locator("#leaderboard").bounding_box()["y"])
    assert tab.locator("#next").bounding_box()["y"] < above < below


@every_view
@every_size
def test_the_leaderboard_keeps_its_run_column_and_shows_bands_and_rank_intervals(shown, size, width):
    compared, tab = shown(size, width)
    board = tab.locator("#board")
    frame = board.locator("xpath=..")
    assert frame.evaluate("frame => frame.scrollWidth <= frame.clientWidth + 1"), "the columns that fit are shown"
    tied = list(compared.verdict.tied)
    bands = board.locator("tbody tr.tied th").evaluate_all("heads => heads.map((head) => head.dataset.value)")
    assert bands == (tied if len(tied) > 1 else [])
    row = compared.leaderboard_rows[0]
    ranks = str(row.rank_low) if row.rank_low == row.rank_high else f"{row.rank_low} to {row.rank_high}"
    assert (
        board.locator("tbody tr:first-child td.rank").get_attribute("title")
        == f"ranks consistent with the tests: {ranks}"
    )
    assert tab.locator("#board-details .ranks").first.text_content() == ranks
    tab.locator("#columns summary").click()
    boxes = tab.locator("#columns input")
    boxes.evaluate_all("all => all.forEach((each) => each.checked || each.click())")
    assert board.locator("thead th:visible").count() == 2 + boxes.count()
    if frame.evaluate("frame => frame.scrollWidth > frame.clientWidth"):
        frame.evaluate("frame => { frame.scrollLeft = 10000; }")
        head = board.locator("tbody tr:first-child th").bounding_box()
        assert head["x"] >= frame.bounding_box()["x"] - 1, "the names stay in view"
        frame.evaluate("frame => { frame.scrollLeft = 0; }")
    boxes.evaluate_all("all => all.slice(1).forEach((each) => each.click())")
    assert board.locator("thead th:visible").count() == 3
    assert "columns=" in tab.url
    tab.locator("#columns summary").click()


def test_a_control_run_is_never_the_best_and_in_no_chart(shown):
    compared, tab = shown(8, 1366)
    assert "random" in compared.runs
    assert tab.locator("#board tr.control .crown").count() == 0
    assert tab.locator("#board .crown").count() >= 10
    assert "random (control)" in tab.locator("#charts").inner_text()
    data = tab.evaluate("JSON.parse(document.querySelector('#chart-differences script').textContent)")
    assert "random" not in {row["run"] for row in data["spec"]["datasets"]["rows"]}


@every_view
@every_size
def test_every_count_of_a_failure_opens_so_many_queries(shown, size, width):
    _, tab = shown(size, width)
    cells = tab.locator("#failure-table button")
    assert cells.count() >= 4
    for number in (0, cells.count() - 1):
        cell = cells.nth(number)
        count, kind, run = (int(cell.inner_text()), cell.get_attribute("data-kind"), cell.get_attribute("data-run"))
        cell.click()
        assert tab.locator("#run").input_value() == run
        assert tab.locator(f"[data-filter={kind}]").get_attribute("aria-pressed") == "true"
        assert tab.locator("#queries-said").inner_text().endswith(f"{count} {'query' if count == 1 else 'queries'}")
    heads = tab.locator("#failure-table tbody th").all_text_contents()
    assert heads == tab.locator("#board tbody th .name").all_text_contents(), "the order of the leaderboard"


def unfold(tab, opened=True):
    """Open the folds with charts, or close them."""
    tab.locator("details:has(figure.chart)").evaluate_all(
        "(folds, opened) => folds.forEach(fold => { fold.open = opened; })", opened
    )


def drawn_with_numbers(tab, section, name, rows):
    """The chart is in its section, within its frame, and has one mark per row of its numbers."""
    figure = tab.locator(f"#{section} #chart-{name}")
    figure.scroll_into_view_if_needed()
    figure.locator("svg[role=img]").wait_for()
    box, frame = figure.locator("svg").bounding_box(), figure.bounding_box()
    assert box["x"] + box["width"] <= frame["x"] + frame["width"] + 1
    assert figure.locator(".layer_0_marks :is(line, path), .mark-rect.marks path").count() == rows, name
    figure.locator(".numbers summary").click()
    figure.locator(".numbers tbody tr").first.wait_for()
    assert figure.locator(".numbers tbody tr").count() == rows, name
    figure.locator(".numbers summary").click()


@every_view
@every_size
def test_ranks_and_depth_are_drawn_for_every_run_with_their_numbers(shown, size, width):
    compared, tab = shown(size, width)
    unfold(tab)
    runs = len(set(compared.runs) - {"random"})
    drawn_with_numbers(tab, "leaderboard", "ranks", runs)
    drawn_with_numbers(tab, "failures", "funnel", runs * 4)
    unfold(tab, False)


@pytest.mark.parametrize("size", [2, 37])
def test_bounds_are_drawn_for_every_run_with_their_numbers(tmp_path, opened, size):
    qrels = {f"q{n}": {"a": 1, "b": 0, "c": 1, "d": 0} for n in range(5)}
    lists = (("a", "b", "c", "d"), ("c", "x", "b", "y"))
    runs = {f"run-{n}": dict.fromkeys(qrels, lists[n % 2]) for n in range(size)}
    sy.compare(qrels, runs, ["P@4"]).to_html(tmp_path / "page.html")
    with opened(tmp_path / "page.html") as tab:
        unfold(tab)
        drawn_with_numbers(tab, "leaderboard", "bounds", size)


@every_view
@every_size
def test_four_charts_are_shown_and_the_others_are_folded(shown, size, width):
    _, tab = shown(size, width)
    figures = tab.locator("#charts figure.chart:visible")
    names = [each.get_attribute("id") for each in figures.all()]
    assert names == ["chart-differences", "chart-cutoffs", "chart-trade", "chart-slices"]
    for figure in figures.all():
        figure.scroll_into_view_if_needed()
        figure.locator("svg[role=img]").wait_for()
        box, frame = figure.locator("svg").bounding_box(), figure.bounding_box()
        assert box["x"] + box["width"] <= frame["x"] + frame["width"] + 1
    opacity = tab.locator("#chart-slices .mark-text.role-mark text").evaluate_all(
        "texts => texts.map((text) => getComputedStyle(text).opacity)"
    )
    fits = width > 1000 or size == 2
    assert set(opacity) == {"1" if fits else "0"}, "text only where it fits"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_run_has_one_colour_in_every_chart_and_the_baseline_is_grey(shown, scheme):
    compared, tab = shown(8, 1366, scheme)
    colours = {}
    for chart in ("differences", "trade"):
        figure = tab.locator(f"#chart-{chart}")
        figure.scroll_into_view_if_needed()
        figure.locator("svg[role=img]").wait_for()
    data = tab.evaluate(
        "[...document.querySelectorAll('figure.chart script')].map((each) => JSON.parse(each.textContent))"
    )
    orders = {tuple(zip(chart["runs"], chart["colours"], strict=True)) for chart in data}
    assert len(orders) == 1
    colours = dict(orders.pop())
    assert list(colours) == [row.run for row in compared.leaderboard_rows if row.run != "random"]
    assert colours[compared.leaderboard_rows[0].run] == 0
    assert colours[compared.plan.baseline] == 1
    assert len(set(colours.values())) == len(colours)
    legend = tab.locator("#chart-trade .role-legend-symbol path").evaluate_all(
        "symbols => symbols.map((symbol) => symbol.getAttribute('stroke'))"
    )
    grey = legend[list(colours).index(compared.plan.baseline)]
    red, green, blue = (int(grey[place : place + 2], 16) for place in (1, 3, 5))
    assert max(red, green, blue) - min(red, green, blue) < 16


def test_labels_of_runs_of_nearly_the_same_value_and_time_do_not_overlap(chromium, tmp_path):
    import_peer("altair")
    means = {"bm25-l": 0.5794, "bm25-plus": 0.5954, "bm25-okapi": 0.5956, "dense": 0.6166, "swarm-rerank": 0.6187}
    milliseconds = dict(zip(means, (0.16, 0.18, 0.26, 0.39, 2.7), strict=True))
    rows = [
        {"run": run, "query_id": f"q{number}", "RR": mean + 0.1 * (-1) ** number}
        for run, mean in means.items()
        for number in range(10)
    ]
    costs = [{"run": run, "p50_seconds": time / 1000} for run, time in milliseconds.items()]
    path = tmp_path / "page.html"
    path.write_text(page_html(Subject(compare_scores(pl.DataFrame(rows)), costs=costs)), encoding="utf-8")
    tab = chromium.new_page(viewport={"width": 1280, "height": 900})
    tab.goto(path.as_uri())
    tab.wait_for_selector("html[data-ready=yes]", state="attached")
    tab.locator("#chart-trade").scroll_into_view_if_needed()
    tab.locator("#chart-trade svg[role=img]").wait_for()
    texts = tab.locator("#chart-trade .mark-text.role-mark text").all()
    labels = {text.text_content(): text.bounding_box() for text in texts if text.text_content()}
    tab.close()
    assert set(labels) == set(means)
    for one, other in combinations(labels.values(), 2):
        beside = one["x"] + one["width"] <= other["x"] or other["x"] + other["width"] <= one["x"]
        assert beside or abs(one["y"] - other["y"]) >= min(one["height"], other["height"])


@pytest.mark.parametrize(("kind", "width"), [("svg", 1366), ("csv", 390)])
def test_every_chart_is_saved(shown, kind, width):
    _, tab = shown(2, width)
    unfold(tab)
    for figure in tab.locator("figure.chart").all():
        figure.scroll_into_view_if_needed()
        figure.locator("svg[role=img]").wait_for()
        chart = figure.get_attribute("id").removeprefix("chart-")
        name, content = saved(tab, figure.locator(f"[data-save={kind}]"))
        assert name == f"{chart}.{kind}"
        if kind == "svg":
            assert content.startswith(b"<svg")
        else:
            rows = list(csv.DictReader(io.StringIO(content.decode())))
            assert {row["run"] for row in rows} <= {"run-0", "run-1"}
            assert rows
    unfold(tab, False)
    name, png = saved(tab, tab.locator("#chart-differences [data-save=png]"))
    assert (name, png[:4]) == ("differences.png", b"\x89PNG")


@every_view
@every_size
def test_filters_have_counts_for_the_selected_run_and_empty_ones_are_disabled(shown, size, width):
    compared, tab = shown(size, width)
    for run in (compared.runs[0], compared.runs[-1]):
        tab.locator("#run").select_option(run)
        buttons = tab.locator("#filters button").evaluate_all(
            "all => all.map((each) => "
            "[each.dataset.filter, Number(each.querySelector('.count').textContent), each.disabled])"
        )
        counts = {name: count for name, count, _ in buttons}
        assert all(disabled == (count == 0) for _, count, disabled in buttons)
        assert counts["all"] == QUERIES
        assert counts["nothing"] == 1
        for name in ("missed", "partly", "lost"):
            if counts[name]:
                tab.locator(f"#filters [data-filter={name}]").click()
                assert f"{counts[name]} quer" in tab.locator("#queries-said").inner_text()
        tab.locator("#filters [data-filter=all]").click()


def test_the_outcome_counts_the_documents_found(shown):
    compared, tab = shown(8, 1366)
    run = compared.leaderboard_rows[0].run
    tab.locator("#run").select_option(run)
    tab.locator("#filters [data-filter=partly]").click()
    outcome = tab.locator(f"{ROWS}:first-child td.failures .partly").inner_text()
    query = tab.locator(f"{ROWS}:first-child .id").inner_text()
    judged = compared.source.qrels.frame.filter(query_id=query)
    relevant = set(judged.filter(judged["grade"] > 0)["doc_id"])
    ranked = compared.source.run(run).frame.filter(query_id=query).sort("rank")["doc_id"].to_list()
    assert outcome == f"found {len(relevant & set(ranked[:10]))} of {len(relevant)} in the top 10"


def test_the_filtered_queries_are_saved_as_csv(shown):
    compared, tab = shown(8, 1366)
    run = compared.leaderboard_rows[0].run
    tab.locator("#run").select_option(run)
    tab.locator("#filters [data-filter=lost]").click()
    count = int(tab.locator("#filters [data-filter=lost] .count").inner_text())
    name, content = saved(tab, tab.locator("#queries-csv"))
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    assert name == "queries.csv"
    assert len(rows) == count
    base = compared.plan.baseline
    assert all(float(row[f"composite {run}"]) < float(row[f"composite {base}"]) for row in rows)


@every_view
@every_size
def test_missed_documents_are_above_the_lists(shown, size, width):
    _, tab = shown(size, width)
    with state(tab, "#query=q2"):
        missed, stage = (tab.locator(f"dialog {part}").first.bounding_box() for part in (".misses", ".stage"))
        assert missed["y"] < stage["y"]
        assert tab.locator("dialog").evaluate("dialog => dialog.scrollWidth <= innerWidth")


def test_grades_below_the_relevant_one_are_labelled_with_their_grade(opened, tmp_path):
    judged = {"full": 3, "half": 1, "none": 0}
    lists = {"a": ["full", "half", "none", "new"], "b": ["half", "full"]}
    runs = {name: sy.Run(dict.fromkeys(("q1", "q2"), docs)) for name, docs in lists.items()}
    compared = sy.compare({"q1": judged, "q2": judged}, runs, ["nDCG@10", "RR"], rel=2)
    compared.to_html(tmp_path / "page.html")
    with opened(tmp_path / "page.html", "#query=q1&lists=0") as tab:
        labels = tab.locator("dialog .label").all_inner_texts()
        assert labels == ["◆ relevant 3", "◐ partly relevant 1", "○ not relevant", "? unjudged"]
        assert "measures that read grades count it" in tab.locator("dialog .label.partly").get_attribute("title")
        every = "Every relevant document (grade 2 or higher) is in every list shown."
        assert tab.locator("#query-body .note").all_inner_texts() == [every]


@every_view
@pytest.mark.parametrize("size", [8, 20])
def test_a_cell_of_the_matrix_shows_one_answer_for_its_pair(shown, size, width):
    compared, tab = shown(size, width)
    order = [row.run for row in compared.leaderboard_rows]
    first, other = order[0], order[4]
    pair = next(each for each in compared.every_pair if {each.run, each.baseline} == {first, other})
    cell = tab.locator("#matrix tbody tr").nth(0).locator("td").nth(4).locator("button")
    cell.click()
    text = tab.locator("#pair").inner_text()
    assert pair.verdict in text
    low, high = map(float, re.search(r"([-+][\d.]+) to ([-+][\d.]+)", text).groups())
    assert (low > 0 or high < 0) == (pair.p_adjusted < 0.05)
    assert ("*" in cell.inner_text()) == (pair.p_adjusted < 0.05)
    letters = {row.run: set(row.group) for row in compared.leaderboard_rows}
    assert bool(letters[first] & letters[other]) == (not pair.p_adjusted < 0.05)
    tab.locator("#pair button").click()
    assert {tab.locator("#run").input_value(), tab.locator("#against").input_value()} == {first, other}


@every_size
def test_the_number_of_queries_needed_names_its_pair(shown, size):
    compared, tab = shown(size, 1366)
    pair = compared.leading_pair
    needed = tab.locator(".lead dt", has_text="Queries needed")
    assert needed.count() == (pair.verdict == "not significant" and pair.needed is not None)
    if needed.count():
        short = short_names(compared.runs)
        assert needed.inner_text() == f"Queries needed for {short[pair.run]} vs {short[pair.baseline]}"


@every_view
@every_size
def test_other_weights_are_a_marked_what_if_state(shown, size, width):
    _, tab = shown(size, width)
    headline, title = tab.locator("h1").inner_text(), tab.title()
    assert not tab.locator("#what-if").is_visible()
    tab.locator("#sliders input").nth(0).evaluate(
        "input => { input.value = '0'; input.dispatchEvent(new Event('input')); }"
    )
    assert tab.locator("#what-if").is_visible()
    assert tab.locator("h1").inner_text().startswith("What if")
    assert tab.locator("h1").inner_text() != headline
    assert tab.title().startswith("What if: ")
    assert not tab.locator("#next").is_visible()
    assert not tab.locator("#matrix").is_visible()
    tab.locator("#what-if-reset").click()
    assert tab.locator("h1").inner_text() == headline
    assert tab.title() == title
    assert tab.locator("#next").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@every_size
def test_print_is_light_with_charts_two_by_two_and_no_queries(shown, size, scheme):
    _, tab = shown(size, 1366, scheme)
    tab.emulate_media(media="print", color_scheme=scheme)
    tab.wait_for_function(
        "() => [...document.querySelectorAll('figure.chart')].every((each) => each.querySelector('svg[role=img]'))"
    )
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    ink = tab.evaluate("getComputedStyle(document.querySelector('h1')).color")
    assert max(map(int, re.findall(r"\d+", ink)[:3])) < 80
    assert not tab.locator("#queries").is_visible()
    boxes = [figure.bounding_box() for figure in tab.locator("#charts figure.chart").all()[:4]]
    assert boxes[0]["y"] == boxes[1]["y"]
    assert boxes[2]["y"] == boxes[3]["y"]
    assert boxes[0]["x"] == boxes[2]["x"] < boxes[1]["x"]
    tab.wait_for_function(
        "() => [...document.querySelectorAll('#chart-cutoffs .role-axis-label text')]"
        ".every((each) => each.getAttribute('fill') === '#1c2524')"
    )
    tab.emulate_media(media="screen", color_scheme=scheme)
    tab.wait_for_function("() => !document.getElementById('more-charts').open")


@every_view
def test_twenty_runs_with_long_names(shown, width):
    compared, tab = shown(20, width)
    headline = tab.locator("h1").inner_text()
    assert "…" in headline
    assert len(headline) < 200
    assert re.search(r"Not significantly below the leader: .*, \d+ more", tab.locator(".more").inner_text())
    cell = tab.locator("#board tbody th .name").first
    assert cell.text_content() == compared.leaderboard_rows[0].run
    names = tab.locator("#board tbody th .start").all_text_contents()
    assert len(set(names)) == len(names) == 19, "what the names share is hidden"
    start, end = (cell.locator(f".{part}") for part in ("start", "end"))
    assert start.evaluate("part => part.scrollWidth > part.clientWidth"), "the middle is cut"
    assert end.evaluate("part => part.scrollWidth <= part.clientWidth"), "the end is shown"
    assert tab.locator("#queries-table thead th[data-sort^='run:']").count() == 8
    picker = tab.locator("#queries .run-picker")
    picker.locator("summary").click()
    picker.locator("input").nth(12).check()
    assert tab.locator("#queries-table thead th[data-sort^='run:']").count() == 9
    picker.locator("input").nth(0).uncheck()
    assert tab.locator("#queries-table thead th[data-sort^='run:']").count() == 8
    figure = tab.locator("#chart-cutoffs")
    figure.scroll_into_view_if_needed()
    figure.locator("svg[role=img]").wait_for()
    tab.wait_for_function("() => document.querySelectorAll('#chart-cutoffs .role-legend-label text').length === 8")
    picker.locator("summary").click()


@pytest.mark.parametrize(("size", "width", "scheme"), [(8, 1366, "dark"), (8, 390, "light")])
def test_no_serious_finding(pages, opened, size, width, scheme):
    axe = import_peer("axe_playwright_python.sync_playwright")
    viewport = {"width": width, "height": 900}
    with opened(
        pages(size)[1], viewport=viewport, color_scheme=scheme, bypass_csp=True, reduced_motion="reduce"
    ) as tab:
        tab.locator("#matrix button").first.click()
        found = axe.Axe().run(tab).response["violations"]
        assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []
