"""A local chat-completions server that plays back known labels, with faults mixed in."""

from __future__ import annotations

import contextlib
import json
import random
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CHATTY = (
    '{{"grade": {grade}, "reason": "see above"}}',
    'Sure! Here is my judgment:\n```json\n{{"grade": {grade}}}\n```',
    "{grade}",
    'Let me think. The passage is short.\n{{"reason": "short", "grade": "{grade}"}}',
    "Grade: {grade}.",
)


FAULTS = ("429", "500", "truncated", "garbage", "no grade")
"""Ways to fail. There is also "timeout", no answer at all: the client hears of the others at once."""


class Playback:
    """`labels` maps the text of a prompt to its grade. `faults` is the share of requests that fail, `kinds` are how.

    Whether the first, second ... request of a prompt fails depends on `seed` alone, not on the order of the prompts.
    """

    def __init__(
        self, labels: Mapping[str, int], faults: float = 0.0, seed: int = 0, kinds: Sequence[str] = FAULTS
    ) -> None:
        self.labels, self.faults, self.kinds = labels, faults, kinds
        self.seed = seed
        self.lock = threading.Lock()
        self.requests = 0
        self.asked: Counter[str] = Counter()
        self.arrived = threading.Condition(self.lock)
        self.answered: Counter[str] = Counter()
        self.keys: set[str] = set()
        playback = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                playback.handle(self)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def __enter__(self) -> Playback:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def wait_for(self, requests: int) -> None:
        """Return when this many requests have arrived since the start."""
        with self.arrived:
            self.arrived.wait_for(lambda: self.requests >= requests)

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        body = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        prompt = body["messages"][-1]["content"]
        with self.lock:
            self.requests += 1
            self.arrived.notify_all()
            self.keys.add(request.headers.get("Authorization", ""))
            self.asked[prompt] += 1
            draws = random.Random(f"{self.seed} {self.asked[prompt]} {prompt}")
        fault = draws.choice(self.kinds) if draws.random() < self.faults else ""
        style = draws.choice(CHATTY)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.answer(request, prompt, fault, style)

    def answer(self, request: BaseHTTPRequestHandler, prompt: str, fault: str, style: str) -> None:
        if request.path != "/v1/chat/completions":
            return send(request, 404, b"no such path")
        if fault == "429":
            return send(request, 429, b"slow down", {"Retry-After": "0"})
        if fault == "500":
            return send(request, 500, request.headers.get("Authorization", "").encode())
        if fault == "timeout":
            # No answer until the client has given up and closed the connection.
            request.rfile.read(1)
            request.close_connection = True
            return None
        if fault == "garbage":
            return send(request, 200, b"{not json")
        grade = self.labels[prompt]
        text = "I am not able to say." if fault == "no grade" else style.format(grade=grade)
        made = {"choices": [{"message": {"content": text}}], "usage": {"total_tokens": 100}}
        content = json.dumps(made).encode()
        if fault == "truncated":
            request.send_response(200)
            request.send_header("Content-Length", str(len(content) + 50))
            request.end_headers()
            request.wfile.write(content[: len(content) // 2])
            request.close_connection = True
            return None
        send(request, 200, content)
        if fault != "no grade":
            with self.lock:
                self.answered[prompt] += 1
        return None


def send(
    request: BaseHTTPRequestHandler, status: int, content: bytes, headers: Mapping[str, str] | None = None
) -> None:
    request.send_response(status)
    for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
        request.send_header(name, value)
    request.end_headers()
    request.wfile.write(content)
