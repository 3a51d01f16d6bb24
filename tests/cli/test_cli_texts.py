"""evaluate and compare with a dataset: measures that read texts."""

from __future__ import annotations

import json

import pytest

import steelyard as sy
from needs import import_peer
from steelyard.cli import run

TEXTS = {"a": "the balance weighs gold and silver", "b": "the balance weighs gold and silver", "c": "a boat floats"}
MEASURES = ["R(budget=7)", "Repeats@3", "Repeats(near=True)@3"]


@pytest.fixture
def files(tmp_path):
    sy.Dataset.of(TEXTS, {"q": "gold"}, {"q": ["a", "c"]}).write(tmp_path / "data")
    (tmp_path / "qrels.trec").write_text("q 0 a 1\nq 0 c 1\n")
    (tmp_path / "one.run").write_text("q Q0 a 1 3 one\nq Q0 b 2 2 one\nq Q0 c 3 1 one\n")
    return [str(tmp_path / name) for name in ("qrels.trec", "one.run", "data")]


def options_for(measures):
    return [part for measure in measures for part in ("-m", measure)]


def test_texts_of_the_dataset_are_read(files, capsys):
    qrels, one, data = files
    with_texts = sy.Run(sy.Run.read(one), texts=TEXTS)
    expected = sy.evaluate(qrels, with_texts, MEASURES).means
    assert expected["Repeats@3"] == 1 / 3
    assert run(["evaluate", qrels, one, *options_for(MEASURES), "--set", f"dataset={data}", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["means"] == expected
    assert run(["compare", qrels, one, *options_for(MEASURES), "--set", f"dataset={data}", "--format", "json"]) == 0
    row = json.loads(capsys.readouterr().out)["leaderboard"][0]
    assert {measure: row[measure] for measure in MEASURES} == expected


@pytest.mark.parametrize("measure", ["R(budget=7)", "Repeats(near=True)@3"])
def test_error_without_a_dataset_names_the_option(files, measure, capsys):
    assert run(["evaluate", *files[:2], "-m", measure]) == 2
    assert "--set dataset=DIR" in capsys.readouterr().err


def test_a_dataset_in_place_of_qrels_has_the_texts(files, tmp_path, capsys):
    import_peer("jinja2")
    _, one, data = files
    page = tmp_path / "report.html"
    assert run(["compare", data, one, *options_for(MEASURES), "--format", "json"]) == 0
    assert set(MEASURES) <= set(json.loads(capsys.readouterr().out)["leaderboard"][0])
    assert run(["compare", data, one, "-o", str(page)]) == 0
    text = page.read_text("utf-8")
    assert TEXTS["c"] in text
    assert "made without a dataset" not in text
