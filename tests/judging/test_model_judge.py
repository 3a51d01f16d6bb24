"""Model judges against a local server that plays back labels: every label, faults, caps, kills and secrets."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from playback import FAULTS, Playback, send

import steelyard as sy
from clocks import Clock
from needs import shared_data
from steelyard import web
from steelyard.cli import run
from steelyard.errors import InputError
from steelyard.judging import client as chat
from steelyard.judging.client import ChatError, Endpoint
from steelyard.judging.model import ModelJudge, Prompt, judge
from steelyard.judging.pool import Pool, pool
from steelyard.judgments import Judgments
from steelyard.retrievers import BM25

KEY = "sk-secret-0123456789"


@pytest.fixture(scope="module")
def dataset() -> sy.Dataset:
    return sy.Dataset.read("demo")


@pytest.fixture(scope="module")
def small(dataset: sy.Dataset) -> Pool:
    queries = dict(list(dataset.queries.items())[:12])
    lists = BM25().index(dataset.corpus).retrieve(list(queries.values()), k=5)
    return pool({"bm25": sy.Run({q: dict(found) for q, found in zip(queries, lists, strict=True)})}, depth=5)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat, "_pause", lambda attempt, after: 0.0)


def labels_of(pool: Pool, dataset: sy.Dataset, prompt: str = "graded") -> dict[str, int]:
    made = Prompt.of(prompt)
    pairs = pool.frame.select("query_id", "doc_id").iter_rows()
    return {
        made.fill(dataset.queries[query], dataset.corpus[doc]): number % len(made.grades)
        for number, (query, doc) in enumerate(pairs)
    }


def expected(pool: Pool, dataset: sy.Dataset, labels: dict[str, int]) -> dict[tuple[str, str], int]:
    made = Prompt.of("graded")
    return {
        (query, doc): labels[made.fill(dataset.queries[query], dataset.corpus[doc])]
        for query, doc in pool.frame.select("query_id", "doc_id").iter_rows()
    }


def graded(judgments: Judgments) -> dict[tuple[str, str], float | None]:
    return {(line.query_id, line.doc_id): line.grade for line in judgments.current}


def test_labels_come_back_exactly_whatever_the_server_does(dataset, small, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    labels = labels_of(small, dataset)
    with Playback(labels, faults=0.4, seed=5) as server:
        found = judge(
            small, dataset, endpoint=server.url, model="m", output=tmp_path / "j.jsonl", cache=tmp_path / "c.sqlite"
        )
    wanted = expected(small, dataset, labels)
    got = graded(found)
    assert set(got) == set(wanted)
    # Two answers in a row without a grade are 'no answer', never 0.
    assert all(got[pair] in (wanted[pair], None) for pair in wanted)
    assert sum(grade is None for grade in got.values()) <= 3
    assert server.keys == {f"Bearer {KEY}"}
    assert graded(Judgments.read(tmp_path / "j.jsonl")) == got


def test_a_request_without_an_answer_is_sent_again(dataset, small, tmp_path, monkeypatch):
    labels, attempts = labels_of(small, dataset), count()
    with Playback(labels, kinds=["timeout"]) as server:

        def connect_in_vain_at_first(url, seconds):
            first = next(attempts) == 0
            server.faults = float(first)
            return web.connect(url, 0.05 if first else seconds)

        monkeypatch.setattr("steelyard.judging.client.connect", connect_in_vain_at_first)
        settings = {"endpoint": server.url, "model": "m", "cache": tmp_path / "c.sqlite", "concurrency": 1}
        found = judge(small, dataset, **settings)
    assert graded(found) == expected(small, dataset, labels)
    assert next(attempts) == len(small) + 1


def test_nothing_is_asked_twice(dataset, small, tmp_path):
    labels = labels_of(small, dataset)
    with Playback(labels) as server:
        settings = {"endpoint": server.url, "model": "m", "cache": tmp_path / "c.sqlite"}
        judge(small, dataset, **settings, output=tmp_path / "one.jsonl")
        asked = server.requests
        again = judge(small, dataset, **settings, output=tmp_path / "two.jsonl")
        assert server.requests == asked == len(small)
        assert graded(again) == expected(small, dataset, labels)
        judge(small, dataset, **{**settings, "model": "other"}, output=tmp_path / "three.jsonl")
        assert server.requests == 2 * asked


def test_a_compressed_file_is_refused_before_anything_is_asked(dataset, small, tmp_path):
    output = tmp_path / "judgments.jsonl.gz"
    with Playback(labels_of(small, dataset)) as server, pytest.raises(InputError, match="decompress it first"):
        judge(small, dataset, endpoint=server.url, model="m", cache=tmp_path / "c.sqlite", output=output)
    assert server.requests == 0
    assert not output.exists()


def test_a_full_disk_is_an_error_that_keeps_the_answers(dataset, small, tmp_path):
    with Playback(labels_of(small, dataset)) as server:
        made = ModelJudge(Endpoint(server.url, "m"), cache=tmp_path / "c.sqlite", concurrency=1)
        pages = made.cache._database.execute("PRAGMA page_count").fetchone()[0]
        made.cache._database.execute(f"PRAGMA max_page_count={pages + 1}")
        with pytest.raises(InputError, match=r"c.sqlite: the cache cannot be read or written \(.* full\)"):
            made.judge(made.questions(small, dataset), Judgments())
        made.cache.close()
        again = ModelJudge(Endpoint(server.url, "m"), cache=tmp_path / "c.sqlite")
        assert 0 < again.plan(again.questions(small, dataset)).answered < len(small.frame)


def test_no_answer_is_recorded_as_no_answer(dataset, small, tmp_path):
    class Mute(dict):
        def __missing__(self, prompt):
            return 9

    with Playback(Mute()) as server:
        found = judge(small, dataset, endpoint=server.url, model="m", cache=tmp_path / "c.sqlite")
        assert server.requests == 2 * len(small)
    assert {line.grade for line in found.current} == {None}
    assert len(found.qrels().frame.drop_nulls("doc_id")) == 0
    raw = sqlite3.connect(tmp_path / "c.sqlite").execute("SELECT raw FROM answers").fetchone()[0]
    assert len(json.loads(raw)) == 2


@pytest.mark.parametrize("cap", [0, 1, 7])
def test_requests_stop_before_the_cap(dataset, small, tmp_path, cap):
    with Playback(labels_of(small, dataset), faults=0.3 if cap > 1 else 0.0, seed=cap) as server:
        found = judge(small, dataset, endpoint=server.url, model="m", cache=tmp_path / "c.sqlite", max_requests=cap)
        assert server.requests <= cap
    assert len(found) <= cap
    assert f"max_requests={cap}" in str(found.notes[-1])


def test_a_cap_does_not_hide_that_every_request_failed(dataset, small, tmp_path):
    with Playback(labels_of(small, dataset), faults=1.0, seed=1, kinds=["500"]) as server:
        with pytest.raises(ChatError, match=r"no answer, and max_requests=3 is reached; the last: status 500"):
            judge(small, dataset, endpoint=server.url, model="m", cache=tmp_path / "c.sqlite", max_requests=3)
        assert server.requests == 3


def test_no_file_is_named_where_no_judgment_was_made(dataset, small, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    small.write("pool.jsonl")
    dataset.write("data")
    command = ["judge", "pool.jsonl", "--dataset", "data", "--model", "m", "--max-requests", "0", "-o", "j.jsonl"]
    with Playback(labels_of(small, dataset)) as server:
        assert run([*command, "--endpoint", server.url]) == 0
    assert "No judgment was made, and j.jsonl was not written; 0 requests" in capsys.readouterr().err


def test_tokens_stop_before_the_cap(dataset, small, tmp_path):
    with Playback(labels_of(small, dataset)) as server:
        found = judge(
            small, dataset, endpoint=server.url, model="m", cache=tmp_path / "c.sqlite", max_tokens=3000, concurrency=3
        )
        assert 0 < server.requests * 100 <= 3000
    assert "max_tokens=3,000" in str(found.notes[-1])


def test_the_tokens_said_to_be_used_are_those_of_the_answers(dataset, small, tmp_path, monkeypatch):
    capped, answered = threading.Event(), Endpoint._post

    class CappedError(Exception):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            capped.set()

    # No request is answered before the cap is reached.
    monkeypatch.setattr("steelyard.judging.client.CapReachedError", CappedError)
    monkeypatch.setattr(Endpoint, "_post", lambda *arguments: capped.wait(10) and answered(*arguments))
    with Playback(labels_of(small, dataset)) as server:
        made = ModelJudge(Endpoint(server.url, "m"), cache=tmp_path / "c.sqlite", max_tokens=1500, concurrency=4)
        stopped = made.judge(made.questions(small, dataset), Judgments())
    assert made.tokens > 0
    assert stopped is not None
    assert stopped.endswith(f"could pass max_tokens=1,500 ({made.tokens:,} used)")


def test_the_plan_counts_what_is_left(dataset, small, tmp_path):
    with Playback(labels_of(small, dataset)) as server:
        made = ModelJudge(Endpoint(server.url, "m"), cache=tmp_path / "c.sqlite", max_requests=10)
        questions = made.questions(small, dataset)
        before = made.plan(questions)
        assert (before.questions, before.answered, before.requests) == (len(small), 0, len(small))
        made.judge(questions, Judgments())
        after = made.plan(questions)
        assert (after.answered, after.requests) == (10, len(small) - 10)
        assert 0 < after.tokens < before.tokens
        assert "answered before" in str(after)
        assert server.requests == 10


def test_repetitions_measure_self_agreement(dataset, small, tmp_path):
    with Playback(labels_of(small, dataset)) as server:
        found = judge(small, dataset, endpoint=server.url, model="m", cache=tmp_path / "c.sqlite", repeat=2)
        assert server.requests == 2 * len(small)
    assert sorted(found.judges) == ["m", "m#2"]
    assert graded(found.by("m")) == graded(found.by("m#2"))


def test_a_prompt_of_a_file(dataset, small, tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("Q {query} D {document} Grade?")
    made = Prompt.of(path)
    labels = {
        made.fill(dataset.queries[q], dataset.corpus[d]): 1 for q, d in small.frame.select("query_id", "doc_id").rows()
    }
    with Playback(labels) as server:
        found = judge(small, dataset, endpoint=server.url, model="m", prompt=path, cache=tmp_path / "c.sqlite")
    assert {line.grade for line in found.current} == {1}
    path.write_text("Q {query}")
    with pytest.raises(sy.InputError, match="the prompt has no {document}"):
        Prompt.of(path)
    with pytest.raises(sy.InputError, match="unknown prompt 'none'"):
        Prompt.of("none")


def test_texts_are_put_in_as_they_are():
    assert Prompt("p", "{query}|{document}", (0, 1)).fill("{document}", "{query} \\1") == "{document}|{query} \\1"


@pytest.mark.parametrize(
    ("answer", "grade"),
    [
        ('{"grade": 3}', 3),
        ('{"reason": "grade 9 text", "grade": 0}', 0),
        ("```json\n{'grade': 1}\n```", 1),
        ("2", 2),
        (" 2.0 ", 2),
        ("**Grade**: 2.", 2),
        ("grade=1", 1),
        ('{"grade": 5}', None),
        ('{"grade": 1.5}', None),
        ('{"grade": "12"}', None),
        ("between 1 and 2", None),
        ("", None),
    ],
)
def test_answers_are_parsed_leniently(answer, grade):
    assert Prompt.of("graded").graded(answer)[0] == grade


def test_the_key_is_in_no_file_and_no_message(dataset, small, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Playback(labels_of(small, dataset), faults=1.0, seed=1, kinds=["500"]) as server:
        with pytest.raises(ChatError) as error:
            judge(
                small, dataset, endpoint=server.url, model="m", output=tmp_path / "j.jsonl", cache=tmp_path / "c.sqlite"
            )
        wrong = server.url.replace("/v1", "/v2")
        with pytest.raises(ChatError, match="status 404.* end in /v1") as refused:
            judge(small, dataset, endpoint=wrong, model="m", cache=tmp_path / "c.sqlite")
    out = "".join(capfd.readouterr()) + str(error.value) + str(refused.value) + repr(Endpoint("http://x/v1", "m", KEY))
    assert KEY not in out
    assert all(KEY.encode() not in path.read_bytes() for path in tmp_path.iterdir() if path.is_file())


def test_a_key_that_a_header_cannot_hold_is_refused_without_being_shown():
    with pytest.raises(sy.InputError) as error:
        Endpoint("http://127.0.0.1/v1", "m", "bad\nkey")
    assert "bad" not in str(error.value)
    with pytest.raises(sy.InputError, match="is not an address"):
        Endpoint("ftp://host", "m")


def test_the_timeout_is_for_the_whole_request(monkeypatch):
    """A server that never stops sending does not outlast the timeout."""
    import socket
    import threading

    listener = socket.create_server(("127.0.0.1", 0))

    def drip() -> None:
        for _ in range(chat.ATTEMPTS):
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError):
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
                while True:
                    connection.sendall(b" ")

    thread = threading.Thread(target=drip, daemon=True)
    monkeypatch.setattr(chat, "ATTEMPTS", 2)
    thread.start()
    # By this clock every operation on the socket takes a minute.
    clock = Clock(step=60)
    monkeypatch.setattr(web, "time", SimpleNamespace(monotonic=clock))
    with pytest.raises(ChatError, match="no answer after 2 attempts; the last: timeout"):
        Endpoint(f"http://127.0.0.1:{listener.getsockname()[1]}/v1", "m", timeout=570).ask("x")
    assert clock.now == 2 * 660, "the start of each attempt, and the first operation that would begin too late"
    thread.join()
    listener.close()


@pytest.mark.parametrize(
    ("content", "requests", "message"),
    [
        (b"<!doctype html><title>Sign in</title>", 1, "the answer is a web page.* end in /v1"),
        (b'{"error": "no such model"}', 8, r"no choices\[0\].message.content: {\"error\": \"no such model\"}"),
        (b"\n", 8, "the answer is not JSON: no text"),
        (b"x" * 295 + KEY.encode(), 8, r"not JSON: xxx[^s]*\*"),
    ],
)
def test_an_address_of_something_else_is_refused_with_what_it_answered(content, requests, message):
    class Other(Playback):
        def answer(self, request, *_):
            send(request, 200, content)

    with Other({}) as server, pytest.raises(ChatError, match=message) as error:
        Endpoint(server.url, "m", KEY).ask("x", wait=lambda seconds: None)
    assert server.requests == requests
    assert KEY[:5] not in str(error.value)


def test_nothing_is_asked_again_after_an_interrupt(tmp_path, monkeypatch):
    """One question is answered when the other has been refused once, and then its answer is interrupted."""
    refused = threading.Event()
    monkeypatch.setattr(chat, "_pause", lambda attempt, after: 60.0)

    class OneRefused(Playback):
        def answer(self, request, prompt, fault, style):
            if prompt == "refused":
                send(request, 429, b"")
                refused.set()
                return None
            refused.wait()
            return super().answer(request, prompt, "", "{grade}")

    def interrupt(question, answer):
        raise KeyboardInterrupt

    with OneRefused({"answered": 1}) as server:
        client = chat.Client(Endpoint(server.url, "m"), tmp_path / "c.sqlite")
        asked = [
            chat.Question("q", text, 0, "graded", text, "", "m", server.url, lambda text: (1, ""))
            for text in ("answered", "refused")
        ]
        with pytest.raises(KeyboardInterrupt):
            client.run(asked, interrupt)
        assert server.requests == 2, "the refused question was asked again"
        client.cache.close()


def test_a_second_interrupt_waits_for_no_answer(tmp_path, monkeypatch):
    """Ctrl-C while an answer is under way, and again while it is waited for: it ends with neither answer nor error."""
    asked, release = threading.Event(), threading.Event()
    answered: list[str] = []

    def ask(question):
        asked.set()
        release.wait(10)
        answered.append(question.text)

    def interrupted(*_):
        asked.wait()
        raise KeyboardInterrupt

    client = chat.Client(Endpoint("http://127.0.0.1:9/v1", "m"), tmp_path / "c.sqlite")
    monkeypatch.setattr(Endpoint, "check", lambda self: None)
    monkeypatch.setattr(client, "_answer", ask)
    monkeypatch.setattr(chat, "wait", interrupted)
    question = chat.Question("q", "d", 0, "graded", "text", "", "m", "http://x", lambda text: (1, ""))
    with pytest.raises(KeyboardInterrupt):
        client.run([question], lambda question, answer: None)
    assert answered == []
    release.set()
    client.cache.close()


def test_texts_missing_from_the_dataset_are_reported(small, tmp_path):
    other = sy.Dataset.read("demo")
    with pytest.raises(sy.InputError, match="the dataset has no text for part of the pool"):
        judge(small, _without(other), endpoint="http://127.0.0.1:9/v1", model="m", cache=tmp_path / "c.sqlite")


def _without(dataset: sy.Dataset) -> sy.Dataset:
    from dataclasses import replace

    return replace(dataset, queries=dataset.queries.only(list(dataset.queries)[50:]))


def killed_and_restarted(pool: Pool, folder: Path, server: Playback, kills: int, seed: int) -> int:
    """Run the judge, kill it `kills` times after random numbers of requests, let it finish; the repeated questions."""
    pool.write(folder / "pool.jsonl")
    script = (
        "import sys; from steelyard.judging.model import judge; "
        f"judge({str(folder / 'pool.jsonl')!r}, sys.argv[2], endpoint=sys.argv[1], model='m', "
        f"output={str(folder / 'j.jsonl')!r}, cache={str(folder / 'c.sqlite')!r})"
    )
    generator, repeated = random.Random(seed), 0
    for number in range(kills + 1):
        known = stored(folder / "c.sqlite")
        before = dict(server.answered)
        process = subprocess.Popen([sys.executable, "-c", script, server.url, str(folder / "data")], env=os.environ)
        if number < kills:
            server.wait_for(server.requests + generator.randrange(80))
            process.send_signal(signal.SIGKILL)
        process.wait()
        again = {prompt for prompt, count in server.answered.items() if count > before.get(prompt, 0)}
        repeated += len(again & known)
    return repeated


def stored(cache: Path) -> set[str]:
    """The prompts whose answer was stored: those that must not be asked again."""
    if not cache.exists():
        return set()
    connection = sqlite3.connect(cache)
    # A process that was killed before it made the table has stored nothing.
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'answers'").fetchall():
        return set()
    rows = connection.execute("SELECT query_id, doc_id FROM answers").fetchall()
    dataset = sy.Dataset.read("demo")
    made = Prompt.of("graded")
    return {made.fill(dataset.queries[query], dataset.corpus[doc]) for query, doc in rows}


@pytest.mark.slow
def test_twenty_kills_lose_no_answer_and_tear_no_file(dataset, tmp_path):
    lists = BM25().index(dataset.corpus).retrieve(list(dataset.queries.values()), k=20)
    run = sy.Run({q: dict(found) for q, found in zip(dataset.queries, lists, strict=True)})
    large = pool({"bm25": run}, depth=20)
    labels = labels_of(large, dataset)
    dataset.write(tmp_path / "data")
    with Playback(labels) as server:
        assert killed_and_restarted(large, tmp_path, server, kills=20, seed=3) == 0
    assert graded(Judgments.read(tmp_path / "j.jsonl")) == expected(large, dataset, labels)
    lines = (tmp_path / "j.jsonl").read_bytes().split(b"\n")
    assert all(json.loads(line) for line in lines if line)


def test_ragas_context_precision_from_a_models_labels():
    """Its formula over the verdicts of a model: precision at each relevant rank, over the relevant ones."""
    labels = Judgments(
        [{"query_id": "q", "doc_id": f"d{n}", "grade": grade, "judge": "m"} for n, grade in enumerate([1, 0, 1, 0])]
    )
    run = sy.Run({"q": [f"d{n}" for n in range(4)]})
    verdicts = [1, 0, 1, 0]
    numerator = sum((sum(verdicts[: i + 1]) / (i + 1)) * verdicts[i] for i in range(4))
    ragas = numerator / (sum(verdicts) + 1e-10)
    scores = sy.evaluate(labels.qrels(), run, ["context_precision", "id_based_context_recall"], dialect="ragas")
    assert scores["context_precision"] == pytest.approx(ragas, abs=1e-9)
    assert scores["id_based_context_recall"] == 1.0


@pytest.mark.slow
def test_all_labels_of_a_published_judge_come_back(tmp_path):
    folder = shared_data("dl2019")
    published = sy.Qrels.read(folder / "judges" / "umbrela-gpt4.txt")
    queries = [line.split("\t") for line in (folder / "queries.tsv").read_text("utf-8").splitlines()]
    trio = tmp_path / "data"
    trio.mkdir()
    (trio / "queries.jsonl").write_text("".join(json.dumps({"_id": q, "text": t}) + "\n" for q, t in queries))
    (trio / "corpus.jsonl").symlink_to(folder / "corpus.jsonl")
    whole = sy.Dataset.read(trio, judged=False)
    run = {query: dict.fromkeys(docs, 1.0) for query, docs in by_query(published).items()}
    large = pool({"all": run}, depth=1000)
    made = Prompt.of("graded")
    labels = {
        made.fill(whole.queries[query], whole.corpus[doc]): int(grade)
        for query, doc, grade in published.frame.select("query_id", "doc_id", "grade").iter_rows()
    }
    kinds = [kind for kind in FAULTS if kind != "no grade"]
    with Playback(labels, faults=0.1, seed=2, kinds=kinds) as server:
        found = judge(
            large,
            whole,
            endpoint=server.url,
            model="umbrela-gpt4",
            output=tmp_path / "j.jsonl",
            cache=tmp_path / "c.sqlite",
            concurrency=8,
        )
    wanted = {
        (query, doc): grade for query, doc, grade in published.frame.select("query_id", "doc_id", "grade").iter_rows()
    }
    assert len(wanted) == 9260
    assert graded(found) == wanted


def by_query(qrels: sy.Qrels) -> dict[str, list[str]]:
    lists: dict[str, list[str]] = {}
    for query, doc in qrels.frame.select("query_id", "doc_id").iter_rows():
        lists.setdefault(query, []).append(doc)
    return lists
