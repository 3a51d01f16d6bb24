"""Services over HTTP, and Elasticsearch by URL, with a local server."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import yaml

import steelyard as sy
from steelyard.retrievers.adapters import Elasticsearch, Http
from steelyard.retrievers.adapters.base import Wrapped
from steelyard.retrievers.base import RetrieverError
from steelyard.retrievers.registry import class_of, retriever, retriever_names

HITS = {"hits": {"hits": [{"_id": "d2", "_score": 2.5, "_source": {"key": "k2"}}, {"_id": "d1", "_score": 1.5}]}}


def test_a_url_with_the_query_and_k(service):
    service.responds(["d1", "d2"])
    adapter = Http(f"{service.url}/search?q={{query}}&k={{k}}")
    assert adapter.retrieve(["foxes & {k} wölfe/?"], k=5) == [[("d1", 1.0), ("d2", 0.5)]]
    assert service.requests[0]["path"] == "/search?q=foxes%20%26%20%7Bk%7D%20w%C3%B6lfe%2F%3F&k=5"
    assert service.requests[0]["method"] == "GET"


def test_a_body_with_the_query_and_k(service):
    service.responds({"results": [{"id": 3, "score": 0.5}]})
    adapter = Http(service.url, body={"text": "{query}", "options": [{"size": "{k}"}], "raw": True})
    assert adapter.retrieve(['say "{k}"'], k=5) == [[("3", 0.5)]]
    assert service.requests[0]["body"] == {"text": 'say "{k}"', "options": [{"size": 5}], "raw": True}
    assert service.requests[0]["method"] == "POST"
    assert service.requests[0]["headers"]["Content-Type"] == "application/json"


def test_json_paths_to_ids_and_scores(service):
    service.responds({"out": {"rows": [{"doc": {"key": "a"}, "s": 2}, {"doc": {"key": "b"}, "s": 1}]}})
    settings = {"target": f"{service.url}/{{query}}", "id": "$.out.rows[*].doc.key", "score": "out.rows[*].s"}
    assert retriever("http", settings).retrieve(["q"], k=1) == [[("a", 2.0)]]
    assert Http(settings["target"], id=settings["id"]).retrieve(["q"]) == [[("a", 1.0), ("b", 0.5)]]


def test_ids_by_text(service, corpus):
    service.responds({"passages": [corpus["d3"], corpus["d1"]]})
    adapter = Http(f"{service.url}/{{query}}", id="hash", text="passages[*]").index(corpus)
    assert adapter.retrieve(["q"]) == [[("d3", 1.0), ("d1", 0.5)]]
    service.responds({"results": [{"id": 9, "content": corpus["d2"]}]})
    found = Http(f"{service.url}/{{query}}", id="hash").index(corpus).retrieve(["q"])
    assert found == [[("d2", 1.0)]], "without `text`, the texts are found by the usual names"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("out[*].id", "no 'out'. It has rows, took"),
        ("rows[*].id", "item 2: no 'id'. Did you mean _id"),
        ("took[*]", r"\[\*\] needs a list, got a int"),
    ],
)
def test_a_wrong_path_is_reported_with_its_step(service, path, message):
    service.responds({"rows": [{"id": "d1"}, {"_id": "d2"}], "took": 3})
    with pytest.raises(RetrieverError, match=message):
        Http(f"{service.url}/{{query}}", id=path).retrieve(["q"])


def test_ids_and_scores_must_have_the_same_number(service):
    service.responds({"ids": ["d1", "d2"], "scores": [1.0]})
    with pytest.raises(RetrieverError, match="2 ids and 1 score"):
        Http(f"{service.url}/{{query}}", id="ids[*]", score="scores[*]").retrieve(["q"])


def test_a_response_that_is_not_json_is_shown(service):
    service.responds(b"<html>Please log in</html>")
    with pytest.raises(RetrieverError, match="did not return JSON; the response starts with '<html>Please log in"):
        Http(f"{service.url}/{{query}}").retrieve(["q"])


def test_a_nan_in_the_response_is_an_error(service):
    service.responds(b'[{"id": "d1", "score": NaN}]')
    with pytest.raises(RetrieverError, match="is nan; expected a finite number"):
        Http(f"{service.url}/{{query}}").retrieve(["q"])


def test_a_timeout_is_an_error_that_names_the_setting(service):
    service.responds(["d1"])
    service.hold = True
    with pytest.raises(RetrieverError, match="did not respond within 0.05 s .`timeout` sets"):
        Http(f"{service.url}/{{query}}", timeout=0.05, retries=0).retrieve(["q"])


def test_a_failing_service_is_retried_and_then_reported(service):
    service.responds((500, b"index is down"))
    with pytest.raises(RetrieverError, match=r"returned 500 .*: index is down \(tried 3 times\)"):
        Http(f"{service.url}/{{query}}", retries=2).retrieve(["q"])
    assert len(service.requests) == 3


def test_a_service_that_recovers_is_not_an_error(service):
    service.responds((503, b""), (429, b""), ["d1"])
    assert Http(f"{service.url}/{{query}}", retries=2).retrieve(["q"]) == [[("d1", 1.0)]]


def test_a_permanent_error_is_not_retried(service):
    service.responds((404, b'{"detail": "no such route"}'))
    with pytest.raises(RetrieverError, match="returned 404 .*no such route"):
        Http(f"{service.url}/{{query}}", retries=5).retrieve(["q"])
    assert len(service.requests) == 1


def test_an_unreachable_service_is_an_error(service):
    service.responds([])
    url = service.url
    service.close()
    with pytest.raises(RetrieverError, match="could not be reached"):
        Http(f"{url}/{{query}}", retries=0).retrieve(["q"])


def test_secrets_are_read_from_the_environment_and_not_shown(service, monkeypatch):
    monkeypatch.setenv("STEELYARD_TEST_TOKEN", "hush-hush")
    service.responds((401, b"no"))
    host = service.url.removeprefix("http://")
    adapter = Http(
        f"http://me:pass@{host}/{{query}}?key=${{STEELYARD_TEST_TOKEN}}",
        headers={"X-Token": "Bearer ${STEELYARD_TEST_TOKEN}"},
    )
    with pytest.raises(RetrieverError) as error:
        adapter.retrieve(["q"])
    sent = service.requests[0]
    assert sent["headers"]["X-Token"] == "Bearer hush-hush"
    assert sent["headers"]["Authorization"] == "Basic bWU6cGFzcw=="
    assert sent["path"] == "/q?key=hush-hush"
    for shown in (str(error.value), str(adapter.settings()), adapter.label):
        assert "hush-hush" not in shown
        assert "pass" not in shown
    monkeypatch.delenv("STEELYARD_TEST_TOKEN")
    with pytest.raises(RetrieverError, match="the environment variable STEELYARD_TEST_TOKEN .* is not set"):
        Http(f"{service.url}/{{query}}", headers={"X-Token": "${STEELYARD_TEST_TOKEN}"})


def test_several_queries_at_once_keep_their_order(service):
    service.responds(["d1"], ["d1"], ["d1"], ["d1"])
    assert len(Http(f"{service.url}/{{query}}", concurrency=3).retrieve(["a", "b", "c", "d"])) == 4
    assert {request["path"] for request in service.requests} == {"/a", "/b", "/c", "/d"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"target": None}, "expected a URL"),
        ({"target": "file:///etc/hosts?{query}"}, "expected a URL"),
        ({"target": "http://localhost/search"}, "neither the URL nor `body` contains {query}"),
        ({"timeout": 0}, "`timeout` is 0"),
        ({"retries": -1}, "`retries` is -1"),
        ({"retries": 1.5}, "`retries` is 1.5; expected a whole number"),
        ({"id": "rows.id"}, r"with \[\*\] for the list"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(RetrieverError, match=message):
        Http(**{"target": "http://localhost/{query}", **settings})


def test_elasticsearch_by_url_sends_a_match_query(service):
    service.responds(HITS)
    adapter = Elasticsearch(f"{service.url}/passages", field="body")
    assert adapter.label == "passages"
    assert adapter.retrieve(["red fox"], k=2) == [[("d2", 2.5), ("d1", 1.5)]]
    assert service.requests[0]["path"] == "/passages/_search"
    assert service.requests[0]["body"] == {"size": 2, "query": {"match": {"body": "red fox"}}}


def test_elasticsearch_with_its_own_query_and_ids_in_the_source(service):
    service.responds({"hits": {"hits": HITS["hits"]["hits"][:1]}})
    query = {"query": {"multi_match": {"query": "{query}", "fields": ["title^2", "body"]}}, "size": 7}
    settings = {"target": service.url, "index": "passages", "query": query, "id": "metadata.key"}
    assert retriever("opensearch", settings).retrieve(["red fox"], k=2) == [[("k2", 2.5)]]
    assert service.requests[0]["body"]["query"]["multi_match"]["query"] == "red fox"
    assert service.requests[0]["body"]["size"] == 7


def test_elasticsearch_ids_by_the_text_of_the_field(service, corpus):
    service.responds({"hits": {"hits": [{"_id": "x", "_score": 1.0, "_source": {"body": corpus["d4"]}}]}})
    adapter = Elasticsearch(f"{service.url}/passages", field="body", id="hash").index(corpus)
    assert adapter.retrieve(["q"]) == [[("d4", 1.0)]]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"acknowledged": True}, "expected hits.hits, but it has acknowledged"),
        ({**HITS, "timed_out": True}, "timed out in the cluster"),
        ({**HITS, "_shards": {"failed": 2}}, "failed on 2 shards"),
        (["d1"], "not a search result"),
    ],
)
def test_incomplete_elasticsearch_results_are_errors(service, answer, message):
    service.responds(answer)
    with pytest.raises(RetrieverError, match=message):
        Elasticsearch(f"{service.url}/passages").retrieve(["q"])


def test_elasticsearch_errors_have_the_message_of_the_cluster(service):
    service.responds((400, {"error": {"reason": "Result window is too large"}}))
    with pytest.raises(RetrieverError, match="returned 400 .*Result window is too large"):
        Elasticsearch(f"{service.url}/passages").retrieve(["q"], k=20_000)


def test_elasticsearch_through_any_client():
    class Client:
        def search(self, index, body):
            assert (index, body["size"]) == ("passages", 3)
            return HITS

    adapter = Elasticsearch(Client(), index="passages", version="1")
    assert adapter.retrieve(["q"], k=3) == [[("d2", 2.5), ("d1", 1.5)]]
    with pytest.raises(RetrieverError, match="needs `index`"):
        Elasticsearch(Client())
    with pytest.raises(RetrieverError, match="has no `search`"):
        Elasticsearch(object(), index="passages")


@pytest.mark.adapters
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "make"), [("elasticsearch", "Elasticsearch"), ("opensearchpy", "OpenSearch")])
def test_the_real_clients(service, library, name, make):
    service.responds(HITS)
    client = getattr(library(name), make)(service.url)
    assert Elasticsearch(client, index="passages").retrieve(["red fox"], k=2) == [[("d2", 2.5), ("d1", 1.5)]]
    assert service.requests[-1]["path"].split("?")[0] == "/passages/_search"
    assert service.requests[-1]["body"] == {"size": 2, "query": {"match": {"text": "red fox"}}}
    client.close()


def test_k_may_be_a_numpy_integer(service):
    service.responds(["d1", "d2"])
    adapter = Http(service.url, body={"text": "{query}", "size": "{k}"})
    assert adapter.retrieve(["q"], k=np.int64(1)) == [[("d1", 1.0)]]
    assert service.requests[0]["body"] == {"text": "q", "size": 1}


RESPONSES = {
    "pinecone": {"matches": [{"id": "d1", "score": 0.9}, {"id": "d2", "score": 0.8}], "namespace": ""},
    "weaviate": {"data": {"Get": {"Passage": [{"key": "d1", "_additional": {"score": "2.5"}}, {"key": "d2"}]}}},
    "vespa": {
        "root": {
            "children": [
                {"id": "index:passages/0", "relevance": 2.5, "fields": {"id": "d1"}},
                {"id": "index:passages/1", "relevance": 0.5, "fields": {"id": "d2"}},
            ]
        }
    },
    "azure": {"value": [{"@search.score": 0.9, "key": "d1"}, {"@search.score": 0.8, "key": "d2"}]},
    "vertex": {
        "nearestNeighbors": [
            {
                "neighbors": [
                    {"datapoint": {"datapointId": "d1"}, "distance": 0.25},
                    {"datapoint": {"datapointId": "d2"}, "distance": 0.5},
                ]
            }
        ]
    },
    "solr": {"response": {"numFound": 2, "docs": [{"id": "d1", "score": 2.5}, {"id": "d2", "score": 0.5}]}},
}


ROOT = Path(__file__).parents[3]


def recipes():
    """The recipes for hosted services."""
    entries = yaml.safe_load((ROOT / "examples" / "hosted_services.yaml").read_text("utf-8"))
    assert len(entries) == 7
    return [entry["http"] for entry in entries]


def test_the_documentation_shows_one_of_the_recipes():
    part = (ROOT / "docs" / "engines.md").read_text("utf-8").partition("### Hosted services")[2].partition("\n## ")[0]
    (shown,) = re.findall(r"```yaml\n(.*?)```", part, re.DOTALL)
    assert yaml.safe_load(shown)[0]["http"] in recipes()


@pytest.mark.parametrize("recipe", recipes(), ids=lambda recipe: recipe["name"])
def test_the_recipes_for_hosted_services_read_the_documented_response(recipe, service, monkeypatch):
    for name in ("PINECONE_API_KEY", "WEAVIATE_API_KEY", "AZURE_SEARCH_KEY", "GOOGLE_ACCESS_TOKEN"):
        monkeypatch.setenv(name, "a-key")
    settings = dict(recipe)
    settings["target"] = re.sub(r"^https?://[^/]+", service.url, settings["target"])
    if "model" in settings:
        settings["model"] = lambda texts: [[0.625, 4.0] for _ in texts]
    service.responds((200, json.dumps(RESPONSES[recipe["name"].split()[0]]).encode()))
    found = Http(**settings).retrieve(['a "question"'], k=2)[0]
    assert [doc for doc, _ in found] == ["d1", "d2"]
    assert found[0][1] > found[1][1]
    sent = json.dumps(service.requests[0]["body"])
    asked = service.requests[0]["path"] + sent
    assert ("[0.625, 4.0]" in sent) == ("model" in recipe)
    assert not re.findall(r"\{(query|k|vector)\}", asked)


def test_the_vector_of_a_query_needs_a_model_and_a_place():
    with pytest.raises(RetrieverError, match="needs `model`"):
        Http("http://localhost/", body={"vector": "{vector}"})
    with pytest.raises(RetrieverError, match="which `body` does not have"):
        Http("http://localhost/?q={query}", model="lsa")


def test_a_bench_asks_a_service(service, tmp_path):
    """The bench measures the time of the call alone, so it calls adapters by other methods than `retrieve`."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "corpus.jsonl").write_text('{"_id": "d1", "text": "a fox"}\n{"_id": "d2", "text": "an owl"}\n')
    (data / "queries.jsonl").write_text('{"_id": "q1", "text": "fox"}\n')
    (data / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    service.responds((200, b'{"hits": [{"key": "d1", "s": 3}, {"key": "d2", "s": 1}]}'))
    spec = {"target": f"{service.url}/?q={{query}}", "id": "hits[*].key", "score": "hits[*].s", "name": "mine"}
    config = {"dataset": str(data), "retrievers": [{"http": spec}], "measures": ["RR"]}
    result = sy.bench(config, tmp_path / "result")
    assert not result.failed
    assert result.comparison.leaderboard["RR"].to_list() == [1.0]
    assert result.rows[0].mean_seconds > 0


def test_no_adapter_replaces_retrieve():
    for name in retriever_names():
        cls = class_of(name)[0]
        if issubclass(cls, Wrapped):
            assert cls.retrieve is Wrapped.retrieve, name
            assert cls._ask is not Wrapped._ask, name
