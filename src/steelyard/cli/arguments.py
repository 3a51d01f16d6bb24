"""Arguments: the parameters of a verb's function become the arguments and options of its command.

argparse is used, because a larger library takes longer to import than most commands to run.
"""

from __future__ import annotations

import argparse
import os
import shlex
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from inspect import Parameter, cleandoc, signature
from pathlib import Path
from types import UnionType
from typing import Any, NamedTuple, NoReturn

from steelyard.cli.options import OUTPUT, SHARED, Option, RunFile, UsageError
from steelyard.cli.output import format_for
from steelyard.errors import MeasureError, did_you_mean
from steelyard.wording import counted


class Parser(argparse.ArgumentParser):
    """A parser that raises a UsageError, with what `--set` may set."""

    settings: dict[str, VerbParameter]

    def error(self, message: str) -> NoReturn:
        end = "" if message.endswith((".", "?")) else "."
        raise UsageError(f"{message}{end} `{self.prog} --help` shows an example.")


def verb_parser(
    verb: str, function: Callable[..., Any], width: int | None = None, *, everything: bool = False
) -> Parser:
    """The parser of a verb, from its function; the help is as wide as the terminal, or `width`.

    everything: the help has every option, not only those that most people need.
    """
    parser = Parser(
        prog=f"steelyard {verb}",
        description=cleandoc(function.__doc__ or ""),
        formatter_class=partial(_Help, width=width, max_help_position=25),
        allow_abbrev=False,
        add_help=False,
    )
    declared = list(_declared(function))
    for param in (param for param in declared if param.about.positional):
        many, one = _unwrapped(param.kind)
        required, metavar, help = param.default is Parameter.empty, param.about.metavar, param.about.help
        count = ("+" if required else "*") if many else (None if required else "?")
        default = None if required else param.default
        parser.add_argument(param.name, nargs=count, type=_reader(one), default=default, metavar=metavar, help=help)
    parser.settings = {param.name: param for param in declared if param.about.setting}
    named = [param for param in declared if not (param.about.setting or param.about.positional)]
    if parser.settings:
        named.append(_SET)
    hidden = 0 if everything else sum(param.about.expert for param in named)
    grouped = len(named) - hidden > LONGEST_GROUP
    groups = {title: parser.add_argument_group(title) for title in (_GROUPS if grouped else [OTHERS])}
    for title, names in _GROUPS.items():
        for param in named:
            if param.name in names or (title == OTHERS and param.name not in _GROUPED):
                group = groups[title if grouped else OTHERS]
                _add_option(parser, group, param, hidden=param.about.expert and not everything)
    last = groups[next(reversed(groups))]
    last.add_argument("-h", "--help", action="help", help="Show this help.")
    last.add_argument("--help-all", action="help", help=argparse.SUPPRESS)
    if everything and parser.settings:
        listed = parser.add_argument_group("settings")
        listed._group_actions += [_shown_setting(setting) for setting in parser.settings.values()]
    rest = [counted(hidden, "more option")] * (hidden > 0)
    rest += [counted(len(parser.settings), "setting")] * bool(parser.settings)
    if rest and not everything:
        parser.epilog = f"{' and '.join(rest)}: {parser.prog} --help-all"
    shapes = {"?": "[{0}]", "*": "[{0} ...]", "+": "{0} [{0} ...]"}
    shown = [shapes.get(str(action.nargs), "{0}").format(action.metavar) for action in parser._get_positional_actions()]
    parser.usage = " ".join([parser.prog, *shown, "[options]"])
    return parser


class VerbParameter(NamedTuple):
    """A parameter of a verb's function."""

    name: str
    kind: Any
    about: Option
    default: Any


_SET_HELP = "A setting, as in seed=1; --help-all lists them. Repeat for more."
_SET = VerbParameter("settings", list[str] | None, Option(_SET_HELP, "NAME=VALUE", names=("--set",)), None)


_METAVARS = {Path: "FILE", int: "N", str: "NAME"}  # The value of an option in its help, unless it names another.


def _declared(function: Callable[..., Any]) -> Iterator[VerbParameter]:
    """The parameters of a verb; `**options` stands for those that evaluate and compare share."""
    hints = typing.get_type_hints(function, include_extras=True)
    for parameter in signature(function).parameters.values():
        shared = parameter.kind is Parameter.VAR_KEYWORD
        for name, hint in SHARED.items() if shared else [(parameter.name, hints[parameter.name])]:
            kind, about = typing.get_args(hint)
            if about.metavar is None:
                about = about._replace(metavar=_METAVARS.get(_unwrapped(kind)[1]))
            yield VerbParameter(name, kind, about, None if shared else parameter.default)


def parse_arguments(verb: str, function: Callable[..., Any], arguments: Sequence[str]) -> dict[str, Any]:
    """The keyword arguments of a verb's function."""
    # argparse creates a formatter for every option, and each would look up the width of the terminal.
    everything = "--help-all" in arguments
    width = None if everything or {"-h", "--help"} & set(arguments) else 80
    parser = verb_parser(verb, function, width, everything=everything)
    for text in arguments:
        # argparse takes `--` away also where it is the value of an option, and leaves an empty list.
        if text.startswith("--") and text.endswith("=--"):
            parser.error(f"{text!r} has no value: -- cannot be one.")
        known = "--" in arguments or text in parser._option_string_actions
        if text.startswith("-") and not known and os.path.isfile(text):
            parser.error(f"{text!r} is taken for an option; call the file ./{text}.")
    namespace, unknown = parser.parse_known_intermixed_args(list(arguments))
    if unknown:
        if not unknown[0].startswith("-"):
            parser.error(f"{unknown[0]!r} is one argument too many.")
        parser.error(f"unknown option {unknown[0]!r}.{_advice(parser, unknown)}")
    values = vars(namespace)
    if list(arguments).count("-") > 1 + (str(values.get("target")) == "-"):
        parser.error("standard input can be read only once; use - for one file.")
    if str(values.get("output")) == "-":
        parser.error("-o - names no file; expected FILE.txt or the like. Without -o, most verbs print the result.")
    if any(param.about is OUTPUT for param in _declared(function)):
        format_for(values["format"], values["output"])
    values |= _settings(parser, values.pop(_SET.name, None) or [])
    _check_paths(parser, values)
    return values


def _advice(parser: Parser, unknown: Sequence[str]) -> str:
    """What to use in place of an option that the verb does not have."""
    name, _, value = unknown[0].partition("=")
    setting = name.lstrip("-").replace("-", "_")
    if setting in parser.settings:
        return f" Use --set {setting}={value or parser.settings[setting].about.metavar or 'yes'}."
    options = [option for action in parser._actions for option in action.option_strings]
    needed, place = _ELSEWHERE.get(name, ("--", ""))
    if not needed or needed in options:
        return f" Use {place}."
    return did_you_mean(name, [*options, *(f"--set {key}" for key in parser.settings)])


def _settings(parser: Parser, given: Sequence[str]) -> dict[str, Any]:
    """The value of every setting: those of `--set NAME=VALUE`, and the defaults."""

    def wrong(message: str) -> NoReturn:
        raise UsageError(f"{message} `{parser.prog} --help-all` lists the settings.")

    values = {name: param.default for name, param in parser.settings.items()}
    for text in given:
        name, equals, value = text.partition("=")
        name = name.strip().lstrip("-").replace("-", "_")
        if name not in values:
            action = parser._option_string_actions.get(f"--{name.replace('_', '-')}")
            advice = f" Use {action.option_strings[0]}." if action else did_you_mean(name, list(values))
            wrong(f"--set {text}: there is no setting {name!r}; expected one of {', '.join(values)}.{advice}")
        param = parser.settings[name]
        about = param.about
        many, one = _unwrapped(param.kind)
        if not equals and one is not bool:
            wrong(f"--set {text} has no value; expected NAME=VALUE, as in {name}={about.metavar}.")
        try:
            new: Any = _TRUTHS[value.lower()] if one is bool else _reader(one, about)(value)
        except argparse.ArgumentTypeError as error:
            wrong(f"--set {name}: {error}")
        except (ValueError, KeyError):
            wrong(f"--set {name} is {value!r}; expected {_KINDS.get(one, about.metavar)}.")
        values[name] = [*(values[name] or []), *(new if about.commas else [new])] if many else new
    return values


_KINDS = {int: "a whole number", float: "a number", bool: "yes or no"}
_TRUTHS = {"": True, "yes": True, "true": True, "no": False, "false": False}
"""A setting that is true or false; its name alone is yes."""


def _shown_setting(param: VerbParameter) -> argparse.Action:
    """A setting in the help, as `name=VALUE`."""
    _, one = _unwrapped(param.kind)
    value = "yes|no" if one is bool else param.about.metavar or "|".join(_choices(one))
    help = param.about.help + ("" if one is bool and not param.default else _shown_default(param.default))
    return argparse.Action([], param.name, metavar=f"{param.name}={value}", help=help.replace("%", "%%"))


def _check_paths(parser: Parser, values: dict[str, Any]) -> None:
    """Raise for a measure in the place of a path, with the option to use."""
    if "--measure" not in parser._option_string_actions:
        return
    for action in parser._get_positional_actions():
        value = values[action.dest]
        for path in value if isinstance(value, list) else [value]:
            text = path.text if isinstance(path, RunFile) else str(path)
            if isinstance(path, (Path, RunFile)) and not Path(text).exists():
                from steelyard.measures.grammar import parse

                with suppress(MeasureError):
                    parse(text)
                    parser.error(f"there is no file {text!r}; it looks like a measure: use -m {shlex.quote(text)}.")


class _Help(argparse.RawDescriptionHelpFormatter):
    """A help with short lines: `-m, --measure MEASURE`."""

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        names = ", ".join(sorted(action.option_strings, key=len))
        return f"{names} {self._format_args(action, action.dest.upper())}"


_LETTERS = {"measure": ("-m",), "output": ("-o",)}  # The short forms of options, in every verb that has them.
_ALIASES = {
    "--measure": ("--measures", "--metric", "--metrics"),
    "compare --output": ("--report",),
    "judge --budget": ("--sample",),
}
"""Other names that users try for an option, or for that of one verb; the help does not list them."""
_ELSEWHERE = {
    "--no-open": ("--endpoint", "--set open=no"),
    "--no-browser": ("--endpoint", "--set open=no"),
    "--policy": ("--set", "--set NAME=POLICY"),
    "--parameter": ("--set", "--set NAME=VALUE"),
    "--qrels-columns": ("--set", "--set columns=qrels.grade=NAME"),
    "--qrels-format": ("", "`steelyard convert QRELS qrels.jsonl --from FORMAT` first"),
    "--notes": ("--all", "--all"),
    "--history": ("--fresh", "`history: FILE` in bench.yaml"),
}
"""Names that are keywords in Python, or that one would expect: the option they need, and what to use in their place."""


OTHERS = "options"
_GROUPS = {
    OTHERS: (),
    "data": ("dataset", "queries", "scores", "run_column", "query_column", "no_qrels", "qrels", "corpus"),
    "statistics": ("test", "correction"),
    "edge cases": ("missing", "ties"),
    "a model": ("endpoint", "model", "prompt", "api_key_env", "max_requests", "max_tokens", "plan", "retry", "critic"),
    "output": ("per_query", "show_all", "format", "output", "junit", "markdown", "html", "save_baseline"),
}
"""The groups of a long help, with the parameters of each; the first has all others."""
_GROUPED = {name for names in _GROUPS.values() for name in names}
LONGEST_GROUP = 9  # Options that are not grouped.


def _add_option(parser: Parser, group: Any, param: VerbParameter, hidden: bool) -> None:
    """Add an option; `hidden`: the help does not show it."""
    about, (many, one) = param.about, _unwrapped(param.kind)
    required = param.default is Parameter.empty
    default = None if required else param.default
    names = about.names or (f"--{param.name.replace('_', '-')}", *_LETTERS.get(param.name, ()))
    if one is bool:
        help = argparse.SUPPRESS if hidden else about.help
        group.add_argument(*names, dest=param.name, action="store_true", help=help)
        return
    action = group.add_argument(
        *names,
        dest=param.name,
        type=_reader(one, about),
        choices=_choices(one) or None,
        **({"nargs": "?", "const": about.alone} if about.alone is not None else {"nargs": "+"} if about.files else {}),
        action="extend" if about.commas or about.files else "append" if many else "store",
        required=required,
        default=default,
        metavar=about.metavar or "|".join(_choices(one)) or None,
        help=argparse.SUPPRESS if hidden else (about.help + _shown_default(default)).replace("%", "%%"),
    )
    verb = parser.prog.split()[-1]
    for alias in (*_ALIASES.get(names[0], ()), *_ALIASES.get(f"{verb} {names[0]}", ())):
        parser._option_string_actions[alias] = action


def _shown_default(value: Any) -> str:
    return "" if value in (None, "") else f" [{'yes' if value is True else value}]"


def _choices(kind: Any) -> tuple[str, ...]:
    """The values of a Literal; none of another type."""
    return typing.get_args(kind) if typing.get_origin(kind) is typing.Literal else ()


def _reader(kind: Any, about: Option | None = None) -> Callable[[str], Any]:
    """The function that converts a text to a value of an option, or to a list of them."""
    choices = _choices(kind)
    if not choices and not (about and about.commas):
        plain: Callable[[str], Any] = kind
        return plain

    def read(text: str) -> Any:
        if choices:
            if text not in choices:
                expected = f"expected one of {', '.join(choices)}.{did_you_mean(text, choices)}"
                raise argparse.ArgumentTypeError(f"{text!r} is unknown; {expected}")
            return text
        try:
            return [kind(part.strip()) for part in text.split(",")]
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is wrong; expected numbers separated by ','.") from None

    return read


def _unwrapped(kind: Any) -> tuple[bool, Any]:
    """Whether a parameter takes several values, and the type of one."""
    if typing.get_origin(kind) in (typing.Union, UnionType):
        kind = next(option for option in typing.get_args(kind) if option is not type(None))
    if typing.get_origin(kind) is list:
        return True, typing.get_args(kind)[0]
    return False, kind


_OUTPUTS = ("output", "target", "junit", "markdown", "html")  # Arguments that name a file to write.


def check_outputs(keywords: Mapping[str, Any], verb: str) -> list[Path]:
    """The files to write; an error if one is a file that the same command reads, also as NAME=FILE."""
    from steelyard.io.files import would_be_replaced

    inputs = _texts([value for name, value in keywords.items() if name not in (*_OUTPUTS, "save_baseline")])
    read = {path for text in inputs for path in (text, text.partition("=")[2]) if os.path.isfile(path)}
    names = _OUTPUTS[1:] if verb == "judge" else _OUTPUTS  # It adds to its output.
    outputs = [Path(keywords[name]) for name in names if keywords.get(name) is not None]
    for output in outputs:
        if output.is_file() and any(output.samefile(path) for path in read):
            raise would_be_replaced(output)
    return outputs


def _texts(value: Any) -> list[str]:
    """The texts and paths in a value, and in lists within it."""
    if isinstance(value, (list, tuple)):
        return [text for part in value for text in _texts(part)]
    return [value.text if isinstance(value, RunFile) else str(value)]
