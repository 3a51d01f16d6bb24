"""steelyard gate: exit codes, files, stdout and stderr."""

from __future__ import annotations

import json
import shlex
from xml.etree import ElementTree

import pytest
from gate_inputs import made_result, pair

from steelyard.cli import run


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result, baseline = pair(drop=0.1)
    (tmp_path / "result.json").write_text(json.dumps(result))
    (tmp_path / "baseline.json").write_text(json.dumps(baseline))
    return tmp_path


def test_exit_codes(files, capsys):
    assert run(["gate", "result.json", "--rule", "AP >= 0.1"]) == 0
    assert run(["gate", "result.json", "--rule", "AP >= 0.9"]) == 1
    assert run(["gate", "result.json", "--baseline", "baseline.json"]) == 1
    assert run(["gate", "baseline.json", "--baseline", "result.json"]) == 0
    capsys.readouterr()
    for wrong in ([], ["--rule", "AP"], ["--rule", "RR > 0"], ["--baseline", "nowhere.json"], ["--rule", "@nowhere"]):
        assert run(["gate", "result.json", *wrong]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("error: ")


def test_table_goes_to_stdout_and_verdict_to_stderr(files, capsys):
    assert run(["gate", "result.json", "--baseline", "baseline.json", "--rule", "AP >= 0.1"]) == 1
    out, err = capsys.readouterr()
    head, *rows = out.splitlines()
    assert head.split() == ["rule", "value", "needed", "verdict", "why"]
    assert ["FAILED" in row for row in rows] == [True]
    assert "1 rule passed (--all shows them)." in err
    command = ["gate", "result.json", "--baseline", "baseline.json", "--rule", "AP >= 0.1", "--all"]
    assert run(command) == 1
    assert ["FAILED" in row for row in capsys.readouterr().out.splitlines()[1:]] == [True, False]
    assert err.splitlines()[0] == "The gate FAILED: 1 of 2 rules of run mine failed."
    assert "one-sided, alpha 0.05" in err


@pytest.mark.parametrize("format", ["table", "json", "csv", "markdown", "latex"])
def test_every_format(files, capsys, format):
    assert run(["gate", "result.json", "--rule", "AP >= 0.9", "--format", format]) == 1
    out = capsys.readouterr().out
    assert "0.9" in out
    if format == "json":
        assert json.loads(out)["passed"] is False
    if format == "markdown":
        assert out.startswith("## The gate FAILED")


def test_files_are_written_if_it_passes_and_if_it_fails(files, capsys):
    for rule, code in (("AP >= 0.1", 0), ("AP >= 0.9", 1)):
        given = ["--rule", rule, "--junit", "gate.xml", "--markdown", "gate.md", "-o", "gate.json"]
        assert run(["gate", "result.json", *given]) == code
        assert ElementTree.parse(files / "gate.xml").getroot().get("failures") == str(code)
        assert (files / "gate.md").read_text().startswith(f"## The gate {'FAILED' if code else 'passed'}")
        assert json.loads((files / "gate.json").read_text())["passed"] is not bool(code)
        assert capsys.readouterr().out == ""


def test_rules_from_a_file(files, capsys):
    (files / "rules.txt").write_text("# lowest value\nAP >= 0.1\nAP >= baseline - 0.5\n")
    assert (
        run(
            ["gate", "result.json", "--baseline", "baseline.json", "--rule", "@rules.txt", "--rule", "AP <= 1", "--all"]
        )
        == 0
    )
    assert capsys.readouterr().out.count("passed") == 3


def test_writing_a_baseline(files, capsys):
    assert run(["gate", "result.json", "--save-baseline", "kept.json"]) == 0
    assert "kept.json is the baseline: 60 queries, 1 measure of mine" in capsys.readouterr().err
    assert run(["gate", "result.json", "--baseline", "kept.json"]) == 0
    before = (files / "kept.json").read_bytes()
    assert run(["gate", "baseline.json", "--baseline", "kept.json", "--save-baseline", "kept.json"]) == 0
    assert (files / "kept.json").read_bytes() != before
    kept = (files / "kept.json").read_bytes()
    assert run(["gate", "result.json", "--baseline", "kept.json", "--save-baseline", "kept.json"]) == 1
    assert (files / "kept.json").read_bytes() == kept


def test_options(files, capsys):
    two = {
        **made_result([1, 1]),
        "runs": [made_result([v, 1.0, 0.9], name)["runs"][0] for v, name in ((1.0, "a"), (0.5, "b"))],
    }
    (files / "two.json").write_text(json.dumps(two))
    (files / "queries.csv").write_text("query_id,kind\nq0,x\nq1,y\nq2,y\n")
    assert run(["gate", "two.json", "--rule", "AP[kind=x] >= 0.9", "--set", "queries=queries.csv"]) == 1
    assert run(["gate", "two.json", "--rule", "AP[kind=x] >= 0.9", "--set", "queries=queries.csv", "--run", "a"]) == 0
    against = ["--baseline", "two.json", "--set", "baseline_run=a", "--rule", "AP >= baseline"]
    assert run(["gate", "two.json", "--run", "b", *against]) == 1
    capsys.readouterr()
    chosen = ["--set", "test=sign", "--set", "alpha=0.2", "--set", "correction=none", "--format", "json"]
    assert run(["gate", "two.json", "--run", "b", *against[:4], *chosen]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["test"], made["alpha"], made["correction"]) == ("sign", 0.2, "none")
    gone = {**two, "runs": [made_result([1.0] * 4, "a")["runs"][0]]}
    (files / "gone.json").write_text(json.dumps(gone))
    assert run(["gate", "two.json", "--run", "a", "--baseline", "gone.json"]) == 2
    assert run(
        ["gate", "two.json", "--run", "a", "--baseline", "gone.json", "--allow", "queries", "--allow", "judgments"]
    ) in (0, 1)


def test_help_shows_the_rules_and_the_exit_code(capsys):
    assert run(["gate", "--help"]) == 0
    out = capsys.readouterr().out
    for part in (
        "nDCG@10 >= baseline - 0.01",
        "no significant drop in nDCG@10",
        "nDCG@10[type=multi-hop]",
        "1 if one fails",
    ):
        assert part in out
    assert run(["--help"]) == 0
    assert "1 a gate failed" in capsys.readouterr().out


def test_files_report_a_gate_that_cannot_be_checked(files, capsys):
    gone = json.loads((files / "result.json").read_text())
    del gone["runs"][0]["per_query"]["q3"]
    (files / "result.json").write_text(json.dumps(gone))
    written = ["--junit", "gate.xml", "--markdown", "gate.md"]
    assert run(["gate", "result.json", "--baseline", "baseline.json", *written]) == 2
    message = capsys.readouterr().err.removeprefix("error: ").splitlines()[0]
    root = ElementTree.parse(files / "gate.xml").getroot()
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("1", "0", "1")
    assert root.find("testsuite/testcase/error").get("message") == message
    lines = (files / "gate.md").read_text().splitlines()
    assert lines[0] == "## The gate could not be checked."
    assert "q3" in "".join(lines)


def test_the_command_to_reproduce_it_does(files, capsys):
    given = ["--rule", "no significant drop in AP", "--rule", "AP <= 1", "--run", "mine", "--allow", "queries,failed=2"]
    settings = ["--set", "alpha=0.01", "--set", "test=permutation", "--set", "permutations=2000", "--set", "seed=3"]
    command = ["gate", "result.json", "--baseline", "baseline.json", *given, *settings]
    assert run([*command, "--format", "markdown"]) == 1
    first = capsys.readouterr().out
    program, *again = shlex.split(first.rsplit("\n", 2)[-2].strip())
    assert (program, again[0]) == ("steelyard", "gate")
    assert run([*again, "--format", "markdown"]) == 1
    assert capsys.readouterr().out == first
