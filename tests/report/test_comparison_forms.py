"""A comparison in every format: differences, intervals, p-values, verdicts, slices and movers."""

from __future__ import annotations

import csv
import io
import re

import numpy as np
import pytest

import steelyard as sy
from steelyard.report.summary import summary_text
from steelyard.report.tables import PROSE, Table, fitted, latex, markdown, plain

QRELS = {f"q{number}": {"a": 2, "b": 1} for number in range(40)}


def run(seed, noise):
    rng = np.random.default_rng(seed)
    return {
        query: {doc: QRELS[query].get(doc, 0) + noise * float(rng.normal()) for doc in "abcdefgh"} for query in QRELS
    }


RUNS = {"base_line": run(1, 2.0), "better": run(2, 0.3), "similar": run(3, 2.0)}
KINDS = {query: "odd" if int(query[1:]) % 2 else "even" for query in QRELS}


@pytest.fixture(scope="module")
def compared():
    return sy.compare(QRELS, RUNS, ["nDCG@5", "RR"], baseline="base_line", by="kind", queries=KINDS)


def shown(pair):
    """The numbers of a pair, as people read them."""
    return [f"{pair.difference:+.4f}", f"{pair.low:+.4f}", f"{pair.high:+.4f}", pair.verdict]


@pytest.mark.parametrize("form", ["to_text", "to_markdown", "to_html"])
def test_difference_interval_p_and_verdict_of_every_measure(compared, form):
    text = getattr(compared, form)()
    assert "p (holm)" in text
    for measure in ("nDCG@5", "RR"):
        assert f"{measure} vs base_line" in text
    assert len(compared.tested_pairs) == 4
    for pair in compared.tested_pairs:
        line = next(
            line for line in re.split(r"\n|</tr>", text) if pair.run in line and f"{pair.difference:+.4f}" in line
        )
        assert all(part in line for part in shown(pair))


def test_latex_has_the_pairs_the_slices_and_the_movers(compared):
    text = compared.to_latex(movers=1, texts={"q0": "50 % of what?"})
    moved = sum(bool(half) for each in compared.movers_by_run(1) for half in (each.lost, each.won))
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 1 + 2 + 1 + moved
    for pair in compared.tested_pairs:
        row = next(line for line in text.splitlines() if line.startswith(f"{pair.run} & ${pair.difference:+.4f}$"))
        assert f"${pair.low:+.4f}$ to ${pair.high:+.4f}$" in row
        assert f"& {pair.verdict} &" in row
    assert "run & even (20) & odd (20)" in text
    assert "% better vs base_line: " in text
    assert r"$\to$" in text
    assert r"<0.001" not in "".join(line for line in text.splitlines() if not line.startswith("%"))
    for line in text.splitlines():
        assert line.startswith(("%", "\\")) or not line or line.endswith(r"\\")


def test_csv_has_one_row_per_run_with_differences_and_slices(compared):
    rows = {row["run"]: row for row in csv.DictReader(io.StringIO(compared.to_csv()))}
    assert list(rows) == compared.leaderboard["run"].to_list()
    pair = next(pair for pair in compared.tested_pairs if (pair.run, pair.measure) == ("better", "RR"))
    row = rows["better"]
    assert float(row["RR difference"]) == pair.difference
    assert (float(row["RR difference low"]), float(row["RR difference high"])) == (pair.low, pair.high)
    assert float(row["RR p_adjusted"]) == pair.p_adjusted
    assert row["RR verdict"] == "better"
    assert float(row["RR [kind=odd]"]) == compared.slices[1].means["better"]["RR"]
    assert rows["base_line"]["RR difference"] == ""


def test_csv_with_cutoffs_has_the_differences_of_each():
    found = sy.compare(QRELS, RUNS, ["P"], baseline="base_line", at=[1, 3], by="kind", queries=KINDS)
    rows = {(row["run"], row["k"]): row for row in csv.DictReader(io.StringIO(found.to_csv()))}
    for pair in found.tested_pairs:
        assert float(rows[pair.run, str(pair.k)]["P difference"]) == pair.difference
    assert rows["better", "1"]["P [kind=odd]"] != ""
    assert rows["better", "3"]["P [kind=odd]"] == ""


def test_two_runs_are_one_table_with_one_row_per_measure():
    two = {name: RUNS[name] for name in ("better", "similar")}
    found = sy.compare(QRELS, two, ["nDCG@5", "RR", "P@1"])
    text = found.to_text()
    assert text.count("better vs similar\n") == 1
    assert re.findall(r"^(nDCG@5|RR|P@1) +[+-]", text, re.MULTILINE) == ["nDCG@5", "RR", "P@1"]
    assert "corrected" not in text


def test_two_runs_on_many_measures_are_shown_in_full():
    two = {name: RUNS[name] for name in ("better", "similar")}
    text = sy.compare(QRELS, two, [f"P@{k}" for k in range(1, 50)]).to_text()
    assert len(re.findall(r"^P@\d+ +[+-]", text, re.MULTILINE)) == 49


def test_pairs_of_many_runs_are_shown_on_the_measure_that_ranks_them():
    found = sy.compare(QRELS, RUNS, ["nDCG@5", "RR"])
    pairs = [pair for pair in found.tested_pairs if pair.measure == "RR"]
    significant = sum(pair.verdict in ("better", "worse") for pair in pairs)
    counts = f"(significant pairs: RR {significant} of {len(pairs)})"
    assert f"The tests of the other measures are in the JSON {counts}." in found.to_text()
    assert "\nRR\n" not in found.to_text()
    alone = sy.compare(QRELS, RUNS, ["nDCG@5"])
    assert "in the JSON" not in alone.to_text()


def test_a_note_on_several_runs_is_shown_once():
    part = {query: RUNS["better"][query] for query in list(QRELS)[:30]}
    found = sy.compare(QRELS, {"whole": RUNS["better"], "part": part, "again": part}, ["RR"])
    assert found.to_text().count("10 queries are missing from the run") == 1
    assert "part and again: 10 queries are missing" in found.to_text()


def test_times_are_in_milliseconds_in_every_table():
    runs = [
        sy.Run(RUNS["better"], name="slow", seconds=dict.fromkeys(QRELS, 0.5)),
        sy.Run(RUNS["better"], name="fast", seconds={q: 0.1 + i / 1e6 for i, q in enumerate(QRELS)}),
        sy.Run(RUNS["similar"], name="other", seconds={q: 0.2 + i / 1e6 for i, q in enumerate(QRELS)}),
    ]
    found = sy.compare(QRELS, runs, ["Latency"], by="kind", queries=KINDS)
    assert "-399.9805" in found.to_text()
    assert "Latency ms by kind" in found.to_text()
    assert re.search(r"^slow +500\.0000 +500\.0000$", found.to_text(), re.MULTILINE)


def test_measures_that_are_not_averaged_have_no_interval():
    found = sy.compare(QRELS, RUNS, ["NumRelRet", "GMAP", "RR"], baseline="base_line")
    for pair in found.tested_pairs:
        assert (pair.low == pair.low) == (pair.measure in ("RR", "GMAP"))
        assert pair.to_dict()["low"] is None or pair.low <= pair.difference <= pair.high


WIDE = Table(
    ["rank", "run", *(f"measure{number}" for number in range(8))],
    [[place, "run-" + "x" * 20, *[0.1234] * 8] for place in range(3)],
    title="All of them",
    keys=2,
)


def test_a_table_too_wide_for_the_screen_is_split():
    parts = fitted(WIDE, 80)
    assert [part.title for part in parts] == ["All of them", ""]
    assert [c for part in parts for c in part.columns[2:]] == list(WIDE.columns[2:])
    for part in parts:
        assert list(part.columns[:2]) == ["rank", "run"]
        assert max(map(len, plain(part).splitlines())) <= 80
    assert fitted(WIDE, 200) == [WIDE]


def test_a_table_with_prose_is_not_split():
    table = Table(["rule", "why"], [["a", "b" * (PROSE + 1)]])
    assert fitted(table, 20) == [table]


def test_titles_are_above_the_table_in_every_format():
    table = Table(["run", "AP"], [["a", 0.5]], title="Which?")
    assert plain(table).splitlines()[0] == "Which?"
    assert markdown(table).splitlines()[:2] == ["**Which?**", ""]
    assert latex(table).splitlines()[0] == "% Which?"


def test_latex_has_no_control_characters():
    qrels, runs = {"q1": {"d1": 1}}, {"a\x1b[2J": {"q1": ["d1"]}, "b\u202ec": {"q1": ["d2"]}}
    text = sy.compare(qrels, runs, ["RR"]).to_latex()
    assert r"a\textbackslash{}x1b[2J" in text
    assert not {"\x1b", "\u202e"} & set(text)


def test_latex_cells_use_math_mode_for_signs_and_stars():
    table = Table(["run", "gap", "p"], [["a-1", "-0.5 to +0.5", "<0.001 ***"]])
    assert latex(table).splitlines()[4] == r"a-1 & $-0.5$ to $+0.5$ & \textless{}0.001$^{***}$ \\"


@pytest.mark.parametrize("at", [None, [1, 3]])
def test_many_pairs_are_shortened_on_a_screen_and_complete_elsewhere(at):
    runs = {f"run{number}": RUNS["better" if number % 2 else "similar"] for number in range(12)}
    measures = ["nDCG", "RR", "P", "R"]
    found = sy.compare(QRELS, {"base": RUNS["base_line"], **runs}, measures, baseline="base", at=at)
    text = found.to_text()
    first = "nDCG" if at is None else "nDCG at 1"
    assert f"{first} vs base\n" in text
    assert "differences from base\n" in text
    assert " vs base\n" not in text.replace(f"{first} vs base\n", "", 1)
    for pair in found.tested_pairs:
        assert f"{pair.difference:+.4f} {pair.stars}" in text.partition("differences from base\n")[2]
    assert "Intervals and p of the other measures are in Markdown" in text
    for whole in (found.to_markdown(), found.to_html(), found.to_latex()):
        assert whole.count(" vs base") == len(measures) * len(at or [1])
        assert "Intervals and p of the other measures" not in whole


def test_of_many_pairs_a_screen_shows_those_of_the_leader():
    runs = {f"run{number}": RUNS["better" if number == 7 else "similar"] for number in range(10)}
    found = sy.compare(QRELS, runs, ["nDCG@5"])
    text = found.to_text()
    shown = text.partition("nDCG@5, run7 vs every other run\n")[2].partition("\n\n")[0]
    assert len(shown.splitlines()) == 1 + 9
    assert "The pairs of the other runs are in Markdown, LaTeX, JSON and the report." in text
    assert len(re.findall(r"\| `?run1`? \| `?run2`? \|", found.to_markdown())) == 1
    assert len(sy.compare(QRELS, dict(list(runs.items())[:8]), ["nDCG@5"]).tested_pairs) < 40


def test_long_names_stay_apart_in_the_short_table():
    names = [f"experiment-2024-a-very-long-name-{word}-with-reranking-v1-final" for word in ("alpha", "beta")]
    queries = {f"q{n}": {"a": 1} for n in range(20)}
    runs = {names[0]: {key: ["a"] for key in queries}, names[1]: {key: ["b", "a"] for key in queries}}
    text = summary_text(sy.compare(queries, runs, ["RR@5"]), 80)
    verdict, unjudged, _, head, one, other, *_ = text.splitlines()
    assert unjudged == "Unjudged: 0% (…alpha…) to 50% (…beta…) of the first 5 documents."
    assert verdict.startswith("…alpha… (1.0000) leads …beta…")
    assert head.endswith("vs …alpha…")
    assert [line.split()[1] for line in (one, other)] == ["…alpha…", "…beta…"]


NAMED = [f"exp-2024/bm25-{variant}-stemmed-and-lowercase" for variant in ("okapi", "plus", "l")]


def test_shared_parts_of_names_are_left_out_on_a_narrow_screen():
    table = Table(["rank", "run", "AP"], [[i, name, 0.5] for i, name in enumerate(NAMED)], keys=2, note="AP.")
    assert fitted(table, 80) == [table]
    (short,) = fitted(table, 40)
    assert [row[1] for row in short.rows] == ["…okapi…", "…plus…", "…l…"]
    assert short.note == ("AP. run: … is exp-2024/bm25- at the beginning and -stemmed-and-lowercase at the end.")


@pytest.mark.parametrize(
    "names",
    [
        ["same-name-for-all"] * 2,
        ["short-a", "short-b"],
        ["a-long-name-", "a-long-name-x"],
        ["alongname1", "alongname2"],
    ],
)
def test_names_are_kept_where_the_shared_part_is_short(names):
    table = Table(["run", "AP"], [[name, 0.5] for name in names])
    assert [row[0] for part in fitted(table, 9) for row in part.rows] == names


def test_two_columns_of_names_are_shortened_in_the_same_way():
    pairs = [[NAMED[0], NAMED[1], 0.1], [NAMED[0], NAMED[2], 0.2], [NAMED[1], NAMED[2], 0.3]]
    (short,) = fitted(Table(["run", "vs", "gap"], pairs, keys=2), 40)
    assert [row[:2] for row in short.rows] == [["…okapi…", "…plus…"], ["…okapi…", "…l…"], ["…plus…", "…l…"]]


def test_latex_marks_the_direction_of_a_difference_or_the_groups():
    qrels = {f"q{i}": {"a": 1} for i in range(20)} | {"q0": {"a": 1, "never retrieved": 0}}
    good = {query: ["a"] for query in qrels}
    fair = {query: ["x", "a"] if i % 5 else ["a"] for i, query in enumerate(qrels)}
    poor = {query: ["x", "y", "z", "a"] if i % 10 else ["a"] for i, query in enumerate(qrels)}
    runs = {"good": good, "fair": fair, "poor": poor}
    text = sy.compare(qrels, runs, ["RR"], baseline="fair").to_latex()
    assert r"good & \textbf{1.0000}$^{\uparrow***}$" in text
    assert r"poor & 0.3250$^{\downarrow***}$" in text
    assert r"poor & 0.3250$^{c}$" in sy.compare(qrels, runs, ["RR"]).to_latex()


def test_the_share_of_unjudged_documents_is_that_of_the_first_cutoff():
    qrels = {f"q{i}": {"a": 1, "b": 0} for i in range(12)}
    runs = {"one": {query: ["a", "x", "y"] for query in qrels}, "two": {query: ["z", "b", "a"] for query in qrels}}
    text = sy.compare(qrels, runs, ["P"], at=[1, 3]).to_text()
    assert "Unjudged: 0% (one) to 100% (two) of the first 1 documents." in text
