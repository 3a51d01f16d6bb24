"""The options of the command line: few in a help, one meaning per name, and what SURFACE promises is there."""

from __future__ import annotations

import argparse
import shlex
from collections import defaultdict
from importlib import import_module

import pytest

from clocks import Clock
from steelyard.cli import _MODULES, VERBS, output
from steelyard.cli import run as steelyard
from steelyard.cli.arguments import Parser, verb_parser

MOST_IN_A_HELP, MOST = 16, 150


def parser_of(verb: str, everything: bool = False) -> Parser:
    function = getattr(import_module(f"steelyard.cli.{_MODULES.get(verb, verb)}"), verb)
    return verb_parser(verb, function, 80, everything=everything)


def options_of(parser: Parser) -> list[argparse.Action]:
    return [each for each in parser._actions if each.option_strings and not isinstance(each, argparse._HelpAction)]


def shown(verb: str) -> list[argparse.Action]:
    return [each for each in options_of(parser_of(verb)) if each.help != argparse.SUPPRESS]


def test_there_are_few_options():
    shown_counts = {verb: len(shown(verb)) for verb in VERBS}
    assert max(shown_counts.values()) <= MOST_IN_A_HELP, shown_counts
    counts = {verb: len(options_of(parser_of(verb))) for verb in VERBS}
    assert sum(counts.values()) <= MOST, counts


def test_a_name_has_values_of_one_type_in_every_verb():
    kinds = defaultdict(set)
    for verb in VERBS:
        for action in options_of(parser_of(verb)):
            for name in action.option_strings:
                kinds[name].add((getattr(action.type, "__qualname__", action.type), action.nargs == 0))
    # Promised: what to compare with, a run by its name or a result as a file.
    assert {name for name, kind in kinds.items() if len(kind) > 1} == {"--baseline"}


def test_no_name_is_another_in_the_plural():
    names = {name for verb in VERBS for action in options_of(parser_of(verb)) for name in action.option_strings}
    twins = {name for name in names if f"{name}s" in names}
    # Promised: one dialect and the dialects to compare; one run of a result and runs as files.
    assert twins == {"--dialect", "--run"}


@pytest.mark.parametrize("verb", VERBS)
def test_help_names_the_command_that_shows_the_rest(verb, capsys):
    assert steelyard([verb, "--help"]) == 0
    short = capsys.readouterr().out
    assert steelyard([verb, "--help-all"]) == 0
    whole = capsys.readouterr().out
    settings = parser_of(verb).settings
    rest = len(options_of(parser_of(verb))) - len(shown(verb))
    last = short.strip().splitlines()[-1]
    more = f"{len(settings)} setting{'s' * (len(settings) > 1)}: steelyard {verb} --help-all"
    assert last.endswith(more) == bool(settings)
    assert last.startswith(f"{rest} more options and ") == (rest > 0)
    assert all(f"  {name}=" in whole and f"  {name}=" not in short for name in settings)
    for action in options_of(parser_of(verb)):
        assert max(action.option_strings, key=len) in whole
        assert argparse.SUPPRESS not in short + whole


def test_several_values_are_repeated_or_separated_by_commas():
    parser = parser_of("reconcile")
    given = ["q", "r", "--dialects", "beir, mteb", "--dialects", "ranx"]
    assert parser.parse_args(given).dialects == ["beir", "mteb", "ranx"]
    assert parser_of("fuse").parse_args(["a", "b", "--weights", "0.7", "--weights", "0.3"]).weights == ["0.7", "0.3"]
    runs = parser_of("agreement").parse_args(["a=x", "b=y", "--runs", "1.run", "2.run", "-m", "AP"]).runs
    assert list(map(str, runs)) == ["1.run", "2.run"]


def test_former_names_of_options_still_work():
    assert str(parser_of("compare").parse_args(["q", "r", "--report", "x.html"]).output) == "x.html"
    assert parser_of("judge").parse_args(["questions", "--sample", "50"]).budget == 50
    assert parser_of("evaluate").parse_args(["q", "r", "--metric", "AP"]).measure == ["AP"]


@pytest.mark.parametrize(
    ("command", "advice"),
    [
        ("evaluate q r --no-relevant skip", "Use --set no_relevant=POLICY."),
        ("compare q r --duplicates=hold", "Use --set duplicates=hold."),
        ("fuse a b --k 60", "Use --set k=N."),
        ("bench b.yaml --history h", "Use `history: FILE` in bench.yaml."),
        ("history h --notes", "unknown option '--notes'. Did you mean --commits?"),
        ("evaluate q r --policy no=skip", "Use --set NAME=POLICY."),
        ("evaluate q r --sed 1", "unknown option '--sed'."),
        ("compare q r --sed 1", "unknown option '--sed'. Did you mean --set"),
        ("compare q r --set sede=1", "there is no setting 'sede'; expected one of queries, columns, repeats"),
        ("compare q r --set sede=1", "Did you mean seed?"),
        ("compare q r --set test=t", "there is no setting 'test'"),
        ("compare q r --set test=t", "Use --test."),
        ("compare q r --set seed=x", "--set seed is 'x'; expected a whole number."),
        ("compare q r --set alpha=x", "--set alpha is 'x'; expected a number."),
        ("compare q r --set these_queries=perhaps", "--set these_queries is 'perhaps'; expected yes or no."),
        ("compare q r --set seed", "--set seed has no value; expected NAME=VALUE, as in seed=N."),
        ("compare q r --set repeats=all", "--set repeats: 'all' is unknown; expected one of average, blocks."),
        ("history h --commits abc", "expected two commits, as in 1a2b3c4..last"),
        ("gate r --allow failed=x --rule 'AP > 1'", "as in failed=3"),
    ],
)
def test_an_option_that_is_elsewhere_is_named(command, advice, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in "rh":
        (tmp_path / name).write_text("")
    assert steelyard(shlex.split(command)) == 2
    assert advice in capsys.readouterr().err


def test_errors_name_options_of_the_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        (tmp_path / f"{name}.run").write_text(f"q1 Q0 d1 1 2.5 {name}\nq1 Q0 d2 2 1.5 {name}\n")
    assert steelyard(["compare", "a.run", "b.run"]) == 2
    error = capsys.readouterr().err
    assert "a.run holds a run; expected qrels first, then the runs." in error
    assert "add --no-qrels" in error
    assert "swapped" not in error
    (tmp_path / "odd").write_text("one two three four five six seven eight\n")
    assert steelyard(["evaluate", "odd", "a.run"]) == 2
    error = capsys.readouterr().err
    assert "steelyard convert IN OUT --from FORMAT" in error
    assert "format=" not in error


def test_by_prints_the_slices(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "qrels.txt").write_text("q1 0 d1 1\nq2 0 d1 1\n")
    (tmp_path / "queries.csv").write_text("query_id,type\nq1,short\nq2,long\n")
    for name, first in (("a", "d1"), ("b", "d2")):
        lines = [f"{query} Q0 {first} 1 2.5 {name}\n" for query in ("q1", "q2")]
        (tmp_path / f"{name}.run").write_text("".join(lines))
    command = ["compare", "qrels.txt", "a.run", "b.run", "-m", "RR"]
    assert steelyard([*command, "--by", "type", "--set", "queries=queries.csv"]) == 0
    assert "RR by type (queries)\nrun  long (1)  short (1)\na      1.0000     1.0000\n" in capsys.readouterr().out
    assert steelyard(command) == 0
    assert "by type" not in capsys.readouterr().out


def test_time_that_is_left_is_estimated_once_it_can_be(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(output, "monotonic", clock)
    pace = output.Pace()
    pace.update(5, 300)  # 5 of them were done before
    clock.advance(10)
    assert pace.text() == "5 of 300, 10 s so far"
    pace.update(9, 300)
    assert pace.text() == "9 of 300, 10 s so far, about 12 min left"
    pace.update(0, 7)
    assert pace.text() == "0 of 7, 10 s so far"
    clock.advance(1)
    pace.update(6, 7)
    assert pace.text() == "6 of 7, 11 s so far"
    clock.advance(5)
    assert pace.text() == "6 of 7, 16 s so far, about 1 s left"
    pace.update(0, 1)
    assert pace.text() == "16 s so far"
