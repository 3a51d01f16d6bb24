"""The checks of drafts without a model: planted faults, real questions as controls, and generated questions."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from needs import needs_shared, shared_data
from steelyard.judging.draft_checks import (
    answer_in_question,
    content_words,
    copies_source,
    find_span,
    not_standalone,
    overlap,
    repeats,
    too_general,
)


@pytest.mark.parametrize(
    "question",
    [
        "What does this passage say about tolls?",
        "According to the text, who paid the toll?",
        "Which tolls are mentioned above?",
        "What is the purpose of the given document?",
        "What is the author's view of tolls?",
        "What methods were used in the study?",
        "Why did he leave Vienna?",
        "What happened to her after 1920?",
        "Which books did she write?",
        "Why did it fail?",
        "What are these?",
    ],
)
def test_questions_that_point_at_something_unseen_are_not_standalone(question: str) -> None:
    assert not_standalone(question)


@pytest.mark.parametrize(
    "question",
    [
        "How long does it take to fly to Rome?",
        "Is it legal to record a call?",
        "Where do they film Game of Thrones?",
        "What did Clinton say when he was investigated?",
        "How do young sharks eat their food?",
        "How large is the context window of the model?",
        "How do I sign a document with the text editor?",
        "What does the article by Fox on plastids report?",
        "What did the study of E. coli proteins find?",
        "What is this year's rate of inflation in France?",
    ],
)
def test_questions_that_name_what_they_ask_about_are_standalone(question: str) -> None:
    assert not_standalone(question) == ""


def test_general_questions_copies_and_answers_are_found() -> None:
    assert [bool(too_general(each)) for each in ("What is it?", "What is the main idea?", "Why?")] == [True] * 3
    assert not any(map(too_general, ("What is apatite?", "Who was Ada?", "税率はいくらですか")))
    source = "In 1840 the council of the old town decided to deepen the harbour for larger ships from the north."
    assert copies_source("Who decided to deepen the harbour for larger ships from the north?", source)
    assert not copies_source("Which authority made the port deeper in the 19th century?", source)
    assert not copies_source("Who decided to deepen the harbour?", source), "a few words in a row are no copy"
    assert answer_in_question("Did the council decide in 1840?", ["in 1840"])
    assert not answer_in_question("When did the council decide?", ["In 1840 the council decided"])
    assert overlap("Who deepened the harbours?", source) == 1.0


def test_near_repeats_are_the_same_content_words() -> None:
    earlier = [frozenset(content_words("When was the harbour of Wismar deepened?"))]
    assert repeats("In which year was Wismar's harbour deepened?", earlier) is None
    assert repeats("When was it that the harbour of Wismar was deepened?", earlier) == 0
    assert repeats("When was the harbour of Lübeck deepened?", earlier) is None


@pytest.mark.parametrize(
    ("text", "quote", "found"),
    [
        ("He said “go\n on” twice.", 'said "go on"', "said “go\n on”"),
        ("It’s the city's rule.", "It's the city’s rule", "It’s the city's rule"),
        ("Costs (2+2)*3 apply.", "costs (2+2)*3", None),
        ("Costs (2+2)*3 apply.", " Costs  (2+2)*3 ", "Costs (2+2)*3"),
        ("Nothing here.", "   ", None),
        ("Almost the words.", "Almost these words.", None),
    ],
)
def test_a_span_is_equal_up_to_white_space_and_quotation_marks(text: str, quote: str, found: str | None) -> None:
    span = find_span(text, quote)
    assert (None if span is None else text[slice(*span)]) == found


@given(st.text(st.characters(exclude_characters="“”„‟«»″‘’‚‛′`"), max_size=60), st.data())
def test_every_slice_of_a_text_is_found_in_it(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    quote = text[start : data.draw(st.integers(start, len(text)))]
    span = find_span(text, quote)
    assert (None if span is None else text[slice(*span)].split()) == (quote.split() or None)


def _texts(path: Path) -> list[str]:
    if path.suffix == ".jsonl":
        return [json.loads(line)["text"] for line in path.read_text("utf-8").splitlines()]
    return [line.split("\t")[-1] for line in path.read_text("utf-8").splitlines()]


@needs_shared
@pytest.mark.parametrize(
    ("collection", "most"), [("scifact", 0.05), ("cranfield", 0.05), ("dl2019", 0.05), ("unanswerable", 0.05)]
)
def test_real_questions_are_seldom_flagged(collection: str, most: float) -> None:
    folder = shared_data(collection)
    path = folder / "queries.jsonl" if (folder / "queries.jsonl").exists() else folder / "queries.tsv"
    questions = _texts(path)
    assert sum(bool(not_standalone(question)) for question in questions) <= most * len(questions)
    assert sum(bool(too_general(question)) for question in questions) <= 0.01 * len(questions)


@needs_shared
@pytest.mark.slow
def test_generated_questions_with_gold_spans() -> None:
    folder = shared_data("chunk-spans")
    texts = {path.stem: path.read_text("utf-8") for path in (folder / "corpora").iterdir()}
    found = dict.fromkeys(("span missing", "not standalone", "too general", "copies", "answer"), 0)
    with (folder / "questions_df.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    earlier: list[frozenset[str]] = []
    for row in rows:
        text, question = texts[row["corpus_id"]], row["question"]
        spans = [find_span(text, each["content"]) for each in json.loads(row["references"])]
        kept = [span for span in spans if span is not None]
        found["span missing"] += len(spans) - len(kept)
        found["not standalone"] += bool(not_standalone(question))
        found["too general"] += bool(too_general(question))
        around = text[max(0, kept[0][0] - 600) : kept[0][1] + 600]
        found["copies"] += bool(copies_source(question, around))
        found["answer"] += bool(answer_in_question(question, [text[slice(*span)] for span in kept]))
        assert repeats(question, earlier) is None
        earlier.append(frozenset(content_words(question)))
    assert len(rows) == 472
    assert found == {"span missing": 0, "not standalone": 22, "too general": 0, "copies": 10, "answer": 0}


@needs_shared
def test_generated_questions_without_spans() -> None:
    """Of TREC 2023's queries, two by GPT-4 ask about 'the passage' and 'the author', as one reads them."""
    flagged: dict[str, list[str]] = {"real": [], "t5": [], "gpt4": [], "multihop": []}
    rows = (shared_data("dl2023-queries") / "queries.tsv").read_text("utf-8").splitlines()[1:]
    for _, kind, text in (row.split("\t") for row in rows):
        flagged[kind] += [text] if not_standalone(text) or too_general(text) else []
    questions = _texts(shared_data("multihop-rag") / "queries.jsonl")
    flagged["multihop"] = [text for text in questions if not_standalone(text) or too_general(text)]
    assert (len(rows), len(questions)) == (700, 500)
    assert {kind: len(texts) for kind, texts in flagged.items()} == {"real": 0, "t5": 0, "gpt4": 2, "multihop": 0}
    assert all("the passage" in text or "the author" in text for text in flagged["gpt4"])
