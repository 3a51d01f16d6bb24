"""Inputs that look wrong are reported in Python as on the command line: by an error, or by one warning per call."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import steelyard as sy
from needs import import_peer
from steelyard.cli import run as cli
from steelyard.errors import InputError, PolicyError
from steelyard.measures import F1, MRR, RR, R_cap, nDCG

pytestmark = pytest.mark.filterwarnings("default::steelyard.SteelyardWarning")

QRELS = {"q1": {"d1": 2, "d2": 1}, "q2": {"d3": 1}}
RUN = {"q1": {"d1": 9.5, "d7": 8.25, "d2": 3.5}, "q2": {"d3": 7.25, "d1": 2.5, "d5": 1.5}}
DISTANCES = {"q1": {"d1": 0.1, "d7": 0.2, "d2": 0.4}, "q2": {"d3": 0.15, "d1": 0.2, "d5": 0.35}}
LONG = {
    "run": ["a", "a", "b", "b"],
    "query_id": ["q1", "q2", "q1", "q2"],
    "doc_id": ["d1", "d3", "d7", "d3"],
    "score": [2.0, 1.0, 3.0, 1.0],
}


def codes(notes: Any) -> list[str]:
    return [note.code for note in notes]


def test_no_warning_where_nothing_is_wrong(recwarn: pytest.WarningsRecorder) -> None:
    assert sy.evaluate(QRELS, RUN, "nDCG@10").notes
    assert not list(recwarn)


def test_no_shared_query_is_reported() -> None:
    with pytest.warns(sy.SteelyardWarning, match=r"No query of the run is in the qrels.*'x1'.*'q1'"):
        scores = sy.evaluate(QRELS, {"x1": ["d1"]}, "nDCG@10")
    assert scores.means == {"nDCG@10": 0}
    assert scores.notes[0].severity == "error"


def test_document_ids_that_differ_in_case_are_reported() -> None:
    with pytest.warns(sy.SteelyardWarning, match="only in upper and lower case"):
        sy.evaluate(QRELS, {"q1": ["D1", "D2"]}, "nDCG@10")


def test_all_warnings_of_a_call_are_one() -> None:
    run = {"q1": ["d1", "d1", "d8"]}
    with pytest.warns(sy.SteelyardWarning) as caught:
        scores = sy.evaluate(QRELS, run, ["nDCG@10", "P@10"])
    assert len(caught) == 1
    assert caught[0].filename == __file__
    warned = [note for note in scores.notes if note.severity == "warning"]
    assert codes(warned) == ["missing-queries", "repeated-documents", "lists-shorter-than-cutoff"]
    for note in warned:
        assert str(note)[1:] in str(caught[0].message)


def test_compare_names_the_run_of_each_warning() -> None:
    with pytest.warns(sy.SteelyardWarning, match="^half: 1 query is missing") as caught:
        sy.compare(QRELS, {"whole": RUN, "half": {"q1": ["d1", "d2"]}}, ["nDCG@10"])
    assert len(caught) == 1


def test_the_command_line_shows_notes_and_no_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    (tmp_path / "q.json").write_text(json.dumps(QRELS))
    (tmp_path / "r.json").write_text(json.dumps({"q1": {"d1": 0.5}}))
    assert cli(["evaluate", str(tmp_path / "q.json"), str(tmp_path / "r.json")]) == 0
    assert "1 query is missing" in capsys.readouterr().err
    assert not list(recwarn)


@pytest.mark.parametrize("form", ["mapping", "Run", "frame", "pairs", "trec", "json", "csv"])
def test_scores_like_distances_are_reported(tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run: Any = {"mapping": DISTANCES, "Run": sy.Run(DISTANCES), "frame": sy.Run(DISTANCES).table}.get(form)
    if form == "pairs":
        run = {query: list(listed.items()) for query, listed in DISTANCES.items()}
    if run is None:
        run = tmp_path / form
        run.write_text(
            {
                "json": json.dumps(DISTANCES),
                "csv": sy.Run(DISTANCES).table.write_csv(),
                "trec": "".join(
                    f"{query} Q0 {doc} {rank} {score} faiss\n"
                    for query, listed in DISTANCES.items()
                    for rank, (doc, score) in enumerate(listed.items(), start=1)
                ),
            }[form]
        )
    for native in ("1", "0"):
        monkeypatch.setenv("STEELYARD_NATIVE", native)
        with pytest.warns(sy.SteelyardWarning, match="as distances do"):
            scores = sy.evaluate(QRELS, run, "RR")
        found = next(note for note in scores.notes if note.code == "scores-like-distances")
        assert found["ordered"] == (form == "pairs")
        assert scores["RR"] == (1.0 if form == "pairs" else pytest.approx(5 / 12 + 1 / 4))


def test_qrels_and_run_in_the_wrong_places() -> None:
    with pytest.raises(sy.InputError, match="swapped"):
        sy.evaluate(sy.Run(RUN), sy.Qrels(QRELS))
    with pytest.raises(sy.InputError, match="swapped"):
        sy.evaluate(QRELS, sy.Qrels(QRELS))
    with pytest.warns(sy.SteelyardWarning, match="swapped"):
        scores = sy.evaluate(RUN, QRELS)
    assert "qrels-and-run-swapped" in codes(scores.notes)


def test_whole_scores_alone_are_no_reason_for_doubt() -> None:
    run = {query: {doc: int(score) for doc, score in listed.items()} for query, listed in RUN.items()}
    assert "qrels-and-run-swapped" not in codes(sy.evaluate(QRELS, run, "RR").notes)


def test_a_column_name_that_a_frame_has_twice():
    frame = import_peer("pandas").DataFrame([["q1", "a", 1.0, 2.0]], columns=["query_id", "doc_id", "score", "score"])
    with pytest.raises(InputError, match="more than one column 'score'"):
        sy.Run(frame)


@pytest.mark.parametrize("read", [sy.Run, sy.Qrels, lambda series: sy.evaluate(QRELS, series), sy.Judgments])
def test_a_series_is_not_a_frame(read):
    series = import_peer("pandas").Series({"d1": 1.0})
    with pytest.raises(
        InputError, match=r"a Series cannot be read; expected .* Make it a frame, as by reset_index\(\)"
    ):
        read(series)


@pytest.mark.parametrize("frame", ["pandas.DataFrame", "polars.DataFrame", "pyarrow.table"])
def test_a_frame_of_several_runs(frame: str) -> None:
    package, _, name = frame.partition(".")
    made = getattr(import_peer(package), name)(LONG)
    with pytest.raises(sy.InputError, match=r"the column 'run' names 2 runs \(a and b\)"):
        sy.evaluate(QRELS, made)
    result = sy.compare(QRELS, made, ["RR"])
    assert result.leaderboard.select("run", "RR").rows() == [("a", 1.0), ("b", 0.5)]


def test_one_run_whose_rows_have_several_tags_is_one_run() -> None:
    frame = pl.DataFrame({**LONG, "run": ["a", "b", "a", "b"], "doc_id": ["d1", "d3", "d2", "d4"]})
    assert len(sy.Run(frame)) == 4


def test_a_long_frame_without_a_run_column_is_an_error() -> None:
    with pytest.raises(sy.InputError, match="none of its columns .* names the run"):
        sy.compare(QRELS, pl.DataFrame(LONG).drop("run"), ["RR"])


def test_unnamed_frames_get_distinct_names() -> None:
    a, b = (sy.Run(RUN).table, import_peer("pandas").DataFrame(LONG).query("run == 'b'").assign(name="x"))
    assert sy.compare(QRELS, [a, b], ["RR"]).runs == ("run-1", "run-2")
    assert sy.compare(QRELS, [a, sy.Run(b, name="b")], ["RR"]).runs == ("run", "b")


def test_warnings_can_be_errors() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", sy.SteelyardWarning)
        with pytest.raises(sy.SteelyardWarning):
            sy.evaluate(QRELS, {"q1": ["d1"]})


def test_measures_may_be_values_wherever_they_may_be_texts(tmp_path: Path) -> None:
    scores = pl.DataFrame({"run": ["a", "b"] * 2, "query_id": ["q1", "q1", "q2", "q2"], "nDCG@10": [0.1, 0.2, 1, 0]})
    assert str(nDCG @ np.int64(10)) == "nDCG@10"
    compared = sy.compare(QRELS, {"a": RUN, "b": {"q1": ["d2"], "q2": ["d1"]}}, nDCG @ 10, composite={nDCG @ 10: 1.0})
    assert sy.across({"x": compared, "y": compared}, nDCG @ 10).measure == "nDCG@10"
    assert compared.movers("a", "b", nDCG @ 10)
    assert sy.compare_scores(scores, [nDCG @ 10]).leaderboard_rows[0].run == "a"
    agreed = sy.agreement({"x": QRELS, "y": QRELS}, {"a": RUN, "b": {"q1": ["d2"], "q2": ["d1"]}}, nDCG @ 10)
    assert len(agreed.scores("x", "y", nDCG @ 10)) == 3
    settings = {"dataset": "demo", "retrievers": ["bm25-okapi"], "composite": {RR: 1}}
    assert sy.Bench(**settings, measures=[nDCG(gain="exp") @ 10, "RR"]).measures == ["nDCG(gain=exp)@10", "RR"]


def test_a_measure_that_a_bench_cannot_use_is_its_only_problem(tmp_path: Path) -> None:
    bench = {"dataset": "demo", "retrievers": ["bm25-okapi"], "gate": ["nDCG@10 >= 0.5"]}
    with pytest.raises(InputError, match="(?s)1 problem; nothing was run:.*valid string, got 5"):
        sy.bench({**bench, "measures": [5]}, tmp_path / "out")
    with pytest.raises(InputError, match="1 problem(?s:.*)the dialect mlflow has another nDCG; name its own measure"):
        sy.bench({**bench, "measures": [nDCG @ 10], "dialect": "mlflow"}, tmp_path / "out")


def test_arguments_of_another_kind_are_taken_or_refused_with_a_message() -> None:
    runs = {"a": RUN, "b": {"q1": ["d2"], "q2": ["d1"]}}
    compared = sy.compare(QRELS, runs, "nDCG", at=1)
    assert [row.k for row in compared.leaderboard_rows] == [1, 1]
    with pytest.raises(PolicyError, match="the baseline 0 is not one of the runs; expected one of a, b"):
        sy.compare(QRELS, runs, "nDCG@10", baseline=0)
    for write in (compared.to_markdown, compared.to_json, compared.to_text, compared.to_latex):
        with pytest.raises(InputError, match=r"movers is 'x.md'; expected a number of queries. to_html and"):
            write("x.md")
    for stages in (None, [("retrieve", RUN)]):
        with pytest.raises(InputError, match=r"the stages are .*; expected a mapping, as in {'retrieve': run}"):
            sy.stages(QRELS, stages)


def test_aliases_of_measures_can_be_imported() -> None:
    assert (str(F1 @ 5), str(MRR @ 10), str(R_cap @ 5)) == ("F@5", "RR@10", "R(cap=True)@5")


def test_a_dataset_or_its_folder_gives_its_qrels(tmp_path: Path) -> None:
    queries = {"q1": {"text": "one", "kind": "x"}, "q2": {"text": "two", "kind": "y"}}
    dataset = sy.Dataset.of({"d1": "a", "d2": "b", "d3": "c"}, queries, QRELS)
    dataset.write(tmp_path)
    runs = {"a": RUN, "b": {"q1": ["d2"], "q2": ["d1"]}}
    scores, compared = sy.evaluate(QRELS, RUN, "nDCG@10"), sy.compare(QRELS, runs, "nDCG@10")
    for source in (dataset, tmp_path, str(tmp_path)):
        assert sy.evaluate(source, RUN, "nDCG@10").means == scores.means
        assert sy.evaluate(source, RUN, "nDCG@10").to_dict()["inputs"]["judgments"].keys() == {"fingerprint"}
        sliced = sy.compare(source, runs, "nDCG@10", by="kind")
        assert sliced.leaderboard_rows[0].means == compared.leaderboard_rows[0].means
        assert {part.value for part in sliced.slices} == {"x", "y"}
        assert sy.stages(source, {"retrieve": RUN}).table.height == 1
        assert sy.Qrels(source) == sy.Qrels(QRELS)
        with pytest.raises(InputError, match="the queries have no column 'sort'; expected one of"):
            sy.compare(source, runs, "nDCG@10", by="sort")
