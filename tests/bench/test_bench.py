"""The bench: the config is checked, answers are cached, failures are recorded, the folder is complete."""

from __future__ import annotations

import json
import re
from math import isnan

import polars as pl
import pytest
from scipy.stats import ttest_1samp

import steelyard as sy
from clocks import Clock
from needs import import_peer
from steelyard.benchmark.config import read_yaml
from steelyard.benchmark.folder import load_result
from steelyard.errors import InputError

CORPUS = {f"d{i}": f"text number {i}" for i in range(6)}
QUERIES = {f"q{i}": f"question {i}" for i in range(6)}
QRELS = {f"q{i}": {f"d{i}": 1, f"d{(i + 1) % 6}": -1} for i in range(6)}


class Lookup:
    """A retriever that knows the answers, shifted by `shift`, and counts its queries."""

    def __init__(self, label="lookup", shift=0, fails=(), **extra):
        self.label, self.shift, self.fails, self.extra = label, shift, fails, extra
        self.indexed = self.queries = 0

    def index(self, corpus):
        self.indexed += 1
        self.ids = list(corpus)
        return self

    def retrieve(self, queries, k=10):
        self.queries += len(queries)
        lists = []
        for query in queries:
            number = int(query.split()[1])
            if number in self.fails:
                raise ValueError(f"no answer to {query}")
            order = self.ids[(number + self.shift) % 6 :] + self.ids[: (number + self.shift) % 6]
            lists.append([(doc, 1.0 / place) for place, doc in enumerate(order[:k], 1)])
        return lists

    def settings(self):
        return {"shift": self.shift, "fails": list(self.fails), **self.extra}

    def size_in_bytes(self):
        return 7


@pytest.fixture
def dataset():
    return sy.Dataset.of(CORPUS, QUERIES, QRELS, name="tiny")


def run(dataset, folder, *retrievers, **more):
    given = {"measures": ["RR", "Hit@1", "Confusion@2", "Latency"], "depth": 4, **more}
    return sy.bench({"dataset": dataset, "retrievers": list(retrievers), **given}, output=folder)


def test_bench_evaluates_compares_and_writes(dataset, tmp_path):
    result = run(dataset, tmp_path / "out", Lookup("right"), Lookup("late", shift=5), baseline="late")
    assert result.comparison.leaderboard["run"].to_list() == ["right", "late"]
    assert result.comparison.leaderboard["RR"].to_list() == [1.0, 0.5]
    assert all(row.p50_seconds >= 0 and row.index_bytes == 7 and row.queries == 6 for row in result.rows)
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names >= {"result.json", "scores.parquet", "pairs.parquet", "runs", "leaderboard.md", "report.html"}
    scores = pl.read_parquet(tmp_path / "out" / "scores.parquet")
    assert scores.columns == ["run", "query_id", "measure", "value"]
    means = scores.filter(pl.col("measure") == "RR").group_by("run").agg(pl.col("value").mean())
    assert dict(means.iter_rows()) == {"right": 1.0, "late": 0.5}
    kept = json.loads((tmp_path / "out" / "result.json").read_text())
    assert kept["dataset"]["fingerprint"] == dataset.fingerprint
    again = sy.Run.read(tmp_path / "out" / "runs" / "late.parquet")
    assert sy.evaluate(QRELS, again, "RR")["RR"] == 0.5


def test_cached_answers_are_not_run_again(dataset, tmp_path):
    first = Lookup("a")
    run(dataset, tmp_path, first, Lookup("b", shift=1))
    second, changed = Lookup("a"), Lookup("b", shift=2)
    result = run(dataset, tmp_path, second, changed)
    assert (second.indexed, second.queries) == (0, 0)
    assert changed.queries > 0
    assert [row.cached for row in result.rows] == [True, False]
    fresh = Lookup("a")
    sy.bench({"dataset": dataset, "retrievers": [fresh], "measures": ["RR"], "depth": 4}, output=tmp_path, fresh=True)
    assert fresh.queries > 0


def test_stopped_bench_continues(dataset, tmp_path):
    run(dataset, tmp_path, Lookup("a"), warmup=0)
    (store,) = (tmp_path / "cache").iterdir()
    lines = store.read_text().splitlines()
    answered = [line for line in lines if '"list"' in line]
    store.write_text("\n".join([*answered[:2], answered[2][:20]]))
    again = Lookup("a")
    result = run(dataset, tmp_path, again, warmup=0)
    assert again.queries == 4 + 6, "four queries were open; then all six at once for throughput"
    assert result.comparison.leaderboard["RR"].to_list() == [1.0]
    assert run(dataset, tmp_path, Lookup("a"), warmup=0).rows[0].cached


def test_unreadable_cache_is_rebuilt(dataset, tmp_path):
    run(dataset, tmp_path, Lookup("a"))
    (store,) = (tmp_path / "cache").iterdir()
    store.write_bytes(b"\xff\xfe\x00 not json")
    assert run(dataset, tmp_path, Lookup("a")).comparison.leaderboard["RR"].to_list() == [1.0]


def test_failed_query_is_recorded_and_the_others_are_run(dataset, tmp_path):
    result = run(dataset, tmp_path, Lookup("shaky", fails=(2, 3)), Lookup("sound"))
    shaky = next(row for row in result.rows if row.run == "shaky")
    assert shaky.errors == {f"q{i}": f"ValueError: no answer to question {i}" for i in (2, 3)}
    assert result.comparison.coverage["shaky"].missing == 2
    means = {row.run: row.means["RR"] for row in result.comparison.leaderboard_rows}
    assert means == {"sound": 1.0, "shaky": pytest.approx(4 / 6)}
    assert any("shaky failed on 2 of 6 queries" in str(note) for note in result.notes)


def test_documents_outside_the_corpus_are_counted(dataset, tmp_path):
    class Strays(Lookup):
        def retrieve(self, queries, k=10):
            return [[("d0", 1.0), ("ghost", 0.5)] for _ in queries]

    result = run(dataset, tmp_path, Strays("strays"))
    assert result.rows[0].unknown_documents == 6
    assert any("not in the corpus" in str(note) for note in result.notes)


def test_finished_run_is_added_to_the_table(dataset, tmp_path):
    sy.Run({q: ["d9", f"d{q[1]}"] for q in QUERIES}, name="old").write(tmp_path / "old.json")
    entry = {"run": str(tmp_path / "old.json"), "name": "before"}
    rows = "".join(f"{q},d{(int(q[1]) + 1) % 6},1\n{q},d{q[1]},2\n" for q in QUERIES)
    (tmp_path / "table.csv").write_text(f"question,passage,sim\n{rows}")
    named = {"path": str(tmp_path / "table.csv"), "query_id": "question", "doc_id": "passage", "score": "sim"}
    result = run(dataset, tmp_path / "out", Lookup("now"), entry, {"run": named})
    means = {row.run: row.means["RR"] for row in result.comparison.leaderboard_rows}
    assert means == {"now": 1.0, "before": 0.5, "table": 1.0}
    with pytest.raises(InputError, match=r"a finished run has no setting 'doc'; expected .*Did you mean doc_id\?"):
        run(dataset, tmp_path / "out", {"run": {**named, "doc": "passage"}})


def test_settings_that_are_lists_give_a_grid(tmp_path):
    result = sy.bench(
        {
            "dataset": sy.Dataset.of({"a": "red fox", "b": "grey wolf"}, {"q": "fox"}, {"q": ["a"]}),
            "retrievers": [{"bm25-okapi": {"k1": [0.9, 1.2], "b": [0.4, 0.75]}}],
            "measures": ["RR"],
        },
        output=tmp_path,
    )
    assert [row.run for row in result.rows] == [f"bm25-okapi k1={k1} b={b}" for k1 in (0.9, 1.2) for b in (0.4, 0.75)]


WRONG = """\
dataset: demoo
dept: 10
retrievers:
  - bm25-okapi: {k2: 1}
  - bm25-okapy
  - 7
  - run: nope.run
measures: [nDGC@10, P@0]
baseline: bm25
test: anova
"""


def test_all_problems_of_a_config_are_reported_with_their_lines(tmp_path):
    file = tmp_path / "bench.yaml"
    file.write_text(WRONG)
    with pytest.raises(InputError) as caught:
        sy.bench(file)
    report = str(caught.value)
    for part in (
        "line 1: there is no dataset 'demoo'. Did you mean demo",
        "line 2: unknown key 'dept'. Did you mean depth",
        "line 4: bm25-okapi: unknown setting 'k2'",
        "line 5: unknown retriever 'bm25-okapy'; expected one of ",
        "Did you mean bm25-okapi",
        "line 6: 7 is not a retriever",
        "line 7: there is no run file",
        "line 8: unknown measure 'nDGC'. Did you mean nDCG",
        "line 8: the cutoff of P is 0",
        "line 10: unknown test 'anova'",
    ):
        assert part in report
    assert not (tmp_path / "bench-result").exists()


def test_problems_of_rules_composite_and_evidence_are_reported_before_anything_runs(tmp_path):
    file = tmp_path / "bench.yaml"
    file.write_text(
        "dataset: demo\nretrievers: [bm25-okapi]\nmeasures: [nDCG@10]\n"
        "composite: {nDGC@10: 1}\nevidence: none.csv\nchunkers: [whole]\n"
        "gate:\n  - ndcg_cut_10 >= 0.1\n  - RR >= 0.4\n  - composite >= 0.2\n"
    )
    with pytest.raises(InputError) as caught:
        sy.bench(file)
    report = str(caught.value)
    assert "3 problems; nothing was run" in report
    assert "line 4: unknown measure 'nDGC'" in report
    assert f"line 5: there is no evidence file {tmp_path / 'none.csv'}" in report
    assert "line 9: the rule 'RR >= 0.4' needs 'RR', which is not among the measures nDCG@10, composite." in report


def test_unknown_slice_column_is_reported_before_anything_runs(dataset, tmp_path):
    retriever = Lookup("a")
    with pytest.raises(InputError, match="`by` is 'kind'; expected complexity or a column of the queries of 'tiny'"):
        run(dataset, tmp_path, retriever, by="kind")
    assert retriever.queries == 0


def test_changed_qrels_do_not_run_queries_again(dataset, tmp_path):
    run(dataset, tmp_path, Lookup("a"))
    changed = sy.Dataset.of(CORPUS, QUERIES, {**QRELS, "q0": {"d3": 1}}, name="tiny")
    again = Lookup("a")
    result = run(changed, tmp_path, again)
    assert again.queries == 0
    assert result.comparison.leaderboard["RR"].to_list() == [pytest.approx((5 + 1 / 4) / 6)]
    other = sy.Dataset.of({**CORPUS, "d6": "one more"}, QUERIES, QRELS, name="tiny")
    again = Lookup("a")
    run(other, tmp_path, again)
    assert again.queries > 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "dataset: demo\nretreivers: [dense]\nmeasures: [AP]\n",
            "line 2: unknown key 'retreivers'. Did you mean retrievers",
        ),
        ("dataset: demo\nretrievers: []\nmeasures: [AP]\n", "line 2"),
        ("dataset: demo\ndataset: demo\n", "repeated keys"),
        ("dataset: [\n", "is not YAML"),
        ("just words", "expected `dataset`"),
        ("dataset: demo\nretrievers: [bm25-okapi]\n", "no measures"),
    ],
)
def test_malformed_configs(tmp_path, text, expected):
    file = tmp_path / "bench.yaml"
    file.write_text(text)
    with pytest.raises(InputError, match=expected):
        sy.bench(file)


def test_lines_of_the_parts_of_a_yaml_file(tmp_path):
    file = tmp_path / "a.yaml"
    file.write_text("one: 1\n\ntwo:\n  - a\n  - b: {c: 3}\n")
    located = read_yaml(file)
    assert located.value == {"one": 1, "two": ["a", {"b": {"c": 3}}]}
    assert located.line(("two",)) == 3
    assert located.line(("two", 1, "b", "c")) == 5
    assert located.line(("two", 0, "nowhere")) == 4


def test_repeated_retriever_name_is_an_error(dataset, tmp_path):
    with pytest.raises(InputError, match="two retrievers are called 'x'"):
        run(dataset, tmp_path, Lookup("x"), Lookup("x", shift=1))


def test_retriever_that_fails_to_index_does_not_stop_the_others(dataset, tmp_path):
    class Broken(Lookup):
        def index(self, corpus):
            raise OSError("the model is not there")

    result = run(dataset, tmp_path, Broken("broken"), Lookup("sound"))
    assert {row.run: row.means["RR"] for row in result.comparison.leaderboard_rows} == {"sound": 1.0}
    assert result.comparison.unmeasured == {"broken": "it answered no query"}
    assert result.rows[0].errors["q0"] == "indexing failed: OSError: the model is not there"


def test_failed_queries_are_run_again(dataset, tmp_path):
    run(dataset, tmp_path, Lookup("a", fails=(2,), same=True))
    fixed = Lookup("a", fails=(2,), same=True)
    fixed.fails = ()
    fixed.settings = lambda: {"shift": 0, "fails": [2], "same": True}
    result = run(dataset, tmp_path, fixed)
    assert result.rows[0].errors == {}
    assert result.comparison.leaderboard["RR"].to_list() == [1.0]


class Words:
    """A class as a user may write it: no label, no settings, no base class."""

    def index(self, corpus):
        self.corpus = dict(corpus)

    def retrieve(self, queries, k):
        return [[doc for doc, text in self.corpus.items() if query.split()[1] in text.split()][:k] for query in queries]


def first_document(query, k):
    return ["d0"]


def test_class_and_function_as_retrievers(dataset, tmp_path):
    given = [Words, {"python": Words, "name": "by name"}, Words(), first_document]
    given[2].label = "an object"
    result = run(dataset, tmp_path, *given[:2], first_document)
    means = {row.run: row.means["RR"] for row in result.comparison.leaderboard_rows}
    assert means == {"Words": 1.0, "by name": 1.0, "first_document": pytest.approx(1 / 6)}
    assert run(dataset, tmp_path, Words).rows[0].cached, (
        "a class of a module is cached as long as its code does not change"
    )
    assert run(dataset, tmp_path / "object", given[2]).comparison.leaderboard["RR"].to_list() == [1.0]


def test_class_has_one_index_per_chunking(dataset, tmp_path):
    chunkers = ["whole", {"fixed": {"tokens": 2, "overlap": 0}}]
    result = run(dataset, tmp_path, Words, chunkers=chunkers, measures=["RR"])
    assert [row.chunks for row in result.rows] == [6, 12]
    assert all(row.errors == {} and row.unknown_documents == 0 for row in result.rows)


def test_class_without_retrieve_is_a_problem_of_the_config(dataset, tmp_path):
    class Half:
        def index(self, corpus):
            pass

    with pytest.raises(InputError, match=r"has index but none of retrieve") as caught:
        run(dataset, tmp_path, Half, 7)
    assert "7 is not a retriever" in str(caught.value)


def files_of(folder, name):
    return sorted(path.name for path in (folder / name).iterdir())


def test_runs_that_the_bench_no_longer_has_are_removed(dataset, tmp_path):
    run(dataset, tmp_path, Lookup("a"), Lookup("b", shift=1))
    (tmp_path / "runs" / "mine.parquet").write_bytes(b"another file")
    (tmp_path / "cache" / "notes.jsonl").write_text("{}")
    (tmp_path / "cache" / ("0" * 20 + ".jsonl")).write_text('{"somebody": "else"}')
    result = run(dataset, tmp_path, Lookup("a"))
    assert [path.name for path in result.removed] == ["b.parquet"]
    assert files_of(tmp_path, "runs") == ["a.parquet", "mine.parquet"]
    back = Lookup("b", shift=1)
    assert run(dataset, tmp_path, Lookup("a"), back).removed == ()
    assert back.queries == 0, "its answers are still cached one result later"
    run(dataset, tmp_path, Lookup("a"))
    result = run(dataset, tmp_path, Lookup("a"))
    assert [path.parent.name for path in result.removed] == ["cache"]
    assert {"notes.jsonl", "0" * 20 + ".jsonl"} < set(files_of(tmp_path, "cache"))
    assert len(files_of(tmp_path, "cache")) == 3


def test_files_outside_the_folder_are_never_removed(dataset, tmp_path):
    folder = tmp_path / "out"
    run(dataset, folder, Lookup("a"))
    (tmp_path / "precious.parquet").write_bytes(b"")
    record = json.loads((folder / "result.json").read_text())
    record["runs"].append({"run": "x", "file": "../../precious.parquet"})
    (folder / "result.json").write_text(json.dumps(record))
    assert run(dataset, folder, Lookup("a")).removed == ()
    assert (tmp_path / "precious.parquet").exists()


def test_command_line_reports_removed_files(tmp_path, capsys):
    from steelyard.cli import run as command

    config = tmp_path / "bench.yaml"
    messages = []
    for retrievers in ("bm25-l, random", "random", "random"):
        config.write_text(f"dataset: demo\nretrievers: [{retrievers}]\nmeasures: [nDCG@10]\ndepth: 5\n")
        assert command(["bench", str(config)]) == 0
        messages.append(capsys.readouterr().err)
    assert "does not have them" not in messages[0]
    assert "this bench does not have them: runs/bm25-l.parquet." in messages[1]
    assert "this bench does not have them: 1 file of old answers." in messages[2]


class Timed(Lookup):
    """A lookup that takes so many milliseconds by the clock of the test, and longer for every next question."""

    def __init__(self, label, shift, milliseconds, clock):
        super().__init__(label, shift)
        self.milliseconds, self.clock = milliseconds, clock

    def retrieve(self, queries, k=10):
        for query in queries:
            self.clock.advance(self.milliseconds * (5 + int(query.split()[1])) / 1000)
        return super().retrieve(queries, k)


def latency(result):
    return next(pair for pair in result.comparison.tested_pairs if pair.measure == "Latency")


def test_times_are_tested_only_if_they_were_measured_together(dataset, tmp_path, monkeypatch):
    clock = Clock()
    monkeypatch.setattr("steelyard.benchmark.retrieval.perf_counter", clock)
    one, other = Timed("one", 0, 1, clock), Timed("other", 1, 2, clock)
    together = run(dataset, tmp_path / "out", one, other)
    again = run(dataset, tmp_path / "out", one, other)
    for result in (together, again, load_result(tmp_path / "out")):
        pair = latency(result)
        assert (pair.run, pair.wins) == ("one", 6)
        assert pair.p == pytest.approx(ttest_1samp(range(5, 11), 0).pvalue), "tested, also with times from the cache"
    new = Timed("new", 2, 3, clock)
    result = run(dataset, tmp_path / "out", one, new, other)
    for comparison in (result.comparison, load_result(tmp_path / "out").comparison):
        tested = {
            frozenset((pair.run, pair.baseline)): pair for pair in comparison.tested_pairs if pair.measure == "Latency"
        }
        assert 0 < tested[frozenset(("one", "other"))].p < 0.01
        pair = tested[frozenset(("one", "new"))]
        assert (pair.verdict, isnan(pair.p), isnan(pair.low), pair.queries) == ("not tested", True, True, 6)
        assert abs(pair.difference) == pytest.approx(0.015), "7.5 times 3 - 1 ms"
        assert pair.sentence.startswith("Not tested: the times were not measured together")
        assert all(0 <= pair.p <= 1 for pair in comparison.tested_pairs if pair.measure == "RR")
        (said,) = [note for note in comparison.notes if note.code == "not-tested"]
        assert (said["measures"], "new" in str(said), "one vs other" in str(said)) == (("Latency",), True, False)


def test_times_of_finished_runs_are_not_tested(dataset, tmp_path):
    run(dataset, tmp_path / "first", Lookup("one"))
    path = tmp_path / "first" / "runs" / "one.parquet"
    old = {"run": {"path": str(path), "name": "old"}}
    result = run(dataset, tmp_path / "out", Lookup("new", shift=1), old)
    assert latency(result).verdict == "not tested"
    ranked = run(dataset, tmp_path / "out", Lookup("new", shift=1), old, measures=["Latency"])
    assert "not tested, since the times were not measured together" in ranked.comparison.verdict
    assert {(row.rank_low, row.rank_high) for row in ranked.comparison.leaderboard_rows} == {(1, 2)}
    weighed = run(dataset, tmp_path / "out", Lookup("new", shift=1), old, composite={"RR": 0.5, "Latency": 0.5})
    assert weighed.comparison.tested_pairs[0].verdict == "not tested"


def test_cached_times_are_marked(dataset, tmp_path):
    one, new = Lookup("one"), Lookup("new", shift=2)
    assert run(dataset, tmp_path / "out", one).comparison.cached_times == ()
    result = run(dataset, tmp_path / "out", one, new)
    for comparison in (result.comparison, load_result(tmp_path / "out").comparison):
        assert dict(comparison.leaderboard.select("run", "times").rows()) == {"one": "cached", "new": ""}
        assert comparison.to_dict()["cached_times"] == ["one"]
        assert re.search(r"(?m)^ *1 +one .* cached *$", comparison.to_text())
        assert re.search(r"(?m)^\| one .*\| cached +\|$", comparison.to_markdown())
        assert "one (cached times)" in comparison.to_latex()
        assert "cached" in comparison.to_csv()
    import_peer("jinja2")
    assert '<span class="tag">cached times</span>' in (tmp_path / "out" / "report.html").read_text()
    without = run(dataset, tmp_path / "out", one, new, measures=["RR"])
    assert "times" not in without.comparison.leaderboard.columns
