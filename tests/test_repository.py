"""Files around the code agree with it: versions, workflows, the list of commands."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import yaml

import steelyard as sy

ROOT = Path(__file__).parent.parent


def test_the_citation_names_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == sy.__version__
    assert citation["license"] == "Apache-2.0"


def test_the_workflows_test_every_python_version_that_the_package_declares():
    metadata = (ROOT / "pyproject.toml").read_text("utf-8")
    declared = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', metadata)
    tests = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text("utf-8"))
    assert tests["jobs"]["tests"]["strategy"]["matrix"]["python"] == declared
    built = re.findall(r"cp3(\d+)-\*", metadata)
    assert [f"3.{minor}" for minor in built] == declared


def test_workflows_and_templates_are_valid_yaml():
    files = [*ROOT.glob(".github/**/*.yml"), ROOT / ".pre-commit-config.yaml"]
    assert len(files) >= 8
    for path in files:
        assert isinstance(yaml.safe_load(path.read_text("utf-8")), dict), path


def test_make_help_lists_every_command():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony is not None
    listed = set(re.findall(r'@echo "make ([\w-]+)', makefile))
    assert set(phony[1].split()) - listed == {"help", "test-fast", "test-spark", "test-lowest"}


CLOCKS = {"sleep", "time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time"}
MAY_ASK_THE_CLOCK: dict[str, str] = {}
"""Files of tests that ask the clock or sleep, and why. A test that waits or measures fails on a busy machine."""


def asks_the_clock(path):
    """The calls of the clock in a file, also in the programs that it has as texts, and fixed waits in a browser."""
    text = path.read_text("utf-8")
    written = re.findall(rf"\btime\.(?:{'|'.join(CLOCKS)})\(|\.wait_for_timeout\(", text)
    if "from time import" in text:
        nodes = list(ast.walk(ast.parse(text)))
        imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module == "time"]
        names = {alias.asname or alias.name for node in imports for alias in node.names}
        calls = [node.func for node in nodes if isinstance(node, ast.Call)]
        written += [call.id for call in calls if isinstance(call, ast.Name) and call.id in names]
    return set(written)


def test_no_test_asks_the_clock():
    files = {path.relative_to(ROOT).as_posix(): asks_the_clock(path) for path in (ROOT / "tests").rglob("*.py")}
    asking = {name: calls for name, calls in files.items() if calls and name not in MAY_ASK_THE_CLOCK}
    assert asking == {}, "count steps, wait for an event, or use tests/clocks.py"
    assert MAY_ASK_THE_CLOCK.keys() <= files.keys()


def test_a_test_that_asks_the_clock_is_found(tmp_path):
    path = tmp_path / "test.py"
    module, wait = "time", "wait_for_timeout"
    for line in (f"import time\n{module}.sleep(1)", "from time import monotonic as now\nnow()", f"tab.{wait}(5)"):
        path.write_text(line)
        assert asks_the_clock(path), line
    path.write_text("import time\nprint(time.strftime('%Y'))\nclock.advance(1)\nmonotonic()")
    assert not asks_the_clock(path)
