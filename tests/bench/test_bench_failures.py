"""What goes wrong in a bench is marked wherever its numbers stand, and decides the exit code."""

from __future__ import annotations

import json
import logging
import sys

import pytest

import steelyard as sy
from steelyard.bench.folder import load_result
from steelyard.cli import run as command
from steelyard.errors import InputError

MODULE = """
import time

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
        time.sleep(20)
    return right(query, k)

class Document:
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
        rows = [
            json.dumps({"_id": f"{name[0].replace('c', 'd')}{n}", "text": f"{key} {n}"}) for n in range(4)
        ]
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


def test_a_retriever_that_fails_on_every_query_is_wrong_input_after_all_is_written(folder, capsys):
    assert command(written(folder, "right", "broken", "shaky")) == 2
    said = capsys.readouterr()
    assert said.err.splitlines()[-1].startswith("error: broken failed on every query")
    assert "FAILED: shaky on 1 of 4 queries." in said.err.splitlines()[-2]
    board = said.out.splitlines()
    assert board[0].split()[-1] == "FAILED"
    assert [line for line in board if "broken" in line][0].endswith("4 of 4")
    assert (folder / "out" / "result.json").exists()


def test_one_that_fails_on_some_is_told_last_and_loudly(folder, capsys):
    assert command(written(folder, "right", "shaky")) == 0
    assert "FAILED: shaky on 1 of 4 queries." in capsys.readouterr().err.splitlines()[-1]
    assert command(written(folder, "right")) == 0
    assert "FAILED" not in capsys.readouterr().err


def test_every_form_of_the_leaderboard_marks_them(folder):
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


def test_a_query_that_takes_too_long_is_given_up(folder):
    entry = {"python": {"target": "failing_engine:hangs", "timeout": 0.2, "name": "hangs"}}
    result = benched(folder, entry, warmup=0)
    assert list(result.rows[0].errors) == ["q2"]
    assert "hangs: no result within 0.2 s" in result.rows[0].errors["q2"]
    assert result.comparison.leaderboard["RR"].to_list() == [0.75]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("documents", "What is in the corpus is metadata.source: set `id: metadata.source`."),
        ("texts", "set `id: hash`."),
    ],
)
def test_ids_that_are_not_the_corpus_s_are_shown_with_what_to_do(folder, name, hint):
    for _ in range(2):
        result = benched(folder, name, "right")
        said = next(line for line in result.remarks() if "not in the corpus" in line)
        assert said.startswith(f"{name} returned 4 documents that are not in the corpus: it has ")
        assert "the corpus 'd0', 'd1'." in said
        assert said.endswith(hint), "also when the answers were kept"
    mended = {"python": {"target": f"failing_engine:{name}", "id": hint.split("`")[1].split()[1]}}
    assert benched(folder, mended).comparison.leaderboard["RR"].to_list() == [1.0]


def test_a_list_among_the_arguments_is_named_as_the_likely_cause(folder):
    entry = {"python": {"target": "failing_engine:Sized", "arguments": {"n": [3, 4]}}}
    error = benched(folder, entry, "right").rows[0].errors["q0"]
    assert error.startswith("TypeError: ")
    assert "write `arguments: [{n: 3}, {n: 4}]`" in error


def break_the_key(folder):
    with (folder / "data" / "qrels.tsv").open("a") as file:
        file.write("\nq1\tnowhere\t1\n")
    with (folder / "data" / "queries.jsonl").open("a") as file:
        file.write('\n{"_id": "q2", "text": "quite another question"}\n')


def test_errors_of_the_answer_key_are_told_and_strict_stops_there(folder, capsys, caplog):
    break_the_key(folder)
    assert command(written(folder, "right")) == 0
    said = capsys.readouterr().err
    assert (
        "1 judgment of documents that are not in the corpus, 1 of them relevant:\n  'q1', 'nowhere'" in said
    )
    assert "'q2'" in said
    kept = json.loads((folder / "out" / "result.json").read_text())["problems"]
    assert len(kept) == 2
    assert "nowhere" in (folder / "out" / "leaderboard.md").read_text()
    assert command([*written(folder, "right")[:2], "-o", "other", "--strict"]) == 2
    assert "the answer key is broken; nothing was run" in capsys.readouterr().err
    assert not (folder / "other").exists()
    with pytest.raises(InputError, match="nothing was run"):
        sy.bench(configured("right"), output=folder / "other", strict=True)


def test_a_sound_answer_key_has_no_problems(folder, caplog):
    assert benched(folder, "right").problems == ()
    assert not caplog.records


def test_from_python_what_is_removed_is_logged_and_in_what_is_printed(folder, caplog):
    benched(folder, "right", "shaky")
    with caplog.at_level(logging.INFO, "steelyard.bench"):
        result = benched(folder, "right")
    assert [path.name for path in result.removed] == ["shaky.parquet"]
    gone = f"Removed from {folder / 'out'}, as this bench no longer names them: runs/shaky.parquet."
    assert (gone, f"The result is in {folder / 'out'}.") == tuple(r.getMessage() for r in caplog.records)
    assert repr(result).endswith(f"{gone}\nThe result is in {folder / 'out'}.")


def test_in_a_pipe_every_retriever_has_a_line_when_it_is_begun(folder, capsys):
    command(written(folder, "right", "shaky"))
    said = capsys.readouterr().err.splitlines()
    assert [line for line in said if line.startswith("asking ")][:2] == ["asking right", "asking shaky"]
    assert said.index("indexing shaky") < said.index("asking right")


def test_what_takes_long_is_told_in_a_pipe(monkeypatch, capsys):
    import time

    from steelyard.cli import output

    monkeypatch.setattr(output, "PATIENCE", 0.04)
    with output.bench_watched() as watch:
        watch("asking slow", 3, 9)
        time.sleep(0.3)
    assert "still asking slow, 3 of 9 done: no progress for" in capsys.readouterr().err


def test_the_plain_page_is_called_so_with_what_makes_the_whole_one(folder, capsys, monkeypatch):
    monkeypatch.setattr("steelyard.report.page.page._EXTRA", ("steelyard_nothing_of_the_kind",))
    assert command(written(folder, "right")) == 0
    said = capsys.readouterr().err
    assert "out/report.html is the plain page, as steelyard_nothing_of_the_kind is not installed." in said
    assert "pip install 'steelyard[report]' && steelyard report out -o out/report.html" in said
    assert "is the page to look at" not in said


@pytest.mark.parametrize(
    ("given", "rules", "allowed"),
    [
        (["RR >= 0.4"], ["RR >= 0.4"], 0),
        ({"allow_failed": 1}, [], 1),
        ({"rules": ["RR >= 0.4"], "allow_failed": 1}, ["RR >= 0.4"], 1),
    ],
)
def test_what_the_gate_checks_is_rules_or_rules_and_failures(folder, given, rules, allowed):
    benched(folder, "right", "shaky", gate=given)
    kept = json.loads((folder / "out" / "result.json").read_text())["settings"]
    assert (kept["gate"], kept["allow_failed"]) == (rules, allowed)
    assert sy.gate(folder / "out", "RR >= 0").passed == (allowed == 1)


def test_a_gate_of_another_shape_is_refused_with_its_keys(folder):
    with pytest.raises(InputError, match="there is no key 'allow_fail'. Did you mean allow_failed"):
        benched(folder, "right", gate={"allow_fail": 1})
    with pytest.raises(InputError, match="allow_failed: Input should be greater than or equal to 0, got -1"):
        benched(folder, "right", gate={"allow_failed": -1})


def test_a_retriever_with_ids_of_another_case_does_not_cost_the_others_their_result(folder):
    (folder / "failing_engine.py").write_text(
        MODULE + "\ndef upper(query, k):\n    return [right(query, k)[0].upper()]\n"
    )
    result = benched(folder, "right", "upper")
    assert {row.run: row.means["RR"] for row in result.comparison.leaderboard_rows} == {
        "right": 1.0,
        "upper": 0.0,
    }
    assert any(line.startswith("upper returned 4 documents that are not") for line in result.remarks())
    assert load_result(folder / "out").runs.keys() == {"right", "upper"}
