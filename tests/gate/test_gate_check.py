"""The gate: the verdict of each rule, which runs are compared, and all errors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from gate_inputs import made_result, pair
from scipy import stats

import steelyard as sy
from steelyard.errors import InputError, PolicyError, SteelyardError
from steelyard.gating import gate as check
from steelyard.statistics import adjust


def test_thresholds():
    result = made_result([0.2, 0.4, 0.6])
    gate = check(result, ["AP >= 0.4", "AP >= 0.41", "AP > 0.4", "AP < 0.41", "AP <= 0.4"])
    assert [row.passed for row in gate.rows] == [True, False, False, True, True]
    assert not gate.passed
    assert [row.rule.text for row in gate.failures] == ["AP >= 0.41", "AP > 0.4"]
    row = gate.rows[1]
    assert (row.value, row.needed, row.queries) == (pytest.approx(0.4), ">= 0.4100", 3)
    assert "0.0100 too low" in row.why
    assert [loser.query_id for loser in row.losers] == ["q0", "q1", "q2"]
    assert check(result, "AP >= 0.4").passed


def test_value_close_to_its_bound_has_enough_digits():
    row = check(made_result([0.39999, 0.39999]), "AP >= 0.4").rows[0]
    assert row.needed == ">= 0.40000"
    assert "0.00001 too low" in row.why


def test_threshold_relative_to_the_baseline():
    result, baseline = made_result([0.3, 0.5]), made_result([0.4, 0.5])
    gate = check(result, ["AP >= baseline - 0.06", "AP >= baseline - 0.04", "AP >= baseline"], baseline=baseline)
    assert [row.passed for row in gate.rows] == [True, False, False]
    row = gate.rows[1]
    assert (row.reference, row.difference) == (pytest.approx(0.45), pytest.approx(-0.05))
    assert row.needed == ">= 0.4100 (baseline 0.4500 - 0.04)"
    assert [(loser.query_id, loser.before, loser.after) for loser in row.losers] == [("q0", 0.4, 0.3)]


def test_no_significant_drop_equals_the_one_sided_paired_test_of_scipy():
    result, baseline = pair(drop=0.03)
    gate = check(result, "no significant drop in AP", baseline=baseline)
    row = gate.rows[0]
    before, after = ([values["AP"] for values in each["runs"][0]["per_query"].values()] for each in (baseline, result))
    expected = stats.ttest_rel(after, before, alternative="less")
    assert row.p == pytest.approx(expected.pvalue, rel=1e-9)
    assert row.passed is not (row.p < 0.05)
    assert row.low < row.difference < row.high
    assert row.effect == pytest.approx(expected.statistic / math.sqrt(60))


def test_drop_fails_and_gain_passes():
    result, baseline = pair(drop=0.1)
    assert not check(result, "no significant drop in AP", baseline=baseline).passed
    assert check(baseline, "no significant drop in AP", baseline=result).passed
    why = check(result, "no significant drop in AP", baseline=baseline).rows[0].why
    assert why.startswith("fell by 0.0915 [-0.1")
    assert "queries worse" in why


def test_lower_is_better_is_inverted():
    result, baseline = pair(drop=-0.1, measure="Confusion@3")
    gate = check(result, baseline=baseline)
    assert [row.rule.text for row in gate.rows] == ["no significant rise in Confusion@3"]
    assert not gate.passed
    assert gate.rows[0].losers[0].after > gate.rows[0].losers[0].before
    assert check(baseline, baseline=result).passed
    with pytest.raises(InputError, match="write `no significant rise in Confusion@3`"):
        check(result, "no significant drop in Confusion@3", baseline=baseline)
    with pytest.raises(InputError, match="write `no significant drop in AP`"):
        check(made_result([1, 0]), "no significant rise in AP", baseline=made_result([1, 0]))
    gate = check(result, "Confusion@3 >= 0.1")
    assert gate.warnings[0].code == "gate-rule-direction"
    assert "a lower value of Confusion@3 is better; check the operator" in str(gate.warnings[0])


def test_correction_is_over_all_tests_of_the_gate():
    result, baseline = (
        {**each, "runs": [{**each["runs"][0], "name": name} for name in "abc"]} for each in pair(drop=0.025)
    )
    for correction in ("none", "bonferroni", "holm", "bh"):
        gate = check(result, baseline=baseline, correction=correction)
        raw = [row.p for row in gate.rows]
        assert [row.p_adjusted for row in gate.rows] == pytest.approx(adjust(raw, correction).tolist())
    assert "holm correction over 3 tests" in check(result, baseline=baseline).method


@pytest.mark.parametrize("test", ["t", "wilcoxon", "sign", "permutation", "bootstrap"])
def test_every_paired_test(test):
    result, baseline = pair(drop=0.1)
    gate = check(result, baseline=baseline, test=test, permutations=2_000)
    assert not gate.passed
    assert f"the paired {test} test" in gate.method
    assert check(baseline, baseline=result, test=test, permutations=2_000).passed


def test_slices():
    kinds = {f"q{number}": {"kind": "odd" if number % 2 else "even"} for number in range(6)}
    result = made_result([0.0, 1.0] * 3)
    gate = check(result, ["AP[kind=odd] >= 0.9", "AP[kind=even] >= 0.9", "AP >= 0.5"], queries=kinds)
    assert [(row.passed, row.queries) for row in gate.rows] == [(True, 3), (False, 3), (True, 6)]
    changed, baseline = pair(drop=0.2, spread=0.05)
    half = {f"q{number}": {"kind": "odd" if number % 2 else "even"} for number in range(60)}
    for number in range(1, 60, 2):
        changed["runs"][0]["per_query"][f"q{number}"] = baseline["runs"][0]["per_query"][f"q{number}"]
    gate = check(
        changed,
        ["no significant drop in AP[kind=odd]", "no significant drop in AP[kind=even]"],
        baseline=baseline,
        queries=half,
    )
    assert [row.passed for row in gate.rows] == [True, False]
    assert {loser.query_id for loser in gate.rows[1].losers} <= {f"q{n}" for n in range(0, 60, 2)}
    with pytest.raises(InputError, match=r"no query has kind=both; the values are even, odd"):
        check(result, "AP[kind=both] >= 0", queries=kinds)
    with pytest.raises(InputError, match=r"the queries have no column 'sort'"):
        check(result, "AP[sort=odd] >= 0", queries=kinds)
    with pytest.raises(
        InputError, match=r"has no column 'kind' of its queries; it has none.*queries='FILE' \(--set queries=FILE\)"
    ):
        check(result, "AP[kind=odd] >= 0")


def test_run_is_compared_with_the_run_of_the_same_name_or_the_only_one():
    two = {**made_result([1, 1, 0.5]), "runs": [made_result([0.5, 1, 1], run)["runs"][0] for run in ("a", "b")]}
    gate = check(two, "AP >= baseline", baseline=two)
    assert [(row.run, row.baseline) for row in gate.rows] == [("a", "a"), ("b", "b")]
    gate = check(two, "AP >= baseline", baseline=made_result([1, 1, 1], "old"))
    assert [(row.run, row.baseline) for row in gate.rows] == [("a", "old"), ("b", "old")]
    assert "run 'a' is compared with 'old', the only run of the baseline" in map(str, gate.warnings)
    assert [row.run for row in check(two, "AP > 0", run="b").rows] == ["b"]
    assert [row.run for row in check(two, "AP > 0", run=["b", "a"]).rows] == ["b", "a"]
    gate = check(two, "AP >= baseline", baseline=two, run="a", baseline_run="b")
    assert (gate.rows[0].run, gate.rows[0].baseline) == ("a", "b")
    with pytest.raises(InputError, match="'mine' is not in the baseline.*run='NAME'.*baseline_run='NAME'"):
        check(made_result([1, 1, 1]), "AP >= baseline", baseline=two)
    with pytest.raises(InputError, match="there is no run 'c'.*expected one of a, b"):
        check(two, "AP > 0", run="c")
    with pytest.raises(InputError, match="there is no run 'c'"):
        check(two, "AP >= baseline", baseline=two, baseline_run="c")


def test_default_rules_apply_if_no_rule_compares_with_the_baseline():
    result, baseline = pair(drop=0.1)
    gate = check(result, "AP >= 0.1", baseline=baseline)
    assert [(row.rule.text, row.passed) for row in gate.rows] == [
        ("AP >= 0.1", True),
        ("no significant drop in AP", False),
    ]
    gate = check(result, "AP >= baseline - 0.5", baseline=baseline)
    assert [row.rule.text for row in gate.rows] == ["AP >= baseline - 0.5"]


def test_measure_without_values_is_not_checked_by_default():
    bare = {**made_result([1]), "runs": [{"name": "r", "per_query": {q: {"AP": 1.0, "Abstain": None} for q in "abc"}}]}
    gate = check(bare, baseline=bare)
    assert [row.rule.text for row in gate.rows] == ["no significant drop in AP"]
    expected = "the measure Abstain has no value for any query, in the result and in the baseline, and is not checked"
    assert expected in map(str, gate.warnings)
    with pytest.raises(InputError, match="a rule over no queries has no meaning"):
        check(bare, "no significant drop in Abstain", baseline=bare)


def test_latency_is_not_checked_by_default():
    slow, quick = (
        {
            **each,
            "runs": [
                {"name": "r", "per_query": {q: {"AP": 1.0, "Latency": v} for q, v in zip("abc", times, strict=True)}}
            ],
        }
        for each, times in ((made_result([1]), [3.0, 4.0, 5.0]), (made_result([1]), [1.0, 1.1, 1.2]))
    )
    gate = check(slow, baseline=quick)
    assert gate.passed
    assert any("Latency depends on the machine and is not checked" in line for line in map(str, gate.warnings))
    assert not check(slow, "Latency <= baseline + 1", baseline=quick).passed
    for rule in ("no significant rise in Latency", "Latency not worse than baseline by 0.1"):
        with pytest.raises(InputError, match=r"times were not measured together.*Latency <= baseline \+ 0.05"):
            check(slow, rule, baseline=quick)


def test_nothing_to_check_is_an_error():
    with pytest.raises(InputError, match="nothing to check.*rules=.*--save-baseline"):
        check(made_result([1, 1]))


def test_all_rules_that_cannot_be_checked_are_reported():
    with pytest.raises(InputError) as error:
        check(made_result([1, 1]), ["RR > 0", "APP > 0", "no significant drop in AP"])
    for part in ("3 of 3 rules cannot be checked", "'RR' is not measured", "which has AP", "needs a baseline"):
        assert part in str(error.value)
    with pytest.raises(InputError, match="'RR' is not measured in the baseline"):
        check(made_result([1, 1], measure="RR"), "RR >= baseline", baseline=made_result([1, 1]))
    with pytest.raises(InputError, match="no measure in common"):
        check(made_result([1, 1], measure="RR"), baseline=made_result([1, 1]))


def test_another_spelling_of_a_measure_is_found():
    assert check(made_result([1, 1], measure="nDCG@10"), "ndcg_cut_10 >= 1").rows[0].measure == "nDCG@10"


def test_rule_without_values_is_an_error():
    with pytest.raises(InputError, match="a rule over no queries has no meaning"):
        check(made_result([None, None]), "AP >= 0")
    with pytest.raises(InputError, match="a rule over no queries has no meaning"):
        check(
            {**made_result([1]), "runs": [{"name": "a", "per_query": {"q0": {"AP": None, "RR": 1}}}]},
            "AP <= baseline",
            baseline=made_result([1]),
        )
    gate = check(made_result([1, None]), "AP >= 1")
    assert (gate.passed, gate.rows[0].queries) == (True, 1)


def test_missing_new_and_other_queries():
    whole, part = made_result([1.0, 1.0, 0.0]), made_result([1.0, 1.0])
    with pytest.raises(
        InputError,
        match=r"1 of the 3 queries of the baseline has no value.*\(q2\).*allow='queries' \(--allow queries\)",
    ):
        check(part, "AP >= baseline", baseline=whole)
    gate = check(part, "AP >= baseline", baseline=whole, allow="queries")
    assert (gate.rows[0].queries, gate.rows[0].reference) == (2, 1.0)
    assert any("is left out" in line for line in map(str, gate.warnings))
    gate = check(whole, ["AP >= baseline", "AP >= 0.9"], baseline=part)
    assert [(row.queries, row.passed) for row in gate.rows] == [(2, True), (3, False)]
    assert any("1 of the 3 queries of run 'mine' is not in the baseline (q2)" in w for w in map(str, gate.warnings))
    other = {**part, "runs": [{"name": "mine", "per_query": {"x1": {"AP": 1}}}]}
    with pytest.raises(InputError, match="no query in common"):
        check(part, "AP >= baseline", baseline=other, allow=["queries"])
    with pytest.raises(InputError, match="'query' cannot be allowed"):
        check(part, "AP > 0", allow=["query"])


def test_values_missing_from_the_result_are_counted():
    result, baseline = (
        {**made_result([1]), "runs": [{"name": "r", "per_query": {q: {"AP": 1.0, "RR": v} for q, v in rows.items()}}]}
        for rows in ({"a": 0.5, "b": None}, {"a": 0.5, "b": 1.0})
    )
    gate = check(result, "RR >= baseline", baseline=baseline)
    assert gate.rows[0].queries == 1
    assert any("no value of RR for 1 query that has one in the baseline" in w for w in map(str, gate.warnings))


def test_other_judgments_are_an_error_unless_allowed():
    result, baseline = made_result([1, 1]), made_result([1, 1], judged="another")
    with pytest.raises(
        InputError, match=r"2 of 2 queries have other judgments.*allow='judgments' \(--allow judgments\)"
    ):
        check(result, baseline=baseline)
    allowed = check(result, baseline=baseline, allow=["judgments"])
    assert any("part of the change may come from the qrels" in str(note) for note in allowed.warnings)
    del baseline["judgments"]
    assert any("assumed to be the same" in str(note) for note in check(result, baseline=baseline).warnings)


def test_other_definitions_and_policies_are_errors():
    with pytest.raises(InputError, match="measured differently") as error:
        check(
            made_result([1, 1], measure="MAP", dialect="ranx"),
            baseline=made_result([1, 1], measure="MAP", dialect="autorag"),
        )
    assert "MAP is AP(" in str(error.value)
    with pytest.raises(InputError, match="missing is skip in the result and zero in the baseline"):
        check(
            made_result([1, 1], policies={"missing": "skip"}),
            baseline=made_result([1, 1], policies={"missing": "zero"}),
        )
    same = check(made_result([1, 0], measure="RR", dialect="ranx"), baseline=made_result([1, 0], measure="RR"))
    assert any("the measures that are compared have the same definition" in str(note) for note in same.warnings)


def test_another_version_or_dataset_is_noted():
    gate = check(made_result([1, 0], steelyard="9.9"), baseline=made_result([1, 0]))
    assert any("evaluated by Steelyard 9.9" in line for line in map(str, gate.warnings))
    one, two = ({"name": "d", "fingerprint": mark} for mark in ("aa", "bb"))
    gate = check(made_result([1, 0], dataset=one), baseline=made_result([1, 0], dataset=two))
    assert any("the dataset differs from that of the baseline" in line for line in map(str, gate.warnings))


def test_unchanged_values_are_noted():
    gate = check(made_result([1, 0]), baseline=made_result([1, 0]))
    assert gate.rows[0].why == "the same on each of 2 queries"
    assert any("every value of mine equals that of the baseline" in line for line in map(str, gate.warnings))


def test_differences_by_rounding_are_ignored():
    before = [0.1 * number for number in range(1, 9)]
    after = [value - 1e-15 * number for number, value in enumerate(before, 1)]
    gate = check(made_result(after), ["AP >= baseline", "no significant drop in AP"], baseline=made_result(before))
    assert gate.passed
    assert gate.rows[1].why == "the same on each of 8 queries"
    assert [row.losers for row in gate.rows] == [(), ()]


def test_values_of_other_definitions_are_not_shown_together():
    result, baseline = (
        {
            **made_result([1]),
            "measures": {"MAP": spelled, "RR": "RR"},
            "runs": [{"name": "r", "per_query": {f"q{n}": {"MAP": v, "RR": 1.0} for n in range(3)}}],
        }
        for spelled, v in (("one", 0.2), ("another", 0.9))
    )
    gate = check(result, ["MAP >= 0.5", "RR >= baseline"], baseline=baseline)
    assert [loser.before for loser in gate.rows[0].losers] == [None] * 3


def test_too_few_queries():
    with pytest.raises(InputError, match="with 1 query of run 'mine' no difference can be significant"):
        check(made_result([0.0]), baseline=made_result([1.0]))
    with pytest.raises(InputError, match="with 4 queries of run 'mine' no difference can be significant by the sign"):
        check(made_result([0.0] * 4), baseline=made_result([1.0] * 4), test="sign")
    assert not check(made_result([0.0] * 5), baseline=made_result([1.0] * 5), test="sign").passed
    gate = check(made_result([0.1, 0.0, 0.9]), baseline=made_result([0.5, 0.4, 0.3]))
    assert gate.passed
    assert any("are too few: they would probably miss" in line for line in map(str, gate.warnings))
    assert (
        "would be needed if the true"
        not in check(made_result([0.5, 0.6]), baseline=made_result([0.5, 0.4])).rows[0].why
    )


def test_power_is_one_sided_and_of_the_corrected_level():
    result, baseline = pair(drop=0.005)
    row = check(result, baseline=baseline).rows[0]
    gaps = np.array([
        result["runs"][0]["per_query"][q]["AP"] - baseline["runs"][0]["per_query"][q]["AP"]
        for q in result["runs"][0]["per_query"]
    ])  # fmt: skip
    assert row.passed
    assert f"60 queries detect a drop of {row.detectable:.4f} 80% of the time" in row.why
    critical = stats.t.ppf(0.95, 59)
    chance = stats.nct.sf(critical, 59, row.detectable / gaps.std(ddof=1) * math.sqrt(60))
    assert chance == pytest.approx(0.8, abs=1e-4)


def test_wrong_settings():
    result, baseline = pair()
    for settings, why in (
        ({"test": "tukey"}, "a gate cannot use the test 'tukey'"),
        ({"correction": "holms"}, "Did you mean holm"),
        ({"alpha": 0.5}, "alpha is 0.5"),
        ({"alpha": 0}, "alpha is 0"),
    ):
        with pytest.raises(PolicyError, match=why):
            check(result, baseline=baseline, **settings)
    with pytest.raises(SteelyardError, match="a gate cannot check a int"):
        check(3, "AP > 0")


def test_scores_and_the_callable_package():
    qrels = {f"q{number}": ["a"] for number in range(8)}
    good = sy.evaluate(qrels, {query: ["a"] for query in qrels}, ["RR", "P@1"], name="r")
    bad = sy.evaluate(qrels, {query: ["x", "a"] for query in qrels}, ["RR", "P@1"], name="r")
    assert sy.gate(good, "RR >= 1").passed
    gate = sy.gate(bad, baseline=good)
    assert [row.passed for row in gate.rows] == [False, False]
    assert "RR" in gate._repr_html_()
    assert "<script" not in sy.gate(sy.evaluate(qrels, {"q0": ["a"]}, ["RR"], name="<script>"), "RR > 0")._repr_html_()


@pytest.mark.slow
@pytest.mark.parametrize(("correction", "measures"), [("none", 1), ("holm", 3)])
def test_false_positive_rate_is_alpha(correction, measures):
    """With noise only, the gate fails about 5 times in 100."""
    random = np.random.default_rng(11)
    times, queries = 1000, 100
    alarms = 0
    for _ in range(times):
        noise = random.normal(0.0, 0.1, (2, queries, measures))
        before, after = (
            {
                "runs": [
                    {
                        "name": "r",
                        "per_query": {
                            f"q{q}": {f"P@{m + 1}": 0.5 + v for m, v in enumerate(row)} for q, row in enumerate(rows)
                        },
                    }
                ]
            }
            for rows in noise.tolist()
        )
        alarms += not check(after, baseline=before, correction=correction).passed
    # Within three standard errors of 5%.
    assert abs(alarms / times - 0.05) < 3 * math.sqrt(0.05 * 0.95 / times)


@pytest.mark.slow
def test_power_equals_that_of_the_t_test():
    times, caught = 1000, 0
    for number in range(times):
        result, baseline = pair(drop=0.025, n=100, seed=10_000 + number, spread=0.1)
        caught += not check(result, baseline=baseline).passed
    # The power of a one-sided t-test with d = 0.25 and n = 100, and three standard errors.
    power = stats.nct.sf(stats.t.ppf(0.95, 99), 99, 2.5)
    assert abs(caught / times - power) < 3 * math.sqrt(power * (1 - power) / times)


def test_baseline_with_one_run_checks_that_run():
    result, baseline = pair()
    result["runs"].append({**made_result([0.0] * 60, run="random")["runs"][0]})
    gate = check(result, ["AP >= 0.1"], baseline=baseline)
    assert {row.run for row in gate.rows} == {"mine"}
    expected = "only 'mine' was checked, the only run of the baseline; run='NAME' (--run NAME) checks another"
    assert expected in map(str, gate.warnings)
    named = check(result, ["AP >= 0.1"], baseline=baseline, run=["mine", "random"])
    assert {row.run for row in named.rows} == {"mine", "random"}
    assert not named.passed


def test_a_geometric_mean_is_tested_by_its_logarithms():
    """The mean of the values rises and their geometric mean drops: GMAP must not hide the hard queries."""
    random = np.random.default_rng(3)
    before = random.uniform(0.2, 0.3, 60)
    after = np.where(np.arange(60) < 40, before / 20, before + 0.5)
    now, base = (made_result(values.tolist(), measure="GMAP") for values in (after, before))
    (row,) = check(now, ["no significant drop in GMAP"], baseline=base).rows
    assert after.mean() > before.mean()
    assert not row.passed
    assert row.low < row.difference < row.high < 0
    (margin,) = check(now, ["GMAP not worse than baseline by 0.01"], baseline=base).rows
    assert (margin.low, margin.high) == (row.low, row.high)
    assert not margin.passed
