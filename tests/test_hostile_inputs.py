"""Whatever a file holds, a reader returns or raises a SteelyardError, and the command line exits with 0, 1 or 2."""

from __future__ import annotations

import copy
import csv
import datetime
import json
import random
import shutil
import warnings

import polars as pl
import pytest

import steelyard as sy
from steelyard.benchmark.folder import load_result
from steelyard.cli import run as command
from steelyard.errors import InputError, MeasureError, SteelyardError
from steelyard.gating.inputs import gate_input
from steelyard.io import validate_file
from steelyard.io.evidence import read_chunks
from steelyard.judgments import Judgments
from steelyard.measures.grammar import parse

QRELS, RUN = {"q1": {"d1": 1}}, {"q1": {"d1": 1.0}}
CHUNK = {"chunk_id": "c1", "doc_id": "d1", "start": 0, "end": 5, "text": "abcde"}

READERS = {
    "run": lambda path: sy.evaluate(QRELS, sy.Run.read(path), ["AP"]).to_json(),
    "qrels": lambda path: sy.evaluate(sy.Qrels.read(path), RUN, ["AP"]).to_json(),
    "validate": lambda path: str(validate_file(path)),
    "dataset": lambda path: str(sy.Dataset.read(path)),
    "evidence": lambda path: sy.Evidence.read(path).judge([CHUNK]),
    "chunks": lambda path: sy.Evidence.of({"q1": [{"doc_id": "d1", "start": 0, "end": 3}]}).judge(read_chunks(path)),
    "judgments": Judgments.read,
    "gate": gate_input,
    "scores": sy.compare_scores,
    "convert": lambda path: sy.convert(path, path.with_suffix(".out.json")),
}

FILES = {
    "run.json": {"q1": {"d1": 1.0, "d2": 0.5}, "q2": {"d2": 1}},
    "rows.json": [{"query_id": "q1", "doc_id": "d1", "score": 1.0, "rank": 1}],
    "qrels.json": [{"query_id": "q1", "doc_id": "d1", "grade": 1}],
    "multihop.json": [{"query": "who?", "question_type": "comparison", "evidence_list": [{"title": "t", "fact": "x"}]}],
    "retrieved.json": [
        {"query": "who?", "retrieval_list": [{"text": "x", "score": 0.5}], "gold_list": [{"fact": "x"}]}
    ],
    "ragas.jsonl": [{"user_input": "q", "reference_contexts": ["a"], "retrieved_contexts": ["b"]}],
    "llama.json": {"queries": {"q1": "text"}, "corpus": {"d1": "t"}, "relevant_docs": {"q1": ["d1"]}},
    "targets.json": {"q1": {"targets": [{"d1": 1}], "distractors": ["d3"]}},
    "spans.json": [
        {"question": "q", "references": [{"content": "abc", "start_index": 0, "end_index": 3}], "corpus_id": "c"}
    ],
    "judgments.jsonl": [{"query_id": "q1", "doc_id": "d1", "grade": 1, "judge": "me"}],
    "chunks.json": [{**CHUNK, "page": 1, "parent": "p"}],
    "autorag.json": [{"qid": "q1", "query": "text", "retrieval_gt": [["d1"]]}],
    "pool.jsonl": [{"pool": {"strategy": "depth"}}, {"query_id": "q1", "doc_id": "d1"}],
}

ODD = [
    *(None, True, 0, -1, 1.5, 10**30, 10**400, -(10**400), 1e308, float("nan"), float("inf")),
    *("", "x", "\udc80", "\x00", "q1", "9" * 5000, "['a', 'b']", "[[['d1']]]", "{'a': 1}"),
    *([], {}, [[]], [{}], {"a": {}}, {"id": 1}, [1, "a", None], {"d1": {"x": 1}}, [["d1"]]),
]


def mutated(value, draw, share=0.15):
    """A value with parts replaced, left out or renamed."""
    if draw.random() < share:
        return copy.deepcopy(draw.choice(ODD))
    if isinstance(value, dict):
        names = [(draw.choice(["", "\udc80"]) if draw.random() < 0.03 else name) for name in value]
        return {
            name: mutated(each, draw, share)
            for name, each in zip(names, value.values(), strict=True)
            if draw.random() > 0.04
        }
    return [mutated(each, draw, share) for each in value] if isinstance(value, list) else value


def broken(text, draw):
    place = draw.randrange(len(text) + 1)
    forms = [
        text[:place],
        text[:place] + draw.choice('[]{},:"\\0e-.\n\t\0') + text[place:],
        text.replace("1", "9" * 5000),
    ]
    return draw.choice([*forms, text, text, text, text, text])


def write(folder, name, value, draw):
    """The value as JSON, JSON lines, CSV or Parquet; None if it cannot be written."""
    records = isinstance(value, list) and value and all(isinstance(each, dict) for each in value)
    form = draw.random() if records else 0
    if form > 0.85:
        path = folder / f"{name}.parquet"
        try:
            pl.DataFrame(value, strict=False).write_parquet(path)
        except Exception:
            return None
    elif form > 0.7:
        path = folder / f"{name}.csv"
        names = list(dict.fromkeys(key for each in value for key in each))
        with path.open("w", encoding="utf-8", errors="surrogatepass", newline="") as file:
            csv.writer(file).writerows([names, *([each.get(key) for key in names] for each in value)])
    else:
        path = folder / name
        lines = path.suffix == ".jsonl" and isinstance(value, list)
        text = "\n".join(map(json.dumps, value)) if lines else json.dumps(value)
        path.write_text(broken(text, draw), "utf-8")
    return path


def read_by_all(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, read in READERS.items():
            try:
                read(path)
            except SteelyardError:
                continue
            except Exception as error:
                raise AssertionError(f"{name} of {path.read_bytes()[:500]!r}") from error


@pytest.mark.parametrize("name", FILES)
def test_mutated_files(tmp_path, name):
    draw = random.Random(name)
    for _ in range(12):
        path = write(tmp_path, name, mutated(FILES[name], draw), draw)
        if path is not None:
            read_by_all(path)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 5000 + "1" + "}" * 5000,
        '{"q1": {"d1": ' + "9" * 5000 + "}}",
        "query_id,doc_id\n" + "[" * 9000,
    ],
    ids=["list", "object", "number", "cell"],
)
@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".csv"])
def test_nested_and_long_content(tmp_path, text, suffix):
    (tmp_path / f"x{suffix}").write_text(text)
    read_by_all(tmp_path / f"x{suffix}")


@pytest.mark.parametrize("column", ["query_id", "doc_id", "score", "rank", "grade", "start", "text"])
@pytest.mark.parametrize(
    "value", [datetime.timedelta(1), datetime.date(2020, 1, 1), datetime.time(1), b"\xff", {"a": 1}, [1]], ids=str
)
def test_columns_of_other_types(tmp_path, column, value):
    row = {"query_id": "q1", "score": 1.0, "rank": 1, "grade": 1, **CHUNK, column: value}
    frame = pl.DataFrame([row])
    frame.write_parquet(tmp_path / "x.parquet")
    read_by_all(tmp_path / "x.parquet")
    for read in (lambda: sy.evaluate(QRELS, frame, ["AP"]), lambda: sy.Qrels(frame)):
        try:
            read()
        except SteelyardError:
            continue


@pytest.mark.parametrize(
    "text", ["SetF(beta=1e308)", "INST(T=1e308)", "INSQ(T=1e308)", "nDCG@1e308", f"nDCG@{'9' * 5000}"]
)
def test_measures_with_huge_numbers(text):
    with pytest.raises(MeasureError, match=r"expected a number up to 1e\+15"):
        parse(text)


ENTRIES = [
    *(
        "{}",
        "[]",
        "1.5",
        "null",
        "hybrid: {of: 1.5}",
        "hybrid: {of: [1.5, 2]}",
        "rerank: {first: {}, score: x}",
        "1: {a: 2}",
    ),
    *(
        "bm25-okapi: {k1: 1e400}",
        'bm25-okapi: {name: "\\ud800"}',
        "bm25-okapi: {name: {a: 1}}",
        "[1, 2]: 3",
        "? {a: b}\n    : c",
    ),
    *("python: {target: {a: 1}}", "python: {target: 'json:dumps', arguments: 3}", "http: 3", "run: {path: [a, b]}"),
    *(
        "http: {target: 'http://[x/{query}'}",
        "http: {target: 'http://h:99999999/{query}'}",
        "http: {target: 'http://h/{query}', headers: 3}",
    ),
]
KEYS = [
    *(
        "x: &a [*a]",
        "a: !!binary x",
        "a: 2023-99-99",
        "a: !!int x",
        "? [a]\n: 3",
        "depth: 1e30",
        "gate: [[1]]",
        "chunkers: [{}]",
    ),
    *("composite: {RR: .nan}", "chunkers: [{fixed: 3}]", "evidence: {path: 3}", "by: [a]", "at: [1e30]", "seed: -1"),
]


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_bench_with_a_wrong_retriever(tmp_path, entry, capsys):
    (tmp_path / "b.yaml").write_text(f"dataset: demo\nmeasures: [RR]\nretrievers:\n  - random\n  - {entry}\n")
    assert command(["bench", str(tmp_path / "b.yaml"), "-o", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.startswith("error: ")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("key", KEYS)
def test_a_bench_with_a_wrong_key(tmp_path, key, capsys):
    (tmp_path / "b.yaml").write_text(f"dataset: demo\nmeasures: [RR]\nretrievers: [random]\n{key}\n")
    assert command(["bench", str(tmp_path / "b.yaml"), "-o", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.startswith("error: "), "nothing runs before it"


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    data = sy.Dataset.of(
        {"d1": "a fox", "d2": "a wolf"}, {"q1": "fox", "q2": "wolf"}, {"q1": {"d1": 1}, "q2": {"d2": 1}}
    )
    folder = tmp_path_factory.mktemp("out")
    sy.bench({"dataset": data, "retrievers": ["bm25-okapi", "random"], "measures": ["RR"]}, folder)
    return folder


def test_mutated_results(result, tmp_path, capsys):
    shutil.copytree(result, tmp_path / "out")
    record = json.loads((result / "result.json").read_text())
    draw = random.Random(0)
    refused = 0
    for _ in range(25):
        (tmp_path / "out" / "result.json").write_text(json.dumps(mutated(record, draw, share=0.01)))
        try:
            load_result(tmp_path / "out")
        except InputError:
            refused += 1
        assert command(["gate", str(tmp_path / "out"), "--rule", "RR >= 0"]) in (0, 1, 2)
    assert refused > 5
    for content in ("[" * 100_000, "", "[]", "null", "3", '{"runs": ' + "9" * 5000 + "}"):
        (tmp_path / "out" / "result.json").write_text(content)
        with pytest.raises(InputError):
            load_result(tmp_path / "out")
        assert command(["gate", str(tmp_path / "out")]) == 2
    assert "internal error" not in capsys.readouterr().err
