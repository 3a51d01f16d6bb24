"""Rules as text: how they are parsed, and how mistakes are reported."""

from __future__ import annotations

import math

import pytest

from steelyard.comparison.rules import parse_rule, parse_rules, read_rules
from steelyard.errors import InputError


@pytest.mark.parametrize(
    ("text", "kind", "measure", "operator", "number", "column", "value"),
    [
        ("nDCG@10 >= 0.40", "threshold", "nDCG@10", ">=", 0.4, None, ""),
        ("  Latency(stat=p95)<.2 ", "threshold", "Latency(stat=p95)", "<", 0.2, None, ""),
        ("P(rel=2)@5 > 1e-3", "threshold", "P(rel=2)@5", ">", 0.001, None, ""),
        ("Confusion@3 <= 0.1", "threshold", "Confusion@3", "<=", 0.1, None, ""),
        ("composite at 3 >= -1", "threshold", "composite at 3", ">=", -1.0, None, ""),
        ("AP >= baseline", "baseline", "AP", ">=", 0.0, None, ""),
        ("AP >= baseline - 0.01", "baseline", "AP", ">=", -0.01, None, ""),
        ("AP >= Baseline −0.01", "baseline", "AP", ">=", -0.01, None, ""),
        ("AP >= the baseline - 0.01", "baseline", "AP", ">=", -0.01, None, ""),
        ("AP not worse than the baseline by 0.05", "not worse", "AP", "", 0.05, None, ""),
        ("AP equivalent to the baseline within 0.01", "equivalent", "AP", "", 0.01, None, ""),
        ("Latency <= baseline + 0.05", "baseline", "Latency", "<=", 0.05, None, ""),
        ("no significant drop in AP", "drop", "AP", "", 0.0, None, ""),
        ("No  significant  rise in Confusion@3", "rise", "Confusion@3", "", 0.0, None, ""),
        ("AP[type=multi hop] >= 0.3", "threshold", "AP", ">=", 0.3, "type", "multi hop"),
        ("AP[a=b=c] >= baseline", "baseline", "AP", ">=", 0.0, "a", "b=c"),
        ("AP[size=x > y] >= 0.3", "threshold", "AP", ">=", 0.3, "size", "x > y"),
        ("AP[size='[odd]'] >= 0.3", "threshold", "AP", ">=", 0.3, "size", "[odd]"),
        ("no significant drop in AP[lang=de]", "drop", "AP", "", 0.0, "lang", "de"),
        ("nDCG(gain={1: 1, 2: 3})@10[t=x] >= 0.1", "threshold", "nDCG(gain={1: 1, 2: 3})@10", ">=", 0.1, "t", "x"),
    ],
)  # fmt: skip
def test_each_form(text, kind, measure, operator, number, column, value):
    rule = parse_rule(text)
    assert (rule.kind, rule.measure, rule.operator, rule.number, rule.column, rule.value) == (
        kind, measure, operator, number, column, value,
    )  # fmt: skip
    assert parse_rule(rule.text) == rule


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is empty"),
        ("nDCG@10", "the nearest is `MEASURE >= NUMBER`"),
        ("nDCG@10 == 0.4", "the nearest is `MEASURE >= NUMBER`"),
        ("nDCG@10 = baseline - 0.1", "the nearest is `MEASURE >= baseline - NUMBER`"),
        ("nDCG@10 no worse than base by 0.05", "the nearest is `MEASURE not worse than baseline by NUMBER`"),
        ("nDCG@10 equal to baseline within 1e-2", "the nearest is `MEASURE equivalent to baseline within NUMBER`"),
        ("no significant drop of AP", "the nearest is `no significant drop in MEASURE`"),
        ("no significant rises in AP", "the nearest is `no significant rise in MEASURE`"),
        ("AP not worse than baseline by 5%", "a share is written 0.4, not 40%; expected a number. The forms"),
        ("nDCG@10 => 0.4", "expected >=, <=, > or <"),
        (">= 0.4", "names no measure"),
        ("nDCG@10 >= 40%", "a share is written 0.4"),
        ("nDCG@10 >= nan", "'nan' is not a number"),
        ("nDCG@10 >= inf", "'inf' is not a number"),
        ("nDCG@10 >=", "'' is not a number"),
        ("nDCG@10 >= baseline - baseline", "'baseline' is not a number"),
        ("nDCG@10 >= baseline * 0.9", "is not a number"),
        ("nDCG@10[type] >= 0.4", "'[type]' is not a slice"),
        ("nDCG@10[=x] >= 0.4", "is not a slice"),
        ("[type=x] >= 0.4", "is not a slice"),
        ("no significant change in AP", "the nearest is `no significant"),
    ],
)
def test_error_of_a_wrong_rule_shows_the_reason_and_the_forms(text, why):
    with pytest.raises(InputError, match="cannot be parsed") as error:
        parse_rule(text)
    assert why in str(error.value)
    assert "MEASURE >= baseline - NUMBER" in str(error.value)


def test_values_equal_up_to_rounding_are_equal_and_nan_never_passes():
    at_least, above, at_most, below = (parse_rule(f"AP {sign} 0.3") for sign in (">=", ">", "<=", "<"))
    nearly = 0.1 + 0.2  # 0.30000000000000004
    assert at_least.kept(nearly - 1e-16, 0.3)
    assert at_most.kept(nearly, 0.3)
    assert not above.kept(nearly, 0.3)
    assert not below.kept(nearly, 0.3)
    assert not at_least.kept(0.2999, 0.3)
    assert above.kept(0.3001, 0.3)
    for rule in (at_least, above, at_most, below):
        assert not rule.kept(math.nan, 0.3)
        assert not rule.kept(0.3, math.nan)


def test_rules_of_a_file(tmp_path):
    path = tmp_path / "rules.txt"
    path.write_text("# quality\n\nnDCG@10 >= 0.40  # lowest value\nno significant drop in AP\nAP[tag=#1] >= 0\n")
    assert [rule.text for rule in read_rules(path)] == [
        "nDCG@10 >= 0.40",
        "no significant drop in AP",
        "AP[tag=#1] >= 0",
    ]


def test_all_mistakes_of_a_rules_file_are_reported_with_their_lines(tmp_path):
    path = tmp_path / "rules.txt"
    path.write_text("nDCG@10 >= x\nAP >= 0.1\nnothing\n")
    with pytest.raises(InputError) as error:
        read_rules(path)
    assert "2 of its lines are not rules" in str(error.value)
    assert "line 1: " in str(error.value)
    assert "line 3: " in str(error.value)
    path.write_text("# nothing\n")
    with pytest.raises(InputError, match="has no rule"):
        read_rules(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_rules(tmp_path / "nowhere.txt")


def test_rules_are_unique_and_all_mistakes_are_reported():
    assert [rule.text for rule in parse_rules(["AP >= 1", "AP  >= 1", "RR > 0"])] == ["AP >= 1", "RR > 0"]
    with pytest.raises(InputError, match="2 cannot be parsed"):
        parse_rules(["AP", "RR"])
