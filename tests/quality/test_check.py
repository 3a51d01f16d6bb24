"""check: planted defects in clean parts of real collections are found, each effect is what recomputing gives."""

from __future__ import annotations

import json
import random
from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pytest

import steelyard as sy
from needs import shared_data
from steelyard.cli import run as steelyard
from steelyard.datasets.duplicates import near_duplicates

NAMES = ("scifact", "cranfield", "docs-rag", "faq-ja")
MEASURE = "nDCG@10"


@dataclass
class Data:
    """A collection that a test may change."""

    corpus: dict[str, str]
    queries: dict[str, dict[str, str]]
    rows: list[tuple[str, str, float, str | None]]
    runs: dict[str, dict[str, list[str] | dict[str, float]]]
    measures: list[str] = field(default_factory=lambda: [MEASURE, "RR@10", "R@20"])

    def dataset(self) -> sy.Dataset:
        qrels = sy.Qrels.from_rows(self.rows, list(self.queries))
        return sy.Dataset.of(self.corpus, self.queries, qrels, name="planted")

    def check(self) -> sy.Check:
        return sy.check(self.dataset(), self.runs, self.measures)

    def means(self, queries=None) -> dict[str, float]:
        """The mean of every run, by evaluate; of some queries if they are given."""
        qrels = self.dataset().qrels
        found = {}
        for name, run in self.runs.items():
            scores = sy.evaluate(qrels, run, self.measures[:1])
            values = dict(zip(scores.queries, scores.values(self.measures[0]).tolist(), strict=True))
            found[name] = float(np.mean([values[query] for query in queries or values]))
        return found

    def relevant(self, query: str) -> list[str]:
        return [doc for owner, doc, grade, _ in self.rows if owner == query and grade > 0]


def grams(text: str, size: int) -> set[str]:
    text = " ".join(text.lower().split())
    return {text[start : start + size] for start in range(len(text))}


@cache
def _clean(name: str) -> Data:
    """40 queries and up to 250 documents of a collection, without what is wrong with the collection itself."""
    source = sy.Dataset.read(shared_data(name))
    texts = {doc: text for doc, text in source.corpus.items() if 10 < len(text) < 6000 and "\ufffd" not in text}
    extra = {doc for group in near_duplicates(texts, 0.7) for doc in group[1:]}
    ends = Counter(text.strip()[-40:] for text in texts.values())
    texts = {doc: text for doc, text in texts.items() if doc not in extra and ends[text.strip()[-40:]] < 5}
    rows = [
        row
        for row in source.qrels.frame.drop_nulls("doc_id").select("query_id", "doc_id", "grade").rows()
        if row[1] in texts
    ]
    usable = list(dict.fromkeys(query for query, _, grade in rows if grade > 0))[:40]
    rows = [(query, doc, grade, None) for query, doc, grade in rows if query in usable]
    kept = list(dict.fromkeys([doc for _, doc, _, _ in rows] + list(texts)))[:250]
    rows = [row for row in rows if row[1] in set(kept)]
    usable = [query for query in usable if any(row[0] == query and row[2] > 0 for row in rows)]
    corpus = {doc: texts[doc] for doc in kept}
    queries = {query: {"text": source.queries[query]} for query in usable}
    runs = {}
    for size in (3, 4):
        found = {doc: grams(text, size) for doc, text in corpus.items()}
        runs[f"grams{size}"] = {
            query: _best(
                {doc: len(own & grams(each["text"], size)) / (20 + len(own)) ** 0.5 for doc, own in found.items()}
            )
            for query, each in queries.items()
        }
    return Data(corpus, queries, [row for row in rows if row[0] in queries], runs)


def _best(scores: dict[str, float]) -> dict[str, float]:
    return dict(sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:20])


@pytest.fixture(params=NAMES)
def clean(request) -> Data:
    return deepcopy(_clean(request.param))


@pytest.mark.slow
def test_at_most_one_alarm_on_clean_data(clean):
    assert len(clean.check().findings) <= 1


# Planted defects. Each function changes the data and returns the number of planted defects and, if the fix restores
# what was there, None; otherwise the means that the fixed leaderboard has.


def relevant_not_in_corpus(data, first):
    data.rows += [(query, f"gone-{n}", 1, None) for n, query in enumerate(first[:7])]
    return 7


def copy_of_relevant(data, first):
    copied = list(dict.fromkeys(data.relevant(query)[0] for query in first[:5]))
    for doc in copied:
        data.corpus[f"{doc} copy"] = f"  {data.corpus[doc].upper()}\n"
    for query in first[:5]:
        doc = data.relevant(query)[0]
        for run in data.runs.values():
            run[query] = {f"{doc} copy" if other == doc else other: score for other, score in run[query].items()}
    return sum(grade > 0 and doc in copied for _, doc, grade, _ in data.rows)


def no_relevant_document(data, first):
    for n in range(6):
        data.queries[f"none{n}"] = {"text": f"a question number {n} that nobody can answer here"}
        data.rows.append((f"none{n}", next(iter(data.corpus)), 0, None))
        for run in data.runs.values():
            run[f"none{n}"] = dict(run[first[n]])
    return 6


def grades_below_1(data, first):
    data.measures = ["RR@10", MEASURE]
    data.rows = [(query, doc, 0.25 if grade > 0 else 0, target) for query, doc, grade, target in data.rows]
    return sum(row[2] > 0 for row in data.rows)


def near_empty_text(data, first):
    for n, query in enumerate(first[:5]):
        data.corpus[f"empty{n}"] = "  -- \n"
        for run in data.runs.values():
            run[query] = {f"empty{n}": 999.0, **run[query]}
    return 5


def repeated_question(data, first):
    for query in first[:3]:
        data.queries[f"{query} again"] = {"text": data.queries[query]["text"].upper() + "  "}
        data.rows += [(f"{query} again", *row[1:]) for row in data.rows if row[0] == query]
        for run in data.runs.values():
            run[f"{query} again"] = dict(run[query])
    return 3


def ids_in_other_case(data, first):
    data.corpus = {f"Doc{doc}": text for doc, text in data.corpus.items()}
    data.rows = [(query, f"Doc{doc}", grade, target) for query, doc, grade, target in data.rows]
    for name, run in data.runs.items():
        data.runs[name] = {query: {f"Doc{doc}": score for doc, score in docs.items()} for query, docs in run.items()}
    return _renamed(data, lambda doc: doc.replace("Doc", "doc"))


def ids_with_a_prefix(data, first):
    return _renamed(data, lambda doc: f"corpus:{doc}")


def ids_with_an_extension(data, first):
    return _renamed(data, lambda doc: f"{doc}.txt")


def ids_with_a_suffix(data, first):
    return _renamed(data, lambda doc: f"{doc}_chunk0")


def ids_with_white_space(data, first):
    return _renamed(data, lambda doc: f"{doc} ")


def _renamed(data, change):
    run = data.runs["grams4"]
    data.runs["grams4"] = {query: {change(doc): score for doc, score in docs.items()} for query, docs in run.items()}
    return len({doc for docs in run.values() for doc in docs})


def retrieved_not_in_corpus(data, first):
    run = data.runs["grams3"]
    for n, query in enumerate(first[:10]):
        run[query] = {f"~unknown{n}~": 999.0, **run[query]}
    return 10


RESTORED = {
    "relevant-not-in-corpus": [relevant_not_in_corpus],
    "copy-of-relevant": [copy_of_relevant],
    "no-relevant-document": [no_relevant_document],
    "grades-below-1": [grades_below_1],
    "near-empty-text": [near_empty_text],
    "repeated-question": [repeated_question],
    "ids-differ": [
        *(ids_in_other_case, ids_with_a_prefix, ids_with_an_extension, ids_with_a_suffix, ids_with_white_space)
    ],
    "retrieved-not-in-corpus": [retrieved_not_in_corpus],
}


def found_in(result: sy.Check, code: str) -> sy.CheckFinding:
    found = [finding for finding in result.findings if finding.code == code]
    assert len(found) == 1, [finding.code for finding in result.findings]
    return found[0]


@pytest.mark.slow
@pytest.mark.parametrize(("code", "plant"), [(code, plant) for code, plants in RESTORED.items() for plant in plants])
def test_a_planted_defect_is_found_and_its_fix_restores_the_leaderboard(clean, code, plant):
    if plant is grades_below_1:
        clean.measures = ["RR@10", MEASURE]
    before = clean.means()
    count = plant(clean, list(clean.queries))
    finding = found_in(clean.check(), code)
    assert finding.count == count
    assert finding.severity in ("error", "warning")
    assert finding.examples
    now = clean.means()
    for name, row in finding.effect["runs"].items():
        assert row["now"] == pytest.approx(now[name], abs=1e-12)
        assert row["fixed"] == pytest.approx(before[name], abs=1e-12), name
    assert finding.largest == pytest.approx(
        max(abs(before[run] - now[run]) for run in finding.effect["runs"]), abs=1e-12
    )


# Defects whose effect is the leaderboard without some queries.


def question_is_document(data, first):
    unrelated = [doc for doc in data.corpus if all(row[1] != doc for row in data.rows)] or list(data.corpus)
    for query, doc in zip(first[:3], unrelated, strict=False):
        data.queries[query]["text"] = data.corpus[doc]
    return first[:3]


def question_copies_relevant(data, first):
    for query in first[:4]:
        text = data.corpus[data.relevant(query)[0]]
        words = text.split()
        data.queries[query]["text"] = " ".join(words[2:12]) if len(words) > 20 else text[5:45]
    return first[:4]


def not_standalone(data, first):
    for query, text in zip(
        first, ("What about the second one?", "Is it free?", "Who wrote this passage?"), strict=False
    ):
        data.queries[query]["text"] = text
    return first[:3]


def empty_answer(data, first):
    for query in first[:5]:
        del data.runs["grams3"][query]
    return first[:5]


@pytest.mark.slow
@pytest.mark.parametrize("plant", [question_is_document, question_copies_relevant, not_standalone, empty_answer])
def test_planted_queries_are_found_and_left_out_of_the_leaderboard(clean, plant):
    bad = plant(clean, list(clean.queries))
    code = plant.__name__.replace("_", "-")
    found = [finding for finding in clean.check().findings if finding.code == code]
    assert [finding.count for finding in found] == ([len(bad)] if bad else [])
    if not bad:
        return
    assert set(found[0].examples) <= set(bad)
    kept = clean.means([query for query in clean.queries if query not in bad])
    for name, row in found[0].effect["runs"].items():
        assert row["fixed"] == pytest.approx(kept[name], abs=1e-12)


# Texts that are wrong: the effect is the value on the queries whose relevant documents are affected.

GERMAN = "Der Hund und die Katze sind nicht mit dem Zug auf eine Insel gefahren, das ist der Grund für den Streit. " * 4
RUSSIAN = "Собака и кошка не поехали на поезде на остров, и это причина их спора с хозяином. " * 4


def broken_encoding(text, number):
    return f"{text} caf\u00e9 cr\u00e8me".encode().decode("latin-1") if text.isascii() else f"{text} \ufffd\ufffd"


def other_language(text, number):
    return f"{RUSSIAN if not text[:40].isascii() or number % 2 else GERMAN} {number}"


def long_document(text, number):
    return " ".join(
        [text] * (1 + 20_000 // max(1, len(text))) if " " not in text[:40] else (text.split() * 2500)[:2500]
    )


def boilerplate(text, number):
    return f"{text} Copyright by the example company, all rights reserved in every country."


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "share"), [(broken_encoding, 8), (other_language, 6), (long_document, 3), (boilerplate, 40)]
)
def test_planted_texts_are_found_with_the_queries_that_they_affect(clean, change, share):
    bad = list(dict.fromkeys(doc for query in list(clean.queries) for doc in clean.relevant(query)))[:share]
    for number, doc in enumerate(bad):
        clean.corpus[doc] = change(clean.corpus[doc], number)
    finding = found_in(clean.check(), change.__name__.replace("_", "-"))
    assert finding.count == len(bad)
    inside = [query for query in clean.queries if set(clean.relevant(query)) & set(bad)]
    if len(inside) == len(clean.queries):
        assert finding.effect is None
        return
    assert finding.effect["queries"] == len(inside)
    affected, others = clean.means(inside), clean.means([query for query in clean.queries if query not in inside])
    for name, row in finding.effect["runs"].items():
        assert row["affected"] == pytest.approx(affected[name], abs=1e-12)
        assert row["others"] == pytest.approx(others[name], abs=1e-12)


def test_same_question_with_different_qrels(clean):
    first, other = list(clean.queries)[:2]
    clean.queries["twin"] = {"text": clean.queries[first]["text"].title()}
    clean.rows.append(("twin", clean.relevant(other)[0], 1, None))
    for run in clean.runs.values():
        run["twin"] = dict(run[first])
    finding = found_in(clean.check(), "same-question-different-qrels")
    assert (finding.count, finding.examples) == (2, (f"{first}, twin",))
    merged = {(doc, grade) for query, doc, grade, _ in clean.rows if query in (first, "twin")}
    best = {doc: max(grade for other, grade in merged if other == doc) for doc, _ in merged}
    clean.rows = [row for row in clean.rows if row[0] not in (first, "twin")]
    clean.rows += [(query, doc, grade, None) for query in (first, "twin") for doc, grade in best.items()]
    fixed = clean.means()
    assert {name: row["fixed"] for name, row in finding.effect["runs"].items()} == pytest.approx(fixed, abs=1e-12)


def test_broken_lists_of_a_run(clean):
    queries = list(clean.queries)
    clean.runs["short"] = {
        q: dict(list(docs.items())[: 3 if n < 6 else 20]) for n, (q, docs) in enumerate(clean.runs["grams3"].items())
    }
    clean.runs["same"] = deepcopy(clean.runs["grams3"])
    clean.runs["flat"] = {query: dict.fromkeys(docs, 1.0) for query, docs in clean.runs["grams4"].items()}
    result = clean.check()
    short = found_in(result, "list-cut-short")
    assert (short.count, short.examples) == (6, tuple(queries[:5]))
    assert short.effect["runs"]["short"]["affected"] == pytest.approx(clean.means(queries[:6])["short"], abs=1e-12)
    assert found_in(result, "same-run").examples == ("grams3", "same")
    flat = found_in(result, "constant-scores")
    assert flat.count == len(queries)
    scores = sy.evaluate(clean.dataset().qrels, clean.runs["flat"], [MEASURE], ties="docid-asc")
    assert flat.effect["runs"]["flat"]["fixed"] == pytest.approx(scores[MEASURE], abs=1e-12)


def test_one_finding_for_all_runs_with_a_problem(clean):
    first, second = list(clean.queries)[:2]
    del clean.runs["grams3"][first]
    del clean.runs["grams4"][first], clean.runs["grams4"][second]
    finding = found_in(clean.check(), "empty-answer")
    assert (finding.count, finding.examples) == (3, ("grams3: 1", "grams4: 2"))
    kept = {"grams3": [first], "grams4": [first, second]}
    for name, gone in kept.items():
        fixed = clean.means([query for query in clean.queries if query not in gone])[name]
        assert finding.effect["runs"][name]["fixed"] == pytest.approx(fixed, abs=1e-12)


def test_a_relevance_level_that_decides_the_order(clean):
    graded = {query: clean.relevant(query)[0] for query in clean.queries}
    clean.rows = [(query, doc, 2, None) for query, doc in graded.items()]
    clean.rows += [(query, "related", 1, None) for query in graded]
    clean.corpus["related"] = "A document that is only related to everything that was asked about."
    clean.runs["grams3"] = {query: ["related", "x", "y", doc] for query, doc in graded.items()}
    clean.runs["grams4"] = {query: ["x", doc, "related"] for query, doc in graded.items()}
    finding = next(each for each in clean.check().findings if each.code == "relevance-level")
    assert (finding.count, finding.examples) == (1, ("RR@10",))
    assert finding.effect["runs"] == {"grams3": {"now": 1.0, "fixed": 0.25}, "grams4": {"now": 0.5, "fixed": 0.5}}


def test_likely_missing_judgments(clean):
    queries = list(clean.queries)
    perfect = {query: clean.relevant(query) for query in queries}
    clean.runs = {
        f"run{n}": {query: ["new", *docs] if at < 5 else docs for at, (query, docs) in enumerate(perfect.items())}
        for n in range(3)
    }
    clean.corpus["new"] = "A document about everything that was asked, written after the judgments were made."
    finding = found_in(clean.check(), "likely-missing-judgment")
    assert finding.count == 5
    clean.rows += [(query, "new", min(row[2] for row in clean.rows if row[2] > 0), None) for query in queries[:5]]
    assert finding.effect["runs"]["run0"]["fixed"] == pytest.approx(clean.means()["run0"], abs=1e-12)


def test_measures_that_cannot_discriminate(clean):
    clean.runs = {name: {query: clean.relevant(query) for query in clean.queries} for name in ("a", "b")}
    clean.measures = ["R@100", f"Hit@{len(clean.corpus)}"]
    result = clean.check()
    assert {finding.code for finding in result.findings} >= {"measure-saturated", "random-too-good", "same-run"}
    assert result.ceilings["R@100"] == pytest.approx(1.0)
    found = {(finding.code, finding.examples): finding for finding in result.findings}
    for measure in clean.measures:
        clean.measures = [measure]
        reached = {name: {"now": mean, "fixed": result.ceilings[measure]} for name, mean in clean.means().items()}
        assert found["measure-saturated", (measure,)].effect["runs"] == reached
    # The first documents of a random list are the whole corpus, so one of them is relevant. No run would change.
    chance = found["random-too-good", (measure,)]
    assert (chance.severity, chance.effect) == ("warning", None)
    assert "reach 1.0000 of at most 1.0000" in chance.text


def test_no_ranking_is_better_than_the_best_value_and_random_lists_miss_what_the_corpus_lacks():
    corpus = {f"d{n}": f"The document number {n} has some words of its own." for n in range(60)}
    qrels = {"q1": {"d1": 2, "gone": 3}, "q2": {"d2": 1}, "q3": {"gone": 1}}
    data = sy.Dataset.of(corpus, {query: f"a question called {query}" for query in qrels}, qrels)
    measures = ["nDCG@10", "RR@10", "R@100"]
    best = sy.evaluate(qrels, {"q1": ["d1"], "q2": ["d2"], "q3": ["d5"]}, measures).means
    everything = {query: list(corpus) for query in qrels}
    result = sy.check(data, {"all": everything}, measures)
    assert result.ceilings == pytest.approx(best)
    assert result.ceilings["R@100"] == pytest.approx(sy.evaluate(qrels, everything, "R@100")["R@100"]) == 0.5
    assert "reach 0.5000 of at most 0.5000" in found_in(result, "random-too-good").text
    # Nobody asked for R@100: it is information, and the headline is on the first measure.
    unasked = sy.check(data)
    assert found_in(unasked, "random-too-good").severity == "info"
    assert "the largest effect on nDCG@10" in unasked.verdict
    row = found_in(unasked, "relevant-not-in-corpus").effect["runs"]["perfect ranking"]
    assert row["now"] == pytest.approx(unasked.ceilings["nDCG@10"])


def test_a_judged_query_that_is_not_among_the_queries_is_no_list_to_run_again():
    qrels = {f"q{number}": {f"d{number}": 1} for number in range(5)}
    data = sy.Dataset.of(queries={query: f"a question called {query}" for query in qrels if query != "q4"}, qrels=qrels)
    result = sy.check(data, {"mine": {query: list(docs) for query, docs in qrels.items() if query not in ("q3", "q4")}})
    finding = found_in(result, "judged-query-not-asked")
    assert (finding.severity, finding.count, finding.examples) == ("error", 1, ("q4",))
    assert finding.effect["runs"]["mine"] == {"now": pytest.approx(3 / 5), "fixed": pytest.approx(3 / 4)}
    assert found_in(result, "empty-answer").examples == ("q3",)


def test_cut_and_constant_lists_beside_a_judged_query_that_is_not_asked():
    queries = {f"q{i}": f"question {i}" for i in range(11)}
    corpus = {f"d{i}": f"text {i}" for i in range(15)}
    dataset = sy.Dataset.of(corpus, queries, {query: {"d1": 1} for query in [*queries, "other"]}, name="planted")
    run = {query: {f"d{i}": 1.0 for i in range(2 if query == "q3" else 12)} for query in queries}
    findings = {finding.code: finding for finding in sy.check(dataset, {"run": run}, [MEASURE]).findings}
    assert findings["list-cut-short"].examples == ("q3",)
    assert findings["constant-scores"].examples == tuple(sy.Run(run).frame["query_id"].unique(maintain_order=True)[:5])


def test_queries_without_a_document_of_the_relevant_grade():
    qrels = sy.Qrels({"q1": {"a": 3, "b": 1}, "q2": {"a": 1}, "q3": {"c": 1}, "q4": {"c": 0}})
    qrels.relevant_from = 2
    data = sy.Dataset.of(queries={query: f"a question called {query}" for query in qrels.queries}, qrels=qrels)
    run = {query: ["a", "c"] for query in qrels.queries}
    found = [one for one in sy.check(data, {"mine": run}).findings if one.code == "no-relevant-document"]
    by_level = {one.count: one for one in found}
    assert set(by_level) == {1, 3}
    assert "1 query has no relevant document and can only score 0." in by_level[1].text
    assert by_level[1].effect["measure"] == "nDCG@10"
    assert (
        "3 queries have no document with grade 2 or above and can only score 0 on RR@10 and R@100" in by_level[3].text
    )
    assert by_level[3].examples == ("q2", "q3", "q4")
    assert by_level[3].effect == {
        "measure": "RR@10", "runs": {"mine": {"now": 0.25, "fixed": 1.0}}, "largest": 0.75, "reordered": 0
    }  # fmt: skip


def test_questions_that_name_their_document_are_not_standalone():
    asked = {
        "q1": "What does this document say about it?",
        "q2": "In this article, which year is given for the treaty?",
        "q3": "How does the document store keep its index?",
        "q4": "What is in the text field of a form?",
        "q5": "Which documents do I need for this visa?",
    }
    data = sy.Dataset.of(queries=asked, qrels={query: ["d"] for query in asked})
    assert found_in(sy.check(data), "not-standalone").examples == ("q1", "q2")


def test_a_run_that_was_tuned_on_the_train_part(clean):
    rng = random.Random(3)
    for name, run in clean.runs.items():
        clean.runs[name] = {query: {doc: -score for doc, score in docs.items()} for query, docs in run.items()}
    for number, (query, each) in enumerate(clean.queries.items()):
        each["split"] = "train" if number % 2 else "test"
        if number % 2:
            clean.runs["grams4"][query] = {**clean.runs["grams4"][query], clean.relevant(query)[0]: 900 + rng.random()}
    finding = found_in(clean.check(), "tuned-on-train")
    assert finding.examples == ("grams4",)
    test = [query for query, each in clean.queries.items() if each["split"] == "test"]
    assert finding.effect["runs"]["grams4"]["fixed"] == pytest.approx(clean.means(test)["grams4"], abs=1e-12)


def test_relevant_distractor_and_order_by_effect(clean):
    query = next(iter(clean.queries))
    clean.rows += [(query, clean.relevant(query)[0], -1, "wrong")]
    clean.rows += [(query, "gone", 1, None)]
    findings = clean.check().findings
    assert {"relevant-distractor", "relevant-not-in-corpus"} <= {finding.code for finding in findings}
    ranks = [(["error", "warning", "info"].index(finding.severity), -finding.largest) for finding in findings]
    assert ranks == sorted(ranks)
    effect = next(finding.effect for finding in findings if finding.code == "relevant-distractor")
    doc = clean.relevant(query)[0]
    clean.rows = [row for row in clean.rows if row[:2] != (query, doc)]
    fixed = clean.means()
    assert {name: row["fixed"] for name, row in effect["runs"].items()} == pytest.approx(fixed, abs=1e-12)


CONFIRMED = {
    "scifact": {"broken-encoding": 5, "question-copies-relevant": 1},
    "cranfield": {"near-empty-text": 2, "question-copies-relevant": 1},
    "docs-rag": {"long-document": 10, "near-empty-text": 1},
    "faq-ja": {"boilerplate": 468, "copy-of-relevant": 2, "repeated-question": 2, "same-question-different-qrels": 2},
}
"""The findings on the collections as they are; of every code, the first examples were read and are right."""


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_findings_on_the_real_collections(name):
    result = sy.check(shared_data(name))
    assert {finding.code: finding.count for finding in result.findings} == CONFIRMED[name]


@pytest.fixture
def folder(tmp_path):
    corpus = {
        f"d{n}": f"The number {n} is written in a document of its own, and {n * n} is its square." for n in range(250)
    }
    queries = {f"q{n}": f"which square belongs to {n}" for n in range(20)}
    qrels = {f"q{n}": {f"d{n}": 1} for n in range(20)} | {"q3": {"d3": 1, "gone": 1}}
    sy.Dataset.of(corpus, queries, qrels).write(tmp_path / "data")
    lines = [f"q{n} Q0 d{(n + shift) % 250} {shift + 1} {9 - shift} mine\n" for n in range(20) for shift in range(5)]
    (tmp_path / "mine.run").write_text("".join(lines))
    return tmp_path


def test_command_json_and_exit_codes(folder, capsys):
    arguments = ["check", str(folder / "data"), str(folder / "mine.run")]
    assert steelyard([*arguments, "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert {"steelyard", "findings", "ceilings", "smallest_difference"} <= set(data)
    assert [set(each) for each in data["findings"]] == [{"code", "severity", "count", "text", "examples", "effect"}]
    assert data["findings"][0]["code"] == "relevant-not-in-corpus"
    assert data["findings"][0]["examples"] == ["q3: gone"]
    assert data["ceilings"] == pytest.approx({"nDCG@10": 0.98066, "RR@10": 1.0, "R@100": 0.975}, abs=1e-5)
    assert steelyard([*arguments, "--strict"]) == 1
    assert "mine: 0.9807 -> 1.0000" in capsys.readouterr().out
    (folder / "data" / "qrels.tsv").write_text(
        "query-id\tcorpus-id\tscore\n" + "".join(f"q{n}\td{n}\t1\n" for n in range(20))
    )
    assert steelyard([*arguments, "--strict"]) == 0
    assert "no finding" in capsys.readouterr().err


def test_a_relevant_distractor_of_a_file_is_found(folder, capsys):
    with (folder / "data" / "qrels.tsv").open("a") as file:
        file.write("q6\td6\t-1\n")
    finding = found_in(sy.check(folder / "data", folder / "mine.run"), "relevant-distractor")
    assert (finding.severity, finding.count, finding.examples) == ("error", 1, ("q6: d6",))
    assert finding.effect["runs"]["mine"]["fixed"] == pytest.approx(finding.effect["runs"]["mine"]["now"] - 1 / 20)
    assert steelyard(["validate", str(folder / "data")]) == 2
    assert "1 distractor is also relevant to the same query" in capsys.readouterr().out


def test_a_dataset_of_questions_and_qrels_is_shown_once(folder, capsys):
    (folder / "questions.csv").write_text("question\nwhat about it\nwhich square belongs to 3\n")
    (folder / "qrels.txt").write_text("q1 0 d1 1\nq2 0 d3 1\n")
    given = f"{{queries: {folder}/questions.csv, qrels: {folder}/qrels.txt}}"
    assert steelyard(["check", given]) == 0
    assert capsys.readouterr().out.count("not-standalone") == 1


def test_formats_and_a_dataset_without_qrels_or_corpus(folder):
    result = sy.check(folder / "data", [folder / "mine.run"])
    assert result.to_csv().startswith("code,severity,count,effect,text,examples\nrelevant-not-in-corpus,error,1,")
    assert "relevant document is not in the corpus" in result.to_html()
    assert result.problems == 1
    assert sy.check(sy.Dataset.of(queries={"q": "why"})).findings == ()
    long = sy.check(sy.Dataset.of({"d": "words " * 3000}, {"q": "why"}))
    assert [(finding.code, finding.effect) for finding in long.findings] == [("long-document", None)]
    only = sy.check(sy.Dataset.of(queries={"q": "why"}, qrels={"q": ["a"]}), {"r": {"q": ["A", "x"]}})
    assert [finding.code for finding in only.findings] == ["ids-differ"]


@pytest.mark.parametrize(
    ("form", "code", "said"),
    [
        ("doc-{}", "ids-differ", "1 document id differs from the known ones by the prefix 'doc-'"),
        ("{}.txt", "ids-differ", "1 document id differs from the known ones by the suffix '.txt'"),
        ("/b/{}/{}", "no-judged-document", "no retrieved document is judged: the run has '/b/d0/d0'"),
    ],
)
def test_ids_that_differ_are_found_without_a_corpus(form, code, said):
    """One judged document among 30 that are retrieved: the others have no counterpart in the qrels."""
    data = sy.Dataset.of(queries={"q": "why"}, qrels={"q": ["d7"]})
    result = sy.check(data, {"r": {"q": [form.format(f"d{n}", f"d{n}") for n in range(30)]}})
    finding = found_in(result, code)
    assert finding.severity == "error"
    assert said in finding.text


def test_longer_numbers_are_not_ids_with_a_prefix():
    corpus = {str(number): f"text number {number}" for number in range(10, 100)}
    data = sy.Dataset.of(corpus, {"q": "why"}, {"q": ["11"]})
    result = sy.check(data, {"r": {"q": [str(number) for number in range(110, 130)]}})
    codes = {finding.code for finding in result.findings}
    assert "retrieved-not-in-corpus" in codes
    assert "ids-differ" not in codes
