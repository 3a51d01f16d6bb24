"""The page: self-contained, safe, within its size limit, with a statement of what it leaves out."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import steelyard as sy
from needs import import_peer
from steelyard.comparison.compare import compare_scores
from steelyard.comparison.failures import (
    DISTRACTED,
    LOW,
    MISSED,
    NOTHING,
    PARTLY,
    REPEATED,
    UNANSWERED,
    UNJUDGED,
    run_failures,
)
from steelyard.comparison.movers import ranked_rows
from steelyard.errors import InputError
from steelyard.notes import sentence
from steelyard.report.page import page as page_module
from steelyard.report.page.embed import SCRIPTS, embedded_json, packed, page_script, vega_script, visible
from steelyard.report.page.queries import _coded, interesting_order
from steelyard.report.page.subject import comparison_subject

import_peer("altair")

QRELS = {
    "found": {"g": 2, "h": 1},
    "missed": {"g": 1},
    "low": {"g": 1},
    "distracted": {"g": 1, "bad": -1},
    "repeated": {"g": 1},
    "none": {"bad": -1},
    "silent": {"g": 1},
}
RUN = {
    "found": ["g", "h"],
    "missed": ["x", "y"],
    "low": ["x", "y", "z", "g"],
    "distracted": ["bad", "g"],
    "repeated": ["g", "g"],
    "none": ["x"],
    "silent": [],
}
OTHER = {query: ["g", "x"] for query in QRELS}


@pytest.fixture(scope="module")
def comparison():
    return sy.compare(QRELS, {"one": sy.Run(RUN), "two": sy.Run(OTHER)}, ["nDCG@3", "RR"], baseline="two")


def test_failures_of_every_query(comparison):
    one = run_failures(comparison)[0]
    named = dict(zip(one.alignment.queries, one.failures.tolist(), strict=True))
    assert named == {
        "found": 0,
        "missed": MISSED | UNJUDGED,
        "low": LOW | UNJUDGED,
        "distracted": DISTRACTED,
        "repeated": REPEATED,
        "none": NOTHING | UNJUDGED,
        "silent": UNANSWERED,
    }
    assert dict(zip(one.alignment.queries, one.first.tolist(), strict=True))["low"] == 4
    two = run_failures(comparison)[1]
    assert dict(zip(two.alignment.queries, two.failures.tolist(), strict=True))["found"] == PARTLY


def embedded(page, element):
    found = re.search(rf'<script type="application/json" id="{element}">(.*?)</script>', page, re.DOTALL)
    return json.loads(found[1])


def decoded(values):
    """One measure's values in the page: codes of 1 or 2 bytes and the values they stand for, or the values."""
    width, *arrays = values
    first = np.frombuffer(base64.b64decode(arrays[0]), {1: "u1", 2: "<u2", 4: "<f4"}[width])
    return first if width == 4 else np.frombuffer(base64.b64decode(arrays[1]), "<f4")[first]


@pytest.mark.parametrize(("distinct", "width"), [(1, 1), (256, 1), (257, 2), (65_536, 2), (65_537, 4)])
def test_values_are_coded_in_as_few_bytes_as_they_need(distinct, width):
    values = np.resize(np.arange(distinct) / 7, (3, max(2, distinct)))
    values[2, 1] = values[0, 0]
    made = _coded(values)
    assert made[0] == width
    assert np.array_equal(decoded(made), values.astype("f4").ravel())
    missing = _coded(np.array([[np.nan, 0.5], [0.25, np.nan]]))
    assert np.array_equal(decoded(missing), np.array([np.nan, 0.5, 0.25, np.nan], "f4"), equal_nan=True)


def test_the_page_loads_nothing_from_elsewhere(comparison, tmp_path):
    comparison.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert not re.search(r"<(?:link|img|iframe|source|object|embed)\b", page.split('id="vega"')[0])
    assert not re.search(r"\ssrc=", page.split('<script type="module" async>')[0])
    assert "default-src 'none'" in page
    assert "unsafe-eval" not in page.split("<style>")[0]


def test_the_scripts_are_those_that_the_policy_allows(comparison, tmp_path):
    comparison.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    allowed = re.search(r"script-src ([^;]*);", page)[1].split()
    for pattern in (
        r'<script type="module" async>(.*?)</script>',
        r'<script type="text/plain" id="vega">(.*?)</script>',
    ):
        script = re.search(pattern, page, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in allowed


def test_the_same_comparison_makes_the_same_bytes(comparison, tmp_path):
    for name in ("a", "b"):
        comparison.to_html(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_modules_bundle_to_one_script_without_imports():
    script = page_script()
    assert not re.search(r"^(?:import|export) ", script, re.MULTILINE)
    names = re.findall(r"^(?:async )?(?:function|const|let|class) (\w+)", script, re.MULTILINE)
    assert len(names) == len(set(names)), "two modules use one name"
    assert script.count("innerHTML") == 0
    assert SCRIPTS[-1] == "main.js"


def test_json_cannot_leave_its_element():
    wild = {"</script>": ["<!--", "&amp;", "\u2028\u2029", "\x00\x7f", "\ud800", "日本"]}
    text = embedded_json(wild)
    assert not set(text) & {"<", ">", "&", "\u2028", "\u2029", "\x00", "\x7f", "\ud800"}
    assert json.loads(text) == wild
    assert "日本" in text, "text of any script stays short"
    with pytest.raises(ValueError):
        embedded_json({"a": float("nan")})


def test_numbers_are_packed_little_endian():
    assert np.frombuffer(base64.b64decode(packed([1.5, np.nan], "f4")), "<f4")[0] == 1.5
    assert visible("tab\tline\nnul\x00") == "tab\tline\nnul␀"


def test_the_values_in_the_page_are_those_measured(comparison, tmp_path):
    comparison.to_html(tmp_path / "page.html")
    summary = embedded((tmp_path / "page.html").read_text(), "summary-data")
    values = [decoded(each).reshape(2, len(QRELS)) for each in summary["values"]]
    board = comparison.score_tables[0]
    for measure, column in enumerate(board.columns):
        assert np.allclose(values[measure], board.of(column.key))
    assert summary["queries"] == list(board.queries)
    assert summary["listed"] == list(range(7))


def test_lists_keep_the_order_that_was_measured():
    run = sy.Run({"q": {"a": 1.0, "b": 1.0, "c": 2.0}})
    policies = {"docid-desc": ["c", "b", "a"], "docid-asc": ["c", "a", "b"], "stable": ["c", "a", "b"]}
    for ties, expected in policies.items():
        made = sy.compare({"q": ["a"]}, {"r": run}, ["RR"], ties=ties)
        ordering = made.coverage["r"].policies.ordering
        assert ranked_rows(run, ordering)["doc_id"].to_list() == expected
        rank = made.source.alignments["r"].rank.tolist()
        assert rank == [expected.index("a") + 1]
    again = sy.Run({"q": ["a", "b", "a", "c"]})
    collapsed = sy.compare({"q": ["c"]}, {"r": again}, ["RR"], duplicates="collapse").coverage["r"].policies
    rows = ranked_rows(again, collapsed.ordering)
    assert list(zip(rows["doc_id"], rows["rank"], strict=True)) == [("a", 1), ("b", 2), ("c", 3)]


def test_differences_and_misses_are_kept_first(comparison):
    values = np.array([[0.0, 1.0, 0.5, 0.0], [0.0, 0.0, 0.5, 0.9]])
    order = interesting_order(values, [])
    assert order[0] == 1, "the biggest difference"
    assert order[1] == 0, "what every run misses"
    assert sorted(order) == [0, 1, 2, 3]


def large(queries=60):
    corpus = {f"d{n}": f"word{n} " * 150 for n in range(200)}
    asked = {f"q{n}": f"word{n}" for n in range(queries)}
    qrels = {f"q{n}": [f"d{n}"] for n in range(queries)}
    runs = {
        f"r{shift}": sy.Run(
            {f"q{n}": [f"d{(n * 3 + shift + rank) % 200}" for rank in range(20)] for n in range(queries)}
        )
        for shift in range(3)
    }
    return sy.compare(qrels, runs, ["nDCG@10"]), sy.Dataset.of(corpus, asked, qrels, name="large")


def test_a_page_has_a_size_limit_and_states_what_it_leaves_out(tmp_path, monkeypatch):
    compared, dataset = large()
    fixed = len(vega_script()) + len(page_script())
    monkeypatch.setattr(page_module, "PAGE_LIMIT", fixed + 380_000)
    compared.to_html(tmp_path / "page.html", dataset)
    page = (tmp_path / "page.html").read_text()
    assert (tmp_path / "page.html").stat().st_size <= fixed + 380_000
    said = re.search(r"Ranked lists are included for (\d+) of 60 queries", page)
    listed = embedded(page, "summary-data")["listed"]
    assert int(said[1]) == len(listed)
    assert 0 < len(listed) < 60
    assert sorted(map(int, embedded(page, "lists-data")["queries"])) == listed
    assert "<code>comparison.to_html(path, everything=True)</code> includes everything." in page
    compared.to_html(tmp_path / "all.html", dataset, everything=True)
    whole = (tmp_path / "all.html").read_text()
    assert len(embedded(whole, "summary-data")["listed"]) == 60
    assert "Ranked lists are included" not in whole


def test_very_large_results_keep_some_of_their_queries(tmp_path, monkeypatch):
    compared, dataset = large()
    monkeypatch.setattr(page_module, "SUMMARY_LIMIT", 3_000)
    compared.to_html(tmp_path / "page.html", dataset)
    page = (tmp_path / "page.html").read_text()
    kept = embedded(page, "summary-data")["queries"]
    assert 0 < len(kept) < 60
    assert f"The table has {len(kept)} of 60 queries" in page
    assert all(int(number) < len(kept) for number in embedded(page, "lists-data")["queries"])


def test_a_comparison_of_scores_alone_has_a_page(tmp_path):
    import polars as pl

    table = pl.DataFrame(
        {
            "run": ["a"] * 4 + ["b"] * 4,
            "query_id": [f"q{n}" for n in range(4)] * 2,
            "MRR": [1.0, 0.5, 0.0, 1.0, 0.0, 0.5, 0.0, 0.2],
        }
    )
    compared = compare_scores(table)
    compared.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "made from scores alone" in page
    assert embedded(page, "summary-data")["failures"] is None
    assert embedded(page, "lists-data") == {}


def test_one_run_has_a_page(tmp_path):
    sy.compare(QRELS, {"only": RUN}, ["nDCG@3"]).to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "no other run to compare with" in page
    assert 'id="chart-means"' in page
    assert 'id="chart-p-values"' not in page


def test_without_the_extra_a_page_of_tables_tells_how_to_install_it(comparison, tmp_path, monkeypatch):
    monkeypatch.setattr(page_module, "find_spec", lambda name: None if name == "jinja2" else object())
    comparison.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "pip install &#x27;steelyard[report]&#x27;" in page
    assert "<table>" in page
    with pytest.raises(InputError, match="charts need jinja2"):
        page_module.chart_files(comparison_subject(comparison), tmp_path / "charts")


def test_the_fragment_for_notebooks_needs_no_extra():
    code = (
        "import sys; sys.modules['jinja2'] = sys.modules['altair'] = None\n"
        "import steelyard as sy\n"
        "made = sy.compare({'q': ['a']}, {'<x>': {'q': ['a']}, 'y': {'q': ['b']}}, ['RR'])\n"
        "print(made._repr_html_() == made.to_html(), '&lt;x&gt;' in made.to_html())\n"
        "scores = sy.evaluate({'q': ['a']}, {'q': ['a']}, ['RR'])\n"
        "print('<table>' in scores._repr_html_(), 'RR(rel=1' in scores._repr_html_())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"] * 4


def test_a_page_of_a_dataset_shows_its_texts(tmp_path):
    dataset = sy.Dataset.of({"g": "the gold text"}, {"found": "asked so"}, {"found": ["g"]}, name="small")
    compared = sy.compare(dataset.qrels, {"a": {"found": ["g"]}, "b": {"found": ["x"]}}, ["RR"])
    compared.to_html(tmp_path / "page.html", dataset)
    page = (tmp_path / "page.html").read_text()
    assert "the gold text" in page
    assert "asked so" in page
    assert dataset.fingerprint in page


def test_the_page_shows_the_sort_key_of_every_run(tmp_path):
    qrels = {"q1": ["a"], "q2": ["b"]}
    scored = sy.Run({"q1": {"a": 1.0, "b": 0.5}, "q2": {"b": 1.0}}, name="scored")
    listed = sy.Run({"q1": ["b", "a"], "q2": ["b"]}, name="listed")
    answers = sy.Run({"q1": [("b", 0.5), ("a", 0.5)], "q2": [("b", 0.5)]}, name="answers")

    def page(*runs):
        sy.compare(qrels, list(runs), ["RR"]).to_html(tmp_path / "page.html")
        return (tmp_path / "page.html").read_text()

    def row(text, run):
        (made,) = re.findall(f'<tr><th scope="row"><bdi>{run}</bdi></th><td class="settings">.*?</tr>', text)
        return made

    mixed = page(scored, listed, answers)
    assert "score, descending (ties=docid-desc)" in row(mixed, "scored")
    assert "order of the run (ranked lists)" in row(mixed, "listed")
    assert "order of the run (ranked lists)" in row(mixed, "answers")
    assert "by document id, descending (not applied to listed and answers, which have their own order)" in mixed
    assert "by document id, descending (not applied: every run has its own order)" in page(listed)
    assert "by document id, descending</dd>" in page(scored)


def borderline():
    """Three runs and a baseline; the interval of each pair alone excludes 0, and the corrected p is above 0.05."""
    noise = np.random.default_rng(3).normal(size=40)
    border = 0.5 + 0.1 * ((noise - noise.mean()) / noise.std(ddof=1) + 2.4 / 40**0.5)
    values = {"base": [0.5] * 40, "border": border, "other": 1 - border, "again": border}
    rows = [
        {"run": run, "query_id": f"q{number}", "RR": float(value)}
        for run, row in values.items()
        for number, value in enumerate(row)
    ]
    return compare_scores(pl.DataFrame(rows), baseline="base")


def test_the_intervals_of_the_page_agree_with_the_corrected_p(tmp_path):
    found = borderline()
    assert not any(note.code == "interval-and-p-disagree" for note in found.notes)
    found.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "Interval and p-value disagree" not in page
    assert "95% interval (Bonferroni)" in page
    assert '<td class="verdict">not significant</td>' in page
    for pair in found.every_pair:
        assert (pair.low > 0 or pair.high < 0) == (pair.p_adjusted < 0.05)
        assert f'<td class="number">{pair.low:+.4f} to {pair.high:+.4f}</td>' in page or "base" not in pair.names


def test_tests_of_ranks_have_the_interval_of_the_mean_and_the_page_shows_where_they_disagree(tmp_path):
    values = {"base": [0.5] * 40, "rare": [0.52] * 32 + [0.30] * 8}
    rows = [
        {"run": run, "query_id": f"q{n}", "RR": value} for run, row in values.items() for n, value in enumerate(row)
    ]
    found = compare_scores(pl.DataFrame(rows), baseline="base", test="sign")
    found.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    (note,) = (sentence(note).replace("<", "&lt;") for note in found.notes if note.code == "interval-and-p-disagree")
    assert page.count(note) == 1
    start = page.index("<summary>Differences from <bdi>base</bdi></summary>")
    assert start < page.index(note) < page.index("</details>", start)


def test_charts_show_long_names_without_their_shared_parts():
    from steelyard.report.charts.charts import charts_of

    def labels(names):
        runs = {name: sy.Run(RUN if number else OTHER) for number, name in enumerate(names)}
        found = sy.compare(QRELS, runs, ["RR"])
        spec = json.dumps([chart.spec for chart in charts_of(comparison_subject(found), run_failures(found))])
        return set(re.findall(r'"labelExpr": "(.*?)"', spec))

    assert labels(["bm25", "dense"]) == set()
    long = [f"lab/2024/{name}-stemmed-and-lowercase" for name in ("bm25", "dense")]
    (shown,) = labels(long)
    start, end = map(int, re.search(r"slice\(datum.label, (\d+), length\(datum.label\) - (\d+)\)", shown).groups())
    assert [name[start : len(name) - end] for name in long] == ["bm25", "dense"]


def test_the_page_shows_judged_shares_and_bounds(tmp_path):
    qrels = {f"q{n}": {"a": 1, "b": 0, "c": 1, "d": 0} for n in range(5)}
    runs = {"known": dict.fromkeys(qrels, ("a", "b", "c", "d")), "new": dict.fromkeys(qrels, ("c", "x", "b", "y"))}
    sy.compare(qrels, runs, ["P@4"]).to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert '<button type="button">Judged</button>' in page
    assert "0.2500 to 0.7500" in page
    assert "Judged: the share of judged documents above the cutoff of <bdi>P@4</bdi>" in page


def test_charts_of_ranks_bounds_and_depth_show_the_numbers_of_the_comparison():
    from steelyard.report.charts.charts import charts_of

    qrels = {f"q{n}": {"a": 2, "b": 0, "c": 1, "d": 1} for n in range(8)}
    others = [f"x{n}" for n in range(25)]
    runs = {
        "deep": dict.fromkeys(qrels, ("a", *others[:14], "c", *others[14:], "d")),
        "high": {**dict.fromkeys(qrels, ("c", "b", "a", *others)), "q0": ("b", *others)},
    }
    found = sy.compare(qrels, runs, ["nDCG@10", "P@5"])
    charts = {chart.name: chart for chart in charts_of(comparison_subject(found), run_failures(found))}
    assert {name: charts[name].place for name in ("ranks", "bounds", "funnel", "differences", "means")} == {
        **dict.fromkeys(("ranks", "bounds"), "leaderboard"),
        "funnel": "failures",
        "differences": "first",
        "means": "more",
    }
    rows = {name: charts[name].spec["datasets"]["rows"] for name in ("ranks", "bounds", "funnel")}
    assert [tuple(row.values()) for row in rows["ranks"]] == [
        ("nDCG@10", row.run, row.rank, row.rank_low, row.rank_high) for row in found.leaderboard_rows
    ]
    bounds = {run: found.judged[run, None].bounds for run in runs}
    assert {row["run"]: (row["low"], row["high"]) for row in rows["bounds"]} == {
        run: pytest.approx(ends, abs=1e-5) for run, ends in bounds.items()
    }
    assert all(row["low"] <= row["value"] <= row["high"] for row in rows["bounds"])
    counts = {run: [row["documents"] for row in rows["funnel"] if row["run"] == run] for run in runs}
    assert [row["step"] for row in rows["funnel"][:4]] == ["relevant", "retrieved", "first 20", "first 10"]
    assert counts == {"deep": [24, 24, 16, 8], "high": [24, 14, 14, 14]}


def test_short_lists_and_judged_lists_have_no_chart_of_depth_or_bounds(comparison):
    from steelyard.report.charts.charts import charts_of

    names = {chart.name for chart in charts_of(comparison_subject(comparison), run_failures(comparison))}
    assert "ranks" in names
    assert not names & {"funnel", "bounds"}


def test_a_page_from_the_command_line_gives_advice_for_the_command_line(tmp_path):
    (tmp_path / "qrels.trec").write_text("q1 0 a 1\nq2 0 b 1\n")
    for name, other in (("one", "b"), ("two", "c")):
        (tmp_path / f"{name}.run").write_text(f"q1 Q0 a 1 2.0 {name}\nq2 Q0 {other} 1 2.0 {name}\n")
    inputs = [str(tmp_path / name) for name in ("qrels.trec", "one.run", "two.run")]
    command = ["compare", *inputs, "-m", "RR", "-o", str(tmp_path / "page.html")]
    subprocess.run([sys.executable, "-m", "steelyard", *command], check=True, capture_output=True)
    page = (tmp_path / "page.html").read_text()
    assert "<code>--set dataset=DIR</code> shows their texts." in page
    assert f'<pre class="command">steelyard {" ".join(command)}</pre>' in page
    assert "comparison.to_html" not in page


def test_the_shaded_band_is_explained_only_where_there_is_one(tmp_path):
    qrels = {f"q{n}": {"d": 1} for n in range(40)}
    lists = {query: [*(f"x{n}" for n in range(number % 3)), "d"] for number, query in enumerate(qrels)}
    worse = {query: ["x", "y", "z", *docs] for query, docs in lists.items()}
    for runs, tied in (({"a": lists, "b": worse}, 0), ({"a": lists, "same": lists}, 2)):
        sy.compare(qrels, {name: sy.Run(run) for name, run in runs.items()}, ["RR"]).to_html(tmp_path / "page.html")
        page = (tmp_path / "page.html").read_text()
        rows = re.findall(r'<tr data-run="[0-9]+" data-rank="[0-9]+" class="([^"]*)"', page)
        assert len(rows) == 2
        assert sum("tied" in row for row in rows) == tied
        assert not any("band" in row for row in rows)
        assert ("shaded band" in page) == bool(tied)
