"""What is written is what is read, for every format that writes; what a format cannot hold it refuses."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from steelyard.errors import InputError
from steelyard.io import list_formats, read_qrels, read_run, write_qrels, write_run
from steelyard.qrels import Qrels
from steelyard.run import Run

QRELS_WRITERS = [entry.name for entry in list_formats().values() if "qrels" in entry.writes]
RUN_WRITERS = [entry.name for entry in list_formats().values() if "run" in entry.writes]
BY_SCORE = ("trec-run", "ranx", "ranx-lz4")

plain_ids = st.text("abcXYZ019-_.:/#", min_size=1, max_size=6)
any_ids = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
ids = st.one_of(plain_ids, any_ids)
whole = st.integers(-3, 4).map(float)
grades = st.one_of(whole, st.floats(-1e6, 1e6, allow_nan=False).map(lambda grade: grade + 0.0))
fast = settings(max_examples=60)


@st.composite
def judgments(draw: st.DrawFn) -> Qrels:
    """Queries with and without judgments; a document is judged for itself, or under targets."""
    names = draw(st.sampled_from([plain_ids, ids]))
    grade = draw(st.sampled_from([whole, grades]))
    targets = names.map(lambda name: f"T{name}")
    groups = st.lists(targets, max_size=3 * draw(st.booleans()), unique=True)
    queries = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    pairs = draw(st.lists(st.tuples(st.sampled_from(queries), names), max_size=8, unique=True))
    rows = [
        (query, doc, draw(grade), target)
        for query, doc in pairs
        if not doc.startswith("T")
        for target in draw(groups) or [None]
    ]
    return Qrels.from_rows(rows, queries)


@st.composite
def runs(draw: st.DrawFn) -> Run:
    names = draw(st.sampled_from([plain_ids, ids]))
    scores = st.floats(allow_nan=False, allow_infinity=False)
    form = draw(st.sampled_from(["scores", "pairs", "ids", "frame"]))
    queries = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    if form == "scores":
        source = {query: draw(st.dictionaries(names, scores, max_size=5)) for query in queries}
    elif form == "pairs":
        source = {query: draw(st.lists(st.tuples(names, scores), max_size=5)) for query in queries}
    elif form == "ids":
        source = {query: draw(st.lists(names, max_size=5)) for query in queries}
    else:
        rows = draw(st.lists(st.tuples(st.sampled_from(queries), names, scores), min_size=1, max_size=8))
        schema = {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}
        return Run(pl.DataFrame(rows, schema=schema, orient="row"), name="frame")
    return Run(source, name="a run")


def same_judgments(left: Qrels, right: Qrels) -> None:
    assert sorted(left.queries) == sorted(right.queries)
    assert left.fingerprint == right.fingerprint
    assert left.has_targets == right.has_targets


def named_formats(error: InputError) -> list[str]:
    return [name for name in re.findall(r"'([a-z-]+)'", str(error)) if name in list_formats()]


@pytest.mark.slow
@pytest.mark.parametrize("name", QRELS_WRITERS)
@given(qrels=judgments())
@example(qrels=Qrels({"q1": {"d1": 2, "d9": -1}, "q2": {"d1": 0}}))
@example(qrels=Qrels({"q 1": {"d,1": 0.5}, "q2": {}}))
@example(qrels=Qrels({"q1": [["a", "b"], ["c"]]}))
@example(qrels=Qrels({"[1]": {"{d}": 1}}))
@fast
def test_qrels_round_trip(name: str, qrels: Qrels, tmp_path: Path) -> None:
    path = tmp_path / "judgments"
    refused = refusal(lambda: write_qrels(qrels, path, name))
    if refused is not None:
        able = [other for other in named_formats(refused) if other != name]
        assert able, f"the message names no format that can hold it: {refused}"
        assert any(_writes(qrels, path, other) for other in able)
        return
    same_judgments(read_qrels(path, name, {}), qrels)
    if name not in ("trec-diversity", "msmarco"):
        same_judgments(read_qrels(path, None, {}), qrels)


def refusal(write: Callable[[], None]) -> InputError | None:
    try:
        write()
    except InputError as error:
        return error
    return None


def _writes(qrels: Qrels, path: Path, name: str) -> bool:
    if refusal(lambda: write_qrels(qrels, path, name)) is not None:
        return False
    same_judgments(read_qrels(path, name, {}), qrels)
    return True


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN_WRITERS)
@given(run=runs())
@example(run=Run({"q1": {"d1": 12.3, "d2": 9.1}}))
@example(run=Run({"q1": [("d1", 0.5), ("d2", 0.5)], "q2": []}))
@example(run=Run({"q1": ["b", "a", "b"], "q2": ["c"]}))
@fast
def test_runs_round_trip(name: str, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "run"
    refused = refusal(lambda: write_run(run, path, name))
    if refused is not None:
        assert [other for other in named_formats(refused) if other != name], refused
        return
    back = read_run(path, name, {})
    assert sorted(back.queries) == sorted(run.queries)
    scored = bool(len(run)) and not run.frame["score"].null_count()
    if scored and name != "msmarco":
        same_lists(back, run, ("rank", "doc_id", "score"))
    else:
        same_lists(back, run, ("rank", "doc_id"))
    if name not in (*BY_SCORE, "msmarco") and len(run):
        assert back.ordered == run.ordered


def same_lists(left: Run, right: Run, columns: tuple[str, ...]) -> None:
    by = ["query_id", "rank"]
    assert left.frame.sort(by).select("query_id", *columns).equals(right.frame.sort(by).select("query_id", *columns))


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
@pytest.mark.parametrize("name", ["run.trec", "run.json", "run.jsonl", "run.csv", "run.tsv"])
def test_compressed_by_name_and_found_by_content(name: str, suffix: str, tmp_path: Path) -> None:
    run = Run({"q1": {"d1": 3.5, "d2": 1.25}, "q2": {"d1": -1.0}}, name="bm25")
    path = tmp_path / f"{name}{suffix}"
    run.write(path)
    plain = tmp_path / name
    run.write(plain)
    assert (path.read_bytes() == plain.read_bytes()) == (suffix == "")
    hidden = tmp_path / "nameless"
    hidden.write_bytes(path.read_bytes())
    assert Run.read(hidden) == run
    assert Run.read(path).name == ("bm25" if name == "run.trec" else "run")


def test_gzip_is_the_same_bytes_each_time(tmp_path: Path) -> None:
    run = Run({"q1": {"d1": 3.5}})
    for name in ("a.run.gz", "b.run.gz"):
        run.write(tmp_path / name)
    assert (tmp_path / "a.run.gz").read_bytes() == (tmp_path / "b.run.gz").read_bytes()


@pytest.mark.parametrize("name", ["run.csv", "run.parquet", "run.jsonl"])
def test_seconds_round_trip(name: str, tmp_path: Path) -> None:
    run = Run({"q1": ["d1", "d2"], "q2": []}, seconds={"q1": 0.25, "q2": 0.5})
    run.write(tmp_path / name)
    assert Run.read(tmp_path / name).seconds == {"q1": 0.25, "q2": 0.5}


def test_tokens_round_trip(tmp_path: Path) -> None:
    run = Run({"q1": ["d1", "d2"]}, tokens={"d1": 12, "d2": 7})
    run.write(tmp_path / "run.parquet")
    assert Run.read(tmp_path / "run.parquet").table["tokens"].to_list() == [12, 7]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "qrels.trec"
    Qrels({"q1": {"d1": 1}}).write(path)
    before = path.read_bytes()
    with pytest.raises(InputError, match="cannot be written to a trec-qrels file"):
        Qrels({"q1": {"two words": 1}}).write(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["qrels.trec"]


def test_a_name_without_a_format_asks_for_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"unknown suffix '.xlsx'"):
        Qrels({"q1": {"d1": 1}}).write(tmp_path / "qrels.xlsx")
    with pytest.raises(InputError, match="Did you mean parquet"):
        Qrels({"q1": {"d1": 1}}).write(tmp_path / "qrels", "parket")


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        Qrels({"q1": {"d1": 1}}).write(tmp_path / "nowhere" / "qrels.trec")
