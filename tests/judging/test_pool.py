"""Which documents are pooled, in which order, and what a pool records."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import dl2019_simulation as dl2019
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import steelyard as sy
from needs import needs_shared
from steelyard.errors import InputError
from steelyard.judging.candidates import RULES, Adjudication, candidates_of, rank_weights, round_robin
from steelyard.judging.pool import STRATEGIES, Pool, pool

A = {"q1": ["a", "b", "c"], "q2": ["x", "y"]}
B = {"q1": ["b", "d", "c"], "q2": ["x", "z"]}
TWO = {"first": A, "second": B}

LISTS = st.lists(st.permutations("abcdefgh").map(lambda docs: docs[:5]), min_size=2, max_size=4)


def pairs(made: Pool) -> list[tuple[str, str]]:
    return list(made.frame.select("query_id", "doc_id").iter_rows())


def docs(made: Pool, query: str = "q1") -> list[str]:
    return [doc for of, doc in pairs(made) if of == query]


def runs_of(lists: list[list[str]]) -> dict[str, dict[str, list[str]]]:
    return {f"run{place}": {"q1": listed} for place, listed in enumerate(lists)}


# What is pooled


def test_frame_has_one_row_per_document() -> None:
    made = pool(TWO)
    assert made.frame.columns[:4] == ["query_id", "doc_id", "priority", "runs"]
    assert made.frame["priority"].to_list() == list(range(1, len(made) + 1))
    row = made.frame.row(by_predicate=pl.col("doc_id") == "b", named=True)
    assert (row["runs"], row["ranks"]) == (["first", "second"], [2, 1])
    assert (row["probability"], row["strategy"]) == (None, "depth")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_pools_the_same_documents(strategy: str) -> None:
    assert sorted(pairs(pool(TWO, strategy=strategy))) == sorted(pairs(pool(TWO)))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_judged_documents_are_left_out(strategy: str) -> None:
    made = pool(TWO, {"q1": {"b": 1, "d": 0}}, strategy=strategy)
    assert sorted(pairs(made)) == [("q1", "a"), ("q1", "c"), ("q2", "x"), ("q2", "y"), ("q2", "z")]


@pytest.mark.parametrize("strategy", ["depth", "mtf", "bandit", "pair"])
def test_budget_takes_the_first_documents(strategy: str) -> None:
    assert pairs(pool(TWO, budget=3, strategy=strategy)) == pairs(pool(TWO, strategy=strategy))[:3]


def test_depth_limits_every_run() -> None:
    assert sorted(docs(pool(TWO, depth=1))) == ["a", "b"]


def test_runs_may_be_a_list_and_share_a_name() -> None:
    assert pool([A, B]).settings.runs == ("run-1", "run-2")


def test_a_name_with_half_of_a_character_is_kept_as_an_escape(tmp_path: Path) -> None:
    """As that of a file whose name is not UTF-8."""
    for runs in ({"bad\udcff": {"q1": ["a"]}}, [sy.Run({"q1": ["a"]}, name="bad\udcff")]):
        pool(runs).write(tmp_path / "pool.jsonl")
        assert Pool.read(tmp_path / "pool.jsonl").frame["runs"].to_list() == [["bad\\udcff"]]


def test_a_document_repeated_in_a_list_has_its_first_rank() -> None:
    made = pool({"one": {"q1": ["a", "b", "a"]}})
    assert made.frame.sort("doc_id")["ranks"].to_list() == [[1], [2]]


def test_representation_counts_documents_and_queries() -> None:
    assert repr(pool(TWO)) == "Pool: 7 documents of 2 queries to judge, 3 of them returned by both runs"
    assert repr(pool({"one": {"q1": ["a"]}})) == "Pool: 1 document of 1 query to judge"
    assert repr(pool({**TWO, "third": A})).endswith("of them returned by two or more runs")


# depth


def test_depth_order_is_by_best_rank_then_by_number_of_runs() -> None:
    assert pairs(pool(TWO)) == [
        ("q2", "x"),
        ("q1", "b"),
        ("q1", "a"),
        ("q1", "d"),
        ("q2", "y"),
        ("q2", "z"),
        ("q1", "c"),
    ]


@settings(max_examples=40, deadline=None)
@given(LISTS)
def test_depth_order_completes_one_depth_before_the_next(lists: list[list[str]]) -> None:
    best = {doc: min(one.index(doc) for one in lists if doc in one) for one in lists for doc in one}
    order = docs(pool(runs_of(lists)))
    assert [best[doc] for doc in order] == sorted(best[doc] for doc in order)


# mtf and bandit


def test_move_to_front_stays_with_a_run_while_it_gives_relevant_documents() -> None:
    runs = {"good": {"q1": ["a", "b", "c"]}, "bad": {"q1": ["x", "y", "z"]}}
    assert docs(pool(runs, {"q1": {"a": 1}}, strategy="mtf", budget=1)) == ["b"]
    assert docs(pool(runs, {"q1": {"a": 0}}, strategy="mtf", budget=1)) == ["x"]
    assert docs(pool(runs, {"q1": {"a": 0, "x": 0}}, strategy="mtf", budget=1)) == ["b"]


def test_bandit_counts_a_judgment_for_every_run_that_returned_the_document() -> None:
    runs = {"one": {"q1": ["a", "b"]}, "two": {"q1": ["c", "a", "d"]}, "three": {"q1": ["e", "f"]}}
    assert docs(pool(runs, {"q1": {"a": 0}}, strategy="bandit", budget=1)) == ["e"]
    assert docs(pool(runs, {"q1": {"a": 1}}, strategy="bandit", budget=1)) == ["c"]


def test_relevance_starts_at_rel() -> None:
    runs = {"good": {"q1": ["a", "b"]}, "bad": {"q1": ["x", "y"]}}
    assert docs(pool(runs, {"q1": {"a": 1}}, strategy="mtf", budget=1, rel=2)) == ["x"]


@pytest.mark.parametrize("rule", sorted(RULES))
@settings(max_examples=15, deadline=None)
@given(LISTS, st.sets(st.sampled_from("abcdefgh")))
def test_pooling_again_after_every_judgment_is_the_rule(rule: str, lists: list[list[str]], relevant: set[str]) -> None:
    runs, judged, order = runs_of(lists), {}, []
    while next_docs := docs(pool(runs, {"q1": judged}, strategy=rule, budget=1)):
        order += next_docs
        judged[next_docs[0]] = int(next_docs[0] in relevant)
    assert order == list(judged_one_at_a_time(rule, lists, relevant))


def judged_one_at_a_time(rule: str, lists: list[list[str]], relevant: set[str]) -> Iterator[str]:
    state = Adjudication(lists, rule)
    while (doc := state.next()) is not None:
        yield doc
        state.judge(doc, doc in relevant)


# pair


def test_pair_puts_documents_that_cannot_change_the_difference_last() -> None:
    assert [doc for _, doc in pairs(pool(TWO, strategy="pair"))[-2:]] == ["c", "x"]


def test_pair_alternates_between_the_runs() -> None:
    runs = {"first": {"q1": ["a", "b", "c"]}, "second": {"q1": ["x", "y", "z"]}}
    assert docs(pool(runs, strategy="pair")) == ["a", "x", "b", "y", "c", "z"]


@settings(max_examples=40, deadline=None)
@given(LISTS.filter(lambda lists: len(lists) == 2))
def test_pair_judges_both_sides_evenly(lists: list[list[str]]) -> None:
    weights = rank_weights("nDCG@10", None)
    change = Counter({doc: 0.0 for one in lists for doc in one})
    for sign, listed in zip((1, -1), lists, strict=True):
        for rank, doc in enumerate(listed):
            change[doc] += sign * weights[rank]
    sides = [np.sign(change[doc]) for doc in docs(pool(runs_of(lists), strategy="pair"))]
    fewest = min(sides.count(1), sides.count(-1))
    for place in range(len(sides)):
        first, second = sides[:place].count(1), sides[:place].count(-1)
        assert abs(first - second) <= 1 or min(first, second) == fewest


def test_pair_catches_up_where_one_run_is_judged_already() -> None:
    runs = {"first": {"q1": ["a", "b"], "q2": ["c"]}, "second": {"q1": ["x", "y"], "q2": ["z"]}}
    made = pool(runs, {"q1": {"a": 1, "b": 1}}, strategy="pair")
    assert pairs(made) == [("q2", "c"), ("q2", "z"), ("q1", "x"), ("q1", "y")]


def test_pair_reaches_to_the_cutoff_of_the_measure() -> None:
    assert sorted(docs(pool(TWO, strategy="pair", measure="nDCG@2"))) == ["a", "b", "d"]
    assert pool(TWO, strategy="pair", measure="nDCG@20").settings.depth == 20
    assert pool(TWO, strategy="pair", measure="AP", depth=2).settings.depth == 2


def test_pair_of_more_runs_is_named_or_the_best_two() -> None:
    runs = {"worst": {"q1": ["x", "y"]}, "best": {"q1": ["a", "b"]}, "next": {"q1": ["b", "x"]}}
    assert pool(runs, {"q1": {"a": 1, "b": 1}}, strategy="pair").settings.runs == ("best", "next")
    assert pool(runs, strategy="pair", pair=("worst", "best")).settings.runs == ("worst", "best")
    with pytest.raises(InputError, match=r'pair=\("worst", "best"\)'):
        pool(runs, strategy="pair")
    with pytest.raises(InputError, match="two of the runs"):
        pool(runs, strategy="pair", pair=("worst", "other"))
    with pytest.raises(InputError, match="got one"):
        pool({"one": A}, strategy="pair")


def test_rank_weights_follow_the_measure() -> None:
    assert rank_weights("nDCG(discount=reciprocal)@2", None).tolist() == [1.0, 0.5]
    assert rank_weights("RBP(p=0.5)", 3).tolist() == [1.0, 0.5, 0.25]
    assert rank_weights("R@2", None).tolist() == [1.0, 1.0]
    assert len(rank_weights("AP", None)) == 10


# Settings, files, errors


def test_drawn_queries_are_recorded_and_reproducible() -> None:
    runs = {"one": {f"q{i}": ["a", "b"] for i in range(20)}}
    made = pool(runs, queries=5, seed=1)
    assert made.settings.queries == 20
    assert set(made.frame["query_id"]) == set(made.settings.sampled_queries or ())
    assert len(made.settings.sampled_queries or ()) == 5
    assert made.settings == pool(runs, queries=5, seed=1).settings
    assert made.settings != pool(runs, queries=5, seed=2).settings
    assert repr(made).endswith("; 5 of 20 queries drawn at random")
    assert pool(runs).settings.sampled_queries is None


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", ["pool.jsonl", "pool.jsonl.gz"])
def test_a_written_pool_reads_back(tmp_path: Path, strategy: str, name: str) -> None:
    made = pool(TWO, {"q1": {"a": 1}}, strategy=strategy, queries=1, seed=3)
    made.write(tmp_path / name)
    read = Pool.read(tmp_path / name)
    assert read.frame.equals(made.frame)
    assert (read.settings, read.design) == (made.settings, made.design)


def test_the_file_says_how_the_pool_was_made(tmp_path: Path) -> None:
    pool(TWO, strategy="pair", seed=7, budget=2).write(tmp_path / "pool.jsonl.gz")
    first, *rows = gzip.decompress((tmp_path / "pool.jsonl.gz").read_bytes()).decode().splitlines()
    made = json.loads(first)["pool"]
    assert (made["strategy"], made["seed"], made["budget"], made["measure"]) == ("pair", 7, 2, "nDCG@10")
    assert [json.loads(row)["priority"] for row in rows] == [1, 2]


def test_an_empty_pool_reads_back(tmp_path: Path) -> None:
    made = pool({"one": {"q1": ["a"]}}, {"q1": {"a": 1}})
    made.write(tmp_path / "pool.jsonl")
    assert len(Pool.read(tmp_path / "pool.jsonl")) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a pool: line 1"),
        ('{"query_id": "q1"}\n', "not a pool: line 1"),
        ('{"pool": {"strategy": "depth"}}\n', "line 1: 'depth'"),
        ("[1]\n", "not a pool: line 1"),
        ('{"pool": {"strategy": "depth"\n', "line 1: .*not JSON"),
    ],
)
def test_a_file_that_is_no_pool_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "pool.jsonl").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        Pool.read(tmp_path / "pool.jsonl")


def test_a_binary_file_is_not_a_pool(tmp_path: Path) -> None:
    sy.Run({"q1": ["a"]}).write(tmp_path / "run.parquet")
    with pytest.raises(InputError, match="not a pool.*lists the documents to judge"):
        Pool.read(tmp_path / "run.parquet")


def test_a_line_without_the_fields_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "pool.jsonl"
    pool(TWO).write(path)
    path.write_text(path.read_text(encoding="utf-8") + '{"query_id": "q9"}\n', encoding="utf-8")
    with pytest.raises(InputError, match="line 9: expected the fields"):
        Pool.read(path)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"strategy": "deep"}, "depth, mtf, bandit, pair, sample"),
        ({"depth": 0}, "depth is 0; expected a whole number, 1 or more"),
        ({"budget": 0}, "budget is 0; expected a whole number, 1 or more"),
        ({"queries": 9}, "the runs have 2 queries"),
    ],
)
def test_wrong_options_are_errors(given: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        pool(TWO, **given)


def test_wrong_runs_are_errors() -> None:
    with pytest.raises(InputError, match="no runs"):
        pool({})
    with pytest.raises(InputError, match="mapping of name to run"):
        pool("bm25.run")


# dl2019


@needs_shared
def test_simulated_judging_ends_with_the_verdict_of_evaluate() -> None:
    for a, b in dl2019.random_pairs(4, seed=1):
        scores = [
            sy.evaluate(dl2019.qrels(), dl2019.runs()[name], ["nDCG@10"]).per_query.sort("query_id") for name in (a, b)
        ]
        differences = (scores[0]["nDCG@10"] - scores[1]["nDCG@10"]).to_numpy()
        assert dl2019.SimulatedJudging(a, b).final() == dl2019.verdict(differences)


@needs_shared
@pytest.mark.slow
def test_pair_needs_at_most_half_the_judgments_of_depth() -> None:
    needed = {"depth": [], "pair": []}
    for a, b in dl2019.random_pairs(200, seed=0):
        judging = dl2019.SimulatedJudging(a, b)
        for strategy, counts in needed.items():
            made = pool({a: dl2019.runs()[a], b: dl2019.runs()[b]}, strategy=strategy)
            counts.append(judging.needed(pairs(made)))
    medians = {strategy: float(np.median(counts)) for strategy, counts in needed.items()}
    assert medians == {"depth": 70.0, "pair": 20.0}, "update docs/pooling.md and docs/validation.md"


@needs_shared
@pytest.mark.parametrize("rel", [1, 2])
def test_adjudication_finds_relevant_documents_earlier_than_depth(rel: int) -> None:
    depth = dl2019.relevant_found(pairs(pool(dl2019.runs())), rel)
    found = {rule: dl2019.relevant_found(simulated(rule, rel), rel) for rule in RULES}
    for rule in RULES:
        assert len(found[rule]) == len(depth)
        assert found[rule][-1] == depth[-1]
        for share in (0.1, 0.2, 0.3, 0.4, 0.5, 0.75):
            place = int(share * len(depth)) - 1
            assert found[rule][place] >= depth[place]
        half = {name: np.searchsorted(f, f[-1] / 2) for name, f in {"depth": depth, rule: found[rule]}.items()}
        assert half[rule] < 0.9 * half["depth"]


def simulated(rule: str, rel: float) -> list[tuple[str, str]]:
    """One document of every query in turn, each judged by the complete qrels before the next."""
    grades = dl2019.grades()
    return list(
        round_robin(
            {
                query: judged_one_at_a_time(rule, lists, {doc for doc, grade in grades[query].items() if grade >= rel})
                for query, lists in candidates_of(dl2019.runs(), 10).lists.items()
            }
        )
    )
