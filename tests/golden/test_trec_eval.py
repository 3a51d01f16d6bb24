"""NIST's own test of trec_eval: every line of its expected outputs, at the printed digits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import pytest

import steelyard as sy
from needs import NIST
from steelyard.alignment.alignment import align
from steelyard.alignment.hits import Ordering
from steelyard.dialects import dialect


@dataclass(frozen=True)
class Command:
    """What trec_eval was run with: judgments, run, and its options in Steelyard's words."""

    qrels: str = "qrels.test"
    run: str = "results.test"
    missing: str | None = None
    depth: int | None = None
    rel: int | None = None


COMMANDS = {
    "out.test": Command(),
    "out.test.a": Command(),
    "out.test.aq": Command(),
    "out.test.aqc": Command(run="results.trunc", missing="zero"),
    "out.test.aqcM": Command(run="results.trunc", missing="zero", depth=100),
    "out.test.aql": Command(qrels="qrels.rel_level", rel=2),
    "out.test.meas_params": Command(),
}


def expected(file: str) -> list[tuple[str, str, str]]:
    """The lines of an expected output: measure, topic, value."""
    lines = (NIST / file).read_text().splitlines()
    return [(name.strip(), topic, value) for name, topic, value in (line.split("\t") for line in lines)]


def every_line() -> list[object]:
    return [pytest.param(file, *line, id=f"{file}-{line[0]}-{line[1]}") for file in COMMANDS for line in expected(file)]


@cache
def scores(file: str) -> sy.Scores:
    """What Steelyard makes of the same files."""
    command = COMMANDS[file]
    names = dict.fromkeys(name for name, _, _ in expected(file) if name != "runid" and "relstring" not in name)
    return sy.evaluate(
        NIST / command.qrels,
        NIST / command.run,
        list(names),
        dialect="trec_eval-10",
        missing=command.missing,
        depth=command.depth,
        rel=command.rel,
    )


def relevance_string(file: str, topic: str, length: int) -> str:
    """The grades of a topic's first documents, as trec_eval writes them."""
    command = COMMANDS[file]
    a = align(sy.Qrels.read(NIST / command.qrels), NIST / command.run, Ordering()).alignment
    query = list(a.queries).index(topic)
    shown = ["-"] * min(length, int(a.retrieved[query]))
    for hit in range(a.hit_starts[query], a.hit_starts[query + 1]):
        if a.rank[hit] <= length:
            shown[a.rank[hit] - 1] = "." if a.grade[hit] < 0 else f"{a.grade[hit]:.0f}"
    return "".join(shown)


@pytest.mark.parametrize(("file", "name", "topic", "value"), every_line())
def test_expected_line(file: str, name: str, topic: str, value: str) -> None:
    if name == "runid":
        got = scores(file).name
    elif name.startswith("relstring"):
        length = int(name.partition("_")[2] or 10)
        got = f"'{relevance_string(file, topic, length)}'"
    else:
        found = scores(file)
        number = found[name] if topic == "all" else found.values(name)[list(found.queries).index(topic)]
        got = f"{number:.4f}" if "." in value else f"{number:.0f}"
    assert got == value


@pytest.mark.parametrize(("file", "nickname"), [("out.test", "official"), ("out.test.a", "all_trec")])
def test_a_nickname_names_what_trec_eval_prints(file: str, nickname: str) -> None:
    assert [name for name, _, _ in expected(file)] == ["runid", *dialect("trec_eval-10").sets[nickname]]


# Topic 301, R = 474: a tenth is 47.4 documents, 47 in version 10 and 48 in 9. Topic 302, R = 77: a quarter
# is 19.25, 19 and 20, and 0.6 is 46.2, 46 and 47. Elsewhere both give the same document or precision.
VERSION_9 = [
    ("iprec_at_recall_0.10", "301", "0.2096"),
    ("iprec_at_recall_0.10", "all", "0.3884"),
    ("iprec_at_recall_0.25", "302", "0.7500"),
    ("iprec_at_recall_0.25", "all", "0.2879"),
    ("iprec_at_recall_0.60", "302", "0.1420"),
    ("iprec_at_recall_0.60", "all", "0.0822"),
    ("11pt_avg_.25,.5,.75", "302", "0.4306"),
    ("11pt_avg_.25,.5,.75", "all", "0.1792"),
    ("11pt_avg", "all", "0.1958"),
]


@pytest.mark.parametrize(("name", "topic", "value"), VERSION_9)
def test_version_9_raises_levels_of_recall(name: str, topic: str, value: str) -> None:
    found = sy.evaluate(NIST / "qrels.test", NIST / "results.test", [name], dialect="trec_eval-9")
    number = found[name] if topic == "all" else found.values(name)[list(found.queries).index(topic)]
    assert f"{number:.4f}" == value


def test_version_9_differs_only_in_interpolated_precision() -> None:
    names = dialect("trec_eval-9").sets["all_trec"]
    nine = sy.evaluate(NIST / "qrels.test", NIST / "results.test", "all_trec", dialect="trec_eval-9").means
    ten = scores("out.test.a").means
    differ = [name for name in names if nine[name] != ten[name]]
    assert differ == ["iprec_at_recall_0.10", "iprec_at_recall_0.60", "11pt_avg"]


def test_a_list_of_cutoffs_means_what_trec_eval_prints() -> None:
    ten = dialect("trec_eval-10")
    assert ten.expand(["P.5,7,3", "map"]) == ["P_3", "P_5", "P_7", "map"]
    levels = ten.expand(["iprec_at_recall..10,.25,0.2", "Rprec_mult.5.0,0.2"])
    assert levels == [
        "iprec_at_recall_0.10", "iprec_at_recall_0.20", "iprec_at_recall_0.25", "Rprec_mult_0.20", "Rprec_mult_5.00",
    ]  # fmt: skip
    found = sy.evaluate({"q": ["a", "b"]}, {"q": ["a", "x", "b"]}, "P.1,2", dialect="trec_eval-9")
    assert found.means == {"P_1": 1.0, "P_2": 0.5}
    for whole in ("utility.2,-1,0,0", "11pt_avg..25,.5,.75"):
        assert ten.expand([whole]) == [whole]
    with pytest.raises(sy.SteelyardError, match="0.5"):
        ten.expand(["P.0.5,1"])
