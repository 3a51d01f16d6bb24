"""Documents: every result has every format, and `-o` chooses the format by the name of the file."""

from __future__ import annotations

import json
import math

import polars as pl
import pytest

import steelyard as sy
from steelyard.cli import run
from steelyard.report.documents import Document, Documented, Tables, document_html, plain_values
from steelyard.report.page.shell import document_page
from steelyard.report.tables import Table

QRELS = {f"q{n}": {"a": 1, "b": 0, "c": 2} for n in range(8)}
RUNS = {
    "good<b>": {query: {"c": 3.0, "a": 2.0, "b": 1.0} for query in QRELS},
    "bad": {query: {"b": 3.0, "x": 2.0, "a": 1.0} for query in QRELS},
}


def results() -> dict[str, Documented]:
    compared = sy.compare(QRELS, RUNS, ["nDCG@10"])
    return {
        "comparison": compared,
        "lists": sy.compare(None, RUNS),
        "across": sy.across({"one": compared, "two": compared}),
        "agreement": sy.agreement({"human": QRELS, "gpt": {**QRELS, "q1": {"a": 0, "b": 1, "c": 2}}}, runs=RUNS),
        "scores": sy.evaluate(QRELS, RUNS["bad"], ["nDCG@10"], name="bad<b>"),
        "gate": sy.gate(sy.evaluate(QRELS, RUNS["bad"], ["nDCG@10"], name="bad<b>"), ["nDCG@10 >= 0.9"]),
    }


@pytest.mark.parametrize("name", ["comparison", "lists", "across", "agreement", "scores", "gate"])
def test_every_result_has_every_format(name, tmp_path):
    result = results()[name]
    document = result.document()
    assert document.verdict
    assert json.loads(result.to_json())
    for text in (result.to_text(), result.to_markdown(), result.to_latex()):
        assert ("gpt" if name == "agreement" else "bad") in text
    assert result.to_latex().count(r"\begin{tabular}") == len(document.tables)
    assert result.to_csv().splitlines()[0] == ",".join(result.data_table().columns)
    result.to_parquet(tmp_path / "values.parquet")
    written = pl.read_parquet(tmp_path / "values.parquet")
    assert written.columns == list(result.data_table().columns)
    assert written.height == len(result.data_table().rows)
    result.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert page.startswith("<!doctype html>")
    assert "<title>" in page
    assert "<b>" not in page
    assert "<style>" in result._repr_html_()


def test_numbers_that_json_cannot_hold_are_none():
    values = {"a": math.nan, "b": [1.0, math.inf], "c": (0.1, math.nan), "d": (0.1, 0.2), "e": "text", "f": None}
    assert plain_values(values) == {"a": None, "b": [1.0, None], "c": None, "d": [0.1, 0.2], "e": "text", "f": None}


def test_names_in_a_document_are_escaped():
    document = Document("<i>", "a < b", [Table(["run"], [["<script>"]])], ["note <b>"], ["<svg></svg>"])
    for text in (document_html(document), document_page(document)):
        assert "<script>" not in text
        assert "<b>" not in text
        assert "<i>" not in text
        assert "<svg></svg>" in text


def test_several_tables_are_one_file():
    tables = Tables([Table(["a"], [[1]]), Table(["b"], [[2]])], lambda: {"x": 1})
    assert tables.to_csv() == "a\n1\n\nb\n2"
    assert json.loads(tables.to_json()) == {"x": 1}


@pytest.mark.parametrize(
    "verb", [["evaluate", "QRELS", "a.run", "b.run"], ["compare", "QRELS", "a.run", "b.run"], ["list", "measures"]]
)
def test_the_name_of_the_file_chooses_the_format(verb, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    sy.Qrels(QRELS).write("QRELS.trec")
    for name, lists in zip(("a", "b"), RUNS.values(), strict=True):
        sy.Run(lists).write(f"{name}.run")
    arguments = ["QRELS.trec" if part == "QRELS" else part for part in verb]
    beginnings = {"html": "<!doctype html>", "json": ("{", "["), "csv": ("run,", "rank,", "measure,", "name,")}
    for suffix, start in {**beginnings, "md": "|", "tex": "\\begin{tabular}"}.items():
        assert run([*arguments, "-o", f"out.{suffix}"]) == 0
        assert (tmp_path / f"out.{suffix}").read_text("utf-8").startswith(start), suffix
        assert capsys.readouterr().out == ""
    assert run([*arguments, "-o", "out.parquet"]) == 0
    assert pl.read_parquet(tmp_path / "out.parquet").height > 1
