"""Failures in a bench are marked in every output, and decide the exit code."""

from __future__ import annotations

import json
import logging
import sys
from queue import SimpleQueue

import pytest

import steelyard as sy
from clocks import Clock, HangingCalls
from needs import import_peer
from steelyard.benchmark.folder import load_result
from steelyard.cli import run as command
from steelyard.errors import InputError
from steelyard.notes import sentence

MODULE = """
def right(query, k):
    return [f"d{query.split()[1]}"]

def broken(query, k):
    raise ValueError("no index")

def shaky(query, k):
    if query.endswith("2"):
        raise ValueError("no index")
    return right(query, k)

def hangs(query, k):
    if query.endswith("2"):
        hang()
    return right(query, k)

class Document:
    meta = property(lambda self: 1 / 0)

    def __init__(self, number):
        self.id, self.metadata, self.page_content = f"uuid-{number}", {"page": 1, "source": f"d{number}"}, "..."

def documents(query, k):
    return [Document(query.split()[1])]

def texts(query, k):
    return [{"id": "x", "text": f"text number {query.split()[1]}"}]

class Sized:
    def __init__(self, n):
        self.n = n
    def index(self, corpus):
        self.corpus = list(corpus)
    def retrieve(self, query, k):
        return [self.corpus[place] for place in range(self.n)]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "failing_engine.py").write_text(MODULE)
    (tmp_path / "data").mkdir()
    for name, key in (("corpus", "text number"), ("queries", "question")):
        rows = [json.dumps({"_id": f"{name[0].replace('c', 'd')}{n}", "text": f"{key} {n}"}) for n in range(4)]
        (tmp_path / "data" / f"{name}.jsonl").write_text("\n".join(rows))
    (tmp_path / "data" / "qrels.tsv").write_text(
        "query-id\tcorpus-id\tscore\n" + "\n".join(f"q{n}\td{n}\t1" for n in range(4))
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("failing_engine", None)


def configured(*retrievers, **more):
    entries = [
        {"python": {"target": f"failing_engine:{name}", "name": name}} if isinstance(name, str) else name
        for name in retrievers
    ]
    return {"dataset": "data", "retrievers": entries, "measures": ["RR", "Hit@1"], "depth": 4, **more}


def benched(folder, *retrievers, **more):
    return sy.bench(configured(*retrievers, **more), output=folder / "out")


def written(folder, *retrievers):
    (folder / "bench.yaml").write_text(json.dumps(configured(*retrievers)))
    return ["bench", "bench.yaml", "-o", "out"]


def test_exit_code_of_a_retriever_that_fails_on_every_query(folder, capsys):
    assert command(written(folder, "right", "broken", "shaky")) == 2
    printed = capsys.readouterr()
    assert printed.err.splitlines()[-1].startswith("error: broken failed on every query")
    assert "FAILED: shaky on 1 of 4 queries." in printed.err.splitlines()[-2]
    board = printed.out.splitlines()
    assert board[0].split()[-1] == "FAILED"
    assert [line for line in board if "broken" in line][0].endswith("4 of 4")
    assert (folder / "out" / "result.json").exists()


def test_retriever_that_fails_on_some_queries_is_reported_last(folder, capsys):
    assert command(written(folder, "right", "shaky")) == 0
    assert "FAILED: shaky on 1 of 4 queries." in capsys.readouterr().err.splitlines()[-1]
    assert command(written(folder, "right")) == 0
    assert "FAILED" not in capsys.readouterr().err


def test_every_leaderboard_marks_failures(folder):
    result = benched(folder, "right", "shaky")
    assert result.failed == {"shaky": 1}
    assert result.broken == []
    lines = (folder / "out" / "leaderboard.md").read_text().splitlines()
    assert lines[0].split("|")[-2].strip() == "FAILED"
    assert next(line for line in lines if line.startswith("| shaky")).split("|")[-2].strip() == "1 of 4"
    assert "1 of 4" in (folder / "out" / "report.html").read_text()
    again = load_result(folder / "out").comparison
    for comparison in (result.comparison, again):
        assert comparison.leaderboard["failed"].to_list() == ["", "1 of 4"]
        assert comparison.to_dict()["failed"] == {"shaky": "1 of 4"}
        assert "shaky (failed on 1 of 4 queries)" in comparison.to_latex()
        assert "1 of 4" in comparison.to_html()
    assert "failed" not in benched(folder, "right").comparison.leaderboard.columns


def test_query_with_a_timeout_fails(folder, monkeypatch):
    import failing_engine

    monkeypatch.setattr(failing_engine, "hang", HangingCalls(monkeypatch).hang, raising=False)
    entry = {"python": {"target": "failing_engine:hangs", "timeout": 0.2, "name": "hangs"}}
    result = benched(folder, entry, warmup=0)
    assert list(result.rows[0].errors) == ["q2"]
    assert "hangs: no result within 0.2 s" in result.rows[0].errors["q2"]
    assert result.comparison.leaderboard["RR"].to_list() == [0.75]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("documents", "The ids of the corpus are in metadata.source: set `id: metadata.source`."),
        ("texts", "set `id: hash`."),
    ],
)
def test_unknown_ids_are_reported_with_a_hint(folder, name, hint):
    for _ in range(2):
        result = benched(folder, name, "right")
        text = sentence(next(note for note in result.notes if note.code == "unknown-documents"))
        assert text.startswith(f"Retriever {name} returned 4 documents that are not in the corpus: it has ")
        assert "the corpus 'd0', 'd1'." in text
        assert text.endswith(hint), "also with cached answers"
    fixed = {"python": {"target": f"failing_engine:{name}", "id": hint.split("`")[1].split()[1]}}
    assert benched(folder, fixed).comparison.leaderboard["RR"].to_list() == [1.0]


def test_list_among_the_arguments_is_reported_as_the_likely_cause(folder):
    entry = {"python": {"target": "failing_engine:Sized", "arguments": {"n": [3, 4]}}}
    error = benched(folder, entry, "right").rows[0].errors["q0"]
    assert error.startswith("TypeError: ")
    assert "write `arguments: [{n: 3}, {n: 4}]`" in error


def break_the_qrels(folder):
    with (folder / "data" / "qrels.tsv").open("a") as file:
        file.write("\nq1\tnowhere\t1\n")
    with (folder / "data" / "queries.jsonl").open("a") as file:
        file.write('\n{"_id": "q2", "text": "quite another question"}\n')


def test_errors_in_the_qrels_are_reported_and_strict_stops(folder, capsys, caplog):
    break_the_qrels(folder)
    assert command(written(folder, "right")) == 0
    printed = capsys.readouterr().err
    assert "1 judgment of documents that are not in the corpus, 1 of them relevant:\n  'q1', 'nowhere'" in printed
    assert "'q2'" in printed
    kept = json.loads((folder / "out" / "result.json").read_text())["problems"]
    assert [each["code"] for each in kept] == ["dataset-error"] * 2
    assert "nowhere" in (folder / "out" / "leaderboard.md").read_text()
    with pytest.raises(InputError, match="nothing was run"):
        sy.bench(configured("right"), output=folder / "other", strict=True)
    assert not (folder / "other").exists()


def test_qrels_without_errors_have_no_problems(folder, caplog):
    assert benched(folder, "right").problems == ()
    assert not caplog.records


def test_removed_files_are_logged_and_printed(folder, caplog):
    benched(folder, "right", "shaky")
    with caplog.at_level(logging.INFO, "steelyard.bench"):
        result = benched(folder, "right")
    assert [path.name for path in result.removed] == ["shaky.parquet"]
    removal = f"Removed from {folder / 'out'}, because this bench does not have them: runs/shaky.parquet."
    assert (removal, f"The result is in {folder / 'out'}.") == tuple(r.getMessage() for r in caplog.records)
    assert repr(result).endswith(f"{removal}\nThe result is in {folder / 'out'}.")


def test_progress_lines_in_a_pipe(folder, capsys, monkeypatch):
    from steelyard.cli import output

    monkeypatch.setattr(output, "monotonic", Clock())
    command(written(folder, "right", "shaky"))
    assert "running" not in capsys.readouterr().err, "a bench of seconds needs no progress"
    monkeypatch.setattr(output, "FIRST_SECONDS", 0.0)
    command([*written(folder, "right", "shaky"), "--fresh"])
    lines = [line for line in capsys.readouterr().err.splitlines() if line.endswith("0 s so far")]
    steps = [line.partition(":")[0] for line in lines]
    indexed = steps.index("indexing 4 documents with shaky")
    assert indexed < steps.index("running right and shaky, queries") < steps.index("evaluating")


def test_long_work_reports_what_it_does_and_the_elapsed_time(monkeypatch):
    from steelyard.cli import output

    clock, lines = Clock(), SimpleQueue()
    monkeypatch.setattr(output, "monotonic", clock)
    monkeypatch.setattr(output, "print_message", lines.put)
    # How often the thread looks at the clock: its work is counted by the lines that it prints.
    monkeypatch.setattr(output, "FIRST_SECONDS", 0.01)
    with output.bench_progress() as progress:
        progress("running slow", 3, 9)
        clock.advance(output.QUIET_SECONDS - 1)
        assert lines.empty()
        clock.advance(1)
        assert lines.get() == "running slow: 3 of 9, 30 s so far"
        clock.advance(output.QUIET_SECONDS + 5)
        assert lines.get() == "running slow: 3 of 9, 65 s so far"
    assert lines.empty()


def test_plain_page_is_reported_with_the_command_for_the_full_one(folder, capsys, monkeypatch):
    monkeypatch.setattr("steelyard.report.page.page._EXTRA", ("steelyard_nothing_of_the_kind",))
    assert command(written(folder, "right")) == 0
    printed = capsys.readouterr().err
    assert "Report: out/report.html. It is the plain page" in printed
    assert "because steelyard_nothing_of_the_kind is not installed." in printed
    assert "pip install 'steelyard[report]' && steelyard report out -o out/report.html" in printed


@pytest.mark.parametrize(
    ("value", "rules", "allowed"),
    [
        (["RR >= 0.4"], ["RR >= 0.4"], 0),
        ({"allow_failed": 1}, [], 1),
        ({"rules": ["RR >= 0.4"], "allow_failed": 1}, ["RR >= 0.4"], 1),
    ],
)
def test_gate_settings(folder, value, rules, allowed):
    benched(folder, "right", "shaky", gate=value)
    kept = json.loads((folder / "out" / "result.json").read_text())["settings"]
    assert (kept["gate"], kept["allow_failed"]) == (rules, allowed)
    assert sy.gate(folder / "out", "RR >= 0").passed == (allowed == 1)


def test_wrong_keys_of_gate_are_reported(folder):
    with pytest.raises(InputError, match="unknown key 'allow_fail'. Did you mean allow_failed"):
        benched(folder, "right", gate={"allow_fail": 1})
    with pytest.raises(InputError, match="allow_failed: Input should be greater than or equal to 0, got -1"):
        benched(folder, "right", gate={"allow_failed": -1})


def test_retriever_with_other_ids_does_not_stop_the_others(folder):
    (folder / "failing_engine.py").write_text(
        MODULE + "\ndef upper(query, k):\n    return [right(query, k)[0].upper()]\n"
    )
    result = benched(folder, "right", "upper")
    assert {row.run: row.means["RR"] for row in result.comparison.leaderboard_rows} == {"right": 1.0}
    assert result.comparison.unmeasured == {"upper": "none of its documents is in the corpus"}
    assert any("upper returned 4 documents that are not" in str(note) for note in result.notes)
    assert load_result(folder / "out").runs.keys() == {"right", "upper"}


def not_measured_everywhere(comparison, name):
    """Check that a run is shown as not measured in every output, and neither ranked nor tested."""
    assert name not in comparison.runs
    assert all(name not in (pair.run, pair.baseline) for pair in comparison.tested_pairs)
    last = comparison.leaderboard.tail(1).to_dicts()[0]
    assert (last["run"], last["rank"], last["RR"], bool(last["not_measured"])) == (name, None, None, True)
    row = next(row for row in comparison.to_dict()["leaderboard"] if row["run"] == name)
    assert (row["rank"], row["RR"]) == (None, None)
    assert name in comparison.to_dict()["not_measured"]
    assert comparison.verdict.endswith(f"Not measured: {name}.")
    assert f"Run '{name}' was not measured and is not ranked or tested" in comparison.to_text()
    assert f"| {name} (not measured) |" in comparison.to_markdown()
    assert f"{name} (not measured)" in comparison.to_latex()
    assert [line for line in comparison.to_csv().splitlines() if f",{name}," in line][0].startswith(f",{name},,")
    assert "not measured" in comparison.to_html()


@pytest.mark.parametrize("name", ["broken", "documents", "upper"])
def test_a_run_that_was_not_measured_is_shown_and_not_ranked_or_tested(folder, name):
    (folder / "failing_engine.py").write_text(
        MODULE + "\ndef upper(query, k):\n    return [right(query, k)[0].upper()]\n"
    )
    second = {"random": {"seed": 3}}
    result = benched(folder, name, "right", second)
    alone = benched(folder / "alone", "right", second)
    for comparison in (result.comparison, load_result(folder / "out").comparison):
        not_measured_everywhere(comparison, name)
        assert [pair.p_adjusted for pair in comparison.tested_pairs] == [
            pair.p_adjusted for pair in alone.comparison.tested_pairs
        ]
        assert [(row.rank, row.run, row.rank_low, row.rank_high) for row in comparison.leaderboard_rows] == [
            (row.rank, row.run, row.rank_low, row.rank_high) for row in alone.comparison.leaderboard_rows
        ]
    import_peer("jinja2")
    page = (folder / "out" / "report.html").read_text()
    assert "not measured: " in page
    assert f"| {name} (not measured) |" in (folder / "out" / "leaderboard.md").read_text()
    gate = sy.gate(folder / "out", "RR >= 0", allow_failed=4)
    assert {row.run: row.passed for row in gate.rows if row.rule.text == "the run was measured"} == {name: False}
    assert not gate.passed
    with pytest.raises(InputError, match=f"run '{name}' of .* was not measured"):
        sy.save_baseline(result, folder / "baseline.json", name)
    with pytest.raises(InputError, match=f"run '{name}' of .* was not measured"):
        sy.gate(folder / "out", run="right", baseline=folder / "out", baseline_run=name)
    sy.save_baseline(alone, folder / "alone.json")
    sy.save_baseline(result, folder / "baseline.json")
    assert (folder / "alone.json").read_bytes() == (folder / "baseline.json").read_bytes()
    gate = sy.gate(folder / "out", baseline=folder / "baseline.json")
    assert not gate.passed
    assert {row.run for row in gate.failures} == {name}


def test_a_baseline_that_was_not_measured_is_reported(folder):
    comparison = benched(folder, "broken", "right", {"random": {"seed": 3}}, baseline="broken").comparison
    assert comparison.plan.baseline is None
    assert len(comparison.tested_pairs) == 2
    assert any(note.code == "baseline-not-measured" for note in comparison.notes)


def test_a_bench_whose_retrievers_all_fail_gives_their_errors(folder, capsys):
    assert command(written(folder, "broken")) == 2
    assert "every retriever failed on every query:\n  broken: ValueError: no index" in capsys.readouterr().err


def test_chunkings_with_a_run_that_was_not_measured(folder):
    entries = {"chunkers": ["whole", {"sentence": {"tokens": 2}}], "evidence": "evidence.jsonl"}
    facts = [json.dumps({"query_id": f"q{n}", "fact": f"number {n}"}) for n in range(4)]
    (folder / "evidence.jsonl").write_text("\n".join(facts))
    result = benched(folder, "broken", {"bm25-okapi": {}}, **entries)
    assert len(result.comparison.unmeasured) == 2
    assert len(result.comparison.runs) == 2
