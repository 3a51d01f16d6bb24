"""What may be wrong on the way from questions and an app to a verdict: one clear message each."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import steelyard as sy
from clocks import Clock
from needs import import_peer
from steelyard.cli import run as command
from steelyard.judging import client as chat
from steelyard.retrievers.adapters import http

TEXTS = {"d1": "A page about the river.", "d2": "A page about the boat.", "d3": "A page about gold."}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: Any) -> Iterator[Path]:
    (tmp_path / "questions.csv").write_text("question\nWhat of the river?\nWhat of the boat?\n")
    (tmp_path / "way_in_wrong.py").write_text(
        f"TEXTS = {TEXTS}\n"
        "def search(query, k):\n    return [{'id': doc, 'text': text} for doc, text in TEXTS.items()][:k]\n"
        "def other(query, k):\n    return search(query, 3)[::-1]\n"
        "def halves(query, k):\n    return [{'id': 1.5, 'text': 'a'}]\n"
        "def page(query, k):\n    return '<html>' * 100000\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("way_in_wrong", None)


def unused_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def test_a_service_that_is_down_is_asked_once(folder: Path, capsys: Any, monkeypatch: Any) -> None:
    """Not in each of the usual ways, which could take as many timeouts."""
    asked: list[str] = []
    opened = http.opened
    monkeypatch.setattr(
        http, "opened", lambda request, timeout: asked.append(request.full_url) or opened(request, timeout)
    )
    address = f"http://127.0.0.1:{unused_port()}/search"
    assert command(["init", "--queries", "questions.csv", "--retriever", address]) == 2
    error = capsys.readouterr().err
    assert asked == [address]
    assert "could not be reached" in error
    assert "Is the service running?" in error
    assert not Path("bench.yaml").exists()


def test_a_service_that_returns_a_page_is_one_short_message(folder: Path, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("steelyard.web.time", SimpleNamespace(monotonic=Clock()))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            content = b"<!doctype html><title>Sign in</title>" + b"<p>Sign in</p>" * 100_000
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/search"
    try:
        for url in (address, f"{address}?q={{query}}"):
            assert command(["init", "--queries", "questions.csv", "--retriever", url]) == 2
            error = capsys.readouterr().err
            assert "did not return JSON; the response starts with '<!doctype html>" in error
            assert len(error) < 1000
        result = sy.bench({"queries": "questions.csv", "retrievers": {"s": {"http": f"{address}?q={{query}}"}}})
        assert result.broken == ["s"]
        assert len(str(result.notes)) < 3000
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("name", "message"),
    [("halves", "document id 1.5 is a float"), ("page", "is a str; expected a list"), ("serch", "Did you mean search")],
)
def test_answers_of_another_kind_are_one_short_message(folder: Path, capsys: Any, name: str, message: str) -> None:
    assert command(["init", "--queries", "questions.csv", "--retriever", f"way_in_wrong:{name}"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error) < 600
    assert not Path("bench.yaml").exists()


@pytest.mark.slow
@pytest.mark.parametrize("given", ["{a", "{python: !!python/name:os.system }", "{a: [" + "[" * 3000])
def test_a_value_that_is_no_yaml_is_one_short_message(folder: Path, capsys: Any, given: str) -> None:
    questions = ["init", "--queries", "questions.csv"]
    for command_line in (["--retriever", given], ["--retriever", "way_in_wrong:search", "--corpus", given]):
        assert command([*questions, *command_line]) == 2
        assert "is not YAML" in capsys.readouterr().err
    assert not Path("bench.yaml").exists()


def test_a_bench_that_was_written_while_the_retriever_was_asked_stays(folder: Path) -> None:
    with Path("way_in_wrong.py").open("a") as file:
        file.write(
            "def writes(query, k):\n    __import__('pathlib').Path('bench.yaml').write_text('precious')\n"
            "    return search(query, k)\n"
        )
    assert command(["init", "--queries", "questions.csv", "--retriever", "way_in_wrong:writes"]) == 2
    assert Path("bench.yaml").read_text() == "precious"


def test_an_object_that_answers_no_question_about_itself_is_one_short_message(folder: Path, capsys: Any) -> None:
    with Path("way_in_wrong.py").open("a") as file:
        file.write("class Odd:\n    def __getattr__(self, name):\n        raise RuntimeError('no')\nodd = Odd()\n")
    assert command(["init", "--queries", "questions.csv", "--retriever", "way_in_wrong:odd"]) == 2
    assert "RuntimeError: no" in capsys.readouterr().err


def test_a_column_that_is_not_found_is_named_for_the_command_line_and_for_the_file(folder: Path, capsys: Any) -> None:
    (folder / "fragen.csv").write_text("nr,frage\n1,Wo ist der Fluss?\n")
    assert command(["init", "--queries", "fragen.csv", "--retriever", "way_in_wrong:search"]) == 2
    error = capsys.readouterr().err
    assert "--set column=frage" in error
    assert "queries: {path: fragen.csv, column: frage}" in error
    assert (
        command(["init", "--queries", "fragen.csv", "--set", "column=frage", "--retriever", "way_in_wrong:search"]) == 0
    )


def benched(folder: Path) -> None:
    names = ["--retriever", "way_in_wrong:search", "--retriever", "way_in_wrong:other"]
    assert command(["init", "--queries", "questions.csv", *names]) == 0
    assert command(["bench", "bench.yaml"]) == 0


def test_a_model_that_cannot_be_reached_is_found_by_the_first_connection(
    folder: Path, capsys: Any, monkeypatch: Any
) -> None:
    benched(folder)
    connections: list[Any] = []
    connect = socket.create_connection

    def counted(address: Any, timeout: float) -> socket.socket:
        connections.append((address, timeout))
        return connect(address, timeout)

    monkeypatch.setattr(chat.socket, "create_connection", counted)
    monkeypatch.setattr(chat.Endpoint, "ask", lambda *_, **__: pytest.fail("nothing is asked"))
    endpoint = f"http://127.0.0.1:{unused_port()}/v1"
    assert command(["judge", "bench-result", "--endpoint", endpoint, "--model", "m"]) == 2
    assert "cannot be reached" in capsys.readouterr().err
    assert len(connections) == 1
    assert connections[0][1] < 10, "the limit for it, in seconds"
    assert not Path("judgments.jsonl").exists() or not Path("judgments.jsonl").read_text()


def test_the_reasons_of_a_model_are_in_the_judgments_file(folder: Path, capsys: Any, monkeypatch: Any) -> None:
    benched(folder)
    monkeypatch.setattr(chat.Endpoint, "check", lambda endpoint: None)
    answers = iter(['{"grade": 2, "reason": "It names the river."}', "I cannot say.", "I cannot say."])

    def ask(*_: Any, **__: Any) -> chat.Reply:
        return chat.Reply(next(answers, '{"grade": 0, "reason": "Off topic."}'), 5, 0.1)

    monkeypatch.setattr(chat.Endpoint, "ask", ask)
    arguments = [
        "judge",
        "bench-result",
        "--endpoint",
        "http://127.0.0.1:9/v1",
        "--model",
        "m",
        "--set",
        "concurrency=1",
    ]
    assert command(arguments) == 0
    printed = capsys.readouterr().err
    lines = [json.loads(line) for line in Path("judgments.jsonl").read_text().splitlines()]
    assert lines[0]["reason"] == "It names the river."
    assert lines[0]["question"] in ("What of the river?", "What of the boat?")
    (failed,) = (line for line in lines if line["grade"] is None)
    assert {line["reason"] for line in lines[1:] if line != failed} == {"Off topic."}
    assert f"no grade: {failed['doc_id']} for {failed['query_id']}" in printed
    assert "--retry asks for these again" in printed
    assert command([*arguments, "--retry"]) == 0
    assert all(line.grade is not None for line in sy.Judgments.read("judgments.jsonl").current)


def test_paths_are_read_and_metrics_are_called_measures(folder: Path) -> None:
    (folder / "q.trec").write_text("q1 0 d1 1\n")
    (folder / "r.run").write_text("q1 Q0 d2 1 2.0 mine\nq1 Q0 d1 2 1.0 mine\n")
    assert sy.Qrels("q.trec").frame["doc_id"].to_list() == ["d1"]
    assert sy.Run(folder / "r.run").frame["doc_id"].to_list() == ["d2", "d1"]
    with pytest.raises(sy.InputError, match=r"no such file. Did you mean q.trec"):
        sy.Qrels("q.tre")
    for call in (sy.evaluate, sy.compare):
        with pytest.raises(TypeError, match="Did you mean measures"):
            call("q.trec", "r.run", metrics=["RR"])  # type: ignore[operator]
    with pytest.raises(sy.InputError, match="unknown key 'metrics'. Did you mean measures"):
        sy.bench({"queries": ["Why?"], "retrievers": {"mine": lambda query, k: ["d1"]}, "metrics": ["RR"]})


def test_a_report_needs_a_corpus_and_queries_and_no_qrels_of_the_dataset(folder: Path, capsys: Any) -> None:
    """The judgments are the qrels; the folder of the dataset has only the texts."""
    import_peer("jinja2")
    data = folder / "data"
    data.mkdir()
    (data / "corpus.jsonl").write_text("".join(f"{json.dumps({'_id': d, 'text': t})}\n" for d, t in TEXTS.items()))
    (data / "queries.jsonl").write_text('{"_id": "q1", "text": "What of the river?"}\n')
    line = {"query_id": "q1", "doc_id": "d1", "grade": 3, "judge": "ann", "at": None}
    (folder / "judgments.jsonl").write_text(json.dumps(line) + "\n")
    for name, docs in (("one", ("d1", "d2")), ("two", ("d2", "d1"))):
        (folder / f"{name}.run").write_text("".join(f"q1 Q0 {doc} {n} {9 - n} x\n" for n, doc in enumerate(docs)))
    arguments = ["compare", "judgments.jsonl", "one.run", "two.run", "-m", "RR", "-o", "r.html"]
    assert command([*arguments, "--set", "dataset=data"]) == 0, capsys.readouterr().err
    page = (folder / "r.html").read_text()
    assert "What of the river?" in page
    assert "A page about the boat." in page


@pytest.mark.adapters
def test_the_embedding_function_of_a_chroma_collection_is_used(folder: Path, capsys: Any) -> None:
    chromadb = import_peer("chromadb")
    functions = import_peer("chromadb.utils.embedding_functions")

    @functions.register_embedding_function
    class ByWords(chromadb.EmbeddingFunction):  # type: ignore[misc, name-defined]
        """One number per word, counted."""

        asked: list[str] = []  # noqa: RUF012

        def __init__(self) -> None:
            pass

        def __call__(self, input: list[str]) -> list[list[float]]:
            self.asked.extend(input)
            return [[float(word in text) + 0.01 for word in ("river", "boat", "gold")] for text in input]

        @staticmethod
        def name() -> str:
            return "steelyard-by-words"

        @staticmethod
        def build_from_config(config: dict[str, Any]) -> Any:
            return ByWords()

        def get_config(self) -> dict[str, Any]:
            return {}

    client = chromadb.PersistentClient(str(folder / "db"))
    collection = client.create_collection("pages", embedding_function=ByWords())
    collection.add(ids=list(TEXTS), documents=list(TEXTS.values()))
    ByWords.asked.clear()
    retriever = "{chroma: {target: db, collection: pages}}"
    assert command(["init", "--queries", "questions.csv", "--retriever", retriever]) == 0, capsys.readouterr().err
    result = sy.bench("bench.yaml")
    assert set(ByWords.asked) == {"What of the river?", "What of the boat?"}
    first = result.runs["pages"].frame.filter(rank=1)
    assert first["doc_id"].to_list() == ["d1", "d2"]
    assert dict(result.documents.select("doc_id", "text").iter_rows()) == TEXTS
