"""The package as a whole: what it exports and what importing it costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import steelyard.statistics as statistics


def test_every_public_name_is_there_and_typed() -> None:
    tree = ast.parse(Path(statistics.__file__).read_text(encoding="utf-8"))
    typed = {
        alias.asname
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname is not None
    }
    assert typed == set(statistics.__all__) == set(dir(statistics))
    for name in statistics.__all__:
        assert getattr(statistics, name) is not None
    with pytest.raises(AttributeError, match="no_such_test"):
        statistics.no_such_test  # noqa: B018


def test_intervals_import_numpy_only() -> None:
    code = (
        "import sys, steelyard.statistics as s; s.mean_intervals([[0.1, 0.2, 0.4] * 5, [0.3, 0.1, 0.9] * 5]);"
        "s.mean_interval([0.1, 0.2, 0.4] * 50);"
        "print(sorted(m for m in sys.modules if m in ('scipy', 'polars', 'pandas', 'rich')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_no_test_imports_scipy_stats() -> None:
    code = (
        "import sys, steelyard.statistics as s; d = [0.1, 0.3, -0.1, 0.2] * 10;"
        "[s.paired_tests([d], t) for t in s.PAIRED_TESTS]; s.tukey([d, d[::-1]], 99); s.power_analysis(d);"
        "print('scipy.stats' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
