"""The public surface is typed: a user's script that uses every public name passes `mypy --strict`."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import steelyard as sy
from needs import import_peer

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "tests" / "typing" / "public_surface.py"


def test_the_script_uses_every_public_name():
    used = {
        node.attr
        for node in ast.walk(ast.parse(SCRIPT.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "sy"
    }
    assert sorted(set(sy.__all__) - used) == [], "use it in tests/typing/public_surface.py"
    assert sorted(used - set(sy.__all__)) == []


def test_the_script_passes_mypy_strict():
    import_peer("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", str(SCRIPT)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
