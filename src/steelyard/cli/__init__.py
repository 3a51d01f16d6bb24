"""The command line: one file a verb, each parses, calls and prints. Only this package prints or exits."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any, NoReturn

VERBS = {
    "demo": "the bundled benchmark: a leaderboard here, a report in ./steelyard-demo",
    "init": "a starter bench.yaml, explained",
    "bench": "run retrievers over a dataset, measure, compare, report",
    "evaluate": "measure runs against judgments",
    "compare": "which run is best, by how much, and whether that is real",
    "explain": "what a measure is, exactly, under a dialect",
    "measures": "list the measures",
    "dialects": "list the dialects",
    "reconcile": "why two tools give different numbers",
    "validate": "check files and say everything that is wrong with them",
    "convert": "write a run or judgments in another format",
}

DONE, GATE_FAILED, WRONG_INPUT, BROKE = 0, 1, 2, 3


def main() -> NoReturn:
    """Run the verb asked for and exit: 0 done, 1 a gate failed, 2 wrong input, 3 something inside broke."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run the verb asked for; the exit code."""
    from steelyard.errors import SteelyardError

    try:
        result = _app(arguments)(args=arguments, prog_name="steelyard", standalone_mode=False)
        return result if isinstance(result, int) else DONE
    except SteelyardError as error:
        print(f"error: {error}", file=sys.stderr)
        return WRONG_INPUT
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    except Exception as error:
        return _failed(error)


def _app(arguments: list[str]) -> Any:
    """The command, with only the verb that was asked for loaded."""
    import typer

    app = typer.Typer(
        name="steelyard",
        help="Steelyard weighs retrievers: how good, by whose definition, whether the difference is real, and where they fail.",
        epilog="Exit codes: 0 done, 1 a gate failed, 2 the command or its input was wrong, 3 something inside broke.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )

    @app.callback(invoke_without_command=True)
    def whole(version: bool = typer.Option(False, "--version", help="Print the version and stop.")) -> None:
        if version:
            from steelyard.version import __version__

            print(f"steelyard {__version__}")
            raise typer.Exit

    asked = [word for word in arguments if not word.startswith("-")][:1]
    loaded = asked if asked and asked[0] in VERBS else list(VERBS)
    for verb in loaded:
        app.command(verb, short_help=VERBS[verb])(getattr(import_module(f"steelyard.cli.{verb}"), verb))
    return typer.main.get_command(app)


def _failed(error: Exception) -> int:
    """Say what went wrong: the command line's own complaint, or a log of what broke."""
    if hasattr(error, "format_message"):
        usage = getattr(error, "ctx", None)
        if usage is not None:
            print(usage.get_usage(), file=sys.stderr)
        print(f"error: {error.format_message()}", file=sys.stderr)
        return int(getattr(error, "exit_code", WRONG_INPUT))
    if type(error).__name__ == "Abort":
        print("stopped", file=sys.stderr)
        return 130
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="steelyard-", suffix=".log", delete=False) as log:
        traceback.print_exception(error, file=log)
    print(
        f"error: something inside broke ({type(error).__name__}: {error}). The details are in {log.name}",
        file=sys.stderr,
    )
    return BROKE
