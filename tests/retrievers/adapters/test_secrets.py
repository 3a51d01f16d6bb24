"""Secrets are in no message and in no file: headers, variables, URLs, and settings that are named like one."""

from __future__ import annotations

import json

import pytest

import steelyard as sy
from steelyard.benchmark.cache import cache_key
from steelyard.benchmark.config import check_bench
from steelyard.errors import InputError
from steelyard.judging.client import ChatError, Endpoint
from steelyard.masking import from_environment, masked, masked_settings, remember, remember_settings
from steelyard.retrievers.adapters import Elasticsearch, Http, Python
from steelyard.retrievers.base import RetrieverError

SECRETS = ["hush-variable", "hush-literal", "hush-password", "hush-parameter", "hush-body", "hush-argument"]

MODULE = """
def search(query, k, api_key, region):
    if query.endswith("1"):
        raise ValueError(f"no access with {api_key} in {region}")
    return [f"d{query[-1]}"]
"""


@pytest.mark.parametrize("value", ["hush-literal\nX-Other: 1", "hush-literal\r", "hush-literal \u20ac", "hush\x00"])
def test_an_invalid_header_is_refused_without_its_value(value):
    with pytest.raises(RetrieverError) as error:
        Http("http://localhost/{query}", headers={"Authorization": value})
    assert "the value of the header Authorization has" in str(error.value)
    assert "hush" not in str(error.value)
    with pytest.raises(RetrieverError, match="cannot be the name of a header"):
        Http("http://localhost/{query}", headers={"X Y:": "1"})


def test_a_header_that_the_server_repeats_is_masked(service):
    service.responds((401, b'{"error": "wrong: Token hush-literal and hush-literal%21"}'))
    adapter = Http(f"{service.url}/{{query}}", headers={"Authorization": "Token hush-literal"})
    with pytest.raises(RetrieverError, match=r"returned 401 .*wrong: \*\*\*") as error:
        adapter.retrieve(["q"])
    assert "hush" not in str(error.value)


@pytest.mark.parametrize("status", [200, 401])
def test_a_secret_where_the_text_of_an_error_is_cut_is_masked(service, status):
    service.responds((status, b"x" * 190 + b"hush-literal-value and more"))
    adapter = Http(f"{service.url}/{{query}}", headers={"Authorization": "Token hush-literal-value"})
    with pytest.raises(RetrieverError, match="xxx") as error:
        adapter.retrieve(["q"])
    assert "hush" not in str(error.value)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("postgresql://me:hush@pass9@localhost/db", "failed to resolve host 'pass9@localhost'"),
        ("postgresql://me:hush/pass9@localhost/db", "postgresql://me:hush/pass9@localhost/db"),
        ("http://me:hush-pass9#1@localhost", "'me:hush-pass9' is not a valid host"),
        ('http://me:hush"pass9@localhost', 'http://me:hush"pass9@localhost'),
        ("http://me:hush%40pass9@localhost", "hush@pass9"),
        ("host=localhost user=me password=hush9", "invalid option in 'host=localhost user=me password=hush9'"),
        ("host=localhost password = 'hush pass9'", "password = 'hush pass9'"),
    ],
)
def test_passwords_that_a_url_had_to_quote_and_those_of_other_forms_are_masked(target, message):
    remember_settings({"target": target})
    for text in (masked_settings({"target": target})["target"], masked(message)):
        assert "hush" not in text
        assert "pass9" not in text
        assert "***" in text


@pytest.mark.parametrize(
    "text",
    ["http://localhost:8000/search?q={query}&of=me@example", "http://[::1]:8000/@x", "password=${PASSWORD}", "my pwd"],
)
def test_addresses_without_a_password_stay(text):
    remember_settings({"target": text})
    assert masked_settings({"target": text})["target"] == text


def test_a_password_in_a_variable_with_a_url_is_masked(monkeypatch):
    monkeypatch.setenv("MY_DATABASE", "postgresql://me:hush-in-url9@localhost/db")
    from_environment("${MY_DATABASE}", "pgvector")
    assert "hush" not in masked("no access for me with hush-in-url9")


def test_a_redirect_to_another_server_is_refused(service):
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
    from threading import Thread

    class Redirecting(BaseHTTPRequestHandler):
        def do_GET(self):
            here = self.path == "/here"
            self.send_response(302)
            self.send_header("Location", "/there" if here else f"{service.url}/?token=hush-parameter")
            self.end_headers()

        def log_message(self, *_):
            pass

    service.responds(["d1"])
    other = ThreadingHTTPServer(("127.0.0.1", 0), Redirecting)
    Thread(target=other.serve_forever, args=(0.01,)).start()
    try:
        for path in ("there", "here"):
            url = f"http://127.0.0.1:{other.server_port}/{{query}}"
            adapter = Http(url, headers={"Authorization": "Bearer hush-literal"})
            with pytest.raises(RetrieverError, match="redirects to another server, http://127.0.0.1") as error:
                adapter.retrieve([path])
            assert "hush" not in str(error.value)
    finally:
        other.shutdown()
        other.server_close()
    assert service.requests == []


def test_variables_are_read_in_arguments_body_headers_and_urls(service, monkeypatch):
    monkeypatch.setenv("STEELYARD_TEST_TOKEN", "hush-variable")
    service.responds(["d1"])
    adapter = Http(
        f"{service.url}/${{STEELYARD_TEST_TOKEN}}",
        body={"q": "{query}", "deep": [{"auth": "${STEELYARD_TEST_TOKEN}"}]},
        headers={"X-Token": "${STEELYARD_TEST_TOKEN}"},
    )
    adapter.retrieve(["say ${STEELYARD_TEST_TOKEN}"])
    sent = service.requests[0]
    assert sent["path"] == "/hush-variable"
    assert sent["body"] == {"q": "say ${STEELYARD_TEST_TOKEN}", "deep": [{"auth": "hush-variable"}]}
    assert "hush" not in str(adapter.settings())

    found = []
    own = Python(lambda query, k, key: found.append(key) or [], arguments={"key": "${STEELYARD_TEST_TOKEN}"})
    own.retrieve(["q"])
    assert found == ["hush-variable"]
    assert "hush" not in str(own.settings())
    with pytest.raises(RetrieverError, match="variable STEELYARD_NOT_SET"):
        Python(lambda query, k, key: [], arguments={"key": "${STEELYARD_NOT_SET}"})


def test_an_elasticsearch_client_gets_the_variables(monkeypatch):
    class Client:
        def search(self, index, body):
            self.body = body
            return {"hits": {"hits": []}}

    monkeypatch.setenv("STEELYARD_TEST_TENANT", "hush-variable")
    client = Client()
    adapter = Elasticsearch(
        client, index="i", query={"tenant": "${STEELYARD_TEST_TENANT}", "q": "{query}"}, version="1"
    )
    adapter.retrieve(["q"])
    assert client.body["tenant"] == "hush-variable"
    assert "hush" not in str(adapter.settings())


def test_no_file_and_no_output_of_a_bench_has_a_secret(service, tmp_path, monkeypatch, capsys):
    from steelyard.cli import run as command

    (tmp_path / "secret_engine.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("STEELYARD_TEST_TOKEN", "hush-variable")
    service.responds((401, b"no: hush-literal, hush-variable, hush-password, hush-parameter, hush-body"))
    host = service.url.removeprefix("http://")
    http = {
        "target": f"http://me:hush-password@{host}/?q={{query}}&api_key=hush-parameter&t=${{STEELYARD_TEST_TOKEN}}",
        "body": {"password": "hush-body", "credentials": ["hush-body"]},
        "headers": {"Authorization": "Bearer hush-literal"},
        "name": "http",
    }
    own = {
        "target": "secret_engine:search",
        "arguments": [
            {"api_key": "hush-argument", "region": "${STEELYARD_TEST_TOKEN}"},
            {"api_key": "hush-argument-2", "region": "eu"},
        ],
    }
    documents = {f"d{n}": f"text {n}" for n in range(4)}
    dataset = sy.Dataset.of(
        documents, {f"q{n}": f"question {n}" for n in range(4)}, {f"q{n}": {f"d{n}": 1} for n in range(4)}
    )
    result = sy.bench(
        {"dataset": dataset, "retrievers": [{"http": http}, {"python": own}], "measures": ["RR"]}, tmp_path / "out"
    )
    assert result.failed == {
        "http": 4,
        "secret_engine:search api_key=#1 region=${STEELYARD_TEST_TOKEN}": 1,
        "secret_engine:search api_key=#2 region=eu": 1,
    }
    assert result.rows[1].errors["q1"] == "ValueError: no access with *** in ${STEELYARD_TEST_TOKEN}"
    texts = [path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()]
    texts += [repr(result).encode(), str(result.rows).encode()]
    assert command(["report", str(tmp_path / "out"), "-o", str(tmp_path / "page.html")]) == 0
    texts += [(tmp_path / "page.html").read_bytes(), capsys.readouterr().err.encode()]
    for secret in SECRETS:
        assert not [text for text in texts if secret.encode() in text], secret
    settings = json.loads((tmp_path / "out" / "result.json").read_text())["runs"][0]["settings"]
    assert settings["body"] == {"password": "***", "credentials": "***"}


def test_a_mistake_in_a_bench_is_reported_without_secrets():
    settings = {"headers": {"Authorization": "hush-literal"}, "key": "hush"}
    with pytest.raises(InputError, match="valid list") as error:
        check_bench({"dataset": "demo", "retrievers": ["random"], "measures": settings})
    assert "'key': '***'" in str(error.value)
    with pytest.raises(InputError, match="unknown setting 'key'") as error:
        check_bench({"dataset": "demo", "retrievers": {"http": settings}})
    assert "hush" not in str(error.value)
    with pytest.raises(InputError) as error:
        check_bench({"dataset": "demo", "retrievers": [{"http": "htp://me:hush-password@host/?key=hush-parameter"}]})
    assert "hush" not in str(error.value)


def test_cached_answers_depend_on_variables_that_are_not_secrets(monkeypatch):
    def key(settings):
        return cache_key("c", "python", settings, 10)

    settings = {"arguments": {"index": "${STEELYARD_INDEX}", "api_key": "${STEELYARD_INDEX}", "to": "${A_TOKEN}"}}
    monkeypatch.setenv("STEELYARD_INDEX", "one")
    monkeypatch.setenv("A_TOKEN", "first")
    before = key(settings)
    monkeypatch.setenv("A_TOKEN", "second")
    assert key(settings) == before
    monkeypatch.setenv("STEELYARD_INDEX", "two")
    assert key(settings) != before
    assert key({"key": "title"}) != key({"key": "body"})


def test_a_model_judge_masks_its_key(service):
    service.responds((403, b"hush-literal-key is wrong"))
    with pytest.raises(ChatError, match=r"\*\*\* is wrong"):
        Endpoint(service.url, "m", "hush-literal-key").ask("q")


def test_short_secrets_do_not_spoil_other_words():
    remember("zq7j")
    assert masked("zq7j, zq7js") == "***, zq7js"
    remember("pass")
    assert masked("must not pass") == "must not pass"
    remember("abc")
    assert masked("abc") == "abc"
    assert masked_settings({"max_tokens": 3, "key": None}) == {"max_tokens": 3, "key": None}


def test_a_port_before_a_parameter_with_an_at_sign_is_no_password(monkeypatch):
    monkeypatch.setattr("steelyard.masking._known", {})
    remember_settings({"target": "http://localhost:8765?mail=me@x.org"})
    assert masked("port 8765 refused") == "port 8765 refused"
    remember_settings({"target": "http://user:8765?left-over@x.org"})
    assert masked("no host 'left-over'") == "no host '***'"
