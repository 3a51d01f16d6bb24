"""A verb's function as a command: its parameters, with their help, become arguments and options.

argparse from the standard library, because a command that takes a tenth of a second to find out
what it was asked is slower than the work it does.
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

from steelyard.cli.output import Format, say
from steelyard.errors import FixedColumnsError, SteelyardError, did_you_mean
from steelyard.options import KEYWORDS, help_text
from steelyard.qrels import Qrels
from steelyard.run import Run


class UsageError(SteelyardError):
    """A command line that cannot be understood."""


class Argument(NamedTuple):
    """A parameter that is given by its place."""

    metavar: str
    help: str


class Option(NamedTuple):
    """A parameter that is given by its name: `--name`, unless other names are said."""

    help: str
    metavar: str | None = None
    names: tuple[str, ...] = ()


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are errors like any other, with the nearest thing that exists."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} `{self.prog} --help` has an example.")


def verb_parser(verb: str, function: Callable[..., Any], width: int | None = None) -> Parser:
    """The parser of one verb, read off its function; its help is as wide as the terminal, or `width`."""
    parser = Parser(
        prog=f"steelyard {verb}",
        description=cleandoc(function.__doc__ or ""),
        formatter_class=partial(argparse.RawDescriptionHelpFormatter, width=width),
        allow_abbrev=False,
    )
    hints = typing.get_type_hints(function, include_extras=True)
    for parameter in signature(function).parameters.values():
        if parameter.kind is Parameter.VAR_KEYWORD:
            _add_shared_options(parser)
        else:
            _add(parser, parameter, hints[parameter.name])
    parser.usage = " ".join([parser.prog, *map(_place, parser._get_positional_actions()), "[options]"])
    return parser


def _place(action: argparse.Action) -> str:
    """An argument as the line of usage shows it."""
    name = str(action.metavar)
    return {"?": f"[{name}]", "*": f"[{name} ...]", "+": f"{name} [{name} ...]"}.get(str(action.nargs), name)


def parsed(verb: str, function: Callable[..., Any], arguments: Sequence[str]) -> dict[str, Any]:
    """The function's keyword arguments from a command line."""
    # argparse makes a formatter for every option it is told of, and each would ask how wide the terminal is.
    parser = verb_parser(verb, function, None if {"-h", "--help"} & set(arguments) else 80)
    found, unknown = parser.parse_known_intermixed_args(list(arguments))
    if unknown:
        known = [name for action in parser._actions for name in action.option_strings]
        parser.error(f"there is no option {unknown[0]!r}.{did_you_mean(unknown[0], known)}")
    _refuse_measures(parser, vars(found))
    return vars(found)


def _refuse_measures(parser: Parser, given: dict[str, Any]) -> None:
    """A measure in the place of a path: say which option takes it."""
    if "--measure" not in parser._option_string_actions:
        return
    for action in parser._get_positional_actions():
        value = given[action.dest]
        for path in value if isinstance(value, list) else [value]:
            if isinstance(path, Path) and not path.exists() and _is_measure(str(path)):
                parser.error(
                    f"there is no file {str(path)!r}; it looks like a measure: use -m {shlex.quote(str(path))}."
                )


def _is_measure(text: str) -> bool:
    from steelyard.errors import MeasureError
    from steelyard.measures.grammar import parse

    try:
        parse(text)
    except MeasureError:
        return False
    return True


def _add(parser: Parser, parameter: Parameter, hint: Any) -> None:
    kind, about = typing.get_args(hint)
    default = None if parameter.default is Parameter.empty else parameter.default
    many, one = _unwrapped(kind)
    if isinstance(about, Argument):
        count = (
            ("+" if parameter.default is Parameter.empty else "*")
            if many
            else (None if default is None and parameter.default is Parameter.empty else "?")
        )
        parser.add_argument(
            parameter.name, nargs=count, type=one, default=default, metavar=about.metavar, help=about.help
        )
        return
    names = about.names or (f"--{parameter.name.replace('_', '-')}",)
    if one is bool:
        parser.add_argument(*names, dest=parameter.name, action="store_true", help=about.help)
        return
    shown = (
        ""
        if default is None or default == ""
        else f" [{default.value if isinstance(default, Enum) else default}]"
    )
    choices = list(one) if isinstance(one, type) and issubclass(one, Enum) else None
    parser.add_argument(
        *names,
        dest=parameter.name,
        type=_named(one) if choices else one,
        choices=choices,
        action="append" if many else "store",
        required=parameter.default is Parameter.empty,
        default=default,
        metavar=about.metavar or ("|".join(c.value for c in choices) if choices else None),
        help=(about.help + shown).replace("%", "%%"),
    )


def _add_shared_options(parser: Parser) -> None:
    """The options of `evaluate` and `compare`, as steelyard.options declares them."""
    kinds: dict[str, tuple[type, str]] = {"rel": (float, "GRADE"), "depth": (int, "N")}
    for name in KEYWORDS:
        kind, metavar = kinds.get(name, (str, "POLICY"))
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(flag, dest=name, type=kind, default=None, metavar=metavar, help=help_text(name))


def _named(kind: type[Enum]) -> Callable[[str], Enum]:
    """A reader of an enumeration's values that says what they are."""

    def read(text: str) -> Enum:
        try:
            return kind(text)
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"{text!r} is none of {', '.join(member.value for member in kind)}.{did_you_mean(text, [m.value for m in kind])}"
            ) from None

    return read


def _unwrapped(kind: Any) -> tuple[bool, Any]:
    """Whether a parameter takes many values, and the type of one."""
    if typing.get_origin(kind) in (typing.Union, UnionType):
        kind = next(option for option in typing.get_args(kind) if option is not type(None))
    if typing.get_origin(kind) is list:
        return True, typing.get_args(kind)[0]
    return False, kind


Measures = Annotated[
    list[str] | None,
    Option(
        "A measure, as in nDCG@10 or P(rel=2)@5. Repeat for more.",
        "MEASURE",
        names=(
            "--measure",
            "-m",
        ),
    ),
]
DialectName = Annotated[
    str,
    Option("Whose definitions to use: `steelyard dialects` lists them.", "NAME", names=("--dialect",)),
]
Output = Annotated[
    Path | None,
    Option(
        "Write to this file instead of the terminal.",
        "FILE",
        names=(
            "--output",
            "-o",
        ),
    ),
]
Rel = Annotated[float | None, Option(help_text("rel"), "GRADE")]
RESULT_FOLDER = Option("The result folder.", "DIR", names=("--output", "-o"))
Fresh = Annotated[bool, Option("Ask everything again, whatever was asked before.")]
TableFormat = Annotated[Format, Option("How to print the table.")]


RunColumns = Annotated[
    list[str] | None,
    Option(
        "What columns of the runs are called, where not by a usual name: query_id, doc_id, score, rank or "
        "seconds, as in doc_id=passage,score=sim.",
        "ROLE=NAME,...",
        names=("--columns",),
    ),
]
QrelsColumns = Annotated[
    list[str] | None,
    Option(
        "The same for the judgments: query_id, doc_id, grade or target.",
        "ROLE=NAME,...",
    ),
]
QrelsFormat = Annotated[
    str | None,
    Option("What the judgments are, where that is not seen: trec-diversity, msmarco, ...", "FORMAT"),
]
FileColumns = Annotated[
    list[str] | None,
    Option(
        "What columns of the file are called, where not by a usual name: query_id, doc_id; score, rank or "
        "seconds of a run; grade or target of judgments.",
        "ROLE=NAME,...",
        names=("--columns",),
    ),
]


def read_run(path: Path, columns: dict[str, str], among: int) -> Run:
    """A run with its columns named; one of several that has no columns to name, as a TREC file, is read as it is."""
    try:
        return Run.read(path, **columns)
    except FixedColumnsError as error:
        if among == 1:
            raise
        say(f"{error} --columns is taken to be for the other runs.")
        return Run.read(path)


def read_qrels(path: Path, given: list[str] | None, format: str | None) -> Qrels:
    """The judgments of a file, its columns or its format named; of a dataset's folder, its queries without an
    answer with them."""
    columns = named(given, "--qrels-columns")
    if (path / "queries.jsonl").is_file() and not columns and format is None:
        from steelyard.datasets.dataset import Dataset

        return Dataset.read(path).qrels
    return Qrels.read(path, format, **columns)


def named(given: list[str] | None, option: str) -> dict[str, str]:
    """The column named for each role. A comma that no `ROLE=` follows is part of a name.

    >>> named(["query_id=q,doc_id=title, short", "score=sim"], "--columns")
    {'query_id': 'q', 'doc_id': 'title, short', 'score': 'sim'}
    """
    found: dict[str, str] = {}
    for part in (part for text in given or [] for part in re.split(r",\s*(?=\w+=)", text)):
        role, equals, name = part.partition("=")
        if not (role and equals and name):
            raise UsageError(
                f"{option} is {part!r}; expected what a column is for and its name, as in {option} query_id=q,doc_id=d."
            )
        if found.setdefault(role, name) != name:
            raise UsageError(
                f"{option} names two columns for {role}, {found[role]!r} and {name!r}; keep one."
            )
    return found
