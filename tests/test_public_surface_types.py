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
    """With the project's settings, so that it shares the cache of `make lint`, which reports errors elsewhere."""
    import_peer("mypy")
    path = SCRIPT.relative_to(ROOT)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith(str(path))] == []
