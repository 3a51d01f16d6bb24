"""Hostile texts in every field that reaches the page: shown as text, never run."""

from __future__ import annotations

import pytest

import steelyard as sy
from needs import import_peer

HOSTILE = [
    "<script>globalThis.hacked = 1</script>",
    "</script><script>globalThis.hacked = 2</script>",
    "<img src=x onerror='globalThis.hacked = 3'>",
    "<!-- <script> --!> <![CDATA[ ]]>",
    "javascript:globalThis.hacked=4//",
    "\"'><svg/onload=globalThis.hacked=5>",
    "{{ 7 * 7 }} {% raw %} ${globalThis.hacked=6} `",
    "&lt;b&gt; &amp; &#60;script&#62;",
    "nul\x00bell\x07escape\x1bdelete\x7f",
    "\u202eright to left\u202c \u2066isolated\u2069 עברית",
    "line\u2028paragraph\u2029end \ufeff",
    "emoji 🧑🏽‍🚀🏳️‍🌈 and a\u0301\u0302\u0303\u0304\u0305",
    "__proto__",
    "constructor",
    "datum.run === 'x' \\u003cscript\\u003e \\",
    "=cmd|' /C calc'!A0",
]


class Failing:
    """A retriever whose name, settings and error are hostile."""

    def __init__(self, label, fails):
        self.label, self.fails = label, fails

    def index(self, corpus):
        self.ids = list(corpus)
        return self

    def retrieve(self, queries, k=10):
        if self.fails and any(query == self.fails for query in queries):
            raise ValueError(HOSTILE[1])
        return [[(doc, 1.0 / place) for place, doc in enumerate(self.ids[:k], 1)] for _ in queries]

    def settings(self):
        return {HOSTILE[0]: HOSTILE[5]}

    def size_in_bytes(self):
        return 1


@pytest.fixture(scope="module")
def attacked(tmp_path_factory):
    """A bench in which every name and text is hostile."""
    import_peer("altair")
    corpus = {f"{text} {n}": {"title": text, "text": f"{text} in the text {text}"} for n, text in enumerate(HOSTILE)}
    corpus["huge"] = {"title": HOSTILE[1], "text": (HOSTILE[1] + " ") * 20_000}
    queries = {
        f"{text} {n}": {"text": f"{text} asked", HOSTILE[0]: HOSTILE[n % 3], "kind": HOSTILE[n % 4]}
        for n, text in enumerate(HOSTILE)
    }
    ids = list(corpus)
    rows = [
        (query, doc, grade, target)
        for n, query in enumerate(queries)
        for doc, grade, target in (
            (ids[n], 2, HOSTILE[n % 5]),
            ("huge", 1, HOSTILE[1]),
            (ids[(n + 3) % len(HOSTILE)], -1, None),
        )
    ]
    qrels = sy.Qrels.from_rows(rows, list(queries))
    bench = {
        "dataset": sy.Dataset.of(corpus, queries, qrels, name=HOSTILE[1]),
        "retrievers": [
            Failing(HOSTILE[2], f"{HOSTILE[0]} asked"),
            Failing(HOSTILE[5], None),
            Failing(HOSTILE[12], None),
        ],
        "measures": ["nDCG@10", "DR@5", "Latency"],
        "composite": {"nDCG@10": 0.5, "RR@10": 0.5},
        "baseline": HOSTILE[5],
        "by": HOSTILE[0],
    }
    return sy.bench(bench, output=tmp_path_factory.mktemp("hostile") / 'result & <b> "quoted"')


def unharmed(tab):
    assert tab.evaluate("globalThis.hacked") is None
    assert tab.locator("img, iframe, object, embed, a[href^='javascript']").count() == 0
    assert tab.locator("script:not([type='application/json']):not([type=module]):not([type='text/plain'])").count() <= 1


def seen(text):
    """A hostile text as the page shows it: control characters as pictures."""
    table = {n: 0x2400 + n for n in range(32) if n not in (9, 10)} | {127: 0x2421}
    return text.translate(table)


def test_names_and_texts_are_shown_as_text(attacked, opened):
    with opened(attacked.folder / "report.html") as tab:
        unharmed(tab)
        assert tab.locator(".kicker bdi").text_content() == HOSTILE[1]
        assert set(tab.locator("#board tbody th bdi").all_text_contents()) == {HOSTILE[2], HOSTILE[5], HOSTILE[12]}
        assert HOSTILE[0] in tab.locator("#method").text_content()
        assert set(tab.locator("#queries-table .asked").all_text_contents()) == {
            f"{seen(text)} asked" for text in HOSTILE
        }
        assert set(tab.locator("#queries-table .id").all_text_contents()) == {
            f"{seen(text)} {n}" for n, text in enumerate(HOSTILE)
        }
        kinds = tab.locator("#slice option").all_text_contents()
        assert f"{HOSTILE[0]}: {HOSTILE[1]}" in kinds


def test_every_query_opens(attacked, opened):
    with opened(attacked.folder / "report.html") as tab:
        for number, text in enumerate(HOSTILE):
            tab.locator("#queries-table button[data-query]").nth(number).click()
            title = tab.locator("dialog[open] h2").text_content()
            assert title.endswith(" asked")
            unharmed(tab)
            for more in tab.locator("dialog[open] .list li:not([hidden]) .quiet").all()[:3]:
                more.click()
            tab.locator("#query-close").click()
            tab.wait_for_function("() => location.hash === ''")
            assert tab.locator("dialog[open]").count() == 0, text


def test_documents_and_errors_in_an_opened_query(attacked, opened):
    with opened(attacked.folder / "report.html") as tab:
        tab.locator("#find").fill(f"{HOSTILE[0]} asked")
        tab.wait_for_function("() => document.querySelectorAll('#queries-table tbody tr').length === 1")
        tab.locator("button[data-query]").click()
        assert HOSTILE[1] in tab.locator("dialog .errors").text_content()
        titles = tab.locator("dialog .list .title").all_text_contents()
        assert set(titles) >= {seen(text) for text in HOSTILE[:10]}
        texts = " ".join(tab.locator("dialog .list .text").all_text_contents())
        assert f"{HOSTILE[1]} in the text {HOSTILE[1]}" in texts
        assert HOSTILE[1] in " ".join(tab.locator("dialog .missed").all_text_contents())
        unharmed(tab)


def test_hostile_names_in_the_charts(attacked, opened):
    with opened(attacked.folder / "report.html") as tab:
        tab.locator("details:has(figure.chart)").evaluate_all("folds => folds.forEach(fold => { fold.open = true; })")
        for figure in tab.locator("figure.chart").all():
            figure.scroll_into_view_if_needed()
            figure.locator("svg[role=img]").wait_for(timeout=120_000)
        tab.evaluate("document.getElementById('chart-means').scrollIntoView({ behavior: 'instant', block: 'center' })")
        box = tab.locator("#chart-means .mark-rect path").first.bounding_box()
        for step in (4, 8):
            tab.mouse.move(box["x"] + step, box["y"] + box["height"] / 2)
        tab.wait_for_selector("#vg-tooltip-element.visible")
        tooltip = tab.locator("#vg-tooltip-element").text_content()
        assert any(name in tooltip for name in (HOSTILE[2], HOSTILE[5], HOSTILE[12]))
        unharmed(tab)


def test_hostile_settings_in_the_address(attacked, opened):
    address = "#query=%3C/script%3E&find=%3Cscript%3EglobalThis.hacked=7%3C/script%3E"
    address += "&slice=__proto__:x&measure=constructor&filter=__proto__&sort=toString"
    address += "&run=__proto__&by=__proto__&weights=__proto__"
    with opened(attacked.folder / "report.html", address) as tab:
        unharmed(tab)
        assert tab.locator("#find").input_value() == "<script>globalThis.hacked=7</script>"


def test_a_megabyte_of_text_is_cut_with_a_notice_or_shown_in_full(attacked, opened, tmp_path):
    whole = tmp_path / "whole.html"
    attacked.to_html(whole, everything=True)
    assert whole.stat().st_size > (attacked.folder / "report.html").stat().st_size + 500_000
    queries = {False: attacked.folder / "report.html", True: whole}
    for everything, path in queries.items():
        with opened(path) as tab:
            assert ("is cut to its first" in tab.locator("#verdict").inner_text()) is not everything
            tab.locator("#queries-table button[data-query]").first.click()
            while tab.locator("dialog .list > .quiet").count():
                tab.locator("dialog .list > .quiet").first.click()
            for item in tab.locator("dialog .list li").all():
                if "huge" in item.locator(".id").text_content():
                    item.locator(".quiet").click()
            longest = max(len(text) for text in tab.locator("dialog .list .text").all_text_contents())
            assert (longest > 500_000) is everything
            unharmed(tab)


def test_the_page_without_the_extra_is_plain_and_safe(attacked, chromium, tmp_path):
    from steelyard.benchmark.folder import load_result
    from steelyard.report.page.page import plain_page

    path = tmp_path / "plain.html"
    path.write_text(plain_page(load_result(attacked.folder).subject(), "jinja2"), "utf-8")
    context = chromium.new_context(offline=True)
    tab = context.new_page()
    tab.goto(path.as_uri())
    assert tab.evaluate("globalThis.hacked") is None
    assert "pip install 'steelyard[report]'" in tab.locator("body").inner_text()
    assert HOSTILE[2] in tab.locator("body").text_content()
    context.close()
