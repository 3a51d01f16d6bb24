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
        drawn = tab.get_by_role("img", name="Relevant documents that are left after each stage")
        assert (
            drawn.locator("rect.gone title").nth(1).text_content() == "lexical + dense: 60 relevant documents, 30 lost"
        )
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        lost = tab.locator("#targets details", has_text="lost in rerank (30)")
        assert not lost.locator("td").first.is_visible()
        lost.locator("summary").click()
        assert lost.locator("tbody tr").count() == 30
        found = axe.Axe().run(tab).response["violations"]
        assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []


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

    bench = {
        "dataset": sy.Dataset.of(texts, queries, qrels),
        "retrievers": [{"hybrid": {"of": ["bm25-okapi", "dense"]}}, {"python": {"target": agent, "name": "agent"}}],
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
        assert panels.count() == 2
        assert tab.locator("#check tbody tr").count() >= 1
        tab.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        assert panels.filter(has_text="agent").get_by_text("nothing relevant").is_visible()
        found = axe.Axe().run(tab).response["violations"]
        assert [(each["id"], each["nodes"][0]["html"]) for each in found] == []
        link = tab.locator("#stages a[href='#query=q1%2F%3F%23%26']").first
        link.click()
        assert tab.locator("dialog[open]").get_by_text("q1/?#&").first.is_visible()
