"""The command line: stdout, stderr and exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from needs import needs_kernel, not_on_windows
from steelyard.cli import VERBS, run


@pytest.fixture
def files(tmp_path):
    qrels, first, second = tmp_path / "qrels.trec", tmp_path / "first.run", tmp_path / "second.run"
    qrels.write_text("q1 0 a 1\nq1 0 b 2\nq2 0 c 1\nq3 0 d 1\n")
    first.write_text("q1 Q0 b 1 3 one\nq1 Q0 a 2 2 one\nq2 Q0 c 1 1 one\n")
    second.write_text("q1 Q0 x 1 3 two\nq1 Q0 a 2 2 two\nq2 Q0 y 1 2 two\nq2 Q0 c 2 1 two\nq9 Q0 z 1 1 two\n")
    return str(qrels), str(first), str(second)


def test_evaluate_as_json(files, capsys):
    qrels, first, _ = files
    assert run(["evaluate", qrels, first, "-m", "nDCG@10", "-m", "AP", "--format", "json", "--per-query"]) == 0
    out, err = capsys.readouterr()
    made = json.loads(out)
    assert made["dialect"] == "steelyard"
    one = made["runs"][0]
    assert one["name"] == "one"
    assert one["means"]["AP"] == pytest.approx(2 / 3)
    assert one["per_query"]["q3"] == {"nDCG@10": 0.0, "AP": 0.0}
    assert one["coverage"] == {
        "queries": 3, "answered": 2, "missing": 1, "empty": 0, "without_judgments": 0, "no_relevant": 0,
        "documents": 3, "unjudged": 0, "repeated": 0, "tie_sensitive": 0, "below_rel": 0, "no_relevant_strictest": 0,
    }  # fmt: skip
    assert "1 query is missing from the run and scores 0" in err


@pytest.mark.parametrize("format", ["table", "csv", "markdown", "latex"])
def test_evaluate_in_every_format(files, capsys, format):
    assert run(["evaluate", *files, "-m", "P@2", "--format", format]) == 0
    out = capsys.readouterr().out
    assert "P@2" in out
    assert "one" in out
    assert "two" in out


def test_output_file(files, tmp_path, capsys):
    target = tmp_path / "scores.csv"
    assert run(["evaluate", files[0], files[1], "-m", "AP", "--format", "csv", "-o", str(target)]) == 0
    assert capsys.readouterr().out == ""
    assert target.read_text().startswith("run,measure,value,low,high,queries\none,AP,0.6666666666666666")


def test_policies_and_dialects(files, capsys):
    assert run(["evaluate", files[0], files[1], "-m", "map", "--dialect", "trec_eval-9", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["means"]["map"] == 1.0
    assert run(["evaluate", files[0], files[1], "-m", "AP", "--missing", "error"]) == 2
    assert "'q3'" in capsys.readouterr().err


def test_compare_as_json_and_markdown(files, capsys):
    assert run(["compare", *files, "-m", "AP", "--baseline", "two", "--format", "json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert [row["run"] for row in made["leaderboard"]] == ["one", "two"]
    assert made["pairs"][0]["baseline"] == "two"
    assert run(["compare", *files, "-m", "AP", "-m", "P@2", "--format", "markdown"]) == 0
    assert capsys.readouterr().out.startswith("| Retriever")


def test_compare_shows_movers_and_writes_the_page(files, tmp_path, capsys):
    queries = tmp_path / "queries.jsonl"
    queries.write_text('{"_id": "q1", "text": "why?"}\n{"_id": "q2", "text": "where?"}\n')
    page = tmp_path / "page.html"
    arguments = ["compare", *files, "-m", "AP", "--baseline", "one", "--set", "movers=2", "--set", f"queries={queries}"]
    assert run([*arguments, "-o", str(page)]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "one leads two on AP" in err
    assert run(arguments) == 0
    out = capsys.readouterr().out
    assert "two vs one: 2 queries lost on AP" in out
    assert "- q1 why?: 1.0000 -> 0.2500" in out
    assert page.read_text().startswith("<!doctype html>")
    assert run([*arguments, "--format", "markdown"]) == 0
    assert "## Queries that changed most" in capsys.readouterr().out
    assert run([*arguments, "--format", "latex"]) == 0
    assert "q1 & why? & 1.0000 & 0.2500 & " in capsys.readouterr().out
    assert run([*arguments, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["movers"][0]["queries_lost"] == 2
    text = tmp_path / "text.txt"
    assert run([*arguments, "-o", str(text)]) == 0
    assert "- q1 why?: 1.0000 -> 0.2500" in text.read_text()


def test_movers_as_csv_are_an_error(files, tmp_path, capsys):
    for more in (["--format", "csv"], ["-o", str(tmp_path / "a.csv")]):
        assert run(["compare", *files, "-m", "AP", "--set", "movers=2", *more]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert "use table, markdown, latex or json" in err
    assert run(["compare", *files, "-m", "AP", "--set", "movers=-1"]) == 2
    assert "--set movers is -1; expected 0 or more" in capsys.readouterr().err


def test_compare_as_csv_reports_where_the_tests_are(files, capsys):
    assert run(["compare", *files, "-m", "AP", "--format", "csv"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("rank,run,AP,group,rank_low,rank_high,AP low,AP high\n")
    assert "with --baseline NAME, the differences from it are columns here" in err
    assert run(["compare", *files, "-m", "AP", "--format", "csv", "--baseline", "one"]) == 0
    out, err = capsys.readouterr()
    assert "AP difference,AP difference low,AP difference high,AP p_adjusted,AP verdict" in out
    assert "with --baseline" not in err


@pytest.mark.slow
@not_on_windows  # which has no pseudo-terminals
def test_terminal_shows_all_columns(files):
    import pty

    outer, inner = pty.openpty()
    environment = {**os.environ, "COLUMNS": "60", "NO_COLOR": "1", "TERM": "xterm"}
    measures = [part for k in range(1, 9) for part in ("-m", f"nDCG@{k}")]
    command = [sys.executable, "-m", "steelyard", "compare", *files, *measures, "--all"]
    made = subprocess.run(command, stdout=inner, stderr=subprocess.PIPE, env=environment, check=False)
    os.close(inner)
    text = os.read(outer, 100_000).decode()
    os.close(outer)
    assert made.returncode == 0
    lines = text.split("\r\n")
    assert max(map(len, lines)) <= 60
    assert "…" not in text
    assert "\x1b" not in text
    assert sum(line.startswith("rank ") for line in lines) > 1
    assert all(f"nDCG@{k}" in text for k in range(1, 9))


def test_run_with_other_queries_is_an_error(files, tmp_path, capsys):
    other = tmp_path / "other.run"
    other.write_text("x1 Q0 a 1 1 t\nx2 Q0 b 1 1 t\n")
    assert run(["evaluate", files[0], str(other), "-m", "AP"]) == 2
    assert "no query of the run is in the qrels: the run has 'x1', 'x2'" in capsys.readouterr().err
    assert run(["compare", files[0], files[1], str(other), "-m", "AP"]) == 2


def test_file_name_selects_the_format(files, tmp_path):
    for name, begins in (("a.csv", "run,measure"), ("a.json", "{"), ("a.md", "| run"), ("a.tex", "\\begin{tabular}")):
        assert run(["evaluate", files[0], files[1], "-m", "AP", "-o", str(tmp_path / name)]) == 0
        assert (tmp_path / name).read_text().startswith(begins)


def test_compare_score_tables(tmp_path, capsys):
    table = tmp_path / "per-query.csv"
    table.write_text("method,query_id,MRR\na,1,1\na,2,0.5\nb,1,0.5\nb,2,0.25\n")
    arguments = ["compare", "--scores", str(table), "--run-column", "method", "--query-column", "query_id", "-m", "MRR"]
    assert run([*arguments, "--baseline", "b", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["pairs"][0]["difference"] == 0.375


def test_explain_measures_dialects_reconcile(files, capsys):
    assert run(["explain", "nDCG@10", "--dialect", "autorag"]) == 0
    assert "ideal=retrieved" in capsys.readouterr().out
    assert run(["explain", "--dialect", "autorag", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["names"]["retrieval_recall"] == "R(per=target)"
    assert run(["list", "measures", "--format", "json"]) == 0
    assert any(row["measure"].startswith("nDCG") for row in json.loads(capsys.readouterr().out))
    assert run(["list", "dialects"]) == 0
    assert "trec_eval-9" in capsys.readouterr().out
    assert run(["reconcile", files[0], files[2], "-m", "MAP@5", "--dialects", "trec_eval-9,multihop-rag"]) == 0
    assert "denominator: relevant in trec_eval-9, found in multihop-rag" in capsys.readouterr().out


def test_validate_and_convert(files, tmp_path, capsys):
    assert run(["validate", *files]) == 0
    assert "qrels, format trec-qrels" in capsys.readouterr().out
    junk = tmp_path / "junk"
    junk.write_bytes(bytes(range(256)))
    assert run(["validate", str(junk)]) == 2
    parquet = tmp_path / "first.parquet"
    assert run(["convert", files[1], str(parquet)]) == 0
    capsys.readouterr()
    assert run(["evaluate", files[0], str(parquet), "-m", "AP", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["means"]["AP"] == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["evaluate"], "QRELS"),
        (["evalute"], "evaluate"),
        (["evaluate", "absent.qrels", "absent.run"], "absent.qrels"),
        (["explain", "ndgc"], "Did you mean nDCG"),
        (["explain", "P@0"], "1 or more"),
        (["explain", "P", "--dialect", "treceval"], "trec_eval-9"),
        (["compare"], "--help"),
        (["evaluate", "absent.qrels", "P@3"], "there is no file 'P@3'; it looks like a measure: use -m P@3."),
        (["compare", "a.qrels", "b.run", "P(rel=2)@3"], "use -m 'P(rel=2)@3'."),
        (["bench", "absent.yaml"], "absent.yaml"),
    ],
)
def test_wrong_commands_exit_with_2_and_one_message(arguments, expected, capsys):
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert expected in err
    assert "Traceback" not in err


def test_internal_error_exits_with_3_and_writes_a_log(monkeypatch, capsys, tmp_path):
    import steelyard.cli.listings as verb

    def broken(*_):
        raise RuntimeError("unforeseen")

    monkeypatch.setattr(verb, "explain_measure", broken)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert run(["explain", "AP"]) == 3
    err = capsys.readouterr().err
    assert "unforeseen" in err
    assert "Traceback" in next(tmp_path.glob("steelyard-*.log")).read_text()


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_every_verb_has_an_example_and_fits_80_columns(verb, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert run([verb, "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if len(line) > 80] == []
    start = next(place for place, line in enumerate(lines) if line in ("Example:", "Examples:"))
    assert lines[start + 1] == ""
    assert lines[start + 2].startswith(f"  steelyard {verb}") or verb == "bench"


def test_help_of_the_command_lists_every_verb_and_fits_80_columns(capsys):
    assert run(["--help"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert all(f"  {verb} " in out for verb in VERBS)


def test_command_in_a_pipe(files):
    command = [sys.executable, "-m", "steelyard", "evaluate", files[0], files[1], "-m", "AP"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"}, check=False)
    assert done.returncode == 0
    assert done.stdout.splitlines()[1].split() == ["one", "AP", "0.6667", "0.0000", "1.0000", "3"]
    assert "\x1b" not in done.stdout
    version = subprocess.run(
        [sys.executable, "-m", "steelyard", "--version"], capture_output=True, text=True, check=False
    )
    assert version.stdout.startswith("steelyard 0.")


def test_importing_steelyard_imports_no_large_library():
    code = (
        "import sys, steelyard; "
        "heavy = {'polars', 'scipy', 'rich', 'typer', 'jinja2', 'altair', 'pydantic', 'yaml', 'pandas', 'pyarrow'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@needs_kernel
def test_evaluating_a_trec_file_needs_no_polars(files):
    code = (
        "import sys; from steelyard.cli import run; "
        f"run(['evaluate', {files[0]!r}, {files[1]!r}, '-m', 'nDCG@10', '--format', 'json']); "
        "print(sorted({'polars', 'scipy', 'pydantic', 'yaml'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"


def test_folder_in_the_place_of_a_file(files, tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("words")
    (tmp_path / "empty").mkdir()
    assert run(["evaluate", str(tmp_path), files[1]]) == 2
    assert f"expected a file with qrels. Did you mean one of these: {files[0]}?" in capsys.readouterr().err
    assert run(["evaluate", files[0], str(tmp_path)]) == 2
    assert f"expected a file with a run. Did you mean one of these: {files[1]}, {files[2]}?" in capsys.readouterr().err
    assert run(["evaluate", files[0], str(tmp_path / "empty")]) == 2
    assert "Nothing in it can be read as a run; it holds nothing." in capsys.readouterr().err


def test_validate_continues_after_a_bad_path(files, tmp_path, capsys):
    (tmp_path / "folder").mkdir()
    bad = [str(tmp_path / "absent"), str(tmp_path / "folder")]
    assert run(["validate", files[0], *bad, files[1]]) == 2
    out, err = capsys.readouterr()
    assert err == ""
    assert [line.rpartition(": ")[2] for line in out.splitlines() if line[0] != " "] == [
        "qrels, format trec-qrels",
        "not readable",
        "not readable",
        "a run, format trec-run",
    ]
    assert run(["validate", files[0], *bad, "--format", "json"]) == 2
    assert [row["ok"] for row in json.loads(capsys.readouterr().out)] == [True, False, False]


def test_compare_without_qrels(files, tmp_path, capsys):
    _, first, second = files
    assert run(["compare", "--no-qrels", first, second, "--at", "2"]) == 0
    out, err = capsys.readouterr()
    assert "overlap@2" in out
    assert "one and two share 50% of their first 2 documents. No qrels" in err
    assert "steelyard pool" in err
    assert run(["compare", "--no-qrels", first, second, "--at", "2", "--format", "json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["qrels"], made["depth"], made["pairs"][0]["queries"]) == (None, 2, 2)
    assert run(["compare", "--no-qrels", first, second, "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith("run,other run,queries,overlap@10,RBO,tau,same first\none,two,2,")
    for format in ("markdown", "latex"):
        assert run(["compare", "--no-qrels", first, second, "--format", format]) == 0
        assert "two" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (["-m", "AP"], "measures cannot be used; leave it out, or give qrels"),
        (["--baseline", "one", "--missing", "skip"], "baseline and missing cannot be used; leave them out"),
        (["--at", "1", "--at", "3"], "compared at one depth; got 1 and 3"),
        (["--scores", "scores.csv"], "leave out --scores"),
    ],
)
def test_options_that_need_qrels(files, more, expected, capsys):
    assert run(["compare", "--no-qrels", *files[1:], *more]) == 2
    assert expected in capsys.readouterr().err


def test_compare_without_qrels_needs_runs(capsys):
    assert run(["compare", "--no-qrels"]) == 2
    assert "no run to compare" in capsys.readouterr().err


def test_a_page_is_written_or_refused_and_never_a_text_by_that_name(files, tmp_path, capsys):
    qrels, first, _ = files
    commands = {
        "reconcile": ["reconcile", qrels, first, "-m", "MAP@5", "--dialects", "trec_eval-9,multihop-rag"],
        "validate": ["validate", qrels],
    }
    for name, command in commands.items():
        page = tmp_path / f"{name}.html"
        assert run([*command, "-o", str(page)]) == 0
        assert page.read_text().startswith("<!doctype html>")
    assert run(["explain", "nDCG@10", "-o", str(tmp_path / "explain.html")]) == 2
    assert "expected a name that ends with .txt" in capsys.readouterr().err
    assert not (tmp_path / "explain.html").exists()


def test_a_plan_needs_a_model_and_a_broken_result_has_no_check(tmp_path, capsys):
    (tmp_path / "result.json").write_text("{}")
    assert run(["judge", str(tmp_path), "--plan"]) == 2
    assert "add --endpoint and --model" in capsys.readouterr().err
    for half in (["--endpoint", "http://127.0.0.1:9/v1"], ["--model", "m"]):
        assert run(["judge", str(tmp_path), *half]) == 2
        assert "--endpoint and --model go together" in capsys.readouterr().err
    model = ["--endpoint", "http://127.0.0.1:9/v1", "--model", "m"]
    assert run(["judge", str(tmp_path), *model, "--html", str(tmp_path / "page.html")]) == 2
    assert "--endpoint asks a model; --html" in capsys.readouterr().err
    assert not (tmp_path / "page.html").exists()
    assert run(["check", str(tmp_path)]) == 2
    assert "Run the bench again to write it" in capsys.readouterr().err


def test_an_argument_too_many_is_no_option(files, capsys):
    qrels, first, second = files
    assert run(["reconcile", qrels, first, second, "-m", "MAP", "--dialects", "trec_eval-9,beir"]) == 2
    assert f"{second!r} is one argument too many." in capsys.readouterr().err


def test_a_clause_that_matters_only_beside_another_is_not_without_effect(tmp_path, capsys):
    (tmp_path / "qrels.json").write_text(json.dumps({"q1": {"a": 1, "b": 1, "c": 1}, "q2": {"d": 1}}))
    (tmp_path / "run.json").write_text(json.dumps({"q1": ["x", "a", "b"], "q2": ["d", "y"]}))
    inputs = [str(tmp_path / "qrels.json"), str(tmp_path / "run.json")]
    assert run(["reconcile", *inputs, "-m", "MAP", "--dialects", "autorag,trec_eval-9"]) == 0
    out = capsys.readouterr().out
    assert "together they change it by" in out
    assert "without effect alone: denominator" in out
    assert "without effect here" not in out


def test_a_clause_that_leaves_a_mean_undefined_is_not_without_effect(tmp_path, capsys):
    (tmp_path / "qrels.json").write_text(json.dumps({"q1": {"a": 0}, "q2": {"b": 0}}))
    (tmp_path / "run.json").write_text(json.dumps({"q1": ["a", "c"], "q2": ["c"]}))
    inputs = [str(tmp_path / "qrels.json"), str(tmp_path / "run.json")]
    assert run(["reconcile", *inputs, "-m", "MAP", "--dialects", "steelyard,autorag"]) == 0
    out = capsys.readouterr().out
    assert "no_relevant: zero in steelyard, skip in autorag" in out
    assert "no_relevant (zero, skip)" not in out
