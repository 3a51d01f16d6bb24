"""validate_dataset reports every problem at once; near-duplicates are those that comparing every pair finds."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.datasets import Dataset, near_duplicates, validate_dataset
from steelyard.datasets.duplicates import shingles
from steelyard.errors import InputError

LONG = "the lift at the upper station is closed for repair from monday until the first of may"


def test_every_problem_at_once(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text(
        f'{{"_id": "d1", "text": "{LONG}", "links": ["d2", "gone"]}}\n'
        f'{{"_id": "d2", "text": "{LONG} this year"}}\n'
        '{"_id": "d1", "text": "another text"}\n'
        '{"_id": "d3", "title": "only a title", "text": " "}\n'
        '{"_id": "d3", "title": "only a title", "text": " "}\n'
    )
    (tmp_path / "queries.jsonl").write_text(
        '{"_id": "q1", "text": "is it open?"}\n{"_id": "q1", "text": "is it open?"}\n'
        '{"_id": "q2", "text": ""}\n{"_id": "q3", "text": "why?"}\n{"_id": "q4", "text": "none", "answerable": false}\n'
    )
    (tmp_path / "qrels.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td1\t-1\nq1\tx\t1\nq1\ty\t0\nq2\td2\t0\nq9\td1\t1\n"
    )
    findings = validate_dataset(Dataset.read(tmp_path))
    assert [(found.severity, found.kind, found.count, found.items) for found in findings] == [
        ("error", "relevant-distractor", 1, (("q1", "d1"),)),
        ("error", "duplicate-document", 2, (("d1",), ("d3",))),
        ("error", "empty-query", 1, (("q2",),)),
        ("error", "unknown-query", 1, (("q9",),)),
        ("error", "unknown-document", 2, (("q1", "x"), ("q1", "y"))),
        ("warning", "duplicate-query", 1, (("q1",),)),
        ("warning", "unjudged-query", 1, (("q3",),)),
        ("warning", "empty-document", 1, (("d3",),)),
        ("warning", "unknown-link", 1, (("d1", "gone"),)),
        ("warning", "near-duplicates", 1, (("d1", "d2"),)),
        ("info", "no-relevant", 2, (("q2",), ("q4",))),
        ("info", "unjudged-document", 1, (("d3",),)),
    ]
    assert "1 with another text; the first was kept" in str(findings[1])


def test_the_first_of_an_id_is_kept(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text(
        '{"_id": 1, "text": "one"}\n{"_id": "2", "text": "two"}\n{"_id": "1", "text": "!"}\n'
    )
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "first"}\n{"_id": "q", "text": "second"}\n')
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq\t1\t1\n")
    dataset = Dataset.read(tmp_path)
    assert dict(dataset.corpus) == {"1": "one", "2": "two"}
    assert dict(dataset.queries) == {"q": "first"}


def test_a_sound_dataset_has_nothing_to_report() -> None:
    assert validate_dataset(Dataset.of({"d1": LONG}, {"q1": "open?"}, {"q1": ["d1"]})) == []


def test_distractors_of_another_target_are_found() -> None:
    from steelyard.qrels import Qrels

    qrels = Qrels.from_rows([("q1", "d1", 1, "a"), ("q1", "d1", -1, "b")])
    (finding,) = validate_dataset(Dataset.of({"d1": LONG}, {"q1": "open?"}, qrels))
    assert (finding.kind, finding.items) == ("relevant-distractor", (("q1", "d1"),))


def test_unknown_documents_that_are_not_relevant_are_a_warning() -> None:
    (finding,) = validate_dataset(Dataset.of({"d1": LONG}, {"q1": "?"}, {"q1": {"d1": 1, "d2": 0}}))
    assert (finding.severity, finding.kind) == ("warning", "unknown-document")


def test_declared_duplicates_are_not_a_warning() -> None:
    corpus = {"a": {"text": LONG, "group": "lift"}, "b": {"text": LONG, "group": "lift"}}
    (finding,) = validate_dataset(Dataset.of(corpus, {"q1": "?"}, {"q1": ["a", "b"]}))
    assert (finding.severity, finding.kind, finding.items) == ("info", "declared-duplicates", (("a", "b"),))
    assert validate_dataset(Dataset.of(corpus, {"q1": "?"}, {"q1": ["a", "b"]}), near_duplicates=None) == []


def test_a_finding_names_at_most_a_thousand() -> None:
    corpus = {f"d{n}": f"text number {n}" for n in range(1500)}
    (finding,) = validate_dataset(Dataset.of(corpus, {"q": "?"}, {"q": ["d0"]}))
    assert (finding.count, len(finding.items)) == (1499, 1000)
    assert "1,499 documents never judged (100% of the corpus)" in str(finding)
    assert str(finding).endswith("... and 1,489 more")


def overlap(one: str, other: str) -> float:
    sets = [set(shingles([text])[0].tolist()) for text in (one, other)]
    return len(sets[0] & sets[1]) / len(sets[0] | sets[1])


def test_shingles_are_runs_of_three_words() -> None:
    texts = ["One two, THREE four", "one two three", "", "one", "two", "one two", "東京都庁", "two three four"]
    hashes, sizes = shingles(texts)
    assert sizes.tolist() == [2, 1, 0, 1, 1, 1, 2, 1]
    runs = np.split(hashes, np.cumsum(sizes)[:-1])
    assert runs[0].tolist() == [runs[1][0], runs[7][0]]
    assert len({int(run) for run in hashes}) == 7


@pytest.mark.slow
def test_groups_are_those_that_comparing_every_pair_gives() -> None:
    generator = np.random.default_rng(7)
    words = [f"w{n}" for n in range(300)]
    corpus: dict[str, str] = {}
    for number in range(60):
        text = list(generator.choice(words, 60))
        corpus[f"d{number}"] = " ".join(text)
        for copy in range(number % 3):
            # One to three words of sixty changed: an overlap of 0.73 to 0.95.
            for place in generator.choice(60, copy + 1, replace=False):
                text[place] = "changed"
            corpus[f"d{number}-{copy}"] = " ".join(text)
    close = [pair for pair in combinations(corpus, 2) if overlap(corpus[pair[0]], corpus[pair[1]]) >= 0.8]
    assert len(close) > 30
    leader = {doc: doc for doc in corpus}
    for one, other in close:
        old, new = leader[other], leader[one]
        leader = {doc: new if head == old else head for doc, head in leader.items()}
    groups: dict[str, list[str]] = {}
    for doc, head in leader.items():
        groups.setdefault(head, []).append(doc)
    expected = sorted(tuple(group) for group in groups.values() if len(group) > 1)
    assert sorted(near_duplicates(corpus)) == expected


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(alphabet="ab ", max_size=30), max_size=12), st.sampled_from([0.3, 0.8, 1.0]))
def test_every_group_is_real(texts: list[str], threshold: float) -> None:
    corpus = {str(number): text for number, text in enumerate(texts)}
    groups = near_duplicates(corpus, threshold)
    for group in groups:
        for doc in group:
            assert any(overlap(corpus[doc], corpus[other]) >= threshold for other in group if other != doc)
    grouped = {doc: number for number, group in enumerate(groups) for doc in group}
    for one, other in combinations(corpus, 2):
        if corpus[one] == corpus[other] and corpus[one].strip():
            assert grouped[one] == grouped[other]


def test_a_large_group_of_equal_documents_is_one_group() -> None:
    corpus = {str(number): LONG for number in range(3000)}
    assert near_duplicates(corpus) == [tuple(corpus)]


@pytest.mark.parametrize("threshold", [0, -0.5, 1.5])
def test_a_threshold_has_to_be_a_share(threshold: float) -> None:
    with pytest.raises(InputError, match="expected a number above 0, at most 1"):
        near_duplicates({"a": "x"}, threshold)
