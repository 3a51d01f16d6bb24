"""Stages: every fate, ceiling and loss of random pipelines, and the story of real ones told by hand."""

from __future__ import annotations

import gzip
import json
import math
import random
from collections import Counter
from itertools import permutations, zip_longest
from pathlib import Path

import numpy as np
import pytest

import steelyard as sy
from needs import needs_shared, shared_data
from steelyard.cli import run as steelyard
from steelyard.comparison.stages import calls_of, stage_inputs, steps_of
from steelyard.errors import InputError, MeasureError, PolicyError

PIPELINES = 10_000
SHAPES = {
    "one": (("a",), {}),
    "chain": (("a", "b", "c", "d"), {}),
    "fused": (("a", "b", "c", "d"), {"c": ["a", "b"]}),
    "filtered": (("a", "b", "c", "d", "e"), {"d": ["b", "c"]}),
    "branches": (("a", "b", "c", "d", "e"), {"b": ["a"], "c": ["a"], "d": ["b", "c"]}),
    "skipped": (("a", "b", "c"), {"c": ["a", "b"], "b": ["a"]}),
    "three": (("a", "b", "c", "d", "e", "f"), {"d": ["a", "b", "c"]}),
}
DOCS = [f"d{number}" for number in range(8)]


def random_pipeline(rng, names, targets):
    """Judgments (document, grade, target) and one ranking per stage of one query; scores with ties, or lists."""
    judged = []
    for doc in rng.sample(DOCS, rng.randint(1, 7)):
        if targets and rng.random() < 0.6:
            judged += [(doc, rng.randint(1, 3), target) for target in rng.sample("xyz", rng.randint(1, 2))]
        else:
            judged.append((doc, rng.choice([-1, 0, 1, 1, 2, 3]), None))
    lists = {}
    for name in names:
        documents = rng.sample([*DOCS, "u1", "u2", "u3"], rng.randint(0, 8))
        if rng.random() < 0.5:
            lists[name] = {doc: float(rng.randint(1, 3)) for doc in documents}
        else:
            repeats = rng.sample(documents, min(len(documents), rng.randint(0, 2)))
            lists[name] = [*documents, *repeats]
            rng.shuffle(lists[name])
    return judged, lists


def ranks_of(listed):
    """The rank of every document of a list: its first occurrence; equal scores by id, descending."""
    if isinstance(listed, dict):
        listed = sorted(sorted(listed, reverse=True), key=lambda doc: -listed[doc])
    found = {}
    for rank, doc in enumerate(listed, 1):
        found.setdefault(doc, rank)
    return found


def reads_of(names, inputs):
    """What every stage reads, as the documentation says it."""
    named = {other for others in inputs.values() for other in others}
    before = dict(zip(names[1:], names, strict=False))
    return {
        name: list(inputs.get(name, [before[name]] if name in before and before[name] not in named else []))
        for name in names
    }


def fate_of(doc, names, reads, ranks, k):
    """The fate of a document: by the latest stage that had it in an input and does not return it."""
    last = ranks[names[-1]]
    if doc in last:
        return "delivered" if last[doc] <= k else "below the cutoff"
    lost = [name for name in names if doc not in ranks[name] and any(doc in ranks[other] for other in reads[name])]
    return f"lost in {lost[-1]}" if lost else "never retrieved"


def dcg(grades, k):
    return sum(max(grade, 0) / math.log2(rank + 1) for rank, grade in enumerate(grades[:k], 1))


def ceiling_of(documents, grades, k):
    ideal = dcg(sorted(grades.values(), reverse=True), k)
    found = sorted((grades[doc] for doc in documents if doc in grades), reverse=True)
    return dcg(found, k) / ideal if ideal else 0.0


def as_run(lists, name):
    """The lists of a stage as a run: scores and ranked ids are kept apart, as one run has one of the two."""
    return {query: each[name] for query, each in lists.items()}


def of_one_kind(rng, judged_lists, names):
    """Every stage has scores for all queries, or ranked ids for all: what a run can hold."""
    kinds = {name: rng.random() < 0.5 for name in names}
    for _, lists in judged_lists.values():
        for name in names:
            listed = lists[name]
            if kinds[name] and isinstance(listed, list):
                lists[name] = {doc: float(rng.randint(1, 3)) for doc in listed}
            elif not kinds[name] and isinstance(listed, dict):
                lists[name] = list(listed)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("targets", [False, True])
@pytest.mark.filterwarnings("ignore::steelyard.errors.SteelyardWarning")
def test_every_fate_ceiling_and_loss_of_random_pipelines(shape, targets):
    names, inputs = SHAPES[shape]
    reads, k = reads_of(names, inputs), 3
    rng = random.Random(f"{shape} {targets}")
    size = PIPELINES // (2 * len(SHAPES)) + 1
    made = {f"q{number}": random_pipeline(rng, names, targets) for number in range(size)}
    of_one_kind(rng, made, names)
    rows = [(query, doc, grade, target) for query, (judged, _) in made.items() for doc, grade, target in judged]
    lists = {query: each for query, (_, each) in made.items()}
    qrels = sy.Qrels.from_rows(rows)
    result = sy.stages(qrels, {name: as_run(lists, name) for name in names}, f"nDCG@{k}", inputs=inputs)

    order = ["never retrieved", *(f"lost in {name}" for name in names), "below the cutoff", "delivered"]
    expected, found = {}, {}
    for query, (judged, each) in made.items():
        ranks = {name: ranks_of(each[name]) for name in names}
        grades = {}
        for doc, grade, target in judged:
            grades[doc] = max(grade, grades.get(doc, grade))
            if grade > 0:
                fate = fate_of(doc, names, reads, ranks, k)
                key = query, target or doc
                expected[key] = max(expected.get(key, fate), fate, key=order.index)
        sources = [name for name in names if not reads[name]]
        first = set().union(*(ranks[name] for name in sources))
        found[query] = [ceiling_of(grades, grades, k), ceiling_of(first, grades, k)]
        found[query].append(ceiling_of(ranks[names[-1]], grades, k))
    fates = {(query, target): fate for query, target, fate, *_ in result.target_fates.rows()}
    assert fates == expected
    assert sum(result.fates.values()) == len(expected) == result.target_fates.height
    assert {fate: count for fate, count in result.fates.items() if count} == Counter(expected.values())

    per_query = result.per_query
    ends = [per_query[column].to_list() for column in ("best", f"ceiling {result.steps[0]}", f"ceiling {names[-1]}")]
    np.testing.assert_allclose(np.transpose(ends), list(found.values()), rtol=0, atol=1e-12)
    lost = per_query.select([column for column in per_query.columns if column.startswith("lost ")]).to_numpy()
    left = per_query["best"].to_numpy() - lost.sum(axis=1)
    np.testing.assert_allclose(left, per_query["value"].to_numpy(), rtol=0, atol=1e-12)
    scores = sy.evaluate(qrels, as_run(lists, names[-1]), [f"nDCG@{k}"])
    np.testing.assert_array_equal(per_query["value"].to_numpy(), scores.values(f"nDCG@{k}"))
    data = result.to_dict()
    total = sum(stage["lost"] for stage in data["stages"]) + data["ordering"]["lost"]
    assert data["best"] - total == pytest.approx(data["value"], abs=1e-12)


MEASURES = [
    *("nDCG@3", "nDCG(gain=exp)@3", "nDCG(discount=reciprocal)@2", "AP", "AP@2", "RR", "P@2", "R@2", "Hit@2", "F@2"),
    *("RBP", "ERR@3", "Rprec", "bpref", "infAP", "P(rel=2)@2", "P(denominator=retrieved)@3", "nDCG(ideal=retrieved)@3"),
    *("Utility", "nDCG(per=target)@2"),
    *("R(per=target)@2", "RR(per=target)@3", "DR@2", "Diversity@2", "AllTargets@2", "alpha_nDCG@3", "ERR_IA@3"),
]


@pytest.mark.slow
@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.filterwarnings("ignore::steelyard.errors.SteelyardWarning")
def test_a_ceiling_is_the_best_of_all_orders(measure):
    rng = random.Random(measure)
    for number in range(8):
        documents = rng.sample(DOCS[:6], 4)
        if number % 2:
            rows = [("q", doc, rng.randint(1, 3), rng.choice("xy")) for doc in documents]
        else:
            rows = [("q", doc, rng.choice([0, 1, 2, 3]), None) for doc in documents]
        listed = [*rng.sample(DOCS[:6], rng.randint(1, 4)), "u"]
        listed += listed[:1] if rng.random() < 0.3 else []
        qrels = sy.Qrels.from_rows(rows)
        orders = {"q": listed}
        values = [sy.evaluate(qrels, {"q": list(order)}, [measure])[measure] for order in set(permutations(listed))]
        result = sy.stages(qrels, {"retrieve": orders}, measure)
        assert result.table["ceiling"][0] == pytest.approx(max(values), abs=1e-12), (rows, listed)
        assert (result.losses >= -1e-12).all()


@pytest.mark.parametrize("measure", ["AP(per=target)", "AP_IA@4"])
@pytest.mark.filterwarnings("ignore::steelyard.errors.SteelyardWarning")
def test_the_ceiling_of_ap_over_targets_is_close_to_the_best_of_all_orders(measure):
    rng, gaps = random.Random(measure), []
    for _ in range(12):
        rows = [("q", doc, 1, target) for target in "xyz" for doc in rng.sample(DOCS[:6], rng.randint(1, 3))]
        qrels, listed = sy.Qrels.from_rows(rows), rng.sample(DOCS[:6], 4)
        values = [sy.evaluate(qrels, {"q": list(order)}, [measure])[measure] for order in permutations(listed)]
        result = sy.stages(qrels, {"retrieve": {"q": listed}}, measure)
        gaps.append(max(values) - result.table["ceiling"][0])
        assert (result.losses >= -1e-12).all()
    assert min(gaps) >= -1e-12
    assert max(gaps) < 0.06
    assert sum(gap > 1e-12 for gap in gaps) <= 3


def test_nothing_is_lost_by_a_perfect_list_with_a_judged_document_that_costs():
    result = sy.stages({"q": {"a": 1, "b": 0, "c": -1}}, {"retrieve": {"q": ["a"]}}, "Utility")
    assert (result.best.tolist(), result.value) == ([1.0], 1.0)


def lists_of(path: Path) -> dict[str, list[str]]:
    """The ranked documents of a TREC file, by its scores."""
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text("utf-8")
    rows = [line.split() for line in text.splitlines()]
    lists: dict[str, list[str]] = {}
    for query, _, doc, _, _score, _ in sorted(rows, key=lambda row: (-float(row[4]), row[2])):
        lists.setdefault(query, []).append(doc)
    return lists


@needs_shared
def test_docs_rag_the_story_by_hand():
    """52 of 192 gold chunks are in no list, 7 were found at first and dropped by the third pipeline."""
    folder = shared_data("docs-rag")
    base, three = (lists_of(folder / "runs" / f"retrieve_{name}.trec") for name in ("base", "level_three"))
    gold = [line.split("\t")[:2] for line in (folder / "qrels.tsv").read_text("utf-8").splitlines()[1:]]
    never = sum(doc not in base.get(query, []) and doc not in three.get(query, []) for query, doc in gold)
    lost = sum(doc in base.get(query, []) and doc not in three.get(query, []) for query, doc in gold)
    added = sum(doc not in base.get(query, []) and doc in three.get(query, []) for query, doc in gold)
    files = {name: folder / "runs" / f"retrieve_{name}.trec" for name in ("base", "level_three")}
    result = sy.stages(folder / "qrels.tsv", files, "nDCG@3")
    assert (never, lost, len(gold)) == (52, 7, 192)
    assert result.fates == {
        "never retrieved": 52, "lost in level_three": 7, "below the cutoff": 0, "delivered": 133,
    }  # fmt: skip
    assert result.table["added"].to_list() == [None, added]
    grades: dict[str, dict[str, int]] = {}
    for query, doc in gold:
        grades.setdefault(query, {})[doc] = 1
    ceilings = [
        np.mean([ceiling_of(lists.get(query, []), judged, 3) for query, judged in grades.items()])
        for lists in (base, three)
    ]
    np.testing.assert_allclose(result.table["ceiling"], ceilings, atol=1e-12)
    states = [np.mean([ceiling_of(list(judged), judged, 3) for judged in grades.values()]), *ceilings, result.value]
    np.testing.assert_allclose(result.losses.mean(axis=1), -np.diff(states), atol=1e-12)
    assert result.verdict.startswith("Work on: base (0.31 of the 0.35 lost")
    assert result.value == pytest.approx(sy.evaluate(folder / "qrels.tsv", files["level_three"], ["nDCG@3"])["nDCG@3"])


@needs_shared
def test_dl2019_the_story_by_hand():
    """The lists of p_bert contain nearly everything that a perfect order would need: the order is what costs."""
    folder = shared_data("dl2019")
    files = {
        name: folder / "runs" / f"{run}.run.gz" for name, run in (("retrieve", "bm25base_p"), ("rerank", "p_bert"))
    }
    lists = {name: lists_of(path) for name, path in files.items()}
    grades: dict[str, dict[str, int]] = {}
    for line in (folder / "qrels.txt").read_text("utf-8").splitlines():
        query, _, doc, grade = line.split()
        grades.setdefault(query, {})[doc] = int(grade)
    ceilings = {
        name: [ceiling_of(each.get(query, []), judged, 10) for query, judged in grades.items()]
        for name, each in lists.items()
    }
    result = sy.stages(folder / "qrels.txt", files)
    np.testing.assert_allclose(result.table["ceiling"], [np.mean(each) for each in ceilings.values()], atol=1e-12)
    assert result.table["ceiling"].to_list() == pytest.approx([0.8922, 0.9472], abs=1e-4)
    assert result.fates["delivered"] == sum(
        grades[query].get(doc, 0) > 0 for query, docs in lists["rerank"].items() if query in grades for doc in docs[:10]
    )
    assert result.verdict == "Work on: ordering (0.21 of the 0.32 lost; 0.05 gained back)"


def losing(queries, share, stage):
    """A pipeline whose stage loses the one relevant document of a share of the queries."""
    found = {f"q{number}": ["x", "r", "y"] for number in range(queries)}
    kept = {
        query: (["x", "y"] if number < share * queries else docs) for number, (query, docs) in enumerate(found.items())
    }
    lists = {"retrieve": found, "rerank": found, "context": found}
    names = list(lists)
    return {name: kept if names.index(name) >= names.index(stage) else found for name in names}


def test_verdict_names_a_stage_only_if_it_loses_significantly_more():
    qrels = {f"q{number}": ["r"] for number in range(40)}
    result = sy.stages(qrels, losing(40, 0.75, "rerank"), "R@3")
    assert result.verdict == "Work on: rerank (0.75 of the 0.75 lost)"
    assert result.fates == {
        "never retrieved": 0, "lost in rerank": 30, "lost in context": 0, "below the cutoff": 0, "delivered": 10,
    }  # fmt: skip
    lists = losing(40, 0.25, "rerank")
    lists["context"] = {
        query: [] if number % 4 == 0 else docs for number, (query, docs) in enumerate(lists["rerank"].items())
    }
    assert sy.stages(qrels, lists, "R@3").verdict.startswith(
        "No stage loses significantly more than the others: rerank"
    )
    assert sy.stages(qrels, {"retrieve": {query: ["r"] for query in qrels}}, "RR").verdict == (
        "Nothing to gain: RR is 1.0000, and 1.0000 is the best value."
    )


def test_moves_depth_and_what_a_first_stage_alone_adds():
    qrels = {"q1": ["a", "b", "c", "d"]}
    lists = {"lexical": {"q1": ["x", "y", "a", "b"]}, "dense": {"q1": ["c", "z", "d"]}, "fuse": {"q1": ["c", "a"]}}
    result = sy.stages(qrels, lists, "R@2", inputs={"fuse": ["lexical", "dense"]})
    assert result.steps == ("lexical + dense", "fuse")
    fuse = result.table.row(1, named=True)
    assert (fuse["lifted"], fuse["pushed"], fuse["added"]) == (1, 0, 0)
    assert fuse["below_depth"] == 2, "b at 4 and d at 3 were below the 2 documents that fuse returned"
    assert result.own == {"lexical": (0.5, 0.0), "dense": (0.5, 0.0)}
    assert result.to_dict()["parallel"] == [
        {"stage": "lexical", "ceiling": 0.5, "adds": 0.0}, {"stage": "dense", "ceiling": 0.5, "adds": 0.0},
    ]  # fmt: skip
    assert result.target_fates.row(0, named=True) == {
        "query_id": "q1", "target": "a", "fate": "delivered", "rank lexical": 3, "rank dense": None, "rank fuse": 2,
    }  # fmt: skip


def test_difference_of_two_pipelines_adds_up_and_names_the_stage():
    qrels = {f"q{number}": ["r"] for number in range(40)}
    worse, better = (sy.stages(qrels, losing(40, share, "rerank"), "RR") for share in (0.75, 0.1))
    table = better.difference(worse)
    assert table["gained"].sum() == pytest.approx(better.value - worse.value, abs=1e-12)
    assert dict(zip(table["stage"], table["p_adjusted"] < 0.05, strict=True)) == {
        "retrieve": False, "rerank": True, "context": False, "ordering": True,
    }  # fmt: skip
    with pytest.raises(InputError, match="differ in their stages"):
        better.difference(sy.stages(qrels, {"retrieve": losing(40, 0.5, "rerank")["context"]}, "RR"))


@pytest.mark.parametrize("measure", ["R(budget={})", "R(budget={})@3", "Hit(budget={})", "R(per=target, budget={})"])
def test_a_budget_is_the_last_stage(measure):
    """Random pipelines: what the budget cuts, by hand; the losses add up to the measure with the budget."""
    rng = random.Random(measure)
    tokens = {doc: rng.randint(0, 40) for doc in DOCS}
    kept_none = 0
    for budget in (0, 5, 30, 90, 10_000):
        qrels = {f"q{number}": {doc: rng.randint(0, 2) for doc in rng.sample(DOCS, 5)} for number in range(40)}
        found, passed = ({query: rng.sample(DOCS, size) for query in qrels} for size in (7, 6))
        final = sy.Run(passed, tokens=tokens)
        written = measure.format(budget)
        result = sy.stages(qrels, {"retrieve": found, "context": final}, written)
        assert result.steps == ("retrieve", "context", "budget")
        k = 3 if "@3" in measure else 8
        expected = Counter()
        for query, grades in qrels.items():
            through = np.cumsum([tokens[doc] for doc in passed[query]])
            fits = [doc for doc, end in zip(passed[query], through, strict=True) if end <= budget]
            kept_none += not fits
            for doc in (doc for doc, grade in grades.items() if grade > 0):
                expected[
                    "delivered" if doc in fits[:k]
                    else "below the cutoff" if doc in fits
                    else "lost in budget" if doc in passed[query]
                    else "lost in context" if doc in found[query]
                    else "never retrieved"
                ] += 1  # fmt: skip
        assert Counter({fate: count for fate, count in result.fates.items() if count}) == expected
        value = sy.evaluate(qrels, final, [written])[written]
        assert result.value == pytest.approx(value, abs=1e-12)
        assert result.best.mean() - result.losses.mean(axis=1).sum() == pytest.approx(value, abs=1e-12)
        without = measure.replace("budget={}", "rel=1")
        assert result.table["value"][1] == pytest.approx(sy.evaluate(qrels, passed, [without])[without], abs=1e-12)
    assert kept_none > 0, "some lists are cut completely"


@pytest.mark.parametrize("measure", ["R", "AP", "RR"])
def test_fates_and_moves_of_a_measure_without_cutoff(measure):
    lists = {"retrieve": {"q1": ["x", "a", "b"]}, "rerank": {"q1": ["a", "x", "d"]}}
    result = sy.stages({"q1": ["a", "b", "c", "d"]}, lists, measure)
    assert result.fates == {"never retrieved": 1, "lost in rerank": 1, "below the cutoff": 0, "delivered": 2}
    assert (result.rows[1]["lifted"], result.rows[1]["pushed"]) == (1, 1)


def test_slices_and_options():
    qrels = {"q1": {"r": 2}, "q2": {"r": 1}}
    lists = {"retrieve": {"q1": ["r"]}, "rerank": {"q1": ["r"]}}
    result = sy.stages(qrels, lists, "RR", by="kind", queries={"q1": {"kind": "long"}, "q2": {"kind": "short"}})
    assert result.slices.rows() == [("long", 1, 1.0, 0.0, 0.0, 0.0, 1.0), ("short", 1, 1.0, 1.0, 0.0, 0.0, 0.0)]
    assert sy.stages(qrels, lists, "RR", rel=2).fates["delivered"] == 1
    assert sum(sy.stages(qrels, lists, "RR", rel=2).fates.values()) == 1


@pytest.mark.parametrize(
    ("changes", "error", "expected"),
    [
        ({"measure": "Latency"}, MeasureError, "not a mean of which more is better"),
        ({"measure": "GMAP"}, MeasureError, "not a mean of which more is better"),
        ({"measure": "SpanR@5"}, MeasureError, "depends on the texts"),
        ({"measure": "ARR"}, MeasureError, "another relevant document lowers it"),
        ({"measure": "R(budget=10)"}, MeasureError, "needs the length of each document"),
        ({"measure": "R(budget=10)", "stages": {"budget": {"q": ["a"]}}}, InputError, "give your stage another name"),
        ({"missing": "skip"}, PolicyError, "empty list"),
        ({"depth": 3}, PolicyError, "empty list"),
        ({"alpha": 2}, PolicyError, "alpha is 2"),
        ({"rel": 9, "no_relevant": "skip"}, InputError, "no query has a value"),
        ({"stages": {}}, InputError, "no stage is given"),
        ({"stages": {"ordering": {"q": ["a"]}}}, InputError, "cannot be the name of a stage"),
        ({"stages": {"\ud800": {"q": ["a"]}}}, InputError, "the name of a stage is .* expected a text in UTF-8"),
        ({"stages": {name: {} for name in ("a", "b", "a + b")}, "inputs": {"a + b": "ab"}}, InputError, "is the step"),
        ({"inputs": {"b": ["c"]}}, InputError, "there is no stage 'c'"),
        ({"inputs": {"a": ["b"]}}, InputError, "not before it"),
        ({"inputs": {"b": []}}, InputError, "no stage reads 'a'"),
    ],
)
def test_wrong_arguments(changes, error, expected):
    arguments = {"stages": {"a": {"q": ["a"]}, "b": {"q": ["a"]}}, "measure": "RR", **changes}
    with pytest.raises(error, match=expected):
        sy.stages({"q": ["a"]}, **arguments)


def test_plan_of_a_graph():
    reads = stage_inputs(("lexical", "cut", "dense", "fuse", "rerank"), {"fuse": ["cut", "dense"]})
    assert list(steps_of(reads).items()) == [
        ("lexical + dense", ("lexical", "dense")),
        ("cut", ("dense", "cut")),
        ("fuse", ("fuse",)),
        ("rerank", ("rerank",)),
    ]


@pytest.fixture
def files(tmp_path):
    (tmp_path / "qrels.trec").write_text("".join(f"q{n} 0 r{n} 1\nq{n} 0 s{n} 1\n" for n in range(20)))
    runs = {"retrieve": "xrs", "fuse": "rxs", "rerank": "rsx", "filter": "rs", "context": "r"}
    for name, documents in runs.items():
        lines = [f"q{n} Q0 {d}{n} {r} {9 - r} {name}\n" for n in range(20) for r, d in enumerate(documents, 1)]
        (tmp_path / f"{name}.run").write_text("".join(lines))
    return [str(tmp_path / "qrels.trec"), *(f"{name}={tmp_path / name}.run" for name in runs)]


def test_command_prints_at_most_15_lines_of_80_columns(files, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert steelyard(["stages", *files]) == 0
    out, err = capsys.readouterr()
    assert err.startswith("Work on: context (0.39 of the 0.39 lost)")
    assert len((out + err).splitlines()) <= 15
    assert max(map(len, out.splitlines())) <= 80
    assert "Of 40 relevant documents: 20 lost in context and 20 delivered." in err
    qrels, first, second, *rest = files
    long = [f"a lexical search of old {first}", f"a dense search of new {second}"]
    named = [f"{name.replace(' retrieve=', '=').replace(' fuse=', '=')}" for name in long]
    inputs = "rerank=a lexical search of old,a dense search of new"
    assert steelyard(["stages", qrels, *named, *rest, "--inputs", inputs]) == 0
    out, err = capsys.readouterr()
    assert len((out + err).splitlines()) <= 12
    assert max(map(len, out.splitlines())) <= 80
    assert "Ceilings of the first stages alone: a lexical search of old" in err


def test_json_of_the_command_is_the_promised_one(files, capsys):
    assert steelyard(["stages", *files, "-m", "R@2", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert {"steelyard", "measure", "best", "value", "targets", "fates", "stages", "ordering"} <= set(data)
    assert [stage["stage"] for stage in data["stages"]] == ["retrieve", "fuse", "rerank", "filter", "context"]
    assert all({"stage", "ceiling", "lost", "low", "high"} <= set(stage) for stage in data["stages"])
    assert set(data["ordering"]) == {"lost", "low", "high"}
    assert data["fates"] == {
        "never retrieved": 0, "lost in fuse": 0, "lost in rerank": 0, "lost in filter": 0, "lost in context": 20,
        "below the cutoff": 0, "delivered": 20,
    }  # fmt: skip


def test_command_with_parallel_stages_slices_and_queries(files, tmp_path, capsys):
    qrels, *runs = files
    arguments = ["stages", qrels, *runs, "--inputs", "rerank=retrieve,fuse", "--by", "complexity"]
    assert steelyard([*arguments, "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [stage["stage"] for stage in data["stages"]][0] == "retrieve + fuse"
    assert data["slices"][0]["complexity"] == "simple"
    assert steelyard([*arguments[:-2], "--per-query", "-o", str(tmp_path / "q.csv")]) == 0
    assert (tmp_path / "q.csv").read_text().startswith("query_id,best,ceiling retrieve + fuse,")
    assert steelyard(["stages", qrels, runs[0].partition("=")[2]]) == 2
    assert "has no stage; expected STAGE=RUN" in capsys.readouterr().err


def test_command_with_an_earlier_pipeline(files, capsys):
    qrels, retrieve, _, _, _, context = files
    arguments = ["stages", qrels, retrieve, f"context={retrieve.partition('=')[2]}", "-m", "R@3", "--format", "json"]
    assert steelyard([*arguments, "--before", retrieve, "--before", context]) == 0
    assert [(row["stage"], row["gained"]) for row in json.loads(capsys.readouterr().out)] == [
        ("retrieve", 0.0), ("context", 0.5), ("ordering", 0.0),
    ]  # fmt: skip


def test_every_format_and_a_page_that_escapes_names(files, tmp_path):
    qrels, *runs = files
    paths = [run.partition("=")[2] for run in runs]
    names = ["<b>retrieve</b>", "re|rank", "context & more"]
    result = sy.stages(qrels, dict(zip_longest(names, paths[:3])), "RR@1")
    page = result.to_html(tmp_path / "page.html")
    assert "<b>retrieve" not in page
    assert all(part in page for part in ("&lt;b&gt;retrieve", "<svg", "context &amp; more", "documents by fate"))
    assert "re\\|rank" in result.to_markdown()
    assert "\\toprule" in result.to_latex()
    assert result.to_csv().startswith("stage,ceiling,value,lost,low,high")
    assert "RR@1 of 20 queries: best 1.0000" in result.to_text()


def test_intervals_of_ceilings_and_losses_are_within_the_range_of_the_measure():
    qrels, nothing = {"q1": ["a"], "q2": ["b"]}, {"q1": ["x"], "q2": ["y"]}
    result = sy.stages(qrels, {"retrieve": {"q1": ["a"], "q2": ["x"]}, "rerank": nothing}, "nDCG@10")
    for row in result.table.to_dicts():
        assert (row["low"], row["high"]) == (-1, 1)
        assert 0 <= row["ceiling_low"] <= row["ceiling_high"] <= 1
    other = sy.stages(qrels, {"retrieve": {"q1": ["x"], "q2": ["b"]}, "rerank": nothing}, "nDCG@10")
    assert result.difference(other)["high"].max() == 2


def test_what_stages_read_and_their_calls():
    reads = stage_inputs(("lexical", "dense", "fuse", "rerank"), {"fuse": ("lexical", "dense")})
    assert reads == {"lexical": (), "dense": (), "fuse": ("lexical", "dense"), "rerank": ("fuse",)}
    assert calls_of({"calls": [{"q1": ["a"]}, {"q1": ["b"]}]}) == [{"q1": ["a"]}, {"q1": ["b"]}]
    assert calls_of({"q1": ["a"]}) is None


def test_a_measure_without_a_value_is_not_blamed_on_the_qrels() -> None:
    """Accuracy has no value where no list has a relevant document; the error said that the qrels had none."""
    with pytest.raises(InputError, match="no query has a value of Accuracy@3 in every stage"):
        sy.stages({"q": {"r": 1}}, {"retrieve": {"q": ["x", "y"]}, "rerank": {"q": ["y"]}}, "Accuracy@3")
