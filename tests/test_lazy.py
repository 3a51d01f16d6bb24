"""Lazily loaded names, and packages that can be called."""

from __future__ import annotations

import inspect
import pydoc
import subprocess
import sys
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

import pytest

import steelyard as sy
from steelyard.bench.runner import bench
from steelyard.gate.checking import check

PACKAGES = (
    *("steelyard", "steelyard.bench", "steelyard.gate", "steelyard.io", "steelyard.retrievers"),
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
    """Importing the submodule would replace the name. Packages that can be called are both."""
    package = import_module(name)
    modules = {module.name for module in iter_modules(package.__path__)}
    callable_packages = {
        public for public in package.__all__ if isinstance(getattr(package, public), ModuleType)
    }
    assert modules & set(package.__all__) == callable_packages


def test_check_is_a_function_after_its_module_was_imported():
    code = "import steelyard as sy; sy.gate({'runs': [{'name': 'a', 'per_query': {'q': {'RR': 1.0}}}]}, 'RR > 0'); "
    code += "from steelyard.gate import check; print(check.__name__)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "check\n"


def test_submodule_is_found_by_its_name():
    assert sy.gate.inputs is import_module("steelyard.gate.inputs")


@pytest.mark.parametrize(("package", "function"), [("bench", bench), ("gate", check)])
def test_signature_of_a_callable_package_is_that_of_its_function(package, function):
    assert inspect.signature(getattr(sy, package)) == inspect.signature(function)


@pytest.mark.parametrize(
    ("package", "parts"),
    [
        ("bench", ["steelyard.bench(source, output=None, *, fresh=False, strict=False", "./bench-result"]),
        ("gate", ["steelyard.gate(result, rules=(), *, baseline=None", "Check a result against rules"]),
        ("measures", ["steelyard.measures()", "Every measure"]),
        ("dialects", ["steelyard.dialects("]),
        ("retrievers", ["steelyard.retrievers()", "available retrievers by name"]),
    ],
)
def test_help_shows_how_to_call_a_package(package, parts):
    text = pydoc.plain(pydoc.render_doc(getattr(sy, package)))
    for part in parts:
        assert part in text


def test_callable_packages_are_called():
    assert "nDCG" in sy.measures()
    assert "bm25-okapi" in sy.retrievers()


def test_nothing_heavy_is_imported_before_the_call():
    code = "import steelyard, sys; steelyard.bench; steelyard.gate; print({'polars', 'scipy', 'pydantic', 'inspect'} & set(sys.modules))"
    found = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {code}"],
        capture_output=True,
        text=True,
    )
    assert found.stdout == "set()\n", found
