"""`python -m examples.hybrid_retrieval [SEEDS]` prints the tables of the experiment as Markdown."""

from __future__ import annotations

import sys

from examples.hybrid_retrieval.experiment import hybrid_retrieval
from steelyard.errors import SteelyardError


def main(arguments: list[str]) -> int:
    """Run the experiment with a number of seeds, 5 by default. Returns the exit code: 2 for wrong arguments."""
    if len(arguments) > 1 or not all(argument.isdecimal() for argument in arguments):
        print("usage: python -m examples.hybrid_retrieval [SEEDS]", file=sys.stderr)
        return 2
    try:
        print(hybrid_retrieval(range(int(arguments[0]) if arguments else 5)).to_markdown(), end="")
    except SteelyardError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
