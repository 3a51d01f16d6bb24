"""The check of the data in a bench: one line at its start, the findings in the result and on the page."""

from __future__ import annotations

import json
import logging
import shlex
from pathlib import Path

import pytest

import steelyard as sy
from needs import import_peer
from steelyard.benchmark.folder import load_result
from steelyard.cli import run
from steelyard.errors import InputError

WORDS = ["balance", "gold", "river", "boat", "stone", "lead", "water", "lake", "beam", "scale", "weight", "pan"]
CORPUS = {f"d{n:02}": " ".join(WORDS[(n * step) % 12] for step in (1, 2, 3, 5, 7)) + f" n{n}" for n in range(30)}
QUERIES = {"q1": "which balance weighs gold", "q2": "Which balance weighs gold?", "q3": CORPUS["d05"], "q4": "lakes"}
QRELS = {"q1": ["d01"], "q2": ["d02"], "q3": ["d05"], "q4": ["d04"]}


def bench(folder: Path, queries: dict[str, str] = QUERIES, **more: object) -> sy.BenchResult:
    dataset = sy.Dataset.of(CORPUS, queries, {query: QRELS[query] for query in queries}, name="planted")
    given = {"dataset": dataset, "retrievers": ["bm25-okapi", "random"], "measures": ["nDCG@5"], "warmup": 0}
    return sy.bench({**given, **more}, output=folder)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.getMessage().startswith("check of ")]


def test_one_line_at_the_start_and_the_findings_in_the_result(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "steelyard.bench"):
        result = bench(tmp_path)
    assert len(lines(caplog)) == 1
    assert lines(caplog)[0].startswith("check of qrels and questions: 2 findings, worst: ")
    assert lines(caplog)[0].endswith(f". After the bench: `steelyard check {tmp_path}`.")
    assert result.check is not None
    found = {each.code: each for each in result.check.findings}
    assert set(found) == {"same-question-different-qrels", "question-copies-relevant"}
    merged = {**QRELS, "q1": ["d01", "d02"], "q2": ["d01", "d02"]}
    assert found["same-question-different-qrels"].effect is not None
    for name, row in found["same-question-different-qrels"].effect["runs"].items():
        for key, qrels in (("now", QRELS), ("fixed", merged)):
            expected = sy.evaluate(qrels, result.runs[name], "nDCG@5").means["nDCG@5"]
            assert row[key] == pytest.approx(expected, abs=1e-12)
    stored = json.loads((tmp_path / "result.json").read_text())["check"]
    assert stored == result.check.to_dict()


def test_the_command_of_the_line_shows_what_the_page_shows(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    import_peer("jinja2")
    questions = {"queries": str(tmp_path / "questions.csv"), "qrels": str(tmp_path / "qrels.txt"), "dataset": None}
    (tmp_path / "questions.csv").write_text("question\nwhich balance weighs gold\nWhich balance weighs gold?\nlakes\n")
    (tmp_path / "qrels.txt").write_text("q1 0 d01 1\nq2 0 d01 1\nq3 0 d04 1\n")

    def search(query: str, k: int) -> list[str]:
        return ["d01"] if "gold" in query else []

    folder = tmp_path / "my result"
    with caplog.at_level(logging.WARNING, "steelyard.bench"):
        sy.bench({**questions, "retrievers": [{"python": {"target": search, "name": "mine"}}]}, output=folder)
    assert "check of qrels and questions: 1 finding" in lines(caplog)[0]
    program, *arguments = shlex.split(lines(caplog)[0].split("`")[1])
    assert (program, run(arguments)) == ("steelyard", 0)
    out, err = capsys.readouterr()
    stored = json.loads((folder / "result.json").read_text())["check"]["findings"]
    assert [each["code"] for each in stored] == ["empty-answer", "repeated-question"]
    assert [line.split()[1] for line in out.splitlines() if line.startswith("warning: ")] == [
        each["code"] for each in stored
    ]
    assert "2 findings" in err
    page = (folder / "report.html").read_text()
    assert all(each["text"].split(". ")[0] in page for each in stored)
    assert run([*arguments, "-m", "R@5"]) == 2
    assert "its check has the runs and measure of the bench. Give its dataset instead" in capsys.readouterr().err


def test_page_has_the_findings_also_when_it_is_made_again(tmp_path: Path) -> None:
    import_peer("jinja2")
    bench(tmp_path)
    load_result(tmp_path).to_html(tmp_path / "again.html")
    for name in ("report.html", "again.html"):
        page = (tmp_path / name).read_text()
        assert '<section id="check">' in page
        assert "have the text of another query and different relevant documents" in page


def test_nothing_is_said_about_clean_data_or_what_the_bench_reports_itself(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "steelyard.bench"):
        clean = bench(tmp_path / "clean", {"q1": QUERIES["q1"], "q4": QUERIES["q4"]})
        demo = sy.bench({"dataset": "demo", "retrievers": ["bm25-okapi"], "measures": ["nDCG@10"]}, tmp_path / "demo")
    assert lines(caplog) == []
    assert clean.check is not None
    assert clean.check.findings == ()
    assert '<section id="check">' not in (tmp_path / "clean" / "report.html").read_text()
    assert demo.check is not None
    assert [each.code for each in demo.check.findings] == ["no-relevant-document"]


def test_a_changed_check_in_the_record_is_an_error(tmp_path: Path) -> None:
    bench(tmp_path)
    file = tmp_path / "result.json"
    record = json.loads(file.read_text())
    record["check"]["findings"][0]["effect"] = {"runs": "all"}
    file.write_text(json.dumps(record))
    with pytest.raises(InputError, match=r"check\.findings\.0\.effect"):
        load_result(tmp_path)
