"""Lazily loaded names."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pkgutil import iter_modules

import pytest

import steelyard as sy
from needs import needs_kernel

PACKAGES = (
    *("steelyard", "steelyard.benchmark", "steelyard.gating", "steelyard.io", "steelyard.retrievers"),
    *("steelyard.retrievers.adapters", "steelyard.statistics", "steelyard.datasets", "steelyard.evidence"),
)


@pytest.mark.parametrize("name", PACKAGES)
def test_public_names_can_be_loaded(name):
    package = import_module(name)
    for public in package.__all__:
        assert getattr(package, public) is not None
    assert set(package.__all__) <= set(dir(package))


@pytest.mark.parametrize("name", PACKAGES)
def test_unknown_name_is_an_attribute_error(name):
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'nothing'"):
        import_module(name).nothing  # noqa: B018


@pytest.mark.parametrize("name", PACKAGES)
def test_no_public_name_is_the_name_of_a_submodule(name):
    """Importing the submodule would replace the name."""
    package = import_module(name)
    assert not {module.name for module in iter_modules(package.__path__)} & set(package.__all__)


def test_public_functions_are_functions_after_every_package_was_imported():
    code = "import inspect, steelyard as sy, steelyard.benchmark, steelyard.gating.checking, steelyard.measures, "
    code += "steelyard.dialects, steelyard.retrievers, steelyard.io; "
    code += "names = 'bench gate list_measures list_dialects list_retrievers list_formats'; "
    code += "print([inspect.isfunction(getattr(sy, name)) for name in names.split()])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == f"{[True] * 6}\n"


def test_submodule_is_found_by_its_name():
    assert sy.gating.inputs is import_module("steelyard.gating.inputs")


def test_listings_list_what_there_is():
    assert "nDCG" in sy.list_measures()
    assert "bm25-okapi" in sy.list_retrievers()
    assert "trec_eval-9" in sy.list_dialects()
    assert "beir" in sy.list_formats()


def test_nothing_heavy_is_imported_with_the_package():
    code = "import steelyard, sys; print({'numpy', 'polars', 'scipy', 'pydantic', 'inspect'} & set(sys.modules))"
    found = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {code}"], capture_output=True, text=True
    )
    assert found.stdout == "set()\n", found


@pytest.mark.parametrize(
    ("arguments", "slow"), [("", "steelyard.wording"), ("judge --help", "numpy"), ("questions --help", "numpy")]
)
def test_help_imports_nothing_slow(arguments, slow):
    code = "import sys; from steelyard.cli import run; run(sys.argv[1:]); print('loaded', set(sys.modules))"
    path = f"import sys; sys.path[:0] = {sys.path!r}; "
    found = subprocess.run(
        [sys.executable, "-S", "-c", path + code, *arguments.split()], capture_output=True, text=True
    )
    _, end, loaded = found.stdout.rpartition("loaded")
    assert end, found
    assert repr(slow) not in loaded


@pytest.mark.parametrize(
    ("module", "not_needed"),
    [("results", {"pydantic", "polars"}), ("judge", {"numpy"}), ("data", {"pydantic", "polars"})],
)
def test_a_verb_starts_without_what_other_verbs_need(module, not_needed):
    code = f"import steelyard.cli.{module}, sys; print({not_needed} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "set()\n"


def test_a_slow_module_is_imported_when_one_of_its_names_is_first_used():
    code = "import sys; from steelyard.lazy import polars; before = 'polars' in sys.modules; import polars as real; "
    code += "print(before, polars.DataFrame is real.DataFrame)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "False True\n"


@needs_kernel
def test_an_evaluation_of_files_imports_no_json_and_no_decimal_numbers(tmp_path):
    (tmp_path / "qrels").write_text("".join(f"q{i} 0 a 1\n" for i in range(9)))
    (tmp_path / "run").write_text("".join(f"q{i} Q0 {'ab'[i % 2]} 1 2.5 bm25\n" for i in range(9)))
    code = "import sys, steelyard.cli; before = set(sys.modules); steelyard.cli.run(['evaluate', 'qrels', 'run']); "
    code += "print('loaded', {'json', 'statistics', 'decimal', 'tempfile'} & set(sys.modules) - before)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert found.stdout.endswith("loaded set()\n"), found
