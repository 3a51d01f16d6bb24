"""The public surface is typed: `mypy --strict` (`make lint`) accepts a script that uses every public name."""

from __future__ import annotations

import ast
from pathlib import Path

import steelyard as sy

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


def test_make_lint_checks_the_script_with_mypy_strict():
    """mypy itself runs once, in `make lint`, over the package and the script."""
    settings = (ROOT / "pyproject.toml").read_text("utf-8").partition("[tool.mypy]\n")[2].partition("\n\n")[0]
    assert "strict = true" in settings
    assert f'"{SCRIPT.relative_to(ROOT).as_posix()}"' in settings
