"""steelyard explain: the text, and its parts in the other formats."""

from __future__ import annotations

import json

import steelyard as sy
from steelyard.cli import run


def test_json_has_every_part(capsys):
    assert run(["explain", "P@5", "--dialect", "autorag", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == sy.explain("P@5", dialect="autorag").parts
    assert (found["measure"], found["dialect"]) == ("P@5", "autorag")
    assert found["means"] == "P(rel=1, denominator=retrieved)@5"
    assert "denominator=retrieved: divided by the number retrieved, at most k." in found["clauses"]
    assert "missing=zero: a query that is not in the run scores 0" in found["policies"]


def test_file_name_selects_the_format(tmp_path, capsys):
    assert run(["explain", "RR", "-o", str(tmp_path / "rr.json")]) == 0
    assert json.loads((tmp_path / "rr.json").read_text("utf-8"))["means"] == "RR(rel=1, per=document)"
    assert run(["explain", "RR", "-o", str(tmp_path / "rr.txt")]) == 0
    assert (tmp_path / "rr.txt").read_text("utf-8") == f"{sy.explain('RR')}\n"


def test_tables_have_one_row_per_part(capsys):
    assert run(["explain", "NumQ", "--format", "csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["part,text", "measure,NumQ", "dialect,steelyard"]
    assert "aliases,num_q" in lines


def test_a_table_of_gains_is_one_clause():
    lines = sy.explain("nDCG(gain={1: 3})@10").splitlines()
    assert "  gain={1: 3}: as in the table; a grade that is not in it gains itself." in lines
