"""The table `Layers` of CONTRIBUTING.md holds: no import goes up or is circular, only cli/ prints and exits."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

from parsed import PACKAGE, modules, nodes
from steelyard.lazy import looked_up

SURFACE = "__init__.py"
"""The public surface: it names modules of every layer and loads them when they are used."""


def layers() -> dict[str, int]:
    """Every entry of the table, a module or a package, and the number of its layer; 0 is the lowest."""
    section = (
        (PACKAGE.parent.parent / "CONTRIBUTING.md")
        .read_text("utf-8")
        .partition("\n## Layers\n")[2]
        .partition("\n## ")[0]
    )
    rows = [row.split("|")[2] for row in section.splitlines() if row.startswith("| ")][1:]
    return {entry: layer for layer, entries in enumerate(rows) for entry in re.findall(r"`([^`]+)`", entries)}


LAYERS = layers()


def entry_of(file: str) -> str:
    """The entry of the table that a module belongs to: the most specific one."""
    return max((entry for entry in LAYERS if file.startswith(entry)), key=len, default="")


def layer_of(file: str) -> int:
    return LAYERS[entry_of(file)]


def file_of(module: str) -> str | None:
    """The file of a module of the package, or None."""
    if not module.startswith("steelyard."):
        return None
    inside = module.removeprefix("steelyard.").replace(".", "/")
    return next((file for file in (f"{inside}.py", f"{inside}/__init__.py") if file in modules()), None)


def nodes_at_load(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a module that are executed when it is imported."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for child in ast.iter_child_nodes(node):
            deferred = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            if not deferred and not (isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING")):
                waiting.append(child)


def imports(file: str, *, at_load: bool = False) -> set[str]:
    """The modules of the package that a module imports."""
    names: list[str] = []
    for node in nodes_at_load(modules()[file]) if at_load else nodes()[file]:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno} has a relative import"
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
            names += [name if file_of(name) else node.module or "" for name in whole]
    return {file for file in map(file_of, names) if file}


def test_every_module_has_a_layer_and_every_entry_exists():
    assert [file for file in modules() if file != SURFACE and not entry_of(file)] == [], (
        "add it to the table 'Layers' of CONTRIBUTING.md"
    )
    assert [entry for entry in LAYERS if not (PACKAGE / entry).exists()] == []


def test_no_import_goes_up():
    up = [
        f"{file} imports {other}, which is in a higher layer"
        for file in sorted(modules().keys() - {SURFACE})
        for other in sorted(imports(file))
        if layer_of(other) > layer_of(file)
    ]
    assert up == []


def test_no_module_imports_the_public_surface():
    wrong = [
        f"{file}:{node.lineno} imports {alias.name} from steelyard; import it from its own module"
        for file in sorted(modules().keys() - {SURFACE})
        for node in nodes()[file]
        if isinstance(node, ast.ImportFrom) and node.module == "steelyard"
        for alias in node.names
        if not file_of(f"steelyard.{alias.name}") and alias.name != "_kernel"
    ]
    assert wrong == []


def test_no_import_at_load_is_circular():
    graph = {file: imports(file, at_load=True) - {file} for file in modules()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError("modules import each other: " + " <- ".join(error.args[1])) from None


def circles() -> list[frozenset[str]]:
    """The groups of modules that import each other; imports inside functions and under TYPE_CHECKING count."""
    graph = {file: imports(file) - {file} for file in modules() if file != SURFACE}

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            new = graph.get(waiting.pop(), set()) - seen
            seen |= new
            waiting += new
        return seen

    reach = {file: reached(file) for file in graph}
    groups = (
        frozenset(other for other in reach[file] if file in reach[other]) for file in graph if file in reach[file]
    )
    return list(dict.fromkeys(groups))


def test_only_a_few_pairs_of_modules_import_each_other():
    assert [sorted(group) for group in circles()] == []


def test_functions_of_higher_layers_that_are_looked_up_by_name_exist():
    names = {
        node.args[0].value
        for all_nodes in nodes().values()
        for node in all_nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "looked_up"
        and isinstance(node.args[0], ast.Constant)
    }
    assert names
    assert all(callable(looked_up(str(name))) for name in names)


def test_the_report_does_not_import_the_results_that_it_shows():
    results = {"Comparison", "History", "Across", "Scores", "ListComparison"}
    wrong = [
        f"{file} imports {alias.name}"
        for file, all_nodes in nodes().items()
        if entry_of(file).startswith("report/")
        for node in all_nodes
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name in results
    ]
    assert wrong == []


def test_statistics_know_nothing_of_retrieval():
    used = {other for file in modules() if entry_of(file) == "statistics/" for other in imports(file)}
    other = {file for file in used if entry_of(file) != "statistics/"}
    assert other <= {"errors.py", "wording.py", "checks.py", "notes.py", "lazy.py", "native.py", "version.py"}


def test_measures_know_nothing_of_files():
    used = {entry_of(other) for file in modules() if entry_of(file) == "measures/" for other in imports(file)}
    assert "alignment/" in used
    assert used.isdisjoint({"io/", "datasets/", "run.py", "qrels.py"})


def dotted(node: ast.AST) -> str | None:
    """A name or an attribute of a name, as it is written."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else None


def test_only_the_command_line_prints_and_exits():
    names = ("print", "sys.exit", "SystemExit", "sys.stdout", "sys.stderr")
    wrong = [
        f"{file}:{node.lineno} uses {dotted(node)}"
        for file, all_nodes in nodes().items()
        if entry_of(file) not in ("cli/", "__main__.py", "user_code.py")
        for node in all_nodes
        if dotted(node) in names
    ]
    assert wrong == []


def test_no_two_classes_share_a_name():
    places: dict[str, list[str]] = {}
    for file, all_nodes in nodes().items():
        for node in all_nodes:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(file)
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def test_nan_is_tested_by_name():
    """By isnan: a value that is compared with itself looks like a mistake."""
    compared = [
        (file, node.lineno)
        for file, all_nodes in nodes().items()
        for node in all_nodes
        if isinstance(node, ast.Compare) and ast.unparse(node.left) == ast.unparse(node.comparators[0])
    ]
    assert compared == []
