"""The command line: one file a verb, each parses, calls and prints. Only this package prints or exits."""

from __future__ import annotations

import os
import sys
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

VERBS = {
    "demo": "the bundled benchmark: a leaderboard here, a report in ./steelyard-demo",
    "init": "a starter bench.yaml, explained",
    "bench": "run retrievers over a dataset, measure, compare, report",
    "evaluate": "measure runs against judgments",
    "compare": "which run is best, by how much, and whether that is real",
    "report": "one self-contained page that shows where each run wins and fails",
    "gate": "may this be merged? rules and a baseline, exit code 1 where one is broken",
    "fuse": "make one run of several, and tune how",
    "explain": "what a measure is, exactly, under a dialect",
    "measures": "list the measures",
    "dialects": "list the dialects",
    "retrievers": "list what can stand in a bench, with settings",
    "reconcile": "why two tools give different numbers",
    "validate": "check files and say everything that is wrong with them",
    "convert": "write a run or judgments in another format",
    "judge": "judge the documents of a pool on a page in the browser",
    "evidence": "qrels by what a chunk contains (spans, facts)",
}

_MODULES = {
    "convert": "files",
    "demo": "bench",
    "dialects": "listings",
    "explain": "listings",
    "init": "bench",
    "measures": "listings",
    "retrievers": "listings",
    "validate": "files",
}
"""The modules of verbs that share one; another verb is in the module of its name."""

DONE, WRONG_INPUT, BROKE, STOPPED = 0, 2, 3, 130

_HELP = """\
usage: steelyard VERB [arguments]

Steelyard weighs retrievers: how good, by whose definition, whether the difference is real, and where they fail.

verbs:
{verbs}

  steelyard VERB --help   what a verb does, with an example
  steelyard --version     the version

Exit codes: 0 done, 1 a gate failed, 2 the command or its input was wrong, 3 something inside broke."""


def main() -> NoReturn:
    """Run the verb asked for and exit: 0 done, 1 a gate failed, 2 wrong input, 3 something inside broke."""
    # The threads that numpy's OpenBLAS starts would spin for a while, on processors that have work to do.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run the verb asked for; the exit code."""
    if arguments[:1] == ["evaluate"]:
        from steelyard.cli.ahead import begin

        begin(arguments[1:])
    from steelyard.errors import SteelyardError

    try:
        return _run(arguments)
    except SteelyardError as error:
        print(f"error: {error}", file=sys.stderr)
        return WRONG_INPUT
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return STOPPED
    except Exception as error:
        return _broke(error)


def _run(arguments: list[str]) -> int:
    """Load only the verb that was asked for, and call it."""
    if not arguments or arguments[0] in ("--help", "-h", "help"):
        width = max(map(len, VERBS))
        print(_HELP.format(verbs="\n".join(f"  {verb:<{width}}  {what}" for verb, what in VERBS.items())))
        return DONE if arguments else WRONG_INPUT
    if arguments[0] == "--version":
        from steelyard.version import __version__

        print(f"steelyard {__version__}")
        return DONE
    from steelyard.cli.arguments import UsageError, parsed
    from steelyard.errors import did_you_mean

    verb = arguments[0]
    if verb not in VERBS:
        raise UsageError(
            f"there is no verb {verb!r}.{did_you_mean(verb, VERBS)} There are {', '.join(VERBS)}."
        )
    function = getattr(import_module(f"steelyard.cli.{_MODULES.get(verb, verb)}"), verb)
    try:
        given = parsed(verb, function, arguments[1:])
    except SystemExit:
        return DONE
    code = function(**given)
    return DONE if code is None else int(code)


def _broke(error: Exception) -> int:
    """Keep what broke in a log file, and say where."""
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="steelyard-", suffix=".log", delete=False) as log:
        traceback.print_exception(error, file=log)
    what = f"{type(error).__name__}: {error}"
    print(f"error: something inside broke ({what}). The details are in {log.name}", file=sys.stderr)
    return BROKE
