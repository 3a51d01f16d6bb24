"""Inputs of a gate: result folders, JSON of evaluate, baselines; complete, broken or hostile."""

from __future__ import annotations

import json
import os
import shutil
import threading

import polars as pl
import pytest
from gate_inputs import made_result

import steelyard as sy
from steelyard.benchmark import load_result
from steelyard.cli import run as steelyard
from steelyard.errors import InputError, PolicyError
from steelyard.gating import gate as check
from steelyard.gating import save_baseline
from steelyard.gating.inputs import gate_input


@pytest.fixture(scope="module", autouse=True)
def without_pages():
    """A gate does not read report.html, which takes longer to write than everything else."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("steelyard.benchmark.result.write_page", lambda *arguments, **keywords: None)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    corpus = {f"d{i}": f"text number {i} {'odd' if i % 2 else 'even'}" for i in range(12)}
    queries = {f"q{i}": {"text": f"number {i}?", "kind": "odd" if i % 2 else "even"} for i in range(12)}
    qrels = {f"q{i}": {f"d{i}": 1} for i in range(12)}
    made = tmp_path_factory.mktemp("gate") / "result"
    sy.bench(
        {
            "dataset": sy.Dataset.of(corpus, queries, qrels, name="tiny"),
            "retrievers": ["bm25-okapi", {"random": {"seed": 1}}],
            "measures": ["RR", "Hit@1", "Latency"],
            "composite": {"RR": 1.0, "Hit@1": 1.0},
            "gate": ["RR >= 0.9"],
        },
        output=made,
    )
    return made


def test_folder_has_the_values_of_the_bench(folder):
    source = gate_input(folder)
    board = load_result(folder).comparison.score_tables[0]
    assert source.scores.runs == board.runs
    assert source.scores.queries == board.queries
    assert source.keys == ["composite", "RR", "Hit@1", "Latency"]
    assert source.scores.values.tolist() == board.values.tolist()
    assert source.definitions["composite"] == "composite of RR: 1, Hit@1: 1"
    assert gate_input(folder / "result.json").scores.values.tolist() == board.values.tolist()
    assert gate_input(load_result(folder)).scores.values.tolist() == board.values.tolist()


def test_rules_of_the_bench_are_added_to_the_given_ones(folder):
    gate = check(folder, "Hit@1[kind=even] >= 0.9", run="bm25-okapi")
    assert [row.rule.text for row in gate.rows] == ["Hit@1[kind=even] >= 0.9", "RR >= 0.9"]
    assert gate.passed
    gate = check(folder)
    assert [(row.run, row.passed) for row in gate.rows] == [("bm25-okapi", True), ("random", False)]
    assert gate.rows[1].losers[0].text.startswith("number")
    assert check(folder, "RR[complexity=simple] >= 0.9", run="bm25-okapi").rows[0].queries == 12


def test_wrong_rule_in_a_bench_is_reported_before_anything_runs(tmp_path):
    path = tmp_path / "bench.yaml"
    path.write_text("dataset: demo\nretrievers: [random]\nmeasures: [RR]\ngate:\n  - RR >= 0.1\n  - RR = 0.1\n")
    with pytest.raises(InputError, match="line 6: the rule 'RR = 0.1' cannot be parsed"):
        sy.bench(path)


def test_baseline_is_small_reproducible_and_exact(folder, tmp_path):
    save_baseline(folder, tmp_path / "one.json")
    save_baseline(folder, tmp_path / "two.json")
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
    before, after = gate_input(folder), gate_input(tmp_path / "one.json")
    assert after.scores.values.tolist() == before.scores.values.tolist()
    assert (after.keys, after.definitions) == (before.keys, before.definitions)
    assert (after.judgments, after.policies, after.dataset) == (before.judgments, before.policies, before.dataset)
    save_baseline(tmp_path / "one.json", tmp_path / "again.json")
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "again.json").read_bytes()
    save_baseline(folder, tmp_path / "least.json", run="random")
    assert gate_input(tmp_path / "least.json").scores.runs == ("random",)
    assert (tmp_path / "least.json").stat().st_size < 2_500
    gate = check(folder, baseline=tmp_path / "one.json", run="random")
    assert [row.why for row in gate.rows if row.p] == ["the same on each of 12 queries"] * 3
    with pytest.raises(InputError, match="there is no run 'none'"):
        save_baseline(folder, tmp_path / "least.json", run="none")


def test_first_baseline_is_written_without_checking_rules(folder, tmp_path, capsys):
    kept = str(tmp_path / "base.json")
    assert steelyard(["gate", str(folder)]) == 1
    assert steelyard(["gate", str(folder), "--save-baseline", kept]) == 0
    assert "The rules of `gate:` are not checked" in capsys.readouterr().err
    assert gate_input(kept).scores.runs == ("bm25-okapi", "random")


def test_every_cutoff_has_its_own_row(tmp_path):
    corpus, qrels = {f"d{i}": f"word{i}" for i in range(5)}, {f"q{i}": {f"d{i}": 1} for i in range(5)}
    dataset = sy.Dataset.of(corpus, {f"q{i}": f"word{i}" for i in range(5)}, qrels)
    given = {"dataset": dataset, "retrievers": ["bm25-okapi"], "measures": ["P", "R"], "at": [1, 2]}
    sy.bench(given, output=tmp_path / "out")
    save_baseline(tmp_path / "out", tmp_path / "base.json")
    gate = check(
        tmp_path / "out",
        ["P at 1 >= 1", "P at 2 >= 1", "no significant drop in R at 2"],
        baseline=tmp_path / "base.json",
    )
    assert [row.passed for row in gate.rows] == [True, False, True]
    assert gate_input(tmp_path / "base.json").definitions["P at 2"].startswith("P(")


def test_failed_queries_of_a_retriever_are_reported(folder, tmp_path):
    changed = shutil.copytree(folder, tmp_path / "result")
    record = json.loads((changed / "result.json").read_text())
    record["runs"][1]["errors"] = {"q3": "timed out"}
    record["runs"][1]["queries"] = 11
    (changed / "result.json").write_text(json.dumps(record))
    before = check(folder, baseline=changed, run="random")
    assert "run 'random' of the baseline: it failed on 1 of 12 queries (the first, q3: timed out)" in map(
        str, before.warnings
    )
    gate = check(changed, "RR >= 0")
    row = next(row for row in gate.rows if row.rule.kind == "failed")
    assert (row.run, row.passed, row.value, row.needed) == ("random", False, 1, "<= 0")
    assert row.why == (
        "it failed on 1 of 12 queries (the first, q3: timed out); fix the retriever, or allow it: "
        "allow_failed=1 (--allow failed=1)"
    )
    assert not gate.passed
    for text in (gate.to_text(), gate.to_markdown(), gate.to_junit(), gate.to_json()):
        assert "no failed queries" in text
        assert "it failed on 1 of 12 queries" in text
    assert 'failures="2"' in gate.to_junit(), "the rule that random breaks, and that it failed"
    allowed = check(changed, "RR >= 0", allow_failed=1)
    assert [row.verdict for row in allowed.rows if row.rule.kind == "failed"] == ["passed"]
    assert allowed.command.endswith("--allow failed=1")
    record["settings"]["allow_failed"] = 1
    (changed / "result.json").write_text(json.dumps(record))
    assert [row.passed for row in check(changed).rows if row.rule.kind == "failed"] == [True]
    with pytest.raises(PolicyError, match="`allow_failed` is -1; expected a whole number"):
        check(changed, allow_failed=-1)


def test_failed_queries_do_not_pass_on_the_command_line(folder, tmp_path, capsys):
    changed = shutil.copytree(folder, tmp_path / "result")
    record = json.loads((changed / "result.json").read_text())
    record["runs"][0]["errors"] = {"q3": "timed out"}
    (changed / "result.json").write_text(json.dumps(record))
    given = ["gate", str(changed), "--run", "bm25-okapi"]
    assert steelyard(given) == 1
    assert "allow it: --allow failed=1" in capsys.readouterr().out
    assert steelyard([*given, "--allow", "failed=1"]) == 0
    capsys.readouterr()
    assert steelyard(["gate", str(changed), "--save-baseline", str(tmp_path / "kept.json")]) == 0
    assert "Run 'bm25-okapi' is written although it failed on 1 of" in capsys.readouterr().err


def test_result_of_an_earlier_version_without_costs_is_read(folder, tmp_path):
    changed = shutil.copytree(folder, tmp_path / "result")
    record = json.loads((changed / "result.json").read_text())
    for row in record["runs"]:
        for name in ("retriever", "cached", "p99_seconds", "peak_bytes", "unknown_documents"):
            del row[name]
    # What another version knows of a search: without its series; exact search that found nothing has no neighbours.
    search = {"run": "random", "exact": "bm25-okapi", "k": 3, "neighbours": None, "measure": "RR", "lost": 0.1}
    search |= {"low": 0.0, "high": 0.2, "p_adjusted": 0.5, "seconds": None, "exact_seconds": None, "later": "\ud800"}
    (changed / "result.json").write_text(json.dumps(record | {"approximation": [search]}))
    assert load_result(changed).record["approximation"] == [search]
    assert gate_input(changed).keys == gate_input(folder).keys


def test_source_of_every_rule(folder, tmp_path):
    gate = check(folder, "Hit@1 >= 2", baseline=folder)
    sources = {row.rule.text: row.source for row in gate.rows}
    assert sources["Hit@1 >= 2"] == ""
    assert sources["RR >= 0.9"] == "`gate:` in bench.yaml"
    assert sources["no significant drop in RR"] == "the default, because no rule compares with the baseline"
    assert "from `gate:` in bench.yaml: RR >= 0.9" in map(str, gate.warnings)
    assert "  random: RR >= 0.9 (from `gate:` in bench.yaml)\n" in gate.to_text()
    assert "  random: Hit@1 >= 2\n" in gate.to_text()
    assert "RR &gt;= 0.9 (from `gate:` in bench.yaml)" in gate.to_junit()


def test_folder_of_two_benches_is_an_error(folder, tmp_path):
    changed = shutil.copytree(folder, tmp_path / "result")
    frame = pl.read_parquet(changed / "scores.parquet")
    frame.with_columns(pl.col("value") * 0.5).write_parquet(changed / "scores.parquet")
    with pytest.raises(
        InputError, match=r"in result.json and .* in scores.parquet: the folder is incomplete or was changed"
    ):
        check(changed)
    (changed / "scores.parquet").unlink()
    with pytest.raises(InputError, match=r"no readable scores.parquet"):
        check(changed)
    (changed / "result.json").unlink()
    with pytest.raises(InputError, match=r"has no result.json"):
        check(changed)


def test_json_of_evaluate_is_a_result_and_a_baseline(tmp_path, capsys):
    qrels, good, bad = tmp_path / "qrels.trec", tmp_path / "good.run", tmp_path / "bad.run"
    qrels.write_text("".join(f"q{i} 0 d{i} 1\n" for i in range(9)))
    good.write_text("".join(f"q{i} Q0 d{i} 1 1.0 r\n" for i in range(9)))
    bad.write_text("".join(f"q{i} Q0 x 1 2.0 r\nq{i} Q0 d{i} 2 1.0 r\n" for i in range(9)))
    for run in (good, bad):
        made = str(run.with_suffix(".json"))
        assert (
            steelyard(["evaluate", str(qrels), str(run), "-m", "RR", "--per-query", "--format", "json", "-o", made])
            == 0
        )
    gate = check(tmp_path / "bad.json", baseline=tmp_path / "good.json")
    assert not gate.passed
    assert [each.code for each in gate.warnings] == ["gate-lists-unknown"]
    qrels.write_text(qrels.read_text() + "q0 0 d7 1\n")
    made = str(tmp_path / "other.json")
    assert (
        steelyard(["evaluate", str(qrels), str(good), "-m", "RR", "--per-query", "--format", "json", "-o", made]) == 0
    )
    with pytest.raises(InputError, match=r"1 of 9 queries has other judgments than in the baseline \(q0\)"):
        check(made, baseline=tmp_path / "good.json")
    made = str(tmp_path / "skip.json")
    assert (
        steelyard(
            [
                "evaluate",
                str(qrels),
                str(good),
                "-m",
                "RR",
                "--missing",
                "skip",
                "--per-query",
                "--format",
                "json",
                "-o",
                made,
            ]
        )
        == 0
    )
    with pytest.raises(InputError, match="missing is skip"):
        check(made, baseline=tmp_path / "good.json")
    made = str(tmp_path / "means.json")
    assert steelyard(["evaluate", str(qrels), str(good), "-m", "RR", "--format", "json", "-o", made]) == 0
    with pytest.raises(InputError, match="has no values per query.*--per-query"):
        check(made, "RR > 0")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "result.json is empty; expected a result folder"),
        (" \n", "is empty; expected"),
        ("{", "cannot be read as JSON"),
        ("[]", "is not a JSON object"),
        ("{}", "has no runs"),
        ('{"runs": []}', "has no runs"),
        ('{"runs": [1]}', "has no runs"),
        ('{"runs": [{"name": "a", "per_query": {}}]}', "has no value for any query"),
        ('{"runs": [{"name": "a", "per_query": {"q": 1}}]}', "is not one value per measure"),
        ('{"runs": [{"name": "a", "per_query": {"q": [1]}}]}', "is not one value per measure"),
        ('{"runs": [{"name": "a", "per_query": {"q": {"AP": "1"}}}]}', "'1'; expected a number or null"),
        ('{"runs": [{"name": "a", "per_query": {"q": {"AP": true}}}]}', "True; expected a number or null"),
        ('{"runs": [{"name": "a", "per_query": {"q": {"AP": Infinity}}}]}', "inf; expected a number or null"),
        ('{"runs": [{"name": "a", "per_query": {"q": {"AP": 1' + "0" * 400 + "}}}]}", "expected a number or null"),
        ("[" * 100_000, "cannot be read as JSON"),
        ('{"dialect": "klingon", "runs": [{"name": "a", "per_query": {"q": {"AP": 1}}}]}', "unknown dialect 'klingon'"),
    ],
)  # fmt: skip
def test_broken_json_is_an_error(tmp_path, text, why):
    path = tmp_path / "result.json"
    path.write_text(text)
    with pytest.raises(sy.SteelyardError, match=why):
        check(path, "AP > 0")


def test_repeated_run_names_and_missing_files(tmp_path):
    with pytest.raises(InputError, match="two runs are called 'mine'"):
        check({**made_result([1]), "runs": made_result([1])["runs"] * 2}, "AP > 0")
    with pytest.raises(InputError, match="nowhere does not exist; expected a result folder"):
        check(tmp_path / "nowhere", "AP > 0")
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(InputError, match="cannot be read as JSON"):
        check(tmp_path / "binary.json", "AP > 0")


def test_pipes_are_read_once(tmp_path, capsys):
    """What a shell passes for <(cat baseline.json) is a pipe, not a file."""
    path = tmp_path / "result.json"
    path.write_text(json.dumps(made_result([0.5, 0.6, 0.7])))
    for content, code, printed in (
        (path.read_bytes(), 0, "The gate passed"),
        (b"", 2, "is empty; expected a result folder"),
    ):
        reader, writer = os.pipe()
        os.write(writer, content)
        os.close(writer)
        command = ["gate", str(path), "--baseline", f"/dev/fd/{reader}", "--rule", "AP >= baseline"]
        assert steelyard(command) == code
        os.close(reader)
        assert printed in capsys.readouterr().err
    named = tmp_path / "pipe"
    os.mkfifo(named)
    thread = threading.Thread(target=lambda: named.write_bytes(path.read_bytes()))
    thread.start()
    assert check(named, "AP >= 0.5").passed
    thread.join()


@pytest.mark.parametrize("scaled", [True, False], ids=["relevant_from", "rel"])
def test_complexity_counts_what_is_relevant_to_the_bench(tmp_path, scaled):
    corpus, queries = {f"d{i}": f"word{i} shared" for i in range(9)}, {"q0": "word0 shared", "q1": "word1"}
    grades = sy.Qrels({"q0": {f"d{i}": 2 if i == 0 else 1 for i in range(9)}, "q1": {"d1": 2}})
    grades.relevant_from = 2.0 if scaled else None
    options = {"measures": ["RR"], "by": "complexity"} | ({} if scaled else {"rel": 2})
    result = sy.bench(
        {"dataset": sy.Dataset.of(corpus, queries, grades), "retrievers": ["bm25-okapi"], **options},
        output=tmp_path / "result",
    )
    assert [(cut.value, cut.queries) for cut in result.comparison.slices] == [("simple", 2)]
    assert check(tmp_path / "result", "RR[complexity=simple] >= 0").rows[0].queries == 2
