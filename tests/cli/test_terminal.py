"""What a terminal shows: every verb at 80 and 120 columns, no line too wide and none too many."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest

import steelyard as sy
from clocks import with_fixed_latencies
from steelyard.notes import note
from steelyard.report.page.page import missing_extra
from steelyard.report.summary import cut, shortened_name, summary, warning_lines

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")

DEMO = files("steelyard.demo")
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def captured(arguments: list[str], width: int, folder: Path, colour: bool = False) -> tuple[list[str], int]:
    """The lines that a verb leaves on a terminal of this width, and its exit code."""
    text, code = typed(with_fixed_latencies(*arguments), width, folder, colour)
    return screen(text), code


def typed(command: list[str], width: int, folder: Path, colour: bool = False) -> tuple[str, int]:
    """What a command writes to a terminal of this width, and its exit code."""
    import pty

    outer, inner = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(width), "TERM": "xterm"}
    environment.pop("NO_COLOR", None)
    if not colour:
        environment["NO_COLOR"] = "1"
    process = subprocess.Popen(command, stdout=inner, stderr=inner, env=environment, cwd=folder)
    os.close(inner)
    parts = []
    while True:
        try:
            part = os.read(outer, 65536)
        except OSError:
            break
        if not part:
            break
        parts.append(part)
    os.close(outer)
    return b"".join(parts).decode(), process.wait()


def screen(text: str) -> list[str]:
    """The lines that are left after a progress bar has removed itself."""
    lines: list[str] = []
    row = 0
    for token in re.findall(r"\x1b\[\d*[A-Za-z]|\x1b\[\?\d+[hl]|\x1b\[[0-9;]*m|\r\n|\r|\n|[^\x1b\r\n]+", text):
        while len(lines) <= row:
            lines.append("")
        if token == "\r\n" or token == "\n":
            row += 1
        elif token == "\r":
            pass
        elif re.fullmatch(r"\x1b\[\d*A", token):
            row = max(0, row - int(token[2:-1] or 1))
        elif re.fullmatch(r"\x1b\[2K", token):
            lines[row] = ""
        elif COLOURS.fullmatch(token) or not token.startswith("\x1b"):
            lines[row] += token
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the demo's result and its qrels."""
    made = tmp_path_factory.mktemp("terminal")
    lines, code = captured(["demo"], 80, made)
    assert code == 0, lines
    (made / "first.txt").write_text("\n".join(lines), "utf-8")
    (made / "bench.yaml").write_text("dataset: demo\nretrievers: [bm25-okapi, dense]\nmeasures: [nDCG@10]\n")
    (made / "qrels.tsv").write_text((DEMO / "data" / "qrels.tsv").read_text("utf-8"), "utf-8")
    return made


def runs(*names: str) -> list[str]:
    return [f"steelyard-demo/runs/{name}.parquet" for name in names]


ALL = ("bm25-l", "bm25-okapi", "bm25-plus", "dense", "graph-flow", "hybrid", "random", "swarm-rerank")
COMMANDS = {
    "demo": (["demo"], 30),
    "compare": (["compare", "qrels.tsv", *runs(*ALL), "-m", "nDCG@10", "-m", "AP", "-m", "RR@10"], 20),
    "compare-baseline": (["compare", "qrels.tsv", *runs(*ALL), "--baseline", "bm25-okapi"], 20),
    "compare-two": (["compare", "qrels.tsv", *runs("dense", "hybrid")], 12),
    "compare-all": (["compare", "qrels.tsv", *runs("dense", "hybrid", "random"), "--all"], 40),
    "evaluate": (["evaluate", "qrels.tsv", *runs("dense")], 16),
    "evaluate-many": (["evaluate", "qrels.tsv", *runs(*ALL), "-m", "nDCG@10", "-m", "AP"], 20),
    "gate-fails": (["gate", "steelyard-demo", "--rule", "nDCG@10 >= 0.40"], 14),
    "gate-passes": (["gate", "steelyard-demo", "--rule", "nDCG@10 >= 0.40", "--run", "dense"], 3),
    "validate": (["validate", "qrels.tsv", *runs("dense")], 14),
    "reconcile": (
        ["reconcile", "qrels.tsv", *runs("dense"), "-m", "MAP@5", "--dialects", "trec_eval-9,multihop-rag"],
        20,
    ),
    "reconcile-value": (["reconcile", "qrels.tsv", *runs("dense"), "--value", "0.7337"], 60),
    "explain": (["explain", "nDCG@10"], 60),
    "no-qrels": (["compare", "--no-qrels", *runs("dense", "hybrid")], 20),
    "error": (["compare", "qrels.tsv", "nothing.run"], 4),
    "bench": (["bench", "bench.yaml"], 20),
    "across": (["across", "demo=steelyard-demo", "again=steelyard-demo"], 22),
    "fuse": (["fuse", *runs("dense", "hybrid"), "-o", "fused.run"], 6),
    "convert": (["convert", *runs("dense"), "dense.run"], 6),
    "pool": (["pool", *runs("dense", "hybrid"), "-o", "pool.jsonl"], 8),
    "report": (["report", "steelyard-demo", "-o", "page.html"], 2),
    "measures": (["list", "measures"], 250),
    "dialects": (["list", "dialects"], 80),
    "retrievers": (["list", "retrievers"], 80),
    "init": (["init", "new"], 2),
}
LATER = {"demo", "across", "reconcile-value", "compare-all", "compare-notes", "compare-baseline"}
LATER |= {"fuse", "convert", "pool", "report", "measures", "dialects", "retrievers", "init"}
LATER |= {"bench", "evaluate-many", "gate-passes", "no-qrels", "reconcile", "validate"}
"""Commands whose captures are slow tests, at both widths."""


@pytest.mark.parametrize("width", [80, pytest.param(120, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LATER)) for name in COMMANDS])
def test_every_output_fits_the_terminal(folder: Path, name: str, width: int) -> None:
    arguments, most = COMMANDS[name]
    if name == "init":
        arguments = ["init", f"new-{width}"]
    lines, code = captured(arguments, width, folder)
    assert code == {"gate-fails": 1, "error": 2}.get(name, 0), lines
    assert lines
    assert [line for line in lines if len(line) > width] == []
    assert len(lines) <= most, "\n".join(lines)
    assert not any("\x1b" in line for line in lines), "NO_COLOR"


def test_the_first_demo_says_what_was_found_in_thirty_lines(folder: Path) -> None:
    lines = (folder / "first.txt").read_text("utf-8").splitlines()
    assert len(lines) <= 30
    assert max(map(len, lines)) <= 80
    assert "leads" in lines[0]
    assert "not significant (115 queries; 14,000 needed)" in lines[0]
    assert lines[1] == "Not significantly below the leader: dense, graph-flow, hybrid"
    assert lines[3].split()[:3] == ["#", "run", "composite"]
    assert "! 8 queries have no relevant document and score 0" in lines
    assert any(line.startswith("Next: consider dense: tied with swarm-rerank and ") for line in lines)
    if missing_extra() is None:
        assert lines[-1] == "Report: steelyard-demo/report.html    More: --all"
    assert lines[-1].endswith("    More: --all")


def test_colours_of_verdicts_and_warnings(folder: Path) -> None:
    arguments = ["compare", "qrels.tsv", *runs("dense", "random")]
    lines, _ = captured(arguments, 80, folder, colour=True)
    assert lines[0].startswith("\x1b[1;32m"), "a significant difference is green"
    assert any(line.startswith("\x1b[33m! ") for line in lines)
    lines, _ = captured(["compare", "qrels.tsv", *runs("dense", "graph-flow")], 80, folder, colour=True)
    assert lines[0].startswith("\x1b[33m")


# The summary


@cache
def of_runs(runs: int, name: str) -> sy.Comparison:
    return compared(runs, ["RR@10", "nDCG@10", "AP"], name)


def compared(runs: int, measures: list[str], name: str = "run-{}", **options: object) -> sy.Comparison:
    queries = [f"q{n}" for n in range(30)]
    qrels = {query: {"d0": 1} for query in queries}
    made = {
        name.format(number): {
            query: [f"x{n}" for n in range((number + place) % 7)] + ["d0"] for place, query in enumerate(queries)
        }
        for number in range(runs)
    }
    return sy.compare(qrels, made, measures, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("runs", [1, 2, 8, 25])
@pytest.mark.parametrize("name", ["r{}", "a-retriever-with-a-very-long-name-and-settings-k1-0.9-b-0.4-{}-stemmed"])
def test_the_summary_fits(runs: int, name: str, width: int) -> None:
    result = of_runs(runs, name)
    short = summary(result, width)
    from steelyard.report.tables import plain

    lines = [*short.verdict, *plain(short.table).splitlines(), *short.left_out]
    lines += [*short.warnings, *short.next_steps]
    assert [line for line in result.summary(width).splitlines() if line] == lines
    assert max(map(len, lines)) <= width
    assert 1 <= len(short.verdict) <= 2
    assert all(short.verdict)
    assert len(short.table.rows) == min(runs, 20)
    assert (f"{runs - 20} more runs: --all" in short.left_out) == (runs > 20)


def test_the_verdict_on_runs_that_are_all_equal_fits() -> None:
    same = {"q1": ["d0"], "q2": ["x", "d0"]}
    runs = {f"a-retriever-with-a-long-name-{number}": same for number in range(4)}
    short = summary(sy.compare({"q1": ["d0"], "q2": ["d0"]}, runs, ["RR"]), 80)
    assert short.verdict[0] == "4 runs all score 0.7500 on RR: no difference on any query."


def test_the_progress_of_a_step_with_a_long_name_is_one_line(tmp_path: Path) -> None:
    step = "running " + ", ".join(f"a-retriever-with-a-long-name-{number}" for number in range(4))
    code = f"from steelyard.cli.output import progress_bar\nwith progress_bar() as p:\n  p({step!r}, 1, 3000)"
    shown, _ = typed([sys.executable, "-c", code], 80, tmp_path)
    lines = [COLOURS.sub("", line).strip() for line in re.split(r"[\r\n]|\x1b\[\??\d*[A-Zhl]", shown)]
    assert [line for line in lines if line and not line.endswith("s so far")] == []
    assert any(re.fullmatch(r"running a-retr.*… +1 of 3,000, \d+ s so far", line) for line in lines)


def test_errors_are_wrapped_between_words(tmp_path: Path) -> None:
    lines, code = captured(["compare", "qrels.tsv", "a.run", "--set", "nothing=1"], 80, tmp_path)
    assert code == 2
    assert max(map(len, lines)) <= 80
    assert " ".join(line.strip() for line in lines).endswith("`steelyard compare --help-all` lists the settings.")


def test_a_baseline_far_down_is_shown() -> None:
    last = of_runs(25, "r{}").leaderboard_rows[-1].run
    short = summary(compared(25, ["RR@10"], "r{}", baseline=last), 80)
    assert short.table.rows[-1][1] == last


def test_a_measure_that_is_equal_for_all_runs_has_no_column() -> None:
    short = summary(compared(3, ["RR@10", "R@20", "P@20"]), 80)
    assert list(short.table.columns)[:3] == ["#", "run", "RR@10"]
    assert "Equal for all runs: R@20 1.0000, P@20 0.0500" in short.left_out


def test_differences_have_the_sign_of_the_row() -> None:
    result = compared(3, ["RR@10"])
    short = summary(result, 80)
    best, *others = short.table.rows
    assert best[3] == ""
    assert all(str(row[3]).startswith("-") for row in others)
    assert short.table.columns[3] == f"vs {best[1]}"


def test_of_many_warnings_the_most_serious_are_shown() -> None:
    notes = [("", note("missing-queries", count=n + 1, policy="zero")) for n in range(5)]
    lines = warning_lines([("bm25", note("run-not-measured", run="bm25", reason="x")), *notes], 80)
    assert lines == [
        "! bm25: bm25 was not measured: x",
        "! 1 query is missing from the run and scores 0",
        "! 4 more warnings: --all",
    ]


def test_names_and_lines_are_cut() -> None:
    assert shortened_name("abcdefghijkl", 7) == "abc…jkl"
    assert cut("one two three four", 12) == "one two ..."
    assert cut("one two", 12) == "one two"
