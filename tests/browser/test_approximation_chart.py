"""The chart and the table of what approximate search costs."""

from __future__ import annotations

import pytest

import steelyard as sy
from needs import import_peer


@pytest.fixture(scope="module")
def approximate(tmp_path_factory):
    """The page of a bench with two sweeps and a filter."""
    import_peer("altair")
    import_peer("faiss")
    bench = {
        "dataset": "demo",
        "retrievers": [
            "dense",
            {"dense": {"filter": 0.5, "name": "dense filtered"}},
            {"faiss": {"kind": "hnsw", "of": "dense", "m": 2, "ef_search": [1, 4, 16], "name": "hnsw"}},
            {"faiss": {"kind": "ivf", "of": "dense", "lists": 8, "probes": [1, 8], "name": "ivf"}},
            {"faiss": {"kind": "ivf", "of": "dense", "lists": 8, "filter": 0.5, "name": "ivf filtered"}},
        ],
        "measures": ["nDCG@10", "Latency"],
        "baseline": "dense",
    }
    return sy.bench(bench, tmp_path_factory.mktemp("approximate") / "result").folder / "report.html"


@pytest.mark.parametrize("width", [1366, 390])
def test_every_search_is_a_point_and_a_row(approximate, opened, width):
    with opened(approximate, viewport={"width": width, "height": 900}) as tab:
        figure = tab.locator("#chart-approximation")
        figure.scroll_into_view_if_needed()
        figure.locator("svg").wait_for()
        # Six searches and the two exact ones.
        assert figure.locator("svg .mark-symbol.role-mark path").count() == 8
        legend = figure.locator("svg .role-legend-label text").all_text_contents()
        assert legend == ["exact search", "faiss hnsw", "faiss ivf", "faiss ivf, filter 0.5"]
        assert "nDCG@10 lost" in figure.inner_text()
        assert figure.bounding_box()["width"] <= width
        tab.get_by_text("What approximate search costs", exact=True).first.click()
        table = tab.locator("[aria-label='What approximate search costs'] tbody tr")
        assert table.count() == 6
        assert table.last.locator("th, td").all_inner_texts()[:2] == ["ivf filtered", "dense filtered"]
