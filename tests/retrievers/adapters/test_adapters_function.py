"""Any callable as a retriever: its parameters, its results, and errors."""

from __future__ import annotations

import asyncio
import sys
import threading
from copy import deepcopy
from types import SimpleNamespace
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clocks import HangingCalls
from steelyard.errors import SteelyardError
from steelyard.retrievers.adapters import Python, base, documents, libraries, python
from steelyard.retrievers.base import Retriever, RetrieverError
from steelyard.retrievers.registry import retriever


def one(answer, k=10, **settings):
    """The list for one query of a function that returns this result."""
    return Python(lambda query: answer, name="mine", **settings).retrieve(["a question"], k)[0]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ([], []),
        (["d1", "d2"], [("d1", 1.0), ("d2", 0.5)]),
        ([7, np.int64(8)], [("7", 1.0), ("8", 0.5)]),
        (np.array(["d1", "d2"]), [("d1", 1.0), ("d2", 0.5)]),
        ([("d1", 0.5), ("d2", 2)], [("d1", 0.5), ("d2", 2.0)]),
        ([["d1", np.float32(0.5)]], [("d1", 0.5)]),
        ({"d1": 0.5, "d2": 2}, [("d2", 2.0), ("d1", 0.5)]),
        ([{"id": "d1", "score": 3}], [("d1", 3.0)]),
        ([{"_id": "d1", "_score": 3}], [("d1", 3.0)]),
        ([{"docno": 5}], [("5", 1.0)]),
        ([SimpleNamespace(id=UUID(int=7), score=1)], [("00000000-0000-0000-0000-000000000007", 1.0)]),
        ([(SimpleNamespace(doc_id="d1"), 0.25)], [("d1", 0.25)]),
        ({"ids": ["d1", "d2"], "scores": [3, 1]}, [("d1", 3.0), ("d2", 1.0)]),
        ({"ids": ["d1", "d2"]}, [("d1", 1.0), ("d2", 0.5)]),
        ({"results": [{"id": "d1", "score": 3}], "took": "5ms"}, [("d1", 3.0)]),
        ((doc for doc in ("d1", "d2")), [("d1", 1.0), ("d2", 0.5)]),
        ([("d1", 3.0), ("d2", None)], [("d1", 1.0), ("d2", 0.5)]),
    ],
)
def test_every_form_of_result_is_read(answer, expected):
    assert one(answer) == expected


def test_repeats_and_the_order_are_kept():
    assert one([("d2", 0.1), ("d1", 0.9), ("d2", 0.1)]) == [("d2", 0.1), ("d1", 0.9), ("d2", 0.1)]


def test_at_most_k_documents_are_read_of_an_endless_result():
    def endless(query):
        number = 0
        while True:
            yield f"d{number}"
            number += 1

    assert [doc for doc, _ in Python(endless).retrieve(["q"], k=3)[0]] == ["d0", "d1", "d2"]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("d1", "is a str"),
        (5, "is a int"),
        ([("d1", float("nan"))], "score of document 1 .* is nan"),
        ({"d1": float("nan")}, "'d1' .* is nan"),
        ([("d1", float("inf"))], "is inf"),
        ([("d1", "0.5")], "is '0.5'; expected a number"),
        ([("d1", True)], "is True"),
        ([("d1", 1, 2)], "a tuple of 3"),
        ([True], "True is a bool"),
        ([None], "document 1 .* has no 'id'"),
        ([{"id": "d1"}, {"text": "x", "metadata": {"source": "s", "page": 1}}], "document 2 of the result for"),
        ([{"text": "x", "metadata": {"source": "s", "page": 1}}], r"text, metadata \(source, page\)"),
        ({"answer": "none"}, "neither of id to score"),
        ({"ids": ["d1"], "scores": []}, "1 id but not 1 score"),
    ],
)
def test_a_wrong_result_is_reported_with_its_position(answer, message):
    with pytest.raises(SteelyardError, match=message):
        one(answer)


@given(
    st.lists(st.tuples(st.text(min_size=1), st.floats(allow_nan=False, allow_infinity=False)), max_size=8),
    st.integers(1, 10),
)
def test_pairs_are_returned_unchanged(pairs, k):
    assert one(pairs, k) == pairs[:k]
    assert one([{"id": doc, "score": score} for doc, score in pairs], k) == pairs[:k]


def test_k_is_passed_by_any_usual_name_or_as_the_second_parameter():
    def by_name(query, *, filters=None, top_k=3):
        return ["d"] * top_k

    def by_place(query, how_many):
        return ["d"] * how_many

    def positional(query, k, /):
        return ["d"] * k

    def without(query, threshold=0.5):
        assert threshold == 0.5
        return ["d"] * 9

    for function in (by_name, by_place, positional, without):
        assert len(Python(function).retrieve(["q"], k=2)[0]) == 2, function.__name__


def test_a_batch_is_recognised_by_the_first_parameter_or_the_setting():
    def annotated(given: list[str], k: int) -> list[list[str]]:
        return [[query] for query in given]

    def named(queries):
        return [[query] for query in queries]

    def neither(x):
        return [x] if isinstance(x, str) else [[query] for query in x]

    def misleading(queries: str):
        return [queries]

    for function in (annotated, named, neither, misleading):
        found = Python(function).retrieve(["a", "b"], k=5)
        assert found == [[("a", 1.0)], [("b", 1.0)]], function.__name__
    assert Python(annotated).settings()["batch"] is True
    assert Python(neither).settings()["batch"] is False
    assert Python(neither, batch=True).retrieve(["a", "b"]) == [[("a", 1.0)], [("b", 1.0)]]
    assert Python(misleading).settings()["batch"] is False


def test_a_batch_with_the_wrong_number_of_results_is_refused():
    with pytest.raises(RetrieverError, match="batch of 2 returned 1 result; expected a list with one result per query"):
        Python(lambda queries: [["d1"]]).retrieve(["a", "b"])
    with pytest.raises(RetrieverError, match="batch of 2 returned a dict"):
        Python(lambda queries: {"d1": 1.0}).retrieve(["a", "b"])


def test_async_functions_are_awaited_with_limited_concurrency():
    out, most = 0, 0

    async def search(query, k):
        nonlocal out, most
        out += 1
        most = max(most, out)
        await asyncio.sleep(0.005)
        out -= 1
        return [query]

    found = Python(search, concurrency=3).retrieve([f"q{n}" for n in range(7)])
    assert found == [[(f"q{n}", 1.0)] for n in range(7)]
    assert most == 3


def test_async_functions_use_one_loop_and_work_within_a_running_loop():
    loops = set()

    async def search(query):
        loops.add(asyncio.get_running_loop())
        return [query]

    adapter = Python(search)

    async def notebook():
        return adapter.retrieve(["a"])

    assert asyncio.run(notebook()) == adapter.retrieve(["a"]) == [[("a", 1.0)]]
    assert len(loops) == 1


def test_an_async_batch_and_an_async_failure():
    async def batch(queries):
        return [[query] for query in queries]

    async def fails(query):
        if query == "bad":
            raise KeyError("no such thing")
        return [query]

    assert Python(batch).retrieve(["a", "b"]) == [[("a", 1.0)], [("b", 1.0)]]
    with pytest.raises(KeyError, match="no such thing"):
        Python(fails, concurrency=2).retrieve(["good", "bad", "good"])


def test_a_plain_function_runs_concurrently_in_threads():
    both = threading.Barrier(2, timeout=20)

    def search(query):
        both.wait()
        return [query]

    assert Python(search, concurrency=2).retrieve(["a", "b"]) == [[("a", 1.0)], [("b", 1.0)]]


def test_objects_with_a_method_and_classes_with_arguments():
    class Engine:
        def __init__(self, doc="d1"):
            self.doc = doc

        def search(self, query, limit=10):
            return [self.doc] * min(limit, 2)

    assert Python(Engine()).retrieve(["q"])[0] == [("d1", 1.0), ("d1", 0.5)]
    assert Python(Engine, arguments={"doc": "d9"}).retrieve(["q"], k=1)[0] == [("d9", 1.0)]
    with pytest.raises(RetrieverError, match="calling Engine failed with TypeError.*`arguments`"):
        Python(Engine, arguments={"dog": 1})


def test_arguments_of_a_function_are_passed_with_every_call():
    def search(query, boost, k=10):
        return [(query, boost)] * k

    assert Python(search, arguments={"boost": 2.5}).retrieve(["q"], k=1)[0] == [("q", 2.5)]
    assert len(Python(search, arguments={"boost": 1, "k": 2}).retrieve(["q"], k=5)[0]) == 2


def test_ids_by_text_and_texts_that_are_not_in_the_corpus(corpus):
    def search(query):
        return [{"text": corpus["d2"] + "\n"}, {"text": "an unknown text"}]

    adapter = Python(search, id="hash", name="mine").index(corpus)
    found = adapter.retrieve(["q"])[0]
    assert found[0] == ("d2", 1.0)
    assert found[1][0].startswith("sha256:")
    assert adapter.size_in_bytes() > 0
    with pytest.raises(RetrieverError, match="call index"):
        Python(search, id="hash").retrieve(["q"])
    with pytest.raises(RetrieverError, match="needs the text of document 1"):
        Python(lambda query: [{"body_text": "x"}], id="hash").index(corpus).retrieve(["q"])


def test_ids_by_text_with_and_without_titles():
    from steelyard.datasets.corpus import Corpus

    corpus = Corpus.of({"d1": {"title": "Fox", "text": "It runs."}, "d2": "It sleeps."})
    adapter = Python(lambda query: [{"text": "It runs."}, {"text": "Fox\nIt runs."}, {"text": "It sleeps."}], id="hash")
    assert [doc for doc, _ in adapter.index(corpus).retrieve(["q"])[0]] == ["d1", "d1", "d2"]


def test_an_id_that_was_named_is_not_made_from_the_text():
    documents = [{"text": "a red fox", "metadata": {"source": "d1"}}]
    ((made, _),) = Python(lambda query: documents).index({}).retrieve(["q"])[0]
    assert made.startswith("sha256:")
    with pytest.raises(RetrieverError, match=r"has no 'metadata.sorce'; it has text, metadata \(source\)"):
        Python(lambda query: documents, id="metadata.sorce").index({}).retrieve(["q"])


def test_ids_by_path_through_keys_attributes_and_positions():
    document = SimpleNamespace(meta={"source": "d7", "tags": ["d8"], "a.b": "d9"})
    for path, expected in [("metadata.source", "d7"), ("meta.tags[0]", "d8"), ("meta['a.b']", "d9")]:
        assert one([document], id=path) == [(expected, 1.0)]
    with pytest.raises(RetrieverError, match=r"has no 'metadata.sauce'; it has meta \(source, tags, a.b\)"):
        one([document], id="metadata.sauce")
    with pytest.raises(RetrieverError, match="is not valid at"):
        one([document], id="meta[source")
    assert one(["d1"], id="$") == [("d1", 1.0)]
    with pytest.raises(SteelyardError, match="is a dict; expected text"):
        one([{"id": "d1"}], id="$")


def test_score_by_path():
    assert one([{"id": "d1", "rank": {"value": 4}}], score="rank.value") == [("d1", 4.0)]
    with pytest.raises(RetrieverError, match="the score 'value'.*It has id, rank"):
        one([{"id": "d1", "rank": 4}], score="value")


def test_it_is_a_retriever_and_queries_are_checked():
    adapter = Python(lambda query: ["d1"], name="mine")
    assert isinstance(adapter, Retriever)
    assert (adapter.label, adapter.size_in_bytes(), adapter.retrieve([])) == ("mine", 0, [])
    with pytest.raises(SteelyardError, match="k is 0"):
        adapter.retrieve(["q"], k=0)
    with pytest.raises(SteelyardError, match="takes a list of queries"):
        adapter.retrieve("q")


def test_a_retriever_gets_the_corpus(corpus):
    from steelyard.retrievers import BM25

    plain = BM25().index(corpus)
    adapter = Python("steelyard.retrievers.bm25:BM25").index(corpus)
    assert adapter.retrieve(["red fox"], k=2) == plain.retrieve(["red fox"], k=2)
    assert adapter.size_in_bytes() == plain.size_in_bytes()
    assert adapter.settings()["of"] == plain.settings()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch": "yes"}, "`batch` is 'yes'"),
        ({"concurrency": 0}, "`concurrency` is 0"),
        ({"id": ""}, "`id` is ''"),
        ({"target": object()}, "cannot be called"),
        ({"target": None}, "the target is missing"),
        ({"target": "json.dumps"}, "is not `package.module:attribute`"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(RetrieverError, match=message):
        Python(**{"target": lambda query: [], **settings})


def test_a_module_in_the_folder_of_the_bench_file_is_found(module):
    folder = module("steelyard_test_search", "def retrieve(query, k):\n    return [query] * k\n")
    target = "steelyard_test_search:retrieve"
    adapter = retriever("python", {"target": target, "folder": str(folder)})
    assert adapter.label == target
    assert adapter.retrieve(["q"], k=2)[0] == [("q", 1.0), ("q", 0.5)]
    assert str(folder) not in str(adapter.settings())


def test_settings_change_with_the_code_and_the_version(module):
    folder = module("steelyard_test_code", "def retrieve(query):\n    return ['d1']\n")
    target = "steelyard_test_code:retrieve"
    first = Python(target, folder=folder).settings()
    assert first == Python(target, folder=folder).settings()
    assert first != Python(target, folder=folder, version="2").settings()
    module("steelyard_test_code", "def retrieve(query):\n    return ['d2']\n")
    assert first["code"] != Python(target, folder=folder).settings()["code"]


def test_an_object_without_a_version_is_new_every_time():
    def adapter(doc, **settings):
        return Python(lambda query: [doc], name="mine", **settings)

    assert adapter("d1").settings() != adapter("d1").settings()
    assert adapter("d1", version="1").settings() == adapter("d1", version="1").settings()


def test_missing_modules_and_attributes_suggest_the_nearest_name(module):
    folder = module("steelyard_test_near", "def retrieve(query):\n    return []\n")
    with pytest.raises(RetrieverError, match="Did you mean retrieve"):
        Python("steelyard_test_near:retreive", folder=folder)
    with pytest.raises(
        RetrieverError,
        match="no module 'steelyard_test_nera' in .*, the working directory or .* Did you mean steelyard_test_near",
    ):
        Python("steelyard_test_nera:retrieve", folder=folder)
    with pytest.raises(RetrieverError, match="no module 'steelyard.retrievers.bm52'.*steelyard.retrievers.bm25"):
        Python("steelyard.retrievers.bm52:BM25")


def test_modules_of_the_working_directory_are_found_after_all_others(module, tmp_path, monkeypatch):
    """A bench.yaml in a folder of its own names the app beside which the command runs."""
    folder = module("steelyard_test_app", "def retrieve(query):\n    return ['d1']\n")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path not in ("", str(folder))])
    (tmp_path / "bench").mkdir()
    assert list(Python("steelyard_test_app:retrieve", folder=tmp_path / "bench").retrieve(["q"])[0]) == [("d1", 1.0)]
    before = list(sys.path)
    Python("json:dumps", folder=tmp_path / "bench")
    assert sys.path == before
    assert sys.path[-1] == str(folder)


def test_a_module_that_fails_to_load_gives_the_reason(module):
    folder = module("steelyard_test_broken", "raise ValueError('no model file')\n")
    with pytest.raises(RetrieverError, match="loading module .* failed with ValueError: no model file"):
        Python("steelyard_test_broken:retrieve", folder=folder)
    folder = module("steelyard_test_needs", "import steelyard_test_absent\n")
    with pytest.raises(RetrieverError, match="needs 'steelyard_test_absent', which is not installed"):
        Python("steelyard_test_needs:retrieve", folder=folder)


def test_another_module_of_the_same_name_is_an_error(module, tmp_path):
    folder = module("steelyard_test_twin", "def retrieve(query):\n    return ['first']\n")
    Python("steelyard_test_twin:retrieve", folder=folder)
    other = tmp_path / "other"
    other.mkdir()
    (other / "steelyard_test_twin.py").write_text("def retrieve(query):\n    return ['second']\n")
    with pytest.raises(RetrieverError, match="is already loaded from"):
        Python("steelyard_test_twin:retrieve", folder=other)


class Engine:
    """A user class with `index` and `retrieve`."""

    def __init__(self, shout=False):
        self.shout, self.corpora = shout, []

    def index(self, corpus):
        self.corpora.append(dict(corpus))

    def retrieve(self, queries, k):
        texts = self.corpora[-1]
        return [[doc for doc in texts if set(texts[doc].split()) & set(query.split())][:k] for query in queries]


class AsyncEngine(Engine):
    async def index(self, corpus):
        super().index(corpus)


CORPUS = {"d1": "red fox", "d2": "grey wolf", "d3": "red deer"}


@pytest.mark.parametrize("target", [Engine, Engine(), AsyncEngine])
def test_an_object_with_index_gets_the_corpus(target):
    engine = Python(target, name="engine").index(CORPUS)
    assert engine.retrieve(["red", "wolf"], k=2) == [[("d1", 1.0), ("d3", 0.5)], [("d2", 1.0)]]


@pytest.mark.parametrize(
    ("name", "settings"), [("one", {}), ("one", {"concurrency": 2}), ("one_async", {}), ("batch", {}), ("lazily", {})]
)
def test_a_query_that_takes_too_long_is_an_error_and_the_next_is_not(name, settings, monkeypatch):
    calls = HangingCalls(monkeypatch)

    def one(query, k):
        if query == "slow":
            calls.hang()
        return [f"thread {threading.current_thread().name}", query]

    async def one_async(query, k):
        if query == "slow":
            await asyncio.Event().wait()
        return [query]

    def batch(queries, k):
        return [one(query, k) for query in queries]

    def lazily(query, k):
        yield query
        calls.hang()

    function = {"one": one, "one_async": one_async, "batch": batch, "lazily": lazily}[name]
    retriever = deepcopy(Python(function, timeout=0.1, name="mine", **settings))
    with pytest.raises(RetrieverError, match=r"mine: no result within 0\.\d s; the call was abandoned"):
        retriever.retrieve(["slow", "quick"], 2)
    if name != "lazily":
        assert retriever.retrieve(["quick"], 5)[0][-1][0] == "quick"


def test_with_a_timeout_queries_and_indexing_are_in_one_thread():
    seen = []

    class Engine:
        def index(self, corpus):
            seen.append(threading.get_ident())

        def retrieve(self, query, k):
            seen.append(threading.get_ident())
            if query == "wrong":
                raise TimeoutError("its own")
            return ["d1"]

    retriever = Python(Engine, timeout=5).index({"d1": "text"})
    retriever.retrieve(["a", "b"], 1)
    assert len(set(seen)) == 1
    assert seen[0] != threading.get_ident()
    with pytest.raises(TimeoutError, match="its own"):
        retriever.retrieve(["wrong"], 1)
    with pytest.raises(RetrieverError, match="`timeout` is 0; expected a number"):
        Python(Engine, timeout=0)


def test_a_function_with_an_attribute_index_is_not_indexed():
    def search(query, k):
        return ["d1"]

    search.index = 7
    assert Python(search).index(CORPUS).retrieve(["q"]) == [[("d1", 1.0)]]


def shaped(**methods):
    return type("Shape", (), methods)


@pytest.mark.parametrize(
    ("cls", "message"),
    [
        (shaped(index=lambda self, corpus: None), r"has index but none of retrieve.*retrieve\(queries, k\)"),
        (shaped(index=lambda self: None, retrieve=lambda self, q: []), r"expected index\(corpus\)"),
        (shaped(index=lambda self, a, b: None, retrieve=lambda self, q: []), "missing a required argument"),
        (shaped(index=lambda self, corpus: None, retrieve=lambda self: []), r"cannot be called.*\(query, k\)"),
        (shaped(search=lambda self, query, k, user: []), "cannot be called: missing a required argument: 'user'"),
        (shaped(__init__=lambda self, corpus: None, retrieve=lambda self, q: []), r"its method index\(corpus\)"),
    ],
)
def test_a_class_of_the_wrong_shape_is_refused(cls, message):
    with pytest.raises(RetrieverError, match=message):
        Python(cls, name="mine")


def test_paths_into_documents():
    assert documents.steps_of("$.hits.hits[*]._id", "http") == ["hits", "hits", "*", "_id"]
    assert documents.steps_of("rows[0]['a.b']", "http") == ["rows", 0, "a.b"]
    assert documents.walk({"metadata": {"source": "d7"}}, ["metadata", "source"]) == "d7"
    assert list(documents.every({"hits": [{"id": 1}, {"id": 2}]}, ["hits", "*", "id"])) == [1, 2]
    assert documents.keys_of({"text": "", "metadata": {"source": "a", "page": 2}}) == "text, metadata (source, page)"


def test_lists_and_their_scores():
    assert documents.without_distances([("d1", 0.25), ("d2", 0.5)]) == [("d1", -0.25), ("d2", -0.5)]
    assert documents.without_distances([("d1", 0.9), ("d2", 0.5)]) == [("d1", 0.9), ("d2", 0.5)]
    assert documents.read_lists([[("d1", 2.5)]], "mine", "a question", 10) == [("d1", 2.5)]
    assert documents.read_score(3, "mine", "document 1") == 3.0


class Steps:
    similarity_top_k = 2


def test_calls_and_what_they_return():
    assert python.TimeLimit(5.0, "mine").run(lambda: 1 + 1) == 2
    assert base.ask_each(str.upper, ["a", "b"], 2) == ["A", "B"]
    search = libraries.in_stages(lambda query: ["d1", "d2"], [Steps()], lambda step, docs, query: docs[:1])
    assert search("a question") == {"stages": {"retrieve": ["d1", "d2"], "Steps": ["d1"]}}
    mine = Steps()
    assert libraries.with_depth(mine, ["similarity_top_k"], 100).similarity_top_k == 100
    assert mine.similarity_top_k == 2
