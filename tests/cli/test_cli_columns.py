"""Named columns on the command line, queries without documents, and datasets with options."""

import json
import re

import polars as pl
import pytest

import steelyard as sy
from steelyard.cli import run
from steelyard.run import Run

NAMED = ["--set", "columns=query_id=question,doc_id=passage,score=how near"]
NAMED_QRELS = ["--set", "columns=qrels.query_id=question,qrels.doc_id=passage", "--set", "columns=qrels.grade=worth"]


@pytest.fixture
def files(tmp_path):
    qrels, table, parquet, trec = (tmp_path / name for name in ("q.csv", "near.csv", "near.parquet", "bm25.run"))
    qrels.write_text("question,passage,worth\nq1,a,1\nq2,c,2\nq3,d,1\n")
    table.write_text("question,passage,how near\nq1,b,0.5\nq1,a,2.5\nq2,c,1\nq3,,\n")
    pl.read_csv(table).write_parquet(parquet)
    trec.write_text("q1 Q0 a 1 2.5 bm25\n")
    return [str(path) for path in (qrels, table, parquet, trec)]


def means(capsys):
    out, err = capsys.readouterr()
    return [part["means"] for part in json.loads(out)["runs"]], err


@pytest.mark.parametrize("place", [1, 2])
def test_evaluate_with_named_columns(files, place, capsys):
    arguments = ["evaluate", files[0], files[place], "-m", "AP", "-m", "nDCG", "--format", "json"]
    assert run([*arguments, *NAMED, *NAMED_QRELS]) == 0
    found, err = means(capsys)
    assert found == [{"AP": pytest.approx(2 / 3), "nDCG": pytest.approx(2 / 3)}]
    assert "1 query has an empty list and scores 0." in err


def test_run_with_fixed_columns_among_others(files, capsys):
    arguments = ["evaluate", files[0], files[3], files[1], "-m", "AP", "--format", "json", *NAMED_QRELS]
    assert run([*arguments, *NAMED]) == 0
    found, err = means(capsys)
    assert [part["AP"] for part in found] == [pytest.approx(1 / 3), pytest.approx(2 / 3)]
    assert "a TREC run has no role 'query_id' to name a column for; its columns are fixed. The columns are used" in err
    assert run(["evaluate", files[0], files[3], "-m", "AP", *NAMED_QRELS, *NAMED]) == 2


def test_compare_reconcile_and_fuse_with_named_columns(files, tmp_path, capsys):
    assert run(["compare", files[0], files[1], files[3], "-m", "AP", "--format", "json", *NAMED, *NAMED_QRELS]) == 0
    assert [row["run"] for row in json.loads(capsys.readouterr().out)["leaderboard"]] == ["near", "bm25"]
    options = ["-m", "MAP@5", "--dialects", "trec_eval-9,multihop-rag", *NAMED, *NAMED_QRELS]
    assert run(["reconcile", files[0], files[1], *options]) == 0
    assert run(["reconcile", files[0], files[1], "--value", "0.6667", *NAMED, *NAMED_QRELS]) == 0
    fused = tmp_path / "fused.json"
    assert run(["fuse", files[1], files[2], *NAMED, "-o", str(fused)]) == 0
    assert list(Run.read(fused).frame["doc_id"]) == ["a", "b", "c"]
    tune = ["--tune", files[0], *NAMED_QRELS, "--set", "folds=3", "-m", "AP"]
    assert run(["fuse", files[1], files[2], *NAMED, *tune]) == 0


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            ["--set", "columns=query_id=question,doc_id=pasage"],
            "no column 'pasage' for doc_id; the columns are question",
        ),
        (["--set", "columns=query_id=question,doc_id=pasage"], "Did you mean passage?"),
        (
            ["--set", "columns=qid=question"],
            "a run has no role 'qid' to name a column for; expected query_id, doc_id, score",
        ),
        (["--set", "columns=qid=question"], "Did you mean query_id?"),
        (["--set", "columns=grade=how near"], "a run has no role 'grade' to name a column for"),
        (["--set", "columns=question"], "--set columns is 'question'; expected a role and the name of a column"),
        (["--set", "columns=doc_id=a,doc_id=b"], "--set columns names two columns for doc_id, 'a' and 'b'"),
        ([], "--set columns=query_id=...,doc_id=... for a run"),
    ],
)
def test_wrong_columns_are_reported(files, options, expected, capsys):
    assert run(["evaluate", files[0], files[1], "-m", "AP", *NAMED_QRELS, *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert expected in err


def test_columns_of_runs_cannot_be_used_with_scores(tmp_path, capsys):
    table = tmp_path / "scores.csv"
    table.write_text("run,query_id,AP\na,1,1\nb,1,0.5\n")
    assert run(["compare", "--scores", str(table), "-m", "AP", "--set", "columns=doc_id=d"]) == 2
    assert "expected one of run, query, measure, value, repeat" in capsys.readouterr().err


def test_validate_with_named_columns(files, capsys):
    assert run(["validate", files[1], *NAMED]) == 0
    assert "a run, format csv" in capsys.readouterr().out
    assert run(["validate", files[0], "--set", "columns=query_id=question,doc_id=passage,grade=worth"]) == 0
    assert "grades: 1 (2), 2 (1)" in capsys.readouterr().out
    assert run(["validate", files[0], "--set", "columns=query_id=question,doc_id=passages"]) == 2
    assert "error: no column 'passages' for doc_id" in capsys.readouterr().out


def test_convert_with_named_columns_and_drop_empty(files, tmp_path, capsys):
    target = tmp_path / "near.run"
    assert run(["convert", files[1], str(target), *NAMED]) == 2
    err = capsys.readouterr().err
    assert "1 query has no documents, which a trec-run file cannot express:\n  'q3'" in err
    assert "convert --set drop_empty=yes" in err
    assert not target.exists()
    assert run(["convert", files[1], str(target), *NAMED, "--set", "drop_empty=yes"]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "run, csv to trec-run: 2 queries, 3 documents",
        "  1 query without documents was dropped ('q3')",
    ]
    assert target.read_text() == "q1 Q0 a 1 2.5 near\nq1 Q0 b 2 0.5 near\nq2 Q0 c 1 1.0 near\n"


def test_dataset_with_options_in_every_verb(files, tmp_path, monkeypatch, capsys):
    pages = []
    # The importing module first: imported after the other is replaced, it would keep the replacement.
    for place in ("steelyard.benchmark.result.write_page", "steelyard.report.page.page.write_page"):
        monkeypatch.setattr(place, lambda subject, *_, **__: pages.append(dict(subject.documents)))
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "corpus.jsonl").write_text('{"_id": "a", "text": "a balance"}\n{"_id": "c", "text": "a boat"}\n')
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "weighing"}\n{"_id": "q2", "text": "sailing"}\n')
    (folder / "mine.tsv").write_text("query-id\tcorpus-id\tscore\nq1\ta\t1\nq2\tc\t1\n")
    named = f"{{path: {folder}, qrels: mine.tsv}}"
    page = tmp_path / "page.html"
    arguments = ["compare", str(folder / "mine.tsv"), files[3], "-m", "AP", "-o", str(page), "--set"]
    assert run([*arguments, f"dataset={folder}"]) == 0, "the texts are enough: the qrels are the first argument"
    assert pages.pop()["a"] == ("", "a balance")
    assert run([*arguments, f"dataset={named}"]) == 0
    assert pages[-1]["a"] == ("", "a balance")
    assert run(["validate", named]) == 0
    assert "2 documents, 2 queries, 2 judgments" in capsys.readouterr().out
    bench = tmp_path / "bench.yaml"
    bench.write_text(f"dataset: {named}\nretrievers: [bm25-okapi]\nmeasures: [RR]\nwarmup: 0\n")
    assert run(["bench", str(bench)]) == 0
    assert json.loads((tmp_path / "bench-result" / "result.json").read_text())["dataset"]["documents"] == 2


def test_dataset_folder_as_qrels(tmp_path, capsys):
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a", "text": "x"}\n')
    (tmp_path / "queries.jsonl").write_text(
        '{"_id": "q1", "text": "?"}\n{"_id": "q2", "text": "?", "answerable": false}\n'
    )
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\ta\t1\n")
    (tmp_path / "a.json").write_text('{"q1": ["a"], "q2": ["a"]}')
    for judged, mean in ((tmp_path, 0.5), (tmp_path / "qrels.tsv", 1.0)):
        assert run(["evaluate", str(judged), str(tmp_path / "a.json"), "-m", "RR", "--format", "json"]) == 0
        assert means(capsys)[0] == [{"RR": mean}]
    (tmp_path / "queries.jsonl").write_text(
        '{"_id": "q1", "text": "?", "type": "x"}\n{"_id": "q2", "text": "?", "type": "y", "answerable": false}\n'
    )
    assert run(["compare", str(tmp_path), str(tmp_path / "a.json"), "-m", "RR", "--by", "type", "--all"]) == 0
    assert "RR by type" in capsys.readouterr().out


def test_qrels_format(tmp_path, capsys):
    qrels, listed = tmp_path / "q.qrels", tmp_path / "a.json"
    qrels.write_text("q1 1 a 1\nq1 2 b 1\nq1 2 c 1\n")
    listed.write_text('{"q1": ["b", "c", "a"]}')
    command = ["evaluate", str(qrels), str(listed), "-m", "R(per=target)@2", "--format", "json"]
    assert run(command) == 0
    plain, err = means(capsys)
    assert "steelyard convert --from trec-diversity" in err
    converted = str(tmp_path / "q.jsonl")
    assert run(["convert", str(qrels), converted, "--from", "trec-diversity"]) == 0
    capsys.readouterr()
    assert run(["evaluate", converted, *command[2:]]) == 0
    assert (plain, means(capsys)[0]) == ([{"R(per=target)@2": 2 / 3}], [{"R(per=target)@2": 0.5}])
    assert run([*command, "--qrels-format", "trec-diversity"]) == 2
    assert "Use `steelyard convert QRELS qrels.jsonl --from FORMAT` first" in capsys.readouterr().err


def test_a_pool_of_runs_with_named_columns(files, tmp_path, capsys):
    pool = tmp_path / "pool.jsonl"
    assert run(["pool", files[1], files[2], *NAMED, "-o", str(pool)]) == 0
    assert [json.loads(line)["doc_id"] for line in pool.read_text().splitlines()[1:]] == ["a", "c", "b"]
    assert run(["pool", files[1], files[2], *NAMED, *NAMED_QRELS, "--qrels", files[0], "-o", str(pool)]) == 0
    assert [json.loads(line)["doc_id"] for line in pool.read_text().splitlines()[1:]] == ["b"]
    capsys.readouterr()
    assert run(["pool", files[1], files[2], *NAMED, *NAMED_QRELS, "-o", str(pool)]) == 2
    assert "--set columns=qrels... is for --qrels; add --qrels FILE." in capsys.readouterr().err


def test_the_advice_on_columns_is_of_what_has_them():
    frame = pl.DataFrame({"question": ["q1"], "passage": ["d1"], "near": [1.0]})
    with pytest.raises(sy.InputError, match=re.escape('(query_id="..." in sy.Run, sy.Qrels or steelyard.spark)')):
        sy.evaluate({"q1": ["d1"]}, frame, "RR")
    named = sy.Run(frame, query_id="question", doc_id="passage", score="near")
    assert sy.evaluate({"q1": ["d1"]}, named, "RR").means == {"RR": 1.0}


def test_the_result_of_a_bench_in_the_place_of_qrels(files, tmp_path, capsys):
    (tmp_path / "result.json").write_text("{}")
    assert run(["compare", str(tmp_path), "-m", "AP"]) == 2
    assert "is the result of a bench: use its qrels.parquet and runs/*.parquet" in capsys.readouterr().err
