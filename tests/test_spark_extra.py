"""Without the extra: `import steelyard` does not need pyspark, and the error of steelyard.spark names the extra."""

from __future__ import annotations

import subprocess
import sys


def output_of(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_pyspark_is_not_imported_unless_needed():
    assert output_of("import sys, steelyard as sy; sy.evaluate; sy.compare; print('pyspark' in sys.modules)") == "False"


def test_error_without_pyspark_names_the_extra():
    code = """
import sys
sys.modules["pyspark"] = None
import steelyard as sy
try:
    import steelyard.spark
except ImportError as error:
    print(isinstance(error, sy.SteelyardError), error)
"""
    assert output_of(code) == "True steelyard.spark needs the package pyspark: pip install 'steelyard[spark]'"
