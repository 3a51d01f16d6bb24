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
