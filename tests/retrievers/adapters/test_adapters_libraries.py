"""Adapters of libraries, with the real libraries if they are installed."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from steelyard.retrievers.adapters import BM25S, Haystack, LangChain, LlamaIndex, PyTerrier, Python, Qdrant, Tantivy
from steelyard.retrievers.base import Retriever, RetrieverError, Staged
from steelyard.retrievers.registry import retriever

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]

WORDS = ("fox", "wolf", "owl", "night")


def embed(texts):
    """The count of each of four words in a text, plus a constant."""
    return np.array([[text.split().count(word) + 0.01 for word in WORDS] for text in texts])


def ids(found):
    return [doc for doc, _ in found]


class TestLangChain:
    @pytest.fixture
    def store(self, library, corpus):
        library("langchain_core")
        documents = library("langchain_core.documents")
        stores = library("langchain_core.vectorstores")
        embeddings = library("langchain_core.embeddings")

        class Words(embeddings.Embeddings):
            def embed_documents(self, texts):
                return embed(texts).tolist()

            def embed_query(self, text):
                return embed([text])[0].tolist()

        store = stores.InMemoryVectorStore(Words())
        store.add_documents(
            [documents.Document(text, id=doc, metadata={"key": f"k-{doc}"}) for doc, text in corpus.items()]
        )
        return store

    def test_a_vector_store_gets_k(self, store):
        mine = store.as_retriever(search_kwargs={"k": 1})
        adapter = LangChain(mine, name="mine")
        found = adapter.retrieve(["night owl"], k=3)[0]
        assert ids(found)[:2] == ["d3", "d4"]
        assert len(found) == 3
        assert [score for _, score in found] == [1, 1 / 2, 1 / 3]
        assert mine.search_kwargs == {"k": 1}
        assert len(LangChain(mine, own_k=True).retrieve(["night owl"], k=3)[0]) == 1

    def test_ids_from_the_metadata_and_from_the_text(self, store, corpus):
        mine = store.as_retriever()
        assert ids(LangChain(mine, id="metadata.key").retrieve(["fox"], k=1)[0]) == ["k-d1"]
        assert ids(LangChain(mine, id="hash").index(corpus).retrieve(["fox"], k=1)[0]) == ["d1"]

    def test_a_document_without_an_id_is_reported_with_its_keys(self, library):
        core, documents = library("langchain_core.retrievers"), library("langchain_core.documents")

        class Mine(core.BaseRetriever):
            def _get_relevant_documents(self, query, *, run_manager):
                return [documents.Document("text", metadata={"source": "s1"})]

        with pytest.raises(RetrieverError, match=r"document 1 .* has no 'id'.*metadata \(source\).*page_content"):
            LangChain(Mine()).retrieve(["q"])
        assert LangChain(Mine(), id="metadata.source").retrieve(["q"]) == [[("s1", 1.0)]]

    def test_a_field_k_is_set_on_a_copy(self, library):
        core, documents = library("langchain_core.retrievers"), library("langchain_core.documents")

        class Mine(core.BaseRetriever):
            k: int = 1

            def _get_relevant_documents(self, query, *, run_manager):
                return [documents.Document("", id=f"d{n}") for n in range(self.k)]

        mine = Mine()
        assert len(LangChain(mine).retrieve(["q"], k=5)[0]) == 5
        assert len(LangChain(mine, own_k=True).retrieve(["q"], k=5)[0]) == 1
        assert mine.k == 1

    def test_any_runnable_and_other_objects(self, library):
        runnables = library("langchain_core.runnables")
        chain = runnables.RunnableLambda(lambda query: [query, "d2"])
        assert LangChain(chain).retrieve(["d1"]) == [[("d1", 1.0), ("d2", 0.5)]]
        with pytest.raises(RetrieverError, match="without invoke.*use `python` for any other"):
            LangChain(object())

    def test_the_adapter_python_accepts_it(self, store):
        assert ids(Python(store.as_retriever()).retrieve(["fox"], k=1)[0]) == ["d1"]

    def test_contextual_compression_has_stages(self, library, corpus):
        retrievers, documents = library("langchain_core.retrievers"), library("langchain_core.documents")
        compressors = library("langchain_core.documents.compressor")

        class Base(retrievers.BaseRetriever):
            def _get_relevant_documents(self, query, *, run_manager):
                return [documents.Document(page_content=text, id=doc) for doc, text in corpus.items()]

        class Last(compressors.BaseDocumentCompressor):
            def compress_documents(self, documents, query, callbacks=None):
                return documents[::-1][:3] if query != "nothing" else []

        class Shorten(documents.BaseDocumentTransformer):
            def transform_documents(self, documents, **more):
                return documents[:2]

        real = library("langchain_classic.retrievers").ContextualCompressionRetriever
        pipeline = library("langchain_classic.retrievers.document_compressors").DocumentCompressorPipeline
        for steps in ([Last()], [Last(), Shorten(), Last()]):
            inner = steps[0] if len(steps) == 1 else pipeline(transformers=steps)
            mine = real(base_compressor=inner, base_retriever=Base())
            for query in ("night owl", "nothing"):
                found = LangChain(mine).retrieve([query], k=2)[0]
                assert ids(found) == [each.id for each in mine.invoke(query)][:2]
                assert isinstance(found, Staged)
                assert found.lists["retrieve"] == list(corpus)
                assert list(found.reads) == ["retrieve", *["Last", "Shorten", "Last 2"][: len(steps)]]
        assert found.lists["Last"] == found.lists["Shorten"] == []
        own = type("Own", (real,), {"_get_relevant_documents": Base._get_relevant_documents})
        plain = LangChain(own(base_compressor=Last(), base_retriever=Base())).retrieve(["night owl"], k=2)[0]
        assert not isinstance(plain, Staged)


class TestLlamaIndex:
    @pytest.fixture
    def index(self, library, corpus):
        core, schema = library("llama_index.core"), library("llama_index.core.schema")
        embeddings = library("llama_index.core.embeddings")

        class Words(embeddings.BaseEmbedding):
            def _get_query_embedding(self, query):
                return embed([query])[0].tolist()

            async def _aget_query_embedding(self, query):
                return self._get_query_embedding(query)

            def _get_text_embedding(self, text):
                return self._get_query_embedding(text)

        nodes = []
        for doc, text in corpus.items():
            node = schema.TextNode(text=text, id_=f"node-{doc}", metadata={"key": doc})
            node.excluded_embed_metadata_keys = ["key"]
            node.relationships = {schema.NodeRelationship.SOURCE: schema.RelatedNodeInfo(node_id=f"book-{doc}")}
            nodes.append(node)
        return core.VectorStoreIndex(nodes, embed_model=Words())

    def test_k_nodes_with_their_scores(self, index):
        mine = index.as_retriever(similarity_top_k=1)
        found = LlamaIndex(mine, name="mine").retrieve(["night owl"], k=3)[0]
        assert ids(found)[:2] == ["node-d3", "node-d4"]
        assert len(found) == 3
        assert found[0][1] == pytest.approx(1.0, abs=1e-3)
        assert found[0][1] > found[1][1] > found[2][1]
        assert mine.similarity_top_k == 1
        assert len(LlamaIndex(mine, own_k=True).retrieve(["night owl"], k=3)[0]) == 1

    def test_an_index_is_used_through_its_retriever(self, index):
        assert ids(LlamaIndex(index).retrieve(["fox"], k=1)[0]) == ["node-d1"]

    def test_ids_of_the_document_of_the_metadata_and_by_text(self, index, corpus):
        for setting, expected in [("document", "book-d1"), ("metadata.key", "d1"), ("hash", "d1")]:
            adapter = LlamaIndex(index, id=setting).index(corpus)
            assert ids(adapter.retrieve(["fox"], k=1)[0]) == [expected]
        with pytest.raises(RetrieverError, match="has no 'metadata.kee'"):
            LlamaIndex(index, id="metadata.kee").retrieve(["fox"])

    def test_nodes_without_scores_get_1_over_rank(self, library):
        core, schema = library("llama_index.core.retrievers"), library("llama_index.core.schema")

        class Mine(core.BaseRetriever):
            def _retrieve(self, query_bundle):
                return [schema.NodeWithScore(node=schema.TextNode(id_=query_bundle.query_str))]

        assert LlamaIndex(Mine()).retrieve(["d1"]) == [[("d1", 1.0)]]

    def test_postprocessors_of_a_query_engine_are_stages(self, index, library):
        engines, processors = library("llama_index.core.query_engine"), library("llama_index.core.postprocessor")
        core, llms = library("llama_index.core"), library("llama_index.core.llms")
        steps = [processors.SimilarityPostprocessor(similarity_cutoff=0.1), processors.LongContextReorder()]
        synthesizer = core.get_response_synthesizer(llm=llms.MockLLM())
        engine = engines.RetrieverQueryEngine(index.as_retriever(similarity_top_k=1), synthesizer, steps)
        found = LlamaIndex(engine, name="mine").retrieve(["night owl"], k=4)[0]
        nodes = index.as_retriever(similarity_top_k=4).retrieve("night owl")
        bundle = library("llama_index.core.schema").QueryBundle("night owl")
        kept = steps[0].postprocess_nodes(nodes, query_bundle=bundle)
        assert isinstance(found, Staged)
        assert found.lists["retrieve"] == [node.node_id for node in nodes]
        assert found.lists["SimilarityPostprocessor"] == [node.node_id for node in kept]
        assert len(kept) < len(nodes)
        last = steps[1].postprocess_nodes(kept, query_bundle=bundle)
        assert ids(found) == [node.node_id for node in last]
        assert list(found.reads) == ["retrieve", "SimilarityPostprocessor", "LongContextReorder"]


class TestHaystack:
    @pytest.fixture
    def component(self, library, corpus):
        haystack = library("haystack")
        stores = library("haystack.document_stores.in_memory")
        retrievers = library("haystack.components.retrievers.in_memory")
        store = stores.InMemoryDocumentStore()
        store.write_documents([haystack.Document(content=text, meta={"key": doc}) for doc, text in corpus.items()])
        return retrievers.InMemoryBM25Retriever(store, top_k=1)

    def test_a_component(self, component, corpus):
        found = Haystack(component, id="metadata.key").retrieve(["night owl"], k=3)[0]
        assert ids(found) == ["d3", "d4"]
        assert found[0][1] > found[1][1] > 0
        assert len(Haystack(component, own_k=True).retrieve(["night owl"], k=3)[0]) == 1
        assert ids(Haystack(component, id="hash").index(corpus).retrieve(["fox"], k=1)[0]) == ["d1"]

    def test_a_pipeline_with_default_and_custom_inputs(self, library, component):
        pipeline = library("haystack").Pipeline()
        pipeline.add_component("search", component)
        adapter = Haystack(pipeline, id="metadata.key")
        assert adapter.settings()["inputs"] == {"search": {"query": "{query}", "top_k": "{k}"}}
        assert ids(adapter.retrieve(["night owl"], k=3)[0]) == ["d3", "d4"]
        inputs = {"search": {"query": "{query} fox", "top_k": 1}}
        adapter = Haystack(pipeline, id="metadata.key", inputs=inputs, output="search.documents")
        assert ids(adapter.retrieve(["red"], k=3)[0]) == ["d1"]
        with pytest.raises(RetrieverError, match="`output` does not fit the output of `run`: no 'ranker'"):
            Haystack(pipeline, output="ranker.documents").retrieve(["fox"])

    def test_a_component_that_takes_an_embedding_needs_a_pipeline(self, library):
        haystack = library("haystack")

        @haystack.component
        class Near:
            @haystack.component.output_types(documents=list)
            def run(self, query_embedding: list):
                return {"documents": []}

        with pytest.raises(RetrieverError, match="takes query_embedding, but not query or text; .* in a pipeline"):
            Haystack(Near())


class TestQdrant:
    def test_a_corpus_in_memory(self, library, corpus):
        library("qdrant_client")
        adapter = Qdrant(embed=embed).index(corpus)
        assert isinstance(adapter, Retriever)
        found = adapter.retrieve(["night owl", "fox"], k=2)
        assert ids(found[0]) == ["d3", "d4"]
        assert found[0][0][1] == pytest.approx(1.0, abs=1e-3)
        assert ids(found[1])[0] == "d1"
        assert adapter.size_in_bytes() == 4 * len(WORDS) * 4
        assert len(adapter.retrieve(["fox"], k=99)[0]) == 4
        assert ids(adapter.index({"x": "fox"}).retrieve(["fox"])[0]) == ["x"]

    def test_an_existing_collection(self, library, corpus):
        qdrant = library("qdrant_client")
        client, models = qdrant.QdrantClient(":memory:"), qdrant.models
        shape = models.VectorParams(size=len(WORDS), distance=models.Distance.DOT)
        client.create_collection("mine", vectors_config=shape)
        points = [
            models.PointStruct(id=n + 1, vector=vector.tolist(), payload={"key": doc, "text": corpus[doc]})
            for n, (doc, vector) in enumerate(zip(corpus, embed(corpus.values()), strict=True))
        ]
        client.upsert("mine", points)
        for setting, expected in [("id", "1"), ("metadata.key", "d1"), ("payload.key", "d1")]:
            adapter = Qdrant(client, embed, "mine", id=setting).index(corpus)
            assert ids(adapter.retrieve(["fox"], k=1)[0]) == [expected]
        assert client.count("mine").count == 4
        with pytest.raises(RetrieverError, match="needs `collection`"):
            Qdrant(client, embed)

    def test_embeddings_are_checked(self, library, corpus):
        library("qdrant_client")
        with pytest.raises(RetrieverError, match="`model` and `embed`, which mean the same"):
            Qdrant(embed=embed, model=embed)
        with pytest.raises(RetrieverError, match=r"4 texts resulted in an array of shape \(4,\)"):
            Qdrant(embed=lambda texts: [1.0] * len(texts)).index(corpus)
        with pytest.raises(RetrieverError, match="nothing is indexed"):
            Qdrant(embed=embed).retrieve(["fox"])


class TestTantivy:
    def test_a_corpus(self, library, corpus):
        library("tantivy")
        adapter = retriever("tantivy").index(corpus)
        assert isinstance(adapter, Retriever)
        assert ids(adapter.retrieve(["run late"], k=9)[0]) == ["d4", "d1"]
        assert ids(adapter.retrieve(["owls"], k=9)[0]) == ["d3"]
        assert ids(retriever("tantivy", {"tokenizer": "default"}).index(corpus).retrieve(["owls"])[0]) == []
        assert adapter.size_in_bytes() > 100
        assert adapter.index({"x": "owl"}).retrieve(["owl"])[0][0][0] == "x"

    def test_scores_equal_the_variant_lucene_times_k1_plus_1(self, library, corpus):
        library("tantivy")
        from steelyard.retrievers import BM25

        ours = BM25(variant="lucene", k1=1.2, b=0.75, tokenizer="whitespace", fill=False).index(corpus)
        theirs = Tantivy(tokenizer="default").index(corpus)
        for query in ("owl", "at night", "the red fox", "winter trains run late"):
            a, b = dict(ours.retrieve([query])[0]), dict(theirs.retrieve([query])[0])
            assert a.keys() == b.keys()
            assert b == pytest.approx({doc: (1.2 + 1) * score for doc, score in a.items()}, rel=1e-5)

    @pytest.mark.parametrize("query", ["", "?!", 'owl AND "', "-owl (night", "text:owl^2", "owl_night", "NOT owl", "*"])
    def test_its_query_language_is_not_used(self, library, corpus, query):
        library("tantivy")
        found = Tantivy().index(corpus).retrieve([query])[0]
        assert ("d3" in ids(found)) == ("owl" in query)

    def test_an_index_on_disk(self, library, tmp_path, corpus):
        tantivy = library("tantivy")
        schema = tantivy.SchemaBuilder()
        schema.add_text_field("key", stored=True, tokenizer_name="raw")
        schema.add_text_field("title")
        schema.add_text_field("body")
        index = tantivy.Index(schema.build(), path=str(tmp_path))
        writer = index.writer(15_000_000, 1)
        writer.add_document(tantivy.Document(key="d1", title="fox", body="it runs"))
        writer.commit()
        writer.wait_merging_threads()
        adapter = Tantivy(tmp_path, fields="title body", id="key").index(corpus)
        assert [ids(found) for found in adapter.retrieve(["fox", "runs", "owl"])] == [["d1"], ["d1"], []]
        with pytest.raises(RetrieverError, match="has no 'id'; it has key"):
            Tantivy(tmp_path.name, fields="title", folder=tmp_path.parent).retrieve(["fox"])
        with pytest.raises(RetrieverError, match="there is no tantivy index in"):
            Tantivy(tmp_path / "elsewhere")

    @pytest.mark.parametrize(
        ("tokenizer", "query", "wanted"),
        [
            ("whitespace", "Red", ["a"]),
            ("whitespace", "the Red fox", ["a"]),
            ("whitespace", "C++ (x", ["c"]),
            ("whitespace", "state-of-the-art red AND fox OR", ["b"]),
            ("whitespace", "a\u00a0word", ["d"]),
            ("whitespace", " \n", []),
            ("raw", "The Red Fox", ["a"]),
            ("raw", 'C++ "\\ (x\n*', ["c"]),
            ("raw", "Red", []),
            ("raw", "", []),
        ],
    )
    @pytest.mark.parametrize("existing", [False, True])
    def test_tokenizers_that_keep_capitals(self, library, tmp_path, tokenizer, query, wanted, existing):
        tantivy = library("tantivy")
        corpus = {"a": "The Red Fox", "b": "state-of-the-art OR-gate", "c": 'C++ "\\ (x\n*', "d": "a\u00a0word"}
        adapter = Tantivy(tokenizer=tokenizer)
        if existing:
            schema = tantivy.SchemaBuilder().add_text_field("id", stored=True, tokenizer_name="raw")
            schema.add_text_field("text", tokenizer_name=tokenizer).add_text_field("title").add_text_field(
                "no", stored=True
            )
            index = tantivy.Index(schema.build(), path=str(tmp_path))
            writer = index.writer(15_000_000, 1)
            for doc, text in corpus.items():
                writer.add_document(tantivy.Document(id=doc, text=text, title="Owls"))
            writer.commit()
            writer.wait_merging_threads()
            adapter = Tantivy(tmp_path, fields="text title")
            assert len(adapter.retrieve([f"OWLS {query}"])[0]) == 4
        assert ids(adapter.index(corpus).retrieve([query])[0]) == wanted

    def test_bad_use(self, library, corpus):
        library("tantivy")
        with pytest.raises(RetrieverError, match="nothing is indexed"):
            Tantivy().retrieve(["fox"])
        with pytest.raises(RetrieverError, match="could not index the corpus"):
            Tantivy(tokenizer="no-such").index(corpus)


class TestBM25S:
    def test_a_corpus(self, library, corpus):
        library("bm25s")
        adapter = retriever("bm25s").index(corpus)
        assert isinstance(adapter, Retriever)
        assert ids(adapter.retrieve(["night owl"], k=99)[0]) == ["d3", "d4"]
        assert adapter.retrieve(["", "the", "zebra"]) == [[], [], []]
        assert adapter.retrieve([]) == []
        assert adapter.size_in_bytes() > 100
        assert ids(adapter.index({"x": "owl", "y": "fox"}).retrieve(["owl"])[0]) == ["x"]

    def test_scores_equal_the_same_formula_here(self, library, corpus):
        library("bm25s")
        from steelyard.retrievers import BM25

        ours = BM25(variant="lucene", tokenizer="whitespace", fill=False)
        theirs = BM25S(stopwords=None)
        plain = {doc: " ".join(word for word in text.split() if len(word) > 1) for doc, text in corpus.items()}
        for query in ("owl", "at night", "red fox", "winter trains run late"):
            a, b = (dict(ours.index(plain).retrieve([query])[0]), dict(theirs.index(plain).retrieve([query])[0]))
            assert b == pytest.approx(a, rel=1e-5)

    def test_a_stemmer(self, library, corpus):
        library("bm25s")
        library("Stemmer")
        assert ids(BM25S(stemmer="english").index(corpus).retrieve(["owls"])[0]) == ["d3"]
        assert ids(BM25S().index(corpus).retrieve(["owls"])[0]) == []
        with pytest.raises(RetrieverError, match="unknown stemmer 'klingon'"):
            BM25S(stemmer="klingon")

    def test_settings_are_checked(self, library):
        library("bm25s")
        with pytest.raises(RetrieverError, match="unknown method 'bm26'"):
            BM25S(method="bm26")


class TestPyTerrier:
    def test_a_transformer(self, library):
        pt, pd = library("pyterrier"), library("pandas")

        def search(frame):
            rows = [
                (qid, query, doc, score)
                for qid, query in zip(frame["qid"], frame["query"], strict=True)
                for doc, score in ([("d1", 1.0), ("d2", 2.0)] if query != "nothing" else [])
            ]
            return pd.DataFrame(rows, columns=["qid", "query", "docno", "score"])

        adapter = PyTerrier(pt.apply.generic(search), name="mine")
        found = adapter.retrieve(["a", "nothing", "b"], k=5)
        assert found == [[("d2", 2.0), ("d1", 1.0)], [], [("d2", 2.0), ("d1", 1.0)]]
        assert len((adapter.retrieve(["a"], k=1))[0]) == 1

    def test_ranks_are_used_and_a_missing_column_is_reported(self, library):
        pt, pd = library("pyterrier"), library("pandas")
        frame = pd.DataFrame({"qid": ["0", "0"], "docno": ["d1", "d2"], "score": [2.0, 1.0], "rank": [1, 0]})
        ranked = pt.apply.generic(lambda given: frame)
        assert PyTerrier(ranked).retrieve(["a"]) == [[("d2", 1.0), ("d1", 2.0)]]
        with pytest.raises(RetrieverError, match="no column 'doc_id'; it has qid, docno, score, rank"):
            PyTerrier(ranked, id="doc_id").retrieve(["a"])


@pytest.mark.parametrize(
    ("name", "module", "settings"),
    [
        ("langchain", "langchain_core", {"target": "json:dumps"}),
        ("llama-index", "llama_index", {"target": "json:dumps"}),
        ("haystack", "haystack", {"target": "json:dumps"}),
        ("pyterrier", "pyterrier", {"target": "json:dumps"}),
        ("qdrant", "qdrant_client", {"embed": embed}),
        ("tantivy", "tantivy", {}),
        ("bm25s", "bm25s", {}),
    ],
)
def test_a_missing_package_is_reported_with_its_install_command(monkeypatch, name, module, settings):
    for loaded in [loaded for loaded in sys.modules if loaded.split(".")[0] == module]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setattr(sys, "meta_path", [_Absent(module), *sys.meta_path])
    with pytest.raises(RetrieverError) as error:
        retriever(name, settings)
    assert f"pip install 'steelyard[{name}]'" in str(error.value)


class _Absent:
    """A finder for which a package does not exist."""

    def __init__(self, package):
        self.package = package

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == self.package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=self.package)
        return None
