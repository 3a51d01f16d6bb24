"""Options: how a verb declares its arguments and options, those that several verbs share, and how they are read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from steelyard.cli.output import Format, print_message, with_progress
from steelyard.errors import FixedColumnsError, SteelyardError
from steelyard.io.files import STANDARD_INPUT, distinct_names, same_names
from steelyard.options import help_text
from steelyard.run import Run


class UsageError(SteelyardError):
    """A wrong command line."""


class Option(NamedTuple):
    """A parameter with a name: `--name`, unless `names` has others.

    setting: it is given as `--set name=VALUE`. expert: `--help-all` shows it, and `--help` does not. alone: its value
    if it is given without one. commas: several values may be separated by commas; files: several may follow the name,
    as a shell gives for *.run.
    """

    help: str
    metavar: str | None = None
    names: tuple[str, ...] = ()
    setting: bool = False
    expert: bool = False
    alone: str | None = None
    commas: bool = False
    files: bool = False
    positional: bool = False


def Argument(metavar: str, help: str) -> Option:
    """A positional parameter."""
    return Option(help, metavar, positional=True)


Setting = partial(Option, setting=True)
"""What few commands need: `--set name=VALUE` with the name that it has in Python; `--help-all` lists it."""


# Options that several verbs share

TEST = Option("t, wilcoxon, sign, permutation or bootstrap; in compare also tukey and max-t.", "TEST")
CORRECTION = Option("Of several tests: none, bonferroni, holm or bh.", "NAME")
Alpha = Annotated[float, Setting("Significance level.", "P")]
Permutations = Annotated[
    int | None,
    Setting("Number of random draws of the test; default: 100,000 permutations, 10,000 for the other tests."),
]
Seed = Annotated[int, Setting("Seed of random draws.")]
Kind = Annotated[str | None, Setting("run or qrels, if the content may be either.", "KIND")]
Measures = Annotated[list[str] | None, Option("A measure, as in nDCG@10. Repeat for more.", "MEASURE")]
DialectName = Annotated[str, Option("Whose definitions to use: `steelyard list dialects` lists them.")]
OUTPUT = Option("Write to this file; its suffix is the format: .html .md .tex .csv .json .parquet .txt.", "FILE")
Output = Annotated[Path | None, OUTPUT]
Texts = Annotated[
    str | None,
    Setting(
        "Dataset with the texts of queries and documents, as in bench.yaml: a folder, or '{path: DIR, qrels: FILE}'.",
        "DIR",
    ),
]
QueryColumns = Annotated[Path | None, Setting("Columns of the queries: JSONL, CSV, TSV or Parquet.")]
By = Annotated[
    str | None,
    Option(
        "Slices: by a column of queries.jsonl next to QRELS (--set queries=FILE: of another file), or complexity.",
        "COLUMN",
    ),
]
Predicted = Annotated[
    Path | None,
    Setting(
        "Judgments predicted by a model, for the queries of QRELS and for others: means and differences are "
        "then prediction-powered estimates."
    ),
]
SampledPool = Annotated[
    Path | None, Setting("predicted: the pool whose queries were drawn at random and judged as QRELS.")
]
TheseQueries = Annotated[
    bool, Setting("predicted: intervals of the mean over exactly these queries, not over all queries like them.")
]
Rel = Annotated[float | None, Setting(help_text("rel"), "GRADE")]
Depth = Annotated[int | None, Setting(help_text("depth"))]
RESULT_FOLDER = Option("The result folder.", "DIR")
Strict = Annotated[bool, Option("Exit with code 1 for what is otherwise a warning.")]
ShowAll = Annotated[bool, Option("Show every table, every row and every note.", names=("--all",))]
TableFormat = Annotated[Format, Option("table, json, csv, markdown or latex.", "FORMAT")]
COLUMNS = Setting(
    "Names of columns, if they are not the usual ones: query_id, doc_id; score, rank or seconds of a run; grade or "
    "target of qrels. If both are read, `qrels.` is before those of the qrels, as in doc_id=passage,qrels.grade=label.",
    "ROLE=NAME,...",
)
Columns = Annotated[list[str] | None, COLUMNS]
Movers = Annotated[int, Setting("Show this many queries with the largest differences.")]

# Options of a model at an endpoint

ApiKeyEnv = Annotated[str, Option("The environment variable with the API key.")]
Cache = Annotated[Path, Setting("Every answer of the model; nothing is asked twice.")]
MaxRequests = Annotated[int | None, Option("Stop before more requests.")]
MaxTokens = Annotated[int | None, Option("Stop before more tokens.")]
Concurrency = Annotated[int, Setting("Requests at a time.")]
Retry = Annotated[bool, Option("Ask again for what the model answered wrongly.")]
Timeout = Annotated[float, Setting("Seconds that a request may take.", "S")]
Plan = Annotated[bool, Option("Print what it would take, and ask nothing.")]

SHARED = {
    "missing": Annotated[str | None, Option(help_text("missing"), "POLICY")],
    "ties": Annotated[str | None, Option(help_text("ties"), "POLICY")],
    **{
        name: Annotated[str | None, Setting(help_text(name), "POLICY")]
        for name in ("no_relevant", "duplicates", "unjudged")
    },
    "rel": Rel,
    "depth": Depth,
}
"""The options that evaluate and compare share, from steelyard.options."""


class RunFile:
    """A run on the command line: FILE, NAME=FILE, or - for standard input. A path that exists as written is a path.

    >>> run = RunFile("dense=runs/dense.trec")
    >>> run.name, run.path.name
    ('dense', 'dense.trec')
    """

    def __init__(self, text: str) -> None:
        name, equals, path = text.partition("=")
        named = bool(name and equals and path) and not Path(text).exists()
        self.text = text
        self.name = name if named else None
        self.path = input_path(path if named else text)


def run_names(own: Sequence[str], runs: Sequence[RunFile]) -> list[str]:
    """Distinct names of runs: those of NAME=FILE, and of the others as `distinct_names` chooses from their own."""
    unnamed = [place for place, run in enumerate(runs) if run.name is None]
    chosen = distinct_names([own[place] for place in unnamed], [runs[place].path for place in unnamed])
    others = dict(zip(unnamed, chosen, strict=True))
    names = [run.name or others[place] for place, run in enumerate(runs)]
    if twice := [name for name in names if names.count(name) > 1]:
        raise same_names(twice[0])
    return names


def read_run(path: Path, columns: dict[str, str], runs: int) -> Run:
    """A run with named columns. A file of several whose format has fixed columns, as TREC, is read without them."""
    try:
        return Run.read(path, **columns)
    except FixedColumnsError as error:
        if runs == 1:
            raise
        print_message(f"{error} The columns are used for the other runs.")
        return Run.read(path)


def read_runs(runs: Sequence[RunFile], columns: dict[str, str]) -> dict[str, Run]:
    """The runs by their distinct names."""
    read = [read_run(run.path, columns, len(runs)) for run in with_progress(runs, lambda run: run.path.name)]
    return dict(zip(run_names([run.name for run in read], runs), read, strict=True))


def read_predicted(predicted: Path | None, pool: Path | None, these_queries: bool) -> dict[str, Any]:
    """The arguments of evaluate and compare for predicted judgments; judgments with the names of their judges."""
    if predicted is None:
        if pool is not None:
            raise UsageError("pool records which queries were drawn at random; it needs --set predicted=FILE.")
        if these_queries:
            raise UsageError(
                "these_queries is about intervals with predicted judgments; it needs --set predicted=FILE."
            )
        return {}
    from steelyard.io.judgments import is_judgments_file
    from steelyard.judging.pool import Pool
    from steelyard.judgments import Judgments

    labels = Judgments.read(predicted) if is_judgments_file(predicted) else predicted
    return {"predicted": labels, "pool": None if pool is None else Pool.read(pool), "these_queries": these_queries}


def input_path(text: str | Path, dash: Path = STANDARD_INPUT) -> Path:
    """The path of a file; a dash is standard input, or `dash`."""
    return dash if str(text) == "-" else Path(text)


def column_names(values: list[str] | None) -> tuple[dict[str, str], dict[str, str]]:
    """The column of each role: of the runs (or of a table), and of the qrels.

    A comma that is not followed by `ROLE=` is part of a name.

    >>> column_names(["query_id=q,doc_id=title, short", "score=sim", "qrels.grade=label"])
    ({'query_id': 'q', 'doc_id': 'title, short', 'score': 'sim'}, {'grade': 'label'})
    """
    names: dict[str, str] = {}
    for part in (part for text in values or [] for part in re.split(r",\s*(?=[\w.]+=)", text)):
        role, equals, name = part.partition("=")
        if not (role and equals and name):
            raise UsageError(
                f"--set columns is {part!r}; expected a role and the name of a column, as in "
                "--set columns=query_id=q,doc_id=d,qrels.grade=label."
            )
        if names.setdefault(role, name) != name:
            raise UsageError(f"--set columns names two columns for {role}, {names[role]!r} and {name!r}; keep one.")
    of_qrels = {role.removeprefix(QRELS): name for role, name in names.items() if role.startswith(QRELS)}
    return {role: name for role, name in names.items() if not role.startswith(QRELS)}, of_qrels


def file_columns(values: list[str] | None) -> dict[str, str]:
    """The column of each role of one file, a run or qrels."""
    of_run, of_qrels = column_names(values)
    return {**of_run, **of_qrels}


QRELS = "qrels."  # Before the role of a column of the qrels.
