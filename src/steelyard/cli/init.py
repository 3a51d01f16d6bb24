"""steelyard init: a starter bench.yaml, explained."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from steelyard.bench.starter import write_starter
from steelyard.cli.output import say
from steelyard.cli.parsing import Argument


def init(
    folder: Annotated[Path, Argument("DIR", "The folder to write bench.yaml into.")] = Path(),
) -> None:
    """Write a bench.yaml that runs as it is and explains itself.

    Example: steelyard init my-bench && steelyard bench my-bench/bench.yaml
    """
    say(f"{write_starter(folder)} is written; run it with: steelyard bench {folder / 'bench.yaml'}")
