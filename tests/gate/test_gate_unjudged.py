"""Rules whose outcome depends on documents that nobody judged are undecided."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

import steelyard as sy
from steelyard.cli import run as steelyard
from steelyard.errors import InputError
from steelyard.gating import gate as check
from steelyard.gating import save_baseline
from steelyard.gating.inputs import gate_input

QUERIES = [f"q{number}" for number in range(40)]
DROP = "no significant drop in nDCG@10"


@pytest.fixture(scope="module", autouse=True)
def without_pages():
    """A gate does not read report.html, which takes longer to write than everything else."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("steelyard.benchmark.result.write_page", lambda *arguments, **keywords: None)
        yield


def benched(folder, lists, qrels, **more):
    """A result folder of one finished run `mine`."""
    folder.mkdir(parents=True, exist_ok=True)
    sy.Run(lists, name="mine").write(folder / "mine.parquet")
    documents = {doc: f"text {doc}" for ranked in lists.values() for doc in ranked}
    documents |= {doc: f"text {doc}" for judged in qrels.values() for doc in judged}
    dataset = sy.Dataset.of(documents, {query: f"text of {query}" for query in QUERIES}, qrels, name="made")
    entry = {"run": {"path": str(folder / "mine.parquet"), "name": "mine"}}
    settings = {"dataset": dataset, "retrievers": [entry], "measures": ["nDCG@10"], **more}
    sy.bench(settings, output=folder / "result")
    return folder / "result"


def made_lists(seed=0):
    """Lists of the old and the new run, and the grades of all their documents: the new run is as good."""
    random = np.random.default_rng(seed)
    old, new, grades = {}, {}, {}
    for query in QUERIES:
        shared = [f"{query}-s{place}" for place in range(4)]
        old[query] = [*shared, *(f"{query}-o{place}" for place in range(8))]
        new[query] = [*(f"{query}-n{place}" for place in range(5)), *shared, f"{query}-n5", f"{query}-n6"]
        chance = {doc: 0.7 - 0.05 * place for ranked in (old, new) for place, doc in enumerate(ranked[query])}
        grades[query] = {doc: int(random.random() < share) for doc, share in chance.items()}
    return old, new, grades


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Result folders by the judgments of the first ten of the old run, and of everything."""
    home = tmp_path_factory.mktemp("unjudged")
    old, new, grades = made_lists()
    partial = {query: {doc: grades[query][doc] for doc in old[query][:10]} for query in QUERIES}
    made = {}
    for name, qrels in (("partial", partial), ("complete", grades)):
        made[name] = (benched(home / name / "new", new, qrels, gate=[]), benched(home / name / "old", old, qrels))
    save_baseline(made["partial"][1], home / "baseline.json")
    return {**made, "home": home}


@pytest.mark.parametrize("stored", [False, True])
def test_a_drop_that_depends_on_unjudged_documents_is_undecided(folders, stored):
    new, old = folders["partial"]
    before = folders["home"] / "baseline.json" if stored else old
    gate = check(new, DROP, baseline=before)
    (row,) = gate.rows
    assert row.p_adjusted < 0.001, "significant if unjudged documents are not relevant"
    assert (row.undecided, row.passed, row.verdict, gate.passed) == (True, True, "undecided", True)
    assert (row.judged, row.judged_baseline) == (pytest.approx(0.4), 1.0)
    assert row.bound_low - 1e-9 <= row.difference <= row.bound_high + 1e-9
    assert row.unjudged > 0
    assert "40% of the documents judged (baseline 100%)" in row.why
    assert any(each.code == "gate-undecided" and each.severity == "warning" for each in gate.warnings)
    strict = check(new, DROP, baseline=before, strict_judged=True)
    assert not strict.passed
    assert strict.failures == strict.rows
    assert strict.rows[0].verdict == "undecided"
    assert "--strict" in strict.command


@pytest.mark.filterwarnings("ignore::steelyard.SteelyardWarning")
@pytest.mark.parametrize("which", ["partial", "complete"])
def test_a_gate_has_the_numbers_and_the_verdict_of_a_comparison(folders, which):
    """A gate tests one direction: half the p-value of the comparison, at half its alpha."""
    new, old = folders[which]
    runs = {"old": old / "runs" / "mine.parquet", "new": new / "runs" / "mine.parquet"}
    (pair,) = sy.compare(qrels_of(which), runs, ["nDCG@10"], baseline="old").tested_pairs
    for (result, before), sign in (((new, old), 1), ((old, new), -1)):
        (row,) = check(result, DROP, baseline=before, alpha=0.025).rows
        ends = sorted(sign * end for end in (pair.low, pair.high))
        assert (row.difference, row.low, row.high) == pytest.approx((sign * pair.difference, *ends), abs=1e-9)
        assert row.p == pytest.approx(pair.p / 2 if sign * pair.difference < 0 else 1 - pair.p / 2)
        if sign * pair.difference < 0:
            assert row.undecided == (pair.verdict == "undecided")


def qrels_of(which):
    """The judgments of a result folder."""
    old, _, grades = made_lists()
    if which == "complete":
        return grades
    return {query: {doc: grades[query][doc] for doc in old[query][:10]} for query in QUERIES}


def test_complete_qrels_decide(folders):
    new, old = folders["complete"]
    (row,) = check(new, DROP, baseline=old).rows
    assert (row.undecided, row.passed, row.judged, row.bound_low) == (False, True, None, None)
    (row,) = check(old, DROP, baseline=new).rows
    assert not row.undecided


@pytest.mark.parametrize(
    ("rule", "undecided"),
    [
        ("nDCG@10 not worse than baseline by 0.05", True),
        ("nDCG@10 equivalent to baseline within 0.05", True),
        ("nDCG@10 >= baseline - 0.05", True),
        ("nDCG@10 >= 0.99", False),
    ],
)
def test_other_rules(folders, rule, undecided):
    new, old = folders["partial"]
    (row,) = check(new, rule, baseline=old if undecided else None).rows
    assert row.undecided == undecided
    assert row.passed == undecided
    if not undecided:
        assert row.bound_low - 1e-9 <= row.value <= row.bound_high
        assert "40% of the documents judged; depending on the others, nDCG@10 is between" in row.why


@pytest.mark.parametrize("rule", [DROP, "nDCG@10 >= baseline - 0.2"])
def test_estimated_grades_decide_where_the_qrels_were_not_made_from_one_run(tmp_path, rule):
    old, new, grades = made_lists(3)
    pooled = {query: {doc: grades[query][doc] for doc in old[query][:10]} for query in QUERIES}
    pooled |= {query: grades[query] for query in QUERIES[::4]}
    result, before = (benched(tmp_path / name, lists, pooled) for name, lists in (("new", new), ("old", old)))
    gate = check(result, rule, baseline=before)
    assert gate.rows[0].undecided
    assert not any(each.code == "qrels-made-from-run" for each in gate.warnings)
    bad = {query: [f"{query}-x{place}" for place in range(10)] for query in QUERIES}
    pooled = {query: {**pooled[query], **dict.fromkeys(bad[query][:9], 0)} for query in QUERIES}
    result, before = (benched(tmp_path / name, lists, pooled) for name, lists in (("bad", bad), ("good", old)))
    gate = check(result, rule, baseline=before)
    assert [(row.undecided, row.passed) for row in gate.rows] == [(False, False)]


def test_a_pass_that_unjudged_documents_may_change_is_undecided(tmp_path):
    """Both runs have the same judged documents first; nothing is known of what follows."""
    random = np.random.default_rng(5)
    qrels = {query: {f"{query}-{n}": int(random.random() < 0.6) for n in range(4)} for query in QUERIES}
    first, second = ({q: [*qrels[q], *(f"{q}-{run}{n}" for n in range(6))] for q in QUERIES} for run in "ab")
    result, before = (benched(tmp_path / name, lists, qrels) for name, lists in (("a", first), ("b", second)))
    for rule in ("nDCG@10 not worse than baseline by 0.01", "nDCG@10 equivalent to baseline within 0.01"):
        (row,) = check(result, rule, baseline=before).rows
        assert (row.undecided, row.passed) == (True, True)
        (row,) = check(result, rule, baseline=before, strict_judged=True).rows
        assert (row.undecided, row.passed) == (True, False)
    assert not check(result, DROP, baseline=before).rows[0].undecided


def test_a_pass_that_favours_the_run_the_qrels_were_made_from_is_undecided(folders):
    """The roles exchanged: the judged run is now the new one, and looks better than it is."""
    new, old = folders["partial"]
    gate = check(old, "nDCG@10 not worse than baseline by 0.05", baseline=new)
    assert gate.rows[0].undecided
    assert any(each.code == "qrels-made-from-run" and each["run"] == "mine" for each in gate.warnings)


def test_a_rule_that_reads_judged_documents_only_is_decided_whoever_made_the_qrels(tmp_path):
    made, _, grades = made_lists()
    other = {query: [*docs[11:1:-1], f"{query}-x", f"{query}-y"] for query, docs in made.items()}
    qrels = {query: {doc: grades[query][doc] for doc in docs} for query, docs in made.items()}
    result, before = (benched(tmp_path / name, lists, qrels) for name, lists in (("made", made), ("other", other)))
    gate = check(result, "nDCG@10 not worse than baseline by 0.05", baseline=before)
    assert any(each.code == "qrels-made-from-run" for each in gate.warnings), "ranks 11 and 12 are unjudged"
    assert [(row.undecided, row.passed) for row in gate.rows] == [(False, True)]


def test_outputs(folders, tmp_path, capsys):
    new, old = folders["partial"]
    junit, page = tmp_path / "gate.xml", tmp_path / "gate.md"
    command = ["gate", str(new), "--baseline", str(old), "--rule", DROP, "--rule", "nDCG@10 >= 0.01"]
    command += ["--junit", str(junit), "--markdown", str(page)]
    assert steelyard(command) == 0
    printed = capsys.readouterr()
    headline = "Undecided: 1 of 2 rules of run mine depends on unjudged documents."
    assert printed.err.startswith(headline)
    assert "Interval and p-value disagree" not in printed.err
    assert "undecided" in printed.out
    root = ElementTree.parse(junit).getroot()
    assert [root.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["2", "0", "0", "1"]
    assert root.find(".//skipped").get("message").startswith("undecided: ")
    assert root.find(".//property[@name='verdict']").get("value") == headline
    assert "**undecided**" in page.read_text()
    assert page.read_text().startswith(f"## {headline}")
    assert steelyard([*command, "--strict"]) == 1
    headline = "The gate FAILED: 1 of 2 rules of run mine depends on unjudged documents (undecided)."
    assert headline in capsys.readouterr().err
    assert steelyard([*command, "--rule", "nDCG@10 >= 0.99"]) == 1
    headline = "The gate FAILED: 1 of 3 rules of run mine failed, and 1 depends on unjudged documents (undecided)."
    assert headline in capsys.readouterr().err
    assert steelyard([*command, "--strict"]) == 1
    root = ElementTree.parse(junit).getroot()
    assert [root.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["2", "0", "1", "0"]
    assert root.find(".//error").get("type") == "undecided"
    capsys.readouterr()
    assert steelyard([*command[:6], "--format", "json"]) == 0
    content = json.loads(capsys.readouterr().out)
    (row,) = content["rows"]
    assert (content["passed"], content["verdict"]) == (True, "undecided")
    assert (row["undecided"], row["judged"]) == (True, pytest.approx(0.4))


def test_the_fixture_of_pytest_warns(folders, request):
    new, old = folders["partial"]
    gate = request.getfixturevalue("steelyard_gate")
    with pytest.warns(UserWarning, match="^Undecided: 1 of 1 rule of run mine depends on unjudged documents"):
        gate(new, DROP, baseline=old)
    with pytest.raises(pytest.fail.Exception, match="undecided"):
        gate(new, DROP, baseline=old, strict_judged=True)


def test_a_baseline_has_lists_only_where_rules_need_them(folders):
    stored = gate_input(folders["home"] / "baseline.json")
    assert stored.list_depth == 20
    assert list(stored.lists) == ["mine"]
    again = folders["home"] / "again.json"
    save_baseline(folders["home"] / "baseline.json", again)
    assert gate_input(again).lists == stored.lists
    content = json.loads((folders["home"] / "baseline.json").read_text())
    del content["runs"][0]["lists"]
    gate = check(folders["partial"][0], DROP, baseline=content)
    assert not gate.passed
    assert [each["sources"] for each in gate.warnings if each.code == "gate-lists-unknown"] == [("the baseline",)]
    content["runs"][0]["lists"] = ["q1"]
    with pytest.raises(InputError, match="lists of run 'mine' are not one list of documents per query"):
        check(folders["partial"][0], DROP, baseline=content)


def test_relevant_documents_only(folders, tmp_path):
    """Nothing is known of unjudged documents: neither shares nor undecided rules, except for qrels made from a run."""
    old, new, grades = made_lists(1)
    relevant = {query: {doc: 1 for doc, grade in judged.items() if grade} for query, judged in grades.items()}
    result, before = benched(tmp_path / "new", new, relevant), benched(tmp_path / "old", old, relevant)
    for now, other in ((result, before), (before, result)):
        (row,) = check(now, DROP, baseline=other).rows
        assert (row.undecided, row.judged) == (False, None)
    save_baseline(before, tmp_path / "baseline.json")
    assert gate_input(tmp_path / "baseline.json").lists == {"mine": {}}
    gate = check(result, DROP, baseline=tmp_path / "baseline.json", strict_judged=True)
    assert not any(each.code == "gate-lists-unknown" for each in gate.warnings)


def test_composites_are_checked(tmp_path):
    old, new, grades = made_lists(2)
    partial = {query: {doc: grades[query][doc] for doc in old[query][:10]} for query in QUERIES}
    more = {"measures": ["nDCG@10"], "composite": {"nDCG@10": 0.5, "RR@10": 0.5}}
    result, before = (benched(tmp_path / name, lists, partial, **more) for name, lists in (("new", new), ("old", old)))
    gate = check(result, ["no significant drop in composite"], baseline=before)
    assert gate.rows[0].undecided
    shutil.rmtree(before / "runs")
    assert not check(result, ["no significant drop in composite"], baseline=before).rows[0].undecided


def test_results_without_lists_are_not_checked_and_an_error_if_strict(folders, tmp_path, capsys):
    """The values of `evaluate` do not show which documents nobody judged."""
    old, new, _ = made_lists()
    qrels = sy.Qrels.read(folders["partial"][0] / "qrels.parquet")
    for name, lists in (("old", old), ("new", new)):
        sy.Run(lists, name="mine").write(tmp_path / f"{name}.run")
        qrels.write(tmp_path / "made.qrels")
        command = ["evaluate", str(tmp_path / "made.qrels"), str(tmp_path / f"{name}.run"), "-m", "nDCG@10"]
        made = str(tmp_path / f"{name}.json")
        assert steelyard([*command, "--per-query", "--format", "json", "-o", made]) == 0
    capsys.readouterr()
    now, before = str(tmp_path / "old.json"), str(tmp_path / "new.json")
    command = ["gate", now, "--baseline", before, "--rule", "nDCG@10 not worse than baseline by 0.05"]
    assert steelyard(command) == 0
    printed = capsys.readouterr().err
    assert f"not in {now} and {before}, so unjudged documents were not checked." in printed
    assert steelyard([*command, "--strict"]) == 2
    printed = capsys.readouterr().err
    assert "so unjudged documents cannot be checked. Use the result folder of a bench" in printed
    assert "--save-baseline baseline.json" in printed
    thresholds = check(now, "nDCG@10 >= 0.01", strict_judged=True)
    assert (thresholds.passed, thresholds.warnings) == (True, ())
    partly = check(folders["partial"][1], command[-1], baseline=before)
    assert [each["sources"] for each in partly.warnings if each.code == "gate-lists-unknown"] == [(before,)]
    assert partly.verdict == "undecided", "the qrels were made from the result, whatever the baseline returned"


def test_a_baseline_written_by_the_gate_can_be_checked(folders, tmp_path):
    """Its lists are needed even if all of its documents are judged: those of a later run may not be."""
    old, new, grades = made_lists()
    five = {query: {doc: grades[query][doc] for doc in old[query][:5]} for query in QUERIES}
    made = tuple(benched(tmp_path / name, lists, five) for name, lists in (("new", new), ("old", old)))
    for result, before in (folders["partial"], folders["complete"], made, made[::-1]):
        save_baseline(before, tmp_path / "baseline.json")
        rule = "nDCG@10 not worse than baseline by 0.05"
        rows = [
            check(result, rule, baseline=each, strict_judged=True).rows[0]
            for each in (before, tmp_path / "baseline.json")
        ]
        verdicts = [(row.verdict, row.judged, row.judged_baseline) for row in rows]
        assert verdicts[0] == verdicts[1]


def test_a_run_without_a_judged_document_was_not_measured(folders, tmp_path, capsys):
    """Other ids, or retrieval that is broken: the gate fails, and says which ids and what to do."""
    old, _, grades = made_lists()
    partial = {query: {doc: grades[query][doc] for doc in old[query][:10]} for query in QUERIES}
    twice = {query: ["zzz0", "zzz1", "zzz0"] for query in QUERIES}
    broken = benched(tmp_path / "broken", twice, partial)
    command = ["gate", str(broken), "--baseline", str(folders["home"] / "baseline.json")]
    for more in ([], ["--rule", "nDCG@10 not worse than baseline by 0.9"]):
        assert steelyard([*command, *more, "--format", "json"]) == 1
        (row,) = json.loads(capsys.readouterr().out)["rows"]
        assert (row["rule"], row["passed"]) == ("the run was measured", False)
        assert row["why"].startswith("none of its documents is judged: its ids (zzz0) may differ from those of the ")
        assert "qrels (q0-s0)" in row["why"]
        assert f"`steelyard judge {broken}` judges what came back" in row["why"]
    for arguments in (["--save-baseline", str(tmp_path / "new.json")], ["--baseline", str(broken), "--rule", DROP]):
        source = broken if arguments[0] == "--save-baseline" else folders["partial"][0]
        assert steelyard(["gate", str(source), *arguments]) == 2
        assert "run 'mine' of" in capsys.readouterr().err
    one = {query: [*docs, old[query][0]] if query == "q3" else docs for query, docs in twice.items()}
    found = benched(tmp_path / "found", one, partial)
    assert [row.rule.text for row in check(found, DROP, baseline=folders["partial"][1]).rows] == [DROP]


def test_a_bench_with_chunkers_gets_other_advice(folders):
    new, old = (replace(gate_input(folder), chunked=True, folder=None, files={}) for folder in folders["partial"])
    (found,) = [each for each in check(new, DROP, baseline=old).warnings if each.code == "gate-lists-unknown"]
    assert str(found).startswith("each chunker of ")
    with pytest.raises(InputError, match="Check a bench without `chunkers`, or leave the option out"):
        check(new, DROP, baseline=old, strict_judged=True)
