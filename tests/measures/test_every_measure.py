"""Properties of every measure in the registry. A new measure is tested as soon as it is registered."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest
from all_gradings import ranges_of_documents
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import steelyard as sy
from steelyard.alignment.alignment import align
from steelyard.alignment.hits import Ordering
from steelyard.dialects.explain import sections
from steelyard.errors import MeasureError
from steelyard.measures.compute import values
from steelyard.measures.grammar import Measure, parse
from steelyard.measures.registry import Definition, definitions

Judged = dict[str, Any]
Listed = dict[str, list[str]]

CUTOFFS: dict[str, list[float]] = {"rank": [1, 3, 10], "recall": [0, 0.4, 1], "multiple": [0.5, 1, 2]}
DOCS = "abcdefgh"
GRADES = [-1.0, 0.0, 0.5, 1.0, 2.0, 3.0]
CLOSE = 1e-9


def forms(definition: Definition) -> list[Measure]:
    """The measure as it is written without parameters, and at some cutoffs."""
    if definition.name == "Composite":
        return [parse("Composite(weights={nDCG@3: 0.5, R: 0.3, Confusion@2: 0.2})")]
    bare = Measure(definition)
    without = [] if definition.cutoff == "required" else [bare]
    return without + ([] if definition.cutoff == "none" else [bare @ cut for cut in CUTOFFS[definition.cutoff_kind]])


def variants(definition: Definition) -> Iterator[Measure]:
    """Every choice of every parameter, one at a time."""
    first = forms(definition)[0]
    for parameter in definition.parameters:
        choices: tuple[Any, ...] = parameter.choices
        if parameter.kind == "flag":
            choices = (True, False)
        elif parameter.kind == "number" and parameter.name not in ("max_rel", "min_rel"):
            choices = (0.75,)
        elif parameter.kind == "integer":
            choices = (7,)
        elif parameter.kind == "gain":
            choices = (*choices, {1: 2, 2: 0.5})
        for choice in choices:
            yield first(**{parameter.name: choice})


EVERY = list(definitions().values())
FORMS = [form for definition in EVERY for form in forms(definition)]


def table(judged: Judged, listed: Listed, measures: list[Measure]) -> np.ndarray:
    """One row a measure, one column a query."""
    run = sy.Run(listed, seconds=dict.fromkeys(judged, 0.25))
    a = replace(align(sy.Qrels(judged), run, Ordering()).alignment, ranges=ranges_of_documents(judged, listed))
    return np.array([values(measure, a) for measure in measures]).reshape(len(measures), a.size)


def judgments(targets: bool = True) -> st.SearchStrategy[Any]:
    """What is judged of one query: grades, or lists of what satisfies each target."""
    graded = st.dictionaries(st.sampled_from(DOCS), st.sampled_from(GRADES), max_size=6)
    groups = st.lists(st.lists(st.sampled_from(DOCS), min_size=1, max_size=3, unique=True), min_size=1, max_size=3)
    return graded | groups if targets else graded


rankings = st.lists(st.sampled_from(DOCS + "uv"), unique=True, max_size=8)


@st.composite
def collections(draw: st.DrawFn, targets: bool = True) -> tuple[Judged, Listed]:
    """A few queries, some of them with no judgments, with an empty list or with none."""
    judged = draw(st.dictionaries(st.sampled_from("123"), judgments(targets), min_size=1))
    listed = {query: draw(rankings) for query in judged if draw(st.integers(0, 5)) > 0}
    return judged, listed


law = settings(max_examples=40, deadline=None, derandomize=True)


@law
@given(collections())
def test_values_keep_within_their_bounds(case: tuple[Judged, Listed]) -> None:
    for measure, row in zip(FORMS, table(*case, FORMS), strict=True):
        about = measure.definition
        known = row[~np.isnan(row)]
        assert len(known) == len(row) or math.isnan(about.empty), f"{measure} is not a number"
        assert np.all(np.isfinite(known)), measure
        assert np.all(known >= about.low - CLOSE), f"{measure} = {known.min()} is below {about.low}"
        assert np.all(known <= about.high + CLOSE), f"{measure} = {known.max()} is above {about.high}"


@pytest.mark.slow
@law
@given(collections())
def test_the_order_of_queries_does_not_matter(case: tuple[Judged, Listed]) -> None:
    judged, listed = case
    turned = table(dict(reversed(judged.items())), dict(reversed(listed.items())), FORMS)
    np.testing.assert_allclose(turned[:, ::-1], table(judged, listed, FORMS), rtol=0, atol=CLOSE)


EVERY_VARIANT = [*FORMS, *(each for definition in EVERY for each in variants(definition) if each.name != "Composite")]


@pytest.mark.slow
@settings(law, max_examples=5)
@given(collections(), st.lists(rankings, min_size=2, max_size=2))
def test_what_is_kept_of_the_qrels_changes_no_value(case: tuple[Judged, Listed], lists: list[list[str]]) -> None:
    """The runs of one Qrels share what depends on the qrels alone: every value is that of new qrels, bit for bit."""
    judged, listed = case
    shared = sy.Qrels(judged)
    for change in (None, *lists):
        run = listed if change is None else dict.fromkeys(listed, change)
        for depth, unjudged in ((None, "keep"), (2, "keep"), (None, "remove")):
            found = []
            for qrels in (shared, sy.Qrels(judged)):
                a = align(qrels, run, Ordering()).alignment.cut(depth)
                a = a.without_unjudged() if unjudged == "remove" else a
                found.append(measured(a))
            for measure, one, other in zip(EVERY_VARIANT, *found, strict=True):
                assert one == other, measure


def measured(a: Any) -> list[bytes | None]:
    """The values of every measure as bytes; None for one that needs what the run does not have."""
    found: list[bytes | None] = []
    for measure in EVERY_VARIANT:
        try:
            found.append(values(measure, a).tobytes())
        except MeasureError:
            found.append(None)
    return found


@pytest.mark.slow
@law
@given(collections())
def test_unjudged_documents_below_do_not_matter_where_so_stated(case: tuple[Judged, Listed]) -> None:
    judged, listed = case
    longer = {query: [*docs, "x", "y", "z"] if docs else docs for query, docs in listed.items()}
    measures = [measure for measure in FORMS if measure.definition.tail]
    short, long = table(judged, listed, measures), table(judged, longer, measures)
    for measure, before, after in zip(measures, short, long, strict=True):
        np.testing.assert_allclose(after, before, rtol=0, atol=CLOSE, err_msg=str(measure))


RAISED_BY_MORE = {"Accuracy", "Compat", "Composite", "Rndcg"}
"""Measures that compare a list with the rest of itself, or depend on its length."""


@pytest.mark.slow
@law
@given(collections())
def test_unjudged_documents_below_never_help(case: tuple[Judged, Listed]) -> None:
    judged, listed = case
    longer = {query: [*docs, "x", "y", "z"] if docs else docs for query, docs in listed.items()}
    measures = [m for m in FORMS if m.definition.better == "more" and m.name not in RAISED_BY_MORE]
    short, long = table(judged, listed, measures), table(judged, longer, measures)
    for measure, before, after in zip(measures, short, long, strict=True):
        assert not np.any(after > before + CLOSE), measure


WHATEVER_THE_CUTOFF = {"nDCG", "nERR", "alpha_nDCG", "nERR_IA", "RR", "Hit"}


def has_all_at(measure: Measure) -> bool:
    return measure.cutoff in (None, 10) or measure.definition.cutoff_kind != "rank"


@law
@given(judgments(targets=False))
def test_the_perfect_list_has_the_ideal_value(judged: dict[str, float]) -> None:
    best_first = sorted((doc for doc in judged if judged[doc] > 0), key=lambda doc: -judged[doc])
    assume(any(grade >= 1 for grade in judged.values()))
    measures = [m for m in FORMS if m.definition.ideal is not None and (has_all_at(m) or m.name in WHATEVER_THE_CUTOFF)]
    for measure, (found,) in zip(measures, table({"q": judged}, {"q": best_first}, measures), strict=True):
        assert found == pytest.approx(measure.definition.ideal, abs=CLOSE), measure


@pytest.mark.slow
@law
@given(st.dictionaries(st.sampled_from("123"), judgments(), min_size=1))
def test_the_empty_list_has_its_stated_value(judged: Judged) -> None:
    measures = [measure for measure in FORMS if not math.isnan(measure.definition.empty)]
    for listed in ({query: [] for query in judged}, {}):
        for measure, row in zip(measures, table(judged, listed, measures), strict=True):
            np.testing.assert_allclose(row, measure.definition.empty, rtol=0, atol=CLOSE, err_msg=str(measure))


HIGHER_IS_BETTER = [
    parse(f"{name}{at}")
    for name in ("nDCG", "nDCG(gain=exp)", "DCG", "AP", "RR", "ERR", "nERR", "RBP", "RBP(gain=linear)", "P", "R")
    for at in ("", "@1", "@3")
]


@pytest.mark.slow
@law
@given(judgments(targets=False), rankings, st.integers(0, 6))
def test_a_better_document_one_rank_higher_never_hurts(judged: dict[str, float], listed: list[str], place: int) -> None:
    assume(place + 1 < len(listed))
    swapped = [*listed[:place], listed[place + 1], listed[place], *listed[place + 2 :]]
    if judged.get(listed[place + 1], 0) < judged.get(listed[place], 0):
        listed, swapped = swapped, listed
    worse = table({"q": judged}, {"q": listed}, HIGHER_IS_BETTER)
    better = table({"q": judged}, {"q": swapped}, HIGHER_IS_BETTER)
    for measure, (before,), (after,) in zip(HIGHER_IS_BETTER, worse, better, strict=True):
        assert after >= before - CLOSE, measure


def arrays(held: Any) -> Iterator[np.ndarray]:
    for field in fields(held):
        part = getattr(held, field.name)
        if isinstance(part, np.ndarray):
            yield part
        elif is_dataclass(part):
            yield from arrays(part)


@pytest.mark.parametrize("definition", EVERY, ids=lambda definition: definition.name)
def test_measuring_changes_nothing(definition: Definition) -> None:
    docs = {"a": "one two", "b": "one two", "c": "three", "u": "four"}
    run = sy.Run({"1": {"c": 4.0, "a": 3.0, "u": 3.0, "b": 1.0}, "2": {}}, seconds={"1": 0.1}, texts=docs)
    judged = {"1": {"a": 2, "b": 0.5, "c": -1, "d": 1}, "2": {"a": 1}}
    tokens = {doc: len(text.split()) for doc, text in docs.items()}
    ranges = ranges_of_documents(judged, {"1": list("cuab"), "2": []}, tokens)
    a = replace(align(sy.Qrels(judged), run, Ordering()).alignment, ranges=ranges)
    for array in arrays(a):
        array.flags.writeable = False
    for measure in [*forms(definition), *variants(definition)]:
        assert values(measure, a).shape == (2,)


@pytest.mark.parametrize("definition", EVERY, ids=lambda definition: definition.name)
def test_text_reads_back(definition: Definition) -> None:
    for measure in [*forms(definition), *variants(definition)]:
        assert parse(str(measure)) == measure
        assert parse(measure.spelled) == measure
        assert hash(parse(str(measure))) == hash(measure)
    for alias in definition.aliases:
        cut = "" if definition.cutoff != "required" else f"@{CUTOFFS[definition.cutoff_kind][0]}"
        assert parse(alias + cut).definition is definition
        assert parse(alias.upper() + cut).definition is definition


@pytest.mark.parametrize("definition", EVERY, ids=lambda definition: definition.name)
def test_the_definition_explains_every_parameter_and_choice(definition: Definition) -> None:
    assert definition.headline.rstrip().endswith((".", ":")), "the first line is a sentence"
    lines = [f"{name}:" if choice is None else f"{name}={choice}:" for name, choice, _ in sections(definition)[1]]
    wanted = []
    for parameter in definition.parameters:
        wanted += [f"{parameter.name}={choice}:" for choice in parameter.choices] or [f"{parameter.name}:"]
        if parameter.kind == "gain":
            wanted.append(f"{parameter.name}={{grade: gain}}:")
    for beginning in wanted:
        assert beginning in lines, f"no line `{beginning} ...`"


@pytest.mark.parametrize("definition", EVERY, ids=lambda definition: definition.name)
def test_the_laws_make_sense(definition: Definition) -> None:
    assert definition.low < definition.high
    for value in (definition.ideal, definition.empty):
        assert value is None or math.isnan(value) or definition.low <= value <= definition.high
    if definition.companion is not None:
        other = definitions()[definition.companion]
        own = {parameter.name for parameter in definition.parameters}
        assert {parameter.name for parameter in other.parameters} <= own
    if definition.summary not in ("mean", "sum", "geometric"):
        assert definition.parameter(definition.summary) is not None


@pytest.mark.parametrize("cutoff", [0, -1, 1.5, float("nan"), float("inf"), 10**16, 10**400, True, "10"])
def test_a_cutoff_in_python_that_is_no_depth(cutoff):
    with pytest.raises(MeasureError, match="the cutoff of P is"):
        parse("P@10") @ cutoff
