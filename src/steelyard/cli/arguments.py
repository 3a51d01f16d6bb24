"""Arguments: the parameters of a verb's function become the arguments and options of its command.

argparse is used, because a larger library takes longer to import than most commands to run.
"""

from __future__ import annotations

import argparse
import re
import shlex
import typing
from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from inspect import Parameter, cleandoc, signature
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, NamedTuple, NoReturn

from steelyard.cli.output import Format, print_message
from steelyard.errors import FixedColumnsError, SteelyardError, did_you_mean
from steelyard.io.files import STANDARD_INPUT, distinct_names, same_names
from steelyard.options import KEYWORDS, help_text
from steelyard.qrels import Qrels
from steelyard.run import Run


class UsageError(SteelyardError):
    """A wrong command line."""


class Argument(NamedTuple):
    """A positional parameter."""

    metavar: str
    help: str


class Option(NamedTuple):
    """A parameter with a name: `--name`, unless `names` has others. `alone`: its value if it is given without one."""

    help: str
    metavar: str | None = None
    names: tuple[str, ...] = ()
    alone: str | None = None


class Parser(argparse.ArgumentParser):
    """A parser that raises a UsageError."""

    def error(self, message: str) -> NoReturn:
        end = "" if message.endswith((".", "?")) else "."
        raise UsageError(f"{message}{end} `{self.prog} --help` shows an example.")


def verb_parser(verb: str, function: Callable[..., Any], width: int | None = None) -> Parser:
    """The parser of a verb, from its function; the help is as wide as the terminal, or `width`."""
    parser = Parser(
        prog=f"steelyard {verb}",
        description=cleandoc(function.__doc__ or ""),
        formatter_class=partial(argparse.RawDescriptionHelpFormatter, width=width, max_help_position=22),
        allow_abbrev=False,
    )
    hints = typing.get_type_hints(function, include_extras=True)
    for parameter in signature(function).parameters.values():
        if parameter.kind is Parameter.VAR_KEYWORD:
            _add_shared_options(parser)
        else:
            _add(parser, parameter, hints[parameter.name])
    parser.usage = " ".join([parser.prog, *map(_usage_of_argument, parser._get_positional_actions()), "[options]"])
    return parser


def _usage_of_argument(action: argparse.Action) -> str:
    """A positional argument in the usage line."""
    name = str(action.metavar)
    return {"?": f"[{name}]", "*": f"[{name} ...]", "+": f"{name} [{name} ...]"}.get(str(action.nargs), name)


def parse_arguments(verb: str, function: Callable[..., Any], arguments: Sequence[str]) -> dict[str, Any]:
    """The keyword arguments of a verb's function."""
    # argparse creates a formatter for every option, and each would look up the width of the terminal.
    parser = verb_parser(verb, function, None if {"-h", "--help"} & set(arguments) else 80)
    for text in arguments:
        # argparse takes `--` away also where it is the value of an option, and leaves an empty list.
        if text.startswith("--") and text.endswith("=--"):
            parser.error(f"{text!r} has no value: -- cannot be one.")
    namespace, unknown = parser.parse_known_intermixed_args(list(arguments))
    if unknown:
        known = [name for action in parser._actions for name in action.option_strings]
        parser.error(f"unknown option {unknown[0]!r}.{did_you_mean(unknown[0], known)}")
    if list(arguments).count("-") > 1:
        parser.error("standard input can be read only once; use - for one file.")
    _check_paths(parser, vars(namespace))
    return vars(namespace)


def _check_paths(parser: Parser, values: dict[str, Any]) -> None:
    """Raise for a measure in the place of a path, with the option to use."""
    if "--measure" not in parser._option_string_actions:
        return
    for action in parser._get_positional_actions():
        value = values[action.dest]
        for path in value if isinstance(value, list) else [value]:
            text = path.text if isinstance(path, RunFile) else str(path)
            if isinstance(path, (Path, RunFile)) and not Path(text).exists() and _is_measure(text):
                parser.error(f"there is no file {text!r}; it looks like a measure: use -m {shlex.quote(text)}.")


def _is_measure(text: str) -> bool:
    from steelyard.errors import MeasureError
    from steelyard.measures.grammar import parse

    try:
        parse(text)
    except MeasureError:
        return False
    return True


_LETTERS = {"measure": ("-m",), "output": ("-o",)}
"""The short forms of options, in every verb that has them."""
_ALIASES = {"--measure": ("--measures", "--metric", "--metrics")}
"""Names by which users of other tools call an option; the help does not list them."""


def _add(parser: Parser, parameter: Parameter, hint: Any) -> None:
    """Add the argument or option of a parameter."""
    kind, about = typing.get_args(hint)
    required = parameter.default is Parameter.empty
    default = None if required else parameter.default
    many, one = _unwrapped(kind)
    choices = list(one) if isinstance(one, type) and issubclass(one, Enum) else None
    reader = _enum_reader(one) if choices else one
    if isinstance(about, Argument):
        count = ("+" if required else "*") if many else (None if required else "?")
        parser.add_argument(
            parameter.name, nargs=count, type=reader, default=default, metavar=about.metavar, help=about.help
        )
        return
    names = about.names or (f"--{parameter.name.replace('_', '-')}", *_LETTERS.get(parameter.name, ()))
    if one is bool:
        parser.add_argument(*names, dest=parameter.name, action="store_true", help=about.help)
        return
    shown = "" if default is None or default == "" else f" [{default.value if isinstance(default, Enum) else default}]"
    action = parser.add_argument(
        *names,
        dest=parameter.name,
        type=reader,
        choices=choices,
        **({} if about.alone is None else {"nargs": "?", "const": about.alone}),
        action="append" if many else "store",
        required=required,
        default=default,
        metavar=about.metavar or ("|".join(c.value for c in choices) if choices else None),
        help=(about.help + shown).replace("%", "%%"),
    )
    for alias in _ALIASES.get(names[0], ()):
        parser._option_string_actions[alias] = action


def _add_shared_options(parser: Parser) -> None:
    """Add the options of `evaluate` and `compare`, as steelyard.options declares them."""
    kinds: dict[str, tuple[type, str]] = {"rel": (float, "GRADE"), "depth": (int, "N")}
    for name in KEYWORDS:
        kind, metavar = kinds.get(name, (str, "POLICY"))
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(flag, dest=name, type=kind, default=None, metavar=metavar, help=help_text(name))


def _enum_reader(kind: type[Enum]) -> Callable[[str], Enum]:
    """A function that converts a text to a member; its error lists the values."""

    def read(text: str) -> Enum:
        try:
            return kind(text)
        except ValueError:
            values = [member.value for member in kind]
            raise argparse.ArgumentTypeError(
                f"{text!r} is unknown; expected one of {', '.join(values)}.{did_you_mean(text, values)}"
            ) from None

    return read


def _unwrapped(kind: Any) -> tuple[bool, Any]:
    """Whether a parameter takes several values, and the type of one."""
    if typing.get_origin(kind) in (typing.Union, UnionType):
        kind = next(option for option in typing.get_args(kind) if option is not type(None))
    if typing.get_origin(kind) is list:
        return True, typing.get_args(kind)[0]
    return False, kind


# Options that several verbs share

Alpha = Annotated[float, Option("Significance level.", "P")]
Correction = Annotated[str, Option("For several tests: none, bonferroni, holm or bh.", "NAME")]
Permutations = Annotated[
    int | None,
    Option("Number of random draws of the test; default: 100,000 permutations, 10,000 for the other tests.", "N"),
]
Seed = Annotated[int, Option("Seed of random draws.", "N")]
Kind = Annotated[str | None, Option("run or qrels, if the content may be either.", "KIND")]
Measures = Annotated[list[str] | None, Option("A measure, as in nDCG@10 or P(rel=2)@5. Repeat for more.", "MEASURE")]
DialectName = Annotated[
    str, Option("Whose definitions to use: `steelyard list dialects` lists them.", "NAME", names=("--dialect",))
]
Output = Annotated[
    Path | None, Option("Write to this file; its suffix is the format: .html .md .tex .csv .json .parquet.", "FILE")
]
Predicted = Annotated[
    Path | None,
    Option(
        "Judgments predicted by a model, for the queries of QRELS and for others: means and differences are "
        "then prediction-powered estimates.",
        "FILE",
    ),
]
SampledPool = Annotated[
    Path | None, Option("With --predicted: the pool whose queries were drawn at random and judged as QRELS.", "FILE")
]
TheseQueries = Annotated[
    bool, Option("With --predicted: intervals of the mean over exactly these queries, not over all queries like them.")
]
Rel = Annotated[float | None, Option(help_text("rel"), "GRADE")]
RESULT_FOLDER = Option("The result folder.", "DIR")
Fresh = Annotated[bool, Option("Run every query again, without the cache.")]
ShowAll = Annotated[
    bool,
    Option("Show every table: all measures, the differences, slices, approximate search and costs.", names=("--all",)),
]
ShowNotes = Annotated[
    bool, Option("Show every note: how it was tested, what was left out, what to look at.", names=("--notes",))
]
TableFormat = Annotated[Format, Option("How to print the table.")]
RunColumns = Annotated[
    list[str] | None,
    Option(
        "Names of columns of the runs, if they are not the usual ones: query_id, doc_id, score, rank or seconds, "
        "as in doc_id=passage,score=sim.",
        "ROLE=NAME,...",
        names=("--columns",),
    ),
]
QrelsColumns = Annotated[
    list[str] | None, Option("The same for the qrels: query_id, doc_id, grade or target.", "ROLE=NAME,...")
]
QrelsFormat = Annotated[
    str | None, Option("Format of the qrels, if it is not detected: trec-diversity, msmarco, ...", "FORMAT")
]
FileColumns = Annotated[
    list[str] | None,
    Option(
        "Names of columns of the file, if they are not the usual ones: query_id, doc_id; score, rank or seconds "
        "of a run; grade or target of qrels.",
        "ROLE=NAME,...",
        names=("--columns",),
    ),
]


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
        print_message(f"{error} --columns is used for the other runs.")
        return Run.read(path)


def read_predicted(predicted: Path | None, pool: Path | None, these_queries: bool) -> dict[str, Any]:
    """The arguments of evaluate and compare for predicted judgments; judgments with the names of their judges."""
    if predicted is None:
        if pool is not None:
            raise UsageError("--pool records which queries were drawn at random; it needs --predicted.")
        if these_queries:
            raise UsageError("--these-queries is about intervals with predicted judgments; it needs --predicted.")
        return {}
    from steelyard.io.judgments import is_judgments_file
    from steelyard.judging.pool import Pool
    from steelyard.judgments import Judgments

    labels = Judgments.read(predicted) if is_judgments_file(predicted) else predicted
    return {"predicted": labels, "pool": None if pool is None else Pool.read(pool), "these_queries": these_queries}


def input_path(text: str | Path) -> Path:
    """The path of a file to read; a dash is standard input."""
    return STANDARD_INPUT if str(text) == "-" else Path(text)


def read_qrels(path: Path, columns: list[str] | None, format: str | None) -> Qrels:
    """The qrels of a file; or of a dataset folder, including its queries without a relevant document."""
    names = column_names(columns, "--qrels-columns")
    if (path / "queries.jsonl").is_file() and not names and format is None:
        from steelyard.datasets.dataset import Dataset

        return Dataset.read(path).qrels
    return Qrels.read(input_path(path), format, **names)


def column_names(values: list[str] | None, option: str) -> dict[str, str]:
    """The column of each role. A comma that is not followed by `ROLE=` is part of a name.

    >>> column_names(["query_id=q,doc_id=title, short", "score=sim"], "--columns")
    {'query_id': 'q', 'doc_id': 'title, short', 'score': 'sim'}
    """
    names: dict[str, str] = {}
    for part in (part for text in values or [] for part in re.split(r",\s*(?=\w+=)", text)):
        role, equals, name = part.partition("=")
        if not (role and equals and name):
            raise UsageError(
                f"{option} is {part!r}; expected a role and the name of a column, as in {option} query_id=q,doc_id=d."
            )
        if names.setdefault(role, name) != name:
            raise UsageError(f"{option} names two columns for {role}, {names[role]!r} and {name!r}; keep one.")
    return names
