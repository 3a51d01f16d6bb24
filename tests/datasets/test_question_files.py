"""Questions and documents in files of any form, and what is wrong with them."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import steelyard as sy
from steelyard.cli import run as command
from steelyard.errors import SteelyardError
from steelyard.io.datasets import read_corpus, read_queries

TWO = {"q1": "Why, and when?", "q2": "Where?"}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", 'question\n"Why, and when?"\nWhere?\n'),
        ("one-column.csv", "question\nWhy, and when?\nWhere?\n"),
        ("excel.csv", "\ufeffquestion;topic\r\nWhy, and when?;a\r\nWhere?;b\r\n"),
        ("declared.csv", "sep=;\nQuestion;topic\nWhy, and when?;a\nWhere?;b\n"),
        ("a.tsv", "topic\tQuery\na\tWhy, and when?\nb\tWhere?\n"),
        ("a.jsonl", '{"prompt": "Why, and when?"}\n{"prompt": "Where?"}\n'),
        ("a.json", '["Why, and when?", "Where?"]'),
        ("b.json", '{"q1": "Why, and when?", "q2": {"text": "Where?", "topic": "b"}}'),
        ("c.json", '{"version": 1, "questions": [{"input": "Why, and when?"}, {"input": "Where?"}]}'),
        ("a.txt", "Why, and when?\n\nWhere?\n"),
        ("no-suffix", "Why, and when?\nWhere?\n"),
    ],
)
def test_every_form_gives_the_same_questions(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content, newline="")
    queries, _ = read_queries(tmp_path / name)
    assert dict(queries) == TWO
    if "topic" in content:
        assert queries.column("topic")["q2"] == "b"
    (tmp_path / "bench.yaml").write_text(f"queries: {name}")
    assert dict(sy.Dataset.of(queries=tmp_path / name).queries) == TWO


def test_two_columns_of_questions_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("question,Topic,topic,topic\nWhy?,a,b,c\n")
    assert dict(read_queries(tmp_path / "a.csv")[0]) == {"q1": "Why?"}
    (tmp_path / "b.csv").write_text("question,question\nWhy?,Where?\n")
    with pytest.raises(SteelyardError, match=r"b\.csv: two columns are called 'question'; rename one"):
        read_queries(tmp_path / "b.csv")


def test_parquet_and_lists_and_frames(tmp_path: Path) -> None:
    frame = pl.DataFrame({"id": [7, 8], "text": list(TWO.values())})
    frame.write_parquet(tmp_path / "a.parquet")
    for source in (tmp_path / "a.parquet", frame):
        assert dict(read_queries(source)[0]) == dict(zip(("7", "8"), TWO.values(), strict=True))
    dataset = sy.Dataset.of(queries=list(TWO.values()), corpus=["one", "two"])
    assert dict(dataset.queries) == TWO
    assert dict(dataset.corpus) == {"d1": "one", "d2": "two"}
    assert not len(sy.Dataset.of(queries=TWO).qrels.queries)
    with pytest.raises(sy.InputError, match="needs queries"):
        sy.Dataset.of({"d1": "one"})


def test_columns_are_named_and_ids_stay_when_questions_are_added(tmp_path: Path) -> None:
    file = tmp_path / "fragen.csv"
    file.write_text("nr;frage;question\n7;Warum?;x\n9;Wo?;y\n")
    named = {"path": str(file), "column": "frage", "id": "nr"}
    assert dict(read_queries(named)[0]) == {"7": "Warum?", "9": "Wo?"}
    with pytest.raises(sy.InputError, match="no column 'farge'.*Did you mean frage"):
        read_queries({"path": str(file), "column": "farge"})
    file.write_text("question\nWhy?\nWhere?\n")
    before = dict(read_queries(file)[0])
    file.write_text("question\nWhy?\nWhere?\nWhen?\n")
    assert dict(read_queries(file)[0]) == before | {"q3": "When?"}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("two.csv", "id,question\n1,a\n2,b\n1,c\n", "questions 1 and 3 have the id '1'"),
        ("ids.csv", "id,question\n1,a\n,b\n", "question 2: id is empty"),
        ("unknown.csv", "frage,antwort\na,b\n", r"no column .* holds the questions; its columns are frage, antwort"),
        ("wide.csv", "question,topic\na,b,c\n", "line 2: 3 columns, and the header has 2"),
        ("header.csv", "question\n", "a header line and nothing else"),
        ("empty.csv", "", "the file is empty"),
        ("blank.csv", "question,topic\n,a\n", "has no questions"),
        ("sheet.xlsx", "PK", "save it as CSV"),
        ("bad.jsonl", '{"question": "a"}\n{"question"\n', "line 2"),
        ("number.json", "[1, 2]", "question 1 is a int; expected text"),
    ],
)
def test_what_is_wrong_is_one_clear_message(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(sy.InputError, match=message) as error:
        read_queries(tmp_path / name)
    assert len(str(error.value)) < 700
    assert name in str(error.value)


def codes(notes: Any) -> set[str]:
    return {note.code for note in notes}


def test_what_is_unusual_is_a_note_and_nothing_is_lost(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes("question\nWas für ein Käse?\n".encode("latin-1"))
    queries, notes = read_queries(file)
    assert queries["q1"] == "Was für ein Käse?"
    assert "read-as-windows-1252" in codes(notes)
    file.write_text("id,question\na,x\nb,\nc,z\n")
    queries, notes = read_queries(file)
    assert dict(queries) == {"a": "x", "c": "z"}
    assert str(notes[0]) == "1 question is empty and was left out (row 2)"
    file.write_text("question\n" + "x" * 10_000_000 + "\n")
    queries, notes = read_queries(file)
    assert len(queries["q1"]) == 10_000_000
    assert "long-questions" in codes(notes)
    assert all(len(str(note)) < 300 for note in notes)


def test_validate_recognises_questions(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "questions.csv"
    file.write_text("question,topic\nWhy?,a\nWhere?,b\n")
    assert command(["validate", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "questions, format csv" in printed
    assert "2 questions, the first is 'Why?'; columns to slice by: topic" in printed
    broken = tmp_path / "qrels.txt"
    broken.write_text("q1 0 d1\nq2 0 d1 1\n")
    assert command(["validate", str(broken)]) == 2


def test_corpus_in_every_form(tmp_path: Path) -> None:
    texts = {"a": "one", "b": "two"}
    (tmp_path / "c.csv").write_text("id,content,lang\na,one,en\nb,two,de\n")
    (tmp_path / "c.jsonl").write_text("".join(json.dumps({"_id": doc, "text": t}) + "\n" for doc, t in texts.items()))
    pl.DataFrame({"doc_id": ["a", "b"], "text": ["one", "two"]}).write_parquet(tmp_path / "c.parquet")
    with sqlite3.connect(tmp_path / "c.db") as database:
        database.execute("create table passages (key text, body text, name text)")
        database.executemany("insert into passages values (?, ?, '')", texts.items())
    stored = {"sqlite": "c.db", "table": "passages", "id": "key", "text": "body"}
    before = (tmp_path / "c.db").read_bytes()
    for source in ("c.csv", "c.jsonl", "c.parquet", stored, texts, {"path": "c.csv", "text": "content", "id": "id"}):
        corpus, _ = read_corpus(source, tmp_path)
        assert dict(corpus) == texts, source
    assert (tmp_path / "c.db").read_bytes() == before
    assert read_corpus("c.csv", tmp_path)[0].metadata["b"] == {"lang": "de"}
    (tmp_path / "docs" / "sub").mkdir(parents=True)
    (tmp_path / "docs" / "a.md").write_text("# One")
    (tmp_path / "docs" / "sub" / "b.txt").write_text("two")
    assert dict(read_corpus("docs", tmp_path)[0]) == {"a.md": "# One", "sub/b.txt": "two"}
    with pytest.raises(SteelyardError, match=r"the corpus in sqlite: unknown column .*'bdy'.*Did you mean body"):
        read_corpus({**stored, "text": "bdy"}, tmp_path)


def test_a_dataset_folder_with_files_in_other_forms(tmp_path: Path) -> None:
    (tmp_path / "corpus.csv").write_text("id,text\nd1,one\nd2,two\n")
    (tmp_path / "queries.csv").write_text("id,text,topic\nx,Why?,a\ny,Where?,b\n")
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nx\td1\t1\n")
    dataset = sy.Dataset.read(tmp_path, corpus="corpus.csv", queries="queries.csv")
    assert (len(dataset.corpus), len(dataset.queries), len(dataset.qrels)) == (2, 2, 1)
    assert dataset.queries.column("topic") == {"x": "a", "y": "b"}


def test_questions_are_not_their_own_documents(tmp_path: Path) -> None:
    (tmp_path / "questions.csv").write_text("id,question,topic\n1,Why is it so?,a\n2,Where is it now?,b\n")
    with pytest.raises(sy.InputError, match="every question would be its own relevant document"):
        sy.Dataset.read(tmp_path / "questions.csv", queries="question", document="all")
