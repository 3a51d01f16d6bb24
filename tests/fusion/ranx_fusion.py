"""Run as a program: runs and the fusions asked for in as JSON, ranx's fused runs out.

A process of its own, so that numba's compiler can be switched off before it is imported.
"""

from __future__ import annotations

import json
import sys


def main() -> None:
    import ranx

    asked = json.load(sys.stdin)
    answers = []
    for fusion in asked["fusions"]:
        runs = [ranx.Run(run, name=str(number)) for number, run in enumerate(asked["runs"])]
        made = ranx.fuse(runs, norm=fusion["norm"], method=fusion["method"], params=fusion["params"])
        answers.append({query: dict(listed) for query, listed in made.run.items()})
    json.dump(answers, sys.stdout, default=float)


if __name__ == "__main__":
    main()
