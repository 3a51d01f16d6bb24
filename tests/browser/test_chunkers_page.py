"""The page of a bench with chunkers: each chunking's lists, judged by its own chunks."""

from __future__ import annotations

import steelyard as sy
from needs import import_peer

TEXTS = {
    "a": "Gold is weighed here. A balance is never wrong. Boats are for rivers and lakes.",
    "b": "Stones sink in water. Boats float on water. A balance weighs gold and lead.",
}
QUERIES = {"q1": "what is weighed", "q2": "boats on water"}
EVIDENCE = {"q1": [{"doc_id": "a", "start": 0, "end": 21}], "q2": [{"fact": "Boats float"}]}


def test_an_opened_query_shows_every_chunkings_list_with_its_own_judgments(tmp_path, opened):
    import_peer("altair")
    bench = {
        "dataset": sy.Dataset.of(TEXTS, QUERIES, {"q1": ["a"], "q2": ["b"]}, name="tiny"),
        "retrievers": [{"bm25-okapi": {"fill": False}}],
        "chunkers": [{"sentence": {"tokens": 6}}, {"fixed": {"tokens": 3, "overlap": 0}}],
        "evidence": sy.Evidence(EVIDENCE),
        "measures": ["nDCG@3"],
        "warmup": 0,
    }
    result = sy.bench(bench, output=tmp_path)
    with opened(tmp_path / "report.html", "#query=q1") as tab:
        dialog = tab.locator("dialog[open]")
        names = dialog.locator(".list h3").all_inner_texts()
        assert sorted(names) == sorted(result.runs)
        for number, name in enumerate(names):
            shown = dialog.locator(".list").nth(number).locator("li")
            expected = result.runs[name].frame.filter(query_id="q1")["doc_id"].to_list()
            assert len(expected) > 0
            assert shown.count() == len(expected)
            chunking = name.split(" on ")[1]
            assert all(doc.startswith(f"{chunking}:") for doc in expected)
        labels = dialog.locator(".label").all_inner_texts()
        assert any(label.startswith("◆ relevant") for label in labels)
        missed = dialog.locator("table.missed")
        for row in missed.locator("tbody tr").all():
            chunk = row.locator("th").inner_text().split(":")[0]
            cells = row.locator("td.number").all_inner_texts()[1:]
            for name, cell in zip(names, cells, strict=True):
                assert (cell == "of another chunking") == (name.split(" on ")[1] != chunk)
        assert missed.locator("tbody tr").count() > 0


def test_a_verdict_that_depends_on_the_overlap_rule_has_its_numbers_and_names_fit_a_phone(tmp_path, opened):
    import_peer("altair")
    numbers = range(12)
    texts = {f"d{n}": " ".join(f"t{n} w{at}" if at % 30 == 0 else f"w{at}" for at in range(120)) for n in numbers}
    spans = {
        f"q{n}": [{"doc_id": doc, "start": text.index("w30"), "end": text.index("w90")}]
        for n, (doc, text) in enumerate(texts.items())
    }
    bench = {
        "dataset": sy.Dataset.of(texts, {f"q{n}": f"t{n}" for n in numbers}, {f"q{n}": [f"d{n}"] for n in numbers}),
        "retrievers": ["bm25-okapi", {"random": {"seed": 1}}],
        "chunkers": [{"fixed": {"tokens": 31, "overlap": 15, "name": "fixed-31-with-15"}}, "whole"],
        "evidence": sy.Evidence(spans),
        "measures": ["P@4", "SpanR@4"],
        "warmup": 0,
    }
    pair = sy.bench(bench, output=tmp_path).comparison.leading_pair
    assert pair.verdict == "undecided"
    with opened(tmp_path / "report.html", viewport={"width": 390, "height": 844}) as tab:
        facts = dict(
            zip(tab.locator("dl.lead dt").all_inner_texts(), tab.locator("dl.lead dd").all_inner_texts(), strict=True)
        )
        assert (
            f"depends on how much of a passage a chunk must contain ({facts['Difference by overlap rule']})"
            == pair.reason
        )
        assert not any(name.startswith("Queries needed") for name in facts)
        for table in ("#board", "#matrix", "#failure-table"):
            heads = tab.locator(f"{table} tbody th").all()
            assert len(heads) == 4
            for head in heads:
                shown, cell = head.locator(".name").bounding_box(), head.bounding_box()
                assert shown["x"] + shown["width"] <= cell["x"] + cell["width"] + 1
                assert "…" not in head.inner_text()
        assert "on P@4 depend" in tab.locator("#warnings").inner_text()
        assert "chunks of all chunkings" in tab.locator("#method").inner_text()
    for width in (390, 1366):
        with opened(tmp_path / "report.html", "#query=q1", viewport={"width": width, "height": 844}) as tab:
            heads = tab.locator("dialog .glance tbody th")
            heads.first.wait_for()
            cut = heads.evaluate_all("heads => heads.map((head) => head.scrollWidth > head.clientWidth)")
            assert cut == [False] * 4
