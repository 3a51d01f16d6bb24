"""The parts that adapters share, at their edges: labels, headers, URLs, templates, columns and filters."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

from steelyard.retrievers import RetrieverError
from steelyard.retrievers.adapters.base import Engine, found_rows
from steelyard.retrievers.adapters.documents import made_id
from steelyard.retrievers.adapters.http import checked_headers, filled, filled_text, host_of
from steelyard.retrievers.adapters.python import Python
from steelyard.retrievers.dense import describe_filter
from steelyard.retrievers.registry import from_spec, retriever_settings
from steelyard.retrievers.settings import setting
from steelyard.retrievers.targets import expanded, instantiated, label_of, package


class Table(Engine):
    """An engine with the settings of a table, and nothing behind them."""

    retriever = "table"
    id: str = setting(default="id")


@pytest.mark.parametrize("timeout", [None, 5.0])
def test_a_retriever_is_released_with_its_thread(timeout):
    before = set(threading.enumerate())
    search = Python(lambda query, k: ["d1"], timeout=timeout)
    search.retrieve(["a", "b"], 1)
    own = [thread for thread in threading.enumerate() if thread not in before]
    assert [thread.name for thread in own] == (["steelyard-call"] if timeout else [])
    released = threading.Event()
    weakref.finalize(search, released.set)
    del search
    assert released.wait(60)
    for thread in own:
        thread.join(60)
        assert not thread.is_alive()


def test_a_retriever_of_a_url_has_no_reference_to_itself():
    search = from_spec({"elasticsearch": {"target": "http://127.0.0.1:1/passages"}})
    gc.disable()
    try:
        released = weakref.ref(search)
        del search
        assert released() is None
    finally:
        gc.enable()


def test_the_label_of_a_target():
    class Search:
        def __call__(self, query, k):
            return []

    assert label_of("my_package.search:retrieve") == "my_package.search:retrieve"
    assert label_of(len) == "len"
    assert label_of(Search).endswith("Search")
    assert label_of(Search()) == label_of(Search)


def test_a_class_is_called_with_its_arguments_and_an_object_is_not():
    assert instantiated(dict, "python", {"d1": 2.5}) == {"d1": 2.5}
    assert instantiated(dict, "python") == {}
    given = {"d1": 2.5}
    assert instantiated(given, "python", {"other": 1}) is given
    assert instantiated(len, "python", {"other": 1}) is len
    with pytest.raises(RetrieverError, match=r"python: calling int failed with TypeError.*`arguments`"):
        instantiated(int, "python", {"other": 1})


def test_arguments_read_the_environment_and_are_copied(monkeypatch):
    monkeypatch.setenv("PARTS_FOLDER", "/somewhere")
    given = {"folder": "${PARTS_FOLDER}/index", "sizes": [1, "${PARTS_FOLDER}"], 7: None}
    assert expanded(given, "python") == {"folder": "/somewhere/index", "sizes": [1, "/somewhere"], "7": None}
    assert given["folder"] == "${PARTS_FOLDER}/index"
    assert expanded(None, "python") == {}


@pytest.mark.parametrize("name", ["http", "elasticsearch"])
@pytest.mark.parametrize("headers", [5, "X-Size: 3", [("X-Size", "3")]])
def test_headers_that_are_no_mapping(name, headers):
    with pytest.raises(RetrieverError, match=r"`headers` is .*; expected `name: value` pairs"):
        from_spec({name: {"target": "http://127.0.0.1:1/?q={query}", "headers": headers}})


@pytest.mark.parametrize("arguments", [5, "n=1", [("n", 1)]])
def test_arguments_that_are_no_mapping(arguments):
    with pytest.raises(RetrieverError, match=r"`arguments` is .*; expected `name: value` pairs"):
        from_spec({"python": {"target": "os.path:join", "arguments": arguments}})


def test_headers(monkeypatch):
    monkeypatch.setenv("PARTS_TOKEN", "a-long-token")
    assert checked_headers(None, "http") == {}
    assert checked_headers({"X-Size": 3, "Authorization": "Bearer ${PARTS_TOKEN}", "X-Empty": ""}, "http") == {
        "X-Size": "3",
        "Authorization": "Bearer a-long-token",
        "X-Empty": "",
    }


@pytest.mark.parametrize(
    ("headers", "wrong"),
    [
        ({"": "x"}, "'' cannot be the name of a header"),
        ({5: "x"}, "5 cannot be the name of a header"),
        ({"X Size": "x"}, "'X Size' cannot be the name"),
        ({"X-Key": "very-secret\r\nX-Other: 1"}, "the value of the header X-Key has a line end"),
        ({"X-Key": "very-secret\u20ac"}, "the value of the header X-Key has a character"),
    ],
)
def test_headers_that_cannot_be_sent(headers, wrong):
    with pytest.raises(RetrieverError, match=wrong) as raised:
        checked_headers(headers, "http")
    assert "secret" not in str(raised.value)


def test_the_host_of_a_url():
    assert host_of("http://localhost:9200/passages", "http") == "localhost:9200"
    assert host_of("https://me:word@localhost/{query}", "http") == "localhost"
    assert host_of("http://localhost:${PORT}/", "http") == "localhost:${PORT}"
    assert host_of("http://[::1]:8000/", "http") == "[::1]:8000"


@pytest.mark.parametrize(
    "url", [None, 5, "", "localhost:9200", "file:///etc/hosts", "http://", "http://h:x/", "http://[::1"]
)
def test_urls_without_a_host(url):
    with pytest.raises(RetrieverError, match="http: `target` is .*; expected a URL"):
        host_of(url, "http")


def test_templates():
    assert filled_text("?q={query}&k={k}", "{k}", 5) == "?q={k}&k=5"
    assert filled_text("{query}{query}{other}", "a", 5) == "aa{other}"
    body = {"q": ["{query}", "{k}", "first {k}", 3, None], "vector": "{vector}"}
    assert filled(body, "owl", 5, [0.5]) == {"q": ["owl", 5, "first 5", 3, None], "vector": [0.5]}


def test_the_columns_of_a_table():
    found = Table("somewhere")
    assert found._text_column(["id", "body"]) == "body"
    assert found._text_column(["id", "other"]) is None
    assert found._text_column([]) is None
    named = Table("somewhere", text="other")
    assert named._text_column(["id", "body", "other"]) == "other"
    with pytest.raises(RetrieverError, match=r"table: unknown column in `text` 'other'"):
        named._text_column(["id", "body"])


def test_the_id_of_a_table():
    named, by_text = Table("somewhere", id="key"), Table("somewhere", id="hash")
    assert (named._id_column("body"), named._id_column(None)) == ("key", "key")
    assert by_text._id_column("body") == "body"
    with pytest.raises(RetrieverError, match="set `text` to their column"):
        by_text._id_column(None)


def test_a_number_as_the_path_of_a_target(tmp_path):
    with pytest.raises(RetrieverError, match=r"table: there is no database .*5\."):
        Table(5, folder=tmp_path)._path("database")
    (tmp_path / "5").touch()
    assert Table(5, folder=tmp_path)._path("database") == tmp_path / "5"


def test_rows_with_a_text_are_records():
    assert found_rows([("d1", 2.0), ["d2", 1.0]]) == [("d1", 2.0), ("d2", 1.0)]
    assert found_rows([("d1", 2.0, "a fox")]) == [{"id": "d1", "score": 2.0, "text": "a fox"}]
    assert found_rows([]) == []


def test_a_made_id_does_not_change():
    assert made_id("an owl") == "sha256:e5f8ab6be6b7bb68"


def test_a_filter_as_a_setting():
    assert describe_filter(None, "dense") == {}
    assert describe_filter(0.1, "dense") == {"filter": 0.1}
    assert describe_filter({"year": 2020}, "dense") == {"filter": {"year": 2020}}
    for wrong in ("all", -1, 1.5, True, ["year"], {}, float("nan")):
        with pytest.raises(RetrieverError, match="dense: "):
            describe_filter(wrong, "dense")


def test_settings_and_specs():
    assert retriever_settings("random") == ["seed", "name"]
    assert from_spec({"bm25-okapi": {"k1": 1.2}}).settings()["k1"] == 1.2
    assert package("json", "langchain", "my retriever").dumps(1) == "1"
