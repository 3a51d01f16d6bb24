"""Answers over HTTP are limited in time, size and nesting, for retrievers and for model judges."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager

import pytest

import steelyard.web as web
from steelyard.judging.chat import ChatError, Endpoint
from steelyard.retrievers.adapters import Http
from steelyard.retrievers.base import RetrieverError


@contextmanager
def server(answer):
    """A server that sends parts of an answer, each after 0.05 s."""
    stop = threading.Event()
    listening = socket.create_server(("127.0.0.1", 0))
    listening.settimeout(0.02)

    def serve():
        while not stop.is_set():
            try:
                connection, _ = listening.accept()
            except TimeoutError:
                continue
            with connection:
                connection.recv(65536)
                try:
                    for part in answer():
                        connection.sendall(part)
                        if stop.wait(0.05):
                            break
                except OSError:
                    continue

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        stop.set()
        thread.join()
        listening.close()


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
def test_the_timeout_is_that_of_the_whole_request(answer):
    with server(answer) as url:
        start = time.monotonic()
        with pytest.raises(RetrieverError, match="did not respond within 0.3 s"):
            Http(f"{url}/{{query}}", timeout=0.3, retries=0).retrieve(["q"])
        assert time.monotonic() - start < 2


def test_the_timeout_holds_for_the_text_of_an_error():
    with server(slow_error) as url:
        start = time.monotonic()
        with pytest.raises(RetrieverError, match="returned 400 Bad"):
            Http(f"{url}/{{query}}", timeout=0.3, retries=0).retrieve(["q"])
        assert time.monotonic() - start < 2


def test_a_model_judge_has_the_same_limit():
    with server(slow_head) as url:
        start = time.monotonic()
        with pytest.raises(ChatError, match="timeout"):
            Endpoint(url, "m", deadline=0.1).ask("q", wait=lambda _: None)
        assert time.monotonic() - start < 8 * 1.0


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


def test_an_answer_that_is_nested_too_deeply_is_refused(service):
    service.responds(b"[" * 200_000 + b"]" * 200_000)
    with pytest.raises(RetrieverError, match="nested too deeply"):
        Http(f"{service.url}/{{query}}").retrieve(["q"])


def test_https_connections_have_the_same_limit():
    assert isinstance(web.connect("https://localhost", 1), web._TimedHTTPS)
