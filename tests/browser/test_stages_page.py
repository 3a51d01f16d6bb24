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
