"""A program: reads runs and fusions as JSON, writes ranx's fused runs.

It is a separate process, so that numba's compiler can be switched off before it is imported.
"""

from __future__ import annotations

import json
import sys


def main() -> None:
    import ranx

    given = json.load(sys.stdin)
    answers = []
    for fusion in given["fusions"]:
        runs = [ranx.Run(run, name=str(number)) for number, run in enumerate(given["runs"])]
        fused = ranx.fuse(runs, norm=fusion["norm"], method=fusion["method"], params=fusion["params"])
        answers.append({query: dict(listed) for query, listed in fused.run.items()})
    json.dump(answers, sys.stdout, default=float)


if __name__ == "__main__":
    main()
