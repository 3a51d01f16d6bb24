"""The command line: one module per verb, or for a few verbs of one subject. Only this package prints and exits."""

from __future__ import annotations

import atexit
import os
import sys
from contextlib import suppress
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

VERBS = {
    "demo": "run the bundled benchmark; the report is in ./steelyard-demo",
    "init": "write a starter bench.yaml",
    "bench": "run retrievers over a dataset, evaluate, compare, report",
    "evaluate": "evaluate runs with qrels",
    "compare": "compare runs: leaderboard, differences, significance",
    "stages": "show where a pipeline loses relevant documents",
    "check": "is the data any good? findings with their effect",
    "across": "compare runs over several datasets",
    "history": "show one benchmark over time, with tested changes",
    "report": "write one self-contained HTML page for a result",
    "gate": "check rules and compare with a baseline; exit code 1 if one fails",
    "fuse": "fuse several runs into one, and tune the fusion",
    "questions": "draft questions from a corpus with a model, checked, with evidence",
    "pool": "choose documents to judge",
    "judge": "judge the documents of a pool, in the browser or by a model",
    "agreement": "compare judges, or sets of queries: do they rank runs alike?",
    "evidence": "make qrels for chunks from evidence: spans, facts, pages",
    "explain": "show the exact definition of a measure in a dialect",
    "list": "list measures, dialects, retrievers or formats",
    "reconcile": "show why two tools give different numbers",
    "validate": "check files and folders, and report all problems",
    "convert": "write a run or qrels in another format",
}

_MODULES = {
    **dict.fromkeys(("demo", "init"), "bench"),
    **dict.fromkeys(("check", "convert", "evidence", "validate"), "data"),
    **dict.fromkeys(("explain", "list"), "listings"),
    **dict.fromkeys(("across", "history", "report"), "results"),
    "agreement": "pool",
    "questions": "judge",
}
"""The modules of verbs that share one; any other verb is in the module of its name."""

DONE, WRONG_INPUT, INTERNAL_ERROR, INTERRUPTED = 0, 2, 3, 130

_HELP = """\
usage: steelyard VERB [arguments]

Steelyard evaluates retrievers: how good they are, by whose definition, whether
a difference is significant, and where they fail.

verbs:
{verbs}

  steelyard VERB --help   what a verb does, with an example
  steelyard --version     the version

Exit codes: 0 done, 1 a gate failed, 2 the command or its input was wrong,
3 an internal error."""


def main() -> NoReturn:
    """Run the verb of the command line and exit: 0 done, 1 a gate failed, 2 wrong input, 3 an internal error."""
    # Idle threads of numpy's OpenBLAS would spin for a while, on cores that have other work.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
    open_streams()
    code = run(sys.argv[1:])
    if code == INTERRUPTED:  # Python would wait for all threads, as those of requests that have no answer yet.
        atexit._run_exitfuncs()
        with suppress(OSError):
            sys.stdout.flush()
        os._exit(code)
    sys.exit(code)


def open_streams() -> None:
    """Standard output and error that were closed are discarded; what they cannot encode is escaped."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        else:
            stream.reconfigure(errors="backslashreplace")


def run(arguments: list[str]) -> int:
    """Run a verb; the exit code."""
    from steelyard.errors import SteelyardError

    try:
        if any("\0" in argument for argument in arguments):
            raise SteelyardError("an argument contains a null character, which no file name and no text can have.")
        if arguments[:1] == ["evaluate"]:
            from steelyard.cli.ahead import start_reading

            start_reading(arguments[1:])
        code = _run(arguments)
        sys.stdout.flush()
        return code
    except SteelyardError as error:
        return _fail(error)
    except BrokenPipeError:
        _discard_output()
        return DONE
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except (OSError, MemoryError) as error:
        _discard_output()
        return _fail(_system_error(error))
    except BaseException as error:
        # A library could not be loaded because there is no memory for it.
        if isinstance(error, ImportError) and "failed to map segment" in str(error):
            return _fail(_system_error(MemoryError()))
        # A thread could not be started: by Python, or by the thread pool of polars.
        from steelyard.safe_text import error_text

        kind, text = type(error).__name__, error_text(error)
        if "thread" in text and (kind == "PanicException" or (kind == "RuntimeError" and "can't start" in text)):
            return _fail(SteelyardError(f"the system refused to start a thread ({error}); end other processes."))
        return _log_internal_error(error)


def _fail(error: Exception) -> int:
    """Print an error of the user; its exit code."""
    from steelyard.cli.output import print_message
    from steelyard.safe_text import error_text

    print_message(f"error: {error_text(error)}")
    return WRONG_INPUT


def _system_error(error: OSError | MemoryError) -> Exception:
    """What the system refused, in our words: a full disk, a read-only folder, no memory."""
    from steelyard.errors import InputError, SteelyardError

    if isinstance(error, MemoryError):
        return SteelyardError("there is not enough memory.")
    where = error.filename if isinstance(error.filename, str) else None
    return InputError(f"{error.strerror or error}.", where)


def _discard_output() -> None:
    """What is left in the buffer of standard output goes nowhere, so that Python does not try again at its end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(arguments: list[str]) -> int:
    """Import the module of the verb and call its function."""
    if not arguments or arguments[0] in ("--help", "-h", "help"):
        width = max(map(len, VERBS))
        print(_HELP.format(verbs="\n".join(f"  {verb:<{width}}  {text}" for verb, text in VERBS.items())))
        return DONE
    if arguments[0] == "--version":
        from steelyard.version import __version__

        print(f"steelyard {__version__}")
        return DONE
    from steelyard.cli.arguments import check_outputs, parse_arguments
    from steelyard.cli.options import UsageError
    from steelyard.errors import did_you_mean
    from steelyard.io.files import outputs, streams_read_once
    from steelyard.notes import shown_otherwise
    from steelyard.wording import for_the_command_line

    verb = arguments[0]
    if verb not in VERBS:
        raise UsageError(f"unknown verb {verb!r}." + (did_you_mean(verb, VERBS) or f" The verbs: {', '.join(VERBS)}."))
    function = getattr(import_module(f"steelyard.cli.{_MODULES.get(verb, verb)}"), verb)
    try:
        keywords = parse_arguments(verb, function, arguments[1:])
    except SystemExit:
        return DONE
    outputs.set(dict.fromkeys(check_outputs(keywords, verb), False))
    with streams_read_once(), shown_otherwise(), for_the_command_line():
        code = function(**keywords)
    return DONE if code is None else int(code)


def _log_internal_error(error: BaseException) -> int:
    """Write the traceback to a log file, and print where it is; on stderr where no file can be written."""
    import tempfile
    import traceback

    from steelyard.masking import masked
    from steelyard.safe_text import error_text, terminal_text, utf8

    trace = utf8(masked("".join(traceback.format_exception(error))))
    try:
        with tempfile.NamedTemporaryFile("wb", prefix="steelyard-", suffix=".log", delete=False) as log:
            log.write(trace)
        where = f"The traceback is in {log.name}"
    except OSError:
        where = f"The traceback:\n{trace.decode()}"
    print(f"error: internal error ({terminal_text(error_text(error))}). {where}", file=sys.stderr)
    return INTERNAL_ERROR
