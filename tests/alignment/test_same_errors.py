"""The native kernel and the portable code give the same errors in the same words, and the same values and notes."""

from __future__ import annotations

import random
import warnings

import pytest

import steelyard as sy
from needs import needs_kernel
from steelyard.errors import SteelyardError
from steelyard.retrievers.bm25 import BM25

pytestmark = needs_kernel

QRELS = "q1 0 d1 1\nq2 0 d2 1\n"
RUN = "q1 Q0 d1 1 2.0 r\nq1 Q0 d2 2 1.0 r\nq2 Q0 d2 1 1.0 r\n"

SCORES = [
    "nan",
    "inf",
    "-inf",
    "abc",
    "1e400",
    "1e-400",
    "0x1p3",
    "1_0",
    "1,5",
    "+-2",
    ".",
    "1e",
    "9" * 400,
    "\x1b[2J",
    "٣",
]
RUNS = [
    *(f"q1 Q0 d1 1 {score} r\n" for score in SCORES),
    *("", "\n\n", "q1 Q0 d1 1 2.0\n" + RUN, RUN + "q3 Q0 d1 1 2.0 r x\n", RUN + "q9 Q0", "q1 Q0 d1 1\n" * 15 + RUN),
    *("q1 Q0 d\0 1 1 r\n", RUN + "q1 Q0 d\0 1 1 r\n", "# note\n" + RUN, RUN.replace("\n", "\r"), "\ufeff" + RUN),
    *(RUN + "q1 Q0 d1 9 0.5 r\n", RUN + "q1 Q0 d1 1\nq1 Q0 d1 1 abc r\n", f"q1 Q0 {'d' * 200_000} 1 x r\n"),
    *(b"q1 Q0 d\xff 1 1 r\n", RUN.encode() + b"q1 Q0 d\xc3", b"q1 Q0 \xed\xa0\x80 1 1 r\n", RUN.encode("utf-16")),
]
GRADES = ["x", "1.5", "nan", "-1", "9" * 30, "9" * 400, "1e3", "+1", "1_0", "1 x"]
QRELS_FILES = [
    *(f"q1 0 d1 {grade}\n" for grade in GRADES),
    *("", "q1 0 d1\n", QRELS + "q1 0 d1 2\n", "q1 0 d\0 1\n", b"q1 0 d\xff 1\n"),
]


def outcome(call):
    """The result of a call, or its error as text; any error but ours fails the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call()
        except SteelyardError as error:
            return f"{type(error).__name__}: {error}"


def evaluated(qrels, run, duplicates="hold"):
    scores = sy.evaluate(qrels, run, ["AP", "nDCG@10"], duplicates=duplicates)
    return {measure: scores[measure] for measure in scores.measures}, list(map(str, scores.notes))


def assert_same(monkeypatch, call):
    native = outcome(call)
    monkeypatch.setenv("STEELYARD_NATIVE", "0")
    assert str(outcome(call)) == str(native)


@pytest.mark.parametrize("duplicates", ["error", "collapse", "hold"])
def test_files(tmp_path, monkeypatch, duplicates):
    cases = [(QRELS, run) for run in RUNS] + [(qrels, RUN) for qrels in QRELS_FILES]

    def results():
        found = []
        for number, pair in enumerate(cases):
            paths = [tmp_path / f"{number}.{kind}" for kind in ("qrels", "run")]
            for path, content in zip(paths, pair, strict=True):
                path.write_bytes(content if isinstance(content, bytes) else content.encode())
            found.append(outcome(lambda paths=paths: evaluated(*paths, duplicates)))
        return "\n".join(map(str, found))

    assert_same(monkeypatch, results)


@pytest.mark.parametrize("form", ["file", "mapping", "frame"])
def test_repeated_documents(tmp_path, monkeypatch, form):
    draw = random.Random(0)

    def results():
        found = []
        for number in range(20):
            lists = {
                f"q{query}": [(f"d{draw.randrange(4)}", float(draw.randrange(3))) for _ in range(draw.randrange(6))]
                for query in range(3)
            }
            qrels = {query: {"d1": 1} for query in lists}
            run: object = lists
            if form == "file":
                run = tmp_path / f"{number}.run"
                rows = [(query, *pair) for query, pairs in lists.items() for pair in pairs]
                run.write_text("".join(f"{query} Q0 {doc} 1 {score} r\n" for query, doc, score in rows))
            elif form == "frame":
                run = sy.Run(lists).frame
            found.append(outcome(lambda qrels=qrels, run=run: evaluated(qrels, run, "error")))
        draw.seed(0)
        return found

    assert_same(monkeypatch, results)


@pytest.mark.parametrize("tokens", [[1], [None], None, ["\udc80"], [["fox"]], {"fox"}, "fox"])
def test_tokens(monkeypatch, tokens):
    retriever = BM25(tokenizer=lambda text: tokens)
    assert_same(monkeypatch, lambda: retriever.index({"d1": "a fox", "d2": "fox"}).retrieve(["fox"], k=2))
