"""Published results: MTEB's JSON files and tables of runs and datasets, and MTEB's Borda counts."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import steelyard as sy
from steelyard.errors import InputError, MeasureError


def write_result(folder, model, task, score, revision="1" * 40, meta=True, splits=("test",)):
    """One file in MTEB's layout."""
    place = folder / model.replace("/", "__") / revision
    place.mkdir(parents=True, exist_ok=True)
    entry = {
        "ndcg_at_10": score,
        "map_at_100": score / 2,
        "nauc_ndcg_at_10_max": 0.1,
        "main_score": score,
        "hf_subset": "default",
        "languages": ["eng-Latn"],
    }
    content = {
        "dataset_revision": "abc",
        "task_name": task,
        "mteb_version": "2.26.24",
        "scores": {split: [entry] for split in splits},
        "evaluation_time": 12.3,
        "kg_co2_emissions": None,
    }
    (place / f"{task}.json").write_text(json.dumps(content))
    if meta:
        (place / "model_meta.json").write_text(json.dumps({"name": model, "revision": revision}))


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """20 models x 10 tasks; two models lack tasks, and some scores are equal."""
    folder = tmp_path_factory.mktemp("mteb")
    scores = np.random.default_rng(0).random((20, 10)).round(1)
    missing = {(3, 0), (3, 1), (7, 9)}
    for model, task in np.ndindex(scores.shape):
        if (model, task) not in missing:
            write_result(folder, f"org/model-{model:02}", f"Task{task}", float(scores[model, task]))
    table = scores.copy()
    for place in missing:
        table[place] = np.nan
    return folder, table


def plain_borda(table, rule):
    """By the definition, one task and one pair at a time; the models are in the order of their names."""
    counts = []
    for model, mine in enumerate(table):
        points = 0.0
        for task, value in enumerate(mine):
            if np.isnan(value):
                continue
            for other, theirs in enumerate(table[:, task]):
                if np.isnan(theirs):
                    points += rule == "all"
                elif rule == "all":
                    points += (value > theirs) + 0.5 * (value == theirs)
                else:
                    points += value > theirs or (value == theirs and model <= other)
            points -= 0.5 if rule == "all" else 0.0  # the model itself
        counts.append(points)
    return counts


def backend_borda(table):
    """As MTEB's tables are defined: number of models minus the mean rank, summed; a missing task adds nothing."""
    frame = pl.DataFrame(table, schema=[f"t{n}" for n in range(table.shape[1])]).fill_nan(None)
    points = [len(table) - frame[name].rank("average", descending=True) for name in frame.columns]
    return sum(each.fill_null(0.0) for each in points).to_list()


def page_borda(table):
    """As MTEB's page counts filtered tasks: the models that were run, sorted, get their number, that less 1, ... 1."""
    frame = pl.DataFrame(table, schema=[f"t{n}" for n in range(table.shape[1])]).fill_nan(None)
    points = [frame[name].count() + 1 - frame[name].rank("ordinal", descending=True) for name in frame.columns]
    return sum(each.fill_null(0) for each in points).to_list()


@pytest.mark.parametrize("rule", ["all", "measured"])
def test_mtebs_borda_counts_by_both_rules(results, rule):
    folder, table = results
    found = sy.across([folder], dialect="mteb", borda=rule).table.sort("run")
    assert found["run"].to_list() == [f"org/model-{n:02}" for n in range(20)]
    assert found["borda"].to_list() == pytest.approx(plain_borda(table, rule))
    theirs = {"all": backend_borda, "measured": page_borda}[rule](table)
    assert found["borda"].to_list() == pytest.approx(theirs)
    ranks = found["borda"].rank("min", descending=True).to_list()
    assert found["borda_rank"].to_list() == ranks


def test_all_is_the_default_of_the_dialect_and_a_count_is_refused_otherwise(results):
    folder, _ = results
    by_dialect = sy.across([folder], dialect="mteb")
    assert by_dialect.borda_rule == "all"
    refused = sy.across([folder]).table.filter(pl.col("borda").is_null())["run"].to_list()
    assert sorted(refused) == ["org/model-03", "org/model-07"]


def test_borda_counts_checked_by_hand(tmp_path):
    """Three models, two tasks; c was not run on B, and a and b are equal on it."""
    for model, task, score in [("a", "A", 0.9), ("b", "A", 0.5), ("c", "A", 0.7), ("a", "B", 0.4), ("b", "B", 0.4)]:
        write_result(tmp_path, model, task, score)
    counts = {
        rule: dict(sy.across([tmp_path], borda=rule).table.select("run", "borda").iter_rows())
        for rule in ("all", "measured")
    }
    assert counts["all"] == {"a": 2 + 1.5, "b": 0 + 1.5, "c": 1.0}
    assert counts["measured"] == {"a": 3 + 2, "b": 1 + 1, "c": 2}


def test_the_tests_of_published_means_are_over_datasets_only(results):
    found = sy.across([results[0]], missing="skip")
    assert found.measure == "main_score"
    assert {pair.these.verdict for pair in found.tested_pairs} == {"not tested"}
    assert all("no values per query" in pair.these.reason for pair in found.tested_pairs)
    assert found.friedman is not None
    assert found.like_these is not None


def test_a_metric_is_found_by_our_name(results):
    found = sy.across([results[0]], "AP@100")
    main = sy.across([results[0]])
    first = found.table.sort("run")["Task0"][0]
    assert first == pytest.approx(main.table.sort("run")["Task0"][0] / 2)
    with pytest.raises(MeasureError, match="it has ndcg_at_10, map_at_100 and main_score"):
        sy.across([results[0]], "RR@10")


def test_several_splits_are_averaged_and_reported(tmp_path):
    write_result(tmp_path, "m", "A", 0.5, splits=("dev", "test"))
    write_result(tmp_path, "m", "B", 0.5)
    found = sy.across([tmp_path])
    assert "across-splits" in {each.code for each in found.notes}


def test_two_revisions_of_a_model_are_two_runs(tmp_path):
    for revision, score in (("a" * 40, 0.5), ("b" * 40, 0.6)):
        for task in ("A", "B"):
            write_result(tmp_path, "org/m", task, score, revision)
    assert sy.across([tmp_path]).table["run"].to_list() == ["org/m (bbbbbbb)", "org/m (aaaaaaa)"]


def test_a_model_is_named_by_its_folder_without_model_meta(tmp_path):
    for task in ("A", "B"):
        write_result(tmp_path, "org/m", task, 0.5, meta=False)
    assert sy.across([tmp_path]).runs == ("org/m",)


# Tables

BY_DATASET = "Dataset,BM25,ColBERT\nSciFact,0.665,0.671\nNFCorpus,0.325,0.305\nAvg.,0.495,0.488\n"
BY_MODEL = "| Model | SciFact | NFCorpus | Average |\n|:--|--:|--:|--:|\n"
BY_MODEL += "| BM25 | **66.5** | 32.5 | 49.5 |\n| ColBERT | 67.1 | - | |\n"
LONG = "model\tdataset\tscore\nBM25\tSciFact\t0.665\nBM25\tNFCorpus\t0.325\n"


def table_of(tmp_path, text, name="table.csv"):
    (tmp_path / name).write_text(text)
    return sy.across([tmp_path / name], "nDCG@10")


def test_a_table_with_one_row_per_dataset(tmp_path):
    found = table_of(tmp_path, BY_DATASET)
    assert found.names == ("SciFact", "NFCorpus")
    assert found.table.filter(pl.col("run") == "BM25")["macro"][0] == pytest.approx(0.495)
    assert "across-left-out" in {each.code for each in found.notes}


def test_a_markdown_table_with_one_row_per_model_in_percent(tmp_path):
    found = table_of(tmp_path, BY_MODEL, "table.md")
    row = found.table.filter(pl.col("run") == "BM25").row(0, named=True)
    assert (row["SciFact"], row["NFCorpus"]) == (0.665, 0.325)
    assert found.table.filter(pl.col("run") == "ColBERT")["macro"][0] is None
    assert {"across-percent", "across-missing"} <= {each.code for each in found.notes}


def test_a_long_table(tmp_path):
    assert table_of(tmp_path, LONG, "table.tsv").names == ("SciFact", "NFCorpus")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\nx,1\n", "its first column is 'a'"),
        ("model,SciFact,B\nBM25,good,0.1\n", "'good' in the row of 'BM25' is not a number"),
        ("model\n", "expected a table of runs and datasets"),
        ("model,a,b\nx,1,2,3\n", "the row of 'x' has 4 cells, and the header 3"),
        ("model,a,b\nx,inf,0.1\n", "'inf' in the row of 'x' is not a number"),
    ],
)
def test_another_table_is_refused(tmp_path, text, said):
    with pytest.raises(InputError, match=said):
        table_of(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "task.json: not MTEB results"),
        ('{"task_name": "T", "scores": {"test": "x"}}', "task.json: no scores"),
        ('{"task_name": "T", "scores": {"test": [{"main_score": NaN}]}}', "task.json: no metric is a number"),
        ("{", "task.json"),
    ],
)
def test_malformed_results_are_refused(tmp_path, text, said):
    (tmp_path / "task.json").write_text(text)
    with pytest.raises(InputError, match=said):
        sy.across([tmp_path / "task.json"])


def test_a_folder_without_results_is_refused(tmp_path):
    with pytest.raises(InputError, match="no MTEB results"):
        sy.across([tmp_path])


def test_a_missing_path_is_refused(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        sy.across([tmp_path / "nothing"])


def test_published_means_are_compared_with_own_results(tmp_path):
    qrels = {f"q{n}": {f"d{n}": 1} for n in range(10)}
    runs = {
        "mine": {f"q{n}": [f"d{n}"] if n % 2 else ["x", f"d{n}"] for n in range(10)},
        "other": {f"q{n}": ["x", "y", f"d{n}"] for n in range(10)},
    }
    own = sy.compare(qrels, runs, ["nDCG@10"])
    (tmp_path / "beir.csv").write_text("Dataset,ColBERT\nscifact,0.671\nNF-Corpus,0.305\nTouche,0.2\n")
    found = sy.across({"SciFact": own, "nfcorpus": own}, published=[tmp_path / "beir.csv"])
    assert set(found.table["run"]) == {"mine", "other", "ColBERT"}
    pairs = {frozenset((pair.run, pair.baseline)): pair for pair in found.tested_pairs}
    assert pairs[frozenset(("mine", "other"))].these.verdict == "better"
    assert pairs[frozenset(("mine", "ColBERT"))].these.reason == "ColBERT has no values per query on every dataset"
    assert {"across-published", "across-unused-datasets"} <= {each.code for each in found.notes}


def test_a_run_with_two_values_on_a_dataset_is_refused(tmp_path):
    own = sy.compare({"q1": {"d1": 1}, "q2": {"d1": 1}}, {"BM25": {"q1": ["d1"], "q2": ["d2"]}}, ["nDCG@10"])
    (tmp_path / "beir.csv").write_text(BY_DATASET)
    with pytest.raises(InputError, match="BM25 has a value of its own and a published one"):
        sy.across({"SciFact": own, "NFCorpus": own}, published=[tmp_path / "beir.csv"])
