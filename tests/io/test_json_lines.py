"""JSON lines read at once by polars and line by line: the same run, or the same error."""

from __future__ import annotations

import json
import random

import pytest

import steelyard as sy
from steelyard.errors import InputError
from steelyard.io import json as json_module
from steelyard.io.columns import RUN_ROLES
from steelyard.io.frames import frame_of_lines
from steelyard.io.text import Source

PLAIN = ['{"query_id": "q1", "doc_id": "a", "score": 2}', '{"query_id": "q2", "doc_id": "b", "score": 0.1}']
AT_ONCE = {
    "plain": PLAIN,
    "no spaces": [line.replace(" ", "") for line in PLAIN],
    "other order": [PLAIN[0], '{"score": 0.5, "doc_id": "b", "query_id": "q2"}'],
    "another column": [line.replace("}", ', "text": "ü", "n": null}') for line in PLAIN],
    "ranks": ['{"query_id": "q", "doc_id": "a", "rank": 2}', '{"query_id": "q", "doc_id": "b", "rank": 1}'],
    "escapes": ['{"query_id": "q\\u00e9", "doc_id": "a\\\\b\\"c", "score": 1}'],
}
LINE_BY_LINE = {
    "numbers as ids": ['{"qid": 7, "docid": 12, "score": 1.5}', '{"qid": 7, "docid": 13, "score": 0.5}'],
    "a name twice": [PLAIN[0], '{"query_id": "q2", "doc_id": "b", "score": 1, "score": 2}'],
    "a name twice, then missing": [
        '{"query_id": "q", "doc_id": "a", "n": 1, "score": 2}',
        '{"query_id": "q", "doc_id": "b", "n": 1, "n": 2, "score": 1}',
        '{"query_id": "q", "doc_id": "c", "score": 0}',
    ],
    "another name later": [*PLAIN, '{"query_id": "q2", "doc_id": "c", "score": 1, "own_rank": 2}'],
    "a missing score": [PLAIN[0], '{"query_id": "q2", "doc_id": "b"}'],
    "no score": [PLAIN[0], '{"query_id": "q2", "doc_id": "b", "score": null}'],
    "score as text": [PLAIN[0], '{"query_id": "q2", "doc_id": "b", "score": "1"}'],
    "score as truth": [PLAIN[0], '{"query_id": "q2", "doc_id": "b", "score": true}'],
    "number among ids": [PLAIN[0], '{"query_id": "q2", "doc_id": 7, "score": 1}'],
    "text among numbers": ['{"query_id": 7, "doc_id": 1, "score": 1}', '{"query_id": "7", "doc_id": 2, "score": 1}'],
    "fraction as id": ['{"query_id": 7, "doc_id": 1, "score": 1}', '{"query_id": 7, "doc_id": 2.0, "score": 1}'],
    "huge id": [
        '{"query_id": 7, "doc_id": 1, "score": 1}',
        '{"query_id": 7, "doc_id": 123456789012345678901, "score": 1}',
    ],
    "half a character": ['{"query_id": "q", "doc_id": "\\ud800", "score": 1}'],
    "a whole pair": ['{"query_id": "q", "doc_id": "\\ud83d\\ude00", "score": 1}'],
    "NaN": ['{"query_id": "q", "doc_id": "a", "score": NaN}'],
    "blank lines": [PLAIN[0], "", PLAIN[1]],
    "broken": [PLAIN[0], '{"query_id": "q2", "doc_id"'],
    "two on a line": [" ".join(PLAIN)],
    "a list of results": ['{"query_id": "q", "results": {"a": 1, "b": 2}}', '{"query_id": "r", "results": {"c": 1}}'],
    "a name in a text": [PLAIN[0], '{"query_id": "q2", "doc_id": "\\"score\\":", "score": 1}'],
    "no document": [PLAIN[0].replace("doc_id", "other")],
}


def outcome(path):
    try:
        run = sy.Run.read(path)
    except InputError as error:
        return str(error)
    return run.frame.rows(), run.ordered, [note.code for note in run.notes]


@pytest.mark.parametrize("case", [*AT_ONCE, *LINE_BY_LINE])
@pytest.mark.parametrize("end", ["\n", "\r\n", ""], ids=["lf", "crlf", "no-end"])
def test_both_ways_read_the_same(case, end, tmp_path, monkeypatch):
    lines = {**AT_ONCE, **LINE_BY_LINE}[case]
    path = tmp_path / "run.jsonl"
    path.write_bytes(((end or "\n").join(lines) + end).encode())
    at_once = outcome(path)
    if case in AT_ONCE:
        assert frame_of_lines(Source(path), {}, RUN_ROLES) is not None
    monkeypatch.setattr(json_module, "frame_of_lines", lambda *arguments: None)
    assert outcome(path) == at_once


def test_random_numbers_are_read_exactly(tmp_path):
    rng = random.Random(4)
    scores = [rng.uniform(-1, 1) * 10.0 ** rng.randint(-300, 300) for _ in range(5_000)]
    path = tmp_path / "run.jsonl"
    path.write_text(
        "".join(json.dumps({"query_id": "q", "doc_id": f"d{n}", "score": s}) + "\n" for n, s in enumerate(scores))
    )
    frame = frame_of_lines(Source(path), {}, RUN_ROLES)
    assert frame is not None
    assert frame["score"].to_list() == scores


def test_the_format_is_seen_in_the_head(tmp_path, monkeypatch):
    path = tmp_path / "run.jsonl"
    path.write_text("\n".join(PLAIN) + "\n")
    monkeypatch.setattr(Source, "jsonl", property(lambda source: pytest.fail("the whole file was parsed")))
    assert len(sy.Run.read(path)) == 2


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_one_query_of_more_than_the_head_is_read_again(tmp_path, suffix):
    documents = [f"document-{number:06}" for number in range(20_000)]
    for of in (sy.Run({"q1": documents}), sy.Run({"q1": dict.fromkeys(documents, 1.0)}), sy.Qrels({"q1": documents})):
        path = tmp_path / f"{type(of).__name__}{suffix}"
        of.write(path)
        assert type(of).read(path) == of
    one_line = tmp_path / "run.json"
    one_line.write_text(json.dumps({"q1": dict.fromkeys(documents, 1.0), "q2": {"d": 1.0}}))
    assert len(sy.Run.read(one_line).queries) == 2
