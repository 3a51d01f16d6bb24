"""Answers over HTTP are limited in time, size and nesting, for retrievers and for model judges."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager, suppress
from types import SimpleNamespace

import pytest

import steelyard.web as web
from clocks import Clock
from steelyard.judging.client import ATTEMPTS, ChatError, Endpoint
from steelyard.retrievers.adapters import Http
from steelyard.retrievers.base import RetrieverError


@contextmanager
def server(answer):
    """A server that sends the parts of an answer."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            connection, _ = listening.accept()
            with connection, suppress(OSError):
                if not connection.recv(65536):
                    break
                for part in answer():
                    connection.sendall(part)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        # A connection that asks nothing ends the server.
        socket.create_connection(listening.getsockname()).close()
        thread.join()
        listening.close()


class SlowNetwork(Clock):
    """A clock by which every operation on a socket takes 10 s; the server sends its next part when one begins.

    Only the clock is slow: the limits of the test are so long that they never pass by themselves.
    """

    def __init__(self, monkeypatch):
        super().__init__(step=10.0)
        self.operations = threading.Semaphore(0)
        monkeypatch.setattr(web, "time", SimpleNamespace(monotonic=self))

    def __call__(self):
        self.operations.release()
        return super().__call__()

    def slowly(self, parts):
        """The parts, each after another operation of the client."""

        def answer():
            for part in parts():
                self.operations.acquire()
                yield part

        return answer


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def slow_body():
    yield HEAD + b"Content-Length: 1000\r\n\r\n"
    for _ in range(1000):
        yield b"["


def slow_head():
    yield HEAD
    for number in range(90):
        yield f"X-{number}: a\r\n".encode()


def slow_error():
    yield b"HTTP/1.1 400 Bad\r\nContent-Length: 1000\r\n\r\n"
    for _ in range(1000):
        yield b"e"


@pytest.mark.parametrize("answer", [slow_body, slow_head])
def test_the_timeout_is_that_of_the_whole_request(answer, monkeypatch):
    network = SlowNetwork(monkeypatch)
    with server(network.slowly(answer)) as url:
        with pytest.raises(RetrieverError, match="did not respond within 85 s"):
            Http(f"{url}/{{query}}", timeout=85, retries=0).retrieve(["q"])
        network.operations.release(2000)
    assert network.now == 100, "the start, and the first operation that would begin after the limit"


def test_the_timeout_holds_for_the_text_of_an_error(monkeypatch):
    network = SlowNetwork(monkeypatch)
    with server(network.slowly(slow_error)) as url:
        with pytest.raises(RetrieverError, match="returned 400 Bad"):
            Http(f"{url}/{{query}}", timeout=85, retries=0).retrieve(["q"])
        network.operations.release(2000)
    assert network.now == 100


def test_a_model_judge_has_the_same_limit(monkeypatch):
    network = SlowNetwork(monkeypatch)
    with server(network.slowly(slow_head)) as url:
        with pytest.raises(ChatError, match="timeout"):
            Endpoint(url, "m", timeout=85).ask("q", wait=lambda _: None)
        network.operations.release(2000)
    assert network.now == ATTEMPTS * 100


def test_an_answer_that_is_cut_off_is_an_error():
    part = HEAD + b'Content-Length: 100\r\n\r\n["d1"]'
    with server(lambda: iter([part])) as url, pytest.raises(RetrieverError, match="closed before the end"):
        Http(f"{url}/{{query}}", retries=0).retrieve(["q"])


def test_a_large_answer_is_refused(service, monkeypatch):
    monkeypatch.setattr("steelyard.retrievers.adapters.http.LARGEST_LIST", 1000)
    service.responds(["d" * 2000])
    with pytest.raises(RetrieverError, match="returned more than 1,000 bytes"):
        Http(f"{service.url}/{{query}}").retrieve(["q"])
    assert len(service.requests) == 1


def test_an_answer_that_is_nested_too_deeply_is_refused(service, monkeypatch):
    monkeypatch.setattr(web, "time", SimpleNamespace(monotonic=Clock()))
    service.responds(b"[" * 200_000 + b"]" * 200_000)
    with pytest.raises(RetrieverError, match="nested too deeply"):
        Http(f"{service.url}/{{query}}").retrieve(["q"])


def test_https_connections_have_the_same_limit():
    assert isinstance(web.connect("https://localhost", 1), web._TimedHTTPS)
