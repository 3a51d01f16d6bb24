"""The pytest plugin: it is registered, imports little, and fails with a readable message."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import entry_points

import pytest
import scipy.special
from gate_inputs import pair

import steelyard.gating.checking

pytest_plugins = "pytester"

LOADED = (scipy.special, steelyard.gating.checking)
"""Imported before pytester records the loaded modules; otherwise it would unload them after every test."""

QUICK = ("-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:hypothesispytest")


@pytest.fixture
def project(pytester):
    result, baseline = pair(drop=0.1)
    (pytester.path / "result.json").write_text(json.dumps(result))
    (pytester.path / "baseline.json").write_text(json.dumps(baseline))
    return pytester


def test_plugin_is_registered_and_imports_little():
    assert [point.value for point in entry_points(group="pytest11", name="steelyard")] == [
        "steelyard.gating.pytest_plugin"
    ]
    code = "import sys, steelyard.gating.pytest_plugin; print(sorted({'numpy', 'scipy', 'polars'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_passing_gate_returns_its_result(project):
    project.makepyfile(
        """
        def test_retrieval(steelyard_gate):
            gate = steelyard_gate("result.json", ["AP >= 0.1"])
            assert gate.passed and gate.rows[0].value > 0.1
        """
    )
    project.runpytest_inprocess(*QUICK).assert_outcomes(passed=1)


def test_failing_gate_shows_rules_numbers_and_worst_queries(project):
    project.makepyfile(
        """
        def test_retrieval(steelyard_gate):
            steelyard_gate("result.json", rules=["AP >= 0.1", "no significant drop in AP"], baseline="baseline.json")

        def test_wrong(steelyard_gate):
            steelyard_gate("result.json")
        """
    )
    outcome = project.runpytest_inprocess(*QUICK)
    outcome.assert_outcomes(failed=2)
    outcome.stdout.fnmatch_lines(
        [
            "The gate FAILED: 1 of 2 rules of run mine failed.",
            "*mine: no significant drop in AP",
            "*AP is 0.*, needed no significant drop from 0.*: fell by 0.*; * of 60 queries worse, * better",
            "*q*: 0.* -> *",
            "The gate cannot be checked: nothing to check: there is no rule and no baseline.*",
        ]
    )
    outcome.stdout.no_fnmatch_line("*Traceback*")


def test_paths_may_be_relative_to_the_root_folder(project):
    below = project.mkdir("below")
    (project.path / "pytest.ini").write_text("[pytest]\n")
    (below / "test_it.py").write_text("def test_it(steelyard_gate):\n    steelyard_gate('result.json', 'AP >= 0.1')\n")
    project.chdir()
    os.chdir(below)
    project.runpytest_inprocess(*QUICK, f"--rootdir={project.path}").assert_outcomes(passed=1)


def test_advice_names_arguments_and_rules_name_their_source(project):
    result, _ = pair(drop=0.1)
    del result["runs"][0]["per_query"]["q3"]
    (project.path / "result.json").write_text(json.dumps(result))
    project.makepyfile(
        """
        def test_gone(steelyard_gate):
            steelyard_gate("result.json", baseline="baseline.json")

        def test_default(steelyard_gate):
            steelyard_gate("result.json", baseline="baseline.json", allow="queries")
        """
    )
    outcome = project.runpytest_inprocess(*QUICK)
    outcome.assert_outcomes(failed=2)
    outcome.stdout.fnmatch_lines(
        [
            "The gate cannot be checked: *or allow it: allow='queries' (--allow queries).",
            "*mine: no significant drop in AP (from the default, because no rule compares with the baseline)",
        ]
    )
