"""Without the extra: `import steelyard` does not need pyspark, and steelyard.spark says how to get it."""

from __future__ import annotations

import subprocess
import sys


def said(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_pyspark_is_not_loaded_unless_asked_for():
    assert (
        said("import sys, steelyard as sy; sy.evaluate; sy.compare; print('pyspark' in sys.modules)")
        == "False"
    )


def test_without_pyspark_the_error_says_what_to_install():
    code = """
import sys
sys.modules["pyspark"] = None
import steelyard as sy
try:
    import steelyard.spark
except ImportError as error:
    print(isinstance(error, sy.SteelyardError), error)
"""
    assert said(code) == "True steelyard.spark needs the package pyspark: pip install 'steelyard[spark]'"
