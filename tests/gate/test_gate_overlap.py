"""Rules of a gate on chunks: an outcome on which the three overlap rules do not agree is undecided."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import steelyard as sy
from needs import import_peer
from steelyard.cli import run as steelyard
from steelyard.gating.inputs import gate_input
from steelyard.gating.result import GateResult

SMALL, LARGE = "bm25-okapi on fixed-31", "bm25-okapi on whole"
REASON = "depends on how much of a passage a chunk must contain"
DROP = "no significant drop in P@4"
MARGIN = "P@4 not worse than baseline by 0.05"
THRESHOLD = "P@4 >= baseline - 0.05"
RULES = ("any", "majority", "whole")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A bench by each overlap rule: passages of 60 words, of which small chunks contain only a part."""
    words = [f"w{number}" for number in range(120)]
    numbers = range(12)
    texts = {
        f"d{n}": " ".join(f"t{n} {word}" if at % 30 == 0 else word for at, word in enumerate(words)) for n in numbers
    }
    spans = {
        f"q{n}": [{"doc_id": f"d{n}", "start": texts[f"d{n}"].index("w30"), "end": texts[f"d{n}"].index("w90")}]
        for n in numbers
    }
    queries = {f"q{n}": f"t{n}" for n in numbers}
    given = {
        "dataset": sy.Dataset.of(texts, queries, {f"q{n}": [f"d{n}"] for n in numbers}),
        "evidence": sy.Evidence(spans),
        "chunkers": [{"fixed": {"tokens": 31}}, "whole"],
        "retrievers": ["bm25-okapi"],
        "measures": ["P@4", "SpanR@4"],
        "warmup": 0,
    }
    made = tmp_path_factory.mktemp("overlap")
    return {rule: sy.bench({**given, "overlap": rule}, output=made / rule).folder for rule in RULES}


def by_one_rule(folder: Path, *rules: str) -> GateResult:
    """A gate of the large chunks with the small ones as the baseline, by the overlap rule of the bench alone."""
    alone = replace(gate_input(folder), overlaps={})
    return sy.gate(alone, rules, run=LARGE, baseline=alone, baseline_run=SMALL)


@pytest.mark.parametrize("rule", [DROP, MARGIN, THRESHOLD, "P@4 equivalent to baseline within 0.05"])
def test_a_rule_on_which_the_overlap_rules_do_not_agree_is_undecided(folders: dict[str, Path], rule: str) -> None:
    alone = {overlap: by_one_rule(folder, rule).rows[0] for overlap, folder in folders.items()}
    agreed = {row.passed for row in alone.values()}
    for folder in folders.values():
        checked = sy.gate(folder, rule, run=LARGE, baseline=folder, baseline_run=SMALL)
        (row,) = checked.rows
        if len(agreed) == 1:
            assert (row.verdict, row.overlaps) == ("passed" if agreed == {True} else "FAILED", {})
            continue
        assert (checked.verdict, row.verdict, row.passed) == ("undecided", "undecided", True)
        assert row.overlaps == {overlap: each.difference for overlap, each in alone.items()}
        outcomes = [
            f"{overlap} {each.difference:+.4f} {'passes' if each.passed else 'fails'}"
            for overlap, each in alone.items()
        ]
        assert row.why.startswith(f"{REASON} ({', '.join(outcomes)}); ")


def test_the_rules_do_not_agree_here(folders: dict[str, Path]) -> None:
    outcomes = {rule: [by_one_rule(folders[o], rule).passed for o in RULES] for rule in (DROP, MARGIN, THRESHOLD)}
    assert outcomes == {rule: [False, True, True] for rule in outcomes}


def test_rules_that_need_no_overlap_rule_or_no_baseline_are_decided(folders: dict[str, Path]) -> None:
    folder = folders["any"]
    rules = ["no significant drop in SpanR@4", "P@4 >= 0.2"]
    checked = sy.gate(folder, rules, run=LARGE, baseline=folder, baseline_run=SMALL)
    assert [(row.verdict, row.overlaps) for row in checked.rows] == [("passed", {}), ("passed", {})]
    assert not {"gate-depends-on-overlap", "gate-overlap-unknown"} & {each.code for each in checked.warnings}


def test_a_saved_baseline_keeps_the_values_by_each_overlap_rule(folders: dict[str, Path], tmp_path: Path) -> None:
    folder, file = folders["any"], tmp_path / "baseline.json"
    sy.save_baseline(folder, file, run=SMALL)
    read, source = gate_input(file), gate_input(folder)
    assert tuple(read.overlaps) == RULES
    for overlap, table in read.overlaps.items():
        assert np.array_equal(table.values[0], source.overlaps[overlap].values[source.run(SMALL)])
    same = sy.gate(folder, DROP, run=LARGE, baseline=folder, baseline_run=SMALL)
    assert sy.gate(folder, DROP, run=LARGE, baseline=file).rows == same.rows
    sy.save_baseline(file, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == file.read_bytes()


def test_a_baseline_with_one_overlap_rule_is_noted(folders: dict[str, Path], tmp_path: Path) -> None:
    folder, file = folders["any"], tmp_path / "baseline.json"
    sy.save_baseline(folder, file, run=SMALL)
    content = json.loads(file.read_text("utf-8"))
    del content["overlaps"]
    checked = sy.gate(folder, DROP, run=LARGE, baseline=content)
    assert checked.verdict == "FAILED"
    (found,) = [each for each in checked.warnings if each.code == "gate-overlap-unknown"]
    assert str(found).startswith("the baseline has values by one overlap rule only")
    spans = sy.gate(folder, "no significant drop in SpanR@4", run=LARGE, baseline=content)
    assert "gate-overlap-unknown" not in {each.code for each in spans.warnings}


def test_every_format_says_that_it_is_undecided(
    folders: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(folders["any"])
    given = ["gate", folder, "--run", LARGE, "--baseline", folder, "--set", f"baseline_run={SMALL}", "--rule", DROP]
    files = ["--junit", str(tmp_path / "j.xml"), "--markdown", str(tmp_path / "m.md")]
    assert steelyard([*given, *files]) == 0
    shown = capsys.readouterr()
    sentence = f"Undecided: 1 of 1 rule of run {LARGE} {REASON}."
    assert sentence in shown.err + shown.out
    assert f"The outcome of `{DROP}` for {LARGE} {REASON} to be relevant" in " ".join(shown.err.split())
    assert 'skipped="1"' in (tmp_path / "j.xml").read_text("utf-8")
    assert "**undecided**" in (tmp_path / "m.md").read_text("utf-8")
    checked = sy.gate(folder, DROP, run=LARGE, baseline=folder, baseline_run=SMALL)
    assert checked.to_dict()["rows"][0]["overlaps"].keys() == set(RULES)
    assert checked.to_text().startswith(sentence)
    import_peer("polars")
    assert REASON in checked.to_csv()
