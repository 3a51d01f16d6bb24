"""The source of the package, parsed once per process, and only if a test of the source runs."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "src" / "steelyard"


@cache
def modules() -> dict[str, ast.Module]:
    """The syntax tree of every module, by its path in the package."""
    return {path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text("utf-8")) for path in PACKAGE.rglob("*.py")}


@cache
def nodes() -> dict[str, list[ast.AST]]:
    """All nodes of every module, by its path in the package."""
    return {file: list(ast.walk(tree)) for file, tree in modules().items()}
