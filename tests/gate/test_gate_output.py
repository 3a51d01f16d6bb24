"""Output of a gate: valid JUnit, safe Markdown, JSON, CSV, and the same bytes every time."""

from __future__ import annotations

import csv
import io
import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from gate_inputs import made_result, pair

from steelyard.gating import gate as check

HOSTILE = "<b>\x00\x1b[31m]]>&\"'|`@all\n# [x](http://x)\ud800\uffff"


def hostile():
    result = made_result([0.1, 0.2], run=HOSTILE)
    result["runs"][0]["per_query"] = {HOSTILE + str(n): {"AP": 0.1 * n} for n in range(3)}
    return check(result, ["AP >= 0.05", "AP >= 0.5"])


def junit_problems(root):
    """What a JUnit reader would reject."""
    problems = [] if root.tag == "testsuites" else ["no testsuites"]
    for level in (root, *root):
        cases = list(level.iter("testcase"))
        failures = [case for case in cases if case.find("failure") is not None]
        if (level.get("tests"), level.get("failures")) != (str(len(cases)), str(len(failures))):
            problems.append(f"counts of {level.get('name')}")
        if (level.get("errors"), level.get("skipped")) != ("0", "0"):
            problems.append("errors or skipped")
    for suite in root:
        order = [child.tag for child in suite]
        if suite.tag != "testsuite" or not re.fullmatch(
            r"properties (testcase )+(system-err )?", " ".join(order) + " "
        ):
            problems.append(f"order {order}")
        for case in suite.iter("testcase"):
            if not case.get("name") or not case.get("classname") or case.get("time") is None:
                problems.append("a case without name, classname or time")
            if [child.tag for child in case] not in (["failure"], ["system-out"]):
                problems.append("a case with anything else")
            failure = case.find("failure")
            if failure is not None and not (failure.get("message") and failure.get("type") and failure.text):
                problems.append("a failure without message, type or text")
    return problems


def test_junit_has_one_suite_per_run_and_one_case_per_rule():
    result, baseline = pair(drop=0.1)
    result["runs"].append({**result["runs"][0], "name": "other"})
    rules = ["AP >= 0.1", "no significant drop in AP"]
    gate = check(result, rules, baseline=baseline, run=["mine", "other"])
    root = ElementTree.fromstring(gate.to_junit().encode())
    assert junit_problems(root) == []
    assert [suite.get("name") for suite in root] == ["mine", "other"]
    assert [case.get("name") for case in root[0].iter("testcase")] == ["AP >= 0.1", "no significant drop in AP"]
    failure = root[0].find(".//failure")
    assert "fell by" in failure.get("message")
    assert failure.get("type") == "drop"
    assert gate.rows[1].losers[0].query_id in failure.text
    assert root[0].find("properties/property[@name='baseline run']").get("value") == "mine"


def test_junit_with_hostile_names():
    text = hostile().to_junit()
    root = ElementTree.fromstring(text.encode())
    assert junit_problems(root) == []
    assert root[0].get("name").startswith("<b>\\u0000\\u001b[31m]]>&\"'|`@all")
    assert "\\ud800\\uffff" in root[0].get("name")


def test_markdown_starts_with_the_verdict_and_ends_with_the_command():
    result, baseline = pair(drop=0.1)
    gate = check(result, baseline=baseline, alpha=0.01, run="mine")
    text = gate.to_markdown()
    assert text.startswith("## The gate FAILED: 1 of 1 rule of run mine failed.\n\n| rule |")
    assert "| **FAILED** |" in text
    assert "### Largest losses on `AP` in `mine`" in text
    assert text.count("| `q") == 5
    assert "one-sided, alpha 0.01" in text
    assert text.endswith("    steelyard gate 'the result' --baseline 'the baseline' --run mine --set alpha=0.01")
    passed = check(baseline, baseline=result).to_markdown()
    assert passed.startswith("## The gate passed: 1 rule of run mine passed.")
    assert "### Largest losses" in passed


def test_markdown_with_hostile_names():
    text = hostile().to_markdown()
    widths = {len(re.findall(r"(?<!\\)\|", line)) for line in text.splitlines() if line.startswith("| ")}
    assert widths == {6, 3}
    outside = re.sub(r"`[^`\n]*`", "", text)
    for part in (r"(?<!\\)<b>", r"\[x\]\(", "\x00", "\x1b", "\n# \\[x"):
        assert not re.search(part, outside.split("### To reproduce")[0]), part
    assert not re.search(r"(?<!\w)@all", outside.split("### To reproduce")[0])
    assert all(line.startswith("    ") for line in text.split("### To reproduce\n\n")[1].splitlines())


def test_json_has_plain_numbers():
    result, baseline = made_result([0.5] * 6), made_result([1.0] * 6)
    made = json.loads(check(result, ["AP >= 0.5", "no significant drop in AP"], baseline=baseline).to_json())
    assert made["passed"] is False
    assert [row["rule"] for row in made["rows"]] == ["AP >= 0.5", "no significant drop in AP"]
    assert made["rows"][1]["effect"] is None  # minus infinity: the same drop on every query
    assert made["rows"][1]["p"] == 0.5**6
    assert made["rows"][0]["p"] is None
    assert (made["test"], made["alpha"], made["correction"]) == ("t", 0.05, "holm")


def test_same_input_gives_the_same_bytes():
    def written():
        result, baseline = pair(drop=0.02, n=40)
        gate = check(result, baseline=baseline, test="permutation", permutations=1_000)
        return gate.to_junit(), gate.to_markdown(), gate.to_json(), repr(gate), gate._repr_html_()

    assert written() == written()


def test_text_has_rules_numbers_and_worst_queries():
    result, baseline = pair(drop=0.1)
    gate = check(result, baseline=baseline)
    text = gate.to_text()
    worst = gate.rows[0].losers[0]
    for part in (
        "The gate FAILED",
        "mine: no significant drop in AP",
        "fell by",
        f"{worst.query_id}: {worst.before:.4f} -> {worst.after:.4f}",
    ):
        assert part in text
    assert "verdict" in repr(gate)
    assert "<strong>The gate FAILED" in gate._repr_html_()


def shifted(t, n=60):
    """(result, baseline) whose differences have this t statistic."""
    noise = np.random.default_rng(5).normal(size=n)
    noise = (noise - noise.mean()) / noise.std(ddof=1)
    return made_result((0.5 + 0.1 * (noise + t / n**0.5)).tolist()), made_result([0.5] * n)


def test_disagreement_of_interval_and_p_is_explained():
    result, baseline = shifted(-1.8)
    gate = check(result, baseline=baseline)
    row = gate.rows[0]
    assert not row.passed
    assert row.low < 0 < row.high
    expected = "Interval and p-value disagree for `no significant drop in AP` for mine: the interval is two-sided"
    for form in (gate.method, repr(gate), gate.to_text(), gate._repr_html_()):
        assert expected in form
    assert "p is one-sided. The rules follow p." in gate.method
    assert "Interval and p-value disagree for" in gate.to_markdown()


@pytest.mark.parametrize("t", [-6.0, -1.0, 6.0])
def test_no_explanation_if_interval_and_p_agree(t):
    result, baseline = shifted(t)
    assert "disagree" not in check(result, baseline=baseline).method


def test_disagreement_on_a_rise_if_lower_is_better():
    result, baseline = shifted(1.8)
    for made in (result, baseline):
        for values in made["runs"][0]["per_query"].values():
            values["Confusion@5"] = values.pop("AP")
    gate = check(result, baseline=baseline)
    assert gate.rows[0].rule.kind == "rise"
    assert "disagree for `no significant rise in Confusion@5`" in gate.method


def test_csv_has_all_numbers_and_failed_rules_first():
    result, baseline = pair(drop=0.1)
    gate = check(result, ["AP >= 0.1", "no significant drop in AP"], baseline=baseline)
    rows = list(csv.DictReader(io.StringIO(gate.to_csv())))
    assert [row["verdict"] for row in rows] == ["FAILED", "passed"]
    assert [row[3] for row in gate.table.rows] == ["FAILED", "passed"]
    failed = gate.rows[1]
    assert (float(rows[0]["difference"]), float(rows[0]["low"]), float(rows[0]["high"])) == (
        failed.difference, failed.low, failed.high,
    )  # fmt: skip
    assert (float(rows[0]["p"]), float(rows[0]["p_adjusted"])) == (failed.p, failed.p_adjusted)
    assert rows[1]["p"] == ""
