"""From questions and an app to a verdict: three commands, no corpus, no qrels, no script."""

from __future__ import annotations

import json
import random
import shlex
import sys
import threading
import weakref
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import polars as pl
import pytest

import steelyard as sy
from needs import import_peer
from steelyard.benchmark import result as written
from steelyard.benchmark import retrieval
from steelyard.benchmark.judged import differences, judge_result
from steelyard.cli import run as command
from steelyard.judging.server import JudgingServer
from steelyard.retrievers.adapters.postgres import server_package

WORDS = ("boat", "river", "gold", "lake", "stone", "lead", "water", "fish")
DOCUMENTS = {f"p{n}": f"Page {n} is about the {word}." for n, word in enumerate(WORDS * 3)}

APP = """
from way_in_documents import DOCUMENTS, ranked

def search(query, k=10):
    return [{"id": doc, "text": DOCUMENTS[doc], "score": 1 / rank} for rank, doc in enumerate(ranked(query)[:k], 1)]

def near(query, k=10):
    docs = ranked(query)
    moved = docs[4:8] + docs[:4] + docs[8:] if int(query.split()[-1].strip("?")) % 4 == 0 else docs
    return [{"id": doc, "text": DOCUMENTS[doc]} for doc in moved[:k]]

def worse(query, k=10):
    return [{"id": doc, "text": DOCUMENTS[doc]} for doc in ranked(query)[::-1][:k]]
"""


def ranked(query: str) -> list[str]:
    words = set(query.lower().strip("?").split())
    return sorted(DOCUMENTS, key=lambda doc: -len(words & set(DOCUMENTS[doc].lower().strip(".").split())))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: Any) -> Iterator[Path]:
    """40 questions in a CSV, and an app."""
    questions = "".join(f"Tell me of {WORDS[n % 8]} and number {n}?,topic {n % 2}\n" for n in range(40))
    (tmp_path / "questions.csv").write_text(f"question,topic\n{questions}")
    (tmp_path / "way_in_app.py").write_text(APP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    module = ModuleType("way_in_documents")
    module.__dict__.update(DOCUMENTS=DOCUMENTS, ranked=ranked)
    monkeypatch.setitem(sys.modules, "way_in_documents", module)
    yield tmp_path
    for name in ("my_app", "way_in_app", "way_in_chain", "way_in_answers", "way_in_model"):
        sys.modules.pop(name, None)


@pytest.fixture
def service() -> Iterator[str]:
    """A search service that takes a question in a POST; other requests are refused, as by FastAPI."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if "question" not in body:
                self.send_error(422)
                return
            hits = [{"id": doc, "body": DOCUMENTS[doc]} for doc in ranked(body["question"])[3:][: body["k"]]]
            content = json.dumps({"results": hits}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self) -> None:
            self.send_error(405)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/search"
    server.shutdown()
    server.server_close()


@pytest.fixture
def judging(monkeypatch: Any) -> dict[str, Any]:
    """In place of a person at the page: `count` judgments, by whether a document is about what is asked."""
    seen: dict[str, Any] = {"count": 20}

    def serve_forever(server: JudgingServer, poll_interval: float = 0.5) -> None:
        seen["page"] = server.session.page()
        for number, (query, doc) in enumerate(server.session.pairs[: seen["count"]]):
            item = server.session.item(number)
            seen.setdefault("texts", []).append(item["text"])
            asked = item["query"].split()[3]
            grade = 3 if asked in item["text"] else 0
            server.session.add({"query_id": query, "doc_id": doc, "grade": grade})

    monkeypatch.setattr(JudgingServer, "serve_forever", serve_forever)
    return seen


def three_commands(capsys: Any, judging: dict[str, Any], *retrievers: str) -> str:
    """Run init, bench and judge, all with exit code 0, and bench again; what judge printed."""
    options = [part for each in retrievers for part in ("--retriever", each)]
    assert command(["init", "--queries", "questions.csv", *options]) == 0, capsys.readouterr().err
    shown = capsys.readouterr().err
    assert "40 questions in questions.csv. The first: Tell me of boat" in shown
    assert "is about the" in shown, "what each retriever returned is shown"
    assert "Next: steelyard bench bench.yaml" in shown
    assert command(["bench", "bench.yaml"]) == 0, capsys.readouterr().err
    printed = capsys.readouterr()
    assert "overlap@10" in printed.out
    assert "p95 ms" in printed.out
    assert "Where they differ most" in printed.err
    assert "Next: steelyard judge bench-result" in printed.err
    assert command(["judge", "bench-result", "--set", "open=no", "--judge", "ann"]) == 0
    verdict = capsys.readouterr().err
    assert all("is about the" in text for text in judging["texts"]), "the page shows the texts"
    assert "steelyard bench bench.yaml" in judging["page"], "the end of the page names the next command"
    assert len(Path("judgments.jsonl").read_text().splitlines()) == judging["count"]
    assert "By 20 judgments of" in verdict
    assert "Next: steelyard bench bench.yaml" in verdict
    assert command(["bench", "bench.yaml", "--all"]) == 0
    printed = capsys.readouterr()
    assert "the qrels are the 20 judgments of ann in judgments.jsonl".lower() in " ".join(printed.err.lower().split())
    assert "nDCG@10" in printed.out
    assert Path("bench-result/report.html").is_file()
    return verdict


def test_three_commands_with_functions_and_a_service(
    folder: Path, service: str, judging: dict[str, Any], capsys: Any
) -> None:
    three_commands(capsys, judging, "way_in_app:search", "way_in_app:worse", f"svc={service}")
    written = (folder / "bench.yaml").read_text()
    assert "question: '{query}'" in written, "the request that the service answers was found"
    assert "name: svc" in written


HOW_TO = Path(__file__).parents[2] / "docs" / "how-to" / "app-and-questions.md"


def test_the_commands_of_the_how_to_run(folder: Path, service: str, judging: dict[str, Any], capsys: Any) -> None:
    commands = HOW_TO.read_text().split("```")[1].strip().splitlines()
    assert len(commands) == 3
    (folder / "way_in_app.py").rename(folder / "my_app.py")
    for line in commands:
        program, *arguments = shlex.split(line.replace("http://127.0.0.1:8000/search", service))
        assert program == "steelyard"
        assert command([*arguments, *(["--set", "open=no"] if arguments[0] == "judge" else [])]) == 0, (
            capsys.readouterr().err
        )
    assert "By 20 judgments of" in capsys.readouterr().err


@pytest.mark.slow
def test_the_verdict_so_far_says_how_many_judgments_would_decide_it(
    folder: Path, judging: dict[str, Any], capsys: Any
) -> None:
    verdict = three_commands(capsys, judging, "way_in_app:search", "way_in_app:near")
    assert "would decide it" in verdict
    assert "simulat" in verdict
    # Going on is advised only if it can decide the comparison.
    assert ("Go on judging: steelyard judge bench-result" in verdict) == ("more questions are needed" not in verdict)
    judging["count"] = 1000
    assert command(["judge", "bench-result", "--set", "open=no", "--judge", "ann", "--budget", "1000"]) == 0
    decided = capsys.readouterr().err
    assert "would decide it" not in decided
    assert "search leads near on nDCG@10" in decided
    assert "the difference is significant" in decided


def test_judge_bench_and_gate_give_the_same_verdict(folder: Path) -> None:
    """Two documents of each of twelve questions are judged: whether `worse` is worse depends on the others."""
    rows = "".join(f"  - python: {{target: way_in_app:{name}, name: {name}}}\n" for name in ("search", "worse"))
    Path("bench.yaml").write_text(f"queries: questions.csv\nwarmup: 0\nretrievers:\n{rows}")
    result = sy.bench("bench.yaml")
    lines, draw = [], random.Random(6)
    for query in list(result.runs["search"].queries)[:12]:
        for name, grades in (("search", (0, 1, 2, 2, 3)), ("worse", (0, 0, 1, 1, 2))):
            grade = draw.choice(grades)
            doc = result.runs[name].frame.filter(pl.col("query_id") == query)["doc_id"][0]
            line = {"query_id": query, "doc_id": doc, "grade": grade, "judge": "ann", "at": None, "relevant_from": 2}
            lines.append(json.dumps(line))
    Path("judgments.jsonl").write_text("\n".join(lines) + "\n")
    so_far = judge_result("bench-result").comparison()
    judged = sy.bench("bench.yaml").comparison
    assert so_far.verdict == judged.verdict
    assert so_far.leading_pair.verdict == judged.leading_pair.verdict == "undecided"
    rules = ["no significant drop in nDCG@10"]
    gate = sy.gate("bench-result", baseline="bench-result", rules=rules, run="worse", baseline_run="search")
    assert gate.verdict == "undecided"


def test_judge_goes_on_with_other_runs_if_the_best_two_are_judged(folder: Path, capsys: Any) -> None:
    """The best two runs are the same; the bench names the third one, which nobody judged."""
    named = {"search": "search", "same": "search", "worse": "worse"}
    rows = "".join(f"  - python: {{target: way_in_app:{target}, name: {name}}}\n" for name, target in named.items())
    Path("bench.yaml").write_text(f"queries: questions.csv\nwarmup: 0\nretrievers:\n{rows}")
    lists = {name: run.frame.filter(pl.col("rank") <= 10) for name, run in sy.bench("bench.yaml").runs.items()}

    def judge(*runs: str) -> None:
        pairs = pl.concat(lists[run].select("query_id", "doc_id", "rank") for run in runs).unique(
            ["query_id", "doc_id"]
        )
        lines = [
            {"judge": "ann", "at": None, "query_id": query, "doc_id": doc, "grade": int(rank < 4)}
            for query, doc, rank in pairs.sort("query_id", "doc_id").iter_rows()
        ]
        Path("judgments.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    judge("search")
    unjudged = judge_result("bench-result", budget=10_000).pool
    assert set(unjudged.pairs) <= set(lists["worse"].select("query_id", "doc_id").iter_rows())
    assert len(unjudged) > 0
    judge("search", "worse")
    assert command(["judge", "bench-result", "--set", "open=no"]) == 0
    assert "Every document that the runs have in their first ranks is judged." in capsys.readouterr().err


def test_the_texts_of_a_pool_come_from_any_form_of_a_dataset(folder: Path) -> None:
    (folder / "docs").mkdir()
    for doc, text in DOCUMENTS.items():
        (folder / "docs" / f"{doc}.txt").write_text(text)
    sy.pool({"mine": {"q1": ["p1.txt", "p2.txt"]}}, depth=2).write("pool.jsonl")
    dataset = "{queries: questions.csv, corpus: docs}"
    assert command(["judge", "pool.jsonl", "--dataset", dataset, "--html", "page.html"]) == 0
    assert "is about the" in Path("page.html").read_text()


def test_texts_are_kept_in_the_folder_and_come_from_the_cache(folder: Path) -> None:
    import way_in_documents  # type: ignore[import-not-found]

    asked = []

    def search(query: str, k: int) -> list[dict[str, Any]]:
        asked.append(query)
        found = [{"id": doc, "text": DOCUMENTS[doc], "title": "A page", "metadata": {"n": 1}} for doc in ranked(query)]
        return found[:k]

    assert way_in_documents.DOCUMENTS is DOCUMENTS
    bench = {"queries": "questions.csv", "retrievers": {"mine": search}, "depth": 5, "warmup": 0}
    result = sy.bench(bench)
    documents = result.documents
    assert documents.columns == ["doc_id", "text", "title", "metadata"]
    assert dict(documents.select("doc_id", "text").iter_rows()).items() <= DOCUMENTS.items()
    assert set(documents["doc_id"]) == set(result.runs["mine"].frame["doc_id"])
    assert documents["title"].unique().to_list() == ["A page"]
    assert documents["metadata"].unique().to_list() == ['{"n": 1}']
    once = len(asked)
    again = sy.bench({**bench, "retrievers": {"other": {"python": {"target": search, "version": "1"}}}})
    assert len(asked) > once
    third = sy.bench({**bench, "retrievers": {"other": {"python": {"target": search, "version": "1"}}}})
    assert third.rows[0].cached
    assert third.documents.equals(again.documents), "the texts of cached answers are cached too"


def test_a_document_whose_metadata_cannot_be_read_is_returned(folder: Path) -> None:
    class Unread(dict[str, Any]):
        def items(self) -> Any:
            raise RuntimeError("no connection")

    holds_itself: dict[str, Any] = {}
    holds_itself["self"] = holds_itself

    def search(query: str, k: int) -> list[dict[str, Any]]:
        listed = zip(ranked(query), [Unread(a=1), holds_itself, {"n": 1}], strict=False)
        return [{"id": doc, "text": DOCUMENTS[doc], "metadata": metadata} for doc, metadata in listed]

    result = sy.bench({"queries": "questions.csv", "retrievers": {"mine": search}, "depth": 3, "warmup": 0})
    assert not result.failed
    assert result.runs["mine"].frame.height == 3 * len(result.runs["mine"].queries)
    assert set(result.documents["metadata"]) <= {"", '{"n": 1}'}


def test_ids_are_made_from_texts_and_one_text_is_kept_per_id(folder: Path) -> None:
    calls = []

    def without_ids(query: str, k: int) -> list[dict[str, str]]:
        return [{"text": DOCUMENTS[doc]} for doc in ranked(query)[:k]]

    def changing(query: str, k: int) -> list[dict[str, str]]:
        calls.append(query)
        return [{"id": "same", "text": f"text number {len(calls)}"}]

    def with_ids(query: str, k: int) -> list[dict[str, str]]:
        return [{"id": doc, "text": DOCUMENTS[doc]} for doc in ranked(query)[:k]]

    retrievers = {"bare": without_ids, "changing": changing, "named": with_ids}
    result = sy.bench({"queries": "questions.csv", "retrievers": retrievers, "depth": 3})
    notes = {note.code: note for note in result.notes}
    assert notes["ids-made"]["run"] == "bare"
    assert notes["texts-differ"]["run"] == "changing"
    assert {notes["same-texts-different-ids"][name] for name in ("run", "other")} == {"bare", "named"}
    assert result.runs["bare"].frame["doc_id"].str.starts_with("sha256:").all()
    assert dict(result.documents.select("doc_id", "text").iter_rows())["same"] == "text number 1"


def test_one_id_with_different_texts_in_two_retrievers_is_a_warning_of_every_bench(folder: Path, capsys: Any) -> None:
    def large(query: str, k: int) -> list[dict[str, str]]:
        return [{"id": doc, "text": DOCUMENTS[doc]} for doc in ranked(query)[:k]]

    def small(query: str, k: int) -> list[dict[str, str]]:
        return [{"id": doc, "text": DOCUMENTS[doc][:9]} for doc in ranked(query)[:k]]

    def python(target: Any, **settings: Any) -> dict[str, Any]:
        return {"python": {"target": target, "version": "1", **settings}}

    bench = {"queries": "questions.csv", "depth": 3, "retrievers": {"small": python(small), "large": python(large)}}
    # The last bench but one has a new retriever beside cached answers.
    added = {**bench, "retrievers": {"old": python(small, version="0"), **bench["retrievers"]}}
    for config, pairs in (
        (bench, {("small", "large")}),
        (bench, {("small", "large")}),
        (added, {("small", "large"), ("old", "large")}),
    ):
        notes = [note for note in sy.bench(config, "out").notes if "texts" in note.code]
        assert {(note.code, note["run"], note["other"]) for note in notes} == {
            ("different-texts-same-id", *pair) for pair in pairs
        }
        assert {note.severity for note in notes} == {"warning"}
    assert "judgments of one text count for the other" in str(notes[0])
    hashed = {"small": python(small, id="hash"), "large": python(large, id="hash")}
    assert not [note for note in sy.bench({**bench, "retrievers": hashed}, "hashed").notes if "texts" in note.code]
    Path("judgments.jsonl").write_text(f'{{"query_id": "q1", "doc_id": "{ranked("a")[0]}", "grade": 1}}\n')
    judged = sy.bench({**bench, "qrels": "judgments.jsonl"}, "out")
    assert judged.evaluated is not None
    import_peer("jinja2")  # Without it, the report is not written.
    assert "judgments of one text count for the other" in Path("out/report.html").read_text()


def test_retrievers_that_index_a_corpus_are_named(folder: Path, capsys: Any) -> None:
    assert command(["init", "--queries", "questions.csv", "--retriever", "bm25-okap"]) == 2
    assert "Did you mean bm25-okapi" in capsys.readouterr().err
    with pytest.raises(sy.InputError, match="retrievers: empty; name at least one"):
        sy.bench({"queries": "questions.csv", "retrievers": []})
    with pytest.raises(sy.InputError, match="bm25-okapi indexes a corpus: add `corpus:` .init --corpus."):
        sy.bench({"queries": "questions.csv", "retrievers": ["bm25-okapi", {"python": "way_in_app:search"}]})
    with pytest.raises(sy.InputError, match="dense indexes a corpus"):
        sy.bench({"dataset": sy.Dataset.of(queries=["Why?"]), "retrievers": ["dense"], "measures": ["AP"]})
    (folder / "docs").mkdir()
    for doc, text in DOCUMENTS.items():
        (folder / "docs" / f"{doc}.txt").write_text(text)
    retrievers = ["bm25-okapi", {"python": {"target": "way_in_app:search", "name": "app"}}]
    result = sy.bench({"queries": "questions.csv", "corpus": "docs", "retrievers": retrievers, "depth": 5})
    assert set(result.runs) == {"bm25-okapi", "app"}
    assert command(["init", "x", "--queries", "questions.csv", "--retriever", "bm25-okapi"]) == 2
    assert "bm25-okapi indexes a corpus" in capsys.readouterr().err
    assert not Path("x/bench.yaml").exists()


def test_answers_without_texts_cannot_be_judged_and_that_is_said(folder: Path, capsys: Any) -> None:
    sy.bench({"queries": "questions.csv", "retrievers": {"ids": lambda query, k: ranked(query)[:k]}, "depth": 3})
    assert command(["judge", "bench-result", "--set", "open=no"]) == 2
    assert "returned only ids" in capsys.readouterr().err


ANSWERS = """
from way_in_documents import DOCUMENTS, ranked

class Document:
    def __init__(self, text):
        self.page_content, self.metadata = f"{text} It has more words than an id has.", {}

def documents(query):
    return [Document(DOCUMENTS[doc]) for doc in ranked(query)[:5]]

def texts(query):
    return [document.page_content for document in documents(query)]

def scored(query):
    return [(text, 1 / rank) for rank, text in enumerate(texts(query), 1)]

def chain(query):
    return {"query": query, "result": "An answer.", "source_documents": documents(query)}

def retrieval_chain(query):
    return {"input": query, "answer": "An answer.", "context": documents(query)}

def nested(query):
    return {"answer": "An answer.", "result": {"hits": documents(query)}}
"""


def test_texts_and_the_answers_of_chains_are_documents_without_ids(folder: Path, capsys: Any) -> None:
    (folder / "way_in_answers.py").write_text(ANSWERS)
    names = ("documents", "texts", "scored", "chain", "retrieval_chain")
    options = [option for name in names for option in ("--retriever", f"way_in_answers:{name}")]
    assert command(["init", "--queries", "questions.csv", *options]) == 0
    assert "identified by their texts" in capsys.readouterr().err
    assert command(["bench", "bench.yaml"]) == 0
    runs = {name: sy.Run.read(folder / f"bench-result/runs/{name}.parquet").frame["doc_id"].to_list() for name in names}
    assert all(docs == runs["documents"] for docs in runs.values())
    assert all(doc.startswith("sha256:") for doc in runs["documents"])
    texts = pl.read_parquet(folder / "bench-result/documents.parquet")["text"].to_list()
    assert texts
    assert all(text.endswith("It has more words than an id has.") for text in texts)


def test_an_answer_without_a_list_and_a_wrong_column_say_what_to_do_and_leave_no_folder(
    folder: Path, capsys: Any
) -> None:
    (folder / "way_in_answers.py").write_text(ANSWERS)
    given = ["init", "new", "--queries", "questions.csv", "--retriever", "way_in_answers:nested"]
    assert command(given) == 2
    assert "it has answer, result (hits). Return the list of documents alone." in capsys.readouterr().err
    (folder / "sheet.csv").write_text("Question Text,n\nWhy?,1\n")
    assert command(["init", "new", "--queries", "sheet.csv", "--retriever", "way_in_answers:texts"]) == 2
    assert "--set column='Question Text', in bench.yaml" in capsys.readouterr().err
    assert not (folder / "new").exists()


def test_errors_of_services_and_objects_are_short(folder: Path, service: str, capsys: Any) -> None:
    class Huge:
        def __repr__(self) -> str:
            return "x" * 400_000

    for retrievers in ([Huge()], {"mine": Huge()}, Huge()):
        with pytest.raises(sy.InputError) as error:
            sy.bench({"queries": "questions.csv", "retrievers": retrievers})
        assert len(str(error.value)) < 1500
    html = service.replace("/search", "/")
    assert command(["init", "--queries", "questions.csv", "--retriever", f"{html}?q={{query}}"]) == 2
    assert "405" in capsys.readouterr().err
    assert command(["init", "--queries", "questions.csv", "--retriever", "way_in_app:serch"]) == 2
    assert "Did you mean search" in capsys.readouterr().err


def test_ids_of_another_type_are_texts(folder: Path) -> None:
    result = sy.bench(
        {"queries": "questions.csv", "retrievers": {"numbers": lambda query, k: [{"id": 7, "text": "seven"}]}}
    )
    assert result.runs["numbers"].frame["doc_id"].unique().to_list() == ["7"]
    assert result.documents["doc_id"].to_list() == ["7"]


def test_attributes_of_questions_slice_the_comparison(folder: Path) -> None:
    grades = {"q1": {"p0": 1}, "q2": {"p1": 1}, "q3": {"p2": 1}}
    retrievers = {"search": "way_in_app:search", "worse": "way_in_app:worse"}
    result = sy.bench(
        {"queries": "questions.csv", "qrels": grades, "retrievers": retrievers, "by": "topic", "depth": 9}
    )
    assert {cut.value for cut in result.comparison.slices} == {"topic 0", "topic 1"}


def test_judgments_of_questions_and_where_runs_differ(folder: Path) -> None:
    retrievers = {"search": "way_in_app:search", "worse": "way_in_app:worse"}
    result = sy.bench({"queries": "questions.csv", "retrievers": retrievers, "depth": 10})
    found = differences(result.runs)
    assert len(found) == 3
    assert found[0].agreement == min(each.agreement for each in found)
    assert found[0].first["search"] != found[0].first["worse"]
    work = judge_result(result.folder, budget=6)
    assert len(work.pool) == 6
    assert work.file == Path("judgments.jsonl")
    assert work.comparison() is None


@pytest.mark.adapters
def test_objects_of_libraries_as_they_are(folder: Path) -> None:
    documents = import_peer("langchain_core.documents")
    stores = import_peer("langchain_core.vectorstores")
    embeddings = import_peer("langchain_core.embeddings")
    llama = import_peer("llama_index.core")
    import_peer("haystack")
    from haystack import Document  # type: ignore[import-not-found]
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever  # type: ignore[import-not-found]
    from haystack.document_stores.in_memory import InMemoryDocumentStore  # type: ignore[import-not-found]
    from llama_index.core.schema import TextNode  # type: ignore[import-not-found]

    chain = stores.InMemoryVectorStore(embeddings.DeterministicFakeEmbedding(size=16))
    chain.add_documents([documents.Document(page_content=text) for text in DOCUMENTS.values()])
    index = llama.VectorStoreIndex(
        [TextNode(text=text, id_=doc) for doc, text in DOCUMENTS.items()], embed_model=llama.MockEmbedding(embed_dim=8)
    )
    store = InMemoryDocumentStore()
    store.write_documents([Document(content=text) for text in DOCUMENTS.values()])
    objects = {
        "langchain": chain.as_retriever(),
        "llama": index.as_retriever(),
        "haystack": InMemoryBM25Retriever(store),
    }
    result = sy.bench({"queries": "questions.csv", "retrievers": objects, "depth": 5})
    assert set(result.runs) == set(objects)
    assert not result.failed
    assert set(result.documents["text"]) <= set(DOCUMENTS.values())
    for run in result.runs.values():
        assert set(run.frame["doc_id"]) <= set(result.documents["doc_id"]), "every document has its text"


@pytest.mark.adapters
def test_three_commands_with_a_langchain_retriever(folder: Path, judging: dict[str, Any], capsys: Any) -> None:
    import_peer("langchain_core")
    (folder / "way_in_chain.py").write_text(
        "from langchain_core.documents import Document\n"
        "from langchain_core.retrievers import BaseRetriever\n"
        "from way_in_documents import DOCUMENTS, ranked\n"
        "class Mine(BaseRetriever):\n"
        "    k: int = 4\n"
        "    def _get_relevant_documents(self, query, *, run_manager):\n"
        "        return [Document(page_content=DOCUMENTS[doc]) for doc in ranked(query)[: self.k]]\n"
        "retriever = Mine()\n"
    )
    three_commands(capsys, judging, "way_in_chain:retriever", "way_in_app:worse")
    written = (folder / "bench.yaml").read_text()
    assert "langchain:" in written
    assert "id: hash" in written, "the chain has no ids, so that both are identified by their texts"


EMBED = "def embed(texts):\n    return [[float(word in text) + 0.01 for word in {words}] for text in texts]\n"


@pytest.mark.adapters
def test_three_commands_with_a_chroma_and_a_pgvector_collection(
    folder: Path, judging: dict[str, Any], capsys: Any
) -> None:
    chromadb = import_peer("chromadb")
    import_peer(server_package())
    psycopg = import_peer("psycopg")
    from steelyard.retrievers.adapters.postgres import private_server

    (folder / "way_in_model.py").write_text(EMBED.format(words=list(WORDS)))
    vectors = [[float(word in text) + 0.01 for word in WORDS] for text in DOCUMENTS.values()]
    client = chromadb.PersistentClient(str(folder / "db"))
    collection = client.create_collection("pages", embedding_function=None)
    collection.add(ids=list(DOCUMENTS), embeddings=vectors, documents=list(DOCUMENTS.values()))
    address = private_server()
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("create extension if not exists vector")
        connection.execute("drop table if exists way_in_pages")
        connection.execute("create table way_in_pages (id text, content text, embedding vector(8))")
        for (doc, text), vector in zip(DOCUMENTS.items(), vectors, strict=True):
            connection.execute("insert into way_in_pages values (%s, %s, %s)", (doc, text, str(vector)))
    chroma = "{chroma: {target: db, collection: pages, model: 'way_in_model:embed'}}"
    pgvector = f"{{pgvector: {{target: '{address}', table: way_in_pages, model: 'way_in_model:embed', name: pg}}}}"
    three_commands(capsys, judging, chroma, pgvector, "way_in_app:worse")
    for retriever in (
        {"chroma": {"target": "db", "collection": "pages"}},
        {"pgvector": {"target": address, "table": "t"}},
    ):
        with pytest.raises(sy.InputError, match="`model`"):
            sy.bench(
                {"queries": "questions.csv", "retrievers": [retriever], "measures": ["RR"], "qrels": {"q1": ["p0"]}}
            )
    stored = {"postgres": address, "table": "way_in_pages", "text": "content"}
    for source in (stored, {"chroma": "db", "collection": "pages"}):
        assert dict(sy.Dataset.of(queries=["Why?"], corpus=source).corpus) == DOCUMENTS


class Counted(str):
    """A text whose instances are counted while they are in memory."""

    alive: ClassVar[weakref.WeakSet[Counted]] = weakref.WeakSet()
    __hash__ = str.__hash__


def test_texts_are_on_disk_and_not_in_memory(tmp_path: Path, monkeypatch: Any) -> None:
    """However many questions there are, as many texts are in memory at a time."""
    monkeypatch.setattr(retrieval, "MOST_AT_ONCE", 10)
    monkeypatch.setattr(written, "_ROWS", 50)
    most: dict[int, int] = {}
    parts: list[int] = []
    made = written._parts

    def counted(rows: Any) -> Any:
        for part in made(rows):
            parts.append(len(part))
            yield part

    monkeypatch.setattr(written, "_parts", counted)

    def search(query: str, k: int) -> list[dict[str, Any]]:
        found = []
        for rank in range(k):
            text = Counted(f"{query} {rank}")
            Counted.alive.add(text)
            found.append({"id": f"{query} {rank}", "text": text})
        most[len(questions)] = max(most.get(len(questions), 0), len(Counted.alive))
        return found

    for count in (60, 240):
        questions = [f"question {number}" for number in range(count)]
        retrievers = dict.fromkeys(("a", "b", "c"), search)
        result = sy.bench(
            {"queries": questions, "retrievers": retrievers, "depth": 5, "warmup": 0}, tmp_path / str(count)
        )
        assert result.documents.height == 5 * count
        assert result.documents["text"].to_list() == result.documents["doc_id"].to_list()
    assert most[240] == most[60] <= 3 * 5 * 10 + 100
    assert parts == [50] * 6 + [50] * 24


def test_long_texts_are_written_in_parts_of_few_rows(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(written, "_CHARACTERS", 1000)
    rows = [(f"d{number}", "x" * 400, "", "") for number in range(100)]
    parts = list(written._parts(rows))
    assert {len(part) for part in parts[:-1]} == {3}
    assert [row for part in parts for row in part] == rows
    written.write_rows(rows, tmp_path / "documents.parquet", dict.fromkeys(written.COLUMNS, pl.String))
    assert pl.read_parquet(tmp_path / "documents.parquet").rows() == rows
    assert sorted(path.name for path in tmp_path.iterdir()) == ["documents.parquet"]


def judged_and_changed(folder: Path, judging: dict[str, Any], change: Any) -> list[str]:
    """Bench and judge, change the rows of questions.csv, and bench again: what the judgments count for, and notes."""
    retrievers = {"search": "way_in_app:search", "worse": "way_in_app:worse"}
    bench = {"queries": "questions.csv", "retrievers": retrievers, "depth": 10}
    sy.bench(bench)
    assert command(["judge", "bench-result", "--set", "open=no", "--judge", "ann"]) == 0
    before = sy.bench(bench)
    header, *rows = (folder / "questions.csv").read_text().splitlines()
    (folder / "questions.csv").write_text("\n".join([header, *change(rows)]) + "\n")
    after = sy.bench(bench)
    grades = [
        {(result.dataset.queries[query], doc): grade for query, doc, grade in rows.iter_rows()}
        for result in (before, after)
        for rows in [result.dataset.qrels.frame.select("query_id", "doc_id", "grade")]
    ]
    assert grades[1].items() <= grades[0].items(), "no judgment counts for another question"
    judging["kept"] = len(grades[1])
    return [note for note in after.notes if note.code.startswith("questions-")]


def test_judgments_follow_questions_that_are_reordered(folder: Path, judging: dict[str, Any]) -> None:
    notes = judged_and_changed(folder, judging, lambda rows: rows[::-1])
    assert judging["kept"] == 20
    moved = next(note for note in notes if note.code == "questions-moved")
    assert moved["before"] != moved["after"]
    assert "follow the text of their question" in str(moved)


def test_judgments_of_questions_that_are_edited_or_removed_are_not_used(
    folder: Path, judging: dict[str, Any], capsys: Any
) -> None:
    notes = judged_and_changed(folder, judging, lambda rows: [f"Edited {row}" for row in rows[:5]] + rows[6:])
    changed = next(note for note in notes if note.code == "questions-changed")
    assert changed["before"].startswith("Tell me of")
    assert changed["after"].startswith("Edited Tell me of")
    assert 0 < changed["judgments"] == 20 - judging["kept"]
    # What the changed questions now ask is judged anew, and the page does not show it as judged.
    capsys.readouterr()
    assert command(["judge", "bench-result", "--set", "open=no", "--judge", "ann"]) == 0
    printed = capsys.readouterr().err
    assert f"{changed['judgments']} judgments are not used" in printed
    assert "ann: 0 of " in printed


def test_judgments_of_a_file_that_the_bench_names_follow_questions_too(folder: Path) -> None:
    asked = {"q1": "Why?", "q2": "Where?"}
    lines = [
        {"query_id": "q1", "doc_id": "p1", "grade": 3, "judge": "ann", "question": "Where?"},
        {"query_id": "q2", "doc_id": "p1", "grade": 3, "judge": "ann", "question": "Where?"},
        {"query_id": "q2", "doc_id": "p1", "grade": None, "judge": "ann", "undo": True},
        {"query_id": "q1", "doc_id": "p2", "grade": 1, "judge": "ann", "question": "When?"},
        {"query_id": "q1", "doc_id": "p3", "grade": 1, "judge": "ann"},
    ]
    (folder / "mine.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    dataset = sy.Dataset.of(queries=list(asked.values()), qrels="mine.jsonl")
    assert set(dataset.qrels.frame.select("query_id", "doc_id").rows()) == {("q2", "p1"), ("q1", "p3")}
    codes = [note.code for note in dataset.notes if note.code.startswith("questions-")]
    assert codes == ["questions-have-made-ids", "questions-moved", "questions-changed"]


@pytest.mark.parametrize("corpus", [False, True])
def test_texts_that_changed_after_they_were_judged_are_reported(
    folder: Path, judging: dict[str, Any], monkeypatch: Any, corpus: bool
) -> None:
    documents = dict(DOCUMENTS)
    monkeypatch.setattr(sys.modules["way_in_documents"], "DOCUMENTS", documents)
    retrievers = {"search": "way_in_app:search", "worse": "way_in_app:worse"}
    bench = {"queries": "questions.csv", "retrievers": retrievers, "depth": 10}

    def changes() -> list[Any]:
        """The notes of a fresh bench; with a corpus, its texts are those that count."""
        if corpus:
            lines = [json.dumps({"_id": doc, "text": text}) + "\n" for doc, text in documents.items()]
            (folder / "corpus.jsonl").write_text("".join(lines))
        notes = sy.bench(bench | ({"corpus": "corpus.jsonl"} if corpus else {}), fresh=True).notes
        return [note for note in notes if note.code == "judged-texts-changed"]

    changes()
    assert command(["judge", "bench-result", "--set", "open=no", "--judge", "ann"]) == 0
    assert changes() == []
    lines = [json.loads(line) for line in (folder / "judgments.jsonl").read_text().splitlines()]
    documents[lines[0]["doc_id"]] += " It was rewritten."
    sys.modules.pop("way_in_app", None)
    (changed,) = changes()
    assert (changed["count"], changed["documents"]) == (1, (lines[0]["doc_id"],))
    assert changed.severity == "warning"


def test_the_model_judge_asks_again_about_a_question_that_changed(folder: Path) -> None:
    labels = sy.Judgments([{"query_id": "q1", "doc_id": "d", "grade": 1, "judge": "m", "question": "Why?"}])
    assert len(labels.for_questions({"q1": "Why?"})) == 1
    assert len(labels.for_questions({"q1": "Why not?"})) == 0
    assert labels.for_questions({"q7": "Why?"}).current[0].query_id == "q7"
    assert len(labels.for_questions({"q1": "Why?"}).notes) == 0


def test_a_question_that_is_asked_twice_keeps_the_judgments_of_both(folder: Path) -> None:
    line = {"doc_id": "d", "judge": "ann", "question": "Why?"}
    labels = sy.Judgments([{**line, "query_id": "q2", "grade": 1}, {**line, "query_id": "q3", "grade": 2}])
    for order, places in (
        (("Why?", "Where?", "Why?"), {"q1": 1, "q3": 2}),
        (("Why?", "Why?", "Where?"), {"q1": 2, "q2": 1}),
        (("Where?", "Why?", "Why?"), {"q2": 1, "q3": 2}),
    ):
        now = labels.for_questions({f"q{n}": text for n, text in enumerate(order, 1)})
        assert {judgment.query_id: judgment.grade for judgment in now.current} == places
    odd = sy.Judgments([{**line, "query_id": "q1", "grade": 1, "question": ["Why?"]}])
    assert len(odd.for_questions({"q1": "Why?"})) == 1


CHAIN = """
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from way_in_documents import DOCUMENTS, ranked

class Mine(BaseRetriever):
    k: int = 4

    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(page_content=DOCUMENTS[doc]) for doc in ranked(query)[: self.k]]

retriever = Mine()
"""


def table_of_how_to() -> list[str]:
    """The values of --retriever in the table of the page, without quotes of the shell."""
    rows = [line for line in HOW_TO.read_text().splitlines() if line.startswith("| a ")]
    return [shlex.split(row.split("|")[2].split("`")[1])[0] for row in rows]


@pytest.mark.adapters
def test_every_retriever_and_file_of_the_how_to(
    folder: Path, service: str, judging: dict[str, Any], capsys: Any
) -> None:
    """Its table of retrievers (a function, LangChain, a service, pgvector, Chroma), its YAML and its Python."""
    import_peer("langchain_core")
    chromadb, psycopg = import_peer("chromadb"), import_peer("psycopg")
    import_peer(server_package())
    from steelyard.retrievers.adapters.postgres import private_server

    embed = EMBED.format(words=list(WORDS))
    (folder / "my_app.py").write_text(f"{APP}\n{CHAIN}\n{embed}")
    made = {"__name__": "made"}
    exec(embed, made)
    vectors = made["embed"](list(DOCUMENTS.values()))  # type: ignore[operator]
    address = private_server()
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("create extension if not exists vector")
        connection.execute("drop table if exists chunks")
        connection.execute("create table chunks (id text, content text, embedding vector(8))")
        for (doc, text), vector in zip(DOCUMENTS.items(), vectors, strict=True):
            connection.execute("insert into chunks values (%s, %s, %s)", (doc, text, str(vector)))

    class Words(chromadb.EmbeddingFunction):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            pass

        def __call__(self, input: list[str]) -> Any:
            return made["embed"](input)  # type: ignore[operator]

        @staticmethod
        def name() -> str:
            return "steelyard-how-to"

        @staticmethod
        def build_from_config(config: dict[str, Any]) -> Any:
            return Words()

        def get_config(self) -> dict[str, Any]:
            return {}

    chromadb.utils.embedding_functions.register_embedding_function(Words)
    collection = chromadb.PersistentClient(str(folder / "db")).create_collection("chunks", embedding_function=Words())
    collection.add(ids=list(DOCUMENTS), documents=list(DOCUMENTS.values()))
    named = table_of_how_to()
    assert len(named) == 5
    places = {"http://127.0.0.1:8000/search": service, "postgresql://localhost/db": address}
    for known, place in places.items():
        named = [each.replace(known, place) for each in named]
    three_commands(capsys, judging, *named)
    written = (folder / "bench.yaml").read_text()
    assert written.count("id: hash") == 4, "the chain has no ids, so that all are identified by their texts"
    documents = pl.read_parquet("bench-result/documents.parquet")
    assert documents["doc_id"].str.starts_with("sha256:").all()
    assert set(documents["text"]) <= set(DOCUMENTS.values())

    (folder / "docs").mkdir()
    for doc, text in DOCUMENTS.items():
        (folder / "docs" / f"{doc}.md").write_text(text)
    (folder / "fragen.csv").write_text("nr,frage\n7,Tell me of boat?\n")
    blocks = [block.split("\n", 1)[1] for block in HOW_TO.read_text().split("```yaml")[1:]]
    columns, documented = (block.split("```")[0] for block in blocks)
    (folder / "other.yaml").write_text(columns.replace("questions.csv", "fragen.csv") + "retrievers: [my_app:search]\n")
    with pytest.raises(sy.InputError, match="write `python: my_app:search`"):
        sy.bench("other.yaml")
    (folder / "other.yaml").write_text((folder / "other.yaml").read_text().replace("[my", "[python: my"))
    assert list(sy.bench("other.yaml").dataset.queries) == ["7"]
    (folder / "judgments.jsonl").rename(folder / "kept.jsonl")
    (folder / "corpus.yaml").write_text(documented)
    assert set(sy.bench("corpus.yaml").runs) == {"bm25-okapi", "my_app:search"}

    import my_app  # type: ignore[import-not-found]

    python = HOW_TO.read_text().split("## In Python")[1].split("```")[1].split("\n", 1)[1]
    values: dict[str, Any] = {"my_function": my_app.search, "langchain_retriever": my_app.retriever}
    exec(python, values)
    assert set(values["result"].runs) == {"mine", "chain"}
    assert values["result"].documents.height


@pytest.mark.adapters
@pytest.mark.parametrize("store", ["postgres-fts", "sqlite-fts", "lancedb"])
def test_tables_are_identified_by_their_texts(folder: Path, store: str) -> None:
    """`id: hash`, which init writes if other retrievers have other ids."""
    import sqlite3

    rows = list(DOCUMENTS.items())
    if store == "sqlite-fts":
        with sqlite3.connect("pages.db") as connection:
            connection.execute("create virtual table pages using fts5(id, text)")
            connection.executemany("insert into pages values (?, ?)", rows)
        connection.close()
        settings: dict[str, Any] = {"target": "pages.db", "table": "pages"}
    elif store == "lancedb":
        arrow = import_peer("pyarrow")
        table = arrow.table({"id": [doc for doc, _ in rows], "text": [text for _, text in rows]})
        made = import_peer("lancedb").connect("pages").create_table("pages", table)
        made.create_index("text", config=import_peer("lancedb.index").FTS())
        settings = {"target": "pages", "table": "pages", "search": "text"}
    else:
        import_peer(server_package())
        psycopg = import_peer("psycopg")
        from steelyard.retrievers.adapters.postgres import private_server

        settings = {"target": private_server(), "table": "way_in_texts"}
        with psycopg.connect(settings["target"], autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute("drop table if exists way_in_texts")
            cursor.execute("create table way_in_texts (id text, text text)")
            cursor.executemany("insert into way_in_texts values (%s, %s)", rows)
    bench = {"queries": ["river boat"], "depth": 3, "warmup": 0}
    by_id, by_text = (
        sy.bench({**bench, "retrievers": {"engine": {store: {**settings, **more}}}}, name)
        for name, more in (("a", {"id": "id"}), ("b", {"id": "hash"}))
    )
    assert not by_id.failed
    assert not by_text.failed
    texts = [dict(each.documents.select("doc_id", "text").iter_rows()) for each in (by_id, by_text)]
    found = [
        [known[doc] for doc in each.runs["engine"].frame["doc_id"]]
        for known, each in zip(texts, (by_id, by_text), strict=True)
    ]
    assert sorted(found[0]) == sorted(found[1])
    assert all(doc.startswith("sha256:") for doc in texts[1])
