"""A small corpus, a JSON service, and other libraries if they are installed."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from needs import import_peer

CORPUS = {
    "d1": "the red fox runs through the forest",
    "d2": "a grey wolf sleeps in the den",
    "d3": "an owl hunts mice at night",
    "d4": "trains run late at night in winter",
}


@pytest.fixture
def corpus() -> dict[str, str]:
    return dict(CORPUS)


@pytest.fixture
def library() -> Callable[[str], ModuleType]:
    """Imports a library, or skips the test; warnings that the library raises at import are ignored."""
    return import_peer


class Service:
    """A local server with the responses of a test; it records its requests."""

    def __init__(self) -> None:
        self.responses: list[tuple[int, bytes]] = []
        self.requests: list[dict[str, Any]] = []
        self.release = threading.Event()
        self.hold = False
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length)
                service.requests.append(
                    {
                        "method": self.command,
                        "path": self.path,
                        "body": json.loads(body) if body else None,
                        "headers": dict(self.headers.items()),
                    }
                )
                if service.hold:
                    service.release.wait(20)
                status, answer = service.responses[min(len(service.requests), len(service.responses)) - 1]
                try:
                    self.send_response(status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("X-Elastic-Product", "Elasticsearch")
                    self.send_header("Content-Length", str(len(answer)))
                    self.end_headers()
                    self.wfile.write(answer)
                except ConnectionError:
                    self.close_connection = True

            def do_POST(self) -> None:
                self.do_GET()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def responds(self, *answers: Any, status: int = 200) -> None:
        """Respond with these in turn, then always with the last; a pair is (status, body)."""
        for answer in answers:
            code, content = answer if isinstance(answer, tuple) else (status, answer)
            self.responses.append((code, content if isinstance(content, bytes) else json.dumps(content).encode()))

    def close(self) -> None:
        self.release.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr("steelyard.retrievers.adapters.http._FIRST_PAUSE", 0.0)
    running = Service()
    yield running
    running.close()


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], Path]]:
    """Writes a user module into a folder; it is unloaded after the test."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)

    def write(name: str, source: str) -> Path:
        (tmp_path / f"{name}.py").write_text(source, "utf-8")
        return tmp_path

    yield write
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "") or "").startswith(str(tmp_path)):
            del sys.modules[name]
