"""The page of stages: the flow, the targets of a fate on a click, and nothing serious found by axe-core."""

from __future__ import annotations

import pytest

import steelyard as sy
from needs import import_peer


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("stages") / "stages.html"
    qrels = {f"q{number}": ["a", "b", "c"] for number in range(30)}
    lists = {"lexical": list("xa"), "dense": list("yb"), "fuse": list("xaby"), "rerank": list("ax")}
    runs = {name: dict.fromkeys(qrels, documents) for name, documents in lists.items()}
    sy.stages(qrels, runs, "R@2", inputs={"fuse": ["lexical", "dense"]}).to_html(path)
    return path


@pytest.mark.parametrize("view", [(1366, "light"), (1366, "dark"), (390, "dark")])
def test_the_flow_the_fates_and_axe(page, opened, view):
    width, scheme = view
    axe = import_peer("axe_playwright_python.sync_playwright")
    with opened(page) as tab:
        tab.set_viewport_size({"width": width, "height": 900})
        tab.emulate_media(color_scheme=scheme)
        drawn = tab.get_by_role("group", name="Relevant documents that are left after each stage")
        assert (
            drawn.locator("rect.gone title").first.text_content() == "lexical + dense: 60 relevant documents, 30 lost"
        )
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        lost = tab.locator("#targets details", has_text="lost in rerank (30)")
        assert not lost.locator("td").first.is_visible()
        drawn.get_by_role("link", name="rerank: 30 relevant documents, 30 lost").locator("path").click()
        assert lost.locator("td").first.is_visible()
        assert lost.locator("tbody tr").count() == 30
        assert tab.locator("#targets details[open]").count() == 1
        found = axe.Axe().run(tab).response["violations"]
        assert [each["id"] for each in found] == []


@pytest.fixture(scope="module")
def bench_page(tmp_path_factory):
    import_peer("altair")
    texts = {f"d{number:02}": f"word{number % 7} word{number % 5} of {number}" for number in range(40)}
    queries = {f"q{number}": f"word{number % 7} and word{number % 5}" for number in range(12)}
    queries["q1/?#&"] = queries["q0"]
    qrels = {query: [f"d{place:02}", f"d{place + 9:02}"] for place, query in enumerate(queries)}

    def agent(query):
        found = [f"d{(sum(map(ord, query)) + place * 3) % 40:02}" for place in range(9)]
        return {"stages": {"retrieve": {"calls": [found[:6], found[3:]]}, "context": found[1:4]}}

    def pipeline(query):
        lists = {"zz-lexical": every[:30], "dense": every[39:4:-1], "fuse": every[4:34], "a-rerank": every[33:3:-1]}
        return {"stages": lists | {"context": every[33:28:-1]}, "inputs": {"fuse": ["zz-lexical", "dense"]}}

    every = list(texts)
    bench = {
        "dataset": sy.Dataset.of(texts, queries, qrels),
        "retrievers": [
            {"hybrid": {"of": ["bm25-okapi", "dense"]}},
            {"python": {"target": agent, "name": "agent"}},
            {"python": {"target": pipeline, "name": "pipeline"}},
        ],
        "measures": ["nDCG@5"],
    }
    return sy.bench(bench, output=tmp_path_factory.mktemp("bench")).folder / "report.html"


@pytest.mark.parametrize("view", [(1366, "light"), (1366, "dark"), (390, "light"), (390, "dark")])
def test_stages_and_findings_on_the_page_of_a_bench(bench_page, opened, view):
    width, scheme = view
    axe = import_peer("axe_playwright_python.sync_playwright")
    options = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme, "reduced_motion": "reduce"}
    with opened(bench_page, **options, bypass_csp=True) as tab:
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        panels = tab.locator("#stages > details")
        assert panels.count() == 3
        assert tab.locator("#check tbody tr").count() >= 1
        tab.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        assert panels.filter(has_text="agent").get_by_text("nothing relevant").is_visible()
        found = axe.Axe().run(tab).response["violations"]
        assert [(each["id"], each["nodes"][0]["html"]) for each in found] == []
        link = tab.locator("#stages a[href='#query=q1%2F%3F%23%26&stages=agent']").first
        link.click()
        dialog = tab.locator("dialog[open]")
        assert dialog.get_by_text("q1/?#&").first.is_visible()
        assert dialog.locator(".list h3").all_text_contents() == ["retrieve", "context"]


def test_the_lists_of_a_query_in_the_order_of_the_stages(bench_page, opened):
    axe = import_peer("axe_playwright_python.sync_playwright")
    with opened(bench_page, viewport={"width": 1366, "height": 900}, bypass_csp=True) as tab:
        panel = tab.locator("#stages > details", has_text="pipeline")
        panel.locator("summary").first.click()
        panel.get_by_role("link", name="context:").locator("path").click()
        table = panel.get_by_role("region", name="pipeline: lost in context")
        assert table.locator("tbody tr").count() > 3
        table.get_by_role("link", name="q5", exact=True).first.click()
        dialog = tab.locator("dialog[open]")
        names = ["zz-lexical", "dense", "fuse", "a-rerank", "context"]
        assert dialog.locator(".list h3").all_text_contents() == names
        # q5 has the relevant documents d05 and d14: rank in every list, by hand
        missed = dialog.locator(".missed")
        assert missed.locator("thead th").all_text_contents() == ["Relevant document", "Grade", *names]
        rows = [
            row.split("\n")
            for row in (line.inner_text().replace("\t", "\n") for line in missed.locator("tbody tr").all())
        ]
        assert [[cell for cell in row if cell] for row in rows] == [
            ["d05", "1", "at 6", "▼ at 35", "at 2", "▼ at 29", "✖ lost"],
            ["d14", "1", "at 15", "▼ at 26", "at 11", "at 20", "✖ lost"],
        ]
        first = [column.locator("li").first for column in dialog.locator(".list").all()]
        assert [item.locator(".title").inner_text() for item in first] == ["d00", "d39", "d04", "d33", "d33"]
        # fuse is compared with both lists that it read, the other stages with the one before them
        moves = [item.locator(".moved").inner_text() if item.locator(".moved").count() else "" for item in first]
        assert moves == ["", "", "▲ 4", "▲ 29", "="]
        assert axe.Axe().run(tab).response["violations"] == []
        dialog.get_by_role("checkbox", name="show the list of hybrid").check()
        assert dialog.locator(".list h3").all_text_contents() == ["pipeline", "hybrid"]
        dialog.get_by_role("button", name="show the stages of hybrid").click()
        assert dialog.locator(".list h3").all_text_contents() == ["bm25-okapi", "dense", "fuse"]
        tab.keyboard.press("Escape")
        tab.wait_for_function("!location.hash.includes('stages')")
