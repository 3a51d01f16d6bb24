"""evaluate(predicted=): few human judgments and many predicted ones."""

from __future__ import annotations

import json
import re
from csv import DictReader
from io import StringIO

import numpy as np
import pytest

import steelyard as sy
from steelyard.cli import run as steelyard
from steelyard.judging.pool import pool
from steelyard.predicted import PredictedScores
from steelyard.statistics.prediction_powered import prediction_powered, prediction_powered_differences, shared_weight


@pytest.fixture(scope="module")
def data():
    """60 queries with 10 documents: true grades, a run, and predictions that are too generous."""
    random = np.random.default_rng(4)
    truth, predicted, run = {}, {}, {}
    for number in range(60):
        query = f"q{number}"
        hard = random.random()
        grades = (random.random(10) < 0.2 + 0.5 * hard).astype(int)
        noise = (random.random(10) < 0.1).astype(int)
        truth[query] = {f"d{doc}": int(grade) for doc, grade in enumerate(grades)}
        predicted[query] = {f"d{doc}": int(max(g, n)) for doc, (g, n) in enumerate(zip(grades, noise, strict=True))}
        run[query] = {f"d{doc}": float(random.random() + 0.5 * grade) for doc, grade in enumerate(grades)}
    return truth, predicted, run


def test_the_estimate_corrects_the_bias_of_the_predictions(data):
    truth, predicted, run = data
    human = {query: truth[query] for query in list(truth)[:25]}
    scores = sy.evaluate(human, run, ["P@5"], predicted=predicted)
    assert isinstance(scores, PredictedScores)
    complete = sy.evaluate(truth, run, ["P@5"])["P@5"]
    biased = sy.evaluate(predicted, run, ["P@5"])["P@5"]
    assert abs(scores["P@5"] - complete) < abs(biased - complete)
    low, high = scores.interval("P@5")
    assert low < complete < high
    found = scores.estimates["P@5"]
    assert (found.n, found.N) == (25, 35)
    assert found.effective_n > 25
    assert high - low < found.human_high - found.human_low


def test_intervals_of_exactly_these_queries_are_narrower_in_evaluate_compare_and_on_the_command_line(
    data, tmp_path, capsys
):
    truth, predicted, run = data
    human = {query: truth[query] for query in list(truth)[:25]}
    wide, narrow = (
        sy.evaluate(human, run, ["P@5"], predicted=predicted, these_queries=these) for these in (False, True)
    )
    assert wide["P@5"] == narrow["P@5"]
    (low, high), (inner_low, inner_high) = wide.interval("P@5"), narrow.interval("P@5")
    assert low < inner_low < narrow["P@5"] < inner_high < high
    runs = {"run": run, "other": {query: dict(reversed(docs.items())) for query, docs in run.items()}}
    outer, inner = (
        sy.compare(human, runs, ["P@5"], predicted=predicted, these_queries=these).to_dict() for these in (False, True)
    )
    for one, other in zip(outer["leaderboard"], inner["leaderboard"], strict=True):
        assert one["P@5"] == other["P@5"]
        assert one["intervals"]["P@5"][0] < other["intervals"]["P@5"][0] < other["intervals"]["P@5"][1]
        assert other["intervals"]["P@5"][1] < one["intervals"]["P@5"][1]
    for name, content in (("qrels", human), ("model", predicted), ("run", run)):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    files = [str(tmp_path / f"{name}.json") for name in ("qrels", "run", "model")]
    assert (
        steelyard(["evaluate", *files[:2], "-m", "P@5", "--set", f"predicted={files[2]}", "--set", "these_queries=yes"])
        == 0
    )
    assert f"{inner_low:.4f}" in capsys.readouterr().out
    assert steelyard(["evaluate", *files[:2], "--set", "these_queries=yes"]) == 2
    assert "it needs --set predicted=FILE" in capsys.readouterr().err


def test_the_judge_and_the_sample_are_reported(data):
    truth, predicted, run = data
    human = {query: truth[query] for query in list(truth)[:20]}
    labels = [
        {"query_id": query, "doc_id": doc, "grade": grade, "judge": "gpt"}
        for query, grades in predicted.items()
        for doc, grade in grades.items()
    ]
    scores = sy.evaluate(human, run, ["P@5"], predicted=sy.Judgments(labels))
    codes = {each.code for each in scores.notes}
    assert {"predicted-judgments", "predictions-worth", "not-a-random-sample"} <= codes
    assert "predicted by gpt" in str(scores)
    assert scores.to_dict()["predicted"]["judge"] == "gpt"


def test_a_pool_that_drew_the_queries_needs_no_warning(data):
    truth, predicted, run = data
    drawn = pool({"run": run}, queries=20, seed=1)
    human = {query: truth[query] for query in drawn.settings.sampled_queries}
    scores = sy.evaluate(human, run, ["P@5"], predicted=predicted, pool=drawn)
    assert "not-a-random-sample" not in {each.code for each in scores.notes}


def test_a_pool_of_all_queries_is_not_a_random_sample(data):
    truth, predicted, run = data
    human = {query: truth[query] for query in list(truth)[:20]}
    for given, text in (
        (None, "no pool records that"),
        (pool({"run": run}), "the queries of this pool were not drawn at random"),
        (pool({"run": run}, queries=5), "not all of them are among the queries that this pool drew"),
    ):
        for result in (
            sy.evaluate(human, run, ["P@5"], predicted=predicted, pool=given),
            sy.compare(human, {"a": run, "b": run}, ["P@5"], predicted=predicted, pool=given),
        ):
            (found,) = [each for each in result.notes if each.code == "not-a-random-sample"]
            assert text in str(found)


def test_per_query_has_both_values(data):
    truth, predicted, run = data
    scores = sy.evaluate(
        {"q1": truth["q1"]} | {q: truth[q] for q in list(truth)[:8]}, run, ["P@5"], predicted=predicted
    )
    frame = scores.per_query
    assert frame.columns == ["query_id", "P@5", "P@5 predicted"]
    assert frame.height == 60
    assert frame["P@5"].null_count() == 52
    made = scores.to_dict(per_query=True)
    assert len(made["per_query"]) == 8
    assert len(made["predicted"]["per_query"]) == 60


@pytest.fixture(scope="module")
def runs(data):
    """Three runs, from good to bad."""
    truth, _, _ = data
    random = np.random.default_rng(9)
    return {
        name: {
            query: {doc: float(random.random() + worth * grade) for doc, grade in grades.items()}
            for query, grades in truth.items()
        }
        for name, worth in (("good", 0.8), ("fair", 0.5), ("bad", 0.0))
    }


def test_compare_gives_every_run_the_same_weight_of_the_predictions(data, runs):
    truth, predicted, _ = data
    human = {query: truth[query] for query in list(truth)[:25]}
    measures = ["P@5", "nDCG@10"]
    result = sy.compare(human, runs, measures, predicted=predicted)
    assert [row.run for row in result.leaderboard_rows] == ["good", "fair", "bad"]
    assert f"good leads fair on P@5 by {result.tested_pairs[0].difference:.4f} " in result.verdict
    assert "prediction-powered t test" in result.to_text()
    for key in measures:
        y, f = (
            np.array([[each.values(key)[each.queries.index(q)] for q in truth] for each in scores])
            for scores in (
                [sy.evaluate(truth, run, [key]) for run in runs.values()],
                [sy.evaluate(predicted, run, [key]) for run in runs.values()],
            )
        )
        y[:, 25:] = np.nan
        weight = shared_weight(y, f)
        means = dict(zip(runs, prediction_powered(y, f, (0, 1), weight=weight), strict=True))
        for row in result.leaderboard_rows:
            each = means[row.run]
            assert (row.means[key], row.intervals[key]) == (each.estimate, (each.low, each.high))
        p_values, adjusted = [], []
        for pair in result.tested_pairs:
            if pair.measure == key:
                places = (list(runs).index(pair.run), list(runs).index(pair.baseline))
                level = 1 - 0.05 / 3  # Bonferroni's level, for three pairs
                (found,) = prediction_powered_differences(y, f, [places], level, weight)
                assert pair.difference == pytest.approx(found.estimate, abs=1e-12)
                assert (pair.low, pair.high, pair.p) == (found.low, found.high, found.p)
                assert pair.verdict == ("better" if pair.p_adjusted < 0.05 else "not significant")
                p_values.append(pair.p)
                adjusted.append(pair.p_adjusted)
        assert adjusted == pytest.approx(sy.statistics.adjust(np.array(p_values), "holm"))


def numbers_of(text: str) -> set[str]:
    """The numbers with four digits after the point or more, as they are written."""
    return set(re.findall(r"[-+]?\d\.\d{4,}", text))


@pytest.mark.parametrize("gaps", [False, True])
def test_every_difference_is_that_of_the_means_in_every_format(data, runs, tmp_path, gaps):
    truth, predicted, _ = data
    human = {query: truth[query] for query in list(truth)[:25]}
    runs = {name: dict(run) for name, run in runs.items()}
    if gaps:  # queries that one run lacks are left out of all
        del runs["fair"]["q3"], runs["bad"]["q40"]
    options = {"missing": "skip"} if gaps else {}
    result = sy.compare(human, runs, ["P@5", "RR"], baseline="bad", predicted=predicted, **options)
    means = {row.run: row.means for row in result.leaderboard_rows}
    by_json = json.loads(result.to_json())
    board = {row["run"]: row for row in by_json["leaderboard"]}
    frame = {row["run"]: row for row in result.leaderboard.iter_rows(named=True)}
    csv = {row["run"]: row for row in DictReader(StringIO(result.to_csv()))}
    for pair in [*result.tested_pairs, *result.every_pair]:
        assert pair.difference == pytest.approx(
            means[pair.run][pair.measure] - means[pair.baseline][pair.measure], 0, 1e-12
        )
    for pair in by_json["pairs"]:
        assert pair["difference"] == pytest.approx(
            board[pair["run"]][pair["measure"]] - board[pair["baseline"]][pair["measure"]], rel=0, abs=1e-12
        )
        for values in (frame, csv):
            mine, theirs = (float(values[pair[side]][pair["measure"]]) for side in ("run", "baseline"))
            assert pair["difference"] == pytest.approx(mine - theirs, rel=0, abs=1e-12)
        own = float(csv[pair["run"]][f"{pair['measure']} difference"])
        assert own == pytest.approx(mine - theirs, rel=0, abs=1e-12)
    result.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    for each in (result.to_text(), result.to_markdown(), result.to_latex(), result.to_html(), page):
        text = re.sub("<[^>]+>", " ", re.sub("(?s)<script.*?</script>", "", each))
        for run in ("good", "fair"):
            for key in ("P@5", "RR"):
                difference = f"{means[run][key] - means['bad'][key]:+.4f}"
                assert re.search(rf"\b{run}\W*?{re.escape(difference)}", text), (run, key, difference)
    for text in (result.to_text(), result.to_latex(), result.to_html(), page):
        shown = numbers_of(text)
        for row in result.leaderboard_rows:
            assert f"{row.means['P@5']:.4f}" in shown
        for pair in result.tested_pairs:
            if pair.measure == "P@5":
                assert f"{pair.difference:+.4f}" in shown
    shown = numbers_of(result.to_markdown())
    assert {f"{row.means['P@5']:.6f}".rstrip("0") for row in result.leaderboard_rows} <= shown
    assert {f"{pair.difference:+.4f}" for pair in result.tested_pairs if pair.measure == "P@5"} <= shown


def test_queries_with_predictions_are_not_called_ignored(data, runs):
    truth, predicted, _ = data
    human = {query: truth[query] for query in list(truth)[:25]}
    known = {query: predicted[query] for query in list(truth)[5:55]}
    result = sy.compare(human, runs, ["P@5"], predicted=known)
    counts = {each["count"] for each in result.coverage["good"].all_notes() if "ignored" in str(each)}
    assert counts == {5}  # q55 to q59: neither judged nor predicted; q0 to q4 are reported as left out
    assert sy.compare(human, runs, ["P@5"], predicted=predicted).coverage["good"].without_judgments == 0
    assert "5 human-judged queries have no predicted judgments" in result.to_text()


def test_first_documents_that_people_left_unjudged_make_differences_undecided(data, runs):
    truth, predicted, _ = data
    judged = list(truth)[:25]
    first = {q: sorted(runs["good"][q], key=runs["good"][q].get, reverse=True)[0] for q in judged}
    fewer = {q: {doc: g for doc, g in truth[q].items() if doc != first[q]} for q in judged}  # 1 of the first 5
    result = sy.compare(fewer, runs, ["P@5"], predicted=predicted)
    (found,) = [each for each in result.notes if each.code == "unjudged-by-people"]
    assert (found["run"], found["k"], found.severity) == ("good", 5, "warning")
    assert found["share"] == pytest.approx(0.2)
    assert {pair.verdict for pair in result.tested_pairs if "good" in pair.names} == {"undecided"}
    assert "People left 20% of the first 5 of good unjudged." in result.verdict
    assert "Next: use" not in result.summary()
    scores = sy.evaluate(fewer, runs["good"], ["P@5"], predicted=predicted)
    assert [each["share"] for each in scores.notes if each.code == "unjudged-by-people"] == pytest.approx([0.2])
    some = {q: fewer[q] if place < 12 else truth[q] for place, q in enumerate(judged)}  # 12 of 125: under a tenth
    codes = {each.code for each in sy.compare(some, runs, ["P@5"], predicted=predicted).notes}
    assert "unjudged-by-people" not in codes


def test_compare_reports_the_judge_in_every_output(data, runs, tmp_path):
    truth, predicted, _ = data
    labels = sy.Judgments(
        [
            {"query_id": query, "doc_id": doc, "grade": grade, "judge": "gpt-9"}
            for query, grades in predicted.items()
            for doc, grade in grades.items()
        ]
    )
    human = {query: truth[query] for query in list(truth)[:25]}
    result = sy.compare(human, runs, ["P@5"], predicted=labels)
    outputs = [result.to_text(), result.to_markdown(), result.to_latex(), result.to_csv(), result.to_json()]
    outputs += [result.to_html(), result.to_html(tmp_path / "page.html")]
    assert all("gpt-9" in text for text in outputs)
    assert "gpt-9" in (tmp_path / "page.html").read_text("utf-8")


def test_predictions_decide_what_human_judgments_alone_do_not(data, runs):
    truth, predicted, _ = data
    human = {query: truth[query] for query in list(truth)[:10]}
    alone = sy.compare(human, runs, ["P@5"], baseline="fair").tested_pairs
    both = sy.compare(human, runs, ["P@5"], baseline="fair", predicted=predicted).tested_pairs
    assert sum(pair.high - pair.low for pair in both) < sum(pair.high - pair.low for pair in alone)


def test_differences_in_favour_of_the_run_that_was_judged_are_undecided():
    random = np.random.default_rng(2)
    truth, runs = {}, {"judged": {}, "other": {}}
    for number in range(60):
        docs = [f"{number}-{place}" for place in range(30)]
        truth[f"q{number}"] = {doc: int(random.random() < 0.5) for doc in docs}
        runs["judged"][f"q{number}"], runs["other"][f"q{number}"] = docs, docs[::-1]
    human = {query: {doc: truth[query][doc] for doc in runs["judged"][query][:10]} for query in list(truth)[:30]}
    predicted = {query: {doc: grades[doc] for doc in runs["judged"][query][:10]} for query, grades in truth.items()}
    result = sy.compare(human, runs, ["P@10"], predicted=predicted)
    (pair,) = result.tested_pairs
    assert pair.p < 0.001
    assert (pair.verdict, pair.stars) == ("undecided", "")
    assert "qrels-made-from-run" in {each.code for each in result.notes}


def test_what_cannot_be_estimated_is_refused(data, runs):
    truth, predicted, _ = data
    human = {query: truth[query] for query in list(truth)[:25]}
    with pytest.raises(sy.SteelyardError, match="not a mean over queries"):
        sy.compare(human, runs, ["GMAP"], predicted=predicted)
    with pytest.raises(sy.SteelyardError, match="has its own test"):
        sy.compare(human, runs, ["P@5"], predicted=predicted, test="wilcoxon")
    with pytest.raises(sy.InputError, match="without qrels"):
        sy.compare(None, runs, predicted=predicted)
    with pytest.raises(sy.InputError, match="bad, fair and good cannot be measured with both"):
        sy.compare(human, runs, ["P@5"], predicted={"other": {"d": 1}})


def test_useless_predictions_leave_the_human_estimate(data):
    truth, _, run = data
    random = np.random.default_rng(0)
    useless = {query: {doc: int(random.integers(0, 2)) for doc in grades} for query, grades in truth.items()}
    human = {query: truth[query] for query in list(truth)[:25]}
    scores = sy.evaluate(human, run, ["RR"], predicted=useless)
    alone = sy.evaluate(human, run, ["RR"])["RR"]
    assert scores["RR"] == pytest.approx(alone, abs=0.03)


def test_predictions_for_other_queries_only_are_refused(data):
    truth, predicted, run = data
    with pytest.raises(sy.InputError, match="no human-judged query has predicted judgments"):
        sy.evaluate({"q0": truth["q0"]}, run, ["P@5"], predicted={q: predicted[q] for q in list(predicted)[5:]})


def test_the_command_line_reports_estimates_and_both_values(data, tmp_path, capsys):
    truth, predicted, run = data
    drawn = pool({"run": run}, queries=20, seed=1)
    human = {query: truth[query] for query in drawn.settings.sampled_queries}
    paths = {name: tmp_path / name for name in ("human.trec", "model.jsonl", "pool.jsonl", "a.run")}
    sy.Qrels(human).write(paths["human.trec"])
    sy.Run(run, name="a").write(paths["a.run"])
    sy.Run(run, name="b").write(tmp_path / "b.run")
    drawn.write(paths["pool.jsonl"])
    labels = [
        {"query_id": query, "doc_id": doc, "grade": grade, "judge": "gpt"}
        for query, grades in predicted.items()
        for doc, grade in grades.items()
    ]
    paths["model.jsonl"].write_text("".join(f"{json.dumps(each)}\n" for each in labels))
    command = ["evaluate", str(paths["human.trec"]), str(paths["a.run"]), "-m", "P@5"]
    options = ["--set", f"predicted={paths['model.jsonl']}", "--set", f"pool={paths['pool.jsonl']}"]
    assert steelyard([*command, *options]) == 0
    printed = capsys.readouterr()
    scores = sy.evaluate(human, run, ["P@5"], predicted=predicted)
    assert f"{scores['P@5']:.4f}" in printed.out
    assert "predicted by gpt" in printed.err
    assert "drawn at random" not in printed.err
    assert steelyard([*command, *options, "--per-query"]) == 0
    assert capsys.readouterr().out.split()[:5] == ["run", "query_id", "P@5", "P@5", "predicted"]
    compared = ["compare", *command[1:3], str(tmp_path / "b.run"), "-m", "P@5", *options]
    assert steelyard(compared) == 0
    assert "predicted by gpt" in capsys.readouterr().err
    assert steelyard([*command, "--set", f"pool={paths['pool.jsonl']}"]) == 2
    assert "--set predicted=FILE" in capsys.readouterr().err


def test_predictions_are_read_on_the_scale_of_the_people():
    random = np.random.default_rng(0)
    docs = [f"d{i}" for i in range(10)]
    grades = {f"q{i}": {doc: int(random.integers(0, 4)) for doc in docs} for i in range(60)}
    human = sy.Qrels({query: grades[query] for query in list(grades)[:15]})
    human.relevant_from = 2.0
    noise = {query: {doc: int(random.choice([-1, 0, 0, 1])) for doc in docs} for query in grades}
    predicted = {
        query: {doc: min(max(grade + noise[query][doc], 0), 3) for doc, grade in of.items()}
        for query, of in grades.items()
    }
    run = {query: random.permutation(docs).tolist() for query in grades}
    scores = sy.evaluate(human, run, ["P@3"], predicted=predicted)
    (row,) = sy.compare(human, {"run": run}, ["P@3"], predicted=predicted).leaderboard_rows
    assert row.means["P@3"] == pytest.approx(scores.means["P@3"])
    assert row.intervals["P@3"] == pytest.approx(scores.interval("P@3"))
