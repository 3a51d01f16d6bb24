"""Check that an installed Steelyard works: its Python functions and its command line, on an example of two queries.

    python smoke.py [--kernel required|absent]

Needs nothing but the package itself. Exits with 0 if everything works and with 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

import steelyard as sy
from steelyard.native import native_available

QRELS = "q1 0 d1 2\nq1 0 d2 1\nq2 0 d3 1\nq2 0 d4 0\n"
RUNS = {
    "good.run": "q1 Q0 d1 1 3.0 good\nq1 Q0 d2 2 2.0 good\nq2 Q0 d3 1 1.0 good\n",
    "poor.run": "q1 Q0 d2 1 3.0 poor\nq1 Q0 d9 2 2.0 poor\nq2 Q0 d4 1 2.0 poor\nq2 Q0 d3 2 1.0 poor\n",
}
GOOD = 1.0
POOR = (1 / (2 + 1 / math.log2(3)) + 1 / math.log2(3)) / 2
"""nDCG@10 of the two runs, by hand."""


def check(what: str, holds: bool, detail: object = "") -> None:
    """Print what was checked; stop at the first failure."""
    print(f"{'ok  ' if holds else 'FAIL'}  {what}", detail if not holds else "")
    if not holds:
        sys.exit(1)


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line, in a process of its own."""
    program = [sys.executable, "-m", "steelyard", *arguments]
    return subprocess.run(program, cwd=folder, capture_output=True, text=True, encoding="utf-8", check=False)


def check_python(folder: Path) -> None:
    """evaluate and compare, called from Python."""
    scores = sy.evaluate(folder / "qrels.trec", folder / "poor.run", ["nDCG@10"])
    check("evaluate: nDCG@10", math.isclose(scores["nDCG@10"], POOR, abs_tol=1e-12), scores.means)
    runs = {name: folder / name for name in RUNS}
    result = sy.compare(folder / "qrels.trec", runs, ["nDCG@10"], baseline="poor.run")
    check("compare: leaderboard", result.leaderboard["run"].to_list() == list(RUNS), result.leaderboard)


def check_command_line(folder: Path) -> None:
    """The exit codes and the output of the command line."""
    version = command(folder, "--version")
    check("steelyard --version", version.returncode == 0 and sy.__version__ in version.stdout, version)
    files = ("qrels.trec", *RUNS)
    measure = ("-m", "nDCG@10", "--format", "json")
    done = command(folder, "evaluate", *files, *measure)
    check("steelyard evaluate: exit code 0", done.returncode == 0, done)
    means = [run["means"]["nDCG@10"] for run in json.loads(done.stdout)["runs"]]
    numbers = zip(means, (GOOD, POOR), strict=True)
    check("steelyard evaluate: nDCG@10", all(math.isclose(a, b, abs_tol=1e-12) for a, b in numbers), means)
    done = command(folder, "compare", *files, *measure)
    check("steelyard compare: exit code 0", done.returncode == 0, done)
    first = json.loads(done.stdout)["leaderboard"][0]
    check("steelyard compare: best run first", first["run"] == "good" and first["nDCG@10"] == GOOD, first)
    done = command(folder, "evaluate", "no-such-file", "good.run", "-m", "nDCG@10")
    check("a missing file: exit code 2, no traceback", done.returncode == 2 and "Trace" not in done.stderr, done)
    done = command(folder, "evaluate", *files, "-m", "nDGC@10")
    check("an unknown measure: exit code 2, with a hint", done.returncode == 2 and "nDCG" in done.stderr, done)


def main() -> None:
    """Run all checks."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kernel", choices=("required", "absent"), help="whether the native kernel must be there")
    kernel = parser.parse_args().kernel
    print(f"Steelyard {sy.__version__}, {Path(sy.__file__).parent}")
    print(f"native kernel: {'yes' if native_available() else 'no'}")
    check("the kernel is there, or not, as expected", kernel in (None, "required" if native_available() else "absent"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in {"qrels.trec": QRELS, **RUNS}.items():
            (folder / file).write_text(text, "utf-8")
        check_python(folder)
        check_command_line(folder)


if __name__ == "__main__":
    main()
