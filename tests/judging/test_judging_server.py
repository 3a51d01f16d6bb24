"""The server of the judging page: what it answers, what it refuses, and what is in the file afterwards."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import steelyard as sy
from steelyard.cli import run
from steelyard.errors import InputError
from steelyard.judging.guidelines import DEFAULT, Guidelines
from steelyard.judging.page import html
from steelyard.judging.pool import Pool, assigned, judge_of, pool, shared_pairs
from steelyard.judging.server import HEADERS, LARGEST_BODY, JudgingServer, Session
from steelyard.judging.spans import evidence_of
from steelyard.judgments import Judgments, asked, text_hash

RUN_NAME = "the-secret-run"


@pytest.fixture(scope="module")
def demo() -> sy.Dataset:
    return sy.Dataset.read("demo")


@pytest.fixture(scope="module")
def demo_pool(demo: sy.Dataset) -> Pool:
    documents = list(demo.corpus)
    lists = {query: documents[place : place + 5] for place, query in enumerate(list(demo.queries)[:12])}
    return pool({RUN_NAME: lists})


class Client:
    """Requests to a judging server."""

    def __init__(self, address: str) -> None:
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/([\w-]{32})/", address)
        assert found is not None
        self.port, self.token = int(found[1]), found[2]

    def ask(
        self, method: str, path: str, body: Any = None, *, token: str | None = None, **headers: str
    ) -> tuple[int, Any, http.client.HTTPMessage]:
        content = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        sent = {"Content-Type": "application/json"} if content is not None else {}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request(method, f"/{self.token if token is None else token}/{path}", content, sent)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        is_json = (answer.getheader("Content-Type") or "").startswith("application/json")
        return answer.status, json.loads(text) if is_json else text, answer.headers

    def page_data(self) -> dict[str, Any]:
        status, text, _ = self.ask("GET", "")
        assert status == 200
        found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
        assert found is not None
        data: dict[str, Any] = json.loads(found[1])
        return data

    def judge(self, pair: list[str], grade: float | None, **more: Any) -> dict[str, Any]:
        status, made, _ = self.ask("POST", "judgment", {"query_id": pair[0], "doc_id": pair[1], "grade": grade, **more})
        assert status == 200, made
        answer: dict[str, Any] = made
        return answer


@contextmanager
def serving(session: Session) -> Iterator[Client]:
    with JudgingServer(session) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield Client(server.address)
        server.shutdown()
        thread.join()


@pytest.fixture
def client(demo: sy.Dataset, demo_pool: Pool, tmp_path: Path) -> Iterator[Client]:
    session = Session(assigned(demo_pool, "ann"), demo, tmp_path / "j.jsonl", "ann", DEFAULT)
    with serving(session) as found:
        yield found


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


# What it answers


def test_a_judgment_is_in_the_file_before_the_answer(client: Client, tmp_path: Path, demo: sy.Dataset) -> None:
    pairs = client.page_data()["pairs"]
    assert len(pairs) == 60
    text = demo.corpus.texts[pairs[0][1]]
    made = client.judge(
        pairs[0], 2, seconds=3.14159, note=" Half of it. ", spans=[{"start": 4, "end": 20, "content": "made up"}]
    )
    (line,) = lines(tmp_path / "j.jsonl")
    assert line == made
    assert line.pop("at").endswith("Z")
    assert line == {
        "query_id": pairs[0][0],
        "doc_id": pairs[0][1],
        "grade": 2,
        "judge": "ann",
        "seconds": 3.1,
        "note": "Half of it.",
        "spans": [{"start": 4, "end": 20, "content": text[4:20]}],
        "relevant_from": 2,
        "question": asked(demo.queries[pairs[0][0]]),
        "text_hash": text_hash(demo.corpus.texts[pairs[0][1]]),
    }
    client.judge(pairs[1], None)
    assert client.page_data()["log"] == lines(tmp_path / "j.jsonl")
    assert sy.Qrels.of(Judgments.read(tmp_path / "j.jsonl").qrels("ann")).frame.height == 1


def test_an_item_has_the_texts_and_nothing_else(client: Client, demo: sy.Dataset) -> None:
    query, doc = client.page_data()["pairs"][7]
    status, item, _ = client.ask("GET", "item?n=7")
    assert status == 200
    assert item == {"query": demo.queries[query], "title": demo.corpus.titles[doc], "text": demo.corpus.texts[doc]}


def test_undo_withdraws_the_last_judgment_of_a_document(client: Client, tmp_path: Path) -> None:
    pair = client.page_data()["pairs"][0]
    body = {"query_id": pair[0], "doc_id": pair[1]}
    assert client.ask("POST", "undo", body)[0] == 409
    client.judge(pair, 1)
    assert client.ask("POST", "undo", body)[0] == 200
    assert client.ask("POST", "undo", body)[0] == 409
    assert [line.get("undo") for line in lines(tmp_path / "j.jsonl")] == [None, True]
    assert len(Judgments.read(tmp_path / "j.jsonl")) == 0


def test_the_page_tells_nothing_of_runs_ranks_and_other_judges(
    demo: sy.Dataset, demo_pool: Pool, tmp_path: Path
) -> None:
    path = tmp_path / "j.jsonl"
    query, doc = demo_pool.frame.select("query_id", "doc_id").row(0)
    Judgments.append(Judgments.read(_empty(path)), query, doc, 3, "bob", note="bob's opinion")
    with serving(Session(assigned(demo_pool, "ann"), demo, path, "ann", DEFAULT)) as client:
        _, page, _ = client.ask("GET", "")
        assert client.page_data()["log"] == []
        assert client.page_data().keys() == {
            "judge", "dataset", "guidelines", "pairs", "log", "file", "form", "then",
        }  # fmt: skip
    assert RUN_NAME not in page
    assert "bob" not in page


def _empty(path: Path) -> Path:
    path.touch()
    return path


def test_documents_come_in_an_order_of_each_judge(demo_pool: Pool) -> None:
    given = list(demo_pool.frame.select("query_id", "doc_id").iter_rows())
    ann, bob = assigned(demo_pool, "ann"), assigned(demo_pool, "bob")
    assert sorted(ann) == sorted(bob) == sorted(given)
    assert ann != bob
    assert given not in (ann, bob)
    assert ann == assigned(demo_pool, "ann")
    assert ann != assigned(demo_pool, "ann", seed=1)
    changes = sum(one[0] != other[0] for one, other in pairwise(ann))
    assert changes == 11, "the documents of one query come together"


# Several judges


def test_the_overlap_goes_to_everyone_and_the_rest_to_one(demo_pool: Pool) -> None:
    names = ["ann", "bob", "cy"]
    parts = {name: set(assigned(demo_pool, name, names, 0.2)) for name in names}
    everything = set(demo_pool.frame.select("query_id", "doc_id").iter_rows())
    shared = set.intersection(*parts.values())
    assert len(shared) == 12
    assert shared == shared_pairs(list(everything), 0.2)
    assert set.union(*parts.values()) == everything
    assert sum(map(len, parts.values())) == 48 + 3 * 12
    assert all(len(part) > 12 + 6 for part in parts.values())


def test_a_judge_who_joins_moves_nothing_between_the_others(demo_pool: Pool) -> None:
    pairs = list(demo_pool.frame.select("query_id", "doc_id").iter_rows())
    moved = {
        (before, after)
        for pair in pairs
        if (before := judge_of(pair, ["ann", "bob"])) != (after := judge_of(pair, ["bob", "cy", "ann"]))
    }
    assert moved == {("ann", "cy"), ("bob", "cy")}


@pytest.mark.parametrize(
    ("judges", "overlap", "said"),
    [
        (["ann", "bob"], 0.1, "Did you mean ann"),
        (["anne", "anne"], 0.1, "different names"),
        (["anne"], 1.5, "from 0 to 1"),
    ],
)
def test_wrong_judges_are_refused(demo_pool: Pool, judges: list[str], overlap: float, said: str) -> None:
    with pytest.raises(InputError, match=said):
        assigned(demo_pool, "anne", judges, overlap)


def test_two_judges_write_to_one_file(demo: sy.Dataset, demo_pool: Pool, tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    sessions = [
        Session(assigned(demo_pool, name, ["ann", "bob"], 0.25), demo, path, name, DEFAULT) for name in ("ann", "bob")
    ]

    def judge_everything(session: Session) -> None:
        with serving(session) as client:
            for place, pair in enumerate(client.page_data()["pairs"]):
                client.judge(pair, place % 4)

    threads = [threading.Thread(target=judge_everything, args=(session,)) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = Judgments.read(path)
    assert found.notes == ()
    assert sorted(found.judges) == ["ann", "bob"]
    assert len(found) == 60 + 15
    both = found.frame.group_by("query_id", "doc_id").len()
    assert both.filter(both["len"] == 2).height == 15
    assert all(session.summary().endswith("none left.") for session in sessions)


# What it refuses


def test_another_token_host_or_origin_is_forbidden(client: Client, tmp_path: Path) -> None:
    pair = client.page_data()["pairs"][0]
    body = {"query_id": pair[0], "doc_id": pair[1], "grade": 1}
    here = f"127.0.0.1:{client.port}"
    refused: list[dict[str, Any]] = [
        {"token": "x" * 32},
        {"token": ""},
        {"token": client.token[:-1]},
        {"token": "%E2%82%AC"},
        {"Host": "evil.example"},
        {"Host": f"evil.example:{client.port}"},
        {"Host": "127.0.0.1"},
        {"Host": f"127.0.0.1:{client.port}.evil.example"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": f"https://{here}"},
        {"Origin": f"http://127.0.0.1:{client.port + 1}"},
    ]
    for headers in refused:
        assert client.ask("POST", "judgment", body, **headers)[0] == 403, headers
        assert client.ask("GET", "", **headers)[0] == 403, headers
        assert client.ask("GET", "item?n=0", **headers)[0] == 403, headers
    assert not (tmp_path / "j.jsonl").exists()
    allowed = {"Host": f"localhost:{client.port}", "Origin": f"http://localhost:{client.port}"}
    assert client.ask("POST", "judgment", body, **allowed)[0] == 200


def test_the_policy_allows_only_the_page_itself(client: Client) -> None:
    for path in ("", "item?n=0", "nothing"):
        _, _, headers = client.ask("GET", path)
        for name, value in HEADERS.items():
            assert headers[name] == value
    policy = HEADERS["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    _, page, _ = client.ask("GET", "")
    assert re.findall(r"(?:src|href)=\"?([^\s\">]+)", page) == ["data:,"]


WRONG: dict[str, tuple[int, Any]] = {
    "not JSON": (400, b"grade=1"),
    "not UTF-8": (400, b'{"query_id": "\xff"}'),
    "not an object": (400, [1]),
    "nested deeply": (400, b"[" * 100_000),
    "a huge number": (400, b'{"grade": ' + b"9" * 10_000 + b"}"),
    "nothing": (400, {}),
    "a document of another pool": (404, {"query_id": "fact-01", "doc_id": "../../etc/passwd", "grade": 1}),
    "half a surrogate pair": (404, b'{"query_id": "\\ud800", "doc_id": "a", "grade": 1}'),
    "an id that is no text": (400, {"query_id": ["fact-01"], "doc_id": {}, "grade": 1}),
    "no grade": (400, {}),
    "a grade out of the scale": (400, {"grade": 4}),
    "a grade that is no number": (400, {"grade": "1"}),
    "a grade that is a list": (400, {"grade": [1]}),
    "true": (400, {"grade": True}),
    "not a number": (400, {"grade": float("nan")}),
    "negative seconds": (400, {"grade": 1, "seconds": -1}),
    "endless seconds": (400, {"grade": 1, "seconds": float("inf")}),
    "seconds that no float holds": (400, {"grade": 1, "seconds": 10**400}),
    "a note that is no text": (400, {"grade": 1, "note": {"a": 1}}),
    "a long note": (400, {"grade": 1, "note": "x" * 10_001}),
    "a note with half a surrogate pair": (400, {"grade": 1, "note": "\ud800"}),
    "spans that are no list": (400, {"grade": 1, "spans": {"start": 1}}),
    "a span without an end": (400, {"grade": 1, "spans": [{"start": 1}]}),
    "a span beyond the text": (400, {"grade": 1, "spans": [{"start": 1, "end": 10**9}]}),
    "a reversed span": (400, {"grade": 1, "spans": [{"start": 5, "end": 2}]}),
    "a span of fractions": (400, {"grade": 1, "spans": [{"start": 0.5, "end": 2.5}]}),
    "too many spans": (400, {"grade": 1, "spans": [{"start": 0, "end": 1}] * 201}),
    "a body that is too large": (413, b'{"note": "' + b"x" * LARGEST_BODY + b'"}'),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_malformed_judgment_is_refused(client: Client, tmp_path: Path, case: str, caplog: Any) -> None:
    status, body = WRONG[case]
    if isinstance(body, dict) and case != "nothing":
        query, doc = client.page_data()["pairs"][0]
        body = {"query_id": query, "doc_id": doc, **body}
    found, answer, _ = client.ask("POST", "judgment", body)
    assert (found, list(answer)) == (status, ["error"])
    assert not (tmp_path / "j.jsonl").exists()
    assert caplog.records == []


def test_malformed_requests_are_refused(client: Client, caplog: Any) -> None:
    assert client.ask("GET", "nothing")[0] == 404
    assert client.ask("POST", "nothing", {})[0] == 404
    assert client.ask("POST", "judgment", b"{}", Content_Type="text/plain")[0] == 415
    assert client.ask("POST", "judgment", b"{}", Transfer_Encoding="chunked")[0] == 411
    for number in ("", "-1", "1e9", "60", "9" * 30, "0&n=1", "²", "%00"):
        path = f"item?n={number}" if number != "²" else "item?n=%C2%B2"
        assert client.ask("GET", path)[0] in (400, 404), number
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert client.ask(method, "")[0] == 405, method
    raw = {
        b"nonsense\r\n\r\n": b"400",
        b"GET / HTTP/9.9\r\n\r\n": b"400",
        b"GET / HTTP/1.1\r\n\r\n": b"403",
        b"GET http://[ HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % client.port: b"400",
        b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n": b"414",
        b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000 + b"\r\n\r\n": b"431",
        b"POST /%s/judgment HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
        b"Content-Type: application/json\r\nContent-Length: -5\r\n\r\n" % (client.token.encode(), client.port): b"411",
    }
    for request, status in raw.items():
        with socket.create_connection(("127.0.0.1", client.port), timeout=20) as connection:
            connection.sendall(request)
            assert status in connection.recv(100), request[:60]
    assert client.ask("GET", "")[0] == 200
    assert caplog.records == []


def test_it_listens_on_this_computer_only(client: Client, demo: sy.Dataset, tmp_path: Path) -> None:
    session = Session([], demo, tmp_path / "j.jsonl", "ann", DEFAULT)
    with JudgingServer(session) as server:
        assert server.socket.getsockname()[0] == "127.0.0.1"
    with pytest.raises(InputError, match="cannot be used"):
        JudgingServer(session, client.port)
    with pytest.raises(InputError, match="cannot be used"):
        JudgingServer(session, 70_000)


def test_what_cannot_be_written_is_not_saved(client: Client, tmp_path: Path) -> None:
    pair = client.page_data()["pairs"][0]
    (tmp_path / "j.jsonl").mkdir()
    status, answer, _ = client.ask("POST", "judgment", {"query_id": pair[0], "doc_id": pair[1], "grade": 1})
    assert status == 500
    assert answer["error"].startswith("not saved")
    assert client.page_data()["log"] == []


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_is_removed_while_serving_is_noticed(client: Client, tmp_path: Path, replaced: bool) -> None:
    pairs, file = client.page_data()["pairs"], tmp_path / "j.jsonl"
    client.judge(pairs[0], 1)
    kept = file.rename(tmp_path / "kept.jsonl")
    if replaced:
        file.write_bytes(b"")
    given = {"query_id": pairs[1][0], "doc_id": pairs[1][1], "grade": 2}
    status, answer, _ = client.ask("POST", "judgment", given)
    assert status == 500
    assert "was removed or replaced" in answer["error"]
    assert not file.exists() or file.read_bytes() == b""
    kept.replace(file)
    client.judge(pairs[1], 2)
    assert [line.grade for line in Judgments.read(file).current] == [1, 2]


def test_slow_headers_end_after_a_total(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte now and then does not keep a thread of the server for ever."""
    monkeypatch.setattr("steelyard.judging.server.PATIENCE", 0.4)
    monkeypatch.setattr("steelyard.judging.server._Handler.timeout", 0.4, raising=False)
    with socket.create_connection(("127.0.0.1", client.port), timeout=20) as connection:
        connection.sendall(b"GET / HTTP/1.0\r\nX-Slow: ")
        connection.settimeout(0.1)
        for _ in range(60):
            try:
                connection.sendall(b"a")
                if connection.recv(1) == b"":
                    break
            except TimeoutError:
                continue
            except ConnectionError:
                break
        else:
            pytest.fail("the server still waits for the headers")


def test_grades_outside_the_scale_are_refused_at_the_start(demo: sy.Dataset, demo_pool: Pool, tmp_path: Path) -> None:
    file = tmp_path / "j.jsonl"
    file.touch()
    labels, (query, doc) = Judgments.read(file), demo_pool.frame.select("query_id", "doc_id").row(0)
    labels.append(query, doc, 7, "ann")
    with pytest.raises(InputError, match="1 judgment of ann has a grade outside the scale, the first is 7"):
        Session(assigned(demo_pool, "ann"), demo, file, "ann", DEFAULT)
    Session(assigned(demo_pool, "bob"), demo, file, "bob", DEFAULT)


def test_wrong_input_is_refused_at_the_start(demo: sy.Dataset, demo_pool: Pool, tmp_path: Path) -> None:
    pairs = assigned(demo_pool, "ann")
    with pytest.raises(InputError, match="document 'nowhere'"):
        Session([*pairs, ("fact-01", "nowhere")], demo, tmp_path / "j.jsonl", "ann", DEFAULT)
    with pytest.raises(InputError, match="query 'nobody'"):
        Session([("nobody", pairs[0][1])], demo, tmp_path / "j.jsonl", "ann", DEFAULT)
    with pytest.raises(InputError, match="folder that exists"):
        Session(pairs, demo, tmp_path / "no" / "j.jsonl", "ann", DEFAULT)
    with pytest.raises(InputError, match="expected a name"):
        Session(pairs, demo, tmp_path / "j.jsonl", " ", DEFAULT)
    with pytest.raises(InputError, match="decompress it first"):
        Session(pairs, demo, tmp_path / "j.jsonl.gz", "ann", DEFAULT)
    (tmp_path / "qrels.txt").write_text("q1 0 d1 1\n")
    with pytest.raises(InputError, match="wrong line"):
        Session(pairs, demo, tmp_path / "qrels.txt", "ann", DEFAULT)


# Kills and torn files


def test_a_torn_file_is_continued(demo: sy.Dataset, demo_pool: Pool, tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    pairs = assigned(demo_pool, "ann")
    with serving(Session(pairs, demo, path, "ann", DEFAULT)) as client:
        for pair in pairs[:3]:
            client.judge(list(pair), 1)
    path.write_bytes(path.read_bytes()[:-20])
    session = Session(pairs, demo, path, "ann", DEFAULT)
    assert "line 3 ignored" in str(session.judgments.notes[0])
    with serving(session) as client:
        assert len(client.page_data()["log"]) == 2
        client.judge(list(pairs[2]), 3)
    assert [line.grade for line in Judgments.read(path).current] == [1, 1, 3]


def test_the_token_is_not_in_the_arguments_of_the_browser(monkeypatch: pytest.MonkeyPatch, files: list[str]) -> None:
    """The browser opens a file that only the user can read; it is gone when the server has stopped."""
    import webbrowser

    opened: list[tuple[str, str, int]] = []
    stop = threading.Event()

    def browser(url: str) -> bool:
        path = Path(url.removeprefix("file://"))
        opened.append((url, path.read_text(), path.stat().st_mode & 0o777) if path.is_file() else (url, "", 0))
        stop.set()
        return True

    def serve(*_: Any, ready: Any, **__: Any) -> Any:
        with JudgingServer(session) as server:
            addresses.append(server.address)
            ready(server)
            assert stop.wait(20)
        return session

    addresses: list[str] = []
    session: Any = type("Session", (), {"summary": lambda _: "", "judgments": Judgments()})()
    monkeypatch.setattr(webbrowser, "open", browser)
    monkeypatch.setattr("steelyard.judging.server.serve", serve)
    assert run(["judge", *files[:-2]]) == 0
    ((url, page, mode),) = opened
    token = addresses[0].rstrip("/").rpartition("/")[2]
    assert token not in url
    assert addresses[0] in page
    assert mode == 0o600
    assert not Path(url.removeprefix("file://")).exists()


@pytest.fixture
def files(demo_pool: Pool, tmp_path: Path) -> list[str]:
    demo_pool.write(tmp_path / "pool.jsonl")
    return [str(tmp_path / "pool.jsonl"), "--dataset", "demo", "-o", str(tmp_path / "j.jsonl"), "--set", "open=no"]


@contextmanager
def started(files: list[str], *options: str) -> Iterator[tuple[subprocess.Popen[str], Client]]:
    """`steelyard judge` in a process of its own."""
    command = [sys.executable, "-m", "steelyard", "judge", *files, *options]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(["src", os.environ.get("PYTHONPATH", "")])}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        said = ""
        for line in process.stderr:
            said += line
            if "Ctrl-C" in line:
                break
        address = re.search(r"http://\S+", said)
        assert address is not None, said
        try:
            yield process, Client(address[0])
        finally:
            process.kill()


@pytest.mark.slow
def test_kill_9_loses_nothing_and_judging_continues(files: list[str], tmp_path: Path) -> None:
    given = []
    for attempt in range(3):
        with started(files, "--judge", "ann") as (process, client):
            data = client.page_data()
            assert [line["doc_id"] for line in data["log"]] == given
            for pair in data["pairs"][len(given) : len(given) + 4 + attempt]:
                client.judge(pair, attempt)
                given.append(pair[1])
            process.send_signal(signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL
    assert [line["doc_id"] for line in lines(tmp_path / "j.jsonl")] == given
    assert len(given) == 15


def test_ctrl_c_ends_with_a_summary(files: list[str]) -> None:
    with started(files, "--judge", "ann") as (process, client):
        client.judge(client.page_data()["pairs"][0], 1)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
        assert process.returncode == 0
        assert "ann: 1 of 60 documents judged, 59 left." in said
        assert "Traceback" not in said


# The command line


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--set", "split=ann,bob"], "--judge says which"),
        (["--set", "split=ann,bob", "--judge", "an"], "Did you mean ann"),
        (["--set", "shared=10 percent"], "as in 10% or 0.1"),
        (["--set", "shared=150%"], "as in 10% or 0.1"),
        (["--set", "guidelines=no-file.yaml"], "no-file.yaml"),
    ],
)
def test_wrong_options_are_explained(files: list[str], options: list[str], said: str, capsys: Any) -> None:
    assert run(["judge", *files, *options]) == 2
    assert said in capsys.readouterr().err


def test_html_writes_one_file_for_one_judge(files: list[str], tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "bob.html"
    options = ["--set", "split=ann,bob", "--judge", "bob", "--set", "shared=50%", "--html", str(path)]
    assert run(["judge", *files, *options]) == 0
    assert str(path) in capsys.readouterr().err
    page = path.read_text("utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data = json.loads(found[1])
    assert data["judge"] == "bob"
    assert 30 < len(data["pairs"]) < 60
    assert RUN_NAME not in page
    assert "connect-src" not in page
    assert not (tmp_path / "j.jsonl").exists()


def test_a_page_for_several_judges_needs_a_name(demo: sy.Dataset, demo_pool: Pool, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="name the judge"):
        html(demo_pool, demo, tmp_path / "page.html", judges=["ann", "bob"])


@pytest.mark.parametrize("judges", [None, ["ann", "\ud800"]])
def test_a_name_that_no_file_can_hold_is_refused(
    demo: sy.Dataset, demo_pool: Pool, tmp_path: Path, judges: list[str] | None
) -> None:
    with pytest.raises(InputError, match="expected a text in UTF-8"):
        html(demo_pool, demo, tmp_path / "page.html", "\ud800", judges=judges)
    with pytest.raises(InputError, match="expected a name"):
        Session(assigned(demo_pool, "\ud800", judges), demo, tmp_path / "j.jsonl", "\ud800", DEFAULT)


# Guidelines


def test_guidelines_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "scale.yaml"
    path.write_text(
        "title: Usefulness\ntext: Is it useful?\ngrades:\n  1: {label: 'Yes', key: y, description: It is.}\n  0: 'No'\n"
    )
    found = Guidelines.read(path)
    assert (found.title, found.text) == ("Usefulness", "Is it useful?")
    assert [(each.grade, each.key, each.label) for each in found.grades] == [(0, "0", "No"), (1, "y", "Yes")]
    assert found.values == {0, 1}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("grades: {0: No}", "at least two"),
        ("grades: {0: a, 1: b, 12: c}", "one character"),
        ("grades: {0: {label: a, key: s}, 1: b}", "is for skip"),
        ("grades: {0: {label: a, key: x}, 1: {label: b, key: X}}", "same key 'x'"),
        ("grades: {0: {lable: a}, 1: b}", "Did you mean label"),
        ("grades: {zero: a, 1: b}", "expected a number"),
        ("grades: {0: [a], 1: b}", "expected a label"),
        ("grade: {0: a, 1: b}", "Did you mean grades"),
        ("[1, 2]", "expected a mapping"),
        ("", "expected a mapping"),
        ("grades: {0: a", "line 1: not YAML"),
        ("title: [a]\ngrades: {0: a, 1: b}", "title: expected text"),
    ],
)
def test_wrong_guidelines_are_explained(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "scale.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=re.escape(said)):
        Guidelines.read(path)


# Spans as evidence


def marked(grade: float | None, *spans: tuple[int, int], judge: str = "ann", doc: str = "d") -> dict[str, Any]:
    found = [{"start": start, "end": end, "content": "x" * (end - start)} for start, end in spans]
    return {"query_id": "q", "doc_id": doc, "grade": grade, "judge": judge, "spans": found}


def test_marked_spans_are_targets() -> None:
    evidence = evidence_of(
        [
            marked(2, (0, 10), (20, 30)),
            marked(3, (5, 12), judge="bob"),
            marked(0, (0, 4), doc="no"),
            marked(None, (0, 4), doc="unclear"),
            {"query_id": "other", "doc_id": "d", "grade": 3, "judge": "ann"},
        ]
    )
    assert repr(evidence) == "Evidence: 2 queries, 3 targets (3 spans, 1 document)"
    assert "2 marked spans" in str(evidence.notes[0])
    assert "1 document has a grade above 0 and no marked text: it counts as a whole" in str(evidence.notes[1])
    chunks = [
        {"chunk_id": f"c{start}", "doc_id": "d", "start": start, "end": start + 10, "text": "x" * 10}
        for start in (0, 10, 20)
    ]
    found = evidence.judge(chunks).frame
    assert dict(found.select("doc_id", "grade").iter_rows()).keys() == {"c0", "c10", "c20"}


def test_marks_in_chunks_are_spans_of_the_document_that_these_were_cut_from() -> None:
    text = "The balance weighs gold. A boat floats."
    source = {"c1": {"doc_id": "book", "start": 0, "end": 24}, "c2": {"doc_id": "book", "start": 12, "end": 39}}
    lines = [
        {**marked(2, (12, 23), doc="c1"), "source": source["c1"]},
        {**marked(2, (0, 11), doc="c2", judge="bob"), "source": source["c2"]},
        {"query_id": "q2", "doc_id": "c2", "grade": 3, "judge": "ann", "source": source["c2"]},
    ]
    evidence = evidence_of(lines)
    assert repr(evidence) == "Evidence: 2 queries, 2 targets (3 spans)"
    assert evidence.spans.rows() == [("q", 1, "book", 12, 23)] * 2 + [("q2", 1, "book", 12, 39)]
    cut = [(0, 18), (18, 39)]
    chunks = [{"chunk_id": f"n{a}", "doc_id": "book", "start": a, "end": b, "text": text[a:b]} for a, b in cut]
    found = evidence.judge(chunks, overlap="majority").frame
    assert found.select("query_id", "doc_id").rows() == [("q", "n0"), ("q2", "n18")]


def test_a_judgment_of_a_chunk_states_where_it_was_cut_from(tmp_path: Path) -> None:
    records = {"c2": {"text": "weighs gold. A boat", "doc_id": "book", "start": 12, "end": 31}, "d": {"text": "plain"}}
    dataset = sy.Dataset.of(records, {"q": "what"}, {})
    session = Session([("q", "c2"), ("q", "d")], dataset, tmp_path / "judgments.jsonl", "ann", DEFAULT)
    line = session.add({"query_id": "q", "doc_id": "c2", "grade": 2, "spans": [{"start": 0, "end": 11}]})
    assert line.more["source"] == {"doc_id": "book", "start": 12, "end": 31}
    assert "source" not in session.add({"query_id": "q", "doc_id": "d", "grade": 2}).more
    assert evidence_of(tmp_path / "judgments.jsonl").spans.rows() == [("q", 1, "book", 12, 23)]


def test_spans_of_a_grade_below_0_are_distractors() -> None:
    assert repr(evidence_of([marked(-1, (0, 4))])) == "Evidence: 1 query, 0 targets, 1 distractor, 1 null query"


@pytest.mark.parametrize("spans", ["text", [1], [{"start": "1", "end": 2}], [{"start": 1}]])
def test_wrong_spans_are_explained(spans: Any) -> None:
    with pytest.raises(InputError, match="expected a list of objects with start and end"):
        evidence_of([{"query_id": "q", "doc_id": "d", "grade": 1, "judge": "ann", "spans": spans}])
