"""A bench over several datasets: one result per dataset, and one across them."""

from __future__ import annotations

import json

import pytest

import steelyard as sy
from needs import shared_data
from steelyard.cli import run as steelyard
from steelyard.errors import InputError

pytestmark = pytest.mark.slow

WORDS = [
    "balance",
    "scale",
    "weight",
    "beam",
    "market",
    "arm",
    "lever",
    "spring",
    "load",
    "pan",
    "hook",
    "chain",
    "mass",
    "gram",
    "pound",
]


def write_dataset(folder, seed):
    """Eight documents and six queries, with ids that are the same in every dataset."""
    folder.mkdir(parents=True)
    texts = [" ".join(WORDS[(seed + step * n) % len(WORDS)] for step in range(1, 6)) for n in range(8)]
    (folder / "corpus.jsonl").write_text(
        "".join(json.dumps({"_id": f"d{n}", "text": text}) + "\n" for n, text in enumerate(texts))
    )
    (folder / "queries.jsonl").write_text(
        "".join(json.dumps({"_id": f"q{n}", "text": " ".join(texts[n].split()[:2])}) + "\n" for n in range(6))
    )
    rows = "".join(f"q{n}\td{(n + seed % 2) % 8}\t1\n" for n in range(6))
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + rows)


YAML = """\
datasets: {first: first, second: second}
retrievers: [bm25-okapi, bm25-plus, {random: {seed: 1}}]
measures: [nDCG@10, RR@10]
"""


@pytest.fixture
def folder(tmp_path):
    write_dataset(tmp_path / "first", 1)
    write_dataset(tmp_path / "second", 4)
    (tmp_path / "bench.yaml").write_text(YAML)
    return tmp_path


def test_a_bench_over_datasets_writes_a_folder_for_each_and_one_table(folder):
    result = sy.bench(folder / "bench.yaml", folder / "out")
    assert isinstance(result, sy.BenchAcross)
    assert list(result.results) == ["first", "second"]
    for name in ("first", "second"):
        assert (folder / "out" / name / "result.json").is_file()
        assert (folder / "out" / name / "report.html").is_file()
    written = json.loads((folder / "out" / "across.json").read_text())
    assert written == json.loads(result.across.to_json())
    assert 'href="first/report.html"' in (folder / "out" / "report.html").read_text()
    back = '<a href="../report.html">All datasets</a>'
    page = folder / "out" / "second" / "report.html"
    assert back in page.read_text()
    page.unlink()
    for path, linked in ((page, True), (folder / "alone.html", False)):
        for of_second in (sy.load_result(folder / "out" / "second"), result.results["second"]):
            of_second.to_html(path)
            assert (back in path.read_text()) == linked
            path.unlink()


def test_the_numbers_are_those_of_the_benches_alone(folder):
    many = sy.bench(folder / "bench.yaml", folder / "out").across
    for name in ("first", "second"):
        settings = {"retrievers": ["bm25-okapi", "bm25-plus", {"random": {"seed": 1}}], "measures": ["nDCG@10"]}
        alone = sy.bench({"dataset": str(folder / name), **settings}, folder / f"{name}-out").comparison
        for row in alone.leaderboard_rows:
            mine = next(each for each in many.to_dict()["table"] if each["run"] == row.run)
            assert mine["values"][name] == row.means["nDCG@10"]
            assert mine["intervals"][name] == list(row.intervals["nDCG@10"])


def test_a_second_bench_is_cached_and_gives_the_same_file(folder):
    sy.bench(folder / "bench.yaml", folder / "out")
    before = (folder / "out" / "across.json").read_bytes()
    again = sy.bench(folder / "bench.yaml", folder / "out")
    assert (folder / "out" / "across.json").read_bytes() == before
    assert all(row.cached for result in again.results.values() for row in result.rows)


def test_the_folder_is_read_by_across_report_and_refused_by_others(folder, capsys):
    result = sy.bench(folder / "bench.yaml", folder / "out")
    read = sy.across([folder / "out"])
    assert read.to_json() == result.across.to_json()
    page = folder / "page.html"
    assert steelyard(["report", str(folder / "out"), "-o", str(page)]) == 0
    assert 'href="out/first/report.html"' in page.read_text()
    assert steelyard(["gate", str(folder / "out"), "--rule", "nDCG@10 >= 0.1"]) == 2
    assert "has the results of several datasets" in capsys.readouterr().err


def test_one_comparison_of_several_datasets_is_an_error_that_names_the_way(folder):
    result = sy.bench(folder / "bench.yaml", folder / "out")
    with pytest.raises(InputError, match=r"\.results\['first'\]\.comparison"):
        result.comparison  # noqa: B018


def test_the_command_prints_the_table_across_and_every_format(folder, capsys):
    assert steelyard(["bench", str(folder / "bench.yaml"), "-o", str(folder / "out")]) == 0
    printed = capsys.readouterr()
    assert printed.out.split()[:6] == ["run", "macro", "mean", "group", "first", "second"]
    assert "on nDCG@10 over 2 datasets by" in printed.err
    assert "datasets like these" in printed.err
    assert steelyard(["across", str(folder / "out"), "--all"]) == 0
    assert "Verdicts on each dataset alone" in capsys.readouterr().out
    sources = [f"one={folder / 'out' / 'first'}", str(folder / "out" / "second")]
    assert steelyard(["across", *sources, "-m", "RR@10", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["datasets"], data["measure"]) == (["one", "second"], "RR@10")
    for name in ("a.html", "a.csv", "a.md", "a.tex", "a.json", "a.txt"):
        assert steelyard(["across", str(folder / "out"), "-o", str(folder / name)]) == 0
        assert "bm25-okapi" in (folder / name).read_text()


def test_two_results_of_one_dataset_are_refused(folder):
    sy.bench(folder / "bench.yaml", folder / "out")
    with pytest.raises(InputError, match=r"two results are of the dataset 'first'\. .*NAME=FOLDER"):
        sy.across([folder / "out" / "first", folder / "out" / "first"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (YAML + "dataset: first\n", "`dataset` and `datasets` are both given"),
        (YAML.replace(", second: second", ""), "expected two datasets or more"),
        (YAML.replace("second: second", "a/b: second"), "the name 'a/b' is also that of a folder"),
        (YAML.replace("second: second", "First: second"), "differ in case only"),
        (YAML.replace("second: second", "second: nowhere"), "line 1: there is no dataset 'nowhere'"),
        (YAML.replace("[bm25-okapi", "[{run: old.run}"), "a finished run belongs to one dataset"),
        (
            YAML.replace("datasets: {first: first, second: second}", "dataset: [first, second]"),
            "`datasets: {name: path",
        ),
        (YAML.replace("datasets: {first: first, second: second}\n", ""), "`dataset` is missing"),
    ],
)
def test_a_wrong_bench_is_refused_before_anything_runs(folder, text, said):
    (folder / "old.run").write_text("q1 Q0 d1 1 1.0 x\n")
    (folder / "bench.yaml").write_text(text)
    with pytest.raises(InputError) as caught:
        sy.bench(folder / "bench.yaml", folder / "out")
    assert said in str(caught.value)
    assert not (folder / "out").exists()


@pytest.mark.slow
def test_three_real_datasets_and_four_retrievers(tmp_path):
    names = ("scifact", "cranfield", "faq-ja")
    settings = {
        "retrievers": [
            "bm25-okapi",
            "bm25-l",
            {"bm25-okapi": {"tokenizer": "words", "name": "words"}},
            {"random": {"seed": 42}},
        ],
        "measures": ["nDCG@10"],
        "depth": 20,
    }
    paths = {name: str(shared_data(name)) for name in names}
    (tmp_path / "bench.yaml").write_text(json.dumps({"datasets": paths, **settings}))
    many = sy.bench(tmp_path / "bench.yaml", tmp_path / "out")
    rows = {row.run: row for row in many.across.rows}
    for name in names:
        alone = sy.bench({"dataset": paths[name], **settings}, tmp_path / f"{name}-alone").comparison
        for row in alone.leaderboard_rows:
            assert rows[row.run].values[name] == row.means["nDCG@10"]
        for pair in alone.tested_pairs:
            found = next(p for p in many.across.tested_pairs if {p.run, p.baseline} == {pair.run, pair.baseline})
            assert found.datasets[name] == (
                pair.verdict
                if found.run == pair.run
                else {"better": "worse", "worse": "better"}.get(pair.verdict, pair.verdict)
            )
        assert (tmp_path / "out" / name / "report.html").is_file()
    for row in rows.values():
        assert row.macro == pytest.approx(sum(row.values.values()) / 3, abs=1e-12)
    pairs = {(p.run, p.baseline): p for p in many.across.tested_pairs}
    assert pairs["bm25-okapi", "random"].these.verdict == "better"
    assert pairs["bm25-okapi", "random"].like_these.verdict == "not significant"
