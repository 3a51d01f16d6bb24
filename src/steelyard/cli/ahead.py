"""Reading ahead: `evaluate` starts to read the run before its command line is parsed and numpy is imported.

The first two arguments that are files are taken as the qrels and the run. A wrong guess costs a little work and
changes nothing: the result is used only if the run, the qrels and the ordering are those of the parsed command.
"""

from __future__ import annotations

import os

from steelyard.native import kernel_options, read_ahead


def start_reading(arguments: list[str]) -> None:
    """Start to read the run of an `evaluate` command."""
    files = [argument for argument in arguments if os.path.isfile(argument)]
    options = _ordering(arguments) if len(files) > 1 else None
    if options is not None:
        read_ahead(files[0], files[1], options)


def _ordering(arguments: list[str]) -> tuple[int, bool, bool] | None:
    """The options of the kernel for the ordering that the arguments choose; None if they are wrong."""
    chosen = {name: _value(arguments, f"--{name}") for name in ("dialect", "ties")}
    chosen["duplicates"] = next((text[11:] for text in arguments if text.startswith("duplicates=")), None)
    if not any(chosen.values()):
        return kernel_options()
    from steelyard.dialects import dialect
    from steelyard.errors import SteelyardError
    from steelyard.options import resolve

    try:
        options = resolve(dialect(chosen.pop("dialect") or "steelyard").policies, chosen)
    except SteelyardError:
        return None
    return kernel_options(options.ties, options.duplicates, options.single)


def _value(arguments: list[str], option: str) -> str | None:
    for place, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name == option:
            return value if equals else next(iter(arguments[place + 1 :]), None)
    return None
