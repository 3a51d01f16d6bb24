"""The provenance of a result: policies, levels, measures spelled out, inputs and versions."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

import steelyard as sy
from steelyard import scores
from steelyard.cli import run as cli
from steelyard.errors import PolicyError

QRELS = "q1 0 a 2\nq1 0 b 1\nq2 0 c 2\n"
RUN = "q1 Q0 a 1 3 one\nq1 Q0 u 2 2 one\nq2 Q0 c 1 1 one\n"
ARGUMENTS = [
    *("-m", "AP", "-m", "nDCG@10", "--set", "rel=2", "--set", "depth=5", "--ties", "docid-asc", "--missing", "skip"),
    *("--set", "no_relevant=skip", "--set", "duplicates=collapse", "--set", "unjudged=remove"),
]
POLICIES = {
    "missing": "skip", "no_relevant": "skip", "ties": "docid-asc", "duplicates": "collapse", "single": False,
    "unjudged": "remove", "rel": 2, "depth": 5,
}  # fmt: skip
SETTINGS = "missing=skip, no_relevant=skip, ties=docid-asc, duplicates=collapse, unjudged=remove, rel=2, depth=5"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "qrels.trec").write_text(QRELS)
    for name in ("one", "two"):
        (tmp_path / f"{name}.run").write_text(RUN.replace("one", name))
    return [str(tmp_path / name) for name in ("qrels.trec", "one.run", "two.run")]


def test_json_of_evaluate_has_everything_to_reproduce_the_number(files, capsys):
    assert cli(["evaluate", *files[:2], *ARGUMENTS, "--format", "json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["policies"] == POLICIES
    assert made["measures"]["AP"] == "AP(rel=2, denominator=relevant, per=document)"
    assert made["versions"]["numpy"] == np.__version__
    sizes = {"judgments": {"file": "qrels.trec", "bytes": len(QRELS)}, "run": {"file": "one.run", "bytes": len(RUN)}}
    assert made["runs"][0]["inputs"] == sizes
    again = {name: value for name, value in made["policies"].items() if name != "single"}
    scores = sy.evaluate(files[0], files[1], list(made["measures"]), **again)
    assert scores.means == made["runs"][0]["means"]
    assert scores.fingerprint == made["runs"][0]["fingerprint"]
    assert (scores.policies, scores.to_dict()["policies"]) == (POLICIES, POLICIES)


def test_the_other_formats_show_options_that_are_not_the_default(files, capsys):
    for format in ("table", "markdown", "latex"):
        assert cli(["evaluate", *files, *ARGUMENTS, "--format", format]) == 0
        out = capsys.readouterr().out
        assert f"Measured with {SETTINGS}.".replace("_", r"\_" if format == "latex" else "_") in out
        assert "AP(rel=2)" in out
    assert cli(["evaluate", *files[:2], *ARGUMENTS, "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["measure"], row["settings"]) for row in rows] == [("AP(rel=2)", SETTINGS), ("nDCG@10", SETTINGS)]
    assert SETTINGS in repr(sy.evaluate(*files[:2], "AP", **{k: v for k, v in POLICIES.items() if k != "single"}))


def test_no_settings_are_shown_where_all_are_defaults(files, capsys):
    for format in ("table", "markdown", "latex", "csv"):
        assert cli(["evaluate", *files[:2], "-m", "AP", "--format", format]) == 0
        out = capsys.readouterr().out
        assert "Measured with" not in out
        assert "settings" not in out


def test_json_of_compare_has_the_same(files, capsys):
    assert cli(["compare", *files, *ARGUMENTS, "--set", "alpha=0.01", "--format", "json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["policies"], made["alpha"], made["permutations"]) == (POLICIES, 0.01, None)
    assert made["measures"]["AP"].startswith("AP(rel=2,")
    judged = {"fingerprint": sy.Qrels.read(files[0]).fingerprint}
    assert made["inputs"]["judgments"] == judged
    assert set(made["inputs"]["runs"]) == {"one", "two"}
    chosen = {name: value for name, value in POLICIES.items() if name != "single"}
    held = sy.Run.read(files[1])
    result = sy.compare(files[0], {"file": files[1], "held": held}, ["AP"], **chosen)
    assert f"Measured with {SETTINGS}." in result.to_text()
    assert result.to_dict()["inputs"]["runs"] == {
        "file": {"file": "one.run", "bytes": len(RUN)},
        "held": {"fingerprint": held.fingerprint},
    }


def test_inputs_in_memory_have_a_fingerprint_unless_it_is_expensive(monkeypatch):
    qrels, run = sy.Qrels({"q": ["a"]}), sy.Run({"q": ["a", "b"]})
    known = {"judgments": {"fingerprint": qrels.fingerprint}, "run": {"fingerprint": run.fingerprint}}
    assert sy.evaluate(qrels, run, "AP").to_dict()["inputs"] == known
    assert sy.evaluate(qrels, {"q": ["a", "b"]}, "AP").to_dict()["inputs"] == {"judgments": known["judgments"]}
    monkeypatch.setattr(scores, "MOST_HASHED", 1)
    large = sy.Run({"q": ["a", "b"]})
    assert sy.evaluate(qrels, large, "AP").to_dict()["inputs"] == {"judgments": known["judgments"]}


def test_a_correction_without_effect_is_refused(files, capsys):
    with pytest.raises(PolicyError, match="tukey test corrects for all its pairs itself"):
        sy.compare(files[0], {"x": files[1], "y": files[2]}, ["AP"], test="tukey", correction="bonferroni")
    assert cli(["compare", *files, "-m", "AP", "--test", "max-t", "--correction", "bh"]) == 2
    assert "max-t test corrects" in capsys.readouterr().err
    made = sy.compare(files[0], {"x": files[1], "y": files[2]}, ["AP"], test="tukey").to_dict()
    assert (made["test"], made["correction"]) == ("tukey", "tukey")


def test_a_fused_run_has_no_table_format(files, capsys):
    assert cli(["fuse", *files[1:], "--format", "json"]) == 2
    assert "-o fused.json" in capsys.readouterr().err


def test_the_name_of_an_output_file_chooses_the_format(files, tmp_path, capsys):
    """-o x.json is JSON and -o x.csv a whole table, whichever verb writes it."""
    for arguments in (["validate", files[0]], ["explain", "AP"], ["list", "measures"], ["list", "dialects"],
                      ["list", "retrievers", "random"], ["list", "formats", "beir"],
                      ["reconcile", files[0], files[1], "-m", "AP", "--dialects", "ranx,autorag"]):  # fmt: skip
        target = tmp_path / "explained.json"
        assert cli([*arguments, "-o", str(target)]) == 0
        assert json.loads(target.read_text())
    assert cli(["list", "measures", "-o", str(tmp_path / "all.csv")]) == 0
    assert (tmp_path / "all.csv").read_text().startswith("measure,what,parameters,aliases,source")
    capsys.readouterr()


@pytest.mark.parametrize("verb", ["evaluate", "compare", "validate"])
def test_the_name_of_an_output_file_without_a_known_format_is_an_error(files, tmp_path, capsys, verb):
    target = tmp_path / "out.xyz"
    assert cli([verb, *files, "-o", str(target)]) == 2
    assert "unknown suffix '.xyz'; expected one of .json, .csv," in capsys.readouterr().err
    assert not target.exists()
    assert cli([verb, *files, "--format", "json", "-o", str(target)]) == 0
    assert json.loads(target.read_text())
    for text in ("out.txt", "out"):
        assert cli([verb, *files, "-o", str(tmp_path / text)]) == 0


def test_a_first_baseline_has_no_table_to_print(files, tmp_path, capsys):
    scores = str(tmp_path / "scores.json")
    assert cli(["evaluate", *files[:2], "-m", "AP", "--per-query", "-o", scores]) == 0
    kept = ["gate", scores, "--save-baseline", str(tmp_path / "base.json")]
    assert cli([*kept, "--format", "json"]) == 2
    assert "no table for --format" in capsys.readouterr().err
    assert cli(kept) == 0


def test_the_page_shows_level_and_depth(files, tmp_path):
    sy.compare(files[0], {"x": files[1]}, ["AP"], rel=2, depth=7).to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "rel=2" in page
    assert "depth=7" in page
