"""The plan of the house in CONTRIBUTING.md holds: no import goes up, and only the door prints and exits."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "steelyard"
FACE = "__init__.py"

WRITE_THEMSELVES_DOWN = {("scores.py", "report/"), ("comparison/", "report/")}
"""Results show themselves: they load what draws them when they are asked to, and not before."""


def floors() -> dict[str, int]:
    """Every room of the plan and its floor, the ground first."""
    plan = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## The plan of the house")[2]
    rows = [row.split("|")[2] for row in plan.partition("## ")[0].splitlines() if row.startswith("| ")][1:]
    return {room: floor for floor, rooms in enumerate(rows) for room in re.findall(r"`([^`]+)`", rooms)}


FLOORS = floors()
FILES = {
    path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text("utf-8")) for path in PACKAGE.rglob("*.py")
}


def room_of(file: str) -> str:
    """The room that a file is in: of several that hold it, the smallest."""
    return max((room for room in FLOORS if file.startswith(room)), key=len, default="")


def file_of(module: str) -> str | None:
    """The file of a module of the package; None for anything else."""
    inside = module.removeprefix("steelyard.").replace(".", "/")
    return next((file for file in (f"{inside}.py", f"{inside}/__init__.py") if file in FILES), None)


def imports(file: str) -> Iterator[tuple[str, bool]]:
    """The package's files that a file imports, and whether that waits until they are needed."""
    waiting = {
        id(node)
        for function in ast.walk(FILES[file])
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        for node in ast.walk(function)
    }
    for node in ast.walk(FILES[file]):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [
                whole if file_of(whole := f"{node.module}.{alias.name}") else node.module or ""
                for alias in node.names
            ]
        else:
            continue
        yield from ((found, id(node) in waiting) for found in map(file_of, names) if found)


def test_every_file_is_in_a_room_of_the_plan_and_every_room_is_there():
    homeless = [file for file in FILES if file != FACE and not room_of(file)]
    assert homeless == [], "give it a floor in the table of CONTRIBUTING.md"
    assert [room for room in FLOORS if not (PACKAGE / room).exists()] == []


def test_no_import_goes_up():
    up = [
        f"{file} imports {other}, a floor above"
        for file in sorted(FILES.keys() - {FACE})
        for other, waits in imports(file)
        if FLOORS[room_of(other)] > FLOORS[room_of(file)]
        and not (waits and (room_of(file), room_of(other)) in WRITE_THEMSELVES_DOWN)
    ]
    assert up == []


def test_measures_know_nothing_of_files():
    known = {room_of(other) for file in FILES if room_of(file) == "measures/" for other, _ in imports(file)}
    assert "alignment/" in known
    assert known.isdisjoint({"formats/", "datasets/", "runs.py", "judgments.py"})


def test_only_the_door_prints_and_exits():
    said = [
        f"{file}:{node.lineno}"
        for file, tree in FILES.items()
        if room_of(file) and FLOORS[room_of(file)] < FLOORS["cli/"]
        for node in ast.walk(tree)
        if isinstance(node, (ast.Name, ast.Attribute))
        and ast.unparse(node) in ("print", "sys.exit", "SystemExit", "sys.stdout", "sys.stderr")
    ]
    assert said == []
