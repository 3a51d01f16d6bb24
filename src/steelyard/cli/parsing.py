"""A verb's function as a command: its parameters, with their help, become arguments and options.

argparse from the standard library, because a command that takes a tenth of a second to find out
what it was asked is slower than the work it does.
"""

from __future__ import annotations

import argparse
import shlex
import typing
from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from inspect import Parameter, cleandoc, signature
from pathlib import Path
from types import UnionType
from typing import Any, NamedTuple, NoReturn

from steelyard.errors import SteelyardError, did_you_mean


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
