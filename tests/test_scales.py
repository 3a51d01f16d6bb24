"""The lowest relevant grade of a scale: from the judgments to measures, benches, folders and the gate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import steelyard as sy
from needs import import_peer
from steelyard.benchmark.folder import load_result
from steelyard.cli import run as steelyard
from steelyard.judging.guidelines import DEFAULT, Guidelines
from steelyard.judging.pool import Pool
from steelyard.judging.prompts import Prompt
from steelyard.judging.server import Session
from steelyard.judgments import Judgment

LINES = [
    {"query_id": "q1", "doc_id": "a", "grade": 1, "judge": "ann", "relevant_from": 2},
    {"query_id": "q1", "doc_id": "b", "grade": 3, "judge": "ann", "relevant_from": 2},
    {"query_id": "q2", "doc_id": "c", "grade": 1, "judge": "ann", "relevant_from": 2},
    {"query_id": "q2", "doc_id": "d", "grade": None, "judge": "ann"},
]
RUN = {"q1": ["a", "b"], "q2": ["c", "d"]}


def written(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def test_grades_that_do_not_answer_are_not_relevant(tmp_path: Path) -> None:
    path = written(tmp_path / "judgments.jsonl", LINES)
    names = ["Hit@1", "RR", "P@2", "Hit(rel=1)@1", "nDCG@2"]
    plain = sy.evaluate(sy.Qrels({"q1": {"a": 1, "b": 3}, "q2": {"c": 1}}), RUN, names)
    for qrels in (path, sy.Judgments.read(path), sy.Judgments.read(path).qrels("ann")):
        scores = sy.evaluate(qrels, RUN, names)
        assert scores.means == {"Hit@1": 0.0, "RR": 0.25, "P@2": 0.25, "Hit(rel=1)@1": 1.0, "nDCG@2": plain["nDCG@2"]}
    assert plain["Hit@1"] == 1.0
    assert sy.evaluate(path, RUN, ["Hit@1"], rel=1)["Hit@1"] == 1.0
    assert sy.evaluate(path, RUN, ["success_1"], dialect="trec_eval-9")["success_1"] == 1.0
    compared = sy.compare(path, {"one": RUN, "other": {"q1": ["b"], "q2": []}}, ["Hit@1"], baseline="one")
    assert compared.pairs["difference"].to_list() == [0.5]


def test_scales_that_differ_are_noted_and_the_higher_one_counts() -> None:
    mixed = [*LINES, {"query_id": "q2", "doc_id": "c", "grade": 1, "judge": "bob", "relevant_from": 1}]
    qrels = sy.Judgments(mixed).qrels()
    assert qrels.relevant_from == 2
    assert any("different scales" in str(each) for each in qrels.notes)
    assert sy.Judgments(mixed).qrels("bob").relevant_from == 1
    with pytest.raises(sy.InputError, match="relevant_from is 'high', expected a number"):
        sy.Judgments([{**line, "relevant_from": "high"} for line in LINES])


def test_the_scale_is_part_of_the_fingerprint() -> None:
    scaled = sy.Judgments(LINES).qrels()
    plain = sy.Judgments([{k: v for k, v in line.items() if k != "relevant_from"} for line in LINES]).qrels()
    assert scaled.fingerprint != plain.fingerprint
    assert scaled.without_empty().relevant_from == 2


def pooled_runs() -> dict[str, dict[str, list[str]]]:
    return {"one": {"q1": ["a", "x1", "x2"]}, "other": {"q1": ["b", "y1", "y2"]}}


def test_pools_and_their_estimates_count_relevant_documents_from_the_scale(tmp_path: Path) -> None:
    # Grade 1 of `a` is below the relevant grades: the next document is from the run that returned `b`.
    path = written(tmp_path / "judgments.jsonl", LINES[:2])
    for rule in ("mtf", "bandit"):
        for qrels in (path, sy.Judgments.read(path), sy.Judgments.read(path).qrels()):
            assert sy.pool(pooled_runs(), qrels, strategy=rule).pairs[0] == ("q1", "y1")
        assert sy.pool(pooled_runs(), path, strategy=rule, rel=1).pairs[0] == ("q1", "x1")
    sy.Run(pooled_runs()["one"]).write(tmp_path / "one.run")
    sy.Run(pooled_runs()["other"]).write(tmp_path / "other.run")
    files = [str(tmp_path / name) for name in ("one.run", "other.run")]
    command = ["pool", *files, "--qrels", str(path), "--strategy", "mtf", "-o", str(tmp_path / "pool.jsonl")]
    assert steelyard(command) == 0
    assert Pool.read(tmp_path / "pool.jsonl").pairs[0] == ("q1", "y1")
    drawn = sy.pool({"run": {"q1": ["a", "b"]}}, strategy="sample")
    for qrels in (path, sy.Judgments.read(path)):
        assert sy.sampled_scores({"q1": ["a", "b"]}, drawn, qrels, ["P@2"]).means == {"P@2": 0.5}
    assert sy.sampled_scores({"q1": ["a", "b"]}, drawn, path, ["P@2"], rel=1).means == {"P@2": 1.0}


def test_a_judged_pool_has_the_scale_of_the_page_in_its_file_and_its_fingerprint(tmp_path: Path) -> None:
    made = sy.pool(pooled_runs(), strategy="depth")
    made.write(tmp_path / "pool.jsonl")
    pairs = Pool.read(tmp_path / "pool.jsonl").pairs
    texts = {doc: f"text of {doc}" for _, doc in pairs}
    session = Session(pairs, sy.Dataset.of(texts, {"q1": "what"}, {}), tmp_path / "judgments.jsonl", "ann", DEFAULT)
    for at, (query, doc) in enumerate(pairs):
        session.add({"query_id": query, "doc_id": doc, "grade": at % 4})
    judgments = sy.Judgments.read(tmp_path / "judgments.jsonl")
    qrels = judgments.qrels()
    assert qrels.relevant_from == 2
    assert sy.Qrels.read(tmp_path / "judgments.jsonl").fingerprint == qrels.fingerprint
    plain = sy.Qrels({"q1": {doc: at % 4 for at, (_, doc) in enumerate(pairs)}})
    assert plain.fingerprint != qrels.fingerprint
    # Pooled again with these judgments, judged again, resolved again
    again = sy.pool({"more": {"q1": [*texts, "new"]}}, judgments, depth=10)
    assert again.pairs == [("q1", "new")]
    more = {"query_id": "q1", "doc_id": "new", "grade": 1, "judge": "ann", "relevant_from": 2}
    both = sy.Judgments([*map(Judgment.to_dict, judgments.lines), more]).qrels()
    assert both.relevant_from == 2
    relevant = sum(at % 4 >= 2 for at in range(len(pairs)))
    assert sy.evaluate(both, {"q1": [*texts, "new"]}, [f"P@{len(texts) + 1}"]).means == {
        f"P@{len(texts) + 1}": relevant / (len(texts) + 1)
    }


def test_a_scale_that_a_converted_file_cannot_hold_is_reported(tmp_path: Path) -> None:
    path = written(tmp_path / "judgments.jsonl", LINES[:3])
    for name in ("qrels.trec", "qrels.json", "qrels.csv", "qrels.parquet", "qrels.jsonl"):
        converted = sy.convert(path, tmp_path / name)
        found = [each["level"] for each in converted.notes if each.code == "scale-dropped"]
        kept = sy.Qrels.read(tmp_path / name).relevant_from
        assert (found, kept) in (([2.0], None), ([], 2.0))
    assert "rel=2" in str(sy.convert(path, tmp_path / "qrels.trec"))
    before, after = (sy.Qrels.read(each) for each in (path, tmp_path / "qrels.jsonl"))
    assert (after.relevant_from, after.fingerprint) == (2, before.fingerprint)


def test_guidelines_and_prompts_state_their_scale() -> None:
    assert DEFAULT.relevant_from == 2
    assert Guidelines.of({"grades": {0: "No", 1: "Yes"}}).relevant_from is None
    assert Guidelines.of({"grades": {0: "No", 1: "Yes"}, "relevant_from": 1}).relevant_from == 1
    with pytest.raises(sy.SteelyardError, match="relevant_from is 5; expected one of the grades"):
        Guidelines.of({"grades": {0: "No", 1: "Yes"}, "relevant_from": 5})
    assert (Prompt.of("graded").relevant_from, Prompt.of("binary").relevant_from) == (2, 1)


def dataset(tmp_path: Path) -> sy.Dataset:
    texts = {"a": "red apples", "b": "green apples", "c": "blue plums", "d": "old plums"}
    queries = {"q1": "apples", "q2": "plums"}
    return sy.Dataset.of(corpus=texts, queries=queries, qrels=sy.Judgments(LINES).qrels())


def test_a_bench_its_folder_and_the_gate_count_from_there(tmp_path: Path) -> None:
    runs = {"one": sy.Run(RUN), "other": sy.Run({"q1": ["b", "a"], "q2": ["d"]})}
    for name, run in runs.items():
        run.write(tmp_path / f"{name}.run")
    bench = {
        "dataset": dataset(tmp_path),
        "retrievers": [{"run": {"path": str(tmp_path / f"{name}.run"), "name": name}} for name in runs],
        "measures": ["Hit@1", "P@2"],
        "baseline": "one",
    }
    result = sy.bench(bench, output=tmp_path / "out")
    means = {row["run"]: row["Hit@1"] for row in result.comparison.leaderboard.iter_rows(named=True)}
    assert means == {"other": 0.5, "one": 0.0}
    again = load_result(tmp_path / "out")
    assert again.comparison.leaderboard.equals(result.comparison.leaderboard)
    assert again.qrels.relevant_from == 2
    gated = sy.gate(tmp_path / "out", run="other", rules=["Hit@1 >= 0.5"])
    assert gated.passed
    stricter = sy.bench({**bench, "rel": 3}, output=tmp_path / "strict")
    assert stricter.comparison.score_tables[0].columns[0].measure.parameters["rel"] == 3


MODEL = [
    {"query_id": f"q{n}", "doc_id": doc, "grade": grade, "judge": "llama3", "model": "llama3:8b", "relevant_from": 2}
    for n in range(12)
    for doc, grade in (("a", n % 4), ("b", (n + 1) % 4))
]
PEOPLE = [
    {**line, "judge": "ann", "grade": 3 - line["grade"] if n % 3 else line["grade"]} for n, line in enumerate(MODEL)
]


def test_labels_of_a_model_are_named_in_every_verdict(tmp_path: Path) -> None:
    runs = {"one": {f"q{n}": ["a", "b"] for n in range(12)}, "other": {f"q{n}": ["b", "a"] for n in range(12)}}
    alone = sy.compare(sy.Judgments(MODEL), runs, ["nDCG@2"])
    sentence = "Judged by llama3:8b, not checked against people."
    people = [{name: value for name, value in line.items() if name != "model"} for line in PEOPLE]
    checked = sy.compare(sy.Judgments([*MODEL, *people]).qrels("llama3"), runs, ["nDCG@2"])
    assert alone.verdict.endswith(sentence)
    assert "kappa with people" in checked.verdict
    assert "on 24 documents" in checked.verdict
    written = [
        alone.to_text(),
        alone.summary(),
        alone.to_markdown(),
        alone.to_latex(),
        alone.to_json(),
        alone.to_html(),
    ]
    for text in written:
        assert "llama3:8b" in text
    assert "Judged by" not in sy.compare(sy.Judgments(people), runs, ["nDCG@2"]).verdict
    assert "Judged by llama3:8b and people" in sy.compare(sy.Judgments([*MODEL, *people]), runs, ["nDCG@2"]).verdict


def test_outcomes_of_the_page_a_bench_and_the_gate_agree_on_what_is_relevant(tmp_path: Path) -> None:
    import_peer("jinja2")
    from steelyard.comparison.failures import MISSED, NOTHING, run_failures

    for name, run in {"one": sy.Run(RUN), "other": sy.Run({"q1": ["b", "a"], "q2": ["d"]})}.items():
        run.write(tmp_path / f"{name}.run")
    bench = {
        "dataset": dataset(tmp_path),
        "retrievers": [{"run": {"path": str(tmp_path / f"{name}.run"), "name": name}} for name in ("one", "other")],
        "measures": ["Hit@1", "R@2"],
        "baseline": "one",
    }
    result = sy.bench(bench, output=tmp_path / "out")
    for comparison in (result.comparison, load_result(tmp_path / "out").comparison):
        one = run_failures(comparison)[0]
        assert one.relevant.tolist() == [1, 0]  # q1: b (3), not a (1); q2: nothing, since c has 1
        assert (one.first.tolist(), one.found.tolist()) == ([2, 0], [0, 0])  # found within the cutoff of Hit@1
        assert one.failures[1] & NOTHING
        assert not one.failures[1] & MISSED
        assert comparison.leaderboard.filter(run="one")["R@2"].to_list() == [0.5]
    stated = sy.compare(sy.Judgments(LINES), {"one": RUN}, ["Hit@1"], rel=1)
    assert run_failures(stated)[0].relevant.tolist() == [2, 1]
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert '"relevant":1,"hidden":0,"level":2' in page
    assert sy.gate(tmp_path / "out", run="other", rules=["Hit@1 >= 0.5", "R@2 >= 0.5"]).passed
    assert not sy.gate(tmp_path / "out", run="one", rules=["Hit@1 >= 0.5"]).passed


def test_a_known_scale_or_a_stated_level_needs_no_note() -> None:
    rng = np.random.default_rng(3)
    grades = {f"q{n}": {f"d{d}": int(g) for d, g in enumerate(rng.integers(0, 4, 12))} for n in range(30)}
    by_one = {q: sorted(of, key=lambda doc: -min(of[doc], 1)) for q, of in grades.items()}
    by_all = {q: sorted(of, key=lambda doc: -of[doc]) for q, of in grades.items()}
    runs = {"one": by_one, "all": by_all}
    (found,) = [e for e in sy.compare(grades, runs, ["P@3"]).notes if e.code == "relevance-level-decides"]
    assert (found["run"], found["now"], found["then"]) == ("one", "equal", "worse")
    for text in (sy.compare(grades, runs, ["P@3"]).to_text(), sy.compare(grades, runs, ["P@3"]).summary()):
        assert "rel=2" in text
    lines = [
        {"query_id": q, "doc_id": d, "grade": g, "judge": "ann", "relevant_from": 2}
        for q, of in grades.items()
        for d, g in of.items()
    ]
    binary = {q: {d: min(g, 1) for d, g in of.items()} for q, of in grades.items()}
    for result in (
        sy.compare(sy.Judgments(lines), runs, ["P@3"]),
        sy.compare(grades, runs, ["P@3"], rel=1),
        sy.compare(grades, runs, ["P(rel=1)@3"]),
        sy.compare(grades, runs, ["nDCG@3"]),
        sy.compare(grades, runs, ["P_3"], dialect="trec_eval-9"),
        sy.compare(binary, runs, ["P@3"]),
    ):
        assert "relevance-level-decides" not in {each.code for each in result.notes}
