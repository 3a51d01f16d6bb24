"""The judging page on a server of this computer: every judgment is in the judgments file before it is answered.

The server listens on 127.0.0.1 only, and answers only requests that carry the random token of its address. A request
for another host (DNS rebinding) or from another origin (a page elsewhere) is refused. What it answers, below `/TOKEN`:

- GET `/`: the page, with this judge's judgments so far.
- GET `/item?n=N`: query, title and text of the judge's document number N.
- POST `/judgment`: query_id, doc_id, grade (null: cannot tell), and seconds, note, spans where given.
- POST `/undo`: query_id, doc_id; withdraws the judge's last judgment of this pair.

Judgments of other judges are never sent.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import logging
import os
import secrets
import signal
import socketserver
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedReader
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

from steelyard.checks import is_number
from steelyard.datasets import Dataset
from steelyard.errors import InputError, SteelyardError
from steelyard.io.judgments import open_judgments
from steelyard.judging.guidelines import Guidelines
from steelyard.judging.page import page_data, page_text, policy
from steelyard.judging.pool import DEFAULT_OVERLAP, Pair, Pool, assigned, check_texts
from steelyard.judging.spans import source_of
from steelyard.judgments import ASKED, TEXT, Judgment, Judgments, asked, text_hash
from steelyard.safe_text import has_lone_surrogate
from steelyard.web import TimedFile
from steelyard.wording import counted, worded

HOST = "127.0.0.1"
LARGEST_BODY = 256_000
LONGEST_NOTE = 10_000
MOST_SPANS = 200
LONGEST_JUDGMENT = 86_400  # Seconds of one judgment at most; what is longer was not spent on it.
PATIENCE = 30  # Seconds that a request may take to arrive, however slowly its bytes come.

HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": f"{policy('server')}; frame-ancestors 'none'",
}

_WRONG_REQUESTS = {
    HTTPStatus.NOT_IMPLEMENTED: HTTPStatus.METHOD_NOT_ALLOWED,
    HTTPStatus.HTTP_VERSION_NOT_SUPPORTED: HTTPStatus.BAD_REQUEST,
}

_log = logging.getLogger(__name__)


def serve(
    pool: Pool,
    dataset: Dataset,
    output: str | Path,
    judge: str,
    *,
    judges: Sequence[str] | None = None,
    overlap: float = DEFAULT_OVERLAP,
    guidelines: Any = None,
    port: int = 0,
    seed: int = 0,
    then: str = "",
    ready: Callable[[JudgingServer], None] | None = None,
) -> Session:
    """Serve the judging page until interrupted (Ctrl-C), and return the session.

    pool: the documents to judge.
    dataset: the texts of queries and documents.
    output: the judgments file: appended to, made where it does not exist. Judging continues where it stopped.
    judge: the judge's name.
    judges: the names of all judges, to split the pool among them; without them every judge gets the whole pool. See
    `pool.assigned`.
    overlap: the share of the pool that all `judges` get.
    guidelines: the scale and its description; see `guidelines`.
    port: 0 is any free port.
    seed: for the assignment and the order of documents.
    then: the command that follows, which the page shows at its end.
    ready: called with the server once it listens; `address` is where the page is.
    """
    pairs = assigned(pool, judge, judges, overlap, seed)
    session = Session(pairs, dataset, output, judge, Guidelines.of(guidelines), then)
    serve_session(session, port, ready)
    return session


def serve_session(session: Session, port: int = 0, ready: Callable[[JudgingServer], None] | None = None) -> None:
    """Serve the page of a session until interrupted (Ctrl-C); see `serve`."""
    with JudgingServer(session, port) as server, contextlib.ExitStack() as at_end:

        def stop(*_: object) -> None:
            threading.Thread(target=server.shutdown, daemon=True).start()

        # An exception on Ctrl-C could be raised, and lost, in whatever the main thread runs just then.
        if threading.current_thread() is threading.main_thread():
            at_end.callback(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, stop))
        if ready is not None:
            ready(server)
        server.serve_forever(poll_interval=0.2)


class RequestError(Exception):
    """A request that is refused: what was wrong, and a status."""

    def __init__(self, message: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> None:
        super().__init__(message)
        self.status = status


class Session:
    """One judge's work on a pool: the documents in the judge's order, and the judgments file."""

    edit = False  # Whether the note is an edited query.

    def __init__(
        self,
        pairs: Sequence[Pair],
        dataset: Dataset,
        output: str | Path,
        judge: str,
        guidelines: Guidelines,
        then: str = "",
    ) -> None:
        if not judge.strip() or not judge.isprintable():
            raise InputError(f"judge is {judge!r}; expected a name.")
        check_texts(pairs, dataset)
        self.pairs, self.dataset, self.judge = list(pairs), dataset, judge
        self.guidelines, self.then, path = guidelines, then, Path(output)
        if path.is_dir() or not path.parent.is_dir():
            raise InputError(f"{path} cannot be written; name a file in a folder that exists.")
        self.judgments = open_judgments(path)
        self._places = set(self.pairs)
        grades = guidelines.values
        wrong = [line for line in self._own_lines() if line.grade is not None and line.grade not in grades]
        if wrong:
            raise InputError(
                f"{counted(len(wrong), 'judgment')} of {judge} {worded(len(wrong), 'has a grade', 'have grades')} "
                f"outside the scale, the first is {wrong[0].grade:g} for {wrong[0].doc_id!r} of query "
                f"{wrong[0].query_id!r}. Expected one of {', '.join(f'{grade:g}' for grade in sorted(grades))}: use "
                "the guidelines that these judgments were made with, or write to another file."
            )
        self._lock = threading.Lock()
        self._identity = _identity(path)

    def page(self) -> str:
        """The page with this judge's judgments so far."""
        with self._lock:
            log = [line.to_dict() for line in self._own_lines()]
        data = page_data(self.pairs, self.dataset, self.judge, self.guidelines)
        data |= {"log": log, "file": str(self.judgments.path), "then": self.then}
        return page_text(data | ({"edit": True} if self.edit else {}), "server")

    def item(self, number: int) -> dict[str, Any]:
        """Query, title and text of a document by its number in the judge's order, from 0."""
        query, doc = self.pairs[number]
        corpus = self.dataset.corpus
        return {"query": self.dataset.queries[query], "title": corpus.titles[doc], "text": corpus.texts[doc]}

    def add(self, given: Mapping[str, Any]) -> Judgment:
        """Check a judgment and append it to the file."""
        query, doc = self._pair(given)
        grade = given.get("grade", "")
        if grade is not None and (type(grade) not in (int, float) or grade not in self.guidelines.values):
            raise RequestError(f"grade is not one of {sorted(self.guidelines.values)} or null")
        seconds, note = given.get("seconds"), given.get("note")
        if seconds is not None and (not is_number(seconds) or seconds < 0):
            raise RequestError("seconds is not a number above 0")
        if note is not None and (not isinstance(note, str) or len(note) > LONGEST_NOTE):
            raise RequestError(f"note is not a text of at most {LONGEST_NOTE:,} characters")
        if note is not None and has_lone_surrogate(note):
            raise RequestError("note holds half of a surrogate pair")
        more: dict[str, Any] = {
            "seconds": None if seconds is None else round(min(float(seconds), LONGEST_JUDGMENT), 1),
            "note": None if note is None else note.strip(),
            "spans": _spans(given.get("spans"), self.dataset.corpus.texts[doc]),
            "source": source_of(self.dataset.corpus.metadata[doc]),
            "relevant_from": self.guidelines.relevant_from,
            ASKED: asked(self.dataset.queries[query]),
            TEXT: text_hash(self.dataset.corpus.texts[doc]),
        }
        kept = {name: value for name, value in more.items() if value not in (None, "", [])}
        with self._file() as judgments:
            return judgments.append(query, doc, grade, self.judge, **kept)

    def undo(self, given: Mapping[str, Any]) -> Judgment:
        """Withdraw the judge's last judgment of a pair."""
        query, doc = self._pair(given)
        with self._file() as judgments:
            if not any((line.query_id, line.doc_id) == (query, doc) for line in self._current()):
                raise RequestError("there is no judgment of this document to withdraw", HTTPStatus.CONFLICT)
            return judgments.undo(query, doc, self.judge)

    @contextlib.contextmanager
    def _file(self) -> Iterator[Judgments]:
        """The judgments, to append one. A file that was removed or replaced meanwhile is an error, not a new file."""
        path = cast(Path, self.judgments.path)
        with self._lock:
            if self._identity is not None and _identity(path) != self._identity:
                problem = f"{path} was removed or replaced while judging;"
                raise InputError(f"{problem} put it back, or stop and start `steelyard judge` again.")
            yield self.judgments
            self._identity = _identity(path)

    @property
    def judged(self) -> int:
        """Documents of this judge that are judged, those without a grade included."""
        with self._lock:
            return len(self._current())

    def summary(self) -> str:
        """One sentence on what is judged and what is left."""
        done = self.judged
        left = f"{len(self.pairs) - done:,}" if done < len(self.pairs) else "none"
        return f"{self.judge}: {done:,} of {counted(len(self.pairs), 'document')} judged, {left} left."

    def _pair(self, given: Mapping[str, Any]) -> Pair:
        query, doc = given.get("query_id"), given.get("doc_id")
        if not isinstance(query, str) or not isinstance(doc, str):
            raise RequestError("query_id and doc_id are expected as text")
        if (query, doc) not in self._places:
            raise RequestError("this document is not among those to judge", HTTPStatus.NOT_FOUND)
        return query, doc

    def _own_lines(self) -> list[Judgment]:
        """The lines of this judge on documents of this session, as its questions are asked now."""
        lines = self.judgments.for_questions(self.dataset.queries).lines
        return [line for line in lines if line.judge == self.judge and (line.query_id, line.doc_id) in self._places]

    def _current(self) -> tuple[Judgment, ...]:
        return Judgments(self._own_lines()).current


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file it is, whatever its content; None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _spans(value: Any, text: str) -> list[dict[str, Any]]:
    """Spans as they are written: start and end in characters of the text, and what is written there."""
    if value is None:
        return []
    if not isinstance(value, list) or len(value) > MOST_SPANS:
        raise RequestError(f"spans is not a list of at most {MOST_SPANS}")
    spans = []
    for span in value:
        start, end = (span.get("start"), span.get("end")) if isinstance(span, dict) else (None, None)
        if type(start) is not int or type(end) is not int:
            raise RequestError("a span has start and end, whole numbers")
        if not 0 <= start < end <= len(text):
            raise RequestError(f"a span goes from {start} to {end}, and the text has {len(text)} characters")
        spans.append({"start": start, "end": end, "content": text[start:end]})
    return spans


class JudgingServer(ThreadingHTTPServer):
    """The server of one session, on 127.0.0.1 with a token in the address."""

    allow_reuse_address = os.name == "posix"
    daemon_threads = True

    def __init__(self, session: Session, port: int = 0) -> None:
        self.session = session
        self.token = secrets.token_urlsafe(24)
        try:
            super().__init__((HOST, port), _Handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"Port {port} cannot be used ({reason}); port 0 (--set port=0) is any free one.") from None
        self.hosts = {f"{name}:{self.server_port}" for name in (HOST, "localhost")}

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"

    def server_bind(self) -> None:
        """Bind without looking up the computer's name, which can take seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that breaks off is no event; anything else is logged."""
        _log.debug("a request ended early", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    server: JudgingServer
    server_version = "steelyard"
    sys_version = ""

    def setup(self) -> None:
        """A timeout of the socket alone is one for each read: a byte now and then would keep a thread for ever."""
        super().setup()
        self.rfile.close()
        self.rfile = BufferedReader(TimedFile(self.connection, time.monotonic() + PATIENCE))

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def _get(self) -> tuple[str, str]:
        path, query = self._path()
        if path == "/":
            return "text/html", self.server.session.page()
        if path != "/item":
            raise RequestError("there is nothing at this address", HTTPStatus.NOT_FOUND)
        (number, *more) = query.get("n", [""])
        if more or not (number.isascii() and number.isdigit() and len(number) < 10):
            raise RequestError("n is not the number of a document")
        if int(number) >= len(self.server.session.pairs):
            raise RequestError("there is no document of this number", HTTPStatus.NOT_FOUND)
        return "application/json", json.dumps(self.server.session.item(int(number)))

    def _post(self) -> tuple[str, str]:
        path, _ = self._path()
        session = self.server.session
        actions = {"/judgment": session.add, "/undo": session.undo}
        if path not in actions:
            raise RequestError("there is nothing at this address", HTTPStatus.NOT_FOUND)
        try:
            judgment = actions[path](self._body())
        except SteelyardError as error:
            raise RequestError(f"not saved: {error}", HTTPStatus.INTERNAL_SERVER_ERROR) from None
        return "application/json", json.dumps(judgment.to_dict())

    def _path(self) -> tuple[str, dict[str, list[str]]]:
        """The path below the token and the query; refuses other hosts, other origins and other tokens."""
        hosts = self.headers.get_all("Host") or []
        if len(hosts) != 1 or hosts[0].lower() not in self.server.hosts:
            raise RequestError("this host is not served", HTTPStatus.FORBIDDEN)
        for origin in self.headers.get_all("Origin") or []:
            if origin.lower() not in {f"http://{host}" for host in self.server.hosts}:
                raise RequestError("requests from other origins are refused", HTTPStatus.FORBIDDEN)
        try:
            parts = urlsplit(self.path)
            query = parse_qs(parts.query, keep_blank_values=True, max_num_fields=10)
        except ValueError:
            raise RequestError("the address is malformed") from None
        token, slash, rest = parts.path.lstrip("/").partition("/")
        same = hmac.compare_digest(token.encode("utf-8", "replace"), self.server.token.encode())
        if not same or not slash or parts.netloc:
            raise RequestError("open the address that steelyard judge printed", HTTPStatus.FORBIDDEN)
        return f"/{rest}", query

    def _body(self) -> dict[str, Any]:
        """The JSON object of a request."""
        if self.headers.get_content_type() != "application/json":
            raise RequestError("expected application/json", HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        length = self.headers.get("Content-Length", "")
        if self.headers.get("Transfer-Encoding") or not (length.isascii() and length.isdigit()):
            raise RequestError("expected a Content-Length", HTTPStatus.LENGTH_REQUIRED)
        if len(length) > 12 or int(length) > LARGEST_BODY:
            raise RequestError(f"expected at most {LARGEST_BODY:,} bytes", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        try:
            body = json.loads(self.rfile.read(int(length)).decode())
        except (ValueError, RecursionError):
            raise RequestError("the body is not JSON") from None
        if not isinstance(body, dict):
            raise RequestError("expected a JSON object")
        return body

    def _answer(self, action: Callable[[], tuple[str, str]]) -> None:
        try:
            kind, text = action()
        except RequestError as error:
            self.send_error(error.status, str(error))
        except TimeoutError:
            self.send_error(HTTPStatus.REQUEST_TIMEOUT, "the request was not sent to its end")
        except ConnectionError:
            pass
        except Exception:
            _log.exception("a request to the judging page failed")
            self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR, "something inside broke")
        else:
            self._send(HTTPStatus.OK, kind, text)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """An error as JSON. Methods and versions that http.server does not support are wrong requests (4xx)."""
        status = _WRONG_REQUESTS.get(HTTPStatus(code), HTTPStatus(code))
        self.close_connection = True
        self.request_version = "HTTP/1.0"
        self._send(status, "application/json", json.dumps({"error": message or status.phrase}))

    def _send(self, status: HTTPStatus, kind: str, text: str) -> None:
        content = text.encode("utf-8", "replace")
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged: their address holds the token."""
