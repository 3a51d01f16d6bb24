"""steelyard evidence writes the qrels of Evidence.judge; convert --roll-up writes the run of roll_up."""

from __future__ import annotations

import json

import pytest

import steelyard as sy
from steelyard.cli import run

EVIDENCE = {
    "q1": [[{"doc_id": "book", "start": 10, "end": 90}], [{"fact": "Paris is large"}, {"doc_id": "d7"}]],
    "q2": [[{"fact": "in no chunk"}]],
    "q3": None,
}
CHUNKS = [
    {"chunk_id": "c1", "doc_id": "book", "start": 0, "end": 50, "text": "x" * 50},
    {"chunk_id": "c2", "doc_id": "book", "start": 50, "end": 100, "text": "y" * 50},
    {"chunk_id": "c3", "doc_id": "d8", "start": 0, "end": 18, "text": "and PARIS is large"},
]


@pytest.fixture
def judged(tmp_path):
    """Run the verb on the evidence and the chunks; the qrels that it wrote."""
    (tmp_path / "evidence.json").write_text(json.dumps(EVIDENCE))
    (tmp_path / "chunks.jsonl").write_text("\n".join(map(json.dumps, CHUNKS)))

    def write_qrels(*options):
        out = tmp_path / "qrels.jsonl"
        code = run(
            ["evidence", str(tmp_path / "evidence.json"), str(tmp_path / "chunks.jsonl"), "-o", str(out), *options]
        )
        return sy.Qrels.read(out) if code == 0 else None

    return write_qrels


def test_file_has_the_qrels_of_python(judged, capsys):
    found = judged()
    assert found == sy.Evidence(EVIDENCE).judge(CHUNKS)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "1 span is split by chunk boundaries" in printed.err
    measure = "R(per=target)@5"
    lists = {"q1": ["c2", "c3"], "q2": ["c3"], "q3": []}
    assert sy.evaluate(found, lists, measure, no_relevant="skip")[measure] == 1 / 4


def test_options_are_those_of_python(judged):
    strict = judged("--overlap", "whole", "--set", "ignore=case")
    assert strict == sy.Evidence(EVIDENCE).judge(CHUNKS, overlap="whole", case=False)
    lax = judged("--overlap", "majority", "--set", "ignore=case", "--set", "ignore=spaces", "--set", "share=0.5")
    assert lax == sy.Evidence(EVIDENCE).judge(CHUNKS, overlap="majority", case=False, spaces="removed", share=0.5)


def test_unknown_parent_column_is_an_error(judged, capsys):
    assert judged("--set", "parent=chapter") is None
    assert "the column 'chapter'" in capsys.readouterr().err


@pytest.mark.parametrize(("options", "listed"), [([], ["book", "d8"]), (["--set", "how=sum"], ["d8", "book"])])
def test_roll_up_of_a_run_of_chunks(tmp_path, options, listed):
    (tmp_path / "chunks.jsonl").write_text("\n".join(json.dumps(chunk) for chunk in CHUNKS))
    (tmp_path / "c.run").write_text("q Q0 c3 1 5.0 r\nq Q0 c1 2 6.0 r\nq Q0 c4 3 4.0 r\n")
    with (tmp_path / "chunks.jsonl").open("a") as file:
        file.write('\n{"chunk_id": "c4", "doc_id": "d8", "start": 18, "end": 19, "text": "."}')
    out = tmp_path / "d.parquet"
    command = ["convert", str(tmp_path / "c.run"), str(out), "--roll-up", str(tmp_path / "chunks.jsonl")]
    assert run([*command, *options]) == 0
    assert sy.Run.read(out).frame["doc_id"].to_list() == listed


def test_roll_up_errors(tmp_path, capsys):
    (tmp_path / "chunks.jsonl").write_text("\n".join(map(json.dumps, CHUNKS)))
    (tmp_path / "c.run").write_text("q Q0 c9 1 5.0 r\n")
    command = ["convert", str(tmp_path / "c.run"), str(tmp_path / "d.run"), "--roll-up"]
    assert run([*command, str(tmp_path / "chunks.jsonl")]) == 2
    assert "no parent" in capsys.readouterr().err
    assert run([*command, str(tmp_path / "chunks.jsonl"), "--set", "how=worst"]) == 2
    assert "expected 'best', 'sum' or 'first'" in capsys.readouterr().err
