"""agreement(): its tables, its verdict, and the known figures of eight models on dl2019."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import random
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from benchmarks.agreement import oversold

import steelyard as sy
from needs import SHARED, needs_shared
from steelyard.cli import run as steelyard
from steelyard.errors import InputError
from steelyard.judging.agreement import Agreement, agreement, grades_verdict, ranking_verdict
from steelyard.judgments import Judgments
from steelyard.run import Run
from steelyard.statistics.agreement import cohen_kappa, drops, kappa_interval, tau_ap

DATA = SHARED / "dl2019"

# DEFINITIONS.md, section 4: kappa, quadratic kappa, tau-b of the runs, mean difference of nDCG@10.
KNOWN = {
    "umbrela-gpt4": (0.3385, 0.5807, 0.8498, 0.0874),
    "4prompts-flan-t5-large": (0.2272, 0.4477, 0.9039, 0.0306),
    "sun-decomposed-flan-t5-large": (0.1867, 0.4416, 0.9249, 0.0937),
    "4prompts-llama3-70b": (0.1666, 0.4611, 0.8679, 0.1854),
    "sun-decomposed-llama3-8b": (0.1688, 0.3759, 0.8679, 0.1453),
    "direct-llama3-8b": (0.1284, 0.3221, 0.8911, 0.1804),
    "4prompts-llama3-8b": (0.1237, 0.3019, 0.8769, 0.1796),
    "query-similarity-llama3-8b": (0.1238, 0.2446, 0.7477, 0.1483),
}
JSON_PAIRS = ["a", "b", "n", "kappa", "kappa_linear", "kappa_quadratic", "alpha", "ac1", "bias"]
JSON_SYSTEMS = [
    *["a", "b", "measure", "tau", "tau_low", "tau_high", "tau_ap", "rbo", "bias"],
    *["significant_both", "significant_a", "significant_b", "reversed"],
]


@pytest.fixture(scope="module")
def small() -> Agreement:
    """Two judges of 12 queries: gpt never gives 0, and does not know two documents of human's."""
    rng = np.random.default_rng(1)
    human = {f"q{q}": {f"d{d}": int(rng.integers(0, 4)) for d in range(8)} for q in range(12)}
    gpt = {
        query: {doc: max(grade, 1) for doc, grade in docs.items() if (query, doc) not in {("q0", "d0"), ("q1", "d1")}}
        for query, docs in human.items()
    }
    gpt["q11"]["d99"] = 2
    runs = {
        f"run{r}": {
            query: sorted(docs, key=lambda doc, docs=docs, r=r: -docs[doc] + rng.normal(0, r))
            for query, docs in human.items()
        }
        for r in range(5)
    }
    return agreement({"human": human, "gpt": gpt}, runs, ["nDCG@10", "P@3"])


def test_grades_are_compared_where_both_judged(small: Agreement) -> None:
    (row,) = small.pairs.iter_rows(named=True)
    assert list(row)[:9] == JSON_PAIRS
    assert (row["n"], row["only_a"], row["only_b"]) == (94, 2, 1)
    a, b = small.grades
    assert row["kappa"] == cohen_kappa(a, b)
    assert row["bias"] == pytest.approx(np.nanmean(b - a))
    assert small.confusion("human", "gpt").select(pl.col("gpt=0")).sum().item() == 0
    assert small.confusion("human", "gpt").drop("human").to_numpy().sum() == 94
    assert small.by_grade.filter(pl.col("grade") == 0)["bias"].item() == 1.0
    assert small.by_query.height == 12
    assert small.by_query["n"].sum() == 94


def test_the_runs_are_scored_with_each_judges_own_grades(small: Agreement) -> None:
    assert small.systems["measure"].to_list() == ["nDCG@10", "P@3"]
    row = small.systems.row(1, named=True)
    assert set(JSON_SYSTEMS) <= set(row)
    # Every document that gpt knows is relevant to it.
    by_gpt = small.favours.filter(pl.col("measure") == "P@3")["score_b"].mean()
    assert isinstance(by_gpt, float)
    assert by_gpt > 0.95
    bias = small.favours.filter(pl.col("measure") == "P@3")["bias"].mean()
    assert row["bias"] == pytest.approx(bias)
    assert row["run_pairs"] == 10
    assert row["bias_low"] < row["bias"] < row["bias_high"]


def test_favours_sum_to_nothing_and_are_corrected(small: Agreement) -> None:
    chosen = small.favours.filter(pl.col("measure") == "nDCG@10")
    assert chosen["favour"].sum() == pytest.approx(0.0, abs=1e-12)
    assert (chosen["p_adjusted"] >= chosen["p"]).all()


def test_a_judge_that_favours_one_run_is_reported() -> None:
    docs = [f"d{i}" for i in range(6)]
    human = {f"q{q}": {doc: int(doc in docs[:2]) for doc in docs} for q in range(10)}
    gpt = {query: {**grades, "own": 1} for query, grades in human.items()}
    runs = {name: dict.fromkeys(human, docs[i:] + docs[:i]) for i, name in enumerate(["x", "y", "z"])}
    runs["gpt"] = {query: ["own", *docs[3:]] for query in human}
    gpt["q0"].pop("own")
    found = agreement({"human": human, "gpt": gpt}, runs, "P@3")
    best = found.favours.sort("favour").row(-1, named=True)
    assert best["run"] == "gpt"
    assert best["bias"] == pytest.approx(0.3)
    assert "gpt: 4 of 4 runs have a bias in P@3 significantly different from the mean of all runs" in found.to_text()
    assert "no run has a bias" in agreement({"human": human, "same": human}, runs).remarks[0]


def test_the_same_seed_gives_the_same_figures(small: Agreement) -> None:
    again = replace(small)
    other = replace(small, seed=small.seed + 1)
    assert again.systems.equals(small.systems)
    assert not other.systems.equals(small.systems)


def test_every_form_shows_the_verdict_and_the_figures(small: Agreement) -> None:
    kappa = f"{small.pairs['kappa'].item():.4f}"
    for form in (small.to_text(), small.to_markdown(), small.to_html(), repr(small)):
        assert small.verdict in form
        assert kappa in form
    made = json.loads(small.to_json())
    assert made["steelyard"] == sy.__version__
    assert set(JSON_PAIRS) <= set(made["pairs"][0])
    assert set(JSON_SYSTEMS) <= set(made["systems"][0])
    assert made["systems"][0]["tau"] == small.systems["tau"][0]


def test_the_scores_by_two_judges_are_drawn(small: Agreement) -> None:
    made = small.to_html()
    one, other, _ = small.scores(*small.judges, small.measures[0])
    assert made.count("<circle ") == len(small.runs) * len(small.measures)
    for run, x, y in zip(small.runs, one.mean(axis=1), other.mean(axis=1), strict=True):
        assert f"<title>{run}: {x:.4f}, {y:.4f}</title>" in made


def test_html_is_escaped_and_written(tmp_path: Path) -> None:
    found = agreement({"<b>": {"q": {"d": 1}}, "gpt": {"q": {"d": 1}}})
    made = found.to_html(tmp_path / "page.html")
    assert "<b>" not in made
    assert (tmp_path / "page.html").read_text("utf-8") == made
    policy = re.search(""""Content-Security-Policy" content="default-src 'none'; script-src '(.+?)';""", made)
    script = made.partition('<script type="module">')[2].partition("</script>")[0]
    assert made.count("<script") == 1
    assert policy[1] == f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"
    assert made.index("Content-Security-Policy") < made.index("<body>") < made.index("<table")


def test_the_bias_of_a_grade_is_the_mean_grade_by_the_other_minus_it() -> None:
    grades = {"human": [0, 0, 0, 2, 2], "gpt": [0, 1, 2, 2, 1]}
    found = agreement({name: {"q": {f"d{at}": each for at, each in enumerate(own)}} for name, own in grades.items()})
    table = next(each for each in found.document().tables if each.columns[-1] == "bias" and each.columns[0] == "grade")
    assert [(row[0], row[-1]) for row in table.rows] == [("0", "+1.0000"), ("1", ""), ("2", "-0.5000")]


def test_no_p_is_printed_as_zero() -> None:
    rng = random.Random(0)
    docs = [f"d{at}" for at in range(12)]
    human = {f"q{at}": {doc: rng.choice([0, 0, 1]) for doc in docs} for at in range(60)}
    gpt = {query: {**own, "own": 1} for query, own in human.items()}
    human = {query: {**own, "own": 0} for query, own in human.items()}
    runs = {name: dict.fromkeys(human, docs[at:] + docs[:at]) for at, name in enumerate("xyz")}
    runs["gpt"] = {query: ["own", *docs[3:]] for query in human}
    found = agreement({"human": human, "gpt": gpt}, runs, "P@3")
    assert found.favours["p_adjusted"].min() < 5e-5
    assert {row[-1] for row in found.document().tables[-1].rows} == {"<0.001"}
    assert found.to_html().count("&lt;0.001</td></tr>") == 4


def test_one_file_with_several_judges(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    path.touch()
    labels = Judgments.read(path)
    for doc, ann, bob in (("a", 0, 0), ("b", 1, 2), ("c", 2, 2)):
        labels.append("q", doc, ann, "ann")
        labels.append("q", doc, bob, "bob")
    labels.append("q", "d", None, "bob")
    for source in (labels, path, str(path)):
        found = agreement(source)
        assert found.judges == ("ann", "bob")
        assert found.pairs["n"].item() == 3
    named = agreement({"people": path, "model": {"q": {"a": 0, "b": 1}}})
    assert "people: 2 judges (ann and bob) resolved by majority" in named.notes[0]
    assert found.systems.height == 0
    assert found.verdict == "bob and ann both graded 3 documents, too few to see how far they agree."


def test_files_without_names_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both, human = tmp_path / "both.jsonl", tmp_path / "human.txt"
    both.touch()
    labels = Judgments.read(both)
    for doc, ann, bob in (("a", 0, 0), ("b", 1, 2)):
        labels.append("q", doc, ann, "ann")
        labels.append("q", doc, bob, "bob")
    human.write_text("q 0 a 1\nq 0 b 2\n")
    assert steelyard(["agreement", str(both)]) == 0
    assert "bob and ann both graded 2 documents" in capsys.readouterr().err
    assert steelyard(["agreement", str(human), f"m={both}"]) == 0
    assert "m and human both graded 2 documents" in capsys.readouterr().err
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "human.txt").write_text("q 0 a 1\n")
    for arguments, message in (
        ([human], "one judgments file of several"),
        ([human, tmp_path / "x" / "human.txt"], "two judges are called 'human'"),
        ([human, "y=absent.txt"], "absent.txt: no such file; expected FILE or NAME=FILE"),
        ([], "at least two judges, found none"),
    ):
        assert steelyard(["agreement", *map(str, arguments)]) == 2
        assert message in capsys.readouterr().err


def test_judges_with_nothing_in_common() -> None:
    runs = {"x": {"q1": ["a"], "q2": ["a"]}, "y": {"q1": ["b"], "q2": ["b"]}}
    found = agreement({"ann": {"q1": {"a": 1}}, "bob": {"q2": {"a": 1}}}, runs)
    assert found.pairs["n"].item() == 0
    assert math.isnan(found.pairs["kappa"].item())
    assert found.systems["tau"].item() is None
    assert found.verdict == "bob and ann have no graded document in common."
    assert json.loads(found.to_json())["pairs"][0]["kappa"] is None
    assert "ann" in found.to_text()


def test_wrong_input_is_refused(small: Agreement, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least two judges"):
        agreement({"human": {"q": {"d": 1}}})
    with pytest.raises(InputError, match="two or more by name, or one judgments file"):
        agreement([1, 2])
    (tmp_path / "labels.csv").write_text("query_id,doc_id,grade,judge\nq,d,1,ann\nq,d,0,bob\n")
    with pytest.raises(InputError, match=r"several, and \S+labels\.csv is none \(JSON lines with query_id, "):
        agreement(tmp_path / "labels.csv")
    with pytest.raises(InputError, match="human"):
        small.confusion("humn", "gpt")


def test_runs_with_the_same_tag_are_called_by_their_files(tmp_path: Path) -> None:
    judges, files = {"x": {"q1": {"a": 1}}, "y": {"q1": {"a": 0}}}, [tmp_path / "old.run", tmp_path / "new.run"]
    for file in files:
        Run({"q1": ["a"]}, name="tag").write(file)
    assert agreement(judges, files).runs == ("old", "new")
    with pytest.raises(InputError, match="two runs are called 'tag'; give them different names: tag-1=FILE"):
        agreement(judges, [Run.read(file) for file in files])


def test_verdicts() -> None:
    row = {"tau": 0.7, "tau_low": 0.6, "tau_high": 0.8, "bias": -0.1, "bias_low": -0.2, "bias_high": -0.05}
    more = {"runs": 12, "reversed": 2, "significant_a": 30}
    assert ranking_verdict("human", "gpt", {**row, **more}) == (
        "gpt ranks the runs only roughly like human (tau 0.70 [0.60, 0.80]) and its absolute scores are 0.10 too low: "
        "do not compare them with human ones; it reverses 2 of the 30 significant differences."
    )
    unbiased = {**row, **more, "tau": 0.3, "bias_high": 0.1, "reversed": 0}
    assert ranking_verdict("human", "gpt", unbiased).startswith("gpt ranks the runs differently from human")
    assert ranking_verdict("human", "gpt", unbiased).endswith("are not significantly different from human ones.")
    assert ranking_verdict("human", "gpt", {**row, **more, "significant_a": 0}).startswith(
        "Whether gpt ranks runs like human cannot be judged from 12 runs that do not differ significantly;"
    )
    equal = {"n": 30, "kappa": math.nan, "kappa_low": 0.0, "kappa_high": 0.0, "bias": 0.0}
    assert "kappa is undefined" in grades_verdict("human", "gpt", equal)


@needs_shared
def test_the_interval_of_kappa_contains_that_of_all_documents_in_95_percent_of_draws() -> None:
    rows = [row[:3] for row in sy.Qrels.read(DATA / "qrels.txt").frame.iter_rows()]
    chance, missed = random.Random(1), 0
    judges = [sy.Qrels.read(DATA / "judges" / f"{name}.txt").frame for name in list(KNOWN)[:2]]
    for frame in judges:
        model = {(query, doc): grade for query, doc, grade, _ in frame.iter_rows()}
        kappa = cohen_kappa([grade for *_, grade in rows], [model[row[:2]] for row in rows])
        for _ in range(200):
            drawn = chance.sample(rows, 30)
            low, high = kappa_interval(
                [row[2] for row in drawn], [model[row[:2]] for row in drawn], [row[0] for row in drawn]
            )
            missed += not low <= kappa <= high
    assert missed <= 32, "400 draws at 5% miss 20, and 32 in one of 200 cases"


@pytest.fixture(scope="module")
def dl2019() -> Agreement:
    runs = {path.name.removesuffix(".run.gz"): path for path in sorted((DATA / "runs").glob("*.gz"))}
    files = {name: DATA / "judges" / f"{name}.txt" for name in KNOWN}
    return agreement({"human": DATA / "qrels.txt", **files}, runs, draws=200)


@needs_shared
@pytest.mark.slow
@pytest.mark.parametrize("judge", KNOWN)
def test_known_figures_of_eight_models(dl2019: Agreement, judge: str) -> None:
    (pair,) = dl2019.pairs.filter(pl.col("a") == "human", pl.col("b") == judge).iter_rows(named=True)
    (ranks,) = dl2019.systems.filter(pl.col("a") == "human", pl.col("b") == judge).iter_rows(named=True)
    figures = (pair["kappa"], pair["kappa_quadratic"], ranks["tau"], ranks["bias"])
    assert tuple(round(figure, 4) for figure in figures) == KNOWN[judge]
    assert (pair["n"], ranks["runs"], ranks["queries"]) == (9260, 37, 43)
    assert ranks["tau_low"] <= ranks["tau"] <= ranks["tau_high"]


@needs_shared
@pytest.mark.slow
def test_no_model_reverses_a_significant_difference_of_dl2019(dl2019: Agreement) -> None:
    chosen = dl2019.systems.filter(pl.col("a") == "human")
    assert chosen["significant_a"].unique().to_list() == [479]
    assert chosen["reversed"].sum() == 0
    assert dl2019.verdict.count("ranks the runs like human") == 7


def test_where_less_is_better_the_best_run_has_the_lowest_value() -> None:
    rng, docs = np.random.default_rng(0), [f"d{n}" for n in range(9)]
    human, other = ({f"q{q}": {doc: int(rng.integers(-1, 2)) for doc in docs} for q in range(8)} for _ in range(2))
    runs = {f"r{n}": {query: rng.permutation(docs).tolist() for query in human} for n in range(6)}
    found = agreement({"human": human, "other": other}, runs, ["Confusion@3"])
    means = [
        [sy.evaluate(grades, run, ["Confusion@3"])["Confusion@3"] for run in runs.values()] for grades in (human, other)
    ]
    best_first = -np.array(means)[:, None]
    assert found.systems["tau_ap"].item() == tau_ap(*best_first)[0] != tau_ap(*-best_first)[0]
    assert found.systems["dropped"].item() == list(runs)[int(drops(*best_first)[0].argmax())]


def test_two_runs_do_not_show_that_a_judge_ranks_alike() -> None:
    human = {f"q{q}": {"a": int(q % 3 > 0), "b": int(q % 3 == 0)} for q in range(9)}
    gpt = {query: grades if n < 8 else {"a": 0, "b": 1} for n, (query, grades) in enumerate(human.items())}
    runs = {"x": {key: ["a", "b"] for key in human}, "y": {key: ["b", "a"] for key in human}}
    found = agreement({"human": human, "gpt": gpt}, runs, ["P@1"])
    assert found.verdict.startswith("Whether gpt ranks runs like human cannot be judged from 2 runs")


@needs_shared
@pytest.mark.slow
def test_the_verdict_on_30_documents_and_3_runs_of_dl2019_claims_no_more_than_all_documents_support() -> None:
    """benchmarks/agreement.py has 500 draws."""
    found = oversold(100, seed=1)
    assert found.ranking == 0
    assert found.above <= 0.05


def test_a_geometric_mean_is_refused() -> None:
    """Runs were ranked by the arithmetic mean of its values, and the bias was that of AP."""
    judges = {"a": {"q": {"d": 1}}, "b": {"q": {"d": 1, "e": 0}}}
    runs = {"one": {"q": ["d"]}, "two": {"q": ["e", "d"]}}
    with pytest.raises(InputError, match="leave out GMAP, a geometric mean"):
        sy.agreement(judges, runs=runs, measures=["AP", "GMAP"])
