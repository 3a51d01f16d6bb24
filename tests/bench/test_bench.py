"""The bench: config checked whole, answers kept and reused, failures recorded, the folder complete."""

from __future__ import annotations

import json

import polars as pl
import pytest

import steelyard as sy
from steelyard.bench.specs import read_located
from steelyard.errors import InputError

CORPUS = {f"d{i}": f"text number {i}" for i in range(6)}
QUERIES = {f"q{i}": f"question {i}" for i in range(6)}
QRELS = {f"q{i}": {f"d{i}": 1, f"d{(i + 1) % 6}": -1} for i in range(6)}


class Lookup:
    """A retriever that knows the answers, shifted by `shift`, and counts how often it is asked."""

    def __init__(self, label="lookup", shift=0, fails=(), **extra):
        self.label, self.shift, self.fails, self.extra = label, shift, fails, extra
        self.indexed = self.asked = 0

    def index(self, corpus):
        self.indexed += 1
        self.ids = list(corpus)
        return self

    def retrieve(self, queries, k=10):
        self.asked += len(queries)
        found = []
        for query in queries:
            number = int(query.split()[1])
            if number in self.fails:
                raise ValueError(f"no answer to {query}")
            order = self.ids[(number + self.shift) % 6 :] + self.ids[: (number + self.shift) % 6]
            found.append([(doc, 1.0 / place) for place, doc in enumerate(order[:k], 1)])
        return found

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


def test_a_bench_measures_compares_and_writes(dataset, tmp_path):
    result = run(dataset, tmp_path / "out", Lookup("right"), Lookup("late", shift=5), baseline="late")
    assert result.comparison.leaderboard["run"].to_list() == ["right", "late"]
    assert result.comparison.leaderboard["RR"].to_list() == [1.0, 0.5]
    assert all(row.p50_seconds >= 0 and row.index_bytes == 7 and row.queries == 6 for row in result.rows)
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names >= {
        "result.json",
        "scores.parquet",
        "pairs.parquet",
        "runs",
        "leaderboard.md",
        "report.html",
    }
    scores = pl.read_parquet(tmp_path / "out" / "scores.parquet")
    assert scores.columns == ["run", "query_id", "measure", "value"]
    means = scores.filter(pl.col("measure") == "RR").group_by("run").agg(pl.col("value").mean())
    assert dict(means.iter_rows()) == {"right": 1.0, "late": 0.5}
    kept = json.loads((tmp_path / "out" / "result.json").read_text())
    assert kept["dataset"]["fingerprint"] == dataset.fingerprint
    again = sy.Run.read(tmp_path / "out" / "runs" / "late.parquet")
    assert sy.evaluate(QRELS, again, "RR")["RR"] == 0.5


def test_what_was_asked_is_not_asked_again(dataset, tmp_path):
    first = Lookup("a")
    run(dataset, tmp_path, first, Lookup("b", shift=1))
    second, changed = Lookup("a"), Lookup("b", shift=2)
    result = run(dataset, tmp_path, second, changed)
    assert (second.indexed, second.asked) == (0, 0)
    assert changed.asked > 0
    assert [row.cached for row in result.rows] == [True, False]
    fresh = Lookup("a")
    sy.bench(
        {"dataset": dataset, "retrievers": [fresh], "measures": ["RR"], "depth": 4},
        output=tmp_path,
        fresh=True,
    )
    assert fresh.asked > 0


def test_a_stopped_bench_goes_on_where_it_was(dataset, tmp_path):
    run(dataset, tmp_path, Lookup("a"), warmup=0)
    store = next((tmp_path / "cache").iterdir())
    lines = store.read_text().splitlines()
    answered = [line for line in lines if '"list"' in line]
    store.write_text("\n".join([*answered[:2], answered[2][:20]]))
    again = Lookup("a")
    result = run(dataset, tmp_path, again, warmup=0)
    assert again.asked == 4 + 6, "four questions were open; then all six at once for throughput"
    assert result.comparison.leaderboard["RR"].to_list() == [1.0]
    assert run(dataset, tmp_path, Lookup("a"), warmup=0).rows[0].cached


def test_an_unreadable_cache_is_rebuilt(dataset, tmp_path):
    run(dataset, tmp_path, Lookup("a"))
    next((tmp_path / "cache").iterdir()).write_bytes(b"\xff\xfe\x00 not json")
    assert run(dataset, tmp_path, Lookup("a")).comparison.leaderboard["RR"].to_list() == [1.0]


def test_a_failing_query_is_recorded_and_the_rest_goes_on(dataset, tmp_path):
    result = run(dataset, tmp_path, Lookup("shaky", fails=(2, 3)), Lookup("sound"))
    shaky = next(row for row in result.rows if row.run == "shaky")
    assert shaky.errors == {f"q{i}": f"ValueError: no answer to question {i}" for i in (2, 3)}
    assert result.comparison.coverage["shaky"].missing == 2
    standing = {row.run: row.means["RR"] for row in result.comparison.leaderboard_rows}
    assert standing == {"sound": 1.0, "shaky": pytest.approx(4 / 6)}
    assert any("shaky failed on 2 of 6 queries" in line for line in result.remarks())


def test_documents_that_are_not_in_the_corpus_are_counted(dataset, tmp_path):
    class Strays(Lookup):
        def retrieve(self, queries, k=10):
            return [[("d0", 1.0), ("ghost", 0.5)] for _ in queries]

    result = run(dataset, tmp_path, Strays("strays"))
    assert result.rows[0].unknown_documents == 6
    assert any("not in the corpus" in line for line in result.remarks())


def test_a_finished_run_joins_the_table(dataset, tmp_path):
    sy.Run({q: ["d9", f"d{q[1]}"] for q in QUERIES}, name="old").write(tmp_path / "old.json")
    entry = {"run": str(tmp_path / "old.json"), "name": "before"}
    rows = "".join(f"{q},d{(int(q[1]) + 1) % 6},1\n{q},d{q[1]},2\n" for q in QUERIES)
    (tmp_path / "table.csv").write_text(f"question,passage,sim\n{rows}")
    named = {"path": str(tmp_path / "table.csv"), "query_id": "question", "doc_id": "passage", "score": "sim"}
    result = run(dataset, tmp_path / "out", Lookup("now"), entry, {"run": named})
    means = {row.run: row.means["RR"] for row in result.comparison.leaderboard_rows}
    assert means == {"now": 1.0, "before": 0.5, "table": 1.0}
    with pytest.raises(InputError, match=r"a finished run has no setting 'doc'; .*Did you mean doc_id\?"):
        run(dataset, tmp_path / "out", {"run": {**named, "doc": "passage"}})


def test_lists_spread_into_a_grid(tmp_path):
    result = sy.bench(
        {
            "dataset": sy.Dataset.of({"a": "red fox", "b": "grey wolf"}, {"q": "fox"}, {"q": ["a"]}),
            "retrievers": [{"bm25-okapi": {"k1": [0.9, 1.2], "b": [0.4, 0.75]}}],
            "measures": ["RR"],
        },
        output=tmp_path,
    )
    assert [row.run for row in result.rows] == [
        f"bm25-okapi k1={k1} b={b}" for k1 in (0.9, 1.2) for b in (0.4, 0.75)
    ]


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


def test_every_problem_of_a_config_is_told_with_its_line(tmp_path):
    file = tmp_path / "bench.yaml"
    file.write_text(WRONG)
    with pytest.raises(InputError) as caught:
        sy.bench(file)
    told = str(caught.value)
    for part in (
        "line 1: there is no dataset 'demoo'. Did you mean demo",
        "line 2: there is no key 'dept'. Did you mean depth",
        "line 4: bm25-okapi: unknown setting 'k2'",
        "line 5: unknown retriever 'bm25-okapy'; expected one of ",
        "Did you mean bm25-okapi",
        "line 6: 7 is not a retriever",
        "line 7: there is no run file",
        "line 8: there is no measure 'nDGC'. Did you mean nDCG",
        "line 8: the cutoff of P is 0",
        "there is no test 'anova'",
    ):
        assert part in told
    assert not (tmp_path / "bench-result").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dataset: demo\nretreivers: [dense]\nmeasures: [AP]\n", "line 2: there is no key 'retreivers'. Did you mean retrievers"),
        ("dataset: demo\nretrievers: []\nmeasures: [AP]\n", "line 2"),
        ("dataset: demo\ndataset: demo\n", "keys given twice"),
        ("dataset: [\n", "is not YAML"),
        ("just words", "expected `dataset`"),
        ("dataset: demo\nretrievers: [bm25-okapi]\n", "no measures"),
    ],
)  # fmt: skip
def test_malformed_configs(tmp_path, text, said):
    file = tmp_path / "bench.yaml"
    file.write_text(text)
    with pytest.raises(InputError, match=said):
        sy.bench(file)


def test_lines_are_those_of_the_file(tmp_path):
    file = tmp_path / "a.yaml"
    file.write_text("one: 1\n\ntwo:\n  - a\n  - b: {c: 3}\n")
    located = read_located(file)
    assert located.value == {"one": 1, "two": ["a", {"b": {"c": 3}}]}
    assert located.line(("two",)) == 3
    assert located.line(("two", 1, "b", "c")) == 5
    assert located.line(("two", 0, "nowhere")) == 4


def test_two_retrievers_with_one_name_are_refused(dataset, tmp_path):
    with pytest.raises(InputError, match="two retrievers are called 'x'"):
        run(dataset, tmp_path, Lookup("x"), Lookup("x", shift=1))


def test_a_retriever_that_cannot_index_does_not_stop_the_others(dataset, tmp_path):
    class Broken(Lookup):
        def index(self, corpus):
            raise OSError("the model is not there")

    result = run(dataset, tmp_path, Broken("broken"), Lookup("sound"))
    assert {row.run: row.means["RR"] for row in result.comparison.leaderboard_rows} == {
        "sound": 1.0,
        "broken": 0.0,
    }
    assert result.rows[0].errors["q0"] == "indexing failed: OSError: the model is not there"


def test_what_failed_is_asked_again(dataset, tmp_path):
    run(dataset, tmp_path, Lookup("a", fails=(2,), same=True))
    mended = Lookup("a", fails=(2,), same=True)
    mended.fails = ()
    mended.settings = lambda: {"shift": 0, "fails": [2], "same": True}
    result = run(dataset, tmp_path, mended)
    assert result.rows[0].errors == {}
    assert result.comparison.leaderboard["RR"].to_list() == [1.0]


class Words:
    """A class as a user writes one: no label, no settings, no base."""

    def index(self, corpus):
        self.corpus = dict(corpus)

    def retrieve(self, queries, k):
        return [
            [doc for doc, text in self.corpus.items() if query.split()[1] in text.split()][:k]
            for query in queries
        ]


def first_document(query, k):
    return ["d0"]


def test_a_class_or_a_function_stands_in_a_bench_as_it_is(dataset, tmp_path):
    given = [Words, {"python": Words, "name": "by name"}, Words(), first_document]
    given[2].label = "an object"
    result = run(dataset, tmp_path, *given[:2], first_document)
    means = {row.run: row.means["RR"] for row in result.comparison.leaderboard_rows}
    assert means == {"Words": 1.0, "by name": 1.0, "first_document": pytest.approx(1 / 6)}
    assert run(dataset, tmp_path, Words).rows[0].cached, "a class of a module is kept while its code stays"
    assert run(dataset, tmp_path / "object", given[2]).comparison.leaderboard["RR"].to_list() == [1.0]


def test_a_class_in_a_bench_of_chunkers_has_an_index_for_each(dataset, tmp_path):
    chunkers = ["whole", {"fixed": {"tokens": 2, "overlap": 0}}]
    result = run(dataset, tmp_path, Words, chunkers=chunkers, measures=["RR"])
    assert [row.chunks for row in result.rows] == [6, 12]
    assert all(row.errors == {} and row.unknown_documents == 0 for row in result.rows)


def test_a_class_that_cannot_be_asked_is_a_problem_of_the_config(dataset, tmp_path):
    class Half:
        def index(self, corpus):
            pass

    with pytest.raises(InputError, match=r"has index but none of retrieve") as caught:
        run(dataset, tmp_path, Half, 7)
    assert "7 is not a retriever" in str(caught.value)


def files_of(folder, name):
    return sorted(path.name for path in (folder / name).iterdir())


def test_what_left_the_bench_leaves_the_folder(dataset, tmp_path):
    run(dataset, tmp_path, Lookup("a"), Lookup("b", shift=1))
    (tmp_path / "runs" / "mine.parquet").write_bytes(b"not a bench's")
    (tmp_path / "cache" / "notes.jsonl").write_text("{}")
    (tmp_path / "cache" / ("0" * 20 + ".jsonl")).write_text('{"somebody": "else"}')
    result = run(dataset, tmp_path, Lookup("a"))
    assert [path.name for path in result.removed] == ["b.parquet"]
    assert files_of(tmp_path, "runs") == ["a.parquet", "mine.parquet"]
    back = Lookup("b", shift=1)
    assert run(dataset, tmp_path, Lookup("a"), back).removed == ()
    assert back.asked == 0, "one result later its answers are still there"
    run(dataset, tmp_path, Lookup("a"))
    result = run(dataset, tmp_path, Lookup("a"))
    assert [path.parent.name for path in result.removed] == ["cache"]
    assert {"notes.jsonl", "0" * 20 + ".jsonl"} < set(files_of(tmp_path, "cache"))
    assert len(files_of(tmp_path, "cache")) == 3


def test_a_record_that_names_files_elsewhere_removes_none(dataset, tmp_path):
    folder = tmp_path / "out"
    run(dataset, folder, Lookup("a"))
    (tmp_path / "precious.parquet").write_bytes(b"")
    record = json.loads((folder / "result.json").read_text())
    record["runs"].append({"run": "x", "file": "../../precious.parquet"})
    (folder / "result.json").write_text(json.dumps(record))
    assert run(dataset, folder, Lookup("a")).removed == ()
    assert (tmp_path / "precious.parquet").exists()


def test_the_command_line_says_what_was_removed(tmp_path, capsys):
    from steelyard.cli import run as command

    config = tmp_path / "bench.yaml"
    said = []
    for retrievers in ("bm25-l, random", "random", "random"):
        config.write_text(f"dataset: demo\nretrievers: [{retrievers}]\nmeasures: [nDCG@10]\ndepth: 5\n")
        assert command(["bench", str(config)]) == 0
        said.append(capsys.readouterr().err)
    assert "no longer names them" not in said[0]
    assert "no longer names them: runs/bm25-l.parquet." in said[1]
    assert "no longer names them: 1 file of old answers." in said[2]
