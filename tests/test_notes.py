"""Every note is declared once, in a table that is found whatever was imported, and is raised somewhere."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from functools import cache

import pytest

from parsed import modules, nodes
from steelyard.notes import TABLES, declare, fill, in_short, note, note_from_dict, wordings


@cache
def calls(function: str) -> list[tuple[str, ast.Call]]:
    """The calls of a function in the package, each with the file of its module."""
    return [
        (file, node)
        for file, found in nodes().items()
        if file != "notes.py"
        for node in found
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function
    ]


def tables(file: str) -> dict[str, list[str]]:
    """The codes of each table that a module declares; `short` is the one of short texts."""
    assigned = {
        node.target.id: [key.value for key in node.value.keys]
        for node in modules()[file].body
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "Texts"
    }
    (call,) = (call for where, call in calls("declare") if where == file)
    return {keyword.arg: assigned[keyword.value.id] for keyword in call.keywords}


def file_of(module: str) -> str:
    return module.removeprefix("steelyard.").replace(".", "/") + ".py"


def declaring() -> list[str]:
    return [file for file, _ in calls("declare")]


def declared() -> list[str]:
    found = (item for file in declaring() for item in tables(file).items())
    return [code for severity, codes in found if severity != "short" for code in codes]


def raised_codes() -> set[str]:
    """The codes of all calls of `note`; where a call takes a variable, those that stand in its module."""
    codes = set()
    for file, call in calls("note"):
        if isinstance(call.args[0], ast.Constant):
            codes.add(call.args[0].value)
        else:
            texts = {node.value for node in nodes()[file] if isinstance(node, ast.Constant)}
            codes |= texts & set(wordings())
    return codes - {"text"}


def test_every_raised_code_is_declared_and_every_declared_code_is_raised():
    assert raised_codes() == set(declared()) == set(wordings()) - {"text"}


def test_no_code_is_declared_twice():
    assert [code for code, count in Counter(declared()).items() if count > 1] == []
    with pytest.raises(AssertionError, match="'text' is declared twice"):
        declare(info={"text": "{text}"})


def test_every_module_that_declares_notes_is_in_the_list_of_tables():
    assert [file_of(table) for table in sorted(TABLES)] == sorted(declaring())


@pytest.mark.parametrize("module", TABLES)
def test_short_texts_belong_to_codes_of_the_same_module(module):
    codes_of = tables(file_of(module))
    assert set(codes_of.pop("short", ())) <= {code for codes in codes_of.values() for code in codes}


def test_a_stored_note_is_read_by_a_process_that_imported_nothing_else():
    stored = note("gate-undecided", rules=[("nDCG@10 >= 0.4", "dense")], documents=3, strict=True).to_dict()
    code = f"from steelyard.notes import note_from_dict; print(note_from_dict({stored!r}))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown == f"{stored['text']}\n"


def test_a_note_of_a_reader_loads_no_table_of_a_higher_layer():
    code = "import sys; from steelyard.notes import note; note('no-grades'); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert [table for table in TABLES if table in loaded] == ["steelyard.io.notes"]


def test_an_unknown_code_is_an_error_when_raised_and_a_text_when_stored():
    with pytest.raises(KeyError, match="'no-such-note' is not declared"):
        note("no-such-note")
    assert note_from_dict({"code": "of-a-later-version", "text": "a text"}) == note("text", text="a text")


def test_values_are_never_read_as_templates():
    hint = note("unknown-documents", run="{x}", count=1, examples=("{a|b}",), corpus=("|",), id_hint="{meta}|id")
    assert str(hint) == (
        "retriever {x} returned 1 document that is not in the corpus: it has '{a|b}', the corpus '|'. "
        "The ids of the corpus are in {meta}|id: set `id: {meta}|id`"
    )


@pytest.mark.parametrize(
    ("template", "values", "text"),
    [
        ("{n:,} {n:row|rows}", {"n": 1}, "1 row"),
        ("{n:,} {n:row|rows}", {"n": 0}, "0 rows"),
        ("{names:is|are}", {"names": ("a",)}, "is"),
        ("{names:is|are}", {"names": ("a", "b")}, "are"),
        ("{names:?has {names:joined}|is empty}", {"names": ()}, "is empty"),
        ("{policy:skip?{n:is|are} left out|kept}", {"policy": "skip", "n": 2}, "are left out"),
        ("{policy:skip?{n:is|are} left out|kept}", {"policy": "zero", "n": 2}, "kept"),
        ("{kind:a?A|{kind:b?B|{kind:c?C|D}}}", {"kind": "c"}, "C"),
        ("{ids!r:examples}", {"ids": ("a", "b", "c"), "count": 4}, "'a', 'b', 'c', ..."),
        ("{ids:listed}", {"ids": tuple("abcdefgh")}, "a, b, c, d, e and 3 others"),
        ("{pair[1]:.0%}", {"pair": (0.5, 0.25)}, "25%"),
    ],
)
def test_a_template_chooses_words_and_lists_names(template, values, text):
    assert fill(template, values) == text


def test_a_note_without_a_short_text_is_shown_whole():
    assert in_short(note("no-grades")) == str(note("no-grades"))
    assert in_short(note("step-use", run="a", measure="AP")) == "use a: significantly better than every other run on AP"
