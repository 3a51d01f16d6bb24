"""Files around the code agree with it: versions, workflows, the list of commands."""

from __future__ import annotations

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
