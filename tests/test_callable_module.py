"""Callable packages: they have the signature and the documentation of their function, and load it when called."""

from __future__ import annotations

import inspect
import pydoc
import subprocess
import sys

import pytest

import steelyard as sy
from steelyard.bench.runner import bench
from steelyard.gate.check import check


@pytest.mark.parametrize(("package", "function"), [("bench", bench), ("gate", check)])
def test_the_signature_is_that_of_the_function(package, function):
    assert inspect.signature(getattr(sy, package)) == inspect.signature(function)


@pytest.mark.parametrize(
    ("package", "texts"),
    [
        ("bench", ["steelyard.bench(source, output=None, *, fresh=False, strict=False", "./bench-result"]),
        ("gate", ["steelyard.gate(result, rules=(), *, baseline=None", "Hold a result against rules"]),
        ("measures", ["steelyard.measures()", "Every measure"]),
        ("dialects", ["steelyard.dialects("]),
        ("retrievers", ["steelyard.retrievers()", "Every retriever by name"]),
    ],
)
def test_help_shows_how_to_call_it(package, texts):
    text = pydoc.plain(pydoc.render_doc(getattr(sy, package)))
    for part in texts:
        assert part in text


def test_callable_packages_can_be_called():
    assert "nDCG" in sy.measures()
    assert "bm25-okapi" in sy.retrievers()


def test_large_libraries_are_loaded_only_when_called():
    code = "import steelyard, sys; steelyard.bench; steelyard.gate; print({'polars', 'scipy', 'pydantic', 'inspect'} & set(sys.modules))"
    found = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {code}"],
        capture_output=True,
        text=True,
    )
    assert found.stdout == "set()\n", found
