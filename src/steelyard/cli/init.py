"""steelyard init: a starter bench.yaml, explained."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steelyard.bench.starter import write_starter
from steelyard.cli.output import say


def init(
    folder: Annotated[
        Path, typer.Argument(help="The folder to write bench.yaml into.", metavar="DIR")
    ] = Path(),
) -> None:
    """Write a bench.yaml that runs as it is and explains itself.

    Example: steelyard init my-bench && steelyard bench my-bench/bench.yaml
    """
    say(f"{write_starter(folder)} is written; run it with: steelyard bench {folder / 'bench.yaml'}")
