"""The demo data are as their README describes them."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import steelyard.demo

DATA = Path(steelyard.demo.__file__).parent / "data"


class Judgment(NamedTuple):
    query: str
    passage: str
    grade: int
    target: str


def read_jsonl(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def corpus() -> list[dict[str, Any]]:
    return read_jsonl("corpus.jsonl")


@pytest.fixture(scope="module")
def queries() -> list[dict[str, Any]]:
    return read_jsonl("queries.jsonl")


@pytest.fixture(scope="module")
def judgments() -> list[Judgment]:
    with (DATA / "qrels.tsv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
    assert header == ["query-id", "corpus-id", "score", "target"]
    return [Judgment(query, passage, int(grade), target) for query, passage, grade, target in rows]


def answerable(queries: list[dict[str, Any]]) -> list[str]:
    return [query["_id"] for query in queries if query["type"] != "unanswerable"]


def test_counts_match_the_readme(
    corpus: list[dict[str, Any]], queries: list[dict[str, Any]], judgments: list[Judgment]
) -> None:
    readme = (DATA / "README.md").read_text(encoding="utf-8")
    assert f"{len(corpus)} passages" in readme
    assert f"{len(queries)} questions" in readme
    assert f"{len(judgments)} judgments" in readme
    by_type = {name: int(count) for name, count in re.findall(r"^\| `([\w-]+)` \| (\d+) \|", readme, re.M)}
    assert by_type == Counter(query["type"] for query in queries)
    assert len(corpus) >= 220
    assert len(queries) >= 90


def test_files_are_small() -> None:
    assert sum(path.stat().st_size for path in DATA.iterdir()) < 400_000


def test_ids_are_unique_and_short(corpus: list[dict[str, Any]], queries: list[dict[str, Any]]) -> None:
    for records in (corpus, queries):
        ids = [record["_id"] for record in records]
        assert len(set(ids)) == len(ids)
        assert [identifier for identifier in ids if not re.fullmatch(r"[a-z]+-[a-z0-9]{2,10}", identifier)] == []


def test_records_have_the_documented_fields(corpus: list[dict[str, Any]], queries: list[dict[str, Any]]) -> None:
    for passage in corpus:
        assert set(passage) - {"group"} == {"_id", "title", "text", "links"}
    for query in queries:
        assert set(query) == {"_id", "text", "type"}
        assert query["text"] == query["text"].strip() != ""


def test_passages_are_passage_sized(corpus: list[dict[str, Any]]) -> None:
    lengths = {passage["_id"]: len(passage["text"].split()) for passage in corpus}
    assert {name: n for name, n in lengths.items() if not 40 <= n <= 110} == {}


def test_passages_and_questions_are_distinct(corpus: list[dict[str, Any]], queries: list[dict[str, Any]]) -> None:
    for texts in (
        [passage["text"].casefold() for passage in corpus],
        [passage["title"].casefold() for passage in corpus],
        [query["text"].casefold() for query in queries],
    ):
        assert [text for text, n in Counter(texts).items() if n > 1] == []


def test_every_judged_id_exists_and_every_query_is_judged(
    corpus: list[dict[str, Any]], queries: list[dict[str, Any]], judgments: list[Judgment]
) -> None:
    assert {judgment.passage for judgment in judgments} <= {passage["_id"] for passage in corpus}
    assert {judgment.query for judgment in judgments} == {query["_id"] for query in queries}


def test_passage_is_judged_once_per_query(judgments: list[Judgment]) -> None:
    pairs = Counter((judgment.query, judgment.passage) for judgment in judgments)
    assert [pair for pair, n in pairs.items() if n > 1] == []


def test_grades_and_targets_are_in_range(judgments: list[Judgment]) -> None:
    assert {judgment.grade for judgment in judgments} == {-1, 0, 1, 2, 3}
    assert [judgment for judgment in judgments if not re.fullmatch(r"[a-z]+", judgment.target)] == []


def test_unanswerable_questions_have_look_alikes_only(queries: list[dict[str, Any]], judgments: list[Judgment]) -> None:
    can_be_answered = set(answerable(queries))
    best: dict[str, int] = {}
    for judgment in judgments:
        best[judgment.query] = max(judgment.grade, best.get(judgment.query, -1))
    assert {query for query, grade in best.items() if grade <= 0} == set(best) - can_be_answered
    assert len(set(best) - can_be_answered) >= 6


def test_every_target_of_an_answerable_question_has_a_relevant_passage(
    queries: list[dict[str, Any]], judgments: list[Judgment]
) -> None:
    best: dict[tuple[str, str], int] = defaultdict(lambda: -1)
    for judgment in judgments:
        key = judgment.query, judgment.target
        best[key] = max(best[key], judgment.grade)
    can_be_answered = set(answerable(queries))
    assert [key for key, grade in best.items() if key[0] in can_be_answered and grade < 2] == []


def test_multi_hop_questions_need_two_to_four_targets(queries: list[dict[str, Any]], judgments: list[Judgment]) -> None:
    targets = defaultdict(set)
    for judgment in judgments:
        targets[judgment.query].add(judgment.target)
    for query in queries:
        if query["type"] == "multi-hop":
            assert 2 <= len(targets[query["_id"]]) <= 4, query["_id"]
        elif query["type"] != "comparison":
            assert len(targets[query["_id"]]) == 1, query["_id"]


def test_relevant_and_other_judgments_are_balanced(queries: list[dict[str, Any]], judgments: list[Judgment]) -> None:
    relevant = Counter(judgment.query for judgment in judgments if judgment.grade > 0)
    others = Counter(judgment.query for judgment in judgments if judgment.grade <= 0)
    assert {query for query in answerable(queries) if not 1 <= relevant[query] <= 8} == set()
    assert {query["_id"] for query in queries if not others[query["_id"]]} == set()


def test_near_duplicates_share_targets(corpus: list[dict[str, Any]], judgments: list[Judgment]) -> None:
    group_of = {passage["_id"]: passage["group"] for passage in corpus if "group" in passage}
    members = defaultdict(set)
    for passage, group in group_of.items():
        members[group].add(passage)
    assert len(members) >= 10
    assert all(len(passages) >= 2 for passages in members.values())

    judged: dict[tuple[str, str], list[Judgment]] = defaultdict(list)
    for judgment in judgments:
        if judgment.passage in group_of:
            judged[judgment.query, group_of[judgment.passage]].append(judgment)
    for (query, group), found in judged.items():
        assert {judgment.passage for judgment in found} == members[group], (query, group)
        relevant_targets = {judgment.target for judgment in found if judgment.grade > 0}
        assert len(relevant_targets) <= 1, (query, group)
        assert not any(judgment.grade < 0 for judgment in found), (query, group)


def test_archived_pages_are_distractors_and_relevant(judgments: list[Judgment]) -> None:
    grades = {judgment.grade for judgment in judgments if judgment.passage.startswith("arch-")}
    assert -1 in grades
    assert 3 in grades


def test_links_lead_to_other_passages(corpus: list[dict[str, Any]]) -> None:
    ids = {passage["_id"] for passage in corpus}
    for passage in corpus:
        links = passage["links"]
        assert links, passage["_id"]
        assert len(set(links)) == len(links), passage["_id"]
        assert set(links) <= ids - {passage["_id"]}, passage["_id"]


def test_every_passage_can_be_reached_from_the_first_page(corpus: list[dict[str, Any]]) -> None:
    links = {passage["_id"]: passage["links"] for passage in corpus}
    reached, waiting = {"index-01"}, ["index-01"]
    while waiting:
        new = set(links[waiting.pop()]) - reached
        reached |= new
        waiting.extend(new)
    assert set(links) - reached == set()


def test_graph_has_hubs(corpus: list[dict[str, Any]]) -> None:
    incoming = Counter(link for passage in corpus for link in passage["links"])
    assert incoming["news-01"] > 20
    assert incoming["sta-01"] > 15
