"""One comparison on every surface: the same pairs, numbers and verdicts, cell by cell, whatever the baseline."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from itertools import combinations

import numpy as np
import pytest

import steelyard as sy
from needs import import_peer
from pooled_collection import collection
from steelyard.comparison.across import dataset_values, measured_column, reverse
from steelyard.comparison.failures import run_failures
from steelyard.report.charts.data import difference_rows, p_rows
from steelyard.report.page.queries import Kept
from steelyard.report.page.subject import comparison_subject
from steelyard.report.page.view import lead, view_of
from steelyard.statistics import groups_of, shown_p

MEASURES = ["nDCG@10", "P@5"]
WHOLE, JUDGED, RUNS = collection()
SETTINGS = [
    {},
    {"baseline": "d"},
    {"baseline": "a", "correction": "bonferroni"},
    {"correction": "bh"},
    {"correction": "none", "alpha": 0.1},
    {"test": "tukey", "permutations": 500},
    {"test": "max-t", "baseline": "b", "permutations": 500},
    {"test": "wilcoxon"},
]


def numbers(pair) -> tuple[str, str, str, str]:
    """What a table shows of a pair."""
    p = f"{shown_p(pair.p_adjusted)} {pair.stars if pair.stars != 'ns' else ''}".rstrip()
    return f"{pair.difference:+.4f}", f"{pair.low:+.4f} to {pair.high:+.4f}", p, pair.shown_verdict


def shown_rows(form: str, text: str, with_baseline: bool) -> list[tuple[str, ...]]:
    """The rows of the tables of pairs in a form: run, the other run if it has a column, and `numbers`."""
    width = 5 if with_baseline else 6
    breaks = {"text": r"\s{2,}", "markdown": r" \| ", "latex": r" & ", "html": r"</td>"}[form]
    found = []
    for line in re.split(r"\n|</tr>", text):
        cells = [html.unescape(re.sub(r"<[^>]*>|[`$|]", "", cell)).strip() for cell in re.split(breaks, line)]
        cells = [re.sub(r"\^\{(\**)\}", r" \1", cell.replace(r"\textless{}", "<")) for cell in cells]
        if len(cells) > width and re.fullmatch(r"[+-]\d\.\d{4}", cells[width - 4]):
            found.append(tuple(cells[:width]))
    return found


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda each: "-".join(map(str, each.values())) or "default")
@pytest.mark.filterwarnings("ignore::steelyard.SteelyardWarning")
def test_every_surface_shows_the_same_pairs(settings):
    import_peer("jinja2")
    result = sy.compare(JUDGED, RUNS, MEASURES, **settings)
    asked = {(pair.run, pair.baseline, pair.measure): pair for pair in result.tested_pairs}
    first = [pair for pair in asked.values() if pair.measure == "nDCG@10"]
    every = {pair.names: pair for pair in result.every_pair}
    assert len(every) == 6
    assert all(every[pair.names] is pair for pair in first)

    # The frame and JSON
    for row in [*result.pairs.to_dicts(), *json.loads(result.to_json())["pairs"]]:
        pair = asked[row["run"], row["baseline"], row["measure"]]
        expected = (pair.difference, pair.low, pair.high, pair.p, pair.p_adjusted, pair.verdict, pair.needed)
        shown = (row[name] for name in ("difference", "low", "high", "p", "p_adjusted", "verdict", "needed"))
        assert tuple(shown) == expected
    data = json.loads(result.to_json())
    assert data["interval"] == result.interval_heading
    assert data["permutations"] == settings.get("permutations")

    # Terminal, Markdown, LaTeX, notebooks
    baseline = result.plan.baseline
    listed = first if baseline is None else asked.values()
    expected = [(pair.run, *([] if baseline else [pair.baseline]), *numbers(pair)) for pair in listed]
    forms = {"text": result.to_text(), "markdown": result.to_markdown(), "latex": result.to_latex()}
    for form, shown in {**forms, "html": result.to_html()}.items():
        assert result.interval_heading in shown.replace(r"\%", "%")
        assert sorted(shown_rows(form, shown, baseline is not None)) == sorted(expected), form
    # The short table of the terminal
    summary = result.summary(200)
    assert f"[{result.interval_heading}]" in summary
    for row in result.leaderboard_rows:
        pair = every.get(frozenset((row.run, baseline or result.run_order[0])))
        if pair is not None:
            sign = 1 if pair.run == row.run else -1
            ends = sorted(sign * end for end in (pair.low, pair.high))
            cell = f"{sign * pair.difference:+.3f} [{', '.join(f'{end:+.3f}'.replace('0.', '.') for end in ends)}]"
            assert f"{cell} {pair.stars.replace('ns', '')}".rstrip() in summary
    # CSV has the differences from the baseline.
    for row in csv.DictReader(io.StringIO(result.to_csv())) if baseline is not None else ():
        for measure in MEASURES:
            pair = asked.get((row["run"], baseline, measure))
            if pair is not None:
                kinds = ("difference", "difference low", "difference high", "p_adjusted")
                found = [float(row[f"{measure} {what}"]) for what in kinds]
                assert found == [pair.difference, pair.low, pair.high, pair.p_adjusted]
                assert row[f"{measure} verdict"] == pair.verdict

    # The page: table, matrix, charts, and the sentence on the leader
    view = view_of(comparison_subject(result), run_failures(result), Kept([], True))
    for row in view["pairs"]:
        pair = asked[row["run"], row["vs"], row["measure"]]
        assert (row["difference"], row["interval"], row["p"], row["verdict"]) == numbers(pair)
    order, matrix = result.run_order, view["matrix"]
    for i, j in combinations(range(4), 2):
        pair = every[frozenset((order[i], order[j]))]
        for one, other, sign in ((i, j, 1), (j, i, -1)):
            sign = sign if pair.run == order[i] else -sign
            cell = matrix["rows"][one][other]
            facts = dict(matrix["pairs"][cell["number"]]["facts"])
            assert float(cell["text"]) == pytest.approx(sign * pair.difference, abs=5e-4)
            assert (cell["kind"] == "undecided") == (pair.verdict == "undecided")
            assert (cell["kind"] in ("gain", "loss")) == (pair.verdict in ("better", "worse", "different"))
            assert facts["Difference on nDCG@10"] == numbers(pair)[0]
            assert facts[result.interval_heading] == numbers(pair)[1]
            assert pair.shown_verdict in next(text for text in facts.values() if ": " in text)
    for row in p_rows(result):
        if row["measure"] == "nDCG@10":
            pair = every[frozenset((row["run"], row["vs"]))]
            assert row["p"] == pair.p_adjusted
            assert (row["level"] == "undecided") == (pair.verdict == "undecided")
    reference = result.plan.baseline or order[0]
    for row in difference_rows(result, reference):
        pair = next(p for p in asked.values() if p.measure == row["measure"] and p.names == {row["run"], reference})
        ends = sorted((1 if pair.baseline == reference else -1) * end for end in (pair.low, pair.high))
        assert [row["low"], row["high"]] == pytest.approx(ends, rel=1e-5)
    leading = result.leading_pair
    assert dict(lead(result))[result.interval_heading] == numbers(leading)[1]

    # Groups, ranks and the verdict
    claimed = ("better", "worse", "different")
    p = np.ones((4, 4))
    for pair in every.values():
        i, j = (result.runs.index(run) for run in (pair.run, pair.baseline))
        p[i, j] = p[j, i] = 0.0 if pair.verdict in claimed else 1.0
    worth = [-order.index(run) for run in result.runs]
    letters = dict(zip(result.runs, groups_of(worth, p), strict=True))
    for row in result.leaderboard_rows:
        others = [every[frozenset((row.run, run))] for run in order if run != row.run]
        above = order[: order.index(row.run)]
        better = sum(pair.verdict in claimed and bool(pair.names & set(above)) for pair in others)
        worse = sum(pair.verdict in claimed and not pair.names & set(above) for pair in others)
        assert (row.group, row.rank_low, row.rank_high) == (letters[row.run], 1 + better, 4 - worse)
    verdict = result.verdict
    for run in order[1:]:
        pair = every[frozenset((order[0], run))]
        assert (run in verdict.tied) == (pair.verdict in ("not significant", "equal", "not tested"))
        assert not (run in verdict.undecided and pair.verdict != "undecided")

    # Several datasets
    table, column = measured_column(result, None)
    verdicts = dataset_values("here", result, table, column, None).verdicts
    for pair in every.values():
        assert verdicts[pair.run, pair.baseline] == pair.verdict
        assert verdicts[pair.baseline, pair.run] == reverse(pair.verdict)


@pytest.mark.filterwarnings("ignore::steelyard.SteelyardWarning")
def test_a_pair_has_the_same_verdict_whatever_the_baseline():
    """With correction none the families do not matter, and neither does the baseline."""
    without = sy.compare(JUDGED, RUNS, ["nDCG@10"], correction="none")

    def verdicts(result):
        """The verdict on the run that comes first by name."""
        return {
            pair.names: (pair.verdict if pair.run < pair.baseline else reverse(pair.verdict), pair.p)
            for pair in result.every_pair
        }

    expected = verdicts(without)
    assert {verdict for verdict, _ in expected.values()} >= {"undecided"}
    for name in RUNS:
        found = sy.compare(JUDGED, RUNS, ["nDCG@10"], correction="none", baseline=name)
        for names, (verdict, p) in expected.items():
            assert verdicts(found)[names] == (verdict, pytest.approx(p))
    # And the claims that are left hold with the complete qrels.
    whole = sy.compare(WHOLE, RUNS, ["nDCG@10"], correction="none")
    means = dict(zip(whole.leaderboard["run"], whole.leaderboard["nDCG@10"], strict=True))
    for pair in without.every_pair:
        if pair.verdict in ("better", "worse"):
            assert (means[pair.run] > means[pair.baseline]) == (pair.verdict == "better")
