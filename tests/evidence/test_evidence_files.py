"""Evidence read from the files of each tool; on real data, every judgment compared with a plain loop."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from plain_projection import judged

import steelyard as sy
from needs import SHARED, needs_shared
from steelyard.errors import InputError
from steelyard.io.evidence import read_chunks


def written(path: Path, content: Any) -> Path:
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, encoding="utf-8")
    return path


def test_multihop_rag(tmp_path: Path) -> None:
    questions = [
        {
            "query": "One?",
            "question_type": "inference_query",
            "evidence_list": [{"fact": "A b.", "url": "u"}, {"fact": "C d."}],
        },
        {"query": "Two?", "question_type": "null_query", "evidence_list": []},
    ]
    ev = sy.Evidence.read(written(tmp_path / "MultiHopRAG.json", questions))
    assert repr(ev) == "Evidence: 2 queries, 2 targets (2 facts), 1 null query"
    assert ev.judge({"c": "It message: A  b."}).frame.row(0) == ("0", "c", 1, "1")
    questions[1]["question_type"] = "inference_query"
    with pytest.raises(InputError, match="query '1': no evidence, and not marked null"):
        sy.Evidence.read(written(tmp_path / "bad.json", questions))


def test_spans_as_references_and_as_rows(tmp_path: Path) -> None:
    references = [{"content": "balance", "start_index": 4, "end_index": 11}]
    lines = json.dumps({"query_id": "q", "references": references, "corpus_id": "book"}) + "\n"
    table = pl.DataFrame({"query_id": ["q"], "references": [json.dumps(references)], "corpus_id": ["book"]})
    flat = "query_id,doc_id,start_index,end_index,content\nq,book,4,11,balance\n"
    table.write_csv(tmp_path / "a.csv")
    wanted = sy.Evidence({"q": [{"doc_id": "book", "start": 4, "end": 11, "content": "balance"}]})
    assert sy.Evidence.read(tmp_path / "a.csv") == wanted
    assert sy.Evidence.read(written(tmp_path / "b.jsonl", lines)) == wanted
    assert sy.Evidence.read(written(tmp_path / "c.csv", flat)) == wanted


def test_rows_of_one_target_are_alternatives(tmp_path: Path) -> None:
    flat = "query_id,doc_id,start,end,target\nq,a,0,5,1\nq,b,3,9,1\nq,b,10,12,2\n"
    ev = sy.Evidence.read(written(tmp_path / "spans.csv", flat))
    assert [len(target) for target in ev.targets["q"]] == [2, 1]


@pytest.mark.parametrize("name", ["e.jsonl", "e.parquet", "e.csv"])
def test_the_number_0_is_an_id_and_a_target(tmp_path: Path, name: str) -> None:
    rows = [{"query_id": 0, "doc_id": "a", "start": 0, "end": 5, "target": target} for target in (0, 0, 1)]
    if name.endswith("jsonl"):
        written(tmp_path / name, "\n".join(map(json.dumps, rows)))
    else:
        frame = pl.DataFrame(rows)
        frame.write_csv(tmp_path / name) if name.endswith("csv") else frame.write_parquet(tmp_path / name)
    ev = sy.Evidence.read(tmp_path / name)
    assert [len(target) for target in ev.targets["0"]] == [2, 1]


def test_ragas_and_own_json(tmp_path: Path) -> None:
    samples = [{"user_input": "One?", "reference_contexts": ["A b.", "C d."]}]
    assert len(sy.Evidence.read(written(tmp_path / "ragas.json", samples))) == 2
    own = {"q1": [[{"fact": "A b."}, {"doc_id": "d7"}]], "q2": None}
    assert sy.Evidence.read(written(tmp_path / "own.json", own)) == sy.Evidence(own)
    lines = [{"query_id": "q1", "targets": own["q1"]}, {"query_id": "q2", "targets": [], "null": True}]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    assert sy.Evidence.read(written(tmp_path / "own.jsonl", text)) == sy.Evidence(own)


def test_files_without_evidence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no evidence: the fields are title"):
        sy.Evidence.read(written(tmp_path / "a.json", [{"title": "x"}]))
    with pytest.raises(InputError, match="Did you mean spans"):
        sy.Evidence.read(written(tmp_path / "b.json", [{"references": []}]), format="span")
    with pytest.raises(InputError, match="has no option 'corpus'"):
        sy.Evidence.read(written(tmp_path / "c.json", [{"evidence_list": []}]), corpus="x")
    with pytest.raises(InputError, match="the span 9 to 3 of document 'b' is reversed"):
        sy.Evidence.read(written(tmp_path / "d.csv", "query_id,doc_id,start,end\nq,b,9,3\n"))
    with pytest.raises(InputError, match="its list is not JSON"):
        sy.Evidence.read(written(tmp_path / "e.csv", "query_id,doc_id,references\nq,b,[{]\n"))


@needs_shared
def test_autorag_groups_by_id() -> None:
    ev = sy.Evidence.read(SHARED / "autorag" / "qa_data_sample.parquet")
    corpus = pl.read_parquet(SHARED / "autorag" / "corpus_data_sample.parquet")
    qrels = ev.judge(corpus.select("doc_id", "contents"))
    assert (
        qrels.frame.sort("query_id", "doc_id")
        .drop("target")
        .equals(
            sy.Qrels.read(SHARED / "autorag" / "qa_data_sample.parquet").frame.sort("query_id", "doc_id").drop("target")
        )
    )


@needs_shared
def test_autorag_spans_survive_another_chunking() -> None:
    folder = SHARED / "autorag" / "korean"
    ev = sy.Evidence.read(folder / "qa.parquet", corpus=folder / "corpus.parquet")
    chunks = read_chunks(folder / "corpus.parquet")
    own = ev.judge(chunks, overlap="whole").frame
    assert set(own.select("query_id", "doc_id").iter_rows()) == {
        (query, doc)
        for query, groups in pl.read_parquet(folder / "qa.parquet").select("qid", "retrieval_gt").iter_rows()
        for group in groups
        for doc in group
    }
    end = int(chunks["end"].max())  # type: ignore[arg-type]
    coarse = [
        {"chunk_id": str(a), "doc_id": chunks["doc_id"][0], "start": a, "end": a + 2000} for a in range(0, end, 2000)
    ]
    evidence = {
        query: [[{"doc_id": way.doc_id, "start": way.start, "end": way.end} for way in target] for target in targets]
        for query, targets in ev.targets.items()
    }
    found = set(ev.judge(coarse).frame.select("query_id", "doc_id", "target").iter_rows())
    assert found == judged(evidence, coarse)


@pytest.mark.slow
@needs_shared
@pytest.mark.parametrize("overlap", ["any", "majority", "whole"])
@pytest.mark.parametrize(("size", "step"), [(400, 400), (1000, 800), (3000, 3000)])
def test_every_projected_span_equals_the_plain_loop(overlap: Any, size: int, step: int) -> None:
    ev = sy.Evidence.read(SHARED / "chunk-spans" / "questions_df.csv")
    assert (len(ev.queries), len(ev)) == (472, 790)
    texts = {path.stem: path.read_bytes().decode() for path in (SHARED / "chunk-spans" / "corpora").glob("*.md")}
    chunks = [
        {
            "chunk_id": f"{doc}/{a}",
            "doc_id": doc,
            "start": a,
            "end": min(a + size, len(text)),
            "text": text[a : a + size],
        }
        for doc, text in texts.items()
        for a in range(0, len(text), step)
    ]
    evidence = {
        query: [[{"doc_id": way.doc_id, "start": way.start, "end": way.end} for way in target] for target in targets]
        for query, targets in ev.targets.items()
    }
    found = ev.judge(chunks, overlap=overlap, documents=texts)
    assert set(found.frame.select("query_id", "doc_id", "target").iter_rows()) == judged(
        evidence, chunks, overlap=overlap
    )


@needs_shared
def test_one_chunk_per_text_finds_everything() -> None:
    ev = sy.Evidence.read(SHARED / "chunk-spans" / "questions_df.csv")
    texts = {path.stem: path.read_bytes().decode() for path in (SHARED / "chunk-spans" / "corpora").glob("*.md")}
    found = ev.project(texts, overlap="whole", documents=texts)
    assert found.split.height == found.unfound.height == 0
    run = {query: list(texts) for query in ev.queries}
    assert sy.evaluate(found.qrels, run, ["R", "R(per=target)"]).means == {"R": 1.0, "R(per=target)": 1.0}


@pytest.mark.parametrize("name", ["one.jsonl", "one.ndjson", "one.jsonl.gz"])
def test_one_line_of_json_lines_is_one_row(tmp_path: Path, name: str) -> None:
    pack = gzip.compress if name.endswith(".gz") else bytes
    chunk = {"chunk_id": "d#1", "doc_id": "d", "start": 0, "end": 4, "text": "text"}
    (tmp_path / name).write_bytes(pack(json.dumps(chunk).encode() + b"\n"))
    assert read_chunks(tmp_path / name).to_dicts() == [chunk]
    row = {"query_id": "q", "references": [{"doc_id": "d", "start": 0, "end": 4}]}
    (tmp_path / name).write_bytes(pack(json.dumps(row).encode() + b"\n"))
    assert sy.Evidence.read(tmp_path / name).queries == ["q"]
    by_query = {"q": [{"doc_id": "d", "start": 0, "end": 4}], "r": None}
    (tmp_path / name).write_bytes(pack(json.dumps(by_query).encode()))
    assert sy.Evidence.read(tmp_path / name).queries == ["q", "r"]


def test_one_json_object_is_no_list_of_chunks(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text('{"chunk_id": "d#1", "doc_id": "d", "start": 0, "end": 4, "text": "text"}')
    with pytest.raises(InputError, match="one JSON object; expected a list of chunks"):
        read_chunks(tmp_path / "one.json")


def test_json_lines_keep_spans_and_chunks_for_span_measures(tmp_path: Path) -> None:
    spans = {"q1": [[{"doc_id": "book", "start": 10, "end": 90}]], "q2": [[{"doc_id": "gone", "start": 0, "end": 9}]]}
    chunks = [{"chunk_id": f"c{n}", "doc_id": "book", "start": 40 * n, "end": 40 * n + 50} for n in range(4)]
    run, measures = {"q1": ["c1", "c3", "c0"], "q2": ["c2"]}, ["SpanR@2", "SpanP@2", "SpanIoU@2", "R@2"]
    qrels = sy.Evidence(spans).judge(chunks)
    qrels.write(tmp_path / "qrels.jsonl")
    means = sy.evaluate(tmp_path / "qrels.jsonl", run, measures).means
    assert means == sy.evaluate(qrels, run, measures).means
    assert means["SpanR@2"] == 50 / 80 / 2
    assert sy.convert(tmp_path / "qrels.jsonl", tmp_path / "again.jsonl").notes == ()
    assert sy.evaluate(tmp_path / "again.jsonl", run, measures).means == means
    assert [note.code for note in sy.convert(tmp_path / "qrels.jsonl", tmp_path / "q.csv").notes] == ["ranges-dropped"]
    with (tmp_path / "again.jsonl").open("a") as file:
        file.write('{"chunk_id": "c9", "doc_id": "book", "start": "x", "end": 3}\n')
    with pytest.raises(InputError, match="the gold spans or the lines of chunks"):
        sy.evaluate(tmp_path / "again.jsonl", run, measures)


def test_two_columns_of_the_name_that_is_read_are_an_error(tmp_path: Path) -> None:
    evidence, chunks = tmp_path / "evidence.csv", tmp_path / "chunks.csv"
    evidence.write_text("query_id,fact,note,note\nq1,gold,x,y\n")
    chunks.write_text("chunk_id,text,text\nc1,gold,lead\n")
    with pytest.raises(InputError, match="two columns are called 'text'; rename one of them"):
        sy.Evidence.read(evidence).judge(chunks)
    evidence.write_text("query_id,fact,fact\nq1,gold,lead\n")
    with pytest.raises(InputError, match="two columns are called 'fact'; rename one of them"):
        sy.Evidence.read(evidence)
