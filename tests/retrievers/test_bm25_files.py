"""BM25 from a file, and saved indexes: equal answers, and an error for whatever is damaged."""

from __future__ import annotations

import copy
import json
import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import steelyard as sy
from needs import needs_kernel
from steelyard.errors import InputError, SteelyardError
from steelyard.retrievers import BM25, RetrieverError, index_file

VARIANTS = ("okapi", "plus", "l", "lucene", "robertson", "atire")
CORPUS = {
    "d1": "A red fox, and a grey wolf.",
    "d2": "naïve – “foxes” run",
    "d3": "",
    "ä4": "東京都 wolves ½",
    "5": "running\nred deer",
}
QUERIES = ["red foxes", "wolf 東京", "naive", "", "½ red red"]


def write_corpus(path: Path, records: list[Any]) -> Path:
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), "utf-8")
    return path


@pytest.fixture
def corpus_file(tmp_path: Path) -> Path:
    return write_corpus(tmp_path / "corpus.jsonl", [{"_id": doc, "text": text} for doc, text in CORPUS.items()])


@pytest.mark.parametrize("tokenizer", ["default", "words", "whitespace", "ngrams:2", str.split])
def test_a_file_is_indexed_as_its_documents(tokenizer: Any, corpus_file: Path, form: str) -> None:
    found = BM25(tokenizer=tokenizer).index(corpus_file).retrieve(QUERIES, k=4)
    assert found == BM25(tokenizer=tokenizer).index(CORPUS).retrieve(QUERIES, k=4)
    assert found == BM25(tokenizer=tokenizer).index(str(corpus_file.parent)).retrieve(QUERIES, k=4)


LINES = [
    {"_id": "a", "title": "Foxes", "text": "of the wood"},
    {"title": "", "text": "no title", "_id": "b", "metadata": {"url": "x", "n": [1, 2.5e3, -1, None, True, {}]}},
    {"_id": 7, "text": "a number as id"},
    {"id": "c", "contents": "other names"},
    {"_id": "d", "text": None},
    {"_id": "e", "text": 'tabs\tand "quotes" \\ / \b\f\r\n', "group": "g", "links": ["a"]},
    {"_id": "f\u00e9", "title": "Καλός", "text": "\u2019 \U0001f600 ﬁ"},
]


def test_lines_of_every_form_are_read_as_by_the_reader_of_datasets(tmp_path: Path, form: str) -> None:
    lines = [json.dumps(record, ensure_ascii=number % 2 == 0) for number, record in enumerate(LINES)]
    text = "\n \n" + "\r\n".join(lines) + '\n{"_id":"g","text":"tight"}\n\t\n  { "_id" : "h" , "text" : "loose" }  '
    (tmp_path / "corpus.jsonl").write_text(text, "utf-8", newline="")
    write_corpus(tmp_path / "queries.jsonl", [{"_id": "q", "text": "fox"}])
    dataset = sy.Dataset.read(tmp_path, judged=False)
    assert len(dataset.corpus) == len(LINES) + 2
    for tokenizer in ("default", "whitespace"):
        expected = BM25("lucene", tokenizer=tokenizer).index(dataset.corpus)
        found = BM25("lucene", tokenizer=tokenizer).index(tmp_path)
        queries = [*dataset.corpus.values(), "quotes fox"]
        assert found.retrieve(queries, 20) == expected.retrieve(queries, 20)
        assert found.size_in_bytes() == expected.size_in_bytes()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"_id": "x"}', "line 2: no text"),
        ('{"_id": "", "text": "a"}', "line 2: _id is empty"),
        ('{"_id": "x", "text": "a", "text": "b"}', "line 2"),
        ('{"_id": "x", "text": "a"', "line 2: not JSON"),
        ('{"_id": "x", "text": "a"} x', "line 2: not JSON"),
        ('{"_id": "x", "text": "a\tb"}', "line 2: not JSON"),
        ('{"_id": "x", "text": "\\ud800"}', "half of a surrogate pair"),
        ('{"_id": "x", "text": "a", "links": 3}', "links is"),
        ('{"_id": "x", "text": "a", "n": 01}', "line 2: not JSON"),
        ('{"_id": "x", "text": 3}', "line 2: text is"),
        ("[1]", "line 2: a list"),
        ('{"_id": "d1", "text": "again"}', "1 document id occurs again, the first is 'd1'"),
    ],
)
def test_a_wrong_line_is_an_error(line: str, message: str, tmp_path: Path, form: str) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text('{"_id": "d1", "text": "fine"}\n' + line + '\n{"_id": "d2", "text": "fine"}\n', "utf-8")
    with pytest.raises(InputError, match=message):
        BM25().index(path)


def test_a_file_without_documents_is_an_error(tmp_path: Path, form: str) -> None:
    (tmp_path / "corpus.jsonl").write_text("\n \n")
    with pytest.raises(InputError, match="the file is empty"):
        BM25().index(tmp_path)
    with pytest.raises(InputError, match="there is no such file"):
        BM25().index(tmp_path / "corpus.json")


@pytest.mark.slow
@settings(max_examples=60)
@given(
    st.lists(
        st.fixed_dictionaries(
            {"text": st.text()},
            optional={"title": st.text(), "extra": st.recursive(st.none() | st.floats() | st.text(), st.lists)},
        ),
        min_size=1,
        max_size=4,
    ),
    st.booleans(),
)
def test_any_texts_in_a_file_have_the_same_index(tmp_path: Path, records: list[Any], escaped: bool) -> None:
    lines = [json.dumps({"_id": f"d{n}", **each}, ensure_ascii=escaped) for n, each in enumerate(records)]
    (tmp_path / "corpus.jsonl").write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
    texts = {
        f"d{n}": f"{each['title']}\n{each['text']}" if each.get("title") else each["text"]
        for n, each in enumerate(records)
    }
    expected = BM25("lucene").index(texts)
    found = BM25("lucene").index(tmp_path)
    queries = list(texts.values())
    assert found.retrieve(queries, 4) == expected.retrieve(queries, 4)


# Saved indexes


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_saved_index_gives_the_same_answers(variant: Any, tmp_path: Path, form: str) -> None:
    bm25 = BM25(variant, k1=1.1, b=0.3, fill=False, name="mine").index(CORPUS)
    bm25.save(tmp_path / "index.bm25")
    loaded = BM25.load(tmp_path / "index.bm25")
    assert loaded.label == "mine"
    assert loaded.settings() == bm25.settings()
    assert loaded.retrieve(QUERIES, k=4) == bm25.retrieve(QUERIES, k=4)
    assert loaded.size_in_bytes() == bm25.size_in_bytes()
    assert copy.deepcopy(loaded).retrieve(QUERIES, k=4) == bm25.retrieve(QUERIES, k=4)
    loaded.save(tmp_path / "again.bm25")
    assert (tmp_path / "again.bm25").read_bytes() == (tmp_path / "index.bm25").read_bytes()


def test_native_and_portable_files_are_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    BM25("l").index(CORPUS).save(tmp_path / "native")
    monkeypatch.setenv("STEELYARD_NATIVE", "0")
    BM25("l").index(CORPUS).save(tmp_path / "portable")
    assert (tmp_path / "native").read_bytes() == (tmp_path / "portable").read_bytes()


def test_an_index_of_a_file_is_saved(corpus_file: Path, form: str) -> None:
    bm25 = BM25().index(corpus_file)
    bm25.save(corpus_file.with_name("index"))
    assert BM25.load(corpus_file.with_name("index")).retrieve(QUERIES, 3) == bm25.retrieve(QUERIES, 3)


def test_odd_tokens_and_ids_are_saved(tmp_path: Path) -> None:
    def split(text: str) -> list[str]:
        return text.split("|")

    bm25 = BM25("lucene", tokenizer=split).index({"a\nb": "x \n|\ud800|", "": "|", "c": "x \n"})
    bm25.save(tmp_path / "index")
    loaded = BM25.load(tmp_path / "index", tokenizer=split)
    assert loaded.retrieve(["x \n", "\ud800", "|"], 3) == bm25.retrieve(["x \n", "\ud800", "|"], 3)
    with pytest.raises(SteelyardError):
        BM25.load(tmp_path / "index")
    with pytest.raises(RetrieverError, match=r"other settings \(tokenizer\)"):
        BM25.load(tmp_path / "index", tokenizer=str.split)


def test_a_corpus_of_empty_texts_is_saved(tmp_path: Path, form: str) -> None:
    BM25().index({"d1": "", "d2": "the"}).save(tmp_path / "index")
    assert BM25.load(tmp_path / "index").retrieve(["fox"], 1) == [[("d1", 0.0)]]


def test_other_settings_do_not_restore_an_index(tmp_path: Path) -> None:
    BM25(k1=1.2).index(CORPUS).save(tmp_path / "index")
    assert BM25(k1=1.2).restore(tmp_path / "index").retrieve(["deer"], 1)[0][0][0] == "5"
    with pytest.raises(RetrieverError, match=r"other settings \(k1, b\)"):
        BM25(k1=1.3, b=0.1).restore(tmp_path / "index")


def test_nothing_is_saved_before_indexing(tmp_path: Path) -> None:
    with pytest.raises(RetrieverError, match="nothing is indexed"):
        BM25().save(tmp_path / "index")
    with pytest.raises(InputError, match="cannot be written"):
        BM25().index(CORPUS).save(tmp_path / "missing" / "index")
    with pytest.raises(InputError, match="no such saved index"):
        BM25.load(tmp_path / "index")


@pytest.mark.slow
def test_a_damaged_index_is_an_error(tmp_path: Path, form: str) -> None:
    """Bytes changed in turn, and other lengths: an InputError, except for a byte between two arrays (not used)."""
    path, draw = tmp_path / "index", random.Random(0)
    bm25 = BM25("l").index(CORPUS)
    bm25.save(path)
    whole, expected = path.read_bytes(), bm25.retrieve(QUERIES, 3)
    refused = 0
    places = range(0, len(whole), 5)
    for place in places:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        try:
            assert BM25.load(path).retrieve(QUERIES, 3) == expected
        except InputError:
            refused += 1
    assert refused > 0.5 * len(places)
    for length in [*range(0, len(whole), 37), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(InputError):
            BM25.load(path)
    path.write_bytes(whole + b"\0")
    with pytest.raises(InputError, match="damaged"):
        BM25.load(path)
    for other in (b"", b"{}", os.urandom(500)):
        path.write_bytes(other)
        with pytest.raises(InputError, match=r"damaged|not a saved BM25 index"):
            BM25.load(path)


def test_a_file_that_is_truncated_while_it_is_open_is_an_error(tmp_path: Path, form: str) -> None:
    BM25().index(CORPUS).save(tmp_path / "index")
    loaded = BM25.load(tmp_path / "index")
    os.truncate(tmp_path / "index", 100)
    with pytest.raises(InputError, match="changed while it was read"):
        loaded.retrieve(["fox"], 1)


def test_a_file_that_is_replaced_keeps_the_open_index(tmp_path: Path, form: str) -> None:
    bm25 = BM25().index(CORPUS)
    bm25.save(tmp_path / "index")
    loaded = BM25.load(tmp_path / "index")
    BM25().index({"other": "text"}).save(tmp_path / "index")
    assert loaded.retrieve(QUERIES, 3) == bm25.retrieve(QUERIES, 3)


def large_index(path: Path) -> dict[str, Any]:
    """An index of 5,000 documents, and where its arrays are."""
    draw = np.random.default_rng(0)
    corpus = {f"d{n}": " ".join(f"w{w}" for w in draw.zipf(1.3, 12)) for n in range(5000)}
    BM25("lucene", tokenizer="whitespace").index(corpus).save(path)
    whole = path.read_bytes()
    arrays: dict[str, Any] = json.loads(whole[56 : 56 + int.from_bytes(whole[16:24], "little")])["arrays"]
    return arrays


@pytest.mark.parametrize("name", ["docs", "codes"])
def test_a_zeroed_block_of_postings_is_an_error_of_every_search(tmp_path: Path, name: str, form: str) -> None:
    path = tmp_path / "index"
    first = large_index(path)[name]["first"]
    data = bytearray(path.read_bytes())
    data[first + 4096 : first + 8192] = bytes(4096)
    path.write_bytes(data)
    loaded = BM25.load(path)
    for _ in range(2):
        with pytest.raises(InputError, match=f"the saved index is damaged: the checksum of {name} is wrong"):
            loaded.retrieve(["w1"], 10)


def test_a_forked_process_checks_the_postings_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "index"
    entry = large_index(path)["docs"]
    data = bytearray(path.read_bytes())
    data[entry["first"]] ^= 1
    path.write_bytes(data)
    # As in a forked process: the thread has ended before it computed anything.
    monkeypatch.setattr(index_file.Thread, "start", lambda self: None)
    monkeypatch.setattr(index_file.Thread, "join", lambda self: None)
    with pytest.raises(InputError, match="the checksum of docs is wrong"):
        BM25.load(path).retrieve(["w1"], 10)


@needs_kernel
def test_codes_of_a_damaged_file_are_not_followed(tmp_path: Path) -> None:
    """Postings are searched before their checksum is known: documents and codes out of range must do no harm."""
    path, draw = tmp_path / "index", np.random.default_rng(0)
    arrays = large_index(path)
    data = bytearray(path.read_bytes())
    for name in ("docs", "codes"):
        size = arrays[name]["count"] * int(arrays[name]["type"][2])
        data[arrays[name]["first"] : arrays[name]["first"] + size] = draw.bytes(size)
    path.write_bytes(data)
    loaded = BM25.load(path)
    for k in (1, 10, 6000):
        with pytest.raises(InputError, match="checksum"):
            loaded.retrieve(["w1 w2 w30", "w1", "w100 w200 w100"], k)
